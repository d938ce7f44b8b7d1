"""The part of ``headway translate`` that shares the lines out: ``--shard i/n`` and ``--ray``."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway import __version__
from headway.cli.computing import load_translator
from headway.cli.records import FORMATS, Notes, Settings, translate_rows, with_phrases
from headway.cli.reports import count
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer, read_lines
from headway.translate.compute import Compute

if TYPE_CHECKING:
    from headway.bulk.job import Chunk, Job, Result, Row, Translate

_MOST_SHARDS = 100_000


class Shard(click.ParamType):
    """``i/n``: process i of n, from 1."""

    name = "i/n"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Both numbers."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", value)
        index, number = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= index <= number <= _MOST_SHARDS:
            self.fail(f"{value!r} is not i/n with 1 <= i <= n <= {_MOST_SHARDS:,}, as in 2/3.", param, ctx)
        return index, number


@dataclass(frozen=True, slots=True)
class Bulk:
    """What the options say about sharing out."""

    shard: tuple[int, int] | None
    ray: bool
    ray_workers: int | None
    ray_address: str | None

    @property
    def is_asked(self) -> bool:
        """Whether the lines are to be shared out at all."""
        return self.shard is not None or self.ray

    def check(self, file: str, output: str, *, refused: Sequence[str]) -> None:
        """Raise UsageError for options that do not go together; ``refused`` are those given that have no part here."""
        if not self.ray and (self.ray_workers is not None or self.ray_address is not None):
            raise click.UsageError("--ray-workers and --ray-address would have no effect without --ray.")
        if not self.is_asked:
            return
        option = "--ray" if self.ray else "--shard"
        if self.ray and self.shard is not None:
            raise click.UsageError("Give either --shard or --ray, not both.")
        if refused:
            raise click.UsageError(f"{option} shares out the lines of FILE; leave out {', '.join(refused)}.")
        if file == STANDARD_STREAM:
            raise click.UsageError(f"{option} needs a file: each process reads it from its start. Name FILE.")
        if self.shard is not None and output == STANDARD_STREAM:
            raise click.UsageError("--shard needs -o OUT: the parts and the output are files.")


@dataclass(frozen=True, slots=True)
class Rows:
    """Reads the lines of a file with their phrases, from the start each time."""

    file: str
    settings: Settings

    def __call__(self) -> "Iterator[Row]":
        """All lines."""
        return with_phrases(read_lines(self.file), self.settings, name=name_of(self.file))


@dataclass(frozen=True, slots=True)
class Load:
    """Loads the models in the process that is to translate, and gives what translates a chunk."""

    models: tuple[Path, ...]
    compute: Compute
    tag: str | None
    settings: Settings
    output_format: str

    def computed_by(self) -> str:
        """What computes on this machine, and in which precision."""
        from headway.folder.contents import ModelFolder
        from headway.translate.backend import choose

        choice = choose([ModelFolder.open(folder) for folder in self.models], self.compute)
        return f"{choice.engine} {choice.precision}"

    def __call__(self) -> "Translate":
        """Load the models."""
        from headway.bulk.job import Result

        translator = load_translator(self.models, self.compute, tag=self.tag)
        write = FORMATS[self.output_format]

        def translate(chunk: "Chunk") -> "Result":
            notes = Notes()
            records: list[str] = []
            translations = translate_rows(translator, chunk.rows, self.settings)
            for number, (row, marked) in enumerate(zip(chunk.rows, translations, strict=True), chunk.first_line):
                notes.add(number, marked)
                records.append(write(number, row[0], marked, notes))
            return Result(records, {name: numbers for name, numbers in asdict(notes).items() if numbers})

        return translate


def translate_in_bulk(bulk: Bulk, load: Load, file: str, output: str) -> None:
    """Translate a share of the lines, or all of them on a cluster, and tell what happened on standard error."""
    from headway.bulk.job import Job, check_files

    phrase_file = load.settings.phrase_file
    check_files([file] if phrase_file is None else [file, phrase_file])
    job = Job(Rows(file, load.settings), load, computed_by=load.computed_by)
    notes = _on_ray(bulk, job, load, output) if bulk.shard is None else _shard(bulk.shard, job, load, output)
    notes.tell()


def _shard(shard: tuple[int, int], job: "Job", load: Load, output: str) -> Notes:
    """Translate one share into its part file, and join the parts when they are all there."""
    from headway.bulk.part import part_path
    from headway.bulk.shard import translate_shard

    index, number = shard
    report = translate_shard(job, output, index=index, count=number, settings=_described(load))
    part = part_path(output, index, number)
    last_line = report.first_line + report.num_lines - 1
    lines = f"lines {report.first_line:,} to {last_line:,} of {report.num_all:,}"
    told = lines if report.num_lines else f"no lines of {report.num_all:,}"
    found = f"; {count(report.num_found, 'line')} of them were there" if report.num_found else ""
    click.echo(f"headway: {part}: {told}{found}", err=True)
    if report.waiting:
        waiting = ", ".join(f"{other}/{number}" for other in report.waiting[:10])
        more = ", ..." if len(report.waiting) > 10 else ""
        click.echo(f"headway: {output} is written when these shards are done: {waiting}{more}", err=True)
    else:
        parts = count(number, "part")
        click.echo(f"headway: {output}: {count(report.num_all, 'line')} from {parts}; {output}.part-* may go", err=True)
    notes = Notes()
    for name, numbers in report.notes.items():
        _take(notes, name, numbers)
    return notes


def _on_ray(bulk: Bulk, job: "Job", load: Load, output: str) -> Notes:
    """Translate all lines on a cluster and write them in order."""
    from headway.bulk.cluster import Cluster, translate_on_ray

    cluster = Cluster(
        bulk.ray_address, workers=bulk.ray_workers, threads=load.compute.threads, device=load.compute.device
    )
    notes = Notes()
    with open_writer(output) as writer:
        for result in translate_on_ray(job, cluster):
            writer.writelines(record + "\n" for record in result.records)
            for name, numbers in result.notes.items():
                _take(notes, name, numbers)
    return notes


def _take(notes: Notes, name: str, numbers: list[int]) -> None:
    """Add line numbers of one kind; a kind that is not known (of a journal that was changed) counts for nothing."""
    kinds = vars(notes)
    if name in kinds:
        kinds[name].extend(numbers)


def _described(load: Load) -> dict[str, str]:
    """All that the output depends on, but for the input, by name."""
    from headway.bulk.identity import file_digest, model_digest

    settings = load.settings
    return {
        "headway": __version__,
        "model": " ".join(model_digest(folder) for folder in load.models),
        "computed by": load.computed_by(),
        "--shortlist": "" if load.compute.shortlist is None else file_digest(load.compute.shortlist),
        "--tag": str(load.tag),
        "--format": load.output_format,
        "--alignment": str(settings.alignment),
        "--prefix": ascii(settings.prefix),
        "--phrase": ascii(settings.phrases),
        "--phrases": str(settings.phrase_file is not None),  # its lines are part of the input
        "--markup": str(settings.syntax),
        "--keep-numbers": str(settings.numbers),
        **{f"decoding {name}": str(value) for name, value in asdict(settings.decoding).items()},
    }


def bulk_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of this page, each as an argument of its own."""
    for option in (
        click.option("--ray-address", metavar="HOST:PORT", help="The cluster. [this machine alone]"),
        click.option("--ray-workers", type=click.IntRange(min=1), help="Translators side by side. [all that fit]"),
        click.option("--ray", is_flag=True, help="Share the lines of FILE out on a Ray cluster."),
        click.option(
            "--shard", type=Shard(), help="Be process i of n: translate a share of FILE; joins with the last."
        ),
    ):
        command = option(command)
    return command

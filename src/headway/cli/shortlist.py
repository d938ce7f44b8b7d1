"""``headway shortlist``: which target tokens go with which source tokens, so that not all need be searched."""

import json
import sys
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from headway.cli.computing import load_translator
from headway.cli.options import tag_option
from headway.cli.reports import columns, count
from headway.corpus.read import read
from headway.translate.compute import Compute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headway.engine.shortlist import Shortlist
    from headway.folder.contents import ModelFolder
    from headway.translate.shortlist import Coverage, Learnt, Trial

_PATH = click.Path(path_type=Path)
HELD_OUT = 1000  # of the last pairs, and at most a tenth of all


@dataclass(frozen=True, slots=True)
class _Held:
    """Text that the shortlist is measured on, and what it is."""

    what: str
    sources: list[str]
    references: list[str]
    tags: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    """A shortlist, what to say of how it was made, and the pairs of a corpus that were kept from it."""

    shortlist: "Shortlist"
    rows: list[tuple[str, str]]
    facts: dict[str, object]
    held: _Held | None


@click.command("shortlist")
@click.argument("files", nargs=-1, metavar="[SOURCE [TARGET]]")
@click.option("-m", "--model", required=True, type=_PATH, metavar="FOLDER", help="The model folder.")
@click.option("--from", "table", type=_PATH, metavar="FILE", help="Make it from a table: target source probability.")
@click.option("--out", type=_PATH, metavar="FILE", help="The file to write.  [default: in the model folder]")
@click.option("--frequent", type=click.IntRange(min=0), default=100, show_default=True, help="Tokens always allowed.")
@click.option("--per-token", type=click.IntRange(min=1), default=100, show_default=True, help="More, a source token.")
@click.option("--pairs", type=click.IntRange(min=1), default=200_000, show_default=True, help="Learn from so many.")
@click.option("--validation", nargs=2, metavar="SOURCE TARGET", help="Measure on these files.")
@click.option("--compare", is_flag=True, help="Translate what it is measured on without it and with it.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Turns of --compare.")
@tag_option
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [one a core]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    files: tuple[str, ...],
    model: Path,
    table: Path | None,
    out: Path | None,
    frequent: int,
    per_token: int,
    pairs: int,
    validation: tuple[str, str] | None,
    compare: bool,
    rounds: int,
    tag: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Learn a lexical shortlist for a model, and print what it covers, loses and gains.

    It is learnt from the run's own training data, or from SOURCE and TARGET (or one file of both sides), by where the
    model looks in the source when it writes. It is measured on the run's validation text, on the last tenth of the
    files (1,000 pairs at most), which is not learnt from, or on --validation.

    Example: headway shortlist -m runs/mine --compare

    Example: headway translate -m runs/mine --shortlist runs/mine/shortlist.safetensors -s "3 May 2024"
    """
    from headway.folder.contents import ModelFolder
    from headway.translate.kind import check_kind

    if table is not None and files:
        raise click.UsageError("found --from and SOURCE; wanted one of them: a table, or text to learn from.")
    if len(files) > 2:
        raise click.UsageError(f"found {len(files)} files; wanted SOURCE and TARGET, or one of both sides.")
    if table is not None and compare and validation is None:
        raise click.UsageError("--compare needs text to translate: give --validation SOURCE TARGET.")
    folder = ModelFolder.open(model)
    check_kind(folder, "translate")
    given = None if validation is None else _held_files(folder, validation)  # first: a wrong name costs no learning
    numbers = {"frequent": frequent, "per_token": per_token}
    if table is not None:
        made = _from_table(folder, table, numbers)
    elif files:
        made = _from_files(folder, files, numbers, most=pairs, tag=tag or "", threads=threads, hold=validation is None)
    else:
        made = _from_run(folder, numbers, most=pairs, threads=threads)
    held = given or made.held
    if compare and held is None:
        raise click.UsageError("--compare needs text to translate: give --validation SOURCE TARGET.")
    path = out or model / "shortlist.safetensors"
    made.shortlist.write(path)
    coverage = _cover(folder, made.shortlist, held, tag or "")
    trial = None
    if compare and held is not None:
        trial = _compare(model, path, held, tag=tag, threads=threads, rounds=rounds)
    if as_json:
        click.echo(json.dumps(_facts(made, path, held, coverage, trial), indent=2))
    else:
        click.echo(columns([*made.rows, *_rows(made.shortlist, path, held, coverage, trial)]))


def _from_run(folder: "ModelFolder", numbers: dict[str, int], *, most: int, threads: int | None) -> _Made:
    from headway.translate.shortlist import data_of_run, learn_shortlist, pairs_of_run

    prepared = data_of_run(folder)
    learnt = learn_shortlist(
        folder, pairs_of_run(prepared, most=most), threads=threads, on_progress=_tell_progress, **numbers
    )
    _end_progress()
    sources, references = prepared.texts("validation")
    tags = prepared.tags("validation") if folder.config.tags else None
    held = _Held("the run's validation text", sources, references, tags) if sources else None
    return _learnt(learnt, "of the run's training data", held)


def _from_files(
    folder: "ModelFolder",
    files: tuple[str, ...],
    numbers: dict[str, int],
    *,
    most: int,
    tag: str,
    threads: int | None,
    hold: bool,
) -> _Made:
    from headway.translate.shortlist import learn_shortlist, pairs_of_texts

    texts = list(islice(_read(folder, files), most))
    kept = min(HELD_OUT, len(texts) // 10) if hold else 0
    learning, last = texts[: len(texts) - kept], texts[len(texts) - kept :]
    ids = pairs_of_texts(folder, learning, tag=tag)
    learnt = learn_shortlist(folder, ids, threads=threads, on_progress=_tell_progress, **numbers)
    _end_progress()
    held = _Held("the last of the files", [one for one, _ in last], [other for _, other in last]) if last else None
    return _learnt(learnt, "of the files", held)


def _from_table(folder: "ModelFolder", table: Path, numbers: dict[str, int]) -> _Made:
    from headway.engine.lexical_table import read_lexical_table
    from headway.engine.shortlist import digests

    found = read_lexical_table(table, folder.source_tokenizer, folder.target_tokenizer)
    shortlist = found.counts.shortlist(vocabularies=digests(folder), **numbers)
    facts: dict[str, object] = {
        "lines": found.lines,
        "used": found.used,
        "empty": found.empty,
        "unknown": found.unknown,
    }
    what = f"{found.used:,} of {count(found.lines, 'line')} of {table}"
    rows = [("made from", f"{what}; {found.unknown:,} have tokens not known here, {found.empty:,} the empty word")]
    return _Made(shortlist, rows, {"table": facts}, None)


def _learnt(learnt: "Learnt", what: str, held: _Held | None) -> _Made:
    left_out = f"; {learnt.left_out:,} left out, empty or longer than the model knows" if learnt.left_out else ""
    rows = [("learnt from", f"{count(learnt.pairs, 'pair')} {what}{left_out}")]
    if learnt.forgotten:
        rows.append(("not counted", f"{count(learnt.forgotten, 'pair')} of tokens, for want of room: the rarest"))
    facts = {"pairs": learnt.pairs, "left_out": learnt.left_out, "forgotten": learnt.forgotten}
    return _Made(learnt.shortlist, rows, {"learnt": facts}, held)


def _read(folder: "ModelFolder", files: tuple[str, ...]) -> "Iterator[tuple[str, str]]":
    languages = {"source_language": folder.config.source_language, "target_language": folder.config.target_language}
    return ((pair.source, pair.target) for pair in read(*files, **languages))


def _held_files(folder: "ModelFolder", files: tuple[str, str]) -> _Held:
    pairs = list(_read(folder, files))
    return _Held(" and ".join(files), [source for source, _ in pairs], [target for _, target in pairs])


def _cover(folder: "ModelFolder", shortlist: "Shortlist", held: _Held | None, tag: str) -> "Coverage | None":
    from headway.translate.shortlist import measure_coverage, pairs_of_texts

    if held is None:
        return None
    pairs = zip(held.sources, held.references, strict=True)
    return measure_coverage(shortlist, pairs_of_texts(folder, pairs, tags=held.tags, tag=tag))


def _compare(model: Path, path: Path, held: _Held, *, tag: str | None, threads: int | None, rounds: int) -> "Trial":
    from headway.translate.shortlist import try_shortlist

    plain, limited = (
        load_translator([model], Compute("cpu", "native", threads=threads, shortlist=shortlist), tag=tag)
        for shortlist in (None, path)
    )
    return try_shortlist(plain, limited, held.sources, held.references, tags=held.tags, rounds=rounds)


def _tell_progress(pairs: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[Klearnt from {pairs:,} pairs", nl=False, err=True)


def _end_progress() -> None:
    """Take the line of progress away: the table begins there."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)


def _rows(
    shortlist: "Shortlist", path: Path, held: _Held | None, coverage: "Coverage | None", trial: "Trial | None"
) -> list[tuple[str, str]]:
    size = shortlist.target_vocab_size
    mean = len(shortlist.tokens) / shortlist.source_vocab_size
    rows = [
        ("lists", f"{len(shortlist.always):,} tokens always, {mean:.1f} more for a source token on average"),
        ("file", f"{path} ({path.stat().st_size:,} bytes)"),
    ]
    if held is None or coverage is None:
        return [*rows, ("measured on", "nothing; give --validation SOURCE TARGET")]
    rows += [
        ("measured on", f"{count(coverage.sentences, 'pair')}: {held.what}"),
        ("a sentence's list", f"{coverage.mean_size:,.0f} of {size:,} tokens on average"),
        (
            "covered",
            f"{coverage.covered_tokens / max(coverage.tokens, 1):.2%} of {coverage.tokens:,} reference tokens, "
            f"{coverage.covered_sentences:,} references whole",
        ),
    ]
    if coverage.whole:
        rows.append(("too long a list", f"{count(coverage.whole, 'sentence')}, searched in the whole vocabulary"))
    if trial is not None:
        bleu, seconds = trial.bleu, [median(own) for own in trial.seconds]
        turns = count(len(trial.seconds[0]), "turn")
        rows += [
            ("BLEU", f"{bleu[0]:.2f} without, {bleu[1]:.2f} with: {bleu[1] - bleu[0]:+.2f} ({trial.signature})"),
            ("other outputs", f"{trial.different:,} of {trial.sentences:,}"),
            (
                "seconds",
                f"{seconds[0]:.2f} without, {seconds[1]:.2f} with: {trial.speedup:.2f} times as fast "
                f"(medians of {turns} each)",
            ),
        ]
    return rows


def _facts(
    made: _Made, path: Path, held: _Held | None, coverage: "Coverage | None", trial: "Trial | None"
) -> dict[str, object]:
    shortlist = made.shortlist
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        **made.facts,
        "always": len(shortlist.always),
        "listed": len(shortlist.tokens),
        "source_vocab_size": shortlist.source_vocab_size,
        "target_vocab_size": shortlist.target_vocab_size,
        "measured_on": None if held is None else held.what,
        "coverage": None if coverage is None else asdict(coverage),
        "comparison": None if trial is None else {**asdict(trial), "speedup": trial.speedup},
    }

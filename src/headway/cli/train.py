"""``headway train``: everything from files of parallel text to a measured model folder, in one command."""

import difflib
import json
import os
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.options import data_option, overrides_option
from headway.cli.reports import columns
from headway.config.auto import write_value
from headway.config.load import Draft, draft_text, load, read_draft
from headway.config.presets import AUTO, PRESETS
from headway.config.schema import RunConfig
from headway.errors import ConfigError

if TYPE_CHECKING:
    from headway.train.choice import Chosen
    from headway.train.distributed import Group

SHORT = "--source a.en --target a.de --source-language en --target-language de --out runs/x"
PATH = click.Path(path_type=Path)
FAILED = 1  # exit code of a process that leaves the telling to another
NEXT_COMMANDS = {  # of models that do not translate, by their architecture and objective
    ("decoder_only", "target"): "Generate: headway generate -m {} --prompt 'Your text'",
    ("encoder_only", "masked"): "Fine-tune: headway train classify --init {} --set data.train_source=labelled.tsv",
    ("encoder_only", "labels"): "Classify: echo 'Your text' | headway classify -m {}",
}
DEFAULT_RECIPE = "short"  # of the short form ...
ADAPTING_RECIPE = "adapt"  # ... and with --init
OPEN_RECIPE = 'title = "A translator from your own parallel text"'  # of the short form with --preset auto


@click.command("train")
@click.argument("recipe", required=False)
@click.argument("others", nargs=-1, metavar="")
@data_option
@overrides_option
@click.option("--source", metavar="FILE", help="Short form: the source side, or both: TMX, XLIFF, PO, TSV, JSONL ...")
@click.option("--target", metavar="FILE", help="Short form: the target side, aligned by line.")
@click.option("--dev-source", metavar="FILE", help="Short form: validation text. Absent: held out from training text.")
@click.option("--dev-target", metavar="FILE", help="Short form: its target side.")
@click.option("--source-language", metavar="CODE", help="Language code, such as en.")
@click.option("--target-language", metavar="CODE", help="Language code, such as de.")
@click.option(
    "--preset",
    metavar="|".join((AUTO, *PRESETS)),
    help="auto: choose all settings from the text. Else: a model's size.",
)
@click.option("--init", metavar="FOLDER", help="Begin with the weights and the vocabulary of this model.")
@click.option(
    "--out", "out_dir", type=PATH, metavar="FOLDER", help="The model folder.  [default for a recipe: runs/RECIPE]"
)
@click.option("--fresh", is_flag=True, help="Forget an earlier run in the same folder instead of going on.")
def command(  # noqa: PLR0913 - click gives one argument an option
    recipe: str | None,
    others: tuple[str, ...],
    *,
    data_dir: Path,
    overrides: tuple[str, ...],
    source: str | None,
    target: str | None,
    dev_source: str | None,
    dev_target: str | None,
    source_language: str | None,
    target_language: str | None,
    preset: str | None,
    init: str | None,
    out_dir: Path | None,
    fresh: bool,
) -> None:
    """Train a translator: from RECIPE (a TOML file or a packaged name), or from two files of parallel text.

    \b
    headway train multi30k-en-de --data DIR
    headway train --source a.en --target a.de --source-language en --target-language de --out runs/x
    headway train --preset auto --source a.en --target a.de --source-language en --target-language de --out runs/x

    The same command goes on where an earlier one was stopped, and gives the same weights as if it never had been.
    """  # noqa: D301 - click wants the character that the escape stands for
    if others:
        raise click.UsageError(
            f"found {recipe} and {others[0]}; wanted one recipe. Files of text are named: --source {recipe} "
            f"--target {others[0]} --source-language en --target-language de --out runs/x."
        )
    files = {
        "data.train_source": source,
        "data.train_target": target,
        "data.validation_source": dev_source,
        "data.validation_target": dev_target,
        "data.source_language": source_language,
        "data.target_language": target_language,
        "train.init": init,
    }
    given = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in files.items() if value is not None]
    languages = {"source-language": source_language, "target-language": target_language}
    short = {"source": source, **({} if init else languages), "out": out_dir}  # with a model, they are the model's
    missing = [f"--{name}" for name, value in short.items() if value is None]
    if recipe is None and missing:
        raise ConfigError(
            f"cli/train: found no recipe, and of the short form no {', '.join(missing)}; wanted a recipe, or {SHORT}."
        )
    _check_preset(preset, overrides)
    name = recipe or (DEFAULT_RECIPE if init is None else ADAPTING_RECIPE)
    folder = out_dir or Path("runs") / Path(name).stem
    with _processes() as group:
        if preset == AUTO:
            changes = ("model.preset=", *given, *overrides)  # whatever model the recipe names, its sizes are chosen
            draft = (
                draft_text(OPEN_RECIPE, overrides=changes) if recipe is None else read_draft(recipe, overrides=changes)
            )
            config = _choose(draft, data_dir, folder, fresh=fresh, group=group)
        else:
            named = () if preset is None else (f"model.preset={preset}",)
            config = load(name, overrides=(*named, *given, *overrides))
            if group is None:  # of several, the first alone needs the text
                _check_text(config, data_dir)
        _run(config, data_dir, folder, fresh=fresh, group=group)


def _check_text(config: RunConfig, data_dir: Path) -> None:
    """Refuse text that is not there, before torch is loaded; its form is looked at later, once a parent is read."""
    from headway.data.named_files import check_files

    check_files(config, data_dir)


def _check_preset(preset: str | None, overrides: tuple[str, ...]) -> None:
    """Refuse a name that is none, and a second preset beside it."""
    if preset is None:
        return
    names = (AUTO, *PRESETS)
    if preset not in names:
        near = difflib.get_close_matches(preset, names, n=1)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise ConfigError(f"cli/train: --preset {preset}: found no such preset{hint}. Give one of {', '.join(names)}.")
    second = next((text for text in overrides if text.partition("=")[0].strip() == "model.preset"), None)
    if second is not None:
        raise ConfigError(
            f"cli/train: found both --preset {preset} and --set {second}; wanted one. Take out the other."
        )


def _choose(draft: Draft, data_dir: Path, folder: Path, *, fresh: bool, group: "Group | None") -> RunConfig:
    """Settings chosen from the text, and the reasons for them on standard error."""
    from headway.train.choice import choose_settings

    tells = group is None or group.is_first
    chosen = choose_settings(draft, data_dir, out_dir=folder, fresh=fresh, on_progress=_counting if tells else None)
    if tells:
        click.echo(_reasons(chosen, folder), err=True)
    return chosen.config


def _counting(pairs: int) -> None:
    """Say once that the text is being counted; on a terminal, how far that is."""
    live = sys.stderr.isatty()
    if live or not pairs:
        shown = f"counting the training text: {pairs:,} pairs" if live else "counting the training text ..."
        click.echo(("\r\x1b[K" if live else "") + shown, nl=not live, err=True)


def _reasons(chosen: "Chosen", folder: Path) -> str:
    """What was counted, and one line a choice."""
    if chosen.facts is None:
        return (
            f"the run in {folder} goes on with the settings that it began with (training/recipe.toml there); "
            "nothing is chosen anew. --fresh would."
        )
    rows = [
        (f"  {choice.key}", write_value(choice.value if choice.given is None else choice.given), str(choice))
        for choice in chosen.choices
    ]
    erase = "\r\x1b[K" if sys.stderr.isatty() else ""
    return f"{erase}{chosen.facts}\n{columns(rows, right={1})}"


@contextmanager
def _processes() -> "Generator[Group | None]":
    """Join the other processes that torchrun started, if any; of an error that ends them all, one tells.

    Without torchrun nothing is imported, so that an error in a recipe is told at once.
    """
    if "WORLD_SIZE" not in os.environ:
        yield None
        return
    from headway.cli.stopping import INTERRUPTED
    from headway.train.distributed import joined

    with joined(os.environ) as group:
        try:
            yield group
        except click.exceptions.Exit:
            raise
        except BaseException as error:
            if group.speaks():
                raise
            raise click.exceptions.Exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED) from error


def _run(config: RunConfig, data_dir: Path, folder: Path, *, fresh: bool, group: "Group | None") -> None:
    """Train with a progress display; Ctrl-C and SIGTERM save the state and say how to go on.

    Before the training started, ``--fresh`` stays in what is said: the earlier run has not been forgotten yet.
    """
    from headway.cli.progress import ProgressPrinter
    from headway.cli.stopping import INTERRUPTED, stop_requests
    from headway.train.distributed import ALONE
    from headway.train.events import Interrupted, Started
    from headway.train.run import train

    group, started = group or ALONE, False
    with stop_requests(is_told=group.is_first) as should_stop:
        events = train(config, data_dir, out_dir=folder, fresh=fresh, should_stop=should_stop, group=group)
        try:
            for event in ProgressPrinter().watch(events) if group.is_first else events:
                started = started or isinstance(event, Started)
                if isinstance(event, Interrupted):
                    _say_how_to_go_on(group, started=True)
                    raise click.exceptions.Exit(INTERRUPTED)
        except KeyboardInterrupt:  # while data were prepared, or a second Ctrl-C
            _say_how_to_go_on(group, started=started)
            raise
    name = shlex.quote(str(folder))
    if group.is_first and config.reads != "pairs":
        click.echo(NEXT_COMMANDS[config.model.architecture, config.train.objective].format(name), err=True)
    elif group.is_first:
        tags = [corpus.tag for corpus in config.data.corpora]
        tag = f" --tag {tags[0]}" if tags and all(tags) else ""  # without one, such a model refuses text
        click.echo(_say_how_to_use(config, folder) + tag, err=True)


def _say_how_to_use(config: RunConfig, folder: Path) -> str:
    name = shlex.quote(str(folder))
    if not config.is_parser:
        return f"Translate: echo 'Your text.' | headway translate -m {name}"
    if config.parsing.tags == "given":
        return f"Parse: echo 'The_DT dog_NN sleeps_VBZ ._.' | headway parse --tagged -m {name}"
    return f"Parse: echo 'The dog sleeps .' | headway parse -m {name}"


def _say_how_to_go_on(group: "Group", *, started: bool) -> None:
    """Print the command that was given, without the ``--fresh`` that would forget what is there now."""
    if not group.is_first:
        return
    arguments = [argument for argument in sys.argv[1:] if argument != "--fresh" or not started]
    erase = "\r\x1b[K" if sys.stderr.isatty() else ""  # a live line of progress may stand there
    command = shlex.join(["headway", *arguments])
    if os.environ.get("LOCAL_WORLD_SIZE") == str(group.world_size):
        command = f"torchrun --standalone --nproc-per-node={group.world_size} -m {command}"
    elif group.world_size > 1:
        command = "the same torchrun command on every machine"
    click.echo(f"{erase}To go on: {command}", err=True)

"""``headway explain``: where a model looks in one sentence, drawn; or what each of its heads is worth over many."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from headway.cli.options import tag_option
from headway.cli.records import line_pairs
from headway.cli.reports import clip, columns, count
from headway.corpus.lines import STANDARD_STREAM, name_of, open_writer, read_lines
from headway.errors import InspectionError
from headway.translate.compute import DEVICES

if TYPE_CHECKING:
    from headway.inspection.head_effect import HeadEffect, HeadEffects
    from headway.inspection.record import AttentionRecord
    from headway.inspection.subject import Subject

RECORD_FILE, DRAWING_FILE = "attention.json", "attention.svg"
DEFAULT_FOLDER = "explained"


@click.command("explain")
@click.argument("sentence", required=False)
@click.option(
    "-m", "--model", "models", required=True, multiple=True, type=click.Path(path_type=Path), help="A folder."
)
@click.option("--target", metavar="TEXT|FILE", help="Look at this target, not the model's own; a FILE with --heads.")
@click.option("--out", type=click.Path(path_type=Path), help=f"The folder of record and drawing. [{DEFAULT_FOLDER}]")
@click.option("--head", "names", multiple=True, metavar="KIND.LAYER.HEAD", help="Draw this head in lines; repeatable.")
@click.option("--heads", is_flag=True, help="Switch each head off, and see what becomes of --source and --target.")
@click.option("--source", metavar="FILE", help="With --heads: sentences, one a line.")
@click.option("--bleu", is_flag=True, help="With --heads: translate without each head too. It takes long.")
@click.option("--tokenize", default="auto", show_default=True, help="BLEU's tokenizer: auto, none, 13a, intl, zh ...")
@click.option("--lowercase", is_flag=True, help="BLEU without regard to case.")
@tag_option
@click.option("--device", default="auto", type=click.Choice(DEVICES), help="Where to compute.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads. [one a core]")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON record; then files are written with --out only.")
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    sentence: str | None,
    models: tuple[Path, ...],
    target: str | None,
    out: Path | None,
    names: tuple[str, ...],
    heads: bool,
    source: str | None,
    bleu: bool,
    tokenize: str,
    lowercase: bool,
    tag: str | None,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Show what every head of every layer looks at while the model translates SENTENCE.

    Written are a JSON record and an SVG page, for the translation that beam search chose, or for --target. Or, with
    --heads, by how much the translations in a file lose probability when a head is switched off.

    Example: headway explain -m runs/mine "a dog sings outside ."

    Example: headway explain -m runs/mine --heads --source test.en --target test.de
    """
    is_tokenize_given = click.get_current_context().get_parameter_source("tokenize") != ParameterSource.DEFAULT
    bleu_only = {"--tokenize": is_tokenize_given, "--lowercase": lowercase}
    sentence_only = {"SENTENCE": sentence is not None, "--out": out is not None, "--head": bool(names)}
    heads_only = {"--source": source is not None, "--bleu": bleu, **bleu_only}
    _refuse(sentence_only if heads else heads_only, "with --heads" if heads else "without --heads")
    _refuse({} if bleu else bleu_only, "without --bleu")
    subject = _load(models, device, threads)
    if heads:
        pairs = _read(source, target)
        effects = _measure(subject, pairs, tag=tag, with_bleu=bleu, tokenize=tokenize, lowercase=lowercase)
        _tell_effects(effects, as_json=as_json)
        return
    if sentence is None:
        raise click.UsageError("found no SENTENCE to look at; give one, or --heads with --source and --target.")
    from headway.inspection.explanation import explain
    from headway.inspection.page import draw

    record = explain(subject, sentence, target=target, tag=tag)
    drawing = draw(record, names)
    folder = out or (None if as_json else Path(DEFAULT_FOLDER))
    if folder is not None:
        _write(folder, record, drawing)
    click.echo(json.dumps(record.to_dict(), ensure_ascii=False) if as_json else _text(record, folder))
    _notice(record)


def _refuse(given: Mapping[str, bool], where: str) -> None:
    """Refuse the options among these that were given and would do nothing there."""
    unused = [name for name, is_given in given.items() if is_given]
    if unused:
        raise click.UsageError(f"{', '.join(unused)} would have no effect {where}.")


def _load(models: tuple[Path, ...], device: str, threads: int | None) -> "Subject":
    from headway.inspection.subject import Subject, the_one_folder

    return Subject.from_folder(the_one_folder(models), device, threads=threads)


def _write(folder: Path, record: "AttentionRecord", drawing: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open_writer(str(folder / RECORD_FILE)) as writer:
        writer.write(json.dumps(record.to_dict(), ensure_ascii=False) + "\n")
    with open_writer(str(folder / DRAWING_FILE)) as writer:
        writer.write(drawing)


def _text(record: "AttentionRecord", folder: Path | None) -> str:
    """Both texts, the heads that mostly do one thing, and where the rest is."""
    from headway.inspection.ground import PLACES

    tokens = f"{count(len(record.log_probs), 'token')}, the end counted"
    rows = [
        ("source", clip(record.source, width=100)),
        ("target, given" if record.is_given else "target", clip(record.target, width=100)),
        ("log-probability", f"{record.log_prob:.4f} of {tokens}"),
    ]
    if folder is not None:
        rows += [("record", str(folder / RECORD_FILE)), ("drawing", str(folder / DRAWING_FILE))]
    table = [("head", "mostly looks at", "share", "by chance")]
    for head in record.heads:
        if head.words.looks_at is not None:
            share = head.words.shares[head.words.looks_at]
            table.append((head.name, PLACES[head.words.looks_at], f"{share.value:.2f}", f"{share.chance:.2f}"))
    labelled = columns(table, right={2, 3}) if len(table) > 1 else "no head mostly looks at one place"
    return f"{columns(rows)}\n\n{labelled}\n\n{len(table) - 1} of {count(len(record.heads), 'head')} have a label"


def _notice(record: "AttentionRecord") -> None:
    if record.is_cut:
        click.echo("headway: the translation reached the length limit and may be incomplete", err=True)
    if record.num_unknown:
        tokens = count(record.num_unknown, "source token")
        click.echo(f"headway: {tokens} not in the vocabulary; the model saw UNK there", err=True)


def _read(source: str | None, target: str | None) -> list[tuple[str, str]]:
    if source is None or target is None:
        raise click.UsageError("--heads needs --source FILE and --target FILE: sentences and their translations.")
    if source == target == STANDARD_STREAM:
        raise click.UsageError("Standard input cannot be both sides; name a file for --source or --target.")
    names = name_of(source), name_of(target)
    pairs = list(line_pairs(read_lines(source), read_lines(target), names=names))
    if not pairs:
        raise InspectionError(f"cli/explain: {names[0]} has 0 lines; wanted at least 1, better 500.")
    return pairs


def _measure(
    subject: "Subject",
    pairs: list[tuple[str, str]],
    *,
    tag: str | None,
    with_bleu: bool,
    tokenize: str,
    lowercase: bool,
) -> "HeadEffects":
    from headway.inspection.head_effect import measure_effects

    found = measure_effects(
        subject,
        [source for source, _ in pairs],
        [target for _, target in pairs],
        tag=tag,
        with_bleu=with_bleu,
        tokenize=tokenize,
        lowercase=lowercase,
        on_progress=_tell_progress,
    )
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    return found


def _tell_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[Kscored {done:,} of {total:,} pairs without each head", nl=False, err=True)


def _tell_effects(effects: "HeadEffects", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(effects.to_dict(), indent=2))
        return
    bleu = effects.heads[0].bleu
    table = [["head", "change", "95 % interval", *(["BLEU", "change", "p"] if bleu is not None else [])]]
    table += [_effect_row(effect) for effect in sorted(effects.heads, key=lambda effect: effect.change.value)]
    tokens = count(effects.num_tokens, "target token")
    rows = [
        ("pairs", f"{effects.num_sentences:,}" + (f"; {effects.left_out:,} left out" if effects.left_out else "")),
        ("log-probability", f"{effects.log_prob:.4f} on average of {tokens}, with every head"),
    ]
    if bleu is not None:
        rows.append(("BLEU", f"{bleu.baseline:.2f} with every head, {bleu.signature}"))
    click.echo(f"{columns(rows)}\n\n{columns(table, right={1, 3, 4, 5})}\n\n{_conclusion(effects)}")
    for warning in effects.warnings:
        click.echo(f"warning: {warning}", err=True)


def _effect_row(effect: "HeadEffect") -> list[str]:
    change, bleu = effect.change, effect.bleu
    interval = "" if change.low is None else f"{change.low:+.5f} to {change.high:+.5f}"
    row = [effect.name, f"{change.value:+.5f}", interval]
    if bleu is not None:
        row += [f"{bleu.system:.2f}", f"{bleu.system - bleu.baseline:+.2f}", f"{bleu.p_value:.4f}"]
    return row


def _conclusion(effects: "HeadEffects") -> str:
    sure = [effect for effect in effects.heads if effect.change.excludes_zero]
    worse = sum(effect.change.value < 0 for effect in sure)
    return (
        f"of {count(len(effects.heads), 'head')}, each switched off alone, {worse} make the targets less probable, "
        f"{len(sure) - worse} more, {len(effects.heads) - len(sure)} neither for sure"
    )

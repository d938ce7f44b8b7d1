"""``headway evaluate``: a model, or translations that lie in a file, scored against references."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from headway.cli.computing import computing_options, given_computing_options, load_translator
from headway.cli.evaluate_tasks import TASKS, check_only, evaluate_task
from headway.cli.options import tag_option
from headway.cli.outputs import check_output
from headway.cli.reports import columns
from headway.cli.search_options import given_search_options, search_options
from headway.corpus.language import check_language
from headway.errors import MetricError
from headway.translate.compute import Compute
from headway.translate.decoding import Decoding

if TYPE_CHECKING:
    from headway.metrics.paper_bleu import PaperBleu
    from headway.metrics.translation import MetricScore, PairedComparison
    from headway.translate.evaluate import Evaluation

TRANSLATION, PARSING = "translation", "parsing"
_FILE = click.Path(path_type=Path, allow_dash=True)
_OF_PARSING = ("task", "hypothesis", "reference", "baseline", "parameters", "reference_tags", "as_evalb", "as_json")


@click.command("evaluate")
@click.option(
    "--task",
    type=click.Choice([TRANSLATION, PARSING, *TASKS]),
    default=TRANSLATION,
    show_default=True,
    help="What is measured. parsing: trees in brackets, one a line, against those of a treebank; the other tasks take "
    "-m and --reference, and classification --baseline.",
)
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The model folder to translate --source with; of several the mean probabilities count.",
)
@click.option("--source", type=_FILE, help="Text to translate, one sentence a line; with -m.")
@click.option("--hypothesis", type=_FILE, help="Translations to score, in place of -m and --source.")
@click.option("--reference", type=_FILE, required=True, help="The right translations, line by line.")
@click.option("--baseline", type=_FILE, help="A second output of the same sentences, for a paired test.")
@click.option("--target-language", help="Decides BLEU's tokenizer.  [default: the model's]")
@click.option("--tokenize", default="auto", show_default=True, help="BLEU's tokenizer: auto, none, 13a, intl, zh ...")
@click.option("--lowercase", is_flag=True, help="BLEU and chrF without regard to case.")
@click.option(
    "--paper-bleu",
    is_flag=True,
    help="Also BLEU by the paper's protocol: tokenised lines, compounds split on both sides, multi-bleu.",
)
@search_options
@tag_option
@computing_options
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Padded source tokens times beam computed at once.")
@click.option("--output", type=click.Path(path_type=Path), help="Keep the translations in this file; with -m.")
@click.option("--parameters", metavar="NAME|FILE", help="Of parsing: collins, new, or a .prm file.  [default: collins]")
@click.option("--reference-tags", is_flag=True, help="Of parsing: put the references' tags on the trees first.")
@click.option("--evalb", "as_evalb", is_flag=True, help="Of parsing: print what EVALB prints, a row a sentence.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(  # noqa: PLR0913 - click gives one argument an option
    *,
    task: str,
    models: tuple[Path, ...],
    source: Path | None,
    hypothesis: Path | None,
    reference: Path,
    baseline: Path | None,
    target_language: str | None,
    tokenize: str,
    lowercase: bool,
    paper_bleu: bool,
    decoding: Decoding,
    tag: str | None,
    compute: Compute,
    batch_tokens: int | None,
    output: Path | None,
    parameters: str | None,
    reference_tags: bool,
    as_evalb: bool,
    as_json: bool,
) -> None:
    """Score translations with sacreBLEU: BLEU, chrF and TER with signatures and 95 % intervals.

    Either a model translates (-m FOLDER --source F --reference F; perplexity is told too), or a file of
    translations is scored (--hypothesis F --reference F). Compressed files are read as they are.

    With --task parsing, labelled F1 of trees (--hypothesis F --reference F), by EVALB's rules.
    With another --task another kind of model is measured on the text of --reference.
    """
    if task == PARSING:
        if hypothesis is None:
            raise click.UsageError(
                "--task parsing scores trees that lie in a file; write them with headway parse, and name it with "
                "--hypothesis."
            )
        check_only(_OF_PARSING, PARSING)
        from headway.cli.evaluate_trees import evaluate_trees

        evaluate_trees(
            hypothesis,
            reference,
            baseline=baseline,
            parameters=parameters,
            reference_tags=reference_tags,
            as_evalb=as_evalb,
            as_json=as_json,
        )
        return
    if parameters is not None or reference_tags or as_evalb:
        raise click.UsageError(
            "--parameters, --reference-tags and --evalb would have no effect without --task parsing."
        )
    if task != TRANSLATION:
        evaluate_task(
            task,
            models,
            reference=reference,
            device=compute.device,
            threads=compute.threads,
            batch_tokens=batch_tokens,
            baseline=baseline,
            as_json=as_json,
        )
        return
    only_model = {
        "--source": source,
        **dict.fromkeys(given_search_options(), True),
        "--tag": tag,
        **dict.fromkeys(given_computing_options(), True),
        "--batch-tokens": batch_tokens,
        "--output": output,
    }
    _check_options(models, hypothesis, only_model)
    check_language(target_language or "", name="--target-language")
    files = {"source": source, "hypothesis": hypothesis, "reference": reference, "baseline": baseline}
    check_output(output, {f"--{side}": path for side, path in files.items()})
    lines = _read({side: path for side, path in files.items() if path is not None})
    if not models:
        target_language = target_language or ""
        result = _score(lines, target_language, tokenize, lowercase=lowercase)
    else:
        from headway.translate.evaluate import evaluate

        if compute.precision == "auto":  # what is measured is the model, not what 8 bits make of it
            compute = replace(compute, precision="float32")
        translator = load_translator(models, compute, tag=tag)
        target_language = target_language or translator.target_language
        if sys.stderr.isatty():
            click.echo(f"translating {len(lines['source']):,} lines ...", err=True)
        with _writer(output) as writer:  # opened first: a file that cannot be written is told before the work
            result = evaluate(
                translator,
                lines["source"],
                lines["reference"],
                target_language=target_language,
                tokenize=tokenize,
                lowercase=lowercase,
                decoding=decoding,
                batch_tokens=batch_tokens,
            )
            if writer is not None:
                writer.writelines(f"{line}\n" for line in result.translations)
    comparison = None
    if baseline is not None:
        comparison = _compare(lines, result, target_language, tokenize, lowercase=lowercase)
    protocol = _paper_bleu(lines, result) if paper_bleu else None
    _show(result, comparison, protocol, as_json=as_json)


def _paper_bleu(lines: dict[str, list[str]], result: "Evaluation") -> "PaperBleu":
    """Score by the paper's protocol; text that does not look tokenised is told of, for the score compares with none."""
    from headway.metrics.paper_bleu import paper_bleu
    from headway.metrics.tokenised import looks_tokenised

    if not looks_tokenised(lines["reference"]):
        click.echo(
            "warning: --paper-bleu is of text that Moses tokenised, as newstest2014.tok.de is, and the reference does "
            "not look tokenised: this score compares with nothing. Tokenise both files first.",
            err=True,
        )
    return paper_bleu(result.translations, lines["reference"])


def _check_options(models: Sequence[Path], hypothesis: Path | None, only_model: Mapping[str, object]) -> None:
    if bool(models) == (hypothesis is not None):
        found = "both" if models else "neither"
        raise click.UsageError(
            f"found {found} of -m and --hypothesis; wanted one: -m FOLDER --source F to translate and score, "
            f"or --hypothesis F to score what is translated already."
        )
    if models and only_model["--source"] is None:
        raise click.UsageError("-m needs --source: the text to translate.")
    given = [name for name, value in only_model.items() if value is not None]
    if not models and given:
        raise click.UsageError(f"{', '.join(given)} would have no effect with --hypothesis; leave it out, or give -m.")
    if str(only_model["--output"]) == "-":
        raise click.UsageError("--output - would mix with the scores; name a file, or use headway translate.")


def _read(files: dict[str, Path]) -> dict[str, list[str]]:
    """Read every file, and refuse those whose counts differ from the reference's."""
    from headway.corpus.lines import name_of, read_lines

    piped = [f"--{side}" for side, path in files.items() if str(path) == "-"]
    if len(piped) > 1:
        raise click.UsageError(f"{' and '.join(piped)} are both standard input, which can be read once.")
    lines = {side: list(read_lines(path)) for side, path in files.items()}
    wanted = len(lines["reference"])
    for side, path in files.items():
        if len(lines[side]) != wanted:
            raise MetricError(
                f"cli/evaluate: {name_of(path)} has {len(lines[side]):,} lines, {name_of(files['reference'])} has "
                f"{wanted:,}; scoring needs equal counts. Restore the original files; the longer one is never cut."
            )
    if not wanted:
        raise MetricError(f"cli/evaluate: {name_of(files['reference'])} has 0 lines; at least 1 is wanted to score.")
    return lines


def _writer(output: Path | None) -> AbstractContextManager[TextIO | None]:
    from headway.corpus.lines import open_writer

    return nullcontext() if output is None else open_writer(output)


def _score(lines: dict[str, list[str]], target_language: str, tokenize: str, *, lowercase: bool) -> "Evaluation":
    from headway.metrics.translation import score_translations
    from headway.translate.evaluate import Evaluation

    scores = score_translations(
        lines["hypothesis"],
        lines["reference"],
        target_language=target_language,
        tokenize=tokenize,
        lowercase=lowercase,
    )
    return Evaluation(tuple(lines["hypothesis"]), scores, warnings=scores.warnings)


def _compare(
    lines: dict[str, list[str]], result: "Evaluation", target_language: str, tokenize: str, *, lowercase: bool
) -> "PairedComparison":
    from headway.metrics.translation import compare_translations

    return compare_translations(
        lines["baseline"],
        result.translations,
        lines["reference"],
        target_language=target_language,
        tokenize=tokenize,
        lowercase=lowercase,
    )


def _show(
    result: "Evaluation",
    comparison: "PairedComparison | None",
    protocol: "PaperBleu | None",
    *,
    as_json: bool,
) -> None:
    if as_json:
        table = result.to_dict()
        if protocol is not None:
            table["paper_bleu"] = asdict(protocol)
        if comparison is not None:
            table["comparison"] = comparison.to_dict()
        click.echo(json.dumps(table, indent=2, ensure_ascii=False))
        return
    click.echo(_scores_text(result))
    if protocol is not None:
        click.echo(f"\nthe paper's BLEU: {protocol.value:.2f}\nBLEU: {protocol.signature}")
    if comparison is not None:
        click.echo("\n" + _comparison_text(comparison))
    warnings = [*result.warnings, *(comparison.warnings if comparison is not None else ())]
    for warning in dict.fromkeys(warnings):
        click.echo(f"warning: {warning}", err=True)


def _scores_text(result: "Evaluation") -> str:
    scores = result.scores
    present = [score for score in (scores.bleu, scores.chrf, scores.ter) if score is not None]
    rows = [("", "score", "95 % interval"), *(_score_row(score) for score in present)]
    rows.append(("length ratio", f"{scores.length_ratio:.3f}", ""))
    if result.perplexity is not None:
        rows.append(("perplexity", f"{result.perplexity:.2f}", f"of {result.num_tokens:,} tokens"))
    rows.append(("sentences", f"{scores.num_sentences:,}", ""))
    return "\n".join([columns(rows, right={1}), "", *_signatures(present)])


def _score_row(score: "MetricScore") -> tuple[str, str, str]:
    interval = "" if score.low is None else f"{score.low:.2f} to {score.high:.2f}"
    return score.name, f"{score.value:.2f}", interval


def _signatures(scores: "Sequence[MetricScore]") -> list[str]:
    return [f"{score.name}: {score.signature}" for score in scores]


def _comparison_text(comparison: "PairedComparison") -> str:
    rows = [("paired test", "baseline", "this", "difference", "p")]
    rows.extend(
        (
            metric.name,
            f"{metric.baseline:.2f}",
            f"{metric.system:.2f}",
            f"{metric.system - metric.baseline:+.2f}",
            f"{metric.p_value:.4f}",
        )
        for metric in comparison.metrics
    )
    note = f"p: how often chance alone gives a difference this large, by {comparison.num_bootstrap:,} resamples."
    return columns(rows, right={1, 2, 3, 4}) + "\n" + note

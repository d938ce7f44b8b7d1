"""The card of a model folder: what it translates, what it was trained on, how well it does, and its limits."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.config.architecture import SEQUENTIAL
from headway.config.departure import departures
from headway.config.schema import RunConfig
from headway.config.toml import to_toml
from headway.folder.contents import FolderConfig
from headway.folder.one_sided import OneSided, one_sided
from headway.folder.parser_card import ParsedSet, does_of, limits_of, quality_of, usage_of
from headway.metrics.translation import MetricScore, TranslationScores

KINDS = {"transformer": "A Transformer", "recurrent": "A recurrent", "convolutional": "A convolutional"}


@dataclass(frozen=True, slots=True)
class CorpusCounts:
    """What happened to every pair that was read; the numbers of a corpus add up.

    ``dropped``: filter -> pairs it took. ``overlap``: test or validation set -> its sentences that training text holds.
    """

    pairs_read: int
    pairs_kept: int
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    overlap: Mapping[str, int] = field(default_factory=dict[str, int])
    validation_pairs: int = 0
    test_pairs: int = 0


@dataclass(frozen=True, slots=True)
class ScoredSet:
    """One set of sentences and the scores on it; ``perplexity`` is per token, None where it was not computed."""

    name: str
    scores: TranslationScores
    perplexity: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A text, and one figure of a model that does not translate; ``of`` says over what."""

    name: str
    what: str
    value: str
    of: str


def write_card(
    config: FolderConfig,
    run: RunConfig,
    *,
    num_parameters: int,
    corpus: CorpusCounts | None = None,
    scored: Sequence[ScoredSet | ParsedSet] = (),
    measured: Sequence[Measured] = (),
    versions: Mapping[str, str] | None = None,
    folder_name: str = "FOLDER",
) -> str:
    """Return the card as Markdown. ``versions``: library -> its version; ``folder_name`` stands in the commands."""
    words = one_sided(config)
    sections = [
        _opening(config, run, words, num_parameters),
        _usage(config, folder_name) if words is None else words.usage(folder_name),
        _figures(measured) if measured else _quality(scored),
        _data(corpus),
        _training(config, run, versions or {}),
        _limits(config, is_measured=bool(scored)) if words is None else words.limits,
    ]
    return "\n\n".join(sections) + "\n"


def _opening(config: FolderConfig, run: RunConfig, words: OneSided | None, num_parameters: int) -> str:
    model = config.model
    source, target = config.source_language or "source", config.target_language or "target"
    title, does = f"Translation from {source} to {target}", f"translates {source} to {target}"
    if config.parsing is not None:
        title, does = "Constituency parser", does_of(config.parsing)
    own = f"{KINDS.get(model.architecture)} encoder-decoder that {does}"
    if words is not None:
        title, own = words.title, words.what
    lines = [f"# {_inline(run.title) or title}", "", f"{own}, made with Headway {config.headway_version}."]
    if run.note:
        lines += ["", _inline(run.note)]
    left = "; ".join(departures(model).values())
    both = f"{model.num_encoder_layers} encoder and {model.num_decoder_layers} decoder layers"
    layers = both if words is None else words.layers
    vocabulary = f"{model.vocab_size:,} shared" if config.text.shared_vocabulary else _separate(config)
    sizes = "" if model.architecture in SEQUENTIAL else f", d_ff {model.d_ff:,}, {model.num_heads} heads"
    return "\n".join(
        [
            *lines,
            "",
            f"- parameters: {num_parameters:,}",
            f"- shape: {layers}, d_model {model.d_model:,}{sizes}",
            *([f"- departures from the paper: {left}"] if left else []),
            f"- vocabulary: {vocabulary} tokens",
            *([_decoding(config)] if words is None else []),
        ]
    )


def _decoding(config: FolderConfig) -> str:
    return (
        f"- decoding: beam {config.search.beam_size}, length penalty {config.search.length_penalty:g}, "
        f"at most {config.search.max_extra_tokens} tokens more than the source"
    )


def _separate(config: FolderConfig) -> str:
    source_size = config.model.source_vocab_size or config.model.vocab_size
    return f"{source_size:,} source and {config.model.vocab_size:,} target"


def _usage(config: FolderConfig, folder_name: str) -> str:
    name = shlex.quote(folder_name)
    commands = [
        f"echo 'One sentence a line.' | headway translate -m {name}",
        f"headway evaluate -m {name} --source test.source --reference test.target",
        f"headway describe {name}",
    ]
    if config.parsing is not None:
        commands = usage_of(config.parsing, folder_name)
    return "\n".join(["## Use", "", "```sh", *commands, "```"])


def _quality(sets: Sequence[ScoredSet | ParsedSet]) -> str:
    lines = ["## Quality", ""]
    if not sets:
        return "\n".join([*lines, "Not measured: no test or validation files were given."])
    scored = [entry for entry in sets if isinstance(entry, ScoredSet)]
    if not scored:
        return "\n".join([*lines, *quality_of([entry for entry in sets if isinstance(entry, ParsedSet)])])
    lines += [
        "95 % intervals are sacreBLEU's bootstrap. TER: lower is better. Perplexity is per token of this vocabulary.",
        "",
        "| set | sentences | BLEU | chrF | TER | length ratio | perplexity |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for entry in scored:
        scores = entry.scores
        ter = _with_interval(scores.ter) if scores.ter else "-"
        perplexity = "-" if entry.perplexity is None else f"{entry.perplexity:.2f}"
        lines.append(
            f"| {_cell(entry.name)} | {scores.num_sentences:,} | {_with_interval(scores.bleu)} | "
            f"{_with_interval(scores.chrf)} | {ter} | {scores.length_ratio:.3f} | {perplexity} |"
        )
    signatures = {
        f"{score.name}: `{score.signature}`"
        for entry in scored
        for score in (entry.scores.bleu, entry.scores.chrf, entry.scores.ter)
        if score
    }
    lines += ["", "Signatures:", "", *(f"- {signature}" for signature in sorted(signatures))]
    warnings = list(dict.fromkeys(warning for entry in scored for warning in entry.scores.warnings))
    if warnings:
        lines += ["", "Warnings:", "", *(f"- {_inline(warning)}" for warning in warnings)]
    return "\n".join(lines)


def _figures(measured: Sequence[Measured]) -> str:
    lines = ["## Quality", "", "| text | measure | value | of |", "|---|---|---:|---|"]
    lines += [
        f"| {_cell(each.name)} | {_cell(each.what)} | {_cell(each.value)} | {_cell(each.of)} |" for each in measured
    ]
    return "\n".join(lines)


def _with_interval(score: MetricScore) -> str:
    if score.low is None or score.high is None:
        return f"{score.value:.2f}"
    return f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"


def _data(corpus: CorpusCounts | None) -> str:
    lines = ["## Data", ""]
    if corpus is None:
        return "\n".join([*lines, "No counts were kept."])
    lines += ["| pairs | count |", "|---|---:|", f"| read | {corpus.pairs_read:,} |"]
    lines += [f"| dropped: {_cell(name)} | {count:,} |" for name, count in corpus.dropped.items()]
    lines += [
        f"| trained on | {corpus.pairs_kept:,} |",
        f"| validation | {corpus.validation_pairs:,} |",
        f"| test | {corpus.test_pairs:,} |",
    ]
    if corpus.overlap:
        lines += ["", "Sentences of other sets that the training text holds too:", ""]
        lines += [f"- {_inline(name)}: {count:,}" for name, count in corpus.overlap.items()]
    return "\n".join(lines)


def _training(config: FolderConfig, run: RunConfig, versions: Mapping[str, str]) -> str:
    training = config.training
    epochs = f"{training.epochs:.2f} epochs over " if training.epochs else "on "  # 0: not known
    duration = f"{_duration(training.seconds)}, " if training.seconds else ""
    recipe = to_toml(run).strip()
    fence = "```"
    while fence in recipe:
        fence += "`"
    lines = [
        "## Training",
        "",
        f"{training.steps:,} steps, {epochs}{training.pairs:,} pairs, {duration}"
        f"precision {training.precision or 'not known'}, seed {training.seed}.",
    ]
    if training.parent:
        lines += ["", f"It began with the weights of the model in {_inline(training.parent)}."]
    if versions:
        lines += [
            "",
            "Versions: " + ", ".join(f"{_inline(name)} {version}" for name, version in versions.items()) + ".",
        ]
    return "\n".join([*lines, "", f"{fence}toml", recipe, fence])


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"


def _limits(config: FolderConfig, *, is_measured: bool) -> str:
    lines = ["## Limits", ""]
    lines += limits_of(config.max_source_tokens) if config.parsing is not None else _limits_of_text(config)
    if not is_measured:
        lines.append("- Its quality has not been measured.")
    return "\n".join(lines)


def _limits_of_text(config: FolderConfig) -> list[str]:
    return [
        f"- The longest source trained on has {config.max_source_tokens:,} tokens; "
        "longer input is split into sentences.",
        "- Text unlike the training text (its subjects, spelling, language) is translated worse, and nothing says so.",
        "- A translation may be fluent and wrong: numbers, names and negations deserve a look.",
    ]


def _inline(text: str) -> str:
    """Return text as one line, with what Markdown could take for HTML made plain."""
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _inline(text).replace("|", "\\|")

"""``headway describe``: a model's configuration and exact sizes, before or after it is trained, without torch."""

import difflib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from headway.cli.options import overrides_option
from headway.cli.reports import columns
from headway.config.architecture import SEQUENTIAL
from headway.config.departure import departures
from headway.config.learning_rate import peak_rate
from headway.config.load import load, load_preset, recipe_names
from headway.config.model_config import ModelConfig
from headway.config.presets import BIG, PRESETS
from headway.config.schema import RunConfig
from headway.config.toml import to_toml
from headway.errors import ConfigError
from headway.model.size import (
    BIG_ERRATUM,
    MultiplyAdds,
    ParameterCounts,
    TrainingMemory,
    cache_bytes_per_token,
    count_multiply_adds,
    count_parameters,
    training_memory,
)


@dataclass(frozen=True)
class Subject:
    """What is described: a preset, a recipe or a trained model's folder, which has no training section of its own."""

    name: str
    kind: str
    model: ModelConfig
    run: RunConfig | None
    toml: str


@dataclass(frozen=True)
class Sizes:
    """What is told of a subject; ``memory`` and ``peak`` only where there is a recipe."""

    counts: ParameterCounts
    cost: MultiplyAdds
    length: int
    memory: TrainingMemory | None
    microbatch_tokens: int
    peak: float | None


@click.command("describe")
@click.argument("subject", metavar="|".join((*PRESETS, "RECIPE", "FOLDER")))
@overrides_option
@click.option(
    "--length",
    type=click.IntRange(min=0),
    default=27,
    show_default=True,
    help="Tokens of a sentence, on either side, for which multiply-adds are counted.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(subject: str, *, overrides: tuple[str, ...], length: int, as_json: bool) -> None:
    """Tell a model's exact parameters, multiply-adds, cache and training memory.

    A preset's name or a packaged recipe's comes before a folder of that name; ./base is the folder.
    """
    found = _find(subject, overrides)
    sizes = _measure(found, length)
    click.echo(json.dumps(_facts(found, sizes), indent=2, ensure_ascii=False) if as_json else _text(found, sizes))


def _find(subject: str, overrides: tuple[str, ...]) -> Subject:
    if subject in PRESETS:
        run = load_preset(subject, overrides=overrides)
        return Subject(subject, "preset", run.model, run, _sections(to_toml(run), "model", "train", "search"))
    if subject not in recipe_names() and Path(subject).is_dir():
        from headway.folder.contents import ModelFolder

        if overrides:
            raise ConfigError(
                f"cli/describe: {subject} is a trained model, which --set {overrides[0]} cannot change. "
                "Describe its recipe, or take --set away."
            )
        config = ModelFolder.open(Path(subject)).config
        as_run = RunConfig.model_construct(model=config.model, search=config.search)  # unchecked: it is not to be run
        return Subject(subject, "folder", config.model, None, _sections(to_toml(as_run), "model", "search"))
    _suggest_preset(subject)
    run = load(subject, overrides=overrides)
    return Subject(subject, "recipe", run.model, run, to_toml(run))


def _suggest_preset(subject: str) -> None:
    """Where there is neither a file nor a packaged recipe, name the nearest preset; ``load`` knows of recipes only."""
    near = difflib.get_close_matches(subject, (*PRESETS, *recipe_names()), n=1)
    if near and near[0] in PRESETS and not Path(subject).exists():
        raise ConfigError(
            f"cli/describe: {subject} is no preset, recipe, file or folder; the nearest preset is {near[0]}. "
            f"Give one of {', '.join(PRESETS)}, a packaged recipe's name, or a path."
        )


def _sections(toml: str, *names: str) -> str:
    """Keep only some sections of what ``to_toml`` wrote."""
    blocks = toml.rstrip().split("\n\n")
    return "\n\n".join(block for block in blocks if block.startswith(tuple(f"[{name}]" for name in names)))


def _measure(subject: Subject, length: int) -> Sizes:
    model, run = subject.model, subject.run
    counts = count_parameters(model)
    cost = count_multiply_adds(model, source_length=length, target_length=length)
    if run is None:
        return Sizes(counts, cost, length, None, 0, None)
    tokens = run.train.microbatch_tokens or run.train.batch_tokens
    peak = peak_rate(model.d_model, run.train.warmup_steps, given=run.train.learning_rate)
    memory = training_memory(
        model,
        microbatch_tokens=tokens,
        value_bytes=2 if run.train.precision == "bf16" else 4,
        length=length,
        passes=1 if run.train.consistency == "none" else 2,
        optimizer=run.train.optimizer,
        moving_average=run.train.moving_average is not None,
    )
    return Sizes(counts, cost, length, memory, tokens, peak)


def _facts(subject: Subject, sizes: Sizes) -> dict[str, object]:
    """Gather the JSON object; its keys are stable."""
    model, cost, memory = subject.model, sizes.cost, sizes.memory
    facts: dict[str, object] = {
        "name": subject.name,
        "kind": subject.kind,
        "parameters": sizes.counts.total,
        "parameters_without_embeddings": sizes.counts.non_embedding,
        "parameters_by_component": asdict(sizes.counts),
        "multiply_adds": {
            "source_token": cost.source_token,
            "target_token": cost.target_token,
            "by_component": asdict(cost),
            "source_length": sizes.length,
            "target_length": sizes.length,
        },
        "cache_bytes_per_token": {
            "float16": cache_bytes_per_token(model, value_bytes=2),
            "float32": cache_bytes_per_token(model, value_bytes=4),
        },
        "departures": departures(model),
        "notes": _notes(model),
    }
    if memory is not None:
        tokens = sizes.microbatch_tokens
        facts["training_memory"] = {**asdict(memory), "total": memory.total, "microbatch_tokens": tokens}
        facts["peak_learning_rate"] = sizes.peak
    facts["config"] = {"model": model.model_dump()} if subject.run is None else subject.run.model_dump()
    return facts


def _notes(model: ModelConfig) -> list[str]:
    """Give the erratum where this is the paper's big model, whatever its vocabulary, dropout and attention biases."""
    free = {"vocab_size": BIG.vocab_size, "dropout": BIG.dropout, "attention_bias": BIG.attention_bias}
    return [BIG_ERRATUM] if model.model_copy(update=free) == BIG else []


def _text(subject: Subject, sizes: Sizes) -> str:
    counts, cost, length = sizes.counts, sizes.cost, sizes.length
    cache = cache_bytes_per_token(subject.model)
    is_kept = subject.model.architecture not in SEQUENTIAL
    kept = "a target token a hypothesis, a source token a sentence" if is_kept else "a source token a sentence"
    left = departures(subject.model)
    rows = [
        ("parameters", f"{counts.total:,}", ""),
        *((f"  {name.replace('_', ' ')}", f"{number:,}", "") for name, number in asdict(counts).items() if number),
        ("  without embeddings", f"{counts.non_embedding:,}", ""),
        ("multiply-adds a source token", f"{cost.source_token:,}", f"encoder, cross keys and values; {length} tokens"),
        ("multiply-adds a target token", f"{cost.target_token:,}", f"decoder, softmax; {length} + {length} tokens"),
        ("cache bytes a token", f"{cache:,}", f"float16; {kept}"),
        *_training_rows(subject, sizes),
        ("departures from the paper", str(len(left) or "none"), ""),
        *(("  " + name.replace("_", " "), "", what) for name, what in left.items()),
    ]
    notes = [f"\nNote: {note}" for note in _notes(subject.model)]
    return "\n".join(
        [f"# {subject.kind} {subject.name}", "", subject.toml.rstrip(), "", columns(rows, right={1}), *notes]
    )


def _training_rows(subject: Subject, sizes: Sizes) -> list[tuple[str, str, str]]:
    if subject.run is None or sizes.memory is None:
        return []
    train = subject.run.train
    numbers = "bf16" if train.precision == "bf16" else "float32"
    how = f"estimate; {numbers}, microbatches of {sizes.microbatch_tokens:,} tokens"
    parts = asdict(sizes.memory).items()
    return [
        ("training memory", _amount(sizes.memory.total), how),
        *((f"  {part}", _amount(number), "") for part, number in parts),
        ("peak learning rate", f"{sizes.peak:.5e}", f"at step {train.warmup_steps:,}"),
    ]


def _amount(number: int) -> str:
    return f"{number / 1e9:,.2f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"

"""The runs on text that claims compare: one recipe, and what each run has otherwise; trained once for all claims."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from headway.checkpoint.run_folder import RunFolder
from headway.config.load import load
from headway.config.schema import RunConfig
from headway.data.prepare import input_digest
from headway.demo.corpus import write_corpus
from headway.demo.phrases import SOURCE, generate, split
from headway.paper.events import PaperEvent
from headway.paper.study import Extent, Planned, Rows, Workshop
from headway.paper.text_counts import Counts, count_text, load_model
from headway.paper.trained_row import NEVER, begins_anew
from headway.paper.work import Making, Values
from headway.train.events import Interrupted, Notice, Stage
from headway.train.run import train

BASE = "base"
# name -> what a run has otherwise than the recipe, which has the paper's choices
VARIANTS: dict[str, tuple[str, ...]] = {
    BASE: (),
    "unsmoothed": ("train.label_smoothing=0.0",),
    "unshared": ("model.embedding_sharing=none",),
    "separate": ("text.shared_vocabulary=false", "model.embedding_sharing=target"),
}
TARGET = "de"
TEXT_RECIPE = "table2-transformer"  # of Multi30k, by the paper's own choices
NUM_AVERAGED = 5  # as the paper's base models
CORPUS_SEED = 2026
STEPS_A_MINUTE = 85  # of one core with the model of Multi30k (docs/results.md), by which runs of minutes are shaped


def plan(workshop: Workshop, variants: Sequence[str]) -> list[Planned]:
    """The rows of some variants, every seed."""
    planned: list[Planned] = []
    for seed in workshop.extent.seeds(1):
        for variant in variants:
            config = recipe(workshop.extent, variant, seed)
            settings = {"recipe": config.model_dump(exclude_defaults=True), "data": _data(workshop.extent, config)}
            name = row_name(variant, seed)
            make = lambda name=name, config=config: _make(workshop, name, config)  # noqa: E731 - one a row
            planned.append(Planned(name, settings, make))
    return planned


def row_name(variant: str, seed: int) -> str:
    """The name of a run's row and folder."""
    return f"text-{variant}-seed{seed}"


def counts_of(rows: Rows, variant: str, seeds: range, *, weights: str = "average") -> list[Counts]:
    """What each seed's run made of the validation text, by the mean of the last weights or by the ``last`` alone."""
    return [np.array(rows[row_name(variant, seed)][weights], dtype=np.float64) for seed in seeds]


def recipe(extent: Extent, variant: str, seed: int) -> RunConfig:
    """What a run is: Multi30k's recipe where there is a data folder, the demo's where there is none."""
    steps = extent.num_steps(2000, 4)
    overrides = [f"train.seed={seed}", "train.best_by=loss", f"train.keep_last={NUM_AVERAGED}"]
    overrides += ["train.average=last", f"train.average_count={NUM_AVERAGED}"]
    if extent.threads is not None:
        overrides.append(f"train.threads={extent.threads}")
    if extent.minutes is not None and extent.steps is None:  # at some 85 steps a minute, as Multi30k's model has
        steps = max(20, round(STEPS_A_MINUTE * extent.minutes))
        overrides += [f"train.max_minutes={extent.minutes}", f"train.validate_every={NEVER}"]
        overrides += [f"train.warmup_steps={min(1000, steps // 4)}", f"train.checkpoint_every={steps // 20}"]
    else:
        overrides += [
            "train.max_minutes=",
            f"train.max_steps={steps}",
            f"train.warmup_steps={max(1, min(1000, steps // 4))}",
        ]
        overrides += [f"train.checkpoint_every={max(1, steps // 20)}", f"train.validate_every={steps}"]
    if extent.quick:
        overrides += ["model.vocab_size=300", "model.d_model=16", "model.d_ff=32", "model.num_encoder_layers=1"]
        overrides += ["model.num_decoder_layers=1", "model.num_heads=2", "train.batch_tokens=512"]
        overrides += ["train.validation_sentences=3", "search.beam_size=2"]
    if extent.data_dir is None:
        overrides += [f"data.{side}_language={code}" for side, code in (("source", SOURCE), ("target", TARGET))]
    return load("demo" if extent.data_dir is None else TEXT_RECIPE, overrides=[*overrides, *VARIANTS[variant]])


def corpus_notes(extent: Extent) -> tuple[str, ...]:
    """What the runs were trained on and for how long, for the notes of a table."""
    text = f"{_num_pairs(extent):,} pairs written from CLDR data" if extent.data_dir is None else TEXT_RECIPE
    until = (
        f"{extent.minutes:g} minutes" if extent.minutes and not extent.steps else f"{extent.num_steps(2000, 4):,} steps"
    )
    seeds = len(extent.seeds(1))
    return (
        f"Trained on {text} for {until}, {seeds} seed{'s' if seeds > 1 else ''}; weights are the mean of the last "
        f"{NUM_AVERAGED} checkpoints; scores are of the validation text.",
        "Intervals are of other sentences, drawn from the same ones for both sides (paired bootstrap), and tell of "
        "these trainings; from 3 seeds on they are over seeds, and tell of other trainings too.",
    )


def _num_pairs(extent: Extent) -> int:
    return extent.choose(20_000, 200)


def _data(extent: Extent, config: RunConfig) -> Values:
    if extent.data_dir is not None:
        return {"digest": input_digest(config, extent.data_dir)}
    return {"pairs": _num_pairs(extent), "seed": CORPUS_SEED}


def _corpus(workshop: Workshop) -> Iterator[PaperEvent]:
    """Write the corpus where no data folder is given."""
    if workshop.extent.data_dir is not None:
        return
    num_pairs = _num_pairs(workshop.extent)
    yield Stage(f"writing {num_pairs:,} pairs from CLDR data, {SOURCE} to {TARGET}")
    held_out = num_pairs // 20
    phrases = generate(TARGET, num_pairs=num_pairs, seed=CORPUS_SEED)
    parts = split(phrases, seed=CORPUS_SEED, validation=held_out, test=held_out)
    write_corpus(_corpus_folder(workshop), parts, target=TARGET)


def _corpus_folder(workshop: Workshop) -> Path:
    return workshop.work.path / f"corpus-{_num_pairs(workshop.extent)}"


def _make(workshop: Workshop, name: str, config: RunConfig) -> Making:
    yield from _corpus(workshop)
    data_dir, out_dir = workshop.extent.data_dir or _corpus_folder(workshop), workshop.work.run_folder(name)
    fresh = begins_anew(config, out_dir, digest=input_digest(config, data_dir))
    if fresh:
        yield Notice(f"{out_dir} holds a run with another recipe, other data or a longer budget; it begins anew")
    for event in train(config, data_dir, out_dir=out_dir, fresh=fresh, should_stop=workshop.should_stop):
        yield event
        if isinstance(event, Interrupted):
            return None
    run = RunFolder.open(out_dir)
    steps = run.usual()
    yield Stage("scoring the mean and the last weights")
    return {
        "steps": steps,
        "minutes": run.progress.seconds / 60,
        "threads": run.progress.threads,
        "precision": run.progress.precision,
        "average": count_text(run, load_model(run, steps)).tolist(),
        "last": count_text(run, load_model(run, steps[-1:])).tolist(),
    }

"""The demo: a corpus written from CLDR, a translator trained on it, and how many unseen phrases it gets right."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.checkpoint.run_folder import RECIPE_FILE
from headway.config.load import load
from headway.demo.corpus import KINDS_FILE, write_corpus
from headway.demo.phrases import EXAMPLES, SOURCE, generate, split
from headway.demo.score import KindScore, exact_match_by_kind
from headway.errors import ConfigError
from headway.folder.contents import TRAINING_FOLDER
from headway.train.events import Event, Finished, Notice, Stage
from headway.train.run import never, recipe_changes, train
from headway.translate.evaluate import Evaluation
from headway.translate.translator import Translator

NUM_PAIRS, NUM_VALIDATION, NUM_TEST = 40_000, 500, 1_200
SEED = 2026  # of the corpus and its split: the kinds were designed on seed 1


@dataclass(frozen=True, slots=True)
class DemoDone:
    """The demo's end: exact matches by kind on unseen phrases, and a few translations (source, output)."""

    folder: Path
    kinds: tuple[KindScore, ...]
    examples: tuple[tuple[str, str], ...]


def demo(
    target: str, *, out_dir: Path, overrides: tuple[str, ...] = (), should_stop: Callable[[], bool] = never
) -> Iterator[Event | DemoDone]:
    """Write the corpus, train (or go on), evaluate, translate. The last event is DemoDone, unless interrupted."""
    yield Stage(f"writing {NUM_PAIRS:,} pairs from CLDR data, {SOURCE} to {target}")
    parts = split(generate(target, num_pairs=NUM_PAIRS, seed=SEED), seed=SEED, validation=NUM_VALIDATION, test=NUM_TEST)
    corpus = out_dir / "corpus"
    _check_folder(out_dir, corpus)
    write_corpus(corpus, parts, target=target)
    config = load("demo", overrides=(*_files(target), *overrides))
    changes = recipe_changes(config, out_dir / TRAINING_FOLDER / RECIPE_FILE)
    if changes:
        yield Notice(f"{out_dir} holds a demo with another {changes[0].key}; it begins anew")
    finished: Finished | None = None
    for event in train(config, corpus, out_dir=out_dir, fresh=bool(changes), should_stop=should_stop):
        yield event
        if isinstance(event, Finished):
            finished = event
    if finished is None or not isinstance(finished.evaluation, Evaluation):
        return
    kinds = exact_match_by_kind(parts.test, finished.evaluation.translations)
    sources = EXAMPLES[target]
    outputs = Translator.from_folder(out_dir).translate(sources)
    examples = tuple((source, output.text) for source, output in zip(sources, outputs, strict=True))
    yield DemoDone(out_dir, tuple(kinds), examples)


def _check_folder(out_dir: Path, corpus: Path) -> None:
    """Refuse a folder with a run that is no demo: beginning anew would remove it."""
    if (out_dir / TRAINING_FOLDER / RECIPE_FILE).exists() and not (corpus / KINDS_FILE).exists():
        raise ConfigError(
            f"demo/run: {out_dir} holds a run that is not a demo; wanted a new folder or that of an earlier demo. "
            "Name another with --out."
        )


def _files(target: str) -> list[str]:
    """The corpus' files as keys of the recipe."""
    files = [f"data.source_language={SOURCE}", f"data.target_language={target}"]
    for part in ("train", "validation", "test"):
        files += [f"data.{part}_source={part}.{SOURCE}", f"data.{part}_target={part}.{target}"]
    return files

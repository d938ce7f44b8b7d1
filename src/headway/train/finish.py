"""From a trained run to a model folder: choose the weights, measure them, write them with their card."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from headway import __version__
from headway.checkpoint.average import average_weights
from headway.checkpoint.keep import HIGHER_IS_BETTER, averaged_steps, best_steps, weights_path
from headway.checkpoint.run_folder import describe_folder, epochs_done
from headway.config.schema import RunConfig
from headway.data.prepare import Report
from headway.folder.card import CorpusCounts, Measured, ScoredSet, write_card
from headway.folder.contents import TrainingSummary, write_folder
from headway.folder.parser_card import ParsedSet
from headway.folder.weights import read_weights
from headway.metrics.accuracy import Accuracy
from headway.metrics.perplexity import HiddenTokens, WordPerplexity
from headway.model.build import export_weights, load_weights
from headway.model.language_model import LanguageModel
from headway.model.text_encoder import TextEncoder
from headway.train.distributed import ALONE
from headway.train.events import Event, Finished, Interrupted, Notice, Result, Stage
from headway.train.session import Session
from headway.train.validate import (
    session_classifier,
    session_generator,
    session_losses,
    session_parser,
    session_translator,
    validate,
)
from headway.translate.evaluate import Evaluation, evaluate
from headway.translate.evaluate_parser import ParserEvaluation, evaluate_parser


def finish(session: Session, out_dir: Path, *, should_stop: Callable[[], bool]) -> Iterator[Event]:
    """Average, keep whichever of average and best single step validates better, evaluate, write the folder.

    A request to stop is heard before averaging and before evaluating: all that is lost is done again.
    """
    group = session.group
    if group.any(should_stop()):
        yield Interrupted(session.progress.step)
        return
    session.settle()
    yield Stage("averaging")
    yield from _load_final_weights(session)
    if group.any(should_stop()):
        yield Interrupted(session.progress.step)
        return
    if not group.is_first:
        group.barrier()  # of several processes the first one ends the run
        return
    has_test = session.config.data.test_source and session.config.train.objective != "masked"
    part = "test" if has_test else "validation"
    yield Stage("evaluating")
    evaluation = _evaluate(session, part)
    yield Stage("writing the model folder")
    _write(session, out_dir, part=part, evaluation=evaluation)
    group.barrier()
    yield Finished(out_dir, evaluation, part)


def _load_final_weights(session: Session) -> Iterator[Event]:
    """The average's weights, or the best step's where those validate better; where the last alone is meant, that."""
    train, by = session.config.train, session.config.train.best_by
    validated = [scores for scores in session.progress.validations if scores.step in session.progress.kept_weights]
    (best_step,) = best_steps(validated, by, count=1)
    best = next(scores for scores in validated if scores.step == best_step)
    steps = averaged_steps(session.progress.kept_weights, session.progress.validations, train)
    if train.average == "last" and train.average_count == 1:
        load_weights(session.model, read_weights(weights_path(session.weights_folder, steps[0])))
        return
    if len(steps) > 1:
        load_weights(session.model, average_weights([weights_path(session.weights_folder, step) for step in steps]))
        average_value, best_value = getattr(validate(session).scores, by), getattr(best, by)
        is_better = average_value >= best_value if HIGHER_IS_BETTER[by] else average_value <= best_value
        kept = "average" if is_better else "single step"
        yield Notice(
            f"validation {by}: {average_value:.2f} averaged over steps {', '.join(map(str, steps))}; "
            f"{best_value:.2f} at the best single step, {best_step}. The {kept} is kept."
        )
        if is_better:
            return
    load_weights(session.model, read_weights(weights_path(session.weights_folder, best_step)))


def _evaluate(session: Session, part: str) -> Result:
    """How good the model is on a text, by what it is for. Only the first process asks."""
    sources, references = session.prepared.texts(part)
    model = session.whole_model()
    if isinstance(model, LanguageModel):
        return session_generator(session, model).measure(references)
    if isinstance(model, TextEncoder):
        if session.config.reads == "labelled":
            return session_classifier(session, model).measure(sources, references)
        found = session_losses(session, model, group=ALONE)
        return HiddenTokens(found.nll, found.accuracy)
    if session.config.is_parser:
        parser = session_parser(session, model)
        return evaluate_parser(parser, sources, references, corpus_tags=session.prepared.tags(part))
    return evaluate(
        session_translator(session, model),
        sources,
        references,
        target_language=session.config.data.target_language,
        tokenize=session.config.evaluate.tokenize,
        lowercase=session.config.evaluate.lowercase,
        tags=session.prepared.tags(part),
    )


def _write(session: Session, out_dir: Path, *, part: str, evaluation: Result) -> None:
    config, progress, name = session.config, session.progress, _set_name(session.config, part)
    weights = export_weights(session.model)
    folder_config = describe_folder(
        config,
        session.prepared,
        TrainingSummary(
            steps=progress.step,
            epochs=epochs_done(config.train, progress, session.store),
            seconds=progress.seconds,
            precision=progress.precision,
            seed=config.train.seed,
            pairs=session.prepared.report.train.pairs,
            parent=config.train.init,
        ),
    )
    card = write_card(
        folder_config,
        config,
        num_parameters=sum(array.size for array in weights.values()),
        corpus=corpus_counts(config, session.prepared.report),
        scored=_scored(name, evaluation),
        measured=_measured(name, evaluation),
        versions={"headway": __version__, "torch": torch.__version__, "numpy": np.__version__},
        folder_name=str(out_dir),
    )
    write_folder(
        out_dir,
        config=folder_config,
        weights=weights,
        source_tokenizer=session.prepared.source_tokenizer,
        target_tokenizer=session.prepared.target_tokenizer,
        card=card,
    )


def _scored(name: str, evaluation: Result) -> list[ScoredSet | ParsedSet]:
    """What the card tells of translations and of trees."""
    if isinstance(evaluation, ParserEvaluation):
        return [ParsedSet(name, evaluation.scores, tags=evaluation.tags, num_repaired=evaluation.num_repaired)]
    return [ScoredSet(name, evaluation.scores, evaluation.perplexity)] if isinstance(evaluation, Evaluation) else []


def _measured(name: str, found: Result) -> list[Measured]:
    """What the card tells of a model that does not translate."""
    if isinstance(found, WordPerplexity):
        words, tokens = f"{found.num_words:,} words, ends of lines counted", f"{found.num_tokens:,} tokens"
        return [
            Measured(name, "perplexity a word", f"{found.per_word:.2f}", words),
            Measured(name, "perplexity a token", f"{found.per_token:.2f}", tokens),
        ]
    if isinstance(found, Accuracy):
        low, high = found.interval
        same = f"{found.most_frequent / found.total:.1%} by always saying the most frequent label"
        value = f"{found.share:.1%} [{low:.1%}, {high:.1%}]"
        return [Measured(name, "accuracy", value, f"{found.total:,} texts; {same}")]
    if not isinstance(found, HiddenTokens):
        return []
    return [
        Measured(name, "perplexity of hidden tokens", f"{found.perplexity:.2f}", "masks drawn once"),
        Measured(name, "accuracy of hidden tokens", f"{found.accuracy:.1%}", "the same"),
    ]


def corpus_counts(config: RunConfig, report: Report) -> CorpusCounts:
    """What the card tells of the corpus; every pair that was read is in one of the counts."""
    dropped = {row.name: row.dropped for row in report.cleaning if row.active}
    dropped["longer than data.max_tokens"] = report.train.too_long.count
    if report.held_out:  # then validation pairs were read with those of training
        dropped["longer than data.max_tokens"] += report.validation.too_long.count
    overlap = {"validation (whole pairs)": report.validation_overlap.pairs}
    if report.test_overlap is not None:
        overlap["test (whole pairs)"] = report.test_overlap.pairs
    return CorpusCounts(
        pairs_read=report.pairs_read,
        pairs_kept=report.train.pairs,
        dropped=dropped,
        overlap=overlap,
        validation_pairs=report.validation.pairs,
        test_pairs=report.test_overlap.num_pairs if report.test_overlap else 0,
    )


def _set_name(config: RunConfig, part: str) -> str:
    named = config.data.test_source if part == "test" else config.data.validation_source
    held_out = "pairs" if config.reads == "pairs" else "lines"
    return Path(named).name if named else f"held-out {held_out} of the training text"

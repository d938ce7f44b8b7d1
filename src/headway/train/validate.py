"""How good the model is now: loss over all validation pairs, and scores of what users would get."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from headway.checkpoint.state import Scores
from headway.config.schema import SearchConfig
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.store import Store
from headway.errors import TrainingError
from headway.metrics.translation import score_translations
from headway.model.language_model import LanguageModel
from headway.model.text_encoder import TextEncoder
from headway.model.token_model import TokenModel
from headway.model.translation_model import TranslationModel
from headway.train.distributed import ALONE, Group
from headway.train.events import Sample
from headway.train.focus import Focus, measure_focus
from headway.train.objectives import Measure, measure_of
from headway.train.session import Session
from headway.translate.backend import language_backend, model_backend
from headway.translate.classifier import TextClassifier
from headway.translate.evaluate_parser import f1_of_symbols, parse_sources
from headway.translate.generator import Generator
from headway.translate.parser import Parser, brackets_of, phrases_of
from headway.translate.translator import Translator, longest_output

NUM_SAMPLES = 3


class TextLoss(NamedTuple):
    """Means over the predictions of a text: smoothed loss, -log p (nats), and the share that is right."""

    loss: float
    nll: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the watchdog looks at beside the scores: the texts, and what only a validation can count."""

    nll: float  # nats a target token
    accuracy: float
    sources: Sequence[str] = ()  # empty, all three: the model writes no outputs
    references: Sequence[str] = ()
    translations: Sequence[str] = ()
    length_ratio: float = 0.0  # tokens of translations by those of references, as BLEU counts
    cut: int = 0  # translations that reached the length limit
    unknown: int = 0  # sources with tokens that the vocabulary lacks
    focus: Focus | None = None  # None: no text is of a length that tells


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of the model as it stands, what there is to judge them by, and a few of its translations."""

    scores: Scores
    seen: Seen
    samples: tuple[Sample, ...] = ()


def validate(session: Session) -> Validation:
    """Score the model as it stands; the model is left in evaluation mode.

    Several processes divide the text among them, and all get the first one's scores.
    """
    model = session.whole_model()
    if session.config.reads != "pairs":
        return _without_outputs(session, model)
    train, evaluate, group = session.config.train, session.config.evaluate, session.group
    (loss, nll, accuracy), focus = validation_losses(session, model)
    texts = (*session.prepared.texts("validation"), session.prepared.tags("validation"))
    chosen = spread(len(texts[0]), train.validation_sentences)
    sources, references, tags = ([side[index] for index in chosen] for side in texts)
    found = group.together(_outputs(session, model, group.mine(sources), group.mine(tags)))
    translations = [text for text, _, _ in found]
    scores = score_translations(
        translations,
        references,
        target_language=session.config.data.target_language,
        tokenize="none" if session.config.is_parser else evaluate.tokenize,
        lowercase=evaluate.lowercase,
        confidence=False,
        include_ter=False,
    )
    samples = tuple(
        Sample(sources[index], references[index], translations[index]) for index in spread(len(sources), NUM_SAMPLES)
    )
    measured = Scores(
        step=session.progress.step,
        loss=loss,
        perplexity=math.exp(min(nll, 700.0)),
        accuracy=accuracy,
        bleu=scores.bleu.value,
        chrf=scores.chrf.value,
        f1=_f1(session, translations, references, sources=sources) if session.config.is_parser else None,
    )
    seen = Seen(
        nll,
        accuracy,
        sources=sources,
        references=references,
        translations=translations,
        length_ratio=scores.length_ratio,
        cut=sum(is_cut for _, is_cut, _ in found),
        unknown=sum(has_unknown for _, _, has_unknown in found),
        focus=focus,
    )
    return Validation(group.share(measured), seen, samples)


def _outputs(
    session: Session, model: TokenModel, sources: Sequence[str], tags: Sequence[str]
) -> list[tuple[str, bool, bool]]:
    """For each source what a user would get, as text; whether it is cut; whether the vocabulary lacks a part of it."""
    if session.config.is_parser:
        parser = session_parser(session, model, search=_quick_search(session))
        parses = parse_sources(parser, sources, corpus_tags=tags)
        return [(" ".join(each.symbols), each.is_cut, each.num_unknown > 0) for each in parses]
    found = session_translator(session, model, search=_quick_search(session)).translate(sources, tags=tags)
    return [(each.text, each.is_cut, each.num_unknown > 0) for each in found]


def _f1(session: Session, outputs: Sequence[str], references: Sequence[str], *, sources: Sequence[str]) -> float:
    """Of a parser's outputs as text, mended as the parser mends them."""
    brackets = brackets_of(session.prepared.target_tokenizer)
    phrases = phrases_of(session.prepared.target_tokenizer, brackets)
    return f1_of_symbols(outputs, references, sources=sources, parsing=session.config.parsing, phrases=phrases)


def _quick_search(session: Session) -> SearchConfig:
    """How validations search, which may be narrower than what users get."""
    beam_size = session.config.train.validation_beam_size or session.config.search.beam_size
    return session.config.search.model_copy(update={"beam_size": beam_size})


def session_parser(session: Session, model: TokenModel, *, search: SearchConfig | None = None) -> Parser:
    """The user's own Parser over a session's ``whole_model``, which is put into evaluation mode."""
    assert isinstance(model, TranslationModel), "only such a model parses"
    return Parser(
        model_backend(model.eval(), session.device),
        session.prepared.source_tokenizer,
        session.prepared.target_tokenizer,
        parsing=session.config.parsing,
        max_source_tokens=session.max_source_tokens,
        search=search or session.config.search,
        max_output_tokens=longest_output(session.model_config),
        tags=session.prepared.known_tags(),
    )


def _without_outputs(session: Session, model: TokenModel) -> Validation:
    """The loss alone, of a model that writes no translations."""
    found = session_losses(session, model, group=session.group)
    perplexity = math.exp(min(found.nll, 700.0))
    scores = Scores(step=session.progress.step, loss=found.loss, perplexity=perplexity, accuracy=found.accuracy)
    return Validation(session.group.share(scores), Seen(found.nll, found.accuracy))


def session_translator(session: Session, model: TokenModel, *, search: SearchConfig | None = None) -> Translator:
    """The user's own Translator over a session's ``whole_model``, which is put into evaluation mode."""
    assert isinstance(model, TranslationModel), "only such a model translates"
    data = session.config.data
    return Translator(
        model_backend(model.eval(), session.device),
        session.prepared.source_tokenizer,
        session.prepared.target_tokenizer,
        max_source_tokens=session.max_source_tokens,
        source_language=data.source_language,
        target_language=data.target_language,
        search=search or session.config.search,
        max_output_tokens=longest_output(session.model_config),
        tags=session.prepared.known_tags(),
    )


def session_generator(session: Session, model: LanguageModel) -> Generator:
    """The user's own Generator over a session's ``whole_model``, which is put into evaluation mode."""
    return Generator(
        language_backend(model.eval(), session.device),
        session.prepared.target_tokenizer,
        search=session.config.search,
        max_positions=longest_output(session.model_config),
    )


def session_classifier(session: Session, model: TextEncoder) -> TextClassifier:
    """The user's own TextClassifier over a session's ``whole_model``, which is put into evaluation mode."""
    return TextClassifier(
        model.eval(),
        session.prepared.source_tokenizer,
        labels=session.prepared.report.labels,
        device=session.device,
        max_positions=longest_output(session.model_config),
    )


def validation_losses(session: Session, model: TokenModel) -> tuple[TextLoss, Focus | None]:
    """Loss, likelihood and accuracy over the whole validation store, and where the model looks."""
    assert isinstance(model, TranslationModel), "only such a model looks at a source"
    losses = session_losses(session, model, group=session.group)
    return losses, measure_focus(model, session.prepared.store("validation"))


def session_losses(session: Session, model: TokenModel, *, group: Group) -> TextLoss:
    """Loss, likelihood and accuracy over the whole validation store, divided among the processes of the group."""
    return store_losses(
        model,
        session.prepared.store("validation"),
        batch_tokens=session.microbatch_tokens or session.config.train.batch_tokens,
        measure=measure_of(session.config.train, session.prepared.source_tokenizer),
        precision=session.progress.precision,
        group=group,
    )


@torch.inference_mode()
def store_losses(
    model: TokenModel,
    store: Store,
    *,
    batch_tokens: int,
    measure: Measure,
    precision: str,
    group: Group = ALONE,
) -> TextLoss:
    """Loss, likelihood and accuracy of any model and store; several processes divide the batches among them.

    What a measure draws is the same at each call. Raises TrainingError where the loss is not finite.
    """
    model.eval()
    device = next(model.parameters()).device
    totals, num_predictions = torch.zeros(3, dtype=torch.float64), 0
    longest = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    steps = plan(store.source_lengths, store.target_lengths, batch_tokens=max(batch_tokens, longest), seed=0, epoch=0)
    for indices in group.mine([rows for step in steps for rows in step]):
        batch = collate(store, indices).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(indices[0]))
            sums, correct = measure.sums_and_correct(model, batch, precision=precision)
        totals += torch.cat((sums.double().cpu(), correct.double().cpu()[None]))
        num_predictions += measure.num_predictions(batch)
    found = TextLoss(*(group.sum(totals) / group.sum(torch.tensor(num_predictions))).tolist())
    if not math.isfinite(found.loss):
        raise TrainingError(
            f"train/validate: the loss of the validation text is {found.loss}; a finite number is wanted. The last "
            "training state is good. Remedy: lower train.learning_rate or raise train.warmup_steps; or set "
            "train.precision = float32"
        )
    return found


def spread(num_sentences: int, count: int) -> list[int]:
    """The same few sentences each time, in order, evenly spread over a text, whose beginning may be one document."""
    count = min(count, num_sentences)
    return [index * num_sentences // count for index in range(count)]

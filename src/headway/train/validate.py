"""How good the model is now: loss over all validation pairs, and scores of what users would get."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from headway.checkpoint.state import Scores
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.store import Store
from headway.metrics.translation import score_translations
from headway.model.token_model import TokenModel
from headway.model.translation_model import TranslationModel
from headway.train.distributed import ALONE, Group
from headway.train.events import Sample
from headway.train.focus import Focus, measure_focus
from headway.train.objective import Likelihood
from headway.train.session import Session
from headway.translate.backend import model_backend
from headway.translate.evaluate_parser import f1_of_symbols, parse_sources
from headway.translate.parser import Parser
from headway.translate.translator import Translator, longest_output

NUM_SAMPLES = 3


class TextLoss(NamedTuple):
    """Means over the target tokens of a text: smoothed loss, -log p (nats), and the share that is most probable."""

    loss: float
    nll: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the watchdog looks at beside the scores: the texts, and what only a validation can count."""

    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]
    nll: float  # nats a target token
    accuracy: float
    length_ratio: float  # tokens of translations by those of references, as BLEU counts
    cut: int  # translations that reached the length limit
    unknown: int  # sources with tokens that the vocabulary lacks
    focus: Focus | None  # None: no text is of a length that tells


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of the model as it stands, a few of its translations, and what there is to judge them by."""

    scores: Scores
    samples: tuple[Sample, ...] = ()
    seen: Seen | None = None


def validate(session: Session) -> Validation:
    """Score the model as it stands; the model is left in evaluation mode.

    Several processes divide the text among them, and all get the first one's scores.
    """
    train, evaluate, group = session.config.train, session.config.evaluate, session.group
    model = session.whole_model()
    (loss, nll, accuracy), focus = validation_losses(session, model)
    sources, references = session.prepared.texts("validation")
    sources, references = sources[: train.validation_sentences], references[: train.validation_sentences]
    tags = session.prepared.tags("validation")[: len(sources)]
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
        Sample(sources[index], references[index], translations[index]) for index in _sample_indices(len(sources))
    )
    measured = Scores(
        step=session.progress.step,
        loss=loss,
        perplexity=math.exp(min(nll, 700.0)),
        bleu=scores.bleu.value,
        chrf=scores.chrf.value,
        f1=f1_of_symbols(translations, references, sources, session.config.parsing)
        if session.config.is_parser
        else None,
    )
    seen = Seen(
        sources,
        references,
        translations,
        nll=nll,
        accuracy=accuracy,
        length_ratio=scores.length_ratio,
        cut=sum(is_cut for _, is_cut, _ in found),
        unknown=sum(has_unknown for _, _, has_unknown in found),
        focus=focus,
    )
    return Validation(group.share(measured), samples, seen)


def _outputs(
    session: Session, model: TokenModel, sources: Sequence[str], tags: Sequence[str]
) -> list[tuple[str, bool, bool]]:
    """For each source what a user would get, as text; whether it is cut; whether the vocabulary lacks a part of it."""
    if session.config.is_parser:
        parses = parse_sources(session_parser(session, model), sources, corpus_tags=tags)
        return [(" ".join(each.symbols), each.is_cut, each.num_unknown > 0) for each in parses]
    found = session_translator(session, model).translate(sources, tags=tags)
    return [(each.text, each.is_cut, each.num_unknown > 0) for each in found]


def session_parser(session: Session, model: TokenModel) -> Parser:
    """The user's own Parser over a session's ``whole_model``, which is put into evaluation mode."""
    assert isinstance(model, TranslationModel), "only such a model parses"
    return Parser(
        model_backend(model.eval(), session.device),
        session.prepared.source_tokenizer,
        session.prepared.target_tokenizer,
        parsing=session.config.parsing,
        max_source_tokens=session.max_source_tokens,
        search=session.config.search,
        max_output_tokens=longest_output(session.model_config),
        tags=session.prepared.known_tags(),
    )


def session_translator(session: Session, model: TokenModel) -> Translator:
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
        search=session.config.search,
        max_output_tokens=longest_output(session.model_config),
        tags=session.prepared.known_tags(),
    )


def validation_losses(session: Session, model: TokenModel) -> tuple[TextLoss, Focus | None]:
    """Loss, likelihood and accuracy over the whole validation store, and where the model looks."""
    assert isinstance(model, TranslationModel), "only such a model looks at a source"
    store = session.prepared.store("validation")
    losses = store_losses(
        model,
        store,
        batch_tokens=session.microbatch_tokens or session.config.train.batch_tokens,
        label_smoothing=session.config.train.label_smoothing,
        precision=session.progress.precision,
        group=session.group,
    )
    return losses, measure_focus(model, store)


@torch.inference_mode()
def store_losses(
    model: TokenModel,
    store: Store,
    *,
    batch_tokens: int,
    label_smoothing: float,
    precision: str,
    group: Group = ALONE,
) -> TextLoss:
    """Loss, likelihood and accuracy of any model and store; several processes divide the batches among them."""
    model.eval()
    device = next(model.parameters()).device
    objective = Likelihood(label_smoothing)
    totals, num_tokens = torch.zeros(3, dtype=torch.float64), 0
    longest = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    steps = plan(store.source_lengths, store.target_lengths, batch_tokens=max(batch_tokens, longest), seed=0, epoch=0)
    for indices in group.mine([rows for step in steps for rows in step]):
        batch = collate(store, indices).to(device)
        sums, correct = objective.sums_and_correct(model, batch, precision=precision)
        totals += torch.cat((sums.double().cpu(), correct.double().cpu()[None]))
        num_tokens += batch.num_target_tokens
    return TextLoss(*(group.sum(totals) / group.sum(torch.tensor(num_tokens))).tolist())


def _sample_indices(num_sentences: int) -> list[int]:
    """The same few sentences each time, spread over the text."""
    count = min(NUM_SAMPLES, num_sentences)
    return [index * num_sentences // count for index in range(count)]

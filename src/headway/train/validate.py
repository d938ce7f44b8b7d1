"""How good the model is now: loss over all validation pairs, and scores of what users would get."""

import math

import torch

from headway.checkpoint.state import Scores
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.store import Store
from headway.metrics.translation import score_translations
from headway.model.transformer import Transformer
from headway.train.distributed import ALONE, Group
from headway.train.events import Sample
from headway.train.objective import Likelihood
from headway.train.session import Session
from headway.translate.backend import model_backend
from headway.translate.translator import Translator, longest_output

NUM_SAMPLES = 3


def validate(session: Session) -> tuple[Scores, tuple[Sample, ...]]:
    """Score the model as it stands; the model is left in evaluation mode.

    Several processes divide the text among them, and all get the first one's scores.
    """
    train, evaluate, group = session.config.train, session.config.evaluate, session.group
    loss, nll = validation_losses(session)
    sources, references = session.prepared.texts("validation")
    sources, references = sources[: train.validation_sentences], references[: train.validation_sentences]
    tags = session.prepared.tags("validation")[: len(sources)]
    found = session_translator(session).translate(group.mine(sources), tags=group.mine(tags))
    translations = group.together([translation.text for translation in found])
    scores = score_translations(
        translations,
        references,
        target_language=session.config.data.target_language,
        tokenize=evaluate.tokenize,
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
    )
    return group.share(measured), samples


def session_translator(session: Session) -> Translator:
    """The user's own Translator over the model in training, as it stands, in evaluation mode."""
    data = session.config.data
    return Translator(
        model_backend(session.whole_model().eval(), session.device),
        session.prepared.source_tokenizer,
        session.prepared.target_tokenizer,
        max_source_tokens=session.max_source_tokens,
        source_language=data.source_language,
        target_language=data.target_language,
        search=session.config.search,
        max_output_tokens=longest_output(session.model_config),
        tags=session.prepared.known_tags(),
    )


def validation_losses(session: Session) -> tuple[float, float]:
    """Smoothed loss and negative log-likelihood, nats a target token over the whole validation store."""
    return store_losses(
        session.whole_model(),
        session.prepared.store("validation"),
        batch_tokens=session.microbatch_tokens or session.config.train.batch_tokens,
        label_smoothing=session.config.train.label_smoothing,
        precision=session.progress.precision,
        group=session.group,
    )


@torch.inference_mode()
def store_losses(
    model: Transformer,
    store: Store,
    *,
    batch_tokens: int,
    label_smoothing: float,
    precision: str,
    group: Group = ALONE,
) -> tuple[float, float]:
    """As ``validation_losses``, for any model and store; several processes divide the batches among them."""
    model.eval()
    device = next(model.parameters()).device
    objective = Likelihood(label_smoothing)
    sums, num_tokens = torch.zeros(2, dtype=torch.float64), 0
    longest = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    steps = plan(store.source_lengths, store.target_lengths, batch_tokens=max(batch_tokens, longest), seed=0, epoch=0)
    for indices in group.mine([rows for step in steps for rows in step]):
        batch = collate(store, indices).to(device)
        sums += objective.sums(model, batch, precision=precision).double().cpu()
        num_tokens += batch.num_target_tokens
    loss, nll = (group.sum(sums) / group.sum(torch.tensor(num_tokens))).tolist()
    return loss, nll


def _sample_indices(num_sentences: int) -> list[int]:
    """The same few sentences each time, spread over the text."""
    count = min(NUM_SAMPLES, num_sentences)
    return [index * num_sentences // count for index in range(count)]

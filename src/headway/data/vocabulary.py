"""The vocabulary of a run, learnt from its training text or from a sample of it."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

import numpy as np

from headway.config.schema import RunConfig
from headway.data.corpora import Progress, Rows, TrainingText
from headway.data.given import GivenVocabulary
from headway.data.mixture import quotas
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

MASK_TAG = "mask"  # the reserved token that stands for a hidden one
# Of text that is no pair of translations, the side that holds each line once, or that is no label.
OWN_SIDES = {"text": ("targets",), "consecutive": ("targets",), "labelled": ("sources",)}


def choose_sample(text: TrainingText, config: RunConfig) -> Rows:
    """The pairs that the vocabulary is learnt from: all, or ``text.sample_pairs`` of them, drawn by the seed.

    Each corpus gives in proportion to its share of an epoch, but no more than it has.
    """
    counts = [corpus.left for corpus in text.corpora]
    wanted = config.text.sample_pairs
    if not wanted or sum(counts) <= wanted:
        return text.training
    weights = text.weights(counts, temperature=config.data.sampling_temperature)
    shares = [weight * count for weight, count in zip(weights, counts, strict=True)]
    sample = np.zeros(len(text.training), np.bool_)
    given = quotas(counts, shares, total=wanted)
    for number, ((begin, end), quota) in enumerate(zip(text.bounds(), given, strict=True)):
        places = begin + np.flatnonzero(text.training[begin:end])
        key = sha256(f"headway sample {config.train.seed} {number}".encode()).digest()
        words = np.random.Philox(key=int.from_bytes(key[:16], "little")).random_raw(len(places))
        sample[places[np.argsort(words, kind="stable")[:quota]]] = True
    return sample


def learn_vocabulary(
    text: TrainingText,
    sample: Rows,
    config: RunConfig,
    *,
    given: GivenVocabulary | None = None,
    on_progress: Progress,
) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target, one and the same if they share a vocabulary; tags are in the source's.

    A ``given`` vocabulary takes the place of learning. Held-out text stays unseen. TextError when the alphabet does
    not fit.
    """
    tags = [*text.tags(), *([MASK_TAG] if config.model.architecture == "encoder_only" else [])]
    own = OWN_SIDES.get(config.reads)
    if given is not None:
        return given.settle(lambda sides: _texts(text, sample, own or sides, on_progress=on_progress), tags=tags)
    model = config.model

    def learn(sides: Sequence[str], vocab_size: int, tags: Sequence[str]) -> Tokenizer:
        return LEARNERS[config.text.model](
            _texts(text, sample, own or sides, on_progress=on_progress),
            vocab_size=vocab_size,
            byte_fallback=config.text.byte_fallback,
            tags=tags,
        )

    if config.text.shared_vocabulary:
        tokenizer = learn(("sources", "targets"), model.vocab_size, tags)
        return tokenizer, tokenizer
    source = learn(("sources",), model.source_vocab_size or model.vocab_size, tags)
    return source, learn(("targets",), model.vocab_size, ())


def _texts(text: TrainingText, sample: Rows, sides: Sequence[str], *, on_progress: Progress) -> Iterator[str]:
    """These sides of the sampled pairs, pair by pair."""
    seen = 0
    for _, block in text.blocks(sample):
        for pair in zip(*(getattr(block, side) for side in sides), strict=True):
            yield from pair
        seen += len(block)
        on_progress("learn", seen)

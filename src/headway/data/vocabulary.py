"""The vocabulary of a run, learnt from its training text or from a sample of it."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import numpy as np

from headway.config.schema import RunConfig
from headway.data.corpora import Progress, Rows, TrainingText
from headway.data.given import GivenVocabulary
from headway.data.mixture import quotas
from headway.data.treebank import plain_words, token_names
from headway.errors import DataError
from headway.text.subword import LEARNERS
from headway.text.symbols import learn_symbols
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
    if config.is_parser:
        return _learn_for_trees(text, sample, config, given=given, on_progress=on_progress)
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


def _learn_for_trees(
    text: TrainingText,
    sample: Rows,
    config: RunConfig,
    *,
    given: GivenVocabulary | None,
    on_progress: Progress,
) -> tuple[Tokenizer, Tokenizer]:
    """Of sentences the words, as other text, and a reserved token for each tag; of trees every symbol."""
    parsing, model = config.parsing, config.model

    def texts(sides: Sequence[str]) -> Iterator[str]:
        if sides == ("targets",):
            return _texts(text, text.training, sides, on_progress=on_progress)
        return plain_words(_texts(text, sample, sides, on_progress=on_progress)) if parsing.words else iter(())

    names = token_names(_texts(text, text.training, ("sources",), on_progress=on_progress), parsing)
    tags = [*text.tags(), *names]
    if given is not None:
        source, target = given.settle(texts, tags=tags)
        _check_symbols(target, texts(("targets",)))
        return source, target
    source_size = model.source_vocab_size or model.vocab_size
    if parsing.words:
        source = LEARNERS[config.text.model](
            texts(("sources",)), vocab_size=source_size, byte_fallback=config.text.byte_fallback, tags=tags
        )
    else:
        source = learn_symbols((), vocab_size=source_size, tags=tags)
    return source, learn_symbols(texts(("targets",)), vocab_size=model.vocab_size)


def check_one_table(source: Tokenizer, target: Tokenizer) -> None:
    """Raise DataError for two tokenizers that cannot share a table, as a token has another row in it."""
    names = [_table_names(tokenizer) for tokenizer in (source, target)]
    if names[0] == names[1]:
        return
    sizes = f"{source.vocab_size:,} and {target.vocab_size:,} tokens"
    pairs = enumerate(zip(*names, strict=False))
    at = next((f"; token {place} is {one!r} and {other!r}" for place, (one, other) in pairs if one != other), "")
    raise DataError(
        f"data/vocabulary: model.embedding_sharing is all, so both sides have one table, and the tokenizers of source "
        f"and target have {sizes}{at}. Wanted the same tokens in the same order. Remedy: begin with a model "
        "(train.init) whose tokenizers are of one vocabulary, or whose model.embedding_sharing is target or none."
    )


def _table_names(tokenizer: Tokenizer) -> list[str]:
    """What the rows stand for; the space before an imported word that its own side does not segment into is no part."""
    return [name.removeprefix(" ") if tokenizer.imported else name for name in tokenizer.names]


def _check_symbols(tokenizer: Tokenizer, targets: Iterable[str]) -> None:
    """Refuse trees with symbols that a given vocabulary cannot write."""
    known = frozenset(tokenizer.names)
    missing = sorted({symbol for target in targets for symbol in target.split(" ")} - {name[1:] for name in known})
    if missing:
        raise DataError(
            f"data/vocabulary: the model's vocabulary lacks {len(missing):,} symbols of the trees to train on: "
            f"{', '.join(missing[:7])}{', ...' if len(missing) > 7 else ''}; all are wanted. "
            f"Set train.extend_vocabulary to {len(missing)} or more, or take out trees with these labels."
        )


def _texts(text: TrainingText, sample: Rows, sides: Sequence[str], *, on_progress: Progress) -> Iterator[str]:
    """These sides of the sampled pairs, pair by pair."""
    seen = 0
    for _, block in text.blocks(sample):
        for pair in zip(*(getattr(block, side) for side in sides), strict=True):
            yield from pair
        seen += len(block)
        on_progress("learn", seen)

"""A shortlist learnt for a model from parallel text, and what it covers, loses and gains on other text."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from headway.data.prepared import Prepared, read_prepared
from headway.engine.cooccurrence import Cooccurrence
from headway.engine.engine import Engine
from headway.engine.packed import open_packed
from headway.engine.shortlist import MOST_ALLOWED, Shortlist, digests, vocabulary_digest
from headway.errors import TranslationError
from headway.folder.contents import TRAINING_FOLDER, ModelFolder
from headway.metrics.translation import score_translations
from headway.text.tokenizer import EOS_ID
from headway.translate.lines import in_chunks
from headway.translate.translator import Translator, longest_output

CHUNK = 1024  # pairs that are looked at together
WARM_UP = 32  # sentences that are translated before the clock runs

Ids = Sequence[int]
IdPair = tuple[Ids, Ids]  # source and target, each with EOS; the source with its tag


@dataclass(frozen=True, slots=True)
class Learnt:
    """A shortlist, from how many ``pairs``, and how many more were ``left_out``: empty, or longer than the model knows.

    ``forgotten``: pairs of tokens that there was no room to count.
    """

    shortlist: Shortlist
    pairs: int
    left_out: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the references' tokens the lists of their sources allow; EOS is not counted.

    ``covered_sentences``: references of which they allow every token. ``mean_size``: tokens of a list. ``whole``:
    sentences whose list is so long that the engine takes the whole vocabulary.
    """

    sentences: int
    covered_sentences: int
    tokens: int
    covered_tokens: int
    mean_size: float
    whole: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The same sentences translated without the shortlist and with it, by turns: BLEU, and seconds of each turn."""

    sentences: int
    different: int
    bleu: tuple[float, float]
    signature: str
    seconds: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def speedup(self) -> float:
        """The median time without the shortlist, over that with it."""
        return median(self.seconds[0]) / median(self.seconds[1])


def data_of_run(folder: ModelFolder) -> Prepared:
    """The data that a run trained the model on. Raises TranslationError where they are not there, or not its own."""
    path = folder.path / TRAINING_FOLDER / "data"
    prepared = read_prepared(path)
    if prepared is None:
        raise TranslationError(
            f"translate/shortlist: {path} holds no training data of a run, from which to learn. Name parallel text: "
            f"headway shortlist -m {folder.path} SOURCE TARGET"
        )
    sides = (prepared.source_tokenizer, prepared.target_tokenizer)
    if tuple(map(vocabulary_digest, sides)) != digests(folder):
        raise TranslationError(
            f"translate/shortlist: the data in {path} are of another vocabulary than the model. Name parallel text: "
            f"headway shortlist -m {folder.path} SOURCE TARGET"
        )
    return prepared


def pairs_of_run(prepared: Prepared, *, most: int) -> Iterator[IdPair]:
    """At most ``most`` training pairs, evenly spread over all."""
    store = prepared.store("train")
    count = len(store)
    for index in range(min(most, count)):
        place = index * count // min(most, count)
        yield (*store.source(place).tolist(), EOS_ID), (*store.target(place).tolist(), EOS_ID)


def pairs_of_texts(
    folder: ModelFolder, pairs: Iterable[tuple[str, str]], *, tags: Iterable[str] | None = None, tag: str = ""
) -> Iterator[IdPair]:
    """Token ids of texts; ``tags`` has a tag for each source, or ``tag`` is that of all.

    Raises TranslationError for a tag that the model's sources did not have.
    """
    tagged = ((pair, tag) for pair in pairs) if tags is None else zip(pairs, tags, strict=True)
    for rows in in_chunks(tagged, chunk=CHUNK):
        sources = folder.source_tokenizer.encode_batch([source.strip() for (source, _), _ in rows])
        targets = folder.target_tokenizer.encode_batch([target.strip() for (_, target), _ in rows])
        for source, target, (_, own) in zip(sources, targets, rows, strict=True):
            yield (*_tag_ids(folder, own), *source, EOS_ID), (*target, EOS_ID)


def learn_shortlist(
    folder: ModelFolder,
    pairs: Iterable[IdPair],
    *,
    frequent: int,
    per_token: int,
    threads: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Learnt:
    """Learn by the model's own cross-attention: one forced pass over each pair, by the compiled engine.

    ``on_progress`` hears how many pairs it has learnt from. Raises TranslationError when there is not one, and what
    opening the engine raises.
    """
    engine = Engine(open_packed(folder), threads=threads)
    counts = Cooccurrence(folder.source_tokenizer, folder.target_tokenizer)
    learnt = left_out = 0
    for rows in in_chunks(pairs, chunk=CHUNK):
        known = [(source, target) for source, target in rows if _is_known(folder, source, target)]
        sources, targets = [source for source, _ in known], [target for _, target in known]
        for source, target, weights_TS in zip(sources, targets, engine.attend(sources, targets), strict=True):
            counts.add(source, target, weights_TS)
        learnt += len(known)
        left_out += len(rows) - len(known)
        if on_progress is not None:
            on_progress(learnt)
    if not learnt:
        raise TranslationError(
            f"translate/shortlist: found no pair to learn from; {left_out:,} were empty, or longer than the model "
            f"knows ({folder.config.max_source_tokens:,} source tokens). Name other parallel text."
        )
    shortlist = counts.shortlist(frequent=frequent, per_token=per_token, vocabularies=digests(folder))
    return Learnt(shortlist, learnt, left_out, counts.forgotten)


def measure_coverage(shortlist: Shortlist, pairs: Iterable[IdPair]) -> Coverage:
    """What a shortlist covers of pairs that it was not learnt from."""
    sizes: list[int] = []
    tokens = covered = whole_sentences = 0
    for source, target in pairs:
        allowed = shortlist.allowed(source)
        is_in = np.isin(np.asarray(target[:-1], dtype=np.int64), allowed)
        sizes.append(len(allowed))
        tokens += is_in.size
        covered += int(is_in.sum())
        whole_sentences += bool(is_in.all())
    beyond = sum(size > MOST_ALLOWED for size in sizes)
    return Coverage(len(sizes), whole_sentences, tokens, covered, sum(sizes) / max(len(sizes), 1), beyond)


def try_shortlist(
    plain: Translator,
    limited: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    tags: Sequence[str] | None = None,
    rounds: int = 3,
) -> Trial:
    """Translate without and with a shortlist, by turns. Raises MetricError for unequal counts or no sentences."""
    translators = (plain, limited)
    seconds: tuple[list[float], list[float]] = ([], [])
    texts: tuple[list[str], list[str]] = ([], [])
    few = slice(WARM_UP)
    for translator in translators:
        translator.translate(sources[few], tags=None if tags is None else tags[few])
    for _ in range(rounds):
        for place, translator in enumerate(translators):
            started = time.perf_counter()
            found = translator.translate(sources, tags=tags)
            seconds[place].append(time.perf_counter() - started)
            texts[place][:] = [translation.text for translation in found]
    scores = [
        score_translations(
            own, references, target_language=plain.target_language, confidence=False, include_ter=False
        ).bleu
        for own in texts
    ]
    return Trial(
        len(sources),
        sum(one != other for one, other in zip(*texts, strict=True)),
        (scores[0].value, scores[1].value),
        scores[0].signature,
        (tuple(seconds[0]), tuple(seconds[1])),
    )


def _is_known(folder: ModelFolder, source: Ids, target: Ids) -> bool:
    """Whether the model was trained on such lengths and could write such a target, and neither is empty."""
    limit = longest_output(folder.config.model)
    longest = len(source) + folder.config.search.max_extra_tokens
    return (
        1 < len(source) <= folder.config.max_source_tokens
        and 1 < len(target) <= (longest if limit is None else min(longest, limit))
        and (limit is None or len(source) <= limit)
    )


def _tag_ids(folder: ModelFolder, tag: str) -> Ids:
    known = folder.config.tags or ("",)
    if tag not in known:
        raise TranslationError(
            f"translate/shortlist: found the tag {tag!r}; the model's sources had these: "
            f"{', '.join(name or 'none' for name in known)}. Name one of them (--tag)."
        )
    return (folder.source_tokenizer.tag_id(tag),) if tag else ()

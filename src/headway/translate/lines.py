"""Many lines, as a stream: n lines in, n translations out, in order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from headway.translate.decoding import Decoding
from headway.translate.translation import PairScore, Translation
from headway.translate.translator import Translator

FIRST_CHUNK = 32  # lines: the first output comes soon ...
CHUNK = 2048  # ... and later chunks are long, so that batches hold sentences of like length

Item = TypeVar("Item")


def in_chunks(items: Iterable[Item], *, chunk: int = CHUNK, first: int = FIRST_CHUNK) -> Iterator[list[Item]]:
    """Lists of items, the ``first`` short, each twice as long as the one before it, up to ``chunk``."""
    items = iter(items)
    size = min(first, chunk)
    while some := list(islice(items, size)):
        yield some
        size = min(2 * size, chunk)


def translate_lines(
    translator: Translator,
    lines: Iterable[str],
    *,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    target_prefix: str = "",
    phrases: Iterable[Sequence[str]] | None = None,
    with_alignment: bool = False,
    chunk: int = CHUNK,
) -> Iterator[Translation]:
    """Translate lines as they come, ``chunk`` at most at a time (fewer at first); memory holds one chunk.

    ``target_prefix`` is what every output must begin with, ``phrases`` has a list for each line; the other settings are
    those of ``Translator.translate``.
    """
    wanted = None if phrases is None else iter(phrases)
    for texts in in_chunks(lines, chunk=chunk):
        yield from translator.translate(
            texts,
            decoding=decoding,
            batch_tokens=batch_tokens,
            target_prefixes=[target_prefix] * len(texts) if target_prefix else None,
            phrases=None if wanted is None else list(islice(wanted, len(texts))),
            with_alignment=with_alignment,
        )


def score_lines(
    translator: Translator, pairs: Iterable[tuple[str, str]], *, batch_tokens: int | None = None, chunk: int = CHUNK
) -> Iterator[PairScore]:
    """Score (source, target) pairs as they come; memory holds ``chunk`` of them."""
    pairs = iter(pairs)
    while some := list(islice(pairs, chunk)):
        sources, targets = [source for source, _ in some], [target for _, target in some]
        yield from translator.score(sources, targets, batch_tokens=batch_tokens)

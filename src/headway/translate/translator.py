"""Text to text with a trained model: the path of every command, of validation, and of Python users."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headway.config.schema import ModelConfig, SearchConfig
from headway.errors import TranslationError
from headway.folder.contents import ModelFolder
from headway.search.settings import SearchSettings
from headway.text.tokenizer import EOS_ID, UNK_ID, Tokenizer
from headway.translate.backend import load_backend
from headway.translate.decoding import Decoding, decoding_with
from headway.translate.pieces import Cutter, Piece
from headway.translate.translation import PairScore, Translation

if TYPE_CHECKING:
    from headway.search.hypothesis import Hypothesis
    from headway.translate.torch_backend import Ids, TorchBackend

_LINE_ENDS = str.maketrans("\n\r", "  ")


@dataclass(frozen=True, slots=True)
class _Request:
    """How to translate: settings with every default filled in."""

    settings: SearchSettings
    batch_tokens: int
    with_alignment: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What the model made of one piece: hypotheses, best first, and the alignment of the first."""

    hypotheses: "list[Hypothesis]"
    alignment: tuple[tuple[int, int], ...] = ()


class Translator:
    """A model with its tokenizers, languages and settings.

    ``max_source_tokens``: the longest source trained on, EOS counted; longer lines are split into sentences.
    ``max_output_tokens``: the most that the model can write at all, where there is such a limit (learned positions).
    """

    def __init__(
        self,
        backend: "TorchBackend",
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_source_tokens: int,
        source_language: str = "",
        target_language: str = "",
        search: SearchConfig | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        self.backend = backend
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.source_language = source_language
        self.target_language = target_language
        self.search = search or SearchConfig()
        self.max_output_tokens = max_output_tokens
        self._cutter = Cutter(
            source_tokenizer,
            source_language=source_language,
            target_language=target_language,
            max_tokens=min(max_source_tokens, max_output_tokens or max_source_tokens),
        )

    @classmethod
    def from_folder(cls, path: str | Path, device: str = "auto") -> Self:
        """Load a model folder; ``device`` is auto, cpu, cuda or mps.

        Raises FolderError, ModelError, TranslationError, MissingExtraError.
        """
        folder = ModelFolder.open(Path(path))
        config = folder.config
        return cls(
            load_backend(folder, device=device),
            folder.source_tokenizer,
            folder.target_tokenizer,
            max_source_tokens=config.max_source_tokens,
            source_language=config.source_language,
            target_language=config.target_language,
            search=config.search,
            max_output_tokens=longest_output(config.model),
        )

    def translate(
        self,
        texts: Sequence[str],
        *,
        decoding: Decoding | None = None,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        batch_tokens: int | None = None,
        target_prefixes: Sequence[str] | None = None,
        with_alignment: bool = False,
    ) -> list[Translation]:
        r"""Translate each text; the results come in the same order, and a text of n lines gives n lines.

        Blank text comes back as it is, without the model. White space around a line is kept. A line end that the model
        itself writes becomes a space. ``target_prefixes`` holds what each output must begin with ("" is free); of a
        text in pieces, the first piece. ``batch_tokens`` is the budget of padded source tokens times beam; it changes
        speed and memory, not results. Absent settings are the model's.
        Raises TranslationError for settings that cannot be met, TextError for a lone surrogate.
        """
        if isinstance(texts, str):
            raise TranslationError("translate/translator: found one string; wanted a list of texts: [text].")
        decoding = decoding_with(decoding, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best)
        request = _Request(
            decoding.settings(self.search),
            batch_tokens=self.backend.batch_tokens if batch_tokens is None else batch_tokens,
            with_alignment=with_alignment,
        )
        pieces = self._cutter.cut(texts)
        prefixes = self._encode_prefixes(target_prefixes, len(texts))
        jobs: list[Ids] = [piece.source_ids for text_pieces in pieces for piece in text_pieces if piece.source_ids]
        found = iter(self._find(jobs, _spread(prefixes, pieces), request))
        return [
            self._assemble(text_pieces, [next(found) for piece in text_pieces if piece.source_ids], request)
            for text_pieces in pieces
        ]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, batch_tokens: int | None = None
    ) -> list[PairScore]:
        """How probable each target is, given its source: forced decoding. Nothing is split, whatever its length.

        White space around a text does not count, as in translating. Raises TranslationError for unequal counts.
        """
        if len(sources) != len(targets):
            raise TranslationError(
                f"translate/translator: {len(sources):,} sources and {len(targets):,} targets; pairs need equal "
                "counts. Restore the original lists."
            )
        source_ids = [
            (*ids, EOS_ID) for ids in self.source_tokenizer.encode_batch([source.strip() for source in sources])
        ]
        target_ids = [
            (*ids, EOS_ID) for ids in self.target_tokenizer.encode_batch([target.strip() for target in targets])
        ]
        lengths = [max(len(source), len(target)) for source, target in zip(source_ids, target_ids, strict=True)]
        scores: list[list[float]] = [[] for _ in sources]
        for batch in plan_batches(lengths, batch_tokens=batch_tokens or self.backend.batch_tokens):
            values = self.backend.score([source_ids[i] for i in batch], [target_ids[i] for i in batch])
            for place, token_log_probs in zip(batch, values, strict=True):
                scores[place] = token_log_probs
        return [
            PairScore(sum(values), tuple(values), tuple(self.target_tokenizer.tokens(ids[:-1])))
            for values, ids in zip(scores, target_ids, strict=True)
        ]

    def _encode_prefixes(self, prefixes: Sequence[str] | None, num_texts: int) -> "Sequence[Ids]":
        """Token ids of each text's prefix."""
        if prefixes is None:
            return [()] * num_texts
        if len(prefixes) != num_texts:
            raise TranslationError(
                f"translate/translator: {len(prefixes):,} target prefixes for {num_texts:,} texts; wanted one each. "
                'Give "" where the output is free.'
            )
        if any("\n" in prefix for prefix in prefixes):
            raise TranslationError(
                "translate/translator: a target prefix holds a line end; an output line cannot. Give one line."
            )
        return self.target_tokenizer.encode_batch(list(prefixes))

    def _find(self, sources: "list[Ids]", prefixes: "list[Ids]", request: _Request) -> list[_Found]:
        """Search for every source, in batches of similar length; the results come in the given order."""
        found: dict[int, _Found] = {}
        lengths = [max(len(source), len(prefix)) for source, prefix in zip(sources, prefixes, strict=True)]
        for batch in plan_batches(lengths, batch_tokens=request.batch_tokens // max(request.settings.width, 1)):
            chosen = [sources[place] for place in batch]
            hypotheses = self.backend.search(
                chosen,
                prefixes=[prefixes[place] for place in batch],
                limits=[self._limit(lengths[place]) for place in batch],
                settings=request.settings,
            )
            alignments = self._align(chosen, hypotheses) if request.with_alignment else [()] * len(batch)
            for place, best, alignment in zip(batch, hypotheses, alignments, strict=True):
                found[place] = _Found(best, alignment)
        return [found[place] for place in range(len(sources))]

    def _limit(self, length: int) -> int:
        """The most output tokens, EOS counted, for a source (or prefix) of this length."""
        limit = length + self.search.max_extra_tokens
        return limit if self.max_output_tokens is None else min(limit, self.max_output_tokens)

    def _align(self, sources: "list[Ids]", hypotheses: "list[list[Hypothesis]]") -> list[tuple[tuple[int, int], ...]]:
        """For each best hypothesis, each target token with the source token it attended to most; EOS takes no part."""
        weights = self.backend.attend(sources, [best[0].token_ids for best in hypotheses])
        return [
            tuple((int(source), target) for target, source in enumerate(pair[:-1, :-1].argmax(axis=1)))
            for pair in weights
        ]

    def _assemble(self, pieces: list[Piece], found: list[_Found], request: _Request) -> Translation:
        """One translation from those of its pieces."""
        count = max((len(piece.hypotheses) for piece in found), default=1)
        best, *others = [self._join(pieces, found, rank) for rank in range(count)]
        source_ids = [token for piece in pieces for token in piece.source_ids[:-1]]
        return Translation(
            best.text,
            score=best.score,
            log_prob=best.log_prob,
            tokens=best.tokens,
            source_tokens=tuple(self.source_tokenizer.tokens(source_ids)),
            is_cut=best.is_cut,
            alignment=_join_alignments(pieces, found) if request.with_alignment else None,
            alternatives=tuple(others),
            num_pieces=len(found),
            num_unknown=source_ids.count(UNK_ID),
        )

    def _join(self, pieces: list[Piece], found: list[_Found], rank: int) -> Translation:
        """The hypotheses of this rank (or the last there is) with the white space around them."""
        chosen = [piece.hypotheses[min(rank, len(piece.hypotheses) - 1)] for piece in found]
        words = iter(self.target_tokenizer.decode(hypothesis.token_ids).translate(_LINE_ENDS) for hypothesis in chosen)
        text = "".join(piece.leading + (next(words) if piece.source_ids else "") + piece.trailing for piece in pieces)
        return Translation(
            text,
            score=sum(hypothesis.score for hypothesis in chosen) / max(len(chosen), 1),
            log_prob=sum((hypothesis.log_prob for hypothesis in chosen), 0.0),
            tokens=tuple(
                token for hypothesis in chosen for token in self.target_tokenizer.tokens(hypothesis.token_ids[:-1])
            ),
            is_cut=any(hypothesis.is_cut for hypothesis in chosen),
        )


def longest_output(config: ModelConfig) -> int | None:
    """The most positions a model has, None where there is no limit."""
    return config.max_positions if config.positions == "learned" else None


def plan_batches(lengths: Sequence[int], *, batch_tokens: int) -> Iterator[list[int]]:
    """Places in batches of at most ``batch_tokens`` padded tokens (at least one a batch), the longest first."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        size = max(batch_tokens // max(lengths[order[start]], 1), 1)
        yield order[start : start + size]
        start += size


def _spread(prefixes: "Sequence[Ids]", pieces: list[list[Piece]]) -> "list[Ids]":
    """A prefix for every piece with words: its text's for the first, none for the others."""
    spread: list[Ids] = []
    for prefix, text_pieces in zip(prefixes, pieces, strict=True):
        num_pieces = sum(1 for piece in text_pieces if piece.source_ids)
        spread.extend([prefix, *[()] * (num_pieces - 1)] if num_pieces else [])
    return spread


def _join_alignments(pieces: list[Piece], found: list[_Found]) -> tuple[tuple[int, int], ...]:
    """The pieces' alignments with places counted through the whole text."""
    joined: list[tuple[int, int]] = []
    sources = [piece.source_ids for piece in pieces if piece.source_ids]
    source_start = target_start = 0
    for source_ids, piece in zip(sources, found, strict=True):
        joined += [(source_start + source, target_start + target) for source, target in piece.alignment]
        source_start += len(source_ids) - 1
        target_start += len(piece.hypotheses[0].token_ids) - 1
    return tuple(joined)

"""Text to text with a trained model: the path of every command, of validation, and of Python users."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headway.config.model_config import ModelConfig
from headway.config.schema import SearchConfig
from headway.errors import TranslationError
from headway.folder.contents import ModelFolder
from headway.search.cancel import Cancel
from headway.search.phrase import Phrase, beam_width
from headway.search.settings import SearchSettings
from headway.text.tokenizer import EOS_ID, UNK_ID, Tokenizer
from headway.translate.backend import load_backend
from headway.translate.compute import UNLIMITED, Compute
from headway.translate.decoding import Decoding, decoding_with
from headway.translate.kind import check_kind
from headway.translate.phrases import PhraseEncoder, check_phrases, has_phrases
from headway.translate.pieces import Cutter, Piece
from headway.translate.risk import Risk, by_expected_utility
from headway.translate.translation import PairScore, Translation

if TYPE_CHECKING:
    from headway.search.hypothesis import Hypothesis
    from headway.translate.backend import Backend, Ids

ALIGNED_TOKENS = 8192  # padded tokens whose attention is in memory at once
_LINE_ENDS = str.maketrans("\n\r", "  ")


@dataclass(frozen=True, slots=True)
class _Request:
    """How to translate: settings with every default filled in."""

    settings: SearchSettings
    n_best: int
    risk: Risk | None
    batch_tokens: int | None  # None: what suits that which computes
    with_alignment: bool


@dataclass(frozen=True, slots=True)
class _Job:
    """One piece for the model: its source, and what the output must begin with and contain."""

    source_ids: "Ids"
    prefix: "Ids"
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """What the model made of one piece: hypotheses, best first, and the alignment of the first."""

    hypotheses: "list[Hypothesis]"
    alignment: tuple[tuple[int, int], ...] = ()


class Translator:
    """A model with its tokenizers, languages and settings.

    ``max_source_tokens``: the longest source trained on, EOS counted; longer lines are split into sentences.
    ``max_output_tokens``: the most that the model can write at all, where there is such a limit (learned positions).
    ``tags``: those that sources were trained with, "" among them if some had none; empty: none had one.
    """

    def __init__(
        self,
        backend: "Backend",
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_source_tokens: int,
        source_language: str = "",
        target_language: str = "",
        search: SearchConfig | None = None,
        max_output_tokens: int | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        self.backend = backend
        self.tags = tuple(tags)
        self.tag = ""  # before each source, where a request says nothing else
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.source_language = source_language
        self.target_language = target_language
        self.search = search or SearchConfig()
        self.max_output_tokens = max_output_tokens
        self._phrases = PhraseEncoder(source_tokenizer, target_tokenizer)
        self._cutter = Cutter(
            source_tokenizer,
            source_language=source_language,
            target_language=target_language,
            max_tokens=min(max_source_tokens, max_output_tokens or max_source_tokens) - any(tags),
        )

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        device: str = "auto",
        *,
        engine: str = "auto",
        precision: str = "auto",
        threads: int | None = None,
        shortlist: str | Path | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> Self:
        """Load a model folder; the settings are those of ``headway.translate.compute.Compute``.

        ``on_notice`` hears, in a line, why torch computes and not the engine, and what else a user should know.
        Raises FolderError, ModelError, EngineError, TranslationError, MissingExtraError.
        """
        return cls.from_folders(
            [path],
            device,
            engine=engine,
            precision=precision,
            threads=threads,
            shortlist=shortlist,
            on_notice=on_notice,
        )

    @classmethod
    def from_folders(
        cls,
        paths: Sequence[str | Path],
        device: str = "auto",
        *,
        engine: str = "auto",
        precision: str = "auto",
        threads: int | None = None,
        shortlist: str | Path | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> Self:
        """Load several models that translate together: at each step the mean of their probabilities counts.

        Settings absent from a request are the first folder's; the limits are the lowest. Raises TranslationError where
        vocabularies or languages differ, and what ``from_folder`` raises.
        """
        folders = [ModelFolder.open(Path(path)) for path in paths]
        if not folders:
            raise TranslationError("translate/translator: found no model folder; wanted one or more.")
        for folder in folders:
            check_kind(folder, "translate")
        compute = Compute(device, engine, precision, threads, None if shortlist is None else Path(shortlist))
        return cls.around(load_backend(folders, compute=compute, on_notice=on_notice), folders)

    @classmethod
    def around(cls, backend: "Backend", folders: Sequence[ModelFolder]) -> Self:
        """Put a translator around what computes with the models of these folders, the first of which has the say."""
        first = folders[0]
        limits = [limit for folder in folders if (limit := longest_output(folder.config.model)) is not None]
        return cls(
            backend,
            first.source_tokenizer,
            first.target_tokenizer,
            max_source_tokens=min(folder.config.max_source_tokens for folder in folders),
            source_language=first.config.source_language,
            target_language=first.config.target_language,
            search=first.config.search,
            max_output_tokens=min(limits, default=None),
            tags=first.config.tags,
        )

    @property
    def leads_to_phrases(self) -> bool:
        """Whether outputs can be led to phrases; the compiled engine cannot, where torch may not take its place."""
        return self.backend.leads_to_phrases

    @property
    def takes_all(self) -> bool:
        """Whether what computes wants as many sentences at once as there are; its results never depend on how many."""
        return self.backend.batch_tokens == UNLIMITED

    def tagged(self, tag: str) -> Self:
        """The same translator, but with this tag before every source. Raises TranslationError for an unknown one."""
        self._tag_ids(tag, 1)
        translator = copy(self)
        translator.tag = tag
        return translator

    def cancelled_by(self, cancel: Cancel) -> Self:
        """The same translator, of the same model, whose calls end with CancelledError once ``cancel`` is set."""
        translator = copy(self)
        translator.backend = self.backend.cancelled_by(cancel)
        return translator

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
        phrases: Sequence[Sequence[str]] | None = None,
        tags: Sequence[str] | None = None,
        with_alignment: bool = False,
    ) -> list[Translation]:
        r"""Translate each text; the results come in the same order, and a text of n lines gives n lines.

        Blank text comes back as it is, without the model. White space around a line is kept. A line end that the model
        itself writes becomes a space. ``target_prefixes`` holds what each output must begin with ("" is free); of a
        text in pieces, the first piece. ``phrases`` are the texts that each output must contain, a list a text
        (``headway.translate.phrases``); an output that lacks one is flagged. ``tags`` has the tag of each text, for a
        model that was trained with tags (absent: the translator's own, see ``tagged``). ``batch_tokens`` is the budget
        of padded source tokens times beam; it changes speed and memory, not results. ``decoding`` says how to search;
        ``beam_size``, ``length_penalty`` and ``n_best`` are short for its fields. Absent settings are the model's.
        Raises TranslationError for settings that cannot be met, TextError for a lone surrogate.
        """
        if isinstance(texts, str):
            raise TranslationError("translate/translator: found one string; wanted a list of texts: [text].")
        decoding = decoding_with(decoding, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best)
        request = _Request(
            replace(decoding.settings(self.search), reserved=tuple(self.target_tokenizer.tags.values())),
            n_best=decoding.n_best or 1,
            risk=decoding.risk,
            batch_tokens=batch_tokens,
            with_alignment=with_alignment,
        )
        by_sentence = self.search.split_sentences if decoding.split_sentences is None else decoding.split_sentences
        pieces = self._cutter.cut(texts, by_sentence=by_sentence)
        prefixes = self._encode_prefixes(target_prefixes, len(texts))
        tag_ids = self._tag_ids(tags, len(texts))
        wanted = check_phrases(phrases, len(texts))
        jobs = [
            job
            for prefix, own, tag, text_pieces in zip(prefixes, wanted, tag_ids, pieces, strict=True)
            for job in self._jobs(text_pieces, prefix, own, tag)
        ]
        found = iter(self._find(jobs, request))
        return [
            self._assemble(text_pieces, [next(found) for piece in text_pieces if piece.source_ids], own, request)
            for own, text_pieces in zip(wanted, pieces, strict=True)
        ]

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        tags: Sequence[str] | None = None,
        batch_tokens: int | None = None,
    ) -> list[PairScore]:
        """How probable each target is, given its source: forced decoding. Nothing is split, whatever its length.

        ``tags`` are as in ``translate``. White space around a text does not count, as in translating. Raises
        TranslationError for unequal counts.
        """
        source_ids, target_ids = self.encode(sources, targets, tags=tags)
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

    def encode(
        self, sources: Sequence[str], targets: Sequence[str], *, tags: Sequence[str] | None = None
    ) -> "tuple[list[Ids], list[Ids]]":
        """Token ids of both sides as the model reads them: a tag before each source that has one, EOS at the end.

        ``tags`` are as in ``translate``. White space around a text does not count. Raises TranslationError for unequal
        counts.
        """
        if len(sources) != len(targets):
            raise TranslationError(
                f"translate/translator: {len(sources):,} sources and {len(targets):,} targets; pairs need equal "
                "counts. Restore the original lists."
            )
        tag_ids = self._tag_ids(tags, len(sources))
        source_ids = self.source_tokenizer.encode_batch([source.strip() for source in sources])
        target_ids = self.target_tokenizer.encode_batch([target.strip() for target in targets])
        return (
            [(*tag, *ids, EOS_ID) for tag, ids in zip(tag_ids, source_ids, strict=True)],
            [(*ids, EOS_ID) for ids in target_ids],
        )

    def parts(self, text: str) -> list[str]:
        """The parts of a text that go through the model one by one, without white space around them; none if blank."""
        (pieces,) = self._cutter.cut([text], by_sentence=self.search.split_sentences)
        return [self.source_tokenizer.decode(piece.source_ids[:-1]) for piece in pieces if piece.source_ids]

    def output_limit(self, length: int) -> int:
        """The most output tokens, EOS counted, for a source (or prefix) of this length."""
        limit = length + self.search.max_extra_tokens
        return limit if self.max_output_tokens is None else min(limit, self.max_output_tokens)

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

    def _tag_ids(self, tags: Sequence[str] | str | None, num_texts: int) -> "list[Ids]":
        """What stands before each source: the id of its tag, or nothing. One tag is that of all texts."""
        tags = self.tag if tags is None else tags
        tags = [tags] * num_texts if isinstance(tags, str) else tags
        if len(tags) != num_texts:
            raise TranslationError(
                f"translate/translator: {len(tags):,} tags for {num_texts:,} texts; wanted one each. "
                "Give as many, or one for all with Translator.tagged."
            )
        known = self.tags or ("",)
        for tag in tags:
            if tag not in known:
                found = f"found the tag {tag!r}" if tag else "found no tag"
                if not any(known):
                    raise TranslationError(
                        f"translate/translator: {found}; the model was trained without tags. Leave --tag out."
                    )
                wanted = ", ".join(name or "none" for name in known)
                raise TranslationError(
                    f"translate/translator: {found}; the model's sources had these: {wanted}. Name one of them (--tag)."
                )
        return [(self.source_tokenizer.tag_id(tag),) if tag else () for tag in tags]

    def _jobs(self, pieces: list[Piece], prefix: "Ids", phrases: Sequence[str], tag: "Ids") -> list[_Job]:
        """What each piece with words asks of the model: the tag before its source; the prefix is the first one's."""
        dealt = self._phrases.deal(phrases, pieces)
        sources = [(*tag, *piece.source_ids) for piece in pieces if piece.source_ids]
        return [
            _Job(source_ids, prefix if place == 0 else (), own)
            for place, (source_ids, own) in enumerate(zip(sources, dealt, strict=True))
        ]

    def _find(self, jobs: list[_Job], request: _Request) -> list[_Found]:
        """Search for every job, in batches of similar length and equal width; the results come in the given order."""
        found: dict[int, _Found] = {}
        groups: dict[tuple[int, bool], list[int]] = {}
        for place, job in enumerate(jobs):
            groups.setdefault((self._width(job, request.settings), bool(job.phrases)), []).append(place)
        for (width, with_phrases), places in groups.items():
            backend = self.backend.serving(request.settings, with_phrases=with_phrases)
            budget = request.batch_tokens or backend.batch_tokens
            lengths = [self._length(jobs[place]) for place in places]
            for batch in plan_batches(lengths, batch_tokens=budget // max(width, 1)):
                chosen = [places[place] for place in batch]
                results = self._search([jobs[place] for place in chosen], request)
                found |= zip(chosen, results, strict=True)
        return [found[place] for place in range(len(jobs))]

    def _search(self, jobs: list[_Job], request: _Request) -> list[_Found]:
        """Search for a batch of jobs."""
        sources = [job.source_ids for job in jobs]
        with_phrases = any(job.phrases for job in jobs)
        hypotheses = self.backend.search(
            sources,
            prefixes=[job.prefix for job in jobs],
            limits=[self.output_limit(self._length(job)) for job in jobs],
            settings=request.settings,
            phrases=[job.phrases for job in jobs] if with_phrases else None,
            lexicon=self._phrases.lexicon if with_phrases else None,
        )
        if request.risk is not None:
            hypotheses = [self._by_utility(own, request.risk)[: request.n_best] for own in hypotheses]
        alignments = self._align(sources, hypotheses) if request.with_alignment else [()] * len(jobs)
        return [_Found(best, alignment) for best, alignment in zip(hypotheses, alignments, strict=True)]

    def _by_utility(self, samples: "list[Hypothesis]", risk: Risk) -> "list[Hypothesis]":
        """Samples of one source by what is to be expected of their texts."""
        texts = [self._text(hypothesis) for hypothesis in samples]
        return by_expected_utility(samples, texts, utility=risk.utility, target_language=self.target_language)

    def _text(self, hypothesis: "Hypothesis") -> str:
        """The text of an output, within one line."""
        return self.target_tokenizer.decode(hypothesis.token_ids).translate(_LINE_ENDS)

    def _width(self, job: _Job, settings: SearchSettings) -> int:
        """Hypotheses side by side."""
        return beam_width(self._phrases.lexicon, job.phrases, settings.width) if job.phrases else settings.width

    def _length(self, job: _Job) -> int:
        """Tokens of the source, or of what must be in the output where that is more."""
        needed = len(job.prefix) + (self._phrases.lexicon.fewest_tokens(job.phrases) if job.phrases else 0)
        return max(len(job.source_ids), needed)

    def _align(self, sources: "list[Ids]", hypotheses: "list[list[Hypothesis]]") -> list[tuple[tuple[int, int], ...]]:
        """For each best hypothesis, each target token with the source token it attended to most.

        EOS takes no part, and neither does a tag.
        """
        targets = [best[0].token_ids for best in hypotheses]
        reserved = set(self.source_tokenizer.tags.values())
        alignments: list[tuple[tuple[int, int], ...]] = [()] * len(sources)
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for batch in plan_batches(lengths, batch_tokens=ALIGNED_TOKENS):
            weights = self.backend.attend([sources[i] for i in batch], [targets[i] for i in batch])
            for place, pair in zip(batch, weights, strict=True):
                first = 1 if sources[place][0] in reserved else 0
                looked_at = pair[:-1, first:-1].argmax(axis=1)
                alignments[place] = tuple((int(source), target) for target, source in enumerate(looked_at))
        return alignments

    def _assemble(
        self, pieces: list[Piece], found: list[_Found], phrases: Sequence[str], request: _Request
    ) -> Translation:
        """One translation from those of its pieces."""
        count = max((len(piece.hypotheses) for piece in found), default=1)
        best, *others = [self._join(pieces, found, phrases, rank) for rank in range(count)]
        source_ids = [token for piece in pieces for token in piece.source_ids[:-1]]
        return replace(
            best,
            source_tokens=tuple(self.source_tokenizer.tokens(source_ids)),
            alignment=_join_alignments(pieces, found) if request.with_alignment else None,
            alternatives=tuple(others),
            num_pieces=len(found),
            is_long=any(piece.is_of_long for piece in pieces),
            num_unknown=source_ids.count(UNK_ID),
        )

    def _join(self, pieces: list[Piece], found: list[_Found], phrases: Sequence[str], rank: int) -> Translation:
        """The hypotheses of this rank (or the last there is) with the white space around them."""
        chosen = [piece.hypotheses[min(rank, len(piece.hypotheses) - 1)] for piece in found]
        words = iter(self._text(hypothesis) for hypothesis in chosen)
        token_ids = tuple(token for hypothesis in chosen for token in hypothesis.token_ids[:-1])
        text = "".join(piece.leading + (next(words) if piece.source_ids else "") + piece.trailing for piece in pieces)
        return Translation(
            text,
            score=sum(hypothesis.score for hypothesis in chosen) / max(len(chosen), 1),
            log_prob=sum((hypothesis.log_prob for hypothesis in chosen), 0.0),
            tokens=tuple(self.target_tokenizer.tokens(token_ids)),
            token_ids=token_ids,
            is_cut=any(hypothesis.is_cut for hypothesis in chosen),
            count=min((hypothesis.count for hypothesis in chosen), default=1),
            phrases_met=has_phrases(text, phrases),
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

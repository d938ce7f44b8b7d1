"""Sentences to trees with a trained model: the path of ``headway parse``, of validation, and of Python users."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headway.config.schema import ParsingConfig, SearchConfig
from headway.data.encoder import Encoder
from headway.data.treebank import source_coder
from headway.errors import TranslationError
from headway.folder.contents import ModelFolder
from headway.search.cancel import Cancel
from headway.search.settings import SearchSettings
from headway.search.tree_form import Brackets, TreeForm
from headway.text.tagged_words import join_tagged
from headway.text.tokenizer import EOS_ID, PAD_ID, UNK_ID, Tokenizer
from headway.translate.backend import load_backend
from headway.translate.compute import Compute
from headway.translate.kind import check_kind
from headway.translate.translator import longest_output, plan_batches
from headway.trees.linear import HIDDEN, Repairs, delinearise, label_of, style_of, symbol_of
from headway.trees.symbols import symbol_ids
from headway.trees.tree import Tree

if TYPE_CHECKING:
    from headway.search.hypothesis import Hypothesis
    from headway.translate.backend import Backend, Ids

NO_REPAIRS = Repairs()


@dataclass(frozen=True, slots=True)
class Parse:
    """A sentence's tree under TOP; None for a sentence without words.

    ``symbols`` is what the model wrote, ``repairs`` what had to be mended of it. ``score`` is log_prob / ((5 +
    length)/6)^length_penalty. ``is_cut``: the output reached its length limit. ``is_long``: the source has more tokens
    than any that the model was trained on. ``num_unknown``: source tokens that the vocabulary lacks, tags among them.
    """

    tree: Tree | None
    symbols: tuple[str, ...] = ()
    repairs: Repairs = NO_REPAIRS
    score: float = 0.0
    log_prob: float = 0.0
    is_cut: bool = False
    is_long: bool = False
    num_unknown: int = 0


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One sentence for the model: its words, the tags that its tree must have, and its source."""

    words: Sequence[str]
    tags: Sequence[str] | None
    source_ids: "Ids"
    leaves: "Ids"


class Parser:
    """A model that writes trees, with its vocabularies and settings.

    ``constrained``: outputs are searched among trees over the words; else they are whatever the model writes, mended.
    ``phrases``: the labels that its vocabulary opens.
    ``tags``: the corpus tags that sources were trained with, as in ``Translator``.
    """

    def __init__(
        self,
        backend: "Backend",
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        parsing: ParsingConfig,
        max_source_tokens: int,
        search: SearchConfig | None = None,
        max_output_tokens: int | None = None,
        tags: Sequence[str] = (),
        constrained: bool | None = None,
    ) -> None:
        self.backend = backend
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.parsing = parsing
        self.search = search or SearchConfig()
        self.max_source_tokens = max_source_tokens
        self.max_output_tokens = max_output_tokens
        self.tags = tuple(tags)
        self.constrained = parsing.constrained if constrained is None else constrained
        self.brackets = brackets_of(target_tokenizer)
        self._symbols = [name.removeprefix(" ") for name in target_tokenizer.names]
        self._ids = {symbol: token_id for token_id, symbol in enumerate(self._symbols)}
        self.phrases = phrases_of(target_tokenizer, self.brackets)
        self._encoder = Encoder(source_coder(source_tokenizer, parsing))

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        compute: Compute | None = None,
        constrained: bool | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> Self:
        """Load the model folder of a parser; see ``from_folders``."""
        return cls.from_folders([path], compute=compute, constrained=constrained, on_notice=on_notice)

    @classmethod
    def from_folders(
        cls,
        paths: Sequence[str | Path],
        *,
        compute: Compute | None = None,
        constrained: bool | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> Self:
        """Load several models that parse together: at each step the mean of their probabilities counts.

        ``compute`` says where and with what, as for translators: absent, on a CPU the compiled engine in 8 bits, where
        it can. ``constrained``: absent, as the first model's recipe has it. ``on_notice`` hears what a user should
        know. Raises TranslationError for models that are no parsers or do not go together, and as
        ``Translator.from_folders``.
        """
        folders = [ModelFolder.open(Path(path)) for path in paths]
        if not folders:
            raise TranslationError("translate/parser: found no model folder; wanted one or more.")
        first = folders[0]
        parsing = _parsing_of(folders)
        constrained = parsing.constrained if constrained is None else constrained
        limits = [limit for folder in folders if (limit := longest_output(folder.config.model)) is not None]
        return cls(
            load_backend(folders, compute=compute, on_notice=on_notice),
            first.source_tokenizer,
            first.target_tokenizer,
            parsing=parsing,
            max_source_tokens=min(folder.config.max_source_tokens for folder in folders),
            search=first.config.search,
            max_output_tokens=min(limits, default=None),
            tags=first.config.tags,
            constrained=constrained,
        )

    @property
    def needs_tags(self) -> bool:
        """Whether sentences must come with a tag for each word."""
        return self.parsing.tags == "given"

    def cancelled_by(self, cancel: Cancel) -> Self:
        """The same parser, of the same model, whose calls end with CancelledError once ``cancel`` is set."""
        parser = copy(self)
        parser.backend = self.backend.cancelled_by(cancel)
        return parser

    def parse(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        tags: Sequence[Sequence[str]] | None = None,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        word_reward: float | None = None,
        batch_tokens: int | None = None,
        corpus_tags: Sequence[str] | str = "",
    ) -> list[Parse]:
        """Parse sentences, each a list of words as a reader sees them (``(``, not ``-LRB-``); results in their order.

        ``tags`` has a tag for each word of each sentence, "" where it is not known; trees have these tags. A model
        that was trained with given tags needs them. A sentence is never split, whatever its length. ``corpus_tags`` is
        the tag of the corpus that the model should take each sentence for, one for all or one each. ``word_reward``:
        nats by which a hypothesis is ranked higher for each word that it has (search among trees alone).
        ``batch_tokens`` changes speed and memory, not results. Absent settings are the model's.
        Raises TranslationError for tags and settings that do not fit, TextError for words with spaces.
        """
        prepared = self._prepare(sentences, tags, corpus_tags)
        settings = SearchSettings(
            beam_size=self.search.beam_size if beam_size is None else beam_size,
            length_penalty=self.search.length_penalty if length_penalty is None else length_penalty,
            reserved=tuple(self.target_tokenizer.tags.values()),
        )
        reward = self.parsing.word_reward if word_reward is None else word_reward
        parses = [Parse(None)] * len(sentences)
        places = [place for place, sentence in enumerate(prepared) if sentence.words]
        backend = self.backend.serving(settings, with_phrases=False)
        budget = batch_tokens or backend.batch_tokens
        lengths = [len(prepared[place].source_ids) for place in places]
        for batch in plan_batches(lengths, batch_tokens=budget // max(settings.width, 1)):
            chosen = [places[i] for i in batch]
            limits = [self._limit(prepared[place]) for place in chosen]
            found = self._search(backend, [prepared[place] for place in chosen], limits, settings, reward)
            for place, hypothesis, limit in zip(chosen, found, limits, strict=True):
                parses[place] = self._parse_of(prepared[place], hypothesis, limit=limit)
        return parses

    def _prepare(
        self,
        sentences: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None,
        corpus_tags: Sequence[str] | str,
    ) -> list[_Sentence]:
        """Each sentence as the model reads it."""
        if isinstance(sentences, str) or any(isinstance(words, str) for words in sentences):
            raise TranslationError(
                "translate/parser: found a string; wanted sentences as lists of words: text.split()."
            )
        self._check_tags(sentences, tags)
        before = self._corpus_ids(corpus_tags, len(sentences))
        texts = [
            join_tagged(words, [tag or HIDDEN for tag in tags[place]] if tags is not None else [HIDDEN] * len(words))
            for place, words in enumerate(sentences)
        ]
        encoded = self._encoder.encode(texts)
        ends = encoded.lengths.cumsum().tolist()
        ids = encoded.ids.tolist()
        prepared: list[_Sentence] = []
        for place, words in enumerate(sentences):
            source_ids = (*before[place], *ids[ends[place] - int(encoded.lengths[place]) : ends[place]], EOS_ID)
            own = None if tags is None else tags[place]
            prepared.append(_Sentence(words, own, source_ids, self._leaves(words, own)))
        return prepared

    def _check_tags(self, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]] | None) -> None:
        if tags is None:
            if self.needs_tags:
                raise TranslationError(
                    "translate/parser: found no tags; the model was trained to read a tag with every word. "
                    "Give them, or take a model that predicts tags."
                )
            return
        if len(tags) != len(sentences):
            raise TranslationError(
                f"translate/parser: tags for {len(tags):,} sentences, and {len(sentences):,} sentences; wanted equal "
                "counts. Give the tags of each sentence."
            )
        for number, (words, own) in enumerate(zip(sentences, tags, strict=True), start=1):
            if len(words) != len(own):
                raise TranslationError(
                    f"translate/parser: sentence {number:,} has {len(words):,} words and {len(own):,} tags; wanted one "
                    "tag a word. Mend the tags."
                )

    def _corpus_ids(self, tags: Sequence[str] | str, count: int) -> "list[Ids]":
        """What stands before each source: the token of its corpus, or nothing."""
        tags = [tags] * count if isinstance(tags, str) else tags
        if len(tags) != count:
            raise TranslationError(
                f"translate/parser: {len(tags):,} corpus tags for {count:,} sentences; wanted one each, or one for all."
            )
        known = self.tags or ("",)
        for tag in dict.fromkeys(tags):
            if tag not in known:
                wanted = ", ".join(name or "none" for name in known)
                raise TranslationError(
                    f"translate/parser: found the corpus tag {tag!r}; the model's sources had these: {wanted}. "
                    "Name one of them (--tag)."
                )
        return [(self.source_tokenizer.tag_id(tag),) if tag else () for tag in tags]

    def _leaves(self, words: Sequence[str], tags: Sequence[str] | None) -> "Ids":
        """For each word the token that must stand for it, PAD where any leaf may: without a tag, or one never seen."""
        if tags is None or style_of(self.parsing.style).hides_tags:
            return (PAD_ID,) * len(words)
        leaves = frozenset(self.brackets.leaves)
        ids = (self._ids.get(symbol_of(tag), PAD_ID) if tag else PAD_ID for tag in tags)
        return tuple(token_id if token_id in leaves else PAD_ID for token_id in ids)

    def _search(
        self,
        backend: "Backend",
        sentences: list[_Sentence],
        limits: list[int],
        settings: SearchSettings,
        word_reward: float,
    ) -> "list[Hypothesis]":
        """The best output of each sentence."""
        leaves = [sentence.leaves for sentence in sentences]
        form = None
        if self.constrained:
            form = TreeForm(self.brackets, leaves, self.parsing.max_openings, leaf_reward=word_reward)
        found = backend.search(
            [sentence.source_ids for sentence in sentences],
            prefixes=[()] * len(sentences),
            limits=limits,
            settings=settings,
            form=form,
        )
        return [hypotheses[0] for hypotheses in found]

    def _limit(self, sentence: _Sentence) -> int:
        """The most output tokens, EOS counted. TranslationError where the model has too few positions."""
        length, most = len(sentence.source_ids), self.max_output_tokens
        if most is not None and max(length, len(sentence.words) + 1) > most:
            raise TranslationError(
                f"translate/parser: a sentence of {len(sentence.words):,} words has {length:,} tokens, end of sentence "
                f"counted; the model has {most:,} positions. Parse it in parts, or take a model without learned ones."
            )
        limit = length + self.search.max_extra_tokens
        return limit if most is None else min(limit, most)

    def _parse_of(self, sentence: _Sentence, hypothesis: "Hypothesis", *, limit: int) -> Parse:
        """The tree of an output.

        A phrase is two tokens, so a tree that its limit squeezed may end one token before it.
        """
        symbols = tuple("" if token_id == UNK_ID else self._symbols[token_id] for token_id in hypothesis.token_ids[:-1])
        found = delinearise(symbols, sentence.words, sentence.tags, style=self.parsing.style, phrases=self.phrases)
        return Parse(
            found.tree,
            symbols=symbols,
            repairs=found.repairs,
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            is_cut=hypothesis.is_cut or (self.constrained and len(hypothesis.token_ids) >= limit - 1),
            is_long=len(sentence.source_ids) > self.max_source_tokens,
            num_unknown=list(sentence.source_ids).count(UNK_ID),
        )


def brackets_of(tokenizer: Tokenizer) -> Brackets:
    """Which tokens of a vocabulary of symbols open, close and fill nodes."""
    found = symbol_ids(tokenizer.names)
    return Brackets(found.opening, closing=found.closing, leaves=found.leaves, vocab_size=tokenizer.vocab_size)


def phrases_of(tokenizer: Tokenizer, brackets: Brackets) -> frozenset[str]:
    """The labels of phrases that a vocabulary of symbols opens."""
    return frozenset(label_of(tokenizer.names[token_id].removeprefix(" ")) for token_id in brackets.opening)


def _parsing_of(folders: Sequence[ModelFolder]) -> ParsingConfig:
    """How all these models write sources and outputs. Raises TranslationError for one that is no parser, or differs."""
    first = folders[0]
    for folder in folders:
        check_kind(folder, "parse")
        differing = [
            name
            for name in ("style", "tags", "words")
            if getattr(folder.config.parsing, name) != getattr(first.config.parsing, name)
        ]
        if differing:
            raise TranslationError(
                f"translate/parser: {folder.path} differs from {first.path} in parsing.{differing[0]}; models parse "
                "together when they read and write trees in one way. Leave this one out."
            )
    assert first.config.parsing is not None
    return first.config.parsing

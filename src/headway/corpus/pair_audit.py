"""What an audit sees in a pair by itself: its encoding, scripts, lengths and contents."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from headway.config.data_config import CleanConfig, DataConfig
from headway.corpus.clean import FILTERS
from headway.corpus.encoding_damage import damage_of, is_composed
from headway.corpus.finding import Tally
from headway.corpus.pair import SentencePair
from headway.corpus.script import scripts_of_language, share_in

Marks = Callable[[str], Sequence[str]]  # the placeholders and tags of a text

_TOKENS_A_WORD = 4 / 3
_TOKENS_A_CHARACTER = 0.7  # in scripts without spaces
_SPACELESS = frozenset({"Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"})
_STRAY_LETTERS = 0.1  # share of the letters of a text that are in its language's scripts, and yet it is in another

_NOT_DIGIT = re.compile(r"\D+")
_TOKEN_SIGNS = (" ,", " .", " @-@ ", " &apos;")
_TOKENISED = re.compile(r"(?<=\S) [,.](?: |$)|\w @-@ \w|\w &apos;s?\b")


class PairAudit:
    """Looks at one pair after another and counts what is wrong with it in the tally of its file.

    ``scripts_wanted``: of each side, those that its language is written in. ``marks`` gives a text's placeholders and
    tags. Filters are those of the default ``[clean]``.
    """

    def __init__(self, source_language: str, target_language: str, *, marks: Marks | None = None) -> None:
        self.scripts_wanted = (scripts_of_language(source_language), scripts_of_language(target_language))
        self._marks = marks
        self._is_too_long = FILTERS["too long"](CleanConfig())
        self._is_uneven = FILTERS["ratio"](CleanConfig())
        self._max_tokens = DataConfig().max_tokens

    def see(
        self,
        pair: SentencePair,
        stripped: SentencePair,
        scripts: tuple[str, str],
        loose_sides: tuple[str, str],
        tally: Tally,
    ) -> bool:
        """Count the faults of a pair, given it without white space around, and each side's main script and loose form.

        Tells whether it is fit for the sample: both sides are there and made of characters.
        """
        is_whole = self._see_encoding(pair, tally)
        if not stripped.source:
            tally.add("empty-source", pair)
        if not stripped.target:
            tally.add("empty-target", pair)
        if not (stripped.source and stripped.target):
            return False
        self._see_scripts(pair, scripts, loose_sides, tally)
        self._see_lengths(pair, scripts, tally)
        self._see_contents(stripped, loose_sides, tally)
        return is_whole

    def _see_encoding(self, pair: SentencePair, tally: Tally) -> bool:
        """Count damage; tells whether both texts are made of characters."""
        damage = dict.fromkeys([*damage_of(pair.source), *damage_of(pair.target)])
        for kind in damage:
            tally.add(kind, pair)
        if not (is_composed(pair.source) and is_composed(pair.target)):
            tally.add("not-composed", pair)
        if _is_tokenised(pair.source) or _is_tokenised(pair.target):
            tally.add("tokenised", pair)
        return "surrogate" not in damage

    def _see_scripts(
        self, pair: SentencePair, scripts: tuple[str, str], loose_sides: tuple[str, str], tally: Tally
    ) -> None:
        """Count texts with hardly a letter of their language's scripts; names and codes in Latin are usual in all."""
        wrong = [
            bool(script and wanted and script not in wanted)
            for script, wanted in zip(scripts, self.scripts_wanted, strict=True)
        ]
        if not any(wrong) or loose_sides[0] == loose_sides[1]:  # a name that was copied
            return
        for number, text in enumerate((pair.source, pair.target)):
            wrong[number] = wrong[number] and share_in(text, self.scripts_wanted[number]) < _STRAY_LETTERS
        if all(wrong) and scripts[0] in self.scripts_wanted[1] and scripts[1] in self.scripts_wanted[0]:
            tally.add("sides-swapped", pair, f"{scripts[0]} | {scripts[1]}")
            return
        for kind, script, is_wrong in zip(("source-script", "target-script"), scripts, wrong, strict=True):
            if is_wrong:
                tally.add(kind, pair, script)

    def _see_lengths(self, pair: SentencePair, scripts: tuple[str, str], tally: Tally) -> None:
        if self._is_too_long is not None and self._is_too_long(pair):
            tally.add("too-long", pair, f"{len(pair.source):,} | {len(pair.target):,} characters")
        elif any(
            self._tokens(text, script) > self._max_tokens
            for text, script in zip((pair.source, pair.target), scripts, strict=True)
        ):
            tally.add("many-words", pair)
        if self._is_uneven is not None and self._is_uneven(pair):
            tally.add("ratio", pair, f"{len(pair.source):,} | {len(pair.target):,} characters")

    def _tokens(self, text: str, script: str) -> float:
        """About how many tokens a text has; short ones are not looked at."""
        if len(text) <= self._max_tokens:
            return 0.0
        return len(text) * _TOKENS_A_CHARACTER if script in _SPACELESS else len(text.split()) * _TOKENS_A_WORD

    def _see_contents(self, pair: SentencePair, loose_sides: tuple[str, str], tally: Tally) -> None:
        if loose_sides[0] == loose_sides[1] and loose_sides[0] and any(map(str.isalpha, pair.source)):
            tally.add("copy" if pair.source == pair.target else "near-copy", pair)
        numbers = _digits(pair.source), _digits(pair.target)
        if numbers[0] != numbers[1]:
            tally.add("numbers-differ", pair)
        if self._marks is not None:
            marks = self._marks(pair.source), self._marks(pair.target)
            if marks[0] != marks[1] and sorted(marks[0]) != sorted(marks[1]):
                tally.add("marks-differ", pair, _told(*marks))


def _is_tokenised(text: str) -> bool:
    """Whether a text looks split into tokens; most has not one of the signs, and looking for these is quick."""
    return any(sign in text for sign in _TOKEN_SIGNS) and _TOKENISED.search(text) is not None


def _digits(text: str) -> list[str]:
    """All digits of a text, sorted: separators and order play no part, nor whether they are raised or full-width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    digits = _NOT_DIGIT.sub("", text)
    return sorted(digits if digits.isascii() else [str(int(digit)) for digit in digits])


def _told(source: Sequence[str], target: Sequence[str]) -> str:
    """Which marks are on one side only, or more often there."""
    sides = Counter(source), Counter(target)
    beyond = {"source": sides[0] - sides[1], "target": sides[1] - sides[0]}
    parts = [f"{side} only: {' '.join(mark[:60] for mark in marks)}" for side, marks in beyond.items() if marks]
    return "; ".join(parts)[:200]

"""One tree as EVALB sees it, and one parse against its reference: which brackets match, cross, and have their tags.

The published program (Sekine and Collins 1997, public domain) is the definition; docs/trees.md says it in words.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from headway.metrics.evalb_parameters import Parameters
from headway.trees.tree import Tree

SCORED, ERROR, SKIPPED = 0, 1, 2  # EVALB's "Stat."
MISSING = "no parse"
_FUNCTION = re.compile(r"[-=].*", re.DOTALL)
_QUOTES = frozenset({"'", '"', "/"})


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """What a parse got right. Brackets and words are those that the parameters leave in.

    ``status`` is EVALB's: 0 scored, 1 error (other words than the reference has), 2 skipped (no words). ``failure``
    says why, and is "" where the parse counts. For a failed one ``gold_brackets`` and ``words`` are what it misses, and
    the other counts are 0.
    """

    length: int
    status: int
    failure: str
    matched_brackets: int
    gold_brackets: int
    test_brackets: int
    crossing_brackets: int
    words: int
    correct_tags: int

    @property
    def is_complete(self) -> bool:
        """Whether the parse has all brackets of the reference and no other."""
        return not self.failure and self.matched_brackets == self.gold_brackets == self.test_brackets


@dataclass(slots=True)
class _Bracket:
    label: str
    start: int
    end: int


@dataclass(slots=True)
class _Quote:
    """A quotation mark: the word before which it stands, and the brackets that begin after it or are open around it."""

    word: str
    tag: str
    index: int
    next_bracket: int
    open_brackets: tuple[int, ...]


class _Sentence:
    """Words, tags and brackets of a tree, without what the parameters delete."""

    def __init__(self, tree: Tree | None, parameters: Parameters) -> None:
        self.words: list[str] = []
        self.tags: list[str] = []
        self.brackets: list[_Bracket] = []
        self.quotes: list[_Quote] = []
        self.length = 0
        self.bare_word = ""  # the first word without a tag of its own
        self._parameters = parameters
        opened: list[int] = []
        rest: list[Tree | str | None] = [] if tree is None else [tree]  # None: the innermost bracket closes
        while rest:
            part = rest.pop()
            if part is None:
                self.brackets[opened.pop()].end = len(self.words)
            elif isinstance(part, str):
                self.bare_word = self.bare_word or part
            elif part.is_preterminal:
                self._add_word(str(part.children[0]), part.label, tuple(opened))
            else:
                opened.append(len(self.brackets))
                self.brackets.append(_Bracket(part.label, len(self.words), 0))
                rest.append(None)
                rest.extend(reversed(part.children))

    def real_brackets(self) -> list[tuple[str, int, int]]:
        """Brackets that count, with their labels cut at the first hyphen or equals sign."""
        found: list[tuple[str, int, int]] = []
        for bracket in self.brackets:
            label = _FUNCTION.sub("", bracket.label)
            is_deleted = any(self._parameters.same_label(label, deleted) for deleted in self._parameters.delete_labels)
            if bracket.start != bracket.end and not is_deleted:
                found.append((label, bracket.start, bracket.end))
        return found

    def restore(self, number: int) -> None:
        """Put a quotation mark back that was deleted."""
        quote = self.quotes[number]
        self.words.insert(quote.index, quote.word)
        self.tags.insert(quote.index, quote.tag)
        for bracket in self.brackets[quote.next_bracket :]:
            bracket.start += 1
            bracket.end += 1
        for around in quote.open_brackets:
            self.brackets[around].end += 1
        for later in self.quotes[number:]:
            later.index += 1

    def _add_word(self, word: str, tag: str, opened: tuple[int, ...]) -> None:
        parameters = self._parameters
        if tag not in parameters.delete_labels_for_length:
            self.length += 1
        if tag in parameters.quote_labels and word in _QUOTES:
            self.quotes.append(_Quote(word, tag, len(self.words), len(self.brackets), opened))
        if tag not in parameters.delete_labels:
            self.words.append(word)
            self.tags.append(tag)


def score_sentence(hypothesis: Tree | None, reference: Tree, *, parameters: Parameters) -> SentenceScore:
    """Compare a parse with its reference; None is a parser that found nothing."""
    gold, test = _Sentence(reference, parameters), _Sentence(hypothesis, parameters)
    num_brackets, num_words = len(gold.real_brackets()), len(gold.words)
    status, failure = _failure(gold, test, parameters)
    if hypothesis is None:
        failure = MISSING
    if status == SKIPPED and not failure:  # nothing but what is deleted, on both sides
        return SentenceScore(gold.length, SKIPPED, "", 0, 0, 0, 0, 0, 0)
    if failure:
        return SentenceScore(gold.length, status, failure, 0, num_brackets, 0, 0, num_words, 0)
    gold_brackets, test_brackets = gold.real_brackets(), test.real_brackets()
    return SentenceScore(
        length=gold.length,
        status=SCORED,
        failure="",
        matched_brackets=_matched(gold_brackets, test_brackets, parameters),
        gold_brackets=len(gold_brackets),
        test_brackets=len(test_brackets),
        crossing_brackets=_crossing(gold_brackets, test_brackets),
        words=len(gold.words),
        correct_tags=sum(map(parameters.same_label, gold.tags, test.tags)),
    )


def first_bare_word(tree: Tree) -> str:
    """The first word without a tag of its own, by which EVALB cannot read the tree; "" where there is none."""
    return _Sentence(tree, Parameters()).bare_word


def _failure(gold: _Sentence, test: _Sentence, parameters: Parameters) -> tuple[int, str]:
    """EVALB's status, and why the parse cannot be compared; restores quotation marks."""
    if test.bare_word:
        return ERROR, f"the word {test.bare_word!r} has no tag"
    if not test.words:
        return SKIPPED, "no words" if gold.words else ""
    if len(gold.words) != len(test.words):
        found = f"{len(test.words)} words, wanted {len(gold.words)}"
        _restore_quotes(gold, test, parameters)
        if len(gold.words) != len(test.words):
            return ERROR, found
    for ours, theirs in zip(gold.words, test.words, strict=True):
        if not parameters.same_word(ours, theirs):
            return ERROR, f"the word {theirs!r}, wanted {ours!r}"
    return SCORED, ""


def _restore_quotes(gold: _Sentence, test: _Sentence, parameters: Parameters) -> None:
    """Put quotation marks back that one side lost by their tag where the other, with another tag, kept them."""
    deleted = parameters.delete_labels
    for test_number, theirs in enumerate(test.quotes):
        index = theirs.index
        for gold_number, ours in enumerate(gold.quotes):
            if ours.index != index or (ours.tag in deleted) == (theirs.tag in deleted):
                continue
            if ours.tag in deleted:
                gold.restore(gold_number)
            else:
                test.restore(test_number)


def _matched(gold: list[tuple[str, int, int]], test: list[tuple[str, int, int]], parameters: Parameters) -> int:
    """How many brackets of the reference find one of the parse, each at most one."""
    labels_at: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for label, start, end in test:
        labels_at[start, end].append(label)
    matched = 0
    for label, start, end in gold:
        left = labels_at[start, end]
        for number, found in enumerate(left):
            if not parameters.labeled or parameters.same_label(label, found):
                del left[number]
                matched += 1
                break
    return matched


def _crossing(gold: list[tuple[str, int, int]], test: list[tuple[str, int, int]]) -> int:
    """How many brackets of the parse overlap one of the reference without one holding the other."""
    spans = {(start, end) for _, start, end in gold}
    return sum(
        any(start < begin < end < stop or begin < start < stop < end for start, end in spans) for _, begin, stop in test
    )

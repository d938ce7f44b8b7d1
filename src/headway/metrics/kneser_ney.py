"""Modified Kneser-Ney smoothing, interpolated: what a neural language model is measured beside.

Kneser and Ney 1995; Chen and Goodman 1999.
With c(h w) how often w follows the history h, and D one of three discounts, by whether the count is 1, 2 or more:

    p(w | h) = max(c(h w) - D(c(h w)), 0) / c(h .) + g(h) p(w | h'),   g(h) = (D1 n1(h) + D2 n2(h) + D3 n3+(h)) / c(h .)

where h' is h without its first token and n1(h) how many different tokens follow h once. At the longest history counts
are those of the text. Below, c(h w) is how many different tokens stand before h w, but for a history that begins a
line: nothing stands before it, and its count is that of the text. The shortest history, none, is interpolated with the
uniform distribution over the vocabulary, so that every token of it has a probability in every context.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.errors import MetricError

BEGIN, END = "", "\n"  # of a line: no word is empty or holds a line end
FALLBACK = (0.5, 1.0, 1.5)  # discounts where a text is too small to tell them

History = tuple[str, ...]


@dataclass(slots=True)
class _Followers:
    """What follows one history: counts of tokens, their sum, and how many have a count of 1, of 2, of 3 or more."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    total: int = 0
    different: tuple[int, int, int] = (0, 0, 0)

    def settle(self) -> None:
        """Sum up, once all is counted."""
        self.total = sum(self.counts.values())
        by_count = Counter(min(count, 3) for count in self.counts.values())
        self.different = (by_count[1], by_count[2], by_count[3])


@dataclass(frozen=True, slots=True)
class KneserNey:
    """An n-gram model of lines of tokens. ``vocabulary``: what may come next, END among it."""

    order: int
    vocabulary: frozenset[str]
    tables: Sequence[Mapping[History, _Followers]]  # by the length of the history, from 0
    discounts: Sequence[tuple[float, float, float]]  # the same

    @classmethod
    def fit(cls, lines: Iterable[Sequence[str]], *, order: int = 5, vocabulary: Collection[str]) -> "KneserNey":
        """Count lines of tokens, all of which must be in the ``vocabulary`` (END need not be named).

        Raises MetricError for an order below 1, no lines, or a token outside the vocabulary.
        """
        if order < 1:
            raise MetricError(f"metrics/kneser_ney: the order is {order}; wanted 1 (single tokens) or more.")
        known = frozenset(vocabulary) | {END}
        whole = _count(lines, order, known)
        tables = _tables(whole, order)
        return cls(order, known, tables, [_discounts(table) for table in tables])

    def probability(self, token: str, history: Sequence[str]) -> float:
        """That ``token`` comes next; ``history`` begins with BEGIN where the line begins, and may be of any length.

        Raises MetricError for a token outside the vocabulary.
        """
        if token not in self.vocabulary:
            raise MetricError(f"metrics/kneser_ney: {token!r} is not in the vocabulary; wanted a token of it, or END.")
        probability = 1.0 / len(self.vocabulary)
        longest = min(self.order - 1, len(history))
        for length in range(longest + 1):
            context = tuple(history[len(history) - length :])
            followers = self.tables[length].get(context)
            if followers is None:  # then no longer one was seen either
                break
            discounts = self.discounts[length]
            count = followers.counts.get(token, 0)
            kept = max(count - discounts[min(count, 3) - 1], 0.0) if count else 0.0
            shared = sum(one * number for one, number in zip(discounts, followers.different, strict=True))
            probability = (kept + shared * probability) / followers.total
        return probability

    def log_prob(self, line: Sequence[str]) -> float:
        """The natural log-probability of a line and its end."""
        tokens = [BEGIN, *line, END]
        return sum(
            math.log(self.probability(tokens[place], tokens[max(0, place - self.order + 1) : place]))
            for place in range(1, len(tokens))
        )


def _count(lines: Iterable[Sequence[str]], order: int, known: frozenset[str]) -> list[Counter[History]]:
    """The n-grams of the text by their length, from 1; of the shorter ones only those that begin a line."""
    whole: list[Counter[History]] = [Counter() for _ in range(order)]
    num_lines = 0
    for line in lines:
        num_lines += 1
        if unknown := next((token for token in line if token not in known), None):
            raise MetricError(
                f"metrics/kneser_ney: line {num_lines:,}: {unknown!r} is not in the vocabulary. "
                "Add it, or put another token in its place first."
            )
        tokens = (BEGIN, *line, END)
        for last in range(1, len(tokens)):
            first = max(0, last - order + 1)
            whole[last - first][tokens[first : last + 1]] += 1
    if not num_lines:
        raise MetricError("metrics/kneser_ney: found 0 lines to count; wanted at least 1. Give another file.")
    return whole


def _tables(whole: list[Counter[History]], order: int) -> list[dict[History, _Followers]]:
    """Who follows which history how often, from the longest histories to none: see the head of this file."""
    counts: list[Counter[History]] = [Counter() for _ in range(order)]
    counts[order - 1] = whole[order - 1]
    for length in range(order - 1, 0, -1):
        if length < order - 1:
            counts[length] += whole[length]  # which begin a line
        for gram in counts[length]:
            counts[length - 1][gram[1:]] += 1
    return [_followers(each) for each in counts]


def _followers(counts: Counter[History]) -> dict[History, _Followers]:
    table: defaultdict[History, _Followers] = defaultdict(_Followers)
    for gram, count in counts.items():
        table[gram[:-1]].counts[gram[-1]] = count
    for followers in table.values():
        followers.settle()
    return dict(table)


def _discounts(table: Mapping[History, _Followers]) -> tuple[float, float, float]:
    """D1, D2 and D3+ from how many n-grams have the counts 1 to 4 (Chen and Goodman 1999, equation 26)."""
    of = Counter(count for followers in table.values() for count in followers.counts.values() if count <= 4)
    if not (of[1] and of[2] and of[3] and of[4]):
        return FALLBACK
    share = of[1] / (of[1] + 2 * of[2])
    found = tuple(k - (k + 1) * share * of[k + 1] / of[k] for k in (1, 2, 3))
    if any(not 0.0 <= discount <= k for k, discount in enumerate(found, 1)):
        return FALLBACK
    return found[0], found[1], found[2]

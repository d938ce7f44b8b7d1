"""What goes wrong with outputs as a whole, counted without a score: empty, repeating, the same again, copied."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

REPEATS = 4  # a run of words, or of characters, this often one after the other is a loop
LOOP_WORDS = 8  # the longest run of words that is looked for
LOOP_CHARACTERS = 8  # characters that a loop of characters fills at least
_CHARACTER_LOOP = re.compile(rf"(.{{1,{LOOP_CHARACTERS}}}?)\1{{{REPEATS - 1},}}")
COPIED_WORDS = 0.8  # of an output's words, four at least, that stand in the source, is a copy ...
REFERENCE_WORDS = 0.5  # ... where less than this part of the reference's words does
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """An output that shows something, with its source and reference."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True, slots=True)
class OutputCounts:
    """Of ``num`` outputs: how many show what. ``same``: the most references that one single output answers.

    ``num_characters`` and ``num_reference_characters`` are without white space. ``shown``: name of a count -> the
    first output of those it counts.
    """

    num: int = 0
    empty: int = 0
    looping: int = 0
    same: int = 0
    copied: int = 0
    num_characters: int = 0
    num_reference_characters: int = 0
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])


def count_outputs(sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> OutputCounts:
    """Count what outputs show that their references do not: a reference that is empty, loops or is a copy excuses."""
    found: dict[str, list[Shown]] = {"empty": [], "looping": [], "copied": []}
    of_output: dict[str, dict[str, Shown]] = {}
    num_characters = num_reference_characters = 0
    for source, reference, output in zip(sources, references, outputs, strict=True):
        shown = Shown(source, reference, output)
        for name, holds in (("empty", _is_empty), ("looping", _loops), ("copied", _is_copy)):
            if holds(shown):
                found[name].append(shown)
        of_output.setdefault(output.strip(), {}).setdefault(reference.strip(), shown)
        num_characters += _size(output)
        num_reference_characters += _size(reference)
    same = max((answered for output, answered in of_output.items() if output), key=len, default={})
    firsts = {name: examples[0] for name, examples in found.items() if examples}
    if same:
        firsts["same"] = next(iter(same.values()))
    return OutputCounts(
        num=len(outputs),
        empty=len(found["empty"]),
        looping=len(found["looping"]),
        same=len(same),
        copied=len(found["copied"]),
        num_characters=num_characters,
        num_reference_characters=num_reference_characters,
        shown=firsts,
    )


def loop_of(text: str) -> str:
    """What a text says four times or more, one after the other: words, or characters that fill eight places; or ""."""
    words = text.split()
    for period in range(1, min(LOOP_WORDS, len(words) // REPEATS) + 1):
        run = 0
        for place in range(period, len(words)):
            run = run + 1 if words[place] == words[place - period] else 0
            if run == (REPEATS - 1) * period:
                return " ".join(words[place - period + 1 : place + 1])
    for match in _CHARACTER_LOOP.finditer(text):
        if len(match[0]) >= LOOP_CHARACTERS and match[1].strip():
            return match[1]
    return ""


def _is_empty(shown: Shown) -> bool:
    return not shown.output.strip() and bool(shown.reference.strip())


def _loops(shown: Shown) -> bool:
    return bool(loop_of(shown.output)) and not loop_of(shown.reference)


def _is_copy(shown: Shown) -> bool:
    source, reference, output = (text.casefold().split() for text in (shown.source, shown.reference, shown.output))
    if not output or reference == source:
        return False
    if output == source:
        return True
    if len(output) < _FEWEST_WORDS:
        return False
    known = set(source)
    return _share_in(output, known) >= COPIED_WORDS and _share_in(reference, known) < REFERENCE_WORDS


def _share_in(words: Sequence[str], known: set[str]) -> float:
    return sum(word in known for word in words) / max(len(words), 1)


def _size(text: str) -> int:
    return len("".join(text.split()))

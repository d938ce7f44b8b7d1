"""What EVALB is told by its parameter files (.prm): labels to leave out, labels and words that count as the same.

COLLINS holds the values of EVALB's COLLINS.prm, by which parsers of the Penn Treebank are compared.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from headway.corpus.compression import FilePath
from headway.corpus.lines import name_of, read_lines
from headway.errors import MetricError
from headway.trees.escape import unescape_word

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Parameters:
    """How brackets are compared. The defaults are EVALB's own, for what a file does not name.

    ``debug`` is read and changes nothing here: rows of single sentences are always there to be shown. ``max_errors``:
    EVALB stops before its end when it meets 2 more; scores say so, and go on. A label of ``delete_labels`` takes words
    with it when it is their tag; of phrases it takes the brackets alone. ``quote_labels``: tags of quotation marks,
    which are put back when the two sides delete different ones.
    """

    debug: int = 0
    max_errors: int = 10
    cutoff_length: int = 40
    labeled: bool = True
    delete_labels: tuple[str, ...] = ()
    delete_labels_for_length: tuple[str, ...] = ()
    quote_labels: tuple[str, ...] = ()
    equal_labels: Pairs = ()
    equal_words: Pairs = ()

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels count as the same."""
        return one == other or (one, other) in self.equal_labels or (other, one) in self.equal_labels

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as the same."""
        return one == other or (one, other) in self.equal_words or (other, one) in self.equal_words


COLLINS = Parameters(
    delete_labels=("TOP", "-NONE-", ",", ":", "``", "''", "."),
    delete_labels_for_length=("-NONE-",),
    equal_labels=(("ADVP", "PRT"),),
)
NEW = replace(  # new.prm: other names of the root, and quotation marks that one side takes for something else
    COLLINS,
    delete_labels=("TOP", "S1", "-NONE-", ",", ":", "``", "''", ".", "?", "!"),
    quote_labels=("``", "''", "POS", "NN", "CD", "VBZ", ":"),
)
PARAMETERS = {"collins": COLLINS, "new": NEW}


def read_parameters(path: FilePath) -> Parameters:
    """Read a parameter file of EVALB: a key and its value a line; ``#`` begins a comment line.

    Departure: a key that EVALB does not know, or a value that does not fit it, is an error; EVALB warns and goes on.
    As in EVALB, lines of fewer than 3 characters say nothing, and what is said twice holds as said last, but for
    labels and words, which add up.

    Raises:
        MetricError: an unknown key or a value that does not fit; the message names the line.
        CorpusError: the file cannot be read.

    """
    parameters = Parameters()
    for number, line in enumerate(read_lines(path), 1):
        text = line.rstrip()
        if text.startswith("#") or len(text) < 3:
            continue
        key, *values = text.split()
        where = f"metrics/evalb_parameters: {name_of(path)} line {number:,}"
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            raise MetricError(
                f"{where}: found the key {key!r}; wanted one of {', '.join(_KEYS)}. "
                f"{f'Write {near[0]}' if near else 'Remove the line'}."
            )
        known = _KEYS[key]
        try:
            if len(values) != known.num_values:
                raise ValueError(key)
            parameters = known.change(parameters, *values)
        except ValueError:
            raise MetricError(
                f"{where}: found {' '.join([key, *values])!r}; wanted {known.wanted}. Write {key} {known.example}."
            ) from None
    return parameters


def _switch(value: str) -> bool:
    if value not in {"0", "1"}:
        raise ValueError(value)
    return value == "1"


def _count(value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise ValueError(value)
    return int(value)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a parameter file: how many values it takes, what they do, and what to say when they do not fit."""

    num_values: int
    change: Callable[..., Parameters]
    wanted: str
    example: str


_NUMBER, _LABEL = "one whole number, 0 or more", "one label"
_KEYS = {
    "DEBUG": _Key(1, lambda known, value: replace(known, debug=_count(value)), _NUMBER, "0"),
    "MAX_ERROR": _Key(1, lambda known, value: replace(known, max_errors=_count(value)), _NUMBER, "10"),
    "CUTOFF_LEN": _Key(1, lambda known, value: replace(known, cutoff_length=_count(value)), _NUMBER, "40"),
    "LABELED": _Key(1, lambda known, value: replace(known, labeled=_switch(value)), "0 or 1", "1"),
    "DELETE_LABEL": _Key(
        1, lambda known, label: replace(known, delete_labels=(*known.delete_labels, label)), _LABEL, "TOP"
    ),
    "DELETE_LABEL_FOR_LENGTH": _Key(
        1,
        lambda known, label: replace(known, delete_labels_for_length=(*known.delete_labels_for_length, label)),
        _LABEL,
        "-NONE-",
    ),
    "QUOTE_LABEL": _Key(
        1, lambda known, label: replace(known, quote_labels=(*known.quote_labels, label)), _LABEL, "POS"
    ),
    "EQ_LABEL": _Key(
        2, lambda known, *pair: replace(known, equal_labels=(*known.equal_labels, pair)), "two labels", "ADVP PRT"
    ),
    "EQ_WORD": _Key(
        2,
        lambda known, *pair: replace(known, equal_words=(*known.equal_words, tuple(map(unescape_word, pair)))),
        "two words",
        "This this",
    ),
}

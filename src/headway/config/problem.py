"""What is wrong with a recipe, told: where it was said, what was found, what is wanted."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic_core import ErrorDetails

from headway.config.keys import Key, known_keys, sections
from headway.config.toml import to_toml_value

# pydantic's name of an error -> what was wanted, filled in from the error's context
WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "model_type": "a section of keys",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
    "list_type": "a list of tables",
    "string_too_short": "a name",
    "string_pattern_mismatch": "letters, digits, and . _ - after the first",
    "literal_error": "{expected}",
}


@dataclass(frozen=True)
class Origin:
    """Where each key was said, for error messages: the recipe's name, lines from 1, and the ``--set`` values."""

    name: str = ""
    lines: Mapping[Key, int] = field(default_factory=dict[Key, int])
    overrides: Mapping[Key, str] = field(default_factory=dict[Key, str])

    def of(self, key: Key, *, problem: str = "") -> str:
        """Say where a key was given, as ``train.toml line 12``.

        What is wrong with a section as a whole is told where the first key that ``problem`` names was given.
        """
        if key not in self.overrides:
            key = self._named(key, problem) or key
        if key in self.overrides:
            return f"--set {self.overrides[key]}"
        if key in self.lines:
            return f"{self.name} line {self.lines[key]}"
        return self.name or "settings"

    def _named(self, section: Key, problem: str) -> Key:
        """The key of a section (``()`` for any) that stands first in the text of a problem, --set before the recipe."""
        for given in (self.overrides, self.lines):
            places = {
                key: found.start()
                for key in given
                if len(key) > max(len(section), 1) and key[: len(section)] == section and not key[-1].isdigit()
                for found in [re.search(rf"\b{re.escape(key[-1])}\b", problem)]
                if found
            }
            if places:
                return min(places, key=lambda key: places[key])
        return ()


def key_of(detail: ErrorDetails) -> Key:
    """The key that one of pydantic's errors is about."""
    return tuple(str(part) for part in detail["loc"])


def explain(detail: ErrorDetails, origin: Origin) -> str:
    """Turn one of pydantic's errors into: where, key, found, wanted."""
    key, kind, context = key_of(detail), detail["type"], detail.get("ctx", {})
    where, name = origin.of(key), ".".join(key)
    if kind == "extra_forbidden":
        inside = [text for said, text in origin.overrides.items() if said[: len(key)] == key]
        where = f"--set {inside[0]}" if inside and key not in origin.lines else where
        return f"{where}: unknown {_name_unknown(key, detail['input'])}"
    if kind == "missing":
        return f"{origin.of(key[:-1])}: {name} is missing"
    if kind == "value_error":
        return f"{origin.of(key, problem=str(context['error']))}: {context['error']}"
    if kind in WANTED:
        return f"{where}: {name}: found {shown(detail['input'])}, wanted {WANTED[kind].format(**context)}"
    return f"{where}: {name}: found {shown(detail['input'])}: {detail['msg']}"


def _name_unknown(key: Key, value: object) -> str:
    names = sections()
    if len(key) == 1 and isinstance(value, dict):
        near = difflib.get_close_matches(key[0], names, n=1)
        return f"section [{key[0]}]; " + (f"the nearest is [{near[0]}]" if near else f"there are {', '.join(names)}")
    name, last = ".".join(key), key[-1]
    key = tuple(part for part in key if not part.isdigit())  # the number of a table
    homes = [".".join(known) for known in sorted(known_keys()) if known[-1] == last]
    siblings = [known[-1] for known in known_keys() if known[:-1] == key[:-1]]
    near = difflib.get_close_matches(last, sorted(siblings), n=1)
    everywhere = difflib.get_close_matches(name, sorted(".".join(known) for known in known_keys()), n=1, cutoff=0.0)
    if homes:
        nearest = homes[0]
    elif near:
        nearest = ".".join((*key[:-1], near[0]))
    else:
        nearest = everywhere[0]
    return f"key {name}; the nearest is {nearest}"


def shown(value: object) -> str:
    """Write a value as TOML would have it, cut to what a line can hold."""
    if isinstance(value, dict):
        return "a section"
    text = to_toml_value(value) if isinstance(value, str | int | float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

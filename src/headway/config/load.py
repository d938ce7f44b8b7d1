"""From a recipe, a preset's name and ``--set`` values to a RunConfig, and back to TOML.

A recipe is a TOML file with the sections of RunConfig. Its ``[model]`` may start from a named model,
``preset = "base"``; the section's other keys then change that model. ``--set section.key=value`` comes last and changes
one key. Its value follows TOML, with two easements: a bare word is a string (``no`` stays the language code "no"), and
an empty value takes the key back to its default. ``--set model.preset=tiny`` comes after the recipe too: sizes and
dropout are those of that model, whatever the recipe has, but for keys with a ``--set`` of their own.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headway.config.presets import AUTO, PRESETS, SIZES
from headway.config.schema import RunConfig
from headway.errors import ConfigError

Key = tuple[str, ...]
Table = dict[str, object]

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
_HEADER = re.compile(r"\s*(\[{1,2})\s*([^\[\]]+?)\s*\]")
_ASSIGNMENT = re.compile(r"\s*([\w\-.\"' \t]+?)\s*=")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


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


class Change(NamedTuple):
    """One key whose value differs between two configurations."""

    key: str
    old: object
    new: object


@dataclass(frozen=True)
class Draft:
    """A recipe changed by ``--set`` values and not checked yet, so that what it leaves open may be filled in."""

    table: Mapping[str, object]
    origin: Origin

    def given(self) -> Table:
        """What it has, as ``section.key``, to the value."""
        flat: Table = {}
        for section, value in self.table.items():
            inner = value.items() if isinstance(value, dict) else ()
            flat.update({f"{section}.{key}": entry for key, entry in inner})
        return flat

    def config(self, chosen: Mapping[str, object] | None = None) -> RunConfig:
        """Check it and fill in the defaults, ``chosen`` (``section.key`` to value) before them.

        Raises ConfigError as ``load`` does.
        """
        merged = deepcopy(dict(self.table))
        for name, value in (chosen or {}).items():
            section, _, key = name.partition(".")
            inside = merged.setdefault(section, {})
            if isinstance(inside, dict):  # else it is told below
                inside.setdefault(key, value)
        return _checked(merged, self.origin)


def load(recipe: str | Path, *, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a recipe: the name of a packaged one (a str such as ``demo``), or the path of a TOML file.

    A packaged name wins over a file of the same name; ``./demo`` means the file. Raises ConfigError, with every problem
    in one message, each with its line.
    """
    return read_draft(recipe, overrides=overrides).config()


def read_draft(recipe: str | Path, *, overrides: Sequence[str] = ()) -> Draft:
    """As ``load``, of what is not checked yet; raises ConfigError for what is no recipe and no ``--set`` value."""
    if isinstance(recipe, str) and recipe in recipe_names():
        content = files("headway.config").joinpath("recipes", f"{recipe}.toml").read_bytes()
    else:
        content = _read(Path(recipe))
    return draft_text(_decode(content, str(recipe)), name=str(recipe), overrides=overrides)


def load_text(text: str, *, name: str = "recipe", overrides: Sequence[str] = ()) -> RunConfig:
    """Read a recipe from its TOML text; ``name`` stands for it in error messages."""
    return draft_text(text, name=name, overrides=overrides).config()


def draft_text(text: str, *, name: str = "recipe", overrides: Sequence[str] = ()) -> Draft:
    """As ``load_text``, of what is not checked yet."""
    try:
        table: Table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_explain_toml(error, text, name)) from None
    return _draft(table, name=name, lines=_key_lines(text), overrides=overrides)


def load_preset(name: str, *, overrides: Sequence[str] = ()) -> RunConfig:
    """Give the configuration of a named model, all else at its default; raises ConfigError for an unknown name."""
    return build({"model": {"preset": name}}, name=name, overrides=overrides)


def build(
    table: Mapping[str, object],
    *,
    name: str = "",
    lines: Mapping[Key, int] | None = None,
    overrides: Sequence[str] = (),
) -> RunConfig:
    """Check a table of sections, changed by ``--set`` values, and fill in the defaults."""
    return _draft(table, name=name, lines=lines or {}, overrides=overrides).config()


def _draft(table: Mapping[str, object], *, name: str, lines: Mapping[Key, int], overrides: Sequence[str]) -> Draft:
    merged = deepcopy(dict(table))
    said = dict(_parse_override(text) for text in overrides)
    origin = Origin(name, lines, {key: text for key, (text, _) in said.items()})
    _resolve_preset(merged, origin, said)
    for key, (text, value) in said.items():
        if key != ("model", "preset"):
            _put(merged, key, text=text, value=value)
    return Draft(merged, origin)


def _checked(table: Table, origin: Origin) -> RunConfig:
    try:
        return RunConfig.model_validate(table)
    except ValidationError as error:
        details = sorted(error.errors(include_url=False), key=lambda detail: origin.lines.get(_key(detail), 0))
        problems = [_explain(detail, origin) for detail in details]
    if len(problems) == 1:
        raise ConfigError(f"config/load: {problems[0]}.")
    listed = "; ".join(f"({number}) {problem}" for number, problem in enumerate(problems, 1))
    raise ConfigError(f"config/load: {len(problems)} problems: {listed}.")


def recipe_names() -> list[str]:
    """List the packaged recipes by name, in alphabetical order."""
    found = files("headway.config").joinpath("recipes").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in found if entry.name.endswith(".toml"))


def to_toml(config: RunConfig, *, everything: bool = True) -> str:
    """Write a configuration as a recipe that ``load`` reads back to an equal one.

    With ``everything`` false only the keys that differ from the defaults are written. Keys without a value (None) are
    absent.
    """
    settings = config.model_dump(exclude_none=True, exclude_defaults=not everything)
    top = [f"{key} = {_to_toml_value(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    blocks = ["\n".join(top)] if top else []
    for section, value in settings.items():
        if isinstance(value, dict):
            blocks.append(_to_toml_table(f"[{section}]", value))
            for key, entry in value.items():
                blocks += [_to_toml_table(f"[[{section}.{key}]]", table) for table in _tables(entry)]
    return "\n\n".join(blocks) + "\n"


def _to_toml_table(header: str, table: Table) -> str:
    """A header and its keys; lists of tables have headers of their own."""
    return "\n".join(
        [header, *(f"{key} = {_to_toml_value(value)}" for key, value in table.items() if not _tables(value))]
    )


def _tables(value: object) -> list[Table]:
    """The tables of a list of tables; of anything else none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def difference(old: RunConfig, new: RunConfig) -> list[Change]:
    """List the keys, as ``section.key``, whose values differ, in the schema's order."""
    before, after = _flatten(old), _flatten(new)
    return [Change(key, before[key], after[key]) for key in before if before[key] != after[key]]


def _flatten(config: RunConfig) -> Table:
    flat: Table = {}
    for section, value in config.model_dump().items():
        if isinstance(value, dict):
            flat.update({f"{section}.{key}": entry for key, entry in value.items()})
        else:
            flat[section] = value
    return flat


# Reading -------------------------------------------------------------------------------------------------------------


def _read(path: Path) -> bytes:
    names = recipe_names()
    try:
        return path.read_bytes()
    except FileNotFoundError:
        stem = path.name.removesuffix(".toml")
        near = difflib.get_close_matches(stem, names, n=1)
        hint = f"the nearest packaged recipe is {near[0]}" if near else "packaged recipes are " + ", ".join(names)
        raise ConfigError(f"config/load: {path}: there is no such file; {hint}. Give a TOML file or a name.") from None
    except IsADirectoryError:
        raise ConfigError(
            f"config/load: {path} is a folder; wanted a recipe, a TOML file. A run's own is training/recipe.toml in "
            "its folder; to begin with a model that is there, say --init."
        ) from None
    except OSError as error:
        raise ConfigError(f"config/load: {path} cannot be read: {error.strerror}. Check its path and rights.") from None


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")  # Windows editors put a byte order mark first, which TOML does not know
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x}"
        raise ConfigError(
            f"config/load: {name} line {line}: found {found}, which is not UTF-8. Save the recipe as UTF-8."
        ) from None


def _explain_toml(error: tomllib.TOMLDecodeError, text: str, name: str) -> str:
    message = str(error)
    where = f"{name} line {text.count(chr(10)) + 1}"
    if match := _POSITION.search(message):
        message = message[: match.start()]
        if match[1]:
            where = f"{name} line {match[1]} column {match[2]}"
    remedy = 'text stands in quotes, as in name = "text"; a file of text to train on is named by --source'
    if "\\" in message:
        remedy = r"text with backslashes stands in single quotes, as in train_source = 'C:\texts\memory.tmx'"
    return f"config/load: {where}: not TOML: {message}. Mend that line; {remedy}."


def _key_lines(text: str) -> dict[Key, int]:
    """Find the line of each key and section header; a key in a form not foreseen here is only left without its line."""
    lines: dict[Key, int] = {}
    section: Key = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            section = _split_key(header[2])
            if header[1] == "[[":  # one of several tables: its number, from 0, is a part of the key, as in pydantic's
                section += (str(sum(1 for key in lines if key[:-1] == section)),)
            lines.setdefault(section, number)
        elif assignment := _ASSIGNMENT.match(line):
            lines.setdefault(section + _split_key(assignment[1]), number)
    return lines


def _split_key(text: str) -> Key:
    """Split a dotted key as TOML does; () when it is none."""
    try:
        table: object = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    key: Key = ()
    while isinstance(table, dict):
        name, table = next(iter(table.items()))
        key += (name,)
    return key


# Overrides and presets -----------------------------------------------------------------------------------------------


def _parse_override(text: str) -> tuple[Key, tuple[str, object]]:
    """Take ``section.key=value`` apart into its key and (text, value)."""
    name, equals, written = text.partition("=")
    text = text.replace("\r", "\\r").replace("\n", "\\n")  # what errors show stays one line
    key = tuple(part.strip() for part in name.split("."))
    if not equals or not all(key):
        raise ConfigError(f"config/load: --set {text}: wanted section.key=value, as in model.d_model=256.")
    if len(key) == 1 and key[0] in _sections():
        raise ConfigError(
            f"config/load: --set {text}: {key[0]} is a section. Set its keys one by one, as {key[0]}.key=value."
        )
    try:
        written.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"config/load: --set {text!a}: the value is not valid UTF-8. Rename the file.") from None
    return key, (text, _parse_value(written.strip(), key, text))


def _parse_value(written: str, key: Key, text: str) -> object:
    try:
        table = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError as error:
        if written[:1] in ("'", '"'):
            raise ConfigError(f"config/load: --set {text}: the value is not TOML: {error}. Close its quotes.") from None
        return written
    value = table["value"]
    if len(table) > 1 or (key in _text_keys() and not isinstance(value, str)):
        return written  # a file called 2024, a column number, the language code `nan`
    return value


def _put(table: Table, key: Key, *, text: str, value: object) -> None:
    """Set one key of a table of sections, or take it out when its value is empty and it is not text."""
    for section in key[:-1]:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"config/load: --set {text}: {section} is not a section.")
        table = inner
    if value == "" and key not in _text_keys() and text.endswith("="):
        table.pop(key[-1], None)
        if key not in _known_keys():
            table[key[-1]] = value  # an unknown key stays, so that it is reported
    else:
        table[key[-1]] = value


def _resolve_preset(table: Table, origin: Origin, said: Mapping[Key, tuple[str, object]]) -> None:
    """Replace ``model.preset`` by the keys of that model.

    The recipe's own sizes win over its own preset; a preset of ``--set`` wins over the recipe's sizes.
    """
    model = table.get("model", {})
    key = ("model", "preset")
    if not isinstance(model, dict) or not ("preset" in model or key in said):
        return
    name = model.pop("preset", None)
    name = said[key][1] if key in said else name
    if name == "":
        return
    if name == AUTO:
        raise ConfigError(
            f"config/load: {origin.of(key)}: {AUTO} is no model: it chooses from the training text, so it is given as "
            "`headway train --preset auto`. Take it out here."
        )
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(
            f"config/load: {origin.of(key)}: there is no preset {_show(name)}; wanted one of {', '.join(PRESETS)}."
        )
    if key in said:
        model = {own: value for own, value in model.items() if own not in SIZES}
    table["model"] = PRESETS[name].model_dump(exclude_unset=True) | model


# What the schema knows -----------------------------------------------------------------------------------------------


def _sections() -> dict[str, type[BaseModel]]:
    return {
        name: info.annotation
        for name, info in RunConfig.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
    }


def _fields() -> Iterator[tuple[Key, object]]:
    sections = _sections()
    for name, info in RunConfig.model_fields.items():
        if name not in sections:
            yield (name,), info.annotation
    for section, kind in sections.items():
        for name, info in kind.model_fields.items():
            yield (section, name), info.annotation
            for table in get_args(info.annotation):  # of a list of tables
                if isinstance(table, type) and issubclass(table, BaseModel):
                    yield from (((section, name, key), inner.annotation) for key, inner in table.model_fields.items())
    yield ("model", "preset"), str


def _known_keys() -> set[Key]:
    return {key for key, _ in _fields()}


def _text_keys() -> set[Key]:
    return {key for key, kind in _fields() if kind is str}


# Telling what is wrong -----------------------------------------------------------------------------------------------


def _key(detail: ErrorDetails) -> Key:
    return tuple(str(part) for part in detail["loc"])


def _explain(detail: ErrorDetails, origin: Origin) -> str:
    """Turn one of pydantic's errors into: where, key, found, wanted."""
    key, kind, context = _key(detail), detail["type"], detail.get("ctx", {})
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
        return f"{where}: {name}: found {_show(detail['input'])}, wanted {WANTED[kind].format(**context)}"
    return f"{where}: {name}: found {_show(detail['input'])}: {detail['msg']}"


def _name_unknown(key: Key, value: object) -> str:
    sections = _sections()
    if len(key) == 1 and isinstance(value, dict):
        near = difflib.get_close_matches(key[0], sections, n=1)
        return f"section [{key[0]}]; " + (f"the nearest is [{near[0]}]" if near else f"there are {', '.join(sections)}")
    name, last = ".".join(key), key[-1]
    key = tuple(part for part in key if not part.isdigit())  # the number of a table
    homes = [".".join(known) for known in sorted(_known_keys()) if known[-1] == last]
    siblings = [known[-1] for known in _known_keys() if known[:-1] == key[:-1]]
    near = difflib.get_close_matches(last, sorted(siblings), n=1)
    everywhere = difflib.get_close_matches(name, sorted(".".join(known) for known in _known_keys()), n=1, cutoff=0.0)
    if homes:
        nearest = homes[0]
    elif near:
        nearest = ".".join((*key[:-1], near[0]))
    else:
        nearest = everywhere[0]
    return f"key {name}; the nearest is {nearest}"


def _show(value: object) -> str:
    """Write a value as TOML would have it, cut to what a line can hold."""
    if isinstance(value, dict):
        return "a section"
    text = _to_toml_value(value) if isinstance(value, str | int | float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _to_toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML is stricter on DEL alone
    return repr(value)

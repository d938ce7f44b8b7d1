"""From a recipe, a preset's name and ``--set`` values to a RunConfig.

A recipe is a TOML file with the sections of RunConfig. Its ``[model]`` may start from a named model,
``preset = "base"``; the section's other keys then change that model. ``--set section.key=value`` comes last and changes
one key (``override.py``). ``--set model.preset=tiny`` comes after the recipe too: sizes and dropout are those of that
model, whatever the recipe has, but for keys with a ``--set`` of their own.
"""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from headway.config.keys import Key
from headway.config.override import parse_override, put
from headway.config.presets import AUTO, PRESETS, SIZES
from headway.config.problem import Origin, explain, key_of, shown
from headway.config.schema import RunConfig
from headway.config.toml import Table, explain_toml, key_lines
from headway.errors import ConfigError


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
        raise ConfigError(f"config/load: {explain_toml(error, text, name)}") from None
    return _draft(table, name=name, lines=key_lines(text), overrides=overrides)


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
    said = dict(parse_override(text) for text in overrides)
    origin = Origin(name, lines, {key: text for key, (text, _) in said.items()})
    _resolve_preset(merged, origin, said)
    for key, (text, value) in said.items():
        if key != ("model", "preset"):
            put(merged, key, text=text, value=value)
    return Draft(merged, origin)


def _checked(table: Table, origin: Origin) -> RunConfig:
    try:
        return RunConfig.model_validate(table)
    except ValidationError as error:
        details = sorted(error.errors(include_url=False), key=lambda detail: origin.lines.get(key_of(detail), 0))
        problems = [explain(detail, origin) for detail in details]
    if len(problems) == 1:
        raise ConfigError(f"config/load: {problems[0]}.")
    listed = "; ".join(f"({number}) {problem}" for number, problem in enumerate(problems, 1))
    raise ConfigError(f"config/load: {len(problems)} problems: {listed}.")


def recipe_names() -> list[str]:
    """List the packaged recipes by name, in alphabetical order."""
    found = files("headway.config").joinpath("recipes").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in found if entry.name.endswith(".toml"))


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
            f"config/load: {origin.of(key)}: there is no preset {shown(name)}; wanted one of {', '.join(PRESETS)}."
        )
    if key in said:
        model = {own: value for own, value in model.items() if own not in SIZES}
    table["model"] = PRESETS[name].model_dump(exclude_unset=True) | model

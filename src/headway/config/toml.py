"""Recipes as TOML text: written, where in the text each key stands, and what is wrong with a text that is none."""

import json
import re
import tomllib

from headway.config.keys import Key
from headway.config.schema import RunConfig

Table = dict[str, object]

_HEADER = re.compile(r"\s*(\[{1,2})\s*([^\[\]]+?)\s*\]")
_ASSIGNMENT = re.compile(r"\s*([\w\-.\"' \t]+?)\s*=")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def to_toml(config: RunConfig, *, everything: bool = True) -> str:
    """Write a configuration as a recipe that ``load`` reads back to an equal one.

    With ``everything`` false only the keys that differ from the defaults are written. Keys without a value (None) are
    absent.
    """
    settings = config.model_dump(exclude_none=True, exclude_defaults=not everything)
    top = [f"{key} = {to_toml_value(value)}" for key, value in settings.items() if not isinstance(value, dict)]
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
        [header, *(f"{key} = {to_toml_value(value)}" for key, value in table.items() if not _tables(value))]
    )


def _tables(value: object) -> list[Table]:
    """The tables of a list of tables; of anything else none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def to_toml_value(value: object) -> str:
    """A text, a number or a truth value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML is stricter on DEL alone
    return repr(value)


def explain_toml(error: tomllib.TOMLDecodeError, text: str, name: str) -> str:
    """What is wrong with a text that is no TOML: where, what, and what to do."""
    message = str(error)
    where = f"{name} line {text.count(chr(10)) + 1}"
    if match := _POSITION.search(message):
        message = message[: match.start()]
        if match[1]:
            where = f"{name} line {match[1]} column {match[2]}"
    remedy = 'text stands in quotes, as in name = "text"; a file of text to train on is named by --source'
    if "\\" in message:
        remedy = r"text with backslashes stands in single quotes, as in train_source = 'C:\texts\memory.tmx'"
    return f"{where}: not TOML: {message}. Mend that line; {remedy}."


def key_lines(text: str) -> dict[Key, int]:
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

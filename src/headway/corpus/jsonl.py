"""One file, one JSON object a line, each with a text for either side."""

import json
from collections.abc import Iterator
from typing import cast

from headway.corpus.lines import FilePath, name_of, read_lines
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError

_KEYS_NAMED = 8  # in an error message


def read_jsonl(path: FilePath, *, languages: tuple[str, str], fields: tuple[str, str]) -> Iterator[SentencePair]:
    r"""Yield the pairs of a JSON Lines file; ``fields`` are the keys of source and target.

    An empty field stands for the language code, and where a line does not have both keys, for ``source`` and
    ``target``. Both keys may stand in the object itself or in an object under its key ``translation``. Texts may
    hold anything JSON can, ``\n`` included, but no half of a surrogate pair, which no file could hold.

    Raises:
        CorpusError: a line that is no JSON object, lacks a key or has something else than text there.

    """
    name = name_of(path)
    choices = _key_choices(name, languages, fields)
    for number, line in enumerate(read_lines(path), 1):
        place = f"{name} line {number:,}"
        record = _parse(line, place)
        source, target = _find(record, choices, place)
        yield SentencePair(source, target, number)


def _key_choices(name: str, languages: tuple[str, str], fields: tuple[str, str]) -> list[tuple[str, str]]:
    """The pairs of keys to look for, best first."""
    if fields[0] and fields[0] == fields[1]:
        raise CorpusError(
            f"corpus/jsonl: {name}: source and target both have the key {fields[0]!r}, wanted two keys. "
            f"Remedy: set source_field and target_field to different keys."
        )
    choices: list[tuple[str, str]] = []
    for source_default, target_default in (languages, ("source", "target")):
        keys = (fields[0] or source_default, fields[1] or target_default)
        if all(keys) and keys[0] != keys[1] and keys not in choices:
            choices.append(keys)
    return choices


def _parse(line: str, place: str) -> dict[str, object]:
    try:
        value: object = json.loads(line)
    except json.JSONDecodeError as error:
        found = f"no JSON ({error.msg}, column {error.colno})" if line.strip() else "an empty line"
        raise _no_object(place, found) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets nested beyond measure
        raise _no_object(place, f"JSON that cannot be taken in ({error})") from error
    if not isinstance(value, dict):
        raise _no_object(place, f"a JSON {_type_name(value)}")
    return cast(dict[str, object], value)


def _no_object(place: str, found: str) -> CorpusError:
    return CorpusError(
        f"corpus/jsonl: {place}: found {found}, wanted one JSON object. "
        f"Remedy: write one object a line (for a file that is one array: jq -c '.[]' FILE > NEWFILE)."
    )


def _find(record: dict[str, object], choices: list[tuple[str, str]], place: str) -> tuple[str, str]:
    nested = record.get("translation")
    objects = [record, cast(dict[str, object], nested)] if isinstance(nested, dict) else [record]
    for holder in objects:
        for source_key, target_key in choices:
            if source_key in holder and target_key in holder:
                return _text(holder, source_key, place), _text(holder, target_key, place)
    wanted = " or ".join(f"{source!r} and {target!r}" for source, target in choices)
    keys = [repr(key) for holder in reversed(objects) for key in holder]
    more = f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else ""
    raise CorpusError(
        f"corpus/jsonl: {place}: found the keys {', '.join(keys[:_KEYS_NAMED]) or '(none)'}{more}; wanted {wanted}. "
        f"Remedy: set source_field and target_field to the keys of the file."
    )


def _text(holder: dict[str, object], key: str, place: str) -> str:
    value = holder[key]
    if not isinstance(value, str):
        raise CorpusError(
            f"corpus/jsonl: {place}: found {_type_name(value)} under {key!r}, wanted a string. "
            f"Remedy: write the text as a string, or take the line out."
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"corpus/jsonl: {place}: found half of a surrogate pair (\\u{ord(value[error.start]):04x}) under {key!r}, "
            f"wanted text that UTF-8 can hold. Remedy: mend the text, or take the line out."
        ) from error
    return value


def _type_name(value: object) -> str:
    names: dict[type, str] = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        int: "number",
        float: "number",
    }
    return names.get(type(value), "null")

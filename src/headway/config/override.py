"""``--set section.key=value``: read, and put into a table of sections.

Its value follows TOML, with two easements: a bare word is a string (``no`` stays the language code "no"), and an empty
value takes the key back to its default.
"""

import tomllib

from headway.config.keys import Key, known_keys, sections, text_keys
from headway.config.toml import Table
from headway.errors import ConfigError


def parse_override(text: str) -> tuple[Key, tuple[str, object]]:
    """Take ``section.key=value`` apart into its key and (text, value)."""
    name, equals, written = text.partition("=")
    text = text.replace("\r", "\\r").replace("\n", "\\n")  # what errors show stays one line
    key = tuple(part.strip() for part in name.split("."))
    if not equals or not all(key):
        raise ConfigError(f"config/override: --set {text}: wanted section.key=value, as in model.d_model=256.")
    if len(key) == 1 and key[0] in sections():
        raise ConfigError(
            f"config/override: --set {text}: {key[0]} is a section. Set its keys one by one, as {key[0]}.key=value."
        )
    try:
        written.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"config/override: --set {text!a}: the value is not valid UTF-8. Rename the file.") from None
    return key, (text, _parse_value(written.strip(), key, text))


def _parse_value(written: str, key: Key, text: str) -> object:
    try:
        table = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError as error:
        if written[:1] in ("'", '"'):
            raise ConfigError(
                f"config/override: --set {text}: the value is not TOML: {error}. Close its quotes."
            ) from None
        return written
    value = table["value"]
    if len(table) > 1 or (key in text_keys() and not isinstance(value, str)):
        return written  # a file called 2024, a column number, the language code `nan`
    return value


def put(table: Table, key: Key, *, text: str, value: object) -> None:
    """Set one key of a table of sections, or take it out when its value is empty and it is not text."""
    for section in key[:-1]:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"config/override: --set {text}: {section} is not a section.")
        table = inner
    if value == "" and key not in text_keys() and text.endswith("="):
        table.pop(key[-1], None)
        if key not in known_keys():
            table[key[-1]] = value  # an unknown key stays, so that it is reported
    else:
        table[key[-1]] = value

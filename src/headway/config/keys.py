"""The keys that a recipe may have, as the schema knows them."""

from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel

from headway.config.schema import RunConfig

Key = tuple[str, ...]  # section, key; of one of several tables its number between


def sections() -> dict[str, type[BaseModel]]:
    """The sections by name, each with the class of its keys."""
    return {
        name: info.annotation
        for name, info in RunConfig.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)
    }


def _fields() -> Iterator[tuple[Key, object]]:
    tables = sections()
    for name, info in RunConfig.model_fields.items():
        if name not in tables:
            yield (name,), info.annotation
    for section, kind in tables.items():
        for name, info in kind.model_fields.items():
            yield (section, name), info.annotation
            for table in get_args(info.annotation):  # of a list of tables
                if isinstance(table, type) and issubclass(table, BaseModel):
                    yield from (((section, name, key), inner.annotation) for key, inner in table.model_fields.items())
    yield ("model", "preset"), str


def known_keys() -> set[Key]:
    """Every key that there is."""
    return {key for key, _ in _fields()}


def text_keys() -> set[Key]:
    """Those whose value is text, whatever it looks like."""
    return {key for key, kind in _fields() if kind is str}

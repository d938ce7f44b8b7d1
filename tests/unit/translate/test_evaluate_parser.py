"""What a parser's evaluation says of tags, by its recipe."""

import pytest

from headway.config.schema import ParsingConfig
from headway.translate.evaluate_parser import tag_source


@pytest.mark.parametrize(
    ("style", "tags", "wanted"),
    [
        ("tags", "given", "given"),
        ("xx", "given", "given"),
        ("tags", "predicted", "predicted"),
        ("binary", "predicted", "predicted"),
        ("xx", "predicted", "hidden"),
        ("binary-xx", "predicted", "hidden"),
    ],
)
def test_tags_are_read_written_or_hidden(style, tags, wanted):
    assert tag_source(ParsingConfig(style=style, tags=tags)) == wanted

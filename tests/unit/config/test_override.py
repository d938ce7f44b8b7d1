"""config/override.py and keys.py: what a ``--set`` is read as."""

import pytest

from headway.config.keys import known_keys, sections, text_keys
from headway.config.override import parse_override, put
from headway.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("model.d_model=256", ("model", "d_model"), 256),
        ("train.learning_rate = 1e-3", ("train", "learning_rate"), 1e-3),
        ("data.source_language=no", ("data", "source_language"), "no"),
        ("data.train_source=2024", ("data", "train_source"), "2024"),
        ("train.average='last'", ("train", "average"), "last"),
        ("title=a = b", ("title",), "a = b"),
    ],
)
def test_a_value_follows_toml_and_a_bare_word_is_text(text, key, value):
    found, (said, parsed) = parse_override(text)
    assert (found, said, parsed) == (key, text, value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model.d_model", "wanted section.key=value"),
        ("model=3", "model is a section"),
        ("train.average='last", "Close its quotes"),
        ("data.train_source=\udcff", "not valid UTF-8"),
    ],
)
def test_what_is_no_setting_is_refused(text, told):
    with pytest.raises(ConfigError, match=rf"^config/override: --set .*{told}"):
        parse_override(text)


def test_an_empty_value_takes_a_key_back_and_is_a_text_where_text_is_wanted():
    table = {"model": {"d_model": 7}, "data": {"train_source": "a"}}
    put(table, ("model", "d_model"), text="model.d_model=", value="")
    put(table, ("data", "train_source"), text="data.train_source=", value="")
    assert table == {"model": {}, "data": {"train_source": ""}}
    with pytest.raises(ConfigError, match="title is not a section"):
        put({"title": "x"}, ("title", "y"), text="title.y=3", value=3)


def test_the_keys_are_those_of_the_schema():
    assert {("model", "d_model"), ("title",), ("data", "corpora", "source"), ("model", "preset")} <= known_keys()
    assert text_keys() < known_keys()
    assert ("model", "d_model") not in text_keys()
    assert set(sections()) == {key[0] for key in known_keys() if len(key) > 1}

"""search.split_sentences is of models that translate."""

import pytest

from headway.config.load import load
from headway.errors import ConfigError


@pytest.mark.parametrize("recipe", ["parsing-nltk-ptb", "lm", "classify"])
def test_a_model_that_does_not_translate_has_no_sentences_to_split(recipe):
    with pytest.raises(ConfigError, match="split_sentences is about translating"):
        load(recipe, overrides=["search.split_sentences=true"])


def test_a_model_that_translates_has():
    assert load("multi30k-en-de", overrides=["search.split_sentences=true"]).search.split_sentences

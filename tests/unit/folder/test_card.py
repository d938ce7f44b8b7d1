"""The card says what the folder is, with every number it was given, and stays Markdown whatever names hold."""

import re
import tomllib

import pytest

from headway.config.data_config import DataConfig, TextConfig
from headway.config.model_config import ModelConfig
from headway.config.schema import RunConfig
from headway.folder.card import CorpusCounts, ScoredSet, write_card
from headway.folder.contents import FolderConfig, TrainingSummary
from headway.metrics.translation import MetricScore, TranslationScores

SCORES = TranslationScores(
    bleu=MetricScore("BLEU", 41.234, 40.1, 42.3, "nrefs:1|tok:13a"),
    chrf=MetricScore("chrF", 63.5, None, None, "nc:6"),
    ter=None,
    length_ratio=0.987,
    num_sentences=1009,
    warnings=("The hypothesis text looks tokenised",),
)


@pytest.fixture
def config():
    return FolderConfig(
        source_language="en",
        target_language="de",
        model=ModelConfig(vocab_size=10_007),
        max_source_tokens=97,
        training=TrainingSummary(steps=1301, epochs=2.5, seconds=3725, precision="bf16", seed=3, pairs=28_711),
    )


def test_the_card_lists_what_departs_from_the_paper(config):
    assert "departures" not in write_card(config, RunConfig(), num_parameters=1)
    model = config.model.model_copy(update={"positions": "rope", "norm": "rms"})
    card = write_card(config.model_copy(update={"model": model}), RunConfig(), num_parameters=1)
    assert "- departures from the paper: rotary positions (RoPE); RMSNorm in the place of LayerNorm\n" in card


def test_every_number_given_is_on_the_card(config):
    corpus = CorpusCounts(29_000, 28_711, {"empty": 7, "duplicates": 282}, {"test": 13}, 1013, 1009)
    card = write_card(
        config,
        RunConfig(),
        num_parameters=49_123_457,
        corpus=corpus,
        scored=[ScoredSet("test_2016", SCORES, 7.129)],
        versions={"torch": "2.13.0"},
    )
    assert card.startswith("# Translation from en to de\n")
    for text in (
        "49,123,457",
        "10,007 shared tokens",
        "| test_2016 | 1,009 | 41.23 [40.10, 42.30] | 63.50 | - | 0.987 | 7.13 |",
        "- BLEU: `nrefs:1|tok:13a`",
        "looks tokenised",
        "| read | 29,000 |",
        "| dropped: empty | 7 |",
        "| dropped: duplicates | 282 |",
        "| trained on | 28,711 |",
        "- test: 13",
        "1,301 steps, 2.50 epochs over 28,711 pairs, 1 h 2 min, precision bf16, seed 3.",
        "torch 2.13.0",
        "97 tokens",
    ):
        assert text in card


def test_what_is_not_known_of_the_training_is_left_out(config):
    config = config.model_copy(update={"training": TrainingSummary(steps=13, seed=5, pairs=101)})
    card = write_card(config, RunConfig(), num_parameters=7)
    assert "13 steps, on 101 pairs, precision not known, seed 5." in card


def test_the_recipe_on_the_card_is_the_run(config):
    run = RunConfig(title="T", data=DataConfig(train_source="```\n| x"))
    card = write_card(config, run, num_parameters=7)
    found = re.search(r"^(`{3,})toml\n(.*?)\n\1$", card, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert RunConfig.model_validate(tomllib.loads(found[2])) == run


def test_a_model_that_was_not_measured_says_so(config):
    card = write_card(config, RunConfig(), num_parameters=7)
    assert "Not measured" in card
    assert "No counts were kept" in card


def test_the_three_commands_name_the_folder(config):
    card = write_card(config, RunConfig(), num_parameters=7, folder_name="runs/my model")
    assert "headway translate -m 'runs/my model'" in card
    assert "headway evaluate -m 'runs/my model' --source" in card
    assert "headway describe 'runs/my model'" in card


def test_separate_vocabularies_are_both_stated(config):
    model = ModelConfig(vocab_size=7001, source_vocab_size=5003, embedding_sharing="target")
    config = config.model_copy(update={"model": model, "text": TextConfig(shared_vocabulary=False)})
    assert "5,003 source and 7,001 target tokens" in write_card(config, RunConfig(), num_parameters=7)


def test_names_cannot_break_the_tables_or_write_html(config):
    card = write_card(config, RunConfig(title="a\n<b>"), num_parameters=7, scored=[ScoredSet("x | y\nz", SCORES)])
    assert "| x \\| y z | 1,009 |" in card
    assert card.startswith("# a &lt;b>\n")

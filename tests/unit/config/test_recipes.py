"""The packaged recipes: each loads, and those of the paper hold its numbers."""

import pytest

from headway.config.load import load, recipe_names
from headway.config.model_config import ModelConfig
from headway.config.presets import SMALL
from headway.model.size import count_parameters
from headway.train.schedule import early_end, learning_rate

PAPER = [name for name in recipe_names() if name.startswith("wmt14")]


def test_the_recipes_travel_in_the_package():
    assert recipe_names() == [
        "adapt",
        "classify",
        "demo",
        "lm",
        "masked",
        "multi30k-en-de",
        "parsing-craft",
        "parsing-nltk-ptb",
        "parsing-paper",
        "short",
        "table2-convolutional",
        "table2-recurrent",
        "table2-transformer",
        "table3",
        "wmt14-en-de-base",
        "wmt14-en-de-big",
        "wmt14-en-fr-base",
        "wmt14-en-fr-big",
    ]


@pytest.mark.parametrize("name", recipe_names())
def test_every_packaged_recipe_loads_and_averages_only_weights_that_it_keeps(name):
    config = load(name)
    assert config.title
    kept = {"last": config.train.keep_last, "best": config.train.keep_best, "none": config.train.average_count}
    assert config.train.average_count <= kept[config.train.average]


@pytest.mark.parametrize("name", recipe_names())
def test_no_recipe_s_rate_falls_to_a_last_step_that_another_end_may_come_before(name):
    assert early_end(load(name).train, epoch_steps=lambda: 1) == []


def test_the_masked_recipe_ends_well_however_many_steps_its_minutes_hold():
    config = load("masked")
    train = config.train
    assert train.max_minutes == 40
    for steps in (1000, 2000, 5000):  # 2.4, 1.2 and 0.5 s each
        end = learning_rate(steps, train, d_model=config.model.d_model)
        assert end == pytest.approx(train.learning_rate * (train.warmup_steps / steps) ** 0.5)
        assert end < 0.55 * train.learning_rate
        assert train.average == "last"
        assert train.average_count * train.checkpoint_every <= steps - train.warmup_steps


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_recipes_hold_section_5_and_6_1(name):
    config = load(name)
    train = config.train
    assert (train.batch_tokens, train.warmup_steps, train.label_smoothing) == (25_000, 4000, 0.1)
    assert (train.beta1, train.beta2, train.epsilon, train.learning_rate, train.clip_norm) == (
        0.9,
        0.98,
        1e-9,
        None,
        None,
    )
    assert (config.search.beam_size, config.search.length_penalty, config.search.max_extra_tokens) == (4, 0.6, 50)
    assert (train.average, config.text.shared_vocabulary, config.model.embedding_sharing) == ("last", True, "all")
    assert config.note.startswith("not run here")
    assert f"`headway describe {name}`" in config.note


@pytest.mark.parametrize(
    ("name", "steps", "checkpoint", "averaged", "vocabulary", "dropout", "sizes"),
    [
        ("wmt14-en-de-base", 100_000, 1500, 5, 37_000, 0.1, (512, 2048, 8, 6, 6)),
        ("wmt14-en-de-big", 300_000, 600, 20, 37_000, 0.3, (1024, 4096, 16, 6, 6)),
        ("wmt14-en-fr-base", 100_000, 1500, 5, 32_000, 0.1, (512, 2048, 8, 6, 6)),
        ("wmt14-en-fr-big", 300_000, 600, 20, 32_000, 0.1, (1024, 4096, 16, 6, 6)),
    ],
)
def test_each_recipe_of_the_paper_has_its_own_scale(name, steps, checkpoint, averaged, vocabulary, dropout, sizes):
    config = load(name)
    model, train = config.model, config.train
    assert (train.max_steps, train.checkpoint_every, train.average_count) == (steps, checkpoint, averaged)
    assert (model.vocab_size, model.dropout) == (vocabulary, dropout)
    assert (model.d_model, model.d_ff, model.num_heads, model.num_encoder_layers, model.num_decoder_layers) == sizes
    _, source, target, _ = name.split("-")
    data = config.data
    assert (data.source_language, data.target_language) == (source, target)
    assert (data.train_source, data.train_target) == (f"train.{source}", f"train.{target}")
    assert (data.validation_source, data.validation_target) == (f"newstest2013.{source}", f"newstest2013.{target}")
    assert (data.test_source, data.test_target) == (f"newstest2014.{source}", f"newstest2014.{target}")


@pytest.mark.parametrize(("name", "parameters"), [("wmt14-en-de-base", 63_045_632), ("wmt14-en-de-big", 214_171_648)])
def test_the_recipes_of_the_paper_build_the_models_of_the_paper(name, parameters):
    assert count_parameters(load(name).model).total == parameters


def test_the_three_models_of_table_2_differ_in_kind_and_not_in_size_time_or_text():
    recipes = [load(name) for name in recipe_names() if name.startswith("table2-")]
    assert {recipe.model.architecture for recipe in recipes} == {"transformer", "recurrent", "convolutional"}
    counts = [count_parameters(recipe.model).total for recipe in recipes]
    assert max(counts) < 1.02 * min(counts)
    own = {"clip_norm": None, "learning_rate": None}  # each has the rate that was best of three
    alike = [
        recipe.model_copy(update={"title": "", "model": ModelConfig(), "train": recipe.train.model_copy(update=own)})
        for recipe in recipes
    ]
    assert alike[0] == alike[1] == alike[2]
    assert {recipe.model.vocab_size for recipe in recipes} == {8000}
    assert alike[0].data == load("multi30k-en-de").data


@pytest.mark.parametrize("name", [name for name in recipe_names() if name.startswith("parsing")])
def test_recipes_of_parsers_choose_by_f1_and_keep_every_symbol(name):
    config = load(name)
    assert config.is_parser
    assert config.train.best_by == "f1"
    assert config.parsing.constrained
    assert (config.search.length_penalty, config.search.max_extra_tokens) == (0.3, 300)


def test_the_paper_s_parser_holds_section_6_3_and_its_code():
    config = load("parsing-paper")
    model, train = config.model, config.train
    assert (model.num_encoder_layers, model.num_decoder_layers, model.d_model) == (4, 4, 1024)
    assert (model.source_vocab_size, config.search.beam_size) == (16_000, 21)
    assert (model.dropout, model.attention_dropout, model.d_ff, model.num_heads) == (0.2, 0.2, 2048, 8)
    assert train.warmup_steps == 16_000
    assert train.learning_rate == pytest.approx(5 * (1024 * 16_000) ** -0.5, rel=1e-3)
    assert (config.parsing.style, config.parsing.tags, config.parsing.words) == ("tags", "predicted", True)


def test_multi30k_is_scored_by_the_published_protocol():
    config = load("multi30k-en-de")
    assert (config.evaluate.tokenize, config.evaluate.lowercase, config.search.beam_size) == ("none", True, 5)
    assert config.model == SMALL
    assert config.data.test_source == "test_2016_flickr.lc.norm.tok.en"
    assert config.data.validation_target == "val.lc.norm.tok.de"

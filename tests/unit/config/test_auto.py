"""--preset auto: what is chosen for which corpus, by hand and by laws, and that what is given stays."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.auto import SCALES, CorpusFacts, SideFacts, choosable, choose, chosen_values
from headway.config.load import build, draft_text
from headway.config.presets import BASE
from headway.errors import ConfigError
from headway.model.size import count_parameters

MANY = 10**6  # more different words than any vocabulary has tokens


def corpus(pairs, *, words=10, characters=80, different=MANY, held_out=None):
    """A corpus of so many pairs with so many words a side and pair, between spaces."""
    side = SideFacts(words * pairs)
    return CorpusFacts(pairs, pairs, side, side, different, characters, held_out)


def values(facts):
    return {choice.key: choice.value for choice in choose(facts, {})}


def reason(facts, key):
    return next(choice.reason for choice in choose(facts, {}) if choice.key == key)


def config_of(facts, *overrides):
    draft = draft_text("", overrides=overrides)
    return draft.config(chosen_values(choose(facts, draft.given())))


sides = st.builds(SideFacts, st.integers(0, 10**9), st.integers(0, 10**9))
corpora = st.builds(
    CorpusFacts,
    pairs_read=st.integers(1, 10**7),
    pairs=st.integers(1, 10**7),
    source=sides,
    target=sides,
    different_words=st.integers(0, 10**7),
    characters=st.integers(0, 30_000),
    validation_pairs=st.none() | st.integers(1, 1000),
)


# By hand


def test_short_chinese_sentences_by_hand():
    facts = CorpusFacts(28_503, 28_496, SideFacts(180_000), SideFacts(1000, 270_000), 12_567, 2380, 1000)
    # the longer side, the source: 1.1 x (1.333 x 180,000 + 28,496) = 295,346 tokens, 72 steps of 4,096
    assert values(facts) == {
        "model.vocab_size": 4000 + 2500,  # 2,380 characters less 260 tokens that stand already, in steps of 500
        "model.d_model": 256,
        "model.d_ff": 512,
        "model.num_heads": 4,
        "model.num_encoder_layers": 3,
        "model.num_decoder_layers": 3,
        "model.dropout": 0.3,
        "model.attention_dropout": 0.1,
        "model.activation_dropout": 0.1,
        "train.label_smoothing": 0.1,
        "train.batch_tokens": 4096,
        "train.max_steps": 11_000,  # 150 x 72 = 10,800, to two digits
        "train.warmup_steps": 1000,
        "train.learning_rate": 0.002,  # (256 x 1,000)^-0.5 = 0.00198
        "train.validate_every": 4 * 72,  # 11,000 / 40 = 275 steps, nearest to 4 epochs
        "train.checkpoint_every": 4 * 72,
        "train.best_by": "bleu",
        "train.early_stopping": "bleu",
        "train.patience": 6,
        "train.average": "best",
    }


def test_the_paper_s_corpus_gives_the_paper_s_model_and_batch():
    config = config_of(corpus(4_500_000, words=25))
    assert config.model == BASE.model_copy(update={"vocab_size": 32_000})
    train = config.train
    assert (train.batch_tokens, train.warmup_steps, train.max_steps) == (25_000, 4000, 100_000)
    assert train.learning_rate == pytest.approx((512 * 4000) ** -0.5, rel=0.01)
    assert (train.microbatch_tokens, train.validate_every) == (5000, 2500)


@pytest.mark.parametrize(
    ("pairs", "vocabulary", "d_model", "dropout"),
    [
        (9_999, 2000, 128, 0.4),
        (10_000, 4000, 256, 0.3),
        (99_999, 4000, 256, 0.3),
        (165_734, 8000, 256, 0.2),
        (500_000, 8000, 512, 0.2),
        (1_000_000, 16_000, 512, 0.1),
        (36_000_000, 32_000, 512, 0.1),
    ],
)
def test_each_size_of_corpus_has_its_row(pairs, vocabulary, d_model, dropout):
    model = config_of(corpus(pairs)).model
    assert (model.vocab_size, model.d_model, model.dropout) == (vocabulary, d_model, dropout)


@pytest.mark.parametrize(("words", "amount"), [(1, 2500), (3, 7500), (4, 10_000), (25, 10_000), (26, 10_400)])
def test_titles_count_for_less_than_a_pair_and_paragraphs_for_more(words, amount):
    assert corpus(10_000, words=words).amount == amount


def test_three_characters_without_spaces_count_as_two_words():
    assert SideFacts(7, 30).all_words == 27
    assert SideFacts(7, 30).is_spaceless
    assert not SideFacts(7, 5).is_spaceless


def test_a_vocabulary_is_no_larger_than_the_words_there_are():
    assert values(corpus(20_000, different=1234))["model.vocab_size"] == 260 + 1300
    assert "bytes and 1,234 different words are no more" in reason(corpus(20_000, different=1234), "model.vocab_size")


def test_words_between_spaces_do_not_bound_the_vocabulary_of_a_script_without_them():
    facts = replace(corpus(20_000, different=3), target=SideFacts(0, 200_000))
    assert values(facts)["model.vocab_size"] == 4000


def test_few_validation_pairs_are_judged_by_loss():
    few, some = corpus(1980, held_out=99), corpus(2000, held_out=100)
    assert values(few)["train.early_stopping"] == values(few)["train.best_by"] == "loss"
    assert "99 validation pairs are too few" in reason(few, "train.best_by")
    assert values(some)["train.early_stopping"] == values(some)["train.best_by"] == "bleu"


# Laws


def test_no_row_has_less_than_the_row_before_it_but_for_dropout_and_epochs():
    for name in ("pairs", "vocab_size", "d_model", "d_ff", "num_heads", "num_layers", "batch_tokens", "warmup_steps"):
        column = [getattr(scale, name) for scale in SCALES]
        assert column == sorted(column), name
    for name in ("dropout", "inner_dropout", "epochs"):
        column = [getattr(scale, name) for scale in SCALES]
        assert column == sorted(column, reverse=True), name


@given(corpora, st.integers(1, 1000))
def test_more_text_never_gives_a_smaller_model_or_vocabulary_or_more_dropout(facts, times):
    def grown(side):
        return SideFacts(side.words * times, side.spaceless * times)

    more = replace(facts, pairs=facts.pairs * times, source=grown(facts.source), target=grown(facts.target))
    small, large = config_of(facts).model, config_of(more).model
    assert count_parameters(small).total <= count_parameters(large).total
    assert small.vocab_size <= large.vocab_size
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        assert getattr(small, name) >= getattr(large, name)


@given(corpora, st.integers(0, 30_000))
def test_more_characters_never_give_a_smaller_vocabulary(facts, more):
    larger = replace(facts, characters=facts.characters + more)
    assert values(facts)["model.vocab_size"] <= values(larger)["model.vocab_size"]


@given(corpora)
def test_any_corpus_gives_a_run_that_ends(facts):
    config = config_of(facts)
    train, model = config.train, config.model
    assert 2000 <= train.max_steps <= 100_000
    assert train.warmup_steps <= train.max_steps / 8
    assert train.validate_every == train.checkpoint_every <= 2500
    assert train.early_stopping == train.best_by
    assert (train.microbatch_tokens or train.batch_tokens) <= 8192
    assert model.vocab_size >= 260
    assert 1e-4 < train.learning_rate < 3e-3


@given(corpora)
def test_every_choice_has_a_reason_of_one_line(facts):
    for choice in choose(facts, {}):
        assert choice.reason
        assert "\n" not in str(choice)


# What is given


@given(corpora)
def test_what_is_given_is_not_chosen_and_the_reason_says_so(facts):
    for choice in choose(facts, {}):
        (again,) = (other for other in choose(facts, {choice.key: choice.value}) if other.key == choice.key)
        assert again.given == choice.value
        assert str(again).startswith("as given; the corpus would have ")
        assert choice.key not in chosen_values([again])


@given(corpora, st.integers(1, 2000))
def test_heads_divide_any_width_that_is_given(facts, width):
    model = config_of(facts, f"model.d_model={width}").model
    assert model.d_model == width
    assert width % model.num_heads == 0
    assert model.d_ff % width == 0


@given(corpora, st.integers(1, 40))
def test_the_width_fits_any_number_of_heads_that_is_given(facts, heads):
    model = config_of(facts, f"model.num_heads={heads}", "model.positions=rope").model
    assert model.num_heads == heads
    assert model.d_model >= config_of(facts).model.d_model


@given(corpora, st.integers(1, 40))
def test_heads_and_width_fit_any_number_of_heads_of_keys_and_values_that_is_given(facts, heads):
    model = config_of(facts, f"model.num_kv_heads={heads}", "model.positions=rope").model
    assert model.num_kv_heads == heads
    assert model.d_model >= config_of(facts).model.d_model


@pytest.mark.parametrize(
    ("overrides", "heads"),
    [
        (("model.d_model=100",), 4),
        (("model.d_model=100", "model.positions=rope"), 2),  # 4 heads had 25 numbers, 3 do not divide
        (("model.d_model=100", "model.positions=rope", "model.d_k=6"), 4),
        (("model.d_model=96", "model.num_kv_heads=3"), 3),  # the most is 4
        (("model.d_model=96", "model.num_kv_heads=2"), 4),
        (("model.d_model=96", "model.num_kv_heads=8"), 8),
        (("model.num_kv_heads=1",), 4),
    ],
)
def test_heads_suit_what_is_given_by_hand(overrides, heads):
    assert config_of(corpus(30_000), *overrides).model.num_heads == heads


@given(corpora)
def test_what_may_be_chosen_has_every_key_that_is_ever_chosen(facts):
    keys = {key for values in choosable({}) for key in values}
    assert chosen_values(choose(facts, {})).keys() <= keys


@given(corpora, st.integers(1, 100_000), st.integers(1, 10**6))
def test_no_corpus_trains_longer_than_the_largest_that_may_come(facts, warmup, batch):
    given_keys = {"train.warmup_steps": warmup, "train.batch_tokens": batch}
    assert chosen_values(choose(facts, given_keys))["train.max_steps"] <= choosable(given_keys)[-1]["train.max_steps"]
    assert [values["model.dropout"] for values in choosable({})] == [scale.dropout for scale in SCALES]


def test_what_depends_on_a_given_value_follows_it():
    facts = corpus(30_000)
    train = config_of(facts, "train.max_steps=80", "train.batch_tokens=1000000", "model.d_model=64").train
    assert (train.warmup_steps, train.validate_every, train.checkpoint_every) == (10, 2, 2)
    assert train.learning_rate == 0.004  # (64 x 1,000)^-0.5 = 0.00395
    assert train.microbatch_tokens == 5000
    assert config_of(facts, "train.warmup_steps=4000").train.learning_rate == 0.00099
    assert config_of(facts, "train.warmup_steps=2").train.learning_rate == 0.002
    assert config_of(facts, "model.d_model=8").train.learning_rate == 0.004
    assert config_of(facts, "train.validate_every=17").train.checkpoint_every == 17
    assert config_of(facts, "train.early_stopping=chrf").train.best_by == "chrf"
    without = config_of(facts, "train.early_stopping=none").train
    assert (without.best_by, without.patience) == ("bleu", 10)


@pytest.mark.parametrize("wrong", ["x", "-3", "0", "1.5", "true", '""'])
@pytest.mark.parametrize("key", ["model.d_model", "model.num_heads", "train.batch_tokens", "train.max_steps"])
def test_a_given_value_that_is_none_is_left_for_the_schema_to_refuse(key, wrong):
    draft = draft_text("", overrides=[f"{key}={wrong}"])
    chosen = chosen_values(choose(corpus(1000), draft.given()))
    with pytest.raises(ConfigError, match=rf"--set {key}=.*: found"):
        draft.config(chosen)


def test_a_recipe_written_from_choices_is_a_plain_one():
    config = config_of(corpus(30_000))
    assert build({"model": config.model.model_dump(), "train": config.train.model_dump()}) == config

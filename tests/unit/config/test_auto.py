"""--preset auto: what is chosen for which corpus, by hand and by laws, and that what is given stays."""

from dataclasses import replace
from types import MappingProxyType

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


def reason(facts, key, given=MappingProxyType({})):
    return next(choice.reason for choice in choose(facts, given) if choice.key == key)


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
    several=st.integers(0, 10**7),
)


# By hand


@pytest.mark.parametrize(("several", "wanted"), [(0, None), (1, True), (99, True), (100, False), (1000, False)])
def test_sentences_are_translated_alone_where_few_sources_have_several(several, wanted):
    facts = replace(corpus(1000), several=several)
    assert values(facts).get("search.split_sentences") is wanted
    assert config_of(facts).search.split_sentences is bool(wanted)
    if several:
        assert f"{several:,} sources of several sentences ({several / 1000:.1%})" in reason(
            facts, "search.split_sentences"
        )


def test_short_chinese_sentences_by_hand():
    facts = CorpusFacts(28_503, 28_496, SideFacts(180_000), SideFacts(1000, 270_000), 12_567, 2380, 1000)
    # the longer side, the source: 1.1 x (1.333 x 180,000 + 28,496) = 295,346 tokens, 144 steps of 2,048
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
        "train.batch_tokens": 2048,
        "train.optimizer": "muon",
        "train.max_steps": 8600,  # 60 x 144 = 8,640, to two digits
        "train.warmup_steps": 400,
        "train.learning_rate": 0.004,  # Muon's
        "train.schedule": "linear",
        "train.validate_every": 144,  # 8,600 / 40 = 215 steps, nearest to 1 epoch
        "train.checkpoint_every": 144,
        "train.best_by": "bleu",
        "train.early_stopping": "none",
        "train.average": "best",
    }


def test_a_larger_corpus_has_the_paper_s_optimizer_by_hand():
    # 1.1 x (1.333 x 1,657,340 + 165,734) = 2,613,073 tokens, 638 steps of 4,096
    chosen = values(corpus(165_734))
    assert {key: chosen[key] for key in chosen if key.startswith("train.")} == {
        "train.label_smoothing": 0.1,
        "train.batch_tokens": 4096,
        "train.optimizer": "adam",
        "train.max_steps": 51_000,  # 80 x 638 = 51,040, to two digits
        "train.warmup_steps": 2000,
        "train.learning_rate": 0.0014,  # (256 x 2,000)^-0.5 = 0.001398
        "train.schedule": "noam",
        "train.validate_every": 2 * 638,  # 51,000 / 40 = 1,275 steps, nearest to 2 epochs
        "train.checkpoint_every": 2 * 638,
        "train.best_by": "bleu",
        "train.early_stopping": "bleu",
        "train.patience": 6,
        "train.average": "best",
    }


@pytest.mark.parametrize(
    ("pairs", "optimizer", "batch", "warmup", "schedule"),
    [
        (1, "muon", 1024, 200, "linear"),
        (9_999, "muon", 1024, 200, "linear"),
        (10_000, "muon", 2048, 400, "linear"),
        (99_999, "muon", 2048, 400, "linear"),
        (100_000, "adam", 4096, 2000, "noam"),
    ],
)
def test_fewer_than_100_000_pairs_have_muon_and_a_rate_that_falls_to_0(pairs, optimizer, batch, warmup, schedule):
    train = config_of(corpus(pairs)).train
    assert (train.optimizer, train.batch_tokens, train.warmup_steps) == (optimizer, batch, warmup)
    assert train.schedule == schedule


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
    assert values(few)["train.best_by"] == "loss"
    assert "99 validation pairs are too few" in reason(few, "train.best_by")
    assert values(some)["train.best_by"] == "bleu"
    few, some = corpus(200_000, held_out=99), corpus(200_000, held_out=100)
    assert values(few)["train.early_stopping"] == values(few)["train.best_by"] == "loss"
    assert values(some)["train.early_stopping"] == values(some)["train.best_by"] == "bleu"


# Laws


def test_no_row_has_less_than_the_row_before_it_but_for_dropout_and_epochs():
    for name in ("pairs", "vocab_size", "d_model", "d_ff", "num_heads", "num_layers", "batch_tokens", "warmup_steps"):
        column = [getattr(scale, name) for scale in SCALES]
        assert column == sorted(column), name
    for name in ("dropout", "inner_dropout"):
        column = [getattr(scale, name) for scale in SCALES]
        assert column == sorted(column, reverse=True), name
    assert [scale.optimizer for scale in SCALES] == ["muon", "muon", "adam", "adam", "adam", "adam"]
    for optimizer in ("muon", "adam"):  # the one's runs go through all epochs, the other's through so many at most
        column = [scale.epochs for scale in SCALES if scale.optimizer == optimizer]
        assert column == sorted(column, reverse=True), optimizer


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
    if train.schedule == "linear":  # it ends at max_steps, where the rate is 0, and not before
        assert train.early_stopping == "none"
    else:
        assert train.early_stopping == train.best_by
        assert train.patience == 6
    assert (train.microbatch_tokens or train.batch_tokens) <= 8192
    assert model.vocab_size >= 260
    assert 1e-4 < train.learning_rate < (3e-3 if train.optimizer == "adam" else 0.0041)


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
    facts = corpus(200_000)
    train = config_of(facts, "train.max_steps=80", "train.batch_tokens=10000000", "model.d_model=64").train
    # 1.1 x (1.333 x 2,000,000 + 200,000) = 3,153,333 tokens: an epoch is less than a step
    assert (train.warmup_steps, train.validate_every, train.checkpoint_every) == (10, 2, 2)
    assert train.learning_rate == 0.0028  # (64 x 2,000)^-0.5 = 0.002795
    assert train.microbatch_tokens == 5000
    assert config_of(facts, "train.warmup_steps=4000").train.learning_rate == 0.00099
    assert config_of(facts, "train.warmup_steps=2").train.learning_rate == 0.0014
    assert config_of(facts, "model.d_model=8").train.learning_rate == 0.004
    assert config_of(facts, "train.validate_every=17").train.checkpoint_every == 17
    assert config_of(facts, "train.early_stopping=chrf").train.best_by == "chrf"
    without = config_of(facts, "train.early_stopping=none").train
    assert (without.best_by, without.patience) == ("bleu", 10)


SMALL, LARGE = corpus(30_000), corpus(200_000)


@pytest.mark.parametrize("overrides", [(), ("model.d_model=8",), ("model.d_model=1024",), ("train.warmup_steps=4000",)])
@pytest.mark.parametrize("facts", [SMALL, LARGE], ids=["small", "large"])
def test_muon_has_one_rate_whatever_the_width_and_the_warm_up(facts, overrides):
    assert config_of(facts, "train.optimizer=muon", *overrides).train.learning_rate == 0.004


@pytest.mark.parametrize(
    ("facts", "overrides", "expected"),  # warm-up, rate, schedule, early stopping
    [
        (SMALL, ("train.optimizer=adam",), (1000, 0.002, "noam", "bleu")),  # (256 x 1,000)^-0.5 = 0.00198
        (SMALL, ("train.optimizer=adam", "train.warmup_steps=50"), (50, 0.002, "noam", "bleu")),
        (SMALL, ("train.optimizer=adam", "train.max_steps=800"), (100, 0.002, "noam", "bleu")),
        (SMALL, ("train.optimizer=adam", "train.schedule=cosine"), (1000, 0.002, "cosine", "none")),
        (SMALL, ("train.optimizer=schedule_free",), (1000, 0.002, "constant", "bleu")),
        (SMALL, ("train.sharding=fsdp",), (1000, 0.002, "noam", "bleu")),  # Muon wants whole matrices
        (SMALL, ("train.schedule=noam",), (400, 0.004, "noam", "bleu")),
        (SMALL, ("train.schedule=constant",), (400, 0.004, "constant", "bleu")),
        (SMALL, ("train.schedule=cosine",), (400, 0.004, "cosine", "none")),
        (SMALL, ("train.early_stopping=chrf",), (400, 0.004, "linear", "chrf")),
        (LARGE, ("train.best_by=chrf",), (2000, 0.0014, "noam", "chrf")),
        (SMALL, ("train.max_steps=2",), (1, 0.004, "linear", "none")),
        (SMALL, ("train.max_steps=1",), (1, 0.004, "noam", "bleu")),  # no step is left for a fall
        (SMALL, ("train.warmup_steps=90000",), (90_000, 0.004, "noam", "bleu")),
        (LARGE, ("train.optimizer=muon",), (2000, 0.004, "linear", "none")),
        (LARGE, ("train.schedule=linear",), (2000, 0.0014, "linear", "none")),  # (256 x 2,000)^-0.5 = 0.001398
    ],
)
def test_a_given_optimizer_or_schedule_is_followed_by_the_other_choices(facts, overrides, expected):
    train = config_of(facts, *overrides).train
    assert (train.warmup_steps, train.learning_rate, train.schedule, train.early_stopping) == expected
    stops = train.early_stopping != "none"
    assert train.patience == (6 if stops else 10)  # 10: not chosen
    assert train.best_by == (train.early_stopping if stops else "bleu")


@given(corpora, st.sampled_from(["adam", "muon", "schedule_free"]), st.integers(1, 10**5), st.integers(1, 10**5))
def test_any_optimizer_length_and_warm_up_that_are_given_make_a_run(facts, optimizer, steps, warmup):
    for overrides in ((), (f"train.max_steps={steps}",), (f"train.warmup_steps={warmup}",)):
        train = config_of(facts, f"train.optimizer={optimizer}", *overrides).train
        assert train.optimizer == optimizer
        assert (train.schedule == "linear") == (optimizer == "muon" and train.max_steps > train.warmup_steps)


def test_reasons_say_where_muon_comes_from_and_why_a_run_goes_to_its_end():
    assert "found on Multi30k's 29,000 pairs (docs/log.md)" in reason(SMALL, "train.optimizer")
    assert "for any width, as Muon's updates have the same size" in reason(SMALL, "train.learning_rate")
    assert reason(SMALL, "train.max_steps").endswith("the rate is 0 at the last")
    assert "so a run goes to its last step" in reason(SMALL, "train.early_stopping")
    assert reason(LARGE, "train.max_steps").endswith("early stopping ends most runs sooner")
    assert "nothing else was measured" in reason(LARGE, "train.optimizer")
    assert "validation gains no more" in reason(LARGE, "train.early_stopping")
    assert "which help Muon" in reason(SMALL, "train.batch_tokens")
    assert "Muon" not in reason(SMALL, "train.batch_tokens", {"train.optimizer": "adam"})


@pytest.mark.parametrize("wrong", ["x", "-3", "0", "1.5", "true", '""'])
@pytest.mark.parametrize(
    "key",
    [
        *("model.d_model", "model.num_heads", "train.batch_tokens", "train.max_steps"),
        *("train.optimizer", "train.schedule"),
    ],
)
def test_a_given_value_that_is_none_is_left_for_the_schema_to_refuse(key, wrong):
    draft = draft_text("", overrides=[f"{key}={wrong}"])
    chosen = chosen_values(choose(corpus(1000), draft.given()))
    with pytest.raises(ConfigError, match=rf"--set {key}=.*: found"):
        draft.config(chosen)


@pytest.mark.parametrize(("longest", "expected"), [(256, (1024, None)), (2000, (2000, None)), (9000, (9000, 9000))])
def test_steps_have_room_for_the_longest_sentence_that_is_let_in(longest, expected):
    facts = corpus(1000)
    train = config_of(facts, f"data.max_tokens={longest}").train
    assert (train.batch_tokens, train.microbatch_tokens) == expected
    told = reason(facts, "train.batch_tokens", {"data.max_tokens": longest})
    assert ("room for one sentence" in told) == (longest > 1024)


def test_validations_that_would_be_far_apart_are_so_many_epochs_as_fit_between():
    facts = corpus(30_000)  # an epoch of some 230 steps
    given = {"train.max_steps": 400_000}
    chosen = {choice.key: choice for choice in choose(facts, given)}["train.validate_every"]
    epoch = int(chosen.reason.split("about ")[1].split()[0])
    assert chosen.value % epoch == 0
    assert 2500 - epoch < chosen.value <= 2500
    assert chosen.reason.endswith("2,500 at most")


def test_a_recipe_written_from_choices_is_a_plain_one():
    config = config_of(corpus(30_000))
    assert build({"model": config.model.model_dump(), "train": config.train.model_dump()}) == config

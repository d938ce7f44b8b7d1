"""Recipes: what is read, what is refused and in which words, and that nothing changes on the way to TOML and back."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.load import Change, build, difference, draft_text, load, load_preset, load_text
from headway.config.presets import BASE, BIG, PRESETS, SIZES, TINY
from headway.config.schema import RunConfig
from headway.config.toml import to_toml
from headway.errors import ConfigError


def refusal(text, *overrides):
    with pytest.raises(ConfigError) as caught:
        load_text(text, name="my.toml", overrides=overrides)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(("config/load: ", "config/override: --set "))
    return message


# Reading


def test_an_empty_recipe_is_every_default():
    assert load_text("") == RunConfig()


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "small.toml"
    path.write_bytes(b"title = 'small'\r\n[model]\r\nd_model = 64\r\nnum_heads = 2\r\n")
    config = load(path)
    assert (config.title, config.model.d_model, config.model.key_size) == ("small", 64, 32)


def test_a_byte_order_mark_is_absorbed(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbftitle = 'Z\xc3\xbcrich'\n")
    assert load(path).title == "Zürich"


def test_a_line_separator_inside_a_string_stays_and_does_not_move_line_numbers():
    text = 'title = "a\u2028b\u0085c"\n[model]\nd_modell = 3\n'
    assert "my.toml line 3: unknown key model.d_modell" in refusal(text)
    assert load_text(text.replace("d_modell", "d_ff")).title == "a\u2028b\u0085c"


def test_a_packaged_name_wins_over_a_file_of_that_name_and_a_path_means_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("demo").write_text("title = 'mine'\n", encoding="utf-8")
    assert load("demo").title != "mine"
    assert load("./demo").title == load(Path("demo")).title == "mine"


def test_a_missing_file_is_one_line_that_names_the_nearest_recipe():
    with pytest.raises(ConfigError, match=r"^config/load: multi30k\.toml: .*nearest packaged recipe is multi30k-en-de"):
        load("multi30k.toml")
    with pytest.raises(ConfigError, match=r"no/such: .*packaged recipes are adapt, classify, demo, "):
        load("no/such")


def test_a_folder_for_a_recipe_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a folder; wanted a recipe"):
        load(tmp_path)


def test_a_recipe_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# one\n# two\ntitle = 'Z\xfcrich'\n")
    with pytest.raises(ConfigError, match=r"latin\.toml line 3: found byte 0xfc, which is not UTF-8"):
        load(path)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[model]\nd_ff =\n", "my.toml line 2 column 7"),
        ("[model]\n\nd_ff = 3\nd_ff = 5\n", "my.toml line 4"),
        ("title = 'open", "my.toml line 1"),
        ("\n\n[model\n", "my.toml line 3"),
        ("[data]\nsource_language = de\n", "my.toml line 2"),
    ],
)
def test_bad_toml_is_refused_with_its_line(text, where):
    message = refusal(text)
    assert message.startswith(f"config/load: {where}")
    assert "not TOML" in message


# Unknown keys


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_key():
    assert refusal("[train]\nseed = 3\nbatch_token = 7\n") == (
        "config/load: my.toml line 3: unknown key train.batch_token; the nearest is train.batch_tokens."
    )


def test_a_key_in_the_wrong_section_is_told_its_own():
    assert "unknown key model.batch_tokens; the nearest is train.batch_tokens" in refusal("[model]\nbatch_tokens = 7\n")
    assert "unknown key d_ff; the nearest is model.d_ff" in refusal("d_ff = 7\n")


def test_an_unknown_section_is_refused_with_the_nearest():
    assert "my.toml line 1: unknown section [model_]; the nearest is [model]" in refusal("[model_]\nd_ff = 7\n")


def test_an_unknown_section_of_a_set_is_told_as_such():
    assert refusal("[train]\nseed = 3\n", "trian.max_steps=5") == (
        "config/load: --set trian.max_steps=5: unknown section [trian]; the nearest is [train]."
    )


def test_dotted_and_quoted_keys_find_their_lines():
    assert "my.toml line 2: unknown key model.d_fff" in refusal('title = ""\nmodel."d_fff" = 7\n')
    assert "my.toml line 2: unknown key model.d_fff" in refusal("[ 'model' ]\n d_fff=7\n")


def test_an_unknown_key_set_on_the_command_line_is_named_as_such():
    message = refusal("[model]\nd_ff = 7\n", "model.d_modell=3")
    assert message == "config/load: --set model.d_modell=3: unknown key model.d_modell; the nearest is model.d_model."


def test_an_empty_value_does_not_hide_an_unknown_key():
    assert "unknown key model.d_modell" in refusal("", "model.d_modell=")


# Wrong values


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[model]\nd_ff = 'x'", 'line 2: model.d_ff: found "x", wanted a whole number'),
        ("[model]\nd_ff = 1.5", "line 2: model.d_ff: found 1.5, wanted a whole number"),
        ("[model]\nd_ff = true", "line 2: model.d_ff: found true, wanted a whole number"),
        ("[model]\nd_ff = 0", "line 2: model.d_ff: found 0, wanted 1 or more"),
        ("[model]\ndropout = 1.0", "line 2: model.dropout: found 1.0, wanted less than 1"),
        ("[model]\ndropout = -0.1", "line 2: model.dropout: found -0.1, wanted 0 or more"),
        ("[model]\ndropout = nan", "line 2: model.dropout: found nan, wanted"),
        ("[train]\nlearning_rate = inf", "line 2: train.learning_rate: found inf, wanted a finite number"),
        ("[train]\nlearning_rate = 0.0", "line 2: train.learning_rate: found 0.0, wanted more than 0"),
        ("[model]\nattention_bias = 1", "line 2: model.attention_bias: found 1, wanted true or false"),
        ("[data]\nsource_language = false", "line 2: data.source_language: found false, wanted text in quotes"),
        ("[model]\nnorm_placement = 'mid'", "found \"mid\", wanted 'post' or 'pre'"),
        ("model = 3", "line 1: model: found 3, wanted a section of keys"),
        ("[[model]]\nd_ff = 3", "my.toml: model: found [{'d_ff': 3}], wanted a section of keys"),
        ("[model.d_ff]\nx = 3", "line 1: model.d_ff: found a section, wanted a whole number"),
    ],
)
def test_a_wrong_value_is_told_with_line_found_and_wanted(text, told):
    assert told in refusal(text)


def test_a_whole_number_may_stand_where_a_number_is_wanted():
    assert load_text("[train]\nepsilon = 1").train.epsilon == 1.0


def test_all_problems_come_in_one_message_in_the_order_of_the_lines():
    message = refusal("[train]\nseeds = 3\n[model]\nd_ff = 'x'\ndropout = 7.0\n", "search.beam=3")
    assert message.startswith("config/load: 4 problems: (1) --set search.beam=3: ")
    lines = [int(number) for number in re.findall(r"my\.toml line (\d+)", message)]
    assert lines == [2, 4, 5]


def test_heads_that_do_not_divide_the_model_are_refused_unless_sizes_are_given():
    message = refusal("", "model.num_heads=7")
    assert message == (
        "config/load: --set model.num_heads=7: d_model 512 is not divisible by num_heads 7 and d_k is not given; "
        "set model.d_k, or choose num_heads from the divisors of 512."
    )
    assert "d_v is not given" in refusal("[model]\nnum_heads = 7\nd_k = 11\n")
    sized = load_text("[model]\nnum_heads = 7\nd_k = 11\nd_v = 13\n").model
    assert (sized.key_size, sized.value_size) == (11, 13)


@pytest.mark.parametrize(
    ("text", "overrides", "where"),
    [
        ("", ["train.schedule=linear", "train.max_steps=10", "train.seed=3"], "--set train.schedule=linear"),
        ("[train]\nschedule = 'linear'\nwarmup_steps = 9\n", ["train.max_steps=9"], "--set train.max_steps=9"),
        ("[train]\nseed = 2\nschedule = 'linear'\n", ["train.max_steps=9", "model.d_ff=7"], "--set train.max_steps=9"),
        ("[train]\nseed = 2\nschedule = 'linear'\nmax_steps = 9\n", ["model.d_ff=7"], "my.toml line 3"),
        ("[model]\nd_ff = 7\n[train]\nconsistency = 'rdrop'\n", ["model.dropout=0"], "--set model.dropout=0"),
        ("[model]\ndropout = 0\n[train]\nconsistency = 'rdrop'\n", ["model.d_ff=7"], "my.toml line 4"),
    ],
)
def test_what_is_wrong_with_a_section_is_told_where_a_key_that_it_names_was_given(text, overrides, where):
    assert refusal(text, *overrides).startswith(f"config/load: {where}: ")


def test_separate_vocabularies_need_separate_embeddings():
    assert "set model.embedding_sharing to target or none" in refusal("[text]\nshared_vocabulary = false\n")
    assert "set model.embedding_sharing to target or none" in refusal("[model]\nsource_vocab_size = 101\n")


# --set


def test_values_set_on_the_command_line_follow_toml_and_come_last():
    config = load_text(
        "[model]\nd_ff = 7\n[train]\nseed = 3\n",
        overrides=[
            "model.d_ff=11",
            "train.epsilon=1e-6",
            "model.attention_bias=true",
            "train.max_steps=1_000",
            "title=a",
        ],
    )
    assert (config.model.d_ff, config.train.epsilon, config.model.attention_bias) == (11, 1e-6, True)
    assert (config.train.max_steps, config.train.seed, config.title) == (1000, 3, "a")


@pytest.mark.parametrize("code", ["no", "de", "nan", "inf", "on", "yes", "true", "zh-Hans", "'no'", '"no"'])
def test_language_codes_stay_text_whatever_toml_makes_of_them(code):
    config = load_text("", overrides=[f"data.target_language={code}"])
    assert config.data.target_language == code.strip("'\"")


@pytest.mark.parametrize(
    "name", ["2024", "1.5", "2024-01-01", "[a].en", "a = b.en", "x#y.en", "C:\\data\\x.en", "über.en"]
)
def test_file_names_stay_text(name):
    assert load_text("", overrides=[f"data.train_source={name}"]).data.train_source == name


def test_a_column_number_may_be_set_as_a_number():
    assert load_text("", overrides=["data.source_field=2"]).data.source_field == "2"


def test_a_value_cannot_carry_a_second_key():
    assert "wanted a whole number" in refusal("", "model.d_ff=3\nd_k = 5")


def test_an_empty_value_takes_a_key_back_to_its_default():
    recipe = "title = 'x'\n[train]\nclip_norm = 1.0\nmax_steps = 7\n"
    config = load_text(recipe, overrides=["train.clip_norm=", "train.max_steps=", "title="])
    assert config == RunConfig()


def test_the_last_of_two_values_for_one_key_counts():
    assert load_text("", overrides=["model.d_ff=3", "model.d_ff=5"]).model.d_ff == 5


@pytest.mark.parametrize("bad", ["model.d_ff", "=3", "model.=3", ".d_ff=3", ""])
def test_what_is_not_a_key_and_a_value_is_refused_with_an_example(bad):
    assert "wanted section.key=value, as in model.d_model=256" in refusal("", bad)


def test_a_whole_section_cannot_be_replaced():
    assert "model is a section" in refusal("[model]\nd_ff = 7\n", "model={d_k = 3}")


def test_an_unclosed_quote_is_refused():
    assert "Close its quotes" in refusal("", 'title="x')


def test_a_file_name_that_is_not_utf8_is_refused_in_a_line_that_can_be_printed():
    refusal("", "data.train_source=\udcff.en").encode("utf-8")


def test_setting_does_not_change_the_table_it_is_given():
    table = {"model": {"preset": "big", "d_ff": 7}}
    build(table, overrides=["model.d_ff=11"])
    assert table == {"model": {"preset": "big", "d_ff": 7}}


# Presets


def test_a_preset_gives_the_model_and_the_section_s_own_keys_change_it():
    config = load_text("[model]\npreset = 'big'\ndropout = 0.1\n")
    assert config.model == BIG.model_copy(update={"dropout": 0.1})


def test_a_preset_set_on_the_command_line_replaces_the_recipe_s_own_and_its_sizes():
    recipe = "[model]\npreset = 'big'\ndropout = 0.25\nd_k = 11\npositions = 'rope'\nvocab_size = 7\n"
    for name, model in PRESETS.items():
        chosen = load_text(recipe, overrides=[f"model.preset={name}"]).model
        assert chosen == model.model_copy(update={"positions": "rope"})
        assert load("short", overrides=[f"model.preset={name}"]).model == model
    assert load_text("", overrides=["model.preset=tiny"]).model == TINY


def test_no_preset_on_the_command_line_leaves_the_recipe_s_own_sizes():
    recipe = "[model]\npreset = 'big'\ndropout = 0.25\n"
    assert load_text(recipe, overrides=["model.preset="]).model == BASE.model_copy(update={"dropout": 0.25})


@given(st.permutations(["model.preset=tiny", "model.dropout=0.5", "model.d_ff=11"]))
def test_a_key_set_on_the_command_line_wins_over_a_preset_there_whatever_comes_first(overrides):
    model = load("short", overrides=overrides).model
    assert model == TINY.model_copy(update={"dropout": 0.5, "d_ff": 11})


def test_a_preset_decides_about_every_key_that_any_of_them_states_and_of_all_else_about_none():
    stated = set().union(*(preset.model_fields_set for preset in PRESETS.values()))
    assert stated == set(SIZES) - {"d_k", "d_v"}


def test_auto_is_no_model_of_a_recipe():
    assert "my.toml line 2: auto is no model" in refusal("[model]\npreset = 'auto'\n")
    assert "--set model.preset=auto: auto is no model: it chooses from the training text" in refusal(
        "", "model.preset=auto"
    )


def test_what_is_chosen_stands_behind_what_is_given():
    draft = draft_text("[model]\nd_ff = 7\n", overrides=["train.seed=3", "train.clip_norm="])
    assert draft.given() == {"model.d_ff": 7, "train.seed": 3}
    chosen = {"model.d_ff": 11, "train.seed": 5, "train.max_steps": 13, "search.beam_size": 2}
    config = draft.config(chosen)
    assert (config.model.d_ff, config.train.seed, config.train.max_steps, config.search.beam_size) == (7, 3, 13, 2)
    assert draft.config() == load_text("[model]\nd_ff = 7\n", overrides=["train.seed=3"])
    with pytest.raises(ConfigError, match="line 1: model: found 3, wanted a section"):
        draft_text("model = 3").config(chosen)


def test_an_unknown_preset_is_refused_with_those_there_are():
    assert 'my.toml line 2: there is no preset "huge"; wanted one of base, big, tiny' in refusal(
        "[model]\npreset = 'huge'\n"
    )


def test_presets_can_be_loaded_by_name():
    assert load_preset("base") == RunConfig()
    assert load_preset("tiny", overrides=["model.d_ff=11"]).model.d_ff == 11
    with pytest.raises(ConfigError, match="there is no preset"):
        load_preset("huge")


# To TOML and back

texts = st.text(max_size=20)
counts = st.integers(1, 10**9)
shares = st.floats(0, 1, exclude_max=True)
positives = st.floats(0, exclude_min=True, allow_infinity=False)
runs = st.builds(
    lambda top, **sections: build({**top, **sections}),
    st.fixed_dictionaries({"title": texts, "note": texts}),
    data=st.fixed_dictionaries(
        {"source_language": texts, "train_source": texts, "held_out_share": shares},
        optional={"max_tokens": counts},
    ),
    clean=st.fixed_dictionaries({"max_ratio": st.floats(0, 1e300), "drop_identical": st.booleans()}),
    model=st.fixed_dictionaries(
        {"d_k": counts, "d_v": counts, "dropout": shares},
        optional={"d_model": counts, "positions": st.sampled_from(["sinusoidal", "learned", "none"])},
    ),
    train=st.fixed_dictionaries({"epsilon": positives}, optional={"clip_norm": positives, "max_epochs": counts}),
)


@given(runs, st.booleans())
def test_writing_and_reading_a_recipe_gives_the_same_run(config, everything):
    assert load_text(to_toml(config, everything=everything)) == config


def test_a_written_recipe_holds_only_the_differences_when_asked():
    config = load_text("[model]\nd_ff = 7\n[search]\nbeam_size = 4\n")
    assert to_toml(config, everything=False) == "[model]\nd_ff = 7\n"
    assert to_toml(RunConfig(), everything=False).strip() == ""


def test_a_written_recipe_holds_every_key_that_has_a_value():
    text = to_toml(RunConfig())
    for section, keys in RunConfig().model_dump().items():
        for key, value in keys.items() if isinstance(keys, dict) else [(section, keys)]:
            assert (f"\n{key} = " in f"\n{text}") == (value is not None)


def test_control_characters_and_quotes_survive_toml():
    title = "".join(map(chr, range(160))) + '"""\\\u2028😀'
    assert load_text(to_toml(build({"title": title}))).title == title


# Differences


def test_a_difference_names_each_changed_key_with_both_values():
    old = load_text("title = 'a'\n[model]\nd_ff = 7\n")
    new = load_text("title = 'b'\n[model]\nd_ff = 11\n[train]\nclip_norm = 1.5\n")
    assert difference(old, new) == [
        Change("title", "a", "b"),
        Change("model.d_ff", 7, 11),
        Change("train.clip_norm", None, 1.5),
    ]
    assert difference(old, old) == []


@given(runs, runs)
def test_there_is_a_difference_exactly_when_runs_differ(old, new):
    assert (difference(old, new) == []) == (old == new)


@pytest.mark.parametrize("name", [r"C:\texts\a.en", r"D:\memory.tmx"])
def test_a_name_with_backslashes_is_told_the_quotes_that_it_needs(tmp_path, name):
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ntrain_source = "{name}"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 2 .*text with backslashes stands in single quotes"):
        load(str(recipe))
    recipe.write_text(f"[data]\ntrain_source = '{name}'\n", encoding="utf-8")
    assert load(str(recipe)).data.train_source == name

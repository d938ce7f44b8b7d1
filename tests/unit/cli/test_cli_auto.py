"""headway train --preset: reasons are printed, what is given wins, a run keeps its settings, and what is refused."""

import json
import re

import pytest

from headway.cli.main import main
from headway.config.load import load
from headway.config.presets import TINY
from headway.folder.contents import ModelFolder

SMALL = (
    "model.d_model=8",
    "model.d_ff=13",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "train.max_steps=1",
    "train.batch_tokens=97",
    "train.precision=float32",
    "train.threads=1",
    "search.beam_size=1",
    "search.max_extra_tokens=2",
)
OPEN_LENGTH = ("train.batch_tokens=", "train.max_steps=")  # as they were without SMALL
WORDS = "dog cat man child girl sky sea tree house bird".split()  # noqa: SIM905 - easier to read
CHINESE = "狗猫人孩女天海树房鸟"
PAIRS = [(f"{one} and {other}", CHINESE[i] + "和" + CHINESE[j]) for i, one in enumerate(WORDS) for j, other in
         enumerate(WORDS) if i != j]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    write(tmp_path, PAIRS)
    return tmp_path


def write(folder, pairs):
    (folder / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def command(data, *overrides, options=("--preset", "auto"), languages=("en", "zh")):
    """Run the short form on the folder ``run`` of the data; give its exit code."""
    settings = [part for override in (*SMALL, *overrides) for part in ("--set", override)]
    named = ["--source", "a.tsv", "--source-language", languages[0], "--target-language", languages[1]]
    return main(["train", *options, *named, "--data", str(data), "--out", str(data / "run"), *settings])


def recipe(data):
    return load(data / "run" / "training" / "recipe.toml")


def steps(data):
    """The steps of the run's log."""
    log = (data / "run" / "training" / "metrics.jsonl").read_text(encoding="utf-8")
    return [entry["step"] for entry in map(json.loads, log.splitlines()) if entry["event"] == "step"]


def told(error, key):
    """Value and reason of a key, as they were printed."""
    found = re.search(rf"^  {re.escape(key)} +(\S+)  (.+)$", error, re.MULTILINE)
    assert found is not None, error
    return found.groups()


def test_choices_are_printed_with_reasons_and_stand_in_the_run_s_recipe(data, capsys):
    assert command(data) == 0
    error = capsys.readouterr().err
    assert "counting the training text ...\n90 of 90 pairs after cleaning; source 270 words; target 270 char" in error
    model, train = recipe(data).model, recipe(data).train
    assert told(error, "model.dropout")[0] == str(model.dropout)
    assert told(error, "model.dropout")[1].startswith("for fewer than 10,000 pairs; 0.3 to 0.5 for small corpora (Sen")
    assert told(error, "model.vocab_size")[0] == f"{model.vocab_size:,}"
    assert told(error, "train.learning_rate")[0] == str(train.learning_rate)
    assert (model.vocab_size, model.dropout, train.early_stopping, train.average) == (2000, 0.4, "loss", "best")


def test_what_is_given_wins_and_its_line_says_so(data, capsys):
    assert command(data, "model.dropout=0.25", "model.vocab_size=307") == 0
    error = capsys.readouterr().err
    assert told(error, "model.d_model")[0] == "8"
    assert told(error, "model.d_model")[1].startswith("as given; the corpus would have 128: for fewer than 10,000")
    assert told(error, "model.dropout")[1].startswith("as given; the corpus would have 0.4: ")
    model = recipe(data).model
    assert (model.d_model, model.d_ff, model.num_heads, model.dropout, model.vocab_size) == (8, 13, 4, 0.25, 307)


def test_what_a_recipe_gives_wins_but_for_its_preset(data, capsys):
    keys = "\n".join(f"{key.partition('.')[2]}" for key in SMALL if key.startswith("train."))
    data_keys = 'train_source = "a.tsv"\nsource_language = "en"\ntarget_language = "zh"'
    (data / "mine.toml").write_text(
        f"[data]\n{data_keys}\n[model]\npreset = 'big'\nd_model = 8\nd_ff = 13\nnum_encoder_layers = 1\n"
        f"num_decoder_layers = 1\n[train]\n{keys.replace('float32', repr('float32'))}\n",
        encoding="utf-8",
    )
    arguments = ["train", str(data / "mine.toml"), "--preset", "auto", "--data", str(data), "--out", str(data / "run")]
    assert main(arguments) == 0
    error = capsys.readouterr().err
    assert told(error, "model.d_ff")[1].startswith("as given")
    model = recipe(data).model
    assert (model.d_model, model.d_ff, model.num_heads, model.dropout, model.vocab_size) == (8, 13, 4, 0.4, 2000)


def test_a_choice_outside_model_and_training_is_kept_too(data, capsys):
    write(data, [("A dog. A cat.", "狗。猫。"), *PAIRS])
    assert command(data) == 0
    assert told(capsys.readouterr().err, "search.split_sentences")[0] == "true"
    before = recipe(data)
    assert before.search.split_sentences
    assert command(data) == 0
    assert "measured otherwise" not in capsys.readouterr().err
    assert recipe(data) == before
    assert ModelFolder.open(data / "run").config.search.split_sentences


def test_a_run_goes_on_with_the_settings_it_began_with_until_it_is_forgotten(data, capsys):
    assert command(data) == 0
    before = recipe(data)
    capsys.readouterr()
    assert command(data, "train.max_steps=2") == 0
    error = capsys.readouterr().err
    assert "goes on with the settings that it began with (training/recipe.toml there)" in error
    assert "counting" not in error
    assert recipe(data) == before.model_copy(update={"train": before.train.model_copy(update={"max_steps": 2})})
    write(data, [(f"{source} {number}", f"{target}{number}") for number in range(170) for source, target in PAIRS])
    assert command(data) == 2  # never another model for the text that it is now
    assert "the training files of" in capsys.readouterr().err
    assert recipe(data).model == before.model
    few = ("train.validation_sentences=3", "text.sample_pairs=1000")
    assert command(data, *few, options=["--preset", "auto", "--fresh"]) == 0
    assert (before.model.dropout, recipe(data).model.dropout) == (0.4, 0.3)


def test_a_small_corpus_trains_with_muon_until_the_rate_is_0(data, capsys):
    assert command(data, "train.max_steps=9") == 0
    train = recipe(data).train
    assert (train.optimizer, train.schedule, train.early_stopping) == ("muon", "linear", "none")
    assert told(capsys.readouterr().err, "train.learning_rate") == (
        "0.004",
        "for any width, as Muon's updates have the same size whatever the gradient's; found on Multi30k's 29,000 pairs "
        "(docs/log.md)",
    )
    log = (data / "run" / "training" / "metrics.jsonl").read_text(encoding="utf-8")
    rates = [entry["learning_rate"] for entry in map(json.loads, log.splitlines()) if entry["event"] == "step"]
    assert rates == pytest.approx([0.004 * (9 - step) / 8 for step in range(1, 10)])  # one step of warm-up
    assert command(data, "train.max_steps=11") == 2  # their number shapes the rates of a run that has begun
    assert "train.max_steps" in capsys.readouterr().err


def test_a_run_that_began_with_what_was_chosen_before_there_was_muon_goes_on_so(data, capsys):
    older = ("train.optimizer=adam", "train.schedule=noam", "train.early_stopping=loss", "train.warmup_steps=1")
    assert command(data, "train.max_steps=3", *older, "train.learning_rate=0.003") == 0
    capsys.readouterr()
    assert command(data, "train.max_steps=5") == 0
    assert "goes on with the settings that it began with" in capsys.readouterr().err
    train = recipe(data).train
    assert (train.optimizer, train.schedule, train.early_stopping) == ("adam", "noam", "loss")
    assert (train.learning_rate, train.patience) == (0.003, 6)
    assert steps(data) == [1, 2, 3, 4, 5]


def test_the_written_recipe_repeats_the_run_without_auto(data):
    assert command(data) == 0
    weights = (data / "run" / "model.safetensors").read_bytes()
    again = str(data / "run" / "training" / "recipe.toml")
    assert main(["train", again, "--data", str(data), "--out", str(data / "again")]) == 0
    assert (data / "again" / "model.safetensors").read_bytes() == weights


@pytest.mark.parametrize(
    ("language", "targets"),
    [
        ("zh", ["狗在公园里跑", "猫在家", "人在外面唱歌", "孩子在等"]),
        ("ja", ["犬が公園を走る", "ネコは家にいる", "人が外で歌う", "子供が待つ"]),
    ],
)
def test_scripts_without_spaces_are_counted_in_characters(data, capsys, language, targets):
    write(data, [(f"a {word} is here", target) for word in WORDS for target in targets])
    assert command(data, languages=("en", language)) == 0
    characters = len(WORDS) * sum(map(len, targets))
    assert f"source 160 words; target {characters} characters, without spaces" in capsys.readouterr().err


@pytest.mark.parametrize("pairs", [[], PAIRS[:1]])
def test_a_corpus_of_one_pair_or_none_is_an_error_and_leaves_no_run(data, capsys, pairs):
    write(data, pairs)
    assert command(data) == 2
    assert re.search(r"sentence pairs are left after cleaning|is empty", capsys.readouterr().err)
    assert not (data / "run" / "training" / "recipe.toml").exists()


def test_mistakes_are_told_before_the_text_is_read(data, capsys):
    (data / "a.tsv").unlink()
    for override, message in (
        ("train.batch_token=7", "unknown key train.batch_token"),
        ("model.d_ff=x", "model.d_ff: found"),
        ("model.num_kv_heads=7", "num_kv_heads 7 does not divide"),
        ("train.init=there", "the run begins with the model in there"),
        ("train.batch_tokens=-97", "wanted 1 or more"),
        ("text.bpe_dropout=0.1 text.model=unigram", "which has no merges to leave out"),
        ("train.schedule=cosine train.warmup_steps=100000 train.max_steps=", "schedule cosine falls from"),
    ):
        assert command(data, *override.split()) == 2
        assert message in capsys.readouterr().err
    assert command(data) == 2
    assert "a.tsv does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "overrides",
    [
        ("train.schedule=cosine", "train.warmup_steps=4000", *OPEN_LENGTH),  # a small corpus has 2,000 steps
        ("model.d_model=", "model.num_kv_heads=8"),
        ("model.d_model=100", "model.positions=rope"),
        ("train.consistency=rdrop", "model.dropout=0.0"),  # a large corpus has no other dropout
    ],
)
def test_what_suits_a_corpus_of_some_size_is_not_refused_before_it_is_read(data, capsys, overrides):
    (data / "a.tsv").unlink()
    assert command(data, *overrides) == 2
    assert "a.tsv does not exist" in capsys.readouterr().err


def test_what_does_not_suit_the_corpus_is_refused_once_it_is_counted(data, capsys):
    assert command(data, "train.schedule=cosine", "train.warmup_steps=4000", *OPEN_LENGTH) == 2
    error = capsys.readouterr().err
    assert "counting the training text" in error
    assert "schedule cosine falls from warmup_steps (4,000) to max_steps (2,000)" in error


def test_a_first_look_is_lengthened_by_leaving_its_minutes_out(data, capsys):
    assert command(data, "train.max_steps=3", "train.max_minutes=1e-9") == 0
    assert recipe(data).train.max_minutes == 1e-9
    assert "step 3" not in capsys.readouterr().err
    assert command(data, "train.max_steps=3") == 0
    assert recipe(data).train.max_minutes is None
    assert steps(data) == [1, 2, 3]


def test_other_minutes_are_taken_when_a_run_goes_on(data):
    assert command(data, "train.max_steps=3", "train.max_minutes=1e-9") == 0
    assert command(data, "train.max_steps=3", "train.max_minutes=59") == 0
    assert recipe(data).train.max_minutes == 59
    assert steps(data) == [1, 2, 3]


def test_a_setting_that_is_not_chosen_and_left_out_when_a_run_goes_on_is_refused_by_name(data, capsys):
    assert command(data, "train.clip_norm=1.0") == 0
    capsys.readouterr()
    assert command(data, "train.max_steps=2") == 2
    assert "train.clip_norm" in capsys.readouterr().err
    assert command(data, "train.max_steps=2", "train.clip_norm=1.0") == 0


def test_a_named_preset_gives_the_model_and_the_rest_of_the_recipe_stays(data, capsys):
    assert command(data, "model.vocab_size=300", options=["--preset", "tiny"]) == 0
    given = {"vocab_size": 300, "d_model": 8, "d_ff": 13, "num_encoder_layers": 1, "num_decoder_layers": 1}
    assert recipe(data).model == TINY.model_copy(update=given)  # the recipe has dropout 0.2
    assert recipe(data).train.learning_rate == load("short").train.learning_rate
    assert "pairs after cleaning" not in capsys.readouterr().err


def test_two_presets_or_an_unknown_one_are_refused(data, capsys):
    assert command(data, "model.preset=tiny") == 2
    assert "found both --preset auto and --set model.preset=tiny; wanted one" in capsys.readouterr().err
    assert command(data, options=["--preset", "tiney"]) == 2
    assert "the nearest is tiny. Give one of auto, base, big, tiny, small." in capsys.readouterr().err
    assert command(data, "model.preset=auto", options=[]) == 2
    assert "given as `headway train --preset auto`" in capsys.readouterr().err

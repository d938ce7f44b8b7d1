"""headway describe: the numbers of the paper, of a recipe and of a folder, and what it refuses."""

import json
import subprocess
import sys

import pytest

from headway.cli.main import main
from headway.config.load import load_text, recipe_names
from headway.config.model_config import ModelConfig
from headway.folder.contents import FolderConfig, write_folder
from headway.text.bpe import learn_bpe


def described(capsys, *arguments):
    assert main(["describe", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main(["describe", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        (["base"], 63_045_632),
        (["big"], 214_171_648),
        (["base", "--set", "model.attention_bias=true"], 63_082_496),
        (["base", "--set", "model.attention_bias=true", "--set", "model.vocab_size=40960"], 65_110_016),
        (["big", "--set", "model.attention_bias=true", "--set", "model.vocab_size=40960"], 218_300_416),
        (["wmt14-en-de-base"], 63_045_632),
        (["wmt14-en-de-big"], 214_171_648),
    ],
)
def test_parameters_are_exact(capsys, arguments, parameters):
    facts = described(capsys, *arguments)
    assert facts["parameters"] == parameters
    assert sum(facts["parameters_by_component"].values()) == parameters


def test_a_set_value_changes_the_model(capsys):
    settings = ["--set", "model.vocab_size=40960", "--set", "model.attention_bias=true", "--set", "model.d_k=16"]
    assert described(capsys, "base", *settings)["parameters"] == 58_018_304


def test_json_tells_costs_cache_memory_and_rate(capsys):
    facts = described(capsys, "base", "--length", "0")
    assert facts["multiply_adds"]["target_token"] == 40_964_096
    assert facts["multiply_adds"]["source_token"] == 22_020_096
    assert facts["cache_bytes_per_token"] == {"float16": 12_288, "float32": 24_576}
    assert facts["training_memory"]["weights"] == 4 * 63_045_632
    assert facts["training_memory"]["microbatch_tokens"] == 25_000
    assert facts["peak_learning_rate"] == pytest.approx(6.98771e-4, rel=1e-5)
    assert facts["config"]["model"]["d_model"] == 512


def test_what_departs_from_the_paper_is_told_in_json_and_in_text(capsys):
    assert described(capsys, "base")["departures"] == {}
    settings = ["--set", "model.norm_placement=pre", "--set", "model.num_kv_heads=2"]
    facts = described(capsys, "base", *settings)
    assert list(facts["departures"]) == ["norm_placement", "num_kv_heads"]
    # by hand: 18 attentions whose W_K and W_V are 512 x 128 each; two norms more
    assert facts["parameters"] == 63_045_632 - 18 * 2 * 512 * (512 - 128) + 2 * 2 * 512
    assert facts["cache_bytes_per_token"]["float16"] == 12_288 // 4
    assert main(["describe", "base", *settings]) == 0
    shown = capsys.readouterr().out
    assert "departures from the paper               2" in shown
    assert "keys and values in 2 heads" in shown
    assert main(["describe", "base"]) == 0
    assert "departures from the paper            none" in capsys.readouterr().out


def test_two_passes_of_a_microbatch_take_the_activations_of_twice_its_tokens(capsys):
    twice = described(capsys, "base", "--set", "train.microbatch_tokens=5000", "--set", "train.consistency=rdrop")
    plain = described(capsys, "base", "--set", "train.microbatch_tokens=10000")
    assert twice["training_memory"]["activations"] == plain["training_memory"]["activations"]


def test_memory_is_told_for_the_microbatch_and_precision_of_the_recipe(capsys):
    plain = described(capsys, "base")["training_memory"]
    small = described(capsys, "base", "--set", "train.microbatch_tokens=5000")["training_memory"]
    assert small["activations"] * 5 == plain["activations"]
    assert described(capsys, "base", "--set", "train.precision=bf16")["training_memory"]["total"] < plain["total"]


def test_a_rate_of_the_recipe_is_the_peak(capsys):
    facts = described(capsys, "base", "--set", "train.learning_rate=0.005")
    assert facts["peak_learning_rate"] == 0.005


@pytest.mark.parametrize("name", ["big", "wmt14-en-de-big", "wmt14-en-fr-big"])
def test_big_comes_with_the_erratum_of_table_3(capsys, name):
    assert any("213 million" in note and "218,300,416" in note for note in described(capsys, name)["notes"])
    assert main(["describe", name]) == 0
    assert "Note: Table 3" in capsys.readouterr().out


def test_other_models_come_without_the_erratum(capsys):
    assert described(capsys, "base")["notes"] == []
    assert described(capsys, "big", "--set", "model.d_ff=2048")["notes"] == []


@pytest.mark.parametrize("name", ["base", "big", "tiny", *recipe_names()])
def test_text_shows_the_same_count_and_every_setting(capsys, name):
    parameters = described(capsys, name)["parameters"]
    assert main(["describe", name]) == 0
    shown = capsys.readouterr().out
    assert f"{parameters:,}" in shown
    assert "d_model = " in shown
    assert "peak learning rate" in shown


def test_a_recipe_is_shown_as_toml_that_can_be_read_again(capsys):
    assert main(["describe", "multi30k-en-de"]) == 0
    shown = capsys.readouterr().out
    toml = shown[: shown.index("\nparameters ")]
    assert load_text(toml).model.d_model == 128


def test_a_recipe_file_is_described(capsys, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[model]\nvocab_size = 101\n", encoding="utf-8")
    assert described(capsys, str(path))["parameters"] == 44_101_632 + 101 * 512


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = learn_bpe(["ein Haus", "a house"], vocab_size=270)
    model = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=14, d_ff=11, num_heads=7)
    config = FolderConfig(source_language="en", target_language="de", model=model, max_source_tokens=53)
    path = tmp_path_factory.mktemp("describe") / "model"
    write_folder(
        path, config=config, weights={}, source_tokenizer=tokenizer, target_tokenizer=tokenizer, card="# A card\n"
    )
    return path


def test_a_model_folder_is_described_without_a_recipe(capsys, folder):
    facts = described(capsys, str(folder))
    vocab_size = facts["config"]["model"]["vocab_size"]
    attention, feed_forward, norm = 4 * 14 * 14, 2 * 14 * 11 + 11 + 14, 28
    assert facts["parameters"] == vocab_size * 14 + 18 * attention + 12 * feed_forward + 30 * norm
    assert facts["kind"] == "folder"
    assert "training_memory" not in facts
    assert main(["describe", str(folder)]) == 0
    assert "d_model = 14" in capsys.readouterr().out


@pytest.mark.parametrize("architecture", ["decoder_only", "encoder_only"])
def test_a_model_of_one_text_is_described_by_its_folder(capsys, tmp_path, architecture):
    tokenizer = learn_bpe(["a house"], vocab_size=270)
    model = ModelConfig(architecture=architecture, vocab_size=tokenizer.vocab_size, d_model=14, d_ff=11, num_heads=7)
    config = FolderConfig(model=model, max_source_tokens=53)
    both = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    write_folder(tmp_path / "model", config=config, weights={}, **both, card="# A card\n")
    facts = described(capsys, str(tmp_path / "model"))
    assert facts["kind"] == "folder"
    assert facts["config"]["model"]["architecture"] == architecture


def test_a_trained_model_cannot_be_changed(capsys, folder):
    assert "is a trained model, which --set model.d_ff=3 cannot change" in refused(
        capsys, str(folder), "--set", "model.d_ff=3"
    )


def test_an_unknown_key_names_the_nearest(capsys):
    assert "unknown key model.d_modell; the nearest is model.d_model" in refused(
        capsys, "base", "--set", "model.d_modell=3"
    )


def test_bad_heads_are_refused(capsys):
    assert "d_model 512 is not divisible by num_heads 7" in refused(capsys, "base", "--set", "model.num_heads=7")


def test_a_missing_model_is_refused(capsys, tmp_path):
    assert "there is no such file" in refused(capsys, str(tmp_path / "gone"))


def test_a_folder_that_is_no_model_is_refused(capsys, tmp_path):
    assert "has no file config.json" in refused(capsys, str(tmp_path))


def test_a_run_that_has_not_ended_says_how_to_go_on(capsys, tmp_path):
    (tmp_path / "training").mkdir()
    said = refused(capsys, str(tmp_path))
    assert "the training in it has not ended (or the file was lost). Give the train command again" in said
    assert f"headway average -m {tmp_path} --out FOLDER" in said


def test_describing_needs_no_torch():
    code = "import sys; from headway.cli.main import main; main(['describe', 'base']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("given", "nearest"), [("tinny", "tiny"), ("bsae", "base"), ("bigg", "big")])
def test_a_preset_written_wrongly_is_named(capsys, given, nearest):
    assert f"{given} is no preset, recipe, file or folder; the nearest preset is {nearest}." in refused(capsys, given)


def test_a_recipe_written_wrongly_is_named_before_presets(capsys):
    assert "the nearest packaged recipe is demo." in refused(capsys, "demmo")

"""From one file of text to a measured language model that goes on from prompts, through the real commands."""

import json

import pytest
from journey_command import SMALL, five_letter_strings, headway, set_options, write_lines

from headway.cli.main import main

KEYS = (
    *SMALL,
    "data.format=text",
    "data.train_source=a.txt",
    "model.architecture=decoder_only",
    "model.vocab_size=13",
    "train.best_by=loss",
    "train.label_smoothing=0.0",
    "train.max_steps=400",
    "train.batch_tokens=900",
    "train.validate_every=100",
    "train.checkpoint_every=100",
)


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    """A run over strings of five letters that each come twice, the second time in capitals: (folder, run, result)."""
    folder = tmp_path_factory.mktemp("language")
    strings = [f"{text[:2]}-{text[:2]}" for text in five_letter_strings(400, letters="abcd")]
    write_lines(folder / "a.txt", [*strings, *strings[:40]])
    recipe = folder / "own.toml"
    recipe.write_text('title = "Twice"\n', encoding="utf-8")
    done = headway(
        "train", recipe, "--data", folder, "--out", folder / "m", *set_options(*KEYS, "clean.drop_duplicates=false")
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder, folder / "m", done


def told(capsys, *arguments):
    """What the command prints; it must succeed."""
    assert main([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_training_says_how_to_use_the_model_and_how_well_it_predicts(language):
    _, _, done = language
    text = done.stderr.decode()
    assert "Generate: headway generate -m" in text
    assert "a word, " in text
    assert "BLEU" not in text


def test_it_goes_on_as_the_text_does(language, capsys):
    _, model, _ = language
    printed = told(capsys, "generate", "-m", model, "--prompt", "ab-", "--prompt", "dc-", "--beam-size", "2")
    assert printed.split("\n") == ["ab-ab", "dc-dc", ""]


def test_samples_are_the_same_for_a_seed_and_differ_between_seeds(language, capsys):
    _, model, _ = language
    arguments = ("generate", "-m", model, "--sample", "--n-best", "7")
    first = told(capsys, *arguments, "--seed", "5")
    assert told(capsys, *arguments, "--seed", "5") == first
    assert told(capsys, *arguments, "--seed", "6") != first


def test_jsonl_has_a_prompt_a_line_with_all_its_texts(language, capsys, tmp_path):
    _, model, _ = language
    write_lines(tmp_path / "prompts", ["a", "", "cd"])
    found = told(
        capsys, "generate", tmp_path / "prompts", "-m", model, "--format", "jsonl", "--n-best", "2", "--beam-size", "3"
    )
    records = [json.loads(line) for line in found.splitlines()]
    assert [record["prompt"] for record in records] == ["a", "", "cd"]
    assert all(len(record["texts"]) == 2 for record in records)
    assert all(text["text"].startswith(record["prompt"]) for record in records for text in record["texts"])


def test_perplexity_is_told_a_word_and_a_token(language, capsys, tmp_path):
    _, model, _ = language
    write_lines(tmp_path / "text", ["ab-ab", "dc-dc"])
    arguments = ("evaluate", "--task", "language-model", "-m", model, "--reference", tmp_path / "text")
    found = json.loads(told(capsys, *arguments, "--json"))
    assert (found["num_words"], found["num_lines"]) == (4, 2)
    assert 2 <= found["perplexity_per_word"] < 40  # 16 lines of two words (the end is one) are alike: 4 a word
    assert f"{found['perplexity_per_word']:.2f}" in told(capsys, *arguments)


def test_what_cannot_be_done_is_named(language, capsys, tmp_path):
    _, model, _ = language
    write_lines(tmp_path / "text", ["ab"])
    evaluate = ("evaluate", "--task", "language-model", "-m", model, "--reference", tmp_path / "text")
    for arguments, wanted in (
        (("translate", "-m", model), "is a language model (architecture decoder_only); wanted a translator"),
        (("generate", tmp_path / "text", "-m", model, "--prompt", "a"), "found both --prompt and the file"),
        (("generate", "-m", model, "--mbr", "3"), "No such option '--mbr'"),
        (("generate", "-m", model, "--seed", "3"), "--seed would have no effect without --sample."),
        (
            ("generate", "-m", model, "--sample", "--beam-size", "2"),
            "(--sample) have no beam; leave out --beam-size",
        ),
        ((*evaluate, "--source", tmp_path / "text"), "--source would have no effect with --task language-model"),
        ((*evaluate, "-m", model), "measures one model; found 2"),
        (
            ("export", "-m", model, "--to", "huggingface", "--out", tmp_path / "x"),
            "architecture is decoder_only; other toolkits' formats",
        ),
        (("explain", "-m", model, "ab"), "a language model (architecture decoder_only); wanted a translator"),
        (("pack", "-m", model), "the engine does not run a model with architecture decoder_only"),
    ):
        assert main([str(argument) for argument in arguments]) == 2, arguments
        assert wanted in capsys.readouterr().err


def test_settings_are_not_chosen_for_a_language_model(language, capsys, tmp_path):
    folder, _, _ = language
    overrides = [part for key in KEYS if "model.d_" not in key for part in ("--set", key)]
    code = main(["train", "--preset", "auto", str(folder / "own.toml"), "--data", str(folder), *overrides])
    assert code == 2
    assert "sizes are chosen for the encoder-decoder (transformer) alone" in capsys.readouterr().err

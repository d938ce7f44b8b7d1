"""Runs of the models without self-attention go the way of all runs, from recipe to folder."""

import pytest
from train_letters import final_state, letters_config, of_kind, run, write_corpus

from headway.cli.main import main
from headway.errors import ConfigError, InspectionError, InterchangeError
from headway.folder.contents import ModelFolder
from headway.inspection.subject import Subject
from headway.interchange.formats import export_model
from headway.train.events import Finished, StepDone
from headway.translate.translator import Translator

KINDS = {
    "recurrent": ("model.architecture=recurrent",),
    "convolutional": ("model.architecture=convolutional", "model.positions=learned", "model.max_positions=31"),
}
OWN = ("model.d_ff=", "model.num_heads=")  # back to their defaults


def config(kind, *overrides):
    return letters_config(*OWN, *KINDS[kind], *overrides)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="module", params=KINDS)
def trained(request, data, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    return request.param, out, run(config(request.param), data, out)


def test_a_run_ends_with_a_folder_that_translates_by_torch_and_says_why(trained):
    kind, out, events = trained
    assert len(of_kind(events, StepDone)) == 14
    assert of_kind(events, Finished)
    told = []
    translator = Translator.from_folder(out, on_notice=told.append)
    found = translator.translate(["abc", "fed"], target_prefixes=["AB", "F"], with_alignment=True)
    assert [translation.text.startswith(prefix) for translation, prefix in zip(found, ("AB", "F"), strict=True)]
    assert all(translation.alignment for translation in found)
    scored = translator.score(["abc", "fed"], [translation.text for translation in found])
    assert [pair.log_prob for pair in scored] == pytest.approx([one.log_prob for one in found], abs=1e-4)
    assert any(f"architecture {kind}" in line and "torch computes" in line for line in told)


def test_the_card_and_describe_say_what_it_is(trained, capsys):
    kind, out, _ = trained
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"A {kind} encoder-decoder that translates en to de" in card
    assert "d_ff" not in card.partition("## ")[0]
    assert main(["describe", str(out)]) == 0
    told = capsys.readouterr().out
    assert "float16; a source token a sentence" in told
    assert {"recurrent": "encoder recurrent", "convolutional": "decoder convolution"}[kind] in told


def test_stopped_and_resumed_equals_never_stopped_bit_for_bit(data, trained, tmp_path):
    settings = config(trained[0])
    run(settings, data, tmp_path, stop_at=6)
    run(settings, data, tmp_path)
    assert final_state(tmp_path) == final_state(trained[1])


def test_other_toolkits_formats_are_refused_by_name(trained, tmp_path):
    kind, out, _ = trained
    with pytest.raises(InterchangeError, match=f"architecture is {kind}"):
        export_model(ModelFolder.open(out), tmp_path / "new", target_format="huggingface", sentences=["abc"])


def test_heads_are_looked_into_of_a_transformer_alone(trained):
    kind, out, _ = trained
    with pytest.raises(InspectionError, match=f"has a model of architecture {kind}; wanted a Transformer"):
        Subject.from_folder(out)


@pytest.mark.parametrize("consistency", ["rdrop", "cutoff"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_passes_that_are_to_agree_work_too(kind, consistency, data, tmp_path):
    settings = config(kind, f"train.consistency={consistency}", "train.max_steps=3")
    assert len(of_kind(run(settings, data, tmp_path), StepDone)) == 3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.optimizer=muon"], "train.optimizer is muon, which works on the layers of a Transformer"),
        (["train.sharding=fsdp"], "train.sharding is fsdp"),
        (["train.lora_rank=2"], "train.lora_rank is 2"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_works_on_a_transformer_alone_is_refused(kind, overrides, message):
    with pytest.raises(ConfigError) as caught:
        config(kind, *overrides)
    assert message in str(caught.value)


def test_no_preset_is_chosen_for_it(data, tmp_path, capsys):
    command = ["train", "--preset", "auto", "--source", "train.en", "--target", "train.de", "--data", str(data)]
    languages = ["--source-language", "en", "--target-language", "de", "--out", str(tmp_path / "run")]
    assert main([*command, *languages, "--set", "model.architecture=recurrent"]) == 2
    assert "sizes are chosen for the encoder-decoder (transformer) alone" in capsys.readouterr().err

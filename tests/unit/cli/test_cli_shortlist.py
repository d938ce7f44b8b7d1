"""The shortlist command around a small model, and the commands and the Translator that take its file."""

import json

import pytest

from headway.cli.main import main
from headway.config.model_config import ModelConfig
from headway.engine.shortlist import read_shortlist
from headway.errors import TranslationError
from headway.folder.contents import FolderConfig, ModelFolder, write_folder
from headway.model.build import build_transformer, export_weights
from headway.text.bpe import learn_bpe
from headway.translate import backend
from headway.translate.translator import Translator

pytest.importorskip("headway_native", reason="headway-native is not built here")

SOURCES = [f"the {animal} sat on {number} mats" for animal in ("cat", "dog", "cow") for number in range(17)]
TARGETS = [f"auf {number} matten sitzt ein {animal}" for animal in ("kater", "hund", "rind") for number in range(17)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tokenizer = learn_bpe([*SOURCES, *TARGETS], vocab_size=331)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=8, d_ff=13, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    )
    return write_folder(
        path,
        config=FolderConfig(model=config, max_source_tokens=29, source_language="en", target_language="de"),
        weights=export_weights(build_transformer(config)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr(backend, "has_gpu", lambda: False)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("a.en", SOURCES), ("a.de", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def run(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert main([*map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_it_learns_from_files_measures_on_their_last_tenth_and_compares(model, files, capsys):
    out = run(capsys, "shortlist", "a.en", "a.de", "-m", model.path, "--out", "s", "--compare", "--rounds", 2, "--json")
    facts = json.loads(out)
    assert facts["learnt"] == {"pairs": 46, "left_out": 0, "forgotten": 0}
    coverage = facts["coverage"]
    assert coverage["sentences"] == 5
    shortlist = read_shortlist(files / "s", model)
    encode = model.source_tokenizer.encode
    allowed = [set(shortlist.allowed([*encode(source), 3]).tolist()) for source in SOURCES[46:]]
    references = [encode(target) for target in TARGETS[46:]]
    inside = [[token in own for token in ids] for own, ids in zip(allowed, references, strict=True)]
    assert coverage["tokens"] == sum(map(len, references))
    assert coverage["covered_tokens"] == sum(map(sum, inside))
    assert coverage["covered_sentences"] == sum(map(all, inside))
    assert coverage["mean_size"] == pytest.approx(sum(map(len, allowed)) / 5)
    comparison = facts["comparison"]
    assert comparison["sentences"] == 5
    assert [len(turns) for turns in comparison["seconds"]] == [2, 2]
    assert len(comparison["bleu"]) == 2


def test_what_it_prints_names_loss_and_gain(model, files, capsys):
    arguments = ["a.en", "a.de", "-m", model.path, "--validation", "a.en", "a.de", "--rounds", 1]
    out = run(capsys, "shortlist", *arguments, "--out", "s", "--compare")
    assert "learnt from        51 pairs of the files" in out
    assert "measured on        51 pairs: a.en and a.de" in out
    for word in ("covered", "BLEU", "other outputs", "seconds", "times as fast (medians of 1 turn each)"):
        assert word in out


def test_pairs_longer_than_the_model_knows_are_left_out_and_counted(model, files, capsys):
    (files / "a.en").write_text("".join(f"{line}\n" for line in ["the cat " * 40, "", *SOURCES[2:]]), encoding="utf-8")
    out = run(capsys, "shortlist", "a.en", "a.de", "-m", model.path, "--out", "s")
    assert "44 pairs of the files; 2 left out, empty or longer than the model knows" in out


def test_translate_evaluate_and_the_translator_take_the_file(model, files, capsys):
    run(capsys, "shortlist", "a.en", "a.de", "-m", model.path, "--out", "s", "--frequent", 1, "--per-token", 1)
    plain = run(capsys, "translate", "a.en", "-m", model.path)
    limited = run(capsys, "translate", "a.en", "-m", model.path, "--shortlist", "s")
    assert limited != plain
    found = Translator.from_folder(model.path, shortlist="s").translate(SOURCES)
    assert [translation.text for translation in found] == limited.split("\n")[:-1]
    shortlist = read_shortlist(files / "s", model)
    encode = model.source_tokenizer.encode
    for source, translation in zip(SOURCES, found, strict=True):
        allowed = model.source_tokenizer.tokens(shortlist.allowed([*encode(source), 3]).tolist())
        assert set(translation.tokens) <= set(allowed)
    evaluated = run(
        capsys, "evaluate", "-m", model.path, "--source", "a.en", "--reference", "a.de", "--shortlist", "s", "--json"
    )
    assert json.loads(evaluated)["num_tokens"] > 0


def test_what_only_torch_computes_is_refused_with_a_shortlist(model, files, capsys):
    run(capsys, "shortlist", "a.en", "a.de", "-m", model.path, "--out", "s")
    given = ["translate", "a.en", "-m", model.path, "--shortlist", "s"]
    assert "torch was asked for. Leave --shortlist out" in refused(capsys, *given, "--engine", "torch")
    assert "has no sampling. Leave --shortlist out" in refused(capsys, *given, "--sample")
    assert "does not join several models. Leave --shortlist out" in refused(capsys, *given, "-m", model.path)
    with pytest.raises(TranslationError, match="Leave --shortlist out"):
        Translator.from_folder(model.path, engine="torch", shortlist="s")


def test_what_it_cannot_be_measured_on_is_refused_before_it_learns(model, files, capsys, monkeypatch):
    monkeypatch.setattr("headway.translate.shortlist.learn_shortlist", lambda *_, **__: pytest.fail("it learns"))
    given = ["shortlist", "-m", model.path, "--out", "s"]
    assert "nowhere does not exist" in refused(capsys, *given, "a.en", "a.de", "--validation", "a.en", "nowhere")
    assert "give --validation" in refused(capsys, *given, "--from", "lex", "--compare")
    assert not (files / "s").exists()


def test_on_a_terminal_the_line_of_progress_is_gone_before_the_table(model, files, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["shortlist", "a.en", "a.de", "-m", str(model.path), "--out", "s"]) == 0
    shown = capsys.readouterr().err
    assert "learnt from 46 pairs" in shown
    assert shown.endswith("\r\x1b[K")


def test_it_refuses_what_it_cannot_learn_from(model, files, capsys):
    assert "holds no training data of a run" in refused(capsys, "shortlist", "-m", model.path)
    assert "found --from and SOURCE" in refused(capsys, "shortlist", "a.en", "-m", model.path, "--from", "lex")
    assert "found 3 files" in refused(capsys, "shortlist", "a.en", "a.de", "b", "-m", model.path)
    (files / "empty").write_text("", encoding="utf-8")
    assert "found no pair to learn from" in refused(capsys, "shortlist", "empty", "empty", "-m", model.path)
    tagged = refused(capsys, "shortlist", "a.en", "a.de", "-m", model.path, "--tag", "x")
    assert "found the tag 'x'" in tagged


def test_a_table_makes_one_without_text(model, files, capsys):
    names = model.source_tokenizer.names
    (files / "lex.s2t").write_text(f"{names[270]} {names[271]} 0.5\nnowhere {names[271]} 0.5\n", encoding="utf-8")
    out = run(capsys, "shortlist", "-m", model.path, "--from", "lex.s2t", "--out", "s")
    assert "1 of 2 lines of lex.s2t; 1 have tokens not known here, 0 the empty word" in out
    assert 270 in read_shortlist(files / "s", ModelFolder.open(model.path)).allowed([271])

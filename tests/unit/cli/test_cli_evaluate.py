"""``headway evaluate``: numbers equal sacreBLEU's on the same files, and what cannot be scored ends in exit 2."""

import gzip
import json

import pytest
import sacrebleu

from headway.cli.main import main
from headway.config.model_config import ModelConfig
from headway.folder.contents import FolderConfig, write_folder
from headway.text.bpe import learn_bpe

HYPOTHESES = ["The cat sat on a mat.", "It is colder today.", "one\u2028line", "Why?"]
REFERENCES = ["The cat sat on the mat.", "It's colder than yesterday.", "one\u2028line only", "Why not?"]
BASELINE = ["Cat.", "Cold.", "line", "No?"]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES), ("base", BASELINE)):
        (tmp_path / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    return tmp_path


def run(*arguments):
    return main(["evaluate", *map(str, arguments)])


def test_json_holds_what_sacrebleu_gives_for_the_same_files(files, capsys):
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref", "--target-language", "en", "--json") == 0
    table = json.loads(capsys.readouterr().out)
    assert table["bleu"]["value"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert table["chrf"]["value"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert table["ter"]["value"] == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert table["num_sentences"] == 4
    assert table["perplexity"] is None


def test_the_published_multi30k_protocol_is_two_options(files, capsys):
    arguments = ("--hypothesis", files / "hyp", "--reference", files / "ref", "--json")
    assert run(*arguments, "--tokenize", "none", "--lowercase") == 0
    table = json.loads(capsys.readouterr().out)
    wanted = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="none", lowercase=True)
    assert table["bleu"]["value"] == wanted.score
    assert "case:lc|" in table["bleu"]["signature"]
    assert "tok:none|" in table["bleu"]["signature"]


def test_the_table_shows_scores_intervals_signatures_and_the_paired_test(files, capsys):
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref", "--baseline", files / "base") == 0
    printed = capsys.readouterr()
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    base = sacrebleu.corpus_bleu(BASELINE, [REFERENCES]).score
    assert f"BLEU          {bleu:.2f}" in printed.out
    assert "95 % interval" in printed.out
    assert "tok:13a|smooth:exp" in printed.out
    assert f"{bleu - base:+.2f}" in printed.out
    assert "1,000 resamples" in printed.out
    assert printed.err == ""


def test_warnings_go_to_standard_error(files, capsys):
    (files / "hyp").write_text("It &apos;s 5 @-@ 6 .\n" * 4)
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref") == 0
    printed = capsys.readouterr()
    assert "warning: The hypothesis text looks tokenised" in printed.err
    assert "warning" not in printed.out


def test_compressed_files_are_read(files, capsys):
    (files / "ref.gz").write_bytes(gzip.compress((files / "ref").read_bytes()))
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref.gz", "--json") == 0
    assert json.loads(capsys.readouterr().out)["num_sentences"] == 4


def test_unequal_files_end_in_exit_2_with_both_names_and_counts(files, capsys):
    # Trap 9.
    (files / "hyp").write_text("\n".join([HYPOTHESES[0], "extra", *HYPOTHESES[1:]]) + "\n")
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref") == 2
    message = capsys.readouterr().err
    assert "hyp has 5 lines" in message
    assert "ref has 4;" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reference", "ref"], "found neither of -m and --hypothesis"),
        (["--reference", "ref", "-m", "x", "--hypothesis", "hyp"], "found both"),
        (["--reference", "ref", "-m", "x"], "-m needs --source"),
        (["--reference", "ref", "--hypothesis", "hyp", "--beam-size", "5"], "--beam-size would have no effect"),
        (["--reference", "ref", "-m", "x", "--source", "hyp", "--output", "-"], "would mix"),
        (["--reference", "-", "--hypothesis", "-"], "read once"),
        (["--hypothesis", "hyp"], "--reference"),
        (["--reference", "ref", "--hypothesis", "absent"], "absent does not exist"),
        (["--reference", "ref", "--hypothesis", "."], "is a directory"),
        (["--reference", "empty", "--hypothesis", "empty"], "0 lines"),
        (["--reference", "ref", "--hypothesis", "hyp", "--tokenize", "14a"], "'14a'"),
        (["--reference", "ref", "-m", "x", "--source", "hyp"], "x does not exist"),
    ],
)
def test_what_cannot_be_scored_ends_in_exit_2_and_one_line(files, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(files)
    (files / "empty").write_bytes(b"")
    assert run(*arguments) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


@pytest.fixture
def model(tmp_path):
    """An untrained model of the smallest size: what it writes is noise, but always the same noise."""
    pytest.importorskip("torch")
    from headway.model.build import build_transformer, export_weights

    tokenizer = learn_bpe(REFERENCES, vocab_size=263)
    shape = ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=12, d_ff=23, num_heads=3, num_encoder_layers=1, num_decoder_layers=1
    )
    config = FolderConfig(source_language="en", target_language="zh", model=shape, max_source_tokens=61)
    weights = export_weights(build_transformer(shape))
    path = tmp_path / "model"
    write_folder(path, config=config, weights=weights, source_tokenizer=tokenizer, target_tokenizer=tokenizer, card="")
    return path


def test_a_model_is_scored_by_what_it_writes_and_the_output_can_be_kept(files, model, capsys):
    kept = files / "out"
    arguments = ("--reference", files / "ref", "--json")
    searching = ("--source", files / "hyp", "--beam-size", "2", "--device", "cpu", "--output", kept)
    assert run("-m", model, *searching, *arguments) == 0
    scored = json.loads(capsys.readouterr().out)
    assert kept.read_bytes().count(b"\n") == 4
    assert run("--hypothesis", kept, "--target-language", "zh", *arguments) == 0
    again = json.loads(capsys.readouterr().out)
    for metric in ("bleu", "chrf", "ter", "length_ratio"):
        assert scored[metric] == again[metric]
    assert "tok:zh|" in scored["bleu"]["signature"]  # it follows the folder's target language
    assert scored["perplexity"] > 1.0
    tokenizer = learn_bpe(REFERENCES, vocab_size=263)
    assert scored["num_tokens"] == sum(len(tokenizer.encode(line)) + 1 for line in REFERENCES)


def test_a_truncated_model_ends_in_exit_2(files, model, capsys):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    assert run("-m", model, "--source", files / "hyp", "--reference", files / "ref") == 2
    message = capsys.readouterr().err
    (error,) = [
        line for line in message.splitlines() if line.startswith("headway: error: ")
    ]  # the engine may be absent
    assert "model.safetensors" in error


def test_an_output_that_cannot_be_written_is_told_before_translating(files, model, capsys):
    output = files / "absent" / "out"
    assert run("-m", model, "--source", files / "hyp", "--reference", files / "ref", "--output", output) == 2
    assert "absent" in capsys.readouterr().err


def test_a_target_language_that_is_no_code_is_told_with_the_code_that_was_meant(files, capsys):
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref", "--target-language", "chinese") == 2
    assert "--target-language: found 'chinese'" in (message := capsys.readouterr().err)
    assert message.endswith("Did you mean zh?\n")


def test_the_paper_s_bleu_stands_beside_sacrebleu_s(tmp_path, capsys):
    (tmp_path / "out.tok").write_text("der Test-Lauf war gut .\nein Mann geht nach Hause .\n", encoding="utf-8")
    (tmp_path / "ref.tok").write_text("der Test-Fall war gut .\nein Mann geht nach Haus .\n", encoding="utf-8")
    arguments = ("--hypothesis", tmp_path / "out.tok", "--reference", tmp_path / "ref.tok", "--paper-bleu")
    assert run(*arguments, "--json") == 0
    table = json.loads(capsys.readouterr().out)
    # words 7 + 6, right 6 + 5 of 13, 4 + 3 of 11, 2 + 2 of 9, 0 + 1 of 7
    wanted = 100 * (11 / 13 * 7 / 11 * 4 / 9 * 1 / 7) ** 0.25
    assert table["paper_bleu"]["value"] == pytest.approx(wanted)
    assert table["bleu"]["value"] != pytest.approx(wanted)
    assert run(*arguments) == 0
    printed = capsys.readouterr()
    assert f"the paper's BLEU: {wanted:.2f}" in printed.out
    assert "split:compounds" in printed.out
    assert "does not look tokenised" not in printed.err


def test_the_paper_s_bleu_of_plain_text_is_warned_of(files, capsys):
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref", "--paper-bleu") == 0
    assert "the reference does not look tokenised" in capsys.readouterr().err
    assert run("--hypothesis", files / "hyp", "--reference", files / "ref", "--json") == 0
    assert "paper_bleu" not in json.loads(capsys.readouterr().out)

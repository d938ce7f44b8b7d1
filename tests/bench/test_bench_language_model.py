"""bench/language_model.py: three models of one text, measured alike."""

import json
import math

import pytest

from headway.metrics.kneser_ney import KneserNey
from headway.text.bpe import learn_bpe

MODULES = ("language_model",)
TRAIN = ["a dog runs", "a cat runs", "a dog sleeps", "the cat sleeps", "the bird sings"]


@pytest.fixture
def bench(scripts):
    return scripts["language_model"]


def test_a_word_costs_the_sum_of_its_sub_words_and_the_end_of_a_line_is_a_word(bench):
    tokenizer = learn_bpe(TRAIN, vocab_size=280)
    reserved = {0, 2, 3}
    vocabulary = [str(token) for token in range(tokenizer.vocab_size) if token not in reserved]
    texts = [[str(token) for token in tokenizer.encode(line)] for line in TRAIN]
    model = KneserNey.fit(texts, order=3, vocabulary=vocabulary)
    found = bench.subword_costs(TRAIN, ["a bird sleeps", "dogs"], tokenizer=tokenizer, order=3)
    wanted = [-model.log_prob(list(map(str, tokenizer.encode(line)))) for line in ("a bird sleeps", "dogs")]
    assert found == pytest.approx(wanted)


def test_a_difference_is_nats_a_word_with_ends_of_lines_as_words(bench):
    lines = ["a b", "c", "d e f g"]  # 3 + 2 + 5 words
    found = bench.difference([3.0, 2.0, 5.0], [6.0, 4.0, 10.0], lines)
    assert found.value == found.low == found.high == pytest.approx(-1.0)  # one nat a word in every line
    mixed = bench.difference([3.0, 2.0, 5.0], [6.0, 4.0, 5.0], lines)
    assert mixed.value == pytest.approx(-0.5)
    assert mixed.low < -0.5 < mixed.high


def test_a_word_that_training_text_lacks_is_paid_for_by_the_word_model(bench):
    model = bench.words_model(TRAIN, 3)
    known, unknown = bench.line_costs(model, [["a", "dog"], ["a", "zebra"]])
    assert unknown > known + 5 * math.log(2)  # five letters and an end, none of them for nothing


def test_all_three_are_printed_for_a_trained_model(bench, tmp_path, capsys):
    from headway.config.load import load_text
    from headway.train.run import train

    for name in ("train", "validation"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in TRAIN), encoding="utf-8")
    recipe = """
    data = {format = "text", train_source = "train.txt", validation_source = "validation.txt"}
    model = {architecture = "decoder_only", vocab_size = 280, d_model = 8, d_ff = 11, num_heads = 2}
    train = {max_steps = 2, batch_tokens = 200, warmup_steps = 2, best_by = "loss", precision = "float32", threads = 1}
    """
    for _ in train(load_text(recipe), tmp_path, out_dir=tmp_path / "m"):
        pass
    paths = [str(tmp_path / "train.txt"), str(tmp_path / "validation.txt")]
    bench.main([*paths, "--model", str(tmp_path / "m"), "--json"])
    rows = json.loads(capsys.readouterr().out)
    differences = rows.pop("differences")
    assert list(rows) == ["5-gram of words", "5-gram of sub-words", "language model"]
    assert list(differences) == ["5-gram of words", "5-gram of sub-words"]
    for name, found in differences.items():
        assert found["nats_a_word"] == pytest.approx((rows["language model"]["nats"] - rows[name]["nats"]) / 20)
        assert found["low"] <= found["nats_a_word"] <= found["high"]
    assert {row["num_words"] for row in rows.values()} == {20}
    assert rows["5-gram of words"]["perplexity_per_word"] < rows["language model"]["perplexity_per_word"]
    bench.main([*paths, "--model", str(tmp_path / "m")])
    assert "5-gram of sub-words" in capsys.readouterr().out

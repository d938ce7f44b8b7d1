"""bench/language_model.py: three models of one text, measured alike."""

import json
import math

import pytest

from headway.text.bpe import learn_bpe

MODULES = ("language_model",)
TRAIN = ["a dog runs", "a cat runs", "a dog sleeps", "the cat sleeps", "the bird sings"]


@pytest.fixture
def bench(scripts):
    return scripts["language_model"]


def test_a_word_costs_the_sum_of_its_sub_words_and_the_end_of_a_line_is_a_word(bench):
    tokenizer = learn_bpe(TRAIN, vocab_size=280)
    found = bench.subword_perplexity(TRAIN, ["a bird sleeps", "dogs"], tokenizer=tokenizer, order=3)
    assert (found.num_words, found.num_lines) == (3 + 1 + 1 + 1, 2)
    assert found.num_tokens == len(tokenizer.encode("a bird sleeps")) + len(tokenizer.encode("dogs")) + 2
    assert found.per_word == pytest.approx(math.exp(found.nll / 6))
    assert found.per_token == pytest.approx(math.exp(found.nll / found.num_tokens))


def test_a_word_that_training_text_lacks_is_paid_for_by_the_word_model(bench):
    model = bench.words_model(TRAIN, 3)
    known, unknown = (bench.word_perplexity(model, [line], str.split) for line in ("a dog", "a zebra"))
    assert unknown.nll > known.nll + 5 * math.log(2)  # five letters and an end, none of them for nothing


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
    assert list(rows) == ["5-gram of words", "5-gram of sub-words", "language model"]
    assert {row["num_words"] for row in rows.values()} == {20}
    assert rows["5-gram of words"]["perplexity_per_word"] < rows["language model"]["perplexity_per_word"]
    bench.main([*paths, "--model", str(tmp_path / "m")])
    assert "5-gram of sub-words" in capsys.readouterr().out

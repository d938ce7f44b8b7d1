"""Forced counts of sentences against the Translator's own scores."""

import numpy as np
import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer
from headway.paper import text_counts
from headway.text.bpe import learn_bpe
from headway.translate.backend import model_backend
from headway.translate.translator import Translator

SOURCES = ["a dog runs", "two men sing in the park", "x", ""]
TARGETS = ["ein Hund rennt", "zwei Männer singen im Park", "x y z", "ja"]


@pytest.fixture(scope="module")
def made():
    tokenizer = learn_bpe([*SOURCES, *TARGETS], vocab_size=290)
    sizes = {"d_model": 16, "d_ff": 23, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = build_transformer(ModelConfig(vocab_size=tokenizer.vocab_size, dropout=0.0, **sizes), seed=3).eval()
    return tokenizer, model


def test_forced_counts_are_the_translator_s_scores(made):
    tokenizer, model = made
    found = text_counts.forced_counts(model, SOURCES, TARGETS, tokenizers=(tokenizer, tokenizer))
    translator = Translator(model_backend(model, torch.device("cpu")), tokenizer, tokenizer, max_source_tokens=97)
    scores = translator.score(SOURCES, TARGETS)
    assert found[:, 0].tolist() == pytest.approx([score.log_prob for score in scores], rel=1e-4)
    assert found[:, 1].tolist() == [score.num_tokens for score in scores]
    assert found[:, 3].tolist() == [4, 6, 4, 2]
    assert (found[:, 2] <= found[:, 1]).all()


def test_a_right_token_is_counted_as_right(made):
    """A model whose softmax can only say EOS is right once a sentence: at its end."""
    tokenizer, model = made
    with torch.no_grad():
        model.output.weight.zero_()
        model.decoder.layers[0].feed_forward_sublayer.norm.bias.fill_(1.0)
        model.output.weight[3] = 1.0
        model.decoder.layers[0].feed_forward_sublayer.norm.weight.zero_()
    found = text_counts.forced_counts(model, SOURCES, TARGETS, tokenizers=(tokenizer, tokenizer))
    assert found[:, 2].tolist() == [1, 1, 1, 1]


def test_values_of_sums_by_hand():
    sums = np.array([9, 10, 8, 6, 4, 2, 9, 8, 7, 6, -20.0, 10, 7, 5])
    assert text_counts.token_perplexity(sums) == pytest.approx(np.exp(2))
    assert text_counts.word_perplexity(sums) == pytest.approx(np.exp(4))
    assert text_counts.accuracy(sums) == pytest.approx(70.0)
    precisions = (8 / 9) * (6 / 8) * (4 / 7) * (2 / 6)
    assert text_counts.bleu(sums) == pytest.approx(100 * np.exp(1 - 10 / 9) * precisions**0.25)

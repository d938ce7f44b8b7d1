"""Models without self-attention learn to copy."""

import math

import pytest
import torch
from few_steps import few_steps
from model_configs import SEQUENTIAL

from headway.config.model_config import ModelConfig
from headway.data.batch import Batch
from headway.model.build import build_model

GUESSING = 5 * math.log(8) / 6  # nats a token of one who knows no more than where the end is


def copy_batch(generator, num_sentences):
    """Five of eight words; the target is the source."""
    words = torch.randint(4, 12, (num_sentences, 5), generator=generator)
    bos, eos = torch.full((num_sentences, 1), 2), torch.full((num_sentences, 1), 3)
    return Batch(torch.cat([words, eos], dim=1), torch.cat([bos, words], dim=1), torch.cat([words, eos], dim=1))


def train(kind, batches):
    """Negative log-likelihoods (nats a token) of one step a batch."""
    sizes = {"vocab_size": 12, "d_model": 24, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
    return few_steps(build_model(ModelConfig(**sizes, **SEQUENTIAL[kind])), batches)


@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_the_model_learns_eight_sentences(kind):
    losses = train(kind, [copy_batch(torch.Generator().manual_seed(1), 8)] * 50)
    assert losses[0] > GUESSING
    assert sum(losses[-3:]) / 3 < 0.7 * GUESSING, losses[::10]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_the_model_learns_to_copy_sentences_that_it_has_never_seen(kind):
    generator = torch.Generator().manual_seed(1)
    losses = train(kind, (copy_batch(generator, 32) for _ in range(600)))
    assert sum(losses[-20:]) / 20 < 0.1 * GUESSING, losses[::60]

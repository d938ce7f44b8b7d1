"""Runs that were never trained, with sentences as good as a test wants them."""

from dataclasses import replace

import numpy as np

from headway.paper.trained_row import Trained


def run_of(nats, bleu_hits, *, seed=0, num_sentences=53, **changes):
    """A run whose sentences have 5 tokens of so many nats each, and so many of 5 words right."""
    generator = np.random.default_rng(seed)
    tokens = np.full(num_sentences, 5)
    noise = generator.normal(0.0, 0.01, num_sentences)
    bleu = np.tile([5, 5, bleu_hits, *(max(0, bleu_hits - n) for n in (1, 2, 3)), 5, 4, 3, 2], (num_sentences, 1))
    trained = Trained(
        steps=3,
        epochs=19.0,
        minutes=1.0,
        threads=1,
        precision="float32",
        parameters=7,
        source_tokens=11,
        target_tokens=13,
        flop=17.0,
        curve=(),
        likelihood_NC=np.stack([-(nats + noise) * tokens, tokens], axis=1),
        bleu_NC=bleu,
    )
    return replace(trained, **changes)

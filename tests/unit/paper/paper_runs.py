"""Runs that were never trained, with sentences as good as a test wants them."""

import numpy as np

from headway.paper.trained_row import Trained


def run_of(nats, bleu_hits, *, seed=0, num_sentences=53):
    """A run whose sentences have 5 tokens of so many nats each, and so many of 5 words right."""
    generator = np.random.default_rng(seed)
    tokens = np.full(num_sentences, 5)
    noise = generator.normal(0.0, 0.01, num_sentences)
    bleu = np.tile([5, 5, bleu_hits, *(max(0, bleu_hits - n) for n in (1, 2, 3)), 5, 4, 3, 2], (num_sentences, 1))
    return Trained(3, 1.0, 7, 11, 13, 17.0, (), np.stack([-(nats + noise) * tokens, tokens], axis=1), bleu)

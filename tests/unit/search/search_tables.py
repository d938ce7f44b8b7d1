"""Predictors over tables of random numbers, and a search that tries every output."""

import itertools
import random

import torch

from headway.search.length import length_penalty
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

FIRST_WORD = 4  # ids below are control tokens


class TablePredictor:
    """Log-probabilities that depend on the real source tokens and the whole prefix. A state is one prefix a row."""

    def __init__(self, vocab_size, *, seed=0, sharpness=1.5, end_bonus=0.0):
        self.vocab_size, self.seed, self.sharpness, self.end_bonus = vocab_size, seed, sharpness, end_bonus
        self.fed = []  # the tokens of every predict
        self.num_rows = []
        self.rows = {}

    def log_probs(self, source, prefix):
        place = (tuple(source), tuple(prefix))
        if place not in self.rows:
            stream = random.Random(repr((self.seed, *place)))
            logits = torch.tensor([stream.gauss(0.0, self.sharpness) for _ in range(self.vocab_size)])
            logits[EOS_ID] += self.end_bonus
            self.rows[place] = logits.log_softmax(dim=0)
        return self.rows[place]

    def start(self, source_BS, source_mask_BS):
        return [
            (tuple(token for token, real in zip(ids, mask, strict=True) if real), ())
            for ids, mask in zip(source_BS.tolist(), source_mask_BS.tolist(), strict=True)
        ]

    def predict(self, token_R, state):
        tokens = token_R.tolist()
        assert len(tokens) == len(state)
        self.fed.append(tokens)
        self.num_rows.append(len(tokens))
        state = [
            (source, prefix if token == BOS_ID else (*prefix, token))
            for token, (source, prefix) in zip(tokens, state, strict=True)
        ]
        return torch.stack([self.log_probs(*row) for row in state]), state

    def select(self, state, rows_R):
        return [state[row] for row in rows_R.tolist()]


class EndTablePredictor(TablePredictor):
    """One word, and a given probability of the end after 0, 1, 2 ... words."""

    def __init__(self, end_probabilities):
        super().__init__(5)
        self.end_probabilities = end_probabilities

    def log_probs(self, source, prefix):
        end = self.end_probabilities[len(prefix)]
        return torch.tensor([0.0, 0.0, 0.0, end, 1.0 - end]).log()


class CopyPredictor(TablePredictor):
    """Gives back the source, word for word, then the end."""

    def log_probs(self, source, prefix):
        row = torch.full((self.vocab_size,), -30.0)
        row[source[len(prefix)]] = 0.0
        return row.log_softmax(dim=0)


def sources(*sentences):
    """Padded ids and mask; each sentence gets its EOS."""
    longest = max(len(sentence) for sentence in sentences) + 1
    ids = [[*sentence, EOS_ID, *[PAD_ID] * (longest - len(sentence) - 1)] for sentence in sentences]
    source_BS = torch.tensor(ids)
    return source_BS, source_BS != PAD_ID


def exhaustive(predictor, source, limit, alpha, prefix=()):
    """Every output of at most ``limit`` tokens, EOS counted: (score, log_prob, token ids), best first."""
    words = [1, *range(FIRST_WORD, predictor.vocab_size)]
    outputs = []
    for length in range(limit):
        for sentence in itertools.product(words, repeat=length):
            if sentence[: len(prefix)] != tuple(prefix):
                continue
            ids = (*sentence, EOS_ID)
            log_prob = sum(predictor.log_probs(source, ids[:t])[ids[t]].item() for t in range(len(ids)))
            outputs.append((log_prob / length_penalty(len(ids), alpha), log_prob, ids))
    return sorted(outputs, key=lambda output: -output[0])


def plain_beam(predictor, source, limit, *, beam_size, alpha, n_best):
    """Beam search as its definition has it, one list at a time, run to the limit without stopping early."""
    live, finished = [((), 0.0)], []
    for step in range(limit):
        words = [EOS_ID] if step + 1 == limit else [1, EOS_ID, *range(FIRST_WORD, predictor.vocab_size)]
        candidates = []
        for place, (prefix, log_prob) in enumerate(live):
            row = predictor.log_probs(source, prefix)
            candidates += [(-(torch.tensor(log_prob) + row[word]).item(), place, word) for word in words]
        candidates = sorted(candidates)[: 2 * beam_size]
        finished += [
            (-cost / length_penalty(step + 1, alpha), (*live[place][0], word))
            for cost, place, word in candidates[:beam_size]
            if word == EOS_ID
        ]
        live = [((*live[place][0], word), -cost) for cost, place, word in candidates if word != EOS_ID][:beam_size]
    return sorted(finished, key=lambda output: -output[0])[:n_best]

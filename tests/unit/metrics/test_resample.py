"""Sentences drawn again: every resample is a whole corpus, and blocks never show."""

import numpy as np

from headway.metrics.resample import resample


def test_every_resample_has_as_many_sentences_as_there_are():
    drawn = np.concatenate(list(resample(13, 37, seed=5)))
    assert drawn.shape == (37, 13)
    assert (drawn.sum(axis=1) == 13).all()
    assert (drawn == 0).any()
    assert len({row.tobytes() for row in drawn}) > 30


def test_blocks_change_nothing_and_the_draws_are_those_of_one_after_the_other(monkeypatch):
    random = np.random.default_rng(5)
    wanted = [random.multinomial(13, [1 / 13] * 13).tolist() for _ in range(37)]
    assert np.concatenate(list(resample(13, 37, seed=5))).tolist() == wanted
    monkeypatch.setattr("headway.metrics.resample._AT_ONCE", 13 * 7)
    blocks = list(resample(13, 37, seed=5))
    assert [len(block) for block in blocks] == [7, 7, 7, 7, 7, 2]
    assert np.concatenate(blocks).tolist() == wanted


def test_of_one_sentence_all_resamples_are_the_same():
    assert np.concatenate(list(resample(1, 3, seed=1))).tolist() == [[1], [1], [1]]

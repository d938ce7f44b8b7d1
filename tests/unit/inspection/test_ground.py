"""What may be seen from where, and which places have names, by hand."""

import numpy as np

from headway.inspection.axis import Axis, Word
from headway.inspection.ground import grounds


def axis(*words, before=(), after=()):
    """Words, each a tuple of its tokens."""
    tokens, found = [], []
    for group in (*[(token,) for token in before], *words, *[(token,) for token in after]):
        is_control = len(group) == 1 and group[0] in (*before, *after)
        found.append(Word("".join(group), len(tokens), len(tokens) + len(group), is_control))
        tokens += group
    return Axis(tuple(tokens), tuple(range(len(tokens))), tuple(found))


SOURCE = axis(("so", "me"), ("cat",), ("6",), after=("END",))
TARGET_IN = axis(("Ka", "tze"), ("6",), before=("BEGIN",))
TARGET_OUT = axis(("Ka", "tze"), ("6",), after=("END",))


def test_the_encoder_sees_all_and_the_decoder_what_came_before():
    tokens, words = grounds("encoder", SOURCE, SOURCE, window=None)
    assert tokens.visible_TS.all()
    assert words.visible_TS.all()
    assert (tokens.visible_TS.shape, words.visible_TS.shape) == ((5, 5), (4, 4))
    tokens, words = grounds("decoder", TARGET_IN, TARGET_IN, window=None)
    assert (tokens.visible_TS == np.tril(np.ones((4, 4)))).all()
    assert (words.visible_TS == np.tril(np.ones((3, 3)))).all()


def test_a_word_sees_what_one_of_its_tokens_sees_within_a_window():
    tokens, words = grounds("encoder", SOURCE, SOURCE, window=1)
    assert tokens.visible_TS.astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    assert words.visible_TS.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    tokens, _ = grounds("decoder", TARGET_IN, TARGET_IN, window=1)
    assert tokens.visible_TS.astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


def test_the_places_of_self_attention_are_by_position_among_what_may_be_seen():
    _, words = grounds("encoder", SOURCE, SOURCE, window=None)
    assert list(words.places) == ["previous", "next", "same", "end", "first"]
    assert (words.places["previous"] == np.eye(4, k=-1)).all()
    assert (words.places["next"] == np.eye(4, k=1)).all()
    assert (words.places["same"] == np.eye(4)).all()
    assert words.places["end"].tolist() == [[False, False, False, True]] * 4
    assert words.places["first"].tolist() == [[True, False, False, False]] * 4
    assert words.distance_TS[3].tolist() == [3, 2, 1, 0]
    _, narrow = grounds("encoder", SOURCE, SOURCE, window=1)
    assert narrow.places["end"][:, 3].tolist() == [False, False, True, True]
    _, words = grounds("decoder", TARGET_IN, TARGET_IN, window=None)
    assert list(words.places) == ["previous", "next", "same", "first"]
    assert not words.places["next"].any()
    assert words.places["first"].all(axis=0).tolist() == [True, False, False]


def test_over_the_source_the_same_word_is_one_written_the_same_and_the_end_is_no_word():
    tokens, words = grounds("cross", TARGET_OUT, SOURCE, window=1)
    assert tokens.visible_TS.all()  # the window is of self-attention
    assert list(words.places) == ["same", "end", "first"]
    assert words.places["same"].astype(int).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert words.places["end"].tolist() == [[False, False, False, True]] * 3


def test_over_the_source_distances_are_from_the_diagonal():
    _, words = grounds("cross", TARGET_OUT, SOURCE, window=None)
    for row, at in enumerate((1 / 6, 1.5, 4 - 7 / 6)):  # the middles of three thirds, on a line of four words
        np.testing.assert_allclose(words.distance_TS[row], [abs(key - at) for key in range(4)])
    tokens, _ = grounds("cross", SOURCE, SOURCE, window=None)
    assert (np.diag(tokens.distance_TS) == 0).all()

"""Recurrent layers against sums in plain numbers and against torch's layers with the same weights.

Shapes: B sentences, T positions, D numbers.
"""

import math

import pytest
import torch

from headway.nn.recurrent import CELLS, Gates, Recurrence, Recurrent, gru_cell, lstm_cell, turned

TORCH = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
B, T, D = 2, 5, 6


def sigma(x):
    return 1.0 / (1.0 + math.exp(-x))


def gates(count, seed=4):
    """Of one input number and one state number: plain lists, and as tensors."""
    drawn = torch.randn(4, count, generator=torch.Generator().manual_seed(seed))
    return drawn.tolist(), Gates(drawn[0][:, None], drawn[1][:, None], drawn[2], drawn[3])


def test_an_lstm_s_cell_is_its_equations_in_plain_numbers():
    (w, u, b, c), given = gates(4)
    x, h, cell = 0.7, -0.4, 1.3
    i, f, g, o = (w[n] * x + b[n] + u[n] * h + c[n] for n in range(4))
    wanted_cell = sigma(f) * cell + sigma(i) * math.tanh(g)
    found = lstm_cell(torch.tensor([[x]]), Recurrence(torch.tensor([[h]]), torch.tensor([[cell]])), given)
    assert found.cell_BD.item() == pytest.approx(wanted_cell, rel=1e-5)
    assert found.hidden_BD.item() == pytest.approx(sigma(o) * math.tanh(wanted_cell), rel=1e-5)


def test_a_gru_s_cell_is_its_equations_in_plain_numbers():
    (w, u, b, c), given = gates(3)
    x, h = 0.7, -0.4
    r, z = (sigma(w[n] * x + b[n] + u[n] * h + c[n]) for n in range(2))
    new = math.tanh(w[2] * x + b[2] + r * (u[2] * h + c[2]))
    found = gru_cell(torch.tensor([[x]]), Recurrence(torch.tensor([[h]])), given)
    assert found.hidden_BD.item() == pytest.approx((1 - z) * new + z * h, rel=1e-5)
    assert found.cell_BD is None


@pytest.mark.parametrize("cell", CELLS)
def test_two_directions_equal_torch_s_bidirectional_layer_over_packed_sentences(cell):
    layer = Recurrent(D, cell, causal=False)
    original = TORCH[cell](D, D // 2, batch_first=True, bidirectional=True)
    own = {f"{name}_reverse": value for name, value in layer.backwards.state_dict().items()}
    original.load_state_dict(layer.forwards.state_dict() | own)
    x_BTD = torch.randn(B, T, D, generator=torch.Generator().manual_seed(3))
    packed = torch.nn.utils.rnn.pack_padded_sequence(x_BTD, [T, 2], batch_first=True)
    wanted, _ = torch.nn.utils.rnn.pad_packed_sequence(original(packed)[0], batch_first=True)
    mask_BT = torch.tensor([[True] * T, [True] * 2 + [False] * (T - 2)])
    torch.testing.assert_close(layer(x_BTD, mask_BT)[mask_BT], wanted[mask_BT], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_an_input_may_have_another_size_than_the_state(cell):
    layer = Recurrent(D, cell, causal=True, d_input=11)
    x_BTI = torch.randn(B, T, 11)
    assert layer(x_BTI).shape == (B, T, D)
    torch.testing.assert_close(layer(x_BTI), layer.plain(x_BTI), atol=1e-6, rtol=1e-5)


def test_a_sentence_is_turned_round_before_its_padding():
    mask = torch.tensor([[True] * 4, [True] * 3 + [False], [False] * 4])
    x_BTI = torch.zeros(3, 4, 2)
    assert turned(x_BTI, mask).tolist() == [[3, 2, 1, 0], [2, 1, 0, 3], [0, 1, 2, 3]]
    assert turned(x_BTI, None).tolist() == [[3, 2, 1, 0]] * 3


@pytest.mark.parametrize("cell", CELLS)
def test_the_definition_leaves_the_state_as_it_was_at_padding(cell):
    layer = Recurrent(D, cell, causal=True)
    y_BTD = layer.plain(torch.randn(B, T, D), torch.tensor([[True] * T, [True, True, False, False, False]]))
    assert torch.equal(y_BTD[1, 2:], y_BTD[1, 1:2].expand(3, -1))
    assert not torch.equal(y_BTD[0, 2], y_BTD[0, 1])

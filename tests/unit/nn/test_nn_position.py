"""Positions: the paper's worked numbers, the law of rotation, and tables that grow or end."""

import math

import pytest
import torch

from headway.errors import ModelError
from headway.nn.position import POSITIONS, Learned, NoPosition, Sinusoidal, Stack, sinusoids


def filled(scheme, *, d_model=6, max_positions=11, num_heads=3, d_k=14, causal=True):
    position = POSITIONS[scheme](Stack(d_model, num_heads, d_k, max_positions, causal))
    for parameter in position.parameters():
        torch.nn.init.normal_(parameter)
    return position


@pytest.mark.parametrize("d_model", [2, 6, 7, 11])
def test_every_entry_is_the_printed_formula(d_model):
    table = sinusoids(13, d_model)
    assert table.shape == (13, d_model)
    assert table.dtype == torch.float32
    for pos in range(13):
        for column in range(d_model):
            angle = pos / 10000.0 ** (2 * (column // 2) / d_model)
            wanted = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[pos, column].item() == pytest.approx(wanted, abs=1e-7)


def test_position_one_begins_with_the_printed_sine_and_cosine():
    assert sinusoids(2, 512)[1, :2].tolist() == pytest.approx([0.8414710, 0.5403023], abs=5e-8)


def test_position_zero_is_zeros_and_ones_in_turn():
    assert sinusoids(1, 8)[0].tolist() == [0.0, 1.0] * 4


def test_the_slowest_wave_of_512_has_the_denominator_9647():
    sine = sinusoids(2, 512)[1, 510].item()
    assert sine == pytest.approx(1.03663e-4, abs=5e-10)
    assert 1.0 / math.asin(sine) == pytest.approx(9646.6162, rel=1e-6)


def test_each_pair_is_slower_than_the_one_before_by_the_same_ratio():
    angles = sinusoids(2, 512)[1, 0::2].double().asin()
    ratio = angles[:-1] / angles[1:]
    torch.testing.assert_close(ratio, torch.full_like(ratio, 1.0366329), atol=2e-6, rtol=0)


@pytest.mark.parametrize("offset", [1, 5, 47])
def test_a_shift_is_one_rotation_of_every_pair(offset):
    d_model, pos = 16, torch.arange(53)
    table = sinusoids(101, d_model).double()
    for pair in range(d_model // 2):
        angle = offset / 10000.0 ** (2 * pair / d_model)
        rotation = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        columns = slice(2 * pair, 2 * pair + 2)
        shifted = table[pos, columns] @ rotation.T
        torch.testing.assert_close(shifted, table[pos + offset, columns], atol=1e-6, rtol=0)


def test_far_positions_keep_full_precision():
    pos = 100_003
    assert sinusoids(pos + 1, 4)[pos, 0].item() == pytest.approx(math.sin(pos), abs=1e-7)


@pytest.mark.parametrize("scheme", POSITIONS)
@pytest.mark.parametrize("start", [0, 1, 5])
def test_a_later_start_adds_what_the_whole_sequence_has_there(scheme, start):
    position = filled(scheme)
    x_BTD = torch.randn(2, 11, 6)
    torch.testing.assert_close(position.embed(x_BTD[:, start:], start), position.embed(x_BTD, 0)[:, start:])


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned"])
def test_every_position_is_marked_differently(scheme):
    marks = filled(scheme).embed(torch.zeros(1, 11, 6), 0)[0]
    assert torch.cdist(marks, marks).fill_diagonal_(1.0).min() > 0.01


def test_no_positions_leaves_the_vectors_alone():
    x_BTD = torch.randn(2, 3, 6)
    assert NoPosition().embed(x_BTD, 7) is x_BTD


@pytest.mark.parametrize(("start", "length"), [(0, 12), (11, 1), (5, 7)])
def test_a_learned_table_ends_with_an_error_that_says_where(start, length):
    with pytest.raises(ModelError, match=r"position 12 lies beyond the learned table of 11 positions.*max_positions"):
        filled("learned").embed(torch.zeros(1, length, 6), start)


def test_a_learned_table_holds_its_very_last_position():
    position = filled("learned")
    assert torch.equal(position.embed(torch.zeros(1, 1, 6), 10)[0, 0], position.weight[10])


def test_a_learned_table_is_trained_and_a_sinusoidal_one_is_neither_trained_nor_stored():
    assert [name for name, _ in Learned(6, 11).named_parameters()] == ["weight"]
    assert not list(Sinusoidal(6, 11).parameters())
    assert not Sinusoidal(6, 11).state_dict()


def test_the_table_grows_to_the_same_waves():
    position = Sinusoidal(6, 3)
    x_BTD = torch.zeros(1, 29, 6)
    assert torch.equal(position.embed(x_BTD, 0)[0], sinusoids(29, 6))
    assert torch.equal(position.embed(x_BTD, 31)[0], sinusoids(60, 6)[31:])


def test_a_table_grown_in_inference_serves_training_afterwards():
    position = Sinusoidal(6, 3)
    with torch.inference_mode():
        position.embed(torch.zeros(1, 7, 6), 0)
    assert not position.table_TD.is_inference()
    x_BTD = torch.randn(1, 7, 6, requires_grad=True)
    (position.embed(x_BTD, 0).square() * position.table_TD[:7]).sum().backward()  # keeps the table for the backward
    assert x_BTD.grad.isfinite().all()
    position.table_TD.copy_(position.table_TD.clone())  # as processes that share buffers do


def test_a_grown_table_keeps_the_type_of_the_model():
    position = Sinusoidal(6, 3).bfloat16()
    assert position.embed(torch.zeros(1, 7, 6, dtype=torch.bfloat16), 0).dtype == torch.bfloat16

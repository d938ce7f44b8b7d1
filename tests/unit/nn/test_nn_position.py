"""Positions: the paper's worked numbers, the law of rotation, and tables that grow or end."""

import math

import pytest
import torch

from headway.config.positions import MAX_DISTANCE, NUM_BUCKETS
from headway.errors import ModelError
from headway.nn.position import (
    POSITIONS,
    Alibi,
    Learned,
    NoPosition,
    RelativeBuckets,
    Rotary,
    Sinusoidal,
    Stack,
    relative_buckets,
    relative_positions,
    sinusoids,
)


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
    x_BTD, word_BT = torch.randn(2, 11, 6), torch.randint(2, (2, 11)).cumsum(dim=1)
    later = position.embed(x_BTD[:, start:], start, word_BT=word_BT[:, start:])
    torch.testing.assert_close(later, position.embed(x_BTD, 0, word_BT=word_BT)[:, start:])


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned"])
def test_every_position_is_marked_differently(scheme):
    marks = filled(scheme).embed(torch.zeros(1, 11, 6), 0)[0]
    assert torch.cdist(marks, marks).fill_diagonal_(1.0).min() > 0.01


@pytest.mark.parametrize("d_model", [6, 7])
def test_half_of_the_numbers_say_the_place_and_half_the_word(d_model):
    position = filled("words", d_model=d_model)
    word_BT = torch.tensor([[1, 1, 2, 2, 2, 3], [0, 1, 2, 3, 4, 4]])
    marks = position.embed(torch.zeros(2, 6, d_model), 4, word_BT=word_BT)
    half = d_model - d_model // 2
    for row in range(2):
        assert torch.equal(marks[row, :, :half], sinusoids(10, half)[4:])
        assert torch.equal(marks[row, :, half:], sinusoids(10, d_model // 2)[word_BT[row]])


def test_words_beyond_the_table_are_known_in_training_after_a_validation():
    position = filled("words", max_positions=3)
    with torch.inference_mode():
        position.embed(torch.zeros(1, 9, 6), 0, word_BT=torch.arange(1, 10)[None])
    x_BTD = torch.zeros(1, 9, 6, requires_grad=True)
    marks = position.embed(x_BTD, 0, word_BT=torch.arange(1, 10)[None])
    marks.sum().backward()
    assert torch.equal(marks[0, :, 3:].detach(), sinusoids(10, 3)[1:])


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


# Every scheme, at its three places


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scheme", POSITIONS)
@pytest.mark.parametrize(("start", "seen"), [(0, 1), (4, 5), (10, 11), (10, 3), (7, 1)])
def test_one_cached_query_has_the_bias_of_its_row_in_the_whole(scheme, causal, start, seen):
    position = filled(scheme, causal=causal)
    whole, row = position.bias(11, 11, 0), position.bias(1, seen, start)
    assert (whole is None) == (row is None)
    if whole is not None:
        assert row.dtype == torch.float32
        torch.testing.assert_close(row[:, 0], whole[:, start, start + 1 - seen : start + 1])


@pytest.mark.parametrize("scheme", POSITIONS)
@pytest.mark.parametrize("start", [0, 1, 5])
def test_a_later_start_turns_queries_and_keys_as_the_whole_sequence_has_them_there(scheme, start):
    position = filled(scheme)
    q, k = torch.randn(2, 3, 11, 14), torch.randn(2, 1, 11, 14)
    for whole, later in zip(
        position.rotate(q, k, 0), position.rotate(q[:, :, start:], k[:, :, start:], start), strict=True
    ):
        torch.testing.assert_close(later, whole[:, :, start:])


def test_each_scheme_fills_one_place_and_none_fills_none():
    x_BTD, q, k = torch.randn(2, 5, 6), torch.randn(2, 3, 5, 14), torch.randn(2, 3, 5, 14)
    filled_places = {}
    for scheme in POSITIONS:
        position = filled(scheme)
        turned = position.rotate(q, k, 3)
        places = [
            not torch.equal(position.embed(x_BTD, 3, word_BT=torch.ones(2, 5, dtype=torch.int64)), x_BTD),
            not (torch.equal(turned[0], q) and torch.equal(turned[1], k)),
            position.bias(5, 5, 3) is not None,
        ]
        filled_places[scheme] = places
    assert {scheme: sum(places) for scheme, places in filled_places.items()} == {
        scheme: int(scheme != "none") for scheme in POSITIONS
    }


@pytest.mark.parametrize("scheme", POSITIONS)
def test_a_span_computes_the_bias_once_and_turns_at_its_start(scheme):
    position = filled(scheme)
    span = position.span(2, 5, 3)
    q, k = torch.randn(2, 3, 2, 14), torch.randn(2, 3, 2, 14)
    assert all(map(torch.equal, span.rotate(q, k), position.rotate(q, k, 3)))
    bias = position.bias(2, 5, 3)
    assert span.bias_HTS is None if bias is None else torch.equal(span.bias_HTS, bias)
    assert span.num_keys == 5


# Rotary


def turned(vector, position, d_k=14):
    return Rotary(d_k, 3).rotate(vector.view(1, 1, 1, d_k), vector.view(1, 1, 1, d_k), position)[0][0, 0, 0]


@pytest.mark.parametrize("position", [0, 1, 2, 13, 4_099])
def test_pairs_are_turned_as_complex_numbers_are(position):
    vector = torch.randn(14, generator=torch.Generator().manual_seed(3))
    wanted = []
    for pair in range(7):
        number = complex(vector[2 * pair], vector[2 * pair + 1])
        angle = position * 10000.0 ** (-2 * pair / 14)
        number *= complex(math.cos(angle), math.sin(angle))
        wanted += [number.real, number.imag]
    assert turned(vector, position).tolist() == pytest.approx(wanted, abs=2e-6)


@pytest.mark.parametrize("offset", [0, 1, 7, 1_009])
def test_a_score_of_turned_vectors_depends_on_their_distance_alone(offset):
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(1, 1, 1, 14, generator=generator) for _ in range(2))
    rotary = Rotary(14, 3)

    def score(query_at, key_at):
        return (rotary.rotate(q, q, query_at)[0] * rotary.rotate(k, k, key_at)[1]).sum().item()

    assert score(9 + offset, 4 + offset) == pytest.approx(score(9, 4), abs=5e-5)
    assert score(4, 9) != pytest.approx(score(9, 4), abs=1e-2)  # to which side does count


def test_turning_changes_no_length_and_position_0_changes_nothing():
    vector = torch.randn(14)
    assert torch.equal(turned(vector, 0), vector)
    assert turned(vector, 5).norm().item() == pytest.approx(vector.norm().item(), rel=1e-6)


def test_the_turning_of_transformers_roformer_is_the_same():
    roformer = pytest.importorskip("transformers.models.roformer.modeling_roformer")
    length, d_k = 13, 10
    table = sinusoids(length, d_k)
    their_waves = torch.cat([table[:, 0::2], table[:, 1::2]], dim=-1)[None, None]
    q, k = torch.randn(2, 3, length, d_k), torch.randn(2, 3, length, d_k)
    theirs = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings(their_waves, q, k)
    for our, their in zip(Rotary(d_k, 5).rotate(q, k, 0), theirs, strict=True):
        torch.testing.assert_close(our, their)


def test_rotation_in_bf16_has_float32_angles():
    rotary = Rotary(14, 4_099).bfloat16()
    vector = torch.randn(1, 1, 1, 14).bfloat16()
    turned_q, _ = rotary.rotate(vector, vector, 3_001)
    wanted, _ = Rotary(14, 5).rotate(vector.float(), vector.float(), 3_001)
    assert turned_q.dtype == torch.bfloat16
    torch.testing.assert_close(turned_q.float(), wanted, atol=2e-2, rtol=1e-2)
    assert rotary.wave_TK.dtype == torch.float32


def test_rotary_waves_grow_in_inference_and_serve_training_afterwards():
    rotary = Rotary(6, 3)
    q = torch.randn(1, 1, 7, 6, requires_grad=True)
    with torch.inference_mode():
        rotary.rotate(q, q, 0)
    assert not rotary.wave_TK.is_inference()
    rotary.rotate(q, q, 0)[0].square().sum().backward()
    assert q.grad.isfinite().all()
    assert not list(rotary.parameters())
    assert not rotary.state_dict()


# ALiBi


def test_the_bias_is_minus_slope_times_distance_to_both_sides():
    bias = Alibi(2).bias(3, 3, 0)
    distances = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    torch.testing.assert_close(bias, torch.stack([-distances / 16, -distances / 256]))
    assert not list(Alibi(2).parameters())
    assert not Alibi(2).state_dict()


# T5


@pytest.mark.parametrize("causal", [False, True])
def test_buckets_equal_those_of_transformers_t5(causal):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offsets = torch.arange(-1_009, 1_010)[None]
    theirs = t5.T5Attention._relative_position_bucket(
        offsets, bidirectional=not causal, num_buckets=NUM_BUCKETS, max_distance=MAX_DISTANCE
    )
    assert torch.equal(relative_buckets(offsets, causal=causal), theirs)


def test_buckets_by_hand():
    offsets = torch.tensor([[0, -1, -15, -16, -18, -20, -127, -128, -5_000, 1, 40]])
    # causal: 16 + floor(16 log(n / 16) / log(8)); the future, which the mask hides, has the bucket of 0
    assert relative_buckets(offsets, causal=True)[0].tolist() == [0, 1, 15, 16, 16, 17, 31, 31, 31, 0, 0]
    # to both sides: 8 + floor(8 log(n / 8) / log(16)), and 16 more to the right
    assert relative_buckets(offsets, causal=False)[0].tolist() == [0, 1, 9, 10, 10, 10, 15, 15, 15, 17, 28]


def test_the_bias_is_the_number_of_the_head_and_bucket():
    position = filled("t5", causal=False)
    bias = position.bias(3, 7, 9)  # queries at 9, 10, 11; keys at 5 to 11
    for query in range(3):
        for key in range(7):
            offset = (5 + key) - (9 + query)
            bucket = abs(offset) + (16 if offset > 0 else 0)
            assert torch.equal(bias[:, query, key], position.weight[bucket])


def test_relative_positions_end_where_the_queries_end():
    cpu = torch.device("cpu")
    assert relative_positions(2, 4, 5, device=cpu).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]


def test_t5_has_one_trained_table_of_buckets_by_heads():
    assert [(name, tuple(p.shape)) for name, p in RelativeBuckets(3, causal=True).named_parameters()] == [
        ("weight", (32, 3))
    ]

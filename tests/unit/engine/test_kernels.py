"""Every set of kernels that this processor can run, against NumPy. Sizes are odd on purpose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.layout import BLOCK, pack_matrix, quantise

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

KERNELS = native.available()
SIZES = st.integers(1, 131)


def packed_bytes(array):
    return array.reshape(-1).view(np.uint8)


def drawn(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 31), inputs=SIZES, outputs=SIZES, seed=st.integers(0, 2**32 - 1))
def test_sums_of_8_bit_products_are_those_of_whole_numbers(name, rows, inputs, outputs, seed):
    generator = np.random.default_rng(seed)
    weight_OI = drawn(seed, outputs, inputs)
    _, whole_OI = quantise(weight_OI)
    rows_RI = generator.integers(-127, 128, (rows, inputs)).astype(np.int8)
    packed = pack_matrix(weight_OI, is_int8=True)
    out = np.zeros((rows, -(-outputs // BLOCK) * BLOCK), dtype=np.int32)
    native.Probe(name).sums(packed_bytes(packed.weight), outputs=outputs, inputs=inputs, rows=rows_RI, out=out)
    expected = rows_RI.astype(np.int32) @ whole_OI.astype(np.int32).T
    np.testing.assert_array_equal(out[:, :outputs], expected)
    assert not out[:, outputs:].any()


@pytest.mark.parametrize("inputs", [2053, 1 << 16])  # the second: the most that the engine takes
@pytest.mark.parametrize("name", KERNELS)
def test_the_largest_numbers_do_not_overflow(name, inputs):
    weight_OI = np.ones((17, inputs), dtype=np.float32)
    weight_OI[3] = -1
    rows_RI = np.full((5, inputs), 127, dtype=np.int8)
    rows_RI[2] = -127
    out = np.zeros((5, 32), dtype=np.int32)
    packed = pack_matrix(weight_OI, is_int8=True)
    native.Probe(name).sums(packed_bytes(packed.weight), outputs=17, inputs=inputs, rows=rows_RI, out=out)
    np.testing.assert_array_equal(out[:, :17], rows_RI.astype(np.int32) @ quantise(weight_OI)[1].astype(np.int32).T)


@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 31),
    inputs=SIZES,
    outputs=SIZES,
    relu=st.booleans(),
    biased=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_product_is_that_of_numpy(name, is_int8, rows, inputs, outputs, relu, biased, seed):
    weight_OI = drawn(seed, outputs, inputs)
    bias_O = drawn(seed + 1, outputs) if biased else None
    rows_RI = drawn(seed + 2, rows, inputs)
    packed = pack_matrix(weight_OI, bias_O, is_int8=is_int8)
    out = np.full((rows, -(-outputs // BLOCK) * BLOCK), 7, dtype=np.float32)
    native.Probe(name).product(
        packed_bytes(packed.weight),
        scale=packed.scale,
        bias=packed.bias,
        outputs=outputs,
        inputs=inputs,
        rows=rows_RI,
        relu=relu,
        out=out,
    )
    weight, numbers = weight_OI.astype(np.float64), rows_RI.astype(np.float64)
    if is_int8:
        scale_O, whole_OI = quantise(weight_OI)
        scale_R, whole_RI = quantise(rows_RI)
        weight, numbers = whole_OI * scale_O[:, None].astype(np.float64), whole_RI * scale_R[:, None].astype(np.float64)
    expected = numbers @ weight.T + (0 if bias_O is None else bias_O)
    expected = expected.clip(0) if relu else expected
    # a number midway between two whole ones may be rounded to either: one unit of one number
    slack = 1e-4 if not is_int8 else 2e-2 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(out[:, :outputs], expected, rtol=1e-4, atol=slack)
    assert not out[:, outputs:].any()


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(size=SIZES, seed=st.integers(0, 2**32 - 1))
def test_a_row_in_8_bits_is_within_half_a_unit(name, size, seed):
    row_1I = drawn(seed, 1, size)
    whole, scale = native.Probe(name).quantise(row_1I)
    assert scale == pytest.approx(float(np.abs(row_1I).max()) / 127, rel=1e-6)
    np.testing.assert_allclose(np.array(whole) * scale, row_1I[0], atol=0.5001 * scale)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_number_has_no_scale(name, bad):
    row_1I = drawn(3, 1, 37)
    row_1I[0, 31] = bad
    assert np.isnan(native.Probe(name).quantise(row_1I)[1])


@pytest.mark.parametrize("name", KERNELS)
def test_a_row_of_zeros_stays_one(name):
    whole, scale = native.Probe(name).quantise(np.zeros((1, 19), dtype=np.float32))
    assert scale == 0.0
    assert not any(whole)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(size=SIZES, centred=st.booleans(), biased=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_a_norm_is_that_of_numpy(name, size, centred, biased, seed):
    rows_RI, gain_I = drawn(seed, 5, size) + 3, drawn(seed + 1, size)
    bias_I = drawn(seed + 2, size) if biased else None
    out = np.zeros_like(rows_RI)
    native.Probe(name).norm(rows_RI, gain=gain_I, bias=bias_I, epsilon=1e-5, centred=centred, out=out)
    wide = rows_RI.astype(np.float64)
    rest = wide - wide.mean(axis=1, keepdims=True) if centred else wide
    expected = rest / np.sqrt((rest**2).mean(axis=1, keepdims=True) + 1e-5) * gain_I + (0 if bias_I is None else bias_I)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_an_activation_is_that_of_torch(name, activation):
    torch = pytest.importorskip("torch")
    rows = np.linspace(-12, 12, 1600, dtype=np.float32).reshape(10, 160).copy()
    expected = getattr(torch.nn.functional, activation)(torch.from_numpy(rows.astype(np.float64))).numpy()
    native.Probe(name).activate(activation, rows)
    np.testing.assert_allclose(rows, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 7), blocks=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_a_gate_is_that_of_its_activation_times_numpy(name, activation, rows, blocks, seed):
    gates, numbers = drawn(seed, rows, blocks * BLOCK) * 4, drawn(seed + 1, rows, blocks * BLOCK)
    activated, out = gates.copy(), np.full_like(gates, 7)
    native.Probe(name).activate(activation, activated)
    native.Probe(name).gate(activation, gates, numbers, out=out)
    np.testing.assert_allclose(out, activated * numbers, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 512), seed=st.integers(0, 2**32 - 1), threshold=st.floats(-2, 4))
def test_a_scan_gives_log_sum_and_what_lies_above(name, size, seed, threshold):
    row_1V = drawn(seed, 1, size) * 5
    peak, total, places = native.Probe(name).scan(row_1V, threshold=threshold)
    wide = row_1V[0].astype(np.float64)
    assert peak == row_1V.max()
    assert total == pytest.approx(np.exp(wide - wide.max()).sum(), rel=2e-6)
    assert places == [place for place in range(size) if row_1V[0, place] > np.float32(threshold)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("payload", [0x7FC00000, 0x7FC00001, 0xFFFFFFFF])
def test_one_logit_that_is_no_number_leaves_no_sum(name, payload):
    row_1V = drawn(5, 1, 37)
    row_1V.view(np.uint32)[0, 19] = payload
    assert np.isnan(native.Probe(name).scan(row_1V, threshold=0.0)[1])


HEADS = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 71), st.integers(1, 71))


def attended(query_HK, key_SGK, value_SGV, loss_HS):
    """Softmax(q k / sqrt(d_k) - loss) and its mixture of values, in float64."""
    shared = query_HK.shape[0] // key_SGK.shape[1]
    key_SHK = key_SGK.astype(np.float64).repeat(shared, axis=1)
    value_SHV = value_SGV.astype(np.float64).repeat(shared, axis=1)
    scores_HS = np.einsum("hk,shk->hs", query_HK.astype(np.float64), key_SHK) / np.sqrt(query_HK.shape[1]) - loss_HS
    weights_HS = np.exp(scores_HS - scores_HS.max(axis=1, keepdims=True))
    weights_HS /= weights_HS.sum(axis=1, keepdims=True)
    return weights_HS, np.einsum("hs,shv->hv", weights_HS, value_SHV)


def short(array):
    """The nearest numbers of bfloat16."""
    bits = array.view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32)).view(np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_a_short_number_is_the_nearest_one(name):
    row = np.concatenate([drawn(5, 1, 331) * 10.0**power for power in (-30, -3, 0, 7, 38)], axis=1).astype(np.float32)
    row[0, :4] = 1.00390625, 1.01171875, -np.inf, np.nan  # two midway between neighbours
    out = np.zeros(row.shape, dtype=np.uint16)
    native.Probe(name).narrow(row, out=out)
    found = (out.astype(np.uint32) << 16).view(np.float32)
    assert np.isnan(found[0, 3])
    np.testing.assert_array_equal(found[0, :3], [1.0, 1.015625, -np.inf])
    np.testing.assert_array_equal(np.delete(found, 3), np.delete(short(row), 3))


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(heads=HEADS, places=st.integers(1, 41), sloping=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_attention_over_the_past_is_that_of_numpy(name, is_short, heads, places, sloping, seed):
    shared, keys, d_k, d_v = heads
    queries = shared * keys
    query_HK = drawn(seed, queries, d_k) * 2
    key_SGK, value_SGV = drawn(seed + 1, places + 7, keys, d_k), drawn(seed + 2, places + 7, keys, d_v)
    offset = np.random.default_rng(seed).permutation(places + 7)[:places]
    slope_H = np.abs(drawn(seed + 3, queries)) if sloping else None
    weights_HS, out = np.zeros((queries, places), np.float32), np.zeros((1, queries * d_v), np.float32)
    native.Probe(name).attend(
        query_HK.reshape(1, -1),
        key=key_SGK.reshape(places + 7, -1),
        value=value_SGV.reshape(places + 7, -1),
        offset=offset.tolist(),
        heads=(queries, keys, d_k, d_v),
        slope=slope_H,
        is_short=is_short,
        weights=weights_HS,
        out=out,
    )
    loss_HS = np.outer(slope_H, np.arange(places)[::-1]) if sloping else 0
    key_SGK, value_SGV = (short(key_SGK), short(value_SGV)) if is_short else (key_SGK, value_SGV)
    expected_weights, expected = attended(query_HK, key_SGK[offset], value_SGV[offset], loss_HS)
    np.testing.assert_allclose(weights_HS, expected_weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(out.reshape(queries, d_v), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=60, deadline=None)
@given(
    heads=HEADS,
    rows=st.integers(1, 11),
    source=st.integers(1, 83),
    centre=st.none() | st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_attention_over_a_source_is_that_of_numpy(name, is_short, heads, rows, source, centre, seed):
    shared, keys, d_k, d_v = heads
    queries = shared * keys
    queries_RHK = drawn(seed, rows, queries, d_k) * 2
    key_SGK, value_SGV = drawn(seed + 1, source, keys, d_k), drawn(seed + 2, source, keys, d_v)
    slope_H = None if centre is None else np.abs(drawn(seed + 3, queries))
    weights = np.zeros((rows * queries, source), np.float32)
    out = np.zeros((rows, queries * d_v), np.float32)
    native.Probe(name).attend_source(
        queries_RHK.reshape(rows, -1),
        key=key_SGK.reshape(source, -1),
        value=value_SGV.reshape(source, -1),
        heads=(queries, keys, d_k, d_v),
        slope=slope_H,
        centre=centre or 0,
        is_short=is_short,
        weights=weights,
        out=out,
    )
    key_SGK, value_SGV = (short(key_SGK), short(value_SGV)) if is_short else (key_SGK, value_SGV)
    for row in range(rows):
        distance_S = np.abs(np.arange(source) - (centre or 0) - row)
        loss_HS = 0 if slope_H is None else np.outer(slope_H, distance_S)
        expected_weights, expected = attended(queries_RHK[row], key_SGK, value_SGV, loss_HS)
        own = weights.reshape(rows, queries, source)[row]
        np.testing.assert_allclose(own, expected_weights, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(out[row].reshape(queries, d_v), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_a_query_that_is_no_number_gives_none(name):
    query = np.full((1, 24), np.nan, dtype=np.float32)
    weights, out = np.zeros((2, 5), np.float32), np.zeros((1, 24), np.float32)
    key = drawn(1, 5, 24)
    native.Probe(name).attend(
        query,
        key=key,
        value=key,
        offset=[0, 1, 2, 3, 4],
        heads=(2, 2, 12, 12),
        slope=None,
        is_short=False,
        weights=weights,
        out=out,
    )
    assert np.isnan(out).all()

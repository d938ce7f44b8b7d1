"""paper/table1.py on small sizes: every printed order holds, wrong ones do not, and nothing is measured twice."""

from dataclasses import asdict, replace

import pytest

from headway.errors import PaperError
from headway.paper.chain import layer_chain
from headway.paper.events import RowBegun, RowKept, TableDone
from headway.paper.layer_claims import crossing, fastest, order_claims, speed_claim
from headway.paper.layer_kinds import FULL, KINDS, QUICK, Ranges, chain_sweeps
from headway.paper.layer_measure import Orders, by_length
from headway.paper.layer_time import TIMED, kept_bytes
from headway.paper.table1 import Timing, _plots, make
from headway.paper.verdict import Verdict
from headway.paper.work import WorkFolder
from headway.paper.writing import to_dict, to_markdown

RANGES = Ranges(
    lengths=(32, 64),
    recurrent_lengths=(8, 16),
    widths=(8, 16),
    kernels=(3, 5),
    neighbourhoods=(8, 16),
    chain_lengths=(32, 64),
    path_lengths=(33, 65),
    powers=(1, 2, 3),
    path_kernels=(33, 65),
    path_neighbourhoods=(4, 8),
    long=65,
    powers_of=((5, 3),),
    shape_widths=(8, 16),
    shape_kernels=(3, 5),
    shape_neighbourhoods=(16, 32),
    worked=((50, 512),),
)
TIMING = Timing(d_model=8, lengths=(16, 32), rounds=2, block=0.0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    work = WorkFolder(tmp_path_factory.mktemp("table1"))
    return work, list(make(work, ranges=RANGES, timing=TIMING, command="the command"))


def table_of(events):
    assert isinstance(events[-1], TableDone)
    return events[-1].table


def orders_of(work, kind):
    values, _ = work.find(f"orders-{kind.layer}", {"ranges": asdict(RANGES)})
    return Orders.read(values)


def test_every_printed_order_holds(made):
    claims = [claim for claim in table_of(made[1]).claims if claim.name != "speed"]
    assert len(claims) == 3 * sum(kind.is_printed for kind in KINDS)
    assert {(claim.name, claim.text, claim.verdict) for claim in claims if claim.verdict != Verdict.HOLDS} == set()
    assert all(claim.parts for claim in claims)


@pytest.mark.parametrize(
    "change",
    [
        {"exponents": {"n": 1, "d": 1}},
        {"chain": 1},
        {"chain": -1},
        {"path": {"n": 1}},
    ],
)
def test_a_wrong_order_does_not_hold(made, change):
    attention = KINDS[0]
    claims = order_claims(replace(attention, **change), orders_of(made[0], attention))
    assert [claim.verdict for claim in claims].count(Verdict.DOES_NOT_HOLD) == 1


def test_chains_and_paths_are_read_against_every_letter_that_a_kind_has(made):
    letters = {
        kind.layer: (set(orders.chain), set(orders.path)) for kind in KINDS for orders in [orders_of(made[0], kind)]
    }
    assert letters["self-attention"] == ({"n", "d"}, {"n", "d"})
    assert letters["convolution"] == letters["separable"] == ({"n", "d", "k"}, {"n", "d", "k"})
    assert letters["restricted"] == ({"n", "d", "r"}, {"n", "d", "r"})
    assert letters["dilated"] == ({"n", "d", "k"}, {"d", "log_k n", "log_5 n"})
    claims = {claim.text: claim for claim in table_of(made[1]).claims if claim.name == "convolutional, dilated"}
    path = [part.what for part in claims["O(log_k n) maximum path length"].parts]
    assert path == ["exponent of log_k n, less 1", "exponent of log_5 n, less 1", "exponent of d, less 0"]


@pytest.mark.parametrize("ranges", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_printed], ids=lambda kind: kind.layer)
def test_the_longest_chain_does_not_grow_with_d_k_and_r_at_the_sizes_of_the_command(kind, ranges):
    for letter, points in chain_sweeps(kind, ranges).items():
        if letter != "n":
            assert len({layer_chain(kind.layer, point.sizes, point.length) for point in points}) == 1, letter


def test_the_seconds_are_drawn_with_n_equal_to_d(made):
    assert "n = d: 8" not in table_of(made[1]).plots["table1-seconds.svg"]  # no length is as short
    crossed = _plots({"table1-seconds": {"LSTM": [(4, 1.0), (64, 2.0)]}}, 16, {"with projections": 20.0, "alone": None})
    assert "n = d: 16" in crossed["table1-seconds.svg"]
    assert "as long as LSTM, with projections: 20" in crossed["table1-seconds.svg"]


def test_a_count_that_is_no_multiple_of_the_printed_order_does_not_pass(made):
    attention = KINDS[0]
    orders = orders_of(made[0], attention)
    (operations, _, _) = order_claims(attention, replace(orders, ratio=[2.0, 2.1]))
    assert operations.verdict == Verdict.NOT_SETTLED
    assert operations.parts[-1].difference.high == pytest.approx(2.1 / 2.05 - 1)


def test_the_worked_numbers_of_section_4(made):
    rows = {row.name: row.cells["n = 50, d = 512"] for row in table_of(made[1]).rows}
    assert (rows["self-attention"].published, rows["self-attention"].measured) == (1_280_000, 2_560_000)
    assert (rows["recurrent, LSTM"].published, rows["recurrent, LSTM"].measured) == (13_107_200, 8 * 13_107_200)
    separable = rows["convolutional, separable"]
    assert separable.published == separable.measured == 14_387_200


def test_the_table_tells_of_the_projections_and_the_window(made):
    notes = " ".join(table_of(made[1]).notes)
    assert "4 n d^2" in notes
    assert "95%" in notes  # 4 x 13,107,200 of 2,560,000 + 52,428,800
    assert "2 n / r" in notes
    restricted = next(row for row in table_of(made[1]).rows if row.name == "self-attention, restricted")
    assert restricted.cells["operations a layer"].measured.startswith("3 n^1.00 d^1.00 r^1.00")


def test_a_second_call_measures_nothing_and_gives_the_same(made):
    work, events = made
    again = list(make(work, ranges=RANGES, timing=TIMING, command="the command"))
    assert not any(isinstance(event, RowBegun) for event in again)
    assert sum(isinstance(event, RowKept) for event in again) == len(KINDS) + TIMING.rounds + 1
    assert to_dict(table_of(again)) == to_dict(table_of(events))
    assert to_markdown(table_of(again)) == to_markdown(table_of(events))


def test_another_round_is_added_to_those_there(made):
    work, _ = made
    again = list(make(work, ranges=RANGES, timing=replace(TIMING, rounds=3)))
    assert [event.name for event in again if isinstance(event, RowBegun)] == ["round-3"]


def test_rounds_of_shorter_blocks_are_timed_anew(made):
    work, _ = made
    again = list(make(work, ranges=RANGES, timing=replace(TIMING, rounds=1, block=1e-9)))
    assert [event.name for event in again if isinstance(event, RowBegun)] == ["round-1"]


def test_a_width_that_cannot_be_timed_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(PaperError, match=r"width of 100 is no whole number of heads.*--width 64 or --width 128"):
        next(make(WorkFolder(tmp_path / "work"), ranges=RANGES, timing=replace(TIMING, d_model=100)))
    assert not (tmp_path / "work").exists()


def test_every_timed_layer_has_its_line_in_each_drawing(made):
    table = table_of(made[1])
    assert set(table.plots) == {f"{name}.svg" for name in table.points}
    for name in ("table1-seconds", "table1-memory"):
        assert set(table.points[name]) == set(TIMED)
        assert all([length for length, _ in line] == [16, 32] for line in table.points[name].values())


def test_lengths_where_one_line_comes_to_cost_more():
    # 4 x^2 and 64 x meet at 16
    ours, theirs = {n: 4.0 * n * n for n in (5, 11, 23, 47)}, {n: 64.0 * n for n in (5, 11, 23, 47)}
    assert crossing(ours, theirs) == pytest.approx(16.0)
    assert crossing(theirs, ours) is None
    assert crossing({5: 1.0}, {5: 2.0}) is None


def test_the_fastest_round_counts():
    rounds = [{"a": {3: 2.0, 5: 7.0}}, {"a": {3: 4.0, 5: 1.0}}]
    assert fastest(rounds) == {"a": {3: 2.0, 5: 1.0}}


def test_the_claim_of_speed_is_about_sentences_shorter_than_half_of_d():
    one = {"self-attention": {8: 1.0, 16: 1.0, 32: 9.0}, "LSTM": {8: 2.0, 16: 2.0, 32: 1.0}}
    claim = speed_claim([one, one, one], 32)
    assert [part.what.partition(":")[0] for part in claim.parts] == ["n = 8", "n = 16"]
    assert claim.verdict == Verdict.HOLDS
    assert speed_claim([one], 32).verdict == Verdict.NOT_SETTLED
    slower = {"self-attention": {8: 3.0}, "LSTM": {8: 2.0}}
    assert speed_claim([slower, slower], 32).verdict == Verdict.DOES_NOT_HOLD


def test_stored_weights_take_memory_that_grows_with_the_square_and_fused_attention_does_not():
    stored, fused = (
        [kept_bytes(name, 8, length) for length in (512, 1024)]
        for name in ("with stored weights", "without projections")
    )
    assert stored[1] / stored[0] == pytest.approx(4.0, rel=0.05)
    assert fused[1] / fused[0] == pytest.approx(2.0, rel=0.05)


def test_lengths_come_back_as_numbers():
    assert by_length({"a": {"16": 2.5}}) == {"a": {16: 2.5}}

"""paper/table2.py and cost.py: the paper's own numbers, and operations by hand."""

import pytest

from headway.config.model_config import ModelConfig
from headway.paper.cost import by_count, by_rule
from headway.paper.table import Cell, Row
from headway.paper.table2 import _claim, make
from headway.paper.verdict import Verdict


def table():
    (done,) = make()
    return done.table


def cell(name, column):
    return next(row for row in table().rows if row.name == name).cells[column]


@pytest.mark.parametrize(("name", "printed"), [("Transformer (base)", 3.3e18), ("Transformer (big)", 2.3e19)])
def test_the_rule_gives_the_printed_costs(name, printed):
    cost = cell(name, "cost EN-DE")
    assert cost.published == printed
    assert float(f"{cost.measured:.1e}") == printed


def test_the_costs_in_full():
    assert by_rule(43_200, processors=8, processor="P100") == 3.2832e18
    assert cell("Transformer (big)", "cost EN-DE").measured == pytest.approx(2.29824e19)
    assert cell("Transformer (base)", "by the time of its steps").measured == pytest.approx(3.04e18)
    assert cell("Transformer (big)", "by the time of its steps").measured == pytest.approx(2.28e19)


@pytest.mark.parametrize(
    ("name", "counted", "share"), [("Transformer (base)", 9.5e17, 0.29), ("Transformer (big)", 9.7e18, 0.42)]
)
def test_counted_operations_are_a_third_of_the_rule_s(name, counted, share):
    assert float(f"{cell(name, 'counted').measured:.1e}") == counted
    assert cell(name, "counted / rule").measured == pytest.approx(share, abs=0.005)


def test_counted_operations_by_hand():
    model = ModelConfig(vocab_size=11, d_model=2, d_ff=3, num_heads=1, num_encoder_layers=1, num_decoder_layers=1)
    # n = m = 5: source 4 d^2 + 2 d ff + 2 n d = 16 + 12 + 20, its keys and values for cross-attention 2 d^2 = 8;
    # target 6 d^2 + 2 d ff + 2 m d + 2 n d = 24 + 12 + 20 + 20, softmax 11 d = 22
    found = by_count(model, steps=7, source_tokens=13, target_tokens=17, length=5)
    assert found == 3 * 2 * 7 * (13 * (16 + 12 + 20 + 8) + 17 * (24 + 12 + 40 + 22))


def test_that_the_costs_are_the_rule_s_is_a_claim_to_the_printed_digits():
    (claim,) = table().claims
    assert claim.verdict == Verdict.HOLDS
    base, big = claim.parts
    assert base.difference.value == pytest.approx(3.2832 / 3.3 - 1)
    assert base.margin == pytest.approx(0.05 / 3.3)
    assert big.margin == pytest.approx(0.05 / 2.3)


def test_a_cost_with_another_last_digit_is_not_the_rule_s():
    rows = [Row("Transformer (base)", {"cost EN-DE": Cell(3.4e18, 3.2832e18)})]
    assert _claim(rows).verdict == Verdict.DOES_NOT_HOLD


def test_quality_is_drawn_against_cost_with_a_line_from_the_count_to_the_rule():
    lines = table().points["table2"]
    assert len(lines) == 7  # the rows with a cost for German
    assert lines["ConvS2S"] == [(9.6e18, 25.16)]
    (counted, bleu), (rule, same) = lines["Transformer (base)"]
    assert (bleu, same) == (27.3, 27.3)
    assert counted / rule == pytest.approx(0.29, abs=0.005)
    assert set(table().plots) == {"table2.svg"}


def test_every_printed_row_is_there():
    rows = table().rows
    assert len(rows) == 10
    assert cell("GNMT + RL ensemble", "cost EN-FR").published == 1.1e21
    assert cell("MoE", "BLEU EN-DE").published == 26.03
    assert {row.name for row in rows if "counted" in row.cells} == {"Transformer (base)", "Transformer (big)"}
    assert any("41.0" in note for note in table().notes)

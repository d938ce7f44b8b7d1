"""The permutation law of a model without positions, and outputs for shuffled sources."""

import pytest
import torch
from studies import make_study, parts_of

from headway.model.build import build_transformer
from headway.nn.position import OF_ANY_TEXT
from headway.paper import order
from headway.paper.verdict import Verdict


def scrambled(scheme, seed=3):
    """A model that minds what it reads: larger weights than at the begin."""
    model = build_transformer(order.small_run(scheme, 1, seed).model, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model


def sources(seed=2):
    return torch.randint(4, 28, (23, 9), generator=torch.Generator().manual_seed(seed))


def test_a_shuffled_source_holds_the_same_tokens_each_from_the_place_that_is_told():
    source = sources()
    other, places = order.shuffled(source, seed=1)
    assert not torch.equal(other, source)
    assert torch.equal(other.sort(dim=1)[0], source.sort(dim=1)[0])
    for row in range(len(source)):
        assert other[row].tolist() == [source[row, place].item() for place in places[row].tolist()]


@pytest.mark.parametrize("scheme", OF_ANY_TEXT)
def test_encodings_of_shuffled_sources_are_shuffled_encodings_without_positions_alone(scheme):
    gap = order.law_gap(scrambled(scheme), sources(), seed=1)
    if scheme == "none":
        assert gap < 1e-12
    else:
        assert gap > 0.01


@pytest.mark.parametrize("scheme", OF_ANY_TEXT)
def test_outputs_of_shuffled_sources_are_the_same_without_positions_alone(scheme):
    same = order.same_outputs(scrambled(scheme), sources(), seed=1)
    if scheme == "none":
        assert all(same)
    else:
        assert not all(same)


def test_a_quick_study_holds_the_law(tmp_path):
    _, table = make_study("order", tmp_path, num_seeds=1)
    law, outputs, use = table.claims
    assert law.verdict == Verdict.HOLDS
    assert len(law.parts) == len(OF_ANY_TEXT)
    assert parts_of(table)["none: share of outputs that differ"].verdict == Verdict.HOLDS
    assert len(outputs.parts) == len(OF_ANY_TEXT)
    assert use.parts[0].claimed == "above"


def rows_of(size):
    """What a study of these sizes finds where all is as claimed."""
    return {
        f"order-{scheme}-seed{seed}": {
            "gap": 0.0 if scheme == "none" else 1.0,
            "loss": (3.0 if scheme == "none" else 0.1) + seed / 100,
            "same": [1] * 40 if scheme == "none" else [1, 0, 0, 0] * 10,
        }
        for scheme in OF_ANY_TEXT
        for seed in size.seeds
    }


def test_a_difference_that_is_rounding_is_none_whether_that_is_claimed_or_not():
    size = order.Sizes(steps=1, seeds=range(1, 3))
    rows = rows_of(size)
    rows["order-none-seed2"]["gap"] = 1e-15
    assert order._claims(size, rows)[0].verdict == Verdict.HOLDS
    rows["order-rope-seed2"]["gap"] = 1e-15
    law, *_ = order._claims(size, rows)
    assert [part.verdict for part in law.parts if part.what.startswith("rope")] == [Verdict.DOES_NOT_HOLD]
    assert law.verdict == Verdict.DOES_NOT_HOLD


def test_outputs_are_compared_in_pairs_by_sentence():
    size = order.Sizes(steps=1, seeds=range(1, 3))
    rows = rows_of(size)
    law, outputs, use = order._claims(size, rows)
    assert {law.verdict, outputs.verdict, use.verdict} == {Verdict.HOLDS}
    assert outputs.parts[1].difference.value == pytest.approx(0.75)
    rows["order-none-seed2"]["same"] = [1] * 39 + [0]
    assert order._claims(size, rows)[1].parts[0].verdict == Verdict.DOES_NOT_HOLD

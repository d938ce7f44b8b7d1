"""The study of length: every scheme, each length, and what counts as beyond."""

import pytest
import torch
from studies import make_study, parts_of, workshop

from headway.nn.position import OF_ANY_TEXT
from headway.paper import length
from headway.paper.small_run import first_model
from headway.paper.study import Extent


@pytest.mark.parametrize("quick", [True, False])
def test_sentences_are_longer_in_the_test_and_every_scheme_can_read_them(quick, tmp_path):
    size = length.sizes(workshop(tmp_path, quick=quick))
    assert max(size.lengths) == 3 * size.longest
    assert size.lengths[2] == size.longest * 5 // 4
    for scheme in OF_ANY_TEXT:
        run = length.small_run(scheme, size, seed=1)
        assert run.task.longest == size.longest
        assert run.model.max_positions > max(size.lengths)
        assert run.task.num_symbols >= max(size.lengths)


def test_a_quick_study_has_every_scheme_and_length(tmp_path):
    _, table = make_study("length", tmp_path, num_seeds=1)
    assert [row.name for row in table.rows] == list(OF_ANY_TEXT)
    assert [column.name for column in table.columns] == [f"length {number}" for number in (4, 8, 10, 12, 16, 24)]
    assert all(0.0 <= cell.measured <= 1.0 for row in table.rows for cell in row.cells.values())
    assert set(parts_of(table)) == {"beyond, sinusoidal against learned", "sinusoidal, length 10 against 8"}
    assert length.HANDICAP in table.notes


def encode(model, source):
    with torch.inference_mode():
        return model.encode(source, None)


def small_model(scheme):
    """A model of the study in float64, with weights that make it mind what it reads."""
    size = length.Sizes(longest=8, lengths=(8, 24), steps=1, seeds=range(1, 2))
    model = first_model(length.small_run(scheme, size, seed=1)).double().eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model


@pytest.mark.parametrize("scheme", OF_ANY_TEXT)
def test_alibi_tells_an_encoder_not_which_neighbour_comes_first(scheme):
    source = torch.randint(4, 40, (3, 7), generator=torch.Generator().manual_seed(2))
    model = small_model(scheme)
    gap = (encode(model, source).flip(1) - encode(model, source.flip(1))).abs().max().item()
    assert (gap < 1e-6) == (scheme in {"alibi", "none"})


@pytest.mark.parametrize("scheme", OF_ANY_TEXT)
def test_cross_attention_is_told_no_position_by_any_scheme(scheme):
    source = torch.randint(4, 40, (3, 7), generator=torch.Generator().manual_seed(2))
    target = torch.randint(4, 40, (3, 5), generator=torch.Generator().manual_seed(3))
    model, order = small_model(scheme), torch.tensor([4, 0, 6, 2, 1, 5, 3])
    memory = encode(model, source)
    with torch.inference_mode():
        decoded, other = (model.decode(target, each, None, source_word_BS=None) for each in (memory, memory[:, order]))
    assert (decoded - other).abs().max().item() < 1e-6


def test_beyond_is_the_mean_of_the_longer_lengths_and_the_drop_is_at_the_nearest():
    size = length.Sizes(longest=8, lengths=(4, 8, 10, 16), steps=1, seeds=Extent(num_seeds=2).seeds(5))
    rows = {
        f"length-{scheme}-seed{seed}": {
            f"accuracy-{number}": value + seed / 1000 for number, value in zip(size.lengths, values, strict=True)
        }
        for scheme, values in {
            "sinusoidal": (1.0, 0.9, 0.8, 0.4),
            "learned": (1.0, 0.9, 0.3, 0.1),
        }.items()
        for seed in size.seeds
    }
    (extrapolation,) = length._claims(size, rows)  # no claim rests on a scheme that has no row here
    assert [part.difference.value for part in extrapolation.parts] == pytest.approx([0.6 - 0.2, 0.8 - 0.9])
    assert extrapolation.verdict == "does not hold"

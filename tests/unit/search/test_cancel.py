"""Calls that another thread ends: whoever listens hears of it once, and a search stops at its next step."""

import pytest
import torch
from search_tables import TablePredictor

from headway.errors import CancelledError
from headway.search.cancel import Cancel
from headway.search.cancelled import CancelledPredictor
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings

SOURCE_BS = torch.tensor([[5, 6, 3], [7, 3, 0]])
PLACES = {
    "source_BS": SOURCE_BS,
    "source_mask_BS": SOURCE_BS != 0,
}


class SettingPredictor(TablePredictor):
    """Sets ``cancel`` in its ``last`` prediction."""

    def __init__(self, cancel, last):
        super().__init__(11, end_bonus=-1e9)
        self.cancel, self.last = cancel, last

    def predict(self, token_R, state):
        found = super().predict(token_R, state)
        if len(self.fed) == self.last:
            self.cancel.set()
        return found


def found_by(predictor, beam_size=2):
    return search(
        predictor,
        **PLACES,
        settings=SearchSettings(beam_size=beam_size),
        max_output_length_B=[13, 17],
        prefix_B=[(), ()],
    )


def test_listeners_hear_of_it_within_their_block_alone():
    cancel, heard = Cancel(), []
    with cancel.heard_by(lambda: heard.append("first")):
        cancel.check()
    with cancel.heard_by(lambda: heard.append("second")), cancel.heard_by(lambda: heard.append("third")):
        assert not cancel.is_set
        cancel.set()
        assert heard == ["second", "third"]
    with cancel.heard_by(lambda: heard.append("late")):
        assert heard == ["second", "third", "late"]
    assert cancel.is_set
    with pytest.raises(CancelledError, match="the call was cancelled"):
        cancel.check()


@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_search_ends_at_its_next_step(beam_size):
    cancel = Cancel()
    predictor = SettingPredictor(cancel, last=3)
    with pytest.raises(CancelledError):
        found_by(CancelledPredictor(predictor, cancel), beam_size)
    assert len(predictor.fed) == 3
    with pytest.raises(CancelledError):
        found_by(CancelledPredictor(predictor, cancel), beam_size)
    assert len(predictor.fed) == 3


def test_scoring_ends_at_its_next_step():
    cancel = Cancel()
    predictor = SettingPredictor(cancel, last=2)
    with pytest.raises(CancelledError):
        score_pairs(CancelledPredictor(predictor, cancel), **PLACES, target_ids=[[5, 6, 7, 3], [5, 3]])
    assert len(predictor.fed) == 2


def test_a_search_that_nobody_ends_finds_what_it_finds_without_a_cancel():
    predictor = TablePredictor(11, seed=3)
    assert found_by(CancelledPredictor(predictor, Cancel())) == found_by(predictor)

"""Which steps' weights stay: the last k and the best k, of equals the earlier."""

from typing import get_args

import numpy as np
import pytest

from headway.checkpoint.keep import (
    HIGHER_IS_BETTER,
    best_steps,
    remove_others,
    save_weights,
    steps_to_keep,
    weights_path,
)
from headway.checkpoint.state import Scores
from headway.config.train_config import TrainConfig
from headway.folder.weights import read_weights


def scores(step, *, bleu=0.0, chrf=0.0, loss=1.0, perplexity=2.0):
    return Scores(step=step, loss=loss, perplexity=perplexity, bleu=bleu, chrf=chrf)


def test_the_best_come_first_and_of_equals_the_earlier():
    validations = [scores(3, bleu=5.0), scores(7, bleu=11.0), scores(11, bleu=5.0), scores(13, bleu=11.0)]
    assert best_steps(validations, "bleu", count=4) == [7, 13, 3, 11]
    assert best_steps(validations, "bleu", count=1) == [7]
    assert best_steps(list(reversed(validations)), "bleu", count=3) == [7, 13, 3]


def test_of_equals_that_with_the_lower_loss_comes_first():
    validations = [scores(3, loss=5.0), scores(7, loss=3.0), scores(11, loss=4.0)]
    assert best_steps(validations, "bleu", count=3) == [7, 11, 3]


def test_a_loss_is_the_better_the_lower_it_is():
    validations = [scores(3, loss=2.0), scores(7, loss=1.5), scores(11, loss=1.75)]
    assert best_steps(validations, "loss", count=2) == [7, 11]


def test_a_perplexity_is_the_better_the_lower_it_is():
    validations = [scores(3, perplexity=7.0), scores(7, perplexity=5.0, loss=3.0), scores(11, perplexity=6.0)]
    assert best_steps(validations, "perplexity", count=2) == [7, 11]


def test_all_that_a_recipe_may_choose_by_is_known():
    fields = TrainConfig.model_fields
    assert set(HIGHER_IS_BETTER) == set(get_args(fields["best_by"].annotation))
    assert {"none", *HIGHER_IS_BETTER} == set(get_args(fields["early_stopping"].annotation))


def test_a_score_that_is_not_asked_for_does_not_matter():
    validations = [scores(3, bleu=9.0, chrf=1.0), scores(7, bleu=1.0, chrf=9.0)]
    assert best_steps(validations, "bleu", count=1) == [3]
    assert best_steps(validations, "chrf", count=1) == [7]


def test_the_last_and_the_best_are_kept_once_each_in_order():
    validations = [scores(2, bleu=31.0), scores(4, bleu=7.0), scores(6, bleu=29.0), scores(8, bleu=5.0)]
    written = [2, 3, 4, 5, 6, 7, 8]
    assert steps_to_keep(written, validations, keep_last=3, keep_best=2, by="bleu") == [2, 6, 7, 8]
    assert steps_to_keep(written, [], keep_last=2, keep_best=2, by="bleu") == [7, 8]


def test_a_best_step_whose_weights_are_gone_is_not_kept():
    validations = [scores(2, bleu=31.0), scores(4, bleu=7.0), scores(6, bleu=5.0)]
    assert steps_to_keep([4, 6, 8], validations, keep_last=1, keep_best=1, by="bleu") == [4, 8]


def test_other_files_than_dropped_weights_stay(tmp_path):
    for step in (2, 3, 5):
        save_weights(tmp_path, step, weights={"x": np.full((3, 5), step, dtype=np.float32)})
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    remove_others(tmp_path, [2, 5])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "notes.txt",
        "weights-00000002.safetensors",
        "weights-00000005.safetensors",
    ]
    assert np.array_equal(read_weights(weights_path(tmp_path, 5))["x"], np.full((3, 5), 5.0))


def test_weights_that_a_kill_left_half_written_are_removed(tmp_path):
    save_weights(tmp_path, 5, weights={"x": np.full((3, 5), 5, dtype=np.float32)})
    weights_path(tmp_path, 3).with_name("weights-00000003.safetensors.part").write_bytes(b"half")
    remove_others(tmp_path, [5])
    assert [path.name for path in tmp_path.iterdir()] == ["weights-00000005.safetensors"]


def test_removing_from_a_folder_that_is_not_there_is_no_error(tmp_path):
    remove_others(tmp_path / "nothing", [])


@pytest.mark.parametrize("step", [1, 99_999_999])
def test_names_sort_as_steps_do(tmp_path, step):
    assert weights_path(tmp_path, step).name == f"weights-{step:08d}.safetensors"

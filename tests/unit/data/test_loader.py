from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from headway.data.batch import Batch
from headway.data.batching import plan
from headway.data.loader import Position, batches, collate
from headway.data.store import Store, StoreWriter
from headway.errors import DataError

BUDGETS = {"batch_tokens": 101, "microbatch_tokens": 37}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """211 pairs; the first id on both sides names the pair."""
    random = np.random.Generator(np.random.PCG64(11))
    with StoreWriter(tmp_path / "train", source_vocab_size=997, target_vocab_size=991) as writer:
        for number in range(211):
            source, target = (random.integers(4, 991, size=random.integers(0, 13)).tolist() for _ in range(2))
            writer.append([4 + number, *source], [4 + number, *target])
    return Store.open(tmp_path / "train")


def _rows(batch: Batch) -> list[tuple[list[int], ...]]:
    sides = (batch.source_BS, batch.target_in_BT, batch.target_out_BT)
    return list(zip(*(side.tolist() for side in sides), strict=True))


def _epoch_pairs(steps: list[list[Batch]]) -> list[int]:
    return [int(token) - 4 for step in steps for batch in step for token in batch.source_BS[:, 0]]


def test_a_batch_by_hand(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "train", source_vocab_size=97, target_vocab_size=89) as writer:
        writer.append([5, 7, 11], [13])
        writer.append([17], [19, 23])
        writer.append([29, 31, 37, 41, 43], [])
    batch = collate(Store.open(tmp_path / "train"), np.array([1, 0]))
    assert batch.source_BS.tolist() == [[17, 3, 0, 0], [5, 7, 11, 3]]
    assert batch.target_in_BT.tolist() == [[2, 19, 23], [2, 13, 0]]
    assert batch.target_out_BT.tolist() == [[19, 23, 3], [13, 3, 0]]
    assert {side.dtype for side in (batch.source_BS, batch.target_in_BT, batch.target_out_BT)} == {torch.int64}
    assert (batch.num_target_tokens, batch.num_tokens, batch.num_padded_tokens) == (5, 11, 14)


def test_an_empty_target_is_bos_and_eos(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "train", source_vocab_size=97, target_vocab_size=89) as writer:
        writer.append([], [])
    batch = collate(Store.open(tmp_path / "train"), np.array([0]))
    assert _rows(batch) == [([3], [2], [3])]


def test_collating_equals_padding_row_by_row(store: Store) -> None:
    indices = np.array([199, 3, 101, 3, 0])
    batch = collate(store, indices, length_multiple=7)
    for row, index in enumerate(indices):
        for ids, side in ((store.source(index), batch.source_BS), (store.target(index), batch.target_out_BT)):
            assert side.shape[1] % 7 == 0
            assert side[row].tolist() == [*ids.tolist(), 3] + [0] * (side.shape[1] - len(ids) - 1)
        inputs = batch.target_in_BT[row].tolist()
        ids = store.target(index).tolist()
        assert inputs == [2, *ids] + [0] * (len(inputs) - len(ids) - 1)


def test_an_epoch_has_every_pair_once_and_then_the_next_begins(store: Store) -> None:
    seen: list[list[Batch]] = []
    epochs: list[list[int]] = []
    for position, step in batches(store, seed=3, **BUDGETS):
        seen.append(step)
        if position.step == 0:
            epochs.append(_epoch_pairs(seen))
            seen = []
        if position == Position(3, 0):
            break
    assert [sorted(pairs) for pairs in epochs] == [list(range(211))] * 3
    assert len({tuple(pairs) for pairs in epochs}) == 3


@pytest.mark.parametrize("stop", [0, 1, 35, 36, 89])
def test_going_on_from_a_position_equals_never_having_stopped(store: Store, stop: int) -> None:
    straight = list(islice(batches(store, seed=3, **BUDGETS), 97))
    position = straight[stop][0]
    resumed = list(islice(batches(store, seed=3, start_epoch=position.epoch, start_step=position.step, **BUDGETS), 7))
    assert [after for after, _ in resumed] == [after for after, _ in straight[stop + 1 : stop + 8]]
    for (_, ours), (_, theirs) in zip(resumed, straight[stop + 1 :], strict=False):
        assert [_rows(batch) for batch in ours] == [_rows(batch) for batch in theirs]


def test_step_35_lies_inside_an_epoch_and_step_89_in_another(store: Store) -> None:
    positions = [position for position, _ in islice(batches(store, seed=3, **BUDGETS), 90)]
    assert positions[35].step > 1
    assert positions[89].epoch > positions[35].epoch


def test_microbatches_come_as_planned(store: Store) -> None:
    steps = plan(store.source_lengths, store.target_lengths, seed=3, epoch=0, **BUDGETS)
    for rows, (_, step) in zip(steps, batches(store, seed=3, **BUDGETS), strict=False):
        assert [_rows(batch) for batch in step] == [_rows(collate(store, indices)) for indices in rows]


def test_a_position_that_the_epoch_does_not_reach_is_an_error(store: Store) -> None:
    num_steps = len(plan(store.source_lengths, store.target_lengths, seed=3, epoch=2, **BUDGETS))
    with pytest.raises(DataError, match=rf"step {num_steps} of epoch 2 .* has {num_steps} steps"):
        next(batches(store, seed=3, start_epoch=2, start_step=num_steps, **BUDGETS))

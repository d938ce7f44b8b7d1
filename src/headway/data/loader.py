"""Pairs of a store as batches of tensors, step after step, from any position on.

Shapes: B sentences, S source positions, T target positions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headway.data.batch import Batch
from headway.data.batching import Indices, plan_epoch
from headway.data.segmentation import Segmentation
from headway.data.store import Ids, Store
from headway.errors import DataError
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

ROWS_HELD = 1024  # read between two releases of a store's memory; each may bring 64 KiB of every file with it


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The next step to take: its epoch and its number in the epoch, both from 0. A training state keeps it."""

    epoch: int = 0
    step: int = 0


def collate(
    store: Store,
    indices: Indices,
    *,
    length_multiple: int = 1,
    segmentation: Segmentation | None = None,
    epoch: int = 0,
) -> Batch:
    """The pairs of these numbers as one batch, in this order: source EOS; BOS target; target EOS.

    Each side is as wide as its longest sentence with EOS, rounded up to ``length_multiple``, and padded with 0.
    With a ``segmentation`` the ids are those that it draws for this epoch.
    """
    if segmentation is None:
        source_BS = _with_eos(store.source_ids, store.source_offsets, indices, length_multiple)
        target_out_BT = _with_eos(store.target_ids, store.target_offsets, indices, length_multiple)
    else:
        source, target = segmentation.draw(store, indices, epoch=epoch)
        rows = np.arange(len(indices))
        source_BS = _with_eos(source.ids_N, source.offsets, rows, length_multiple)
        target_out_BT = _with_eos(target.ids_N, target.offsets, rows, length_multiple)
    target_in_BT = np.roll(target_out_BT, 1, axis=1)
    target_in_BT[target_in_BT == EOS_ID] = PAD_ID
    target_in_BT[:, 0] = BOS_ID
    return Batch(torch.from_numpy(source_BS), torch.from_numpy(target_in_BT), torch.from_numpy(target_out_BT))


def batches(
    store: Store,
    *,
    batch_tokens: int,
    microbatch_tokens: int | None = None,
    seed: int,
    start_epoch: int = 0,
    start_step: int = 0,
    length_multiple: int = 1,
    rank: int = 0,
    world_size: int = 1,
    segmentation: Segmentation | None = None,
) -> Iterator[tuple[Position, list[Batch]]]:
    """The steps from a position on, epoch after epoch without end: the microbatches, and the position after them.

    Of several processes each takes every ``world_size``-th microbatch, from its rank on. All have equally many in a
    step: one that would have fewer gets ``empty_batch()`` at the end.
    A ``segmentation`` draws ids anew in every epoch; budgets count tokens as the store has them, and what it makes
    longer goes beyond them.
    A run that goes on from a position sees what a run never stopped sees from there. DataError when the epoch has
    fewer steps than the position says, as it does for other data or another budget.
    """
    epoch, first = start_epoch, start_step
    while True:
        steps = plan_epoch(
            store,
            batch_tokens=batch_tokens,
            microbatch_tokens=microbatch_tokens,
            seed=seed,
            epoch=epoch,
            length_multiple=length_multiple,
        )
        if first >= len(steps):
            raise DataError(
                f"data/loader: cannot go on from step {first} of epoch {epoch} (both from 0): the epoch has "
                f"{len(steps)} steps. Continue with the data and settings of the stopped run, or start anew (--fresh)."
            )
        rows_read = 0
        for number in range(first, len(steps)):
            after = Position(epoch, number + 1) if number + 1 < len(steps) else Position(epoch + 1, 0)
            mine = [
                collate(store, rows, length_multiple=length_multiple, segmentation=segmentation, epoch=epoch)
                for rows in steps[number][rank::world_size]
            ]
            rows_read += sum(len(batch.source_BS) for batch in mine)
            if rows_read >= ROWS_HELD:
                store.release()
                rows_read = 0
            is_short = len(mine) * world_size < len(steps[number])
            yield after, [*mine, empty_batch()] if is_short else mine
        epoch, first = epoch + 1, 0


def empty_batch() -> Batch:
    """A batch to compute with where there is none: no target token, so neither loss nor gradient."""
    return Batch(torch.tensor([[EOS_ID]]), torch.tensor([[BOS_ID]]), torch.tensor([[PAD_ID]]))


def _with_eos(
    ids: Ids | NDArray[np.int64], offsets: Indices, indices: Indices, length_multiple: int
) -> NDArray[np.int64]:
    """Rows of ids and EOS, padded: every token is moved by one indexed assignment, none by a Python loop."""
    begins = offsets[indices]
    lengths = offsets[indices + 1] - begins
    width = -(-(int(lengths.max()) + 1) // length_multiple) * length_multiple
    padded = np.full((len(indices), width), PAD_ID, dtype=np.int64)
    columns = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(np.arange(len(indices)), lengths)
    padded[rows, columns] = ids[np.repeat(begins, lengths) + columns]
    padded[np.arange(len(indices)), lengths] = EOS_ID
    return padded

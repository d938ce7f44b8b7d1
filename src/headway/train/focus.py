"""Where the decoder looks in the source: whether its attention gathers on one position whatever it writes.

Shapes: B sentences, S source positions, T target positions, H heads.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headway.data.loader import collate
from headway.data.store import Store
from headway.model.predictor import recorded
from headway.model.translation_model import TranslationModel

NUM_SENTENCES = 16  # as many as are looked at: the shares below vary little between sentences
FEWEST_TOKENS = 5  # of both sides, EOS not counted: in a shorter source one position has much of the attention anyway
MOST_TOKENS = 128  # of both sides: weights grow with their product


@dataclass(frozen=True, slots=True)
class Focus:
    """Of the head that gathers least: its attention on one source position, mean over the queries of a sentence.

    1: every head gives all its attention to one position, whatever is written. ``place``: the position that most
    sentences have in common: first, last (EOS), or inside.
    """

    share: float
    place: str


@torch.inference_mode()
def measure_focus(model: TranslationModel, store: Store) -> Focus | None:
    """Look at a few pairs of a store, spread over it; None where none is of a length that tells.

    For each head of each layer's attention over the source: the weights of a sentence's queries are averaged, and the
    largest of these means counts; the mean of that over sentences is the head's. The model is in evaluation mode. The
    weights of one layer exist at a time, of 16 sentences of 128 tokens at most.
    """
    shorter = np.minimum(store.source_lengths, store.target_lengths)
    longer = np.maximum(store.source_lengths, store.target_lengths)
    telling = np.flatnonzero((shorter >= FEWEST_TOKENS) & (longer <= MOST_TOKENS))
    if not len(telling):
        return None
    rows = np.unique(telling[np.linspace(0, len(telling) - 1, NUM_SENTENCES).astype(np.int64)])
    batch = collate(store, rows).to(next(model.parameters()).device)
    real_BT = batch.target_out_BT != 0
    share_BT = real_BT / real_BT.sum(dim=1, keepdim=True)

    def mean_of_queries(weights_BHTS: Tensor) -> Tensor:
        return torch.einsum("bhts,bt->bhs", weights_BHTS.float(), share_BT)

    with ExitStack() as stack:
        heard = [stack.enter_context(recorded(attention, mean_of_queries)) for attention in model.looking()]
        model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    mean_LBHS = torch.stack([layer[0] for layer in heard])
    most_LBH, position_LBH = mean_LBHS.max(dim=-1)
    share = most_LBH.mean(dim=1).min().item()
    return Focus(share, _place(position_LBH, batch.source_mask_BS.sum(dim=1)))


def _place(position_LBH: Tensor, length_B: Tensor) -> str:
    """The place that most heads of most sentences have their attention at."""
    last_LBH = position_LBH == (length_B - 1)[None, :, None]
    shares: Sequence[tuple[float, str]] = [
        ((position_LBH == 0).float().mean().item(), "first"),
        (last_LBH.float().mean().item(), "last"),
    ]
    share, place = max(shares)
    return place if share >= 0.5 else "inside"

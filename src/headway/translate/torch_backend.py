"""Lists of token ids to tensors and back, around a Predictor in torch.

Shapes: B sentences, S source positions, T target positions.
"""

from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from headway.data.batch import Batch, forced_batch, pad
from headway.search.cancel import Cancel
from headway.search.cancelled import CancelledPredictor
from headway.search.ensemble import EnsemblePredictor
from headway.search.hypothesis import Hypothesis
from headway.search.phrase import Lexicon, Phrase
from headway.search.predictor import Predictor
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings
from headway.search.tree_form import TreeForm
from headway.text.tokenizer import PAD_ID

State = TypeVar("State")
Ids = Sequence[int]


class TorchBackend(Generic[State]):
    """All that a translator asks of a model. Sources and targets are token ids that end in EOS.

    ``attention`` gives the weights (B, T, S) with which each token of a batch's target_out looked at the source.
    ``batch_tokens`` is the budget of padded source tokens times beam that suits the device.
    """

    def __init__(
        self,
        predictor: Predictor[State],
        device: torch.device,
        *,
        attention: Callable[[Batch], Tensor],
        batch_tokens: int = 8192,
    ) -> None:
        self.predictor = predictor
        self.device = device
        self.attention = attention
        self.batch_tokens = batch_tokens
        self.leads_to_phrases = True

    def serving(self, settings: SearchSettings, *, with_phrases: bool) -> Self:
        """Give this backend, which serves every request."""
        return self

    def cancelled_by(self, cancel: Cancel) -> "TorchBackend[State]":
        """The same backend, whose calls end with CancelledError once ``cancel`` is set."""

        def attention(batch: Batch) -> Tensor:
            cancel.check()
            return self.attention(batch)

        predictor = CancelledPredictor(self.predictor, cancel)
        return TorchBackend(predictor, self.device, attention=attention, batch_tokens=self.batch_tokens)

    def search(
        self,
        sources: Sequence[Ids],
        *,
        prefixes: Sequence[Ids],
        limits: Sequence[int],
        settings: SearchSettings,
        phrases: Sequence[Sequence[Phrase]] | None = None,
        lexicon: Lexicon | None = None,
        form: TreeForm | None = None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source; see ``headway.search.run.search``."""
        source_BS = pad(sources, self.device)
        return search(
            self.predictor,
            source_BS,
            source_BS != PAD_ID,
            settings=settings,
            max_output_length_B=limits,
            prefix_B=prefixes,
            phrases_B=phrases,
            lexicon=lexicon,
            form=form,
        )

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target."""
        source_BS = pad(sources, self.device)
        return score_pairs(self.predictor, source_BS, source_BS != PAD_ID, targets)

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """For each pair the attention weights, target tokens by source tokens (both with EOS)."""
        weights = self.attention(forced_batch(sources, targets, self.device)).float().cpu().numpy()
        return [
            weights[place, : len(target), : len(source)]
            for place, (source, target) in enumerate(zip(sources, targets, strict=True))
        ]


def together(backends: Sequence[TorchBackend]) -> TorchBackend:
    """Several models of one vocabulary as one: the mean of their probabilities, and of their attention."""
    first = backends[0]

    def attention(batch: Batch) -> Tensor:
        return torch.stack([backend.attention(batch) for backend in backends]).mean(dim=0)

    return TorchBackend(
        EnsemblePredictor([backend.predictor for backend in backends]),
        first.device,
        attention=attention,
        batch_tokens=first.batch_tokens,
    )

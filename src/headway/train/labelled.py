"""Texts and their labels: the likelihood of a class given the whole text (Devlin et al. 2019, Section 4.1).

Shapes: B texts, T positions, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from headway.data.batch import Batch
from headway.data.labels import FIRST_LABEL
from headway.model.text_encoder import TextEncoder
from headway.model.token_model import TokenModel
from headway.text.tokenizer import BOS_ID, PAD_ID
from headway.train.objective import products_in


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """The smoothed likelihood of each text's label; a batch has a text as its source and a label as its target."""

    label_smoothing: float

    def num_predictions(self, batch: Batch) -> int:
        """Labels of a batch."""
        return int((batch.target_out_BT[:, 0] != PAD_ID).sum())

    def sums(self, model: TokenModel, batch: Batch, *, precision: str) -> Tensor:
        """As ``Objective`` has it, over the labels."""
        return self.sums_and_correct(model, batch, precision=precision)[0]

    def sums_and_correct(self, model: TokenModel, batch: Batch, *, precision: str) -> tuple[Tensor, Tensor]:
        """``sums``, and how many of the labels are the most probable."""
        assert isinstance(model, TextEncoder), "only such a model tells classes apart"
        label_B = batch.target_out_BT[:, 0]
        real_B = label_B != PAD_ID
        class_B = label_B[real_B] - FIRST_LABEL
        with products_in(precision, batch):
            logits_BC = model.classes(model(begun(batch.source_BS)))[real_B].float()
        loss = functional.cross_entropy(logits_BC, class_B, label_smoothing=self.label_smoothing, reduction="sum")
        nll = functional.cross_entropy(logits_BC.detach(), class_B, reduction="sum")
        return torch.stack((loss, nll)), (logits_BC.argmax(dim=-1) == class_B).sum()


def begun(text_BT: Tensor) -> Tensor:
    """Texts as an encoder alone reads them: BOS first, whose vector stands for the whole."""
    return torch.cat((torch.full_like(text_BT[:, :1], BOS_ID), text_BT), dim=1)

"""Hidden tokens and what they were: BERT's objective (Devlin et al. 2019, Section 3.1).

Of each line 15 % of the tokens are chosen, rounded, one at least. A chosen token is read as the mask in 8 of 10 cases,
as any token of the vocabulary in 1, as itself in 1; wherever it was chosen, the model is to say what it was. All else
it only reads. With next sentences it reads two lines, BOS first EOS second EOS, the second being that after the first
in half of the cases, else that of another pair of the microbatch; the classifier is to say which.

Numbers are drawn on the CPU from torch's default generator, which the training step seeds by seed, step and microbatch.

Shapes: B texts, T positions, S positions of the first line, N chosen tokens, D d_model.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from headway.data.batch import Batch
from headway.model.text_encoder import TextEncoder
from headway.model.token_model import TokenModel
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID
from headway.train.accuracy import correct_tokens
from headway.train.loss import chunked_smoothed_loss
from headway.train.objective import narrowed, products_in

MASKED, KEPT = 0.8, 0.1  # of the chosen tokens; the rest are replaced


@dataclass(frozen=True, slots=True)
class Masking:
    """How tokens are hidden. ``text_ids``: what a token may be replaced by, those that text can have."""

    share: float
    mask_id: int
    text_ids: tuple[int, ...]

    def num_hidden(self, text_BT: Tensor) -> Tensor:
        """How many tokens of each line are chosen (B): by its length alone, so that a step's count needs no draw."""
        num_tokens_B = _is_text(text_BT).sum(dim=1)
        return (num_tokens_B * self.share).round().long().clamp(min=1).where(num_tokens_B > 0, 0)

    def hide(self, text_BT: Tensor) -> tuple[Tensor, Tensor]:
        """The lines as they are read, and the chosen tokens as they were, PAD elsewhere."""
        device = text_BT.device
        order_BT = torch.rand(text_BT.shape).to(device).masked_fill(~_is_text(text_BT), -1.0)
        rank_BT = order_BT.argsort(dim=1, descending=True).argsort(dim=1)
        chosen_BT = rank_BT < self.num_hidden(text_BT)[:, None]
        how_BT = torch.rand(text_BT.shape).to(device)
        ids_N = torch.tensor(self.text_ids)
        other_BT = ids_N[torch.randint(len(ids_N), text_BT.shape)].to(device)
        read_BT = text_BT.masked_fill(chosen_BT & (how_BT < MASKED), self.mask_id)
        read_BT = torch.where(chosen_BT & (how_BT >= MASKED + KEPT), other_BT, read_BT)
        return read_BT, text_BT.masked_fill(~chosen_BT, PAD_ID)


@dataclass(frozen=True, slots=True)
class MaskedTokens:
    """The likelihood of hidden tokens, and of whether a line follows another where two are read.

    A pair's decision weighs as much as the tokens that are hidden in it: where all lines are as long, the loss is
    BERT's, the mean over tokens and the mean over decisions.
    """

    masking: Masking
    label_smoothing: float
    next_sentence: bool = False

    def num_predictions(self, batch: Batch) -> int:
        """Hidden tokens of a batch."""
        lines = (batch.source_BS, batch.target_out_BT) if self.next_sentence else (batch.target_out_BT,)
        return int(sum(self.masking.num_hidden(line).sum() for line in lines))

    def sums(self, model: TokenModel, batch: Batch, *, precision: str) -> Tensor:
        """As ``Objective`` has it; the likelihood is that of the hidden tokens alone."""
        return self._sums(model, batch, precision)[0]

    def sums_and_correct(self, model: TokenModel, batch: Batch, *, precision: str) -> tuple[Tensor, Tensor]:
        """``sums``, and how many of the hidden tokens are the most probable where they stand."""
        sums, hidden_ND, answer_N = self._sums(model, batch, precision)
        with products_in(precision, batch):
            return sums, correct_tokens(hidden_ND, model.output.weight, target_N=answer_N, bias_V=model.output.bias)

    def _sums(self, model: TokenModel, batch: Batch, precision: str) -> tuple[Tensor, Tensor, Tensor]:
        """The sums, the vectors where tokens are hidden, and what they were."""
        assert isinstance(model, TextEncoder), "only such a model reads a text whole"
        read_BT, answer_BT, follows_B = self.draw(batch)
        chosen_BT = answer_BT != PAD_ID
        answer_N = answer_BT[chosen_BT]
        with products_in(precision, batch):
            hidden_BTD = model(read_BT)
            hidden_ND = narrowed(hidden_BTD[chosen_BT], precision)
            sums = chunked_smoothed_loss(
                hidden_ND,
                model.output.weight,
                target_N=answer_N,
                label_smoothing=self.label_smoothing,
                bias_V=model.output.bias,
            )
            if follows_B is not None:
                decision_B = functional.cross_entropy(
                    model.classes(hidden_BTD).float(), (~follows_B).long(), reduction="none"
                )
                weighed = (decision_B * chosen_BT.sum(dim=1)).sum()
                sums = sums + torch.stack((weighed, torch.zeros_like(weighed)))
        return sums, hidden_ND, answer_N

    def draw(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """What is read, what it hides, and which second lines follow their first; None where one line is read."""
        if not self.next_sentence:
            read_BT, answer_BT = self.masking.hide(batch.target_out_BT)
            return *_begun([read_BT], [answer_BT]), None
        place_B = torch.arange(len(batch.target_out_BT))
        order_B = exchanged(place_B)
        second_BT = batch.target_out_BT[order_B.to(batch.target_out_BT.device)]
        reads, answers = zip(*map(self.masking.hide, (batch.source_BS, second_BT)), strict=True)
        return *_begun(list(reads), list(answers)), (order_B == place_B).to(second_BT.device)


def exchanged(place_B: Tensor) -> Tensor:
    """The places, about half of which are exchanged, each for another of them; one alone stays."""
    leaving_B = place_B[torch.rand(len(place_B)) < 0.5]
    leaving_B = leaving_B[torch.randperm(len(leaving_B))]
    order_B = place_B.clone()
    order_B[leaving_B] = leaving_B.roll(1)
    return order_B


def _is_text(text_BT: Tensor) -> Tensor:
    return (text_BT != PAD_ID) & (text_BT != EOS_ID)


def _begun(reads: list[Tensor], answers: list[Tensor]) -> tuple[Tensor, Tensor]:
    """BOS and all lines as one text, what pads the first line moved to the end; the answers in the same places."""
    begin_B1 = torch.full_like(reads[0][:, :1], BOS_ID)
    read_BT = torch.cat((begin_B1, *reads), dim=1)
    answer_BT = torch.cat((torch.full_like(begin_B1, PAD_ID), *answers), dim=1)
    order_BT = (read_BT == PAD_ID).to(torch.int8).argsort(dim=1, stable=True)
    longest = int((read_BT != PAD_ID).sum(dim=1).max())
    return read_BT.gather(1, order_BT)[:, :longest], answer_BT.gather(1, order_BT)[:, :longest]

"""What a run trains on and what it measures, by ``train.objective``."""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.data.vocabulary import MASK_TAG
from headway.model.token_model import TokenModel
from headway.text.tokenizer import CONTROL_TOKENS, Tokenizer
from headway.train.labelled import LabelledTexts
from headway.train.masked import MaskedTokens, Masking
from headway.train.objective import Likelihood, Objective, build_objective


class Measure(Protocol):
    """What validation measures."""

    def num_predictions(self, batch: Batch) -> int:
        """What is predicted in a batch: the sums are over so many."""
        ...

    def sums_and_correct(self, model: TokenModel, batch: Batch, *, precision: str) -> tuple[Tensor, Tensor]:
        """Loss and negative log-likelihood, and how many predictions are right."""
        ...


def masked(train: TrainConfig, tokenizer: Tokenizer) -> MaskedTokens:
    """BERT's objective, with the vocabulary's own mask."""
    reserved = {*range(len(CONTROL_TOKENS)), *tokenizer.tags.values()}
    text_ids = tuple(token for token in range(tokenizer.vocab_size) if token not in reserved)
    masking = Masking(train.masked_share, tokenizer.tag_id(MASK_TAG), text_ids)
    return MaskedTokens(masking, train.label_smoothing, train.next_sentence)


def labelled(train: TrainConfig, tokenizer: Tokenizer) -> LabelledTexts:
    """The label of a text."""
    del tokenizer
    return LabelledTexts(train.label_smoothing)


# Of an encoder alone; what measures it is what it trains on.
TEXT_OBJECTIVES: dict[str, Callable[[TrainConfig, Tokenizer], MaskedTokens | LabelledTexts]] = {
    "masked": masked,
    "labels": labelled,
}


def training_objective(train: TrainConfig, tokenizer: Tokenizer) -> Objective:
    """What the recipe trains on, with the vocabulary of its text."""
    if train.objective == "target":
        return build_objective(train)
    return TEXT_OBJECTIVES[train.objective](train, tokenizer)


def measure_of(train: TrainConfig, tokenizer: Tokenizer) -> Measure:
    """What validation measures: of target tokens always their likelihood."""
    if train.objective == "target":
        return Likelihood(train.label_smoothing)
    return TEXT_OBJECTIVES[train.objective](train, tokenizer)

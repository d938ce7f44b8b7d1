"""The log-probability of given targets.

Shapes: B sentences, S source positions, R sentences under way, V vocabulary.
"""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from headway.search.predictor import Predictor
from headway.text.tokenizer import BOS_ID

State = TypeVar("State")


def score_pairs(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    target_ids: Sequence[Sequence[int]],
) -> list[list[float]]:
    """The natural log-probability of each token of each target, one list a pair. Targets have no BOS and end in EOS.

    Forced decoding, step by step through the same seam as the searches: the sum over a hypothesis is its log_prob.
    """
    log_probs: list[list[float]] = [[] for _ in target_ids]
    sentences = [place for place, ids in enumerate(target_ids) if ids]
    if not sentences:
        return log_probs
    with torch.no_grad():
        kept = torch.tensor(sentences, device=source_BS.device)
        state = predictor.start(source_BS[kept], source_mask_BS[kept])
        for step in range(max(len(ids) for ids in target_ids)):
            alive = [place for place, sentence in enumerate(sentences) if len(target_ids[sentence]) > step]
            if len(alive) < len(sentences):
                sentences = [sentences[place] for place in alive]
                state = predictor.select(state, torch.tensor(alive, device=source_BS.device))
            previous = [target_ids[sentence][step - 1] if step else BOS_ID for sentence in sentences]
            token_log_probs, state = predictor.predict(torch.tensor(previous, device=source_BS.device), state)
            wanted = torch.tensor([target_ids[sentence][step] for sentence in sentences], device=source_BS.device)
            for sentence, value in zip(sentences, _pick(token_log_probs, wanted), strict=True):
                log_probs[sentence].append(value)
    return log_probs


def _pick(log_probs_RV: Tensor, token_R: Tensor) -> list[float]:
    """The value of each row at its token."""
    return log_probs_RV.gather(1, token_R[:, None]).squeeze(1).tolist()

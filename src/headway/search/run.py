"""The one entrance to every search.

Shapes: B sentences, S source positions, P prefix positions.
"""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from headway.errors import ModelError, TranslationError
from headway.search.beam import BeamSettings, beam_search
from headway.search.constraint import Constraint, constrain
from headway.search.greedy import greedy_search
from headway.search.hypothesis import Hypothesis
from headway.search.predictor import Predictor
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

State = TypeVar("State")

EXTRA_TOKENS = 50  # Section 6.1 of the paper: input length + 50


def search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_output_length_B: Sequence[int] | None = None,
    n_best: int = 1,
    prefix_B: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each source, best first (fewer where fewer exist); a beam of 1 is greedy search.

    ``max_output_length_B`` counts EOS; absent, it is the source length (EOS counted) + 50, or the prefix length + 50
    where that is more. A hypothesis that has to end at the limit is flagged ``is_cut``. ``prefix_B`` holds token ids
    that each output must begin with; empty is free. A sentence's result does not depend on the others.
    Raises TranslationError for settings that cannot be met, ModelError where the model gives no finite probability.
    """
    _check_settings(beam_size, length_penalty, n_best)
    if source_BS.shape[0] == 0:
        return []
    constraint = _constrain(source_mask_BS, max_output_length_B, prefix_B)
    with torch.no_grad():
        if beam_size == 1:
            best = greedy_search(predictor, source_BS, source_mask_BS, constraint=constraint, alpha=length_penalty)
            results = [[hypothesis] for hypothesis in best]
        else:
            settings = BeamSettings(beam_size, length_penalty=length_penalty, n_best=n_best)
            results = beam_search(predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings)
    _check_results(results)
    return results


def _check_settings(beam_size: int, length_penalty: float, n_best: int) -> None:
    """Refuse settings without a meaning."""
    if beam_size < 1:
        raise TranslationError(f"search/run: beam size is {beam_size}; wanted 1 or more. 1 is greedy search.")
    if not 0.0 <= length_penalty < float("inf"):
        raise TranslationError(
            f"search/run: length penalty is {length_penalty}; wanted a number from 0 up. "
            "0 is neutral, the paper takes 0.6."
        )
    if not 1 <= n_best <= beam_size:
        raise TranslationError(
            f"search/run: n-best is {n_best}, beam size is {beam_size}; wanted an n-best from 1 to the beam size. "
            f"Raise the beam size to {max(n_best, 1)}, or ask for fewer."
        )


def _constrain(
    source_mask_BS: Tensor, limits: Sequence[int] | None, prefixes: Sequence[Sequence[int]] | None
) -> Constraint:
    """The limits and prefixes as tensors, checked against each other."""
    device = source_mask_BS.device
    num_sentences = source_mask_BS.shape[0]
    prefixes = [()] * num_sentences if prefixes is None else prefixes
    longest = max(len(prefix) for prefix in prefixes)
    if limits is None:
        lengths = source_mask_BS.sum(dim=1).tolist()
        limits = [max(length, len(prefix)) + EXTRA_TOKENS for length, prefix in zip(lengths, prefixes, strict=True)]
    for sentence, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True), start=1):
        if limit < len(prefix) + 1:
            raise TranslationError(
                f"search/run: sentence {sentence}: the output may have {limit} tokens, end of sentence counted; its "
                f"forced prefix has {len(prefix)}. Allow {len(prefix) + 1} or more, or shorten the prefix."
            )
        if any(token in (PAD_ID, BOS_ID, EOS_ID) for token in prefix):
            raise TranslationError(
                f"search/run: sentence {sentence}: the forced prefix holds a control token; wanted text tokens only. "
                "Make the prefix with the tokenizer of the target language."
            )
    padded = [[*prefix, *[PAD_ID] * (longest - len(prefix))] for prefix in prefixes]
    return constrain(
        torch.tensor(limits, dtype=torch.int64, device=device),
        torch.tensor(padded, dtype=torch.int64, device=device).view(num_sentences, longest),
    )


def _check_results(results: list[list[Hypothesis]]) -> None:
    """Refuse probabilities that are no numbers, or outputs that cannot exist."""
    for sentence, hypotheses in enumerate(results, start=1):
        if not hypotheses or not all(abs(hypothesis.log_prob) < float("inf") for hypothesis in hypotheses):
            raise ModelError(
                f"search/run: sentence {sentence}: no output has a finite log-probability. "
                "The weights may be damaged or not finite; take another checkpoint."
            )

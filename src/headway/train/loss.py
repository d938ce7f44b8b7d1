"""Label-smoothed cross-entropy (Section 5.4), as a sum over real target tokens.

The smoothed target is 1 - eps + eps / V on the right token and eps / V on every other (Szegedy et al. 2016): uniform
over all V tokens. The paper's code spreads eps over the V - 1 others instead; that is this form with
eps' = eps V / (V - 1).

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a chunk.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

CHUNK_TOKENS = 1024  # in one matrix product with the vocabulary; fewer make it slow, more bring nothing
CHUNK_BYTES = 128 * 2**20  # of a chunk's logits at most
BLOCK_BYTES = 4 * 2**20  # of the float32 logits that are passed over again and again: they stay in a processor's cache


def smoothed_loss(
    hidden_ND: Tensor, weight_VD: Tensor, *, target_N: Tensor, label_smoothing: float, bias_V: Tensor | None = None
) -> Tensor:
    """The plain definition: two sums over the N tokens, the smoothed loss and the negative log-likelihood (nats).

    The first is trained on. The second has no smoothing: perplexity is exp of its mean.
    """
    logits_NV = (hidden_ND @ weight_VD.T).float()
    if bias_V is not None:
        logits_NV = logits_NV + bias_V
    log_probs_NV = logits_NV.log_softmax(dim=-1)
    nll_N = -log_probs_NV.gather(-1, target_N[:, None])[:, 0]
    uniform_N = -log_probs_NV.mean(dim=-1)
    smoothed_N = (1.0 - label_smoothing) * nll_N + label_smoothing * uniform_N
    return torch.stack((smoothed_N.sum(), nll_N.sum()))


def chunked_smoothed_loss(
    hidden_ND: Tensor, weight_VD: Tensor, *, target_N: Tensor, label_smoothing: float, bias_V: Tensor | None = None
) -> Tensor:
    """``smoothed_loss`` with projection, loss and all gradients computed chunk by chunk.

    Logits never exist for all tokens at once, forward or backward. Only the smoothed sum carries a gradient.
    """
    sums: Tensor = _ChunkedLoss.apply(hidden_ND, weight_VD, bias_V, target_N, label_smoothing)  # pyright: ignore[reportAssignmentType]
    return sums


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        label_smoothing: float,
    ) -> Tensor:
        matrix_VD = weight_VD.to(hidden_ND.dtype)
        if not any(ctx.needs_input_grad[:3]):  # pyright: ignore[reportAttributeAccessIssue]
            return _sums_alone(hidden_ND, matrix_VD, bias_V, target_N=target_N, label_smoothing=label_smoothing)
        hidden_gradient_ND = torch.empty_like(hidden_ND)
        weight_gradient_VD = torch.zeros_like(weight_VD)
        bias_gradient_V = weight_VD.new_zeros(weight_VD.shape[0])
        sums = hidden_ND.new_zeros(2, dtype=torch.float32)
        for chunk in chunks(hidden_ND, weight_VD.shape[0]):
            logits_CV = hidden_ND[chunk] @ matrix_VD.T
            sums += _to_gradient(logits_CV, bias_V, target_C=target_N[chunk], label_smoothing=label_smoothing)
            hidden_gradient_ND[chunk] = logits_CV @ matrix_VD
            weight_gradient_VD += logits_CV.T @ hidden_ND[chunk]
            if bias_V is not None:
                bias_gradient_V += logits_CV.sum(dim=0, dtype=torch.float32)
        # What smoothing takes from every logit alike, eps / V, enters all gradients as one constant vector.
        share = label_smoothing / weight_VD.shape[0]
        hidden_gradient_ND -= share * weight_VD.sum(dim=0)
        weight_gradient_VD -= share * hidden_ND.float().sum(dim=0)
        bias_gradient_V -= share * hidden_ND.shape[0]
        ctx.save_for_backward(hidden_gradient_ND, weight_gradient_VD, bias_gradient_V)
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 (torch's context has no type)
        hidden_gradient_ND, weight_gradient_VD, bias_gradient_V = ctx.saved_tensors
        factor = gradients[0][0]
        return (
            hidden_gradient_ND * factor.to(hidden_gradient_ND.dtype),
            weight_gradient_VD * factor,
            bias_gradient_V * factor if ctx.needs_input_grad[2] else None,
            None,
            None,
        )


def chunks(hidden_ND: Tensor, vocab_size: int) -> Iterator[slice]:
    """Equal slices of the tokens: long enough for fast products, short enough for little memory."""
    most = max(1, min(CHUNK_TOKENS, CHUNK_BYTES // (hidden_ND.element_size() * vocab_size)))
    return _slices(hidden_ND.shape[0], most)


def blocks(num_tokens: int, vocab_size: int) -> Iterator[slice]:
    """Slices of a chunk whose float32 logits stay in a processor's cache while they are passed over."""
    return _slices(num_tokens, max(1, BLOCK_BYTES // (4 * vocab_size)))


def _slices(count: int, most: int) -> Iterator[slice]:
    size = -(-count // max(1, -(-count // most)))
    return (slice(begin, begin + size) for begin in range(0, count, max(1, size)))


def _to_gradient(logits_CV: Tensor, bias_V: Tensor | None, *, target_C: Tensor, label_smoothing: float) -> Tensor:
    """Both sums of a chunk; in the place of its logits the gradient of the first, without what all logits share."""
    sums = logits_CV.new_zeros(2, dtype=torch.float32)
    for block in blocks(*logits_CV.shape):
        block_sums, probabilities_CV = _block_sums(logits_CV[block], bias_V, target_C[block], label_smoothing)
        sums += block_sums
        right_C1 = target_C[block][:, None]
        probabilities_CV.scatter_add_(1, right_C1, probabilities_CV.new_full(right_C1.shape, label_smoothing - 1.0))
        if logits_CV.dtype != probabilities_CV.dtype:  # else they are in their place
            logits_CV[block] = probabilities_CV
    return sums


def _sums_alone(
    hidden_ND: Tensor, matrix_VD: Tensor, bias_V: Tensor | None, *, target_N: Tensor, label_smoothing: float
) -> Tensor:
    """Both sums where no gradient is wanted."""
    sums = hidden_ND.new_zeros(2, dtype=torch.float32)
    for chunk in chunks(hidden_ND, matrix_VD.shape[0]):
        logits_CV = hidden_ND[chunk] @ matrix_VD.T
        for block in blocks(*logits_CV.shape):
            sums += _block_sums(logits_CV[block], bias_V, target_N[chunk][block], label_smoothing)[0]
    return sums


def _block_sums(
    logits_CV: Tensor, bias_V: Tensor | None, target_C: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Both sums of a few tokens, and their probabilities in float32; of float32 logits in their own memory."""
    logits_CV = logits_CV.float()
    if bias_V is not None:
        logits_CV += bias_V
    logits_CV -= logits_CV.amax(dim=-1, keepdim=True)
    right_C = logits_CV.gather(-1, target_C[:, None])[:, 0]
    mean_C = logits_CV.mean(dim=-1)
    probabilities_CV = logits_CV.exp_()
    total_C1 = probabilities_CV.sum(dim=-1, keepdim=True)
    log_total_C = total_C1[:, 0].log()
    nll_C = log_total_C - right_C
    uniform_C = log_total_C - mean_C
    smoothed_C = (1.0 - label_smoothing) * nll_C + label_smoothing * uniform_C
    return torch.stack((smoothed_C.sum(), nll_C.sum())), probabilities_CV.div_(total_C1)

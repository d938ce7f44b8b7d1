"""The loss of a batch that went through the model twice: both likelihoods, and how far apart the two predictions are.

A token has two predicted distributions, p of the first pass and q of the second. Its loss is a sum of four terms, each
times a weight (``Weights``): the smoothed losses of p and of q, and the divergences KL(p || q) and KL(q || p). No
gradient is stopped: both passes learn from all terms.

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a chunk, R = 2 C rows of it; a leading 2 is the two
passes.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from headway.train.loss import blocks, chunks


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term of a token's loss counts. The first two sum to 1, so that a loss is one token's."""

    first: float  # of the smoothed loss of p
    second: float  # of the smoothed loss of q
    divergence: float  # of KL(p || q)
    reverse: float  # of KL(q || p)


def consistency_loss(
    hidden_2ND: Tensor,
    weight_VD: Tensor,
    *,
    target_N: Tensor,
    label_smoothing: float,
    weights: Weights,
    bias_V: Tensor | None = None,
) -> Tensor:
    """The plain definition: two sums over the N tokens, the loss and the negative log-likelihood (nats).

    The first is trained on. The second is of the two passes in the shares that their losses have, without smoothing.
    """
    logits_2NV = (hidden_2ND @ weight_VD.T).to(_wide(hidden_2ND))
    if bias_V is not None:
        logits_2NV = logits_2NV + bias_V
    log_probs_2NV = logits_2NV.log_softmax(dim=-1)
    nll_2N = -log_probs_2NV.gather(-1, target_N.expand(2, -1)[..., None])[..., 0]
    uniform_2N = -log_probs_2NV.mean(dim=-1)
    smoothed_2N = (1.0 - label_smoothing) * nll_2N + label_smoothing * uniform_2N
    log_p_NV, log_q_NV = log_probs_2NV
    divergence_N = (log_p_NV.exp() * (log_p_NV - log_q_NV)).sum(dim=-1)
    reverse_N = (log_q_NV.exp() * (log_q_NV - log_p_NV)).sum(dim=-1)
    likelihood_N = weights.first * smoothed_2N[0] + weights.second * smoothed_2N[1]
    loss_N = likelihood_N + weights.divergence * divergence_N + weights.reverse * reverse_N
    mean_nll_N = weights.first * nll_2N[0] + weights.second * nll_2N[1]
    return torch.stack((loss_N.sum(), mean_nll_N.sum()))


def chunked_consistency_loss(
    hidden_2ND: Tensor,
    weight_VD: Tensor,
    *,
    target_N: Tensor,
    label_smoothing: float,
    weights: Weights,
    bias_V: Tensor | None = None,
) -> Tensor:
    """``consistency_loss`` with projection, loss and all gradients computed chunk by chunk.

    Logits never exist for all tokens at once, forward or backward. Only the first sum carries a gradient.
    """
    sums: Tensor = _ChunkedLoss.apply(hidden_2ND, weight_VD, bias_V, target_N, label_smoothing, weights)  # pyright: ignore[reportAssignmentType]
    return sums


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        hidden_2ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        label_smoothing: float,
        weights: Weights,
    ) -> Tensor:
        vocab_size = weight_VD.shape[0]
        matrix_VD = weight_VD.to(hidden_2ND.dtype)
        hidden_gradient_2ND = torch.empty_like(hidden_2ND)
        weight_gradient_VD = torch.zeros_like(weight_VD)
        bias_gradient_V = weight_VD.new_zeros(vocab_size)
        sums = hidden_2ND.new_zeros(2, dtype=_wide(hidden_2ND))
        for chunk in chunks(hidden_2ND[0], 2 * vocab_size):
            hidden_RD = hidden_2ND[:, chunk].flatten(0, 1)
            logits_RV = hidden_RD @ matrix_VD.T
            logits_2CV = logits_RV.unflatten(0, (2, -1))
            target_C = target_N[chunk]
            for block in blocks(len(target_C), 2 * vocab_size):
                sums += _to_gradient(logits_2CV[:, block], bias_V, target_C[block], label_smoothing, weights)
            hidden_gradient_2ND[:, chunk] = (logits_RV @ matrix_VD).unflatten(0, (2, -1))
            if ctx.needs_input_grad[1]:  # pyright: ignore[reportAttributeAccessIssue]
                weight_gradient_VD += logits_RV.T @ hidden_RD
            if bias_V is not None:
                bias_gradient_V += logits_RV.sum(dim=0, dtype=bias_gradient_V.dtype)
        # What smoothing takes from every logit alike, eps / V, enters all gradients as one constant vector.
        share_2 = sums.new_tensor((weights.first, weights.second)) * (label_smoothing / vocab_size)
        hidden_gradient_2ND -= (share_2[:, None] * weight_VD.sum(dim=0))[:, None, :]
        weight_gradient_VD -= share_2 @ hidden_2ND.sum(dim=1, dtype=share_2.dtype)
        bias_gradient_V -= share_2.sum() * len(target_N)
        ctx.save_for_backward(hidden_gradient_2ND, weight_gradient_VD, bias_gradient_V)
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 (torch's context has no type)
        hidden_gradient_2ND, weight_gradient_VD, bias_gradient_V = ctx.saved_tensors
        factor = gradients[0][0]
        return (
            hidden_gradient_2ND * factor.to(hidden_gradient_2ND.dtype),
            weight_gradient_VD * factor if ctx.needs_input_grad[1] else None,
            bias_gradient_V * factor if ctx.needs_input_grad[2] else None,
            None,
            None,
            None,
        )


def _to_gradient(
    logits_2CV: Tensor, bias_V: Tensor | None, target_C: Tensor, label_smoothing: float, weights: Weights
) -> Tensor:
    """Both sums of a few tokens; in the place of their logits the gradient, without what all logits of a pass share."""
    wide_2CV = logits_2CV.to(_wide(logits_2CV))
    if bias_V is not None:
        wide_2CV += bias_V
    probabilities_2CV = wide_2CV.softmax(dim=-1)
    # The largest probability is at least 1 / V, so its logarithm is finite and gives that of the softmax' denominator.
    log_total_2C = wide_2CV.amax(dim=-1) - probabilities_2CV.amax(dim=-1).log()
    right_2C1 = target_C.expand(2, -1)[..., None]
    nll_2C = log_total_2C - wide_2CV.gather(-1, right_2C1)[..., 0]
    uniform_2C = log_total_2C - wide_2CV.mean(dim=-1)
    smoothed_2C = (1.0 - label_smoothing) * nll_2C + label_smoothing * uniform_2C
    divergence_2C = _divergences(wide_2CV, probabilities_2CV, log_total_2C[0] - log_total_2C[1], weights)
    taken_2 = wide_2CV.new_tensor((weights.first, weights.second)) * (label_smoothing - 1.0)
    wide_2CV.scatter_add_(-1, right_2C1, taken_2[:, None, None].expand(right_2C1.shape))
    if wide_2CV.dtype != logits_2CV.dtype:
        logits_2CV.copy_(wide_2CV)
    loss = weights.first * smoothed_2C[0] + weights.second * smoothed_2C[1]
    loss += weights.divergence * divergence_2C[0] + weights.reverse * divergence_2C[1]
    return torch.stack((loss.sum(), (weights.first * nll_2C[0] + weights.second * nll_2C[1]).sum()))


def _divergences(logits_2CV: Tensor, probabilities_2CV: Tensor, shift_C: Tensor, weights: Weights) -> Tensor:
    """KL(p || q) and KL(q || p) of each token; in the place of the logits their gradient, right tokens left out.

    With d = logits of p - logits of q, log p/q is d - shift, KL(p || q) is E_p[d] - shift, and KL(q || p) is
    shift - E_q[d]. KL(p || q) by the logits of p is p (d - E_p[d]), by those of q it is q - p; the other likewise.
    """
    (p_CV, q_CV), (first_CV, difference_CV) = probabilities_2CV, logits_2CV
    torch.sub(first_CV, difference_CV, out=difference_CV)
    p_mean_C = torch.mul(p_CV, difference_CV, out=first_CV).sum(dim=-1)
    q_mean_C = torch.mul(q_CV, difference_CV, out=first_CV).sum(dim=-1)
    level, slope = weights.first + weights.reverse, weights.divergence
    _fill(first_CV, p_CV, difference_CV, mean_C=p_mean_C, level=level, slope=slope)
    first_CV.sub_(q_CV, alpha=weights.reverse)
    level, slope = weights.second + weights.divergence, -weights.reverse
    _fill(difference_CV, q_CV, difference_CV, mean_C=q_mean_C, level=level, slope=slope)
    difference_CV.sub_(p_CV, alpha=weights.divergence)
    return torch.stack((p_mean_C - shift_C, shift_C - q_mean_C))


def _fill(
    out_CV: Tensor, rows_CV: Tensor, difference_CV: Tensor, *, mean_C: Tensor, level: float, slope: float
) -> None:
    """Write rows (level + slope (difference - mean)); ``out_CV`` may be ``difference_CV``."""
    if slope == 0.0:
        torch.mul(rows_CV, level, out=out_CV)
        return
    torch.add((level - slope * mean_C)[:, None], difference_CV, alpha=slope, out=out_CV)
    out_CV.mul_(rows_CV)


def _wide(tensor: Tensor) -> torch.dtype:
    """In which the loss is computed: float32, or float64 if the tensor is that already."""
    return torch.promote_types(tensor.dtype, torch.float32)

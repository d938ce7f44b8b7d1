"""The loss of a batch that went through the model twice: both likelihoods, and how far apart the two predictions are.

A token has two predicted distributions, p of the first pass and q of the second. Its loss is a sum of four terms, each
times a weight (``Weights``): the smoothed losses of p and of q, and the divergences KL(p || q) and KL(q || p). No
gradient is stopped: both passes learn from all terms.

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a block; a leading 2 is the two passes.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headway.train.chunked import chunked_sums


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
    logits_2NV = (hidden_2ND @ weight_VD.T).to(torch.promote_types(hidden_2ND.dtype, torch.float32))
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

    Only the first sum carries a gradient.
    """
    return chunked_sums(
        hidden_2ND,
        weight_VD,
        bias_V=bias_V,
        target_N=target_N,
        to_gradient=partial(_to_gradient, label_smoothing=label_smoothing, weights=weights),
        shares=[share * label_smoothing / len(weight_VD) for share in (weights.first, weights.second)],
    )


def _to_gradient(logits_2CV: Tensor, target_C: Tensor, *, label_smoothing: float, weights: Weights) -> Tensor:
    """The loss as ``chunked_sums`` takes it: smoothing takes its share from every logit of a pass alike."""
    probabilities_2CV = logits_2CV.softmax(dim=-1)
    # The largest probability is at least 1 / V, so its logarithm is finite and gives that of the softmax' denominator.
    log_total_2C = logits_2CV.amax(dim=-1) - probabilities_2CV.amax(dim=-1).log()
    right_2C1 = target_C.expand(2, -1)[..., None]
    nll_2C = log_total_2C - logits_2CV.gather(-1, right_2C1)[..., 0]
    uniform_2C = log_total_2C - logits_2CV.mean(dim=-1)
    smoothed_2C = (1.0 - label_smoothing) * nll_2C + label_smoothing * uniform_2C
    divergence_2C = _divergences(logits_2CV, probabilities_2CV, log_total_2C[0] - log_total_2C[1], weights)
    taken_2 = logits_2CV.new_tensor((weights.first, weights.second)) * (label_smoothing - 1.0)
    logits_2CV.scatter_add_(-1, right_2C1, taken_2[:, None, None].expand(right_2C1.shape))
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

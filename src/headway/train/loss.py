"""Label-smoothed cross-entropy (Section 5.4), as a sum over real target tokens.

The smoothed target is 1 - eps + eps / V on the right token and eps / V on every other (Szegedy et al. 2016): uniform
over all V tokens. The paper's code spreads eps over the V - 1 others instead; that is this form with
eps' = eps V / (V - 1).

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a block.
"""

from functools import partial

import torch
from torch import Tensor

from headway.train.chunked import chunked_sums


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

    Only the smoothed sum carries a gradient.
    """
    return chunked_sums(
        hidden_ND[None],
        weight_VD,
        bias_V=bias_V,
        target_N=target_N,
        to_gradient=partial(_to_gradient, label_smoothing=label_smoothing),
        shares=(label_smoothing / len(weight_VD),),
    )


def _to_gradient(logits_1CV: Tensor, target_C: Tensor, *, label_smoothing: float) -> Tensor:
    """The loss as ``chunked_sums`` takes it: smoothing takes eps / V from every logit alike."""
    (logits_CV,) = logits_1CV
    right_C1 = target_C[:, None]
    logits_CV -= logits_CV.amax(dim=-1, keepdim=True)
    right_C = logits_CV.gather(-1, right_C1)[:, 0]
    mean_C = logits_CV.mean(dim=-1)
    probabilities_CV = logits_CV.exp_()
    total_C1 = probabilities_CV.sum(dim=-1, keepdim=True)
    log_total_C = total_C1[:, 0].log()
    nll_C = log_total_C - right_C
    uniform_C = log_total_C - mean_C
    smoothed_C = (1.0 - label_smoothing) * nll_C + label_smoothing * uniform_C
    probabilities_CV.div_(total_C1)
    probabilities_CV.scatter_add_(1, right_C1, probabilities_CV.new_full(right_C1.shape, label_smoothing - 1.0))
    return torch.stack((smoothed_C.sum(), nll_C.sum()))

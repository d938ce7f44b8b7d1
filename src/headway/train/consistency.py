"""The loss of a batch that went through the model twice: both likelihoods, and how far apart the two predictions are.

A token has two predicted distributions, p of the first pass and q of the second. Its loss is a sum of four terms, each
times a weight (``Weights``): the smoothed losses of p and of q, and the divergences KL(p || q) and KL(q || p). No
gradient is stopped: both passes learn from all terms.

Shapes: N real target tokens, D d_model, V vocabulary, C tokens of a chunk; a leading 2 is the two passes.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from headway.train.loss import CHUNK_BYTES


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
    logits_2NV = _widened(hidden_2ND @ weight_VD.T)
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
        walk = _Walk(hidden_2ND, weight_VD, bias_V=bias_V, label_smoothing=label_smoothing, weights=weights)
        wants_gradient = any(ctx.needs_input_grad[:3])  # pyright: ignore[reportAttributeAccessIssue]
        for begin in range(0, len(target_N), walk.size):
            target_C = target_N[begin : begin + walk.size]
            hidden_2CD = hidden_2ND[:, begin : begin + walk.size]
            logits_2CV, probabilities_2CV = walk.predict(hidden_2CD)
            means_2C = walk.add_sums(logits_2CV, probabilities_2CV, target_C=target_C)
            if wants_gradient:
                walk.add_gradients(logits_2CV, probabilities_2CV, means_2C=means_2C, target_C=target_C, begin=begin)
        if wants_gradient:
            walk.add_smoothing()
            ctx.save_for_backward(walk.hidden_gradient_2ND, walk.weight_gradient_VD, walk.bias_gradient_V)
        return walk.sums

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


class _Walk:
    """What a walk over the chunks needs and gathers; its working memory is taken once and used by every chunk."""

    def __init__(
        self, hidden_2ND: Tensor, weight_VD: Tensor, *, bias_V: Tensor | None, label_smoothing: float, weights: Weights
    ) -> None:
        vocab_size = weight_VD.shape[0]
        wide = torch.promote_types(hidden_2ND.dtype, torch.float32)
        self.size = max(1, CHUNK_BYTES // (2 * 4 * vocab_size))
        self.hidden_2ND, self.weight_VD, self.bias_V = hidden_2ND, weight_VD, bias_V
        self.matrix_VD = weight_VD.to(hidden_2ND.dtype)
        self.label_smoothing, self.weights = label_smoothing, weights
        room = 2 * min(self.size, hidden_2ND.shape[1]) * vocab_size
        self._logits = hidden_2ND.new_empty(room, dtype=wide)
        self._probabilities = torch.empty_like(self._logits)
        self.sums = hidden_2ND.new_zeros(2, dtype=wide)
        self.hidden_gradient_2ND = torch.empty_like(hidden_2ND)
        self.weight_gradient_VD = torch.zeros_like(weight_VD)
        self.bias_gradient_V = weight_VD.new_zeros(vocab_size)

    def predict(self, hidden_2CD: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and probabilities of a chunk, both (2, C, V), in the walk's working memory."""
        shape = (*hidden_2CD.shape[:2], self.weight_VD.shape[0])
        logits_2CV, probabilities_2CV = (
            room[: shape[0] * shape[1] * shape[2]].view(shape) for room in (self._logits, self._probabilities)
        )
        flat = logits_2CV.flatten(0, 1)
        if hidden_2CD.dtype == flat.dtype:
            torch.mm(hidden_2CD.flatten(0, 1), self.matrix_VD.T, out=flat)
        else:
            flat.copy_(hidden_2CD.flatten(0, 1) @ self.matrix_VD.T)
        if self.bias_V is not None:
            logits_2CV += self.bias_V
        torch.softmax(logits_2CV, dim=-1, out=probabilities_2CV)
        return logits_2CV, probabilities_2CV

    def add_sums(self, logits_2CV: Tensor, probabilities_2CV: Tensor, *, target_C: Tensor) -> Tensor:
        """Add the sums of a chunk; give the means of the logits' difference under p and under q, (2, C).

        Uses the logits up: in the place of the second pass' are then the differences, first less second.
        """
        weights = self.weights
        # The largest probability is at least 1 / V: its logarithm is finite, and so gives that of the denominator.
        log_total_2C = logits_2CV.amax(dim=-1) - probabilities_2CV.amax(dim=-1).log()
        right_2C = logits_2CV.gather(-1, target_C.expand(2, -1)[..., None])[..., 0]
        nll_2C = log_total_2C - right_2C
        uniform_2C = log_total_2C - logits_2CV.mean(dim=-1)
        smoothed_2C = (1.0 - self.label_smoothing) * nll_2C + self.label_smoothing * uniform_2C
        difference_CV = torch.sub(logits_2CV[0], logits_2CV[1], out=logits_2CV[1])
        spare_CV = logits_2CV[0]
        means_2C = torch.stack(
            [torch.mul(rows_CV, difference_CV, out=spare_CV).sum(dim=-1) for rows_CV in probabilities_2CV]
        )
        shift_C = log_total_2C[0] - log_total_2C[1]
        divergence_C, reverse_C = means_2C[0] - shift_C, shift_C - means_2C[1]
        loss_C = weights.first * smoothed_2C[0] + weights.second * smoothed_2C[1]
        loss_C += weights.divergence * divergence_C + weights.reverse * reverse_C
        mean_nll_C = weights.first * nll_2C[0] + weights.second * nll_2C[1]
        self.sums += torch.stack((loss_C.sum(), mean_nll_C.sum()))
        return means_2C

    def add_gradients(
        self, logits_2CV: Tensor, probabilities_2CV: Tensor, *, means_2C: Tensor, target_C: Tensor, begin: int
    ) -> None:
        """Add the gradients of a chunk, all but what smoothing takes from every logit alike."""
        weights, (p_CV, q_CV), difference_CV = self.weights, probabilities_2CV, logits_2CV[1]
        # d KL(p || q) / d logits is p (log p / q - KL(p || q)) in the first pass, q - p in the second; see ``_fill``.
        first, second = weights.first + weights.reverse, weights.second + weights.divergence
        _fill(logits_2CV[0], p_CV, difference_CV, mean_C=means_2C[0], level=first, slope=weights.divergence)
        logits_2CV[0].sub_(q_CV, alpha=weights.reverse)
        _fill(logits_2CV[1], q_CV, difference_CV, mean_C=means_2C[1], level=second, slope=-weights.reverse)
        logits_2CV[1].sub_(p_CV, alpha=weights.divergence)
        taken_2 = logits_2CV.new_tensor((weights.first, weights.second)) * (self.label_smoothing - 1.0)
        right_2C1 = target_C.expand(2, -1)[..., None]
        logits_2CV.scatter_add_(-1, right_2C1, taken_2[:, None, None].expand(right_2C1.shape))
        if self.bias_V is not None:
            self.bias_gradient_V += logits_2CV.sum(dim=(0, 1))
        chunk = slice(begin, begin + len(target_C))
        gradient = logits_2CV.flatten(0, 1).to(self.hidden_2ND.dtype)
        self.hidden_gradient_2ND[:, chunk] = (gradient @ self.matrix_VD).unflatten(0, (2, -1))
        self.weight_gradient_VD += gradient.T @ self.hidden_2ND[:, chunk].flatten(0, 1)

    def add_smoothing(self) -> None:
        """What smoothing takes from every logit alike, eps / V, enters all gradients as one constant vector."""
        share = self.label_smoothing / self.weight_VD.shape[0]
        parts_2 = self.sums.new_tensor((self.weights.first, self.weights.second)) * share
        taken_2D = parts_2[:, None] * self.weight_VD.sum(dim=0)
        self.hidden_gradient_2ND -= taken_2D[:, None, :].to(self.hidden_2ND.dtype)
        self.weight_gradient_VD -= parts_2 @ self.hidden_2ND.sum(dim=1, dtype=parts_2.dtype)
        self.bias_gradient_V -= share * self.hidden_2ND.shape[1]


def _fill(
    out_CV: Tensor, rows_CV: Tensor, difference_CV: Tensor, *, mean_C: Tensor, level: float, slope: float
) -> None:
    """Write rows (level + slope (difference - mean)); ``out_CV`` may be ``difference_CV``."""
    if slope == 0.0:
        torch.mul(rows_CV, level, out=out_CV)
        return
    torch.add((level - slope * mean_C)[:, None], difference_CV, alpha=slope, out=out_CV)
    out_CV.mul_(rows_CV)


def _widened(logits: Tensor) -> Tensor:
    """Logits in float32, or in float64 if they are that already."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))

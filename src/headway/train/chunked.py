"""A loss over the vocabulary, and all its gradients, for some tokens at a time: logits never exist for all of them.

Shapes: P passes of the same tokens, N real target tokens, D d_model, V vocabulary, C tokens of a chunk or block,
R = P C rows of it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

CHUNK_TOKENS = 2048  # rows of one matrix product with the vocabulary; fewer make it slow, more bring nothing
CHUNK_BYTES = 128 * 2**20  # of a chunk's logits at most
BLOCK_BYTES = 4 * 2**20  # of float32 logits that are passed over again and again: they stay in a processor's cache

# Logits (P, C, V) and right tokens (C) of a block in; out come the two sums over its tokens, and in the place of the
# logits the gradient of the first by them, without what it takes from all logits of a pass alike.
ToGradient = Callable[[Tensor, Tensor], Tensor]


def chunked_sums(
    hidden_PND: Tensor,
    weight_VD: Tensor,
    *,
    bias_V: Tensor | None,
    target_N: Tensor,
    to_gradient: ToGradient,
    shares: Sequence[float],
) -> Tensor:
    """Two sums over the N tokens; the first carries a gradient, computed on the way forward.

    ``to_gradient`` is the loss. ``shares`` (P) are what it takes from every logit of a pass, whatever the token.
    """
    sums: Tensor = _Chunked.apply(hidden_PND, weight_VD, bias_V, target_N, to_gradient, tuple(shares))  # pyright: ignore[reportAssignmentType]
    return sums


def chunks(num_tokens: int, row: Tensor, vocab_size: int) -> Iterator[slice]:
    """Equal slices of the tokens: long enough for fast products, short enough for little memory.

    ``row`` is of the logits' type, ``vocab_size`` the logits of a token in all passes.
    """
    return _slices(num_tokens, max(1, min(CHUNK_TOKENS, CHUNK_BYTES // (row.element_size() * vocab_size))))


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        hidden_PND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_N: Tensor,
        to_gradient: ToGradient,
        shares: tuple[float, ...],
    ) -> Tensor:
        wants_hidden, wants_weight, wants_bias, *_ = ctx.needs_input_grad  # pyright: ignore[reportAttributeAccessIssue]
        matrix_VD = weight_VD.to(hidden_PND.dtype)
        hidden_gradient_PND = torch.empty_like(hidden_PND) if wants_hidden else None
        weight_gradient_VD: Tensor | None = None
        bias_gradient_V = torch.zeros_like(bias_V) if bias_V is not None and wants_bias else None
        sums = hidden_PND.new_zeros(2, dtype=_wide(hidden_PND))
        for chunk in chunks(len(target_N), hidden_PND, len(shares) * len(weight_VD)):
            hidden_RD = hidden_PND[:, chunk].flatten(0, 1)
            logits_RV = hidden_RD @ matrix_VD.T
            logits_PCV = logits_RV.unflatten(0, (len(shares), -1))
            sums += _fill(logits_PCV, bias_V, target_C=target_N[chunk], to_gradient=to_gradient)
            if hidden_gradient_PND is not None:
                hidden_gradient_PND[:, chunk] = (logits_RV @ matrix_VD).unflatten(0, (len(shares), -1))
            if wants_weight:
                weight_gradient_VD = _plus(weight_gradient_VD, logits_RV.T @ hidden_RD, like=weight_VD)
            if bias_gradient_V is not None:
                bias_gradient_V += logits_RV.sum(dim=0, dtype=bias_gradient_V.dtype)
        # What the loss takes from all logits of a pass alike enters all gradients as one constant vector.
        share_P = sums.new_tensor(shares)
        if hidden_gradient_PND is not None:
            hidden_gradient_PND -= (share_P[:, None] * weight_VD.sum(dim=0))[:, None, :]
        if wants_weight and weight_gradient_VD is None:
            weight_gradient_VD = torch.zeros_like(weight_VD)
        if weight_gradient_VD is not None:
            weight_gradient_VD -= share_P @ hidden_PND.sum(dim=1, dtype=share_P.dtype)
        if bias_gradient_V is not None:
            bias_gradient_V -= share_P.sum() * len(target_N)
        ctx.save_for_backward(hidden_gradient_PND, weight_gradient_VD, bias_gradient_V)  # pyright: ignore[reportArgumentType] - None is one
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 (torch's context has no type)
        factor = gradients[0][0]
        own = [None if saved is None else saved * factor.to(saved.dtype) for saved in ctx.saved_tensors]
        return *own, None, None, None


def _plus(total: Tensor | None, more: Tensor, *, like: Tensor) -> Tensor:
    """The first summand becomes the sum: no zeros are written and read again."""
    return more.to(like.dtype) if total is None else total.add_(more)


def _fill(logits_PCV: Tensor, bias_V: Tensor | None, *, target_C: Tensor, to_gradient: ToGradient) -> Tensor:
    """Both sums of a chunk; in the place of its logits their gradient."""
    sums = logits_PCV.new_zeros(2, dtype=_wide(logits_PCV))
    for block in _blocks(logits_PCV):
        narrow_PCV = logits_PCV[:, block]
        wide_PCV = narrow_PCV.to(_wide(logits_PCV))
        if bias_V is not None:
            wide_PCV += bias_V
        sums += to_gradient(wide_PCV, target_C[block])
        if wide_PCV.dtype != narrow_PCV.dtype:
            narrow_PCV.copy_(wide_PCV)
    return sums


def _blocks(logits_PCV: Tensor) -> Iterator[slice]:
    """Slices of a chunk that fit a processor's cache; elsewhere the chunk is one."""
    num_passes, num_tokens, vocab_size = logits_PCV.shape
    fitting = max(1, BLOCK_BYTES // (4 * num_passes * vocab_size))
    return _slices(num_tokens, fitting if logits_PCV.device.type == "cpu" else max(1, num_tokens))


def _slices(count: int, most: int) -> Iterator[slice]:
    size = max(1, -(-count // max(1, -(-count // most))))
    return (slice(begin, begin + size) for begin in range(0, count, size))


def _wide(tensor: Tensor) -> torch.dtype:
    """In which the loss is computed: float32, or float64 if the tensor is that already."""
    return torch.promote_types(tensor.dtype, torch.float32)

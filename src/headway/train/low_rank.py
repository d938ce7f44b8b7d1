"""Low-rank additions to a model in training, and the plain weights that do the same (Hu et al. 2021, LoRA)."""

from hashlib import blake2b

import numpy as np
import torch
from torch import nn

from headway.model.build import export_weights
from headway.model.token_model import TokenModel
from headway.nn.attention import MultiHeadAttention
from headway.nn.low_rank import LowRank

PROJECTIONS = ("query", "value")  # of every attention: the article's choice (Section 4.2)


def add_low_rank(model: TokenModel, rank: int, *, alpha: float | None, seed: int) -> None:
    """Freeze the model and put a trained addition beside the queries and values of every attention.

    ``alpha`` absent is the rank. The numbers drawn depend on the seed and on the place in the model.
    """
    model.requires_grad_(requires_grad=False)
    attentions = [(name, part) for name, part in model.named_modules() if isinstance(part, MultiHeadAttention)]
    for name, attention in attentions:
        for projection in PROJECTIONS:
            digest = blake2b(f"low rank {seed} {name}.{projection}".encode(), digest_size=7).digest()
            random = torch.Generator().manual_seed(int.from_bytes(digest, "little"))
            linear = getattr(attention, projection)
            setattr(attention, projection, LowRank(linear, rank, alpha=alpha or rank, random=random))


def has_low_rank(model: nn.Module) -> bool:
    """Whether the model has such additions."""
    return any(isinstance(part, LowRank) for part in model.modules())


@torch.no_grad()
def merged_weights(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a plain model that does the same, as ``export_weights`` gives them."""
    weights = export_weights(model)
    for name, part in model.named_modules():
        if isinstance(part, LowRank):
            for own in ("down", "up"):
                del weights[f"{name}.{own}"]
            del weights[f"{name}.linear.weight"]
            weights[f"{name}.weight"] = part.merged_weight().to("cpu", torch.float32, copy=True).numpy()
            if f"{name}.linear.bias" in weights:
                weights[f"{name}.bias"] = weights.pop(f"{name}.linear.bias")
    return weights

"""The parameters that are trained, and what kind each is."""

from collections.abc import Iterable, Iterator
from typing import TypedDict

from torch import nn


class Settings(TypedDict):
    """Parameters that an optimizer treats alike."""

    params: list[nn.Parameter]
    weight_decay: float


def trained_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Names and parameters that are not frozen; a shared matrix once."""
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The trained matrices of attention and feed-forward networks: those between embeddings and output."""
    stacks = ("encoder.", "decoder.")
    return [each for name, each in trained_parameters(model) if name.startswith(stacks) and each.ndim == 2]


def decay_groups(parameters: Iterable[nn.Parameter], weight_decay: float) -> Iterator[Settings]:
    """The parameters as one group; with weight decay as two, for it is of matrices alone, embeddings among them.

    Biases and the weights of norms never decay.
    """
    given = list(parameters)
    if not weight_decay:
        yield Settings(params=given, weight_decay=0.0)
        return
    matrices = [each for each in given if each.ndim >= 2]
    vectors = [each for each in given if each.ndim < 2]
    for members, decay in ((matrices, weight_decay), (vectors, 0.0)):
        if members:
            yield Settings(params=members, weight_decay=decay)

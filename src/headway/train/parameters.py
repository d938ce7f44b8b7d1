"""The parameters that are trained, and what kind each is."""

from torch import nn


def trained_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Names and parameters that are not frozen; a shared matrix once."""
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]

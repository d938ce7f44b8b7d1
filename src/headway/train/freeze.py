"""Components of a model that keep their weights while the rest is trained."""

from collections.abc import Callable, Sequence

from headway.config.train_config import Component
from headway.errors import ConfigError
from headway.model.token_model import TokenModel


def _in(*parts: str) -> Callable[[str], bool]:
    """Whether a parameter's dotted name has one of these parts."""
    return lambda name: any(part in name.split(".") for part in parts)


def _ends(name: str, *, sides: Sequence[str]) -> bool:
    return name.split(".", maxsplit=1)[0] in sides


# Which parameters, by name, a component is. They may overlap: a norm of the encoder is of both.
COMPONENTS: dict[Component, Callable[[str], bool]] = {
    "embeddings": _in("embedding"),
    "positions": _in("position"),
    "encoder": lambda name: _ends(name, sides=("encoder", "source_stem")) and "embedding" not in name.split("."),
    "decoder": lambda name: _ends(name, sides=("decoder", "target_stem")) and "embedding" not in name.split("."),
    "self_attention": _in("self_attention"),
    "cross_attention": _in("cross_attention"),
    "feed_forward": _in("feed_forward"),
    "norms": _in("norm"),
    "output": lambda name: _ends(name, sides=("output",)),
}


def freeze(model: TokenModel, components: Sequence[Component]) -> list[str]:
    """Take these components out of training; what to tell of it, in short sentences.

    A matrix that is shared belongs to every component that has it. Raises ConfigError when nothing is left to train.
    """
    owners: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    shared: list[str] = []
    for parameter in model.parameters():
        names = owners[id(parameter)]
        chosen = [name for name in names if any(COMPONENTS[component](name) for component in components)]
        if chosen:
            parameter.requires_grad = False
            shared += [name for name in names if name not in chosen]
    total = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if not trained:
        raise ConfigError(
            f"train/freeze: train.freeze = {', '.join(components)} leaves nothing to train of {total:,} parameters. "
            "Remedy: take a component out of it"
        )
    told = [f"{trained:,} of {total:,} parameters are trained"] if trained < total else []
    if shared:
        told.append(f"frozen too, as they are the same matrix: {', '.join(shared)}")
    return told

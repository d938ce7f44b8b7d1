"""Weights in a pickle (pytorch_model.bin): read only on request, and even then nothing in it is run.

A pickle is a program. torch's reader for weights alone knows a few harmless instructions and refuses all others; what
is trusted is that this reader has no fault.
"""

from pathlib import Path

from headway.errors import InterchangeError
from headway.folder.weights import Array


def read_pickle(path: Path, *, unsafe: bool) -> dict[str, Array]:
    """The arrays of a pickle, as float32; raises InterchangeError unless ``unsafe``, and for one that asks for more."""
    if not unsafe:
        raise InterchangeError(
            f"interchange/pickled: {path} is a pickle, which may hold a program; found no model.safetensors beside it, "
            "wanted one. Remedy: convert it where you trust it, or give --unsafe if you trust whoever made the file."
        )
    import torch  # noqa: PLC0415 - only this file needs it, and rarely

    try:
        found: object = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # whatever the pickle makes the reader raise
        reason = str(error).strip().split("\n")[0][:200]
        raise InterchangeError(
            f"interchange/pickled: {path} ({path.stat().st_size:,} bytes) is damaged or asks for more than weights; "
            f"nothing in it was run: {type(error).__name__}: {reason}. Remedy: convert it to model.safetensors where "
            "you trust it."
        ) from error
    if not isinstance(found, dict):
        raise InterchangeError(
            f"interchange/pickled: {path} holds a {type(found).__name__}; wanted names with arrays. "
            "Remedy: save the model's state_dict."
        )
    arrays: dict[str, Array] = {}
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            raise InterchangeError(
                f"interchange/pickled: {path}: {str(name)[:60]}: found {type(tensor).__name__}; wanted an array of "
                "floating-point numbers. Remedy: save the model's state_dict."
            )
        arrays[name] = tensor.detach().to(torch.float32).contiguous().numpy()
    return arrays

"""Parameters, gradients and moments spread over the ranks (FSDP2), for models that do not fit into one device.

Each rank holds an equal part of every parameter; a layer is put together for its forward and backward pass alone.
What is stored is never sharded: states and weights hold whole arrays, so that a run may go on with or without.
"""

import numpy as np
import torch
from torch import Tensor, nn

from headway.model.decoder import DecoderLayer
from headway.model.encoder import EncoderLayer
from headway.model.token_model import TokenModel
from headway.train.distributed import is_sharded


def shard(model: TokenModel) -> None:
    """Leave on each rank its part of every parameter; all ranks call this with equal weights.

    A layer is a unit of its own. All else, the shared embedding matrix too, is one more, so that what is tied stays
    tied. The gradients that FSDP leaves are means over the ranks.
    """
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # noqa: PLC0415 - slow to import

    for layer in [part for part in model.modules() if isinstance(part, EncoderLayer | DecoderLayer)]:
        fully_shard(layer)
    fully_shard(model)
    register_fsdp_forward_method(model, "hidden")  # training enters the model here


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, or the whole of a sharded one; then all ranks call this."""
    # a sharded tensor is a DTensor, whose module is slow to import
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # pyright: ignore[reportAttributeAccessIssue]


def own_part(tensor: Tensor) -> Tensor:
    """The tensor itself, or this rank's part of a sharded one as a plain tensor; a change of it is a change of both."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # pyright: ignore[reportAttributeAccessIssue] - as above


def part_of(array: np.ndarray, like: Tensor) -> Tensor:
    """A whole array as a tensor placed as ``like`` is: on its device, and on each rank the same part."""
    tensor = torch.from_numpy(np.array(array)).to(like.device)
    if not is_sharded(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor  # noqa: PLC0415 - as above

    # what is sharded has a mesh and placements
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)  # pyright: ignore[reportAttributeAccessIssue]


def whole_weights(model: nn.Module) -> dict[str, np.ndarray]:
    """As ``model.build.export_weights``, of a sharded model; all ranks call this."""
    return {
        name: whole(parameter.detach()).to("cpu", torch.float32, copy=True).numpy()
        for name, parameter in model.named_parameters()
    }

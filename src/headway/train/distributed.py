"""The processes that train one model together: who they are, and all that they tell one another.

torchrun starts them and says in environment variables who each is. Every tensor here is the same size on all ranks, and
all ranks make the same calls in the same order. Small values travel through main memory (gloo), gradients on CUDA
through NCCL. Nothing is given a time limit that a long validation or a slow disk could reach: a rank that ends, however
it ends, closes its connections, and that is what the others notice.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from headway.errors import TrainingError

if TYPE_CHECKING:
    from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage] - it is documented there

T = TypeVar("T")

PLACES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # what torchrun says
ATTEMPT = "TORCHELASTIC_RESTART_COUNT"
PATIENCE = timedelta(days=7)  # of a rank that waits: for the first to prepare the data, or to write a state
JOINING = timedelta(minutes=10)
BUCKET_BYTES = 64 * 2**20  # of gradients summed at once
TOLD = "told"


@dataclass(frozen=True)
class Group:
    """One process of those that train together; by default there is no other, and nothing is sent."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0  # among the processes of this machine
    attempt: int = 0  # how often torchrun has started this job again
    store: "Store | None" = None  # torchrun's, which outlives every rank

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that prepares, writes, logs and prints."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum of every rank's small tensor."""
        if self.world_size == 1:
            return values
        import torch.distributed as dist  # noqa: PLC0415 - one process needs none of it

        total = values.to("cpu", copy=True)
        dist.all_reduce(total)
        return total

    def any(self, flag: bool) -> bool:
        """Whether any rank says yes; so all decide alike, at the same step."""
        return bool(self.sum(torch.tensor(int(flag))).item())

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.any(False)

    def gather(self, value: T) -> list[T]:
        """Every rank's value, in the order of ranks."""
        if self.world_size == 1:
            return [value]
        import torch.distributed as dist  # noqa: PLC0415 - as above

        values: list[T | None] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values  # pyright: ignore[reportReturnType] - each is filled

    def share(self, value: T) -> T:
        """The first rank's value."""
        return self.gather(value)[0]

    def mine(self, values: Sequence[T]) -> list[T]:
        """Give this rank's part of what all ranks hold: every ``world_size``-th, from its rank on."""
        return list(values[self.rank :: self.world_size])

    def together(self, mine: Sequence[T]) -> list[T]:
        """All values in their order, from the parts that ``mine`` gave out."""
        parts = self.gather(list(mine))
        return [parts[i % self.world_size][i // self.world_size] for i in range(sum(map(len, parts)))]

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its sum over the ranks, in float32, some 64 MiB at a time.

        Once a step, after its last microbatch. torch's DistributedDataParallel would do it while the backward pass
        still runs, but takes means, hooks into ``forward`` alone and wants the same number of passes of every rank.
        Gradients of sharded parameters are summed already.
        """
        if self.world_size == 1:
            return
        import torch.distributed as dist  # noqa: PLC0415 - as above

        gradients = [tensor.grad for tensor in parameters if tensor.grad is not None]
        for bucket in _buckets([gradient for gradient in gradients if not is_sharded(gradient)]):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            dist.all_reduce(flat)
            for gradient, part in zip(bucket, flat.split([each.numel() for each in bucket]), strict=True):
                gradient.copy_(part.view_as(gradient))

    def speaks(self) -> bool:
        """Whether this rank is the first to ask: of an end that all ranks meet, one tells."""
        if self.store is None:
            return True
        try:
            return self.store.add(TOLD, 1) == 1
        except RuntimeError:  # torchrun itself is gone: better twice than never
            return True

    @contextmanager
    def connected(self) -> Generator[None]:
        """Within the block, a broken connection to another rank is a TrainingError."""
        try:
            yield
        except RuntimeError as error:
            if self.world_size == 1 or not _is_broken_connection(error):
                raise
            raise TrainingError(
                f"train/distributed: rank {self.rank} of {self.world_size} lost its connection to another rank, which "
                f"has ended or cannot be reached ({_reason(error)}). The last training state is good. "
                "Remedy: see torchrun's report for the rank that ended first, then start the same command again; "
                "torchrun --max-restarts=N does so by itself"
            ) from error


ALONE = Group()


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is one rank's part of a larger one."""
    return hasattr(tensor, "full_tensor")


@contextmanager
def joined(environment: Mapping[str, str]) -> Generator[Group]:
    """Join the processes that torchrun started with this one; without torchrun, or with one process, it is alone.

    Raises TrainingError for an environment that is not one of torchrun, or when the others do not come.
    """
    world_size = _number(environment, "WORLD_SIZE") if "WORLD_SIZE" in environment else 1
    attempt = _number(environment, ATTEMPT) if ATTEMPT in environment else 0
    if world_size == 1 or not all(name in environment for name in PLACES):
        yield Group(attempt=attempt)
        return
    import torch.distributed as dist  # noqa: PLC0415 - one process needs none of it
    from torch.distributed.rendezvous import rendezvous  # noqa: PLC0415 - as above

    # Imported later, its functions would keep this group as their default, and so gloo's threads beyond its end. One
    # that lets a tensor go while Python ends aborts the process: "terminate called without an active exception".
    import_module("torch.distributed.nn.functional")
    rank, local_rank = (_number(environment, name) for name in ("RANK", "LOCAL_RANK"))
    try:
        whole_store, _, _ = next(rendezvous("env://", rank, world_size, timeout=JOINING))
        # torchrun's store lives on when it starts the ranks again, with the addresses of those that are gone
        store = dist.PrefixStore(f"headway/{attempt}/{world_size}", whole_store)  # pyright: ignore[reportPrivateImportUsage] - as above
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo",
            store=store,
            rank=rank,
            world_size=world_size,
            timeout=PATIENCE,
        )
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"train/distributed: rank {rank} of {world_size} could not join the others at "
            f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']} ({_reason(error)}). "
            "Remedy: check torchrun's --nnodes, --rdzv-endpoint and the network"
        ) from error
    yield Group(rank, world_size, local_rank, attempt, store)
    dist.destroy_process_group()  # not after an error: then it could wait for a rank that is gone


def _reason(error: Exception) -> str:
    """The first sentence of what torch says, without the place in its source."""
    return re.sub(r"^\[\S*\] ", "", str(error)).partition("\n")[0].partition(". ")[0]


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise TrainingError(
            f"train/distributed: {name} is {text!r} in the environment; wanted a whole number. "
            f"Remedy: start the processes with torchrun, or unset {name}"
        )
    return int(text)


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The gradients in their order, cut where a bucket would grow beyond its size."""
    bucket: list[Tensor] = []
    size = 0
    for gradient in gradients:
        if bucket and size + gradient.nbytes > BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(gradient)
        size += gradient.nbytes
    if bucket:
        yield bucket


def _is_broken_connection(error: RuntimeError) -> bool:
    """Gloo names its source file in each of its errors; all others of torch.distributed are of one class."""
    import torch.distributed as dist  # noqa: PLC0415 - as above

    return isinstance(error, dist.DistError) or "gloo" in str(error)

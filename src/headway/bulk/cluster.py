"""All lines of a file, translated by workers on a Ray cluster; the results come back in order.

Ray Data hands out the numbers of chunks, not their text: its own reader of text files would break lines at other
characters and drop empty ones. Each worker reads the input itself, so every machine must see the file (and the model)
under the same name. The work of a worker that dies is done again by another.
"""

import json
import logging
import os
import socket
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from headway import errors
from headway.bulk.job import Chunk, Job, Result, Survey, read_chunks, survey
from headway.errors import HeadwayError, MissingExtraError, TranslationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BLOCKS = 4096  # that Ray Data keeps account of
_ENVIRONMENT = {  # quiet, without the network
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DATA_LOG_LEVEL": "ERROR",
    "RAY_DEDUP_LOGS": "0",
    "RAY_worker_niceness": "0",  # as nice as the command itself; else they starve on a busy machine
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_CONNECT_SECONDS = 10
_LONGEST_PATH = 24  # characters of the folder of a local cluster: the names of sockets in it must stay below 108


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the workers are: ``address`` of a cluster's head, None for this machine alone.

    ``workers``: how many, None for as many as there are GPUs (or CPUs, ``threads`` for each). ``device`` is the
    translator's; a worker on a GPU has it to itself.
    """

    address: str | None = None
    workers: int | None = None
    threads: int | None = None
    device: str = "cpu"


class Worker:
    """Translates chunks by their numbers, in a process of its own. A failure is a result, so that it can be told."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._chunks: Iterator[Chunk] = iter(())
        self._next = -1  # the number of the chunk that comes next
        self._failure = self._computed_by = ""
        try:
            self._translate = job.load()
            self._computed_by = job.computed_by()
        except HeadwayError as error:
            self._failure = _failure(error)

    def __call__(self, batch: "dict[str, NDArray[Any]]") -> dict[str, list[Any]]:
        """The results of these chunks, as JSON."""
        numbers = [int(number) for number in batch["item"]]
        return {"chunk": numbers, "result": [self._result(number) for number in numbers]}

    def _result(self, number: int) -> str:
        if self._failure:
            return self._failure
        try:
            chunk = self._read(number)
            result = self._translate(chunk)
        except HeadwayError as error:
            return _failure(error)
        told = {"digest": chunk.digest(), "computed_by": self._computed_by}
        return json.dumps({**told, "records": result.records, "notes": result.notes})

    def _read(self, number: int) -> Chunk:
        """The chunk of this number; they mostly come in rising order, so that the file is read on."""
        if self._next < 0 or number < self._next:
            self._chunks = read_chunks(self._job)
        for chunk in self._chunks:
            if chunk.number == number:
                self._next = number + 1
                return chunk
        self._next = -1
        return Chunk(number, 0, [])  # the input has become shorter, which the digest tells


def translate_on_ray(job: Job, cluster: Cluster) -> Generator[Result]:
    """The result of each chunk, in order; memory holds some of them.

    Raises MissingExtraError without Ray, CorpusError for an input that cannot be read, what a worker's translator
    raises, and TranslationError when the cluster fails.
    """
    if find_spec("ray") is None:
        raise MissingExtraError(
            "bulk/cluster: --ray needs Ray, which is not installed. Run: pip install 'headway[ray]'"
        )
    seen = survey(job)
    if not seen.sizes:
        return
    with _connected(cluster):
        from ray.exceptions import RayError  # noqa: PLC0415 - an extra

        try:
            yield from _results(job, cluster, seen)
        except RayError as error:
            raise TranslationError(
                f"bulk/cluster: a worker on the Ray cluster failed: {_last_line(error)} "
                "Remedy: translate without --ray to see where, or look at Ray's own log."
            ) from error


def _results(job: Job, cluster: Cluster, seen: Survey) -> Iterator[Result]:
    """The results of a connected cluster, in order and checked."""
    import ray  # noqa: PLC0415 - an extra
    from ray.data import ActorPoolStrategy, DataContext, from_items  # noqa: PLC0415 - an extra

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = True
    has_gpus = cluster.device != "cpu" and ray.cluster_resources().get("GPU", 0) >= 1
    workers = _num_workers(cluster, seen, ray.cluster_resources(), has_gpus=has_gpus)
    chunks = from_items(list(range(len(seen.sizes))), override_num_blocks=min(len(seen.sizes), _MOST_BLOCKS))
    results = chunks.map_batches(
        Worker,
        fn_constructor_args=(job,),
        batch_size=1,
        compute=ActorPoolStrategy(size=workers),
        num_cpus=cluster.threads or 1,
        num_gpus=1 if has_gpus else None,
    )
    number, computed_by = 0, ""
    for row in results.iter_rows():
        found: dict[str, Any] = json.loads(row["result"])
        _raise_failure(found)
        own = found.get("computed_by", "another version of Headway")
        computed_by = computed_by or own
        _check_alike(computed_by, own)
        if row["chunk"] != number:
            raise TranslationError(
                f"bulk/cluster: found chunk {row['chunk'] + 1:,}, wanted {number + 1:,}: the cluster lost results. "
                "Remedy: run it again."
            )
        seen.check(number, found["digest"])
        yield Result(found["records"], found["notes"])
        number += 1
    if number != len(seen.sizes):
        raise TranslationError(
            f"bulk/cluster: {number:,} chunks came back of {len(seen.sizes):,}: the cluster lost results. "
            "Remedy: run it again."
        )


@contextmanager
def _connected(cluster: Cluster) -> Generator[None]:
    """Start a cluster on this machine, or join one; nothing of it is left behind, and it tells nothing."""
    if cluster.address is not None:
        _check_address(cluster.address)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray  # noqa: PLC0415 - an extra
    from ray.exceptions import RayError  # noqa: PLC0415 - an extra

    with tempfile.TemporaryDirectory(prefix="hw-", ignore_cleanup_errors=True) as folder:
        settings: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if cluster.address is None:
            # One CPU more than the workers' share, for Ray Data's own small tasks.
            cpus = (cluster.workers or 0) * (cluster.threads or 1) or os.cpu_count() or 1
            settings |= {"address": "local", "num_cpus": cpus + 1, "include_dashboard": False}
            settings |= {"_temp_dir": folder} if len(folder) <= _LONGEST_PATH else {}
        else:
            settings |= {"address": cluster.address}
        try:
            with _silent():
                ray.init(**settings)
        except (RayError, ConnectionError, ValueError, RuntimeError) as error:
            raise _no_cluster(cluster.address or "this machine", error) from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _silent() -> Generator[None]:
    """Let go what Ray's C++ parts write to standard error as they start, its own log level among it."""
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _check_address(address: str) -> None:
    """Refuse an address at which nothing answers; Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(place: str, error: Exception) -> TranslationError:
    return TranslationError(
        f"bulk/cluster: no Ray cluster at {place}: {_last_line(error)} "
        "Remedy: give the HOST:PORT that `ray start --head` shows, or leave --ray-address out."
    )


def _num_workers(cluster: Cluster, seen: Survey, resources: Mapping[str, float], *, has_gpus: bool) -> int:
    """How many translators stand side by side."""
    if cluster.workers is not None:
        return min(cluster.workers, len(seen.sizes))
    # One CPU stays free for Ray Data's own small tasks.
    fitting = resources["GPU"] if has_gpus else (resources.get("CPU", 2) - 1) // (cluster.threads or 1)
    return max(1, min(int(fitting), len(seen.sizes)))


def _failure(error: HeadwayError) -> str:
    """An error as a result."""
    return json.dumps({"error": type(error).__name__, "message": str(error)})


def _raise_failure(found: dict[str, Any]) -> None:
    """Raise the error that a result is, if it is one."""
    if "error" in found:
        kind = getattr(errors, found["error"], HeadwayError)
        raise cast("type[HeadwayError]", kind)(found["message"])


def _check_alike(first: str, other: str) -> None:
    """Refuse to join what was computed in two ways."""
    if first != other:
        raise TranslationError(
            f"bulk/cluster: one worker computed by {first}, another by {other}: their machines have different "
            "installations, and outputs would not go together. Remedy: name what all have, with --engine and "
            "--precision, or install the same on each."
        )


def _last_line(error: Exception) -> str:
    """The last line of a message, where the cause of a chain of errors stands."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".") + "."

"""What is measured of a row of Table 1, as plain values for its record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from headway.paper.chain import layer_chain
from headway.paper.layer_kinds import (
    KERNEL,
    PATH_NEIGHBOURHOOD,
    LayerKind,
    Ranges,
    chain_sweeps,
    operation_sweeps,
    path_sweeps,
    printed_order,
    worked_sizes,
)
from headway.paper.layer_time import ATTENTION, RECURRENT, TIMED, kept_bytes, seconds
from headway.paper.operations import count_operations
from headway.paper.random import seeded
from headway.paper.reach import maximum_path
from headway.paper.slope import Points
from headway.paper.work import Making, Values
from headway.train.events import Stage


def measure_orders(kind: LayerKind, ranges: Ranges) -> Making:
    """Count operations, read off the longest chain and find the maximum path of a kind; ``Orders`` reads it."""
    operations: dict[str, list[list[float | None]]] = {}
    yield Stage(f"{kind.name}: counting operations")
    for letter, points in operation_sweeps(kind, ranges).items():
        operations[letter] = []
        for point in points:
            counted = count_operations(kind.layer, point.sizes, point.length)
            order = printed_order(kind, point.length, point.sizes)
            operations[letter].append([point.against, counted.core, counted.total, order])
    worked: list[list[float | None]] = []
    for length, d_model in ranges.worked:
        sizes = worked_sizes(kind, length, d_model)
        counted = count_operations(kind.layer, sizes, length)
        worked.append([length, d_model, counted.core, counted.total, printed_order(kind, length, sizes)])
    with seeded():
        yield Stage(f"{kind.name}: the longest chain")
        chain = {
            letter: [[point.against, layer_chain(kind.layer, point.sizes, point.length)] for point in points]
            for letter, points in chain_sweeps(kind, ranges).items()
        }
        yield Stage(f"{kind.name}: the maximum path")
        path = {
            letter: [[point.against, maximum_path(kind.layer, point.sizes, point.length)] for point in points]
            for letter, points in path_sweeps(kind, ranges).items()
        }
    return {"operations": operations, "chain": chain, "path": path, "worked": worked}


@dataclass(frozen=True, slots=True)
class Orders:
    """The values of ``measure_orders``: points by the letter that they are measured against."""

    core: Mapping[str, Points]  # multiply-adds without projections
    total: Mapping[str, Points]  # with them
    ratio: Sequence[float]  # core by the printed order, at every size; empty where nothing is printed
    chain: Mapping[str, Points]
    path: Mapping[str, Points]
    worked: Mapping[tuple[int, int], tuple[float, float, float | None]]  # of n and d: core, total, printed

    @classmethod
    def read(cls, values: Values) -> "Orders":
        """From a record."""
        operations, path = values["operations"], values["path"]
        chain, worked = values["chain"], values["worked"]
        assert isinstance(operations, dict)
        assert isinstance(path, dict)
        assert isinstance(chain, dict)
        assert isinstance(worked, list)
        return cls(
            core={letter: {row[0]: row[1] for row in rows} for letter, rows in operations.items()},
            total={letter: {row[0]: row[2] for row in rows} for letter, rows in operations.items()},
            ratio=[row[1] / row[3] for rows in operations.values() for row in rows if row[3] is not None],
            chain={letter: dict(rows) for letter, rows in chain.items()},
            path={letter: dict(rows) for letter, rows in path.items()},
            worked={(row[0], row[1]): (row[2], row[3], row[4]) for row in worked},
        )

    @property
    def factor(self) -> float | None:
        """How many times the printed order is computed."""
        return sum(self.ratio) / len(self.ratio) if self.ratio else None

    def path_factor(self, kind: LayerKind) -> float:
        """The maximum path by its printed order, at the longest sentence of the sweep."""
        letter = "log_k n" if "log_k n" in kind.path else "n"
        size, steps = max(self.path[letter].items())
        if "k" in kind.path:
            return steps * KERNEL / size
        if "r" in kind.path:
            return steps * PATH_NEIGHBOURHOOD / size
        return steps / size if kind.path.get(letter) else steps


def measure_round(
    d_model: int, lengths: Sequence[int], *, number: int, timer: Callable[[str, int, int], float] = seconds
) -> Making:
    """Time every kind at every length, in the ``number``-th round: seconds by name and length.

    ``timer`` gives the seconds of a name at a width and a length.
    """
    found: dict[str, dict[str, float]] = {name: {} for name in TIMED}
    for length in lengths:
        yield Stage(f"timing at n = {length:,}")
        for name in timing_order(number):
            if _fits(name, length):
                found[name][str(length)] = timer(name, d_model, length)
    return {"seconds": found, "threads": torch.get_num_threads()}


def timing_order(number: int) -> list[str]:
    """What a round times at each length, one after another.

    The two that are compared are next to each other, so that what else the machine does is the same for both, and
    change places from round to round: neither is always the one that follows the other's use of caches.
    """
    compared = [ATTENTION, RECURRENT] if number % 2 else [RECURRENT, ATTENTION]
    return [*compared, *(name for name in TIMED if name not in compared)]


def _fits(name: str, length: int) -> bool:
    longest = TIMED[name].longest
    return longest is None or length <= longest


def measure_memory(d_model: int, lengths: Sequence[int]) -> Making:
    """Weigh what every kind keeps for its backward pass: bytes by name and length."""
    found: dict[str, dict[str, int]] = {}
    for name in TIMED:
        yield Stage(f"weighing {name}")
        found[name] = {str(length): kept_bytes(name, d_model, length) for length in lengths if _fits(name, length)}
    return {"bytes": found}


def by_length(table: object) -> dict[str, dict[int, float]]:
    """From a record: numbers by name and length."""
    assert isinstance(table, dict)
    return {name: {int(length): value for length, value in row.items()} for name, row in table.items()}

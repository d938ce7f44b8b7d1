"""The rows of Table 1: what the paper prints of each kind of layer, and the sizes at which it is measured.

Letters, as in the table: n length, d size of a vector, k width of a kernel, r neighbourhood of restricted attention.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headway.nn.sequence_kinds import Sizes


@dataclass(frozen=True, slots=True)
class Point:
    """One size at which something is measured, and the value of the letter that it is measured against."""

    against: float
    length: int
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class LayerKind:
    """A row of Table 1: the printed orders as text, their exponents by letter, and the printed order's value.

    A kind without ``printed`` is not in the paper's table. ``path`` has the letter that the maximum path grows with,
    and the exponent: 0 for O(1).
    """

    name: str
    layer: str  # of SEQUENCE_LAYERS
    causal: bool
    operations: str = ""  # a layer, as printed
    sequential: str = ""
    maximum_path: str = ""
    exponents: Mapping[str, float] = field(default_factory=dict[str, float])
    chain: float | None = None  # the exponent of n of the longest chain; of d, k and r it is 0
    path: Mapping[str, float] = field(default_factory=dict[str, float])
    order: Callable[[float, float, float, float], float] | None = None  # of n, d, k and r

    @property
    def is_printed(self) -> bool:
        """Whether the paper has this row."""
        return bool(self.operations)


KINDS = (
    LayerKind(
        "self-attention",
        "self-attention",
        causal=False,
        operations="n^2 d",
        sequential="1",
        maximum_path="1",
        exponents={"n": 2, "d": 1},
        chain=0,
        path={"n": 0},
        order=lambda n, d, k, r: n * n * d,
    ),
    LayerKind(
        "recurrent, LSTM",
        "lstm",
        causal=True,
        operations="n d^2",
        sequential="n",
        maximum_path="n",
        exponents={"n": 1, "d": 2},
        chain=1,
        path={"n": 1},
        order=lambda n, d, k, r: n * d * d,
    ),
    LayerKind(
        "recurrent, GRU",
        "gru",
        causal=True,
        operations="n d^2",
        sequential="n",
        maximum_path="n",
        exponents={"n": 1, "d": 2},
        chain=1,
        path={"n": 1},
        order=lambda n, d, k, r: n * d * d,
    ),
    LayerKind(
        "convolutional, contiguous",
        "convolution",
        causal=True,
        operations="k n d^2",
        sequential="1",
        maximum_path="n / k",
        exponents={"n": 1, "d": 2, "k": 1},
        chain=0,
        path={"n": 1, "k": -1},
        order=lambda n, d, k, r: k * n * d * d,
    ),
    LayerKind(
        "convolutional, dilated",
        "dilated",
        causal=True,
        operations="k n d^2",
        sequential="1",
        maximum_path="log_k n",
        exponents={"n": 1, "d": 2, "k": 1},
        chain=0,
        path={"log_k n": 1},
        order=lambda n, d, k, r: k * n * d * d,
    ),
    LayerKind(
        "convolutional, separable",
        "separable",
        causal=True,
        operations="k n d + n d^2",
        sequential="1",
        maximum_path="n / k",
        exponents={"n": 1},
        chain=0,
        path={"n": 1, "k": -1},
        order=lambda n, d, k, r: k * n * d + n * d * d,
    ),
    LayerKind(
        "self-attention, restricted",
        "restricted",
        causal=False,
        operations="r n d",
        sequential="1",
        maximum_path="n / r",
        exponents={"n": 1, "d": 1, "r": 1},
        chain=0,
        path={"n": 1, "r": -1},
        order=lambda n, d, k, r: r * n * d,
    ),
    LayerKind("linear attention, one head", "linear-attention", causal=False),
)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The sizes that are swept through, one letter at a time, the others being the first of theirs."""

    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    recurrent_lengths: tuple[int, ...] = (128, 256, 512, 1024)  # step by step: as exact, and slower
    widths: tuple[int, ...] = (64, 128, 256, 512)
    kernels: tuple[int, ...] = (3, 5, 9, 17, 33)
    neighbourhoods: tuple[int, ...] = (16, 32, 64, 128)
    chain_lengths: tuple[int, ...] = (32, 64, 128, 256)
    path_lengths: tuple[int, ...] = (33, 65, 129, 257)
    powers: tuple[int, ...] = (1, 2, 3, 4, 5)  # lengths k^power, of a dilated stack
    path_kernels: tuple[int, ...] = (33, 65, 129)  # wide: k - 1 of them count, beside k in the order
    path_neighbourhoods: tuple[int, ...] = (4, 8, 16)
    long: int = 257  # the length at which the two above are varied
    powers_of: tuple[tuple[int, int], ...] = ((5, 4), (9, 3))  # further k of a dilated stack, each with its powers
    shape_widths: tuple[int, ...] = (8, 16, 32)  # d, k and r where only the shape of the graph counts, at few tokens
    shape_kernels: tuple[int, ...] = (3, 5, 9)
    shape_neighbourhoods: tuple[int, ...] = (16, 32, 64)  # few keys are summed in another way, two operations longer
    worked: tuple[tuple[int, int], ...] = ((50, 512), (2000, 512))


FULL = Ranges()
QUICK = Ranges(
    lengths=(64, 128, 256),
    recurrent_lengths=(16, 32, 64),
    widths=(16, 32, 64),
    kernels=(3, 5, 9),
    neighbourhoods=(8, 16, 32),
    chain_lengths=(32, 64),
    path_lengths=(33, 65),
    powers=(1, 2, 3),
    path_kernels=(33, 65),
    path_neighbourhoods=(4, 8),
    long=129,
    powers_of=((5, 3),),
    shape_widths=(8, 16),
    shape_kernels=(3, 5),
    shape_neighbourhoods=(16, 32),
    worked=((50, 512),),
)

PATH_NEIGHBOURHOOD = 4  # r of the path against n
KERNEL, NEIGHBOURHOOD, SMALL = 3, 16, 8  # where they are not swept; SMALL: d where only the shape of the graph counts


def operation_sweeps(kind: LayerKind, ranges: Ranges) -> dict[str, list[Point]]:
    """Where operations are counted: against n and d, and against k or r where the kind has it."""
    width, longest = ranges.widths[0], ranges.lengths[-1]
    lengths = ranges.recurrent_lengths if kind.chain == 1 else ranges.lengths
    sweeps = {
        "n": [Point(n, n, _sizes(kind, width)) for n in lengths],
        "d": [Point(d, lengths[0], _sizes(kind, d)) for d in ranges.widths],
    }
    if "k" in kind.operations:
        sweeps["k"] = [Point(k, lengths[0], _sizes(kind, width, kernel_size=k)) for k in ranges.kernels]
    if "r" in kind.exponents:
        sweeps["r"] = [Point(r, longest, _sizes(kind, width, neighbourhood=r)) for r in ranges.neighbourhoods]
    return sweeps


def chain_sweeps(kind: LayerKind, ranges: Ranges) -> dict[str, list[Point]]:
    """Where the longest chain is read off: against n and d, and against k or r where the kind has it."""
    few, most = ranges.chain_lengths[0], ranges.chain_lengths[-1]
    sweeps = {
        "n": [Point(n, n, _sizes(kind, SMALL)) for n in ranges.chain_lengths],
        "d": [Point(d, few, _sizes(kind, d)) for d in ranges.shape_widths],
    }
    if "k" in kind.operations:
        sweeps["k"] = [Point(k, few, _sizes(kind, SMALL, kernel_size=k)) for k in ranges.shape_kernels]
    if "r" in kind.exponents:
        sweeps["r"] = [Point(r, most, _sizes(kind, SMALL, neighbourhood=r)) for r in ranges.shape_neighbourhoods]
    return sweeps


def path_sweeps(kind: LayerKind, ranges: Ranges) -> dict[str, list[Point]]:
    """Where the maximum path is found: by the letters of ``kind.path``, and by d, which it does not grow with.

    Of a dilated stack ``log_k n`` is k = ``KERNEL``, and each k of ``powers_of`` has a sweep of its own, ``log_5 n``.
    """
    sweeps: dict[str, list[Point]] = {}
    letters = kind.path or {"n": 0.0}
    if "n" in letters:
        sweeps["n"] = [Point(n, n, _sizes(kind, SMALL, neighbourhood=PATH_NEIGHBOURHOOD)) for n in ranges.path_lengths]
    if "log_k n" in letters:
        sweeps["log_k n"] = [Point(power, KERNEL**power, _sizes(kind, SMALL)) for power in ranges.powers]
        for k, most in ranges.powers_of:
            sizes = _sizes(kind, SMALL, kernel_size=k)
            sweeps[f"log_{k} n"] = [Point(power, k**power, sizes) for power in range(1, most + 1)]
    if "k" in letters:
        sweeps["k"] = [Point(k, ranges.long, _sizes(kind, SMALL, kernel_size=k)) for k in ranges.path_kernels]
    if "r" in letters:
        sweeps["r"] = [Point(r, ranges.long, _sizes(kind, SMALL, neighbourhood=r)) for r in ranges.path_neighbourhoods]
    few = ranges.path_lengths[0]
    sweeps["d"] = [Point(d, few, _sizes(kind, d, neighbourhood=PATH_NEIGHBOURHOOD)) for d in ranges.shape_widths]
    return sweeps


def path_exponent(kind: LayerKind, letter: str) -> float:
    """What the printed maximum path says of a letter of ``path_sweeps``."""
    return kind.path.get("log_k n" if letter.startswith("log_") else letter, 0.0)


def _sizes(kind: LayerKind, d_model: int, *, kernel_size: int = KERNEL, neighbourhood: int = NEIGHBOURHOOD) -> Sizes:
    return Sizes(d_model, kernel_size=kernel_size, neighbourhood=neighbourhood, causal=kind.causal)


def worked_sizes(kind: LayerKind, length: int, d_model: int) -> Sizes:
    """The sizes of the worked numbers: a separable kernel as wide as the sentence, as Section 4 takes it."""
    return _sizes(kind, d_model, kernel_size=length if kind.layer == "separable" else KERNEL)


def printed_order(kind: LayerKind, length: int, sizes: Sizes) -> float | None:
    """The value of the printed order at these sizes."""
    if kind.order is None:
        return None
    return kind.order(length, sizes.d_model, sizes.kernel_size, sizes.neighbourhood)

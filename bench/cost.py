"""How cost grows: seconds a token against the length of sentences, the width and the depth of a model.

    python bench/cost.py --threads 2 --plots docs

Every batch has the same number of tokens on each side, in fewer sentences where they are longer. Training is a forward
and a backward pass of the whole model, encoding one pass of the encoder; beside them stand the layers of Table 1 alone,
forward and backward: attention without its projections, over all tokens and in blocks of 16, one recurrent layer and
one convolution of width 3. Exponents
are slopes of a straight line through the logarithms: over all points, over the last three, and of the multiply-adds
that the same points need. Table 1 counts a layer; a token's share is that over n. The table leaves out the projections
and the feed-forward network, d^2 a token, which is what short sentences pay for.

Rounds go through all points in turn; the fastest of them counts, since whatever else runs only makes them slower.
Freed memory is kept for all of them, as `headway train` does, so that no point pays for new pages.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer
from headway.model.size import count_multiply_adds
from headway.paper.plot import plot
from headway.train.memory import settle_memory
from headway.train.objective import Likelihood
from workload import equal_batches

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)
WIDTHS = (64, 128, 256, 512)
DEPTHS = (1, 2, 4, 8)
WIDTH, DEPTH, LENGTH = 256, 2, 32  # where they are not what is varied
HEAD = 64
VOCABULARY = 1000  # small, so that layers count and not the softmax
KERNEL, BLOCK = 3, 16
LAST = 3
MICROSECONDS = 1e6


@dataclass(frozen=True)
class Point:
    """What is computed, for how many tokens, and the multiply-adds of a token."""

    run: Callable[[], object]
    tokens: int
    multiply_adds: float


Maker = Callable[[int, int], Point]  # of sentences and length


@dataclass
class Sweep:
    """One thing measured at several sizes."""

    name: str
    against: str
    order: str  # a token, by Table 1
    points: dict[int, Callable[[], Point]]
    seconds: dict[int, float] = field(default_factory=dict)  # of a token, the fastest
    multiply_adds: dict[int, float] = field(default_factory=dict)

    def measure(self) -> None:
        """Every size once more; each is built, used twice and dropped, so that memory holds one."""
        for size, build in self.points.items():
            point = build()
            point.run()
            begin = time.perf_counter()
            point.run()
            taken = (time.perf_counter() - begin) / point.tokens
            self.seconds[size] = min(taken, self.seconds.get(size, math.inf))
            self.multiply_adds[size] = point.multiply_adds

    def row(self) -> dict[str, object]:
        """What stands in the table."""
        sizes = list(self.seconds)
        return {
            "what": self.name,
            "against": self.against,
            "order": self.order,
            "exponent": slope(self.seconds),
            "last_exponent": slope({size: self.seconds[size] for size in sizes[-LAST:]}),
            "multiply_add_exponent": slope(self.multiply_adds),
            "multiply_add_last_exponent": slope({size: self.multiply_adds[size] for size in sizes[-LAST:]}),
            "seconds": self.seconds,
        }


def slope(values: dict[int, float]) -> float:
    """The exponent of a power law through these points, by least squares of the logarithms."""
    pairs = [(math.log(size), math.log(value)) for size, value in values.items()]
    x_mean, y_mean = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return sum((x - x_mean) * (y - y_mean) for x, y in pairs) / sum((x - x_mean) ** 2 for x, _ in pairs)


def whole(config: ModelConfig, *, tokens: int, length: int, precision: str, trains: bool) -> Point:
    """The model: forward and backward, or its encoder alone."""
    sentences = max(1, tokens // length)
    model = build_transformer(config).train(trains)
    batch = equal_batches(config, count=1, sentences=sentences, length=length)[0]
    counts = count_multiply_adds(config, source_length=length, target_length=length)
    if trains:
        objective = Likelihood(0.1)

        def run() -> None:
            model.zero_grad()
            objective.sums(model, batch, precision=precision)[0].backward()

        return Point(run, 2 * sentences * length, 3 * (counts.source_token + counts.target_token) / 2)

    def encode() -> Tensor:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            return model.encode(batch.source_BS, None)

    return Point(encode, sentences * length, counts.encoder)


def layer(kind: str, d_model: int, *, tokens: int, length: int) -> Point:
    """One layer of Table 1, forward and backward."""
    sentences = max(1, tokens // length)
    x_BTD = torch.randn(sentences, length, d_model, requires_grad=True)
    function, multiply_adds = LAYERS[kind](d_model, length)

    def run() -> None:
        function(x_BTD).sum().backward()

    return Point(run, sentences * length, 3 * multiply_adds)


def attention(d_model: int, length: int) -> tuple[Callable[[Tensor], Tensor], int]:
    """Scores, softmax and sums of values, without projections, by torch's fused kernel."""

    def function(x_BTD: Tensor) -> Tensor:
        heads = x_BTD.unflatten(-1, (-1, HEAD)).transpose(1, 2)
        return functional.scaled_dot_product_attention(heads, heads, heads)

    return function, 2 * length * d_model


def restricted(d_model: int, length: int) -> tuple[Callable[[Tensor], Tensor], int]:
    """The same, each token among the 16 of its block."""
    whole_attention, _ = attention(d_model, BLOCK)
    return lambda x_BTD: whole_attention(x_BTD.unflatten(1, (-1, BLOCK)).flatten(0, 1)), 2 * BLOCK * d_model


def recurrent(d_model: int, length: int) -> tuple[Callable[[Tensor], Tensor], int]:
    """An Elman layer."""
    module = nn.RNN(d_model, d_model, batch_first=True)
    return lambda x_BTD: module(x_BTD)[0], 2 * d_model * d_model


def convolution(d_model: int, length: int) -> tuple[Callable[[Tensor], Tensor], int]:
    """A convolution over neighbouring tokens."""
    module = nn.Conv1d(d_model, d_model, KERNEL, padding=KERNEL // 2)
    return lambda x_BTD: module(x_BTD.transpose(1, 2)), KERNEL * d_model * d_model


LAYERS = {
    "self-attention alone": attention,
    "in blocks of 16": restricted,
    "recurrent layer": recurrent,
    "convolution, k = 3": convolution,
}
ORDERS = {  # a token, against n and against d
    "self-attention alone": ("n^1", "d^1"),
    "in blocks of 16": ("n^0", "d^1"),
    "recurrent layer": ("n^0", "d^2"),
    "convolution, k = 3": ("n^0", "d^2"),
}


def sized(d_model: int, depth: int = DEPTH) -> ModelConfig:
    """A model of this width and depth, heads of 64, the paper's d_ff."""
    return ModelConfig(
        vocab_size=VOCABULARY,
        d_model=d_model,
        d_ff=4 * d_model,
        num_heads=d_model // HEAD,
        num_encoder_layers=depth,
        num_decoder_layers=depth,
    )


def sweeps(settings: argparse.Namespace) -> list[Sweep]:
    """All that is measured."""
    tokens, precision = settings.tokens, settings.precision
    found: list[Sweep] = []
    for name, trains in (("training", True), ("encoding", False)):

        def model(config: ModelConfig, length: int, trains: bool = trains) -> Callable[[], Point]:
            return lambda: whole(config, tokens=tokens, length=length, precision=precision, trains=trains)

        by_length = {length: model(sized(WIDTH), length) for length in settings.lengths}
        by_width = {width: model(sized(width), LENGTH) for width in settings.widths}
        by_depth = {depth: model(sized(WIDTH, depth), LENGTH) for depth in settings.depths}
        found += [
            Sweep(name, "length n", "n^1 + d^2", by_length),
            Sweep(name, "d_model", "d^1 + d^2", by_width),
            Sweep(name, "layers N", "N^1", by_depth),
        ]
    for kind in LAYERS:

        def alone(d_model: int, length: int, kind: str = kind) -> Callable[[], Point]:
            return lambda: layer(kind, d_model, tokens=tokens, length=length)

        of_length, of_width = ORDERS[kind]
        found.append(Sweep(kind, "length n", of_length, {length: alone(WIDTH, length) for length in settings.lengths}))
        found.append(Sweep(kind, "d_model", of_width, {width: alone(width, LENGTH) for width in settings.widths}))
    return found


def tell(found: Sequence[Sweep]) -> None:
    """Print the exponents, and the seconds behind them."""
    print(
        "| what | against | a token, by Table 1 | exponent, all points | last three | of multiply-adds | last three |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    for row in (sweep.row() for sweep in found):
        keys = ("exponent", "last_exponent", "multiply_add_exponent", "multiply_add_last_exponent")
        cells = [str(row[key]) for key in ("what", "against", "order")] + [f"{row[key]:.2f}" for key in keys]
        print(f"| {' | '.join(cells)} |")
    for against in dict.fromkeys(sweep.against for sweep in found):
        group = [sweep for sweep in found if sweep.against == against]
        print(f"\nMicroseconds a token:\n\n| {against} | {' | '.join(sweep.name for sweep in group)} |")
        print(f"|---:|{'---:|' * len(group)}")
        for size in group[0].seconds:
            print(f"| {size:,} | {' | '.join(f'{MICROSECONDS * sweep.seconds[size]:.2f}' for sweep in group)} |")


def draw(found: Sequence[Sweep], folder: Path) -> None:
    """One drawing against the length of sentences, one against the width of the model."""
    for against, file in (("length n", "cost-length.svg"), ("d_model", "cost-width.svg")):
        lines = {
            sweep.name: [(size, MICROSECONDS * seconds) for size, seconds in sweep.seconds.items()]
            for sweep in found
            if sweep.against == against
        }
        document = plot(
            lines,
            title=f"Microseconds a token against {against}",
            x_label="tokens of a sentence, n" if against == "length n" else "d_model",
            y_label="microseconds a token",
        )
        (folder / file).write_text(document, encoding="utf-8")


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help=f"multiples of {BLOCK}")
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS, help=f"multiples of {HEAD}")
    parser.add_argument("--depths", type=int, nargs="+", default=DEPTHS)
    parser.add_argument("--tokens", type=int, default=4096, help="a batch, on each side")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32", help="of the whole model")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--plots", type=Path, help="a folder for the drawings")
    parser.add_argument("--json", type=Path)
    settings = parser.parse_args()
    if min(len(settings.lengths), len(settings.widths), len(settings.depths)) < 2:
        parser.error("an exponent needs two sizes at least of --lengths, of --widths and of --depths")
    settle_memory()
    torch.set_num_threads(settings.threads)
    found = sweeps(settings)
    for _ in range(settings.rounds):
        for sweep in found:
            sweep.measure()
    tell(found)
    if settings.plots is not None:
        draw(found, settings.plots)
    if settings.json is not None:
        settings.json.write_text(json.dumps([sweep.row() for sweep in found], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

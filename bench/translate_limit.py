"""How fast translating could be: what it must multiply and read, counted, and how fast this machine does it, measured.

    python bench/translate_limit.py '{"model": {...}}'

As a program (``bench/translate.py`` runs one on each core at once) it measures one core at each line of standard input.
Letters are those of headway/model/size.py: d = d_model, ff = d_ff, K and U = widths of all queries and of all mixed
values, L and W the same for the heads of keys and values, V = vocabulary.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.config.model_config import ModelConfig
from headway.engine.layout import BLOCK, GROUP
from headway.model.size import NORM_VECTORS, count_multiply_adds

ROWS = (128, 512)  # of activations: what a replica works on side by side, and more
CHUNK = 512  # outputs of the vocabulary that the engine computes at a time
GATED = "swiglu"


@dataclass(frozen=True)
class Matrix:
    """Weights of one product: ``outputs`` are those of parts that are laid out one below the other."""

    outputs: tuple[int, ...]
    inputs: int
    has_bias: bool = False

    @property
    def weights(self) -> int:
        """Of the model, padding not counted."""
        return sum(self.outputs) * self.inputs

    def stored(self, *, is_int8: bool) -> int:
        """Bytes in the packed file: weights, in 8 bits a scale of 4 bytes an output, and the bias."""
        rows = sum(whole(part, BLOCK) for part in self.outputs)
        numbers = rows * whole(self.inputs, GROUP) if is_int8 else 4 * rows * self.inputs
        return numbers + 4 * rows * (int(is_int8) + int(self.has_bias))


def whole(count: int, multiple: int) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


@dataclass(frozen=True)
class Parts:
    """The products of a model: of all encoder layers; of what decoder layers make of a source, once; of a step."""

    encoder: tuple[Matrix, ...]
    memory: tuple[Matrix, ...]
    step: tuple[Matrix, ...]  # through all decoder layers, the vocabulary last
    norm_floats: tuple[int, int]  # numbers of the norms of the encoder and of the decoder


def parts(config: ModelConfig) -> Parts:
    """Every matrix of the packed model, as often as there are layers."""
    d, bias = config.d_model, config.attention_bias
    heads, shared = config.num_heads, config.kv_heads
    query, mixed = heads * config.key_size, heads * config.value_size
    key, value = shared * config.key_size, shared * config.value_size
    gates = (config.d_ff,) if config.activation == GATED else ()
    has_bias = not gates
    own = (Matrix((query, key, value), d, bias), Matrix((d,), mixed, bias))
    feed_forward = (Matrix((*gates, config.d_ff), d, has_bias), Matrix((d,), config.d_ff, has_bias))
    cross = (Matrix((query,), d, bias), Matrix((d,), mixed, bias))
    encoders, decoders = config.num_encoder_layers, config.num_decoder_layers
    norm = NORM_VECTORS[config.norm] * whole(d, BLOCK)
    final = int(config.norm_placement == "pre")
    return Parts(
        encoder=(*own, *feed_forward) * encoders,
        memory=(Matrix((key, value), d, bias),) * decoders,
        step=(*own, *cross, *feed_forward) * decoders + (Matrix((config.vocab_size,), d, config.output_bias),),
        norm_floats=((2 * encoders + final) * norm, (3 * decoders + final) * norm),
    )


@dataclass(frozen=True)
class MultiplyAdds:
    """Of one sentence. Each is two operations."""

    products: int  # of rows with matrices of weights
    attention: int  # queries with keys, weights with values

    @property
    def operations(self) -> int:
        """Those of the products alone, which is what runs in 8 bits."""
        return 2 * self.products


def multiply_adds(config: ModelConfig, *, source: int, steps: int, beam: int) -> MultiplyAdds:
    """Of a source of so many tokens and a search of so many steps, EOS counted in both.

    The first step has one hypothesis, all others ``beam`` of them. At step t (from 1) a hypothesis sees t tokens.
    """
    products = attention = 0
    bare = count_multiply_adds(config, source_length=0, target_length=0)
    encoding = count_multiply_adds(config, source_length=source, target_length=0)
    products += source * bare.source_token
    attention += source * (encoding.encoder - bare.encoder)
    for step in range(1, steps + 1):
        rows = 1 if step == 1 else beam
        seen = count_multiply_adds(config, source_length=source, target_length=step)
        products += rows * bare.target_token
        attention += rows * (seen.decoder - bare.decoder)
    return MultiplyAdds(products, attention)


@dataclass(frozen=True)
class Bytes:
    """Of weights that one sentence makes an engine read; the rows of the embeddings, a few hundred bytes, left out."""

    once: int  # encoder, and keys and values of the source
    step: int  # the decoder and the whole vocabulary

    def sentence(self, steps: int) -> int:
        """All steps of one sentence."""
        return self.once + steps * self.step


def weight_bytes(config: ModelConfig, *, precision: str) -> Bytes:
    """As they stand in the packed file, padding, scales, biases and norms counted."""
    found, is_int8 = parts(config), precision == "int8"

    def stored(matrices: Sequence[Matrix]) -> int:
        return sum(matrix.stored(is_int8=is_int8) for matrix in matrices)

    encoder, decoder = (4 * count for count in found.norm_floats)
    return Bytes(once=stored(found.encoder) + stored(found.memory) + encoder, step=stored(found.step) + decoder)


def fastest(action: Callable[[], object], *, at_least: float) -> float:
    """Seconds of the fastest of as many runs as that time allows, three at least."""
    best, spent, runs = math.inf, 0.0, 0
    while spent < at_least or runs < 3:
        begin = time.perf_counter()
        action()
        taken = time.perf_counter() - begin
        best, spent, runs = min(best, taken), spent + taken, runs + 1
    return best


def shapes(config: ModelConfig) -> dict[tuple[int, int], int]:
    """Outputs and inputs of a decoding step's products, and how often each comes; the vocabulary is cut in chunks."""
    found: dict[tuple[int, int], int] = {}
    *layers, vocabulary = parts(config).step
    for matrix in layers:
        shape = (sum(whole(part, BLOCK) for part in matrix.outputs), matrix.inputs)
        found[shape] = found.get(shape, 0) + 1
    chunks = -(-sum(vocabulary.outputs) // CHUNK)
    shape = (CHUNK, vocabulary.inputs)
    return {**found, shape: found.get(shape, 0) + chunks}


def matrix_speed(config: ModelConfig, *, at_least: float) -> dict[str, float]:
    """Operations a second of the engine's 8-bit products on one core: at a step's own shapes, and of the best shape."""
    from headway_native import Probe

    probe, random = Probe("auto"), np.random.default_rng(1)
    operations = seconds = best = 0.0
    for (outputs, inputs), count in shapes(config).items():
        weight = random.integers(1, 256, outputs * whole(inputs, GROUP), dtype=np.uint8)
        scale = np.full(outputs, 0.01, np.float32)
        for rows in ROWS:
            numbers = random.standard_normal((rows, inputs), dtype=np.float32)
            out = np.empty((rows, outputs), np.float32)
            described = {"scale": scale, "bias": None, "outputs": outputs, "inputs": inputs}

            def multiply(
                weight: np.ndarray = weight,
                described: dict = described,
                numbers: np.ndarray = numbers,
                out: np.ndarray = out,
            ) -> None:
                probe.product(weight, **described, rows=numbers, relu=False, out=out)

            once = fastest(multiply, at_least=at_least)
            done = 2 * rows * outputs * inputs
            best = max(best, done / once)
            if rows == ROWS[0]:
                operations, seconds = operations + count * done, seconds + count * once
    return {"own_shapes": operations / seconds, "best_shape": best}


def read_speed(num_bytes: int, *, at_least: float) -> float:
    """Bytes a second that one core reads, over and over, of an array of this size: its largest number is looked for."""
    array = np.random.default_rng(1).integers(0, 255, max(num_bytes, 4096), dtype=np.uint8)
    wide = array[: len(array) // 8 * 8].view(np.uint64)
    seconds = min(fastest(array.max, at_least=at_least), fastest(lambda: np.bitwise_or.reduce(wide), at_least=at_least))
    return len(array) / seconds


def main() -> None:
    """Measure once for each line, and print what was found as JSON."""
    spec = json.loads(sys.argv[1])
    config = ModelConfig.model_validate(spec["model"])
    print(json.dumps({}), flush=True)  # ready
    for line in sys.stdin:
        ask = json.loads(line)
        seconds = ask["seconds"]
        found = matrix_speed(config, at_least=seconds) if ask["what"] == "products" else {}
        if ask["what"] == "reading":
            found = {"reading": read_speed(ask["bytes"], at_least=seconds)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

"""What the scripts of training speed share: the models, their batches, and the matrix products that a step needs.

Shapes of a product: M rows, K summed over, N columns.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from headway.config.model_config import ModelConfig
from headway.config.presets import BASE, BIG, TINY
from headway.data.batch import Batch
from headway.data.batching import plan
from headway.data.loader import collate
from headway.data.prepared import Prepared, read_prepared
from headway.data.store import Store, StoreWriter

# Attention has biases, as in every peer, so that all have the same parameters.
MODELS = {
    **{
        name: preset.model_copy(update={"attention_bias": True})
        for name, preset in (("base", BASE), ("big", BIG), ("tiny", TINY))
    },
    "smallest": ModelConfig(  # to try the scripts with
        vocab_size=97, d_model=16, d_ff=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, attention_bias=True
    ),
}
# Words of a Multi30k caption (tokenised, lower-cased): mean and spread of their logarithm in English and in German.
ENGLISH, GERMAN = (2.522, 0.296), (2.468, 0.324)
SHORTEST, LONGEST = 2, 44
ALIKE = 0.7  # how much of a German length follows from the English one


def equal_batches(config: ModelConfig, *, count: int, sentences: int, length: int) -> list[Batch]:
    """Sentences of one length without padding, words drawn at random, EOS counted."""
    random = np.random.default_rng(1)
    sides = random.integers(4, config.vocab_size, (count, 2, sentences, length))
    sides[..., -1] = 3
    batches: list[Batch] = []
    for source_BS, target_out_BT in sides:
        target_in_BT = np.roll(target_out_BT, 1, axis=1)
        target_in_BT[:, 0] = 2
        batches.append(Batch(*(torch.from_numpy(ids.copy()) for ids in (source_BS, target_in_BT, target_out_BT))))
    return batches


def caption_lengths(pairs: int, seed: int = 1) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lengths of pairs, drawn as those of Multi30k's captions are spread."""
    random = np.random.default_rng(seed)
    first_P, own_P = random.standard_normal((2, pairs))
    second_P = ALIKE * first_P + math.sqrt(1 - ALIKE**2) * own_P
    source_P, target_P = (
        np.clip(np.exp(mean + spread * noise_P).round(), SHORTEST, LONGEST).astype(np.int32)
        for (mean, spread), noise_P in ((ENGLISH, first_P), (GERMAN, second_P))
    )
    return source_P, target_P


def write_captions(folder: Path, config: ModelConfig, *, pairs: int) -> Store:
    """A store of drawn captions; their words are drawn too, the frequent ones more often."""
    random = np.random.default_rng(2)
    with StoreWriter(folder, source_vocab_size=config.vocab_size, target_vocab_size=config.vocab_size) as writer:
        for lengths in zip(*caption_lengths(pairs), strict=True):
            source, target = (
                (4 + (config.vocab_size - 4) * random.random(length) ** 3).astype(int).tolist() for length in lengths
            )
            writer.append(source, target)
    return Store.open(folder)


def open_store(data: Path | None, config: ModelConfig, folder: Path, *, pairs: int) -> Store:
    """The training pairs of prepared data (or of a run's folder), or drawn ones."""
    if data is None:
        return write_captions(folder / "store", config, pairs=pairs)
    return read_data(data).store("train")


def read_data(data: Path) -> Prepared:
    """What ``headway prepare`` wrote, in this folder or in a run's."""
    for place in (data, data / "data", data / "training" / "data"):
        prepared = read_prepared(place)
        if prepared is not None:
            return prepared
    raise SystemExit(f"{data}: no prepared data; wanted a folder that `headway prepare` wrote")


def vocabulary_of(data: Path) -> int:
    """The largest vocabulary of prepared data."""
    prepared = read_data(data)
    return max(prepared.source_tokenizer.vocab_size, prepared.target_tokenizer.vocab_size)


def caption_batches(config: ModelConfig, data: Path | None, *, count: int, batch_tokens: int) -> list[Batch]:
    """The first batches of an epoch, as Headway plans them."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(data, config, Path(folder), pairs=29_000)
        steps = plan(
            store.source_lengths,
            store.target_lengths,
            batch_tokens=batch_tokens,
            microbatch_tokens=None,
            seed=1,
            epoch=0,
        )
        return [collate(store, rows) for (rows,) in steps[:count]]


def write_batches(path: Path, batches: Sequence[Batch]) -> None:
    """As arrays, so that a peer in another interpreter reads the same ones."""
    arrays = {
        f"{side}_{number}": getattr(batch, name).numpy()
        for number, batch in enumerate(batches)
        for side, name in (("source", "source_BS"), ("target_in", "target_in_BT"), ("target_out", "target_out_BT"))
    }
    np.savez(path, **arrays)


@dataclass(frozen=True)
class Product:
    """``count`` products of M x K and K x N; ``heads`` of them at once where it is attention."""

    m: int
    k: int
    n: int
    count: int
    heads: int = 1

    @property
    def flops(self) -> int:
        """Of the forward product and the two backward, all ``count`` of them."""
        return 3 * 2 * self.m * self.k * self.n * self.heads * self.count

    def seconds(self, dtype: torch.dtype, device: torch.device, *, at_least: float) -> float:
        """What forward and both backward products take once, the fastest in so many seconds."""
        shapes = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
        if self.heads > 1:
            shapes = tuple((self.heads, *shape) for shape in shapes)
        x, weight, gradient = (torch.randn(shape, device=device).to(dtype) for shape in shapes)
        out, x_gradient, weight_gradient = (torch.empty_like(tensor) for tensor in (gradient, x, weight))
        turned = weight.mT.contiguous()  # as a layer keeps it: N x K
        product = torch.mm if self.heads == 1 else torch.bmm
        fastest, spent, runs = math.inf, 0.0, 0
        while spent < at_least or runs < 3:
            begin = time.perf_counter()
            product(x, turned.mT, out=out)
            product(gradient, turned, out=x_gradient)
            product(x.mT, gradient, out=weight_gradient)
            if device.type == "cuda":
                torch.cuda.synchronize()
            taken = time.perf_counter() - begin
            fastest, spent, runs = min(fastest, taken), spent + taken, runs + 1
        return fastest


def products(config: ModelConfig, batch: Batch) -> list[Product]:
    """Every matrix product of a step over this batch, padding counted; layers that read the same input as one."""
    sentences, source = batch.source_BS.shape
    target = batch.target_in_BT.shape[1]
    d, ff, h, size = config.d_model, config.d_ff, config.num_heads, config.key_size
    sources, targets = sentences * source, sentences * target
    found: list[Product] = []
    for tokens, layers in ((sources, config.num_encoder_layers), (targets, config.num_decoder_layers)):
        found += [Product(tokens, d, 3 * d, layers), Product(tokens, d, d, layers)]
        found += [Product(tokens, d, ff, layers), Product(tokens, ff, d, layers)]
    decoders = config.num_decoder_layers
    found += [Product(sources, d, 2 * d, decoders), Product(targets, d, d, 2 * decoders)]
    found.append(Product(targets, d, config.vocab_size, 1))
    for layers, queries, keys in (
        (config.num_encoder_layers, source, source),
        (decoders, target, target),
        (decoders, target, source),
    ):
        found.append(Product(queries, size, keys, layers, heads=sentences * h))
        found.append(Product(queries, keys, size, layers, heads=sentences * h))
    return found


@dataclass(frozen=True)
class MatrixSpeed:
    """FLOPs a second: over all linear layers and the output at their own shapes, and of the fastest shape."""

    own_shapes: float
    fastest_shape: float


def matrix_speed(config: ModelConfig, batch: Batch, *, precision: str, device: str, at_least: float) -> MatrixSpeed:
    """Measure every linear layer's products; attention's are left out of the speed, being small and many."""
    dtype = {"float32": torch.float32, "bf16": torch.bfloat16}[precision]
    flops = seconds = fastest = 0.0
    for product in products(config, batch):
        if product.heads == 1:
            once = product.seconds(dtype, torch.device(device), at_least=at_least)
            flops, seconds = flops + product.flops, seconds + product.count * once
            fastest = max(fastest, product.flops / product.count / once)
    return MatrixSpeed(flops / seconds, fastest)

"""Training speed beside the peers: the same model, the same batches, in turn, each case in a process of its own.

    python bench/train.py --model base --threads 2
    python bench/train.py --model tiny --threads 2 --data runs/multi30k-en-de
    python bench/train.py --memory
    python bench/train.py --waiting --model tiny

Every case begins with the same weights and goes through the same batches with the same label smoothing; the losses of
its first steps are printed, so that a comparison of unlike things shows. Rounds go through all cases in turn; told are
the median and the range. Tokens are real ones, of source and target, EOS counted. The limit is what the model's matrix
products alone would allow: their FLOPs (forward and two backward) at the bf16 speed that torch's products have at the
model's own shapes, measured in every round.

Another toolkit may live in an interpreter of its own: --peer-python joeynmt=PATH/bin/python.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch

from headway.config.schema import ModelConfig, TrainConfig
from headway.data.batch import Batch
from headway.data.loader import batches
from headway.model.build import build_transformer, export_weights
from headway.train.objective import Likelihood
from headway.train.optimizer import build_adam
from headway.train.step import train_step
from trainers import LABEL_SMOOTHING, LEARNING_RATE, SEED, peak_bytes
from workload import (
    MODELS,
    MatrixSpeed,
    caption_batches,
    equal_batches,
    matrix_speed,
    open_store,
    products,
    vocabulary_of,
    write_batches,
)

HERE = Path(__file__).parent
NAMES = {"headway": "Headway", "hf": "HF MarianMT", "torch": "torch.nn.Transformer", "joeynmt": "JoeyNMT"}
PRECISIONS = ("float32", "bf16")
TRIAL_STEPS = 2
SHOWN_LOSSES = 3
MEMORY_STEPS = (12_500, 25_000)  # tokens on each side of a step
MEMORY_MICROBATCHES = (1_568, 3_136, 6_272, 12_544)
SENTENCE = 28  # tokens on each side, EOS counted


class Race:
    """The cases of one run, and what they gave round after round."""

    def __init__(self, settings: argparse.Namespace, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.config, self.batches = model_and_batches(settings)
        self.pythons = dict(pair.split("=", 1) for pair in settings.peer_python)
        self.attention: dict[str, str] = {}
        self.trials: dict[str, float] = {}
        self.results: dict[str, list[dict]] = {}
        self.speeds: dict[str, list[MatrixSpeed]] = {precision: [] for precision in PRECISIONS}
        write_batches(folder / "batches.npz", self.batches)
        np.savez(folder / "weights.npz", **export_weights(build_transformer(self.config, seed=SEED)))

    def run_case(self, trainer: str, precision: str, *, attention: str, steps: int) -> dict:
        """One process: the speed, losses and peak memory of one case."""
        specification = {
            "trainer": trainer,
            "precision": precision,
            "attention": attention,
            "sizes": self.config.model_dump(),
            "batches": str(self.folder / "batches.npz"),
            "weights": str(self.folder / "weights.npz"),
            "warm_up": self.settings.warm_up,
            "steps": steps,
            "threads": self.settings.threads,
            "device": self.settings.device,
        }
        path = self.folder / "specification.json"
        path.write_text(json.dumps(specification), encoding="utf-8")
        finished = subprocess.run(
            [self.pythons.get(trainer, sys.executable), str(HERE / "trainers.py"), str(path)],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(self.settings.threads)},
        )
        if finished.returncode:
            raise SystemExit(f"{trainer}, {precision}:\n{finished.stderr}")
        return json.loads(finished.stdout)

    def choose_attention(self, precision: str) -> str:
        """The implementation that is faster in transformers on this machine, tried for some steps."""
        if self.settings.hf_attention != "auto":
            return self.settings.hf_attention
        for attention in ("eager", "sdpa"):
            result = self.run_case("hf", precision, attention=attention, steps=TRIAL_STEPS)
            self.trials[f"{attention}, {precision}"] = result["tokens_per_second"]
        return max(("eager", "sdpa"), key=lambda attention: self.trials[f"{attention}, {precision}"])

    def run(self) -> None:
        """All rounds."""
        cases = [case.rsplit("-", 1) for case in self.settings.cases]
        for trainer, precision in cases:
            if trainer == "hf":
                self.attention[precision] = self.choose_attention(precision)
        for number in range(self.settings.rounds):
            for precision in PRECISIONS:
                self.speeds[precision].append(
                    matrix_speed(
                        self.config,
                        middle_batch(self.batches),
                        precision=precision,
                        device=self.settings.device,
                        at_least=self.settings.matrix_seconds,
                    )
                )
            for trainer, precision in cases:
                attention = self.attention.get(precision, "sdpa")
                result = self.run_case(trainer, precision, attention=attention, steps=self.settings.steps)
                self.results.setdefault(f"{trainer}-{precision}", []).append(result)
                told = f"round {number + 1}, {trainer}, {precision}: {result['tokens_per_second']:,.0f} tokens/s"
                print(told, file=sys.stderr, flush=True)

    @property
    def flops_per_token(self) -> float:
        """Of a real token: all products of all batches, padding counted, over the real tokens."""
        flops = sum(product.flops for batch in self.batches for product in products(self.config, batch))
        return flops / sum(batch.num_tokens for batch in self.batches)

    def speed(self, precision: str, name: str) -> float:
        """The median over rounds of one measured matrix speed, FLOPs a second."""
        return statistics.median(getattr(speed, name) for speed in self.speeds[precision])

    def rates(self, case: str) -> list[float]:
        """Tokens a second, round by round."""
        return [result["tokens_per_second"] for result in self.results.get(case, [])]

    def ratio(self, case: str, other: str) -> float | None:
        """The median over rounds of what this case did beside the other one in the same round."""
        pairs = list(zip(self.rates(case), self.rates(other), strict=False))
        return statistics.median(mine / its for mine, its in pairs) if pairs else None

    def summary(self) -> dict:
        """Everything that was measured, for --json."""
        limit = self.speed("bf16", "own_shapes") / self.flops_per_token
        return {
            "model": self.settings.model,
            "threads": self.settings.threads,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "attention": self.attention,
            "attention_trials": self.trials,
            "flops_per_token": self.flops_per_token,
            "matrix_flops_per_second": {
                precision: {name: self.speed(precision, name) for name in ("own_shapes", "fastest_shape")}
                for precision in PRECISIONS
            },
            "limit_tokens_per_second": limit,
            "cases": {
                case: {
                    "tokens_per_second": statistics.median(self.rates(case)),
                    "rounds": self.rates(case),
                    "ratio_to_hf_float32": self.ratio(case, "hf-float32"),
                    "ratio_to_hf_bf16": self.ratio(case, "hf-bf16"),
                    "share_of_limit": statistics.median(self.rates(case)) / limit,
                    "peak_bytes": max(result["peak_bytes"] for result in results),
                    "parameters": results[0]["parameters"],
                    "first_losses": results[0]["losses"][:SHOWN_LOSSES],
                }
                for case, results in self.results.items()
            },
        }


def model_and_batches(settings: argparse.Namespace) -> tuple[ModelConfig, list[Batch]]:
    """Sentences of 28 tokens; for the tiny model captions of unlike length, padded as Headway plans them."""
    config = MODELS[settings.model]
    if settings.data is not None:
        config = config.model_copy(update={"vocab_size": vocabulary_of(settings.data)})
    count = settings.warm_up + settings.steps
    if settings.model == "tiny" or settings.data is not None:
        return config, caption_batches(config, settings.data, count=count, batch_tokens=settings.batch_tokens)
    sentences = settings.sentences
    return config, equal_batches(config, count=count, sentences=sentences, length=settings.length)


def middle_batch(found: list[Batch]) -> Batch:
    """The one whose number of positions is the median."""
    return sorted(found, key=lambda batch: batch.num_padded_tokens)[len(found) // 2]


def race(settings: argparse.Namespace) -> dict:
    """Run all cases and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        contest = Race(settings, Path(folder))
        contest.run()
    found = contest.summary()
    print("| case | tokens a second | range | x HF float32 | x HF bf16 | peak memory | of the limit |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, case in found["cases"].items():
        trainer, precision = name.rsplit("-", 1)
        cells = [
            f"{NAMES[trainer]}, {precision}",
            f"{case['tokens_per_second']:,.0f}",
            f"{min(case['rounds']):,.0f} to {max(case['rounds']):,.0f}",
            *(f"{case[key]:.2f}" if case[key] else "" for key in ("ratio_to_hf_float32", "ratio_to_hf_bf16")),
            f"{case['peak_bytes'] / 2**30:.2f} GiB",
            f"{case['share_of_limit']:.0%}",
        ]
        print(f"| {' | '.join(cells)} |")
    tell_limit(found)
    return found


def tell_limit(found: dict) -> None:
    """What stands below the table."""
    print()
    print(f"{found['flops_per_token'] / 1e6:,.1f} million FLOPs a token in matrix products, forward and backward.")
    for precision, speeds in found["matrix_flops_per_second"].items():
        own, fastest = (speeds[name] / 1e9 for name in ("own_shapes", "fastest_shape"))
        print(
            f"Matrix products, {precision}: {own:,.0f} GFLOP/s at the model's own shapes, {fastest:,.0f} at the best."
        )
    best = found["matrix_flops_per_second"]["bf16"]["fastest_shape"] / found["flops_per_token"]
    print(f"Limit in bf16: {found['limit_tokens_per_second']:,.0f} tokens/s ({best:,.0f} if all shapes were the best).")
    for name, rate in found["attention_trials"].items():
        print(f"HF attention tried: {name}: {rate:,.0f} tokens/s")
    for name, case in found["cases"].items():
        losses = ", ".join(f"{loss:.4f}" for loss in case["first_losses"])
        print(f"{name}: {case['parameters']:,} parameters; losses of the first steps {losses}")


def own_process(function: Callable, *arguments: object) -> dict:
    """Call a function in a fresh process, so that its peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def headway_trainer(config: ModelConfig, precision: str) -> Callable[[list[Batch], int], None]:
    """Steps of Headway's."""
    model = build_transformer(config, seed=SEED).train()
    optimizer = build_adam(model, TrainConfig())

    def step(microbatches: list[Batch], number: int) -> None:
        train_step(
            model,
            optimizer,
            batches=microbatches,
            step=number,
            seed=SEED,
            learning_rate=LEARNING_RATE,
            objective=Likelihood(LABEL_SMOOTHING),
            precision=precision,
        )

    return step


def measure_memory(model: str, step_tokens: int, microbatch_tokens: int, precision: str, threads: int) -> dict:
    """Peak memory of one step, after a small one that makes Adam's moments."""
    torch.set_num_threads(threads)
    config = MODELS[model]
    step = headway_trainer(config, precision)
    sentences = max(1, microbatch_tokens // SENTENCE)
    count = max(1, round(step_tokens / (sentences * SENTENCE)))
    step(equal_batches(config, count=1, sentences=1, length=SENTENCE), 1)
    before = peak_bytes("cpu")
    step(equal_batches(config, count=count, sentences=sentences, length=SENTENCE), 2)
    tokens = count * sentences * SENTENCE
    return {
        "step_tokens": tokens,
        "microbatch_tokens": sentences * SENTENCE,
        "before": before,
        "peak": peak_bytes("cpu"),
    }


def memory(settings: argparse.Namespace) -> dict:
    """Print the peak for several sizes of step and microbatch."""
    rows: list[dict] = []
    print("| precision | tokens a side, a step | of a microbatch | peak memory | of it before the first full step |")
    print("|---|---:|---:|---:|---:|")
    for precision in PRECISIONS if settings.precision is None else (settings.precision,):
        for step_tokens in settings.memory_steps:
            for microbatch_tokens in settings.memory_microbatches:
                row = own_process(
                    measure_memory, settings.model, step_tokens, microbatch_tokens, precision, settings.threads
                )
                rows.append({"precision": precision, **row})
                sizes = f"{row['step_tokens']:,} | {row['microbatch_tokens']:,}"
                peaks = " | ".join(f"{row[key] / 1e9:.2f} GB" for key in ("peak", "before"))
                print(f"| {precision} | {sizes} | {peaks} |", flush=True)
    return {"model": settings.model, "rows": rows}


def measure_waiting(config: ModelConfig, settings: argparse.Namespace) -> dict:
    """Seconds between two steps that pass in the loader, and all seconds."""
    torch.set_num_threads(settings.threads)
    step = headway_trainer(config, settings.precision or "bf16")
    waited: list[float] = []
    total: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(settings.data, config, Path(folder), pairs=29_000)
        loader = batches(store, batch_tokens=settings.batch_tokens, seed=SEED)
        for number in range(1, settings.warm_up + settings.steps + 1):
            begin = time.perf_counter()
            _, microbatches = next(loader)
            waited.append(time.perf_counter() - begin)
            step(microbatches, number)
            total.append(time.perf_counter() - begin)
        del loader
    counted = slice(settings.warm_up, None)
    return {
        "steps": settings.steps,
        "first_wait": waited[0],
        "waited": sum(waited[counted]),
        "seconds": sum(total[counted]),
    }


def waiting(settings: argparse.Namespace) -> dict:
    """Print the share of a step that is spent waiting for data."""
    config = MODELS[settings.model]
    if settings.data is not None:
        config = config.model_copy(update={"vocab_size": vocabulary_of(settings.data)})
    found = own_process(measure_waiting, config, settings)
    found["share"] = found["waited"] / found["seconds"]
    print(
        f"{found['steps']} steps took {found['seconds']:.2f} s, of which {found['waited']:.4f} s waiting for data: "
        f"{found['share']:.2%} (the first batch, with the plan of its epoch: {found['first_wait']:.3f} s)"
    )
    return found


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=MODELS, default="base")
    parser.add_argument("--data", type=Path, help="prepared data, or a run's folder; else drawn")
    parser.add_argument("--cases", type=lambda text: text.split(","), help="trainer-precision, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="counted in each round")
    parser.add_argument("--warm-up", type=int, help="steps before them")
    parser.add_argument("--sentences", type=int, default=96, help="a batch, where all have one length")
    parser.add_argument("--length", type=int, default=SENTENCE, help="tokens a side of each of them")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="on the longer side, where lengths differ")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--hf-attention", choices=["auto", "sdpa", "eager"], default="auto")
    parser.add_argument("--peer-python", action="append", default=[], metavar="joeynmt=PATH")
    parser.add_argument("--matrix-seconds", type=float, default=0.3, help="of measuring each matrix product")
    parser.add_argument("--memory", action="store_true", help="peak memory by microbatch instead")
    parser.add_argument("--memory-steps", type=int, nargs="+", default=MEMORY_STEPS)
    parser.add_argument("--memory-microbatches", type=int, nargs="+", default=MEMORY_MICROBATCHES)
    parser.add_argument("--waiting", action="store_true", help="the share of waiting for data instead")
    parser.add_argument("--precision", choices=PRECISIONS, help="of --memory (both) and --waiting (bf16)")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    settings = parser.parse_args()
    many = settings.model == "tiny" or settings.waiting  # short steps, of unlike shapes
    settings.steps = (20 if many else 3) if settings.steps is None else settings.steps
    settings.warm_up = (4 if many else 1) if settings.warm_up is None else settings.warm_up
    if settings.cases is None:
        trainers = ["headway", "hf", "torch", *(pair.split("=")[0] for pair in settings.peer_python)]
        settings.cases = [f"{trainer}-{precision}" for trainer in trainers for precision in PRECISIONS]
    return settings


def main() -> None:
    """Measure, print, write."""
    settings = parse()
    torch.set_num_threads(settings.threads)
    measure = memory if settings.memory else waiting if settings.waiting else race
    found = measure(settings)
    if settings.json is not None:
        settings.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Training speed beside the peers: the same model, the same batches, in turn, each case in a process of its own.

    python bench/train.py --model base --threads 2
    python bench/train.py --model base --threads 2 --quick
    python bench/train.py --model tiny --threads 2 --data runs/multi30k-en-de
    python bench/train.py --memory
    python bench/train.py --waiting --model tiny

Every case begins with the same weights and goes through the same batches with the same label smoothing; the losses of
its first steps are printed, so that a comparison of unlike things shows. Rounds go through all cases in turn; told are
the median and the range. Tokens are real ones, of source and target, EOS counted.

A limit is what the model's matrix products alone would allow: their FLOPs (forward and two backward) at the speed that
torch's products have, measured in every round: at the model's own shapes, and as if all were as fast as the best shape.

`headway train` has the C library keep freed memory and oneDNN the code of few shapes (headway/train/memory.py), and so
has its case here. That helps any process of torch, so every peer has two rows: as people run it, and "kept memory",
with the same settings in its environment. transformers has two implementations of attention: each runs in every round,
and the row of HF is the one whose median is higher.

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
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.data.loader import batches
from headway.model.build import build_transformer, export_weights
from headway.train.memory import LARGEST, SHAPES, settle_memory
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
LIMITED = ("bf16", "float32")  # the order of the limits in the table
ATTENTIONS = ("eager", "sdpa")
KEPT_MEMORY = {  # what settle_memory does, for a process that has no Headway: glibc and oneDNN read it as they begin
    **SHAPES,
    "MALLOC_MMAP_THRESHOLD_": str(LARGEST),
    "MALLOC_TRIM_THRESHOLD_": str(LARGEST),
    "MALLOC_ARENA_MAX": "1",
}
KEPT = "kept"
RIVALS = ("hf-float32", "hf-float32-kept", "hf-bf16", "hf-bf16-kept")
LIMITS = {"own_shapes": "the model's own shapes", "fastest_shape": "the best shape"}
WANTED_SHARE = 0.5  # of the limit, in bf16
SHOWN_LOSSES = 3
MEMORY_STEPS = (12_500, 25_000)  # tokens on each side of a step
MEMORY_MICROBATCHES = (1_568, 3_136, 6_272, 12_544)
SENTENCE = 28  # tokens on each side, EOS counted


@dataclass(frozen=True)
class Case:
    """One row: who trains, in which precision, and whether a peer is given Headway's settings of memory."""

    trainer: str
    precision: str
    kept: bool = False

    def __str__(self) -> str:
        return "-".join([self.trainer, self.precision, *([KEPT] if self.kept else [])])

    @property
    def title(self) -> str:
        """As the table has it."""
        return ", ".join([NAMES[self.trainer], self.precision, *(["kept memory"] if self.kept else [])])

    def environment(self, outer: Mapping[str, str], *, threads: int) -> dict[str, str]:
        """Of its process: what a shell may say of memory is taken out, so that a plain row is plain."""
        found = {name: value for name, value in outer.items() if name not in KEPT_MEMORY}
        return {**found, **(KEPT_MEMORY if self.kept else {}), "OMP_NUM_THREADS": str(threads)}


def parse_case(text: str) -> Case:
    """``hf-bf16``, or ``hf-bf16-kept``."""
    match text.split("-"):
        case [trainer, precision] if trainer in NAMES and precision in PRECISIONS:
            return Case(trainer, precision)
        case [trainer, precision, "kept"] if trainer in NAMES and precision in PRECISIONS and trainer != "headway":
            return Case(trainer, precision, kept=True)
    wanted = f"{', '.join(NAMES)} with -{' or -'.join(PRECISIONS)}, and of a peer -{KEPT} behind it"
    raise argparse.ArgumentTypeError(f"{text!r} is no case; wanted {wanted} (Headway always keeps memory)")


def parse_cases(text: str) -> list[Case]:
    """Several, by commas."""
    return [parse_case(part) for part in text.split(",")]


class Race:
    """The cases of one run, and what they gave round after round."""

    def __init__(self, settings: argparse.Namespace, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.config, self.batches = model_and_batches(settings)
        self.pythons = dict(pair.split("=", 1) for pair in settings.peer_python)
        self.results: dict[str, dict[str, list[dict]]] = {}  # by case, then by attention
        self.speeds: dict[str, list[MatrixSpeed]] = {precision: [] for precision in PRECISIONS}
        write_batches(folder / "batches.npz", self.batches)
        np.savez(folder / "weights.npz", **export_weights(build_transformer(self.config, seed=SEED)))

    def run_case(self, case: Case, *, attention: str) -> dict:
        """One process: the speed, losses and peak memory of one case."""
        specification = {
            "trainer": case.trainer,
            "precision": case.precision,
            "attention": attention,
            "sizes": self.config.model_dump(),
            "batches": str(self.folder / "batches.npz"),
            "weights": str(self.folder / "weights.npz"),
            "warm_up": self.settings.warm_up,
            "steps": self.settings.steps,
            "threads": self.settings.threads,
            "device": self.settings.device,
        }
        path = self.folder / "specification.json"
        path.write_text(json.dumps(specification), encoding="utf-8")
        finished = subprocess.run(
            [self.pythons.get(case.trainer, sys.executable), str(HERE / "trainers.py"), str(path)],
            check=False,
            capture_output=True,
            text=True,
            env=case.environment(os.environ, threads=self.settings.threads),
        )
        if finished.returncode:
            raise SystemExit(f"{case}:\n{finished.stderr}")
        return json.loads(finished.stdout)

    def attentions(self, case: Case) -> tuple[str, ...]:
        """What there is to choose from in transformers; of the others the one they have."""
        if case.trainer != "hf":
            return ("own",)
        return ATTENTIONS if self.settings.hf_attention == "auto" else (self.settings.hf_attention,)

    def run(self) -> None:
        """All rounds."""
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
            for case in self.settings.cases:
                for attention in self.attentions(case):
                    result = self.run_case(case, attention=attention)
                    self.results.setdefault(str(case), {}).setdefault(attention, []).append(result)
                    told = f"{case}, attention {attention}: {result['tokens_per_second']:,.0f} tokens/s"
                    print(f"round {number + 1}, {told}", file=sys.stderr, flush=True)

    @property
    def flops_per_token(self) -> float:
        """Of a real token: all products of all batches, padding counted, over the real tokens."""
        flops = sum(product.flops for batch in self.batches for product in products(self.config, batch))
        return flops / sum(batch.num_tokens for batch in self.batches)

    def limits(self, precision: str) -> dict[str, float]:
        """Tokens a second of the matrix products alone, by the speed that is taken: the median over rounds."""
        return {
            name: statistics.median(getattr(speed, name) for speed in self.speeds[precision]) / self.flops_per_token
            for name in LIMITS
        }

    def medians(self, case: str) -> dict[str, float]:
        """Tokens a second by attention."""
        found = self.results.get(case, {})
        return {attention: statistics.median(rates_of(results)) for attention, results in found.items()}

    def fastest(self, case: str) -> list[dict]:
        """Round by round, what the attention with the highest median gave; nothing where the case did not run."""
        medians = self.medians(case)
        return self.results[case][max(medians, key=medians.__getitem__)] if medians else []

    def ratio(self, case: str, other: str) -> float | None:
        """The median over rounds of what this case did beside the other one in the same round."""
        pairs = list(zip(rates_of(self.fastest(case)), rates_of(self.fastest(other)), strict=False))
        return statistics.median(mine / its for mine, its in pairs) if pairs else None

    def row(self, case: Case) -> dict:
        """What the table and --json have of one case."""
        results = self.fastest(str(case))
        rate = statistics.median(rates_of(results))
        limited = dict.fromkeys(("bf16", case.precision))  # float32 against both
        return {
            "title": case.title,
            "tokens_per_second": rate,
            "rounds": rates_of(results),
            "attentions": self.medians(str(case)),
            "ratios": {rival: self.ratio(str(case), rival) for rival in RIVALS},
            "shares": {kind: {name: rate / value for name, value in self.limits(kind).items()} for kind in limited},
            "peak_bytes": max(result["peak_bytes"] for result in results),
            "before_bytes": max(result["before_bytes"] for result in results),
            "parameters": results[0]["parameters"],
            "first_losses": results[0]["losses"][:SHOWN_LOSSES],
        }

    def summary(self) -> dict:
        """Everything that was measured, for --json."""
        return {
            "model": self.settings.model,
            "threads": self.settings.threads,
            "steps": self.settings.steps,
            "rounds": self.settings.rounds,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "flops_per_token": self.flops_per_token,
            "limits": {precision: self.limits(precision) for precision in PRECISIONS},
            "cases": {str(case): self.row(case) for case in self.settings.cases},
        }


def rates_of(results: list[dict]) -> list[float]:
    """Tokens a second, round by round."""
    return [result["tokens_per_second"] for result in results]


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
    heads = ["x HF float32", "x it, kept memory", "x HF bf16", "x it, kept memory", "peak memory"]
    heads += ["of it before the first step", "of the bf16 limit, own shapes / best", "of the float32 limit, the same"]
    print(f"| case | tokens a second | range | {' | '.join(heads)} |")
    print(f"|---|{'---:|' * (len(heads) + 2)}")
    for case in found["cases"].values():
        cells = [
            case["title"],
            f"{case['tokens_per_second']:,.0f}",
            f"{min(case['rounds']):,.0f} to {max(case['rounds']):,.0f}",
            *("" if ratio is None else f"{ratio:.2f}" for ratio in case["ratios"].values()),
            *(f"{case[key] / 2**30:.2f} GiB" for key in ("peak_bytes", "before_bytes")),
            *(" / ".join(f"{share:.0%}" for share in case["shares"].get(kind, {}).values()) for kind in LIMITED),
        ]
        print(f"| {' | '.join(cells)} |")
    tell_limits(found)
    tell_cases(found["cases"])
    return found


def tell_limits(found: dict) -> None:
    """What the matrix products alone allow."""
    flops = found["flops_per_token"]
    print(f"\n{flops / 1e6:,.1f} million FLOPs a token in matrix products, forward and backward.")
    for precision, limits in found["limits"].items():
        for name, rate in limits.items():
            speed = f"{rate * flops / 1e9:,.0f} GFLOP/s"
            print(f"Limit in {precision}, all products as fast as at {LIMITS[name]} ({speed}): {rate:,.0f} tokens/s")
    if "headway-bf16" in found["cases"]:
        for name, share in found["cases"]["headway-bf16"]["shares"]["bf16"].items():
            verdict = "reached" if share >= WANTED_SHARE else "missed"
            print(f"{WANTED_SHARE:.0%} of the bf16 limit at {LIMITS[name]}: {verdict}, Headway has {share:.1%}")


def tell_cases(cases: dict[str, dict]) -> None:
    """That the cases are alike, and what was chosen between."""
    for name, case in cases.items():
        if len(case["attentions"]) > 1:
            tried = ", ".join(f"{attention} {rate:,.0f}" for attention, rate in case["attentions"].items())
            print(f"{name}: tokens/s by attention: {tried}")
    for name, case in cases.items():
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
    settle_memory()
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
    settle_memory()
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
    parser.add_argument("--cases", type=parse_cases, help="trainer-precision or peer-precision-kept, by commas")
    parser.add_argument("--quick", action="store_true", help="Headway and HF alone, one round")
    parser.add_argument("--rounds", type=int)
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
    settings.rounds = (1 if settings.quick else 3) if settings.rounds is None else settings.rounds
    many = settings.model == "tiny" or settings.waiting  # short steps, of unlike shapes
    settings.steps = (20 if many else 3) if settings.steps is None else settings.steps
    settings.warm_up = (4 if many else 1) if settings.warm_up is None else settings.warm_up
    if settings.cases is None:
        others = [] if settings.quick else ["torch", *(pair.split("=")[0] for pair in settings.peer_python)]
        settings.cases = [Case("headway", precision) for precision in PRECISIONS]
        for trainer in ("hf", *others):
            settings.cases += [Case(trainer, precision, kept) for precision in PRECISIONS for kept in (False, True)]
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

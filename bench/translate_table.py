"""What bench/translate.py measured, as the Markdown of a results page."""

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

OURS, RIVAL = "headway-int8", "ctranslate2-int8"
OTHERS = ("headway-float32", "ctranslate2-float32", "huggingface-float32")
PACKAGES = {"ctranslate2": "ctranslate2", "huggingface": "transformers"}


def machine(threads: int, pythons: Mapping[str, str]) -> dict:
    """On what it was measured, and with which versions of the peers."""
    names = [
        line.split(":", 1)[1].strip()
        for line in (Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else "").split(
            "\n"
        )
        if line.startswith("model name")
    ]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "torch": installed("torch"),
        "kernels": kernels(),
        **{engine: installed(package, pythons.get(engine)) for engine, package in PACKAGES.items()},
    }


def installed(package: str, python: str | None = None) -> str | None:
    """The version of a package, here or in another interpreter; None without it."""
    if python is not None and python != sys.executable:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        finished = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
        return finished.stdout.strip() if finished.returncode == 0 else None
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def kernels() -> str | None:
    """The instructions that the engine computes with here."""
    try:
        from headway_native import available
    except ImportError:
        return None
    return available()[0]


def told(found: dict) -> Iterator[str]:
    """Lines of Markdown: speed, memory, quality, start, and what was done on what."""
    yield from speed_table(found["contests"])
    yield ""
    for contest in found["contests"].values():
        yield from limits_of(contest)
        yield from (f"- {note}." for note in contest["notes"])
        yield from (f"- {contest['contest']}, {engine} is missing: {why}" for engine, why in contest["missing"].items())
    for contest in found["contests"].values():
        if contest["memory"]:
            yield ""
            yield from memory_table(contest)
        if contest["quality"]:
            yield ""
            yield from quality_table(contest["quality"])
    if found["start"]:
        yield ""
        yield "From the prompt to the answer, one short sentence, files in the page cache, beam 4:"
        for engine, seconds in found["start"].items():
            middle = statistics.median(seconds)
            yield f"- {engine}: {middle:.2f} s, median of {len(seconds)} ({min(seconds):.2f} to {max(seconds):.2f})"
    yield ""
    told_of = ", ".join(f"{name} {value}" for name, value in found["machine"].items() if value is not None)
    yield f"`python bench/translate.py {' '.join(found['arguments'])}`; {told_of}."


def speed_table(contests: Mapping[str, dict]) -> Iterator[str]:
    """One line a kind of work. A ratio is the median over rounds, with its range."""
    heads = ["work", "Headway int8", "CTranslate2 int8", "setting", "ratio", "range", "required", "aim"]
    heads += ["of the limit", "CTranslate2 of it", "Headway float32", "CTranslate2 float32", "HF float32", "x HF"]
    yield "Sentences a second."
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for contest in contests.values():
        for title, row in contest["rows"].items():
            yield f"| {title} | {' | '.join(cells_of(row))} |"


def cells_of(row: dict) -> Iterator[str]:
    """What stands behind the name of the work."""
    ours, rival = (middle(row, kind) for kind in (OURS, RIVAL))
    ratios = row["ratios"].get(RIVAL, [])
    yield number(ours)
    yield number(rival)
    yield row["best"].get(RIVAL, "missing").removeprefix("CTranslate2 int8, ")
    yield f"**{statistics.median(ratios):.2f} x**" if ratios else ""
    yield f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
    yield f"{row['required']:g} x{verdict(ratios, row['required'])}"
    yield f"{row['aim']:g} x{verdict(ratios, row['aim'])}"
    yield from ("" if rate is None else f"{rate / row['limit']:.0%}" for rate in (ours, rival))
    yield from (number(middle(row, kind)) for kind in OTHERS)
    hf = middle(row, "huggingface-float32")
    yield "" if hf is None or ours is None else f"{ours / hf:.1f} x"


def middle(row: dict, kind: str) -> float | None:
    """Sentences a second of an engine's best setting; None where it did not run."""
    best = row["best"].get(kind)
    return None if best is None else statistics.median(row["rates"][best])


def verdict(ratios: list[float], wanted: float) -> str:
    """Whether a ratio is reached."""
    if not ratios:
        return ""
    return " reached" if statistics.median(ratios) >= wanted else " missed"


def number(rate: float | None) -> str:
    """Sentences a second, so that three figures show."""
    if rate is None:
        return "missing"
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def limits_of(contest: dict) -> Iterator[str]:
    """What the limits are made of."""
    speeds = {name: statistics.median(values) for name, values in contest["speeds"].items()}
    if not speeds:
        return
    best, own, reading = (speeds[name] / 1e9 for name in ("best_shape", "own_shapes", "reading"))
    yield (
        f"- {contest['contest']}: products in 8 bits run at {best:,.0f} G operations a second on all cores at their "
        f"best shape, {own:,.0f} at the shapes of a step; the weights of a step are read at {reading:,.1f} GB/s."
    )
    for title, row in contest["rows"].items():
        what = "reading the weights" if "one sentence" in title else "products with weights alone"
        yield f"- {title}: {row['sentences']:,} sentences; {what} would allow {number(row['limit'])} a second."


def memory_table(contest: dict) -> Iterator[str]:
    """Peak of each engine's process, and of it what is no copy but the file itself."""
    peaks = contest["memory"]
    yield f"Memory, {contest['contest']}, beam 4, each replica one batch at a time, a fresh process:"
    yield ""
    yield "| engine | peak | of it the model's file, mapped and shared | before loading | x CTranslate2 int8 |"
    yield "|---|---:|---:|---:|---:|"
    for kind, found in peaks.items():
        sizes = (f"{found[name] / 2**20:,.0f} MiB" for name in ("peak_bytes", "mapped_bytes", "before_bytes"))
        ratio = f"{found['peak_bytes'] / peaks[RIVAL]['peak_bytes']:.2f}" if RIVAL in peaks else ""
        yield f"| {kind} | {' | '.join(sizes)} | {ratio} |"


def quality_table(quality: Mapping[str, dict]) -> Iterator[str]:
    """BLEU of every variant, and how many outputs are those of Headway on torch in float32."""
    yield "| work | variant | BLEU | outputs equal to torch's in float32 |"
    yield "|---|---|---:|---:|"
    signatures: dict[str, None] = {}
    for title, variants in quality.items():
        for variant, found in variants.items():
            equal = "" if found["equal"] is None else f"{found['equal']:,} of {found['sentences']:,}"
            signatures[found["signature"]] = None
            yield f"| {title} | {variant} | {found['bleu']:.2f} | {equal} |"
    yield ""
    yield f"BLEU: {', '.join(f'`{signature}`' for signature in signatures)}."
    yield "A beam of CTranslate2 and of Hugging Face divides by length^a, Headway's by ((5 + length) / 6)^a, and they"
    yield "stop by other rules: they may prefer other outputs."

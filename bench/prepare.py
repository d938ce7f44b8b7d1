"""How long does preparing take, and how much memory? Generated text of two made-up languages, by stage.

The text follows Zipf's law over 150,000 types of words a language, 5 to 40 words a sentence, with commas, numbers and
full stops; the second language has a word for each word of the first, some words dropped and some changing places.
Every pair is different from every other. The same seed gives the same bytes.

    python bench/prepare.py --pairs 1000000 --work /tmp/prepare

It prints the seconds of each stage (by the clock, and of all cores together) and the most memory that the process
that prepared held at a time. A stage is told by the pairs that go into it: merges are learnt once the text is read,
which counts for "encode".
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.config.load import build
from headway.config.schema import RunConfig

NUM_TYPES = 150_000
SHORTEST, LONGEST = 5, 40  # words of a sentence
CHUNK = 20_000  # pairs generated at once
MARKS = 4096  # two words of so many tell every pair apart
ALPHABETS = (("bdfgklmnprstvz", "aeiou"), ("bchjklmnqrstwx", "aäeioöuü"))  # consonants and vowels of each language


def words(language: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The types of a language, the most frequent first, each with a space after it: all their bytes, and the ends."""
    random = np.random.Generator(np.random.PCG64([seed, language]))
    consonants, vowels = ALPHABETS[language]
    syllables = [first + second for first in consonants for second in vowels]
    made: dict[str, None] = {}
    while len(made) < NUM_TYPES:
        rank = len(made)
        if rank % 50 == 49:
            made[str(random.integers(1, 10 ** (1 + rank % 5)))] = None
            continue
        length = 1 + int(random.poisson(0.6 + min(rank, 30_000) ** 0.1))
        word = "".join(syllables[number] for number in random.integers(0, len(syllables), length))
        made[word + random.choice(["", "", "n", "t", ","])] = None
    encoded = [word.encode() + b" " for word in made]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])


@dataclass
class Language:
    """A language and the file that its sentences go to."""

    characters: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def lines(self, types: NDArray[np.int64], lengths: NDArray[np.int64]) -> bytes:
        """Sentences of so many words, ended by a full stop."""
        begins = self.ends[types]
        sizes = self.ends[types + 1] - begins
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        text = self.characters[np.repeat(begins, sizes) + within]
        text[np.cumsum(sizes)[np.cumsum(lengths) - 1] - 1] = ord("\n")
        return text.tobytes().replace(b",\n", b"\n").replace(b"\n", b" .\n")


def generate(folder: Path, *, num_pairs: int, seed: int = 1) -> None:
    """Write ``train.xx`` and ``train.yy`` of so many different pairs."""
    languages = [Language(*words(language, seed)) for language in (0, 1)]
    shares = np.cumsum(1 / (np.arange(NUM_TYPES) + 2.7))
    shares /= shares[-1]
    random = np.random.Generator(np.random.PCG64(seed))
    with (folder / "train.xx").open("wb") as source, (folder / "train.yy").open("wb") as target:
        for first in range(0, num_pairs, CHUNK):
            numbers = np.arange(first, min(first + CHUNK, num_pairs))
            lengths = random.integers(SHORTEST, LONGEST + 1, len(numbers))
            types = np.searchsorted(shares, random.random(int(lengths.sum())))
            begins = np.cumsum(lengths) - lengths
            types[begins] = 1000 + numbers % MARKS
            types[begins + 1] = 1000 + numbers // MARKS
            source.write(languages[0].lines(types, lengths))
            swapped = np.flatnonzero(random.random(len(types) - 1) < 0.1)
            types[swapped], types[swapped + 1] = types[swapped + 1], types[swapped].copy()
            kept = random.random(len(types)) > 0.05
            kept[begins] = True
            target.write(languages[1].lines(types[kept], np.add.reduceat(kept, begins, dtype=np.int64)))


def generated(work: Path, *, num_pairs: int, seed: int) -> Path:
    """The folder of so many pairs, in ``work``; they are generated where they are not there yet."""
    folder = work / f"text-{num_pairs}-{seed}"
    if not folder.exists():
        begin = time.monotonic()
        beside = folder.with_suffix(".part")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        generate(beside, num_pairs=num_pairs, seed=seed)
        beside.rename(folder)
        print(f"generated {num_pairs:,} pairs in {time.monotonic() - begin:.1f} s")
    sizes = [(folder / f"train.{language}").stat().st_size / 1e6 for language in ("xx", "yy")]
    print(f"text {sizes[0]:.0f} MB and {sizes[1]:.0f} MB; {os.cpu_count()} cores", flush=True)
    return folder


def recipe(
    *,
    vocab_size: int,
    sections: dict[str, dict[str, object]] | None = None,
    model: dict[str, int] | None = None,
    held_out_pairs: int = 1000,
) -> RunConfig:
    """What is prepared: both files, cleaned by the default filters, one vocabulary."""
    data = {"train_source": "train.xx", "train_target": "train.yy", "held_out_pairs": held_out_pairs}
    return build({"data": data, "model": {"vocab_size": vocab_size, **(model or {})}, **(sections or {})})


@dataclass
class Watch:
    """Seconds of each stage, as ``prepare`` tells of them."""

    begin: tuple[float, float] = field(default_factory=lambda: (time.monotonic(), cpu_seconds()))
    stages: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def hear(self, stage: str, count: int) -> None:
        """Note the time up to this call; the last call of a stage counts."""
        self.stages[stage] = (time.monotonic() - self.begin[0], cpu_seconds() - self.begin[1])

    def show(self, num_pairs: int) -> None:
        """Print a line a stage: what came after one stage's last call belongs to the next."""
        self.hear("end", num_pairs)
        earlier = (0.0, 0.0)
        for stage, (clock, cpu) in self.stages.items():
            print(f"{stage:10} {clock - earlier[0]:8.1f} s {cpu - earlier[1]:8.1f} s of CPU")
            earlier = (clock, cpu)
        print(f"{'all':10} {earlier[0]:8.1f} s {earlier[1]:8.1f} s of CPU, {num_pairs / earlier[0]:,.0f} pairs/s")


def cpu_seconds() -> float:
    """Of this process, all threads, in the program and in the system."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mib() -> float:
    """The most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(work: Path, config: RunConfig, num_pairs: int) -> None:
    """Prepare in this process, and print what it took."""
    from headway.cli.reports import render_report
    from headway.data.prepare import prepare

    watch = Watch()
    prepared = prepare(config, work, work / "prepared", on_progress=watch.hear)
    watch.show(num_pairs)
    print(f"memory     {peak_mib():8.0f} MiB at most\n\n{render_report(prepared.report)}", flush=True)


def main() -> None:
    """Generate the text where it is not there yet, and prepare it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the text and what is prepared")
    arguments = parser.parse_args()
    text = generated(arguments.work, num_pairs=arguments.pairs, seed=arguments.seed)
    shutil.rmtree(text / "prepared", ignore_errors=True)
    config = recipe(vocab_size=arguments.vocab_size)
    process = multiprocessing.get_context("spawn").Process(target=measure, args=(text, config, arguments.pairs))
    process.start()
    process.join()
    raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()

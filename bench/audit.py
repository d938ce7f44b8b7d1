"""Auditing a corpus: the seconds of work that a million pairs take, and peak memory.

    python bench/audit.py                       200,000 pairs
    python bench/audit.py --pairs 1000000       the target: two minutes on one core

The corpus is made in a temporary folder: different pairs of 4 to 23 words, some with numbers and placeholders. It is
audited by ``headway audit --json`` in a process of its own, whose own work (user and system time) is what counts.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tmx import ENGLISH, GERMAN


def write_corpus(path: Path, number: int) -> None:
    """Write so many pairs as TSV."""
    rng = Random(1)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for place in range(number):
            length = rng.randrange(4, 24)
            more = f" {place}" if place % 5 == 0 else " {name}" if place % 7 == 0 else ""
            sides = [" ".join(rng.choice(words) for _ in range(length)) for words in (ENGLISH, GERMAN)]
            file.write("\t".join(f"{side.capitalize()}{more}." for side in sides) + "\n")


def main() -> None:
    """Make the corpus, and audit it in another process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.tsv"
        write_corpus(path, options.pairs)
        words = [
            sys.executable,
            "-m",
            "headway",
            "audit",
            str(path),
            "--source-language",
            "en",
            "--target-language",
            "de",
        ]
        start = time.perf_counter()
        done = subprocess.run([*words, "--json"], check=True, capture_output=True)
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = used.ru_utime + used.ru_stime
    found = json.loads(done.stdout)
    print(
        f"{found['pairs']:,} pairs: {own:.1f} s of its own work ({1e6 * own / options.pairs:.0f} s a million), "
        f"{seconds:.1f} s by the clock, peak memory {used.ru_maxrss / 1e3:.0f} MB; {len(found['findings'])} findings"
    )


if __name__ == "__main__":
    main()

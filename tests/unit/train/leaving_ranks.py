"""What two processes do for test_distributed.py: a short run, then leave; started by torchrun.

Arguments: the data folder, a folder for the run. Each rank writes the threads that it has left into RANK.threads there.
"""

import os
import sys
from pathlib import Path

from train_letters import letters_config

from headway.train.distributed import joined
from headway.train.run import train


def main():
    """Train for two steps, leave the others, tell."""
    data, out = map(Path, sys.argv[1:])
    with joined(os.environ) as group:
        list(train(letters_config("train.max_steps=2", "train.warmup_steps=1"), data, out_dir=out, group=group))
    tasks = sorted(Path("/proc/self/task").iterdir())
    names = [(task / "comm").read_text("utf-8").strip() for task in tasks]
    (out / f"{group.rank}.threads").write_text("\n".join(names), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What two processes do for test_distributed.py: many small runs, one after the other; started by torchrun.

Arguments: the data folder, a folder for the runs. Each rank writes what it saw into RANK.json there.
"""

import json
import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import torch
from train_letters import letters_config, of_kind

from headway.train import loop
from headway.train.distributed import joined
from headway.train.events import Interrupted, Notice, StepDone, Validated
from headway.train.run import train

BASE = ("train.microbatch_tokens=40", "train.clip_norm=0.5")
SHARDED = (*BASE, "train.sharding=fsdp")
# name -> overrides and the steps after which rank 1 alone is asked to stop
RUNS = {
    "microbatches": (BASE, ()),
    "stopped": (BASE, (3, 9, 10)),
    "bf16": ((*BASE, "train.precision=bf16"), ()),
    "no microbatches": ((), (5,)),
    "one microbatch": (("train.microbatch_tokens=100",), ()),
    "sharded": (SHARDED, ()),
    "sharded, stopped": (SHARDED, (7,)),
    "sharded, averaged": ((*SHARDED, "train.moving_average=0.8", "train.weight_decay=0.1"), (7,)),
    "sharded, schedule free": ((*SHARDED, "train.optimizer=schedule_free", "train.schedule=constant"), ()),
    "Muon": ((*BASE, "train.optimizer=muon", "train.moving_average=0.8"), ()),
    "cutoff": ((*BASE, "train.consistency=cutoff"), ()),
    "sharded, R-Drop": ((*SHARDED, "train.consistency=rdrop"), ()),
    "sharded, cutoff": ((*SHARDED, "train.consistency=cutoff"), ()),
    "no minutes": ((*BASE, "train.max_minutes=1e-9"), ()),
    "stale": (
        (*BASE, "train.early_stopping=bleu", "train.patience=1", "train.validate_every=2", "train.warmup_steps=2"),
        (),
    ),
}


def weights_digest(model):
    """One number for all weights of this rank."""
    digest = sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def run(overrides, data, out, *, group, stop_at=None):
    """All events of a run, and the digest of the weights after each step."""
    heard, digests = [], []
    plain = loop.train_step

    def listening(model, optimizer, **more):
        result = plain(model, optimizer, **more)
        digests.append("" if "train.sharding=fsdp" in overrides else weights_digest(model))
        return result

    def should_stop():
        asked = any(isinstance(event, StepDone) and event.step == stop_at for event in heard)
        return asked and group.rank == 1

    loop.train_step = listening
    try:
        for event in train(letters_config(*overrides), data, out_dir=out, should_stop=should_stop, group=group):
            heard.append(event)
    finally:
        loop.train_step = plain
    return heard, digests


def summary(events, digests):
    """What the tests look at."""
    return {
        "steps": [event.step for event in of_kind(events, StepDone)],
        "losses": [event.loss for event in of_kind(events, StepDone)],
        "padding": [event.padding for event in of_kind(events, StepDone)],
        "validations": [[event.loss, event.bleu, event.chrf] for event in of_kind(events, Validated)],
        "notices": [event.text for event in of_kind(events, Notice)],
        "interrupted": [event.step for event in of_kind(events, Interrupted)],
        "digests": digests,
    }


def main():
    """Every run, then an error that rank 1 alone meets."""
    data, outs = map(Path, sys.argv[1:])
    torch.set_num_threads(1)
    told = {}
    with joined(os.environ) as group:
        told["sums"] = [group.sum(torch.tensor([2.0**group.rank])).tolist(), group.any(group.rank == 1)]
        told["shared"] = [group.share(f"of {group.rank}"), group.together(group.mine(list("abcde")))]
        for name, (overrides, stops) in RUNS.items():
            told[name] = []
            for stop in (*stops, None):
                told[name].append(summary(*run(overrides, data, outs / name, group=group, stop_at=stop)))
                if stop and group.is_first:
                    shutil.copytree(outs / name, outs / f"{name}, at {stop}")

        def fails():
            if group.rank == 1:
                raise OSError("disk full")
            return False

        try:
            list(train(letters_config(*BASE), data, out_dir=outs / "failed", should_stop=fails, group=group))
        except Exception as error:
            told["error"] = [type(error).__name__, str(error), group.speaks()]
            (outs / f"{group.rank}.json").write_text(json.dumps(told), encoding="utf-8")
            os._exit(0)  # as an error does: without taking leave of the others


if __name__ == "__main__":
    main()

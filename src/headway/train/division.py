"""How the work of a step is divided over the processes of a run, now and after a restart with other numbers.

The steps of a run, and the order of pairs in them, are the same however many processes there are. Rank r takes the
microbatches r, r + W, r + 2W ... of a step, W being the number of ranks, each with the dropout masks that one process
would have drawn for it.
"""

from collections.abc import Sequence

from headway.checkpoint.state import Progress
from headway.config.train_config import TrainConfig
from headway.data.batching import Step
from headway.data.store import Store
from headway.train.distributed import Group

IDLE_SHARE = 0.2  # of the ranks' turns; more is told


def divide(progress: Progress, train: TrainConfig, *, longest: int, group: Group) -> tuple[Progress, list[str]]:
    """Where the recipe names no ``train.microbatch_tokens``, settle one that gives every rank work; and what to say.

    ``longest``: tokens of the longest sentence, EOS counted. What was settled is kept by later sessions, with fewer
    ranks too, for the dropout masks follow from it; only more ranks than ever before cut the steps finer.
    """
    cut = progress.microbatch_tokens
    if train.microbatch_tokens is None and group.world_size > 1:
        wanted = -(-train.batch_tokens // group.world_size) + longest  # then no step has more microbatches than ranks
        cut = wanted if cut is None else min(cut, wanted)
    notices: list[str] = []
    if train.sharding != "none" and group.world_size == 1:
        notices.append(f"train.sharding is {train.sharding}, but there is one process: nothing is spread")
    if progress.step > 0 and progress.world_size != group.world_size:
        notices.append(_changed(progress, group, is_cut_anew=cut != progress.microbatch_tokens))
    elif progress.step == 0 and cut is not None and cut != progress.microbatch_tokens:
        notices.append(
            f"train.microbatch_tokens is absent: for {group.world_size} processes it is {cut:,} in this run. One "
            f"process with --set train.microbatch_tokens={cut} is the equal run (dropout masks follow microbatches)"
        )
    return progress.model_copy(update={"microbatch_tokens": cut, "world_size": group.world_size}), notices


def idle_notice(steps: Sequence[Step], world_size: int) -> list[str]:
    """What to say where the recipe's microbatches leave ranks without work for more than a fifth of their turns."""
    work = sum(len(step) for step in steps)
    turns = sum(-(-len(step) // world_size) * world_size for step in steps)
    if work > (1 - IDLE_SHARE) * turns:
        return []
    return [
        f"{1 - work / turns:.0%} of the {world_size} processes' turns have no microbatch, for steps have "
        f"{work / len(steps):.1f} on average. A smaller train.microbatch_tokens, or none, gives all of them work"
    ]


def longest_pair(store: Store) -> int:
    """Tokens of the longest sentence on either side, EOS counted."""
    return 1 + int(max(store.source_lengths.max(), store.target_lengths.max()))


def _changed(progress: Progress, group: Group, *, is_cut_anew: bool) -> str:
    now = "1 process" if group.world_size == 1 else f"{group.world_size} processes"
    what = (
        "are cut finer for them, so that dropout masks differ from here on"
        if is_cut_anew
        else "keep their microbatches and dropout masks; only the rounding of sums differs"
    )
    return f"the run goes on with {now}, after {progress.world_size} until step {progress.step:,}: its steps {what}"

"""How the work of a step is divided over the processes of a run, now and after a restart with other numbers.

The steps of a run, and the order of pairs in them, are the same however many processes there are. Rank r takes the
microbatches r, r + W, r + 2W ... of a step, W being the number of ranks, each with the dropout masks that one process
would have drawn for it.
"""

from headway.checkpoint.state import Progress
from headway.config.schema import TrainConfig
from headway.data.store import Store
from headway.train.distributed import Group


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
    if progress.step > 0 and progress.world_size != group.world_size:
        notices.append(_changed(progress, group, is_cut_anew=cut != progress.microbatch_tokens))
    elif progress.step == 0 and cut is not None and cut != progress.microbatch_tokens:
        notices.append(
            f"train.microbatch_tokens is absent: for {group.world_size} processes it is {cut:,} in this run. One "
            f"process with --set train.microbatch_tokens={cut} is the equal run (dropout masks follow microbatches)"
        )
    return progress.model_copy(update={"microbatch_tokens": cut, "world_size": group.world_size}), notices


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

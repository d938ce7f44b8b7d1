"""``headway paper table1``: layer types, counted and timed."""

from dataclasses import replace
from pathlib import Path

import click

from headway.cli.paper_report import given_command, json_option, make_table, out_option


@click.command("table1")
@click.option("--quick", is_flag=True, help="Few and small sizes: seconds instead of minutes.")
@click.option(
    "--width",
    type=click.IntRange(min=2),
    help="d of the layers that are timed: a multiple of 64, or less.  [default: 256; quick: 64]",
)
@click.option(
    "--longest",
    type=click.IntRange(min=32),
    help="The longest sentence that is timed, in tokens.  [default: 16,384; quick: 256]",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often all is timed.  [default: 5; quick: 2]")
@click.option("--threads", type=click.IntRange(min=1), help="Threads that compute.  [default: as many as torch takes]")
@out_option("table1")
@json_option
def command(
    *,
    quick: bool,
    width: int | None,
    longest: int | None,
    rounds: int | None,
    threads: int | None,
    out_dir: Path,
    as_json: bool,
) -> None:
    """Count operations, dependent steps and path lengths of layer types, and time them against length.

    Everything is counted on the layers themselves; exponents are fitted and set beside the printed orders. Times are
    of one sentence, forward and backward: keep the machine quiet, and give --rounds more to narrow the intervals.
    """
    import torch

    from headway.paper.layer_kinds import FULL, QUICK
    from headway.paper.table1 import FULL_TIMING, QUICK_TIMING, make
    from headway.paper.work import WorkFolder

    timing = QUICK_TIMING if quick else FULL_TIMING
    if longest is not None:
        lengths = tuple(length for length in FULL_TIMING.lengths if length <= longest)
        timing = replace(timing, lengths=lengths)
    timing = replace(timing, d_model=width or timing.d_model, rounds=rounds or timing.rounds)
    if threads is not None:
        torch.set_num_threads(threads)
    again = given_command()
    make_table(
        lambda should_stop: make(WorkFolder(out_dir), ranges=QUICK if quick else FULL, timing=timing, command=again),
        out_dir=out_dir,
        as_json=as_json,
    )

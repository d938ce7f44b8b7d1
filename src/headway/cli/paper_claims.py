"""``headway paper claims``: what the paper claims in words, each examined and judged."""

from pathlib import Path

import click

from headway.cli.paper_report import given_command, json_option, made_tables, out_option, table_text

# as in headway.paper.claims, which takes seconds to import
NAMES = ("scaling", "length", "order", "warmup", "smoothing", "averaging", "subwords")


@click.command("claims")
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME ...]")
@click.option(
    "--quick", is_flag=True, help="Sizes that only show what the command does: seconds in the place of hours."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Runs of each kind, in pairs by seed.  [default: the study's]"
)
@click.option("--steps-a-run", type=click.IntRange(min=1), help="Steps of each training.  [default: the study's]")
@click.option(
    "--minutes-a-run",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Minutes of each training on text, in the place of steps.",
)
@click.option(
    "--data",
    "data_dir",
    type=click.Path(path_type=Path),
    help="The folder of Multi30k's files, for the claims on text.  [default: a corpus written from CLDR data]",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads that compute.  [default: as many as torch takes]")
@out_option("claims")
@json_option
def command(
    *,
    names: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    steps_a_run: int | None,
    minutes_a_run: float | None,
    data_dir: Path | None,
    threads: int | None,
    out_dir: Path,
    as_json: bool,
) -> None:
    """Examine claims of the paper, all of them or those named, each with a table, a plot and a verdict.

    \b
    scaling    why scores are divided by the root of d_k; additive attention (3.2.1)
    length     sequences longer than in training, by position scheme (3.5)
    order      what a model without positions knows of word order (3.5)
    warmup     post-norm and pre-norm with and without warm-up (5.3)
    smoothing  label smoothing hurts perplexity and helps BLEU (5.4)
    averaging  the mean of the last checkpoints is better than the last (6.1)
    subwords   one vocabulary and one matrix for both sides (3.4, 5.1)

    The last three train on text, the others on symbols drawn by a seed. The page claims.md in the folder has the
    verdicts of all studies that were made there, by this call or an earlier one.
    """  # noqa: D301 - click wants the character that the escape stands for
    if steps_a_run is not None and minutes_a_run is not None:
        raise click.UsageError("--steps-a-run and --minutes-a-run both say when a run ends; give one of them.")
    from headway.paper.claims import CLAIMS, make_claims, tables_json, write_overview
    from headway.paper.study import Extent, Workshop
    from headway.paper.work import WorkFolder

    again, chosen = given_command(), list(dict.fromkeys(names)) or list(CLAIMS)
    extent = Extent(quick, seeds, steps_a_run, minutes_a_run, data_dir, threads)
    tables, paths, told = [], [], []
    for table in made_tables(
        lambda should_stop: make_claims(chosen, Workshop(extent, WorkFolder(out_dir), should_stop, again)),
        out_dir=out_dir,
    ):
        tables.append(table)
        paths, told = write_overview(out_dir)
        if not as_json:
            click.echo(table_text(table) + "\n")
    for line in told:
        click.echo(f"note: {line}", err=True)
    click.echo(f"written: {', '.join(map(str, paths))}", err=True)
    if as_json:
        click.echo(tables_json(tables), nl=False)

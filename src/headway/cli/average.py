"""``headway average``: a model folder from the mean of a run's kept weights."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)


@click.command("average")
@click.option("-m", "--run", "run_dir", required=True, type=FOLDER, metavar="RUNFOLDER", help="What train wrote.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Average the last N kept steps.")
@click.option("--best", type=click.IntRange(min=1), metavar="N", help="Average the best N kept steps.")
@click.option("--out", "out_dir", required=True, type=FOLDER, metavar="FOLDER", help="The new model folder.")
def command(run_dir: Path, *, last: int | None, best: int | None, out_dir: Path) -> None:
    """Average the kept weights of a run, finished or not, into a model folder that translates.

    Without --last or --best, the steps that the run's recipe names (train.average, train.average_count).
    """
    if last is not None and best is not None:
        raise click.UsageError("--last and --best exclude each other; give one of them.")
    if out_dir.resolve() == run_dir.resolve():
        raise click.UsageError("--out is the run's own folder, whose model it would replace; name another.")
    from headway.checkpoint.run_folder import RunFolder, write_average

    run = RunFolder.open(run_dir)
    if last is not None:
        steps = run.last(last)
    elif best is not None:
        steps = run.best(best)
    else:
        steps = run.usual()
    write_average(run, out_dir, steps=steps)
    click.echo(f"Averaged the weights of {len(steps)} steps: {', '.join(f'{step:,}' for step in sorted(steps))}")
    click.echo(f"Model folder: {out_dir}; its quality is not measured yet: headway evaluate -m {out_dir} ...")

"""``headway paper table2``: BLEU and training cost, as printed and computed again."""

from pathlib import Path

import click

from headway.cli.paper_report import given_command, json_option, make_table, out_option


@click.command("table2")
@out_option("table2")
@json_option
def command(*, out_dir: Path, as_json: bool) -> None:
    """Set the costs of Table 2 beside those of the paper's rule and of counted operations."""
    from headway.paper.table2 import make

    again = given_command()
    make_table(lambda should_stop: make(again), out_dir=out_dir, as_json=as_json)

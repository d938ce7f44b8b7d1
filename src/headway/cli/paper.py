"""``headway paper``: each table of the paper by one command, and its claims."""

import click

from headway.cli.lazy import LazyGroup

# name -> what it does; the module headway.cli.paper_<name> holds the object `command`.
TABLES = {
    "table1": "Layer types: operations, sequential steps, path lengths, time.",
    "table2": "BLEU and training cost; three architectures at equal time.",
    "table3": "All rows: exact counts, and each trained at a small scale.",
    "table4": "Constituency parsers, beside those trained or measured here.",
    "claims": "What the paper claims in words, each with a verdict.",
}


class Tables(LazyGroup):
    """The tables of ``TABLES``."""

    table = TABLES

    def module(self, name: str) -> str:
        """The module of a table's command."""
        return f"headway.cli.paper_{name}"


@click.group("paper", cls=Tables)
def command() -> None:
    """Make a table of "Attention Is All You Need": each number measured here beside the published one.

    A table's rows are kept in the work folder (--out) as they are finished: the same command goes on where it stopped.
    The folder gets the table as Markdown, JSON and SVG. Claims end in a verdict: holds, does not hold, or not settled
    at this scale, by the 95 % interval of a paired difference (of counts, by their range).
    """

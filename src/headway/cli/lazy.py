"""A group of commands, each imported only when it is called."""

import difflib
import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one only when it is called.

    A group is a subclass with a table, name -> what it does, and with where the modules lie that hold ``command``.
    """

    table: ClassVar[Mapping[str, str]] = {}

    def module(self, name: str) -> str:
        """The module of a command."""
        return f"headway.cli.{name}"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order a reader meets them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and give its ``command``."""
        if cmd_name not in self.table:
            return None
        return importlib.import_module(self.module(cmd_name)).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail naming the nearest one."""
        name = args[0]
        if name not in self.table and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.table, n=1, cutoff=0.5)
            hint = f"the nearest is '{near[0]}'" if near else "there are " + ", ".join(self.table)
            ctx.fail(f"No such command '{name}'; {hint}.")
        return super().resolve_command(ctx, args)

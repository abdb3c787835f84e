"""The typer application that every command registers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperOption

from p2p_sim.core.errors import InputError

Command = Sequence[str]
"""The words of the command line, after the program's name."""

ABOUT: dict[str, Any] = {
    "name": "p2p-sim", "add_completion": False, "rich_markup_mode": "rich", "pretty_exceptions_enable": False,
    "epilog": "Example: p2p-sim run peer-to-peer --data digits",
}  # fmt: skip
app = typer.Typer(**ABOUT)


class UniqueOptionsCommand(TyperCommand):
    """A command that refuses an option given twice; typer would drop the first value silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raises InputError for a repeated option."""
        _, _, options = self.make_parser(ctx).parse_args(args=list(args))
        for number, given in enumerate(options):
            once = isinstance(given, TyperOption) and not (given.multiple or given.is_flag)
            if once and given in options[:number]:
                raise InputError(f"{given.opts[0]} is given twice: give it once")
        return super().parse_args(ctx, args)


class ProtocolCommand(UniqueOptionsCommand):
    """Adds the parameters of all protocols to the help text."""

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return the usage of the command."""
        return ["PROTOCOL", "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text, with the parameters of all protocols at the end."""
        from p2p_sim import catalogue
        from p2p_sim.cli import parameters

        own, described = self.epilog, parameters.describe(catalogue.everything())
        self.epilog = f"{described}\n\n{own}"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog = own  # restore: the command object may be used again


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"p2p-sim {version('p2p-sim')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def no_verb(
    ctx: typer.Context,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The lab for private labels: run a label-privacy protocol message by message, and see what each party learns."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())

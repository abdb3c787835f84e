"""The program that the verbs add themselves to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError

Command = Sequence[str]
"""The words of the command line, after the program's name."""

app = typer.Typer(
    name="p2p-sim", add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False,
    epilog="Example: p2p-sim run peer-to-peer --data digits",
)  # fmt: skip


class OnceCommand(TyperCommand):
    """Refuses an option that is given twice, of which the first would be dropped in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; raises InputError."""
        _, _, told = self.make_parser(ctx).parse_args(args=list(args))
        for number, given in enumerate(told):
            once = isinstance(given, TyperOption) and not (given.multiple or given.is_flag)
            if once and given in told[:number]:
                raise InputError(f"{given.opts[0]} is given twice: give it once")
        return super().parse_args(ctx, args)


class ProtocolCommand(OnceCommand):
    """Adds the parameters of all protocols to the help, when it is asked for."""

    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return how the verb is called."""
        return ["PROTOCOL", "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, the parameters of all protocols at its end."""
        from p2p_sim.report import parameters

        self.epilog = f"{parameters.describe(catalogue.everything())}\n\n{self.epilog}"
        super().format_help(ctx, formatter)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"p2p-sim {version('p2p-sim')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _no_verb(
    ctx: typer.Context,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The lab for private labels: run a label-privacy protocol message by message, see what comes of it."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())

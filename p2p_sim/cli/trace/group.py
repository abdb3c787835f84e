"""The program ``p2p-sim trace`` that the verbs add themselves to."""

from __future__ import annotations

import typer

from p2p_sim.cli.app import app

trace = typer.Typer(rich_markup_mode="rich", epilog="Example: p2p-sim trace show runs/latest --user 17")
app.add_typer(trace, name="trace")


@trace.callback(invoke_without_command=True)
def _no_verb(ctx: typer.Context) -> None:
    """Look at the messages of a run."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())

"""The command line, ``p2p-sim``: every verb is a frozen dataclass of its options with a method ``execute``.

typer reads the words and makes the dataclass (``app``); ``program`` does the work and owns the errors; ``verbs`` says
which file defines which verb, and imports it when it is asked for.
"""

from __future__ import annotations

from p2p_sim.cli.app import app
from p2p_sim.cli.program import command, main

__all__ = ["app", "command", "main"]

"""The command line, ``p2p-sim``: every verb is a frozen dataclass of its options with a method ``execute``.

typer reads the words and makes the dataclass; ``main`` does the work and owns the errors, ``command`` ends the
process.  ``verbs`` says which file defines which verb; it is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from p2p_sim.cli.app import app, command, main
from p2p_sim.cli.verbs import VERBS

__all__ = ["app", "command", "main"]


def __getattr__(name: str) -> Any:
    """Import the file of a verb."""
    if any(name in verb.modules for verb in VERBS.values()):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

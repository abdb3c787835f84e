"""What is said of a run whose protocol is not a shipped one: code that a file names is never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def in_python(run: Any, path: str | Path, call: str) -> str:
    """Return why something needs the protocol of a run at a path, and how to do it in Python: ``call`` and more."""
    module, _, owner = run.protocol.partition(":")
    values = ", ".join(f"{name}={value!r}" for name, value in run.parameters.items())
    return (
        f"{run.protocol} is not a shipped protocol: in Python, from {module} import {owner}; "
        f"p2p_sim.load({str(path)!r}).{call}, protocol={owner}({values}))"
    )


def recomputing(run: Any) -> str:
    """Return why messages of a run that it did not keep are not recomputed, and what to do."""
    return (
        f"{run.protocol} is not a shipped protocol, so they are not recomputed here: run it again with --trace full "
        "(trace='full'), or in Python give protocol=..."
    )

"""The three tables that are frozen, and how an entry of each is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.golden import commands, frozen, measure
from tests.golden.accounts import ACCOUNTS, Figure
from tests.golden.cases import CASES
from tests.golden.further import FURTHER
from tests.golden.theorems import THEOREMS

FIGURES: dict[str, Figure] = {**ACCOUNTS, **FURTHER, **THEOREMS}

NAMES: dict[str, list[str]] = {"runs": [*CASES], "figures": [*FIGURES], "artefacts": [*commands.COMMANDS]}
"""What each table holds."""


def computed(table: str, name: str, folder: Path | None = None, here: bool = False) -> Any:
    """Compute an entry as JSON values; ``folder``: where the runs of artefacts lie; ``here``: without Ray."""
    if table == "runs":
        return frozen.as_json(measure.entry(CASES[name].local() if here else CASES[name]))
    if table == "figures":
        return frozen.as_json(FIGURES[name]())
    assert folder is not None
    return frozen.as_json(commands.outcome(name, folder))

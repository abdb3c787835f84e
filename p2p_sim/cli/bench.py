"""``p2p-sim bench``."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import EXECUTION, Format, Json, comma_list, count, text, wants_json
from p2p_sim.core.errors import InputError, near
from p2p_sim.report import terminal

BENCHMARKS = (
    "engine", "account", "audit", "walks", "crypto", "trace", "attack", "neighbours", "command", "scaling"
)  # fmt: skip


@app.command(
    "bench",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim bench engine --users 1e6 --cases local,digest --json",
)
@dataclass(frozen=True)
class BenchCommand:
    """Measure performance as ratios within one call.  Needs a checkout of the repository."""

    name: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(BENCHMARKS)}.")]
    users: Annotated[
        int | None,
        count(
            EXECUTION,
            "Number of users; default 1e7, 2e5 for neighbours, 1e6 for account, walks, crypto and attack.",
        ),
    ] = None
    trials: Annotated[
        int | None, count(EXECUTION, "Worlds for each label, for audit only; default 20000.")
    ] = None
    cases: Annotated[str | None, text(EXECUTION, "Which cases to measure; default all.", "A,B")] = None
    repeat: Annotated[int, count(EXECUTION, "Number of repeats; the median counts.  Default 5.")] = 5
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Measure and print."""
        from p2p_sim.progress import Progress

        as_json = wants_json(self.json, self.format)
        module = benchmark(self.name)
        cases = module.CASES if self.cases is None else tuple(comma_list(self.cases))
        size = self._size(module)
        with Progress() as progress, terminal.stdout_to_stderr():
            result = module.main(size, cases, self.repeat, progress)
        sys.stdout.write(terminal.as_json(result) if as_json else terminal.fitted(terminal.measured(result)))
        return 0

    def _size(self, module: ModuleType) -> int:
        """Return the size of the largest cases; raises InputError for an option of another benchmark."""
        trials = self.name == "audit"
        wrong, name = (self.users, "users") if trials else (self.trials, "trials")
        if wrong is not None:
            raise InputError(f"--{name} {wrong} has no meaning for benchmark {self.name!r}: leave it out")
        asked = self.trials if trials else self.users
        size: int = (module.TRIALS if trials else module.USERS) if asked is None else asked
        return size


def benchmark(name: str) -> ModuleType:
    """Import a benchmark from the checkout that holds this package; raises InputError if there is none."""
    if name not in BENCHMARKS:
        raise InputError(
            f"unknown benchmark {name!r}{near(name, BENCHMARKS)}; known benchmarks: {', '.join(BENCHMARKS)}"
        )
    root = Path(__file__).resolve().parents[2]
    if not (root / "benchmarks" / f"{name}.py").is_file():
        raise InputError(
            f"there are no benchmarks beside {root / 'p2p_sim'}: run from a checkout, installed with pip install -e ."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return importlib.import_module(f"benchmarks.{name}")

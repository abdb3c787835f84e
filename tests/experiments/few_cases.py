"""Cases that take no time, in a module that other processes import."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

from experiments._common import Claim, Experiment, Options, Outcome, main
from experiments._rows import Case, Row
from p2p_sim.core.errors import InputError


def row(number: int, folder: str = "") -> list[Row]:
    """Note by whom the row was computed; fail, or die, as files in the folder say."""
    if folder:
        place = Path(folder)
        if (place / f"fails-{number}").exists():
            raise ZeroDivisionError("by nothing")
        if (place / f"refuses-{number}").exists():
            raise InputError("alpha = 2: needs at most 1")
        dies = place / f"dies-{number}"
        if dies.exists():
            left = int(dies.read_text())
            dies.write_text(str(left - 1))
            if left > 0:
                os.kill(os.getpid(), signal.SIGKILL)
        with (place / "computed").open("a") as file:
            file.write(f"{number} {os.getpid()}\n")
    return [{"number": number, "share": number / 3, "epsilon": float("inf"), "why": ""}]


def cases(count: int, folder: Path | str = "", **about: Any) -> list[Case]:
    """Return so many cases; ``folder``: where they note what they do."""
    return [(about | {"number": number}, partial(row, number, str(folder))) for number in range(count)]


def run(options: Options) -> Outcome:
    """Compute three cases that look at the folder of results."""
    rows = options.kept("few").take(cases(3, options.out))
    return Outcome({"": rows}, [Claim("A paper", "a", f"{len(rows)} rows", "reproduced", "b")])


EXPERIMENT = Experiment("few_cases", "Few cases", "A paper", "no time", run, keys=("number",))

if __name__ == "__main__":
    main(EXPERIMENT)

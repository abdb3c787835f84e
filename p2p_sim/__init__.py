"""p2p-sim: write a label-privacy protocol once, run it for one user or millions, and see what each party learned.

Each name is imported when it is first asked for, so that a command loads no more than it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2p_sim.core.lazy_package import lazily

if TYPE_CHECKING:
    from p2p_sim.check import Checked, check
    from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
    from p2p_sim.core.population import Population
    from p2p_sim.evaluate import evaluate
    from p2p_sim.observed_view import View
    from p2p_sim.paired import Pair, paired
    from p2p_sim.run import Run, load, run
    from p2p_sim.sweep import sweep

__all__ = [
    "Checked",
    "InputError",
    "Pair",
    "Population",
    "ProtocolError",
    "Run",
    "RunLostError",
    "View",
    "check",
    "evaluate",
    "load",
    "paired",
    "run",
    "sweep",
]

lazily(
    __name__,
    {
        "Checked": "check",
        "check": "check",
        "InputError": "core.errors",
        "ProtocolError": "core.errors",
        "RunLostError": "core.errors",
        "Population": "core.population",
        "evaluate": "evaluate",
        "View": "observed_view",
        "Pair": "paired",
        "paired": "paired",
        "Run": "run",
        "load": "run",
        "run": "run",
        "sweep": "sweep",
    },
)

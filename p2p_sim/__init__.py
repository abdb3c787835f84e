"""p2p-sim: write a label-privacy protocol once, run it for one user or millions, and see what each party learned.

Each name is imported when it is first asked for, so that a command loads no more than it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2p_sim.core.lazy_package import keep_from_files

if TYPE_CHECKING:
    from p2p_sim.check import Checked, check
    from p2p_sim.comparison import compare
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
    "compare",
    "evaluate",
    "load",
    "paired",
    "run",
    "sweep",
]

keep_from_files(__name__, "check", "compare", "evaluate", "paired", "run", "sweep")


def __getattr__(name: str) -> Any:
    """Import a name from the file that defines it."""
    match name:
        case "Checked" | "check":
            global Checked, check
            from p2p_sim.check import Checked, check
        case "compare":
            global compare
            from p2p_sim.comparison import compare
        case "InputError" | "ProtocolError" | "RunLostError":
            global InputError, ProtocolError, RunLostError
            from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
        case "Population":
            global Population
            from p2p_sim.core.population import Population
        case "evaluate":
            global evaluate
            from p2p_sim.evaluate import evaluate
        case "View":
            global View
            from p2p_sim.observed_view import View
        case "Pair" | "paired":
            global Pair, paired
            from p2p_sim.paired import Pair, paired
        case "Run" | "load" | "run":
            global Run, load, run
            from p2p_sim.run import Run, load, run
        case "sweep":
            global sweep
            from p2p_sim.sweep import sweep
        case "core":
            import p2p_sim.core

            return p2p_sim.core
        case "learning":
            import p2p_sim.learning

            return p2p_sim.learning
        case "leakage":
            import p2p_sim.leakage

            return p2p_sim.leakage
        case "network":
            import p2p_sim.network

            return p2p_sim.network
        case "privacy":
            import p2p_sim.privacy

            return p2p_sim.privacy
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]

"""p2p-sim: write a label-privacy protocol once, run it for one user or millions, and see what each party learned."""

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

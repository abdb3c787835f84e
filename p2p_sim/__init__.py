"""p2p-sim: write a label-privacy protocol once, run it for one user or millions, and see what each party learned.

Each name is imported when it is first asked for, so that a command loads no more than it needs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

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

_MODULES = {
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
}


class _Package(ModuleType):
    """This package, in which ``check``, ``evaluate``, ``paired``, ``run``, ``sweep`` are functions, and files, too."""

    def __getattr__(self, name: str) -> Any:
        """Import a name from the file that defines it, or a part of this package."""
        if name in _MODULES:
            found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
            setattr(self, name, found)
            return found
        if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Let a function take the name that the file of the same name leaves behind when it is imported."""
        own = isinstance(value, ModuleType) and _MODULES.get(name) == name
        super().__setattr__(name, vars(value).get(name, value) if own else value)


sys.modules[__name__].__class__ = _Package

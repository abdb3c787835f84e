"""What an experiment needs and may be absent: packages, and data sets."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from p2p_sim.core.errors import InputError

PACKAGES = {
    "torch": "pip install torch",
    "dp_accounting": "pip install 'dp-accounting>=0.5'",
    "PIL": "pip install pillow",
}


def missing(needs: Iterable[str]) -> str:
    """Say what of these is absent and how to get it; "" where nothing is.

    A need is a package of PACKAGES or a named data set, which is there if the folder P2P_SIM_DATA has it or
    scikit-learn does; nothing is fetched.  Raises InputError for anything else.
    """
    return "; ".join(filter(None, map(_missing, needs)))


def _missing(need: str) -> str:
    if need in PACKAGES:
        return "" if importlib.util.find_spec(need) else f"needs {need}: {PACKAGES[need]}"
    from p2p_sim.learning.data import sources
    from p2p_sim.learning.data.named_datasets import NAMED

    if need not in NAMED:
        raise InputError(f"need {need!r}: known are {', '.join([*PACKAGES, *NAMED])}")
    named = NAMED[need]
    if named.kind == "bundled" or not sources.missing(named.files):
        return ""
    return f"needs the data set {need}: set {sources.VARIABLE} to a folder that has it (docs/data.md)"

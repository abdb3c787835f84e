"""The code that computed a run: versions of packages, and a fingerprint of engine and protocol."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import metadata

from p2p_sim.core.code_fingerprint import fingerprint
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir.run_record import RunRecord

_PACKAGES = ("p2p-sim", "numpy", "numba", "ray", "scikit-learn", "pyarrow")
_DECIDES = ("p2p-sim", "code", "python", "numpy", "numba")


def versions(protocol: Protocol | None) -> dict[str, str]:
    """Return the versions of the packages that compute a run; ``code``: a fingerprint of engine and protocol."""
    found = {"python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"code": fingerprint(protocol)}


def other_code(run: RunRecord, protocol: Protocol) -> list[str]:
    """Return how the code here differs from the code that computed a run: ``numpy 2.4.1 then, 2.5.0 now``."""
    if not run.versions:  # computed in this process
        return []
    here = versions(protocol)
    return [
        f"{name} {run.versions.get(name, 'unknown')} then, {here[name]} now"
        for name in _DECIDES
        if run.versions.get(name) != here[name]
    ]


def warn(done: str, other: Sequence[str]) -> None:
    """Warn that something was ``done`` (a word such as "replayed") by other code; ``other``: from ``other_code``."""
    if other:
        warnings.warn(f"{done} by other code than the run's: {'; '.join(other)}", stacklevel=3)

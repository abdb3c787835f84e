"""What each trace level will keep of a run, in a line, before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.trace.predict import Prediction, predict

_LEVELS = ("full", "sample=1000", "counts", "none")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def text(protocol: Any, population: Any, level: str, faults: Sequence[str] | None = None) -> str:
    """Return the line: the level asked for first, then the others."""
    others = [other for other in _LEVELS if other.partition("=")[0] != level.partition("=")[0]]
    try:
        found = predict(protocol, population, level, *others, faults=Faults.of(faults))
    except (InputError, ProtocolError) as error:  # the run itself will say so, or do without
        return f"trace {level}: what it takes is not known beforehand ({error})"
    return "trace " + "; ".join(map(_part, found))


def _part(found: Prediction) -> str:
    if not found.messages:
        return f"{found.level}: no messages" + (f", {_size(found.nbytes)}" if found.nbytes else "")
    seconds = f"{found.seconds:.1f} s more" if found.seconds >= 0.05 else "no time to speak of"
    return f"{found.level}: about {found.messages:,} messages, {_size(found.nbytes)}, {seconds}"


def _size(nbytes: int) -> str:
    size, unit = float(nbytes), 0
    while size >= 1000:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"

"""Opening traces: one interface over a run in memory and a run directory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from p2p_sim.trace import about, manifest, store
from p2p_sim.trace.damaged import guarded
from p2p_sim.trace.draft import MESSAGES
from p2p_sim.trace.kept import Kept
from p2p_sim.trace.source import Source
from p2p_sim.trace.stored import OnDemand, Stored, of_run

__all__ = ["Kept", "Source", "Stored", "open_trace", "source"]


def open_trace(path: str | Path) -> Source:
    """Open the trace of a run directory, or a folder ``messages``, also of a run that was cut off.

    Raises InputError if there is none, it is damaged, or a newer version wrote it.
    """
    return guarded(Path(path), lambda: _opened(Path(path)))


def _opened(folder: Path) -> Source:
    if (folder / about.RUN).is_file():
        told = about.told_of(folder)
        if (folder / MESSAGES / manifest.NAME).is_file():
            return of_run(folder, told)
    for place in (folder / MESSAGES, folder):
        if (place / manifest.NAME).is_file():
            return Stored(place)
    return Kept(SimpleNamespace(**store.load(folder)))


def source(run: Any) -> Source:
    """Return the trace of a run: of a ``Run``, or of a run directory by its path."""
    if isinstance(run, (str, Path)):
        return open_trace(run)
    return run._trace.stored if isinstance(run._trace, OnDemand) else Kept(run)

"""A run that is looked at: a ``Run``, or its directory, of which large parts are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.core.sealing import MODELLED
from p2p_sim.trace import about, manifest, store
from p2p_sim.trace.damaged import guarded
from p2p_sim.trace.draft import MESSAGES
from p2p_sim.trace.stored import OnDemand, Stored
from p2p_sim.trace.unread import Later


class Opened:
    """What a run directory holds, under the names that ``Run`` has for it.

    Also of a run that was cut off, of which there is nothing but messages.  Raises InputError for a folder that is no
    run, and, when a part is read, if it is damaged.  ``cut_off``: whether there are only messages.
    """

    population = Later()

    def __init__(self, path: Path):
        self._path = path
        here = path / MESSAGES if (path / MESSAGES / manifest.NAME).is_file() else path
        self.cut_off = not (path / about.RUN).is_file() and (here / manifest.NAME).is_file()
        self.__dict__.update(_of_messages(here) if self.cut_off else store.light(path))

    def __getattr__(self, name: str) -> Any:
        if name not in store.HEAVY:
            raise AttributeError(name)
        value = guarded(self._path, lambda: store.HEAVY[name](self._path))
        self.__dict__[name] = value
        return value

    @property
    def folder(self) -> Path:
        """Where the run directory is."""
        return self._path

    @property
    def has_population(self) -> bool:
        """Whether the population was kept; reading it may still find that its file is gone."""
        return vars(self)["population"] is not None


def opened(run: Any) -> Any:
    """Return a ``Run``, or what the run directory at a path holds."""
    if isinstance(run, (str, Path)):
        return Opened(Path(run))
    if not hasattr(run, "_trace"):
        raise InputError(f"run = {run!r}: must be a Run, or the path of a run directory")
    return run


def whole_or_cut_off(path: Path, load: Callable[[Path], Any]) -> Any:
    """Return what ``load`` reads of a run directory, or what there is of a run that was cut off."""
    run = Opened(path)
    return run if run.cut_off else load(path)


def _of_messages(folder: Path) -> dict[str, Any]:
    """Return what is known of a run that was cut off."""
    stored = Stored(folder)
    told = stored.manifest
    nothing = dict.fromkeys(("seed", "digest", "faults", "population", "source"))
    return {
        **nothing, "seed_source": _origin(told),
        "protocol": told["protocol"], "trace": told["level"], "users": told["users"],
        "parameters": {}, "counts": {}, "outputs": {}, "faulty": {}, "faults_seen": {}, "versions": {}, "notes": {},
        "backend": "unknown", "crypto": MODELLED, "_trace": OnDemand(stored),
    }  # fmt: skip


def _origin(told: Mapping[str, Any]) -> str | None:
    """Return "fresh" or None: whether a given seed can be guessed is not known where it is not kept."""
    return seeds.FRESH if told.get("seed_source") == seeds.FRESH else None

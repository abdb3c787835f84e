"""Answers the queries of the web page with JSON values, for the runs in one folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.number_texts import read_digits
from p2p_sim.render.known_run import KnownRun, ViewFunctions
from p2p_sim.render.web.messages import Found, Look, Place, gather, lanes
from p2p_sim.render.web.overview import FOCUS, in_focus, overview
from p2p_sim.rundir import manifest
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.rundir.run_json import RUN, why_none
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_file import ReplacedError
from p2p_sim.rundir.trace_writer import MESSAGES

_NUMBERS = ("cluster", "user", "round", "offset")
_NAMES = ("run", "kind", "view", "channels", *_NUMBERS)
_PLACES = 2  # of which messages are held, so that filters and viewpoints come at once


class _OpenRun:
    """One open run, with the answers to its last queries."""

    def __init__(self, run: RunRecord, view_functions: ViewFunctions, place: Path):
        self.run, self._place = run, place
        self.known: KnownRun = KnownRun.of(run)
        self.found: Callable[[Place], Found] = lru_cache(_PLACES)(lambda place: gather(run, place))
        self._privacy: Callable[[str, str, int], dict[str, Any]] = lru_cache(64)(
            lambda view, channels, _changed: view_functions.privacy(run, view, channels)
        )

    def privacy(self, view: str, channels: str) -> dict[str, Any]:
        """Return what a view learns; computed again after a change in the folder, which may be a new audit."""
        return self._privacy(view, channels, self._place.stat().st_mtime_ns)

    def read(self) -> None:
        """Read the population, if that has not been done: it may have millions of users."""
        _ = self.run.population


class Answers:
    """Answers queries on the runs in ``root``, which is a run directory or a folder of run directories.

    ``load``: reads a run.  Raises InputError if there is no run.
    """

    def __init__(
        self, root: Path, view_functions: ViewFunctions, load: Callable[[Path], RunRecord] = LazyRun
    ):
        self._view_functions, self._load = view_functions, load
        self._root = Path(os.path.realpath(root))  # resolve() fails for links in a circle
        self._opened: dict[tuple[str, int, int], _OpenRun] = {}
        self._opening, self._looking, self._counting = threading.Lock(), threading.Lock(), threading.Lock()
        self._first()

    def names(self) -> list[str]:
        """Return the runs' names, the newest first; "" if the folder itself is a run directory."""
        if _marker_file(self._root) is not None:
            return [""]
        if not self._root.is_dir():
            return []
        inside = [at for at in self._root.iterdir() if not at.is_symlink() and _marker_file(at) is not None]
        return [at.name for at in sorted(inside, key=lambda at: (-at.stat().st_mtime_ns, at.name))]

    def answer(self, what: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the answer to ``runs``, ``overview``, ``lanes`` or ``figures``; raises InputError."""
        try:
            return self._answer(what, query)
        except ReplacedError:  # restored, perhaps: the run is opened anew
            with self._opening:
                self._opened = {}
            return self._answer(what, query)

    def _answer(self, what: str, query: Mapping[str, str]) -> dict[str, Any]:
        for name in query:
            if name not in _NAMES:
                raise InputError(f"{name} = {query[name]!r}: what can be chosen is {', '.join(_NAMES)}")
        if what == "runs":
            return {"runs": self.names()}
        if what not in ("overview", "lanes", "figures"):
            raise InputError(f"nothing is known of {what!r}: ask for runs, overview, lanes, figures")
        name = query["run"] if "run" in query else self._first()
        open_run = self._open(name)
        if what == "overview":
            return overview(open_run.run, name or self._root.name, open_run.known)
        place, look = _read(query)
        if what == "figures":
            with self._looking:
                open_run.read()
            with self._counting:  # takes up to two seconds, during which one can go on looking
                return open_run.privacy(look.view or open_run.known.main, look.channels)
        with self._looking:
            return lanes(
                open_run.run, open_run.known, open_run.found(place), look, self._view_functions.coalition
            )

    def check(self) -> None:
        """Open the folder if it is a run directory; raises InputError if it is damaged or has a newer format."""
        if self._first() == "":
            self._open("")

    def warm(self) -> None:
        """Read the first run, so that the page need not wait; the page itself will report errors."""
        with suppress(Exception):
            self.answer("lanes", {})

    def _first(self) -> str:
        names = self.names()
        if not names:
            raise InputError(
                f"{str(self._root)!r} is no run directory and holds none: {why_none(self._root)}"
            )
        return names[0]

    def _open(self, name: str) -> _OpenRun:
        """Return a run by name; raises InputError for a run that is not in the folder."""
        if name not in self.names():
            raise InputError(f"run {name!r}: not in {str(self._root)!r}, and no other folder is served")
        place = self._root / name if name else self._root
        with self._opening:
            now = (_marker_file(place) or place).stat()
            key = (name, now.st_ino, now.st_mtime_ns)  # a run that was replaced is read again
            if key not in self._opened:
                self._opened = {}  # one run is held, for it may be large
                self._opened = {key: _OpenRun(self._load(place), self._view_functions, place)}
            return self._opened[key]


def _marker_file(folder: Path) -> Path | None:
    """Return the file that makes a folder a run directory (also of a run that was cut off); None if it is none."""
    for file in (folder / RUN, folder / MESSAGES / manifest.NAME):
        if file.is_file():
            return file
    return None


def _read(query: Mapping[str, str]) -> tuple[Place, Look]:
    """Read the place and the view from a query; raises InputError for malformed values."""
    found: dict[str, int] = {}
    for name, text in ((name, query[name]) for name in _NUMBERS if query.get(name)):
        number = read_digits(text)
        if number is None:
            raise InputError(f"{name} = {text!r}: must be a whole number from 0 on")
        found[name] = number
    view, channels = in_focus(query.get("view", ""), found.get("user")), query.get("channels") or "plain"
    if FOCUS in view:
        raise InputError("nobody is in focus: choose a user, by search or by a click on her lane")
    if channels not in ("plain", "encrypted"):
        raise InputError(f"channels = {channels!r}: must be plain or encrypted")
    round = found.pop("round", None)
    return Place(**found), Look(query.get("kind") or None, round, view, channels)

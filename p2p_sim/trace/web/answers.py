"""Questions of the page and their answers, as JSON values; the runs it may look at lie in one folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.trace.web.lanes import Asked, lanes
from p2p_sim.trace.web.overview import overview

Figures = Callable[[Any, str], dict[str, Any]]
"""Called with a run and a view's name: the figures of what that view learns."""

Load = Callable[[Path], Any]
_NUMBERS = ("cluster", "user", "round", "offset")


class Answers:
    """What is known of the runs in ``root``: itself a run directory, or a folder of some.

    ``load`` reads a run; ``figures`` tells what a view learns.  One question is answered at a time.
    Raises InputError if there is no run.
    """

    def __init__(self, root: Path, load: Load, figures: Figures):
        self._root, self._load, self._figures = root.resolve(), load, figures
        self._runs: dict[str, Any] = {}
        self._one = threading.Lock()
        if not self.names():
            raise InputError(f"{str(root)!r} is no run directory and holds none: it has no run.json")

    def names(self) -> list[str]:
        """Return the runs' names, the newest first; "" where the folder itself is one."""
        if (self._root / "run.json").is_file():
            return [""]
        if not self._root.is_dir():
            return []
        inside = [at for at in self._root.iterdir() if not at.is_symlink() and (at / "run.json").is_file()]
        return [at.name for at in sorted(inside, key=lambda at: (-at.stat().st_mtime_ns, at.name))]

    def answer(self, what: str, asked: Mapping[str, str]) -> dict[str, Any]:
        """Return the answer to ``runs``, ``overview``, ``lanes`` or ``figures``; raises InputError."""
        with self._one:
            if what == "runs":
                return {"runs": self.names()}
            name = asked.get("run", self.names()[0])
            run = self.run(name)
            program = run._program(None, "a run of it, from Python")
            if what == "overview":
                return overview(run, name or self._root.name, program)
            if what == "lanes":
                return lanes(run, program, _read(asked))
            if what == "figures":
                return self._figures(run, asked.get("view", "") or "learner")
        raise InputError(f"nothing is known of {what!r}: ask for runs, overview, lanes, figures")

    def run(self, name: str) -> Any:
        """Return a run by name; raises InputError for one that does not lie in the folder."""
        if name not in self.names():
            raise InputError(f"run {name!r}: not in {str(self._root)!r}, which alone is looked at")
        if name not in self._runs:
            self._runs = {name: self._load(self._root / name if name else self._root)}
        return self._runs[name]


def _read(asked: Mapping[str, str]) -> Asked:
    """Read what lanes are asked for; raises InputError for a number that is none, and for other names."""
    numbers = {name: asked[name] for name in _NUMBERS if asked.get(name)}
    for name, text in numbers.items():
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InputError(f"{name} = {text!r}: must be a whole number from 0 on")
    view = asked.get("view", "")
    if "*" in view:
        if "user" not in numbers:
            raise InputError("nobody is in focus: choose a user, by search or by a click on her lane")
        view = view.replace("*", numbers["user"])
    channels = asked.get("channels", "plain") or "plain"
    if channels not in ("plain", "encrypted"):
        raise InputError(f"channels = {channels!r}: must be plain or encrypted")
    found: dict[str, Any] = {name: int(text) for name, text in numbers.items()}
    return Asked(kind=asked.get("kind") or None, view=view, channels=channels, **found)

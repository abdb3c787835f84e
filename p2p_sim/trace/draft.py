"""The folder in which a run directory is made: beside its place, and renamed when it is whole."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from p2p_sim.core.population import Population
from p2p_sim.trace import manifest, notes
from p2p_sim.trace.alike import alike
from p2p_sim.trace.writer import PARTS, Folder

MESSAGES = "messages"


class Draft:
    """A run directory in the making, ``NAME.partial-XXXXXXXX`` beside the place it is meant for.

    ``announce`` is called with protocol, trace level and population before a run of which a trace is wanted.
    It is made when first needed.  At the end of a ``with`` it is gone, unless it was renamed; messages of a run that
    was cut off stay, with a warning that says where.
    """

    def __init__(self, path: Path, announce: Callable[[Any, str, Population], None] | None = None):
        self._path, self._folder, self._announce = path, Path(), announce
        self._made: list[Path] = []

    def make(self) -> Path:
        """Return the folder, which only the owner may read: with the seed, anybody could undo the noise."""
        if not self._made:
            parents = [*reversed(self._path.parent.parents), self._path.parent]
            new = [parent for parent in parents if not parent.exists()]
            self._path.parent.mkdir(parents=True, exist_ok=True)
            made = tempfile.mkdtemp(prefix=f"{self._path.name}.partial-", dir=self._path.parent)
            self._folder = self._path.parent / Path(made).name  # from 3.12 on mkdtemp makes it absolute
            self._made = [*new, self._folder]
        return self._folder

    def announce(self, protocol: Any, level: str, population: Population) -> None:
        """Have it said what the trace of a run will take."""
        if self._announce is not None:
            self._announce(protocol, level, population)

    def begin(self, protocol: Any, level: str, population: Population, origin: str | None = None) -> Folder:
        """Make the trace, of which nothing is there yet; return where the sites of a run write it.

        ``origin``: where the seed came from.
        """
        folder = self.make() / MESSAGES
        folder.mkdir()
        token = secrets.token_hex(8)
        manifest.write(folder, manifest.begun(protocol, level, population.users, token, origin))
        return Folder(str(folder.resolve()), token)

    def end(self, counts: manifest.Counts, files: list[dict[str, Any]]) -> Path:
        """Note that the trace is whole; return its folder."""
        folder = self.make() / MESSAGES
        manifest.write(folder, manifest.ended(manifest.read(folder), counts, alike(folder, files)))
        notes.forget(folder)
        return folder

    def beside(self, path: Path) -> bool:
        """Whether the folder can be renamed to a path."""
        return self._path.parent.resolve() == path.parent.resolve()

    def clear(self) -> None:
        """Remove everything but the messages."""
        for other in self._folder.iterdir() if self._made else ():
            if other.name != MESSAGES:
                shutil.rmtree(other) if other.is_dir() else other.unlink()

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._made or not self._folder.exists():
            return
        if error is not None and next((self._folder / MESSAGES).glob(PARTS), None):
            self.clear()
            told = manifest.read(self._folder / MESSAGES)
            what = "messages" if told["complete"] else "messages so far"
            warnings.warn(f"the {what} of the run that failed are in {str(self._folder)!r}", stacklevel=2)
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        for parent in reversed(self._made[:-1]):
            with contextlib.suppress(OSError):
                parent.rmdir()
        self._made = []

"""Run directories of the command line: choosing a free name, the link to the newest run, expected size, peak memory."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.rundir.claim import claimed
from p2p_sim.rundir.run_directory import check_free
from p2p_sim.rundir.trace_writer import Draft
from p2p_sim.trace.size_estimate import Prediction, predict

if TYPE_CHECKING:
    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.run import Run


RUNS, LATEST = "runs", "latest"
_LONGEST = 200  # bytes of a name: a temporary one is built beside it


@dataclass(frozen=True)
class RunFolder:
    """Where a run is saved: ``path`` if it was given, otherwise the next free ``ROOT/STEM-1``, ``-2``, ..."""

    path: Path | None
    stem: str
    force: bool
    root: Path = Path(RUNS)

    def claimed(self) -> AbstractContextManager[None]:
        """Hold the name that was given while a run is computed; see ``claimed``."""
        return nullcontext() if self.path is None else claimed(self.path, self.force)

    def draft(self, announce: Callable[[Protocol, str, Population], None]) -> Draft:
        """Return the draft of the run directory; see ``Draft``."""
        return Draft(self.path or self.root / self.stem, announce)

    def save(self, run: Run, population: bool) -> Path:
        """Write the run, link ``runs/latest`` to it, return its directory; raises StorageError if that fails."""
        with write_errors.translated("the run", self.path or self.root):
            path = self._save(run, population)
        link(path)
        return path

    def _save(self, run: Run, population: bool) -> Path:
        if self.path is not None:
            return run.save(self.path, force=self.force, population=population)
        number = 1
        while True:
            path = self.root / f"{self.stem}-{number}"
            number += 1
            if os.path.lexists(path):
                continue
            try:
                return run.save(path, population=population)
            except InputError:
                if not path.exists():  # otherwise somebody else took the name meanwhile
                    raise


def choose(out: str | None, stem: str, force: bool) -> RunFolder:
    """Choose a run's directory and check that it can be written; raises InputError with path and reason."""
    if out is None:
        if force:
            raise InputError(
                "--force replaces the folder given with --out: give --out too, or leave --force out"
            )
        _check_folder(Path(RUNS))
        return RunFolder(None, stem, False)
    try:
        path = Path(out).expanduser()
        os.fsencode(path)
        long = len(os.fsencode(path.name)) > _LONGEST
    except (RuntimeError, UnicodeError) as error:
        raise InputError(f"--out {out!r} is no usable path ({error}): choose another name") from error
    if long:
        raise InputError(f"--out {out!r}: its name is longer than {_LONGEST} bytes; choose a shorter one")
    if path.name in ("", "..", LATEST):
        raise InputError(
            f"output {out!r}: give the name of a folder that the run can be written to, such as runs/first"
        )
    try:
        check_free(path, force)
        _check_folder(path.parent)
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(
                f"output {str(path)!r} is read-only: it is not replaced; choose another name, or chmod u+w it"
            )
    except OSError as error:
        raise InputError(f"output {out!r} cannot be written: {error.strerror or error}") from error
    return RunFolder(path, stem, force)


def stem(*parts: str) -> str:
    """Join names to one for a folder: lower case letters, digits and single dashes."""
    joined = "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "data" for part in parts)
    return joined[:_LONGEST].rstrip("-")


def link(path: Path) -> None:
    """Point ``latest`` at a directory, in one step: beside it, if that is a folder ``runs``, and in ``runs`` here, if
    there is one.

    What cannot be linked is warned of: the run is there.
    """
    real = path.resolve()
    folders = [folder for folder in (real.parent, Path(RUNS)) if folder.name == RUNS]
    for folder in dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()):
        latest = folder / LATEST
        if latest.exists() and not latest.is_symlink():
            warnings.warn(f"{latest} is not a link, so it was left alone", UserWarning, stacklevel=2)
            continue
        fresh = folder / f".{LATEST}.{os.getpid()}"
        try:
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(os.path.relpath(real, folder), target_is_directory=True)
            fresh.replace(latest)
        except OSError as error:
            why = error.strerror or error
            warnings.warn(f"{latest} could not be linked to the run: {why}", UserWarning, stacklevel=2)


def _check_folder(folder: Path) -> None:
    """Check that a folder can be written to, or made."""
    above = (folder.absolute(), *folder.absolute().parents)
    there = next(parent for parent in above if os.path.lexists(parent))
    if not there.is_dir():
        what = "is a file" if there.exists() else "is a link that leads nowhere"
        raise InputError(
            f"{str(folder)!r} cannot be a folder: {str(there)!r} {what}; choose another place with --out"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        found = f"no permission to write in {str(there)!r}"
        if _is_read_only(there):
            found = f"{str(there)!r} is on a read-only file system"
        raise InputError(f"{found}: choose another place with --out")


def _is_read_only(there: Path) -> bool:
    """Return whether a folder's file system is read-only; False where the system does not say."""
    return hasattr(os, "statvfs") and bool(os.statvfs(there).f_flag & os.ST_RDONLY)


def peak_memory(backend: str) -> dict[str, Any]:
    """Return the peak memory in bytes (None if the system does not report it) and what it covers."""
    covers = "this process since its start"
    if backend != "local":
        covers += ", without Ray's own processes"
    return {"bytes": _bytes(), "covers": covers}


def _bytes() -> int | None:
    status = Path("/proc/self/status")  # getrusage would count what the shell held before this process
    if status.is_file():
        found = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024 * int(found[0]) if found else None
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


_LEVELS = ("full", "sample=1000", "counts", "none")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_line(
    protocol: Protocol, population: Population, level: str, faults: Sequence[str] | None = None
) -> str:
    """Return one line with the expected size of the trace: of the requested level first, then of the others."""
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

"""Where results go: files written whole, the folder of a run, what it will hold, and how much memory was used."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.rundir.run_directory import check_free
from p2p_sim.rundir.trace_writer import Draft
from p2p_sim.trace.size_estimate import Prediction, predict

_MOST_LINKS = 40  # as Linux
_OPEN_FILES = re.compile(r"/proc/(\d+)(/task/\d+)?/fd")
_WRITTEN_INTO = (stat.S_IFCHR, stat.S_IFIFO)
_CALLED = {
    stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device", stat.S_IFIFO: "a FIFO",
}  # fmt: skip


def check(name: str, option: str = "--out") -> Path:
    """Return the path of a file that is to be written; raises InputError naming the option if it cannot be one."""
    if not name:
        raise InputError(f"{option} {name!r}: give a file in a folder that exists")
    place = Path(name)
    _find(place, f"{option} {name!r}")
    return place


def write(place: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file whole: what was there is replaced, with its permissions kept, or stays if this fails.

    A character device, a FIFO that has a reader, and an open file are written into.  ``private``: the owner alone may
    read the file, whatever its permissions were.  Raises InputError if the place cannot be written.
    """
    told = repr(str(place))
    path, there = _find(place, told)
    data = content if isinstance(content, bytes) else content.encode()
    try:
        if there is None or (stat.S_ISREG(there.st_mode) and not _is_open_file(path)):
            _replace(path, there, data, private)
        else:
            _write_into(path, there, told, data)
    except BrokenPipeError as error:
        raise InputError(f"{told} was not read to its end: start its reader again") from error
    except OSError as error:
        raise InputError(f"{told} cannot be written ({error.strerror}): choose another place") from error


def _find(place: Path, told: str) -> tuple[Path, os.stat_result | None]:
    """Return where links lead in the end, and what is there, if anything; raises InputError if it is not written."""
    there = _stat(place, told)
    path = _followed(place, told)
    kind = stat.S_IFREG if there is None else stat.S_IFMT(there.st_mode)
    if kind == stat.S_IFDIR:
        raise InputError(f"{told}: give a file in a folder that exists; this is a folder")
    # A socket cannot be opened by its name; some programs give one as stdout, though.
    if kind not in (stat.S_IFREG, *_WRITTEN_INTO) and not (kind == stat.S_IFSOCK and _is_open_file(path)):
        raise InputError(
            f"{told} is {_CALLED.get(kind, 'no file')}, and not written to: give a file in a folder that exists"
        )
    if not path.absolute().parent.is_dir():
        if path != place:
            raise InputError(f"{told} is a link to {str(path)!r}: give a file in a folder that exists")
        raise InputError(f"{told}: give a file in a folder that exists")
    return path, there


def _stat(place: Path, told: str) -> os.stat_result | None:
    try:
        return place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{told} is a link in a circle: remove it, or choose another place") from error
        raise InputError(f"{told} cannot be written ({error.strerror}): choose another place") from error
    except ValueError as error:
        raise InputError(f"{told} is no usable path ({error}): choose another place") from error


def _followed(place: Path, told: str) -> Path:
    """Return where links lead; not beyond an open file, whose link need not name a path."""
    for _ in range(_MOST_LINKS + 1):
        if not place.is_symlink() or _is_open_file(place):
            return place
        place = place.parent / place.readlink()
    raise InputError(f"{told} is a link in a circle: remove it, or choose another place")


def _is_open_file(path: Path) -> bool:
    return _OPEN_FILES.fullmatch(os.path.realpath(path.parent)) is not None


def _replace(path: Path, there: os.stat_result | None, data: bytes, private: bool) -> None:
    """Write a file beside the path, and then give it the name."""
    fresh = path.with_name(
        f".p2p-sim-{secrets.token_hex(8)}"
    )  # short: the path's name may be as long as can be
    mode = 0o666 if there is None else stat.S_IMODE(there.st_mode) & 0o777
    if private:
        mode &= 0o600
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            if there is not None:
                with suppress(PermissionError):  # only root gives files away
                    os.fchown(descriptor, there.st_uid, there.st_gid)
                os.fchmod(descriptor, mode)
            _write_all(descriptor, data)
        finally:
            os.close(descriptor)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _write_into(path: Path, there: os.stat_result, told: str, data: bytes) -> None:
    descriptor = _open(path, there, told)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _open(path: Path, there: os.stat_result, told: str) -> int:
    """Open what is there, and nothing that was put there since; never wait for a FIFO's reader."""
    if _is_open_file(path) and Path(os.path.realpath(path.parent)).parts[2] == str(os.getpid()):
        return os.dup(int(path.name))  # opened by its path, a file would be written from its start
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(there.st_mode):
            raise InputError(f"{told} is a FIFO that nobody reads: start its reader first") from error
        raise
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != (there.st_dev, there.st_ino):
        os.close(descriptor)
        raise InputError(f"{told} was replaced by something else just now: try again")
    os.set_blocking(descriptor, True)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:  # a write may be short, on a full disk or into a pipe
        left = left[os.write(descriptor, left) :]


RUNS, LATEST = "runs", "latest"
_LONGEST = 200  # bytes of a name: a temporary one is built beside it


@dataclass(frozen=True)
class Place:
    """A run's directory: ``path`` if it was chosen, else the next free ``runs/STEM-1``, ``-2``, ..."""

    path: Path | None
    stem: str
    force: bool

    def draft(self, announce: Callable[[Any, str, Any], None]) -> Draft:
        """Return where the run is made, beside the place it is meant for; see ``Draft``."""
        return Draft(self.path or Path(RUNS) / self.stem, announce)

    def save(self, run: Any, population: bool) -> Path:
        """Write the run, link ``runs/latest`` to it, return its directory; InputError if it cannot be written."""
        try:
            path = self._save(run, population)
        except OSError as error:
            where = self.path or Path(RUNS)
            raise InputError(f"cannot write to {str(where)!r}: {error.strerror or error}") from error
        link(path)
        return path

    def _save(self, run: Any, population: bool) -> Path:
        if self.path is not None:
            written: Path = run.save(self.path, force=self.force, population=population)
            return written
        number = 1
        while True:
            path = Path(RUNS) / f"{self.stem}-{number}"
            number += 1
            if os.path.lexists(path):
                continue
            try:
                written = run.save(path, population=population)
                return written
            except InputError:
                if not path.exists():  # otherwise somebody else took the name meanwhile
                    raise


def place(out: str | None, stem: str, force: bool) -> Place:
    """Choose a run's directory and check that it can be written; raises InputError naming path and reason."""
    if out is None:
        if force:
            raise InputError(
                "--force replaces the folder given with --out: give --out too, or leave --force out"
            )
        _check_folder(Path(RUNS))
        return Place(None, stem, False)
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
    return Place(path, stem, force)


def stem(*parts: str) -> str:
    """Join names to one that suits a folder: lower case letters, digits and single dashes."""
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "data" for part in parts)


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
        raise InputError(f"no permission to write in {str(there)!r}: choose another place with --out")


def peak(backend: str) -> dict[str, Any]:
    """Return the peak in bytes (None where the system does not tell) and what it covers."""
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

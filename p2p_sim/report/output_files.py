"""Output files that the user names.

A file is written completely or not at all: first under another name in its folder.  It may replace one of its kind, but
no input of its command, no file of a run, and nothing of another kind.  Links are followed and stay.  What
is no regular file is not replaced: character devices, FIFOs and open files (``/dev/stdout``, ``/dev/fd/3``) are written
into, anything else is refused.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.rundir import permissions
from p2p_sim.rundir.regular_files import FILE_TYPES

_MAX_LINKS = 40  # as Linux
_BLOCK = 1 << 20  # bytes that are written at once
_OPEN_FILES = re.compile(r"/proc/(\d+)(/task/\d+)?/fd")
_WRITTEN_INTO = (stat.S_IFCHR, stat.S_IFIFO)


def check(name: str, option: str = "--out", endings: Collection[str] = ()) -> Path:
    """Return the path of an output file; raises InputError naming the option if it cannot be written.

    ``endings``: of the kind that is written, such as ".svg"; a file of another kind is not replaced.  Empty: the caller
    has looked at the ending.
    """
    if not name:
        raise InputError(f"{option} {name!r}: give a file in a folder that exists")
    place = Path(name)
    path, there = _find(place, f"{option} {name!r}")
    _check_no_file_of_ours(path, f"{option} {name!r}")
    suffix = path.suffix.lower()
    if endings and suffix and suffix not in endings and there is not None and stat.S_ISREG(there.st_mode):
        raise InputError(
            f"{option} {name!r} is there already, and what is written is no {suffix} file: it is not replaced; give "
            f"another name, such as {path.stem + next(iter(endings))!r}"
        )
    return place


def check_named_once(words: Sequence[str], outputs: Mapping[str, str]) -> None:
    """Check that no output of a command is a file that another of its words names: an input, or a second output.

    ``words``: of the command line; ``outputs``: the file of each option.  Raises InputError.
    """
    named = [part for word in words for part in {word, word.partition("=")[2]} if part]
    for option, name in outputs.items():
        others = [other for each, other in outputs.items() if each != option and other]
        given = sum(_same_file(name, word) for word in named)
        if given > 1 or any(Path(name).absolute() == Path(other).absolute() for other in others):
            raise InputError(
                f"{option} {name!r}: the same command names this file twice, and writing would replace what it reads; "
                "give another name"
            )


def _same_file(one: str, other: str) -> bool:
    try:
        place, found = Path(one), Path(other).expanduser()
        return place.is_file() and found.is_file() and place.samefile(found)
    except (OSError, ValueError, RuntimeError):  # no usable path: it is refused elsewhere
        return False


def _check_no_file_of_ours(path: Path, shown: str) -> None:
    from p2p_sim.rundir.run_directory import run_that_owns
    from p2p_sim.rundir.sweep_files import sweep_that_owns

    if _is_open_file(path):
        return
    for what, owner in (("run", run_that_owns(path)), ("sweep", sweep_that_owns(path))):
        if owner is not None:
            raise InputError(
                f"{shown} belongs to the {what} {str(owner)!r}: it is not replaced; give another name"
            )


def is_stdout(place: Path) -> bool:
    """Return whether a path leads to what standard output is, such as ``/dev/stdout``: nothing else belongs there."""
    try:
        return os.path.samestat(place.stat(), os.fstat(1))
    except (OSError, ValueError):
        return False


def write(place: Path, content: str | bytes | Iterable[str], *, private: bool = False) -> None:
    """Write a file completely or not at all; an existing file is replaced and keeps its permissions.

    Character devices, FIFOs with a reader, and open files are written into.  ``content``: whole, or in pieces, which
    are not held together.  ``private``: it holds a seed, so only the owner may read the file, whatever its permissions
    were.  Raises InputError if the place cannot be written.
    """
    shown = repr(str(place))
    path, there = _find(place, shown)
    if sys.stdout is not None and is_stdout(place):
        sys.stdout.flush()  # what was said before comes before
    data = _in_blocks(content)
    try:
        if there is None or (stat.S_ISREG(there.st_mode) and not _is_open_file(path)):
            _replace(path, there, data, private)
        else:
            _write_into(path, there, shown, data)
    except BrokenPipeError as error:
        raise InputError(f"{shown} was not read to its end: start its reader again") from error
    except OSError as error:
        raise InputError(
            f"{shown} cannot be written ({error.strerror or error}): {write_errors.remedy(error)}, or choose another "
            "place"
        ) from error


def _find(place: Path, shown: str) -> tuple[Path, os.stat_result | None]:
    """Return where links lead, and the status of what is there (None: nothing); raises InputError if not writable."""
    there = _stat(place, shown)
    path = _followed(place, shown)
    kind = stat.S_IFREG if there is None else stat.S_IFMT(there.st_mode)
    if kind == stat.S_IFDIR:
        raise InputError(f"{shown}: give a file in a folder that exists; this is a folder")
    # A socket cannot be opened by its name; some programs give one as stdout, though.
    if kind not in (stat.S_IFREG, *_WRITTEN_INTO) and not (kind == stat.S_IFSOCK and _is_open_file(path)):
        raise InputError(
            f"{shown} is {FILE_TYPES.get(kind, 'no file')}, and not written to: give a file in a folder that exists"
        )
    if not path.absolute().parent.is_dir():
        if path != place:
            raise InputError(f"{shown} is a link to {str(path)!r}: give a file in a folder that exists")
        raise InputError(f"{shown}: give a file in a folder that exists")
    return path, there


def _stat(place: Path, shown: str) -> os.stat_result | None:
    try:
        return place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{shown} is a link in a circle: remove it, or choose another place") from error
        raise InputError(f"{shown} cannot be written ({error.strerror}): choose another place") from error
    except ValueError as error:
        raise InputError(f"{shown} is no usable path ({error}): choose another place") from error


def _followed(place: Path, shown: str) -> Path:
    """Follow links, but not beyond an open file, whose link need not be a path."""
    for _ in range(_MAX_LINKS + 1):
        if not place.is_symlink() or _is_open_file(place):
            return place
        place = place.parent / place.readlink()
    raise InputError(f"{shown} is a link in a circle: remove it, or choose another place")


def _is_open_file(path: Path) -> bool:
    return _OPEN_FILES.fullmatch(os.path.realpath(path.parent)) is not None


def _in_blocks(content: str | bytes | Iterable[str]) -> Iterator[bytes]:
    """Yield what is written; of small pieces many at once."""
    if isinstance(content, (bytes, str)):
        yield content if isinstance(content, bytes) else content.encode()
        return
    block = bytearray()
    for piece in content:
        block += piece.encode()
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _replace(path: Path, there: os.stat_result | None, data: Iterable[bytes], private: bool) -> None:
    """Write a file beside the path, then rename it."""
    fresh = path.with_name(
        f".p2p-sim-{secrets.token_hex(8)}"
    )  # short: the path's name may be as long as can be
    mode = permissions.allowed(private, 0o666 if there is None else stat.S_IMODE(there.st_mode))
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


def _write_into(path: Path, there: os.stat_result, shown: str, data: Iterable[bytes]) -> None:
    descriptor = _open(path, there, shown)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _open(path: Path, there: os.stat_result, shown: str) -> int:
    """Open what ``there`` describes, not something that replaced it since; never wait for a FIFO's reader."""
    if _is_open_file(path) and Path(os.path.realpath(path.parent)).parts[2] == str(os.getpid()):
        return os.dup(int(path.name))  # opened by its path, a file would be written from its start
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(there.st_mode):
            raise InputError(f"{shown} is a FIFO that nobody reads: start its reader first") from error
        raise
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != (there.st_dev, there.st_ino):
        os.close(descriptor)
        raise InputError(f"{shown} was replaced by something else just now: try again")
    os.set_blocking(descriptor, True)
    return descriptor


def _write_all(descriptor: int, data: Iterable[bytes]) -> None:
    for block in data:
        left = memoryview(block)
        while left:  # a write may be short, on a full disk or into a pipe
            left = left[os.write(descriptor, left) :]

"""The folder of a sweep: ``sweep.json`` says what it is, ``runs.jsonl`` has a line for each run that was made.

A line is added when a run ends, and one that was cut is dropped when the sweep goes on: whatever ends a sweep, no more
is lost than the runs that were being made.  The process that adds lines holds a lock on them, which ends with it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import link_target
from p2p_sim.report import output_files
from p2p_sim.rundir import file_lock, regular_files
from p2p_sim.rundir.regular_files import short
from p2p_sim.rundir.sweep_files import RUNS, SWEEP

FORMAT = 1
_KEPT = {
    "format": int,
    "runs": int,
    "grids": list,
    "code": dict,
    "examples": dict,
}  # what sweep.json must have
_ANSWERS = {"row": dict, "found": dict, "error": str}
"""What may come of a run: the row of a sweep, what a calibration found, or why there is neither."""

ADVICE = "remove it with p2p-sim rm and sweep again, or give another --out"
_PATIENCE = 1.0  # seconds: p2p-sim ls holds the lock while it looks

Owner = tuple[Path, str]
"""The folder that a sweep's folder is a part of, and what that is, such as "comparison"."""


@dataclass
class SweepFolder:
    """The folder of a sweep.  ``about``: what sweep.json holds; None for a new sweep.

    ``again``: whether a run is tried again when the sweep goes on, by the number of each run that was made; ``failed``:
    those that failed, for whatever reason.
    """

    path: Path
    about: dict[str, Any] | None
    again: dict[int, bool] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    _places: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # of the last line of each run, and its length
    _length: int = 0
    _descriptor: int = -1

    @property
    def done(self) -> set[int]:
        """The numbers of the runs that need not be made."""
        return {index for index, again in self.again.items() if not again}

    def begin(self, about: Mapping[str, Any]) -> None:
        """Write what the sweep is; raises InputError if the folder cannot be written."""
        text = json.dumps({"format": FORMAT, **about}, indent=1) + "\n"
        output_files.write(self.path / SWEEP, text, private=True)  # it tells seeds
        self.about = dict(about)

    def add(self, index: int, answer: Mapping[str, Any]) -> None:
        """Keep what came of a run; raises InputError where it cannot be written, and then nothing is kept of it."""
        line = json.dumps({"run": index, **answer}).encode() + b"\n"
        try:
            left = memoryview(line)
            while left:  # a write may be short
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
            raise InputError(
                f"{str(self.path / RUNS)!r} cannot be written ({error.strerror or error}): the {len(self.again):,} "
                f"runs in it are kept; {write_errors.remedy(error)}, and give the same command again"
            ) from error
        self._note(index, answer, len(line))

    def answer(self, index: int) -> dict[str, Any]:
        """Return what came of a run that was made."""
        start, length = self._places[index]
        found: dict[str, Any] = json.loads(os.pread(self._descriptor, length, start))
        return found

    def read(self) -> None:
        """Read which runs were made; raises InputError for a damaged file.  A cut last line is dropped."""
        with os.fdopen(os.dup(self._descriptor), "rb") as lines:
            lines.seek(0)
            for number, line in enumerate(lines):
                if not line.endswith(b"\n"):
                    break
                try:
                    answer = _answer_in(line, 0 if self.about is None else self.about["runs"])
                except (ValueError, RecursionError) as error:
                    raise InputError(
                        f"{str(self.path / RUNS)!r} is damaged in line {number + 1} ({error}): {ADVICE}"
                    ) from error
                self._note(answer["run"], answer, len(line))

    def cut(self) -> None:
        """Drop a line that was cut."""
        os.ftruncate(self._descriptor, self._length)

    def _note(self, index: int, answer: Mapping[str, Any], length: int) -> None:
        self.again[index] = bool(answer.get("again"))
        (self.failed.add if "error" in answer else self.failed.discard)(index)
        self._places[index] = (self._length, length)
        self._length += length


def _answer_in(line: bytes, runs: int) -> dict[str, Any]:
    """Return what a line says of one of so many runs; raises ValueError, or RecursionError, for anything else."""
    found = json.loads(line)
    if type(found) is not dict:
        raise ValueError(f"it holds {short(found)}, not an object")
    run = found.get("run")
    if type(run) is not int or not 0 <= run < runs:
        raise ValueError(f"run = {short(run)}: must be one of {runs:,} runs, counted from 0")
    if type(found.get("again", False)) is not bool:
        raise ValueError(f"again = {short(found['again'])}: must be true or false")
    came = [name for name, kind in _ANSWERS.items() if name in found and type(found[name]) is kind]
    if len(came) != 1:
        raise ValueError(f"run {run}: what came of it must be one of {', '.join(_ANSWERS)}")
    return found


def is_sweep(path: Path) -> bool:
    """Whether a folder holds a sweep."""
    try:
        return _about(path) is not None
    except InputError:
        return False


def check(path: Path) -> None:
    """Check that a sweep can be kept in a folder, or is there; raises InputError."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, a null byte, or a folder that must not be read
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--out {str(path)!r} is no usable path ({why}): give another folder") from error
    if path.is_symlink():
        raise InputError(f"--out {str(path)!r} is a link to {link_target(path)!r}: name the folder itself")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"--out {str(path)!r} is a file: give a folder")
    inside = {entry.name for entry in path.iterdir()}
    if inside and SWEEP not in inside and not (inside == {RUNS} and not (path / RUNS).stat().st_size):
        raise InputError(
            f"--out {str(path)!r} holds something else, such as {sorted(inside)[0]!r}: give a new or empty folder, or "
            "that of the sweep that is to go on"
        )


@contextmanager
def held(path: Path, of: Owner | None = None) -> Iterator[SweepFolder]:
    """Hold a sweep's folder, made if there is none; raises InputError if another sweep is written there.

    ``of``: what the folder is a part of, where it is one.
    """
    check(path)
    new = [parent for parent in (path, *path.parents) if not parent.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = _locked(path, of)
    except OSError as error:
        raise InputError(f"--out {str(path)!r} cannot be written: {error.strerror or error}") from error
    try:
        found = SweepFolder(path, _about(path), _descriptor=descriptor)
        found.read()
        found.cut()
        yield found
    finally:
        os.close(descriptor)
        if not os.path.lexists(path / SWEEP):  # it never began
            (path / RUNS).unlink(missing_ok=True)
            for parent in new:
                with suppress(OSError):
                    parent.rmdir()


@contextmanager
def opened(path: Path) -> Iterator[SweepFolder]:
    """Open a sweep's folder to look at it; raises InputError if it is none, or damaged."""
    about = _about(path)
    if about is None:
        raise InputError(f"{str(path)!r} is no folder of a sweep: it has no {SWEEP}")
    descriptor = os.open(path / RUNS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = SweepFolder(path, about, _descriptor=descriptor)
        found.read()
        yield found
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, of: Owner | None = None) -> Iterator[None]:
    """Keep every sweep from writing to a folder of one; raises InputError if one is.  ``of``: as of ``held``."""
    descriptor = _locked(path, of)
    try:
        yield
    finally:
        os.close(descriptor)


def is_running(path: Path) -> bool:
    """Whether a process is writing to a sweep now; False where files cannot be locked."""
    try:
        descriptor = os.open(path / RUNS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return file_lock.lock(descriptor) is False
    finally:
        os.close(descriptor)


def _about(path: Path) -> dict[str, Any] | None:
    """Return what sweep.json holds; None if there is none.  Raises InputError for a damaged one."""
    file = path / SWEEP
    advice = "restore it, or remove the folder by hand"
    text = regular_files.octets(path, SWEEP, advice)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(file)!r} is damaged: it is no JSON ({error}); {advice}") from error
    if not isinstance(found, dict) or any(type(found.get(key)) is not kind for key, kind in _KEPT.items()):
        raise InputError(f"{str(file)!r} is no file of a sweep: {advice}")
    if found["format"] > FORMAT:
        raise InputError(
            f"{str(file)!r} has format {found['format']}; this version reads up to {FORMAT}: use the version that "
            "wrote it, or a newer one"
        )
    return found


def _locked(path: Path, of: Owner | None) -> int:
    """Return the open, locked file of a sweep's runs; raises InputError if another process has it."""
    whole, kind = of or (path, "sweep")
    until = time.monotonic() + _PATIENCE
    while True:
        descriptor = os.open(
            path / RUNS, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        if file_lock.lock(descriptor) is not False and os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)
        if time.monotonic() > until:
            raise InputError(
                f"{str(whole)!r} is being written by another {kind}: wait for its end, or name another folder"
            )
        time.sleep(0.05)

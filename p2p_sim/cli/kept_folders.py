"""The runs, sweeps and comparisons that are kept in a folder: what each is, and which files are theirs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from p2p_sim.cli.run_folders import LATEST, RUNS
from p2p_sim.comparison.folder import COMPARISONS, summary_of
from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import check_usable, link_target
from p2p_sim.rundir import comparison_files, run_directory, run_json, sweep_files, under_way
from p2p_sim.sweep import folder as sweep_folder
from p2p_sim.sweep.sweeping import SWEEPS

RUN, SWEEP, COMPARISON = "run", "sweep", "comparison"
_REPORT = "report.html"
_BEING_WRITTEN = ".p2p-sim-"  # left by a command that was killed


@dataclass(frozen=True)
class KeptFolder:
    """A run, a sweep or a comparison.

    ``state``: whether it is whole, goes on, was cut off, or is damaged; ``what``: of what.
    """

    path: Path
    kind: str
    state: str
    what: str

    @property
    def changed(self) -> str:
        """When it was last written to, by this machine's clock."""
        newest = max((status.st_mtime for status in _statuses(self.path.iterdir())), default=0.0)
        return datetime.fromtimestamp(newest).isoformat(sep=" ", timespec="minutes")

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(status.st_size for status in _statuses(self.path.rglob("*")))

    @property
    def strangers(self) -> list[str]:
        """Names of the folder's entries that are not its own files."""
        if self.kind == SWEEP:
            return _strangers(self.path, sweep_files.FILES)
        if self.kind == RUN:
            own = (*run_directory.OWN_FILES, *run_directory.OWN_FOLDERS, _REPORT, under_way.ASKED)
            return _strangers(self.path, own)
        found = _strangers(self.path, (*comparison_files.FOLDERS, *comparison_files.FILES))
        for name in comparison_files.FOLDERS:
            found += [f"{name}/{each}" for each in _strangers(self.path / name, sweep_files.FILES)]
        return found


def _strangers(path: Path, own: Iterable[str]) -> list[str]:
    """Return the names of a folder's entries beside its own files; none if it is no folder."""
    if not path.is_dir():
        return []
    return sorted(
        file.name for file in path.iterdir()
        if file.name not in own and not file.name.startswith(_BEING_WRITTEN)
    )  # fmt: skip


def _statuses(files: Iterable[Path]) -> Iterator[os.stat_result]:
    """Yield what is known of each file that is still there: while a sweep is written, some are renamed or removed."""
    for file in files:
        with suppress(FileNotFoundError):
            yield file.lstat()


def of(path: Path) -> KeptFolder | None:
    """Return the run, the sweep or the comparison that a folder is; None for any other, and for links.

    Raises PermissionError for a folder that this user must not look into, and InputError for an impossible path.
    """
    check_usable(path)
    if path.is_symlink() or not path.is_dir():
        return None
    os.scandir(path).close()
    kind = _kind(path)
    try:
        if kind == COMPARISON:
            return _comparison(path)
        if kind == SWEEP:
            return _sweep(path)
        if os.path.lexists(path / under_way.ASKED):
            return _run_under_way(path)
        if run_directory.is_run(path):
            return _run(path)
        if under_way.PARTIAL in path.name:
            return _rest_of_run(path)
    except (InputError, OSError) as error:
        return KeptFolder(path, kind, "damaged", str(error))
    return None


def _kind(path: Path) -> str:
    if os.path.lexists(path / comparison_files.CALIBRATIONS / sweep_files.SWEEP):
        return COMPARISON
    return SWEEP if os.path.lexists(path / sweep_files.SWEEP) else RUN


def inside(path: Path) -> Iterator[KeptFolder]:
    """Yield what is kept in a folder, and in its folders ``runs``, ``sweeps`` and ``comparisons``; or itself.

    Raises InputError if there is no such folder.
    """
    check_usable(path)
    if not path.is_dir():
        what = "is no folder"
        if path.is_symlink() and not path.exists():  # such as runs/latest after its run was removed
            what = f"is a link to {link_target(path)!r}, which is not there"
        raise InputError(f"{str(path)!r} {what}: name one in which runs, sweeps or comparisons are kept")
    itself = of(path.parent / path.readlink() if path.is_symlink() else path)  # such as runs/latest
    if itself is not None:
        yield itself
        return
    for place in sorted(path.iterdir()):
        found = _readable(place)
        if found is not None:
            yield found
        elif place.name in (RUNS, SWEEPS, COMPARISONS) and place.is_dir() and not place.is_symlink():
            yield from (each for each in map(_readable, sorted(place.iterdir())) if each is not None)


def _readable(path: Path) -> KeptFolder | None:
    """Return what a folder is as ``of`` does; None where this user must not look: others' folders in a shared one."""
    try:
        return of(path)
    except PermissionError:
        return None


def unlink_latest(path: Path) -> None:
    """Remove links ``latest`` to a run that is about to be removed."""
    for parent in dict.fromkeys((path.absolute().parent, Path(RUNS).absolute())):
        latest = parent / LATEST
        if latest.is_symlink() and os.path.realpath(latest) == os.path.realpath(path):
            latest.unlink()


def _run(path: Path) -> KeptFolder:
    content = run_json.read_run_json(path)
    users = "" if content["users"] is None else f", {content['users']:,} users"
    return KeptFolder(path, RUN, "complete", f"{content['protocol'].partition(':')[2]}{users}")


def _run_under_way(path: Path) -> KeptFolder:
    asked = under_way.read(path)
    state = "running" if _is_locked(path) else "cut off"
    return KeptFolder(path, RUN, state, asked["protocol"].partition(":")[2])


def _rest_of_run(path: Path) -> KeptFolder | None:
    """Return what a run left, or writes, without ``asked.json``, as from Python; None if other files are there."""
    running = _is_locked(path)
    what = "being written" if running else f"no {under_way.ASKED}: it cannot go on"
    found = KeptFolder(path, RUN, "running" if running else "cut off", what)
    return None if found.strangers else found


def _is_locked(path: Path) -> bool:
    """Return whether another process writes an unfinished run."""
    try:
        lock = under_way.locked(path)
    except InputError:
        return True
    if lock is not None:
        os.close(lock)
    return False


def _sweep(path: Path) -> KeptFolder:
    with sweep_folder.opened(path) as found:
        about, done, failed = found.about or {}, len(found.done), len(found.failed)
    state = (
        "complete" if done == about["runs"] else "running" if sweep_folder.is_running(path) else "incomplete"
    )
    source = f"{about['source']}, " if about.get("source") else ""
    more = f", {failed:,} failed" if failed else ""
    return KeptFolder(path, SWEEP, state, f"{source}{done:,} of {about['runs']:,} runs{more}")


def _comparison(path: Path) -> KeptFolder:
    found = summary_of(path)
    running = sweep_folder.is_running(path / comparison_files.CALIBRATIONS)
    state = "running" if running else "complete" if found.whole else "incomplete"
    return KeptFolder(path, COMPARISON, state, found.text)

"""``p2p-sim rm``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import EXECUTION, flag
from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import check_usable, link_target
from p2p_sim.report import terminal
from p2p_sim.rundir import under_way
from p2p_sim.rundir.comparison_files import CALIBRATIONS

if TYPE_CHECKING:
    from p2p_sim.cli.kept_folders import KeptFolder

_LONGEST, _SHORT = 200, 40
"""Bytes of a name to which more can be added, as most systems allow 255; letters that a longer one is cut to."""


@app.command("rm", cls=UniqueOptionsCommand, epilog="Example: p2p-sim rm sweeps/alphas")
@dataclass(frozen=True)
class RmCommand:
    """Remove a run, a sweep or a comparison, after asking.  None is removed in whose folder other files lie, too."""

    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder of a run, a sweep or a comparison.")]
    yes: Annotated[bool, flag(EXECUTION, "Do not ask.", "--yes")] = False

    def execute(self, _command: Command) -> int:
        """Ask and remove; 1 if the answer is no."""
        found = _checked(self.path)
        of_what = f"{terminal.visible(found.what)}; {terminal.nbytes(found.size)}"
        what = f"{found.kind} {terminal.visible(str(found.path))} ({of_what})"
        if not self.yes and not _agreed(what):
            sys.stdout.write("nothing was removed\n")
            return 1
        _remove(found)
        sys.stdout.write(f"removed {what}\n")
        return 0


def _checked(name: str) -> KeptFolder:
    """Return what is to be removed; raises InputError for anything but a whole folder of ours."""
    from p2p_sim.cli import kept_folders
    from p2p_sim.sweep import folder

    if not name:  # an empty shell variable would be the folder that one stands in
        raise InputError(
            "PATH = '': name the folder of a run, a sweep or a comparison; p2p-sim ls lists them"
        )
    path = check_usable(Path(name))
    if path.is_symlink():
        there = f"{str(path)!r} is a link to {link_target(path)!r}"
        if not path.exists():
            raise InputError(f"{there}, which is not there: p2p-sim rm removes no links; remove it by hand")
        raise InputError(f"{there}: name the folder itself")
    found = kept_folders.of(path)
    if found is None:
        what = "is no run, no sweep and no comparison, and p2p-sim rm removes these alone"
        if not path.exists():
            what = "is not there: name the folder of a run, a sweep or a comparison"
        raise InputError(f"{str(path)!r} {what}; p2p-sim ls lists them")
    swept = {kept_folders.SWEEP: path, kept_folders.COMPARISON: path / CALIBRATIONS}.get(found.kind)
    if swept is not None and not folder.is_sweep(swept):
        raise InputError(f"{found.what}; p2p-sim rm removes whole {found.kind}s alone")
    if os.path.ismount(path):
        raise InputError(f"{str(path)!r} is where a disk is mounted: it is not removed")
    if found.strangers:
        raise InputError(
            f"{str(path)!r} also holds {found.strangers[0]!r}, which is no file of a {found.kind}: move it "
            "elsewhere first"
        )
    return found


def _agreed(what: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(f"nobody is there to be asked whether to remove {what}: give --yes")
    return typer.confirm(f"Remove {what}?", err=True)


def _remove(found: KeptFolder) -> None:
    """Remove a folder: first its name, so that no half of it is taken for the whole."""
    from p2p_sim.cli import kept_folders

    path = found.path
    place = path.resolve()  # "." has no name to be changed
    rest = ""
    try:
        with _held(place, found.kind):
            name = place.name if len(os.fsencode(place.name)) <= _LONGEST else place.name[:_SHORT]
            aside = Path(tempfile.mkdtemp(prefix=f".{name}.old.", dir=place.parent))
            try:
                place.rename(aside / place.name)
            except OSError:
                aside.rmdir()
                raise
            rest = f"; what is left lies in {str(aside)!r}: remove that by hand"
            kept_folders.unlink_latest(place)
            shutil.rmtree(aside)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be removed: {error.strerror or error}{rest}") from error


def _held(place: Path, kind: str) -> AbstractContextManager[None]:
    """Hold the folder against whoever writes it; raises InputError if it is being written."""
    from p2p_sim.cli import kept_folders
    from p2p_sim.rundir import claim
    from p2p_sim.sweep import folder

    if kind == kept_folders.SWEEP:
        return folder.locked(place)
    if kind == kept_folders.COMPARISON:
        return folder.locked(place / CALIBRATIONS, (place, kind))
    unfinished = (place / under_way.ASKED).exists() or under_way.PARTIAL in place.name
    return _lock(place) if unfinished else claim.held(place, force=True)


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    lock = under_way.locked(place)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)

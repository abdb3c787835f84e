"""The figures of a report as a folder of files: SVG, PNG, and the numbers they show as CSV."""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.progress import silent
from p2p_sim.report.page_layout import Drawing

OPTION = "--figures"
Progress = Callable[[str, int, int], None]


def check(name: str) -> Path:
    """Return the path of a new or an empty folder; raises InputError for anything else that is there, and for links."""
    shown = f"{OPTION} {name!r}"
    if not name:
        raise InputError(f"{shown}: name a new folder, or an empty one")
    place = Path(name)
    try:
        if place.is_symlink():
            raise InputError(f"{shown} is a link: it is not replaced; name a new folder, or an empty one")
        if place.is_dir() and any(place.iterdir()):
            raise InputError(
                f"{shown} is not empty: nothing in it is replaced; name a new folder, or an empty one"
            )
        if os.path.lexists(place) and not place.is_dir():
            raise InputError(
                f"{shown} is not a folder: it is not replaced; name a new folder, or an empty one"
            )
        if os.path.ismount(place):
            raise InputError(
                f"{shown} is where a disk is mounted: it is not replaced; name a new folder in it"
            )
        if not place.absolute().parent.is_dir():
            raise InputError(f"{shown}: name a folder in a folder that exists")
    except ValueError as error:
        raise InputError(f"{shown} is no usable path ({error}): choose another place") from error
    except OSError as error:
        raise InputError(f"{shown} cannot be read ({error.strerror}): choose another place") from error
    return place


def write(place: Path, drawings: Sequence[Drawing], progress: Progress = silent) -> list[str]:
    """Write every figure as ``NAME.svg``, ``NAME.png`` and ``NAME.csv``, all of them or none; return the names.

    ``place``: a new or an empty folder.  Raises InputError if it is neither, or cannot be written.
    """
    check(str(place))
    target = Path.cwd() / place
    target = target.parent.resolve() / target.name if target.name not in ("", "..") else target.resolve()
    fresh = target.with_name(f".p2p-sim-{secrets.token_hex(8)}")
    try:
        fresh.mkdir()
        for number, drawing in enumerate(drawings):
            progress("drawing figures", number, len(drawings))
            (fresh / f"{drawing.name}.svg").write_bytes(drawing.svg().encode())
            (fresh / f"{drawing.name}.png").write_bytes(drawing.png())
            (fresh / f"{drawing.name}.csv").write_bytes(as_csv(drawing.columns, drawing.rows).encode())
        fresh.rename(target)  # replaces an empty folder, and nothing else
    except OSError as error:
        raise InputError(
            f"{OPTION} {str(place)!r} cannot be written ({error.strerror or error}): {write_errors.remedy(error)}, or "
            "choose another place"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return [drawing.name for drawing in drawings]


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as CSV, unrounded; missing values are empty, infinity is ``inf``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()

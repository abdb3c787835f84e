"""What a run that goes on notes of every file that it ended, so that one that is cut off can be checked, too.

``messages/.site-SITE.jsonl``: a line a file, as the manifest will say of it, with a checksum of the line.  The notes
go when the manifest is whole.  A line comes before the file gets its name: what is noted is there, or was being
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.trace import sums

_FILES = ".site-*.jsonl"


def add(root: Path, site: int, entry: Mapping[str, Any]) -> None:
    """Note a file that was ended."""
    with (root / f".site-{site:05d}.jsonl").open("a") as stream:
        stream.write(json.dumps(sums.with_checksum(entry)) + "\n")


def read(root: Path) -> dict[str, list[dict[str, Any]]] | None:
    """Return what was noted of each file, the last at the end; None if nothing was.

    Raises InputError naming the notes if they were altered.
    """
    files = sorted(root.glob(_FILES))
    found: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        *lines, _being_written = file.read_bytes().split(b"\n")
        for line in lines:
            try:
                told = json.loads(line)
                if sums.CHECKSUM not in told or sums.was_altered(told):
                    raise ValueError("its checksum is not that of the line")
                found.setdefault(told["file"], []).append(sums.bare(told))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise InputError(
                    f"the trace is damaged: {str(file)!r} was altered since it was written; restore it, or run the "
                    "protocol again"
                ) from error
    return found if files else None


def forget(root: Path) -> None:
    """Remove the notes of a trace that is whole."""
    for file in root.glob(_FILES):
        file.unlink(missing_ok=True)

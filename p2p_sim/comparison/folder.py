"""The folder of a comparison: where it may be, and what it is, for who lists folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.rundir import regular_files
from p2p_sim.rundir.comparison_files import CALIBRATIONS, WHOLE
from p2p_sim.sweep import folder as sweep_folder
from p2p_sim.sweep.table import LEFT_OUT

COMPARISONS = "comparisons"
"""Where comparisons are kept, in the current folder, unless another place is given."""


@dataclass(frozen=True)
class Summary:
    """A comparison in a line, for who lists folders.  ``whole``: whether it ended, and nothing was left out."""

    text: str
    whole: bool


def check(place: Path) -> None:
    """Check that a comparison can be kept in a folder, or is there; raises InputError.

    Calibrations are the first thing that is written: a folder without them that holds anything is of something else.
    """
    try:
        inside = sorted(entry.name for entry in place.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InputError(f"--out {str(place)!r} is a file, or in one: give a folder") from None
    except (OSError, ValueError) as error:  # too long, a null byte, or a folder that must not be read
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--out {str(place)!r} is no usable path ({why}): give another folder") from error
    if inside and CALIBRATIONS not in inside:
        raise InputError(
            f"--out {str(place)!r} holds something else, such as {inside[0]!r}: give a new or empty folder, or that of "
            "the comparison that is to go on"
        )


@contextmanager
def held(place: Path) -> Iterator[sweep_folder.SweepFolder]:
    """Hold the folder of a comparison, made if there is none, and yield that of its calibrations.

    Raises InputError while another comparison is written there.
    """
    with sweep_folder.held(place / CALIBRATIONS, (place, "comparison")) as kept:
        yield kept


def summary_of(place: Path) -> Summary:
    """Return the summary of a comparison; raises InputError for one that is damaged."""
    with sweep_folder.opened(place / CALIBRATIONS) as kept:
        about, done = kept.about or {}, len(kept.done)
    text = regular_files.octets(place, WHOLE, _ADVICE)
    if text is None:
        return Summary(f"{done:,} of {about['runs']:,} calibrations", whole=False)
    try:
        found = json.loads(text)
        return _summary_of_ended(found)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{str(place / WHOLE)!r} is damaged ({error}): {_ADVICE}") from error


_ADVICE = "give the comparison's command again, or remove the folder"


def _summary_of_ended(found: Mapping[str, Any]) -> Summary:
    people, rows, taken = found["question"]["people"], found["rows"], found["recommendation"]["protocol"]
    name = Path(str(people.get("data", "synthetic"))).stem
    advice = "nothing is recommended" if taken is None else f"{taken} is recommended"
    left_out = any(row["status"] == LEFT_OUT for row in rows)
    return Summary(f"{name}, {found['users']:,} users, {len(rows):,} protocols, {advice}", whole=not left_out)

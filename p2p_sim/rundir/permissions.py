"""Who may read the files that are written: one rule for all of them.

With a run's seed anybody can undo the noise, so a file that holds a seed or labels is readable by its owner alone, also
inside a run directory, which is closed to others as a whole: files are copied out of it.
"""

from __future__ import annotations

import os
from pathlib import Path


def allowed(private: bool, before: int = 0o666) -> int:
    """Return the permissions of a file; ``private``: it holds a seed or labels; ``before``: what it had."""
    return before & 0o600 if private else before & 0o777


def create(place: Path, text: str = "", *, private: bool) -> None:
    """Create a file with some text in a folder that is being made; ``private``: it holds a seed or labels."""
    with os.fdopen(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, allowed(private)), "w") as file:
        file.write(text)

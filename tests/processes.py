"""Programs that tests start: none outlives its test, also where the test fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ended(program: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """Kill the program at the end, if it still runs; ``with Popen(...)`` alone would wait for it for ever."""
    with program:
        try:
            yield program
        finally:
            program.kill()

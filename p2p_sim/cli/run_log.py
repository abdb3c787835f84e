"""The log of a run for programs: one JSON object a line, written as things happen.  It holds no seed and no label."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError, StorageError
from p2p_sim.report import output_files


@dataclass
class RunLog:
    """Writes events to a file; without one, nowhere."""

    stream: FileIO | None = None
    path: str = ""

    def __call__(self, event: str, about: Mapping[str, Any]) -> None:
        """Write one line: the time (UTC), the event, and its details.

        Raises StorageError where it cannot be written, such as on a full disk.
        """
        if self.stream is None:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        left = memoryview((json.dumps({"time": now, "event": event, **about}) + "\n").encode())
        try:
            while left:  # a write may be short
                left = left[self.stream.write(left) :]
        except OSError as error:
            raise StorageError(
                f"--log {self.path!r} cannot be written ({error.strerror or error}): "
                f"{write_errors.remedy(error)}, or give another file"
            ) from error


@contextmanager
def opened(path: str | None) -> Iterator[RunLog]:
    """Append to a file inside the ``with`` block; an error that ends it is the last event.

    Raises InputError if it cannot be opened, or is a file of a run.
    """
    if path is None:
        yield RunLog()
        return
    place = output_files.check(str(Path(path).expanduser()) if path else path, "--log")
    try:
        stream = place.open("ab", buffering=0)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--log {path!r} cannot be written ({why}): give another file") from error
    with stream:
        log = RunLog(stream, path)
        try:
            yield log
        except BaseException as error:
            with suppress(StorageError):  # the log itself is what failed
                log("failed", {"error": type(error).__name__})  # its text may quote a row of the data
            raise

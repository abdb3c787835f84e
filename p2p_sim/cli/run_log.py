"""The log of a run for programs: one JSON object a line, written as things happen.  It holds no seed and no label."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from p2p_sim.core.errors import InputError
from p2p_sim.core.summary import visible


@dataclass
class RunLog:
    """Writes events to a stream; without one, nowhere."""

    stream: TextIO | None = None

    def __call__(self, event: str, about: Mapping[str, Any]) -> None:
        """Write one line: the time (UTC), the event, and what is to be told of it."""
        if self.stream is None:
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **about})
        self.stream.write(f"{line}\n")
        self.stream.flush()


@contextmanager
def opened(path: str | None) -> Iterator[RunLog]:
    """Append to a file inside the ``with`` block; an error that ends it is the last event.  Raises InputError."""
    if path is None:
        yield RunLog()
        return
    try:
        stream = Path(path).expanduser().open("a", encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--log {path!r} cannot be written ({why}): give another file") from error
    with stream:
        log = RunLog(stream)
        try:
            yield log
        except BaseException as error:
            log("failed", {"error": type(error).__name__, "message": visible(" ".join(str(error).split()))})
            raise

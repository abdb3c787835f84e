"""A worker: a process that makes runs one after another, so that it imports, and reads examples, only once."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

READY = b"ready\n"
"""The first line of a worker, when all that it needs is imported."""

_TRANSIENT = (OSError, MemoryError)
"""What may go well another time, on the same machine."""


class Worker:
    """Makes runs that come as JSON, and says as JSON what came of each."""

    def __init__(self) -> None:
        from p2p_sim.sweep.maker import Maker

        self._maker = Maker()

    def answer(self, text: str) -> str:
        """Return the row of a run, or why there is none; ``text``: the run, and the SHA-256 of its examples."""
        asked = json.loads(text)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", UserWarning)
            found = self._made(asked)
        said = [str(each.message) for each in heard if each.category is UserWarning]
        return json.dumps(found | {"warnings": list(dict.fromkeys(said))})

    def _made(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        from p2p_sim.core.errors import InputError, ProtocolError

        try:
            return {"row": self._maker.row(asked["run"], asked["content"])}
        except (InputError, ProtocolError) as error:
            return {"error": str(error)}
        except Exception as error:  # whatever a protocol of one's own raises: the other runs go on
            if isinstance(error, _TRANSIENT):
                return {"error": f"{type(error).__name__}: {error}", "again": True}
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.filename}, line {last.lineno}"
            return {"error": f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"}


class Answering(Protocol):
    """What answers a line by a line."""

    def answer(self, text: str) -> str:
        """Answer one."""


def serve(worker: Callable[[], Answering]) -> None:
    """Answer each line of standard input by a line on what was standard output; ``worker``: makes what answers.

    What a protocol prints goes to standard error.  The process ends when its input does: with whoever started it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(line)
        os._exit(0)  # whatever it is at: nobody waits for it

    threading.Thread(target=listen, daemon=True).start()  # first: what follows takes seconds
    maker = worker()
    answers.write(READY)
    answers.flush()
    while True:
        answers.write(maker.answer(asked.get()).encode() + b"\n")
        answers.flush()

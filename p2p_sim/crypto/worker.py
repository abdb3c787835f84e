"""A worker process of the pool: reads (function, arguments) from its input, writes (done, result or error).

Before them it reads where to find modules of one's own.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress


def main() -> None:
    """Answer until the input ends, which it does when the parent dies."""
    stdout_copy = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not come between the answers
    # closed here: at exit, from Python 3.13 on, what a dead parent cannot read would be reported as a second error
    with suppress(BrokenPipeError, EOFError), os.fdopen(stdout_copy, "wb") as out:
        for own in pickle.load(sys.stdin.buffer):
            own.open()
        while True:
            work, arguments = pickle.load(sys.stdin.buffer)
            try:
                answer = (True, work(*arguments))
            except Exception as error:
                answer = (False, error)
            pickle.dump(answer, out, protocol=5)
            out.flush()


if __name__ == "__main__":
    main()

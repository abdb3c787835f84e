"""A worker process of the pool: reads (function, arguments) from its input, writes (done, result or error)."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress


def main() -> None:
    """Answer until the input ends, which it does when the parent dies."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not come between the answers
    with suppress(BrokenPipeError), suppress(EOFError):
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

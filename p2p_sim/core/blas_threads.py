"""One thread for BLAS while programs of a run work: the bits of a matrix product do not depend on the number of cores.

BLAS divides products and sums among its own threads, and rounds them differently with each number of them.  Beside the
threads of a run they would be too many as well.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any


class OneBlasThread:
    """Limits all BLAS libraries of the process to one thread inside ``with`` blocks, in whatever threads these are.

    The setting is the process's: the first block that is entered makes it, and the last that is left takes it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: dict[str, tuple[Any, int]] = {}
        self._libraries: list[Any] = []
        self._modules = -1

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0 or self._modules != len(sys.modules):
                self._limit()
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in self._before.values():
                    _set(library, threads)
                self._before.clear()

    def _limit(self) -> None:
        """Limit what is loaded, and remember what it had."""
        for library in self._loaded():
            if library.filepath not in self._before and (threads := library.num_threads) > 1:
                self._before[library.filepath] = library, threads
                _set(library, 1)

    def _loaded(self) -> list[Any]:
        """Return the libraries, looked for anew only if a module was imported: that takes longer than a small step."""
        if self._modules != len(sys.modules):
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._modules = len(sys.modules)
        return self._libraries


def _set(library: Any, threads: int) -> None:
    """Set a library's threads, where some versions of threadpoolctl let one thread alone do so, too."""
    release = getattr(library, "clear_controlling_thread", None)
    if release is None:
        library.set_num_threads(threads)
        return
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


ONE_BLAS_THREAD = OneBlasThread()
"""That of this process: what it sets is the process's, too."""

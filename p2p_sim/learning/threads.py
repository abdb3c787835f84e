"""One thread for numerical libraries, so that sums come in one order whatever the machine's setting."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_thread() -> AbstractContextManager[object]:
    """Hold OpenMP and BLAS to one thread inside a ``with`` block."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits

"""PyTorch, where it is installed (the extra ``torch``), with a number of threads that no caller's setting changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from p2p_sim.learning.training.missing_package import needed


@contextmanager
def pytorch(what: str, threads: int = 1) -> Iterator[Any]:
    """Give PyTorch, with that many threads inside the ``with`` block: another number would sum in another order.

    ``what``: what it is for, such as "A needs PyTorch".  Raises MissingPackageError, an InputError, if it is absent.
    """
    with needed(what, "pip install 'p2p-sim[torch]', or pip install torch"):
        import torch
    outside = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield torch
    finally:
        torch.set_num_threads(outside)

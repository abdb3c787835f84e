"""PyTorch, where it is installed, with a number of threads that no caller's setting changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.missing_package import needed


@contextmanager
def pytorch(what: str, threads: int = 1) -> Iterator[Any]:
    """Give PyTorch, with that many threads inside the ``with`` block: another number would sum in another order.

    ``what``: what it is for, such as "A needs PyTorch".  Raises MissingPackageError, an InputError, if it is absent.
    """
    with needed(what, "pip install torch"):
        import torch
    outside = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield torch
    finally:
        torch.set_num_threads(outside)


def device_of(torch: Any, name: str) -> Any:
    """Return the device that a network is trained on: "auto" is a GPU if PyTorch has one, else the processor.

    ``name``: "auto", or as PyTorch names devices: "cpu", "cuda", "cuda:1", "mps".  Raises InputError for others, and
    for a GPU that is not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"device = {name!r}: must be 'auto', 'cpu', 'cuda' or another of PyTorch's"
        ) from error
    if found.type == "cuda" and not (
        torch.cuda.is_available() and (found.index or 0) < torch.cuda.device_count()
    ):
        raise InputError(f"device = {name!r}: PyTorch finds no such GPU here; give 'auto' or 'cpu'")
    return found

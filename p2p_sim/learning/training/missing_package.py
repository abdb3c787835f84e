"""Packages that are not always installed, and the error that says how to install them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p2p_sim.core.errors import InputError


class MissingPackageError(InputError, ImportError):
    """A package that is not always installed is needed; the text says how to install it."""


@contextmanager
def needed(what: str, install: str) -> Iterator[None]:
    """Say, of an import in the ``with`` block that fails, ``what`` it is for and what to do.

    Raises MissingPackageError.
    """
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(
            f"{what}, which cannot be imported ({error}): install it, {install}"
        ) from error

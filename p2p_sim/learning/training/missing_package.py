"""Packages that are not always installed, and the error that says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

from p2p_sim.core.errors import InputError


class MissingPackageError(InputError, ImportError):
    """A package that is not always installed is needed; the text says how to install it."""


def needed(name: str, what: str, install: str) -> Any:
    """Import a module; raises MissingPackageError: ``what`` it is for, and what to do."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{what}, which cannot be imported ({error}): install it, {install}"
        ) from error

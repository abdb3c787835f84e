"""What a damaged file provokes, in json, in Arrow or here, said as an error that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from p2p_sim.core.errors import InputError

_Part = TypeVar("_Part")


def guarded(path: Path, read: Callable[[], _Part]) -> _Part:
    """Return what ``read`` does; raises InputError naming the run directory if a file is damaged."""
    try:
        return read()
    except InputError:
        raise
    except PermissionError as error:
        file = str(error.filename or path)
        raise InputError(
            f"{file!r} cannot be read (permission denied): ask its owner for a copy, or to let you read it"
        ) from error
    except Exception as error:  # whatever a damaged file provokes
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(path)!r} is damaged ({what}): run the protocol again") from error

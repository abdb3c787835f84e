"""Matplotlib with the settings that it is shipped with, whatever the caller's environment and files say."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from p2p_sim.core.errors import InputError

_BACKEND = "MPLBACKEND"
_OTHERS = ("backend", "backend_fallback", "interactive", "toolbar", "timezone", "date.epoch")
"""Settings of windows and of dates, which no plot here depends on; some must not change once matplotlib runs."""


@contextlib.contextmanager
def shipped(settings: Mapping[str, Any]) -> Iterator[None]:
    """Draw with the shipped settings and these; neither MPLBACKEND nor a matplotlibrc counts.

    Raises InputError if matplotlib cannot be loaded.
    """
    matplotlib = _loaded()
    defaults = matplotlib.rcParamsDefault
    plain = {name: defaults[name] for name in defaults if name not in _OTHERS}
    with matplotlib.rc_context({**plain, **settings}):
        yield


def _loaded() -> ModuleType:
    """Import matplotlib without MPLBACKEND: a backend that is not installed here would end the import."""
    first = "matplotlib" not in sys.modules
    backend = os.environ.pop(_BACKEND, None)
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(f"plots need matplotlib ({error}): pip install matplotlib") from error
    except (OSError, ValueError, RuntimeError) as error:  # from a matplotlibrc, which it reads on import
        raise InputError(
            f"matplotlib cannot be loaded ({error}); it reads the file matplotlibrc of the current folder, or that of "
            "MATPLOTLIBRC or ~/.config/matplotlib: mend or remove it"
        ) from error
    finally:
        if backend is not None:
            os.environ[_BACKEND] = backend
    if first and backend:
        with contextlib.suppress(ValueError):  # as matplotlib does, for the program that calls this one
            matplotlib.rcParams["backend"] = backend
    return matplotlib

"""``memoized``: cache the last results of a function, also where some arguments cannot be hashed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def memoized(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the last results of a function; arguments that cannot be looked up are computed with every time."""
    inner = lru_cache(maxsize=256)(function)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            hash((args, tuple(kwargs.items())))
        except TypeError:  # a protocol whose parameters are lists, say
            return function(*args, **kwargs)
        return inner(*args, **kwargs)  # type: ignore[arg-type]

    return wrapper

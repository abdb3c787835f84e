"""``lazy``: an attribute that is computed when it is first asked for, also where several threads ask.

It is ``functools.cached_property``, which up to Python 3.11 holds one lock for all objects of a class, so that threads
with blocks of their own would wait for each other.  Two threads that ask one object at once may both compute the
value, which must not matter.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as lazy
else:

    class lazy:
        """Decorate a method of ``self`` alone, whose value is kept in the object."""

        def __init__(self, compute: Any):
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, owner: Any, kind: type) -> Any:
            """Compute and keep the value; what is kept is found before this is called again."""
            if owner is None:
                return self
            return vars(owner).setdefault(self._name, self._compute(owner))


__all__ = ["lazy"]

"""A package with a function and a file of one name, as ``p2p_sim.run`` has: the package has the function."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that imports its public names when they are first asked for, in its function ``__getattr__``."""

    _before_files: tuple[str, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but do not let a file, when it is imported, take the name of what it defines."""
        if not (isinstance(value, ModuleType) and name in self._before_files):
            super().__setattr__(name, value)


def keep_from_files(package: str, *names: str) -> None:
    """Keep some names of a package for what it defines, whoever imports its files of the same names."""
    module = sys.modules[package]
    vars(module)["_before_files"] = names
    module.__class__ = LazyPackage

"""A package whose names are imported when they are first asked for, so that a command loads no more than it needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package with ``_names``: the module below it that defines each.

    Where a file and what it defines have one name, as ``p2p_sim.run`` has, the package has what is defined, whoever
    imports the file.
    """

    _names: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        """Import a name from the file that defines it, or a part of this package."""
        if name in self._names:
            found = getattr(importlib.import_module(f"{self.__name__}.{self._names[name]}"), name)
            vars(self)[name] = found
            return found
        if not name.startswith("_") and importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but do not let an imported file take the name of what it, or another file, defines."""
        if not (isinstance(value, ModuleType) and name in self._names):
            super().__setattr__(name, value)


def lazily(package: str, names: Mapping[str, str]) -> None:
    """Let a package import ``names`` on demand: by each, the module below the package that defines it."""
    module = sys.modules[package]
    vars(module)["_names"] = names
    module.__class__ = LazyPackage

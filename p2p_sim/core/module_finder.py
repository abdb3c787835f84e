"""Module search paths for worker processes, so that they import what this process imports.

A module of one's own, named as ``module:Class``, is found in its folder without putting that folder on ``sys.path``:
there, any other file would take the place of an installed package that is imported later.
"""

from __future__ import annotations

import ast
import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from p2p_sim.core.errors import InputError, ProtocolError


@dataclass(frozen=True)
class Own:
    """A finder of the modules ``names`` in ``folder``, and of nothing else that lies there."""

    folder: str
    names: frozenset[str]

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of these is; what lies within a package is found by its package."""
        return PathFinder.find_spec(name, [self.folder], target) if name in self.names else None

    def open(self) -> None:
        """Let this process find the modules; modules of these names that came from elsewhere are forgotten."""
        for name in self.names:
            loaded = getattr(sys.modules.get(name), "__spec__", None)
            if loaded is not None and _place(loaded) != _place(self.find_spec(name)):
                for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                    del sys.modules[each]
        sys.meta_path[:] = [
            self,
            *(f for f in sys.meta_path if not (isinstance(f, Own) and f.names & self.names)),
        ]

    def files(self) -> list[Path]:
        """Return the source files of the modules."""
        return [file for name in sorted(self.names) for file in _sources(self.find_spec(name))]


def opened() -> tuple[Own, ...]:
    """Return the finders that this process uses, for a worker to open too."""
    return tuple(finder for finder in sys.meta_path if isinstance(finder, Own))


def folders() -> list[str]:
    """Return ``sys.path`` with full paths: a worker may run in another folder."""
    return [str(Path(entry or ".").absolute()) for entry in sys.path]


def find_own(module: str, folder: Path) -> None:
    """Let this process find a module in a folder, if it lies there, with those modules of the folder that it imports.

    Raises InputError if the name is taken: by Python's library, or by an installed package.
    """
    top = module.partition(".")[0]
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"{module!r} is no module: give its name, such as ward for ward.py")
    here = PathFinder.find_spec(top, [str(folder)])
    if here is None:
        return
    elsewhere = _elsewhere(top)
    if elsewhere is not None and not _same(elsewhere, here):
        raise InputError(
            f"the module is at {_place(elsewhere)[0]}, not in this folder: give the one here another name"
        )
    if top in sys.stdlib_module_names:
        raise InputError(f"{top} is a module of Python's own: give the one in this folder another name")
    Own(str(folder), frozenset(_imported(top, folder))).open()


def imported(name: str, what: str, kind: str) -> Any:
    """Import what ``module:Name`` names, from the current folder or the path; raises InputError.

    ``what``: what it should be, such as "protocol"; ``kind``: of which kind it is, such as "CLASS", for messages.
    """
    module, _, owner = name.partition(":")
    how = f"give MODULE:{kind}, a module in this folder or installed"
    try:
        if "/" in module:
            here = f"{Path(module).name.removesuffix('.py')}:{owner}"
            raise InputError(f"a path is no module: go to its folder, and name it {here}")
        module = module.removesuffix(".py")
        find_own(module, Path.cwd())
        return getattr(importlib.import_module(module), owner)
    except InputError as error:
        raise InputError(f"{what} {name!r}: {error}") from None
    except ProtocolError as error:
        raise InputError(f"{what} {name!r}: {error}") from error
    except SyntaxError as error:
        raise InputError(f"{what} {name!r}: {error.filename}, line {error.lineno}: {error.msg}") from error
    except (ImportError, AttributeError) as error:
        raise InputError(f"{what} {name!r}: {error}; {how}") from error
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise InputError(
            f"{what} {name!r}: importing it raises {in_one_line(error)}: mend the module"
        ) from error


def in_one_line(error: BaseException) -> str:
    """Return an error in one line, with the place that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f': {text}' if text else ''} ({last.filename}, line {last.lineno})"


def _elsewhere(name: str) -> ModuleSpec | None:
    """Return where this process finds a module without any folder of one's own."""
    for finder in sys.meta_path:
        if not isinstance(finder, Own) and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def _imported(top: str, folder: Path) -> set[str]:
    """Return a module's name and those in its folder that it imports, at once or later, and that nothing else has."""
    found: set[str] = set()
    todo = [top]
    while todo:
        name = todo.pop()
        spec = None if name in found else PathFinder.find_spec(name, [str(folder)])
        if spec is None or (name != top and not _free(name, spec)):
            continue
        found.add(name)
        for file in _sources(spec):
            with suppress(SyntaxError, ValueError):  # reported when it is imported
                todo += _tops(ast.parse(file.read_bytes()))
    return found


def _free(name: str, spec: ModuleSpec) -> bool:
    other = _elsewhere(name)
    return name not in sys.stdlib_module_names and (other is None or _same(other, spec))


def _same(other: ModuleSpec, spec: ModuleSpec) -> bool:
    """Whether a module of this name elsewhere is this one, or only a folder without any code of its own."""
    return not other.has_location or _place(other) == _place(spec)


def _tops(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level names that a file imports anywhere, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _sources(spec: ModuleSpec | None) -> list[Path]:
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return sorted(file for place in spec.submodule_search_locations for file in Path(place).rglob("*.py"))
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def _place(spec: ModuleSpec | None) -> list[str]:
    """Return the file of a module, or the folders of a package that has no file of its own."""
    if spec is None:
        return []
    if spec.has_location and spec.origin:
        return [str(Path(spec.origin).resolve())]
    return [str(Path(place).resolve()) for place in spec.submodule_search_locations or ()]

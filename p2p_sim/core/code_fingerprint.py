"""Fingerprints of the code that computes a run, and of the modules a worker process imports."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from p2p_sim.core import module_finder
from p2p_sim.core.protocol import Protocol

_FOLDERS = ("core", "crypto", "network")
"""Parts of this package that decide bits, beside the protocols."""

_BESIDE = ("comparison", "errata", "leakage", "plan", "render", "report", "sweep")
"""Folders that show a run, plan it or are about several; what they note of one was computed by other folders."""

_COMMAND = ("run.py", "users.py", "parameters.py", "population_option.py", "table_options.py")
"""Modules of the command line in which the words of a run get their meaning and their defaults; others are verbs."""

_LIBRARIES = ("numpy", "numba", "pyarrow", "cryptography")
"""Packages that a worker computes, writes or seals with."""

_OURS = "p2p-sim"


def fingerprint(protocol: Protocol | None) -> str:
    """Return the first 12 hexadecimal digits of a SHA-256 over the sources of the engine and of a protocol, if any."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    engine = (path for folder in _FOLDERS for path in (package / folder).rglob("*.py"))
    for path in _with_protocol(protocol, engine):
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def sources(protocol: Protocol) -> dict[str, str]:
    """Return the SHA-256 of each source file that decides what a command leaves in a run's folder: ``core/draw.py``.

    It is every file of this package, new ones too, except what only shows a run, and the other commands.
    """
    package = Path(__file__).parents[1]
    files = {*_with_protocol(protocol, filter(_decides_folder, package.rglob("*.py")))}
    files |= {path for own in module_finder.opened() for path in own.files()}
    return {
        str(path.relative_to(package)) if path.is_relative_to(package) else f"{path.parent.name}/{path.name}":
            hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }  # fmt: skip


def _decides_folder(path: Path) -> bool:
    folder, *inner = path.relative_to(Path(__file__).parents[1]).parts
    return folder not in _BESIDE and (folder != "cli" or inner[0] in _COMMAND)


def _with_protocol(protocol: Protocol | None, engine: Iterable[Path]) -> list[Path]:
    """Return some source files of this package, and those of a protocol, if any, sorted."""
    files = set(engine)
    try:
        own = Path(inspect.getfile(type(protocol)))
    except (TypeError, OSError):  # written in a terminal: there is no file
        own = None
    if own is not None and own.is_file():
        shipped = type(protocol).__module__.partition(".")[0] == "protocols"
        files |= set(own.parent.glob("*.py")) if shipped else {own}
    return sorted(files, key=lambda path: (path.parent.name, path.name))


def modules_of(protocol: Protocol) -> tuple[str, ...]:
    """Return the modules that a worker imports for a protocol: of its class, and of those it is derived from.

    A class of a script or a function has none: it travels as it is.
    """
    kinds = [kind for kind in type(protocol).__mro__ if kind is not object and kind.__module__ != "__main__"]
    return tuple(dict.fromkeys(kind.__module__ for kind in kinds if _importable(kind)))


def _importable(kind: type) -> bool:
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind


def code_of(modules: Iterable[str]) -> dict[str, str]:
    """Return what this process computes with: versions, and for each source file, ``core/draw.py``, its SHA-256.

    ``modules``: of a protocol, see ``modules_of``; they are imported.  Raises ImportError if one is not found.
    """
    versions = {"python": sys.version.split()[0]} | {name: metadata.version(name) for name in _LIBRARIES}
    with suppress(metadata.PackageNotFoundError):  # a checkout
        versions[_OURS] = metadata.version(_OURS)
    package = Path(__file__).parents[1]  # all of it: a worker writes traces, too
    files = {f"p2p_sim/{path.relative_to(package)}": path for path in package.rglob("*.py")}
    for name in modules:
        file = getattr(importlib.import_module(name), "__file__", None)
        if file is not None:
            files[f"{name.replace('.', '/')}.py"] = Path(file)
    files |= {
        f"{path.parent.name}/{path.name}": path for own in module_finder.opened() for path in own.files()
    }
    shipped = importlib.util.find_spec("protocols")
    for folder in (shipped and shipped.submodule_search_locations) or ():
        files |= {f"protocols/{path.name}": path for path in Path(folder).glob("*.py")}
    return versions | {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return how the code of two processes differs: ``numpy 2.4.1 there, 2.5.0 here``, ``core/draw.py differs``.

    The version of this package is told where files differ, too, and both processes know it.
    """
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    if not any(name.endswith(".py") for name in names) or not (_OURS in there and _OURS in here):
        names = [name for name in names if name != _OURS]
    return [
        f"{name} differs"
        if name.endswith(".py")
        else f"{name} {there.get(name, 'missing')} there, {here.get(name, 'missing')} here"
        for name in names
    ]

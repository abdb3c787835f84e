"""Which code an outcome, or a row, is of: what is there is not computed again by the same code.

Code is what its file imports, directly or by way of others, in functions too, as far as it lies in this repository; and
the versions of packages.  An edit of a script that another one does not import leaves that one's rows alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import p2p_sim
import protocols

FOLDER = Path(__file__).resolve().parent
PACKAGES = {
    package: Path(str(file)).resolve().parent
    for package, file in (
        ("experiments", __file__), ("p2p_sim", p2p_sim.__file__), ("protocols", protocols.__file__)
    )
}  # fmt: skip
_LIBRARIES = ("numpy", "numba", "pyarrow", "cryptography", "scipy", "scikit-learn")
"""Packages that results depend on."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]+))", re.MULTILINE
)
_PLAIN = (str, int, float, bool, type(None))


def code(name: str) -> dict[str, str]:
    """Return fingerprints of what the script of an experiment imports, of this folder file by file, and of the rest.

    "p2p_sim" is one of p2p_sim, protocols and the packages they compute with.
    """
    script = FOLDER / f"{name}.py"
    files = closure(script if script.is_file() else FOLDER / "_common.py")
    here = {file for file in files if file.parent == FOLDER}
    rest = _digest([*_hashes(files - here), _versions()])
    return {"script": name, "p2p_sim": rest} | {file.name: _hash(file)[:16] for file in sorted(here)}


def same(made_by: Mapping[str, str]) -> bool:
    """Whether the code here, as far as an outcome depends on it, is that which made it."""
    return made_by == code(made_by.get("script", ""))


def changed(name: str, made_by: Mapping[str, str]) -> list[str]:
    """Return which files, "p2p_sim" for the rest, are not as they were when an experiment's outcome was made."""
    now = code(name)
    said = {part for part in {*now, *made_by} - {"script"} if now.get(part) != made_by.get(part)}
    return sorted(said)


def digest(made_by: Mapping[str, str]) -> str:
    """Return one short fingerprint of all that an outcome was made by."""
    return _digest([f"{part} {made_by[part]}" for part in sorted(made_by)])[:8]


def of(compute: Callable[..., Any]) -> str:
    """Return a fingerprint of what computes rows: the code of it and of what it is given, and fields of objects.

    Plain arguments do not count: the settings of a row name those that matter.
    """
    files: set[Path] = set()
    values: list[str] = []
    _reach(compute, files, values, set())
    reached = {each for file in files for each in closure(file)}
    return _digest([*_hashes(reached), *values, _versions()])


@cache
def closure(file: Path) -> frozenset[Path]:
    """Return a source file and all of this repository's that it imports, directly or not."""
    found: set[Path] = set()
    new = [file]
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            new += _imported(one)
    return frozenset(found)


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    sources = (_source(module) for module in modules(file.read_text()))
    return tuple(dict.fromkeys(source for source in sources if source is not None))


def modules(text: str) -> Iterator[str]:
    """Yield what a source may import, by absolute name, packages on the way too; names within modules among them."""
    for start, names, whole in _IMPORT.findall(text):
        said = [
            part.split()[0]
            for part in re.sub(r"[()]|#[^\n]*", " ", names or whole).split(",")
            if part.split()
        ]
        for each in [f"{start}.{name}" for name in said] if start else said:
            parts = each.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


@cache
def _source(module: str) -> Path | None:
    package, *below = module.split(".")
    if package not in PACKAGES:
        return None
    place = PACKAGES[package].joinpath(*below)
    file = place / "__init__.py" if not below or place.is_dir() else place.with_suffix(".py")
    return file if file.is_file() else None


def _reach(value: Any, files: set[Path], values: list[str], seen: set[int], *, inside: bool = False) -> None:
    """Collect the files of functions and classes, and the plain values inside of objects."""
    if id(value) in seen:
        return
    parts: list[Any] = []
    if isinstance(value, _PLAIN):
        values += [repr(value)] if inside else []
        return
    seen.add(id(value))
    if isinstance(value, partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, MethodType):
        parts = [value.__self__, value.__func__]
    elif isinstance(value, FunctionType):
        files |= _ours(value.__code__.co_filename)
        parts = list(value.__defaults__ or ())
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # a cell that is not filled yet
                parts.append(cell.cell_contents)
    elif isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, Sequence):
        parts = list(value)
    else:
        kind = value if isinstance(value, type) else type(value)
        files |= _ours(getattr(sys.modules.get(kind.__module__), "__file__", None))
        if is_dataclass(value) and not isinstance(value, type):
            parts, inside = [getattr(value, each.name, None) for each in fields(value)], True
    for part in parts:
        _reach(part, files, values, seen, inside=inside)


def _ours(file: str | None) -> set[Path]:
    """Return a file if it is one of this repository's sources."""
    if file is None or not file.endswith(".py"):
        return set()
    path = Path(file).resolve()
    own = path.is_relative_to(FOLDER.parent) or any(path.is_relative_to(each) for each in PACKAGES.values())
    return {path} if own and "site-packages" not in path.parts[len(FOLDER.parent.parts) :] else set()


def _hashes(files: set[Path] | frozenset[Path]) -> list[str]:
    return [f"{file.parent.name}/{file.name} {_hash(file)}" for file in sorted(files)]


@cache
def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _versions() -> str:
    return json.dumps(
        {"python": sys.version.split()[0]} | {name: metadata.version(name) for name in _LIBRARIES}
    )


def _digest(said: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

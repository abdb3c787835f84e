"""The protocols that are known by name, shipped or of installed packages, and the import of one named MODULE:CLASS.

A package offers a protocol by an entry point of the group ``p2p_sim.protocols``, which names its class, or a module
whose protocols are all taken.  Importing it is the package's occasion to call ``p2p_sim.privacy.register``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata

import protocols
from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, ProtocolError, near
from p2p_sim.core.protocol import Protocol

GROUP = "p2p_sim.protocols"
"""Where packages name their protocols."""


def everything() -> tuple[type[Protocol], ...]:
    """Return all protocols that are known by name, the shipped ones first.

    Warns, once, of an entry point that cannot be loaded or that takes a name that is taken; the others are not touched.
    """
    found: dict[str, type[Protocol]] = {kind.command_name(): kind for kind in protocols.ALL}
    for kind in _installed():
        found.setdefault(kind.command_name(), kind)
    return tuple(found.values())


def of_run(name: str) -> type[Protocol] | None:
    """Return the protocol that a saved run names as ``module:Class``; None for one that is not known by name.

    Code that a file names is never imported: what is installed names itself, and the rest is named by whoever asks.
    """

    def called(kinds: tuple[type[Protocol], ...]) -> type[Protocol] | None:
        return next((kind for kind in kinds if class_name(kind) == name), None)

    return called(protocols.ALL) or _NAMED.get(name) or called(_installed())


def shipped(kind: type[Protocol]) -> bool:
    """Return whether a protocol is one of this project's own."""
    return kind in protocols.ALL


_NAMED: dict[str, type[Protocol]] = {}


@contextmanager
def naming(*kinds: type[Protocol]) -> Iterator[None]:
    """While it lasts, let ``of_run`` return these classes too: whoever asks has named them."""
    before = dict(_NAMED)
    _NAMED.update({class_name(kind): kind for kind in kinds})
    try:
        yield
    finally:
        _NAMED.clear()
        _NAMED.update(before)


def class_name(kind: type[Protocol]) -> str:
    """Return the name of a protocol class in saved runs, ``module:Class``."""
    return f"{kind.__module__}:{kind.__name__}"


def named(name: str) -> type[Protocol]:
    """Return the protocol known by a name, or import the one that ``module:Class`` names; raises InputError."""
    if ":" in name:
        return imported(name)
    every = {kind.command_name(): kind for kind in everything()}
    if name not in every:
        raise InputError(
            f"unknown protocol {name!r}{near(name, every)}; known: {', '.join(every)}; or one of your own, MODULE:CLASS"
        )
    return every[name]


def imported(name: str) -> type[Protocol]:
    """Import the protocol that ``module:Class`` names, from the current folder or the path; raises InputError."""
    found = module_finder.imported(name, "protocol", "CLASS")
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise InputError(
            f"protocol {name!r} is {found!r}; needed is a class derived from p2p_sim.core.Protocol"
        )
    if found is Protocol:
        raise InputError(f"protocol {name!r} is the base of all protocols: name a class derived from it")
    try:
        found.check_declaration()
    except ProtocolError as error:
        raise InputError(f"protocol {name!r}: {error}") from error
    return found


@lru_cache(maxsize=1)
def _installed() -> tuple[type[Protocol], ...]:
    """Return the protocols of installed packages, whose entry points are loaded once, when first asked for."""
    found: dict[str, type[Protocol]] = {}
    shipped = {kind.command_name() for kind in protocols.ALL}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        offered = (
            f"entry point {point.name} = {point.value} of {point.dist.name if point.dist else 'a package'}"
        )
        try:
            kinds = _loaded(point)
            for kind in kinds:
                kind.check_declaration()
        except Exception as error:  # whatever a stranger's module raises
            _left_out(f"{offered}: {type(error).__name__}: {error}")
            continue
        for kind in kinds:
            name = kind.command_name()
            if name in shipped or found.get(name, kind) is not kind:
                other = "a shipped protocol" if name in shipped else f"that of {found[name].__module__}"
                _left_out(f"{offered}: {kind.__name__} is called {name}, as {other} is: rename the class")
            else:
                found[name] = kind
    return tuple(found.values())


def _loaded(point: metadata.EntryPoint) -> list[type[Protocol]]:
    """Return what an entry point offers; raises whatever its import does, and InputError if it is no protocol."""
    target = point.load()
    if inspect.ismodule(target):
        named = [
            kind for kind in vars(target).values() if isinstance(kind, type) and issubclass(kind, Protocol)
        ]
        own = [kind for kind in named if kind.__module__ == target.__name__ and kind.messages()]
        if own:
            return own
        raise InputError("the module defines no protocol")
    if isinstance(target, type) and issubclass(target, Protocol):
        return [target]
    raise InputError(f"{target!r} is neither a class derived from p2p_sim.core.Protocol nor a module")


def _left_out(why: str) -> None:
    warnings.warn(f"{why}; it is left out", stacklevel=2)

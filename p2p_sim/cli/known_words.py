"""What may be typed where on the command line: verbs, their options, what these take.  Shells complete these words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer.main

from p2p_sim.cli.app import app

SHELLS = ("bash", "zsh", "fish")

_CHOICE = re.compile(r"[a-z0-9][a-z0-9/-]*(=N)?")
_FILES = ("FILE", "RUN", "DIR", "FOLDER", "PATH", "PLACE", "GRAPH", "DATA")
"""What the names of values begin with that may be paths."""

_PATHS = ("--data", "--out")
"""Options that take a path, whose values have no name in the help text."""


@dataclass(frozen=True)
class Taken:
    """What may stand somewhere: some words, the name of a file, a protocol; nothing known if all are empty."""

    words: tuple[str, ...] = ()
    files: bool = False
    protocol: bool = False


@dataclass(frozen=True)
class Option:
    """An option by its long name; ``takes`` is None for one without a value."""

    name: str
    help: str
    takes: Taken | None


@dataclass(frozen=True)
class Place:
    """A verb, ``run``, or one of a verb's own, ``trace show``, with its options and what its other words are."""

    name: str
    help: str
    options: tuple[Option, ...] = ()
    takes: Taken = field(default_factory=Taken)


def places() -> list[Place]:
    """Return every verb that is loaded; one with verbs of its own comes before them."""
    found = []
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        help_text = " ".join((command.help or "").partition("\n\n")[0].split())
        own = getattr(command, "commands", None)
        if own is None:
            found.append(_place(name, help_text, command))
            continue
        found.append(Place(name, help_text, takes=Taken(tuple(own))))
        found += [_place(f"{name} {each}", _sentence(sub.help), sub) for each, sub in own.items()]
    return found


def protocols() -> dict[str, tuple[Option, ...]]:
    """Return the parameters of each protocol that is known by name."""
    from p2p_sim import catalogue
    from p2p_sim.cli import parameters

    return {
        name: tuple(
            Option(each.option, each.meaning, Taken(("true", "false") if each.kind is bool else ()))
            for each in parameters.parameters(kind).values()
        )
        for name, kind in parameters.by_name(catalogue.everything()).items()
    }


def _place(name: str, help_text: str, command: Any) -> Place:
    named = _named()
    options, takes = list[Option](), Taken()
    for each in command.params:
        if each.param_type_name == "argument":
            takes = _taken(each.metavar or "", named.get(name))
            continue
        long = next((word for word in each.opts if word.startswith("--")), None)
        if long is not None:
            shown = each.metavar or ("FILE" if long in _PATHS else "")
            value = None if each.is_flag else _taken(shown, named.get(long))
            options.append(Option(long, _sentence(each.help), value))
    options.append(Option("--help", "Show this message and exit.", None))
    return Place(name, help_text, tuple(options), takes)


def _taken(metavar: str, words: Sequence[str] | None) -> Taken:
    """Return what a value's name says it may be, such as ``local|shards`` or ``FILE``, and some known words."""
    shown = metavar.strip("[]")
    parts = [] if shown.startswith("FILE") else shown.split("|")
    choices = [part.removesuffix("N") for part in parts if _CHOICE.fullmatch(part)]
    return Taken((*(words or ()), *choices), shown.startswith(_FILES), shown == "PROTOCOL")


def _named() -> dict[str, tuple[str, ...]]:
    """Return the words that an option may take, or a verb, where its help does not list them all."""
    from p2p_sim import catalogue
    from p2p_sim.cli import parameters
    from p2p_sim.cli.bench import BENCHMARKS
    from p2p_sim.core import faults
    from p2p_sim.errata import ERRATA
    from p2p_sim.leakage.attack import NAMES
    from p2p_sim.learning.data.named_datasets import NAMED
    from p2p_sim.network import topologies

    sets = tuple(NAMED)
    views = ("learner", "user", "wire")
    return {
        "bench": tuple(BENCHMARKS), "data": sets, "generator": sets, "--data": sets,
        "--fault": tuple(f"{name}=" for name in (*faults.CHANCES, "stop", "lie")), "--graph": topologies.KINDS,
        "--only": tuple(each.id for each in ERRATA), "--view": views, "--as": views, "--attacker": tuple(NAMES),
        "--model": ("none", "logistic-regression", "random-forest"),
        "--protocols": tuple(parameters.by_name(catalogue.everything())),
    }  # fmt: skip


def _sentence(help: str | None) -> str:
    """Return the first sentence of a help text, on one line."""
    return re.split(r"(?<=[.;])\s", " ".join((help or "").split()))[0].rstrip(";")


def values(place: Place) -> Iterator[tuple[str, Taken]]:
    """Yield each option of a place that takes a value, and what it takes."""
    for each in place.options:
        if each.takes is not None:
            yield each.name, each.takes

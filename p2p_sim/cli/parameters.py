"""Protocols on the command line: each field of a protocol with a simple type is an option."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError
from p2p_sim.core.number_texts import read_number, read_whole
from p2p_sim.core.protocol import Protocol
from p2p_sim.report import terminal
from p2p_sim.rundir import run_json

Protocols = Sequence[type[Protocol]]

DEFAULTS: dict[str, Any] = {"alpha": 0.1, "epsilon": 1.0}
"""The command line's defaults for parameters that have none in their class."""

_NAMED = re.compile(r"``(\w+)``:\s+(.*?)(?=\s*``\w+``:|\n\s*\n|$)", re.DOTALL)
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("must be true or false")
    return _TRUTH[text.lower()]


_KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
_READ: dict[Any, Callable[[str], Any]] = {
    float: lambda text: read_number(text, infinite=True),  # epsilon = inf: everybody tells the truth
    int: read_whole,
    bool: _truth,
    str: str,
}


@dataclass(frozen=True)
class Parameter:
    """One option of a protocol.  ``default`` is MISSING if the option is required."""

    name: str
    kind: type
    default: Any
    meaning: str

    @property
    def option(self) -> str:
        """The option's name on the command line."""
        return "--" + self.name.replace("_", "-")

    def read(self, text: str) -> Any:
        """Turn text into the parameter's type; raises InputError naming option, value and type."""
        try:
            return _READ[self.kind](text)
        except ValueError as error:
            raise InputError(f"{self.option} {text!r}: {error}") from None


@dataclass(frozen=True)
class Chosen:
    """A protocol with its parameters; ``defaults``: names of those that were not given."""

    protocol: Protocol
    defaults: tuple[str, ...]


def by_name(protocols: Protocols) -> dict[str, type[Protocol]]:
    """Return the protocols by their names on the command line."""
    return {kind.command_name(): kind for kind in protocols}


def resolve(words: Sequence[str] | None) -> tuple[list[str], Protocols]:
    """Return the words and the protocols they may name; a ``module:Class`` among the words is imported."""
    words, name = list(words or []), custom_name(words or [])
    with terminal.stdout_to_stderr():  # modules that are imported may print
        protocols = catalogue.everything()
        if not name.partition(":")[2]:
            return words, protocols
        found = catalogue.imported(name)
    return [found.command_name() if word == name else word for word in words], (*protocols, found)


def custom_name(words: Sequence[str]) -> str:
    """Return the word that names the user's own protocol, ``module:Class``; empty if there is none.

    Values of options may have colons, too.
    """
    return next((name for name in _split(words)[0] if ":" in name), "")


def to_words(protocol: Protocol, words: Sequence[str]) -> list[str]:
    """Return the words that make a protocol: its name (for the user's own, as in ``words``) and all parameters."""
    parts, values = [custom_name(words) or protocol.command_name()], protocol.parameters()
    for each in parameters(type(protocol)).values():
        parts += run_json.option(each.option, values[each.name])
    return parts


def takes(words: Sequence[str], protocols: Protocols, option: str) -> bool:
    """Whether the protocol that words name has a parameter of this name."""
    names, _ = _split(list(words))
    kind = by_name(protocols).get(names[0] if names else "")
    return kind is not None and option in parameters(kind)


def parameters(kind: type[Protocol]) -> dict[str, Parameter]:
    """Return the parameters of a protocol that are options of the command line, by option."""
    hints = {name: _text_of(hint) for name, hint in typing.get_type_hints(kind).items()}
    meanings = dict(_NAMED.findall(kind.__doc__ or ""))
    offered = [f for f in fields(kind) if f.init and hints[f.name] in _READ]  # type: ignore[arg-type]
    found = []
    for f in offered:
        default = f.default if f.default is not MISSING else DEFAULTS.get(f.name, MISSING)
        meaning = " ".join(meanings.get(f.name, "").split()).partition(". ")[0].rstrip(".")
        found.append(Parameter(f.name, hints[f.name], default, meaning))
    return {parameter.option: parameter for parameter in found}


def _text_of(hint: Any) -> Any:
    """Return the type as which a parameter is read: one that may also be an object, of a class, is given as text."""
    kinds = set(typing.get_args(hint))
    return str if str in kinds and type(None) not in kinds and not kinds & ({*_READ} - {str}) else hint


def choose(words: Sequence[str], protocols: Protocols, verb: str = "run") -> Chosen:
    """Make the protocol that words such as ``peer-to-peer --alpha 0.1 --theta=0.5`` describe.

    Raises InputError if the protocol is missing or unknown, an option is unknown or repeated, or a value is missing or
    malformed.  The message lists what is known.
    """
    return _make(*parse(words, protocols, verb))


def parse(
    words: Sequence[str], protocols: Protocols, verb: str = "run"
) -> tuple[type[Protocol], dict[str, Parameter], dict[str, Any]]:
    """Return the protocol that words name, its options, and the given values; raises as ``choose`` does."""
    names, options = _split(words)
    every = by_name(protocols)
    listed = f"known protocols: {', '.join(every)}"
    if not names:
        raise InputError(f"which protocol? {listed}")
    if names[0] not in every:
        raise InputError(f"unknown protocol {names[0]!r}; {listed}; or one of your own, MODULE:CLASS")
    kind = every[names[0]]
    offered = parameters(kind)
    if len(names) > 1:
        raise InputError(
            f"unexpected word {names[1]!r}: give one protocol; parameters are options, {_listed(offered)}"
        )
    values: dict[str, Any] = {}
    for option, text in options:
        if option not in offered:
            more = f"more options: p2p-sim {verb} --help"
            raise InputError(f"unknown option {option!r}; {names[0]} has {_listed(offered)}; {more}")
        if text is None:
            raise InputError(f"{option} needs a value: {_described(offered[option])}")
        if offered[option].name in values:
            raise InputError(f"{option} is given twice: give it once")
        values[offered[option].name] = offered[option].read(text)
    return kind, offered, values


def describe(protocols: Protocols) -> str:
    """Return a sentence for each protocol: its name and options, with meanings and defaults."""
    lines = []
    for name, kind in by_name(protocols).items():
        options = "; ".join(f"{p.option}, {_described(p)}" for p in parameters(kind).values())
        lines.append(f"{name}: {options}.")
    return "\n\n".join(lines)


def complete(
    kind: type[Protocol], offered: dict[str, Parameter], values: dict[str, Any], but: str = ""
) -> dict[str, Any]:
    """Return the values given, and the defaults of the others, ``but`` one; raises InputError for one without."""
    left = [each for each in offered.values() if each.name not in (*values, but)]
    for parameter in left:
        if parameter.default is MISSING:
            name = kind.command_name()
            raise InputError(f"{name} needs {parameter.option}: {_described(parameter)}")
    return {parameter.name: parameter.default for parameter in left} | values


def _make(kind: type[Protocol], offered: dict[str, Parameter], values: dict[str, Any]) -> Chosen:
    every = complete(kind, offered, values)
    closed = [
        f.name
        for f in fields(kind)  # type: ignore[arg-type]
        if f.init and f.name not in every and f.default is MISSING and f.default_factory is MISSING
    ]
    if closed:
        raise InputError(
            f"{kind.command_name()} needs {closed[0]!r}, which cannot be given here: only numbers, text and true or "
            "false can; give it a default, or run the protocol from Python"
        )
    made = kind(**every)
    kept = made.parameters()  # one parameter may follow from another
    return Chosen(made, tuple(name for name in every if name not in values and kept[name] == every[name]))


def _split(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str | None]]]:
    """Split words into names and options with their values (None if the value is missing)."""
    names, parse, rest = list[str](), list[tuple[str, str | None]](), list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            names.append(word)
            continue
        option, equals, text = word.partition("=")
        if equals:
            parse.append((option, text))
        else:
            parse.append((option, rest.pop(0) if rest and not rest[0].startswith("--") else None))
    return names, parse


def _listed(offered: dict[str, Parameter]) -> str:
    return ", ".join(offered) or "no parameters"


def _described(parameter: Parameter) -> str:
    meaning = parameter.meaning or _KINDS[parameter.kind]
    return meaning if parameter.default is MISSING else f"{meaning} (default {parameter.default})"

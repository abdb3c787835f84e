"""The parameters of protocols: each field of a simple type can be given as text, or in a file of runs."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.module_finder import in_one_line
from p2p_sim.core.number_texts import float_of, read_number, read_whole
from p2p_sim.core.protocol import Protocol

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

    @property
    def described(self) -> str:
        """What it means, or its type, and its default."""
        meaning = self.meaning or _KINDS[self.kind]
        return meaning if self.default is MISSING else f"{meaning} (default {self.default})"

    def read(self, text: str) -> Any:
        """Turn text into the parameter's type; raises InputError naming option, value and type."""
        try:
            return _READ[self.kind](text)
        except ValueError as error:
            raise InputError(f"{self.option} {text!r}: {error}") from None

    def checked(self, value: Any) -> Any:
        """Return a value of a file as the parameter's type; raises InputError naming parameter, value and type."""
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                return float_of(value)
            except ValueError as error:
                raise InputError(f"{self.name} = {value!r:.60}: {error}") from None
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            raise InputError(f"{self.name} = {value!r}: must be {_KINDS[self.kind]}")
        return value


@dataclass(frozen=True)
class Chosen:
    """A protocol with its parameters; ``defaults``: names of those that were not given."""

    protocol: Protocol
    defaults: tuple[str, ...]


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


def complete(
    kind: type[Protocol], offered: dict[str, Parameter], values: dict[str, Any], but: str = ""
) -> dict[str, Any]:
    """Return the values given, and the defaults of the others, ``but`` one; raises InputError for one without."""
    left = [each for each in offered.values() if each.name not in (*values, but)]
    for parameter in left:
        if parameter.default is MISSING:
            name = kind.command_name()
            raise InputError(f"{name} needs {parameter.option}: {parameter.described}")
    return {parameter.name: parameter.default for parameter in left} | values


def constructed(kind: type[Protocol], values: Mapping[str, Any]) -> Protocol:
    """Return ``kind(**values)``; raises InputError, with the place, for whatever a class of one's own raises."""
    try:
        return kind(**values)
    except (InputError, ProtocolError):
        raise
    except Exception as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in values.items()) or "no parameters"
        raise InputError(
            f"{kind.command_name()}: making it with {given} raises {in_one_line(error)}: give other values, or mend "
            "the class"
        ) from error


def made(kind: type[Protocol], offered: dict[str, Parameter], values: dict[str, Any]) -> Chosen:
    """Make a protocol of the values that were given, and defaults; raises InputError where one is missing or wrong."""
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
    protocol = constructed(kind, every)
    kept = protocol.parameters()  # one parameter may follow from another
    return Chosen(protocol, tuple(name for name in every if name not in values and kept[name] == every[name]))

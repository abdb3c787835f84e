"""Protocols on the command line: each field of a protocol with a simple type is an option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError, UnknownOptionError, near
from p2p_sim.core.protocol import Protocol
from p2p_sim.protocol_parameters import Chosen as Chosen  # the verbs take these from here
from p2p_sim.protocol_parameters import Parameter as Parameter
from p2p_sim.protocol_parameters import complete as complete
from p2p_sim.protocol_parameters import made
from p2p_sim.protocol_parameters import parameters as parameters
from p2p_sim.report import terminal
from p2p_sim.rundir import run_json

Protocols = Sequence[type[Protocol]]


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


def protocol_name(words: Sequence[str]) -> str:
    """Return the first word that is neither an option nor its value; empty if there is none."""
    return next(iter(_split(words)[0]), "")


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


def choose(words: Sequence[str], protocols: Protocols, verb: str = "run") -> Chosen:
    """Make the protocol that words such as ``peer-to-peer --alpha 0.1 --theta=0.5`` describe.

    Raises InputError if the protocol is missing or unknown, an option is unknown or repeated, or a value is missing or
    malformed.  The message lists what is known.
    """
    return made(*parse(words, protocols, verb))


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
        raise InputError(
            f"unknown protocol {names[0]!r}{near(names[0], every)}; {listed}; or one of your own, MODULE:CLASS"
        )
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
            raise UnknownOptionError(
                f"unknown option {option!r}; {names[0]} has {_listed(offered)}; {more}", option, offered
            )
        if text is None:
            raise InputError(f"{option} needs a value: {offered[option].described}")
        if offered[option].name in values:
            raise InputError(f"{option} is given twice: give it once")
        values[offered[option].name] = offered[option].read(text)
    return kind, offered, values


def describe(protocols: Protocols) -> str:
    """Return a sentence for each protocol: its name and options, with meanings and defaults."""
    lines = []
    for name, kind in by_name(protocols).items():
        options = "; ".join(f"{p.option}, {p.described}" for p in parameters(kind).values())
        lines.append(f"{name}: {options}.")
    return "\n\n".join(lines)


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

"""Faults: users who drop out or lie, messages that are lost, late, doubled or tampered with, servers that stop.

This file says which there are and how they are written; ``fault_injection.py`` carries them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.exact import as_fraction
from p2p_sim.core.message import USER
from p2p_sim.core.number_texts import read_digits, read_number
from p2p_sim.core.protocol import Protocol

CHANCES = ("drop", "loss", "late", "duplicate", "tamper", "misdirect", "replay")
"""Faults that are a probability."""

_WRITTEN = (
    "drop=0.05, loss=0.01, late=0.01, duplicate=0.02, tamper=0.01, misdirect=0.01, replay=0.01, stop=learner:1, "
    "lie=flip:0.1"
)
_LIES = re.compile(r"flip|random|constant[0-9]{1,3}")


@dataclass(frozen=True)
class Faults:
    """What goes wrong in a run.

    ``drop``: probability that a user who is still there drops out before a step in which her program sends.
    ``loss``: that a message that travels is lost; ``late``: that it comes after its recipient has read the others;
    ``duplicate``: that it comes twice.  ``stop``: (role, step), a server that stops before that step of its program,
    0 the first.  ``lie``: (kind, share), users whose label is replaced for their program: "flip" (the next label,
    modulo how many there are), "constant1" (that label), "random" (any).  For a sealed message,
    before it is opened, ``tamper``: that its bytes are changed; ``misdirect``: that it is sealed under a wrong key;
    ``replay``: that a copy comes as a message of its own.  Raises InputError for anything else.
    """

    drop: float = 0.0
    loss: float = 0.0
    late: float = 0.0
    duplicate: float = 0.0
    stop: tuple[str, int] | None = None
    lie: tuple[str, float] | None = None
    tamper: float = 0.0
    misdirect: float = 0.0
    replay: float = 0.0

    def __post_init__(self) -> None:
        for name in CHANCES:
            check_range(name, getattr(self, name), 0, 1)
        if self.stop is not None:
            _check_stop(self.stop)
        if self.lie is not None:
            _check_lie(self.lie)

    @classmethod
    def of(cls, given: Any) -> Faults | None:
        """Read faults from one text such as "loss=0.1", several, ``Faults`` or None; None if nothing can go wrong."""
        if isinstance(given, str):
            given = [given]
        if given is not None and not isinstance(given, cls):
            given = cls.parse(given)
        return given if given and given.texts() else None

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Faults:
        """Read texts such as ``drop=0.05`` or ``stop=learner:1``; raises InputError naming what is wrong."""
        if not isinstance(texts, (list, tuple)):
            raise InputError(f"faults = {texts!r}: give Faults(...) or texts, such as {_WRITTEN}")
        found: dict[str, Any] = {}
        for text in texts:
            name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
            if not equals or name not in (f.name for f in fields(cls)):
                raise InputError(
                    f"fault {text!r}: give one of {_WRITTEN}{near(name or str(text), (f.name for f in fields(cls)))}"
                )
            if name in found:
                raise InputError(f"fault {text!r}: {name} is given twice; give it once")
            found[name] = _read(name, value)
        return cls(**found)

    def texts(self) -> list[str]:
        """Return how the faults are written; empty if nothing can go wrong."""
        written = [f"{name}={getattr(self, name)}" for name in CHANCES if getattr(self, name)]
        if self.stop is not None:
            written.append(f"stop={self.stop[0]}:{self.stop[1]}")
        if self.lie is not None and self.lie[1]:
            written.append(f"lie={self.lie[0]}:{self.lie[1]}")
        return written

    def check(self, protocol: Protocol) -> None:
        """Check them against a protocol; raises InputError for a role or a label that it does not have."""
        servers = [role for role in protocol.roles() if role != USER]
        if self.stop is not None and self.stop[0] not in servers:
            role, step = self.stop
            raise InputError(
                f"stop = {role}:{step}: {role!r} is no server here; servers: {', '.join(servers)}{near(role, servers)}"
            )
        sealed = any(m.opener == m.recipient for m in protocol.messages().values() if m.opener)
        for name in ("tamper", "misdirect", "replay"):
            if getattr(self, name) and not sealed:
                raise InputError(
                    f"{name} = {getattr(self, name)}: {type(protocol).__name__} seals nothing, so nobody would notice"
                )
        labels = protocol.label_count()
        if self.lie is not None and self.lie[0].startswith("constant") and constant(self.lie[0]) >= labels:
            raise InputError(f"lie = {self.lie[0]}: the protocol's labels are 0 to {labels - 1}")


def constant(kind: str) -> int:
    """Return the label that "constantN" always says."""
    return int(kind.removeprefix("constant"))


def _read(name: str, value: str) -> Any:
    """Read what stands behind the equals sign."""
    if name in CHANCES:
        return _number(name, value)
    head, _, number = value.rpartition(":")
    if name == "lie":
        return head, _number("share of lie", number)
    step = read_digits(number)
    if step is None or step >= 10**9:
        raise InputError(f"stop = {value!r}: give a server and a step from 0 on, such as learner:1")
    return head, step


def _number(name: str, text: str) -> float:
    try:
        return read_number(text)
    except ValueError as error:
        raise InputError(f"{name} = {text!r}: needed is a probability in [0, 1]; it {error}") from None


def _check_stop(stop: Any) -> None:
    pair = isinstance(stop, tuple) and len(stop) == 2 and isinstance(stop[0], str)
    whole = pair and isinstance(stop[1], (int, np.integer)) and not isinstance(stop[1], bool)
    if not whole or stop[1] < 0:
        raise InputError(f"stop = {stop!r}: give a server and a step from 0 on, such as ('learner', 1)")


def _check_lie(lie: Any) -> None:
    if not (isinstance(lie, tuple) and len(lie) == 2 and isinstance(lie[0], str) and _LIES.fullmatch(lie[0])):
        raise InputError(
            f"lie = {lie!r}: give how and which share of the users, such as flip:0.1, constant1:0.1 or random:0.1"
        )
    as_fraction("share of lie", lie[1])

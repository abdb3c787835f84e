"""``TraceLevel``: how much of a run is recorded, and where it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.number_texts import read_digits

Array = npt.NDArray[Any]

NAMES = ("none", "counts", "sample", "full")


@dataclass(frozen=True)
class Watch:
    """What is kept for somebody who looks: all messages of some kinds, and all of her users' (a mask of rows)."""

    kinds: frozenset[str]
    users: Array | None = None


class Sink(Protocol):
    """Takes the messages that one site keeps, batch by batch, instead of memory."""

    def take(
        self, kind: str, round: int, addresses: dict[str, range | Array | int], fields: dict[str, Array]
    ) -> None:
        """Take a batch.  ``addresses``: sender, recipient (ids) and seq; one number where all are equal."""

    def cut(self) -> list[dict[str, Any]]:
        """Put away what came since the last cut: one issue, from one site; describe the files that were made."""


class Target(Protocol):
    """A place where the sites of a run put their messages."""

    def check(self) -> None:
        """Raise InputError if this process cannot write there."""

    def open(self, site: int) -> Sink:
        """Return what takes the messages of one site."""

    def start_over(self) -> None:
        """Remove what the sites of a run have put there: they begin again."""


@dataclass(frozen=True)
class TraceLevel:
    """How much of a run is kept: ``none`` and ``counts`` keep no messages, ``sample=N`` those of N users.

    ``seen`` keeps what ``watch`` asks for; it cannot be written as text.  ``target``: where messages go while the run
    goes on, None: into memory.
    """

    name: str
    sample: int = 0
    watch: Watch | None = None
    target: Target | None = None

    @property
    def keeps(self) -> bool:
        """Whether any message is kept."""
        return self.name not in ("none", "counts")

    @classmethod
    def parse(cls, text: str) -> TraceLevel:
        """Read ``none``, ``counts``, ``sample=1000`` or ``full``; raises InputError otherwise."""
        if not isinstance(text, str):
            raise InputError(f"trace = {text!r}: give none, counts, sample=N or full")
        head, _, number = text.partition("=")
        if text in ("none", "counts", "full"):
            return cls(text)
        users = read_digits(number)
        if head == "sample" and users:
            return cls("sample", users)
        raise InputError(
            f"trace = {text!r}: allowed are none, counts, full, or sample=N with N of at least 1 user"
            f"{near(head, NAMES)}"
        )

    def watched(self, users: int) -> Array | None:
        """Return the rows whose messages a sample keeps, spread evenly; None where all or none are kept."""
        if self.name != "sample":
            return None
        count = min(self.sample, users)
        return np.arange(count, dtype=np.int64) * users // count

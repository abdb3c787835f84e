"""Small protocols that take the engine's rarer paths; importable, so that Ray's workers find them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from p2p_sim.core import FixedPoint, Message, Party, Protocol, Rounds, Vector


@dataclass(frozen=True)
class Gossip(Protocol):
    """Users send their label to a random neighbour for three rounds and report what they heard."""

    note = Message("user", "user", "passes the label on to a neighbour", y=bool)
    report = Message("user", "learner", "reports how many ones were heard", heard=np.int32)

    def user(self, me: Party) -> Rounds:
        heard = np.zeros(me.size, np.int64)
        for _ in range(3):
            notes = yield self.note(to=me.draw.member("neighbour", me.neighbours), y=me.y)
            heard = heard + notes.y.sum()
        yield self.report(heard=heard)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


GRID = FixedPoint(resolution=2**-10, low=-64, high=64)


@dataclass(frozen=True)
class Features(Protocol):
    """Users tell a peer their features, and report what they heard and their own, sealed."""

    tell = Message("user", "user", "tells her features", row=Vector(GRID, 3))
    report = Message("user", "learner", "reports", sealed_for="learner", row=Vector(GRID, 3), noisy=GRID)

    def user(self, me: Party) -> Rounds:
        told = yield self.tell(to=me.draw.member("peer", me.cluster), row=me.x)
        noise = me.draw.laplace("noise", 50) * GRID.resolution
        yield self.report(row=np.clip(told.row.sum(), -64, 64), noisy=np.clip(me.x[:, 0] + noise, -64, 64))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return {"row": reports.row.sum(), "noisy": reports.noisy.sum()}


@dataclass(frozen=True)
class HalfLooking(Protocol):
    """Everybody asks a peer; only blocks that hold user 0 look at who asked before they answer."""

    ask = Message("user", "user", "asks a random peer for her label")
    label = Message("user", "user", "answers with the label", y=bool)
    report = Message("user", "learner", "reports the peer's label", y=bool)

    def user(self, me: Party) -> Rounds:
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        if me.id[0] == 0:
            assert int(asks.count.sum()) == asks.sender.layout.size
        labels = yield self.label.reply(asks, y=me.y)
        yield self.report(y=labels.y)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


@dataclass(frozen=True)
class Stranger(Protocol):
    """Writes to a user who does not exist."""

    note = Message("user", "user", "writes to nobody")

    def user(self, me: Party) -> Rounds:
        yield self.note(to=me.id + 1)


@dataclass(frozen=True)
class Felling(Protocol):
    """Kills the raylet, Ray's own process that has started the one it runs in."""

    note = Message("user", "user", "never sent")

    def user(self, me: Party) -> Rounds:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
        yield self.note(to=me.id)


@dataclass(frozen=True)
class Freezing(Protocol):
    """Stops the process of user 0 without ending it."""

    note = Message("user", "user", "passes nothing on")

    def user(self, me: Party) -> Rounds:
        if me.id[0] == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        yield self.note(to=me.id)


@dataclass(frozen=True)
class Dying(Protocol):
    """Ends the process it runs in."""

    note = Message("user", "user", "never sent")

    def user(self, me: Party) -> Rounds:
        os._exit(1)
        yield self.note(to=me.id)


@dataclass(frozen=True)
class DyingOnce(Protocol):
    """Everybody asks a peer, reports her label and keeps it; the process of one user is killed once.

    ``marker``: a file that is there once it was; ``step``: in which step, 0 while the process is made ready;
    ``victim``: whose process; ``driver``: the process that is spared in step 0.
    """

    marker: str
    step: int
    victim: int = 0
    driver: int = 0

    ask = Message("user", "user", "asks a random peer for her label")
    label = Message("user", "user", "answers with the label", y=bool)
    report = Message("user", "learner", "reports the peer's label", y=bool)

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        if self.step == 0 and os.getpid() != self.driver:
            self._die_once()

    def user(self, me: Party) -> Rounds:
        self._reaches(1, me)
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        self._reaches(2, me)
        labels = yield self.label.reply(asks, y=me.y ^ me.draw.bernoulli("flip", 0.3))
        self._reaches(3, me)
        yield self.report(y=labels.y)
        return {"told": labels.y}

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()

    def _reaches(self, step: int, me: Party) -> None:
        if step == self.step and self.victim in me.id:
            self._die_once()

    def _die_once(self) -> None:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)

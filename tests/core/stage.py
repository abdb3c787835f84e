"""A protocol whose roles come from outside, for tests of what a program may and may not do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Protocol, ProtocolError, Vector
from p2p_sim.core.trace_level import TraceLevel
from tests.tiny import people


@dataclass(frozen=True)
class Stage(Protocol):
    """Three kinds of messages; what users and learner do comes from outside."""

    as_user: Any = field(compare=False)
    as_learner: Any = field(default=lambda self, me: receive(self), compare=False)
    dim: int = 2

    ask = Message("user", "user", "asks", n=np.int8)
    answer = Message("user", "user", "answers", n=np.int8)
    report = Message("user", "learner", "reports", y=bool, v=Vector(np.uint8, "dim"))
    order = Message("learner", "user", "orders", n=int)

    def user(self, me):
        return (yield from self.as_user(self, me))

    def learner(self, me):
        return (yield from self.as_learner(self, me))


def receive(self):
    got = yield self.report.receive()
    return got.columns()


def silent(self, me):
    return
    yield


def perform(as_user, as_learner=None, **how):
    stage = Stage(as_user) if as_learner is None else Stage(as_user, as_learner)
    return local.run(stage, people(), 1, trace=TraceLevel("full"), **how)


def refused(text, as_user, as_learner=None, **how):
    with pytest.raises(ProtocolError, match=text):
        perform(as_user, as_learner, **how)


def asks(**how):
    """A user program of one ask, with arguments computed from ``me``."""

    def program(self, me):
        given = {name: value(me) for name, value in how.items()}
        yield self.ask(**({"to": me.id, "n": 1} | given))

    return program


def reports(**how):
    def program(self, me):
        given = {name: value(me) for name, value in how.items()}
        yield self.report(**({"y": me.y, "v": 0} | given))

    return program

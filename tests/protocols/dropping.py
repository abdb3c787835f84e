"""Secure aggregation among users who stop sending, or whose single messages are lost, as a test says."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2p_sim.core import Party, Rounds
from p2p_sim.core.columns import PerMessage, aligned
from p2p_sim.core.message import Send
from protocols import SecureAggregation

SENDS = ("advertise", "share", "report", "reveal")
"""What a user sends, in order."""


@dataclass(frozen=True)
class Dropping(SecureAggregation):
    """``last``: by user id, how many of her four sends are still made; ``lost``: (kind, share lost, salt)."""

    last: tuple[int, ...] = ()
    lost: tuple[str, float, int] = ("", 0.0, 0)

    def user(self, me: Party) -> Rounds:
        return (yield from _edited(super().user(me), lambda send: self._cut(send, me)))

    def aggregator(self, me: Party) -> Rounds:
        return (yield from _edited(super().aggregator(me), self._lose))

    def _cut(self, send: Send, me: Party) -> Send:
        left = np.array(self.last or [9] * (int(me.id.max(initial=0)) + 1))[me.id]
        when = aligned(send.when, send.answers.layout) if send.answers is not None else send.when
        alive = left > SENDS.index(send.message.kind)
        if send.answers is not None:
            alive = send.answers.layout.spread(alive)
            return self._lose(replace(send, when=PerMessage(when & alive, send.answers.layout)))
        return self._lose(replace(send, when=when & alive))

    def _lose(self, send: Send) -> Send:
        kind, share, salt = self.lost
        if send.message.kind != kind:
            return send
        layout = next(
            (v.layout for v in (send.when, send.to, *send.fields.values()) if isinstance(v, PerMessage)),
            None,
        )
        size = len(send.when) if layout is None else layout.size
        kept = np.random.default_rng(salt).random(size) >= share
        if layout is None:
            return replace(send, when=send.when & kept)
        return replace(send, when=PerMessage(aligned(send.when, layout) & kept, layout))


def _edited(program: Generator[Any, Any, Any], edit: Any) -> Rounds:
    handed = None
    while True:
        try:
            action = program.send(handed)
        except StopIteration as end:
            return end.value
        handed = yield edit(action) if isinstance(action, Send) else action

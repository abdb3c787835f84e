"""A coalition knows what its users drew: a bit under a colluder's own pad is no secret from her."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from p2p_sim import privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from protocols import PeerToPeer

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Padded(Protocol):
    """In pairs: the second user's pad goes, sealed, to a relay and on to the first, who reports her label under it.

    ``leak``: whether that pad is all that hides it.
    """

    leak: bool = True
    key = Message("user", "relay", "hands a pad to the relay", sealed_for="relay", bit=bool)
    back = Message("relay", "user", "hands it to the first of the pair", sealed_for="user", bit=bool)
    report = Message("user", "learner", "tells the label under the pad", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.key(bit=me.draw.bernoulli("pad", 0.5))
        got = yield self.back.receive()
        more = me.draw.bernoulli("more", 0.0 if self.leak else 0.5)
        yield self.report(y=me.y ^ got.bit.first(False) ^ more)

    def relay(self, me: Party) -> Rounds:
        keys = yield self.key.receive()
        bit, sender = keys.bit.data, keys.sender.data
        yield self.back(to=me.each(sender[::2]), bit=me.each(bit[1::2]))

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


@pytest.mark.parametrize("leak", [True, False])
def test_a_colluder_s_own_pad_is_looked_at(leak: bool) -> None:
    given: dict[str, Any] = {"cluster_size": 2, "epsilon": 0.0, "trials": 4000, "claims": {"nothing": 0.0}}
    alone = privacy.audit(Padded(leak), "learner", **given)
    together = privacy.audit(Padded(leak), "learner+user", **given)
    assert alone.verdict != "violated"
    assert (together.verdict == "violated") is leak
    assert together.lower > 0.9 or not leak


def test_the_exact_figure_is_that_of_the_composition_that_runs() -> None:
    protocol, given = PeerToPeer(0.2), {"cluster_size": 10, "delta": 0.01, "trials": 2000}
    for composition in (0, 4):
        found = privacy.audit(protocol, composition=composition, **given)
        law = privacy.profile(protocol, cluster_size=10, composition=composition)
        assert found.exact == law.epsilon(0.01)
    assert privacy.audit(protocol, **given).exact == privacy.profile(protocol, cluster_size=10).epsilon(0.01)

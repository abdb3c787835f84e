"""Without a law nobody knows the worst labels of the others: a pilot looks at none, half and all."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from p2p_sim import privacy
from p2p_sim.core import Message, Party, Protocol, Rounds

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Relay(Protocol):
    """Noisy labels are handed to random peers, who forward them: a shuffle, whose worst composition is an end."""

    alpha: float = 0.1
    give = Message("user", "user", "gives the noisy label to a random peer", y_hat=bool)
    report = Message("user", "learner", "forwards what came", y=bool)

    def user(self, me: Party) -> Rounds:
        y_hat = me.y ^ me.draw.bernoulli("flip", self.alpha)
        got = yield self.give(to=me.draw.member("peer", me.cluster), y_hat=y_hat)
        yield self.report(y=got.y_hat)

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


def test_a_claim_that_only_some_compositions_break_is_found_violated() -> None:
    given = {"cluster_size": 10, "delta": 0.01, "trials": 10_000, "claims": {"mine": 1.35}}
    half = privacy.audit(Relay(), composition=4, **given)
    worst = privacy.audit(Relay(), **given)
    assert (half.verdict, worst.verdict) == ("consistent", "violated")
    assert worst.composition in (0, 9)
    assert f"composition {worst.composition} showed most, of 0, 4, 9" in worst.statistic
    assert worst == privacy.audit(Relay(), **given)


@pytest.mark.parametrize(("size", "seen"), [(1, 0), (2, 1)])
def test_small_worlds_have_few_compositions(size: int, seen: int) -> None:
    found = privacy.audit(Relay(), cluster_size=size, delta=0.0, trials=2000)
    assert found.composition <= seen
    assert found.lower > 0

"""The contract's checks pass on a protocol that keeps it, and each fails on one that breaks it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim import Population, privacy, testing
from p2p_sim.core import Message, Party, Protocol, Rounds
from protocols import ClusterResponse, LaplaceLabelProportions, PeerToPeer


@dataclass(frozen=True)
class Honest(Protocol):
    """Users report a noisy label.

    *Source:* a test.  *Assumes:* nothing.
    """

    alpha: float = 0.25
    report = Message("user", "learner", "hands the learner a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", self.alpha))

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


@dataclass(frozen=True)
class Chance(Honest):
    def user(self, me: Party) -> Rounds:
        yield self.report(y=np.array([random.random() < 0.5 for _ in me.y]))


@dataclass(frozen=True)
class Shared(Honest):
    """Every user's report depends on who else is in her block."""

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ bool(len(me.y) % 2))


@dataclass(frozen=True)
class Spoiling(Honest):
    def user(self, me: Party) -> Rounds:
        me.y[:] = False
        yield self.report(y=me.y)


@dataclass(frozen=True)
class Bold(Honest):
    """Its law says half of what it shows."""


@dataclass(frozen=True)
class Unsaid(Honest):
    """Says neither source nor trust."""


def law(protocol: Bold, setting: privacy.Setting) -> privacy.PrivacyProfile:
    half = (0.5 + protocol.alpha) / 2
    return privacy.building_blocks.randomization_matrix([[1 - half, half], [half, 1 - half]])


privacy.register(Bold, privacy.Accounting(law=law, others_matter=False))


@pytest.mark.slow
@pytest.mark.parametrize("check", testing.CHECKS, ids=testing.name_of)
@pytest.mark.parametrize("protocol", [Honest(), PeerToPeer(0.2)], ids=lambda it: type(it).__name__)
def test_a_good_protocol_keeps_the_contract(check, protocol):
    testing.keeps(check, protocol)


@pytest.mark.parametrize(
    ("check", "protocol", "said"),
    [
        (testing.results_depend_on_seed_and_users_alone, Chance(), "chance"),
        (testing.results_depend_on_seed_and_users_alone, Shared(), "block"),
        (testing.a_trace_changes_nothing, Chance(), "trace='none' changes the run"),
        (testing.a_replay_is_the_run, Shared(), "replayed otherwise"),
        (testing.other_random_state_is_untouched, Chance(), "draws from random"),
        (
            testing.no_enumeration_exceeds_a_law,
            Bold(),
            r"learner: labels \[0, 0, 0\] show delta 0.5 at epsilon 0.0",
        ),
        (testing.no_audit_exceeds_a_law, Bold(), "Bold, learner: "),
        (testing.docstrings_say_source_and_trust, Unsaid(), "no "),
    ],
    ids=lambda it: it.__name__ if callable(it) else "",
)
def test_a_broken_one_does_not(check, protocol, said):
    with pytest.raises(AssertionError, match=said):
        testing.keeps(check, protocol, Population.from_arrays(y=np.arange(14) % 2 == 0))


def test_what_cannot_be_checked_is_skipped_and_says_why():
    with pytest.raises(pytest.skip.Exception, match="LaplaceLabelProportions is not enumerated"):
        testing.keeps(testing.no_enumeration_exceeds_a_law, LaplaceLabelProportions(1.0, 3))


def test_a_small_world_suits_its_protocol():
    assert testing.Case(ClusterResponse(1.0)).population.divided
    assert testing.Case(Honest()).population.users == 12

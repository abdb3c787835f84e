"""Whatever a coalition's own messages let it open of secure aggregation is within what the accountant claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import mpmath
import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.core.message import Send
from p2p_sim.crypto import pairs
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.noise import DiscreteLaplace, NoiseShares
from protocols import SecureAggregation
from tests.privacy.mechanisms.opening import Opening, draws
from tests.protocols.dropping import Dropping

pytestmark = pytest.mark.slow

BAGS = 8
FAULTS: list[list[str]] = [
    [], [], ["drop=0.1"], ["loss=0.03"], ["late=0.03"], ["drop=0.15", "loss=0.02"], ["tamper=0.05", "drop=0.05"],
    ["misdirect=0.05"], ["duplicate=0.3", "drop=0.1"], ["replay=0.3"], ["stop=aggregator:3"], ["lie=flip:0.3"],
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One random bag size, threshold, degree, coalition and noise, with faults; ``leave``: colluders may drop out."""

    protocol: SecureAggregation
    users: int
    colluders: tuple[int, ...]
    faults: list[str]
    leave: bool

    @classmethod
    def of(cls, seed: int) -> Case:
        rng = np.random.default_rng(seed)
        users = int(rng.integers(2, 12))
        size = max(2, users + int(rng.integers(-2, 4)))
        protocol = SecureAggregation(
            size,
            int(rng.integers(2, size + 1)),
            int(rng.choice([2, 4, 20])),
            float(rng.choice([1.0, 0.5, 0.5, np.inf])),
        )
        colluders = rng.choice(users, int(rng.integers(0, min(users, 5))), replace=False)
        leave = bool(rng.random() < 0.3)
        return cls(protocol, users, tuple(colluders.tolist()), FAULTS[int(rng.integers(len(FAULTS)))], leave)

    def everywhere(self) -> list[int]:
        """The colluders of all bags."""
        return [bag * self.users + user for bag in range(BAGS) for user in self.colluders]

    def run(self, seed: int) -> Any:
        rng, program = np.random.default_rng(seed + 1000), self.protocol
        if self.leave:
            last = np.full(BAGS * self.users, 4)
            last[self.everywhere()] = rng.integers(0, 5, len(self.everywhere()))
            given = {f.name: getattr(program, f.name) for f in fields(program)}
            program = Dropping(**given, last=tuple(last.tolist()))
        people = Population.from_arrays(
            y=rng.random(BAGS * self.users) < 0.5, cluster=np.repeat(np.arange(BAGS), self.users)
        )
        return p2p_sim.run(program, people, seed=seed, trace="full", faults=self.faults or None), people

    def claim(self) -> Any:
        view = "+".join(["aggregator", *([f"{len(self.colluders)}*user"] if self.colluders else [])])
        users = "deviating" if self.leave else "curious"
        return privacy.profile(
            self.protocol, view, cluster_size=self.users, users=users, faults=self.faults or None
        )


def counted_on(law: Any, protocol: SecureAggregation) -> float:
    """How many honest users' shares of the noise a claim counts on; without noise any number: 0, or none at all."""
    if isinstance(law, Nothing):
        return math.inf
    if isinstance(law, DiscreteLaplace):
        return protocol.least
    return law.parts * protocol.least if isinstance(law, NoiseShares) else 0


def masked(run: Any, people: Population, protocol: SecureAggregation) -> Any:
    """What each user masked: the label that her program was given, in steps, with her own share of the noise."""
    seen = run.view("+".join(f"user:{user}" for user in range(people.users)))
    up, down = draws(seen, "noise up"), draws(seen, "noise down")
    noise = [int(up[u][0]) - int(down[u][0]) if u in up and u in down else 0 for u in range(people.users)]
    lied = np.isin(np.arange(people.users), run.faulty["lied"]) if "lied" in run.faulty else False
    return protocol.grid * (people.y ^ lied).astype(int) + np.array(noise)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_opened_is_within_the_claim(seed: int) -> None:
    case = Case.of(seed)
    (run, people), found = case.run(seed), case.claim()
    told = Opening(run, case.everywhere()).sums()
    truth = masked(run, people, case.protocol)
    for users, total in told:
        assert total == sum(int(truth[u]) for u in users), case  # the attack is right about what it opens
        assert len(users) >= counted_on(found.law, case.protocol) - 1e-9, (case, found)


@dataclass(frozen=True)
class Forging(SecureAggregation):
    """The aggregator names neighbours with a key of her own making, asks for both secrets, and says that one does."""

    low: bool = False

    def aggregator(self, me: Party) -> Rounds:
        program, handed = super().aggregator(me), None
        while True:
            try:
                action = program.send(handed)
            except StopIteration as end:
                return end.value
            if isinstance(action, Send) and action.message.kind == "neighbour":
                forged = np.tile(pairs.Modelled().publics(KEY), (len(action.fields["peer"]), 1))
                given = dict(action.fields) | {"key": me.each(forged)}
                if self.low:
                    given["need"] = me.each(np.ones(len(forged), np.int32))
                action = Send(action.message, action.to, action.when, given, None, None)
            if isinstance(action, Send) and action.message.kind == "ask":
                twice = {name: me.each(np.tile(column.data, 2)) for name, column in action.fields.items()}
                stayed = action.fields["stayed"].data
                twice["stayed"] = me.each(np.concatenate([stayed, ~stayed]))
                action = Send(action.message, me.each(np.tile(action.to.data, 2)), True, twice, None, None)
            handed = yield action


KEY = np.arange(1, 33, dtype=np.uint8)[None]
"""The private key of the aggregator's own making."""


@pytest.mark.parametrize(("users", "low"), [(6, False), (6, True), (4, False)])
def test_a_deviating_aggregator_opens_what_her_row_says(users: int, low: bool) -> None:
    """Each value but for its own noise, with no colluder; nobody answers below t, nor where one share would do."""
    honest = SecureAggregation(6, 5, epsilon=1.0)
    people = Population.from_arrays(y=np.arange(users) % 2 == 0)
    run = p2p_sim.run(Forging(6, 5, epsilon=1.0, low=low), people, seed=3, trace="full")
    found = privacy.profile(honest, "aggregator", cluster_size=users, users="all deviating")
    told = Opening(run, [])
    assert not told.told["report"]["sender"] or (users, low) == (6, False)
    if users < honest.least:
        assert isinstance(found.law, Nothing)
        return
    assert found.law == NoiseShares(1.0, 1, 1 / 5)
    if low:
        return
    reveals = run.messages("reveal")
    assert len(reveals["sender"]) == users * (users - 1)  # one secret a neighbour, though both were asked for
    truth, advertised = masked(run, people, honest), told.key
    for user, value in zip(told.told["report"]["sender"], told.told["report"]["value"], strict=True):
        value -= int(pairs.Modelled().masks(told.seed[user])[0])
        mask = int(pairs.Modelled().masks(pairs.Modelled().agreed(KEY, advertised[user][None]))[0])
        for peer in set(range(users)) - {user}:
            value -= mask if user < peer else -mask
        assert (value + (1 << 63)) % (1 << 64) - (1 << 63) == truth[user]


def shares_of(parts: float, epsilon: float) -> Any:
    """P(noise = j), j = -J .. J, of the difference of two Polya(parts) variables, with 40 digits, by convolution."""
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(epsilon))
        one = [
            mpmath.gamma(parts + k) / mpmath.gamma(parts) / mpmath.factorial(k) * q**k * (1 - q) ** parts
            for k in range(70)
        ]
        return {
            j: mpmath.fsum(one[k] * one[k - j] for k in range(max(0, j), min(70, 70 + j)))
            for j in range(-69, 70)
        }


@pytest.mark.parametrize(
    ("view", "users", "honest"),
    [
        ("aggregator+2*user", "curious", 6),
        ("aggregator+3*user", "deviating", 5),
        ("aggregator+4*user", "curious", 1),
        ("aggregator", "all deviating", 1),
    ],
)
def test_claims_by_an_independent_sum(view: str, users: str, honest: int) -> None:
    noise = shares_of(honest / 6, 1.0)
    found = privacy.profile(SecureAggregation(8, 6, epsilon=1.0), view, cluster_size=8, users=users)
    for at in (0.0, 0.5, 0.9, 1.5):
        delta = mpmath.fsum(
            max(0, p - mpmath.exp(at) * noise.get(j - 1, mpmath.mpf(0))) for j, p in noise.items()
        )
        assert found.delta(at) == pytest.approx(float(delta), rel=1e-10, abs=1e-14)

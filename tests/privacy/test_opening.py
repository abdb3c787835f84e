"""Whatever a coalition's own messages let it open of secure aggregation is within what the accountant claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.core.columns import PerMessage
from p2p_sim.core.message import Send
from p2p_sim.crypto import pairs
from p2p_sim.privacy.laws.combine import Nothing
from p2p_sim.privacy.laws.shares import DiscreteLaplace, NoiseShares
from protocols import SecureAggregation
from tests.privacy.opening import Opening, draws
from tests.protocols.dropping import Dropping

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
            float(rng.choice([1.0, np.inf])),
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

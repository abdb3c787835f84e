"""What users and servers who deviate guess: no run has any, so what they read of each victim is drawn by its law."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.leakage.advantage import decide
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.leakage.attacker_names import OPTIMAL, PRIOR, SIMPLE
from p2p_sim.leakage.attackers import Attacker, Guesses, Knowledge, prior
from p2p_sim.observed_view import View
from p2p_sim.privacy.accountant import profile
from p2p_sim.privacy.registered import known
from p2p_sim.privacy.table_rows import ALL_DEVIATING

HOW = "what who deviates reads of each victim in turn, drawn by the law: no run has users or servers who deviate"


@dataclass(frozen=True, eq=False)
class Reading:
    """What a view whose users deviate reads of each victim alone.

    ``channel`` (k, m): P(outcome | label), of one outcome where she reads nothing; ``source``: of its law.
    """

    channel: Floats
    source: str

    def guess(self, knowledge: Knowledge, y: npt.NDArray[np.int64], seed: int) -> Guesses:
        """Return the best guesses on outcomes that are drawn by ``seed`` for the labels ``y`` (n,).

        Raises InputError where ``eta`` rules out what was drawn.

        *Source:* Bayes, with the law of the view.  *Assumes:* each victim is the one at whom all of it is aimed.
        """
        drawn = uniform(words(seed, stream("attack", "deviating", 0), 0, len(y)))
        ends = self.channel.cumsum(axis=1)
        outcome = np.minimum((drawn[:, None] >= ends[y]).sum(axis=1), self.channel.shape[1] - 1)
        joint = knowledge.eta * self.channel[:, outcome].T
        total = joint.sum(axis=1, keepdims=True)
        if not bool(total.all()):
            ids = knowledge.people.ids
            row = int(np.flatnonzero(total[:, 0] == 0)[0])
            raise InputError(
                f"eta: rules out what the view reads of user {row if ids is None else ids[row]}; give every label she "
                "can have some chance"
            )
        posterior = joint / total
        silent = self.channel.shape[1] == 1
        source = f"{HOW}; {self.source}"
        return Guesses(decide(posterior, knowledge.utility), posterior, source, silent=silent)


def reading_of(
    protocol: Protocol, view: View, people: Population, users: str, faults: Faults | None
) -> Reading:
    """Return what a view reads of each victim alone; raises InputError, saying why, where no such law is known.

    ``users``: who deviates, as ``privacy.profile`` takes it.

    *Source:* the law of the view, where it is that of one randomized response, or what the mechanism's room registers
    as ``opened``.
    """
    law = profile(protocol, view.name, population=people, channels=view.channels, users=users, faults=faults)
    if law.law is None:
        raise InputError(f"optimal attack: no law of this view is known: {law.why}")
    if law.law.pure() == 0:
        return Reading(np.ones((protocol.label_count(), 1)), law.source)
    opened = known(protocol).opened if users == ALL_DEVIATING else None
    channel = None if opened is None or faults is not None else opened(protocol, view.coalition, people)
    response = law.law.response()
    if (
        channel is None
        and response is not None
        and law.basis == "exact"
        and response[1] == protocol.label_count()
    ):
        keep = 1 / (1 + (response[1] - 1) * float(np.exp(-response[0])))
        k = response[1]
        channel = np.full((k, k), (1 - keep) / (k - 1))
        np.fill_diagonal(channel, keep)
    if channel is None:
        raise InputError(
            "optimal attack: the law of this view is not about one answer of each victim, and no run has messages of "
            "users or servers who deviate; the bounds below follow from the law"
        )
    return Reading(channel, law.source)


def attackers(
    names: Iterable[str], reading: Reading | InputError, y: npt.NDArray[Any], seed: int
) -> dict[str, Attacker]:
    """Return the attackers of a view whose users deviate, by name; ``y``: the true labels, to draw what they read.

    One's own of ``names`` are refused, as the simple one is: they go by a run, and no run has such users.
    """

    def by_law(knowledge: Knowledge) -> Guesses:
        if isinstance(reading, InputError):
            raise reading
        return reading.guess(knowledge, np.asarray(y, np.int64), seed)

    def no_model(_knowledge: Knowledge) -> Guesses:
        raise InputError(
            "simple prediction attack: no run has users or servers who deviate, so there is no model"
        )

    def no_run(_knowledge: Knowledge) -> Guesses:
        raise InputError(
            "no run has users or servers who deviate, so there is nothing to show an attacker of one's own"
        )

    known: dict[str, Attacker] = {PRIOR: prior, SIMPLE: no_model, OPTIMAL: by_law}
    return {name: known.get(name, no_run) for name in names}

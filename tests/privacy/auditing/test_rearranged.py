"""Worlds in another order: what a classifier reads of each is the same, of every kind of message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim import backends
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing.audit import statistic_of
from p2p_sim.privacy.auditing.features import features
from p2p_sim.privacy.auditing.rearranged import rearranged
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.auditing.worlds import Situation, batches
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    MultiStage,
    PeerPermutation,
    PeerToPeer,
    SecureAggregation,
)

CASES: list[tuple[Any, str]] = [
    (PeerToPeer(0.1), "learner+2*user"),
    (PeerToPeer(0.1), "wire"),
    (PeerPermutation(0.2), "user"),
    (EncryptedShuffle(3.0, shufflers=2), "shuffler+learner"),
    (EncryptedShuffle(3.0), "learner"),
    (LabelProportions(3), "aggregator"),
    (LabelProportions(3), "learner"),
    (SecureAggregation(3, threshold=2, epsilon=1.0), "aggregator+user"),
    (SecureAggregation(3, threshold=2, epsilon=1.0), "wire"),
    (MultiStage(1.0, stages=2), "learner"),
]


def seen_of(protocol: Any, view: str) -> Seen:
    who = Coalition.parse(view, protocol.roles())
    situation = Situation(protocol, who, 6, 2)
    return next(batches(situation, 20, 3, backends.Settings("local", digest=False), draws=True))


@pytest.mark.parametrize(("protocol", "view"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_every_world_is_read_as_it_was(protocol: Any, view: str) -> None:
    seen = seen_of(protocol, view)
    table, names = features(seen)
    assert len(names) > 0
    order = np.random.default_rng(5).permutation(seen.worlds)[:13]
    again, other = features(rearranged(seen, order))
    place = {name: i for i, name in enumerate(names)}
    assert set(other) <= set(names)
    assert np.array_equal(again, table[order][:, [place[name] for name in other]])


@pytest.mark.parametrize(("protocol", "view"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_in_their_own_order_they_are_what_they_were(protocol: Any, view: str) -> None:
    seen = seen_of(protocol, view)
    same = rearranged(seen, np.arange(seen.worlds))
    for kind, messages in seen.kinds.items():
        again = same.kinds[kind]
        for name in ("round", "sender", "recipient", "readable", "cluster"):
            assert np.array_equal(getattr(messages, name), getattr(again, name)), (kind, name)
        assert messages.fields.keys() == again.fields.keys()
        for name, column in messages.fields.items():
            assert np.array_equal(column, again.fields[name]), (kind, name)
            assert column.dtype == again.fields[name].dtype
    for stream, drawn in seen.draws.items():
        assert all(np.array_equal(column, same.draws[stream][part]) for part, column in drawn.items())


@pytest.mark.parametrize(
    ("protocol", "view"), CASES[:7], ids=lambda each: each if isinstance(each, str) else ""
)
def test_exact_statistics_read_nothing_but_the_world(protocol: Any, view: str) -> None:
    who = Coalition.parse(view, protocol.roles())
    statistic = statistic_of(protocol, who, size=6, composition=2)
    assert isinstance(statistic, Statistic)
    seen = seen_of(protocol, view)
    order = np.random.default_rng(5).permutation(seen.worlds)[:13]
    whole, part = statistic.read(seen), statistic.read(rearranged(seen, order))
    assert whole.keys() == part.keys()
    for name, column in whole.items():
        assert np.array_equal(part[name], column[order]), name

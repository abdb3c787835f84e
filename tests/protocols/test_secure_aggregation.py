"""Secure aggregation: sums are exact under any dropouts up to the threshold, and refused above."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import networkx
import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from protocols import SecureAggregation, _unmasking, secure_aggregation
from tests.contract.cases import POPULATIONS
from tests.protocols.dropping import Dropping


def sums(protocol: Any, people: Population, seed: int = 3, **how: Any) -> dict[str, Any]:
    return p2p_sim.run(protocol, people, seed=seed, **how).output("learner")


def expected(people: Population, counted: Any, bags: int) -> Any:
    """The true sum of who stayed, of consecutive bags of one size."""
    return (people.y & counted).reshape(bags, -1).sum(1)


def test_every_pattern_of_dropouts_in_a_bag_of_four() -> None:
    """All 5^4 ways for 4 users to drop out, as one run of many bags: exact at 2 or more, refused below."""
    ways = np.array(list(itertools.product(range(5), repeat=4)))
    people = Population.from_arrays(y=np.random.default_rng(1).random(ways.size) < 0.5)
    out = sums(Dropping(4, threshold=2, last=tuple(ways.ravel().tolist())), people)
    stayed = (ways >= 3).sum(1)  # the masked value came
    answered = (ways >= 4).sum(1)
    at = out["bag"]
    assert set(np.flatnonzero((ways >= 1).any(1))) == set(at)
    assert (out["refused"] | (stayed[at] >= 2)).all()
    assert not out["refused"][answered[at] >= 2].any()
    fine = ~out["refused"]
    assert (out["total"][fine] == expected(people, (ways >= 3).ravel(), len(ways))[at][fine]).all()
    assert (out["size"][answered[at] >= 2] == stayed[at][answered[at] >= 2]).all()
    assert (out["total"][~fine] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("crypto", ["modelled", "real"])
@pytest.mark.parametrize(("degree", "least"), [(4, 19), (8, 17), (30, 14), (30, 2)])
def test_random_dropouts_up_to_the_threshold(crypto: str, degree: int, least: int) -> None:
    """So many that more than half of anybody's neighbours stay, whoever drops out."""
    rng = np.random.default_rng(degree)
    bags, k = 6, 20
    last = np.full((bags, k), 4)
    for row in last:
        row[rng.choice(k, k - least, replace=False)] = rng.integers(0, 4, k - least)
    people = Population.from_arrays(y=rng.random(bags * k) < 0.4)
    program = Dropping(k, least, degree, last=tuple(last.ravel().tolist()))
    out = sums(program, people, blocks=5, crypto=crypto)
    assert not out["refused"].any()
    assert (out["total"] == expected(people, last.ravel() >= 3, bags)).all()


def test_above_the_threshold_a_bag_is_refused_with_the_numbers() -> None:
    last = [4] * 10 + [4] * 6 + [2] * 4
    people = Population.from_arrays(y=np.ones(20, np.bool_))
    out = sums(Dropping(10, threshold=7, last=tuple(last)), people)
    assert out["refused"].tolist() == [False, True]
    assert out["size"].tolist() == [10, 6]
    assert out["joined"].tolist() == [10, 10]
    assert out["total"].tolist() == [10, 0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["advertise", "neighbour", "share", "routed", "report", "ask", "reveal"])
@pytest.mark.parametrize("salt", range(4))
def test_single_lost_messages_never_make_a_wrong_sum(kind: str, salt: int) -> None:
    """Sums count whoever stayed, or are refused; without the count of masks a lost share would spoil them."""
    people = Population.from_arrays(y=np.ones(300, np.bool_))
    out = sums(Dropping(10, threshold=5, lost=(kind, 0.08, salt)), people)
    fine = ~out["refused"]
    assert fine.any()
    assert (out["total"][fine] == out["size"][fine]).all()
    assert (out["size"] <= out["joined"]).all()


def test_masks_hide_each_value_and_both_modes_agree() -> None:
    people = Population.synthetic(users=60, cluster_size=20, seed=2)
    outputs = []
    for crypto in ("modelled", "real"):
        run = p2p_sim.run(SecureAggregation(10), people, seed=5, trace="full", crypto=crypto)
        values = run.messages("report")["value"]
        assert len(np.unique(values)) == 60
        assert ((values >> np.uint64(32)) > 0).all()
        outputs.append(
            (run.output("learner"), {kind: (c.messages, c.nbytes) for kind, c in run.by_kind().items()})
        )
    assert outputs[0][1] == outputs[1][1]
    assert all(np.array_equal(outputs[0][0][name], outputs[1][0][name]) for name in outputs[0][0])


@pytest.mark.parametrize("make", POPULATIONS.values(), ids=POPULATIONS.keys())
def test_noise_sums_to_small_signed_numbers(make: Any) -> None:
    """Negative noise comes out negative, not as 2^64 - x."""
    out = sums(SecureAggregation(4, epsilon=0.2, grid=3), make(101))
    fine = ~out["refused"]
    assert (out["total"][fine] < 0).any()
    assert np.abs(out["total"]).max() < 1000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SecureAggregation(1), ["bag_size", "1", "from 2"]),
        (lambda: SecureAggregation(8, threshold=9), ["threshold", "9", "from 2 to 8"]),
        (lambda: SecureAggregation(8, threshold=1), ["threshold", "1", "from 2 to 8"]),
        (lambda: SecureAggregation(8, degree=3), ["degree", "3", "even"]),
        (lambda: SecureAggregation(8, degree=0), ["degree", "0", "from 2"]),
        (lambda: SecureAggregation(8, epsilon=0.0), ["epsilon", "0.0", "(0, 700]"]),
        (lambda: SecureAggregation(8, epsilon=float("nan")), ["epsilon", "nan"]),
        (lambda: SecureAggregation(8, epsilon=0.1, grid=1000), ["grid = 1000", "at most 15,"]),
    ],
)
def test_parameters_out_of_range_are_refused(make: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_lone_user_is_refused() -> None:
    out = sums(SecureAggregation(4), Population.from_arrays(y=np.array([True])))
    assert (out["joined"].tolist(), out["refused"].tolist(), out["total"].tolist()) == ([1], [True], [0])


def test_a_sparse_bag_whose_dropouts_are_all_neighbours_is_refused() -> None:
    """Enough users stay, but not enough of one user's neighbours: no wrong sum."""
    people = Population.from_arrays(y=np.ones(40, np.bool_))
    refused = 0
    for salt in range(20):
        last = np.full(40, 4)
        last[np.random.default_rng(salt).choice(40, 12, replace=False)] = 2
        out = sums(Dropping(40, threshold=20, degree=4, last=tuple(last.tolist())), people, seed=salt)
        assert out["size"].tolist() == [28]
        assert out["total"].tolist() == [0 if out["refused"][0] else 28]
        refused += int(out["refused"][0])
    assert refused > 0


@pytest.mark.parametrize(("bag", "degree"), [(2, 2), (5, 2), (5, 4), (8, 20)])
def test_shares_are_as_many_as_counted(bag: int, degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = SecureAggregation(bag, degree=degree)
    people = Population.from_arrays(y=np.ones(40, bool), cluster=np.repeat([0, 1, 2, 3], [1, 9, 13, 17]))
    sent = p2p_sim.run(protocol, people, seed=0).by_kind()["share"].messages
    assert protocol.shares(people.sizes) == sent
    monkeypatch.setattr(secure_aggregation, "MOST_SHARES", sent)
    p2p_sim.run(protocol, people, seed=0)
    monkeypatch.setattr(secure_aggregation, "MOST_SHARES", sent - 1)
    with pytest.raises(ProtocolError, match=f"send {sent} shares; at most {sent - 1} are simulated"):
        p2p_sim.run(protocol, people, seed=0)


def test_an_audit_takes_no_more_users_at_once_than_fit() -> None:
    protocol = SecureAggregation(10, degree=4)
    for size in (1, 2, 10, 35, 10**6):
        users = protocol.users_at_once(size)
        clusters = np.full(users // size, size)
        assert protocol.shares(clusters) <= secure_aggregation.MOST_SHARES // 5


@dataclass(frozen=True)
class Careless(Dropping):
    """One share recovers a secret, so that users go on whose neighbours' shares did not come."""

    def needed(self, joined: Any, neighbours: Any) -> Any:
        return np.minimum(neighbours, 1)


@pytest.mark.parametrize("careful", [True, False])
def test_a_bag_whose_masks_fall_apart_is_refused(careful: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost shares leave sets of users with no mask in common, whom the server could add up apart."""
    if not careful:  # the twin does not look
        monkeypatch.setattr(_unmasking, "connected", lambda users, owner, peer: np.zeros(users, np.int64))
    protocol = Careless(9, threshold=7, degree=2, lost=("share", 0.1, 5))
    people = Population.synthetic(users=1_800, cluster_size=9, seed=1)
    run = p2p_sim.run(protocol, people, seed=2, trace="full")
    routed, stayed = run.messages("routed"), run.messages("report")["sender"]
    masks = networkx.Graph(zip(routed["recipient"].tolist(), routed["giver"].tolist(), strict=True))
    told = run.output("learner")
    whole = np.array(
        [networkx.is_connected(masks.subgraph(stayed[stayed // 9 == c])) for c in told["cluster"]]
    )
    enough = told["size"] >= 7
    assert np.count_nonzero(enough & ~whole) > 10
    assert np.count_nonzero(enough & whole) > 10
    assert np.array_equal(told["refused"], ~(enough & whole)) is careful


@pytest.mark.parametrize("bag_size", [2, 3, 8, 16, 30])
@pytest.mark.parametrize("degree", [2, 4, 20])
def test_early_dropouts_never_make_fewer_shares_recover_a_secret(bag_size: int, degree: int) -> None:
    """Never fewer than where t joined, nor than half of the neighbours there are without drop-outs; t who stay can."""
    for threshold in range(2, bag_size + 1):
        protocol = SecureAggregation(bag_size, threshold, degree)
        joined = np.arange(threshold, bag_size + 1)
        neighbours = np.minimum(joined - 1, degree)
        needed = protocol.needed(joined, neighbours)
        half = min(bag_size - 1, degree) // 2 + 1
        assert (needed >= min(half, threshold - 1)).all()
        assert needed.min() == protocol.fewest
        everybody = neighbours == joined - 1
        assert (needed[everybody] <= threshold - 1).all()
        assert (needed[~everybody] == degree // 2 + 1).all()


@pytest.mark.parametrize("early", [True, False])
def test_a_bag_that_too_few_joined_shares_and_reports_nothing(early: bool) -> None:
    """Of a cluster that is too small, and of a bag whose users dropped out before they joined; ten others go on."""
    clusters = np.repeat([0, 1], [10, 10 if early else 6])
    last = [4] * 10 + ([4] * 6 + [0] * 4 if early else [4] * 6)
    protocol = Dropping(10, threshold=7, last=tuple(last))
    run = p2p_sim.run(protocol, Population.from_arrays(y=clusters > 0, cluster=clusters), trace="full")
    out = run.output("learner")
    assert (out["joined"].tolist(), out["refused"].tolist()) == ([10, 6], [False, True])
    for kind in ("share", "report", "reveal"):
        assert set(run.messages(kind)["sender"].tolist()) == set(range(10))
    sent = {kind: count.messages for kind, count in run.by_kind().items()}
    edges = dict.fromkeys(("neighbour", "share", "routed", "ask", "reveal"), 90)
    assert sent == {"advertise": 16, "report": 10, "total": 2} | edges  # the price that the docs name

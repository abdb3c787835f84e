"""Cluster response as it runs: its parameters, the distributions it releases, and the labels drawn from them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.errors import ProtocolError
from protocols import ClusterResponse
from protocols.cluster_response import FINE, alike, renormalized, total

given = ClusterResponse.given
EVEN = Fraction(1, 3)


def test_presets_spend_the_total_that_they_are_given() -> None:
    cluster, uniform = ClusterResponse(0.9, 10), ClusterResponse(0.9, 10, "uniform")
    tau, sigma, lam, beta = cluster.settings()
    assert float(tau) == 0.02
    assert float(sigma or 0) == pytest.approx(2 / 0.6)
    assert float(lam) == pytest.approx(1 / (1 + math.expm1(0.3) * 0.02))
    assert beta == 0
    tau, sigma, lam, beta = uniform.settings()
    assert (tau, sigma, beta) == (Fraction(1, 10), None, lam)
    assert float(lam) == pytest.approx(10 / (9 + math.exp(0.9)))
    for protocol in (cluster, uniform, ClusterResponse(0.9, 4, phi=1.5, noise_share=0.1)):
        own = given(
            **dict(zip(("tau", "sigma", "lam"), _public(protocol), strict=True)), labels=protocol.labels
        )
        assert own.epsilon == pytest.approx(0.9, rel=1e-12)


def _public(protocol: ClusterResponse) -> tuple[Any, Any, Any]:
    tau, sigma, lam, _ = protocol.settings()
    return tau, math.inf if sigma is None else sigma, lam


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tau": 0.34}, ["tau", "0.34", "0.33"]),
        ({"tau": -0.1}, ["tau", "-0.1"]),
        ({"sigma": 0}, ["sigma", "0", "(0, inf]"]),
        ({"sigma": math.inf}, ["sigma = inf", "tau = 0.2", "1 / 3"]),
        ({"lam": 1.2}, ["lam", "1.2"]),
        ({"beta": 1}, ["beta = 1", "singular"]),
        ({"labels": 1}, ["labels", "1"]),
        ({"sigma": 30_000}, ["30,000 steps", "20,000"]),
        ({"lam": 1e-20}, ["lambda", "1e-20"]),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        given(**{"tau": 0.2, "sigma": 1, "lam": 0.5, "labels": 3, **wrong})
    assert all(word in str(caught.value) for word in words), caught.value


def test_settings_that_contradict_their_epsilon_are_refused() -> None:
    own = tuple(given(tau=0.2, sigma=1, lam=0.5).settings())
    with pytest.raises(InputError, match=r"contradicts epsilon.*ClusterResponse\.given"):
        ClusterResponse(1.0, preset="given", own=own)


def test_distributions_are_never_below_tau_and_sum_to_one_with_absent_classes_too() -> None:
    rng = np.random.default_rng(1)
    y = np.where(np.arange(4000) < 2000, 4, rng.integers(0, 3, 4000)).astype(np.uint8)  # half: one class only
    people = Population.from_arrays(y=y, cluster=np.arange(4000) // 10)
    for protocol in (ClusterResponse(1.0, 5, phi=0.1), given(tau=0.13, sigma=20, lam=0.5, labels=5)):
        found = p2p_sim.run(protocol, people, seed=2).outputs["learner"]["weights"]
        shares = found / found.sum(axis=1, keepdims=True)
        assert shares.min() >= float(protocol.settings().tau)
        assert (np.gcd.reduce(found, axis=1) == 1).all()


def test_at_tau_1_over_k_the_distribution_is_uniform_whatever_the_noise() -> None:
    protocol = given(tau=1 / 3, sigma=5, lam=0.5, labels=3)
    assert protocol.settings().tau == EVEN
    people = Population.from_arrays(y=np.zeros(70, np.uint8), cluster=np.arange(70) // 7)
    assert (p2p_sim.run(protocol, people, seed=1).outputs["learner"]["weights"] == 1).all()


def test_no_shares_make_a_sum_of_zero() -> None:
    """All at tau, all at 1, and every mixture of the two, also where tau is 1/k."""
    for floor in (0, 1, 4):
        corners = np.stack(np.meshgrid(*[[floor, 12]] * 3), axis=-1).reshape(-1, 3)
        found = renormalized(corners, floor, 12)
        assert (found.sum(axis=1) > 0).all()
        assert (found * 12 >= floor * found.sum(axis=1, keepdims=True)).all()


def test_labels_are_replaced_with_lambda_by_draws_from_what_is_released() -> None:
    """Frequencies of one run, at 5 standard deviations each."""
    users = 200_000
    y = (np.arange(users) % 4 == 0).astype(np.bool_)
    people = Population.from_arrays(y=y, cluster=np.arange(users) % 2)
    protocol = given(tau=0.1, sigma=2, lam=0.3)
    found = p2p_sim.run(protocol, people, seed=4).outputs["learner"]
    assert (found["sender"] == np.arange(users)).all()
    for cluster, weights in zip(found["q_cluster"], found["weights"], strict=True):
        share = weights[1] / weights.sum()
        for label in (0, 1):
            mine = (found["cluster"] == cluster) & (y == label)
            if mine.any():
                expected = 0.7 * label + 0.3 * share
                spread = math.sqrt(expected * (1 - expected) / mine.sum())
                assert abs(found["y"][mine].mean() - expected) < 5 * spread


def test_a_cluster_too_large_for_its_weights_is_named() -> None:
    protocol = ClusterResponse(10.0, 256, grid=256)
    most = protocol.most_users()
    whole = protocol.steps(most)[0]
    assert 256 * whole**2 <= 1 << 62 < 256 * protocol.steps(most + 1)[0] ** 2
    people = Population.from_arrays(y=np.zeros(most + 1, np.uint8))
    with pytest.raises((InputError, ProtocolError), match=rf"at most {most:,} are possible"):
        p2p_sim.run(protocol, people, seed=1)


def test_who_reports_twice_counts_once() -> None:
    people = Population.synthetic(users=60, cluster_size=10, positive=0.3, seed=5)
    protocol = ClusterResponse(1.0)
    plain, twice = (
        p2p_sim.run(protocol, people, seed=3, faults=how).outputs["learner"]
        for how in (None, ["duplicate=1.0"])
    )
    for name in ("q_cluster", "weights"):
        assert np.array_equal(np.unique(twice[name], axis=0), np.unique(plain[name], axis=0))
    assert len(np.unique(twice["sender"])) == 60


class SaysItTwice(ClusterResponse):
    """Users who hand in two reports."""

    def user(self, me: Any) -> Any:
        twice = me.draw.below("nothing", 1, times=2)
        yield self.report(cluster=twice + me.cluster.codes, y=twice + me.y)


def test_who_says_it_twice_counts_once() -> None:
    people = Population.synthetic(users=60, cluster_size=10, positive=0.3, seed=5)
    once, twice = (p2p_sim.run(protocol(1.0), people, seed=3) for protocol in (ClusterResponse, SaysItTwice))
    assert twice.by_kind()["report"].messages == 120
    for name, column in once.outputs["learner"].items():
        np.testing.assert_array_equal(twice.outputs["learner"][name], column)


@pytest.mark.parametrize(("users", "labels"), [(1, 2), (2, 2), (7, 2), (5, 3), (4, 4)])
def test_the_statistic_of_phi_changes_by_at_most_2_with_a_label(users: int, labels: int) -> None:
    """Of all compositions of a cluster, rounding included; the noise is for 2."""
    most = 0
    for y in itertools.product(range(labels), repeat=users):
        counts = np.bincount(y, minlength=labels)
        for other in range(labels):
            moved = counts - np.eye(labels, dtype=int)[y[0]] + np.eye(labels, dtype=int)[other]
            most = max(most, abs(int(alike(counts[None])[0]) - int(alike(moved[None])[0])))
    assert most <= 2 * FINE
    assert most >= 2 * FINE * (users - 1) / users - 1


@pytest.mark.parametrize(("mixed", "uniform"), [(0.02, False), (0.4, True)])
def test_phi_is_estimated_and_paid_for(mixed: float, uniform: bool) -> None:
    """Clusters of one label but for a share of others: tau is phi, 2 (1 - sum of squared shares), or 1/k."""
    n, size = 40_000, 4_000
    cluster = np.arange(n) // size
    y = (cluster + (np.arange(n) % 100 < 100 * mixed)) % 4
    people = Population.from_arrays(y=y.astype(np.uint8), cluster=cluster)
    protocol = ClusterResponse(4.0, 4, phi_share=0.25)
    phi = 2 * (1 - (1 - mixed) ** 2 - mixed**2)
    out = p2p_sim.run(protocol, people, seed=3).output("learner")
    q = out["weights"] / out["weights"].sum(axis=1, keepdims=True)
    if uniform:
        assert (q == 0.25).all()
        kept = math.exp(3) / (math.exp(3) + 3)
    else:
        assert q.min() >= phi - 0.002  # noise of scale 2 / 1 on 40,000, twice, and rounding to a sixteenth
        assert q.min() == pytest.approx(phi, abs=0.01)
        lam = 1 / (1 + (math.exp(1) - 1) * phi)
        kept = 1 - lam + lam * float(q[cluster, y].mean())
    said = (out["y"] == y[out["sender"]]).mean()
    assert said == pytest.approx(kept, abs=0.02)


def test_what_is_left_after_the_estimate_is_not_more_than_there_is() -> None:
    protocol = ClusterResponse(1.3, 5, phi_share=0.1)
    for phi in (Fraction(1, 50), Fraction(1, 5), Fraction(3, 2)):
        rest = protocol.after(phi)
        assert protocol.phi_cost() + Fraction(rest.epsilon) <= Fraction(1.3)
        assert rest.preset == ("cluster" if phi < Fraction(1, 5) else "uniform")
        assert total(rest.settings()) == pytest.approx(1.3 * 0.9)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"phi_share": 1.0}, ["phi_share = 1.0", "below 1"]),
        ({"phi_share": -0.1}, ["phi_share = -0.1", "[0, 1]"]),
        ({"phi_share": 0.1, "phi": 0.1}, ["phi = 0.1", "then not given"]),
        ({"phi_share": 0.1, "preset": "uniform"}, ["preset = 'uniform'", "leave phi out, or phi_share"]),
        ({"phi_share": 1e-4}, ["needs an epsilon of at least 0.0016", "a larger share"]),
    ],
)
def test_estimates_that_cannot_be_are_refused(wrong: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        ClusterResponse(1.0, 4, **wrong)
    assert all(word in str(caught.value) for word in words), caught.value

"""Cluster response: laws against Algorithm 1 written out, against enumeration, and against Theorem 1 in both forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.core.columns import PerMessage
from p2p_sim.privacy.bounds.clustering2022 import theorem1_corrected, theorem1_printed
from p2p_sim.privacy.enumeration.exhaustive_draws import TapeDraw
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.mechanisms import cluster_response as room
from p2p_sim.privacy.mechanisms.cluster_response import bound, view_pmf
from p2p_sim.privacy.mechanisms.cluster_response.view_pmf import listed, views
from p2p_sim.report import figure_text
from p2p_sim.report.privacy_table import AccountRequest, table_of
from p2p_sim.result_summary import down, up
from protocols import ClusterResponse

pytestmark = pytest.mark.slow

given = ClusterResponse.given
CLAIMED = given(tau=0.3, sigma=1, lam=0.5, labels=3)  # of docs/laws.md, "Clustering 2022"
EPSILONS = (0.0, 0.2, 0.7, 1.5, 2.4)


def algorithm_1(counts: tuple[int, ...], noise: tuple[int, ...], tau: Fraction) -> tuple[Fraction, ...]:
    """Lines 3 to 19 for one cluster, as they are printed."""
    n = sum(counts)
    q = [max(tau, min(Fraction(1), Fraction(count + z, n))) for count, z in zip(counts, noise, strict=True)]
    gap = 1 - sum(q)
    xi = [each - tau if gap < 0 else 1 - each for each in q]
    return tuple(each + x / sum(xi) * gap for each, x in zip(q, xi, strict=True))


def brute(k: int, others: tuple[int, ...], label: int, tau: Fraction, sigma: int, lam: Fraction) -> Any:
    """The law of (q~, the victim's label as released); noise of n steps and more is as good as n: q is tau or 1."""
    decay, n = math.exp(-1 / sigma), sum(others) + 1
    chance = {z: (1 - decay) / (1 + decay) * decay ** abs(z) for z in range(-n, n + 1)}
    chance[n] = chance[-n] = decay**n / (1 + decay)
    counts = tuple(count + (i == label) for i, count in enumerate(others))
    law: dict[Any, float] = {}
    for noise in itertools.product(chance, repeat=k):
        p = math.prod(chance[z] for z in noise)
        q = algorithm_1(counts, noise, tau)
        for y, share in enumerate(q):
            law[q, y] = law.get((q, y), 0.0) + p * float(lam * share + (1 - lam) * (y == label))
    return law


@pytest.mark.parametrize(
    ("k", "others", "tau", "lam"),
    [
        (2, (1, 1), Fraction(1, 3), Fraction(1, 2)),
        (2, (0, 2), Fraction(1, 6), Fraction(9, 10)),
        (2, (2, 1), Fraction(1, 4), Fraction(1)),
        (3, (1, 0, 0), Fraction(1, 6), Fraction(1, 2)),
    ],
)
def test_the_listed_law_is_algorithm_1_as_printed(
    k: int, others: tuple[int, ...], tau: Any, lam: Any
) -> None:
    protocol = given(tau=tau, sigma=1, lam=lam, labels=k)
    size = sum(others) + 1
    assert protocol.steps(size) == (size * k, tau * size * k), "tau is a whole number of steps here"
    first, second = (brute(k, others, label, tau, 1, lam) for label in (0, 1))
    found = listed(protocol, size, 0, others[1] if sum(others[:2]) == size - 1 else None)
    assert found is not None
    assert len(found.p) == 1
    for at in EPSILONS:
        up = sum(max(0.0, second[key] - math.exp(at) * first[key]) for key in first)
        down = sum(max(0.0, first[key] - math.exp(at) * second[key]) for key in first)
        assert [each.value for each in found.directions(at)] == pytest.approx([up, down], abs=1e-12)


def test_the_worst_of_all_compositions_is_searched_and_labels_are_treated_alike() -> None:
    protocol = given(tau=0.25, sigma=1, lam=0.5, labels=3)
    found = listed(protocol, 3, 0, None)
    assert found is not None
    assert len(found.p) == 6  # two others with three labels
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(3), 2):
        counts = np.bincount(others, minlength=3)
        for one, other in itertools.permutations(range(3), 2):
            p, q = (
                views(protocol, 3).table(tuple(counts + np.eye(3, dtype=int)[label]), label)
                for label in (one, other)
            )
            worst = max(worst, float(np.maximum(p - math.exp(0.5) * q, 0).sum()))
    assert found.delta(0.5).value == pytest.approx(worst, rel=1e-12)


NOISE = {0: Fraction(3, 4), 1: Fraction(1, 4)}


def test_what_is_enumerated_is_what_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise of two values in the place of the endless one, in the program and in the law."""

    def laplace(draw: TapeDraw, name: str, _scale: Any, *, each: PerMessage) -> Any:
        values = [list(NOISE)[draw.tape.choose(list(NOISE.values()))] for _ in range(len(each))]
        return PerMessage(np.array(values), each.layout)

    def cut(_decay: Any, ends: list[int], at: int) -> list[float]:
        where = [min(max(at + z, ends[0]), ends[-1] + 1) for z in NOISE]
        table = dict.fromkeys([*ends, ends[-1] + 1], 0.0)
        for value, chance in zip(where, NOISE.values(), strict=True):
            table[value] += float(chance)
        return list(table.values())

    monkeypatch.setattr(TapeDraw, "laplace", laplace)
    monkeypatch.setattr(view_pmf, "_cut", cut)
    protocol = given(tau=0.25, sigma=Fraction(1, 2), lam=0.5)
    views.cache_clear()
    try:
        people = Population.from_arrays(y=[False, True])
        found, law = privacy.enumerate_view(protocol, people, view="learner"), listed(protocol, 2, 0, 1)
        assert law is not None
        for at in EPSILONS:
            assert found.delta(at) == pytest.approx(law.delta(at).value, abs=1e-12)
    finally:
        views.cache_clear()


@pytest.mark.parametrize("labels", [2, 3])
def test_uniform_response_is_enumerated(labels: int) -> None:
    protocol = ClusterResponse(1.0, labels, "uniform")
    y = np.array([0, 1], np.uint8)
    people = Population.from_arrays(y=y if labels > 2 else y > 0)
    found, law = privacy.enumerate_view(protocol, people), privacy.profile(protocol, cluster_size=2)
    assert law.basis == "exact"
    for at in EPSILONS:
        assert found.delta(at) == pytest.approx(law.delta(at), abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "size"),
    [
        (CLAIMED, 10),
        (given(tau=0.4, sigma=1, lam=0.5, grid=8), 4),
        (given(tau=0.1, sigma=2, lam=1), 5),
        (given(tau=0.2, sigma=3, lam=0.7, labels=4), 3),
        (ClusterResponse(1.0), 40),
        (ClusterResponse(0.3, 3, noise_share=0.2), 6),
    ],
)
def test_what_is_listed_is_never_more_than_the_corrected_theorem(protocol: Any, size: int) -> None:
    exact, most = listed(protocol, size, 0, None), bound(protocol)
    assert exact is not None
    tau, sigma, lam, _ = protocol.settings()
    theorem = theorem1_corrected(float(sigma), float(lam), float(tau)).epsilon
    assert exact.pure() <= most.pure() * (1 + 1e-12)
    assert most.pure() == pytest.approx(theorem, rel=1e-12) == pytest.approx(protocol.epsilon, rel=1e-12)
    for at in EPSILONS:
        for one, other in zip(exact.directions(at), most.directions(at), strict=True):
            assert one.lower <= other.upper + 1e-15


def test_the_printed_theorem_is_wrong_and_the_corrected_one_nearly_tight() -> None:
    printed, corrected = (
        theorem(1.0, 0.5, 0.3).epsilon for theorem in (theorem1_printed, theorem1_corrected)
    )
    exact = listed(CLAIMED, 10, 0, None)
    assert exact is not None
    assert printed < 2.47 < 3.44 < exact.pure() <= corrected < 3.467


def test_worlds_of_the_claimed_setting_follow_the_table_and_violate_the_printed_theorem() -> None:
    """K = 3, counts (4, 2, 4) against (3, 3, 4); a false alarm in 1e6 runs of the test of frequencies."""
    from scipy.stats import beta, chi2

    worlds, found, printed = 60_000, views(CLAIMED, 10), theorem1_printed(1.0, 0.5, 0.3).epsilon
    row = [
        np.array([*[0] * 4, *[1] * 2, *[2] * 4], np.uint8),
        np.array([1, *[0] * 3, *[1] * 2, *[2] * 4], np.uint8),
    ]
    tables = [found.table((4, 2, 4), 0), found.table((3, 3, 4), 1)]
    ratio = tables[1] / tables[0]
    event = ratio > math.exp(printed + 0.5)  # chosen by the tables, before anything is counted
    seen = []
    for label in (0, 1):
        people = Population.from_arrays(
            y=np.tile(row[label], worlds), cluster=np.repeat(np.arange(worlds), 10)
        )
        columns = p2p_sim.run(CLAIMED, people, seed=label, digest=False).outputs["learner"]
        place = {tuple(each): i for i, each in enumerate(found.weights.tolist())}
        number = np.array([place[tuple(each)] for each in columns["weights"].tolist()])
        counts = np.bincount(number * 3 + columns["y"][::10], minlength=tables[label].size)
        expected = worlds * tables[label].ravel()
        common = expected >= 10
        off = ((counts - expected)[common] ** 2 / expected[common]).sum()
        assert off < chi2.isf(1e-6, common.sum())
        seen.append(int(counts[event.ravel()].sum()))
    low = beta.ppf(1e-3, seen[1], worlds - seen[1] + 1)
    high = beta.isf(1e-3, seen[0] + 1, worlds - seen[0])
    assert math.log(low / high) > printed


def test_an_audit_finds_by_itself_that_the_printed_theorem_is_wrong() -> None:
    protocol = given(tau=0.4, sigma=1, lam=0.5, grid=8)
    audit = privacy.audit(protocol, cluster_size=4, delta=0.0, trials=20_000, confidence=0.999, seed=1)
    verdicts = {claim.name: claim.verdict for claim in audit.claims}
    assert verdicts == {
        "exact": "consistent", "Theorem 1, corrected": "consistent", "Theorem 1, as printed": "violated",
    }  # fmt: skip
    assert audit.statistic == "exact likelihood ratio"
    assert audit.law is not None
    assert not audit.law.rejected
    assert theorem1_printed(1.0, 0.5, 0.4).epsilon < audit.lower <= (audit.exact or 0.0)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("view", ["learner", "learner+user"])
def test_audits_agree_with_the_law(labels: int, view: str) -> None:
    protocol = ClusterResponse(2.0, labels, phi=0.2, noise_share=0.5)
    audit = privacy.audit(protocol, view, cluster_size=5, delta=0.01, trials=20_000, seed=3, pair=(0, 1))
    assert (audit.verdict, audit.failed) == ("consistent", False)
    assert audit.lower > 0.5 * (audit.exact or 0.0)


class HalfNoise(ClusterResponse):
    """A curator who adds half of the noise."""

    def resampling(self, counts: Any, noise: Any) -> Any:
        return super().resampling(counts, noise // 2)


class Truthful(ClusterResponse):
    """A curator who never replaces label 1."""

    def curator(self, me: Any) -> Any:
        steps = super().curator(me)
        reports = yield next(steps)
        told, released = steps.send(reports)
        y = reports.y.data
        kept = np.where(y == 1, 1, released.fields["y"].data)
        yield told, self.released(**(released.fields | {"y": me.each(kept.astype(np.uint8))}))


@pytest.mark.parametrize("kind", [HalfNoise, Truthful])
def test_twins_with_a_fault_are_found(kind: Any) -> None:
    own = tuple(given(tau=0.4, sigma=1, lam=0.5, grid=8).settings())
    epsilon = given(tau=0.4, sigma=1, lam=0.5, grid=8).epsilon
    twin, honest = (each(epsilon, 2, "given", grid=8, own=own) for each in (kind, ClusterResponse))
    audit = privacy.audit(twin, cluster_size=4, delta=0.01, trials=20_000, seed=5, against=honest)
    assert audit.failed


def test_views_that_see_labels_and_views_that_see_nothing() -> None:
    protocol = ClusterResponse(1.0, 3)
    for view, channels in (("curator", "encrypted"), ("wire", "plain"), ("curator+learner", "encrypted")):
        assert privacy.profile(protocol, view, channels=channels).epsilon(0.5) == math.inf
    for view, channels in (("user", "plain"), ("wire", "encrypted"), ("2*user", "plain")):
        assert privacy.profile(protocol, view, channels=channels, cluster_size=9).delta(0.0) == 0.0
    with pytest.raises(InputError, match="2 users beside the victim"):
        privacy.profile(protocol, "learner+3*user", cluster_size=3)


def test_a_label_that_is_never_replaced_has_no_guarantee() -> None:
    told = privacy.profile(given(tau=0.2, sigma=1, lam=0), cluster_size=5)
    assert (told.basis, told.epsilon(0.9)) == ("exact", math.inf)
    claims = privacy.audit(given(tau=0.2, sigma=1, lam=0), cluster_size=4, delta=0.1, trials=500).claims
    assert [claim.verdict for claim in claims[1:]] == ["not applicable"] * 2


def test_faults_leave_the_bound_and_never_the_list() -> None:
    """Who else is there is left to chance under faults, and so is n of a cluster."""
    protocol = ClusterResponse(1.0)
    told = privacy.profile(protocol, cluster_size=5, faults=["loss=0.25"])
    assert told.basis == "upper"
    whole = bound(protocol)
    assert isinstance(whole, Atoms)
    assert told.delta(0.2) == pytest.approx(0.75 * whole.delta(0.2).value)


def test_a_bound_that_is_the_same_for_all_clusters_is_told_as_an_upper_one() -> None:
    """A report in a hurry looks at few sizes for colluders, and called the figure of these a lower one."""
    people = Population.from_arrays(
        y=np.zeros(5000, np.uint8), cluster=np.repeat([0, 1, 2], [1000, 1500, 2500])
    )
    names = ("learner", "learner+user")
    request = AccountRequest(ClusterResponse(1.0, 10), 1e-6, population=people, quick=True, only=names)
    found = {row["name"]: row["exact"] for row in table_of(request, lambda *_: [], None)["views"]}
    assert found["learner+user"]["basis"] == found["learner"]["basis"] == "upper"
    assert found["learner+user"]["upper"] == found["learner"]["upper"]


def test_who_deviates_may_change_n_so_that_nothing_is_listed() -> None:
    """A colluder who stays away leaves n = 3, where more is seen than with n = 4."""
    protocol = given(tau=0.3, sigma=1, lam=0.5)
    curious = privacy.profile(protocol, "learner+user", cluster_size=4)
    without = privacy.profile(protocol, cluster_size=3)
    told = privacy.profile(protocol, "learner+user", cluster_size=4, users="deviating")
    assert (curious.basis, told.basis) == ("exact", "upper")
    assert told.delta(0.0) >= without.delta(0.0) * (1 - 1e-14) > curious.delta(0.0)


def test_of_several_labels_one_composition_says_of_which_two_it_is() -> None:
    protocol = given(tau=0.1, sigma=1, lam=0.5, labels=3)
    told = privacy.profile(protocol, cluster_size=4, composition=0)
    assert "her label and the others' are 0 or 1" in told.assumes
    people = Population.from_arrays(y=np.array([2, 2, 2, 0], np.uint8), cluster=np.zeros(4, int))
    real = privacy.profile(protocol, population=people, composition="population")
    assert (real.basis, "counts two labels, the protocol has 3" in real.why) == ("refused", True)


@pytest.mark.parametrize("phi", [1e-16, 1e-30, 1e-300, 0.02, 0.3])
def test_theorems_are_right_where_lambda_is_1_as_a_float(phi: float) -> None:
    """Corollary 2 splits 1.5 into 2/sigma = 1 and ln(1 + (1 - lambda)/(lambda tau)) = 0.5, whatever phi is."""
    protocol = ClusterResponse(1.5, 10, phi=phi)
    corrected, printed = [promise["epsilon"] for promise in room.theorems(protocol, "learner", [10], 1e-6)]
    assert corrected == pytest.approx(1.5, rel=1e-12)
    assert printed == pytest.approx(1.0, rel=1e-12)


def test_a_fraction_near_1_is_not_1() -> None:
    share = 1 - Fraction(1, 10**400)  # what is kept is no float
    assert theorem1_corrected(math.inf, share, 1e-300).epsilon == pytest.approx(1e-100, rel=1e-9)
    assert theorem1_corrected(math.inf, Fraction(1), 0.1).epsilon == 0.0
    assert theorem1_corrected(math.inf, np.float32(0.5), 0.5).epsilon == pytest.approx(math.log(3))


def test_what_rounding_of_floats_adds_is_not_printed() -> None:
    """Epsilon 1 in all, at delta 0, is 1 as printed; it said 1.001, for 1 + 3e-15."""
    profile = privacy.profile(ClusterResponse(1.0), cluster_size=100)
    assert 0 <= profile.epsilon_bracket(0.0).upper - 1 < 1e-12
    assert figure_text.bracket_text(figure_text.figure(profile, 0.0)) == "1"
    assert [figure_text.bound_text(epsilon, "upper") for epsilon in (1 + 1e-10, 1.0004, 2.0)] == [
        "1.001",
        "1.001",
        "2",
    ]
    assert (up(1 + 3e-15), up(1 + 1e-10), down(1 - 3e-15), down(1 - 1e-10)) == (
        "1", "1.001", "1", "0.9999",
    )  # fmt: skip


def test_the_estimate_of_phi_counts_in_every_figure() -> None:
    """Epsilon is the total, of the law and of Theorem 1 as corrected; as printed half of the noise is missing."""
    protocol = ClusterResponse(2.0, 10, phi_share=0.2)
    found = privacy.profile(protocol, cluster_size=50)
    assert found.basis == "upper"
    assert found.epsilon(0.0) == pytest.approx(2.0, rel=1e-12)
    assert "after an estimate of phi from the same labels, for 0.4 of ε" in found.source
    corrected, printed = [promise["epsilon"] for promise in room.theorems(protocol, "learner", [50], 1e-6)]
    assert corrected == pytest.approx(2.0, rel=1e-12)
    assert printed == pytest.approx(2.0 - 1.6 / 3, rel=1e-12)
    assert privacy.profile(protocol, "user", cluster_size=50).epsilon(0.0) == 0
    for more in ({}, {"statistic": "classifier"}, {"faults": ["drop=0.1"]}):
        with pytest.raises(
            InputError,
            match=r"'learner': .* audit what follows, with the rest of epsilon and a phi that is given",
        ):
            privacy.audit(protocol, epsilon=1.0, cluster_size=4, trials=1000, seed=1, **more)  # type: ignore[arg-type]

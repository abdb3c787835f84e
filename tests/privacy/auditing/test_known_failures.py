"""Failures that other auditing tools had in public, one test each, at the level of the whole audit."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import backends, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing import classifier, confidence_bounds, evidence, worlds
from p2p_sim.privacy.auditing.audit import statistic_of
from p2p_sim.privacy.auditing.evidence import Evidence
from p2p_sim.privacy.auditing.measure import measured
from p2p_sim.privacy.auditing.worlds import Situation, batch_seed, batches
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import OneSided

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-9
LEARNER = Coalition.parse("learner", ("user", "learner"))


def null_scores(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(2, 5000))


def test_scores_that_tell_nothing_give_0_in_both_directions() -> None:
    """Reported: the reverse direction was |score|, and null scores gave 3.5."""
    cuts, found, wrong = np.array([0.0, 1.0, 2.0]), 0, 0
    for seed in range(20):
        a, b = null_scores(seed)
        found += measured("delta", 0.0, Evidence((a, b), "", {}, cuts, -cuts), 0.95, None).lower > 0
        wrong += measured("delta", 0.0, Evidence((a, np.abs(b)), "", {}, cuts, -cuts), 0.95, None).lower > 0
    assert found <= stats.binom.isf(FALSE_ALARM, 20, 0.05) < wrong
    a, b = null_scores(20) + np.array(
        [[5.0], [-5.0]]
    )  # a score that speaks for the wrong world speaks for none
    assert measured("delta", 0.0, Evidence((a, b), "", {}, cuts, -cuts), 0.95, None).lower == 0


@pytest.mark.parametrize(
    ("protocol", "view"),
    [(RandomizedResponse(math.inf), "learner"), (PeerToPeer(0.0), "9*user"), (PeerToPeer(0.0), "wire")],
)
def test_a_perfect_attack_has_a_finite_bound_set_by_the_trials(protocol: Any, view: str) -> None:
    bounds = []
    for trials in (200, 2000, 20_000):
        audit = privacy.audit(protocol, view, cluster_size=10, delta=0.0, trials=trials, statistic="exact")
        assert audit.exact == math.inf
        assert 0 < audit.lower <= audit.cap < math.inf
        assert audit.cap == confidence_bounds.cap_epsilon(trials, 0.0, 1, 0.95)
        assert view != "learner" or audit.lower == pytest.approx(audit.cap, rel=1e-9)
        assert (audit.verdict, audit.needed) == ("consistent", None), "nobody can contradict infinity"
        bounds.append(audit.lower)
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("kind", ["delta", "epsilon"])
@pytest.mark.parametrize("learned", [True, False])
def test_swapping_the_worlds_changes_nothing(kind: str, learned: bool) -> None:
    protocol = PeerToPeer(0.1, 0.5)
    law = privacy.profile(
        protocol, cluster_size=5, composition=2
    ).law  # two of four: the same from both sides
    generator = np.random.default_rng(3)
    values = [-1.2, -0.4, 0.0, 0.4, 1.2]
    a = generator.choice(values, 4000, p=[0.5, 0.2, 0.2, 0.05, 0.05])
    b = generator.choice(values, 4000, p=[0.05, 0.25, 0.1, 0.3, 0.3])
    cuts = (np.array([0.4, 1.0]), np.array([-1.2, 0.0])) if learned else (None, None)
    mirrored = (-cuts[1], -cuts[0]) if learned else cuts  # type: ignore[operator]
    at = 0.02 if kind == "delta" else 0.3
    first = measured(kind, at, Evidence((a, b), "", {}, *cuts), 0.9, law)
    second = measured(kind, at, Evidence((-b, -a), "", {}, *mirrored), 0.9, law)
    assert first.lower == second.lower > 0
    assert (first.cap, first.events) == (second.cap, second.events)


def test_the_direction_that_leaks_is_found_whichever_it_is() -> None:
    """Users of one label alone always tell the truth: one direction is 0 or small, the other infinite."""
    for label in (0, 1):
        audit = privacy.audit(
            OneSided(0.25, label), against=RandomizedResponse.flipping(0.25), delta=0.0, trials=5000
        )
        assert audit.verdict == "violated"
        assert audit.lower > 5


def test_no_two_batches_of_any_audits_share_a_stream() -> None:
    """Reported: seeds of workers were seed + rank, so that adjacent seeds overlapped."""
    seeds = [batch_seed(seed, number) for seed, number in itertools.product(range(300), range(30))]
    assert len(set(seeds)) == len(seeds)
    gaps = np.diff(np.sort(np.array(seeds, np.uint64)))
    assert int(gaps.min()) > 1000, "neighbours among 9,000 of 2^64 are some 10^8 times farther apart"


def flips(seed: int, trials: int) -> Any:
    """Which victims of randomized response lied, by label, batch by batch."""
    situation = Situation(RandomizedResponse.flipping(0.25), LEARNER, 1, 0)
    stat = statistic_of(situation.protocol, LEARNER, size=1, composition=0)
    assert stat is not None
    for seen in batches(situation, trials, seed, backends.Settings("local")):
        y = stat.read(seen)["y"]
        yield y[~seen.ones] != 0, y[seen.ones] != 1


def test_both_labels_batches_and_seeds_have_randomness_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two independent columns of lies agree in 5/8 of their rows; with a shared stream they would in all."""
    monkeypatch.setattr(worlds, "_BATCH", 40_000)
    columns = [part for seed in (0, 1) for batch in flips(seed, 40_000) for part in batch]
    assert len(columns) == 8
    for one, other in itertools.combinations(columns, 2):
        rows = min(len(one), len(other))
        agree = int((one[:rows] == other[:rows]).sum())
        low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], rows, 0.625)
        assert low <= agree <= high
    assert not low <= int((columns[0] == columns[0]).sum()) <= high, "the check can fail"


def test_the_same_audit_twice_is_the_same_and_another_seed_is_another() -> None:
    audits = [
        privacy.audit(PeerToPeer(0.1), cluster_size=6, delta=0.0, trials=2000, seed=seed)
        for seed in (5, 5, 6)
    ]
    assert audits[0] == audits[1]
    assert audits[0].lower != audits[2].lower


def learned_then_spoiled(monkeypatch: pytest.MonkeyPatch, *, spoil: bool) -> tuple[privacy.Audit, list[Any]]:
    """An audit by a classifier, in small batches, whose counted worlds alone are set to nothing if ``spoil``."""
    chosen: list[Any] = []
    whole, choose = worlds.batches, classifier.thresholds

    def spoiled(situation: Any, trials: int, seed: int, settings: Any, **asked: Any) -> Any:
        for seen in whole(situation, trials, seed, settings, **asked):
            if spoil and seed == 0:  # that of the audit, which the worlds that are learned from do not have
                reports = seen.kinds["report"]
                reports.fields["y"] = np.zeros_like(reports.fields["y"])
            yield seen

    def noted(*scores: Any) -> Any:
        chosen.append((len(scores[0]), *choose(*scores)))
        return chosen[-1][1:]

    monkeypatch.setattr(worlds, "_BATCH", 4000)
    monkeypatch.setattr(evidence, "batches", spoiled)
    monkeypatch.setattr(classifier, "thresholds", noted)
    audit = privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=8000, statistic="classifier")
    monkeypatch.undo()
    return audit, chosen


def test_thresholds_are_not_chosen_on_the_trials_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, first = learned_then_spoiled(monkeypatch, spoil=False)
    spoiled, second = learned_then_spoiled(monkeypatch, spoil=True)
    assert len(first) == len(second) == 1
    assert first[0][0] == second[0][0] == 4000 == honest.trials, "half to learn from, half to count"
    assert all(np.array_equal(a, b) for a, b in zip(first[0][1:], second[0][1:], strict=True))
    assert honest.lower > 0.7
    assert spoiled.lower == 0, "what is counted decides"


def test_a_maximum_over_events_is_paid_for() -> None:
    """The cap, which knows how many events share the error, falls with their number."""
    trials = 2000
    exact = {"cluster_size": 6, "trials": trials, "statistic": "exact"}
    one = privacy.audit(PeerToPeer(0.1), delta=0.0, **exact)
    many = privacy.audit(PeerToPeer(0.1), delta=1e-9, **exact)
    assert len(many.points) == 5
    assert one.cap == confidence_bounds.cap_epsilon(trials, 0.0, 1, 0.95)
    assert many.cap == confidence_bounds.cap_epsilon(trials, 1e-9, 6, 0.95) < one.cap
    learned = privacy.audit(RandomizedResponse(1.0, 8), delta=0.0, trials=trials, statistic="classifier")
    assert learned.cap < confidence_bounds.cap_epsilon(trials // 2, 0.0, 1, 0.95)


def test_a_silenced_warning_hides_no_violation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=5000, claims={"too good": 0.1})
    assert audit.failed
    assert audit.why.endswith("too good claims 0.1")

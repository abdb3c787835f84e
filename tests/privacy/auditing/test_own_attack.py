"""Attacks of one's own: good ones find what is wrong, and no attack, however silly, makes a bound too large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import InputError, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core import random_words
from p2p_sim.privacy import registry
from p2p_sim.privacy.auditing import own_attack
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.seen import reports
from tests.privacy.auditing.twins import Peers, Shuffled

CONFIDENCE = 1 - 1e-9
HONEST = PeerToPeer(0.1, 0.5)


def ones_among_reports(seen: privacy.Seen) -> Any:
    """Attack Algorithm 2 by the ones among the reports of a world, less the zeros: a whole number of few values."""
    sent = seen.kinds["report"]
    return np.bincount(seen.world_of(sent), 2.0 * sent.fields["y"] - 1, seen.worlds)


def answer(seen: privacy.Seen) -> Any:
    return seen.kinds["report"].fields["y"]


def first_of_the_mixed(seen: privacy.Seen) -> Any:
    """Attack a shuffler: what came out first."""
    mixed = seen.kinds["mixed"]
    worlds = seen.world_of(mixed)
    out = np.zeros(seen.worlds, np.int64)
    out[worlds[::-1]] = mixed.fields["y"][::-1]
    return out


def test_a_good_attack_finds_a_shuffler_that_keeps_the_order_and_accuses_no_honest_one() -> None:
    def audited(*, keeps_order: bool) -> privacy.Audit:
        return privacy.audit(
            Shuffled(10, 0.25, keeps_order), cluster_size=10, delta=0.0, trials=4000, confidence=CONFIDENCE,
            statistic=first_of_the_mixed, against=privacy.shuffled_response(10, math.log(3)),
            claims={"shuffled": 0.3},
        )  # fmt: skip

    broken, honest = audited(keeps_order=True), audited(keeps_order=False)
    assert broken.failed
    assert 0.5 < broken.lower <= math.log(3)
    assert "first_of_the_mixed" in broken.statistic
    assert honest.lower < 0.3
    assert not honest.failed


def test_a_program_with_less_noise_than_it_claims_is_found_by_counting_its_reports() -> None:
    audit = privacy.audit(
        Peers(alpha=0.02), cluster_size=8, epsilon=0.5, trials=20_000, confidence=CONFIDENCE,
        statistic=ones_among_reports, against=PeerToPeer(0.2, 0.5),
    )  # fmt: skip
    assert audit.verdict == "violated"


@pytest.mark.parametrize("turn", [1, -1, 0.37, -0.37])
def test_an_attack_may_be_wrong_way_round_and_of_any_scale(turn: float) -> None:
    found = privacy.audit(
        RandomizedResponse(1.0), delta=0.0, trials=4000, confidence=0.95,
        statistic=lambda seen: turn * answer(seen).astype(float),
    )  # fmt: skip
    assert 0.7 < found.lower <= 1.0


def test_names_of_cases_need_no_order() -> None:
    """Labels 0 to 3 as cases that are no ladder: the second label is the smallest number."""
    names = np.array([5, -2, 9, 7])
    found = privacy.audit(
        RandomizedResponse(2.0, 4), delta=0.0, trials=4000, pair=(0, 1),
        statistic=lambda seen: names[answer(seen)],
    )  # fmt: skip
    assert 1.5 < found.lower <= 2.0


def noise(seen: privacy.Seen, worlds: Any) -> Any:
    words = random_words.words(5, random_words.stream("audit", "silly", 0), 0, len(worlds))
    return words.astype(np.float64)


SILLY: dict[str, Any] = {
    "constant": lambda seen: np.zeros(seen.worlds),
    "number of the world": lambda seen: np.arange(seen.worlds),
    "random": lambda seen: noise(seen, np.arange(seen.worlds)),
    "infinite": lambda seen: np.where(answer(seen) == 1, np.inf, -np.inf),
    "answer and random": lambda seen: noise(seen, np.arange(seen.worlds)) * (1 + answer(seen)),
    "answer and world": lambda seen: 2 * (np.arange(seen.worlds) % 20) + answer(seen),
}
SEEDS = 20
MOST = int(stats.binom.isf(1e-9 / len(SILLY), SEEDS, 0.05))
"""Bounds above the truth in audits of which each has at most 5 in 100: more have a chance of 1e-9 in all cases."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SILLY)
def test_no_attack_measures_more_than_there_is(name: str) -> None:
    above = sum(
        privacy.audit(
            RandomizedResponse(0.5), delta=0.0, trials=400, confidence=0.95, seed=seed, statistic=SILLY[name]
        ).lower
        > 0.5
        for seed in range(SEEDS)
    )
    assert above <= MOST


def test_events_chosen_on_the_worlds_that_are_counted_would_measure_too_much() -> None:
    """The broken twin: 60 cases without any meaning, of which the luckiest are counted where they were chosen."""
    free = paid = 0
    for seed in range(SEEDS):
        first, second = np.random.default_rng(seed).integers(0, 60, (2, 400)).astype(float)
        read, above, below = own_attack.chosen(first[:200], second[:200], ("delta", 0.0))
        free += bound(read, above, below, first[:200], second[:200]) > 0
        paid += bound(read, above, below, first[200:], second[200:]) > 0
    assert paid <= MOST < free


def bound(read: Any, above: Any, below: Any, first: Any, second: Any) -> float:
    hits = own_attack.confidence_bounds.count(read(first), read(second), above, below)
    return own_attack.confidence_bounds.epsilon_lower(hits, 0.0, 0.95).value


def test_the_labels_are_not_shown_to_an_attack() -> None:
    def cheat(seen: privacy.Seen) -> Any:
        assert seen.ones is None
        assert seen.which is None
        return answer(seen)

    assert privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=500, statistic=cheat).lower <= 1


def seldom(seen: privacy.Seen) -> Any:
    seldom.times += 1  # type: ignore[attr-defined]
    return np.full(seen.worlds, seldom.times)  # type: ignore[attr-defined]


seldom.times = 0  # type: ignore[attr-defined]

WRONG: list[tuple[Any, str]] = [
    (lambda seen: np.zeros(3), r"returns an array of shape \(3,\); needed: one number for each of the 800"),
    (lambda seen: 0.0, r"returns an array of shape \(\)"),
    (lambda seen: np.zeros((seen.worlds, 2)), r"of shape \(800, 2\)"),
    (lambda seen: np.full(seen.worlds, "a"), "values of type <U1; needed: bool, integers or floats"),
    (lambda seen: np.full(seen.worlds, 1j), "values of type complex128"),
    (lambda seen: np.where(np.arange(seen.worlds) == 7, np.nan, 0), r"gives world 7 no number \(NaN\)"),
    (lambda seen: answer(seen) - answer(seen).mean(), "a number must follow from its own world alone"),
    (lambda seen: np.argsort(answer(seen), kind="stable"), "a number must follow from its own world alone"),
    (seldom, "gives world 0 the number 1 among 800 worlds and 2 among the first 266"),
]


@pytest.mark.parametrize(("attack", "text"), WRONG, ids=range(len(WRONG)))
def test_what_is_no_attack_is_named(attack: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=400, statistic=attack)


def test_too_few_trials_count_the_half_that_is_learned_from() -> None:
    with pytest.raises(InputError, match="trials = 9: too few"):
        privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=9, statistic=answer)


def test_a_world_alone_is_seen_as_among_others() -> None:
    bits = np.random.default_rng(1).random((12, 3)) < 0.5
    seen = reports(bits)
    assert own_attack.values(ones_among_reports, seen).tolist() == (2 * bits.sum(1) - 3).tolist()


class Registered(RandomizedResponse):
    """Randomized response, whose room knows an attack and no law."""


@pytest.fixture
def known_attack() -> Iterator[None]:
    def statistic(
        protocol: Registered, coalition: Coalition, size: int, composition: int, channels: str
    ) -> Any:
        assert (size, channels) == (1, "plain")
        return answer if coalition.servers else None

    privacy.register(Registered, privacy.Accounting(statistic=statistic))
    yield
    del registry._REGISTERED[Registered]


@pytest.mark.usefixtures("known_attack")
def test_a_registered_attack_looks_by_default_with_a_classifier_beside_it() -> None:
    audit = privacy.audit(Registered(1.0), delta=0.0, trials=1000, claims={"half": 0.5})
    assert [look.statistic.split()[0] for look in audit.looks] == ["own", "classifier"]
    assert sum(1 - look.confidence for look in audit.looks) == pytest.approx(0.05)
    assert audit.failed
    alone = privacy.audit(Registered(1.0), delta=0.0, trials=1000, statistic="classifier")
    assert len(alone.looks) == 1
    with pytest.raises(InputError, match="statistic = 'exact': no law"):
        privacy.audit(Registered(1.0), delta=0.0, trials=1000, statistic="exact")


def test_an_attack_looks_alone_and_the_audit_says_so() -> None:
    audit = privacy.audit(
        HONEST, "learner", cluster_size=4, epsilon=0.2, trials=400, statistic=ones_among_reports
    )
    assert len(audit.looks) == 1
    assert any("own attack does not look at" in each for each in audit.not_varied)
    again = privacy.audit(
        HONEST, "learner", cluster_size=4, epsilon=0.2, trials=400, statistic=ones_among_reports
    )
    assert again == audit

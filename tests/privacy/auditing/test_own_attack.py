"""Attacks of one's own: good ones find what is wrong, and no attack, however silly, makes a bound too large."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import InputError, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds, random_words
from p2p_sim.privacy import registry
from p2p_sim.privacy.auditing import own_attack, worlds
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


def noise(seen: privacy.Seen) -> Any:
    words = random_words.words(5, random_words.stream("audit", "silly", 0), 0, seen.worlds)
    return words.astype(np.float64)


def number_of_the_world(seen: privacy.Seen) -> Any:
    return np.arange(seen.worlds)


def number_in_small(seen: privacy.Seen) -> Any:
    return 1e-12 * np.arange(seen.worlds)


def id_of_the_victim(seen: privacy.Seen) -> Any:
    """The slip that is most natural: ids count through all worlds."""
    sent = seen.kinds["report"]
    victims, out = sent.sender % seen.size == 0, np.zeros(seen.worlds)
    out[seen.world_of(sent)[victims]] = sent.sender[victims]
    return out


def less_the_world_before(seen: privacy.Seen) -> Any:
    out = 4.0 * answer(seen)
    out[1:] -= 2.0 * answer(seen)[:-1]
    return out


SILLY: dict[str, Any] = {
    "constant": lambda seen: np.zeros(seen.worlds),
    "infinite": lambda seen: np.where(answer(seen) == 1, np.inf, -np.inf),
    "wrong way round": lambda seen: -0.5 * answer(seen),
    "number of the world": number_of_the_world,
    "id": id_of_the_victim,
    "random": noise,
    "answer and random": lambda seen: noise(seen) * (1 + answer(seen)),
    "answer and world": lambda seen: 2 * (np.arange(seen.worlds) % 20) + answer(seen),
}
"""Those from the fourth on tell places of worlds, and are refused; even if they were not, nothing would be wrong."""
SEEDS = 20
MOST = int(stats.binom.isf(1e-9 / len(SILLY), SEEDS, 0.05))
"""Bounds above the truth in audits of which each has at most 5 in 100: more have a chance of 1e-9 in all cases."""


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether a number follows from its own world."""

    def values(attack: Any, seen: privacy.Seen, *_seed: int) -> Any:
        return np.asarray(attack(seen), np.float64)

    monkeypatch.setattr(own_attack, "values", values)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
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


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("attack", [number_of_the_world, id_of_the_victim])
def test_places_of_worlds_tell_nothing_of_labels(attack: Any) -> None:
    """Where each label's worlds were halved by themselves, the number of a world was nearly always "violated"."""
    few = 10
    violated = sum(
        privacy.audit(
            RandomizedResponse(0.0), cluster_size=2, delta=0.0, trials=20_000, confidence=0.95, composition=0,
            seed=seed, statistic=attack,
        ).verdict
        == "violated"
        for seed in range(few)
    )  # fmt: skip
    assert violated <= int(stats.binom.isf(1e-9, few, 0.05))


@pytest.mark.usefixtures("unchecked")
def test_other_worlds_of_a_batch_tell_nothing_of_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every batch had as many worlds with each label, one of two told the label of the other."""
    monkeypatch.setattr(worlds, "_BATCH", 2)
    audit = privacy.audit(
        RandomizedResponse(2.0), delta=0.0, trials=1200, confidence=CONFIDENCE,
        statistic=lambda seen: 1.0 * answer(seen) - answer(seen)[::-1],
    )  # fmt: skip
    assert audit.lower <= 2


def test_hits_of_numbers_that_tell_places_are_no_more_spread_than_binomial_ones() -> None:
    """What docs/laws.md says of them, by going through all halves of six places."""
    draws = np.random.default_rng(3)
    for _ in range(20):
        shares, n = draws.random(6) ** 3, 3
        law = np.zeros(n + 1)
        for half in itertools.combinations(range(6), n):
            law += functools.reduce(np.convolve, [[1 - p, p] for p in shares[list(half)]]) / 20
        mean, hits = n * shares.mean(), np.arange(n + 1)
        binomial = stats.binom(n, shares.mean())
        many, few = hits >= mean + 1, hits <= mean - 1
        assert np.all(law[::-1].cumsum()[::-1][many] <= binomial.sf(hits - 1)[many] + 1e-12)
        assert np.all(law.cumsum()[few] <= binomial.cdf(hits)[few] + 1e-12)
        assert law @ (hits - mean) ** 2 <= binomial.var() + 1e-12


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


def changing(seen: privacy.Seen) -> Any:
    y = answer(seen)
    y[y == 0] = 2
    return y


def renaming(seen: privacy.Seen) -> Any:
    seen.worlds = 7  # type: ignore[misc]
    return answer(seen)


WRONG: list[tuple[Any, str]] = [
    (lambda seen: np.zeros(3), r"returns an array of shape \(3,\); needed: one number for each of the 400"),
    (lambda seen: 0.0, r"returns an array of shape \(\)"),
    (lambda seen: np.zeros((seen.worlds, 2)), r"of shape \(400, 2\)"),
    (lambda seen: np.full(seen.worlds, "a"), "values of type <U1; needed: bool, integers or floats"),
    (lambda seen: np.full(seen.worlds, 1j), "values of type complex128"),
    (lambda seen: np.where(np.arange(seen.worlds) == 7, np.nan, 0), r"gives world 7 no number \(NaN\)"),
    (lambda seen: answer(seen) - answer(seen).mean(), "a number must follow from its own world alone"),
    (lambda seen: np.argsort(answer(seen), kind="stable"), "a number must follow from its own world alone"),
    (seldom, "the number 1 among 400 worlds and 2 as world 0 among 133 of them in another order"),
    (number_of_the_world, "a number must follow from its own world alone"),
    (number_in_small, "a number must follow from its own world alone"),
    (id_of_the_victim, "take the place in the world"),
    (noise, "and be the same each time"),
    (less_the_world_before, "a number must follow from its own world alone"),
    (
        lambda seen: np.negative(ids := seen.kinds["report"].sender, out=ids),
        "it writes into what it is shown",
    ),
    (changing, r"it writes into what it is shown .*read-only.*change a copy"),
    (renaming, "it writes into what it is shown .*cannot assign to field"),
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


def test_a_value_error_of_the_attack_itself_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        privacy.audit(
            RandomizedResponse(1.0), delta=0.0, trials=400, statistic=lambda seen: float("none" * seen.worlds)
        )


def test_an_attack_that_takes_kinds_out_of_what_it_is_shown_takes_them_from_nobody() -> None:
    audit = privacy.audit(
        RandomizedResponse(1.0),
        delta=0.0,
        trials=400,
        statistic=lambda seen: seen.kinds.pop("report").fields["y"],
    )
    assert audit.lower <= 1


def test_an_attack_may_say_why_it_cannot_go_on() -> None:
    def unsure(seen: privacy.Seen) -> Any:
        raise InputError(f"{seen.size} users are too few")

    with pytest.raises(InputError, match="1 users are too few"):
        privacy.audit(RandomizedResponse(1.0), delta=0.0, trials=400, statistic=unsure)


@dataclass(frozen=True)
class Named(Protocol):
    """Randomized response, and who hands a report in names the next user of her cluster, and the cluster."""

    report = Message(
        "user",
        "learner",
        "hands in a label, and names",
        y=bool,
        next=np.int64,
        cluster=np.int32,
        some=np.int64,
    )

    def user(self, me: Party) -> Rounds:
        y = me.y ^ me.draw.bernoulli("flip", 0.3)
        yield self.report(y=y, next=me.id ^ 1, cluster=me.cluster.label, some=me.draw.below("some", 3))

    def learner(self, me: Party) -> Rounds:
        yield self.report.receive()


def test_what_counts_through_the_worlds_is_renumbered_as_in_a_run_of_them() -> None:
    """Attacks that read ids by the start of their world are right, and those that take them as they are, refused."""

    def audited(attack: Any) -> privacy.Audit:
        return privacy.audit(
            Named(), cluster_size=2, delta=0.0, trials=2000, statistic=attack, claims={"": 2.0}, composition=0
        )

    def lowest(seen: privacy.Seen, name: str) -> Any:
        sent = seen.kinds["report"]
        out = np.full(seen.worlds, 2**40)
        np.minimum.at(out, seen.world_of(sent), sent.fields[name].astype(np.int64))
        return out

    def by_place(seen: privacy.Seen) -> Any:
        sent = seen.kinds["report"]
        world = seen.world_of(sent)
        first = sent.fields["next"] - world * seen.size == 1
        assert np.array_equal(sent.fields["cluster"], world)
        assert np.array_equal(sent.fields["next"], sent.sender ^ 1)
        return np.bincount(world, first * (2 * sent.fields["y"] + 0.1 * sent.fields["some"]), seen.worlds)

    assert 0.5 < audited(by_place).lower <= math.log(7 / 3)
    for name in ("next", "cluster"):
        with pytest.raises(InputError, match="a number must follow from its own world alone"):
            audited(functools.partial(lowest, name=name))


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
    del registry.REGISTERED[Registered]


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

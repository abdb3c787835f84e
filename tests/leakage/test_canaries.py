"""Canaries that are planted before a run: what its model tells of their coins, and which epsilon that implies."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.random_words import uniform, words
from p2p_sim.leakage import one_run_epsilon
from p2p_sim.leakage.advantage import violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.dependence import bags_of
from p2p_sim.leakage.eta import synthetic
from p2p_sim.learning import experiment, planted_canaries
from p2p_sim.learning.training.metrics import Predicted
from protocols import LabelProportions, RandomizedResponse


@pytest.fixture(scope="module")
def found():
    """A run of little noise, whose tree learns by heart what was released."""
    return experiment.learn(
        RandomizedResponse(6.0), "breast-cancer", canaries=0.2, seed=3, model="decision-tree", trace="full"
    )


def row(found, name="canaries"):
    return next(each for each in found.rows if each.name == name)


def test_canaries_are_a_share_of_whom_a_coin_flips_half(found):
    run = found.run
    planted = planted_canaries.of_columns(run.canaries)
    plain = experiment.learn(RandomizedResponse(6.0), "breast-cancer", seed=3, model="none")
    assert len(planted.users) == round(0.2 * run.users)
    changed = np.flatnonzero(run.population.y != plain.run.population.y)
    assert (changed == planted.users[planted.flipped]).all()
    assert (planted.original_labels(run.population.y) == plain.run.population.y).all()
    assert 20 < planted.flipped.sum() < 71  # of 91 fair coins: 1e-7 at each end
    assert run.notes["canaries"] == {"users": 91, "flipped": int(planted.flipped.sum())}
    assert (
        f"91 of the users are canaries: a coin flipped the labels of {planted.flipped.sum()}"
        in found.comparison.note
    )
    assert found.comparison.accuracy_true > 0.85  # trained on the labels before the coins


def test_more_labels_are_flipped_to_any_other():
    people = Population.synthetic(users=3000, labels=4, seed=1)
    after, planted = planted_canaries.plant(people, 4, 1.0, 5)
    assert (planted.other != planted.label).all()
    assert (after.y[planted.flipped] == planted.other[planted.flipped]).all()
    assert (after.y[~planted.flipped] == people.y[~planted.flipped]).all()
    further = (planted.other - planted.label) % 4
    assert np.bincount(further, minlength=4)[1:].min() > 820  # of 1,000 each: 6 deviations


def test_the_models_of_the_run_are_attacked(found):
    table = attack(found.run, eta="prior")
    assert [each.name for each in table.rows[-2:]] == ["canaries", "canaries, corrected model"]
    told = row(table)
    assert told.utility.lower > 0.8
    assert 1 < told.epsilon.value < 6
    assert told.epsilon.coins == 91
    assert row(table, "canaries, corrected model").epsilon.value < told.epsilon.value
    (promise,) = [bound for bound in table.bounds if bound.quantity.startswith("epsilon")]
    assert promise.value == pytest.approx(6.0, abs=1e-5)
    assert violations(table) == []
    assert table.users == found.run.users - 91
    planted = planted_canaries.of_columns(found.run.canaries)
    assert not np.isin(planted.users, table.per_user.user).any()


def test_canaries_are_no_victims_of_an_attacker_of_ones_own(found):
    run, planted = found.run, planted_canaries.of_columns(found.run.canaries)

    def knows_all_but_the_coins(_knowledge):
        return planted.original_labels(run.population.y).astype(np.int64)

    own, *of_canaries = attack(run, eta="prior", attackers=["canaries", knows_all_but_the_coins]).rows
    assert (own.name, own.utility.value) == ("knows_all_but_the_coins", 1.0)
    assert [each.name for each in of_canaries] == ["canaries", "canaries, corrected model"]


def test_what_is_implied_beyond_the_promise_is_a_violation(found):
    table = attack(found.run, eta="prior", attackers=["canaries"])
    (promise,) = [bound for bound in table.bounds if bound.quantity.startswith("epsilon")]
    sure = row(table).epsilon.sure
    assert sure > 0
    for epsilon, wrong in ((sure + 0.01, 0), (sure - 0.01, 1)):
        claimed = replace(promise, value=epsilon, parameters={"sure": epsilon})
        assert len(violations(replace(table, bounds=(claimed,)))) == wrong
    assert "implied epsilon" in str(violations(replace(table, bounds=(claimed,)))[0])


def test_a_program_that_lies_less_than_its_law_says_is_found(found):
    """The broken twin: what was released at epsilon = 6 is held against the law of epsilon = 1/2."""
    claims = attack(found.run, eta="prior", attackers=["canaries"], protocol=RandomizedResponse(0.5))
    assert "implied epsilon" in " ".join(str(each) for each in violations(claims))


def test_the_delta_of_the_run_is_that_of_the_epsilon(found):
    run = replace(found.run, notes=found.run.notes | {"privacy": {"delta": 0.0}})
    table = attack(run, eta="prior", attackers=["canaries"])
    assert row(table).epsilon.delta == 0
    assert table.bounds[-1].value == pytest.approx(6.0, rel=1e-12)


@pytest.mark.parametrize("eta", ["knn", "model", "prior"])
def test_pure_noise_tells_no_coin(eta):
    """Nor does what the attacker thinks beforehand: it is estimated from the labels before the coins."""
    run = experiment.learn(
        RandomizedResponse(0.0), "breast-cancer", canaries=0.9, seed=8, model="gaussian-nb"
    ).run
    told = row(attack(run, eta=eta, attackers=["canaries"], confidence=1 - 1e-9))
    assert told.utility.lower < 0.5 < told.utility.upper
    assert told.epsilon.value == 0


def test_where_all_are_canaries_nobody_is_left():
    run = experiment.learn(RandomizedResponse(1.0), "breast-cancer", canaries=1.0, seed=8).run
    with pytest.raises(InputError, match="all users of the run look or are canaries"):
        attack(run, eta="prior")


def test_a_run_keeps_its_canaries(found, tmp_path):
    place = found.run.save(tmp_path / "mine")
    again = p2p_sim.load(place)
    assert again.canaries.keys() == found.run.canaries.keys()
    assert all((again.canaries[name] == column).all() for name, column in found.run.canaries.items())
    assert (place / "canaries.parquet").stat().st_mode & 0o077 == 0
    one, other = (attack(run, eta="prior", attackers=["canaries"]) for run in (found.run, again))
    assert one.rows == other.rows
    whole = (place / "canaries.parquet").read_bytes()
    (place / "canaries.parquet").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match=r"canaries.parquet.*is damaged"):
        p2p_sim.load(place)
    secret = experiment.learn(RandomizedResponse(6.0), "breast-cancer", canaries=0.2)
    bare = secret.run.save(tmp_path / "bare", population=False)
    assert not (bare / "canaries.parquet").exists()
    assert p2p_sim.load(bare).canaries == {}


def test_who_looks_is_no_canary_to_guess(found):
    user = int(found.run.canaries["user"][0])
    told = row(attack(found.run, f"learner+user:{user}", eta="prior", attackers=["canaries"]))
    assert told.epsilon.coins == 90
    (refused,) = attack(found.run, "user", eta="prior", attackers=["canaries"]).rows
    assert (refused.basis, "no learner" in refused.why) == ("refused", True)
    assert "canaries" not in [each.name for each in attack(found.run, "user", eta="prior").rows]


def test_a_run_without_a_model_says_so(found):
    bare = replace(
        found.run, canaries={k: v for k, v in found.run.canaries.items() if k not in planted_canaries.MODELS}
    )
    assert "trained no model" in row(attack(bare, eta="prior")).why


def test_bags_and_models_that_only_rank_or_decide():
    run = experiment.learn(LabelProportions(bag_size=4), "breast-cancer", canaries=0.1, seed=1).run
    assert run.canaries["released"].shape == (46, 2)
    ranks = experiment.learn(
        RandomizedResponse(6.0), "breast-cancer", canaries=0.1, seed=1, model="linear-svc"
    ).run
    assert np.allclose(ranks.canaries["released"].sum(axis=1), 1)
    decides = planted_canaries.confidences(Predicted(np.array([0, 2]), None), 3)
    assert decides.tolist() == [[1, 0, 0], [0, 0, 1]]
    scores = np.array([[1.0, 3.0], [0.0, -2.0]])
    chances = planted_canaries.confidences(Predicted(np.array([1, 0]), None, scores), 3)
    assert np.log(chances[:, 1] / chances[:, 0]) == pytest.approx([2, -2])
    assert (chances[:, 2] == 0).all()


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_bags_count_canaries_but_are_averaged_over_victims(share):
    """By enumeration of all labels of each bag: whoever is no canary, beside canaries of even chances."""
    run = experiment.simulate(
        LabelProportions(bag_size=3), 60, share=0.1, features=1, canaries=share, seed=2, trace="full"
    )
    planted = planted_canaries.of_columns(run.canaries)
    law = synthetic(run.population.x, [0.9, 0.1], 60).tossing(planted.users, planted.label, planted.other)
    ones, bags = law.rows[:, 1], bags_of(run.source, run.population)
    gained = [
        sum(gains_by_count(ones[bags == bags[user]], place(bags, user)))
        for user in np.setdiff1d(np.arange(60), planted.users)
    ]
    (bound,) = [
        each for each in attack(run, eta="true").bounds if each.source.endswith("Theorem 3.3, all bags")
    ]
    assert bound.value == pytest.approx(np.mean(gained), abs=1e-12)


def place(bags: np.ndarray, user: int) -> int:
    return int((bags[:user] == bags[user]).sum())


def gains_by_count(ones: np.ndarray, who: int) -> list[float]:
    """Return for each count of ones what the best guess of one label wins by it."""
    joint = np.zeros((len(ones) + 1, 2))
    for labels in itertools.product((0, 1), repeat=len(ones)):
        joint[sum(labels), labels[who]] += np.prod(np.where(labels, ones, 1 - ones))
    first = int(ones[who] > 0.5)
    return [max(each) - each[first] for each in joint]


def test_synthetic_users_have_canaries_too():
    run = experiment.simulate(RandomizedResponse(2.0), 2000, features=3, canaries=0.1, seed=4, trace="full")
    table = attack(run, eta="true")
    assert violations(table) == []
    assert row(table).epsilon.coins == 200


@pytest.mark.parametrize("share", [0, -0.1, 1.5, True, "half", float("nan")])
def test_shares_out_of_range(share):
    with pytest.raises(InputError, match=r"canaries = .*above 0 and at most 1"):
        experiment.learn(RandomizedResponse(1.0), "breast-cancer", canaries=share)


def test_canaries_need_a_model_and_two_users(found):
    with pytest.raises(InputError, match=r"canaries = 0.1: .*trains none"):
        experiment.learn(RandomizedResponse(1.0), "breast-cancer", canaries=0.1, model="none")
    with pytest.raises(InputError, match=r"canaries = 0.1: .*trains none"):
        experiment.simulate(RandomizedResponse(1.0), 100, canaries=0.1)
    with pytest.raises(InputError, match="that is 0, and at least 2 canaries"):
        experiment.learn(RandomizedResponse(1.0), "breast-cancer", canaries=1e-4)
    with pytest.raises(InputError, match=r"canaries = 0.1: .*canaries of its own"):
        attack(found.run, canaries=0.1)
    with pytest.raises(InputError, match=r"canaries = 2: must be a share"):
        attack(found.run, canaries=2)


def test_the_share_of_a_run_that_is_made_again():
    x = np.eye(60)
    people = Population.from_arrays(y=np.arange(60) % 2 == 0, x=x)
    run = p2p_sim.run(RandomizedResponse(20.0), people, seed=1, trace="full")
    (told,) = attack(run, eta="prior", attackers=["canaries"], canaries=0.5).rows
    assert told.epsilon.coins == 30
    assert told.utility.lower > 0.6


def tail(guesses: int, right: int, share: Fraction) -> Fraction:
    return sum(
        (
            Fraction(comb(guesses, k)) * share**k * (1 - share) ** (guesses - k)
            for k in range(right, guesses + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(("coins", "guesses", "right"), [(10, 10, 9), (12, 6, 6), (30, 20, 13), (5, 3, 0)])
@pytest.mark.parametrize("delta", [0, Fraction(1, 1000)])
def test_the_p_value_is_that_of_the_theorem(coins, guesses, right, delta):
    """By fractions, term by term: P(W >= v) + 2 m delta max_i P(v > W >= v - i) / i, for e^epsilon = 3."""
    share = Fraction(3, 4)
    tails = [tail(guesses, max(k, 0), share) for k in range(right + 1)]
    worst = max(((tails[right - i] - tails[right]) / i for i in range(1, right + 1)), default=Fraction(0))
    expected = min(Fraction(1), tails[right] + 2 * coins * delta * worst)
    value = one_run_epsilon.p_value(coins, guesses, right, float(np.log(3)), float(delta))
    assert value == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("coins", [2, 3, 6, 7])
def test_nobody_is_guessed_at_both_ends(coins, monkeypatch):
    asked = []
    monkeypatch.setattr(one_run_epsilon, "lower", lambda *at: asked.append(at) or 0.0)
    one_run_epsilon.of_scores(np.arange(coins) * 1.0, np.zeros(coins, bool), 0.0, 0.05)
    assert asked[0][:2] == (coins, 2 * (coins // 2))
    assert all(guesses <= coins for _, guesses, *_ in asked)


def test_the_lower_bound_inverts_the_p_value():
    low = one_run_epsilon.lower(100, 100, 90, 1e-6, 0.05)
    assert one_run_epsilon.p_value(100, 100, 90, low, 1e-6) == pytest.approx(0.05, abs=1e-5)
    assert one_run_epsilon.lower(100, 100, 50, 1e-6, 0.05) == 0
    assert one_run_epsilon.lower(100, 100, 100, 0.0, 0.05) == pytest.approx(
        -np.log(0.05**-0.01 - 1), abs=1e-5
    )


def test_randomized_response_is_not_beaten_and_a_program_that_lies_less_is():
    """100 runs of 200 coins at epsilon = 1: at most 5 % of bounds are above, 20 of 100 at 1e-6; a twin of 2 shows."""
    above = {1.0: 0, 2.0: 0}
    for seed in range(100):
        flipped = uniform(words(seed, 1, 0, 200)) < 0.5
        for epsilon in above:
            lies = uniform(words(seed, 2, 0, 200)) < 1 / (1 + np.exp(epsilon))
            said = np.where(flipped ^ lies, -1.0, 1.0) + uniform(words(seed, 3, 0, 200)) / 10
            above[epsilon] += one_run_epsilon.of_scores(said, flipped, 0.0, 0.05, shares=(1.0,)) > 1.0
    assert above[1.0] <= 20
    assert above[2.0] > 85

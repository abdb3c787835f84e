"""Attackers of runs: what they know, what they gain, and what bounds allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core.random_words import stream, words
from p2p_sim.leakage import attackers, intervals
from p2p_sim.leakage.advantage import ADVANTAGE, SURE, Baseline, exceeded_claims, measured, violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.attack_results import Interval
from p2p_sim.leakage.attackers import predict_from_returned
from p2p_sim.leakage.canary_attack import canary_attack
from p2p_sim.leakage.dependence import bags_of
from p2p_sim.leakage.eta import Eta, synthetic
from p2p_sim.learning import experiment
from p2p_sim.privacy import registry
from p2p_sim.privacy.bounds import unified2023
from p2p_sim.privacy.bounds.bound import Figure
from p2p_sim.privacy.label_likelihoods import LabelLikelihoods
from p2p_sim.privacy.registered import known
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    LaplaceLabelProportions,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
)
from tests.contract.cases import PROTOCOLS, joined
from tests.report.guesses import inference

USERS = 20_000


@pytest.fixture(scope="module")
def people() -> Population:
    return Population.synthetic(users=USERS, features=1, positive=0.3, seed=3)


@pytest.fixture(scope="module")
def run(people):
    return p2p_sim.run(RandomizedResponse(1.0), people, seed=5, trace="full")


@pytest.fixture(scope="module")
def true(people) -> Eta:
    return synthetic(people.x, [0.7, 0.3], people.users)


def rows(found):
    return {row.name: row for row in found.rows}


def test_a_million_users_gain_what_the_formula_says():
    """Unified 2023, Theorem 3.7, on eta all over [0, 1]; false alarm 1e-9 by the width of the interval."""
    users = 1_000_000
    eta = (np.arange(users) + 0.5) / users
    y = p2p_sim.core.random_words.uniform(p2p_sim.core.random_words.words(7, 1, 0, users)) < eta
    run = p2p_sim.run(
        RandomizedResponse(1.0), Population.from_arrays(y=y), seed=2, trace="full", digest=False
    )
    law = Eta(np.stack([1 - eta, eta], axis=1), "drawn by it", exact=True)
    found = attack(run, eta=law, attackers=["optimal"], confidence=1 - 1e-9)
    formula = unified2023.rr_advantage(eta, 1.0).value
    optimal, exact = found.rows
    assert optimal.advantage.lower <= formula <= optimal.advantage.upper
    assert optimal.advantage.upper - optimal.advantage.lower < 0.01
    assert exact.basis == "exact"
    assert exact.advantage.value == pytest.approx(formula, abs=1e-12)
    assert formula in [pytest.approx(bound.value) for bound in found.bounds if bound.basis == "exact"]
    assert optimal.baseline.value == pytest.approx(0.75, abs=1e-6)
    assert violations(found) == []


@pytest.mark.parametrize("utility", ["0/1", "weighted"])
def test_nobody_beats_the_optimal_attacker_nor_a_bound(run, true, utility):
    found = attack(run, eta=true, utility=utility)
    by_name = rows(found)
    assert list(by_name) == ["prior", "simple-prediction", "optimal", "optimal, by its law"]
    best = by_name["optimal"].advantage
    for row in found.rows:
        assert row.advantage.lower <= best.upper
        assert row.utility.value - row.baseline.value == pytest.approx(row.advantage.value)
    assert best.lower <= by_name["optimal, by its law"].advantage.value <= best.upper
    assert violations(found) == []
    assert found.users == USERS
    assert found.labels == 2


def test_weighted_utility_decides_otherwise(run, true):
    plain, weighted = (
        rows(attack(run, eta=true, utility=u, attackers=["optimal"])) for u in ("0/1", "weighted")
    )
    assert plain["optimal, by its law"].utility.value == pytest.approx(0.8843, abs=1e-3)
    assert weighted["optimal, by its law"].utility.value == pytest.approx(0.8672, abs=1e-3)


@pytest.mark.parametrize("eta", ["knn", "model", "prior"])
def test_estimated_eta_is_close_to_the_law(run, true, eta):
    found, law = attack(run, eta=eta), attack(run, eta=true)
    assert violations(found) == []
    if eta != "prior":
        exact = rows(law)["optimal, by its law"].advantage.value
        estimated = rows(found)["optimal"].advantage
        assert estimated.lower <= exact <= estimated.upper
        assert found.per_user is not None
        assert abs(found.per_user.prior.mean() - law.per_user.prior.mean()) < 0.01
    else:
        assert rows(found)["simple-prediction"].basis == "refused"
        assert "features" in rows(found)["simple-prediction"].why


def test_a_view_that_reads_nothing_gains_nothing(run):
    found = attack(run, "user", eta="knn")
    by_name = rows(found)
    assert by_name["simple-prediction"].basis == "refused"
    assert "'user' has no learner" in by_name["simple-prediction"].why
    assert np.isnan(by_name["simple-prediction"].advantage.value)
    assert by_name["optimal"].advantage == (0, 0, 0)  # exactly, whatever was drawn
    assert found.users == USERS - 1


def test_colluders_are_no_victims_and_their_labels_are_known(run, people):
    found = attack(run, "learner+user:7+user:9", eta="prior")
    assert found.users == USERS - 2
    assert not np.isin([7, 9], found.per_user.user).any()

    def claims(_protocol, view, eta):
        for user in (7, 9):
            assert eta[user].tolist() == np.eye(2)[int(people.y[user])].tolist()
        return LabelLikelihoods.silent(2, "test")

    entry = known(RandomizedResponse(1.0))
    registry.REGISTERED[RandomizedResponse] = replace(entry, attack=claims)
    try:
        attack(run, "learner+user:7+user:9", eta="prior", attackers=["optimal"])
    finally:
        registry.REGISTERED[RandomizedResponse] = entry


def test_an_attack_that_knows_more_than_its_law_allows_is_found(run, people, true):
    """A room that hands the attacker the labels themselves: the broken twin of every honest one."""

    def cheats(_protocol, _view, _eta):
        logs = np.where(np.eye(2)[people.y.astype(int)] > 0, 0.0, -5.0)
        return LabelLikelihoods(np.arange(USERS), logs, "exact", "cheating")

    entry = known(RandomizedResponse(1.0))
    registry.REGISTERED[RandomizedResponse] = replace(entry, attack=cheats)
    try:
        found = attack(run, eta=true)
    finally:
        registry.REGISTERED[RandomizedResponse] = entry
    assert {violation.row.name for violation in violations(found)} == {"optimal"}
    assert "optimal" in str(violations(found)[0])


def test_a_bound_below_what_was_measured_is_a_violation(run, true):
    found = attack(run, eta=true, attackers=["optimal"])
    low = Figure(0.001, "attack advantage", True, "", "nobody", "upper")
    assert {v.bound.source for v in violations(replace(found, bounds=(low,)))} == {"nobody"}
    for harmless in (replace(low, holds=False), replace(low, basis="lower"), replace(low, quantity="risk")):
        assert violations(replace(found, bounds=(harmless,))) == []
        assert exceeded_claims(replace(found, bounds=(harmless,))) == []
    claimed = replace(found, bounds=(replace(low, basis="claimed"),))
    assert violations(claimed) == []
    assert {v.bound.source for v in exceeded_claims(claimed)} == {"nobody"}
    of_utility = replace(found, bounds=(replace(low, quantity="attack utility (1 - expected loss)"),))
    assert "optimal: utility 0.88" in str(violations(of_utility)[0])


@pytest.mark.parametrize("m", [3, 40, 5000])
def test_violations_rest_on_the_interval_that_is_sure(m):
    """Not on that of the table's confidence: over few groups, and where all users are alike."""
    n = 5000
    groups = np.arange(n) % m if m < n else None
    for hits in (np.arange(n) % 7 < 3, np.ones(n, np.bool_)):
        zeros = np.zeros(n, np.int64)
        row = measured(
            "optimal", zeros + 1, Baseline(zeros), hits.astype(int), np.eye(2), confidence=0.95, source="",
            groups=groups,
        )  # fmt: skip
        gained = intervals.of_mean(np.where(hits, 1.0, -1.0), SURE, 1.0, groups)
        table = inference(rows=(row,), users=n, groups=m)
        least = max(-1.0, gained.lower)
        assert least < row.advantage.lower or m == 3
        below, above = (
            replace(table, bounds=(Figure(least + by, "attack advantage", True, "", "", "upper"),))
            for by in (-1e-6, 1e-6)
        )
        assert len(violations(below)) == 1
        assert violations(above) == []


def test_bounds_take_the_baseline_at_its_surest(run):
    """Too high a baseline makes a bound too small: at 95 % that would happen once in forty tables."""
    found = attack(run, eta="prior", attackers=["prior"])
    (sharp,) = [bound for bound in found.bounds if "sharpened for 0/1" in bound.source]
    without = intervals.of_share(round(found.rows[0].baseline.value * USERS), USERS, SURE)
    assert sharp.value == pytest.approx(np.tanh(0.5) * (1 - without.lower), abs=1e-12)
    assert without.lower < found.rows[0].baseline.lower


def test_a_utility_may_be_a_matrix(run, true):
    """0/1 as a matrix is 0/1; what counts a thousandth is a thousandth, and only bounds of any utility are left."""
    plain, same, small = (
        attack(run, eta=true, utility=u, attackers=["optimal"])
        for u in ("0/1", np.eye(2), np.array([[1e-3, 0], [0, 1e-3]]))
    )
    assert same.rows == plain.rows
    assert same.utility == "0/1"
    assert small.utility == "given"
    for small_row, row in zip(small.rows, plain.rows, strict=True):
        assert small_row.advantage == pytest.approx(np.array(row.advantage) / 1000)
    advantages = [bound.value for bound in small.bounds if bound.quantity == ADVANTAGE]
    assert advantages == pytest.approx([plain.bounds[0].value / 1000])
    assert violations(small) == []
    uneven = attack(run, eta=true, utility=[[1, 0], [0, 4]], attackers=["optimal"])
    assert rows(uneven)["optimal, by its law"].advantage.value > 0
    assert violations(uneven) == []


def test_per_user_is_the_posterior(run, people, true):
    found = attack(run, eta=true, attackers=["optimal"]).per_user
    reports = run.messages("report")
    keep = np.e / (1 + np.e)
    said = reports["y"][np.argsort(reports["sender"])]
    joint = true.rows * np.where(said[:, None] == np.arange(2), keep, 1 - keep)
    posterior = joint / joint.sum(axis=1, keepdims=True)
    assert np.allclose(found.posterior, posterior.max(axis=1), atol=1e-12)
    assert np.allclose(found.prior, true.rows.max(axis=1))
    assert (found.right == (posterior.argmax(axis=1) == people.y)).all()


def test_the_order_of_names_changes_nothing(run, true):
    one, other = (
        attack(run, eta=true, attackers=names) for names in (["optimal", "prior"], ["prior", "optimal"])
    )
    assert one.rows == other.rows
    assert (one.per_user.posterior == other.per_user.posterior).all()


def test_canaries_of_a_model_that_learns_labels_by_heart():
    """With as many features as users a model tells every coin; where labels are pure noise it tells none."""
    y = np.arange(120) % 2 == 0
    people = Population.from_arrays(y=y, x=np.eye(120))
    law, right = np.full((120, 2), 0.5), {}
    for epsilon in (20.0, 0.0):
        protocol = RandomizedResponse(epsilon)
        run = p2p_sim.run(protocol, people, seed=1)
        row = canary_attack(run, protocol, people, "learner", law, 1 - 1e-9, 0, share=1.0)
        assert row.baseline == Interval(0.5, 0.5, 0.5)
        right[epsilon] = row.utility
    assert right[20.0].value > 0.9
    assert right[0.0].lower < 0.5 < right[0.0].upper


def test_attack_plants_canaries_and_runs_the_protocol_again(monkeypatch):
    people = Population.synthetic(users=2000, features=2, positive=0.5, seed=3)
    run = p2p_sim.run(RandomizedResponse(3.0), people, seed=5, trace="full", digest=False)
    planted = []

    def again(protocol, users, **how):
        planted.append((users, how["seed"]))
        return p2p_sim.run(protocol, users, **how)

    monkeypatch.setattr("p2p_sim.leakage.canary_attack.start", again)
    found = attack(run, eta="model", attackers=["prior", "canaries"])
    ((users, seed),) = planted
    assert seed != run.seed
    changed = (users.y != people.y).sum()
    assert 25 < changed < 75  # a coin for each of 100 canaries: 1e-6 at each end
    row = rows(found)["canaries"]
    assert (row.basis, row.baseline) == ("measured", Interval(0.5, 0.5, 0.5))
    assert row.utility.value * 100 == pytest.approx(round(row.utility.value * 100))
    assert row.advantage.value == row.utility.value - 0.5
    assert violations(found) == []
    assert violations(replace(found, bounds=(Figure(0.0, "attack advantage", True, "", "", "upper"),))) == []
    same = attack(run, eta="model", attackers=["canaries"])
    assert same.rows == (row,)


def test_canaries_need_a_model_features_and_canaries(run, people):
    (row,) = attack(run, "user", eta="prior", attackers=["canaries"]).rows
    assert "no learner" in row.why
    bare = p2p_sim.run(RandomizedResponse(1.0), Population.from_arrays(y=people.y[:50]), seed=1, trace="full")
    (row,) = attack(bare, eta="prior", attackers=["canaries"]).rows
    assert "features" in row.why
    few = p2p_sim.run(RandomizedResponse(1.0), people.part(np.arange(9)), seed=1, trace="full")
    (row,) = attack(few, eta="prior", attackers=["canaries"]).rows
    assert "2 canaries" in row.why


def test_more_labels_than_two():
    people = Population.synthetic(users=6000, labels=4, features=2, shares=[0.4, 0.3, 0.2, 0.1], seed=1)
    run = p2p_sim.run(RandomizedResponse(1.5, labels=4), people, seed=4, trace="full")
    found = attack(run, eta=synthetic(people.x, [0.4, 0.3, 0.2, 0.1], 6000))
    by_name = rows(found)
    exact = by_name["optimal, by its law"].advantage.value
    assert by_name["optimal"].advantage.lower <= exact <= by_name["optimal"].advantage.upper
    assert exact > 0.05
    assert violations(found) == []
    assert violations(attack(run, eta="knn", utility="weighted")) == []


def test_synthetic_runs_know_their_law():
    run = experiment.simulate(
        RandomizedResponse(1.0),
        500,
        share=0.3,
        features=1,
        seed=1,
        trace="full",
        model="none",
        progress=False,
    )
    found = attack(run, eta="true")
    assert "drawn" in found.eta_from
    assert rows(found)["optimal, by its law"].basis == "exact"


@pytest.fixture(scope="module")
def clustered() -> Population:
    return Population.synthetic(users=1200, features=1, positive=0.3, cluster_size=12, seed=3)


@pytest.mark.parametrize("view", ["learner", "learner+2*user", "user", "wire", "learner+wire"])
@pytest.mark.parametrize(
    "protocol",
    [
        PeerToPeer(alpha=0.1), LabelProportions(bag_size=4), LaplaceLabelProportions(epsilon=1.0, bag_size=4),
        EncryptedShuffle(epsilon=1.0), RandomizedResponse(1.0),
    ],
    ids=lambda protocol: type(protocol).__name__,
)  # fmt: skip
def test_no_mechanism_is_beaten_by_more_than_its_law_allows(clustered, protocol, view):
    run = p2p_sim.run(protocol, clustered, seed=5, trace="full", digest=False)
    for utility in ("0/1", "weighted"):
        found = attack(run, view, eta=synthetic(clustered.x, [0.7, 0.3], 1200), utility=utility)
        best = rows(found)["optimal"]
        assert best.basis in ("measured", "lower")
        for row in found.rows:
            assert row.basis == "refused" or row.advantage.lower <= best.advantage.upper
        assert violations(found) == []
        assert sum(bound.holds for bound in found.bounds) >= 2


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_mechanism_is_attacked_or_says_why_not(name):
    protocol = PROTOCOLS[name]
    people = Population.synthetic(
        users=220, cluster_size=11, labels=protocol.label_count(), features=2, seed=5
    )
    run = p2p_sim.run(protocol, joined(protocol, people), seed=5, trace="full", digest=False)
    found = attack(run, eta="knn")
    assert violations(found) == []
    assert all(bool(row.why) == (row.basis == "refused") for row in found.rows)
    assert rows(found)["prior"].advantage.lower <= 0  # the baseline is the best of several guesses
    assert all(bound.holds or bound.why for bound in found.bounds)
    law = synthetic(people.x, [1 / protocol.label_count()] * protocol.label_count(), people.users)
    known_law = rows(attack(run, eta=law, attackers=["optimal"], confidence=1 - 1e-9))
    if "optimal, by its law" in known_law:
        low, _, high = known_law["optimal"].advantage
        assert low <= known_law["optimal, by its law"].advantage.value <= high


def test_faults_make_the_optimal_attack_a_lower_one(clustered):
    run = p2p_sim.run(
        RandomizedResponse(1.0),
        clustered,
        seed=5,
        trace="full",
        digest=False,
        faults=["drop=0.1", "lie=flip:0.1"],
    )
    found = attack(run, eta="knn")
    assert rows(found)["optimal"].basis == "lower"
    assert violations(found) == []


def test_intervals_are_over_bags_whose_users_depend_on_each_other(monkeypatch):
    """Counts are told of all users of a bag at once; here what one wins another loses, so the right one is narrower."""
    people = Population.synthetic(users=1200, positive=0.3, seed=3)
    run = p2p_sim.run(LabelProportions(bag_size=4), people, seed=5, trace="full", digest=False)
    belief = Eta(np.tile([0.7, 0.3], (1200, 1)), "another")
    of_bags = attack(run, eta=belief, attackers=["optimal"])
    gained = of_bags.per_user.right.astype(float) - (people.y == 0)
    sums = np.bincount(bags_of(LabelProportions(bag_size=4), people), weights=gained)
    quantile, off = t.ppf(0.975, 299), sums - sums.mean()
    skewed = abs((off**3).mean()) / off.var(ddof=1) * (1 + 2 * quantile**2) / 6 / 1200
    half = quantile * off.std(ddof=1) * 300**0.5 / 1200 + skewed + np.log(40) / 1200
    low, value, high = of_bags.rows[0].advantage
    assert (low, high) == pytest.approx((value - half, value + half), abs=1e-12)
    monkeypatch.setattr("p2p_sim.leakage.attack.groups_of", lambda *_: None)
    of_users = attack(run, eta=belief, attackers=["optimal"])
    assert (of_bags.groups, of_users.groups) == (300, 1200)
    assert abs((of_users.rows[0].advantage.upper - value) / half - 1) > 0.2


def test_bags_have_their_theorems():
    people = Population.synthetic(users=1600, positive=0.3, seed=1)
    run = p2p_sim.run(LabelProportions(bag_size=8), people, seed=4, trace="full")
    eta = synthetic(None, [0.7, 0.3], 1600)
    found = attack(run, eta=eta, attackers=["prior", "optimal"])
    sources = " ".join(bound.source for bound in found.bounds)
    for theorem in (
        "Theorem 3.3",
        "Theorem 3.4",
        "Theorem 3.4, exact",
        "Theorem 3.5 with",
        "Theorem 3.5 by Lemma A.1",
    ):
        assert theorem in sources
    exact = {
        bound.source.split("Theorem ")[1]: bound.value
        for bound in found.bounds
        if bound.basis == "exact" and bound.quantity == ADVANTAGE
    }
    assert exact["3.3, all bags"] == pytest.approx(exact["3.4, exact"], abs=1e-12)
    uneven = np.linspace(0, 1, 1600)
    given = Eta(np.stack([1 - uneven, uneven], axis=1), "another", exact=True)
    bounds = attack(run, eta=given, attackers=["prior"]).bounds
    (bags,) = [bound.value for bound in bounds if "Theorem 3.3" in bound.source]
    each = [unified2023.llp_advantage(part).value for part in uneven.reshape(-1, 8)]
    assert bags == pytest.approx(np.mean(each), abs=1e-12)
    assert {bound.basis for bound in found.bounds if "Lemma A.1" in bound.source} == {"claimed"}
    assert violations(found) == []


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"eta": "guess"}, "eta = 'guess'"),
        ({"eta": "true"}, "eta = 'true'"),
        ({"eta": np.full((USERS, 2), 0.6)}, "sums to 1.2"),
        ({"eta": np.full((USERS, 2), [1.5, -0.5])}, "from 0 to 1"),
        ({"eta": np.full((3, 2), 0.5)}, "shape (3, 2)"),
        ({"eta": np.full((USERS, 3), 1 / 3)}, "shape (20000, 3)"),
        ({"eta": np.full((USERS, 2), np.nan)}, "row 0"),
        ({"utility": "cubic"}, "utility = 'cubic'"),
        ({"utility": np.eye(3)}, "utility has shape (3, 3); needs 2 by 2"),
        ({"utility": [[1, -1], [0, 1]]}, "utility = -1.0"),
        ({"attackers": ["best"]}, "attackers = ['best']"),
        ({"attackers": []}, "attackers = []"),
        ({"confidence": 1.0}, "confidence = 1.0"),
        ({"seed": -1}, "seed = -1"),
        ({"view": "nobody"}, "nobody"),
    ],
)  # fmt: skip
def test_bad_input_is_named(run, how, told):
    with pytest.raises(InputError) as error:
        attack(run, **how)
    assert told in str(error.value)


def test_everybody_looks():
    run = p2p_sim.run(RandomizedResponse(1.0), Population.from_arrays(y=[True, False]), seed=1, trace="full")
    with pytest.raises(InputError, match="nobody is left"):
        attack(run, "learner+2*user", eta="prior")


def test_saved_runs_are_attacked_on_what_they_keep(tmp_path):
    how = {"share": 0.3, "seed": 2**62 + 1, "model": "none", "progress": False}
    run = experiment.simulate(RandomizedResponse(1.0), 300, **how)
    run.save(tmp_path / "whole")
    run.save(tmp_path / "bare", population=False)
    again = attack(p2p_sim.load(tmp_path / "whole"), eta="true")
    assert again.rows == attack(run, eta="true").rows
    assert rows(again)["optimal, by its law"].basis == "exact"
    with pytest.raises(InputError, match="without its population"):
        attack(p2p_sim.load(tmp_path / "bare"), eta="prior")


def test_numbers_are_no_classes(people):
    with pytest.raises(InputError, match=r"0 to 1; 0.5 was released"):
        predict_from_returned(
            RandomizedResponse(1.0), people, {"y": np.array([0.0, 0.5]), "sender": np.array([0, 1])}, labels=2
        )


def test_what_eta_rules_out_is_said(run, people):
    wrong = np.eye(2)[1 - people.y.astype(int)]
    sure = p2p_sim.run(RandomizedResponse(np.inf), people, seed=1, trace="full")
    row = rows(attack(sure, eta=wrong, attackers=["optimal"]))["optimal"]
    assert row.basis == "refused"
    assert "rules out" in row.why


@pytest.mark.parametrize(
    "protocol", [PeerToPeer(alpha=0.0, retries=2), PeerPermutation(0.0), LabelProportions(4)]
)
@pytest.mark.parametrize("fault", ["late=0.3", "loss=0.3", "drop=0.2", "lie=flip:0.3"])
def test_no_true_label_is_ruled_out_under_faults(monkeypatch, protocol, fault):
    """A late answer is sent and not used, a liar's label is another: who takes them at their word is sure and wrong."""
    ruled_out, seen = [], []
    kept = attackers.posterior_of

    def watched(knowledge):
        found = kept(knowledge)
        seen.append(found[0])
        return found

    monkeypatch.setattr(attackers, "posterior_of", watched)
    for seed in range(6):
        y = (words(seed, stream("test", "faults", 0), 0, 12) >> np.uint64(63)).astype(np.bool_)
        people = Population.from_arrays(y=y)
        run = p2p_sim.run(protocol, people, seed=seed, trace="full", digest=False, faults=[fault])
        law = Eta(np.full((12, 2), 0.5), "fair", exact=True)
        for view in ("learner", "learner+wire"):
            (row,) = attack(run, view, eta=law, attackers=["optimal"], channels="encrypted").rows
            assert row.basis == "lower"
            ruled_out += [seen[-1][np.arange(12), y.astype(int)] == 0]
    assert not np.concatenate(ruled_out).any()


def test_doubt_is_exact_of_lies_of_two_labels():
    """Who flips her label with probability 0.2 before a truthful report: 0.8 to 0.2, by Bayes."""
    y = np.arange(4000) % 2 == 0
    run = p2p_sim.run(
        RandomizedResponse(np.inf), Population.from_arrays(y=y), seed=1, trace="full", faults=["lie=flip:0.2"]
    )
    law = Eta(np.full((4000, 2), 0.5), "fair", exact=True)
    found = attack(run, eta=law, attackers=["optimal"])
    assert np.allclose(found.per_user.posterior, 0.8, atol=1e-12)
    assert abs(found.per_user.right.mean() - 0.8) < 6.1 * (0.16 / 4000) ** 0.5

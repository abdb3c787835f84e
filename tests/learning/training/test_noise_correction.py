"""Released labels: how protocols say they came about, whose they may be, and what a model makes of that."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.learning import data_split, experiment, training_in_memory
from p2p_sim.learning.data.datasets import Dataset
from p2p_sim.learning.training import label_assignment, label_origins, models, noise_correction
from p2p_sim.learning.training.losses import Bags, match, match_reports
from p2p_sim.network import topologies
from p2p_sim.privacy import DenseMatrices, LabelNoise, ResamplingMatrices
from p2p_sim.privacy.mechanisms import prior_response
from protocols import (
    Alibi,
    EncryptedShuffle,
    LabelProportions,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    PriorResponse,
    RandomizedResponse,
    peer_permutation,
)

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-9
TALKS = [
    RandomizedResponse.flipping(0.25), RandomizedResponse(1.0, 3), EncryptedShuffle(1.0),
    EncryptedShuffle(1.0, 3, over="everybody"), PeerPermutation(0.25), PeerToPeer(0.25, 0.5),
    NetworkShuffle(1.0, 0), NetworkShuffle(1.0, 1), PriorResponse(1.0, 3),
]  # fmt: skip


def joined(y: Any, cluster: Any = None, **columns: Any) -> Population:
    return topologies.join(Population.from_arrays(y=y, cluster=cluster, **columns), "complete", 0)


def released(protocol: Any, y: list[int]) -> dict[int, dict[int, Fraction]]:
    """Return the mean number of released labels by sender (0 where the learner knows none) and value, enumerated."""
    found: dict[int, dict[int, Fraction]] = {}
    for seen, chance in privacy.enumerate_view(protocol, joined(np.array(y, np.uint8))).world.items():
        for kind, _, sender, _, _, values in seen[0]:
            assert kind in ("report", "mixed")
            told = found.setdefault(sender, {})
            label = int(ast.literal_eval(values)[-1])
            told[label] = told.get(label, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("protocol", TALKS, ids=repr)
def test_how_labels_come_about_is_as_protocols_say(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two users with labels 0 and 1, enumerated: the mean labels by sender are what the noise says, exactly."""
    monkeypatch.setattr(peer_permutation, "SHARES", 2)  # two orders of two users, each by one seed
    monkeypatch.setattr(peer_permutation, "agreed_order", lambda seed, size: np.array([[0, 1], [1, 0]][seed]))
    noise = privacy.label_noise(protocol)
    other = noise.lie / (noise.labels - 1)
    own = [[1 - noise.lie if j == y else other for j in range(noise.labels)] for y in (0, 1)]
    anybody = [(one + two) / 2 for one, two in zip(*own, strict=True)]
    for sender, told in released(protocol, [0, 1]).items():
        whole = sum(told.values())
        expected = own[sender] if noise.whose == "sender" else anybody
        assert [told.get(j, Fraction(0)) / whole for j in range(noise.labels)] == expected


def test_protocols_of_bags_say_nothing_of_single_labels() -> None:
    assert privacy.label_noise(LabelProportions(4)) is None


CLUSTER = np.array([7, 3, 7, 30, 3, 7])
PEOPLE = Population.from_arrays(y=CLUSTER == 3, cluster=CLUSTER)
Y = np.array([1, 0, 1, 1])


def test_labels_of_senders_are_bags_of_one() -> None:
    columns = {"sender": np.array([4, 0, 4, 2]), "y": Y}
    bags = noise_correction.released(columns, PEOPLE, LabelNoise(Fraction(0)))
    assert bags is not None
    assert bags.bag.tolist() == [0, 1, 2, 3, 4, 5]
    assert bags.counts.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [0, 2], [0, 0]]


def test_labels_of_a_cluster_are_one_bag_whoever_sent_them() -> None:
    noise = LabelNoise(Fraction(0), 3, "cluster")
    sent = noise_correction.released({"sender": np.array([4, 0, 1, 3]), "y": Y}, PEOPLE, noise)
    shuffled = noise_correction.released({"cluster": np.array([3, 7, 3, 30]), "y": Y}, PEOPLE, noise)
    for bags in (sent, shuffled):
        assert bags is not None
        assert bags.bag.tolist() == [1, 0, 1, 2, 0, 1]
        assert bags.counts.tolist() == [[0, 2, 0], [1, 0, 0], [0, 1, 0]]


def test_labels_of_everybody_or_of_no_cluster_are_no_bags() -> None:
    columns = {"sender": np.array([4, 0, 1, 3]), "y": Y}
    assert noise_correction.released(columns, PEOPLE, LabelNoise(Fraction(0), 2, "everybody")) is None
    columns = {"cluster": np.array([3, 7, 3, 5]), "y": Y}
    assert noise_correction.released(columns, PEOPLE, LabelNoise(Fraction(0), 2, "cluster")) is None


def test_clusters_of_one_user_are_labels_of_senders() -> None:
    people = Population.from_arrays(y=np.arange(50) % 3 == 0, cluster=np.arange(50)[::-1])
    run = p2p_sim.run(EncryptedShuffle(2.0), people, seed=0)
    shuffled = noise_correction.released(run.output("learner"), people, privacy.label_noise(run.source))
    assert shuffled is not None
    y = run.output("learner")["y"][np.argsort(run.output("learner")["cluster"])][::-1]  # by user
    alone = noise_correction.released({"sender": np.arange(50), "y": y}, people, LabelNoise(Fraction(0)))
    assert alone is not None
    assert np.array_equal(shuffled.counts[shuffled.bag], alone.counts[alone.bag])


def data(users: int, labels: int = 2) -> Dataset:
    """Clusters in which a feature differs between users, and their labels with it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(users, 3))
    cluster = rng.integers(users // 20, size=users)
    x[:, 1] = rng.normal(size=users // 20)[cluster]
    scores = np.stack([x @ rng.normal(size=3) * 2 for _ in range(labels)], axis=1) + rng.gumbel(
        size=(users, labels)
    )
    y = scores.argmax(axis=1)
    names = tuple("abc"[:3])
    classes = tuple(str(value) for value in range(labels))
    return Dataset(
        "made up",
        x,
        y.astype(bool if labels == 2 else np.uint8),
        cluster,
        names,
        "y",
        classes,
        "1",
        "this test",
        None,
    )


def gain(new: Any, old: Any) -> float:
    """The probability that the new model does so much better than the old one on the same rows if it is as good."""
    alone = int(np.count_nonzero(new & ~old)), int(np.count_nonzero(old & ~new))
    return float(binomtest(alone[0], max(1, sum(alone)), 0.5, "greater").pvalue)


def better(protocol: Any, examples: Dataset, graph: str | None = None) -> Any:
    """Assert that the corrected model beats the plain one, and that a twin does not that is told of other clusters or
    users, or of no lies; return the run's comparison, whose figures are those of both.
    """
    result = experiment.learn(protocol, examples, graph=graph, seed=0)
    found, people, noise = result.comparison, result.examples.population, privacy.label_noise(protocol)
    x_test, y_test = result.examples.x_test, result.examples.y_test
    bags = noise_correction.released(result.run.output("learner"), people, noise)
    pairs = label_assignment.pairs(result.run.output("learner"), people)
    assert found is not None
    assert bags is not None
    assert pairs is not None
    assert people.x is not None
    new = noise_correction.fit(people.x, bags, noise).model.predict(x_test) == y_test
    old = models.make().fit(people.x[pairs.users], pairs.y).predict(x_test) == y_test
    assert (np.mean(new), np.mean(old)) == (found.accuracy_corrected, found.accuracy_private)
    assert gain(new, old) < FALSE_ALARM
    lie = 0.0 if noise.whose == "sender" else noise.lie
    shift = 0 if noise.whose == "sender" else len(bags.counts) // 2
    other = replace(bags, counts=np.roll(bags.counts, shift, axis=0))  # type: ignore[type-var]
    twin = match(people.x, other, lie).predict(x_test) == y_test
    if graph is None:
        assert gain(twin, old) > FALSE_ALARM
    else:  # labels that walked teach the plain model less than a constant one knows
        assert gain(new, twin) < FALSE_ALARM
    return found


def test_it_pays_to_know_how_often_senders_lie_among_several_labels() -> None:
    found = better(RandomizedResponse(1.0, 10), data(12_000, 10))
    assert found.correction == "corrected for lies"


@pytest.mark.parametrize(
    ("protocol", "correction"),
    [
        (EncryptedShuffle(2.0), "matched by cluster, corrected for lies"),
        (EncryptedShuffle(float("inf")), "matched by cluster"),
        (PeerPermutation(0.2), "matched by cluster, corrected for lies"),
        (PeerToPeer(0.2), "matched by cluster, corrected for lies"),
    ],
    ids=repr,
)
def test_it_pays_to_know_that_a_label_is_anybody_s_of_the_cluster(protocol: Any, correction: str) -> None:
    assert better(protocol, data(10_000)).correction == correction


@pytest.mark.parametrize(
    ("protocol", "correction"),
    [
        (NetworkShuffle(3.0, 1), "followed back, corrected for lies"),
        (PeerToPeer(0.1, over="neighbours"), "matched by neighbours, corrected for lies"),
    ],
    ids=repr,
)
def test_it_pays_to_know_over_which_graph_labels_came(protocol: Any, correction: str) -> None:
    assert better(protocol, data(6000), "regular:8").correction == correction


def skewed(users: int, labels: int) -> Dataset:
    """Labels of which the last half are rarer than the others, by features."""
    examples = data(users, labels)
    rare = np.random.default_rng(3).random(len(examples.y)) < 0.6
    return replace(examples, y=np.where(rare, examples.y // 2, examples.y).astype(np.uint8))


SKEWED = PriorResponse(1.0, 4, "0.4,0.3,0.2,0.1")


def reported(protocol: Any, examples: Dataset) -> Any:
    """Run; return the comparison, test rows, the plain model, the corrected one, and one told of others' reports."""
    result = experiment.learn(protocol, examples, seed=0)
    found, people, noise = result.comparison, result.examples.population, privacy.label_noise(protocol)
    columns = result.run.output("learner")
    assert found is not None
    assert noise is not None
    assert noise.reports is not None
    evidence = noise.reports(columns, people)
    old = models.make().fit(people.x[columns["sender"]], columns["y"])
    new = match_reports(people.x, evidence)
    twin = match_reports(people.x, replace(evidence, users=np.roll(evidence.users, 1)))
    right = [model.predict(result.examples.x_test) == result.examples.y_test for model in (new, old)]
    assert [np.mean(each) for each in right] == [found.accuracy_corrected, found.accuracy_private]
    assert found.correction == "corrected for lies"
    return found, result.examples, old, new, twin


def test_it_pays_to_read_scores_instead_of_the_label_that_they_are_denoised_to() -> None:
    found, examples, old, new, twin = reported(Alibi(1.0, 10), data(12_000, 10))
    right = [model.predict(examples.x_test) == examples.y_test for model in (old, new, twin)]
    assert gain(right[1], right[0]) < FALSE_ALARM
    assert gain(right[2], right[0]) > FALSE_ALARM
    assert not found.note


@pytest.mark.parametrize("prior", ["0.4,0.3,0.2,0.1", "public"])
def test_it_pays_to_know_that_labels_could_not_be_reported(prior: str) -> None:
    """Log loss falls, by six standard errors of the mean of paired rows (1e-9); accuracy need not rise.

    It also beats a twin that is told of the reports of other users.
    """
    examples = skewed(12_000, 4)
    protocol: Any = PriorResponse(1.0, 4, prior)
    if prior == "public":
        people = data_split.gather(PriorResponse(1.0, 4), examples, seed=0).population
        priors = np.random.default_rng(7).dirichlet(np.full(4, 3.0), people.users)
        people = replace(people, public={"prior": priors})
        run = p2p_sim.run(protocol, people, seed=0)
        evidence = prior_response.evidence(protocol, run.output("learner"), people)
        old: Any = models.make().fit(people.x, run.output("learner")["y"])
        new, twin = (
            match_reports(people.x, replace(evidence, users=np.roll(evidence.users, shift)))
            for shift in (0, 1)
        )
        held = data_split.gather(protocol, examples, seed=0)
        note = evidence.note
    else:
        found, held, old, new, twin = reported(protocol, examples)
        note = found.note
    known = np.zeros((len(held.y_test), 4))
    known[:, old.classes_.astype(int)] = old.predict_proba(held.x_test)
    rows = np.arange(len(held.y_test)), held.y_test
    of = (known, new.probabilities(held.x_test), twin.probabilities(held.x_test))
    logs = [
        np.log(0.9 * p[rows] + 0.1 / 4) for p in of
    ]  # no row decides: a label never seen costs ln 40 at most
    for better_one, worse in ((1, 0), (1, 2)):
        won = logs[better_one] - logs[worse]
        assert won.mean() > 6 * won.std() / np.sqrt(len(won))
    assert "so the corrected model uses the forward loss, which needs none" in note


def test_reports_without_senders_or_content_are_not_corrected() -> None:
    people = Population.from_arrays(y=np.zeros(4, np.uint8), x=np.zeros((4, 1)))
    noise = privacy.label_noise(SKEWED)
    assert noise is not None
    for columns, text in (
        ({"y": Y}, ["reports came without the users who sent them: no model is corrected for noise"]),
        ({"y": Y[:0], "sender": Y[:0]}, []),
    ):
        assert noise_correction._by_reports(columns, people, noise).notes == text
    nothing = comparison(PriorResponse(0.0, 2, "0.9,0.1"))
    assert nothing.accuracy_corrected is None
    assert noise_correction.UNINFORMATIVE in nothing.note
    assert privacy.label_noise(PriorResponse(float("inf"), 3, "0.9,0.05,0.05")) == LabelNoise(Fraction(0), 3)


@pytest.mark.parametrize("whose", ["sender", "cluster"])
def test_a_matrix_of_all_users_corrects_as_a_lie_does(whose: str) -> None:
    """The law of uniform lies, given as a matrix: the same model to the tolerance of the fit."""
    rng = np.random.default_rng(5)
    x, lie = rng.normal(size=(3000, 2)), Fraction(1, 5)
    bag = np.arange(3000) if whose == "sender" else np.arange(3000) // 10
    counts = np.zeros((int(bag.max()) + 1, 3))
    np.add.at(counts, (bag, (x @ rng.normal(size=(2, 3)) + rng.gumbel(size=(3000, 3))).argmax(axis=1)), 1.0)
    uniform = ResamplingMatrices.uniform(3, float(lie))
    nudged = DenseMatrices(uniform.dense() + 1e-12 * np.array([[1, -1, 0], [0, 0, 0], [0, 0, 0]]))
    by_lie = noise_correction.fit(x, Bags(bag, counts), LabelNoise(lie, 3, whose))
    for matrix in (uniform, nudged):
        by_matrix = noise_correction.fit(
            x, Bags(bag, counts), LabelNoise(Fraction(0), 3, whose, matrix=matrix)
        )
        away = by_matrix.model.probabilities(x) - by_lie.model.probabilities(x)
        assert np.abs(away).max() < 1e-2


def comparison(protocol: Any, **more: Any) -> Any:
    return experiment.learn(protocol, data(800), seed=0, **more).comparison


def test_where_nobody_lies_nothing_is_corrected() -> None:
    assert comparison(RandomizedResponse(float("inf"))).accuracy_corrected is None


@pytest.mark.parametrize("protocol", [RandomizedResponse(0.0), EncryptedShuffle(0.0, 2), PeerToPeer(0.5)])
def test_labels_without_information_are_said_to_be_such(protocol: Any) -> None:
    found = comparison(protocol)
    assert found.accuracy_corrected is None
    assert "the released labels say nothing of the true ones" in found.note


def test_notes_on_users_who_lie_another_model_and_nothing_released() -> None:
    lied = comparison(RandomizedResponse(1.0), faults=["lie=flip:0.1"])
    assert "the correction does not know of users who lie beyond the protocol" in lied.note
    trees = comparison(RandomizedResponse(1.0), model="decision-tree")
    assert trees.note == "the corrected model is a logistic regression"
    silent = comparison(RandomizedResponse(1.0), faults=["loss=1"])
    assert silent.accuracy_corrected is None
    assert "no label among the released labels" in silent.note


def test_walks_that_are_too_long_are_not_followed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = data_split.gather(NetworkShuffle(1.0), data(400))
    people = topologies.join(examples.population, "regular:4", 0)
    examples = replace(examples, population=people)
    run, users = p2p_sim.run(NetworkShuffle(1.0, 3), people, seed=0), people.users
    for longest, fits in ((3 * 4 * users, True), (3 * 4 * users - 1, False)):
        monkeypatch.setattr(label_origins, "MAX_WALK_STEPS", longest)
        found = training_in_memory.train(run, examples)
        assert found is not None
        assert (found.accuracy_corrected is None) is not fits
        assert (
            "walks this long are not followed back: no model is corrected for them" in found.note
        ) is not fits


def test_labels_that_stood_still_are_those_of_senders() -> None:
    examples = data_split.gather(NetworkShuffle(1.0), data(400))
    people = topologies.join(examples.population, "regular:4", 0)
    still = training_in_memory.train(p2p_sim.run(NetworkShuffle(1.0, 0), people, seed=0), examples)
    assert still is not None
    assert still.accuracy_corrected is not None
    assert still.correction == "corrected for lies"


def test_labels_that_came_over_a_graph_that_is_not_there_are_anybody_s() -> None:
    columns = {"sender": np.array([4, 0, 1, 3]), "y": Y}
    for whose in ("neighbours", "walk"):
        assert noise_correction.released(columns, PEOPLE, LabelNoise(Fraction(0), 2, whose)) is None

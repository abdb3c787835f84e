"""Learners that undo the noise of released features and labels: by enumeration of the program, and in runs."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.learning.experiment import simulate
from p2p_sim.learning.training import losses
from p2p_sim.learning.training.any_classifier import ForwardClassifier
from p2p_sim.learning.training.release_loss import double_response
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from p2p_sim.privacy.mechanisms.double_response import undone_noise
from protocols import DoubleResponse, DummyFeatures

TO = 1e-10

SPACES = [  # lambda, generator, labels, truth
    (0.5, "3*0;1*1|1*0;3*1", 2, "2*0;1*1|1*0;4*1"),
    (0.25, "0|1", 2, "3*0;1*1|1*0;3*1"),
    (0.5, "3*0;1*1|1*0;3*1", 2, "3*0;1*1|1*0;3*1"),
    (0.75, "0,0|0,1|1,1", 3, "0,0;0,1|0,1;2*1,1|0,0;1,1"),
    (0.5, "0|1", 2, "0;5|1"),  # the generator never draws 5
]


def one(label: int, labels: int) -> Population:
    column = np.array([label], np.uint8)
    return Population.from_arrays(y=column if labels > 2 else column > 0)


@lru_cache
def law_of(protocol: DoubleResponse) -> list[dict[tuple[tuple[float, ...], int], Fraction]]:
    """What a user of each label releases, features and label, to its probability, by the program."""
    laws = []
    for label in range(protocol.labels):
        law: dict[tuple[tuple[float, ...], int], Fraction] = {}
        for seen, chance in privacy.enumerate_view(protocol, one(label, protocol.labels)).world.items():
            *features, said = map(int, re.findall(r"-?\d+", seen[0][0][-1]))
            key = tuple(multiple / 2**16 for multiple in features), said
            law[key] = law.get(key, Fraction(0)) + chance
        laws.append(law)
    return laws


def true_rows(protocol: DoubleResponse, label: int) -> list[tuple[tuple[float, ...], Fraction]]:
    nature = protocol.nature()
    assert nature is not None
    table = nature.finite()
    assert table is not None
    return [(tuple(row), chance) for row, chance in zip(table[0].tolist(), table[1][label], strict=True)]


def loss_of(row: Any, labels: int) -> Any:
    """The cross-entropies (k,) of a model that has nothing to do with the law."""
    rng = np.random.default_rng([int(value * 7 + 11) for value in row])
    return -log_softmax(rng.normal(size=labels) * 2)


def columns_of(rows: Any) -> dict[str, Any]:
    x, y = zip(*rows, strict=True)
    return {"sender": np.arange(len(y)), "x": np.array(x), "y": np.array(y, np.uint8)}


@pytest.mark.parametrize("unknown", [False, True], ids=["law known", "law unknown"])
@pytest.mark.parametrize(("lam", "generator", "labels", "truth"), SPACES)
def test_the_corrected_loss_is_unbiased(
    lam: float, generator: str, labels: int, truth: str, unknown: bool
) -> None:
    """Two users of two labels: the mean over all that they may release is the sum of their true losses.

    Label shares are those of the reports, noise undone.  The weights need not know how features depend on labels.
    """
    protocol = DoubleResponse(lam, generator, labels, truth)
    laws, users = law_of(protocol), (0, labels - 1)
    told = replace(protocol, truth="unknown") if unknown else protocol
    found = plain = total = 0.0
    for pair in itertools.product(*(laws[label].items() for label in users)):
        chance = float(math.prod(each for _, each in pair))
        columns = columns_of([key for key, _ in pair])
        evidence = undone_noise.evidence(told, columns, one(0, labels))
        assert len(evidence.users) == 2
        weights = evidence.unbiased()
        rows = evidence.weighted_rows(np.zeros((2, 1)))  # features of the users, which play no part
        cost = np.stack([loss_of(row, labels) for row in rows])
        found += chance * float((weights * cost).sum())
        plain += chance * sum(loss_of(x, labels)[said] for (x, said), _ in pair)
        total += chance
    true = sum(
        float(chance) * loss_of(row, labels)[label]
        for label in users
        for row, chance in true_rows(protocol, label)
    )
    assert total == pytest.approx(1, abs=1e-12)
    assert abs(found - true) <= TO
    assert abs(plain - true) > 1e-3


@pytest.mark.parametrize("unknown", [False, True], ids=["law known", "law unknown"])
@pytest.mark.parametrize(("lam", "generator", "labels", "truth"), SPACES)
def test_labels_are_as_likely_given_features_as_the_program_makes_them(
    lam: float, generator: str, labels: int, truth: str, unknown: bool
) -> None:
    """Sent through the likelihood, P(label | own features) is P(reported | released features).

    Reports come exactly as often as they are likely, so that label shares are right.
    """
    protocol = DoubleResponse(lam, generator, labels, truth)
    shares = [Fraction(1, labels)] * labels
    laws = law_of(protocol)
    mixed: dict[Any, Fraction] = {}
    for share, law in zip(shares, laws, strict=True):
        for key, chance in law.items():
            mixed[key] = mixed.get(key, Fraction(0)) + share * chance
    unit = math.lcm(*(chance.denominator for chance in mixed.values()))
    assert unit < 100_000
    columns = columns_of([key for key, chance in mixed.items() for _ in range(int(chance * unit))])
    told = replace(protocol, truth="unknown") if unknown else protocol
    evidence = undone_noise.evidence(told, columns, one(0, labels))
    assert (evidence.note != "") is unknown
    joint: dict[Any, Any] = {}
    for label, share in enumerate(shares):
        for row, chance in true_rows(protocol, label):
            joint.setdefault(row, np.zeros(labels))[label] += float(share * chance)
    for (x, said), chance in mixed.items():
        at = int(np.flatnonzero((columns["x"] == x).all(axis=1) & (columns["y"] == said))[0])
        all_of_x = sum(each for (other, _), each in mixed.items() if other == x)
        posterior = joint.get(x, np.full(labels, 1 / labels))  # of a row that no user has, anything
        found = evidence.likelihood[at] @ (posterior / posterior.sum())
        assert found == pytest.approx(float(chance / all_of_x), abs=1e-12)


def test_rows_that_nobody_can_have_are_left_out() -> None:
    protocol = DoubleResponse(0.5, "0|1", 2, "0|2")
    columns = columns_of([((0.0,), 0), ((9.0,), 1), ((2.0,), 1)])
    evidence = undone_noise.evidence(protocol, columns, one(0, 2))
    assert evidence.users.tolist() == [0, 2]
    assert evidence.rows(np.zeros((3, 1))).tolist() == [[0.0], [2.0]]
    assert evidence.note == "1 rows of features that nobody can have were left out"


def test_public_features_are_those_of_the_senders() -> None:
    protocol = DoubleResponse(0.5, "0|1", 2)
    columns = columns_of([((0.0,), 0), ((1.0,), 1)]) | {"sender": np.array([1, 0])}
    evidence = undone_noise.evidence(protocol, columns, one(0, 2))
    x = np.array([[7.0], [8.0]])
    assert evidence.rows(x).tolist() == evidence.weighted_rows(x).tolist() == [[8.0], [7.0]]
    assert evidence.likelihood.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert evidence.unbiased() == pytest.approx(np.array([[1.5, -0.5], [-0.5, 1.5]]))


def test_ends_of_lambda() -> None:
    assert privacy.label_noise(DoubleResponse(0.0, "0|1|2", 3)) == privacy.LabelNoise(Fraction(0), 3)
    for truth in ("0|1", "0;1|1", "public", "unknown"):
        protocol, columns = DoubleResponse(1.0, "0|1", 2, truth), columns_of([((0.0,), 0), ((1.0,), 1)])
        evidence = undone_noise.evidence(protocol, columns, one(0, 2))
        assert evidence.uninformative
        with pytest.raises(InputError):
            evidence.unbiased()


def squares(model: Any, x: Any, p: Any) -> float:
    predict = model.probabilities if hasattr(model, "probabilities") else model.predict_proba
    return float(((predict(x) - p) ** 2).sum(axis=1).mean())


def made_up(users: int) -> tuple[Population, Any]:
    """Users whose features the generator draws, one label rare, and P(label | features)."""
    people = Population.synthetic(users=users, labels=2, features=2, shares=[0.85, 0.15], seed=3)
    assert people.x is not None
    each = DoubleResponse(0.4, "gaussian:2").model().likelihood(people.x)
    assert each is not None
    p = each * [0.85, 0.15]
    return people, p / p.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_each_correction_is_nearer_the_truth_than_plain_training() -> None:
    """A perfect generator that is no table: forward, by EM, and the unbiased loss with rows of the generator.

    The rows come as the error's advice says.  At this seed plain training is several times as far off.
    """
    from sklearn.linear_model import LogisticRegression

    protocol = DoubleResponse(0.4, "gaussian:2", 2, "gaussian:2")
    people, p = made_up(20_000)
    columns = p2p_sim.run(protocol, people, seed=1).output("learner")
    noise = privacy.label_noise(protocol)
    assert noise is not None
    assert noise.reports is not None
    evidence = noise.reports(columns, people)
    x = people.x
    assert x is not None
    with pytest.raises(
        InputError, match=r"DoubleResponse\(0, generator, labels, truth=generator\) releases them"
    ):
        evidence.unbiased()
    half = Population.from_arrays(y=np.arange(4000) % 2 == 1)
    drawn = p2p_sim.run(DoubleResponse(0.0, "gaussian:2", 2, "gaussian:2"), half, seed=2).output("learner")
    chances = np.stack([(drawn["y"] == label) / 2000 for label in (0, 1)])
    loss = double_response(columns["y"], protocol.lam, chances)
    backward = WeightedLossRegression().fit_losses(
        np.concatenate([columns["x"], drawn["x"]]),
        len(columns["y"]) * np.concatenate([loss.released, loss.synthetic]),
    )
    off = {
        "plain": squares(WeightedLossRegression().fit(columns["x"], columns["y"]), x, p),
        "forward": squares(losses.match_reports(x, evidence), x, p),
        "by EM": squares(ForwardClassifier(LogisticRegression(), 40).fit(x, evidence), x, p),
        "backward": squares(backward, x, p),
    }
    assert max(off[name] for name in ("forward", "by EM", "backward")) < off["plain"] / 3, off


@pytest.mark.parametrize("truth", ["public", "gaussian:2"])
def test_a_run_on_made_up_users_is_corrected(truth: str) -> None:
    run = simulate(
        DoubleResponse(0.6, "gaussian:2", 2, truth), 6000, features=2, share=0.15, seed=1, progress=False
    )
    found = run.notes["accuracy"]
    assert found["correction"] == "corrected for lies"
    logs = [found["metrics"][name]["log_loss"] for name in ("accuracy_corrected", "accuracy_private")]
    assert logs[0] < logs[1] - 0.1
    assert (undone_noise.OWN in found["note"]) is (truth == "public")


def test_why_there_is_no_correction_is_said() -> None:
    run = simulate(DoubleResponse(0.3, "gaussian:2", 2, "unknown"), 500, features=2, seed=1, progress=False)
    found = run.notes["accuracy"]
    assert found["accuracy_corrected"] is None
    assert "no model is corrected for noise: truth = 'unknown': it is not known which" in found["note"]
    run = simulate(DoubleResponse(0.3, "0,0|1,1", 2, "unknown"), 500, features=2, seed=1, progress=False)
    assert run.notes["accuracy"]["accuracy_corrected"] is not None
    assert undone_noise.COUNTED in run.notes["accuracy"]["note"]


@pytest.mark.parametrize(("lam", "labels"), [(0.25, 2), (0.5, 3)])
def test_the_loss_of_labels_without_features_is_unbiased(lam: float, labels: int) -> None:
    """Dummy features: over all that a user may say, the undone shares are her label, so any constant's loss is hers."""
    protocol = DummyFeatures(lam, labels)
    noise = privacy.label_noise(protocol)
    assert noise is not None
    assert noise.whose == "everybody"
    cost = loss_of([1.0], labels)
    for label in range(labels):
        found = plain = 0.0
        for seen, chance in privacy.enumerate_view(protocol, one(label, labels)).world.items():
            said = int(re.findall(r"\d+", seen[0][0][-1])[0])
            found += float(chance) * float(losses.undo(losses.law_of(noise), np.eye(labels)[said]) @ cost)
            plain += float(chance) * cost[said]
        assert abs(found - cost[label]) <= TO
        assert abs(plain - cost[label]) > 1e-3
    with pytest.raises(InputError, match="0, 1"):
        losses.undo(losses.law_of(privacy.LabelNoise(Fraction(1, 2), 2)), np.eye(2)[0])

"""Learners that undo the noise of multi-stage response: by enumeration of the program, and in a run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.learning.experiment import learn
from p2p_sim.learning.training import any_classifier, losses
from p2p_sim.privacy.mechanisms import multi_stage
from protocols import MultiStage

TO = 1e-10


def staged(y: Any, stage: Any, labels: int = 2) -> Population:
    column = np.array(y, np.uint8)
    return Population.from_arrays(y=column if labels > 2 else column > 0, public={"stage": np.array(stage)})


def worlds(protocol: MultiStage, people: Population) -> list[tuple[dict[str, Any], Any, float]]:
    """Everything that the learner may get: her columns, the prior of each report, and how likely it is."""
    found = []
    for seen, chance in privacy.enumerate_view(protocol, people).world.items():
        rows = {kind: [row for row in seen[0] if row[0] == kind] for kind in ("report", "prior")}
        sender = np.array([row[2] for row in rows["report"]])
        y = np.array([int(row[-1].split(",")[1].strip(" )")) for row in rows["report"]])
        prior = np.full((len(y), protocol.labels), 1 / protocol.labels)
        for row in rows["prior"]:
            numbers = [int(word) for word in re.findall(r"\d+", row[-1])]
            prior[sender == row[3]] = np.array(numbers) / 2**15
        columns = {"sender": sender, "stage": people.public["stage"][sender], "y": y}
        found.append((columns, prior, float(chance)))
    return found


CASES = [
    (MultiStage(1.0, 2, 2, "public"), [0, 1, 0], [1, 1, 2]),
    (MultiStage(1.0, 2, 3, "public"), [1, 0, 1], [1, 2, 3]),
    (MultiStage(3.0, 2, 2, "public"), [1, 1, 0], [1, 1, 2]),
    pytest.param(MultiStage(1.0, 3, 2, "public"), [0, 1, 2], [1, 1, 2], marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("protocol", "y", "stage"), CASES)
def test_the_corrected_loss_is_unbiased_over_all_stages(protocol: MultiStage, y: Any, stage: Any) -> None:
    """Added up over all that may happen, the loss of every user whose report has an inverse is her true loss.

    Whether it has one follows from the reports of others, so the sum is of true losses of the same users.  Stage 1
    always has one.  Plain labels are off.
    """
    people, k = staged(y, stage, protocol.labels), protocol.labels
    cost = -log_softmax(
        np.random.default_rng(1).normal(size=(len(y), k)) * 2, axis=1
    )  # of each user, by label
    found, plain, true = np.zeros((3, len(y)))
    total = 0.0
    for columns, prior, chance in worlds(protocol, people):
        total += chance
        priors = multi_stage.priors(protocol, columns, people)
        assert (priors == prior).all()  # what the learner sent
        for i, user in enumerate(columns["sender"]):
            alone = multi_stage.prior_response.of_reports(
                protocol.response, priors[[i]], columns["sender"][[i]], columns["y"][[i]]
            )
            if not alone.note:
                found[user] += chance * float((alone.unbiased() @ cost[user])[0])
                plain[user] += chance * cost[user, columns["y"][i]]
                true[user] += chance * cost[user, y[user]]
    assert total == pytest.approx(1, abs=1e-12)
    assert np.abs(found - true).max() <= TO
    assert np.abs(plain - true).max() > 1e-3
    first = np.array(stage) == 1
    assert true[first] == pytest.approx(cost[np.arange(len(y)), y][first], abs=1e-12)


@pytest.mark.parametrize(("protocol", "y", "stage"), CASES[:2])
def test_reports_are_as_likely_as_the_program_makes_them(protocol: MultiStage, y: Any, stage: Any) -> None:
    """Of the last user, for each of her labels, given all that came before her."""
    last = len(y) - 1
    before: list[dict[Any, Any]] = []
    for label in range(protocol.labels):
        people = staged([*y[:-1], label], stage, protocol.labels)
        table: dict[Any, Any] = {}
        for columns, _, chance in worlds(protocol, people):
            assert columns["sender"][-1] == last
            row = table.setdefault(tuple(columns["y"][:-1]), np.zeros(protocol.labels))
            row[columns["y"][-1]] += chance
        before.append(table)
    for said in before[0]:
        rows = np.stack([table[said] / table[said].sum() for table in before])
        for j in np.flatnonzero(rows.any(axis=0)):
            columns = {
                "sender": np.arange(len(y)),
                "stage": np.array(stage),
                "y": np.array([*said, j]),
            }
            evidence = multi_stage.evidence(protocol, columns, staged(y, stage, protocol.labels))
            assert evidence.likelihood[-1] == pytest.approx(rows[:, j], abs=1e-14)


def test_where_there_is_no_inverse_the_advice_works() -> None:
    """Two users who say the same make a prior under which the third says nothing."""
    protocol, people = MultiStage(1.0, 2, 2, "public"), staged([0, 0, 1], [1, 1, 2])
    columns = {"sender": np.arange(3), "stage": np.array([1, 1, 2]), "y": np.array([0, 0, 0], np.uint8)}
    evidence = multi_stage.evidence(protocol, columns, people)
    assert evidence.note.startswith("1 of 3 reports are of users who can report only some of the 2 labels")
    with pytest.raises(InputError, match="does not tell any labels apart") as caught:
        evidence.unbiased()
    assert "match_reports" in str(caught.value)
    assert "rows of each column with stage == 1" in str(caught.value)
    first = {name: column[columns["stage"] == 1] for name, column in columns.items()}
    weights = multi_stage.evidence(protocol, first, people).unbiased()
    lie = float(protocol.response.lying(2))
    assert weights == pytest.approx(np.linalg.inv([[1 - lie, lie], [lie, 1 - lie]])[[0, 0]])
    assert losses.match_reports(np.arange(3.0)[:, None], evidence).converged


def rare(users: int, seed: int) -> tuple[Population, Any]:
    """Three labels of which one is rare, told apart by two features, and P(label | features) of each user."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(users, 2))
    p = np.exp(log_softmax(np.stack([1.2 + x[:, 0], x[:, 1], -1.5 - x[:, 0]], axis=1), axis=1))
    y = (rng.random(users)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1).astype(np.uint8)
    return Population.from_arrays(y=y, x=x), p


def test_each_correction_is_nearer_the_truth_than_plain_training() -> None:
    """Probabilities are known: mean squared distance, forward, backward (of stage 1) and after training.

    At this seed plain labels are 7 times as far off as the worst of the three.
    """
    from p2p_sim.learning.training.weighted_regression import WeightedLossRegression

    protocol = MultiStage(1.0, 3, 2)
    people, p = rare(20_000, 5)
    columns = p2p_sim.run(protocol, people, seed=3).output("learner")
    noise = privacy.label_noise(protocol)
    assert noise is not None
    assert noise.reports is not None
    assert people.x is not None
    sender = columns["sender"]
    plain = WeightedLossRegression().fit(people.x[sender], columns["y"]).predict_proba(people.x)
    forward = losses.match_reports(people.x, noise.reports(columns, people)).probabilities(people.x)
    first = {name: column[columns["stage"] == 1] for name, column in columns.items()}
    backward = WeightedLossRegression().fit_losses(
        people.x[first["sender"]], noise.reports(first, people).unbiased()
    )
    after = any_classifier.after_training(plain, multi_stage.matrix(protocol, columns, people))
    off = {
        name: float(((each - p) ** 2).sum(axis=1).mean())
        for name, each in (
            ("plain", plain),
            ("forward", forward),
            ("backward", backward.predict_proba(people.x)),
            ("after", after),
        )
    }
    assert max(off[name] for name in ("forward", "backward", "after")) < off["plain"] / 3, off


def test_the_matrix_of_all_reports_is_the_mean_of_theirs() -> None:
    protocol, people = MultiStage(1.0, 3, 2), rare(300, 1)[0]
    people = Population.from_arrays(y=people.y, x=people.x, cluster=np.arange(300) % 2)
    columns = p2p_sim.run(protocol, people, seed=2).output("learner")
    priors = multi_stage.priors(protocol, columns, people)
    each = multi_stage.prior_response.matrices(protocol.response, priors)
    assert np.allclose(multi_stage.matrix(protocol, columns, people), each.mean(axis=0), rtol=0, atol=1e-12)
    assert len(np.unique(each.reshape(len(each), -1), axis=0)) == 3  # stage 1, and two clusters


@pytest.mark.parametrize("clusters", [1, 4])
def test_priors_are_those_that_travelled(clusters: int) -> None:
    """In a run of three stages, against the messages of its trace."""
    protocol = MultiStage(0.8, 3, 3)
    people = rare(900, 2)[0]
    people = Population.from_arrays(y=people.y, x=people.x, cluster=np.arange(900) * 7 % clusters)
    run = p2p_sim.run(protocol, people, seed=4, trace="full")
    columns, told = run.output("learner"), run.messages("prior")
    expected = np.full((people.users, 3), 1 / 3)
    expected[told["recipient"]] = told["p"]
    assert (multi_stage.priors(protocol, columns, people) == expected[columns["sender"]]).all()


def test_one_stage_is_uniform_noise() -> None:
    protocol = MultiStage(1.0, 3, 1)
    assert privacy.label_noise(protocol) == privacy.LabelNoise(protocol.response.lying(3), 3)


def test_a_run_on_a_data_set_is_corrected() -> None:
    """Log loss falls from 0.84 to 0.63 at this seed, of reports under a prior of each of ten clusters."""
    found = learn(MultiStage(2.0, 10), "digits", clusters=10, seed=0, progress=False).comparison
    assert found is not None
    assert found.correction == "corrected for lies"
    assert "the corrected model uses the forward loss, which needs none" in found.note
    corrected, plain = (
        found.metrics["accuracy_corrected"]["log_loss"],
        found.metrics["accuracy_private"]["log_loss"],
    )
    assert corrected is not None
    assert plain is not None
    assert corrected < plain

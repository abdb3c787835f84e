"""Multi-stage response: who answers when, which priors are told, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.core import Party, Rounds
from protocols import MultiStage, RandomizedResponse

STEP = 2**-15


def people(users: int = 6_000, stages: int = 3) -> Population:
    """Three clusters with three labels, one of which nobody has in cluster 1, and a public column of stages."""
    shares = [[0.8, 0.15, 0.05], [0.5, 0.5, 0.0], [0.34, 0.33, 0.33]]
    cluster = np.arange(users) % 3
    drawn = np.random.default_rng(4).random(users)
    y = np.array(
        [
            np.searchsorted(np.cumsum(shares[c])[:-1], u, side="right")
            for c, u in zip(cluster, drawn, strict=True)
        ]
    )
    stage = 1 + np.arange(users) // 3 % stages
    return Population.from_arrays(y=y.astype(np.uint8), cluster=cluster, public={"stage": stage})


def reportable(prior: list[float], epsilon: float) -> list[int]:
    """The labels that can be reported, written as the paper writes it."""
    order = sorted(range(len(prior)), key=lambda y: (-prior[y], y))
    chances = [
        math.fsum(prior[y] for y in order[:m]) * math.exp(epsilon) / (math.exp(epsilon) + m - 1)
        for m in range(1, len(prior) + 1)
    ]
    return order[: 1 + max(range(len(prior)), key=lambda m: (round(chances[m], 12), -m))]


def estimate(prior: list[float], counts: list[int], epsilon: float) -> list[float]:
    """The share of each label from the counts of one stage of a cluster; of labels not reported, the prior."""
    among, reports = reportable(prior, epsilon), sum(counts)
    m = len(among)
    other = 1 / (math.exp(epsilon) + m - 1)
    gap, within = (math.exp(epsilon) - 1) * other, math.fsum(prior[y] for y in among) / math.fsum(prior)
    return [
        (counts[y] / reports - other * within - (1 - within) / m) / gap if y in among else prior[y]
        for y in range(len(prior))
    ]


def told_after(estimates: list[list[float]], weights: list[int]) -> list[float]:
    """The prior from estimates of stages, weighted."""
    pooled = [
        sum(w * e[y] for w, e in zip(weights, estimates, strict=True)) / sum(weights)
        for y in range(len(estimates[0]))
    ]
    cut = [max(share, 0.0) for share in pooled]
    return [share / sum(cut) for share in cut]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_priors_are_the_debiased_histograms_of_earlier_stages(epsilon: float) -> None:
    population = people()
    run = p2p_sim.run(MultiStage(epsilon, 3, 3, "public"), population, seed=2, trace="full")
    codes, out, told = population.clusters.codes, run.output("learner"), run.messages("prior")
    for cluster in range(3):
        prior, estimates, weights = [1 / 3] * 3, [], []
        for stage in (1, 2):
            mine = (out["stage"] == stage) & (codes[out["sender"]] == cluster)
            counts = np.bincount(out["y"][mine], minlength=3).tolist()
            if (
                len(reportable(prior, epsilon)) > 1
            ):  # with one label that can be reported, reports tell nothing
                estimates.append(estimate(prior, counts, epsilon))
                weights.append(sum(counts))
            reads = (population.public["stage"][told["recipient"]] == stage + 1) & (
                codes[told["recipient"]] == cluster
            )
            rows = told["p"][reads]
            assert len(rows) > 600
            assert (rows == rows[0]).all()
            assert rows[0] == pytest.approx(told_after(estimates, weights), abs=STEP)
            prior = rows[0].tolist()


def test_everybody_answers_once_in_her_stage_among_the_labels_that_are_likely() -> None:
    population = people()
    run = p2p_sim.run(MultiStage(1.0, 3, 3, "public"), population, seed=2, trace="full")
    out, told = run.output("learner"), run.messages("prior")
    assert sorted(out["sender"]) == list(range(population.users))
    assert (population.public["stage"][out["sender"]] == out["stage"]).all()
    prior = dict(zip(told["recipient"].tolist(), told["p"].tolist(), strict=True))
    for sender, stage, y in zip(*(out[name].tolist() for name in ("sender", "stage", "y")), strict=True):
        assert stage == 1 or y in reportable(prior[sender], 1.0)


def test_chance_splits_evenly_and_no_stage_is_randomized_response() -> None:
    y = np.arange(40_000, dtype=np.uint8) % 4
    population = Population.from_arrays(y=y)
    stage = p2p_sim.run(MultiStage(1.0, 4, 4), population, seed=5).output("learner")["stage"]
    counts = np.bincount(stage, minlength=5)[1:]
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 33.4  # chi-square of 3 degrees, false alarm below 1e-6
    alone = p2p_sim.run(MultiStage(1.0, 4, 1), population, seed=5).output("learner")
    plain = p2p_sim.run(RandomizedResponse(1.0, 4), population, seed=5).output("learner")
    kept = math.e / (math.e + 3)
    for out in (alone, plain):
        assert abs((out["y"] == y).mean() - kept) < 5 * math.sqrt(
            kept * (1 - kept) / len(y)
        )  # false alarm below 1e-6


def test_a_second_stage_is_right_more_often() -> None:
    population = people(30_000, 2)
    out = p2p_sim.run(MultiStage(1.0, 3, 2, "public"), population, seed=1).output("learner")
    right = [(out["y"] == population.y[out["sender"]])[out["stage"] == stage].mean() for stage in (1, 2)]
    assert right[1] > right[0] + 0.05


def test_priors_are_counted_as_messages() -> None:
    population = people()
    counts = p2p_sim.run(MultiStage(1.0, 3, 3, "public"), population, seed=2).by_kind()
    asked = int((population.public["stage"] > 1).sum())
    assert (counts["ask"].messages, counts["ask"].nbytes) == (asked, asked * (16 + 4))
    assert (counts["prior"].messages, counts["prior"].nbytes) == (asked, asked * (16 + 3 * 2))
    assert counts["report"].messages == 6_000


def test_a_cluster_of_which_nobody_reported_has_a_uniform_prior() -> None:
    population = Population.from_arrays(
        y=np.array([0, 1, 2, 0], np.uint8), cluster=[0, 0, 1, 1], public={"stage": np.array([1, 1, 2, 2])}
    )
    run = p2p_sim.run(MultiStage(1.0, 3, 2, "public"), population, seed=0, trace="full")
    assert run.messages("prior")["p"] == pytest.approx(np.full((2, 3), 1 / 3), abs=STEP)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-9, 40.0, math.inf])
def test_extreme_budgets(epsilon: float) -> None:
    population = people(600)
    out = p2p_sim.run(MultiStage(epsilon, 3, 3, "public"), population, seed=2).output("learner")
    assert len(out["y"]) == 600
    if epsilon >= 40:
        assert (out["y"] == population.y[out["sender"]])[out["stage"] == 1].all()


def test_who_is_not_told_does_not_answer() -> None:
    population = people(600, 2)
    run = p2p_sim.run(
        MultiStage(1.0, 3, 2, "public"),
        population,
        seed=2,
        faults=["loss=0.3", "duplicate=0.5"],
        trace="full",
    )
    out, told = run.output("learner"), set(run.messages("prior")["recipient"].tolist())
    assert 100 < len(told) < 200  # of 300, whose ask and prior both arrived
    assert len(set(out["sender"].tolist())) == len(out["sender"])
    assert set(out["sender"][out["stage"] == 2].tolist()) <= told


@dataclass(frozen=True)
class Pushy(MultiStage):
    """A learner who sends priors to everybody, asked for or not, and the last one twice."""

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        parts = [reports.columns()]
        for _ in range(1, self.stages):
            yield self.ask.receive()
            ids = np.repeat(np.arange(30), 2)
            yield self.prior(to=me.each(ids), p=me.each(np.full((len(ids), self.labels), 1 / self.labels)))
            reports = yield self.report.receive()
            parts.append(reports.columns())
        return {name: np.concatenate([part[name] for part in parts]) for name in ("sender", "y")}


def test_nobody_answers_twice_whatever_priors_a_learner_sends() -> None:
    out = p2p_sim.run(Pushy(1.0, 3, 3), people(30, 1), seed=3).output("learner")
    assert sorted(out["sender"].tolist()) == list(range(30))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-0.1,), ["epsilon", "-0.1", "[0, inf]"]),
        ((1.0, 1), ["labels", "1", "from 2 to 256"]),
        ((1.0, 2, 0), ["stages", "0", "from 1 to 100"]),
        ((1.0, 2, 1.5), ["stages", "1.5", "integer"]),
        ((1.0, 2, 2, "fair"), ["split", "'fair'", "chance, public"]),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        MultiStage(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ([1, 2, 3], ["user 2", "3", "1 to 2"]),
        ([0, 1, 2], ["user 0", "0", "1 to 2"]),
        ([1.0, 2.0, 1.0], ["float64", "(3,)", "one integer a user"]),
        ([[1], [2], [1]], ["(3, 1)"]),
    ],
)
def test_stages_that_do_not_fit_are_refused(stage: Any, words: list[str]) -> None:
    population = Population.from_arrays(y=[True, False, True], public={"stage": np.array(stage)})
    with pytest.raises(ProtocolError) as caught:
        p2p_sim.run(MultiStage(1.0, split="public"), population, seed=0)
    assert all(word in str(caught.value) for word in words), caught.value


def test_populations_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ProtocolError, match="no public column 'stage'"):
        p2p_sim.run(MultiStage(1.0, split="public"), Population.from_arrays(y=[True, False]), seed=0)
    with pytest.raises(InputError, match=r"stages=3.*needs at least 3 users, the population has 2"):
        p2p_sim.run(MultiStage(1.0, stages=3), Population.from_arrays(y=[True, False]), seed=0)
    with pytest.raises(InputError, match="handles 2 label values"):
        p2p_sim.run(MultiStage(1.0), Population.from_arrays(y=np.array([0, 2], np.uint8)), seed=0)

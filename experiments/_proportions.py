"""What a release of labels is worth to a model and to an attacker, on one axis: noisy labels and proportions of bags.

A linear model stands for the paper's embedding network.  It matches what was released, whatever that is (forward loss;
for bags PROPMATCH), or takes EasyLLP's weights.  The attacker knows P(y | x), as boosted trees estimate it from true
labels of others; her advantage is that of the best attack on labels that are drawn by it, as in the paper.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments._rows import Case, content
from p2p_sim import Population
from p2p_sim.core import random_words
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage.advantage import ADVANTAGE, exceeded_claims, violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.eta import Eta
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import bag_training, losses, metrics
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    LaplaceLabelProportions,
    PeerToPeer,
    RandomizedResponse,
)

Floats = npt.NDArray[np.float64]
STAND_INS = {"clicks": "click logs of Open Bandit", "census-income": "Census-Income"}
"""For the click data of KDD Cup 2012, Track 2, which cannot be had."""

FOLDS, LEAST = 5, 1e-6
PENALTIES = (10.0, 100.0, 1e3, 1e4, 1e5)
"""Of half the squared weights, of which the best one is taken for each setting and each utility."""
UTILITIES = {"auc": max, "log_loss": min}
"""Which way each utility is better."""
KEYS = ("data", "users", "mechanism", "parameter", "crowd")


class Examples(NamedTuple):
    """Users' features and labels, test rows, and P(y = 1 | x) of each user, never learnt from her own label."""

    x: Floats
    y: npt.NDArray[np.bool_]
    x_test: Floats
    y_test: npt.NDArray[np.bool_]
    eta: Floats


@cache
def examples(data: str, users: int, tests: int) -> Examples:
    """Return so many users and test rows of a data set, drawn at random; the same for every protocol and seed."""
    folds, trees_of = (FOLDS, 60) if users > 10_000 else (3, 20)
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict

    found = datasets.load(data)
    stream = random_words.stream("experiments", "examples", 0)
    rows = random_words.order(random_words.words(0, stream, 0, len(found.y)))[: users + tests]
    x, y = found.x[rows].astype(np.float64), found.y[rows].astype(bool)
    trees = HistGradientBoostingClassifier(max_iter=trees_of, learning_rate=3 / trees_of, random_state=0)
    print(f"{data}: P(y | x) of {users:,} users by boosted trees", file=sys.stderr, flush=True)
    with one_thread():
        eta = cross_val_predict(trees, x[:users], y[:users], cv=folds, method="predict_proba")[:, 1]
    return Examples(x[:users], y[:users], x[users:], y[users:], np.clip(eta, LEAST, 1 - LEAST))


@dataclass(frozen=True)
class Release:
    """A protocol that is tried.  ``crowd``: users whose labels are mixed; ``parameter``: what is varied, as a number.

    ``easy``: train by EasyLLP instead of PROPMATCH.
    """

    mechanism: str
    parameter: float
    protocol: Protocol
    crowd: int = 1
    lie: float = 0.0
    easy: bool = False


def tried(release: Release, data: str, of: Examples, seed: int) -> dict[str, Any]:
    """Return a row: utility of the model that is trained on one run, and the attacker's advantage on another."""
    print(f"{data}: {release.mechanism} {release.parameter:g}, seed {seed}", file=sys.stderr, flush=True)
    stream = random_words.stream("experiments", "bags", 0)
    order = random_words.order(random_words.words(seed, stream, 0, len(of.y)))
    mixed = of._replace(x=of.x[order], y=of.y[order], eta=of.eta[order])
    about = {
        "data": data, "users": len(of.y), "mechanism": release.mechanism, "parameter": release.parameter,
        "crowd": release.crowd, "seed": seed,
    }  # fmt: skip
    return about | _utility(release, mixed, seed) | _advantage(release, mixed, seed)


def _people(release: Release, x: Floats, y: Any) -> Population:
    return Population.from_arrays(x=x, y=y, cluster=np.arange(len(y)) // release.crowd)


def _utility(release: Release, of: Examples, seed: int) -> dict[str, Any]:
    people = _people(release, of.x, of.y)
    bags = _bags(release, people, seed)
    made: dict[str, Any] = {}
    for penalty in PENALTIES:
        if release.easy:
            predicted = _easy(of, bags, penalty)
        else:
            predicted = losses.match(of.x, bags, release.lie, penalty=penalty).predicted(of.x_test)
        found = metrics.measure(of.y_test, predicted)
        assert predicted.probabilities is not None
        constant = bool((np.ptp(predicted.probabilities, axis=0) < losses.CONSTANT).all())
        made |= {
            f"auc_{penalty:g}": found["auc"], f"log_loss_{penalty:g}": found["log_loss"],
            f"constant_{penalty:g}": constant,
        }  # fmt: skip
    return made


def _bags(release: Release, people: Population, seed: int) -> losses.Bags:
    """Return what the learner has of each bag: a bag of one user where labels are hers."""
    columns = p2p_sim.run(release.protocol, people, seed=seed).output("learner")
    proportions = bag_training.of_run(columns, release.protocol, people)
    if proportions is not None:
        return proportions.counts()
    bag = np.arange(people.users) // release.crowd
    whose = columns["cluster"] if "cluster" in columns else bag[columns["sender"]]
    y, count = columns["y"].astype(np.int64), int(bag[-1]) + 1
    counts = np.stack([np.bincount(whose[y == label], minlength=count) for label in (0, 1)], axis=1)
    return losses.Bags(bag, counts)


def _easy(of: Examples, bags: losses.Bags, penalty: float) -> metrics.Predicted:
    """Return what a regression says that was trained by EasyLLP, on standardized features as the other is."""
    mean, spread = of.x.mean(axis=0), of.x.std(axis=0)
    spread[spread == 0] = 1.0
    prior = bags.counts.sum(axis=0) / bags.counts.sum()
    model = WeightedLossRegression(1 / penalty).fit_losses(
        (of.x - mean) / spread, losses.easy_llp(bags, prior)
    )
    chances = model.predict_proba((of.x_test - mean) / spread)
    return metrics.Predicted(chances.argmax(axis=1), chances)


def _advantage(release: Release, of: Examples, seed: int) -> dict[str, Any]:
    """Return the advantage of the best attack by P(y | x), on labels that are drawn by it, and what bounds it.

    The advantage is exact where there is a formula, else the mean over users of how much more certain a posterior is
    than P(y | x): its mean is that of right guesses, and it varies less.
    """
    stream = random_words.stream("experiments", "labels", 0)
    drawn = random_words.uniform(random_words.words(seed, stream, 0, len(of.y))) < of.eta
    run = p2p_sim.run(release.protocol, _people(release, of.x, drawn), seed=seed)
    eta = Eta(np.stack([1 - of.eta, of.eta], axis=1), "boosted trees", exact=True)
    found = attack(run, "learner", eta=eta, attackers=["optimal"])
    best, per_user = found.rows[0], found.per_user
    assert per_user is not None
    gained = (per_user.posterior - per_user.prior).reshape(-1, release.crowd).mean(axis=1)
    limits = {
        basis: [
            each.value
            for each in found.bounds
            if each.quantity == ADVANTAGE and each.holds and each.basis == basis
        ]
        for basis in ("exact", "upper")
    }
    odds = [each.value for each in found.bounds if each.holds and "infinite order" in each.source]
    return {
        "advantage": min(limits["exact"]) if limits["exact"] else float(gained.mean()),
        "exact": bool(limits["exact"]), "by_posterior": float(gained.mean()),
        "by_posterior_se": float(gained.std() / math.sqrt(len(gained))),
        "guessed": best.advantage.value, "guessed_lower": best.advantage.lower, "guessed_upper": best.advantage.upper,
        "upper_bound": min(limits["upper"]),
        "ratio": float(per_user.posterior.mean() / per_user.prior.mean()),
        "certain": float((per_user.posterior > 1 - LEAST / 10).mean()),
        "log_odds": odds[0] if odds else math.inf,
        "violations": len(violations(found)), "claims_exceeded": len(exceeded_claims(found)),
    }  # fmt: skip


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each setting: means over seeds, and standard errors of utilities and of the advantage.

    Each utility is that with the penalty of its best mean, as the paper takes the learning rate of the highest mean
    AUC; ``edge`` names those whose penalty is the first or the last one, ``constant`` counts the trials whose model of
    the AUC says the same of every row.  The error of an advantage that is measured is that of its users.  Of what
    ``bounds`` and ``agrees`` ask there are counts over the trials.
    """
    found = []
    for key in dict.fromkeys(tuple(row[name] for name in KEYS) for row in rows):
        mine = [row for row in rows if tuple(row[name] for name in KEYS) == key]
        made: dict[str, Any] = dict(zip(KEYS, key, strict=True)) | {"trials": len(mine)}
        best = {name: _best(mine, name) for name in UTILITIES}
        made |= {"penalty": best["auc"], "penalty_log_loss": best["log_loss"]}
        made["edge"] = " ".join(name for name in UTILITIES if best[name] in (PENALTIES[0], PENALTIES[-1]))
        made["constant"] = sum(row[f"constant_{best['auc']:g}"] for row in mine)
        columns = {name: f"{name}_{each:g}" for name, each in best.items()} | {"advantage": "advantage"}
        for name, column in columns.items():
            values = [row[column] for row in mine]
            made[name] = statistics.fmean(values)
            made[f"{name}_se"] = (
                statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
            )
        if not all(row["exact"] for row in mine):
            made["advantage_se"] = math.hypot(*(row["by_posterior_se"] for row in mine)) / len(mine)
        for name in ("guessed", "upper_bound", "ratio", "certain", "log_odds"):
            made[name] = statistics.fmean(row[name] for row in mine)
        found.append(made | _checked(mine))
    return found


def _best(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the penalty with the best mean of a utility over seeds."""
    return UTILITIES[name](
        PENALTIES, key=lambda each: statistics.fmean(row[f"{name}_{each:g}"] for row in rows)
    )


def _checked(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many bounds attacks exceed, and in how many trials the interval of guesses has the advantage."""
    return {
        "violations": sum(row["violations"] for row in rows),
        "claims_exceeded": sum(row["claims_exceeded"] for row in rows),
        "above": sum(
            row["advantage"] > row["upper_bound"] + 4 * row["by_posterior_se"] + 1e-12 for row in rows
        ),
        "guesses_agree": sum(
            row["guessed_lower"] - 1e-12 <= row["advantage"] <= row["guessed_upper"] + 1e-12 for row in rows
        ),
    }


def cases(releases: Sequence[Release], data: str, users: int, tests: int, seeds: int) -> list[Case]:
    """Return the runs of all releases and seeds as settings and what makes them."""
    return [
        (
            {
                "data": data, "content": content(data), "users": users, "tests": tests,
                "mechanism": release.mechanism, "parameter": release.parameter, "crowd": release.crowd, "seed": seed,
            },
            partial(_rows, release, data, users, tests, seed),
        )
        for release in releases
        for seed in range(seeds)
    ]  # fmt: skip


def _rows(release: Release, data: str, users: int, tests: int, seed: int) -> list[dict[str, Any]]:
    return [tried(release, data, examples(data, users, tests), seed)]


def difference(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return by how much a column of the first row is larger, and the standard error of that; 0 for single trials."""
    error = math.hypot(*(0.0 if math.isnan(row[f"{name}_se"]) else row[f"{name}_se"] for row in (one, other)))
    return one[name] - other[name], error


def flip_of(epsilon: float) -> float:
    """Return the probability of a lie in randomized response on two labels."""
    return 1 / (1 + math.exp(epsilon))


def response(epsilon: float) -> Release:
    """Return randomized response."""
    return Release("RR", epsilon, RandomizedResponse(epsilon), 1, flip_of(epsilon))


def proportions(size: int, easy: bool = False) -> Release:
    """Return label proportions of bags, trained by PROPMATCH or EasyLLP."""
    return Release("EasyLLP" if easy else "LLP", float(size), LabelProportions(size), size, easy=easy)


def laplace(size: int, epsilon: float, parameter: float) -> Release:
    """Return label proportions with Laplace noise, on a grid of eighths of a label."""
    return Release("Laplace LLP", parameter, LaplaceLabelProportions(epsilon, size, grid=8), size)


def shuffle(size: int, epsilon: float) -> Release:
    """Return shuffled randomized response in crowds."""
    return Release("shuffle", epsilon, EncryptedShuffle(epsilon), size, flip_of(epsilon))


def peers(size: int, epsilon: float) -> Release:
    """Return peer-to-peer cluster randomized response in crowds, with the flip of that epsilon."""
    return Release("peer-to-peer", epsilon, PeerToPeer(flip_of(epsilon)), size, flip_of(epsilon))

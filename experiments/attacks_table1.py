"""Test and attack accuracy of label-private methods on MNIST and CIFAR-10 (Attacks 2023, Table 1).

The attack says of every training image what the model says: its accuracy is the training accuracy.  The paper trains
deep networks on GPUs.  Here all methods share one model that two cores can train: least squares on features learnt
without a label (k-means of patches), its penalty chosen by the squared error on a fifth of the same noisy targets.
CIFAR-10 is a lossy copy.

- LP-1ST: randomized response.
- LP-1ST (in-domain prior): answers under the noisy label shares of 100 clusters of those features.
- LP-1ST (out-of-domain prior): the same, 50 clusters of features learnt on Fashion-MNIST, where the paper has a
  network trained on ImageNet.
- ALIBI: noisy one-hot labels, and the posterior of each as the target.
- PATE: 200 teachers, 100 queries, all of which are accounted for; the paper's accounting looks at the votes, so that
  its epsilon is itself private.  FixMatch is in attacks_table1_fixmatch, which needs torch.

Priors cost the epsilon of the authors' code, .05 and .025, which is part of the epsilon here.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _patch_features, _plots
from experiments._common import Claim, Experiment, Options, Outcome, Verdict, main
from experiments._rows import Case, content
from p2p_sim import Population, privacy
from p2p_sim.core.random_words import order, own_words, stream
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import pate_accounting
from p2p_sim.learning.training.kmeans import kmeans
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.pate import PATEClassifier, noisy
from protocols import Alibi, PriorResponse, RandomizedResponse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Row = dict[str, Any]

PAPER = "Attacks 2023, Table 1"
ROLE = "attacks, table 1"
EPSILONS = (1.0, 0.1)
DIGITS = 10
OTHER = "fashion-mnist"
"""Where features out of the domain are learnt."""

LP, INSIDE, OUTSIDE, PATE, ALIBI = (
    "LP-1ST", "LP-1ST (in-domain prior)", "LP-1ST (out-of-domain prior)", "PATE", "ALIBI",
)  # fmt: skip
TRUE = "true labels"

PRINTED: Mapping[tuple[str, float, str], tuple[float, float]] = {
    ("mnist", 1.0, LP): (93.3, 93.3), ("mnist", 0.1, LP): (20.8, 20.9),
    ("mnist", 1.0, INSIDE): (97.1, 96.5), ("mnist", 0.1, INSIDE): (97.0, 96.2),
    ("mnist", 1.0, OUTSIDE): (94.6, 93.7), ("mnist", 0.1, OUTSIDE): (86.2, 85.2),
    ("mnist", 1.0, PATE): (99.3, 99.1), ("mnist", 0.1, PATE): (23.6, 23.0),
    ("mnist", 1.0, ALIBI): (96.3, 96.3), ("mnist", 0.1, ALIBI): (21.5, 20.8),
    ("cifar10", 1.0, LP): (61.5, 61.9), ("cifar10", 0.1, LP): (15.5, 15.8),
    ("cifar10", 1.0, INSIDE): (75.4, 75.7), ("cifar10", 0.1, INSIDE): (66.3, 66.3),
    ("cifar10", 1.0, OUTSIDE): (89.5, 89.8), ("cifar10", 0.1, OUTSIDE): (87.6, 86.9),
    ("cifar10", 1.0, PATE): (92.4, 92.1), ("cifar10", 0.1, PATE): (18.6, 18.6),
    ("cifar10", 1.0, ALIBI): (67.5, 69.6), ("cifar10", 0.1, ALIBI): (13.6, 13.9),
}  # fmt: skip
"""Test and attack accuracy in Table 1, per cent; of PATE the paper's PATE-FM."""

PRIORS = {INSIDE: (100, 0.05), OUTSIDE: (50, 0.025)}
"""Clusters, and the epsilon of their label shares, in the authors' code."""
TEACHERS, QUERIES, DELTA = 200, 100, 1e-5
PENALTIES = tuple(10.0**power for power in range(-1, 7))
HELD_OUT = 0.2
NEAR, ROUNDED = 0.02, 0.0005
"""Points between attack and test accuracy that the paper calls almost identical; what printed ones may be off by
rounding."""
ERRORS = 2.0
"""Joint standard errors by which two accuracies differ."""
WHY = "linear models on features learnt without a label stand for the paper's deep networks"


@dataclass(frozen=True)
class Size:
    """Data sets, training and test rows of each, centres of patches, and runs of each setting."""

    data: tuple[str, ...] = ("mnist", "cifar10")
    rows: int = 60_000
    tested: int = 10_000
    centres: int = 200
    seeds: int = 2


QUICK = Size(("mnist",), rows=5_000, tested=2_000, centres=40, seeds=1)


@dataclass(frozen=True, eq=False)
class Images:
    """Features of training and test images with their labels, and the cluster of each training image by prior."""

    name: str
    pixels: Array
    pixels_test: Array
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    cluster: Mapping[str, Array]


def images(name: str, size: Size) -> Images:
    """Read a data set, learn features from its images and from those of another data set, and cluster both."""
    data = datasets.load(name, multiclass=True)
    assert data.test is not None
    train, test = np.flatnonzero(~data.test), np.flatnonzero(data.test)
    # files are in the order of classes
    train, test = (
        part[order(own_words(0, stream(ROLE, f"rows {number}", 0), 0, len(part)))][:wanted]
        for number, (part, wanted) in enumerate(((train, size.rows), (test, size.tested)))
    )
    channels = 3 if data.x.shape[1] % 3 == 0 else 1
    side = math.isqrt(data.x.shape[1] // channels)
    own = _patch_features.learnt(data.x[train], side, channels, size.centres, 0)
    x, x_test = (_scaled(own.features(data.x[rows], side, 3)) for rows in (train, test))
    grey = data.x[train].reshape(len(train), -1, channels).mean(axis=2)
    far = _scaled(_elsewhere(size.centres).features(grey, side, 3))
    found = {
        prior: kmeans(_few_columns(features), PRIORS[prior][0], 0)
        for prior, features in ((INSIDE, x), (OUTSIDE, far))
    }
    y = np.asarray(data.y, np.int64)
    return Images(name, data.x[train], data.x[test], x, y[train], x_test, y[test], found)


@lru_cache(maxsize=1)
def _elsewhere(centres: int) -> _patch_features.Filters:
    """Return filters learnt on the other data set."""
    other = datasets.load(OTHER, multiclass=True)
    assert other.test is not None
    return _patch_features.learnt(other.x[~other.test], math.isqrt(other.x.shape[1]), 1, centres, 0)


def _scaled(rows: Array) -> Array:
    """Return root features: sums of quarters are skewed."""
    return np.sqrt(rows)


def _few_columns(rows: Array) -> Array:
    from sklearn.decomposition import PCA

    with one_thread():
        return np.asarray(PCA(30, whiten=False, random_state=0).fit_transform(rows))


class LeastSquares:
    """Least squares with a penalty on fixed features, for many targets: the features are decomposed once.

    The penalty is the one of ``PENALTIES`` with the least squared error on rows held out; these are part of the same
    noisy targets, so that it costs no privacy.
    """

    def __init__(self, x: Array):
        self.mean, self.deviation = x.mean(axis=0), x.std(axis=0) + 1e-6
        rows = self._standard(x)
        held = order(own_words(0, stream(ROLE, "held out", 0), 0, len(x)))[: int(HELD_OUT * len(x))]
        self.held = np.zeros(len(x), np.bool_)
        self.held[held] = True
        self.rows = rows
        with one_thread():
            self.parts = [
                np.linalg.eigh(each.T.astype(np.float64) @ each) for each in (rows[~self.held], rows)
            ]

    def _standard(self, x: Array) -> Array:
        return np.asarray((x - self.mean) / self.deviation, np.float32)

    def fitted(self, targets: Array) -> Callable[[Array], Array]:
        """Return what guesses labels from features, fitted to targets (n, k)."""
        middle, kept = targets.mean(axis=0), ~self.held
        off = targets - middle
        with one_thread():
            for_choice = [self._weights(0, self.rows[kept], off[kept], penalty) for penalty in PENALTIES]
            errors = [((self.rows[self.held] @ each - off[self.held]) ** 2).sum() for each in for_choice]
            weights = self._weights(1, self.rows, off, PENALTIES[int(np.argmin(errors))])

        def guess(x: Array) -> Array:
            with one_thread():
                return np.asarray((self._standard(x) @ weights + middle).argmax(axis=1))

        return guess

    def _weights(self, part: int, rows: Array, targets: Array, penalty: float) -> Array:
        values, vectors = self.parts[part]
        projected = vectors.T @ (rows.T @ targets)
        return np.asarray(vectors @ (projected / (values + penalty)[:, None]), np.float32)


@dataclass(frozen=True)
class Released:
    """What a method trains on: targets (n, k), or a model that is trained already; epsilon at delta, in nats."""

    epsilon: float
    targets: Array | None = None
    guess: Callable[[Array], Array] | None = None
    delta: float = 0.0


def reports(protocol: Any, people: Images, seed: int, **public: Array) -> dict[str, Array]:
    """Run a protocol among the users; return the learner's columns in the order of users."""
    users = Population.from_arrays(y=people.y.astype(np.uint8), public=public)
    columns = p2p_sim.run(protocol, users, seed=seed, digest=False, progress=False).output("learner")
    place = np.argsort(columns["sender"])
    return {name: column[place] for name, column in columns.items()}


def _one_hot(y: Array) -> Array:
    return np.eye(DIGITS, dtype=np.float32)[y.astype(np.int64)]


def response(people: Images, epsilon: float, seed: int) -> Released:
    """Train on randomized response."""
    return Released(epsilon, _one_hot(reports(RandomizedResponse(epsilon, DIGITS), people, seed)["y"]))


def with_prior(kind: str) -> Callable[[Images, float, int], Released]:
    """Return the method that answers under the noisy label shares of clusters."""
    _, spent = PRIORS[kind]

    def method(people: Images, epsilon: float, seed: int) -> Released:
        cluster = people.cluster[kind]
        counts = np.zeros((int(cluster.max()) + 1, DIGITS), np.int64)
        np.add.at(counts, (cluster, people.y), 1)
        kept = np.maximum(noisy(counts, 2 / spent, pate_accounting.LAPLACE, seed), 1.0)
        prior = (kept / kept.sum(axis=1, keepdims=True))[cluster]
        found = reports(PriorResponse(epsilon - spent, DIGITS, "public"), people, seed, prior=prior)
        shares = pate_accounting.profile(2 / spent, 1, pate_accounting.LAPLACE).epsilon(0.0)
        return Released(epsilon - spent + shares, _one_hot(found["y"]))

    return method


def alibi(people: Images, epsilon: float, seed: int) -> Released:
    """Train on the posterior of each label, given noisy one-hot labels and a uniform prior."""
    protocol = Alibi(epsilon, DIGITS)
    users = Population.from_arrays(y=people.y.astype(np.uint8))
    columns = p2p_sim.run(protocol, users, seed=seed, digest=False, progress=False).output("learner")
    evidence = privacy.label_noise(protocol).reports(columns, users)
    posterior = np.empty((len(people.y), DIGITS), np.float32)
    posterior[evidence.users] = evidence.likelihood / evidence.likelihood.sum(axis=1, keepdims=True)
    return Released(epsilon, posterior)


def pate(people: Images, epsilon: float, seed: int) -> Released:
    """Train a student on the noisy answers of teachers, all of them least squares on the features."""
    from sklearn.linear_model import RidgeClassifier

    simple = RidgeClassifier(alpha=100.0)
    model = PATEClassifier(
        simple, simple, teachers=min(TEACHERS, len(people.y) // 50), queries=QUERIES,
        noise=pate_accounting.calibrate(epsilon, DELTA, QUERIES), classes=range(DIGITS), seed=seed + 1,
        public_seed=0,
    ).fit(people.x, people.y)  # fmt: skip
    return Released(float(model.epsilon(DELTA)), guess=lambda x: np.asarray(model.predict(x)), delta=DELTA)


METHODS: dict[str, Callable[[Images, float, int], Released]] = {
    LP: response, INSIDE: with_prior(INSIDE), OUTSIDE: with_prior(OUTSIDE), PATE: pate, ALIBI: alibi,
}  # fmt: skip


def cases(size: Size) -> list[Case]:
    """Return true labels, and each epsilon and method, of each data set, as settings and what computes their row."""
    about = {"rows": size.rows, "tested": size.tested, "centres": size.centres, "seeds": size.seeds}
    return [
        (
            about
            | {"data": name, "content": content(name, multiclass=True), "method": method, "epsilon": epsilon},
            partial(measured, name, method, epsilon, size),
        )
        for name in size.data
        for method, epsilon in [(TRUE, math.inf), *((method, e) for e in EPSILONS for method in METHODS)]
    ]


def measured(name: str, method: str, epsilon: float, size: Size) -> list[Row]:
    """Return the row of a method, or of true labels."""
    people, model = _prepared(name, replace(size, data=(name,), seeds=1))
    print(f"attacks_table1: {name}, {method}, epsilon = {epsilon:g}", file=sys.stderr, flush=True)
    if method == TRUE:
        found = [Released(math.inf, _one_hot(people.y))]
    else:
        found = [METHODS[method](people, epsilon, seed) for seed in range(size.seeds)]
    return [_row(people, method, epsilon, found, [_accuracies(model, one, people) for one in found])]


@lru_cache(maxsize=1)
def _prepared(name: str, size: Size) -> tuple[Images, LeastSquares]:
    print(f"attacks_table1: features of {name}", file=sys.stderr, flush=True)
    people = images(name, size)
    return people, LeastSquares(people.x)


def _accuracies(model: LeastSquares, found: Released, people: Images) -> tuple[float, float]:
    """Return test and attack accuracy."""
    if found.targets is not None:
        guess = model.fitted(found.targets)
    else:
        assert found.guess is not None
        guess = found.guess
    return float((guess(people.x_test) == people.y_test).mean()), float((guess(people.x) == people.y).mean())


def _row(
    people: Images,
    method: str,
    epsilon: float,
    found: Sequence[Released],
    each: Sequence[tuple[float, float]],
) -> Row:
    row: Row = {"data": people.name, "users": len(people.y), "method": method, "epsilon": epsilon}
    row |= {"epsilon_spent": max(one.epsilon for one in found), "delta": found[0].delta, "seeds": len(each)}
    for number, (name, count) in enumerate((("test", len(people.y_test)), ("attack", len(people.y)))):
        values = [one[number] for one in each]
        mean = statistics.mean(values)
        chance = math.sqrt(mean * (1 - mean) / count)
        spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        row |= {name: mean, f"{name}_se": max(chance, spread)}
    said = PRINTED.get((people.name, epsilon, method))
    return row | {"printed_test": said and said[0] / 100, "printed_attack": said and said[1] / 100}


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return what the paper says of its table, held to the rows of each data set."""
    found = []
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = {(row["method"], row["epsilon"]): row for row in rows if row["data"] == name}
        why = f"{WHY}{copied(name)}"
        found += [
            identical(name, mine, "for all methods", why),
            falls(name, mine, "little is learnt", why),
            priors(name, mine, why),
            above(name, tuple(PRIORS), EPSILONS[0], mine, why),
            _pate(name, mine, why),
            printed(name, {key: row for key, row in mine.items() if key[0] != PATE}, why),
        ]
    return found


Table = Mapping[tuple[str, float], Row]
LOSSY = ("cifar10",)
"""Data sets that stand in for the paper's: copies that have lost something."""


def copied(name: str) -> str:
    """Return what a reason says of a data set that is no exact copy."""
    return f"; {name} is a lossy copy" if name in LOSSY else ""


def as_far_as(name: str, decided: Verdict) -> Verdict:
    """Return a verdict as far as a data set allows it: a lossy copy shows the shape, or nothing can be compared."""
    if name not in LOSSY:
        return decided
    return "reproduced in shape" if decided.startswith("reproduced") else "not comparable"


def identical(name: str, mine: Table, whom: str, why: str) -> Claim:
    """Return whether the attack is as accurate as the model on test rows; ``whom``: of which methods."""
    gap = max(abs(row["attack"] - row["test"]) for row in mine.values() if math.isfinite(row["epsilon"]))
    row = mine[TRUE, math.inf]
    return Claim(
        PAPER,
        f"{name}: attack accuracy is almost identical to test accuracy, {whom}",
        f"they differ by at most {gap:.1%}; without privacy {row['attack']:.1%} and {row['test']:.1%}",
        as_far_as(name, "reproduced" if gap <= NEAR else "not reproduced"),
        f"almost: within {NEAR:.0%}; {why}",
    )


def falls(name: str, mine: Table, little: str, why: str) -> Claim:
    """Return whether methods without a prior learn much at the larger epsilon and ``little``, not nothing, below."""
    high, low = EPSILONS
    pairs = {method: (mine[method, high], mine[method, low]) for method in (LP, ALIBI)}
    found = [fallen(before, after) for before, after in pairs.values()]
    verdict: Verdict = "not comparable" if "not comparable" in found else "reproduced in shape"
    listed = ", ".join(
        f"{method} {before['test']:.1%} to {after['test']:.1%} ± {after['test_se']:.1%} (printed "
        f"{after['printed_test']:.1%})"
        for method, (before, after) in pairs.items()
    )
    return Claim(
        PAPER,
        f"{name}: without a prior {little} at epsilon = {low:g}, much at epsilon = {high:g}",
        f"test accuracy from epsilon = {high:g} to {low:g}: {listed}; a guess has {1 / DIGITS:.0%}, true labels give "
        f"{mine[TRUE, math.inf]['test']:.1%}",
        as_far_as(name, "not reproduced" if "not reproduced" in found else verdict),
        "little: less than half of it is left, and by two standard errors more than a guess has; not reproduced: more "
        f"is left, or no more than a guess where the printed accuracy is two standard errors above; {why}",
    )


def fallen(before: Row, after: Row) -> Verdict:
    """Return whether a method learns much at the larger epsilon, and little but something at the smaller one."""
    some = after["test"] - ERRORS * after["test_se"] > 1 / DIGITS
    less = after["test"] + ERRORS * after["test_se"] < after["printed_test"]
    if before["test"] <= 2 * after["test"] or (less and not some):
        return "not reproduced"
    return "reproduced in shape" if some else "not comparable"


def priors(name: str, mine: Table, why: str, whom: str = "") -> Claim:
    """Return what the paper says of priors, held to the rows of a data set; ``whom``: of which methods, if not all."""
    high, low = EPSILONS
    kept = {prior: mine[prior, low]["test"] for prior in PRIORS}
    plain = mine[LP, low]["test"]
    true = mine[TRUE, math.inf]
    best = max(min(mine[prior, low][each] / true[each] for each in ("test", "attack")) for prior in PRIORS)
    listed = ", ".join(
        f"{prior} {value:.1%} (of {mine[prior, high]['test']:.1%})" for prior, value in kept.items()
    )
    shape: Verdict = "reproduced in shape" if min(kept.values()) > plain + 0.1 else "not reproduced"
    return Claim(
        PAPER,
        f"{name}{whom}: with a prior, test and attack accuracy are high even at epsilon = {low:g}",
        f"test accuracy at epsilon = {low:g} (of that at {high:g}): {listed}; LP-1ST {plain:.1%}; the better "
        f"prior keeps {best:.1%} of what true labels give, of both accuracies",
        as_far_as(name, "reproduced" if best > 0.9 and shape != "not reproduced" else shape),
        "reproduced: the better prior keeps 90 %; in shape: both are ten points above LP-1ST; "
        f"{why}; clusters of features learnt from patches are less pure than those of the paper's self-supervised "
        "networks",
    )


def above(name: str, methods: Sequence[str], epsilon: float, mine: Table, why: str) -> Claim:
    """Return whether methods are more accurate than LP-1ST at an epsilon, as their printed accuracies are."""
    plain = mine[LP, epsilon]
    rows = [mine[method, epsilon] for method in methods]
    listed = ", ".join(
        f"{row['method']} {row['test']:.1%} (printed {row['printed_test']:.1%})" for row in rows
    )
    return Claim(
        PAPER,
        f"{name}: at epsilon = {epsilon:g} {' and '.join(row['method'] for row in rows)} "
        f"{'are' if len(rows) > 1 else 'is'} more accurate than {LP}",
        f"{listed}; {LP} {plain['test']:.1%} (printed {plain['printed_test']:.1%})",
        as_far_as(name, ordered([_gap(row, plain) for row in rows], "reproduced in shape")),
        f"in shape: all are, by two joint standard errors; not reproduced: one is less accurate, by as much; {why}",
    )


def ordered(gaps: Sequence[float], good: Verdict) -> Verdict:
    """Return the verdict of an order, by differences in standard errors: "not comparable" where one cannot be told."""
    if min(gaps) < -ERRORS:
        return "not reproduced"
    return good if min(gaps) > ERRORS else "not comparable"


def _gap(one: Row, other: Row) -> float:
    """Return by how many joint standard errors one is more accurate on test rows."""
    return float(one["test"] - other["test"]) / math.hypot(one["test_se"], other["test_se"])


def _pate(name: str, mine: Table, why: str) -> Claim:
    """Return whether PATE without FixMatch, which is not of the paper, is below LP-1ST at the larger epsilon."""
    one, plain = mine[PATE, EPSILONS[0]], mine[LP, EPSILONS[0]]
    return Claim(
        f"this project: {PAPER}, with PATE that has no FixMatch",
        f"{name}: at epsilon = {EPSILONS[0]:g} PATE is less accurate than {LP}, of all rows",
        f"{one['test']:.1%} ± {one['test_se']:.1%} for {plain['test']:.1%} ± {plain['test_se']:.1%} of "
        f"{one['users']:,} rows",
        ordered([_gap(plain, one)], "reproduced"),
        f"less accurate: by two joint standard errors; {why}; PATE-FM, of which the paper prints the opposite, is in "
        "attacks_table1_fixmatch and attacks_table1_network",
    )


def printed(name: str, mine: Table, why: str) -> Claim:
    """Return whether test accuracies are those of the table: within errors, or at least in its order."""
    told = [row for row in mine.values() if row["printed_test"] is not None]
    off = [abs(row["test"] - row["printed_test"]) for row in told]
    exact = [away <= 2 * row["test_se"] + ROUNDED for away, row in zip(off, told, strict=True)]
    pairs = [
        (one, two) for one in told for two in told
        if one["epsilon"] == two["epsilon"] and one["printed_test"] > two["printed_test"] + NEAR
    ]  # fmt: skip
    right = sum(one["test"] > two["test"] for one, two in pairs)
    reversed_ = sum(_gap(one, two) < -ERRORS for one, two in pairs)
    shape: Verdict = "not reproduced" if reversed_ else "not comparable"
    if right == len(pairs):
        shape = "reproduced in shape"
    listed = ", ".join(
        f"{row['method']} at epsilon = {row['epsilon']:g} {row['test']:.1%} (printed {row['printed_test']:.1%})"
        for row in told
    )
    return Claim(
        PAPER,
        f"{name}: the test accuracies of {', '.join(dict.fromkeys(row['method'] for row in told))}",
        f"{listed}; of {len(told)} {sum(exact)} are within their errors and {sum(away <= NEAR for away in off)} within "
        f"{NEAR:.0%}; of {len(pairs)} pairs that are printed {NEAR:.0%} or more apart {right} have the printed order "
        f"and {reversed_} surely another",
        as_far_as(name, "reproduced" if all(exact) else shape),
        "reproduced: all are within two standard errors; in shape: all pairs are in order; not reproduced: some are "
        f"surely not, by two joint standard errors; {why}",
    )


def plot(rows: Sequence[Row]) -> Figure:
    """Draw test and attack accuracy of each method, with the printed ones."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = _plots.panels(len(names), len(EPSILONS), (5.6 * len(EPSILONS), 3.4 * len(names)))
    for line, name in enumerate(names):
        for column, epsilon in enumerate(EPSILONS):
            axis, mine = (
                axes[line][column],
                [row for row in rows if (row["data"], row["epsilon"]) == (name, epsilon)],
            )
            places = np.arange(len(mine))
            for offset, value, colour in ((-0.2, "test", _plots.BLUE), (0.2, "attack", _plots.RED)):
                errors = [3 * row[f"{value}_se"] for row in mine]
                axis.bar(
                    places + offset, [row[value] for row in mine], 0.4, yerr=errors, color=colour, label=value
                )
                printed = [row[f"printed_{value}"] for row in mine]
                axis.plot(places + offset, printed, "_", color=_plots.BLACK, markersize=12)
            axis.set_xticks(places, [row["method"].replace(" (", "\n(") for row in mine], fontsize=6)
            axis.set(title=f"{name}, ε = {epsilon:g} (line: printed)", ylabel="accuracy", ylim=(0, 1))
            axis.legend(fontsize=7)
    return figure


def run(options: Options) -> Outcome:
    """Compute the table."""
    size = QUICK if options.quick else Size()
    if options.seeds is not None:
        size = replace(size, seeds=options.seeds)
    rows = options.kept("attacks_table1").take(cases(size))
    return Outcome({"": rows}, claims(rows), {"": lambda: plot(rows)})


EXPERIMENT = Experiment(
    "attacks_table1",
    "Test and attack accuracy of label-private methods on MNIST and CIFAR-10",
    PAPER,
    "2 minutes",
    run,
    needs=("PIL", "mnist", OTHER, "cifar10"),
    keys=("data", "users", "method", "epsilon"),
    values={"test": "test_se", "attack": "attack_se"},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

"""Log loss, weighted EAU and advantage of boosted trees on label-private labels (Attacks 2023, Table 2 and Figure 2).

The paper trains CatBoost on 1,000,000 clicks of Criteo, of which 3 % are 1.  Here stand-ins: Census-Income, of whose
labels few are 1, too, and scikit-learn's histogram gradient boosting.  Rows are drawn from its training part, and
tested on its test part.  Methods:

- true labels, for epsilon = infinity;
- LP-1ST: randomized response, trained on as it is;
- LP-1ST (noise correction): the same model, its probabilities corrected by the inverse matrix;
- LP-1ST (EM): trees trained by the likelihood of the reports, a method of this project;
- LP-1ST (domain prior): answers under the noisy label shares of 100 clusters of features, whose epsilon is part of it;
- LP-2ST: half of the users answer first; the others under what a model of the first half says of each;
- PATE, votes and answers sampled: the noise is fixed, and epsilon says how many queries there are;
- ALIBI: the denoised label of noisy one-hot labels.

The attack guesses training labels by the model, weighted to favour rare ones.  L-EAU is estimated as the paper does:
the best weighted accuracy on test rows of any of the models, of those trained on true labels too.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _plots
from experiments._common import Claim, Experiment, Options, Outcome, Verdict, main
from experiments._rows import Case, Kept, content
from experiments.multi_stage import ModelStages
from p2p_sim import Population
from p2p_sim.core.random_words import order, stream, words
from p2p_sim.leakage import advantage
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import any_classifier, pate_accounting
from p2p_sim.learning.training.kmeans import kmeans
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.pate import SAMPLED, PATEClassifier, noisy
from p2p_sim.privacy.bounds import attacks2023
from p2p_sim.privacy.label_matrices import Evidence, channel
from protocols import Alibi, PriorResponse, RandomizedResponse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Row = dict[str, Any]

TABLE, FIGURE = "Attacks 2023, Table 2", "Attacks 2023, Figure 2"
DATA = "census-income"
STAND_IN = "Census-Income stands in for Criteo, and scikit-learn's trees for CatBoost"
EPSILONS = (8.0, 4.0, 2.0, 1.0, 0.1)
LOW = 2.0
"""The epsilon from which down, the paper says, nothing beats a constant."""
ROLE = "attacks, figure 2"

CLUSTERS, PRIOR_EPSILON = 100, 0.05
"""Of the domain prior: 100 as in Appendix B; its epsilon, that of the authors' code for images, or half of a smaller
epsilon."""
TEACHERS, TEACHER_NOISE, DELTA = 50, 10.0, 1e-6
"""Of PATE; noise in votes; chosen without a look at the data, as the paper gives neither."""
MOST_QUERIES = 20_000
MEANS = (
    "log_loss", "eau", "test_utility", "attack_accuracy", "attack_says_1", "weighted_accuracy", "weighted_says_1",
    "one_label_alone",
)  # fmt: skip
"""Columns that are averaged over seeds."""
ERRORS = 5.0
"""Standard errors that an advantage must be above a bound to count: a false alarm in three million."""
FAR, LITTLE, GAP = 0.8, 0.05, 0.1
"""What is far below an EAU of 1, an advantage little above 0, and a large gap to a bound; the paper's L-EAU is .676."""


@dataclass(frozen=True)
class Size:
    """How many rows are trained on and tested on, how many trees a model has, and which epsilons are tried."""

    rows: int = 100_000
    tested: int = 50_000
    trees: int = 100
    epsilons: tuple[float, ...] = EPSILONS


QUICK = Size(4_000, 6_000, 10, (8.0, 1.0))


@dataclass(frozen=True, eq=False)
class Examples:
    """Features, categories as whole numbers, with labels; ``categorical`` says which columns are categories."""

    x: Array
    y: Array
    x_test: Array
    y_test: Array
    categorical: Array
    shares: Array
    cluster: Array


@lru_cache(maxsize=1)
def examples(rows: int, tested: int) -> Examples:
    """Return rows drawn from the data set's training part, and from its test part."""
    data = datasets.load(DATA)
    assert data.test is not None
    y = np.asarray(data.y, np.int64)
    parts = [np.flatnonzero(~data.test), np.flatnonzero(data.test)]
    train, test = (
        part[order(words(0, stream(ROLE, f"rows {number}", 0), 0, len(part)))][:wanted]
        for number, (part, wanted) in enumerate(zip(parts, (rows, tested), strict=True))
    )
    (x, categorical), (x_test, _) = (coded(data.x[rows], data.features) for rows in (train, test))
    shares = np.bincount(y[train], minlength=2) / len(train)
    with one_thread():
        cluster = kmeans(data.x[train], CLUSTERS, 0)
    return Examples(x, y[train], x_test, y[test], categorical, shares, cluster)


def coded(x: Array, names: Sequence[str]) -> tuple[Array, Array]:
    """Return features with one column for each category instead of one a value, and which columns are such."""
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(name.split("=", 1)[0], []).append(column)
    columns = [x[:, at].argmax(axis=1) if len(at) > 1 else x[:, at[0]] for at in groups.values()]
    return np.stack(columns, axis=1).astype(np.float32), np.array([len(at) > 1 for at in groups.values()])


def trees(people: Examples, size: Size) -> Any:
    """Return untrained boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=size.trees, early_stopping=False, random_state=0, categorical_features=people.categorical
    )


Model = Callable[[Array], Array]
"""From features to P(y = 1 | x)."""


def fitted(people: Examples, size: Size, rows: Array, y: Array) -> Model:
    """Return trees trained on labels; a constant where all are alike."""
    if (y == y[0]).all():
        return lambda x: np.full(len(x), float(y[0]))
    with one_thread():
        model = trees(people, size).fit(people.x[rows], y)
    return lambda x: np.asarray(model.predict_proba(x)[:, 1])


@dataclass(frozen=True)
class Released:
    """What a method gives: its ``model``, and the ``epsilon`` it costs, in nats, at ``delta``.

    ``alike``: of methods with a prior, the share of users who can report one label alone; ``queries``: those of PATE.
    """

    model: Model
    epsilon: float
    delta: float = 0.0
    alike: float | None = None
    queries: int | None = None


def reported(protocol: Any, people: Examples, seed: int, **public: Array) -> dict[str, Array]:
    """Run a protocol among the users and return what its learner has."""
    users = Population.from_arrays(y=people.y.astype(np.uint8), public=public)
    found = p2p_sim.run(protocol, users, seed=seed, digest=False, progress=False)
    return dict(found.output("learner"))


def one_stage(people: Examples, size: Size, epsilon: float, seed: int) -> dict[str, Released]:
    """Return the three methods that learn from the same randomized response."""
    protocol = RandomizedResponse(epsilon)
    columns = reported(protocol, people, seed)
    sender, said = columns["sender"].astype(np.int64), columns["y"].astype(np.int64)
    law = channel(2, float(protocol.lying()))
    plain = fitted(people, size, sender, said)

    def corrected(x: Array) -> Array:
        p = plain(x)
        return np.asarray(any_classifier.after_training(np.stack([1 - p, p], axis=1), law)[:, 1])

    em = any_classifier.ForwardClassifier(trees(people, size), rounds=3)
    em.fit(people.x, Evidence(sender, law[:, said].T, lambda: np.empty(0)))
    return {
        "LP-1ST": Released(plain, epsilon),
        "LP-1ST (noise correction)": Released(corrected, epsilon),
        "LP-1ST (EM)": Released(lambda x: np.asarray(em.predict_proba(x)[:, 1]), epsilon),
    }


def domain_prior(people: Examples, size: Size, epsilon: float, seed: int) -> Released:
    """Answer under the noisy label shares of clusters; their epsilon and that of the answers add up."""
    spent = min(PRIOR_EPSILON, epsilon / 2)
    counts = np.zeros((int(people.cluster.max()) + 1, 2), np.int64)
    np.add.at(counts, (people.cluster, people.y), 1)
    kept = np.maximum(noisy(counts, 2 / spent, pate_accounting.LAPLACE, seed), 1.0)
    prior = (kept / kept.sum(axis=1, keepdims=True))[people.cluster]
    protocol = PriorResponse(epsilon - spent, 2, "public")
    columns = reported(protocol, people, seed, prior=prior)
    alike = float((protocol.reportable(prior)[1] == 1).mean())
    model = fitted(people, size, columns["sender"].astype(np.int64), columns["y"].astype(np.int64))
    return Released(model, epsilon, alike=alike)


def two_stages(people: Examples, size: Size, epsilon: float, seed: int) -> Released:
    """Let half of the users answer under a uniform prior, and the others under what a model of these says."""
    law = channel(2, float(RandomizedResponse(epsilon).lying()))

    def believe(sender: Array, said: Array, _p: Array, asking: Array) -> Array:
        p = fitted(people, size, sender.astype(np.int64), said.astype(np.int64))(people.x[asking])
        return any_classifier.after_training(np.stack([1 - p, p], axis=1), law)

    first = words(seed, stream(ROLE, "stage", 0), 0, len(people.y)) < np.uint64(1 << 63)
    columns = reported(
        ModelStages(epsilon, 2, 2, "public", believe=believe), people, seed, stage=np.where(first, 1, 2)
    )
    sender, said = columns["sender"].astype(np.int64), columns["y"].astype(np.int64)
    later = columns["stage"] == 2
    alike = float((PriorResponse(epsilon, 2).reportable(columns["p"][later])[1] == 1).mean())
    return Released(fitted(people, size, sender, said), epsilon, alike=alike)


def most_queries(epsilon: float) -> int:
    """Return how many queries PATE may answer at ``epsilon``; 0 where not even one."""
    low, high = 0, MOST_QUERIES + 1
    while high - low > 1:
        middle = (low + high) // 2
        good = pate_accounting.profile(TEACHER_NOISE, middle).epsilon(DELTA) <= epsilon
        low, high = (middle, high) if good else (low, middle)
    return low


def pate(people: Examples, size: Size, epsilon: float, seed: int) -> Released:
    """Train teachers, and a student on as many of their noisy answers as epsilon allows."""
    queries = min(most_queries(epsilon), len(people.y))
    if queries < 2:
        return Released(lambda x: np.full(len(x), 0.5), 0.0, queries=queries)
    teacher = trees(people, Size(trees=max(10, size.trees // 4)))
    model = PATEClassifier(
        teacher, trees(people, size), teachers=TEACHERS, queries=queries, noise=TEACHER_NOISE,
        votes=SAMPLED, answers=SAMPLED, classes=(0, 1), seed=seed + 1, public_seed=seed,
    ).fit(people.x, people.y)  # fmt: skip
    cost = float(model.epsilon(DELTA))
    return Released(lambda x: np.asarray(model.predict_proba(x)[:, 1]), cost, DELTA, queries=queries)


def alibi(people: Examples, size: Size, epsilon: float, seed: int) -> Released:
    """Train on the label that is likeliest given noisy one-hot labels."""
    columns = reported(Alibi(epsilon, 2), people, seed)
    return Released(
        fitted(people, size, columns["sender"].astype(np.int64), columns["y"].astype(np.int64)), epsilon
    )


METHODS: dict[str, Callable[[Examples, Size, float, int], Released]] = {
    "LP-1ST (domain prior)": domain_prior,
    "LP-2ST": two_stages,
    "PATE": pate,
    "ALIBI": alibi,
}


def judged(name: str, asked: float, found: Released, people: Examples) -> Row:
    """Return a model's row: log loss on test rows, and what the attack has on training and on test rows."""
    gains = advantage.utility_matrix("weighted", people.shares)
    tested, trained = found.model(people.x_test), found.model(people.x)

    def won(p: Array, y: Array) -> tuple[Array, Array]:
        guess = advantage.decide(np.stack([1 - p, p], axis=1), gains)
        return gains[guess, y], guess

    (attack, guess), (blind, _) = won(trained, people.y), won(tested, people.y_test)
    sure = np.clip(tested, 1e-15, 1 - 1e-15)
    loss = -np.log(np.where(people.y_test == 1, sure, 1 - sure))
    return {
        "users": len(people.y), "method": name, "epsilon": asked, "epsilon_spent": found.epsilon, "delta": found.delta,
        "log_loss": loss.mean(), "log_loss_se": loss.std(ddof=1) / math.sqrt(len(loss)),
        "eau": attack.mean(), "eau_se": attack.std(ddof=1) / math.sqrt(len(attack)),
        "test_utility": blind.mean(), "test_utility_se": blind.std(ddof=1) / math.sqrt(len(blind)),
        "attack_accuracy": float(((trained > 0.5) == people.y).mean()), "attack_says_1": float((trained > 0.5).mean()),
        "weighted_accuracy": float((guess == people.y).mean()), "weighted_says_1": float(guess.mean()),
        "one_label_alone": found.alike, "queries": found.queries,
    }  # fmt: skip


TRUE = "true labels"
ONE_STAGE = "LP-1ST"
"""The methods that learn from the same reports, and how the names of these begin."""


def tried(what: str, size: Size, epsilon: float, seed: int) -> list[Row]:
    """Return the rows of some methods, in one run of each: ``TRUE``, all of ``ONE_STAGE``, or one of ``METHODS``."""
    print(f"attacks_figure2: {what}, epsilon = {epsilon:g}, seed {seed}", file=sys.stderr, flush=True)
    people = examples(size.rows, size.tested)
    if what == TRUE:
        found = {TRUE: Released(fitted(people, size, np.arange(len(people.y)), people.y), epsilon)}
    elif what == ONE_STAGE:
        found = one_stage(people, size, epsilon, seed)
    else:
        found = {what: METHODS[what](people, size, epsilon, seed)}
    return [judged(name, epsilon, one, people) for name, one in found.items()]


def cases(size: Size, seeds: int) -> list[Case]:
    """Return all trials as settings and what computes them: true labels, then seed by seed."""
    about = {"content": content(DATA), "rows": size.rows, "tested": size.tested, "trees": size.trees}
    asked = [(TRUE, math.inf, 0)]
    asked += [
        (what, epsilon, seed)
        for seed in range(seeds) for epsilon in size.epsilons for what in (ONE_STAGE, *METHODS)
    ]  # fmt: skip
    return [
        (about | {"what": what, "epsilon": epsilon, "seed": seed}, partial(tried, what, size, epsilon, seed))
        for what, epsilon, seed in asked
    ]


def averaged(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the means of runs, row by row; a standard error is that of a run's rows, or of the runs if larger."""
    rows = []
    for line in zip(*runs, strict=True):
        row = dict(line[0])
        for name in MEANS if len(line) > 1 else ():
            values = [each[name] for each in line if each[name] is not None]
            if values:
                row[name] = statistics.mean(values)
                spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
                row |= {f"{name}_se": max(row[f"{name}_se"], spread)} if f"{name}_se" in row else {}
        rows.append(row)
    return rows


def measured(kept: Kept, size: Size, seeds: int) -> tuple[list[Row], Row]:
    """Return the rows of all methods, and what they are held to: the constant predictor and L-EAU."""
    true, *private = kept.take(cases(size, seeds))
    count = len(private) // seeds
    rows = [true, *averaged([private[count * seed : count * (seed + 1)] for seed in range(seeds)])]
    people = examples(size.rows, size.tested)
    best = max(rows, key=lambda row: row["test_utility"])
    for row in rows:
        supremum = attacks2023.mean_supremum(
            people.shares[None], advantage.utility_matrix("weighted", people.shares)
        )
        row["advantage"] = row["eau"] - best["test_utility"]
        row["advantage_se"] = math.hypot(row["eau_se"], best["test_utility_se"])
        row["bound"] = attacks2023.theorem2(row["epsilon"], row["delta"], supremum).value
    p = people.shares[1]
    test = people.y_test.mean()
    constant = -float(test * math.log(p) + (1 - test) * math.log(1 - p))
    return rows, {
        "rows": len(people.y), "tested": len(people.y_test), "share_of_1": p, "constant_log_loss": constant,
        "l_eau": best["test_utility"], "l_eau_se": best["test_utility_se"], "l_eau_by": best["method"],
        "l_eau_epsilon": best["epsilon"],
    }  # fmt: skip


def shown(good: bool) -> Verdict:
    """Return the verdict of a stand-in: the shape of what the paper shows, or nothing that can be compared."""
    return "reproduced in shape" if good else "not comparable"


def claims(rows: Sequence[Row], held: Row) -> list[Claim]:
    """Return what the paper says of its table and figure, held to the rows."""
    private = [row for row in rows if math.isfinite(row["epsilon"])]
    low = [row for row in private if row["epsilon"] <= LOW]
    return [
        _constant(rows, low, held), _collapse(low, held), _noisy(rows, held), _little(private), _below(low, held),
        _accurate(low, held), _dominated(private),
    ]  # fmt: skip


def _constant(rows: Sequence[Row], low: Sequence[Row], held: Row) -> Claim:
    better = [row for row in low if row["log_loss"] < held["constant_log_loss"]]
    ours = [row for row in better if row["method"] == "LP-1ST (EM)"]
    names = (
        ", ".join(f"{row['method']} at {row['epsilon']:g} ({row['log_loss']:.4f})" for row in better)
        or "none"
    )
    return Claim(
        TABLE,
        f"no label-private method beats the constant predictor's log loss from epsilon = {LOW:g} down",
        f"constant {held['constant_log_loss']:.4f}, true labels {rows[0]['log_loss']:.4f}; below the constant: {names}",
        shown(len(better) == len(ours)),
        f"{STAND_IN}; features say more of an income than of a click; the EM method is not of the paper",
    )


def _collapse(low: Sequence[Row], held: Row) -> Claim:
    mine = [row for row in low if row["method"] == "LP-1ST (domain prior)"]
    listed = ", ".join(f"epsilon = {row['epsilon']:g}: {row['one_label_alone']:.1%}" for row in mine)
    return Claim(
        TABLE,
        f"from epsilon = {LOW:g} down the domain prior makes everybody report label 0, so that nothing is learnt",
        f"users who can report one label alone: {listed}",
        shown(all(row["one_label_alone"] >= 0.9 for row in mine)),
        f"{STAND_IN}: {held['share_of_1']:.1%} of labels are 1, where Criteo has 3 %; everybody: at least 90 %",
    )


def _noisy(rows: Sequence[Row], held: Row) -> Claim:
    top = max(rows, key=lambda row: row["eau"])
    return Claim(
        FIGURE,
        "EAU and L-EAU are not very high, also without privacy: the largest there can be is 1",
        f"L-EAU is estimated as {held['l_eau']:.3f} ({held['l_eau_by']}, epsilon = {held['l_eau_epsilon']:g}), .676 in "
        f"the paper; the largest EAU is {top['eau']:.3f} ({top['method']}, epsilon = {top['epsilon']:g})",
        shown(max(top["eau"], held["l_eau"]) < FAR),
        f"not very high: below {FAR:g}; {STAND_IN}",
    )


def _little(private: Sequence[Row]) -> Claim:
    most = max(row["epsilon"] for row in private)
    top = max((row for row in private if row["epsilon"] == most), key=lambda row: row["advantage"])
    return Claim(
        FIGURE,
        f"even at epsilon = {most:g} advantages are only slightly above 0",
        f"the largest is {top['advantage']:.3f} ({top['method']})",
        shown(top["advantage"] < LITTLE),
        f"slightly: below {LITTLE:g}; L-EAU is a lower estimate, so advantages are upper ones.  {STAND_IN}",
    )


def _below(low: Sequence[Row], held: Row) -> Claim:
    above = [row for row in low if row["advantage"] > ERRORS * row["advantage_se"]]
    negative = [row for row in low if row["advantage"] < -ERRORS * row["advantage_se"]]
    return Claim(
        FIGURE,
        f"from epsilon = {LOW:g} down EAU falls below L-EAU: advantages are negative",
        f"of {len(low)} rows {len(negative)} have an advantage below 0 and {len(above)} one above 0, beyond "
        f"{ERRORS:g} standard errors; L-EAU {held['l_eau']:.3f}",
        shown(not above and 2 * len(negative) > len(low)),
        f"asked for: most are below 0, none above; {STAND_IN}; L-EAU is a lower estimate, so advantages are upper ones",
    )


def _accurate(low: Sequence[Row], held: Row) -> Claim:
    constant = 1 - held["share_of_1"]
    near = [
        row for row in low if abs(row["weighted_accuracy"] - constant) < 0.01 and row["eau"] <= held["l_eau"]
    ]
    says = max((row["weighted_says_1"] for row in near), default=math.nan)
    return Claim(
        FIGURE,
        "an attack may tell as many labels as the share of 0, by saying 0 of nearly everybody, at an EAU below L-EAU",
        f"so do {len(near)} of {len(low)} rows, within a point of {constant:.1%}; they say 1 of {says:.2%} at the most",
        shown(bool(near)),
        f"{STAND_IN}; unweighted accuracy is no measure of an attack on rare labels",
    )


def _dominated(rows: Sequence[Row]) -> Claim:
    over = [row for row in rows if row["advantage"] - ERRORS * row["advantage_se"] > row["bound"]]
    gap = min(row["bound"] - row["advantage"] for row in rows)
    return Claim(
        "Attacks 2023, Figure 2 and Theorem 2",
        "Theorem 2 bounds every advantage, with a large gap",
        f"{len(over)} of {len(rows)} rows are above the bound; the smallest gap is {gap:.3f}",
        shown(not over and gap > GAP),
        f"large: above {GAP:g}; the bound takes E sup u = 1 of the weighted utility; Corollary 1 with its largest "
        f"value, 1 / (2 min p), says nothing.  L-EAU is a lower estimate, so that advantages are upper ones.  "
        f"{STAND_IN}",
    )


def plot(rows: Sequence[Row], held: Row) -> Figure:
    """Draw log loss, EAU with L-EAU, and advantage with its bound, over epsilon."""
    figure, axes = _plots.panels(1, 3)
    loss, utility, gain = axes[0]
    names = dict.fromkeys(row["method"] for row in rows if math.isfinite(row["epsilon"]))
    for colour, marker, name in zip(_plots.COLOURS, _plots.MARKERS, names, strict=True):
        line = sorted((row for row in rows if row["method"] == name), key=lambda row: row["epsilon"])
        x = [row["epsilon"] for row in line]
        for axis, column in ((loss, "log_loss"), (utility, "eau"), (gain, "advantage")):
            axis.plot(x, [row[column] for row in line], color=colour, marker=marker, label=name)
    bounds = sorted(
        {(row["epsilon"], row["bound"]) for row in rows if row["delta"] == 0 and row["epsilon"] < math.inf}
    )
    gain.plot(*zip(*bounds, strict=True), color=_plots.BLACK, linestyle="--", label="Theorem 2")
    for axis, level, name in (
        (loss, held["constant_log_loss"], "constant"),
        (loss, rows[0]["log_loss"], TRUE),
        (utility, held["l_eau"], "L-EAU (estimated)"),
        (utility, rows[0]["eau"], TRUE),
    ):
        axis.axhline(level, color=_plots.BLACK, linestyle=":" if name == "true labels" else "--", label=name)
    for axis, name in ((loss, "log loss"), (utility, "weighted EAU"), (gain, "advantage")):
        axis.set(xscale="log", xlabel="ε (nats)", ylabel=name)
        axis.legend(fontsize=6)
    figure.suptitle("Census-Income (a stand-in for Criteo)")
    return figure


def run(options: Options) -> Outcome:
    """Compute table and figure."""
    kept = options.kept("attacks_figure2", "trials")
    rows, held = measured(kept, QUICK if options.quick else Size(), seeds=options.seeds or 1)
    return Outcome({"": rows, "held_to": [held]}, claims(rows, held), {"": lambda: plot(rows, held)})


EXPERIMENT = Experiment(
    "attacks_figure2",
    "Label inference against boosted trees on rare labels: Census-Income, a stand-in for Criteo",
    f"{TABLE}, {FIGURE}",
    "4 minutes",
    run,
    needs=(DATA,),
    keys=("users", "method", "epsilon"),
    values={"log_loss": "log_loss_se", "eau": "eau_se", "bound": 1e-9},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

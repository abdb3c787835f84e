"""Networks on MNIST and CIFAR-10: LP-1ST with and without priors, ALIBI and PATE-FM (Attacks 2023, Table 1).

attacks_table1 has a linear model for all methods.  Here a small convolutional network, of the kind that two cores can
train in minutes, takes its place.  Images are averaged over 2 by 2 pixels; CIFAR-10 is a lossy copy.  The attack says
of every training image what the network says.  Needs torch.

- LP-1ST: randomized response; the network learns by the likelihood of the reports.
- LP-1ST with a prior: the clusters, priors and reports of attacks_table1.  The network takes reports as true labels, as
  the paper does: where a prior allows one label alone, the likelihood of a report is the same for all labels, and
  nothing is learnt from it.
- ALIBI: noisy one-hot labels, learnt from by their likelihood.
- PATE-FM, on CIFAR-10 (on MNIST it is in attacks_table1_fixmatch), as far as two cores go: linear teachers on patch
  features, and a student that learns by FixMatch from 100 noisy answers and all images, in grey.  The claim says what a
  step costs, and what all steps of FixMatch's paper would.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _plots, attacks_table1
from experiments._common import Claim, Experiment, Options, Outcome, main
from experiments._rows import Case, content
from experiments.attacks_table1 import ALIBI, DELTA, DIGITS, EPSILONS, LP, PATE, PRIORS, QUERIES, TRUE
from p2p_sim import Population, privacy
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.training import pate_accounting
from p2p_sim.learning.training.pate import STUDENT, PATEClassifier
from p2p_sim.privacy.label_matrices import channel
from protocols import Alibi, RandomizedResponse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2p_sim.learning.training.networks import ConvNetClassifier

Array = npt.NDArray[Any]
Row = dict[str, Any]

PAPER = attacks_table1.PAPER
CIFAR = "cifar10"
TRUE_STUDENT = "FixMatch on 100 true labels"
PUBLISHED_STEPS = 2**20
"""Steps of FixMatch, Sohn et al. 2020, section 4."""
ANSWERS_PER_TEACHER = 100
PROTOCOLS = {LP: RandomizedResponse, ALIBI: Alibi}
"""Without a prior."""
METHODS = (LP, *PRIORS, ALIBI)
WHY = "a small network on images of half the side, trained for minutes; the paper has deep networks on GPUs"


@dataclass(frozen=True)
class Size:
    """Training and test rows, centres of patches, epochs by data set, runs of each setting; PATE-FM's data, steps."""

    rows: int = 60_000
    tested: int = 10_000
    centres: int = 200
    epochs: tuple[tuple[str, int], ...] = (("mnist", 3), (CIFAR, 5))
    seeds: int = 2
    student: str = CIFAR
    steps: int = 600


QUICK = Size(rows=2_000, tested=1_000, centres=20, epochs=(("mnist", 3),), seeds=1, student="mnist", steps=8)


@lru_cache(maxsize=1)
def images(name: str, rows: int, tested: int, centres: int) -> attacks_table1.Images:
    """Return the images of attacks_table1, with features and clusters."""
    return attacks_table1.images(name, attacks_table1.Size((name,), rows, tested, centres))


def small(people: attacks_table1.Images) -> tuple[tuple[int, int, int], Array, Array]:
    """Return the form of small images (planes, side, side), those of users, and those for tests."""
    planes = 3 if people.pixels.shape[1] % 3 == 0 else 1
    side = math.isqrt(people.pixels.shape[1] // planes)
    train, test = (smaller(rows, side, planes) for rows in (people.pixels, people.pixels_test))
    return (planes, side // 2, side // 2), train, test


def smaller(x: Array, side: int, planes: int) -> Array:
    """Return images (n, side * side * planes), colours last, averaged over 2 by 2 pixels, plane by plane."""
    half = side // 2
    found = x.astype(np.float32).reshape(len(x), half, 2, half, 2, planes).mean(axis=(2, 4))
    return np.ascontiguousarray(found.transpose(0, 3, 1, 2)).reshape(len(x), -1)


def network(form: tuple[int, ...], epochs: int, seed: int) -> ConvNetClassifier:
    """Return an untrained network."""
    from p2p_sim.learning.training.networks import ConvNetClassifier

    return ConvNetClassifier(
        form, kernel=3, channels=(16, 32), hidden=64, batch_size=128, epochs=epochs, learning_rate=3e-3, seed=seed,
        device="auto",
    )  # fmt: skip


def trial(name: str, method: str, epsilon: float, seed: int, size: Size) -> list[Row]:
    """Return the accuracies of a network that is trained on true labels, or on the reports of a protocol."""
    print(f"attacks_table1_network: {name}, {method}, epsilon = {epsilon:g}", file=sys.stderr, flush=True)
    people = images(name, size.rows, size.tested, size.centres)
    form, x, x_test = small(people)
    model = network(form, dict(size.epochs)[name], seed)
    if method == TRUE:
        model.fit(x, people.y)
    elif method in PRIORS:
        found = attacks_table1.METHODS[method](people, epsilon, seed)
        assert found.targets is not None
        model.fit(x, found.targets.argmax(axis=1))
    else:
        protocol: Protocol = PROTOCOLS[method](epsilon, DIGITS)
        users = Population.from_arrays(y=people.y.astype(np.uint8))
        columns = p2p_sim.run(protocol, users, seed=seed, digest=False, progress=False).output("learner")
        model.fit_likelihoods(*evidence_of(protocol, columns, users, x))
    about = {"data": name, "users": len(people.y), "method": method, "epsilon": epsilon}
    return [about | _right(model, x_test, people.y_test, x, people.y)]


def evidence_of(
    protocol: Protocol, columns: dict[str, Array], users: Population, x: Array
) -> tuple[Array, Array]:
    """Return the images of those who reported, and the likelihood (n, k) of each report for every true label."""
    noise = privacy.label_noise(protocol)
    assert noise is not None
    if noise.reports is not None:
        found = noise.reports(columns, users)
        return x[found.users], found.likelihood
    law = channel(DIGITS, float(noise.lie))
    return x[columns["sender"]], law[:, columns["y"].astype(np.int64)].T


def _right(model: Any, x_test: Array, y_test: Array, x: Array, y: Array) -> Row:
    found: Row = {}
    for name, rows, truth in (("test", x_test, y_test), ("attack", x, y)):
        right = float((model.predict(rows) == truth).mean())
        found |= {name: right, f"{name}_se": (right * (1 - right) / len(truth)) ** 0.5}
    return found


def fixmatch(size: Size) -> list[Row]:
    """Return rows of PATE with a FixMatch student, and of the student on as many true labels."""
    people = images(size.student, size.rows, size.tested, size.centres)
    (planes, side, _), *pixels = small(people)
    width = people.x.shape[1]
    x, x_test = (
        np.concatenate(
            [features, each.reshape(len(each), planes, -1).mean(axis=1) / 255], axis=1, dtype=np.float32
        )
        for features, each in zip((people.x, people.x_test), pixels, strict=True)
    )
    known = np.where(np.arange(len(x)) < QUERIES, people.y, -1)
    start = time.process_time()
    student = _student(width, side, size).fit(x, known)
    step = (time.process_time() - start) / size.steps
    rows = [(TRUE_STUDENT, math.inf, student)]
    rows += [
        (PATE, epsilon, _voted(_student(width, side, size), width, x, people.y, epsilon))
        for epsilon in EPSILONS
    ]
    return [
        {"data": size.student, "users": len(x), "method": method, "epsilon": epsilon, "step_seconds": step}
        | _right(model, x_test, people.y_test, x, people.y)
        for method, epsilon, model in rows
    ]  # fmt: skip


def _student(width: int, side: int, size: Size) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    from p2p_sim.learning.training.fixmatch import FixMatchClassifier

    last = ColumnTransformer([("images", "passthrough", slice(width, None))])
    return make_pipeline(last, FixMatchClassifier(shape=(side, side), steps=size.steps, device="auto"))


def _voted(student: Any, width: int, x: Array, y: Array, epsilon: float) -> PATEClassifier:
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    print(f"attacks_table1_network: {PATE}, epsilon = {epsilon:g}", file=sys.stderr, flush=True)
    first = ColumnTransformer([("features", "passthrough", slice(0, width))])
    return PATEClassifier(
        make_pipeline(first, RidgeClassifier(alpha=100.0)), student,
        teachers=min(attacks_table1.TEACHERS, len(x) // ANSWERS_PER_TEACHER), queries=QUERIES,
        noise=pate_accounting.calibrate(epsilon, DELTA, QUERIES), semi_supervised=STUDENT, classes=range(DIGITS),
        seed=1, public_seed=0,
    ).fit(x, y)  # fmt: skip


def cases(size: Size) -> list[Case]:
    """Return all trials as settings and what computes them."""
    found: list[Case] = []
    about = {"rows": size.rows, "tested": size.tested, "centres": size.centres}
    for name, epochs in size.epochs:
        for method, epsilon in [(TRUE, math.inf), *((method, e) for e in EPSILONS for method in METHODS)]:
            for seed in range(1 if method == TRUE else size.seeds):
                settings = about | {
                    "data": name,
                    "content": content(name, multiclass=True),
                    "epochs": epochs,
                    "method": method,
                    "epsilon": epsilon,
                    "seed": seed,
                }
                found.append((settings, partial(trial, name, method, epsilon, seed, replace(size, seeds=1))))
    student = content(size.student, multiclass=True)
    settings = about | {"data": size.student, "content": student, "method": PATE, "steps": size.steps}
    return [*found, (settings, partial(fixmatch, replace(size, seeds=1)))]


def table(found: Sequence[Row]) -> list[Row]:
    """Return a row for each data set, epsilon and method: means of trials, with standard errors."""
    keys = ("data", "users", "method", "epsilon")
    rows = []
    for key in dict.fromkeys(tuple(row[name] for name in keys) for row in found):
        mine = [row for row in found if tuple(row[name] for name in keys) == key]
        row: Row = dict(zip(keys, key, strict=True)) | {"seeds": len(mine)}
        for name in ("test", "attack"):
            values = [each[name] for each in mine]
            spread = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
            row |= {name: statistics.mean(values), f"{name}_se": max(mine[0][f"{name}_se"], spread)}
        said = attacks_table1.PRINTED.get((row["data"], row["epsilon"], row["method"]))
        row |= {"printed_test": said and said[0] / 100, "printed_attack": said and said[1] / 100}
        rows.append(row | {"step_seconds": mine[0].get("step_seconds")})
    return rows


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return what the paper says of its table, held to the rows."""
    found = []
    student = [row for row in rows if row["method"] in (TRUE_STUDENT, PATE)]
    for name in dict.fromkeys(row["data"] for row in rows if row["method"] == TRUE):
        why = f"{WHY}{attacks_table1.copied(name)}"
        mine = [row for row in rows if row["data"] == name and row["method"] in (TRUE, *METHODS)]
        table = {(row["method"], row["epsilon"]): row for row in mine}
        found += [
            attacks_table1.identical(name, table, "of networks too", why),
            attacks_table1.falls(name, table, "networks learn little", why),
            attacks_table1.priors(name, table, why, ", networks"),
            attacks_table1.above(name, tuple(PRIORS), EPSILONS[0], table, why),
            attacks_table1.printed(name, table, why),
        ]
        if student[0]["data"] == name:
            table |= {(row["method"], row["epsilon"]): row for row in student}
            less = f"PATE's student has {QUERIES} noisy answers and grey images"
            found += [
                attacks_table1.above(name, (PATE,), epsilon, table, f"{why}; {less}") for epsilon in EPSILONS
            ]
    return [*found, _pate_fm(student)]


def _pate_fm(rows: Sequence[Row]) -> Claim:
    true, (high, low) = rows[0], rows[1:]
    step = true["step_seconds"]
    able = true["test"] > 0.9 * high["printed_test"]
    shape = attacks_table1.fallen(high, low)
    return Claim(
        f"{PAPER}, PATE-FM",
        f"{true['data']}: PATE-FM learns nearly all at epsilon = {high['epsilon']:g} and little at {low['epsilon']:g}",
        f"test accuracy {high['test']:.1%} (printed {high['printed_test']:.1%}) and {low['test']:.1%} (printed "
        f"{low['printed_test']:.1%}); the same student on {QUERIES} true labels has {true['test']:.1%}, "
        f"a guess {1 / DIGITS:.0%}",
        attacks_table1.as_far_as(true["data"], shape) if able else "not comparable",
        f"a small student on grey images of half the side learns little of {true['data']} in minutes, from {QUERIES} "
        "true labels too: what privacy takes from it says little of a student that learns nearly all.  A step took "
        f"{step:.2g} s of processor time, and the {PUBLISHED_STEPS:,} steps of FixMatch's paper would take "
        f"{step * PUBLISHED_STEPS / 3600:.0f} hours; with the wide residual networks of the paper, a student and 200 "
        "teachers, far longer"
        if not able
        else "a small network stands for a wide residual one; little: less than half of what is learnt at the larger "
        "epsilon, and by two standard errors more than a guess has",
    )  # fmt: skip


def plot(rows: Sequence[Row]) -> Figure:
    """Draw test and attack accuracy of each method, with the printed ones."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = _plots.panels(len(names), 1, (11.0, 4.0 * len(names)))
    for axis, name in zip(axes[:, 0], names, strict=True):
        mine = [row for row in rows if row["data"] == name]
        places = np.arange(len(mine))
        for offset, value, colour in ((-0.2, "test", _plots.BLUE), (0.2, "attack", _plots.RED)):
            errors = [3 * row[f"{value}_se"] for row in mine]
            axis.bar(
                places + offset, [row[value] for row in mine], 0.4, yerr=errors, color=colour, label=value
            )
            printed = [row[f"printed_{value}"] for row in mine]
            at, drawn = zip(
                *[(x, y) for x, y in zip(places, printed, strict=True) if y is not None], strict=True
            )
            axis.plot(np.array(at) + offset, drawn, "_", color=_plots.BLACK, markersize=12)
        said = [f"{row['method']}\nε = {row['epsilon']:g}" for row in mine]
        axis.set_xticks(
            places, [each.replace(" (", "\n(").replace(" on ", "\non ") for each in said], fontsize=6
        )
        axis.set(title=f"{name} (line: printed)", ylabel="accuracy", ylim=(0, 1))
        axis.legend(fontsize=7, loc="center right")
    return figure


def run(options: Options) -> Outcome:
    """Compute the trials that are not kept, and hold the table to them."""
    size = QUICK if options.quick else Size()
    if options.seeds is not None:
        size = replace(size, seeds=options.seeds)
    rows = table(options.kept("attacks_table1_network", "trials").take(cases(size)))
    return Outcome({"": rows}, claims(rows), {"": lambda: plot(rows)})


EXPERIMENT = Experiment(
    "attacks_table1_network",
    "Networks on MNIST and CIFAR-10: LP-1ST with and without priors, ALIBI and PATE-FM",
    PAPER,
    "12 minutes",
    run,
    needs=("torch", "PIL", "mnist", attacks_table1.OTHER, CIFAR),
    keys=("data", "users", "method", "epsilon"),
    values={"test": "test_se", "attack": "test_se"},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

"""PATE with a FixMatch student on MNIST (Attacks 2023, Table 1, "PATE-FM"); needs torch.

The paper trains 200 teachers and a student by FixMatch, each a wide residual network on all images of which few have
labels, and accounts for votes by looking at them: that epsilon is itself private.  Here teachers are the linear models
of attacks_table1, which take milliseconds; the student is a small network trained by FixMatch on 100 noisy answers and
all images; and epsilon counts all answers, whatever the votes.  Beside it the same student on 100 true labels: what the
answers cost.  Whether PATE-FM is above LP-1ST is decided by the better of its two models, those of attacks_table1 and
of attacks_table1_network, as they are in expected/.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from experiments import _expected, _plots, attacks_table1
from experiments._common import Claim, Experiment, Options, Outcome, main, read_csv
from experiments._rows import Case, content
from experiments.attacks_table1 import DELTA, DIGITS, EPSILONS, LP, PATE, PRINTED, QUERIES, Images, images
from experiments.multi_stage import pooled
from p2p_sim.learning.training import pate_accounting
from p2p_sim.learning.training.pate import STUDENT, PATEClassifier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Row = dict[str, Any]

PAPER = attacks_table1.PAPER
DATA = "mnist"
NAME, TRUE = "PATE, FixMatch student", "FixMatch on 100 true labels"
SIDE = 14
ANSWERS_PER_TEACHER = 100
"""Rows of a teacher, at least; fewer teachers where there are fewer rows."""


@dataclass(frozen=True)
class Size:
    """Rows and features of ``attacks_table1``, the student's steps, and runs of each epsilon."""

    rows: int = 60_000
    tested: int = 10_000
    centres: int = 200
    steps: int = 600
    seeds: int = 1


QUICK = Size(rows=4_000, tested=1_000, centres=30, steps=20)


def cases(size: Size) -> list[Case]:
    """Return true labels, and the runs at each epsilon, as settings and what computes them."""
    about = {
        "content": content(DATA, multiclass=True), "rows": size.rows, "tested": size.tested, "centres": size.centres,
        "steps": size.steps,
    }  # fmt: skip
    asked = [(math.inf, 0), *((epsilon, seed) for epsilon in EPSILONS for seed in range(size.seeds))]
    return [
        (about | {"epsilon": epsilon, "seed": seed}, partial(trial, epsilon, replace(size, seeds=1), seed))
        for epsilon, seed in asked
    ]


def trial(epsilon: float, size: Size, seed: int) -> list[Row]:
    """Return the accuracies of one student; at an infinite epsilon it has true labels."""
    print(f"attacks_table1_fixmatch: epsilon = {epsilon:g}, seed {seed}", file=sys.stderr, flush=True)
    people, x, x_test = _prepared(size)
    private = math.isfinite(epsilon)
    model = voted(people, x, epsilon, size, seed) if private else _true(people, x, size)
    about: Row = {"epsilon": epsilon, "epsilon_spent": model.epsilon(DELTA) if private else epsilon}
    for name, rows, y in (("test", x_test, people.y_test), ("attack", x, people.y)):
        about |= {name: float((model.predict(rows) == y).mean()), f"{name}_n": len(y)}
    return [about]


@lru_cache(maxsize=1)
def _prepared(size: Size) -> tuple[Images, Array, Array]:
    people = images(DATA, attacks_table1.Size((DATA,), size.rows, size.tested, size.centres, 1))
    return people, joined(people.x, people.pixels), joined(people.x_test, people.pixels_test)


def table(found: Sequence[Row]) -> list[Row]:
    """Return a row for true labels and for each epsilon."""
    epsilons = dict.fromkeys(row["epsilon"] for row in found)
    return [_row([row for row in found if row["epsilon"] == epsilon]) for epsilon in epsilons]


def plain(users: int, *, quick: bool) -> dict[float, Row]:
    """Return LP-1ST of as many users, by epsilon: the better of the network and the linear model."""
    found: dict[float, Row] = {}
    for table, model in (("attacks_table1_network", "a network"), ("attacks_table1", "a linear model")):
        for row in read_csv(_expected.file(table, quick=quick)):
            epsilon, test = float(row["epsilon"]), float(row["test"])
            asked = (row["data"], row["method"], int(row["users"])) == (DATA, LP, users)
            if asked and test > found.get(epsilon, {"test": 0.0})["test"]:
                found[epsilon] = {"test": test, "test_se": float(row["test_se"]), "model": model}
    return found


def joined(features: Array, pixels: Array) -> Array:
    """Return rows of features for teachers, and after them small images for the student."""
    return np.concatenate([features, pooled(pixels) / 255], axis=1).astype(np.float32)


def student(width: int, size: Size) -> Any:
    """Return an untrained FixMatch classifier of the last columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    from p2p_sim.learning.training.fixmatch import FixMatchClassifier

    last = ColumnTransformer([("images", "passthrough", slice(width, None))])
    return make_pipeline(last, FixMatchClassifier(device="auto", shape=(SIDE, SIDE), steps=size.steps))


def voted(people: Images, x: Array, epsilon: float, size: Size, seed: int) -> PATEClassifier:
    """Return PATE, fitted: linear teachers, and a student that also has the images nobody was asked about."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    width = people.x.shape[1]
    first = ColumnTransformer([("features", "passthrough", slice(0, width))])
    return PATEClassifier(
        make_pipeline(first, RidgeClassifier(alpha=100.0)), student(width, size),
        teachers=min(attacks_table1.TEACHERS, len(x) // ANSWERS_PER_TEACHER), queries=QUERIES,
        noise=pate_accounting.calibrate(epsilon, DELTA, QUERIES), semi_supervised=STUDENT, classes=range(DIGITS),
        seed=seed + 1, public_seed=seed,
    ).fit(x, people.y)  # fmt: skip


def _true(people: Images, x: Array, size: Size) -> Any:
    """Return the student trained on as many true labels as there are answers."""
    known = np.full(len(x), -1)
    known[:QUERIES] = people.y[:QUERIES]
    return student(people.x.shape[1], size).fit(x, known)


def _row(trials: Sequence[Row]) -> Row:
    epsilon = trials[0]["epsilon"]
    row: Row = {
        "data": DATA,
        "users": trials[0]["attack_n"],
        "method": NAME if math.isfinite(epsilon) else TRUE,
        "epsilon": epsilon,
        "epsilon_spent": max(each["epsilon_spent"] for each in trials),
    }
    for name in ("test", "attack"):
        each = [trial[name] for trial in trials]
        right = statistics.mean(each)
        spread = statistics.stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0.0
        chance = (right * (1 - right) / trials[0][f"{name}_n"]) ** 0.5
        row |= {name: right, f"{name}_se": max(chance, spread)}
    said = PRINTED.get((DATA, epsilon, PATE))
    return row | {"printed_test": said and said[0] / 100, "printed_attack": said and said[1] / 100}


def claims(rows: Sequence[Row], response: Mapping[float, Row]) -> list[Claim]:
    """Return what the paper says of PATE-FM, held to the rows; ``response``: of LP-1ST, by epsilon."""
    best, (high, low) = rows[0], rows[1:]
    why = (
        "a small network and linear teachers stand for wide residual networks; epsilon does not look at votes"
    )
    gap = max(abs(row["test"] - row["attack"]) for row in rows)
    return [
        Claim(
            PAPER,
            f"PATE-FM learns nearly all of MNIST at epsilon = {high['epsilon']:g} and little at {low['epsilon']:g}",
            f"test accuracy {high['test']:.1%} (printed {high['printed_test']:.1%}) and {low['test']:.1%} (printed "
            f"{low['printed_test']:.1%}); the student on true labels {best['test']:.1%}",
            attacks_table1.fallen(high, low) if high["test"] > 0.9 * best["test"] else "not reproduced",
            f"nearly all: 90 % of what the same true labels give; little: less than half of that at the larger "
            f"epsilon, and by two standard errors more than a guess has; {why}",
        ),
        *(_above(row, response, why) for row in (high, low)),
        Claim(
            PAPER,
            "attack accuracy is almost identical to test accuracy",
            f"they differ by at most {gap:.1%}",
            "reproduced" if gap <= attacks_table1.NEAR else "not reproduced",
            f"almost: within {attacks_table1.NEAR:.0%}; {why}",
        ),
    ]


def _above(row: Row, response: Mapping[float, Row], why: str) -> Claim:
    """Return whether PATE-FM is more accurate than LP-1ST at the row's epsilon."""
    epsilon = row["epsilon"]
    if epsilon not in response:
        return Claim(
            PAPER, f"{DATA}: at epsilon = {epsilon:g} PATE-FM is more accurate than {LP}",
            f"no table has {LP} of {row['users']:,} users", "not comparable", why,
        )  # fmt: skip
    plain = response[epsilon] | {"printed_test": PRINTED[DATA, epsilon, LP][0] / 100}
    table = {(PATE, epsilon): row | {"method": "PATE-FM"}, (LP, epsilon): plain}
    why = f"{LP} is of {plain['model']}, which is the better of two here; {why}"
    return attacks_table1.above(DATA, (PATE,), epsilon, table, why)


def plot(rows: Sequence[Row]) -> Figure:
    """Draw test and attack accuracy."""
    figure, axes = _plots.panels(1, 1)
    places = np.arange(len(rows))
    for offset, value, colour in ((-0.2, "test", _plots.BLUE), (0.2, "attack", _plots.RED)):
        axes[0][0].bar(places + offset, [row[value] for row in rows], 0.4, color=colour, label=value)
    axes[0][0].set_xticks(places, [f"{row['method']}\nε = {row['epsilon']:g}" for row in rows], fontsize=6)
    axes[0][0].set(ylabel="accuracy", ylim=(0, 1))
    axes[0][0].legend()
    return figure


def run(options: Options) -> Outcome:
    """Compute the row of the table."""
    size = QUICK if options.quick else Size()
    if options.seeds is not None:
        size = replace(size, seeds=options.seeds)
    rows = table(options.kept("attacks_table1_fixmatch", "trials").take(cases(size)))
    response = plain(rows[0]["users"], quick=options.quick)
    return Outcome({"": rows}, claims(rows, response), {"": lambda: plot(rows)})


EXPERIMENT = Experiment(
    "attacks_table1_fixmatch",
    "PATE with a FixMatch student on MNIST",
    f"{PAPER}, PATE-FM",
    "2 minutes",
    run,
    needs=("torch", DATA, attacks_table1.OTHER),
    keys=("users", "method", "epsilon"),
    values={"test": "test_se", "attack": "attack_se"},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

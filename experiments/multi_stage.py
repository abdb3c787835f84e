"""LP-1ST and LP-2ST with a small convolutional network on MNIST (Ghazi et al. 2021; Attacks 2023, Table 1).

Both run on the engine: of LP-2ST the learner trains on the first stage's reports, and sends every user of the second a
prior, which she answers under.  Each is trained twice: by the likelihood of the reports, and on the reports as if they
were true labels.  The attack says of every training image what the network says, as in attacks_table1, whose model is
linear.  Needs torch.  docs/experiments.md explains the columns.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _plots
from experiments._common import Claim, Experiment, Options, Outcome, Verdict, main
from experiments._rows import Case, Kept, Row, content
from p2p_sim import Population, privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training.networks import ConvNetClassifier
from p2p_sim.privacy.mechanisms import prior_response
from protocols import MultiStage, PriorResponse
from protocols.multi_stage import PROBABILITY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]

PAPER = "Attacks 2023, Table 1"
PRINTED = (0.933, 0.933)
"""Test and attack accuracy of LP-1ST on MNIST at epsilon = 1, in Table 1."""
NEAR, ROUNDED = 0.02, 0.0005
"""Points that are near, and by how much a printed accuracy may be off by its rounding."""

GAIN = 0.01
"""A gain of accuracy that would be worth a second stage."""
SEED_OF_FIRST = 1000
"""Added to a trial's seed: of the network that the prior comes from."""
NETWORK: dict[str, Any] = {
    "kernel": 3, "channels": (16, 32), "hidden": 64, "epochs": 3, "learning_rate": 3e-3,
}  # fmt: skip

Prior = Callable[[Array, Array, Array, Array], Array]
"""From users who reported, their labels, the priors that they had, and users who ask, to the priors of these."""


SIDE = 28
"""Pixels of a side."""


def pooled(x: Array) -> Array:
    """Return images of 28 by 28 pixels as 14 by 14; other rows as they are."""
    if x.shape[1] != SIDE**2:
        return x
    return np.asarray(x.reshape(len(x), SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4)).reshape(len(x), -1))


@dataclass(frozen=True)
class ModelStages(MultiStage):
    """LP-MST with the prior of its paper: what a model, trained on all reports so far, predicts of a user.

    Users do as in ``MultiStage``, whose laws hold for whatever priors a learner hands out.  ``believe``: the model.
    The learner also returns ``p``, the prior that each report was made under.
    """

    believe: Prior | None = field(default=None, repr=False, compare=False)

    def learner(self, me: Party) -> Rounds:  # noqa: ARG002
        """Receive labels stage by stage; tell the users of the next one what a model predicts of each."""
        reports = yield self.report.receive()
        found = reports.columns()
        sender, y, p = found["sender"], found["y"], np.full((len(found["y"]), self.labels), 1 / self.labels)
        stage = np.ones(len(y), np.uint8)
        assert self.believe is not None
        for number in range(2, self.stages + 1):
            asks = yield self.ask.receive()
            asking = np.asarray(asks.sender.data)
            told = on_grid(self.believe(sender, y, p, asking))
            yield self.prior.reply(asks, p=told)
            reports = yield self.report.receive()
            found = reports.columns()
            place = np.argsort(asking)[np.searchsorted(np.sort(asking), found["sender"])]
            sender, y = np.concatenate([sender, found["sender"]]), np.concatenate([y, found["y"]])
            p, stage = np.vstack([p, told[place]]), np.append(stage, np.full(len(place), number, np.uint8))
        return {"sender": sender, "y": y, "stage": stage, "p": p}


def on_grid(chance: Array) -> Array:
    """Return probabilities (n, k) as users read them; none is 0."""
    return PROBABILITY.decoded(PROBABILITY.encoded(np.clip(chance, 2**-15, 1), "prior"))


@dataclass(frozen=True)
class Method:
    """A row's method.

    ``first``: the share of the users who answer in the first of two stages; 1: there is one stage.  ``forward``:
    whether the last network is trained by the likelihood of the reports, or on them as if they were true labels.  The
    network that the prior comes from is always trained by the likelihood: it must know how sure it may be.
    """

    first: float = 1.0
    forward: bool = True

    @property
    def stages(self) -> int:
        """Return how many stages there are."""
        return 1 if self.first == 1 else 2


ONE, TWO, AS_THEY_ARE, TRUE = "LP-1ST", "LP-2ST", ", labels as they are", "true labels"
METHODS = {
    ONE: Method(),
    TWO: Method(0.65),
    ONE + AS_THEY_ARE: Method(forward=False),
    TWO + AS_THEY_ARE: Method(0.65, forward=False),
}


@dataclass(frozen=True)
class Size:
    """Data, its first training rows (None: all), epsilon in nats, trials of each method, rows of a batch."""

    data: str = "mnist"
    rows: int | None = None
    epsilon: float = 1.0
    trials: int = 3
    batch: int = 256


QUICK = Size("digits", None, 4.0, 2, 32)


@functools.lru_cache(maxsize=1)
def examples(data: str, rows: int | None) -> tuple[Array, Array, Array, Array, int]:
    """Return images and labels of the first rows of the training part, those of the test part, and the classes."""
    found = datasets.load(data, multiclass=True)
    test = found.test
    if test is None:  # digits: every fifth row
        test = np.arange(len(found.y)) % 5 == 0
    x = pooled(found.x.astype(np.float32))
    train = np.flatnonzero(~test)[:rows]
    return x[train], found.y[train], x[test], found.y[test], len(found.classes)


def network(size: Size, seed: int) -> ConvNetClassifier:
    """Return an untrained network."""
    return ConvNetClassifier(**NETWORK, batch_size=size.batch, seed=seed, device="auto")


def likelihood(epsilon: float, p: Array, y: Array) -> Array:
    """Return the probability (n, k) of reports, made under priors p (n, k), for each true label."""
    protocol = PriorResponse(epsilon, p.shape[1])
    kinds, which = np.unique(p, axis=0, return_inverse=True)
    if len(kinds) == 1:
        return np.asarray(prior_response.matrices(protocol, kinds)[0][:, y].T)
    return np.asarray(prior_response.matrices(protocol, kinds)[which.ravel(), :, y])


def protocol_of(
    method: Method, epsilon: float, labels: int, believe: Prior | None
) -> PriorResponse | MultiStage:
    """Return the protocol that a method runs."""
    if method.stages == 1:
        return PriorResponse(epsilon, labels)
    return ModelStages(epsilon, labels, method.stages, "public", believe=believe)


def trial(size: Size, method: Method, seed: int) -> dict[str, Any]:
    """Return what one run of a method gives: accuracies, and of several stages how good the first was."""
    x, y, x_test, y_test, labels = examples(size.data, size.rows)
    firsts: list[ConvNetClassifier] = []

    def believe(sender: Array, said: Array, p: Array, asking: Array) -> Array:
        model = network(size, seed + SEED_OF_FIRST)
        firsts.append(model.fit_likelihoods(x[sender], likelihood(size.epsilon, p, said)))
        return np.asarray(model.predict_proba(x[asking]))

    drawn = words(seed, stream("experiment", "stage", 0), 0, len(y))
    stage = np.where(drawn < np.uint64(min(method.first * 2.0**64, 2**64 - 1)), 1, 2)
    people = Population.from_arrays(y=y, public={"stage": stage})
    run = p2p_sim.run(
        protocol_of(method, size.epsilon, labels, believe), people, seed=seed, digest=False, progress=False
    )
    columns = run.output("learner")
    sender, said = columns["sender"], columns["y"].astype(np.int64)
    p = columns.get("p", np.full((len(said), labels), 1 / labels))
    model = network(size, seed)
    if method.forward:
        model.fit_likelihoods(x[sender], likelihood(size.epsilon, p, said))
    else:
        model.fit(x[sender], said)
    later = columns.get("stage", np.ones(len(said))) > 1
    _, m = PriorResponse(size.epsilon, labels).reportable(p)
    return {
        "accuracy": float((model.predict(x_test) == y_test).mean()),
        "attack": float((model.predict(x) == y).mean()),
        "first_accuracy": float((firsts[0].predict(x_test) == y_test).mean()) if firsts else None,
        "reports_right": float((said == y[sender]).mean()),
        "reportable": float(m[later].mean()) if later.any() else None,
        "one_reportable": float((m[later] == 1).mean()) if later.any() else None,
    }


def true_labels(size: Size) -> dict[str, Any]:
    """Return the test and training accuracy on true labels."""
    x, y, x_test, y_test, _ = examples(size.data, size.rows)
    model = network(size, 0).fit(x, y)
    return {
        "accuracy": float((model.predict(x_test) == y_test).mean()),
        "attack": float((model.predict(x) == y).mean()),
    }


def cases(size: Size) -> list[Case]:
    """Return the trials as settings and what computes them, method by method."""
    about = {
        "data": size.data, "content": content(size.data, multiclass=True), "rows": size.rows,
        "torch": importlib.metadata.version("torch"), "batch": size.batch,
    }  # fmt: skip
    found: list[Case] = [(about | {"method": TRUE}, functools.partial(_logged_trial, size, TRUE, 0))]
    for name in METHODS:
        for seed in range(size.trials):
            settings = about | {"method": name, "epsilon": size.epsilon, "seed": seed}
            found.append((settings, functools.partial(_logged_trial, replace(size, trials=1), name, seed)))
    return found


def _logged_trial(size: Size, name: str, seed: int) -> list[Row]:
    print(f"multi_stage: {size.data}, {name}, trial {seed}", file=sys.stderr, flush=True)
    return [{"method": name, **(true_labels(size) if name == TRUE else trial(size, METHODS[name], seed))}]


def table(size: Size, kept: Kept) -> list[Row]:
    """Return a row for each method: mean accuracies, their standard errors, and who gets which epsilon."""
    found = kept.take(cases(size))
    about = _about(size)
    return [
        _line(about, size, name, [row for row in found if row["method"] == name]) for name in (TRUE, *METHODS)
    ]


def _about(size: Size) -> Row:
    _, y, _, y_test, labels = examples(size.data, size.rows)
    shares = np.bincount(y, minlength=labels) / len(y)
    return {
        "data": size.data, "examples": "exact, images of 28 by 28 averaged over 2 by 2 pixels",
        "content": content(size.data, multiclass=True), "n": len(y), "test_n": len(y_test),
        "class_shares": " ".join(f"{share:.4f}" for share in shares),
    }  # fmt: skip


def _line(about: Row, size: Size, name: str, found: Sequence[Row]) -> Row:
    learner, peer, includes = math.inf, 0.0, "nothing"
    if name != TRUE:
        labels = len(about["class_shares"].split())
        protocol = protocol_of(METHODS[name], size.epsilon, labels, None)
        if isinstance(protocol, ModelStages):  # users are those of its parent, which has a law
            protocol = MultiStage(size.epsilon, labels, protocol.stages, protocol.split)
        learner = privacy.profile(protocol, view="learner").epsilon(0.0)
        peer = privacy.profile(protocol, view="user").epsilon(0.0)
        includes = (
            "one label replaced, priors too: each comes from other users' reports; tuning is not included"
        )
    got, attacked = ([row[each] for row in found] for each in ("accuracy", "attack"))
    return {
        **about,
        "method": name,
        "epsilon_asked": "" if name == TRUE else size.epsilon,
        "epsilon_learner": f"{learner:.5g}",
        "epsilon_peer": f"{peer:.5g}",
        "includes": includes,
        "trials": len(got),
        "accuracy": f"{statistics.mean(got):.4f}",
        "standard_error": f"{_error(got, about['test_n']):.4f}",
        "attack": f"{statistics.mean(attacked):.4f}",
        "attack_error": f"{_error(attacked, about['n']):.4f}",
        "each": " ".join(f"{one:.4f}" for one in got),
        **{
            each: _mean(found, each)
            for each in ("first_accuracy", "reports_right", "reportable", "one_reportable")
        },
    }


def _error(values: Sequence[float], rows: int) -> float:
    """Return the standard error of a mean accuracy: that of chance in the rows at least, as few trials tell little."""
    mean = statistics.mean(values)
    spread = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return max(math.sqrt(mean * (1 - mean) / rows), spread)


def _mean(found: Sequence[Row], name: str) -> str:
    """Return the mean of what the trials say of the stages; "" where they say nothing."""
    said = [row[name] for row in found if row.get(name) is not None]
    return f"{statistics.mean(said):.4f}" if said else ""


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Return what the papers say of one stage and two, held to the rows."""
    mine = {row["method"]: row for row in rows}
    private = [row for row in rows if row["method"] != TRUE]
    gap = max(abs(float(row["accuracy"]) - float(row["attack"])) for row in private)
    return [
        _printed(mine[ONE], mine[ONE + AS_THEY_ARE]),
        Claim(
            PAPER,
            "attack accuracy is almost identical to test accuracy, also of a network",
            f"they differ by at most {gap:.1%}, of LP-1ST and LP-2ST",
            "reproduced" if gap <= NEAR else "not reproduced",
            f"almost: within {NEAR:.0%}; {_data(rows)}",
        ),
        _two_stages(mine, "", "the likelihood takes from a report what it says of its user: where her prior leaves "
                    "one label to report, that is nothing"),
        _two_stages(mine, AS_THEY_ARE, "reports are true more often under a prior that is mostly right"),
    ]  # fmt: skip


def _data(rows: Sequence[Row]) -> str:
    first = rows[0]
    return (
        f"a small network, {first['n']:,} images of {first['data']}, epsilon = {rows[1]['epsilon_asked']:g}"
    )


def _printed(row: Row, plain: Row) -> Claim:
    """Return whether one stage, by the likelihood or (``plain``) on labels as they are, has the printed accuracies."""

    def off(one: Row) -> list[float]:
        return [
            abs(float(one[name]) - printed)
            for name, printed in zip(("accuracy", "attack"), PRINTED, strict=True)
        ]

    def exact(one: Row) -> bool:
        errors = [float(one[name]) for name in ("standard_error", "attack_error")]
        within = all(away <= 2 * error + ROUNDED for away, error in zip(off(one), errors, strict=True))
        return within and max(errors) <= NEAR

    comparable = row["data"] == "mnist" and row["epsilon_asked"] == 1.0
    decided: Verdict = (
        "reproduced in shape" if min(max(off(one)) for one in (row, plain)) <= NEAR else "not reproduced"
    )
    if exact(row) or exact(plain):
        decided = "reproduced"
    listed = ", ".join(
        f"{one['accuracy']} ± {one['standard_error']} and {one['attack']} ± {one['attack_error']} trained {how}"
        for one, how in ((row, "by the likelihood"), (plain, "on labels as they are"))
    )
    return Claim(
        PAPER,
        "the accuracies of LP-1ST on MNIST at epsilon = 1",
        f"{listed}; printed {PRINTED[0]:.3f} and {PRINTED[1]:.3f}",
        decided if comparable else "not comparable",
        f"reproduced: within two standard errors, which are {NEAR:.0%} or less; in shape: within {NEAR:.0%}; either "
        "way of training counts; a small network"
        if comparable
        else f"{row['data']} at epsilon = {row['epsilon_asked']:g}: the paper has neither",
    )


def _two_stages(mine: Mapping[str, Row], how: str, why: str) -> Claim:
    """Return whether two stages are better than one; or, trained by the likelihood (our own), that they are not."""
    one, two = mine[ONE + how], mine[TWO + how]
    above = float(two["accuracy"]) - float(one["accuracy"])
    error = math.hypot(float(one["standard_error"]), float(two["standard_error"]))
    least, most = above - 2 * error, above + 2 * error
    good, bad = (least > 0, most < 0) if how else (most < GAIN, least > GAIN)
    return Claim(
        "Ghazi et al. 2021 (LP-MST, the method of Attacks 2023)" if how
        else "this project: LP-MST trained by the likelihood of the reports",
        f"two stages are more accurate than one, trained on {how.removeprefix(', ')}" if how
        else f"two stages are not {GAIN:.0%} more accurate than one",
        f"{one['accuracy']} in one and {two['accuracy']} in two, a difference of {above:+.4f} with a standard error of "
        f"{error:.4f}; of the second stage {float(two['one_reportable']):.1%} can report one label alone; reports are "
        f"true in {float(one['reports_right']):.1%} and {float(two['reports_right']):.1%}",
        "reproduced" if good else "not reproduced" if bad else "not comparable",
        f"by two standard errors, either way; {why}; the first network is trained by the likelihood in either",
    )  # fmt: skip


def plot(rows: Sequence[Row]) -> Figure:
    """Draw test and attack accuracy of each method."""
    figure, axes = _plots.panels(1, 1, (7.0, 4.0))
    places = np.arange(len(rows))
    for offset, value, error, colour in (
        (-0.2, "accuracy", "standard_error", _plots.BLUE), (0.2, "attack", "attack_error", _plots.RED),
    ):  # fmt: skip
        axes[0][0].bar(
            places + offset, [float(row[value]) for row in rows], 0.4, color=colour, label=value,
            yerr=[3 * float(row[error]) for row in rows],
        )  # fmt: skip
    axes[0][0].set_xticks(places, [row["method"].replace(", ", "\n") for row in rows], fontsize=6)
    axes[0][0].set(ylabel="accuracy (three standard errors)", ylim=(0, 1), title=_data(rows))
    axes[0][0].legend(loc="lower left")
    return figure


def run(options: Options) -> Outcome:
    """Compute the trials that are not kept, and hold the papers to them."""
    size = QUICK if options.quick else Size()
    if options.seeds is not None:
        size = replace(size, trials=options.seeds)
    rows = table(size, options.kept("multi_stage", "trials"))
    return Outcome({"": rows}, claims(rows), {"": functools.partial(plot, rows)})


EXPERIMENT = Experiment(
    "multi_stage", "LP-1ST and LP-2ST with a network on MNIST", f"{PAPER}, and Ghazi et al. 2021", "6 minutes", run,
    needs=("torch", "mnist"), keys=("data", "method"), values={"accuracy": "standard_error", "attack": "attack_error"},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

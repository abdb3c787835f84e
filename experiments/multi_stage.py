"""LP-1ST and LP-2ST with a small convolutional network on MNIST (Ghazi et al. 2021; Attacks 2023, Table 1).

``python -m experiments.multi_stage --out multi_stage.csv``; seven minutes of processor time, with the extra ``torch``,
and it goes on where it was ended.  Both run on the engine: of LP-2ST the learner trains on the first stage's reports,
and sends every user of the second a prior, which she answers under.  docs/experiments.md explains the columns.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments._common import check, write_csv
from experiments._rows import Case, Kept, Row, add_fresh, content, keeping
from p2p_sim import InputError, Population, privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training.networks import ConvNetClassifier
from p2p_sim.privacy.mechanisms import prior_response
from protocols import MultiStage, PriorResponse
from protocols.multi_stage import PROBABILITY

Array = npt.NDArray[Any]

EPSILONS = (1.0,)
TRIALS = 3

SEED_OF_FIRST = 1000
"""Added to a trial's seed: of the network that the prior comes from."""
NETWORK: dict[str, Any] = {
    "kernel": 3, "channels": (16, 32), "hidden": 64, "batch_size": 256, "epochs": 3, "learning_rate": 3e-3,
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


METHODS = {
    "LP-1ST": Method(),
    "LP-2ST": Method(0.65),
    "LP-2ST, 40 % first": Method(0.4),
    "LP-1ST, labels as they are": Method(forward=False),
    "LP-2ST, labels as they are": Method(0.65, forward=False),
}


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


def network(seed: int) -> ConvNetClassifier:
    """Return an untrained network."""
    return ConvNetClassifier(**NETWORK, seed=seed)


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


def trial(data: str, rows: int | None, method: Method, epsilon: float, seed: int) -> dict[str, Any]:
    """Return what one run of a method gives: test accuracy, and of several stages how good the first was."""
    x, y, x_test, y_test, labels = examples(data, rows)
    firsts: list[ConvNetClassifier] = []

    def believe(sender: Array, said: Array, p: Array, asking: Array) -> Array:
        model = network(seed + SEED_OF_FIRST)
        firsts.append(model.fit_likelihoods(x[sender], likelihood(epsilon, p, said)))
        return np.asarray(model.predict_proba(x[asking]))

    drawn = words(seed, stream("experiment", "stage", 0), 0, len(y))
    stage = np.where(drawn < np.uint64(min(method.first * 2.0**64, 2**64 - 1)), 1, 2)
    people = Population.from_arrays(y=y, public={"stage": stage})
    run = p2p_sim.run(
        protocol_of(method, epsilon, labels, believe), people, seed=seed, digest=False, progress=False
    )
    columns = run.output("learner")
    sender, said = columns["sender"], columns["y"].astype(np.int64)
    p = columns.get("p", np.full((len(said), labels), 1 / labels))
    model = network(seed)
    if method.forward:
        model.fit_likelihoods(x[sender], likelihood(epsilon, p, said))
    else:
        model.fit(x[sender], said)
    later = columns.get("stage", np.ones(len(said))) > 1
    _, m = PriorResponse(epsilon, labels).reportable(p)
    return {
        "accuracy": float((model.predict(x_test) == y_test).mean()),
        "first_accuracy": float((firsts[0].predict(x_test) == y_test).mean()) if firsts else None,
        "reports_right": float((said == y[sender]).mean()),
        "reportable": float(m[later].mean()) if later.any() else None,
        "one_reportable": float((m[later] == 1).mean()) if later.any() else None,
    }


def true_labels(data: str, rows: int | None) -> dict[str, Any]:
    """Return the test accuracy on true labels."""
    x, y, x_test, y_test, _ = examples(data, rows)
    return {"accuracy": float((network(0).fit(x, y).predict(x_test) == y_test).mean())}


def cases(
    data: str, rows: int | None, epsilons: Sequence[float], trials: int, names: Sequence[str]
) -> list[Case]:
    """Return the trials as settings and what computes them, method by method."""
    about = {
        "data": data, "content": content(data, multiclass=True), "rows": rows,
        "torch": importlib.metadata.version("torch"), "network": {**NETWORK, "channels": list(NETWORK["channels"])},
    }  # fmt: skip
    found: list[Case] = [(about | {"method": "true labels"}, lambda: [true_labels(data, rows)])]
    for name in names:
        for epsilon in epsilons:
            for seed in range(trials):
                settings = about | {"method": name, "epsilon": epsilon, "seed": seed}
                found.append((settings, functools.partial(_told, data, rows, name, epsilon, seed)))
    return found


def _told(data: str, rows: int | None, name: str, epsilon: float, seed: int) -> list[Row]:
    print(f"{data}: {name}, epsilon = {epsilon}, trial {seed}", file=sys.stderr, flush=True)
    found = trial(data, rows, METHODS[name], epsilon, seed)
    print(found, file=sys.stderr, flush=True)
    return [{"method": name, "epsilon": epsilon, **found}]


def table(
    data: str,
    rows: int | None = None,
    epsilons: Sequence[float] = EPSILONS,
    trials: int = TRIALS,
    names: Sequence[str] = tuple(METHODS),
    kept: Kept | None = None,
) -> list[Row]:
    """Return a row for each method and epsilon: mean test accuracy, its standard error, and who gets which epsilon."""
    whole, *found = (kept or Kept()).take(cases(data, rows, epsilons, trials, names))
    about = _about(data, rows)
    lines = [_line(about, "true labels", None, [whole])]
    for name in names:
        for epsilon in epsilons:
            mine = [row for row in found if (row["method"], row["epsilon"]) == (name, epsilon)]
            lines.append(_line(about, name, epsilon, mine))
    return lines


def _about(data: str, rows: int | None) -> Row:
    _, y, _, y_test, labels = examples(data, rows)
    shares = np.bincount(y, minlength=labels) / len(y)
    return {
        "data": data, "examples": "exact, images of 28 by 28 averaged over 2 by 2 pixels",
        "content": content(data, multiclass=True), "n": len(y), "test_n": len(y_test),
        "class_shares": " ".join(f"{share:.4f}" for share in shares),
    }  # fmt: skip


def _line(about: Row, name: str, epsilon: float | None, found: Sequence[Row]) -> Row:
    got = [row["accuracy"] for row in found]
    learner, peer, includes = math.inf, 0.0, "nothing"
    if epsilon is not None:
        labels = len(about["class_shares"].split())
        protocol = protocol_of(METHODS[name], epsilon, labels, None)
        if isinstance(protocol, ModelStages):  # users are those of its parent, which has a law
            protocol = MultiStage(epsilon, labels, protocol.stages, protocol.split)
        learner = privacy.profile(protocol, view="learner").epsilon(0.0)
        peer = privacy.profile(protocol, view="user").epsilon(0.0)
        includes = (
            "one label replaced, priors too: each comes from other users' reports; tuning is not included"
        )
    return {
        **about,
        "method": name,
        "epsilon_asked": "" if epsilon is None else epsilon,
        "epsilon_learner": f"{learner:.5g}",
        "epsilon_peer": f"{peer:.5g}",
        "includes": includes,
        "trials": len(got),
        "accuracy": f"{statistics.mean(got):.4f}",
        "standard_error": f"{statistics.stdev(got) / len(got) ** 0.5:.4f}" if len(got) > 1 else "",
        "each": " ".join(f"{one:.4f}" for one in got),
        **{
            each: _mean(found, each)
            for each in ("first_accuracy", "reports_right", "reportable", "one_reportable")
        },
    }


def _mean(found: Sequence[Row], name: str) -> str:
    """Return the mean of what the trials say of the stages; "" where they say nothing."""
    said = [row[name] for row in found if row.get(name) is not None]
    return f"{statistics.mean(said):.4f}" if said else ""


def main(arguments: list[str] | None = None) -> int:
    """Write the table, and print it."""
    parser = argparse.ArgumentParser("experiments.multi_stage", description=__doc__)
    parser.add_argument("--data", default="mnist", help="images of several classes; default: mnist")
    parser.add_argument("--rows", type=int, help="training rows, the first ones; default: all")
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS, help="default: 1")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"of each method; default: {TRIALS}")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=tuple(METHODS), help="default: all")
    parser.add_argument("--out", type=Path, default=Path("multi_stage.csv"), help="file of the table")
    add_fresh(parser)
    options = parser.parse_args(arguments)
    check(parser, options.out)
    kept = keeping(parser, options.out, "trials", fresh=options.fresh)
    try:
        found = table(options.data, options.rows, options.epsilon, options.trials, options.methods, kept)
    except InputError as error:
        parser.error(str(error))
    except importlib.metadata.PackageNotFoundError:
        parser.error("the network needs PyTorch: pip install 'p2p-sim[torch]'")
    write_csv(options.out, found)
    for row in found:
        print(
            f"{row['method']:32} epsilon {row['epsilon_learner']:>5}  {row['accuracy']} ({row['standard_error']})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

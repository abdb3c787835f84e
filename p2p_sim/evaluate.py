"""``evaluate``: what a protocol gives up in privacy and in utility on a data set, as one row of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.report.delta import DELTA, check_delta

if TYPE_CHECKING:
    from p2p_sim.core.engine import Progress
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.run import Run

_MODELS = {
    "released": "accuracy_private",
    "corrected": "accuracy_corrected",
    "true": "accuracy_true",
    "constant": "baseline",
}
"""How a row calls the models of a ``Comparison``: trained on what was released, on the true labels, and not at all."""

READING = ("label", "positive", "cluster_column", "classes", "reading")
"""Arguments that say how a file is read."""

INCLUDES = "one label replaced; features and clusters are public; tuning is not included"
"""What every epsilon is of; what a mechanism adds, such as a phi, stands in ``assumes``."""

_METRICS = {
    "balanced_accuracy": "balanced_accuracy", "auc": "auc", "log_loss_nats": "log_loss",
    "average_precision": "average_precision", "calibration_error": "calibration_error",
    "rarest_recall": "rarest_recall",
}  # fmt: skip

_ERRORS = ("rmse", "mae", "r2")
RELEASED, TRUE, CONSTANT = "released", "true", "constant"
"""What models of numbers are measured by, and how a row calls them."""


@showing
def evaluate(
    protocol: Protocol,
    data: str | Path | Dataset,
    *,
    seed: int | None = None,
    split_seed: int | None = None,
    model: str | None = None,
    delta: float = DELTA,
    views: Sequence[str] | None = None,
    progress: Asked = None,
    **how: Any,
) -> Any:
    """Run a protocol among the rows of a data set, train on what it released, account for it; return a row.

    The row is a pandas DataFrame of length 1, of tidy columns: rows of several protocols or seeds go together by
    ``pandas.concat(rows, ignore_index=True)``, and what one of them lacks is missing there.

    ``data``, ``seed``, ``split_seed``, ``model``, ``how`` (label, clusters, test, graph, faults, backend and so on):
    see ``p2p_sim.learning.experiment.learn``.  ``delta`` in [0, 1): of each epsilon.  ``views``: whose epsilon,
    such as ["learner", "learner+3*user"]; None: the rows of ``p2p-sim account`` but servers with colluders, whose laws
    take long; []: nobody's.
    ``progress``: as in ``p2p_sim.run``.

    Columns: ``protocol``, ``parameter[NAME]``, ``data``, ``examples`` (exact, as given, or what is not as published),
    ``content`` (SHA-256 of all examples as they are read), ``users``, ``class_shares`` (of the users, of each label),
    ``canaries`` (where there are some), ``clusters``, ``faults``, ``model``, ``seed``, ``split_seed``; ``delta``,
    ``includes`` (what epsilon is of), and of each view ``epsilon_nats[VIEW]`` (missing where it is refused),
    ``basis[VIEW]`` and ``assumes[VIEW]``;
    ``accuracy[WHICH]``, ``balanced_accuracy[WHICH]``, ``auc[WHICH]``, ``log_loss_nats[WHICH]``,
    ``average_precision[WHICH]``, ``calibration_error[WHICH]`` and ``rarest_recall[WHICH]`` (of the class with the
    fewest test rows) of the model that was trained on what was "released", the "corrected" one, the one trained on the
    "true" labels and the "constant" predictor; where labels are numbers, ``rmse[WHICH]``, ``mae[WHICH]`` (both in the
    label's unit) and ``r2[WHICH]`` instead; ``utility``, which of these are best compared on these examples, see
    ``learning.data_warnings.utility_metric``; ``labels_released``, ``test_rows``, ``messages``, ``bytes``, ``note``;
    ``trials``, 1, and ``standard_error`` (missing: of one trial there is none).  Raises InputError for bad input.

    *Source:* the run and the models of ``learn``; the figures of ``privacy.profile`` for these users.
    """
    import pandas

    from p2p_sim.learning import data_split, experiment
    from p2p_sim.learning.training import models
    from p2p_sim.privacy.profile import probability

    check_delta(probability("delta", delta))
    _check(protocol, data, model, views, how)
    tell = reporter_of(progress)
    model = models.model_for(protocol, model)
    _check_ahead(protocol, how.get("graph"), {"seed": seed, "split_seed": split_seed})
    words = {name: how.pop(name) for name in READING if name in how}
    examples = data_split.read(protocol, data, progress=tell, **words)
    result = experiment.learn(
        protocol, examples, seed=seed, split_seed=split_seed, model=model, progress=tell or False, **how
    )
    of_what = {"examples": examples.fidelity(), "content": examples.content()}
    privacy = privacy_of(protocol, result.run, delta, views, tell)
    found = row_of(protocol, result.run, of_what, privacy, model=model, delta=delta)
    return pandas.DataFrame([found]).astype({"seed": "uint64", "split_seed": "uint64"})


def row_of(
    protocol: Protocol,
    run: Run,
    of_what: Mapping[str, str],
    privacy: Mapping[str, Any],
    *,
    model: str,
    delta: float,
) -> dict[str, Any]:
    """Return the row of a run by ``experiment.learn`` or ``experiment.simulate``; see ``evaluate``.

    ``of_what``: the columns ``examples`` and ``content``; ``privacy``: those of ``privacy_of``.
    """
    found = _setting(protocol, run, model, of_what)
    return found | {"delta": float(delta), "includes": INCLUDES, **privacy} | _utility(run)


def _check(protocol: object, data: object, model: object, views: Any, how: dict[str, Any]) -> None:
    """Check what no other check names; raises InputError."""
    from p2p_sim.learning import experiment
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.run import run

    if isinstance(protocol, type) or not isinstance(protocol, Protocol):
        raise InputError(f"protocol = {protocol!r}: give an object, such as PeerToPeer(alpha=0.1)")
    if not isinstance(data, (str, Path, Dataset)):
        raise InputError(
            f"data = {type(data).__name__}: give the name of a data set, the path of a file (of a DataFrame: "
            'frame.to_parquet("mine.parquet")), or a Dataset'
        )
    if not isinstance(model, (str, type(None))):
        raise InputError(
            f'model = {model!r}: give the name of a model, such as "logistic-regression", or "none"'
        )
    if views is not None and (isinstance(views, str) or not all(isinstance(view, str) for view in views)):
        such = [views] if isinstance(views, str) else ["learner", "user"]
        raise InputError(f"views = {views!r}: give a list of names, such as {such!r}")
    seen: dict[Coalition, str] = {}
    for view in views or ():
        if (who := Coalition.parse(view, protocol.roles())) in seen:
            raise InputError(f"views: {seen[who]!r} and {view!r} are the same view; name it once")
        seen[who] = view
    known = {*signature(experiment.learn).parameters, *signature(run).parameters} - {
        "how",
        "population",
        "out",
    }
    unknown = sorted(how.keys() - known)
    if unknown:
        raise InputError(
            f"{unknown[0]} = {how[unknown[0]]!r}: no argument of evaluate; known are {sorted(known)}"
        )
    if not isinstance(how.get("clusters"), (int, type(None))) or isinstance(how.get("clusters"), bool):
        raise InputError(
            f"clusters = {how['clusters']!r}: how many to make; for a column of the file give cluster_column"
        )
    if isinstance(how.get("test"), (str, bool)):
        raise InputError(f"test = {how['test']!r}: must be a number, the share of test rows")


def _check_ahead(protocol: Protocol, graph: Any, seeds: dict[str, int | None]) -> None:
    """Check what ``learn`` checks before it reads a data set, which is read here."""
    from p2p_sim.learning import user_graph

    user_graph.check(protocol, graph)
    for name, value in seeds.items():
        if value is not None:
            check_seed(value, name)


def _setting(protocol: Protocol, run: Run, model: str, of_what: Mapping[str, str]) -> dict[str, Any]:
    people, about = run.population, run.notes["data"]
    assert people is not None  # who ran just now
    counts = np.bincount(people.y.astype(np.int64), minlength=protocol.label_count())
    return {
        "protocol": protocol.command_name(),
        **{f"parameter[{name}]": _plain(each) for name, each in run.parameters.items() if each is not None},
        "data": about["name"],
        **of_what,
        "users": people.users,
        "class_shares": " ".join(f"{share:.4f}" for share in counts / people.users),
        **({"canaries": run.notes["canaries"]["users"]} if run.canaries else {}),
        "clusters": 0 if people.clusters is None else len(people.sizes),
        "faults": "" if run.faults is None else ", ".join(run.faults.texts()),
        "model": model,
        "seed": run.seed,
        "split_seed": about.get("split_seed", run.seed),
    }


def _plain(value: Any) -> bool | int | float | str:
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def privacy_of(
    protocol: Protocol, run: Run, delta: float, views: Sequence[str] | None, tell: Progress | None = None
) -> dict[str, Any]:
    """Return epsilon and basis of each view; a law is waited for, so that no figure depends on the machine."""
    from p2p_sim.report.privacy_table import AccountRequest

    if views is not None and not len(views):
        return {}
    only = () if views is None else tuple(views)
    request = AccountRequest(protocol, delta, population=run.population, only=only, faults=run.faults)
    rows = [row for row in request.views() if views is not None or not row.slow]
    found: dict[str, Any] = {}
    for i, row in enumerate(rows):
        if tell is not None:
            tell(f"accounting for {row.title}, view", i + 1, len(rows))
        profile = None if request.why_impossible(row) else request.profile(row)
        found[f"epsilon_nats[{row.key}]"] = (
            math.nan if profile is None or profile.law is None else profile.epsilon(delta)
        )
        found[f"basis[{row.key}]"] = "refused" if profile is None else profile.basis
        found[f"assumes[{row.key}]"] = "" if profile is None else "; ".join(profile.assumes)
    return found


def _utility(run: Run) -> dict[str, Any]:
    comparison, kinds = run.notes.get("accuracy") or {}, run.by_kind().values()
    numbers = run.notes.get("regression")
    found = _errors(numbers) if run.notes["data"].get("range") else _accuracies(comparison)
    trained = numbers or comparison
    warned = [trained.get("note", ""), *run.notes["data"].get("warnings", ())]
    return found | {
        "utility": run.notes["data"].get("utility", "rmse" if "range" in run.notes["data"] else "accuracy"),
        "labels_released": float(trained.get("trained_on", math.nan)),
        "test_rows": run.notes["data"].get("test_rows", 0),
        "messages": sum(count.messages for count in kinds),
        "bytes": sum(count.nbytes for count in kinds),
        "note": "; ".join(filter(None, warned)),
        "trials": 1,
        "standard_error": math.nan,
    }


def _accuracies(comparison: Mapping[str, Any]) -> dict[str, float]:
    """Return what models of classes are worth; all missing where none was trained."""
    found: dict[str, float] = {}
    for which, name in _MODELS.items():
        metrics = comparison.get("metrics", {}).get(name, {})
        found[f"accuracy[{which}]"] = _number(comparison.get(name))
        found |= {f"{column}[{which}]": _number(metrics.get(key)) for column, key in _METRICS.items()}
    return found


def _errors(numbers: Mapping[str, Any] | None) -> dict[str, float]:
    """Return what models of numbers are worth; all missing where none was trained."""
    errors = {} if numbers is None else numbers["errors"]
    return {
        f"{name}[{which}]": _number(errors.get(which, {}).get(name))
        for which in (RELEASED, TRUE, CONSTANT)
        for name in _ERRORS
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, float) else math.nan

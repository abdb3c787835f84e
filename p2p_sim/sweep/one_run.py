"""One run of a sweep: what it is, as JSON values, and what the table says of it before it is made.

A run holds ``protocol`` (a name, or ``module:Class``), its ``parameters``, ``settings`` by the names of
``sweep.settings``, and perhaps a ``promise`` that decides one more parameter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from p2p_sim import catalogue
from p2p_sim.core.engine import Progress
from p2p_sim.core.protocol import Protocol
from p2p_sim.report.delta import DELTA
from p2p_sim.rundir.run_directory import from_json
from p2p_sim.sweep.settings import SEEDS, reading_of

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

OneRun = Mapping[str, Any]
Row = dict[str, Any]

_START = 0.25
"""A value of what a promise decides, with which a protocol can be asked about its labels and clusters."""

_OF_A_ROW = ("data", "users", "clusters", "faults", "model", "seed", "split_seed", "delta", "views")
"""Settings that a row tells in columns of its own."""


def protocol_of(run: OneRun, value: float | None = None) -> Protocol:
    """Return the protocol of a run; raises InputError.

    ``value``: of the parameter that its promise decides; None: one to begin with.
    """
    promise, decided = run.get("promise"), {}
    if promise is not None:
        start = promise["between"][0] if "between" in promise else _START
        decided = {promise["vary"]: start if value is None else value}
    return catalogue.named(run["protocol"])(**parameters_of(run), **decided)


def protocol_text(run: OneRun) -> str:
    """Return what is the same for all runs of one protocol with the same parameters."""
    return json.dumps([run["protocol"], run["parameters"], run.get("promise")], sort_keys=True)


def trial_of(run: OneRun) -> str:
    """Return what is the same for all trials of a setting, which differ in seeds alone."""
    settings = {name: value for name, value in run["settings"].items() if name not in SEEDS}
    return json.dumps({**run, "settings": settings}, sort_keys=True)


def examples_of(run: OneRun, protocol: Protocol) -> str | None:
    """Return what is the same for all runs on the same examples, as text; None for synthetic users."""
    settings = run["settings"]
    if "data" not in settings:
        return None
    names = ("data", "label", "positive", "classes", "cluster_column")
    read = {name: settings[name] for name in names if name in settings}
    read |= {f"reading.{name}": value for name, value in vars(reading_of(settings)).items()}
    kinds = {"multiclass": protocol.label_count() > 2, "numbers": protocol.numbers() is not None}
    return json.dumps(read | kinds, sort_keys=True)


def read(run: OneRun, protocol: Protocol, tell: Progress | None = None) -> Dataset:
    """Read the examples of a run; raises InputError."""
    from p2p_sim.learning import data_split

    settings = run["settings"]
    names = ("label", "positive", "classes", "cluster_column")
    return data_split.read(
        protocol, settings["data"], reading=reading_of(settings), progress=tell,
        **{name: settings[name] for name in names if name in settings},
    )  # fmt: skip


def columns_of(run: OneRun) -> Row:
    """Return what the table says of a run, whether it was made or failed."""
    settings, promise = run["settings"], run.get("promise")
    given = {name: value for name, value in parameters_of(run).items() if value is not None}
    found: Row = {"protocol": _command_name(run["protocol"])}
    found |= {f"parameter[{name}]": _plain(value) for name, value in given.items()}
    found |= {name: _plain(value) for name, value in settings.items() if name != "views"}
    found |= {
        "data": settings.get("data", "synthetic"),
        "split_seed": settings.get("split_seed", settings["seed"]),
    }
    found["delta"] = delta_of(run)
    if promise is not None:
        found |= {
            "promise[epsilon_nats]": promise["epsilon"], "promise[delta]": promise["delta"],
            "promise[view]": promise["view"], "promise[vary]": promise["vary"],
        }  # fmt: skip
    return found


def parameters_of(run: OneRun) -> dict[str, Any]:
    """Return the parameters of the protocol of a run that are given."""
    return {name: from_json(value) for name, value in run["parameters"].items()}


def delta_of(run: OneRun) -> float:
    """Return the delta of a row's epsilons: of its promise, unless another is asked for."""
    return float(run["settings"].get("delta", run.get("promise", {}).get("delta", DELTA)))


def _command_name(protocol: str) -> str:
    return catalogue.named(protocol).command_name()


def _plain(value: Any) -> bool | int | float | str:
    """Return a setting as a cell of a table."""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    return value if isinstance(value, (bool, int, float, str)) else str(value)

"""``Maker``: makes the runs of a sweep that come to one process, and keeps what several of them need."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.protocol import Protocol
from p2p_sim.sweep import attacked
from p2p_sim.sweep.one_run import (
    OneRun,
    Row,
    columns_of,
    delta_of,
    examples_of,
    parameters_of,
    protocol_of,
    read,
    trial_of,
)
from p2p_sim.sweep.settings import trains

if TYPE_CHECKING:
    from p2p_sim.core.population import Population
    from p2p_sim.leakage.estimates import Estimates
    from p2p_sim.learning.data.datasets import Dataset

_KEPT = 2  # data sets that a process holds
_FIGURES = 4096  # settings whose figures it holds


def _clusters_of(run: OneRun) -> str:
    """Return what is the same for runs of one setting whose users have the same clusters, and so the same figures."""
    settings = run["settings"]
    drawn = (
        "graph" in settings or "features" in settings or ("data" in settings and "split_seed" not in settings)
    )
    return json.dumps([trial_of(run), settings.get("split_seed"), settings["seed"] if drawn else None])


class Maker:
    """Makes runs one after another, and keeps what several of them need: examples, calibrated values, figures.

    A row depends on its run alone, not on what was made before.
    """

    def __init__(self) -> None:
        self._examples: dict[str, tuple[Dataset, dict[str, str]]] = {}
        self._calibrated: dict[str, tuple[float, Row]] = {}
        self._privacy: dict[str, Row] = {}
        self._estimates: Estimates | None = None

    def row(self, run: OneRun, content: str | None) -> Row:
        """Make a run, and return its row; ``content``: the SHA-256 of its examples.

        Raises whatever the run raises, and InputError where the examples here are others.
        """
        from p2p_sim.evaluate import privacy_of, row_of
        from p2p_sim.learning import experiment
        from p2p_sim.learning.training import models

        settings, protocol = run["settings"], protocol_of(run)
        data, of_what = self._read(run, protocol, content)
        promised: Row = {}
        if "promise" in run:
            value, promised = self._calibrate(run, protocol, data)
            protocol = protocol_of(run, value)
        how = _options(settings, "graph", "seed", "faults", "crypto", "model")
        how["threads"] = 1  # each processor has a worker of its own
        how |= {"costs": settings.get("costs", False), "trace": "full" if "attack" in settings else "none"}
        held_out = None
        if data is None:
            people = _options(settings, "cluster_size", "share", "shares", "features")
            done = experiment.simulate(protocol, settings["users"], **people, **how, progress=False)
        else:
            among = _options(settings, "clusters", "test", "split_seed")
            learned = experiment.learn(protocol, data, **among, **how, progress=False)
            done, held_out = learned.run, learned.examples.held_out()
        trained = trains(settings)
        model = models.model_for(protocol, settings.get("model")) if trained else models.NO_MODEL
        key = _clusters_of(run)
        if key not in self._privacy:
            if len(self._privacy) >= _FIGURES:
                self._privacy.clear()
            self._privacy[key] = privacy_of(protocol, done, delta_of(run), settings.get("views"))
        found = row_of(protocol, done, of_what, self._privacy[key], model=model, delta=delta_of(run))
        rounds = 1 + max((number for (_, number), count in done.counts.items() if count.messages), default=-1)
        more = attacked.costs_of(done) if settings.get("costs") else {}
        if "attack" in settings:
            more |= attacked.attack_on(done, held_out, settings, self._estimated())
        return columns_of(run) | found | promised | more | {"rounds": rounds, "digest": done.digest}

    def _estimated(self) -> Estimates:
        from p2p_sim.leakage.estimates import Estimates

        self._estimates = self._estimates or Estimates()
        return self._estimates

    def _read(
        self, run: OneRun, protocol: Protocol, content: str | None
    ) -> tuple[Dataset | None, dict[str, str]]:
        """Return the examples of a run, and what a row says of them."""
        key = examples_of(run, protocol)
        if key is None:
            return None, {"examples": "made up", "content": ""}
        if key not in self._examples:
            while len(self._examples) >= _KEPT:
                del self._examples[next(iter(self._examples))]
            data = read(run, protocol)
            self._examples[key] = data, {"examples": data.fidelity(), "content": data.content()}
        data, of_what = self._examples[key]
        if of_what["content"] != content:
            raise InputError(
                f"data {run['settings']['data']!r}: this process reads other examples than the sweep began with "
                f"(SHA-256 {of_what['content'][:12]}, not {str(content)[:12]}): give every machine the same"
            )
        return data, of_what

    def _calibrate(self, run: OneRun, protocol: Protocol, data: Dataset | None) -> tuple[float, Row]:
        """Return the value that keeps the promise of a run among its users, and what a row says of it."""
        settings, promise, key = run["settings"], run["promise"], _clusters_of(run)
        if key not in self._calibrated:
            from p2p_sim import privacy

            found = privacy.calibrate(
                type(protocol), **_options(promise, "vary", "view", "epsilon", "delta", "between"),
                population=people_of(run, protocol, data), faults=settings.get("faults"), progress=False,
                **parameters_of(run),
            )  # fmt: skip
            figures = {"promise[achieved_nats]": found.achieved.upper, "promise[basis]": found.profile.basis}
            self._calibrated[key] = found.value, figures
        return self._calibrated[key]


def people_of(run: OneRun, protocol: Protocol, data: Dataset | None) -> Population:
    """Return the users among whom a run will take place, as ``experiment`` makes them."""
    from p2p_sim.learning import users_of_run

    settings = run["settings"]
    how = _options(settings, "graph", "seed")
    if data is None:
        people = _options(settings, "cluster_size")  # a promise is kept whoever has which label
        return users_of_run.synthetic(protocol, settings["users"], **people, **how)[0]
    among = _options(settings, "clusters", "test", "split_seed")
    return users_of_run.of_data(protocol, data, **among, **how)[0]


def _options(settings: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of some settings that are given."""
    read: dict[str, Callable[[Any], Any]] = {"between": tuple}
    return {name: read.get(name, _same)(settings[name]) for name in names if name in settings}


def _same(value: Any) -> Any:
    return value

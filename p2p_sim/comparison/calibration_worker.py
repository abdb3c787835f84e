"""A worker that calibrates protocols, in a process of its own, which can be stopped when its time is over."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from p2p_sim import catalogue
from p2p_sim.check import quick
from p2p_sim.comparison import fit_to_promises
from p2p_sim.comparison.promises import NamedView
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import user_clusters
from p2p_sim.plan import Crowd
from p2p_sim.run import run as start
from p2p_sim.sweep.maker import people_of
from p2p_sim.sweep.one_run import examples_of, parameters_of, protocol_of, read

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

_KEPT = 2  # populations: with clusters, and without

_FEW = 300
"""Users of a pilot run."""


class Calibrator:
    """Calibrates what comes as JSON, and says as JSON what came of it; keeps the examples it read last."""

    def __init__(self) -> None:
        self._key = ""
        self._examples: Dataset | None = None
        self._populations: dict[str, Population] = {}

    def answer(self, text: str) -> str:
        """Return what a calibration found, or why it failed.

        ``text``: ``run``, as of a sweep; ``vary``, None if nothing is to be found; ``promises``, each a view, how its
        users behave and an epsilon, the target first; ``delta``; ``beside``: further views that are looked up, None:
        all of the privacy table; ``pilot``: whether a small run counts messages.
        """
        asked = json.loads(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the runs themselves say it
            try:
                return json.dumps(self._found(asked))
            except (InputError, ProtocolError) as error:
                return json.dumps({"error": str(error)})
            except Exception as error:  # whatever a protocol of one's own raises: the others go on
                return json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())}"})

    def _found(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        run, kind = asked["run"], catalogue.named(asked["run"]["protocol"])
        protocol = protocol_of(run)
        if not catalogue.shipped(kind):
            quick(protocol)  # raises ProtocolError for one that depends on blocks
        people = self._people(run, protocol)
        promises, delta = _promises(kind, asked["promises"]), asked["delta"]
        beside = None if asked["beside"] is None else _promises(kind, asked["beside"])
        found = fit_to_promises.too_many_users(protocol, promises, delta, people) or fit_to_promises.fitted(
            kind, parameters_of(run), asked["vary"], promises, delta, people, beside
        )
        return {"found": asdict(found), "messages": _messages(protocol, people) if asked["pilot"] else 0.0}

    def _people(self, run: Mapping[str, Any], protocol: Protocol) -> Population:
        """Return the users of a run; those of the last calibration where they are the same."""
        settings = [
            run["settings"],
            user_clusters.matter(protocol),
            protocol.graph_over(),
            protocol.label_count(),
        ]
        key = json.dumps([*settings, examples_of(run, protocol)])
        if key not in self._populations:
            data = self._read(run, protocol)
            while len(self._populations) >= _KEPT:
                del self._populations[next(iter(self._populations))]
            self._populations[key] = people_of(run, protocol, data)
        return self._populations[key]

    def _read(self, run: Mapping[str, Any], protocol: Protocol) -> Dataset | None:
        key = examples_of(run, protocol)
        if key is None:
            return None
        if key != self._key:
            self._examples = None
            self._key, self._examples = key, read(run, protocol)
        return self._examples


def _promises(kind: type[Protocol], asked: Sequence[Any]) -> list[fit_to_promises.RowPromise]:
    """Return promises as rows of the privacy table of a protocol; each asked for as in ``Calibrator.answer``."""
    views = [(NamedView(text, users), epsilon) for text, users, epsilon in asked]
    return [fit_to_promises.RowPromise(view.key, view.row(kind), epsilon) for view, epsilon in views]


def _messages(protocol: Protocol, people: Population) -> float:
    """Return how many messages a user sends in a small run: how costly it is beside others; 0 where there is none."""
    with suppress(InputError, ProtocolError):
        few = Crowd.of(people, protocol).make(_FEW)
        done = start(protocol, few, seed=0, digest=False, progress=False, threads=1)
        return sum(count.messages for count in done.by_kind().values()) / few.users
    return 0.0

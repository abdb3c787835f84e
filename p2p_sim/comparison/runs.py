"""The runs of a comparison: one sweep of every protocol that fits, over seeds, and one at other epsilons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.comparison import best_attacker
from p2p_sim.comparison.calibrations import Calibrated
from p2p_sim.comparison.question import People, Question
from p2p_sim.comparison.table import Trials
from p2p_sim.core.engine import Progress
from p2p_sim.core.label_kinds import NUMERIC
from p2p_sim.core.protocol import Protocol
from p2p_sim.network.room import memory
from p2p_sim.plan.run_plan import size
from p2p_sim.rundir.comparison_files import AMONG_FEWER
from p2p_sim.sweep import grids, regrown, sweeping
from p2p_sim.sweep.memory import Extent, need_of
from p2p_sim.sweep.one_run import examples_of
from p2p_sim.sweep.table import FAILED

MOST_USERS, FEWER_USERS = 1_000_000, 100_000
"""Users of the runs: among more, they are a sample; a smaller one where a run among so many cannot be made.  What views
learn is always of all."""

ATTACKED = 40_000
"""Users up to whom the runs of all seeds are attacked; among more, those of the first seed."""

PICTURED = 1
"""Seeds of the runs at other epsilons."""


@dataclass(frozen=True)
class Plan:
    """A sweep, as ``p2p_sim.sweep`` takes it, and of which calibration each of its runs is."""

    grid: dict[str, Any]
    of: list[Calibrated]


Series = Sequence[tuple[Sequence[Calibrated], Sequence[int]]]
"""Protocols that are run, and the seeds of their runs."""


@dataclass(frozen=True)
class Runner:
    """Makes the runs of a comparison, by ``workers`` here or on the cluster at ``address``."""

    question: Question
    people: People
    workers: int | None
    address: str | None
    tell: Progress

    def made(
        self, series: Series, attacked: bool, place: Path, until: float | None
    ) -> list[tuple[Calibrated, Trials]]:
        """Run protocols over seeds, and return of each calibration its runs; some may have none, as time ended.

        ``attacked``: see ``planned``.  Where no run among many users can be made, there are runs among fewer, which
        are kept beside ``place``.
        """
        every = self._swept(series, attacked, MOST_USERS, place, until)
        if self.people.users <= FEWER_USERS:
            return every
        failed = {id(each) for each, trials in every if trials.all_failed}
        again = _only(series, failed)
        smaller = place.with_name(f"{place.name}{AMONG_FEWER}")
        fewer = self._swept(again, attacked, FEWER_USERS, smaller, until)
        instead = {id(each): trials for each, trials in fewer}
        return [(each, instead.get(id(each), trials)) for each, trials in every]

    def _swept(
        self, series: Series, attacked: bool, most: int, place: Path, until: float | None
    ) -> list[tuple[Calibrated, Trials]]:
        """Make a sweep of those that the memory holds; it may have grown since, as there was no time for all."""
        among = min(most, self.people.users)
        calibrated = list({id(each): each for those, _ in series for each in those}.values())
        alike: dict[tuple[Protocol, str | None], Calibrated] = {}
        first = {id(each): alike.setdefault(_setting(each), each) for each in calibrated}
        distinct = list(alike.values())  # of a target of 0 the setting is the same at every scale
        refused = {} if self.address is not None else _too_large(self.question, self.people, distinct, most)
        held = _only(series, {id(each) for each in distinct} - set(refused))
        plan = planned(self.question, self.people, held, attacked, most)
        rows: dict[int, list[Any]] = {
            id(each): [{"status": FAILED, "error": refused[id(each)]}] if id(each) in refused else []
            for each in calibrated
        }
        if plan.of:
            regrown.keep_common(place, plan.grid)
            swept = sweeping.made(
                plan.grid, out=place, workers=self.workers, address=self.address, tell=self.tell, until=until
            )
            for each, row in zip(plan.of, swept.table.to_dict("records"), strict=True):
                rows[id(each)].append(row)
        return [(each, Trials(rows[id(first[id(each)])], among)) for each in calibrated]


def _setting(each: Calibrated) -> tuple[Protocol, str | None]:
    """Return what is the same for calibrations that came to the same setting of one protocol."""
    return protocol_of(each), each.job.candidate.graph


def _only(series: Series, those: set[int]) -> Series:
    """Return the calibrations of a series whose ``id`` is among some."""
    return [([each for each in some if id(each) in those], seeds) for some, seeds in series]


def planned(question: Question, people: People, series: Series, attacked: bool, most: int) -> Plan:
    """Plan a sweep: seed by seed, and for each the protocols that send little before those that send much.

    ``attacked``: whether runs are attacked and costed: of the first seed all, of others where that is cheap.  ``most``:
    users of a run.
    """
    cheap = min(most, people.users) <= ATTACKED
    blocks: list[dict[str, Any]] = []
    of: list[Calibrated] = []
    for calibrated, seeds in series:
        order = sorted(calibrated, key=lambda each: each.messages)
        for number, seed in enumerate(seeds):
            for block, those in _blocks(question, people, order, attacked and (cheap or number == 0)):
                blocks.append({**block, "seed": [seed], "protocol": [protocol_of(each) for each in those]})
                of += those
    common = {**people.among(most), "views": [], "delta": question.promises.delta}
    if "data" in question.people:
        common["split_seed"] = question.seeds[0]
    return Plan({**common, "grid": blocks}, of)


def _blocks(
    question: Question, people: People, order: Sequence[Calibrated], attacked: bool
) -> Iterator[tuple[dict[str, Any], list[Calibrated]]]:
    """Yield the runs of one seed that have the same settings, which are told apart from those of others."""
    for graph in dict.fromkeys(each.job.candidate.graph for each in order):
        block: dict[str, Any] = {} if graph is None else {"graph": graph}
        own = [each for each in order if each.job.candidate.graph == graph]
        for view, those in _by_view(question, own, attacked).items():
            looked_at = _looked_at(question, people) if attacked else {}
            yield {**block, **looked_at, **({"attack": view} if view else {})}, those


def _too_large(
    question: Question, people: People, calibrated: Sequence[Calibrated], most: int
) -> dict[int, str]:
    """Return why this machine's memory cannot hold the runs of some calibrations, by their ``id``."""
    plan = planned(question, people, [(calibrated, question.seeds[:1])], False, most)
    data, room, found = people.data, memory(), dict[int, str]()
    clusters = 0 if data is None or data.cluster is None else len(set(data.cluster))
    extent = Extent(0 if data is None else len(data.y), people.features, clusters)
    for each, run in zip(plan.of, grids.read(plan.grid).runs() if plan.of else (), strict=True):
        key = examples_of(run, protocol_of(each))
        nbytes = need_of([(0, run)], {} if key is None else {key: extent}, room).nbytes
        if nbytes > room:
            found[id(each)] = (
                f"a run among {min(most, people.users):,} users needs {size(nbytes)} of memory, and this machine has "
                f"{size(room)}: take fewer users or features, or a larger machine"
            )
    return found


def protocol_of(each: Calibrated) -> Protocol:
    """Return the protocol with the value that was found."""
    assert each.fitted is not None
    return each.job.candidate.made(each.fitted.value)


def _looked_at(question: Question, people: People) -> dict[str, Any]:
    found: dict[str, Any] = {"costs": True, "attack_confidence": best_attacker.strict()}
    if people.rare:  # always guessing the other one would hardly be beaten
        found["attack_utility"] = "weighted"
    if people.features == 0 or people.labels.name == NUMERIC:  # of many numbers a model sees too few of each
        found["eta"] = "prior"
    elif "users" in question.people:
        found["eta"] = "true"
    return found


def _by_view(
    question: Question, calibrated: Sequence[Calibrated], attacked: bool
) -> dict[str, list[Calibrated]]:
    """Return calibrations by how their protocols call the target's view, which is attacked; empty: it is not."""
    groups: dict[str, list[Calibrated]] = {}
    for each in calibrated:
        row = question.promises.target.view.row(each.job.candidate.kind) if attacked else None
        name = "" if row is None or row.users != "curious" else row.name
        groups.setdefault(name, []).append(each)
    return groups

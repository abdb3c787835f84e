"""The runs of a comparison: one sweep of every protocol that fits, over seeds, and one at other epsilons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from p2p_sim.comparison import best_attacker
from p2p_sim.comparison.calibrations import Calibrated
from p2p_sim.comparison.question import People, Question
from p2p_sim.core.label_kinds import NUMERIC
from p2p_sim.core.protocol import Protocol

ATTACKED = 40_000
"""Users up to whom the runs of all seeds are attacked; among more, those of the first seed."""

PICTURED = 1
"""Seeds of the runs at other epsilons."""


@dataclass(frozen=True)
class Plan:
    """A sweep, as ``p2p_sim.sweep`` takes it, and of which calibration each of its runs is."""

    grid: dict[str, Any]
    of: list[Calibrated]

    def __add__(self, other: Plan) -> Plan:
        """Return a plan of the runs of both, which are of the same people."""
        return Plan({**self.grid, "grid": [*self.grid["grid"], *other.grid["grid"]]}, [*self.of, *other.of])


def planned(
    question: Question,
    people: People,
    calibrated: Sequence[Calibrated],
    seeds: Sequence[int],
    *,
    attacked: bool,
) -> Plan:
    """Plan a sweep: seed by seed, and for each the protocols that send little before those that send much.

    ``attacked``: whether runs are attacked and costed: of the first seed all, of others where that is cheap.
    """
    order = sorted(calibrated, key=lambda each: each.messages)
    graphs = list(dict.fromkeys(each.job.candidate.graph for each in order))
    blocks: list[dict[str, Any]] = []
    of: list[Calibrated] = []
    for number, seed in enumerate(seeds):
        for graph in graphs:
            block: dict[str, Any] = {"seed": [seed]}
            if graph is not None:
                block["graph"] = graph
            looked_at = attacked and (number == 0 or _is_cheap(people))
            if looked_at:
                block |= _looked_at(question, people)
            own = [each for each in order if each.job.candidate.graph == graph]
            for view, those in _by_view(question, own, looked_at).items():
                attack = {"attack": view} if view else {}
                blocks.append({**block, **attack, "protocol": [protocol_of(each) for each in those]})
                of += those
    common = {**question.people, **people.among, "views": [], "delta": question.promises.delta}
    if "data" in question.people:
        common["split_seed"] = question.seeds[0]
    return Plan({**common, "grid": blocks}, of)


def _is_cheap(people: People) -> bool:
    return people.users <= ATTACKED


def protocol_of(each: Calibrated) -> Protocol:
    """Return the protocol with the value that was found."""
    assert each.fitted is not None
    return each.job.candidate.made(each.fitted.value)


def _looked_at(question: Question, people: People) -> dict[str, Any]:
    found: dict[str, Any] = {"costs": True, "attack_confidence": best_attacker.strict()}
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

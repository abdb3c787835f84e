"""Which protocols can collect some labels at all, and what of each is to be calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.columns_read import reads
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.label_kinds import BINARY, NUMERIC
from p2p_sim.core.message import USER
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.applicability import LabelKind, mismatch
from p2p_sim.privacy.calibrate import RANGES
from p2p_sim.protocol_parameters import complete, constructed, parameters

GRAPH = "complete"
"""The graph of protocols that need one: everybody may write to everybody, so it is the same for all seeds."""

_VARIED = ("alpha", "epsilon", "theta", "lam")
"""What is calibrated: the first of these that a protocol has."""


@dataclass(frozen=True)
class Candidate:
    """A protocol that takes the labels.

    ``name``: as the catalogue knows it; ``fixed``: its parameters but ``vary``, which is None if there is nothing to
    calibrate; ``graph``: as ``--graph``, None for a protocol without one.
    """

    name: str
    kind: type[Protocol]
    fixed: Mapping[str, Any]
    vary: str | None
    graph: str | None

    def made(self, value: float | None = None) -> Protocol:
        """Return the protocol; ``value``: of what varies, None: one to begin with."""
        varied = {} if self.vary is None else {self.vary: self.start if value is None else value}
        return constructed(self.kind, {**self.fixed, **varied})

    @property
    def start(self) -> float:
        """A value of what varies, to begin with."""
        where = RANGES[self.vary or "epsilon"]
        return (
            0.25
            if where.private < 0.25 < where.useful or where.useful < 0.25 < where.private
            else where.private
        )


@dataclass(frozen=True)
class Inapplicable:
    """A protocol that cannot collect these labels, and why."""

    name: str
    why: str


def of(
    names: Sequence[str] | None, labels: LabelKind, features: int
) -> tuple[list[Candidate], list[Inapplicable]]:
    """Return the protocols that take some labels, and those that do not.

    ``names``: None means all that are known; ``features``: how many public ones each user has.
    Raises InputError for a name that is not known, or given twice.
    """
    if names is not None and (not names or isinstance(names, str)):
        raise InputError(f"protocols = {names!r}: give a list of names; leave it out for all that are known")
    kinds: dict[str, type[Protocol]] = {}
    for name in names if names is not None else [kind.command_name() for kind in catalogue.everything()]:
        if name in kinds:
            raise InputError(f"protocols: {name!r} is named twice; leave one out")
        kinds[name] = catalogue.named(name)
    found, others = list[Candidate](), list[Inapplicable]()
    for name, kind in kinds.items():
        try:
            found.append(_candidate(name, kind, labels, features))
        except (InputError, ProtocolError) as error:
            others.append(Inapplicable(name, str(error)))
    return found, others


def _candidate(name: str, kind: type[Protocol], labels: LabelKind, features: int) -> Candidate:
    """Return a candidate; raises InputError with the reason why a protocol is none."""
    offered = parameters(kind)
    own = {each.name: each for each in offered.values()}
    given = _of_labels(kind, set(own), labels)
    vary = next((each for each in _VARIED if each in own and own[each].kind is float), None)
    fixed = complete(kind, offered, given, but=vary or "")
    start = Candidate(name, kind, fixed, vary, None).made()
    needed = start.feature_count()
    if needed is not None and needed != features:
        raise InputError(f"it needs {needed} features of each user, and there are {features}")
    return Candidate(name, kind, fixed, vary, None if start.graph_over() is None else GRAPH)


def _of_labels(kind: type[Protocol], own: set[str], labels: LabelKind) -> dict[str, Any]:
    """Return the parameters that say which labels there are; raises InputError where a protocol cannot take them."""
    why = mismatch(kind, labels)
    if why is not None:
        raise InputError(why)
    if reads(kind, USER, "secret"):
        raise InputError("it reads a secret column of its own, not a label")
    if labels.name == NUMERIC:
        assert labels.range is not None  # no data are numeric without
        return dict(zip(("low", "high"), labels.range, strict=True)) if {"low", "high"} <= own else {}
    return {} if labels.name == BINARY or "labels" not in own else {"labels": labels.count}

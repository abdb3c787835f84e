"""What the labels of examples are: two classes, several, or numbers; and which protocols take them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from p2p_sim.core.label_kinds import BINARY, CLASSES, NUMERIC
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data.datasets import Dataset


@dataclass(frozen=True)
class LabelKind:
    """``name``: "binary", "k" (several classes) or "numeric"; ``label``: the column.

    ``count``: classes, or of numbers how many different ones occur.  ``range``: of numbers, the public least and
    greatest one, where it was said.
    """

    name: str
    label: str
    count: int
    range: tuple[float, float] | None = None

    def __str__(self) -> str:
        return {BINARY: "two classes", NUMERIC: "numbers"}.get(self.name, f"{self.count} classes")


def label_kind(data: Dataset) -> LabelKind:
    """Return what the labels of a data set are, as it was read."""
    count = len(data.classes)
    if data.numeric:
        return LabelKind(NUMERIC, data.label, count, data.range)
    return LabelKind(BINARY if count == 2 else CLASSES, data.label, count)


def applicable(mechanism: Protocol | type[Protocol], kind: LabelKind) -> str | None:
    """Return why a protocol does not take labels of a kind, with what to use instead; None if it does.

    ``mechanism``: a protocol, which takes a number of classes; or its class, which may be given any.
    """
    from p2p_sim.privacy.accepted_labels import protocols_for, taken_by

    made = mechanism if isinstance(mechanism, Protocol) else None
    of = type(made) if made is not None else mechanism
    assert isinstance(of, type)
    takes, name = taken_by(of), of.command_name()
    what = f"label {kind.label!r} is {kind}"
    if kind.name in takes:
        if made is not None and kind.name == CLASSES and made.label_count() < kind.count:
            return f"{name} is set to {made.label_count()} labels, and {what}: give it as many (--labels {kind.count})"
        return None
    others = f"{name} takes {_taken(takes, kind)}, and {what}: take {protocols_for(kind.name)}"
    if kind.name == NUMERIC:
        return f"{others}; or name the values that count as 1 (--positive)"
    if kind.name == CLASSES and BINARY in takes:
        return f"{others}; or name those that count as 1 (--positive)"
    return others


def more_labels(protocol: Protocol, kind: LabelKind) -> str | None:
    """Return a warning where a protocol is set to more labels than the declared classes are; None if it is not."""
    labels = protocol.label_count()
    if kind.name == NUMERIC or labels <= kind.count:
        return None
    return (
        f"{protocol.command_name()} is set to {labels} labels, and label {kind.label!r} has {kind.count} classes: "
        "nobody has the others, and they take a part of the noise; unless that is meant, give it as many "
        f"(--labels {kind.count})"
    )


def mismatch(mechanism: type[Protocol], kind: LabelKind) -> str | None:
    """Return in few words why a protocol does not take labels of a kind, without its name; None if it does."""
    from p2p_sim.privacy.accepted_labels import taken_by

    takes = taken_by(mechanism)
    if kind.name in takes:
        return None
    return f"made for {_taken(takes, kind)}, and label {kind.label!r} is {kind}"


def _taken(takes: Collection[str], kind: LabelKind) -> str:
    """Return what a protocol takes that does not take labels of a kind, in words."""
    if kind.name == NUMERIC:
        return "classes"
    return "two classes" if kind.name == CLASSES and BINARY in takes else "numbers"

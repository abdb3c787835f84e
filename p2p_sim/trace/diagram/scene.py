"""What a diagram shows, whatever its format: lanes, and arrows between them in the order of rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.diagram import labels
from p2p_sim.trace.diagram.flat import Flat, flat
from p2p_sim.trace.diagram.grouping import Lane, Layout, choose
from p2p_sim.trace.slices import Slice, message_id

Array = npt.NDArray[Any]
Sight = Mapping[str, tuple[Array, Array]]
"""By kind, two masks of a slice's messages: of which a viewpoint sees anything, and whose fields it reads."""

MOST_LANES, MOST_ARROWS = 40, 400
"""Above either, parties are drawn together, by cluster or by role."""

_DETAIL = 100  # letters of a message's fields that are shown
SENTENCE = 400
"""Letters of a sentence that are shown."""

READ, SEALED, STRUCK, UNSEEN = "read", "sealed", "struck", "unseen"


@dataclass(frozen=True)
class Arrow:
    """One message, or all of one kind between two lanes in one round; ``sender``, ``recipient``: places among lanes.

    ``detail``: what is read; ``hidden``: what is not.  ``sight``: "read"; "sealed" for somebody; "struck", where the
    viewpoint cannot read the fields; "unseen", where it does not know of the message.
    """

    id: str
    round: int
    kind: str
    sender: int
    recipient: int
    messages: int
    nbytes: int
    detail: str
    hidden: str
    sight: str


@dataclass(frozen=True)
class Scene:
    """A whole diagram.

    ``kinds``: by name, its sentence; ``notes``: what was put together or left out, in words; ``command``: what draws
    the run, which with the options of a lane draws what is in it.
    """

    title: str
    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...]
    kinds: Mapping[str, str]
    notes: tuple[str, ...]
    viewpoint: str | None = None
    command: str | None = None


def scene(
    part: Slice,
    title: str,
    *,
    asked: Sequence[int] = (),
    clusters: Callable[[Array], Array] | None = None,
    viewpoint: str | None = None,
    sight: Sight | None = None,
    most: int = MOST_ARROWS,
    notes: Sequence[str] = (),
    command: str | None = None,
) -> Scene:
    """Lay out a slice.

    ``asked``: ids of users who keep a lane of their own as long as possible.  ``clusters``: cluster numbers of ids,
    None without clusters.  ``sight``: of the viewpoint, None for everything but what is sealed.  ``most``: arrows, at
    least 1.  ``command``: what draws this run; None if the picture is not to say how to look closer.
    """
    table = flat(part)
    seen, read = _masks(part, table, sight)
    layout = choose(table, np.unique(np.array(asked, np.int64)), clusters, MOST_LANES, most)
    if layout.single:
        arrows = [
            _message(part, table, layout, i, viewpoint is not None, seen, read) for i in range(len(table))
        ]
    else:
        arrows = _merged(part, table, layout, viewpoint is not None, seen, read)
    kinds = {labels.clean(kind): labels.clean(text, SENTENCE) for kind, text in part.texts.items()}
    used = {arrow.kind: kinds[arrow.kind] for arrow in arrows}
    who = None if viewpoint is None else labels.clean(viewpoint)
    return closer(
        Scene(
            labels.clean(title, SENTENCE), layout.lanes, tuple(arrows), used, (*layout.notes, *part.notes, *notes),
            who, command,
        )
    )  # fmt: skip


def closer(drawn: Scene) -> Scene:
    """Return a scene whose first note says by which command its shared lanes are opened, if it has one."""
    lanes, command, notes = drawn.lanes, drawn.command, drawn.notes
    if command is None or labels.clean(command, SENTENCE) != command:  # what is shown must work
        command, lanes = None, tuple(replace(lane, opens="") for lane in lanes)
    if any(lane.opens for lane in lanes):
        notes = (f"{notes[0]}: {command} with the option in a lane's box", *notes[1:])
    told = tuple(labels.clean(note, 2 * SENTENCE) for note in notes)
    return replace(drawn, lanes=lanes, command=command, notes=told)


def _masks(part: Slice, table: Flat, sight: Sight | None) -> tuple[Array, Array]:
    """Return which rows are seen, and whose fields are read."""
    seen, read = np.ones(len(table), np.bool_), np.ones(len(table), np.bool_)
    for i, kind in enumerate(table.kinds):
        mine = table.kind == i
        if sight is not None:
            seen[mine], read[mine] = (mask[table.row[mine]] for mask in sight[kind])
        elif "readable" in part.kinds[kind]:
            read[mine] = part.kinds[kind]["readable"][table.row[mine]]
        elif part.sealed[kind] is not None:
            read[mine] = False
    return seen, read


def _message(
    part: Slice, table: Flat, layout: Layout, row: int, viewed: bool, seen: Array, read: Array
) -> Arrow:
    """Return the arrow of one message, with its fields or what stands in their place."""
    kind = table.kinds[int(table.kind[row])]
    names, sealed = part.fields(kind), part.sealed[kind]
    detail, hidden, sight = "", "", READ
    if not seen[row]:
        sight = UNSEEN
    elif read[row] or not names:
        columns, place = part.kinds[kind], int(table.row[row])
        told = [f"{labels.clean(name)}={labels.value(columns[name][place])}" for name in names]
        detail = labels.clean(" ".join(told), _DETAIL)
    else:
        hidden = labels.clean(", ".join(names))
        detail = f"sealed for {labels.clean(sealed)}" if sealed else ""
        sight = STRUCK if viewed or not sealed else SEALED
    sender, recipient = (max(int(column[row]), 0) for column in (table.sender, table.recipient))
    named = message_id(labels.clean(kind), int(table.round[row]), sender, recipient, int(table.seq[row]))
    ends = (int(layout.ends[row, 0]), int(layout.ends[row, 1]))
    return Arrow(
        named,
        int(table.round[row]),
        labels.clean(kind),
        *ends,
        1,
        int(table.nbytes[row]),
        detail,
        hidden,
        sight,
    )


def _merged(part: Slice, table: Flat, layout: Layout, viewed: bool, seen: Array, read: Array) -> list[Arrow]:
    """Return the arrows of many messages each: how many, how many bytes, and how many of them can be read."""
    kept = layout.arrow >= 0
    columns = (np.ones(len(table), np.int64), table.nbytes, seen, seen & read)
    totals = np.zeros((4, len(layout.first)), np.int64)
    for total, column in zip(totals, columns, strict=True):
        np.add.at(total, layout.arrow[kept], column[kept].astype(np.int64))
    arrows = []
    for row, ends, (count, nbytes, known, legible) in zip(
        layout.first, layout.ends, totals.T.tolist(), strict=True
    ):
        kind, round = table.kinds[int(table.kind[row])], int(table.round[row])
        bare = not part.fields(kind)
        legible = known if bare else legible
        sight = (
            UNSEEN
            if not known
            else READ
            if legible
            else STRUCK
            if viewed or not part.sealed[kind]
            else SEALED
        )
        detail = f"{labels.counted(count, 'message')}, {labels.size(nbytes)}"
        if viewed and known > 0 and legible < count:
            detail += f", {known:,} seen, {legible:,} read"
        elif sight == SEALED:
            detail += f", sealed for {labels.clean(part.sealed[kind])}"
        name = f"{labels.clean(kind)}:{round}"
        arrows.append(
            Arrow(
                name, round, labels.clean(kind), int(ends[0]), int(ends[1]), count, nbytes, detail, "", sight
            )
        )
    return arrows

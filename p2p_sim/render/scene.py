"""What a sequence diagram shows, before it is drawn: lanes, arrows in the order of rounds, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.render import text_labels
from p2p_sim.render.lanes import MOST_ARROWS, MOST_LANES, Lane, Layout, choose
from p2p_sim.render.message_table import MessageTable, Sight, fields, masks, servers_in_order, tabulate
from p2p_sim.trace.slices import Slice, message_id

Array = npt.NDArray[Any]

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
    requested: Sequence[int] = (),
    clusters: Callable[[Array], Array] | None = None,
    viewpoint: str | None = None,
    sight: Sight | None = None,
    most: int = MOST_ARROWS,
    notes: Sequence[str] = (),
    command: str | None = None,
) -> Scene:
    """Lay out a slice.

    ``requested``: ids of users who have lanes of their own if possible.  ``clusters``: cluster numbers of ids,
    None without clusters.  ``sight``: of the viewpoint, None for everything but what is sealed.  ``most``: arrows, at
    least 1.  ``command``: what draws this run; None if the picture is not to say how to look closer.
    """
    table = tabulate(part)
    seen, read = masks(part, table, sight)
    layout = choose(table, np.unique(np.array(requested, np.int64)), clusters, MOST_LANES, most)
    if layout.single:
        arrows = [
            _message(part, table, layout, i, viewpoint is not None, seen, read) for i in range(len(table))
        ]
    else:
        arrows = _merged(part, table, layout, viewpoint is not None, seen, read)
    kinds = {text_labels.clean(kind): text_labels.clean(text, SENTENCE) for kind, text in part.texts.items()}
    used = {arrow.kind: kinds[arrow.kind] for arrow in arrows}
    who = None if viewpoint is None else text_labels.clean(viewpoint)
    return _with_opening_note(
        Scene(
            text_labels.clean(title, SENTENCE), layout.lanes, tuple(arrows), used, (*layout.notes, *part.notes, *notes),
            who, command,
        )
    )  # fmt: skip


def _with_opening_note(drawn: Scene) -> Scene:
    """Return a scene whose first note says by which command its shared lanes are opened, if it has one."""
    lanes, command, notes = drawn.lanes, drawn.command, drawn.notes
    if command is None or text_labels.clean(command, SENTENCE) != command:  # what is shown must work
        command, lanes = None, tuple(replace(lane, opens="") for lane in lanes)
    if any(lane.opens for lane in lanes):
        notes = (f"{notes[0]}: {command} with the option in a lane's box", *notes[1:])
    shown_notes = tuple(text_labels.clean(note, 2 * SENTENCE) for note in notes)
    return replace(drawn, lanes=lanes, command=command, notes=shown_notes)


def _message(
    part: Slice, table: MessageTable, layout: Layout, row: int, viewed: bool, seen: Array, read: Array
) -> Arrow:
    """Return the arrow of one message, with its fields or what stands in their place."""
    kind = table.kinds[int(table.kind[row])]
    names, sealed = part.fields(kind), part.sealed[kind]
    detail, hidden, sight = "", "", READ
    if not seen[row]:
        sight = UNSEEN
    elif read[row] or not names:
        assignments = [f"{text_labels.clean(name)}={text}" for name, text in fields(part, table, row).items()]
        detail = text_labels.clean(" ".join(assignments), _DETAIL)
    else:
        hidden = text_labels.clean(", ".join(names))
        detail = f"sealed for {text_labels.clean(sealed)}" if sealed else ""
        sight = STRUCK if viewed or not sealed else SEALED
    ends = (int(layout.ends[row, 0]), int(layout.ends[row, 1]))
    name, address = text_labels.clean(kind), table.address(row)
    named, nbytes = message_id(name, *address), int(table.nbytes[row])
    return Arrow(named, address[0], name, *ends, 1, nbytes, detail, hidden, sight)


def _merged(
    part: Slice, table: MessageTable, layout: Layout, viewed: bool, seen: Array, read: Array
) -> list[Arrow]:
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
        sight = STRUCK if viewed or not part.sealed[kind] else SEALED
        if legible or not known:
            sight = READ if known else UNSEEN
        detail = f"{text_labels.counted(count, 'message')}, {text_labels.size(nbytes)}"
        if viewed and known > 0 and legible < count:
            detail += f", {known:,} seen, {legible:,} read"
        elif sight == SEALED:
            detail += f", sealed for {text_labels.clean(part.sealed[kind])}"
        name, (sender, recipient) = text_labels.clean(kind), ends.tolist()
        found = Arrow(f"{name}:{round}", round, name, sender, recipient, count, nbytes, detail, "", sight)
        arrows.append(found)
    return arrows


def overview(
    kinds: Mapping[str, Message],
    counts: Mapping[tuple[str, int], Count],
    users: int | None,
    title: str,
    *,
    round: int | None = None,
    notes: Sequence[str] = (),
    opens: str = "",
    command: str | None = None,
) -> Scene:
    """Lay out what every role sent to every other, by kind and round.

    ``users``: how many there are, None if that is not known; ``round``: only one; ``opens``: options that, with the
    ``command`` that draws the run, draw some of the users.
    """
    order = {kind: i for i, kind in enumerate(kinds)}
    used = sorted(
        (number, order[kind], kind) for (kind, number), count in counts.items()
        if count.messages and round in (None, number)
    )  # fmt: skip
    ends = {kind: (message.sender, message.recipient) for kind, message in kinds.items()}
    servers = servers_in_order(ends, {kind: number for number, _, kind in reversed(used)})
    roles = [USER] * any(USER in ends[kind] for _, _, kind in used) + list(servers)
    lanes = [
        Lane(f"{USER}s", False, users or 1, opens=opens)
        if role == USER
        else Lane(text_labels.clean(role), True, 1)
        for role in roles
    ]
    arrows = [_arrow(kinds[kind], number, counts[kind, number], roles) for number, _, kind in used]
    texts = {text_labels.clean(kind): text_labels.clean(kinds[kind].text, SENTENCE) for _, _, kind in used}
    name = text_labels.clean(title, SENTENCE)
    return _with_opening_note(Scene(name, tuple(lanes), tuple(arrows), texts, tuple(notes), command=command))


def _arrow(message: Message, round: int, count: Count, roles: list[str]) -> Arrow:
    """Return all messages of a kind in a round as one arrow."""
    kind, sealed = text_labels.clean(message.kind), message.sealed_for
    detail = f"{text_labels.counted(count.messages, 'message')}, {text_labels.size(count.nbytes)}"
    detail += f", sealed for {text_labels.clean(sealed)}" if sealed else ""
    ends = roles.index(message.sender), roles.index(message.recipient)
    sight = SEALED if sealed else READ
    return Arrow(f"{kind}:{round}", round, kind, *ends, count.messages, count.nbytes, detail, "", sight)

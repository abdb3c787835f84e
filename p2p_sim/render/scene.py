"""What pictures of messages show, files and the page: lanes, who shares one, and messages in the order of rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.render import text_labels
from p2p_sim.trace.slices import ADDRESS, Slice, Viewer, message_id

Array = npt.NDArray[Any]
_COLUMNS = (*ADDRESS, "nbytes")


@dataclass(frozen=True)
class Flat:
    """One row a message, ordered by round, kind (as declared), recipient, sender, seq.

    ``kind``: place in ``kinds``; ``row``: place among the slice's messages of that kind.  ``sender`` and ``recipient``:
    a user's id, or -1 - i for the i-th of ``servers``, which stand in the order in which messages reach them.
    """

    kinds: tuple[str, ...]
    servers: tuple[str, ...]
    kind: Array
    row: Array
    round: Array
    sender: Array
    recipient: Array
    seq: Array
    nbytes: Array

    def __len__(self) -> int:
        return len(self.kind)

    def party(self, number: int) -> tuple[str, int]:
        """Return role and id of a party's number; a server's id is 0."""
        return (USER, number) if number >= 0 else (self.servers[-1 - number], 0)

    def name(self, number: int) -> str:
        """Return what a party is called: ``user:17``, or a server's role."""
        return text_labels.party(*self.party(number))

    def address(self, row: int) -> tuple[int, int, int, int]:
        """Return round, sender, recipient and seq of the message in a row, as its id has them: a server is 0."""
        sender, recipient = (max(int(column[row]), 0) for column in (self.sender, self.recipient))
        return int(self.round[row]), sender, recipient, int(self.seq[row])


def flat(part: Slice) -> Flat:
    """Lay out a slice as one table."""
    servers = _servers(part)
    number = {role: -1 - i for i, role in enumerate(servers)}
    kind, row = part.order()
    columns = {name: np.zeros(len(kind), np.int64) for name in _COLUMNS}
    for i, (name, found) in enumerate(part.kinds.items()):
        mine = np.flatnonzero(kind == i)
        for column in _COLUMNS:
            columns[column][mine] = found[column][row[mine]]
        for end, role in zip(("sender", "recipient"), part.roles[name], strict=True):
            if role != USER:
                columns[end][mine] = number.get(role, 0)  # an empty kind needs none
    return Flat(tuple(part.kinds), servers, kind, row, **columns)


def _servers(part: Slice) -> tuple[str, ...]:
    """Return the servers that occur, in order."""
    first = {
        kind: int(columns["round"].min()) for kind, columns in part.kinds.items() if len(columns["round"])
    }
    return _servers_in_order(part.roles, first)


def _servers_in_order(roles: Mapping[str, tuple[str, str]], first: Mapping[str, int]) -> tuple[str, ...]:
    """Return the servers that occur, the one that messages reach first in front, ties as declared.

    ``roles``: of sender and recipient, by kind as declared; ``first``: the first round of each kind that occurs.
    """
    reached: dict[str, tuple[int, int]] = {}
    for kind, at in first.items():
        for late, role in zip((1, 0), roles[kind], strict=True):  # who sends speaks after who is reached
            if role != USER:
                reached[role] = min(reached.get(role, (at, late)), (at, late))
    declared = list(dict.fromkeys(role for ends in roles.values() for role in ends))
    return tuple(sorted(reached, key=lambda role: (*reached[role], declared.index(role))))


def opening_options(
    table: Flat,
    parties: Array,
    lane: Array,
    shared: list[int],
    clusters: Callable[[Array], Array] | None,
    most: tuple[int, int],
) -> dict[int, str]:
    """Return, for each of the ``shared`` lanes, the options that draw its first user's cluster, or only her.

    ``parties``: all, ascending; ``lane``: of each of them.  A cluster is named if its messages can be drawn one by one,
    on at most so many lanes with at most so many arrows, ``most``: otherwise its picture would have the same lane.
    """
    users = np.flatnonzero(parties >= 0)
    first = {number: int(users[lane[users] == number][0]) for number in shared}
    if clusters is None or not shared:
        return {number: _user(parties, place) for number, place in first.items()}
    names, inverse = np.unique(clusters(parties[users]), return_inverse=True)
    code = np.full(len(parties), -1)
    code[users] = inverse.reshape(-1)
    ends = [code[np.searchsorted(parties, column)] for column in (table.sender, table.recipient)]
    found = {}
    for number, place in first.items():
        inside = (ends[0] == code[place]) | (ends[1] == code[place])
        alone = _fits(table.sender[inside], table.recipient[inside], *most)
        found[number] = f"--cluster {names[code[place]]}" if alone else _user(parties, place)
    return found


def _user(parties: Array, place: int) -> str:
    return f"--user {parties[place]}"


def _fits(senders: Array, recipients: Array, most_lanes: int, most_arrows: int) -> bool:
    """Whether messages can be drawn one by one."""
    if len(senders) > most_arrows:
        return False
    return len(np.unique(np.concatenate([senders, recipients]))) <= most_lanes


ClusterOf = Callable[[Array], Array]

_ONE, _CLUSTER, _ROLE, _SERVER = range(4)  # what a lane stands for, in the order of lanes


@dataclass(frozen=True)
class Lane:
    """One lane: a party, or several drawn together.

    ``asked``: whether it was asked for by name; ``opens``: the options that draw what is in it, "" for one party.
    """

    name: str
    server: bool
    parties: int
    asked: bool = False
    opens: str = ""


@dataclass(frozen=True)
class Layout:
    """Which messages make an arrow, and where it goes.

    ``single``: an arrow a message.  ``arrow``: of each row of the table, -1 if it is left out; ``first``: each arrow's
    first row; ``ends``: each arrow's lanes, shape (arrows, 2).  ``parties``: all, ascending; ``lane``: of each of them.
    ``notes``: what was put together or left out.
    """

    lanes: tuple[Lane, ...]
    parties: Array
    lane: Array
    single: bool
    arrow: Array
    first: Array
    ends: Array
    notes: tuple[str, ...]


def choose(
    table: Flat, asked: Array, clusters: ClusterOf | None, most_lanes: int, most_arrows: int
) -> Layout:
    """Return the finest layout with at most so many lanes and arrows; if there is none, the coarsest, cut to them.

    ``asked``: ids, ascending, of users who stay alone as long as possible.
    """
    parties = _distinct(np.concatenate([table.sender, table.recipient, asked]))
    if len(parties) <= most_lanes and len(table) <= most_arrows:
        return _layout(table, parties, asked, None, asked, None)
    most = (most_lanes, most_arrows)
    found = _together(table, parties, asked, clusters, most)
    return _cut(_opened(found, table, clusters, most), most_arrows)


def _distinct(values: Array) -> Array:
    """Return the values that there are, ascending: for millions, quicker than numpy's own, which hashes them."""
    ordered = np.sort(values)
    first = np.concatenate([np.ones(min(len(values), 1), np.bool_), ordered[1:] != ordered[:-1]])
    return np.asarray(ordered[first])


def _together(
    table: Flat, parties: Array, asked: Array, clusters: ClusterOf | None, most: tuple[int, int]
) -> Layout:
    """Return the finest layout in which users share lanes, or the coarsest."""
    groups = 0 if clusters is None else len(_distinct(clusters(parties[parties >= 0])))
    ways = ([("cluster", clusters)] if 0 < groups <= most[0] else []) + [("role", None)]  # more have no room
    advice = _advice(table, parties, groups, most[0])
    for kept in [asked, asked[:0]] if len(asked) else [asked]:
        for way, label in ways:
            found = _layout(table, parties, asked, way, kept, label)
            found = replace(found, notes=tuple(f"{note}; {advice}" for note in found.notes))
            if len(found.lanes) <= most[0] and len(found.first) <= most[1]:
                return found
    return found


def _opened(layout: Layout, table: Flat, clusters: ClusterOf | None, most: tuple[int, int]) -> Layout:
    """Return a layout whose lanes of many say what opens them."""
    shared = [i for i, lane in enumerate(layout.lanes) if _shared(lane)]
    options = opening_options(table, layout.parties, layout.lane, shared, clusters, most)
    lanes = tuple(replace(lane, opens=options.get(i, "")) for i, lane in enumerate(layout.lanes))
    return replace(layout, lanes=lanes)


def _shared(lane: Lane) -> bool:
    return not lane.server and not lane.name.startswith(f"{USER} ")


def _advice(table: Flat, parties: Array, groups: int, most_lanes: int) -> str:
    """Say how to see single messages: only what helps here; ``groups``: how many clusters there are."""
    ways = ["one --cluster"] if groups > 1 else []
    ways += ["a few users (--user)"]
    if len(parties) <= most_lanes:
        ways.append(f"--limit {len(table)}")
    return f"to see single messages ask for {' or '.join(ways)}"


def _layout(
    table: Flat, parties: Array, asked: Array, way: str | None, kept: Array, clusters: ClusterOf | None
) -> Layout:
    """Return one layout; ``way``: how users other than ``kept`` are put together, None for not at all."""
    stands = np.full(len(parties), _ONE)
    value = np.where(parties < 0, -1 - parties, parties)
    stands[parties < 0] = _SERVER
    together = (parties >= 0) & ~np.isin(parties, kept) & (way is not None)
    stands[together] = _CLUSTER if way == "cluster" else _ROLE
    value[together] = 0 if clusters is None else clusters(parties[together])
    values, rank = np.unique(value, return_inverse=True)
    keys, lane, counts = np.unique(stands * len(values) + rank, return_inverse=True, return_counts=True)
    lanes = tuple(
        _lane(table, key // len(values), int(values[key % len(values)]), count, asked, len(kept) > 0)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    )
    ends = np.column_stack(
        [lane[np.searchsorted(parties, column)] for column in (table.sender, table.recipient)]
    )
    if way is None:
        rows = np.arange(len(table))
        return Layout(lanes, parties, lane, True, rows, rows, ends, ())
    key = table.round - (table.round.min() if len(table) else 0)
    for column, width in ((table.kind, len(table.kinds)), *((ends[:, i], len(lanes)) for i in (0, 1))):
        key = key * width + column
    _, first, arrow = np.unique(key, return_index=True, return_inverse=True)
    notes = (_merging_note(way, lanes, together),)
    return Layout(lanes, parties, lane, False, arrow.reshape(-1), first, ends[first], notes)


def _lane(table: Flat, what: int, number: int, parties: int, asked: Array, others: bool) -> Lane:
    """Return a lane and its name."""
    if what == _SERVER:
        return Lane(table.name(-1 - number), True, 1)
    if what == _ONE:
        return Lane(f"{USER} {number}", False, 1, bool(np.isin(number, asked)))
    name = f"cluster {number}" if what == _CLUSTER else f"{USER}s"
    return Lane(f"{name}, others" if others else name, False, parties)


def _merging_note(way: str, lanes: tuple[Lane, ...], together: Array) -> str:
    shared = text_labels.counted(sum(map(_shared, lanes)), "lane")
    return f"{text_labels.counted(int(together.sum()), USER)} are drawn together by {way}, in {shared}"


def _cut(layout: Layout, most: int) -> Layout:
    """Return the first arrows of a layout, and say so."""
    if len(layout.first) <= most:
        return layout
    arrow = np.where(layout.arrow < most, layout.arrow, -1)
    whole = text_labels.counted(len(layout.first), "arrow")
    note = f"the first {most:,} of {whole} are shown; ask for one round, or for more with --limit"
    notes = (*layout.notes, note)
    return replace(layout, arrow=arrow, first=layout.first[:most], ends=layout.ends[:most], notes=notes)


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
    seen, read = masks(part, table, sight)
    layout = choose(table, np.unique(np.array(asked, np.int64)), clusters, MOST_LANES, most)
    if layout.single:
        arrows = [
            _message(part, table, layout, i, viewpoint is not None, seen, read) for i in range(len(table))
        ]
    else:
        arrows = _merged(part, table, layout, viewpoint is not None, seen, read)
    kinds = {text_labels.clean(kind): text_labels.clean(text, SENTENCE) for kind, text in part.texts.items()}
    used = {arrow.kind: kinds[arrow.kind] for arrow in arrows}
    who = None if viewpoint is None else text_labels.clean(viewpoint)
    return closer(
        Scene(
            text_labels.clean(title, SENTENCE), layout.lanes, tuple(arrows), used, (*layout.notes, *part.notes, *notes),
            who, command,
        )
    )  # fmt: skip


def closer(drawn: Scene) -> Scene:
    """Return a scene whose first note says by which command its shared lanes are opened, if it has one."""
    lanes, command, notes = drawn.lanes, drawn.command, drawn.notes
    if command is None or text_labels.clean(command, SENTENCE) != command:  # what is shown must work
        command, lanes = None, tuple(replace(lane, opens="") for lane in lanes)
    if any(lane.opens for lane in lanes):
        notes = (f"{notes[0]}: {command} with the option in a lane's box", *notes[1:])
    shown_notes = tuple(text_labels.clean(note, 2 * SENTENCE) for note in notes)
    return replace(drawn, lanes=lanes, command=command, notes=shown_notes)


def sight_of(part: Slice, eyes: Viewer, channels: str) -> Sight:
    """Return what those who look see and read of a slice."""
    found = {}
    for kind, columns in part.kinds.items():
        message = Message(
            *part.roles[kind], part.texts[kind], sealed_for=part.sealed[kind], layers=part.layers[kind]
        )
        seen, read = eyes.sees(message, columns, channels)
        found[kind] = (seen, seen & read)
    return found


def page_lanes(table: Flat, users: Array) -> list[int | None]:
    """Return the lanes of the page as parties of a table, in the order of every picture: ``users`` by id, all others
    together, servers.

    None is the lane of all users who are not among ``users``; it is there if one of them occurs.
    """
    parties = _distinct(np.concatenate([table.sender, table.recipient, users]))
    layout = _layout(table, parties, users, "role", users, None)
    _, first = np.unique(layout.lane, return_index=True)
    return [
        None if _shared(lane) else int(parties[place])
        for lane, place in zip(layout.lanes, first, strict=True)
    ]  # fmt: skip


def fields(part: Slice, table: Flat, row: int, letters: int = text_labels.VECTOR) -> dict[str, str]:
    """Return the fields of the message in a row as they are shown; ``letters``: of octets or several numbers."""
    kind, place = table.kinds[int(table.kind[row])], int(table.row[row])
    columns = part.kinds[kind]
    return {name: text_labels.value(columns[name][place], letters) for name in part.fields(kind)}


def masks(part: Slice, table: Flat, sight: Sight | None) -> tuple[Array, Array]:
    """Return which rows are seen, and whose fields are read; without anybody's ``sight`` sealed ones are not."""
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
    servers = _servers_in_order(ends, {kind: number for number, _, kind in reversed(used)})
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
    return closer(Scene(name, tuple(lanes), tuple(arrows), texts, tuple(notes), command=command))


def _arrow(message: Message, round: int, count: Count, roles: list[str]) -> Arrow:
    """Return all messages of a kind in a round as one arrow."""
    kind, sealed = text_labels.clean(message.kind), message.sealed_for
    detail = f"{text_labels.counted(count.messages, 'message')}, {text_labels.size(count.nbytes)}"
    detail += f", sealed for {text_labels.clean(sealed)}" if sealed else ""
    ends = roles.index(message.sender), roles.index(message.recipient)
    sight = SEALED if sealed else READ
    return Arrow(f"{kind}:{round}", round, kind, *ends, count.messages, count.nbytes, detail, "", sight)

"""Everything that shows messages through somebody's eyes, over all protocols, against the rule applied one by one.

The rule is written here anew, from docs/views.md, for a single message and plain Python: no mask, no ``Coalition``.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import p2p_sim
from p2p_sim.render import scene, sequence
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.messages import Look, Place, gather, lanes
from p2p_sim.report import message_text
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.trace import query
from p2p_sim.trace.neighbourhood import around
from p2p_sim.trace.slices import Event, Slice
from tests.contract.cases import PROTOCOLS, people_of

USERS = 13
MEMBERS = {"": set[int](), "user:4": {4}, "2*user": {0, 1}, "user:4+user:9": {4, 9}}
"""Users who look, by how they are written."""


class Who(NamedTuple):
    """A coalition, in plain Python."""

    servers: frozenset[str]
    users: frozenset[int]
    wire: bool
    channels: str


def rule(message: Any, event: Event, who: Who) -> tuple[bool, bool]:
    """Whether a coalition sees a message, and whether it reads its fields."""
    (sender, recipient), (from_role, to_role) = event.ends, event.roles
    inside = [
        int(end.partition(":")[2]) in who.users if role == "user" else role in who.servers
        for end, role in ((sender, from_role), (recipient, to_role))
    ]
    handled, travels = any(inside), sender != recipient
    if not handled and not (who.wire and travels):
        return False, False
    there = handled or who.channels == "plain"
    sealer = inside[0] and from_role == "user"
    if message.sealed_for is None:
        return True, there
    if message.sealed_for == "user":  # for one user: she to whom it goes, or she who sealed it
        own = sealer or (inside[1] and to_role == "user")
        return True, own and (not message.layers or sealer)
    keys = {message.sealed_for, *message.layers} <= who.servers
    return True, (keys and there) or bool(message.layers and sealer and message.sealed_for in who.servers)


def viewpoints(protocol: Any) -> dict[str, tuple[Who, str]]:
    """Servers, users and the wire, by name; with what the program calls them.

    Nobody and all of the servers beside all kinds of users, other groups of servers beside one kind, and beside none.
    """
    servers = [role for role in protocol.roles() if role not in ("user", *protocol.idle_roles())]
    groups = [(), *((role,) for role in servers), tuple(servers), tuple(servers[1:])]
    found = {}
    for group in dict.fromkeys(groups):
        for users, ids in MEMBERS.items():
            if 0 < len(group) < len(servers) and users not in ("", "user:4+user:9"):
                continue
            for wire in ("", "wire"):
                name = "+".join(part for part in (*group, users, wire) if part)
                for channels in ("plain", "encrypted") if wire else ("plain",):
                    if name:
                        who = Who(frozenset(group), frozenset(ids), bool(wire), channels)
                        found[f"{name}, {channels}"] = (who, name)
    return found


@cache
def ran(name: str, trace: str = "full") -> Any:
    return p2p_sim.run(PROTOCOLS[name], people_of(PROTOCOLS[name], "scattered", USERS), seed=3, trace=trace)


@cache
def everything(name: str) -> dict[str, Event]:
    run, kinds = ran(name), PROTOCOLS[name].messages()
    return {one.id: one for one in Slice.of(kinds, {kind: run.messages(kind) for kind in kinds}).events()}


def expected(name: str, who: Who) -> dict[str, bool]:
    """Of each message that is seen, whether it is read, by id."""
    kinds = PROTOCOLS[name].messages()
    told = {key: rule(kinds[event.kind], event, who) for key, event in everything(name).items()}
    return {key: reads for key, (sees, reads) in told.items() if sees}


def of_slice(part: Slice) -> dict[str, tuple[bool, Any]]:
    return {event.id: (event.fields is not None, event.fields) for event in part.events()}


def by_id(name: str, wanted: dict[str, bool]) -> dict[str, tuple[bool, Any]]:
    """What is expected, as ``of_slice`` returns it."""
    return {key: (reads, everything(name)[key].fields if reads else None) for key, reads in wanted.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_all_that_shows_messages_follows_the_rule(name: str) -> None:
    run, every = ran(name), everything(name)
    bare, told = ran(name, "none"), KnownRun.of(run)
    fields = {kind: list(message.fields) for kind, message in PROTOCOLS[name].messages().items()}
    found = gather(run, Place())
    for who, view in viewpoints(PROTOCOLS[name]).values():
        asked: dict[str, Any] = {"as_": run.coalition(view), "channels": who.channels}
        seen = expected(name, who)
        wanted = by_id(name, seen)
        looked = run.view(view, channels=who.channels)
        assert of_slice(Slice.of(looked.kinds, looked.messages)) == wanted, view
        for other in (run, bare):
            part = query.messages(other, **asked)
            assert (of_slice(part), sum(part.total.values())) == (wanted, len(wanted)), view
            assert of_slice(around(other, **asked)) == wanted, view
        some = np.array([1, 4])
        touched = {key: told for key, told in wanted.items() if {"user:1", "user:4"} & set(every[key].ends)}
        assert of_slice(around(run, some, **asked)) == touched, view
        rows = max(7, len(wanted) // 3)
        pages = [query.messages(run, limit=rows, offset=o, **asked) for o in range(0, len(wanted), rows)]
        assert {key: value for page in pages for key, value in of_slice(page).items()} == wanted, view
        tables = message_text.tables(part)
        shown = {row["id"]: (row["readable"], row["fields"]) for table in tables for row in table["rows"]}
        assert shown == wanted, view

        drawn = sequence.draw(run, view=view, channels=who.channels, limit=10**6)
        for arrow in drawn.arrows:
            state = scene.UNSEEN if arrow.id not in seen else scene.READ if seen[arrow.id] else scene.STRUCK
            if fields[arrow.kind] or state == scene.UNSEEN:
                assert arrow.sight == state, (view, arrow)
            assert state == scene.READ or "=" not in arrow.detail

        page = sequence.export(run, "perfetto", around(run, **asked), (), None, None, "run", view)
        events = [
            one["args"] for one in json.loads("".join(page))["traceEvents"] if "id" in one.get("args", {})
        ]
        assert {one["id"] for one in events} == wanted.keys(), view
        for one in events:
            blind = [
                text for text in one["fields"].values() if text.startswith(("sealed for", "not readable"))
            ]
            assert len(blind) == (0 if seen[one["id"]] else len(fields[every[one["id"]].kind])), view

        rows = lanes(run, told, found, Look(view=view, channels=who.channels), VIEW_FUNCTIONS.coalition)[
            "messages"
        ]
        assert {row["id"]: row["readable"] for row in rows if row["seen"]} == {
            row["id"]: seen[row["id"]] for row in rows if row["id"] in seen
        }, view
        assert all((row["fields"] is None) == (not row["readable"]) for row in rows), view

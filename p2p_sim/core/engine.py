"""The round engine: which role runs next, what it receives, and how deadlocks are reported.

A round is logical time: one more than the sender's last step and than every round it has received from.  The engine
moves names of issues and bundles of messages between places; it never looks at data.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.block import Item
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.ledger import Totals
from p2p_sim.core.message import USER, Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.run_digest import output_lanes
from p2p_sim.core.site import Directory, SiteReport, disagreement
from p2p_sim.core.threads import ALONE, Threads

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]
"""Called with (what is happening, parties done, parties in all)."""

Issue = tuple[str, int, bool]
"""Kind, round, and whether every sender of the kind sent exactly one (then answers need no look at it)."""


class SiteHandle(typing.Protocol):
    """A site, here or in another process.  What ``start`` returns are handles; ``wait`` turns one into its value."""

    def start(
        self, role: str, clock: int, wanted: list[Issue | None], bundles: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Begin ``Site.advance``; return a handle of the report and one of each site's bundle."""

    def wait(self, handle: Any) -> Any:
        """Return the value of a handle."""

    def finish(self, bundles: list[Any]) -> Any:
        """Begin ``Site.finish``; return a handle."""


@dataclass
class RoleState:
    """Where a role stands: its logical clock, and the items of the step in which it waits.

    A server that has ``stopped`` sends nothing more: who waits for it is handed an empty inbox.
    """

    clock: int = 0
    waiting: tuple[Item, ...] = ()
    done: bool = False
    stopped: bool = False
    full: tuple[bool, ...] = ()


@dataclass
class Finished:
    """What a run leaves: totals of all sites, and each role's output columns over all its blocks."""

    totals: Totals
    outputs: Mapping[str, dict[str, Array]]


@dataclass
class Engine:
    """One run of a protocol over some places.  ``threads``: what hashes the outputs.

    A round is logical time: one more than the sender's last step and than every round it has received from.
    ``observe``: is called with role, round, sites and their reports when a role has come through a round.
    ``collect``: what collects totals and outputs at the end, given the bundles that came too late for all, by place;
    None: this process holds them.
    """

    protocol: Protocol
    directory: Directory
    places: list[SiteHandle]
    users: int
    progress: Progress | None = None
    threads: Threads = ALONE
    observe: Callable[[str, int, tuple[int, ...], list[SiteReport]], None] | None = None
    collect: Callable[[list[Any]], Finished] | None = None
    _issued: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    _pending: dict[int, list[Any]] = field(default_factory=dict)

    def run(self, digest: bool, compute: ModuleType) -> Finished:
        """Run every role to its end; raises ProtocolError if roles wait for each other or messages are left."""
        self._messages: dict[str, Message] = self.protocol.messages()
        roles = {role: RoleState() for role in self.protocol.roles()}
        while not all(state.done for state in roles.values()):
            ready = [(role, self._wanted(role, roles)) for role, state in roles.items() if not state.done]
            able = [(role, wanted) for role, wanted in ready if wanted is not None]
            if not able:
                raise self._stuck(roles)
            role, wanted = able[0]
            self._advance(role, roles[role], wanted)
        still = {kind for kind, message in self._messages.items() if not roles[message.recipient].stopped}
        left = {kind: len(rounds) for kind, rounds in self._issued.items() if rounds and kind in still}
        if left:
            kind = next(iter(left))
            recipient = self._messages[kind].recipient
            raise ProtocolError(
                f"message {kind!r} was sent {left[kind]} more time(s) than {recipient!r} receives it: "
                f"add `yield self.{kind}.receive()` to {recipient!r}"
            )
        return self._collect(digest, compute)

    def _wanted(self, role: str, roles: dict[str, RoleState]) -> list[Issue | None] | None:
        """Return the issues a waiting role would be handed, or None if one has not been sent yet."""
        wanted: list[Issue | None] = []
        state = roles[role]
        for (verb, kind), full in zip(state.waiting, state.full, strict=True):
            own = self._messages[kind].recipient == role
            if verb == "send":
                wanted.append((kind, state.clock, full) if own else None)
            elif self._issued.get(kind):
                wanted.append((kind, *self._issued[kind][0]))
            elif roles[self._messages[kind].sender].stopped:
                wanted.append((kind, state.clock, False))
            else:
                return None
        return wanted

    def _advance(self, role: str, state: RoleState, wanted: list[Issue | None]) -> None:
        for (verb, kind), issue in zip(state.waiting, wanted, strict=True):
            if verb == "receive" and issue is not None and self._issued.get(kind):
                self._issued[kind].pop(0)
                state.clock = max(state.clock, issue[1])
        sites = self.directory.hosts(role)
        if self.progress is not None:
            self.progress(f"{role}, round {state.clock + 1}", 0, self.users if role == USER else 1)
        started = [
            self.places[site].start(role, state.clock, wanted, self._pending.pop(site, [])) for site in sites
        ]
        reports = self._reports(role, sites, [report for report, _ in started])
        if self.observe is not None:
            self.observe(role, state.clock + 1, sites, reports)
        for report, (_, bundles) in zip(reports, started, strict=True):
            for site in report.destinations:
                self._pending.setdefault(site, []).append(bundles[site])
        first = reports[0]
        for report in reports[1:]:
            if report.steps != first.steps:
                raise disagreement(role, first.steps, report.steps)
        for number, items in enumerate(first.steps):
            full = tuple(all(report.full[number][i] for report in reports) for i in range(len(items)))
            for (verb, kind), every in zip(items, full, strict=True):
                if verb == "send" and self._messages[kind].recipient != role:
                    self._issued.setdefault(kind, []).append((state.clock + 1 + number, every))
            state.waiting, state.full = items, full
        state.clock += len(first.steps)
        state.done, state.stopped = first.done, first.stopped

    def _reports(self, role: str, sites: tuple[int, ...], handles: list[Any]) -> list[SiteReport]:
        """Wait for the reports of some sites, and tell how many users have come through."""
        reports, several = [], len(sites) > 1 and role == USER
        for place, (site, handle) in enumerate(zip(sites, handles, strict=True)):
            reports.append(self.places[site].wait(handle))
            if self.progress is not None and several:
                self.progress("", self.directory.bounds[place + 1], self.users)
        return reports

    def _collect(self, digest: bool, compute: ModuleType) -> Finished:
        totals = Totals()
        by_role: dict[str, list[dict[str, Array]]] = {}
        left = [self._pending.pop(site, []) for site in range(len(self.places))]
        if self.collect is not None:
            return self.collect(left)
        ends = [place.finish(bundles) for place, bundles in zip(self.places, left, strict=True)]
        for place, handle in zip(self.places, ends, strict=True):
            site_totals, outputs = place.wait(handle)
            totals.add(site_totals)
            for role, parts in outputs.items():
                by_role.setdefault(role, []).extend(parts)
        joined = {role: join_parts(role, by_role[role]) for role in self.protocol.roles()}
        if digest:
            for role, columns in joined.items():
                totals.add_lanes(output_lanes(role, columns, compute, self.threads))
        return Finished(totals, joined)

    def _stuck(self, roles: dict[str, RoleState]) -> ProtocolError:
        waits = []
        for role, state in roles.items():
            missing = [k for verb, k in state.waiting if verb == "receive" and not self._issued.get(k)]
            if not state.done and missing:
                waits.append(f"{role!r} waits for {', '.join(map(repr, missing))} after round {state.clock}")
        senders = "; send it before waiting, or receive less often than it is sent"
        return ProtocolError(f"no role can go on: {'; '.join(waits)}{senders}")


def alike(role: str, parts: list[dict[str, Array]]) -> list[str]:
    """Return the names of the columns that blocks return; raises ProtocolError where columns or types differ."""
    names = list(parts[0])
    for part in parts:
        if list(part) != names:
            raise ProtocolError(f"role {role!r}: blocks return different columns, {names} and {list(part)}")
    for name in names:
        kinds = dict.fromkeys((str(part[name].dtype), part[name].shape[1:]) for part in parts)
        if len(kinds) > 1:
            (one, wide), (other, narrow) = list(kinds)[:2]
            raise ProtocolError(
                f"role {role!r}: output {name!r} is {one} of shape (n, *{wide}) in one block, {other} of shape "
                f"(n, *{narrow}) in another: the type must not depend on the data; give it one, such as "
                ".astype(np.int64)"
            )
    return names


def join_parts(role: str, parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Put the outputs of blocks end to end; raises ProtocolError as ``alike``."""
    return {
        name: parts[0][name] if len(parts) == 1 else np.concatenate([p[name] for p in parts])
        for name in alike(role, parts)
    }

"""``Coalition``: parties that pool what they know, and which messages and fields they see.

A coalition is written as parts joined by "+", in any order: a server's role, ``user:17``, ``3*user`` (any three
users), ``user`` (any one), ``wire``.  It sees every message that one of its members sent or received, and reads the
fields unless they are sealed for somebody outside.  The wire sees sender, recipient, round and size of every message
that travels, and reads the fields that are neither sealed nor on an encrypted channel.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.message import USER, Message

Array = npt.NDArray[Any]

WIRE = "wire"
CHANNELS = ("plain", "encrypted")
_FEW = 1000
"""Comparisons of an id with a member, up to which all are made."""
_SOME_USERS = re.compile(r"(?:([0-9]{1,18})\*)?user")
_ONE_USER = re.compile(r"user:([0-9]{1,18})")


@dataclass(frozen=True)
class Coalition:
    """Parties that pool what they see.  ``users``: ids of named users; ``some_users``: how many others without id."""

    servers: frozenset[str]
    users: frozenset[int]
    some_users: int
    wire: bool

    @classmethod
    def parse(cls, text: str, roles: Collection[str]) -> Coalition:
        """Read a text such as ``learner+3*user+wire``; ``roles``: of the protocol.

        Raises InputError for an unknown part (and lists the known ones), for a repeated part, and for ``0*user``.
        """
        servers, users, some, wire = set[str](), set[int](), 0, False
        for part in _parts(text, roles):
            if part == WIRE and not wire:
                wire = True
            elif (found := _ONE_USER.fullmatch(part)) and int(found[1]) not in users:
                users.add(int(found[1]))
            elif (found := _SOME_USERS.fullmatch(part)) and not some and int(found[1] or 1):
                some = int(found[1] or 1)
            elif part in roles and part != USER and part not in servers:
                servers.add(part)
            else:
                raise InputError(
                    f"view = {text!r}: name each party once, and unnamed users together, as '3*user', at least one"
                )
        return cls(frozenset(servers), frozenset(users), some, wire)

    @property
    def user_count(self) -> int:
        """How many users are members."""
        return len(self.users) + self.some_users

    def at_most(self, users: int) -> Coalition:
        """Return the coalition with at most so many users; if that removes any, the others become unnamed."""
        if self.user_count <= users:
            return self
        return Coalition(self.servers, frozenset(), users, self.wire)

    def __str__(self) -> str:
        """Return its text: servers, users, wire; empty if it has no members."""
        parts = sorted(self.servers) + [f"user:{user}" for user in sorted(self.users)]
        parts += [f"{self.some_users}*user"] if self.some_users else []
        return "+".join([*parts, *([WIRE] if self.wire else [])])

    def named(self, others: Collection[int]) -> Coalition:
        """Return the coalition with its unnamed users replaced by the first ids of ``others``."""
        free = [user for user in others if user not in self.users]
        if self.some_users > len(free):
            raise InputError(
                f"the view has {self.some_users} users beside those named; there are only {len(free)}"
            )
        return Coalition(self.servers, self.users | set(free[: self.some_users]), 0, self.wire)

    def has(self, role: str) -> bool:
        """Return whether the server of this role, or any user, is a member."""
        return bool(self.users) if role == USER else role in self.servers

    def handled_by_members(self, message: Message, columns: dict[str, Array]) -> Array:
        """Return a mask of the messages that a member sent or received."""
        mask = np.zeros(len(columns["sender"]), np.bool_)
        for end, role in (("sender", message.sender), ("recipient", message.recipient)):
            mask |= self._is_member(columns[end]) if role == USER else role in self.servers
        return mask

    def _is_member(self, users: Array) -> Array:
        """Return a mask of the ids of members."""
        if len(users) * len(self._members) <= _FEW:
            return np.asarray((users[:, None] == self._members).any(axis=1))
        return np.isin(users, self._members)

    @cached_property
    def _members(self) -> Array:
        return np.fromiter(self.users, np.int64, len(self.users))

    def reads(self, message: Message) -> bool:
        """Return whether a member who handles such a message can read its fields; every layer needs its owner's key.

        False for messages sealed for single users, unless users send them to users; see ``sees`` for single messages.
        """
        if message.sealed_for == USER:
            return message.sender == message.recipient == USER and bool(self.users)
        return message.sealed_for is None or all(map(self.has, (message.sealed_for, *message.layers)))

    def wire_reads(self, message: Message, channels: str) -> bool:
        """Return whether the wire can read the fields, with the keys of the members.

        A user's key opens only what is sealed for her.
        """
        return channels == "plain" and message.sealed_for != USER and self.reads(message)

    def sees(self, message: Message, columns: dict[str, Array], channels: str) -> tuple[Array, Array]:
        """Return two masks of messages: those that the coalition sees at all, and those whose fields it can read.

        Raises InputError unless ``channels`` is "plain" or "encrypted".
        """
        if channels not in CHANNELS:
            raise InputError(
                f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
            )
        handled = self.handled_by_members(message, columns)
        seen = handled | travels(message, columns) if self.wire else handled
        readable = handled if self.reads(message) else self._sealed(message, columns)
        return seen, seen if self.wire and self.wire_reads(message, channels) else readable

    def _sealed(self, message: Message, columns: dict[str, Array]) -> Array:
        """Return a mask of the messages that member users sealed, or that are sealed for one of them."""
        if message.sealed_for == USER and not message.layers:
            ends = [end for end in ("sender", "recipient") if getattr(message, end) == USER]
            return np.asarray(np.any([self._is_member(columns[end]) for end in ends], axis=0))
        if message.layers and message.sender == USER and self.has(message.sealed_for or USER):
            return self._is_member(columns["sender"])
        return np.zeros(len(columns["sender"]), np.bool_)


def _parts(text: Any, roles: Collection[str]) -> list[str]:
    """Return the parts of a view's name; raises InputError for an unknown part."""
    parts = [part.strip() for part in text.split("+")] if isinstance(text, str) else [""]
    for part in parts:
        known = part == WIRE or part in roles or _ONE_USER.fullmatch(part) or _SOME_USERS.fullmatch(part)
        if not known:
            servers = [role for role in roles if role != USER]
            listed = ", ".join([*servers, "user", "user:17", "3*user", WIRE])
            raise InputError(
                f"view = {text!r}: unknown part {part!r}; parts are {listed}, joined by +{near(part, [*servers, WIRE])}"
            )
    return parts


def travels(message: Message, columns: dict[str, Array]) -> Array:
    """Return a mask of the messages that travel: all except those from a party to itself."""
    if message.sender == message.recipient:
        return np.asarray(columns["sender"] != columns["recipient"])
    return np.ones(len(columns["sender"]), np.bool_)

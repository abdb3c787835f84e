"""What somebody sees of messages: the rows she handles, with unreadable fields struck out."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from p2p_sim.core.message import USER, Message

Array = npt.NDArray[Any]
Columns = dict[str, Array]


class Eyes(typing.Protocol):
    """Who looks; ``p2p_sim.views.Coalition``, every user of it named."""

    @property
    def servers(self) -> frozenset[str]:
        """Its servers."""

    @property
    def users(self) -> frozenset[int]:
        """Ids of its users."""

    @property
    def wire(self) -> bool:
        """Whether it watches what travels."""

    def sees(self, message: Message, columns: Columns, channels: str) -> tuple[Array, Array]:
        """Return two masks of messages: of which it sees anything, and whose fields it can read."""


def cut(eyes: Eyes, message: Message, columns: Mapping[str, Array], channels: str) -> Columns:
    """Return what is seen of some messages of one kind: unreadable fields are 0, ``readable`` says where."""
    seen, readable = eyes.sees(message, dict(columns), channels)
    if not seen.all():
        columns, readable = {name: column[seen] for name, column in columns.items()}, readable[seen]
    shown = dict(columns) | {"readable": readable}
    if not readable.all():
        for name in message.fields:
            shown[name] = columns[name].copy()
            shown[name][~readable] = 0
    return shown


def blind(eyes: Eyes, message: Message) -> bool:
    """Whether nobody among those who look handles messages of a kind, whoever sent them."""
    users = USER in (message.sender, message.recipient) and bool(eyes.users)
    return not (eyes.wire or users or {message.sender, message.recipient} & eyes.servers)


def sees_all(eyes: Eyes, message: Message) -> bool:
    """Whether those who look see something of every message of a kind, whoever sent it."""
    handled = bool({message.sender, message.recipient} & eyes.servers)
    return handled or (eyes.wire and message.sender != message.recipient)

"""What a protocol is: a frozen dataclass with message kinds and one generator method a role."""

from __future__ import annotations

import inspect
import re
from collections.abc import Generator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from p2p_sim.core.draw import RESERVED_ROLES
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import USER, Message, Vector
from p2p_sim.core.program_source import reads

Rounds = Generator[Any, Any, Any]
"""What a role's method returns: it yields sends and receives, and returns the role's output."""


@dataclass(frozen=True)
class BagSums:
    """That clusters are cut into bags, of which a learner gets sums.

    ``size``: users a bag, as ``network.bags`` cuts them.  ``steps``: of a sum, a label.  ``least``: how many users of a
    bag must stay for its sum to be told; 0: it is told whoever stays.
    """

    size: int
    steps: int = 1
    least: int = 0


class Protocol:
    """Base of every protocol: parameters are dataclass fields, message kinds class attributes, roles methods.

    A method ``user(self, me)`` is the program of the population; any other role is a server, one party.
    """

    @classmethod
    def messages(cls) -> dict[str, Message]:
        """Return the message kinds by name, in the order in which they are declared."""
        found: dict[str, Message] = {}
        for owner in reversed(cls.__mro__):
            found |= {name: value for name, value in vars(owner).items() if isinstance(value, Message)}
        return found

    @classmethod
    def roles(cls) -> tuple[str, ...]:
        """Return the roles, users first, then the servers in the order in which messages name them."""
        named = [USER]
        for message in cls.messages().values():
            named += [role for role in (message.sender, message.recipient) if role not in named]
        return tuple(named)

    @classmethod
    def command_name(cls) -> str:
        """Return the protocol's name on the command line: PeerToPeer is ``peer-to-peer``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def label_count(self) -> int:
        """Return how many label values the protocol handles; 2 unless a protocol says otherwise."""
        return 2

    def graph_over(self) -> str | None:
        """Return over whom the protocol needs a connected graph: "everybody", or "cluster", one in each; None: none."""
        return None

    def kinds_at_work(self) -> dict[str, Message]:
        """Return the message kinds that these parameters use, by name; all unless a protocol says otherwise."""
        return self.messages()

    def idle_roles(self) -> tuple[str, ...]:
        """Return the roles that no message kind at work comes from or goes to."""
        busy = {role for kind in self.kinds_at_work().values() for role in (kind.sender, kind.recipient)}
        return tuple(role for role in self.roles() if role not in busy)

    @classmethod
    def in_clusters(cls) -> bool:
        """Return whether clusters of users matter, at some parameters at least.

        They do if users talk to each other, or if the users' program reads ``me.cluster``, itself or in a method or a
        function of its module that it passes ``me`` on under that name; a protocol in which they matter otherwise, or
        not though they are read, says so itself.
        """
        return cls.users_talk() or reads(cls, USER, "cluster")

    @classmethod
    def users_talk(cls) -> bool:
        """Return whether users send each other messages."""
        return any(message.sender == message.recipient == USER for message in cls.messages().values())

    def mixes_everybody(self) -> bool:
        """Return whether reports of all clusters are mixed with each other, so that everybody is one crowd."""
        return False

    def bag_sums(self) -> BagSums | None:
        """Return the bags whose sums the learner gets; None for a protocol without bags."""
        return None

    def users_at_once(self, cluster_size: int) -> int | None:  # noqa: ARG002
        """Return how many users, in clusters of one size, an audit may run at once; None: as many as usual.

        For a protocol whose users send more than a few messages each, so that memory sets a limit.
        """
        return None

    def vector_lengths(self) -> dict[str, int]:
        """Return the lengths of ``Vector`` fields that name a parameter."""
        kinds = [kind for message in self.messages().values() for kind in message.fields.values()]
        named = [kind.length for kind in kinds if isinstance(kind, Vector) and isinstance(kind.length, str)]
        lengths = {name: getattr(self, name, None) for name in named}
        for name, length in lengths.items():
            if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
                raise InputError(f"{name} = {length!r}: the length of a vector is an integer of at least 1")
        return {name: int(length) for name, length in lengths.items() if length is not None}

    def check(self) -> None:
        """Check the declaration; raises ProtocolError naming class, role or message, and the fix."""
        name = type(self).__name__
        settings = getattr(type(self), "__dataclass_params__", None)
        if settings is None or not settings.frozen:
            raise ProtocolError(
                f"{name} must be a frozen dataclass: put @dataclass(frozen=True) above the class"
            )
        roles = self.roles()
        for role in roles:
            if role in RESERVED_ROLES:
                raise ProtocolError(
                    f"{name}: the role name {role!r} is reserved for the engine's own draws; rename it"
                )
            if not inspect.isgeneratorfunction(getattr(type(self), role, None)):
                raise ProtocolError(
                    f"{name}: role {role!r} needs a generator method `def {role}(self, me)` that yields"
                )
        for kind, message in self.messages().items():
            for key in (message.sealed_for, *message.layers):
                if key is not None and key not in roles:
                    raise ProtocolError(f"{name}: message {kind!r} is sealed for {key!r}; roles: {roles}")

"""What a protocol is: a frozen dataclass with message kinds and one generator method a role."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns_read import reads
from p2p_sim.core.draw import RESERVED_ROLES
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import USER, Message, Vector

Rounds = Generator[Any, Any, Any]
"""What a role's method returns: it yields sends and receives, and returns the role's output."""


@dataclass(frozen=True)
class BagSums:
    """That clusters are cut into bags, of which a learner gets sums.

    ``size``: users a bag, as ``network.bags`` cuts them.  ``steps``: of a sum, a label.  ``least``: how many users of a
    bag must stay for its sum to be released; 0: it is released whoever stays.
    """

    size: int
    steps: int = 1
    least: int = 0


_kinds: WeakKeyDictionary[type[Protocol], dict[str, Message]] = WeakKeyDictionary()
"""The message kinds of classes that were asked: every run asks several times, an enumeration for every way."""


class _Messages:
    """``Protocol.messages``: for a class the kinds as declared, for a protocol as it sends them."""

    def __get__(self, protocol: Protocol | None, owner: type[Protocol]) -> Callable[[], dict[str, Message]]:
        def messages() -> dict[str, Message]:
            """Return the message kinds by name, in the order in which they are declared."""
            declared = _declared(owner)
            if protocol is None:
                return dict(declared)
            return {name: message.__get__(protocol, owner) for name, message in declared.items()}

        return messages


def _declared(kind: type[Protocol]) -> dict[str, Message]:
    found = _kinds.get(kind)
    if found is None:
        found = {}
        for owner in reversed(kind.__mro__):
            found |= {name: value for name, value in vars(owner).items() if isinstance(value, Message)}
        _kinds[kind] = found
    return found


class Protocol:
    """Base of every protocol: parameters are dataclass fields, message kinds class attributes, roles methods.

    A method ``user(self, me)`` is the program of the population; any other role is a server, one party.
    Raises ProtocolError for a subclass whose parameter or message kind has the name of a method of this class.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        taken = {name for name, value in vars(Protocol).items() if not name.startswith("_")}
        own = vars(cls)
        named = [name for name in own.get("__annotations__", {}) if name in taken]
        named += [name for name in own if name in taken and not _is_method(own[name])]
        for name in named[:1]:
            what = "a message kind" if isinstance(own.get(name), Message) else "a parameter"
            raise ProtocolError(
                f"{cls.__name__}: {what} cannot be called {name!r}, as a method of every protocol is: rename it; "
                f"reserved: {', '.join(sorted(taken))}"
            )

    messages = _Messages()

    @classmethod
    def roles(cls) -> tuple[str, ...]:
        """Return the roles, users first, then the servers in the order in which messages name them."""
        ends = [role for message in cls.messages().values() for role in (message.sender, message.recipient)]
        return tuple(dict.fromkeys([USER, *ends]))

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

    def numbers(self) -> npt.NDArray[np.float64] | None:
        """Return the numbers that labels stand for, shape (k,), ascending; None where labels are classes."""
        return None

    def label_of(self, numbers: Any) -> npt.NDArray[np.uint8]:  # noqa: ARG002
        """Return the label of each number, shape (n,); raises InputError where labels do not stand for numbers."""
        raise InputError(
            f"{type(self).__name__} handles classes, labels 0 to {self.label_count() - 1}, not numbers: give labels, "
            "or take a protocol that p2p-sim mechanisms lists as numeric"
        )

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
        function of its module that it passes ``me`` on under that name.  They do not for sums of bags, which are cut
        out of everybody where there are no clusters.  A protocol in which they matter otherwise says so itself.
        """
        if cls.bag_sums is not Protocol.bag_sums:
            return False
        return cls.users_talk() or reads(cls, USER, "cluster")

    @classmethod
    def users_talk(cls) -> bool:
        """Return whether users send each other messages."""
        return any(message.sender == message.recipient == USER for message in cls.messages().values())

    def mixes_everybody(self) -> bool:
        """Return whether reports of all clusters are mixed with each other, so that everybody is one crowd."""
        return False

    def least_users(self) -> int:
        """Return how many users a population needs at least; 1 unless a protocol says otherwise."""
        return 1

    def feature_count(self) -> int | None:
        """Return how many features of their own users need, as ``me.x``; None if none, or as many as there are.

        Of a protocol that says so, ``check`` and audits make features up for the users of their small worlds, and run
        directories keep those of a run, so that it can be replayed.
        """
        return None

    def bag_sums(self) -> BagSums | None:
        """Return the bags whose sums the learner gets; None for a protocol without bags."""
        return None

    def users_at_once(self, cluster_size: int) -> int | None:  # noqa: ARG002
        """Return how many users, in clusters of one size, an audit may run at once; None: as many as usual.

        For a protocol whose users send more than a few messages each, so that memory sets a limit.
        """
        return None

    def check_sizes(self, sizes: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> None:
        """Check that clusters of some sizes can be simulated; raises InputError where they are too large, or too many.

        ``sizes``, ``times``: the sizes that occur, and how many clusters have each, both (s,).  A plan asks before a
        run; a protocol that has a limit also asks in its users' program.
        """

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
        """Check the declaration and the parameters.

        Raises ProtocolError naming class, role or message, and the fix; InputError for a parameter that can change.
        """
        self.check_declaration()
        for name, value in self.parameters().items():
            if _can_change(value):
                raise InputError(
                    f"{name} = {value!r} of {type(self).__name__}: a parameter must not change during a run, and a "
                    f"{type(value).__name__} can: give a tuple"
                )

    @classmethod
    def check_declaration(cls) -> None:
        """Check the class; raises ProtocolError naming class, role or message, and the fix."""
        name = cls.__name__
        settings = getattr(cls, "__dataclass_params__", None)
        bare = "__annotations__" in vars(cls) and "__dataclass_params__" not in vars(cls)
        if settings is None or not settings.frozen or bare:
            raise ProtocolError(
                f"{name} must be a frozen dataclass: put @dataclass(frozen=True) above the class"
            )
        if not cls.messages():
            raise ProtocolError(
                f"{name} declares no message: a protocol has at least one, such as "
                "report = Message('user', 'learner', 'reports', y=bool)"
            )
        roles = cls.roles()
        for role in roles:
            if role in RESERVED_ROLES:
                raise ProtocolError(
                    f"{name}: the role name {role!r} is reserved for the engine's own draws; rename it"
                )
            if not inspect.isgeneratorfunction(getattr(cls, role, None)):
                raise ProtocolError(
                    f"{name}: role {role!r} needs a generator method `def {role}(self, me)` that yields"
                )
        for kind, message in cls.messages().items():
            for key in (message.sealed_for, *message.layers):
                if key is not None and key not in roles:
                    raise ProtocolError(f"{name}: message {kind!r} is sealed for {key!r}; roles: {roles}")


def check_kept(parameters: Mapping[str, Any]) -> None:
    """Check that a run directory can keep parameters: numbers, text, None or tuples of them; raises InputError."""
    for name, value in parameters.items():
        parts = value if isinstance(value, tuple) else (value,)
        if all(isinstance(part, _KEPT) for part in parts):
            if not all(map(_can_be_read, parts)):
                raise InputError(
                    f"{name} = {value!r}: a run directory keeps integers of 64 bits, numbers and Unicode text: "
                    "give such a one, or run it without a folder"
                )
        else:
            raise InputError(
                f"{name} = {value!r}: a run directory keeps parameters that are numbers, text, None or tuples of them, "
                f"not a {type(value).__name__}: run it without a folder, or make it a class attribute"
            )


def _can_be_read(part: Any) -> bool:
    """Whether one value is among those that are read from a run directory (``rundir.regular_files``)."""
    if isinstance(part, str):
        return not any(0xD800 <= ord(letter) < 0xE000 for letter in part)
    if isinstance(part, Fraction):
        return _can_be_read(part.numerator) and _can_be_read(part.denominator)
    if isinstance(part, (int, np.integer)):
        return -(1 << 63) <= int(part) < 1 << 64
    return part is None or bool(part == part)  # not a nan


_KEPT = (bool, int, float, str, type(None), Fraction, np.bool_, np.integer, np.floating)


def _can_change(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_can_change, value))
    if isinstance(value, np.ndarray):
        return value.flags.writeable
    return isinstance(value, (list, dict, set, bytearray))


def _is_method(value: Any) -> bool:
    if isinstance(value, Message):  # its ``__get__`` makes it no method
        return False
    return inspect.isroutine(value) or isinstance(value, (classmethod, staticmethod, property))

"""Enumeration of one user's program: every outcome of her draws, and what she sends in each.

What she is given besides her label and her draws stops the program as soon as it looks: her id, features, others'
messages.  So what she sends where it was not stopped depends on her label and her draws alone, whoever else there is.
Whom she drew from her cluster is a name that only ``to=`` can read: colluders and honest users are met one after the
other, each new one standing for all who were not met, so that the number of ways does not grow with the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from p2p_sim.core import kernels_numpy
from p2p_sim.core.address_book import World
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import USER, Send
from p2p_sim.core.outgoing import compose
from p2p_sim.core.party import Party
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.enumeration.exhaustive_draws import Tape
from p2p_sim.privacy.enumeration.recent_results import memoized
from p2p_sim.privacy.enumeration.stand_ins import (
    DrawnPeer,
    DrawnPeers,
    ForbiddenReadError,
    SingleUser,
    SingleUserDraw,
    StandInCluster,
    UnreadableInbox,
)

MOST_WAYS = 50_000
"""Most ways, over all labels, that are followed."""

ANYBODY = 2**31 - 1
"""Rows that can be addressed: more than there can be users of a run."""

Row = tuple[str, int, int, int, tuple[Any, ...]]
"""One message: kind, step, recipient (0: a server, or herself), number, fields."""
Sent = tuple[Row, ...]


class Unfollowed(Exception):
    """The ways cannot be followed; the text says why."""


@dataclass(frozen=True, eq=False)
class OneUser:
    """All that one user can send: for each label, what is sent to its probability.

    ``ways``: how many were followed for each label; ``sized``: whether they depend on the size of her cluster.
    """

    laws: tuple[dict[Sent, Fraction], ...]
    ways: int
    sized: bool

    def varying(self) -> dict[str, set[str]]:
        """Return the kinds that she sends, with the fields that depend on her label or her draws.

        "" stands for whether, how many and to whom.
        """
        shapes: dict[str, set[Any]] = {}
        values: dict[tuple[str, int], set[Any]] = {}
        all_sent = {sent for law in self.laws for sent in law}
        kinds = {row[0] for sent in all_sent for row in sent}
        for sent in all_sent:
            for kind in kinds:
                rows = [row for row in sent if row[0] == kind]
                shapes.setdefault(kind, set()).add(tuple(row[1:4] for row in rows))
                for place, row in enumerate(rows):
                    values.setdefault((kind, place), set()).add(row[4])
        found: dict[str, set[str]] = {kind: {""} if len(shapes[kind]) > 1 else set() for kind in kinds}
        for (kind, _), several in values.items():
            columns = zip(*([value for _, value in fields] for fields in several), strict=True)
            names = [name for name, _ in next(iter(several))]
            found[kind] |= {name for name, column in zip(names, columns, strict=True) if len(set(column)) > 1}
        return found


def one_user(protocol: Protocol, sends: tuple[str, ...], size: int | None, colluders: int) -> OneUser:
    """Return all that a user of a cluster of ``size`` (None: not known) can send, ``colluders`` of it looking.

    ``sends``: the kinds that a user sends in a run, in order: what a program looks at after the last is not followed.
    Raises Unfollowed where it looks at more than her label and draws, or where there are too many ways.
    """
    found = _enumerated(protocol, sends, None, 0)
    if isinstance(found, ForbiddenReadError) and found.size and size is not None:
        found = _enumerated(protocol, sends, size, colluders)
    if isinstance(found, ForbiddenReadError):
        advice = "; give cluster_size" if found.size else ""
        raise Unfollowed(
            f"what a user sends depends on {found.what}, not on her label and draws alone{advice}"
        )
    if isinstance(found, Unfollowed):
        raise found
    return found


@memoized
def _enumerated(
    protocol: Protocol, sends: tuple[str, ...], size: int | None, colluders: int
) -> OneUser | ForbiddenReadError | Unfollowed:
    """Return what is found, or why nothing is; that is kept too."""
    labels = protocol.label_count()
    laws: list[dict[Sent, Fraction]] = []
    followed, sized = 0, False
    try:
        for label in range(labels):
            law: dict[Sent, Fraction] = {}
            tape = Tape()
            for sent, near in _ways(protocol, label, tape, sends, (size, colluders)):
                law[sent] = law.get(sent, Fraction(0)) + tape.weight
                followed, sized = followed + 1, sized or near
                about = max(followed, tape.about * (labels if label == 0 else 1))
                if about > MOST_WAYS:
                    raise Unfollowed(
                        f"a user's draws have about {about:,} ways over all labels; at most {MOST_WAYS:,} are followed"
                    )
            laws.append(law)
    except (ForbiddenReadError, Unfollowed) as why:
        return why.with_traceback(None)
    return OneUser(tuple(laws), followed // labels, sized)


def _ways(
    protocol: Protocol, label: int, tape: Tape, sends: tuple[str, ...], crowd: tuple[int | None, int]
) -> Iterator[tuple[Sent, bool]]:
    """Take every way; yield what is sent on it, and whether the size of the cluster matters."""
    while True:
        yield _way(protocol, label, tape, sends, StandInCluster(*crowd))
        if not tape.rewind():
            return


def _way(
    protocol: Protocol, label: int, tape: Tape, sends: tuple[str, ...], crowd: StandInCluster
) -> tuple[Sent, bool]:
    """Take one way; return what is sent on it, and whether the size of the cluster matters."""
    draw = SingleUserDraw(tape, USER, range(1), compute=kernels_numpy, crowd=crowd)
    y = np.array([label], np.bool_ if protocol.label_count() == 2 else np.uint8)
    y.flags.writeable = False
    rows: list[Row] = []
    kinds: list[str] = []
    try:
        for action in _actions(protocol, SingleUser(y, draw, crowd), draw, crowd):
            kinds.append(action.message.kind)
            rows += _rows(action, draw, protocol.vector_lengths(), crowd)
    except ForbiddenReadError:
        pass  # which the crowd remembers, also where the program goes on as if nothing had happened
    except (InputError, ProtocolError) as error:
        raise Unfollowed(str(error).removesuffix("; audit instead")) from error
    except Exception as error:
        if crowd.refused is None:
            stops = f"a user's program by herself stops with {type(error).__name__}: {error}"
            raise Unfollowed(stops) from error
    if crowd.refused is not None and not _over(kinds, sends, crowd):
        raise crowd.refused
    if tuple(kinds) != sends:
        raise Unfollowed(
            "which kinds a user sends depends on her label, her draws or the size of her cluster"
        )
    return tuple(rows), crowd.sized


def _actions(protocol: Protocol, me: Any, draw: SingleUserDraw, crowd: StandInCluster) -> Iterator[Send]:
    """Follow a program from step to step, as long as it has looked at nothing; yield what it sends."""
    program = cast(Any, protocol).user(me)
    handed = next(program, None)
    while handed is not None and crowd.refused is None:
        actions = handed if isinstance(handed, tuple) else (handed,)
        yield from (action for action in actions if isinstance(action, Send))
        answers = tuple(
            None if _silent(action) else UnreadableInbox(action.message.kind, crowd) for action in actions
        )
        draw.advance()
        try:
            handed = program.send(answers if isinstance(handed, tuple) else answers[0])
        except StopIteration:
            return


def _over(kinds: Sequence[str], sends: tuple[str, ...], crowd: StandInCluster) -> bool:
    """Whether a program sends nothing more: it has sent all that it sends in a run, whatever the size."""
    return tuple(kinds) == sends and not crowd.measured


def _silent(action: Any) -> bool:
    return isinstance(action, Send) and action.message.recipient != USER


def _rows(send: Send, draw: SingleUserDraw, sizes: dict[str, int], crowd: StandInCluster) -> Iterator[Row]:
    """Yield the messages of a send."""
    message, me = send.message, Party(USER, range(1), range(1), draw)  # type: ignore[arg-type]
    answered: Any = send.answers
    if isinstance(answered, UnreadableInbox):
        answered.refuse()
    if message.recipient == USER:
        if not isinstance(send.to, (DrawnPeer, DrawnPeers)):
            crowd.refuse(f"ids of her own making, to whom she sends {message.kind!r}")
        send = replace(send, to=send.to.read())
    batch: Any = compose(send, me, World(ANYBODY, None, sizes), 0)
    for i in range(len(batch)):
        fields = tuple((name, np.asarray(batch.fields[name][i]).tobytes()) for name in message.fields)
        to = 0 if batch.to is None else int(batch.to[i])
        yield message.kind, draw.step, to, 0 if batch.seq is None else int(batch.seq[i]), fields

"""Derives the law of a view from the protocol's program where none is registered, or refuses.

**Statement.**  Let S be all messages that one user sends, as the view sees them.  If (1) what she sends depends on her
label and her own draws alone, and (2) of what others send, nothing that the view sees depends on what in her messages
depends on her label or her draws, then the view tells of her label exactly what S tells.

*Proof.*  Fix everybody else's labels.  By (1), S is a function of her label y and her draws D.  What others send and
draw is, by (2), a function of their labels and draws alone as far as the view sees it, except for what the view's own
members send.  Draws of different parties are independent, so this part, R, is independent of (y, D), thus of S.  What
members send, draw and return follows from S, R and draws of their own: it is computed from (S, R) without y.  So the
view is a function of S and of what is independent of (S, y); and S is a part of the view.  By data processing, in both
directions, no divergence between two labels differs.  QED.  Nothing in it speaks of the number of users, of the
others' labels, or of whom colluders ask: the law holds for any, and for colluders who deviate.

**How the two are checked.**  (1) ``one_user``: her program is followed by itself through every way of her draws; it is
stopped if it looks at anything else.  Whom she draws from her cluster may say only where a message goes, and then the
law is that of the cluster's size.  (2) ``influenced``: which fields programs read before they send, in runs of two
and of three users.  A field of hers that is read makes all that is sent afterwards doubtful, and what is doubtful and
seen is refused; pairs of runs then look for a message that really changes, to name it.

*Assumes:* what holds of every protocol here (docs/protocols.md): programs share nothing but messages, chance comes from
``me.draw``, users are treated alike in whatever blocks they come; and that programs read the same fields with more
users.

*Source:* ``docs/laws.md``, "Laws found on programs".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.message import Message
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.enumeration import label_flow
from p2p_sim.privacy.enumeration.one_user import OneUser, Row, Sent, Unfollowed, one_user
from p2p_sim.privacy.enumeration.recent_results import memoized
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting, fits

ASSUMES = (
    "nobody else's messages that this view sees depend on her label or draws (reads watched with {} and {} users)",
    "programs read the same fields with more users",
)

_CONTEXT = Context(prec=60)
_ROUNDED = 1e-15

WAYS = "audit it (p2p-sim audit, privacy.audit), or enumerate it for 3 or 4 users (privacy.enumerate_view)"


def found_law(protocol: Protocol, setting: Setting) -> PrivacyProfile:
    """Return what a view learns, found on the program; refused, with the reason, where it is not proven.

    *Source:* the statement above.  *Assumes:* what is said there.
    """
    if setting.size is not None:
        fits(setting, setting.size)
    channels = "encrypted" if setting.encrypted else "plain"
    try:
        user, runs = _followed(protocol, setting)
        _check_influenced(protocol, setting.view, channels, user, runs)
    except Unfollowed as error:
        why = _carrier(protocol, setting.view, channels) or str(error)
        return PrivacyProfile.refused(
            setting.text,
            f"no law of {type(protocol).__name__} is known, nor found on its program: {why}; {WAYS}; "
            f"a law of your own: privacy.register({type(protocol).__name__}, privacy.Accounting(law=...))",
        )
    law = _law(user, tuple(protocol.messages().values()), label_flow.colluding(setting.view), channels)
    where = f"a cluster of {setting.size:,} users" if user.sized else "any number of users"
    ways = f"enumerating one user's draws ({user.ways:,} {'way' if user.ways == 1 else 'ways'} a label)"
    assumes = tuple(text.format(*(run.users for run in runs)) for text in ASSUMES)
    nothing = "" if law.pure() else "no message of hers that this view can read depends on her label; "
    source = f"{nothing}found on the program by {ways}; holds for {where}"
    return PrivacyProfile(setting.text, "exact", source, assumes, "", law)


def _followed(protocol: Protocol, setting: Setting) -> tuple[OneUser, list[label_flow.ProgramEvents]]:
    if protocol.graph_over() is not None:
        raise Unfollowed("it runs on a graph, which is not followed")
    runs = label_flow.watched_runs(protocol)
    if isinstance(runs, str):
        raise Unfollowed(runs)
    if len({run.sends for run in runs}) > 1:
        raise Unfollowed("which kinds a user sends depends on the number of users")
    return one_user(protocol, runs[0].sends, setting.size, setting.view.user_count), runs


def _check_influenced(
    protocol: Protocol,
    view: Coalition,
    channels: str,
    user: OneUser,
    runs: Sequence[label_flow.ProgramEvents],
) -> None:
    """Raise Unfollowed if what others send, as the view sees it, may depend on what the user sent."""
    messages: dict[str, Message] = protocol.messages()
    for run in runs:
        for kind, fields in run.influenced(protocol, user.varying()).items():
            some, readable = label_flow.sees_and_reads(view, messages[kind], channels)
            doubtful = [name for name in fields if (readable if name else some)]
            if doubtful:
                sender, read = messages[kind].sender, fields[doubtful[0]]
                raise Unfollowed(
                    f"message {kind!r} may carry her label on: {sender!r} reads {read!r} before it is sent"
                )


def _carrier(protocol: Protocol, view: Coalition, channels: str) -> str:
    """Return in words which message of others changes with a label; nothing if none was found."""
    found = label_flow.witness(protocol, view, channels)
    return "" if found is None else f"message {found[0]!r} of others carries her label on ({found[1]})"


@memoized
def _law(user: OneUser, messages: tuple[Message, ...], view: Coalition, channels: str) -> Law:
    """Return the worst of all pairs of labels."""
    observations = _Observations({message.kind: message for message in messages}, view, channels)
    laws: list[dict[Any, Fraction]] = []
    for sent in user.laws:
        law: dict[Any, Fraction] = {}
        for rows, weight in sent.items():
            observation = observations.of(rows)
            law[observation] = law.get(observation, Fraction(0)) + weight
        laws.append(law)
    return worst_pair(laws)


class _Observations:
    """What a view sees of one user's messages."""

    def __init__(self, messages: dict[str, Message], view: Coalition, channels: str):
        self._messages, self._view, self._channels = messages, view, channels
        self._visible: dict[tuple[str, int], tuple[bool, bool]] = {}

    def of(self, sent: Sent) -> tuple[Any, ...]:
        """Return the rows that are seen; users are named in the order in which they are met in them."""
        names: dict[int, int] = {label_flow.VICTIM: 0}
        rows = []
        for row in sent:
            kind, step, to, seq, fields = row
            some, readable = self._handled(row)
            if some:
                inside = to in self._view.users
                name = names.setdefault(to, len(names))
                rows.append((kind, step, inside, name, seq, fields if readable else ()))
        return tuple(rows)

    def _handled(self, row: Row) -> tuple[bool, bool]:
        kind, _, to, _, _ = row
        if (kind, to) not in self._visible:
            columns = {"sender": np.zeros(1, np.int64), "recipient": np.array([to])}
            some, readable = self._view.sees(self._messages[kind], columns, self._channels)
            self._visible[kind, to] = bool(some[0]), bool(readable[0])
        return self._visible[kind, to]


@dataclass(frozen=True, eq=False)
class FoundAtoms(Atoms):
    """Atoms whose ratios are known as fractions: ``ratio`` is the largest, None without a bound."""

    ratio: Fraction | None = None

    def pure(self) -> float:
        """Return the logarithm of the largest ratio."""
        if self.ratio is None:
            return math.inf
        if self.ratio < 2:
            return math.log1p(float(self.ratio - 1))
        parts = (Decimal(part).ln(_CONTEXT) for part in self.ratio.as_integer_ratio())
        return float(_CONTEXT.subtract(*parts))

    def pure_bracket(self) -> Bracket:
        """Return the logarithm, rounded outward."""
        pure = self.pure()
        return Bracket(pure * (1 - _ROUNDED), pure, pure * (1 + _ROUNDED))


def worst_pair(laws: Sequence[dict[Any, Fraction]]) -> Law:
    """Return the worst of all pairs of distributions; outcomes of one ratio are put together, which changes nothing."""
    values = sorted({weight for law in laws for weight in law.values()} | {Fraction(0)})
    number = {value: i for i, value in enumerate(values)}
    outcomes = list(dict.fromkeys(observation for law in laws for observation in law))
    table = np.array(
        [[number[law.get(observation, Fraction(0))] for observation in outcomes] for law in laws]
    )
    pairs = set()  # of most protocols, many pairs of labels are one and the same pair of distributions
    for one, two in itertools.combinations(table, 2):
        if not np.array_equal(one, two):
            codes, counts = np.unique(one * len(values) + two, return_counts=True)
            pairs.add((*codes.tolist(), *counts.tolist()))
    if not pairs:
        return Nothing()
    found = []
    for pair in sorted(pairs):
        several = zip(pair[: len(pair) // 2], pair[len(pair) // 2 :], strict=True)
        found.append([(k * values[c // len(values)], k * values[c % len(values)]) for c, k in several])
    return _atoms(found)


def _atoms(pairs: Sequence[Sequence[tuple[Fraction, Fraction]]]) -> FoundAtoms:
    merged = [_merged(pair) for pair in pairs]
    width = max(map(len, merged))
    sides = np.zeros((2, len(merged), width))
    for i, pair in enumerate(merged):
        for side in (0, 1):
            sides[side, i, : len(pair)] = [float(both[side]) for both in pair]
    every = [both for pair in merged for both in pair]
    bounded = all(p and q for p, q in every)
    ratio = max(max(p / q, q / p) for p, q in every) if bounded else None
    return FoundAtoms(sides[0], sides[1], ratio)


def _merged(pair: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    by_ratio: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
    for p, q in pair:
        if p or q:
            key = p / q if q else None
            old = by_ratio.get(key, (Fraction(0), Fraction(0)))
            by_ratio[key] = old[0] + p, old[1] + q
    return list(by_ratio.values())

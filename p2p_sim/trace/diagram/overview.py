"""A scene of a whole run from its counts alone, however many messages it had: one lane a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message
from p2p_sim.trace.diagram import labels
from p2p_sim.trace.diagram.grouping import Lane
from p2p_sim.trace.diagram.scene import READ, SEALED, SENTENCE, Arrow, Scene, closer


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
    reached = dict.fromkeys(
        role for _, _, kind in used for role in (kinds[kind].recipient, kinds[kind].sender)
    )
    roles = sorted(reached, key=lambda role: role != USER)  # stable: servers stay as messages reach them
    lanes = [
        Lane(f"{USER}s", False, users or 1, opens=opens)
        if role == USER
        else Lane(labels.clean(role), True, 1)
        for role in roles
    ]
    arrows = [_arrow(kinds[kind], number, counts[kind, number], roles) for number, _, kind in used]
    texts = {labels.clean(kind): labels.clean(kinds[kind].text, SENTENCE) for _, _, kind in used}
    name = labels.clean(title, SENTENCE)
    return closer(Scene(name, tuple(lanes), tuple(arrows), texts, tuple(notes), command=command))


def _arrow(message: Message, round: int, count: Count, roles: list[str]) -> Arrow:
    """Return all messages of a kind in a round as one arrow."""
    kind, sealed = labels.clean(message.kind), message.sealed_for
    detail = f"{labels.counted(count.messages, 'message')}, {labels.size(count.nbytes)}"
    detail += f", sealed for {labels.clean(sealed)}" if sealed else ""
    ends = roles.index(message.sender), roles.index(message.recipient)
    sight = SEALED if sealed else READ
    return Arrow(f"{kind}:{round}", round, kind, *ends, count.messages, count.nbytes, detail, "", sight)

"""Turns a program's send into rows: aligns columns, checks types and addresses, applies ``when``."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.address_book import World
from p2p_sim.core.columns import Inbox, Layout, PerMessage, aligned
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import USER, Message, Send, field_dtype, field_shape, fixed_point
from p2p_sim.core.party import Party
from p2p_sim.core.sealing import envelopes

Array = npt.NDArray[Any]


@dataclass
class Answer:
    """A reply that needs no look at the questions: one value a party, handed to whoever asked her."""

    send: Send
    inbox: Inbox
    fields: dict[str, Array]


def compose(send: Send, me: Party, world: World, block: int) -> Batch | Answer:
    """Turn a send into a batch, or into an answer if nothing about the single questions matters."""
    where = f"role {me.role!r}, step {me.draw.step}, message {send.message.kind!r}"
    _check_roles(send, me, where)
    _check_lengths(send, me, where)
    inbox = send.answers
    plain = send.when is True and not any(isinstance(v, PerMessage) for v in send.fields.values())
    plain = plain and send.message.sealed_for is None and not _one_a_message(send, me)
    if inbox is not None and inbox.ticket is not None and not inbox.looked and plain:
        one_each = Layout.one_each(me.size)
        return Answer(
            send,
            inbox,
            {
                k: _field(send.message, k, v, one_each, None, world, where, me.draw.compute)
                for k, v in send.fields.items()
            },
        )
    return _rows(send, me, world, block, where)


def looked(answer: Answer, me: Party, world: World, block: int) -> Batch:
    """Turn an answer into rows after all."""
    where = f"role {me.role!r}, step {me.draw.step}, message {answer.send.message.kind!r}"
    return _rows(answer.send, me, world, block, where)


def _rows(send: Send, me: Party, world: World, block: int, where: str) -> Batch:
    message, inbox, compute = send.message, send.answers, me.draw.compute
    layout = inbox.layout if inbox is not None else _layout(send, me)
    keep, chosen = None, False
    when = send.when if isinstance(send.when, PerMessage) else np.asarray(send.when)
    # One number for all, such as when=self.theta, is no condition either: it would send every message.
    if isinstance(when, PerMessage) or when.ndim or when.dtype != np.bool_ or not when:
        mask = np.broadcast_to(aligned(send.when, layout), (layout.size,))
        if mask.dtype != np.bool_:
            raise ProtocolError(
                f"{where}: when= has type {mask.dtype}; give a bool column: which messages are sent"
            )
        chosen, keep = True, compute.places(mask)
        keep = None if len(keep) == layout.size else keep
    to = None
    if message.recipient == USER:
        ids = np.asarray(aligned(send.to if inbox is None else inbox.sender, layout))
        ids = ids if ids.ndim else np.broadcast_to(ids, (layout.size,))
        to = _frozen(world.rows(ids if keep is None else ids[keep], where))
    sender: Any = me.rows
    if not (layout.dense and keep is None):
        sender = _senders(me, layout, keep)
    seq = inbox.rows.seq if inbox is not None else _numbers(layout)
    if seq is not None and keep is not None:
        seq = as_array(seq)[keep]
    fields = {k: _field(message, k, v, layout, keep, world, where, compute) for k, v in send.fields.items()}
    strays = message.sender == message.recipient == USER and inbox is None and not me.draw.drew(send.to)
    full = layout.dense and not chosen and inbox is None
    hidden, origin = envelopes(send, layout, keep, world, where)
    return Batch(sender, to, seq, fields | hidden, full, block, strays, origin)


def _senders(me: Party, layout: Layout, keep: Array | None) -> Array:
    """Return the row of the sender of each message."""
    if me.size == 1:
        return np.broadcast_to(np.int32(me.rows.start), layout.size if keep is None else len(keep))
    held = layout.holder if keep is None else (keep if layout.dense else layout.holder[keep])
    rows: Array = (held + np.int32(me.rows.start)).astype(np.int32, copy=False)
    return rows


def _numbers(layout: Layout) -> range | Array | None:
    """Return the sequence number of each message; None where all are 0."""
    if layout.dense or layout.one_at_most:
        return None
    return layout.rank.astype(np.int32) if layout.parties > 1 else range(layout.size)


def _layout(send: Send, me: Party) -> Layout:
    columns = [v for v in (send.to, send.when, *send.fields.values()) if isinstance(v, PerMessage)]
    return columns[0].layout if columns else Layout.one_each(me.size)


def _field(
    message: Message,
    name: str,
    value: Any,
    layout: Layout,
    keep: Array | None,
    world: World,
    where: str,
    compute: ModuleType,
) -> Array:
    kind = message.fields[name]
    dtype, shape = field_dtype(kind), field_shape(kind, world.sizes)
    place, fixed = f"{where}, field {name!r}", fixed_point(kind)
    if isinstance(value, PerMessage) and (value.sealed_for or (fixed is not None and value.fixed == fixed)):
        value, fixed = value.multiples, None  # handed on as it came
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ProtocolError(f"{place} has masked entries, which are no values: fill them, value.filled(...)")
    data = _unsealed(value, message, layout, place)
    if data.ndim == 0:
        data = np.broadcast_to(data, (layout.size, *shape))
    if data.shape[1:] != shape:
        raise ProtocolError(f"{place} has shape {data.shape[1:]} a message; declared is {shape}")
    if keep is not None:
        data = compute.gather(data, keep, 0)
    if fixed is not None:
        return _frozen(fixed.encoded(data, place))
    if data.dtype == dtype:
        own = keep is not None or not data.flags.writeable
        return _frozen(np.ascontiguousarray(data) if own else data.copy())  # a program may keep views of it
    if data.dtype.kind not in "bui" or (dtype.kind == "b"):
        raise ProtocolError(
            f"{place} has type {data.dtype}; declared is {dtype}: convert it, or declare fixed point, FixedPoint(...)"
        )
    low, high = (int(data.min()), int(data.max())) if data.size else (0, 0)
    if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
        raise ProtocolError(f"{place} holds {low} to {high}, more than {dtype} can: declare a wider type")
    return _frozen(data.astype(dtype))


def _unsealed(value: Any, message: Message, layout: Layout, place: str) -> Array:
    if isinstance(value, PerMessage) and value.sealed_for is not None:
        if message.sealed_for != value.sealed_for:
            raise ProtocolError(
                f"{place} is sealed for {value.sealed_for!r}: forward it in a message declared "
                f"sealed_for={value.sealed_for!r}"
            )
        value = PerMessage(value._data, value.layout)
    return np.asarray(aligned(value, layout))


def _check_roles(send: Send, me: Party, where: str) -> None:
    message, inbox = send.message, send.answers
    if message.sender != me.role:
        raise ProtocolError(
            f"{where}: this kind is sent by {message.sender!r}; declare it with sender {me.role!r}"
        )
    if inbox is not None and not inbox.distinct:
        raise ProtocolError(
            f"{where}: this inbox holds a message twice (find gave it twice); reply to each once"
        )
    if inbox is not None and inbox.message.sender != message.recipient:
        raise ProtocolError(
            f"{where}: {inbox.kind!r} came from {inbox.message.sender!r}, but this reply goes to {message.recipient!r}"
        )


def _one_a_message(send: Send, me: Party) -> bool:
    """Whether a server gives plain arrays with one entry a message, such as a table at places of its inbox."""
    plain = [v for v in send.fields.values() if not isinstance(v, PerMessage) and np.ndim(v)]
    return me.role != USER and any(len(v) != me.size for v in plain)


def _messages(send: Send, me: Party) -> int:
    """Return how many messages a send is about, before ``when``."""
    return (_layout(send, me) if send.answers is None else send.answers.layout).size


def _check_lengths(send: Send, me: Party, where: str) -> None:
    for name, value in {"to": send.to, "when": send.when, **send.fields}.items():
        if name in ("to", "when") and not isinstance(value, PerMessage) and np.ndim(value) > 1:
            raise ProtocolError(
                f"{where}: {name}= has shape {np.shape(value)}; give one entry a party, shape ({me.size},), and for "
                "several messages a party a draw with times= or me.all_of(...)"
            )
        alone = value is None or isinstance(value, PerMessage) or np.ndim(value) == 0
        if not alone and len(value) != me.size:
            if me.role == USER:
                raise ProtocolError(
                    f"{where}: {name} has {len(value)} entries for {me.size} parties; use times= or an inbox's columns"
                )
            if len(value) != (messages := _messages(send, me)):
                raise ProtocolError(
                    f"{where}: {name} has {len(value)} entries for {messages} messages; give one entry a message, and "
                    "to send several where there is no inbox wrap them, and to=, in me.each(...)"
                )


def _frozen(array: Array) -> Array:
    """Forbid later changes: what is handed over must not change on its way."""
    if array.flags.writeable and array.base is not None:  # a view: its base could still be changed
        array = array.copy()
    array.flags.writeable = False
    return array

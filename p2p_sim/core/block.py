"""One block of parties going through its program: where a step begins, waits for messages and ends."""

from __future__ import annotations

import contextvars
import os
import traceback
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.address_book import World
from p2p_sim.core.columns import Inbox, Layout, PerMessage
from p2p_sim.core.errors import (
    InputError,
    MissingColumnError,
    ProtocolError,
    RunLostError,
    TooFewMembersError,
)
from p2p_sim.core.mail import Batch
from p2p_sim.core.message import USER, Message, Receive, Send
from p2p_sim.core.outgoing import Answer, compose
from p2p_sim.core.party import Party
from p2p_sim.core.protocol import Protocol

_PASSED = (f"{Path(__file__).parents[1]}{os.sep}", f"{Path(np.__file__).parent}{os.sep}")
"""Folders whose code a program calls: an error there is told of by the program's own line."""

Item = tuple[str, str]
"""("send", kind) or ("receive", kind): what all blocks of a role must agree on."""


@dataclass
class Step:
    """What one ``yield`` handed over: its items in order, and what is sent, as (place among the items, rows)."""

    items: tuple[Item, ...]
    sent: list[tuple[int, Batch | Answer]]


class Block:
    """A block's program, its parties and where it stands."""

    def __init__(self, protocol: Protocol, me: Party, world: World, number: int, last: int | None = None):
        self.me, self.number = me, number
        self.output: dict[str, npt.NDArray[Any]] | None = None
        self.done, self.stopped = False, last == 0
        self._last = last  # the step before which it stops
        self._layouts: dict[str, Layout | None] = {}
        self._messages: dict[str, Message] = protocol.messages()
        self._world = world
        self._program: Generator[Any, Any, Any] = getattr(protocol, me.role)(me)
        self._context = contextvars.copy_context()  # of the caller, such as numpy's handling of errors
        self._single = True
        self._started = False

    def resume(self, inboxes: list[Inbox | None]) -> list[Step]:
        """Hand over the inboxes of the last step and run to the next step that has to wait, or to the end.

        In whatever thread, but one at a time; what a program sets for its context stays in this block.
        """
        try:
            return self._context.run(self._resume, inboxes)
        finally:
            self.me.rest()

    def _resume(self, inboxes: list[Inbox | None]) -> list[Step]:
        steps: list[Step] = []
        while True:
            answer = self._answer(inboxes)
            if self.me.draw.step == self._last:
                self._program.close()
                self.done = self.stopped = True
                return steps
            try:
                step = self._step(self._program.send(answer))
            except StopIteration as end:
                self._end(end.value)
                return steps
            except (MemoryError, RunLostError):
                raise
            except Exception as error:  # whatever a program does wrong
                raise self._placed(error) from error
            except (
                SystemExit
            ) as error:  # it would end a worker without a word, and this process with any status
                raise self._placed(
                    ProtocolError(f"the program calls sys.exit({error.code!r}); return, or raise an error")
                ) from error
            steps.append(step)
            if any(self.waits(item) for item in step.items):
                return steps
            inboxes = [None] * len(step.items)

    def close(self) -> None:
        """End a program that waits, where its run has failed: what it opened is closed in its own context."""
        with suppress(Exception):  # the run's own error is the one to be told
            self._context.run(self._program.close)

    def output_of(self, present: npt.NDArray[np.bool_] | None) -> dict[str, npt.NDArray[Any]]:
        """Return the program's output columns, only those parties' (a mask; None for all) or of what they hold."""
        columns = self.output or {}
        if present is None:
            return columns
        return {
            name: column[present if layout is None else present[layout.holder]]
            for (name, column), layout in zip(columns.items(), self._layouts.values(), strict=True)
        }

    def forget_output(self) -> None:
        """Let go of the output."""
        self.output, self._layouts = None, {}

    def _end(self, value: Any) -> None:
        """Keep what a program returns."""
        try:
            self.output = _columns(self.me, value)
        except (ProtocolError, MemoryError, RunLostError):
            raise
        except Exception as error:  # columns that are none, such as ragged lists
            raise self._placed(error) from error
        values = (value or {}).items()
        self._layouts = {k: v.layout if isinstance(v, PerMessage) else None for k, v in values}
        self.done = True

    def _placed(self, error: Exception) -> ProtocolError:
        """Say where a program was when something went wrong, if the error does not say it."""
        expected = isinstance(error, (ProtocolError, InputError))
        text = str(error) if expected else _described(error)
        where = f"role {self.me.role!r}, step {self.me.draw.step}"
        placed = text if text.startswith("role ") else f"{where}: {text}"
        if isinstance(error, MissingColumnError):  # who made the population says better what to do
            return MissingColumnError(placed, error.part, error.name)
        if isinstance(error, TooFewMembersError):
            return TooFewMembersError(placed, error.needed)
        return ProtocolError(placed)

    def waits(self, item: Item) -> bool:
        """Whether an item comes with an inbox: a receive, or a send to one's own role."""
        verb, kind = item
        return verb == "receive" or self._messages[kind].recipient == self.me.role

    def _answer(self, inboxes: list[Inbox | None]) -> Any:
        if not self._started:
            self._started = True
            return None
        self.me.draw.advance()
        return inboxes[0] if self._single else tuple(inboxes)

    def _step(self, handed: Any) -> Step:
        where = f"role {self.me.role!r}, step {self.me.draw.step}"
        self._single = not isinstance(handed, tuple)
        actions = (handed,) if self._single else handed
        items: list[Item] = []
        sent: list[tuple[int, Batch | Answer]] = []
        for action in actions:
            if not isinstance(action, (Send, Receive)):
                raise ProtocolError(
                    f"{where}: yields a {type(action).__name__}; yield a send, a reply, a receive or a tuple of them"
                )
            kind = action.message.kind
            item = ("send" if isinstance(action, Send) else "receive", kind)
            if kind not in self._messages:
                raise ProtocolError(f"{where}: message {kind!r} is not declared by this protocol")
            if item in items:
                raise ProtocolError(
                    f"{where}: {item[0]}s {kind!r} twice in a step; send several with times= or me.each"
                )
            if isinstance(action, Send):
                sent.append((len(items), compose(action, self.me, self._world, self.number)))
            elif action.message.recipient != self.me.role:
                raise ProtocolError(f"{where}: receives {kind!r}, which goes to {action.message.recipient!r}")
            elif action.message.sender == self.me.role:
                raise ProtocolError(
                    f"{where}: {kind!r} is sent by this role itself: its inbox comes from the send's yield"
                )
            items.append(item)
        if not items:
            raise ProtocolError(f"{where}: yields an empty tuple; yield at least one send or receive")
        return Step(tuple(items), sent)


def _described(error: Exception) -> str:
    """Say in one line what a program did wrong, in which line of its file, and what to do."""
    text = " ".join(str(error).split())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_PASSED)]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    fix = "mend the program there"
    if "truth value of an array" in text or "truth value of a" in text:
        fix = (
            "a column has one entry a party, so it is no condition for if, and, or, not: combine columns by &, | "
            "and ~, choose by np.where, and give when= the messages to send"
        )
    elif "only" in text and "convert" in text and "scalar" in text:
        fix = "a column has one entry a party, so it is no single number: compute with the whole column"
    return f"{type(error).__name__}: {text}{place}; {fix}"


def _columns(me: Party, value: Any) -> dict[str, npt.NDArray[Any]]:
    """Return a program's output as plain columns; None is no columns."""
    where = f"role {me.role!r}, at its end"
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ProtocolError(f"{where}: returns {type(value).__name__}; return None or a dict of columns")
    plain: dict[str, npt.NDArray[Any]] = {}
    for name, column in value.items():
        if not name or any(letter in name for letter in "/\\\0"):  # it may become the name of a file
            raise ProtocolError(
                f"{where}: output {name!r}: a name has at least one letter, and no slash; rename it"
            )
        array = np.asarray(column.data if isinstance(column, PerMessage) else column)
        if me.role == USER and not isinstance(column, PerMessage) and array.shape[:1] != (me.size,):
            raise ProtocolError(f"{where}: output {name!r} needs one entry a party or message")
        if (
            array.ndim > 2
            or 0 in array.shape[1:]
            or array.dtype.kind not in "buif"
            or array.dtype.itemsize > 8
        ):
            raise ProtocolError(
                f"{where}: output {name!r} is {array.dtype} of shape {array.shape}; return plain columns"
            )
        plain[name] = np.atleast_1d(array)
    return plain

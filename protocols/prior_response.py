"""Randomized response with a prior: users answer among the labels that a public prior makes likely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import Inbox, InputError, Message, Party, Protocol, Rounds, check_labels, check_range
from p2p_sim.core.columns import PerMessage
from p2p_sim.core.number_texts import read_number
from protocols.randomized_response import check_lie, lying

Array = npt.NDArray[Any]

UNIFORM, PUBLIC = "uniform", "public"
"""The two priors that have a name: every label is as likely, and each user's row of the public column "prior"."""

OFF_BY = 1e-6
"""How far the probabilities of a prior may be from a sum of 1: a model's float32 outputs pass."""


@dataclass(frozen=True)
class PriorResponse(Protocol):
    """Users report by randomized response among the labels that a public prior makes likely.

    Of the k labels only the m most likely ones can be reported, where m maximises the chance that the truth is: the
    probability of these m labels times e^epsilon / (e^epsilon + m - 1).  A user whose label is none of them reports
    one of them at random.  With m = 1 all users of that prior report the same label, which shows nothing of theirs.

    ``epsilon``: at least 0, in nats; infinity never lies about a label that can be reported.  Beyond about 44 a lie is
    too rare to be drawn, and a run is refused.
    ``labels``: k, from 2 to 256.
    ``prior``: "uniform"; or the k probabilities of the labels, such as 0.7,0.2,0.1, all above 0; or "public": the
    population's public column "prior", k probabilities for each user.

    The learner returns columns ``sender`` and ``y`` (uint8).  Raises InputError for parameters out of range, and for a
    prior that does not fit.

    *Source:* Ghazi et al. 2021, "Deep Learning with Label Differential Privacy", RRTop-k and RRWithPrior; LP-1ST of
    Attacks 2023, Appendix B.
    *Assumes:* the prior is public and depends on no user's label; users follow the protocol; nobody need be trusted.
    """

    epsilon: float
    labels: int = 2
    prior: str = UNIFORM

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        self.shared_prior()

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def shared_prior(self) -> Array | None:
        """Return the prior that all users share, shape (k,); None if each has her own, in the public column."""
        if self.prior == PUBLIC:
            return None
        return parsed_prior(
            self.prior, self.labels, f'{self.labels} probabilities, "{UNIFORM}" or "{PUBLIC}"'
        )

    def lying(self, m: int) -> Fraction:
        """Return the probability of a lie among ``m`` labels: e^epsilon to 60 digits, the same on every machine."""
        return _lying(self.epsilon, m)

    def reportable(self, prior: Array) -> tuple[Array, Array]:
        """Return, for priors of shape (n, k), the labels in descending probability (n, k), and m, shape (n,).

        Of equally likely labels the smaller goes first; of values of m that are as good, the smallest is taken.
        """
        # Ghazi et al., RRWithPrior, lines 1 and 2
        order = np.argsort(-prior, axis=1, kind="stable")
        chance = np.cumsum(np.take_along_axis(prior, order, axis=1), axis=1) * _truths(
            self.epsilon, self.labels
        )
        return order, 1 + np.argmax(chance, axis=1)

    def user(self, me: Party) -> Rounds:
        """Report the label or a lie, both among the m most likely labels."""
        shared = self.shared_prior()
        if shared is not None:
            order, m = self.reportable(shared[None])
            yield self.report(y=self.answers(me, order, int(m[0])))
        else:
            prior = check_prior('public column "prior"', me.public["prior"], self.labels, me.id)
            yield self.report(y=self.answers(me, *self.reportable(prior)))

    def answers_to(self, me: Party, priors: Inbox, p: PerMessage) -> Array:
        """Draw what the holder of each message of an inbox says, as a plain array (uint8); ``p``: the prior in each."""
        travelled = p.multiples.data
        starts = _starts(travelled)  # those of a cluster, beside each other, have one prior
        priors_of = travelled[starts] if p.fixed is None else p.fixed.decoded(travelled[starts])
        which = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(starts, append=len(travelled)))
        return self.answers(me, *self.reportable(priors_of), priors, which)

    def answers(
        self, me: Party, order: Array, m: Any, each: Inbox | None = None, which: Array | None = None
    ) -> Array:
        """Draw what each user says, or for each message of an inbox what its holder says, as a plain array (uint8).

        ``order``: labels in descending probability: one row for all, one for each user, or for message i row
        ``which[i]``.  ``m``: how many of them can be reported: one number, or one a row of ``order``.
        """
        y = me.y.view(np.uint8)
        y = y if each is None else each.layout.spread(y)
        if (
            self.labels == 2 and np.min(m, initial=2) == 2
        ):  # whatever the order, the other label is the only lie
            check_lie(self.epsilon, self.lying(2))
            lie: Any = self.lying(2) if isinstance(m, int) else _lies(self.epsilon, 2)[2]
            return np.asarray(y ^ _plain(me.draw.bernoulli("lie", lie, each=each)))
        place = _entries(np.argsort(order, axis=1, kind="stable").astype(np.int16), y, which)
        # RRTop-k: a label among the m is kept, or replaced by one of the other m - 1; any other, by one of the m
        most, least = np.max(m, initial=1), np.min(m, initial=self.labels)
        if most > 1:
            few = np.min(np.where(np.greater(m, 1), m, self.labels), initial=self.labels)
            check_lie(self.epsilon, self.lying(int(few)))  # the rarest of these lies
        lies = _lies(self.epsilon, self.labels)
        if isinstance(m, int):
            lie = self.lying(m)
        elif most == least:  # what all share need not be a column
            lie, m = lies[most], int(most)
        else:
            lie, m = _column(_of(lies[m], which), each), _of(m, which)
        lied = _plain(me.draw.bernoulli("lie", lie, each=each))
        moved = (
            lied
            if most <= 2
            else lied * (1 + _plain(me.draw.below("other", _column(np.maximum(m - 1, 1), each), each=each)))
        )
        said = place + moved
        said = said - m * (said >= m)  # a place that is not among the m is replaced below, wherever it lands
        if least < self.labels:
            stand_in = _plain(me.draw.below("stand-in", _column(m, each), each=each))
            said = np.where(place < m, said, stand_in)
        return _entries(order.astype(np.uint8), said, which)

    def learner(self, me: Party) -> Rounds:
        """Receive the randomized labels."""
        reports = yield self.report.receive()
        return reports.columns()


_lying = lru_cache(maxsize=1024)(lying)  # every block asks for the same few


@lru_cache(maxsize=16)
def _lies(epsilon: float, labels: int) -> Array:
    """Return the probability of a lie among m labels by m, up to ``labels``; 0 where m is 0."""
    return _kept([0.0, *(float(_lying(epsilon, m)) for m in range(1, labels + 1))])


@lru_cache(maxsize=16)
def _truths(epsilon: float, labels: int) -> Array:
    """Return the probability of the truth among m labels, from 1 up to ``labels``."""
    return _kept([float(1 - _lying(epsilon, m)) for m in range(1, labels + 1)])


def _kept(numbers: list[float]) -> Array:
    array = np.array(numbers)
    array.setflags(write=False)
    return array


def _column(values: Any, each: Inbox | None) -> Any:
    """Return values as a draw takes them: numbers and party columns as they are, one a message as such a column."""
    return values if each is None or np.ndim(values) == 0 else PerMessage(values, each.layout)


def _of(values: Array, which: Array | None) -> Array:
    """Return the value of each one's row."""
    return values if which is None else values.take(which)


def _plain(drawn: Any) -> Array:
    return np.asarray(drawn.data if isinstance(drawn, PerMessage) else drawn)


def _entries(rows: Array, places: Array, which: Array | None) -> Array:
    """Return an entry of each row, or of ``which`` row, at a place; a single row is everybody's."""
    if len(rows) > 1:
        mine = np.arange(len(places)) if which is None else which
        return np.asarray(rows.reshape(-1).take(mine * rows.shape[1] + places))
    if len(rows) == 0 or (rows[0] == np.arange(rows.shape[1])).all():
        return places.astype(rows.dtype)
    return np.asarray(rows[0].take(places))


def _starts(rows: Array) -> Array:
    """Return where rows begin that differ from the one before."""
    differ = np.zeros(len(rows), np.bool_)
    differ[:1] = True
    for column in rows.T:
        differ[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differ)


def parsed_prior(text: str, labels: int, allowed: str) -> Array:
    """Return the prior that a text names, shape (labels,); raises InputError with what is ``allowed``."""
    if not isinstance(text, str):
        raise InputError(f'prior = {text!r}: give text, such as "0.7,0.2,0.1"; {allowed}')
    if text == UNIFORM:
        return np.full(labels, 1 / labels)
    try:
        given = np.array([read_number(part.strip()) for part in text.split(",")])
    except ValueError as error:
        raise InputError(f"prior = {text!r}: {error}; give {allowed}") from None
    return np.asarray(check_prior(f"prior = {text!r}", given[None], labels)[0])


def check_prior(name: str, prior: Array, labels: int, users: Array | None = None) -> Array:
    """Return rows of label probabilities, shape (n, labels), as float64; each is above 0, and their sum is 1.

    ``users``: whose rows they are.  Raises InputError naming what they are, the user and the value.
    """
    if prior.ndim != 2 or prior.shape[1] != labels or prior.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: has {prior.dtype} numbers of shape {prior.shape}; give one probability for each of the "
            f"{labels} labels, that is a shape of ({len(prior) if prior.ndim else 1}, {labels})"
        )
    rows = prior.astype(np.float64)
    bad = ~((rows > 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) <= OFF_BY))
    if bad.any():
        row = int(np.argmax(bad))
        of = "" if users is None else f" of user {int(np.asarray(users)[row])}"
        low = not (rows[row] > 0).all()
        fix = "give each at least a small one, such as 1e-6, and divide all" if low else "divide each"
        raise InputError(
            f"{name}: probabilities {rows[row].tolist()}{of} must all be above 0, and sum to 1 (they sum to "
            f"{float(rows[row].sum()):.9g}); {fix} by their sum"
        )
    return rows

"""Statistics shared by mechanisms: an answer, the victim's bit, sums of bags, shuffled labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.network.bags import bags_of, smallest
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages
from p2p_sim.privacy.auditing.statistic import (
    CUT,
    NEVER,
    Array,
    Statistic,
    WorldCounts,
    anything,
    bit_ratio,
    in_table,
)
from p2p_sim.privacy.laws.binomial_tails import noisy_ones
from p2p_sim.privacy.laws.noise import table
from p2p_sim.privacy.laws.randomized_response import local_epsilon
from p2p_sim.privacy.mechanism_parts.bag_sums import AGGREGATOR

UNSEEN = -1
"""Stands for a bit that was not seen."""

BOTH = 2
"""Stands for a bit of which 0 and 1 were seen: who flips once does not tell two stories."""

_MANY = 50  # reports a world from which sums over stretches are faster than a table


def readable(columns: SeenMessages, field: str, wanted: Array) -> Array:
    """Return the indices of the messages, among those where the mask ``wanted`` is true, whose field can be read."""
    if field not in columns.fields:
        return np.empty(0, np.intp)
    return np.flatnonzero(wanted if columns.readable is None else wanted & columns.readable)


def bit_of_victim(seen: Seen, *, through_reports: bool, labels: int = 2) -> Array:
    """Return the victim's noisy label as somebody received it, ``UNSEEN``, or ``labels`` if several were; (worlds,).

    ``through_reports``: whether it is known who asks whom, so that a report gives away the label of who was asked.
    ``labels``: how many there are; of bits, ``labels`` is ``BOTH``.
    """
    observed = np.zeros((labels, seen.worlds), np.bool_)
    if through_reports and (reports := seen.kinds.get("report")) is not None:
        rows = readable(reports, "y", _askers_of_victim(seen)[reports.sender])
        if len(rows):
            observed[reports.fields["y"][rows].astype(np.intp), reports.sender[rows] // seen.size] = True
    if (answers := seen.kinds.get("label")) is not None:
        rows = readable(answers, "y_hat", answers.sender % seen.size == 0)
        if len(rows):
            observed[answers.fields["y_hat"][rows].astype(np.intp), answers.sender[rows] // seen.size] = True
    many = observed.sum(0)
    return np.where(many == 1, observed.argmax(0), np.where(many > 1, labels, UNSEEN)).astype(np.int16)


def _askers_of_victim(seen: Seen) -> Array:
    """Return a mask of all users: who asked the victim.  Her ask to herself does not travel, and so is missed."""
    askers = np.zeros(seen.worlds * seen.size, np.bool_)
    askers[:: seen.size] = True
    if (asks := seen.kinds.get("ask")) is not None:
        askers[asks.sender[asks.sender % seen.size == 0]] = False
        askers[asks.sender[asks.recipient % seen.size == 0]] = True
    return askers


def open_reports(seen: Seen) -> tuple[Array, Array, Array]:
    """Return, a world, how many reports of honest users came that carry no colluder's bit, and the ones among them.

    And of them the victim's own: 0 if there is none, otherwise 1 more than its bit.
    """
    reports = seen.kinds.get("report")
    if reports is None:
        none = np.zeros(seen.worlds, np.int64)
        return none, none, none
    sender, y = reports.sender, reports.fields["y"]
    if seen.colluders:
        mask = ~_asked_colluders(seen)[sender]
        sender, y = sender[mask], y[mask]
    return *counted(sender, y, seen.size, seen.worlds), _victims(sender, y, seen.size, seen.worlds)


def _victims(sender: Array, y: Array, size: int, worlds: int) -> Array:
    """Return the bit that the first user of each world sent, plus 1; 0 if she sent none."""
    own = np.zeros(worlds, np.int64)
    if len(sender) and bool((sender[1:] > sender[:-1]).all()):
        rows = np.searchsorted(sender, np.arange(worlds, dtype=sender.dtype) * size)
        rows = rows[(rows < len(sender)) & (sender[np.minimum(rows, len(sender) - 1)] % size == 0)]
    else:
        rows = np.flatnonzero(sender % size == 0)
    own[sender[rows] // size] = 1 + y[rows].astype(np.int64)
    return own


def _asked_colluders(seen: Seen) -> Array:
    """Return a mask of all users: colluders, and who asked one of them."""
    mask = np.zeros((seen.worlds, seen.size), np.bool_)
    mask[:, 1 : 1 + seen.colluders] = True
    flat = mask.reshape(-1)
    if (asks := seen.kinds.get("ask")) is not None:
        flat[asks.sender[of_colluders(seen, asks.recipient)]] = True
    return flat


def of_colluders(seen: Seen, users: Array) -> Array:
    """Return a mask: which of some users are colluders."""
    place = users % seen.size
    return np.asarray((place >= 1) & (place <= seen.colluders))


def counted(sender: Array, y: Array, size: int, worlds: int) -> tuple[Array, Array]:
    """Return (reports, ones among them) of each world; this is the hot path of an audit.

    ``sender``: user ids, in any order; ``y``: bits.
    """
    bits = y.view(np.uint8) if y.dtype == np.bool_ and y.flags.c_contiguous else y.astype(np.uint8)
    if len(sender) == 0:
        return np.zeros(worlds, np.int64), np.zeros(worlds, np.int64)
    many = len(sender) >= _MANY * worlds
    if many and bool((sender[1:] > sender[:-1]).all()):  # in order, each at most once, as programs leave them
        if len(sender) == worlds * size:
            return np.full(worlds, size), _row_sums(bits.reshape(worlds, size))
        edges = np.searchsorted(sender, np.arange(worlds + 1, dtype=sender.dtype) * size)
        return np.diff(edges), _part_sums(bits, edges)
    code = sender // size * 2
    code += bits
    table = np.bincount(code, minlength=2 * worlds).reshape(worlds, 2)
    return table.sum(1), table[:, 1]


def _row_sums(bits: Array) -> Array:
    # A sum of bytes stays in bytes, many at a time, if no more than 255 are added up.
    short = [bits[:, i : i + 255].sum(1, dtype=np.uint8) for i in range(0, bits.shape[1], 255)]
    return np.asarray(np.sum(short, axis=0, dtype=np.int64))


def _part_sums(bits: Array, edges: Array) -> Array:
    filled = np.diff(edges) > 0
    sums = np.zeros(len(filled), np.int64)
    if filled.any():
        sums[filled] = np.add.reduceat(bits, edges[:-1][filled], dtype=np.int64)
    return sums


@dataclass(frozen=True)
class Answered(Statistic):
    """The victim's own answer ``y`` to randomized response, -1 if there is none and -2 if there are several.

    ``epsilon``: at least 0, in nats.  ``lie``: the chance of any one other label.  ``labels``: k.  ``kind``: of report.
    ``pair``: the two labels of the victim that are compared.

    *Source:* Warner 1965; Kairouz, Oh, Viswanath 2014.
    """

    epsilon: float
    lie: float
    labels: int
    kind: str = "report"
    pair: tuple[int, int] = (0, 1)
    coordinates = ("y",)

    @classmethod
    def of(cls, epsilon: float, lying: Fraction, labels: int, kind: str = "report") -> Answered:
        """Return the statistic of a budget, whose chance of any lie is ``lying``."""
        return cls(epsilon, float(lying / (labels - 1)), labels, kind)

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the victim's report."""
        return {"y": _answers(seen, self.kind, "y")}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels, which are treated alike; None for one that the law lacks."""
        return replace(self, pair=labels) if max(labels) < self.labels else None

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return plus or minus the budget, 0 where the answer is neither label, or there is none."""
        first, second = self.pair
        return np.where(rows["y"] == second, self.epsilon, np.where(rows["y"] == first, -self.epsilon, 0.0))

    def few(self, label: int) -> Array:
        """Return the law of the labels that are said."""
        table = np.full(self.labels, self.lie)
        table[label] = 1 - self.lie * (self.labels - 1)
        return table

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the answer."""
        below, mass = in_table(self.few(label), rows["y"])
        return below[:, None], mass[:, None]


@dataclass(frozen=True)
class VictimBit(Statistic):
    """The victim's noisy bit, if it is seen; that it is seen has probability ``seen``, whatever her label.

    ``through_reports``: whether the view knows who asks whom and reads reports.

    *Source:* ``docs/laws.md``, "One curious peer" and "Wire and traffic".
    """

    alpha: float
    seen: float
    through_reports: bool
    coordinates = ("bit",)
    lowest = UNSEEN

    def read(self, seen: Seen) -> WorldCounts:
        """Return ``bit``: -1 where it is not seen."""
        return {"bit": bit_of_victim(seen, through_reports=self.through_reports)}

    def few(self, label: int) -> Array:
        """Return the law of unseen, 0 and 1."""
        return bit_law(self.seen, self.alpha, label)

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return plus or minus the budget, 0 where nothing is seen."""
        return bit_log_ratio(rows["bit"], self.alpha)

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the bit."""
        below, mass = in_table(self.few(label), rows["bit"] - UNSEEN)
        return below[:, None], mass[:, None]


def bit_log_ratio(bit: Array, alpha: float) -> Array:
    """Return the log ratios of the victim's two labels; ``bit``: as it was seen."""
    epsilon = local_epsilon(alpha)
    return np.where(bit == 1, epsilon, np.where(bit == 0, -epsilon, 0.0))


def bit_law(seen: float, alpha: float, label: int) -> Array:
    """Return the law of unseen, 0, 1."""
    one = 1 - alpha if label else alpha
    return np.array([1 - seen, seen * (1 - one), seen * one])


@dataclass(frozen=True)
class BagCount(Statistic):
    """What is released of the victim's bag, the first of her world: its noisy count in steps.

    ``kind``: of message; ``bags``: in a world; ``others``: ones among the others of her bag; ``steps``: a label;
    ``noise``: probabilities of -J .. J steps.
    """

    kind: str
    bags: int
    others: int
    steps: int
    noise: Array = field(repr=False)
    coordinates = ("total",)

    @classmethod
    def exact(cls, kind: str, k: int, colluders: int, size: int, composition: int) -> BagCount:
        """Return the statistic of exact counts; ``k``: users a bag; ``composition``: others of her world with 1."""
        return cls(kind, bags_of(size, k), _ones(k, colluders, size, composition), 1, np.ones(1))

    @classmethod
    def noisy(
        cls,
        kind: str,
        k: int,
        colluders: int,
        size: int,
        composition: int,
        epsilon: float,
        steps: int,
        parts: float = 1.0,
    ) -> BagCount:
        """Return the statistic of counts with discrete Laplace noise, of which there are so many parts."""
        noise, _, _ = table(epsilon / steps, parts)
        return cls(kind, bags_of(size, k), _ones(k, colluders, size, composition), int(steps), noise)

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the count of the first bag of each world; one that nobody can have stands for none."""
        total = np.full(seen.worlds, np.iinfo(np.int32).min, np.int64)
        messages = seen.kinds.get(self.kind)
        if messages is not None:
            mine = messages.fields["bag"] % self.bags == 0
            total[seen.world_of(messages)[mine]] = messages.fields["total"][mine]
        return {"total": total}

    def _at(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        start = self.steps * (self.others + label) - len(self.noise) // 2
        return in_table(self.noise, rows["total"] - start)

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratios of two shifts of the noise."""
        with np.errstate(divide="ignore"):
            logs = [np.maximum(np.log(self._at(rows, label)[1]), NEVER) for label in (0, 1)]
        return np.where(logs[0] == logs[1], 0.0, np.where(logs[0] <= NEVER, np.inf, logs[1] - logs[0]))

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the noise, shifted."""
        below, mass = self._at(rows, label)
        return below[:, None], mass[:, None]


def trusts(coalition: Coalition, channels: str) -> bool:
    """Whether a view is shown the labels that a trusted aggregator is shown."""
    return AGGREGATOR in coalition.servers or (coalition.wire and channels == "plain")


def _ones(k: int, colluders: int, size: int, composition: int) -> int:
    """Return how many honest others of the victim's bag, the smallest, have label 1."""
    bag = smallest(size, k)
    return min(composition, bag - 1 - min(colluders, bag - 1))


@dataclass(frozen=True)
class CrowdLabels(Statistic):
    """``m`` labels of honest users, ``k`` ones among them; without colluders ``first``, the one at a fixed place.

    ``composition``: honest others with label 1.  ``first``: 0 if there is none, else 1 more than the bit.

    *Source:* ``docs/laws.md``, "Shuffled bits"; in a uniformly random order every place holds a one with chance k / m.
    """

    alpha: float
    size: int
    colluders: int
    composition: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", ("m", "k") if self.colluders else ("m", "k", "first"))

    @property
    def honest(self) -> int:
        """Honest users, the victim among them."""
        return self.size - self.colluders

    def _others(self) -> tuple[int, Array]:
        """Return the law of the ones among the honest others: the least number of them, and probabilities."""
        window = noisy_ones(self.alpha, self.composition, self.honest - 1 - self.composition, 0, CUT)
        return window.low, window.mass

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return those of the number of ones."""
        low, mass = self._others()
        with np.errstate(divide="ignore", invalid="ignore"):
            one, zero = (np.log(in_table(mass, rows["k"] - low - bit)[1]) for bit in (1, 0))
            ratio = np.where(np.isneginf(one) & np.isneginf(zero), 0.0, one - zero)
        return bit_ratio(ratio, self.alpha)

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of all three."""
        low, mass = self._others()
        noise = np.array([self.alpha, 1 - self.alpha] if label else [1 - self.alpha, self.alpha])
        below, chance = anything(len(rows["m"]), self.draws)
        chance[:, 0] = rows["m"] == self.honest
        below[:, 1], chance[:, 1] = in_table(np.convolve(mass, noise), rows["k"] - low)
        if not self.colluders:
            share = np.clip(rows["k"] / self.honest, 0.0, 1.0)
            below[:, 2] = np.where(rows["first"] == 2, 1 - share, 0.0)
            chance[:, 2] = np.choose(np.clip(rows["first"], 0, 2), [0.0 * share, 1 - share, share])
        return below, chance


def counts(world: Array, y: Array, worlds: int) -> tuple[Array, Array]:
    """Return (labels, ones among them) of each world; ``world``: of each label."""
    return (
        np.bincount(world, minlength=worlds),
        np.bincount(world, y, minlength=worlds).astype(np.int64),
    )


def said_by_victim(
    seen: Seen, kind: str, field: str, read: Callable[[SeenMessages, Array], Array], none: int, several: int
) -> Array:
    """Return what the victim's message of a kind says in each world, int64: ``read(messages, rows)``, one each.

    ``field``: that must be readable.  ``none``, ``several``: stand where there is none, or more than one, which tell
    more than one does.
    """
    found = np.full(seen.worlds, none, np.int64)
    messages = seen.kinds.get(kind)
    if messages is not None:
        rows = readable(messages, field, messages.sender % seen.size == 0)
        world = messages.sender[rows] // seen.size
        if len(rows):
            found[world] = read(messages, rows)
        found[np.bincount(world, minlength=seen.worlds) > 1] = several
    return found


def _answers(seen: Seen, kind: str, field: str) -> Array:
    """Return the victim's answer in each world: -1 if there is none, and -2 if there are several."""
    return said_by_victim(seen, kind, field, lambda messages, rows: messages.fields[field][rows], -1, -2)


def chance_ratio(first: Array, second: Array) -> Array:
    """Return log(second / first) of chances, maybe infinite; 0 where both are 0."""
    with np.errstate(divide="ignore"):
        ratio = np.log(second) - np.log(np.where(first > 0, first, 1.0))
    return np.where(first > 0, ratio, np.where(second > 0, np.inf, 0.0))


@dataclass(frozen=True)
class AnsweredByMatrix(Statistic):
    """The victim's own answer, as ``Answered`` reads it, to a randomizer that is not alike in its labels.

    ``rows[label][answer]``: P(answer | label).  ``kind``, ``field``: where the answer is.  ``pair``: the two labels of
    the victim that are compared.
    """

    rows: tuple[tuple[float, ...], ...]
    kind: str = "report"
    field: str = "y"
    pair: tuple[int, int] = (0, 1)
    coordinates = ("y",)

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the victim's report."""
        return {"y": _answers(seen, self.kind, self.field)}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels; None for one that the law lacks."""
        return replace(self, pair=labels) if max(labels) < len(self.rows) else None

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratio of the answer's chances; 0 where there is no answer, or it never comes."""
        first, second = (in_table(self.few(label), rows["y"])[1] for label in self.pair)
        return chance_ratio(first, second)

    def few(self, label: int) -> Array:
        """Return the law of the labels that are said."""
        return np.array(self.rows[label])

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the answer."""
        below, mass = in_table(self.few(label), rows["y"])
        return below[:, None], mass[:, None]

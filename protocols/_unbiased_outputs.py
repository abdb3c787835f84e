"""Unbiased randomizers of numbers with little expected squared error, as integers that are drawn as they stand.

A randomizer is a sum of columns.  A column is an output z, a set S of labels and a weight w: labels in S report z with
probability w r, the others with w, where r is just below e^epsilon.  Every randomizer with that ratio is such a sum.
The least error under two conditions for each label, that its probabilities sum to 1 and its mean is right, is a linear
program with twice as many rows as labels.  Columns enter it one by one, the best of all outputs and sets each time.

The simplex method runs in decimals of its own, and columns are compared in numpy's sums and products, one at a time:
the same bits on every machine, which a library's solver does not promise.  Weights are then rounded to integers, and
two more outputs, reported with nearly the same small probability by all, take up what rounding leaves over.

Outputs of columns are on a grid, and of many labels only some have columns of their own.  At a large epsilon that costs
more than it saves: there randomized response, with outputs that make it unbiased, may have the smaller error, and is
taken, of all labels or, where these are many, of every second, every fourth and so on.

*Source:* Badanidiyuru et al. 2023, "Optimal Unbiased Randomizers for Regression with Label Differential Privacy".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exp
from p2p_sim.core.exact import WORD

Array = npt.NDArray[Any]

RATIO_BITS = 21
"""r is e^epsilon rounded down to so many bits: epsilon is less than 1e-6 smaller."""
NODES = 21
"""Labels up to which each has a row of its own in the linear program; of more, only some have."""
OUTPUTS = 64
"""Outputs to choose from: at least so many, and fewer than twice as many and 4, evenly spaced."""
WIDENED = 5
"""How often they may be about doubled, for a prior that has use for outputs further out, as one low at an end has."""
UNUSED = Decimal("1e-12")
"""Up to this chance an outermost output counts as not reported."""
NEARLY = 1e-9
"""A share of the error: by how much the best column must be better than none to enter."""
TINY, TIE = Decimal("1e-30"), Decimal("1e-35")
"""What is less is 0 as a pivot, and as a difference of two ratios."""

_CONTEXT = Context(prec=50)


@dataclass(frozen=True)
class Randomizer:
    """Outputs, as multiples of ``step``, in steps of labels, and how often each label reports them.

    ``chances[label][output]``: of ``WORD`` words.  ``nodes``: the labels whose rows were chosen; others are mixtures.
    ``alike``: whether all pairs of nodes are, except for the order of outputs, as in randomized response.
    """

    step: Fraction
    multiples: tuple[int, ...]
    chances: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...]
    alike: bool = False

    def outputs(self) -> npt.NDArray[np.float64]:
        """Return the outputs, shape (outputs,), ascending, in steps of labels: label i is i."""
        return np.array([float(multiple * self.step) for multiple in self.multiples])

    def error(self, prior: Array) -> Fraction:
        """Return the expected squared error of what is reported, in squared steps of labels, without rounding."""
        squares = [multiple * multiple for multiple in self.multiples]
        total = Fraction(0)
        for label, (chance, row) in enumerate(zip(prior.tolist(), self.chances, strict=True)):
            of_square = sum(count * square for count, square in zip(row, squares, strict=True))
            total += Fraction(chance) * (
                of_square * self.step**2 / WORD - label * label
            )  # the mean is the label
        return total


def optimal(prior: Array, epsilon: float) -> Randomizer:
    """Return the randomizer of a prior, shape (k,), and a budget in nats, from 0.01 to 12.

    The one with the least error of the linear program's and of unbiased randomized response of all labels, of every
    second, every fourth and so on.
    """
    found = [by_program(prior, epsilon)]
    gap = 1
    while gap < len(prior):
        found.append(randomized_response(len(prior), epsilon, gap))
        gap *= 2
    return min(found, key=lambda made: made.error(prior))


def randomized_response(labels: int, epsilon: float, gap: int = 1) -> Randomizer:
    """Return randomized response of nodes at most ``gap`` apart, whose outputs are moved and stretched.

    With n words for each other node and m for the true one, node a is reported as (a 2^64 - n (the sum of all nodes)) /
    (m - n): then the means are the nodes.  n is a multiple of ``gap``, a power of two, so that rows can be mixed.
    """
    nodes = nodes_of(labels, gap)
    most = WORD / (exp(epsilon) + len(nodes) - 1)
    lie = math.ceil(most / gap) * gap  # rounded up, so that the ratio is at most e^epsilon
    truth = WORD - (len(nodes) - 1) * lie
    rows = [[truth if said == node else lie for said in nodes] for node in nodes]
    multiples = tuple(node * WORD - lie * sum(nodes) for node in nodes)
    return Randomizer(
        Fraction(1, truth - lie), multiples, mixed(rows, labels, nodes), tuple(nodes), alike=True
    )


def by_program(prior: Array, epsilon: float) -> Randomizer:
    """Return the randomizer of the linear program."""
    with localcontext(_CONTEXT):
        for widened in range(WIDENED + 1):
            program = _Program(prior, _rounded_down(exp(epsilon)), widened)
            program.solve()
            if not program.ends_used():
                break
        return program.in_integers()


def _rounded_down(odds: Fraction) -> Fraction:
    unit = Fraction(1 << math.floor(odds).bit_length(), 1 << RATIO_BITS)
    return unit * math.floor(odds / unit)


def gap_of(labels: int) -> int:
    """Return how far apart the labels are that the linear program gives rows of their own: 1 if there are few."""
    gap = 1
    while (labels - 1) // gap >= NODES:
        gap *= 2
    return gap


def nodes_of(labels: int, gap: int) -> list[int]:
    """Return labels that are a power of two apart, and the last one, to which gaps are smaller ones."""
    found = [0]
    while found[-1] < labels - 1:
        while found[-1] + gap > labels - 1:
            gap //= 2
        found.append(found[-1] + gap)
    return found


def shares_of(label: int, nodes: list[int]) -> list[tuple[int, int, int]]:
    """Return (place of a node, its share, gap) of each node that a label is a mixture of; shares in parts of a gap."""
    place = int(np.searchsorted(nodes, label))
    if nodes[place] == label:
        return [(place, 1, 1)]
    before, after = nodes[place - 1], nodes[place]
    return [(place - 1, after - label, after - before), (place, label - before, after - before)]


def mixed(rows: list[list[int]], labels: int, nodes: list[int]) -> tuple[tuple[int, ...], ...]:
    """Return the rows of all labels from those of the nodes."""
    shares = [shares_of(label, nodes) for label in range(labels)]
    return tuple(
        tuple(sum(rows[place][j] * share // gap for place, share, gap in each) for j in range(len(rows[0])))
        for each in shares
    )


class _Program:
    """The linear program, in rows of differences: what node i has beyond node i - 1, first of weight, then of means.

    ``inverse``: of the basis, with the weights as a last column; its last row holds the duals, and the error, negative.
    """

    def __init__(self, prior: Array, ratio: Fraction, widened: int) -> None:
        self.labels, self.ratio = len(prior), ratio
        self.odds = Decimal(ratio.numerator) / Decimal(ratio.denominator)
        self.nodes = nodes_of(self.labels, gap_of(self.labels))
        self.count = len(self.nodes)
        reach = 2 * (self.labels - 1) / float(ratio - 1) + (self.labels - 1) / 4
        # with less than half of that there is no unbiased randomizer; the best one rarely needs more
        _, exponent = math.frexp((self.labels - 1 + 2 * reach) / OUTPUTS)
        self.step = 2.0 ** (exponent - 1)  # a power of two
        beyond = math.ceil(reach / self.step) << widened
        self.multiples = np.arange(-beyond, math.ceil((self.labels - 1) / self.step) + beyond + 1)
        self.middle = round((self.labels - 1) / self.step / 2)
        self.filler = self._filler()
        self.cost = self._costs(prior)
        self.basis: list[tuple[Array, int] | None] = [None] * (2 * self.count)
        self.inverse = self._start()

    def _filler(self) -> int:
        """Return the integer that every label has for each of two outputs in the middle, before it is corrected.

        Each column of the basis is rounded down by less than r units, which takes up to that times its distance.
        """
        unit = self.ratio.denominator * self._parts()
        most = math.ceil(2 * self.count * self.ratio * unit) * (len(self.multiples) + 1)
        least = math.ceil(most * (self.ratio + 2) / (self.ratio - 1))
        return -(-least // unit) * unit

    def _parts(self) -> int:
        """Return the widest gap between nodes: multiples of it can be mixed."""
        return max(np.diff(self.nodes).tolist())

    def _costs(self, prior: Array) -> Array:
        """Return the expected squared error that each node answers for, by output, shape (nodes, outputs)."""
        outputs = self.multiples * self.step
        cost = np.zeros((self.count, len(outputs)))
        for label, chance in enumerate(prior):
            for place, share, gap in shares_of(label, self.nodes):
                cost[place] += chance * (share / gap) * (outputs - label) ** 2
        return cost

    def _start(self) -> Array:
        """Return the identity, beside what the rows of differences must be, without the two outputs in the middle."""
        size, filled = 2 * self.count, 2 * Decimal(self.filler) / WORD
        table = np.array([[Decimal(int(i == j)) for j in range(size + 1)] for i in range(size + 1)])
        table[0, size] = 1 - filled
        table[self.count, size] = -filled * (self.middle + Decimal("0.5"))
        for row, gap in enumerate(np.diff(self.nodes).tolist(), 1):
            table[self.count + row, size] = gap / Decimal(self.step) / (self.odds - 1)
        table[size, size] = Decimal(0)
        return table

    def solve(self) -> None:
        """Find the best weights, from those of the two outermost outputs."""
        last, places = len(self.multiples) - 1, np.arange(self.count)
        for row in range(1, self.count):
            self._enter(places >= row, last, row)
            self._enter(places < row, 0, self.count + row)
        self._enter(places < 0, last, 0)
        self._enter(places < 0, 0, self.count)
        for _ in range(200 * self.count):  # far more than were ever needed; where it ends all conditions hold
            column = self._best_column()
            if column is None or not self._enter(*column):
                break

    def ends_used(self) -> bool:
        """Whether an outermost output is reported at all, so that one further out might be better."""
        ends, weights = (0, len(self.multiples) - 1), self.inverse[: 2 * self.count, 2 * self.count]
        return any(
            column is not None and column[1] in ends and weight > UNUSED
            for column, weight in zip(self.basis, weights, strict=True)
        )

    def _best_column(self) -> tuple[Array, int] | None:
        """Return the set and the output that lower the error the most, None if none lowers it."""
        size, odds = 2 * self.count, float(self.odds)
        duals = np.array([float(-value) for value in self.inverse[size, :size]]).reshape(2, self.count)
        gain = duals - np.concatenate([duals[:, 1:], np.zeros((2, 1))], axis=1)  # of a node in the set
        gain[:, 0] += (odds - 2) * duals[:, 0]
        inside = (odds - 1) * self.cost - gain[0][:, None] - gain[1][:, None] * self.multiples
        reduced = -duals[0, 0] - duals[1, 0] * self.multiples
        for row, part in zip(self.cost, inside, strict=True):  # the same order of sums everywhere
            reduced = reduced + row + np.minimum(part, 0)
        place = int(np.argmin(reduced))
        if reduced[place] > float(self.inverse[size, size]) * NEARLY:
            return None
        return inside[:, place] < 0, place

    def _enter(self, inside: Array, place: int, row: int | None = None) -> bool:
        """Let a column enter the basis, at the row where a weight becomes 0 first; False if it does not pay."""
        size, table = 2 * self.count, self.inverse
        output = int(self.multiples[place])
        entries = [(0, self.odds if inside[0] else Decimal(1))]
        entries += [
            (i, Decimal(int(inside[i]) - int(inside[i - 1])))
            for i in range(1, self.count)
            if inside[i] != inside[i - 1]
        ]
        entries += [(self.count + i, value * output) for i, value in entries]
        column = sum((table[:, i] * value for i, value in entries), np.full(size + 1, Decimal(0)))
        costs = zip(self.cost[:, place].tolist(), inside.tolist(), strict=True)
        column[size] += sum(Decimal(cost) * (self.odds if held else 1) for cost, held in costs)
        if row is None:
            if column[size] >= 0:  # it only seemed to pay, in floats
                return False
            row = self._leaving(column)
            if row is None:  # all that stands in its way is rounding
                return False
        table[row] /= column[row]
        for i in range(size + 1):
            if i != row and column[i]:
                table[i] -= column[i] * table[row]
        self.basis[row] = (inside, place)
        return True

    def _leaving(self, column: Array) -> int | None:
        """Return the row whose weight becomes 0 first, of several the first; None if there is none."""
        size = 2 * self.count
        found, least = None, Decimal("Infinity")
        for i in range(size):
            if column[i] > TINY:
                bound = self.inverse[i, size] / column[i]
                if bound < least - TIE:
                    found, least = i, bound
        return found

    def in_integers(self) -> Randomizer:
        """Round the weights down, so that all columns keep the ratio, and give the rest to the two in the middle."""
        parts, size = self._parts(), 2 * self.count
        low, high = self.ratio.denominator * parts, self.ratio.numerator * parts
        rows: list[dict[int, int]] = [{} for _ in self.nodes]
        for column, weight in zip(self.basis, self.inverse[:size, size], strict=True):
            assert column is not None
            times = int(weight * WORD / low)
            output = int(self.multiples[column[1]])
            if times > 0:
                for row, held in zip(rows, column[0], strict=True):
                    row[output] = row.get(output, 0) + times * (high if held else low)
        for row, label in zip(rows, self.nodes, strict=True):
            self._fill(row, label)
        outputs = sorted(rows[0])
        plain = [[row[output] for output in outputs] for row in rows]
        chances = mixed(plain, self.labels, self.nodes)
        return Randomizer(Fraction(self.step), tuple(outputs), chances, tuple(self.nodes))

    def _fill(self, row: dict[int, int], label: int) -> None:
        """Make a row's integers sum to WORD and its mean the label, by two neighbouring outputs in the middle."""
        mean = Fraction(label) / Fraction(self.step) * WORD
        left = WORD - sum(row.values())
        above = mean - sum(output * times for output, times in row.items()) - left * self.middle
        assert above.denominator == 1
        row[self.middle + 1] = row.get(self.middle + 1, 0) + int(above)
        row[self.middle] = row.get(self.middle, 0) + left - int(above)

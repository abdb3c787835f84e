"""Algorithm 2: the statistics that audits count, the victim's bit or the reports, with their exact laws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing import common_statistics
from p2p_sim.privacy.auditing.common_statistics import UNSEEN, VictimBit, bit_law, bit_log_ratio
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import (
    CUT,
    NEVER,
    Blind,
    Statistic,
    WorldCounts,
    anything,
    below_binomial,
    bit_ratio,
    groups,
    in_table,
    log_binomial,
)
from p2p_sim.privacy.laws.binomial_tails import Window, noisy_ones
from p2p_sim.privacy.mechanisms.peer_to_peer.label_statistic import LARGEST, ReportedLabels, VictimLabel
from p2p_sim.privacy.setting import LEARNER
from protocols import PeerToPeer

Array = npt.NDArray[Any]

_CELLS = 2_000_000  # size of the tables that are made at a time
_RATIO_STEPS = 2.5  # numbers of noisy ones looked at, a standard deviation
_PLACE_STEPS = 1.5
_GAP = 20  # numbers of ones over which adding up is faster than a new tail


def statistic(
    protocol: PeerToPeer, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the victim's bit, for a view that knows who asks whom, else counts of reports; None on a graph.

    Of several labels None also for the learner with colluders, and for her in large clusters.

    *Source:* ``docs/laws.md``, "Algorithm 2, peer to peer".  *Assumes:* users follow the protocol.
    """
    if protocol.over != "cluster":
        return None
    reads = LEARNER in coalition.servers or (coalition.wire and channels == "plain")
    alpha, theta = float(protocol.alpha), float(protocol.theta)
    if coalition.wire or LEARNER not in coalition.servers:
        chance = _chance(coalition, size, theta, reads, channels)
        if protocol.labels > 2 and chance:
            return VictimLabel(alpha, protocol.labels, chance, coalition.wire and reads)
        return VictimBit(alpha, chance, coalition.wire and reads) if chance else Blind()
    if protocol.labels > 2:
        known = not coalition.user_count and size <= LARGEST
        return ReportedLabels(alpha, theta, protocol.labels, size, composition) if known else None
    return Reported(alpha, theta, size, coalition.user_count, composition)


def _chance(coalition: Coalition, size: int, theta: float, reads: bool, channels: str) -> float:
    """Return the chance that a view that knows who asks whom, or only colluders' asks, is told the victim's bit."""
    asking = coalition.user_count
    if coalition.wire and channels == "plain":
        asking = size - 1  # whoever asks her is heard
    reporting = (
        size - asking if coalition.wire and reads else 0
    )  # whoever else asks her is known by the report
    log_unseen = math.log1p(-1 / size) * asking if asking else 0.0
    if reporting:
        log_unseen += math.log1p(-theta / size) * reporting if theta < size else -math.inf
    return -math.expm1(log_unseen)


@dataclass(frozen=True)
class Reported(Statistic):
    """What the learner and ``colluders`` users see of a victim among ``size`` users.

    Columns: ``m`` reports of honest users that carry no colluder's bit, ``k`` ones among them; with colluders also
    ``bit``, the victim's, and where that is not seen ``known`` other bits that they got, ``picked`` of users with label
    1, ``said`` ones among them.  ``own``: of those reports the victim's, 0 if there is none, else 1 more than its bit;
    it tells nothing, as who reports what is pure chance, but a program that is wrong about it is found.
    ``composition``: honest others with label 1.

    *Source:* ``docs/laws.md``, "Learner and colluders".
    """

    alpha: float
    theta: float
    size: int
    colluders: int
    composition: int
    lowest = UNSEEN

    def __post_init__(self) -> None:
        before = ("bit", "known", "picked", "said") if self.colluders else ()
        object.__setattr__(self, "coordinates", (*before, "m", "k", "own"))

    @property
    def honest(self) -> int:
        """Honest users, the victim among them."""
        return self.size - self.colluders

    def few(self, label: int) -> Array | None:
        """Return the law of the victim's bit: unseen, 0 and 1; None without colluders."""
        chance = -math.expm1(self.colluders * math.log1p(-1 / self.size)) if self.colluders else 0.0
        return bit_law(chance, self.alpha, label) if self.colluders else None

    def read(self, seen: Seen) -> WorldCounts:
        """Count; where the victim's bit is seen nothing else matters, and the other columns are 0."""
        m, k, own = common_statistics.open_reports(seen)
        if not self.colluders:
            return {"m": m, "k": k, "own": own}
        bit = common_statistics.bit_of_victim(seen, through_reports=False)
        known, picked, said = _known_bits(seen, self.composition)
        counts = {"known": known, "picked": picked, "said": said, "m": m, "k": k, "own": own}
        return {"bit": bit} | {name: np.where(bit == UNSEEN, count, 0) for name, count in counts.items()}

    def ratios(self, columns: WorldCounts) -> Array:
        """Return the log ratios, which do not depend on ``own``."""
        return super().ratios({name: column for name, column in columns.items() if name != "own"})

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return those of the number of ones among the reports, or of the bit where it is seen."""
        out = bit_log_ratio(rows["bit"], self.alpha) if self.colluders else np.zeros(len(rows["m"]))
        for at, window, said in self._urns(rows):
            m, k = rows["m"][at], rows["k"][at]
            counts, mass = _thinned(window, said, self.honest, int(m.max()), _RATIO_STEPS)
            for part in _parts(len(at), len(counts)):
                ratio = _urn_ratio(m[part], k[part], counts, mass, self.honest)
                out[at[part]] = bit_ratio(ratio, self.alpha)
        return out

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of each count, given those before it."""
        below, mass = anything(len(rows["m"]), self.draws)
        if (law := self.few(label)) is not None:
            below[:, 0], mass[:, 0] = in_table(law, rows["bit"] - UNSEEN)
            self._known_law(rows, below, mass)
        open_ = rows["bit"] == UNSEEN if self.colluders else np.ones(len(below), np.bool_)
        m = np.minimum(rows["m"][open_], self.honest)  # more have no chance, see below
        chance = self.theta * self.honest / self.size
        below[open_, -3] = below_binomial(m, self.honest, chance)
        fits = rows["m"][open_] == m
        mass[open_, -3] = np.where(fits, np.exp(log_binomial(m, self.honest, chance)), 0.0)
        noise = np.array([self.alpha, 1 - self.alpha] if label else [1 - self.alpha, self.alpha])
        for at, window, said in self._urns(rows):
            m, k = rows["m"][at], rows["k"][at]
            whole = Window(window.low, np.convolve(window.mass, noise), 0.0, window.mean, window.variance)
            counts, weights = _thinned(whole, said, self.honest, int(m.max()), _PLACE_STEPS)
            below[at, -2], mass[at, -2] = _urn_law(m, k, counts, weights, self.honest)
        below[open_, -1], mass[open_, -1] = self._own_law(*(rows[name][open_] for name in ("m", "k", "own")))
        return below, mass

    def _own_law(self, m: Array, k: Array, own: Array) -> tuple[Array, Array]:
        """Return the law of the victim's own report: any of the honest users may have sent any of the m reports."""
        cells = np.stack([self.honest - m, m - k, k], axis=1) / self.honest
        place = own[:, None]
        below = np.take_along_axis(np.cumsum(cells, axis=1) - cells, place, axis=1)
        return np.maximum(below[:, 0], 0.0), np.maximum(np.take_along_axis(cells, place, axis=1)[:, 0], 0.0)

    def _known_law(self, rows: WorldCounts, below: Array, mass: Array) -> None:
        """Fill in the coordinates known, picked and said."""
        others, cells = self.honest - 1, self.size - 1
        open_ = np.flatnonzero(rows["bit"] == UNSEEN)
        known, picked = rows["known"][open_], rows["picked"][open_]
        below[open_, 1], mass[open_, 1] = in_table(_occupied(self.colluders, others, cells), known)
        for at in _by(open_, [known]):
            table = _chosen(others, self.composition, int(rows["known"][at[0]]))
            below[at, 2], mass[at, 2] = in_table(table, rows["picked"][at])
        for at in _by(open_, [known, picked]):
            true, false = rows["picked"][at[0]], rows["known"][at[0]] - rows["picked"][at[0]]
            window = noisy_ones(self.alpha, int(true), max(0, int(false)), 0, CUT)
            below[at, 3], mass[at, 3] = in_table(window.mass, rows["said"][at] - window.low)

    def _urns(self, rows: WorldCounts) -> Iterator[tuple[Array, Window, int]]:
        """Yield (rows, law of the noisy ones that nobody knows, known ones), the victim's bit not among them."""
        others = self.honest - 1
        if not self.colluders:
            if len(rows["m"]):
                ones = noisy_ones(self.alpha, self.composition, others - self.composition, 0, CUT)
                yield np.arange(len(rows["m"])), ones, 0
            return
        open_ = np.flatnonzero(rows["bit"] == UNSEEN)
        for at in _by(open_, [rows[name][open_] for name in ("known", "picked", "said")]):
            known, picked, said = (int(rows[name][at[0]]) for name in ("known", "picked", "said"))
            zeros = others - self.composition - (known - picked)
            yield at, noisy_ones(self.alpha, self.composition - picked, zeros, 0, CUT), said


def _known_bits(seen: Seen, composition: int) -> tuple[Array, Array, Array]:
    """Return, a world, of how many honest others colluders know the bit; of how many with label 1; and the ones."""
    labels = seen.kinds.get("label")
    if labels is None or "y_hat" not in labels.fields:
        nothing = np.zeros(seen.worlds, np.int64)
        return nothing, nothing, nothing
    to_colluders = (labels.sender % seen.size > seen.colluders) & common_statistics.of_colluders(
        seen, labels.recipient
    )
    rows = common_statistics.readable(labels, "y_hat", to_colluders)
    users, first = np.unique(labels.sender[rows], return_index=True)  # asked twice, she says the same twice
    ones = labels.fields["y_hat"][rows][first].astype(np.bool_)
    true = users % seen.size <= seen.colluders + composition
    world = users // seen.size
    known, picked, said = (np.bincount(world[mask], minlength=seen.worlds) for mask in (..., true, ones))
    return known, picked, said


def _urn_ratio(m: Array, k: Array, counts: Array, mass: Array, size: int) -> Array:
    """Return log P(k of m ones | the victim's bit is 1) / P(.. | 0); ``counts``: of ones in the urn without her."""
    logs = np.log(mass)
    with_zero, with_one = (
        logs + log_binomial(k[:, None], m[:, None], (counts + bit) / size) for bit in (0, 1)
    )
    top = np.maximum(with_zero.max(1), with_one.max(1))
    zero, one = np.exp(with_zero - top[:, None]).sum(1), np.exp(with_one - top[:, None]).sum(1)
    with np.errstate(divide="ignore"):
        ratio = np.log(one) - np.log(zero)
    return np.where(top > NEVER, ratio, 0.0)


def _urn_law(m: Array, k: Array, counts: Array, mass: Array, size: int) -> tuple[Array, Array]:
    """Return P(K < k) and P(K = k) of m draws from an urn with ``counts`` ones of chance ``mass``.

    Rows are in ascending order of m, then k.  One tail is computed where a run of near k's begins; from there on,
    probabilities are added up, which is faster.
    """
    at = np.clip(k, 0, m)
    starts = np.append(True, (np.diff(m) != 0) | (np.diff(at) > _GAP))
    first = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    lengths = at[np.append(first[1:], len(at)) - 1] - at[first] + 1
    begin = np.cumsum(lengths) - lengths
    every_k = np.arange(lengths.sum()) - np.repeat(begin - at[first], lengths)
    every_m = np.repeat(m[first], lengths)
    exactly, tails = np.empty(len(every_k)), np.empty(len(first))
    for part in _parts(len(every_k), len(counts)):
        logs = log_binomial(every_k[part, None], every_m[part, None], counts / size)
        exactly[part] = np.exp(logs) @ mass
    for part in _parts(len(first), len(counts)):
        heads = first[part]
        tails[part] = below_binomial(at[heads, None], m[heads, None], counts / size) @ mass
    added = np.cumsum(exactly) - exactly
    row = begin[run] + at - at[first][run]
    return tails[run] + added[row] - added[begin[run]], np.where(at == k, exactly[row], 0.0)


def _thinned(window: Window, known: int, size: int, m: int, steps: float) -> tuple[Array, Array]:
    """Return numbers of ones in the urn and their chances: every h-th only, as sums over bells need few terms.

    ``steps``: how many a standard deviation, of the narrower of the window and what m draws tell of the number.

    *Source:* Poisson summation: for a bell of deviation s the error is about exp(-2 (pi s/h)^2), 1e-19 at 1.5.
    """
    share = min(1 - 0.5 / size, max(0.5 / size, (window.mean + known) / size))
    of_draws = share * (1 - share) * size * size / max(m, 1)
    spread = math.sqrt(1 / (1 / max(window.variance, 1e-9) + 1 / of_draws))
    step = max(1, math.floor(spread / steps))
    mass = window.mass[::step]
    mask = mass > CUT
    counts = window.low + known + np.arange(0, len(window.mass), step, dtype=np.float64)
    return counts[mask], mass[mask] * step


def _occupied(balls: int, wanted: int, cells: int) -> Array:
    """Return the law of how many of ``wanted`` cells, among ``cells``, get one of ``balls``."""
    law = np.zeros(min(balls, wanted) + 1)
    law[0] = 1.0
    free = (wanted - np.arange(len(law))) / cells
    for _ in range(balls):
        law = law * (1 - free) + np.concatenate([[0.0], (law * free)[:-1]])
    return law


def _chosen(users: int, marked: int, taken: int) -> Array:
    """Return the law of how many marked ones are among ``taken`` of ``users``: hypergeometric."""
    if taken > users:
        return np.zeros(1)
    ways = [math.comb(marked, i) * math.comb(users - marked, taken - i) for i in range(taken + 1)]
    return np.array([way / math.comb(users, taken) for way in ways])


def _by(rows: Array, keys: list[Array]) -> list[Array]:
    """Return ``rows`` cut into those of equal keys."""
    first, kind = groups(keys)
    order = np.argsort(kind, kind="stable")
    return (
        np.split(rows[order], np.cumsum(np.bincount(kind, minlength=len(first)))[:-1]) if len(first) else []
    )


def _parts(rows: int, width: int) -> list[slice]:
    step = max(1, _CELLS // max(1, width))
    return [slice(start, start + step) for start in range(0, rows, step)]

"""Double randomized response: what the released features and the released label tell of the label.

Three neighbourhoods, by where features come from.  Public ones are the same whatever the label (Definition 4.2), and
the released features then tell nothing.  Drawn ones change with the label, by a law that is given (Definition 4.3).  Of
features whose law is unknown nothing is promised.

*Source:* ``docs/laws.md``, "Released features".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.common_statistics import chance_ratio, said_by_victim
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages
from p2p_sim.privacy.auditing.statistic import Blind, Statistic, WorldCounts, in_table
from p2p_sim.privacy.bounds import Bound, Renyi, release2023
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Atoms
from p2p_sim.privacy.mechanism_parts.label_reports import check_prior_rows, of_senders, readable
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.mechanism_parts.uniform_labels import answered, budget, lying, response
from p2p_sim.privacy.mechanisms.double_response.feature_table import Table, joint, perfect, places
from p2p_sim.privacy.mechanisms.double_response.undone_noise import noise
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from p2p_sim.privacy.theorems import Promise, local, nothing, promise
from protocols import DoubleResponse
from protocols.double_response import FEATURES, PUBLIC, UNKNOWN

Array = npt.NDArray[np.float64]

MOST_ATOMS = 10_000_000
"""Outcomes of all pairs of labels up to which they are listed."""

STATIC = "features are public, and neighbours have the same ones: what true features tell of a label is not counted"
DRAWN = "features are drawn given the label by the law that truth gives, anew in every run"
MODEL = "the generator was made without the users' labels"


def law(protocol: DoubleResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns, of features that are public or drawn by a known law; refused for others."""
    uniform = response(protocol.lam, protocol.labels)
    if protocol.lam == 1:
        return read_by(setting, uniform, "every label and all features are replaced", MODEL)
    if protocol.truth == PUBLIC:
        source = "Release 2023, Mechanism 2, Definition 4.2; closed form"
        return read_by(setting, uniform, source, STATIC, MODEL)
    found, basis, source = drawn(protocol)
    if found is not None:
        return read_by(setting, found, source, DRAWN, MODEL, basis=basis)
    if reads(setting.view, "encrypted" if setting.encrypted else "plain"):
        why = f"{type(protocol).__name__} with truth = {protocol.truth!r}: {source}"
        return PrivacyProfile.refused(setting.text, why)
    return read_by(setting, uniform, BLIND)


def drawn(protocol: DoubleResponse) -> tuple[Law | None, str, str]:
    """Return the law where features change with the label, its basis and source; None and why if it is not known."""
    if protocol.truth == UNKNOWN:
        return None, "refused", UNPROMISED
    table = joint(protocol)
    if table is None:
        if perfect(protocol):
            source = "Release 2023, Mechanism 2, of a perfect generator"
            return twice(protocol.lam, protocol.labels), "upper", source
        return None, "refused", ENDLESS
    atoms = len(table.rows) * min(protocol.labels, 3) * math.comb(protocol.labels, 2)
    if atoms > MOST_ATOMS:
        why = f"{atoms:,} outcomes of all pairs of labels, more than {MOST_ATOMS:,}: give smaller tables"
        return None, "refused", why
    return (
        pairs(table, protocol.lam),
        "exact",
        "Release 2023, Mechanism 2, Definition 4.3; its outcomes, listed",
    )


UNPROMISED = (
    "how features depend on the label is not known, so that nothing is promised; give what draws them as truth, or "
    '"public" if everybody knows them'
)
ENDLESS = "such features have too many values; give tables as generator and truth, or the same for both"


def pairs(table: Table, lam: float) -> Atoms:
    """Return the worst of all pairs of labels; released are features and either label or another one.

    Given the true label, the released features and label are independent.
    """
    shown, k = table.shown, len(table.chances)
    lie = Fraction(lam) / k
    said = np.array([float(part) for part in (1 - (k - 1) * lie, lie, (k - 2) * lie)][: 2 + (k > 2)])
    turned = said[[1, 0, *range(2, len(said))]]
    which = list(itertools.combinations(range(k), 2))
    p = np.stack([np.outer(shown[a], said).ravel() for a, _ in which])
    q = np.stack([np.outer(shown[b], turned).ravel() for _, b in which])
    return Atoms(p, q)


def twice(lam: float, labels: int) -> Atoms:
    """Return the law of two independent uniform responses, from which features of a perfect generator can be made.

    Features are drawn for the label that the second response says.
    """
    lie = Fraction(lam) / labels
    said = [1 - (labels - 1) * lie, lie, (labels - 2) * lie]
    turned = [said[1], said[0], said[2]]
    sides = ([a * b for a in side for b in side] for side in (said, turned))
    return Atoms.of(*sides)


@dataclass(frozen=True, eq=False)
class Released(Statistic):
    """The victim's report as the number of its features among those that can be seen, times k, plus the label.

    ``pair``: the two labels of the victim that are compared.
    """

    table: Table
    lam: float
    pair: tuple[int, int] = (0, 1)
    coordinates = ("report",)

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the victim's report; ``NONE``, ``SEVERAL`` or ``OTHER`` where there is not just one that can be."""

        def number(reports: SeenMessages, rows: Array) -> Array:
            features = places(self.table.rows, reports.fields["x"][rows])
            label = reports.fields["y"][rows].astype(np.int64)
            return np.where(features < 0, OTHER, features * len(self.table.chances) + label)

        return {"report": said_by_victim(seen, "report", "y", number, NONE, SEVERAL)}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels; None for one that the law lacks."""
        return replace(self, pair=labels) if max(labels) < len(self.table.chances) else None

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratio of the report's chances; 0 where there is none, or it never comes."""
        first, second = (in_table(self.few(label), rows["report"])[1] for label in self.pair)
        return chance_ratio(first, second)

    def few(self, label: int) -> Array:
        """Return the law of reports."""
        k = len(self.table.chances)
        lie = Fraction(self.lam) / k
        said = np.full(k, float(lie))
        said[label] = float(1 - (k - 1) * lie)
        shown = np.array([float(chance) for chance in self.table.chances[label]])
        return np.asarray(np.outer(shown, said).ravel())

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the report."""
        below, mass = in_table(self.few(label), rows["report"])
        return below[:, None], mass[:, None]


NONE, SEVERAL, OTHER = -1, -2, -3
"""Stand for no report of the victim, for more than one, and for features that cannot be."""


def statistic(
    protocol: DoubleResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic | None:
    """Return the victim's report, for a view that reads it; None where its law is not listed."""
    if not reads(coalition, channels):
        return Blind()
    if protocol.truth == PUBLIC:
        return answered(protocol.lam, protocol.labels)
    table = None if protocol.truth == UNKNOWN else joint(protocol)
    return None if table is None else Released(table, protocol.lam)


ORDERS = tuple(1 + 10 ** (power / 10) for power in range(-20, 41))
"""Orders of divergences of which the best is taken, from 1.01 to 10,001."""


def theorems(protocol: DoubleResponse, _view: str, _sizes: Sequence[int], delta: float) -> list[Promise]:
    """Return the paper's bounds, printed and sharpened, of the order at which each is best."""
    if protocol.truth == PUBLIC:
        return [local(budget(protocol.lam, protocol.labels), "Release 2023, Corollary E.2")]
    gaps = divergences(protocol)
    forms: dict[str, Callable[..., Renyi]] = {
        "Theorem 7.1": release2023.theorem7_1_printed, "Theorem 7.1, sharpened": release2023.theorem7_1_sharper,
    }  # fmt: skip
    if gaps is None:
        return [
            nothing(name, "how far the generator is from the truth is not known", delta) for name in forms
        ]
    found = []
    for name, theorem in forms.items():
        every = (
            theorem(order, protocol.lam, protocol.labels, gap)
            for order, gap in zip(ORDERS, gaps, strict=True)
        )
        best: Bound = min((release2023.approximate(each, delta) for each in every), key=lambda b: b.epsilon)
        found.append(promise(name, best))
    return found


def divergences(protocol: DoubleResponse) -> list[float] | None:
    """Return the largest D(P_{X|y} || generated) of a label, for each of ``ORDERS``; None if it is not known."""
    if protocol.truth == UNKNOWN:
        return None
    if perfect(protocol):
        return [0.0] * len(ORDERS)
    table = joint(protocol)
    if table is None:
        return None
    sides = list(zip(table.true, table.made, strict=True))
    return [max(release2023.renyi_divergence(p, q, order) for p, q in sides) for order in ORDERS]


def local_epsilon(protocol: DoubleResponse) -> float | None:
    """Return what a user's report costs at most; None if that is not known."""
    if protocol.truth == PUBLIC:
        return budget(protocol.lam, protocol.labels)
    found, _, _ = drawn(protocol)
    return None if found is None else found.pure()


def attack(protocol: DoubleResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each report that the view reads, features and label, says of its sender's label.

    Given the true label both are independent.  Public features say nothing that ``eta`` does not.  "lower" where
    features are drawn by a law that is known only as a density, or not at all: then they are not looked at.
    """
    check_prior_rows(view, eta, protocol.labels)
    reports = readable(view, "report")
    said = channel(protocol.labels, float(lying(protocol.lam, protocol.labels)))
    chances, basis = said.T[reports["y"].astype(np.int64)], _basis(protocol) if len(reports["y"]) else "exact"
    if protocol.truth not in (PUBLIC, UNKNOWN):
        chances = chances * _of_features(protocol, reports["x"].reshape(-1, protocol.width))
    with np.errstate(divide="ignore"):
        return of_senders(view, reports["sender"], np.log(chances), "Release 2023, Mechanism 2", basis)


def _basis(protocol: DoubleResponse) -> Literal["exact", "lower"]:
    """Return whether all that features say is known exactly."""
    if protocol.truth == PUBLIC or protocol.lam == 1:
        return "exact"
    return "lower" if protocol.truth == UNKNOWN or joint(protocol) is None else "exact"


def _of_features(protocol: DoubleResponse, x: Array) -> Array:
    """Return how likely released features ``x`` (m, width) are given each label, (m, k), up to a factor of each row."""
    table = joint(protocol)
    if table is not None:
        return table.shown.T[places(table.rows, FEATURES.encoded(x, "features"))]
    density = protocol.model().likelihood(x) if perfect(protocol) else None
    if density is None:
        return np.ones((len(x), protocol.labels))
    return np.asarray((1 - protocol.lam) * density + protocol.lam * density.mean(axis=1, keepdims=True))


register(
    DoubleResponse,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
        others_matter=False,
    ),
)

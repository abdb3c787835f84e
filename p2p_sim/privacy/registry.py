"""The registry of accounting: one registration for each protocol class, open to everybody.

A mechanism is known by what its room registers, those of this package (``privacy.mechanisms``) like anybody's own.
What is registered is asked for in ``privacy.registered``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.argument_checks import check_labels, check_range, check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.label_kinds import LABEL_KINDS
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.label_matrices import Evidence, LabelMatrices
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting
from p2p_sim.privacy.theorems import Promise

if TYPE_CHECKING:
    from p2p_sim.observed_view import View
    from p2p_sim.privacy.auditing.own_attack import AttackStatistic
    from p2p_sim.privacy.auditing.statistic import Statistic
    from p2p_sim.privacy.label_likelihoods import LabelLikelihoods

P = TypeVar("P", bound=Protocol)

LawOf = Callable[[P, Setting], PrivacyProfile]
"""What answers a question: a profile with a law, or one that is refused."""


WHOSE = ("sender", "cluster", "everybody", "neighbours", "walk")
"""Whose label a released one may be."""


@dataclass(frozen=True)
class LabelNoise:
    """How the labels that a learner gets came about, as far as a model trained on them should know.

    ``lie``: probability that a label is replaced by one of the ``labels`` - 1 others, uniformly.  ``whose``: it is that
    of its "sender", or of a random user of the sender's or the label's "cluster", or of "everybody", or of a random
    one of the sender's "neighbours", or, after a "walk" of ``steps`` over the graph that ended at the sender, of who
    began it.

    Noise of another form: ``lie`` is 0, and ``matrix`` is the label randomization matrix of all users; or, for the
    labels of known senders, ``reports(columns, people)`` returns what each report says of each label, as ``Evidence``,
    from the columns that the learner returned (``y``, ``sender`` and whatever else) and the users, whose secret labels
    it may not read.  ``LabelMatrices.evidence`` makes one of matrices that differ between users.

    ``reports`` may raise InputError where it cannot say; then no model is corrected, and a note says why.

    ``lie``: from 0 to 1; ``labels``: 2 to 256; ``steps``: at least 0.  Raises InputError for others and for an
    unknown ``whose``, for several forms at once, and for ``reports`` of labels whose senders are not known.
    """

    lie: Fraction
    labels: int = 2
    whose: str = "sender"
    steps: int = 1
    matrix: LabelMatrices | None = None
    reports: Callable[[Mapping[str, npt.NDArray[Any]], Population], Evidence] | None = None

    def __post_init__(self) -> None:
        check_range("lie", self.lie, 0, 1)
        check_labels("labels", self.labels)
        check_whole("steps", self.steps, 0)
        if self.whose not in WHOSE:
            raise InputError(
                f"whose = {self.whose!r}: must be one of {', '.join(WHOSE)}{near(str(self.whose), WHOSE)}"
            )
        if bool(self.lie) + (self.matrix is not None) + (self.reports is not None) > 1:
            raise InputError(
                f"lie = {self.lie}, matrix and reports each say how labels are randomized: give one of them, and "
                "lie = 0 with the others"
            )
        if self.reports is not None and self.whose != "sender":
            raise InputError(
                f'whose = {self.whose!r}: reports say something of the labels of their senders; give "sender", or a '
                "matrix"
            )
        if self.matrix is not None and self.matrix.labels != self.labels:
            raise InputError(f"labels = {self.labels}: the matrix has {self.matrix.labels}; give the same")
        if self.matrix is not None and self.matrix.group is not None:
            raise InputError("matrix: one of all users, without group; give reports for matrices that differ")

    @property
    def randomizes(self) -> bool:
        """Whether a label may be released as another one."""
        return bool(self.lie) or self.matrix is not None or self.reports is not None


@dataclass(frozen=True)
class Accounting(Generic[P]):
    """What is known of the privacy of one protocol class; what is left out is not known, and refused where asked for.

    All entries are functions, except for ``others_matter``, ``servers_may_deviate`` and ``labels``.  They are called
    with the protocol, of exactly the registered class, whose parameters its class has checked.  Figures of epsilon are
    in nats.

    ``law(protocol, setting)``: returns what a view learns of one label, as a ``PrivacyProfile``, refused where it does
    not know.  ``setting``: who looks, and at what; its parts are roles of the protocol, and its size, if there is one,
    is at least 1; whether the cluster has room for the colluders is the law's to check (``privacy.fits``).

    ``under_faults(law, protocol, setting, faults)``: the same where messages or users may be missing or wrong; ``law``
    is the one above.  ``faults``: checked against the protocol, and never empty.

    ``theorems(protocol, view, sizes, delta)``: returns what theorems promise of a view that can read something.
    ``view``: its name; ``sizes``: the distinct sizes of clusters, ascending, empty if unknown; of several the weakest
    promise counts.

    ``statistic(protocol, coalition, size, composition, channels)``: returns what an audit counts, with its exact law
    in worlds of ``size`` users, of whose honest others ``composition`` have label 1; or an attack without a law, a
    function from ``privacy.Seen`` to a number for each world; None where there is neither.

    ``local_epsilon(protocol)``: returns epsilon of what a user does to her own label, which protects her from
    everybody; None if nothing does.

    ``noise(protocol)``: returns how the labels came about that the learner returns as ``y``, for a model that corrects
    for it; None if they did not come about like that.

    ``smallest_is_worst(protocol, view, faulty)``: returns whether it is proven that a view learns most in the smallest
    cluster that has room for it, so that the others need not be looked at.  ``faulty``: under faults.

    ``among_clusters(protocol)``: returns the same protocol within clusters: one that mixes everybody shows the same
    with everybody in one cluster; one on a graph, where all users of a part are neighbours.

    ``reports_of_victim(protocol, graph)``: returns how likely a report of each user is of user 0's label, shape
    (users,), for the classifier of an audit; ``graph``: that joins the users of a world.

    ``unaudited(protocol, coalition, channels)``: returns why small worlds do not show what a view sees, so that audits
    refuse it; empty where they do.

    ``others_matter``: whether what a view learns of a user depends on other users than colluders at all; if not,
    audits of a run need no more of them.

    ``group(protocol, setting, members)``: returns the exact profile where the labels of up to ``members`` users of one
    cluster, at least 2, change together, at the worst composition; None where it does not know, and then the figure is
    a bound from that of one label.  ``setting``: as for ``law``.

    ``attack(protocol, view, eta)``: returns what the messages of a view of a run say of each user's label
    (``LabelLikelihoods``), to an attacker to whom the labels are independent with P(y_i = c) = ``eta[i, c]``, one row a
    user in the population's order; the rows of the view's own users are certain.  Raises InputError, naming what is
    missing, where the view lacks what it needs.

    ``opened(protocol, coalition, people)``: returns P(outcome | label), a row a label, of all that servers of the view
    who deviate, with its users, read that depends on the label of a victim: of any, and of nobody else; None where they
    read more than that, or not of everybody.

    ``servers_may_deviate``: whether ``law`` answers for servers of the view that do as they like
    (``Setting.servers_deviate``); if not, such a question is refused.

    ``labels``: which kinds of labels the protocol is for, of "binary", "k" and "numeric"; None: read off the class, as
    ``accepted_labels.taken_by`` says.
    """

    law: LawOf[P] | None = None
    under_faults: Callable[[LawOf[P], P, Setting, Faults], PrivacyProfile] | None = None
    theorems: Callable[[P, str, Sequence[int], float], list[Promise]] | None = None
    statistic: Callable[[P, Coalition, int, int, str], Statistic | AttackStatistic | None] | None = None
    local_epsilon: Callable[[P], float | None] | None = None
    noise: Callable[[P], LabelNoise | None] | None = None
    smallest_is_worst: Callable[[P, Coalition, bool], bool] | None = None
    among_clusters: Callable[[P], Protocol] | None = None
    reports_of_victim: Callable[[P, Members], npt.NDArray[np.float64]] | None = None
    group: Callable[[P, Setting, int], PrivacyProfile | None] | None = None
    attack: Callable[[P, View, npt.NDArray[np.float64]], LabelLikelihoods] | None = None
    opened: Callable[[P, Coalition, Population], npt.NDArray[np.float64] | None] | None = None
    unaudited: Callable[[P, Coalition, str], str] | None = None
    others_matter: bool = True
    servers_may_deviate: bool = False
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None and not (self.labels and set(self.labels) <= {*LABEL_KINDS}):
            raise InputError(
                f"labels = {self.labels!r}: must be some of {', '.join(LABEL_KINDS)}, in a tuple"
            )
        for name in (each.name for each in fields(self) if each.type != "bool" and each.name != "labels"):
            entry = vars(self)[name]
            if entry is not None and not callable(entry):
                raise InputError(f"{name} = {entry!r}: must be a function of the protocol, or left out")


REGISTERED: dict[type[Protocol], object] = {}
"""What is registered so far; ``registered`` asks it."""


def register(kind: type[P], accounting: Accounting[P]) -> None:
    """Say what is known of the privacy of a protocol class, once, where the class or its law is defined.

    Raises InputError for what is no protocol class, and for a class that is registered already.
    """
    given: object = kind
    if isinstance(given, Protocol):
        name = type(given).__name__
        raise InputError(f"register({name}(...), ...): give the class, {name}, not one with its parameters")
    if not isinstance(given, type) or not issubclass(given, Protocol) or given is Protocol:
        raise InputError(
            f"register({given!r}, ...): give a class derived from p2p_sim.core.Protocol, such as PeerToPeer"
        )
    if not isinstance(accounting, Accounting):
        raise InputError(
            f"register({kind.__name__}, {accounting!r}): give privacy.Accounting(law=...) as the second"
        )
    if kind in REGISTERED or _left_to_its_room(kind):
        raise InputError(
            f"register({kind.__name__}, ...): {kind.__module__}.{kind.__name__} is registered already; register a "
            "class once, or derive a class of your own from it and register that"
        )
    REGISTERED[kind] = accounting


def _left_to_its_room(kind: type[Protocol]) -> bool:
    """Whether a protocol is a shipped one, whose room registers it, and is not doing so now."""
    package, _, file = kind.__module__.rpartition(".")
    return package == "protocols" and f"{__package__}.mechanisms.{file}" not in sys.modules

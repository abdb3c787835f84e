"""``audit``: measures a lower bound on what one view learns and compares it with the claims."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2p_sim import backends, result_picture
from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED
from p2p_sim.privacy.accountant import profile
from p2p_sim.privacy.auditing import confidence_bounds, worlds
from p2p_sim.privacy.auditing.arguments import (
    alike,
    check,
    check_enough,
    check_models,
    coalition_of,
    given_composition,
    given_point,
    given_public,
    why_unaudited,
    world_size,
)
from p2p_sim.privacy.auditing.claims import (
    CONSISTENT,
    EXACT,
    INCONCLUSIVE,
    VIOLATED,
    Claim,
    check_given,
    claims_of,
    judged,
)
from p2p_sim.privacy.auditing.confidence_bounds import probability
from p2p_sim.privacy.auditing.law_test import LawTest
from p2p_sim.privacy.auditing.looks import Look, Looked, Search
from p2p_sim.privacy.auditing.measure import Measured, Point
from p2p_sim.privacy.auditing.own_attack import AttackStatistic
from p2p_sim.privacy.auditing.pairs import Pairs, choose, given_pair
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.auditing.worlds import Situation, users_a_batch
from p2p_sim.privacy.auditing.worlds_of_run import world_of
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registered import known
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.result_summary import Rows, Summary, counted, down
from p2p_sim.run import Run


def statistic_of(
    protocol: Protocol, coalition: Coalition, *, size: int, composition: int, channels: str = "plain"
) -> Statistic | AttackStatistic | None:
    """Return what is registered for audits of a view: a statistic with its exact law, an attack, or None.

    ``coalition``: its users are ``size`` - 1 at most, and never the victim.  ``size``: users of a world.
    ``composition``: honest others with label 1.  ``channels``: "plain" or "encrypted", towards the wire.
    """
    found = known(protocol).statistic
    return None if found is None else found(protocol, coalition, size, composition, channels)


@dataclass(frozen=True)
class Audit(Summary):
    """What was measured of one view.

    ``kind``: "delta" if ε was measured at δ = ``at``, "epsilon" if δ at ε = ``at``.  ``lower``: with probability
    ``confidence``, at least this; ``cap``: the most that so many ``trials`` of each label could show.  ``claims``: each
    with its verdict.  ``points``: δ at several ε, where δ is too small to be measured itself.  ``law``: whether the
    worlds follow the exact law, None where there is no law.  ``verdict``: "violated", "consistent" or "inconclusive";
    ``why``: in words; ``needed``: trials that would decide, None if that is not known.  ``true_positive``,
    ``false_positive``: shares of the worlds with the label and without it in which the event behind ``lower`` was seen.
    ``assumes``: in sentences, what was taken for granted beside what ``audit`` says.  ``looks``: what each statistic
    measured of each pair of labels; ``lower``, ``statistic``, ``trials`` and the shares are those of the largest bound,
    ``cap`` is the largest.  ``not_varied``: in sentences, what was equal in all worlds; of other values of it the bound
    says nothing.
    """

    protocol: str
    view: str
    cluster_size: int
    composition: int
    channels: str
    kind: str
    at: float
    lower: float
    cap: float
    trials: int
    confidence: float
    statistic: str
    claims: tuple[Claim, ...]
    points: tuple[Point, ...]
    law: LawTest | None
    verdict: str
    why: str
    needed: int | None
    true_positive: float
    false_positive: float
    assumes: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()
    not_varied: tuple[str, ...] = ()

    def __repr__(self) -> str:
        figure = f"{self._bound()} at {self.kind} = {self.at:g}"
        return f"<Audit of {self.protocol}, {self.view}: {self.verdict}, {figure}, {self.trials:,} trials>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the audit and notebooks show."""
        at = f"at {'δ' if self.kind == 'delta' else 'ε'} = {self.at:g}"
        claims = [
            f"{each.name}: {each.epsilon if self.kind == 'delta' else each.delta:.4g} ({each.verdict})"
            for each in self.claims
            if each.holds
        ]
        worlds = f"of {counted(self.cluster_size, 'user')}, {self.composition:,} others with the label"
        rows = [
            ("verdict", f"{self.verdict}: {self.why}"),
            ("measured", f"{self._bound()} {at}, with confidence {100 * self.confidence:.5g} %"),
            ("claimed", "; ".join(claims) or "nothing that applies"),
            ("could show", f"at most {down(self.cap)}"),
            ("trials", f"{self.trials:,} a label, in worlds {worlds}, {self.channels} channels"),
            ("statistic", self.statistic),
            ("law test", _tested(self.law)),
            ("not varied", "; ".join(self.not_varied)),
            ("assumes", "; ".join(self.assumes)),
        ]
        return f"Audit of {self.protocol}, view {self.view}", [(name, text) for name, text in rows if text]

    def picture(self) -> str:
        """Return bars: what was measured at least, and as outlines the claims."""
        sign = "ε" if self.kind == "delta" else "δ"
        claims = [
            (each.name, each.epsilon if self.kind == "delta" else each.delta)
            for each in self.claims
            if each.holds
        ]
        rows = [result_picture.Bar("measured at least", self.lower, down(self.lower))]
        rows += [result_picture.Bar(name, value, f"{value:.4g}", marked=True) for name, value in claims]
        return result_picture.bars(f"{sign} of view {self.view}, measured and claimed", rows)

    def _bound(self) -> str:
        return f"{'ε' if self.kind == 'delta' else 'δ'} >= {down(self.lower)}"

    @property
    def exact(self) -> float | None:
        """The figure of the accountant, ε or δ; None where it has no law."""
        found = [claim for claim in self.claims if claim.name == EXACT]
        return (found[0].epsilon if self.kind == "delta" else found[0].delta) if found else None

    @property
    def failed(self) -> bool:
        """Whether a claim is violated, or the worlds do not follow their law."""
        return self.verdict == VIOLATED or (self.law is not None and self.law.rejected)


@showing
def audit(
    protocol: Protocol | Run,
    view: str = "learner",
    *,
    cluster_size: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    trials: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
    backend: str = "local",
    shards: int | None = None,
    address: str | None = None,
    statistic: str | AttackStatistic = "auto",
    composition: str | int = "worst",
    channels: str = "plain",
    against: Protocol | PrivacyProfile | None = None,
    claims: Mapping[str, float] | None = None,
    false_alarm: float = 1e-6,
    progress: Asked = None,
    faults: Faults | Sequence[str] | None = None,
    graph: Any = None,
    crypto: str | None = None,
    public: Mapping[str, Any] | None = None,
    pair: Sequence[int] | str | None = None,
) -> Audit:
    """Run a protocol in many small worlds and measure what a view learns of one label, replaced.

    ``protocol``: with its parameters; or a ``Run``, whose protocol, faults, graph and mode of cryptography are taken
    then, and the cluster in which the fewest hide the victim; ``cluster_size`` may choose another of its sizes.
    ``view``: as in ``profile``; its users are colluders of the victim's cluster.  ``cluster_size``: users a world.
    ``delta`` in [0, 1): a lower bound of ε at δ; or ``epsilon`` >= 0, in nats: of δ at ε.  ``trials``: worlds a label,
    enough to show anything.  ``confidence`` in (0, 1): of the bound.  ``statistic``: "exact" (likelihood ratio of the
    law: sees what the law speaks of, and no leak beside it), "classifier" (learned on half of the worlds, counted on
    the other: of everything that the view shows), "auto" (where there is a law of these messages the first with 4/5 of
    the error, and the second, on up to 10,000 further worlds a label and learned quickly, with the rest; elsewhere the
    second, beside an attack that is registered, if one is); or an attack of one's own, a function of what is seen
    (``privacy.Seen``) that returns a number for each world, which must follow from that world alone, with all of the
    error: half of the worlds choose what is counted on the others.
    ``pair``: two labels of the victim; "all" pairs of labels; None for all if they are at most 3, else the 3 that show
    most in a pilot with worlds of its own.  The error is shared over the pairs.
    ``composition``: how many of the other honest users have the second label of the pair; "worst": as bad as the law
    says, and without a law the worst of none, half and all in a pilot, which need not be the worst of all.
    ``against``: the protocol, or the profile, that is claimed to describe this one; by default itself.
    ``claims``: names to further figures (ε at δ, or δ at ε).  ``false_alarm``: of the test of the law.  ``backend``,
    ``shards``, ``address``, ``faults``, ``crypto``, ``progress``: as in ``run``; under faults the statistic is a
    classifier.
    ``graph``: what joins the users of each world, the victim being the first: "regular:4", edges, and what else
    ``topologies.graph_of`` takes; drawn by ``seed``.  ``public``: what programs read as ``me.public``, columns by name
    with a row for each user of a world: the victim, then the colluders, then the others, of whom the first have label
    1; a run has its own.  Raises InputError for arguments out of range, for those that contradict a run, and for a
    public column that a program reads and worlds do not have.

    *Source:* docs/laws.md#audits; Clopper and Pearson 1934; Jagielski et al. 2020.  Events are fixed before the worlds
    that are counted, and the error is shared over both directions, all events, and the two bounds of each.
    *Assumes:* colluders follow the protocol; worlds share nothing but servers; public columns are the same whatever the
    victim's label is.
    """
    about = ""
    if isinstance(protocol, Run):
        world = world_of(protocol, view, cluster_size)
        world.check(faults=Faults.of(faults), graph=graph, crypto=crypto, public=public)
        protocol, cluster_size, about = world.protocol, world.cluster_size, world.description
        faults, graph, crypto, public = world.faults, world.graph, world.crypto, world.public or public
    kind, at = given_point(epsilon, delta)
    check(trials, confidence, seed, statistic, channels)
    check_enough(
        trials, confidence, learning=statistic == "classifier" or callable(statistic)
    )  # before a law is computed
    probability("false_alarm", false_alarm)
    check_given({} if claims is None else claims, kind)
    check_models(protocol, against)
    wanted = given_pair(pair, protocol.label_count())
    wrong = Faults.of(faults)
    settings = backends.Settings(
        backend, None, shards, address, digest=False, faults=wrong, crypto=crypto or MODELLED
    )
    size = world_size(cluster_size)
    columns = given_public(public, size)
    coalition = coalition_of(view, protocol, size)
    if why := why_unaudited(protocol, coalition, channels):
        raise InputError(f"view = {view!r}: {why}")
    honest = size - 1 - coalition.user_count
    joined = worlds.world(protocol, graph, size, seed)
    asked = given_composition(composition, honest)
    model = _Model.of(
        protocol if against is None else against, view, cluster_size, size, joined, channels, wrong, asked
    )
    chosen = model.composition(kind, at)
    ones = honest // 2 if chosen is None else chosen
    edges = None if joined is None else joined.graph
    situation = Situation(protocol, coalition, size, ones, channels, edges, columns)
    exact = model.statistic(situation, statistic)
    attack = None if exact is not None else model.attack(situation, statistic)
    check_enough(trials, confidence, learning=exact is None)
    search = Search(
        situation, statistic, exact, attack, chosen, honest, functools.cache(model.law_at), (kind, at), trials, seed,
        false_alarm, settings, reporter_of(progress) or (lambda _label, _done, _total: None),
    )  # fmt: skip
    with backends.opened(settings, users_a_batch(protocol, size, trials, columns)):
        pairs = choose(wanted, situation, (kind, at), trials, seed, settings, search.progress)
        looked, tested = search.all(pairs, confidence)
    if exact is not None and model.protocol is not None:
        tested = _more_labels(protocol, model.protocol, false_alarm) or tested
    best = max(looked, key=lambda each: each.look.lower)  # of equal ones the first
    found = replace(best.found, cap=max(each.look.cap for each in looked), points=_curve(looked).found.points)
    claimed = model.judged(looked, found, (kind, at), claims or {})
    verdict, why = _verdict(claimed, found, kind)
    if len(pairs.looked_at) > 1 and verdict == VIOLATED:
        shown = best if any(claim.verdict == VIOLATED for claim in claimed) else _curve(looked)
        why += f" (labels {shown.look.labels[0]} and {shown.look.labels[1]})"
    return Audit(
        type(protocol).__name__, view, size, best.composition, channels, kind, at, found.lower, found.cap,
        best.look.trials, confidence, best.look.statistic, claimed, found.points, tested, verdict, why,
        _needed(claimed, looked[0], kind, at) if verdict == INCONCLUSIVE else None,
        found.true_positive, found.false_positive, _assumes(protocol, columns), tuple(each.look for each in looked),
        _not_varied(
            pairs, size, honest, best.composition, _how(best, chosen, asked), graph=joined is not None, run=about,
            alone="" if any(each.look.statistic.startswith("classifier") for each in looked)
            else "own attack" if exact is None else "exact statistic",
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class _Model:
    """What is claimed to describe the messages, with what the accountant says of the view.

    ``protocol``: whose law and theorems are the claims; None for a bare profile, and under faults.  ``size``: users of
    a world.  ``options``: of ``profile``, without the composition.  ``asked``: "worst", or how many honest others have
    label 1.
    """

    protocol: Protocol | None
    profile: PrivacyProfile
    view: str
    size: int
    options: Mapping[str, Any]
    asked: str | int

    @classmethod
    def of(
        cls,
        given: Protocol | PrivacyProfile,
        view: str,
        cluster_size: int | None,
        size: int,
        joined: Population | None,
        channels: str,
        faults: Faults | None,
        asked: str | int,
    ) -> _Model:
        """Account for a protocol in a world's cluster, or in the graph that joins its users."""
        options: dict[str, Any] = {"channels": channels}
        options |= {"cluster_size": cluster_size} if joined is None else {"population": joined}
        if isinstance(given, PrivacyProfile):
            return cls(None, given, view, size, options, asked)
        found = profile(given, view, composition=asked, faults=faults, **options)
        return cls(given if faults is None else None, found, view, size, options, asked)

    def composition(self, kind: str, at: float) -> int | None:
        """Return how many honest others have label 1; None where the worst is asked for and no law tells it."""
        if self.asked != "worst":
            return int(self.asked)
        law = self.profile.law
        if law is None or law.pure() == 0:
            return None
        if "population" in self.options and self.profile.basis != "exact":
            return None  # a bound over all labels knows of no worst
        where = self.profile.epsilon(at if at > 0 else 1e-12) if kind == "delta" else at
        found = law.at_worst(where) if math.isfinite(where) else law
        return found.composition

    def statistic(self, situation: Situation, asked: str | AttackStatistic) -> Statistic | None:
        """Return the statistic of the exact law; None without one.  Raises InputError where that one was asked for."""
        found, model = None, self.protocol
        if model is not None and self.profile.law is not None and alike(situation.protocol, model):
            ones, channels = situation.composition, situation.channels
            if asked in ("auto", "exact"):
                known_of = statistic_of(
                    model, situation.coalition, size=self.size, composition=ones, channels=channels
                )
                found = known_of if isinstance(known_of, Statistic) else None
        if asked == "exact" and found is None:
            raise InputError(
                f"statistic = 'exact': no law of view {self.view!r} of these messages is known; give 'auto' or "
                "'classifier'"
            )
        return found

    def attack(self, situation: Situation, asked: str | AttackStatistic) -> AttackStatistic | None:
        """Return the attack that is given, or for "auto" the one registered for what runs, or for the model."""
        if not isinstance(asked, str):
            return asked
        models = [situation.protocol]
        if self.protocol is not None and alike(situation.protocol, self.protocol):
            models.append(self.protocol)
        for model in models if asked == "auto" else []:
            found = statistic_of(
                model, situation.coalition, size=self.size, composition=situation.composition,
                channels=situation.channels,
            )  # fmt: skip
            if found is not None and not isinstance(found, Statistic):
                return found
        return None

    def law_at(self, composition: int) -> Law | None:
        """Return the law where so many honest others have label 1."""
        if self.protocol is None or self.profile.law is None:
            return self.profile.law
        among = {} if "population" in self.options else {"cluster_size": self.size}
        return profile(self.protocol, self.view, **{**self.options, "composition": composition} | among).law

    def judged(
        self,
        looked: list[Looked],
        found: Measured,
        point: tuple[str, float],
        given: Mapping[str, float],
    ) -> tuple[Claim, ...]:
        """Return every claim of the view with its verdict, and the least violation that the looks could have shown."""
        reads = self.profile.law is None or self.profile.law.pure() > 0
        claims = claims_of(self.protocol, self.profile, self.size, reads, point, given)
        return tuple(
            replace(claim, detectable=_detectable(claim, looked, point[0]))
            for claim in judged(claims, point[0], found.lower, found.cap)
        )


def _how(best: Looked, chosen: int | None, asked: str | int) -> str:
    """Return how the labels of the other honest users were chosen, in words."""
    if asked != "worst":
        return "as was asked"
    if best.pilot:
        return "a pilot"
    by_law = chosen is not None and best.look.labels == (0, 1)
    return "the worst by the law" if by_law else "half of them; no law names a worst"


def _more_labels(protocol: Protocol, model: Protocol, false_alarm: float) -> LawTest | None:
    """Return a test that rejects the law of a model which knows fewer labels than the protocol has; else None."""
    if protocol.label_count() <= model.label_count():
        return None
    more = f"labels are 0 to {protocol.label_count() - 1}; the law knows 0 to {model.label_count() - 1}"
    return LawTest(0.0, True, (), more, false_alarm)


def _tested(law: LawTest | None) -> str:
    """Return what the test of a law found, in words."""
    if law is None:
        return ""
    if not law.tested:
        return f"none: {law.why}"
    return f"p = {law.p_value:.2g}, {f'rejected: {law.why}' if law.rejected else 'not rejected'}"


def _not_varied(
    pairs: Pairs, size: int, honest: int, composition: int, how: str, *, graph: bool, run: str, alone: str
) -> tuple[str, ...]:
    """Return what stood still while one label of the victim was replaced; nothing where there was no choice.

    ``honest``: other users who do not look.  ``composition``: how many of them have the second label, and ``how``
    this was chosen.  ``graph``: whether one joins the users.  ``run``: whose worlds they are, empty for none.
    ``alone``: "exact statistic" or "own attack" where it looked and no classifier beside it, else empty.
    """
    found = []
    if len(pairs.looked_at) < pairs.of:
        named = ", ".join(f"{first} and {second}" for first, second in pairs.looked_at)
        chosen = (
            f"chosen by a pilot of all, {pairs.pilot:,} worlds a label" if pairs.pilot else "as was asked"
        )
        found.append(
            f"pairs of labels: {len(pairs.looked_at)} of {pairs.of} were measured ({named}; {chosen})"
        )
    if alone == "own attack":
        found.append("what the own attack does not look at: no classifier looked beside it")
    elif alone:
        found.append(
            "what the law does not speak of: the exact statistic looked alone, as was asked, or since there were too "
            "few trials for a classifier beside it"
        )
    if honest:
        found.append(
            f"labels of the others: {composition} of {honest} honest others had the second label of the pair, the rest "
            f"the first ({how})"
        )
    if graph:
        found.append("the victim's place in the graph: she was user 0, and the colluders those next to her")
    if run:
        found.append(f"the victim and her cluster, of those of the run: {run}")
    elif size > 1:
        found.append(f"the size of the victim's cluster: {size:,} users")
    return tuple(found)


def _curve(looked: list[Looked]) -> Looked:
    """Return the first look with points of the curve, rather one with a violated one; the first if none has any."""
    found = [each for each in looked if each.found.points]
    bad = (each for each in found if any(point.verdict == VIOLATED for point in each.found.points))
    return next(bad, next(iter(found), looked[0]))


def _detectable(claim: Claim, looked: list[Looked], kind: str) -> float | None:
    """Return the least violation of a claim that any look could have shown; None for a claim that does not apply."""
    if not claim.holds:
        return None
    value = claim.epsilon if kind == "delta" else claim.delta
    found = [each.found.detectable(value, each.look.trials) for each in looked]
    return min((each for each in found if each is not None), default=None)


def _assumes(protocol: Protocol, public: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is taken for granted of features and public columns of a world; nothing where there are none."""
    columns = (
        f"public column{'' if len(public) == 1 else 's'} {', '.join(map(repr, public))}" if public else ""
    )
    features = "" if protocol.feature_count() is None else "made-up features"
    if not columns and not features:
        return ()
    what = " and ".join(filter(None, [features, columns]))
    are = "is" if len(public) == 1 and not features else "are"
    return (
        f"{what} of all users of a world {are} known to the view, and the same whatever the victim's label is; "
        "with other values the view may learn more or less",
    )


def _verdict(claims: tuple[Claim, ...], found: Measured, kind: str) -> tuple[str, str]:
    """Return the verdict over all claims and points, and why."""
    name, unit = ("epsilon", " nats") if kind == "delta" else ("delta", "")
    for claim in claims:
        value = claim.epsilon if kind == "delta" else claim.delta
        if claim.verdict == VIOLATED:
            return VIOLATED, f"{name} is at least {found.lower:.6g}{unit}; {claim.name} claims {value:.6g}"
    for point in found.points:
        if point.verdict == VIOLATED:
            where = f"at epsilon = {point.epsilon:.6g}"
            return VIOLATED, f"{where} delta is at least {point.lower:.6g}; exact is {point.exact:.6g}"
    if any(point.verdict == CONSISTENT for point in found.points):
        return CONSISTENT, "delta is too small to be measured; the curve was, at several epsilons"
    main = next((claim for claim in claims if claim.verdict in (CONSISTENT, INCONCLUSIVE)), None)
    if main is None:
        return INCONCLUSIVE, "nothing is claimed of this view; give claims="
    if main.verdict == INCONCLUSIVE:
        return INCONCLUSIVE, f"too few trials to contradict or support {main.name}"
    return CONSISTENT, f"the lower bound is not above what {main.name} claims"


def _needed(claims: tuple[Claim, ...], looked: Looked, kind: str, at: float) -> int | None:
    """Return how many trials should give a lower bound of a good part of the first claim that is undecided."""
    claim = next((claim for claim in claims if claim.verdict == INCONCLUSIVE), None)
    if claim is None:
        return None
    found, confidence = looked.found, looked.look.confidence
    value = claim.epsilon if kind == "delta" else claim.delta
    cap = confidence_bounds.trials_for_epsilon if kind == "delta" else confidence_bounds.trials_for_delta
    least = cap(value, at, found.events, confidence) if math.isfinite(value) else None
    if found.cap <= value:
        return least
    plans = (found.needed(value / part) for part in (2, 10, 100))  # events of the law may not reach half
    return next((trials for trials in plans if trials is not None), None)

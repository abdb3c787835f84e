"""What guarantees allow an attacker with one view: the theorems that apply to its law and its mechanism.

Which apply is read off the view's exact law (``privacy.profile``) and what the mechanism registers of its labels, never
off its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage import intervals, renyi
from p2p_sim.leakage.advantage import ADVANTAGE, ANYBODY, EPSILON, SURE, Expected, by_enumeration
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.leakage.dependence import bags_of, groups_of, likeness
from p2p_sim.leakage.neighbour_search import shares_of
from p2p_sim.learning.training.losses import law_of
from p2p_sim.observed_view import View
from p2p_sim.privacy.accountant import profile
from p2p_sim.privacy.bounds import attacks2023, release2023, unified2023
from p2p_sim.privacy.bounds.bound import Basis, Figure
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registered import label_noise
from p2p_sim.privacy.setting import LEARNER

ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Renyi orders among which the best is taken."""

DEVIATIONS = 4.0
"""Labels whose likeness within groups is above so many standard deviations are not independent given P(y | x)."""

SHOWN = (2.0, 8.0)
"""Orders whose Renyi divergence is shown."""

DELTA = 1e-6
"""At which Renyi divergences are converted to an epsilon."""

ESTIMATED = "P(label | features) is estimated here, and it is of the law by which labels are drawn"

ALIKE = (
    "labels of users whose messages are mixed are more alike than the attacker expects, so messages reveal something "
    "of P(label | features) itself; take an eta that knows more"
)

_EXACT_BAGS = 100_000_000  # labels times bag sizes up to which Theorem 3.3 is computed: some seconds
_ENTRIES = 1 << 22  # of laws that are held at once


@dataclass(frozen=True, eq=False)
class Question:
    """Whose advantage is bounded.  ``victims``: rows of ``people``; ``eta`` (users, k): P(y | x).

    ``exact``: whether labels were drawn by ``eta``; ``alike``: whether that tells no two users apart; ``features``:
    whether the attacker knows any.  ``baseline``: the lower end of the utility of the best guess without messages,
    under 0/1 utility, by an interval that is ``advantage.SURE``: a lower one makes bounds larger, so that they err to
    the safe side.  ``users``: whether those who look deviate, as ``privacy.profile`` takes it.
    """

    protocol: Protocol
    view: View
    people: Population
    victims: npt.NDArray[np.int64]
    eta: Floats
    exact: bool
    alike: bool
    features: bool
    utility: str
    gains: Floats
    baseline: float
    faults: Faults | None
    users: str = "curious"

    @property
    def truth(self) -> npt.NDArray[np.int64]:
        """The labels of the victims."""
        return np.asarray(self.people.y, np.int64)[self.victims]

    @property
    def blind(self) -> bool:
        """Whether the attacker knows nothing that tells users' labels apart.

        Clusters may tell them apart, unless labels were really drawn by one row.
        """
        return not self.features and self.alike and (self.exact or self.people.clusters is None)

    @property
    def learner_alone(self) -> bool:
        """Whether the learner is all that looks, and nothing goes wrong on the way to it."""
        who = self.view.coalition
        alone = who.servers == {LEARNER} and not who.users and not who.wire
        return alone and self.faults is None and self.users == "curious"


def bounds(question: Question) -> tuple[Figure, ...]:
    """Return the bounds of the advantage that apply; where there is no law, one that does not hold and says why.

    *Source:* Attacks 2023, Theorems 2 and 3; Unified 2023, Theorems 3.3 to 3.5, 3.7, 6.4, Lemmas 3.6 and A.1; Release
    2023, Theorem 5.2; as docs/laws.md has them.
    *Assumes:* labels independent of each other given P(y | x); the trust of the view's law.
    """
    try:
        law = _law(question)
    except InputError as error:  # of a view that has no room in the smallest cluster, say
        return (_no_law(str(error)),)
    found = _of_bags(question, None if law.law is None else law)
    if law.law is not None:
        found = [*_of_law(question, law), *_of_response(question), *found, *_of_release(question, law)]
    divergences = _of_divergences(law)
    if _alike(question):
        found = [replace(bound, holds=False, why=ALIKE) for bound in found]
    return (*found, *divergences) if law.law is not None else (_no_law(law.why), *found)


def promise(question: Question, delta: float, sure_delta: float) -> Figure:
    """Return the epsilon at ``delta`` of the view's law, rounded outward: what coins that are guessed are held against.

    Its parameter ``sure`` is that at ``sure_delta``.

    *Source:* the law of the view; a model that is trained on what it saw shows no more.
    """
    at = {"delta": delta}
    try:
        law = _law(question)
    except InputError as error:
        return Figure(
            math.nan, EPSILON, False, str(error), f"the view's law at delta = {delta:g}", "upper", at
        )
    if law.law is None:
        return Figure(math.nan, EPSILON, False, law.why, f"the view's law at delta = {delta:g}", "upper", at)
    source = f"the view's law at delta = {delta:g}; {law.source}"
    basis: Basis = "exact" if law.basis == "exact" else "upper" if law.basis == "upper" else "claimed"
    value, sure = (float(law.epsilon_bracket(each).upper) for each in (delta, sure_delta))
    return Figure(value, EPSILON, True, "", source, basis, at | {"sure": sure})


def _alike(question: Question) -> bool:
    """Whether labels of users whose messages are mixed are alike beyond P(y | x), which no bound allows for."""
    groups = groups_of(question.protocol, question.people)
    if (
        groups is None or question.exact or question.users != "curious"
    ):  # who deviates reads of one label alone
        return False
    who = question.victims
    return likeness(question.truth, question.eta[who], groups[who]) > DEVIATIONS


def channel_of(question: Question) -> Floats | None:
    """Return P(report | label) (k, k) where each user's own report is all that the learner sees of her; None if not.

    *Source:* the noise that the mechanism's room registers (``LabelNoise``).
    *Assumes:* the learner alone looks, and nothing goes wrong on the way.
    """
    noise = label_noise(question.protocol)
    if noise is None or noise.whose != "sender" or noise.reports is not None or not noise.randomizes:
        return None
    if not question.learner_alone:
        return None
    return np.asarray(law_of(noise).T, np.float64)


def enumerated(question: Question) -> Expected | None:
    """Return the exact utilities of the best attack on each victim; None unless P(y | x) and the law are known.

    *Source:* Attacks 2023, section 4, summed over all reports.
    *Assumes:* as ``channel_of``; labels drawn by ``eta``.
    """
    channel = channel_of(question)
    if channel is None or not question.exact or len(channel) != question.eta.shape[1]:
        return None
    return by_enumeration(question.eta[question.victims], channel, question.gains)


def _law(question: Question) -> PrivacyProfile:
    view = question.view
    return profile(
        question.protocol,
        view.name,
        population=question.people,
        channels=view.channels,
        users=question.users,
        faults=question.faults,
    )


def _no_law(why: str) -> Figure:
    source = f"{attacks2023.PAPER}, Theorem 2"
    return Figure(math.nan, ADVANTAGE, False, f"the view has no law: {why}", source, "upper")


def _of_law(question: Question, law: PrivacyProfile) -> list[Figure]:
    """Return Theorem 2, and sharpened, at epsilon = 0: no other (epsilon, delta) of the law is sharper.

    Theorem 2 is proven in docs/laws.md.  It is of canaries too, whose coins have an advantage of delta / 2 at most.
    """
    delta = law.delta_bracket(0.0).upper
    most = question.gains.max(axis=0)
    supremum = intervals.within(
        intervals.of_mean(most[question.truth], SURE, float(most.max())), float(most.min()), float(most.max())
    ).upper
    kept = {"epsilon": 0.0, "delta": delta}
    second = attacks2023.theorem2(0.0, delta, supremum)
    whom = {ANYBODY: 1.0} if supremum >= 0.5 else {}
    found = [replace(second, source=f"{second.source}; {law.source}", basis="upper", parameters=kept | whom)]
    if question.utility == "given":
        return found
    if question.utility == "weighted":
        shares = shares_of(question.people.y, len(question.gains))
        if bool((shares > 0).all()):
            found.append(replace(attacks2023.corollary1_weighted(0.0, delta, shares), parameters=kept))
        return found
    if question.blind and question.people.clusters is None and question.protocol.feature_count() is None:
        third = attacks2023.theorem3(0.0, delta, supremum)
        found.append(
            replace(third, why="features travel nowhere, so that privacy of labels is full", parameters=kept)
        )
    sharper = f"{attacks2023.PAPER}, Theorem 2 sharpened for 0/1 utility"
    value = attacks2023.distance(0.0, delta) * (1 - question.baseline)
    return [*found, Figure(value, ADVANTAGE, True, "", sharper, "upper", kept)]


def _of_response(question: Question) -> list[Figure]:
    """Return the exact advantage against each user's own randomized report: of any law, and of binary flips."""
    channel = channel_of(question)
    if channel is None or question.utility != "0/1":
        return []
    lemma, theorem = (f"{unified2023.PAPER}, {name}" for name in ("Lemma 3.6", "Theorem 3.7"))
    found = enumerated(question)
    if found is None:
        return [_silent(lemma, ESTIMATED), _silent(theorem, ESTIMATED)]
    one = f"{lemma}: as of one user's report, by Theorem 3.3, whatever number of users"
    figures = [Figure(float(found.advantage.mean()), ADVANTAGE, True, "", one, "exact")]
    lie = channel[0, 1]
    if len(channel) != 2 or channel[1, 0] != lie or not 0 < lie <= 0.5:
        return [*figures, _silent(theorem, "it is of two labels that are flipped with one probability")]
    return [
        *figures,
        unified2023.rr_advantage(question.eta[question.victims, 1], math.log1p(-lie) - math.log(lie)),
    ]


def _silent(source: str, why: str) -> Figure:
    """Return a figure of a theorem on this mechanism whose condition fails."""
    return Figure(math.nan, ADVANTAGE, False, why, source, "exact")


def _of_bags(question: Question, law: PrivacyProfile | None) -> list[Figure]:
    """Return what holds of proportions of bags: exact ones (Theorems 3.3 to 3.5), or noisy ones (6.4)."""
    bags = bags_of(question.protocol, question.people)
    if bags is None or question.utility != "0/1" or not question.learner_alone or len(question.gains) != 2:
        return []
    ones = question.eta[question.victims, 1]
    variance = (
        float((ones * (1 - ones)).mean()) if question.exact else float(((ones - question.truth) ** 2).mean())
    )
    epsilon = math.inf if law is None else law.epsilon(0.0)
    if math.isfinite(epsilon):
        return _of_noisy_bags(
            question, epsilon, variance, 1.0 if law is None else law.delta_bracket(0.0).upper
        )
    return _of_exact_bags(question, bags, ones, variance)


def _of_exact_bags(
    question: Question, bags: npt.NDArray[np.int64], ones: Floats, variance: float
) -> list[Figure]:
    """Return Theorems 3.3 to 3.5, and where one does not apply, why; ``variance``: E[eta (1 - eta)], at most."""
    sizes = np.bincount(bags)
    sizes = sizes[sizes > 0]
    smallest, share = int(sizes.min()), float(question.truth.mean())
    third, fourth = (f"{unified2023.PAPER}, Theorem {name}" for name in ("3.3", "3.4"))
    if not question.exact:
        found = [_silent(third, ESTIMATED)]
    elif float((sizes.astype(np.float64) ** 2).sum()) > _EXACT_BAGS:
        found = [_silent(third, "bags are so large that it would take long")]
    else:
        found = [_over_bags(question.eta[:, 1], bags, question.victims)]
    if question.alike and len(question.victims) == len(bags):
        p = float(ones[0]) if question.exact else _nearest_half(question.truth)
        found.append(replace(unified2023.theorem3_4(p, smallest), parameters={"bag_size": smallest}))
        if question.exact and int(sizes.max()) == smallest:
            found.append(unified2023.theorem3_4_exact(p, smallest))
    else:
        found.append(
            _silent(fourth, "it is of labels that features do not tell apart, in bags without canaries")
        )
    mean_size = len(question.victims) / len(np.unique(bags[question.victims]))
    surely = variance if question.exact else intervals.of_mean((ones - question.truth) ** 2, SURE, 1.0).upper
    figure = unified2023.theorem3_5(min(surely, 0.25), mean_size)
    found.append(replace(figure, parameters={"bag_size": mean_size}))
    if smallest >= 2:
        figure = unified2023.lemma_a1(min(variance, 0.25), share, smallest)
        found.append(replace(figure, parameters={"bag_size": smallest}))
    return found


def _nearest_half(truth: npt.NDArray[np.int64]) -> float:
    """Return the share of ones, of all that these labels leave possible, at which counts tell most."""
    low, _, high = intervals.of_share(int(truth.sum()), len(truth), SURE)
    return min(max(0.5, low), high)


def _over_bags(ones: Floats, bags: npt.NDArray[np.int64], victims: npt.NDArray[np.int64]) -> Figure:
    """Return Theorem 3.3 averaged over victims: the exact advantage against the proportions of all bags.

    Bags of one size go together.  Who is no victim, as a canary, is in a bag all the same.
    """
    order = np.argsort(bags, kind="stable")
    by_bag, counts = ones[order], np.isin(order, victims)
    sizes = np.bincount(bags)
    sizes = sizes[sizes > 0]
    starts, gained = np.cumsum(sizes) - sizes, 0.0
    for size in np.unique(sizes).tolist():
        groups = starts[sizes == size]
        for low in range(0, len(groups), step := max(1, _ENTRIES // size**2)):
            members = groups[low : low + step, None] + np.arange(size)
            gained += float(unified2023.llp_gains(by_bag[members])[counts[members]].sum())
    value = max(0.0, gained / len(victims))
    return Figure(value, ADVANTAGE, True, "", f"{unified2023.PAPER}, Theorem 3.3, all bags", "exact")


def _of_noisy_bags(question: Question, epsilon: float, variance: float, distance: float) -> list[Figure]:
    """Return Theorem 6.4; printed, from the variance: of an estimate, its mean squared error, which is no smaller.

    Its sharper form needs noise that hides no worse than Laplace's: a total variation of 1 - e^(-epsilon/2) at most.
    """
    source = f"{unified2023.PAPER}, Theorem 6.4"
    printed = Figure(
        -2 * math.expm1(-epsilon) * variance, ADVANTAGE, True, "", source, "claimed", {"epsilon": epsilon}
    )
    laplace = -math.expm1(-epsilon / 2)
    if distance > laplace * (1 + 1e-9):
        return [printed]
    value = laplace * (1 - question.baseline)
    return [printed, Figure(value, ADVANTAGE, True, "", f"{source} sharpened", "upper", {"epsilon": epsilon})]


def _of_release(question: Question, law: PrivacyProfile) -> list[Figure]:
    """Return Theorem 5.2, of attackers who know of no user more than class shares: the best order, from the divergence
    of the report.

    Where the report is no uniform response, pure epsilon bounds the divergence of every order.
    """
    if not question.blind or question.utility != "0/1":
        return []
    counts = np.bincount(question.truth, minlength=len(question.gains))
    common = intervals.of_share(int(counts.max()), int(counts.sum()), SURE).upper
    channel = channel_of(question)
    noise = label_noise(question.protocol)
    if channel is not None and noise is not None and noise.matrix is None:
        k = len(channel)
        lam = min(1.0, float(noise.lie) * k / (k - 1))
        divergences = [(order, release2023.label_divergence(order, lam, k).epsilon) for order in ORDERS]
    elif math.isfinite(epsilon := law.epsilon(0.0)):
        divergences = [(ORDERS[-1], epsilon)]
    else:
        return []
    found = [release2023.theorem5_2_sharpest(order, at, common) for order, at in divergences]
    return [min(found, key=lambda figure: figure.value)]


def _of_divergences(law: PrivacyProfile) -> list[Figure]:
    """Return Renyi divergences of what the view sees under two labels, and the epsilon that those of all orders give.

    *Source:* Release 2023, Definition 3.1, by the view's law; Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    if law.law is None or law.basis not in ("exact", "upper"):
        return []
    cases = renyi.cases_of(law.law)
    found = {order: renyi.of_cases(law.law, cases, order) for order in (*SHOWN, *ORDERS)}
    known = [each for each in found.values() if each is not None]
    if not known:
        return []
    basis: Basis = "upper" if law.basis == "upper" else known[0].basis
    if all(math.isinf(each.epsilon) for each in known):
        source = f"{known[0].source}; {law.source}"
        return [Figure(math.nan, "Rényi divergence of any order", False, known[0].why, source, basis)]
    shown = [
        Figure(
            each.epsilon,
            f"Rényi divergence of order {order:g}, nats",
            True,
            "",
            f"{each.source}; {law.source}",
            basis,
        )
        for order in SHOWN
        if (each := found[order]) is not None
    ]
    bound, pure = renyi.to_epsilon(known, DELTA), law.law.pure_bracket().upper
    source = (
        bound.source if bound.epsilon < pure else "the divergence of infinite order, the view's pure epsilon"
    )
    quantity = f"ε at δ = {DELTA:g}, by Rényi divergences"
    return [*shown, Figure(min(bound.epsilon, pure), quantity, True, "", source, "upper")]

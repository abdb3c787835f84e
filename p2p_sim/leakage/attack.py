"""``attack``: how well the labels of a run can be guessed with what one view saw, beside what bounds allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage import advantage, deviating, intervals, view_bounds
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.advantage import CANARIES, Baseline
from p2p_sim.leakage.attack_results import AttackRow, Floats, LabelInference, PerUser
from p2p_sim.leakage.attacker_names import OPTIMAL, SHIPPED, OwnAttacker, named
from p2p_sim.leakage.attackers import Attacker, Guesses, Knowledge, doubt_of, returned_by_learner
from p2p_sim.leakage.baseline import without_messages
from p2p_sim.leakage.canary_attack import SHARE, canary_attack, released_attack
from p2p_sim.leakage.dependence import bags_of, groups_of
from p2p_sim.leakage.deviating import Reading, reading_of
from p2p_sim.leakage.estimates import Estimates, by_features, moved
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.eta_from_others import from_others
from p2p_sim.leakage.neighbour_search import shares_of
from p2p_sim.learning import planted_canaries as planting
from p2p_sim.learning.data.description import ids_among
from p2p_sim.learning.planted_canaries import Canaries
from p2p_sim.observed_view import View
from p2p_sim.privacy.bounds.bound import Figure
from p2p_sim.privacy.setting import LEARNER
from p2p_sim.privacy.table_rows import USERS
from p2p_sim.progress import Asked, reporter_of, showing, silent
from p2p_sim.run import Run

NAMES = (*SHIPPED, CANARIES)
"""Attackers by name; one's own have others."""

WITHIN = (
    "P(y | x) is estimated from the one crowd whose messages she reads, so that they seem to tell her less"
)

WORSE = (
    "her P(y | x) guesses worse than the baseline, because it knows nothing of a user's own bag or cluster; so "
    "messages seem to add less"
)
"""Of the optimal attacker where labels of one cluster are alike: who knows that may guess better with messages."""

LEARNS = (
    "no bound is held against it: it has features, and may learn more of P(label | features) from all messages than "
    "was estimated; the bounds are for eta prior or true"
)
"""Of an attacker of one's own, where P(y | x) is estimated and she is shown features."""


@showing
def attack(
    run: Run,
    view: str = LEARNER,
    *,
    eta: str | Floats | Eta = "knn",
    utility: str | Floats = "0/1",
    attackers: Sequence[str | OwnAttacker] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    channels: str = "plain",
    protocol: Protocol | None = None,
    held_out: Population | None = None,
    canaries: float | None = None,
    users: str = "curious",
    estimates: Estimates | None = None,
    bounded: bool = True,
    progress: Asked = None,
) -> LabelInference:
    """Guess the labels of a run with what a view saw, by several attackers; return them side by side.

    ``view``, ``channels``, ``protocol``: as in ``Run.view``.  The labels of the view's own users are known to it, and
    they are no victims.  ``eta``: what attackers think of labels before messages: "knn", "model" or "prior" (class
    shares alone, of all or of each cluster, and no features), estimated from the users' TRUE labels, so of an attacker
    who has the population's P(y | x), without the labels of those with whose messages a user's are mixed, as long as
    there are others; "true" for synthetic users, whose P(y | x) is known; an array (users, k), or an
    ``Eta``, which also says whether labels were really drawn by it.
    ``utility``: "0/1", or "weighted", 1 / (2 p_y) for a right guess, or a matrix u(guess, truth) (k, k) of finite
    numbers of at least 0.  ``attackers``: some of ``NAMES``, and functions of one's own, or their names,
    "module:function" (``attacker_names``); None: all of ``NAMES``, but "canaries" only where the run had canaries
    and the learner looks: otherwise it runs the protocol again, with the share ``canaries`` of the users, by default
    0.05.  One that needs what the view does not contain has a row "refused".
    Canaries of the run are no victims of the others, who know what the labels were before the coins.
    ``held_out``: people who are not in the run, such as a test part; where messages are mixed within clusters, or in
    one crowd, "knn", "model" and "prior" are estimated from their labels instead.
    ``users``: "deviating", or "all deviating", as in ``privacy.profile``: no run has any, so what they read of each
    victim is drawn by the law of the view, where it is known and is of one answer of hers.
    ``estimates``: keeps what is estimated, for attacks on other runs among the same people; and then the baseline may
    guess by those of the users and by that of ``held_out``, whatever the protocol mixes, so that it is the same for all
    protocols.  ``bounded``: whether guarantees are looked up, which may take longer than the attack.
    ``confidence`` in [0.5, 1) of intervals, see ``advantage.measured``.  ``seed``: of the estimates and canaries.
    Raises InputError for bad input, and for a run without its population.

    *Source:* Attacks 2023, section 4; Unified 2023, section 3.
    *Assumes:* labels independent of each other given P(y | x), and users who depend on each other only within bags and
    clusters.
    """
    check_range("confidence", confidence, 0.5, 1, open_high=True)
    check_seed(seed)
    if users not in USERS:
        raise InputError(f"users = {users!r}: must be one of {', '.join(USERS)}{near(str(users), USERS)}")
    tell, planted = reporter_of(progress) or silent, _planted(run, canaries)
    program, people = _program(run, protocol), _people(run)
    gains = advantage.utility_matrix(utility, shares_of(people.y, program.label_count()))
    tell(f"view of {view}", 0, 0)
    seen = run.view(view, channels=channels, protocol=protocol)
    chosen = _chosen(attackers, planted is not None and LEARNER in seen.coalition.servers)
    asked = _Asked(
        run, program, seen, eta, gains, float(confidence), seed, users, held_out, canaries, planted, estimates, bounded,
        tell,
    )  # fmt: skip
    return _guessed(asked, chosen, advantage.utility_name(utility, gains))


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of ``attack``, checked: see there.  ``gains``: the utility, as a matrix."""

    run: Run
    program: Protocol
    seen: View
    eta: str | Floats | Eta
    gains: Floats
    confidence: float
    seed: int
    users: str
    held_out: Population | None
    share: float | None
    planted: Canaries | None
    estimates: Estimates | None
    bounded: bool
    tell: Progress


def _guessed(asked: _Asked, chosen: Mapping[str, Attacker | None], utility: str) -> LabelInference:
    """Estimate P(y | x), make every attack of ``chosen``, and hold it against what bounds allow."""
    run, program, seen, tell = asked.run, asked.program, asked.seen, asked.tell
    people, taking_part = _people(run), run.population
    assert taking_part is not None
    tell("estimating P(y | x)", 0, 0)
    groups = groups_of(program, people)
    before_coins, within = _believed(asked, people, groups)
    belief, victims = _informed(before_coins, taking_part, seen, asked.planted)
    features = people.x is not None and not (isinstance(asked.eta, str) and asked.eta == "prior")
    baseline = _baseline(asked, belief, people, victims, features, groups)
    reading = _reading(program, seen, people, asked.users, run)
    alone = isinstance(reading, Reading)
    table = _Table(people, victims, asked.gains, baseline, asked.confidence, None if alone else groups)
    knowledge = _knowledge(asked, people, belief, features=features)
    attackers = {name: attacker for name, attacker in chosen.items() if attacker is not None}
    if reading is not None:
        attackers = deviating.attackers(attackers, reading, people.y, asked.seed)
    rows, best = _attacked(attackers, knowledge, table, tell, run, within and not alone)
    if CANARIES in chosen:
        tell("canary attack", len(chosen) - 1, len(chosen))
        rows += _of_canaries(asked, knowledge, people, before_coins.rows)
    if asked.bounded:
        tell(f"accounting for view {seen.name}", 0, 0)
    question = view_bounds.Question(
        program, seen, people, victims, belief.rows, belief.exact, priors.alike(belief, victims), features, utility,
        asked.gains, table.baseline_least(), run.faults, asked.users,
    )  # fmt: skip
    exact = None if OPTIMAL not in chosen else _by_law(reading, question)
    by_law = [] if exact is None else [advantage.by_law(advantage.by_law_of(OPTIMAL), exact)]
    return LabelInference(
        seen.name, len(victims), len(asked.gains), belief.source, utility, asked.confidence, table.independent,
        (*rows, *by_law), (*view_bounds.bounds(question), *_promised(question, rows)) if asked.bounded else (),
        None if best is None else _per_user(best, belief, people, victims),
    )  # fmt: skip


def _knowledge(asked: _Asked, people: Population, belief: Eta, *, features: bool) -> Knowledge:
    """Return what attackers know: nothing that is secret, and features only where P(y | x) goes by them."""
    public = replace(people, y=np.zeros_like(people.y), secret={}, x=people.x if features else None)
    return Knowledge(
        asked.program, asked.seen, public, belief.rows, asked.gains, _returned(asked.run, asked.seen),
        doubt_of(asked.program, asked.run.faults),
    )  # fmt: skip


def _planted(run: Run, share: float | None) -> Canaries | None:
    """Return the canaries of a run, None if it had none; raises InputError for a bad ``share``, or one beside them."""
    planting.check(share, trains=True)
    planted = planting.of_columns(run.canaries)
    if share is not None and planted is not None:
        raise InputError(
            f"canaries = {share!r}: the share of a run that is made again, and this run has canaries of its own: "
            "leave it out"
        )
    return planted


def _informed(
    belief: Eta, taking_part: Population, seen: View, planted: Canaries | None
) -> tuple[Eta, npt.NDArray[np.int64]]:
    """Return what the attacker thinks who knows her own users' labels and who is a canary, and the victims: the rest.

    Raises InputError where nobody is left.
    """
    rows = np.arange(taking_part.users)
    spared = own = np.isin(rows if taking_part.ids is None else taking_part.ids, sorted(seen.coalition.users))
    if planted is not None:
        belief = belief.tossing(planted.users, planted.label, planted.other)
        spared = own | np.isin(rows, planted.users)
    if spared.all():
        who, what = (
            ("look", "name fewer") if planted is None else ("look or are canaries", "take fewer canaries")
        )
        raise InputError(
            f"view = {seen.name!r}: all users of the run {who}, so nobody is left to attack; {what}"
        )
    return belief.knowing(np.flatnonzero(own), taking_part.y[own]), np.flatnonzero(~spared)


def _promised(question: view_bounds.Question, rows: Sequence[AttackRow]) -> list[Figure]:
    """Return what the epsilon is held against that guesses of coins imply; nothing where none were guessed."""
    implied = next((row.epsilon for row in rows if row.epsilon is not None), None)
    return [] if implied is None else [view_bounds.promise(question, implied.delta, implied.sure_delta)]


@dataclass(frozen=True, eq=False)
class _Table:
    """What all rows of a table share."""

    people: Population
    victims: npt.NDArray[np.int64]
    gains: Floats
    baseline: Baseline
    confidence: float
    groups: npt.NDArray[Any] | None

    def row(self, name: str, guesses: Guesses) -> AttackRow:
        """Return the row of an attacker who guesses all users' labels."""
        return self._row(name, guesses.guess[self.victims], guesses.source, guesses.basis)

    def baseline_least(self) -> float:
        """Return the least utility of the best guess without messages, from 0 to 1, by an interval that is ``SURE``."""
        surely = replace(self, confidence=advantage.SURE)
        return min(1.0, max(0.0, surely._row("", self.baseline.guess, "", "measured").baseline.lower))

    def thinks_worse(self, eta: Floats) -> bool:
        """Whether P(y | x) guesses surely worse than the baseline, where messages are mixed within several groups.

        No message is in either guess, so users are independent, except for the labels by which estimates were made.
        """
        if self.baseline.expected is not None or not priors.several(self.groups):
            return False
        truth = np.asarray(self.people.y, np.int64)[self.victims]
        own = advantage.decide(eta, self.gains)[self.victims]
        lost = self.gains[self.baseline.guess, truth] - self.gains[own, truth]
        return intervals.of_mean(lost, advantage.SURE, float(self.gains.max())).lower > 0

    @property
    def independent(self) -> int:
        """How many groups of victims do not depend on each other."""
        return intervals.equal_groups(
            len(self.victims), None if self.groups is None else self.groups[self.victims]
        )

    def _row(
        self, name: str, guess: npt.NDArray[np.int64], source: str, basis: Literal["measured", "lower"]
    ) -> AttackRow:
        truth = np.asarray(self.people.y, np.int64)[self.victims]
        groups = None if self.groups is None else intervals.numbered(self.groups[self.victims])
        return advantage.measured(
            name, guess, self.baseline, truth, self.gains, confidence=self.confidence, source=source, groups=groups,
            basis=basis,
        )  # fmt: skip


def _reading(
    program: Protocol, seen: View, people: Population, users: str, run: Run
) -> Reading | InputError | None:
    """Return what a view whose users deviate reads of each victim, or why that is not known; None of others."""
    if users == "curious":
        return None
    try:
        return reading_of(program, seen, people, users, run.faults)
    except InputError as error:
        return error


def _by_law(
    reading: Reading | InputError | None, question: view_bounds.Question
) -> advantage.Expected | None:
    """Return the exact utilities of the best attack; None unless P(y | x) and the law are known."""
    if reading is None:
        return view_bounds.enumerated(question)
    if isinstance(reading, InputError) or not question.exact:
        return None
    return advantage.by_enumeration(question.eta[question.victims], reading.channel, question.gains)


def _attacked(
    chosen: Mapping[str, Attacker],
    knowledge: Knowledge,
    table: _Table,
    tell: Progress,
    run: Run,
    within: bool,
) -> tuple[list[AttackRow], Guesses | None]:
    """Return the rows of the attackers, and the guesses of the optimal one, the only one to use messages and give a
    posterior."""
    rows: list[AttackRow] = []
    best: Guesses | None = None
    for i, (name, attacker) in enumerate(chosen.items()):
        tell(f"{name} attack", i, len(chosen))
        try:
            guesses = attacker(knowledge)
        except InputError as error:
            rows.append(advantage.refused(name, str(error)))
            continue
        if name == OPTIMAL and run.faults is not None:
            guesses = replace(
                guesses, basis="lower", silent=False
            )  # likelihoods are of runs without faults, and doubted
        if name == OPTIMAL and within and not guesses.silent:
            guesses = replace(guesses, basis="lower", source=f"{guesses.source}; {WITHIN}")
        if name == OPTIMAL and not guesses.silent and table.thinks_worse(knowledge.eta):
            guesses = replace(guesses, basis="lower", source=f"{guesses.source}; {WORSE}")
        learns = name not in SHIPPED and knowledge.people.x is not None and table.baseline.expected is None
        if learns:
            guesses = replace(guesses, source=f"{guesses.source}; {LEARNS}")
        found = table.row(name, guesses)
        if learns:
            found = advantage.over_any_baseline(found, table.gains)
        rows.append(advantage.silent(found) if guesses.silent else found)
        best = guesses if name == OPTIMAL else best
    return rows, best


def _of_canaries(asked: _Asked, knowledge: Knowledge, people: Population, eta: Floats) -> list[AttackRow]:
    """Return the rows of the canary attack: on the run's own models, or on one of a run that is made again."""
    protocol, view = asked.program, asked.seen.name
    try:
        if asked.planted is not None:
            return released_attack(asked.run, view, eta, asked.confidence, protocol)
        share = SHARE if asked.share is None else asked.share
        return [
            canary_attack(
                asked.run, protocol, people, view, knowledge.eta, asked.confidence, asked.seed, share
            )
        ]
    except InputError as error:
        return [advantage.refused(CANARIES, str(error))]


def _chosen(attackers: Sequence[str | OwnAttacker] | None, canaries: bool) -> dict[str, Attacker | None]:
    """Return the attackers by name, the shipped ones first; None stands for the canaries, who are no such function.

    ``canaries``: whether these are there where nobody is named.
    """
    if attackers is None:
        return {**SHIPPED, CANARIES: None} if canaries else dict(SHIPPED)
    given = [attackers] if isinstance(attackers, str) or callable(attackers) else list(attackers)
    unknown = [each for each in given if isinstance(each, str) and ":" not in each and each not in NAMES]
    if unknown or not given:
        raise InputError(
            f"attackers = {attackers!r}: give a list of some of {', '.join(NAMES)}, or of your own, functions or "
            f"MODULE:FUNCTION{near(str(*unknown[:1]), NAMES)}"
        )
    found: dict[str, Attacker | None] = {}
    for each in given:
        name, attacker = (CANARIES, None) if each == CANARIES else named(each)
        if name in found and not isinstance(each, str):
            raise InputError(f"attackers: two functions are called {name}; give each a name of its own")
        found[name] = attacker
    return dict(
        sorted(found.items(), key=lambda item: NAMES.index(item[0]) if item[0] in NAMES else len(NAMES))
    )


def _program(run: Run, protocol: Protocol | None) -> Protocol:
    program = protocol if protocol is not None else run.source
    if program is None:
        raise InputError(f"{run.protocol} is not a shipped protocol: give it, attack(run, protocol=...)")
    return program


def _people(run: Run) -> Population:
    """Return the users with their labels before coins; raises InputError where a run does not have them."""
    people = planting.as_given(run)
    if people is None:
        raise InputError(
            "this run was saved without its population: guesses cannot be held against the true labels"
        )
    return people


def _returned(run: Run, seen: View) -> dict[str, npt.NDArray[Any]] | None:
    return returned_by_learner(run) if LEARNER in seen.coalition.servers else None


def _believed(asked: _Asked, people: Population, groups: npt.NDArray[np.int64] | None) -> tuple[Eta, bool]:
    """Return what attackers think of labels before messages, and whether it is estimated ``WITHIN`` one crowd.

    Clusters may be of people alike, of whom those of other clusters tell little: people outside the run are asked
    there, and in one crowd.  The users of a bag are alike by chance only.
    """
    crowd = groups is not None and not priors.several(groups)
    alike = crowd or (groups is not None and bags_of(asked.program, people) is None)
    outside = _of_others(asked, people) if alike else None
    if outside is not None:
        return outside, False
    belief = _belief(asked, people, groups)
    return belief, crowd and isinstance(asked.eta, str) and not belief.exact


def _belief(asked: _Asked, people: Population, groups: npt.NDArray[np.int64] | None) -> Eta:
    eta, run, labels = asked.eta, asked.run, asked.program.label_count()
    if isinstance(eta, str):
        law = run.notes.get("label_law")
        make = priors.of_population if asked.estimates is None else asked.estimates.of_population
        found = make(eta, people, labels, asked.seed, law, asked.tell, groups)
        return _telling_of_ids(found, eta, run, people)
    if isinstance(eta, Eta):
        priors.checked(eta.rows, people.users, labels)
        return eta
    return Eta(priors.checked(eta, people.users, labels), "an array that was given")


def _of_others(asked: _Asked, people: Population) -> Eta | None:
    """Return P(y | x) by the labels of people who are not in the run; None where that was not asked for."""
    eta, others = asked.eta, asked.held_out
    if others is None or not isinstance(eta, str) or eta not in ("knn", "model", "prior"):
        return None
    make = from_others if asked.estimates is None else asked.estimates.from_others
    found = make(eta, people, others, asked.program.label_count(), asked.seed)
    return None if found is None else _telling_of_ids(found, eta, asked.run, people)


def _baseline(
    asked: _Asked,
    belief: Eta,
    people: Population,
    victims: npt.NDArray[np.int64],
    features: bool,
    groups: npt.NDArray[np.int64] | None,
) -> Baseline:
    """Return the best guess without messages; with ``estimates`` the same in whatever order the users are."""
    how: dict[str, Any] = {"features": features, "seed": asked.seed}
    if asked.estimates is None or belief.exact:
        return without_messages(belief, people, asked.gains, victims, groups=groups, **how)
    whole, order = by_features(people)
    place = np.argsort(order)[victims]
    found = without_messages(
        moved(belief, order), whole, asked.gains, np.sort(place), groups=None if groups is None else groups[order],
        beside=[each[order] for each in _beside(asked, people)], **how,
    )  # fmt: skip
    back = np.argsort(np.argsort(place))
    return replace(found, guess=found.guess[back], rivals=tuple(each[back] for each in found.rivals))


def _beside(asked: _Asked, people: Population) -> list[Floats]:
    """Return what else the baseline may guess by, the same for every protocol: no message is in it.

    Where messages are mixed, the attacker must not go by her victims' labels; who sees no message may.
    """
    eta, kept, labels = asked.eta, asked.estimates, asked.program.label_count()
    if kept is None or eta not in ("knn", "model"):
        return []
    assert isinstance(eta, str)
    found = [kept.of_population(eta, people, labels, asked.seed)]
    others = (
        None if asked.held_out is None else kept.from_others(eta, people, asked.held_out, labels, asked.seed)
    )
    return [each.rows for each in (*found, others) if each is not None]


def _telling_of_ids(found: Eta, eta: str, run: Run, people: Population) -> Eta:
    """Return an estimate whose source names the features that look like ids, if it goes by features."""
    ids = _ids(run, people) if eta in ("knn", "model") else []
    return replace(found, source=f"{found.source}; {priors.note_on_ids(ids)}") if ids else found


def _ids(run: Run, people: Population) -> list[str]:
    """Return the features that look like ids: by name, of a data set, otherwise by number from 0."""
    if people.x is None:
        return []
    data = run.notes.get("data")
    if data is not None:
        return list(data.get("ids", ()))
    return [f"column {j}" for j in ids_among(people.x)]


def _per_user(guesses: Guesses, belief: Eta, people: Population, victims: npt.NDArray[np.int64]) -> PerUser:
    assert guesses.posterior is not None
    ids = victims if people.ids is None else people.ids[victims]
    return PerUser(
        user=np.asarray(ids, np.int64),
        prior=belief.rows[victims].max(axis=1),
        posterior=guesses.posterior[victims].max(axis=1),
        right=guesses.guess[victims] == people.y[victims],
    )

"""``attack``: how well the labels of a run can be guessed with what one view saw, beside what bounds allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage import advantage, intervals, view_bounds
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.advantage import CANARIES, Baseline
from p2p_sim.leakage.attacker_names import OPTIMAL, SHIPPED, OwnAttacker, named
from p2p_sim.leakage.attackers import Attacker, Guesses, Knowledge, doubt_of, returned_by_learner
from p2p_sim.leakage.baseline import without_messages
from p2p_sim.leakage.canaries import canary_attack
from p2p_sim.leakage.dependence import groups_of
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.held_out import from_others
from p2p_sim.leakage.label_inference import AttackRow, Floats, LabelInference, PerUser
from p2p_sim.learning.data.description import ids_among
from p2p_sim.observed_view import View
from p2p_sim.privacy.setting import LEARNER
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.run import Run

NAMES = (*SHIPPED, CANARIES)
"""Attackers by name; one's own have others."""

WITHIN = (
    "P(y | x) is estimated from the one crowd whose messages she reads, so that they seem to tell her less"
)


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
    "module:function" (``attacker_names``); None: all of ``NAMES`` but
    "canaries", which runs the protocol again.  One that needs what the view does not contain has a row "refused".
    ``held_out``: people who are not in the run, such as a test part; where the users of the run are one crowd, whose
    messages tell of everybody's labels, "knn", "model" and "prior" are estimated from their labels instead.
    ``confidence`` in [0.5, 1) of intervals, see ``advantage.measured``.  ``seed``: of the estimates and canaries.
    Raises InputError for bad input, and for a run without its population.

    *Source:* Attacks 2023, section 4; Unified 2023, section 3.
    *Assumes:* labels independent of each other given P(y | x), and users who depend on each other only within bags and
    clusters.
    """
    check_range("confidence", confidence, 0.5, 1, open_high=True)
    check_seed(seed)
    tell = reporter_of(progress) or _silent
    chosen = _chosen(attackers)
    program, people = _program(run, protocol), _people(run)
    gains = advantage.utility_matrix(utility, priors.shares_of(people.y, program.label_count()))
    worth = advantage.utility_name(utility, gains)
    tell(f"view of {view}", 0, 0)
    seen = run.view(view, channels=channels, protocol=protocol)
    tell("estimating P(y | x)", 0, 0)
    groups = groups_of(program, people)
    crowd = groups is not None and not priors.several(groups)
    belief = _of_others(eta, run, program, people, seed, held_out) if crowd else None
    within = crowd and belief is None and isinstance(eta, str)
    if belief is None:
        belief = _belief(eta, run, program, people, seed, tell, groups)
    within = within and not belief.exact
    own = np.isin(np.arange(people.users) if people.ids is None else people.ids, sorted(seen.coalition.users))
    belief = belief.knowing(np.flatnonzero(own), people.y[own])
    victims = np.flatnonzero(~own)
    if not len(victims):
        raise InputError(
            f"view = {view!r}: all users of the run look, so nobody is left to attack; name fewer"
        )
    features = people.x is not None and not (isinstance(eta, str) and eta == "prior")
    baseline = without_messages(belief, people, gains, victims, features=features, seed=seed, groups=groups)
    table = _Table(people, victims, gains, baseline, confidence, groups)
    public = replace(people, y=np.zeros_like(people.y), secret={}, x=people.x if features else None)
    knowledge = Knowledge(
        program, seen, public, belief.rows, gains, _returned(run, seen), doubt_of(program, run.faults)
    )
    rows, best = _attacked(chosen, knowledge, table, tell, run, seed, within)
    tell(f"accounting for view {view}", 0, 0)
    question = view_bounds.Question(
        program, seen, people, victims, belief.rows, belief.exact, priors.alike(belief, victims), features, worth,
        gains, table.baseline_least(), run.faults,
    )  # fmt: skip
    exact = view_bounds.enumerated(question) if OPTIMAL in chosen else None
    return LabelInference(
        view=view,
        users=len(victims),
        labels=len(gains),
        eta_from=belief.source,
        utility=worth,
        confidence=float(confidence),
        groups=table.independent,
        rows=(*rows, *([] if exact is None else [advantage.by_law(f"{OPTIMAL}, by its law", exact)])),
        bounds=view_bounds.bounds(question),
        per_user=None if best is None else _per_user(best, belief, people, victims),
    )


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


def _attacked(
    chosen: Mapping[str, Attacker | None],
    knowledge: Knowledge,
    table: _Table,
    tell: Progress,
    run: Run,
    seed: int,
    within: bool,
) -> tuple[list[AttackRow], Guesses | None]:
    """Return the rows of the attackers, and the guesses of the optimal one, the only one to use messages and give a
    posterior."""
    rows: list[AttackRow] = []
    best: Guesses | None = None
    whom = knowledge.protocol, table.people, knowledge.view.name
    for i, (name, attacker) in enumerate(chosen.items()):
        tell(f"{name} attack", i, len(chosen))
        try:
            if attacker is None:
                rows.append(canary_attack(run, *whom, knowledge.eta, table.confidence, seed))
                continue
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
        found = table.row(name, guesses)
        rows.append(advantage.silent(found) if guesses.silent else found)
        best = guesses if name == OPTIMAL else best
    return rows, best


def _chosen(attackers: Sequence[str | OwnAttacker] | None) -> dict[str, Attacker | None]:
    """Return the attackers by name, the shipped ones first; None stands for the canaries, who are no such function."""
    if attackers is None:
        return dict(SHIPPED)
    given = [attackers] if isinstance(attackers, str) or callable(attackers) else list(attackers)
    unknown = [each for each in given if isinstance(each, str) and ":" not in each and each not in NAMES]
    if unknown or not given:
        raise InputError(
            f"attackers = {attackers!r}: give a list of some of {', '.join(NAMES)}, or of your own, functions or "
            "MODULE:FUNCTION"
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
    people = run.population
    if people is None:
        raise InputError(
            "this run was saved without its population: guesses cannot be held against the true labels"
        )
    return people


def _returned(run: Run, seen: View) -> dict[str, npt.NDArray[Any]] | None:
    return returned_by_learner(run) if LEARNER in seen.coalition.servers else None


def _belief(
    eta: str | Floats | Eta,
    run: Run,
    program: Protocol,
    people: Population,
    seed: int,
    tell: Progress,
    groups: npt.NDArray[np.int64] | None,
) -> Eta:
    labels = program.label_count()
    if isinstance(eta, str):
        found = priors.of_population(eta, people, labels, seed, run.notes.get("label_law"), tell, groups)
        return _telling_of_ids(found, eta, run, people)
    if isinstance(eta, Eta):
        priors.checked(eta.rows, people.users, labels)
        return eta
    return Eta(priors.checked(eta, people.users, labels), "an array that was given")


def _of_others(
    eta: str | Floats | Eta,
    run: Run,
    program: Protocol,
    people: Population,
    seed: int,
    others: Population | None,
) -> Eta | None:
    """Return P(y | x) by the labels of people who are not in the run; None where that was not asked for."""
    if others is None or not isinstance(eta, str) or eta not in ("knn", "model", "prior"):
        return None
    found = from_others(eta, people, others, program.label_count(), seed)
    return None if found is None else _telling_of_ids(found, eta, run, people)


def _telling_of_ids(found: Eta, eta: str, run: Run, people: Population) -> Eta:
    """Return an estimate whose source names the features that look like ids, if it goes by features."""
    ids = _ids(run, people) if eta in ("knn", "model") else []
    return replace(found, source=f"{found.source}; {priors.told_ids(ids)}") if ids else found


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


def _silent(label: str, done: int, total: int) -> None:
    """Show nothing."""

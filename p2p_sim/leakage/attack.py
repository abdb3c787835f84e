"""``attack``: how well the labels of a run can be guessed with what one view saw, beside what bounds allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage import advantage, intervals
from p2p_sim.leakage import eta as priors
from p2p_sim.leakage.advantage import Baseline
from p2p_sim.leakage.attackers import ATTACKERS, Guesses, Knowledge
from p2p_sim.leakage.eta import Eta
from p2p_sim.leakage.label_inference import AttackRow, Floats, LabelInference, PerUser
from p2p_sim.network.bags import bag_numbers
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.run import Run

LEARNER = "learner"

EXTRAPOLATED = 1 / (2**0.5 - 1)
"""If an error falls with the root of the users, what is left at n is so many times what was gained from n/2 to n."""


@showing
def attack(
    run: Run,
    view: str = LEARNER,
    *,
    eta: str | Floats | Eta = "knn",
    utility: str = "0/1",
    attackers: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    channels: str = "plain",
    protocol: Protocol | None = None,
    progress: Asked = None,
) -> LabelInference:
    """Guess the labels of a run with what a view saw, by several attackers; return them side by side.

    ``view``, ``channels``, ``protocol``: as in ``Run.view``.  The labels of the view's own users are known to it, and
    they are no victims.  ``eta``: what attackers think of labels before messages: "knn", "model" or "prior" (class shares
    alone), estimated from the users' TRUE labels, so of an attacker who has the population's P(y | x); "true" for
    synthetic users, whose P(y | x) is known; or an array (users, k).  ``utility``: "0/1", or "weighted", 1 / (2 p_y)
    for a right guess.  ``attackers``: names of ``attackers.ATTACKERS``; None: all.  One that needs what the view does
    not contain has a row "refused".  ``confidence`` in (0, 1) of intervals, see ``advantage.measured``.  ``seed``: of
    the estimates.  Raises InputError for bad input, and for a run without its population.

    *Source:* Attacks 2023, section 4; Unified 2023, section 3.
    *Assumes:* labels independent of each other given P(y | x), and users who depend on each other only within bags and
    clusters.
    """
    check_range("confidence", confidence, 0.5, 1 - 1e-9)
    check_seed(seed)
    tell = reporter_of(progress) or _silent
    chosen = _chosen(attackers)
    program, people = _program(run, protocol), _people(run)
    tell(f"view of {view}", 0, 0)
    seen = run.view(view, channels=channels, protocol=protocol)
    tell("estimating P(y | x)", 0, 0)
    belief = _belief(eta, run, program, people, seed)
    gains = advantage.utility_matrix(utility, priors.shares_of(people.y, belief.rows.shape[1]))
    own = np.isin(np.arange(people.users) if people.ids is None else people.ids, sorted(seen.coalition.users))
    belief = belief.knowing(np.flatnonzero(own), people.y[own])
    victims = np.flatnonzero(~own)
    if not len(victims):
        raise InputError(
            f"view = {view!r}: all users of the run look, so nobody is left to attack; name fewer"
        )
    knowledge = Knowledge(
        program, seen, _public(people), belief.rows, gains, _returned(run, seen.coalition.servers)
    )
    truth, groups = people.y[victims].astype(np.int64), _groups(program, people)
    baseline = _baseline(belief, gains, truth, victims)
    rows: list[AttackRow] = []
    best: Guesses | None = None
    for i, name in enumerate(chosen):
        tell(f"{name} attack", i, len(chosen))
        try:
            guesses = ATTACKERS[name](knowledge)
        except InputError as error:
            rows.append(advantage.refused(name, str(error)))
            continue
        rows.append(
            advantage.measured(
                name, guesses.guess[victims], baseline, truth, gains, confidence=confidence, source=guesses.source,
                groups=None if groups is None else intervals.numbered(groups[victims]), basis=guesses.basis,
            )
        )  # fmt: skip
        best = guesses if guesses.posterior is not None else best
    return LabelInference(
        view=view,
        users=len(victims),
        labels=len(gains),
        eta_from=belief.source,
        utility=utility,
        confidence=float(confidence),
        rows=tuple(rows),
        bounds=(),
        per_user=None if best is None else _per_user(best, belief, people, victims),
    )


def _chosen(attackers: Sequence[str] | None) -> Sequence[str]:
    if attackers is None:
        return tuple(ATTACKERS)
    given = [attackers] if isinstance(attackers, str) else list(attackers)
    unknown = [name for name in given if name not in ATTACKERS]
    if unknown or not given:
        raise InputError(f"attackers = {attackers!r}: give a list of some of {', '.join(ATTACKERS)}")
    return list(dict.fromkeys(given))


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


def _public(people: Population) -> Population:
    """Return the users without what is secret of them."""
    return replace(people, y=np.zeros_like(people.y), secret={})


def _returned(run: Run, servers: frozenset[str]) -> dict[str, npt.NDArray[Any]] | None:
    from p2p_sim.learning.training.label_assignment import returned

    return returned(run) if LEARNER in servers else None


def _belief(eta: str | Floats | Eta, run: Run, program: Protocol, people: Population, seed: int) -> Eta:
    labels = program.label_count()
    if isinstance(eta, str):
        shares = (run.notes.get("data") or {}).get("shares")
        return priors.of_population(eta, people, labels, seed, shares)
    if isinstance(eta, Eta):
        priors.checked(eta.rows, people.users, labels)
        return eta
    return Eta(priors.checked(eta, people.users, labels), "an array that was given")


def _groups(program: Protocol, people: Population) -> npt.NDArray[Any] | None:
    """Return whose outcomes may depend on each other: bags, clusters, or nobody's (None)."""
    sums = program.bag_sums()
    if sums is not None:
        everybody = Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
        return bag_numbers(people.clusters or everybody, np.arange(people.users), sums.size)
    if program.in_clusters() and people.clusters is not None and len(people.sizes) > 1:
        return people.clusters.codes
    return None


def _baseline(
    belief: Eta, gains: Floats, truth: npt.NDArray[np.int64], victims: npt.NDArray[np.int64]
) -> Baseline:
    """Return the best guess without messages: by P(y | x), or always the same label where that does better."""
    rows = belief.rows[victims]
    guess = advantage.decide(rows, gains)
    if belief.exact:
        return Baseline(guess, float((rows @ gains.T).max(axis=1).mean()))
    worth = float(gains[guess, truth].mean())
    shares = priors.shares_of(truth, len(gains))
    constant = int((gains @ shares).argmax())
    if float(gains[constant] @ shares) > worth:
        return Baseline(np.full(len(truth), constant))
    if belief.from_half is None:
        return Baseline(guess)
    coarse = advantage.decide(belief.from_half[victims], gains)
    return Baseline(guess, regret=max(0.0, worth - float(gains[coarse, truth].mean())) * EXTRAPOLATED)


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

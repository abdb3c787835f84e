"""Attackers who guess labels, each with what a view contains and nothing else.

An attacker is a function of ``Knowledge`` that returns ``Guesses``; one that needs what the view does not contain
raises ``InputError`` naming it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import CHANCES, Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.leakage.advantage import decide
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.learning.training import bag_training, label_assignment, metrics
from p2p_sim.learning.training.losses import match, softmax
from p2p_sim.observed_view import View
from p2p_sim.privacy.registered import known
from p2p_sim.rundir.run_record import RunRecord

ATTACKS = "Does label differential privacy prevent label inference attacks, 2023"

MODEL = "logistic-regression"


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that an attacker has.  ``view``: what she saw of a run of ``protocol``, whose program is public.

    ``people``: the users as the view knows them: features, clusters and graph, and labels that are all 0.  ``eta``
    (n, k): P(y | x) as she thinks, certain of the view's own users.  ``utility`` (k, k): u(guess, truth).
    ``returned``: what the learner of the run returned, as ``returned_by_learner`` says, if the learner is of the view.
    ``doubt`` from 0 to 1: the probability that what was seen says nothing of the user whom it seems to be about
    (``doubt_of``).
    """

    protocol: Protocol
    view: View
    people: Population
    eta: Floats
    utility: Floats
    returned: Mapping[str, npt.NDArray[Any]] | None
    doubt: float = 0.0


@dataclass(frozen=True, eq=False)
class Guesses:
    """A guess (n,) for every user.  ``posterior`` (n, k): P(y | messages), None of an attacker who has none.

    ``basis``: "lower" where the attacker leaves out part of what her view shows.  ``silent``: whether her view shows
    nothing that depends on anybody's label.
    """

    guess: npt.NDArray[np.int64]
    posterior: Floats | None
    source: str
    basis: Literal["measured", "lower"] = "measured"
    silent: bool = False


def prior(knowledge: Knowledge) -> Guesses:
    """Guess from P(y | x) alone, without messages: the baseline.

    *Source:* Attacks 2023, Equation 3 and section 4 (L-EAU).
    """
    guess = decide(knowledge.eta, knowledge.utility)
    return Guesses(guess, knowledge.eta, f"{ATTACKS}, Equation 3")


def simple_prediction(knowledge: Knowledge) -> Guesses:
    """Guess what a classifier says that was trained on the released labels, weighed by the utility.

    The classifier is a logistic regression, for bags one that matches their proportions.  Needs features, and what the
    learner returned: labels by sender or by cluster, or proportions of bags.  Raises InputError without them.

    *Source:* Attacks 2023, section 3.1 (simple prediction attack) and section 5.2 (weighted).
    """
    chances = _predicted(knowledge)
    return Guesses(decide(chances, knowledge.utility), None, f"{ATTACKS}, section 3.1")


def optimal(knowledge: Knowledge) -> Guesses:
    """Guess by Bayes: P(y | x) times the likelihood of all that the view saw, weighed by the utility.

    No attacker who thinks the same of P(y | x) does better, if the mechanism's room says that its likelihoods are
    exact; otherwise ``basis`` is "lower".  Raises InputError where the room has none, or the view lacks what they need,
    and where ``eta`` rules out what was seen.

    *Source:* Unified 2023, section 3 (the optimal attack is the posterior's mode); the room's formula.
    """
    posterior, basis, source = posterior_of(knowledge)
    silent = basis == "measured" and posterior is knowledge.eta
    return Guesses(decide(posterior, knowledge.utility), posterior, source, basis, silent)


def posterior_of(knowledge: Knowledge) -> tuple[Floats, Literal["measured", "lower"], str]:
    """Return P(y | messages) (n, k), the basis of its row and the source; raises InputError as ``optimal`` does.

    It is ``eta`` itself where the view says nothing of anybody.

    *Source:* Bayes, with the likelihood of the mechanism's room.
    *Assumes:* labels independent of each other given P(y | x).
    """
    likelihoods = known(knowledge.protocol).attack
    if likelihoods is None:
        raise InputError(
            f"optimal attack: the likelihood of the messages of {type(knowledge.protocol).__name__} is not known; "
            "register it as Accounting(attack=...)"
        )
    found = likelihoods(knowledge.protocol, knowledge.view, knowledge.eta)
    rows = knowledge.people.rows_of(found.users)
    if found.log.shape[1] != knowledge.eta.shape[1]:
        raise InputError(
            f"likelihoods of {found.log.shape[1]} labels, eta of {knowledge.eta.shape[1]}: give the same"
        )
    basis: Literal["measured", "lower"] = "measured" if found.basis == "exact" else "lower"
    if not len(rows):
        return knowledge.eta, basis, found.source
    with np.errstate(divide="ignore"):
        joint = np.log(knowledge.eta[rows]) + _doubted(found.log, knowledge.doubt)
    top = joint.max(axis=1, keepdims=True, initial=-np.inf)
    if bool(np.isneginf(top).any()):
        user = int(found.users[np.flatnonzero(np.isneginf(top))[0]])
        raise InputError(
            f"eta: rules out what the view saw of user {user}; give every label she can have some chance"
        )
    posterior = knowledge.eta.copy()
    odds = np.exp(joint - top)
    posterior[rows] = odds / odds.sum(axis=1, keepdims=True)
    return posterior, basis, found.source


def doubt_of(protocol: Protocol, faults: Faults | None) -> float:
    """Return how much an attacker doubts likelihoods, which are of runs without faults: from 0 to 1.

    Of k labels, a share s of users who lie hides as much as a share s k / (k - 1) who say any label: two labels that
    are flipped exactly so.  Where labels go from user to user, a message that is lost or late may hide whose label a
    report carries.
    """
    if faults is None:
        return 0.0
    labels = protocol.label_count()
    honest = 1 - min(1.0, faults.lie[1] * labels / (labels - 1)) if faults.lie is not None else 1.0
    arrives = (
        math.prod(1 - float(getattr(faults, name)) for name in CHANCES) if protocol.users_talk() else 1.0
    )
    return 1 - honest * arrives


def _doubted(log: Floats, doubt: float) -> Floats:
    """Return log-likelihoods of which each says nothing with some probability, each row up to a constant."""
    if not doubt:
        return log
    chances = softmax(log)
    return np.asarray(np.log((1 - doubt) * chances + doubt / log.shape[1]), np.float64)


def _predicted(knowledge: Knowledge) -> Floats:
    """Return class probabilities (n, k) of all users, of a model trained on what was released."""
    if knowledge.returned is None:
        raise InputError(
            f"simple prediction attack: needs what the learner returned; view {knowledge.view.name!r} has no learner"
        )
    if knowledge.people.x is None:
        raise InputError("simple prediction attack: needs features, and this attacker has none")
    return predict_from_returned(
        knowledge.protocol, knowledge.people, knowledge.returned, knowledge.eta.shape[1]
    )


def returned_by_learner(run: RunRecord) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that the learner of a run returned; ``sender``: the row of each sender among its users."""
    return label_assignment.returned(run)


def predict_from_returned(
    protocol: Protocol, people: Population, returned: Mapping[str, npt.NDArray[Any]], labels: int
) -> Floats:
    """Return class probabilities (n, labels) of ``people``, who have features, by a model of what a learner returned.

    Raises InputError where that is neither labels by sender or cluster, nor proportions of bags.

    *Source:* Attacks 2023, section 3.1 (a model of released labels); for bags ``losses.match``.
    """
    assert people.x is not None
    pairs = label_assignment.pairs(dict(returned), people)
    if pairs is not None and pairs.fits(people):
        _check_classes(pairs.y, labels)
        x = people.x[pairs.users] if pairs.x is None else pairs.x
        return released_model(x, pairs.y, people.x, labels)
    bags = bag_training.of_run(dict(returned), protocol, people)
    if bags is None or not len(bags.share):
        raise InputError(
            "a model needs released labels by sender or cluster, or proportions of bags; the learner returned "
            f"{', '.join(returned) or 'nothing'}"
        )
    return _chances(match(people.x, bags.counts()).predicted(people.x), labels)


def _check_classes(y: npt.NDArray[Any], labels: int) -> None:
    wrong = y[~np.isin(y, np.arange(labels))]
    if len(wrong):
        raise InputError(
            f"a model needs released classes, 0 to {labels - 1}; {wrong[0]} was released, a number"
        )


def released_model(
    x: npt.NDArray[Any], y: npt.NDArray[Any], at: npt.NDArray[Any], labels: int, model: str = MODEL
) -> Floats:
    """Return what a model trained on released labels ``y`` of rows ``x`` says of the rows ``at``: (m, labels).

    ``x`` (n, d), ``y`` (n,) of classes from 0, ``at`` (m, d), ``model``: as ``training.models.make`` takes it.  Without
    two different labels it is their shares; without any, all labels are alike.

    *Source:* Attacks 2023, section 3.1.  *Assumes:* nothing of the mechanism: labels are taken as they were released.
    """
    from sklearn.exceptions import ConvergenceWarning

    from p2p_sim.learning.training.models import make, one_thread

    codes = np.asarray(y, np.int64)
    if len(np.unique(codes)) < 2:
        shares = (
            np.bincount(codes, minlength=labels) / len(codes) if len(codes) else np.full(labels, 1 / labels)
        )
        return np.tile(shares, (len(at), 1))
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # an attacker may use a model that did not converge
        return _chances(metrics.of_classifier(make(model).fit(x, codes), at, labels), labels)


def _chances(predicted: metrics.Predicted, labels: int) -> Floats:
    if predicted.probabilities is None:
        return np.eye(labels)[np.asarray(predicted.y, np.int64)]
    found = np.asarray(predicted.probabilities, np.float64)
    return found if found.shape[1] == labels else np.pad(found, ((0, 0), (0, labels - found.shape[1])))


Attacker = Callable[[Knowledge], Guesses]

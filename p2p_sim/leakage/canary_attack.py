"""The canary attack: whose label was flipped, as the confidences of a released model tell.

Before the protocol runs, a coin may flip the label of some users, the canaries.  The attacker knows who they are,
their labels before the coin, and the model that is trained on what was released: she guesses which coins fell on
"flip".  Whatever labels and features are, half of these guesses are right without the model.

Where the run itself had canaries, the model is that of the run.  Otherwise the protocol runs once more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.random_words import stream, words
from p2p_sim.leakage import intervals, one_run_epsilon
from p2p_sim.leakage.advantage import CANARIES, SURE
from p2p_sim.leakage.attack_results import AttackRow, Floats, ImpliedEpsilon, Interval, Least
from p2p_sim.leakage.attackers import predict_from_returned, returned_by_learner
from p2p_sim.learning import planted_canaries as planting
from p2p_sim.learning.planted_canaries import Canaries
from p2p_sim.privacy.setting import LEARNER
from p2p_sim.run import Run
from p2p_sim.run import run as start

SHARE = 0.05
"""Of the users, who are canaries where the protocol runs again, unless another is given."""

DELTA = 1e-6
"""Of the implied epsilon, where the run does not say of which its promises are."""

SOURCE = (
    "Esmaeili et al. 2021, section 5 (black-box attack on canaries); Clopper and Pearson 1934; the implied epsilon: "
    f"{one_run_epsilon.SOURCE}"
)

NAMES = {"released": CANARIES, "corrected": f"{CANARIES}, corrected model"}
"""What the rows of the run's own models are called, by the column of their confidences."""

NO_MODEL = "canary attack: this run has canaries, but trained no model whose confidences could tell of them"


def released_attack(
    run: Run, view: str, eta: Floats, confidence: float, protocol: Protocol
) -> list[AttackRow]:
    """Return a row for each model that a run with canaries trained: the share of coins that it tells, against 1/2.

    ``eta`` (users, k): what the attacker thinks of labels beforehand, which must not know of the coins.  Canaries whom
    the view itself looks through are left out.  Guesses are made as in ``canary_attack``.  Raises InputError where the
    view has no learner, and for a run that trained no model, or has fewer than 2 canaries left.

    *Source:* Esmaeili et al. 2021, section 5; Steinke, Nasr, Jagielski 2023 (the implied epsilon).
    *Assumes:* as ``canary_attack``.
    """
    who = run.view(view, protocol=protocol).coalition
    if LEARNER not in who.servers:
        raise InputError(f"canary attack: needs the model of the learner; view {view!r} has no learner")
    planted = planting.of_columns(run.canaries)
    if planted is None or not planted.confidences:
        raise InputError(NO_MODEL)
    others = planted.subset(~np.isin(planted.users, sorted(who.users)))
    if len(others.users) < planting.FEWEST:
        raise InputError(f"canary attack: view {view!r} leaves {len(others.users)} canaries; 2 are needed")
    return [
        _row(NAMES[name], others, confidences, eta, confidence, delta_of(run))
        for name, confidences in others.confidences.items()
    ]


def delta_of(run: Run) -> float:
    """Return the delta of the run's own promises, or ``DELTA``."""
    kept = run.notes.get("privacy")
    return float(kept["delta"]) if isinstance(kept, dict) and "delta" in kept else DELTA


def canary_attack(
    run: Run,
    protocol: Protocol,
    people: Population,
    view: str,
    eta: Floats,
    confidence: float,
    seed: int,
    share: float = SHARE,
) -> AttackRow:
    """Return the row of the attack: the share of coins that it guesses right, against 1/2, which is exact.

    ``share`` in (0, 1] of the users are canaries; a flipped label is uniform among the others.  Canaries are ranked by
    how much more likely the model finds the label before the coin than the flipped one, less the same of ``eta``
    (users, k); the lower half are guessed to be flipped.  ``seed``: of canaries, coins and the run.  Raises InputError
    where the view has no learner, where users have no features, and for fewer than 2 canaries.

    *Source:* Esmaeili et al. 2021, section 5 (black-box attack on canaries); Clopper and Pearson 1934.
    *Assumes:* Clopper-Pearson takes the guesses as independent; they share one model and the median.
    """  # fmt: skip
    if LEARNER not in run.view(view, protocol=protocol).coalition.servers:
        raise InputError(f"canary attack: needs what the learner returned; view {view!r} has no learner")
    if people.x is None:
        raise InputError("canary attack: needs features, and these users have none")
    labels = eta.shape[1]
    users, planted = planting.plant(people, labels, share, seed)
    again = start(
        protocol, users, seed=int(words(seed, stream("attack", "run", 0), 0, 1)[0]), digest=False,
        faults=run.faults, crypto=run.crypto, progress=False,
    )  # fmt: skip
    public = replace(people, y=np.zeros_like(people.y), secret={})
    model = predict_from_returned(protocol, public, returned_by_learner(again), labels)
    return _row(CANARIES, planted, model[planted.users], eta, confidence, delta_of(run))


def _row(
    name: str, planted: Canaries, confidences: Floats, eta: Floats, confidence: float, delta: float
) -> AttackRow:
    """Return the row of one model; ``confidences`` (m, k): of its predictions; ``eta`` (users, k)."""
    label, other, flipped = planted.label, planted.other, planted.flipped
    scores = _odds(confidences, label, other) - _odds(eta[planted.users], label, other)
    count, hits = len(flipped), int((_lower_half(scores) == flipped).sum())
    right, sure = (intervals.of_share(hits, count, c) for c in (confidence, SURE))
    gained, ratio = Interval(*(end - 0.5 for end in right)), Interval(*(end / 0.5 for end in right))
    sure_delta = min(delta, (1 - SURE) / (20 * count))
    implied, surely = (
        one_run_epsilon.of_scores(scores, flipped, at, 1 - c)
        for at, c in ((delta, confidence), (sure_delta, SURE))
    )
    return AttackRow(
        name, right, intervals.exactly(0.5), gained, ratio, "measured", SOURCE,
        least=Least(sure.lower, sure.lower - 0.5),
        epsilon=ImpliedEpsilon(implied, delta, surely, sure_delta, count, hits, one_run_epsilon.SOURCE),
    )  # fmt: skip


def _odds(chances: Floats, truth: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> Floats:
    at = np.arange(len(truth))
    likely, flipped = (np.log(np.maximum(chances[at, label], 1e-12)) for label in (truth, other))
    return np.asarray(likely - flipped, np.float64)


def _lower_half(scores: Floats) -> npt.NDArray[np.bool_]:
    lower = np.zeros(len(scores), np.bool_)
    lower[np.argsort(scores, kind="stable")[: len(scores) // 2]] = True
    return lower

"""Several runs on the same labels whose users draw the same random words, as runs of one seed do.

Such runs do not add up: a user whom one run shows lying at a small probability lies in every run at a larger one, and
two answers that differ say both her label and that she lied.

*Source:* ``docs/laws.md``, "Shared coins".
"""

from __future__ import annotations

import numpy as np

from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile

ONE_RUN = "the runs of a part are of one protocol with the same parameters, so they send the same messages"
ONE_WORD = "in every run a user lies where the same random word lies below the run's probability of a lie"


def shared_law(profiles: list[PrivacyProfile]) -> tuple[Law, str] | str:
    """Return the law of runs that share their coins, and what it assumes; or why none is known.

    ``profiles``: at least one, each with a law.
    """
    laws = [profile.law for profile in profiles]
    if len(laws) == 1 and laws[0] is not None:
        return laws[0], ONE_RUN
    responses = [response for law in laws if law is not None and (response := law.response()) is not None]
    alike = {(labels, profile.source) for (_, labels), profile in zip(responses, profiles, strict=False)}
    if len(responses) < len(laws) or len(alike) > 1:
        return (
            "runs that share their coins have a known law only where they are one part, (profile, times), or where "
            "each is one randomized response of one protocol over the same labels; give the runs different seeds "
            "(p2p-sim run without --seed)"
        )
    return one_word([budget for budget, _ in responses], responses[0][1]), ONE_WORD


def one_word(budgets: list[float], labels: int) -> Law:
    """Return the law of answers of one user to several randomized responses that compare one random word.

    ``budgets``: their local epsilons, at least one, over ``labels`` values.  An answer that differs from another gives
    the label away: that is so with probability (largest - smallest probability of a lie), at every epsilon.
    """
    rarest, commonest = LocalResponse(max(budgets), labels), LocalResponse(min(budgets), labels)
    lie, truth, apart = (1 - rarest.keep) / (labels - 1), commonest.keep, rarest.keep - commonest.keep
    # label 0 in all runs; label 1 in all; a third one in all; 0 first and a lie then; 1 first and a lie then
    p = [truth, lie, (labels - 2) * lie, apart, 0.0]
    q = [lie, truth, (labels - 2) * lie, 0.0, apart]
    return Atoms(np.array([p]), np.array([q]))

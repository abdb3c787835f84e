"""A model that knows how the released labels came about: who lied how often, and whose label it may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.core.protocol import LabelNoise
from p2p_sim.learning import dealt
from p2p_sim.learning.losses import Bags
from p2p_sim.learning.regression import match
from p2p_sim.learning.training import Comparison

Array = npt.NDArray[Any]

LIES, MATCHED = "corrected for lies", "matched by cluster"


def bags_of(columns: dict[str, Array], people: Population, noise: LabelNoise) -> Bags | None:
    """Return whose labels the learner knows together: a user's, or those of a cluster, whoever sent them.

    ``columns``: y, and sender or cluster.  A label of a cluster says as much of each of its users: dealing it to one of
    them, to whom it most likely does not belong, blurs what sets users of a cluster apart.  None where labels are
    everybody's, and so say nothing of anybody's features.
    """
    y, sender = columns["y"].astype(np.int64), columns.get("sender")
    users: Array | None = sender
    bag: Array = np.arange(people.users)
    if noise.whose == "cluster":
        bag = np.zeros(people.users, np.int64) if people.clusters is None else people.clusters.codes
        users = dealt.codes(people, columns["cluster"]) if sender is None else bag[sender]
    if users is None or noise.whose == "everybody":
        return None
    counts = np.zeros((int(bag.max()) + 1, noise.labels))
    np.add.at(counts, (users, y), 1.0)
    return Bags(bag, counts)


def beside(found: Comparison, run: Any, people: Population, x_test: Array, y_test: Array) -> Comparison:
    """Return a comparison with the test accuracy of the corrected model, where the run's protocol has one.

    There is none for a protocol that does not say how its labels came about, or whose senders never lie.  Where the
    correction is impossible, or users lied whom it does not know of, ``note`` says so.
    """
    noise = None if run.source is None else run.source.label_noise()
    if noise is None or (noise.whose == "sender" and not noise.lie):
        return found
    bags, accuracy, notes = bags_of(run.outputs["learner"], people, noise), None, [found.note]
    if bags is None:
        notes.append("a label may be anybody's: no model is corrected for that")
    elif noise.lie * noise.labels >= noise.labels - 1:
        notes.append("the released labels say nothing of the true ones: no model is corrected for that")
    elif bags.counts.any():
        assert people.x is not None
        model = match(people.x, bags, noise.lie)
        accuracy = float(np.mean(model.predict(x_test) == y_test))
        notes += [] if model.converged else ["the corrected model did not converge"]
        notes += ["the corrected model is a logistic regression"] * (found.model != "logistic-regression")
        unknown = "the correction does not know of users who lie beyond the protocol"
        notes += [unknown] * bool(len(run.faulty.get("lied", ())))
    made_up = [MATCHED] * (noise.whose == "cluster") + [LIES] * bool(noise.lie)
    note = "; ".join(filter(None, notes))
    return replace(found, accuracy_corrected=accuracy, correction=", ".join(made_up), note=note)

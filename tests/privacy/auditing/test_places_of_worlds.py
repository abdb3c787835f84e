"""Where a world stands in a run tells nothing of its label, so neither do scores that follow from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2p_sim import backends
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing import classifier, evidence, worlds
from p2p_sim.privacy.auditing.worlds import Situation
from protocols import RandomizedResponse


def test_worlds_of_both_labels_are_counted_at_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score that tells the place in a run: counted are all of runs that nothing was learned from."""

    def place(seen: Any) -> tuple[Any, list[str]]:
        return np.arange(seen.worlds, dtype=float)[:, None], ["place"]

    def as_it_is(a: Any, b: Any, *, quick: bool) -> classifier.Scorer:
        assert not quick
        assert sorted(np.concatenate([a, b])[:, 0]) == list(range(250))
        return classifier.Scorer("place", np.arange(1), 1, lambda rows: rows[:, 0])

    monkeypatch.setattr(classifier, "features", place)
    monkeypatch.setattr(classifier, "fit", as_it_is)
    program = RandomizedResponse(1.0)
    situation = Situation(program, Coalition.parse("learner", program.roles()), 1, 0)
    settings = backends.Settings("local", digest=False)
    found = evidence.by_learning(situation, 250, 3, settings, lambda *_: None)
    assert sorted(np.concatenate(found.scores)) == list(range(250))
    assert abs(found.scores[0].mean() - 124.5) < 6.2 * 250 / math.sqrt(12 * 250)  # a chance below 1e-9


def test_labels_are_balanced_over_all_batches_and_not_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    program = RandomizedResponse(1.0, 3)
    situation = Situation(program, Coalition.parse("learner", program.roles()), 1, 0, labels=(0, 1, 2))
    monkeypatch.setattr(worlds, "_BATCH", 6)
    found = [
        seen.which for seen in worlds.batches(situation, 20, 3, backends.Settings("local", digest=False))
    ]
    assert [len(which) for which in found if which is not None] == [6] * 10
    counts = np.array([np.bincount(which, minlength=3) for which in found])
    assert counts.sum(axis=0).tolist() == [20, 20, 20]
    assert not np.all(counts == 2)

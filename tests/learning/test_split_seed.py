"""The seed of test rows and clusters, apart from that of the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.learning import experiment
from protocols import PeerToPeer

pytestmark = pytest.mark.slow


def learn(seed: int, **more: Any) -> Any:
    return experiment.learn(PeerToPeer(0.1), "breast-cancer", clusters=3, seed=seed, **more)


def test_the_split_stays_while_the_protocol_varies() -> None:
    one, other, plain = learn(1, split_seed=7), learn(2, split_seed=7), learn(7)
    for name in ("rows", "x_test", "y_test"):
        assert np.array_equal(getattr(one.examples, name), getattr(other.examples, name))
        assert np.array_equal(getattr(one.examples, name), getattr(plain.examples, name))
    assert one.run.population.hash == other.run.population.hash == plain.run.population.hash
    assert len({one.run.digest, other.run.digest, plain.run.digest}) == 3
    assert one.comparison.accuracy_true == other.comparison.accuracy_true
    assert one.run.notes["data"]["split_seed"] == 7


def test_without_one_the_split_is_drawn_by_the_seed_which_is_told_once() -> None:
    """A run whose seed is left out must not tell it as that of its split."""
    plain, same = learn(3), learn(3, split_seed=3)
    assert plain.run.digest == same.run.digest
    assert np.array_equal(plain.examples.rows, same.examples.rows)
    assert not {"split_seed"} & (set(plain.run.notes["data"]) | set(same.run.notes["data"]))


@pytest.mark.parametrize("bad", [-1, 2**64, 0.5, True])
def test_seeds_out_of_range_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"split_seed = .*: must be an integer from 0 to 2\^64 - 1"):
        learn(0, split_seed=bad)

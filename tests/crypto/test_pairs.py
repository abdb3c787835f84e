"""The stand-in for an exchange of keys: the same key on both sides, and the same bits for one pair or many."""

from __future__ import annotations

import numpy as np

from p2p_sim.crypto import pairs
from p2p_sim.crypto.octets import KEY_BYTES


def test_many_pairs_agree_on_the_keys_of_each() -> None:
    """Few powers are computed one by one, many as columns."""
    mode, users = pairs.Modelled(), 3 * pairs._ONE_BY_ONE
    rows = np.random.default_rng(1).integers(0, 256, (2, users, KEY_BYTES), np.uint8)
    rows[0, 0] = 0  # the power of 0 is 1
    publics = [mode.publics(private) for private in rows]
    keys = mode.agreed(rows[0], publics[1])
    assert np.array_equal(keys, mode.agreed(rows[1], publics[0]))
    for low in (0, 1, 7, users - 2):
        few = slice(low, low + 2)
        assert np.array_equal(publics[0][few], mode.publics(rows[0][few]))
        assert np.array_equal(keys[few], mode.agreed(rows[0][few], publics[1][few]))

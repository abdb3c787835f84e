"""Key agreement: the vectors of RFC 7748 and RFC 5869, symmetry, each pair once."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.crypto.agree import agree, agree_all, hkdf
from p2p_sim.crypto.keys import SimulationKeys, private_key, public_key
from p2p_sim.crypto.seal import context
from tests.crypto.vectors import HKDF, X25519

USERS = SimulationKeys.from_seed(3, "user", np.arange(6))
EDGES = np.array([[0, 1], [0, 2], [3, 1], [4, 5]])
INFO = context("run", 0, "user")


@pytest.mark.parametrize(("scalar", "point", "result"), X25519)
def test_x25519_gives_the_vectors_of_the_rfc(scalar, point, result):
    shared = private_key(bytes.fromhex(scalar)).exchange(public_key(bytes.fromhex(point)))
    assert shared.hex() == result


@pytest.mark.parametrize(("secret", "salt", "info", "length", "result"), HKDF)
def test_hkdf_gives_the_vectors_of_the_rfc(secret, salt, info, length, result):
    given = [bytes.fromhex(text) for text in (secret, salt, info)]
    assert hkdf(given[0], salt=given[1], info=given[2], length=length).hex() == result


def test_both_parties_get_the_same_keys_and_each_name_another():
    one = agree(USERS.private[0], USERS.public[1], ["mask", "share"], INFO)
    other = agree(USERS.private[1], USERS.public[0], ["mask", "share"], INFO)
    assert one == other
    assert one["mask"] != one["share"]
    assert one["mask"] != agree(USERS.private[0], USERS.public[1], ["mask"], INFO + b"x")["mask"]
    assert one["mask"] != agree(USERS.private[0], USERS.public[2], ["mask"], INFO)["mask"]


def test_a_batch_gives_what_each_pair_would_get():
    table = agree_all(USERS, EDGES, ["mask", "share"], INFO)
    for at, (i, j) in enumerate(EDGES):
        pair = agree(USERS.private[j], USERS.public[i], ["mask", "share"], INFO)
        assert {name: rows[at].tobytes() for name, rows in table.items()} == pair
    assert agree_all(USERS, np.zeros((0, 2), np.int64), ["mask"], INFO)["mask"].shape == (0, 32)


@pytest.mark.parametrize(
    ("edges", "names", "text"),
    [
        ([[0, 6]], ["mask"], r"parties are 0 .. 5; found 0 .. 6"),
        ([[-1, 0]], ["mask"], "found -1"),
        ([[0, 1], [2, 2]], ["mask"], "edge 1 pairs party 2 with itself"),
        ([[0, 1], [1, 0]], ["mask"], "1 pairs are given twice"),
        ([0, 1], ["mask"], r"shape \(e, 2\)"),
        ([[0, 1]], [], "at least one"),
        ([[0, 1]], ["mask", "mask"], "each once"),
    ],
)
def test_wrong_edges_and_names_are_told(edges, names, text):
    with pytest.raises(InputError, match=text):
        agree_all(USERS, np.array(edges), names, INFO)


def test_a_point_of_small_order_is_refused():
    with pytest.raises(InputError, match="small order"):
        agree(USERS.private[0], bytes(32), ["mask"], INFO)

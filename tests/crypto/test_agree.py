"""Key agreement and locking: the vectors of RFC 7748 and RFC 5869, symmetry, each pair once, what does not unlock."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.crypto.agree import agree, agree_all, hkdf
from p2p_sim.crypto.keys import SimulationKeys, private_key, public_key
from p2p_sim.crypto.lock import LOCK_BYTES, lock_all, unlock_all
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


def locked(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys = agree_all(USERS, EDGES, ["share"], INFO)["share"]
    rows = (np.arange(4 * 40) + seed).astype(np.uint8).reshape(4, 40)
    return keys, rows, lock_all(keys, rows, EDGES[:, 0], INFO, round=2)


def test_what_is_locked_unlocks_for_the_same_sender_round_and_context_only():
    keys, rows, closed = locked()
    assert closed.shape == (4, 40 + LOCK_BYTES)
    opened = unlock_all(keys, closed, EDGES[:, 0], INFO, round=2)
    assert opened.ok.all()
    assert (opened.rows == rows).all()
    assert unlock_all(keys, closed, EDGES[:, 1], INFO, round=2).refused == 4
    assert unlock_all(keys, closed, EDGES[:, 0], INFO, round=3).refused == 4
    assert unlock_all(keys, closed, EDGES[:, 0], INFO + b"x", round=2).refused == 4
    assert unlock_all(keys[::-1], closed, EDGES[:, 0], INFO, round=2).refused == 4


def test_a_changed_row_is_counted_and_the_others_go_on():
    keys, rows, closed = locked()
    closed[1, 5] ^= 128
    opened = unlock_all(keys, closed, EDGES[:, 0], INFO, round=2)
    assert opened.ok.tolist() == [True, False, True, True]
    assert (opened.rows[opened.ok] == rows[opened.ok]).all()
    assert unlock_all(keys, closed[:, :15], EDGES[:, 0], INFO).refused == 4


def test_a_nonce_is_never_used_twice():
    keys, rows, _ = locked()
    with pytest.raises(InputError, match="1 rows repeat a sender under one key"):
        lock_all(keys[0], rows[:2], np.array([0, 0]), INFO)
    lock_all(keys[0], rows[:2], np.array([0, 1]), INFO)
    lock_all(keys[:2], rows[:2], np.array([0, 0]), INFO)


@pytest.mark.parametrize(("senders", "round"), [([0], 0), ([0, -1], 0), ([0, 1], 1 << 32)])
def test_senders_and_rounds_are_checked(senders, round):
    keys, rows, _ = locked()
    with pytest.raises(InputError, match=r"senders:|round ="):
        lock_all(keys[:2], rows[:2], np.array(senders), INFO, round=round)

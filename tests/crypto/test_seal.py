"""Sealing: the vector of RFC 9180, what must not open, and many rows with bad ones among them."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from p2p_sim import InputError
from p2p_sim.core.message import SEAL_BYTES
from p2p_sim.crypto import octets, seal
from p2p_sim.crypto.keys import SimulationKeys
from tests.crypto.vectors import HPKE

RFC = {name: bytes.fromhex(text) for name, text in HPKE.items()}
LEARNER = SimulationKeys.from_seed(7, "learner")
SHUFFLER = SimulationKeys.from_seed(7, "shuffler")
INFO = seal.context("run", 1, "user")
ROWS = (np.arange(50 * 9) % 251).astype(np.uint8).reshape(50, 9)


def test_the_suite_opens_the_vector_of_the_rfc():
    # the vector has associated data, which the single-shot interface leaves out: the library's own test hook takes it
    opened = openssl.hpke._decrypt_with_aad(
        seal.suite(),
        RFC["enc"] + RFC["ct"],
        seal.private_key(RFC["skRm"]),
        RFC["info"],
        RFC["aad"],
    )
    assert opened == RFC["pt"]


def test_open_agrees_with_the_keys_of_the_rfc():
    # without associated data: the same key schedule, and the AEAD under the vector's key and nonce
    ciphertext = AESGCM(RFC["key"]).encrypt(RFC["base_nonce"], RFC["pt"], None)
    assert seal.open(RFC["skRm"], RFC["enc"] + ciphertext, RFC["info"]) == RFC["pt"]
    assert seal.private_key(RFC["skRm"]).public_key().public_bytes_raw() == RFC["pkRm"]


@pytest.mark.parametrize("plaintext", [b"", b"x", bytes(1000)])
def test_what_is_sealed_opens_and_is_48_bytes_longer(plaintext):
    sealed = seal.seal(LEARNER.public, plaintext, INFO)
    assert len(sealed) == len(plaintext) + SEAL_BYTES
    assert seal.open(LEARNER.private, sealed, INFO) == plaintext
    assert sealed != seal.seal(LEARNER.public, plaintext, INFO)


def test_every_changed_bit_is_noticed():
    sealed = seal.seal(LEARNER.public, b"label", INFO)
    rows = np.tile(np.frombuffer(sealed, np.uint8), (8 * len(sealed), 1))
    bits = np.arange(len(rows))
    rows[bits, bits // 8] ^= (1 << bits % 8).astype(np.uint8)
    assert seal.open_all(LEARNER.private, rows, INFO).refused == len(rows)


@pytest.mark.parametrize(
    "info",
    [
        seal.context("another run", 1, "user"),
        seal.context("run", 2, "user"),
        seal.context("run", 1, "shuffler"),
        seal.context("run", 1, "user", "report"),
        b"",
    ],
)
def test_another_context_does_not_open(info):
    with pytest.raises(seal.SealError, match="another run, round or sender role"):
        seal.open(LEARNER.private, seal.seal(LEARNER.public, b"label", INFO), info)


@pytest.mark.parametrize("cut", [0, 10, 47, 52])
def test_a_wrong_recipient_and_a_cut_message_do_not_open(cut):
    sealed = seal.seal(LEARNER.public, b"label", INFO)
    with pytest.raises(seal.SealError, match="does not open"):
        seal.open(SHUFFLER.private, sealed, INFO)
    with pytest.raises(InputError, match=f"{cut} bytes"):
        seal.open(LEARNER.private, sealed[:cut], INFO)


def test_contexts_of_different_parts_are_different():
    parts = [
        ("a", 1, "b"),
        ("a1", 1, "b"),
        ("a", 11, "b"),
        (b"a", 1, "b"),
        ("a", 1, "b", ""),
        ("a", 1, "b", 2),
        ("a", 1, "b", "2"),
    ]
    assert len({seal.context(*part) for part in parts}) == len(parts)


def test_rows_go_on_past_bad_ones_which_are_counted():
    sealed = seal.seal_all(LEARNER.public, ROWS, INFO)
    sealed[3, 40] ^= 1
    sealed[8] = np.frombuffer(seal.seal(SHUFFLER.public, ROWS[8].tobytes(), INFO), np.uint8)
    sealed[9, :32] = 0  # an encapsulated key of small order
    opened = seal.open_all(LEARNER.private, sealed, INFO)
    bad = [3, 8, 9]
    assert opened.refused == 3
    assert np.flatnonzero(~opened.ok).tolist() == bad
    assert not opened.rows[bad].any()
    assert (opened.rows[opened.ok] == ROWS[opened.ok]).all()


def test_each_row_may_have_its_key_and_context():
    users = SimulationKeys.from_seed(7, "user", np.arange(50))
    infos = [seal.context("run", 1, "user", at) for at in range(50)]
    sealed = seal.seal_all(users.public, ROWS, infos)
    assert (seal.open_all(users.private, sealed, infos).rows == ROWS).all()
    assert seal.open_all(users.private, sealed, infos[::-1]).refused == 50
    assert seal.open_all(users.private[::-1], sealed, infos).refused == 50


def test_empty_batches_and_empty_rows():
    for shape in [(0, 9), (4, 0)]:
        rows = np.zeros(shape, np.uint8)
        sealed = seal.seal_all(LEARNER.public, rows, INFO)
        assert sealed.shape == (shape[0], shape[1] + SEAL_BYTES)
        assert seal.open_all(LEARNER.private, sealed, INFO).rows.shape == shape
    short = seal.open_all(LEARNER.private, np.zeros((5, 47), np.uint8), INFO)
    assert short.refused == 5


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: seal.seal_all(LEARNER.public, ROWS.astype(np.int64), INFO), "needs a uint8 array"),
        (lambda: seal.seal_all(LEARNER.public[:31], ROWS, INFO), "needs 32 bytes"),
        (lambda: seal.seal_all(LEARNER.public, ROWS, [INFO]), "1 contexts for 50 rows"),
        (lambda: seal.seal(bytes(32), b"x", INFO), "small order"),
        (lambda: seal.seal(b"x", b"x", INFO), "needs 32 bytes"),
    ],
)
def test_what_cannot_be_sealed_is_named(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_copies_are_marked_after_the_first():
    sealed = seal.seal_all(LEARNER.public, np.zeros((6, 1), np.uint8), INFO)
    sealed[[4, 5]] = sealed[1]
    assert octets.repeated(sealed).tolist() == [False, False, False, False, True, True]
    assert octets.repeated(np.zeros((3, 0), np.uint8)).tolist() == [False, True, True]


def test_simulation_keys_come_from_seed_role_and_id_alone():
    many = SimulationKeys.from_seed(7, "user", np.array([5, 2]))
    one = SimulationKeys.from_seed(7, "user", 2)
    assert (many.private[1] == one.private).all()
    assert (many.public[1] == one.public).all()
    others = [(8, "user", 2), (7, "use", 2), (7, "user", 3)]
    assert all((SimulationKeys.from_seed(*other).private != one.private).any() for other in others)
    assert "private" not in repr(one)


@pytest.mark.parametrize(("seed", "ids"), [(-1, 0), (1 << 64, 0), (0, -1), (0, np.array([0.5]))])
def test_simulation_keys_refuse_what_is_no_seed_or_id(seed, ids):
    with pytest.raises(InputError, match=r"seed =|ids:"):
        SimulationKeys.from_seed(seed, "user", ids)

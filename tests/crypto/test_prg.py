"""Masks: AES-CTR against RFC 3686, determinism, widths."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.crypto.prg import keystream, masks
from tests.crypto.vectors import AES_256_CTR

KEYS = np.arange(12 * 32, dtype=np.int64).astype(np.uint8).reshape(12, 32)


@pytest.mark.parametrize(("key", "start", "plaintext", "ciphertext"), AES_256_CTR)
def test_the_key_stream_gives_the_vectors_of_the_rfc(key, start, plaintext, ciphertext):
    plain = bytes.fromhex(plaintext)
    stream = keystream(bytes.fromhex(key), bytes.fromhex(start), len(plain))
    assert bytes(a ^ b for a, b in zip(plain, stream, strict=True)).hex() == ciphertext


def test_masks_are_the_words_of_the_key_stream_little_endian():
    values = masks(KEYS, 5)
    assert values.shape == (12, 5)
    expected = keystream(KEYS[3].tobytes(), bytes(16), 40)
    assert values[3].tolist() == [int.from_bytes(expected[at : at + 8], "little") for at in range(0, 40, 8)]
    assert (masks(KEYS[3].tobytes(), 5)[0] == values[3]).all()
    assert (masks(KEYS, 3) == values[:, :3]).all()


def test_streams_of_one_key_do_not_meet():
    values = np.concatenate([masks(KEYS[0], 1000, stream=stream) for stream in (0, 1, 2, (1 << 64) - 1)])
    assert len(np.unique(values)) == values.size


@pytest.mark.parametrize("bits", [1, 8, 61, 63, 64])
def test_masks_have_the_bits_asked_for(bits):
    values = masks(KEYS, 64, bits=bits)
    assert (values == masks(KEYS, 64) & np.uint64((1 << bits) - 1)).all()
    assert int(values.max()).bit_length() == bits
    assert masks(KEYS, 0, bits=bits).shape == (12, 0)
    assert masks(KEYS[:0], 4, bits=bits).shape == (0, 4)


@pytest.mark.parametrize(
    "wrong", [{"bits": 0}, {"bits": 65}, {"length": -1}, {"stream": -1}, {"stream": 1 << 64}]
)
def test_wrong_masks_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        masks(KEYS, **{"length": 1, **wrong})


def test_short_keys_are_refused():
    with pytest.raises(InputError, match="needs 32 bytes a key, not 16"):
        masks(KEYS[:, :16], 1)

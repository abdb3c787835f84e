"""Exact arithmetic modulo the prime 2^61 - 1 and modulo any number up to 2^64, on uint64 arrays: no float anywhere.

Why this prime: sharing in it is perfectly secret for any secret cut into pieces below it, so a larger field gains
nothing; a product reduces by shifts; and a uniform 64-bit word taken modulo it is uniform up to 2^-61.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import Words, high_product
from p2p_sim.crypto.octets import Octets, as_rows

PRIME = (1 << 61) - 1
ELEMENT_BYTES = 8
LIMB_BYTES = 7
"""Bytes of a secret that one element carries: 2^56 < PRIME."""

_PRIME = np.uint64(PRIME)
_BITS = np.uint64(61)
_REST = np.uint64(3)
_FEW = 16_000
"""Products computed at a time: what lies between fits the cache."""
_LIMB = 1 << (8 * LIMB_BYTES)


def elements(what: str, values: Any) -> Words:
    """Return values as field elements, uint64; raises InputError unless all are integers in 0 .. PRIME - 1."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or (array.size and not 0 <= int(array.min()) <= int(array.max()) < PRIME):
        raise InputError(f"{what}: needs integers in 0 .. 2^61 - 2, of an integer type, not {array.dtype}")
    return array.astype(np.uint64)


def from_words(words: Words) -> Words:
    """Return uniform 64-bit words modulo the prime: uniform elements, up to a distance of 2^-61."""
    return _once((words & _PRIME) + (words >> _BITS))


def add(a: Words, b: Words) -> Words:
    """Return a + b of field elements."""
    return _once(a + b)


def subtract(a: Words, b: Words) -> Words:
    """Return a - b of field elements."""
    return _once(a + (_PRIME - b))


def multiply(a: Words, b: Words) -> Words:
    """Return a * b of field elements."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    size = math.prod(shape)
    if size <= _FEW:
        return _product(a, b)
    a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
    out, rows = np.empty(shape, np.uint64), max(1, _FEW * shape[0] // size)
    for low in range(0, shape[0], rows):
        out[low : low + rows] = _product(a[low : low + rows], b[low : low + rows])
    return out


def _product(a: Words, b: Words) -> Words:
    """Return the 122-bit product, folded at bit 61 since 2^61 is 1."""
    with np.errstate(over="ignore"):  # single values warn where arrays wrap
        low = a * b
        high = high_product(np.broadcast_to(a, np.shape(low)), b)
    return _once((low & _PRIME) + ((low >> _BITS) | (high << _REST)))


def invert(a: Words) -> Words:
    """Return 1 / a, as a^(PRIME - 2); raises InputError where a is 0."""
    a = np.asarray(a, np.uint64)
    if not bool((a != 0).all()):
        raise InputError("a field element 0 has no inverse")
    result, power = np.ones_like(a), a
    for bit in range(PRIME.bit_length()):
        if (PRIME - 2) >> bit & 1:
            result = multiply(result, power)
        power = multiply(power, power)
    return result


def _once(value: Words) -> Words:
    """Reduce values of at most 2 * PRIME - 1: subtract the prime where it goes in."""
    # Below the prime the difference wraps, far above the value.
    return np.asarray(np.minimum(value, value - _PRIME))


def modular_sum(values: Any, modulus: int = PRIME, axis: int = 0) -> Words:
    """Return the sum modulo ``modulus`` (1 .. 2^64) along an axis: exact, for uint64 residues.

    Raises InputError for values that are no residues.
    """
    _check_modulus(modulus)
    rows = np.moveaxis(np.asarray(values), axis, 0)
    if rows.dtype.kind not in "iu" or (rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < modulus):
        raise InputError(f"a sum modulo {modulus} needs integers in 0 .. {modulus - 1}, not {rows.dtype}")
    rows = rows.astype(np.uint64)
    if modulus & (modulus - 1) == 0:  # uint64 wraps at a multiple of the modulus
        return np.asarray(rows.sum(axis=0, dtype=np.uint64) & np.uint64(modulus - 1))
    while len(rows) > 1:
        half = len(rows) // 2
        pairs = _add_modulo(rows[:half], rows[half : 2 * half], modulus)
        rows = np.concatenate([pairs, rows[2 * half :]])
    return rows[0] if len(rows) else np.zeros(rows.shape[1:], np.uint64)


def _add_modulo(a: Words, b: Words, modulus: int) -> Words:
    total, limit = a + b, np.uint64(modulus)
    return np.where((total < a) | (total >= limit), total - limit, total)


def residues(values: npt.NDArray[np.integer], modulus: int) -> Words:
    """Return signed integers modulo ``modulus`` (up to 2^64) as uint64: -1 becomes modulus - 1.

    Raises InputError for values that ``centred`` could not give back.
    """
    _check_modulus(modulus)
    signed = np.asarray(values)
    low, high = -(modulus // 2), (modulus - 1) // 2
    if signed.dtype.kind not in "iu" or (
        signed.size and not low <= int(signed.min()) <= int(signed.max()) <= high
    ):
        raise InputError(f"residues modulo {modulus}: needs integers in {low} .. {high}, not {signed.dtype}")
    whole = signed.astype(np.int64).astype(np.uint64)
    with np.errstate(over="ignore"):
        return np.where(signed < 0, whole + np.uint64(modulus % (1 << 64)), whole)


def centred(values: Any, modulus: int) -> npt.NDArray[np.int64]:
    """Return residues as signed integers in -modulus/2 .. modulus/2: the upper half is negative.

    An even modulus has a residue exactly at its half, which becomes -modulus/2, as in two's complement.
    Raises InputError for values that are no residues.
    """
    _check_modulus(modulus)
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or (
        array.size and not 0 <= int(array.min()) <= int(array.max()) < modulus
    ):
        raise InputError(f"centred lift modulo {modulus}: needs integers in 0 .. {modulus - 1}")
    whole = array.astype(np.uint64)
    negative = whole > np.uint64((modulus - 1) // 2)
    with np.errstate(over="ignore"):  # single values warn where arrays wrap
        return np.where(negative, whole - np.uint64(modulus % (1 << 64)), whole).view(np.int64)


def _check_modulus(modulus: int) -> None:
    if not 1 <= modulus <= 1 << 64:
        raise InputError(f"modulus = {modulus}: needs 1 <= modulus <= 2^64")


def from_octets(rows: Octets) -> Words:
    """Cut rows of bytes (n, k) into field elements of 7 bytes, little-endian: uint64 (n, ceil(k / 7))."""
    rows = as_rows("rows", rows)
    count, width = rows.shape
    limbs = -(-width // LIMB_BYTES)
    padded = np.zeros((count, limbs * LIMB_BYTES), np.uint8)
    padded[:, :width] = rows
    wide = np.zeros((count, limbs, ELEMENT_BYTES), np.uint8)
    wide[:, :, :LIMB_BYTES] = padded.reshape(count, limbs, LIMB_BYTES)
    return wide.view("<u8")[:, :, 0].astype(np.uint64)


def to_octets(values: Words, width: int) -> Octets:
    """Join field elements (n, limbs) to rows of ``width`` bytes, the inverse of ``from_octets``.

    Raises InputError where an element holds more than the bytes it stands for: then it never came from them.
    """
    count, limbs = values.shape
    if limbs != -(-width // LIMB_BYTES):
        raise InputError(f"{width} bytes are {-(-width // LIMB_BYTES)} elements, not {limbs}")
    last = 1 << (8 * (width - LIMB_BYTES * (limbs - 1)))
    if values.size and (int(values.max()) >= _LIMB or int(values[:, -1].max()) >= last):
        raise InputError(f"elements do not stand for {width} bytes: a share was changed, or a key is wrong")
    wide = values.astype("<u8").view(np.uint8).reshape(count, limbs, ELEMENT_BYTES)
    return np.ascontiguousarray(wide[:, :, :LIMB_BYTES].reshape(count, -1)[:, :width])

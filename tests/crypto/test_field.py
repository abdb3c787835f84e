"""The field against Python's integers, modular sums, and the centred lift."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim import InputError
from p2p_sim.crypto import field

P = field.PRIME
EDGE = [0, 1, 2, (1 << 32) - 1, 1 << 32, (1 << 60) - 1, 1 << 60, P - 2, P - 1]
ELEMENTS = st.one_of(st.sampled_from(EDGE), st.integers(0, P - 1))
COLUMNS = st.lists(st.tuples(ELEMENTS, ELEMENTS), min_size=1, max_size=40)
MODULI = st.one_of(
    st.sampled_from([1, 2, 3, P, 1 << 32, 1 << 63, (1 << 63) + 1, (1 << 64) - 59, (1 << 64) - 1, 1 << 64]),
    st.integers(1, 1 << 64),
)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def test_the_prime_is_prime():
    # Lucas and Lehmer: 2^61 - 1 is prime if s_59 is 0, where s_0 = 4 and s_(i + 1) = s_i^2 - 2
    s = 4
    for _ in range(59):
        s = (s * s - 2) % P
    assert s == 0


def test_arithmetic_at_the_edges():
    a, b = (grid.ravel() for grid in np.meshgrid(words(EDGE), words(EDGE)))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert field.multiply(a, b).tolist() == [x * y % P for x, y in pairs]
    assert field.add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert field.subtract(a, b).tolist() == [(x - y) % P for x, y in pairs]


@settings(max_examples=60, deadline=None)
@given(COLUMNS)
def test_arithmetic_is_that_of_integers(pairs):
    a, b = words([x for x, _ in pairs]), words([y for _, y in pairs])
    assert field.multiply(a, b).tolist() == [x * y % P for x, y in pairs]
    assert field.add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert field.subtract(a, b).tolist() == [(x - y) % P for x, y in pairs]
    whole = words([x for x, _ in pairs if x])
    assert field.invert(whole).tolist() == [pow(x, -1, P) for x in whole.tolist()]


@pytest.mark.parametrize(("left", "right"), [((2503, 7), (1, 7)), ((1, 20_011), (3, 1)), ((40_009,), (1,))])
def test_long_products_are_made_piece_by_piece(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    draw = np.random.default_rng(1)
    a, b = (draw.integers(0, P, shape, np.uint64) for shape in (left, right))
    assert np.array_equal(field.multiply(a, b), a.astype(object) * b.astype(object) % P)


def test_zero_has_no_inverse_and_words_are_reduced():
    with pytest.raises(InputError, match="no inverse"):
        field.invert(words([3, 0]))
    ends = [0, P - 1, P, P + 1, (1 << 64) - 1]
    assert field.from_words(words(ends)).tolist() == [x % P for x in ends]


def test_elements_are_below_the_prime():
    assert field.elements("x", np.array([0, P - 1])).dtype == np.uint64
    for wrong in ([P], [-1], [0.5]):
        with pytest.raises(InputError, match=r"x: needs integers in 0 .. 2\^61 - 2"):
            field.elements("x", np.array(wrong))


@settings(max_examples=80, deadline=None)
@given(MODULI, st.data())
def test_sums_are_exact_for_every_modulus(modulus, data):
    values = data.draw(st.lists(st.integers(0, modulus - 1), min_size=0, max_size=17))
    assert field.modular_sum(words(values), modulus) == sum(values) % modulus
    table = words(values + values[::-1]).reshape(2, len(values))
    assert field.modular_sum(table, modulus, axis=1).tolist() == [sum(values) % modulus] * 2


@settings(max_examples=80, deadline=None)
@given(MODULI, st.data())
def test_residues_and_centred_are_inverse(modulus, data):
    low, high = -(modulus // 2), (modulus - 1) // 2
    signed = [*data.draw(st.lists(st.integers(low, high), max_size=9)), low, high, 0]
    there = field.residues(np.array(signed, np.int64), modulus)
    assert there.tolist() == [x % modulus for x in signed]
    assert field.centred(there, modulus).tolist() == signed


def test_negative_noise_comes_back_negative():
    noise = field.residues(np.array([-5, 2, -1]), P)
    assert field.centred(field.modular_sum(noise), P) == -4
    assert field.centred(np.array([P - 4]), P).tolist() == [-4]
    assert field.centred(P // 2, P) == P // 2
    assert field.centred(P // 2 + 1, P) == -(P // 2)
    assert field.centred(np.array([4, 5]), 10).tolist() == [4, -5]


@pytest.mark.parametrize(
    "call",
    [
        lambda: field.centred(np.array([10]), 10),
        lambda: field.centred(np.array([-1]), 10),
        lambda: field.residues(np.array([5]), 10),
        lambda: field.residues(np.array([-6]), 10),
        lambda: field.modular_sum(np.array([10]), 10),
        lambda: field.modular_sum(np.array([0.5]), 10),
        lambda: field.modular_sum(np.array([0]), 0),
        lambda: field.centred(np.array([0]), (1 << 64) + 1),
    ],
)
def test_what_is_no_residue_is_refused(call):
    with pytest.raises(InputError, match="modul"):
        call()


@pytest.mark.parametrize("width", [1, 6, 7, 8, 14, 32])
def test_bytes_become_elements_and_come_back(width):
    rows = np.vstack([np.full((1, width), 255), np.arange(3 * width).reshape(3, width) % 256]).astype(
        np.uint8
    )
    elements = field.from_octets(rows)
    assert elements.shape == (4, -(-width // 7))
    assert int(elements.max()) < P
    assert (field.to_octets(elements, width) == rows).all()
    with pytest.raises(InputError, match="do not stand for"):
        field.to_octets(elements + np.uint64(1 << 56), width)
    with pytest.raises(InputError, match="elements, not"):
        field.to_octets(elements, width + 7)

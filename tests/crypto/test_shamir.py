"""Secret sharing against a slow oracle, all sets of shares, and the sets that must give nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2p_sim import InputError
from p2p_sim.core.random_words import words
from p2p_sim.crypto import field, shamir
from p2p_sim.crypto.shamir import ShareError

P = field.PRIME


def uniform(*shape: int, seed: int = 1) -> np.ndarray:
    return words(seed, 5, 0, int(np.prod(shape))).reshape(shape)


def oracle(secret: int, coefficients: list[int], x: int) -> int:
    return (secret + sum(c * x**power for power, c in enumerate(coefficients, 1))) % P


def interpolate(points: list[tuple[int, int]]) -> int:
    total = 0
    for x, y in points:
        weight = 1
        for other, _ in points:
            if other != x:
                weight = weight * other * pow(other - x, -1, P) % P
        total += y * weight
    return total % P


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 10**6))
def test_shares_are_those_of_the_oracle_and_every_set_recovers(threshold, more, seed):
    count = threshold + more
    secrets = field.from_words(uniform(3, 2, seed=seed))
    chance = uniform(3, threshold - 1, 2, seed=seed + 1)
    shares = shamir.share(secrets, threshold, count, chance)
    for m, at in np.ndindex(3, 2):
        expected = [oracle(int(secrets[m, at]), chance[m, :, at].tolist(), x) for x in range(1, count + 1)]
        assert shares[m, :, at].tolist() == expected
    for some in combinations(range(count), threshold):
        positions = np.array(some)
        assert (shamir.recover(shares[:, positions], positions + 1, threshold) == secrets).all()
        pairs = [(x + 1, int(shares[0, x, 0])) for x in some]
        assert interpolate(pairs) == secrets[0, 0]


def test_one_share_below_the_threshold_fits_every_secret():
    # of a line through (0, s) and (1, share) the share says nothing: for each guess of s one coefficient gives it
    secret, chance = field.from_words(uniform(1, 1)), field.from_words(uniform(1, 1, 1, seed=2))
    seen = shamir.share(secret, 2, 3, chance)
    for guess in (0, 1, P - 1):
        other = np.array([[guess]], np.uint64)
        fitting = field.subtract(seen[:, :1], other[:, None])
        again = shamir.share(other, 2, 3, fitting)
        assert again[0, 0, 0] == seen[0, 0, 0]
        assert again[0, 1, 0] != seen[0, 1, 0]


def test_each_secret_may_have_survivors_of_its_own():
    secrets = field.from_words(uniform(50, 5))
    shares = shamir.share(secrets, 4, 9, uniform(50, 3, 5))
    present = uniform(50, 9, seed=9) % 3 > 0
    present[:, :4] |= present.sum(axis=1, keepdims=True) < 4
    at = np.argsort(~present, axis=1, kind="stable")[:, :4]
    given_shares = np.take_along_axis(shares, at[:, :, None], 1)
    assert (shamir.recover(given_shares, at + 1, 4) == secrets).all()


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([1, 2], "too few shares: 3 are needed, 2 given"),
        ([1, 2, 2], "3 shares at 2 different points"),
        ([1, 2, 3, 3], "4 shares at 3 different points"),
        ([0, 1, 2], "x = 0"),
        ([1, 2, 4], None),
    ],
)
def test_sets_that_give_no_secret(points, text):
    secrets = field.from_words(uniform(2, 5))
    shares = shamir.share(secrets, 3, 5, uniform(2, 2, 5))
    some = shares[:, np.array(points) - 1]
    if text is None:
        assert (shamir.recover(some, np.array(points), 3) == secrets).all()
    else:
        with pytest.raises(ShareError, match=text):
            shamir.recover(some, np.array(points), 3)


def test_a_changed_share_beyond_the_threshold_is_noticed():
    shares = shamir.share(field.from_words(uniform(2, 5)), 3, 5, uniform(2, 2, 5))
    for position in range(5):
        changed = shares.copy()
        changed[1, position, 2] ^= np.uint64(1)
        with pytest.raises(ShareError, match=r"1 of 2 secrets: share \d of 5 does not agree with 3 others"):
            shamir.recover(changed, np.arange(1, 6), 3)


@pytest.mark.parametrize(
    ("threshold", "shares", "shape", "text"),
    [
        (0, 3, (1, 0, 1), "threshold = 0 of 3"),
        (4, 3, (1, 3, 1), "threshold = 4 of 3"),
        (2, 3, (1, 2, 1), r"words: needs uint64 of shape \(1, 1, 1\)"),
    ],
)
def test_thresholds_and_words_are_checked(threshold, shares, shape, text):
    with pytest.raises(InputError, match=text):
        shamir.share(np.array([[5]]), threshold, shares, uniform(*shape))


def test_secrets_and_points_are_checked():
    with pytest.raises(InputError, match="secrets: needs integers"):
        shamir.share(np.array([[P]]), 1, 1, uniform(1, 0, 1))
    with pytest.raises(InputError, match="secrets: needs the shape"):
        shamir.share(np.array([5]), 1, 1, uniform(1, 0, 1))
    with pytest.raises(ShareError, match="needs one a share"):
        shamir.recover(np.array([[[5], [6]]]), np.array([1]), 1)
    with pytest.raises(InputError, match="threshold = 0"):
        shamir.recover(np.array([[[5]]]), np.array([1]), 0)


def test_a_secret_of_bytes_comes_back_and_a_changed_share_of_it_is_noticed():
    secret = np.arange(200, 232).astype(np.uint8)[None]
    shares = shamir.share(field.from_octets(secret), 3, 5, uniform(1, 2, 5))[:, :3]
    points = np.arange(1, 4)
    assert (shamir.join_octets(shamir.recover(shares, points, 3), 32) == secret).all()
    shares[0, 1, 0] ^= np.uint64(1 << 57)
    with pytest.raises(ShareError, match="not one of 32 bytes: a share was changed"):
        shamir.join_octets(shamir.recover(shares, points, 3), 32)

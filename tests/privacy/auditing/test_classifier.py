"""Attacks on views without a law: what they find, and that they find nothing where nothing is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing.classifier import fit, thresholds
from p2p_sim.privacy.auditing.confidence_bounds import count, delta_lower, epsilon_lower
from p2p_sim.privacy.auditing.features import common, features
from p2p_sim.privacy.auditing.seen import Seen
from tests.privacy.auditing.seen import columns, forwarded, message, reports, told

CONFIDENCE = 0.99


def bits(seed, worlds, size, first, others=0.5):
    chance = np.full(size, others)
    chance[0] = first
    return np.random.default_rng(seed).random((worlds, size)) < chance


def attack(a, b):
    """Learn on the worlds with even index, count on the others: an audit's steps."""
    scorer = fit(a[0::2], b[0::2])
    cuts = thresholds(scorer.scores(a[0::2]), scorer.scores(b[0::2]))
    return count(scorer.scores(a[1::2]), scorer.scores(b[1::2]), *cuts), scorer


def against(seen_a, seen_b):
    """The lower bound of epsilon at delta 0."""
    (a, b), _ = common([features(seen_a), features(seen_b)])
    return epsilon_lower(attack(a, b)[0], 0.0, CONFIDENCE).value


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5, 16, 40])
def test_a_bit_flipped_a_little_more_often_is_found(size):
    a, b = bits(1, 100_000, size, 0.25, 0.4), bits(2, 100_000, size, 0.27, 0.4)
    assert 0 < against(reports(a), reports(b)) <= np.log(0.27 / 0.25)


@pytest.mark.parametrize("size", [3, 6, 10])
def test_a_shuffler_that_keeps_the_order_is_found(size):
    """The first bit tells e^2.2; in a random order no event is so likely to."""
    a, b = bits(3, 10_000, size, 0.1), bits(4, 10_000, size, 0.9)
    kept = epsilon_and_delta(forwarded(a), forwarded(b))
    generator = np.random.default_rng(5)
    mixed = epsilon_and_delta(*(forwarded(generator.permuted(x, axis=1)) for x in (a, b)))
    assert 1.9 < kept[0] <= np.log(9)
    shares = stats.binom.pmf(
        np.arange(size), size - 1, 0.5
    )  # total variation of the sums: 0.8 max |P(k) - P(k-1)|
    assert mixed[1] <= 0.8 * shares.max()
    assert kept[1] > 0.75


def epsilon_and_delta(seen_a, seen_b):
    (a, b), _ = common([features(seen_a), features(seen_b)])
    hits, _ = attack(a, b)
    return epsilon_lower(hits, 0.0, CONFIDENCE).value, delta_lower(hits, 0.0, CONFIDENCE).value


def laplace(seed, mean, scale, count=30_000):
    stop = 1 - np.exp(-1 / scale)
    first, second = np.random.default_rng(seed).geometric(stop, (2, count))
    return told(first - second + mean)


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_a_sum_shifted_by_one_in_laplace_noise_is_found(scale):
    assert 0.6 / scale < against(laplace(6, 0, scale), laplace(7, 1, scale)) <= 1 / scale


def test_noise_of_the_wrong_scale_is_found():
    assert against(laplace(8, 0, 10), laplace(9, 0, 5)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 10, 16])
def test_a_value_that_tells_only_together_with_its_sender_is_found(size):
    """The bit is the label, the sender's parity and noise, xor-ed; beside it a number that fits no table."""
    kind = message("odd", "user", "learner", y=bool, k=int)

    def seen(seed, label, worlds=10_000):
        generator = np.random.default_rng(seed)
        place = generator.integers(0, size, worlds)
        y = ((place + label) % 2 == 1) ^ (generator.random(worlds) < 0.1)
        fields = {"y": y, "k": generator.integers(0, 10**6, worlds)}
        return Seen(size, worlds, 0, {"odd": columns(kind, np.arange(worlds) * size + place, 0, fields)})

    assert 1.8 < against(seen(10, 0), seen(11, 1)) <= np.log(9)


def three_way(seed, label, noise, worlds=10_000):
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 2, (worlds, 3))
    values[:, 2] = values[:, 0] ^ values[:, 1] ^ label ^ (generator.random(worlds) < 0.1)
    return np.concatenate([values, generator.integers(0, noise, (worlds, 1))], axis=1).astype(float)


@pytest.mark.parametrize("noise", [2, 10**6])
def test_a_dependence_of_three_columns_is_found(noise):
    hits, scorer = attack(three_way(12, 0, noise), three_way(13, 1, noise))
    assert scorer.name.startswith("table")
    assert 1.8 < epsilon_lower(hits, 0.0, CONFIDENCE).value <= np.log(9)


def bumps(seed, label):
    values = np.random.default_rng(seed).integers(0, 10**6, (10_000, 1)).astype(float)
    odd = (values // 50_000 % 2 == 1) & (values < 400_000)
    return values - 50_000 * odd * label


def test_a_bump_in_a_column_of_many_values_is_found():
    hits, scorer = attack(bumps(22, 0), bumps(23, 1))
    assert scorer.name == "trees"
    assert epsilon_lower(hits, 0.0, CONFIDENCE).value > 1


def test_a_kind_of_message_that_one_world_alone_sends_is_found():
    kind = message("leak", "user", "learner")
    quiet = reports(bits(14, 10_000, 3, 0.5))
    loud = reports(bits(15, 10_000, 3, 0.5))
    leaks = columns(kind, 3 * np.flatnonzero(np.random.default_rng(16).random(10_000) < 0.05), 0, {})
    assert against(quiet, Seen(3, 10_000, 0, {**loud.kinds, "leak": leaks})) > 2


def test_a_perfect_attack_is_finite():
    assert 6 < against(reports(np.zeros((20_000, 3), bool)), reports(np.ones((20_000, 3), bool))) < 10


NULLS = {
    "reports": lambda seed: reports(bits(seed, 1000, 4, 0.3)),
    "order": lambda seed: forwarded(bits(seed, 1000, 8, 0.5)),
    "noise": lambda seed: told(np.random.default_rng(seed).integers(0, 2**40, (1000, 5))),
}


@pytest.mark.slow
@pytest.mark.parametrize("view", NULLS)
def test_where_nothing_is_nothing_is_found_at_the_stated_rate(view):
    confidence, alarms = 0.9, 0
    for seed in range(20):
        (a, b), _ = common([features(NULLS[view](1000 + 2 * seed + world)) for world in (0, 1)])
        hits, _ = attack(a, b)
        alarms += epsilon_lower(hits, 0.0, confidence).value > 0
    assert alarms <= stats.binom.isf(1e-9, 20, 1 - confidence)


def test_counting_on_the_half_learned_from_would_find_what_is_not():
    """The broken twin: a table with as many rows as worlds knows its own half by heart."""
    table = np.random.default_rng(17).integers(0, 1000, (2, 400, 1)).astype(float)
    from p2p_sim.privacy.auditing import classifier

    known = classifier._table(np.array([0]), 0.5)(*table)
    cuts = thresholds(known(table[0]), known(table[1]))
    assert epsilon_lower(count(known(table[0]), known(table[1]), *cuts), 0.0, 0.95).value > 0.5


@pytest.mark.slow
def test_scores_do_not_depend_on_threads_or_repetition():
    a, b = bumps(18, 0), bumps(19, 1)
    scores = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            scorer = fit(a, b)
            scores.append(scorer.scores(b))
    assert scorer.name == "trees"
    assert all(np.array_equal(scores[0], other) for other in scores[1:])
    assert scores[0].mean() > 0 > scorer.scores(a).mean()


def test_thresholds_reach_from_few_rows_to_the_middle_in_both_directions():
    a, b = np.random.default_rng(20).normal([[0.0], [1.0]], size=(2, 10_000))
    above, below = thresholds(a, b, 8)
    reach = [np.sum(b >= t) for t in above], [np.sum(a <= t) for t in below]
    for hits in reach:
        assert 20 in hits
        assert 5000 in hits
        assert len(hits) == 8
    assert any(abs(t - 0.5) < 0.15 for t in above), "where the densities cross"
    swapped = thresholds(-b, -a, 8)
    assert np.array_equal(np.sort(-swapped[0]), np.sort(below))
    assert np.array_equal(np.sort(-swapped[1]), np.sort(above))
    one = thresholds(np.zeros(5), np.zeros(7), 8)
    assert [cut.tolist() for cut in one] == [[0.0], [0.0]]


def test_columns_constant_in_training_or_doubled_are_dropped():
    rows = np.random.default_rng(21).integers(0, 3, (2, 100, 1)).astype(float)
    wide = np.concatenate([np.ones_like(rows), rows, rows], axis=2)
    assert fit(*wide).columns.tolist() == [1]


def test_worlds_without_anything_to_see_give_a_constant_score():
    scorer = fit(np.zeros((50, 0)), np.zeros((50, 0)))
    assert scorer.scores(np.zeros((7, 0))).tolist() == [0.0] * 7
    assert epsilon_lower(attack(np.zeros((50, 2)), np.zeros((50, 2)))[0], 0.0, 0.95).value == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fit(np.zeros((5, 2)), np.zeros((5, 3))), "the same columns"),
        (lambda: fit(np.zeros((5, 2)), np.zeros((0, 2))), "worlds to learn from: 5 and 0"),
        (lambda: fit(np.zeros((5, 2)), np.zeros((5, 2))).scores(np.zeros((5, 3))), "learned from 2 columns"),
    ],
)
def test_bad_tables_are_refused(call, text):
    with pytest.raises(InputError, match=text):
        call()

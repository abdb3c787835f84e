"""Mixtures of Gaussians as generators: draws against scipy's normal law, and likelihoods against 40 digits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import p2p_sim
from p2p_sim import InputError, Population, privacy
from protocols import DoubleResponse
from protocols.gaussian_mixtures import GaussianMixtures
from protocols.generator_texts import generator_of
from protocols.generators import Prototypes

USERS = 60_000
TABLE = [[(3, [0.0, 10.0]), (1, [4.0, -10.0])], [(1, [1.0, 2.0])]]
SPREAD = [[0.5, 1.0], [2.0, 0.3], [1.0, 0.0]]


def mixtures(spread: Any = SPREAD, table: Any = TABLE) -> GaussianMixtures:
    return GaussianMixtures(Prototypes(table), spread)


def drawn(generator: GaussianMixtures, label: int) -> Any:
    people = Population.from_arrays(y=np.full(USERS, label, np.uint8))
    protocol = DoubleResponse(0.0, generator, truth=generator)
    return p2p_sim.run(protocol, people, seed=4).output("learner")["x"]


def furthest(x: Any, law: Any, step: float) -> float:
    """How far the shares up to each value are from a law at most, less half a step of the grid on either side."""
    values = np.unique(x)
    below = np.searchsorted(np.sort(x), values, side="right") / len(x)
    low, high = law(values - 0.5 * step), law(values + 1.5 * step)
    return float(np.maximum(low - below, below - high).max())


LIMIT = math.sqrt(math.log(2 / 1e-9) / (2 * USERS))
"""Of the largest difference, with a false alarm of 1e-9 (Dvoretzky, Kiefer, Wolfowitz, Massart)."""


def first_feature(values: Any, spread: Any = SPREAD) -> Any:
    return 0.75 * stats.norm.cdf(values, 0, spread[0][0]) + 0.25 * stats.norm.cdf(values, 4, spread[1][0])


def test_features_have_the_law_of_the_mixture() -> None:
    x = drawn(mixtures(), 0)
    assert furthest(x[:, 0], first_feature, 2 / 32) < LIMIT
    assert (
        furthest(x[:, 0], lambda v: first_feature(v, [[0.7], [2.0]]), 2 / 32) > LIMIT
    )  # a law that is wrong
    assert abs(np.corrcoef(x[x[:, 1] > 0].T)[0, 1]) < 6 / math.sqrt(0.75 * USERS)  # noise is independent
    one = drawn(mixtures(), 1)
    assert set(one[:, 1]) == {2.0}
    assert furthest(one[:, 0], lambda v: stats.norm.cdf(v, 1, 1), 1 / 32) < LIMIT


def test_a_kernel_is_a_mixture_with_the_same_noise() -> None:
    whole = mixtures([[0.25, 0.5]] * 3)
    assert (drawn(mixtures([0.25, 0.5]), 0) == drawn(whole, 0)).all()


def test_the_grid_is_fine_and_deviations_are_kept_to_it() -> None:
    for spread in (2.0**-11, 0.0313, 0.1, 1.0, 1.999, 3.7, 200.0):
        found = mixtures(spread, [[(1, [0.0])], [(1, [100.0])]])
        step = 2.0 ** (int(found._shifts[0, 0]) - 16)
        assert 32 <= found._steps[0, 0] <= 63
        assert abs(found._steps[0, 0] * step - spread) <= spread / 63
        assert (np.rint(drawn(found, 0) / step) * step == drawn(found, 0)).all()


def test_likelihoods_are_those_of_the_drawn_law() -> None:
    """Against sums of 40 digits over all of the grid."""
    found = mixtures()
    x = np.array([[0.5, 10.0], [4.0, -10.0], [1.0, 2.0], [2.0, 9.0]])

    def chance(value: float, mean: float, spread: float) -> Any:
        if not spread:
            return mpmath.mpf(int(value == mean))
        step = 2.0 ** (math.frexp(spread)[1] - 6)
        steps, k = round(spread / step), (value - mean) / step
        if k != round(k):
            return mpmath.mpf(0)
        total = mpmath.fsum(mpmath.exp(-mpmath.mpf(j * j) / (2 * steps**2)) for j in range(-1000, 1001))
        return mpmath.exp(-mpmath.mpf(round(k) ** 2) / (2 * steps**2)) / total

    def of_label(row: Any, entries: Any, spreads: Any) -> Any:
        parts = [
            mpmath.mpf(weight) * mpmath.fprod(map(chance, row.tolist(), mean, spread))
            for (weight, mean), spread in zip(entries, spreads, strict=True)
        ]
        return mpmath.fsum(parts) / sum(weight for weight, _ in entries)

    with mpmath.workdps(40):
        for row, got in zip(x, found.likelihood(x), strict=True):
            labels = [of_label(row, TABLE[0], SPREAD[:2]), of_label(row, TABLE[1], SPREAD[2:])]
            assert np.allclose(got, [float(each / max(labels)) for each in labels], rtol=1e-9, atol=0)


def test_likelihoods_are_cut_into_blocks_and_0_off_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    found, x = mixtures(), drawn(mixtures(), 0)[:50]
    whole = found.likelihood(x)
    monkeypatch.setattr("protocols.gaussian_mixtures.BLOCK", 20)
    assert (found.likelihood(x) == whole).all()
    assert (whole.max(axis=1) == 1).all()
    assert found.likelihood([[2.0**-16, 10.0 + 2.0**-16]]).tolist() == [[0.0, 0.0]]
    assert found.likelihood(np.zeros((0, 2))).shape == (0, 2)


def test_blocks_do_not_matter() -> None:
    people = Population.synthetic(users=300, seed=1)
    protocol = DoubleResponse(0.4, mixtures(), truth=mixtures(0.25))
    assert len({p2p_sim.run(protocol, people, seed=3, blocks=blocks).digest for blocks in (1, 2, 7)}) == 1


def test_the_law_is_that_of_other_generators_without_an_end() -> None:
    found = mixtures()
    public = privacy.profile(DoubleResponse(0.5, found), view="learner")
    assert public.basis == "exact"
    assert math.isclose(public.epsilon(0.0), math.log(3))
    perfect = privacy.profile(DoubleResponse(0.5, found, truth=found), view="learner")
    assert perfect.basis == "upper"
    assert math.isclose(perfect.epsilon(0.0), 2 * math.log(3))
    assert (
        privacy.profile(DoubleResponse(0.5, found, truth=mixtures(0.25)), view="learner").basis == "refused"
    )
    none = mixtures(0.0)
    assert (
        privacy.profile(DoubleResponse(0.5, none, truth=Prototypes(TABLE)), view="learner").basis == "exact"
    )


def test_a_file_may_say_how_much_noise_there_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("label,weight,a,b,deviation b,deviation a\n0,3,0,10,1,.5\n1,1,1,2,0,1\n0,1,4,-10,.3,2\n")
    several = generator_of("generator", DoubleResponse(0.5, str(path)).generator, 2)
    assert isinstance(several, GaussianMixtures)
    for part in ("_codes", "_steps", "_shifts"):
        assert (getattr(several, part) == getattr(mixtures(), part)).all()
    path.write_text("label,a,deviation,b\n0,0,.5,1\n1,1,0,2\n")
    one = generator_of("generator", DoubleResponse(0.5, str(path)).generator, 2)
    assert isinstance(one, GaussianMixtures)
    assert (one._steps > 0).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("label,a,deviation c\n0,1,1\n1,1,1\n", ["'deviation c'", "['a']", "deviation NAME"]),
        ("label,a,deviation,deviation a\n0,1,1,1\n1,1,1,1\n", ["'deviation a'", "one of all"]),
        ("label,deviation\n0,1\n1,1\n", ["first line", "features"]),
        ("label,a,deviation\n0,1,-1\n1,1,1\n", ["deviation of feature 0 of row 0 is -1.0", "2^-17"]),
        ("label,a,deviation\n0,1,x\n1,1,1\n", ["line 2", "must be a number"]),
        ("label,a,deviation\n0,32767,1\n1,1,1\n", ["mean 32767.0", "ten deviations", "scale"]),
    ],
)
def test_files_whose_noise_cannot_be_are_named(tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        DoubleResponse(0.5, str(path))
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("spread", "words"),
    [
        ([1.0, 2.0, 3.0], ["shape (3, 2)"]),
        ("wide", ["no numbers"]),
        (math.nan, ["row 0 is nan"]),
        (1e-6, ["1e-06", "2^-17"]),
    ],
)
def test_other_deviations_are_named(spread: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        mixtures(spread)
    assert all(word in str(caught.value) for word in words), caught.value

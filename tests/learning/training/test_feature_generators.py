"""Generators of features fitted to public examples, held to scikit-learn's own densities; and a conditional GAN."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.learning.training.feature_generators import FeatureTable, gaussian_mixture, kernel_density
from protocols import DoubleResponse
from protocols.gaussian_mixtures import GaussianMixtures
from protocols.generator_texts import generator_of
from protocols.generators import Prototypes


@pytest.fixture(scope="module")
def public() -> tuple[Any, Any]:
    """Examples of two labels and two features of other sizes, of which the second is not Gaussian."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [60, 40])
    return np.column_stack([rng.normal(y * 3, 1), 50 * rng.exponential(1, 100) * (1 + y)]), y


def densities(table: FeatureTable, x: Any) -> Any:
    return GaussianMixtures(Prototypes(table.entries()), table.deviations).likelihood(x)


def on_grid(table: FeatureTable, label: int, count: int = 20) -> Any:
    """Rows near those of a label that noise can give."""
    found = GaussianMixtures(Prototypes(table.entries()), table.deviations)
    return found._codes[table.label == label][:count] / 2**16


@pytest.mark.parametrize("bandwidth", ["scott", 0.3])
def test_a_kernel_density_is_scikit_learns(public: tuple[Any, Any], bandwidth: Any) -> None:
    x, y = public
    table = kernel_density(x, y, bandwidth=bandwidth)
    if bandwidth == 0.3:
        rows, scale = on_grid(table, 0), x.std(axis=0)
        theirs = [
            KernelDensity(bandwidth=0.3).fit(x[y == label] / scale).score_samples(rows / scale)
            for label in (0, 1)
        ]
        ours = np.log(densities(table, rows))
        assert np.allclose(ours[:, 1] - ours[:, 0], theirs[1] - theirs[0], atol=0.1)
    else:
        assert np.allclose(table.deviations[0], 60 ** (-1 / 6) * x.std(axis=0))
        assert np.allclose(table.deviations[-1], 40 ** (-1 / 6) * x.std(axis=0))
    assert table.weight.tolist() == [1] * 100


def test_kernels_of_a_part_of_the_rows(public: tuple[Any, Any]) -> None:
    x, y = public
    table = kernel_density(x, y, rows=10)
    assert (table.rows[0] == x[0]).all()
    assert np.bincount(table.label).tolist() == [10, 10]


def test_a_mixture_is_scikit_learns(public: tuple[Any, Any]) -> None:
    x, y = public
    table = gaussian_mixture(x, y, components=3, seed=1)
    scale = x.std(axis=0)
    z = (x - x.mean(axis=0)) / scale
    for label in (0, 1):
        model = GaussianMixture(3, covariance_type="diag", random_state=1).fit(z[y == label])
        mine = table.label == label
        assert np.allclose(table.weight[mine] / table.weight[mine].sum(), model.weights_, atol=1e-5)
        assert np.allclose(table.rows[mine], model.means_ * scale + x.mean(axis=0))
        assert np.allclose(table.deviations[mine], np.sqrt(model.covariances_) * scale)
    assert gaussian_mixture(x, y, components=3, seed=1).csv() == table.csv()


def test_a_label_with_one_example_and_a_feature_that_never_changes() -> None:
    x, y = np.array([[1.0, 7], [2, 7], [3, 7], [9, 7]]), [0, 0, 0, 1]
    for table in (gaussian_mixture(x, y, components=2), kernel_density(x, y)):
        assert (table.deviations[:, 1] == 0).all()
        assert table.rows[table.label == 1].tolist() == [[9, 7]]


def test_a_fitted_table_goes_into_a_run_by_its_file(public: tuple[Any, Any], tmp_path: Path) -> None:
    x, y = public
    path = tmp_path / "mixture.csv"
    table = gaussian_mixture(x, y)
    path.write_text(table.csv(["a", "b, too"]))
    protocol = DoubleResponse(0.3, str(path))
    people = Population.from_arrays(y=y.astype(bool), x=x)
    of_file = p2p_sim.run(protocol, people, seed=1)
    found = GaussianMixtures(Prototypes(table.entries()), table.deviations)
    assert of_file.digest == p2p_sim.run(DoubleResponse(0.3, found), people, seed=1).digest


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": [0, 0, 0]}, ["label 1 has no public example"]),
        ({"y": [0, 1]}, ["y", "shape (2,)", "3 rows"]),
        ({"y": [0, 1, -1]}, ["from 0 up"]),
        ({"x": [[0.0], [math.nan], [1]]}, ["x", "not finite"]),
        ({"x": [0, 1, 2]}, ["shape (3,)", "(n, d)"]),
        ({"labels": 3}, ["label 2 has no public example"]),
        ({"y": [0, 1, 2], "labels": 2}, ["label 2", "labels = 2"]),
        ({"bandwidth": "wide"}, ["bandwidth = 'wide'", "scott"]),
        ({"bandwidth": 0.0}, ["bandwidth = 0.0"]),
        ({"rows": 0}, ["rows = 0"]),
    ],
)
def test_what_cannot_be_fitted_is_named(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        kernel_density(**{"x": [[0.0], [1], [2]], "y": [0, 1, 1], **given})
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["label", "a"], ["deviation a", "a"], ["a", "weight "]])
def test_names_that_a_file_cannot_have(public: tuple[Any, Any], names: list[str]) -> None:
    with pytest.raises(InputError, match="feature"):
        kernel_density(*public).csv(names)


def test_a_gan_makes_rows_like_its_examples(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from p2p_sim.learning.training.conditional_gan import conditional_gan

    x, y = load_digits(n_class=3, return_X_y=True)
    table = conditional_gan(x[:300], y[:300], rows=60, hidden=64, steps=400, learning_rate=2e-3, seed=0)
    assert np.bincount(table.label, table.weight).tolist() == [60] * 3
    assert not table.deviations.any()
    assert (table.rows >= x[:300].min(axis=0)).all()
    assert (table.rows <= x[:300].max(axis=0)).all()
    student = LogisticRegression().fit(table.rows / 16, table.label)
    assert student.score(x[300:] / 16, y[300:]) > 0.9  # without looking at any digit
    assert np.unique(table.rows[table.label == 1], axis=0).shape[0] > 30
    path = tmp_path / "gan.csv"
    path.write_text(table.csv())
    generator = generator_of("generator", DoubleResponse(0.5, str(path), 3).generator, 3)
    assert isinstance(generator, Prototypes)  # a finite law
    assert np.array_equal(generator.rows, table.rows)


def test_a_gan_depends_on_its_seed_alone() -> None:
    torch = pytest.importorskip("torch")
    from p2p_sim.learning.training.conditional_gan import conditional_gan

    x, y = load_digits(n_class=2, return_X_y=True)
    few = {"rows": 5, "hidden": 8, "steps": 5, "batch": 8}
    first = conditional_gan(x[:50], y[:50], **few)
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    assert conditional_gan(x[:50], y[:50], **few).csv() == first.csv()
    assert (torch.random.get_rng_state() == state).all()
    assert conditional_gan(x[:50], y[:50], seed=1, **few).csv() != first.csv()
    with pytest.raises(InputError, match="label 1 has no public example"):
        conditional_gan(x[:3], [0, 0, 0], **few)
    with pytest.raises(InputError, match="steps = 0"):
        conditional_gan(x[:3], [0, 1, 0], steps=0)

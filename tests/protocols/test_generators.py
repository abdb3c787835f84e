"""Generators of features: what is drawn against its weights, how they are written, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import exact
from p2p_sim.core.errors import ProtocolError
from p2p_sim.core.synthetic import STEPS, centres
from protocols import DoubleResponse
from protocols.generator_texts import generator_of
from protocols.generators import GaussianClasses, Generator, Prototypes, _gaussian

TABLE = "3*0,1;1*1,2.5|1*0,1;0*7,7;2*-3,0"


def drawn(protocol: Any, people: Population) -> Any:
    """What the generator draws: with lambda 1 all features are its own, for a uniform label."""
    return p2p_sim.run(protocol, people, seed=9).output("learner")["x"]


def test_rows_are_drawn_by_their_weights() -> None:
    people = Population.from_arrays(y=np.zeros(60_000, np.bool_))
    x = drawn(DoubleResponse(0.0, TABLE, truth=TABLE), people)
    rows, found = np.unique(x, axis=0, return_counts=True)
    assert rows.tolist() == [[0, 1], [1, 2.5]]
    limit = math.sqrt(math.log(2 / 1e-6) / (2 * len(x)))  # Hoeffding, false alarm 1e-6
    assert abs(found[0] / len(x) - 0.75) < limit


def test_a_table_says_what_it_draws() -> None:
    found = generator_of("generator", TABLE, 2)
    assert isinstance(found, Prototypes)
    rows, chances = found.finite()
    assert rows.tolist() == [[0, 1], [1, 2.5], [0, 1], [7, 7], [-3, 0]]
    none, third = Fraction(0), Fraction(1, 3)
    assert chances == [
        [Fraction(3, 4), Fraction(1, 4), none, none, none],
        [none, none, third, none, 2 * third],
    ]


def test_the_gaussian_is_that_of_made_up_users() -> None:
    weights, steps = _gaussian()
    bounds, first = exact.gaussian_thresholds(STEPS)
    assert (exact.cumulative("weights", weights) == bounds).all()
    assert (steps * STEPS == first + np.arange(len(weights))).all()
    y = np.arange(40_000, dtype=np.uint8) % 3
    people = Population.from_arrays(y=y)
    x = drawn(DoubleResponse(0.0, "gaussian:2", 3, truth="gaussian:2"), people)
    left = x - centres(3, 2)[y]
    assert (left * STEPS == np.rint(left * STEPS)).all()
    assert np.abs(left.mean(axis=0)).max() < 5.4 / math.sqrt(len(y))  # false alarm 1.4e-7
    assert np.abs(left.var(axis=0) - 1).max() < 5.4 * math.sqrt(2 / len(y))


def test_a_file_is_a_table_and_must_stay_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("label,a,weight,b\n0,0,3,1\n1,-3,2,0\n0,1,1,2.5\n1,0,1,1\n")
    protocol = DoubleResponse(0.5, str(path), truth="public")
    assert isinstance(protocol.generator, str)
    assert protocol.generator.startswith(f"{path}@")
    found = protocol.model()
    assert isinstance(found, Prototypes)
    rows, chances = found.finite()
    assert rows.tolist() == [[0, 1], [1, 2.5], [-3, 0], [0, 1]]
    assert chances[0][:2] == [Fraction(3, 4), Fraction(1, 4)]
    assert DoubleResponse(0.5, protocol.generator).width == 2
    text = protocol.generator.rpartition("@")[0] + "@0123456789abcdef"
    with pytest.raises(InputError, match=r"has changed since; its SHA-256 began with 0123456789abcdef"):
        DoubleResponse(0.5, text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", ["first line", "label"]),
        ("label\n0\n", ["first line", "features"]),
        ("", ["first line is []"]),
        ("label,a\n0,1\n", ["label 1 has no row"]),
        ("label,a\n0,1\n2,1\n", ["line 3", "label 2 is none of 0 to 1"]),
        ("label,a\n0,1\n1\n", ["line 3", "1 values", "names 2"]),
        ("label,a\n0,x\n1,1\n", ["line 2", "must be a number"]),
        ("label,a,weight\n0,1,-1\n1,1,1\n", ["weight", "label 0", "from 0 up"]),
        ("label,a,weight\n0,1,0\n1,1,1\n", ["all weights of label 0 are 0"]),
        ("label,a,weight\n0,1,1e-30\n0,2,1\n1,1,1\n", ["label 0", "2^62"]),
    ],
)
def test_files_that_are_no_table_are_named(tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        DoubleResponse(0.5, str(path))
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gaussian:x", ["'gaussian:x'", "whole number"]),
        ("gaussian:0", ["'gaussian:0'", "from 1 to 10,000"]),
        ("0", ["1 label", "at least two"]),
        ("0|", ["label 1 has no row"]),
        ("0,1|1", ["label 1", "1 features", "same number"]),
        ("x|1", ["'x'", "must be a number", "gaussian:2"]),
        ("0|1|2", ["rows of 3 labels", "labels = 2"]),
        ("no.csv", ["no.csv", "cannot be read"]),
        ("40000|1", ["generator", "40000", "scale"]),
        (5, ["generator = 5", "Generator, or text"]),
        (Prototypes([[(1, [0.0])], [(1, [1.0])], [(1, [2.0])]]), ["3 labels", "labels = 2"]),
    ],
)
def test_what_is_no_generator_is_named(spec: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        DoubleResponse(0.5, spec)
    assert all(word in str(caught.value) for word in words), caught.value


@dataclass(frozen=True)
class Wrong(Generator):
    """Gives something else than it says."""

    gives: Any = field(compare=False)
    labels: int = 2
    width: int = 2

    def drawn(self, draw: Any, name: str, labels: Any) -> Any:
        return self.gives(len(labels))


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (lambda n: np.zeros((n, 3)), ["generator: gave float64 of shape (4, 3)", "width 2", "(4, 2)"]),
        (lambda n: np.zeros(n), ["shape (4,)"]),
        (lambda n: np.zeros((1, 2)), ["shape (1, 2)"]),
        (lambda n: np.full((n, 2), "a"), ["gave <U1"]),
        (lambda n: np.full((n, 2), np.nan), ["nan"]),
    ],
)
def test_a_generator_that_gives_other_shapes_is_named(gives: Any, words: list[str]) -> None:
    people = Population.from_arrays(y=[True, False, True, False])
    with pytest.raises(ProtocolError) as caught:
        p2p_sim.run(DoubleResponse(1.0, Wrong(gives), truth="0,1|1,0"), people, seed=1)
    assert all(word in str(caught.value) for word in words), caught.value


def test_one_of_your_own_draws_as_it_likes() -> None:
    class Coins(Generator):
        labels, width = 2, 1

        def drawn(self, draw: Any, name: str, labels: Any) -> Any:
            return draw.bernoulli(name, np.where(labels == 1, 0.9, 0.1))[:, None]

    people = Population.from_arrays(y=np.arange(20_000) % 2 == 0)
    x = drawn(DoubleResponse(0.0, Coins(), truth=Coins()), people)[:, 0]
    assert abs(x[people.y].mean() - 0.9) < 0.03
    assert abs(x[~people.y].mean() - 0.1) < 0.03


def test_gaussians_of_one_shape_are_the_same() -> None:
    assert GaussianClasses(2, 3) == GaussianClasses(2, 3)
    assert generator_of("truth", "gaussian:3", 2) == GaussianClasses(2, 3)

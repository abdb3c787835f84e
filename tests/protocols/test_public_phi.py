"""phi of cluster response from a public sample: its definition in floats, how it is given, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, privacy
from protocols import ClusterResponse
from protocols.public_phi import phi_of


def by_definition(y: Any, c: Any, x: Any) -> float:
    """The mean over rows of sum_y |p(y | x) - p(y | c)|."""
    whole = 0.0
    for i in range(len(y)):
        of_x, of_c = y[(x == x[i]).all(axis=1)], y[c == c[i]]
        whole += sum(abs((of_x == label).mean() - (of_c == label).mean()) for label in set(y.tolist()))
    return whole / len(y)


def test_phi_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    y, c, x = rng.integers(0, 4, 200), rng.integers(0, 6, 200), rng.integers(0, 3, (200, 2))
    own = np.arange(200)[:, None]
    assert math.isclose(phi_of(y, c, x), by_definition(y, c, x), rel_tol=1e-12)
    assert math.isclose(phi_of(y, c), by_definition(y, c, own), rel_tol=1e-12)
    assert phi_of(y, c) > phi_of(y, c, x)
    assert phi_of(y, c, np.ones((200, 1))) != phi_of(y, c, x)  # a twin that ignores features would be seen
    counts = np.array([np.bincount(y[c == each], minlength=4) for each in range(6)])
    largest = 2 * (1 - ((counts**2).sum(axis=1) / counts.sum(axis=1)).sum() / 200)
    assert math.isclose(phi_of(y, c), largest, rel_tol=1e-12)  # what a curator estimates for phi_share
    assert phi_of([1, 1, 1], [0, 0, 0]) == 1 / 3  # tau must be above 0


@pytest.fixture
def sample(tmp_path: Path) -> str:
    path = tmp_path / "sample.csv"
    path.write_text("cluster,label,age\nnorth,0,1\nnorth,0,1\nnorth,1,2\nsouth,2,1\n south ,2,3\n\n")
    return str(path)


def test_a_file_gives_phi_that_costs_nothing(sample: str) -> None:
    protocol = ClusterResponse(1.0, 30, phi_sample=sample)
    # ages of 1 say 0, 0, 2; the two of the north differ by 0, 1/3 and 1/3, and so on
    y, c = np.array([0, 0, 1, 2, 2]), np.array([0, 0, 0, 1, 1])
    expected = by_definition(y, c, np.array([[1], [1], [2], [1], [3]]))
    assert math.isclose(protocol.phi, expected)
    plain = ClusterResponse(1.0, 30, phi=protocol.phi)
    assert protocol.settings() == plain.settings()
    for each, words in ((protocol, "public sample"), (plain, "phi is public")):
        found = privacy.profile(each, view="learner")
        assert found.epsilon(0.0) <= 1.0
        assert any(words in line and "includes nothing" in line for line in found.assumes)
    assert not any("includes nothing" in line for line in privacy.profile(
        ClusterResponse(1.0, 10, phi_share=0.2), view="learner").assumes)  # fmt: skip
    again = ClusterResponse(**protocol.parameters())
    assert again == protocol
    assert protocol.phi_sample.startswith(f"{sample}@")
    Path(sample).write_text("cluster,label\n0,0\n")
    with pytest.raises(InputError, match="has changed since"):
        ClusterResponse(2.0, 29, phi_sample=protocol.phi_sample)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("cluster,age\n0,1\n", ["first line", "label and cluster"]),
        ("label,label,cluster\n", ["each once"]),
        ("label,cluster\n", ["has no rows"]),
        ("label,cluster\n0,\n", ["line 2", "no cluster"]),
        ("label,cluster\n0,a\n4,a\n", ["line 3", "label 4 is none of 0 to 3"]),
        ("label,cluster\nx,a\n", ["line 2", "whole number"]),
        ("label,cluster\n1\n", ["line 2", "1 values"]),
    ],
)
def test_files_that_are_no_sample_are_named(tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "sample.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        ClusterResponse(1.0, 4, phi_sample=str(path))
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("more", [{"phi": 0.3}, {"phi_share": 0.1}, {"preset": "uniform"}])
def test_one_source_of_phi(sample: str, more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="give one of phi, phi_share and phi_sample"):
        ClusterResponse(1.0, 4, phi_sample=sample, **more)


def test_other_things_are_no_sample() -> None:
    for wrong in ("sample.txt", 5):
        with pytest.raises(InputError, match="phi_sample"):
            ClusterResponse(1.0, phi_sample=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be read"):
        ClusterResponse(1.0, phi_sample="no.csv")
    for y, c, x in (([], [], None), ([0, 1], [0], None), ([0, 1], [0, 1], [[1]])):
        with pytest.raises(InputError):
            phi_of(y, c, x)

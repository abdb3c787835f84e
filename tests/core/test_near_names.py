"""A name is suggested for another only where they are alike, whatever dashes, folders and endings they share."""

from __future__ import annotations

import pytest

from p2p_sim.core.errors import near, near_path


@pytest.mark.parametrize(
    ("value", "known", "found"),
    [
        ("--sed", ["--seed", "--share"], "; did you mean '--seed'?"),
        ("--alpha", ["--graph", "--epsilon"], ""),
        ("learner", ["learner"], ""),
    ],
)
def test_a_near_name_is_suggested(value: str, known: list[str], found: str) -> None:
    assert near(value, known) == found


@pytest.mark.parametrize(
    ("path", "beside", "found"),
    [
        ("data/nothere.csv", ["data/zero.csv", "data/labels.csv"], ""),
        ("data/clicks.cvs", ["data/clicks.csv", "data/zero.csv"], "; did you mean 'data/clicks.csv'?"),
        ("runs/frist", ["runs/first", "runs/latest"], "; did you mean 'runs/first'?"),
        ("runs/first", [], ""),
    ],
)
def test_a_near_file_is_suggested(path: str, beside: list[str], found: str) -> None:
    assert near_path(path, beside) == found

"""Runs give the digests, counts, outputs, bills and messages that are frozen, on every backend."""

from __future__ import annotations

import pytest

from tests.golden import frozen
from tests.golden.cases import CASES
from tests.golden.tables import computed

FROZEN = frozen.kept("runs")
LOCAL = [name for name, case in CASES.items() if not case.ray]
ON_RAY = [name for name, case in CASES.items() if case.ray]


def check(name: str) -> None:
    assert frozen.differences(computed("runs", name), FROZEN[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCAL)
def test_runs(name: str) -> None:
    check(name)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("name", ON_RAY)
def test_runs_on_ray(name: str) -> None:
    check(name)


def test_the_table_is_whole() -> None:
    assert FROZEN.keys() == CASES.keys()
    assert len(CASES) >= 80

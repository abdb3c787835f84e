"""The accountant, audits, calibration and bounds give the figures that are frozen."""

from __future__ import annotations

import pytest

from tests.golden import frozen
from tests.golden.tables import FIGURES, computed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

FROZEN = frozen.kept("figures")


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str) -> None:
    assert frozen.differences(computed("figures", name), FROZEN[name]) == []


def test_the_table_is_whole() -> None:
    assert FROZEN.keys() == FIGURES.keys()
    assert len(FIGURES) >= 200

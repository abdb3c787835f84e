"""Figures are the same whatever decimal context the caller has set."""

from __future__ import annotations

from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim.privacy.enumeration.law_finder import FoundAtoms
from p2p_sim.privacy.mechanism_parts import entry_difference, uniform_labels
from p2p_sim.privacy.mechanisms import alibi
from p2p_sim.privacy.mechanisms.cluster_response import view_pmf
from protocols import Alibi, ClusterResponse

FIGURES: dict[str, Callable[[], Any]] = {
    "two entries": lambda: entry_difference.differences.__wrapped__(1.3, 8),
    "weights of alibi": lambda: alibi.unbiased(Alibi(1.3, 3), np.array([[3, -2, 9], [0, 4, 1]])),
    "prior of alibi": lambda: Alibi(1.0, 3, prior="0.7,0.2,0.1").log_prior(),
    "uniform labels": lambda: uniform_labels.budget(0.3, 7),
    "listed views": lambda: view_pmf.views.__wrapped__(ClusterResponse(1.3, 2, grid=2), 3).noise,
    "found atoms": lambda: FoundAtoms(np.ones(1), np.ones(1), ratio=Fraction(7, 3)).pure(),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_do_not_depend_on_the_decimal_context(name: str) -> None:
    found = FIGURES[name]()
    with localcontext(prec=6):
        assert np.array_equal(FIGURES[name](), found)

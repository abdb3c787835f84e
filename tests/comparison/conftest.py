"""Comparisons whose runs and calibrations are made in this process, without the cost of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import p2p_sim
from p2p_sim.comparison import calibrations
from p2p_sim.comparison.calibration_worker import Calibrator
from p2p_sim.comparison.result import Comparison
from p2p_sim.sweep import sweeping
from tests.render.web.conftest import chromium
from tests.sweep.here import Here

__all__ = ["chromium"]

PEOPLE = {"users": 240, "cluster_size": 60, "features": 3}
FEW = ["peer-to-peer", "randomized-response", "encrypted-shuffle", "laplace-label-proportions"]


class Calibrating(Here):
    """Calibrates in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._worker = Calibrator()  # type: ignore[assignment]


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> tuple[Here, Here]:
    """Who calibrates, and who runs."""
    calibrating, running = Calibrating(), Here()
    monkeypatch.setattr(calibrations, "_workers", calibrating.workers)
    monkeypatch.setattr(sweeping, "_workers", running.workers)
    return calibrating, running


@pytest.fixture
def compared(pools: Any, tmp_path: Path) -> Callable[..., Comparison]:
    """A comparison of few users."""

    def made(name: str = "a", **how: Any) -> Comparison:
        whole: dict[str, Any] = {"target": "epsilon=1", "protocols": FEW, "seeds": 2, "picture": False, **how}
        people = {} if "data" in whole or "users" in whole else PEOPLE
        return p2p_sim.compare(out=tmp_path / name, progress=False, **people, **whole)

    return made

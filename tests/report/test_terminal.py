"""Terminals that lack letters, and objects that are printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from p2p_sim import Population, privacy
from protocols import PeerToPeer

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}])
@pytest.mark.parametrize("words", [["account", "randomized-response"], ["calibrate", "--help"]])
def test_terminals_without_greek(settings, words, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONCOERCECLOCALE": "0"} | settings
    done = subprocess.run(
        [sys.executable, "-m", "p2p_sim.cli", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"eps" in done.stdout


@pytest.mark.slow
def test_what_is_printed_is_one_short_line():
    people = Population.synthetic(users=300, cluster_size=7, positive=0.5, seed=0)
    one = privacy.profile(PeerToPeer(0.1), population=people)
    found = [
        one, privacy.profile(PeerToPeer(0.1), cluster_size=1000), privacy.compose([(one, 5)]),
        privacy.calibrate(PeerToPeer, vary="alpha", cluster_size=20, epsilon=1.0, delta=1e-3),
        privacy.audit(PeerToPeer(0.1), cluster_size=5, trials=500, delta=0.1),
    ]  # fmt: skip
    for each in found:
        assert len(repr(each)) < 160
        assert "learner" in repr(each)
        assert "\n" not in repr(each)

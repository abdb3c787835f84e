"""Importing the learning modules pulls in no heavy library."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import p2p_sim
before = set(sys.modules)
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import evaluation, kmeans, models
heavy = {"sklearn", "pandas", "pyarrow", "PIL", "scipy"} & (set(sys.modules) - before)
sys.exit(f"imported {sorted(heavy)}" if heavy else 0)
"""


def test_import_is_light():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

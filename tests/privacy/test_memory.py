"""How much memory the accountant takes at most, in a process of its own; nothing is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GIB = 2**30
PROGRAM = """
import json, resource
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))  # an explosion ends here, not in the machine
from p2p_sim import privacy
from p2p_sim.cli import run_folders as memory
from p2p_sim.report import privacy_table as account
from p2p_sim.report.privacy_table import AccountRequest
from protocols import PeerToPeer
"""
TABLE = """
told = account.table_of(AccountRequest(PeerToPeer(0.1), 1e-6, cluster_size=10**6), lambda *_: [], None)
found = {row["view"]: row["exact"] for row in told["views"]}
print(json.dumps([memory.peak_memory("local")["bytes"], found]))
"""
HUGE = """
views = ("learner", "user", "wire", "learner+wire")
found = {v: privacy.profile(PeerToPeer(0.1), v, cluster_size=10**9).delta_bracket(1e-4) for v in views}
asked = AccountRequest(PeerToPeer(0.1), 1e-6, cluster_size=10**9, only=("learner+user", "3*user+learner"))
told = account.table_of(asked, lambda *_: [], None)
found |= {row["name"]: row["refused"] for row in told["views"]}
print(json.dumps([memory.peak_memory("local")["bytes"], found]))
"""
CHILDREN = {"a million": PROGRAM + TABLE, "a thousand million": PROGRAM + HUGE}


def child(program: str) -> Any:
    """Run a program and return the JSON that it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    with ThreadPoolExecutor() as pool:
        yield dict(zip(CHILDREN, pool.map(child, CHILDREN.values()), strict=True))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc")
def test_all_views_of_a_million_users(told: dict[str, Any]) -> None:
    peak, found = told["a million"]
    assert len(found) == 7
    for row in found.values():
        assert row["lower"] <= row["epsilon"] <= row["upper"]
    assert GIB / 50 < peak < GIB  # above what an empty process takes: it was measured


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc")
def test_a_thousand_million_users_get_a_bracket_or_a_refusal_by_name(told: dict[str, Any]) -> None:
    peak, found = told["a thousand million"]
    for view in ("learner", "user", "wire", "learner+wire"):
        low, value, high = found[view]
        assert 0 < low <= value <= high < 1
    for view in ("learner+user", "learner+3*user"):
        assert found[view] == "not computed here: slow for clusters of 1,000,000,000"
    assert GIB / 50 < peak < GIB

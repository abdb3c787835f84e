"""Worker processes: the same results in the same order, errors that arrive, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from p2p_sim import InputError, RunLostError
from p2p_sim.crypto import pool
from p2p_sim.crypto.keys import SimulationKeys
from p2p_sim.crypto.prg import masks
from p2p_sim.crypto.rates import measure
from p2p_sim.crypto.seal import open_all, seal_all
from tests.processes import ended

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def doubled(factor: bytes, values: np.ndarray, names: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    print("a line that must not come between the answers")
    return values * factor[0], np.full(len(values), os.getpid())


def failing(values: np.ndarray) -> tuple[np.ndarray]:
    if 2500 in values:
        raise InputError("row 2500 is bad")
    return (values,)


def dying(values: np.ndarray) -> tuple[np.ndarray]:
    os._exit(3)


def slow(folder: bytes, values: np.ndarray) -> tuple[np.ndarray]:
    (Path(folder.decode()) / str(os.getpid())).touch()
    time.sleep(0.2)
    return (values,)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


def children() -> set[int]:
    return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_results_are_in_order_and_nothing_is_left_behind():
    before, values, names = children(), np.arange(9001), [b"x"] * 9001
    result, where = pool.spread(doubled, b"\2", values, names, workers=2)
    assert (result == 2 * values).all()
    assert os.getpid() not in where
    assert len(np.unique(where)) <= 2
    assert children() <= before


@pytest.mark.parametrize(("rows", "workers"), [(0, 2), (10, 2), (3999, 2), (9000, 1)])
def test_few_rows_or_one_worker_stay_in_this_process(rows, workers):
    result, where = pool.spread(doubled, b"\2", np.arange(rows), [b"x"] * rows, workers=workers)
    assert (result == 2 * np.arange(rows)).all()
    assert (where == os.getpid()).all()


@pytest.mark.parametrize("rows", [4000, 4001, 7999, 100_000])
@pytest.mark.parametrize("workers", [2, 3])
def test_pieces_are_large_and_cover_all_rows(rows, workers):
    bounds = pool._bounds(rows, workers)
    assert bounds[0] == 0
    assert bounds[-1] == rows
    assert min(np.diff(bounds)) >= pool.LEAST


@pytest.mark.parametrize(
    ("work", "error", "text"),
    [
        (failing, InputError, "row 2500 is bad"),
        (dying, RunLostError, r"worker process .* was lost .*killed or out of memory"),
    ],
)
def test_an_error_arrives_and_the_workers_end(work, error, text):
    before = children()
    with pytest.raises(error, match=text):
        pool.spread(work, np.arange(8000), workers=2)
    assert children() <= before


def test_wrong_calls():
    with pytest.raises(InputError, match="different lengths"):
        pool.spread(failing, np.arange(3), np.arange(4))
    with pytest.raises(InputError, match="workers = 0"):
        pool.spread(failing, np.arange(3), workers=0)


def test_sealing_in_processes_is_sealing():
    keys = SimulationKeys.from_seed(1, "learner")
    rows = np.arange(4100 * 2).astype(np.uint8).reshape(4100, 2)
    sealed = seal_all(keys.public, rows, b"info", workers=2)
    sealed[4099, 0] ^= 1
    opened = open_all(keys.private, sealed, b"info", workers=2)
    assert np.flatnonzero(~opened.ok).tolist() == [4099]
    assert (opened.rows[:-1] == rows[:-1]).all()


def test_processes_give_the_bits_of_one_process():
    keys, ids = np.arange(4000 * 32).astype(np.uint8).reshape(4000, 32), np.arange(4000)
    alone, shared = (
        (
            masks(keys, 3, workers=workers),
            SimulationKeys.from_seed(3, "user", ids, workers=workers).public,
        )
        for workers in (1, 2)
    )
    for one, other in zip(alone, shared, strict=True):
        assert (one == other).all()


def test_a_script_without_a_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom p2p_sim.crypto.keys import SimulationKeys\n"
        "print(SimulationKeys.from_seed(1, 'user', np.arange(4100), workers=2).public.shape)\n"
    )
    out = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert out.stdout == "(4100, 32)\n"


OWN = """
import numpy as np
from p2p_sim.core import module_finder
from p2p_sim.crypto import pool
from pathlib import Path

module_finder.find_own("work_of_mine", Path.cwd())
import work_of_mine
print(pool.spread(work_of_mine.doubled, np.arange(4100), workers=2)[0].sum())
"""


def test_workers_import_from_the_folders_of_their_parent(tmp_path):
    """Not from the current folder, but for a module of one's own."""
    for name in ("numpy", "cryptography", "p2p_sim", "pickle"):
        (tmp_path / f"{name}.py").write_text("from pathlib import Path; Path('mark').touch()")
    (tmp_path / "work_of_mine.py").write_text("import twice\ndef doubled(x): return (twice.TWO * x,)")
    (tmp_path / "twice.py").write_text("TWO = 2")
    out = subprocess.run(
        [sys.executable, "-P", "-c", OWN],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert int(out.stdout) == 4099 * 4100
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(stop, tmp_path):
    code = (
        "import numpy as np; from p2p_sim.crypto.pool import spread; from tests.crypto.test_pool import slow; "
        f"spread(slow, {str(tmp_path).encode()!r}, np.arange(400_000), workers=2)"
    )
    with ended(subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)) as parent:
        assert eventually(lambda: len(list(tmp_path.iterdir())) == 2)
        parent.send_signal(stop)
        _, told = parent.communicate(timeout=20)
    assert told.count(b"Traceback") <= 1  # nothing from the workers
    assert eventually(lambda: not any(runs(int(one.name)) for one in tmp_path.iterdir()))


def test_rates_are_measured_and_add_up():
    rates = measure()
    assert all(seconds > 0 for seconds in asdict(rates).values())
    assert rates.seconds({"seal": 10, "open": 5}) == pytest.approx(10 * rates.seal + 5 * rates.open)
    with pytest.raises(InputError, match="no rate for fly"):
        rates.seconds({"fly": 1})


def test_the_engine_does_not_load_cryptography():
    code = "import sys, p2p_sim, protocols; print('cryptography' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout == "False\n"

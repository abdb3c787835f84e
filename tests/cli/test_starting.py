"""Ctrl-C before the program is imported: one line and its exit status; programs that only import it are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = "import sys\nfrom p2p_sim.cli import main\nsys.exit(main())\n"  # what an installer writes


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing numpy, the first that takes long, does not end."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/numpy.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(60)\n"
    )
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "slow"), str(ROOT)])}


def interrupted(words: list[str], slow: dict[str, str], tmp_path: Path) -> tuple[int, str]:
    """Interrupt a program at its import of numpy; return its exit status, and what it said."""
    process = subprocess.Popen(
        [sys.executable, *words], env=slow, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


@pytest.mark.parametrize("how", ["module", "script"])
def test_the_program_ends_in_one_line(how: str, slow: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "p2p-sim").write_text(SCRIPT)
    words = ["-m", "p2p_sim.cli"] if how == "module" else [str(tmp_path / "p2p-sim")]
    assert interrupted([*words, "run", "peer-to-peer"], slow, tmp_path) == (130, "interrupted\n")


@pytest.mark.parametrize("program", ["import p2p_sim\n", SCRIPT])
def test_any_other_program_is_interrupted_as_python_does(
    program: str, slow: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(program)
    status, said = interrupted([str(tmp_path / "mine.py")], slow, tmp_path)
    assert status == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt")


def test_from_its_first_line_on_the_program_takes_ctrl_c_itself(tmp_path: Path) -> None:
    asks = "signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    (tmp_path / "p2p-sim").write_text(
        f"import signal\nfrom p2p_sim.cli import main\nbefore = {asks}\nmain(['--version'])\nprint(before, {asks})\n"
    )
    found = subprocess.run(
        [sys.executable, str(tmp_path / "p2p-sim")], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert found.stdout.splitlines()[-1] == "False True"

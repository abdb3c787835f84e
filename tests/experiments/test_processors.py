"""Cases are computed by workers, here or on a Ray cluster, as one process computes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments import _common, _processors, _rows
from experiments._common import main
from experiments._processors import HERE, Computer, Processors
from experiments._rows import CasesFailedError, Kept
from p2p_sim.core.errors import InputError
from p2p_sim.core.threads import cores
from tests.experiments import few_cases
from tests.experiments.few_cases import EXPERIMENT, cases

TWO = Processors(2)
ROOT = Path(_rows.__file__).parents[1]


def computed(folder: Path) -> list[int]:
    """Which cases were computed, in their order, and that no process here did."""
    lines = [line.split() for line in (folder / "computed").read_text().splitlines()]
    assert all(int(pid) != os.getpid() for _, pid in lines)
    return sorted(int(number) for number, _ in lines)


def test_workers_find_what_one_process_finds_and_the_rest_of_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Kept().take(cases(6))
    assert Kept(tmp_path / "table.csv", "trials", TWO).take(cases(4, tmp_path)) == whole[:4]
    assert "4 of 4 trials" in capsys.readouterr().err
    assert computed(tmp_path) == [0, 1, 2, 3]
    assert Kept(tmp_path / "table.csv", "trials", TWO).take(cases(6, tmp_path)) == whole
    assert "4 of 6 trials were there already" in capsys.readouterr().err
    assert computed(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_a_case_that_fails_or_kills_is_named_and_the_others_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One whose worker is killed once is computed by another one; the same command computes what failed alone."""
    (tmp_path / "fails-1").touch()
    (tmp_path / "refuses-2").touch()
    (tmp_path / "dies-3").write_text("1")
    (tmp_path / "dies-4").write_text("2")
    with pytest.raises(
        CasesFailedError, match=r"^3 of 6 trials failed \(the others are kept: the same command"
    ):
        Kept(tmp_path / "table.csv", "trials", TWO).take(cases(6, tmp_path))
    said = capsys.readouterr().err
    assert "failed: number = 1: ZeroDivisionError: by nothing (" in said
    assert "failed: number = 2: alpha = 2: needs at most 1\n" in said
    assert "failed: number = 4: the process that made it was killed by signal 9" in said
    assert "(2 times)" in said
    assert "6 of 6 trials, 3 failed" in said
    assert computed(tmp_path) == [0, 3, 5]
    for name in ("fails-1", "refuses-2"):
        (tmp_path / name).unlink()
    assert Kept(tmp_path / "table.csv", "trials", TWO).take(cases(6, tmp_path)) == Kept().take(cases(6))
    assert computed(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_ctrl_c_keeps_what_is_there_and_ends_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    start, tell = subprocess.Popen, _rows._tell

    def interrupted(what: str) -> None:
        tell(what)
        if "] 2 of 6" in what:
            raise KeyboardInterrupt

    def popen(*words: Any, **how: Any) -> Any:
        begun.append(start(*words, **how))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(_rows, "_tell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Kept(tmp_path / "table.csv", processors=TWO).take(cases(6, tmp_path))
    assert len(begun) == 2
    assert all(process.poll() is not None for process in begun)
    assert len(json.loads((tmp_path / "table.csv.rows.json").read_text())) == 2


@pytest.mark.usefixtures("ray_session")
def test_a_ray_cluster_finds_the_same(tmp_path: Path) -> None:
    import ray

    (tmp_path / "dies-7").write_text(
        "1"
    )  # of an actor that has answered before: one that has not ends the command
    there = Processors(1, ray.get_runtime_context().gcs_address)
    found = Kept(tmp_path / "table.csv", processors=there).take(cases(8, tmp_path))
    assert found == Kept().take(cases(8))
    assert computed(tmp_path) == [*range(8)]


def test_one_process_names_what_failed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with exit status 2 and writes no table; the same command goes on."""
    (tmp_path / "fails-1").touch()
    words = ["--quick", "--out", str(tmp_path)]
    assert main(EXPERIMENT, words) == _common.UNUSABLE
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "Traceback" in said
    assert "few_cases: 1 of 3 rows failed (the others are kept" in said
    assert not (tmp_path / "few_cases.csv").exists()
    (tmp_path / "fails-1").unlink()
    assert main(EXPERIMENT, words) == 0
    assert "2 of 3 rows were there already" in capsys.readouterr().err


def test_a_script_s_own_functions_are_found_by_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of ``__main__`` where it runs."""
    monkeypatch.setitem(sys.modules, "experiments.few_cases", few_cases)
    own = SimpleNamespace(**{"__module__": "__main__"})
    here = _common.Experiment("few_cases", "", "", "", own)  # type: ignore[arg-type]
    assert _common._importable(here) is EXPERIMENT
    assert _common._importable(EXPERIMENT) is EXPERIMENT


@pytest.mark.slow
def test_the_command_of_a_script_takes_workers(tmp_path: Path) -> None:
    for workers in ("1", "2"):
        words = [
            "-m",
            "experiments.corrections",
            "--quick",
            "--workers",
            workers,
            "--out",
            str(tmp_path / workers),
        ]
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, timeout=300)
    one, two = ((tmp_path / workers / "corrections.csv").read_text() for workers in ("1", "2"))
    assert one == two


def test_who_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    asked = Processors.asked
    assert asked(None, None, quick=True) == HERE
    assert asked(None, None, quick=False) == Processors(cores())
    assert asked(3, None, quick=True) == asked(3, None, quick=False) == Processors(3)
    assert asked(None, "a:1", quick=True).address == "a:1"
    monkeypatch.setitem(sys.modules, "ray", None)  # another test's Ray may be joined, which comes first
    monkeypatch.setenv("RAY_ADDRESS", "b:2")
    assert asked(None, None, quick=False).address == "b:2"
    assert asked(None, None, quick=True) == HERE
    assert asked(3, None, quick=False) == Processors(3)
    with pytest.raises(InputError, match="workers and address are both given"):
        asked(3, "a:1", quick=False)


def test_a_worker_with_other_code_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = _processors._asked(partial(few_cases.row, 1))
    assert json.loads(Computer().answer(text))["rows"] == json.loads(json.dumps(few_cases.row(1)))
    asked = json.loads(text)
    other = json.dumps(asked | {"code": "0" * 16})
    assert json.loads(Computer().answer(other))["error"].startswith("this worker has other code")
    monkeypatch.delattr(few_cases, "row")
    assert json.loads(Computer().answer(text))["error"].endswith("this worker has other code")


def test_what_no_other_process_can_have_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be computed by another process"):
        Kept(processors=TWO).take([({"number": number}, lambda: []) for number in range(2)])

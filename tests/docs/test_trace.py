"""What docs/trace.md and docs/python.md show of pandas, polars and duckdb do what they say, on the run made there."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import cli
from p2p_sim.rundir import run_directory, trace_writer
from tests.contract.cases import PROTOCOLS, people_of
from tests.run_json_files import cut_off

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).parents[2] / "docs/trace.md").read_text()


PYTHON = (Path(__file__).parents[2] / "docs/python.md").read_text()


def block(language: str, word: str, text: str = TEXT) -> str:
    """The block of the page that holds a word."""
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return next(text for text in found if word in text)


def executed(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program, names)
    return names


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> p2p_sim.Run:
    monkeypatch.chdir(tmp_path)
    made: p2p_sim.Run = executed(block("python", "Population.synthetic"))["run"]
    return made


def test_pandas(run: p2p_sim.Run) -> None:
    labels = executed(block("py", "pandas"))["labels"].sort_values(["recipient"])
    assert set(labels) == {"round", "sender", "recipient", "y_hat"}  # all files leave out seq, {"all": 0}
    for name, column in run.messages("label").items():
        if name not in ("seq", "nbytes"):
            np.testing.assert_array_equal(labels[name].to_numpy(column.dtype), column)


def test_polars(run: p2p_sim.Run) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install '.[dev]'")
    asks = executed(block("py", "polars"))["asks"]
    found = asks.filter(polars.col("recipient") == 17).collect()
    wanted = run.messages("ask")
    np.testing.assert_array_equal(found["sender"].to_numpy(), wanted["sender"][wanted["recipient"] == 17])
    assert set(found["round"]) <= {1}


def test_duckdb(run: p2p_sim.Run) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install '.[dev]'")
    found = duckdb.sql(block("sql", "POSITIONAL")).fetchnumpy()
    labels = run.messages("label")
    mine = labels["sender"] == 17
    np.testing.assert_array_equal(found["sender"], labels["sender"][mine])
    np.testing.assert_array_equal(found["y_hat"], labels["y_hat"][mine])


@pytest.mark.parametrize("program", ["pandas", "polars", "duckdb"])
def test_files_of_several_forms_read_as_one(program: str, tmp_path: Path) -> None:
    """Of a walk the first hop leaves out who sends: what is left out is null, and nothing else is lost."""
    reads = pytest.importorskip(program, reason=f"{program} is not installed: pip install '.[dev]'")
    walk, people = PROTOCOLS["network shuffle"], people_of(PROTOCOLS["network shuffle"], "contiguous", 60)
    run = p2p_sim.run(walk, people, trace="full", out=tmp_path / "run", seed=0)
    hops, folder = run.messages("hop"), tmp_path / "run/messages/hop"
    if program == "pandas":
        found = reads.read_parquet(folder).astype({"round": int})
    elif program == "polars":
        table = reads.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True).collect()
        found = pandas.DataFrame({name: table[name].to_list() for name in table.columns})
    else:
        found = reads.sql(f"FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)").df()
    assert {"round", "sender", "recipient"} < set(found)
    later, known = found[found["round"] > 1], hops["round"] > 1
    assert len(found) == len(hops["round"])
    assert found.loc[found["round"] == 1, "sender"].isna().all()
    ends = later[["round", "recipient", "sender"]].astype(int).sort_values(["round", "recipient", "sender"])
    np.testing.assert_array_equal(ends, np.column_stack([hops[n][known] for n in ends]))


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> p2p_sim.Run:
    """A walk of whose run ``killed`` holds what a kill before its last step leaves: files as they were written."""
    walk, people = PROTOCOLS["network shuffle"], people_of(PROTOCOLS["network shuffle"], "contiguous", 60)
    monkeypatch.setattr(trace_writer, "alike", lambda folder, files: files)
    monkeypatch.chdir(tmp_path)
    run = p2p_sim.run(walk, people, trace="full", out="whole", seed=0)
    shutil.copytree("whole/messages", "killed/messages")
    last = max(number for _, number in run.counts)
    for folder in Path("killed").glob(f"messages/*/round={last}"):
        shutil.rmtree(folder)
    cut_off(Path("killed/messages"))
    return run


def test_what_a_killed_run_left_becomes_one_table_by_the_command_that_is_said(
    killed: p2p_sim.Run, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    forms = {
        tuple(parquet.read_schema(file).names) for file in Path("killed/messages/hop").rglob("*.parquet")
    }
    assert len(forms) > 1
    missing = run_directory.open_trace("killed").missing
    assert missing is not None
    (command,) = re.findall(r"files of hop differ in columns, for other programs (.*) > hop.parquet", missing)
    assert "files of report" not in missing
    assert cli.main(shlex.split(command)[1:]) == 0
    Path("hop.parquet").write_bytes(capfdbinary.readouterr().out)
    found, hops = pandas.read_parquet("hop.parquet"), killed.messages("hop")
    left = hops["round"] < max(number for _, number in killed.counts)
    assert len(found) == left.sum() > 0
    for name, column in hops.items():
        mine = np.stack(found[name]) if column.ndim > 1 else found[name].to_numpy()
        np.testing.assert_array_equal(mine, column[left], err_msg=name)


def test_of_files_that_are_alike_nothing_is_said(tmp_path: Path) -> None:
    program = PROTOCOLS["peer-to-peer"]
    p2p_sim.run(program, people_of(program, "contiguous", 60), trace="full", out=tmp_path / "run", seed=0)
    folder = tmp_path / "run/messages"
    cut_off(folder)
    missing = run_directory.open_trace(folder).missing
    assert missing is not None
    assert "differ in columns" not in missing


def test_python_page(run: p2p_sim.Run, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("polars", "duckdb"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install '.[dev]'")
    run.save("runs/demo")
    exec(block("py", "duckdb", PYTHON), {})
    assert capsys.readouterr().out.count("recipient") == 3

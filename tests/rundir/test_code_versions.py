"""Which code computed a run: kept with it, and compared with the code that is here."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import p2p_sim
from p2p_sim.core import Message, Protocol, code_fingerprint
from p2p_sim.rundir import code_versions
from protocols import PeerToPeer
from tests.run_json_files import document_in
from tests.tiny import people


@dataclass(frozen=True)
class Own(Protocol):
    """Of this file."""

    note = Message("user", "learner", "notes", y=bool)

    def user(self, me):
        yield self.note(y=me.y)

    def learner(self, me):
        yield self.note.receive()


def test_the_fingerprint_is_of_engine_and_protocol():
    shipped = code_versions.fingerprint(PeerToPeer(0.1))
    assert shipped == code_versions.fingerprint(PeerToPeer(0.3))
    assert shipped != code_versions.fingerprint(Own())
    assert len(shipped) == 12
    assert int(shipped, 16) >= 0


@pytest.mark.parametrize("folder", ["core", "crypto", "network", "report"])
def test_it_changes_with_what_decides_bits_and_with_nothing_else(folder, monkeypatch, tmp_path):
    package = Path(code_fingerprint.__file__).parents[1]
    for name in ("core", "crypto", "network", "report"):
        shutil.copytree(package / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_fingerprint, "__file__", str(tmp_path / "core" / "code_fingerprint.py"))
    before = code_versions.fingerprint(PeerToPeer(0.1))
    with (tmp_path / folder / "__init__.py").open("a") as file:
        file.write("\n")
    assert (code_versions.fingerprint(PeerToPeer(0.1)) == before) == (folder == "report")


DECIDES = (
    "core/held_out_rows.py", "parquet_users.py", "rundir/parquet_columns.py", "rundir/population_file.py",
    "rundir/public_columns.py", "backends/layout.py", "backends/streamed_outputs.py", "learning/data/stored_table.py",
    "privacy/accountant.py", "result_summary.py", "run.py", "costing.py", "cli/run.py", "cli/population_option.py",
)  # fmt: skip
BESIDE = ("cli/ls.py", "plan/run_plan.py", "render/text_labels.py", "report/run_screen.py", "sweep/folder.py")


def test_a_run_goes_on_with_the_code_that_decides_what_it_leaves(monkeypatch, tmp_path):
    package = tmp_path / "p2p_sim"
    shutil.copytree(
        Path(code_fingerprint.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__")
    )
    honest = code_fingerprint.sources(PeerToPeer(0.1))
    monkeypatch.setattr(code_fingerprint, "__file__", str(package / "core" / "code_fingerprint.py"))
    before = code_fingerprint.sources(PeerToPeer(0.1))
    assert before == honest
    for name in (*DECIDES, *BESIDE):
        with (package / name).open("a") as file:
            file.write("\n")
    (package / "rundir" / "another_reader.py").write_text("")
    after = code_fingerprint.sources(PeerToPeer(0.1))
    assert {name for name in after if after[name] != before.get(name)} == {
        *DECIDES,
        "rundir/another_reader.py",
    }


def test_a_protocol_without_a_file(monkeypatch):
    monkeypatch.setattr(Own, "__module__", "nowhere")
    assert code_versions.fingerprint(Own()) != code_versions.fingerprint(PeerToPeer(0.1))


@pytest.fixture
def saved(tmp_path):
    p2p_sim.run(PeerToPeer(0.1), people(), seed=3).save(tmp_path / "r")
    return tmp_path / "r"


def test_a_run_knows_its_code(saved):
    run = p2p_sim.load(saved)
    assert run.versions == code_versions.versions(run.source)
    assert run.versions["numpy"] == np.__version__
    assert code_versions.other_code(run, run.source) == []


def test_other_code_is_told_and_kept_when_a_run_is_saved_again(saved, tmp_path):
    told = document_in(saved)
    told["versions"] |= {"numpy": "1.0", "code": "0" * 12, "pyarrow": "1.0"}
    (saved / "run.json").write_text(json.dumps(told))
    run = p2p_sim.load(saved)
    here = code_versions.versions(run.source)
    with pytest.warns(UserWarning, match=r"replayed by other code .* numpy 1\.0 then"):
        run.replay(4)
    with pytest.warns(UserWarning, match=r"recomputed by other code .* numpy 1\.0 then"):
        assert run.view("user:4").draws
    assert code_versions.other_code(run, run.source) == [
        f"code {'0' * 12} then, {here['code']} now", f"numpy 1.0 then, {here['numpy']} now"
    ]  # fmt: skip
    run.save(tmp_path / "again")
    assert p2p_sim.load(tmp_path / "again").versions == run.versions


@pytest.mark.parametrize(
    "name", ["p2p-sim", "code", "python", "numpy", "numba", "ray", "scikit-learn", "pyarrow"]
)
def test_versions_that_decide_bits_are_told(saved, name):
    told = document_in(saved)
    told["versions"][name] = "0.0"
    (saved / "run.json").write_text(json.dumps(told))
    run = p2p_sim.load(saved)
    here = code_versions.versions(run.source)[name]
    other = [f"{name} 0.0 then, {here} now"] if name not in ("ray", "scikit-learn", "pyarrow") else []
    assert code_versions.other_code(run, run.source) == other


def test_a_run_by_an_older_version_has_no_fingerprint(saved):
    told = document_in(saved)
    del told["versions"]["code"]
    (saved / "run.json").write_text(json.dumps(told))
    run = p2p_sim.load(saved)
    assert code_versions.other_code(run, run.source) == [
        f"code unknown then, {code_versions.fingerprint(run.source)} now"
    ]
    assert code_versions.other_code(p2p_sim.run(PeerToPeer(0.1), people(), seed=0), PeerToPeer(0.1)) == []

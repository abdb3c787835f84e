"""``p2p-sim sweep``, ``ls`` and ``rm``: what they print, what they refuse, and what they leave alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas
import pytest

from p2p_sim.rundir.trace_writer import Draft
from p2p_sim.sweep import folder, sweeping
from tests.cli.conftest import below
from tests.sweep.here import Here

SMALL = """
users = 60
cluster_size = 20
views = ["learner"]
seed = [0, 1]
protocol = "randomized-response"
epsilon = [0.5, 1]
"""

OWN = '''
import os
import signal
from dataclasses import dataclass
from p2p_sim.core import Message, Party, Protocol, Rounds

@dataclass(frozen=True)
class Telling(Protocol):
    """``lie``: probability of a lie."""
    lie: float = 0.25
    report = Message("user", "learner", "tells a label", y=bool)

    def user(self, me: Party) -> Rounds:
        print("a print of one's own")
        yield self.report(y=me.y ^ me.draw.bernoulli("lie", self.lie))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        if self.lie == 0.5:
            raise RuntimeError("nothing is left")
        if self.lie == 0.75:
            os.kill(os.getpid(), signal.SIGKILL)
        return reports.columns()
'''


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Here:
    """Runs are made in this process."""
    made = Here()
    monkeypatch.setattr(sweeping, "_workers", made.workers)
    return made


@pytest.mark.parametrize("without", ["", 'features = [2]\nmodel = "none"', "features = 0"])
def test_a_plot_of_a_sweep_that_trains_nothing_is_refused_before_the_first_run(
    cli: Any, hands: Here, tmp_path: Path, without: str
) -> None:
    (tmp_path / "bare.toml").write_text(f"{without}\n{SMALL}")
    told = cli("sweep", "bare.toml", "--plot", "a.svg")
    assert (told.status, "no run of this sweep trains a model" in told.err) == (2, True)
    assert (hands.made, list(tmp_path.glob("sweeps"))) == ([], [])
    assert cli("sweep", "bare.toml").status == 0
    table = pandas.read_csv(tmp_path / "sweeps" / "bare" / "table.csv", keep_default_na=False)
    assert set(table["model"]) == {"none"}


def test_the_file_of_a_sweep_is_read_once(cli: Any, hands: Here, tmp_path: Path) -> None:
    """It may be a pipe, as of ``<(cat small.toml)``."""
    os.mkfifo(tmp_path / "pipe.toml")
    writer = subprocess.Popen(["sh", "-c", 'printf "%s" "$0" > pipe.toml', SMALL], cwd=tmp_path)
    told = cli("sweep", "pipe.toml", "--plot", "a.svg")
    assert (writer.wait(10), told.status) == (0, 2)
    assert "no run of this sweep trains a model" in told.err
    writer = subprocess.Popen(
        ["sh", "-c", 'printf "%s" "$0" > pipe.toml', f"features = 2\n{SMALL}"], cwd=tmp_path
    )
    told = cli("sweep", "pipe.toml", "--plot", "a.svg")
    assert (writer.wait(10), told.status, (tmp_path / "a.svg").is_file()) == (0, 0, True), told.err


def test_a_plot_of_a_sweep_all_of_whose_runs_failed(cli: Any, hands: Here, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "none.toml").write_text(
        'users = 20\nfeatures = 2\nseed = [0, 1]\nprotocol = "own:Telling"\nlie = 0.5\n'
    )
    told = cli("sweep", "none.toml", "--plot", "a.svg")
    assert (told.status, "all 2 runs failed: nothing is drawn" in told.err) == (1, True), told.err
    assert "failed" in told.out
    assert not (tmp_path / "a.svg").exists()


def test_what_the_runs_gave_is_printed_also_where_it_cannot_be_drawn(
    cli: Any, hands: Here, tmp_path: Path
) -> None:
    (tmp_path / "odd.toml").write_text(f"features = 2\n{SMALL}".replace('views = ["learner"]', "views = []"))
    told = cli("sweep", "odd.toml", "--plot", "a.svg")
    assert told.out.startswith("sweeps/odd: 4 runs of 2 settings")
    assert (told.status, "error: --plot: there is no ε of any view" in told.err) == (2, True)
    assert "Plot written" not in told.out


def test_a_sweep_says_what_it_makes_and_goes_on_where_it_was(cli: Any, hands: Here, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    first = cli("sweep", "small.toml")
    assert first.status == 0
    assert first.err == "sweeps/small: 4 runs\n"
    assert "4 runs of 2 settings, 0 failed\n" in first.out
    again = cli("sweep", "small.toml", "--json")
    assert again.json["made_before"] == 4
    assert [row["parameter[epsilon]"] for row in again.json["settings"]] == [0.5, 1.0]
    assert again.json["settings"][1]["epsilon_nats[learner]"] == pytest.approx(1.0, abs=1e-5)
    assert len(hands.made) == 4
    table = pandas.read_csv(tmp_path / "sweeps" / "small" / "table.csv")
    assert len(table) == 4
    assert "4 of them were there already" in again.err
    (tmp_path / "small.toml").write_text(SMALL.replace("[0.5, 1]", "[0.5, 2]"))
    refused = cli("sweep", "small.toml")
    assert refused.status == 2
    assert "epsilon = [0.5, 1.0] then, [0.5, 2.0] now" in refused.err


def test_a_million_runs_are_said_before_any_begins(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping.grids, "check", stop)
    seeds = ", ".join(map(str, range(1000)))
    (tmp_path / "big.toml").write_text(
        SMALL.replace("[0, 1]", f"[{seeds}]").replace("[0.5, 1]", f"[{seeds}]")
    )
    told = cli("sweep", "big.toml")
    assert told.status == 130
    assert told.err == "sweeps/big: 1,000,000 runs\ninterrupted\n"


def test_ctrl_c_says_what_is_kept(cli: Any, hands: Here, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    take = hands.take

    def stopping() -> Any:
        if len(hands.made) == 3:
            raise KeyboardInterrupt
        return take()

    hands.take = stopping  # type: ignore[method-assign]
    told = cli("sweep", "small.toml")
    assert told.status == 130
    assert "3 of 4 runs are kept: give the same command again to go on" in told.err
    assert "incomplete" in cli("ls").out


@pytest.mark.slow
def test_a_protocol_of_one_s_own_is_swept_by_processes(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "telling.py").write_text(OWN)
    (tmp_path / "own.toml").write_text(
        'protocol = "telling:Telling"\nlie = [0.25, 0.75, 0.5]\nusers = 40\nviews = ["learner"]'
    )
    told = cli("sweep", "own.toml", "--workers", 1, "--json")
    assert told.status == 1
    killed, raised = told.json["errors"]
    assert (killed["run"], raised["run"]) == (1, 2)
    assert killed["error"].startswith("the process that made it was killed by signal 9")
    assert killed["error"].endswith("then give a smaller --workers, or end other programs (2 times)")
    assert "RuntimeError: nothing is left" in raised["error"]
    assert "telling.py, line" in raised["error"]
    assert told.json["settings"][0]["epsilon_nats[learner]"] == pytest.approx(1.0986, abs=1e-4)  # ln 3


WRONG = {
    "no file": (("sweep", "none.toml"), "no such file"),
    "unknown key": (("sweep", "wrong.toml"), "did you mean 'seed'"),
    "no workers": (("sweep", "small.toml", "--workers", 0), "workers = 0"),
    "workers of a cluster": (("sweep", "small.toml", "--workers", 1, "--address", "a:1"), "both given"),
    "another plot": (("sweep", "small.toml", "--plot", "a.pdf"), ".svg or .png"),
    "a file": (("sweep", "small.toml", "--out", "wrong.toml"), "is a file"),
    "ls of nothing": (("ls", "nowhere"), "is no folder"),
    "rm of nothing": (
        ("rm", "nowhere"),
        "'nowhere' is not there: name the folder of a run, a sweep or a comparison",
    ),
    "plan of a run that goes on": (("run", "--resume", "one", "--plan"), "leave one of them out"),
    "resume of an unset variable": (("run", "--resume", ""), "--resume '': name the run that was cut off"),
    "rm of a stranger": (("rm", "."), "is no run, no sweep and no comparison"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_bad_input_is_refused_and_nothing_is_left(words: Any, said: str, cli: Any, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "wrong.toml").write_text(SMALL.replace("seed", "sed"))
    before = below(tmp_path)
    done = cli(*words)
    assert done.status == 2
    assert said in done.err
    assert below(tmp_path) == before


@pytest.fixture
def kept(cli: Any, hands: Here, tmp_path: Path) -> Path:
    """A folder with a run and a sweep."""
    (tmp_path / "small.toml").write_text(SMALL)
    assert cli("sweep", "small.toml").status == 0
    assert cli("run", "randomized-response", "--users", 50, "--seed", 1).status == 0
    return tmp_path


def test_ls_lists_runs_and_sweeps(cli: Any, kept: Path) -> None:
    rows = cli("ls", "--json").json
    assert [(row["path"], row["kind"], row["state"]) for row in rows] == [
        ("runs/randomized-response-synthetic-1", "run", "complete"), ("sweeps/small", "sweep", "complete")
    ]  # fmt: skip
    assert [row["what"] for row in rows] == ["RandomizedResponse, 50 users", "small.toml, 4 of 4 runs"]
    assert cli("ls", "sweeps").out.count("\n") == 2
    assert cli("ls", "runs/latest", "--json").json == rows[:1]
    (kept / "runs" / "randomized-response-synthetic-1" / "run.json").write_text(
        '{"format": 2, "protocol": 1}'
    )
    assert cli("ls", "--json").json[0]["state"] == "damaged"
    assert "no runs, sweeps or comparisons" in cli("ls", "sweeps/small/..//../runs/latest/outputs").out


def test_rm_removes_a_run_and_its_link_and_a_sweep(cli: Any, kept: Path) -> None:
    run = "runs/randomized-response-synthetic-1"  # from here, not from where the link is
    assert (
        f"'runs/latest' is a link to '{run}': name the folder itself" in cli("rm", "runs/latest", "--yes").err
    )
    (kept / "mine").symlink_to("sweeps/small")
    told = cli("sweep", "small.toml", "--out", "mine")
    assert (told.status, "is a link to 'sweeps/small': name" in told.err) == (2, True)
    (kept / "mine").unlink()
    assert cli("rm", "runs/randomized-response-synthetic-1", "--yes").status == 0
    assert cli("rm", "sweeps/small", "--yes").status == 0
    assert set(below(kept)) == {"small.toml", "runs", "sweeps"}


def test_rm_removes_a_sweep_whose_name_leaves_no_room_for_a_longer_one(cli: Any, kept: Path) -> None:
    (kept / "sweeps" / "small").rename(kept / ("s" * 255))
    assert cli("rm", "s" * 255, "--yes").status == 0
    assert set(below(kept)) & {"s" * 255, "sweeps"} == {"sweeps"}


def test_a_link_that_leads_nowhere_is_said_to_be_one(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "latest").symlink_to("gone")
    for command in ("ls", "rm"):
        told = cli(command, "runs/latest")
        assert (told.status, "'runs/latest' is a link to 'runs/gone', which is not there" in told.err) == (
            2,
            True,
        )


def test_what_a_run_left_without_what_was_asked_is_listed_and_removed(cli: Any, tmp_path: Path) -> None:
    """From Python, or where ``asked.json`` was lost; not while it is written, nor with other files."""
    with Draft(tmp_path / "one") as draft:
        place = draft.make()
        (place / "messages").mkdir()
        other = [sys.executable, "-m", "p2p_sim.cli"]
        listed = subprocess.run([*other, "ls", "--json"], capture_output=True, check=True, cwd=tmp_path)
        assert json.loads(listed.stdout)[0]["state"] == "running"
        refused = subprocess.run([*other, "rm", place.name, "--yes"], capture_output=True, cwd=tmp_path)
        assert b"is still being computed by another process" in refused.stderr
    left = tmp_path / "one.partial-abc"
    (left / "messages").mkdir(parents=True)
    (row,) = cli("ls", "--json").json
    assert (row["path"], row["state"], row["what"]) == (
        left.name,
        "cut off",
        "no asked.json: it cannot go on",
    )
    assert "has no asked.json" in cli("run", "--resume", "one").err
    (left / "notes.txt").write_text("mine")
    assert cli("rm", left.name, "--yes").status == 2
    (left / "notes.txt").unlink()
    assert cli("rm", left.name, "--yes").status == 0
    assert not below(tmp_path)


@pytest.mark.parametrize(("answer", "there"), [("y\n", False), ("n\n", True), ("\n", True)])
def test_rm_asks_first(
    answer: str, there: bool, cli: Any, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "give --yes" in cli("rm", "sweeps/small").err  # nobody is there to be asked

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert cli("rm", "sweeps/small").status == int(there)
    assert (kept / "sweeps" / "small").exists() is there


def test_rm_leaves_what_is_written_or_holds_other_files(cli: Any, kept: Path) -> None:
    place = kept / "sweeps" / "small"
    with folder.held(place):
        assert "is being written" in cli("rm", "sweeps/small", "--yes").err
        assert cli("ls", "--json").json[1]["state"] == "complete"
    (place / "notes.txt").write_text("mine")
    assert "also holds 'notes.txt'" in cli("rm", "sweeps/small", "--yes").err
    (place / "notes.txt").unlink()
    (place / folder.SWEEP).write_text('{"format": 1, "of": "another program"}')
    assert cli("rm", "sweeps/small", "--yes").status == 2
    assert place.exists()


def test_rm_removes_the_folder_that_one_stands_in_and_no_unnamed_one(
    cli: Any, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = kept / "runs" / "randomized-response-synthetic-1"
    monkeypatch.chdir(run)
    assert "PATH = ''" in cli("rm", "", "--yes").err  # what an unset variable of a shell gives
    assert cli("rm", ".", "--yes").status == 0
    monkeypatch.chdir(kept / "sweeps" / "small")
    assert cli("rm", ".", "--yes").status == 0
    monkeypatch.chdir(kept)
    assert set(below(kept)) == {"small.toml", "runs", "sweeps"}


def test_rm_leaves_nothing_behind_where_it_cannot_remove(
    cli: Any, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = below(kept)

    def busy(_self: Path, _target: Path) -> None:
        raise OSError(16, "Device or resource busy")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", busy)
        assert (
            "'sweeps/small' cannot be removed: Device or resource busy"
            in cli("rm", "sweeps/small", "--yes").err
        )
    assert below(kept) == before

    def denied(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("shutil.rmtree", denied)
    done = cli("rm", "sweeps/small", "--yes")
    assert "what is left lies in" in done.err
    assert Path(done.err.split("lies in '")[1].split("'")[0], "small", folder.SWEEP).exists()


def test_ls_passes_over_folders_that_it_must_not_read(
    cli: Any, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept / "theirs").mkdir()
    looked = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(path).name == "theirs":
            raise PermissionError(13, "Permission denied", str(path))
        return looked(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [row["kind"] for row in cli("ls", "--json").json] == ["run", "sweep"]
    assert "Permission denied" in cli("rm", "theirs", "--yes").err


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1, "grids": [], "runs": "x"}', "[" * 9999])
def test_a_damaged_sweep_is_named_by_every_verb(text: str, cli: Any, kept: Path) -> None:
    (kept / "sweeps" / "small" / folder.SWEEP).write_text(text)
    before = below(kept)
    assert cli("ls", "--json").json[1]["state"] == "damaged"
    for words in (("sweep", "small.toml"), ("rm", "sweeps/small", "--yes")):
        done = cli(*words)
        assert (done.status, done.err.count("sweep.json'")) == (2, 1)
    assert below(kept) == before


@pytest.mark.parametrize("name", ["table.parquet", "table.csv"])
def test_no_other_command_writes_over_a_file_of_a_sweep(name: str, cli: Any, kept: Path) -> None:
    before = below(kept)
    place = f"sweeps/small/{name}"
    done = cli("account", "randomized-response", "--epsilon", "1", "--plot", place)
    assert (done.status, done.out) == (2, "")
    assert f"--plot '{place}' belongs to the sweep" in done.err
    assert below(kept) == before


@pytest.mark.parametrize(
    "words", [("ls",), ("rm",), ("run", "--resume"), ("report",), ("replay", "--user=1")]
)
def test_a_name_that_no_file_can_have_is_refused_with_advice(words: tuple[str, ...], cli: Any) -> None:
    done = cli(*words, "a" * 300)
    assert (done.status, done.out) == (2, "")
    assert "is no usable path (File name too long; most systems allow 255 bytes): check it" in done.err


def test_options_that_an_error_advises_are_said_to_be_keys(cli, tmp_path):
    (tmp_path / "own.csv").write_text("age,ill\n" + "31,yes\n47,no\n29,\n" * 10)
    told = 'protocol = "randomized-response"\ndata = "own.csv"\nlabel = "ill"\n'
    (tmp_path / "own.toml").write_text(told)
    done = cli("sweep", "own.toml", "--workers", "1")
    assert done.status == 2
    assert "(--missing drop: 10 of 30 rows); in the file of a sweep missing is a key" in done.err
    (tmp_path / "own.toml").write_text(f'{told}missing = "drop"\nmodel = "none"\n')
    assert cli("sweep", "own.toml", "--workers", "1").status == 0

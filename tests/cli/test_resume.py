"""``p2p-sim run --resume``: a run whose process died or was interrupted goes on with the same bits, or is refused."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import p2p_sim
from p2p_sim import parquet_users
from p2p_sim.core import code_fingerprint
from p2p_sim.rundir import code_versions, growing_columns, outputs_folder, under_way
from protocols import PeerToPeer
from tests.cli.conftest import below

WORDS = ["run", "peer-to-peer", "--users", "300", "--cluster-size", "30", "--seed", "3", "--trace", "full"]
WORDS += ["--theta", "0.5"]

KILLED = """
import os, signal, sys
from p2p_sim import cli
from p2p_sim.learning import experiment
from p2p_sim.rundir import growing_columns, run_directory, trace_writer

def die(*_given, **_how):
    os.kill(os.getpid(), signal.SIGKILL)

def part(self, *given):
    die() if given[3] == "label" else honest(self, *given)

honest = trace_writer.Part.__init__
MOMENTS = {
    "began": (experiment, "simulate", die), "rounds": (trace_writer.Part, "__init__", part),
    "outputs": (growing_columns.GrowingColumns, "close", die), "named": (run_directory, "_put_in_place", die),
}
for name, (place, attribute, what) in MOMENTS.items():
    child = os.fork()
    if not child:
        setattr(place, attribute, what)
        cli.main([*sys.argv[1:], "--out", name])
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, name
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder with a whole run, and what is left of runs that were killed at several moments."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *WORDS], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def left(killed, tmp_path, monkeypatch, cli):
    """A copy of these folders, which is the current one, and the whole run."""
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    asked = json.loads(next(tmp_path.glob("rounds.partial-*/asked.json")).read_text())
    assert asked["folder"] == str(killed)
    assert cli(*WORDS, "--out", "whole").status == 0
    return tmp_path


def check_same(one: Path, other: Path) -> None:
    """All files of two runs are the same, but for what run.json says of the day."""
    files = [
        {name: found for name, found in below(each).items() if name != "run.json"} for each in (one, other)
    ]
    assert files[0] == files[1]
    first, second = (json.loads((each / "run.json").read_text()) for each in (one, other))
    for name in ("timings", "compute", "checksum", "notes"):
        del first[name], second[name]
    assert first == second


@pytest.mark.parametrize("moment", ["began", "rounds", "outputs"])
def test_a_run_that_was_killed_goes_on(cli, left, moment):
    done = cli("run", "--resume", moment, "--blocks", "3", "--json")
    assert done.status == 0, done.err
    assert done.json["digest"] == p2p_sim.load(left / "whole").digest
    check_same(left / "whole", left / moment)
    assert not list(left.glob(f"*{moment}.*"))
    again = cli("run", "--resume", moment)
    assert (again.status, f"run '{moment}' is whole: there is nothing to go on with" in again.err) == (
        2,
        True,
    )


def test_a_run_without_a_trace_is_saved_where_it_was_begun(cli, tmp_path):
    """Killed while it was saved, it left another folder, with its labels, which nothing ever removed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [*WORDS[:-4], "--theta", "0.5"]
    code = KILLED.replace("in MOMENTS.items()", "in [('outputs', MOMENTS['outputs'])]")
    subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert len(list(tmp_path.glob("*.partial-*"))) == 1
    assert cli("run", "--resume", "outputs").status == 0
    assert [each.name for each in tmp_path.iterdir()] == ["outputs"]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("shards", [2, 3])
def test_it_goes_on_in_shards(cli, left, shards):
    done = cli("run", "--resume", "rounds", "--backend", "shards", "--shards", shards, "--json")
    assert done.status == 0, done.err
    one, other = (p2p_sim.load(left / name) for name in ("whole", "rounds"))
    assert (other.digest, other.backend) == (one.digest, "shards")
    outputs = (below(left / name / "outputs") for name in ("whole", "rounds"))
    assert next(outputs) == next(outputs)


def test_runs_that_were_cut_off_are_listed_and_removed(cli, left):
    (folder,) = left.glob("rounds.partial-*")
    rows = {row["path"]: (row["kind"], row["state"], row["what"]) for row in cli("ls", "--json").json}
    assert rows[folder.name] == ("run", "cut off", "PeerToPeer")
    assert rows["whole"][1] == "complete"
    lock = under_way.locked(folder)
    done = cli("rm", folder.name, "--yes")
    assert (done.status, "is still being computed" in done.err, folder.exists()) == (2, True, True)
    assert {row["path"]: row["state"] for row in cli("ls", "--json").json}[folder.name] == "running"
    os.close(lock)
    before = below(left)
    assert cli("rm", folder.name, "--yes").status == 0
    assert below(left) == {name: kept for name, kept in before.items() if not name.startswith(folder.name)}


def test_what_takes_a_whole_run_says_how_it_goes_on(cli, left):
    (folder,) = left.glob("rounds.partial-*")
    done = cli("report", folder.name)
    assert (done.status, f"p2p-sim run --resume {folder.name} goes on with it" in done.err) == (2, True)


def test_a_run_that_was_whole_but_for_its_name_says_so(cli, left):
    (folder,) = left.glob("named.partial-*")
    done = cli("run", "--resume", "named")
    assert (done.status, f"run '{folder.name}' is whole: give it another name" in done.err) == (2, True)
    assert p2p_sim.load(folder).digest == p2p_sim.load(left / "whole").digest
    assert not (folder / "asked.json").exists()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--alpha", "0.2"], "--alpha 0.2 contradicts run 'rounds.partial-"),
        (["peer-to-peer", "--theta", "1"], "which has 0.5: leave it out"),
        (["randomized-response"], "randomized-response contradicts run"),
        (["--seed", "4"], "--seed 4 contradicts run 'rounds.partial-"),
        (["--fault", "drop=0.1"], "which has no --fault: leave it out"),
        (["--users", "301"], "which has 300: leave it out"),
        (["--attack"], "error: --attack contradicts run"),
    ],
)
def test_other_words_are_refused(cli, left, more, says):
    before = below(left)
    done = cli("run", "--resume", "rounds", *more)
    assert (done.status, says in done.err) == (2, True), done.err
    assert below(left) == before


def test_the_same_words_are_taken(cli, left):
    assert cli(*WORDS, "--alpha", "0.1", "--resume", "rounds").status == 0


def test_other_code_is_refused(cli, left, monkeypatch):
    before, honest = below(left), code_fingerprint.sources
    monkeypatch.setattr(code_fingerprint, "sources", lambda it: honest(it) | {"core/draw.py": "0" * 64})
    done = cli("run", "--resume", "rounds")
    assert (done.status, "source core/draw.py differs; restore this" in done.err) == (2, True), done.err
    versions = code_versions.versions
    monkeypatch.undo()
    monkeypatch.chdir(left)
    monkeypatch.setattr(code_versions, "versions", lambda it: versions(it) | {"numpy": "1.0"})
    done = cli("run", "--resume", "rounds")
    assert (done.status, "numpy" in done.err, "1.0 now" in done.err) == (2, True, True)
    assert below(left) == before


def test_another_reader_of_populations_is_refused(cli, interrupted, tmp_path, monkeypatch):
    """What a raw label means is said there, outside the folders of engine and learner."""
    package = tmp_path / "other" / "p2p_sim"
    shutil.copytree(
        Path(code_fingerprint.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__")
    )
    pandas.DataFrame({"y": [True, False, True] * 20}).to_parquet("people.parquet")
    interrupted("run", "randomized-response", "--population", "people.parquet", "--seed", 1, "--out", "r")
    with (package / "parquet_users.py").open("a") as file:
        file.write("\n")
    with monkeypatch.context() as patch:
        patch.setattr(code_fingerprint, "__file__", str(package / "core" / "code_fingerprint.py"))
        done = cli("run", "--resume", "r")
    assert (done.status, "source parquet_users.py differs; restore this" in done.err) == (2, True), done.err
    assert cli("run", "--resume", "r").status == 0


@pytest.fixture
def interrupted(cli, tmp_path, monkeypatch):
    """Run a command that is interrupted when its outputs are written; return its folder and what it said."""

    def run(*words, error: BaseException | None = None):
        def stop(*_words):
            raise error or KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(growing_columns.GrowingColumns, "close", stop)
            done = cli(*words)
        (folder,) = tmp_path.glob("**/*.partial-*")
        return folder, done

    return run


def test_other_data_are_refused(cli, interrupted, tmp_path):
    rows = "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(60))
    (tmp_path / "mine.csv").write_text("a,b,label\n" + rows)
    folder, _ = interrupted("run", "randomized-response", "--data", "mine.csv", "--seed", 1, "--out", "r")
    (tmp_path / "mine.csv").write_text("a,b,label\n9,9,1\n" + rows)
    before = below(tmp_path)
    done = cli("run", "--resume", folder)
    assert (done.status, "data mine.csv differs" in done.err) == (2, True), done.err
    (tmp_path / "mine.csv").rename(tmp_path / "other.csv")
    assert "data mine.csv is gone" in cli("run", "--resume", "r").err
    (tmp_path / "other.csv").rename(tmp_path / "mine.csv")
    assert below(tmp_path) == before
    (tmp_path / "mine.csv").write_text("a,b,label\n" + rows)
    assert cli("run", "--resume", "r").status == 0
    assert p2p_sim.load("r").notes["accuracy"] is not None


@pytest.mark.parametrize("whole", [True, False])
def test_another_population_is_refused(cli, interrupted, tmp_path, monkeypatch, whole):
    """Of little all is hashed, of much the sizes and the footers."""
    if not whole:
        monkeypatch.setattr(parquet_users, "_READ_WHOLE", 0)
    (tmp_path / "people").mkdir()
    parts = [tmp_path / "people" / f"{number}.parquet" for number in range(2)]
    for part in parts:
        pandas.DataFrame({"y": [True, False, True] * 20}).to_parquet(part)
    honest = parts[1].read_bytes()
    interrupted("run", "randomized-response", "--population", "people", "--seed", 1, "--out", "r")
    pandas.DataFrame({"y": [False, False, True] * 20}).to_parquet(parts[1], compression="none")
    done = cli("run", "--resume", "r")
    assert (done.status, f"data {parts[1]} differs" in done.err) == (2, True), done.err
    parts[1].unlink()
    assert f"data {parts[1]} is gone" in cli("run", "--resume", "r").err
    shutil.copy(parts[0], tmp_path / "people" / "2.parquet")
    assert "2.parquet is new" in cli("run", "--resume", "r").err
    (tmp_path / "people" / "2.parquet").unlink()
    parts[1].write_bytes(honest)
    assert cli("run", "--resume", "r").status == 0


def test_ctrl_c_leaves_a_run_that_goes_on(cli, interrupted, tmp_path):
    """Also of one whose fresh seed nobody may know: it is in no file of the whole run."""
    folder, done = interrupted("run", "peer-to-peer", "--users", 90, "--no-population")
    assert done.status == 130
    assert done.err == (
        f"warning: the run was cut off; it goes on, with the same bits, by: p2p-sim run --resume runs/{folder.name}\n"
        "interrupted\n"
    )
    assert {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()} == {"asked.json": 0o600}
    seed = json.loads((folder / "asked.json").read_text())["options"]["seed"]
    assert cli("run", "--resume", "runs/peer-to-peer-synthetic").status == 0
    whole = tmp_path / "runs" / "peer-to-peer-synthetic-1"
    assert not [name for name, text in below(whole).items() if str(seed).encode() in (text or b"")]
    content = json.loads((whole / "run.json").read_text())
    assert (content["seed"], content["seed_source"]) == (None, "fresh")
    same = p2p_sim.learning.experiment.simulate(PeerToPeer(0.1), 90, seed=seed)
    assert content["digest"] == same.digest


def test_a_full_disk_leaves_a_run_that_goes_on(cli, interrupted, tmp_path):
    folder, done = interrupted(
        "run", "peer-to-peer", "--users", 90, "--seed", 3, error=OSError(28, "No space left on device")
    )
    assert done.status == 2
    assert (
        f"error: outputs cannot be written to '{folder}/outputs': No space left on device; make room"
        in done.err
    )
    assert f"p2p-sim run --resume runs/{folder.name}" in done.err
    assert cli("run", "--resume", folder).status == 0


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_disk_that_is_full_when_shards_write_outputs(cli, tmp_path, monkeypatch):
    honest = outputs_folder.OutputsFolder.begin

    def begin(draft):
        target = honest(draft)
        (Path(target.path) / ".learner.parquet.tmp").symlink_to("/dev/full")
        return target

    with monkeypatch.context() as patch:
        patch.setattr(outputs_folder.OutputsFolder, "begin", begin)
        done = cli(*WORDS, "--backend", "shards", "--shards", "2", "--out", "r")
    assert done.status == 2
    assert "error: outputs cannot be written to" in done.err
    assert "No space left on device" in done.err
    (folder,) = tmp_path.glob("r.partial-*")
    assert f"p2p-sim run --resume {folder.name}" in done.err
    assert {each.name for each in folder.iterdir()} == {"asked.json", "messages"}
    assert cli("run", "--resume", "r", "--backend", "local").status == 0
    assert cli(*WORDS, "--out", "whole").status == 0
    check_same(tmp_path / "whole", tmp_path / "r")


@pytest.mark.slow
def test_a_disk_that_is_really_full(cli, tmp_path):
    """A limit on the size of files stands for the disk."""
    words = ["run", "peer-to-peer", "--users", "60000", "--seed", "3", "--trace", "full", "--out", "r"]

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    done = subprocess.run(
        [sys.executable, "-m", "p2p_sim.cli", *words], cwd=tmp_path, preexec_fn=small, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: the trace cannot be written to" in done.stderr
    (folder,) = tmp_path.glob("r.*")
    assert f"p2p-sim run --resume {folder.name}" in done.stderr
    assert cli("run", "--resume", "r").status == 0
    same = p2p_sim.learning.experiment.simulate(PeerToPeer(0.1), 60_000, seed=3)
    assert p2p_sim.load("r").digest == same.digest


def test_a_program_at_fault_does_not_go_on(cli, interrupted, tmp_path):
    from p2p_sim import ProtocolError

    with pytest.raises(ValueError, match="not enough values"):  # nothing is left
        interrupted("run", "peer-to-peer", "--users", 90, error=ProtocolError("one block comes to the end"))
    assert list(below(tmp_path)) == []


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda text: text[:-20], "it is no JSON"),
        (lambda text: text.replace('"users": 300', '"users": 301'), "its checksum does not match"),
        (
            lambda text: text.replace('"format": 1', '"format": 2'),
            "has format 2; this version reads format 1",
        ),
        (lambda text: text.replace('"folder"', '"where"'), "folder"),
        (lambda _text: "[]", "not an object"),
    ],
)
def test_a_damaged_note_is_named_and_nothing_touched(cli, left, harm, says):
    (file,) = left.glob("rounds.partial-*/asked.json")
    file.write_text(harm(file.read_text()))
    before = below(left)
    done = cli("run", "--resume", "rounds")
    assert (done.status, says in done.err, "asked.json" in done.err) == (2, True, True), done.err
    assert below(left) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sed": 3}, "p2p-sim run has no --sed here; did you mean '--seed'?"),
        (
            {"words": ["peer-to-peer", "--thet", "0.5"]},
            "unknown option '--thet'; peer-to-peer has --alpha, --theta",
        ),
        ({"words": ["peer-to-peer", "--theta", "1.5"]}, "theta = 1.5"),
    ],
)
def test_a_run_that_another_version_began_is_named_with_what_is_not_here(cli, left, change, says):
    (folder,) = left.glob("rounds.partial-*")
    asked = under_way.read(folder)
    asked["options"] |= change
    (folder / "asked.json").unlink()
    under_way.write(folder, asked)
    done = cli("run", "--resume", "rounds")
    assert done.status == 2
    for word in (str(folder.name), says, "another version", "go on with that version, or begin a new run"):
        assert word in done.err, done.err


def test_a_run_that_is_still_computed_is_left_alone(cli, left):
    (folder,) = left.glob("rounds.partial-*")
    before, lock = below(folder), under_way.locked(folder)
    assert lock is not None
    done = cli("run", "--resume", "rounds")
    os.close(lock)
    assert (done.status, "is still being computed by another process" in done.err) == (2, True)
    assert below(folder) == before


def test_which_of_several_is_asked(cli, left):
    (folder,) = left.glob("rounds.partial-*")
    shutil.copytree(folder, left / "rounds.partial-second")
    done = cli("run", "--resume", "rounds")
    assert (done.status, "2 runs 'rounds' were cut off: name one of them" in done.err) == (2, True)
    assert cli("run", "--resume", "rounds.partial-second").status == 0
    assert cli("run", "--resume", folder.name).err.startswith("error: output 'rounds' exists already")
    assert folder.is_dir()


def test_images_are_read_with_their_labels(tmp_path):
    from p2p_sim.learning.data.files import read_with

    one, other = tmp_path / "my-images-idx3-ubyte", tmp_path / "my-labels-idx1-ubyte.gz"
    assert read_with(one) == [one]
    other.touch()
    assert read_with(one) == [one, other]


@pytest.mark.parametrize("name", ["nothing", "."])
def test_a_folder_that_is_no_run_is_named(cli, name):
    done = cli("run", "--resume", name)
    assert (done.status, f"'{name}'" in done.err) == (2, True)

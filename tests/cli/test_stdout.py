"""Standard output holds all of a document and nothing else, or the command says that it does not."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import Population
from protocols import PeerToPeer, RandomizedResponse
from tests.tiny import people

CODE = "import sys; from p2p_sim.cli import main; sys.exit(main(sys.argv[1:]))"
UNBUFFERED = [{}, {"PYTHONUNBUFFERED": "1"}]
SPACE = 4096  # bytes that fit, fewer than any document below

DOCUMENTS = {
    "json": ("report", "r", "--json"),
    "csv": ("trace", "show", "r", "--format", "csv", "--limit", "1000"),
    "graphml": ("trace", "export", "r", "--format", "graphml"),
    "parquet": ("trace", "show", "r", "--format", "parquet", "--limit", "1000"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    at = tmp_path_factory.mktemp("made")
    many = Population.synthetic(users=300, cluster_size=30, seed=1)
    p2p_sim.run(PeerToPeer(0.1), many, seed=2**63 + 3, trace="full").save(at / "r")
    return at


def call(at: Path, *words: str, stdout, limit: int | None = None, **more: str) -> subprocess.CompletedProcess:
    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    root = str(Path(p2p_sim.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=at, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=limited,
        env=env | {"PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"} | more, timeout=240,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("words", [DOCUMENTS[name] for name in ("json", "csv", "parquet")])
def test_what_does_not_fit_is_said(place, words, tmp_path):
    """Of a text written at once, of one written bit by bit, and of bytes."""
    for unbuffered in UNBUFFERED if words == DOCUMENTS["csv"] else UNBUFFERED[1:]:
        with (tmp_path / "out").open("wb") as out:
            done = call(place, *words, stdout=out, limit=SPACE, **unbuffered)
        assert done.returncode == 2, done.stderr
        assert (
            b"error: standard output cannot be written to its end (File too large): raise the limit"
            in done.stderr
        )
        assert b"Exception ignored" not in done.stderr
        assert (tmp_path / "out").stat().st_size <= SPACE


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", UNBUFFERED)
def test_a_full_device_is_said(place, unbuffered):
    with Path("/dev/full").open("wb") as out:
        done = call(place, "data", "--json", stdout=out, **unbuffered)
    assert done.returncode == 2
    assert b"standard output cannot be written to its end (No space left on device)" in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", UNBUFFERED)
def test_a_slow_pipe_gets_all(place, unbuffered):
    done = call(place, *DOCUMENTS["graphml"], stdout=subprocess.PIPE, **unbuffered)
    assert (done.returncode, done.stdout.rstrip()[-10:]) == (0, b"</graphml>")


PAGES = {
    "report": (("report", "r", "--no-seed", "--out"), b"</html>"),
    "export": (("trace", "export", "r", "--format", "graphml", "--out"), b"</graphml>"),
    "diagram": (("trace", "diagram", "r", "--out"), b"</svg>"),
    "page": (("trace", "serve", "r", "--export"), b"</html>"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "end"), PAGES.values(), ids=PAGES)
def test_a_page_on_stdout_has_nothing_after_it(place, words, end):
    done = call(place, *words, "/dev/stdout", stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout.rstrip()[-len(end) :]) == (0, end)
    assert done.stdout.count(end) == 1


def test_a_summary_and_a_page_are_not_both_written_to_stdout(place):
    words = ("trace", "export", "r", "--format", "perfetto", "--json", "--out", "/dev/stdout")
    done = call(place, *words, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--json and --out '/dev/stdout' both write to stdout: leave one of them out" in done.stderr


def test_of_two_runs_to_one_folder_the_second_does_not_begin(cli, monkeypatch, tmp_path):
    """While the first computes; when it is done the folder is there, and refused as such."""
    from p2p_sim.learning import experiment

    words = ("run", "randomized-response", "--epsilon", "1", "--users", "20", "--out", "runs/mine", "--json")
    begun, go_on, honest, runs = threading.Event(), threading.Event(), experiment.simulate, []

    def waiting(*given, **named):
        runs.append(1)
        begun.set()
        assert go_on.wait(60)
        return honest(*given, **named)

    monkeypatch.setattr(experiment, "simulate", waiting)
    first = threading.Thread(target=cli, args=words)
    first.start()
    assert begun.wait(60)
    try:
        for more in ((), ("--force",)):
            second = cli(*words, *more)
            assert second.status == 2
            assert "output 'runs/mine' is being written by another run: choose another name" in second.err
        with pytest.raises(p2p_sim.InputError, match="is being written by another run"):
            p2p_sim.run(RandomizedResponse(1.0), people(), out="runs/mine")
    finally:
        go_on.set()
        first.join()
    assert len(runs) == 1
    assert json.loads((tmp_path / "runs/mine/run.json").read_text())["users"] == 20
    assert sorted(file.name for file in (tmp_path / "runs").iterdir()) == ["latest", "mine"]
    assert "exists already" in cli(*words).err
    assert len(runs) == 1


def test_a_claim_leaves_nothing(tmp_path):
    from p2p_sim.rundir.claim import claimed

    def interrupted(path: Path) -> None:
        with claimed(path, force=False):
            assert [file.name for file in path.parent.iterdir()] == [".run.claim"]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "a/b/run")
    assert list(tmp_path.iterdir()) == []

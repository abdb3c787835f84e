"""``p2p-sim trace serve`` as a process, and its export."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from p2p_sim import cli as program
from tests.cli.conftest import cli  # noqa: F401
from tests.processes import ended
from tests.render.web.conftest import make

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def start(folder, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "p2p_sim.cli", "trace", "serve", str(folder), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_it_serves_until_it_is_interrupted(tmp_path):
    make("peers").save(tmp_path / "run")
    with ended(start(tmp_path / "run")) as serving:
        url = serving.stdout.readline().strip()
        with urllib.request.urlopen(url + "api/overview", timeout=30) as answer:
            assert json.load(answer)["protocol"] == "PeerToPeer"
        serving.send_signal(signal.SIGINT)
        out, err = serving.communicate(timeout=30)
    assert (serving.returncode, out, err) == (0, "", "Ctrl-C ends it.\n")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
def test_without_file_descriptors_it_waits_and_serves_again(tmp_path):
    make("peers").save(tmp_path / "run")
    with ended(start(tmp_path / "run")) as serving:
        url = serving.stdout.readline().strip()
        with urllib.request.urlopen(url + "api/lanes", timeout=60) as answer:  # all is read and imported
            assert answer.status == 200
        fds = len(list(Path(f"/proc/{serving.pid}/fd").iterdir()))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(serving.pid, resource.RLIMIT_NOFILE, (fds + 3, hard))
        lines = [socket.create_connection(("127.0.0.1", urlsplit(url).port)) for _ in range(12)]
        time.sleep(1)
        before = cpu(serving.pid)
        time.sleep(3)
        spent = cpu(serving.pid) - before
        for line in lines:
            line.close()
        time.sleep(1)
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200
        serving.send_signal(signal.SIGINT)
        _, err = serving.communicate(timeout=30)
    assert spent < 0.5, "it took a whole processor"
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert notes[0] == "note: no connection is accepted now, and it is tried again: Too many open files"
    assert "note: connections are accepted again" in notes


def cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def test_a_port_is_taken_and_one_in_use_named(tmp_path):
    make("peers").save(tmp_path / "run")
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with ended(start(tmp_path / "run", "--port", str(port))) as serving:
            out, err = serving.communicate(timeout=60)
    assert (serving.returncode, out) == (2, "")
    assert f"port {port} is in use: choose another by --port" in err


def test_an_export_is_written_whole(cli, tmp_path):  # noqa: F811
    make("peers").save(tmp_path / "run")
    done = cli("trace", "serve", "run", "--export", "page.html", "--user", 7)
    assert (done.status, done.out) == (0, "page.html\n")
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"This file holds \d+ of the run's", page)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: re.sub(r'"format": \d+', '"format": 99', text), "has format 99"),
        (lambda text: text[: len(text) // 2], "is damaged"),
    ],
    ids=["newer", "cut"],
)
def test_a_run_that_cannot_be_read_is_not_served(tmp_path, spoil, said):
    make("peers").save(tmp_path / "run")
    told = tmp_path / "run" / "run.json"
    told.write_text(spoil(told.read_text()))
    process = start(tmp_path / "run")
    try:
        out, err = process.communicate(timeout=60)  # one that is served would go on
    finally:
        process.kill()
    assert (process.returncode, out) == (2, "")
    assert said in err


def test_bad_usage_is_named(cli, tmp_path):  # noqa: F811
    make("peers").save(tmp_path / "run")
    for words, said in {
        ("run", "--user", 7): "--user needs --export",
        ("run", "--cluster", 7): "--cluster needs --export",
        ("run", "--export", "p.html", "--user", 1, "--cluster", 4): "a page shows one of them",
        (
            "run",
            "--export",
            "no/such/p.html",
        ): "--export 'no/such/p.html': give a file in a folder that exists",
        ("run", "--export", "p.html", "--user", 60): "user 60: not in this run",
        ("run", "--port", 70000): "port = 70000: must be from 0",
        ("nothing",): "is no run directory and holds none",
    }.items():
        done = cli("trace", "serve", *words)
        assert (done.status, done.out) == (2, "")
        assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert program.main  # the command line in this process

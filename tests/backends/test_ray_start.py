"""A start of Ray that fails, hangs or is interrupted: said why, in time, and nothing is left.  No Ray is started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from p2p_sim import InputError, RunLostError
from p2p_sim.backends import ray_lost_actors, ray_node, ray_session, ray_site, ray_start

pytestmark = pytest.mark.slow

FAILS = "print('\\x1b[31m----- BEGIN gcs_server.out tail (exit code(s)=-9 (signal 9)) -----'); raise SystemExit(1)"
HANGS = "import sys, time; print(sys.argv[2:], flush=True); time.sleep(600)"


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Put a short program in the place of `ray start`."""

    def put(code: str) -> None:
        script = tmp_path / "stand_in.py"
        script.write_text(code)
        monkeypatch.setattr(ray_start, "__file__", str(script))

    return put


@pytest.fixture
def folders(monkeypatch):
    """The folders of all nodes that are started."""
    found: list[Path] = []
    make = ray_node.tempfile.mkdtemp

    def note(*given, **how):
        found.append(Path(make(*given, **how)))
        return str(found[-1])

    monkeypatch.setattr(ray_node.tempfile, "mkdtemp", note)
    return found


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """The Ray that other tests of this process have joined is neither used nor ended."""
    monkeypatch.setattr(ray_session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_session.ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray_session, "_watched", [])


def start(address=None):
    with ray_session.session(address, 61, 0):
        pytest.fail("Ray cannot have started")


def test_what_ended_while_ray_started_is_named(stand_in, folders):
    stand_in(FAILS)
    with pytest.raises(
        InputError, match=r"Ray did not start .*gcs_server ended \(exit code -9 .*backend 'local'"
    ):
        start()
    assert len(folders) == 1
    assert not folders[0].exists()


def test_a_start_that_takes_too_long_is_ended_and_named(monkeypatch, stand_in, folders):
    stand_in(HANGS)
    monkeypatch.setattr(ray_node, "START_SECONDS", 2.0)
    with pytest.raises(
        InputError, match=r"Ray did not start within 2 s: this machine is too busy \(\d+ processes"
    ):
        start()
    assert not folders[0].exists()


def test_few_workers_are_started_at_once_and_no_other_cluster_is_named(monkeypatch, stand_in):
    stand_in(
        "import os, sys; print(sys.argv[2:], os.environ.get('RAY_ADDRESS'), os.environ['RAY_AUTH_MODE']); sys.exit(3)"
    )
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InputError, match=r"--num-cpus=4'.* None token"):
        start()
    assert os.environ["RAY_ADDRESS"] == "auto"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_heard_while_ray_starts(how, tmp_path):
    (tmp_path / "stand_in.py").write_text(HANGS)
    code = (
        "import sys; from p2p_sim.backends import ray_start, ray_session; from p2p_sim.cli import main\n"
        f"ray_start.__file__ = {str(tmp_path / 'stand_in.py')!r}\n"
        "start = ray_session._start\n"
        "def noted(*given):\n"
        "    node = start(*given)\n"
        "    print(node._folder, node._process.pid, file=sys.stderr, flush=True)\n"
        "    return node\n"
        "ray_session._start = noted\n"
        "sys.exit(main(['run', 'peer-to-peer', '--users', '8', '--backend', 'actors', '--seed', '3']))"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(ray_session.__file__).parents[2])},
    )  # fmt: skip
    try:
        assert program.stderr is not None
        while not (line := program.stderr.readline()).startswith("/tmp/p2p-"):
            assert line, "the program ended"
        time.sleep(0.5)
        program.send_signal(how)
        _, err = program.communicate(timeout=60)
    finally:
        program.kill()
    folder, child = line.split()
    assert (program.returncode, err.splitlines()[-1]) == (130, "interrupted")
    assert not Path(folder).exists()
    assert not Path(f"/proc/{child}").exists()


def test_a_caller_that_is_killed_takes_ray_and_its_folder_with_it(tmp_path):
    """The child sees that the pipe from the caller is closed; `ray` is a module here that starts a process."""
    scripts = tmp_path / "ray" / "scripts"
    scripts.mkdir(parents=True)
    for package in (scripts.parent, scripts):
        (package / "__init__.py").touch()
    (scripts / "scripts.py").write_text(
        "import subprocess, sys; worker = subprocess.Popen(['sleep', '600'], process_group=0)\n"
        "print(worker.pid, flush=True); sys.exit(worker.wait())"
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-P", ray_start.__file__, str(folder), "start"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    worker = int(child.stdout.readline())
    child.stdin.close()
    child.wait(timeout=60)
    child.stdout.close()
    assert not folder.exists()
    assert worker not in ray_start._processes() or ray_start._ended(worker)


def test_a_signal_is_delivered_after_what_must_end():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_how: heard.append("program"))
    try:
        with ray_session._signals_later():
            signal.raise_signal(signal.SIGTERM)
            assert not heard
        assert heard == ["program"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_call_that_a_signal_interrupts_is_not_taken_for_ended():
    """Ray ends the program if it is itself ended while the program joins it."""
    call = ray_session._Call()
    until = threading.Event()

    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        until.wait(60)

    with pytest.raises(KeyboardInterrupt):
        call.run(interrupt, 60)
    assert not call.settle(0.0)
    until.set()
    assert call.settle(60)


def test_a_call_has_a_time_limit_and_hands_on_its_error():
    until = threading.Event()
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        ray_session._Call().run(lambda: until.wait(60), 0.0)
    until.set()
    with pytest.raises(ZeroDivisionError):
        ray_session._Call().run(lambda: 1 / 0, 60)


def test_who_is_silent_is_said_once_and_waited_for(monkeypatch):
    answers = iter([[], [], [], ["handle"]])
    monkeypatch.setattr(ray_site.ray, "wait", lambda handles, timeout: (next(answers), []))
    monkeypatch.setattr(ray_site, "SILENT_SECONDS", -1.0)
    with pytest.warns(UserWarning, match="role 'user', round 2, shard 1: silent for") as warned:
        assert ray_site.wait(["handle"], "role 'user', round 2, shard 1") == "handle"
    assert len(warned) == 1


def test_a_worker_that_never_starts_is_named(monkeypatch):
    monkeypatch.setattr(ray_site.ray, "wait", lambda handles, timeout: ([], handles))
    with pytest.raises(
        RunLostError, match=r"start of shard 1: no answer within 0 s: this machine is too busy"
    ):
        ray_site.wait(["handle"], "start of shard 1", 0.0)


def test_a_ray_that_ended_is_named(monkeypatch):
    monkeypatch.setattr(ray_site.ray, "wait", lambda handles, timeout: ([], handles))
    monkeypatch.setattr(
        ray_session, "_watched", [SimpleNamespace(lost=lambda: "its process raylet ended (exit code -9)")]
    )
    with pytest.raises(RunLostError, match=r"shard 1: Ray was lost, its process raylet ended .*same bits"):
        ray_site.wait(["handle"], "shard 1")


def test_a_module_that_only_this_process_finds_is_named_and_not_called_lost():
    exceptions = ray_site.ray.exceptions
    error = SimpleNamespace(cause=exceptions.RaySystemError("No module named 'mine'", "Traceback"))
    assert "No module named 'mine'" in ray_site._missing(error)
    assert ray_site._missing(SimpleNamespace(cause=ModuleNotFoundError("No module named 'mine'")))
    assert not ray_site._missing(SimpleNamespace(cause=ValueError("No module named 'mine'")))


def test_memory_is_named_only_where_it_ran_out():
    exceptions = ray_site.ray.exceptions
    assert "memory ran out on its machine" in ray_lost_actors.why(
        exceptions.OutOfMemoryError("Task was killed")
    )
    assert "its process was killed or has crashed, or memory" in ray_lost_actors.why(
        exceptions.ActorDiedError()
    )

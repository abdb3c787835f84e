"""Ray is started quietly and always ended; an address that does not answer is refused in time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

import p2p_sim
from p2p_sim.backends import ray_probe as addressing
from p2p_sim.backends import ray_session, ray_start
from p2p_sim.cli import main
from tests.contract.cases import POPULATIONS, PROTOCOLS
from tests.processes import ended

pytestmark = pytest.mark.ray

RUN = (
    "import p2p_sim; from tests.contract.cases import *\n"
    "people = POPULATIONS['scattered'](101)\n"
    "run = p2p_sim.run(PROTOCOLS['peer-to-peer'], people, seed=7, backend='shards', shards=2{})\n"
    "import ray; print(run.digest, ray.is_initialized())"
)


def children_of(parent: int) -> set[int]:
    """Processes below one, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, front = set(), {parent}
    while front:
        front = {child for child, above in parents.items() if above in front}
        found |= front
    return found


def alive(process: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


CLI = """
import sys
from p2p_sim.cli import main
status = main(sys.argv[1:])
import ray
print(ray.is_initialized(), file=sys.stderr)
sys.exit(status)
"""


def test_a_run_starts_and_ends_its_own_ray_and_leaves_stdout_to_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "peer-to-peer", "--users", "60", "--cluster-size", "20", "--json", "--seed", "0")
    elsewhere = {
        "RAY_JOB_CONFIG_JSON_ENV_VAR": "{",
        "RAY_START_HOOK": "no.such",
    }
    done = subprocess.run(
        [sys.executable, "-c", CLI, *words, "--backend", "shards", "--shards", "2"], capture_output=True, text=True,
        check=True, cwd=tmp_path, env={**os.environ, **elsewhere}, timeout=240,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "False"
    assert "(raylet)" not in done.stderr
    told = json.loads(done.stdout)
    monkeypatch.chdir(tmp_path)
    assert main([*words]) == 0
    assert told["digest"] == json.loads(capsys.readouterr().out)["digest"]
    assert {"start-up", "rounds"} <= set(told["seconds"])
    assert "Ray" in told["peak_memory"]["covers"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_ends_ray_and_leaves_no_folder(how: signal.Signals) -> None:
    """Also where nobody handles SIGTERM, and nothing is left that could clean up but Ray's own start."""
    code = (
        "import p2p_sim; from tests.backends.programs import *; from tests.contract.cases import *\n"
        "from p2p_sim.backends import ray_site\n"
        "from p2p_sim.backends import ray_session\n"
        "def fetch(*given):\n"
        "    print('up', ray_session._watched[0]._folder, flush=True)\n"
        "    import time; time.sleep(600)\n"
        "ray_site.fetch = fetch\n" + RUN.format("")
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert started.stderr is not None
        while (line := started.stderr.readline()) and not line.startswith("up"):
            pass  # while Ray lives, standard output goes to standard error
        below = children_of(started.pid)
        assert len(below) >= 3
        folder = Path(line.split()[1])
        assert folder.is_dir()
        started.send_signal(how)
        started.communicate(timeout=60)
    finally:
        started.kill()
    until = time.monotonic() + 20
    while time.monotonic() < until and (folder.exists() or any(alive(process) for process in below)):
        time.sleep(0.2)
    assert not [process for process in below if alive(process)]
    assert not folder.exists()


SIGTERM = """
import signal, sys
from p2p_sim.backends import ray_session

class Stopped(Exception):
    pass

def stop(*_how):
    raise Stopped

signal.signal(signal.SIGTERM, stop)
try:
    with ray_session.session(None, 1, 0):
        print(signal.getsignal(signal.SIGTERM) is stop, file=sys.stderr)
        signal.raise_signal(signal.SIGTERM)
except Stopped:
    print("stopped")
ray_session.ray_node.Node.address = lambda _node: signal.raise_signal(signal.SIGTERM)
try:
    with ray_session.session(None, 1, 0):
        pass
except Stopped:
    print("stopped while it started")
"""


def test_a_program_keeps_its_own_handler_of_sigterm() -> None:
    """Ray's own would let it end for three seconds and abort it then."""
    done = subprocess.run([sys.executable, "-c", SIGTERM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["stopped", "stopped while it started"]
    assert "True" in done.stderr.splitlines()


def test_a_raylet_that_is_killed_is_named() -> None:
    code = (
        "import p2p_sim, ray; from tests.backends.programs import *; from tests.contract.cases import *\n"
        "from p2p_sim.cli.program import _refused\n"
        "try:\n"
        "    p2p_sim.run(Felling(), POPULATIONS['unclustered'](4), seed=7, backend='shards', shards=2)\n"
        "except p2p_sim.RunLostError as error:\n"
        "    print(error, ray.is_initialized())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=500
    )
    assert re.search(
        r"role 'user', round 1, shard \d .*raylet ended .*same seed gives the same bits False", done.stdout
    )
    assert "raylet" not in done.stderr
    assert "\x1b" not in done.stderr


def test_a_frozen_worker_is_named_and_the_run_can_still_be_interrupted() -> None:
    code = (
        "import p2p_sim; from tests.backends.programs import *; from tests.contract.cases import *\n"
        "from p2p_sim.backends import ray_site\n"
        "ray_site.SILENT_SECONDS = 2.0\n"
        "p2p_sim.run(Freezing(), POPULATIONS['unclustered'](4), seed=7, backend='shards', shards=2)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert started.stderr is not None
        while (line := started.stderr.readline()) and "role 'user', round 1" not in line:
            pass
        below = children_of(started.pid)
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)
    finally:
        started.kill()
    assert "role 'user', round 1, shard 0 (users 0 to 1): silent for 2 s, busy or frozen" in line
    assert not [process for process in below if alive(process)]


ASK_WITH_TOKEN = """
import os
from p2p_sim.backends import ray_probe
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "abcdef"}
try:
    ray_probe.probe(cluster.address)
except p2p_sim.InputError as error:
    print(error)
cluster.shutdown()
"""


def test_a_cluster_of_two_nodes_by_address() -> None:
    code = (
        "from ray.cluster_utils import Cluster\n"
        "cluster = Cluster(initialize_head=True, head_node_args={'num_cpus': 1, 'include_dashboard': False})\n"
        "cluster.add_node(num_cpus=1)\n" + RUN.format(", address=cluster.address") + ASK_WITH_TOKEN
    )
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    here = p2p_sim.run(PROTOCOLS["peer-to-peer"], POPULATIONS["scattered"](101), seed=7)
    digest, refused = done.stdout.splitlines()[-2:]
    assert digest == f"{here.digest} False"
    assert "RAY_AUTH_MODE is token here, and the cluster asks nobody for a token: start it anew" in refused


def test_a_cluster_with_a_token_is_started_and_used_as_documented(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
    start, use = re.findall(r"```bash\n(.*?)```", page[page.index("## A Ray cluster") :], re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    rays = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets need a short path
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | {
        "HOME": str(tmp_path), "RAY_TMPDIR": rays, "PYTHONPATH": str(Path(p2p_sim.__file__).parents[1]),
    }  # fmt: skip
    program = (
        f'set -e; p2p-sim() {{ {sys.executable} -m p2p_sim.cli "$@"; }}\n'
        f'ray() {{ {sys.executable} -P -m ray.scripts.scripts "$@"; }}\n'
    )
    sessions: list[int] = []

    def shell(code: str) -> subprocess.CompletedProcess[str]:
        code = program + code.replace("HEAD", "127.0.0.1").replace("6379", port)
        started = subprocess.Popen(
            ["bash", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
            env=environment, start_new_session=True,
        )  # fmt: skip
        with ended(started):
            sessions.append(started.pid)
            out, err = started.communicate(timeout=300)
        return subprocess.CompletedProcess(code, started.returncode, out, err)

    try:
        begun = shell(f"({start}) >start.log 2>&1")  # what it leaves running must not hold a pipe
        assert begun.returncode == 0, (tmp_path / "start.log").read_text()
        use = use.replace("--seed 3", "--seed 3 --json")
        done, alone = (shell(code) for code in (use, use[: use.index("--backend")]))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["digest"] == json.loads(alone.stdout)["digest"]
        for instead, told in (
            ("", "the cluster asks for a token, and none is sent: set RAY_AUTH_MODE=token"),
            ("export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=abcdef\n", "does not take the token that is sent"),
            ("export RAY_AUTH_MODE=token\nrm ~/.ray/auth_token\n", "there is no token here: copy the token"),
        ):
            refused = shell(use.replace("export RAY_AUTH_MODE=token\n", instead))
            assert refused.returncode == 2, refused.stderr
            assert told in refused.stderr
            assert "Traceback" not in refused.stderr
    finally:
        while any(ray_start.kill_session(each) for each in sessions):
            time.sleep(0.1)
        shutil.rmtree(rays, ignore_errors=True)


@pytest.fixture
def mute_server() -> Iterator[str]:
    """Something that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in kept:
            connection.close()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:10001", "nowhere", "127.0.0.1:99999999"])
def test_a_dead_address_is_refused(address: str) -> None:
    start = time.monotonic()
    with pytest.raises(p2p_sim.InputError, match="address = "):
        addressing.probe(address)
    assert time.monotonic() - start < 20


def test_an_address_that_is_not_ray_is_refused(mute_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addressing, "ANSWER_SECONDS", 4.0)
    with pytest.raises(p2p_sim.InputError, match="not as Ray within 4 s"):
        addressing.probe(mute_server)


def test_a_cluster_of_another_python_is_named_with_both_versions() -> None:
    """Ray's own check refuses it, on several lines."""
    from ray._private.utils import check_version_info

    with pytest.raises(RuntimeError) as refused:
        check_version_info({"ray_version": "2.59.0", "python_version": "3.12.1"}, "node 10.0.0.7")
    here = ".".join(map(str, sys.version_info[:3]))
    assert ray_session._other_versions(str(refused.value)) == (
        f"the cluster has Ray 2.59.0 and Python 3.12.1, and this process Ray {ray.__version__} and Python {here}; "
        "install the same on both"
    )
    assert ray_session._other_versions("Version mismatch: of something else") == ""
    assert ray_session._other_versions("node 3 ended") == ""


def test_the_watchdogs_stay_under_twenty_seconds() -> None:
    assert addressing.PROBE_SECONDS + addressing.ANSWER_SECONDS < 20


@pytest.mark.parametrize(
    ("address", "same"),
    [("10.0.0.5:6379", True), ("127.0.0.1:6379", True), ("10.0.0.5:6380", False), ("10.0.0.6:6379", False)],
)
def test_one_address_may_be_spelled_in_two_ways(monkeypatch, address, same):

    monkeypatch.setattr(ray_session.ray.util, "get_node_ip_address", lambda: "10.0.0.5")
    assert ray_session._same(address, "10.0.0.5:6379") is same

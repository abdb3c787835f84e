"""Workers import what the calling process imports, whatever lies in the current folder, or the run is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import p2p_sim
import protocols
from p2p_sim import cli

pytestmark = pytest.mark.ray

STRAYS = ("numpy", "pydantic", "scipy", "psutil", "typing_extensions", "numba", "p2p_sim", "ward_unused")
STRAY = "from pathlib import Path\nPath({!r}).touch()\n"
RUN = ("run", "randomized-response", "--epsilon", "1", "--users", "200", "--seed", "3", "--json")

OWN = '''
from dataclasses import dataclass

import helper
from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Mine(Protocol):
    """Hands a noisy label on."""

    report = Message("user", "learner", "hands a noisy label on", y=bool)

    def user(self, me: Party) -> Rounds:
        import later

        yield self.report(y=later.same(me.y ^ me.draw.bernoulli("flip", helper.FLIP)))

    def learner(self, me: Party) -> Rounds:
        import scipy.special
        reports = yield self.report.receive()
        return reports.columns()
'''


IN_ONE_RAY = """
import contextlib, io, json, sys
from p2p_sim.backends.ray_session import session
from p2p_sim.cli import main

def digest(words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0
    return json.loads(out.getvalue())["digest"]

with session(None, 8, 100 << 20):
    found = [digest(words) for words in json.loads(sys.argv[1])]
print(json.dumps(found))
"""


def digests(folder: Path, *runs: tuple[str, ...]) -> list[str]:
    """Digests of runs of ``p2p-sim`` as its console script starts it: without the current folder on the path.

    All in one program with one Ray, which takes longer to start than they take.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", IN_ONE_RAY, json.dumps(runs)], capture_output=True, text=True, check=False,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(p2p_sim.__file__).parents[1])}, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(map(str, json.loads(done.stdout)))


def strays(folder: Path) -> Path:
    """Fill a folder with modules that leave a mark when they are run; return the mark."""
    mark = folder / "mark"
    for name in STRAYS:
        (folder / f"{name}.py").write_text(STRAY.format(str(mark)) + "raise ImportError('a stray module')\n")
    return mark


def without_noise(folder: Path) -> None:
    """Put other protocols into a folder: randomized response always tells the truth."""
    shutil.copytree(Path(protocols.__file__).parent, folder / "protocols")
    file = folder / "protocols" / "randomized_response.py"
    text = file.read_text()
    changed = text.replace('me.draw.bernoulli("lie", self.lying())', "np.zeros(me.size, bool)")
    assert changed != text
    file.write_text(changed)


def test_the_current_folder_is_not_what_workers_import_but_for_a_protocol_of_ones_own(tmp_path: Path) -> None:
    """Such a protocol brings what it imports, and nothing else."""
    without_noise(tmp_path)
    mark = strays(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "helper.py").write_text("from fractions import Fraction\nFLIP = Fraction(1, 4)\n")
    (tmp_path / "later.py").write_text("def same(y):\n    return y\n")
    shards, actors = ("--backend", "shards", "--shards", "2"), ("--backend", "actors")
    mine = ("run", "mine:Mine", "--users", "5", "--seed", "3", "--json")
    here, there, own, own_shards, own_actors = digests(
        tmp_path, RUN, (*RUN, *shards), mine, (*mine, *shards), (*mine, *actors)
    )
    assert there == here
    assert own == own_shards == own_actors
    assert not mark.exists()


OWN_RAY = """
import os, sys
import p2p_sim, ray
from p2p_sim.cli import main

os.chdir(sys.argv[1])
ray.init("local", num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False, logging_level=40)
status = main(sys.argv[2:])
ray.shutdown()
sys.exit(status)
"""


def test_other_code_in_a_ray_that_runs_already_is_refused(tmp_path: Path) -> None:
    """Ray itself lets workers import from the current folder first."""
    script, there = tmp_path / "script.py", tmp_path / "there"
    script.write_text(OWN_RAY)
    there.mkdir()
    without_noise(there)
    words = [sys.executable, str(script), str(there), *RUN, "--backend", "shards", "--shards", "2"]
    root = str(Path(p2p_sim.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": root, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=240)
    assert (done.returncode, done.stdout) == (2, "")
    for word in ("the Ray worker in process", "protocols/randomized_response.py differs", "ray.shutdown()"):
        assert word in done.stderr


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("backend", ["shards", "actors"])
@pytest.mark.parametrize("what", ["numba", "python"])
def test_another_version_is_refused_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    backend: str,
    what: str,
) -> None:
    # as if the worker were on a machine with another numba, or another Python
    found, real, other = sys.version, metadata.version, "3.99.0"
    there = found.split()[0] if what == "python" else real(what)
    monkeypatch.setattr(metadata, "version", lambda name: other if name == what else real(name))
    monkeypatch.chdir(tmp_path)
    words = ["run", "randomized-response", "--epsilon", "1", "--users", "5", "--backend", backend]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", found.replace(there, other) if what == "python" else found)
        assert cli.main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "the Ray worker in process" in told.err
    assert f"({what} {there} there, {other} here); install the same there" in told.err
    assert not any(tmp_path.rglob("run.json"))


@pytest.mark.usefixtures("ray_session")
def test_workers_have_the_path_of_this_process(tmp_path: Path) -> None:
    import ray

    from p2p_sim.core import module_finder

    @ray.remote
    def path() -> list[str]:
        return sys.path

    here = module_finder.folders()
    assert ray.get(path.remote())[: len(here)] == here

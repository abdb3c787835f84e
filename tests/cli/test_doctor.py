"""``p2p-sim doctor`` says what it found, and what is wrong."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim.cli import doctor
from p2p_sim.network import room
from p2p_sim.report import terminal
from tests.cli.conftest import cli  # noqa: F401


def verdicts(done):
    return {each["what"]: (each["verdict"], each["found"], each["advice"]) for each in done.json["findings"]}


def test_a_good_installation_has_no_problem(cli, monkeypatch):  # noqa: F811
    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    done = cli("doctor", "--json")
    assert done.status == 0
    assert done.json["problems"] == 0
    found = verdicts(done)
    assert {
        "Python",
        "packages",
        "processors",
        "memory",
        "this folder",
        "data sets",
        "Ray",
        "browser",
    } <= set(found)
    assert found["packages"][0] == found["compiled loops"][0] == "ok"
    text = cli("doctor")
    assert text.out.endswith("no problem\n")
    assert found["p2p-sim"][1] == f"{metadata.version('p2p-sim')}, from {Path(p2p_sim.__file__).parent}"
    here = str(Path.cwd())  # paths are never cut, and this one may be long
    assert max(len(line) for line in text.out.splitlines() if here not in line) <= terminal.WIDTH


def test_packages_that_are_missing_or_too_old_are_named(cli, monkeypatch):  # noqa: F811
    version = metadata.version

    def other(name):
        if name == "scipy":
            raise metadata.PackageNotFoundError(name)
        return "1.0" if name == "numpy" else version(name)

    monkeypatch.setattr(doctor.metadata, "version", other)
    done = cli("doctor", "--json")
    assert done.status == 1
    verdict, found, advice = verdicts(done)["packages"]
    assert verdict == "problem"
    assert found == "numpy 1.0, not >=2.1; scipy is not there"
    assert advice == "python -m pip install 'numpy>=2.1' 'scipy>=1.14.1'"  # never p2p-sim by its name


def test_it_ends_with_a_verdict_where_ray_or_the_package_itself_is_not_installed(cli, monkeypatch):  # noqa: F811
    version = metadata.version

    def other(name):
        if name == "ray":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", other)
    monkeypatch.setattr(doctor.metadata, "requires", none)
    done = cli("doctor", "--json")
    found = verdicts(done)
    assert (done.status, done.json["problems"]) == (1, 2)
    assert found["packages"][:2] == ("problem", "p2p-sim itself is not installed, only found")
    assert found["Ray"][:2] == ("problem", "it is not there")


def test_a_folder_that_is_gone_and_no_place_for_temporary_files_are_problems(monkeypatch):
    def gone():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(doctor.Path, "cwd", gone)
    monkeypatch.setattr(doctor.tempfile, "gettempdir", gone)
    places = [(each.what, each.verdict, each.found) for each in doctor._places()]
    why = "No such file or directory"
    assert places == [("this folder", "problem", why), ("temporary files", "problem", why)]


def test_ray_is_started_here_whatever_cluster_is_set(monkeypatch):
    given = {}

    def seen(command, *, env, **_):
        given.update(env)
        return doctor.subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.setattr(doctor.subprocess, "run", seen)
    assert {each.what: each.verdict for each in doctor._ray(True)}["Ray"] == "ok"
    assert given
    assert "RAY_ADDRESS" not in given


def test_a_wrong_data_folder_is_a_problem(cli, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("P2P_SIM_DATA", str(tmp_path / "nowhere"))
    done = cli("doctor")
    assert done.status == 1
    assert "data sets: set P2P_SIM_DATA to a folder that is there" in done.out
    assert done.out.endswith("1 problem\n")


def test_what_is_scarce_or_switched_off_is_noted(cli, monkeypatch):  # noqa: F811
    monkeypatch.setattr(room, "memory", lambda: 1 << 30)
    monkeypatch.setattr(doctor, "_LITTLE_DISK", 1 << 60)
    monkeypatch.setenv("P2P_SIM_NUMBA", "0")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    done = cli("doctor", "--json")
    found = verdicts(done)
    for what in ("memory", "this folder", "compiled loops", "Ray's cluster"):
        assert found[what][0] == "note", what
        assert found[what][2], what
    assert done.status == 0


def test_loops_that_cannot_be_compiled_are_noted(cli, monkeypatch):  # noqa: F811
    from p2p_sim.core import kernels

    def cannot(name):
        if name == kernels.TRIAL:
            raise RuntimeError("no locator available")
        return load(name)

    load = kernels.load
    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    monkeypatch.setattr(kernels, "load", cannot)
    verdict, found, _ = verdicts(cli("doctor", "--json"))["compiled loops"]
    assert verdict == "note"
    assert "NUMBA_CACHE_DIR" in found
    monkeypatch.setenv("P2P_SIM_NUMBA", "1")
    assert verdicts(cli("doctor", "--json"))["compiled loops"][0] == "problem"


def test_it_says_what_it_is_doing_and_compiles_one_loop_only(cli, monkeypatch):  # noqa: F811
    from p2p_sim import progress
    from p2p_sim.core import kernels

    said, loaded, load = [], [], kernels.load

    def seen(name):
        loaded.append(name)
        return load(name)

    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    monkeypatch.setattr(kernels, "load", seen)
    monkeypatch.setattr(progress.Progress, "__call__", lambda _, label, done, total: said.append(label))
    assert cli("doctor").status == 0
    assert loaded == [kernels.TRIAL]  # all loops take 16 s of CPU
    assert len(said) == len(set(said)) == 7
    assert "compiling a loop with numba (step 4 of 7)" in said


@pytest.mark.ray
@pytest.mark.slow
def test_ray_is_started_used_and_shut_down(cli, monkeypatch):  # noqa: F811
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    verdict, found, _ = verdicts(cli("doctor", "--start-ray", "--json"))["Ray"]
    assert (verdict, found.partition(", ")[2]) == ("ok", "started, ran a protocol, and is shut down")

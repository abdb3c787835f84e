"""The other verbs, help, streams and exits."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

import p2p_sim
import protocols
from p2p_sim import protocol_parameters
from p2p_sim.cli import bench, first_screen, parameters, program, verbs
from p2p_sim.cli.app import UniqueOptionsCommand, app
from p2p_sim.cli.audit import AuditCommand
from p2p_sim.cli.options import comma_list, whole
from p2p_sim.cli.run import RunCommand
from p2p_sim.cli.trace_tables import trace
from p2p_sim.learning.data.named_datasets import NAMED
from tests.cli.conftest import below

COMMAND = (sys.executable, "-W", "error", "-m", "p2p_sim.cli")

ALPHA = (
    "probability in [0, (k - 1)/k] that a user replaces her own label by one of the k - 1 others, each as likely; "
    "with two labels, in [0, 1/2] that she flips it"
)


def plain(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]|\x1b\[[0-9;]*m", " ", text).split())


for verb in verbs.VERBS.values():
    verb()
VERBS = {each.name: each for each in app.registered_commands}
VERBS |= {f"trace {each.name}": each for each in trace.registered_commands}


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example_and_nothing_given_twice_is_dropped(verb, cli):
    assert issubclass(VERBS[verb].cls, UniqueOptionsCommand)
    done = cli(*verb.split(), "--help")
    assert done.status == 0
    assert f"Example: p2p-sim {verb} " in plain(done.out)


def test_the_list_of_verbs_says_what_each_verb_says():
    """It is written twice, so that the list loads no verb."""
    told = {each.name: inspect.getdoc(each.callback) for each in app.registered_commands}
    told |= {
        each.name: inspect.getdoc(each.typer_instance.registered_callback.callback)
        for each in app.registered_groups
    }
    assert {name: verbs.first_paragraph(verb) for name, verb in verbs.VERBS.items()} == {
        name: " ".join(text.partition("\n\n")[0].split("\n")) for name, text in told.items()
    }
    assert list(verbs.VERBS) == sorted(verbs.VERBS)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["runn"], []])
def test_a_list_of_verbs_loads_none_of_them(words):
    code = f"""
import sys
from p2p_sim import cli
cli.main({words})
sys.exit(str([name for name in sys.modules if name in ("numpy", "p2p_sim.core.engine", "p2p_sim.cli.run")]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"
    assert ("No such command 'runn'" in done.stderr) == (words == ["runn"])


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("ray", ["run", "peer-to-peer", "--users", "9", "--backend", "shards"]),
        ("scipy", ["account", "peer-to-peer"]),
    ],
)
def test_a_package_that_is_not_there_is_named_with_what_installs_it(module, words, tmp_path):
    code = f"""
import sys
sys.modules[{module!r}] = None
from p2p_sim import cli
sys.exit(cli.main({words}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    needed = next(each for each in metadata.requires("p2p-sim") if each.startswith(module))
    told = f"error: this needs {needed}, which is not there: python -m pip install '{needed}'"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == told


@pytest.mark.slow
def test_the_main_job_needs_neither_ray_nor_matplotlib(tmp_path):
    """They are installed for those who need them, and missed by nobody else: docs/decisions/dependencies.md."""
    code = """
import sys
sys.modules["ray"] = sys.modules["matplotlib"] = None
from p2p_sim import cli
sys.exit(cli.main(["run", "--seed", "0"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "What was learnt" in done.stdout


def test_a_verb_loads_its_own_files_alone():
    code = """
import sys
from p2p_sim import cli
assert cli.main(["--", "diff", "a", "b"]) == 2
sys.exit(str([name for name in sys.modules if name in ("p2p_sim.cli.run", "p2p_sim.privacy")]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stderr.startswith("error: ")


def test_verbs_follow_each_other_in_one_process():
    """Twin: the program that was built for one verb does not know the next."""
    code = """
from p2p_sim import cli
for words in (["diff", "a", "b"], ["trace", "show", "a"], ["trace", "diagram", "a"], ["replay", "a"]):
    assert cli.main(words) == 2
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("error: ") == 4
    assert "No such command" not in done.stderr


@pytest.mark.parametrize("name", ["check", "evaluate", "paired", "run"])
def test_functions_keep_their_names_whatever_is_imported_first(name):
    code = f"""
import p2p_sim.{name}, p2p_sim
from p2p_sim.{name} import {name} as function
assert p2p_sim.{name} is function and callable(function)
assert p2p_sim.network.__name__ == "p2p_sim.network" and not hasattr(p2p_sim, "nothing")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_alone_it_shows_what_one_can_do_on_one_screen(cli):
    done = cli()
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) < 24  # beside the prompt
    assert max(map(len, lines)) <= 100
    also = lines[-1].partition(".")[0].removeprefix("Also ").split(", ")
    assert first_screen.named() | {*also} == set(verbs.VERBS)


@pytest.mark.parametrize("example", [words for each in first_screen.GROUPS.values() for words, _ in each])
def test_its_examples_are_commands(example):
    words = example.split()
    verb = program._program(words)(words, prog_name="p2p-sim", standalone_mode=False)
    assert hasattr(verb, "execute")
    if words[0] in ("run", "account", "calibrate", "audit", "attack"):
        parameters.parse(*parameters.resolve(verb.words), words[0])


LASTING = ("compare", "trace")
"""Of the screen: what takes half a minute, and what serves until it is stopped."""


@pytest.mark.slow
def test_its_examples_work_one_after_the_other_in_an_empty_folder(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for example in (words for each in first_screen.GROUPS.values() for words, _ in each):
        if not example.startswith(LASTING):
            done = cli(*example.split())
            assert done.status == 0, (example, done.err)


def test_help_names_verbs_and_parameters(cli):
    for verb in ("run", "account", "calibrate", "audit", "data", "mechanisms", "leakage", "bench"):
        assert verb in cli("--help").out
    told = plain(cli("run", "--help").out)
    assert "Usage: p2p-sim run PROTOCOL [OPTIONS]" in told
    assert f"peer-to-peer: --alpha, {ALPHA} (default 0.1)" in told
    assert "randomized-response: --epsilon," in told
    assert "--lie" not in told


def test_no_parameter_hides_behind_an_option():
    options = {*RunCommand.__dataclass_fields__, *AuditCommand.__dataclass_fields__}
    taken = {name.replace("_", "-") for name in options}
    for kind in parameters.by_name(protocols.ALL).values():
        assert not {name.removeprefix("--") for name in parameters.parameters(kind)} & taken


def test_values_of_options_may_have_colons(cli):
    words = ("--lam", "0.2", "--generator", "gaussian:2", "--truth=gaussian:2", "--json")
    assert cli("account", "double-response", *words).json["parameters"]["generator"] == "gaussian:2"
    assert parameters.custom_name(["--prior", "a:b", "mine:Own"]) == "mine:Own"


def test_a_parameter_that_may_be_an_object_is_given_as_text():
    offered = parameters.parameters(protocols.DoubleResponse)
    assert offered["--generator"].kind is str
    assert "--lie" not in parameters.parameters(protocols.RandomizedResponse)


def test_data_lists_every_named_set(cli, monkeypatch, tmp_path):
    monkeypatch.delenv("P2P_SIM_DATA", raising=False)
    told = cli("data", "--json").json
    assert [row["name"] for row in told] == list(NAMED)
    assert set(told[0]) == {"name", "rows", "features", "label", "positive", "where"}
    text = cli("data", "--format", "text")
    assert text.out.splitlines()[0].split() == ["name", "rows", "features", "label", "positive", "where"]
    assert "bundled with scikit-learn" in text.out
    assert below(tmp_path) == {}


def test_a_data_folder_that_is_none(cli, monkeypatch):
    monkeypatch.setenv("P2P_SIM_DATA", "nowhere")
    assert "not available: P2P_SIM_DATA is 'nowhere'" in cli("data").out
    done = cli("run", "peer-to-peer", "--data", "mnist")
    assert (done.status, done.out) == (2, "")
    assert "'nowhere'" in done.err


class Benchmark:
    USERS = 10_000_000
    CASES = ("local", "digest")

    def __init__(self) -> None:
        self.asked: tuple[object, ...] = ()

    def main(self, users, cases, repeat, progress):
        self.asked = (users, cases, repeat)
        progress("local", 1, 2)
        print("noise")
        row = {"case": "local", "users": users, "ratio_cpu": 1.5, "none": None, "target": {"ratio_cpu": 1.3}}
        return {"machine": {"cores": 2}, "rows": [row, {**row, "users": 7, "reached": True}]}


def test_bench(cli, monkeypatch):
    fake = Benchmark()
    monkeypatch.setattr(bench.importlib, "import_module", {"benchmarks.engine": fake}.__getitem__)
    done = cli("bench", "engine", "--users", "1e6", "--cases", "local,shards", "--repeat", "3", "--json")
    assert fake.asked == (1_000_000, ("local", "shards"), 3)
    assert done.json["rows"][0]["ratio_cpu"] == 1.5
    assert done.err == "noise\n"
    text = cli("bench", "engine").out
    assert fake.asked == (10_000_000, Benchmark.CASES, 5)
    assert text.splitlines()[2].split() == ["case", "users", "ratio_cpu", "target", "reached"]
    assert "local   10,000,000         1.5   ratio_cpu 1.3   -" in text


def test_bench_needs_a_checkout(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "site-packages/p2p_sim/cli/bench.py"))
    done = cli("bench", "engine")
    assert (done.status, done.out) == (2, "")
    assert "run from a checkout" in done.err


def test_starts_quickly_and_lightly():
    code = """
import sys
from p2p_sim import cli
status = cli.main(["run", "--help"])
heavy = {"sklearn", "pandas", "pyarrow", "ray", "numba", "scipy", "networkx"} & set(sys.modules)
sys.exit(f"imported {sorted(heavy)}" if heavy else status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_small_run_loads_no_more_than_it_accounts_and_writes_with(tmp_path):
    code = f"""
import sys
from p2p_sim import cli
status = cli.main(["run", "peer-to-peer", "--users", "1000", "--out", {str(tmp_path / "run")!r}])
heavy = {{"sklearn", "pandas", "ray", "numba", "networkx", "scipy.optimize", "scipy.stats"}} & set(sys.modules)
sys.exit(f"imported {{sorted(heavy)}}" if heavy else status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_program_of_its_own(tmp_path):
    done = subprocess.run(
        [*COMMAND, "run", "peer-to-peer", "--users", "50", "--alpha", "2"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: alpha = 2.0: must be a number in [0, 0.5]\n"
    assert below(tmp_path) == {}


def test_nobody_reads_the_output(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, "data"], stdout=write, stderr=subprocess.PIPE, cwd=tmp_path)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_interrupt(tmp_path):
    code = """
import os, signal, sys
from p2p_sim import cli
from p2p_sim.learning import experiment
experiment.start = lambda *words, **more: os.kill(os.getpid(), signal.SIGINT)
sys.exit(cli.main(["run", "peer-to-peer", "--users", "9"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[1:]) == (130, "", ["interrupted"])
    assert (
        "the run was cut off; it goes on, with the same bits, by: p2p-sim run --resume runs/" in done.stderr
    )
    assert {Path(name).name for name, text in below(tmp_path).items() if text} == {"asked.json"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("10", 10), ("1e7", 10**7), ("1.5e3", 1500), ("1e19", 10**19), ("18446744073709551615", 2**64 - 1)],
)
def test_whole(text, number):
    assert whole(text) == number


@pytest.mark.parametrize(
    "text", ["1.5", "inf", "nan", "ten", "", "10_000", "5 ", "٥", "５", "1e26", "1e-400", "True"]
)
def test_not_whole(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        whole(text)


def test_comma_list():
    assert comma_list('a, "b, c" ,d,') == ["a", "b, c", "d"]
    assert comma_list("") == []


def test_a_protocol_without_default_says_what_is_missing(monkeypatch, cli):
    monkeypatch.setattr(protocol_parameters, "DEFAULTS", {})
    done = cli("run", "peer-to-peer", "--users", "9", "--seed", "0")
    assert done.status == 2
    assert done.err == f"error: peer-to-peer needs --alpha: {ALPHA}\n"


def test_parameter_types():
    @dataclass(frozen=True)
    class Odd(p2p_sim.core.Protocol):
        """Odd.

        ``deep_name``: how deep.  More words.
        ``flag``: whether.
        """

        deep_name: int = 3
        flag: bool = False
        word: str = "a"
        hidden: object = None

    offered = parameters.parameters(Odd)
    assert list(offered) == ["--deep-name", "--flag", "--word"]
    assert [p.meaning for p in offered.values()] == ["how deep", "whether", ""]
    assert (offered["--flag"].read("Yes"), offered["--deep-name"].read("7")) == (True, 7)
    with pytest.raises(p2p_sim.InputError, match="--flag 'maybe': must be true or false"):
        offered["--flag"].read("maybe")


def test_a_protocol_of_one_s_own(cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from p2p_sim.core import Message, Party, Protocol, Rounds\n"
        "@dataclass(frozen=True)\n"
        "class Honest(Protocol):\n"
        "    times: int = 2\n"
        "    report = Message('user', 'learner', 'tells the label', y=bool)\n"
        "    def user(self, me: Party) -> Rounds:\n"
        "        yield self.report(y=me.y)\n"
        "    def learner(self, me: Party) -> Rounds:\n"
        "        return (yield self.report.receive()).columns()\n"
    )
    done = cli(
        "run", "mine:Honest", "--times", "3", "--users", "50", "--share", "1", "--out", "own", "--seed", "0"
    )
    assert done.status == 0, done
    assert "times = 3" in done.out
    assert "100.00 % of them positive" in done.out
    for wrong in ("mine:Nobody", "nowhere:Honest", "mine:Message"):
        assert cli("run", wrong, "--users", "50").status == 2


def test_version(cli):
    assert cli("--version").out.startswith("p2p-sim 0.")


def test_help_is_the_same_each_time(cli):
    """Commands are built once a process, and what is added to their help is no part of them."""
    first, again = (cli("run", "--help").out for _ in range(2))
    assert "--alpha" in first
    assert again == first


def test_ctrl_c_while_the_words_are_read_is_said_so(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(UniqueOptionsCommand, "parse_args", pressed)
    done = cli("leakage", "--data", "digits")
    assert (done.status, done.out, done.err.strip()) == (130, "", "interrupted")


LEAVING = """
import atexit, sys, threading, time
from p2p_sim import cli

class Torn:
    def __del__(self):
        print("torn down")

kept = Torn()
atexit.register(print, "exit handlers have run")
sys.modules["p2p_sim.cli.program"].main = lambda: print("done") or 3
if {busy}:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
cli.command()
"""


@pytest.mark.parametrize(("busy", "out"), [(True, ""), (False, "torn down\n")])
def test_a_thread_at_work_is_not_stopped_by_the_interpreter(busy, out):
    """That would abort the process where the thread is inside compiled code."""
    code = LEAVING.format(busy=busy)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "done\nexit handlers have run\n" + out

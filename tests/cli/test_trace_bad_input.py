"""Users, kinds, rounds and views that there are not; runs of one user, of few messages, without their population."""

from __future__ import annotations

import pytest

import p2p_sim
from p2p_sim import Population
from protocols import PeerToPeer, RandomizedResponse
from tests.tiny import people

HUGE = 10**30
VERBS = {
    "show": ("show", "r"),
    "diagram": ("diagram", "r"),
    "export": ("export", "r", "--format", "perfetto"),
}


@pytest.fixture
def run(tmp_path):
    p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full").save(tmp_path / "r")


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
@pytest.mark.parametrize(
    ("name", "allowed"), [("user", "0 to 11"), ("cluster", "0 to 30"), ("round", "[1, 2, 3]")]
)
def test_numbers_that_there_are_not_are_named_with_those_that_there_are(cli, run, verb, name, allowed):
    for value in (-1, 2**63):
        done = cli("trace", *verb, f"--{name}={value}")
        assert (done.status, done.out) == (2, "")
        assert f"{name} {value}: " in done.err
        assert allowed in done.err
    done = cli("trace", *verb, f"--{name}={HUGE}")
    assert (done.status, f"'--{name}': '{HUGE}' must be a whole number below 2^64" in done.err) == (2, True)
    for value in ("x", "1.5", "", "1e400", "nan"):
        done = cli("trace", *verb, f"--{name}={value}")
        assert (done.status, repr(value) in done.err, f"--{name}" in done.err) == (2, True, True)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_limits(cli, run, verb):
    for value in (0, -1):
        done = cli("trace", *verb, f"--limit={value}")
        assert (done.status, f"--limit {value}: must be at least 1" in done.err) == (2, True)
    assert "must be a whole number below 2^64" in cli("trace", *verb, f"--limit={-HUGE}").err
    assert cli("trace", *verb, "--limit", 2**63).status == 0


@pytest.mark.parametrize("verb", ["diagram", "export"])
def test_a_huge_user_of_whom_nothing_is_known_is_refused(cli, verb, tmp_path):
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full")
    run.save(tmp_path / "r", population=False)
    done = cli("trace", *VERBS[verb], "--user", HUGE)
    assert (done.status, f"'{HUGE}' must be a whole number below 2^64" in done.err) == (2, True)


NEAR = {
    ("--kind", "reprot"): "kind 'reprot': this protocol's kinds are ask, label, report; did you mean 'report'?",
    ("--as", "learnr"): "parts are learner, user, user:17, 3*user, wire, joined by +; did you mean 'learner'?",
    ("--as", "user:4+wier"): "parts are learner, user, user:17, 3*user, wire, joined by +; did you mean 'wire'?",
    ("--kind", "zzz"): "kind 'zzz': this protocol's kinds are ask, label, report\n",
}  # fmt: skip


@pytest.mark.parametrize(("words", "told"), NEAR.items(), ids=[" ".join(words) for words in NEAR])
def test_a_name_that_is_near_is_suggested(cli, run, words, told):
    done = cli("trace", "show", "r", *words)
    assert (done.status, done.out, told in done.err) == (2, "", True), done.err


def test_a_sample_that_holds_everybody_is_the_whole_trace(cli, tmp_path):
    few = Population.from_arrays(y=[True, False, True])
    p2p_sim.run(RandomizedResponse(1.0), few, seed=3, trace="sample=1000").save(tmp_path / "all")
    p2p_sim.run(RandomizedResponse(1.0), few, seed=3, trace="sample=1").save(tmp_path / "some")
    for words in (["show"], ["show", "--user", 0], ["show", "--as", "learner"]):
        told = cli("trace", words[0], "all", *words[1:], "--json").json
        assert told["notes"] == []
    assert "recomputed" in cli("trace", "show", "some", "--json").json["notes"][0]
    assert cli("trace", "diagram", "all").err == ""


def test_without_messages_and_population_it_is_said_what_to_do(cli, tmp_path):
    for level in ("none", "counts"):
        run = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace=level)
        run.save(tmp_path / level, population=False)
        for words in (("show", level), ("show", level, "--user", 0), ("diagram", level)):
            done = cli("trace", *words)
            assert (done.status, f"kept no messages (trace='{level}')" in done.err) == (2, True)
            assert "run it again with its population, or with trace='full' (--trace full)" in done.err
        assert cli("trace", "stats", level).status == 0


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_a_table_of_messages_cannot_hold_is_told(cli, run, form, monkeypatch):
    class Out:
        def __init__(self):
            self.buffer = self

        def write(self, _octets):
            return 0

        def flush(self):
            pass

        def isatty(self):
            return False

    if form == "parquet":
        monkeypatch.setattr("sys.stdout", Out())
    done = cli("trace", "show", "r", "--as", "user:4", "--format", form, "--limit", 1)
    assert done.status == 0
    assert "note: own inputs: 1 rows, which are not messages; --format json has them" in done.err
    assert "note: own draws: " in done.err
    assert "note: report: 1 of 1" not in done.err


def test_a_run_of_one_user(cli, tmp_path):
    alone = Population.from_arrays(y=[True])
    p2p_sim.run(PeerToPeer(0.1), alone, seed=3, trace="full").save(tmp_path / "r")
    for words in (
        ("show", "r"), ("show", "r", "--as", "user:0"), ("stats", "r"), ("diagram", "r", "--cluster", 0),
        ("export", "r", "--format", "graphml"), ("cone", "r", "--message", "report:3:0:0:0"),
    ):  # fmt: skip
        done = cli("trace", *words)
        assert (done.status, done.err) == (0, "")
    assert "Nothing is hidden" in cli("trace", "cone", "r", "--message", "label:2:0:0:0").out

"""Runs of a protocol of one's own, whose code no verb imports: what works, and what is said where it does not."""

from __future__ import annotations

import re
import sys

import pytest

import p2p_sim
from p2p_sim.cli import protocol_option
from tests.cli.test_bad_input import refused

WARD = '''
from dataclasses import dataclass

from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Ward(Protocol):
    """Noisy labels go to a desk, which mixes them for the learner."""

    flip: float

    relay = Message("user", "desk", "hands a noisy label to the desk", y=bool, sealed_for="learner")
    forward = Message("desk", "learner", "hands labels on, in random order", y=bool, sealed_for="learner")

    def user(self, me: Party) -> Rounds:
        yield self.relay(y=me.y ^ me.draw.bernoulli("flip", self.flip))

    def desk(self, me: Party) -> Rounds:
        got = yield self.relay.receive()
        yield self.forward(y=got.y.take(me.draw.permutation("order", each=got)))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.forward.receive()
        return reports.columns()
'''


@pytest.fixture
def ward(cli, tmp_path, monkeypatch):
    """The command line, with a protocol in ward.py and a run of it for each of some trace levels."""
    monkeypatch.syspath_prepend(tmp_path)  # so that what a run adds goes again
    (tmp_path / "ward.py").write_text(WARD)
    for level in ("full", "none", "counts"):
        done = cli(
            "run",
            "ward:Ward",
            "--users",
            "30",
            "--flip",
            "0.2",
            "--trace",
            level,
            "--out",
            level,
            "--seed",
            str(2**63),
        )
        assert done.status == 0, done.err
    return cli


LOOKS = (
    ("show", "--user", "3"),
    ("show", "--as", "desk"),
    ("stats",),
    ("cone", "--message", "forward:2:0:0:5"),
    ("diagram", "--user", "3", "--as", "desk", "--out", "picture.svg"),
    ("export", "--format", "graphml", "--user", "3", "--out", "graph.graphml"),
    ("serve", "--export", "page.html"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "words"), [(look[0], look[1:]) for look in LOOKS])
def test_every_verb_looks_at_a_full_trace_and_says_how_else_to_get_one(ward, verb, words):
    assert ward("trace", verb, "full", *words).status == 0
    for level in ("none", "counts"):
        done = ward("trace", verb, level, *words)
        refused(done, f"kept no messages (trace='{level}')", "run it again with --trace full")


NAMED = (
    *(("trace", look[0], "none", *look[1:]) for look in LOOKS),
    ("replay", "none", "--user", "3"),
    ("diff", "none", "other"),
)


@pytest.mark.slow
def test_every_verb_takes_the_program_that_is_named(ward, monkeypatch):
    ward("run", "ward:Ward", "--users", "30", "--flip", "0.4", "--out", "other", "--seed", "0")
    for words in NAMED:
        monkeypatch.delitem(sys.modules, "ward", raising=False)
        before = ward(*words)
        assert "ward" not in sys.modules, words  # what a folder names is not imported
        assert "add --protocol ward:Ward" in before.out + before.err, words
        named = ward(*words, "--protocol", "ward:Ward")
        assert "ward" in sys.modules, words
        assert named.status == (1 if words[0] == "diff" else 0), named.err
        assert "--protocol" not in named.out + named.err, words
        after = ward(*words)  # what was named is forgotten with the command
        assert (after.status, after.out, after.err) == (before.status, before.out, before.err)


@pytest.mark.slow
def test_programs_of_several_runs_are_named_one_by_one(ward, tmp_path):
    (tmp_path / "desk.py").write_text(WARD.replace("Ward", "Desk"))
    ward("run", "desk:Desk", "--users", "30", "--flip", "0.2", "--out", "desk", "--seed", "0")
    ward("run", "peer-to-peer", "--users", "30", "--out", "shipped", "--seed", "0")
    both = ("--protocol", "ward:Ward", "--protocol", "desk:Desk")
    assert ward("diff", "none", "desk", *both).status == 1
    told = ward("report", "none", "desk", "shipped", *both, "--json").json["runs"]
    assert [run["protocol"] for run in told] == ["ward", "desk", "peer-to-peer"]
    assert told[0]["messages"][0]["sender"] == "user"  # which a run without a trace does not tell
    # a folder of runs, as trace serve takes
    (found, _) = protocol_option._classes(both[1::2], [str(tmp_path)])
    assert found.__name__ == "Ward"
    refused(ward("diff", "none", "shipped", *both), "--protocol desk:Desk", "'none' is of ward:Ward")
    refused(ward("replay", "none", "--user", "3", *both), "--protocol is given twice")


def test_calibration_says_where_a_number_of_one_s_own_is_looked_for(cli, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    two = WARD.replace("    flip: float\n", "    flip: float\n    times: int\n")
    (tmp_path / "both.py").write_text(two)
    words = ("calibrate", "both:Ward", "--epsilon", "1", "--vary")
    refused(cli(*words, "flip", "--between", "0.5,0.1"), "ward needs --times")
    for between in ("0.5", "0.5,0.1,0", "a,b", ""):
        refused(cli(*words, "flip", "--times", 2, "--between", between), "give two numbers")
    refused(cli(*words, "times", "--flip", 0.1, "--between", "9,1.5"), "give two whole numbers")
    refused(cli(*words, "flip", "--times", 2), "say where to look", "--between A,B")


WRONG = {
    "other": ("peer-to-peer", ["PeerToPeer", "run 'none' is of ward:Ward"]),
    "unknown": ("ward", ["unknown protocol 'ward'", "peer-to-peer", "MODULE:CLASS"]),
    "class": ("ward:Wart", ["no attribute 'Wart'"]),
    "module": ("wart:Ward", ["No module named 'wart'"]),
}


@pytest.mark.slow
def test_another_program_than_the_run_s_is_refused(ward):
    for name, words in WRONG.values():
        for verb in (("replay", "none", "--user", "3"), ("report", "none"), ("trace", "stats", "none")):
            refused(ward(*verb, "--protocol", name), name, *words)


@pytest.mark.slow
def test_a_program_that_was_changed_is_told_of(ward, tmp_path, monkeypatch):
    for changed in (WARD.replace("noisy label to", "label to"), WARD.replace("flip: float", "odds: float")):
        monkeypatch.delitem(sys.modules, "ward")
        (tmp_path / "ward.py").write_text(changed + "\n" * len(changed))  # another length: compiled anew
        done = ward("replay", "none", "--user", "3", "--protocol", "ward:Ward")
        if "flip: float" in changed:
            assert (done.status, "by other code than the run's: code" in done.err) == (0, True), done.err
        else:
            refused(done, "--protocol ward:Ward", "there is no flip (= 0.2", "another version")


@pytest.mark.slow
def test_without_a_seed_no_program_is_asked_for(ward):
    ward("run", "ward:Ward", "--users", "30", "--flip", "0.2", "--out", "bare", "--no-population")
    for verb in (("replay", "bare", "--user", "3"), ("trace", "stats", "bare")):
        done = ward(*verb)
        refused(done, "saved without" if verb[0] == "replay" else "its seed was not kept")
        assert "--protocol" not in done.err


@pytest.mark.slow
def test_what_needs_the_program_is_spelt_out_in_python(ward, monkeypatch):
    drawn = []
    for done in (ward("replay", "full", "--user", 3), ward("trace", "show", "full", "--as", "desk")):
        text = f"{done.out} {done.err}"
        (imported, call) = re.findall(r"in Python, (from \S+ import \S+); (p2p_sim\.load\(.*\))", text)[0]
        known = {"p2p_sim": p2p_sim}
        exec(imported, known)
        drawn.append(eval(call, known))
    life, view = drawn
    assert [each.name for each in life.drawn] == ["flip"]
    assert list(view.draws) == ["desk/order/1"]


@pytest.mark.slow
def test_runs_are_compared_by_what_is_known_of_them(ward):
    done = ward("diff", "full", "none")
    assert (done.status, done.out.partition("\n")[0]) == (0, "full and none: equal")
    ward("run", "ward:Ward", "--users", "30", "--flip", "0.4", "--out", "other", "--seed", "0")
    done = ward("diff", "none", "other")
    assert done.status == 1
    assert "parameter flip" in done.out
    assert "only counts, outputs and digests" in done.out + done.err


@pytest.mark.slow
def test_a_report_names_roles_where_a_trace_does(ward):
    rows = {level: ward("report", level, "--json").json["runs"][0]["messages"] for level in ("full", "none")}
    names = ("sender", "recipient", "sealed_for", "text")
    assert [tuple(row[name] for name in names) for row in rows["full"]] == [
        ("user", "desk", "learner", "hands a noisy label to the desk"),
        ("desk", "learner", "learner", "hands labels on, in random order"),
    ]
    assert [tuple(row[name] for name in names) for row in rows["none"]] == [(None, None, None, "")] * 2
    assert "None" not in ward("report", "none", "--format", "md").out
    assert ward("report", "none", "full", "--out", "both.html").status == 0


CASES = {
    "path": ("./ward.py:Ward", ["a path is no module", "name it ward:Ward"]),
    "deep": ("../there/ward:Ward", ["a path is no module", "name it ward:Ward"]),
    "syntax": ("broken:Ward", ["broken.py, line 2: '(' was never closed"]),
    "bare": ("ward", ["known protocols: ", "one of your own, MODULE:CLASS"]),
    "module": ("wart:Ward", ["No module named 'wart'", "MODULE:CLASS"]),
    "class": ("ward:Wart", ["no attribute 'Wart'", "MODULE:CLASS"]),
}


@pytest.mark.parametrize(("name", "words"), CASES.values(), ids=CASES)
def test_a_name_that_leads_nowhere_is_refused(cli, tmp_path, monkeypatch, name, words):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ward.py").write_text(WARD)
    (tmp_path / "broken.py").write_text("\nprint(\n")
    refused(cli("run", name, "--users", "10", "--flip", "0.2", "--seed", "0"), name, *words)


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("diagram",), ("export", "--format", "graphml")])
def test_text_is_not_written_under_the_name_of_a_picture(ward, tmp_path, verb):
    refused(ward("trace", *verb, "full", "--out", "all.PNG"), "--out 'all.PNG'", "name it all.")
    assert not (tmp_path / "all.PNG").exists()


def test_an_audit_says_how_worlds_are_told_apart(ward, tmp_path):
    refused(ward("audit", "ward:Ward", "--run", "full"), "forward", "me.cluster.label")
    told = WARD.replace("y=bool,", "y=bool, cluster=np.int64,").replace(
        "import dataclass", "import dataclass\n\nimport numpy as np"
    )
    told = told.replace("self.flip))", "self.flip), cluster=me.cluster.label)").replace(
        'self.forward(y=got.y.take(me.draw.permutation("order", each=got)))',
        "self.forward(y=got.y, cluster=got.cluster)",
    )
    (tmp_path / "named.py").write_text(told)
    done = ward(
        "audit", "named:Ward", "--flip", "0.2", "--cluster-size", "5", "--trials", "100", "--claim", "2"
    )
    assert (done.status, "consistent" in done.out) == (0, True), done.err


def test_a_program_that_fails_leaves_one_folder_and_says_where(cli, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing.py").write_text(WARD.replace("reports.columns()", "reports.y"))
    done = cli(
        "run",
        "failing:Ward",
        "--users",
        "10",
        "--flip",
        "0.2",
        "--trace",
        "full",
        "--out",
        "it",
        "--seed",
        "0",
    )
    assert done.status == 2
    (left,) = tmp_path.glob("it.partial-*")
    assert re.findall("run that failed are in '(.*)'", done.err) == [left.name]


def test_what_a_class_raises_when_it_is_made_is_one_line_with_its_place(cli, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    checked = (
        '    def __post_init__(self):\n        if self.flip > 0.4:\n            raise ValueError("too far")\n'
    )
    text = WARD.replace("    flip: float\n", f"    flip: float = 0.5\n\n{checked}").replace("Ward", "Choosy")
    (tmp_path / "choosy.py").write_text(text)
    said = ("choosy: making it with flip = 0.5 raises ValueError: too far", "choosy.py, line")
    refused(cli("run", "choosy:Choosy", "--users", "30", "--out", "a"), *said)
    refused(cli("compare", "--users", "30", "--target", "epsilon=1", "--protocols", "choosy:Choosy"), *said)
    calibrate = (
        "calibrate",
        "choosy:Choosy",
        "--vary",
        "flip",
        "--between",
        "0.41,0.45",
        "--view",
        "learner",
    )
    refused(cli(*calibrate, "--epsilon", "1"), "flip = 0.45 raises ValueError: too far")

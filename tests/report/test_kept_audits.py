"""Audits that are kept in a run: what the file holds, which are refused, and what the report and the page say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim import cli as program
from p2p_sim.report import report_page
from p2p_sim.report.figure_text import number_text
from p2p_sim.report.kept_file import AUDITS
from p2p_sim.report.view_summary import view_privacy
from p2p_sim.rundir.run_directory import LazyRun
from protocols import PeerToPeer
from tests.report.conftest import page, read, tables, words
from tests.run_json_files import document_in

pytestmark = pytest.mark.slow


def stored(place: Path) -> dict:
    return document_in(place, "audit.json")


@pytest.fixture
def copy(audited, tmp_path):
    shutil.copytree(audited, tmp_path / "peers")
    return tmp_path / "peers"


def again(place: Path, *more: str) -> None:
    assert program.main(["audit", "--run", str(place), "--trials", "300", *more]) in (0, 1)


def test_the_report_shows_what_is_kept(audited, runs):
    told = stored(audited)["audits"]
    root = read(page("html", audited))
    head, *rows = tables(root, "attacks")[0]
    assert head[:5] == ["view", "attack", "measured", "must not exceed", "verdict"]
    assert [row[0] for row in rows] == ["learner [1]", "wire, plain channels [1]"]
    for row, one in zip(rows, told, strict=True):
        exact = next(claim for claim in one["claims"] if claim["name"] == "exact")
        assert row[1] == "exact likelihood ratio"
        figure = float(row[2].removeprefix("ε ≥ ").partition(" ")[0])
        assert one["lower"] * (1 - 1e-3) <= figure <= one["lower"] <= exact["epsilon"]
        assert row[2].endswith(" at δ = 0.05 (97.5 %)")
        assert row[3:5] == [f"{exact['epsilon']:.4g} (exact)", one["verdict"]]
        shares = one["true_positive"], one["false_positive"]
        assert row[5:] == ["{:.4g}, {:.4g}".format(*shares), f"{shares[0] - shares[1]:.4g}"]
        assert 500 * shares[0] == round(500 * shares[0])
    assert told[1]["lower"] > 1
    (note,) = [words(item) for item in root.iter("li") if "worlds a label" in words(item)]
    assert note.startswith(
        f"500 worlds a label, each of {told[0]['cluster_size']} users: the smallest cluster;"
    )
    assert note.endswith(f"Audited {told[0]['when']} by p2p-sim {told[0]['version']}: {told[0]['command']}")
    assert "| learner \\[1\\] | exact likelihood ratio |" in page("md", audited)
    assert json.loads(page("json", audited))["runs"][0]["attacks"] == told
    assert 'id="attacks"' not in page("html", runs / "shuffle")
    assert "peers" in words(read(page("html", audited, runs / "shuffle")))


def test_a_violation_stands_out(copy, runs):
    assert "warning" not in [p.get("class") for p in attacks_of(copy)]
    again(copy, "--view", "wire", "--claim", "0.1", "--delta", "0.05")
    (warning,) = [p for p in attacks_of(copy) if p.get("class") == "warning"]
    assert words(warning).startswith("wire, plain channels: violated: epsilon is at least ")
    assert re.search(r"\(exact\); 0.1 \(claimed: --claim\)", page("html", copy))


def test_an_undecided_view_says_how_many_trials_would_decide(copy):
    again(copy, "--view", "user", "--at-epsilon", "0.1")
    assert "user: one curious peer: inconclusive: too few trials" in page("md", copy)
    assert "user: one curious peer" not in "".join(words(p) for p in attacks_of(copy) if p.get("class"))


def attacks_of(place):
    section = next(s for s in read(page("html", place)).iter("section") if s.get("id") == "attacks")
    return section.iter("p")


def test_the_seed_of_an_audit_is_withheld_with_that_of_the_run(copy):
    again(copy, "--seed", "918273999")
    assert "918273999" in page("json", copy)
    for form in report_page.FORMATS:
        assert "918273999" not in page(form, copy, seed=False)
    assert "--seed ..." in json.loads(page("json", copy, seed=False))["runs"][0]["attacks"][1]["command"]


def test_audits_add_up_and_the_newer_of_a_view_replaces(copy):
    first = stored(copy)["audits"]
    again(copy, "--view", "user", "--view", "learner", "--at-epsilon", "0.1")
    again(copy, "--view", "wire", "--channels", "encrypted", "--at-epsilon", "0.1")
    told = stored(copy)["audits"]
    assert [(row["name"], row["channels"], row["kind"]) for row in told] == [
        ("wire", "plain", "delta"), ("user", "plain", "epsilon"), ("learner", "plain", "epsilon"),
        ("wire", "encrypted", "epsilon"),
    ]  # fmt: skip
    assert told[0] == first[1]
    assert [path.name for path in copy.iterdir() if "audit" in path.name] == ["audit.json"]
    assert "δ ≥ 0 at ε = 0.1" in page("md", copy)


def test_the_page_of_a_trace_shows_what_was_measured_of_its_viewpoint(copy):
    rows = view_privacy(LazyRun(copy), "learner")["rows"]
    row = stored(copy)["audits"][0]
    assert rows[-1]["basis"] == "measured"
    assert rows[-1]["text"].endswith(f"at δ = 0.05, confidence 97.5 %: {row['verdict']}")
    assert f"; ε must not exceed {number_text(row['exact'])} (exact); " in rows[-1]["source"]
    assert [r["basis"] for r in view_privacy(LazyRun(copy), "wire")["rows"]].count("measured") == 1
    for view, channels in (("user:3", "plain"), ("wire", "encrypted")):
        assert "measured" not in [r["basis"] for r in view_privacy(LazyRun(copy), view, channels)["rows"]]
    again(copy, "--view", "learner+user", "--delta", "0.05")
    assert view_privacy(LazyRun(copy), "user:3+learner")["rows"][-1]["basis"] == "measured"
    (copy / "audit.json").write_text("{")
    late = view_privacy(LazyRun(copy), "learner")["rows"]
    assert (len(late), late[-1]["basis"]) == (len(rows), "not shown")
    assert "audit.json' is damaged" in late[-1]["text"]


def test_of_a_run_without_its_population_the_page_shows_what_was_measured(tmp_path):
    people = Population.synthetic(users=40, cluster_size=20, seed=2**63 + 1)
    place = p2p_sim.run(PeerToPeer(0.1), people, seed=2**63 + 2).save(tmp_path / "bare", population=False)
    again(place, "--cluster-size", "20", "--delta", "0.05")
    found = view_privacy(LazyRun(place), "learner")
    assert [row["basis"] for row in found["rows"]] == ["measured"]
    assert "saved without its population" in found["note"]


def newer(told):
    told["format"] = 2


def without_rates(told):
    del told["audits"][1]["true_positive"]


def text_for_a_number(told):
    told["audits"][0]["lower"] = "much"


def another_run(told):
    told["digest"] = "0" * 32


def no_list(told):
    told["audits"] = {"learner": 1}


def claim_without_a_figure(told):
    told["audits"][0]["claims"] = [{"name": "exact"}]


WRONG = {
    newer: "format 2; this version reads up to 1",
    without_rates: "is damaged: it lacks 'true_positive' at audits.1;",
    text_for_a_number: "is damaged: audits.0.lower = 'much': must be a valid number;",
    another_run: "is of another run .digest differ.",
    no_list: "is damaged: audits = {'learner': 1}: must be a valid list;",
    claim_without_a_figure: "is damaged: it lacks 'basis' at audits.0.claims.0;",
}


@pytest.mark.parametrize("spoil", WRONG)
def test_a_file_that_cannot_be_trusted_is_named_and_left_as_it_is(copy, spoil, capsys):
    told = stored(copy)
    spoil(told)
    (copy / "audit.json").write_text(json.dumps(told))
    before = (copy / "audit.json").read_bytes()
    with pytest.raises(InputError, match=f"audit.json' {'has ' if spoil is newer else ''}{WRONG[spoil]}"):
        AUDITS.read(copy, p2p_sim.load(copy))
    for command in (["report", str(copy)], ["audit", "--run", str(copy)]):
        capsys.readouterr()
        assert program.main(command) == 2
        assert "audit.json" in capsys.readouterr().err
    assert (copy / "audit.json").read_bytes() == before
    assert not (copy / "report.html").exists()


def test_an_altered_audit_is_named(copy, capsys):
    file = copy / "audit.json"
    whole = json.loads(file.read_text())
    for row, name, value in ((0, "verdict", "holds"), (1, "lower", 0.0), (0, "command", "p2p-sim")):
        told = json.loads(file.read_text())
        told["audits"][row][name] = value
        file.write_text(json.dumps(told))
        with pytest.raises(
            InputError, match=r"audit.json' was altered since it was written.*audit the run again"
        ):
            AUDITS.read(copy, p2p_sim.load(copy))
        assert program.main(["report", str(copy)]) == 2
        assert "audit.json' was altered" in capsys.readouterr().err
        shown = view_privacy(LazyRun(copy), "learner")["rows"][-1]
        assert shown["basis"] == "not shown"
        assert "audit.json' was altered" in shown["text"]
        file.write_text(json.dumps(whole))  # laid out in another way: the same
        assert AUDITS.read(copy, p2p_sim.load(copy)) == whole["audits"]


def test_an_audit_of_an_earlier_version_has_no_checksum(copy):
    told = stored(copy)
    (copy / "audit.json").write_text(json.dumps(told))
    assert AUDITS.read(copy, p2p_sim.load(copy)) == told["audits"]
    again(copy, "--view", "learner", "--at-epsilon", "0.1")
    assert "checksum" in json.loads((copy / "audit.json").read_text())


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": NaN}', '{"format": "1"}', "\x00"])
def test_what_is_no_document_is_damaged(copy, text):
    (copy / "audit.json").write_text(text)
    with pytest.raises(InputError, match=r"audit.json' is damaged: .*delete it, and audit the run again"):
        AUDITS.read(copy, p2p_sim.load(copy))

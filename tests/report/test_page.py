"""The report of runs: what it shows is what run.json holds, and nothing on it runs or comes from elsewhere."""

from __future__ import annotations

import html.parser
import json
import re
import shutil

import pytest

import p2p_sim
from p2p_sim.core.errors import InputError
from p2p_sim.report import report_content, report_page, terminal
from protocols import PeerToPeer
from tests.render.material import EVIL
from tests.report.conftest import SEED, manifest, page, read, tables, words
from tests.run_json_files import document_in
from tests.tiny import people

pytestmark = pytest.mark.slow


def test_the_figures_of_privacy_are_those_of_the_run(runs):
    told = manifest(runs / "peers")["notes"]["privacy"]
    (rows,) = tables(read(page("html", runs / "peers")), "privacy")
    assert rows[0] == ["view", "ε", "basis", "source", "promised by theorems"]
    assert [row[0] for row in rows[1:]] == [view["view"] for view in told["views"]]
    for row, view in zip(rows[1:], told["views"], strict=True):
        if view["exact"] is None:
            assert row[1:3] == ["", "not computed"]
        else:
            assert row[2] == view["exact"]["basis"]
            assert float(row[1]) == pytest.approx(view["exact"]["epsilon"], rel=1e-3)
        for found in view["theorems"]:
            assert found["name"] in row[4]
            assert ("does not apply" in row[4]) >= (not found["holds"])


def test_every_source_and_refusal_is_a_note(runs):
    root = read(page("html", runs / "peers"))
    notes = [words(item) for item in root.iter("li")]
    told = manifest(runs / "peers")["notes"]["privacy"]
    for view in told["views"]:
        source = view["refused"] or "; ".join([view["exact"]["source"], *view["exact"]["assumes"]])
        assert source in notes
    marks = {
        int(mark)
        for row in tables(root, "privacy")[0]
        for cell in row
        for mark in re.findall(r"\[(\d+)\]", cell)
    }
    assert marks == set(range(1, len(notes) + 1))


def test_messages_costs_accuracy_setting_and_versions_are_those_of_the_run(runs):
    told, root = manifest(runs / "peers"), read(page("html", runs / "peers"))
    kinds, counts = tables(root, "what-travelled")
    assert [row[:3] for row in kinds[1:]] == [
        ["ask", "user", "user"], ["label", "user", "user"], ["report", "user", "learner"]
    ]  # fmt: skip
    assert counts[1:] == [
        [str(c["round"]), c["kind"], f"{c['messages']:,}", f"{c['travelled']:,}", f"{c['nbytes']:,}"]
        for c in told["costs"]
    ]
    roles = told["notes"]["costs"]["roles"]
    assert [row[:2] + row[4:6] for row in tables(root, "costs")[0][1:]] == [
        [r["role"], f"{r['parties']:,}", f"{r['bytes_up']:,}", f"{r['bytes_down']:,}"] for r in roles
    ]
    accuracy = dict(row for row in tables(root, "utility")[0])
    for title, key in (("on what was released", "accuracy_private"), ("on the true labels", "accuracy_true")):
        assert accuracy[title].startswith(f"{100 * told['notes']['accuracy'][key]:.2f} % (")
    setting = dict(tables(root, "setting")[0])
    assert (setting["alpha"], setting["theta"], setting["users"]) == ("0.1", "1.0 (default)", "1,438")
    assert dict(tables(root, "versions")[0][1:]) == told["versions"]


def test_the_command_tells_every_parameter_and_the_seed(runs):
    root = read(page("html", runs / "peers"))
    assert [words(code) for code in root.iter("code")] == [
        "p2p-sim run peer-to-peer --alpha 0.1 --theta 1.0 --retries 0 --over cluster --labels 2 --data digits "
        f"--clusters 5 --seed {SEED}"
    ]
    assert manifest(runs / "peers")["digest"] in words(root)
    assert "This page tells the seed" in words(root)


def test_a_withheld_seed_is_nowhere(runs):
    for form in report_page.FORMATS:
        text = page(form, runs / "peers", runs / "shuffle", seed=False)
        assert str(SEED) not in text
        assert "--seed" in text
        assert "tells the seed" not in text
    told = report_content.documents([str(runs / "peers"), str(runs / "shuffle")], seed=False)["runs"]
    assert [run["seed"] for run in told] == ["withheld"] * 2
    assert [run["command"].partition(" --seed ")[::2] for run in told] == [
        (command.partition(" --seed ")[0], "...")
        for command in (
            run["command"]
            for run in report_content.documents([str(runs / "peers"), str(runs / "shuffle")])["runs"]
        )
    ]


def test_the_page_stands_alone(runs):
    text = page("html", runs / "peers", runs / "shuffle")
    root = read(text)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    refs = re.findall(r'(?:href="|url\(|labelledby=")#?([^")]+)', text)
    assert set(refs) <= set(ids)
    assert not re.search(r'<script|<img|<link|@import|javascript:|(?:href|src)="(?!#)', text)
    assert "default-src 'none'" in text
    assert root.get("lang") == "en"
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    again = report_content.documents([str(runs / "peers"), str(runs / "shuffle")])
    assert report_page.page(again, "html") == text


class Tags(html.parser.HTMLParser):
    """Collects the tags that an HTML parser sees, which is not XML's view."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


@pytest.mark.parametrize("evil", [*EVIL, "$x_$ & |a|`b`"], ids=range(len(EVIL) + 1))
def test_no_name_breaks_out(audited, tmp_path, evil):
    place = tmp_path / "$1 <b>&"
    shutil.copytree(audited, place)
    evil = evil.replace("\ud800", "")  # half of a character is refused where a run is read
    told = manifest(place)
    notes = told["notes"]
    notes["data"] |= {"name": evil, "source": evil, "positive": evil}
    notes["accuracy"] |= {"note": evil, "model": evil}
    notes["command"] = ["p2p-sim", evil]
    audit = document_in(place, "audit.json")
    for name in ("view", "statistic", "world", "why", "command", "version", "when", "verdict"):
        audit["audits"][0][name] = evil
    audit["audits"][0] |= {
        "failed": True,
        "claims": [dict(audit["audits"][0]["claims"][0], name=evil, basis=evil)],
    }
    (place / "audit.json").write_text(json.dumps(audit))
    notes["privacy"]["views"][0] |= {"view": evil}
    notes["costs"]["roles"][0]["role"] = evil
    told["versions"][evil] = evil
    (place / "run.json").write_text(json.dumps(told))
    plain, mine = page("html", audited), page("html", place)
    tags = [Tags(), Tags()]
    for parser, text in zip(tags, (plain, mine), strict=True):
        parser.feed(text)
    assert tags[1].seen == tags[0].seen
    read(mine)
    assert not re.search("[\x00-\x09\x0b-\x1f\ud800\u202e]", mine)
    outside = re.sub(r"^(`{3,})\n.*?\n\1$", "", page("md", place), flags=re.DOTALL | re.MULTILINE)
    assert "<" not in outside
    assert mine.encode()
    assert page("md", place).encode()
    assert json.loads(page("json", place))["runs"][0]["data"]["name"] == evil


def test_a_run_from_python_and_one_without_its_population(tmp_path):
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, faults=["loss=0.1"])
    run.save(tmp_path / "own")
    run.save(tmp_path / "bare", population=False)
    own, bare = report_content.documents([str(tmp_path / "own"), str(tmp_path / "bare")])["runs"]
    assert own["command"].endswith(
        "run = p2p_sim.run(PeerToPeer(alpha=0.1, theta=1.0, retries=0, over='cluster', labels=2), "
        "population, seed=9223372036854775811, faults=['loss=0.1'])"
    )
    assert own["privacy"]["views"][0]["view"] == "learner"
    assert "costs=True" in own["costs"] or "costs" in own["costs"]
    assert bare["privacy"] == "not accounted: it was saved without its population"
    assert (bare["seed"], "seed=..." in bare["command"]) == (None, True)
    text = words(read(page("html", tmp_path / "own", tmp_path / "bare")))
    assert "bare: not accounted: it was saved without its population" in text


def test_json_is_the_documents(runs):
    told = report_content.documents([str(runs / "peers")])
    assert page("json", runs / "peers") == terminal.as_json(told)
    assert (told["format"], told["cautions"]) == (report_content.FORMAT, [])
    assert set(told["runs"][0]) >= {"run", "privacy", "costs", "messages", "versions", "command", "attacks"}


def test_runs_are_told_apart(runs, tmp_path):
    shutil.copytree(runs / "peers", tmp_path / "peers")
    told = report_content.documents([str(runs / "peers"), str(tmp_path / "peers")])["runs"]
    assert [run["run"] for run in told] == [str(runs / "peers"), str(tmp_path / "peers")]
    with pytest.raises(InputError, match="named twice"):
        report_content.documents([str(runs / "peers"), str(runs / "walk" / ".." / "peers")])


def test_what_many_rounds_leave_out_is_said(runs):
    told = report_content.documents([str(runs / "walk")])["runs"][0]["messages"]
    assert len(told) > 60
    text = words(read(page("html", runs / "walk")))
    assert "Bytes on the wire by message kind." in text
    assert "the rounds of a kind are added up, --json has each" in text
    assert f"Who sent what to whom is not drawn: {len(told)} rounds and kinds are too many here" in text
    few = words(read(page("html", runs / "shuffle")))
    assert "Bytes on the wire by round and message kind." in few
    assert "who sent what to whom, round by round." in few
    assert "is not drawn" not in few
    assert "added up" not in few

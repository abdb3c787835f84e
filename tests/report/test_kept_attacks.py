"""Attacks on labels that are kept in a run: what the file holds, which are refused, what reports and the page show."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from p2p_sim import InputError
from p2p_sim import cli as program
from p2p_sim.report import attack_table, report_page
from p2p_sim.report.kept_file import ATTACKS
from p2p_sim.report.view_summary import view_privacy
from p2p_sim.rundir import integrity
from p2p_sim.rundir.run_directory import LazyRun
from tests.render.web.conftest import Tab, browser_page, served, tab
from tests.report.conftest import page, read, tables, words
from tests.run_json_files import document_in

__all__ = ["browser_page", "tab"]

SEED = str(2**63 + 11)


def attacked_again(place: Path, *more: str) -> None:
    assert program.main(["attack", "--run", str(place), "--eta", "prior", *more]) == 0


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of randomized response whose learner and wire were let guess."""
    place = tmp_path_factory.mktemp("attacked") / "rr"
    made = [
        "run",
        "randomized-response",
        "--users",
        "200",
        "--epsilon",
        "1",
        "--seed",
        SEED,
        "--share",
        "0.3",
    ]
    assert program.main([*made, "--out", str(place)]) == 0
    attacked_again(place, "--view", "learner", "--view", "wire", "--attack-seed", "918273999")
    return place


@pytest.fixture
def copy(attacked: Path, tmp_path: Path) -> Path:
    shutil.copytree(attacked, tmp_path / "rr")
    return tmp_path / "rr"


def test_reports_show_what_is_guessed_beside_privacy(attacked: Path) -> None:
    kept = document_in(attacked, "attack.json")["attacks"]
    html = page("html", attacked)
    root = read(html)
    titles = [section.get("id") for section in root.iter("section")]
    assert titles.index("label-inference") == titles.index("privacy") + 1
    first = tables(root, "label-inference")[0]
    assert first[0][:2] == ["attacker", "guessed right (95 %)"]
    assert {line[0] for line in first[1:]} == {each["name"] for each in kept[0]["attackers"]}
    section = next(section for section in root.iter("section") if section.get("id") == "label-inference")
    said = [words(each) for each in section.iter("p")]
    assert f"learner: {' '.join(kept[0]['sentences'])}" in said
    assert len(list(section.iter("figure"))) == 1
    assert "people, an attacker with these messages guesses" in page("md", attacked)
    assert json.loads(page("json", attacked))["runs"][0]["label_inference"] == kept


def test_a_run_that_was_not_attacked_has_no_such_section(attacked: Path, copy: Path) -> None:
    (copy / "attack.json").unlink()
    assert 'id="label-inference"' not in page("html", copy)
    assert "label_inference" not in json.loads(page("json", copy))["runs"][0]
    both = page("md", attacked, copy.rename(copy.with_name("other")))
    assert "rr: learner: Of " in both


def test_seeds_are_withheld_with_that_of_the_run(attacked: Path) -> None:
    assert "918273999" in page("json", attacked)
    for form in report_page.FORMATS:
        assert "918273999" not in page(form, attacked, seed=False)
    (command, *_) = (
        each["command"]
        for each in json.loads(page("json", attacked, seed=False))["runs"][0]["label_inference"]
    )
    assert command.endswith(" --attack-seed ...")
    assert "--seed " not in command


def test_what_beats_a_claim_stands_out_too(copy: Path) -> None:
    document = document_in(copy, "attack.json")
    document["attacks"][0]["exceeded_claims"] = ["optimal: advantage 0.3 is above 0.2"]
    written(copy, document)
    assert "an attack does better than a theorem claims that is not proven here: optimal" in page(
        "html", copy
    )
    del document["attacks"][0]["exceeded_claims"]
    written(copy, document)
    with pytest.raises(InputError, match="exceeded_claims"):
        page("html", copy)


def test_what_beats_the_law_stands_out(copy: Path) -> None:
    document = document_in(copy, "attack.json")
    document["attacks"][0] |= {
        "failed": True, "above": ["optimal: advantage 0.3 is above 0.2"],
        "exceeded_claims": [],
    }  # fmt: skip
    written(copy, document)
    root = read(page("html", copy))
    section = next(section for section in root.iter("section") if section.get("id") == "label-inference")
    (warning,) = [each for each in section.iter("p") if each.get("class") == "warning"]
    assert words(warning) == (f"learner: {attack_table.ABOVE}: optimal: advantage 0.3 is above 0.2")


def written(place: Path, document: dict[str, Any]) -> None:
    document.pop("checksum", None)
    (place / "attack.json").write_text(json.dumps(integrity.with_checksum(document)))


def newer(told: dict[str, Any]) -> None:
    told["format"] = 2


def other_run(told: dict[str, Any]) -> None:
    told["digest"] = "0" * 32


def too_many_bins(told: dict[str, Any]) -> None:
    told["attacks"][0]["per_user"]["prior"].append(3)


def another_basis(told: dict[str, Any]) -> None:
    told["attacks"][1]["attackers"][0]["basis"] = "guessed"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (newer, "has format 2; this version reads up to 1"),
        (other_run, r"is of another run \(digest differ\): delete it, and attack this run again"),
        (too_many_bins, r"is damaged: attacks.0.per_user.prior"),
        (another_basis, r"is damaged: attacks.1.attackers.0.basis = 'guessed': must be"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(copy: Path, change: Any, text: str) -> None:
    document = document_in(copy, "attack.json")
    change(document)
    written(copy, document)
    with pytest.raises(InputError, match=text):
        ATTACKS.read(copy, LazyRun(copy))


def test_an_altered_file_is_refused(copy: Path) -> None:
    file = copy / "attack.json"
    file.write_text(file.read_text().replace('"users": 200', '"users": 201', 1))
    with pytest.raises(InputError, match="was altered since it was written"):
        ATTACKS.read(copy, LazyRun(copy))
    assert program.main(["attack", "--run", str(copy)]) == 2


def test_the_page_tells_it_of_its_viewpoint(copy: Path) -> None:
    row = view_privacy(LazyRun(copy), "learner")["rows"][-1]
    kept = document_in(copy, "attack.json")["attacks"][0]
    assert (row["basis"], row["text"]) == ("measured", " ".join(kept["sentences"]))
    assert row["sure"]["prior"][0] == 200
    assert "measured" not in [each["basis"] for each in view_privacy(LazyRun(copy), "user:3")["rows"]]
    (copy / "attack.json").write_text("{")
    late = view_privacy(LazyRun(copy), "learner")["rows"][-1]
    assert late["basis"] == "not shown"
    assert "attack.json' is damaged" in late["text"]


def test_the_page_draws_who_is_at_risk(attacked: Path, tab: Tab) -> None:
    with served(attacked) as server:
        tab.open(server.url)
        tab.page.wait_for_selector("#figures .risk path.posterior")
        assert "people, an attacker with these messages guesses" in tab.text("#figures")
        paths = tab.page.locator("#figures .risk path").all()
        assert [path.get_attribute("class") for path in paths] == ["prior", "posterior"]
        box = tab.page.locator("#figures .risk").bounding_box()
        for path in paths:
            inside = path.bounding_box()
            assert box["x"] <= inside["x"]
            assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1
            assert box["y"] <= inside["y"] + 1
            assert inside["y"] + inside["height"] <= box["y"] + box["height"]

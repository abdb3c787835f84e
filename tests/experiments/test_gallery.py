"""The gallery is what its results say, and running all experiments goes on where it was."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments import __main__ as command
from experiments import _expected, _gallery, _made_by
from experiments._common import Claim, Experiment, Outcome, read_csv
from experiments._gallery import Published, page
from p2p_sim.core.errors import InputError

CLAIM = Claim("A paper, Figure 1", "a | b rises", "it rose by 3", "reproduced", "the same data").__dict__


def experiment(name: str) -> Experiment:
    return Experiment(name, f"On {name}", "A paper, Figure 1", "2 minutes", lambda _: Outcome({}, []))


SCRIPTS = {name: (experiment(name), f"What {name} shows.") for name in ("first", "second")}


def result(name: str, **given: Any) -> dict[str, Any]:
    return {
        "name": name, "quick": False, "seeds": None, "seconds": 90.3, "processor_seconds": 60.7, "skipped": "",
        "drifted": [], "claims": [CLAIM], "plots": [name], "tables": [], "code": _made_by.code("errata"),
    } | given  # fmt: skip


@pytest.fixture
def published(tmp_path: Path) -> Published:
    (tmp_path / "docs").mkdir()
    return Published(tmp_path / "published", tmp_path / "docs")


def test_the_gallery_is_that_of_the_results() -> None:
    """After ``python -m experiments --gallery``, which needs no run."""
    there = Published()
    assert (there.docs / "gallery.md").read_text() == page(_gallery.experiments(), there)


def test_published_results_are_of_experiments_and_have_their_pictures() -> None:
    there, scripts = Published(), _gallery.experiments()
    plots, tables = set(), {_gallery.QUICK.removesuffix(".csv")}
    for file in there.results.glob("*.json"):
        found = json.loads(file.read_text())
        assert file.stem == found["name"]
        assert file.stem in scripts
        assert found["claims"]
        assert all(Claim(**claim) for claim in found["claims"])
        plots |= set(found["plots"])
        tables |= {each for each in found.get("tables", ()) if not _expected.file(each, quick=False).exists()}
    assert plots == {file.stem for file in there.pictures().glob("*.svg")}
    assert tables == {file.stem for file in there.results.glob("*.csv")}


def test_all_quick_runs_take_less_than_ten_minutes_of_processor_time() -> None:
    """As measured when ``--all --quick --fresh`` last made them all; a script that is new or gone needs that again."""
    rows = read_csv(Published().results / _gallery.QUICK)
    seconds = {row["name"]: float(row["processor_seconds"]) for row in rows}
    assert seconds.keys() == _gallery.experiments().keys()
    assert min(seconds.values()) > 0
    assert max(seconds.values()) < 30
    assert sum(seconds.values()) < 600


def test_every_script_is_an_experiment() -> None:
    """Named like its file, with a docstring, all of its words, and a test."""
    tests = [file.read_text() for file in Path(__file__).parent.glob("*.py")]
    for name, (found, text) in _gallery.experiments().items():
        assert found.name == name
        assert text.strip()
        assert all((found.title, found.source, found.takes))
        assert not found.values or found.keys
        assert any(name in text for text in tests), f"{name} has no test"


def test_every_experiment_has_earlier_values_of_full_and_quick_runs() -> None:
    """Of each table that it holds to them, with the columns that it asks for, and none that no script writes."""
    tables = {f"{each.name}{'_' + part if part else ''}": held
              for each, _ in _gallery.experiments().values() for part, held in each.held().items()}  # fmt: skip
    assert {*_gallery.experiments()} <= {*tables}
    for quick in (False, True):
        for table, held in tables.items():
            rows = read_csv(_expected.file(table, quick=quick))
            columns = {*held.keys, *held.values, *(by for by in held.values.values() if isinstance(by, str))}
            assert rows
            assert columns <= {*rows[0]}, f"{table}: the earlier values lack a column"
        there = {file.stem for file in _expected.file("any", quick=quick).parent.glob("*.csv")}
        assert there == {*tables}


def test_a_page(published: Published, tmp_path: Path) -> None:
    (tmp_path / "first.svg").write_text("<svg/>")
    assert published.take("first", result("first"), tmp_path)
    text = page(SCRIPTS, published)
    assert "Statements of the papers: 1, of which 1 reproduced." in text
    assert "Statements of this project" not in text
    assert "| A paper, Figure 1 | a \\| b rises | reproduced | [first](#first) |" in text
    assert "| A paper, Figure 1 | On second | not run yet | [second](#second) |" in text
    assert "![On first](figures/experiments/first.svg)" in text
    assert (
        "A full run takes 2 minutes; this is a full one, of 90 seconds (61 of processor time); code " in text
    )
    assert "*Why:* the same data." in text
    assert (published.pictures() / "first.svg").read_text() == "<svg/>"


def test_our_own_statements_are_counted_apart(published: Published, tmp_path: Path) -> None:
    own = CLAIM | {"where": "this project: A paper, Figure 1", "verdict": "not reproduced"}
    assert published.take("first", result("first", plots=[], claims=[CLAIM, own, own]), tmp_path)
    text = page(SCRIPTS, published)
    assert "Statements of the papers: 1, of which 1 reproduced." in text
    assert "Statements of this project: 2, of which 2 not reproduced." in text


def test_what_was_found_by_other_code_is_said(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the gallery, which would change with every edit: there stands what found it."""
    monkeypatch.setattr(_gallery, "experiments", lambda: {"errata": SCRIPTS["first"]})
    found = result("errata", plots=[], drifted=["n = 1: accuracy is 0.5"])
    assert published.take("errata", found, tmp_path)
    assert list(published.of_other_code()) == []
    text = page({"errata": SCRIPTS["first"]}, published)
    assert f"; code {_made_by.digest(found['code'])}; 1 values left their tolerance" in text
    assert published.take("errata", found | {"code": found["code"] | {"_plots.py": "0"}}, tmp_path)
    assert list(published.of_other_code()) == ["errata: what is published was found before _plots.py changed"]
    del found["code"]
    assert published.take("errata", found, tmp_path)
    assert list(published.of_other_code()) == ["errata: what is published does not say which code found it"]


def test_tables_that_nothing_else_holds_are_published_with_a_result(
    published: Published, tmp_path: Path
) -> None:
    for name in ("first_slopes", "first_more", "errata"):
        (tmp_path / f"{name}.csv").write_text(f"a\n{name}\n")
    (tmp_path / "first.svg").write_text("<svg/>")
    assert published.take("first", result("first", tables=["first_slopes", "first_more", "errata"]), tmp_path)
    assert {file.stem for file in published.results.glob("*.csv")} == {"first_slopes", "first_more"}
    assert published.take("first", result("first", tables=["first_more"]), tmp_path)
    assert [file.read_text() for file in published.results.glob("*.csv")] == ["a\nfirst_more\n"]
    (tmp_path / "first_more.csv").write_bytes(bytes(_gallery.LARGEST + 1))
    with pytest.raises(InputError, match="publish less of it"):
        published.take("first", result("first", tables=["first_more"]), tmp_path)


def test_a_quick_result_never_replaces_a_full_one(published: Published, tmp_path: Path) -> None:
    for name in ("first", "first_part"):
        (tmp_path / f"{name}.svg").touch()
    assert published.take("first", result("first", quick=True), tmp_path)
    assert "reproduced (quick)" in page(SCRIPTS, published)
    assert published.take("first", result("first", plots=["first_part"]), tmp_path)
    assert not published.take("first", result("first", quick=True), tmp_path)
    assert "(quick)" not in page(SCRIPTS, published)
    assert [file.name for file in published.pictures().iterdir()] == ["first_part.svg"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Each experiment, instead of being run, leaves its result; "second" ends with exit code 1."""
    made: list[list[str]] = []

    def run(words: list[str], **_: Any) -> SimpleNamespace:
        made.append(words)
        name, out = words[2].removeprefix("experiments."), Path(words[4])
        out.mkdir(exist_ok=True)
        if name == "second":
            return SimpleNamespace(returncode=130 if "--seeds" in words else 1)
        left = result(name, plots=[], quick="--quick" in words)
        (out / f"{name}.json").write_text(json.dumps(left))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    for place in (command, _gallery):
        monkeypatch.setattr(place, "experiments", lambda: SCRIPTS)
    return made


def test_all_goes_on_after_a_failure_and_where_it_was(
    calls: list[list[str]], published: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--all", "--out", str(tmp_path / "out")]
    assert command.main(words, published) == 1
    said = capsys.readouterr()
    assert "1/2 first: takes 2 minutes" in said.err
    assert "failed: second (exit code 1)" in said.err
    assert said.out.split() == [str(published.docs / name) for name in ("gallery.md", "errata.md")]
    assert "Statements of the papers: 1," in (published.docs / "gallery.md").read_text()
    assert [call[2] for call in calls] == ["experiments.first", "experiments.second"]
    assert command.main(words, published) == 1
    assert "1/2 first: was there already" in capsys.readouterr().err
    assert [call[2] for call in calls[2:]] == ["experiments.second"]


def test_seconds_of_quick_runs_are_kept_only_where_all_were_made_again(
    calls: list[list[str]], published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, file = (
        ["--all", "--quick", "--fresh", "--out", str(tmp_path / "out")],
        published.results / "quick_seconds.csv",
    )
    assert command.main(words, published) == 1  # "second" failed
    monkeypatch.setattr(command, "experiments", lambda: {"first": SCRIPTS["first"]})
    for fewer in ("--all", "--quick", "--fresh"):
        given = [word for word in words if word != fewer] + (["--only", "first"] if fewer == "--all" else [])
        assert command.main(given, published) == 0
        assert not file.exists()
    assert command.main(words, published) == 0
    assert read_csv(file) == [{"name": "first", "processor_seconds": "60.7"}]


def test_ctrl_c_ends_all_of_them(
    calls: list[list[str]], published: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--only", "second", "first", "--seeds", "3", "--out", str(tmp_path / "out")]
    assert command.main(words, published) == 130
    assert "experiments: ended; the same command goes on where it was" in capsys.readouterr().err
    assert len(calls) == 1


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"name": "first"}', "[" * 200_000], ids=len)
def test_a_damaged_outcome_is_named(
    text: str,
    calls: list[list[str]],
    published: Published,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--only", "first", "--out", str(tmp_path / "out")]
    for folder in (tmp_path / "out", published.results):
        folder.mkdir()
        (folder / "first.json").write_text(text)
        assert command.main(words, published) == 2
        assert f"{folder.name}/first.json' is no outcome of an experiment" in capsys.readouterr().err
        (folder / "first.json").unlink()
    assert len(calls) == 1  # where it is not known what is published, nothing is


def test_an_option_of_no_use_is_left_out_and_said(
    calls: list[list[str]],
    published: Published,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--only", "first", "--seeds", "3", "--address", "a:1", "--out", str(tmp_path / "out")]
    seconds = replace(SCRIPTS["first"][0], in_one="it takes seconds")
    monkeypatch.setattr(command, "experiments", lambda: {"first": (seconds, "")})
    assert command.main(words, published) == 0
    assert (
        "experiments: --address a:1: first is computed in one process, as it takes seconds: run without it"
        in capsys.readouterr().err
    )
    assert "--seeds" in calls[0]
    assert "--address" not in calls[0]
    useful = replace(SCRIPTS["first"][0], seeded=False)
    monkeypatch.setattr(command, "experiments", lambda: {"first": (useful, "")})
    assert command.main([*words, "--fresh"], published) == 0
    assert "--seeds 3: first has no number of seeds to choose: run without it" in capsys.readouterr().err
    assert "--seeds" not in calls[1]
    assert "--address" in calls[1]


@pytest.mark.parametrize("changed", ["--quick", "--seeds", "--fresh", "code"])
def test_other_settings_or_code_are_another_run(
    calls: list[list[str]], published: Published, tmp_path: Path, changed: str
) -> None:
    words = ["--only", "first", "--out", str(tmp_path / "out")]
    assert command.main(words, published) == 0
    if changed == "code":
        file = tmp_path / "out/first.json"
        file.write_text(file.read_text().replace('"p2p_sim": "', '"p2p_sim": "0'))
    else:
        words += [changed, "2"] if changed == "--seeds" else [changed]
    assert command.main(words, published) == 0
    assert len(calls) == 2
    assert (changed in calls[1]) is changed.startswith("--")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "third"], "--only third: known are first, second"),
        ([], "nothing to do: give --all, --only NAME or --gallery"),
    ],
)
def test_bad_usage(
    calls: list[list[str]],
    published: Published,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    assert command.main(words, published) == 2
    assert said in capsys.readouterr().err

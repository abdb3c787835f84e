"""``report --figures``: each figure as SVG, PNG and CSV, the same as on the page, all of them or none."""

from __future__ import annotations

import csv
import re

import pytest

from p2p_sim import cli as program
from p2p_sim.core.errors import InputError
from p2p_sim.report import figure_files, figures, report_content, report_page
from tests.report.conftest import manifest


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    """The figures of one run, and its page."""
    place = tmp_path_factory.mktemp("written")
    words = ["report", str(runs / "peers"), "--out", str(place / "page.html")]
    assert program.main([*words, "--figures", str(place / "figures")]) == 0
    return place


@pytest.mark.slow
def test_every_figure_of_the_page_is_three_files(written):
    page = (written / "page.html").read_text()
    found = {path.name for path in (written / "figures").iterdir()}
    names = ("privacy", "utility", "traffic", "messages")
    assert found == {f"{name}.{kind}" for name in names for kind in ("svg", "png", "csv")}
    for name in names:
        assert (written / "figures" / f"{name}.svg").read_text() in page
        assert (written / "figures" / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(re.findall("<figure>", page)) == len(names)


def test_the_numbers_are_those_of_the_run(runs, written):
    notes = manifest(runs / "peers")["notes"]
    views = {row["view"]: row for row in notes["privacy"]["views"] if row["exact"]}
    told = rows(written / "figures" / "privacy.csv")
    drawn = {row["view"]: row for row in told if row["what"] == "figure"}
    assert set(drawn) == set(views)
    for view, row in drawn.items():
        assert float(row["epsilon_nats"]) == float(views[view]["exact"]["epsilon"])
        assert row["basis"] == views[view]["exact"]["basis"]
        assert float(row["delta"]) == notes["privacy"]["delta"]
    theorems = [t for row in views.values() for t in row["theorems"] if t["holds"]]
    assert len([row for row in told if row["what"].startswith("theorem")]) == len(theorems)
    shares = rows(written / "figures" / "utility.csv")
    accuracy = {row["trained"]: float(row["test_accuracy_percent"]) for row in shares}
    assert accuracy == {text: 100 * notes["accuracy"][key] for key, text in figures.ACCURACY.items()}
    traffic = rows(written / "figures" / "traffic.csv")
    assert [(int(row["round"]), row["kind"]) for row in traffic] == [(1, "ask"), (2, "label"), (3, "report")]
    counted = manifest(runs / "peers")["costs"]
    assert [int(row["wire_bytes"]) for row in traffic] == [row["nbytes"] for row in counted]


@pytest.mark.slow
def test_several_runs_and_the_same_bytes_again(runs, tmp_path):
    paths = [str(runs / name) for name in ("peers", "open")]
    for name in ("one", "two"):
        made = report_page.laid_out(report_content.documents(paths))
        figure_files.write(tmp_path / name, made.drawings())
    first = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    points = rows(tmp_path / "one" / "tradeoff.csv")
    assert {row["numbers"] for row in points} == {"1", "2"}
    assert {row["runs"] for row in points} == {"peers", "open"}
    assert any(row["epsilon_nats"] == "inf" for row in points)
    assert all(row["accuracy_percent"] or row["bytes_per_user"] for row in points)


@pytest.mark.slow
def test_an_audit_is_a_row_with_its_delta_and_confidence(audited, tmp_path):
    made = report_page.laid_out(report_content.documents([str(audited)]))
    figure_files.write(tmp_path / "figures", made.drawings())
    measured = [row for row in rows(tmp_path / "figures" / "privacy.csv") if row["what"] == "measured"]
    assert {row["view"] for row in measured} <= {"learner", "wire"}
    assert measured
    assert all((row["delta"], row["confidence_percent"]) == ("0.05", "97.5") for row in measured)


def test_a_folder_with_something_in_it_is_refused(runs, tmp_path, capsys):
    full, link, file, empty = (tmp_path / name for name in ("full", "link", "file", "empty"))
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    empty.mkdir()
    link.symlink_to(empty)
    file.write_text("mine")
    for place, why in (
        (full, "is not empty"),
        (link, "is a link"),
        (file, "is not a folder"),
        (tmp_path / "no" / "x", "that exists"),
    ):
        words = ["report", str(runs / "open"), "--out", str(tmp_path / "page.html"), "--figures", str(place)]
        assert program.main(words) == 2
        assert f"--figures {str(place)!r}" in (told := capsys.readouterr().err)
        assert why in told
    assert (full / "mine.txt").read_text() == file.read_text() == "mine"
    assert not (tmp_path / "page.html").exists()


class Broken:
    """A drawing that fails."""

    name, columns, rows = "broken", ("x",), ((1,),)

    def svg(self):
        return "<svg/>"

    def png(self):
        raise OSError(28, "No space left on device")


def test_figures_are_written_whole_or_not_at_all(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="No space left on device"):
        figure_files.write(empty, [Broken()])
    assert [*tmp_path.iterdir()] == [empty]
    assert not [*empty.iterdir()]

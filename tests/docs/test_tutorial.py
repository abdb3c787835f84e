"""The tutorial is run, chapter by chapter: what it shows is what comes out, its pictures too."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.docs import transcript
from tests.docs.test_documents import ROOT

FOLDER = ROOT / "docs/tutorial"
CHAPTERS = [path.stem for path in sorted(FOLDER.glob("[1-9]-*.md"))]


def page(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text()


def test_the_chapters_are_in_a_row() -> None:
    assert re.findall(r"^\d\. \[.*\]\((.*)\.md\)", page("index"), re.MULTILINE) == CHAPTERS
    for name, following in itertools.pairwise(CHAPTERS):
        assert page(name).rstrip().splitlines()[-1].endswith(f"]({following}.md)"), name


def commands(name: str) -> list[str]:
    """Return a chapter's commands as they are written."""
    return [
        line for step in transcript.steps(page(name)) if step.kind == "sh" for line in step.text.splitlines()
    ]


def made(command: str) -> str:
    """Return what a command makes by --out; empty if nothing."""
    words = command.split()
    return words[words.index("--out") + 1] if "--out" in words else ""


def used_from_before(name: str) -> list[str]:
    """Return the runs of former chapters whose folders this one's commands name."""
    words = {word for command in commands(name) for word in command.split()}
    former = (command for each in CHAPTERS[: CHAPTERS.index(name)] for command in commands(each))
    return [command for command in former if command.startswith("p2p-sim run ") and made(command) in words]


def test_all_chapters_can_be_read_in_one_folder() -> None:
    """A run refuses a folder that is there: no two make the same, and none makes what an earlier picture is called."""
    every = [made(command) for name in CHAPTERS for command in commands(name) if "--force" not in command]
    places = [place for place in every if place]
    assert len(places) == len(set(places)) > 5, places
    assert used_from_before("3-views")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_what_comes_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before: dict[str, str] = {}
    for former in CHAPTERS[: CHAPTERS.index(name)]:
        before |= transcript.files(page(former))
    earlier = "".join(f"```sh\n{command}\n```\n\n" for command in used_from_before(name))
    transcript.run(earlier + page(name), before)
    for picture in re.findall(r"!\[.*?\]\(\.\./figures/tutorial/(.*?)\)", page(name)):
        shown = (ROOT / "docs/figures/tutorial" / picture).read_text()
        assert drawn((tmp_path / picture).read_text()) == drawn(shown), picture


def drawn(picture: str) -> str | list[str]:
    """What must be equal of a picture: all of it, or the words of one by matplotlib, of which versions differ."""
    return re.findall(r"<text[^>]*>([^<]*)", picture) if 'id="picture-' in picture else picture


@pytest.mark.parametrize("shown", ["two", "one\nthree", "one\n...\ntwo", "on"])
def test_what_is_not_printed_is_found(shown: str) -> None:
    with pytest.raises(AssertionError, match="shown but not printed"):
        transcript.shows(shown, "one\nsecond\nthree\n")
    transcript.shows("one\nsec...\n...\nthree", "one\nsecond\nthree\n")

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


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_what_comes_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before: dict[str, str] = {}
    for former in CHAPTERS[: CHAPTERS.index(name)]:
        before |= transcript.files(page(former))
    transcript.run(page(name), before)
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

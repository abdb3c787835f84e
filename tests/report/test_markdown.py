"""The Markdown page, rendered by another library: the tables and words of the HTML page, and nothing else."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from p2p_sim.report import terminal
from p2p_sim.report.page_layout import Paragraph, Section, Table, markdown
from tests.render.material import EVIL
from tests.report.conftest import RUNS, page, read, tables, words

PLAIN = {
    "page",
    "h1",
    "h2",
    "p",
    "strong",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ol",
    "li",
    "pre",
    "code",
}


def rendered(text):
    made = MarkdownIt("gfm-like", {"linkify": False, "xhtmlOut": True}).render(text)
    return ElementTree.fromstring(f"<page>{made}</page>")


@pytest.mark.slow
@pytest.mark.parametrize("names", [["peers"], list(RUNS)], ids=["one", "several"])
def test_it_has_the_tables_and_words_of_the_page(runs, names):
    paths = [runs / name for name in names]
    mine, theirs = rendered(page("md", *paths)), read(page("html", *paths))
    assert tables(mine) == tables(theirs)
    assert {element.tag for element in mine.iter()} <= PLAIN
    captions = [words(caption) for caption in theirs.iter("caption")]
    said = [words(paragraph) for paragraph in mine.iter("p")]
    assert [text for text in said if text in captions] == captions
    assert {words(paragraph) for paragraph in theirs.iter("p")} <= set(said)
    assert [words(item) for item in mine.iter("li")] == [words(item) for item in theirs.iter("li")]
    assert ["".join(code.itertext()).rstrip("\n") for code in mine.iter("code")] == [
        "".join(code.itertext()) for code in theirs.iter("code")
    ]


LINES = ["1. one", "12) two", "- three", "+ four", "# five", "a | b", "$x_1$", "=", "==="]


@pytest.mark.parametrize("text", [*EVIL, *LINES])
def test_text_stays_text(text):
    table = Table([text], [[text]], text, [text])
    root = rendered(markdown("title", [Paragraph(text), Paragraph(text, True)], [Section("of", [table])]))
    assert {element.tag for element in root.iter()} <= PLAIN
    shown = " ".join("".join(c if c.isprintable() else "�" for c in " ".join(text.split())).split())
    said = [words(element) for tag in ("p", "li") for element in root.iter(tag)]
    assert said == [shown] * 4
    spelt = " ".join(terminal.visible(text).split())
    assert [words(element) for tag in ("th", "td") for element in root.iter(tag)] == [spelt] * 2

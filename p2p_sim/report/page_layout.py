"""A report as one HTML page or as Markdown: sections of tables, figures, words and code. No scripts, fit for print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from p2p_sim.report.figure_text import Number, cell


@dataclass(frozen=True)
class Table:
    """Rows under a head.  Values are formatted by ``figure_text.cell``; ``notes``: below the table, numbered from 1.

    ``meanings``: of each head, a few words that are shown when it is pointed at; empty for none.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    notes: Sequence[str] = ()
    meanings: Sequence[str] = ()


class Drawing(Protocol):
    """What is drawn: ``name``, ``columns`` and ``rows`` as of ``plots.Plot``."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns of its table, with units."""

    @property
    def rows(self) -> Sequence[Sequence[Any]]:
        """Its table."""

    def svg(self) -> str:
        """Return an SVG element."""

    def png(self) -> bytes:
        """Return a PNG file."""


@dataclass(frozen=True)
class Picture:
    """A picture, and its caption."""

    drawing: Drawing
    caption: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; ``warning``: whether it is highlighted."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class CodeBlock:
    """Lines to run as they stand."""

    text: str


Block = Table | Picture | Paragraph | CodeBlock
Facts = Sequence[tuple[str, Sequence[Any]]]


@dataclass(frozen=True)
class Section:
    """A title and the blocks below it."""

    title: str
    blocks: Sequence[Block]


def facts(names: Sequence[str], entries: Facts, caption: str = "") -> list[Table]:
    """Return facts (title, one value for each run) as tables; a fact without any value is left out.

    For one run: one line a fact.  For several: a table of the facts that are equal in all runs, and a table of the
    others with one line a run.
    """
    known = [(title, values) for title, values in entries if any(value not in (None, "") for value in values)]
    if len(names) == 1:
        return (
            [Table(["", names[0]], [[title, *values] for title, values in known], caption)] if known else []
        )
    same = [[title, values[0]] for title, values in known if all(value == values[0] for value in values)]
    other = [(title, values) for title, values in known if any(value != values[0] for value in values)]
    start = f"{caption}, what" if caption else "What"
    tables = [Table(["", "in all runs"], same, f"{start} is the same")] if same else []
    return [*tables, by_run(names, other, f"{start} differs")] if other else tables


def by_run(names: Sequence[str], entries: Facts, caption: str) -> Table:
    """Return facts as a table with one line a run."""
    rows = [[name, *(values[i] for _, values in entries)] for i, name in enumerate(names)]
    return Table(["run", *(title for title, _ in entries)], rows, caption)


def together(
    runs: Sequence[Mapping[str, Any]], head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str
) -> Table:
    """Return a table of rows that begin with their run's name; with one run, the name is left out."""
    if len(runs) == 1:
        return Table(head, [row[1:] for row in rows], caption)
    return Table(["run", *head], rows, caption)


def whose(run: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the prefix that names a run, if there are several."""
    return f"{run['run']}: " if len(runs) > 1 else ""


_STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--line:#c8c8c8;--faint:#f3f3f3;--link:#00527f;--mark:#b34e00}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#16181d;--line:#4a4d55;--faint:#22252b;
--link:#7cc4f0;--mark:#e69f00}}
body{font:16px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper);
max-width:64rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem}h2{font-size:1.25rem;border-bottom:1px solid var(--ink);margin-top:2.2rem}
nav a{display:inline-block;margin-right:1rem}a{color:var(--link)}
.wide{overflow-x:auto;margin:1rem 0}.wide:focus-visible{outline:2px solid var(--link)}
table{border-collapse:collapse;font-size:.9rem}
caption{text-align:left;font-weight:bold;padding-bottom:.3rem}
th,td{border-bottom:1px solid var(--line);padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;
max-width:26rem;overflow-wrap:break-word}
.long{min-width:13rem}
.token{min-width:11rem;overflow-wrap:anywhere}
@media screen{.whole{white-space:nowrap}}
thead td,thead th{border-bottom-color:var(--ink);vertical-align:bottom}tbody th{font-weight:normal}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}thead .number{white-space:normal}
ol.notes{font-size:.85rem}figure{margin:1rem 0}
figure svg{display:block;background:#fff;max-width:100%;min-width:34rem;height:auto}figcaption{font-size:.9rem}
pre{background:var(--faint);padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}
.warning{border-left:4px solid var(--mark);padding-left:.8rem;font-weight:bold}
@page{margin:15mm}
@media print{:root{font-size:9.5pt}body{margin:0;padding:0;max-width:none;font-size:1rem}nav{display:none}
h1,h2,caption{break-after:avoid}
figure,tr,li,pre,.warning{break-inside:avoid}p{orphans:3;widows:3}.wide{overflow:visible}
figure svg{min-width:0;max-height:235mm}table{max-width:100%}
th,td{padding-right:.5rem}.long{min-width:8rem;overflow-wrap:anywhere}.token{min-width:5rem}h2{margin-top:1.4rem}
.many{font-size:6.2pt}.many th,.many td{padding-right:.2rem}.many .long{min-width:3.5rem}.many .token{min-width:2.5rem}}
"""

_SHORT, _LONG = 22, 40  # letters, up to which a cell is one line, and from which a column is given room
_MANY = 10  # columns, above which a table is set smaller on paper


def html(title: str, opening: Sequence[Block], sections: Sequence[Section]) -> str:
    """Return the page."""
    links = " ".join(f'<a href="#{_anchor(section)}">{escape(section.title)}</a>' for section in sections)
    top = "\n".join(map(_block, opening))
    body = [f"<h1>{_text(title)}</h1>", top, f'<nav aria-label="Sections">{links}</nav>']
    for section in sections:
        inner = "\n".join(map(_block, section.blocks))
        name = _anchor(section)
        heading = f'<h2 id="{name}-title">{escape(section.title)}</h2>'
        body.append(f'<section id="{name}" aria-labelledby="{name}-title">{heading}\n{inner}\n</section>')
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"/><meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    )
    joined = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n<main>\n{joined}\n</main>\n</body></html>\n'


def _anchor(section: Section) -> str:
    return section.title.lower().replace(" ", "-")


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Picture):
        drawn, caption = _wide(block.drawing.svg(), block.caption), _text(block.caption)
        return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"
    if isinstance(block, CodeBlock):
        return f"<pre><code>{_text(block.text)}</code></pre>"
    kind = ' class="warning"' if block.warning else ""
    return f"<p{kind}>{_text(block.text)}</p>"


def _wide(inner: str, name: str) -> str:
    """Make wide content scroll on its own, also with the keyboard."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{_text(name)}">{inner}</div>'


def _table(table: Table) -> str:
    """Return a table as HTML: columns of numbers are aligned right, the first cell of a row is its head."""
    classes = [_class([row[i] for row in table.rows]) for i in range(len(table.head))]
    meanings = table.meanings or [""] * len(table.head)
    heads = "".join(
        f'<th scope="col"{_head(name, c)}{_title(meant)}>{_text(name)}</th>' if name else "<td></td>"
        for name, c, meant in zip(table.head, classes, meanings, strict=True)
    )
    rows = "".join(f"<tr>{_line(row, classes)}</tr>\n" for row in table.rows)
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    below = f'<ol class="notes">{notes}</ol>' if notes else ""
    many = ' class="many"' if len(table.head) > _MANY else ""
    inner = f"<table{many}>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>"
    return _wide(inner, table.caption or "table") + below


def _head(name: str, given: str) -> str:
    """Return the class of a head: that of its column, unless a word is too long for a small screen."""
    return ' class="token"' if not given and max(map(len, name.split()), default=0) > _SHORT else given


def _title(meaning: str) -> str:
    return f' title="{_text(meaning)}"' if meaning else ""


def _line(row: Sequence[Any], classes: Sequence[str]) -> str:
    texts = [cell(value) for value in row]
    kinds = [given or _fit(text) for given, text in zip(classes, texts, strict=True)]
    first, *others = (f"{kind}>{_text(text)}" for kind, text in zip(kinds, texts, strict=True))
    return f'<th scope="row"{first}</th>' + "".join(f"<td{text}</td>" for text in others)


def _fit(text: str) -> str:
    """Return how one cell wraps: not at all if it is short, anywhere if a word is too long for a small screen."""
    if len(text) <= _SHORT:
        return ' class="whole"'
    return ' class="token"' if max(map(len, text.split()), default=0) > _SHORT else ""


def _class(values: Sequence[Any]) -> str:
    """Return the class of a column: numbers (perhaps with gaps) are aligned right, long text gets more width."""
    known = [value for value in values if value not in (None, "-")]
    if known and all(isinstance(v, (int, float, Number)) and not isinstance(v, bool) for v in known):
        return ' class="number"'
    return ' class="long"' if any(len(str(value)) > _LONG for value in known) else ""


def _text(text: str) -> str:
    """Escape text for HTML, and replace what is not printable."""
    return escape("".join(c if c.isprintable() or c == "\n" else "�" for c in text))


def markdown(title: str, opening: Sequence[Block], sections: Sequence[Section]) -> str:
    """Return the page."""
    parts = [f"# {_markdown_text(title)}", *map(_markdown_block, _without_figures(opening))]
    for section in sections:
        parts += [
            f"## {section.title}",
            *map(_markdown_block, _without_figures(section.blocks)),
        ]
    return "\n\n".join(parts) + "\n"


def _without_figures(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks except pictures."""
    return [block for block in blocks if not isinstance(block, Picture)]


def _markdown_block(block: Block) -> str:
    if isinstance(block, Table):
        return _markdown_table(block)
    assert not isinstance(block, Picture)
    if isinstance(block, CodeBlock):
        code = "".join(c if c.isprintable() or c == "\n" else "�" for c in block.text)
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
        return f"{fence}\n{code}\n{fence}"
    return f"**{_markdown_text(block.text)}**" if block.warning else _markdown_text(block.text)


def _markdown_table(table: Table) -> str:
    lines = [_markdown_line(table.head), _markdown_line(["---"] * len(table.head), plain=True)]
    lines += [_markdown_line(row) for row in table.rows]
    above = [f"**{_markdown_text(table.caption)}**", ""] if table.caption else []
    notes = (
        ["", *(f"{i}. {_markdown_text(note)}" for i, note in enumerate(table.notes, 1))]
        if table.notes
        else []
    )
    return "\n".join([*above, *lines, *notes])


def _markdown_line(cells: Sequence[Any], plain: bool = False) -> str:
    shown = [each if plain else _inline(cell(each)) for each in cells]
    return f"| {' | '.join(shown)} |"


def _markdown_text(text: str) -> str:
    """Return text on one line, with everything escaped that means something to Markdown or HTML."""
    return re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Return such text for places that are not the start of a line."""
    words = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in words).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|~#>$])", r"\\\1", safe)

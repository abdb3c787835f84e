"""A report as one HTML page that holds everything it shows: no scripts, nothing from elsewhere, fit for print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from p2p_sim.report.pages.blocks import Block, Code, Figure, Section, Table
from p2p_sim.report.pages.words import Number, cell

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--line:#c8c8c8;--faint:#f3f3f3;--link:#00527f;--mark:#b34e00}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#16181d;--line:#4a4d55;--faint:#22252b;
--link:#7cc4f0;--mark:#e69f00}}
body{font:16px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper);
max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;overflow-wrap:anywhere}h2{font-size:1.25rem;border-bottom:1px solid var(--ink);margin-top:2.2rem}
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
th,td{padding-right:.5rem}.long{min-width:8rem}h2{margin-top:1.4rem}}
"""

_SHORT, _LONG = 22, 40  # letters, up to which a cell is one line, and from which a column is given room


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
    if isinstance(block, Figure):
        return f"<figure>{_wide(block.svg, block.caption)}<figcaption>{_text(block.caption)}</figcaption></figure>"
    if isinstance(block, Code):
        return f"<pre><code>{_text(block.text)}</code></pre>"
    kind = ' class="warning"' if block.warning else ""
    return f"<p{kind}>{_text(block.text)}</p>"


def _wide(inner: str, name: str) -> str:
    """Let what may be wider than the screen scroll by itself, by keys too."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{_text(name)}">{inner}</div>'


def _table(table: Table) -> str:
    """Lay a table out: columns of numbers to the right; what comes first in a line is its head."""
    classes = [_class([row[i] for row in table.rows]) for i in range(len(table.head))]
    heads = "".join(
        f'<th scope="col"{c}>{_text(name)}</th>' if name else "<td></td>"
        for name, c in zip(table.head, classes, strict=True)
    )
    rows = "".join(f"<tr>{_line(row, classes)}</tr>\n" for row in table.rows)
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    below = f'<ol class="notes">{notes}</ol>' if notes else ""
    inner = f"<table>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>"
    return _wide(inner, table.caption or "table") + below


def _line(row: Sequence[Any], classes: Sequence[str]) -> str:
    texts = [cell(value) for value in row]
    kinds = [given or _fit(text) for given, text in zip(classes, texts, strict=True)]
    first, *others = (f"{kind}>{_text(text)}" for kind, text in zip(kinds, texts, strict=True))
    return f'<th scope="row"{first}</th>' + "".join(f"<td{text}</td>" for text in others)


def _fit(text: str) -> str:
    """Return how one cell is broken: not at all if it is short, anywhere if a word is too long for a small screen."""
    if len(text) <= _SHORT:
        return ' class="whole"'
    return ' class="token"' if max(map(len, text.split()), default=0) > _SHORT else ""


def _class(values: Sequence[Any]) -> str:
    """Return how a column is laid out: numbers, which may have gaps, to the right; long text with room."""
    known = [value for value in values if value not in (None, "-")]
    if known and all(isinstance(v, (int, float, Number)) and not isinstance(v, bool) for v in known):
        return ' class="number"'
    return ' class="long"' if any(len(str(value)) > _LONG for value in known) else ""


def _text(text: str) -> str:
    """Escape text; what HTML cannot hold is spelt out by ``cell`` and here."""
    return escape("".join(c if c.isprintable() or c == "\n" else "�" for c in text))

"""A report as one HTML page that holds everything it shows: no scripts, nothing from elsewhere, fit for print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from p2p_sim.report import layout
from p2p_sim.report.pages.blocks import Block, Code, Figure, Section, Table

_STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:#1b1b1b;background:#fff;max-width:62rem;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.25rem;border-bottom:1px solid #767676;margin-top:2.2rem}
nav a{margin-right:1rem}a{color:#00527f}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}
caption{text-align:left;font-weight:bold;padding-bottom:.3rem}
th,td{border-bottom:1px solid #c8c8c8;padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top}
th{border-bottom-color:#1b1b1b}.number{text-align:right;font-variant-numeric:tabular-nums}
ol.notes{font-size:.85rem}figure{margin:1rem 0}figure svg{max-width:100%;height:auto}figcaption{font-size:.9rem}
pre{background:#f3f3f3;padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}
.warning{border-left:4px solid #b34e00;padding-left:.8rem;font-weight:bold}
@media print{body{margin:0;max-width:none;font-size:10pt}figure,table{break-inside:avoid}nav{display:none}}
"""


def html(title: str, glance: Table, sections: Sequence[Section]) -> str:
    """Return the page."""
    links = " ".join(f'<a href="#{_anchor(section)}">{escape(section.title)}</a>' for section in sections)
    body = [f"<h1>{escape(title)}</h1>", _table(glance), f"<nav>{links}</nav>"]
    for section in sections:
        inner = "\n".join(map(_block, section.blocks))
        body.append(f'<section id="{_anchor(section)}"><h2>{escape(section.title)}</h2>\n{inner}\n</section>')
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"/><meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    joined = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n<main>\n{joined}\n</main>\n</body></html>\n'


def _anchor(section: Section) -> str:
    return section.title.lower().replace(" ", "-")


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Figure):
        return f"<figure>{block.svg}<figcaption>{_text(block.caption)}</figcaption></figure>"
    if isinstance(block, Code):
        return f"<pre><code>{_text(block.text)}</code></pre>"
    kind = ' class="warning"' if block.warning else ""
    return f"<p{kind}>{_text(block.text)}</p>"


def _table(table: Table) -> str:
    """Lay a table out: columns of numbers to the right."""
    right = [_numbers([row[i] for row in table.rows]) for i in range(len(table.head))]
    classes = [' class="number"' if number else "" for number in right]
    heads = "".join(
        f'<th scope="col"{c}>{_text(name)}</th>' for name, c in zip(table.head, classes, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{c}>{_text(_cell(v))}</td>" for v, c in zip(row, classes, strict=True))
        + "</tr>\n"
        for row in table.rows
    )
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    below = f'<ol class="notes">{notes}</ol>' if notes else ""
    inner = f"{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody>"
    return f'<div class="wide"><table>{inner}</table></div>{below}'


def _numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _cell(value: Any) -> str:
    return "" if value is None else layout.cell(value)


def _text(text: str) -> str:
    """Escape text; what HTML cannot hold is spelt out by ``layout.cell`` and here."""
    return escape("".join(c if c.isprintable() or c == "\n" else "�" for c in text))

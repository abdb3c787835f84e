"""Corrections of the papers with their numbers: as text, as a document, and as the page docs/errata.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from p2p_sim.errata import ERRATA, Erratum, Numbers
from p2p_sim.report import terminal

STANDS = {
    "exceeded": "the exact number exceeds the printed bound",
    "undercut": "the exact number is below the printed bound",
    "unequal": "the printed number is not the exact one",
    "loose": "the printed bound holds, and is loose",
    "code": "the paper's text and its code differ",
}

HEAD = """# Errata of the papers

This page lists what is wrong, misprinted or loose in the papers that this project implements. Each entry has numbers that you can
check: `p2p-sim errata` computes them again, and exits with status 1 if an entry no longer shows. For one entry:

```sh
p2p-sim errata --only clustering-theorem-1
```

In the table, *printed* is the number that the paper's statement gives. *exact* is the true one, from the accountant, an enumeration or a
closed form. *corrected* is the number that the corrected statement gives, if there is one. For proofs see
[laws and their proofs](laws.md#corrections). `python -m experiments --gallery` writes this page.
"""  # noqa: E501 (a page of docs)


class Found(NamedTuple):
    """An erratum, its numbers, and whether they still show it."""

    erratum: Erratum
    numbers: Numbers
    shows: bool


def found(errata: Iterable[Erratum] = ERRATA) -> list[Found]:
    """Compute the numbers of each."""
    return [Found(each, numbers, each.shows(numbers)) for each in errata for numbers in [each.numbers()]]


def document(each: Found) -> dict[str, Any]:
    """Return one as JSON values: what is claimed, three numbers, and what shows them; infinity is left as it is."""
    erratum = each.erratum
    return {
        "id": erratum.id,
        "paper": erratum.paper,
        "place": erratum.place,
        "printed_claim": erratum.printed,
        "corrected_claim": erratum.corrected,
        "case": erratum.case,
        **each.numbers._asdict(),
        "relation": erratum.relation,
        "shows": each.shows,
        "command": erratum.command,
        "python": erratum.line,
    }


def as_text(rows: Iterable[Found]) -> str:
    """Return a paragraph for each, and a line that says how many show."""
    all_of = list(rows)
    shown = sum(each.shows for each in all_of)
    return "\n".join([*map(_paragraph, all_of), f"{shown} of {len(all_of)} corrections show.\n"])


def _paragraph(each: Found) -> str:
    erratum = each.erratum
    told = [
        ("printed", erratum.printed), ("corrected", erratum.corrected), ("case", erratum.case),
        ("numbers", _numbers(each)),
    ]  # fmt: skip
    lines = [f"{erratum.paper}, {erratum.place}", *(f"  {name:<11}{text}" for name, text in told)]
    shown = (
        f"  shown by   {erratum.command}\n             {erratum.line}\n"  # whole, so that they can be copied
    )
    return terminal.fitted("\n".join(lines)) + "\n" + shown


def _numbers(each: Found) -> str:
    printed, exact, corrected = each.numbers
    parts = [f"printed {number(printed)}", f"exact {number(exact)}"]
    parts += [] if corrected is None else [f"corrected {number(corrected)}"]
    stands = STANDS[each.erratum.relation] if each.shows else "no longer shown"
    return f"{', '.join(parts)}: {stands}"


def number(value: float | None) -> str:
    """Return five significant digits; not-a-number is the 0/0 that it comes from."""
    if value is None:
        return ""
    return "0/0" if math.isnan(value) else "infinite" if math.isinf(value) else f"{value:.5g}"


def page(rows: Iterable[Found]) -> str:
    """Return docs/errata.md."""
    all_of = list(rows)
    lines = [HEAD, "| paper | place | printed | exact | corrected | |", "|---|---|---|---|---|---|"]
    for each in all_of:
        figures = " | ".join(number(value) for value in each.numbers)
        stands = STANDS[each.erratum.relation] if each.shows else "**no longer shown**"
        lines.append(
            f"| {each.erratum.paper} | [{_plain(each.erratum.place)}](#{each.erratum.id}) | {figures} | {stands} |"
        )
    return "\n".join([*lines, "", *map(_section, all_of)])


def _section(each: Found) -> str:
    erratum = each.erratum
    return (
        f'<a id="{erratum.id}"></a>\n## {erratum.paper}: {_plain(erratum.place)}\n\n'
        f"*Printed:* {_plain(erratum.printed)}.\n\n*Corrected:* {_plain(erratum.corrected)}.\n\n"
        f"*Case:* {_plain(erratum.case)}.\n\n*Numbers:* {_numbers(each)}.\n\n"
        f"`{erratum.command}`, or in Python `{erratum.line}`.\n"
    )


def _plain(text: str) -> str:
    """Return text that Markdown leaves as it is."""
    for letter in "*_|[]<>":
        text = text.replace(letter, f"\\{letter}")
    return text

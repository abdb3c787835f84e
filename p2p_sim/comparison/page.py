"""A comparison as one HTML page: the recommendation, the table, a picture of utility over ε, and what it stands on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison import text
from p2p_sim.comparison.recommendation import shown
from p2p_sim.comparison.table import BASIS, DOMINATED, FITS, FRONT
from p2p_sim.report import page_layout
from p2p_sim.report.figure_text import cell
from p2p_sim.report.page_layout import Block, Paragraph, Picture, Section, Table
from p2p_sim.result_picture import Bar, bars

if TYPE_CHECKING:
    from p2p_sim.comparison.result import Comparison
    from p2p_sim.report.plots import Plot

_FIT = (FRONT, DOMINATED, FITS)
_MARKS = "osD^vP*X"
_LINES = ("-", "--", ":")
_LEFT = "text-align: left; vertical-align: top"


def html(found: Comparison) -> str:
    """Return the whole page."""
    sections = [
        Section("Protocols that fit", _fitting(found)),
        Section("Utility over ε", _picture(found)),
        Section("Who has to be trusted", [_trust(found)]),
        Section("What each view learns", [_views(found)]),
        Section("What attackers guess", _attacks(found)),
        Section("What it costs", _costs(found)),
        Section("Protocols that were left out", _left_out(found)),
        Section("What the figures stand on", [_basis(found)]),
    ]
    return page_layout.html(f"Collecting labels: {found.question.name}", _opening(found), sections)


def fragment(found: Comparison) -> str:
    """Return the recommendation, the table of what fits, and a picture of its utility, for a notebook."""
    first, *others = (escape(line.strip()) for line in text.advice(found))
    advice = f"<p><strong>{first}</strong></p><ul>{''.join(f'<li>{line}</li>' for line in others)}</ul>"
    columns = text.columns(found)
    rows = text.cells(columns, [row for row in _rows(found) if row["status"] in _FIT])
    head = "".join(
        f'<th style="{_LEFT}" title="{escape(each.meaning)}">{escape(each.head)}</th>' for each in columns
    )
    body = "".join(
        "<tr>" + "".join(f'<td style="{_LEFT}">{escape(cell(value))}</td>' for value in row) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{advice}{table}{_bars(found)}</div>"


def _bars(found: Comparison) -> str:
    """Return a bar for the utility of each protocol that fits, and outlines for true labels and for guessing."""
    trained = [row for row in _rows(found) if row["status"] in _FIT and row.get("utility") is not None]
    if not trained:
        return ""
    metric = str(trained[0]["metric"])
    rows = [Bar(row["protocol"], max(row["utility"], 0.0), text.utility(row)) for row in trained]
    for key, name in (("utility[true]", "true labels"), ("utility[constant]", "guessing")):
        known = trained[0].get(key)
        if known is not None:
            rows.append(Bar(name, max(known, 0.0), shown(known, None, metric), marked=True))
    return bars(f"utility, {text.METRICS[metric].rstrip(',')}", rows)


def _opening(found: Comparison) -> list[Block]:
    chosen, promises = found.recommendation, found.question.promises
    asked = f"Asked for: ε of {promises.text()}; {found.users:,} users, {len(found.question.seeds)} seeds."
    blocks: list[Block] = [Paragraph(asked)]
    if chosen.protocol is None:
        blocks += [Paragraph(f"Nothing is recommended: {each}.", warning=True) for each in chosen.reasons]
        blocks += [Paragraph(f"{each[0].upper()}{each[1:]}.") for each in text.ways_out(found)]
    else:
        stable = f"{chosen.agreeing} of {chosen.seeds} seeds, each by itself, recommend the same"
        blocks.append(Paragraph(text.taken(found)))
        reasons = [["because", each] for each in chosen.reasons]
        reasons += [["stable", stable]] if chosen.seeds > 1 else []
        reasons += [["or", chosen.alternative]] if chosen.alternative else []
        blocks.append(Table(["", "reasons"], reasons))
    if chosen.doubts:
        blocks.append(
            Table(["", "doubts"], [[str(number), each] for number, each in enumerate(chosen.doubts, 1)])
        )
    return blocks


def _fitting(found: Comparison) -> list[Block]:
    fit = [row for row in _rows(found) if row["status"] in _FIT]
    if not fit:
        return [Paragraph("None.")]
    return [
        _table(text.columns(found), fit),
        *(Paragraph(f"{sentence}.") for sentence in text.foot(found, fit)),
    ]


def _table(columns: Sequence[text.Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        [each.head for each in columns],
        text.cells(columns, rows),
        meanings=[each.meaning for each in columns],
    )


def _attacks(found: Comparison) -> list[Block]:
    """Return who the best attackers are."""
    rows = [row for row in _rows(found) if row["status"] in _FIT]
    every = [
        text.Column("protocol", "its name", lambda row: row["protocol"]),
        text.Column("attacker", "the best one, and the basis of her figure", text.attacker),
        text.Column("advantage", "in points, over the baseline", text.attack),
        text.Column("interval of", "what it knows of", lambda row: row.get("advantage_of") or "-"),
        text.Column("seeds", "whose runs were attacked", lambda row: row.get("attack_seeds")),
        text.Column("baseline", "labels guessed right without messages", text.baseline),
        text.Column("P(label | features) from", "what attacker and baseline guess by", _eta),
    ]
    return [_table(every, rows)] if rows else [Paragraph("None.")]


def _eta(row: Mapping[str, Any]) -> str:
    return str(row.get("attack_eta") or row.get("attack_why") or "-")


def _costs(found: Comparison) -> list[Block]:
    rows = [row for row in _rows(found) if row["status"] in _FIT]
    every = [
        text.Column("protocol", "its name", lambda row: row["protocol"]),
        text.Column("messages", "that a user sends and receives", lambda row: row.get("messages[a user]")),
        text.Column("bytes", "that a user sends and receives", lambda row: row.get("bytes[a user]")),
        text.Column("seconds, network", "simulated", lambda row: row.get("seconds[network]")),
        text.Column("seconds, with computing", "as measured here", lambda row: row.get("seconds")),
    ]
    return [_table(every, rows)] if rows else [Paragraph("None.")]


def _views(found: Comparison) -> Table:
    rows = [
        [row["protocol"], key, text.epsilon(row, key), row[f"basis[{key}]"]]
        for row in _rows(found) if row["status"] in _FIT
        for key in found.views if row.get(f"basis[{key}]") is not None
    ]  # fmt: skip
    return Table(["protocol", "view", "ε (nats)", "basis"], rows)


def _picture(found: Comparison) -> list[Block]:
    if not found.points:
        return [Paragraph("There is no picture: no run was trained on.")]
    drawn = plot(found.points, found.question.promises.target.view.key)
    caption = (
        "Utility over what the target's view learns, with 95 % intervals over seeds; constraints hold at the target "
        "alone, not at the other points."
    )
    return [Picture(drawn, caption), Table(drawn.columns, drawn.rows, "What the picture shows")]


def plot(points: Sequence[Mapping[str, Any]], view: str) -> Plot:
    """Return the picture: utility over epsilon, a line for each protocol."""
    from p2p_sim.report.curves import COLOURS
    from p2p_sim.report.plots import Plot, legend, panels, style

    axis = text.METRICS[str(points[0]["metric"])].partition(",")[0]
    series = list(dict.fromkeys(str(point["protocol"]) for point in points))
    with style():
        figure, grid = panels(1, 1, 4.6)
        axes = grid.ravel()[0]
        for place, name in enumerate(series):
            own = sorted(_finite(points, name), key=lambda point: float(point["epsilon_nats"]))
            if own:
                axes.errorbar(
                    [point["epsilon_nats"] for point in own], [point["utility"] for point in own],
                    yerr=[point["utility_error"] or 0.0 for point in own], capsize=3, lw=1.2, ms=4,
                    color=COLOURS[place % len(COLOURS)], marker=_MARKS[place % len(_MARKS)],
                    linestyle=_LINES[place // len(COLOURS) % len(_LINES)], label=name,
                )  # fmt: skip
        for key, label in (("utility[true]", "true labels"), ("utility[constant]", "guessing")):
            known = [point[key] for point in points if point[key] is not None]
            if known:
                axes.axhline(sum(known) / len(known), color="#666666", ls=(0, (1, 2)), lw=1, label=label)
        axes.set(
            xlabel=f"ε of {view} (nats)", ylabel=f"{axis} (test rows)", xscale="log", ylim=_height(points)
        )
        axes.set_xticks(*_ticks(points))
        axes.minorticks_off()
        axes.grid(True, alpha=0.3)
        legend(figure, axes.get_legend_handles_labels()[0])
    columns = ["protocol", f"ε of {view} (nats)", "basis", "utility", "± (95 %)", "seeds"]
    rows = [
        [point[key] for key in ("protocol", "epsilon_nats", "basis", "utility", "utility_error", "seeds")]
        for name in series
        for point in sorted(points, key=lambda point: float(point["epsilon_nats"]))
        if point["protocol"] == name
    ]
    return Plot("utility", figure, f"{axis} over the ε of {view}, a line for each protocol", columns, rows)


def _height(points: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the ends of the axis of utility: error bars of two seeds may go far beyond."""
    names = ("utility", "utility[true]", "utility[constant]")
    known = [point[name] for point in points for name in names if point[name] is not None]
    low, high = min(known), max(known)
    room = max(0.01, 0.1 * (high - low))
    return low - room, high + room


def _ticks(points: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[str]]:
    """Return where the axis of ε has marks: at what protocols were calibrated to."""
    known = [
        float(f"{point['epsilon_nats']:.3g}") for point in points if math.isfinite(point["epsilon_nats"])
    ]
    often = sorted(
        value for value in set(known) if value > 0 and known.count(value) * 4 >= max(map(known.count, known))
    )
    return often, [f"{value:g}" for value in often]


def _finite(points: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [
        point for point in points
        if point["protocol"] == name and math.isfinite(point["epsilon_nats"]) and point["epsilon_nats"] > 0
    ]  # fmt: skip


def _trust(found: Comparison) -> Table:
    rows = [
        [row["protocol"], row.get("trust") or "its docstring does not say"]
        for row in _rows(found)
        if row["status"] in _FIT
    ]
    return Table(["protocol", "trust needed"], rows)


def _left_out(found: Comparison) -> list[Block]:
    rows = [[", ".join(names), status, why] for names, status, why in text.left_out(_rows(found))]
    return [Table(["protocols", "", "why"], rows)] if rows else [Paragraph("None.")]


def _basis(found: Comparison) -> Table:
    return Table(
        ["column", "basis"], [[name, basis] for name, basis in BASIS.items()], f"Figures are in {found.path}"
    )


def _rows(found: Comparison) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        found.table.astype(object).where(found.table.notna(), None).to_dict("records")
    )
    return rows

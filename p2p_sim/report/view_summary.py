"""What one view of a run learns, in a few rows: the exact figure, theorems, audits, or why there is no figure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.observed_view import coalition_of
from p2p_sim.render.known_run import ViewFunctions
from p2p_sim.report import attack_table, audit_table, per_user_certainty, privacy_table
from p2p_sim.report.delta import DELTA
from p2p_sim.report.figure_text import bound_text, bracket_text, number_text
from p2p_sim.report.kept_file import ATTACKS, AUDITS
from p2p_sim.rundir.run_json import on_command_line
from p2p_sim.rundir.run_record import RunRecord

ONE_USER = re.compile(r"user:[0-9]+")

MEANINGS = {
    "exact": "what it learns in the worst case, no more and no less",
    "upper": "proven: at most this",
    "lower": "the worst case looked at: at least this, perhaps more",
    "claimed": "a theorem as printed, not checked here",
    "measured": "at least this, by attacks on the program, or on this run's labels, with a confidence",
    "refused": "no figure where it would be a guess",
}
"""The meaning of each basis of a figure."""

SURE = ("prior", "posterior")
"""Of whom an attacker is how sure: before the messages, and with them."""

_MAX_EPSILON = 20
"""Odds are given up to this epsilon; beyond it they say nothing more."""


def view_privacy(
    run: RunRecord, view: str, channels: str = "plain", delta: float | None = None
) -> dict[str, Any]:
    """Return rows of basis, text and source for a view such as "learner+user:17", within about two seconds.

    ``delta``: in [0, 1); None: that of the run's own table.  Also returns the meanings of the bases and a note.
    What users learn does not depend on which users they are.  The last rows are the saved audit of the view and attacks
    on labels, if there are some.  Raises InputError for an unknown view; and, unless there are such rows, for a run
    saved without its population or a protocol that is not shipped.
    """
    attacks = _attacks(run, view, channels)
    try:
        rows = _known(run, view, channels, delta)
    except InputError as error:
        if not attacks:
            raise
        return _summary(view, attacks, str(error))
    wire = f", {channels} channels" if "wire" in view else ""
    return _summary(view, rows + attacks, f"Of the whole run: one label, replaced; ε in nats{wire}.")


def _summary(view: str, rows: list[dict[str, Any]], note: str) -> dict[str, Any]:
    here = {row["basis"] for row in rows}
    bases = {basis: meaning for basis, meaning in MEANINGS.items() if basis in here}
    return {"view": view, "rows": rows, "bases": bases, "note": note}


def _known(run: RunRecord, view: str, channels: str, delta: float | None) -> list[dict[str, Any]]:
    """Return the rows that need no audit; the first one may have the odds."""
    if run.population is None:
        raise InputError(
            "this run was saved without its population: what a view learns depends on the clusters"
        )
    if run.source is None:
        raise InputError(
            f"{run.protocol} is not a shipped protocol: what its views learn is not known here; "
            f"p2p-sim audit {run.protocol} --run RUN measures it{on_command_line(run)}"
        )
    at = _delta_of(run) if delta is None else delta
    only = (_unnamed(view),)
    table = privacy_table.quick_table(run.source, run.population, run.faults, only, channels, at)
    row = table["views"][0]
    found = [_promised(theorem) for theorem in row["theorems"]]
    if row["refused"]:
        late = row["refused"].partition("not computed here: ")[2]
        late = late.replace("p2p-sim account", f"p2p-sim account --view '{_unnamed(view)}'")
        found.insert(0, _row("not computed here", late) if late else _row("refused", row["refused"]))
    if row["exact"] is not None:
        exact = row["exact"]
        text = f"{_epsilon(exact['basis'], bracket_text(exact))} at δ = {number_text(table['delta'])}"
        main = _row(exact["basis"], text, "; ".join([exact["source"], *exact["assumes"]]))
        found.insert(0, main | {"odds": _odds(exact)})
    return found


def _delta_of(run: RunRecord) -> float:
    kept = run.notes.get("privacy")
    return float(kept["delta"]) if isinstance(kept, dict) and "delta" in kept else DELTA


def _odds(exact: Mapping[str, Any]) -> str:
    """Return what an epsilon means in odds, rounded up; empty if it is no upper bound, or too large."""
    if exact["basis"] not in ("exact", "upper") or not 0 < exact["epsilon"] <= _MAX_EPSILON:
        return ""
    odds = math.ceil(100 * math.exp(exact["epsilon"]) - 1e-6) / 100  # 9, where a certified end is 9.000000001
    shown = f"{odds:g}" if odds < 100 else f"{math.ceil(odds):,}"
    return (
        f"Whoever held two labels for equally likely ends up at odds of at most {shown} to 1, "
        "except for a small chance that a small δ leaves."
    )


def _attacks(run: RunRecord, view: str, channels: str) -> list[dict[str, Any]]:
    """Return the rows of saved audits of a view, and of attacks; a row says so if their file cannot be read."""
    folder = getattr(run, "folder", None)  # a run that is in memory alone has none
    if folder is None:
        return []
    found = []
    for file, row_of in ((AUDITS, _measured), (ATTACKS, _guessed)):
        try:
            found += [row_of(row) for row in file.read(folder, run) if _same(row, view, channels)]
        except InputError as error:
            found.append(_row("not shown", str(error)))
    return found


def _same(row: Mapping[str, Any], view: str, channels: str) -> bool:
    parts = [sorted(_unnamed(name).split("+")) for name in (row["name"], view)]
    return parts[0] == parts[1] and ("wire" not in view or row["channels"] == channels)


def _measured(row: Mapping[str, Any]) -> dict[str, str]:
    text = (
        f"{audit_table.bound(row)}, confidence {audit_table.confidence(row)}: {audit_table.verdict_of(row)}"
    )
    attack, advantage = audit_table.attack(row)[0], row["true_positive"] - row["false_positive"]
    size = row["cluster_size"]
    worlds = f"{row['trials']:,} worlds a label, of {size:,} user{'s' if size > 1 else ''}"
    source = f"Attack by {attack}, advantage {number_text(advantage)}; {audit_table.requirement(row)}"
    return _row("measured", text, f"{source}; {worlds}; p2p-sim audit, {row['when']}")


def _guessed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an attack on labels: its sentences, and of how many users the attacker is how sure."""
    one = attack_table.best(row)
    by = (
        ""
        if one is None
        else f"Attack by {one['name']}, advantage {attack_table.interval(one['advantage'])}; "
    )
    who = f"{row['view']}; " if "deviating" in row["view"] else ""
    shown = _row(
        "measured" if one is not None else "refused",
        " ".join([*row["sentences"], *row["above"]]),
        f"{who}{by}{row['eta_from']}; p2p-sim attack, {row['when']}",
    )
    counts = row["per_user"]
    return (
        shown
        if counts is None
        else shown | {"sure": {name: per_user_certainty.at_least(counts[name]) for name in SURE}}
    )


def _unnamed(view: str) -> str:
    """Return a view with its users counted instead of named."""
    parts = ["user" if part == "1*user" else part for part in view.split("+")]
    named = [part for part in parts if ONE_USER.fullmatch(part)]
    if len(named) < 2:
        return "+".join("user" if part in named else part for part in parts)
    return "+".join([part for part in parts if part not in named] + [f"{len(named)}*user"])


def _promised(theorem: Mapping[str, Any]) -> dict[str, str]:
    if not theorem["holds"]:
        why = theorem["why"] or "epsilon is infinite"
        return _row("does not apply", f"{theorem['name']}: {why}", theorem["source"])
    text = _epsilon(theorem["basis"], bound_text(theorem["epsilon"], theorem["basis"]))
    return _row(theorem["basis"], f"{text} ({theorem['name']})", theorem["source"])


def _epsilon(basis: str, figure: str) -> str:
    sign = "from" if " to " in figure else {"upper": "≤", "lower": "≥"}.get(basis, "=")
    return f"ε {sign} {figure}"


def _row(basis: str, text: str, source: str = "") -> dict[str, str]:
    return {"basis": basis, "text": text, "source": source}


def view_functions(delta: float | None) -> ViewFunctions:
    """Return who looks at a run and what they learn, at ``delta``; None: at that of the run's own table."""
    return ViewFunctions(coalition_of, functools.partial(view_privacy, delta=delta))


VIEW_FUNCTIONS = view_functions(None)
"""The functions with which the web page resolves and describes views."""

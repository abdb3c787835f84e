"""What one view of a run learns, in a few lines: exact, promised, or why not."""

from __future__ import annotations

import re
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.privacy import promises
from p2p_sim.report import account
from p2p_sim.report.figures import bracket_text, number_text
from p2p_sim.report.question import Question


def learnt(run: Any, view: str) -> dict[str, Any]:
    """Return rows of basis, text and source for a view such as "learner+user:17", within two seconds or so.

    δ = min(1e-6, 1 / users^2), plain channels.  What a user learns does not depend on which one she is.
    Raises InputError for an unknown view and for a run without its population.
    """
    if run.population is None:
        raise InputError(
            "this run was saved without its population: what a view learns depends on the clusters"
        )
    delta = min(account.DELTA, 1 / run.population.users**2)
    name = re.sub(r"user:[0-9]+", "user", view)
    asked = Question(
        run.source, delta, population=run.population, quick=True, only=(name,), faults=run.faults
    )
    row = account.table_of(asked, promises.of, promises.local_epsilon(run.source))["views"][0]
    found = []
    if row["exact"] is not None:
        exact = row["exact"]
        found.append(_row(exact["basis"], f"ε = {bracket_text(exact)} at δ = {delta:.2g}", exact["source"]))
    if row["refused"]:
        found.append(_row("refused", row["refused"], ""))
    for theorem in row["theorems"]:
        told = f"{theorem['name']}: ε = {number_text(theorem['epsilon'])}"
        basis = theorem["basis"] if theorem["holds"] else "says nothing"
        found.append(
            _row(
                basis, told if theorem["holds"] else f"{theorem['name']}: {theorem['why']}", theorem["source"]
            )
        )
    note = "One label, replaced; ε in nats."
    return {"rows": found, "note": note}


def _row(basis: str, text: str, source: str) -> dict[str, str]:
    return {"basis": basis, "text": text, "source": source}

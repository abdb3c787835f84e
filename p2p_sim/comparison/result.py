"""``Comparison``: the table of all protocols, what is recommended, and how both are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.comparison.question import Question
from p2p_sim.comparison.recommendation import Recommendation
from p2p_sim.comparison.table import BASIS, FRONT
from p2p_sim.report import output_files, terminal


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a comparison found.

    ``table``: a pandas frame with a row for each protocol, the front first; docs/compare.md has its columns.
    ``recommendation``: what to take, why, and the doubts.  ``views``: the views in the table, those of the promises
    first.  ``points``: utility over epsilon, of the picture.  ``users``: how many there are; ``path``: the folder.
    """

    question: Question
    users: int
    path: Path
    table: Any
    recommendation: Recommendation
    views: Sequence[str]
    points: Sequence[dict[str, Any]]

    @property
    def front(self) -> Any:
        """The rows that no other dominates, a pandas frame."""
        return self.table[self.table["status"] == FRONT].reset_index(drop=True)

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return {
            "question": self.question.document(), "users": self.users, "path": str(self.path), "rows": rows,
            "recommendation": self.recommendation.document(), "basis": BASIS, "points": list(self.points),
        }  # fmt: skip

    def as_json(self) -> str:
        """Return it as JSON: infinity as "inf"."""
        return terminal.as_json(self.document())

    def html(self) -> str:
        """Return the report, one page that stands by itself."""
        from p2p_sim.comparison import page

        return page.html(self)

    def to_html(self, path: str | Path) -> None:
        """Write the report; raises InputError if it cannot be written."""
        output_files.write(Path(path), self.html())

    def __repr__(self) -> str:
        taken = self.recommendation.protocol
        return f"<Comparison of {len(self.table)} protocols: {'nothing fits' if taken is None else taken}>"

    def __str__(self) -> str:
        from p2p_sim.comparison import text

        return text.as_text(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the recommendation and the table."""
        from p2p_sim.comparison import page

        return page.fragment(self)

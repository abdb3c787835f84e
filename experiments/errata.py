"""What is wrong, misprinted or loose in the papers, each with its printed, its exact and its corrected number.

The rows are those of ``p2p-sim errata``, which explains each of them; so does docs/errata.md.  The verdict is "not
reproduced" where an exact number contradicts a statement, and "reproduced in shape" where all hold but some are loose.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments import _plots
from experiments._common import OWN, Claim, Experiment, Options, Outcome, main
from p2p_sim.report import errata_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2p_sim.report.errata_table import Found

STANDS = ("exceeded", "undercut", "unequal", "loose", "code")
WRONG = STANDS[:3]


def run(_options: Options) -> Outcome:
    """Compute all of them; the options change nothing."""
    found = errata_table.found()
    papers = list(dict.fromkeys(each.erratum.paper for each in found))
    return Outcome({"": [_row(each) for each in found]}, [_claim(found)], {"": lambda: _plot(papers, found)})


def _row(each: Found) -> dict[str, Any]:
    said = errata_table.document(each)
    return {
        name: said[name]
        for name in ("id", "paper", "place", "relation", "printed", "exact", "corrected", "shows")
    }


def _claim(found: Sequence[Found]) -> Claim:
    wrong = Counter(each.erratum.paper for each in found if each.shows and each.erratum.relation in WRONG)
    loose, code = (
        sum(each.shows and each.erratum.relation == how for each in found) for how in ("loose", "code")
    )
    each_paper = ", ".join(f"{paper} {count}" for paper, count in wrong.items())
    return Claim(
        f"{OWN}: the errata of all papers",
        "the statements, constants and steps of proofs that p2p-sim errata lists hold as they are printed",
        f"of {len(found)} an exact number contradicts {wrong.total()} ({each_paper}); {loose} hold and are loose; of "
        f"{code} the paper's own code has something else",
        "not reproduced" if wrong else "reproduced in shape" if loose or code else "reproduced",
        "each is a number that p2p-sim errata computes, with the corrected statement beside it",
    )


def _plot(papers: Sequence[str], found: Sequence[Found]) -> Figure:
    figure, grid = _plots.panels(1, 1, (7.0, 3.0))
    axes = grid[0, 0]
    left = [0] * len(papers)
    for relation, colour in zip(STANDS, _plots.COLOURS, strict=False):
        counts = [
            sum(
                each.shows and (each.erratum.paper, each.erratum.relation) == (paper, relation)
                for each in found
            )
            for paper in papers
        ]
        axes.barh(papers, counts, left=left, color=colour, label=errata_table.STANDS[relation])
        left = [one + other for one, other in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("corrections that a number shows")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return figure


EXPERIMENT = Experiment(
    "errata", "Errata of the papers", "All papers", "2 seconds", run,
    keys=("id",), values={"printed": 1e-6, "exact": 1e-6, "corrected": 1e-6}, seeded=False,
    in_one="it takes seconds",
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

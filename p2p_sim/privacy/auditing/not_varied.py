"""What an audit did not vary, in sentences: of this its bound says nothing."""

from __future__ import annotations

from p2p_sim.privacy.auditing.pairs import Pairs


def sentences(
    pairs: Pairs, size: int, honest: int, composition: int, how: str, *, graph: bool, run: str, alone: str
) -> tuple[str, ...]:
    """Return what stood still while one label of the victim was replaced; nothing where there was no choice.

    ``honest``: other users who do not look.  ``composition``: how many of them have the second label, and ``how``
    this was chosen.  ``graph``: whether one joins the users.  ``run``: whose worlds they are, empty for none.
    ``alone``: "exact statistic" or "own attack" where it looked and no classifier beside it, else empty.
    """
    found = []
    if len(pairs.looked_at) < pairs.of:
        named = ", ".join(f"{first} and {second}" for first, second in pairs.looked_at)
        chosen = (
            f"chosen by a pilot of all, {pairs.pilot:,} worlds a label" if pairs.pilot else "as was asked"
        )
        found.append(
            f"pairs of labels: {len(pairs.looked_at)} of {pairs.of} were measured ({named}; {chosen})"
        )
    if alone == "own attack":
        found.append("what the own attack does not look at: no classifier looked beside it")
    elif alone:
        found.append(
            "what the law does not speak of: the exact statistic looked alone, as was asked, or since there were too "
            "few trials for a classifier beside it"
        )
    if honest:
        found.append(
            f"labels of the others: {composition} of {honest} honest others had the second label of the pair, the rest "
            f"the first ({how})"
        )
    if graph:
        found.append("the victim's place in the graph: she was user 0, and the colluders those next to her")
    if run:
        found.append(f"the victim and her cluster, of those of the run: {run}")
    elif size > 1:
        found.append(f"the size of the victim's cluster: {size:,} users")
    return tuple(found)

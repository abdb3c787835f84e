"""Comparisons: every protocol that can collect some labels, calibrated to one promise, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.progress import Asked, reporter_of, showing, silent

if TYPE_CHECKING:
    from p2p_sim.comparison.result import Comparison


@showing
def compare(
    data: str | Path | None = None,
    *,
    target: str | Mapping[str, Any],
    constraints: Sequence[str] | Mapping[str, float] = (),
    protocols: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 5,
    range: Sequence[float] | None = None,
    budget: str | float | None = None,
    out: str | Path | None = None,
    picture: bool | None = None,
    workers: int | None = None,
    address: str | None = None,
    progress: Asked = None,
    **settings: Any,
) -> Comparison:
    """Compare all protocols that can collect some labels, each calibrated to one promise, and recommend one.

    ``data``: a named data set or a file; or ``users=``, a number of synthetic ones.  ``settings``: label, positive,
    classes, cluster_column, clusters, test, model and how a file is read; of synthetic users cluster_size, share,
    shares, features; as in a sweep.  ``target``: what one view may learn, "view=learner,epsilon=1,delta=1e-6", or a
    mapping, epsilon in nats.  ``constraints``: what others may learn, ["user<=2", "coalition(3)<=4"], at the same
    delta.  ``protocols``: names, or "module:Class"; None: all that are known.  ``seeds``: how many, or which.
    ``range``: of labels that are numbers, the public least and greatest one.
    ``budget``: seconds, or text such as "10m"; what there is no time for is left out by name.  ``out``: the folder;
    where it has some of the comparison already, that is not made again; None: ``comparisons/NAME-...``.  ``picture``:
    whether protocols run at other epsilons too, for the report; None: if ``out`` is given.  ``workers``, ``address``,
    ``progress``: as in ``p2p_sim.sweep``.

    Raises InputError for what cannot be read, contradictory constraints, views and protocols that are not known, and a
    folder of another comparison.  A protocol that fails is a row that says so.

    *Source:* ``privacy.calibrate``, ``p2p_sim.sweep`` and ``leakage.attack``; docs/compare.md.
    """
    from p2p_sim.comparison import comparing, promises, question

    tell = reporter_of(progress) or silent
    given = settings if data is None else {"data": data, **settings}
    asked = question.Question(
        question.check_people(given),
        question.range_of(range),
        promises.read(target, constraints),
        None if protocols is None else tuple(protocols),
        question.seeds_of(seeds),
        out is not None if picture is None else bool(picture),
    )
    return comparing.made(
        asked,
        out=out,
        workers=workers,
        address=address,
        budget=question.seconds_of(budget),
        tell=tell,
    )

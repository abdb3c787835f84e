"""The privacy table: for each view what it learns and what theorems promise; as JSON values and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy import accountant
from p2p_sim.privacy.accountant import crowds
from p2p_sim.privacy.composition.compose import check_times, repeated
from p2p_sim.privacy.composition.grouped import check_group
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.table_rows import ALL_DEVIATING, TableRow, named_rows, rows
from p2p_sim.privacy.theorems import Promise
from p2p_sim.report import terminal
from p2p_sim.report.delta import DELTA, delta_warning
from p2p_sim.report.figure_text import bound_text, bracket_text, figure, number_text

REAL = "population"
"""The name of the composition that a population's own labels have."""


@dataclass(frozen=True)
class AccountRequest:
    """What to account for.  At most one of ``cluster_size`` and ``population``.

    ``quick``: leave out what takes seconds, as its size says, never a clock.  ``only``: names of views, all rows if
    empty.  ``composition``, ``faults``: see ``privacy.profile``.
    ``times``: what so many runs show together, on the same labels and clusters with fresh coins.  ``group``: how many
    labels change together.
    Raises InputError for an impossible composition, and for named views that the clusters or the composition rule out.
    """

    protocol: Protocol
    delta: float
    cluster_size: int | None = None
    population: Population | None = None
    channels: str = "plain"
    quick: bool = False
    only: tuple[str, ...] = ()
    composition: str | int = "worst"
    faults: Faults | None = None
    times: int = 1
    group: int = 1

    def __post_init__(self) -> None:
        check_times(self.times)
        check_group(self.group)
        people = crowds(self.protocol, self.population)
        if people is not None and people.divided and self.protocol.graph_over() == "everybody":
            people = people.in_one_cluster()  # walks do not mind clusters
        object.__setattr__(self, "population", people)
        if self.composition == REAL and self.population is None:
            raise InputError(f"composition = {REAL!r}: needs users with labels; give --data or --users")
        if self.group > 1 and self.composition != "worst":
            raise InputError(
                f"composition = {self.composition!r}: the labels of a group change it, so with group = {self.group} "
                "give 'worst'"
            )
        if isinstance(self.composition, int) and self.population is not None:
            raise InputError(f"composition = {self.composition}: of one cluster; give --cluster-size alone")
        why = {view.name: self.why_impossible(view) for view in self.views()}
        for name, reason in why.items():
            if reason and (self.only or all(why.values())):
                raise InputError(f"view = {name!r}: {reason}")

    @property
    def on_graph(self) -> bool:
        """Whether the laws depend on the graph of the users, not only on a cluster size."""
        return self.population is not None and self.protocol.graph_over() is not None

    def views(self) -> list[TableRow]:
        """Return the rows; raises InputError for a view with parts that the protocol does not have."""
        return named_rows(self.protocol, self.only) if self.only else rows(self.protocol)

    def sizes(self) -> list[int]:
        """Return the distinct cluster sizes, ascending."""
        if self.population is not None:
            return [int(size) for size in np.unique(self.population.sizes)]
        return [] if self.cluster_size is None else [int(self.cluster_size)]

    def why_impossible(self, view: TableRow) -> str:
        """Return why this view is impossible here; empty if it is possible."""
        sizes = self.sizes()
        if sizes and view.colluders >= sizes[-1]:
            return f"the largest cluster has {sizes[-1]} users: at most {sizes[-1] - 1} beside the victim"
        if self.composition == REAL and view.colluders:
            return f"composition = {REAL!r} is for views without users, who know their own labels"
        honest = sizes[-1] - 1 - view.colluders if sizes else 0
        if self.cluster_size is not None and self.group > honest + 1:
            return f"group = {self.group}: a cluster of {sizes[-1]} has {honest + 1} users outside the view"
        if sizes and isinstance(self.composition, int) and self.composition > honest:
            return f"composition = {self.composition}: there are {honest} other honest users"
        return ""

    def profile(self, view: TableRow, size: int | None = None) -> PrivacyProfile:
        """Return a view's profile for a cluster size, by default for the whole request."""
        size = None if self.on_graph or self.group > 1 else size  # a group may be of several clusters
        where: dict[str, Any] = {"cluster_size": self.cluster_size if size is None else size}
        if self.population is not None and size is None:
            where = {"population": self.population}
        who = view.coalition if size is None else view.coalition.at_most(size - 1)
        name = view.name if who == view.coalition or not str(who) else str(who)
        one = privacy.profile(
            self.protocol,
            name,
            composition=self.composition,
            channels=self.channels,
            users=view.users,
            faults=self.faults,
            group=self.group,
            **where,
        )
        return repeated(one, self.times)


SLOW_SIZES, SLOW_USERS = 12, 10_000_000
QUICK_SIZES, QUICK_USERS, QUICK_FAULTY, QUICK_GRAPH = 64, 20_000, 500, 1000
Progress = Callable[[str, int, int], None]
Promises = Callable[[Any, str, Sequence[int], float, bool], list[Promise]]


def table_of(
    request: AccountRequest, promises: Promises, local: float | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Return the table as a document; every figure has its basis.

    ``local``: epsilon of the local randomizer, None if unknown.  ``progress``: called for each view.  Raises
    InputError.
    """
    sizes = request.sizes()
    views, rows = request.views(), []
    for i, view in enumerate(views):
        if progress is not None:
            progress(f"accounting for {view.title}, view", i + 1, len(views))
        rows.append(_row(request, view, sizes, promises))
    return {
        "delta": float(request.delta),
        "channels": request.channels,
        "composition": request.composition,
        "faults": [] if request.faults is None else request.faults.texts(),
        "clusters": _clusters(request),
        "local_epsilon": None if local is None else local * request.times * request.group,  # budgets add up
        "neighbours": f"{_labels(request.group)}, replaced; epsilon in nats",
        "views": rows,
        "hidden": hidden(request),
    } | {  # a run's own table is of one
        name: many for name, many in (("times", request.times), ("group", request.group)) if many > 1
    }


def _labels(group: int) -> str:
    return "one label" if group == 1 else f"up to {group} labels together"


def hidden(request: AccountRequest) -> str:
    """Return a warning if delta is too large for the largest cluster, otherwise an empty text."""
    sizes = request.sizes()
    return "" if not sizes else delta_warning(request.delta, sizes[-1])


def _row(request: AccountRequest, view: TableRow, sizes: list[int], promises: Promises) -> dict[str, Any]:
    row: dict[str, Any] = {
        "view": view.title, "name": view.name, "users": view.users, "exact": None, "by_cluster": None,
        "theorems": [], "refused": "",
    }  # fmt: skip
    row["refused"] = request.why_impossible(view) or _long(request, view)
    if row["refused"]:
        return row
    profile = request.profile(view, _shown(request, sizes[-1:]))
    if profile.law is None:
        row["refused"] = profile.why
        return row
    reads = profile.law.pure() > 0
    if view.users == ALL_DEVIATING:
        row["theorems"] = []  # no theorem speaks of servers who deviate
    elif request.faults is None and request.times == request.group == 1:  # nor of faults, runs, groups
        row["theorems"] = promises(request.protocol, view.name, sizes, request.delta, reads)
    elif request.faults is not None and request.quick and not profile.law.closed:
        row["refused"] = "not computed here: see p2p-sim account, with the same --fault"
        return row
    late = _late(request, view, sizes) or _searched(request, profile.law, sizes)
    if late:
        row["refused"] = late
        return row
    row["exact"], row["by_cluster"] = _figures(request, view, sizes, profile)
    return row


def _long(request: AccountRequest, view: TableRow) -> str:
    """Return a refusal if a law on a graph takes too long to compute here, otherwise an empty text."""
    most = QUICK_GRAPH if view.name == "learner" else QUICK_USERS
    if not request.quick or not request.on_graph or request.sizes()[-1] <= most:
        return ""
    return "not computed here: see p2p-sim account, with the same --graph"


def _late(request: AccountRequest, view: TableRow, sizes: list[int]) -> str:
    """Return a refusal if a view takes too long to account for here, otherwise an empty text."""
    most = sizes[0] if sizes else 0
    if request.on_graph:
        return ""
    if view.slow and most > (QUICK_USERS if request.quick else SLOW_USERS):
        return f"not computed here: slow for clusters of {most:,}"
    if request.quick and view.colluders > 1 and view.slow:
        return "not computed here: see p2p-sim account"
    if request.quick and view.name == "learner" and most > SLOW_USERS:
        return f"not computed here: slow for clusters of {most:,}"
    if request.quick and request.faults is not None and view.slow and most > QUICK_FAULTY:
        return f"not computed here: slow for clusters of {most:,}; see p2p-sim account, with the same --fault"
    return ""


def _searched(request: AccountRequest, law: Law, sizes: list[int]) -> str:
    """Return a refusal if the search for the worst composition takes too long here, otherwise an empty text."""
    if not request.quick or not law.slow:
        return ""
    return f"not computed here: slow for clusters of {sizes[-1]:,}; see p2p-sim account"


def _figures(
    request: AccountRequest, view: TableRow, sizes: list[int], last: PrivacyProfile
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the figure of the worst cluster, and those of the smallest, median and largest cluster."""
    delta, people = request.delta, request.population
    if request.group > 1:
        return figure(last, delta), None
    if people is None or request.composition == REAL or request.on_graph:
        return figure(request.profile(view), delta), None
    known: dict[int, dict[str, Any]] = {}
    fits = [size for size in sizes if str(view.coalition.at_most(size - 1))]

    def of(size: int) -> dict[str, Any]:
        if size not in known:
            known[size] = figure(request.profile(view, size), delta)
        return known[size]

    assert last.law is not None
    partly, some = False, None
    if view.slow or not last.law.closed:
        most = SLOW_SIZES if view.slow else QUICK_SIZES if request.quick else math.inf
        if request.quick and (view.slow or fits[-1] > QUICK_USERS):
            most = 1 if view.slow else 2
        # a bound that is the same for all sizes is no lower one, whichever are looked at
        partly = len(fits) > most and any(request.profile(view, size).law != last.law for size in fits)
    if not request.quick:
        middle = _middle(people)
        picked = {"smallest": sizes[0], "median": middle, "largest": sizes[-1]}
        some = {name: of(size) if size in fits else None for name, size in picked.items()}
    if not partly:
        heaviest = _most_visible_size(request, view, fits)
        return (figure(request.profile(view), delta) if heaviest is None else dict(of(heaviest))), some
    chosen = fits[:1] if request.quick and view.slow else [fits[0], fits[-1]]
    worst = dict(max((of(size) for size in chosen), key=lambda found: found["upper"]))
    looked_at = " and ".join(f"{size:,}" for size in chosen)
    worst["assumes"] = [*worst["assumes"], f"of {len(fits)} cluster sizes only {looked_at} were looked at"]
    return worst | {"basis": "lower"}, some


def _most_visible_size(request: AccountRequest, view: TableRow, sizes: list[int]) -> int | None:
    """Return the worst cluster size, if all sizes have the same law and only differ in how often it is seen."""
    weights, seen = {}, []
    for size in sizes:
        law = request.profile(view, size).law
        cases = () if law is None else law.visible_cases()
        if len(cases) != 1 or cases[0][1] is law:  # several cases, or one that is always seen
            return None
        weights[size], case = cases[0]
        seen.append(case)
    return (
        max(sizes, key=lambda size: weights[size]) if seen and all(case == seen[0] for case in seen) else None
    )


def _clusters(request: AccountRequest) -> dict[str, Any] | None:
    if request.population is None:
        size = request.cluster_size
        return None if size is None else {"count": 1, "smallest": size, "median": size, "largest": size}
    people, sizes = request.population, request.population.sizes
    ends = {"smallest": int(sizes.min()), "median": _middle(people), "largest": int(sizes.max())}
    return {"count": len(sizes), **ends, "everybody": not people.divided}


def _middle(people: Population) -> int:
    return int(np.sort(people.sizes)[(len(people.sizes) - 1) // 2])


def profiles(request: AccountRequest, table: Mapping[str, Any]) -> dict[str, PrivacyProfile]:
    """Return the profiles of the rows that have a figure, by title.

    For a population: those of its smallest cluster that fits the view, unless its own labels are the composition.
    """
    out = {}
    for view, row in zip(request.views(), table["views"], strict=True):
        if row["exact"] is not None:
            fits = [size for size in request.sizes() if size > view.colluders]
            out[view.title] = request.profile(view, _shown(request, fits[:1]))
    return out


def _shown(request: AccountRequest, sizes: Sequence[int]) -> int | None:
    """Return the size that represents a population, or None if its own labels are the composition."""
    one = request.population is not None and request.composition != REAL
    return sizes[0] if one and sizes else None


BASES = {
    "lower": "at least this; the truth may be larger",
    "upper": "at most this; the truth may be smaller",
}
"""Footnotes for figures that are not exact."""


_CLOSE = 5e-4


def pinned(row: Mapping[str, Any]) -> str:
    """Return that a row's lower figure cannot be larger: a theorem is as low, to the digits shown, or it is infinite.

    Nothing for other rows.
    """
    exact = row["exact"]
    if exact is None or exact["basis"] != "lower":
        return ""
    low = float(exact["lower"])
    if math.isinf(low):
        return "infinite already in the worst case looked at: no ε bounds it at this δ"
    for theorem in row["theorems"]:
        proven = theorem["holds"] and theorem["basis"] in ("exact", "upper")
        if proven and low > 0 and float(theorem["epsilon"]) <= low * (1 + _CLOSE):
            high = bound_text(theorem["epsilon"], theorem["basis"])
            found = f"at least {number_text(low)} in the worst case looked at"
            return f"pinned: {found}, at most {high} by theorem ({theorem['name']})"
    return ""


def as_text(table: Mapping[str, Any]) -> str:
    """Return the table as text, with footnotes; ``table``: from ``table_of``, or its JSON."""
    notes: dict[str, int] = {}

    def note(text: str) -> str:
        return f"[{notes.setdefault(text, len(notes) + 1)}]" if text else ""

    if why := common_refusal(table["views"]):
        return f"{_above(table, False)}\nrefused for every view: {why}"
    several = (table["clusters"] or {}).get("count", 1) > 1 and any(
        row["by_cluster"] for row in table["views"]
    )
    head = ["View", "worst cluster's ε" if several else "ε", "basis"]
    head += ["smallest", "median", "largest"] if several else []
    head += ["theorem ε", "local ε0", "notes"]
    local = table["local_epsilon"]
    lines = []
    for row in table["views"]:
        exact = row["exact"]
        if exact is None:
            cells = [row["view"], "refused" if is_refusal(row) else "-", "-"]
            marks = note(row["refused"])
        else:
            cells = [row["view"], bracket_text(exact), exact["basis"]]
            marks = note("; ".join([exact["source"], *exact["assumes"]])) + note(pinned(row))
        if several:
            found = row["by_cluster"] or {}
            cells += ["-" if found.get(k) is None else bracket_text(found[k]) for k in head[3:6]]
        lines.append([*cells, _theorems(row["theorems"], note), _local(local), marks])
    open_ended = {row["exact"]["basis"] for row in table["views"] if row["exact"] and not pinned(row)}
    foot = [f"{basis}: {means}" for basis, means in BASES.items() if basis in open_ended]
    foot += [f"[{number}] {text}" for text, number in notes.items()]
    remarks = [f"note: {table['hidden']}"] if table.get("hidden") else []
    return "\n".join([_above(table, several), terminal.table(head, lines), *foot, *remarks])


def common_refusal(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the reason why all views are refused, if it is the same for all; otherwise an empty text."""
    reasons = {
        "" if row["exact"] or row["theorems"] or not is_refusal(row) else row["refused"] for row in rows
    }
    return str(*reasons) if len(rows) > 1 and len(reasons) == 1 else ""


def _above(table: Mapping[str, Any], several: bool) -> str:
    clusters, composition = table["clusters"], table.get("composition", "worst")
    labels = _labels(table.get("group", 1))
    above = f"Privacy of {labels}, ε in nats at δ = {table['delta']:g}, {table['channels']} channels"
    if clusters is not None and several:
        ends = f"smallest {clusters['smallest']:,}, median {clusters['median']:,}, largest {clusters['largest']:,}"
        above += f"; {clusters['count']:,} clusters: {ends}"
    elif clusters is not None:
        above += f"; {_users(clusters)}"
    above += "" if composition == "worst" else f"; composition: {composition}"
    above += (
        f"; {table['times']:,} runs on the same labels, fresh coins, same clusters"
        if table.get("times", 1) > 1
        else ""
    )
    above += f"; graph {terminal.graph(table['graph'])}" if table.get("graph") else ""
    return above + (f"; faults: {', '.join(table['faults'])}" if table.get("faults") else "")


def _users(clusters: Mapping[str, Any]) -> str:
    if clusters.get("everybody"):  # no clusters
        return f"{clusters['largest']:,} users"
    both = sorted({clusters["smallest"], clusters["largest"]})
    return f"clusters of {' to '.join(f'{size:,}' for size in both)}"


def title(table: Mapping[str, Any]) -> str:
    """Return the title of a plot: protocol, parameters, users, delta."""
    clusters, parameters = table["clusters"], table["parameters"].items()
    first = f"{table['protocol']}: " + ", ".join(f"{name} = {value}" for name, value in parameters)
    parts = [f"line at δ = {table['delta']:g}", f"{table['channels']} channels"]
    if clusters is not None:
        whole = table["composition"] == REAL or clusters["count"] == 1
        parts[:0] = [_users(clusters) if whole else f"smallest of {_users(clusters)} that fits the view"]
    return f"{first}\n{'; '.join(parts)}"


def drawn(table: Mapping[str, Any]) -> list[str]:
    """Return a line that says which curves were drawn, and where; an empty list without a plot."""
    if not table["plot"]:
        return []
    bases = [row["exact"]["basis"] for row in table["views"] if row["exact"] is not None]
    each = ", ".join(f"{bases.count(basis)} {basis}" for basis in dict.fromkeys(bases))
    what = title(table).partition("\n")[2]
    done = "written to" if str(table["plot"]).lower().endswith((".csv", ".parquet")) else "drawn in"
    return [f"δ(ε) of {len(bases)} views {done} {table['plot']} ({each}; {what})"]


def is_refusal(row: Mapping[str, Any]) -> bool:
    """Return whether a row without a figure has none anywhere, rather than none that is quick."""
    return not str(row["refused"]).startswith("not computed here")


def _local(value: Any) -> str:
    return "-" if value is None else number_text(value)


def _theorems(theorems: Sequence[Mapping[str, Any]], note: Callable[[str], str]) -> str:
    parts = []
    for found in theorems:
        name = found["name"]
        if found["holds"]:
            remark = ", ".join(
                part for part in (f"{found['basis']}: {found['source']}", found["why"]) if part
            )
            parts.append(f"{bound_text(found['epsilon'], found['basis'])} ({name}) {note(remark)}")
        else:
            parts.append(
                f"{name} does not apply {note(name + ': ' + (found['why'] or 'epsilon is infinite'))}"
            )
    return "; ".join(parts) or "-"


def quick_table(
    protocol: Protocol,
    population: Population,
    faults: Faults | None = None,
    only: tuple[str, ...] = (),
    channels: str = "plain",
    delta: float = DELTA,
) -> dict[str, Any]:
    """Return the privacy table of a run's users, at ``delta`` in [0, 1).

    Views that take too long are refused.  ``only``: names of views, all rows if empty.  Raises InputError as
    ``AccountRequest`` does.
    """
    asked = AccountRequest(
        protocol, delta, population=population, channels=channels, quick=True, only=only, faults=faults
    )
    return table_of(asked, accountant.of, accountant.local_epsilon(protocol))


def privacy_of(
    protocol: Protocol, population: Population, faults: Faults | None = None, delta: float = DELTA
) -> dict[str, Any]:
    """Return the privacy table of a run as JSON values, plain channels."""
    table: dict[str, Any] = terminal.plain(quick_table(protocol, population, faults, delta=delta))
    return table

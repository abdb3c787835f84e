"""``profile``: finds the law of a view of a protocol, adds the theorems, and refuses what no law covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from p2p_sim.backends import layout
from p2p_sim.coalition import CHANNELS, Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.composition.grouped import apart, assumption, check_group, grouped
from p2p_sim.privacy.enumeration.law_finder import found_law
from p2p_sim.privacy.laws.mixtures import Worst
from p2p_sim.privacy.profile import PrivacyProfile, worst_basis
from p2p_sim.privacy.registered import known
from p2p_sim.privacy.registry import LawOf
from p2p_sim.privacy.setting import Setting
from p2p_sim.privacy.table_rows import ALL_DEVIATING, USERS
from p2p_sim.privacy.theorems import Promise


def of(protocol: Protocol, view: str, sizes: Sequence[int], delta: float, reads: bool) -> list[Promise]:
    """Return the theorems on a view; of several cluster sizes the one with the weakest promise.

    ``reads``: whether the view can read anything that depends on a label.
    """
    if not reads:
        why = "nothing that this view can read depends on a label"
        return [
            Promise(
                name="nothing to read", epsilon=0.0, delta=0.0, holds=True, why="", basis="exact", source=why
            )
        ]
    found = known(protocol).theorems
    return [] if found is None else found(protocol, view, sizes, delta)


def local_epsilon(protocol: Protocol) -> float | None:
    """Return epsilon of the local randomizer in nats; None for a protocol whose randomizer is not known."""
    found = known(protocol).local_epsilon
    return None if found is None else found(protocol)


LARGEST = 10**10
"""Largest cluster that is accounted."""


def profile(
    protocol: Protocol,
    view: str = "learner",
    *,
    cluster_size: int | None = None,
    population: Population | None = None,
    composition: str | int = "worst",
    channels: str = "plain",
    users: str = "curious",
    faults: Faults | Sequence[str] | None = None,
    group: int = 1,
) -> PrivacyProfile:
    """Return what one run of a protocol shows a view of one label, replaced.

    ``view``: "learner", "user" (a curious peer of the victim's cluster; so is "user:17"), "wire" (sees what travels),
    or several joined by "+", "learner+3*user", as ``p2p_sim.coalition`` reads them.  ``cluster_size``: users in the
    victim's cluster; or ``population``: the worst of its clusters; one with a graph, for a protocol that needs it: the
    worst of its users.  ``composition``: "worst", how many of the other honest users have label 1, or "population":
    what the population's clusters really hold, which is a secret that the figure then depends on.  ``channels``:
    "plain" or "encrypted" (contents are hidden from the wire).
    ``users``: "curious" follow the protocol; "deviating" colluders do as they like: ask whom they like, drop out on
    purpose; "all deviating": the view's servers do, too, for a law that knows of it.  ``faults``: what goes wrong,
    as in ``p2p_sim.run``; figures then have basis "upper".  A protocol without a registered law has the one that is
    found on its program (``privacy.enumeration``), without faults.  ``group``: how many labels change together, 1 to
    100, such as those of a household, at the worst composition: with a cluster size where it is known exactly, of users
    of one cluster; otherwise of any users, an upper bound from the profile of one label.
    A view without a law comes back refused.  Raises
    InputError for arguments out of range, and for a part that the protocol does not have.

    *Source:* each law names its own, in ``source``.  *Assumes:* what ``assumes`` lists.
    """
    parsed = Coalition.parse(view, protocol.roles())
    _one_of("channels", channels, CHANNELS)
    _one_of("users", users, USERS)
    check_group(group)
    if group > 1:
        where = {"cluster_size": cluster_size, "population": population, "channels": channels, "users": users}
        return _of_group(protocol, view, group, composition, {**where, "faults": faults})
    protocol, population = _spread(protocol, crowds(protocol, population))
    real = composition == "population"
    ones = None if real else _composition(composition)
    law = known(protocol).law or found_law
    rebels = users == ALL_DEVIATING
    if rebels and parsed.servers and not known(protocol).servers_may_deviate:
        why = f"no law of {type(protocol).__name__} is known where servers deviate; give users 'deviating'"
        return PrivacyProfile.refused(view, why)
    wrong = Faults.of(faults)
    if wrong is not None:
        wrong.check(protocol)
        law = _under(wrong, law, protocol)
    setting = Setting(parsed, view, None, ones, channels == "encrypted", users != "curious", real)
    setting = replace(setting, servers_deviate=rebels)
    if real and (population is None or parsed.user_count):
        raise InputError("composition = 'population': needs a population, and a view without users of it")
    size = _size(cluster_size)
    if population is not None and size is not None:
        raise InputError(f"cluster_size = {cluster_size!r} and a population: give one of the two")
    if protocol.graph_over() is not None:
        found = _on_graph(law, protocol, setting, population)
    elif population is None:
        found = law(protocol, replace(setting, size=size))
    elif real:
        found = _as_it_is(law, protocol, setting, population)
    else:
        found = _of_clusters(law, protocol, setting, _sizes(protocol, population), wrong is not None)
    return found if composition == "worst" else replace(found, one_composition=True)


def _of_group(
    protocol: Protocol, view: str, group: int, composition: str | int, options: dict[str, Any]
) -> PrivacyProfile:
    """Return the profile of labels that change together: exact where the mechanism says so, or from that of one."""
    if composition != "worst":
        raise InputError(
            f"composition = {composition!r}: the labels of a group change it, so with group = {group} give 'worst'"
        )
    one = profile(protocol, view, **options)
    parsed, size = Coalition.parse(view, protocol.roles()), _size(options["cluster_size"])
    if size is not None and group > size - parsed.user_count:
        raise InputError(
            f"group = {group}: a cluster of {size} has {size - parsed.user_count} users outside the view: "
            "give at most that many, or a larger cluster"
        )
    if one.law is None or one.law.pure() == 0:
        return grouped(one, group)
    if (
        options["population"] is None
        and protocol.graph_over() is None
        and Faults.of(options["faults"]) is None
    ):
        curious, encrypted = options["users"] == "curious", options["channels"] == "encrypted"
        setting = Setting(parsed, view, size, None, encrypted, not curious)
        exact = known(protocol).group
        found = None if exact is None or not curious else exact(protocol, setting, group)
        if found is not None and found.members != group:
            whose = assumption(group) if size is None else f"{assumption(group)} of one cluster"
            found = replace(found, assumes=(*found.assumes, whose), members=group)
        if found is not None:
            return found
        if known(protocol).law is None:  # what users send is seen apart, and found on the program
            return apart(one, group)
    return grouped(one, group, local_epsilon(protocol))


def by_cluster(
    protocol: Protocol, view: str = "learner", population: Population | None = None, **options: Any
) -> dict[str, PrivacyProfile]:
    """Return the profiles of the smallest, the median and the largest cluster of a population, by those names.

    ``options``: as in ``profile``.  A cluster too small for the colluders of a view is met by all its others; if
    nobody is left to look, its name is left out.  Raises InputError as ``profile`` does.
    """
    if population is None:
        raise InputError("population = None: give the population whose clusters to compare")
    if protocol.graph_over() is not None:
        raise InputError(
            f"{type(protocol).__name__} here: its law depends on a graph, not on sizes of clusters"
        )
    sizes = np.sort(_sizes(protocol, crowds(protocol, population)))
    chosen = {"smallest": sizes[0], "median": sizes[(len(sizes) - 1) // 2], "largest": sizes[-1]}
    parsed = Coalition.parse(view, protocol.roles())
    fits = {name: str(parsed.at_most(int(size) - 1)) for name, size in chosen.items()}
    return {
        name: profile(protocol, fits[name], cluster_size=int(size), **options)
        for name, size in chosen.items()
        if fits[name]
    }


@overload
def crowds(protocol: Protocol, population: None) -> None: ...
@overload
def crowds(protocol: Protocol, population: Population) -> Population: ...
def crowds(protocol: Protocol, population: Population | None) -> Population | None:
    """Return a population in the clusters among which a protocol hides users: one of all, if it mixes everybody."""
    if population is None or not protocol.mixes_everybody():
        return population
    return population.in_one_cluster()


def _under(wrong: Faults, law: LawOf[Protocol], protocol: Protocol) -> LawOf[Protocol]:
    """Return the law of a protocol under faults; refuses those that nothing covers."""
    found = known(protocol).under_faults
    if found is not None:
        return lambda asked, setting: found(law, asked, setting, wrong)
    why = f"faults ({', '.join(wrong.texts())}) are not accounted for {type(protocol).__name__}"
    refusal = f"{why}; audit it (p2p-sim audit, privacy.audit) with them, or ask without"
    return lambda _asked, setting: PrivacyProfile.refused(setting.text, refusal)


def _spread(protocol: Protocol, population: Population | None) -> tuple[Protocol, Population | None]:
    """Return a protocol over neighbours where all of a cluster are, as what it is: over clusters."""
    graph = None if population is None else population.graph
    if population is None or graph is None or not graph.complete:
        return protocol, population
    among_clusters = known(protocol).among_clusters
    if among_clusters is None or protocol.graph_over() is None:
        return protocol, population
    layout.check(protocol, population)
    clusters = Members(graph.codes, graph.starts, graph.order)
    return among_clusters(protocol), replace(population, clusters=clusters, graph=None)


def _on_graph(
    law: LawOf[Protocol], protocol: Protocol, setting: Setting, population: Population | None
) -> PrivacyProfile:
    """Return the profile of the user of a graph of whom a view learns most."""
    if population is None or population.graph is None:
        return PrivacyProfile.refused(setting.text, _unjoined(protocol))
    layout.check(protocol, population)
    among = replace(setting, people=population)
    if setting.real and population.graph.complete:  # otherwise laws hold whatever labels the others have
        return _as_it_is(law, protocol, among, population.in_one_cluster())
    return law(protocol, among)


def _of_clusters(
    law: LawOf[Protocol], protocol: Protocol, setting: Setting, sizes: Any, faulty: bool
) -> PrivacyProfile:
    distinct = [int(size) for size in np.unique(sizes)]
    users = setting.view.user_count
    if users >= distinct[-1]:
        raise InputError(
            f"view = {setting.text!r}: the largest cluster has {distinct[-1]} users, so at most "
            f"{distinct[-1] - 1} can look at another's label"
        )
    if setting.composition is not None and len(distinct) > 1:
        raise InputError("composition: give 'worst' with a population of several sizes, or one cluster_size")
    parts, several = [], f"{len(distinct)} cluster sizes, {distinct[0]} to {distinct[-1]}"
    least = known(protocol).smallest_is_worst
    if len(distinct) > 1 and least is not None and least(protocol, setting.view, faulty):
        found = law(protocol, setting.in_cluster_of(distinct[0]))
        return replace(found, assumes=(*found.assumes, f"{several}: the smallest hides worst"))
    for size in distinct:
        asked = setting.in_cluster_of(size)
        if str(asked.view):  # a peer alone meets nobody in a cluster of one
            parts.append(law(protocol, asked))
    if all(part.law == parts[-1].law and part.basis == parts[-1].basis for part in parts):
        return parts[-1]
    return _worst(parts, f"the worst of {several}")


def _as_it_is(
    law: LawOf[Protocol], protocol: Protocol, setting: Setting, population: Population
) -> PrivacyProfile:
    """Return the worst user's profile, given what labels the others of her cluster have."""
    sizes = _sizes(protocol, population)
    codes = np.zeros(population.users, np.int64) if population.clusters is None else population.clusters.codes
    ones = np.bincount(codes, weights=population.y != 0, minlength=len(sizes)).astype(np.int64)
    cases = {(int(n), int(k)) for n, k in zip(sizes, ones, strict=True) if k < n}
    cases |= {(int(n), int(k) - 1) for n, k in zip(sizes, ones, strict=True) if k}
    parts = [law(protocol, replace(setting, size=n, composition=k)) for n, k in sorted(cases)]
    return _worst(parts, f"labels as they are in this population: {len(cases)} kinds of user")


def _worst(parts: list[PrivacyProfile], note: str) -> PrivacyProfile:
    """Return the worst of several profiles; one that is refused refuses all."""
    refused = next((part for part in parts if part.law is None), None)
    if refused is not None:
        return refused
    laws = tuple(part.law for part in parts if part.law is not None)
    return replace(parts[-1], basis=worst_basis(parts), assumes=(*parts[-1].assumes, note), law=Worst(laws))


def _size(value: Any) -> int | None:
    if value is None:
        return None
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= LARGEST:
        raise InputError(f"cluster_size = {value!r}: must be an integer from 1 to {LARGEST:,}")
    return int(value)


def _composition(value: Any) -> int | None:
    if isinstance(value, str) and value == "worst":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(
            f"composition = {value!r}: must be 'worst' or how many other honest users have label 1"
        )
    return int(value)


def _sizes(protocol: Protocol, population: Population) -> Any:
    if population.labels > protocol.label_count():
        raise InputError(
            f"{type(protocol).__name__} takes {protocol.label_count()} labels; the population has {population.labels}"
        )
    return population.sizes


def _unjoined(protocol: Protocol) -> str:
    name, over = type(protocol).__name__, protocol.graph_over()
    where = "a graph within clusters" if over == "cluster" else "a graph"
    return (
        f"the law of {name} depends on who is joined to whom: give a population with {where} "
        "(p2p_sim.network.topologies.join), on the command line --users N --graph regular:20"
    )


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(
            f"{name} = {value!r}: must be one of {', '.join(allowed)}{near(str(value), allowed)}"
        )

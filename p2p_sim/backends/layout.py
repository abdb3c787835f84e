"""The layout of a run: sites of users, blocks within a site, and the columns of each block."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from p2p_sim.core.address_book import World
from p2p_sim.core.draw import Draw
from p2p_sim.core.errors import InputError
from p2p_sim.core.fault_injection import FaultInjection, KeyedFaultDraws
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.message import USER
from p2p_sim.core.party import FleetingColumns, NamedColumns, Party
from p2p_sim.core.population import Population
from p2p_sim.core.population_in_parts import Origin, PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.sealing import MODELLED, REAL, Seals
from p2p_sim.network.adjacency import require

BlockColumns = Callable[[int, int], Mapping[str, Any]]
"""Makes the columns of a block from its first row and its end, counted from the first row of the site."""


def check(protocol: Protocol, population: Population, faults: Faults | None = None) -> None:
    """Check a protocol's declaration and faults, and that it can handle the population's labels and graph.

    Raises InputError.
    """
    protocol.check()
    if faults is not None:
        faults.check(protocol)
    if population.labels > protocol.label_count():
        raise InputError(
            f"{type(protocol).__name__} handles {protocol.label_count()} label values, the population has labels up to "
            f"{population.labels - 1}: choose positive classes to make the label binary, or a protocol for more labels "
            "(one of your own says how many in `def label_count(self)`)"
        )
    least = protocol.least_users()
    # part of a population, which has ids, is not checked: the whole was
    if population.ids is None and population.users < least:
        raise InputError(
            f"{protocol!r} needs at least {least} users, the population has {population.users}: give more users, or "
            "parameters that need fewer"
        )
    over = protocol.graph_over()
    if over is not None:
        _check_graph(protocol, population, over)


def no_graph(protocol: Protocol) -> InputError:
    """Return the error for a protocol that needs a graph and has none."""
    within = protocol.graph_over() == "cluster"
    return InputError(
        f"{type(protocol).__name__} needs a graph {'within each cluster' if within else 'that joins everybody'}: give "
        '--graph regular:20, in Python p2p_sim.network.topologies.join(population, "regular:20", seed'
        f"{', within_clusters=True' if within else ''})"
    )


def _check_graph(protocol: Protocol, population: Population, over: str) -> None:
    """Check that there is a graph without isolated users that is connected (``over`` "cluster": in each cluster).

    Part of a population is not checked: the whole was.
    """
    if population.graph is None:
        raise no_graph(protocol)
    if population.ids is None:
        require(population.graph, population.clusters if over == "cluster" else None)


def edges(total: int, parts: int) -> list[int]:
    """Divide 0 .. total into ``parts`` consecutive ranges of nearly equal size; return their ``parts + 1`` bounds."""
    return [total * i // parts for i in range(parts + 1)]


def blocks_of(users: int, most: int) -> int:
    """Return into how many blocks to cut some users: from 3 on a multiple of 4, of up to ``most`` users each.

    Of up to twice as many where that still gives 16 blocks: what a block takes beside its users is Python's work, which
    one thread at a time may do, so threads wait for each other the more often, the more blocks there are.
    """
    least = -(-users // most)
    least = max(min(least, _SEVERAL), -(-least // 2))
    return least if least < 3 else -(-least // 4) * 4


_SEVERAL = 16


def world_of(protocol: Protocol, population: Population, crypto: str = MODELLED) -> World:
    """Return which users can be addressed, and whether messages are really sealed."""
    return World(population.users, population.ids, protocol.vector_lengths(), crypto == REAL)


def seals_of(protocol: Protocol, world: World, seed: int, workers: int | None = None) -> Seals | None:
    """Return what seals and opens messages at one site, in ``workers`` processes (None: one a core).

    None if cryptography is modelled.
    """
    if not world.real:
        return None
    from p2p_sim.crypto.envelopes import Envelopes

    return Envelopes(f"{type(protocol).__name__}/{seed}", seed, world, workers)


def slice_of(population: Population, low: int, high: int, binary: bool) -> dict[str, Any]:
    """Return the columns of the users ``low .. high - 1``, which are sent to their site; ``binary``: labels as bool."""
    y = population.y[low:high]
    columns: dict[str, Any] = {"y": _as_labels(y, binary)}
    if population.x is not None:
        columns["x"] = population.x[low:high]
    if population.clusters is not None:
        columns["cluster"] = population.clusters.block(low, high)
    if population.graph is not None:
        columns["neighbours"] = population.graph.block(low, high)
    columns["public"] = {name: column[low:high] for name, column in population.public.items()}
    columns["secret"] = {name: column[low:high] for name, column in population.secret.items()}
    return columns


def _as_labels(y: Any, binary: bool) -> Any:
    return y.astype(np.bool_, copy=False) if binary else y.astype(np.uint8)


@dataclass(frozen=True)
class PartToMake:
    """The users ``low .. high - 1`` of an origin, who are made where this is opened; ``binary``: labels as bool."""

    origin: Origin
    low: int
    high: int
    binary: bool

    def open(self) -> dict[str, Any]:
        """Make the users and return their columns, as ``slice_of``."""
        return slice_of(self.origin.part(self.low, self.high), 0, self.high - self.low, self.binary)

    @property
    def fleeting(self) -> bool:
        """Whether users cost so little that blocks make them when they are looked at."""
        return self.origin.columns(self.low, self.low) is not None

    def block(
        self, low: int, high: int, world: World, labels: int, injection: FaultInjection | None
    ) -> FleetingColumns:
        """Return the columns of the rows ``low .. high - 1``, counted from the first; some users may lie."""
        first, size = self.low + low, high - low
        makes, ids = self.origin.columns(first, self.low + high), world.names(range(first, first + size))
        assert makes is not None  # they are fleeting

        def y() -> Any:
            drawn = _as_labels(makes["y"](), self.binary)
            return _read_only(drawn if injection is None else injection.labels_given(drawn, ids, labels))

        rest = {name: lambda name=name: NamedColumns(name, {}) for name in ("public", "secret")}
        return FleetingColumns({"cluster": lambda: _one_cluster(size, world)} | makes | rest | {"y": y})


def source_of(population: Population, low: int, high: int, binary: bool) -> dict[str, Any] | PartToMake:
    """Return the columns of the users ``low .. high - 1``, or what makes them."""
    if isinstance(population, PopulationInParts):
        return PartToMake(population.origin, low, high, binary)
    return slice_of(population, low, high, binary)


def injection_of(faults: Faults | None, seed: int, compute: ModuleType) -> FaultInjection | None:
    """Return what injects faults at one site; None if there are no faults."""
    return None if faults is None else FaultInjection(faults, KeyedFaultDraws(seed, compute))


def opened(
    columns: dict[str, Any] | PartToMake,
    world: World,
    first: int,
    labels: int,
    injection: FaultInjection | None,
) -> dict[str, Any] | BlockColumns:
    """Return the columns of a site whose first user is row ``first``, or what makes those of a block; some may lie."""
    if isinstance(columns, PartToMake):
        if columns.fleeting:
            return functools.partial(columns.block, world=world, labels=labels, injection=injection)
        columns = columns.open()
    lie(columns, world, first, labels, injection)
    return columns


def lie(
    columns: dict[str, Any], world: World, first: int, labels: int, injection: FaultInjection | None
) -> None:
    """Replace the labels of users who lie, in the columns of a site whose first user is row ``first``."""
    if injection is not None:
        ids = world.names(range(first, first + len(columns["y"])))
        columns["y"] = injection.labels_given(columns["y"], ids, labels)


def user_parties(
    columns: dict[str, Any] | BlockColumns,
    world: World,
    first: int,
    cuts: list[int],
    seed: int,
    compute: ModuleType,
) -> list[Party]:
    """Make the blocks of one site: columns of its users, cut at the given rows (counted from ``first``)."""
    parties = []
    for low, high in itertools.pairwise(cuts):
        rows = range(first + low, first + high)
        ids = world.names(rows)
        draw = Draw(seed, USER, ids, compute)
        own = block_of(columns, low, high, world) if isinstance(columns, dict) else columns(low, high)
        parties.append(Party(USER, rows, ids, draw, own, real=world.real))
    return parties


def server_party(role: str, seed: int, compute: ModuleType, *, real: bool = False) -> Party:
    """Make the block of a server: one party, id 0, no columns."""
    return Party(role, range(1), range(1), Draw(seed, role, range(1), compute), real=real)


def block_of(columns: dict[str, Any], low: int, high: int, world: World) -> dict[str, Any]:
    """Return the columns of one block, read-only; without clusters, all users are in one cluster."""
    part: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, Members):
            part[name] = column.block(low, high)
        elif isinstance(column, dict):
            cut = {key: _read_only(value[low:high]) for key, value in column.items()}
            part[name] = NamedColumns(name, cut)
        else:
            part[name] = _read_only(column[low:high])
    if "cluster" not in part:
        part["cluster"] = _one_cluster(high - low, world)
    return part


def _one_cluster(users: int, world: World) -> Members:
    return Members(np.zeros(users, np.int32), np.array([0, world.users]), None)


def _read_only(column: Any) -> Any:
    view = column.view()
    view.flags.writeable = False
    return view

"""Outputs that are hashed and written block by block, where they arose, and not returned to the caller.

The one site of a local run writes each block as it comes (``LocalOutputs``).  One of several sites holds its blocks
until it knows how many rows the sites before it have, which the digest needs (``SiteOutputs``, ``collect``).
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType, TracebackType
from typing import Any

import numpy.typing as npt

from p2p_sim.core import kernels
from p2p_sim.core.engine import Finished, alike
from p2p_sim.core.ledger import Totals
from p2p_sim.core.run_digest import Lanes, added, output_lanes

Array = npt.NDArray[Any]

Schemas = dict[str, dict[str, tuple[int, Array]]]
"""By role and column: how many rows, and an array of none, whose type and shape are the column's."""

_LONG = 1 << 20
"""Rows of a block, such as what a server returns, from which a thread of its own pays."""


class RoleWriter(typing.Protocol):
    """Takes the output of a role at one site, block by block, and puts it in its place."""

    def add(self, columns: Mapping[str, Array]) -> None:
        """Append rows to each column."""

    def close(self) -> None:
        """Finish: all rows were added."""

    def abandon(self) -> None:
        """Remove what was written: the run has failed."""


class Target(typing.Protocol):
    """The place where the sites of a run put their outputs."""

    def check(self) -> None:
        """Raise InputError if this process cannot write there."""

    def start_over(self) -> None:
        """Remove what was written: the run begins again."""

    def open(self, role: str, site: int | None) -> RoleWriter:
        """Return the writer of a role's output at a site: its number, or None where no other site has the role."""

    def outputs(self, rows: Mapping[str, Mapping[str, int]]) -> Mapping[str, dict[str, Array]]:
        """Return what was written, as mappings that read a column at first use; ``rows``: of each column, by role."""


@dataclass
class _RoleOutput:
    """The output of a role at one site, hashed and written block by block.

    ``rows``: of each column, those of earlier sites included, so that it is where the next row is hashed.
    ``loops``: those of the digest, None for no digest.
    """

    role: str
    target: Target
    site: int | None
    loops: ModuleType | None
    threads: int = 1
    rows: dict[str, int] = field(default_factory=dict)
    lanes: Lanes = (0, 0)
    _schema: dict[str, Array] | None = None
    _writer: RoleWriter | None = None

    def take(self, columns: Mapping[str, Array]) -> None:
        """Hash and write what a block returned; raises ProtocolError if its columns or types are not the others'."""
        schema = _schema_of(columns)
        self._schema = schema if self._schema is None else self._schema
        alike(self.role, [self._schema, schema])
        if not columns:
            return
        if self._writer is None:
            self._writer = self.target.open(self.role, self.site)
        if self.threads > 1 and max(map(len, columns.values())) >= _LONG:
            # This thread writes: Ctrl-C comes here, and finds no file in use.
            with ThreadPoolExecutor(1) as other:
                hashed = other.submit(self._hash, columns)
                self._writer.add(columns)
                lanes = hashed.result()
        else:
            lanes = self._hash(columns)
            self._writer.add(columns)
        self.lanes = added(self.lanes, lanes)
        for name, column in columns.items():
            self.rows[name] = self.rows.get(name, 0) + len(column)

    def _hash(self, columns: Mapping[str, Array]) -> Lanes:
        return (
            (0, 0) if self.loops is None else output_lanes(self.role, columns, self.loops, firsts=self.rows)
        )

    def close(self) -> None:
        """Finish: all blocks were taken."""
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            self._writer.abandon()


class LocalOutputs:
    """The outputs of a run of one site, in this process; a ``with`` block that fails removes them.

    ``loops``: those of the digest, None for none; ``threads``: of several, one hashes long blocks while another writes.
    """

    def __init__(self, target: Target, loops: ModuleType | None, threads: int):
        self._target, self._loops, self._threads = target, loops, threads
        self._roles: dict[str, _RoleOutput] = {}

    def take(self, role: str, columns: Mapping[str, Array]) -> None:
        """Take what a block of a role has returned, in the order of the blocks."""
        if role not in self._roles:
            self._roles[role] = _RoleOutput(role, self._target, None, self._loops, self._threads)
        self._roles[role].take(columns)

    def finished(self, totals: Totals, roles: Sequence[str]) -> Finished:
        """Return the totals, and outputs that are read at first use."""
        for each in self._roles.values():
            each.close()
            totals.add_lanes(each.lanes)
        return Finished(totals, self._target.outputs({role: self._roles[role].rows for role in roles}))

    def __enter__(self) -> LocalOutputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._roles.values() if error is not None else ():
            each.abandon()


@dataclass(frozen=True)
class SiteOutputs:
    """The outputs of one site of several: the blocks of each role, in their order."""

    blocks: dict[str, list[dict[str, Array]]]

    @property
    def schemas(self) -> Schemas:
        """Return the schemas of the outputs; raises ProtocolError where blocks differ."""
        return {
            role: {
                name: (sum(len(block[name]) for block in blocks), blocks[0][name][:0].copy())
                for name in alike(role, blocks)
            }
            for role, blocks in self.blocks.items()
        }

    def write(
        self,
        target: Target,
        sites: dict[str, int | None],
        firsts: dict[str, dict[str, int]],
        compute: str | None,
    ) -> Lanes:
        """Write the outputs of each role and return their digest.

        ``sites``: the number of this site for each role, None where no other has the role.  ``firsts``: rows of
        earlier sites by role and column.  ``compute``: the name of the digest's loops, None for no digest.  Each
        block is freed when it is written.
        """
        total: Lanes = (0, 0)
        loops = None if compute is None else kernels.load(compute)
        for role, blocks in self.blocks.items():
            output = _RoleOutput(role, target, sites[role], loops, rows=dict(firsts[role]))
            try:
                blocks.reverse()
                while blocks:
                    output.take(blocks.pop())
                output.close()
            except BaseException:
                output.abandon()
                raise
            total = added(total, output.lanes)
        return total


def collect(
    places: Sequence[Any], ends: Sequence[Any], roles: Sequence[str], compute: str | None, target: Target
) -> Finished:
    """Have each site write its outputs; return the totals, and outputs that are read at first use.

    ``ends``: handles of what the ``keep`` of each site returns.  ``compute``: the name of the digest's loops, None for
    no digest.
    """
    totals, schemas = Totals(), list[Schemas]()
    for place, handle in zip(places, ends, strict=True):
        site_totals, schema = place.wait(handle)
        totals.add(site_totals)
        schemas.append(schema)
    names: dict[str, list[str]] = {}
    for role in roles:
        empty = [{name: none for name, (_, none) in each[role].items()} for each in schemas if role in each]
        names[role] = alike(role, empty)  # raises where sites return different columns
    done = []
    rows = {role: dict.fromkeys(columns, 0) for role, columns in names.items()}
    for number, (place, schema) in enumerate(zip(places, schemas, strict=True)):
        sites = {role: number if sum(role in each for each in schemas) > 1 else None for role in schema}
        firsts = {role: dict(rows[role]) for role in schema}
        done.append(place.write(target, sites, firsts, compute))
        for role, columns in schema.items():
            for name, (count, _) in columns.items():
                rows[role][name] += count
    for place, handle in zip(places, done, strict=True):
        totals.add_lanes(place.wait(handle))
    return Finished(totals, target.outputs(rows))


def _schema_of(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return an array of no rows for each column, which does not keep the column in memory."""
    return {name: column[:0].copy() for name, column in columns.items()}

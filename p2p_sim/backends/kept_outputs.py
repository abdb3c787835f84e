"""Outputs that stay where they were computed: each site hashes and writes its own, and the caller sees their form."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from p2p_sim.core import kernels
from p2p_sim.core.engine import Finished, join_parts
from p2p_sim.core.ledger import Totals
from p2p_sim.core.run_digest import Lanes, added, output_lanes

Array = npt.NDArray[Any]

Forms = dict[str, dict[str, tuple[int, Array]]]
"""By role and column: how many rows, and none of them, which tells their type and shape."""


class Target(typing.Protocol):
    """The place where the sites of a run put their outputs."""

    def check(self) -> None:
        """Raise InputError if this process cannot write there."""

    def start_over(self) -> None:
        """Remove what a run has written that begins again."""

    def put(self, role: str, site: int | None, columns: Mapping[str, Array]) -> None:
        """Write the output of a role at one site; ``site`` None: there is no other."""

    def outputs(self, names: Mapping[str, Sequence[str]]) -> Mapping[str, dict[str, Array]]:
        """Return what was written, read when asked for; ``names``: of the columns of each role."""


@dataclass(frozen=True)
class Outputs:
    """The outputs of one site by role, over all its blocks."""

    columns: dict[str, dict[str, Array]]

    @classmethod
    def of(cls, outputs: dict[str, list[dict[str, Array]]]) -> Outputs:
        """Join the outputs of blocks."""
        return cls({role: join_parts(role, parts) for role, parts in outputs.items()})

    @property
    def forms(self) -> Forms:
        """How many rows there are, and of what type."""
        return {
            role: {name: (len(column), column[:0].copy()) for name, column in columns.items()}
            for role, columns in self.columns.items()
        }

    def write(
        self,
        target: Target,
        sites: dict[str, int | None],
        firsts: dict[str, dict[str, int]],
        compute: str | None,
    ) -> Lanes:
        """Write the outputs of each role and return their digest; ``firsts``: rows of earlier sites by role and column.

        ``sites``: the number of this site for each role, None where no other has it; ``compute``: the inner loops,
        None for no digest.
        """
        total: Lanes = (0, 0)
        for role, columns in self.columns.items():
            if columns:
                target.put(role, sites[role], columns)
            if compute is not None:
                lanes = output_lanes(role, columns, kernels.load(compute), firsts=firsts[role])
                total = added(total, lanes)
        return total


def collect(
    places: Sequence[Any], ends: Sequence[Any], roles: Sequence[str], compute: str | None, target: Target
) -> Finished:
    """Have each of some places write its outputs; return the totals, and outputs that are read when asked for.

    ``ends``: what their ``keep`` returned; ``compute``: the inner loops of the digest, None for no digest.
    """
    totals, forms = Totals(), list[Forms]()
    for place, handle in zip(places, ends, strict=True):
        site_totals, form = place.wait(handle)
        totals.add(site_totals)
        forms.append(form)
    names: dict[str, list[str]] = {}
    for role in roles:
        empty = [{name: none for name, (_, none) in form[role].items()} for form in forms if role in form]
        names[role] = list(join_parts(role, empty))  # raises where sites return different columns
    done = []
    rows = {role: dict.fromkeys(columns, 0) for role, columns in names.items()}
    for number, (place, form) in enumerate(zip(places, forms, strict=True)):
        sites = {role: number if sum(role in each for each in forms) > 1 else None for role in form}
        firsts = {role: dict(rows[role]) for role in form}
        done.append(place.write(target, sites, firsts, compute))
        for role, columns in form.items():
            for name, (count, _) in columns.items():
                rows[role][name] += count
    for place, handle in zip(places, done, strict=True):
        totals.add_lanes(place.wait(handle))
    return Finished(totals, target.outputs(names))

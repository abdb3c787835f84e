"""Corrections of the papers, each shown by numbers that are computed when it is asked for.

``ERRATA`` has all of them; the functions of each paper's module return the numbers of one.  Proofs and longer
explanations are in docs/laws.md, "Corrections of the papers".
"""

from __future__ import annotations

from p2p_sim.core.errors import InputError, near
from p2p_sim.errata import attacks2023 as attacks2023
from p2p_sim.errata import clustering2022 as clustering2022
from p2p_sim.errata import pitfalls2021 as pitfalls2021
from p2p_sim.errata import release2023 as release2023
from p2p_sim.errata import shuffle2021 as shuffle2021
from p2p_sim.errata import unified2023 as unified2023
from p2p_sim.errata.erratum import Erratum as Erratum
from p2p_sim.errata.erratum import Numbers as Numbers

ERRATA: tuple[Erratum, ...] = (
    *clustering2022.ERRATA,
    *attacks2023.ERRATA,
    *unified2023.ERRATA,
    *pitfalls2021.ERRATA,
    *release2023.ERRATA,
    *shuffle2021.ERRATA,
)


def named(id: str) -> Erratum:
    """Return the erratum of an id; raises InputError if there is none."""
    for each in ERRATA:
        if each.id == id:
            return each
    known = [each.id for each in ERRATA]
    raise InputError(f"no erratum {id!r}: known are {', '.join(known)}{near(id, known)}")

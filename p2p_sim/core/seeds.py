"""Seeds: fresh ones from the system's entropy, and which ones may be withheld as unguessable."""

from __future__ import annotations

import secrets
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import SEED_LIMIT

FRESH, GIVEN = "fresh", "given"
"""Where a seed came from: the system's entropy, or whoever called."""

SOURCES = (FRESH, GIVEN)

LEAST = 1 << 62
"""From here on a seed may be withheld: small numbers, dates and times, also in nanoseconds (1.8e18), are below it."""

_DO = (
    "run again without a seed, and a fresh one is drawn, or with a random one of at least 2^62, such as "
    "python3 -c 'import secrets; print(secrets.randbits(63) + 2**63)' prints"
)


class Fresh(int):
    """A seed that was drawn from the system's entropy."""


def fresh() -> Fresh:
    """Return a seed from the system's entropy, uniform from 2^62 to 2^64 - 1.

    So none is refused anywhere when it is given again, to repeat a run.
    """
    return Fresh(LEAST + secrets.randbelow(SEED_LIMIT - LEAST))


def chosen(seed: Any) -> int:
    """Return a seed that was given, or a fresh one for None; raises InputError for one out of range."""
    if seed is None:
        return fresh()
    return seed if isinstance(seed, Fresh) else check_seed(seed)


def source(seed: int) -> str:
    """Return where a seed that ``chosen`` returned came from."""
    return FRESH if isinstance(seed, Fresh) else GIVEN


def guessable(seed: int | None, origin: str | None) -> bool:
    """Whether a seed that somebody withholds could be found by trying.

    ``origin``: "fresh" or "given"; None if that is not known.  A seed that is None was left out earlier: if its origin
    was noted, it was checked then.
    """
    return origin not in SOURCES if seed is None else seed < LEAST


def check_secret(seed: int | None, origin: str | None, what: str) -> None:
    """Check that a seed which is withheld cannot be guessed; raises InputError otherwise.

    ``what``: the option or deed that withholds it, such as "--no-population".
    """
    if not guessable(seed, origin):
        return
    which = "the seed of this run, which is not kept and not known to be a fresh one" if seed is None else ""
    raise InputError(
        f"{which or f'seed = {seed}'}: {what} withholds the seed, but this one might be guessed, and with it the noise "
        f"be undone: {_DO}"
    )

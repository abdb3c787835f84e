"""What a trainer's epsilon assumes of its seed and classes, in words for ``PrivacyProfile.assumes``."""

from __future__ import annotations

from p2p_sim.core import seeds

FRESH = "noise of its own in every fit, from a fresh seed that nobody keeps"

GIVEN = (
    "the seed that was given is secret, random (secrets.randbits(64)) and of this fit alone: another with the same "
    "seed has the same noise, and their difference has none"
)

GUESSABLE = f"{GIVEN}; it is a small number, which can be guessed: good for a simulation, not for a release"

CLASSES = "the classes, taken from the labels, are public: a rare label shows by its presence; give classes"


def assumed(seed: int | None) -> str:
    """Return what is assumed of a seed that was given, or of the fresh one of None."""
    if seed is None:
        return FRESH
    return GUESSABLE if seeds.guessable(int(seed), seeds.GIVEN) else GIVEN

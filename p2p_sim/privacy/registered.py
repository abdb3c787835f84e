"""What is registered of a protocol; the room of a shipped one is opened when it is first asked for."""

from __future__ import annotations

from typing import cast

from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.mechanisms import open_room
from p2p_sim.privacy.registry import REGISTERED, Accounting, LabelNoise, P


def accounting(kind: type[P]) -> Accounting[P] | None:
    """Return what is registered of a protocol class, None if nothing; what its bases registered is not about it."""
    package, _, file = kind.__module__.rpartition(".")
    if package == "protocols":
        open_room(file)
    return cast("Accounting[P] | None", REGISTERED.get(kind))


def known(protocol: P) -> Accounting[P]:
    """Return what is registered of the class of a protocol, with nothing in it if nothing is."""
    return accounting(type(protocol)) or Accounting()


def label_noise(protocol: Protocol) -> LabelNoise | None:
    """Return how the labels that the learner returns as ``y`` came about; None if that is not known."""
    noise = known(protocol).noise
    return None if noise is None else noise(protocol)

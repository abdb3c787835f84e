"""What every party learns of a label: exact, promised by theorem, and measured."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Imported here and not on demand: the function must take the name that the file of the same name leaves behind.
from p2p_sim.privacy.accountant import by_cluster, profile
from p2p_sim.privacy.profile import Bracket, PrivacyProfile, RefusedError

_HOMES = {"audit": "audit", "calibrate": "calibrate", "compose": "compose", "enumerate_view": "enumerate"}

__all__ = ["Bracket", "PrivacyProfile", "RefusedError", "by_cluster", "profile"]


def __getattr__(name: str) -> Any:
    if name == "bounds":
        return import_module("p2p_sim.privacy.bounds")
    if name not in _HOMES:
        raise AttributeError(f"module 'p2p_sim.privacy' has no attribute {name!r}")
    value = getattr(import_module(f"p2p_sim.privacy.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

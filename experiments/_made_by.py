"""Which code an outcome is of: a finished experiment is not run again by the same code."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from p2p_sim.core import code_fingerprint

FOLDER = Path(__file__).parent
_LIBRARIES = ("scipy", "scikit-learn")
"""Packages that results depend on, beside those that decide the bits of a run."""


def code(name: str) -> dict[str, str]:
    """Return fingerprints of the script and of all of ``experiments`` that this process has loaded, and of the rest.

    "p2p_sim" is one of p2p_sim, protocols and the packages they compute with.
    """
    loaded = {
        module.removeprefix("experiments.") for module in sys.modules if module.startswith("experiments.")
    }
    here = {each for each in {name, *loaded} if (FOLDER / f"{each}.py").is_file() and each != "__main__"}
    return {"p2p_sim": _package()} | {f"{each}.py": _of_file(each) for each in sorted(here)}


def same(made_by: Mapping[str, str]) -> bool:
    """Whether the code here, as far as an outcome depends on it, is that which made it."""
    return all(
        found == (_package() if file == "p2p_sim" else _of_file(file.removesuffix(".py")))
        for file, found in made_by.items()
    )


@cache
def _package() -> str:
    found = code_fingerprint.code_of(()) | {name: metadata.version(name) for name in _LIBRARIES}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def _of_file(name: str) -> str:
    file = FOLDER / f"{name}.py"
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else ""

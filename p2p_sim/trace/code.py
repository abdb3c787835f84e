"""Which code computed a run: versions of packages, and a fingerprint of the program itself."""

from __future__ import annotations

import hashlib
import inspect
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("p2p-sim", "numpy", "numba", "ray", "scikit-learn", "pyarrow")
_DECIDES = ("p2p-sim", "code", "python", "numpy", "numba")
_FOLDERS = ("core", "crypto", "network")
"""Parts of this package that decide bits, beside the protocols."""


def versions(protocol: Any) -> dict[str, str]:
    """Return the versions of what computes a run of a protocol; ``code``: a fingerprint of engine and protocol."""
    found = {"python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found | {"code": fingerprint(protocol)}


def fingerprint(protocol: Any) -> str:
    """Return the first 12 hexadecimal digits of a SHA-256 over the sources of the engine and of a protocol."""
    package = Path(__file__).parents[1]
    files = {path for folder in _FOLDERS for path in (package / folder).rglob("*.py")}
    try:
        own = Path(inspect.getfile(type(protocol)))
    except (TypeError, OSError):  # written in a terminal: there is no file
        own = None
    if own is not None and own.is_file():
        shipped = type(protocol).__module__.partition(".")[0] == "protocols"
        files |= set(own.parent.glob("*.py")) if shipped else {own}
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: (path.parent.name, path.name)):
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def other_code(run: Any, protocol: Any) -> list[str]:
    """Return in which respects the code here is not that which computed a run: ``numpy 2.4.1 then, 2.5.0 now``."""
    if not run.versions:  # computed in this process
        return []
    here = versions(protocol)
    return [
        f"{name} {run.versions.get(name, 'unknown')} then, {here[name]} now"
        for name in _DECIDES
        if run.versions.get(name) != here[name]
    ]


def warn(done: str, other: Sequence[str]) -> None:
    """Warn of what was ``done`` by other code than a run's; ``other``: as ``other_code`` returns it."""
    if other:
        warnings.warn(f"{done} by other code than the run's: {'; '.join(other)}", stacklevel=3)

"""Print docs/licences.md: the licence of every package that an installation of p2p-sim brings, by their own metadata.

    python .ci/licences.py > docs/licences.md

To be run by the Python of a fresh installation (`pip install .`), with the version that the page is to be of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

HEAD = """# Licences of what is installed

p2p-sim is under the Apache License 2.0. Its installation brings the packages below, each under its own licence, as
its metadata say. None is copied into p2p-sim's wheel. Optional packages (torch, pillow, dp-accounting, pynndescent) and
those that only tests need are not listed. The page is written by `python .ci/licences.py`.
"""


def name_of(text: str) -> str:
    """Return the name of a package as PyPI compares names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", text.strip())[0]).lower()


def needs(name: str) -> Iterator[str]:
    """Yield the packages that one needs here, without its extras."""
    from packaging.requirements import Requirement

    for text in metadata.requires(name) or ():
        found = Requirement(text)
        if found.marker is None or found.marker.evaluate({"extra": ""}):
            yield name_of(found.name)


def brought_by(root: str) -> dict[str, str]:
    """Return all packages that a package brings, with the one that asks for each."""
    found, open_ends = dict.fromkeys(needs(root), root), list(needs(root))
    while open_ends:
        asking = open_ends.pop(0)
        for name in needs(asking):
            if name not in found:
                found[name] = asking
                open_ends.append(name)
    return found


def licence(name: str) -> str:
    """Return the licence of an installed package in few words; empty if its metadata tell none."""
    told = metadata.metadata(name)
    if told.get("License-Expression"):
        return told["License-Expression"]
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in told.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    classifiers = [each for each in classifiers if each != "OSI Approved"]
    if classifiers:
        return ", ".join(classifiers)
    text = (told.get("License") or "").strip()
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= 60 else ""


def page() -> str:
    """Return the page."""
    found = brought_by("p2p-sim")
    rows = [
        f"| {name} | {licence(name) or 'see its licence file'} | {found[name]} |" for name in sorted(found)
    ]
    return "\n".join([HEAD, "| package | licence | asked for by |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    print(page(), end="")

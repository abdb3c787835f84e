"""The page of licences is that of what is declared, and no licence binds whoever uses p2p-sim to more than its own."""

from __future__ import annotations

import re
import runpy
import tomllib

import pytest

from tests.docs.test_documents import PAGES, ROOT

SCRIPT = runpy.run_path(str(ROOT / ".ci" / "licences.py"))
LISTED = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", PAGES["docs/licences.md"], re.MULTILINE))
DECLARED = [
    SCRIPT["name_of"](each)
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]
BINDING = re.compile(r"\b[AL]?GPL|General Public|SSPL|BUSL|Commons Clause|Proprietary", re.IGNORECASE)


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_declared_is_listed_with_the_licence_it_has(name: str) -> None:
    assert LISTED.get(name) == SCRIPT["licence"](name), "python .ci/licences.py > docs/licences.md"


def test_all_that_is_installed_tells_a_licence_that_does_not_bind() -> None:
    """Also what newer versions bring, of which the page does not know."""
    told = {name: SCRIPT["licence"](name) for name in SCRIPT["brought_by"]("p2p-sim")}
    assert len(told) > 30
    assert not [name for name, licence in told.items() if not licence or BINDING.search(licence)], told
    assert not [name for name, licence in LISTED.items() if BINDING.search(licence)]


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-or-later", "GNU General Public License v3", "LGPL-2.1", "AGPL-3.0-only"]
)
def test_a_licence_that_binds_is_seen(licence: str) -> None:
    assert BINDING.search(licence)

"""How-tos and the page on numbers are run from top to bottom: what they show is what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import transcript
from tests.docs.test_documents import IN_ORDER, PAGES

NAMES = [name for name in IN_ORDER if name.startswith(("docs/howto/", "docs/numbers"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_what_comes_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    transcript.run(PAGES[name], {})

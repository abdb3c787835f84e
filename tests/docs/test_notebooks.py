"""Notebooks are run as scripts, cell after cell; a value that ends a cell shows itself."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

from tests.docs.test_documents import IN_ORDER, PAGES, blocks

NAMES = [name for name in IN_ORDER if name.startswith("docs/notebooks/")]

SHOW = """
def _show(value):
    _shown = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
    assert _shown and " object at 0x" not in _shown, _shown
"""


def script(page: str) -> str:
    """Return the cells as one program, in which what a notebook would show is shown."""
    program = ast.parse(SHOW)
    for cell in blocks(page, "python"):
        body = ast.parse(cell).body
        if body and isinstance(last := body[-1], ast.Expr):
            last.value = ast.Call(ast.Name("_show", ast.Load()), [last.value], [])
        program.body += body
    return ast.unparse(ast.fix_missing_locations(program))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebook.py").write_text(script(PAGES[name]))
    runpy.run_path("notebook.py", run_name="__main__")


@pytest.mark.parametrize("name", NAMES)
def test_jupytext_takes_it_for_a_notebook(name: str) -> None:
    head = PAGES[name].split("---\n")[1]
    assert "format_name: markdown" in head
    assert "name: python3" in head

"""Pages that are read from top to bottom: their files are written, and what they run prints what they show.

A ``python`` block below a line that ends in a file's name and a colon is that file; any other is a program.  Of an
``sh`` block every line is run that begins with ``p2p-sim``.  A ``text`` block after either shows what it printed:
lines as they come, where ``...`` stands for any lines, and at the end of a line for its rest.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p2p_sim import cli

_BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"`([\w.-]+)`:\n\n\Z")
GAP = "..."


@dataclass(frozen=True)
class Step:
    """One block: ``kind`` is "file", "python", "sh" or "text"; ``name`` is a file's."""

    kind: str
    text: str
    name: str = ""


def steps(page: str) -> list[Step]:
    """Return the blocks of a page in order."""
    found = []
    for block in _BLOCK.finditer(page):
        kind, text = block.groups()
        named = _NAMED.search(page[: block.start()]) if kind == "python" else None
        found.append(Step("file", text, named[1]) if named else Step(kind, text))
    return found


def files(page: str) -> dict[str, str]:
    """Return the files that a page tells its reader to write."""
    return {step.name: step.text for step in steps(page) if step.kind == "file"}


def run(page: str, before: dict[str, str]) -> None:
    """Run a page in the current folder, an empty one, after the files of former pages are written.

    Raises AssertionError where a command fails, or where something else comes out than the page shows.
    """
    for name, text in before.items():
        Path(name).write_text(text)
    printed = ""
    with _importing_here({Path(name).stem for name in before | files(page)}):
        for step in steps(page):
            match step.kind:
                case "file":
                    Path(step.name).write_text(step.text)
                case "text":
                    shows(step.text, printed)
                case _:
                    printed = _printed(step)


def shows(shown: str, printed: str) -> None:
    """Hold what a page shows to what was printed: raises AssertionError with both."""
    lines = [line.rstrip() for line in printed.splitlines()]
    place, gap = 0, True  # what comes before is left out anyway
    for wanted in shown.rstrip().splitlines():
        if wanted.strip() == GAP:
            gap = True
            continue
        ahead = lines[place:] if gap else lines[place : place + 1]
        at = next((i for i, line in enumerate(ahead) if _like(wanted, line)), None)
        assert at is not None, f"shown but not printed: {wanted!r}; printed was\n{printed}"
        place, gap = place + at + 1, False


def _like(wanted: str, line: str) -> bool:
    wanted = wanted.rstrip()
    return line.startswith(wanted[: -len(GAP)]) if wanted.endswith(GAP) else line == wanted


def _printed(step: Step) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if step.kind == "python":
            Path("program.py").write_text(step.text)
            runpy.run_path("program.py", run_name="__main__")
        else:
            for line in step.text.splitlines():
                if line.startswith("p2p-sim "):
                    assert cli.main(shlex.split(line, comments=True)[1:]) == 0, line
    return out.getvalue()


@contextlib.contextmanager
def _importing_here(modules: set[str]) -> Iterator[None]:
    """Let files of the current folder be imported, and forget them afterwards."""
    path = str(Path.cwd())
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)
        for module in modules:
            sys.modules.pop(module, None)

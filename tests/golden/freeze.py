"""``python -m tests.golden.freeze``: compute every entry, say what changed, and write the names that are new.

A name that is frozen is never overwritten unless it is named: ``--replace NAME`` (a name, or the beginning of names
followed by ``*``), which the commit message then explains.  ``--remove-gone`` takes out names that are declared no
more.  ``--table runs`` keeps to one table, ``--only TEXT`` to names that hold a text.

No Ray is started: runs of its backends are computed in this process, which the tests then hold Ray to.
"""

from __future__ import annotations

import argparse
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.golden import commands, frozen
from tests.golden.tables import NAMES, computed


def chosen(name: str, patterns: list[str]) -> bool:
    """Whether a name is one of those that may be replaced."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def renew(table: str, entries: dict[str, Any], options: argparse.Namespace, folder: Path) -> int:
    """Change the entries; return how many differ from what is frozen and were not to be replaced."""
    refused = 0
    for name in NAMES[table]:
        if options.only not in name:
            continue
        found = computed(table, name, folder, here=True)
        if name not in entries:
            print(f"new: {table}: {name}", flush=True)
            entries[name] = found
        elif told := frozen.differences(found, entries[name], relative=0.0):
            if replaced := chosen(name, options.replace):
                entries[name] = found
            kept = frozen.differences(found, entries[name])
            refused += bool(kept)
            word = "replaced" if replaced else "changed, not replaced" if kept else "last digits only"
            print(f"{word}: {table}: {name}", *told[:10], sep="\n    ", flush=True)
    for name in [name for name in entries if name not in NAMES[table]]:
        print(f"gone: {table}: {name}")
        if options.remove_gone:
            del entries[name]
    return refused


def main() -> int:
    """Freeze; exit status 1 if something differs that was not to be replaced."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.freeze", description=__doc__)
    parser.add_argument("--replace", metavar="NAME", action="append", default=[])
    parser.add_argument("--remove-gone", action="store_true")
    parser.add_argument("--table", choices=[*NAMES], action="append")
    parser.add_argument("--only", metavar="TEXT", default="")
    options, refused = parser.parse_args(), 0
    with tempfile.TemporaryDirectory() as folder:
        for table in options.table or NAMES:
            if table == "artefacts":
                commands.prepare(Path(folder))
            entries = frozen.kept(table)
            try:  # what was computed is kept even if the next run is interrupted
                refused += renew(table, entries, options, Path(folder))
            finally:
                frozen.write(table, entries)
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())

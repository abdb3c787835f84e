"""The gallery, docs/gallery.md: what came out of every experiment, from ``experiments/results``, without a run."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import _expected, _made_by
from experiments._common import OWN, VERDICTS, Experiment, read_outcome, write_csv
from p2p_sim.core.errors import InputError
from p2p_sim.report import errata_table, output_files

FOLDER = Path(__file__).parent
KEPT = ("name", "quick", "seconds", "processor_seconds", "drifted", "claims", "plots", "tables", "code")
"""What is published of an outcome."""
OLDEST = ("name", "quick", "seconds", "claims", "plots")
"""What the oldest results have, too."""
LARGEST = 1 << 19
"""Bytes of a table that is published."""
QUICK = "quick_seconds.csv"
_MARK = "\nEXPERIMENT = "

HEAD = """# Gallery: the papers' figures and tables, run again

Each row of the table below is a statement, with a verdict that a script decides from its own numbers. It is a paper's,
unless its place begins with "this project": those are our own, and counted apart.
`python -m experiments --all` runs all scripts again. If it is stopped, the same command resumes. `--only NAME` runs one
script, and `--quick` runs a small version of each. `--workers N` and `--address HOST:PORT` say
[who computes](experiments.md#over-cores-and-over-a-cluster). `python -m experiments --gallery` writes this page from
`experiments/results/` and runs nothing.

- *reproduced*: our numbers agree with the statement, within their errors.
- *reproduced in shape*: the order or the trend agrees.
- *not reproduced*: our numbers contradict the statement.
- *not comparable*: our numbers cannot decide. The paper's data are not available and the trend does not show on what
  stands in, the model learns too little to tell, something else is measured, or the numbers are too uncertain.

A smaller model often stands for the paper's: each reason says so, and "not reproduced" is then said of that model. Data
that stand for the paper's never contradict it.

Each section gives the reason; rows are in `experiments/expected/` and `experiments/results/`. It also gives two times:
that of a full run by one process on two idle cores, and that of the run shown, which may have shared its machine with
other work. "Code" is a fingerprint of what the run computed with;
verdicts may be decided again from its rows by later code. `python -m experiments --gallery` says which results were
found by other code than there is now.
"""


@dataclass(frozen=True)
class Published:
    """Where results are kept that the gallery is built from."""

    results: Path = FOLDER / "results"
    docs: Path = FOLDER.parent / "docs"

    def result(self, name: str) -> dict[str, Any] | None:
        """Return what is published of an experiment; None: nothing.  Raises InputError if it cannot be read."""
        return read_outcome(self.results / f"{name}.json", OLDEST)

    def pictures(self) -> Path:
        """Return the folder of pictures."""
        return self.docs / "figures" / "experiments"

    def take(self, name: str, found: Mapping[str, Any], out: Path) -> bool:
        """Publish what a run left in ``out``; a quick one only where there is nothing better.  Says whether it did."""
        there = self.result(name)
        if there is not None and found["quick"] and not there["quick"]:
            return False
        for folder in (self.results, self.pictures()):
            folder.mkdir(parents=True, exist_ok=True)
        for old in there["plots"] if there else ():
            (self.pictures() / f"{old}.svg").unlink(missing_ok=True)
        for plot in found["plots"]:
            output_files.write(self.pictures() / f"{plot}.svg", (out / f"{plot}.svg").read_bytes())
        for old in there.get("tables", ()) if there else ():
            (self.results / f"{old}.csv").unlink(missing_ok=True)
        for table in found["tables"]:
            self._publish(out / f"{table}.csv")
        kept = {key: found[key] for key in KEPT if key in found}
        output_files.write(
            self.results / f"{name}.json", json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        )
        return True

    def _publish(self, table: Path) -> None:
        """Publish a table of a run, unless expected/ has one of that name; raises InputError if it is large."""
        if _expected.file(table.stem, quick=False).exists():
            return
        content = table.read_bytes()
        if len(content) > LARGEST:
            raise InputError(
                f"{str(table)!r} has {len(content):,} bytes: publish less of it, at most {LARGEST:,}"
            )
        output_files.write(self.results / table.name, content)

    def took(self, seconds: Mapping[str, float]) -> None:
        """Keep how many seconds of all processors each quick run took, when all were made again."""
        rows = [{"name": name, "processor_seconds": each} for name, each in sorted(seconds.items())]
        write_csv(self.results / QUICK, rows)

    def of_other_code(self) -> Iterator[str]:
        """Say of which experiments the rows were found by other code, or other packages, than those here."""
        for name in experiments():
            result = self.result(name)
            if result and not result.get("code"):
                yield f"{name}: what is published does not say which code found it"
            elif result and (changed := _made_by.changed(name, result["code"])):
                yield f"{name}: what is published was found before {', '.join(changed)} changed"

    def write(self) -> list[Path]:
        """Write the gallery, and the errata of the papers beside it; return where they are."""
        pages = {
            "gallery.md": page(experiments(), self), "errata.md": errata_table.page(errata_table.found()),
        }  # fmt: skip
        for name, text in pages.items():
            output_files.write(self.docs / name, text)
        return [self.docs / name for name in pages]


def experiments() -> dict[str, tuple[Experiment, str]]:
    """Return every experiment of this folder and its script's docstring, by name; those of a paper together."""
    found = {}
    for file in sorted(FOLDER.glob("[!_]*.py")):
        if _MARK in file.read_text():
            module = importlib.import_module(f"experiments.{file.stem}")
            found[file.stem] = (module.EXPERIMENT, module.__doc__ or "")
    return dict(sorted(found.items(), key=lambda each: (each[1][0].source, each[0])))


def page(scripts: Mapping[str, tuple[Experiment, str]], published: Published) -> str:
    """Return the gallery as Markdown."""
    results = {name: published.result(name) for name in scripts}
    parts = [HEAD, _totals(list(filter(None, results.values()))), _verdicts(scripts, results)]
    for name, (experiment, text) in scripts.items():
        parts.append("\n".join(_section(experiment, text, results[name])))
    return "\n".join(parts)


def _totals(results: Sequence[Mapping[str, Any]]) -> str:
    claims = [claim for result in results for claim in result["claims"]]
    own = [claim for claim in claims if claim["where"].startswith(OWN)]
    papers = [claim for claim in claims if claim not in own]
    told = [f"{_count(these, whose)}.\n" for these, whose in ((papers, "the papers"), (own, OWN)) if these]
    return "\n".join(told) or "Nothing has been run yet.\n"


def _count(claims: Sequence[Mapping[str, Any]], whose: str) -> str:
    found = [claim["verdict"] for claim in claims]
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in found)
    return f"Statements of {whose}: {len(found)}, of which {counts}"


def _verdicts(
    scripts: Mapping[str, tuple[Experiment, str]], results: Mapping[str, Mapping[str, Any] | None]
) -> str:
    lines = ["| where | what it says | verdict | experiment |", "|---|---|---|---|"]
    for name, (experiment, _) in scripts.items():
        link, result = f"[{name}](#{name})", results[name]
        if result is None:
            lines.append(f"| {_cell(experiment.source)} | {_cell(experiment.title)} | not run yet | {link} |")
            continue
        mark = " (quick)" if result["quick"] else ""
        for claim in result["claims"]:
            lines.append(
                f"| {_cell(claim['where'])} | {_cell(claim['says'])} | {claim['verdict']}{mark} | {link} |"
            )
    return "\n".join(lines) + "\n"


def _section(experiment: Experiment, text: str, result: Mapping[str, Any] | None) -> Iterator[str]:
    yield f'<a id="{experiment.name}"></a>\n## {experiment.title}\n'
    for plot in result["plots"] if result else ():
        yield f"![{experiment.title}](figures/experiments/{plot}.svg)\n"
    yield f"*{experiment.source}.* {text.strip()}\n"
    yield f"```sh\npython -m experiments.{experiment.name} --out results\n```\n"
    yield f"A full run takes {experiment.takes}; {_ran(result)}.\n"
    for claim in result["claims"] if result else ():
        yield f"- **{claim['verdict']}**, {claim['where']}. *Says:* {_item(claim['says'])}"
        yield f"  *Found:* {_item(claim['found'])}"
        yield f"  *Why:* {_item(claim['why'])}"
    yield ""


def _ran(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "none has been made yet"
    worked = (
        f" ({result['processor_seconds']:.0f} of processor time)" if "processor_seconds" in result else ""
    )
    code = f"; code {_made_by.digest(result['code'])}" if "code" in result else ""
    moved = f"; {len(result['drifted'])} values left their tolerance" if result.get("drifted") else ""
    kind = "quick" if result["quick"] else "full"
    return f"this is a {kind} one, of {result['seconds']:.0f} seconds{worked}{code}{moved}"


def _cell(text: str) -> str:
    """Return text as a cell of a table: on one line, without bars that would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def _item(text: str) -> str:
    """Return text as a sentence of a list."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."

"""What the command line writes: pictures, exports, replays, counts, comparisons, reports, and what a model learns.

Only what a run decides is kept: no times, versions or places, and no texts about sources, which may be reworded.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import warnings
from pathlib import Path
from typing import Any

import p2p_sim
from p2p_sim.cli import main
from tests.golden.cases import EACH, MIXED, SEALED_FAULTS, Case

CHANGING = {
    "seconds", "compute_seconds", "compute_seconds_each", "simulated_seconds", "seconds_an_operation", "path",
    "versions", "peak_memory", "source", "sources", "assumes", "why", "notes", "note", "cautions", "hidden",
    "format", "out", "directory", "title", "told", "promises",
}  # fmt: skip
"""Keys of JSON documents that hold what is measured, where it lies, and words about it."""

SECTIONS = ("## Setting", "## What travelled")
"""Parts of a report in Markdown that hold nothing measured."""

SAVED: dict[str, Case] = {
    "peers": EACH["peer-to-peer"].on(trace="full"),
    "other": Case(EACH["peer-to-peer"].protocol, EACH["peer-to-peer"].people, {"trace": "full"}, seed=8),
    "bare": EACH["peer-to-peer"],
    "faulty": EACH["peer-to-peer"].on(trace="full", faults=list(MIXED)),
    "shuffle": EACH["encrypted-shuffle"].on(trace="full"),
    "walk": EACH["network-shuffle"].on(trace="full", faults=list(SEALED_FAULTS)),
    "sample": EACH["peer-permutation"].on(trace="sample=30"),
    "bags": EACH["label-proportions"].on(trace="full", costs=True),
}
"""Runs that the commands look at, by the folder they lie in."""

_RUNS = {
    "peer-to-peer": "peer-to-peer --users 60 --cluster-size 10 --alpha 0.1 --seed 3 --trace counts --json",
    "encrypted-shuffle": "encrypted-shuffle --users 60 --cluster-size 20 --epsilon 2 --seed 3 --json",
    "network-shuffle, edges": "network-shuffle --users 6 --graph edges.csv --steps 2 --seed 3 --json",
    "label-proportions": "label-proportions --users 40 --cluster-size 20 --bag-size 5 --seed 3 --json",
}
_DATA = {
    "peer-to-peer": "peer-to-peer --data digits --alpha 0.05 --theta 0.5 --clusters 4 --seed 3",
    "randomized-response": "randomized-response --data breast-cancer --epsilon 2 --seed 4",
    "label-proportions": "label-proportions --data breast-cancer --bag-size 8 --seed 5",
    "encrypted-shuffle": "encrypted-shuffle --data breast-cancer --clusters 3 --epsilon 2 --seed 6",
}

LEARNT: dict[str, str] = {f"learning/{name}": f"run {words} --json" for name, words in _DATA.items()}
"""Accuracies of models trained on what was released."""

COMMANDS: dict[str, str] = {
    **{f"run/{name}": f"run {words}" for name, words in _RUNS.items()},
    **{f"stats/{name}": f"trace stats {name} --json" for name in SAVED},
    **{f"replay/{name}": f"replay {name} --user 17" for name in SAVED},
    **{
        f"report/{name}, json": f"report {name} --format json" for name in ("peers", "faulty", "bags", "walk")
    },
    **{f"report/{name}, md": f"report {name} --format md" for name in ("peers", "faulty", "shuffle")},
    **{f"show/{name}, learner": f"trace show {name} --as learner --json" for name in SAVED},
    "show/peers, user": "trace show peers --as user:17 --json",
    "show/shuffle, wire": "trace show shuffle --as shuffler+wire --channels encrypted --json",
    "show/peers, csv": "trace show peers --kind report --format csv",
    "replay/peers, json": "replay peers --user 3 --user 4 --json",
    "diagram/peers, user 17, svg": "trace diagram peers --user 17",
    "diagram/peers, user 17, as learner": "trace diagram peers --user 17 --as learner",
    "diagram/peers, all, mermaid": "trace diagram peers --limit 40 --format mermaid",
    "diagram/shuffle, user 3, mermaid": "trace diagram shuffle --user 3 --format mermaid",
    "diagram/faulty, user 17, svg": "trace diagram faulty --user 17",
    "diagram/bags, all": "trace diagram bags",
    "export/peers, graphml": "trace export peers --format graphml --user 17",
    "export/walk, graphml": "trace export walk --format graphml",
    "export/peers, perfetto": "trace export peers --format perfetto --user 17",
    "export/shuffle, perfetto": "trace export shuffle --format perfetto --limit 100",
    "cone/peers": "trace cone peers --message {report} --json",
    "cone/faulty": "trace cone faulty --message {report} --json",
    "cone/shuffle": "trace cone shuffle --message {mixed} --json",
    "diff/peers, other": "diff peers other --json",
    "diff/peers, faulty": "diff peers faulty --json",
    "diff/peers, bare": "diff peers bare --json",
    **LEARNT,
}


def prepare(folder: Path) -> None:
    """Make the runs that the commands look at, in a folder."""
    for name, case in SAVED.items():
        p2p_sim.run(case.protocol, case.people(), seed=case.seed, **case.how).save(folder / name)
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,4\n4,5\n5,0\n0,3\n")


def _first(run: str, kind: str) -> str:
    """Return the id of the first message of a kind, as ``trace show`` has it."""
    found = p2p_sim.load(run).messages(kind)
    return ":".join([kind, *(str(int(found[name][0])) for name in ("round", "sender", "recipient", "seq"))])


def outcome(name: str, folder: Path) -> dict[str, Any]:
    """Run a command in a prepared folder and return its exit status and what of its output is kept."""
    words = COMMANDS[name].split()
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        words = [_first(words[2], word[1:-1]) if word.startswith("{") else word for word in words]
        place = ["--out", f"made/{name.replace('/', '-')}"] if words[0] == "run" else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = main([*words, *place])
    text = out.getvalue()
    if name in LEARNT:
        return {"status": status, "accuracy": _numbers(json.loads(text)["accuracy"])}
    return {"status": status, **_kept(text, words)}


def _kept(text: str, words: list[str]) -> dict[str, Any]:
    """Return hashes: by key of a JSON document, by section of a page, or of the whole text."""
    if "--json" in words or "json" in words:
        document = _steady(json.loads(text))
        document = document if isinstance(document, dict) else {"list": document}
        return {name: _sha(json.dumps(value)) for name, value in document.items()}
    if "md" in words:
        parts = dict(zip(SECTIONS, (_section(text, title) for title in SECTIONS), strict=True))
        return {title: _sha(part) for title, part in parts.items()}
    return {"lines": text.count("\n"), "text": _sha(text)}


def _steady(value: Any) -> Any:
    """Return a JSON value without what changes from machine to machine or is mere words."""
    if isinstance(value, dict):
        return {name: _steady(part) for name, part in value.items() if name not in CHANGING}
    return [_steady(part) for part in value] if isinstance(value, list) else value


def _numbers(value: Any) -> Any:
    """Return a JSON value without texts and times."""
    if isinstance(value, dict):
        kept = {name: _numbers(part) for name, part in value.items() if name not in CHANGING}
        return {name: part for name, part in kept.items() if not isinstance(part, str)}
    return [_numbers(part) for part in value] if isinstance(value, list) else value


def _section(text: str, title: str) -> str:
    _, found, after = text.partition(title + "\n")
    assert found, f"no section {title!r}"
    return after.partition("\n## ")[0]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

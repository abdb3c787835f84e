"""Runs whose notes were altered: the note is named, and what is allowed; only notes of a page are checked."""

from __future__ import annotations

import json
import math
import shutil

import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.report import report_content
from protocols import PeerToPeer
from tests.report.conftest import RUNS, manifest

ALTERED = {
    "privacy": (
        lambda notes: notes.update(privacy=[1]),
        r"notes.privacy = \[1\]: must be a valid dictionary",
    ),
    "no views": (lambda notes: notes["privacy"].pop("views"), "it lacks 'views' at notes.privacy"),
    "a theorem": (
        lambda notes: notes["privacy"]["views"][0]["theorems"][0].update(holds="yes"),
        r"notes.privacy.views.0.theorems.0.holds = 'yes': must be a valid boolean",
    ),
    "no number": (
        lambda notes: notes["privacy"]["views"][1]["exact"].update(epsilon=math.nan),
        "notes.privacy.views.1.exact.epsilon = nan",
    ),
    "accuracy": (
        lambda notes: notes["accuracy"].update(accuracy_true=True),
        "notes.accuracy.accuracy_true = True: must be a valid number",
    ),
    "a word for a number": (
        lambda notes: notes["privacy"].update(delta="small"),
        "notes.privacy.delta = 'small': must be a number, or 'inf' or '-inf'",
    ),
    "a metric": (
        lambda notes: notes["accuracy"]["metrics"]["accuracy_true"].update(auc="high"),
        "notes.accuracy.metrics.accuracy_true.auc = 'high': must be a valid number",
    ),
    "costs": (
        lambda notes: notes["costs"]["roles"][1].pop("operations"),
        "it lacks 'operations' at notes.costs.roles.1",
    ),
    "clusters": (lambda notes: notes.update(clusters={"count": 1}), "it lacks 'origin' at notes.clusters"),
    "data": (lambda notes: notes.update(data="x" * 99), r"notes.data = 'x{56}\.\.\."),
    "defaults": (lambda notes: notes.update(defaults=3), "notes.defaults = 3: must be a valid list"),
    "command": (
        lambda notes: notes.update(command="p2p-sim run"),
        "notes.command = 'p2p-sim run': must be a valid list",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("alter", "named"), ALTERED.values(), ids=ALTERED.keys())
def test_what_was_altered_is_named(runs, tmp_path, alter, named):
    shutil.copytree(runs / "peers", tmp_path / "peers")
    told = manifest(tmp_path / "peers")
    alter(told["notes"])
    (tmp_path / "peers" / "run.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match=rf"peers/run.json' (was altered.*\(|is damaged: ){named}"):
        report_content.documents([str(tmp_path / "peers")])


@pytest.mark.parametrize("name", RUNS)
def test_other_notes_are_nobodys_business(runs, tmp_path, name):
    shutil.copytree(runs / name, tmp_path / name)
    told = manifest(tmp_path / name)
    told["notes"]["mine"] = [1, {"two": None}]
    (tmp_path / name / "run.json").write_text(json.dumps(told))
    assert report_content.documents([str(tmp_path / name)])["runs"][0]["run"] == name


def test_messages_that_were_altered_are_named_though_the_page_shows_none(tmp_path):
    people = Population.synthetic(users=60, cluster_size=10, seed=2)
    p2p_sim.run(PeerToPeer(0.1), people, trace="full", out=tmp_path / "run", seed=0)
    file = sorted((tmp_path / "run/messages").rglob("*.parquet"))[-1]
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 1
    for content in (whole, whole[:-9]):
        file.write_bytes(content)
        with pytest.raises(InputError, match=rf"the trace is damaged.*{file.name}"):
            report_content.documents([str(tmp_path / "run")])

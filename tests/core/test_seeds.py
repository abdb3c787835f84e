"""Seeds: fresh unless given, kept so that a run can be repeated, and refused where they are left out but guessable."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import SEED_LIMIT, stream, words
from p2p_sim.learning import experiment
from p2p_sim.render.web.messages import Place
from p2p_sim.render.web.page import export
from p2p_sim.report import report_content
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.rundir import integrity, manifest
from p2p_sim.rundir.run_directory import LazyRun
from protocols import PeerToPeer

USERS, SIZE = 300, 30
PEOPLE = Population.synthetic(users=USERS, cluster_size=SIZE, seed=1)
LONG = 13_835_058_055_282_163_712
NOT_SECRET = [0, 7, 20_261_128, int(time.mktime((2026, 11, 28, 0, 0, 0, 0, 0, 0))) * 10**9, seeds.LEAST - 1]


def run(**how: Any) -> p2p_sim.Run:
    return p2p_sim.run(PeerToPeer(0.3), PEOPLE, trace="full", **how)


def found(run: Any, tried: range) -> int | None:
    """Try seeds until one says whom the first eight users asked, as somebody who has nothing but messages would."""
    asks = run.messages("ask")
    peers = asks["recipient"][np.argsort(asks["sender"])][:8]
    key, first = stream("user", "peer", 0), np.arange(8) // SIZE * SIZE
    for seed in tried:
        guess = [(int(word) * SIZE) >> 64 for word in words(seed, key, 0, 8)]
        if (guess + first == peers).all():
            return seed
    return None


def test_two_runs_share_no_noise_and_either_can_be_repeated() -> None:
    one, other = run(), run()
    assert one.seed_source == other.seed_source == "fresh"
    assert one.seed != other.seed
    assert one.digest != other.digest
    again = run(seed=one.seed)
    assert (again.digest, again.seed, again.seed_source) == (one.digest, one.seed, "given")
    assert type(one.seed) is int
    assert seeds.LEAST <= one.seed < SEED_LIMIT


def test_whatever_runs_a_protocol_takes_a_fresh_seed() -> None:
    pairs = [p2p_sim.paired(PeerToPeer(0.1), PEOPLE, change=3) for _ in range(2)]
    for pair in pairs:
        assert pair.runs[0].seed == pair.runs[1].seed
    made = [experiment.simulate(PeerToPeer(0.1), 40, cluster_size=20) for _ in range(2)]
    learnt = [experiment.learn(PeerToPeer(0.1), "breast-cancer", model="none").run for _ in range(2)]
    runs = [*(pair.runs[0] for pair in pairs), *made, *learnt]
    assert len({each.seed for each in runs}) == len(runs)
    assert {each.seed_source for each in made + learnt} == {"fresh"}
    again = experiment.learn(PeerToPeer(0.1), "breast-cancer", model="none", seed=learnt[0].seed).run
    assert again.digest == learnt[0].digest


def test_fresh_seeds_fill_their_range() -> None:
    """No bit is the same in all of 512 seeds: for the second highest, 1 twice out of three times, by chance 1e-90."""
    drawn = [int(seeds.fresh()) for _ in range(512)]
    assert all(seeds.LEAST <= check_seed(seed) < SEED_LIMIT for seed in drawn)
    assert np.bitwise_or.reduce(np.array(drawn, np.uint64)) == 2**64 - 1
    assert np.bitwise_and.reduce(np.array(drawn, np.uint64)) == 0


def test_the_source_is_kept(tmp_path: Path) -> None:
    assert p2p_sim.load(run().save(tmp_path / "fresh")).seed_source == "fresh"
    assert p2p_sim.load(run(seed=5).save(tmp_path / "given")).seed_source == "given"
    written = run(out=tmp_path / "out")
    assert p2p_sim.load(tmp_path / "out").seed == written.seed
    assert p2p_sim.load(tmp_path / "out").seed_source == "fresh"


@pytest.mark.parametrize("seed", NOT_SECRET)
def test_a_seed_that_could_be_guessed_is_not_left_out(seed: int, tmp_path: Path) -> None:
    made = run(seed=seed)
    for leave_out in (
        lambda: made.save(tmp_path / "bare", population=False),
        lambda: export(made, "a run", VIEW_FUNCTIONS, Place(cluster=0)),
        lambda: export(LazyRun(made.save(tmp_path / "whole")), "a run", VIEW_FUNCTIONS, Place(cluster=0)),
    ):
        with pytest.raises(
            InputError, match=rf"seed = {seed}: .* might be guessed.* run again without a seed"
        ):
            leave_out()
    assert not (tmp_path / "bare").exists()


def test_dates_and_clocks_are_below_the_least() -> None:
    assert time.time_ns() < seeds.LEAST
    assert int(date.today().strftime("%Y%m%d")) < seeds.LEAST


def test_what_the_refusal_advises_works(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        run(seed=5).save(tmp_path / "bare", population=False)
    program = str(refused.value).partition("python3 -c '")[2].partition("'")[0]
    for number in range(8):
        printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        run(seed=int(printed.stdout)).save(tmp_path / f"given-{number}", population=False)
    run().save(tmp_path / "fresh", population=False)


@pytest.mark.parametrize("how", [{}, {"seed": LONG}])
def test_a_folder_without_its_seed_can_be_handed_on(how: dict[str, int], tmp_path: Path) -> None:
    run(**how).save(tmp_path / "bare", population=False)
    loaded = p2p_sim.load(tmp_path / "bare")
    assert loaded.seed is None
    loaded.save(tmp_path / "copy", population=False)
    for name in ("bare", "copy"):
        assert "asks no server" in export(LazyRun(tmp_path / name), name, VIEW_FUNCTIONS, Place(user=3))


def test_a_folder_that_does_not_say_where_its_seed_came_from(tmp_path: Path) -> None:
    run().save(tmp_path / "old", population=False)
    file = tmp_path / "old" / "run.json"
    told = integrity.bare(json.loads(file.read_text()))
    told["seed_source"] = None
    file.write_text(json.dumps(told))
    loaded = p2p_sim.load(tmp_path / "old")
    assert loaded.seed_source is None
    for leave_out in (
        lambda: loaded.save(tmp_path / "copy", population=False),
        lambda: export(LazyRun(tmp_path / "old"), "old", VIEW_FUNCTIONS, Place(cluster=0)),
        lambda: report_content.documents([str(tmp_path / "old")], seed=False),
    ):
        with pytest.raises(InputError, match="not known to be a fresh one"):
            leave_out()


@pytest.mark.parametrize(("how", "secret"), [({}, True), ({"seed": LONG}, False)])
def test_a_run_that_was_cut_off(how: dict[str, int], secret: bool, tmp_path: Path) -> None:
    run(**how, out=tmp_path / "cut")
    (tmp_path / "cut" / "run.json").unlink()
    cut = LazyRun(tmp_path / "cut")
    assert cut.cut_off
    assert manifest.read(tmp_path / "cut/messages")["seed_source"] == ("fresh" if secret else "given")
    if secret:
        assert "asks no server" in export(cut, "cut", VIEW_FUNCTIONS, Place(user=3))
    else:
        with pytest.raises(InputError, match="not known to be a fresh one"):
            export(cut, "cut", VIEW_FUNCTIONS, Place(user=3))


def test_trying_seeds_finds_one_that_was_given_and_no_fresh_one(tmp_path: Path) -> None:
    given = p2p_sim.load(run(seed=20_261_128).save(tmp_path / "given"))
    assert found(given, range(20_261_000, 20_261_200)) == 20_261_128
    bare = p2p_sim.load(run().save(tmp_path / "bare", population=False))
    assert found(bare, range(1000)) is None
    assert found(bare, range(20_261_000, 20_261_200)) is None


def test_a_page_holds_a_large_seed_to_the_last_digit() -> None:
    """JavaScript rounds numbers from 2^53 on, so it is sent as text."""
    from p2p_sim.render.known_run import KnownRun
    from p2p_sim.render.web.overview import overview

    made = run(seed=LONG + 1)
    assert overview(made, "a run", KnownRun.of(made))["seed"] == str(LONG + 1)

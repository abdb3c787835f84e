"""Seeds on the command line: drawn where none is given, printed, and left out of what leaves out the labels."""

from __future__ import annotations

import json
import re
import stat

import pytest

from p2p_sim.core.seeds import LEAST
from tests.cli.conftest import below

SMALL = ("run", "peer-to-peer", "--users", "60", "--cluster-size", "12", "--alpha", "0.3")
BARE = (*SMALL, "--trace", "full", "--no-population")


def seed_of(printed: str) -> int:
    return int(re.search(r"; seed ([0-9]+) \(a fresh one\), backend local", printed)[1])


def test_a_fresh_seed_is_printed_and_gives_the_same_run_again(cli, tmp_path):
    one, other = cli(*SMALL, "--out", "one").out, cli(*SMALL, "--json").json
    assert other["seed_source"] == "fresh"
    seed, kept = seed_of(one), json.loads((tmp_path / "one/run.json").read_text())
    assert LEAST <= seed == kept["seed"] != other["seed"]
    assert kept["digest"] != other["digest"]
    assert f"--seed {seed}" in " ".join(kept["notes"]["command"])
    again = cli(*SMALL, "--seed", seed, "--json").json
    assert (again["digest"], again["seed_source"]) == (kept["digest"], "given")
    assert cli("report", "one", "--json").json["runs"][0]["command"].endswith(f"--seed {seed}")


def test_no_file_of_a_run_without_its_population_holds_the_seed(cli, tmp_path):
    seed = seed_of(cli(*BARE, "--out", "bare").out)
    assert cli("audit", "--run", "bare", "--trials", "200").status == 0
    assert cli("report", "bare").status == 0
    forms = [
        str(seed).encode(),
        f"{seed:x}".encode(),
        *(seed.to_bytes(8, order) for order in ("little", "big")),
    ]
    files = below(tmp_path / "bare")
    assert {"run.json", "audit.json", "report.html", "messages/manifest.json"} <= files.keys()
    for name, content in files.items():
        assert not any(form in (content or b"") for form in forms), name
        assert str(seed) not in name


@pytest.mark.parametrize("seed", [0, 20_261_128, 1_795_824_000_000_000_000])
def test_a_seed_that_could_be_guessed_is_refused_before_any_work(cli, tmp_path, seed):
    done = cli(*BARE, "--seed", seed)
    assert (done.status, done.out) == (2, "")
    assert f"seed = {seed}: --no-population withholds the seed, but this one might be guessed" in done.err
    assert list(tmp_path.iterdir()) == []
    assert cli(*BARE, "--seed", LEAST + seed).status == 0


def test_pages_that_leave_the_seed_out(cli, tmp_path):
    assert cli(*SMALL, "--seed", "5", "--out", "short").status == 0
    assert cli(*SMALL, "--out", "fresh").status == 0
    for words in (
        ("trace", "serve", "--export", "page.html", "--cluster", 1),
        ("report", "--no-seed", "--out", "page.html"),
    ):
        done = cli(*words, "short")
        assert done.status == 2
        assert "seed = 5" in done.err
        assert not (tmp_path / "page.html").exists()
        assert cli(*words, "fresh").status == 0
        assert (
            str(json.loads((tmp_path / "fresh/run.json").read_text())["seed"])
            not in (tmp_path / "page.html").read_text()
        )
        (tmp_path / "page.html").unlink()


@pytest.mark.slow
def test_a_report_that_tells_a_seed_is_its_owner_s_alone(cli, tmp_path):
    assert cli(*SMALL, "--out", "fresh").status == 0
    for words, private in (((), True), (("--no-seed",), False)):
        for name in ("page.html", "page.md"):
            (tmp_path / name).write_text("an older one, that all may read")
            (tmp_path / name).chmod(0o644)
            form = name.partition(".")[2]
            assert cli("report", "fresh", "--out", name, "--format", form, *words).status == 0
            mode = stat.S_IMODE((tmp_path / name).stat().st_mode)
            assert (mode & 0o077 == 0) == private


SECRET = LEAST + 20_261_129


@pytest.mark.slow
def test_whatever_file_tells_a_seed_is_its_owner_s_alone(cli, tmp_path):
    people = ("--users", 40, "--cluster-size", 10, "--trace", "full")
    commands = (
        ("run", "peer-to-peer", *people, "--seed", SECRET, "--fault", "drop=0.2", "--out", "whole"),
        ("run", "peer-to-peer", *people, "--seed", SECRET, "--out", "second", "--alpha", 0.2),
        ("run", "peer-to-peer", *people, "--seed", SECRET, "--no-population", "--out", "bare"),
        ("audit", "--run", "second", "--trials", 200, "--seed", SECRET),
        ("report", "whole"), ("report", "second", "--figures", "figures", "--out", "page.html"),
        ("report", "whole", "second", "--format", "md", "--out", "two.md"),
        ("report", "second", "--format", "json", "--out", "page.json"),
        ("report", "second", "--no-seed", "--out", "open.html"),
        ("trace", "serve", "second", "--export", "served.html"),
        ("trace", "diagram", "second", "--out", "d.svg"), ("trace", "diagram", "second", "--json", "--out", "d.json"),
        ("trace", "diagram", "bare", "--format", "mermaid", "--out", "d.mermaid"),
        ("trace", "export", "second", "--format", "perfetto", "--out", "e.json"),
        ("trace", "export", "second", "--format", "graphml", "--out", "e.graphml"),
    )  # fmt: skip
    for words in commands:
        assert cli(*words).status == 0, words
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    telling = {name for name, path in files.items() if str(SECRET).encode() in path.read_bytes()}
    assert telling == {
        "whole/run.json", "second/run.json", "second/audit.json", "whole/report.html",
        "page.html", "two.md", "page.json",
    }  # fmt: skip
    assert {name for name in telling if stat.S_IMODE(files[name].stat().st_mode) & 0o077} == set()
    closed = {name for name, path in files.items() if not stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert closed == telling | {"whole/population.parquet", "second/population.parquet"}

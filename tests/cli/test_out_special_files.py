"""``--out``, ``--export`` and ``--plot`` where there is no plain file: nothing but files is ever replaced.

Devices are made in the test's own folder; those of the machine are never written to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.report import output_files
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.special_files import (
    FifoReader,
    dangling_symlink,
    full_device,
    names_in,
    nonempty_folder,
    null_device,
    symlink_loop,
    unix_socket,
)
from tests.tiny import people

ACCOUNT = ("account", "randomized-response", "--epsilon", "1", "--users", "10", "--view", "wire")
VERBS = {
    "diagram": ("trace", "diagram", "r", "--user", "3", "--out"),
    "export": ("trace", "export", "r", "--format", "graphml", "--out"),
    "report": ("report", "r", "--out"),
    "page": ("trace", "serve", "r", "--export"),
    "plot": (*ACCOUNT, "--plot"),
    "risk": ("attack", "randomized-response", "--epsilon", "1", "--users", "10", "--eta", "prior", "--plot"),
}
NAME = "place.svg"  # an ending that --plot takes

verbs = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("made") / "r"
    return p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full").save(at)


@pytest.fixture
def run(made, tmp_path):
    """A run is in the folder r; anything else there is a test's."""
    (tmp_path / "r").symlink_to(made)
    return made


@pytest.mark.slow
@verbs
def test_a_device_is_written_into(cli, run, verb, tmp_path):
    place = null_device(tmp_path / NAME)
    before = place.stat()
    done = cli(*verb, NAME)
    assert (done.status, "error" in done.err) == (0, False)
    after = place.stat()
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_rdev, after.st_mode) == (before.st_ino, before.st_rdev, before.st_mode)
    assert names_in(tmp_path) == {NAME}


@pytest.mark.slow
@verbs
def test_a_full_device_is_reported(cli, run, verb, tmp_path):
    place = full_device(tmp_path / NAME)
    done = cli(*verb, NAME)
    assert (done.status, done.out) == (2, "")
    assert f"'{NAME}' cannot be written (No space left on device)" in done.err
    assert stat.S_ISCHR(place.stat().st_mode)


@pytest.mark.slow
@verbs
def test_a_fifo_is_written_into(cli, run, verb, tmp_path):
    assert cli(*verb, "plain.svg").status == 0
    os.mkfifo(tmp_path / NAME)
    reader = FifoReader(tmp_path / NAME)
    done = cli(*verb, NAME)
    found = reader.end()
    assert (done.status, len(found)) == (0, (tmp_path / "plain.svg").stat().st_size)
    assert stat.S_ISFIFO((tmp_path / NAME).stat().st_mode)
    assert names_in(tmp_path) == {NAME, "plain.svg"}


@pytest.mark.slow
@verbs
def test_a_fifo_that_nobody_reads_is_not_waited_for(cli, run, verb, tmp_path):
    os.mkfifo(tmp_path / NAME)
    done = cli(*verb, NAME)
    assert (done.status, done.out) == (2, "")
    assert f"'{NAME}' is a FIFO that nobody reads: start its reader first" in done.err
    assert stat.S_ISFIFO((tmp_path / NAME).stat().st_mode)


def test_a_fifo_whose_reader_goes_away(tmp_path):
    os.mkfifo(tmp_path / NAME)
    reader = FifoReader(tmp_path / NAME, limit=1)
    with pytest.raises(InputError, match=rf"{NAME}' was not read to its end: start its reader again"):
        output_files.write(tmp_path / NAME, b"x" * (1 << 22))
    assert reader.end()[:1] == b"x"


@pytest.mark.slow
@verbs
def test_a_link_is_followed_and_stays(cli, run, verb, tmp_path):
    old = "old" + (
        ".graphml" if "graphml" in verb else ".html" if {"report", "serve"} & set(verb) else ".svg"
    )
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / old).write_text("old")
    (tmp_path / "hop").symlink_to(f"there/{old}")
    (tmp_path / NAME).symlink_to("hop")
    assert cli(*verb, NAME).status == 0
    assert (tmp_path / NAME).is_symlink()
    assert (tmp_path / "hop").is_symlink()
    assert len((tmp_path / "there" / old).read_bytes()) > 100
    assert names_in(tmp_path) == {NAME, "hop", "there"}
    assert names_in(tmp_path / "there") == {old}


@verbs
def test_what_a_link_leads_to_is_made(cli, run, verb, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / NAME).symlink_to("there/new.svg")
    assert cli(*verb, NAME).status == 0
    assert (tmp_path / NAME).is_symlink()
    assert (tmp_path / "there/new.svg").stat().st_size > 100


WRONG = {
    "loop": (symlink_loop, "is a link in a circle"),
    "dangling": (dangling_symlink, "give a file in a folder that exists"),
    "folder": (nonempty_folder, "this is a folder"),
    "socket": (unix_socket, "is a socket, and not written to"),
}


@pytest.mark.parametrize(("make", "why"), WRONG.values(), ids=WRONG)
@verbs
def test_the_rest_is_refused_before_any_work(cli, run, verb, make, why, tmp_path):
    place = tmp_path / NAME
    make(place)
    before, kind = below(tmp_path), place.lstat().st_mode
    done = cli(*verb, NAME)
    assert (done.status, done.out) == (2, "")
    assert f"{verb[-1]} '{NAME}'" in done.err
    assert why in done.err
    assert (below(tmp_path), place.lstat().st_mode) == (before, kind)


@verbs
def test_a_block_device_is_refused(cli, run, verb, tmp_path, monkeypatch):
    """None is made here: a disk is not to be tried on."""
    place, honest = tmp_path / NAME, Path.stat
    place.write_text("a disk")

    def disk(path, **how):
        found = honest(path, **how)
        return os.stat_result((stat.S_IFBLK | 0o660, *found[1:])) if path.name == NAME else found

    monkeypatch.setattr(Path, "stat", disk)
    done = cli(*verb, NAME)
    monkeypatch.undo()
    assert (done.status, done.out) == (2, "")
    assert f"{verb[-1]} '{NAME}' is a block device, and not written to" in done.err
    assert place.read_text() == "a disk"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have names on Linux")
def test_an_open_file_is_written_from_where_it_is(tmp_path):
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"before ")
        (tmp_path / "out").symlink_to(f"/dev/fd/{log.fileno()}")
        output_files.write(tmp_path / "out", "page ")
        log.write(b"after")
    assert (tmp_path / "log").read_text() == "before page after"
    assert names_in(tmp_path) == {"log", "out"}


def test_permissions_of_a_file_stay(tmp_path):
    place = tmp_path / NAME
    place.write_text("old")
    for mode in (0o600, 0o640, 0o666):
        place.chmod(mode)
        output_files.write(place, "new")
        assert stat.S_IMODE(place.stat().st_mode) == mode
    place.unlink()
    mask = os.umask(0o027)
    try:
        output_files.write(place, "new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


def test_a_name_as_long_as_can_be(tmp_path):
    output_files.write(output_files.check(str(tmp_path / ("x" * 255))), "page")
    assert names_in(tmp_path) == {"x" * 255}
    with pytest.raises(InputError, match=r"cannot be written \(File name too long\)"):
        output_files.check(str(tmp_path / ("x" * 256)))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(error, tmp_path, monkeypatch):
    place, honest = tmp_path / NAME, os.write
    place.write_text("old")
    left = [3]

    def few(descriptor, data):
        """Write three bytes at first; then the disk is full."""
        if not left:
            raise error
        return honest(descriptor, data[: left.pop()])

    monkeypatch.setattr("p2p_sim.report.output_files.os.write", few)
    says = "^$" if isinstance(error, KeyboardInterrupt) else "No space left on device.: make room, or choose"
    with pytest.raises((InputError, KeyboardInterrupt), match=says):
        output_files.write(place, "new page")
    monkeypatch.undo()
    assert below(tmp_path) == {NAME: b"old"}


def test_short_writes_go_on(tmp_path, monkeypatch):
    honest = os.write
    monkeypatch.setattr(
        "p2p_sim.report.output_files.os.write", lambda descriptor, data: honest(descriptor, data[:3])
    )
    output_files.write(tmp_path / NAME, "a whole page")
    monkeypatch.undo()
    assert (tmp_path / NAME).read_text() == "a whole page"


def test_what_is_put_there_meanwhile_is_not_written(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / NAME)
    (tmp_path / "other").write_text("precious")
    honest = os.open

    def swapped(path, flags, *mode):
        if str(path).endswith(NAME):
            (tmp_path / "other").replace(tmp_path / NAME)
        return honest(path, flags, *mode)

    monkeypatch.setattr("p2p_sim.report.output_files.os.open", swapped)
    with pytest.raises(InputError, match="was replaced by something else just now: try again"):
        output_files.write(tmp_path / NAME, "page")
    monkeypatch.undo()
    assert (tmp_path / NAME).read_text() == "precious"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    rows = "".join(f"{i % 7},{i % 3},{int(i % 5 > 2)}\n" for i in range(60))
    (tmp_path / "own.csv").write_text("a,b,ill\n" + rows)
    return tmp_path / "own.csv"


ATTACK = ("attack", "randomized-response", "--epsilon", "1", "--eta", "prior")
SMALL = ("run", "randomized-response", "--epsilon", "1", "--users", "50", "--out", "r1")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((*ATTACK, "--data", "own.csv", "--label", "ill", "--per-user", "own.csv"), "--per-user 'own.csv'"),
        ((*ATTACK, "--data=own.csv", "--label", "ill", "--per-user=./own.csv"), "--per-user './own.csv'"),
        (("generator", "own.csv", "--label", "ill", "--out", "own.csv"), "--out 'own.csv'"),
        (("report", "r1", "--out", "own.csv"), "is there already, and what is written is no .csv file"),
        (("report", "r1", "--format", "md", "--out", "r1/audit.json"), "belongs to the run"),
        (("attack", "--run", "r1", "--eta", "prior", "--per-user", "r1/population.parquet"), "belongs to"),
        (("attack", "--run", "r1", "--eta", "prior", "--per-user", "r1/graph.parquet"), "belongs to the run"),
        (("account", "randomized-response", "--epsilon", "1", "--plot", "r1/outputs/learner.parquet"), "belongs"),
        (("trace", "diagram", "r1", "--out", "own.csv"), "no .csv file"),
    ],
)  # fmt: skip
def test_no_input_and_no_file_of_a_run_is_written_over(
    cli, tmp_path: Path, examples: Path, words: tuple[str, ...], text: str
) -> None:
    assert cli(*SMALL).status == 0
    before = below(tmp_path)
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert text in done.err
    assert below(tmp_path) == before


def test_ones_own_file_is_written_a_second_time(cli, tmp_path: Path, examples: Path) -> None:
    assert cli(*SMALL).status == 0
    for words in (
        ("report", "r1"),
        ("report", "r1", "--out", "page.html"),
        ("attack", "--run", "r1", "--eta", "prior", "--per-user", "r1/users.csv", "--plot", "r1/risk.svg"),
        ("generator", "own.csv", "--label", "ill", "--out", "made.csv"),
    ):
        assert cli(*words).status == 0
        assert cli(*words).status == 0

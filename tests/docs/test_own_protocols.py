"""The page on protocols of one's own, taken literally: its package is installed, and its commands are run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p2p_sim import catalogue, cli
from tests.cli.conftest import Done
from tests.docs.test_documents import PAGES, ROOT, blocks

Ran = Callable[[str, Path, Path], Done]

PAGE = PAGES["docs/own-protocols.md"]
(TOML,), (MODULE, TESTS), (PRINTED,) = (blocks(PAGE, language) for language in ("toml", "python", "text"))
NEW, PACKAGED, ALONE = (block.splitlines() for block in blocks(PAGE, "bash"))
WITHOUT_LAW = MODULE.partition("\n\ndef law")[0]


def lines(*parts: str) -> int:
    """How many lines say something."""
    return sum(bool(line.strip()) for part in parts for line in part.splitlines())


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Ran]:
    """What a command of the page leaves in a folder; ``path``: where packages are, as if they were installed.

    In this process, as a new one takes a second to import all there is: the module, and which packages are installed,
    are forgotten between commands.
    """

    def forget() -> None:
        sys.modules.pop("forced", None)
        catalogue._installed.cache_clear()

    def run(command: str, folder: Path, path: Path) -> Done:
        monkeypatch.chdir(folder)
        program, *words = shlex.split(command)
        if program == "pip":
            options = "--no-deps --no-build-isolation --disable-pip-version-check --no-index -q --target"
            words = [sys.executable, "-m", program, *words, *options.split(), str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            return Done(done.returncode, done.stdout, done.stderr)
        forget()
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(path))
            status = cli.main(words)
        return Done(status, *capsys.readouterr())

    yield run
    forget()


def all_ran(ran: Ran, commands: list[str], folder: Path, path: Path) -> dict[str, str]:
    """What each command printed, by its verb; all succeed."""
    printed = {}
    for command in commands:
        done = ran(command, folder, path)
        assert done.status == 0, f"{command}: {done.err}"
        assert "warning" not in done.err, f"{command}: {done.err}"
        words = shlex.split(command)
        printed[" ".join(words[1 : 3 if words[1] == "trace" else 2])] = done.out
    return printed


def test_the_package_takes_no_more_than_thirty_lines() -> None:
    assert lines(TOML, MODULE) <= 30
    assert lines(WITHOUT_LAW, *ALONE) <= 30  # from a protocol to its report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the package's two files."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "pyproject.toml").write_text(TOML)
    (place / "forced.py").write_text(MODULE)
    return place


def test_a_protocol_to_begin_with_is_written(ran: Ran, tmp_path: Path) -> None:
    all_ran(ran, NEW, tmp_path, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my_protocol.py", "test_my_protocol.py"]


@pytest.mark.slow
def test_the_packages_tests_pass(folder: Path) -> None:
    (folder / "test_forced.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_forced.py"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert "11 passed" in done.stdout, done.stdout
    assert (
        "its docstring has no *Source:*" in done.stdout
    )  # the page's short class says neither source nor trust


@pytest.mark.slow
def test_an_installed_package_is_known_to_every_verb(ran: Ran, folder: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    assert PACKAGED[0] == "pip install ."
    all_ran(ran, PACKAGED[:1], folder, installed)
    assert (installed / "forced.py").is_file()
    (folder / "forced.py").unlink()  # what is found from now on is what was installed
    told = all_ran(ran, PACKAGED[1:], folder, installed)
    for verb, line in zip(("account", "calibrate", "audit", "replay"), PRINTED.splitlines(), strict=True):
        assert line in told[verb], told[verb]
    assert "nothing is read" in told["account"]  # the registered law's words
    assert "user 17" in told["replay"]
    assert "5 of 100 shown" in told["trace show"]
    assert "1,700" in told["trace stats"]  # bytes: 100 answers of 17
    lower, exact = re.findall(r"^learner +(\S+) +(\S+) ", told["audit"], re.MULTILINE)[0]
    assert 0.3 < float(lower) < float(exact) == 0.9555  # ln 2.6, at δ = 0.1
    page = (folder / "runs/forced/report.html").read_text()
    assert all(words in page for words in ("forced-response", "nothing is read", "consistent", "1.099"))


@pytest.mark.slow
def test_a_file_is_enough_and_its_law_is_found(ran: Ran, folder: Path, tmp_path: Path) -> None:
    (folder / "forced.py").write_text(WITHOUT_LAW)
    told = all_ran(ran, ALONE, folder, tmp_path / "nothing")
    assert PRINTED.splitlines()[0] in told["account"]
    assert "found on the program by enumerating one user's draws" in told["account"]
    assert PRINTED.splitlines()[3] in told["replay"]
    assert "1,700" in told["trace stats"]
    assert "found on the program" in (folder / "mine/report.html").read_text()
    command = ALONE[3].removesuffix(" --protocol forced:ForcedResponse")
    assert command != ALONE[3]
    start = "import sys; from p2p_sim import cli; sys.exit(cli.main())"  # a process that never saw the file
    words = [sys.executable, "-c", start, *shlex.split(command)[1:]]
    refused = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "add --protocol forced:ForcedResponse" in refused.stderr

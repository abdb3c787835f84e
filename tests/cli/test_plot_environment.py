"""What a notebook or a matplotlibrc sets changes no plot: neither whether it is drawn, nor one of its bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from p2p_sim import cli as program

INLINE = "module://matplotlib_inline_that_is_not_here.backend_inline"
RC = "text.usetex: True\nfont.size: 20\naxes.prop_cycle: cycler('color', ['r'])\nsvg.fonttype: path\nsavefig.dpi: 30\n"
ACCOUNT = ("account", "randomized-response", "--epsilon", "1", "--plot")


def called(folder: Path, *commands: tuple[str, ...], **environment: str) -> subprocess.CompletedProcess[str]:
    """``p2p-sim`` in a new process, which loads matplotlib anew; the first command that fails ends it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MPL")}
    code = (
        "import sys\nfrom p2p_sim.cli import main\n"
        f"sys.exit(next(filter(None, (main(words) for words in {commands!r})), 0))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder,
        env={**inherited, "PYTHONPATH": str(Path(program.__file__).parents[2]), **environment},
    )  # fmt: skip


COMMANDS = {
    "run.html": ("report", "run", "--out", "run.html"),
    "a.svg": (*ACCOUNT, "a.svg"),
    "a.png": (*ACCOUNT, "a.png"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and what is drawn where nothing is set."""
    folder = tmp_path_factory.mktemp("made")
    words = ("randomized-response", "--epsilon", "1", "--users", "50", "--seed", "3", "--out", "run")
    done = called(folder, ("run", *words), *COMMANDS.values())
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "names"),
    [
        ("backend", ("a.svg", "a.png")),  # pages are drawn as these are, and take seconds
        ("file here", ("run.html",)),
        ("file elsewhere", ("a.svg",)),
    ],
    ids=("backend", "file here", "file elsewhere"),
)
def test_the_environment_changes_no_plot(how, names, made, tmp_path):
    place = tmp_path / "here"
    place.mkdir()
    environment = {}
    if how == "backend":
        environment["MPLBACKEND"] = INLINE
    else:
        rc = (place if how == "file here" else tmp_path) / "matplotlibrc"
        rc.write_text(RC)
        environment |= {"MATPLOTLIBRC": str(rc)} if how == "file elsewhere" else {}
    shutil.copytree(made / "run", place / "run")
    done = called(place, *(COMMANDS[name] for name in names), **environment)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert (place / name).read_bytes() == (made / name).read_bytes(), name


@pytest.mark.slow
def test_a_matplotlibrc_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "matplotlibrc").write_bytes(b"font.size: \xff\xfe\n")
    done = called(tmp_path, COMMANDS["a.svg"])
    assert done.returncode == 2
    assert "matplotlibrc" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a.svg").exists()


@pytest.mark.slow
def test_a_programs_own_settings_are_left(tmp_path):
    """The backend that MPLBACKEND names still counts for the program that called."""
    code = (
        f"from p2p_sim.cli import main\nassert main({[*ACCOUNT, 'a.svg']!r}) == 0\n"
        "import matplotlib, os\n"
        "print(matplotlib.get_backend(), os.environ['MPLBACKEND'], matplotlib.rcParams['font.size'])"
    )
    (tmp_path / "matplotlibrc").write_text(RC)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "pdf", "PYTHONPATH": str(Path(program.__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout.split()[-3:] == ["pdf", "pdf", "20.0"]

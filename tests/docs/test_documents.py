"""What README and docs say is run: commands, programs, figures."""

from __future__ import annotations

import math
import re
import runpy
import shlex
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim import cli, privacy
from p2p_sim.cli import verbs
from protocols import EncryptedShuffle, PeerToPeer, RandomizedResponse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in PATHS}
IN_ORDER = [
    name for name in PAGES if re.match(r"docs/(tutorial|howto|notebooks)/(?!index)|docs/numbers", name)
]
"""Pages whose blocks build on each other: test_tutorial.py, test_in_order.py and test_notebooks.py run them."""
ALONE = {name: text for name, text in PAGES.items() if name not in IN_ORDER}


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


COMMANDS = list(
    dict.fromkeys(
        line
        for text in ALONE.values()
        for block in blocks(text, "sh")
        for line in block.splitlines()
        if line[:8] == "p2p-sim "
    )
)
PROGRAMS = [
    (name, block)
    for name, text in ALONE.items()
    for block in blocks(text, "python")
    if "import" in block
    and "from forced import" not in block  # test_own_protocols.py has that package, and runs it
]


def test_there_is_something_to_run() -> None:
    assert len(COMMANDS) >= 4
    assert len(PROGRAMS) >= 3


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    links = re.findall(r"\]\((?!http|#)([^)#]+)", PAGES[page])
    assert not [link for link in links if not (folder / link).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_work_as_written(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("page", "program"), PROGRAMS)
def test_programs_work_as_written(
    page: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file in an empty folder; in this process, as importing all there is takes longer than most programs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(program)
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.slow
def test_what_a_page_writes_as_users_a_run_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program of docs/deployment.md that writes files, and the command after it that reads them."""
    page = PAGES["docs/deployment.md"]
    program = next(each for each in blocks(page, "python") if '"users.parquet"' in each)
    command = next(each for each in blocks(page, "bash") if "--population users.parquet" in each)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(program)
    runpy.run_path("program.py", run_name="__main__")
    digests = []
    for kind in ("--population", "--data"):  # the page says that they are the same
        words = shlex.split(command.replace("--population", kind))
        assert cli.main([*words[1:], "--out", kind[2:]]) == 0
        assert "test accuracy" in capsys.readouterr().out
        digests.append(p2p_sim.load(kind[2:]).digest)
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_the_main_job_is_the_readme_s_first_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Installing is left to continuous integration, which runs both commands; here, what follows it."""
    first, second = (line for line in README.splitlines() if line.startswith("python3 -m venv "))
    assert second.endswith("/pip install '.[test]' && .venv/bin/python -m pytest -n 2")
    job = first.rpartition("bin/p2p-sim ")[2]
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(job)) == 0
    printed = capsys.readouterr().out
    figures = blocks(README, "text")[0].strip()
    assert figures in printed, printed


def test_the_readme_is_one_screen() -> None:
    assert len(README.splitlines()) <= 80


def test_the_readme_s_table_has_the_figures_of_the_accountant() -> None:
    """Every user lies with probability 0.1, among 1,000; δ = 1e-6."""
    local = math.log(9)
    protocols = [RandomizedResponse(local), PeerToPeer(alpha=0.1), EncryptedShuffle(local)]
    rows = re.findall(r"^\| `([a-z0-9+*]+)`.*? \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", README, re.MULTILINE)
    assert [view for view, *_ in rows] == ["learner", "user", "learner+3*user", "wire"]
    for view, *told in rows:
        found = [privacy.profile(one, view, cluster_size=1000).epsilon(1e-6) for one in protocols]
        assert told == [f"{epsilon:.4g}" if epsilon >= 1 else f"{epsilon:.3g}" for epsilon in found], view
    together = privacy.profile(EncryptedShuffle(local), "shuffler+learner", cluster_size=1000)
    assert f"together are back at {together.epsilon(1e-6):.4g}." in README.replace("\n", " ")


def test_a_page_shows_the_shipped_protocol() -> None:
    """The program in docs/protocols.md does what the file does: the same lines between the roles."""
    shipped = (ROOT / "protocols" / "peer_to_peer.py").read_text()
    page = PAGES["docs/protocols.md"]
    shown = next(block for block in blocks(page, "python") if "class PeerToPeer" in block)
    for line in shown.splitlines():
        code = " ".join(line.partition("#")[0].split())
        if re.search(r"yield|me\.draw|return|Message\(", code):
            assert code in " ".join(shipped.split()), code


def test_the_page_of_the_command_line_names_every_verb() -> None:
    second = re.findall(r"^\|[^|]*\|([^|]*)\|", PAGES["docs/command-line.md"], re.MULTILINE)
    assert sorted(re.findall(r"`([a-z]+)`", " ".join(second))) == sorted(verbs.VERBS)

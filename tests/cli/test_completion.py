"""TAB after ``p2p-sim``: what real shells offer, by the scripts of ``p2p-sim completion``."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time

import pytest

import protocols
from p2p_sim import cli as program
from p2p_sim.cli import known_words, verbs
from p2p_sim.cli import program as commands
from p2p_sim.learning.data.named_datasets import NAMED

PROTOCOLS = [kind.command_name() for kind in protocols.ALL]
SHELLS = [
    pytest.param(
        shell, marks=pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")
    )
    for shell in known_words.SHELLS
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    for shell in known_words.SHELLS:
        with (folder / shell).open("w") as file, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", file)
            assert program.main(["completion", shell]) == 0
    (folder / "own.csv").write_text("a,y\n1,0\n")
    return folder


def offered(shell, scripts, line):
    """What a shell offers for the last word of a line, which may be empty."""
    words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
    if shell == "bash":
        quoted = " ".join(map(shlex.quote, words))
        said = 'printf "%s\\n" "${COMPREPLY[@]}"'
        code = f"source ./bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _p2p_sim; {said}"
        command = ["bash", "--norc", "--noprofile", "-c", code]
    elif shell == "zsh":
        # outside of the editor, compadd and _files say what they were given
        quoted = " ".join(map(shlex.quote, words))
        code = (
            'source ./zsh; compset() { :; }; _files() { print -l -- *(N); }; compadd() { shift; print -l -- "$@"; }; '
            f"words=({quoted}); CURRENT={len(words)}; _p2p_sim"
        )
        command = ["zsh", "-f", "-c", code]
    else:
        command = ["fish", "--no-config", "-c", f"source ./fish; complete -C {shlex.quote(line)}"]
    done = subprocess.run(command, cwd=scripts, capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    found = [each.partition("\t")[0] for each in done.stdout.splitlines() if each]
    return [
        each
        for each in found
        if each.startswith(words[-1].rpartition("=")[2] if shell == "zsh" else words[-1])
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p2p-sim ", list(verbs.VERBS)),
        ("p2p-sim ru", ["run"]),
        ("p2p-sim run ", PROTOCOLS),
        ("p2p-sim account peer-", ["peer-to-peer", "peer-permutation"]),
        ("p2p-sim run peer-to-peer --al", ["--alpha"]),
        ("p2p-sim run peer-to-peer --backend ", ["local", "shards", "actors"]),
        ("p2p-sim run peer-to-peer --trace ", ["none", "counts", "sample=", "full"]),
        ("p2p-sim run peer-to-peer --seed ", []),
        ("p2p-sim run --data di", ["digits"]),
        ("p2p-sim run peer-to-peer --fault d", ["drop=", "duplicate="]),
        ("p2p-sim trace ", ["show", "stats", "cone", "diagram", "export", "serve"]),
        ("p2p-sim trace show runs/latest --channels ", ["plain", "encrypted"]),
        ("p2p-sim trace diagram runs/latest --format s", ["svg"]),
        ("p2p-sim completion ", list(known_words.SHELLS)),
        ("p2p-sim bench eng", ["engine"]),
        ("p2p-sim compare --protocols peer-", ["peer-to-peer", "peer-permutation"]),
    ],
)
def test_what_is_offered(shell, line, words, scripts):
    assert sorted(offered(shell, scripts, line)) == sorted(words)


@pytest.mark.parametrize("shell", SHELLS)
def test_files_are_offered_where_one_may_stand_and_all_named_sets_beside_them(shell, scripts):
    assert {*NAMED, "own.csv"} <= set(offered(shell, scripts, "p2p-sim run peer-to-peer --data "))
    assert "own.csv" in offered(shell, scripts, "p2p-sim report own")
    assert "own.csv" not in offered(shell, scripts, "p2p-sim run peer-to-peer --backend ")


def test_every_option_of_every_verb_is_offered(scripts):
    for verb in verbs.VERBS:
        if verb != "trace":
            found = offered("bash", scripts, f"p2p-sim {verb} --")
            assert set(commands.options_of(verb)) <= set(found), verb
    shown = offered("bash", scripts, "p2p-sim trace show runs/latest --")
    assert {"--as", "--kind", "--help"} <= set(shown)


def test_parameters_of_another_protocol_are_not_offered(scripts):
    assert "--alpha" not in offered("bash", scripts, "p2p-sim run randomized-response --")
    assert "--epsilon" in offered("bash", scripts, "p2p-sim run randomized-response --")


def test_a_value_after_an_equals_sign_is_completed_as_bash_splits_it(scripts):
    words = ["p2p-sim", "run", "peer-to-peer", "--backend", "=", "sh"]
    code = f"source ./bash; COMP_WORDS=({' '.join(words)}); COMP_CWORD=5; _p2p_sim; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=scripts, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("shards\n", "")


def test_the_tab_key_of_an_interactive_bash(scripts):
    """What is typed is completed, then printed by echo, which is put before it."""
    terminal, its = pty.openpty()
    command = ["bash", "--norc", "--noprofile", "-i"]
    plain = os.environ | {"PS1": "> ", "TERM": "dumb"}
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, cwd=scripts, env=plain, start_new_session=True
    )
    os.close(its)
    try:
        os.write(terminal, b"source ./bash\np2p-sim accou\tpeer-to\t--alp\t\x01echo said: \n")
        seen, end = b"", time.monotonic() + 60
        while b"\nsaid: " not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).replace(b"\r", b"")
        assert b"\nsaid: p2p-sim account peer-to-peer --alpha" in seen, seen
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_another_shell_is_refused(cli):
    done = cli("completion", "bsh")
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: shell 'bsh': give one of bash, zsh, fish; did you mean 'bash'?\n"

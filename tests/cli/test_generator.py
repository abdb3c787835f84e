"""``p2p-sim generator``: a table fitted to public examples that ``--generator`` reads."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def public(tmp_path):
    """A file of public examples, and one of users, of the same columns."""
    rng = np.random.default_rng(1)
    for name, rows in (("public.csv", 60), ("users.csv", 80)):
        y = np.arange(rows) % 2
        lines = [
            f"{'ill' if label else 'well'},{value:.3f},{rng.normal():.3f}"
            for label, value in zip(y, rng.normal(2 * y), strict=True)
        ]
        (tmp_path / name).write_text("\n".join(["state,age,dose", *lines]) + "\n")
    return "public.csv"


@pytest.mark.parametrize(
    "words",
    [
        ("--kind", "kernel", "--bandwidth", 0.2, "--rows", 20),
        ("--kind", "mixture", "--components", 2, "--seed", 3),
    ],
)
def test_what_is_fitted_is_drawn_from(cli, public, words):
    done = cli("generator", public, "--label", "state", *words, "--out", "rows.csv")
    assert done.status == 0, done.err
    assert "60 examples\nGive it as --generator rows.csv" in done.out
    again = cli("generator", public, "--label", "state", *words, "--out", "again.csv")
    assert again.status == 0
    run = ("run", "double-response", "--lam", 0.4, "--data", "users.csv", "--label", "state", "--seed", 1)
    assert cli(*run, "--generator", "rows.csv", "--out", "one").status == 0
    done = cli("generator", public, "--label", "state", *words)
    assert done.status == 0


def test_a_gan_from_the_command_line(cli, public):
    pytest.importorskip("torch")
    done = cli("generator", public, "--label", "state", "--kind", "gan", "--rows", 7, "--steps", 3)
    assert "generator.csv: 14 rows of 2 features" in done.out, done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--kind", "tree"), "--kind 'tree': give kernel, mixture, gan"),
        (("--components", 3), "--components goes with --kind mixture"),
        (("--kind", "mixture", "--rows", 3), "--rows goes with --kind kernel or gan"),
        (("--bandwidth", "wide"), "--bandwidth 'wide'"),
        (("--bandwidth", -1), "bandwidth = -1"),
        (("--out", "rows.txt"), "ends in .csv"),
        (("--labels", 3), "label 2 has no public example"),
        (("--labels", 3, "--positive", "ill"), "--positive ill makes two labels, and --labels 3 keeps all"),
    ],
)
def test_bad_input_is_named(cli, public, words, says):
    done = cli("generator", public, "--label", "state", *words)
    assert (done.status, says in done.err) == (2, True), done.err


def test_data_are_asked_for(cli):
    done = cli("generator")
    assert (done.status, "DATA is missing: give a file of public examples" in done.err) == (2, True)

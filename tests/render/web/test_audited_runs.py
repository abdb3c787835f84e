"""Audits of a run that is looked at."""

from __future__ import annotations

from p2p_sim import cli as program
from tests.render.web.conftest import make, served
from tests.render.web.test_server import told


def test_an_audit_made_meanwhile_is_shown(tmp_path):
    make("peers").save(tmp_path / "run")
    with served(tmp_path / "run") as server:

        def bases():
            return [row["basis"] for row in told(server, "api/figures?view=user:2")["rows"]]

        before = bases()
        assert (
            program.main(["audit", "--run", str(tmp_path / "run"), "--view", "user", "--trials", "200"]) == 0
        )
        assert bases() == [*before, "measured"]

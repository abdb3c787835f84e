"""``p2p-sim calibrate --data``: the promise holds in every cluster of a set."""

from __future__ import annotations

import pytest

from p2p_sim import privacy
from protocols import PeerToPeer
from tests.cli.test_bad_input import refused

pytestmark = pytest.mark.slow

ASKED = ("calibrate", "peer-to-peer", "--epsilon", "1", "--delta", "1e-3")
DATA = ("--data", "a.csv", "--cluster-column", "c")


def test_calibrate_over_the_clusters_of_a_file(cli, tmp_path):
    lines = [f"{i},{i % 2},{0 if i < 10 else 1}" for i in range(40)]
    (tmp_path / "a.csv").write_text("a,y,c\n" + "\n".join(lines) + "\n")
    told = cli(*ASKED, *DATA, "--json").json
    clusters = told["clusters"]
    assert clusters["count"] == 2
    assert told["cluster_size"] is None
    by_size = {
        n: privacy.calibrate(
            PeerToPeer, vary="alpha", cluster_size=n, epsilon=1.0, delta=1e-3, theta=1.0
        ).value
        for n in (clusters["smallest"], clusters["largest"])
    }
    assert told["value"] == pytest.approx(max(by_size.values()), rel=1e-6)
    peer = privacy.profile(PeerToPeer(told["value"]), "user", cluster_size=clusters["smallest"])
    assert told["views"]["user"]["epsilon"] == pytest.approx(peer.epsilon(1e-3), rel=1e-9)
    assert {"user", "user (deviating)", "learner+user", "learner+3*user", "wire", "learner+wire"} == set(
        told["views"]
    )
    text = cli(*ASKED, *DATA).out
    assert f"each of 2 clusters of {clusters['smallest']} to {clusters['largest']}" in text


def test_what_does_not_go_together(cli):
    refused(cli(*ASKED, "--data", "digits", "--cluster-size", "9"), "--data has clusters of its own")
    refused(cli(*ASKED, "--label", "y"), "--label needs --data")

"""Names of views: one reader for the accountant, the enumerator, and whoever else names a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError
from protocols import PeerToPeer

ROLES = ("user", "learner", "shuffler")
PEERS = PeerToPeer(0.2)


def read(text: Any) -> Coalition:
    return Coalition.parse(text, ROLES)


def test_order_and_spaces_do_not_matter() -> None:
    same = {read(text) for text in ("learner+3*user+wire", "wire + learner+3*user", " 3*user+wire+learner ")}
    assert same == {Coalition(frozenset({"learner"}), frozenset(), 3, True)}
    assert read("user") == read("1*user")
    assert read("user:17+2*user").user_count == 3


@pytest.mark.parametrize(
    "text", ["learner", "1*user", "learner+shuffler+user:3+2*user+wire", "user:0", "wire"]
)
def test_what_is_written_is_read_again(text: str) -> None:
    assert str(read(text)) == text
    assert read(str(read(text))) == read(text)


def test_fewer_users_lose_their_names() -> None:
    assert str(read("learner+user:3+2*user").at_most(2)) == "learner+2*user"
    assert read("learner+user:3").at_most(1) == read("learner+user:3")
    assert str(read("2*user").at_most(0)) == ""


def everywhere(view: str) -> list[Callable[[], object]]:
    """Return every call that takes the name of a view."""
    people = Population.from_arrays(y=np.zeros(3, np.bool_))
    return [
        lambda: read(view),
        lambda: privacy.profile(PEERS, view, cluster_size=9),
        lambda: privacy.by_cluster(PEERS, view, people),
        lambda: privacy.enumerate_view(PEERS, people, view=view),
        lambda: privacy.calibrate(
            PeerToPeer, vary="alpha", view=view, cluster_size=9, epsilon=1.0, delta=1e-6
        ),
    ]


@pytest.mark.parametrize(
    "part", ["teacher", "", "users", "learner2", "-1*user", "1.5*user", "user:x", "³*user"]
)
def test_an_unknown_part_is_named_with_the_known_ones(part: str) -> None:
    for call in everywhere(f"learner+{part}"):
        with pytest.raises(InputError) as caught:
            call()
        assert f"view = 'learner+{part}': unknown part {part!r}; parts are learner, " in str(caught.value)
        assert "user, user:17, 3*user, wire, joined by +" in str(caught.value)


@pytest.mark.parametrize(
    "view",
    ["learner+learner", "wire+wire", "user+user", "2*user+user", "0*user", "user:1+user:1", "user+0*user"],
)
def test_repeated_parts_and_no_users_are_refused(view: str) -> None:
    for call in everywhere(view):
        with pytest.raises(InputError, match="name each party once"):
            call()


def test_what_is_no_text_is_refused() -> None:
    for bad in (None, 3, b"learner", "9" * 5000 + "*user"):
        with pytest.raises(InputError, match="unknown part"):
            privacy.profile(PEERS, bad, cluster_size=9)  # type: ignore[arg-type]


def test_a_named_user_counts_as_one_peer_of_the_victim() -> None:
    def delta(view: str) -> float:
        return privacy.profile(PEERS, view, cluster_size=9).delta(0.3)

    assert delta("user:17") == delta("user")
    assert delta("learner+user:17+user:4") == delta("2*user+learner") == delta("user:4+learner+user")
    assert delta("learner+user:17") > delta("learner")
    with pytest.raises(InputError, match="a cluster of 2 has 1 users beside the victim"):
        privacy.profile(PEERS, "user:1+user:2", cluster_size=2)


def test_a_peer_meets_nobody_in_a_cluster_of_one() -> None:
    people = Population.from_arrays(y=np.zeros(6, np.bool_), cluster=[0, 1, 1, 2, 2, 2])
    assert list(privacy.by_cluster(PEERS, "user:2", people)) == ["median", "largest"]
    table = privacy.by_cluster(PEERS, "wire+learner+2*user", people)
    assert [profile.view for profile in table.values()] == [
        "learner+wire", "learner+1*user+wire", "learner+2*user+wire"
    ]  # fmt: skip

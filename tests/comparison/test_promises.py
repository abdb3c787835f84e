"""Targets and constraints, read from text and from mappings."""

from __future__ import annotations

from typing import Any

import pytest

from p2p_sim.comparison import promises
from p2p_sim.comparison.promises import NamedView
from p2p_sim.core.errors import InputError
from protocols import EncryptedShuffle, PeerToPeer, RandomizedResponse


def test_text_and_mappings_are_read_alike() -> None:
    text = promises.read("view=learner,epsilon=1,delta=1e-6", ["user<=2", "coalition(3) ≤ 4"])
    same = promises.read({"view": "learner", "epsilon": 1, "delta": 1e-6}, {"user": 2, "coalition(3)": 4})
    assert text == same
    assert text.text() == "learner <= 1, with user <= 2, learner+3*user <= 4, at δ = 1e-06"


@pytest.mark.parametrize(
    ("text", "kind", "name", "users"),
    [
        ("learner", PeerToPeer, "learner", "curious"),
        ("coalition(3)", PeerToPeer, "learner+3*user", "curious"),
        ("server:shuffler", EncryptedShuffle, "shuffler", "curious"),
        ("server:shuffler+learner", EncryptedShuffle, "shuffler+learner", "curious"),
        ("user (deviating)", PeerToPeer, "user", "deviating"),
        ("learner+wire", RandomizedResponse, "learner+wire", "curious"),
    ],
)
def test_views_by_either_spelling(text: str, kind: Any, name: str, users: str) -> None:
    row = NamedView.read(text).row(kind)
    assert row is not None
    assert (row.name, row.users) == (name, users)


def test_a_party_that_a_protocol_lacks_sees_nothing_of_it() -> None:
    shuffler = NamedView.read("server:shuffler")
    assert shuffler.row(RandomizedResponse) is None
    shuffler.check([RandomizedResponse, EncryptedShuffle])
    with pytest.raises(InputError, match=r"no protocol here has a party 'shufler'; did you mean"):
        NamedView.read("server:shufler").check([RandomizedResponse, EncryptedShuffle])


@pytest.mark.parametrize(
    ("target", "constraints", "message"),
    [
        ("view=learner", [], "epsilon is missing"),
        ("learner", [], "give pairs"),
        ("epsilon=-1", [], "epsilon = -1.0: must be a number, at least 0"),
        ("epsilon=1,delta=2", [], "delta = 2.0"),
        ("epsilon=1,vew=user", [], "unknown 'vew'; did you mean 'view'"),
        ("epsilon=one", [], "epsilon 'one'"),
        ("epsilon=1,delta=0, epsilon=2", [], "epsilon is given twice; leave one out"),
        ("epsilon=1", ["user=2"], "give a view and what it may learn at most, such as user<=2"),
        ("epsilon=1", ["user<=-2"], "must be a number of nats, at least 0"),
        ("epsilon=1", ["user<=inf"], "user"),
        ("epsilon=1", ["user<=2", "user<=1"], "two values for one view contradict each other"),
        ("epsilon=1", ["learner<=0.5"], "learner <= 1 and learner <= 0.5: two values"),
        ("epsilon=1", ["coalition(3)<=4", "learner+3*user<=2"], "two values"),
        ("epsilon=1", ["user (asleep)<=2"], "in brackets stands how users behave"),
    ],
)
def test_bad_promises_are_refused(target: str, constraints: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        promises.read(target, constraints)
    assert message in str(refused.value)

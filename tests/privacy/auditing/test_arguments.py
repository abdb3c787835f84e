"""What cannot be audited is refused by name, with its value and what is allowed, before the first world runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, backends, privacy
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Leaky, Unnamed

GOOD: dict[str, Any] = {
    "protocol": PeerToPeer(0.1, 0.5),
    "view": "learner",
    "cluster_size": 10,
    "delta": 0.01,
}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"view": "nobody"}, "view = 'nobody': unknown part 'nobody'; parts are learner, user, user:17, 3.user, wire"),
    ({"view": "learner+shuffler"}, "unknown part 'shuffler'"),
    ({"view": ""}, "unknown part ''"),
    ({"view": None}, "view = None"),
    ({"view": "learner+learner"}, "name each party once"),
    ({"view": "0*user"}, "at least one"),
    ({"view": "user:10"}, "user 10 is not in a world of 10, whose users are 0 .the victim. to 9"),
    ({"view": "learner+user:0"}, "user 0 is not in a world of 10, whose users are 0 .the victim."),
    ({"view": "user:999999999999"}, "user 999999999999 is not in a world of 10"),
    ({"view": "10*user"}, "10 users look, and a world of 10 has 9 beside the victim; give a larger cluster_size"),
    ({"view": "learner+user:1+9*user"}, "10 users look, and a world of 10 has 9"),
    ({"view": "user", "cluster_size": 1}, "1 users look, and a world of 1 has 0"),
    ({"trials": 6}, "trials = 6: too few to say anything at confidence 0.95; give at least 7"),
    ({"trials": 6, "confidence": 0.9999999}, "trials = 6: too few .* give at least 26"),
    ({"trials": 19, "statistic": "classifier"}, "trials = 19: too few .* give at least 20"),
    ({"trials": 2, "cluster_size": 1_000_000, "epsilon": 0.1, "delta": None}, "trials = 2: too few .* at least 7"),
    *(({"trials": wrong}, "trials = .*: must be a whole number") for wrong in (0, -5, True, 1.5, math.nan, "9", None)),
    *(
        ({"confidence": wrong}, "confidence = .*: must be a number above 0 and below 1")
        for wrong in (0, 1, 0.0, 1.0, -0.1, 95, math.nan, True, "x", None)
    ),
    ({"delta": None}, "epsilon = None and delta = None: give one of the two"),
    ({"epsilon": 0.5}, "epsilon = 0.5 and delta = 0.01: give one of the two"),
    *(
        ({"delta": wrong}, "delta = .*: must be a number, at least 0 and below 1")
        for wrong in (1, 1.0, -1e-9, math.nan, True, "0")
    ),
    *(
        ({"delta": None, "epsilon": wrong}, "epsilon = .*: must be a number, at least 0")
        for wrong in (-1, math.inf, math.nan, True, "1")
    ),
    *(
        ({"composition": wrong}, "composition = .*: must be 'worst' or how many of the 9 other honest users")
        for wrong in (-1, 10, True, "half", 2.0, None)
    ),
    ({"composition": 9, "view": "learner+user"}, "composition = 9: .* how many of the 8 other honest users"),
    ({"channels": "secret"}, "channels = 'secret': must be one of plain, encrypted"),
    ({"statistic": "best"}, "statistic = 'best': must be one of auto, exact, classifier"),
    ({"backend": "gpu"}, "unknown backend 'gpu'; known backends: local, shards, actors"),
    ({"shards": 2}, "shards = 2 means nothing to backend 'local'"),
    ({"address": "auto"}, "address = 'auto' means nothing to backend 'local'"),
    *(({"seed": wrong}, "seed = .*: must be an integer") for wrong in (-1, 2**64, 1.0, True, None)),
    *(({"cluster_size": wrong}, "cluster_size = .*: must be a whole number") for wrong in (0, -3, True, 2.5, "9")),
    ({"cluster_size": None}, "cluster_size = None"),
    ({"cluster_size": 2 * 10**9}, "cluster_size = 2,000,000,000: two worlds have more than 2,147,483,647 users"),
    *(({"false_alarm": wrong}, "false_alarm = .*: must be a number in .0, 1.") for wrong in (0, 1, math.nan, True)),
    *(
        ({"claims": {"mine": wrong}}, r"claims\['mine'\] = .*: must be a number, at least 0")
        for wrong in (-1, math.nan, True, "1", None)
    ),
    ({"claims": {"mine": 1.5}, "delta": None, "epsilon": 0.1}, "1.5: must be a number, at least 0 and at most 1"),
    ({"claims": [0.5]}, "claims = .*: give a dict of names to numbers"),
    *(({"against": wrong}, "against = .*: must be a protocol with its parameters") for wrong in ("x", PeerToPeer, 1)),
    *(({"protocol": wrong}, "protocol = .*: must be a protocol with its parameters") for wrong in (None, PeerToPeer)),
    ({"against": RandomizedResponse(1.0), "statistic": "exact"}, "statistic = 'exact': no law of view 'learner'"),
    (
        {"against": privacy.shuffled_response(10, 1.0), "statistic": "exact"},
        "statistic = 'exact': no law of view 'learner'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), BAD)
def test_bad_input_is_refused_before_anything_runs(
    change: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any) -> Any:
        raise AssertionError("a world ran")

    monkeypatch.setattr(backends, "run", run)
    with pytest.raises(InputError, match=text):
        privacy.audit(**(GOOD | change))


@pytest.mark.parametrize(
    "change",
    [
        {
            "trials": np.int64(500),
            "seed": np.int64(3),
            "confidence": np.float64(0.9),
            "delta": np.float32(0.1),
        },
        {
            "composition": np.int64(4),
            "cluster_size": np.int64(6),
            "seed": 2**64 - 1,
            "claims": {"none": math.inf},
        },
        {"view": "wire + learner+3*user", "channels": "encrypted"},
        {"view": "user:9+user:1"},
    ],
)
def test_good_input_of_unusual_types_is_taken(change: dict[str, Any]) -> None:
    audit = privacy.audit(**(GOOD | {"trials": 500} | change))
    assert 0 <= audit.lower <= audit.cap
    assert not audit.failed


def test_a_server_message_without_its_cluster_is_refused_by_name() -> None:
    """Then nothing tells worlds apart; a number that is no cluster of the run is not taken for one either."""
    with pytest.raises(InputError, match=r"'total' go from server to server, .* give them a field `cluster`"):
        privacy.audit(Unnamed(3, named=False), cluster_size=3, delta=0.0, trials=100)
    with pytest.raises(
        InputError, match=r"'total_of' have a field `cluster` from 7 to 106: it must be the number"
    ):
        privacy.audit(Unnamed(3, named=True), cluster_size=3, delta=0.0, trials=100)


def test_columns_that_only_some_worlds_have_count_0_in_the_others() -> None:
    """A kind of message that one label alone sends is a difference to be found, not an error."""
    audit = privacy.audit(Leaky(1.0), delta=0.0, trials=2000, claims={"budget": 1.0})
    assert audit.verdict == "violated"
    assert audit.lower > 4
    assert audit.lower <= audit.cap

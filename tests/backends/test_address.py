"""Which Ray cluster a run joins: Ray's own rule."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from p2p_sim.backends import Settings, ray_probe
from p2p_sim.backends.ray_probe import probe
from p2p_sim.backends.settings import address_of
from p2p_sim.core.errors import InputError


def test_an_address_that_is_given_wins_then_a_joined_ray_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    joined = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "ray", joined)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert address_of(None) is None
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:1")
    assert address_of(None) == "10.0.0.1:1"
    assert address_of("10.0.0.2:2") == "10.0.0.2:2"
    assert Settings("shards").address == "10.0.0.1:1"
    assert Settings("shards", address="10.0.0.2:2").address == "10.0.0.2:2"
    assert Settings("local").address is None
    monkeypatch.setattr(joined, "is_initialized", lambda: True)
    assert Settings("shards").address is None  # the one that is joined
    assert Settings("shards", address="10.0.0.2:2").address == "10.0.0.2:2"
    monkeypatch.setattr(joined, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert Settings("shards").address is None


def test_an_address_that_is_none_is_named_by_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "garbage")
    with pytest.raises(InputError, match=r"^RAY_ADDRESS = 'garbage'"):
        probe("garbage")
    with pytest.raises(InputError, match=r"^address = 'rubbish'"):
        probe("rubbish")
    for port in ("0", "99999"):
        with pytest.raises(InputError, match=r"give host:port .* \(ports are 1 to 65,535\)"):
            probe(f"localhost:{port}")
    with pytest.raises(
        InputError, match=r"^address = 'nosuch.invalid:1': the name .* does not resolve"
    ) as told:
        probe("nosuch.invalid:1")
    assert "ray start" not in str(told.value)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (["", "slow"], None),
        (["", "InvalidAuthToken"], None),
        (["", ""], "asks nobody for a token"),
        (["slow"], "not as Ray"),
        (["InvalidAuthToken"], "does not take the token"),
    ],
)
def test_a_cluster_is_asked_without_the_token_only_if_all_is_well_with_it(
    says: list[str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long the second answer takes, which is of no use but to find a cluster that is open, does no harm."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    left = list(says)

    def run(*_: object, **__: object) -> SimpleNamespace:
        said = left.pop(0)
        if said == "slow":
            raise subprocess.TimeoutExpired("ray", 1)
        return SimpleNamespace(returncode=int(bool(said)), stderr=said.encode())

    monkeypatch.setattr(ray_probe.subprocess, "run", run)
    monkeypatch.setattr(ray_probe.socket, "create_connection", lambda *_: SimpleNamespace(close=lambda: None))
    if told is None:
        probe("10.0.0.1:1")
    else:
        with pytest.raises(InputError, match=told):
            probe("10.0.0.1:1")
    assert left == []

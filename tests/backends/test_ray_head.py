"""Whether the head of a cluster that a process has joined still answers."""

import socket

import pytest

from p2p_sim.backends import ray_head


def test_a_head_is_lost_once_it_has_not_answered_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(ray_head.time, "monotonic", lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        head = ray_head.Head(address)
        now += 100  # a call may take long: nothing was asked meanwhile
        assert head.lost() is None
    for _ in range(5):
        now += 6
        assert head.lost() is None
    now += 6
    assert head.lost() == f"its head at {address} has not answered for 30 s"


def test_a_head_that_answers_again_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(ray_head.time, "monotonic", lambda: now)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    head = ray_head.Head(f"127.0.0.1:{address[1]}")
    now += 29
    assert head.lost() is None
    with socket.create_server(address):
        now += 29
        assert head.lost() is None
    now += 29
    assert head.lost() is None

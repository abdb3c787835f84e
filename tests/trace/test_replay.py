"""Replays: only what is asked for is kept, whatever ids the users of a closed world have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim.core import InputError
from p2p_sim.core.closed_world import closed_world
from p2p_sim.core.message import USER
from p2p_sim.trace.replay import rerun_world
from tests.contract.cases import PROTOCOLS, people_of

USERS = 40


@pytest.mark.slow
@pytest.mark.parametrize("people", ["contiguous", "scattered", "unclustered"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_of_users_alone_what_they_sent_and_received_is_kept(name: str, people: str) -> None:
    protocol = PROTOCOLS[name]
    population = people_of(protocol, people, USERS)
    run = p2p_sim.run(protocol, population, seed=3, trace="full")
    users = np.array([3, 17])
    world = closed_world(protocol, population, users)
    part, whole = (
        rerun_world(protocol, population, 3, {USER: users}, whole=every) for every in (False, True)
    )
    assert part.world == whole.world == len(world)
    for kind, message in protocol.messages().items():
        columns = run.messages(kind)
        ends = [end for end in ("sender", "recipient") if getattr(message, end) == USER]
        # what servers send each other depends on everybody
        looked_at = ((part, users), (whole, world)) if ends or len(world) == USERS else ((part, users),)
        for past, who in looked_at:
            mine = np.zeros(len(columns["round"]), np.bool_)
            for end in ends:
                mine |= np.isin(columns[end], who)
            if who is world and len(world) == USERS:
                mine[:] = True
            for column, values in columns.items():
                np.testing.assert_array_equal(past.messages[kind][column], values[mine], err_msg=kind)


def test_a_world_of_consecutive_ids_draws_the_same_words(monkeypatch: Any) -> None:
    protocol = PROTOCOLS["peer-to-peer"]
    population = people_of(protocol, "contiguous", USERS)
    life = p2p_sim.run(protocol, population, seed=3).replay(17)
    monkeypatch.setattr("p2p_sim.core.address_book.World.first", None)  # as if they were scattered
    other = p2p_sim.run(protocol, population, seed=3).replay(17)
    assert life.drawn == other.drawn
    for one, two in ((life.sent, other.sent), (life.received, other.received)):
        for kind, columns in one.items():
            for name, column in columns.items():
                np.testing.assert_array_equal(column, two[kind][name])


@pytest.mark.parametrize("people", ["scattered", "unclustered"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_part_of_a_population_is_replayed_by_ids(name: str, people: str) -> None:
    protocol = PROTOCOLS[name]
    whole = people_of(protocol, people, USERS)
    rows = np.arange(USERS)
    if whole.clusters is not None:
        rows = np.flatnonzero(whole.clusters.codes % 2 == 1)
        if whole.graph is not None and protocol.graph_over() == "everybody":
            rows = np.arange(USERS)
    part = whole.part(rows)
    run = p2p_sim.run(protocol, part, seed=3, trace="full")
    for user in rows[[0, -1]].tolist():
        life = run.replay(user)
        for lived, end in ((life.sent, "sender"), (life.received, "recipient")):
            for kind, columns in lived.items():
                told = run.messages(kind)
                mine = told[end] == user
                for column, values in columns.items():
                    np.testing.assert_array_equal(values, told[column][mine], err_msg=kind)
    if len(rows) < USERS:
        stranger = int(np.setdiff1d(np.arange(USERS), rows)[0])
        with pytest.raises(InputError, match=f"user {stranger}: users are .* of them"):
            run.replay(stranger)

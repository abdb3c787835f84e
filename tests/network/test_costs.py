"""Channels and the cost model, on cases computed by hand."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import expon, kstest, uniform

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import Message
from p2p_sim.network import channels
from p2p_sim.network.channels import Distribution
from p2p_sim.network.costs import Work, critical_path, rounds, totals


class Kinds:
    ask = Message("user", "user", "asks")
    report = Message("user", "learner", "reports")
    model = Message("learner", "user", "answers")
    share = Message("shuffler", "learner", "forwards")


MESSAGES = {name: value for name, value in vars(Kinds).items() if isinstance(value, Message)}
LINKS = {
    "user": channels.parse("20ms,8kbit").links(0, 10),  # 1,000 bytes a second
    "learner": channels.parse("5ms,80kbit").links(0, 1, "learner"),
    "shuffler": channels.parse("0ms,8Mbit").links(0, 1, "shuffler"),
}


def seconds(counts, most=None, work=()):
    return critical_path(rounds(counts, MESSAGES, most or {}, work), LINKS)


def test_a_round_of_reports():
    counts = {
        ("report", 1): Count(10, 10, 500)
    }  # 50 bytes each: 50 ms out, 20 ms across, 500 bytes in: 50 ms
    assert seconds(counts, {"report": (1, 1)}) == pytest.approx(0.05 + 0.02 + 0.05)
    assert seconds(counts, {"report": (3, 1)}) == pytest.approx(0.15 + 0.02 + 0.05)


def test_rounds_add_and_parties_of_a_round_do_not():
    counts = {("ask", 1): Count(10, 8, 800), ("report", 2): Count(10, 10, 500)}
    asks = 0.1 + 0.02 + 0.3  # one user sends 100 bytes, one receives three such
    assert seconds(counts, {"ask": (1, 3), "report": (1, 1)}) == pytest.approx(asks + 0.12)
    together = {("ask", 1): Count(10, 8, 800), ("report", 1): Count(10, 10, 500)}
    # a user sends 150 bytes; receiving: users 0.3 s, the learner 0.05 s
    assert seconds(together, {"ask": (1, 3), "report": (1, 1)}) == pytest.approx(0.15 + 0.02 + 0.3)


def test_a_server_sends_and_receives_all():
    assert seconds({("model", 1): Count(10, 10, 1000)}, {"model": (1, 1)}) == pytest.approx(0.1 + 0.005 + 0.1)
    assert seconds({("share", 1): Count(1, 1, 1000)}) == pytest.approx(0.001 + 0.1)


def test_computing_comes_before_sending_and_counts_alone():
    work = [Work("user", 1, "seal", 10, 2, 10.0), Work("learner", 2, "open", 10, 10, 20.0)]
    counts = {("report", 1): Count(10, 10, 500)}
    path = rounds(counts, MESSAGES, {"report": (2, 1)}, work)
    assert critical_path(path, LINKS) == pytest.approx(0.2 + 0.1 + 0.02 + 0.05 + 0.5)
    costs = totals(path)
    assert costs["user"].operations == {"seal": 10}
    assert costs["user"].compute_seconds == pytest.approx(1.0)
    assert (costs["user"].messages_up, costs["user"].bytes_up, costs["user"].bytes_down) == (10, 500, 0)
    assert (costs["learner"].messages_down, costs["learner"].bytes_down) == (10, 500)
    assert critical_path(rounds({}, {}, {}, work), {}) == pytest.approx(0.2 + 0.5), "no link is needed"


def test_totals_add_over_rounds():
    counts = {("ask", number): Count(10, 9, 90) for number in (1, 2, 3)} | {("model", 9): Count(0, 0, 0)}
    work = [Work("user", number, "hash", 5, 1, 1.0) for number in (1, 2)]
    costs = totals(rounds(counts, MESSAGES, {"ask": (1, 2)}, work))
    assert set(costs) == {"user"}
    assert (costs["user"].messages_up, costs["user"].messages_down) == (27, 27)
    assert costs["user"].operations == {"hash": 10}


def test_the_slowest_link_counts():
    links = channels.parse("10-50ms,8-16kbit").links(3, 1000)
    assert 0.045 < links.latency.max() <= 0.05
    assert 1000 <= links.bandwidth.min() < 1020
    wanted = float((100 / links.bandwidth + links.latency).max())
    assert links.sending(100) == wanted
    assert links.receiving(100) == 100 / links.bandwidth.min()


@pytest.mark.parametrize(
    ("most", "work", "text"),
    [
        ({}, [], "lacks kind 'report'"),
        ({"report": (0, 1)}, [], "give 1 or more"),
        ({"report": (1, 1)}, [Work("user", 1, "seal", 1, 2, 1.0)], "most <= count"),
        ({"report": (1, 1)}, [Work("user", 1, "seal", 2, 1, 0.0)], "rate above 0"),
    ],
)
def test_figures_that_are_wrong(most, work, text):
    with pytest.raises(InputError, match=text):
        rounds({("report", 1): Count(10, 10, 500)}, MESSAGES, most, work)


def test_a_role_without_links_is_named():
    path = rounds({("report", 1): Count(10, 10, 500)}, MESSAGES, {"report": (1, 1)})
    with pytest.raises(InputError, match="no links for role 'learner'"):
        critical_path(path, {"user": LINKS["user"]})


def test_channels_from_text():
    channel = channels.parse("1.5ms,0.5Gbit")
    assert channel.latency == Distribution("uniform", 1500, 1500)
    assert channel.bandwidth == Distribution("uniform", 500_000, 500_000)
    assert channels.parse("exp:20ms,5-10Mbit").latency == Distribution("exp", 20_000, 20_000)


def test_links_are_keyed_and_a_larger_population_begins_with_the_same():
    channel = channels.parse("exp:20ms,5-10Mbit")
    few, many, other = channel.links(1, 100), channel.links(1, 1000), channel.links(2, 100)
    assert np.array_equal(few.latency, many.latency[:100])
    assert np.array_equal(few.bandwidth, many.bandwidth[:100])
    assert not np.array_equal(few.latency, other.latency)
    assert not np.array_equal(few.latency, channel.links(1, 100, "learner").latency)


def test_the_exponential_has_its_law():
    """Distances to the continuous laws, against 1e-9; the grid's step is 1/64 of the mean, at most 1/64 of the law."""
    drawn = Distribution("exp", 1_000_000, 1_000_000).draw(5, "latency", 20_000) / 1e6
    assert drawn.min() >= 0
    assert kstest(drawn, expon.cdf).statistic < 1 / 64 + math.sqrt(math.log(2e9) / 2 / 20_000)
    assert kstest(drawn, expon(scale=1.2).cdf).statistic > 1 / 64 + math.sqrt(math.log(2e9) / 2 / 20_000)
    flat = Distribution("uniform", 10, 1_000_009).draw(5, "latency", 20_000)
    assert kstest(flat, uniform(10, 1_000_000).cdf).statistic < 1e-6 + math.sqrt(math.log(2e9) / 2 / 20_000)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("20ms", "give a latency and a bandwidth"),
        ("20,10Mbit", "latency '20' is not read"),
        ("20ms,10MB", "bandwidth '10MB' is not read"),
        ("50-10ms,10Mbit", "ascending"),
        ("0.5us,10Mbit", "whole us"),
        ("-1ms,10Mbit", "not read"),
        ("exp:1-2ms,10Mbit", "not read"),
        ("1ms,exp:10Mbit", "a bandwidth is a number or a range"),
        ("1ms,0kbit", "1kbit or more"),
        ("1ms,9999999999Gbit", "at most"),
        (None, "give a latency"),
    ],
)
def test_text_that_is_no_channel(text, what):
    with pytest.raises(InputError, match=what):
        channels.parse(text)


@given(st.one_of(st.text(), st.from_regex(r"(exp:)?[0-9.-]{0,8}(us|ms|s),[0-9.-]{0,8}(k|M|G)bit")))
def test_any_text_is_a_channel_or_refused(text):
    try:
        links = channels.parse(text).links(0, 3)
    except InputError:
        return
    assert bool((links.latency >= 0).all())
    assert bool((links.bandwidth >= 125).all())


def test_importing_the_network_loads_nothing_heavy():
    code = "import sys, p2p_sim.network.topologies, p2p_sim.network.walks, p2p_sim.network.costs; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "networkx", "pyarrow", "numba"} & {name.split(".")[0] for name in out.stdout.split()}

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
from p2p_sim.costing import NONE, Work, critical_path, rounds, totals
from p2p_sim.network import channels
from p2p_sim.network.channels import Distribution


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


def seconds(counts, most=None, work=NONE, faults=None):
    return sum(leg.seconds for leg in legs(counts, most, work, faults))


def legs(counts, most=None, work=NONE, faults=None):
    return critical_path(rounds(counts, MESSAGES, most or {}, work, faults or {}), LINKS)


def test_a_round_of_reports():
    counts = {
        ("report", 1): Count(10, 10, 500)
    }  # 50 bytes each: 50 ms out, 20 ms across, 500 bytes in: 50 ms
    assert seconds(counts, {("report", 1): (1, 0)}) == pytest.approx(0.05 + 0.02 + 0.05)
    assert seconds(counts, {("report", 1): (3, 0)}) == pytest.approx(0.15 + 0.02 + 0.05)
    (leg,) = legs(counts, {("report", 1): (1, 0)})
    assert (leg.round, leg.sender, leg.recipient, leg.computing) == (1, "user", "learner", 0)
    assert (leg.sending, leg.receiving) == (pytest.approx(0.07), pytest.approx(0.05))


def test_rounds_add_and_parties_of_a_round_do_not():
    counts = {("ask", 1): Count(10, 8, 800), ("report", 2): Count(10, 10, 500)}
    asks = 0.1 + 0.02 + 0.3  # one user sends 100 bytes, one receives three such
    most = {("ask", 1): (1, 3), ("report", 2): (1, 0)}
    assert seconds(counts, most) == pytest.approx(asks + 0.12)
    together = {("ask", 1): Count(10, 8, 800), ("report", 1): Count(10, 10, 500)}
    # a user sends 150 bytes; receiving: users 0.3 s, the learner 0.05 s
    most = {("ask", 1): (1, 3), ("report", 1): (1, 0)}
    assert seconds(together, most) == pytest.approx(0.15 + 0.02 + 0.3)


def test_a_server_sends_and_receives_all():
    model = {("model", 1): Count(10, 10, 1000)}
    assert seconds(model, {("model", 1): (0, 1)}) == pytest.approx(0.1 + 0.005 + 0.1)
    assert seconds({("share", 1): Count(1, 1, 1000)}) == pytest.approx(0.001 + 0.1)


def test_computing_comes_before_sending_and_counts_alone():
    """Ten users take 2 s together, 0.2 s each; the learner is alone."""
    done = {("user", 1, "seal"): 20, ("learner", 2, "open"): 10}
    work = Work(done, {("user", 1): 2.0, ("learner", 2): 0.5}, 10)
    counts = {("report", 1): Count(10, 10, 500)}
    path = rounds(counts, MESSAGES, {("report", 1): (2, 0)}, work)
    one, two = critical_path(path, LINKS)
    assert (one.computing, one.sending, one.receiving) == pytest.approx((0.2, 0.1 + 0.02, 0.05))
    assert (two.round, two.sender, two.computing, two.recipient) == (2, "learner", 0.5, None)
    costs = totals(path)
    assert costs["user"].operations == {"seal": 20}
    assert costs["user"].compute_seconds == pytest.approx(2.0)
    assert (costs["user"].messages_up, costs["user"].bytes_up, costs["user"].bytes_down) == (10, 500, 0)
    assert (costs["learner"].messages_down, costs["learner"].bytes_down) == (10, 500)
    alone = critical_path(rounds({}, {}, {}, work), {})
    assert sum(leg.seconds for leg in alone) == pytest.approx(0.2 + 0.5), "no link is needed"


def test_what_is_lost_costs_the_sender_and_what_is_doubled_the_recipient():
    """Of 14 that travelled 3 were lost, 1 met nobody and 2 were second copies: 12 were sent and 10 came."""
    counts = {("ask", 1): Count(8, 14, 1400)}
    faults = {("lost", "ask", 1): 3, ("undelivered", "ask", 1): 1, ("duplicate", "ask", 1): 2}
    faults |= {("late", "ask", 1): 4, ("lost", "ask", 2): 9, ("lost", "report", 1): 9}
    user = totals(rounds(counts, MESSAGES, {("ask", 1): (2, 3)}, faults=faults))["user"]
    assert (user.messages_up, user.bytes_up) == (12, 1200)
    assert (user.messages_down, user.bytes_down) == (10, 1000)
    assert seconds(counts, {("ask", 1): (2, 3)}, faults=faults) == pytest.approx(0.2 + 0.02 + 0.3)
    nothing = {("ask", 1): Count(0, 5, 500)}
    everything = {("lost", "ask", 1): 5}
    assert seconds(nothing, {("ask", 1): (1, 0)}, faults=everything) == pytest.approx(0.1 + 0.02)


def test_the_slowest_role_is_named():
    counts = {("report", 1): Count(10, 10, 500), ("share", 1): Count(1, 1, 100_000)}
    (leg,) = legs(counts, {("report", 1): (1, 0)})
    assert (leg.sender, leg.sending) == ("shuffler", pytest.approx(0.1))
    assert (leg.recipient, leg.receiving) == ("learner", pytest.approx(10.05))
    (leg,) = legs(counts, {("report", 1): (1, 0)}, Work({}, {("user", 1): 0.9}, 10))
    assert (leg.sender, leg.computing, leg.sending) == ("user", pytest.approx(0.09), pytest.approx(0.07))


def test_totals_add_over_rounds():
    counts = {("ask", number): Count(10, 9, 90) for number in (1, 2, 3)} | {("model", 9): Count(0, 0, 0)}
    work = Work({("user", number, "mask"): 5 for number in (1, 2)})
    most = {("ask", number): (1, 2) for number in (1, 2, 3)}
    costs = totals(rounds(counts, MESSAGES, most, work))
    assert set(costs) == {"user"}
    assert (costs["user"].messages_up, costs["user"].messages_down) == (27, 27)
    assert costs["user"].operations == {"mask": 10}


def test_the_slowest_link_counts():
    links = channels.parse("10-50ms,8-16kbit").links(3, 1000)
    assert 0.045 < links.latency.max() <= 0.05
    assert 1000 <= links.bandwidth.min() < 1020
    wanted = float((100 / links.bandwidth + links.latency).max())
    assert links.sending(100) == wanted
    assert links.receiving(100) == 100 / links.bandwidth.min()


@pytest.mark.parametrize("most", [{}, {("report", 1): (0, 1)}, {("report", 2): (1, 0)}])
def test_most_that_is_missing_is_named(most):
    with pytest.raises(InputError, match=r"most\['report', 1\] does not say how many messages one user sent"):
        rounds({("report", 1): Count(10, 10, 500)}, MESSAGES, most)
    with pytest.raises(
        InputError, match=r"most\['model', 2\] does not say how many messages one user received"
    ):
        rounds({("model", 2): Count(10, 10, 500)}, MESSAGES, most)


def test_a_role_without_links_is_named():
    path = rounds({("report", 1): Count(10, 10, 500)}, MESSAGES, {("report", 1): (1, 0)})
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


@pytest.mark.slow
@given(st.one_of(st.text(), st.from_regex(r"(exp:)?[0-9.-]{0,8}(us|ms|s),[0-9.-]{0,8}(k|M|G)bit")))
def test_any_text_is_a_channel_or_refused(text):
    try:
        links = channels.parse(text).links(0, 3)
    except InputError:
        return
    assert bool((links.latency >= 0).all())
    assert bool((links.bandwidth >= 125).all())


def test_importing_the_network_loads_nothing_heavy():
    code = (
        "import sys, p2p_sim.network.topologies, p2p_sim.network.walks, p2p_sim.costing; print(*sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "networkx", "pyarrow", "numba"} & {name.split(".")[0] for name in out.stdout.split()}

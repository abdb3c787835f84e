"""A name that was mistyped is answered with the nearest one: verbs, options, protocols, data sets, and values."""

from __future__ import annotations

import re

import pytest

from p2p_sim.cli import program, verbs

SUGGESTED = re.compile("(?:[Dd]id you mean|Possible options:|similar names are)([^?;)]*)")
PEERS = "run peer-to-peer --users 9"
NEED_A_PROTOCOL = ("account", "attack", "audit", "calibrate", "check", "mechanisms", "run")
ASKED = {
    "runn": "run",
    "trace shwo runs/latest": "show",
    "run per-to-peer --users 9": "peer-to-peer",
    "account per-to-peer": "peer-to-peer",
    "mechanisms per-to-peer": "peer-to-peer",
    f"{PEERS} --alhpa 0.1": "--alpha",
    f"{PEERS} --bakend local": "--backend",
    "account peer-to-peer --clster-size 9": "--cluster-size",
    "calibrate peer-to-peer --vary alhpa --view learner --epsilon 1 --cluster-size 50": "alpha",
    f"{PEERS} --backend lokal": "local",
    f"{PEERS} --crypto reel": "real",
    f"{PEERS} --trace ful": "full",
    f"{PEERS} --trace smaple=3": "sample",
    f"{PEERS} --format jsn": "json",
    f"{PEERS} --fault los=0.1": "loss",
    f"{PEERS} --fault stop=lerner:1": "learner",
    "run network-shuffle --users 9 --graph regulr:4": "regular",
    "run peer-to-peer --data digitz": "digits",
    "run peer-to-peer --data digits --model logistic-regresion": "LogisticRegression",
    "data digitz": "digits",
    "data digits --missing imput": "impute",
    "account peer-to-peer --cluster-size 9 --view lerner": "learner",
    "account peer-to-peer --cluster-size 9 --channels plan": "plain",
    "audit peer-to-peer --cluster-size 9 --view learner --statistic clasifier": "classifier",
    "attack randomized-response --users 9 --eta pior": "prior",
    "attack randomized-response --users 9 --attacker optimall": "optimal",
    "bench engin": "engine",
    "generator digits --kind mixtur --out rows.csv": "mixture",
}


@pytest.mark.parametrize("words", ASKED)
def test_the_nearest_name_is_suggested(words, cli):
    done = cli(*words.split())
    assert (done.status, done.out) == (2, "")
    suggested = "".join(SUGGESTED.findall(done.err))
    assert ASKED[words] in suggested, done.err


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_every_option_is_suggested_where_a_letter_is_missing(verb, cli):
    """The first long option of each verb, without its third letter."""
    names = [each for each in program.options_of(verb) if len(each) > 5]
    if not names:
        pytest.skip("has no long option")
    first = ["peer-to-peer"] if verb in NEED_A_PROTOCOL else []
    done = cli(verb, *first, names[0][:4] + names[0][5:], "1")
    assert done.status == 2
    assert names[0] in "".join(SUGGESTED.findall(done.err)), done.err


def test_nothing_is_suggested_for_what_is_near_to_nothing(cli):
    assert "mean" not in cli("run", "zzz", "--users", "9").err

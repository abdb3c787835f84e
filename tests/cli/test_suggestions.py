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
    "run randomized-response --data digits --label digt": "digit",
    "run randomized-response --data own.csv --label ill --positive yess": "yes",
    "run randomized-response --data own.csv --label ill --classes noo,yes": "noo",
    "run randomized-response --data own.csv --label ill --drop agee": "age",
    "run randomized-response --data on.csv": "own.csv",
    "compare --users 9 --target epsilom=1": "epsilon",
    "compare --users 9 --target view=lerner,epsilon=1": "learner",
    "compare --users 9 --target epsilon=1 --constraint usr<=2": "user",
    "compare --users 9 --target epsilon=1 --constraint server:shufler<=2": "shuffler",
    "compare --users 9 --target epsilon=1 --protocols per-to-peer": "peer-to-peer",
    "compare --users 9 --target epsilon=1 --seds 2": "--seeds",
    "errata --only clustering-theorm-1": "clustering-theorem-1",
    "completion bsh": "bash",
    "sweep own.toml": "epsilon",
    "sweep key.toml": "seed",
    "sweep eta.toml": "prior",
    "sweep vary.toml": "alpha",
    "report rn": "run",
    f"{PEERS} --over neighbors": "neighbours",
    "run randomized-response --data own.csv --encoding uft-8": "utf-8",
}


FILES = {
    "own.csv": "age,ill\n" + "31,yes\n47,no\n" * 4,
    "own.toml": 'protocol = "randomized-response"\nusers = 9\nepsilom = 1.0\n',
    "key.toml": 'protocol = "randomized-response"\nusers = 9\nsed = 1\n',
    "vary.toml": 'protocol = "peer-to-peer"\nusers = 9\n[promise]\nepsilon = 1\nview = "user"\nvary = "alhpa"\n',
    "eta.toml": 'protocol = "randomized-response"\nusers = 9\nattack = "learner"\neta = "pior"\n',
}


@pytest.mark.parametrize("words", ASKED)
def test_the_nearest_name_is_suggested(words, cli, tmp_path):
    (tmp_path / "run").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
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

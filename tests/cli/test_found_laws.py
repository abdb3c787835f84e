"""Protocols of one's own on the command line: a law that is found, and one that is not."""

OWN = (
    "from dataclasses import dataclass\n"
    "from p2p_sim.core import Message, Party, Protocol, Rounds\n"
    "@dataclass(frozen=True)\n"
    "class {name}(Protocol):\n"
    "    report = Message('user', 'learner', 'tells a label', y=bool)\n"
    "{more}"
    "    def learner(self, me: Party) -> Rounds:\n"
    "        return (yield self.report.receive()).columns()\n"
)


def test_a_protocol_without_a_law_is_refused(cli, tmp_path):
    more = (
        "    told = Message('user', 'user', 'tells a peer the label', y=bool)\n"
        "    def user(self, me: Party) -> Rounds:\n"
        "        told = yield self.told(to=me.draw.member('peer', me.cluster), y=me.y)\n"
        "        yield self.report(y=told.y)\n"
    )
    (tmp_path / "lawless.py").write_text(OWN.format(name="Lawless", more=more))
    for words in (
        ("run", "lawless:Lawless", "--users", "9"),
        ("account", "lawless:Lawless", "--cluster-size", "5"),
    ):
        done = cli(*words)
        assert done.status == 0, done
        told = " ".join(done.out.split())  # a screen folds long lines
        assert "refused" in told
        assert (
            "no law of Lawless is known, nor found on its program: message 'report' of others carries her"
            in told
        )
        assert "audit it (p2p-sim audit, " in told
    told = cli("account", "lawless:Lawless", "--cluster-size", "5", "--json").json
    assert told["local_epsilon"] is None
    learner = next(row for row in told["views"] if row["name"] == "learner")
    assert learner["exact"] is None
    assert learner["refused"]


def test_a_law_that_is_found_says_how(cli, tmp_path):
    more = (
        "    def user(self, me: Party) -> Rounds:\n"
        "        yield self.report(y=me.y ^ me.draw.bernoulli('flip', 0.25))\n"
    )
    (tmp_path / "lawful.py").write_text(OWN.format(name="Lawful", more=more))
    done = cli("account", "lawful:Lawful")
    assert done.status == 0, done
    assert "found on the program by enumerating one user's draws (2 ways a label)" in done.out
    assert "(reads watched with 2 and 3 users)" in done.out
    told = cli("account", "lawful:Lawful", "--json").json
    exact = {row["name"]: row["exact"]["epsilon"] for row in told["views"]}
    assert exact["user"] == 0
    assert abs(exact["wire"] - 1.0986) < 1e-4

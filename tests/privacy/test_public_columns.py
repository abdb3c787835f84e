"""Programs that read public columns: laws found on programs refuse them by name, enumerations take them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import MissingColumnError


@dataclass(frozen=True)
class Rates(Protocol):
    """Each user flips her label with a public probability of her own, 1/4 or 1/8."""

    report = Message("user", "learner", "hands in a noisy label", y=bool)

    def user(self, me: Party) -> Rounds:
        coins = me.draw.bernoulli("first", 0.25), me.draw.bernoulli("second", 0.125)
        yield self.report(y=me.y ^ np.where(self.often(me), *coins))

    def often(self, me: Party):
        return me.public["often"]

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


class MaybeRates(Rates):
    """The same, where it is known who flips often; otherwise everybody does."""

    def often(self, me: Party):
        return me.public.get("often", np.ones(me.size, np.bool_))


def test_enumeration_takes_them_from_the_population():
    people = Population.from_arrays(y=[True, False, True], public={"often": [True, False, True]})
    found = [privacy.enumerate_view(Rates(), people, change=user).pure_epsilon for user in range(3)]
    assert found == pytest.approx([math.log(3), math.log(7), math.log(3)])


@pytest.mark.parametrize("name", ["often"])
def test_enumeration_names_one_that_is_not_there(name):
    people = Population.from_arrays(y=[True, False], public={"town": [1, 2]})
    with pytest.raises(
        MissingColumnError, match=r"no public column 'often', it has 'town': make it with"
    ) as caught:
        privacy.enumerate_view(Rates(), people)
    assert (caught.value.part, caught.value.name) == ("public", name)


def test_no_law_is_found_on_a_program_that_reads_one():
    """Its law would be that of the values; and where it copes without, that of everybody without."""
    refused = privacy.profile(Rates(), "learner", cluster_size=3).why
    assert "what a user sends depends on public column 'often', not on her label and draws alone" in refused
    assert "audits take its values, privacy.audit(..., public=...)" in refused
    assert "KeyError" not in refused
    assert "depends on me.public" in privacy.profile(MaybeRates(), "learner", cluster_size=3).why

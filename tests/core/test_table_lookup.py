"""Tables looked up at places that messages name: by servers in numpy's own form, by everybody with ``look_up``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim import Population
from p2p_sim.backends import local
from p2p_sim.core import Message, Protocol, ProtocolError
from p2p_sim.core.columns import Layout, PerMessage

BEST = np.array([30, 10, 20])
NESTED = np.array([2, 0, 1])
CLUSTER = np.arange(10) % 3
FORMS = {
    "indexed": lambda me, places: BEST[places],
    "nested": lambda me, places: BEST[NESTED[places]],
    "each": lambda me, places: me.each(BEST[places]),
    "taken": lambda me, places: places.look_up(BEST),
    "taken, nested": lambda me, places: places.look_up(NESTED).look_up(BEST),
    "added": lambda me, places: BEST[places] + 0 * places,
}


@dataclass(frozen=True)
class Asks(Protocol):
    """Users ask a server what its table has for their cluster."""

    form: str
    short: int = 0

    ask = Message("user", "server", "asks for her cluster", cluster=int)
    told = Message("server", "user", "tells", top=int)

    def user(self, me):
        yield self.ask(cluster=me.cluster.label, when=me.id != 4)
        answers = yield self.told.receive()
        return {"top": answers.top.first(-1)}

    def server(self, me):
        asks = yield self.ask.receive()
        top = FORMS[self.form](me, asks.cluster)
        yield self.told.reply(asks, top=top[: len(top) - self.short] if self.short else top)


def people():
    return Population.from_arrays(y=CLUSTER == 0, cluster=CLUSTER)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("blocks", [1, 3, 10])
def test_a_server_looks_up_a_table_for_every_asker(form, blocks):
    expected = BEST[NESTED[CLUSTER]] if "nested" in form else BEST[CLUSTER]
    found = local.run(Asks(form), people(), 1, blocks=blocks).outputs["user"]["top"]
    assert found.tolist() == [-1 if user == 4 else int(expected[user]) for user in range(10)]


def test_a_plain_array_of_another_length_is_refused_with_both_numbers():
    with pytest.raises(ProtocolError, match="top has 8 entries for 9 messages"):
        local.run(Asks("indexed", short=1), people(), 1)


HELD = PerMessage(np.array([2, 0, 1, 1, 0]), Layout(np.array([0, 2, 2, 5])))


def test_a_user_looks_up_a_table_by_look_up_and_is_told_so():
    assert HELD.look_up(BEST).data.tolist() == [20, 30, 10, 10, 30]
    assert HELD.look_up(BEST).layout is HELD.layout
    assert HELD.look_up(np.eye(3)).data.shape == (5, 3)
    with pytest.raises(ProtocolError, match=r"column\.look_up\(table\) is"):
        BEST[HELD]


@pytest.mark.parametrize(
    ("table", "places", "text"),
    [
        (BEST, HELD + 1, "holds 1 to 3; the table has 3 entries"),
        (BEST, HELD - 1, "holds -1 to 1"),
        (BEST, HELD * 0.5, "places are integers"),
        (np.array(3), HELD, "at least one axis, 0 here"),
        (HELD, HELD, "the table is a plain array"),
    ],
)
def test_places_outside_and_other_tables_are_refused(table, places, text):
    with pytest.raises(ProtocolError, match=text):
        places.look_up(table)


def test_sealed_places_stay_sealed():
    sealed = PerMessage(HELD.data, HELD.layout, "learner")
    with pytest.raises(ProtocolError, match="sealed for 'learner'"):
        sealed.look_up(BEST)


def test_columns_of_two_inboxes_of_a_server_still_do_not_meet():
    one, other = Layout(np.array([0, 5])), Layout(np.array([0, 5]))
    one.server = other.server = True
    with pytest.raises(ProtocolError, match="different inboxes meet"):
        PerMessage(HELD.data, one) + PerMessage(HELD.data, other)

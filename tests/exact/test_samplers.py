"""Every sampler of a whole ``Draw`` against a slow oracle, party by party."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from p2p_sim.core import InputError, ProtocolError, kernels_numba, kernels_numpy
from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import Draw
from p2p_sim.core.groups import Members
from tests.exact import oracle

SEED = (1 << 63) + 12345
PLACES = {
    "rows from 0": range(9),
    "rows from 6": range(6, 15),
    "one user": range(10, 11),
    "last rows": range(2**31 - 4, 2**31 - 1),
    "ids of a part": np.array([2, 3, 17, 900, 2**31 - 2]),
}
MODULES = {"plain": kernels_numpy, "kernels": kernels_numba}


class Case:
    """A draw at one place, with what every party holds, and the oracle of the same words."""

    def __init__(self, ids, module, step=0, role="user"):
        self.ids = [int(u) for u in ids]
        self.draw = Draw(SEED, role, ids, module)
        for _ in range(step):
            self.draw.advance()
        self.chance, self.step = oracle.Chance(SEED, role), step
        counts = [(2 * u + 1) % 4 for u in range(len(self.ids))]  # 1, 3, 1, 3 ... so use 0 too:
        counts[-1] = 0 if len(counts) > 1 else 2
        self.layout = Layout(np.cumsum([0, *counts]))
        self.held = [(p, r) for p, count in enumerate(counts) for r in range(count)]
        self.tokens = PerMessage(np.arange(len(self.held)), self.layout)

    def words(self, name):
        return [self.chance.word(name, self.step, u) for u in self.ids]

    def items(self, name, places=None):
        return [self.chance.item(name, self.step, self.ids[p], r) for p, r in places or self.held]

    def times(self, t):
        return [(p, r) for p in range(len(self.ids)) for r in range(t)]


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


@pytest.fixture(params=MODULES)
def module(request):
    return MODULES[request.param]


@pytest.fixture
def case(place, module):
    return Case(place, module, step=2)


def check(drawn, expected, layout=None, dtype=None):
    """Compare a party column (no layout) or a message column with its expected values and layout."""
    if layout is None:
        assert isinstance(drawn, np.ndarray)
        values = drawn
    else:
        assert isinstance(drawn, PerMessage)
        assert drawn.layout.starts.tolist() == layout.starts.tolist()
        values = drawn.data
    assert values.dtype == dtype
    assert values.tolist() == expected


def check_all(case, sampler, oracle_of_word, dtype):
    """``sampler(name, **how)`` plainly, with each= and with times=."""
    check(sampler("a"), [oracle_of_word(w, p) for p, w in enumerate(case.words("a"))], dtype=dtype)
    each = [oracle_of_word(w, p) for (p, _), w in zip(case.held, case.items("b"), strict=True)]
    check(sampler("b", each=case.tokens), each, case.layout, dtype)
    places = case.times(3)
    three = Layout(np.arange(len(case.ids) + 1) * 3)
    expected = [oracle_of_word(w, p) for (p, _), w in zip(places, case.items("c", places), strict=True)]
    check(sampler("c", times=3), expected, three, dtype)


@pytest.mark.parametrize("p", [0, 1, 0.25, 0.1, Fraction(1, 3), np.float64(0.7), 1 - 2.0**-53, 5e-324])
def test_bernoulli_of_one_probability(case, p):
    check_all(
        case, lambda n, **how: case.draw.bernoulli(n, p, **how), lambda w, _: oracle.bernoulli(w, p), np.bool_
    )


def test_bernoulli_of_a_party_column(case):
    ps = np.resize([0.0, 1.0, 0.5, 0.1], len(case.ids))
    check_all(
        case,
        lambda n, **how: case.draw.bernoulli(n, ps, **how),
        lambda w, p: oracle.bernoulli(w, ps[p]),
        np.bool_,
    )


def test_bernoulli_of_a_message_column(case):
    ps = np.resize([1.0, 0.5, 0.0, 0.9], len(case.held))
    drawn = case.draw.bernoulli("b", PerMessage(ps, case.layout), each=case.tokens)
    expected = [oracle.bernoulli(w, p) for w, p in zip(case.items("b"), ps.tolist(), strict=True)]
    check(drawn, expected, case.layout, np.bool_)


def test_uniform(case):
    check_all(case, case.draw.uniform, lambda w, _: oracle.uniform(w), np.float64)


@pytest.mark.parametrize("m", [1, 2, 10, 2**32 - 1, 2**32, 2**40, 2**63 - 1])
def test_below_one_number(case, m):
    check_all(case, lambda n, **how: case.draw.below(n, m, **how), lambda w, _: oracle.below(w, m), np.int64)


def test_below_a_party_column(case):
    m = np.arange(1, len(case.ids) + 1)
    check_all(
        case, lambda n, **how: case.draw.below(n, m, **how), lambda w, p: oracle.below(w, p + 1), np.int64
    )


def test_below_a_message_column(case):
    m = np.arange(1, len(case.held) + 1)
    drawn = case.draw.below("b", PerMessage(m, case.layout), each=case.tokens)
    expected = [oracle.below(w, int(k)) for w, k in zip(case.items("b"), m, strict=True)]
    check(drawn, expected, case.layout, np.int64)


@pytest.mark.parametrize(("m", "dtype"), [(256, np.uint8), (7, np.uint8), (128, np.int8), (2**16, np.uint16)])
def test_below_in_a_narrow_type(case, m, dtype):
    check_all(
        case,
        lambda n, **how: case.draw.below(n, m, dtype=dtype, **how),
        lambda w, _: oracle.below(w, m),
        dtype,
    )
    seen = []
    case.draw.observer = lambda _name, _step, drawn: seen.append(drawn)
    case.draw.advance()
    assert case.draw.below("a", m, dtype=dtype).dtype == dtype
    assert seen[0].dtype == np.int64, "a watcher sees the same whatever the type"
    with pytest.raises(
        ProtocolError, match=rf"draw 'b'.*below needs integers 1 <= m <= {m if m != 7 else 256} "
    ):
        case.draw.below("b", (256 if m == 7 else m) + 1, dtype=dtype)


@pytest.mark.parametrize("m", [0, -1, 2.0, 2**63, 2**64 - 1, 2**64])
def test_below_refuses_what_it_cannot_draw(module, m):
    with pytest.raises(ProtocolError, match=r"draw 'a'.*below needs"):
        Draw(1, "user", range(3), module).below("a", m)


def groups(case, scattered):
    codes = np.resize(np.array([0, 2, 1, 2], np.int32), len(case.ids))
    order = np.array([4, 1, 3, 7, 0, 2, 5, 6], np.int32) if scattered else None
    return Members(codes, np.array([0, 1, 4, 8], np.int64), order)


@pytest.mark.parametrize("scattered", [False, True], ids=("contiguous", "scattered"))
def test_member_is_the_kth_of_the_group_in_ascending_order(case, scattered):
    members = groups(case, scattered)
    people = [[int(row) for row in members.rows_of(c)] for c in range(3)]

    def expected(word, party):
        group = people[members.codes[party]]
        return group[oracle.below(word, len(group))]

    check_all(case, lambda n, **how: case.draw.member(n, members, **how), expected, np.int32)


def test_member_refuses_an_empty_group_and_other_things(case):
    codes = np.zeros(len(case.ids), np.int32)
    with pytest.raises(ProtocolError, match=r"draw 'a'.*nobody to choose from"):
        case.draw.member("a", Members(codes, np.array([0, 0, 3], np.int64), None))
    with pytest.raises(ProtocolError, match=r"draw 'b'.*me.cluster"):
        case.draw.member("b", np.arange(3))


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [0.5, 0.25, 0.25], [Fraction(1, 7)] * 7, [0, 1, 0, 3]])
def test_categorical(case, weights):
    check_all(
        case,
        lambda n, **how: case.draw.categorical(n, weights, **how),
        lambda w, _: oracle.categorical(w, weights),
        np.int64,
    )


@pytest.mark.parametrize("watched", [False, True])
def test_categorical_of_values(case, watched):
    weights, worth, seen = [1, 2, 3], np.array([-1.5, 0.0, 7.0]), []
    case.draw.observer = (lambda _name, _step, drawn: seen.append(drawn)) if watched else None
    check_all(
        case,
        lambda n, **how: case.draw.categorical(n, weights, values=worth, **how),
        lambda w, _: worth[oracle.categorical(w, weights)],
        np.float64,
    )
    numbers = [np.asarray(drawn.data if isinstance(drawn, PerMessage) else drawn) for drawn in seen]
    assert all(each.dtype == np.int64 for each in numbers), "which weight it was is what a watcher sees"
    assert bool(numbers) == watched


TABLE = np.array([[3, 0, 1], [1, 1, 2**62], [0, 7, 0]])


def test_weighted_by_a_party_column(case):
    rows = np.resize([2, 0, 1], len(case.ids))
    check_all(
        case,
        lambda n, **how: case.draw.weighted(n, TABLE, rows, **how),
        lambda w, p: oracle.weighted(w, TABLE[rows[p]].tolist()),
        np.uint8,
    )


def test_weighted_by_a_message_column(case):
    rows = np.resize([1, 2, 0, 0], len(case.held))
    drawn = case.draw.weighted("b", TABLE, PerMessage(rows, case.layout), each=case.tokens)
    expected = [
        oracle.weighted(w, TABLE[row].tolist()) for w, row in zip(case.items("b"), rows.tolist(), strict=True)
    ]
    check(drawn, expected, case.layout, np.uint8)


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ([[1.0, 2.0]], 0), ([1, 2], 0), ([[1, -1]], 0), ([[1, 2], [0, 0]], 0), ([[2**62, 2**62]], 0),
        (np.array([[2**63]], np.uint64), 0), ([[1] * 257], 0), ([[]], 0), ([[1, 2]], 1), ([[1, 2]], -1),
        ([[1, 2]], 0.0),
    ],
)  # fmt: skip
def test_weighted_refuses_what_it_cannot_draw(module, weights, row):
    with pytest.raises(ProtocolError, match=r"draw 'a'.*(weighted needs|row names)"):
        Draw(1, "user", range(3), module).weighted("a", weights, row)


@pytest.mark.parametrize("scale", [1, 2.5, Fraction(1, 3), 100])
def test_laplace(case, scale):
    check_all(
        case,
        lambda n, **how: case.draw.laplace(n, scale, **how),
        lambda w, _: oracle.laplace(w, scale),
        np.int64,
    )


def test_laplace_in_half_the_memory(case):
    check_all(
        case,
        lambda n, **how: case.draw.laplace(n, 5, dtype=np.int32, **how),
        lambda w, _: oracle.laplace(w, 5),
        np.int32,
    )
    with pytest.raises(ProtocolError, match=r"give np\.int64 or np\.int32"):
        case.draw.laplace("short", 5, dtype=np.int16)


def test_permutation(case):
    words = case.items("b")
    expected, place = [], 0
    for count in case.layout.count.tolist():
        expected += oracle.permutation(words[place : place + count])
        place += count
    check(case.draw.permutation("b", each=case.tokens), expected, case.layout, np.int64)


def test_permutation_breaks_ties_by_index():
    equal = SimpleNamespace(
        item_words=lambda seed, key, party, rank: np.array([5, 1, 5, 1, 9, 9, 9], np.uint64),
        orders=kernels_numpy.orders,
    )
    draw = Draw(0, "user", range(2), equal)
    tokens = PerMessage(np.zeros(7), Layout(np.array([0, 4, 7])))
    assert draw.permutation("p", each=tokens).data.tolist() == [1, 3, 0, 2, 0, 1, 2]


def test_a_server_is_party_0(module):
    case = Case(range(1), module, role="learner")
    check(
        case.draw.below("noise", 1000), [oracle.below(case.chance.word("noise", 0, 0), 1000)], dtype=np.int64
    )
    check_all(
        case, lambda n, **how: case.draw.below(n, 50, **how), lambda w, _: oracle.below(w, 50), np.int64
    )


def test_a_draw_depends_on_step_role_and_name(module):
    values = {
        tuple(case.draw.below(name, 2**62).tolist())
        for case, name in [
            (Case(range(4), module), "a"),
            (Case(range(4), module), "b"),
            (Case(range(4), module, step=1), "a"),
            (Case(range(4), module, role="learner"), "a"),
        ]
    }
    assert len(values) == 4


def test_drawing_one_name_twice_in_a_step_is_an_error(module):
    draw = Draw(1, "user", range(3), module)
    draw.bernoulli("coin", 0.5)
    with pytest.raises(ProtocolError, match=r"role 'user', step 0, draw 'coin' is drawn twice"):
        draw.uniform("coin")
    draw.advance()
    draw.uniform("coin")


def test_the_wrong_each_and_times_are_refused(module):
    draw = Draw(1, "user", range(3), module)
    tokens = PerMessage(np.zeros(3), Layout.one_each(3))
    for name, how in enumerate(({"each": np.zeros(3)}, {"each": tokens, "times": 2})):
        with pytest.raises(ProtocolError, match="each= takes an inbox or a message column"):
            draw.uniform(str(name), **how)
    for times in (0, -1, 1.5):
        with pytest.raises(ProtocolError, match=f"times={times}.*at least 1"):
            draw.uniform(f"t{times}", times=times)


@pytest.mark.parametrize("p", [-0.1, 1.1, np.array([0.5, 2.0, 0.1])])
def test_a_bad_probability_names_the_draw(module, p):
    with pytest.raises(InputError, match="draw 'coin'"):
        Draw(1, "user", range(3), module).bernoulli("coin", p)


def test_columns_drawn_several_times_can_be_combined(module):
    draw = Draw(1, "user", range(3), module)
    both = draw.below("a", 10, times=2) + draw.below("b", 10, times=2)
    assert both.layout.count.tolist() == [2, 2, 2]


def test_the_observer_sees_every_draw(module):
    seen = []
    draw = Draw(1, "user", range(3), module, lambda name, step, values: seen.append((name, step, values)))
    coin = draw.bernoulli("coin", 0.5)
    draw.advance()
    deck = draw.permutation("deck", each=PerMessage(np.zeros(3), Layout.one_each(3)))
    assert [(name, step) for name, step, _ in seen] == [("coin", 0), ("deck", 1)]
    assert seen[0][2] is coin
    assert seen[1][2] is deck

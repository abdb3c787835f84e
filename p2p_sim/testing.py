"""The contract that every protocol keeps, as checks for a test suite: of this project's protocols, and of yours.

In a file of tests of your own::

    import pytest
    from mine import MyProtocol
    from p2p_sim import testing

    @pytest.mark.parametrize("check", testing.CHECKS, ids=testing.name_of)
    def test_the_contract(check):
        testing.keeps(check, MyProtocol(alpha=0.1))

A check raises AssertionError, and says what differs; where a protocol cannot be checked, the test is skipped.
"""

from __future__ import annotations

import inspect
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim import catalogue
from p2p_sim.check import check as same_bits
from p2p_sim.check import small_world
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.message import field_dtype, fixed_point
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.run import Run, load, run

if TYPE_CHECKING:
    from p2p_sim.privacy.table_rows import TableRow

Array = npt.NDArray[Any]
Columns = Mapping[str, Array]

STANDARD = ("round", "sender", "recipient", "seq")
"""Columns that every message has, before its own fields; ``nbytes`` comes after them."""

EPSILONS = (0.0, 0.3, 1.0)
"""At which laws are held against enumeration, in nats."""

FEW = 3
"""Users whose draws are all enumerated."""


class NotCheckedError(Exception):
    """A protocol cannot be checked in this way; the text says why."""


@dataclass(frozen=True)
class Case:
    """A protocol among some users with a seed.  ``population``: by default a small world that suits the protocol."""

    protocol: Protocol
    given: Population | None = None
    seed: int = 7

    @cached_property
    def population(self) -> Population:
        """The users."""
        return small_world(self.protocol, self.seed) if self.given is None else self.given

    @cached_property
    def traced(self) -> Run:
        """A run in one block, with all messages."""
        return run(self.protocol, self.population, seed=self.seed, blocks=1, trace="full")

    @property
    def name(self) -> str:
        """The name of the protocol's class."""
        return type(self.protocol).__name__


Check = Callable[[Case], None]


def keeps(check: Check, protocol: Protocol, population: Population | None = None, *, seed: int = 7) -> None:
    """Run a check, as a test of pytest's: it fails, or is skipped where the protocol cannot be checked in this way.

    ``population``: the users; by default a small world.  Raises AssertionError, which says what differs.
    """
    import pytest

    try:
        check(Case(protocol, population, seed))
    except NotCheckedError as reason:
        pytest.skip(str(reason))


def name_of(check: Check) -> str:
    """Return the name of a check, for the list of tests."""
    return check.__name__


def results_depend_on_seed_and_users_alone(case: Case) -> None:
    """Hold runs in 1, 2 and n blocks, again, and in processes of other hash seeds against each other."""
    found = same_bits(case.protocol, case.population, seed=case.seed)
    assert found.passed, str(found)


def a_trace_changes_nothing(case: Case) -> None:
    """Hold runs that keep no messages, counts or a sample against one that keeps all."""
    for level in ("none", "counts", "sample=9"):
        found = run(case.protocol, case.population, seed=case.seed, trace=level)
        assert found.digest == case.traced.digest, f"{case.name}: trace={level!r} changes the run"


def a_digest_changes_nothing(case: Case) -> None:
    """Hold the outputs of a run without a digest against those of one with it."""
    plain = run(case.protocol, case.population, seed=case.seed, digest=False)
    assert plain.digest is None
    for role in case.protocol.roles():
        assert equal(plain.outputs.get(role, {}), case.traced.outputs.get(role, {})), (
            f"{case.name}: the output of {role!r} is another one without a digest"
        )


def a_replay_is_the_run(case: Case) -> None:
    """Hold what a user sent and received in the run against what is recomputed for her alone."""
    messages = {kind: case.traced.messages(kind) for kind in case.protocol.messages()}
    users = case.population.users
    for user in range(0, users, max(1, users // 12)):
        replayed = case.traced.replay(user)
        for end, mine in (("sender", replayed.sent), ("recipient", replayed.received)):
            for kind, columns in mine.items():
                rows = messages[kind][end] == user
                kept = {name: column[rows] for name, column in messages[kind].items()}
                assert equal(columns, kept), (
                    f"{case.name}: user {user} as {end} of {kind!r} is replayed otherwise"
                )


def messages_hold_declared_fields(case: Case) -> None:
    """Hold the columns of all messages, their types, numbers and bytes against what the protocol declares."""
    for kind, message in case.protocol.messages().items():
        columns = case.traced.messages(kind)
        assert list(columns) == [*STANDARD, *message.fields, "nbytes"], kind
        assert len({len(column) for column in columns.values()}) == 1, kind
        for name, field in message.fields.items():  # of fixed-point fields a trace has the numbers
            assert columns[name].dtype == (np.float64 if fixed_point(field) else field_dtype(field)), (
                kind,
                name,
            )
        counted = case.traced.by_kind().get(kind)
        sent = (0, 0) if counted is None else (counted.messages, counted.nbytes)
        assert (len(columns["round"]), int(columns["nbytes"].sum())) == sent, kind


def other_random_state_is_untouched(case: Case) -> None:
    """See that the states of ``random`` and ``numpy.random`` are the same after a run."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 (that is what is checked)
    run(case.protocol, case.population, seed=case.seed)
    after = random.getstate(), np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0], f"{case.name} draws from random"
    assert all(np.array_equal(one, other) for one, other in zip(before[1], after[1], strict=True)), (
        f"{case.name} draws from numpy.random"
    )


def the_users_are_untouched(case: Case) -> None:
    """See that a run changes no column of the population."""
    before = replace(case.population).hash
    run(case.protocol, case.population, seed=case.seed)
    assert replace(case.population).hash == before, f"{case.name} changes its users' columns"


def a_saved_run_is_the_run(case: Case) -> None:
    """Hold a run that was saved and loaded, and its replay, against the run."""
    first = case.traced
    with tempfile.TemporaryDirectory() as folder, catalogue.naming(type(case.protocol)):
        first.save(Path(folder) / "run")
        loaded = load(Path(folder) / "run")
        assert (loaded.digest, loaded.counts, loaded.parameters) == (
            first.digest,
            first.counts,
            first.parameters,
        )
        assert all(equal(loaded.output(role), first.output(role)) for role in first.outputs)
        assert all(equal(loaded.messages(kind), first.messages(kind)) for kind in case.protocol.messages())
        one, other = loaded.replay(0).sent, first.replay(0).sent
        assert list(one) == list(other)
        assert all(equal(one[kind], other[kind]) for kind in one)


def every_view_has_a_figure_or_a_reason(case: Case) -> None:
    """See that each view has a law of a known basis, which falls in epsilon and names its source, or says why not."""
    from p2p_sim import privacy

    for view in _views(case.protocol):
        found = _profile(case, view, case.population)
        if found.law is None:
            assert found.why, f"{case.name}, {view.name}: refused without a reason"
            try:
                found.delta(1.0)
            except privacy.RefusedError:
                continue
            raise AssertionError(f"{case.name}, {view.name}: a refused figure has a value")
        assert found.basis in ("exact", "upper", "lower"), (view.name, found.basis)
        assert found.source, f"{case.name}, {view.name}: a figure without a source"
        values = [found.delta(epsilon) for epsilon in EPSILONS]
        assert all(0 <= value <= 1 for value in values), (view.name, values)
        assert values == sorted(values, reverse=True), (view.name, values)


def no_enumeration_exceeds_a_law(case: Case) -> None:
    """Enumerate all draws of three users, for some labels of the others; hold each view's law against what it sees."""
    from p2p_sim import privacy

    views = [view for view in _views(case.protocol) if view.users == "curious" and view.colluders < FEW]
    held = 0
    for people in _few(case.protocol):
        laws = {view.name: _profile(case, view, people) for view in views}
        laws = {name: law for name, law in laws.items() if law.law is not None and law.basis != "lower"}
        try:
            found = privacy.enumerate_views(case.protocol, people, list(laws))
        except (InputError, ProtocolError) as error:
            raise NotCheckedError(f"{case.name} is not enumerated: {error}") from None
        for name, epsilon in product(laws, EPSILONS):
            shown, most = found[name].delta(epsilon), laws[name].delta_bracket(epsilon).upper
            assert shown <= most + 1e-12, (
                f"{case.name}, {name}: labels {people.y.astype(int).tolist()} show delta {shown:.6g} at epsilon "
                f"{epsilon}, and the law says at most {most:.6g}"
            )
        held += len(laws)
    if not held:
        raise NotCheckedError(f"{case.name} has no law to be held against an enumeration")


def no_audit_exceeds_a_law(case: Case) -> None:
    """Audit each view by 300 small worlds; the lower bound on its epsilon must not be above the law's."""
    from p2p_sim import privacy

    if case.protocol.graph_over() is not None:
        raise NotCheckedError(f"{case.name} needs a graph, and audits of small worlds have none")
    audited, why = 0, "it has no view of curious parties"
    for view in _views(case.protocol):
        if view.users != "curious" or view.colluders > 1:
            continue
        try:
            found = privacy.audit(case.protocol, view.name, cluster_size=5, delta=0.01, trials=300)
        except (InputError, ProtocolError) as error:
            why = str(error)
            continue
        assert not found.failed, f"{case.name}, {view.name}: {found.why}"
        audited += 1
    if not audited:
        raise NotCheckedError(f"{case.name} is not audited: {why}")


def docstrings_say_source_and_trust(case: Case) -> None:
    """See that the class names its source and whom one must trust, and that each message says what it does."""
    about = inspect.getdoc(type(case.protocol)) or ""
    for part in ("*Source:*", "*Assumes:*"):
        assert part in about, f"{case.name}: its docstring has no {part}"
    for kind, message in case.protocol.messages().items():
        assert len(message.text) > 20, (
            f"message {kind!r}: say in a few words what it does, not {message.text!r}"
        )


CHECKS: tuple[Check, ...] = (
    results_depend_on_seed_and_users_alone,
    a_trace_changes_nothing,
    a_digest_changes_nothing,
    a_replay_is_the_run,
    messages_hold_declared_fields,
    other_random_state_is_untouched,
    the_users_are_untouched,
    a_saved_run_is_the_run,
    every_view_has_a_figure_or_a_reason,
    no_enumeration_exceeds_a_law,
    no_audit_exceeds_a_law,
    docstrings_say_source_and_trust,
)
"""All checks, each a function of a ``Case``."""


def equal(one: Columns, other: Columns) -> bool:
    """Whether two sets of columns have the same names in the same order, and the same values; NaN is NaN's equal."""
    return list(one) == list(other) and all(_same(one[name], other[name]) for name in one)


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")


def _views(protocol: Protocol) -> list[TableRow]:
    from p2p_sim.privacy.table_rows import rows

    return rows(protocol)


def _profile(case: Case, view: TableRow, people: Population) -> Any:
    from p2p_sim import privacy

    return privacy.profile(case.protocol, view.name, population=people, users=view.users)


def _few(protocol: Protocol) -> Iterator[Population]:
    """Return three users, the others with equal labels and with different ones; joined where a graph is needed."""
    from p2p_sim.network import topologies

    labels, over = protocol.label_count(), protocol.graph_over()
    for others in ((0, 0), (0, labels - 1), (labels - 1, labels - 1)):
        y = np.array((0, *others), np.uint8)
        people = Population.from_arrays(y=y > 0 if labels == 2 else y)
        yield (
            people
            if over is None
            else topologies.join(people, "complete", 0, within_clusters=over == "cluster")
        )

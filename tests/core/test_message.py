"""Declaring message kinds, calling them, and protocols as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Bytes, Message, Population, Protocol, ProtocolError, Vector
from protocols import PeerToPeer, RandomizedResponse

ASK = Message("user", "user", "asks", n=int)
TELL = Message("user", "learner", "tells", y=bool)


@pytest.mark.parametrize(
    "name", ["to", "when", "sender", "recipient", "round", "count", "columns", "kind", "seq", "_x"]
)
def test_reserved_field_names_are_refused(name):
    with pytest.raises(ProtocolError, match=f"cannot be called '{name}'"):
        Message("user", "learner", "tells", **{name: bool})


@pytest.mark.parametrize("kind", [float, np.float32, Vector(np.float64, 3), complex, str, object, "M8[s]"])
def test_only_bool_integers_vectors_and_bytes_travel(kind):
    with pytest.raises(ProtocolError, match=r"field 'v' has type .*floats as fixed point"):
        Message("user", "learner", "tells", v=kind)


def test_int_is_int64_and_bytes_are_counted():
    message = Message(
        "user", "learner", "tells", a=int, b=bool, c=Vector(np.uint32, "dim"), d=Bytes(32), e=np.int16
    )
    assert message.fields["a"] == np.int64
    assert message.nbytes({"dim": 5}) == 16 + 8 + 1 + 20 + 32 + 2
    assert Message("user", "learner", "tells", sealed_for="learner", b=bool).nbytes({}) == 16 + 1 + 48
    assert Message("user", "user", "asks").nbytes({}) == 16


def test_a_message_to_users_needs_to_and_a_message_to_a_server_takes_none():
    assert ASK(to=3, n=1).to == 3
    with pytest.raises(ProtocolError, match="goes to 'user' and needs to="):
        ASK(n=1)
    with pytest.raises(ProtocolError, match="goes to 'learner' and takes no to="):
        TELL(to=0, y=True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [({}, "lacks y"), ({"y": 1, "z": 2}, "has no field z"), ({"z": 2}, "lacks y and has no field z")],
)
def test_fields_must_be_those_declared(fields, text):
    with pytest.raises(ProtocolError, match=rf"{text}; its fields: \['y'\]"):
        TELL(**fields)
    with pytest.raises(ProtocolError, match=text):
        TELL.reply(None, **fields)


def test_a_kind_knows_its_name():
    assert PeerToPeer.ask.kind == "ask"
    assert list(PeerToPeer.messages()) == ["ask", "label", "report"]
    assert "report: user -> learner" in repr(PeerToPeer.report)


def test_a_label_travels_in_the_type_of_the_labels():
    two, five = PeerToPeer(0.1), PeerToPeer(0.1, labels=5)
    for kind, field in (("label", "y_hat"), ("report", "y")):
        assert PeerToPeer.messages()[kind] is getattr(PeerToPeer, kind) is getattr(two, kind)
        assert two.messages()[kind].fields == {field: np.dtype(bool)}
        assert five.messages()[kind] is getattr(five, kind)
        assert five.messages()[kind].fields == {field: np.dtype(np.uint8)}
        assert getattr(five, kind).kind == kind
        assert two.messages()[kind].nbytes({}) == five.messages()[kind].nbytes({}) == 17
    assert five.ask is two.ask


def test_protocols_know_roles_parameters_and_their_command():
    assert PeerToPeer.roles() == ("user", "learner")
    given = {"alpha": 0.1, "theta": 0.5, "retries": 0, "over": "cluster", "labels": 2}
    assert PeerToPeer(0.1, 0.5).parameters() == given
    assert PeerToPeer.command_name() == "peer-to-peer"
    assert RandomizedResponse.command_name() == "randomized-response"
    assert (PeerToPeer(0.1).label_count(), RandomizedResponse(1.0, labels=7).label_count()) == (2, 7)


def refused(protocol, text):
    with pytest.raises(ProtocolError, match=text):
        local.run(protocol, Population.from_arrays(y=[True, False]), 1)


class Sends:
    report = Message("user", "learner", "reports", y=bool)

    def user(self, me):
        yield self.report(y=me.y)

    def learner(self, me):
        yield self.report.receive()


def test_a_protocol_must_be_a_frozen_dataclass():
    class Plain(Sends, Protocol):
        pass

    @dataclass
    class Thawed(Sends, Protocol):
        pass

    for protocol in (Plain(), Thawed()):
        refused(protocol, f"{type(protocol).__name__} must be a frozen dataclass")

    @dataclass(frozen=True)
    class Frozen(Sends, Protocol):
        pass

    assert local.run(Frozen(), Population.from_arrays(y=[True, False]), 1).outputs["learner"] == {}


def test_every_role_needs_a_generator_method():
    @dataclass(frozen=True)
    class NoLearner(Protocol):
        report = Message("user", "learner", "reports", y=bool)

        def user(self, me):
            yield self.report(y=me.y)

    @dataclass(frozen=True)
    class NoGenerator(Sends, Protocol):
        def learner(self, me):
            return {}

    refused(NoLearner(), "NoLearner: role 'learner' needs a generator method")
    refused(NoGenerator(), "NoGenerator: role 'learner' needs a generator method")


@pytest.mark.parametrize("role", ["fault", "graph", "split"])
def test_the_engines_own_role_names_are_reserved(role):
    kind = Message("user", role, "reports", y=bool)
    kind.kind = "report"
    body = {"report": kind, "user": Sends.user, role: Sends.learner, "__annotations__": {}}
    protocol = dataclass(frozen=True)(type("Taken", (Protocol,), body))
    refused(protocol(), f"Taken: the role name '{role}' is reserved")


def test_a_message_is_sealed_for_a_role():
    @dataclass(frozen=True)
    class SealedForNobody(Sends, Protocol):
        other = Message("user", "learner", "reports", sealed_for="auditor", y=bool)

    refused(SealedForNobody(), "message 'other' is sealed for 'auditor'; roles:")


@pytest.mark.parametrize("value", [-0.1, 0.51, float("nan"), "0.1", True, None])
def test_alpha_out_of_range_is_named(value):
    with pytest.raises(ValueError, match=r"alpha = .*\[0, 0.5\]"):
        PeerToPeer(value)


@pytest.mark.parametrize("value", [0, -0.1, 1.01, float("nan"), "1", True])
def test_theta_out_of_range_is_named(value):
    with pytest.raises(ValueError, match=r"theta = .*\(0, 1\]"):
        PeerToPeer(0.1, value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: RandomizedResponse(-1.0), "epsilon = -1.0"),
        (lambda: RandomizedResponse(float("nan")), "epsilon = nan"),
        (lambda: RandomizedResponse(1.0, 1), "labels = 1"),
        (lambda: RandomizedResponse(1.0, 257), "labels = 257"),
        (lambda: RandomizedResponse(1.0, 2.5), "labels = 2.5"),
        (lambda: RandomizedResponse.flipping(0.6), "p = 0.6"),
        (lambda: RandomizedResponse.flipping(-0.1), "p = -0.1"),
    ],
)
def test_randomized_response_refuses_by_name(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_a_protocol_for_bits_refuses_more_labels():
    three = Population.from_arrays(y=[0, 1, 2])
    with pytest.raises(
        ValueError, match="PeerToPeer handles 2 label values, the population has labels up to 2"
    ):
        local.run(PeerToPeer(0.1), three, 1)
    assert local.run(RandomizedResponse(1.0, 3), three, 1).outputs["learner"]["y"].shape == (3,)

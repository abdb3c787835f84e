"""Double randomized response: the label is replaced by a uniform one, and the features by generated ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import (
    FixedPoint,
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    Vector,
    check_flip,
    check_labels,
    check_range,
)
from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.errors import MissingColumnError
from protocols.dummy_features import uniform_response
from protocols.generator_texts import generator_of, pinned
from protocols.generators import Generator, features_of

Array = npt.NDArray[Any]

PUBLIC, UNKNOWN = "public", "unknown"
"""Users have features of their own.  What may be said of them: everybody knows them; or nothing."""

FEATURES = FixedPoint(resolution=2**-16, low=-(2**15), high=2**15 - 2**-16)
"""How features travel: to 2^-16, from -32,768 to below 32,768."""


@dataclass(frozen=True)
class DoubleResponse(Protocol):
    """Users hand in their label, or with probability lambda a uniform one, and their features, or generated ones.

    Features are replaced with probability lambda too, independently, by those that the generator draws for a uniform
    label.  They travel as multiples of 2^-16, from -32,768 to below 32,768.

    ``lam``: lambda, from 0 to 1.
    ``generator``: of features given a label: "gaussian:2" as made-up users have; a table such as "3*0;1*1|1*0;3*1", for
    each label rows with weights; or a .csv file with the columns label, weight and features, and deviation where
    noise is added to rows.  In Python also a ``Generator``.  It must be made without the users' labels.
    ``labels``: k, from 2 to 256.
    ``truth``: where users' features come from: "public" or "unknown", their own; or what draws them given their label,
    written as the generator is.  Privacy depends on it: public features are the same whatever the label, drawn ones
    change with it, and of unknown ones nothing is promised.

    The learner returns columns ``sender``, ``x`` (n, width) and ``y`` (uint8).  Raises InputError for parameters out of
    range, for a generator that lacks a label, and where features have other shapes.

    *Source:* Release 2023, Mechanism 2.
    *Assumes:* users follow the protocol; nobody else need be trusted.
    """

    lam: float
    generator: str | Generator
    labels: int = 2
    truth: str | Generator = PUBLIC

    report = Message(
        "user", "learner", "hands the learner features and a label, each maybe replaced",
        x=Vector(FEATURES, "width"), y=np.uint8,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_range("lam", self.lam, 0, 1)
        check_labels("labels", self.labels)
        object.__setattr__(self, "generator", pinned("generator", self.generator))
        if self.truth not in (PUBLIC, UNKNOWN):
            object.__setattr__(self, "truth", pinned("truth", self.truth))
        model, truth = self.model(), self.nature()
        for name, each in (("generator", model), ("truth", truth)):
            table = None if each is None else each.finite()
            if table is not None:
                _check_size(name, table[0], range(len(table[0])))
        if truth is not None and truth.width != model.width:
            raise InputError(
                f"truth = {self.truth!r}: has {truth.width} features, the generator {model.width}; give the same number"
            )

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def model(self) -> Generator:
        """Return the generator."""
        return generator_of("generator", self.generator, self.labels)

    def nature(self) -> Generator | None:
        """Return what draws users' features given their label; None if they have their own."""
        return None if self.truth in (PUBLIC, UNKNOWN) else generator_of("truth", self.truth, self.labels)

    @property
    def width(self) -> int:
        """How many features are released."""
        return self.model().width

    def feature_count(self) -> int | None:
        """Return how many features users have, unless they are drawn by ``truth``."""
        return self.width if self.truth in (PUBLIC, UNKNOWN) else None

    def user(self, me: Party) -> Rounds:
        """Report features and label."""
        check_flip("lam", self.lam)
        x = self._own(me)
        said = uniform_response(me, self.lam, self.labels)  # lines 4 to 7
        label = me.draw.below("class", self.labels)  # 11
        other = features_of("generator", self.model(), me.draw, label, "features")  # 12
        new = me.draw.bernoulli("new features", self.lam)  # 8 to 10
        shown = FEATURES.encoded_choice(new, other, x, "features")
        shown.setflags(write=False)  # so that sending it needs no copy
        yield self.report(x=PerMessage(shown, Layout.one_each(me.size), fixed=FEATURES), y=said)  # 13

    def _own(self, me: Party) -> Array:
        """Return each user's features, (n, width)."""
        nature = self.nature()
        if nature is not None:
            return features_of("truth", nature, me.draw, me.y.view(np.uint8), "own features")
        try:
            x = me.x
        except MissingColumnError as error:
            text = (
                f"truth = {self.truth!r}: users have no features of their own; give users with features, or what "
                "draws features given the label as truth, in the form of the generator"
            )
            raise MissingColumnError(text, error.part, error.name) from None
        if x.shape[1] != self.width:
            raise InputError(
                f"generator = {self.generator!r}: draws {self.width} features, users have {x.shape[1]}; give a "
                "generator of as many features as users have"
            )
        _check_size("features of users", x, me.id)
        return x

    def learner(self, me: Party) -> Rounds:
        """Receive features and labels."""
        reports = yield self.report.receive()
        return reports.columns()


def _check_size(name: str, x: Array, rows: Any) -> None:
    """Check that features can travel; ``rows``: what each row is called.  Raises InputError."""
    if not x.size or (x.min() >= FEATURES.low and x.max() <= FEATURES.high):
        return
    outside = (x < FEATURES.low) | (x > FEATURES.high)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise InputError(
            f"{name}: feature {column} of row {rows[row]} is {x[row, column]!r}, but features travel as multiples of "
            f"2^-16 from {FEATURES.low:,.0f} to below {-FEATURES.low:,.0f}: scale that column first"
        )

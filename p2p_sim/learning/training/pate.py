"""PATE for private labels: teachers of disjoint users vote, and a student learns from noisy answers.

A trusted curator holds the labels; features are public.  What she gives away are answers to a number of queries that
is fixed in advance, and the student that was trained on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from p2p_sim.core import exact
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import order, own_words, stream, words
from p2p_sim.learning.training import keyed_noise, models
from p2p_sim.learning.training import pate_accounting as accounting
from p2p_sim.learning.training.class_codes import numbered
from p2p_sim.learning.training.fixmatch import UNLABELED
from p2p_sim.privacy.profile import PrivacyProfile

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LIKELIEST, SAMPLED = "likeliest", "sampled"

NOBODY, STUDENT, TEACHERS, BOTH = "nobody", "student", "teachers", "both"
SEMI_SUPERVISED = (NOBODY, STUDENT, TEACHERS, BOTH)

ROLE = "pate-curator"
"""Under this name everything is drawn; it cannot be the name of a protocol's role."""


class PATEClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Private aggregation of teacher ensembles for any classifiers, with the conventions of scikit-learn.

    ``teacher``, ``student``: untrained scikit-learn classifiers; None: a standard scaler and logistic regression.
    ``teachers``: how many, at least 1 and at most one a row; each is trained on the labels of its own users.  One whose
    users are all of one class always votes for it.  ``queries``: how many answers the student is trained on, at least
    1, at most one a row.  ``noise``: at least 0, in votes, on each count of a query's histogram.  ``kind``: of the
    noise, "gaussian" (its standard deviation, GNMax) or "laplace" (the scale b of discrete Laplace noise, LNMax).
    ``votes``: a teacher votes for the "likeliest" label, or for one "sampled" from its probabilities.  ``answers``: the
    "likeliest" label, with the largest noisy count, ties drawn; or one "sampled", each as likely as its noisy count is
    large, counts below 0 being 0; where none is above, every label is as likely.  Both sampled: for rare labels.
    ``semi_supervised``: who also gets the features of rows whose labels they do not have, labelled -1 as scikit-learn's
    semi-supervised classifiers want it: "nobody", "student", "teachers" or "both".  ``classes``: all that a label can
    be, sorted; None: those that occur.  ``seed``: of all draws, below 2^64; also of every ``random_state`` of teachers
    and student.

    After ``fit``: ``classes_``; ``student_``; ``n_rows_``; ``asked_`` (q,), which rows the queries are of, counted
    through X and then ``unlabeled``; ``histograms_`` (q, k), noisy; ``answers_`` (q,).  Teachers and votes are not
    kept.  Raises InputError for arguments out of range, and for a teacher or student that cannot be used as asked.

    *Source:* Papernot et al. 2017 (Laplace noise) and 2018 (Gaussian noise); sampled votes and answers: Attacks 2023,
    Appendix B, which does not say what becomes of counts below 0; semi-supervised teachers: Esmaeili et al. 2021.
    *Assumes:* features are public, and so are the number and order of rows and all arguments (``classes`` too, which
    None takes from the labels) but ``seed``, with which anybody can undo the noise; no labels make training fail.
    Gaussian noise is rounded to floating-point numbers, which a real adversary can exploit (Mironov 2012): good for a
    simulation, not for a release.  Laplace noise is discrete, by integer thresholds.
    """

    def __init__(
        self,
        teacher: Any = None,
        student: Any = None,
        *,
        teachers: int = 5,
        queries: int = 10,
        noise: float = 0.5,
        kind: str = accounting.GAUSSIAN,
        votes: str = LIKELIEST,
        answers: str = LIKELIEST,
        semi_supervised: str = NOBODY,
        classes: Sequence[Any] | None = None,
        seed: int = 0,
    ):
        self.teacher = teacher
        self.student = student
        self.teachers = teachers
        self.queries = queries
        self.noise = noise
        self.kind = kind
        self.votes = votes
        self.answers = answers
        self.semi_supervised = semi_supervised
        self.classes = classes
        self.seed = seed

    def fit(self, X: Any, y: Any, unlabeled: Any = None) -> Self:
        """Train on features (n, d) and labels (n,).

        ``unlabeled``: public features (m, d) that the queries are of; None: they are of rows of X, whose features are
        public too.
        """
        self._check()
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = numbered(y, self.classes)
        self.n_rows_ = len(x)
        extra = x[:0] if unlabeled is None else check_array(unlabeled, dtype=[np.float64, np.float32])
        self._check_rows(x, extra, unlabeled is not None)
        first, many = (0, len(x)) if unlabeled is None else (len(x), len(extra))
        self.asked_ = first + chosen(self.seed, many, self.queries)
        rows = np.concatenate([x, extra])
        with models.one_thread():  # another number of threads would sum in another order
            counts = self._counts(rows, codes)
            self.histograms_ = noisy(counts, self.noise, self.kind, self.seed)
            found = answered(self.histograms_, self.answers, self.seed)
            alone = self.semi_supervised not in (STUDENT, BOTH)
            state = _states(self.seed, "student", 1)[0]
            self.student_ = _trained(self.student, rows, self.asked_, found, state, alone, "student")
        self.answers_ = self.classes_[found]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the student's probability of each class, (m, k); 0 for one that was never answered."""
        rows = self._rows(X)
        return _probabilities(self.student_, rows, len(self.classes_), "student")

    def predict(self, X: Any) -> Array:
        """Return the label that the student predicts for each row, (m,)."""
        rows = self._rows(X)
        with models.one_thread():
            return np.asarray(self.classes_[self.student_.predict(rows)])

    def profile(self, members: int = 1, released: str = accounting.ANSWERS) -> PrivacyProfile:
        """Return what a fit with these arguments shows of one label, or of ``members`` that change together.

        See ``pate_accounting.profile``; more members than teachers change no more than all votes.
        """
        self._check()
        check_whole("members", members, 1, accounting.MOST_MEMBERS)
        moved = min(int(members), int(self.teachers))
        return accounting.profile(self.noise, self.queries, self.kind, members=moved, released=released)

    def epsilon(self, delta: float, members: int = 1) -> float:
        """Return epsilon, in nats, at ``delta`` in [0, 1), of a fit with these arguments; infinite without noise."""
        if delta == 1:
            raise InputError(f"delta = {delta!r}: must be below 1; give one such as 1e-6, or 1 / rows")
        return self.profile(members).epsilon(delta)

    def _counts(self, rows: Array, codes: Array) -> Array:
        """Return how many teachers vote for each class, for each query, (q, k)."""
        counts = np.zeros((self.queries, len(self.classes_)), np.int64)
        alone = self.semi_supervised not in (TEACHERS, BOTH)
        states = _states(self.seed, "teacher", self.teachers)
        for number, own in enumerate(split(self.seed, len(codes), self.teachers)):
            model = _trained(self.teacher, rows, own, codes[own], states[number], alone, f"teacher {number}")
            counts[np.arange(self.queries), self._ballot(model, rows[self.asked_], number)] += 1
        return counts

    def _ballot(self, model: Any, asked: Array, number: int) -> Array:
        """Return the label that a teacher votes for in each query, (q,): one, whatever it was trained on."""
        if self.votes == SAMPLED:
            shares = _probabilities(model, asked, len(self.classes_), f"teacher {number}")
            return sampled(shares, own_words(self.seed, stream(ROLE, "vote", 0), number, len(asked)))
        with _naming(f"teacher {number}"):
            return np.asarray(model.predict(asked), np.int64)

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def _check(self) -> None:
        check_whole("teachers", self.teachers)
        check_whole("queries", self.queries)
        accounting.check_noise(self.noise, self.kind)
        check_seed(self.seed)
        for name, known in (
            ("votes", (LIKELIEST, SAMPLED)), ("answers", (LIKELIEST, SAMPLED)), ("semi_supervised", SEMI_SUPERVISED),
        ):  # fmt: skip
            value = getattr(self, name)
            if value not in known:
                raise InputError(f"{name} = {value!r}: must be one of {', '.join(map(repr, known))}")

    def _check_rows(self, x: Array, extra: Array, apart: bool) -> None:
        """Check the numbers of rows, which are public."""
        samples = f"{len(x)} sample{'' if len(x) == 1 else 's'}"
        if self.teachers > len(x):
            raise InputError(
                f"teachers = {self.teachers}: there are {samples}, each teacher needs a user; choose fewer"
            )
        if extra.shape[1] != x.shape[1]:
            raise InputError(
                f"unlabeled has {extra.shape[1]} features, X has {x.shape[1]}: give the same in both"
            )
        many, where = (len(extra), "unlabeled") if apart else (len(x), "X")
        if self.queries > many:
            raise InputError(
                f"queries = {self.queries}: {where} has {many} rows, and each is asked about once at most; ask fewer"
            )


def split(seed: int, rows: int, teachers: int) -> list[Array]:
    """Return the rows of each teacher: disjoint parts of a random order, whose sizes differ by at most one.

    No label decides where a row goes.  In a split that keeps shares of classes, a label that changes would move other
    rows from one teacher to another, and with them the votes of several.
    """
    shuffled = order(words(seed, stream(ROLE, "split", 0), 0, rows))
    return [np.sort(part) for part in np.array_split(shuffled, teachers)]


def chosen(seed: int, rows: int, queries: int) -> Array:
    """Return the rows of the queries, drawn without replacement and without looking at labels, in ascending order."""
    return np.sort(order(words(seed, stream(ROLE, "query", 0), 0, rows))[:queries])


def noisy(counts: Array, noise: float, kind: str, seed: int) -> Floats:
    """Return histograms (q, k) with noise, in votes, on every count; of kind "laplace" they are whole numbers."""
    if not noise:
        return counts.astype(np.float64)
    key = stream(ROLE, "noise", 0)
    if kind == accounting.GAUSSIAN:
        return np.asarray(counts + noise * keyed_noise.gaussian(seed, key, counts.shape))
    table, least = exact.laplace_thresholds(exact.as_scale("noise", noise))
    steps = exact.pick(table, own_words(seed, key, 0, counts.size)) + least
    return (counts + steps.reshape(counts.shape)).astype(np.float64)


def answered(histograms: Floats, answers: str, seed: int) -> Array:
    """Return the answer (q,) to each query, made of its noisy histogram (q, k) alone."""
    drawn = own_words(seed, stream(ROLE, "answer", 0), 0, histograms.size)
    if answers == SAMPLED:
        shares = np.maximum(histograms, 0.0)
        shares[shares.sum(axis=1) == 0] = 1.0
        return sampled(shares, drawn[: len(shares)])
    ties = histograms == histograms.max(axis=1, keepdims=True)
    places = _uniform(drawn).reshape(histograms.shape)  # whole numbers tie, and the first class is no better
    return np.asarray(np.where(ties, places, -1.0).argmax(axis=1))


def sampled(shares: Floats, drawn: Array) -> Array:
    """Return a label of each row of shares (n, k), at least 0, as likely as its share is large, by its word."""
    running = np.cumsum(shares, axis=1)
    return np.asarray((running[:, :-1] <= (_uniform(drawn) * running[:, -1])[:, None]).sum(axis=1))


def _trained(template: Any, rows: Array, own: Array, codes: Array, state: int, alone: bool, who: str) -> Any:
    """Return a classifier trained on the codes of its own rows; unless ``alone``, on all features too."""
    from sklearn.dummy import DummyClassifier

    several = len(np.unique(codes)) > 1
    model = clone(models.make() if template is None else template) if several else DummyClassifier()
    states = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
    model.set_params(**dict.fromkeys(states, state))
    if alone or not several:
        x, labels = rows[own], codes
    else:
        x, labels = rows, np.full(len(rows), UNLABELED)
        labels[own] = codes
    with _naming(f"{who}, of {len(own)} labels,"):
        return model.fit(x, labels)


@contextmanager
def _naming(who: str) -> Iterator[None]:
    """Say whose error it is: that of a classifier that the caller chose."""
    try:
        yield
    except InputError:  # says itself what to do
        raise
    except ValueError as error:
        raise InputError(
            f"{who} fails: {error}; choose fewer teachers, more queries or another classifier"
        ) from error


def _probabilities(model: Any, rows: Array, classes: int, who: str) -> Floats:
    """Return the probability of each class, (n, k); 0 for one that the model does not know."""
    found = np.zeros((len(rows), classes))
    try:
        with models.one_thread(), _naming(who):
            found[:, model.classes_] = model.predict_proba(rows)
    except AttributeError as error:
        raise InputError(
            f"{who} has no probabilities ({error}): choose a classifier with predict_proba, and for its votes "
            f"votes={LIKELIEST!r} does without"
        ) from error
    return found


def _states(seed: int, who: str, count: int) -> list[int]:
    """Return a ``random_state`` for each of ``count`` models, below 2^31."""
    return [int(word) for word in words(seed, stream(ROLE, who, 0), 0, count) >> np.uint64(33)]


def _uniform(drawn: Array) -> Floats:
    """Return numbers in [0, 1) from words."""
    return np.asarray((drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53)

"""PATE for private labels: teachers of disjoint users vote, and a student learns from noisy answers.

A trusted curator holds the labels; features are public.  What she gives away are answers to a number of queries that
is fixed in advance, and the student that was trained on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from p2p_sim.core import exact, seeds
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import order, own_words, stream, uniform, words
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
    be, sorted; None: those that occur, so that a rare label shows by its presence.  ``seed``: of what must stay secret
    (split, teachers, votes, noise, answers), below 2^64; None: a fresh one in every fit, from the system's entropy,
    which is not kept.  ``public_seed``: of the queries and the student's ``random_state``, below 2^64; it says nothing
    of ``seed``, and must be another number.

    A ``seed`` that is given must be random, such as ``secrets.randbits(64)``: whoever guesses it undoes the noise.  And
    it is for one fit: two with the same seed have the same noise, and their difference has none.  ``clone``,
    ``GridSearchCV`` and ``cross_val_score`` keep it.  Each of their fits also costs its own epsilon.

    After ``fit``: ``classes_``; ``student_``; ``n_rows_``; ``asked_`` (q,), which rows the queries are of, counted
    through X and then ``unlabeled``; ``histograms_`` (q, k), noisy; ``answers_`` (q,); ``fitted_``, the arguments that
    the fit's epsilon is of.  Teachers and votes are not kept.  Raises InputError for arguments out of range, and for a
    teacher or student that cannot be used as asked.

    *Source:* Papernot et al. 2017 (Laplace noise) and 2018 (Gaussian noise); sampled votes and answers: Attacks 2023,
    Appendix B, which does not say what becomes of counts below 0; semi-supervised teachers: Esmaeili et al. 2021.
    *Assumes:* features are public, and so are the number and order of rows and all arguments (``classes`` too, which
    None takes from the labels) but ``seed``; no labels make training fail.
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
        seed: int | None = None,
        public_seed: int = 0,
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
        self.public_seed = public_seed

    def fit(self, X: Any, y: Any, unlabeled: Any = None) -> Self:
        """Train on features (n, d) and labels (n,).

        ``unlabeled``: public features (m, d) that the queries are of; None: they are of rows of X, whose features are
        public too.
        """
        self._check()
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, codes = numbered(y, self.classes)
        extra = x[:0] if unlabeled is None else self._extra(x, unlabeled)
        self._check_rows(x, extra, unlabeled is not None)
        first, many = (0, len(x)) if unlabeled is None else (len(x), len(extra))
        seed = seeds.chosen(self.seed)
        asked = first + chosen(int(self.public_seed), many, int(self.queries))
        rows = np.concatenate([x, extra])
        with models.one_thread():  # another number of threads would sum in another order
            counts = self._counts(rows, codes, asked, len(classes), seed)
            histograms = noisy(counts, self.noise, self.kind, seed)
            found = answered(histograms, self.answers, seed)
            alone = self.semi_supervised not in (STUDENT, BOTH)
            state = _states(int(self.public_seed), "student", 1)[0]
            student = _trained(self.student, rows, asked, found, state, alone, "student")
        self.classes_, self.n_rows_, self.asked_ = classes, len(x), asked
        self.histograms_, self.student_, self.answers_ = histograms, student, classes[found]
        self.fitted_ = self._accounted()
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the student's probability of each class, (m, k); 0 for one that was never answered."""
        rows = self._rows(X)
        return _probabilities(self.student_, rows, len(self.classes_), "student")

    def predict(self, X: Any) -> Array:
        """Return the label that the student predicts for each row, (m,)."""
        rows = self._rows(X)
        with models.one_thread():
            return np.asarray(self.classes_[_predicted(self.student_, rows, len(self.classes_), "student")])

    def profile(self, members: int = 1, released: str = accounting.ANSWERS) -> PrivacyProfile:
        """Return what the fit shows of one label, or of ``members`` that change together; before it, what one would.

        See ``pate_accounting.profile``; more members than teachers change no more than all votes.  Arguments that are
        changed after a fit change nothing until the next one.
        """
        given = getattr(self, "fitted_", None)
        if given is None:
            self._check()
            given = self._accounted()
        check_whole("members", members, 1, accounting.MOST_MEMBERS)
        found = accounting.profile(
            given["noise"], given["queries"], given["kind"],
            members=min(int(members), given["teachers"]), released=released,
        )  # fmt: skip
        return replace(found, assumes=(*found.assumes, given["seed"], *given["classes"]))

    def epsilon(self, delta: float, members: int = 1) -> float:
        """Return epsilon, in nats, at ``delta`` in [0, 1), of the fit, see ``profile``; infinite without noise."""
        if delta == 1:
            raise InputError(f"delta = {delta!r}: must be below 1; give one such as 1e-6, or 1 / rows")
        return self.profile(members).epsilon(delta)

    def _accounted(self) -> dict[str, Any]:
        """Return what epsilon and its assumptions are of; not the seed, only of which sort it is."""
        return {
            "noise": self.noise, "kind": self.kind, "queries": int(self.queries), "teachers": int(self.teachers),
            "seed": accounting.assumed_of_seed(self.seed),
            "classes": (accounting.CLASSES,) if self.classes is None else (),
        }  # fmt: skip

    def _extra(self, x: Array, unlabeled: Any) -> Array:
        """Return further public features, of as many columns as X, and with the same names if they have names."""
        extra = check_array(unlabeled, dtype=[np.float64, np.float32])
        if extra.shape[1] != x.shape[1]:
            raise InputError(
                f"unlabeled has {extra.shape[1]} features, X has {x.shape[1]}: give the same in both"
            )
        try:
            validate_data(self, unlabeled, reset=False, skip_check_array=True)
        except ValueError as error:
            raise InputError(f"unlabeled has other features than X: {error}") from error
        return np.asarray(extra)

    def _counts(self, rows: Array, codes: Array, asked: Array, classes: int, seed: int) -> Array:
        """Return how many teachers vote for each class, for each query, (q, k)."""
        counts = np.zeros((len(asked), classes), np.int64)
        alone = self.semi_supervised not in (TEACHERS, BOTH)
        states = _states(seed, "teacher", int(self.teachers))
        for number, own in enumerate(split(seed, len(codes), int(self.teachers))):
            who = f"teacher {number}"
            model = _trained(self.teacher, rows, own, codes[own], states[number], alone, who)
            if self.votes == SAMPLED:
                shares = _probabilities(model, rows[asked], classes, who)
                ballot = sampled(shares, own_words(seed, stream(ROLE, "vote", 0), number, len(asked)))
            else:
                ballot = _predicted(model, rows[asked], classes, who)
            counts[np.arange(len(asked)), ballot] += 1  # one vote a query, whatever it was trained on
        return counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        return tags

    def _rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def _check(self) -> None:
        check_whole("teachers", self.teachers)
        check_whole("queries", self.queries)
        accounting.check_noise(self.noise, self.kind)
        if self.seed is not None:
            check_seed(self.seed)
        check_seed(self.public_seed, "public_seed")
        for name in ("teacher", "student"):
            _check_classifier(name, getattr(self, name))
        for name, known in (
            ("votes", (LIKELIEST, SAMPLED)), ("answers", (LIKELIEST, SAMPLED)), ("semi_supervised", SEMI_SUPERVISED),
        ):  # fmt: skip
            value = getattr(self, name)
            if value not in known:
                raise InputError(
                    f"{name} = {value!r}: must be one of {', '.join(map(repr, known))}{near(str(value), known)}"
                )

    def _check_rows(self, x: Array, extra: Array, apart: bool) -> None:
        """Check the numbers of rows, which are public."""
        samples = f"{len(x)} sample{'' if len(x) == 1 else 's'}"
        if self.teachers > len(x):
            raise InputError(
                f"teachers = {self.teachers}: there are {samples}, each teacher needs a user; choose fewer"
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
        return np.asarray(counts + float(noise) * keyed_noise.gaussian(seed, key, counts.shape))
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
    places = uniform(drawn).reshape(histograms.shape)  # whole numbers tie, and the first class is no better
    return np.asarray(np.where(ties, places, -1.0).argmax(axis=1))


def sampled(shares: Floats, drawn: Array) -> Array:
    """Return a label of each row of shares (n, k), at least 0, as likely as its share is large, by its word."""
    running = np.cumsum(shares, axis=1)
    return np.asarray((running[:, :-1] <= (uniform(drawn) * running[:, -1])[:, None]).sum(axis=1))


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
        model.fit(x, labels)
    if UNLABELED in getattr(model, "classes_", ()):
        raise InputError(
            f"{who} takes -1, which says that a row has no label, for a class: choose a classifier that learns "
            f"from rows without labels, such as SelfTrainingClassifier, or semi_supervised={NOBODY!r}"
        )
    return model


def _check_classifier(name: str, template: Any) -> None:
    """Check that a teacher or student, if one is given, is an untrained classifier."""
    if template is None:
        return
    usable = hasattr(template, "get_params") and not isinstance(template, type)
    if not usable or not is_classifier(template):
        raise InputError(
            f"{name} = {template!r}: must be a scikit-learn classifier, an object such as LogisticRegression(), or None"
        )


def _predicted(model: Any, rows: Array, classes: int, who: str) -> Array:
    """Return the number of the class that a model predicts for each row, (n,)."""
    with _naming(who):
        found = np.asarray(model.predict(rows))
    if not np.isin(found, np.arange(classes)).all():
        raise InputError(
            f"{who} predicts {found[~np.isin(found, np.arange(classes))][0]!r}, which is no class it was trained on "
            f"(0 to {classes - 1}): choose another classifier"
        )
    return found.astype(np.int64)


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

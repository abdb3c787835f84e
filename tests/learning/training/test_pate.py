"""PATE: what a label can move, the noise and choices it draws, an audit of the answers, scikit-learn's checks."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.learning.training import pate
from p2p_sim.learning.training import pate_accounting as accounting
from p2p_sim.learning.training.dp_sgd import DPSGDClassifier
from p2p_sim.learning.training.pate import PATEClassifier, answered, chosen, noisy, sampled, split
from p2p_sim.privacy.auditing.confidence_bounds import count, delta_lower, epsilon_lower

FALSE_ALARM = 1e-9
"""Of each test of chance; seeds are fixed, so a test that passes once passes always."""

TRIALS = 20_000


@pytest.fixture(autouse=True)
def same_fresh_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take fresh seeds from a count, not from the system's entropy, so that every test is the same every time."""
    fresh = itertools.count(1)
    monkeypatch.setattr(seeds, "chosen", lambda seed: next(fresh) if seed is None else seed)


def rows_of(n: int, seed: int = 0, features: int = 5, classes: int = 3) -> tuple[Any, Any]:
    chance = np.random.default_rng(seed)
    return chance.normal(size=(n, features)), chance.integers(0, classes, n)


def counted(model: PATEClassifier, x: Any, y: Any) -> Any:
    """The votes of a fit, before noise."""
    model = clone(model).set_params(noise=0, classes=[0, 1, 2])
    model.set_params(seed=model.seed or 0)
    return model.fit(x, y).histograms_


# --- what a label can move ---


@pytest.mark.parametrize(("rows", "teachers"), [(10, 10), (103, 7), (50, 1)])
def test_teachers_have_disjoint_users_and_everybody_is_one(rows: int, teachers: int) -> None:
    parts = split(3, rows, teachers)
    assert len(parts) == teachers
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


def test_the_split_and_the_queries_are_uniform() -> None:
    """Row 0 is with each teacher, and asked, as often as it should be."""
    seeds = range(2000)
    homes = np.array([next(i for i, part in enumerate(split(s, 12, 4)) if 0 in part) for s in seeds])
    low, high = stats.binom.ppf([FALSE_ALARM / 8, 1 - FALSE_ALARM / 8], len(seeds), 0.25)
    assert all(low <= n <= high for n in np.bincount(homes, minlength=4))
    asked = sum(0 in chosen(s, 12, 3) for s in seeds)
    assert low <= asked <= high
    assert len(set(chosen(5, 40, 40).tolist())) == 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "votes"),
    [
        (KNeighborsClassifier(1), "likeliest"), (KNeighborsClassifier(1), "sampled"),
        (DecisionTreeClassifier(), "sampled"), (LogisticRegression(), "likeliest"),
    ],
)  # fmt: skip
def test_another_label_moves_one_vote_in_every_query_at_most(teacher: Any, votes: str) -> None:
    x, y = rows_of(24)
    model = PATEClassifier(teacher, teachers=6, queries=24, votes=votes, seed=2)
    before, moved = counted(model, x, y), []
    for i in range(len(y)):
        other = y.copy()
        other[i] = (y[i] + 1) % 3
        step = counted(model, x, other) - before
        assert set(np.abs(step).ravel().tolist()) <= {0, 1}
        assert set(np.abs(step).sum(axis=1).tolist()) <= {0, 2}
        moved.append(bool(step.any()))
    assert all(moved) if isinstance(teacher, KNeighborsClassifier) else any(moved)


def test_a_split_that_keeps_shares_of_classes_would_move_several_votes(monkeypatch: Any) -> None:
    """The twin that is wrong on purpose: rows are dealt class by class."""
    x, y = rows_of(40)
    model, worst = PATEClassifier(KNeighborsClassifier(1), teachers=8, queries=40), 0

    def votes(labels: Any) -> Any:
        dealt = np.argsort(labels, kind="stable")
        monkeypatch.setattr(
            pate, "split", lambda seed, rows, teachers: [dealt[i::teachers] for i in range(8)]
        )
        return counted(model, x, labels)

    for i in range(10):
        other = y.copy()
        other[i] = (y[i] + 1) % 3
        worst = max(worst, int(np.abs(votes(other) - votes(y)).sum(axis=1).max()))
    assert worst > 2


def test_one_first_part_for_all_teachers_is_not_what_is_trained() -> None:
    """Seen in another tool: every teacher got the first partition, and a label moved every vote."""
    x, y = rows_of(40)
    seen: list[Any] = []

    class Spy(DecisionTreeClassifier):
        def fit(self, x: Any, y: Any) -> Any:
            seen.append(x[:, 0].tolist())
            return super().fit(x, y)

    PATEClassifier(Spy(), LogisticRegression(), teachers=8, queries=20).fit(x, y)
    assert sorted(value for part in seen for value in part) == sorted(x[:, 0].tolist())


# --- chance ---


@pytest.mark.parametrize("noise", [0.7, 5.0, 60.0])
@pytest.mark.parametrize("kind", accounting.KINDS)
def test_noise_is_of_its_kind_with_the_scale_that_epsilon_is_computed_with(kind: str, noise: float) -> None:
    counts = np.tile([3, 0, 7], (20_000, 1))
    added = (noisy(counts, noise, kind, 4) - counts).ravel()
    if kind == "gaussian":
        assert stats.kstest(added / noise, "norm").pvalue > FALSE_ALARM
    else:
        assert (added == np.round(added)).all()
        reach = int(3 * noise) + 1
        inside = stats.dlaplace(1 / noise).pmf(np.arange(-reach, reach + 1))
        seen = np.bincount(np.clip(added.astype(int), -reach - 1, reach + 1) + reach + 1)
        rest = (1 - inside.sum()) / 2
        expected = np.concatenate([[rest], inside, [rest]]) * len(added)
        assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM
    assert (noisy(counts, noise, kind, 4) == noisy(counts, noise, kind, 4)).all()
    assert abs(np.corrcoef(added[::3], added[1::3])[0, 1]) < 0.05  # counts of a query have noise of their own
    assert abs(np.corrcoef(added[:-3:3], added[3::3])[0, 1]) < 0.05
    assert (noisy(counts, noise, kind, 5) != noisy(counts, noise, kind, 4)).any()


def test_answers_are_made_of_the_noisy_histograms_alone() -> None:
    histograms = np.array([[1.0, 5.0, 2.0], [-3.0, -9.0, -4.0], [0.1, 0.0, 0.2]])
    assert answered(histograms, "likeliest", 0).tolist() == [1, 0, 2]
    before = histograms.copy()
    answered(histograms, "sampled", 0)
    assert (histograms == before).all()


def shares_of(row: list[float], answers: str) -> Any:
    found = answered(np.tile(row, (TRIALS, 1)), answers, 6)
    return np.bincount(found, minlength=len(row))


@pytest.mark.parametrize(
    ("row", "answers", "law"),
    [
        ([4, 9, 9], "likeliest", [0, 1 / 2, 1 / 2]), ([2, 2, 2], "likeliest", [1 / 3] * 3),
        ([1, 2, 5], "sampled", [1 / 8, 2 / 8, 5 / 8]), ([-7, 1, 3], "sampled", [0, 1 / 4, 3 / 4]),
        ([-1, -2, 0], "sampled", [1 / 3] * 3), ([3, 0, -2], "sampled", [1, 0, 0]),
    ],
)  # fmt: skip
def test_ties_and_sampled_answers_have_their_law(row: list[float], answers: str, law: list[float]) -> None:
    seen = shares_of([float(n) for n in row], answers)
    for n, p in zip(seen, law, strict=True):
        low, high = stats.binom.ppf([FALSE_ALARM / 6, 1 - FALSE_ALARM / 6], TRIALS, p)
        assert max(low, 0) <= n <= high


def test_sampled_votes_are_as_likely_as_the_teachers_probabilities() -> None:
    """One cell of features: every teacher's probabilities are the shares among its users."""
    x, y = np.zeros((2000, 1)), np.arange(2000) % 10 == 0
    model = PATEClassifier(
        DecisionTreeClassifier(), teachers=20, queries=2000, noise=0, votes="sampled", seed=1
    )
    votes = model.fit(x, y).histograms_[:, 1]
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 40_000, 0.1)
    assert low <= votes.sum() <= high
    between = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2000)
    assert between[0] < ((votes - 2) ** 2).sum() / (20 * 0.1 * 0.9) < between[1]  # independent, or nearly


def test_words_just_below_the_end_give_the_last_label() -> None:
    top = np.array([2**64 - 1, 0], np.uint64)
    assert sampled(np.array([[0.2, 0.8], [0.2, 0.8]]), top).tolist() == [1, 0]


# --- the audit ---


def ones(kind: str, there: float, counts: list[int], seed: int, queries: int) -> Any:
    """How many of the queries are answered by label 1, in each of 20,000 trials."""
    histograms = noisy(np.tile(counts, (TRIALS * queries, 1)), there, kind, seed)
    return answered(histograms, "likeliest", seed).reshape(TRIALS, queries).sum(axis=1)


def audited(kind: str, there: float, queries: int) -> Any:
    """One teacher of nine votes otherwise in every query; the thresholds are known before."""
    first, second = (ones(kind, there, votes, seed, queries) for votes, seed in (([5, 4], 11), ([4, 5], 12)))
    return count(first, second, np.arange(queries) + 0.5)


@pytest.mark.parametrize("kind", accounting.KINDS)
def test_an_audit_is_consistent_and_finds_half_the_noise(kind: str) -> None:
    noise, queries, delta = 3.0, 6, 0.01
    claimed = accounting.profile(noise, queries, kind).epsilon(delta)
    confidence = 1 - FALSE_ALARM
    assert 0 < epsilon_lower(audited(kind, noise, queries), delta, confidence).value <= claimed
    assert epsilon_lower(audited(kind, noise / 2, queries), delta, confidence).value > claimed


def test_one_answer_shows_all_of_a_gaussian_histogram_at_epsilon_0() -> None:
    """Where the vote decides: the audit comes within a tenth of the claim."""
    claimed = accounting.profile(3.0, 1).delta(0.0)
    found = delta_lower(audited("gaussian", 3.0, 1), 0.0, 0.999).value
    assert 0.85 * claimed < found <= claimed
    assert delta_lower(audited("gaussian", 1.5, 1), 0.0, 0.999).value > claimed


# --- learning ---


@pytest.mark.slow
def test_digits_with_epsilon_1() -> None:
    x, y = load_digits(return_X_y=True)
    noise = accounting.calibrate(1.0, 1e-5, 60)
    model = PATEClassifier(teachers=100, queries=60, noise=noise, classes=range(10), seed=1)
    private = model.fit(x[:1500], y[:1500]).score(x[1500:], y[1500:])
    assert model.epsilon(1e-5) == pytest.approx(1.0, rel=1e-6)
    plain = model.set_params(teachers=10, noise=0).fit(x[:1500], y[:1500]).score(x[1500:], y[1500:])
    assert plain > 0.6
    assert 0.1 < private < plain  # 1,500 users are few for this


@pytest.mark.slow
def test_sampling_keeps_rare_labels() -> None:
    """Attacks 2023, Appendix B: otherwise all aggregated labels would be 0."""
    chance = np.random.default_rng(0)
    x = chance.normal(size=(6000, 2))
    y = (chance.random(6000) < 0.03 * np.exp(0.5 * x[:, 0])).astype(int)
    given = {"teachers": 60, "queries": 400, "noise": 2.0, "classes": [0, 1], "seed": 0}
    usual = PATEClassifier(**given).fit(x, y)
    rare = PATEClassifier(**given, votes="sampled", answers="sampled").fit(x, y)
    assert (usual.answers_ == 0).all()
    assert usual.predict_proba(x[:3]).tolist() == [[1.0, 0.0]] * 3
    assert 0.01 < (rare.answers_ == 1).mean() < 0.15
    assert usual.epsilon(1e-5) == rare.epsilon(1e-5)


def test_equal_seeds_give_equal_models_whatever_numpy_drew() -> None:
    x, y = rows_of(80)
    model = PATEClassifier(RandomForestClassifier(5), RandomForestClassifier(5), queries=40, seed=3)
    one = clone(model).fit(x, y)
    np.random.seed(7)  # noqa: NPY002 - what a forest without a random_state would look at
    again, other = clone(model).fit(x, y), clone(model).set_params(seed=4).fit(x, y)
    assert (one.histograms_ == again.histograms_).all()
    assert (one.predict_proba(x) == again.predict_proba(x)).all()
    assert (one.histograms_ != other.histograms_).any()


def test_a_teacher_of_one_class_votes_all_the_same() -> None:
    x, y = rows_of(30)
    y[:] = 0
    y[0] = 2
    found = counted(PATEClassifier(teachers=10, queries=30), x, y)
    assert (found.sum(axis=1) == 10).all()
    assert (found[:, 0] >= 9).all()
    assert (found[:, 1] == 0).all()


def test_the_student_sees_answers_and_features_alone() -> None:
    """Queries of other rows: the labels of these are not even there."""
    x, y = rows_of(60)
    other, _ = rows_of(25, seed=9)
    model = PATEClassifier(queries=10, noise=0, classes=[0, 1, 2], seed=5).fit(x, y, unlabeled=other)
    assert ((model.asked_ >= 60) & (model.asked_ < 85)).all()
    assert len(set(model.asked_.tolist())) == 10
    student = clone(model.student_).fit(other[model.asked_ - 60], model.answers_)
    assert (student.predict_proba(x) == model.predict_proba(x)[:, student.classes_]).all()
    assert "votes_" not in vars(model)
    assert "teachers_" not in vars(model)


class Told(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Notes what it is trained on."""

    told: list[tuple[int, int]] = []

    def fit(self, x: Any, y: Any) -> Any:
        Told.told.append((len(x), int((y == -1).sum())))
        self.classes_ = np.unique(y[y >= 0])
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.classes_[0])


@pytest.mark.parametrize("who", ["nobody", "student", "teachers", "both"])
def test_semi_supervised_students_and_teachers_get_all_features(who: str) -> None:
    x, y = rows_of(40)
    Told.told = []
    PATEClassifier(Told(), LogisticRegression(), teachers=4, queries=8, noise=0, seed=0).fit(x, y)
    assert Told.told == [(10, 0)] * 4
    Told.told = []
    y = np.arange(40) % 3
    PATEClassifier(
        Told(), SelfTrainingClassifier(LogisticRegression()) if who in ("student", "both") else LogisticRegression(),
        teachers=4, queries=8, noise=3.0, semi_supervised=who, seed=1,
    ).fit(x, y, unlabeled=x[:20])  # fmt: skip
    assert Told.told == ([(60, 50)] * 4 if who in ("teachers", "both") else [(10, 0)] * 4)


def test_words_as_classes_and_students_without_probabilities() -> None:
    x, y = rows_of(60, classes=2)
    x[:, 0] = 4.0 * y - 2
    model = PATEClassifier(student=LinearSVC(), noise=0.1, seed=0).fit(x, np.array(["no", "yes"])[y])
    assert set(model.predict(x)) == {"no", "yes"}
    with pytest.raises(InputError, match="student has no probabilities"):
        model.predict_proba(x)


@pytest.mark.slow
def test_every_check_of_scikit_learn_passes() -> None:
    sampled_both = PATEClassifier(kind="laplace", votes="sampled", answers="sampled", noise=0.1, seed=0)
    for model in (PATEClassifier(seed=0), sampled_both):
        found = check_estimator(model, on_fail=None, on_skip=None)
        status = {check["check_name"]: check["status"] for check in found}
        assert len(status) > 40
        skipped = {name for name, what in status.items() if what == "skipped"}
        assert skipped <= {"check_array_api_input"}  # needs SCIPY_ARRAY_API
        assert {name for name, what in status.items() if what not in ("passed", "skipped")} == set()


# --- its epsilon, and bad input ---


def test_epsilon_is_that_of_its_arguments() -> None:
    model = PATEClassifier(teachers=4, queries=30, noise=40.0)
    assert model.epsilon(1e-5) == accounting.profile(40.0, 30).epsilon(1e-5)
    assert model.profile(released="histograms").basis == "exact"
    assert model.epsilon(1e-5, members=3) == accounting.profile(40.0, 30, members=3).epsilon(1e-5)
    assert model.epsilon(1e-5, members=99) == accounting.profile(40.0, 30, members=4).epsilon(1e-5)
    assert PATEClassifier(noise=0).epsilon(1e-5) == math.inf
    for delta in (1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="delta"):
            model.epsilon(delta)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"teachers": 0}, "teachers = 0"), ({"teachers": 21}, "teachers = 21: there are 20 samples"),
        ({"queries": 0}, "queries = 0"), ({"queries": 21}, "queries = 21: X has 20 rows"),
        ({"noise": -1.0}, "noise = -1.0"), ({"noise": math.inf}, "noise = inf"), ({"kind": "other"}, "kind = 'other'"),
        ({"votes": "other"}, "votes = 'other'"), ({"answers": "most"}, "answers = 'most'"),
        ({"semi_supervised": True}, "semi_supervised = True"), ({"seed": -1}, "seed"),
        ({"classes": [0, 2]}, r"labels that are not in classes: \[1\]"), ({"classes": [1, 0, 2]}, "ascending"),
        ({"teacher": LinearSVC(), "votes": "sampled"}, "teacher 0 has no probabilities .* votes='likeliest'"),
        ({"teacher": KNeighborsClassifier(9)}, "teacher 0 fails: .*choose fewer teachers"),
    ],
)  # fmt: skip
def test_arguments_out_of_range(changed: dict[str, Any], told: str) -> None:
    x, y = rows_of(20)
    with pytest.raises(InputError, match=told):
        PATEClassifier(**{"seed": 0} | changed).fit(x, y)


def test_a_student_that_cannot_be_trained_is_named() -> None:
    x, y = rows_of(40)
    with pytest.raises(InputError, match=r"student, of 10 labels, fails: .*; choose fewer"):
        PATEClassifier(student=LogisticRegression(solver="other"), seed=0).fit(x, y)


def test_unlabeled_rows_that_do_not_fit() -> None:
    x, y = rows_of(20)
    with pytest.raises(InputError, match="unlabeled has 3 features, X has 5"):
        PATEClassifier().fit(x, y, unlabeled=np.zeros((30, 3)))
    with pytest.raises(InputError, match="queries = 10: unlabeled has 9 rows"):
        PATEClassifier().fit(x, y, unlabeled=x[:9])


@pytest.mark.slow
def test_it_needs_no_torch() -> None:
    words = "import sys, p2p_sim.learning.training.pate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0


# --- the seed, and what is kept of a fit ---


def test_nothing_that_may_be_given_away_depends_on_the_secret_seed_but_for_the_noise() -> None:
    x, y = rows_of(60, classes=2)
    student = RandomForestClassifier(3)
    one, other = (PATEClassifier(student=student, noise=0.1, seed=seed).fit(x, y) for seed in (1, 2**63 + 5))
    assert one.student_.random_state == other.student_.random_state
    assert (one.asked_ == other.asked_).all()
    moved = clone(one).set_params(public_seed=7).fit(x, y)
    assert (moved.asked_ != one.asked_).any()
    assert moved.student_.random_state != one.student_.random_state


def test_without_a_seed_each_fit_has_noise_of_its_own() -> None:
    x, y = rows_of(60)
    model = PATEClassifier(noise=3.0, classes=[0, 1, 2])
    one, two = clone(model).fit(x, y), clone(model).fit(x, y)
    assert (one.histograms_ != two.histograms_).all()
    again = model.fit(x, y).histograms_
    assert (again != model.fit(x, y).histograms_).all()
    assert model.seed is None


def test_assumes_says_what_is_of_the_seed_and_of_the_classes() -> None:
    fresh, small, random = (
        PATEClassifier(seed=s, classes=[0, 1]).profile().assumes for s in (None, 0, 2**63)
    )
    assert any("fresh seed" in text for text in fresh)
    assert any("of this fit alone" in text for text in random)
    assert any("can be guessed" in text for text in small)
    assert not any("can be guessed" in text for text in random)
    assert not any("rare label" in text for text in fresh)
    assert any("rare label shows by its presence" in text for text in PATEClassifier().profile().assumes)


def test_epsilon_is_of_the_fit_whatever_is_set_later() -> None:
    x, y = rows_of(30)
    model = PATEClassifier(noise=0, classes=[0, 1, 2]).fit(x, y)
    model.set_params(noise=40.0, queries=1, seed=1, classes=None)
    assert model.epsilon(1e-5) == math.inf
    assert any("fresh seed" in text for text in model.profile().assumes)
    model.set_params(queries=10).fit(x, y)
    assert model.epsilon(1e-5) == accounting.profile(40.0, 10).epsilon(1e-5)


def test_a_failed_fit_leaves_the_one_before() -> None:
    x, y = rows_of(30)
    model = PATEClassifier(noise=40.0, seed=1).fit(x, y)
    before, votes = model.epsilon(1e-5), model.histograms_
    with pytest.raises(InputError, match="student"):
        model.set_params(noise=1.0, student=LogisticRegression(solver="other")).fit(x, y)
    assert model.epsilon(1e-5) == before
    assert model.histograms_ is votes


# --- teachers and students that cannot be ones ---


@pytest.mark.parametrize("who", ["teachers", "student"])
def test_a_model_that_learns_minus_1_as_a_class_is_refused(who: str) -> None:
    x, y = rows_of(60)
    with pytest.raises(InputError, match=r"takes -1, .* for a class"):
        PATEClassifier(noise=0, semi_supervised=who, seed=1).fit(x, y)


class Wild(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts what it was not taught."""

    def __init__(self, says: float = -1):
        self.says = says

    def fit(self, x: Any, y: Any) -> Any:
        self.fitted_ = True
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.says)


@pytest.mark.parametrize("says", [-1, 3, 0.5])
def test_predictions_that_are_no_class_are_refused(says: float) -> None:
    x, y = rows_of(60)
    with pytest.raises(InputError, match=r"teacher 0 predicts .* no class"):
        PATEClassifier(Wild(says), seed=1).fit(x, y)
    model = PATEClassifier(student=Wild(says), seed=1).fit(x, y)
    with pytest.raises(InputError, match=r"student predicts .* no class"):
        model.predict(x)


@pytest.mark.parametrize("name", ["teacher", "student"])
@pytest.mark.parametrize("wrong", ["lr", LogisticRegression, LinearRegression(), KMeans(2), 5])
def test_what_is_no_classifier_is_named(name: str, wrong: Any) -> None:
    x, y = rows_of(30)
    with pytest.raises(InputError, match=f"{name} = .*must be a scikit-learn classifier"):
        PATEClassifier(**{name: wrong}).fit(x, y)


@pytest.mark.parametrize("wrong", [{0, 1, 2}, "012", 5, [[0, 1, 2]]])
def test_classes_that_are_no_list(wrong: Any) -> None:
    x, y = rows_of(30)
    for kind in (PATEClassifier, DPSGDClassifier):
        with pytest.raises(InputError, match=r"classes = .*give a list"):
            kind(classes=wrong).fit(x, y)


@pytest.mark.parametrize("kind", accounting.KINDS)
def test_noise_may_be_a_fraction(kind: str) -> None:
    x, y = rows_of(30)
    one, other = (PATEClassifier(noise=n, kind=kind, seed=3).fit(x, y) for n in (Fraction(7, 2), 3.5))
    assert (one.histograms_ == other.histograms_).all()
    assert one.epsilon(1e-5) == other.epsilon(1e-5)


def test_unlabeled_columns_have_the_names_of_x() -> None:
    pandas = pytest.importorskip("pandas")
    x, y = rows_of(30)
    table = pandas.DataFrame(x, columns=list("abcde"))
    PATEClassifier(seed=1).fit(table, y, unlabeled=table)
    with pytest.raises(InputError, match=r"unlabeled has other features than X: .*names"):
        PATEClassifier(seed=1).fit(table, y, unlabeled=table[list("edcba")])

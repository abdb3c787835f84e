"""Models: any scikit-learn classifier by name, after a standard scaler, on one thread so that results are the same."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.protocol import Protocol


def one_thread() -> AbstractContextManager[object]:
    """Limit OpenMP and BLAS to one thread inside a ``with`` block."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits


@contextmanager
def fitting(model: str, what: str, notes: list[str]) -> Iterator[None]:
    """Fit a model on one thread inside a ``with`` block; a failure to converge becomes a note.

    Other warnings go to the caller.  ``what``: it is fitted to, "the released labels".  Raises InputError for labels
    that the model refuses, and for whatever a model of one's own raises.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with one_thread():
                yield
        except (ValueError, TypeError) as error:
            raise InputError(f"model {model!r} cannot learn from {what}: {error}; choose another") from error
        except Exception as error:
            if ":" not in model:
                raise
            raise InputError(
                f"model {model!r} raises {type(error).__name__} on {what}: {error}; mend it"
            ) from error
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            notes.append(f"{model} on {what}: {str(warning.message).strip().splitlines()[0]}")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


CLASSIFIER, REGRESSOR = "logistic-regression", "ridge"
"""What is trained where nobody chooses: on classes, and on numbers."""

NO_MODEL = "none"
"""Nothing is trained."""

_DEFAULTS: dict[str, dict[str, Any]] = {"LogisticRegression": {"max_iter": 1000}}
_FIRST = (("classifier", "logisticregression"), ("regressor", "ridge"))
_SUCH = {
    "classifier": ("LogisticRegression", "RandomForestClassifier"),
    "regressor": ("Ridge", "RandomForestRegressor"),
}
"""What scikit-learn calls kinds of estimators, each with examples."""


def make(name: str = CLASSIFIER, **params: Any) -> Any:
    """Make an untrained pipeline of StandardScaler and a classifier.

    ``name``: the class (``RandomForestClassifier``) or its words (``random-forest``), or ``module:Class``, a classifier
    of one's own, derived from scikit-learn's.  ``params``: passed to the class;
    random_state is 0 by default.  Raises InputError for an unknown classifier (and lists similar names), one that wraps
    other estimators, or an unknown parameter (and lists the known ones).
    """
    return _made("classifier", name, params)


def make_regressor(name: str = REGRESSOR, **params: Any) -> Any:
    """Make an untrained pipeline of StandardScaler and a regressor; arguments and errors are those of ``make``."""
    return _made("regressor", name, params)


def check(name: str) -> None:
    """Check that a name is a classifier's or a regressor's, where either may be meant; raises InputError."""
    try:
        make(name)
    except InputError:
        try:
            make_regressor(name)
        except InputError:
            pass
        else:
            return
        raise


def model_for(protocol: Protocol, model: str | None) -> str:
    """Return the model to train, or "none"; None: "logistic-regression", and "ridge" where labels stand for numbers.

    Raises InputError for what is no classifier, or where labels stand for numbers no regressor.
    """
    numeric = protocol.numbers() is not None
    if model is None:
        return REGRESSOR if numeric else CLASSIFIER
    if model != NO_MODEL:
        (make_regressor if numeric else make)(model)  # a wrong name shows before the work
    return model


def _made(of: str, name: str, params: dict[str, Any]) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = _own(of, name) if ":" in name else _find(of, name)
    parameters = inspect.signature(kind).parameters
    needed = [key for key, value in parameters.items() if value.default is value.empty and key not in params]
    if needed:
        raise InputError(f"model {name!r} needs {', '.join(needed)}; choose a {of} that needs no arguments")
    for key in params:
        if key not in parameters:
            raise InputError(
                f"model {name!r} has no parameter {key!r}{near(key, parameters)}; it has {', '.join(parameters)}"
            )
    fixed = {"random_state": 0} if "random_state" in parameters else {}
    return make_pipeline(StandardScaler(), kind(**{**fixed, **_DEFAULTS.get(kind.__name__, {}), **params}))


def _own(of: str, name: str) -> Any:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    mixin = ClassifierMixin if of == "classifier" else RegressorMixin
    found = module_finder.imported(name, "model", "CLASS")
    if isinstance(found, type) and issubclass(found, BaseEstimator) and issubclass(found, mixin):
        return found
    raise InputError(
        f"model {name!r} is {found!r}; needed is a class derived from sklearn.base.{mixin.__name__} and BaseEstimator"
    )


def _find(of: str, name: str) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    wanted = _plain(name)
    if (of, wanted) in _FIRST:  # to look through all of scikit-learn takes seconds
        return LogisticRegression if of == "classifier" else Ridge
    short = _by_words(of)
    if wanted in short:
        return short[wanted]
    other = next(each for each in _SUCH if each != of)
    if wanted in _by_words(other):
        labels = "classes" if of == "classifier" else "numbers"
        raise InputError(
            f"model {name!r} is a {other}, and labels are {labels} here: give the name of a {of}, such as "
            f"{' or '.join(_SUCH[of])}"
        )
    close = list(
        dict.fromkeys(
            short[key].__name__ for key in difflib.get_close_matches(wanted, short, n=5, cutoff=0.5)
        )
    )
    raise InputError(
        f"unknown model {name!r}; similar names are "
        f"{', '.join(close or _SUCH[of])}; give the name of a "
        f"scikit-learn {of}, or one of your own, MODULE:CLASS"
    )


def _by_words(of: str) -> dict[str, Any]:
    """Return scikit-learn's estimators of a kind by their names in plain letters, with the kind's name and without."""
    from sklearn.utils import all_estimators

    known = dict(all_estimators(type_filter=of))
    short = {_plain(full): kind for full, kind in known.items()}
    return short | {_plain(full).removesuffix(of): kind for full, kind in known.items()}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

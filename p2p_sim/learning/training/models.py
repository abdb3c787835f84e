"""Models: any scikit-learn classifier by name, after a standard scaler, on one thread so that results are the same."""

from __future__ import annotations

import difflib
import inspect
from contextlib import AbstractContextManager
from typing import Any

from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, near


def one_thread() -> AbstractContextManager[object]:
    """Limit OpenMP and BLAS to one thread inside a ``with`` block."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1)
    return limits


_DEFAULTS: dict[str, dict[str, Any]] = {"LogisticRegression": {"max_iter": 1000}}


def make(name: str = "logistic-regression", **params: Any) -> Any:
    """Make an untrained pipeline of StandardScaler and a classifier.

    ``name``: the class (``RandomForestClassifier``) or its words (``random-forest``), or ``module:Class``, a classifier
    of one's own, derived from scikit-learn's.  ``params``: passed to the class;
    random_state is 0 by default.  Raises InputError for an unknown classifier (and lists similar names), one that wraps
    other estimators, or an unknown parameter (and lists the known ones).
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = _own(name) if ":" in name else _find(name)
    parameters = inspect.signature(kind).parameters
    needed = [key for key, value in parameters.items() if value.default is value.empty and key not in params]
    if needed:
        raise InputError(
            f"model {name!r} needs {', '.join(needed)}; choose a classifier that needs no arguments"
        )
    for key in params:
        if key not in parameters:
            raise InputError(
                f"model {name!r} has no parameter {key!r}{near(key, parameters)}; it has {', '.join(parameters)}"
            )
    fixed = {"random_state": 0} if "random_state" in parameters else {}
    return make_pipeline(StandardScaler(), kind(**{**fixed, **_DEFAULTS.get(kind.__name__, {}), **params}))


def _own(name: str) -> Any:
    from sklearn.base import BaseEstimator, ClassifierMixin

    found = module_finder.imported(name, "model", "CLASS")
    if isinstance(found, type) and issubclass(found, BaseEstimator) and issubclass(found, ClassifierMixin):
        return found
    raise InputError(
        f"model {name!r} is {found!r}; needed is a class derived from sklearn.base.ClassifierMixin and BaseEstimator"
    )


def _find(name: str) -> Any:
    from sklearn.linear_model import LogisticRegression

    wanted = _plain(name)
    if wanted == "logisticregression":
        return LogisticRegression
    from sklearn.utils import all_estimators

    known = dict(all_estimators(type_filter="classifier"))
    short = {_plain(full): full for full in known}
    short.update({_plain(full).removesuffix("classifier"): full for full in known})
    if wanted in short:
        return known[short[wanted]]
    close = list(
        dict.fromkeys(short[key] for key in difflib.get_close_matches(wanted, short, n=5, cutoff=0.5))
    )
    raise InputError(
        f"unknown model {name!r}; similar names are "
        f"{', '.join(close or ['LogisticRegression', 'RandomForestClassifier'])}; give the name of a "
        "scikit-learn classifier, or one of your own, MODULE:CLASS"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

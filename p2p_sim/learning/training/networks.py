"""Small neural networks as classifiers, by PyTorch (the extra ``torch``), with scikit-learn's conventions.

Both take labels (``fit``), weights of the losses of all labels (``fit_losses``: soft targets, or unbiased weights), or
what reports say of each label (``fit_likelihoods``: the forward correction), so that they can learn from noisy labels.

Where the bits of a fit come from: first weights, the order of rows and mixing are drawn from random words of ``seed``,
none from PyTorch's generators.  Sums in float32 depend on how they are cut, so PyTorch runs with ``threads`` threads
inside, whatever it is set to outside: equal arguments give equal bits on one machine and one version of PyTorch.  Other
processors may round otherwise.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import order, own_words, stream, uniform, words
from p2p_sim.learning.training.pytorch import device_of, pytorch

Array = npt.NDArray[Any]
Rows = tuple[Array, ...]
Loss = Callable[[Any, Any, Any], Any]
"""From PyTorch, scores (n, k) and targets (n, k) to the loss of each row."""

ROLE = "network"
"""Under this name first weights, orders and mixing are drawn; it cannot be the name of a protocol's role."""

WARM = 0.1
"""The share of the steps in which the step size rises; then it falls to 0 along a cosine."""

BLOCK = 1000
"""Rows that are predicted at a time."""


class _Network(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the networks share: training by AdamW in shuffled batches, and predictions.

    A network says what it reads of rows (``_read``), which weights it has (``_layers``) and what scores they give
    (``_scores``).
    """

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    mixup: float
    threads: int
    seed: int
    device: str

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels y (n,), of any two values or more; ``sample_weight`` (n,): at least 0.

        Raises InputError (a ValueError) for labels of a single class, arguments out of range, and if PyTorch is absent.
        """
        self._check()
        rows, y = self._read(X, y)
        check_classification_targets(y)
        classes, code = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InputError(
                f"Classifier can't train when only one class is present: {classes.tolist()}; give labels of two or more"
            )
        each = np.ones(len(y))
        if sample_weight is not None:
            each = _check_sample_weight(sample_weight, rows[0], dtype=np.float64, ensure_non_negative=True)
        return self._trained(rows, np.eye(len(classes))[code] * each[:, None], _weighted, classes)

    def fit_losses(self, X: Any, weights: Any, classes: Any = None) -> Self:
        """Fit to weights (n, k) of the losses of each row; ``classes`` (k,): their labels, ascending; None: 0 to k - 1.

        Rows of probabilities are soft targets.  Weights may be negative (``Evidence.unbiased``), and then the loss has
        no lower bound: a network can follow it down where few rows are alike, so prefer ``fit_likelihoods``.  Raises
        InputError for weights of another shape, that are not finite, or whose sum is not above 0.
        """
        self._check()
        rows, _ = self._read(X)
        given, names = _targets("weights", weights, len(rows[0]), classes)
        return self._trained(rows, given, _weighted, names)

    def fit_likelihoods(self, X: Any, likelihood: Any, classes: Any = None) -> Self:
        """Fit to reports, by the likelihood (n, k) of each for every true label: the forward-corrected loss.

        -log sum_y p(y | x) likelihood[y].  ``likelihood``: at least 0 and not all 0, up to a factor of the row's own,
        such as ``Evidence.likelihood`` of ``X[evidence.users]``.  ``classes``: as in ``fit_losses``.  Raises InputError
        for likelihoods of another shape, or that are not such, and if no report tells any two labels apart.

        *Source:* Patrini et al. 2017 (forward correction), with a randomization matrix of each row's own.
        """
        self._check()
        rows, _ = self._read(X)
        given, names = _targets("likelihood", likelihood, len(rows[0]), classes)
        most = given.max(axis=1, keepdims=True)
        if not ((given >= 0).all() and (most > 0).all()):
            raise InputError(
                f"likelihood goes down to {float(given.min()):.6g}, the largest of a row to {float(most.min()):.6g}: "
                "give numbers of at least 0, of which one in each row is above 0"
            )
        if np.allclose(given, most, rtol=1e-12, atol=0):
            raise InputError(
                "no report says anything about the true label, so there is nothing to learn from"
            )
        return self._trained(rows, given / most, _forward, names)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (m, k)."""
        from scipy.special import softmax

        return np.asarray(softmax(self._predicted(X), axis=1))

    def predict(self, X: Any) -> Array:
        """Return the class of each row with the largest score; ties go to the first."""
        scores = self._predicted(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @abstractmethod
    def _read(self, X: Any, y: Any = None, *, reset: bool = True) -> tuple[Rows, Any]:
        """Return what the network is given of rows, and y, both checked.  ``reset``: learn the form of rows."""

    @abstractmethod
    def _layers(self, labels: int) -> list[tuple[tuple[int, ...], float]]:
        """Return the shape of each array of weights, and how far from 0 its first entries are at most."""

    @abstractmethod
    def _scores(self, torch: Any, weights: Sequence[Any], rows: Sequence[Any]) -> Any:
        """Return scores (n, k) of what ``_read`` returned, as tensors."""

    def _check(self) -> None:
        check_whole("epochs", self.epochs)
        check_whole("batch_size", self.batch_size)
        check_whole("threads", self.threads, 1, 1024)
        check_seed(self.seed)
        check_range("learning_rate", self.learning_rate, 0, 1e3, open_low=True)
        check_range("weight_decay", self.weight_decay, 0, 1e3)
        check_range("mixup", self.mixup, 0, 1e3)

    def _trained(self, rows: Rows, targets: Array, loss: Loss, classes: Array) -> Self:
        """Train on what ``_read`` returned and a loss of ``targets`` (n, k)."""
        mean = float(targets.sum() / len(targets)) if loss is _weighted else 1.0
        if not mean > 0:
            raise InputError(
                f"the weights of all rows sum to {float(targets.sum()):.6g}: must be above 0, or no loss is left"
            )
        self.classes_ = classes
        with pytorch(f"{type(self).__name__} needs PyTorch", self.threads) as torch, torch.enable_grad():
            device = device_of(torch, self.device)
            given = torch.from_numpy((targets / mean).astype(np.float32)).to(device)
            inputs = [torch.from_numpy(each).to(device) for each in rows]
            weights = self._first(torch, len(classes), device)
            steps = self.epochs * math.ceil(len(targets) / self.batch_size)
            optimizer = torch.optim.AdamW(
                weights, lr=self.learning_rate, weight_decay=self.weight_decay, foreach=True
            )
            for step, (batch, partner, share) in enumerate(self._batches(len(targets))):
                optimizer.param_groups[0]["lr"] = self.learning_rate * _pace(step, steps)
                optimizer.zero_grad()
                self._loss(torch, weights, loss, inputs, given, batch, partner, share).backward()
                optimizer.step()
            self.weights_ = [each.detach().cpu().numpy() for each in weights]
        self.n_iter_ = self.epochs
        return self

    def _first(self, torch: Any, labels: int, device: Any) -> list[Any]:
        """Return weights before training, uniform between two bounds."""
        found = []
        for number, (shape, most) in enumerate(self._layers(labels)):
            drawn = own_words(self.seed, stream(ROLE, "first weights", number), 0, math.prod(shape))
            start = (most * (2 * _inside(drawn) - 1)).astype(np.float32).reshape(shape)
            found.append(torch.from_numpy(start).to(device).requires_grad_())
        return found

    def _batches(self, rows: int) -> Iterator[tuple[Array, Array | None, Array | None]]:
        """Yield the rows of each step; with mixing, the row that each is mixed with, and its own share."""
        from scipy.special import betaincinv

        for epoch in range(self.epochs):
            mixed = order(words(self.seed, stream(ROLE, "order", epoch), 0, rows))
            partners = np.roll(mixed, 1)
            if self.mixup:
                drawn = _inside(words(self.seed, stream(ROLE, "share", epoch), 0, rows))
                shares = betaincinv(self.mixup, self.mixup, drawn).astype(np.float32)
            for low in range(0, rows, self.batch_size):
                few = slice(low, low + self.batch_size)
                yield mixed[few], *((partners[few], shares[few]) if self.mixup else (None, None))

    def _loss(
        self, torch: Any, weights: list[Any], loss: Loss, inputs: list[Any], given: Any,
        batch: Array, partner: Array | None, share: Array | None,
    ) -> Any:  # fmt: skip
        """Return the mean loss of a batch."""
        if partner is None or share is None:
            return loss(
                torch, self._scores(torch, weights, [each[batch] for each in inputs]), given[batch]
            ).mean()
        part = torch.from_numpy(share).to(given.device)
        mixed = []
        for each in inputs:
            wide = part.reshape(-1, *[1] * (each.ndim - 1))
            mixed.append(wide * each[batch] + (1 - wide) * each[partner])
        scores = self._scores(torch, weights, mixed)
        both = part * loss(torch, scores, given[batch]) + (1 - part) * loss(torch, scores, given[partner])
        return both.mean()

    def _predicted(self, X: Any) -> Array:
        check_is_fitted(self)
        rows, _ = self._read(X, reset=False)
        with pytorch(f"{type(self).__name__} needs PyTorch", self.threads) as torch, torch.no_grad():
            device = device_of(torch, self.device)
            weights = [torch.from_numpy(each).to(device) for each in self.weights_]
            inputs = [torch.from_numpy(each) for each in rows]
            parts = [
                self._scores(torch, weights, [each[low : low + BLOCK].to(device) for each in inputs])
                .cpu()
                .numpy()
                for low in range(0, len(rows[0]), BLOCK)
            ]
        return np.concatenate(parts).astype(np.float64)


class ConvNetClassifier(_Network):
    """A small convolutional network for images: two convolutions, each pooled 2 by 2, and two dense layers.

    ``shape``: of an image, (height, width) or (channels, height, width), whose product is the number of features; None:
    a square, if the number of features is one, otherwise an image of one line.  ``channels``: of the two convolutions,
    of ``kernel`` by ``kernel`` pixels, an odd number; ``hidden``: units of the first dense layer.  Each at least 1.

    ``epochs``: passes through the rows; ``batch_size``; both at least 1.  ``learning_rate``: above 0, at its largest:
    it rises in the first tenth of the steps and then falls to 0.  ``weight_decay``: at least 0, of AdamW.  ``mixup``:
    at least 0; each row is mixed with another, its share drawn from Beta(mixup, mixup), and so are their losses;
    0: no mixing.  ``threads``: of PyTorch during fits and predictions, which are the same whatever PyTorch is set to
    outside, but not for another number here.  ``seed``: below 2^64.  ``device``: of PyTorch; "auto" is a GPU if there
    is one, on which equal arguments need not give equal bits.

    Pixels are shifted and scaled by the mean and standard deviation of all pixels of the rows that it is fitted to,
    which it takes as public.  Fitted: ``classes_``, ``weights_`` (arrays of float32), ``mean_``, ``scale_``.

    *Source:* Zhang et al. 2018 (mixup); Loshchilov, Hutter 2019 (AdamW).
    """

    def __init__(
        self,
        shape: tuple[int, ...] | None = None,
        *,
        channels: tuple[int, int] = (16, 32),
        kernel: int = 5,
        hidden: int = 128,
        epochs: int = 5,
        batch_size: int = 128,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.01,
        mixup: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        device: str = "cpu",
    ):
        self.shape, self.channels, self.kernel, self.hidden = shape, channels, kernel, hidden
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.weight_decay, self.mixup, self.threads = weight_decay, mixup, threads
        self.seed, self.device = seed, device

    def _check(self) -> None:
        super()._check()
        check_whole("hidden", self.hidden)
        if not isinstance(self.channels, (tuple, list)) or len(self.channels) != 2:
            raise InputError(f"channels = {self.channels!r}: give two numbers, one a convolution")
        for each in self.channels:
            check_whole("channels", each)
        check_whole("kernel", self.kernel, 1, 99)
        if self.kernel % 2 == 0:
            raise InputError(f"kernel = {self.kernel}: must be odd, so that an image keeps its size")

    def _read(self, X: Any, y: Any = None, *, reset: bool = True) -> tuple[Rows, Any]:
        x, y = _valid(self, X, y, reset=reset, dtype=(np.float32, np.float64))
        if reset:
            self.shape_ = _image(self.shape, x.shape[1])
            self.mean_, self.scale_ = float(x.mean(dtype=np.float64)), float(x.std(dtype=np.float64)) or 1.0
        rows = ((x - self.mean_) / self.scale_).astype(np.float32).reshape(len(x), *self.shape_)
        return (rows,), y

    def _layers(self, labels: int) -> list[tuple[tuple[int, ...], float]]:
        planes, height, width = self.shape_
        first, second = self.channels
        left = second * math.ceil(math.ceil(height / 2) / 2) * math.ceil(math.ceil(width / 2) / 2)
        return [
            *_layer((first, planes, self.kernel, self.kernel)),
            *_layer((second, first, self.kernel, self.kernel)),
            *_layer((self.hidden, left)),
            *_layer((labels, self.hidden)),
        ]

    def _scores(self, torch: Any, weights: Sequence[Any], rows: Sequence[Any]) -> Any:
        act = torch.nn.functional
        found = rows[0]
        for number in (0, 2):
            found = act.conv2d(found, weights[number], weights[number + 1], padding=self.kernel // 2)
            found = found.contiguous(memory_format=torch.channels_last)  # pooled in half the time
            found = act.relu(act.max_pool2d(found, 2, ceil_mode=True))
        found = act.relu(act.linear(found.flatten(1), weights[4], weights[5]))
        return act.linear(found, weights[6], weights[7])


class EmbeddingClassifier(_Network):
    """A network for categorical columns: every value of a column is hashed to a learnt vector, then two dense layers.

    Values are texts or numbers, of any number of categories, also such that were not seen in training; a missing one
    (None, NaN) is a value of its own.  Column and value together are hashed to one of ``buckets`` vectors of ``width``
    entries; different values may share one.  ``numeric``: numbers of columns that are not hashed but taken as numbers,
    shifted and scaled by the mean and standard deviation of the rows that it is fitted to, which it takes as public; a
    missing one is the mean.  ``hidden``: units of the first dense layer.

    ``epochs``, ``batch_size``, ``learning_rate``, ``weight_decay``, ``threads``, ``seed``, ``device``: as in
    ``ConvNetClassifier``.  Fitted: ``classes_``, ``weights_`` (arrays of float32), ``mean_``, ``scale_``.

    *Source:* Weinberger et al. 2009 (hashing); the form of network that Unified 2023, Figure 1, trains on click data.
    """

    mixup = 0.0  # numbers of buckets cannot be mixed

    def __init__(
        self,
        buckets: int = 2**14,
        *,
        width: int = 8,
        numeric: Sequence[int] = (),
        hidden: int = 64,
        epochs: int = 5,
        batch_size: int = 128,
        learning_rate: float = 5e-3,
        weight_decay: float = 0.01,
        threads: int = 1,
        seed: int = 0,
        device: str = "cpu",
    ):
        self.buckets, self.width, self.numeric, self.hidden = buckets, width, numeric, hidden
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.weight_decay, self.threads, self.seed, self.device = weight_decay, threads, seed, device

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: texts, categories and missing values are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _check(self) -> None:
        super()._check()
        for name in ("buckets", "width", "hidden"):
            check_whole(name, getattr(self, name))

    def _read(self, X: Any, y: Any = None, *, reset: bool = True) -> tuple[Rows, Any]:
        x, y = _valid(self, X, y, reset=reset, dtype=None, ensure_all_finite=False)
        columns = _numeric(self.numeric, x.shape[1])
        number = np.array([_numbers(x[:, each], each) for each in columns]).reshape(-1, len(x)).T
        if reset:
            known = np.isfinite(number)
            count = np.maximum(known.sum(axis=0), 1)
            self.mean_ = np.where(known, number, 0.0).sum(axis=0) / count
            spread = np.sqrt((np.where(known, number - self.mean_, 0.0) ** 2).sum(axis=0) / count)
            self.scale_ = np.where(spread > 0, spread, 1.0)
        scaled = np.where(np.isfinite(number), (number - self.mean_) / self.scale_, 0.0).astype(np.float32)
        rest = [each for each in range(x.shape[1]) if each not in columns]
        places = [hashed(x[:, each], each, self.buckets) for each in rest]
        return (np.array(places, np.int64).reshape(-1, len(x)).T.copy(), scaled), y

    def _layers(self, labels: int) -> list[tuple[tuple[int, ...], float]]:
        numbers = len(self.mean_)
        wide = (self.n_features_in_ - numbers) * self.width + numbers
        return [
            ((self.buckets, self.width), 0.5),
            *_layer((self.hidden, wide)),
            *_layer((labels, self.hidden)),
        ]

    def _scores(self, torch: Any, weights: Sequence[Any], rows: Sequence[Any]) -> Any:
        act = torch.nn.functional
        places, numbers = rows
        found = torch.cat([act.embedding(places, weights[0]).flatten(1), numbers], dim=1)
        found = act.relu(act.linear(found, weights[1], weights[2]))
        return act.linear(found, weights[3], weights[4])


def hashed(column: Array, number: int, buckets: int) -> npt.NDArray[np.int64]:
    """Return the bucket of each value of a column (n,), by the column's number and the value: the same everywhere.

    Numbers that are equal, such as 1 and 1.0, are one value, and so are all missing ones.  Raises InputError for values
    that are neither texts nor numbers.
    """
    import pandas as pd

    try:
        codes, values = pd.factorize(column, use_na_sentinel=False)
    except TypeError as error:
        raise InputError(
            f"column {number} has values that are no categories ({error}): give texts or numbers"
        ) from None
    names = np.array([f"{number}={_text(each, number)}" for each in values], object)
    if not len(names):
        return np.zeros(0, np.int64)
    places = pd.util.hash_array(names, categorize=False) % np.uint64(buckets)
    return np.asarray(places.astype(np.int64)[codes])


def _text(value: Any, number: int) -> str:
    """Return a value as text, so that a text differs from a number that looks alike."""
    from pandas import isna
    from pandas.api.types import is_scalar

    if isinstance(value, str):
        return f"text {value}"
    if is_scalar(value) and isna(value):
        return "missing"
    if isinstance(value, (bool, np.bool_, int, np.integer)) or (
        isinstance(value, (float, np.floating)) and value % 1 == 0
    ):
        return f"number {int(value)}"
    if isinstance(value, (float, np.floating)):
        return f"number {float(value)!r}"
    raise InputError(
        f"column {number} has the value {value!r} of type {type(value).__name__}: give texts or numbers"
    )


def _numeric(numeric: Any, features: int) -> list[int]:
    """Return the numbers of columns that are taken as numbers; raises InputError for such that are not there."""
    columns = list(numeric)
    for each in columns:
        check_whole("numeric", each, 0, features - 1)
    if len(set(columns)) < len(columns):
        raise InputError(f"numeric = {columns}: name each column once")
    return columns


def _numbers(column: Array, number: int) -> Array:
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"column {number} is no column of numbers ({error}): leave it out of numeric"
        ) from None


def _valid(model: Any, X: Any, y: Any, *, reset: bool, **given: Any) -> tuple[Array, Any]:
    """Return rows, and y if there are labels, as scikit-learn checks them."""
    if y is None:
        return validate_data(model, X, reset=reset, **given), None
    found: tuple[Array, Any] = validate_data(model, X, y, **given)
    return found


def _image(shape: Any, features: int) -> tuple[int, int, int]:
    """Return channels, height and width of rows; raises InputError for a shape that they do not have."""
    if shape is None:
        side = math.isqrt(features)
        return (1, side, side) if side * side == features else (1, 1, features)
    if not isinstance(shape, (tuple, list)) or len(shape) not in (2, 3):
        raise InputError(f"shape = {shape!r}: give (height, width) or (channels, height, width), or None")
    for each in shape:
        check_whole("shape", each)
    if math.prod(shape) != features:
        raise InputError(
            f"shape = {tuple(shape)} has {math.prod(shape)} pixels, X has {features} features: give the shape of its "
            "rows"
        )
    planes, height, width = (1, *shape) if len(shape) == 2 else shape
    return planes, height, width


def _targets(name: str, given: Any, rows: int, classes: Any) -> tuple[Array, Array]:
    """Return targets (rows, k) and the classes (k,); raises InputError for those that do not fit."""
    found = np.asarray(given)
    if found.ndim != 2 or found.shape[0] != rows or found.shape[1] < 2 or found.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: has {found.dtype} of shape {found.shape}; give numbers of shape ({rows}, k), one for each of k "
            "labels, k at least 2"
        )
    if not np.isfinite(found).all():
        raise InputError(f"{name}: has entries that are not finite; give finite numbers")
    names = np.arange(found.shape[1]) if classes is None else np.asarray(classes)
    if names.shape != found.shape[1:] or not np.array_equal(np.unique(names), names):
        raise InputError(
            f"classes are {names.tolist()}; give {found.shape[1]} different labels, ascending, one a column of {name}"
        )
    return found.astype(np.float64), names


def _weighted(torch: Any, scores: Any, weights: Any) -> Any:
    """Return sum_k weights[k] crossentropy(scores, k) of each row."""
    return -(weights * torch.log_softmax(scores, dim=1)).sum(dim=1)


def _forward(torch: Any, scores: Any, likelihood: Any) -> Any:
    """Return -log sum_y softmax(scores)[y] likelihood[y] of each row."""
    return torch.logsumexp(scores, dim=1) - torch.logsumexp(scores + torch.log(likelihood), dim=1)


def _layer(shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], float]]:
    """Return shape and first bound of the weights of a layer, and of its constants: He et al. 2015."""
    return [(shape, math.sqrt(6 / math.prod(shape[1:]))), ((shape[0],), 0.0)]


def _inside(drawn: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return random words as numbers between 0 and 1, neither of which occurs."""
    return uniform(drawn) + 2.0**-54


def _pace(step: int, steps: int) -> float:
    """Return the size of a step, of which the largest is 1."""
    warm = max(1.0, WARM * steps)
    if step < warm:
        return (step + 1) / (warm + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))

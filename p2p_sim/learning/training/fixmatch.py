"""FixMatch: a small network that learns from few labelled images and many without a label (extra ``torch``)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.pytorch import device_of, pytorch

Array = npt.NDArray[Any]

UNLABELED = -1
"""What scikit-learn's semi-supervised classifiers take for a row without a label."""

_MOMENTUM = 0.9


class FixMatchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained by FixMatch, with the conventions of scikit-learn's semi-supervised classifiers.

    Labels are whole numbers, -1 for rows without one; so it can be a student or teacher of ``PATEClassifier`` with
    ``semi_supervised``.  ``shape``: (height, width) of images, each at least 4, whose pixels are the features row by
    row.  ``hidden``: the filters of the second of two convolutional layers, at least 2.  ``threshold``: in [0, 1]; a
    row counts where a class is as likely as that for its weakly changed copy.  ``weight``: at least 0, of these rows'
    loss.  ``steps``: of stochastic gradient descent, at least 1; each has ``batch`` rows with labels, and ``ratio``
    times as many of any kind.  ``learning_rate``: above 0, falling with a cosine.  ``random_state``: of all chance,
    below 2^31; equal ones give equal models, trained on one thread.  ``device``: of PyTorch, for training; "auto" is a
    GPU if there is one, on which equal arguments need not give equal bits.  What is trained predicts on the processor.

    A weakly changed copy is moved by up to a tenth; a strongly changed one by a fifth, and it is turned, sheared, given
    another contrast, and loses a square.  Raises InputError for arguments out of range, and MissingPackageError without
    PyTorch.

    *Source:* Sohn et al. 2020, Algorithm 1, without the moving average of weights, and with fewer kinds of change.
    *Assumes:* nothing of privacy: it is trained on what is given away.
    """

    def __init__(
        self,
        *,
        shape: tuple[int, int] = (28, 28),
        hidden: int = 32,
        threshold: float = 0.95,
        weight: float = 1.0,
        steps: int = 300,
        batch: int = 32,
        ratio: int = 7,
        learning_rate: float = 0.03,
        random_state: int = 0,
        device: str = "cpu",
    ):
        self.shape = shape
        self.hidden = hidden
        self.threshold = threshold
        self.weight = weight
        self.steps = steps
        self.batch = batch
        self.ratio = ratio
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Train on features (n, d) and labels (n,), -1 where there is none."""
        self._check()
        x, y = validate_data(self, X, y, dtype=[np.float32, np.float64])
        if y.dtype.kind not in "iu":
            raise InputError(f"y has type {y.dtype}: give whole numbers, -1 for rows without a label")
        known = np.flatnonzero(y != UNLABELED)
        self.classes_ = np.unique(y[known])
        if len(self.classes_) < 2:
            raise InputError(
                f"Classifier can't train when only one class is present: {self.classes_.tolist()}; name two or more"
            )
        self._check_shape()
        # what is trained keeps it, whatever is set later
        self.shape_ = (int(self.shape[0]), int(self.shape[1]))
        self.mean_, self.deviation_ = float(x.mean()), float(x.std()) or 1.0  # of all pixels
        with pytorch("FixMatch is trained by PyTorch") as torch, torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.random_state))
            device = device_of(torch, self.device)
            self.network_ = self._network(torch).to(device)  # drawn on the processor, as all chance is
            rows = self._tensor(torch, x).to(device)
            labels = torch.from_numpy(np.searchsorted(self.classes_, y[known])).to(device)
            self._descend(torch, rows[torch.from_numpy(known).to(device)], labels, rows)
            self.network_ = self.network_.cpu()
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (m, k)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float32, np.float64], reset=False)
        with pytorch("FixMatch is trained by PyTorch") as torch, torch.no_grad():
            scores = self.network_(self._tensor(torch, rows)).double()
        return np.asarray(torch.softmax(scores, dim=1).numpy())

    def predict(self, X: Any) -> Array:
        """Return the likeliest class of each row, (m,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _descend(self, torch: Any, own: Any, labels: Any, rows: Any) -> None:
        """Lower the loss: of labels on weakly changed rows, of sure guesses on strongly changed ones."""
        entropy = torch.nn.functional.cross_entropy
        descent = torch.optim.SGD(
            self.network_.parameters(), lr=self.learning_rate, momentum=_MOMENTUM, nesterov=True
        )
        falling = torch.optim.lr_scheduler.LambdaLR(
            descent, lambda step: math.cos(7 * math.pi * step / (16 * self.steps))
        )
        for _ in range(self.steps):
            few = torch.randint(len(own), (self.batch,)).to(own.device)
            many = rows[torch.randint(len(rows), (self.batch * self.ratio,)).to(rows.device)]
            loss = entropy(self.network_(self._changed(torch, own[few], strong=False)), labels[few])
            with torch.no_grad():
                weak = torch.softmax(self.network_(self._changed(torch, many, strong=False)), dim=1)
            chance, guess = weak.max(dim=1)
            strong = entropy(self.network_(self._changed(torch, many, strong=True)), guess, reduction="none")
            loss = loss + self.weight * (strong * (chance >= self.threshold)).mean()
            descent.zero_grad()
            loss.backward()
            descent.step()
            falling.step()

    def _network(self, torch: Any) -> Any:
        nn, classes, width = torch.nn, len(self.classes_), self.hidden
        return nn.Sequential(
            nn.Conv2d(1, width // 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(width // 2, width, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(4), nn.Flatten(),
            nn.Linear(16 * width, classes),
        )  # fmt: skip

    def _changed(self, torch: Any, rows: Any, *, strong: bool) -> Any:
        """Return changed copies of the rows."""
        n, (height, width) = len(rows), self.shape_
        shift = (torch.rand(n, 2) - 0.5) * (0.8 if strong else 0.4)  # an image is 2 wide
        angle, shear = ((torch.rand(n) - 0.5) * (most if strong else 0.0) for most in (1.0, 0.6))
        first = torch.stack([torch.cos(angle), shear - torch.sin(angle), shift[:, 0]], dim=1)
        second = torch.stack([torch.sin(angle), torch.cos(angle), shift[:, 1]], dim=1)
        warp = torch.nn.functional
        turned = torch.stack([first, second], dim=1).to(rows.device)
        places = warp.affine_grid(turned, rows.shape, align_corners=False)
        copies = warp.grid_sample(rows, places, align_corners=False, padding_mode="border")
        if not strong:
            return copies
        copies = copies * (0.5 + torch.rand(n, 1, 1, 1).to(rows.device))
        top, left = (torch.randint(size, (n, 1)) - size // 6 for size in (height, width))
        down, across = torch.arange(height) - top, torch.arange(width) - left
        hidden = ((down >= 0) & (down < height // 3))[:, :, None] & ((across >= 0) & (across < width // 3))[
            :, None, :
        ]
        return copies.masked_fill(hidden[:, None].to(rows.device), 0.0)

    def _tensor(self, torch: Any, x: Array) -> Any:
        rows = torch.from_numpy(((x - self.mean_) / self.deviation_).astype(np.float32))
        return rows.reshape(len(x), 1, *self.shape_)

    def _check_shape(self) -> None:
        if math.prod(map(int, self.shape)) != self.n_features_in_:
            raise InputError(
                f"shape = {self.shape!r}: X has {self.n_features_in_} features; their product must be that"
            )

    def _check(self) -> None:
        if not isinstance(self.shape, (tuple, list)) or len(self.shape) != 2:
            raise InputError(f"shape = {self.shape!r}: give (height, width)")
        for size in self.shape:
            check_whole("shape", size, 4)
        for name, least in (("hidden", 2), ("steps", 1), ("batch", 1), ("ratio", 1), ("random_state", 0)):
            check_whole(name, getattr(self, name), least)
        check_range("threshold", self.threshold, 0, 1)
        check_range("weight", self.weight, 0, 1e9)
        check_range("learning_rate", self.learning_rate, 0, 1e9, open_low=True)

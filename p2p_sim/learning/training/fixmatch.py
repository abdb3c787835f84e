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
    """A small convolutional network, trained by FixMatch on images of which few have a label.

    It keeps to the conventions of scikit-learn's semi-supervised classifiers: labels are whole numbers, -1 for rows
    without one.  So it can be a student or teacher of ``PATEClassifier`` with ``semi_supervised``.

    ``shape``: (height, width) of the images, each at least 4; their pixels are the features, row by row.
    ``hidden``: the filters of the second of two convolutional layers, at least 2; the first has half as many.
    ``threshold``: tau of the paper, in [0, 1]; a pseudo-label counts if its class is at least as likely as that.
    ``weight``: lambda_u, of the loss of pseudo-labels, at least 0.
    ``steps``: of stochastic gradient descent, at least 1.
    ``batch``: labelled rows a step, at least 1.
    ``ratio``: mu, at least 1; a step has as many times ``batch`` rows for pseudo-labels, drawn from all rows.
    ``learning_rate``: at the first step, above 0; it decays as a cosine.
    ``random_state``: the seed, 0 to 2^31 - 1; equal ones give equal models, as the processor trains on one thread.
    ``device``: where PyTorch trains; "auto" is a GPU if there is one, on which equal seeds need not give equal bits.
    Predictions are made on the processor.

    Weak augmentation moves an image by up to a tenth of its size.  Strong augmentation moves it by up to a fifth,
    rotates and shears it, changes its contrast, and cuts out a rectangle of a third of its height and width.  Raises
    InputError for arguments out of range, and MissingPackageError without PyTorch.

    *Source:* Sohn et al. 2020, Algorithm 1; without the moving average of weights, and with fewer augmentations.
    *Assumes:* nothing of privacy: the model depends on every label that it is given.
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
        # a later set_params must not change what the trained network takes
        self.shape_ = (int(self.shape[0]), int(self.shape[1]))
        self.mean_, self.deviation_ = float(x.mean()), float(x.std()) or 1.0  # one of each for all pixels
        with pytorch("FixMatch is trained by PyTorch") as torch, torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.random_state))
            device = device_of(torch, self.device)
            self.network_ = self._network(torch).to(
                device
            )  # drawn on the processor, so that a GPU draws the same
            rows = self._tensor(torch, x).to(device)
            labels = torch.from_numpy(np.searchsorted(self.classes_, y[known])).to(device)
            self._train(torch, rows[torch.from_numpy(known).to(device)], labels, rows)
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

    def _train(self, torch: Any, labelled: Any, labels: Any, rows: Any) -> None:
        """Minimize the loss of labels, on weak augmentations, and of confident pseudo-labels, on strong ones."""
        entropy = torch.nn.functional.cross_entropy
        optimizer = torch.optim.SGD(
            self.network_.parameters(), lr=self.learning_rate, momentum=_MOMENTUM, nesterov=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: math.cos(7 * math.pi * step / (16 * self.steps))
        )
        for _ in range(self.steps):
            batch = torch.randint(len(labelled), (self.batch,)).to(labelled.device)
            other = rows[torch.randint(len(rows), (self.batch * self.ratio,)).to(rows.device)]
            loss = entropy(
                self.network_(self._augmented(torch, labelled[batch], strong=False)), labels[batch]
            )
            with torch.no_grad():
                weak = torch.softmax(self.network_(self._augmented(torch, other, strong=False)), dim=1)
            confidence, pseudo_label = weak.max(dim=1)
            strong = self.network_(self._augmented(torch, other, strong=True))
            losses = entropy(strong, pseudo_label, reduction="none")
            loss = loss + self.weight * (losses * (confidence >= self.threshold)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

    def _network(self, torch: Any) -> Any:
        nn, classes, width = torch.nn, len(self.classes_), self.hidden
        return nn.Sequential(
            nn.Conv2d(1, width // 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(width // 2, width, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(4), nn.Flatten(),
            nn.Linear(16 * width, classes),
        )  # fmt: skip

    def _augmented(self, torch: Any, rows: Any, *, strong: bool) -> Any:
        """Return the rows moved; and, if strong, also rotated, sheared, in another contrast, and partly covered."""
        n, (height, width) = len(rows), self.shape_
        shift = (torch.rand(n, 2) - 0.5) * (0.8 if strong else 0.4)  # an image is 2 wide
        angle, shear = ((torch.rand(n) - 0.5) * (span if strong else 0.0) for span in (1.0, 0.6))
        first = torch.stack([torch.cos(angle), shear - torch.sin(angle), shift[:, 0]], dim=1)
        second = torch.stack([torch.sin(angle), torch.cos(angle), shift[:, 1]], dim=1)
        functional = torch.nn.functional
        affine = torch.stack([first, second], dim=1).to(rows.device)
        grid = functional.affine_grid(affine, rows.shape, align_corners=False)
        copies = functional.grid_sample(rows, grid, align_corners=False, padding_mode="border")
        if not strong:
            return copies
        copies = copies * (0.5 + torch.rand(n, 1, 1, 1).to(rows.device))
        top, left = (torch.randint(size, (n, 1)) - size // 6 for size in (height, width))
        down, across = torch.arange(height) - top, torch.arange(width) - left
        covered_rows = (down >= 0) & (down < height // 3)
        covered_columns = (across >= 0) & (across < width // 3)
        covered = covered_rows[:, :, None] & covered_columns[:, None, :]
        return copies.masked_fill(covered[:, None].to(rows.device), 0.0)

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

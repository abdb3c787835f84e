"""Networks on a device: everything that is trained is moved there, as far as this can be tried without a GPU.

On PyTorch's device "meta" tensors have no data, and an operation on two devices is an error.  So a fit that comes as
far as copying its results back, which "meta" cannot do, did all else on one device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.fixmatch import FixMatchClassifier
from p2p_sim.learning.training.networks import ConvNetClassifier, EmbeddingClassifier
from p2p_sim.learning.training.pytorch import device_of

torch = pytest.importorskip("torch")

X = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
Y = np.arange(40) % 3
COPIED_BACK = "Cannot copy out of meta tensor"
"""PyTorch's words, in its own NotImplementedError, where a result is copied back from "meta": a fit's last step."""


def models(device: str) -> dict[str, Any]:
    small = {"epochs": 1, "batch_size": 16, "device": device}
    return {
        "convolutional": ConvNetClassifier((8, 8), channels=(2, 3), hidden=4, **small),
        "mixed": ConvNetClassifier((8, 8), channels=(2, 3), hidden=4, mixup=0.3, **small),
        "embedding": EmbeddingClassifier(16, numeric=(0, 1), hidden=4, **small),
        "fixmatch": FixMatchClassifier(shape=(8, 8), hidden=4, steps=2, batch=4, device=device),
    }


def labels(name: str) -> Any:
    return np.where(np.arange(40) < 12, Y, -1) if name == "fixmatch" else Y


@pytest.mark.parametrize("name", models("cpu"))
def test_training_is_on_one_device(name: str) -> None:
    with pytest.raises(NotImplementedError, match=COPIED_BACK):
        models("meta")[name].fit(X, labels(name))


@pytest.mark.parametrize("name", ["convolutional", "mixed", "embedding"])
def test_reports_and_predictions_are_on_it_too(name: str) -> None:
    with pytest.raises(NotImplementedError, match=COPIED_BACK):
        models("meta")[name].fit_likelihoods(X, np.eye(3)[Y] + 0.1)
    fitted = models("cpu")[name].fit(X, Y).set_params(device="meta")
    with pytest.raises(NotImplementedError, match=COPIED_BACK):
        fitted.predict(X)


@pytest.mark.parametrize("name", ["convolutional", "mixed", "embedding"])
def test_weights_that_stay_behind_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models("meta")[name]
    first = type(model)._first
    monkeypatch.setattr(type(model), "_first", lambda self, torch, k, _: first(self, torch, k, "cpu"))
    with pytest.raises((RuntimeError, NotImplementedError)) as error:
        model.fit(X, Y)
    assert COPIED_BACK not in str(error.value)


@pytest.mark.parametrize("name", models("cpu"))
def test_auto_without_a_gpu_is_the_processor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    one, two = (models(device)[name].fit(X, labels(name)).predict_proba(X) for device in ("cpu", "auto"))
    assert (one == two).all()


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert str(device_of(torch, "auto")) == "cuda"
    assert str(device_of(torch, "cuda:0")) == "cuda:0"
    for name, said in (("cuda:1", "no such GPU"), ("gpu", "must be 'auto', 'cpu', 'cuda'"), ("", "must be")):
        with pytest.raises(InputError, match=said):
            device_of(torch, name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="'cuda': PyTorch finds no such GPU here"):
        models("cuda")["convolutional"].fit(X, Y)

"""Label inference and test accuracy of a network on what was released of MNIST (Release 2023, Figure 3); needs torch.

The runs, the generator and the claims are those of release_figure3, which has least squares; here the model is a small
convolutional network, as in the paper.  It is trained for five passes at every lambda.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from experiments import attacks_table1_network, release_figure3
from experiments._common import Experiment, Options, Outcome, main
from experiments.release_figure3 import LEFT_OUT, PAPER, Array, Size

PASSES = 5
QUICK = replace(release_figure3.QUICK, users=3_000)
SIDE = 14
MODEL = (
    "a small network stands for the paper's, and a kernel density estimate for its GAN as the generator; "
    + LEFT_OUT
)


def trained(x: Array, y: Array, seed: int) -> Callable[[Array], Array]:
    """Return a network that guesses digits; as ``release_figure3.Trained``."""
    model = attacks_table1_network.network((1, SIDE, SIDE), PASSES, seed).fit(x, y)
    return lambda rows: np.asarray(model.predict(rows))


def run(options: Options) -> Outcome:
    """Compute the figure."""
    size = QUICK if options.quick else Size()
    if options.seeds is not None:
        size = replace(size, seeds=options.seeds)
    cases = release_figure3.cases(size, trained, {"passes": PASSES})
    rows = release_figure3.means(options.kept("release_figure3_network", "runs").take(cases), size)
    return Outcome({"": rows}, release_figure3.claims(rows, MODEL), {"": partial(release_figure3.plot, rows)})


EXPERIMENT = Experiment(
    "release_figure3_network",
    "Label inference and test accuracy of a network, of randomized response and double response on MNIST",
    PAPER,
    "5 minutes",
    run,
    needs=("torch", "mnist"),
    keys=("users", "mechanism", "lambda"),
    values={"attack": "attack_se", "test": "test_se", "epsilon_public_features": 1e-9},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

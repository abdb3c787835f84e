"""pfl-research: users have only a server, to which each hands her noisy label."""

import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import FederatedAlgorithm
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import AlgorithmHyperParams, ModelHyperParams
from pfl.internal.ops import numpy_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.metrics import Metrics
from pfl.model.base import Model
from pfl.stats import MappedVectorStatistics

from benchmarks.sidebyside.exchange import ALPHA, label, perform


def one_round(users):
    """Return what a round among all users is."""
    return CentralContext(
        current_central_iteration=0, do_evaluation=False, cohort_size=users, population=Population.TRAIN,
        algorithm_params=AlgorithmHyperParams(), model_train_params=ModelHyperParams(),
    )  # fmt: skip


class Nothing(Model):
    """No model is trained."""

    def apply_model_update(self, statistics):
        return self, Metrics()


class Report(FederatedAlgorithm):
    """A user's statistics are her noisy label, and one."""

    def __init__(self, users, draw):
        super().__init__()
        self.users, self.draw, self.told = users, draw, None

    def get_next_central_contexts(
        self, model, iteration, algorithm_params, model_train_params=None, model_eval_params=None
    ):
        context = one_round(self.users) if iteration == 0 else None
        return context and (context,), model, Metrics()

    def process_aggregated_statistics(self, central_context, aggregate_metrics, model, statistics):
        self.told = statistics["y_hat"]
        return model, Metrics()

    def simulate_one_user(self, model, user_dataset, central_context):
        y_hat = int(user_dataset.raw_data[0][0]) ^ (self.draw.random() < ALPHA)
        return MappedVectorStatistics({"y_hat": np.array([y_hat, 1.0])}), Metrics()


def prepare(count, seed):
    set_framework_module(numpy_ops)
    numbers = iter(range(count))
    people = FederatedDataset(
        lambda user: Dataset([np.array([label(user)])], user_id=str(user)), lambda: next(numbers)
    )
    backend = SimulatedBackend(training_data=people, val_data=None)
    algorithm = Report(count, np.random.default_rng(seed))

    def exchange(begin):
        begin()
        algorithm.run(AlgorithmHyperParams(), backend, Nothing(), model_train_params=ModelHyperParams())
        ones, reports = algorithm.told
        return [int(reports)], [int(ones)]

    return exchange


if __name__ == "__main__":
    perform(prepare)

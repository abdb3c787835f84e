"""Accuracy over epsilon of ClusterRR, UniformRR and DP-SGD, and of ClusterRR over the number of clusters.

*What*: Figure 1 of Clustering 2022.  Test accuracy on MNIST, Fashion-MNIST and CIFAR-10 (JPEG copies, which are
lossy) over that of the same model on true labels; five trials, 100 k-means clusters with ten starts (more clusters:
three).  What lossy copies show is a shape at most; what they contradict counts, as all mechanisms have the same ones.

*How*: epsilon is what a mechanism costs in all.  Of ClusterRR that is 3 times the epsilon of Corollary 2 by Theorem 1
as corrected, 2 times by the theorem as printed, and once if a plot is over the corollary's own epsilon; the figure has
all three (`account`), and `epsilon_corrected` what each really costs.  phi = 0.02 is public and has no sensitivity; the
claim on Corollary 2 says how large the data's own may be.  "UniformRR, C = 0.001" has a penalty that suits its noise.
Where noise leaves its modified loss without a minimum (`without_minimum`, in trials) labels are used as they are.

*DP-SGD* is as strong as a public grid makes it: for each data set and epsilon the settings that are best on rows held
out of the training part (`experiments/_dp_sgd.py`; `settings` has them).  The paper says neither passes nor rates, and
with too few of them DP-SGD hardly gains by epsilon.  That choice costs nothing here, which favours DP-SGD.  So does the
paper's account by iteration, whose epsilon is of a row of the first half of the order alone; that of Poisson batches is
of every row.  What hurts it: its epsilon hides a row, features included, where the others hide a label.

Pixels become 100 principal components, and clusters are k-means clusters of the first 50.  They are the same in all
trials, so that standard errors are of the mechanisms' noise alone.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments import _clustering_images as learning
from experiments import _dp_sgd as dp_sgd
from experiments import _plots
from experiments._common import OWN, Claim, Experiment, Options, Outcome, Verdict, main
from experiments._expected import Held
from experiments._rows import Case, Row, content, standard_error
from p2p_sim import privacy
from protocols.cluster_response import PHI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHERE = "Clustering 2022, Figure 1"
CLUSTER, UNIFORM, PENALIZED = "ClusterRR", "UniformRR", "UniformRR, C = 0.001"
ITERATION, POISSON, TRUE = "DP-SGD, by iteration", "DP-SGD, Poisson batches", "true labels"
CORRECTED, PRINTED, COROLLARY = "corrected", "printed", "corollary's own"
COSTS = {CORRECTED: 1.0, PRINTED: 1.5, COROLLARY: 3.0}
"""What ClusterRR costs by the corrected theorem, over the epsilon at which an account draws it."""

RESPONSE, DESCENT = (UNIFORM, PENALIZED), (ITERATION, POISSON)
"""Rivals in two forms each: as the paper has it, and another one."""
GRIDS = {ITERATION: "in passes", POISSON: "poisson"}
LABELS = 10
"""Label values of each of the data sets."""
EXACT = "exact"
"""How images are described that are the paper's own."""
AT = 0.5
"""The epsilon of the panel over clusters."""

FEW_STARTS = 3
"""Starts of k-means with more clusters than the paper's 100, which take longer each."""


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    data: tuple[str, ...]
    rows: int | None
    components: int
    epsilons: tuple[float, ...]
    counts: tuple[int, ...]
    clusters: int
    starts: int
    trials: int


FULL = Size(
    ("mnist", "fashion-mnist", "cifar10"), None, 100, (0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
    (2, 5, 10, 20, 50, 100, 200, 400), 100, 10, 5,
)  # fmt: skip
QUICK = Size(("mnist",), 10_000, 40, (0.5, 2.0), (2, 5, 60), 60, 1, 2)


def run(options: Options) -> Outcome:
    """Compute what is not kept from an earlier run, and hold the paper to it."""
    size = QUICK if options.quick else FULL
    trials = options.seeds or size.trials
    first, second = list(over_epsilon(size, trials)), list(over_clusters(size, trials))
    found = options.kept("clustering_figure1", "settings").each([case for _, case in (*first, *second)])
    placed = [
        [row | place for row in rows] for (place, _), rows in zip((*first, *second), found, strict=True)
    ]
    rows, counted = (
        _means([row for part in parts for row in part])
        for parts in (placed[: len(first)], placed[len(first) :])
    )
    claims = [claim for name in size.data for claim in _of_data(name, rows)]
    claims += [_few(name, counted) for name in size.data] + [_corollary(rows)]
    return Outcome(
        {"": rows, "clusters": counted},
        claims,
        {"": functools.partial(figure, rows, counted)},
    )


def over_epsilon(size: Size, trials: int) -> Iterator[tuple[Row, Case]]:
    """Yield the trials of every mechanism at every epsilon, and where they stand in the figure."""
    for name in size.data:
        yield {}, _case(size, name, TRUE, 0.0, size.clusters, 1)
        for epsilon in size.epsilons:
            for account, cost in COSTS.items():  # what two accounts spend alike is one case
                place = {"account": account, "epsilon": epsilon}
                yield place, _case(size, name, CLUSTER, epsilon * cost, size.clusters, trials)
            for other in (*RESPONSE, *DESCENT):
                yield {}, _case(size, name, other, epsilon, size.clusters, trials)


def over_clusters(size: Size, trials: int) -> Iterator[tuple[Row, Case]]:
    """Yield the trials of ClusterRR at one epsilon, by the corrected account, over the number of clusters."""
    for name in size.data:
        yield {}, _case(size, name, TRUE, 0.0, size.clusters, 1)
        for count in size.counts:
            yield {"account": CORRECTED}, _case(size, name, CLUSTER, AT, count, trials)


def _case(size: Size, name: str, mechanism: str, epsilon: float, count: int, trials: int) -> Case:
    """Return all trials of a setting together: finding clusters, or the noise for an epsilon, is done once for them."""
    settings = {
        "data": name, "content": content(name, multiclass=True), "rows": size.rows, "components": size.components,
        "starts": size.starts, "mechanism": mechanism, "epsilon": epsilon, "clusters": count, "trials": trials,
    }  # fmt: skip
    return settings, functools.partial(_trials, size, settings)


def _trials(size: Size, settings: Mapping[str, Any]) -> list[Row]:
    """Return a row for each seed: the test accuracy after one run of a mechanism."""
    told = ("data", "mechanism", "epsilon", "clusters")
    print(" ".join(str(settings[part]) for part in told if settings[part]), file=sys.stderr, flush=True)
    return [_trial(size, settings, seed) for seed in range(settings["trials"])]


def _trial(size: Size, settings: Mapping[str, Any], seed: int) -> Row:
    name, mechanism, epsilon, count = (
        settings[part] for part in ("data", "mechanism", "epsilon", "clusters")
    )
    found = learning.images(name, size.rows, size.components)
    spent, delta, bounded = epsilon, 0.0, True
    about: Row = {}
    if mechanism == TRUE:
        right = learning.trained(found, _certain(found))
    elif mechanism == CLUSTER:
        starts = size.starts if count <= size.clusters else min(size.starts, FEW_STARTS)
        cluster = learning.clusters(name, size.rows, size.components, count, starts)
        protocol = learning.cluster_rr(epsilon, found.classes)
        spent = privacy.profile(protocol, view="learner").epsilon(0.0)
        right, _ = learning.response(found, cluster, protocol, seed, 1.0)
        about = {"phi_at_most": round(learning.heterogeneity(found, cluster), 4)}
    elif mechanism in RESPONSE:
        cluster = learning.clusters(name, size.rows, size.components, size.clusters, size.starts)
        penalty = 1.0 if mechanism == UNIFORM else 1e-3
        right, bounded = learning.response(
            found, cluster, learning.uniform_rr(epsilon, found.classes), seed, penalty
        )
    else:
        chosen = dp_sgd.chosen(name, GRIDS[mechanism], epsilon, len(found.x))
        right, delta = learning.descended(found, chosen, epsilon, seed), 1 / len(found.x)
        about = {"settings": str(chosen)}
    return {
        "data": name, "examples": found.fidelity, "content": found.content, "n": len(found.x),
        "test_n": len(found.y_test), "mechanism": mechanism, "account": "", "epsilon": epsilon,
        "epsilon_corrected": round(spent, 6), "delta": f"{delta:.4g}", "hides": "a row" if delta else "a label",
        "settings": about.get("settings", ""), "clusters": count, "phi_at_most": about.get("phi_at_most", ""),
        "without_minimum": int(not bounded), "accuracy": right,
    }  # fmt: skip


def _certain(found: learning.Images) -> Any:
    import numpy as np

    return np.eye(found.classes)[found.y]


def _means(found: Sequence[Row]) -> list[Row]:
    """Return a row for each setting: the mean of its trials, and over the accuracy of true labels."""
    whole = {row["data"]: row["accuracy"] for row in found if row["mechanism"] == TRUE}
    keys = ("data", "mechanism", "account", "epsilon", "clusters")
    rows = []
    for _, group in itertools.groupby(found, key=lambda row: tuple(row[key] for key in keys)):
        trials = list(group)
        got = [row["accuracy"] / whole[row["data"]] for row in trials]
        rows.append(
            trials[0]
            | {
                "trials": len(trials),
                "without_minimum": sum(row["without_minimum"] for row in trials),
                "accuracy": round(statistics.mean(row["accuracy"] for row in trials), 4),
                "relative": round(statistics.mean(got), 4),
                "relative_error": standard_error(got),
            }
        )
    return rows


OF_ACCOUNT = {
    CORRECTED: "epsilon is the total by Theorem 1 as corrected",
    PRINTED: "epsilon is what the printed theorem says; in truth ClusterRR costs half more",
    COROLLARY: "epsilon is that of Corollary 2; in truth ClusterRR costs three times as much",
}
OF_RESPONSE = (
    "UniformRR has the paper's penalty, scikit-learn's own; it suits no noise, which favours ClusterRR"
)
OF_BOTH_RESPONSES = (
    "UniformRR with the penalty, of two, that is better at each epsilon by the test part, which favours it"
)
OF_DESCENT = (
    "DP-SGD has the settings of a grid that are best at each epsilon on held-out training rows, which epsilon does not "
    "pay for, and by iteration an epsilon of the first half of its rows alone: both favour it; that it hides a row, "
    "features included, hurts it.  The paper does not say its settings; in shorter ones it hardly gains by epsilon"
)


def _of_data(name: str, rows: Sequence[Row]) -> Iterator[Claim]:
    """Yield what the paper says of one panel, by its own accounts; and by the corrected one, with stronger rivals."""
    for account in (PRINTED, COROLLARY):
        yield _above(name, rows, account, RESPONSE[:1], "UniformRR", OF_RESPONSE)
        yield _above(name, rows, account, DESCENT[:1], "DP-SGD", OF_DESCENT)
    yield _above(name, rows, CORRECTED, RESPONSE, "UniformRR", OF_BOTH_RESPONSES)
    yield _above(
        name, rows, CORRECTED, DESCENT, "DP-SGD", f"The better of two accounts of DP-SGD.  {OF_DESCENT}"
    )
    every = f"The best of all rivals.  {OF_BOTH_RESPONSES}.  {OF_DESCENT}"
    yield _above(name, rows, CORRECTED, (*RESPONSE, *DESCENT), "all its rivals", every)


def _above(name: str, rows: Sequence[Row], account: str, rivals: Sequence[str], whom: str, why: str) -> Claim:
    """Return whether ClusterRR, by an account, is above the best of the rivals at each epsilon."""
    here = [row for row in rows if row["data"] == name]
    ours = {row["epsilon"]: row for row in here if (row["mechanism"], row["account"]) == (CLUSTER, account)}
    best = {
        epsilon: max((row for row in here if row["mechanism"] in rivals and row["epsilon"] == epsilon),
                     key=lambda row: float(row["relative"]))
        for epsilon in ours
    }  # fmt: skip
    won = sum(_clearly(row, best[epsilon]) for epsilon, row in ours.items())
    lost = sum(_clearly(best[epsilon], row) for epsilon, row in ours.items())
    told = "; ".join(
        f"at {epsilon:g} {row['relative']:.3f} against {best[epsilon]['relative']:.3f} ({_named(best[epsilon])})"
        for epsilon, row in ours.items()
    )
    images = here[0]["examples"]
    return Claim(
        f"{OWN}: {WHERE}" if account == CORRECTED else WHERE,
        f"ClusterRR above {whom} over a wide range of epsilon, {name}, account: {account}",
        f"by two standard errors above at {won}, and below at {lost}, of {len(ours)} values of epsilon: {told}",
        _of_copy(judged(won, lost, len(ours)), images),
        f"{OF_ACCOUNT[account]}.  {why}.  Reproduced: above at half of the values or more; in shape: at two or more, "
        f"and below at no more than that.  Images: {images}{_copies(images)}",
    )  # fmt: skip


def _named(row: Row) -> str:
    return f"{row['mechanism']}: {row['settings']}" if row.get("settings") else str(row["mechanism"])


def judged(won: int, lost: int, of: int) -> Verdict:
    """Return the verdict where ClusterRR is clearly above at ``won`` values and below at ``lost``; one is no range."""
    if won > 1 and 2 * won >= of:
        return "reproduced"
    return "reproduced in shape" if won > 1 and won >= lost else "not reproduced"


def _of_copy(verdict: Verdict, images: str) -> Verdict:
    """Return the verdict on images that may be a lossy copy: it shows a shape at most."""
    return "reproduced in shape" if verdict == "reproduced" and images != EXACT else verdict


def _copies(images: str) -> str:
    """Say why lossy copies decide."""
    same = "; all mechanisms have the same copies, and nothing shows that these decide it; so a shape at most"
    return "" if images == EXACT else same


def _clearly(one: Row, other: Row) -> bool:
    """Whether a mean is above another by two joint standard errors."""
    errors = [float(row["relative_error"] or 0) for row in (one, other)]
    return bool(one["relative"] - other["relative"] > 2 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5)


def _few(name: str, counted: Sequence[Row]) -> Claim:
    """Return the claim of the last panel: a sharp loss with few clusters."""
    here = [row for row in counted if row["data"] == name and row["mechanism"] == CLUSTER]
    fewest, best = here[0], max(here, key=lambda row: float(row["relative"]))
    lost = best["relative"] - fewest["relative"]
    sharp = lost > 0.25 and _clearly(best, fewest)
    told = ", ".join(f"{row['relative']:.3f} with {row['clusters']}" for row in here)
    return Claim(
        f"{WHERE}, last panel", f"ClusterRR loses sharply where clusters are very few, {name}, epsilon = {AT:g}",
        f"{told}; from best to fewest {lost:.3f} is lost",
        _of_copy("reproduced" if sharp else "not reproduced", here[0]["examples"]),
        "clusters of very different labels say little of any one; sharp means a quarter of the accuracy; images: "
        f"{here[0]['examples']}{_copies(here[0]['examples'])}",
    )  # fmt: skip


def _corollary(rows: Sequence[Row]) -> Claim:
    """Return whether Corollary 2 can be taken as it stands, tau = phi <= 1/K, without knowing labels' chances."""
    here = {row["data"]: row for row in rows if row["mechanism"] == CLUSTER}
    most = {name: float(row["phi_at_most"]) for name, row in here.items()}
    above = sum(phi > 1 / LABELS for phi in most.values())
    told = ", ".join(f"{phi:.3f} on {name}" for name, phi in most.items())
    verdict: Verdict = "reproduced in shape" if above else "not reproduced"
    return Claim(
        f"{OWN}: Clustering 2022, Corollary 2",
        "the phi of images, if their labels are certain, is above 1/K, where tau = phi cannot be taken",
        f"phi, if labels are certain given features, is {told}; 1/K is {1 / LABELS:g}",
        "reproduced" if above == len(most) else verdict,
        "at tau = 1/K clusters play no part any more: there ClusterRR is UniformRR without its correction; the paper "
        f"does not say which phi it took, the figure takes a public phi = {PHI:g}",
    )  # fmt: skip


LINES = (
    (CLUSTER, CORRECTED, _plots.BLUE, "o", "-"), (CLUSTER, PRINTED, _plots.SKY, "v", ":"),
    (CLUSTER, COROLLARY, _plots.PINK, "^", ":"), (UNIFORM, "", _plots.RED, "s", "-"),
    (PENALIZED, "", _plots.ORANGE, "D", "--"), (ITERATION, "", _plots.GREEN, "P", "-"),
    (POISSON, "", _plots.BLACK, "X", "--"),
)  # fmt: skip


def figure(rows: Sequence[Row], counted: Sequence[Row]) -> Figure:
    """Draw a panel for each data set, and the last over the number of clusters."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    drawn, grid = _plots.panels((len(names) + 2) // 2, 2)
    panels = grid.ravel()
    for axes, name in zip(panels, names, strict=False):
        for mechanism, account, colour, marker, dashes in LINES:
            here = [
                row for row in rows if (row["data"], row["mechanism"], row["account"]) == (name, mechanism, account)
            ]  # fmt: skip
            label = f"{mechanism} ({account})" if account else mechanism
            _line(axes, "epsilon", here, colour, marker, dashes, label)
        stand_in = ", JPEG copies" if "lossy" in _fidelity(rows, name) else ""
        axes.set(
            xscale="log", xlabel="ε in all (nats)", ylabel="accuracy / non-private", title=f"{name}{stand_in}"
        )
        axes.grid(True, alpha=0.3)
    axes = panels[len(names)]
    for name, colour, marker in zip(names, _plots.COLOURS, _plots.MARKERS, strict=False):
        here = [row for row in counted if row["data"] == name and row["mechanism"] == CLUSTER]
        _line(axes, "clusters", here, colour, marker, "-", name)
    axes.set(xscale="log", xlabel="clusters", ylabel="accuracy / non-private", title=f"ClusterRR, ε = {AT:g}")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="x-small")
    for axes in panels[len(names) + 1 :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="x-small")
    return drawn


def _fidelity(rows: Sequence[Row], name: str) -> str:
    return str(next(row["examples"] for row in rows if row["data"] == name))


def _line(
    axes: Any, over: str, here: Sequence[Row], colour: str, marker: str, dashes: str, label: str
) -> None:
    x, y = [row[over] for row in here], [row["relative"] for row in here]
    errors = [float(row["relative_error"] or 0) for row in here]
    axes.errorbar(
        x, y, yerr=errors, color=colour, marker=marker, linestyle=dashes, capsize=3, label=label, markersize=5
    )


EXPERIMENT = Experiment(
    "clustering_figure1", "ClusterRR, UniformRR and DP-SGD over epsilon", WHERE, "12 minutes", run,
    needs=("mnist", "fashion-mnist", "cifar10", "dp_accounting"),
    keys=("data", "mechanism", "account", "epsilon"),
    values={"relative": "relative_error", "epsilon_corrected": 1e-3},
    parts={"clusters": Held(("data", "mechanism", "clusters"), {"relative": "relative_error"})},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))

"""The data sets known by name: what each holds, its default label and positive classes, where copies are."""

from __future__ import annotations

from dataclasses import dataclass

_CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_DIGITS = tuple("0123456789")
_ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
    "income",
)  # fmt: skip
_CENSUS = (
    "age", "class of worker", "industry code", "occupation code", "education", "wage per hour",
    "enrolled in education", "marital status", "major industry", "major occupation", "race",
    "hispanic origin", "sex", "union member", "reason for unemployment", "employment status", "capital gains",
    "capital losses", "dividends", "tax filer status", "previous region", "previous state", "family status",
    "household summary", "instance weight", "migration msa", "migration region", "migration within region",
    "same house a year ago", "previous sunbelt", "persons worked for employer", "parents present",
    "father's birth country", "mother's birth country", "birth country", "citizenship", "own business",
    "veteran questionnaire", "veterans benefits", "weeks worked", "year", "income",
)  # fmt: skip
_MAGIC = (
    "fLength", "fWidth", "fSize", "fConc", "fConcl", "fAsym", "fM3Long", "fM3Trans", "fAlpha", "fDist",
    "Class",
)  # fmt: skip
_CLICKS = tuple(
    f"open-bandit-clicks/{policy}_{campaign}.csv.gz"
    for policy in ("bts", "random")
    for campaign in ("all", "men", "women")
)
_USER = tuple(f"user_feature_{i}" for i in range(4))
_AFFINITY = tuple(f"user-item_affinity_{i}" for i in range(80))


@dataclass(frozen=True)
class OpenML:
    """A copy on OpenML: its data id, which is of one version for ever, and that version's name."""

    id: int
    title: str
    content: str | None = None  # sum of the rows' SHA-256, see openml.content_sum; None where not known


@dataclass(frozen=True)
class Named:
    """One data set: its kind of reader, columns, classes, rows a class in each part, and default label."""

    name: str
    kind: str  # bundled, idx, cifar, table, clicks
    label: str
    positive: tuple[str, ...]
    classes: tuple[str, str]
    width: int  # features, after encoding, with the default label
    counts: tuple[tuple[int, ...], ...]  # for each part (train, then test): rows of each class in `values`
    values: tuple[str, ...]
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    openml: OpenML | None = None

    @property
    def rows(self) -> int:
        """Rows of all parts together."""
        return sum(map(sum, self.counts))


def _idx_files(folder: str) -> tuple[str, ...]:
    return tuple(
        f"{folder}/{part}-{kind}-ubyte.gz"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    )


_ALL = (
    Named(
        "digits", "bundled", "digit", _DIGITS[5:], ("digit < 5", "digit >= 5"), 64,
        counts=((178, 182, 177, 183, 181, 182, 181, 179, 174, 180),), values=_DIGITS, shape=(8, 8),
    ),
    Named(
        "breast-cancer", "bundled", "diagnosis", ("malignant",),
        ("diagnosis = benign", "diagnosis = malignant"), 30,
        counts=((212, 357),), values=("malignant", "benign"),
    ),
    Named(
        "mnist", "idx", "digit", _DIGITS[5:], ("digit < 5", "digit >= 5"), 784,
        counts=(
            (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        ),
        values=_DIGITS, files=_idx_files("mnist"), shape=(28, 28),
        openml=OpenML(554, "mnist_784 v1", "0e364f4c3e9f0946"),
    ),
    Named(
        "fashion-mnist", "idx", "class", ("T-shirt/top", "Pullover", "Dress", "Coat", "Shirt"),
        ("trousers, shoes or bag", "worn on the upper body (T-shirt/top, Pullover, Dress, Coat, Shirt)"), 784,
        counts=((6000,) * 10, (1000,) * 10), values=_CLOTHES, files=_idx_files("fashion-mnist"),
        shape=(28, 28), openml=OpenML(40996, "Fashion-MNIST v1", "67a39152851a6e8d"),
    ),
    Named(
        "adult", "table", "income", (">50K",), ("income <= 50K", "income > 50K"), 108,
        counts=((24720, 7841), (12435, 3846)), values=("<=50K", ">50K"),
        files=("adult/adult.data.gz", "adult/adult.test.gz"), columns=_ADULT,
        numeric=("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        openml=OpenML(1590, "adult v2", "5c7fce753784274d"),
    ),
    Named(
        "census-income", "table", "income", ("50000+.",), ("income < 50000", "income >= 50000"), 510,
        counts=((187141, 12382), (93576, 6186)), values=("- 50000.", "50000+."),
        files=tuple(f"census-income-kdd/census_income_1994_1995_{part}.csv.gz" for part in ("train", "test")),
        columns=_CENSUS,
        numeric=(
            "age", "wage per hour", "capital gains", "capital losses", "dividends",
            "persons worked for employer", "weeks worked",
        ),
        openml=OpenML(4535, "Census-Income v1"),
    ),
    Named(
        "magic", "table", "Class", ("g",), ("Class = h (hadron)", "Class = g (gamma)"), 10,
        counts=((12332, 6688),), values=("g", "h"), files=("magic-telescope/telescope.csv.gz",),
        columns=_MAGIC, numeric=_MAGIC[:-1], openml=OpenML(1120, "MagicTelescope v1"),
    ),
    Named(
        "cifar10", "cifar", "class", ("bird", "cat", "deer", "dog", "frog", "horse"),
        ("vehicle (airplane, automobile, ship, truck)", "animal (bird, cat, deer, dog, frog, horse)"), 3072,
        counts=((5000,) * 10, (1000,) * 10), values=_OBJECTS, files=("cifar10/cifar10_jpeg.tar.gz",),
        shape=(32, 32, 3), openml=OpenML(40927, "CIFAR_10 v1"),
    ),
    Named(
        "clicks", "clicks", "click", ("1",), ("click = 0", "click = 1"), 180,
        counts=((59713, 287),), values=("0", "1"), files=_CLICKS,
        columns=("campaign", "policy", "item", "position", *_USER, "propensity_score", *_AFFINITY, "click"),
        numeric=("propensity_score", *_AFFINITY),
    ),
)  # fmt: skip

NAMED = {named.name: named for named in _ALL}
UNUSED = ("instance weight",)  # a weight of the census survey, not a feature

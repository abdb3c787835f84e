"""Text files as people have them: separators, decimal commas, encodings, headers; what is a number; what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.datasets import describe, load
from p2p_sim.learning.data.reading_options import PLAIN, Reading
from p2p_sim.learning.data_split import gather
from p2p_sim.learning.user_graph import join
from protocols import RandomizedResponse

COMMAS = "acid,sugar,label\n-1.18,2.7,0\n-0.58,5.43,0\n0.12,3.51,1\n"
X = np.array([[-1.18, 2.7], [-0.58, 5.43], [0.12, 3.51]], np.float32).tolist()


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def refused(path, reading=PLAIN, **how):
    with pytest.raises(InputError) as caught:
        load(path, reading=reading, **how)
    return str(caught.value)


def test_a_bad_feature_of_a_block_can_be_left_out(tmp_path):
    """It was refused before what --drop names was dropped."""
    x = np.arange(12.0).reshape(4, 3)
    x[1, 2] = np.inf
    np.savez(tmp_path / "a.npz", x=x, label=np.array([0, 1, 0, 1]))
    assert "'x2'; every value" in refused(str(tmp_path / "a.npz"), label="label")
    data = load(str(tmp_path / "a.npz"), label="label", reading=Reading(drop=("x2",)))
    assert data.features == ("x0", "x1")
    assert data.x.tolist() == x[:, :2].tolist()


@pytest.mark.parametrize(
    ("content", "reading"),
    [
        (COMMAS, Reading()),
        (COMMAS, Reading(separator="comma")),
        (COMMAS.replace(",", ";"), Reading()),
        (COMMAS.replace(",", ";"), Reading(separator=";")),
        (COMMAS.replace(",", "\t"), Reading()),
        (COMMAS.replace(",", "|"), Reading()),
        (COMMAS.replace(",", " "), Reading(separator="space")),
        ("sep=;\r\n" + COMMAS.replace(",", ";"), Reading()),
        (COMMAS.replace(",", ";").replace(".", ","), Reading()),
        (COMMAS.replace(",", ";").replace(".", ","), Reading(decimal=",")),
        ('acid,sugar,label\n"-1,18","2,7",0\n"-0,58","5,43",0\n"0,12","3,51",1\n', Reading()),
        (COMMAS.encode("utf-16"), Reading()),
        (COMMAS.encode("utf-16-be"), Reading(encoding="utf-16-be")),
        (COMMAS.encode("utf-8-sig"), Reading()),
        (COMMAS.encode("utf-8-sig"), Reading(encoding="utf-8")),
        (COMMAS.replace("\n", "\r"), Reading()),
        ("\n\n" + COMMAS.replace("\n", "\n\n"), Reading()),
        (COMMAS.partition("\n")[2], Reading(header=False)),
    ],
)
def test_the_same_table_in_other_dress(tmp_path, content, reading):
    label = None if reading.header else "c3"
    data = load(write(tmp_path / "a.csv", content), label=label, reading=reading)
    assert data.x.tolist() == X
    assert data.y.tolist() == [False, False, True]
    assert data.features == (("acid", "sugar") if reading.header else ("c1", "c2"))


@pytest.mark.parametrize(
    ("cells", "reading", "read"),
    [
        (
            ["1.234,5", "7"],
            Reading(),
            [1234.5, 7],
        ),  # one comma with one digit behind says what all commas mean
        (["1,234.5", "7"], Reading(), [1234.5, 7]),
        (["1,234,567", "7"], Reading(), [1234567, 7]),
        (["36,390", "7"], Reading(decimal=","), [36.39, 7]),
        (["36,390", "7"], Reading(decimal="."), [36390, 7]),
        (["1.500", "2.250"], Reading(), [1.5, 2.25]),
        (["1.500", "2.250"], Reading(decimal=","), [1500, 2250]),
        (["+5", " 6 "], Reading(), [5, 6]),
        (["1e3", ".5"], Reading(), [1000, 0.5]),
    ],
)
def test_numbers(tmp_path, cells, reading, read):
    path = write(tmp_path / "a.csv", f"a;label\n{cells[0]};0\n{cells[1]};1\n")
    assert load(path, reading=reading).x[:, 0].tolist() == np.array(read, np.float32).tolist()


def test_points_group_thousands_where_commas_mark_decimals(tmp_path):
    path = write(tmp_path / "a.csv", "a;b;c;label\n1.500;0,5;0.25;0\n2.000;1,25;0.5;1\n")
    assert load(path).x.tolist() == [[1500, 0.5, 0.25], [2000, 1.25, 0.5]]
    assert "a comma for decimals" in describe(path)["read_as"]


def test_a_comma_that_can_be_read_two_ways_is_asked_about(tmp_path):
    path = write(tmp_path / "a.csv", 'wage,label\n"36,390",0\n"41,774",1\n')
    said = refused(path)
    assert "'wage'" in said
    assert "--decimal , if it is 36.390, --decimal . if it is 36390" in said
    both = write(tmp_path / "b.csv", 'a,b,label\n"1,5","1,000,000",0\n"2,5","2,000,000",1\n')
    assert "column 'a' and group thousands in column 'b'" in refused(both)
    assert load(both, reading=Reading(drop=("b",))).x.tolist() == [[1.5], [2.5]]
    assert "--decimal ," in refused(write(tmp_path / "c.csv", "a;label\n1,5;0\n2.5;1\n"))


@pytest.mark.parametrize("cell", ["1_000", "٣", "0x1F", "1 000", "1'000", "1d", "½"])
def test_what_is_no_number_in_a_table_is_text(tmp_path, cell):
    assert load(write(tmp_path / "a.csv", f"a,label\n{cell},0\nx,1\n")).features == tuple(
        sorted([f"a={cell}", "a=x"])
    )
    path = write(tmp_path / "b.csv", f"a,label\n5,0\n{cell},1\n")
    assert f"'5' in row 1 is a number, {cell!r} in row 2 is text" in refused(path)
    assert load(path, reading=Reading(categorical=("a",))).features == tuple(sorted([f"a={cell}", "a=5"]))
    assert load(path, reading=Reading(numeric=("a",), missing="impute")).x.tolist() == [[5], [5]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("0,2.70,0,0\n0,5.43,0,1\n", "--no-header"),
        (
            "-1.18,2.70,blue,well\n-0.58,5.43,green,ill\n",
            "'-1.18', '2.70', 'blue', 'well', which looks like a row",
        ),
        ("blue,well\ngreen,ill\nblue,well\n", "--no-header"),
        ("5,blue\n6,green\n7,blue\n", "--no-header"),
        (
            "größe,label\n1,0\n2,1\n".encode("cp1252"),
            "'größe,label'; if that is right, say --encoding cp1252",
        ),
        (COMMAS.encode("utf-16-le"), "NUL"),
        ("a;b,c\n1;2,0\n3;4,1\n", "',' and ';' both divide the lines of"),
        ("a;b,c\n1;2,0\n3;4,1\n", "(--separator ',' or --separator ';')"),
        ("a;b,c|d\n1;2,0|1\n3;4,1|0\n", "',', ';' and '|' all divide the lines of"),
        ("a;b,c|d\n1;2,0|1\n3;4,1|0\n", "(--separator ',' or --separator ';' or --separator '|')"),
        ("a,label\n123456789012345678901234567890,0\n2,1\n", "--categorical a"),
        ("a,label\n9007199254740993,0\n2.5,1\n", "9007199254740993 in row 1 beside decimals"),
    ],
)
def test_advice(tmp_path, content, says):
    assert says in refused(write(tmp_path / "a.csv", content))


def test_advice_that_is_followed_works(tmp_path):
    path = write(tmp_path / "a.csv", "größe,label\n1,0\n2,1\n".encode("cp1252"))
    assert load(path, reading=Reading(encoding="cp1252")).features == ("größe",)
    path = write(tmp_path / "b.csv", "-1.18,2.70,blue,well\n-0.58,5.43,green,ill\n")
    assert load(path, label="c4", reading=Reading(header=False)).x.shape == (2, 4)
    path = write(tmp_path / "c.csv", "a;b,c\n1;2,0\n3;4,1\n")
    assert load(path, label="c", reading=Reading(separator=",")).features == ("a;b=1;2", "a;b=3;4")
    path = write(
        tmp_path / "d.csv", "a,label\n123456789012345678901234567890,0\n123456789012345678901234567891,1\n"
    )
    assert load(path, reading=Reading(categorical=("a",))).x.shape == (2, 2)
    years = write(tmp_path / "e.csv", "2019,2020,label\n1.5,2,0\n3.5,4,1\n")
    assert load(years).features == ("2019", "2020")


GAPS = "a,b,town,group,label\n1,,Rome,7,0\n2,5,,7,1\nNA,6,Oslo,8,0\n4,7,Oslo,8,1\n"


def test_missing_values(tmp_path):
    path = write(tmp_path / "a.csv", GAPS)
    said = refused(path, cluster="group")
    for part in ("'a' has 'NA' in row 3", "'b' has '' in row 1", "'town' has '' in row 2", "3 of 4 rows"):
        assert part in said
    assert "'b'" not in refused(path, Reading(drop=("b",)))
    one = load(path, reading=Reading(drop=("b", "town"), missing="drop"))
    assert one.x.tolist() == [[1, 7], [2, 7], [4, 8]]
    assert (one.y.tolist(), one.kept.tolist(), one.rows_in_file) == ([False, True, True], [0, 1, 3], 4)
    filled = load(path, cluster="group", reading=Reading(missing="impute"))
    assert filled.features == ("a", "b", "town=(missing)", "town=Oslo", "town=Rome")
    assert filled.x[:, :3].tolist() == [[1, 6, 0], [2, 5, 1], [2, 6, 0], [4, 7, 0]]
    holes = write(tmp_path / "b.csv", "a,group,label\n1,7,0\n2,7,\n3,,1\n")
    said = refused(holes, Reading(missing="impute"), cluster="group")
    assert "never imputed: column 'group' has '' in row 3; column 'label' has '' in row 2" in said


def test_odd_files_are_refused_by_name(tmp_path):
    assert "not in BASE64" in refused(write(tmp_path / "a.csv", COMMAS), Reading(encoding="base64"))
    assert "more than 131,072 characters" in refused(write(tmp_path / "b.csv", "x" * 200_000 + "\n1\n2\n"))


def test_clusters_that_no_number_holds_can_be_text(tmp_path):
    path = write(tmp_path / "a.csv", f"a,g,label\n1,{2**63},0\n2,{2**63 + 1},1\n3,{2**63},1\n")
    assert "--categorical g" in refused(path, cluster="g")
    assert load(path, cluster="g", reading=Reading(categorical=("g",))).cluster.tolist() == [0, 1, 0]


def test_ids_with_missing_values_stay_exact(tmp_path):
    path = write(tmp_path / "a.csv", f"a,group,label\n1,{2**53},0\n2,{2**53 + 1},1\n3,,1\n")
    assert load(path, cluster="group", reading=Reading(missing="drop")).cluster.tolist() == [2**53, 2**53 + 1]


def test_edges_of_a_file_keep_their_rows_where_some_are_left_out(tmp_path):
    rows = "".join(f"{'' if i == 2 else i},{i % 2}\n" for i in range(9))
    data = load(write(tmp_path / "a.csv", "a,label\n" + rows), reading=Reading(missing="drop"))
    edges = write(tmp_path / "e.csv", "".join(f"{i},{i + 1}\n" for i in range(8)) + "1,3\n")
    found = gather(RandomizedResponse(1.0), data, test=0.2, seed=3)
    assert 2 not in found.rows
    assert found.population.x[:, 0].tolist() == found.rows.tolist()  # a is the row in the file
    network = _Everybody()
    with pytest.raises(InputError, match=r"no neighbour|not connected|alone"):
        join(network, found.population, edges, 0, rows=found.rows, total=data.rows_in_file)


class _Everybody(RandomizedResponse):
    def __init__(self):
        super().__init__(1.0)

    def graph_over(self):
        return "everybody"


def test_columns_that_are_not_there(tmp_path):
    path = write(tmp_path / "a.csv", COMMAS)
    for role in ("drop", "numeric", "categorical"):
        assert f"no column 'z', named by --{role}; its columns are 'acid'" in refused(
            path, Reading(**{role: ("z",)})
        )
    np.savez(tmp_path / "a.npz", x=np.eye(2), y=[0, 1])
    assert "--separator goes with text files" in refused(str(tmp_path / "a.npz"), Reading(separator=";"))
    with pytest.raises(InputError, match="--missing goes with a file of your own"):
        load("digits", reading=Reading(missing="drop"))
    assert load("digits", reading=Reading(drop=("pixel 0,0",))).x.shape == (1797, 63)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"separator": "ab"}, "'ab'"),
        ({"separator": "§"}, "one character of ASCII"),
        ({"decimal": "x"}, "'x'"),
        ({"separator": ",", "decimal": ","}, "cannot both"),
        ({"missing": "guess"}, "refuse, drop, impute"),
        ({"encoding": "klingon"}, "'klingon'"),
        ({"numeric": ("a",), "categorical": ("a",)}, "both numeric and categorical"),
    ],
)
def test_readings_that_cannot_be(how, says):
    with pytest.raises(InputError, match=says):
        Reading(**how)


CLASSES = "a,label\n1,ill\n2,well\n3,ill\n"


def test_classes_are_declared_or_inferred(tmp_path):
    path = write(tmp_path / "a.csv", CLASSES)
    assert load(path, multiclass=True).classes_from == "inferred"
    assert load(path).classes_from == "inferred"
    assert load(path, positive=["ill"]).classes_from == "fixed"
    data = load(path, multiclass=True, classes=["well", "ill", "rare"])
    assert (data.y.tolist(), data.classes, data.classes_from) == (
        [1, 0, 1],
        ("well", "ill", "rare"),
        "declared",
    )
    assert load(path, classes=["well", "ill"]).y.tolist() == [True, False, True]
    assert "'well', not among the declared classes 'ill', 'dead'" in refused(path, classes=["ill", "dead"])
    assert "list at least two" in refused(path, classes=["ill"])
    assert load(write(tmp_path / "b.csv", "a,label\n1,0\n2,1\n")).classes_from == "fixed"
    numbers = write(tmp_path / "c.csv", "a,label\n1,10\n2,9\n3,10\n")
    assert load(numbers, multiclass=True, classes=["9", "10.0", "11"]).y.tolist() == [1, 0, 1]
    with pytest.warns(
        UserWarning, match=r"taken from the labels of 'label' \('label = ill', 'label = well'\)"
    ):
        gather(RandomizedResponse(1.0), load(path))


def test_one_label_does_not_change_the_codes_of_others_where_classes_are_declared(tmp_path):
    rows = ["well"] * 5 + ["ill"] * 5
    codes = []
    for last in ("ill", "rare disease"):
        text = "a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate([*rows, last]))
        path = write(tmp_path / "a.csv", text)
        codes.append(load(path, multiclass=True, classes=["well", "ill", "rare disease"]).y[:-1].tolist())
    assert codes[0] == codes[1]


def test_what_is_understood_of_every_column(tmp_path):
    rows = "".join(
        f"{i + 100},p{i},2024-01-{i + 1:02d},{i % 3},{'' if i == 4 else i / 2},same,{2**53 + i % 3},0.5,{i % 2}\n"
        for i in range(24)
    )
    path = write(tmp_path / "a.csv", "id,name,day,group,dose,unit,house,rest,label\n" + rows)
    told = describe(path, cluster="group")
    found = {column["column"]: column for column in told["columns"]}
    assert told["rows"] == 24
    assert [column["kind"] for column in found.values()] == [
        "whole numbers", "text", "dates", "whole numbers", "numbers", "text", "whole numbers", "numbers",
        "whole numbers",
    ]  # fmt: skip
    dose = found["dose"]
    assert (dose["missing"], dose["distinct"], dose["range"], dose["becomes"]) == (
        1,
        23,
        "0 to 11.5",
        "1 feature",
    )
    assert (found["group"]["becomes"], found["label"]["becomes"]) == ("clusters", "label")
    for name, says in {
        "id": "an id", "name": "an id", "day": "dates", "unit": "the same", "rest": "the same", "house": "digits",
        "dose": "", "group": "", "label": "",
    }.items():  # fmt: skip
        assert says in found[name]["warning"], name
        assert bool(says) == bool(found[name]["warning"]), name
    assert any("1 of 24 rows miss a value: --missing drop" in note for note in told["notes"])


def test_a_sparse_file_that_would_fill_the_memory_is_refused(tmp_path):
    path = write(tmp_path / "a.svm", "".join(f"{i % 2} 1:{i} {9_000_000 + i}:1\n" for i in range(1, 101)))
    said = refused(path)
    assert "100 rows of 9,000,100 features, of which 200 are not 0: written out they take 6.7 GiB" in said


def test_a_line_may_be_longer_than_the_blocks_that_are_read(tmp_path):
    names = [f"g{j:04d}" + "x" * 9_000 for j in range(2_000)]
    path = write(
        tmp_path / "a.csv",
        ",".join(names) + ",label\n" + ("0.25," * 2_000 + "1\n") * 2 + "0.5," * 2_000 + "0\n",
    )
    assert load(path).x[:, -1].tolist() == [0.25, 0.25, 0.5]


def test_a_column_of_ids_is_warned_of_once_where_it_becomes_features(tmp_path):
    rows = [f"u{i},{i % 7},{i % 2}" for i in range(80)]
    (tmp_path / "own.csv").write_text("\n".join(["id,age,y", *rows]) + "\n")
    with pytest.warns(
        UserWarning, match="another value of 'id', which makes everybody unique: .* --drop id"
    ) as seen:
        load(str(tmp_path / "own.csv"))
    assert len(seen) == 1
    load(str(tmp_path / "own.csv"), reading=Reading(drop=("id",)))  # warnings are errors here


def test_numbers_that_look_like_ids_are_known_by_name(tmp_path):
    """Whole numbers with a value of their own in nearly every row; no amounts, measures, or columns of few rows."""
    rows = [
        f"{1000 - 7 * i},{i if i > 2 else 2},{i % 40},{i / 7:.5f},{'abc'[i % 3]}{i},{i % 2}"
        for i in range(100)
    ]
    (tmp_path / "own.csv").write_text("\n".join(["number,almost,age,acid,code,y", *rows]) + "\n")
    with pytest.warns(UserWarning, match="another value of 'code'"):
        found = load(str(tmp_path / "own.csv"))
    assert found.ids == ("number", "almost", "code")
    (tmp_path / "few.csv").write_text("\n".join(["number,y", *(f"{i},{i % 2}" for i in range(19))]) + "\n")
    assert load(str(tmp_path / "few.csv")).ids == ()
    assert load("breast-cancer").ids == ()
    x = np.stack([np.arange(100) % 50, np.arange(100), np.arange(100) / 3], axis=1)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(100) % 2)
    assert len(load(str(tmp_path / "own.npz")).ids) == 1

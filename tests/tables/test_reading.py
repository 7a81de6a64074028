"""Tables from files of every format, and files that hold none."""

import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from transferable.events import listen
from transferable.tables import TableError, read_table, reading
from transferable.tables.reading import Dialect, iter_table

TABLE = pd.DataFrame(
    {
        "size": [1.5, np.nan, -3.0],
        "count": [1, 2, 3],
        "sure": [True, False, True],
        "colour": ["red", None, "blue"],
    }
)


def assert_same_table(table):
    assert table.columns.tolist() == TABLE.columns.tolist()
    np.testing.assert_array_equal(table["size"], TABLE["size"])
    np.testing.assert_array_equal(table["count"], TABLE["count"])
    np.testing.assert_array_equal(table["sure"], TABLE["sure"])
    assert table["colour"].astype(object).where(table["colour"].notna(), None).tolist() == [
        "red",
        None,
        "blue",
    ]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".csv", lambda path: TABLE.to_csv(path, index=False)),
        (".tsv", lambda path: TABLE.to_csv(path, index=False, sep="\t")),
        (".parquet", lambda path: TABLE.to_parquet(path)),
        (".feather", lambda path: TABLE.to_feather(path)),
        (".CSV", lambda path: TABLE.to_csv(path, index=False)),
    ],
)
def test_formats_of_tables(suffix, write, zipped, tmp_path):
    path = tmp_path / f"table{suffix}"
    write(path)
    if zipped:
        packed = tmp_path / f"table{suffix}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    assert_same_table(read_table(path))


def test_formats_of_arrays(tmp_path):
    X, y = np.arange(12.0).reshape(4, 3), np.array(["a", "b", "a", "b"])
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy")
    assert table.columns.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(table, X)

    np.savez(tmp_path / "x.npz", X=X, y=y)
    table = read_table(tmp_path / "x.npz")
    assert table.columns.tolist() == ["X0", "X1", "X2", "y"]
    assert table["y"].tolist() == y.tolist()

    named = np.array([(1.0, "a"), (2.0, "b")], dtype=[("size", float), ("kind", "S1")])
    np.save(tmp_path / "named.npy", named)
    assert read_table(tmp_path / "named.npy").to_dict("list") == {
        "size": [1.0, 2.0],
        "kind": ["a", "b"],
    }


def test_a_column_is_of_one_type_however_long_the_file(tmp_path):
    """Codes that are numbers for ten thousands of rows stay as they were written."""
    codes = ["007"] * 60_000 + ["A7"] * 10
    path = tmp_path / "codes.csv"
    path.write_text("code,n\n" + "".join(f"{code},{i}\n" for i, code in enumerate(codes)))
    assert sum(1 for _ in iter_table(path)) > 1
    table = read_table(path)
    assert table["code"].astype(str).tolist() == codes
    np.testing.assert_array_equal(table["n"], np.arange(len(codes)))


def test_pieces_tell_how_much_is_done(tmp_path):
    path = tmp_path / "numbers.csv"
    pd.DataFrame({"a": np.arange(90_000.0)}).to_csv(path, index=False)
    pieces = list(iter_table(path))
    done = [share for _, share in pieces]
    assert done == sorted(done)
    assert done[-1] == 1.0
    told = []
    with listen(lambda event: told.append(event.share)):
        read_table(path)
    assert told == done


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\n", "cannot be read"),
        ("heading.csv", b"a,b\n", "no rows"),
        ("junk.csv", bytes(range(256)) * 40, "not a text file"),
        ("latin.csv", "größe\n1\n".encode("latin-1"), "not text in utf-8"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read"),
        ("nameless.csv", b"a,b\n1,2,3\n4,5,6\n", "longer than its heading"),
        ("junk.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("cut.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "cannot be read"),
        ("junk.parquet", b"PAR1 not really", "cannot be read"),
        ("junk.feather", b"no feather", "cannot be read"),
        ("junk.npy", b"no array", "cannot be read"),
        ("junk.npz", b"PK no archive", "cannot be read"),
        ("table.xls", b"PK", "must end in"),
        ("junk.xlsx", b"PK no workbook", "cannot be read"),
        ("table", b"a\n1\n", "must end in"),
    ],
)
def test_files_without_a_table(name, content, told, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=told) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("last", ["3", '3,"a\nb"', "3,a"])
def test_a_short_last_line_is_refused_by_its_number(last, zipped, tmp_path):
    path = tmp_path / ("table.csv.gz" if zipped else "table.csv")
    text = f'id,word,size\n1,"of two\nlines",2.5\n2\n{last}\n\n'.encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    line = 5 + last.count("\n")
    with pytest.raises(TableError, match=f"the last line, {line}, has {1 + last.count(',')} of 3"):
        read_table(path)


def test_a_last_line_may_end_in_an_empty_cell(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("id,word,size\n1,a,2.5\n2,b,\n   \n")
    assert len(read_table(path)) == 2


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size\n1\n2\n")
    with (
        listen(lambda _: path.write_text("size\n1\n2\n3\n")),
        pytest.raises(TableError, match="changed while it was read"),
    ):
        read_table(path)


def test_no_such_file(tmp_path):
    with pytest.raises(TableError, match="no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(TableError, match="no file"):
        read_table(tmp_path.with_suffix(".csv"))


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / "x.npy")


def test_arrays_of_different_lengths(tmp_path):
    np.savez(tmp_path / "x.npz", Xs=np.ones((4, 2)), Xt=np.ones((5, 2)))
    with pytest.raises(TableError, match=r"Xs of shape \(4, 2\), Xt of shape \(5, 2\)"):
        read_table(tmp_path / "x.npz")


def test_memory_is_bounded_by_the_pieces(tmp_path, monkeypatch):
    """Going through rows in pieces takes a few of these, not all rows together."""
    monkeypatch.setattr(reading, "_PIECE_ROWS", 500)
    rows = np.random.default_rng(0).normal(size=(16_000, 20)).round(6)
    pd.DataFrame(rows).add_prefix("c").assign(where="north").to_csv(tmp_path / "x.csv", index=False)
    list(iter_table(tmp_path / "x.csv"))  # what is imported on the way
    tracemalloc.start()
    found = sum(len(piece) for piece, _ in iter_table(tmp_path / "x.csv"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == 16_000
    assert peak < rows.nbytes


def test_numbers_are_read_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=3000) * 10.0 ** rng.integers(-30, 30, size=3000)
    path = tmp_path / "numbers.csv"
    path.write_text("a\n" + "\n".join(map(repr, numbers.tolist())))
    np.testing.assert_array_equal(read_table(path)["a"], numbers)


@pytest.mark.parametrize(
    ("name", "heading", "told"),
    [
        ("a.csv", "size;colour", "semicolons seem to divide; say so: sep=';'"),
        ("a.csv", "size\tcolour", "tabs seem to divide; say so: sep='.t'"),
        ("a.tsv", "size,colour", "commas seem to divide; say so: sep=','"),
    ],
)
def test_another_separator_is_told(tmp_path, name, heading, told):
    (tmp_path / name).write_text(f"{heading}\n1;2\n")
    with pytest.raises(TableError, match=told):
        read_table(tmp_path / name)


def test_a_single_column_is_a_table(tmp_path):
    (tmp_path / "a.csv").write_text("size\n1\n2\n")
    assert read_table(tmp_path / "a.csv").shape == (2, 1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"decimal": ",,"}, "',,' is not a single character"),
        ({"encoding": "klingon"}, "there is no encoding 'klingon'; try utf-8"),
    ],
)
def test_a_format_that_cannot_be_is_refused(given, told):
    with pytest.raises(TableError, match=told):
        Dialect(**given)


def test_separators_have_names(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("a\tb\n1\t2\n")
    assert read_table(path, dialect=Dialect(sep="Tab")).to_numpy().tolist() == [[1, 2]]

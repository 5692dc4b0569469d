"""What counts of a value that a function returns, or that a cell leaves."""

import pytest

from samebits.digest import digest
from samebits.recording.recorded_result import _leaves

pandas = pytest.importorskip("pandas")


def table(**changes):
    """A table with numbers, text, dates, categories and missing values."""
    columns = {
        "number": [0.5, 1.5, None],
        "text": ["a", None, "c"],
        "date": pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
        "kind": pandas.Categorical(["x", "y", "x"]),
    }
    return pandas.DataFrame({**columns, **changes})


def recorded(value):
    """Paths and digests of the parts that count."""
    return {name: digest(tensor) for name, tensor in _leaves(value, "result", 0)}


def test_tables_of_pandas_that_are_equal():
    """Made twice, they have the same parts, one for each column and the index."""
    assert recorded(table()) == recorded(table())
    assert set(recorded(table())) == {
        f"result.{name}" for name in ("index", "number", "text", "date", "kind")
    }


@pytest.mark.parametrize(
    "changed",
    [
        table(number=[0.5, 1.5000000000000002, None]),
        table(text=["a", None, "d"]),
        table(date=pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"])),
        table(kind=pandas.Categorical(["x", "y", "y"])),
        table().iloc[::-1],
        table().rename(columns={"text": "words"}),
        table()[["text", "number", "date", "kind"]].drop(columns="kind"),
    ],
)
def test_tables_of_pandas_that_differ(changed):
    """By a value of any kind, the order of rows, a name, or a column."""
    assert recorded(changed) != recorded(table())


def test_columns_and_other_objects():
    """A column counts as an array; objects of other kinds in it do not count, as elsewhere."""
    assert recorded(table()["number"]) == recorded(table()["number"].to_numpy())
    assert recorded(pandas.Series([object(), object()])) == {}
    assert recorded(object()) == {}

"""Tables that a notebook's cell changes in place are put back, as tensors and arrays are."""

from __future__ import annotations

from typing import Any

import pytest

from samebits.integrations._cell_state import CellState

pandas = pytest.importorskip("pandas")

TABLES = {
    "a table": "frame['a'] += 1; frame['c'] = 5; frame.columns = ['A', 'b', 'c']; frame.attrs['k'] = 1",
    "a column": "column[0] = 5; column.name = 'other'",
}


@pytest.mark.parametrize("change", TABLES)
def test_tables_of_pandas_are_put_back(change):
    """Contents, names and attributes, in the same object."""
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    space: dict[str, Any] = {"frame": frame, "column": pandas.Series([1, 2], name="n")}

    def shown_tables() -> Any:
        column = space["column"]
        return frame.to_dict("split"), dict(frame.attrs), column.tolist(), column.name

    start = shown_tables()
    state = CellState(space, TABLES[change])
    before = state.read()
    exec(TABLES[change], space)  # noqa: S102 - as a notebook does
    ended = shown_tables()
    after = state.read(before)
    assert ended != start
    state.restore(before)
    assert shown_tables() == start
    exec(TABLES[change], space)  # noqa: S102 - as a notebook does
    state.restore(after)
    assert shown_tables() == ended
    assert state.not_restored == ()

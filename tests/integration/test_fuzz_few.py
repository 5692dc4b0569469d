"""As test_fuzz.py, a few cases of it; and a check that the fuzzer would notice."""

import pytest
from fuzz_mutations import RecordMutator, make_records
from fuzz_runs import check_cases


@pytest.mark.parametrize(("kind", "count"), [("records", 400), ("checkpoints", 800)])
def test_some_mutations(kind, count, tmp_path):
    check_cases(kind, 0, count, tmp_path)


def test_a_reader_that_raises_is_noticed(tmp_path, monkeypatch):
    import fuzz_child

    mutator = RecordMutator(make_records(tmp_path))

    def fail(*_):
        raise KeyError("x")

    monkeypatch.setattr(fuzz_child, "read_record", fail)
    assert "KeyError" in fuzz_child.one_case("records", 0, tmp_path, mutator)
    monkeypatch.setattr(fuzz_child, "read_record", lambda *each: each[-1].write("\x1b[2J"))
    assert "control characters" in fuzz_child.one_case("records", 0, tmp_path, mutator)

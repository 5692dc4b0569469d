"""As test_fuzz.py, a few cases of it; and checks that the fuzzer would notice what breaks a limit."""

import random

import fuzz_child
import pytest
from fuzz_mutations import LogMutator, RecordMutator, make_records
from fuzz_runs import ROOM_MB, Figures, check_limits, figures_of

from samebits.errors import SamebitsError
from samebits.records.log import frames, log_of
from samebits.records.reader import RecordReader


@pytest.mark.parametrize(("kind", "count"), [("records", 400), ("logs", 300), ("checkpoints", 800)])
def test_some_mutations(kind, count, tmp_path):
    check_limits(figures_of(kind, 0, count, tmp_path), count)


def no_memory(*_):
    try:
        bytes(1 << 62)
    except MemoryError:
        raise SamebitsError("it is damaged", slug="record-damaged") from None


def busy(*_):
    begun = fuzz_child.time.process_time()
    while fuzz_child.time.process_time() - begun < 0.1:
        pass


@pytest.mark.parametrize(
    ("reader", "limit"),
    [
        (lambda *_: {}["x"], "traceback"),
        (lambda *each: each[-1].write("\x1b[2J"), "raw"),
        (lambda *each: each[-1].write("a" * 1001), "shown"),
        (no_memory, "memory"),
        (busy, "seconds"),
        (lambda *each: each[-1].write("sound"), ""),
    ],
    ids=["traceback", "raw", "shown", "memory", "seconds", "none"],
)
def test_what_breaks_a_limit_is_noticed(tmp_path, monkeypatch, reader, limit):
    mutator = RecordMutator(make_records(tmp_path))
    monkeypatch.setattr(fuzz_child, "read_record", reader)
    monkeypatch.setattr(fuzz_child, "MOST_SHOWN", 1000)
    monkeypatch.setattr(fuzz_child, "MOST_SECONDS", 0.05)

    (found, _), _ = fuzz_child.one_case("records", 0, tmp_path, mutator)

    assert found == limit


@pytest.mark.parametrize(
    "figures",
    [
        Figures(10, 2.5, 390, 400, {}),
        Figures(10, 0.1, 390, 501, {}),
        Figures(10, 0.1, 900, 900 + ROOM_MB + 1, {}),
        Figures(9, 0.1, 390, 400, {}),
        *(Figures(10, 0.1, 390, 400, {limit: ["case 1"]}) for limit in ("traceback", "raw", "memory")),
    ],
)
def test_figures_beyond_a_limit_fail(figures):
    check_limits(Figures(10, 0.1, 390, 400, {}), 10)
    with pytest.raises(AssertionError):
        check_limits(figures, 10)


def test_the_files_of_a_case_are_kept(tmp_path):
    mutator = RecordMutator(make_records(tmp_path))
    mutator.write(random.Random(1), tmp_path / "mutated")
    kept = fuzz_child.keep_case(tmp_path, 7)
    assert kept.name == "case-7"
    assert (kept / "mutated").read_bytes() == (tmp_path / "mutated").read_bytes()
    assert {path.name for path in kept.iterdir()} == {p.name for p in tmp_path.iterdir() if p.is_file()}


def test_what_is_mutated_is_what_a_reader_reads(tmp_path):
    """A log that is sound is the record; some of those that are changed are read, and some are refused."""
    records = make_records(tmp_path)
    assert len(list(frames(log_of(records["killed"])))) >= 3  # the run, and events in two pieces or more
    with RecordReader(records["killed"]) as reader:
        assert reader.n_steps() == 4
    mutator, path, ends = LogMutator(records), tmp_path / "mutated", set()
    for number in range(60):
        mutator.write(random.Random(number), path)
        try:
            with RecordReader(path) as reader:
                ends.add(reader.n_steps())
        except SamebitsError as error:
            ends.add(error.slug)
    assert {4, "record-damaged"} <= ends

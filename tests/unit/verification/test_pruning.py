"""Which records stay after a verification."""

from __future__ import annotations

from sentence_support import text_reason

from samebits.comparison.results import Comparison
from samebits.records.events import RunInfo
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter
from samebits.verification import ScriptRun, Verification
from samebits.verification.verify import pruned

PURPOSES = ("prepare", "compare", "localise", "capture", "again", "intervene", "fix")


def test_the_records_that_the_report_is_about_stay(tmp_path):
    runs = []
    for purpose in PURPOSES:
        path = tmp_path / f"{purpose}.sbr"
        RecordWriter(path, RunInfo(("a.py",), "op", "finished")).close()
        runs.append(ScriptRun(purpose, str(path), 0, 1.0))
    result = pruned(Verification(Comparison("different", text_reason(""), 1), ("a.py",), tuple(runs), 1.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compare.sbr", "localise.sbr", "prepare.sbr"]
    assert [run.has_record for run in result.runs] == [True, True, True, False, False, False, False]
    with RecordReader(tmp_path / "localise.sbr") as reader:
        assert reader.info.level == "op"


def test_what_is_no_record_is_no_error(tmp_path):
    (tmp_path / "x.sbr").write_bytes(b"no record")
    runs = (
        ScriptRun("localise", str(tmp_path / "x.sbr"), 0, 1.0),
        ScriptRun("fix", str(tmp_path / "y"), 0, 1.0),
    )
    pruned(Verification(Comparison("different", text_reason(""), 1), ("a.py",), runs, 1.0))
    assert [path.name for path in tmp_path.iterdir()] == ["x.sbr"]

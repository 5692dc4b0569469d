"""What is said of a record when a run has ended."""

from samebits.recording.closing import ending_text


def test_an_odd_file_name_stays_on_one_line(tmp_path):
    assert ending_text(tmp_path / "missing.sbr", "a\nb.sbr") == "no record was written in a\\nb.sbr"

"""The code of a recorded run, found as it is here."""

from __future__ import annotations

import pytest

from samebits.commands.environment_here import _code, _wanted
from samebits.records.events import RunInfo
from samebits.records.kinds import Level


@pytest.mark.parametrize(
    ("command", "main"),
    [
        (("-m", "pkg.train"), "train.py"),
        (("-m", "pkg"), "__main__.py"),
        (("pkg/train.py", "-m"), "train.py"),
    ],
)
def test_the_code_of_a_run_is_found_by_the_names_in_its_record(tmp_path, monkeypatch, command, main):
    """A module that `python -m` runs is recorded under the name of its file, others under their own."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "pkg"
    package.mkdir()
    for name in ("__init__", "__main__", "train", "util"):
        (package / f"{name}.py").write_text(f"name = {name!r}\n")
    names = {main: package / main, "pkg": package / "__init__.py", "pkg.util": package / "util.py"}
    facts = {"code": {name: {} for name in names}, "data": {"files": {"gone.bin": {}, "folder/": {}}}}
    info = RunInfo(command=command, level=Level.STEP, status="finished", environment=facts)

    wanted = _wanted(info)
    found = _code(wanted, str(tmp_path))

    assert wanted["data"] == ["gone.bin"]
    assert {name: row["size"] for name, row in found.items()} == {
        name: path.stat().st_size for name, path in names.items()
    }

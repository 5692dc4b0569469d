"""The JSON object has the documented schema, all of it and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from finding_support import changed
from report_builders import different, finding, identical

from samebits._runtime.frames import Site
from samebits.comparison.replayed import replayed
from samebits.comparison.results import LineChange, Remedy, RemedyTrial, Source
from samebits.diagnosis.patches.edits import Patch, PatchedFile, SourceFile
from samebits.recording.distance import Difference
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated
from samebits.report import json as json_report
from samebits.verification.results import Fix

SITE = {"file": str, "line": int, "function": str}
DIFFERENCE = {
    "elements": int,
    "total": int,
    "compared": int,
    "max_ulp": (int, None),
    "max_abs": (float, None),
}
CHANGE = {"file": str, "line": int, "before": [str], "after": [str]}
TRIAL = {"of": str, "identical": bool, "pairs": int, "pins": [str], "steps": (int, None)}
REMEDY = {
    "text": str, "confirmed": (bool, None), "pairs": int, "controls": [str], "before": (str, None),
    "after": (str, None), "changes": [CHANGE], "trial": (TRIAL, None),
}  # fmt: skip
SOURCE = {"op": str, "site": (SITE, None), "cause": str}
FIX = {
    "diff": (str, None), "diff_file": (str, None), "changes": [str], "confirmed": (bool, None), "pairs": int,
    "still": (str, None), "refusals": [str], "applied": bool,
}  # fmt: skip
FINDING = {
    "kind": str,
    "step": (int, None),
    "op": (str, None),
    "module": (str, None),
    "site": (SITE, None),
    "other_site": (SITE, None),
    "forward_site": (SITE, None),
    "inputs_equal": (bool, None),
    "difference": (DIFFERENCE, None),
    "cause": str,
    "evidence": [str],
    "confirmed_by": str,
    "entered_site": (SITE, None),
    "sources": [SOURCE],
    "remedy": (REMEDY, None),
}
SKIPPED = {"reason": str, "op": str, "calls": int}
REPLAY = {"times": int, "calls": int, "ops": int, "steps": int, "unrepeated": int, "skipped": [SKIPPED]}
SCHEMA = {
    "schema": int,
    "verdict": str,
    "state": str,
    "steps": int,
    "reason": (str, None),
    "child": (str, None),
    "findings": [FINDING],
    "reported": [FINDING],
    "notes": [str],
    "internal_error": (str, None),
    "final_digest": [str],
    "replay": (REPLAY, None),
}


def complaints(value, schema, path: str = "$") -> list[str]:
    """Where a value is not as the schema says."""
    if isinstance(schema, tuple):
        return [] if value is None else complaints(value, schema[0], path)
    if isinstance(schema, dict):
        if not isinstance(value, dict) or list(value) != list(schema):
            return [f"{path}: {value!r}"]
        return [line for key in schema for line in complaints(value[key], schema[key], f"{path}.{key}")]
    if isinstance(schema, list):
        return [line for i, item in enumerate(value) for line in complaints(item, schema[0], f"{path}[{i}]")]
    return [] if type(value) is schema else [f"{path}: {value!r} is no {schema.__name__}"]


def test_schema_of_a_difference():
    """Every field, with values and with null."""
    full = finding(forward_site=Site("/code/model.py", 30, "forward"))
    bare = finding(
        step=None,
        op=None,
        module=None,
        site=None,
        inputs_equal=None,
        difference=None,
        remedy=None,
        evidence=(),
    )

    decoded = json.loads(json_report.render(different(full, bare).comparison))

    assert complaints(decoded, SCHEMA) == []
    assert (decoded["schema"], decoded["verdict"], len(decoded["findings"])) == (1, "different", 2)
    assert decoded["findings"][0]["difference"] == {
        "elements": 24,
        "total": 24,
        "compared": 24,
        "max_ulp": 1074266112,
        "max_abs": 2.513,
    }


def test_schema_of_the_other_verdicts():
    """Identical, and an error."""
    for text in (json_report.render(identical().comparison), json_report.render_error("no such file")):
        assert complaints(json.loads(text), SCHEMA) == []


def test_the_schema_check_can_fail():
    """A missing key and a wrong type are noticed."""
    decoded = json.loads(json_report.render(identical().comparison))

    assert complaints({**decoded, "steps": "5"}, SCHEMA) == ["$.steps: '5' is no int"]
    assert complaints({"schema": 1}, SCHEMA) != []


def test_infinite_differences_are_valid_json():
    """JSON has no infinity: null."""
    endless = changed(finding(), difference=Difference(1, 2, None, math.inf))

    text = json_report.render(different(endless).comparison)

    assert json.loads(text, parse_constant=lambda name: 1 / 0)["findings"][0]["difference"]["max_abs"] is None


def test_operations_that_do_not_repeat_are_findings_of_their_own_kind():
    """After the origins; the counts are an object beside them."""
    found = Unrepeated("aten::index_add_.default", "", None, None, 1, 4, 12, 3)
    summary = ReplaySummary(3, 20, 5, 2, (found,), (Skipped(SkipReason.VIEW, "aten::t.default", 9),))
    comparison = replace(different(finding()).comparison, replayed=replayed(summary))
    decoded = json.loads(json_report.render(comparison))

    assert complaints(decoded, SCHEMA) == []
    assert [item["kind"] for item in decoded["findings"]] == ["op", "replay"]
    assert decoded["replay"]["unrepeated"] == 1
    assert decoded["replay"]["skipped"] == [{"reason": "view", "op": "aten::t.default", "calls": 9}]


def test_sources_and_a_remedy_that_was_tried():
    """What main lines of evidence say is there as values too."""
    source = Source("time.time", Site("/code/train.py", 4, "f"), "wall-clock")
    changes = (LineChange("/code/train.py", 4, ("x = time.time()",), ("x = 0.0",)),)
    trial = RemedyTrial("change", identical=True, pairs=1)
    remedy = Remedy("a number", ("clock",), "x = time.time()", "x = 0.0", changes, trial)
    found = finding(sources=(source, replace(source, site=None)), remedy=remedy)

    decoded = json.loads(json_report.render(different(found).comparison))

    assert complaints(decoded, SCHEMA) == []
    assert decoded["findings"][0]["sources"][0]["op"] == "time.time"
    shown = decoded["findings"][0]["remedy"]
    assert (shown["after"], shown["confirmed"], shown["pairs"]) == ("x = 0.0", True, 1)
    assert shown["changes"][0]["after"] == ["x = 0.0"]


def test_a_remedy_of_which_only_interventions_were_run_is_not_confirmed():
    """What was pinned is told beside it."""
    trial = RemedyTrial("pins", identical=True, pairs=2, interventions=("seed-torch", "seed-numpy"))
    found = finding(remedy=Remedy("seed it", ("seed-torch",), trial=trial))

    shown = json.loads(json_report.render(different(found).comparison))["findings"][0]["remedy"]

    assert (shown["confirmed"], shown["pairs"]) == (None, 0)
    assert shown["trial"]["of"] == "pins"
    assert shown["trial"]["pins"] == ["seed-torch", "seed-numpy"]


def test_schema_of_a_fix():
    """With a patch and without one; the key is there only where one was asked for."""
    file = PatchedFile(SourceFile("/code/a.py", b"x = 1\n"), SourceFile("/code/a.py", b"x = 2\n"))
    fixes = [Fix(Patch((file,), ("why",)), "/code", 3, confirmed=True), Fix(None, "/code", refusals=("why",))]

    for fix in fixes:
        decoded = json.loads(json_report.render(different(finding()).comparison, fix))
        assert complaints(decoded, {**SCHEMA, "fix": FIX}) == []
    assert "fix" not in json.loads(json_report.render(identical().comparison))

"""The comparison of two programs, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from samebits.report.json import site_json
from samebits.report.programs import reason, remarks

if TYPE_CHECKING:
    from samebits.comparison.programs.outcome import Distance, Name, Place, ProgramComparison, Row

SCHEMA = 1
_MOST_JSON_ROWS = 1000


def render_json(result: ProgramComparison, align: str) -> str:
    """Return the report as one JSON object.

    Args:
        result: of the comparison.
        align: `names` or `shapes`.
    """
    tolerance = result.tolerance
    return json.dumps(
        {
            "schema": SCHEMA,
            "align": align,
            "verdict": result.verdict,
            "reason": None if result.why is None else reason(result),
            "tolerance": None
            if tolerance is None
            else {"max_ulp": tolerance.ulp, "relative": tolerance.relative},
            "names": result.names,
            "tensors": result.tensors,
            "equal_before": result.before,
            "first": _row_json(result.rows[0]) if result.rows else None,
            "differing": [_row_json(each) for each in result.rows[:_MOST_JSON_ROWS]],
            "n_differing": len(result.rows),
            "within_tolerance": [_row_json(each) for each in result.accepted[:_MOST_JSON_ROWS]],
            "same_values": [_row_json(each) for each in result.same_values[:_MOST_JSON_ROWS]],
            "only_in": [list(map(_name_json, names)) for names in (result.only_first, result.only_second)],
            "other_calls": [
                {**_name_json(each.name), "calls": [each.first, each.second]} for each in result.other_calls
            ],
            "order": None if result.order is None else list(map(_name_json, result.order)),
            "matched": [
                {"names": [_name_json(each.first), _name_json(each.second)], "by": each.how.value}
                for each in result.matched
            ],
            "prefixes": list(result.prefixes),
            "grows_most_at": None if result.jump is None else _name_json(result.rows[result.jump].first.name),
            "notes": remarks(result),
        },
        indent=2,
    )


def _name_json(name: Name) -> dict[str, str]:
    return {"source": name.source.value, "name": name.name}


def _place_json(place: Place) -> dict[str, Any]:
    return {
        **_name_json(place.name),
        "call": place.call,
        "step": place.step,
        "dtype": place.info.dtype,
        "shape": list(place.info.shape),
        "site": site_json(place.site),
    }


def _row_json(each: Row) -> dict[str, Any]:
    return {
        "a": _place_json(each.first),
        "b": _place_json(each.second),
        "difference": _distance_json(each.distance),
        "calls": each.calls,
        "differing_calls": each.differing,
        "last_difference": None if each.last is None else _distance_json(each.last),
    }


def _distance_json(distance: Distance) -> dict[str, Any]:
    part = distance.part
    return {
        "relation": distance.relation.value,
        "elements": distance.differing,
        "compared": distance.compared,
        "total": distance.total,
        "max_ulp": distance.max_ulp,
        "ulp_dtype": distance.ulp_dtype or None,
        "max_abs": distance.max_abs,
        "relative": distance.relative,
        "first_index": None if distance.first_index is None else list(distance.first_index),
        "values": None if distance.values is None else list(distance.values),
        "permutation": list(distance.permutation) or None,
        "part": None if part is None else part._asdict(),
    }

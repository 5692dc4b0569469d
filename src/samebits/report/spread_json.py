"""The results of several seeds as one JSON object: the schema of docs/reference/spread.md."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

from samebits.report.spread_sentences import contrast_sentence, failure_sentence, remark_sentences

if TYPE_CHECKING:
    from samebits.commands.spread.summary import Contrast, Failure, Measured, Spread

SCHEMA = 1


def render(spread: Spread) -> str:
    """Return the object."""
    fields = {
        "schema": SCHEMA,
        "metric": dataclasses.asdict(spread.metric),
        "metrics": [dataclasses.asdict(metric) for metric in spread.metrics],
        "last": spread.last,
        "configurations": [_configuration(measured) for measured in spread.measured],
        "contrast": None if spread.contrast is None else _contrast(spread.contrast),
        "notes": remark_sentences(spread),
        "plots": list(spread.plots),
        "reason": None,
    }
    return json.dumps(_plain(fields), indent=2, allow_nan=False)


def render_error(message: str) -> str:
    """Return the object for a spread that could not be made."""
    return json.dumps({"schema": SCHEMA, "configurations": [], "contrast": None, "reason": message}, indent=2)


def _configuration(measured: Measured) -> dict[str, Any]:
    configuration = measured.configuration
    runs = [
        {
            "seed": run.seed,
            "final": measured.finals[run.seed],
            "x": list(curve.x),
            "values": list(curve.values),
            "seconds": run.seconds,
            "state": run.state,
            "reused": run.seed in configuration.reused,
        }
        for run, curve in zip(configuration.runs, measured.curves, strict=True)
    ]
    estimate = measured.estimate
    return {
        "command": list(configuration.command),
        "folder": configuration.folder,
        "threads": configuration.threads,
        "estimate": None if estimate is None else dataclasses.asdict(estimate),
        "same_bits": measured.same_bits,
        "runs": runs,
        "failures": [_failure(failure) for failure in configuration.failures],
        "not_run": list(configuration.not_run),
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {**dataclasses.asdict(contrast), "reason": contrast_sentence(contrast)}


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "seed": failure.seed,
        "status": failure.status,
        "reason": failure_sentence(failure),
        "log": failure.log,
        "steps": failure.steps,
    }


def _plain(value: Any) -> Any:
    """Turn NaN and infinities into text: JSON has none."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

"""Findings for tests, made from what is told of them without saying which part it belongs to."""

from __future__ import annotations

import dataclasses

from samebits.comparison.results import Diagnosis, Finding, Origin

_ORIGIN = {
    "kind": "op", "step": 0, "op": None, "module": None, "site": None, "forward_site": None,
    "inputs_equal": None,
}  # fmt: skip
_OF_DIAGNOSIS = {field.name for field in dataclasses.fields(Diagnosis)}


def finding(**fields) -> Finding:
    """A finding with these fields of its origin and of its diagnosis, and with that remedy."""
    return changed(Finding(Origin(**_ORIGIN)), **fields)


def changed(known: Finding, **fields) -> Finding:
    """The same finding with other fields."""
    remedy = fields.pop("remedy", known.remedy)
    diagnosis = {name: fields.pop(name) for name in _OF_DIAGNOSIS & fields.keys()}
    return Finding(
        dataclasses.replace(known.origin, **fields), dataclasses.replace(known.diagnosis, **diagnosis), remedy
    )

"""Seeds for the generators that libraries make for the user, given where the user calls the library."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.rule import Refusal, Spot, keyword_of, literal_value
from samebits.diagnosis.patches.seeds import fresh_number
from samebits.recording.library_calls import LibraryCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.comparison.results import Finding, Source
    from samebits.diagnosis.patches.edits import Change
    from samebits.diagnosis.patches.region import Sources
    from samebits.diagnosis.patches.syntax import Syntax
MADE = ("random.Random", "numpy.random.SeedSequence")
"""Draws with which a generator of its own is made, which a seed for the global one does not reach."""
# Package -> what of it takes the seed, where the function that draws does not.
_SEEDED_BY = {
    "albumentations": LibraryCall("albumentations.Compose", "seed"),
    "optuna": LibraryCall("optuna.create_study", "sampler"),
}
# Parameter -> what of the library, made with a seed, is given to it.
SEEDED_OBJECTS = {"sampler": "optuna.samplers.TPESampler"}
_GENERATOR = "rng"  # a parameter that takes a generator, or a number where the library is a recent one


def asked_of(finding: Finding) -> Source | None:
    """The first source of the finding's cause that a library drew from for the user's line."""
    own = (source for source in finding.origin.sources if source.cause == finding.cause)
    source = next((source for source in own if source.library is not None), None)
    if source is None or source.library is None or source.library.parameter:
        return source
    return replace(source, library=_SEEDED_BY.get(source.library.package, source.library))


def calls_of(sources: Sources, source: Source) -> list[tuple[Syntax, ast.Call]]:
    """Where the user calls what a library drew for: on the line that drew, else in any file.

    The object may have been made elsewhere than where it draws.
    """
    call, site = source.library, source.site
    if call is None or site is None:
        return []
    there = sources.syntax(site.file)
    found = [(there, node) for node in there.calls({site.line}) if _is_of(node, call)] if there else []
    calls = ((s, node) for s in sources.all() for node in s.nodes if isinstance(node, ast.Call))
    return found or [(s, node) for s, node in calls if _is_of(node, call)]


def seeded_calls(sources: Sources, finding: Finding, seed: int) -> Iterator[tuple[str, Change | Refusal]]:
    """The changes that give such calls a seed, with the file of each.

    Args:
        sources: the user's files.
        finding: an origin.
        seed: the number to seed with.
    """
    source = asked_of(finding)
    if source is None or source.library is None or not source.op.startswith(MADE):
        return
    for syntax, node in calls_of(sources, source) if source.library.parameter else ():
        spot = Spot(syntax, frozenset({node.lineno}), finding.cause, seed)
        change = _seeded(spot, node, source.library)
        if change is not None:
            yield syntax.file.path, change


def _is_of(node: ast.Call, call: LibraryCall) -> bool:
    """Whether it calls something of that name."""
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == call.name


def _seeded(spot: Spot, node: ast.Call, call: LibraryCall) -> Change | Refusal | None:
    given = keyword_of(node, call.parameter)
    if given is not None and literal_value(given.value) is not None:
        return None
    name = spot.syntax.source(node.func)
    if call.parameter == _GENERATOR and spot.syntax.repeats(node):
        return Refusal(f"`{name}` is called again and again: make one generator and hand it on", node.lineno)
    number, needs = fresh_number(spot, node, "random" if spot.cause == "unseeded-python" else "numpy")
    if call.parameter == _GENERATOR:
        module = spot.syntax.local_name("numpy") or "numpy"
        number, needs = f"{module}.random.default_rng({spot.seed})", ("import:numpy",)
    if call.parameter in SEEDED_OBJECTS:
        module, _, made = SEEDED_OBJECTS[call.parameter].partition(".")
        local = spot.syntax.local_name(module)
        if given is not None or not local:
            return Refusal(f"give `{made.rpartition('.')[2]}` of `{name}` a seed", node.lineno)
        number, needs = f"{local}.{made}(seed={spot.seed})", ()
    why = f"a seed for {name}()"
    if given is not None:
        return spot.replace(given.value, number, why, *needs)
    return spot.argument(node, f"{call.parameter}={number}", why, *needs)

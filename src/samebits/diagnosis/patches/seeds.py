"""Rules for seeds that are missing or differ in each run, also in generators made by libraries."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.causes import Cause, PatchRule
from samebits.diagnosis.patches.code_region import CodeRegion, Refusal, keyword_of, literal_value
from samebits.diagnosis.patches.edits import Change, Need, NeedKind
from samebits.recording.sites import LibraryCall
from samebits.rng.sources import LIBRARIES, NUMPY, PYTHON
from samebits.rng.sources.numpy_global import MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.comparison.results import Finding, Source
    from samebits.diagnosis.patches.code_region import ProjectSyntax, Rule
    from samebits.diagnosis.patches.syntax import Syntax

_GENERATORS = {name for library in LIBRARIES for name in library.generators}
SEEDERS = {name: library.imported for library in LIBRARIES for name in library.seeders}
"""Function that seeds a global generator -> the module that is imported for it."""
# Module that is drawn from -> import that seeds it. Without torch: its ops draw too, and no call shows it.
_DRAWN_FROM = {library.draws.removesuffix("."): library.imported for library in (PYTHON, NUMPY)}
_SEEDING = {
    *SEEDERS, *_GENERATORS, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.mps.manual_seed",
    "lightning.seed_everything", "pytorch_lightning.seed_everything", "transformers.set_seed",
    "accelerate.utils.set_seed",
}  # fmt: skip
_SEEDING_METHODS = ("manual_seed", "seed")
# These give another value in each run, and so does a seed made of one.
CHANGING = (
    "time.", "datetime.", "os.urandom", "os.getpid", "os.getppid", "uuid.", "secrets.", "socket.",
    "builtins.id", "builtins.hash", "numpy.random.SeedSequence", "os.getloadavg", "os.times", "psutil.",
    "random.SystemRandom",
)  # fmt: skip
_PURE = (
    "builtins.", "time.", "datetime.", "os.", "uuid.", "secrets.", "sys.", "math.", "hashlib.", "socket.",
)  # fmt: skip
_NOT_DRAWS = (
    *MAKERS, "Random", "SystemRandom", "seed", "Generator", "get_state", "set_state", "getstate", "setstate",
)  # fmt: skip
MADE = tuple(draw for library in LIBRARIES for draw in library.own)
"""Draws that make a separate generator, which a seed for the global one does not reach."""
# Package -> the call that takes the seed, where the function that draws takes none.
_SEEDED_BY = {
    "albumentations": LibraryCall("albumentations.Compose", "seed"),
    "optuna": LibraryCall("optuna.create_study", "sampler"),
}
# Parameter -> the class of the library whose object, made with a seed, is passed for it.
SEEDED_OBJECTS = {"sampler": "optuna.samplers.TPESampler"}
_GENERATOR = "rng"  # a parameter for a generator; recent versions of libraries also take a number


def missing_argument(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Seed `default_rng()`, `RandomState(None)` and `Random()`, which are made without a seed."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        if name not in _GENERATORS or any(isinstance(arg, ast.Starred) for arg in call.args):
            continue
        given = _seed_of(call)
        if given is None or literal_value(given) is None:
            text, needs = fresh_number(region, call, "random" if name == "random.Random" else "numpy")
            why = f"pass a seed to {name.rpartition('.')[2]}()"
            yield (
                region.replace(given, text, why, *needs)
                if given
                else region.argument(call, text, why, *needs)
            )
        elif isinstance(given, ast.Name):
            yield from default_of_parameter(region, given)


def _seed_of(call: ast.Call) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg in ("seed", "x", "entropy")), None)
    return call.args[0] if call.args else named


def fresh_number(region: CodeRegion, call: ast.Call, library: str) -> tuple[str, tuple[Need, ...]]:
    """Return a seed and its needs: a constant, or a draw from a seeded generator if the line may run often.

    Args:
        region: the region of the call.
        call: the call that gets the seed.
        library: the library whose global generator is drawn from, `random` or `numpy`.
    """
    if not region.syntax.repeats(call):
        return str(region.seed), ()
    draw = "getrandbits(32)" if library == "random" else "random.randint(2**31)"
    needs = Need(NeedKind.IMPORT, library), Need(NeedKind.SEED, library)
    return f"{region.module(library)}.{draw}", needs


def default_of_parameter(region: CodeRegion, name: ast.Name) -> Iterator[Change]:
    """Replace `seed=None` in the parameters of the surrounding function by a number."""
    function = region.syntax.function(name)
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(plain, defaults, strict=True)]
    pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for parameter, default in pairs:
        if parameter.arg == name.id and default is not None and literal_value(default) is None:
            yield region.replace(
                default, str(region.seed), f"make the default of the parameter {name.id} a number"
            )


def fresh_seed(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Give `random.seed()`, `torch.seed()` and `generator.seed()` a number: they ask for a new seed."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        given = call.args[0] if call.args else None
        if name in ("random.seed", "numpy.random.seed"):
            if given is None and not call.keywords:
                yield region.argument(call, str(region.seed), f"pass a number to {name}()")
            elif given is not None and literal_value(given) is None:
                yield region.replace(given, str(region.seed), f"pass a number to {name}()")
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "seed" and not call.args:
            is_torch = name in ("torch.seed", "torch.random.seed")
            if is_torch or _is_generator(region, call.func.value):
                yield _numbered(region, call, call.func)


def _numbered(region: CodeRegion, call: ast.Call, function: ast.Attribute) -> Change:
    """Use `x.manual_seed(0)`, or one more than the last seed if the line may run often.

    `seed` returns the number but `manual_seed` the generator, so `.initial_seed()` follows if it is used.
    """
    owner = region.syntax.source(function.value)
    repeats = region.syntax.repeats(call)
    number = f"{owner}.initial_seed() + 1" if repeats else str(region.seed)
    used = not isinstance(region.syntax.parent(call), ast.Expr)
    text = f"{owner}.manual_seed({number})" + (".initial_seed()" if used else "")
    is_global = region.syntax.name(function.value) in ("torch", "torch.random")
    needs = (Need(NeedKind.SEED, "torch"),) if repeats and is_global else ()  # the first of these numbers
    return region.replace(call, text, f"replace {owner}.seed(), which is random, by `manual_seed`", *needs)


def _is_generator(region: CodeRegion, node: ast.expr) -> bool:
    """Tell whether the file assigns a `torch.Generator` to that name or attribute."""
    text = region.syntax.source(node)
    made = (
        other.targets
        for other in region.syntax.nodes
        if isinstance(other, ast.Assign) and "Generator(" in region.syntax.source(other.value)
    )
    given = {region.syntax.source(target) for targets in made for target in targets}
    return text in given or "generator" in text.lower()


def changing_seed(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace a seed made of the time, a process number or the system's entropy."""
    for call in region.calls():
        if not is_changing(region, call):
            continue
        whole = _seed_expression(region, call)
        if whole is None:
            continue
        if _is_constant_otherwise(region, whole):
            yield region.replace(whole, str(region.seed), "replace the changing seed by a number")
        else:
            part = _whole_chain(region, call)
            yield region.replace(part, str(region.seed), "replace the changing part of the seed by a number")


def _whole_chain(region: CodeRegion, call: ast.Call) -> ast.expr:
    """Return the whole expression around a call: `uuid4().int`, `SystemRandom().randrange(9)`."""
    node: ast.expr = call
    above = region.syntax.parent(node)
    while (isinstance(above, ast.Attribute) and above.value is node) or (
        isinstance(above, ast.Call) and above.func is node
    ):
        node, above = above, region.syntax.parent(above)
    return node


def any_seed(region: CodeRegion) -> Iterator[Change]:
    """Replace a seed that differed in each run, wherever it came from."""
    for call in region.calls():
        given = call.args[0] if call.args else None
        if given is not None and seeds(region, call) and literal_value(given) is ...:
            yield region.replace(given, str(region.seed), "replace the changing seed by a number")


def is_changing(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a call returns another value in each run."""
    name = region.syntax.name(call.func)
    # `orders.hashes` makes the hash of a string constant.
    if name == "builtins.hash" and region.cause != Cause.ID_ORDER:
        return bool(call.args) and region.syntax.source(call.args[0]) == "self"
    return name.startswith(CHANGING)


def _seed_expression(region: CodeRegion, call: ast.Call) -> ast.expr | None:
    """Return the expression that becomes a seed: an argument of a seeding call, or a name's value in one."""
    node: ast.AST = call
    for above in region.syntax.ancestors(call):
        if isinstance(above, ast.Call) and node in above.args and seeds(region, above):
            return node if isinstance(node, ast.expr) else None
        if isinstance(above, ast.Assign | ast.AnnAssign) and node is above.value:
            targets = above.targets if isinstance(above, ast.Assign) else [above.target]
            return above.value if any(_becomes_seed(region, target) for target in targets) else None
        if isinstance(above, ast.Return):
            name = str(getattr(region.syntax.function(above), "name", ""))
            return above.value if "seed" in name.lower() else None
        if isinstance(above, ast.stmt):
            return None
        if isinstance(above, ast.keyword) and "seed" in (above.arg or "").lower():
            return above.value
        node = above
    return None


def seeds(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a call seeds a generator."""
    name = region.syntax.name(call.func)
    method = name.rpartition(".")[2]
    return name in _SEEDING or method in _SEEDING_METHODS or method.startswith(("seed_", "set_seed"))


def _becomes_seed(region: CodeRegion, target: ast.expr) -> bool:
    text = region.syntax.source(target)
    if "seed" in text.lower():
        return True
    calls = (node for node in region.syntax.nodes if isinstance(node, ast.Call) and seeds(region, node))
    return any(region.syntax.source(arg) == text for call in calls for arg in call.args)


def _is_constant_otherwise(region: CodeRegion, whole: ast.expr) -> bool:
    """Tell whether nothing in an expression distinguishes its uses, as the number of a worker would."""
    names = (node for node in ast.walk(whole) if isinstance(node, ast.Name))
    modules = {"self", *_modules(region)}
    return all(n.id in modules or region.syntax.name(n).startswith(_PURE) for n in names)


def _modules(region: CodeRegion) -> set[str]:
    return {name for name, full in region.syntax.imports.items() if f"{full}.".startswith(_PURE)}


def unseeded_draw(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Seed the global generator of a draw if the file never seeds it; tried if nothing else is known."""
    syntax = region.syntax
    calls = (node for node in syntax.nodes if isinstance(node, ast.Call) and node.args)
    seeded = {SEEDERS[name] for call in calls if (name := syntax.name(call.func)) in SEEDERS}
    for call in region.calls():
        module, _, function = syntax.name(call.func).rpartition(".")
        library = _DRAWN_FROM.get(module, "")
        if library and library not in seeded and function not in _NOT_DRAWS:
            yield Change((), f"seed {library}", 0, (Need(NeedKind.SEED, library),))


def option_without_default(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Give `add_argument("--seed", type=int)` a default: the option is None otherwise."""
    for call in region.calls():
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args):
            continue
        option = literal_value(call.args[0])
        if isinstance(option, str) and option.lstrip("-").replace("-", "_").endswith("seed"):
            default = keyword_of(call, "default")
            if default is None and keyword_of(call, "required") is None:
                yield region.argument(call, f"default={region.seed}", f"give {option} a default")
            elif default is not None and literal_value(default.value) is None:
                yield region.replace(default.value, str(region.seed), f"give {option} a default")


def seed_block(libraries: list[str], names: dict[str, str], number: int) -> list[str]:
    """Return the lines that seed some libraries.

    Args:
        libraries: of `random`, `numpy` and `torch`.
        names: the script's name for each; a library that it does not import is missing here.
        number: the seed.
    """
    calls = {library.imported: library.seed_call for library in LIBRARIES}
    lines = [f"import {library}" for library in libraries if library not in names]
    return lines + [calls[library].format(names.get(library, library), number) for library in libraries]


def library_source(finding: Finding) -> Source | None:
    """Return the first source of the finding's cause that a library drew from for the user's line."""
    own = (source for source in finding.origin.sources if source.cause == finding.cause)
    source = next((source for source in own if source.library is not None), None)
    if source is None or source.library is None or source.library.parameter:
        return source
    return replace(source, library=_SEEDED_BY.get(source.library.package, source.library))


def calls_of(sources: ProjectSyntax, source: Source) -> list[tuple[Syntax, ast.Call]]:
    """Return the user's calls of the library function that drew: on the drawing line, else in any file.

    The object may have been made on another line than the one that draws.
    """
    call, site = source.library, source.site
    if call is None or site is None:
        return []
    there = sources.syntax(site.file)
    on_line = [(there, node) for node in there.calls({site.line}) if _is_of(node, call)] if there else []
    calls = ((s, node) for s in sources.all() for node in s.nodes if isinstance(node, ast.Call))
    return on_line or [(s, node) for s, node in calls if _is_of(node, call)]


def seeded_calls(
    sources: ProjectSyntax, finding: Finding, seed: int
) -> Iterator[tuple[str, Change | Refusal]]:
    """Yield the changes that pass a seed to such calls, each with its file.

    Args:
        sources: the user's files.
        finding: an origin.
        seed: the number to seed with.
    """
    source = library_source(finding)
    if source is None or source.library is None or not source.op.startswith(MADE):
        return
    for syntax, node in calls_of(sources, source) if source.library.parameter else ():
        region = CodeRegion(syntax, frozenset({node.lineno}), finding.cause, seed)
        change = _seeded(region, node, source.library)
        if change is not None:
            yield syntax.file.path, change


def _is_of(node: ast.Call, call: LibraryCall) -> bool:
    """Tell whether a call has the name of a library's function."""
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == call.name


def _seeded(region: CodeRegion, node: ast.Call, call: LibraryCall) -> Change | Refusal | None:
    given = keyword_of(node, call.parameter)
    if given is not None and literal_value(given.value) is not None:
        return None
    name = region.syntax.source(node.func)
    if call.parameter == _GENERATOR and region.syntax.repeats(node):
        return Refusal(f"`{name}` is called repeatedly: make one generator and pass it on", node.lineno)
    library = "random" if region.cause == Cause.UNSEEDED_PYTHON else "numpy"
    number, needs = fresh_number(region, node, library)
    if call.parameter == _GENERATOR:
        number = f"{region.module('numpy')}.random.default_rng({region.seed})"
        needs = (Need(NeedKind.IMPORT, "numpy"),)
    if call.parameter in SEEDED_OBJECTS:
        module, _, made = SEEDED_OBJECTS[call.parameter].partition(".")
        local = region.syntax.local_name(module)
        if given is not None or not local:
            return Refusal(f"pass a seed to `{made.rpartition('.')[2]}` of `{name}`", node.lineno)
        number, needs = f"{local}.{made}(seed={region.seed})", ()
    why = f"pass a seed to {name}()"
    if given is not None:
        return region.replace(given.value, number, why, *needs)
    return region.argument(node, f"{call.parameter}={number}", why, *needs)


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.SEED_GENERATORS: missing_argument,
    PatchRule.SEED_WITH_NUMBER: fresh_seed,
    PatchRule.REPLACE_CHANGING_SEED: changing_seed,
    PatchRule.DEFAULT_OF_SEED_OPTION: option_without_default,
    PatchRule.SEED_LIBRARY_OF_DRAW: unseeded_draw,
    PatchRule.REPLACE_ANY_SEED: any_seed,
}

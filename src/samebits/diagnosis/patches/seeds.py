"""Seeds: those that are missing, and those that are another number in each run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change
from samebits.diagnosis.patches.rule import Refusal, Rule, causes, keyword_of, literal_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.diagnosis.patches.rule import Spot

_NUMPY = ("default_rng", "RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_GENERATORS = {f"numpy.random.{name}" for name in _NUMPY} | {"random.Random"}
SEEDERS = {
    "random.seed": "random",
    "numpy.random.seed": "numpy",
    "torch.manual_seed": "torch",
    "torch.random.manual_seed": "torch",
}
_SEEDING = {
    *SEEDERS, *_GENERATORS, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.mps.manual_seed",
    "lightning.seed_everything", "pytorch_lightning.seed_everything", "transformers.set_seed",
    "accelerate.utils.set_seed",
}  # fmt: skip
_SEEDING_METHODS = ("manual_seed", "seed")
# What gives another value in each run; a seed made of it is the same.
CHANGING = (
    "time.", "datetime.", "os.urandom", "os.getpid", "os.getppid", "uuid.", "secrets.", "socket.",
    "builtins.id", "builtins.hash", "numpy.random.SeedSequence", "os.getloadavg", "os.times", "psutil.",
    "random.SystemRandom",
)  # fmt: skip
_PURE = (
    "builtins.", "time.", "datetime.", "os.", "uuid.", "secrets.", "sys.", "math.", "hashlib.", "socket.",
)  # fmt: skip
_NOT_DRAWS = (
    *_NUMPY, "Random", "SystemRandom", "seed", "Generator", "get_state", "set_state", "getstate", "setstate",
)  # fmt: skip
OTHER_SEED = "other-seed"
"""Stands for the cause of a finding that a generator got other seeds, of which nothing more is known."""
_RNG_CAUSES = causes(
    "unseeded-torch unseeded-numpy unseeded-python os-entropy wall-clock environment worker-order"
)
_SEED_CAUSES = causes(
    "unseeded-torch unseeded-numpy unseeded-python os-entropy wall-clock environment worker-order id-order "
    "hash-order race thread-count"
)


def missing_argument(spot: Spot) -> Iterator[Change | Refusal]:
    """`default_rng()`, `RandomState(None)`, `Random()`: made without a seed."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if name not in _GENERATORS or any(isinstance(arg, ast.Starred) for arg in call.args):
            continue
        given = _seed_of(call)
        if given is None or literal_value(given) is None:
            text, needs = fresh_number(spot, call, "random" if name == "random.Random" else "numpy")
            why = f"a seed for {name.rpartition('.')[2]}()"
            yield spot.replace(given, text, why, *needs) if given else spot.argument(call, text, why, *needs)
        elif isinstance(given, ast.Name):
            yield from default_of_parameter(spot, given)


def _seed_of(call: ast.Call) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg in ("seed", "x", "entropy")), None)
    return call.args[0] if call.args else named


def fresh_number(spot: Spot, call: ast.Call, library: str) -> tuple[str, tuple[str, ...]]:
    """A seed, and what it needs: a constant, or where the line may run often a draw from what is seeded.

    Args:
        spot: where.
        call: what is given the seed.
        library: whose global generator is drawn from, `random` or `numpy`.
    """
    if not spot.syntax.repeats(call):
        return str(spot.seed), ()
    if library == "random":
        module = spot.syntax.local_name("random") or "random"
        return f"{module}.getrandbits(32)", ("import:random", "seed:random")
    module = spot.syntax.local_name("numpy") or "numpy"
    return f"{module}.random.randint(2**31)", ("import:numpy", "seed:numpy")


def default_of_parameter(spot: Spot, name: ast.Name) -> Iterator[Change]:
    """`seed=None` of the function around a place becomes a number."""
    function = spot.syntax.function(name)
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(plain, defaults, strict=True)]
    pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for parameter, default in pairs:
        if parameter.arg == name.id and default is not None and literal_value(default) is None:
            yield spot.replace(default, str(spot.seed), f"a number for the parameter {name.id}")


def fresh_seed(spot: Spot) -> Iterator[Change | Refusal]:
    """`random.seed()`, `torch.seed()`, `generator.seed()`: another seed in each run, asked for."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        given = call.args[0] if call.args else None
        if name in ("random.seed", "numpy.random.seed"):
            if given is None and not call.keywords:
                yield spot.argument(call, str(spot.seed), f"a number for {name}()")
            elif given is not None and literal_value(given) is None:
                yield spot.replace(given, str(spot.seed), f"a number for {name}()")
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "seed" and not call.args:
            is_torch = name in ("torch.seed", "torch.random.seed")
            if is_torch or _is_generator(spot, call.func.value):
                yield _numbered(spot, call, call.func)


def _numbered(spot: Spot, call: ast.Call, function: ast.Attribute) -> Change:
    """`x.manual_seed(0)`, or one more than the last seed where the line may run often.

    `seed` gives the number and `manual_seed` the generator: where the number is used, it is asked for it.
    """
    owner = spot.syntax.source(function.value)
    repeats = spot.syntax.repeats(call)
    number = f"{owner}.initial_seed() + 1" if repeats else str(spot.seed)
    used = not isinstance(spot.syntax.parent(call), ast.Expr)
    text = f"{owner}.manual_seed({number})" + (".initial_seed()" if used else "")
    is_global = spot.syntax.name(function.value) in ("torch", "torch.random")
    needs = ("seed:torch",) if repeats and is_global else ()  # the first of these numbers
    return spot.replace(call, text, f"`manual_seed` in place of {owner}.seed(), which is random", *needs)


def _is_generator(spot: Spot, node: ast.expr) -> bool:
    """Whether the file gives that name or attribute a `torch.Generator`."""
    text = spot.syntax.source(node)
    made = (
        other.targets
        for other in spot.syntax.nodes
        if isinstance(other, ast.Assign) and "Generator(" in spot.syntax.source(other.value)
    )
    given = {spot.syntax.source(target) for targets in made for target in targets}
    return text in given or "generator" in text.lower()


def changing_seed(spot: Spot) -> Iterator[Change | Refusal]:
    """A seed made of the time, a process number or the system's entropy."""
    for call in spot.calls():
        if not is_changing(spot, call):
            continue
        whole = _seed_expression(spot, call)
        if whole is None:
            continue
        if _only_of_this(spot, whole):
            yield spot.replace(whole, str(spot.seed), "a number in place of a seed that changes")
        else:
            part = _taken_of(spot, call)
            yield spot.replace(part, str(spot.seed), "a number in place of the part of the seed that changes")


def _taken_of(spot: Spot, call: ast.Call) -> ast.expr:
    """The value that is taken of what a call gives: `uuid4().int`, `SystemRandom().randrange(9)`."""
    node: ast.expr = call
    above = spot.syntax.parent(node)
    while (isinstance(above, ast.Attribute) and above.value is node) or (
        isinstance(above, ast.Call) and above.func is node
    ):
        node, above = above, spot.syntax.parent(above)
    return node


def any_seed(spot: Spot) -> Iterator[Change]:
    """The seed that was another one in each run, wherever it came from."""
    for call in spot.calls():
        given = call.args[0] if call.args else None
        if given is not None and seeds(spot, call) and literal_value(given) is ...:
            yield spot.replace(given, str(spot.seed), "a number in place of a seed that changes")


def is_changing(spot: Spot, call: ast.Call) -> bool:
    """Whether what a call gives is another value in each run."""
    name = spot.syntax.name(call.func)
    if name == "builtins.hash" and spot.cause != "id-order":  # of a string: `orders.hashes` keeps it one
        return bool(call.args) and spot.syntax.source(call.args[0]) == "self"
    return name.startswith(CHANGING)


def _seed_expression(spot: Spot, call: ast.Call) -> ast.expr | None:
    """The expression that becomes a seed: an argument of a seeding, or the value of a name used in one."""
    node: ast.AST = call
    for above in spot.syntax.ancestors(call):
        if isinstance(above, ast.Call) and node in above.args and seeds(spot, above):
            return node if isinstance(node, ast.expr) else None
        if isinstance(above, ast.Assign | ast.AnnAssign) and node is above.value:
            targets = above.targets if isinstance(above, ast.Assign) else [above.target]
            return above.value if any(_becomes_seed(spot, target) for target in targets) else None
        if isinstance(above, ast.Return):
            name = str(getattr(spot.syntax.function(above), "name", ""))
            return above.value if "seed" in name.lower() else None
        if isinstance(above, ast.stmt):
            return None
        if isinstance(above, ast.keyword) and "seed" in (above.arg or "").lower():
            return above.value
        node = above
    return None


def seeds(spot: Spot, call: ast.Call) -> bool:
    """Whether a call seeds a generator."""
    name = spot.syntax.name(call.func)
    method = name.rpartition(".")[2]
    return name in _SEEDING or method in _SEEDING_METHODS or method.startswith(("seed_", "set_seed"))


def _becomes_seed(spot: Spot, target: ast.expr) -> bool:
    text = spot.syntax.source(target)
    if "seed" in text.lower():
        return True
    found = (node for node in spot.syntax.nodes if isinstance(node, ast.Call) and seeds(spot, node))
    return any(spot.syntax.source(arg) == text for call in found for arg in call.args)


def _only_of_this(spot: Spot, whole: ast.expr) -> bool:
    """Whether an expression holds nothing that tells one use from another, such as a worker's number."""
    names = (node for node in ast.walk(whole) if isinstance(node, ast.Name))
    modules = {"self", *_modules(spot)}
    return all(n.id in modules or spot.syntax.name(n).startswith(_PURE) for n in names)


def _modules(spot: Spot) -> set[str]:
    return {name for name, full in spot.syntax.imports.items() if f"{full}.".startswith(_PURE)}


def unseeded_draw(spot: Spot) -> Iterator[Change | Refusal]:
    """A draw from a global generator that the file never seeds: what to seed, where nothing else is known."""
    syntax = spot.syntax
    calls = (node for node in syntax.nodes if isinstance(node, ast.Call) and node.args)
    seeded = {SEEDERS[name] for call in calls if (name := syntax.name(call.func)) in SEEDERS}
    for call in spot.calls():
        module, _, function = syntax.name(call.func).rpartition(".")
        library = {"random": "random", "numpy.random": "numpy"}.get(module, "")
        if library and library not in seeded and function not in _NOT_DRAWS:
            yield Change((), f"a seed for {library}", 0, (f"seed:{library}",))


def option_without_default(spot: Spot) -> Iterator[Change | Refusal]:
    """`add_argument("--seed", type=int)`: None unless it is given."""
    for call in spot.calls():
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args):
            continue
        option = literal_value(call.args[0])
        if isinstance(option, str) and option.lstrip("-").replace("-", "_").endswith("seed"):
            default = keyword_of(call, "default")
            if default is None and keyword_of(call, "required") is None:
                yield spot.argument(call, f"default={spot.seed}", f"a default for {option}")
            elif default is not None and literal_value(default.value) is None:
                yield spot.replace(default.value, str(spot.seed), f"a default for {option}")


RULES = (
    *(Rule(_SEED_CAUSES, find) for find in (missing_argument, fresh_seed, changing_seed)),
    *(Rule(_RNG_CAUSES, find, anywhere=True) for find in (missing_argument, fresh_seed, changing_seed)),
    Rule(causes("unseeded-torch unseeded-numpy unseeded-python"), option_without_default),
    Rule(causes("unknown"), unseeded_draw),
    Rule(causes(OTHER_SEED), any_seed),
)


def seed_block(libraries: list[str], names: dict[str, str], number: int) -> list[str]:
    """The lines that seed some libraries.

    Args:
        libraries: of `random`, `numpy` and `torch`.
        names: how the script calls each; a library that it does not import is missing here.
        number: the seed.
    """
    calls = {"random": "{}.seed({})", "numpy": "{}.random.seed({})", "torch": "{}.manual_seed({})"}
    lines = [f"import {library}" for library in libraries if library not in names]
    return lines + [calls[library].format(names.get(library, library), number) for library in libraries]

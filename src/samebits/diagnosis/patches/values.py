"""Rules for values that differ in each run: from the system's entropy, the clock, the process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import PatchRule
from samebits.diagnosis.patches.code_region import Refusal
from samebits.diagnosis.patches.edits import Need, NeedKind
from samebits.diagnosis.patches.seeds import fresh_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule
    from samebits.diagnosis.patches.edits import Change

_NEEDS = (Need(NeedKind.IMPORT, "random"), Need(NeedKind.SEED, "random"))
# The same kind of value from Python's generator; {0} is the first argument.
_FROM_RANDOM = {
    "secrets.choice": "{random}.choice({0})",
    "secrets.randbelow": "{random}.randrange({0})",
    "secrets.randbits": "{random}.getrandbits({0})",
    "secrets.token_bytes": "{random}.randbytes({0})",
    "secrets.token_hex": "{random}.randbytes({0}).hex()",
    "os.urandom": "{random}.randbytes({0})",
    "uuid.uuid1": "{uuid}.UUID(int={random}.getrandbits(128), version=4)",
    "uuid.uuid4": "{uuid}.UUID(int={random}.getrandbits(128), version=4)",
}
_DEFAULT_BYTES = "32"  # of secrets.token_*
_TIMES = {
    "time.time": "0.0",
    "time.time_ns": "0",
    "datetime.datetime.now": "2000, 1, 1",
    "datetime.datetime.utcnow": "2000, 1, 1",
    "datetime.datetime.today": "2000, 1, 1",
    "datetime.date.today": "2000, 1, 1",
}
_DURATIONS = ("time.perf_counter", "time.monotonic", "time.process_time", "time.thread_time")
_PROCESS = {"os.getpid": "0", "os.getppid": "0", "socket.gethostname": '"host"', "platform.node": '"host"'}
_THROTTLING = "a duration decides here: choose a fixed number of steps or samples instead"


def entropy(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace the system's entropy by Python's generator, which is seeded."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        if name in ("random.SystemRandom", "secrets.SystemRandom") and not call.args:
            number, needs = fresh_number(region, call, "random")
            why = "replace the system's generator by one with a seed"
            text = f"{region.module('random')}.Random({number})"
            yield region.replace(call, text, why, Need(NeedKind.IMPORT, "random"), *needs)
        elif name in _FROM_RANDOM:
            yield _drawn(region, call, name)
        elif name.startswith("tempfile."):
            yield Refusal("the names of temporary files are random: sort by a name of your own", call.lineno)


def _drawn(region: CodeRegion, call: ast.Call, name: str) -> Change | Refusal:
    argument = region.syntax.source(call.args[0]) if call.args else _DEFAULT_BYTES
    module = name.partition(".")[0]
    local = region.syntax.local_name(module)
    if module == "uuid" and not local:
        return Refusal(f"`{name}` is imported by name: draw from the seeded `random` instead", call.lineno)
    text = _FROM_RANDOM[name].format(argument, random=region.module("random"), uuid=local)
    return region.replace(call, text, f"replace {name} by Python's generator, seeded", *_NEEDS)


def clock(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace a time of day that is used as data by a fixed time."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        if name in _DURATIONS or name.removesuffix("_ns") in _DURATIONS:
            yield Refusal(_THROTTLING, call.lineno)
        elif name in _TIMES and not _is_duration(region, call):
            text = _TIMES[name]
            if name.startswith("datetime."):
                owner = region.syntax.source(call.func).rpartition(".")[0]
                zone = "".join(f", tzinfo={region.syntax.source(a)}" for a in call.args)
                zone += "".join(f", tzinfo={region.syntax.source(k.value)}" for k in call.keywords)
                text = f"{owner}({text}{zone})"
            yield region.replace(call, text, "replace the clock by a fixed time")
        elif name in _TIMES:
            yield Refusal(_THROTTLING, call.lineno)


def is_measured(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a call reads the clock and the region subtracts or compares the time."""
    name = region.syntax.name(call.func)
    reads = name in _TIMES or name in _DURATIONS or name.removesuffix("_ns") in _DURATIONS
    return reads and _compared(region, call)


def _is_duration(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a time, or the name that holds it, is subtracted or compared."""
    if _compared(region, call):
        return True
    statement = region.syntax.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kinds = (ast.Name, ast.Attribute)
    names = {region.syntax.source(n) for t in targets for n in ast.walk(t) if isinstance(n, kinds)} - {"self"}
    uses = (node for node in region.syntax.nodes if isinstance(node, kinds))
    return any(region.syntax.source(node) in names and _compared(region, node) for node in uses)


def _compared(region: CodeRegion, node: ast.AST) -> bool:
    for above in region.syntax.ancestors(node):
        if isinstance(above, ast.Compare) or (isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub)):
            return True
        if isinstance(above, ast.AugAssign) and isinstance(above.op, ast.Sub):
            return True
        if isinstance(above, ast.stmt | ast.Call):
            return False
    return False


def process(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace a process number or machine name that is used as data by a constant."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        if name in _PROCESS and not _selects_process(region, call):
            yield region.replace(call, _PROCESS[name], f"replace {name}() by a constant")
        elif name.startswith(("psutil.", "resource.", "shutil.disk_usage", "os.getloadavg")):
            yield Refusal("this says how busy or large the machine is: use a number of your own", call.lineno)


def _selects_process(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a process number selects a process: `os.kill(os.getpid(), ...)`."""
    above = region.syntax.parent(call)
    asked = region.syntax.name(above.func) if isinstance(above, ast.Call) and call in above.args else ""
    return asked.startswith(("os.", "psutil.")) and not asked.startswith("os.path.")


def fastest(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace a choice by timing, `min(candidates, key=timed)`, by the first candidate."""
    for call in region.calls():
        key = next((k.value for k in call.keywords if k.arg == "key"), None)
        chooses = region.syntax.name(call.func) in ("builtins.min", "builtins.max")
        if not chooses or key is None or len(call.args) != 1 or not _timed(region, call, key):
            continue
        text = f"next(iter({region.syntax.source(call.args[0])}))"
        yield region.replace(call, text, "always take the first candidate, not the fastest")


def _timed(region: CodeRegion, call: ast.Call, key: ast.expr) -> bool:
    """Tell whether the function around a choice, or its key, reads the clock."""
    scopes: list[ast.AST] = [region.syntax.function(call) or region.syntax.tree]
    names = {node.id for node in ast.walk(key) if isinstance(node, ast.Name)}
    scopes += [n for n in region.syntax.nodes if isinstance(n, ast.FunctionDef) and n.name in names]
    calls = (node for scope in scopes for node in ast.walk(scope) if isinstance(node, ast.Call))
    return any(region.syntax.name(node.func).startswith(("time.", "timeit.")) for node in calls)


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.FIRST_CANDIDATE: fastest,
    PatchRule.SEEDED_ENTROPY: entropy,
    PatchRule.FIXED_TIME: clock,
    PatchRule.FIXED_PROCESS_FACTS: process,
}

"""Values that are others in each run: of the system's entropy, the clock, the process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.rule import Refusal, Rule, causes
from samebits.diagnosis.patches.seeds import fresh_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.diagnosis.patches.edits import Change
    from samebits.diagnosis.patches.rule import Spot

_NEEDS = ("import:random", "seed:random")
# What gives the same kind of value from Python's generator; {0} is the first argument.
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
_THROTTLING = "a duration decides here: a fixed number of steps or samples has to come from you"


def entropy(spot: Spot) -> Iterator[Change | Refusal]:
    """The system's entropy becomes Python's generator, which is seeded."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if name in ("random.SystemRandom", "secrets.SystemRandom") and not call.args:
            number, needs = fresh_number(spot, call, "random")
            module = spot.syntax.local_name("random") or "random"
            why = "a generator with a seed in place of the system's"
            yield spot.replace(call, f"{module}.Random({number})", why, "import:random", *needs)
        elif name in _FROM_RANDOM:
            yield _drawn(spot, call, name)
        elif name.startswith("tempfile."):
            yield Refusal("the names of temporary files are random: sort by a name of your own", call.lineno)


def _drawn(spot: Spot, call: ast.Call, name: str) -> Change | Refusal:
    argument = spot.syntax.source(call.args[0]) if call.args else _DEFAULT_BYTES
    random = spot.syntax.local_name("random") or "random"
    module = name.partition(".")[0]
    local = spot.syntax.local_name(module)
    if module == "uuid" and not local:
        return Refusal(f"`{name}` is imported by its name: draw from `random`, seeded, instead", call.lineno)
    text = _FROM_RANDOM[name].format(argument, random=random, uuid=local)
    return spot.replace(call, text, f"Python's generator, seeded, in place of {name}", *_NEEDS)


def clock(spot: Spot) -> Iterator[Change | Refusal]:
    """A time of day that is data becomes a fixed one."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if name in _DURATIONS or name.removesuffix("_ns") in _DURATIONS:
            yield Refusal(_THROTTLING, call.lineno)
        elif name in _TIMES and not _is_duration(spot, call):
            text = _TIMES[name]
            if name.startswith("datetime."):
                owner = spot.syntax.source(call.func).rpartition(".")[0]
                zone = "".join(f", tzinfo={spot.syntax.source(a)}" for a in call.args)
                zone += "".join(f", tzinfo={spot.syntax.source(k.value)}" for k in call.keywords)
                text = f"{owner}({text}{zone})"
            yield spot.replace(call, text, "a fixed time in place of the clock")
        elif name in _TIMES:
            yield Refusal(_THROTTLING, call.lineno)


def is_measured(spot: Spot, call: ast.Call) -> bool:
    """Whether it reads the clock and takes another time from it, or compares it with one, on the spot."""
    name = spot.syntax.name(call.func)
    reads = name in _TIMES or name in _DURATIONS or name.removesuffix("_ns") in _DURATIONS
    return reads and _compared(spot, call)


def _is_duration(spot: Spot, call: ast.Call) -> bool:
    """Whether a time, or the name that holds it, is subtracted or compared."""
    if _compared(spot, call):
        return True
    statement = spot.syntax.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    kinds = (ast.Name, ast.Attribute)
    names = {spot.syntax.source(n) for t in targets for n in ast.walk(t) if isinstance(n, kinds)} - {"self"}
    kept = (node for node in spot.syntax.nodes if isinstance(node, ast.Name | ast.Attribute))
    return any(spot.syntax.source(node) in names and _compared(spot, node) for node in kept)


def _compared(spot: Spot, node: ast.AST) -> bool:
    for above in spot.syntax.ancestors(node):
        if isinstance(above, ast.Compare) or (isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub)):
            return True
        if isinstance(above, ast.AugAssign) and isinstance(above.op, ast.Sub):
            return True
        if isinstance(above, ast.stmt | ast.Call):
            return False
    return False


def process(spot: Spot) -> Iterator[Change | Refusal]:
    """A process number or the name of the machine that is data becomes a constant."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if name in _PROCESS and not _tells_which(spot, call):
            yield spot.replace(call, _PROCESS[name], f"a constant in place of {name}()")
        elif name.startswith(("psutil.", "resource.", "shutil.disk_usage", "os.getloadavg")):
            yield Refusal("how busy or large the machine is: use a number of your own", call.lineno)


def _tells_which(spot: Spot, call: ast.Call) -> bool:
    """Whether it says of which process something is asked or done: `os.kill(os.getpid(), ...)`."""
    above = spot.syntax.parent(call)
    asked = spot.syntax.name(above.func) if isinstance(above, ast.Call) and call in above.args else ""
    return asked.startswith(("os.", "psutil.")) and not asked.startswith("os.path.")


def fastest(spot: Spot) -> Iterator[Change | Refusal]:
    """A choice by timing, `min(candidates, key=timed)`, becomes the first candidate."""
    for call in spot.calls():
        key = next((k.value for k in call.keywords if k.arg == "key"), None)
        chooses = spot.syntax.name(call.func) in ("builtins.min", "builtins.max")
        if not chooses or key is None or len(call.args) != 1 or not _timed(spot, call, key):
            continue
        text = f"next(iter({spot.syntax.source(call.args[0])}))"
        yield spot.replace(call, text, "the first candidate, always, in place of the one that was fastest")


def _timed(spot: Spot, call: ast.Call, key: ast.expr) -> bool:
    """Whether the function around a choice, or the one that is its key, asks the clock."""
    scopes: list[ast.AST] = [spot.syntax.function(call) or spot.syntax.tree]
    names = {node.id for node in ast.walk(key) if isinstance(node, ast.Name)}
    scopes += [n for n in spot.syntax.nodes if isinstance(n, ast.FunctionDef) and n.name in names]
    calls = (node for scope in scopes for node in ast.walk(scope) if isinstance(node, ast.Call))
    return any(spot.syntax.name(node.func).startswith(("time.", "timeit.")) for node in calls)


RULES = (
    Rule(causes("autotuning wall-clock thread-count"), fastest, anywhere=True),
    Rule(causes("os-entropy"), entropy),
    Rule(causes("wall-clock"), clock, on_sight=False),
    Rule(causes("environment worker-order"), process, on_sight=False),
)

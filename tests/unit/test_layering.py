"""The shape of the code: order of packages, no cycles, sizes, late imports, private torch names in one place.

A module that is imported by a string (`import_module`, `__import__`, `sys.modules`), or by code that a string
holds, counts as imported. Every rule is a function from sources to complaints; a second test gives it a
source that breaks it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = (
    "_text",
    "_torch",
    "_cuda",
    "errors",
    "environment",
    "_runtime",
    "digest",
    "records",
    "switches",
    "rng",
    "portable",
    "causes",
    "interventions",
    "deterministic_kernels",
    "dataloading",
    "determinism",
    "data",
    "checkpoint",
    "recording",
    "replay_guard",
    "comparison",
    "diagnosis",
    "executors",
    "verification",
    "commands",
    "report",
    "cli",
    "pytest_plugin",
    "integrations",
)
# Code that runs while the user's script does; but for what ends it, or shows how it ended.
IN_SCRIPTS = set(PACKAGES[PACKAGES.index("_runtime") : PACKAGES.index("comparison")]) - {"digest", "causes"}
AT_THE_END = {
    f"samebits.recording.{name}" for name in ("closing", "_guard", "_leaving", "run_signals", "runner")
} | {
    "samebits.checkpoint.sharded",  # passes it on when the other ranks know
    "samebits.checkpoint.folder",  # a thread, in which no handler runs
}
HEAVY = {"torch", "numpy"}
PRIVATE_TORCH_HOME = "_torch"
# Attributes of tensors and modules that are torch's own business; their owner cannot be seen in the syntax.
PRIVATE_ATTRIBUTES = {
    "_version",
    "_base",
    "_cdata",
    "_typed_storage",
    "_backward_hooks",
    "_forward_hooks",
} | {
    "_schema",
    "_overloadname",
    "_can_decompose",
}
# Imported before torch is, by whoever only asks for portable mode; the rest of that package comes with torch.
LIGHT = ("samebits", "samebits.cli.main", "samebits.portable.run", "samebits.portable.backends.library")
# Calls whose first argument is the name of a module, and those that give data to the child bootstrap. What is
# registered there is imported by another process, before the script: it keeps to the layers, and closes no
# cycle.
BY_NAME = {"import_module", "__import__", "find_spec", "sys.modules.get", "sys.modules.pop"}
REGISTERING = {"Payload", "python_code"}
# They bring the package itself under its name: into a process that does not have it, and back where a script
# has a module of that name.
BRING_ROOT = {"samebits._runtime.child_bootstrap", "samebits._runtime.imports"}
EXTENSIONS = {"_reader", "_portable"}  # written in C
# A function of this package that stands for an op has the parameters of its schema; its docstring begins so.
HANDLERS, HANDLER_DOCSTRING = "samebits.portable.ops.", "Compute `aten::"
# Parallel modules of one name: the steps of a command, the parts of one op of portable mode.
FAMILIES = ({"cli", "commands", "report"}, {"portable"})
MAX_SAME_NAMES = 2
MAX_FUNCTION_LINES, MAX_ARGUMENTS, MAX_MODULE_LINES = 60, 6, 450


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    is_package: bool
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """The first folder or module below `samebits`; empty for the package's own `__init__`."""
        return self.name.partition(".")[2].partition(".")[0]


Sources = dict[str, Module]
Rule = Callable[[Sources], list[str]]


def read_sources() -> Sources:
    """All modules of the package by name."""
    sources = {}
    for path in sorted((SOURCE / "samebits").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        sources[name] = Module(name, is_package, path.read_text(encoding="utf-8"))
    return sources


def make_sources(**texts: str) -> Sources:
    """Sources for the tests of the rules; `__` in a name stands for a dot below `samebits`."""
    names = {"samebits." + key.replace("__", "."): text for key, text in texts.items()}
    return {name: Module(name, is_package=False, text=text) for name, text in names.items()}


def top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (inner for orelse in node.orelse for inner in top_level(orelse))
            continue
        yield node
        yield from top_level(node)


def imported(module: Module, nodes: Iterable[ast.AST]) -> set[str]:
    """Names of modules, or of names in modules, that those nodes import."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.name.split(".")
                parts = parts[: len(parts) - node.level + module.is_package]
                base = ".".join([*parts, base] if base else parts)
            names |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return names


def targets(module: Module, nodes: Iterable[ast.AST], sources: Sources) -> set[str]:
    """Modules of the package that those nodes import, itself aside."""
    return {name for name in imported(module, nodes) if name in sources} - {module.name}


def named_by_string(node: ast.AST) -> list[str]:
    """The module that a call or a look into `sys.modules` names; none where it is not a constant."""
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        function = ast.unparse(node.func)
        if function in BY_NAME | REGISTERING or function.rpartition(".")[2] in BY_NAME:
            arguments = node.args[:1]
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
        arguments = [node.slice]
    return [
        each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def code_in(node: ast.AST) -> ast.Module | None:
    """The code that a string holds; None where it imports nothing, or is no code."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value):
        return None
    try:
        return ast.parse(node.value)
    except SyntaxError:
        return None


def registered(tree: ast.AST) -> set[int]:
    """Ids of the nodes that are data of the child bootstrap, given by themselves or by a name."""
    values = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in REGISTERING
    ]
    given = [inner for call in calls for inner in ast.walk(call)]
    given += [values[node.id] for node in given if isinstance(node, ast.Name) and node.id in values]
    return {id(inner) for node in given for inner in ast.walk(node)}


def string_imports(module: Module, *, with_registered: bool = True) -> set[str]:
    """Names that a module imports by strings, anywhere in it.

    Args:
        module: is looked at.
        with_registered: whether what is data of the child bootstrap counts.
    """
    tree = module.tree
    left_out = set() if with_registered else registered(tree)
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        names |= set(named_by_string(node))
        code = code_in(node)
        if code is not None:
            names |= imported(module, ast.walk(code))
            names |= {name for inner in ast.walk(code) for name in named_by_string(inner)}
    return names


def root_imports(sources: Sources) -> list[str]:
    """Nothing inside imports the package root: it offers the public names, which come from inside."""
    complaints = []
    for module in sources.values():
        if module.package == "" or module.name in BRING_ROOT:
            continue
        tree = module.tree
        nodes = [*ast.walk(tree)]
        nodes += [inner for node in nodes for code in [code_in(node)] if code for inner in ast.walk(code)]
        if any(takes_root(node, sources) for node in nodes):
            complaints.append(f"{module.name} imports the package root")
    return complaints


def takes_root(node: ast.AST, sources: Sources) -> bool:
    """Whether a node imports the package root, or a name from it that is no module."""
    if isinstance(node, ast.Import):
        return any(alias.name == "samebits" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names} - EXTENSIONS
        return node.module == "samebits" and any(f"samebits.{name}" not in sources for name in names)
    return "samebits" in named_by_string(node)


def upward_imports(sources: Sources) -> list[str]:
    """A package imports only packages before it in `PACKAGES`, also inside functions and for types."""
    complaints = []
    for module in sources.values():
        if module.package in {"", "__main__"}:
            continue
        if module.package not in PACKAGES:
            complaints.append(f"{module.name}: {module.package} is not a known package")
            continue
        by_string = {name for name in string_imports(module) if name in sources}
        for target in sorted(targets(module, ast.walk(module.tree), sources) | by_string):
            package = sources[target].package
            if package and package in PACKAGES and PACKAGES.index(package) > PACKAGES.index(module.package):
                complaints.append(f"{module.name} imports {target}, which is above it")
    return complaints


def import_cycles(sources: Sources) -> list[str]:
    """No module imports itself through others; package `__init__` files aside.

    An import statement within a function, which runs later, closes no cycle; what a string imports does, for
    a cycle is what such a string hides.
    """
    graph = {
        module.name: targets(module, top_level(module.tree), sources)
        | {name for name in string_imports(module, with_registered=False) if name in sources} - {module.name}
        for module in sources.values()
        if not module.is_package
    }
    complaints = []
    for start, first in graph.items():
        reached, waiting = set(), list(first)
        while waiting:
            name = waiting.pop()
            if name in graph and name not in reached:
                reached.add(name)
                waiting += graph[name]
        if start in reached:
            complaints.append(f"{start} imports itself through {sorted(reached - {start})}")
    return complaints


def heavy_imports(sources: Sources) -> list[str]:
    """What the import of a module of `LIGHT` runs imports neither torch nor numpy."""
    waiting, reached, complaints = list(LIGHT), set(), []
    while waiting:
        name = waiting.pop()
        if name in reached or name not in sources:
            continue
        reached.add(name)
        module = sources[name]
        nodes = list(top_level(module.tree))
        heavy = {found.partition(".")[0] for found in imported(module, nodes)} & HEAVY
        complaints += [f"{name} imports {package} at top level" for package in sorted(heavy)]
        for target in targets(module, nodes, sources):
            parts = target.split(".")
            waiting += [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return complaints


def torch_aliases(tree: ast.AST) -> set[str]:
    """Names that are bound to torch or to something of it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias for alias in node.names if alias.name.partition(".")[0] == "torch"]
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in found}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def is_private(name: str) -> bool:
    """Whether that name starts with an underscore and is no dunder."""
    return name.startswith("_") and not name.endswith("__")


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private names of torch that the source uses."""
    aliases = torch_aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            if node.attr in PRIVATE_ATTRIBUTES:
                yield node.attr
            paths = [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            paths = [node.value] if node.value.isascii() and " " not in node.value else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr", "setattr"}:
            owner, name = (ast.unparse(argument) for argument in node.args[:2])
            paths = [f"{owner}.{name[1:-1]}"]
        else:
            continue
        for path in paths:
            first, *rest = path.split(".")
            if first in aliases | {"torch"} and any(is_private(part) for part in rest):
                yield path


def misplaced_private_names(sources: Sources) -> list[str]:
    """Private names of torch are used in `samebits._torch` only."""
    return [
        f"{module.name} uses {name}"
        for module in sources.values()
        if module.package != PRIVATE_TORCH_HOME
        for name in sorted(set(private_names(module.tree)))
    ]


def stands_for_op(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether the parameters of a function are those of an op of torch, however many."""
    described = (ast.get_docstring(function) or "").startswith(HANDLER_DOCSTRING)
    return described and module.name.startswith(HANDLERS)


def oversized(sources: Sources) -> list[str]:
    """Modules, functions and argument lists stay small."""
    complaints = []
    for module in sources.values():
        length = len(module.text.splitlines())
        if length > MAX_MODULE_LINES:
            complaints.append(f"{module.name} has {length} lines")
        for node in ast.walk(module.tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                complaints.append(f"{module.name}.{node.name} has {length} lines")
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([a for a in arguments if a.arg not in {"self", "cls"}])
            if count > MAX_ARGUMENTS and not stands_for_op(module, node):
                complaints.append(f"{module.name}.{node.name} has {count} arguments")
    return complaints


def global_statements(sources: Sources) -> list[str]:
    """No `global`: nothing at module level changes."""
    return [
        f"{module.name}:{node.lineno} has a global statement"
        for module in sources.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Global)
    ]


def foreign_private_modules(sources: Sources) -> list[str]:
    """A module whose name begins with an underscore is imported by its own package only."""
    return [
        f"{module.name} imports {target}, which is private to its package"
        for module in sources.values()
        for target in sorted(targets(module, ast.walk(module.tree), sources))
        if is_private(target.rpartition(".")[2])
        and not f"{module.name}.".startswith(f"{target.rpartition('.')[0]}.")
    ]


def repeated_names(sources: Sources) -> list[str]:
    """No file has a name that two others have, too, apart from parallel modules of one family."""
    homes: dict[str, dict[str, str]] = {}
    for module in sources.values():
        if module.is_package:
            continue
        family = next((f"family {at}" for at, names in enumerate(FAMILIES) if module.package in names), "")
        stem = module.name.rpartition(".")[2].lstrip("_")
        homes.setdefault(stem, {})[family or module.name] = module.name
    return [
        f"{', '.join(sorted(names.values()))} have one name"
        for names in homes.values()
        if len(names) > MAX_SAME_NAMES
    ]


def swallowed_interruptions(sources: Sources) -> list[str]:
    """What runs within the user's script lets exceptions pass that come from outside: of a signal handler."""
    return [
        f"{module.name}:{node.lineno} ignores every exception, see `samebits._runtime.frames`"
        for module in sources.values()
        if module.package in IN_SCRIPTS and module.name not in AT_THE_END
        for node in ast.walk(module.tree)
        if _ignores_all(node)
    ]


def _ignores_all(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        caught = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
        raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        return caught and not raises and "pass_on(" not in ast.unparse(node)
    called = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress")
    return called and "Exception" in {ast.unparse(argument) for argument in node.args}


RULES: tuple[Rule, ...] = (
    foreign_private_modules,
    repeated_names,
    swallowed_interruptions,
    upward_imports,
    import_cycles,
    root_imports,
    heavy_imports,
    misplaced_private_names,
    oversized,
    global_statements,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_follows(rule):
    """The package itself breaks no rule."""
    assert rule(read_sources()) == []


def test_the_page_on_architecture_lists_the_packages_in_this_order():
    """`docs/architecture.md` is what a newcomer reads: it has each package once, lowest first."""
    page = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## The packages")[2]
    listed = [
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert tuple(listed) == PACKAGES


def test_the_page_on_architecture_names_what_exists():
    """Each file and folder that it names is there."""
    page = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = {name for name in re.findall(r"`([\w/]+(?:\.py|/[\w]+))`", page) if "NAME" not in name}
    names -= {"causes/network_order.py"}  # an example of one to come
    roots = (SOURCE / "samebits", SOURCE.parent)
    assert [name for name in sorted(names) if not any((root / name).exists() for root in roots)] == []
    assert len(names) > 30


def test_all_sources_are_read():
    """The rules are not green for want of anything to read."""
    names = set(read_sources())

    assert {"samebits", "samebits.errors", "samebits.records.events"} <= names


MANY_ARGUMENTS = "def add(a, b, c, d, e, f, g):\n    '''{}'''"
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60
SWALLOWING = "try:\n    f()\nexcept Exception{}:\n    {}"
BROKEN = [
    (foreign_private_modules, {"report__a": "from samebits.digest import _b", "digest___b": ""}),
    (foreign_private_modules, {"report__a": "def f():\n    import samebits.digest._b", "digest___b": ""}),
    (repeated_names, {"digest__a": "", "records___a": "", "report__a": ""}),
    (swallowed_interruptions, {"recording__a": SWALLOWING.format("", "g()")}),
    (swallowed_interruptions, {"determinism__a": SWALLOWING.format(" as error", "g(error)")}),
    (swallowed_interruptions, {"portable__a": "with contextlib.suppress(Exception):\n    f()"}),
    (upward_imports, {"digest__a": "import samebits.report.b", "report__b": ""}),
    (upward_imports, {"digest__a": "from ..report import b", "report__b": ""}),
    (upward_imports, {"digest__a": "def f():\n    from samebits.report.b import x", "report__b": "x = 1"}),
    (upward_imports, {"attic__a": ""}),
    (import_cycles, {"digest__a": "import samebits.digest.b", "digest__b": "from samebits.digest import a"}),
    (
        import_cycles,
        {"digest__a": "from .b import x", "digest__b": "from .c import x", "digest__c": "from .a import x"},
    ),
    (upward_imports, {"digest__a": "import_module('samebits.report.b')", "report__b": ""}),
    (upward_imports, {"digest__a": "f = __import__('samebits.report.b')", "report__b": ""}),
    (upward_imports, {"digest__a": "def f():\n    sys.modules['samebits.report.b']", "report__b": ""}),
    (upward_imports, {"digest__a": "sys.modules.get('samebits.report.b')", "report__b": ""}),
    (upward_imports, {"digest__a": "CODE = 'from samebits.report.b import x\\nx()'", "report__b": "x = 1"}),
    (upward_imports, {"digest__a": "f('''import_module('samebits.report.b')''')", "report__b": ""}),
    (upward_imports, {"digest__a": "Payload('samebits.report.b', 'f', {})", "report__b": ""}),
    (
        import_cycles,
        {"digest__a": "def f():\n    import_module('samebits.digest.b')", "digest__b": "from .a import x"},
    ),
    (
        import_cycles,
        {"digest__a": "CODE = 'import samebits.digest.b'", "digest__b": "from samebits.digest.a import x"},
    ),
    (root_imports, {"digest__a": "import samebits"}),
    (root_imports, {"digest__a": "def f():\n    from samebits import digest_of"}),
    (root_imports, {"digest__a": "import_module('samebits')"}),
    (root_imports, {"digest__a": "package = sys.modules['samebits']"}),
    (root_imports, {"digest__a": "CODE = 'import samebits\\nsamebits.digest()'"}),
    (heavy_imports, {"cli__main": "import torch"}),
    (
        heavy_imports,
        {"cli__main": "from samebits.digest.a import x", "digest__a": "from numpy import zeros as x"},
    ),
    (heavy_imports, {"cli__main": "if True:\n    import torch.nn"}),
    (heavy_imports, {"portable__run": "import torch"}),
    (
        heavy_imports,
        {"portable__run": "import samebits.portable.scan", "portable__scan": "import numpy"},
    ),
    (misplaced_private_names, {"digest__a": "import torch\ntorch._C._foo()"}),
    (misplaced_private_names, {"digest__a": "from torch.utils._python_dispatch import TorchDispatchMode"}),
    (misplaced_private_names, {"digest__a": "from torch import nn\nnn._x()"}),
    (misplaced_private_names, {"digest__a": "import torch\ngetattr(torch, '_C')"}),
    (misplaced_private_names, {"digest__a": "import importlib\nimportlib.import_module('torch._C')"}),
    (misplaced_private_names, {"digest__a": "def f(tensor):\n    return tensor._version"}),
    (misplaced_private_names, {"digest__a": "def f(op):\n    return op._schema.name"}),
    (oversized, {"digest__a": LONG_FUNCTION}),
    (oversized, {"digest__a": "def f(a, b, c, d, *, e, f, g): ..."}),
    (oversized, {"portable__ops__a": MANY_ARGUMENTS.format("Adds.")}),
    (oversized, {"portable__kernels__a": MANY_ARGUMENTS.format("Compute `aten::add`.")}),
    (oversized, {"digest__a": "x = 1\n" * 451}),
    (global_statements, {"digest__a": "def f():\n    global x\n    x = 1"}),
]


@pytest.mark.parametrize(("rule", "texts"), BROKEN)
def test_a_rule_can_fail(rule, texts):
    """Each rule names the offending module."""
    complaints = rule(make_sources(**texts))

    assert len(complaints) >= 1
    assert all(complaint.startswith("samebits.") for complaint in complaints)


ALLOWED = [
    {"digest__a": "from samebits.digest import _b", "digest___b": ""},
    {"digest__b": "", "cli__b": "", "report__b": "", "commands__spread__b": ""},
    {"report__a": "import samebits.digest.b", "digest__b": ""},
    {"digest__a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"},
    {"digest__a": "def f():\n    import torch\n    return torch.zeros(1)"},
    {"_torch__a": "import torch\ntorch._C._foo()"},
    {"digest__a": "import torch\ntorch.Tensor.__torch_dispatch__\n_private = 1\nself._private"},
    {"digest__a": "from samebits.digest.b import x", "digest__b": "def f():\n    import samebits.digest.a"},
    {"digest__a": "Payload('samebits.digest.b', 'f', {})", "digest__b": "from samebits.digest.a import x"},
    {
        "digest__a": "CODE = 'from samebits.digest.b import x'\npython_code('', CODE)",
        "digest__b": "from samebits.digest.a import x",
    },
    {"digest__a": "'''As `import samebits` does.'''\nfrom samebits import _reader, errors", "errors": ""},
    {"digest__a": "def f(a, b, c, *, d, e, f): ..."},
    {"portable__ops__a": MANY_ARGUMENTS.format("Compute `aten::add`.")},
    {"portable__ops__a": "import torch"},
]


@pytest.mark.parametrize("texts", ALLOWED)
def test_what_is_allowed_passes(texts):
    """No false alarms."""
    assert [complaint for rule in RULES for complaint in rule(make_sources(**texts))] == []

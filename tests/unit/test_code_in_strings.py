"""Scripts that tests keep in strings import what exists: nothing else checks them before a slow test runs."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# This file, and the one that writes packages of its own under this name.
INVENTS = {"test_code_in_strings.py", "test_layering.py"}
IMPORT = re.compile(r"^\s*from (samebits[\w.]*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)", re.MULTILINE)


def imports_in_strings(source: str) -> set[tuple[str, str]]:
    """Return (module, name) of each `from samebits… import name` in the strings of some Python source."""
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {
        (module, name.split(" as ")[0])
        for text in strings
        for module, names in IMPORT.findall(text)
        for name in names.split(", ")
    }


def exists(module: str, name: str) -> bool:
    """Tell whether `from module import name` works."""
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("samebits.rng.active", "PROCESS", True),
        ("samebits.rng", "active", True),
        ("samebits.rng.active", "NOTHING", False),
        ("samebits.nothing", "PROCESS", False),
    ],
)
def test_existence(module, name, expected):
    """A name of a module, a module of a package, and neither."""
    assert exists(module, name) is expected


def test_imports_are_seen():
    """In strings only, of several names, and under another name."""
    source = (
        'import samebits\nCODE = """\n    from samebits.a import b, c as d\n"""\nfrom samebits.e import f'
    )

    assert imports_in_strings(source) == {("samebits.a", "b"), ("samebits.a", "c")}


def missing(pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those that do not exist; imported in another process, as libraries leave things."""
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from test_code_in_strings import exists; "
        "print(json.dumps([pair for pair in json.load(sys.stdin) if not exists(*pair)]))"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    asked = json.dumps(sorted(pairs))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return [(module, name) for module, name in json.loads(done.stdout.splitlines()[-1])]


def test_scripts_in_strings_import_what_exists():
    """A module that has moved is noticed here, not by a slow suite."""
    found = {
        str(path.relative_to(TESTS)): imports_in_strings(path.read_text())
        for path in sorted(TESTS.rglob("*.py"))
        if path.name not in INVENTS
    }
    unknown = set(missing(set().union(*found.values())))

    assert {path: pairs & unknown for path, pairs in found.items() if pairs & unknown} == {}

"""The rows of the fidelity table: small scripts, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass, field

from fidelity_sources import (
    AT_EXIT,
    ENVIRONMENT,
    INTERRUPT,
    MODULES,
    ORDER,
    PICKLE,
    POOL,
    RAISE,
    SHOW,
    WRAPPED,
)


@dataclass(frozen=True)
class Row:
    """One script that must behave alike under bare Python and under samebits.

    Args:
        name: of the test.
        files: path to source; the script is `probe.py` unless `command` says otherwise.
        command: what follows `python` or `samebits run`.
        options: of the interpreter.
        merged: the order between stdout and stderr counts too.
        environment: variables for both.
        since: the Python version from which the row applies.
        stdout: a path instead of a pipe.
        late: why more comes on stderr after the line of `samebits run`; empty if that line is the last.
    """

    name: str
    files: dict[str, str | bytes]
    command: tuple[str, ...] = ("probe.py",)
    options: tuple[str, ...] = ()
    merged: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    since: tuple[int, int] = (3, 10)
    stdout: str = ""
    late: str = ""


def one(name: str, source: str | bytes, **fields: object) -> Row:
    """A row of one script."""
    return Row(name, {"probe.py": source}, **fields)  # type: ignore[arg-type]


def _module(name: str, module: str, *arguments: str, **fields: object) -> Row:
    return Row(name, MODULES, ("-m", module, *arguments), **fields)  # type: ignore[arg-type]


_START = (
    one("globals", '"""The doc."""\nx: int = 3\n' + SHOW + "print(__annotations__, __doc__)\n"),
    one("arguments", SHOW, command=("./sub/../probe.py", "-m", "--level", "op", "", "é ü", "-")),
    Row(
        "other folder",
        {"a/probe.py": SHOW + "import beside\n", "a/beside.py": "print(__name__, __file__)\n"},
        ("a/probe.py",),
    ),
    one("-P", SHOW, options=("-P",), since=(3, 11)),
    one("PYTHONSAFEPATH", SHOW, environment={"PYTHONSAFEPATH": "1"}, since=(3, 11)),
    one("-I", SHOW, options=("-I",)),
    one(
        "interpreter options",
        SHOW,
        options=("-OO", "-B", "-X", "dev", "-Xutf8", "-W", "error::UserWarning", "-u"),
    ),
    one(
        "warnings in the environment",
        SHOW,
        options=("-Wonce",),
        environment={"PYTHONWARNINGS": "ignore,error"},
    ),
    one("hash seed", "print(hash('a'))", environment={"PYTHONHASHSEED": "5"}),
    one("environment, streams and signals", ENVIRONMENT),
    one("stdin", "import sys\nprint(input(), sys.stdin.read())\n"),
    one(
        "data beside the script",
        "print(open('data.txt').read(), open(__file__).read()[:5])\nopen('out', 'w')\n",
    ),
    one("byte order mark", b"\xef\xbb\xbfprint(ascii('\xc3\xa9'))\n"),
    one("latin-1", b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n"),
    one("line ends", b"x = '''a\r\nb'''\r\nprint(repr(x))\r\nprint(2)"),
    one("empty", ""),
    one("no future import leaks in", "def f(x: 1 + 1): pass\nprint(f.__annotations__)\n"),
)

_END = (
    *(
        one(f"exit {code}", AT_EXIT + f"print('x')\nsys.exit({code})\n", merged=True)
        for code in (
            "",
            "None",
            "0",
            "3",
            "True",
            "-1",
            "256 + 7",
            "2**32 + 3",
            "'a text'",
            "('a', 1)",
            "2.5",
        )
    ),
    one("exit with no stderr", "import sys\nsys.stderr = None\nsys.exit('text')\n"),
    one("exit of a class of its own", "class Leave(SystemExit):\n    code = 9\nraise Leave(3)\n"),
    one("exit in atexit", "import atexit, sys\natexit.register(sys.exit, 5)\nsys.exit(2)\n"),
    one("normal end", AT_EXIT),
    one("os._exit", "import os\nprint('lost')\nos._exit(4)\n"),
    one("abort", "import os\nos.abort()\n"),
    one(
        "killed by SIGTERM", "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(5)\n"
    ),
    one("stdout full", "print('x')\n", stdout="/dev/full"),
    one("stdout closed", "import sys\nprint('x')\nsys.stdout.close()\nsys.stdout = None\n"),
    one("order at the end", ORDER),
    one(
        "order of streams",
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('out')\n1 / 0\n",
        merged=True,
    ),
    one(
        "forked child that goes on",
        "import os\npid = os.fork()\nif not pid:\n    raise SystemExit(7)\nprint(os.waitpid(pid, 0)[1])\n",
    ),
    one(
        "re-executes itself",
        "import os, sys\nprint(len(sys.argv), flush=True)\n"
        "if len(sys.argv) < 3:\n    os.execv(sys.executable, [*sys.orig_argv, 'more'])\n",
    ),
)

_ERRORS = (
    one("traceback", AT_EXIT + RAISE, merged=True),
    Row(
        "traceback through an import",
        {"probe.py": "import beside\n", "beside.py": "import inner\n", "inner.py": "1 / 0\n"},
    ),
    one("chained", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError(2) from e\n"),
    one("context", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}[1]\n"),
    one("through what samebits wraps", WRAPPED),
    one("notes", "e = ValueError()\ne.add_note('a note')\nraise e\n", since=(3, 11)),
    one("group", "raise ExceptionGroup('g', [ValueError(1), KeyError(2)])\n", since=(3, 11)),
    one(
        "caught",
        "import traceback\ndef f():\n    1 / 0\ntry:\n    f()\nexcept:\n    traceback.print_exc()\n",
    ),
    one("import error", "import nothing_of_this_name\n"),
    one("str raises", "class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E\n"),
    one(
        "excepthook",
        AT_EXIT + "def hook(*a):\n    print(a, sys.exc_info())\nsys.excepthook = hook\n1 / 0\n",
        merged=True,
    ),
    one("excepthook raises", "import sys\ndef hook(*a):\n    {}[1]\nsys.excepthook = hook\n1 / 0\n"),
    one("excepthook exits", "import sys\nsys.excepthook = lambda *a: sys.exit(7)\n1 / 0\n"),
    one("excepthook deleted", "import sys\ndel sys.excepthook\n1 / 0\n"),
    one("interrupt", AT_EXIT + INTERRUPT, merged=True),
    one(
        "interrupt with a hook", "import sys\nsys.excepthook = lambda *a: print(a)\nraise KeyboardInterrupt\n"
    ),
    one(
        "interrupt that exits",
        "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    raise SystemExit(130)\n",
    ),
    one("class of interrupt", "class Mine(KeyboardInterrupt): pass\nraise Mine('x')\n"),
    one("thread raises", "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()\n"),
    one("invalid syntax", "print(1)\nx = = 1\n"),
    one("indentation", "if 1:\nprint(1)\n"),
    one("tabs", "if 1:\n        x = 1\n\ty = 2\n"),
    one("unfinished string", "x = '''abc\n\ny\n"),
    one("unfinished bracket", "x = (1,\n\ny = 2\n"),
    one("return outside", "print(1)\nreturn 3\n"),
    one(
        "warning",
        "import warnings\ndef f():\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\nf()\n"
        "warnings.warn('here')\n",
    ),
    one("syntax warning", "x = 1 is 1\nprint(x)\n"),
    one("warning as an error", "import warnings\nwarnings.warn('x')\n", options=("-W", "error")),
    one(
        "log record",
        "import logging\nlogging.basicConfig(format='%(filename)s %(lineno)d')\nlogging.warning('x')\n",
    ),
)

_MAIN = (
    one("pickle", PICKLE),
    *(
        one(f"pool by {method}", POOL, command=("probe.py", method))
        for method in ("spawn", "fork", "forkserver")
    ),
    one(
        "getsource",
        "import inspect\nclass A:\n    x = 1  # note\nprint(inspect.getsource(A), inspect.getfile(A))\n"
        "print(inspect.getsource(inspect.getmodule(A)))\n",
    ),
    one(
        "type hints",
        "from __future__ import annotations\nimport typing, dataclasses\n@dataclasses.dataclass\n"
        "class A:\n    x: B\nclass B: pass\nprint(typing.get_type_hints(A), A(1))\n",
    ),
    one(
        "import __main__",
        "import __main__, sys\nx = 5\nprint(__main__.x, __main__ is sys.modules[__name__])\n",
    ),
    one(
        "doctest",
        '"""\n>>> double(2)\n5\n"""\ndef double(x): return 2 * x\nimport doctest\nprint(doctest.testmod())\n',
    ),
    one(
        "unittest",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1, 2)\n"
        "if __name__ == '__main__':\n    unittest.main()\n",
    ),
    Row(
        "runs another script",
        {
            "probe.py": "import runpy\nx = runpy.run_path('b.py', run_name='m')\nprint(x['y'], __file__)\n",
            "b.py": "y = 4\nprint(__name__)\n",
        },
    ),
)

_FORMS = (
    _module("module", "package.tool", "-m", "x"),
    _module("package as module", "package"),
    _module("module -P", "json.tool", "--help", options=("-P",), since=(3, 11)),
    _module("module raises", "package.fails"),
    _module("module exits", "package.leaves"),
    _module("module with invalid syntax", "package.broken"),
    _module("package raises", "raising.tool"),
    _module("module interrupted", "package.interrupted"),
    _module("module with a pool", "package.pool", "spawn"),
    Row(
        "folder",
        {"app/__main__.py": SHOW + "import beside\n", "app/beside.py": "print(__file__)\n"},
        ("app/", "x"),
    ),
    Row("folder raises", {"app/__main__.py": AT_EXIT + RAISE}, ("app",), merged=True),
    Row("folder with a pool", {"app/__main__.py": POOL}, ("app", "fork")),
    Row(
        "archive",
        {"zip:__main__.py": SHOW + "import beside\n" + RAISE, "zip:beside.py": "print(__file__)\n"},
        ("app.zip", "x"),
    ),
    Row("compiled", {"pyc:probe.py": SHOW + AT_EXIT + RAISE}, ("probe.pyc",)),
    Row("compiled with another name", {"pyc:probe.py": SHOW}, ("hidden.bin",)),
    Row("compiled by another Python", {"probe.pyc": b"\0\0\r\n" + bytes(12)}, ("probe.pyc",)),
    Row("compiled and cut off", {"pyc:probe.py": SHOW}, ("cut.pyc",)),
    Row(
        "link",
        {
            "real/probe.py": SHOW + "import beside\n",
            "real/beside.py": "print(1)\n",
            "link:link.py": "real/probe.py",
        },
        ("link.py",),
    ),
)

_SHADOWS = tuple(
    Row(
        f"{name}.py beside the script",
        {
            "probe.py": f"import {name}, sys\nprint({name}.__file__, {name}.VALUE, len(sys.path))\n"
            f"from {name} import VALUE\n",
            f"{name}.py": "VALUE = 7\n",
        },
    )
    for name in (
        "samebits",
        "types",
        "json",
        "sqlite3",
        "threading",
        "torch",
        "numpy",
        "code",
        "os_",
        "importlib",
    )
)

_SHADOW_WITH_TORCH = Row(
    "samebits.py beside a script with torch",
    {
        "probe.py": "import torch, samebits\nprint(torch.ones(3).sum().item(), samebits.VALUE)\n",
        "samebits.py": "VALUE = 9\n",
    },
)
_SHADOW_PACKAGE = Row(
    "json package beside the script",
    {
        "probe.py": "import json.decoder\nprint(json.decoder.VALUE, json.__path__)\n",
        "json/__init__.py": "",
        "json/decoder.py": "VALUE = 8\n",
    },
)

ROWS = (*_START, *_END, *_ERRORS, *_MAIN, *_FORMS, *_SHADOWS, _SHADOW_PACKAGE, _SHADOW_WITH_TORCH)

# What is known to differ: the frames of samebits below the script's own, and the words of the error for a
# file that is not text (CPython reads a script and a string of the same bytes by two decoders).
DIFFERENT = (
    one("stack", "import traceback\ntraceback.print_stack()\n"),
    one(
        "anomaly mode of torch",
        "import torch\nwith torch.autograd.set_detect_anomaly(True):\n"
        "    torch.sqrt(torch.tensor([-1.0], requires_grad=True)).sum().backward()\n",
    ),
    one("warning past the script", "import warnings\nwarnings.warn('x', stacklevel=2)\n"),
    one("recursion without end", "def f():\n    f()\nf()\n"),
    one("unknown coding", "# coding: no-such-code\nprint(1)\n"),
    one("not UTF-8", b"x = 1\ny = '\xe9'\n"),
    one("null byte", b"x = 1\ny = '\0'\n"),
)

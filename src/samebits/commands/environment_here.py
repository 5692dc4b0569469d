"""The environment of this machine, as a recorded run would meet it here."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.commands.fresh_process import ask_fresh_process
from samebits.environment.files import digest_data, digest_file
from samebits.environment.snapshot import HERE, TAKEN, collect, fact_at, table_at, with_packages
from samebits.errors import SamebitsError
from samebits.switches.table import switch_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.environment.files import DataFacts
    from samebits.records.events import RunInfo

_CHILD_CODE = """\
from samebits.commands.environment_here import main
main(sys.argv[2:])
"""


def environment_here(recorded: RunInfo) -> RunInfo:
    """Return the facts of this machine, its packages, and the files of a recorded run as they are now.

    Nothing of the run is executed; torch is imported in a fresh process.

    Args:
        recorded: the run.

    Raises:
        SamebitsError: a fresh process could not tell; `environment-here`.
    """
    facts, failure = ask_fresh_process(_CHILD_CODE, (json.dumps(_wanted(recorded)),))
    if facts is None:
        message = (
            f"a fresh Python process did not tell its environment: {failure}; expected `import torch` to work"
        )
        raise SamebitsError(message, slug="environment-here")
    return replace(recorded, environment=facts)


def _wanted(recorded: RunInfo) -> dict[str, Any]:
    """Return what is asked for: the script or module, and the names of code and data that the run used."""
    environment = recorded.environment
    is_module = recorded.command[:1] == ("-m",)
    return {
        "script": "" if is_module else "".join(recorded.command[:1]),
        "module": "".join(recorded.command[1:2]) if is_module else "",
        "cuda": bool(fact_at(environment, "torch", "gpus")),
        "code": list(table_at(environment, "code")),
        "data": [name for name in table_at(environment, "data", "files") if not name.endswith("/")],
    }


def main(arguments: list[str]) -> None:
    """Write the facts of this process as JSON.

    Args:
        arguments: number of an open file for the answer, and what is asked for (`_wanted`).
    """
    answer, wanted = int(arguments[0]), json.loads(arguments[1])
    folder = os.path.dirname(os.path.abspath(wanted["script"])) if wanted["script"] else os.getcwd()
    _import_torch(cuda=wanted["cuda"])
    facts = with_packages(collect(Path(folder), switch_values()))
    facts = replace(facts, data=_data(wanted["data"]))
    told = {**facts.to_dict(), TAKEN: HERE, "code": _code(wanted, folder)}
    if not wanted["code"]:
        del told["code"]
    os.write(answer, json.dumps(told).encode())


def _data(names: Iterable[str]) -> DataFacts:
    """Return the digests of files by the names that a record has; one that is not here is left out."""
    paths = [os.path.abspath(os.path.expanduser(name)) for name in names]
    return digest_data([path for path in paths if os.path.isfile(path)], os.getcwd())


def _import_torch(*, cuda: bool) -> None:
    """Import torch, which may not be there; its facts of GPUs and cuDNN are known once CUDA is in use."""
    import importlib

    with suppress(ImportError):
        torch = importlib.import_module("torch")
        if cuda and torch.cuda.is_available():
            torch.cuda.init()


def _code(wanted: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the contents of the modules that the run used, where they are found as an import would."""
    code, folders = {}, (folder, *sys.path)
    script = wanted["script"] or _file_of(wanted["module"], folders)
    for name in wanted["code"]:
        path = script if os.path.basename(script) == name else _find(name, folders)
        contents = digest_file(path) if path else None
        if contents is not None:
            code[name] = asdict(contents)
    return code


def _file_of(module: str, folders: Iterable[str]) -> str:
    """Return the file that `python -m` runs."""
    file = _find(module, folders) if module else ""
    package, name = os.path.split(file)
    return os.path.join(package, "__main__.py") if name == "__init__.py" else file


def _find(module: str, folders: Iterable[str]) -> str:
    """Return the file of a module without importing the packages that it is in."""
    return _find_below(folders, module) or _find_by_hooks(module)


def _find_below(folders: Iterable[str], module: str) -> str:
    inside = module.replace(".", os.sep)
    for folder in folders:
        for end in (".py", f"{os.sep}__init__.py"):
            path = os.path.join(folder, inside + end)
            if os.path.isfile(path):
                return path
    return ""


def _find_by_hooks(module: str) -> str:
    """Return the file of a module that is in no folder of the path: of an editable installation."""
    import importlib.util

    top, _, rest = module.partition(".")
    spec = None
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(top)  # of a top module, it imports nothing
    if spec is None:
        return ""
    return _find_below(spec.submodule_search_locations or (), rest) if rest else spec.origin or ""

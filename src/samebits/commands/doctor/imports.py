"""The packages that a script imports, read from its source and the modules beside it. Nothing is run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLEX_ATTENTION = "torch.nn.attention.flex_attention"
"""A part of torch that has a name of its own among the imports."""
_MOST_FILES = 2000


def imported_packages(start: Path, root: Path) -> frozenset[str]:
    """Return the top-level names that a file and its own modules import, and `FLEX_ATTENTION` where they do.

    Imports by name at run time (`importlib.import_module(name)`) are not seen. Imports made inside installed
    packages are not followed.

    Args:
        start: the script.
        root: folder of the script, where its own modules are looked up.
    """
    names = {name for file in own_modules(start, root) for name in _names(file, root)}
    packages = {name.partition(".")[0] for name in names if not _own_files(name, root)}
    is_flex = any(f"{name}.".startswith(f"{FLEX_ATTENTION}.") for name in names)
    return frozenset(packages | {FLEX_ATTENTION} if is_flex else packages)


def own_modules(start: Path, root: Path) -> tuple[Path, ...]:
    """Return a file and the modules of its own that it imports, and they import.

    Args:
        start: the script.
        root: folder of the script, where its own modules are looked up.
    """
    seen: dict[Path, None] = {}
    waiting = [start]
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop()
        if file not in seen:
            seen[file] = None
            waiting += [own for name in _names(file, root) for own in _own_files(name, root)]
    return tuple(seen)


def started_file(script: str | None, module: str | None, directory: Path) -> tuple[Path | None, Path]:
    """Return the file that a command line runs, None if it is not here, and the folder of its modules.

    Args:
        script: a file, or a folder that has `__main__.py`.
        module: the argument of `-m` when there is no script.
        directory: the working directory.
    """
    if script is not None:
        path = (directory / script).resolve()  # as Python does for the first entry of its path
        return (path / "__main__.py", path) if path.is_dir() else (path, path.parent)
    base = directory.joinpath(*str(module).split("."))
    files = (base.with_name(f"{base.name}.py"), base / "__main__.py")
    return next((file for file in files if file.is_file()), None), directory


def is_parsed(file: Path) -> bool:
    """Tell whether a script can be read as Python source, so that its imports are known."""
    return _tree(file) is not None


def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(file: Path, root: Path) -> Iterator[str]:
    """Yield the absolute names that a file imports; none if it cannot be read or parsed."""
    tree = _tree(file)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, file, root)
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _base(node: ast.ImportFrom, file: Path, root: Path) -> str:
    """Return the module named by `from … import`; a relative one is resolved in the file's own package."""
    if not node.level:
        return node.module or ""
    folder = file.parents[node.level - 1] if node.level <= len(file.parents) else root
    parts = folder.relative_to(root).parts if folder.is_relative_to(root) else ()
    return ".".join((*parts, node.module or "")).strip(".")


def _own_files(name: str, root: Path) -> list[Path]:
    """Return the files beside the script that make up a module: itself and its packages."""
    files = []
    folder = root
    for part in name.split("."):
        candidates = (folder / f"{part}.py", folder / part / "__init__.py")
        files += [path for path in candidates if path.is_file()]
        folder /= part
    return files

"""The environment of one run as a few lines: what a reader looks for first; `show --json` has all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.environment.snapshot import fact_at, table_at
from samebits.environment.unread import unread_in
from samebits.recording.unread_words import REASONS, unread_text
from samebits.report.style import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_MOST_FILES = 8
_DIGITS = 12
NOT_SET: tuple[Any, ...] = ("", None, [], {})
"""Values of facts that say nothing."""


def torch_line(version: str, environment: Mapping[str, Any]) -> str:
    """Say which torch ran, with which instructions, how many threads, and on which GPU."""
    capability, threads = (
        fact_at(environment, "torch", *path) for path in (("capability",), ("threads", "intra-op"))
    )
    parts = [version or "never imported", str(capability or "")]
    parts += [count(threads, "thread")] if isinstance(threads, int) else []
    return ", ".join(part for part in (*parts, *_gpus(environment)) if part)


def environment_lines(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a name and a text for each kind of fact; what torch is is told by `torch_line`."""
    rows = []
    for name, value in environment.items():
        if name == "torch" or value in NOT_SET:
            continue
        form = _FORMS.get(name, flat) if isinstance(value, dict) else flat
        text = _libraries(value) if name == "libraries" and isinstance(value, list) else form(value)
        rows += [(_NAMES.get(name, name.replace("_", " ")), text)] if text else []
    return rows


def _gpus(environment: Mapping[str, Any]) -> list[str]:
    gpus = fact_at(environment, "torch", "gpus")
    names = [str(fact_at(gpu, "name")) for gpu in gpus] if isinstance(gpus, list) else []
    release = fact_at(environment, "torch", "cuda")
    return [f"CUDA {release}", *dict.fromkeys(names)] if names else []


def _distributions(packages: Mapping[str, Any]) -> str:
    used = sum(bool(fact_at(package, "imported")) for package in packages.values())
    return f"{count(len(packages), 'package')}, of which the run imported {used} (--json lists them)"


def _libraries(libraries: Iterable[Any]) -> str:
    """Name each library with the package that it came with; in records of earlier versions only its file."""
    texts = []
    for library in libraries:
        file, package, version = (fact_at(library, key) for key in ("file", "package", "version"))
        name = str(file or flat(library))
        texts.append(f"{name} ({package} {version})" if package else name)
    return ", ".join(texts)


def _files(files: Mapping[str, Any]) -> str:
    shown = [f"{name} {str(fact_at(file, 'sha256'))[:_DIGITS]}" for name, file in files.items()]
    more = len(shown) - _MOST_FILES
    return ", ".join([*shown[:_MOST_FILES], *([f"and {more} more"] if more > 0 else [])])


def _data(data: Mapping[str, Any]) -> str:
    read, unread = _files(table_at(data, "files")), unread_in(data)
    names = [f"{name} ({REASONS[why]})" for name, why in unread.files.items()]
    more = len(names) - _MOST_FILES
    listed = ", ".join([*names[:_MOST_FILES], *([f"and {more} more"] if more > 0 else [])])
    why = f"{unread_text({'data': data})}: {listed}" if listed else ""
    return "; ".join(part for part in (read, why) if part)


def flat(value: Any) -> str:
    """Return a nested fact on one line, without what is not set."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={flat(item)}" for key, item in value.items() if item not in NOT_SET)
    if isinstance(value, (list, tuple)):
        return ", ".join(flat(item) for item in value)
    return str(value)


_NAMES = {"distributions": "installed"}
_FORMS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "distributions": _distributions,
    "code": _files,
    "data": _data,
}

"""Reads and writes a lock file: TOML, with a line for each step, to be reviewed in a pull request."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from samebits._text import files
from samebits._text.printable import printable
from samebits.commands.lock.entry import END, LockEntry, LockRow, rounded
from samebits.environment.snapshot import table_at
from samebits.errors import SamebitsError
from samebits.switches.switch import Control

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULT = "samebits.lock"
VERSION = 1
_LARGEST = 1 << 26  # bytes
_HEADER = """\
# What runs of this project give, bit by bit. `samebits check` compares with it.
# Not edited by hand: `samebits lock` writes an entry, `samebits check --update` writes all again;
# those of tests are written by `pytest --samebits-update`.
"""
_ROW = re.compile(r"(?P<state>[0-9a-f]{32}|-) (?P<values>[0-9a-f]{32}|-)(?P<numbers>(?: (?:loss|read)=\S+)*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_END = "end"
_CONFLICT = b"<<<<<<< "


@dataclass(frozen=True)
class LockFile:
    """A lock file.

    Args:
        path: of the file; the commands of its entries run in its folder.
        entries: its entries, by name.
    """

    path: Path
    entries: Mapping[str, LockEntry]

    @property
    def folder(self) -> Path:
        """The folder in which the commands run."""
        return Path(os.path.abspath(self.path)).parent

    def trace(self, name: str) -> Path:
        """Return the path of the record with every operation of the first steps of an entry."""
        return self.path.with_name(f"{self.path.name}.d") / f"{name}.sbr"

    def with_entry(self, entry: LockEntry) -> LockFile:
        """Return the file with an entry added or replaced."""
        return LockFile(self.path, {**self.entries, entry.name: entry})


def default_name(text: str) -> str:
    """Return a name of an entry made from that of its script: `sp ace/é.py` cannot be one as it is."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "_", letters).strip("._-")[:100] or "script"


def check_name(name: str) -> str:
    """Return the name of an entry.

    Raises:
        SamebitsError: it has other characters than letters, digits, `.`, `_` and `-`; `usage`.
    """
    if not _NAME.fullmatch(name):
        message = f"{printable(name)!r} cannot name an entry; expected letters, digits, `.`, `_` and `-`"
        raise SamebitsError(message, slug="usage")
    return name


def read_lock(path: str | Path) -> LockFile:
    """Read a lock file.

    Raises:
        SamebitsError: it is missing (`lock-missing`), cannot be read (`lock-unreadable`), is no lock file
            (`lock-damaged`), is of a later version (`lock-version`), or was edited (`lock-edited`).
    """
    path = Path(path)
    shown = printable(str(path))
    try:
        with files.open_to_read(path) as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        message = f"there is no lock file {shown}; `samebits lock SCRIPT` writes one"
        raise SamebitsError(message, slug="lock-missing") from None
    except OSError as error:
        message = f"cannot read the lock file {shown}: {error.strerror or error}"
        raise SamebitsError(message, slug="lock-unreadable") from None
    if len(data) > _LARGEST:
        raise _damaged(path, f"it has more than {_LARGEST >> 20} MiB")
    if data.startswith(_CONFLICT) or b"\n" + _CONFLICT in data:
        raise _damaged(path, "it has the marks of a merge conflict")
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # no UTF-8, not TOML, endless nesting
        raise _damaged(path, str(error)) from None
    return LockFile(path, _entries(path, document))


def _entries(path: Path, document: dict[str, Any]) -> dict[str, LockEntry]:
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise _damaged(path, "it has no version")
    if version < 1:
        raise _damaged(path, f"there is no version {version}")
    if version > VERSION:
        message = (
            f"{printable(str(path))} is of version {version}, and this samebits reads version {VERSION}; "
            "update samebits, or delete the lock file and write it again"
        )
        raise SamebitsError(message, slug="lock-version")
    runs = document.get("run", {})
    if not isinstance(runs, dict):
        raise _damaged(path, "`run` is not a table")
    return {name: _entry(path, name, table) for name, table in runs.items()}


def _entry(path: Path, name: str, table: Any) -> LockEntry:
    if not isinstance(table, dict) or not _NAME.fullmatch(name):
        raise _damaged(path, f"the entry {printable(name)!r} is not a table with a usable name")
    rest = {key: value for key, value in table.items() if key != "checksum"}
    if table.get("checksum") != _checksum(rest):
        message = (
            f"the entry {name} of {printable(str(path))} does not match its checksum: it was edited, or "
            "merged by hand; restore it, or delete the entry and write it again"
        )
        raise SamebitsError(message, slug="lock-edited")
    try:
        return _checked(_decoded(name, rest))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"the entry {name} cannot be read ({type(error).__name__}: {error})") from None


def _checked(entry: LockEntry) -> LockEntry:
    """Return an entry that can be run.

    Raises:
        ValueError: it names no script, or a number in it cannot be.
    """
    if not entry.test and entry.command in ((), ("-m",)):
        raise ValueError("its command names no script")
    if min(entry.steps, entry.trace, 0 if entry.max_steps is None else entry.max_steps) < 0:
        raise ValueError("a number of steps below 0")
    return entry


def _decoded(name: str, table: dict[str, Any]) -> LockEntry:
    control, test = table.get("control"), str(table.get("test", ""))
    return LockEntry(
        name=name,
        command=() if test else tuple(shlex.split(table["command"])),
        control=None if control is None else Control.from_dict({**Control()._asdict(), **control}),
        steps=int(table["steps"]),
        rows=tuple(_row(key, text) for key, text in table["digests"].items()),
        interventions=tuple(map(str, table.get("interventions", ()))),
        max_steps=int(table["max_steps"]) if "max_steps" in table else None,
        environment=_unpacked(table.get("environment", {})),
        commit=_commit(table.get("commit", "")),
        samebits=str(table["samebits"]),
        trace=int(table.get("trace", 0)),
        test=test,
    )


def _commit(name: str) -> str:
    """Return the name of a commit; git would take another text for an option."""
    if not re.fullmatch(r"([0-9a-f]{40}|[0-9a-f]{64})?", name):
        raise ValueError("the name of the commit")
    return name


def _row(key: str, text: str) -> LockRow:
    match = _ROW.fullmatch(text)
    if match is None:
        raise ValueError(f"the digests of step {key}")
    first, _, last = key.partition("-")
    numbers = (pair.partition("=") for pair in match["numbers"].split())
    bounds = (END, END) if key == _END else (int(first), int(last or first))
    state, values = ("" if match[part] == "-" else match[part] for part in ("state", "values"))
    return LockRow(*bounds, state, values, tuple((kind, float(value)) for kind, _, value in numbers))


def write_lock(lock: LockFile) -> None:
    """Write a lock file, whole or not at all.

    Raises:
        SamebitsError: it cannot be written; `lock-unwritable`.
    """
    runs = {name: _table(entry) for name, entry in sorted(lock.entries.items())}
    text = _HEADER + tomli_w.dumps({"version": VERSION, "run": runs})
    try:
        lock.folder.mkdir(parents=True, exist_ok=True)
        files.write_whole(lock.path, text.encode(), mode=files.SHARED)
    except OSError as error:
        message = f"cannot write the lock file {printable(str(lock.path))}: {error.strerror or error}"
        raise SamebitsError(message, slug="lock-unwritable") from None


def _table(entry: LockEntry) -> dict[str, Any]:
    table: dict[str, Any] = {
        "command": shlex.join(entry.command),
        "test": entry.test,
        "steps": entry.steps,
        "max_steps": entry.max_steps,
        "interventions": list(entry.interventions),
        "samebits": entry.samebits,
        "commit": entry.commit,
        "trace": None if entry.test else entry.trace,
        "control": _changed(entry.control),
        "digests": dict(_written(entry.rows)),
        "environment": _packed(entry.environment),
    }
    table = {key: value for key, value in table.items() if value not in (None, "", [])}
    return {"checksum": _checksum(table), **table}


def _changed(control: Control | None) -> dict[str, Any] | None:
    """Return what a control has other than the default one."""
    if control is None:
        return None
    default = Control()._asdict()
    fields = json.loads(json.dumps(control.to_dict()))
    return {name: value for name, value in fields.items() if control._asdict()[name] != default[name]}


def _written(rows: Iterable[LockRow]) -> Iterable[tuple[str, str]]:
    for row in rows:
        key = _END if row.last == END else str(row.last)
        if row.first != row.last:
            key = f"{row.first}-{row.last}"
        numbers = "".join(f" {kind}={rounded(value)!r}" for kind, value in row.numbers)
        yield key, f"{row.state or '-'} {row.values or '-'}{numbers}"


# Tables of a lock for the data files without a digest, and where the environment has them; left out if empty.
_WITHOUT_DIGEST = {"data-without-digest": "unread", "data-without-digest-more": "unlisted"}


def _packed(environment: dict[str, Any]) -> dict[str, Any]:
    """Return the facts with a line for each file, and one for the instruction sets."""
    code, data = table_at(environment, "code"), table_at(environment, "data", "files")
    machine = table_at(environment, "machine")
    unread = {name: table_at(environment, "data", key) for name, key in _WITHOUT_DIGEST.items()}
    return {
        **environment,
        "machine": {**machine, "instructions": " ".join(machine.get("instructions", ()))},
        "code": {name: row["sha256"] for name, row in code.items()},
        "data": {name: " ".join(map(str, row.values())) for name, row in data.items()},
        **{name: table for name, table in unread.items() if table},
    }


def _unpacked(environment: dict[str, Any]) -> dict[str, Any]:
    code, data, machine = (dict(environment.get(name, {})) for name in ("code", "data", "machine"))
    rows = {name: line.split() for name, line in data.items()}
    files = {
        name: {"sha256": sha256, "size": int(size), "count": int(count)}
        for name, (sha256, size, count) in rows.items()
    }
    unread = {key: dict(environment[name]) for name, key in _WITHOUT_DIGEST.items() if name in environment}
    return {
        **{name: facts for name, facts in environment.items() if name not in _WITHOUT_DIGEST},
        "machine": {**machine, "instructions": str(machine.get("instructions", "")).split()},
        "code": {name: {"sha256": str(digest)} for name, digest in code.items()},
        "data": {"files": files, **unread},
    }


def _checksum(table: Mapping[str, Any]) -> str:
    """Return a checksum of an entry; the order of its lines and their layout do not count."""
    text = json.dumps(table, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _damaged(path: Path, why: str) -> SamebitsError:
    message = (
        f"{printable(str(path))} is no lock file that samebits wrote ({printable(why)}); restore it, or "
        "delete it and write it again"
    )
    return SamebitsError(message, slug="lock-damaged")

"""Defaults of options from the environment and from `[tool.samebits]` of `pyproject.toml`.

There is one rule for every option, and no list of them: the parser of a command has its options. The default
of `--on-drift` of `run` is the first of `SAMEBITS_RUN_ON_DRIFT`, `SAMEBITS_ON_DRIFT`, `on-drift` in
`[tool.samebits.run]`, and `on-drift` in `[tool.samebits]`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text import files
from samebits._text.printable import printable
from samebits._text.variable_names import NO_DEFAULTS, PREFIX
from samebits.cli.command import did_you_mean
from samebits.cli.option_rules import without_refused
from samebits.cli.registry import COMMANDS, command_named
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_FILE = "pyproject.toml"
_LARGEST = 1 << 24  # bytes
_FLAGS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class Default:
    """The default of an option that comes from outside the command line.

    Args:
        option: such as `--seed`.
        value: text of the environment, or a value of TOML; None where an empty variable takes a default away.
        place: the variable, or the table and the file.
        converted: what the parser makes of the value.
        own: what the option has without it.
    """

    option: str
    value: Any
    place: str
    converted: Any = None
    own: Any = None

    @property
    def words(self) -> str:
        """The option as it would be on a command line."""
        if isinstance(self.value, list):
            return " ".join(f"{self.option} {shlex.quote(str(each))}" for each in self.value)
        return self.option if self.value is True else f"{self.option} {shlex.quote(str(self.value))}"


def apply_defaults(
    parser: argparse.ArgumentParser, command: str, actions: Sequence[argparse.Action], words: Sequence[str]
) -> tuple[Default, ...]:
    """Give options of a command other defaults, except those that the command line has.

    Args:
        parser: of the command; it is changed.
        command: its name.
        actions: of the parser.
        words: the command line.

    Returns:
        The defaults that count now.

    Raises:
        SamebitsError: `defaults`; a file that cannot be read, an option that does not exist, a value that the
            option cannot have.
    """
    if os.environ.get(NO_DEFAULTS):
        return ()
    options = {name: action for action in actions if (name := _name_of(action))}
    found = _from_file(command, options.keys())
    found.update(_from_environment(command, options))
    given = {name for name, action in options.items() if _is_given(action, words)}
    changed = _changed(options, [each for name, each in found.items() if name not in given])
    if not {"-h", "--help"} & set(words):  # the help lists those too that only go with others
        given |= {name for name, action in options.items() if action.default is True}
        kept = without_refused(command, changed.keys(), given, options.keys())
        changed = {name: each for name, each in changed.items() if name in kept}
    for name, default in changed.items():
        action = options[name]
        action.default, action.required = default.converted, False
        parser.set_defaults(**{action.dest: default.converted})
    return tuple(changed.values())


def _changed(options: Mapping[str, argparse.Action], found: Iterable[Default]) -> dict[str, Default]:
    """Return the defaults that are other values than the options have anyway, converted."""
    changed = {}
    for default in found:
        name = default.option[2:]
        own = options[name].default
        converted = None if default.value is None else _value(options[name], default)
        if default.value is not None and converted != own:
            changed[name] = replace(default, converted=converted, own=own)
    return changed


def pass_over(options: argparse.Namespace, names: Iterable[str]) -> None:
    """Take defaults away with which the rest of a command line that was read does not go.

    Args:
        options: that were read; they are changed.
        names: of the options, such as `--quick`.
    """
    wrong = {each.option: each for each in options.defaults if each.option in names}
    for name, default in wrong.items():
        setattr(options, name[2:].replace("-", "_"), default.own)
    options.defaults = tuple(each for each in options.defaults if each.option not in wrong)


def listed(defaults: Iterable[Default]) -> str:
    """Return defaults for one line: `--seed 0 (SAMEBITS_SEED), --runs 3 (...)`."""
    return ", ".join(printable(f"{each.words} ({each.place})") for each in defaults)


def _name_of(action: argparse.Action) -> str:
    """Return the name of an option without its dashes; empty for what has no default: positions, `--help`."""
    if not action.option_strings or argparse.SUPPRESS in (action.dest, action.default):
        return ""
    if action.nargs == 0 and not isinstance(action.const, bool):
        return ""
    return next((name[2:] for name in action.option_strings if name.startswith("--")), "")


def _is_given(action: argparse.Action, words: Sequence[str]) -> bool:
    return any(
        word == name or word.startswith(f"{name}=") for name in action.option_strings for word in words
    )


# ---- the environment


def variables_of(option: str, command: str) -> tuple[str, str]:
    """Return the variables with the default of an option: that of this command, and that of all commands.

    Args:
        option: without its dashes.
        command: its name.
    """
    name = option.replace("-", "_").upper()
    return f"{PREFIX}{command.replace('-', '_').upper()}_{name}", f"{PREFIX}{name}"


def option_variables(commands: Iterable[str]) -> frozenset[str]:
    """Return the variables with the defaults of all options of some commands, whose modules are imported."""
    options = [
        (name, option)
        for name in commands
        for option in filter(None, map(_name_of, command_named(name).parser().actions()))
    ]
    return frozenset(variable for name, option in options for variable in variables_of(option, name))


def _from_environment(command: str, options: Mapping[str, argparse.Action]) -> dict[str, Default]:
    found = {}
    for name, action in options.items():
        for variable in variables_of(name, command):
            if variable in os.environ:
                text = os.environ[variable]
                found[name] = Default(f"--{name}", _from_text(action, variable, text), variable)
                break
    return found


def _from_text(action: argparse.Action, variable: str, text: str) -> Any:
    """Return the value of a variable; several words for an option that can be repeated; None for no text."""
    if not text:
        return None
    if not _takes_bool(action):
        return _words(variable, text) if _is_repeated(action) else text
    flag = _FLAGS.get(text.lower())
    if flag is None and action.nargs == 0:
        raise _wrong(variable, f"is {text!r}; expected 1 or 0")
    return text if flag is None or (action.nargs != 0 and text.isdigit()) else flag


def _words(variable: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise _wrong(variable, f"is {text!r}; expected words as in a shell ({error})") from None


# ---- pyproject.toml


def _from_file(command: str, options: Iterable[str]) -> dict[str, Default]:
    path, table = _table()
    own = table.get(command, {})
    if not isinstance(own, dict):
        raise _wrong(f"tool.samebits.{command} in {path}", "is not a table; expected options of this command")
    names = set(options)
    found = {}
    for key, value in table.items():
        place = f"tool.samebits.{key} in {path}"
        if key in COMMANDS and isinstance(value, dict):
            continue
        if isinstance(value, dict):
            raise _wrong(
                place, f"is no command{did_you_mean(key, COMMANDS)}; expected one of {', '.join(COMMANDS)}"
            )
        if key in names:
            found[key] = Default(f"--{key}", value, place)
        elif not any(key == name for name in _options_of_others(command)):
            near = did_you_mean(key, [*names, *_options_of_others(command)])
            raise _wrong(place, f"is not an option of samebits{near}; expected a name such as `seed`")
    for key, value in own.items():
        place = f"tool.samebits.{command}.{key} in {path}"
        if key not in names:
            near = did_you_mean(key, names)
            raise _wrong(
                place, f"is not an option of samebits {command}{near}; `samebits {command} --help` has them"
            )
        found[key] = Default(f"--{key}", value, place)
    return found


def _options_of_others(command: str) -> Iterator[str]:
    """Yield the options of all other commands, whose modules are imported only if somebody asks."""
    for name in COMMANDS:
        if name != command:
            yield from filter(None, map(_name_of, command_named(name).parser().actions()))


def _table() -> tuple[str, dict[str, Any]]:
    """Return the nearest `pyproject.toml` with a table `[tool.samebits]`, upwards from the working folder."""
    try:
        folder = Path.cwd()
    except OSError:  # it was deleted
        return "", {}
    for each in (folder, *folder.parents):
        path = each / _FILE
        data = _read(path)
        if b"samebits" not in data:  # most projects; their files are not parsed
            continue
        tool = _parsed(path, data).get("tool")
        table = tool.get("samebits") if isinstance(tool, dict) else None
        if isinstance(table, dict):
            return str(path), table
        if table is not None:
            raise _wrong(f"tool.samebits in {path}", "is not a table; expected options")
    return "", {}


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    if sys.version_info >= (3, 11):  # imported where there is a file to parse
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise _wrong(str(path), f"is not TOML: {error}") from None


def _read(path: Path) -> bytes:
    try:
        with files.open_to_read(path) as file:
            data = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise _wrong(str(path), f"cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise _wrong(str(path), f"has more than {_LARGEST >> 20} MiB")
    return data


# ---- values


def _takes_bool(action: argparse.Action) -> bool:
    return action.nargs in (0, argparse.OPTIONAL)


def _is_repeated(action: argparse.Action) -> bool:
    return isinstance(action.default, list)  # the default of each option that can be repeated


def _value(action: argparse.Action, default: Default) -> Any:
    """Return what the parser would make of the value.

    Raises:
        SamebitsError: `defaults`.
    """
    value, place = default.value, default.place
    if isinstance(value, bool) and _takes_bool(action):
        return action.const if value else action.default
    if _is_repeated(action):
        values = value if isinstance(value, list) else [value]
        return [_one(action, each, place) for each in values]
    return _one(action, value, place)


def _one(action: argparse.Action, value: Any, place: str) -> Any:
    convert = action.type
    plain = (str,) if convert is None else (str, int, float)
    if action.nargs == 0 or isinstance(value, bool) or not isinstance(value, plain):
        kind = "true or false" if action.nargs == 0 else "a text" if convert is None else "a text or a number"
        raise _wrong(place, f"is {_shown(value)}; expected {kind}")
    try:
        converted = convert(str(value)) if callable(convert) else value
    except (argparse.ArgumentTypeError, ValueError, TypeError) as error:
        expected = str(error).removesuffix(f", found {str(value)!r}")  # it is said already
        raise _wrong(place, f"is {_shown(value)}; {expected}") from None
    if action.choices is not None and converted not in action.choices:
        raise _wrong(place, f"is {_shown(value)}; expected one of {', '.join(map(str, action.choices))}")
    return converted


def _shown(value: Any) -> str:
    """Return a value as TOML has it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _wrong(place: str, what: str) -> SamebitsError:
    return SamebitsError(printable(f"{place} {what}"), slug="defaults")

"""The places where switches live: environment variables, flags of torch, its compiler's configuration.

Nothing here imports torch: a flag is read and set through the torch that the script imported.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.switch_values import ANYTHING, KINDS, MIXED, as_text, from_text, unfit
from samebits.torch_private import (
    COMPILER_CONFIG,
    CORE_FLAGS,
    PRECISION_SETTER,
    WARN_ONLY_GETTER,
    core_function,
    native_filter,
    precision_functions,
)
from samebits.torch_private import config_probe as private_config_probe

if TYPE_CHECKING:
    from collections.abc import Callable


_CAN_CONTRADICT = ("matmul-precision", "matmul-allow-tf32", "cudnn-allow-tf32")
_PRECISION_SETTERS = (PRECISION_SETTER, *(CORE_FLAGS[name][1] for name in _CAN_CONTRADICT))


class Variable:
    """An environment variable.

    Args:
        variable: its name.
        pattern: a regular expression for the values that it can have.
        expected: how an error describes them.
    """

    def __init__(self, variable: str, pattern: str = ANYTHING[0], expected: str = ANYTHING[1]) -> None:
        self.variable = variable
        self.pattern = pattern
        self.expected = expected

    @property
    def module(self) -> str:
        """Always there."""
        return ""

    @property
    def setters(self) -> tuple[str, ...]:
        """Written through `os.environ`, which is watched as a whole."""
        return ()

    def missing(self) -> str:
        """Every system has environment variables."""
        return ""

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit((self.pattern, self.expected), value)

    def read(self) -> str:
        """The value, empty when it is not set."""
        return os.environ.get(self.variable, "")

    def write(self, value: str) -> None:
        """Set it for this process and those that it starts."""
        os.environ[self.variable] = value

    def restore(self, before: str) -> None:
        """Set it again, or unset it."""
        if before == self.read():
            return
        if before:
            os.environ[self.variable] = before
        else:
            os.environ.pop(self.variable, None)

    def probe(self) -> Callable[[], object] | None:
        """None: all variables are compared at once."""
        return None


class HashSeed(Variable):
    """The hash seed of this interpreter: `random`, or a number.

    A script that sets the variable changes nothing for itself, only for its children, so that what counts is
    the value at the start: `sys.flags.hash_randomization`, and on Linux `/proc/self/environ`.
    """

    def problem(self, value: str) -> str:
        """What is expected instead."""
        fits = value.isascii() and value.isdecimal() and int(value) < 2**32
        return "" if fits else self.expected

    def read(self) -> str:
        """The seed in force."""
        if not sys.flags.hash_randomization:
            return "0"
        value = _at_start(self.variable)
        return value if value.isdecimal() and int(value) else "random"

    def restore(self, before: str) -> None:
        """Nothing was changed: what is in force cannot be."""


def _at_start(name: str) -> str:
    """A variable as it was when this process started; as it is now where that cannot be known."""
    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
    except OSError:
        return os.environ.get(name, "")
    prefix = os.fsencode(name) + b"="
    found = [entry[len(prefix) :] for entry in block.split(b"\0") if entry.startswith(prefix)]
    return os.fsdecode(found[0]) if found else ""


class Flag:
    """A flag of `torch._C`.

    Args:
        flag: its name in `torch_private.CORE_FLAGS`.
        kind: what its values are; a key of `KINDS`.
    """

    def __init__(self, flag: str, kind: str = "switch") -> None:
        self.flag = flag
        self.kind = kind

    @property
    def module(self) -> str:
        """Torch."""
        return "torch"

    @property
    def setters(self) -> tuple[str, ...]:
        """The function that writes it; those of precision write each other's settings."""
        return _PRECISION_SETTERS if self.flag in _CAN_CONTRADICT else (CORE_FLAGS[self.flag][1],)

    def missing(self) -> str:
        """Whether this build has no such flag."""
        getter, setter = CORE_FLAGS[self.flag]
        if core_function(getter) is None or core_function(setter) is None:
            return "this build of torch does not have it"
        return ""

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit(KINDS[self.kind], value)

    def read(self) -> str:
        """The value as text."""
        return as_text(self._raw())

    def write(self, value: str) -> None:
        """Set it, through the setter that torch has."""
        raw = from_text(value, self._raw())
        arguments = raw if isinstance(raw, tuple) else (raw,)
        try:
            _required(CORE_FLAGS[self.flag][1])(*arguments)
        except (RuntimeError, TypeError) as error:
            raise ValueError(str(error).split("\n")[0]) from error

    def restore(self, before: str) -> None:
        """Set it to what it was; a value that torch would not tell is left alone."""
        if before not in {MIXED, self.read()}:
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """The getter itself."""
        getter = _required(CORE_FLAGS[self.flag][0])
        return _tolerant(getter) if self.flag in _CAN_CONTRADICT else getter

    def _raw(self) -> Any:
        return _tolerant(_required(CORE_FLAGS[self.flag][0]))()


class DeterministicAlgorithms:
    """`torch.use_deterministic_algorithms`, which is not called: it imports the compiler's configuration.

    That import takes 1.3 s (torch 2.13.0); `CompilerFlag` sets what it would, when the script compiles.
    """

    @property
    def module(self) -> str:
        """Torch."""
        return "torch"

    @property
    def setters(self) -> tuple[str, ...]:
        """The function that `use_deterministic_algorithms` and `set_deterministic_debug_mode` call."""
        return (CORE_FLAGS["deterministic-algorithms"][1],)

    def missing(self) -> str:
        """Every supported torch has it."""
        return ""

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit((r"on|off|warn", "`on`, `off` or `warn`"), value)

    def read(self) -> str:
        """`on`, `off`, or `warn` for `warn_only=True`."""
        if not _required(CORE_FLAGS["deterministic-algorithms"][0])():
            return "off"
        return "warn" if _required(WARN_ONLY_GETTER)() else "on"

    def write(self, value: str) -> None:
        """Set mode and `warn_only` together."""
        setter = _required(CORE_FLAGS["deterministic-algorithms"][1])
        setter(value != "off", warn_only=value == "warn")

    def restore(self, before: str) -> None:
        """Set both as they were."""
        self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """Mode and `warn_only`."""
        mode, warn_only = _required(CORE_FLAGS["deterministic-algorithms"][0]), _required(WARN_ONLY_GETTER)
        return lambda: (mode(), warn_only())


class Precision:
    """`fp32_precision` of one back end and kind of op, new in torch 2.9.

    Args:
        backend: `generic`, `cuda` or `mkldnn`.
        op: `all`, `matmul`, `conv` or `rnn`.
    """

    def __init__(self, backend: str, op: str) -> None:
        self.backend = backend
        self.op = op

    @property
    def module(self) -> str:
        """Torch."""
        return "torch"

    @property
    def setters(self) -> tuple[str, ...]:
        """The new setter, and the legacy ones that change it too (measured, torch 2.13.0)."""
        return _PRECISION_SETTERS

    def missing(self) -> str:
        """Whether this torch is older than 2.9."""
        found = precision_functions(self.backend, self.op)
        return "" if found else "this torch does not have it; it is new in 2.9"

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit(KINDS["precision"], value)

    def read(self) -> str:
        """The precision in force, `none` when nothing was chosen."""
        return self._functions()[0]()

    def write(self, value: str) -> None:
        """Choose a precision."""
        try:
            self._functions()[1](value)
        except RuntimeError as error:
            raise ValueError(str(error).split("\n")[0]) from error

    def restore(self, before: str) -> None:
        """Choose what was in force."""
        if before != self.read():
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """The getter itself."""
        return self._functions()[0]

    def _functions(self) -> tuple[Callable[[], str], Callable[[str], None]]:
        found = precision_functions(self.backend, self.op)
        if found is None:
            raise ValueError(self.missing())
        return found


class CompilerFlag:
    """An entry of the configuration of torch's compiler.

    The configuration is per thread in torch 2.13.0 (a `ContextVar`): other threads that compile follow the
    environment variable, not this.

    Args:
        entry: its name there.
        kind: what its values are; a key of `KINDS`.
    """

    def __init__(self, entry: str, kind: str = "switch") -> None:
        self.entry = entry
        self.kind = kind

    @property
    def module(self) -> str:
        """The module of the configuration: scripts that never compile never import it."""
        return COMPILER_CONFIG

    @property
    def setters(self) -> tuple[str, ...]:
        """`use_deterministic_algorithms` writes `deterministic`; other writes are seen at boundaries."""
        return (CORE_FLAGS["deterministic-algorithms"][1],) if self.entry == "deterministic" else ()

    def missing(self) -> str:
        """Whether this torch has no such entry."""
        return "" if hasattr(self._config(), self.entry) else "the compiler of this torch does not have it"

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit(KINDS[self.kind], value)

    def read(self) -> str:
        """The value as text."""
        return as_text(getattr(self._config(), self.entry))

    def write(self, value: str) -> None:
        """Set it."""
        setattr(self._config(), self.entry, from_text(value, getattr(self._config(), self.entry)))

    def restore(self, before: str) -> None:
        """Set it to what it was."""
        if before != self.read():
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """What changes when it is written."""
        return private_config_probe(self._config(), self.entry)

    @staticmethod
    def _config() -> Any:
        return sys.modules[COMPILER_CONFIG]


class NativeKernels:
    """Which of torch's kernels in Triton or CuteDSL are disabled (`torch.backends.python_native`, 2.13)."""

    @property
    def module(self) -> str:
        """Torch."""
        return "torch"

    @property
    def setters(self) -> tuple[str, ...]:
        """None that can be watched: changes are seen at boundaries."""
        return ()

    def missing(self) -> str:
        """Whether this torch has no such kernels."""
        return "" if native_filter() is not None else "this torch does not have it"

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit(KINDS["names"], value)

    def read(self) -> str:
        """Names of disabled languages, and `op:NAME` of disabled operators."""
        languages, operators = self._disabled()
        return ",".join([*sorted(languages), *(f"op:{name}" for name in sorted(operators))]) or "none"

    def write(self, value: str) -> None:
        """Disable exactly these."""
        native: Any = importlib.import_module("torch.backends.python_native")
        wanted = set() if value == "none" else set(value.split(","))
        languages = {name for name in wanted if not name.startswith("op:")}
        unknown = languages - set(native.all_dsls)
        if unknown:
            raise ValueError(f"expected `none` or some of {', '.join(native.all_dsls)}")
        for name in native.all_dsls:
            controller = getattr(native, name)
            if controller.enabled == (name in languages):
                controller.enabled = name not in languages
        operators = {name[3:] for name in wanted - languages}
        disabled = set(self._disabled()[1])
        if operators - disabled:
            native.disable_operations(*sorted(operators - disabled))
        if disabled - operators:
            native.enable_operations(*sorted(disabled - operators))

    def restore(self, before: str) -> None:
        """Disable what was disabled."""
        if before != self.read():
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """The names."""
        languages, operators = self._disabled()
        return lambda: (*languages, *operators)

    @staticmethod
    def _disabled() -> tuple[set[str], set[str]]:
        found = native_filter()
        return getattr(found, "_dsl_names", set()), getattr(found, "_op_symbols", set())


def _tolerant(getter: Callable[[], Any]) -> Callable[[], Any]:
    """The getter, giving `mixed` where torch raises "you have used mix of the legacy and new APIs"."""

    def get() -> Any:
        try:
            return getter()
        except RuntimeError:  # aten/src/ATen/Context.cpp, 2.9 and later
            return MIXED

    return get


def _required(name: str) -> Callable[..., Any]:
    """A function of `torch._C` that `missing` found there."""
    found = core_function(name)
    if found is None:
        raise ValueError("this build of torch does not have it")
    return found

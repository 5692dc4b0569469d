"""Variables of the user's code, such as counters, running averages and generators.

They are evidence of what a resumed run did not restore; no verdict depends on them. They are read without
running the user's code: by exact types, and by the attributes that an object itself holds.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import LIBRARY, USER, FrameRanks, pass_on
from samebits._torch.core import is_virtual, version_of
from samebits.digest import digest_bytes, digest_many
from samebits.recording._recorder import is_tensor
from samebits.rng.generator_objects import family_of, read

if TYPE_CHECKING:
    from types import FrameType

_MOST_FRAMES, _MOST_VALUES, _MOST_VISITED, _DEPTH = 8, 2000, 20_000, 4
_MOST_ITEMS, _MOST_NUMBERS = 32, 10_000  # of a container: looked into; of plain numbers: digested
_MOST_BYTES = 1 << 26  # of a tensor
_SIZED = (list, dict, deque)  # a replay buffer that is empty again
_PLAIN = (int, float, bool, complex, type(None))
_LOADER_PARTS = ("dataset", "sampler", "batch_sampler", "generator")
# Either the state has these already, or they hold nothing to restore.
_PASSED_OVER = ("builtins", "argparse", "logging", "threading", "pathlib", "torch", "numpy", "functools")
_TORCH_PARTS = ("torch.utils.data", "torch.optim.swa_utils")


class Variables:
    """Finds the variables of the frames of user code on the stack."""

    def __init__(self) -> None:
        self._ranks = FrameRanks()
        self._last: dict[str, str] = {}
        self._own: dict[str, bool] = {}  # by module
        self._digests: dict[int, tuple[weakref.ref[Any], int, int, str]] = {}  # by id: version, address, text

    def changes(self, frame: FrameType | None) -> dict[str, str | None]:
        """Return the variables that have changed since the last call, by name; None for one that is gone.

        Args:
            frame: where to begin; the frames above it are looked at too.
        """
        now = self._collect(frame)
        changed: dict[str, str | None] = {n: text for n, text in now.items() if self._last.get(n) != text}
        changed |= dict.fromkeys(self._last.keys() - now.keys())
        self._last = now
        return changed

    def _collect(self, frame: FrameType | None) -> dict[str, str]:
        values: dict[str, str] = {}
        waiting: deque[tuple[str, Any, int, bool]] = deque()
        frames = 0
        while frame is not None and frames < _MOST_FRAMES:
            if self._ranks.of(frame) == USER:
                frames += 1
                function = frame.f_code.co_name
                prefix = "" if function == "<module>" else f"{function}: "
                named = [(name, value) for name, value in list(frame.f_locals.items()) if name[:2] != "__"]
                waiting += [(prefix + name, value, 0, True) for name, value in named]
            frame = frame.f_back
        seen: set[int] = set()
        for _ in range(_MOST_VISITED):  # breadth first: what is nearest comes first
            if not waiting or len(values) >= _MOST_VALUES:
                break
            name, value, depth, is_own = waiting.popleft()
            if is_own and type(value) in _SIZED:
                values.setdefault(f"{name} (length)", str(len(value)))
            text = self._text_if_any(value)
            if text is not None:
                if is_own or text.startswith("generator "):
                    values.setdefault(name, text)
            elif depth < _DEPTH and id(value) not in seen:
                seen.add(id(value))
                owns = self._is_own(type(value), is_own)
                waiting += [(f"{name}{part}", item, depth + 1, owns) for part, item in _parts(value)]
        return values

    def _is_own(self, kind: type[Any], is_own: bool) -> bool:  # noqa: FBT001 - of what holds it
        """Tell whether an object's contents are the user's: of a library's only generators are kept."""
        module = str(kind.__module__)
        if module == "builtins":
            return is_own
        known = self._own.get(module)
        if known is None:
            file = getattr(sys.modules.get(module), "__file__", None)
            known = self._own[module] = file is None or self._ranks.rank_of_file(file) != LIBRARY
        return known

    def _text_if_any(self, value: Any) -> str | None:
        try:
            return self._text(value)
        except Exception as error:  # noqa: BLE001 - a tensor without memory, an object that is half made
            pass_on(error)
            return None

    def _text(self, value: Any) -> str | None:
        """Return a value in short; None for a container, or a value that has no exact text."""
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)[:80]
        if is_tensor(value):
            return self._tensor(value)
        if family_of(value):
            return f"generator {_state_text(value)}"
        if kind.__module__ == "numpy":
            return _array(value)
        if kind in (list, tuple) and _MOST_ITEMS < len(value) <= _MOST_NUMBERS:
            numbers = all(type(item) in _PLAIN for item in value)
            return f"{kind.__name__} of {len(value)} {_short(repr(value).encode())}" if numbers else None
        return None

    def _tensor(self, value: Any) -> str:
        """Return the digest of a tensor; it is taken again only where the version has changed."""
        if is_virtual(value) or value.numel() * value.element_size() > _MOST_BYTES:
            return "tensor"
        version, address = version_of(value), value.data_ptr() if value.layout is _strided() else 0
        known = self._digests.get(id(value))
        if known is not None and known[0]() is value and known[1:3] == (version, address):
            return known[3]
        shape = "x".join(map(str, value.shape))
        text = f"tensor {str(value.dtype).removeprefix('torch.')}[{shape}] {digest_many([value])[:8].hex()}"
        if len(self._digests) > _MOST_VALUES:
            self._digests.clear()
        self._digests[id(value)] = (weakref.ref(value), version, address, text)
        return text


def _strided() -> Any:
    return getattr(sys.modules["torch"], "strided")  # noqa: B009 - torch is there: no import in this module


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return the items or attributes of an object, each with its subscript or attribute text."""
    kind = type(value)
    if kind in (list, tuple):
        return [(f"[{i}]", item) for i, item in enumerate(value)] if len(value) <= _MOST_ITEMS else []
    if kind is dict or issubclass(kind, dict):
        keys = list(dict.keys(value))[: 4 * _MOST_ITEMS]
        return [(f"[{key!r}]", dict.__getitem__(value, key)) for key in keys if type(key) in (str, int)]
    module = kind.__module__
    if not isinstance(module, str) or issubclass(kind, type) or _is_passed_over(kind, module):
        return []
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    if type(own) is not dict:
        return []
    names = _LOADER_PARTS if module.startswith("torch.utils.data.dataloader") else list(own)
    return [(f".{name}", own[name]) for name in names[: 4 * _MOST_ITEMS] if name in own]


def _is_passed_over(kind: type[Any], module: str) -> bool:
    if module.startswith(_TORCH_PARTS):
        return False
    if hasattr(kind, "named_parameters") or hasattr(kind, "zero_grad"):
        return True  # modules and optimizers
    return module.partition(".")[0] in _PASSED_OVER or module in sys.stdlib_module_names


def _state_text(generator: Any) -> str:
    state = read(generator)
    data = bytes(state.tolist()) if is_tensor(state) else repr(state).encode()
    return _short(data)


def _array(value: Any) -> str | None:
    if not hasattr(value, "tobytes") or value.dtype.hasobject or value.nbytes > _MOST_BYTES:
        return None
    if not value.shape:
        return repr(value.item())
    return f"array {value.dtype}{list(value.shape)} {_short(value.tobytes())}"


def _short(data: bytes) -> str:
    return digest_bytes(data)[:8].hex()

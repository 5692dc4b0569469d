"""What ops read and write, without reading again what only recorded ops can have changed since.

docs/reference/recording.md says which storages are trusted, and what ends that.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Protocol

from samebits._runtime.builtin_proxies import leave_no_line, unseen
from samebits._runtime.patching import Patches
from samebits._text import variable_names
from samebits._torch.unseen import COUNTERLESS, pointer_functions
from samebits.digest import observe_later
from samebits.digest.native import open_calls, open_observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits._reader import Calls
    from samebits.digest.pending import Digests

    # Digests of tensors, their dtypes and shapes, where their storages begin.
    Observed = tuple[Digests, bytes, bytes]

# What they return is to be filled by something else, which may not be an op.
UNFILLED = frozenset((
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::empty_permuted", "aten::new_empty",
    "aten::new_empty_strided", "aten::empty_quantized", "aten::from_file", "aten::_pin_memory",
))  # fmt: skip


class Observer(Protocol):
    """**Protocol:** reads the tensors of ops, as bindings/observe.c; None for those that it cannot read."""

    def observe(self, tensors: Sequence[Any], n_inputs: int, births: bool, /) -> Observed | None:  # noqa: FBT001
        """Observe the inputs and outputs of an op that wrote to no argument."""

    def begin(self, inputs: Sequence[Any], written: Sequence[Any], /) -> tuple[Observed, bytes] | None:
        """Observe the inputs of an op that will write to some of them."""

    def finish(
        self,
        outputs: Sequence[Any],
        written: Sequence[Any],
        bases: bytes,
        marks: bytes,
        births: bool,  # noqa: FBT001
        /,
    ) -> Observed | None:
        """Observe the outputs of that op."""

    def expose(self, tensor: Any, /) -> None:
        """Never trust the storage of a tensor again."""

    def forget(self) -> None:
        """Read everything again."""


class _ReadsAll:
    """Observes by reading."""

    def observe(self, tensors: Sequence[Any], _n_inputs: int, _births: bool, /) -> Observed:  # noqa: FBT001
        return observe_later(tensors)

    def begin(self, inputs: Sequence[Any], _written: Sequence[Any], /) -> tuple[Observed, bytes]:
        return observe_later(inputs), b""

    def finish(self, outputs: Sequence[Any], *_: Any) -> Observed:
        return observe_later(outputs)

    def expose(self, tensor: Any, /) -> None:
        """Nothing is trusted."""

    def forget(self) -> None:
        """Nothing is known."""


class Contents:
    """The contents of storages, as far as they are known.

    Tensors that the fast reader cannot read may share memory with others in ways that it does not see, or be
    written to by a device: with them, everything is forgotten, and their storages are not trusted again.

    Args:
        reads_all: whether to trust nothing.
    """

    def __init__(self, *, reads_all: bool = False) -> None:
        observer = None if reads_all or os.environ.get(variable_names.READ_ALL) else open_observer()
        self._observer = observer
        self._fast: Observer = _ReadsAll() if observer is None else observer
        self._patches = Patches()
        self._trusts = observer is not None

    def install(self, torch: Any) -> None:
        """Watch what gives the address of a tensor's memory to code that torch does not see."""
        if self._trusts:
            for owner, name in pointer_functions(torch):
                self._patches.set(owner, name, _exposing(getattr(owner, name), self._fast.expose))
            aliased = _Aliased(getattr(torch.Tensor, COUNTERLESS), self._fast.expose)
            self._patches.set(torch.Tensor, COUNTERLESS, aliased)

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def calls(self, memory: Any, next_seq: Callable[[], int], name_of: Callable[[Any], str]) -> Calls | None:
        """Return what sees a call of an op at once, with these contents; None where nothing can.

        Args:
            memory: links tensors to the events that wrote them.
            next_seq: gives the number of the next event.
            name_of: gives the text of an argument that is neither a tensor nor a number.
        """
        return None if self._observer is None else open_calls(self._observer, memory, next_seq, name_of)

    def observe(self, tensors: list[Any], n_inputs: int, *, births: bool) -> Observed:
        """Observe the inputs and outputs of an op that wrote to no argument.

        Args:
            tensors: inputs, then outputs.
            n_inputs: the number of inputs.
            births: whether an output with a storage that is not an input's has a new one, now filled.

        Returns:
            As `samebits.digest.observe_later`.
        """
        return self._fast.observe(tensors, n_inputs, births) or self._slowly(tensors)

    def begin(self, inputs: list[Any], written: list[Any]) -> tuple[Observed, bytes]:
        """Observe the inputs of an op before it writes to some of them; the second part is for `finish`."""
        seen = self._fast.begin(inputs, written)
        return (self._slowly(inputs), b"") if seen is None else seen

    def finish(
        self, outputs: list[Any], written: list[Any], before: tuple[Observed, bytes], *, births: bool
    ) -> Observed:
        """Observe the outputs of the op and the arguments that it wrote to, given what `begin` returned."""
        (_, _, bases), marks = before
        seen = self._fast.finish(outputs, written, bases, marks, births)
        return self._slowly(outputs) if seen is None else seen

    def distrust(self, tensors: Sequence[Any]) -> None:
        """Never trust the storages of tensors again: something beside torch's own ops has got them."""
        for tensor in tensors:
            self._fast.expose(tensor)

    def forget(self) -> None:
        """Read everything again: something may have written to any storage."""
        self._fast.forget()

    def _slowly(self, tensors: list[Any]) -> Observed:
        self.distrust(tensors)
        self.forget()
        return observe_later(tensors)


class _Aliased:
    """Replaces an attribute by which two tensors share memory and count their versions apart.

    Args:
        original: looked up in the class, it is what one gets.
        expose: told of each tensor whose memory is shared.
    """

    def __init__(self, original: Any, expose: Callable[[Any], None]) -> None:
        self._original = original
        self._expose = expose

    def __get__(self, tensor: Any, owner: type[Any] | None = None) -> Any:
        if tensor is None:
            return self._original
        self._expose(tensor)
        return self._original.__get__(tensor, owner)

    def __set__(self, tensor: Any, value: Any) -> None:
        self._expose(value)
        self._original.__set__(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        self._original.__delete__(tensor)


def _exposing(function: Any, expose: Callable[[Any], None]) -> Any:
    """Return a wrapper of a function that hands out the address of its first argument."""

    @functools.wraps(function)
    def exposed(*args: Any, **kwargs: Any) -> Any:
        for tensor in args[:1]:
            expose(tensor)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return unseen(exposed)

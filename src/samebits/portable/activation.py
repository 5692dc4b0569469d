"""Entering and leaving portable mode in a thread and those it starts, and patches of what would bypass it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.compiled_code import compiled_code_runs_eagerly
from samebits._runtime.patching import Patches
from samebits._runtime.processes import start_within
from samebits._torch.compiler import optimize_scripts
from samebits._torch.portable import choices_of_steps, use_cudnn
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.portable._callbacks import callbacks_within
from samebits.portable._compilers import (
    hide_from_loaded_compiler,
    programs_refused,
    refused_compile,
)
from samebits.portable._devices import CUDA, device_types
from samebits.portable._dispatch import PortableMode, is_portable
from samebits.portable._early_refusals import early_ops_to, refuse
from samebits.portable._noted_reductions import note_reductions
from samebits.portable._registration import following_libraries
from samebits.portable._threads import work_within
from samebits.portable.backends.library import BACKEND_VARIABLE, load
from samebits.portable.device_casts import casts_as_on_cpu
from samebits.portable.device_exactness import exact_on_gpu
from samebits.portable.gradients import own_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Compute with portable numerics inside the block: the same bits anywhere (docs/reference/portable.md).

    It holds for this thread, for threads that are started inside the block, and for processes that are forked
    there. For a whole script and the processes that it spawns, use `samebits run --portable script.py`.

    Raises:
        SamebitsError: inside the block, for an op without portable values (`portable-op`), for a tensor
            without them (`portable-tensor`) and for compiled code (`portable-compiled`). On entering, where
            subnormal numbers are flushed to zero (`portable-subnormals`), and if `SAMEBITS_PORTABLE_BACKEND`
            asks for kernels that are not there (`portable-backend`). On leaving, where portable mode has been
            off meanwhile (`portable-left`).
    """
    activation = PortableActivation()
    activation.start()
    try:
        yield
    finally:
        activation.stop()


class PortableActivation:
    """One activation of portable mode, in the thread that starts it and in threads started from then on.

    torch keeps dispatch modes per thread. A forked process has the mode of the thread that forked; any other
    process has to start it.

    Activations nest; each is stopped in the thread that started it, the last one first.
    """

    def __init__(self) -> None:
        self._mode: PortableMode | None = None
        self._patches = Patches()
        self._paths = contextlib.ExitStack()

    @property
    def running(self) -> bool:
        """Tell whether it was started and not stopped."""
        return self._mode is not None

    def start(self) -> None:
        """Enter portable mode. Does nothing when it is running.

        Raises:
            SamebitsError: if subnormal numbers are flushed to zero here, or the user asks for kernels that
                are not there.
        """
        if self._mode is not None:
            return
        check_subnormals()
        _warn_without_kernels()
        hide_from_loaded_compiler()
        mode = PortableMode()
        self._patches.set(threading.Thread, "start", start_within(threading.Thread.start, _in_portable_mode))
        self._patches.set(torch, "set_flush_denormal", _watched_flush(torch.set_flush_denormal))
        for owner, attribute, name in (
            (torch, "compile", "torch.compile"),
            (torch.nn.Module, "compile", "nn.Module.compile"),
            (torch.jit, "trace", "torch.jit.trace"),  # it would take a kernel's calls for ops of the model
            (torch.jit, "trace_module", "torch.jit.trace_module"),
        ):
            self._patches.set(owner, attribute, refused_compile(getattr(owner, attribute), name))
        for module, name in choices_of_steps() if CUDA in device_types() else ():
            self._patches.set(module, name, _as_on_cpu(getattr(module, name)))
        note_reductions(self._patches)
        callbacks_within(self._patches, _in_portable_mode)
        work_within(self._patches, _in_portable_mode)
        try:
            self._paths.enter_context(layers_op_by_op())
            self._paths.enter_context(compiled_code_runs_eagerly())
            self._paths.enter_context(programs_refused())
            follow = self._paths.enter_context(early_ops_to(refuse))
            self._paths.enter_context(following_libraries(follow))
            self._paths.enter_context(own_gradients())
            self._paths.enter_context(exact_on_gpu().held())
            self._paths.enter_context(casts_as_on_cpu().held())
            mode.__enter__()
        except BaseException:
            self._put_back()
            raise
        self._mode = mode

    def stop(self) -> None:
        """Leave portable mode and put everything back. Does nothing when it is not running.

        Raises:
            SamebitsError: if subnormal numbers have been flushed to zero meanwhile, or this thread has left
                portable mode.
        """
        if self._mode is None:
            return
        was_left = not is_portable()
        mode, self._mode = self._mode, None
        mode.__exit__(None, None, None)
        self._put_back()
        check_subnormals()
        if was_left:
            raise SamebitsError(
                "portable mode was off when its block ended, so what was computed last may not be portable: "
                "leave the block in the thread that entered it, and change no dispatch keys or modes in it",
                slug="portable-left",
            )

    def _put_back(self) -> None:
        self._paths.close()
        self._patches.restore()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self.stop()
        except SamebitsError:
            if kind is None:  # otherwise the script's own error says more
                raise


def _warn_without_kernels() -> None:
    if load() is None and os.environ.get(BACKEND_VARIABLE) != "reference":
        warnings.warn(
            "this installation has no C kernels: portable mode gives the same bits without them, but much "
            "slower; install samebits where there is a C compiler",
            SamebitsWarning,
            stacklevel=4,
        )


def check_subnormals() -> None:
    """Check that the processor of this thread keeps subnormal numbers.

    Raises:
        SamebitsError: if it flushes them to zero.
    """
    smallest = sys.float_info.min  # half of it is subnormal
    if smallest / 2 == 0:
        raise SamebitsError(
            "numbers below 2.3e-308 (1.2e-38 in float32) are flushed to zero here, and portable mode keeps "
            "them: remove torch.set_flush_denormal(True), or the library that was built with -ffast-math",
            slug="portable-subnormals",
        )


def _in_portable_mode(run: Callable[[], Any]) -> Any:
    if is_portable():
        return run()
    with own_gradients(), exact_on_gpu().held(), casts_as_on_cpu().held(), PortableMode(again=True):
        return run()


def _as_on_cpu(choose: Callable[..., tuple[bool, bool]]) -> Callable[..., tuple[bool, bool]]:
    """Have optimizers step tensor by tensor, as they do on the CPU, unless they are told otherwise."""

    @functools.wraps(choose)
    def run(*args: Any, **kwargs: Any) -> tuple[bool, bool]:
        fused, _ = choose(*args, **kwargs)
        return fused, False

    return run


def _watched_flush(setter: Callable[[bool], bool]) -> Callable[[bool], bool]:
    @functools.wraps(setter)
    def set_flush_denormal(mode: bool) -> bool:  # noqa: FBT001 - the parameter of torch
        if mode:
            raise SamebitsError(
                "torch.set_flush_denormal(True) flushes subnormal numbers to zero, and portable mode keeps "
                "them: remove the call, or run without portable mode",
                slug="portable-subnormals",
            )
        return setter(mode)

    return set_flush_denormal


@contextlib.contextmanager
def layers_op_by_op() -> Iterator[None]:
    """Turn torch's short cuts for whole layers off for all threads, and afterwards back to what they were.

    The layers then arrive op by op:

    - The oneDNN LSTM (`mkldnn_rnn_layer`) is one op for a layer and all its steps, and adds in another order.
    - The fast paths of `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` for
      inference are one op for a layer, and make nested tensors of padded batches.
    - TorchScript optimizes a graph after its first call: it has other formulas for gradients from then on.
    - cuDNN's layers, on a GPU, are ops of their own: recurrent layers, batch norm, the CTC loss.
    """
    mha = torch.backends.mha
    before = mha.get_fastpath_enabled(), _use_onednn(wanted=False), optimize_scripts(wanted=False)
    cudnn = use_cudnn(wanted=False)
    mha.set_fastpath_enabled(value=False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(value=before[0])
        _use_onednn(wanted=before[1])
        optimize_scripts(wanted=before[2])
        use_cudnn(wanted=cudnn)


def _use_onednn(*, wanted: bool) -> bool:
    """Set whether oneDNN may be used, and nothing else about it. Return what was set before."""
    # The attribute `enabled` cannot be set once anybody has called disable_global_flags, as torch's tests do.
    set_flags: Any = torch.backends.mkldnn.set_flags
    try:
        return bool(set_flags(wanted, None, None, None)[0])
    except TypeError:  # releases before fp32_precision
        return bool(set_flags(wanted)[0])

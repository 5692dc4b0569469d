"""The switches that are flags of torch: how they are read and written, and the table of them.

Nothing here imports torch: a flag is read and set through the torch that the script imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from samebits._torch.core import (
    CORE_FLAGS,
    PRECISION_SETTER,
    WARN_ONLY_GETTER,
    core_function,
    native_filter,
    precision_functions,
)
from samebits.environment.influence import BY_ONEDNN, BY_THREADS, Results
from samebits.switches.switch import (
    BOTH,
    CONTEXT,
    KINDS,
    MEASURED,
    MIXED,
    PORTABLE,
    TITAN,
    TORCH,
    Handle,
    Switch,
    When,
    affecting,
    as_text,
    from_text,
)
from samebits.switches.vector_math import VectorMath

if TYPE_CHECKING:
    from collections.abc import Callable

_CAN_CONTRADICT = ("matmul-precision", "matmul-allow-tf32", "cudnn-allow-tf32")
_PRECISION_SETTERS = (PRECISION_SETTER, *(CORE_FLAGS[name][1] for name in _CAN_CONTRADICT))
_SDPA = "attention back ends round differently, and torch chooses one by shapes and hardware"
_KERNEL = "it can select another kernel, which rounds differently"
_SHORT = "partial sums are rounded to 16 bits"


class Flag(Handle):
    """A flag of `torch._C`.

    Args:
        flag: its name in `_torch.core.CORE_FLAGS`.
        kind: the kind of its values, a key of `KINDS`.
    """

    module = "torch"

    def __init__(self, flag: str, kind: str = "switch") -> None:
        self.flag = flag
        self.values = KINDS[kind]
        # The setters of precision change each other's settings.
        self.setters = _PRECISION_SETTERS if flag in _CAN_CONTRADICT else (CORE_FLAGS[flag][1],)

    def missing(self) -> str:
        """Return why the build does not have the flag, empty when it does."""
        getter, setter = CORE_FLAGS[self.flag]
        if core_function(getter) is None or core_function(setter) is None:
            return "this build of torch does not have it"
        return ""

    def read(self) -> str:
        """Return the value as text."""
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
        """Set the earlier value, unless torch refused to tell it."""
        if before not in {MIXED, self.read()}:
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """Return the getter itself."""
        getter = _required(CORE_FLAGS[self.flag][0])
        return _tolerant(getter) if self.flag in _CAN_CONTRADICT else getter

    def _raw(self) -> Any:
        return _tolerant(_required(CORE_FLAGS[self.flag][0]))()


class DeterministicAlgorithms(Handle):
    """The flag of `torch.use_deterministic_algorithms`, set without calling that function.

    It would import the compiler's configuration, which takes 1.3 s (torch 2.13.0). `CompilerFlag` sets
    that configuration once the script has imported it.
    """

    module = "torch"
    # The function that `use_deterministic_algorithms` and `set_deterministic_debug_mode` call.
    setters = (CORE_FLAGS["deterministic-algorithms"][1],)
    values = (r"on|off|warn", "`on`, `off` or `warn`")

    def read(self) -> str:
        """Return `on`, `off`, or `warn` for `warn_only=True`."""
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
        """Return a function that reads mode and `warn_only`."""
        mode, warn_only = _required(CORE_FLAGS["deterministic-algorithms"][0]), _required(WARN_ONLY_GETTER)
        return lambda: (mode(), warn_only())


class Precision(Handle):
    """`fp32_precision` of one back end and kind of op, new in torch 2.9.

    Args:
        backend: `generic`, `cuda` or `mkldnn`.
        op: `all`, `matmul`, `conv` or `rnn`.
    """

    module = "torch"
    setters = _PRECISION_SETTERS  # the legacy ones change it too (measured, torch 2.13.0)
    values = KINDS["precision"]

    def __init__(self, backend: str, op: str) -> None:
        self.backend = backend
        self.op = op

    def missing(self) -> str:
        """Return why this torch does not have it, empty when it does."""
        functions = precision_functions(self.backend, self.op)
        return "" if functions else "this torch does not have it; it is new in 2.9"

    def read(self) -> str:
        """Return the precision in force, `none` when nothing was chosen."""
        return self._functions()[0]()

    def write(self, value: str) -> None:
        """Choose a precision."""
        try:
            self._functions()[1](value)
        except RuntimeError as error:
            raise ValueError(str(error).split("\n")[0]) from error

    def probe(self) -> Callable[[], object] | None:
        """Return the getter itself."""
        return self._functions()[0]

    def _functions(self) -> tuple[Callable[[], str], Callable[[str], None]]:
        functions = precision_functions(self.backend, self.op)
        if functions is None:
            raise ValueError(self.missing())
        return functions


class NativeKernels(Handle):
    """Torch's kernels in Triton or CuteDSL that are disabled (`torch.backends.python_native`, 2.13)."""

    module = "torch"
    values = KINDS["names"]

    def missing(self) -> str:
        """Return why this torch does not have them, empty when it does."""
        return "" if native_filter() is not None else "this torch does not have it"

    def read(self) -> str:
        """Return the names of disabled languages, and `op:NAME` for disabled operators."""
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

    def probe(self) -> Callable[[], object] | None:
        """Return a function that gives the disabled names."""
        languages, operators = self._disabled()
        return lambda: (*languages, *operators)

    @staticmethod
    def _disabled() -> tuple[set[str], set[str]]:
        kernels = native_filter()
        return getattr(kernels, "_dsl_names", set()), getattr(kernels, "_op_symbols", set())


def _tolerant(getter: Callable[[], Any]) -> Callable[[], Any]:
    """Wrap the getter: it gives `mixed` where torch raises "you have used mix of the legacy and new APIs"."""

    def get() -> Any:
        try:
            return getter()
        except RuntimeError:  # aten/src/ATen/Context.cpp, 2.9 and later
            return MIXED

    return get


def _required(name: str) -> Callable[..., Any]:
    """Return a function of `torch._C`.

    Raises:
        ValueError: this build does not have it.
    """
    function = core_function(name)
    if function is None:
        raise ValueError("this build of torch does not have it")
    return function


def _held(name: str, why: str, source: str, kind: str = "switch") -> Switch:
    return Switch(name, Flag(name, kind), When.ANY, None, PORTABLE, why, source)


def _precision(name: str, backend: str, op: str) -> Switch:
    why = "TF32 and bf16 drop bits of float32 inputs, on hardware that has them"
    return Switch(name, Precision(backend, op), When.ANY, None, PORTABLE, why, CONTEXT)


ALGORITHMS = (
    Switch(
        "deterministic-algorithms",
        DeterministicAlgorithms(),
        When.ANY,
        "on",
        BOTH,
        "some ops add with atomics; `warn` leaves the backward pass of fused attention nondeterministic",
        TORCH + "; call sites in libtorch_cuda 2.15",
        cost="slower kernels of some ops; the few that have no other kernel raise an error",
        default="off",
    ),
    Switch(
        "fill-uninitialized",
        Flag("fill-uninitialized"),
        When.ANY,
        "on",
        BOTH,
        "memory read before it is written can hold anything; when filled, it holds NaN or the largest number",
        "torch.utils.deterministic docs; pytorch#193317",
        cost="up to about 15 % of a step on a GPU (Megatron-LM#6253): torch.empty becomes torch.full",
        default="on",
    ),
    Switch(
        "cudnn-deterministic",
        Flag("cudnn-deterministic"),
        When.ANY,
        "on",
        BOTH,
        "cuDNN may pick convolutions that add with atomics; deterministic-algorithms does not set this",
        TORCH,
        cost="slower convolutions",
        default="off",
        affects=(Results.CUDA,),
    ),
    Switch(
        "cudnn-benchmark",
        Flag("cudnn-benchmark"),
        When.ANY,
        "off",
        BOTH,
        "convolution kernels are chosen by timing them, and each rounds differently",
        TORCH,
        cost="convolutions of fixed shapes are not tuned",
        default="off",
        affects=(Results.CUDA,),
    ),
    Switch(
        "mkldnn-deterministic",
        Flag("mkldnn-deterministic"),
        When.ANY,
        "on",
        BOTH,
        "oneDNN may pick primitives that add in whatever order the parts are completed",
        "oneDNN docs, primitive attributes: deterministic mode",
        default="off",
        affects=BY_ONEDNN,
    ),
    Switch(
        "prepare-vector-math",
        VectorMath(),
        When.ANY,
        "on",
        BOTH,
        "threads that make the first call of MKL's `sqrt`, `exp` or `log` at once may get a kernel of low "
        "accuracy",
        "pytorch#188792; measured, torch 2.13.0 under load",
        default="off",
        affects=(Results.ACTIVATIONS,),
    ),
)
CUDNN = (
    _held("cudnn-enabled", "without cuDNN, other kernels run", CONTEXT),
    _held("cudnn-benchmark-limit", "it limits how many kernels are timed", "torch.backends docs", "limit"),
    _held("cudnn-depthwise-kernel", _KERNEL, CONTEXT, "word"),
)
ONEDNN = (_held("mkldnn-enabled", "without oneDNN, other kernels run", MEASURED),)
# The legacy settings before the new ones: setting the former changes the latter, never the reverse (measured,
# torch 2.13.0), and switches are set and restored in the order of the table.
PRECISION = (
    _held(
        "matmul-precision",
        "it allows TF32 or bf16 in products of float32",
        "torch.set_float32_matmul_precision",
        "matmul",
    ),
    _held("matmul-allow-tf32", "TF32 drops 13 bits of float32 inputs", CONTEXT),
    _held("cudnn-allow-tf32", "TF32 drops 13 bits of float32 inputs; on by default", CONTEXT),
    _precision("fp32-generic", "generic", "all"),
    _precision("fp32-cudnn", "cuda", "all"),
    _precision("fp32-cuda-matmul", "cuda", "matmul"),
    _precision("fp32-cudnn-conv", "cuda", "conv"),
    _precision("fp32-cudnn-rnn", "cuda", "rnn"),
    _precision("fp32-mkldnn", "mkldnn", "all"),
    _precision("fp32-mkldnn-matmul", "mkldnn", "matmul"),
    _precision("fp32-mkldnn-conv", "mkldnn", "conv"),
    _precision("fp32-mkldnn-rnn", "mkldnn", "rnn"),
    _held("matmul-fp16-reduction", _SHORT, TITAN, "reduction"),
    _held("matmul-bf16-reduction", _SHORT, TITAN, "reduction"),
    _held("matmul-fp16-accumulation", "products are summed in 16 bits", CONTEXT),
    _held("cpu-fp16-reduction", _SHORT, CONTEXT),
)
LIBRARY_CHOICE = (
    _held("blas-library", "cuBLAS and cuBLASLt round differently", "torch.backends.cuda docs", "word"),
    _held("linalg-library", "cuSOLVER and MAGMA round differently", "torch.backends.cuda docs", "word"),
    _held("cublaslt-grouped-gemm", _KERNEL, "aten/src/ATen/Context.h, 2.15"),
    _held(
        "sm-carveout",
        "kernels split their sums by the number of multiprocessors that they may use",
        CONTEXT,
        "optional",
    ),
    Switch(
        "native-kernels",
        NativeKernels(),
        When.ANY,
        None,
        PORTABLE,
        "kernels in Triton or CuteDSL replace torch's own where those packages are installed",
        "torch/backends/python_native, 2.13.0",
    ),
)
ATTENTION = (
    _held("sdpa-flash", _SDPA, TORCH),
    _held("sdpa-mem-efficient", _SDPA, TORCH),
    _held("sdpa-math", _SDPA, TORCH),
    _held("sdpa-cudnn", _SDPA, TORCH),
    _held("sdpa-fa3", _SDPA, CONTEXT),
    _held("sdpa-overrideable", _SDPA, CONTEXT),
    _held("sdpa-order", _SDPA, CONTEXT, "order"),
    _held("sdpa-math-reduction", _SHORT, "torch.backends.cuda docs"),
)
THREADS = (
    _held("threads", "sums are split among the threads, so their number changes the bits", MEASURED, "count"),
    _held("interop-threads", "scripted code may run in parallel", "PyTorch docs, CPU threading", "count"),
)
FLAGS = (
    *ALGORITHMS,
    *affecting((Results.CUDA,), CUDNN),
    *affecting(BY_ONEDNN, ONEDNN),
    *affecting((Results.PRODUCTS, Results.CONVOLUTIONS, Results.RECURRENT), PRECISION),
    *affecting((Results.CUDA,), LIBRARY_CHOICE),
    *affecting((Results.ATTENTION,), ATTENTION),
    *affecting(BY_THREADS, THREADS),
)

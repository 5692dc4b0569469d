"""Every name that PyTorch does not document and samebits uses, and what happens when it is missing.

Each function looks its name up at run time and falls back, so that a release of torch without it costs
precision of the report, never a wrong verdict. Read in torch 2.6.0 and 2.13.0.
"""

from __future__ import annotations

import struct
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

COMPILER = "torch._dynamo"  # the compiler of `torch.compile`; under another name it compiles in portable mode
# Holds the rules by which torch.compile leaves code alone; see `hide_from_compiler`.
COMPILER_RULES = "torch._dynamo.trace_rules"
# What torch puts around functions that it does not compile, `manual_seed` among them, when its compiler is
# loaded; under other names, calls that seed are not recorded from then on.
COMPILER_WRAPPERS = ("torch._compile", "torch._dynamo.eval_frame")
# The Python function from which torch enters its autograd engine (torch/autograd/graph.py). Under another
# name, sites of backward ops are found by a walk up the stack, as all others.
ENGINE_FUNCTION = "_engine_run_backward"
# Holds DTensor's RNG tracker; see `dtensor_states`.
DTENSOR_RANDOM = "torch.distributed.tensor._random"
OP_CALLS = "torch/_ops.py"  # calls of ops; under another name tracebacks show one frame more at op level
HIDDEN_MUTATIONS = {
    # These schemas do not declare that training updates the running statistics in place
    # (aten/src/ATen/native/native_functions.yaml, 2.13.0): name -> positions of the statistics.
    "aten::native_batch_norm": (3, 4),
    "aten::cudnn_batch_norm": (3, 4),
    "aten::miopen_batch_norm": (3, 4),
    "aten::_batch_norm_impl_index": (3, 4),
}


def sequence_peek() -> Callable[[], int]:
    """Return a function that gives the number that the next autograd node of this thread will get.

    Without it backward ops have no forward site.
    """
    import torch

    function: Callable[[], int] | None = getattr(
        getattr(torch._C, "_autograd", None), "_get_sequence_nr", None
    )
    return function if function is not None else lambda: 0


def current_node() -> Callable[[], Any]:
    """Return a function that gives the autograd node being executed, or None; without it no forward sites."""
    import torch

    function: Callable[[], Any] | None = getattr(torch._C, "_current_autograd_node", None)
    return function if function is not None else lambda: None


def node_sequence(node: Any) -> int:
    """Return the sequence number of an autograd node, -1 when it has none."""
    try:
        return int(node._sequence_nr())
    except (AttributeError, RuntimeError):
        return -1


def is_virtual(tensor: Any) -> bool:
    """Tell whether a tensor has no data: tracing, `torch.func` transforms, meta, lazy parameters.

    Without the functions that it looks up, only meta tensors are recognised.
    """
    torch = sys.modules["torch"]  # an `import` here takes longer than the rest
    if tensor.device.type == "meta":
        return True
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is not None and functorch.is_functorch_wrapped_tensor(tensor):
        return True
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return False
    if torch.nn.parameter.is_lazy(tensor):
        return True
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    functional = sys.modules.get("torch._subclasses.functional_tensor")
    return (fake is not None and isinstance(tensor, fake.FakeTensor)) or (
        functional is not None and isinstance(tensor, functional.FunctionalTensor)
    )


def is_opaque(tensor: Any) -> bool:
    """Tell whether only the class of a tensor knows its contents: a wrapper that does not say what it wraps.

    `__tensor_flatten__` is the protocol by which one says it (torch/utils/_python_dispatch.py). Reading any
    other wrapper means calling operations that its `__torch_dispatch__` sees.
    """
    import torch

    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:  # and nobody needs to see their addresses
        return False
    if hasattr(kind, "__tensor_flatten__") or not tensor.numel() or tensor._is_zerotensor():
        return False
    try:
        return bool(tensor.untyped_storage().data_ptr() == 0)
    except NotImplementedError:  # sparse: it has no storage
        return False
    except RuntimeError:  # "invalid python storage" in torch 2.13.0
        return True


def enter_shelter() -> list[Any]:
    """Enter contexts in which the modes and tensor subclasses of a script see nothing of this thread.

    Without the names that it looks up, they see what samebits does.

    Returns:
        The contexts that were entered, to be left in reverse.
    """
    core = sys.modules.get("torch._C")
    disable_functions = getattr(core, "DisableTorchFunction", None)
    entered: list[Any] = [] if disable_functions is None else [disable_functions()]
    if _has_foreign_dispatch_mode(core):
        from torch.utils import _python_dispatch

        disable_modes = getattr(_python_dispatch, "_disable_current_modes", None)
        if disable_modes is not None:
            entered.append(disable_modes())
    for context in entered:
        context.__enter__()
    return entered


def cuda_index_of(value: Any) -> int | None:
    """Return the number of the GPU that a tensor lies on, unseen by modes and subclasses; None for others."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        return int(value.get_device()) if value.is_cuda else None


def _has_foreign_dispatch_mode(core: Any) -> bool:
    """Tell whether a dispatch mode other than the one that records ops is on."""
    count = getattr(core, "_len_torch_dispatch_stack", None)
    n_modes = 0 if count is None else count()
    at = getattr(core, "_get_dispatch_stack_at", None) if n_modes else None
    if at is None:
        return False
    return any(not type(at(index)).__module__.startswith("samebits.") for index in range(n_modes))


def mutated_arguments(op: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the arguments that an op writes to: positions, and names of keyword-only ones.

    Without a schema the op counts as one that writes to nothing.
    """
    schema = getattr(op, "_schema", None)
    if schema is None:
        return (), ()
    positions: list[int] = []
    names: list[str] = []
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.kwarg_only:
                names.append(argument.name)
            else:
                positions.append(index)
    hidden = HIDDEN_MUTATIONS.get(schema.name, ())
    return (*positions, *hidden), tuple(names)


def is_random(op: Any) -> bool:
    """Tell whether an op draws from a generator (tag `nondeterministic_seeded`)."""
    import torch

    tag = getattr(getattr(torch, "Tag", None), "nondeterministic_seeded", None)
    return tag is not None and tag in getattr(op, "tags", ())


def version_of(tensor: Any) -> int:
    """Return how often a tensor was written in place; always 0 when that cannot be known."""
    return int(getattr(tensor, "_version", 0))


def compiled_graphs() -> int:
    """Return how many graphs `torch.compile` made in this process; 0 when that cannot be known."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return int(counters["stats"]["unique_graphs"]) if "stats" in counters else 0


def numpy_state_address() -> tuple[int, int] | None:
    """Return address and size in bytes of the state of NumPy's global generator; None when it is not MT19937.

    `BitGenerator.ctypes.state_address` is documented; the way to the global generator is not.
    """
    # Not as an attribute of `numpy`, which would import it, in the middle of whatever waits for that import.
    random = getattr(sys.modules.get("numpy"), "__dict__", {}).get("random")
    generator = getattr(getattr(random, "mtrand", None), "_rand", None)
    bits = getattr(generator, "_bit_generator", None)
    address = getattr(getattr(bits, "ctypes", None), "state_address", None)
    if not address or type(bits).__name__ != "MT19937":
        return None
    return int(address), 625 * 4


def hide_from_compiler(trace_rules: Any) -> None:
    """Keep `torch.compile` from tracing into samebits, given the module `COMPILER_RULES`.

    Without its `add`, probes that run inside a compiled function are traced as the user's code: slower,
    with the same results.
    """
    add = getattr(trace_rules, "add", None)
    if add is not None:
        add("samebits")


def in_bad_fork(devices: Any) -> bool:
    """Tell whether this process was forked from one that used those devices (`torch.cuda`), and so must not.

    Without the name the answer is no.
    """
    is_bad = getattr(devices, "_is_in_bad_fork", None)
    return bool(is_bad()) if is_bad is not None else False


def _seed_tracker(devices: Any) -> Any:
    return getattr(devices, "_lazy_seed_tracker", None)


def pending_seeds(devices: Any) -> list[list[Any]]:
    """Return the seeds that `torch.cuda` or `torch.xpu` will set when its devices are first used, in order.

    Torch keeps the last call of `manual_seed_all` and the last of `manual_seed` as closures over `seed`
    (`_LazySeedTracker`, torch/_utils.py). Without that tracker no seed is known to wait.

    Returns:
        Pairs of `all` or `current` (the current device) and the seed.
    """
    tracker = _seed_tracker(devices)
    seed_all = getattr(tracker, "manual_seed_all_cb", None)
    seeds: list[list[Any]] = []
    for call in getattr(tracker, "call_order", ()):
        if call is not None:
            callback = call[0]
            cells = dict(zip(callback.__code__.co_freevars, callback.__closure__ or (), strict=True))
            if "seed" in cells:
                seeds.append(["all" if call is seed_all else "current", cells["seed"].cell_contents])
    return seeds


def clear_pending_seeds(devices: Any) -> None:
    """Drop the seeds that wait for the first use of those devices; without torch's tracker none are known."""
    tracker = _seed_tracker(devices)
    if tracker is not None:
        tracker.manual_seed_all_cb = tracker.manual_seed_cb = None
        tracker.call_order = []


def dtensor_states() -> dict[str, Any]:
    """Return the states that DTensor's RNG tracker keeps for itself, by name; empty when it keeps none.

    Imports nothing. It has them in torch 2.6; in 2.13 the tracker draws from the device's default generator.
    """
    tracker = getattr(sys.modules.get(DTENSOR_RANDOM), "_rng_tracker", None)
    states = getattr(tracker, "rng_states", None)
    return states if isinstance(states, dict) else {}


def private_backend() -> str:
    """Return the name of the backend that another package has registered; `privateuseone` when none has.

    `torch.manual_seed` asks the same way (torch/random.py, `_seed_custom_device`, 2.13.0).
    """
    name = getattr(getattr(sys.modules.get("torch"), "_C", None), "_get_privateuse1_backend_name", None)
    return "" if name is None else str(name())


def drop_dtensor_tracker() -> None:
    """Remove DTensor's RNG tracker; its next random op makes another (tensor/_dispatch.py, 2.6.0)."""
    module = sys.modules.get(DTENSOR_RANDOM)
    if module is not None and hasattr(module, "_rng_tracker"):
        vars(module)["_rng_tracker"] = None


# Switches of torch that live in `torch._C`: name of the switch -> its getter and its setter there.
# A getter that is missing means that this build does not have the switch. Read in torch 2.6.0 and 2.13.0;
# `prefer_cublaslt_grouped_gemm` is in `Context.h` of 2.15.
CORE_FLAGS = {
    "deterministic-algorithms": ("_get_deterministic_algorithms", "_set_deterministic_algorithms"),
    "fill-uninitialized": (
        "_get_deterministic_fill_uninitialized_memory",
        "_set_deterministic_fill_uninitialized_memory",
    ),
    "cudnn-deterministic": ("_get_cudnn_deterministic", "_set_cudnn_deterministic"),
    "cudnn-benchmark": ("_get_cudnn_benchmark", "_set_cudnn_benchmark"),
    "cudnn-benchmark-limit": ("_cuda_get_cudnn_benchmark_limit", "_cuda_set_cudnn_benchmark_limit"),
    "cudnn-enabled": ("_get_cudnn_enabled", "_set_cudnn_enabled"),
    "cudnn-depthwise-kernel": ("_get_cudnn_depthwise_kernel", "_set_cudnn_depthwise_kernel"),
    "cudnn-allow-tf32": ("_get_cudnn_allow_tf32", "_set_cudnn_allow_tf32"),
    "mkldnn-enabled": ("_get_mkldnn_enabled", "_set_mkldnn_enabled"),
    "mkldnn-deterministic": ("_get_mkldnn_deterministic", "_set_mkldnn_deterministic"),
    "matmul-allow-tf32": ("_get_cublas_allow_tf32", "_set_cublas_allow_tf32"),
    "matmul-precision": ("_get_float32_matmul_precision", "_set_float32_matmul_precision"),
    "matmul-fp16-reduction": (
        "_get_cublas_allow_fp16_reduced_precision_reduction",
        "_set_cublas_allow_fp16_reduced_precision_reduction",
    ),
    "matmul-bf16-reduction": (
        "_get_cublas_allow_bf16_reduced_precision_reduction",
        "_set_cublas_allow_bf16_reduced_precision_reduction",
    ),
    "matmul-fp16-accumulation": (
        "_get_cublas_allow_fp16_accumulation",
        "_set_cublas_allow_fp16_accumulation",
    ),
    "cpu-fp16-reduction": (
        "_get_cpu_allow_fp16_reduced_precision_reduction",
        "_set_cpu_allow_fp16_reduced_precision_reduction",
    ),
    "blas-library": ("_get_blas_preferred_backend", "_set_blas_preferred_backend"),
    "linalg-library": ("_get_linalg_preferred_backend", "_set_linalg_preferred_backend"),
    "cublaslt-grouped-gemm": ("_get_prefer_cublaslt_grouped_gemm", "_set_prefer_cublaslt_grouped_gemm"),
    "sm-carveout": ("_get_sm_carveout_experimental", "_set_sm_carveout_experimental"),
    "sdpa-flash": ("_get_flash_sdp_enabled", "_set_sdp_use_flash"),
    "sdpa-mem-efficient": ("_get_mem_efficient_sdp_enabled", "_set_sdp_use_mem_efficient"),
    "sdpa-math": ("_get_math_sdp_enabled", "_set_sdp_use_math"),
    "sdpa-cudnn": ("_get_cudnn_sdp_enabled", "_set_sdp_use_cudnn"),
    "sdpa-fa3": ("_get_fa3_sdp_enabled", "_set_sdp_use_fa3"),
    "sdpa-overrideable": ("_get_overrideable_sdp_enabled", "_set_sdp_use_overrideable"),
    "sdpa-order": ("_get_sdp_priority_order", "_set_sdp_priority_order"),
    "sdpa-math-reduction": (
        "_get_math_sdp_allow_fp16_bf16_reduction",
        "_set_math_sdp_allow_fp16_bf16_reduction",
    ),
    "threads": ("get_num_threads", "set_num_threads"),
    "interop-threads": ("get_num_interop_threads", "set_num_interop_threads"),
}
PRECISION_SETTER = "_set_fp32_precision_setter"
WARN_ONLY_GETTER = "_get_deterministic_algorithms_warn_only"
COMPILER_CONFIG = "torch._inductor.config"
_DETERMINISM_PUBLIC = {"_set_deterministic_algorithms": ("use_deterministic_algorithms",)}


def core_function(name: str) -> Callable[..., Any] | None:
    """Return a function of `torch._C`; None when this build does not have it, or torch is not imported."""
    torch = sys.modules.get("torch")
    function: Callable[..., Any] | None = getattr(getattr(torch, "_C", None), name, None)
    return function


def precision_functions(backend: str, op: str) -> tuple[Callable[[], str], Callable[[str], None]] | None:
    """Find getter and setter of `fp32_precision` of one kind of op (torch 2.9 on); None without it."""
    get, put = core_function("_get_fp32_precision_getter"), core_function(PRECISION_SETTER)
    if get is None or put is None:
        return None
    return partial(get, backend, op), partial(put, backend, op)


def setter_locations(names: Collection[str]) -> list[tuple[str, Any, str]]:
    """List every attribute that holds one of those setters of `torch._C`: writing a switch goes through one.

    `torch.backends.cudnn.benchmark = True` calls what its `ContextProp` took from `torch._C` when torch was
    imported. Without the attribute, a change is still noticed at the next boundary, but not its site.

    Returns:
        Name of the setter, the object that holds it, and the attribute's name.
    """
    torch = sys.modules.get("torch")
    functions = [(name, core_function(name)) for name in names]
    setters = {id(setter): name for name, setter in functions if setter is not None}
    if torch is None:
        return []
    locations: list[tuple[str, Any, str]] = [(name, torch._C, name) for name in setters.values()]
    for id_, name in setters.items():
        if id(vars(torch).get(name)) == id_:
            locations.append((name, torch, name))
        locations += [(name, torch, public) for public in _DETERMINISM_PUBLIC.get(name, ())]
    for module in list(vars(torch.backends).values()):
        properties = vars(type(module)).values() if type(module).__module__.startswith("torch.") else ()
        for prop in properties:
            name_of_setter = setters.get(id(getattr(prop, "setter", None)))
            if name_of_setter is not None:
                locations.append((name_of_setter, prop, "setter"))
    return locations


def native_filter() -> Any:
    """Return what `torch.backends.python_native` disabled, as sets of names in an object; None without it."""
    registry = sys.modules.get("torch._native.registry")
    return getattr(registry, "_filter_state", None)


def default_generator() -> Any:
    """Return the CPU generator of torch, None before torch is imported."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


def twister_head(state: bytes) -> tuple[int, int] | None:
    """Return which 624 numbers a CPU generator is in, and how many of them it has given out.

    Args:
        state: the first 40 bytes of `torch.Generator.get_state()`: `CPUGeneratorImplStateLegacy` of
            aten/src/ATen/CPUGeneratorImpl.cpp (2.6.0, 2.13.0): seed, left, seeded, next, words of 64 bits.

    Returns:
        None when it is not laid out as expected.
    """
    _, left, seeded, following, first, second = struct.unpack_from("<QiiQQQ", state)
    if seeded != 1 or not 0 <= left <= 624 or following > 624 or max(first, second) >= 2**32:
        return None
    return first << 32 | second, following


_VERSIONS = "_metadata"


def state_versions(state: Any) -> dict[str, Any] | None:
    """Return the versions of modules that a state dict of `nn.Module` carries; None for any other mapping.

    `Module.state_dict` puts them on the `OrderedDict` as an attribute, by the module's path, and
    `load_state_dict` lets modules convert the entries of older versions by them (torch/nn/modules/module.py,
    2.6.0 and 2.13.0). Without the attribute such entries are taken as of a version before the first.
    """
    versions = getattr(state, _VERSIONS, None)
    return versions if isinstance(versions, dict) else None


def set_state_versions(state: Any, versions: dict[str, Any]) -> None:
    """Make a state dict carry those versions."""
    setattr(state, _VERSIONS, versions)


def lacks_kernel(error: Exception) -> bool:
    """Tell whether torch only says that this device has no kernel for the dtype (`AT_DISPATCH_SWITCH`)."""
    return isinstance(error, NotImplementedError) and "not implemented for '" in str(error)


def is_alert(error: Exception) -> bool:
    """Tell whether torch only says that it has no deterministic kernel here (`alertNotDeterministic`)."""
    return "does not have a deterministic implementation" in str(error)

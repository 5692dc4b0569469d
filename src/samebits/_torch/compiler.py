"""The compilers of torch: code that they leave alone, modules and programs that they make.

Names are those of 2.13.0. What a release of torch does not have is not there to be called.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

GRAPHS = "torch._inductor.output_code"
"""The module of the graphs that inductor compiled."""
COMPILING = ("torch._inductor.", "torch.utils.cpp_extension.", "triton.")
"""The beginnings of the names of modules that compile, with a dot behind each."""
_KERNELS = "torch._inductor.runtime.triton_heuristics"
_KEEPING = ("torch._inductor", "triton")
_TEMPORARY = "/tmp"  # noqa: S108 - the folder itself; asking `tempfile` would write a file there
_OF_GRAPHS = {"CompiledFxGraph": ("__call__",), "CompiledAOTI": ("__call__",)}
_PROGRAMS = {
    "StaticModule": ("__call__", "runAsync", "benchmark", "benchmark_individual_ops"),
    "_aoti.AOTIModelContainerRunnerCpu": ("run",),
    "_aoti.AOTIModelPackageLoader": ("run", "boxed_run"),
    "_te.TensorExprKernel": ("run", "fallback"),
}


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that `torch.compile` leaves alone, with all that it calls.

    While the compiler is not loaded, which takes a second, the function is returned as it is.
    """
    if "torch._dynamo" not in sys.modules:
        return function
    import torch

    disable: Any = torch.compiler.disable
    hidden: Callable[..., Any] = disable(function)
    return hidden


def is_within_compiler(module: Any, caller: str) -> bool:
    """Tell whether the code of `torch.compile` calls a module: one that it compiled, or a graph it made.

    Args:
        module: the module.
        caller: name of the Python module whose code calls it.
    """
    is_graph = type(module).__module__.startswith("torch.fx.")
    return caller.startswith("torch._dynamo") or (is_graph and caller.startswith(("torch._", "torch.fx")))


def original_of(module: Any) -> Any:
    """Return the script's own module for what `torch.compile` made of it; any other module as it is."""
    is_compiled = type(module).__module__ == "torch._dynamo.eval_frame"  # its `OptimizedModule`
    return getattr(module, "_orig_mod", module) if is_compiled else module


def config_probe(config: Any, name: str) -> Callable[[], Any]:
    """Return a cheap function whose result changes when that entry of a configuration module is written.

    Reading an attribute of such a module takes 2.5 microseconds (2.13.0), its entry a tenth. Without the
    names asked for here it is the attribute that is read.
    """
    entry = getattr(config, "_config", {}).get(name)
    override: Any = getattr(entry, "user_override", None)
    if hasattr(override, "get") and type(override).__name__ == "ContextVar":
        probe: Callable[[], Any] = override.get
        return probe
    return lambda: getattr(config, name, None)


def has_config_entry(config: Any, name: str) -> bool:
    """Tell whether a configuration module of torch has that entry, and not only as a deprecated other name.

    Reading a deprecated one gives a warning, which the script itself would not give
    (`torch/utils/_config_module.py`, 2.15.0).
    """
    entry = getattr(config, "_config", {}).get(name)
    return not getattr(entry, "deprecated", False) and hasattr(config, name)


def compiled_graphs(graphs: Any) -> Iterator[tuple[Any, str]]:
    """Yield the methods that run what inductor compiled: the class and the name.

    Args:
        graphs: the module `GRAPHS`.
    """
    yield from _methods(graphs, _OF_GRAPHS)


def kernel_caches() -> tuple[str, ...]:
    """Return the beginnings of the paths of what inductor and Triton keep.

    Inductor writes its folder into the environment when it uses it first (`cache_dir` in
    `torch/_inductor/runtime/cache_dir_utils.py`, 2.13.0 and 2.15.0). A folder that holds more is left out:
    one with the script, the working folder, all temporary files or the user's home in it. Nothing is kept as
    long as neither is imported.
    """
    if not any(name in sys.modules for name in _KEEPING):
        return ()
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
    triton = os.environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton")
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    held = [os.path.abspath(os.path.dirname(script)), _temporary(), os.path.expanduser("~")]
    with suppress(OSError):  # the working folder was deleted
        held.append(os.getcwd())
    folders = [os.environ.get("TORCHINDUCTOR_CACHE_DIR"), triton]
    beginnings = [os.path.join(os.path.abspath(folder), "") for folder in folders if folder]
    return tuple(
        each for each in beginnings if not any(f"{other}{os.sep}".startswith(each) for other in held)
    )


def _temporary() -> str:
    return os.path.abspath(next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), _TEMPORARY))


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """A graph that inductor generated.

    Args:
        path: of its file.
        kernels: what was chosen for each of its Triton kernels that ran, by name.
    """

    path: str
    kernels: dict[str, str]


def loaded_graphs() -> list[LoadedGraph]:
    """Return the graphs that inductor generated, or took from its cache, and this process loaded, in order.

    A kernel that ran has one launcher left, with the configuration that was chosen and the hash of its
    machine code (`CachingAutotuner` in `torch/_inductor/runtime/triton_heuristics.py`, 2.15.0).
    """
    cache: Any = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    modules = [module for module in getattr(cache, "modules", ()) if hasattr(module, "call")]
    return [LoadedGraph(getattr(module, "__file__", "") or "", _chosen(vars(module))) for module in modules]


def _chosen(names: Mapping[str, Any]) -> dict[str, str]:
    chosen = {}
    for name, kernel in names.items():
        is_kernel = type(kernel).__module__ == _KERNELS  # whatever else is there is not asked
        launchers = getattr(kernel, "launchers", None) if is_kernel else None
        if isinstance(launchers, list) and len(launchers) == 1:
            configuration = getattr(launchers[0], "config", "")
            chosen[name] = f"{configuration} ({str(getattr(launchers[0], 'cache_hash', ''))[:16]})"
    return chosen


def compiled_programs() -> Iterator[tuple[Any, str]]:
    """Yield those that run TorchScript's static runtime, packages of AOTInductor and kernels of its fuser."""
    import torch

    yield from _methods(torch._C, _PROGRAMS)


def _methods(home: Any, table: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Any, str]]:
    for path, methods in table.items():
        owner = home
        for name in path.split("."):
            owner = getattr(owner, name, None)
        yield from ((owner, method) for method in methods if hasattr(owner, method))


def optimize_scripts(*, wanted: bool) -> bool:
    """Set whether TorchScript optimizes a graph after its first calls. Return what was set before.

    It then has other formulas for gradients, and one kernel for several ops in builds with LLVM. Where it is
    not wanted, functions and modules that this process scripted lose what was optimized before.
    """
    import torch

    core: Any = torch._C
    if not hasattr(core, "_jit_set_profiling_mode"):
        return False
    if not wanted:
        for function in _scripted(torch.jit):
            with suppress(RuntimeError):  # it has nothing to lose
                function._debug_flush_compilation_cache()
    return bool(core._jit_set_profiling_mode(wanted))


def _scripted(jit: Any) -> list[Any]:
    unit: Any = getattr(getattr(jit, "_state", None), "_python_cu", None)
    return [] if unit is None else list(unit.get_functions())

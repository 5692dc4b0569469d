"""Fixtures of all tests: nothing may leak out of a test."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from types import FunctionType
from typing import Any

import pytest

from samebits.rng.active import PROCESS

# What samebits, or a careless test, might patch. Only namespaces that are imported already are looked at.
WATCHED = (
    "builtins",
    "io",
    "os",
    "pickle",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "tempfile",
    "threading.Thread",
    "time",
    "uuid",
    "multiprocessing.context.BaseContext",
    "multiprocessing.process.BaseProcess",
    "multiprocessing.spawn",
    "numpy",
    "numpy.random",
    "torch",
    "torch.Tensor",
    "torch.autograd",
    "torch.autograd.Function",
    "torch.cuda",
    "torch.jit",
    "torch.nn.Module",
    "torch.optim",
    "torch.optim.Optimizer",
    "torch.optim.SGD",
    "torch.optim.Adam",
    "torch.optim.AdamW",
    "torch.optim.LBFGS",
    "torch.random",
    "torch.serialization",
    "torch.utils.checkpoint",
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader._BaseDataLoaderIter",
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter",
    "torch.utils.data.dataloader._SingleProcessDataLoaderIter",
    "torch.utils.data.sampler.RandomSampler",
    "torch.utils.data.sampler.SubsetRandomSampler",
    "torch.utils.data.sampler.WeightedRandomSampler",
)
TORCH_STATE = {
    "default dtype": "get_default_dtype",
    "default device": "get_default_device",
    "threads": "get_num_threads",
    "grad mode": "is_grad_enabled",
    "inference mode": "is_inference_mode_enabled",
    "deterministic algorithms": "are_deterministic_algorithms_enabled",
    "deterministic warning": "is_deterministic_algorithms_warn_only_enabled",
    "matmul precision": "get_float32_matmul_precision",
}
HOOK_TABLES = {
    "torch.nn.modules.module": (
        "_global_backward_hooks",
        "_global_backward_pre_hooks",
        "_global_forward_hooks",
        "_global_forward_pre_hooks",
        "_global_module_registration_hooks",
        "_global_parameter_registration_hooks",
        "_global_buffer_registration_hooks",
    ),
    "torch.optim.optimizer": ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"),
}


# By pickling on any class (copyreg), and by torch's compiler and transformers on `Module`.
LEFT_BY_OTHERS = {"__slotnames__", "___needs_generation_tag_patch", "smart_apply"}
# By pytest for each test, and by torch when it loads its compiler.
SET_BY_OTHERS = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR"}


def find_loaded(path: str) -> Any:
    """Return the module or class of that dotted path, None when it is not imported."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        found: Any = sys.modules.get(".".join(parts[:length]))
        if found is not None:
            for part in parts[length:]:
                found = getattr(found, part, None)
            return found
    return None


def interpreter_state() -> dict[str, Any]:
    """What belongs to the interpreter or the process, cheap to read and compared by equality."""
    environment = {name: value for name, value in os.environ.items() if name not in SET_BY_OTHERS}
    return {
        "os.environ": environment,
        "working directory": os.getcwd(),
        "sys.argv": list(sys.argv),
        "sys.path": list(sys.path),
        "sys.meta_path": list(sys.meta_path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.excepthook": sys.excepthook,
        "sys.displayhook": sys.displayhook,
        "threading.excepthook": threading.excepthook,
        "__main__": sys.modules["__main__"],
        "SIGINT handler": signal.getsignal(signal.SIGINT),
        "SIGTERM handler": signal.getsignal(signal.SIGTERM),
        "profile function": sys.getprofile(),
        "trace function": sys.gettrace(),
        "threads of samebits": [t.name for t in threading.enumerate() if t.name.startswith("samebits")],
    }


def torch_state() -> dict[str, Any]:
    """Flags, modes and hooks of torch; empty when it is not imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    state: dict[str, Any] = {name: getattr(torch, call)() for name, call in TORCH_STATE.items()}
    state["fill uninitialized memory"] = torch.utils.deterministic.fill_uninitialized_memory
    cudnn = torch.backends.cudnn
    state["cudnn"] = (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32)
    modes = importlib.import_module("torch.utils._python_dispatch")
    state["dispatch modes"] = list(modes._get_current_dispatch_mode_stack())
    state["function modes"] = list(
        importlib.import_module("torch.overrides")._get_current_function_mode_stack()
    )
    for module_name, tables in HOOK_TABLES.items():
        module = sys.modules.get(module_name)
        for table in tables if module else ():
            state[f"{module_name}.{table}"] = len(getattr(module, table, ()))
    return state


def attributes() -> dict[str, dict[str, Any]]:
    """Attributes of the watched modules and classes, as they are now."""
    found = {path: find_loaded(path) for path in WATCHED}
    return {path: dict(vars(place)) for path, place in found.items() if place is not None}


def is_of(value: Any, package: str) -> bool:
    """Whether that package defined the function (whatever its `__module__` says) or the object's class."""
    if isinstance(value, FunctionType):
        folders = list(getattr(sys.modules.get(package), "__path__", ()))
        return any(value.__code__.co_filename.startswith(folder) for folder in folders)
    return str(type(value).__module__).startswith(package + ".")


def changed_attributes(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """Name what was replaced, removed or added.

    Torch may replace its own functions (the first optimizer loads its compiler, which does), and modules
    may gain attributes (late imports), but nothing of samebits may be there.
    """
    leaks = []
    for path, new in after.items():
        old = before.get(path, new)
        changed = [name for name in old if name not in new or new[name] is not old[name]]
        if isinstance(find_loaded(path), type):
            changed += [name for name in new if name not in old and name not in LEFT_BY_OTHERS]
        leaks += [f"{path}.{name}" for name in changed if not is_of(new.get(name), "torch")]
        leaks += [f"{path}.{name} of samebits" for name, value in new.items() if is_of(value, "samebits")]
    return leaks


def changed_state(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Describe each entry that is not what it was."""
    return [
        f"{name}: {before[name]!r} -> {after.get(name)!r}"
        for name in before
        if before[name] != after.get(name)
    ]


class Surroundings:
    """What a test must leave as it found it."""

    def __init__(self) -> None:
        self.interpreter = interpreter_state()
        self.torch = torch_state()
        self.attributes = attributes()

    def leaks(self) -> list[str]:
        """Compare with now."""
        found = changed_state(self.interpreter, interpreter_state())
        now = torch_state()
        if self.torch:
            found += changed_state(self.torch, now)
        elif now:
            found += [f"{name}: {now[name]!r}" for name in ("dispatch modes", "function modes") if now[name]]
        return found + changed_attributes(self.attributes, attributes())


class RandomStates:
    """States of the generators and the run seed, which every test gets back as they were before it.

    Tests may draw; what they draw is undone afterwards, so that no test can depend on another one's draws.
    """

    def __init__(self) -> None:
        self.python = random.getstate()
        self.numpy = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None
        self.torch = sys.modules["torch"].get_rng_state() if "torch" in sys.modules else None
        self.run_seed = PROCESS.seed, PROCESS.base_seed

    def restore(self) -> None:
        """Put them back."""
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        if self.torch is not None:
            sys.modules["torch"].set_rng_state(self.torch)
        PROCESS.seed, PROCESS.base_seed = self.run_seed


def forget_compiled_code() -> None:
    """Leave the compiler of torch as in a new process; records tell how many graphs it made in this one."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None and utils.counters:
        sys.modules["torch"].compiler.reset()
        utils.counters.clear()


def pytest_configure() -> None:
    """Put what tests depend on as it has to be before the first of them."""
    # It sets itself up on first use, which would look like a leak of the test that happens to come first.
    tempfile.TemporaryDirectory().cleanup()
    # A shell starts what it runs in the background with Ctrl-C ignored, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # All processes of the tests share a cache of digests, which is not the user's.
    if "SAMEBITS_CACHE" not in os.environ:
        folder = tempfile.mkdtemp(prefix="samebits-cache-")
        os.environ["SAMEBITS_CACHE"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_leaks(request):
    """No hook, mode, patch, flag, environment variable, handler or RNG state leaks out of any test."""
    if request.node.get_closest_marker("gpu"):
        torch = importlib.import_module("torch")
        torch.cuda.init()  # sets itself up on first use, as above
        torch.cuda.device_count()
        with contextlib.suppress(ImportError):
            importlib.import_module(
                "setuptools"
            )  # extends sys.path; parts of torch import it when first used
    states = RandomStates()
    before = Surroundings()
    yield
    PROCESS.waiting.forget()  # seeds for libraries that are not imported; a part of the RNG state
    leaks = before.leaks()
    states.restore()
    forget_compiled_code()
    assert not leaks, "the test left something behind:\n" + "\n".join(leaks)


@pytest.fixture
def surroundings():
    """The class that `no_leaks` uses, for the test of that fixture."""
    return Surroundings


def has_cuda() -> bool:
    """Whether tests marked `gpu` can run."""
    import torch

    return torch.cuda.is_available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where there is no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not has_cuda():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """After `-m gpu`: one line per file, last."""
    if config.option.markexpr != "gpu":
        return
    outcomes = ("passed", "failed", "error", "skipped")
    counts: dict[str, list[int]] = {}
    for column, outcome in enumerate(outcomes):
        for report in terminalreporter.stats.get(outcome, []):
            counts.setdefault(report.nodeid.split("::")[0], [0] * len(outcomes))[column] += 1
    width = max([4, *map(len, counts)])
    terminalreporter.write_line(f"{'file':{width}} " + " ".join(f"{outcome:>8}" for outcome in outcomes))
    for file, row in sorted(counts.items()):
        terminalreporter.write_line(f"{file:{width}} " + " ".join(f"{count:8d}" for count in row))

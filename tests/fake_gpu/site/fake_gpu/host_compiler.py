"""Kernels that a program compiles while it runs: what NVRTC makes says what they need, a host build is run.

`install` has torch's compiler of kernels (`torch.cuda._utils`) return both as one code, which the fake driver
takes: `HEAD`, the path of the library, a zero byte, and the machine code.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = b"host build: "  # as native/launches.cpp has it
BUILD = Path(__file__).resolve().parents[2] / "build.py"


def install(utilities: Any) -> None:
    """Wrap the compiler.

    Args:
        utilities: `torch.cuda._utils`.
    """
    original = utilities._nvrtc_compile

    def compile_both(source: str, name: str, *args: Any, **kwargs: Any) -> tuple[bytes, str]:
        code, lowered = original(source, name, *args, **kwargs)
        library = build_program().build_text(source, kernels_of(code), folders_of(*args, **kwargs))
        return b"".join([HEAD, bytes(library), b"\0", code]), lowered

    utilities._nvrtc_compile = compile_both


def kernels_of(code: bytes) -> list[str]:
    """The names of the kernels of a cubin that are names in C++ too: its sections are named after them."""
    names = {name.decode() for name in re.findall(rb"\.text\.([A-Za-z_]\w*)\0", code)}
    return sorted(name for name in names if not name.startswith("_Z"))


def folders_of(
    _: str | None = None, folders: Iterable[str] | None = None, *__: Any, **given: Any
) -> list[str]:
    """Where the source includes from, of the arguments that the compiler is given."""
    return [*(folders or ()), *(given.get("cuda_include_dirs") or ())]


def build_program() -> Any:
    """tests/fake_gpu/build.py as a module."""
    name = "fake_gpu_build"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, BUILD)
        if spec is None or spec.loader is None:
            raise ImportError(BUILD)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]

"""Makes a process that has the fake device override torch's kernels, as soon as torch is imported."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import Any


class TorchFinder:
    """Finds torch once, and has its ops overridden when it is loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of torch, whose loader does the rest."""
        if name != "torch":
            return None
        sys.meta_path.remove(TorchFinder)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                from fake_gpu import host_compiler, ops

                module._fake_gpu = ops.install()
                host_compiler.install(module.cuda._utils)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, TorchFinder)

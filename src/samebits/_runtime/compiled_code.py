"""Code that `torch.compile` compiled, while operations are watched."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from samebits._runtime.imports import PostImport
from samebits._torch.core import COMPILER

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def compiled_code_runs_eagerly() -> Iterator[None]:
    """Return a context in which functions that were compiled run as they are written, in all threads.

    `torch.compiler.set_stance` says so to the compiler, as soon as it is imported. In a dispatch mode they
    would run so anyway. But the compiler would never compile again what it left alone there, nor use what
    it compiled before (`ConvertFrame` in torch/_dynamo/convert_frame.py, 2.7.1 and 2.13.0).
    """
    import torch

    stances: list[Any] = []
    imports = PostImport()
    imports.on_import(COMPILER, lambda _: stances.append(torch.compiler.set_stance("force_eager")))
    imports.install()
    try:
        yield
    finally:
        imports.remove()
        for stance in stances:
            stance.__exit__(None, None, None)

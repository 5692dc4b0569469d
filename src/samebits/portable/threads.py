"""Which threads the kernels run on: torch's own, as many as torch uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from samebits.digest.native import openmp_entry

if TYPE_CHECKING:
    from samebits.portable.native import Kernels


def follow_torch(kernels: Kernels) -> None:
    """Run on the threads that torch's OpenMP library keeps, and ask torch at each call how many.

    Args:
        kernels: the library of this process.
    """
    folder = Path(torch.__file__).parent / "lib"
    entry, number = openmp_entry(folder), openmp_entry(folder, "omp_get_thread_num")
    if entry is not None and number is not None:
        kernels.share_threads(entry, number)
    kernels.follow(torch.get_num_threads)

"""Where the key of a random op comes from: torch's own generators, steered as ever."""

from __future__ import annotations

from typing import Any

import torch

from samebits.errors import SamebitsError


def next_key(generator: torch.Generator | None) -> int:
    """The next 64 bits of a generator (of torch's default one if None).

    `random_` with these bounds stores the generator's raw output (ATen/native/cpu/DistributionTemplates.h,
    random_full_64_bits_range); mt19937 is an exact integer algorithm, the same on every platform.

    Raises:
        SamebitsError: if the generator is not one of the CPU.
    """
    if generator is not None and generator.device.type != "cpu":
        raise SamebitsError(
            f"a generator of {generator.device} was found where portable mode takes keys from the CPU's: "
            "use torch.Generator()",
            slug="portable-op",
        )
    drawn: Any = torch.empty((), dtype=torch.int64, device="cpu")
    return int(drawn.random_(-(2**63), None, generator=generator or torch.default_generator)) & (2**64 - 1)

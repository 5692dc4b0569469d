"""The operating system and the processor."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# What numeric libraries choose their code by.
_RELEVANT_FLAGS = frozenset(
    (
        *("sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni"),
        *(
            "avx512f",
            "avx512bw",
            "avx512cd",
            "avx512dq",
            "avx512vl",
            "avx512_vnni",
            "avx512_bf16",
            "avx512_fp16",
        ),
        *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
        *("asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm", "sme"),
    )
)


@dataclass(frozen=True)
class MachineFacts:
    """The machine.

    Args:
        system: such as `Linux 6.1.0`.
        libc: whose mathematical functions Python and the C++ library use.
        architecture: such as `x86_64`.
        processor: as it names itself.
        instructions: vector instruction sets that it offers and that numeric libraries choose code by.
        cpus: that this process may use.
        gpu_driver: of NVIDIA, empty if there is none.
    """

    system: str
    libc: str
    architecture: str
    processor: str
    instructions: tuple[str, ...]
    cpus: int
    gpu_driver: str


def collect_machine() -> MachineFacts:
    """Read what the system says of itself."""
    described = _describe_processor()
    flags = (described.get("flags") or described.get("Features") or "").split()
    affinity = getattr(os, "sched_getaffinity", None)
    return MachineFacts(
        system=f"{platform.system()} {platform.release()}",
        libc=" ".join(platform.libc_ver()).strip(),
        architecture=platform.machine(),
        processor=described.get("model name") or platform.processor(),
        instructions=tuple(sorted(_RELEVANT_FLAGS.intersection(flags))),
        cpus=len(affinity(0)) if affinity else os.cpu_count() or 0,
        gpu_driver=_find_driver(),
    )


def _describe_processor() -> dict[str, str]:
    """Return the description of the first processor: a large machine describes hundreds alike."""
    described: dict[str, str] = {}
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name, colon, value = line.partition(":")
            if not colon:
                break
            described[name.strip()] = value.strip()
    return described


def _find_driver() -> str:
    with suppress(OSError):
        words = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace").split()
        return next((word for word in words if word[0].isdigit() and "." in word), "")
    return ""

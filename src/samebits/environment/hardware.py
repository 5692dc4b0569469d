"""The machine that a run is on: system, processor, GPU driver, container."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Numeric libraries choose their code by these.
_RELEVANT_FLAGS = frozenset((
    "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni",
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",
    "asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm", "sme",
))  # fmt: skip
_LARGEST_FILE = 1 << 16  # bytes of a description
# Images that name themselves in the environment: NVIDIA's, and those that Singularity and Apptainer run.
_IMAGE_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
_BUILD_VARIABLES = ("NVIDIA_PYTORCH_VERSION", "NVIDIA_BUILD_ID")


@dataclass(frozen=True)
class MachineFacts:
    """The machine.

    Args:
        system: such as `Linux 6.1.0`.
        libc: the C library, whose mathematical functions Python and the C++ library use.
        architecture: such as `x86_64`.
        processor: the name by which it describes itself.
        instructions: vector instruction sets that it has and by which numeric libraries choose their code.
        cpus: the number of processors that this process may use.
        gpu_driver: the version of NVIDIA's driver, empty if there is none.
        distribution: of the system, such as `Debian GNU/Linux 12 (bookworm)`; empty where it is unknown.
        container: the kind of container and its image as far as they can be seen from inside; else empty.
    """

    system: str
    libc: str
    architecture: str
    processor: str
    instructions: tuple[str, ...]
    cpus: int
    gpu_driver: str
    distribution: str = ""
    container: str = ""


def collect_machine() -> MachineFacts:
    """Return the facts about the machine, as the system describes it."""
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
        distribution=_assignments("/etc/os-release").get("PRETTY_NAME", ""),
        container=_find_container(),
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


def _find_container() -> str:
    """Name the container by what its engine leaves inside: Docker leaves only a mark, Podman the image."""
    build = " ".join(os.environ[name] for name in _BUILD_VARIABLES if name in os.environ)
    built = [f"NVIDIA PyTorch {build}"] if build else []
    podman = _assignments("/run/.containerenv")
    if podman:
        return ", ".join(["podman", *filter(None, (podman.get("image"), podman.get("imageid"))), *built])
    image = next((os.environ[name] for name in _IMAGE_VARIABLES if name in os.environ), "")
    if image:
        return ", ".join(["apptainer", os.path.basename(image), *built])
    if os.path.exists("/.dockerenv"):
        return ", ".join(["docker", *built])
    return ", ".join(built)


def _assignments(path: str) -> dict[str, str]:
    """Read a file of `NAME="value"` lines; empty if there is none."""
    text = ""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(_LARGEST_FILE)
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))

"""What a machine says of itself: processor, GPU driver, container; read from given files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samebits.environment import hardware

X86 = """\
processor\t: 0
model name\t: AMD EPYC 9654 96-Core Processor
flags\t\t: fpu sse4_2 avx avx2 hypervisor

processor\t: 1
model name\t: another
"""
ARM = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd sve bf16
CPU part\t: 0xd40

processor\t: 1
Features\t: fp
"""
NVIDIA = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (a@b)
GCC version:  gcc version 12.2.0
"""
PODMAN = 'engine="podman-5.2.1"\nname="x"\nimage="docker.io/library/python:3.12"\nimageid="2f1c"\n'


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Make files below a folder what the system has at their paths."""

    def give(**contents):
        for name, text in contents.items():
            (tmp_path / name).write_text(text)

    real_open, real_exists = open, os.path.exists

    def path_of(path):
        return str(tmp_path / str(path).strip("/").replace("/", "_").replace(".", "_"))

    def opened(path, *args, **kwargs):
        return real_open(path_of(path), *args, **kwargs)

    monkeypatch.setattr(hardware, "open", opened, raising=False)
    monkeypatch.setattr(hardware, "Path", lambda path: Path(path_of(path)))
    monkeypatch.setattr(hardware.os.path, "exists", lambda path: real_exists(path_of(path)))
    for name in (*hardware._IMAGE_VARIABLES, *hardware._BUILD_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    return give


@pytest.mark.parametrize(
    ("text", "processor", "instructions"),
    [
        (X86, "AMD EPYC 9654 96-Core Processor", ("avx", "avx2", "sse4_2")),
        (ARM, None, ("asimd", "bf16", "sve")),
    ],
)
def test_the_first_processor_is_described(files, text, processor, instructions):
    """ARM has no model name, and other words for the instruction sets."""
    files(proc_cpuinfo=text)
    machine = hardware.collect_machine()
    assert machine.instructions == instructions
    assert processor is None or machine.processor == processor


def test_a_system_without_such_files_has_no_facts(files):
    files()
    machine = hardware.collect_machine()
    assert (machine.instructions, machine.gpu_driver, machine.container, machine.distribution) == (
        (),
        "",
        "",
        "",
    )


def test_the_driver_of_gpus_has_its_version(files):
    files(proc_driver_nvidia_version=NVIDIA)
    assert hardware.collect_machine().gpu_driver == "570.86.15"


@pytest.mark.parametrize(
    ("given", "variables", "container"),
    [
        ({"_dockerenv": ""}, {}, "docker"),
        ({"_dockerenv": ""}, {"NVIDIA_PYTORCH_VERSION": "25.01"}, "docker, NVIDIA PyTorch 25.01"),
        ({"run__containerenv": PODMAN}, {}, "podman, docker.io/library/python:3.12, 2f1c"),
        ({"run__containerenv": 'engine="podman"\n'}, {}, "podman"),
        ({}, {"APPTAINER_CONTAINER": "/images/torch.sif"}, "apptainer, torch.sif"),
        ({}, {"SINGULARITY_CONTAINER": "/images/old.sif"}, "apptainer, old.sif"),
        ({}, {"NVIDIA_BUILD_ID": "12"}, "NVIDIA PyTorch 12"),
    ],
)  # fmt: skip
def test_a_container_is_named_by_what_its_engine_leaves(files, monkeypatch, given, variables, container):
    """A process inside Docker cannot tell the name of its image."""
    files(**given)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert hardware.collect_machine().container == container

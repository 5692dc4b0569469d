"""Each check speaks when there is something to say, and is silent when there is not."""

import dataclasses
from pathlib import Path

import pytest
from snapshot_builder import (
    CPUS,
    CUDA,
    INTERPRETER,
    NO_TORCH,
    RECORD_FOLDER,
    cuda,
    healthy,
    switch,
    torch,
    variables,
)

from samebits.commands.doctor.checks import CHECKS, examine, gpus, machine, packages, process, proof, script
from samebits.commands.doctor.checks.packages import PACKAGES
from samebits.commands.doctor.environment import DigestCheck, Gpu, Setting
from samebits.commands.doctor.imports import FLEX_ATTENTION
from samebits.commands.doctor.threat import EVERY, LEVELS, PROMISES

AMD = dataclasses.replace(CPUS, processor="AMD EPYC 9R14")


def cpus(**changes):
    return dataclasses.replace(CPUS, **changes)


def interpreter(**changes):
    return dataclasses.replace(INTERPRETER, **changes)


def folder(**changes):
    return dataclasses.replace(RECORD_FOLDER, **changes)


def variable(name, now, **changes):
    return switch(name=name, now=now, is_variable=True, **changes)


UNPINNED = variables(OMP_NUM_THREADS=None, ATEN_CPU_CAPABILITY=None, ONEDNN_MAX_CPU_ISA=None)
SILENT = healthy()
# Check, what it must find something in, a word of what it finds, its level, and what it must find nothing in.
CASES = [
    (process.torch_import, healthy(torch=NO_TORCH), "No module named", "breaks", SILENT),
    (process.torch_import, healthy(torch=torch(version="2.5.1")), "2.5.1", "breaks", SILENT),
    (
        process.hash_seed,
        healthy(interpreter=interpreter(hash_seed="random")),
        "PYTHONHASHSEED",
        "may break",
        SILENT,
    ),
    (
        process.startup_code,
        healthy(interpreter=interpreter(startup_modules=("torch",))),
        "torch imported before",
        "may break",
        SILENT,
    ),
    (
        process.startup_code,
        healthy(interpreter=interpreter(startup_files=("/code/sitecustomize.py",))),
        "sitecustomize.py runs before every script",
        "note",
        SILENT,
    ),
    (
        process.device_backends,
        healthy(torch=torch(backends=("torch_npu",))),
        "torch_npu",
        "note",
        healthy(torch=torch(backends=("torch_npu",)), variables=variables(TORCH_DEVICE_BACKEND_AUTOLOAD="0")),
    ),
    (
        process.preloaded_libraries,
        healthy(variables=variables(LD_PRELOAD="/code/a.so")),
        "LD_PRELOAD",
        "note",
        SILENT,
    ),
    (process.thread_count, healthy(variables=UNPINNED), "1 thread,", "may break", SILENT),
    (
        process.torchrun_threads,
        healthy(variables=UNPINNED, torch=torch(threads=8)),
        "1 thread, not 8",
        "note",
        healthy(variables=UNPINNED),
    ),
    (
        process.ineffective_thread_count,
        healthy(variables=variables(OMP_NUM_THREADS="4")),
        "OMP_NUM_THREADS=4, but torch runs 1 thread",
        "may break",
        healthy(variables=variables(OMP_NUM_THREADS="1,2")),
    ),
    (
        process.cpu_quota,
        healthy(cpus=cpus(quota=1.5), torch=torch(threads=2)),
        "allows 1.5 CPUs, torch runs 2 threads",
        "note",
        healthy(cpus=cpus(quota=1.5)),
    ),
    (process.core_kinds, healthy(cpus=cpus(kinds=("cpu_core", "cpu_atom"))), "2 kinds", "note", SILENT),
    (
        machine.missing_instruction_set,
        healthy(cpus=cpus(instructions=("avx", "avx2")), variables=variables(ATEN_CPU_CAPABILITY="avx512")),
        "ATEN_CPU_CAPABILITY=avx512, and this processor has no avx512f",
        "breaks",
        healthy(cpus=cpus(instructions=("avx2",)), variables=variables(ATEN_CPU_CAPABILITY="avx2")),
    ),
    (
        gpus.unusable_cuda,
        healthy(torch=cuda(gpus=(), cuda_error="no driver")),
        "no usable GPU",
        "note",
        healthy(torch=CUDA),
    ),
    (
        gpus.unusable_cuda,
        healthy(
            torch=cuda(
                gpus=(),
                cuda_error="The NVIDIA driver on your system is too old. Please",
            )
        ),
        "no usable GPU: The NVIDIA driver on your system is too old",
        "note",
        healthy(torch=CUDA),
    ),
    *(
        (
            gpus.unknown_architecture,
            healthy(torch=cuda(gpus=(Gpu("NVIDIA A", 132, bad),), architectures=architectures)),
            f"has no code for NVIDIA A (capability {bad})",
            "breaks",
            healthy(torch=cuda(gpus=(Gpu("NVIDIA A", 132, good),), architectures=architectures)),
        )
        for bad, good, architectures in (
            ("5.0", "8.9", ("sm_75", "sm_86")),
            ("8.0", "8.6", ("sm_86", "sm_90")),
            ("12.0", "9.0", ("sm_90",)),
            ("9.0", "12.1", ("sm_120",)),
            ("8.9", "12.1", ("compute_90",)),
            ("10.3", "9.0", ("sm_90a",)),
            ("11.0", "10.3", ("sm_100f",)),
            ("9.0", "10.0", ("compute_100f",)),
        )
    ),
    (
        gpus.shared_gpu,
        healthy(torch=cuda(gpus=(Gpu("NVIDIA H200", 132, "9.0", 140 << 30, 30 << 30),))),
        "GPU 0 has 30.0 GiB of 140.0 GiB free",
        "may break",
        healthy(torch=cuda(gpus=(Gpu("NVIDIA H200", 132, "9.0", 140 << 30, (140 << 30) - (600 << 20)),))),
    ),
    (
        gpus.slow_digest,
        healthy(digest=DigestCheck(library=True, backend="avx2", gpu="there is no NVRTC for CUDA 13.2")),
        "right, but slow: there is no NVRTC for CUDA 13.2",
        "note",
        SILENT,
    ),
    (
        gpus.mixed_gpus,
        healthy(torch=cuda(gpus=(Gpu("NVIDIA H200", 132), Gpu("NVIDIA L4", 58)))),
        "NVIDIA H200, NVIDIA L4",
        "may break",
        healthy(torch=cuda(gpus=(Gpu("NVIDIA H200", 132), Gpu("NVIDIA H200", 132)))),
    ),
    (
        gpus.gpu_slices,
        healthy(torch=cuda(gpus=(Gpu("NVIDIA H200 MIG 1g.18gb", 16),))),
        "16 multiprocessors",
        "may break",
        healthy(torch=CUDA),
    ),
    (
        gpus.gpu_slices,
        healthy(torch=cuda(gpus=()), variables=variables(CUDA_VISIBLE_DEVICES="MIG-0")),
        "MIG",
        "may break",
        SILENT,
    ),
    (
        script.compiled_attention,
        healthy(torch=CUDA, imports=frozenset({"torch", FLEX_ATTENTION})),
        "flex_attention",
        "may break",
        healthy(torch=CUDA, imports=frozenset({"torch"})),
    ),
    (
        script.compiled_attention,
        healthy(torch=CUDA, imports=frozenset({FLEX_ATTENTION})),
        "flex_attention",
        "may break",
        healthy(imports=frozenset({FLEX_ATTENTION})),
    ),
    (gpus.gpu_model, healthy(torch=CUDA), "NVIDIA H200", "may break", SILENT),
    (
        packages.known_packages,
        healthy(packages={"accelerate": "1.15.0"}),
        "accelerate 1.15.0",
        "may break",
        healthy(packages={"requests": "2"}),
    ),
    (
        packages.packages_not_imported,
        healthy(packages={"accelerate": "1.15.0"}, imports=frozenset()),
        "accelerate",
        "note",
        healthy(packages={"accelerate": "1.15.0"}, imports=frozenset({"accelerate"})),
    ),
    (process.loader_position, SILENT, "no position", "note", healthy(torch=NO_TORCH)),
    (process.worker_draws, SILENT, "num_workers", "note", healthy(torch=NO_TORCH)),
    (process.worker_threads, healthy(torch=torch(threads=2)), "the main process with 2", "note", SILENT),
    (machine.torch_release, SILENT, "2.13.0+cpu", "may break", healthy(torch=NO_TORCH)),
    (machine.instruction_set, healthy(variables=UNPINNED), "AVX2", "may break", SILENT),
    (
        machine.instruction_set,
        healthy(variables=UNPINNED, torch=torch(capability="NEON")),
        "NEON",
        "note",
        SILENT,
    ),
    (
        machine.ineffective_instruction_set,
        healthy(variables=variables(ATEN_CPU_CAPABILITY="AVX512")),
        "ATEN_CPU_CAPABILITY=AVX512, but torch uses AVX2",
        "may break",
        SILENT,
    ),
    (
        machine.ineffective_instruction_set,
        healthy(variables=variables(ATEN_CPU_CAPABILITY="AVX2")),
        "lower case",
        "may break",
        SILENT,
    ),
    (
        machine.blas_library,
        healthy(torch=torch(mkl="2024.2")),
        "MKL 2024.2 chooses",
        "may break",
        healthy(torch=torch(mkl="2024.2"), variables=variables(MKL_CBWR="AVX2,STRICT")),
    ),
    (machine.blas_library, healthy(torch=torch(mkl="2024.2"), cpus=AMD), "AMD", "may break", SILENT),
    (
        machine.blas_library,
        healthy(torch=torch(mkl="2024.2"), cpus=AMD, variables=variables(MKL_CBWR="COMPATIBLE")),
        "AMD",
        "note",
        healthy(cpus=AMD),
    ),
    (
        machine.onednn_library,
        healthy(torch=torch(onednn="v3.12.0"), variables=UNPINNED),
        "oneDNN",
        "may break",
        healthy(torch=torch(onednn="v3.12.0")),
    ),
    (machine.cpu_count, healthy(torch=torch(threads=2)), "2 threads", "may break", SILENT),
    (
        script.settings_against_repeating,
        healthy(settings=(Setting("cudnn-benchmark", "on", "train.py", 3),)),
        "train.py:3 sets cudnn-benchmark to on",
        "may break",
        healthy(settings=(Setting("cudnn-benchmark", "off", "train.py", 3),)),
    ),
    (
        script.narrow_floats,
        healthy(settings=(Setting("matmul-precision", "high", "train.py", 3),)),
        "train.py:3 sets matmul-precision to high",
        "note",
        healthy(settings=(Setting("matmul-precision", "highest", "train.py", 3),)),
    ),
    (
        machine.tf32_override,
        healthy(torch=CUDA, variables=variables(NVIDIA_TF32_OVERRIDE="1")),
        "NVIDIA_TF32_OVERRIDE=1",
        "may break",
        healthy(variables=variables(NVIDIA_TF32_OVERRIDE="1")),
    ),
    (
        proof.writable_folder,
        healthy(record_folder=folder(unwritable="Read-only file system")),
        "Read-only file system",
        "breaks",
        SILENT,
    ),
    (
        proof.free_space,
        healthy(record_folder=folder(free_bytes=500_000_000)),
        "500 MB left",
        "may break",
        SILENT,
    ),
    (proof.free_space, healthy(record_folder=folder(free_bytes=0)), "0 MB left", "breaks", SILENT),
    (
        proof.digest,
        healthy(digest=DigestCheck(library=True, backend="avx2", error="wrong digest of ones(3)")),
        "wrong digest of ones(3)",
        "breaks",
        healthy(digest=None),
    ),
    (
        proof.digest,
        healthy(digest=DigestCheck(library=False, backend="torch")),
        "not installed",
        "note",
        SILENT,
    ),
    (
        proof.digest,
        healthy(digest=DigestCheck(library=True, backend="torch")),
        "not used",
        "note",
        SILENT,
    ),
    (proof.address_layout, healthy(fixable_layout=False), "address randomisation", "note", SILENT),
    (
        proof.repository,
        healthy(record_folder=folder(git="absent")),
        "git is not installed",
        "note",
        SILENT,
    ),
    (
        proof.repository,
        healthy(record_folder=folder(git="none")),
        "no git commit here",
        "note",
        SILENT,
    ),
    (
        proof.repository,
        healthy(record_folder=folder(git="distrusted")),
        "git does not trust this repository",
        "note",
        SILENT,
    ),
    (
        proof.repository,
        healthy(record_folder=folder(git="changed")),
        "uncommitted changes",
        "note",
        SILENT,
    ),
    (
        proof.unfit_variables,
        healthy(torch=CUDA, switches=(variable("PYTORCH_TUNABLEOP_ENABLED", "1", wanted="0", fits=False),)),
        "PYTORCH_TUNABLEOP_ENABLED=1: algorithms are chosen by timing",
        "breaks",
        healthy(switches=(variable("PYTORCH_TUNABLEOP_ENABLED", "1", wanted="0", fits=False),)),
    ),
    (
        proof.unfit_variables,
        healthy(switches=(variable("OMP_NUM_THREADS", "x", wanted=None, problem="a whole number"),)),
        "OMP_NUM_THREADS=x: expected a whole number",
        "may break",
        healthy(switches=(variable("OMP_NUM_THREADS", "2", wanted=None),)),
    ),
    (
        proof.unset_switches,
        healthy(switches=(switch(name="inductor-deterministic", fits=False, wanted="on"),)),
        "1 switch is not set as",
        "may break",
        healthy(switches=(switch(), variable("PYTHONHASHSEED", "random", wanted="0", fits=False))),
    ),
    (
        proof.set_variables,
        healthy(switches=(variable("MKL_CBWR", "AVX2", wanted=None),)),
        "set here: MKL_CBWR=AVX2",
        "note",
        healthy(switches=(variable("MKL_CBWR", "", wanted=None),)),
    ),
]


@pytest.mark.parametrize(("check", "here", "word", "level", "quiet"), CASES)
def test_a_check_speaks_and_is_silent(check, here, word, level, quiet):
    """One threat of the level where it must be, none where it must not."""
    (threat,) = check(here)

    assert word in f"{threat.found} {threat.why}"
    assert threat.level == level
    assert list(check(quiet)) == []


def test_every_check_is_tested():
    """No check was forgotten, here or in `CHECKS`."""
    assert {case[0] for case in CASES} == set(CHECKS)


@pytest.mark.parametrize("here", [case[1] for case in CASES])
def test_threats_are_complete(here):
    """Each has a known promise and level, a remedy and a source, on one line each."""
    for threat in examine(here):
        assert threat.promise in (*PROMISES, EVERY)
        assert threat.level in LEVELS
        texts = (threat.subject, threat.found, threat.why, threat.remedy, threat.source)
        assert all(text and "\n" not in text for text in texts)


@pytest.mark.parametrize("fact", PACKAGES, ids=lambda fact: f"{fact.names[0]}-{fact.promise}")
def test_a_package_is_found_and_forgiven(fact):
    """Installed: found. Not installed, not imported by the script, cured by its variable: not."""
    packages_ = {fact.names[-1]: "1.2.3"}

    def found(**changes):
        here = healthy(**{"torch": CUDA, "packages": packages_, **changes})
        return [threat for threat in packages.known_packages(here) if threat.why.startswith(fact.why)]

    assert [threat.level for threat in found()] == [fact.level]
    assert found(packages={}) == []
    assert found(imports=frozenset({"os"})) == []
    assert len(found(imports=frozenset({fact.module}))) == 1
    assert len(found(torch=torch())) == (0 if fact.cuda else 1)
    name, value = fact.cured_by
    assert not name or found(variables={name: value}) == []


@pytest.mark.parametrize("fact", PACKAGES, ids=lambda fact: f"{fact.names[0]}-{fact.promise}")
def test_a_package_is_documented(fact):
    """docs/reference/doctor.md has the same line."""
    row = f"| `{fact.names[0]}` | {fact.promise} | {fact.behaviour} | {fact.control or '-'} |"

    assert row in (Path(__file__).parents[4] / "docs" / "reference" / "doctor.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fact", PACKAGES, ids=lambda fact: f"{fact.names[0]}-{fact.promise}")
def test_a_package_takes_two_lines(fact):
    """What was found, and the remedy, fit on a terminal of 80 columns."""
    name = min(fact.names, key=len)

    assert len(f"{name} 10.10.10: {fact.behaviour}") <= 80 - 13
    assert len(f"> {fact.remedy}") <= 80 - 13


@pytest.mark.parametrize(
    ("view", "changes", "relevant"),
    [
        (switch(name="cudnn-benchmark"), {}, False),
        (switch(name="cudnn-benchmark"), {"torch": CUDA}, True),
        (switch(name="deterministic-algorithms"), {}, True),
        (switch(name="deterministic-algorithms", missing="not in this build"), {}, False),
        (switch(name="NCCL_ALGO", when="before the process group is made"), {"torch": CUDA}, False),
        (
            switch(name="NCCL_ALGO", when="before the process group is made"),
            {"torch": cuda(gpus=(Gpu("NVIDIA H200", 132),) * 2)},
            True,
        ),
        (
            switch(name="NCCL_ALGO", when="before the process group is made"),
            {"variables": {"WORLD_SIZE": "2"}},
            True,
        ),
        (switch(name="MAMBA_DETERMINISTIC"), {"torch": CUDA}, False),
        (switch(name="MAMBA_DETERMINISTIC"), {"torch": CUDA, "packages": {"mamba-ssm": "2"}}, True),
    ],
)
def test_switches_that_cannot_matter_are_left_out(view, changes, relevant):
    """A switch for what is not here does not differ."""
    here = healthy(switches=(dataclasses.replace(view, fits=False),), **changes)

    assert bool(proof.differing(here)) is relevant


def test_the_worst_comes_first():
    """By promise, then by level; threats to every promise before all."""
    here = healthy(
        torch=NO_TORCH,
        digest=DigestCheck(library=True, backend="avx2", error="wrong"),
        record_folder=folder(free_bytes=500_000_000, git="none"),
    )

    assert [(threat.promise, threat.level) for threat in examine(here)] == [
        ("every", "breaks"),
        ("proven", "breaks"),
        ("proven", "may break"),
        ("proven", "note"),
    ]


def test_one_promise_can_be_asked_for():
    """Others are left out, except for what threatens all."""
    here = healthy(torch=NO_TORCH, record_folder=folder(unwritable="full"))

    assert [threat.promise for threat in examine(here, ("repeatable",))] == ["every"]

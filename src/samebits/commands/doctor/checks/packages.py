"""Installed packages that change settings, rewind generators or hold private ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.commands.doctor.threat import MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.doctor.environment import EnvironmentSnapshot


@dataclass(frozen=True, slots=True)
class PackageFact:
    """A known threat of one package to one promise.

    Args:
        names: of the distributions, normalised; any of them has the package.
        module: what a script imports.
        promise: the threatened one.
        behaviour: what the package does, printed after its name.
        why: see `Threat`.
        remedy: see `Threat`.
        source: see `Threat`.
        level: see `Threat`.
        cuda: whether it matters only if torch is built for GPUs.
        cured_by: an environment variable and the value that makes it harmless.
        control: how `samebits run --seed N` helps; empty if it does not.
    """

    names: tuple[str, ...]
    module: str
    promise: str
    behaviour: str
    why: str
    remedy: str
    source: str
    level: str = MAY_BREAK
    cuda: bool = False
    cured_by: tuple[str, str] = ("", "")
    control: str = ""


_SILENT = (
    "Its own kernels ignore `torch.use_deterministic_algorithms`: there is neither a switch nor an error."
)
_TRACE = "samebits verify SCRIPT names its first op that differs"

FRAMEWORKS = (
    PackageFact(
        ("lightning",),
        "lightning",
        "repeatable",
        "strategies rewind the RNG to its seed",
        "DDP, FSDP and DeepSpeed strategies call `reset_seed()` when they set up; and processes that "
        "Lightning spawns do not get cudnn.deterministic and the TF32 settings.",
        "call seed_everything(N) before the model is made",
        "lightning 2.6.6, pytorch/strategies/ddp.py:200, launchers/multiprocessing.py:150",
        NOTE,
        control="carries its switches into the processes that are spawned",
    ),
    PackageFact(
        ("lightning", "pytorch-lightning"),
        "lightning",
        "resumable",
        "checkpoints hold no RNG state",
        "A resumed Trainer replays the data of epoch 0 from batch 0 with no more than a warning, and dropout "
        "draws different values.",
        "save and restore RNG states and the sampler's epoch in a callback",
        "lightning 2.6.6, measured; lightning#17543, #18780",
    ),
    PackageFact(
        ("transformers",),
        "transformers",
        "resumable",
        "restores the RNG after the first batches",
        "Augmentation in the first resumed steps draws other values; without random data the weights were "
        "equal. Checkpoints hold no RNG state of XPU devices.",
        "resume at epoch ends, or augment outside the dataset",
        "transformers 5.23.0, trainer.py:1867; PR #46628",
    ),
    PackageFact(
        ("transformers",),
        "transformers",
        "portable",
        "torch_compile switches TF32 on",
        "TrainingArguments sets TF32 when `torch_compile` is on and `tf32` is not given; TF32 exists on GPUs "
        "since Ampere only.",
        "TrainingArguments(tf32=False)",
        "transformers 5.23.0, training_args.py:1664",
        cuda=True,
        control="reports that the setting has changed",
    ),
    PackageFact(
        ("accelerate",),
        "accelerate",
        "resumable",
        "hides a failed restore of RNG states",
        "Restoring the generators is wrapped in a catch-all that logs at level INFO, so training goes on "
        "with different random numbers. Resuming inside an epoch also changes the order of the next epoch.",
        "log accelerate at level INFO, and resume at epoch ends",
        "accelerate 1.15.0, checkpointing.py:292-317; accelerate#4233",
    ),
    PackageFact(
        ("monai",),
        "monai",
        "repeatable",
        "its DataLoader rewinds torch's generator",
        "Each loader made without a generator sets the default CPU generator back to its first seed, so "
        "later draws repeat earlier ones. Adding a loader changes where that happens.",
        "give each monai DataLoader a generator",
        "monai 1.6.1, data/dataloader.py:79-92",
        NOTE,
    ),
    PackageFact(
        ("pytorch-ignite",),
        "ignite",
        "repeatable",
        "DeterministicEngine only warns",
        "It sets warn_only=True, which keeps the nondeterministic backward of fused attention.",
        "samebits run --seed N SCRIPT",
        "pytorch-ignite 0.5.5, engine/deterministic.py",
        cuda=True,
        control="switches the algorithms on, and reports that they were switched to warnings",
    ),
    PackageFact(
        ("mosaicml", "composer"),
        "composer",
        "resumable",
        "saves the RNG state of one GPU only",
        "Composer saves the state of the current CUDA device; a process with several devices loses the "
        "others.",
        "one GPU per process",
        "composer 0.32.1, utils/checkpoint.py:143-165",
        cuda=True,
    ),
    PackageFact(
        ("fastai",),
        "fastai",
        "repeatable",
        "set_seed() leaves nondeterministic ops",
        "It sets cuDNN's two flags and never calls `torch.use_deterministic_algorithms`.",
        "samebits run --seed N SCRIPT",
        "fastai 2.8.12, torch_core.py:162-204",
        NOTE,
        cuda=True,
        control="switches deterministic algorithms on",
    ),
)
DATA = (
    PackageFact(
        (
            "opencv-python",
            "opencv-python-headless",
            "opencv-contrib-python",
            "opencv-contrib-python-headless",
        ),
        "cv2",
        "resumable",
        "no RNG state to save",
        "OpenCV has `cv2.setRNGSeed` but nothing that reads the state, so a checkpoint cannot hold it.",
        "cv2.setRNGSeed(step) at each point that you may resume from",
        "cv2/__init__.pyi; opencv-python#1082",
        control="seeds it when it is imported",
    ),
    PackageFact(
        ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
        "cupy",
        "resumable",
        "no RNG state to save",
        "CuPy's generators are seeded per device, and cuRAND's host interface gives no state.",
        "cupy.random.seed(step) at each point that you may resume from",
        "docs.cupy.dev, cupy.random.seed",
        cuda=True,
        control="seeds all its devices when it is imported",
    ),
    PackageFact(
        ("albumentations", "albumentationsx"),
        "albumentations",
        "repeatable",
        "Compose() draws from its own RNG",
        "No global seed reaches it: with all of them set, 1 of 64 draws was the same in a second run.",
        "Compose(..., seed=N); samebits run --seed N SCRIPT",
        "albumentations 2.0.8, measured; albumentations.ai docs, reproducibility",
        control="makes its draws follow from N",
    ),
    PackageFact(
        ("albumentations", "albumentationsx"),
        "albumentations",
        "resumable",
        "Compose(seed=N) starts again",
        "Its generator starts again with each process, and draws depend on `num_workers`.",
        "reseed it at each epoch: transform.set_random_seed(epoch)",
        "albumentations 2.0.8, measured; AlbumentationsX#266",
    ),
    PackageFact(
        ("webdataset",),
        "webdataset",
        "repeatable",
        ".shuffle() is seeded by pid and time",
        "Reruns differ even with `detshuffle=True, seed=11` given to the constructor.",
        ".shuffle(n, seed=N)",
        "webdataset 1.0.2, filters.py:355, measured",
    ),
    PackageFact(
        ("datasets",),
        "datasets",
        "resumable",
        "a streaming shuffle loses samples",
        "IterableDataset.shuffle does not save its buffer: 16 of the 40 remaining samples were never seen.",
        "use a map-style dataset, or shuffle shards only",
        "datasets 5.0.1, measured; datasets#7901",
    ),
    PackageFact(
        ("torchdata",),
        "torchdata",
        "resumable",
        "resumes the order, not the draws",
        "0 of 40 augmentation draws were the same after resuming, and it refuses a different `num_workers`.",
        "return the RNG states from the dataset's state_dict",
        "torchdata 0.11.0, measured",
    ),
    PackageFact(
        ("litdata",),
        "litdata",
        "portable",
        "the order depends on the file system",
        "It shuffles windows on NFS and Lustre, and everything on a local disk.",
        "keep the data on file systems of one kind",
        "litdata 0.2.76, README",
    ),
)
KERNELS = (
    PackageFact(
        ("flash-attn", "flash-attn-3"),
        "flash_attn",
        "repeatable",
        "backward adds in any order",
        "FlashAttention 3 gives different dq even with `deterministic=True`.",
        "deterministic=True; export FLASH_ATTENTION_DETERMINISTIC=1",
        "transformers modeling_flash_attention_utils.py:696; flash-attention#2244",
        cuda=True,
        cured_by=("FLASH_ATTENTION_DETERMINISTIC", "1"),
        control="sets FLASH_ATTENTION_DETERMINISTIC=1",
    ),
    PackageFact(
        ("transformer-engine",),
        "transformer_engine",
        "repeatable",
        "nondeterministic attention",
        "Its fused attention uses faster kernels that add in any order.",
        "export NVTE_ALLOW_NONDETERMINISTIC_ALGO=0",
        "Megatron-LM, megatron/training/determinism.py",
        cuda=True,
        cured_by=("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"),
        control="sets NVTE_ALLOW_NONDETERMINISTIC_ALGO=0",
    ),
    PackageFact(
        ("mamba-ssm",),
        "mamba_ssm",
        "repeatable",
        "backward adds in any order",
        "Its kernels add with atomic operations.",
        "export MAMBA_DETERMINISTIC=1",
        "Megatron-LM, megatron/core/ssm/ops/common/determinism.py",
        cuda=True,
        cured_by=("MAMBA_DETERMINISTIC", "1"),
        control="sets MAMBA_DETERMINISTIC=1",
    ),
    PackageFact(
        ("causal-conv1d",),
        "causal_conv1d",
        "repeatable",
        "backward adds in any order",
        "Its kernels add with atomic operations; releases before 1.6.0 have no other kernels.",
        "version 1.6.0 or later, export CAUSAL_CONV1D_DETERMINISTIC=1",
        "Megatron-LM, megatron/training/determinism.py",
        cuda=True,
        cured_by=("CAUSAL_CONV1D_DETERMINISTIC", "1"),
        control="sets CAUSAL_CONV1D_DETERMINISTIC=1",
    ),
    PackageFact(
        ("horovod",),
        "horovod",
        "repeatable",
        "sums gradients as they become ready",
        "Which gradients are added together depends on which are ready at the same time.",
        "export HOROVOD_FUSION_THRESHOLD=0",
        "NVIDIA framework-reproducibility, doc/d9m/pytorch.md",
        cured_by=("HOROVOD_FUSION_THRESHOLD", "0"),
        control="sets HOROVOD_FUSION_THRESHOLD=0",
    ),
    PackageFact(
        ("triton", "pytorch-triton", "triton-rocm"),
        "triton",
        "repeatable",
        "autotuning chooses kernels by timing",
        "A cache of timings makes run 2 differ from run 1, as each kernel adds in its own order.",
        "fix the configuration of @triton.autotune, or keep its cache",
        "triton#9368",
        NOTE,
        cuda=True,
    ),
    PackageFact(
        ("nvidia-cutlass-dsl", "flydsl", "helion"),
        "cutlass",
        "portable",
        "changes which kernels torch runs",
        "torch._native uses kernels of optional packages when they are installed.",
        "install it everywhere, or export TORCH_DISABLE_NATIVE_JIT=1",
        "torch 2.15.0, torch/_native",
        cuda=True,
    ),
    *(
        PackageFact(
            (name,),
            module,
            "repeatable",
            "has kernels that no flag reaches",
            _SILENT,
            _TRACE,
            "alerts in libtorch_cuda 2.15.0: call sites in torch's own ops only",
            NOTE,
            cuda=True,
        )
        for name, module in (
            ("apex", "apex"),
            ("deepspeed", "deepspeed"),
            ("bitsandbytes", "bitsandbytes"),
            ("xformers", "xformers"),
        )
    ),
)
PACKAGES = FRAMEWORKS + DATA + KERNELS


def known_packages(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No package that is installed, or that the script imports, is known to threaten a promise."""
    for fact in PACKAGES:
        name = _installed_name(fact, snapshot)
        if not name or not _matters(fact, snapshot):
            continue
        if snapshot.imports is not None and fact.module not in snapshot.imports:
            continue
        behaviour = f"{name} {snapshot.packages[name]}: {fact.behaviour}"
        why = f"{fact.why} `samebits run --seed N` {fact.control or 'does not change that'}."
        yield Threat(fact.promise, name, behaviour, why, fact.remedy, fact.source, fact.level)


def packages_not_imported(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Packages that the script does not import itself are named, not judged."""
    if snapshot.imports is None:
        return
    facts = [fact for fact in PACKAGES if fact.module not in snapshot.imports and _matters(fact, snapshot)]
    names = sorted({name for fact in facts if (name := _installed_name(fact, snapshot))})
    if names:
        yield Threat(
            "repeatable",
            "packages",
            f"installed, not imported by the script itself: {', '.join(names)}",
            "They threaten a promise only if something that the script imports imports them, and that is "
            "not followed.",
            "run samebits doctor without a script to see what they threaten",
            "read from the source of the script and the modules beside it",
            NOTE,
        )


def _matters(fact: PackageFact, snapshot: EnvironmentSnapshot) -> bool:
    variable, value = fact.cured_by
    if variable and snapshot.variables.get(variable) == value:
        return False
    return not fact.cuda or bool(snapshot.torch.cuda)


def _installed_name(fact: PackageFact, snapshot: EnvironmentSnapshot) -> str:
    return next((name for name in fact.names if name in snapshot.packages), "")

"""What to do about each cause, by what gave the evidence: one table, in the user's terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from samebits.determinism.vector_math import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Row:
    """What to do about one source of one cause.

    Args:
        cause: the cause.
        pattern: a regular expression for the beginning of the source: the op of a draw such as `time.time`,
            or the op of the finding. Empty fits any.
        text: the change, one sentence without a full stop. `{line}` is the place.
        controls: names of the pins of `samebits run` that do the same without a change of the code.
        in_worker: it speaks of draws in the processes of a DataLoader.
    """

    cause: str
    pattern: str
    text: str
    controls: tuple[str, ...] = ()
    in_worker: bool = False


BY_LIBRARY = "a library's generator"
"""Stands for a source that an installed library made, on behalf of the user's line."""
OF_PACKAGES = {
    "faker": "call `Faker.seed(0)` after the imports",
    "optuna": "give the study a sampler with a seed: `create_study(sampler=TPESampler(seed=0))`",
}
"""Package -> what to do where the function that the user's line calls takes no seed itself."""
TABLE = (
    *(
        Row(
            f"unseeded-{library}",
            "seed$",
            "seed with a number: what it is seeded with is another one in each run",
            (f"seed-{library}",),
        )
        for library in ("torch", "numpy", "python")
    ),
    *(
        Row(f"unseeded-{library}", f"{BY_LIBRARY} {package}[.]", text, (f"seed-{library}",))
        for library in ("numpy", "python")
        for package, text in OF_PACKAGES.items()
    ),
    *(
        Row(
            f"unseeded-{library}",
            BY_LIBRARY,
            "what is called here makes a generator of its own: give it a seed, `seed=0` or `random_state=0` "
            "where it takes one; a seed for the library's global generator does not reach it",
            (f"seed-{library}",),
        )
        for library in ("numpy", "python")
    ),
    Row(
        "unseeded-torch",
        "torch.seed|torch.Generator.seed",
        "seed with a number: `manual_seed(0)` in place of `seed()`",
        ("seed-torch",),
    ),
    Row(
        "unseeded-torch",
        "DataLoader",
        "give the loader `generator=torch.Generator().manual_seed(0)`, or call "
        "`torch.manual_seed(0)` before it",
        ("seed-torch",),
    ),
    Row(
        "unseeded-torch",
        "",
        "call `torch.manual_seed(0)` after the imports, before the first tensor is made",
        ("seed-torch",),
    ),
    Row(
        "unseeded-numpy",
        "",
        "seed it from torch in the worker, in `worker_init_fn` or at the first sample: "
        "`torch.initial_seed()` is another number in each worker and the same in each run",
        ("seed-numpy",),
        in_worker=True,
    ),
    Row(
        "unseeded-numpy",
        "numpy.random.SeedSequence",
        "give the generator a seed: `default_rng(0)`, `RandomState(0)`, `SeedSequence(0)`",
        ("seed-numpy",),
    ),
    Row(
        "unseeded-numpy",
        "",
        "call `numpy.random.seed(0)` after the imports, or draw from a `default_rng(0)` of your own",
        ("seed-numpy",),
    ),
    Row(
        "unseeded-python",
        "",
        "seed it from torch in the worker, in `worker_init_fn` or at the first sample: "
        "`torch.initial_seed()` is another number in each worker and the same in each run",
        ("seed-python",),
        in_worker=True,
    ),
    Row(
        "unseeded-python",
        "random.Random",
        "make it with a number: `random.Random(0)` has the same state in each run",
        ("seed-python",),
    ),
    Row(
        "unseeded-python",
        "random.seed",
        "seed with a number: `random.seed(0)`",
        ("seed-python",),
    ),
    Row(
        "unseeded-python",
        "",
        "call `random.seed(0)` after the imports, or draw from a `random.Random(0)` of your own",
        ("seed-python",),
    ),
    Row(
        "os-entropy",
        "uuid",
        "make the identifier from what it names, or from seeded numbers; `uuid` is another one in each run",
        ("entropy",),
    ),
    Row(
        "os-entropy",
        "secrets|random.SystemRandom",
        "draw from `random`, seeded: `secrets` and `SystemRandom` cannot be",
        ("entropy",),
    ),
    Row(
        "os-entropy",
        "os.urandom",
        "draw the bytes from `random`, seeded: `random.randbytes` in the place of `os.urandom`",
        ("entropy",),
    ),
    Row(
        "os-entropy",
        "tempfile",
        "sort by a name or number of your own, not by the random name of a temporary file",
        ("entropy",),
    ),
    Row(
        "os-entropy",
        "",
        "put a number in the place of the system's entropy",
        ("entropy",),
    ),
    Row(
        "wall-clock",
        "time.(perf_counter|monotonic|process_time|thread_time)",
        "count steps or samples, not seconds: put a number in the place of the time that decides",
        ("clock",),
    ),
    Row(
        "wall-clock",
        "datetime|time.(localtime|strftime|ctime|gmtime)",
        "pass the date in as an argument, so that a run can be given the same one again",
        ("clock",),
    ),
    Row(
        "wall-clock",
        "",
        "put a number in the place of the time; print it if it is to vary",
        ("clock",),
    ),
    Row(
        "hash-order",
        "builtins.hash",
        "use a checksum, `zlib.crc32(repr(x).encode())`: `hash` of a string is salted in each process",
        ("hash-seed",),
    ),
    Row(
        "hash-order",
        "",
        "sort the set before its order is used: `sorted(...)`, or keep a list",
        ("hash-seed",),
    ),
    Row(
        "id-order",
        "builtins.repr",
        "give the objects a `__repr__` or a name of their own: the default one holds the address",
        ("layout",),
    ),
    Row(
        "id-order",
        "builtins.id",
        "give the objects numbers of their own: `id` is an address",
        ("layout",),
    ),
    Row(
        "id-order",
        ".*data_ptr|ctypes.addressof",
        "put a number of your own in the place of the address: memory lies elsewhere in each run",
        ("layout",),
    ),
    Row(
        "id-order",
        "",
        "keep the objects in a list or `dict.fromkeys(...)`: a set of them is in the order of "
        "their addresses",
        ("layout",),
    ),
    Row(
        "race",
        "concurrent.futures.as_completed",
        "go through the work in the order in which it was given, not in which it ended: iterate "
        "the list of futures itself, not `as_completed`",
        ("completion", "serial-threads"),
    ),
    Row(
        "race",
        "concurrent.futures.wait",
        "go through the work in the order in which it was given, not in which it ended: iterate "
        "the list of futures itself, not the set that `wait` gives",
        ("completion", "serial-threads"),
    ),
    Row(
        "race",
        "multiprocessing.pool",
        "go through the work in the order in which it was given, not in which it ended: `imap` or"
        " `map` in place of `imap_unordered`",
        ("completion",),
    ),
    Row(
        "race",
        "multiprocessing|queue",
        "take what several producers put into one queue in an order of your own: give each producer a queue "
        "and take from them in turn, or send a number along and sort by it",
        ("completion", "serial-threads"),
    ),
    Row(
        "race",
        "",
        "let one thread at a time change what is shared, in a fixed order: join the threads, or "
        "give each its own copy and add them up in order",
        ("serial-threads", "completion"),
    ),
    Row(
        "worker-order",
        "",
        "let no sample depend on which worker takes it or when: no shared counters or queues, "
        "`in_order=True`, seeds from `torch.initial_seed()`",
        ("workers",),
    ),
    Row(
        "uninitialized",
        ".*resize_",
        "write what `resize_` adds: it leaves that memory as it was",
        ("fill",),
    ),
    Row(
        "uninitialized",
        "numpy.empty",
        "use `numpy.empty`'s sibling that fills: `zeros`, `full`, or write every element before it is read",
        ("fill",),
    ),
    Row(
        "uninitialized",
        "",
        "use `zeros` in place of `empty`, or write every element before it is read",
        ("fill",),
    ),
    Row(
        "nondeterministic-kernel",
        "aten::(index_add|index_put|_index_put_impl|put|scatter_add|scatter_reduce|"
        "index_copy|cumsum|embedding_dense_backward|index)",
        "call `torch.use_deterministic_algorithms(True)` at the start of the script; it has a "
        "deterministic kernel for this op",
        ("deterministic",),
    ),
    Row(
        "nondeterministic-kernel",
        "aten::upsample",
        "call `torch.use_deterministic_algorithms(True)` at the start of the script, and call "
        "`torch.nn.functional.interpolate` itself: it picks a deterministic way when called, but "
        "for 'linear' and antialias",
        ("deterministic",),
    ),
    Row(
        "nondeterministic-kernel",
        "aten::(mm|addmm|bmm|baddbmm|matmul|linear)",
        "call `torch.use_deterministic_algorithms(True)` at the start of the script, and on CUDA "
        "set CUBLAS_WORKSPACE_CONFIG=:4096:8 before the first product",
        ("deterministic", "threads"),
    ),
    Row(
        "nondeterministic-kernel",
        "aten::_cudnn_rnn",
        "set CUBLAS_WORKSPACE_CONFIG=:4096:2; torch has no other switch for recurrent layers of cuDNN",
        ("deterministic",),
    ),
    Row(
        "nondeterministic-kernel",
        "aten::(bincount|histc|median|nanmedian)",
        "call `torch.use_deterministic_algorithms(True)` at the start of the script: it raises "
        "where the op has no deterministic way on CUDA, and `samebits run --deterministic` says "
        "what to use instead",
        ("deterministic",),
    ),
    Row(
        "nondeterministic-kernel",
        f"aten::(_foreach_)?({'|'.join(FUNCTIONS)})_?([.]|$)",
        "call the function on one element after the imports, `torch.ones(1).sqrt()`: threads that make "
        "the first call of MKL's kernels together may get another one (pytorch#188792)",
        ("deterministic", "threads"),
    ),
    Row(
        "nondeterministic-kernel",
        "",
        "call `torch.use_deterministic_algorithms(True)` at the start of the script",
        ("deterministic", "threads"),
    ),
    Row(
        "thread-count",
        "",
        "fix the number of threads: `torch.set_num_threads(1)`, or a number that is the same everywhere",
        ("threads",),
    ),
    Row(
        "autotuning",
        "",
        "decide once and write it down: a choice by the time it took is another one in each run",
        ("autotuning", "clock"),
    ),
    Row(
        "environment",
        r".*\.inode$",
        "sort by the names of the files, or by what is in them, not by inode numbers",
        ("inodes",),
    ),
    Row(
        "environment",
        r".*\.time$",
        "use what is in the files, not their times",
        ("file-times",),
    ),
    Row(
        "environment",
        "os.(listdir|scandir|walk|fwalk)|glob|pathlib",
        "sort the listing: `sorted(os.listdir(...))`",
        ("listing",),
    ),
    Row(
        "environment",
        "os.(getpid|getppid)",
        "put a number in the place of the process number",
        ("process",),
    ),
    Row(
        "environment",
        "os.getloadavg|psutil|resource|shutil",
        "put a number in the place of what the machine has free or does",
        ("memory-load",),
    ),
    Row(
        "environment",
        "socket.getsockname",
        "take the port from an argument; one that the system chooses is another one in each run",
        ("ports",),
    ),
    Row(
        "environment",
        "socket|platform|os.uname",
        "take the name or port from an argument, not from the machine",
        ("process",),
    ),
    Row(
        "environment",
        "",
        "put a value of your own in the place of the fact of the machine",
        ("process", "file-times", "memory-load", "listing", "inodes", "ports"),
    ),
)


def row_for(cause: str, source: str, *, in_worker: bool = False) -> Row | None:
    """The first row that fits; None for a cause without a remedy."""
    rows = (row for row in TABLE if row.cause == cause and (in_worker or not row.in_worker))
    return next((row for row in rows if re.match(row.pattern, source)), None)

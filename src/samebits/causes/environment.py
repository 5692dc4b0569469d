"""The result depends on a fact about the process, its files or the machine."""

from __future__ import annotations

from samebits.causes.specification import (
    SEEDING,
    Advice,
    Cause,
    InterventionEvidence,
    PatchRule,
    Specification,
    anywhere,
    nearby,
)

FACTS = ("process", "listing", "file-times", "memory-load", "inodes", "ports")
"""The interventions on facts, the likeliest first."""

# The source of the fact shows which intervention acted; the cause does not.
SPECIFICATION = Specification(
    cause=Cause.ENVIRONMENT,
    sentence="depends on a fact of this process or machine{source}",
    weighty_draws=r"(?!.*\.(time|inode)$)(os\.(listdir|scandir|walk|fwalk)|glob\.|pathlib\.)",
    is_drawn=True,
    interventions=tuple((name,) for name in FACTS),
    evidence=(
        *(InterventionEvidence(name, acts=False) for name in FACTS),
        InterventionEvidence("layout", 1, acts=False),
    ),
    advice=(
        Advice(
            "sort by the names of the files, or by what is in them, not by inode numbers",
            ("inodes",),
            r".*\.inode$",
        ),
        Advice("use what is in the files, not their times", ("file-times",), r".*\.time$"),
        Advice(
            "sort the listing: `sorted(os.listdir(...))`",
            ("listing",),
            "os.(listdir|scandir|walk|fwalk)|glob|pathlib",
        ),
        Advice(
            "replace the process number with a constant",
            ("process",),
            "os.(getpid|getppid)",
        ),
        Advice(
            "replace what the machine has free or does with a constant",
            ("memory-load",),
            "os.getloadavg|psutil|resource|shutil",
        ),
        Advice(
            "take the port from an argument; one that the system chooses differs in each run",
            ("ports",),
            "socket.getsockname",
        ),
        Advice(
            "take the name or port from an argument, not from the machine",
            ("process",),
            "socket|platform|os.uname",
        ),
        Advice(
            "replace the fact about the machine with a value of your own",
            ("process", "file-times", "memory-load", "listing", "inodes", "ports"),
        ),
    ),
    acts_at_its_line=True,
    patches=(
        *nearby(PatchRule.NO_ADDRESSES, PatchRule.FIXED_PROCESS_FACTS),
        *anywhere(PatchRule.SORT_LISTINGS, *SEEDING, PatchRule.FIXED_THREAD_COUNT),
    ),
    no_patch="a fact about the machine reached the numbers: use a number of your own",
)

"""Differences between two environments that can change bits: the likeliest first, and no others."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from samebits.comparison.environments import EnvironmentComparison, compare_environments, facts_behind
from samebits.comparison.influence_table import influences
from samebits.comparison.verdict import _environment
from samebits.environment.influence import ANY, BY_CUBLAS, BY_CUDNN, OPS, Results, Strength
from samebits.environment.numeric_libraries import LibraryKind
from samebits.environment.snapshot import collect, collect_at_start
from samebits.environment.torch_build import collect_torch
from samebits.records.events import RunInfo
from samebits.records.kinds import Level
from samebits.records.notes import NoteCode
from samebits.report.environments import (
    _LIBRARIES,
    _RESULTS,
    _STRENGTHS,
    fact_difference,
    render_json,
    render_text,
)
from samebits.report.style import Style


def info(facts: dict[str, Any], *arguments: str, status: str = "finished", **control: Any) -> RunInfo:
    return RunInfo(("train.py", *arguments), Level.STEP, status, environment=facts, control=control)


def told(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """The differences as a user reads them."""
    return [fact_difference(each.fact) for each in compare_environments(info(a), info(b)).differences]


@pytest.fixture
def facts() -> dict[str, Any]:
    """Facts with a value in each place."""
    facts = collect().to_dict()
    facts["torch"] = {
        "version": "2.13.0",
        "capability": "AVX512",
        "threads": {"intra-op": 8},
        "cudnn": "8902",
    }
    facts["torch"] |= {"gpus": [], "default_dtype": "torch.float32"}
    facts["machine"] |= {"instructions": ["avx2", "avx512f", "fma"], "processor": "AMD EPYC", "cpus": 8}
    facts["source"] = {"commit": "abc", "changed": False}
    facts["variables"] = {"MKL_CBWR": "COMPATIBLE"}
    facts["switches"] = {"cudnn-benchmark": "on", "MKL_CBWR": "COMPATIBLE", "matmul-precision": "highest"}
    facts["code"] = {"train.py": {"sha256": "1" * 64}, "model": {"sha256": "2" * 64}}
    facts["data"] = {"files": {"a.csv": {"sha256": "3" * 64, "size": 5, "count": 1}}, "unread": []}
    facts["distributions"] = {
        "numpy": {"version": "2.1.0", "contents": "4" * 32, "imported": True, "edited": []},
        "unused": {"version": "1", "contents": "5" * 32, "imported": False, "edited": []},
    }
    return facts


def test_the_same_environment_has_no_differences(facts: dict[str, Any]) -> None:
    """Also after a round through JSON."""
    comparison = compare_environments(info(facts), info(json.loads(json.dumps(facts))))
    assert comparison == EnvironmentComparison(())


def test_differences_are_named_in_plain_words(facts: dict[str, Any]) -> None:
    """One line each, inputs first, then what was measured; facts that change no bits are left out."""
    other = copy.deepcopy(facts)
    other["machine"] |= {"system": "Linux 0.1", "instructions": ["avx2", "fma", "sve"]}
    other["torch"] |= {"threads": {"intra-op": 1}, "cudnn": "90100", "capability": "AVX2"}
    other["torch"]["gpus"] = [{"name": "H200", "multiprocessors": 132}]
    other["switches"] = {"cudnn-benchmark": "off", "MKL_CBWR": "", "matmul-precision": "highest"}
    other["code"]["model"] = {"sha256": "9" * 64}
    other["variables"] = {"OMP_NUM_THREADS": "1"}
    other["distributions"]["numpy"]["version"] = "2.2.0"
    other["distributions"]["unused"]["version"] = "2"

    assert told(facts, other) == [
        "code of model: 222222222222 and 999999999999",
        "environment variable OMP_NUM_THREADS: not set and 1",
        "environment variable MKL_CBWR: COMPATIBLE and not set",
        "vector instructions of the processor: only the first has avx512f; only the second has sve",
        "GPUs: only the second has name=H200 multiprocessors=132",
        "cuDNN version: 8902 and 90100",
        "switch cudnn-benchmark: on and off",
        "package numpy: 2.1.0 and 2.2.0",
    ]


def test_consequences_are_told_with_their_reason(facts: dict[str, Any]) -> None:
    """A variable that changes the number of threads is one difference, not four."""
    other = copy.deepcopy(facts)
    other["variables"] |= {"ATEN_CPU_CAPABILITY": "avx2"}
    other["torch"]["capability"] = "AVX2"
    (difference,) = compare_environments(info(facts), info(other)).differences

    assert difference.fact.entry == "ATEN_CPU_CAPABILITY"
    assert [fact_difference(each) for each in difference.follows] == [
        "CPU instruction set that torch uses: AVX512 and AVX2"
    ]
    assert Results.NORMAL_NUMBERS in difference.results
    assert difference.strength is Strength.MEASURED


def test_a_setting_without_effect_is_no_difference(facts: dict[str, Any]) -> None:
    """As many threads as without the variable; the instruction set that the processor has anyway."""
    other = copy.deepcopy(facts)
    other["variables"] |= {"OMP_NUM_THREADS": "8", "ATEN_CPU_CAPABILITY": "avx512"}

    assert told(facts, other) == []


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"commit": "def", "changed": True}},  # of files that the run did not use
        {"variables": {"MKL_CBWR": "COMPATIBLE", "TORCH_HOME": "/home/b", "NCCL_ALGO": "Tree"}},
        {"variables": {"MKL_CBWR": "COMPATIBLE", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}},  # no GPU in use
        {"taken": None},
    ],
)
def test_what_cannot_matter_is_not_claimed(facts: dict[str, Any], change: dict[str, Any]) -> None:
    assert told(facts, {**facts, **change}) == []


def test_without_digests_of_the_code_the_commit_counts(facts: dict[str, Any]) -> None:
    """As in records of earlier versions."""
    del facts["code"]
    assert told(facts, {**facts, "source": {"commit": "def", "changed": False}}) == [
        "commit of the script's repository: abc and def"
    ]


def test_collectives_and_gpus_count_where_they_are_used(facts: dict[str, Any]) -> None:
    facts["ranks"] = {"world_size": 2}
    facts["torch"]["gpus"] = [{"name": "H200"}]
    other = copy.deepcopy(facts)
    other["variables"] |= {"NCCL_ALGO": "Tree", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}

    assert sorted(told(facts, other)) == [
        "environment variable CUBLAS_WORKSPACE_CONFIG: not set and :16:8",
        "environment variable NCCL_ALGO: not set and Tree",
    ]


def library(
    file: str, build: str = "", package: str = "", version: str = "", size: int = 0
) -> dict[str, Any]:
    return {"file": file, "build": build, "size": size, "package": package, "version": version}


def with_libraries(facts: dict[str, Any], *libraries: Any, **changed: Any) -> dict[str, Any]:
    """The facts of two ranks on a GPU."""
    torch = {**facts["torch"], "gpus": [{"name": "H200"}]}
    return {**facts, "torch": torch, "ranks": {"world_size": 2}, "libraries": list(libraries), **changed}


OLD = (
    library("libcublas.so.12", "a1" * 20, "nvidia-cublas-cu12", "12.4.5.8"),
    library("libcudnn.so.9", "a2" * 20, "nvidia-cudnn-cu12", "9.1.0.70"),
    library("libnccl.so.2", "a3" * 20, "nvidia-nccl-cu12", "2.21.5"),
)
NEW = (
    library("libcublas.so.12", "b1" * 20, "nvidia-cublas-cu12", "12.8.4.1"),
    library("libcudnn.so.9", "b2" * 20, "nvidia-cudnn-cu12", "9.10.2.21"),
    library("libcudnn_cnn.so.9", "b4" * 20, "nvidia-cudnn-cu12", "9.10.2.21"),
    library("libnccl.so.2", "b3" * 20, "nvidia-nccl-cu12", "2.27.3"),
)


@pytest.mark.parametrize(
    ("op", "first", "results"),
    [
        ("aten::mm.default", "cublas", BY_CUBLAS),
        ("aten::convolution_backward.default", "cudnn", BY_CUDNN),
        ("aten::cudnn_batch_norm.default", "cudnn", BY_CUDNN),
        ("aten::cudnn_grid_sampler.default", "cudnn", BY_CUDNN),
        ("c10d::allreduce_.default", "nccl", (Results.COLLECTIVES,)),
    ],
)
def test_the_library_that_computes_the_op_comes_first(
    facts: dict[str, Any], op: str, first: str, results: tuple[Results, ...]
) -> None:
    a, b = info(with_libraries(facts, *OLD)), info(with_libraries(facts, *NEW))
    differences = compare_environments(a, b, op).differences

    assert {each.fact.entry for each in differences} == {"cublas", "cudnn", "nccl"}
    assert (differences[0].fact.entry, differences[0].results) == (first, results)
    assert [each.at_origin for each in differences] == [True, False, False]
    assert [each.entry for each in facts_behind(a, b, op)] == [first]


def test_libraries_of_the_gpu_count_where_it_was_used(facts: dict[str, Any]) -> None:
    """CUDA builds of torch load them all at the import; and NCCL is for several ranks."""
    a, b = with_libraries(facts, *OLD), with_libraries(facts, *NEW)
    cpu = {"torch": facts["torch"]}
    assert told({**a, **cpu}, {**b, **cpu}) == []
    assert told({**a, "ranks": None}, {**b, "ranks": None}) == [
        "loaded library cuBLAS: nvidia-cublas-cu12 12.4.5.8 and nvidia-cublas-cu12 12.8.4.1",
        "loaded library cuDNN: nvidia-cudnn-cu12 9.1.0.70 and nvidia-cudnn-cu12 9.10.2.21",
    ]


def test_the_version_of_nccl_needs_a_gpu_too(facts: dict[str, Any]) -> None:
    """Ranks on processors use gloo, though a CUDA build of torch loads NCCL."""
    a, b = (copy.deepcopy({**facts, "ranks": {"world_size": 2}}) for _ in range(2))
    a["torch"]["nccl"], b["torch"]["nccl"] = "2.21.5", "2.27.3"
    assert told(a, b) == []
    a["torch"]["gpus"] = b["torch"]["gpus"] = [{"name": "H200"}]
    assert told(a, b) == ["NCCL version: 2.21.5 and 2.27.3"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The same build from a wheel and from a system, or under another name of the package.
        (library("libcublas.so.13", "aa", "nvidia-cublas", "13.4"), library("libcublas.so.13.4", "aa"), None),
        # One version, built twice.
        (
            library("libcublas.so.12", "aa" * 20, "x", "1"),
            library("libcublas.so.12", "bb" * 20, "x", "1"),
            "x 1, build aaaaaaaaaaaa and x 1, build bbbbbbbbbbbb",
        ),
        # No build ID: version and size.
        (library("libcublas.so.12", "", "x", "1", 5), library("libcublas.so.12", "", "x", "1", 5), None),
        (library("libcublas.so.12", "", "x", "1"), library("libcublas.so.12", "", "x", "2"), "x 1 and x 2"),
        (
            library("libcublas.so.12", size=5),
            library("libcublas.so.12", size=6),
            "libcublas.so.12, build 5 bytes and libcublas.so.12, build 6 bytes",
        ),
        # Names only, as in the first records.
        ("libcublas.so.12", library("libcublas.so.12", "aa", "x", "1", 5), None),
        ("libcublas.so.12", "libcublas.so.11", "libcublas.so.12 and libcublas.so.11"),
        # Of no kind that is known, as a record of a later version may have.
        (library("libnew.so.1", "aa"), library("libnew.so.1", "aa"), None),
        (library("libcublas.so.12", "aa", "x", "1"), None, "x 1 and not loaded"),
    ],
)
def test_libraries_are_compared_by_build(
    facts: dict[str, Any], first: Any, second: Any, expected: str | None
) -> None:
    both = with_libraries(facts, first), with_libraries(facts, *([] if second is None else [second]))
    assert told(*both) == ([] if expected is None else [f"loaded library cuBLAS: {expected}"])


def test_two_libraries_for_one_purpose_are_not_the_same(facts: dict[str, Any]) -> None:
    """OpenMP of GNU and of Intel."""
    both = ({**facts, "libraries": [library(file, "aa")]} for file in ("libgomp.so.1", "libiomp5.so"))
    assert told(*both) == ["loaded library OpenMP: libgomp.so.1 and libiomp5.so"]


def test_a_library_that_a_package_brings_follows_it_and_cublas_does_not(facts: dict[str, Any]) -> None:
    blas = library("libscipy_openblas64_-32a4b2a6.so", "aa", "numpy", "2.1.0")
    newer = library("libscipy_openblas64_-ff651d7f.so", "bb", "numpy", "2.2.0")
    a, b = with_libraries(facts, OLD[0], blas), with_libraries(facts, NEW[0], newer)
    b["distributions"] = {**b["distributions"], "numpy": {"version": "2.2.0", "imported": True}}

    cublas, numpy = compare_environments(info(a), info(b)).differences
    assert (cublas.fact.entry, cublas.follows) == ("cublas", ())
    assert (numpy.fact.entry, [each.entry for each in numpy.follows]) == ("numpy", ["blas"])


def test_libraries_of_this_machine_are_those_of_its_packages_unless_they_are_loaded(
    facts: dict[str, Any],
) -> None:
    """Where nothing ran, only torch is imported. What is not installed is not known."""
    run = with_libraries(facts, *OLD)
    packages = {"nvidia-cublas-cu12": {"version": "12.4.5.8"}, "nvidia-nccl-cu12": {"version": "2.27.3"}}
    here = with_libraries(facts, NEW[1], library("libiomp5.so", "cc"), taken="here")
    here["distributions"] = {**facts["distributions"], **packages}

    assert sorted(told(run, here)) == [
        "loaded library NCCL: nvidia-nccl-cu12 2.21.5 and nvidia-nccl-cu12 2.27.3",
        "loaded library cuDNN: nvidia-cudnn-cu12 9.1.0.70 and nvidia-cudnn-cu12 9.10.2.21",
    ]


def test_cudnn_whose_version_is_known_of_one_run_only_is_no_difference(facts: dict[str, Any]) -> None:
    """Where CUDA is not in use, torch does not tell it."""
    assert told(facts, {**facts, "torch": {**facts["torch"], "cudnn": ""}}) == []


def test_arguments_seeds_and_portable_mode_are_inputs(facts: dict[str, Any]) -> None:
    a = info(facts, "--lr", "1", "--data", "/home/a/set.pt", seed=0)
    b = info(facts, "--lr", "2", "--data", "/mnt/b/set.pt", seed=1, portable=True)
    differences = compare_environments(a, b).differences

    assert [fact_difference(each.fact) for each in differences] == [
        "arguments of the script: --lr, 1, --data, /home/a/set.pt and --lr, 2, --data, /mnt/b/set.pt",
        "seed: 0 and 1",
        "portable mode: off and on",
    ]
    moved = info(facts, "--lr", "1", "--data", "/mnt/b/set.pt", seed=0)
    assert compare_environments(a, moved).differences == ()
    hidden = info(facts, "(arguments not recorded)", seed=0)
    assert compare_environments(a, hidden).differences == ()


def test_data_is_compared_by_contents(facts: dict[str, Any]) -> None:
    """The same file in another folder is the same; one with another byte is not."""
    moved, edited = copy.deepcopy(facts), copy.deepcopy(facts)
    moved["data"]["files"] = {"b.csv": facts["data"]["files"]["a.csv"]}
    edited["data"]["files"]["a.csv"] = {"sha256": "7" * 64, "size": 5, "count": 1}

    assert told(facts, moved) == []
    assert told(facts, edited) == ["data file a.csv: 333333333333 (5 bytes) and 777777777777 (5 bytes)"]


def test_packages_of_one_version_may_have_other_contents(facts: dict[str, Any]) -> None:
    """A wheel that was built again, and a file that was edited in place."""
    rebuilt, edited = copy.deepcopy(facts), copy.deepcopy(facts)
    rebuilt["distributions"]["numpy"]["contents"] = "8" * 32
    edited["distributions"]["numpy"]["edited"] = ["numpy/core.py " + "9" * 64]

    assert told(facts, rebuilt) == [
        "package numpy: 2.1.0, contents 444444444444 and 2.1.0, contents 888888888888"
    ]
    assert told(facts, edited) == ["package numpy: 2.1.0 and 2.1.0, edited: numpy/core.py 999999999999"]


def test_what_the_runs_part_at_comes_first(facts: dict[str, Any]) -> None:
    """Inputs stay before it: they can change everything."""
    other = copy.deepcopy(facts)
    other["variables"] = {"OMP_NUM_THREADS": "1", "MKL_CBWR": "AVX2"}
    other["torch"]["threads"] = {"intra-op": 1}

    def first(op: str) -> str | None:
        return compare_environments(info(facts), info(other), op).differences[0].fact.entry

    assert (first("aten::mm.default"), first("aten::sum.default")) == ("MKL_CBWR", "OMP_NUM_THREADS")
    other["code"]["model"] = {"sha256": "9" * 64}
    assert first("aten::mm.default") == "model"


def test_a_run_that_was_stopped_says_nothing_of_what_is_imported_later(facts: dict[str, Any]) -> None:
    """Twin runs are stopped where they differ; a package of another version differs all the same."""
    whole = copy.deepcopy(facts)
    whole["distributions"]["numpy"]["version"] = "1.0"
    whole["distributions"]["unused"]["imported"] = True
    whole["libraries"] = [*facts["libraries"], {"file": "libblis.so.4"}]
    whole["variables"] = {"MKL_CBWR": "AVX2", "TORCHINDUCTOR_DETERMINISTIC": "1"}
    stopped = info(facts, status="stopped")

    differences = compare_environments(stopped, info(whole)).differences
    assert [fact_difference(each.fact) for each in differences] == [
        "environment variable MKL_CBWR: COMPATIBLE and AVX2",
        "package numpy: 2.1.0 and 1.0",
    ]


def test_a_killed_run_has_no_differences_that_only_its_end_would_tell(facts: dict[str, Any]) -> None:
    """A variable that a script sets itself is unknown at its start."""
    start = {"taken": "at the start of the run", **collect_at_start().to_dict(), "variables": {}}
    start["machine"] = {**facts["machine"], "processor": "other"}

    assert told(start, facts) == ["processor: other and AMD EPYC"]


ODD = [{"file": 5}, {"file": "libnccl.so.2", "build": 7, "size": "x"}, {"file": "\n"}, 4, None]


def test_facts_from_elsewhere_may_be_anything(facts: dict[str, Any]) -> None:
    """A killed run has none; a forged record may hold values of any type."""
    assert told({}, facts) == []
    values = (None, 5, "text", [], [{}], {"version": {"a": [1]}}, {"threads": 7}, {"threads": {"x\ny": [[]]}})
    for value in (
        *values,
        {"files": 3},
        {"files": {"a": 1, "b": {"count": None}}},
        {"numpy": [], "x": {}},
        ODD,
    ):
        for name in facts:
            for line in told({**facts, name: value}, facts):
                assert "\n" not in line


def test_every_influence_is_of_a_fact(facts: dict[str, Any]) -> None:
    """A fact that is renamed must not fall out of the comparison unnoticed."""
    import torch

    known = {**facts, "torch": asdict(collect_torch(torch)) | {"switches": {}}, "ranks": {"world_size": 1}}
    known |= {"arguments": [], "control": {"seed": "0", "portable": "off"}}
    for influence in influences():
        value: Any = known
        for name in influence.path[
            : -1 if influence.path[0] in ("variables", "switches", "libraries") else None
        ]:
            if name != ANY:
                assert name in value, influence.path
                value = value[name]


def test_every_result_and_strength_has_words() -> None:
    assert set(_RESULTS) == set(Results)
    assert set(_STRENGTHS) == set(Strength)
    assert set(_LIBRARIES) == set(LibraryKind)
    assert set(OPS) < set(Results)


def test_the_report_fits_a_terminal_and_is_json_too(facts: dict[str, Any]) -> None:
    other = copy.deepcopy(facts)
    other["variables"] = {"OMP_NUM_THREADS": "1"}
    other["torch"]["threads"] = {"intra-op": 1, "MKL": 1, "OpenMP": 1}
    other["machine"]["distribution"] = "another system"
    comparison = compare_environments(info(facts), info(other))

    text = render_text(("a.sbr", "b.sbr"), comparison, Style(width=80))
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(
        "a.sbr and b.sbr: 2 differences that can change bits\n\n1. environment variable OMP_N"
    )
    assert text.endswith("\n\n1 further difference changes no bits (--all)")
    everything = render_text(("a.sbr", "b.sbr"), comparison, Style(width=80), everything=True)
    assert "another system" in everything
    assert "another system" not in text
    shown = json.loads(render_json(("a.sbr", "b.sbr"), comparison))
    assert shown["differences"][0]["fact"] == ["variables", "OMP_NUM_THREADS"]
    assert shown["differences"][0]["can_change"][0] == "sums"
    same = compare_environments(info(facts), replace(info(facts)))
    assert "nothing that can change bits" in render_text(("a", "b"), same, Style())


def data_of(files: dict[str, str], **unread: Any) -> RunInfo:
    """Facts of a run that read these files."""
    table = {name: {"sha256": digest * 64, "size": 5, "count": 1} for name, digest in files.items()}
    return info({"data": {"files": table, **unread}})


UNKNOWN = {
    "skipped in one": ({"a": "1"}, {}, {}, {"unread": {"a": "skipped"}}, ["a"]),
    "skipped in both": ({}, {"unread": {"a": "skipped"}}, {}, {"unread": {"a": "denied"}}, ["a"]),
    "skipped, not read": ({}, {"unread": {"a": "skipped"}}, {}, {}, ["a"]),
    "a temporary file": ({}, {"unread": {"tmp1": "gone"}}, {}, {"unread": {"tmp2": "gone"}}, []),
    "gone in one": ({"a": "1"}, {}, {}, {"unread": {"a": "gone"}}, ["a"]),
    "an earlier release": ({"a": "1"}, {}, {}, {"unread": ["a"]}, ["a"]),
    "a folder": ({"t/": "1"}, {}, {"t/": "2"}, {"unread": {"t/9": "skipped"}}, ["t/9"]),
    "a folder and its files": ({"t/": "1"}, {}, {"t/1": "2"}, {"unread": {"t/9": "skipped"}}, ["t/9"]),
    "all in one entry": ({"./": "1"}, {}, {"./": "2"}, {"unread": {"t/9": "skipped"}}, ["t/9"]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_file_without_a_digest_is_no_difference(name: str) -> None:
    """It is named as not known, in either order of the runs."""
    ours, unread, theirs, other_unread, names = UNKNOWN[name]
    runs = data_of(ours, **unread), data_of(theirs, **other_unread)
    for pair in (runs, runs[::-1]):
        comparison = compare_environments(*pair)
        assert comparison.differences == ()
        assert [file.name for file in comparison.unknown.files] == names


def test_files_that_no_record_names_are_counted() -> None:
    """One that only the other run has may be among them; one that both have can differ."""
    a = data_of({"a": "1", "b": "1"})
    b = data_of({"b": "2"}, unread={"c": "skipped"}, unlisted={"skipped": 7})
    comparison = compare_environments(a, b)

    assert [each.fact.entry for each in comparison.differences] == ["b"]
    assert [file.name for file in comparison.unknown.files] == ["c"]
    assert comparison.unknown.unlisted == 7


def test_what_is_not_known_comes_after_the_differences() -> None:
    a = data_of({"a": "1", "b": "1", **{str(number): "1" for number in range(9)}})
    b = data_of({"b": "2"}, unread={"a": "skipped", **{str(number): "gone" for number in range(9)}})
    lines = render_text(("A", "B"), compare_environments(a, b), Style(width=200)).splitlines()

    assert lines[0] == "A and B: 1 difference that can change bits"
    assert lines[2].startswith("1. data file b: ")
    assert lines[5].startswith("not known: data file 0 has no digest in B (gone at the end of the run)")
    assert lines[10] == "not known: 5 more data files, not compared either"
    told = json.loads(render_json(("A", "B"), compare_environments(a, b)))["unknown"]
    assert told["data_files"][-1] == {"name": "a", "first": None, "second": "skipped"}


def test_a_comparison_of_runs_names_it_apart_from_the_differences() -> None:
    a, b = data_of({"a": "1"}), data_of({}, unread={"a": "skipped"})
    assert [note.code for note in _environment(a, b)] == [NoteCode.DATA_NOT_COMPARED]
    assert facts_behind(a, b, "aten::mm.default") == ()


def test_code_that_only_one_run_generated_is_told_unless_a_run_was_stopped(facts: dict[str, Any]) -> None:
    more = {**facts, "torch": {**facts["torch"], "compiled": {"1 (forward)": "aa", "2 (forward)": "bb"}}}
    less = {**facts, "torch": {**facts["torch"], "compiled": {"1 (forward)": "cc"}}}
    graph = "code that torch.compile generated for graph"
    assert told(more, less) == [f"{graph} 1 (forward): aa and cc", f"{graph} 2 (forward): bb and none"]
    stopped = compare_environments(info(more), info(less, status="stopped")).differences
    assert [each.fact.entry for each in stopped] == ["1 (forward)"]
    assert told(more, facts) == []  # recorded before there was this fact


@pytest.mark.parametrize(
    "cause",
    [
        ("switches", "sdpa-flash", "on", "off"),
        ("switches", "deterministic-algorithms", "on", "off"),
        ("variables", "TORCH_CUDNN_SDPA_ENABLED", "0", "1"),
        ("torch", "gpus", [{"name": "A100"}], [{"name": "H100"}]),
        ("torch", "cudnn", "8902", "90100"),
        ("torch", "default_dtype", "torch.float32", "torch.bfloat16"),
    ],
)
def test_the_chosen_op_of_attention_is_told_with_what_chose_it(facts: dict[str, Any], cause: Any) -> None:
    table, name, *values = cause
    sides = [copy.deepcopy(facts), copy.deepcopy(facts)]
    for side, value, op in zip(sides, values, ("_flash", "_cudnn"), strict=True):
        side["torch"] |= {"attention": [op], "gpus": [{"name": "A100"}]}
        side[table][name] = value
    (difference,) = compare_environments(info(sides[0]), info(sides[1])).differences
    shown = [fact_difference(each) for each in difference.follows]
    assert "ops of attention: only the first has _flash; only the second has _cudnn" in shown
    alone = {**facts, "torch": {**facts["torch"], "attention": ["_flash"]}}
    other = {**facts, "torch": {**facts["torch"], "attention": ["_flash", "_cudnn"]}}
    assert told(alone, other) == ["ops of attention: only the second has _cudnn"]


def test_ops_of_attention_that_are_not_known_are_no_difference(facts: dict[str, Any]) -> None:
    """A run that was stopped, a record of an earlier version, a machine on which nothing ran."""
    seen = {**facts, "torch": {**facts["torch"], "attention": ["_flash"]}}
    none = {**facts, "torch": {**facts["torch"], "attention": []}}
    assert compare_environments(info(seen), info(none, status="stopped")).differences == ()
    assert told(seen, facts) == []
    assert told(seen, {**none, "taken": "here"}) == []
    assert told(seen, none) == ["ops of attention: only the first has _flash"]


def test_algorithms_of_matrix_products_are_compared_where_both_runs_know_them(facts: dict[str, Any]) -> None:
    first = {**facts, "torch": {**facts["torch"], "gemms": {"A 8x8": "algoId=1", "A 9x9": "algoId=1"}}}
    other = {**facts, "torch": {**facts["torch"], "gemms": {"A 8x8": "algoId=2"}}}
    (difference,) = compare_environments(info(first), info(other)).differences
    assert fact_difference(difference.fact) == "algorithm of the matrix product A 8x8: algoId=1 and algoId=2"
    assert difference.results == (Results.PRODUCTS,)
    assert told(first, {**facts, "torch": {**facts["torch"], "gemms": {}}}) == []
    other["variables"] = {**facts["variables"], "CUBLAS_WORKSPACE_CONFIG": ":16:8"}
    other["torch"]["gpus"] = first["torch"]["gpus"] = [{"name": "H100"}]
    (difference,) = compare_environments(info(first), info(other)).differences
    assert difference.fact.entry == "CUBLAS_WORKSPACE_CONFIG"
    assert [each.entry for each in difference.follows] == ["A 8x8"]


@pytest.mark.parametrize("name", ["CUBLASLT_LOG_LEVEL", "CUBLASLT_LOG_FILE", "CUBLAS_LOGINFO_DBG"])
def test_a_log_of_the_library_changes_no_bits(facts: dict[str, Any], name: str) -> None:
    facts["torch"]["gpus"] = [{"name": "H100"}]
    assert told(facts, {**facts, "variables": {**facts["variables"], name: "2"}}) == []

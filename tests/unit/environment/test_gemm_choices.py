"""The algorithms of matrix products, where TunableOp or the log of cuBLASLt tells them."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from samebits.environment.gemm_choices import LOG_FILE, collect_gemm_choices
from samebits.recording.session import record
from samebits.records.reader import RecordReader

START = "[2026-01-01 00:00:00][cublasLt][7][Trace]"
MATRICES = (
    "A=0X{a} Adesc=[type=R_16BF rows=2048 cols=1024 ld=2048] B=0X{a} Bdesc=[type=R_16BF rows=1024 cols=32 "
    "ld=1024] C=0X0 Cdesc=[type=R_16BF rows=2048 cols=32 ld=2048] D=0X{a} Ddesc=[type=R_16BF rows=2048 "
    "cols=32 ld=2048] computeDesc=[computeType=COMPUTE_32F scaleType=R_32F transa=OP_T biasPointer=0x{a}]"
)
PRODUCT = (
    "A R_16BF 2048x1024 ld=2048, B R_16BF 1024x32 ld=1024, compute computeType=COMPUTE_32F scaleType=R_32F "
    "transa=OP_T, C R_16BF 2048x32 ld=2048, D R_16BF 2048x32 ld=2048"
)
FIRST = "algoId=67 tile=MATMUL_TILE_64x32 stages=MATMUL_STAGES_64xAUTO"


def line(algorithm: str, address: str = "32F600000", start: str = START) -> str:
    rest = f"algo=[{algorithm}] workSpace=0X0 workSpaceSizeInBytes=0 beta=0 outOfPlace=0 stream=0X0"
    return f"{start}[cublasLtTSTMatmul] {MATRICES.format(a=address)} {rest}\n"


class Tunable:
    """`torch.cuda.tunable`: asking for results reads a file."""

    def __init__(self, *, on: bool) -> None:
        self.on, self.asked = on, False

    def is_enabled(self):
        """Tell whether it is on."""
        return self.on

    def get_results(self):
        """Return one result."""
        self.asked = True
        return (("GemmTunableOp_float_NT", "nt_8_8_8", "Gemm_CublasLt_3", 0.5),)


def torch_with(tunable=None, *, started=True):
    return SimpleNamespace(cuda=SimpleNamespace(tunable=tunable, is_initialized=lambda: started))


def logged(folder, text):
    (folder / "lt_7.log").write_text(text)
    return collect_gemm_choices(torch_with(), {LOG_FILE: str(folder / "lt_%i.log")}, 7)


def test_a_product_has_the_same_name_at_any_address(tmp_path):
    (product, other) = (line(FIRST), line(FIRST, "7FFF00"))
    found = logged(tmp_path, product + other)
    assert found == {PRODUCT: FIRST}


def test_all_algorithms_of_a_product_are_named(tmp_path):
    assert list(logged(tmp_path, line("algoId=2") + line("algoId=1")).values()) == ["algoId=1 | algoId=2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no log at all\n",
        line(FIRST, start=START.replace("[7]", "[8]")),  # of another process
        line(FIRST).replace("[Trace]", "[Api]"),
        line(FIRST).replace("algo=", "other="),
        line("")[:200],
        "\0\xff[cublasLt][7][Trace][cublasLtMatmul] algo=[\n",
    ],
)
def test_what_is_not_understood_is_left_out(tmp_path, text):
    assert logged(tmp_path, text) == {}


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "unset"])
def test_without_a_file_there_is_nothing_and_nobody_waits(tmp_path, kind):
    path = tmp_path / "log"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    assert collect_gemm_choices(torch_with(), {} if kind == "unset" else {LOG_FILE: str(path)}, 7) == {}


def test_tunable_op_is_asked_only_where_it_is_on():
    on = Tunable(on=True)
    expected = {"GemmTunableOp_float_NT nt_8_8_8": "Gemm_CublasLt_3"}
    assert collect_gemm_choices(torch_with(on), {}, 7) == expected
    for tunable, started in ((Tunable(on=False), True), (Tunable(on=True), False)):
        assert collect_gemm_choices(torch_with(tunable, started=started), {}, 7) == {}
        assert not tunable.asked


def test_a_refusal_of_torch_ends_no_run():
    """A build without CUDA has the module and not the function that it calls."""

    def refuse():
        raise AttributeError("_cuda_tunableop_is_enabled")

    assert collect_gemm_choices(torch_with(SimpleNamespace(is_enabled=refuse)), {}, 7) == {}


def test_a_record_has_what_the_log_says_of_its_process(tmp_path, monkeypatch):
    own = START.replace("[7]", f"[{os.getpid()}]")
    (tmp_path / f"lt-{os.getpid()}").write_text(line(FIRST, start=own) + line("algoId=9"))
    monkeypatch.setenv(LOG_FILE, str(tmp_path / "lt-%i"))
    with record(tmp_path / "a.sbr") as path:
        torch.ones(1)
    with RecordReader(path) as reader:
        assert reader.info.environment["torch"]["gemms"] == {PRODUCT: FIRST}

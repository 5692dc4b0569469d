"""The facts about the code that `torch.compile` generated."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from samebits.environment.generated_code import (
    collect_attention,
    collect_generated_code,
    kernels_with_atomics,
)

CODE = """# AOT ID: ['0_forward']
# kernel path: /tmp/torchinductor_me/ab/cab.py
triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''
#pragma once
#include "/tmp/torchinductor_me/pi/cpi.h"
x = 1  # 2 elements
''')
def call(args):
    return args
"""


class Kernel:
    """A kernel of inductor, by the name of its module."""

    __module__ = "torch._inductor.runtime.triton_heuristics"

    def __init__(self, launchers):
        self.launchers = launchers


class Unasked:
    """Something else in a generated module: whoever asks it ends the user's run."""

    def __getattr__(self, name):
        raise RuntimeError(name)


@pytest.fixture
def loaded(monkeypatch, tmp_path):
    """Load graphs: the texts of their files, and the names in their modules."""
    cache = SimpleNamespace(modules=[])
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", SimpleNamespace(PyCodeCache=cache))

    def load(text, **names):
        path = tmp_path / f"{len(cache.modules)}.py"
        path.write_text(text)
        module = ModuleType("generated")
        module.__file__ = str(path)
        vars(module).update({"call": None, **names})
        cache.modules.append(module)

    return load


def test_without_a_compiler_there_is_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.codecache", raising=False)
    assert collect_generated_code() == {}


def test_the_same_code_in_another_folder_has_the_same_digest(loaded):
    loaded(CODE)
    loaded(CODE.replace("torchinductor_me", "other").replace("0_forward", "7_forward"))
    first, second = collect_generated_code().items()
    assert (first[0], second[0]) == ("1 (forward)", "2 (forward)")
    assert first[1] == second[1] != ""


@pytest.mark.parametrize("change", [("x = 1", "x = 2"), ("#pragma once", "#pragma omp"), ("cpi.h", "cpj.h")])
def test_other_code_has_another_digest(loaded, change):
    loaded(CODE)
    loaded(CODE.replace(*change))
    assert len(set(collect_generated_code().values())) == 2


def test_a_kernel_that_ran_tells_what_was_chosen_for_it(loaded):
    launcher = SimpleNamespace(config="XBLOCK: 64, num_warps: 4", cache_hash="A" * 52)
    ran, waiting = Kernel([launcher]), Kernel([])
    loaded(CODE, triton_poi_fused_0=ran, triton_red_fused_1=waiting, aten=Unasked())
    facts = collect_generated_code()
    assert set(facts) == {"1 (forward)", "1 (forward), triton_poi_fused_0"}
    assert facts["1 (forward), triton_poi_fused_0"] == f"XBLOCK: 64, num_warps: 4 ({'A' * 16})"


def test_a_cache_that_was_emptied_leaves_no_digest(loaded, tmp_path):
    loaded(CODE)
    (tmp_path / "0.py").unlink()
    assert collect_generated_code() == {"1": ""}


ATOMICS = """
triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''
inductor_meta={'atomic_add_found': False}
    # tl.atomic_add(in a comment)
''')
triton_tem_fused_flex_attention_backward_1 = async_compile.triton('x', '''
    tl.atomic_add(out_ptr0 + (tl.broadcast_to(tmp4, [BLOCK])), tmp2, mask, sem='relaxed')
''')
cpp_fused_index_put_2 = async_compile.cpp_pybinding([], r'''
    std::atomic<int> error{0};
    atomic_add_vec<float, 2, 1>(out_ptr0, tmp10, tmp12);
''')
cpp_fused_sum_3 = async_compile.cpp_pybinding([], r'''
    std::atomic<int> inductor_cpu_integer_div_error{0};
''')
"""


def test_kernels_that_add_with_atomic_operations_are_named(loaded):
    loaded(ATOMICS)
    loaded(CODE)
    assert kernels_with_atomics() == ("triton_tem_fused_flex_attention_backward_1", "cpp_fused_index_put_2")


def test_ops_of_attention_in_the_code_are_named_once(loaded):
    loaded(ATOMICS)
    loaded(CODE + "buf1 = torch.ops.aten._scaled_dot_product_flash_attention.default(q)\n")
    loaded(CODE + "# torch.ops.aten._efficient_attention_forward.default\n")
    assert collect_attention() == ("_scaled_dot_product_flash_attention", "flex_attention")

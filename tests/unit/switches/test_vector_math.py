"""MKL's elementwise functions are called once, by one thread, before the script calls them."""

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from samebits.causes import Cause, specification_of
from samebits.switches.vector_math import FUNCTIONS, VectorMath

pytestmark = pytest.mark.skipif(not torch._C.has_mkl, reason="this torch has no MKL")
KERNEL = specification_of(Cause.NONDETERMINISTIC_KERNEL)
REPORT = """
import samebits
import torch
control = samebits.deterministic(seed=0, on_drift="ignore")
print("prepared", control.report.named("prepare-vector-math").now)
"""


class Seen(TorchDispatchMode):
    """Counts the ops that a script's own mode sees."""

    def __init__(self):
        super().__init__()
        self.n_ops = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Count it."""
        self.n_ops += 1
        return function(*args, **(kwargs or {}))


def test_each_function_is_called_in_both_precisions():
    """By torch's own kernel, as the profiler sees it, on one element."""
    handle = VectorMath()
    with torch.profiler.profile(record_shapes=True) as profile:
        handle.write("on")
    calls = [(event.name, tuple(map(tuple, event.input_shapes))) for event in profile.events()]
    for name in FUNCTIONS:
        assert calls.count((f"aten::{name}", ((1,),))) == 2, name
    assert handle.read() == "on"


def test_a_mode_of_the_script_does_not_see_it():
    """Nor are they called a second time."""
    handle = VectorMath()
    with Seen() as mode:
        handle.write("on")
        handle.write("on")
    assert mode.n_ops == 0


def test_portable_mode_does_not_see_it():
    """Its first op of a kind would import torch's compiler, which takes a second."""
    script = (
        "import sys, samebits, torch\n"
        "from samebits.switches.vector_math import VectorMath\n"
        "with samebits.portable():\n    VectorMath().write('on')\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_it_cannot_be_undone():
    """`off` is what it is before, and refused afterwards."""
    handle = VectorMath()
    handle.write("off")
    handle.write("on")
    with pytest.raises(ValueError, match="cannot be undone"):
        handle.write("off")
    handle.restore("off")
    assert handle.read() == "on"


def test_draws_nothing_and_leaves_the_defaults():
    """The global generator, default dtype and default device are as before."""
    before = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        VectorMath().write("on")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("op", ["sqrt.default", "sqrt_.default", "exp", "_foreach_sqrt.default"])
def test_the_remedy_names_the_first_call(op):
    """And not for ops that only begin like one."""
    assert "pytorch#188792" in KERNEL.advice_for(f"aten::{op}").text
    assert "pytorch#188792" not in KERNEL.advice_for("aten::logsumexp.default").text


def test_control_does_it():
    """It is among the switches that `deterministic` sets."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REPORT], capture_output=True, text=True, check=True
    )
    assert done.stdout == "prepared on\n"

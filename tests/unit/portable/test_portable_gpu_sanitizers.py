"""The kernels for a GPU, built for the host under AddressSanitizer and UndefinedBehaviorSanitizer.

No number is read or written beside the tensors, whose memory the sanitizers watch, and nothing that a kernel
does is undefined in C++.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from host_kernels_support import TESTS, built, shared_folder, trained

GOLDEN = json.loads((TESTS / "golden/portable.json").read_text())["digests"]
TRAININGS = [name for name in GOLDEN if not name.startswith("example_")]
OPTIONS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
BESIDE = """
import sys, torch, host_kernels
from samebits.portable.backends import cpu_backend, parameters
from samebits._cuda.units import elementwise_part
kernels = host_kernels.HostKernels(sys.argv[1])
x, out = torch.zeros(64), torch.zeros(64)
kernels.elementwise_unary(
    is_f64=False, function=0, numel=64 + int(sys.argv[2]), x=x.data_ptr(), out=out.data_ptr()
)
print("done")
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels, built under the sanitizers."""
    return built(shared_folder(tmp_path_factory) / "sanitized-kernels", *OPTIONS)


def variables() -> dict[str, str]:
    """What makes a process of Python run under them."""
    libraries = [
        subprocess.run(
            ["g++", f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("asan", "ubsan")
    ]
    # Python ends with memory that it has not freed; fibers have stacks of their own.
    return {
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    }


@pytest.mark.parametrize("order", [(), ("--reverse",)], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", TRAININGS)
def test_trainings(name, order, library):
    """Each call of a kernel has the bits of the CPU, and the training its golden digest."""
    found = trained(library, name, *order, **variables())

    assert found["digests"] == {name: GOLDEN[name]}


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_number_beside_a_tensor_is_seen(beyond, library):
    """The sanitizers are at work: a kernel that is told of one number too many is stopped."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE, str(library), str(beyond)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables(), "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )

    assert (done.returncode == 0) == (not beyond), done.stderr
    assert ("heap-buffer-overflow" in done.stderr) == bool(beyond)

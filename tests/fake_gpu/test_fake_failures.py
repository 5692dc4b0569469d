"""What goes wrong with a GPU is one line that says what to do, and never a verdict."""

import ctypes
import os
import subprocess
import sys

import pytest

from samebits._cuda.faults import _ERRORS

pytestmark = pytest.mark.gpu

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(16, 16, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(8, 16, device="cuda")).square().mean().backward()
    optimizer.step()
    torch.cuda.synchronize()
"""


def samebits(*words, folder, **variables):
    """Run the command with a device that has something wrong."""
    done = subprocess.run(
        [sys.executable, "-m", "samebits", *map(str, words)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, " ".join(done.stdout.split()), done.stderr


@pytest.mark.parametrize(
    ("variables", "said", "advice"),
    [
        ({"FAKE_GPU_COUNT": "0"}, "No CUDA GPUs are available;", "CUDA_VISIBLE_DEVICES"),
        ({"FAKE_GPU_DRIVER": "12080"}, "driver on your system is too old (found version 12080);", "update"),
        ({"FAKE_GPU_MEMORY": "1000000"}, "and 2.00 MiB more were asked for;", "make the batch smaller"),
        ({"FAKE_GPU_FAULT": "46:1"}, "busy or unavailable;", "`nvidia-smi` names it"),
        (
            {"FAKE_GPU_FAULT": "700:120"},
            "an illegal memory access was encountered;",
            "CUDA_LAUNCH_BLOCKING=1",
        ),
        ({"FAKE_GPU_FAULT": "719:120"}, "unspecified launch failure;", "CUDA_LAUNCH_BLOCKING=1"),
        (
            {"FAKE_GPU_FAULT": "214:120"},
            "uncorrectable ECC error encountered;",
            "trust no result of this GPU",
        ),
    ],
    ids=str,
)
def test_a_verification_ends_with_one_line(variables, said, advice, script, tmp_path):
    status, out, err = samebits("verify", script(TRAIN), folder=tmp_path, **variables)
    assert status == 2, out + err
    verdict = out.partition("note:")[0]
    assert verdict.startswith("not judged:")
    assert said in verdict
    assert advice in verdict
    assert "samebits/" not in err  # a traceback of the script, none of samebits


@pytest.mark.parametrize(
    ("variables", "said", "remedy"),
    [
        ({"FAKE_GPU_COUNT": "0"}, "finds no usable GPU: No CUDA GPUs are available", "check nvidia-smi"),
        ({"FAKE_GPU_DRIVER": "12080"}, "is too old (found version 12080)", "update the driver"),
        ({"FAKE_GPU_CAPABILITY": "50"}, "has no code for FAKE H200 (capability 5.0)", "install a torch"),
        ({"FAKE_GPU_FAULT": "46:1"}, "busy or unavailable", "end the program that has the GPU"),
        ({"CUBLAS_WORKSPACE_CONFIG": "much"}, "expected pairs of a size in KiB", "export CUBLAS_WORKSPACE"),
    ],
    ids=str,
)
def test_doctor_says_it_before(variables, said, remedy, tmp_path):
    _, out, err = samebits("doctor", folder=tmp_path, **variables)
    assert said in out, out + err
    assert remedy in out.partition(said)[2]


def test_doctor_tries_the_digest_on_the_gpu(tmp_path, monkeypatch):
    """Nothing is said where it is right; where the kernels cannot be loaded, why."""
    assert "digest" not in samebits("doctor", folder=tmp_path)[1]
    monkeypatch.delenv("FAKE_GPU_KERNELS")
    assert "digests on the GPU are right, but slow: " in samebits("doctor", folder=tmp_path)[1]


def test_the_words_are_those_of_cuda():
    """The fake device has those of the runtime that torch brings (`write_errors` in build.py)."""
    text = ctypes.CDLL(os.environ["LD_PRELOAD"]).cudaGetErrorString
    text.restype = ctypes.c_char_p
    known = [text(code).decode() for code in range(1000)]
    of_cuda_13 = set(_ERRORS) - {"all CUDA-capable devices are busy or unavailable"}
    assert all(any(each.startswith(words) for each in known) for words in of_cuda_13)

"""Digests on the threads of torch's OpenMP library."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from samebits.digest import backend_name, digest_many
from samebits.digest.native import openmp_entry

LARGE = 3 * 2**20
FORKED = """
import os, torch
from samebits.digest import digest_many

torch.set_num_threads(2)
values = torch.arange(3.0 * 2**20)
values += 1  # the parent's threads have worked
expected = digest_many([values])
child = os.fork()
if child == 0:
    os._exit(0 if digest_many([values]) == expected else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(backend_name() == "torch", reason="needs the C library")
def test_the_number_of_threads_does_not_change_a_digest(two_threads):
    """Large tensors, dense and strided, whole and in pieces: one and two threads agree."""
    values = torch.randn(LARGE // 1024, 1024)
    tensors = [values, values.t(), values[:, ::2], torch.ones(3)]
    shared = digest_many(tensors)
    torch.set_num_threads(1)

    assert digest_many(tensors) == shared


def test_a_folder_without_openmp_gives_no_entry(tmp_path):
    """Nor does a library that is not one, or that this process has not loaded."""
    (tmp_path / "libgomp.so.1").write_bytes(b"no library")

    assert openmp_entry(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="libgomp is Linux's")
def test_the_entry_is_found_where_torch_brought_the_library():
    """The pip builds of torch for Linux bring libgomp under a name of their own."""
    folder = Path(torch.__file__).parent / "lib"
    brought = list(folder.glob("libgomp*.so*"))

    assert (openmp_entry(folder) is not None) == bool(brought)


def test_a_forked_child_does_not_wait_for_threads_that_it_has_not():
    """The threads of a parent do not exist in its children."""
    done = subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False)

    assert done.returncode == 0

"""The kernels for a GPU beside those for the CPU, without a GPU: built for the host, which calls both.

python tests/host_kernels.py LIBRARY [TRAINING ...] [--reverse]

trains models of tests/golden. Each call of a kernel is made with both; a difference in bits is an error that
names the call. It prints the digests, and how often each kernel ran, as one JSON object.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from collections import Counter
from pathlib import Path

import torch
from host_kernels_support import races_in

from samebits.portable import backends
from samebits.portable.backends.cuda import CudaBackend
from samebits.portable.backends.cuda_kernels import CudaKernels, packed
from samebits.portable.backends.interface import Backend
from samebits.portable.kernels.lstm import Gradients

IN_CPU_MEMORY = -1  # what Tensor.get_device() says of it
SHARED_OF_AN_H200 = 227 << 10


class HostKernels(CudaKernels):
    """Launches that a library of kernels built for the host runs at once.

    Args:
        library: made by `build_kernels` of tests/fake_gpu/build.py.
        is_reversed: whether the threads of a block take their turns from the last one on.
        most_blocks: of a launch; few, so that each thread does the work of several.

    Raises:
        AssertionError: by a launch, if the library is watched for races and one was seen.
    """

    def __init__(self, library: Path, *, is_reversed: bool = False, most_blocks: int = 3) -> None:
        self.capability, self.most_shared = (9, 0), SHARED_OF_AN_H200
        self._most_blocks, self.processors = most_blocks, 4
        self._library, self._is_reversed = ctypes.CDLL(str(library)), is_reversed
        self.launched: Counter[str] = Counter()

    def launch_tiles(self, unit, name, parameters, grid, block) -> None:
        """See `CudaKernels`."""
        self.launched[name] += 1
        struct_of = ctypes.create_string_buffer(packed(parameters))
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(struct_of))
        threads, shared = block
        self._library.call_kernel(
            self._library[f"host_{name}"],
            (ctypes.c_uint * 3)(*grid),
            ctypes.c_uint(threads),
            ctypes.c_size_t(shared),
            ctypes.c_int(self._is_reversed),
            arguments,
        )
        found = races_in(self._library)
        assert not found, f"{name}: {found}"


class BesideTheCpu:
    """A backend that computes with the CPU's kernels, and with those of a GPU on copies of all tensors.

    Args:
        expected: the kernels of the CPU.
        tested: those of the GPU, on tensors in CPU memory.

    Raises:
        AssertionError: by each method, if the bits differ.
    """

    def __init__(self, expected: Backend, tested: CudaBackend) -> None:
        self._expected, self._tested = expected, tested
        self.name = tested.name
        for name in vars(Backend):
            if not name.startswith("_") and name != "name":
                setattr(self, name, self._both(name))

    def _both(self, name):
        expected, tested = getattr(self._expected, name), getattr(self._tested, name)

        def run(*args, **kwargs):
            copies = Copies()
            of_args, of_kwargs = copies.of(args), copies.of(kwargs)
            found = tested(*of_args, **of_kwargs)
            if found is False:  # it leaves the call to its caller, who makes it of others
                return False
            result = expected(*args, **kwargs)
            assert result == found, f"{name}: {result} and {found}"
            anything = unspecified(args)
            for number, (one, two) in enumerate(copies.pairs):
                assert one is anything or has_same_bits(one, two), (
                    f"{name}: tensor {number} of {tuple(one.shape)}, {one.dtype}"
                )
            return result

        return run


def unspecified(args) -> torch.Tensor | None:
    """A tensor of which a backend may make what it likes (see `Gradients`)."""
    gradients = next((each for each in args if isinstance(each, Gradients)), None)
    return None if gradients is None or gradients.wants_out else gradients.out


class Copies:
    """Copies of tensors that lie in memory as the tensors do; views of one memory are views of one copy."""

    def __init__(self) -> None:
        self.pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._memory: dict[int, torch.UntypedStorage] = {}

    def of(self, value):
        """A value with copies of all tensors in it."""
        if isinstance(value, torch.Tensor):
            return self._copy(value)
        if isinstance(value, tuple | list):
            parts = [self.of(each) for each in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {key: self.of(each) for key, each in value.items()}
        return value

    def _copy(self, x: torch.Tensor) -> torch.Tensor:
        memory = x.untyped_storage()
        if memory.data_ptr() not in self._memory:
            self._memory[memory.data_ptr()] = memory.clone()
        copy = torch.empty(0, dtype=x.dtype)
        copy.set_(self._memory[memory.data_ptr()], x.storage_offset(), x.shape, x.stride())
        self.pairs.append((x, copy))
        return copy


WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def has_same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all numbers have the same bits; NaNs are one value."""
    one, other = one.detach(), other.detach()
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    bits = WHOLE[one.element_size()]
    same = one.view(bits) == other.view(bits)
    if one.is_floating_point():
        same |= one.isnan() & other.isnan()
    return bool(same.all())


def beside_the_cpu(kernels: HostKernels) -> BesideTheCpu:
    """The backend that compares; the CPU's is that of this processor."""
    cpu = backends.cpu_backend()
    return BesideTheCpu(cpu, CudaBackend(IN_CPU_MEMORY, kernels, cpu))


def main() -> None:
    """Train with both and print the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("trainings", nargs="*", metavar="TRAINING")
    arguments = parser.parse_args()
    kernels = HostKernels(arguments.library, is_reversed=arguments.reverse)
    both = beside_the_cpu(kernels)
    backends.cpu_backend = lambda: both
    os.environ["SAMEBITS_PORTABLE_DISPATCH"] = "mode"  # registered kernels of the CPU would not ask a backend
    sys.path.insert(0, str(Path(__file__).parent / "golden"))
    import portable_models

    import samebits

    digests = {}
    for name in arguments.trainings or list(portable_models.TRAININGS):
        with samebits.portable():
            trained = portable_models.train(name)
        digests[name] = str(samebits.digest(trained))
        print(name, digests[name], file=sys.stderr, flush=True)
    print(json.dumps({"digests": digests, "launched": kernels.launched}))


if __name__ == "__main__":
    main()

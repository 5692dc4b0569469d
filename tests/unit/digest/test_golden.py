"""Values that never change: records of different versions and machines stay comparable.

When one of these fails the definition has changed. That is a new version of the digest
(docs/reference/digest.md), not a test to update.
"""

import pytest
import torch

from samebits.digest import digest


def grid(*sizes, dtype=torch.float32):
    """Quarters, negative and positive: exact in every float dtype."""
    n = torch.Size(sizes).numel()
    return ((torch.arange(n) % 31 - 15) / 4).view(sizes).to(dtype)


def special_floats():
    bits = [
        0x00000000,
        0x80000000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7FC00001,
        0xFFC00000,
        0x7F800001,
        0x00000001,
    ]
    return torch.tensor(bits, dtype=torch.int64).to(torch.int32).view(torch.float32)


CASES = {
    "empty": lambda: torch.zeros(0),
    "empty 0x3": lambda: torch.zeros(0, 3),
    "scalar": lambda: torch.tensor(1.0),
    "zeros 3": lambda: torch.zeros(3),
    "ones 3": lambda: torch.ones(3),
    "negative zero": lambda: torch.tensor([-0.0]),
    "special floats": special_floats,
    "bytes 1024": lambda: torch.arange(1024).to(torch.uint8),
    "bytes 1025": lambda: torch.arange(1025).to(torch.uint8),
    "grid 33x65": lambda: grid(33, 65),
    "grid 33x65 transposed": lambda: grid(33, 65).t(),
    "channels last": lambda: grid(2, 3, 16, 17).to(memory_format=torch.channels_last),
    "expanded": lambda: grid(5, 1).expand(5, 300),
    "bool": lambda: torch.arange(2000) % 3 == 0,
    "int64": lambda: torch.arange(-500, 500),
    "bfloat16": lambda: grid(777, dtype=torch.bfloat16),
    "float16": lambda: grid(777, dtype=torch.float16),
    "float64": lambda: grid(777, dtype=torch.float64),
    "complex64": lambda: torch.complex(grid(300), grid(300).flip(0)),
    "conjugate": lambda: torch.complex(grid(300), grid(300).flip(0)).conj(),
    "float8_e4m3fn": lambda: torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn),
    "1000 blocks": lambda: grid(256_000),
    "meta": lambda: torch.empty(2, 3, device="meta"),
    "sparse": lambda: torch.eye(4).to_sparse(),
    "state": lambda: {"weight": grid(4, 5), "step": 3, "lr": 1e-3, "names": ["a", None, True], "raw": b"\0"},
}
GOLDEN = {
    "empty": "30a27496e4b5a4e095d673046633b659",
    "empty 0x3": "6338ea848940de80c95e155c811d3052",
    "scalar": "2f27c68b1c64bb089224e3268ed289c0",
    "zeros 3": "d20beaad730772ee60e2c92ee712f25e",
    "ones 3": "60920883552aaa224ce28278b7fcc50a",
    "negative zero": "8642588052f99513cfe2df068f9cd7ec",
    "special floats": "869b4dbd5f26420ed7ed9e736b8b3f52",
    "bytes 1024": "7d9564857b8023e5dfa41d2a18dce2c6",
    "bytes 1025": "a019e9ca7cafb856176db35b26906318",
    "grid 33x65": "95bb84510b8604434d9e29ec97ff047f",
    "grid 33x65 transposed": "afde54aa56e471564a099af3810a9a5c",
    "channels last": "ead3f5d844340228e3fc78ca7704c7b9",
    "expanded": "3f1c1dd23c51e583b29f7fd35f04959a",
    "bool": "b45844e00e26b3722429f36a9e181daf",
    "int64": "44306e0c5aac983306786016642fdd42",
    "bfloat16": "43154fd1d291a1bf96b190c4c4c3e56c",
    "float16": "a7d4d7f644e971be92a310fbd54c7298",
    "float64": "ca6a26cb3ecf3b5f873dbbe7c6d15c3c",
    "complex64": "15f7e2fa2d549615396dc809c52af3c6",
    "conjugate": "92bc1711560b0d20898f081287498224",
    "float8_e4m3fn": "0dc5f7be46eccaf9cc5ea4ff746aed35",
    "1000 blocks": "ec8700811ef67adb79bb77a3d9663217",
    "meta": "350e3f2be6652f436ec6ef3aac4fd5d4",
    "sparse": "c66c01e833394fed21032878d8df1b0a",
    "state": "ff3a1f694bf7450821fd90c795948ab5",
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    assert str(digest(CASES[name]())) == GOLDEN[name]


@pytest.mark.parametrize("name", CASES)
def test_golden_without_the_library(name, choose_backend):
    choose_backend("torch")
    assert str(digest(CASES[name]())) == GOLDEN[name]


def test_no_case_is_forgotten():
    assert set(CASES) == set(GOLDEN)
    assert len(set(GOLDEN.values())) == len(GOLDEN)

"""Code that comes with a release: which of it a device gets, and what happens where the driver refuses it."""

import itertools
import types
import zipfile

import pytest

from samebits._cuda import loading, sources
from samebits._cuda.driver import DriverError
from samebits._cuda.shipped_code import CAPABILITIES, member, shipped_code
from samebits._cuda.units import DIGEST, all_units

KEY = "key"


@pytest.fixture
def archive(tmp_path):
    """One with all that `native/cuda/compile.py` puts there; each file holds its own name."""
    path = tmp_path / "kernels.zip"
    with zipfile.ZipFile(path, "w") as held:
        for capability in (*CAPABILITIES, None):
            held.writestr(member(KEY, capability), member(KEY, capability))
    return path


WANTED = {
    (7, 5): [],
    (8, 0): ["sm_80.cubin", "ptx"],
    (8, 6): ["sm_86.cubin", "sm_80.cubin", "ptx"],
    (8, 7): ["sm_86.cubin", "sm_80.cubin", "ptx"],
    (9, 0): ["sm_90.cubin", "ptx"],
    (10, 3): ["sm_103.cubin", "sm_100.cubin", "ptx"],
    (11, 0): ["ptx"],
    (12, 1): ["sm_120.cubin", "ptx"],
}


@pytest.mark.parametrize("capability", WANTED, ids=str)
def test_what_a_device_is_offered(archive, capability):
    """Its own machine code, that of a lower minor capability, then assembler; nothing before 8.0."""
    found = [code.decode() for code in shipped_code(KEY, capability, str(archive))]
    assert found == [f"{KEY}.{name}" for name in WANTED[capability]]


def test_other_sources_have_no_code(archive):
    """What was made from others is not used."""
    assert list(shipped_code("other", (9, 0), str(archive))) == []


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "bits"])
def test_a_damaged_archive_has_nothing(archive, damage):
    """Or has what is whole in it; the compiler is the way out."""
    whole = archive.read_bytes()
    if damage == "missing":
        archive.unlink()
    else:
        other = whole.replace(b"key.sm_90.cubinkey.sm_90.cubin", b"key.sm_90.cubinkey.sm_91.cubin")
        archive.write_bytes({"empty": b"", "cut": whole[:-40], "bits": other}[damage])
    found = list(shipped_code(KEY, (9, 0), str(archive)))
    assert found == ([b"key.ptx"] if damage == "bits" else [])


def test_each_unit_has_a_key_of_its_own():
    """Of its macros and all texts."""
    keys = [unit.program().key for unit in all_units()]
    assert len(keys) == len(set(keys)) >= 20


def test_a_changed_header_has_another_key(monkeypatch):
    before = DIGEST.program().key
    texts = sources.read_sources()
    monkeypatch.setattr(
        "samebits._cuda.units.read_sources", lambda: texts | {"digest_core.h": texts["digest_core.h"] + " "}
    )
    assert DIGEST.program().key != before


class Drivers:
    """Takes machine code in some formats and remembers what it was offered."""

    def __init__(self, *taken):
        self.taken, self.offered = taken, []

    def module(self, code):
        """Stands for `Module`."""
        self.offered.append(code)
        if code not in self.taken:
            raise DriverError("no")
        return code


@pytest.mark.parametrize("count", [0, 1, 2])
def test_what_the_driver_refuses_is_passed_over(monkeypatch, count):
    """The next best is tried, and in the end what the compiler makes here."""
    ways = [b"machine code", b"assembler", b"made here"]
    driver = Drivers(*ways[count:])
    monkeypatch.setattr(loading, "Module", driver.module)
    monkeypatch.setattr(loading, "shipped_code", lambda *_: iter(ways[:2]))
    monkeypatch.setattr(loading, "code_of", lambda *_: ways[2])

    assert loading.load_unit(DIGEST, (9, 0), "13.0") == ways[count]
    assert driver.offered == ways[: count + 1]


def test_the_last_refusal_is_raised(monkeypatch):
    """A driver that takes nothing."""
    monkeypatch.setattr(loading, "Module", Drivers().module)
    monkeypatch.setattr(loading, "shipped_code", lambda *_: iter([b"a"]))
    monkeypatch.setattr(loading, "code_of", lambda *_: b"b")

    with pytest.raises(DriverError):
        loading.load_unit(DIGEST, (9, 0), "13.0")


def test_the_compiler_is_not_asked_where_code_is_taken(monkeypatch):
    """It takes seconds."""
    asked = []
    monkeypatch.setattr(loading, "Module", lambda code: types.SimpleNamespace(code=code))
    monkeypatch.setattr(loading, "shipped_code", lambda *_: itertools.repeat(b"a"))
    monkeypatch.setattr(loading, "code_of", lambda *_: asked.append(1))

    assert loading.load_unit(DIGEST, (9, 0), "13.0").code == b"a"
    assert asked == []

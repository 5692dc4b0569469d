"""Other packages bring RNG sources by an entry point; a broken one costs a warning."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from samebits.rng import states
from samebits.rng.active import PROCESS
from samebits.rng.sources import plugins

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
class Dice:
    name = "dice"
    module = ""
    value = 0
    def available(self): return True
    def seed(self, seed): Dice.value = seed
    def get_state(self): return str(Dice.value).encode()
    def set_state(self, state): Dice.value = int(state)
    def version(self): return "dice 2.0"

made = Dice()

class Taken(Dice):
    name = "torch"

class Half:
    name = "half"
    module = ""
    def get_state(self): return b""

class Raises:
    def __init__(self): raise OSError("no dice")

number = 3
"""

pytestmark = pytest.mark.filterwarnings("ignore:samebits. the generator of OpenCV")  # another test imports it


@pytest.fixture(autouse=True)
def no_run_seed(monkeypatch):
    monkeypatch.setattr(PROCESS, "seed", None)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a package with those entry points on `sys.path`, as pip installs it."""

    def make(*lines: str) -> None:
        (tmp_path / "dice_package.py").write_text(MODULE)
        info = tmp_path / "dice_package-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dice-package\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{plugins.GROUP}]", *lines, ""]))
        monkeypatch.syspath_prepend(str(tmp_path))

    yield make
    sys.modules.pop("dice_package", None)
    plugins._plugins.cache_clear()


@pytest.mark.parametrize("target", ["Dice", "made"])
def test_a_package_brings_a_source(target, install):
    """As a class, or an object."""
    assert "dice" not in [source.name for source in states.sources()]
    install(f"dice = dice_package:{target}")
    states.seed_all(7)
    dice = sys.modules["dice_package"].Dice
    (state,) = [state for state in states.save_states() if state.source == "dice"]
    with states.isolated():
        dice.value = 9
    with states.reseeded("a"):
        inside = dice.value

    assert (dice.value, inside != 7, state) == (7, True, states.SourceState("dice", "dice 2.0", b"7"))


BROKEN = {
    "dice_package:absent": "AttributeError",
    "no_such_package:made": "ModuleNotFoundError",
    "dice_package:Raises": "OSError: no dice",
    "dice_package:Half": "it lacks available, seed, set_state, version",
    "dice_package:number": "TypeError",
    "dice_package:Taken": "the name 'torch' is taken",
}


@pytest.mark.parametrize("target", BROKEN)
def test_a_broken_one_is_left_out_with_one_warning(target, install):
    install(f"broken = {target}", "sound = dice_package:Dice")
    with pytest.warns(UserWarning, match="the RNG source 'broken'") as caught:
        names = [source.name for source in (*states.sources(), *states.sources())]

    (warning,) = caught
    assert BROKEN[target] in str(warning.message)
    assert target in str(warning.message)
    assert names[-1] == "dice"
    assert names.count("torch") == 2

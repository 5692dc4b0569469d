"""What a report calls *tried* makes the script repeatable, with exactly the lines that it prints."""

from __future__ import annotations

import re
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_support import judged, samebits
from fault_scripts import ORDER_OF_A_SET, SEED_OF_THE_CLOCK, TRAIN

PLANTED = Path(__file__).parents[2] / "bench" / "planted"
# The harness of the planted corpus is a plain script whose modules lie beside it.
sys.path.insert(0, str(PLANTED))
try:
    import remedies
finally:
    sys.path.remove(str(PLANTED))

# The harness makes folders in this process: the generator of their names stays, as it would after any test.
tempfile.TemporaryFile().close()

SEEDED = "import torch\ntorch.manual_seed(0)\n"
FAULTS = {
    "torch": "import torch\ndef data(step):\n    return torch.ones(3, 4)\n",
    "torch, NumPy and random": """\
import random
import numpy as np
import torch
rows = [np.random.rand(4) for _ in range(6)]
random.shuffle(rows)
def data(step):
    return torch.from_numpy(rows[step]).float()
""",
    "a seed that torch makes up and gives": """\
import torch
def fresh():
    return torch.seed()
seed = fresh()
print("seed", seed)
def data(step):
    return torch.rand(3, 4) * (seed % 97 / 97)
""",
    "a number of SystemRandom": """\
import random
import torch
seed = random.SystemRandom().randrange(2**32)
torch.manual_seed(seed)
def data(step):
    return torch.rand(3, 4) * (seed % 97 / 97)
""",
    "os.urandom, without `import random`": """\
import os
import torch
torch.manual_seed(0)
def data(step):
    return torch.tensor(list(os.urandom(4))).float().div(255)
""",
    "uuid": """\
import uuid
import torch
torch.manual_seed(0)
def data(step):
    return torch.tensor([[uuid.uuid4().int % 97 / 97.0] * 4])
""",
    "secrets": SEEDED + "import secrets\ndef data(step):\n    return torch.ones(4) * secrets.randbelow(99)\n",
    "time": SEEDED + "import time\ndef data(step):\n    return torch.ones(1, 4) * (time.time() % 1)\n",
    "process": SEEDED + "import os\ndef data(step):\n    return torch.ones(1, 4) * (os.getpid() % 97 / 97)\n",
    "seed of the clock": SEED_OF_THE_CLOCK,
    "order of a set": ORDER_OF_A_SET,
    "hash": SEEDED + "def data(step):\n    return torch.ones(1, 4) * (hash(str(step)) % 97 / 97)\n",
    "own generator of NumPy": """\
import numpy as np
import torch
torch.manual_seed(0)
rng = np.random.default_rng()
def data(step):
    return torch.from_numpy(rng.random((3, 4))).float()
""",
    "gymnasium": """\
import gymnasium as gym
import torch
torch.manual_seed(0)
env = gym.make("CartPole-v1")
def data(step):
    start, info = env.reset()
    return torch.as_tensor(start)
""",
    "albumentations": """\
import albumentations as A
import numpy as np
import torch
torch.manual_seed(0)
augment = A.Compose([A.RandomBrightnessContrast(p=1.0)])
def data(step):
    return torch.from_numpy(augment(image=np.full((1, 4, 3), 0.5, np.float32))["image"][..., 0])
""",
    "scikit-learn": """\
import numpy as np
import torch
from sklearn.model_selection import train_test_split
torch.manual_seed(0)
rows, rest = train_test_split(np.arange(80, dtype=np.float32).reshape(20, 4) / 80)
def data(step):
    return torch.from_numpy(rows)
""",
}
NEEDS = {"gymnasium": "gymnasium", "albumentations": "albumentations", "scikit-learn": "sklearn"}
_PLACE = re.compile(r"  change        (\S+):(\d+)")


def printed(text: str) -> list[dict[str, object]]:
    """The changes that a report prints, as a reader would copy them; new lines come without blank ones."""
    found: list[dict[str, object]] = []
    for line in text.splitlines():
        place = _PLACE.match(line)
        if place:
            found.append({"file": place[1], "line": int(place[2]), "before": [], "after": []})
        elif found and line.startswith((" " * 16 + "- ", " " * 16 + "+ ")):
            found[-1]["before" if line[16] == "-" else "after"].append(line[18:])  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_the_lines_of_a_remedy_that_was_tried_make_the_script_repeatable(fault, tmp_path):
    """All that had to change is shown, with its imports; nothing else is needed."""
    if fault in NEEDS and not find_spec(NEEDS[fault]):
        pytest.skip(f"{NEEDS[fault]} is not installed")
    script = tmp_path / "train.py"
    script.write_text(FAULTS[fault] + TRAIN)
    found = judged(samebits("verify", "--json", "--keep", "a", script, cwd=tmp_path, timeout=900))
    remedy = found["findings"][0]["remedy"]
    assert remedy["confirmed"], remedy
    assert remedy["trial"]["of"] == "change"
    assert remedies.outcome(script, found, [], 900) == remedies.IDENTICAL


def test_the_lines_that_are_printed_are_those_that_were_run(tmp_path):
    """Copied from the terminal they make the script repeatable as well."""
    script = tmp_path / "train.py"
    script.write_text(FAULTS["torch, NumPy and random"] + TRAIN)
    shown = samebits("verify", "--keep", "a", script, cwd=tmp_path, timeout=900).stdout
    assert re.search(r"\n  tried +with this change 1 pair of runs was identical\n", shown), shown
    script.write_text(remedies.applied(script.read_text(), printed(shown)))
    again = samebits("verify", "--no-localise", "--keep", "b", script, cwd=tmp_path, timeout=900)
    assert again.returncode == 0, shown + again.stdout


def test_what_cannot_be_patched_is_not_called_tried(tmp_path):
    """The interventions are told of, and that no line was run."""
    script = tmp_path / "train.py"
    script.write_text(
        SEEDED
        + """\
import time
begun = time.perf_counter()
def data(step):
    return torch.ones(1, 4) * (time.perf_counter() - begun)
"""
        + TRAIN
    )
    result = samebits("verify", "--keep", "a", script, cwd=tmp_path, timeout=900)
    assert result.returncode == 1
    assert "this change itself was not run" in " ".join(result.stdout.split()), result.stdout
    assert "\n  tried " not in result.stdout

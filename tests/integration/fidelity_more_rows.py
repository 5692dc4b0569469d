"""More rows of the fidelity table: those of `fidelity_scripts.txt`, and modules of the user's own.

In that file `##### name` begins a row; `| env NAME=value`, `| options -W error` and `| late REASON` may
follow. `##: path` begins another file of the row. `# (train)` stands for `TRAIN`.
"""

from __future__ import annotations

from pathlib import Path

from fidelity_rows import Row

TRAIN = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.b = torch.nn.BatchNorm1d(4)
    def forward(self, x):
        return self.b(self.a(x)).relu()
def train(net, make=torch.optim.SGD, steps=3):
    optimizer = make(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(5, 3) + torch.rand(5, 3)).sum().backward()
        optimizer.step()
    return [p.sum().item() for p in net.parameters()]
"""


def _row(section: str) -> Row:
    head, _, body = section.partition("\n")
    name, *options = head.strip().split(" | ")
    words = [option.split() for option in options]
    script, *others = body.split("##: ")
    files: dict[str, str | bytes] = {"probe.py": script.replace("# (train)\n", TRAIN)}
    files.update({path: text for path, _, text in (other.partition("\n") for other in others)})
    environment = dict(word.split("=", 1) for kind, *values in words if kind == "env" for word in values)
    flags = tuple(word for kind, *values in words if kind == "options" for word in values)
    late = " ".join(word for kind, *values in words if kind == "late" for word in values)
    return Row(name, files, environment=environment, options=flags, late=late)


_SCRIPTS = Path(__file__).with_name("fidelity_scripts.txt").read_text(encoding="utf-8")
_SHADOWS = tuple(
    Row(
        f"{name}.py of the user's",
        {
            "probe.py": f"import {name}\nprint({name}.VALUE, {name}.__file__)\nimport time\ntime.time()\n",
            f"{name}.py": "VALUE = 7\n",
        },
    )
    for name in (
        *("socket", "uuid", "psutil", "secrets", "typing", "queue", "random", "tempfile", "struct"),
        *(
            "shutil",
            "subprocess",
            "logging",
            "hashlib",
            "platform",
            "linecache",
            "resource",
            "zlib_",
            "pathlib",
            "runpy",
        ),
    )
)

MORE = (*map(_row, _SCRIPTS.split("##### ")[1:]), *_SHADOWS)

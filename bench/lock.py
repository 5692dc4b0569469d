"""Whose it is: locks of small scripts, checked after a planted cause. The figures of docs/reference/lock.md.

    python bench/lock.py change                     # a line changed in each script
    python bench/lock.py drift                      # made with one instruction set, checked with another
    python bench/lock.py drift --python OTHER       # made with the torch of another interpreter
    python bench/lock.py release --python OTHER     # as drift; ops that differ from torch 2.13 to 2.15
    python bench/lock.py portable --python OTHER    # as drift, with portable locks: the bits are the same

The portable locks are also of trainings: every model of tests/golden/portable_models.py is a script then.

What is expected of drift is found without samebits: each script runs under a dispatch mode that digests what
comes out of every op, in both environments. Releases do not call the same ops everywhere, so the two lists
are aligned by name. The first op of both whose bits differ is the expected one, if the script ends with other
weights or gradients.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TEMPLATE = """\
import torch
import torch.nn.functional as F


def q(*shape):
    n = 1
    for size in shape:
        n *= size
    return ((torch.arange(n) * 7919 % 1009).float() / 1009 - 0.5).reshape(shape)


w = torch.nn.Parameter(q(16, 32))
k = q(4, 4, 3, 3)
x = q(64, 16)
optimizer = torch.optim.SGD([w], lr=0.125)
for step in range(3):
    optimizer.zero_grad()
    h = (x.unsqueeze(-1) * w).select(1, 3) * 3
    y = {op}
    loss = (y * y).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""
# The op, and how its line is changed.
OPS = {
    "attention": (
        "F.scaled_dot_product_attention(*[h.view(4, 4, 4, 32)] * 3)",
        ("4, 4, 4, 32", "4, 2, 8, 32"),
    ),
    "batch_norm": ("F.batch_norm(h.view(16, 8, -1), None, None, training=True)", ("16, 8", "8, 16")),
    "bce": ("F.binary_cross_entropy_with_logits(h, (h > 0).float())", ("h > 0", "h > 0.1")),
    "cross_entropy": ("F.cross_entropy(h, torch.arange(64) % 32)", ("% 32", "% 31")),
    "elu": ("F.elu(h)", ("elu(h)", "elu(h, 0.9)")),
    "expm1": ("torch.expm1(h)", ("(h)", "(h * 1.0001)")),
    "group_norm": ("F.group_norm(h.view(4, 8, -1), 2)", (", 2)", ", 4)")),
    "interpolate": ("F.interpolate(h.view(4, 4, 4, 32), scale_factor=1.7, mode='bilinear')", ("1.7", "1.6")),
    "layer_norm": ("F.layer_norm(h, (32,))", ("(32,)", "(32,), eps=1e-6")),
    "lgamma": ("torch.lgamma(h.abs() + 0.5)", ("0.5", "0.6")),
    "log1p": ("torch.log1p(h.abs())", ("h.abs()", "h.square()")),
    "log_softmax": ("torch.log_softmax(h, -1)", ("-1", "0")),
    "mish": ("F.mish(h)", ("mish", "silu")),
    "pow": ("(h.abs() + 0.5) ** 1.7", ("1.7", "1.8")),
    "sigmoid": ("torch.sigmoid(h)", ("sigmoid", "tanh")),
    "silu": ("F.silu(h)", ("silu", "mish")),
    "softmax": ("torch.softmax(h, -1)", ("h, -1", "h / 2, -1")),
    "softplus": ("F.softplus(h)", ("(h)", "(h, 2)")),
    "tanh": ("torch.tanh(h)", ("(h)", "(h * 0.9)")),
    "norm": ("h.norm(dim=-1)", ("norm(dim=-1)", "norm(p=3, dim=-1)")),
}
# Found by running the samples of torch's OpInfo under both releases, on a processor with AVX-512.
# Those called `same` give the same bits.
RELEASE_OPS = {
    "sinh": "torch.sinh(h)",
    "sinh_scaled": "torch.sinh(h * 2) / 2",
    "sinh_gate": "torch.sinh(h) / (h.abs() + 2)",
    "sinh_normed": "F.layer_norm(torch.sinh(h), (32,))",
    "sinh_softmax": "torch.softmax(torch.sinh(h), -1)",
    "cosh": "torch.cosh(h)",
    "log_cosh": "torch.log(torch.cosh(h))",
    "sech": "1 / torch.cosh(h)",
    "cosh_pool": "F.avg_pool1d(torch.cosh(h).view(4, 16, 32), 2)",
    "lstsq": "torch.linalg.lstsq(h, x[:, :3]).solution",
    "lstsq_double": "torch.linalg.lstsq(h.double(), x[:, :3].double()).solution",
    "lstsq_target": "torch.linalg.lstsq(x, h).solution",
    "linspace": "h * torch.linspace(0.1, 1, 32, dtype=torch.bfloat16)",
    "linspace_signed": "h * torch.linspace(-1, 1, 32, dtype=torch.bfloat16)",
    "linspace_bias": "h + torch.linspace(-4, -0.1, 32, dtype=torch.float16).exp2()",
    "linspace_half": "(h.bfloat16() * torch.linspace(-1, 1, 32, dtype=torch.bfloat16)).float()",
    "linspace_tensors": "h * torch.linspace(torch.tensor(0.1), torch.tensor(1.0), 32, dtype=torch.float16)",
    "interpolate_linear": "F.interpolate(h.view(4, 16, 32), scale_factor=1.7, mode='linear')",
    "interpolate_short": "F.interpolate(h.view(4, 16, 32), scale_factor=0.6, mode='linear')",
    "interpolate_sinh": "F.interpolate(h.view(4, 16, 32), scale_factor=1.3, mode='linear').sinh()",
    "clamp_half": "h.bfloat16().clamp(-0.25, 0.25).float()",
    "maximum_half": "torch.maximum(h.bfloat16(), h[:1].bfloat16()).float()",
    "corrcoef": "torch.corrcoef(h)",
    "log_ndtr": "torch.special.log_ndtr(h * 3)",
    "clamp_bounds": "h.clamp(h.min().item(), h.max().item())",
    "clamp_tensors": "torch.clamp(h, h.amin(0), h.amax(0))",
    "clamp_min": "h.clamp(min=h.min().item())",
    "fmax_equal": "torch.fmax(h, h.detach())",
    "log10_double": "torch.log10(h.double().abs() + 0.5)",
    "group_norm_same": "F.group_norm(h.view(4, 16, 32), 4)",
    "attention_same": "F.scaled_dot_product_attention(*[h.view(4, 4, 4, 32)] * 3)",
}
MODELS = Path(__file__).resolve().parents[1] / "tests/golden/portable_models.py"
MODEL_TEMPLATE = """\
import torch
from portable_models import TRAININGS

torch.manual_seed(0)
training = TRAININGS[{name!r}]()
for step in range(3):
    print(step, training.step().item())
"""
TRUTH = """\
import contextlib, hashlib, io, runpy, sys
import torch
import torch._dynamo  # imported by an optimizer, and computes something then in some releases
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

QUIET = ("detach", "view", "empty", "select", "slice", "ones", "zeros", "_to_copy", "expand", "profiler")

class Digests(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        name = str(op)
        if not any(word in name for word in QUIET):
            for tensor in tree_leaves(result):
                if isinstance(tensor, torch.Tensor) and tensor.numel():
                    bits = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                    print(name, hashlib.sha1(bits).hexdigest(), file=sys.stderr)
        return result

with Digests(), contextlib.redirect_stdout(io.StringIO()):
    left = runpy.run_path(sys.argv[1], run_name="__main__")
for tensor in (left["w"].detach(), left["w"].grad):
    print("end", hashlib.sha1(tensor.numpy().tobytes()).hexdigest(), file=sys.stderr)
"""


def run(folder: Path, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def git(folder: Path, *words: str) -> None:
    """Run git, as somebody."""
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *names, *words], capture_output=True, check=True)


def repository(folder: Path, name: str) -> None:
    """Make a repository of one script."""
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".samebits/\n__pycache__/\n")
    if name in OPS or name in RELEASE_OPS:
        op = OPS[name][0] if name in OPS else RELEASE_OPS[name]
        (folder / "train.py").write_text(TEMPLATE.format(op=op))
    else:
        (folder / "train.py").write_text(MODEL_TEMPLATE.format(name=name))
        shutil.copy(MODELS, folder)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")


def expected_ops(
    folder: Path, pythons: tuple[str, str], variables: tuple[dict[str, str], dict[str, str]]
) -> list[str]:
    """Return the op that gives other bits first, as `aten.silu.default`; see `first_difference`.

    Empty where the script ends with the same weights and gradients: what differs on the way is in no step.
    """
    (folder / "truth.txt").write_text(TRUTH)
    rows, ends = [], []
    for python, given in zip(pythons, variables, strict=True):
        lines = run(folder, [python, "truth.txt", "train.py"], **given).stderr.splitlines()
        rows.append([line for line in lines if line.startswith("aten.")])
        ends.append([line for line in lines if line.startswith("end ")])
    (folder / "truth.txt").unlink()
    return [] if ends[0] == ends[1] else first_difference(*rows)


def first_difference(a: list[str], b: list[str]) -> list[str]:
    """Return the first op that both lists of `name digest` have in one place, with other digests.

    Ops that only one list has, right before it, are added: they were called instead of others, as `ge` for
    `gt` in a backward pass, and may be where the bits part. Empty if no op gives other bits.
    """
    names = [[row.split()[0] for row in rows] for rows in (a, b)]
    apart: list[str] = []
    for tag, i, end, j, other_end in difflib.SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if tag != "equal":
            apart += names[0][i:end] + names[1][j:other_end]
            continue
        for left, right in zip(a[i:end], b[j:other_end], strict=True):
            if left != right:
                return [left.split()[0], *apart]
            apart = []
    return []


def check(folder: Path, **variables: str) -> dict:
    """Return what `check` says of the only entry."""
    done = run(folder, [sys.executable, "-m", "samebits", "check", "--json"], **variables)
    return json.loads(done.stdout)["entries"][0]


def lock(folder: Path, python: str, *options: str, **variables: str) -> None:
    """Lock the script, and commit that."""
    done = run(folder, [python, "-m", "samebits", "lock", "--seed", "0", *options, "train.py"], **variables)
    if done.returncode:
        raise SystemExit(done.stderr)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "lock")


def drift(name: str, folder: Path, python: str) -> tuple[str, str]:
    """Return what was expected and what was said of a lock that another environment made."""
    repository(folder, name)
    other = {} if python != sys.executable else {"ATEN_CPU_CAPABILITY": "default"}
    wanted = expected_ops(folder, (python, sys.executable), (other, {}))
    lock(folder, python, **other)
    entry = check(folder)
    op = str((entry["operation"] or {}).get("op")).replace("::", ".")
    ulp = ((entry["operation"] or {}).get("difference") or {}).get("max_ulp")
    said = "identical" if entry["verdict"] == "identical" else f"{entry['blame']} {op}"
    print(f"{name:14} {said}, {entry['proof']}, {ulp} ULP, {entry['settings']}", flush=True)
    if wanted and op in wanted:
        wanted = [op]
    return (f"platform {' or '.join(wanted)}" if wanted else "identical"), said


def portable(name: str, folder: Path, python: str) -> tuple[str, str]:
    """Return what was expected and what was said of a portable lock that another environment made.

    Whether the losses differ without portable mode is printed: a lock that holds where nothing differs shows
    little.
    """
    repository(folder, name)
    other = {} if python != sys.executable else {"ATEN_CPU_CAPABILITY": "default"}
    there, here = run(folder, [python, "train.py"], **other), run(folder, [sys.executable, "train.py"])
    lock(folder, python, "--portable", **other)
    said = check(folder)["verdict"]
    alone = "same" if there.stdout == here.stdout else "other"
    print(f"{name:20} {said}; {alone} losses without portable mode", flush=True)
    return "identical", said


def names_of(what: str) -> list[str]:
    """Return the scripts of a measurement."""
    if what == "release":
        return list(RELEASE_OPS)
    if what != "portable":
        return list(OPS)
    golden = json.loads(MODELS.with_name("portable.json").read_text(encoding="utf-8"))["digests"]
    return [*(name for name in golden if not name.startswith("example_")), *OPS]


def change(name: str, folder: Path, _: str) -> tuple[str, str]:
    """Return what was expected and what was said of a script with a changed line."""
    repository(folder, name)
    lock(folder, sys.executable)
    op, (before, after) = OPS[name]
    lines = TEMPLATE.format(op=op.replace(before, after, 1)).replace("h = (x", "# a comment\n    h = (x")
    (folder / "train.py").write_text(lines)
    git(folder, "commit", "-q", "-a", "-m", "another op")
    (folder / "train.py").write_text(lines + "\n\ndef unused():\n    pass\n")
    git(folder, "commit", "-q", "-a", "-m", "a function")
    wanted = [number for number, line in enumerate(lines.splitlines(), 1) if line.startswith("    y = ")]
    entry = check(folder)
    told = entry["change"] or {"commit": None, "hunks": [], "proof": ""}
    commit = (told["commit"] or {}).get("subject")
    places = [hunk["line"] for hunk in told["hunks"]]
    said = f"{entry['blame']} {commit} {places} {told['proof']}"
    print(f"{name:14} {said}", flush=True)
    return f"change another op {wanted} tried", said


JUDGES = {"change": change, "drift": drift, "portable": portable, "release": drift}


def main() -> None:
    """Run all scripts, and print how many were told right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(JUDGES))
    parser.add_argument("--python", default=sys.executable, help="the interpreter that makes the locks")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    answers = {}
    judge = JUDGES[options.what]
    for name in options.only or names_of(options.what):
        with tempfile.TemporaryDirectory() as folder:
            answers[name] = judge(name, Path(folder), options.python)
    wrong = {name: pair for name, pair in answers.items() if pair[0] != pair[1]}
    for name, (wanted, said) in wrong.items():
        print(f"{name}: expected {wanted!r}, found {said!r}")
    print(f"{len(answers) - len(wrong)} of {len(answers)} right")


if __name__ == "__main__":
    main()

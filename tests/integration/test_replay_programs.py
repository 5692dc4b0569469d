"""ReplayGuard in whole programs: compiled models, trainers of libraries, recorded runs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from textwrap import dedent

import pytest
from cli_support import environment, samebits

COMPILED = """
import sys, torch, samebits
def train(wrap, guarded):
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 1))
    model = wrap(net)
    guard = samebits.ReplayGuard(model, every=1) if guarded else (lambda function, x: function(x))
    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss
    for _ in range(4):
        guard(step, torch.randn(8, 16))
    return samebits.digest([net.state_dict(), [p.grad for p in net.parameters()]])
for wrap in (torch.jit.script, lambda net: torch.compile(net, backend="aot_eager")):
    assert train(wrap, True) == train(wrap, False)
print("the same bits")
"""
TRAINER = """
import sys, torch, samebits
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, TrainerCallback, TrainingArguments
torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=16,
)
model = BertForSequenceClassification(config)
data = [{"input_ids": torch.randint(0, 50, (8,)), "labels": torch.tensor(i % 2)} for i in range(48)]
guards = []
class Guard(TrainerCallback):
    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        guards.append(samebits.ReplayGuard(model, every=2))
        guards[0].watch(optimizer)
args = TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=6, report_to=[],
    use_cpu=True, save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=1,
)
Trainer(model=model, args=args, train_dataset=data, callbacks=[Guard()] if sys.argv[1:] else []).train()
if guards:
    assert (guards[0].steps, guards[0].replays, guards[0].mismatches) == (6, 3, ()), guards[0].replays
print(samebits.digest(model.state_dict()))
"""
RECORDED = """
import itertools, torch, samebits
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
calls = itertools.count()
guard = samebits.ReplayGuard(model, every=2, on_mismatch="warn")
def step(x):
    loss = model(x).square().sum() * (2 if FAULT and next(calls) == 2 else 1)
    loss.backward()
    return loss
for _ in range(4):
    optimizer.zero_grad()
    GUARDED
    optimizer.step()
"""


def run(source, *words, cwd):
    done = subprocess.run(
        [sys.executable, "-W", "error::samebits.SamebitsWarning", "-c", dedent(source), *words],
        cwd=cwd,
        env=environment(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_compiled_and_scripted_models(tmp_path):
    assert run(COMPILED, cwd=tmp_path) == "the same bits"


def test_a_trainer_of_transformers(tmp_path):
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    assert run(TRAINER, "guarded", cwd=tmp_path) == run(TRAINER, cwd=tmp_path)


def written(folder, name, *, guarded, fault=False):
    call = "guard(step, torch.randn(3, 4))" if guarded else "step(torch.randn(3, 4))"
    path = folder / f"{name}.py"
    path.write_text(RECORDED.replace("GUARDED", call).replace("FAULT", str(fault)))
    return path


@pytest.mark.parametrize("level", ["step", "op"])
def test_a_record_has_nothing_of_the_further_executions(level, tmp_path):
    """The same script with and without a guard: every event is the same."""
    for name, guarded in (("plain", False), ("guarded", True)):
        script = written(tmp_path, "train", guarded=guarded)
        done = samebits("run", "--level", level, "--record", f"{name}.sbr", script, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = samebits("compare", "plain.sbr", "guarded.sbr", cwd=tmp_path)

    assert done.stdout.startswith("identical"), done.stdout + done.stderr


def test_a_record_has_a_note_of_a_mismatch(tmp_path):
    script = written(tmp_path, "faulty", guarded=True, fault=True)
    done = samebits("run", "--record", "faulty.sbr", script, cwd=tmp_path)
    assert "only the second gave other bits" in done.stderr
    shown = samebits("show", "faulty.sbr", cwd=tmp_path).stdout

    assert "ReplayGuard found a transient mismatch in its step 0 (3 tensors differ, the first is output)" in (
        " ".join(shown.split())
    )

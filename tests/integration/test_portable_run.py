"""`samebits run --portable`: the same bits under other settings of the machine, or a clear refusal."""

from __future__ import annotations

import json

import pytest
from cli_support import samebits, write

from samebits._torch.dispatch_key import can_register

TRAINING = """
    import torch
    from torch import nn

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(7, 33), nn.GELU(), nn.LayerNorm(33), nn.Linear(33, 5))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(65, 7), torch.randint(0, 5, (65,))
    for step in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(loss.item().hex())
"""
OTHER_MACHINE = {
    "ATEN_CPU_CAPABILITY": "default",
    "OMP_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "SAMEBITS_PORTABLE_BACKEND": "scalar",
}


def test_runs_under_other_settings_of_the_machine_are_identical(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    samebits("run", "--portable", "--record", "a.sbr", "train.py", cwd=tmp_path)
    samebits("run", "--portable", "--record", "b.sbr", "train.py", cwd=tmp_path, **OTHER_MACHINE)
    compared = samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path)
    assert json.loads(compared.stdout)["verdict"] == "identical", compared.stdout
    samebits("run", "--record", "c.sbr", "train.py", cwd=tmp_path)
    plain = samebits("compare", "--json", "a.sbr", "c.sbr", cwd=tmp_path)
    assert json.loads(plain.stdout)["verdict"] == "different"


def test_the_record_says_which_numerics(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    samebits("run", "--portable", "--record", "a.sbr", "train.py", cwd=tmp_path)
    shown = json.loads(samebits("show", "--json", "a.sbr", cwd=tmp_path).stdout)
    assert shown["control"]["portable"] is True
    facts = shown["control"]["portable_run"]
    assert facts["numerics"] == 1
    assert facts["dispatch"] == ("registration" if can_register() else "mode")
    other = {"SAMEBITS_PORTABLE_DISPATCH": "mode"}
    samebits("run", "--portable", "--record", "b.sbr", "train.py", cwd=tmp_path, **other)
    shown = json.loads(samebits("show", "--json", "b.sbr", cwd=tmp_path).stdout)
    assert shown["control"]["portable_run"] == {**facts, "dispatch": "mode"}
    compared = json.loads(samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path).stdout)
    assert compared["verdict"] == "identical"


def test_a_script_without_torch_ends_in_order_and_its_record_is_closed(tmp_path):
    write(tmp_path, "plain.py", "print(1)\n")
    done = samebits("run", "--portable", "--record", "a.sbr", "plain.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "Exception ignored" not in done.stderr
    shown = json.loads(samebits("show", "--json", "a.sbr", cwd=tmp_path).stdout)
    assert shown["status"] == "finished"
    assert shown["control"]["portable_run"] == {"numerics": 1, "kernels": None, "dispatch": None}


def test_an_unknown_way_of_dispatch_is_refused_before_the_script_starts(tmp_path):
    write(tmp_path, "train.py", "open('started', 'w').close()\n")
    done = samebits("run", "--portable", "train.py", cwd=tmp_path, SAMEBITS_PORTABLE_DISPATCH="wrong")
    assert done.returncode == 2
    assert done.stderr.startswith("samebits: SAMEBITS_PORTABLE_DISPATCH=wrong names no way")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("command", ["run", "verify", "resume-check --resume-args=-r"])
def test_kernels_that_this_machine_lacks_are_refused_before_the_script_starts(tmp_path, command):
    write(tmp_path, "train.py", "open('started', 'w').close()\nimport torch\n")
    asked = {"SAMEBITS_PORTABLE_BACKEND": "wrong"}
    done = samebits(*command.split(), "--portable", "train.py", cwd=tmp_path, **asked)
    assert done.returncode == 2
    first, *pointer = done.stderr.splitlines()
    assert first.startswith("samebits: SAMEBITS_PORTABLE_BACKEND=wrong asks for portable kernels")
    assert "unset the variable" in first
    assert len(pointer) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_kernels_that_the_script_asks_for_in_vain_end_it_with_one_error_and_a_closed_record(tmp_path):
    asking = "import os\nos.environ['SAMEBITS_PORTABLE_BACKEND'] = 'wrong'\nimport torch\n"
    write(tmp_path, "train.py", asking)
    done = samebits("run", "--portable", "--record", "a.sbr", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "asks for portable kernels that this machine cannot run" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert json.loads(samebits("show", "--json", "a.sbr", cwd=tmp_path).stdout)["status"] == "failed"


def test_recording_every_op_leaves_the_bits(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    plain = samebits("run", "--portable", "train.py", cwd=tmp_path)
    ops = samebits("run", "--portable", "--level", "op", "--record", "ops.sbr", "train.py", cwd=tmp_path)
    assert (plain.returncode, ops.returncode) == (0, 0), ops.stderr
    assert plain.stdout == ops.stdout
    shown = json.loads(samebits("show", "--json", "ops.sbr", cwd=tmp_path).stdout)
    assert shown["events"]["op"] > 40


def test_verify_takes_it(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    done = samebits("verify", "--portable", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    write(tmp_path, "other.py", TRAINING + "    torch.igamma(model[0].weight, model[0].weight)\n")
    refused = samebits("verify", "--portable", "other.py", cwd=tmp_path)
    assert refused.returncode == 2
    assert "has no portable kernel" in refused.stdout + refused.stderr


def test_cost_measures_switches_only(tmp_path):
    write(tmp_path, "train.py", TRAINING)
    done = samebits("cost", "--portable", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "--portable is not a switch" in done.stderr


def test_an_op_without_portable_values_ends_the_script_with_its_name_and_line(tmp_path):
    write(tmp_path, "train.py", "import torch\nx = torch.ones(3)\ntorch.igamma(x, x)\n")
    done = samebits("run", "--portable", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "train.py:3" in done.stderr
    assert "has no portable kernel" in done.stderr


def test_compiled_code_is_refused(tmp_path):
    write(tmp_path, "train.py", "import torch\ntorch.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2))\n")
    done = samebits("run", "--portable", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "torch.compile" in done.stderr


WORKERS = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.exp(torch.linspace(-3, 3, 1000) * (index + 1)).sum(dtype=torch.float64)

    if __name__ == "__main__":
        torch.manual_seed(1)
        for batch in DataLoader(Rows(), batch_size=2, num_workers=2, multiprocessing_context=METHOD):
            print([value.hex() for value in batch.tolist()])
"""


def test_workers_compute_portably_however_they_are_started(tmp_path):
    printed = set()
    for method in (None, "fork", "spawn", "forkserver"):
        text = WORKERS.replace("METHOD", repr(method))
        write(tmp_path, "train.py", text if method else text.replace("num_workers=2", "num_workers=0"))
        done = samebits("run", "--portable", "train.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Exception ignored" not in done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1
    write(tmp_path, "train.py", WORKERS.replace("METHOD", "'spawn'"))
    assert samebits("run", "train.py", cwd=tmp_path).stdout not in printed


LOKY = """
    from joblib.externals.loky import get_reusable_executor

    def value():
        import torch
        return torch.exp(torch.linspace(-3, 3, 1000)).sum().item().hex()

    if __name__ == "__main__":
        print(get_reusable_executor(1).submit(value).result())
        print(value())
"""


def test_a_process_of_joblib_computes_portably(tmp_path):
    write(tmp_path, "train.py", LOKY)
    done, plain = (samebits("run", *words, "train.py", cwd=tmp_path) for words in (("--portable",), ()))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()
    assert first == second
    assert first not in plain.stdout


THREADS = """
    import threading
    from concurrent.futures import ThreadPoolExecutor

    def load():
        global torch
        import torch

    def value():
        return torch.linspace(-3, 3, 1000).exp().sum().item().hex()

    HERE
    pool = ThreadPoolExecutor(1)
    pool.submit(load).result()
    print({value(), pool.submit(value).result()})
"""


def test_threads_that_are_there_before_torch(tmp_path):
    """A thread that imports torch leaves the others in portable mode too."""
    printed = set()
    for here in ("load()", ""):
        write(tmp_path, "train.py", THREADS, HERE=here)
        done = samebits("run", "--portable", "train.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1
    assert "," not in printed.pop()

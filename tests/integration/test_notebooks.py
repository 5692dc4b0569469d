"""`%%samebits` in real notebooks: what a user sees below the cell, and what the notebook holds afterwards."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest
from cli_support import environment
from notebook_support import SETUP, run_notebook

CAUSES = {
    "unseeded-torch": ("loss = fit([torch.randn(8, 4)])", "aten::randn.default"),
    "unseeded-numpy": ("loss = fit([torch.from_numpy(np.random.rand(8, 4)).float()])", "aten::"),
    "unseeded-python": ("loss = fit([torch.full((8, 4), random.random())])", "aten::full.default"),
    "wall-clock": ("loss = fit([torch.full((8, 4), time.time() % 1)])", "aten::full.default"),
}


def test_faults_are_named_with_the_line_of_the_cell(tmp_path):
    """Step, operation, line and cause, as in the report of a test; the line is that of the notebook."""
    cells = [f"%%samebits verify\n# training\n{code}  # the fault" for code, _ in CAUSES.values()]
    shown = run_notebook(tmp_path, cells)

    for (cause, (code, op)), cell in zip(CAUSES.items(), shown, strict=True):
        assert cell.errors == []
        assert cell.out.startswith("different: the state differs at step 0"), cell.out
        assert f"first difference: step 0, {op}" in cell.out
        assert f"\n  {cell.line('# the fault')}\n    > {code}  # the fault\n" in cell.out
        assert f"cause         {cause}" in cell.out
        assert "ipykernel" not in cell.out
        assert "samebits-" not in cell.out


def test_clean_cells_are_identical(tmp_path):
    """A training with a seed, one of a model of an earlier cell, control, and seeds of earlier cells."""
    shown = run_notebook(
        tmp_path,
        [
            """
            %%samebits verify --runs 3
            model, optimizer = make()
            loss = fit(torch.randn(8, 4) for _ in range(3))
            print("loss", loss.item())
            loss.item()
            """,
            """
            %%samebits verify
            torch.manual_seed(1)
            loss = fit(torch.randn(8, 4) for _ in range(3))
            """,
            "optimizer.state[model.weight]['momentum_buffer'].norm().item(), loss.item(), torch.rand(1)",
            "%%samebits verify --seed 3\nnoise = torch.rand(2), np.random.rand(), random.random()\nnoise",
            "random.seed(1)",
            "%%samebits verify --same-generators\nnumber = random.random()\nnumber",
            "random.seed(1); print(random.random() == number)",
        ],
    )
    expected = run_notebook(
        tmp_path,
        [
            "model, optimizer = make(); loss = fit(torch.randn(8, 4) for _ in range(3)); loss.item()",
            "torch.manual_seed(1); loss = fit(torch.randn(8, 4) for _ in range(3))",
            "optimizer.state[model.weight]['momentum_buffer'].norm().item(), loss.item(), torch.rand(1)",
        ],
    )

    for cell, runs, steps in ((shown[0], 3, 3), (shown[1], 2, 3), (shown[3], 2, 1), (shown[5], 2, 2)):
        assert f"identical: {runs} runs, {steps} step" in cell.out, cell.out
        assert cell.errors == []
    assert shown[0].out.count("loss") == 1
    assert shown[0].results == expected[0].results
    assert shown[2].results == expected[2].results
    assert shown[6].out == "True\n"


def test_state_does_not_leak_from_run_to_run(tmp_path):
    """What the cell changes in place is as after one run: the one whose output is shown."""
    shown = run_notebook(
        tmp_path,
        [
            """
            history, seen, array, count = [], {}, np.zeros(2), 0
            rng = np.random.default_rng(3)
            data = torch.ones(3)
            """,
            """
            %%samebits verify
            history.append(len(history)); seen[len(seen)] = 1
            array += 1; data.mul_(2); count += 1
            drawn = rng.random()
            model.eval()
            del seen[0]
            print("run", count)
            """,
            "history, seen, array.tolist(), data.tolist(), count, model.training",
            "drawn == np.random.default_rng(3).random(), rng.random() == drawn",
            """
            %%samebits verify
            history.append(random.random())
            """,
            "len(history), history[-1] == 0",
        ],
    )

    assert shown[1].out.startswith("run 1\nidentical: 2 runs"), shown[1].out
    assert shown[2].results == ["([0], {}, [1.0, 1.0], [2.0, 2.0, 2.0], 1, False)"]
    assert shown[3].results == ["(True, False)"]
    assert f"  {shown[4].line('history')}\n" in shown[4].out
    assert "unseeded-python" in shown[4].out
    assert shown[5].results == ["(2, False)"]


def test_objects_that_need_their_own_way_back(tmp_path):
    """Sparse tensors, lazy layers, parametrizations, hooks, graphs: after the cell as after one run."""
    cells = [
        """
        sparse = torch.eye(2).to_sparse()
        lazy, layer = torch.nn.LazyLinear(2), torch.nn.Linear(2, 2)
        weight = torch.ones(2, requires_grad=True)
        total = (weight * 2).sum()
        """,
        """
        torch.manual_seed(0)
        sparse.mul_(2)
        lazy(torch.ones(1, 3))
        layer = torch.nn.utils.parametrizations.weight_norm(layer)
        total.backward(retain_graph=True)
        weight.register_hook(lambda grad: grad * 2)
        (weight * 3).sum().backward()
        """,
        "sparse.to_dense().tolist(), lazy.weight.tolist(), layer.weight.tolist(), type(layer).__mro__[1]",
        "weight.grad.tolist(), len(weight._backward_hooks)",
    ]
    verified = ["%%samebits verify\n" + textwrap.dedent(cell).strip() for cell in cells[1:2]]
    shown = run_notebook(tmp_path, [cells[0], *verified, *cells[2:]])
    expected = run_notebook(tmp_path, cells)

    assert shown[1].errors == []
    assert shown[1].out.startswith("identical: 2 runs"), shown[1].out
    assert [each.results for each in shown[2:]] == [each.results for each in expected[2:]]


def test_variables_that_cannot_be_asked_for_their_state(tmp_path):
    """A layer whose weights are not made yet, and an object that raises an error for any attribute."""
    shown = run_notebook(
        tmp_path,
        [
            """
            %%samebits verify
            class Refusing:
                def __getattr__(self, name):
                    raise ZeroDivisionError
            lazy, refusing, ones = torch.nn.LazyLinear(3), Refusing(), torch.ones(2)
            """
        ],
    )
    assert shown[0].errors == []
    assert shown[0].out.startswith("identical: 2 runs"), shown[0].out


def test_values_that_differ_without_a_tensor(tmp_path):
    """Arrays and lists are state; a time is only reported, with its line and the variable."""
    shown = run_notebook(
        tmp_path,
        [
            "%%samebits verify\nnoise = np.random.rand(3)",
            "%%samebits verify\nbegan = time.time()\nw = torch.ones(3) * 2",
            "%%samebits verify --state-only\nbegan = time.time()\nw = torch.ones(3) * 2",
            "%%samebits verify\n5;",
        ],
    )

    assert "first difference: step 0, a saved value (variable noise)" in shown[0].out
    assert f"{shown[0].line('noise')} drew from NumPy's global generator" in shown[0].out
    assert shown[1].out.startswith("different: what is saved is identical; 1 reported value differs")
    assert f"  {shown[1].line('began')} (variable began;" in shown[1].out
    assert "> began = time.time()" in shown[1].out
    assert "With --state-only they do not count" in shown[1].out
    assert shown[2].out.startswith(
        "identical: what is saved is identical; 1 reported value differs; --state-only"
    )
    assert "With --state-only" not in shown[2].out
    assert shown[3].out.startswith("not judged: the cell took no step and read no value"), shown[3].out


def test_errors_are_the_users_own(tmp_path):
    """Shown once, without a frame of samebits; the cell has failed, and the state is that of its one run."""
    shown = run_notebook(
        tmp_path,
        [
            "n, quantized = 0, torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)",
            "%%samebits verify\nn += 1\nfit([torch.ones(1, 3)])",
            "n",
            "%%samebits verify\nn = = 2",
            "%%samebits verify\nn += 1\nraise KeyboardInterrupt",
            "%%samebits run --seed 3\nn += 1\n1 / 0",
            "%%samebits run --seed 3\nquantized.resize_(8)",
            "n",
        ],
    )

    assert len(shown[1].errors) == 1
    error = shown[1].errors[0]
    assert error.startswith("-----")
    assert "RuntimeError" in error
    assert "Cell In[3], line 3" in error
    assert "----> 3 fit([torch.ones(1, 3)])" in error
    assert "samebits/" not in error
    assert (shown[1].out, shown[1].err) == ("", "")
    assert shown[2].results == ["1"]
    assert shown[3].errors == ["  Cell In[5], line 2\n    n = = 2\n        ^\nSyntaxError: invalid syntax\n"]
    assert "KeyboardInterrupt" in shown[4].errors[0]
    assert "----> 3 raise KeyboardInterrupt" in shown[4].errors[0]
    assert "ZeroDivisionError" in shown[5].errors[0]
    assert "----> 3 1 / 0" in shown[5].errors[0]
    assert "quantized_resize_cpu_ does not have a deterministic implementation" in shown[6].errors[0]
    assert (
        f"quantized tensor (quantized_resize_cpu_) at {shown[6].line('resize_')} has no det" in shown[6].err
    )
    assert shown[7].results == ["3"]


def test_a_failing_cell_stops_the_notebook(tmp_path):
    """As without the magic: the cells after it are not run."""
    code = """
import nbformat
from nbclient import NotebookClient
sources = ["%load_ext samebits", "%%samebits verify\\n1 / 0", "print('later')"]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in sources])
try:
    NotebookClient(notebook, kernel_name="python3").execute()
except Exception as error:
    print(type(error).__name__, error.ename)
print(len(notebook.cells[2].outputs))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        check=False,
        timeout=200,
    )
    assert done.stdout == "CellExecutionError ZeroDivisionError\n0\n", done.stderr


def test_later_runs_that_fail_or_are_interrupted(tmp_path):
    """Told as a verdict or in one line; the first run counts."""
    shown = run_notebook(
        tmp_path,
        [
            """
            import signal
            def calls(module=sys):
                module.notebook_calls = getattr(module, "notebook_calls", 0) + 1
                return module.notebook_calls
            """,
            """
            %%samebits verify
            x = torch.full((2,), float(calls()))
            if x[0] > 1:
                signal.raise_signal(signal.SIGINT)
            """,
            "x",
            "%%samebits verify\nx = torch.ones(2)\nif calls() > 3:\n    raise ValueError('only later')",
            "loss = model(torch.ones(1, 4)).sum()",
            "%%samebits verify\nloss.backward()",
            "%%samebits verify\nx = torch.ones(2)\nif calls() > 5:\n    sys.exit(3)",
            "steps = iter([1.0, 2.0, 3.0])",
            "%%samebits verify\nx = torch.tensor(next(steps))",
            "x",
        ],
    )

    assert shown[1].errors == [
        "KeyboardInterrupt: samebits verify was interrupted; the first run of the cell counts"
    ]
    assert shown[2].results == ["tensor([1., 1.])"]
    assert shown[3].errors == []
    assert shown[3].out.startswith("not judged: the second run failed (ValueError: only later)"), shown[3].out
    assert "Trying to backward through the graph a second time" in shown[5].out
    assert "note: not put back before run 2: the graph of `loss`, which a backward pass frees" in shown[5].out
    assert shown[6].errors == []
    assert shown[6].out.startswith("not judged: the second run failed (SystemExit: 3)"), shown[6].out
    assert shown[8].out.startswith("different: ")
    assert "note: not put back before run 2: how far `steps` has been read" in shown[8].out
    assert shown[9].results == ["tensor(1.)"]


def test_wrong_options_are_one_line(tmp_path):
    """Never a traceback, and the cell is not run."""
    wrong = {
        "%%samebits verify --runz 3": "unrecognized arguments: --runz 3",
        "%%samebits verify --runs 1": "argument --runs: expected a whole number of at least 2, found '1'",
        "%%samebits verify --seed x": "argument --seed: ",
        "%%samebits verify --seed 3 --set nothing=1": "there is no switch 'nothing'",
        "%%samebits verify 'x": "No closing quotation",
        "%%samebits verifi": "expected `verify` or `run` after %%samebits, found 'verifi' (did you mean ver",
        "%%samebits": "expected `verify` or `run` after %%samebits, found nothing",
        "%%samebits run": "give --seed N, --deterministic or --portable",
        "%%samebits run --reseed": "--reseed needs a seed",
    }
    shown = run_notebook(
        tmp_path, [*(f"{line}\nprint('was run')" for line in wrong), "%samebits verify", "%samebits --help"]
    )

    for cell, text in zip(shown, wrong.values(), strict=False):
        assert text in cell.err
        assert cell.err.startswith("UsageError: ")
        assert len(cell.err.strip().splitlines()) == 1, cell.err
        assert cell.errors == []
        assert "was run" not in cell.out
    assert "`%samebits verify` has no cell; expected `%%samebits verify` in its first line" in shown[-2].err
    assert "%%samebits run [options]" in shown[-1].out


def test_magics_figures_and_output_inside_a_cell(tmp_path):
    """Everything is shown once, though the cell runs four times."""
    shown = run_notebook(
        tmp_path,
        [
            "%matplotlib inline\nimport matplotlib.pyplot as plt",
            """
            %%samebits verify
            %time noise = torch.randn(3)
            !echo from the shell
            for i in range(2):
                print("printed", i)
            print("to stderr", file=sys.stderr)
            display("shown")
            plt.figure()
            plt.plot([1, 2])
            noise.shape
            """,
            "%%samebits verify\n%%time\nnoise = torch.randn(3)",
            "plt.get_fignums()",
        ],
    )
    cell = shown[1]

    for text in ("from the shell", "printed 0", "printed 1", "Wall time"):
        assert cell.out.count(text) == 1, cell.out
    assert cell.err == "to stderr\n"
    assert cell.figures == 1
    assert cell.results == ["torch.Size([3])"]
    assert sum(each["data"]["text/plain"] == "'shown'" for each in cell._of("display_data")) == 1
    assert f"aten::randn.default\n  {cell.line('%time')}\n    > %time noise = torch.randn(3)" in cell.out
    assert f"aten::randn.default\n  {shown[2].line('%%time')}\n" in shown[2].out
    assert shown[3].results == ["[]"]


def test_output_of_children_and_of_kept_streams(tmp_path):
    """Shown once too: a logger of an earlier cell keeps its stream, a child process writes past Python."""
    shown = run_notebook(
        tmp_path,
        [
            """
            import logging, subprocess
            logger = logging.getLogger("training")
            logger.addHandler(logging.StreamHandler())
            logger.setLevel("INFO")
            kept = sys.stdout
            """,
            """
            %%samebits verify
            noise = torch.randn(3)
            logger.info("logged")
            print("to a kept stream", file=kept)
            sys.stdout.flush()
            done = subprocess.run(["echo", "from a child"])
            written = os.write(1, b"by its number\\n")
            """,
            "print('after'); logger.info('later'); code = os.system('echo as before')",
        ],
    )
    cell = shown[1]

    assert "unseeded-torch" in cell.out
    for text in ("to a kept stream", "from a child", "by its number"):
        assert cell.out.count(text + "\n") == 1, cell.out
    assert cell.err == "logged\n"
    assert sorted(shown[2].out.splitlines()) == ["after", "as before"]
    assert shown[2].err == "later\n"


def test_a_cell_that_awaits(tmp_path):
    """It awaits in the kernel's own event loop, as it does without the magic."""
    shown = run_notebook(
        tmp_path,
        [
            """
            import asyncio
            loop = asyncio.get_running_loop()
            async def value():
                await asyncio.sleep(0.01)
                assert asyncio.get_running_loop() is loop
                return torch.randn(3)
            """,
            "%%samebits verify\nx = await value()\nx.shape",
            "%%samebits verify\ntorch.manual_seed(0)\nx = await value()",
            "%%samebits run --seed 3\nx = await value()\nx.tolist()",
            "%%samebits run --seed 3\nx = torch.randn(3)\nx.tolist()",
            "%%samebits verify\nawait value()\n1 / 0",
            "%%time\n%%samebits verify\nx = 1",
        ],
    )

    assert "first difference: step 0, aten::randn.default" in shown[1].out
    assert shown[1].results == ["torch.Size([3])"]
    assert "identical: 2 runs" in shown[2].out
    assert shown[3].results == shown[4].results
    assert len(shown[5].errors) == 1
    assert "ZeroDivisionError" in shown[5].errors[0]
    assert "samebits/" not in shown[5].errors[0]


def test_functions_of_earlier_cells_are_named_by_their_cells(tmp_path):
    """Line and text are those of the cell that defines the function."""
    shown = run_notebook(
        tmp_path,
        ["def noisy():\n    return torch.randn(3)  # the fault", "%%samebits verify\nx = noisy() * 2"],
    )
    assert (
        f"  {shown[0].line('# the fault')} in noisy\n    > return torch.randn(3)  # the fault" in shown[1].out
    )


def test_control_gives_the_same_bits_in_two_kernels(tmp_path):
    """And says in one line what it did; what is too late for this kernel is told once."""
    cells = [
        """
        %%samebits run --seed 3
        model, optimizer = torch.nn.Linear(4, 2), None
        drawn = torch.randn(4), np.random.rand(3), random.random()
        drawn[0].tolist(), drawn[1].tolist(), drawn[2], model.weight.tolist()
        """,
        "%%samebits run --deterministic\nprint(torch.are_deterministic_algorithms_enabled())",
        "print(torch.are_deterministic_algorithms_enabled())",
        "%%samebits run --portable --seed 3\n(torch.ones(3, 3) @ torch.ones(3, 3)).sum()",
    ]
    first = run_notebook(tmp_path, cells)
    second = run_notebook(tmp_path, cells, PYTHONHASHSEED="5")

    assert first[0].results == second[0].results != []
    assert len(first[0].out.splitlines()) == 1
    assert first[0].out.startswith("samebits run: all generators from seed 3; ")
    assert "switches set; too late in this kernel for " in first[0].out
    assert "PYTHONHASHSEED" in first[0].out
    assert first[0].err.startswith("samebits: it is too late in this process to set ")
    assert first[1].out.startswith("True\nsamebits run: ")
    assert first[1].err == ""
    assert first[2].out == "False\n"
    assert first[3].out.endswith("; portable mode\n")


def test_the_order_of_a_set_cannot_differ_in_one_kernel(tmp_path):
    """One kernel has one hash seed, and an identical verdict says so."""
    shown = run_notebook(
        tmp_path, ["%%samebits verify\norder = torch.tensor([len(s) for s in {'a', 'bb', 'ccc'}])"]
    )
    assert "identical: 2 runs" in shown[0].out
    assert "note: one kernel has one hash seed" in shown[0].out


def test_a_kernel_without_torch_so_far(tmp_path):
    """The cell may import it."""
    shown = run_notebook(
        tmp_path,
        ["%%samebits verify\nx = [1, 2]", "%%samebits verify\nimport torch\nx = torch.rand(3)"],
        setup="%load_ext samebits",
    )
    assert "identical: 2 runs" in shown[0].out
    assert "unseeded-torch" in shown[1].out


def test_other_names_of_cells(tmp_path):
    """VS Code may name the cell's file; reports call it by its number all the same."""
    cells = ["%%samebits verify\n\nx = torch.randn(3)"]
    shown = run_notebook(tmp_path, cells, IPYKERNEL_CELL_NAME="<my cell>")
    assert f"  {shown[0].line('randn')}\n    > x = torch.randn(3)" in shown[0].out


@pytest.mark.parametrize("verdict", ["identical", "different"])
def test_the_terminal_of_ipython(verdict, tmp_path):
    """The shell names cells otherwise than the kernel, and has no event loop of its own running."""
    seed = "torch.manual_seed(0)" if verdict == "identical" else "1"
    cell = f"%%samebits verify\n{seed}\nx = torch.randn(3)\n\n\nx.shape\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=f"{SETUP.strip()}\n\n\n{cell}",
        capture_output=True,
        text=True,
        env=environment(IPYTHONDIR=str(tmp_path)),
        cwd=tmp_path,
        check=False,
        timeout=200,
    )
    assert f"{verdict}: " in done.stdout, done.stdout + done.stderr
    if verdict == "different":
        assert re.search(r"  Cell In\[\d+\], line 3\n    > x = torch.randn\(3\)\n", done.stdout), done.stdout

"""Verdicts and origins of real scripts, each with one source of nondeterminism, or only the look of it."""

from __future__ import annotations

from cli_support import judged, samebits, write

START = """
    import os, queue, random, secrets, threading, time
    import torch
    from torch.utils.data import DataLoader, Dataset
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows = torch.randn(24, 8)

    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""

WORKER_NOISE = """
    class Noisy(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, i):
            return rows[i] + random.SystemRandom().random()  # here

    for x in DataLoader(Noisy(), batch_size=8, num_workers=2, shuffle=True):  # here
        step(x)
"""

# Which run it is, told by a folder that is there or not: what chance does, but never twice the same.
BRANCH = """
    odd = not os.path.isdir("odd")
    (os.mkdir if odd else os.rmdir)("odd")
    for i in range(4):
        x = rows
        if odd and i == 2:
            x = x * 1.01  # here
        step(x)
"""

STEPS = """
    odd = not os.path.isdir("odd")
    (os.mkdir if odd else os.rmdir)("odd")
    for i in range(7 if odd else 9):
        step(rows)  # here
"""

HARMLESS = """
    class Slow(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, i):
            time.sleep(secrets.randbelow(3) / 1000)
            return rows[i] + torch.rand(8)

    model.register_buffer("unread", torch.empty(128), persistent=False)
    for x in DataLoader(Slow(), batch_size=8, num_workers=2, shuffle=True):
        started = time.perf_counter_ns()
        step(x)
        if started // 1000 % 2:
            print(started, float(model.weight.norm()), torch.empty(3).shape)
        torch.save({"model": model.state_dict(), "time": time.time()}, os.devnull)
"""


def verify(tmp_path, body):
    """Judge a script; give the verdict and the number of the line marked `# here`."""
    path = write(tmp_path, "train.py", START + body)
    marked = [n for n, line in enumerate(path.read_text().splitlines(), 1) if "# here" in line]
    return judged(samebits("verify", "--no-interventions", "--json", "train.py", cwd=tmp_path)), marked


def test_noise_of_loader_workers_is_blamed_on_the_batch(tmp_path):
    """What workers deliver comes in between the main process's own draws: none of these is to blame."""
    result, marked = verify(tmp_path, WORKER_NOISE)

    assert result["verdict"] == "different"
    first = result["findings"][0]
    assert (first["kind"], first["op"], first["cause"]) == ("batch", "DataLoader", "os-entropy")
    assert [first["site"]["line"], first["entered_site"]["line"]] == marked
    assert first["difference"]["elements"] == first["difference"]["total"] == 64


def test_harmless_things_are_no_difference(tmp_path):
    """Log lines by time, worker timing, a buffer that nothing read, a date in a checkpoint."""
    result, _ = verify(tmp_path, HARMLESS)

    assert (result["verdict"], result["reason"]) == ("identical", None)


def test_another_way_is_blamed_where_it_begins(tmp_path):
    """An `if` that went the other way; there are no two values whose distance could be told."""
    result, marked = verify(tmp_path, BRANCH)

    first = result["findings"][0]
    assert (first["step"], first["op"], first["site"]["line"]) == (2, "aten::mul.Tensor", marked[0])
    assert "from here on, the runs did different things" in first["evidence"]
    assert not any("could not be fetched" in note for note in result["notes"])


def test_another_number_of_steps_is_explained(tmp_path):
    """The runs agree as long as both go on; then one ends, and the other's next event is shown."""
    result, _ = verify(tmp_path, STEPS)

    assert "different numbers of steps, 7 and" in result["reason"]
    first = result["findings"][0]
    assert (first["step"], first["op"]) == (7, "aten::t.default")
    assert "the first run did nothing more in this step" in first["evidence"]


ENDED = """
    for i in range(3):
        step(rows)
        if i == 1:
            if os.fork() == 0:
                os._exit(5)
            os.wait()
    os._exit(0)
"""

FAILED = """
    step(rows)
    try:
        raise ValueError("no such shard")
    except ValueError:
        os._exit(4)
"""


def test_a_script_that_ends_the_process_itself_is_judged(tmp_path):
    """By `os._exit`, after which nothing of the interpreter runs. A forked child ends so, too."""
    result, _ = verify(tmp_path, ENDED)

    assert (result["verdict"], result["reason"], result["steps"]) == ("identical", None, 3)


def test_the_error_for_which_a_script_ends_the_process_is_told(tmp_path):
    result, _ = verify(tmp_path, FAILED)

    assert result["verdict"] == "not_judged"
    assert "ValueError: no such shard (at step 1, exit status 4)" in result["reason"]
    assert samebits("run", "train.py", cwd=tmp_path).returncode == 4

"""Scripts in which several threads train at the same time, in whatever order they come."""

from __future__ import annotations

import json

import pytest
from cli_support import samebits, write

TRAINING = """
    import random, sys, threading, time
    import torch

    chance = random.SystemRandom()

    def build(seed):
        generator = torch.Generator().manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        return model, generator

    def train(seed, made=None):
        model, generator = made or build(seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(4):
            time.sleep(chance.uniform(0, 0.02))
            x = torch.randn(6, 4, generator=generator)
            if seed == 2 and step == 2:
                x = x + EXTRA
            optimizer.zero_grad()
            model(x).square().mean().backward()
            time.sleep(chance.uniform(0, 0.02))
            optimizer.step()
        models[seed] = model

    models = {}
"""
PLACES = {
    "models made before": """
    made = [build(1), build(2)]
    threads = [threading.Thread(target=train, args=args) for args in zip((1, 2), made)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """,
    "models made in the threads": """
    threads = [threading.Thread(target=train, args=(seed,)) for seed in (1, 2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """,
    "main thread trains too": """
    thread = threading.Thread(target=train, args=(1,))
    thread.start()
    train(2)
    thread.join()
    """,
    "pool": """
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(train, (1, 2, 3, 4)))
    """,
}


def script(folder, place, extra="0"):
    return write(folder, "train.py", TRAINING + PLACES[place], EXTRA=extra)


@pytest.mark.parametrize("place", PLACES)
def test_threads_that_train_models_of_their_own_are_reproducible(tmp_path, place):
    """The steps interleave by chance; each model gets the same bits in every run."""
    result = samebits(
        "verify", "--no-interventions", "--runs", "3", "--json", script(tmp_path, place), cwd=tmp_path
    )
    answer = json.loads(result.stdout)
    assert (answer["verdict"], answer["reason"]) == ("identical", None), result.stdout
    assert answer["steps"] == (16 if place == "pool" else 8)
    assert answer["final_digest"][0] == answer["final_digest"][1]


@pytest.mark.parametrize("place", ["models made in the threads", "main thread trains too"])
def test_a_difference_in_one_of_the_threads_is_found(tmp_path, place):
    """The operation that differed in one thread is named, and nothing of the other."""
    path = script(tmp_path, place, "chance.random()")
    result = samebits("verify", "--no-interventions", "--json", path, cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "different"
    first = answer["findings"][0]
    assert (first["op"], first["site"]["line"]) == ("aten::add.Tensor", line_of(path, "x = x + "))
    assert answer["final_digest"][0] != answer["final_digest"][1]


def test_runs_stopped_by_a_number_of_steps_are_compared_as_far_as_both_go(tmp_path):
    """Where the runs are stopped is chance: one optimizer may have got further than in the other run."""
    path = script(tmp_path, "models made in the threads")
    answer = json.loads(
        samebits("verify", "--no-interventions", "--steps", "4", "--json", path, cwd=tmp_path).stdout
    )
    assert answer["verdict"] == "identical", answer


def line_of(path, text):
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)

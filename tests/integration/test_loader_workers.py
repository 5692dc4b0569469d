"""Workers draw the same whichever way they are started, and in every run."""

from __future__ import annotations

import json

from child_support import found, run_script

WORKERS = """
    from samebits.determinism.activation import Activation
    from samebits.switches.switch import Control
    import sys
    if __name__ == "__main__":
        Activation(Control(seed=int(sys.argv[1]), all_switches=False), fresh_process=True).start()

    import json, multiprocessing, random
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

    def draws():
        return [random.random(), np.random.rand(), torch.rand(1).item(), np.random.default_rng().random()]

    class Drawing(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return [index, 0 if get_worker_info() is None else get_worker_info().id, *draws()]

    class Streaming(IterableDataset):
        def __iter__(self):
            made = np.random.default_rng()
            for index in range(3):
                yield [index, get_worker_info().id, made.random(), *draws()]

    def init(worker):
        np.random.default_rng().random()

    def epochs(dataset, method, workers, **arguments):
        if workers:
            arguments |= {"multiprocessing_context": method, "num_workers": workers}
        if isinstance(dataset, Dataset) and not isinstance(dataset, IterableDataset):
            arguments["shuffle"] = True
        loader = DataLoader(dataset, batch_size=2, collate_fn=list, **arguments)
        return [[batch for batch in loader] for epoch in range(2)]

    if __name__ == "__main__":
        multiprocessing.set_forkserver_preload(["torch", "numpy"])
        found = {}
        for kind, method, workers, persistent in json.loads(sys.argv[2]):
            # A new activation each time, so that every combination has the first loader of its run.
            control = Control(seed=int(sys.argv[1]), all_switches=False)
            activation = Activation(control, fresh_process=False)
            activation.start()
            dataset = Drawing() if kind == "Drawing" else Streaming()
            arguments = {"persistent_workers": persistent, "worker_init_fn": init}
            found[f"{kind} {method} {workers} {persistent}"] = epochs(dataset, method, workers, **arguments)
            activation.stop()
        print(json.dumps(found))
"""
FORKED = [
    ["Drawing", None, 0, False],
    *([kind, "fork", 2, lived] for kind in ("Drawing", "Streaming") for lived in (False, True)),
]
FRESH = [
    ["Drawing", "spawn", 2, True],
    *([kind, "forkserver", 2, lived] for kind in ("Drawing", "Streaming") for lived in (False, True)),
]


def flat(epochs):
    """The samples, as tuples."""
    return [tuple(sample) for epoch in epochs for batch in epoch for sample in batch]


def test_workers_draw_the_same_however_they_are_started(tmp_path):
    first = found(run_script(tmp_path, WORKERS, "3", json.dumps(FORKED + FRESH)))
    again = found(run_script(tmp_path, WORKERS, "3", json.dumps(FORKED)))
    other = found(run_script(tmp_path, WORKERS, "4", json.dumps(FORKED)))

    assert {name: first[name] for name in again} == again
    for kind in ("Drawing", "Streaming"):
        for ending in ("fork 2 True", "forkserver 2 False", "forkserver 2 True"):
            assert first[f"{kind} {ending}"] == first[f"{kind} fork 2 False"]
    assert first["Drawing spawn 2 True"] == first["Drawing fork 2 False"]
    for name, epochs in again.items():
        one, two = flat(epochs), flat(other[name])
        for column in range(2, len(one[0])):
            values = [sample[column] for sample in one + two]
            assert len(set(values)) == len(values), (name, column)
    drawing = [flat(epochs) for name, epochs in first.items() if name.startswith("Drawing")]
    assert len({tuple(sample[0] for sample in samples) for samples in drawing}) == 1

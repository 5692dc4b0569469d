"""Loaders draw by key, leave the global generator alone, and nothing is left on the user's objects."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import random
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.datapipes.iter import IterableWrapper

from samebits._torch.loaders import loader_iterator_classes
from samebits.dataloading._workers import LoaderEpoch, LoaderLedger, WorkerInit
from samebits.dataloading.loaders import LoaderControl
from samebits.recording.probes.batches import BatchProbe
from samebits.rng.active import PROCESS, Active
from samebits.switches.switch import Control

HERE = Path(__file__).resolve().parent
SIZE = 8


@contextlib.contextmanager
def control(seed=3, *, workers=True):
    """Loaders are under control, generators are seeded."""
    active = Active(Control(seed=seed, workers=workers), seed)
    loaders = LoaderControl(active)
    PROCESS.push(active)
    loaders.install(torch)
    torch.manual_seed(0 if seed is None else seed)
    try:
        yield loaders
    finally:
        loaders.remove()
        PROCESS.drop(active)


class Numbers(Dataset):
    """Its items are their indices."""

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return index


class Drawing(Numbers):
    """Its items hold draws from each global generator, and a key of a generator made without a seed."""

    def __getitem__(self, index):
        active = PROCESS.current
        unseeded = -1 if active is None else active.next_seed("generator") >> 1
        info = torch.utils.data.get_worker_info()
        seed = -1 if info is None else info.seed
        agrees = info is None or seed == torch.initial_seed()
        draws = (
            random.random(),
            np.random.rand(),
            torch.rand(()).item(),
            unseeded,
            seed % 2**40,
            agrees,
            index,
        )
        return torch.tensor(draws, dtype=torch.float64)


class Streaming(IterableDataset):
    """Draws in each worker."""

    def __iter__(self):
        for _ in range(3):
            yield torch.rand(1).item()


def order(loader):
    """The indices that a loader gives."""
    return torch.cat([torch.as_tensor(batch).reshape(-1) for batch in loader]).tolist()


def rows(loader):
    """The draws that a loader's dataset made, one tuple per sample."""
    return [tuple(row) for batch in loader for row in batch.tolist()]


def shuffled(**arguments):
    return DataLoader(Numbers(), batch_size=3, shuffle=True, **arguments)


def forked(workers=2, **arguments):
    return DataLoader(
        Drawing(),
        batch_size=2,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context="fork",
        **arguments,
    )


SAMPLERS = {
    "sequential": lambda: DataLoader(Numbers(), batch_size=3),
    "random": shuffled,
    "replacement": lambda: DataLoader(Numbers(), sampler=RandomSampler(Numbers(), replacement=True)),
    "subset": lambda: DataLoader(Numbers(), sampler=SubsetRandomSampler(range(2, SIZE))),
    "weighted": lambda: DataLoader(Numbers(), sampler=WeightedRandomSampler([1.0] * SIZE, 5)),
    "no batches": lambda: DataLoader(Numbers(), batch_size=None, shuffle=True),
    "nested": lambda: DataLoader(
        Numbers(), batch_sampler=BatchSampler(SubsetRandomSampler(range(SIZE)), 2, drop_last=True)
    ),
    "users own batches": lambda: DataLoader(Numbers(), batch_sampler=Pairs(RandomSampler(Numbers()))),
    "streaming": lambda: DataLoader(Letters()),
}


class Letters(IterableDataset):
    """Draws nothing."""

    def __iter__(self):
        return iter(range(4))


class Pairs(Sampler):
    """A batch sampler of the user's own around one of torch's."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        inner = iter(self.inner)
        return iter(lambda: list(itertools.islice(inner, 2)), [])


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_the_main_stream_is_not_touched(make):
    with control():
        before = torch.get_rng_state()
        loader = make()
        iter(loader)
        order(loader)

        assert torch.equal(torch.get_rng_state(), before)


def test_without_control_it_is_touched():
    """The test above can fail."""
    before = torch.get_rng_state()
    iter(shuffled())

    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in ("sequential", "streaming")])
def test_orders_are_the_same_again_and_differ_by_seed_and_epoch(name):
    def epochs(seed):
        with control(seed):
            torch.rand(seed)  # draws of the script shift nothing
            loader = SAMPLERS[name]()
            return order(loader), order(loader)

    first, second = epochs(3)

    assert (first, second) == epochs(3)
    assert first != second
    assert first != epochs(4)[0]


def test_the_scripts_own_seed_decides_the_order():
    def ordered(own):
        with control():
            torch.manual_seed(own)
            return order(shuffled())

    assert ordered(1) == ordered(1) != ordered(2)


def test_an_eval_loader_does_not_change_the_training_order():
    def training(*, evaluate):
        with control():
            train, other = shuffled(), shuffled()
            orders = []
            for _ in range(3):
                orders.append(order(train))
                if evaluate:
                    order(other)
                    torch.rand(5)
            return orders

    assert training(evaluate=True) == training(evaluate=False)


def test_two_loaders_differ():
    with control():
        assert order(shuffled()) != order(shuffled())


def test_iterators_that_live_at_the_same_time_do_not_disturb_each_other():
    with control():
        loader = shuffled()
        expected = [order(loader), order(loader)]
    with control():
        loader = shuffled()
        pairs = list(zip(loader, loader, strict=True))
        found = [torch.cat(side).tolist() for side in zip(*pairs, strict=True)]

    assert found == expected


def test_loaders_may_share_a_sampler():
    def orders(*, shared):
        with control():
            one = RandomSampler(Numbers())
            other = one if shared else RandomSampler(Numbers())
            pairs = zip(DataLoader(Numbers(), sampler=one), DataLoader(Numbers(), sampler=other), strict=True)
            return torch.cat([torch.cat(pair) for pair in pairs]).tolist()

    assert orders(shared=True) == orders(shared=False)


def test_a_sampler_that_is_iterated_again_and_again_goes_on():
    class Endless(Sampler):
        def __init__(self, inner):
            self.inner = inner

        def __iter__(self):
            while True:
                yield from iter(self.inner)

    with control():
        loader = DataLoader(Numbers(), sampler=Endless(RandomSampler(Numbers())), batch_size=None)
        found = list(itertools.islice(loader, 2 * SIZE))

    assert sorted(found[:SIZE]) == sorted(found[SIZE:]) == list(range(SIZE))
    assert found[:SIZE] != found[SIZE:]


def test_a_reused_id_is_another_loader():
    with control() as loaders:
        expected = [order(shuffled()) for _ in range(1)] + [order(shuffled())]
        entries = loaders._views._ledger._known
        loader = shuffled()
        (entry, *_) = entries.values()
        entries[id(loader)] = entry  # as left by a loader that is gone and had this id
        gc.collect()
        order(loader)

        assert entries[id(loader)].loader() is loader
        assert len(entries) == 1
    assert expected[0] != expected[1]


def test_in_another_part_of_the_run_loaders_are_numbered_anew():
    active = Active(Control(seed=3), 3)
    ledger, loaders = LoaderLedger(active), [shuffled(), shuffled()]
    numbered = [ledger.begin(loader, 0) for loader in (*loaders, *loaders)]
    active.enter_scope("process", 1)
    numbered.append(ledger.begin(loaders[1], 0))

    assert [(epoch.loader, epoch.number) for epoch in numbered] == [
        ((0,), 0),
        ((1,), 0),
        ((0,), 1),
        ((1,), 1),
        ((0,), 0),
    ]


def test_a_loader_that_cannot_be_referred_to_weakly():
    class Slotted:
        __slots__ = ()

    ledger, loader = LoaderLedger(Active(Control(seed=3), 3)), Slotted()

    assert [ledger.begin(loader, 0).number for _ in range(2)] == [0, 1]


def test_threads_have_their_own_numbers():
    def in_threads(*, others):
        found = {}
        with control():
            if others:
                order(shuffled())

            def work():
                found[threading.current_thread().name] = order(shuffled())

            for name in ("a", "b"):
                thread = threading.Thread(target=work, name=name)
                thread.start()
                thread.join()
        return found

    found = in_threads(others=False)

    assert found == in_threads(others=True)
    assert found["a"] != found["b"]


def test_nothing_is_left_on_the_users_objects():
    sampler, dataset = RandomSampler(Numbers()), Numbers()
    loader = DataLoader(dataset, sampler=sampler, num_workers=1)
    before = [dict(vars(thing)) for thing in (loader, sampler, dataset)]
    with control():
        iterator = iter(loader)
        next(iterator)

        assert [dict(vars(thing)) for thing in (loader, sampler, dataset)] == before
        assert copy.copy(loader).worker_init_fn is None


def test_a_loader_with_the_users_generator_is_left_to_the_user():
    def ordered(*, controlled):
        with control() if controlled else contextlib.nullcontext():
            generator = torch.Generator().manual_seed(5)
            loader = shuffled(generator=generator)
            return order(loader), order(loader), generator.get_state().tolist()

    assert ordered(controlled=True) == ordered(controlled=False)


def test_a_sampler_with_the_users_generator_is_left_to_the_user():
    def ordered(*, controlled):
        with control() if controlled else contextlib.nullcontext():
            sampler = RandomSampler(Numbers(), generator=torch.Generator().manual_seed(5))
            return order(DataLoader(Numbers(), sampler=sampler))

    assert ordered(controlled=True) == ordered(controlled=False)


def test_a_sampler_that_draws_itself_is_left_alone():
    class Own(Sampler):
        def __iter__(self):
            yield from torch.randperm(SIZE).tolist()

    with control():
        torch.manual_seed(9)
        found = order(DataLoader(Numbers(), sampler=Own()))
    torch.manual_seed(9)

    assert found == torch.randperm(SIZE).tolist()


def test_a_sampler_outside_any_loader_is_left_alone():
    with control():
        order(shuffled())
        torch.manual_seed(9)
        found = list(RandomSampler(Numbers()))
    torch.manual_seed(9)

    assert found == list(RandomSampler(Numbers()))


def test_a_sampler_in_another_thread_is_left_alone():
    found = []

    class Busy(Sampler):
        def __iter__(self):
            thread = threading.Thread(target=lambda: found.extend(RandomSampler(Numbers())))
            thread.start()
            thread.join()
            yield 0

    with control():
        torch.manual_seed(9)
        order(DataLoader(Numbers(), sampler=Busy()))
    torch.manual_seed(9)

    assert found == list(RandomSampler(Numbers()))


def test_a_subclass_of_a_sampler_and_of_the_loader_work():
    class Counting(RandomSampler):
        passes = 0

        def __iter__(self):
            self.passes += 1
            return super().__iter__()

    class Loader(DataLoader):
        __hash__ = None

        def __iter__(self):
            return map(torch.neg, super().__iter__())

    with control():
        before = torch.get_rng_state()
        sampler = Counting(Numbers())
        found = order(Loader(Numbers(), sampler=sampler))

        assert sorted(found) == [-index for index in reversed(range(SIZE))]
        assert sampler.passes == 1
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("ignore")
def test_data_pipes():
    def epochs():
        with control():
            before = torch.get_rng_state()
            loader = DataLoader(IterableWrapper(range(SIZE)).shuffle(), batch_size=2, shuffle=True)
            found = order(loader), order(loader)
            assert torch.equal(torch.get_rng_state(), before)
            return found

    first, second = epochs()

    assert (first, second) == epochs()
    assert first != second


@pytest.mark.parametrize("arguments", [{"seed": None}, {"workers": False}])
def test_without_a_seed_or_when_told_so_nothing_is_done(arguments):
    with control(**arguments):
        torch.manual_seed(9)
        found = order(shuffled())
    torch.manual_seed(9)

    assert found == order(shuffled())


def test_an_iterator_class_of_somebody_else_works_if_made_before_or_after():
    base, *_, multi = loader_iterator_classes()[:3]

    def make():
        class Theirs(multi):
            def __init__(self, loader, extra):
                super().__init__(loader)
                self.extra = (extra, loader.worker_init_fn is not None, isinstance(loader, DataLoader))

            def _next_index(self):
                return super()._next_index()

        return Theirs

    earlier = make()
    with control():
        for kind in (earlier, make()):
            loader = DataLoader(Numbers(), num_workers=1, shuffle=True)
            before = torch.get_rng_state()
            iterator = kind(loader, 7)

            assert iterator.extra == (7, True, True)
            assert sorted(order(iterator)) == list(range(SIZE))
            assert torch.equal(torch.get_rng_state(), before)
    assert "__init_subclass__" not in vars(base)


def test_recording_comes_and_goes_while_control_is_on():
    class Recorder:
        active = False

    with control():
        probe = BatchProbe(Recorder())
        probe.install(torch)
        recorded = order(shuffled())
        probe.remove()
    with control():
        assert recorded == order(shuffled())


def test_control_inside_control_wins_and_gives_back():
    with control():
        expected = order(shuffled())
        later = order(shuffled())
    with control(4):
        inner = order(shuffled())
    with control():
        assert order(shuffled()) == expected
        with control(4):
            assert order(shuffled()) == inner
        torch.manual_seed(3)
        assert order(shuffled()) == later


WORKERS = pytest.mark.parametrize("workers", [1, 2, 4])
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@WORKERS
def test_workers_are_keyed_by_seed_worker_and_epoch(workers):
    def epochs(seed=3):
        with control(seed):
            np.random.seed(0)  # the state that workers inherit
            loader = forked(workers)
            return rows(loader), rows(loader)

    first, second = epochs()

    assert (first, second) == epochs()
    for column in range(4):
        values = [row[column] for row in first + second + epochs(4)[0]]
        assert len(set(values)) == len(values)
    assert len({row[4] for row in first}) == workers
    assert all(row[5] for row in first + second)


@WORKERS
def test_persistent_workers_give_the_same_as_new_ones(workers):
    def epochs(**arguments):
        with control():
            loader = forked(workers, **arguments)
            for _ in itertools.islice(loader, 1):
                pass  # an epoch that is left early
            return [rows(loader) for _ in range(3)]

    assert epochs(persistent_workers=True) == epochs()


def test_persistent_workers_follow_the_scripts_own_seed():
    def epochs(**arguments):
        with control():
            loader = forked(**arguments)
            found = [rows(loader)]
            torch.manual_seed(77)
            return [*found, rows(loader)]

    assert epochs(persistent_workers=True) == epochs()


def test_the_users_init_runs_after_ours_and_keeps_its_seeds():
    def init(worker):
        np.random.seed(100 + worker)
        assert PROCESS.current.scope[-1] == "init"
        PROCESS.current.next_seed("generator")

    with control():
        found = rows(forked(1, worker_init_fn=init))
        lived = rows(forked(1, worker_init_fn=init, persistent_workers=True))
    expected = np.random.RandomState(100).rand(SIZE).tolist()

    assert [row[1] for row in found] == [row[1] for row in lived] == expected


def test_what_the_users_init_seeded_is_not_seeded_again_in_later_epochs():
    def init(worker):
        np.random.seed(100 + worker)

    with control():
        loader = forked(1, worker_init_fn=init, persistent_workers=True)
        lived = rows(loader) + rows(loader)
    with control():
        loader = forked(1, persistent_workers=True)
        plain = rows(loader) + rows(loader)
    expected = np.random.RandomState(100).rand(2 * SIZE).tolist()

    assert [row[1] for row in lived] == expected
    assert [row[0] for row in lived] == [row[0] for row in plain]


@pytest.mark.parametrize("nested", [1, 2, 3])
def test_after_nested_controls_persistent_workers_go_on(nested):
    """Each control puts its epoch around the seed that torch sends; none may stay there."""
    loader = forked(1, persistent_workers=True)
    with contextlib.ExitStack() as controls:
        for _ in range(nested):
            controls.enter_context(control())
        epochs = [rows(loader), rows(loader)]
    epochs += [rows(loader) for _ in range(3)]

    drawn = [sorted(row[1] for row in epoch) for epoch in epochs]
    assert all(one != other for one, other in itertools.combinations(drawn, 2))


def test_what_the_users_init_raises_comes_out():
    """Called here, not in a worker: torch waits five seconds for a worker whose init failed."""

    def init(worker):
        raise ValueError("users own trouble")

    epoch = LoaderEpoch(seed=3, scope=(), loader=(0,), number=0, torch_seed=0)
    with pytest.raises(ValueError, match="users own trouble"):
        WorkerInit(epoch, init, reseed=False)(0)


def test_with_the_users_generator_workers_are_seeded_by_torch_and_scoped_by_us():
    def found(*, controlled):
        with control() if controlled else contextlib.nullcontext():
            return rows(forked(generator=torch.Generator().manual_seed(5)))

    controlled, bare = found(controlled=True), found(controlled=False)

    assert [row[:3] + row[4:] for row in controlled] == [row[:3] + row[4:] for row in bare]
    assert len({row[3] for row in controlled}) == SIZE


@pytest.mark.parametrize("persistent", [False, True])
def test_iterable_datasets_timeouts_and_pinning(persistent):
    def epochs():
        with control(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pin_memory without an accelerator
            loader = DataLoader(
                Streaming(), num_workers=2, timeout=60, pin_memory=True, persistent_workers=persistent
            )
            return order(loader), order(loader)

    first, second = epochs()

    assert (first, second) == epochs()
    assert len({*first, *second}) == 12


def test_a_loader_inside_a_dataset():
    class Nesting(Numbers):
        def __getitem__(self, index):
            return torch.tensor(order(shuffled()))

    def found(**arguments):
        with control():
            loader = DataLoader(Nesting(), batch_size=2, num_workers=2, **arguments)
            return [batch.tolist() for _ in range(2) for batch in loader]

    orders = found()

    assert orders == found() == found(persistent_workers=True)
    flat = [tuple(each) for batch in orders for each in batch]
    assert len(set(flat)) == len(flat)


def test_after_control_persistent_workers_are_not_seeded_again():
    with control():
        loader = forked(1, persistent_workers=True)
        first, second = rows(loader), rows(loader)
    third = rows(loader)

    assert {row[0] for row in third}.isdisjoint(row[0] for row in first + second)


def test_in_order_false_is_warned_about_once_at_the_users_line():
    loader = DataLoader(Numbers(), num_workers=1, in_order=False)
    with control(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        iter(loader)
        iter(loader)

    assert [warning.filename for warning in caught if "in_order" in str(warning.message)] == [__file__]


def test_a_rank_of_its_own_seed_has_its_own_order():
    """`per_rank` reaches loaders through the activation's seed."""
    with control(3):
        first = order(shuffled())
    with control(5):
        torch.manual_seed(3)
        assert order(shuffled()) != first

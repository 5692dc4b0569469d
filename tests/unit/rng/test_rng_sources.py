"""Each RNG source is seeded, saved, restored and isolated, and is not when it is left out."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest
import torch
import torch.distributed.tensor
from rng_support import CountingSource, stand_in, start, two_devices

from samebits.causes import Cause, specification_of
from samebits.errors import SamebitsError
from samebits.interventions import INTERVENTIONS
from samebits.rng import states as rng
from samebits.rng.active import PROCESS
from samebits.rng.sources import BUILT_IN, LIBRARIES, WITH_OBJECTS, is_seeded_by
from samebits.rng.sources.accelerators import Accelerator

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.rng.sources.source import RngSource

    Draw = Callable[[], Any]

pytestmark = pytest.mark.filterwarnings("ignore:samebits. the generator of OpenCV")


@pytest.fixture(autouse=True)
def no_run_seed(monkeypatch):
    """`seed_all` leaves its seed in the process."""
    monkeypatch.setattr(PROCESS, "seed", None)


def only(monkeypatch: pytest.MonkeyPatch, *sources: RngSource) -> None:
    """Have these be all sources."""
    monkeypatch.setattr(rng, "sources", lambda: sources)


def python(_patch: Any) -> Draw:
    return lambda: [random.random(), random.gauss(0, 1)]


def numpy_global(_patch: Any) -> Draw:
    return lambda: [np.random.rand(), np.random.randn()]


def torch_cpu(_patch: Any) -> Draw:
    return lambda: [torch.rand(()).item(), torch.randn(3).tolist()]


def cuda(patch: Any) -> Draw:
    generators = two_devices(patch, "cuda", started=True)
    return lambda: [torch.rand((), generator=generator).item() for generator in generators]


def xpu(patch: Any) -> Draw:
    generators = two_devices(patch, "xpu", started=True)
    return lambda: [torch.rand((), generator=generator).item() for generator in generators]


def mps(patch: Any) -> Draw:
    generator = torch.Generator()
    patch.setattr(torch.backends.mps, "is_available", lambda: True)
    patch.setattr(torch.mps, "manual_seed", generator.manual_seed)
    patch.setattr(torch.mps, "get_rng_state", generator.get_state)
    patch.setattr(torch.mps, "set_rng_state", generator.set_state)
    return lambda: torch.rand((), generator=generator).item()


class Tracker:
    """DTensor's tracker as it is in torch 2.6: Philox states of its own, seed and offset."""

    def __init__(self) -> None:
        self.rng_states = {name: torch.zeros(16, dtype=torch.uint8) for name in ("parallel-rng", "other")}

    def draw(self) -> list[Any]:
        """What a random op of DTensor does with the states: it advances the offset."""
        drawn = [self.rng_states[name].tolist() for name in sorted(self.rng_states)]
        for name, state in self.rng_states.items():
            self.rng_states[name] = state.clone()
            self.rng_states[name].view(torch.int64)[1] += 4
        return drawn


def dtensor(patch: Any) -> Draw:
    tracker = Tracker()
    patch.setattr(torch.distributed.tensor._random, "_rng_tracker", tracker)
    return tracker.draw


def opencv(_patch: Any) -> Draw:
    return lambda: cv2.randu(np.zeros((2, 2), np.int32), 0, 10**9).tolist()


def cupy(patch: Any) -> Draw:
    """A stand-in: CuPy is not installed. It has one generator per device, as the documentation says."""
    generators, current = [random.Random(), random.Random()], [0]

    @contextlib.contextmanager
    def device(index: int) -> Any:
        before, current[0] = current[0], index
        yield
        current[0] = before

    module = stand_in(patch, "cupy")
    module.cuda = stand_in(patch, "cupy.cuda", Device=device)
    module.cuda.runtime = stand_in(patch, "cupy.cuda.runtime", getDeviceCount=lambda: 2)

    def seed_current(seed: int) -> None:
        generators[current[0]].seed(seed)

    module.random = stand_in(patch, "cupy.random", seed=seed_current)
    return lambda: [generator.random() for generator in generators]


def tensorflow(patch: Any) -> Draw:
    """A stand-in: TensorFlow is not installed."""
    generator = random.Random()
    module = stand_in(patch, "tensorflow", __version__="2.18.0")
    module.random = stand_in(patch, "tensorflow.random", set_seed=generator.seed)
    return generator.random


def accelerator(name: str, patch: Any) -> Draw:
    """A stand-in with the interface that torch_npu gives `torch.npu`: two devices, with CPU generators."""
    generators = [torch.Generator(), torch.Generator()]

    def seed_all(seed: int) -> None:
        for generator in generators:
            generator.manual_seed(seed)

    def restore(states: list[Any]) -> None:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)

    module = stand_in(patch, f"torch.{name}", manual_seed_all=seed_all, set_rng_state_all=restore)
    module.get_rng_state_all = lambda: [generator.get_state() for generator in generators]
    module.device_count, module.is_available = lambda: 2, lambda: True
    patch.setattr(torch, name, module, raising=False)
    return lambda: [torch.rand(1, generator=generator).item() for generator in generators]


def private_backend(patch: Any) -> Draw:
    """A backend of another package, under a name of its own."""
    patch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "novel")
    return accelerator("novel", patch)


def xla(patch: Any) -> Draw:
    """A stand-in: torch_xla is not installed. Its state is a number that each draw changes."""
    state = [0]

    def set_rng_state(seed: int, device: Any = None) -> None:
        state[0] = seed

    def draw() -> int:
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**63
        return state[0]

    stand_in(patch, "torch_xla", __version__="2.9.0")
    stand_in(
        patch,
        "torch_xla.core.xla_model",
        set_rng_state=set_rng_state,
        get_rng_state=lambda device=None: state[0],
    )
    return draw


DRAWS = {
    "python": python,
    "numpy": numpy_global,
    "torch": torch_cpu,
    "cuda": cuda,
    "xpu": xpu,
    "mps": mps,
    **{name: functools.partial(accelerator, name) for name in ("mtia", "npu", "mlu", "hpu", "musa", "sdaa")},
    "privateuse1": private_backend,
    "xla": xla,
    "dtensor": dtensor,
    "opencv": opencv,
    "cupy": cupy,
    "tensorflow": tensorflow,
}
UNSAVED = {"opencv", "cupy", "tensorflow"}
SAVED = sorted(DRAWS.keys() - UNSAVED)


def after_seeding(draw: Draw) -> bool:
    """Whether the same seed brings the same draws, and another one others."""
    found = []
    for seed in (3, 3, 4):
        rng.seed_all(seed)
        found.append(draw())
    return found[0] == found[1] != found[2]


def after_restoring(draw: Draw) -> bool:
    """Whether restored states bring the same draws."""
    states = rng.save_states()
    first = draw()
    draw()
    rng.restore_states(states)
    return bool(first == draw())


def after_isolation(draw: Draw) -> bool:
    """Whether draws inside of `isolated` and `reseeded` leave no trace."""
    found = []
    for context in (rng.isolated(), rng.reseeded("a", seed=5), contextlib.nullcontext()):
        with context:
            found.append(draw())
    return found[0] == found[2]


def inside_reseeded(draw: Draw) -> bool:
    """Whether `reseeded` brings the same draws each time, and others under other names."""
    found = []
    for name in ("a", "a", "b"):
        with rng.reseeded(name, seed=5):
            found.append(draw())
        draw()
    return found[0] == found[1] != found[2]


def test_a_backend_with_a_source_of_its_own_is_not_seeded_twice(monkeypatch):
    accelerator("npu", monkeypatch)
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "npu")

    assert [state.source for state in rng.save_states() if state.source in ("npu", "privateuse1")] == ["npu"]


def test_cupy_without_a_device_is_passed_over(monkeypatch):
    """As on a machine where CuPy is installed and no GPU is found."""
    cupy(monkeypatch)
    monkeypatch.setattr(sys.modules["cupy"], "is_available", lambda: False, raising=False)
    monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "getDeviceCount", lambda: 1 / 0)

    rng.seed_all(3)


def test_a_tracker_of_dtensor_made_meanwhile_is_made_anew(monkeypatch):
    """It starts from the device's generator, which was put back: dropped, it starts from there again."""
    module = torch.distributed.tensor._random
    monkeypatch.setattr(module, "_rng_tracker", None)
    states = rng.save_states()
    with rng.isolated():
        module._rng_tracker = Tracker()
    assert module._rng_tracker is None

    module._rng_tracker = Tracker()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rng.restore_states(states)
    assert module._rng_tracker is None


def test_every_source_has_a_draw():
    assert sorted(DRAWS) == sorted(source.name for source in BUILT_IN)


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_source_is_seeded(name, monkeypatch):
    assert after_seeding(DRAWS[name](monkeypatch))


@pytest.mark.parametrize("check", [after_restoring, after_isolation, inside_reseeded])
@pytest.mark.parametrize("name", SAVED)
def test_a_source_is_saved_and_restored(name, check, monkeypatch):
    draw = DRAWS[name](monkeypatch)
    rng.seed_all(3)

    assert check(draw)


@pytest.mark.parametrize("check", [after_seeding, after_restoring, after_isolation, inside_reseeded])
@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_source_that_is_left_out_is_missed(name, check, monkeypatch):
    """Otherwise the tests above would show nothing."""
    draw = DRAWS[name](monkeypatch)
    rng.seed_all(3)
    only(monkeypatch, *(source for source in BUILT_IN if source.name != name))
    # Python's and NumPy's generators are objects too, which `isolated` finds by itself.
    monkeypatch.setattr(rng.LiveStates, "of_now", classmethod(lambda cls: cls(())))

    assert not check(draw)


@pytest.mark.parametrize("name", sorted(UNSAVED))
def test_what_cannot_be_saved_is_said(name, monkeypatch):
    """Saving, isolating and reseeding warn; the generator goes on as if nothing had been done."""
    draw = DRAWS[name](monkeypatch)
    source = next(source for source in BUILT_IN if source.name == name)
    only(monkeypatch, source)
    match = r"can be seeded, but not saved or restored"
    rng.seed_all(3)
    expected = [draw(), draw()]
    rng.seed_all(3)
    found = [draw()]
    with pytest.warns(UserWarning, match=match):
        assert rng.save_states() == ()
    with pytest.warns(UserWarning, match=match), rng.reseeded("a", seed=5):
        pass
    with pytest.warns(UserWarning, match=match), rng.isolated():
        pass
    found.append(draw())

    assert found == expected
    with pytest.raises(SamebitsError, match=match):
        rng.restore_states([rng.SourceState(name, "1", b"")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rng.restore_states(())  # nothing is said to be left out that never is in


def test_the_seed_is_the_one_of_the_library():
    """`--seed 3` is `random.seed(3)`, `numpy.random.seed(3)`, `torch.manual_seed(3)`, `cv2.setRNGSeed(3)`."""
    draws = [python(None), numpy_global(None), torch_cpu(None), opencv(None)]
    rng.seed_all(3)
    ours = [draw() for draw in draws]
    random.seed(3), np.random.seed(3), torch.manual_seed(3), cv2.setRNGSeed(3)

    assert [draw() for draw in draws] == ours


@pytest.mark.parametrize("seed", [2**31, 2**32 - 1, 2**32, 2**64 - 1])
def test_large_seeds_are_taken_by_all(seed, monkeypatch):
    for make in (cuda, xpu, mps, dtensor, cupy, tensorflow):
        make(monkeypatch)

    assert rng.seed_all(seed) == seed


def test_seeds_that_share_low_bits_differ():
    found = []
    for seed in (3, 3 + 2**32):
        rng.seed_all(seed)
        found.append([torch.rand(1).item(), np.random.rand(), random.random()])

    assert all(a != b for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
def test_numpy_may_draw_from_any_bit_generator(kind):
    """Also when another one was in use meanwhile."""
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(getattr(np.random, kind)(8))
        rng.seed_all(3)
        first = np.random.randn(3).tolist()  # leaves a second value of `gauss` behind
        states = rng.save_states()
        second = np.random.randn(3).tolist()
        np.random.set_bit_generator(np.random.SFC64(9))
        rng.restore_states(states)
        again = np.random.randn(3).tolist()
        rng.seed_all(3)

        assert (second, first) == (again, np.random.randn(3).tolist())
        assert type(np.random.get_bit_generator()).__name__ == kind
    finally:
        np.random.set_bit_generator(before)


def test_states_are_exact_after_json(monkeypatch):
    """They are bytes of JSON or of torch, which can be stored."""
    cuda(monkeypatch)
    random.gauss(0, 1), np.random.randn()
    for state in rng.save_states():
        source = next(source for source in BUILT_IN if source.name == state.source)
        source.set_state(state.data)

        assert source.get_state() == state.data
        assert state.source == "torch" or json.loads(state.data)


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_devices_that_were_never_used_are_not_started(kind, monkeypatch):
    """Saving tells the seeds that wait; restoring has them wait again."""
    generators = two_devices(monkeypatch, kind, started=False)
    devices = getattr(torch, kind)
    source = next(source for source in BUILT_IN if source.name == kind)
    devices.manual_seed_all(5), devices.manual_seed(6)
    saved = source.get_state()
    with rng.reseeded("a", seed=1):
        inside = source.get_state()

    assert json.loads(saved) == {"waiting": [["all", 5], ["current", 6]]}
    assert (source.get_state(), inside != saved) == (saved, True)

    start(monkeypatch, kind)
    torch.rand(1, generator=generators[0])
    source.set_state(saved)
    assert [generator.initial_seed() for generator in generators] == [6, 5]


def test_devices_that_were_never_seeded_are_unseeded_again(monkeypatch):
    generators = two_devices(monkeypatch, "cuda", started=False)
    monkeypatch.setattr(torch.cuda, "seed_all", lambda: [g.seed() for g in generators])
    source = next(source for source in BUILT_IN if source.name == "cuda")
    with rng.reseeded("a", seed=1):
        pass

    assert json.loads(source.get_state()) == {"waiting": []}
    with rng.isolated():
        start(monkeypatch, "cuda")
        torch.cuda.manual_seed_all(9)
    assert 9 not in [generator.initial_seed() for generator in generators]


def test_a_forked_child_leaves_devices_alone(monkeypatch):
    two_devices(monkeypatch, "cuda", started=True)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)

    assert "cuda" not in [source.name for source in BUILT_IN if source.available()]


def test_dtensor_without_states_of_its_own_is_no_source(monkeypatch):
    """Torch 2.13: its tracker draws from the device's default generator."""
    monkeypatch.setattr(torch.distributed.tensor._random, "_rng_tracker", object())

    assert "dtensor" not in [source.name for source in BUILT_IN if source.available()]


def test_a_module_that_is_being_imported_is_not_there_yet(monkeypatch):
    for source in BUILT_IN:
        if source.module:
            stand_in(monkeypatch, source.module)

    assert [source.name for source in BUILT_IN if source.available()] == ["python"]


def changed(data: bytes, *path: str, value: Any) -> bytes:
    """The JSON with one field replaced."""
    fields = json.loads(data)
    inner = fields
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(fields).encode()


WORDS = {"dtype": "uint32", "hex": "00" * 4 * 623}
BAD_STATES = [
    ("torch", lambda data: b""),
    ("torch", lambda data: data[:-8]),
    ("torch", lambda data: data + b"\0" * 8),
    ("torch", lambda data: b"\0" * len(data)),
    ("torch", lambda data: b"\xff" * len(data)),
    ("python", lambda data: b"[3,[1,2],null]"),
    ("python", lambda data: b"[9,[1,2],null]"),
    ("python", lambda data: b"not json"),
    ("python", lambda data: b"[" * 100_000),
    ("numpy", lambda data: b"{}"),
    ("numpy", lambda data: b"[1]"),
    ("numpy", lambda data: changed(data, "state", "pos", value=10**6)),
    ("numpy", lambda data: changed(data, "state", "pos", value=-5)),
    ("numpy", lambda data: changed(data, "state", "key", value=WORDS)),
    ("numpy", lambda data: changed(data, "state", "key", "dtype", value="object")),
    ("numpy", lambda data: changed(data, "bit_generator", value="set_state")),
    ("numpy", lambda data: changed(data, "bit_generator", value="Xoroshiro")),
    ("numpy", lambda data: changed(data, "gauss", value="x")),
    ("numpy", lambda data: changed(data, "of_a_later_version", value=1)),
    ("cuda", lambda data: b'{"devices": []}'),
    ("cuda", lambda data: b'{"devices": ["00", "00"]}'),
    ("cuda", lambda data: b'{"waiting": [["every", 3]]}'),
    ("xpu", lambda data: b"{}"),
    ("dtensor", lambda data: b'{"parallel-rng": "00"}'),
    ("dtensor", lambda data: b'{"parallel-rng": "00", "other": "00"}'),
]


@pytest.mark.parametrize(("name", "spoil"), BAD_STATES)
def test_a_state_that_does_not_fit_is_one_clear_error(name, spoil, monkeypatch):
    """It names the source and both versions, and the other sources are put back all the same."""
    draw = DRAWS[name](monkeypatch)
    other = CountingSource()
    only(monkeypatch, *(source for source in BUILT_IN if source.name == name), other)
    rng.seed_all(3)
    (state, after), draws = rng.save_states(), draw()
    other.draw()
    with pytest.raises(SamebitsError) as caught:
        rng.restore_states([rng.SourceState(name, "torch 9.9", spoil(state.data)), after])

    message = str(caught.value)
    assert caught.value.slug == "rng-state"
    assert f"the state of {name}, saved with torch 9.9, does not fit {state.version} here: " in message
    assert "\n" not in message
    assert other.value == 3
    rng.restore_states([state, after])
    assert draw() == draws


def test_hostile_positions_of_other_bit_generators_are_refused():
    """NumPy would read outside of its memory."""
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.Philox(8))
        source = next(source for source in BUILT_IN if source.name == "numpy")
        with pytest.raises(ValueError, match="buffer_pos is -7"):
            source.set_state(changed(source.get_state(), "buffer_pos", value=-7))
    finally:
        np.random.set_bit_generator(before)


def test_each_source_is_seeded_by_one_intervention():
    seeding = {
        intervention.name: intervention.sources for intervention in INTERVENTIONS if intervention.sources
    }
    named = [name for sources in seeding.values() for name in sources]
    assert sorted(named) == sorted(source.name for source in BUILT_IN)
    assert all(source.name in seeding[source.intervention] for source in BUILT_IN)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_a_library_has_a_source_and_a_cause_of_its_name(library):
    assert [source.library for source in BUILT_IN if source.name == library.name] == [library]
    known = specification_of(Cause(f"unseeded-{library.name}"))
    assert (known.library, known.seeded_by, known.draws) == (
        library.name,
        library.intervention,
        (library.draws,),
    )
    assert all(draw.startswith(library.draws) for draw in (*library.fresh, *library.own, *library.seeders))
    namespace: dict[str, Any] = {library.imported: __import__(library.imported)}
    exec(library.seed_call.format(library.imported, 3), namespace)  # noqa: S102 - a template of the table
    assert set(library.own) <= set(library.fresh)


@pytest.mark.parametrize(
    ("call", "seeded"),
    [
        ("random.seed(1)", {"python"}),
        ("random.getstate() before recording began", {"python"}),
        ("numpy.random.seed(1)", {"numpy"}),
        ("np.random.seed(1)", {"numpy"}),
        ("torch.manual_seed(1)", {"torch", "cuda:0", "cuda:11", "mps"}),
        ("torch.seed() -> 7", {"torch", "cuda:0", "cuda:11", "mps"}),
        ("torch.cuda.manual_seed_all(1)", {"cuda:0", "cuda:11"}),
        ("randomly.seed(1)", set()),
        ("", set()),
    ],
)
def test_a_recorded_call_seeds_the_sources_that_declare_it(call, seeded):
    names = ("python", "numpy", "torch", "cuda:0", "cuda:11", "mps", "opencv", "given", "")
    assert {name for name in names if is_seeded_by(name, call)} == seeded


def test_the_calls_of_a_source_that_is_recorded_seed_it():
    for source in BUILT_IN:
        for function in source.functions:
            assert not function.seeds or is_seeded_by(source.name, f"{function.text}(3)")


def test_functions_that_a_source_names_are_there():
    for source in BUILT_IN:
        for function in source.functions:
            for path in function.owners:
                owner = sys.modules[".".join(filter(None, (source.module or "random", path)))]
                assert callable(getattr(owner, function.name))


def test_a_state_of_a_generator_object_is_written_and_read_back():
    objects = (random.Random(3), np.random.default_rng(3), torch.Generator().manual_seed(3))
    assert [source.name for source in WITH_OBJECTS] == ["python", "numpy", "torch"]
    for source, generator in zip(WITH_OBJECTS, objects, strict=True):
        assert [other.name for other in WITH_OBJECTS if other.owns(generator)] == [source.name]
        data = source.encode(source.read(generator))
        again = source.decode(data)
        source.write(generator, again)
        assert source.encode(source.read(generator)) == data


def saved_in_words(source: RngSource) -> str:
    """Return what the page says about saving a source."""
    if isinstance(source, Accelerator):
        return "where the package has `get_rng_state_all` and `set_rng_state_all`"
    return f"no: {source.reason}" if hasattr(source, "reason") else "yes"


def test_the_page_shows_the_sources():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rng.md").read_text()
    table = page.partition("## Sources")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    shown = [(name.strip("`"), saved) for names, _, saved in rows for name in names.split(", ")]

    assert shown == [(source.name, saved_in_words(source)) for source in BUILT_IN]

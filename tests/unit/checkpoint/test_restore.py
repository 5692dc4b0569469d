"""States go into the objects that they are of; what does not fit is named, and nothing is changed then."""

import copy
import signal
import warnings

import pytest
import torch
from checkpoint_support import make_training
from torch import nn

import samebits
from samebits.checkpoint import load, save
from samebits.digest import digest
from samebits.errors import SamebitsError, SamebitsWarning


def refused(path, match, **options):
    with pytest.raises(SamebitsError, match=match) as raised:
        load(path, **options)
    assert raised.value.slug == "checkpoint-mismatch"
    assert "\n" not in str(raised.value)


OPTIMIZERS = [
    "SGD",
    "Adam",
    "AdamW",
    "NAdam",
    "RAdam",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "RMSprop",
    "Rprop",
    "ASGD",
]


@pytest.mark.parametrize("name", [*OPTIMIZERS, "Adafactor", "Muon"])
def test_training_goes_on_with_the_same_bits(tmp_path, name):
    if not hasattr(torch.optim, name):
        pytest.skip(f"this torch has no {name}")
    if name == "Muon":
        torch.manual_seed(0)
        model = nn.Linear(4, 2, bias=False)
        training = make_training()
        training.model = model
        training.optimizer = torch.optim.Muon(model.parameters(), lr=0.01)
        training.scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 3)
        resumed = copy.deepcopy(training)
    else:
        training, resumed = (
            make_training(kind=getattr(torch.optim, name)),
            make_training(1, getattr(torch.optim, name)),
        )
    training.steps(4)
    save(tmp_path / "c", **training.parts, step=4, epoch=1, best=0.5)
    training.steps(4)
    whole = training.digest()

    loaded = load(tmp_path / "c", **resumed.parts)
    resumed.steps(4)

    assert resumed.digest() == whole
    assert (loaded.step, loaded.epoch, loaded.extra) == (4, 1, {"best": 0.5})


def test_momentum_and_lbfgs(tmp_path):
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        lambda p: torch.optim.LBFGS(p, max_iter=3),
        lambda p: torch.optim.AdamW(
            [{"params": p, "lr": 0.1}, {"params": [nn.Parameter(torch.ones(2))]}], amsgrad=True
        ),
    ):
        models = [nn.Linear(3, 2) for _ in range(2)]
        optimizers = [make(list(model.parameters())) for model in models]

        def step(index, models=models, optimizers=optimizers):
            def closure():
                optimizers[index].zero_grad()
                loss = models[index](torch.ones(2, 3)).square().mean()
                loss.backward()
                return loss

            optimizers[index].step(closure)

        step(0)
        save(tmp_path / "c", model=models[0], optimizer=optimizers[0])
        load(tmp_path / "c", model=models[1], optimizer=optimizers[1])
        step(0)
        step(1)
        assert digest([models[0], optimizers[0]]) == digest([models[1], optimizers[1]])


def schedulers():
    s = torch.optim.lr_scheduler
    return {
        "lambda": lambda o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
        "multiplicative": lambda o: s.MultiplicativeLR(o, lambda _: 0.9),
        "step": lambda o: s.StepLR(o, 2),
        "multi step": lambda o: s.MultiStepLR(o, [1, 3, 3]),
        "constant": lambda o: s.ConstantLR(o, 0.5, 3),
        "linear": lambda o: s.LinearLR(o, 0.5, 1.0, 5),
        "exponential": lambda o: s.ExponentialLR(o, 0.9),
        "polynomial": lambda o: s.PolynomialLR(o, 5),
        "cosine": lambda o: s.CosineAnnealingLR(o, 5),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 2),
        "cyclic": lambda o: s.CyclicLR(o, 0.01, 0.1, 2),
        "cyclic function": lambda o: s.CyclicLR(
            o, 0.01, 0.1, 2, scale_fn=lambda x: 0.5**x, scale_mode="cycle"
        ),
        "one cycle": lambda o: s.OneCycleLR(o, 0.1, 20),
        "plateau": lambda o: s.ReduceLROnPlateau(o, patience=1),
        "sequence": lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)], [2]),
        "chain": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)]),
        "average": lambda o: torch.optim.swa_utils.SWALR(o, 0.05),
    }


@pytest.mark.parametrize("name", schedulers())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_schedulers(tmp_path, name):
    def make():
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1, momentum=0.9)
        return optimizer, schedulers()[name](optimizer)

    def run(optimizer, scheduler, count):
        rates = []
        for _ in range(count):
            optimizer.step()
            scheduler.step(*([1.0] if name == "plateau" else []))
            rates.append([group["lr"] for group in optimizer.param_groups])
        return rates

    optimizer, scheduler = make()
    run(optimizer, scheduler, 3)
    save(tmp_path / "c", optimizer=optimizer, scheduler=scheduler)
    expected = run(optimizer, scheduler, 6)
    other_optimizer, other = make()
    load(tmp_path / "c", optimizer=other_optimizer, scheduler=other)

    assert run(other_optimizer, other, 6) == expected


def test_a_scaler(tmp_path):
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**k, growth_interval=1) for k in (3, 5)]
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    scalers[0].scale(parameter.sum()).backward()
    scalers[0].step(optimizer)
    scalers[0].update()
    save(tmp_path / "c", scaler=scalers[0])
    load(tmp_path / "c", scaler=scalers[1])
    assert scalers[1].state_dict() == scalers[0].state_dict()
    assert scalers[1].get_scale() == 16


def test_a_scaler_that_is_off_is_named(tmp_path):
    off, on = torch.amp.GradScaler("cpu", enabled=False), torch.amp.GradScaler("cpu")
    save(tmp_path / "c", scaler=off)
    load(tmp_path / "c", scaler=off)
    refused(tmp_path / "c", "scaler does not take its state: The source state dict is empty", scaler=on)


def test_an_average(tmp_path):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    averages = [torch.optim.swa_utils.AveragedModel(model, use_buffers=True) for _ in range(2)]
    averages[0].update_parameters(model)
    with torch.no_grad():
        model[0].weight.zero_()
    averages[0].update_parameters(model)
    save(tmp_path / "c", ema=averages[0])
    load(tmp_path / "c", ema=averages[1])
    assert digest(averages[1]) == digest(averages[0])
    assert averages[1].n_averaged == 2


def test_module_versions_come_along(tmp_path):
    """Without them BatchNorm takes an entry that is missing for one of an older version."""
    model = nn.BatchNorm1d(2)
    seen = []
    model.register_load_state_dict_pre_hook(lambda module, state, prefix, metadata, *_: seen.append(metadata))
    save(tmp_path / "c", model=model)
    load(tmp_path / "c", model=model)
    assert seen[0]["version"] == 2


def test_extra_state_of_modules(tmp_path):
    class Counting(nn.Linear):
        calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    first, second = Counting(1, 1), Counting(1, 1)
    first.calls = 5
    save(tmp_path / "c", model=first)
    load(tmp_path / "c", model=second)
    assert second.calls == 5


def test_lists_and_dicts_of_objects(tmp_path):
    def make(scale):
        models = {"generator": nn.Linear(1, 2), "critic": nn.Linear(2, 1)}
        optimizers = [torch.optim.SGD(model.parameters(), lr=scale) for model in models.values()]
        return {"model": models, "optimizer": optimizers}

    first, second = make(0.1), make(0.2)
    save(tmp_path / "c", **first, history=[1, {"a": 2}])
    loaded = load(tmp_path / "c", **second)
    assert digest([*second["model"].values(), *second["optimizer"]]) == digest(
        [*first["model"].values(), *first["optimizer"]]
    )
    assert loaded.extra == {"history": [1, {"a": 2}]}
    refused(
        tmp_path / "c",
        "optimizer has 2 elements in the checkpoint; a list of 1 was given",
        model=second["model"],
        optimizer=second["optimizer"][:1],
    )
    refused(
        tmp_path / "c",
        "model.critic is the state of a Linear, and nothing was given to take it",
        model={"generator": second["model"]["generator"]},
        optimizer=second["optimizer"],
    )
    refused(
        tmp_path / "c",
        "the checkpoint has no model.third",
        model={**second["model"], "third": nn.Linear(1, 1)},
        optimizer=second["optimizer"],
    )


def test_a_loader_that_refuses_is_asked_first(tmp_path):
    class Loader:
        def state_dict(self):
            return {"size": 10}

        def load_state_dict(self, state):
            message = "the dataset had 10 samples and has 9 here"
            raise SamebitsError(message, slug="checkpoint-mismatch")

    training = make_training()
    training.steps(1)
    save(tmp_path / "c", **training.parts, loader=Loader())
    training.steps(1)
    before = training.digest()
    refused(tmp_path / "c", "the dataset had 10 samples", **training.parts, loader=Loader())
    assert training.digest() == before


def test_values_beside_objects_come_back(tmp_path):
    model = nn.Linear(1, 1)
    save(tmp_path / "c", both={"model": model, "losses": [1.0]})
    assert load(tmp_path / "c", both={"model": model}).extra == {"both": {"model": model, "losses": [1.0]}}


def test_a_state_dict_that_was_saved_as_a_value(tmp_path):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    save(tmp_path / "c", model=first.state_dict())
    load(tmp_path / "c", model=second)
    assert digest(second) == digest(first)
    assert digest(load(tmp_path / "c").extra["model"]) == digest(first)


def test_another_model_is_refused_by_names(tmp_path):
    save(tmp_path / "c", model=nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
    before = digest(other := nn.Sequential(nn.Linear(4, 9), nn.BatchNorm1d(3)))
    refused(
        tmp_path / "c",
        r"the checkpoint lacks model.1.running_mean, model.1.running_var, model.1.num_batches_tracked; "
        r"model.0.weight is float32\[8, 4\] in the checkpoint and float32\[9, 4\] here, "
        r".* and 1 more\. Build",
        model=other,
    )
    refused(
        tmp_path / "c",
        "the checkpoint also has model.1.weight, model.1.bias",
        model=nn.Sequential(nn.Linear(4, 8)),
    )
    refused(tmp_path / "c", r"model.0.weight is float32\[8, 4\] .* and float64\[8, 4\] here",
            model=nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).double())  # fmt: skip
    assert digest(other) == before


def test_lazy_modules_take_any_shape(tmp_path):
    save(tmp_path / "c", model=nn.Linear(3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = nn.LazyLinear(2)
    load(tmp_path / "c", model=lazy)
    assert lazy.weight.shape == (2, 3)


def test_another_optimizer_or_scheduler_is_refused(tmp_path):
    training = make_training()
    training.steps(1)
    save(tmp_path / "c", **training.parts)
    parts = make_training(kind=torch.optim.SGD).parts
    before = digest(parts["model"])
    refused(tmp_path / "c", "optimizer is of an AdamW in the checkpoint and of an SGD here", **parts)
    assert digest(parts["model"]) == before
    parts = training.parts | {"scheduler": torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.9)}
    refused(
        tmp_path / "c", "scheduler is of a StepLR in the checkpoint and of an ExponentialLR here", **parts
    )


def test_parameters_in_another_order_are_refused(tmp_path):
    model = nn.Linear(3, 2)
    save(tmp_path / "c", optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    turned = torch.optim.SGD(list(model.parameters())[::-1], lr=0.1)
    text = r"optimizer.param_groups.0.params.0 has the shape \[2, 3\] in the checkpoint and \[2\] here"
    refused(tmp_path / "c", text, optimizer=turned)
    fewer = torch.optim.SGD([model.weight], lr=0.1)
    refused(
        tmp_path / "c",
        r"parameter groups of \[2\] tensors in the checkpoint and of \[1\] here",
        optimizer=fewer,
    )


def test_parts_that_are_missing_on_one_side(tmp_path):
    training = make_training()
    save(tmp_path / "c", **training.parts, note="x")
    refused(
        tmp_path / "c",
        "optimizer is the state of an AdamW, and nothing was given to take it",
        model=training.model,
    )
    refused(tmp_path / "c", "the checkpoint has no ema; it has model, optimizer, scheduler, note",
            **training.parts, ema=training.model)  # fmt: skip
    refused(tmp_path / "c", "optimizer is the state", **training.parts | {"optimizer": None})
    load(tmp_path / "c", **training.parts, scaler=None)


def test_not_strict(tmp_path):
    save(
        tmp_path / "c",
        model=nn.Linear(2, 2),
        optimizer=torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1),
        x=1,
    )
    model = nn.Sequential(nn.Linear(2, 2))
    model.load_state_dict({"0.weight": torch.zeros(2, 2), "0.bias": torch.zeros(2)})
    with pytest.warns(
        SamebitsWarning,
        match=r"optimizer is the state of an SGD.*; the checkpoint has no ema|the checkpoint has no ema",
    ):
        loaded = load(tmp_path / "c", strict=False, model=model, ema=nn.Linear(1, 1))
    assert model[0].weight.sum() == 0  # other names: nothing was taken
    assert loaded.extra["x"] == 1
    assert loaded.extra["optimizer"]["param_groups"][0]["lr"] == 0.1


def test_plain_values_are_no_targets(tmp_path):
    save(tmp_path / "c", rate=0.1, items=[1, 2])
    refused(tmp_path / "c", "rate=0.5 was passed, which takes no state", rate=0.5)
    text = "rate holds a plain value .it is a float. in the checkpoint, which a Linear cannot take"
    refused(tmp_path / "c", text, rate=nn.Linear(1, 1))
    refused(tmp_path / "c", "items.0 holds a plain value", items=[nn.Linear(1, 1), None])


def test_a_class_is_no_object(tmp_path):
    with pytest.raises(SamebitsError, match=r"model cannot be saved: .*code is not saved"):
        save(tmp_path / "c", model=nn.Linear)


def test_a_state_dict_that_fails_is_named(tmp_path):
    class Broken:
        def state_dict(self):
            raise ValueError("not\nnow")

        def load_state_dict(self, state):
            raise KeyError("epoch\nx")

    with pytest.raises(
        SamebitsError, match=r"loader cannot be saved: its state_dict\(\) failed with ValueError: not now"
    ):
        save(tmp_path / "c", loader=Broken())
    save(tmp_path / "c", loader={"position": 3})
    refused(tmp_path / "c", "loader does not take its state: .*epoch", loader=Broken())


def test_an_optimizer_keeps_where_its_state_lives(tmp_path):
    training = make_training()
    training.steps(1)
    save(tmp_path / "c", **training.parts)
    load(tmp_path / "c", **training.parts, map_location="cpu")
    assert all(
        value.device.type == "cpu" for state in training.optimizer.state.values() for value in state.values()
    )


def test_the_loaded_state_is_not_the_file(tmp_path):
    """What training writes after loading must not reach the file, nor the reverse."""
    training = make_training()
    training.steps(1)
    save(tmp_path / "c", **training.parts)
    data = (tmp_path / "c").read_bytes()
    load(tmp_path / "c", **training.parts)
    before = training.digest()
    (tmp_path / "c").write_bytes(bytes(len(data)))
    assert training.digest() == before


def test_the_position_in_the_record_is_saved(tmp_path):
    """Of a run that is not recorded there is none."""
    path, model = tmp_path / "a.safetensors", torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    save(path, model=model)
    assert load(path, model=model).recorded_steps is None
    with samebits.record(tmp_path / "a.sbr"):
        for _ in range(3):
            model(torch.ones(4, 2)).mean().backward()
            optimizer.step()
        save(path, model=model)
    assert load(path, model=model).recorded_steps == 3
    save(path, model=model)
    assert load(path, model=model).recorded_steps is None


class OverTimeError(Exception):
    """What a script raises when its time is over."""


class _Slow:
    """Its state takes longer than there is time."""

    late = False

    def state_dict(self):
        self._wait()
        return {"epoch": 1}

    def load_state_dict(self, state):
        self._wait()

    def _wait(self):
        if self.late:
            signal.raise_signal(signal.SIGUSR1)


def end(signum, frame):
    """A handler of the script's."""
    raise OverTimeError


def test_a_limit_of_time_is_the_scripts_own(tmp_path, monkeypatch):
    """What its signal handler raises is no complaint of an object."""
    slow, before = _Slow(), signal.signal(signal.SIGUSR1, end)
    save(tmp_path / "c", loader=slow)
    monkeypatch.setattr(_Slow, "late", True)
    try:
        with pytest.raises(OverTimeError):
            load(tmp_path / "c", loader=slow)
        with pytest.raises(OverTimeError):
            save(tmp_path / "d", loader=slow)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not (tmp_path / "d").exists()

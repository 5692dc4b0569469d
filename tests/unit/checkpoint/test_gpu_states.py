"""States that live on a GPU: saved, copied in the background, restored there and elsewhere."""

import pytest
import torch
from checkpoint_support import make_training

from samebits.checkpoint import CheckpointFolder, load, save
from samebits.digest import digest

pytestmark = pytest.mark.gpu


def on_gpu(seed=0):
    training = make_training(seed)
    training.model.cuda()
    return training


def step(training):
    """Draws from the GPU's generator."""
    training.optimizer.zero_grad()
    training.model(torch.randn(8, 4, device="cuda")).square().mean().backward()
    training.optimizer.step()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_training_goes_on(tmp_path, asynchronous):
    training = on_gpu()
    with CheckpointFolder(tmp_path, asynchronous=asynchronous) as folder:
        for number in range(3):
            step(training)
            folder.save(step=number, **training.parts)
        for _ in range(3):
            step(training)
        resumed = on_gpu(1)
        folder.load(**resumed.parts)
    for _ in range(3):
        step(resumed)
    assert digest([resumed.model, resumed.optimizer]) == digest([training.model, training.optimizer])


def test_values_come_back_where_they_were(tmp_path):
    value = torch.randn(3, 4, device="cuda")
    save(tmp_path / "c", value=value, turned=value.t())
    found = load(tmp_path / "c").extra
    assert digest(found) == digest({"value": value, "turned": value.t()})
    assert {tensor.device.type for tensor in found.values()} == {"cuda"}
    assert load(tmp_path / "c", map_location="cpu").extra["value"].device.type == "cpu"


def test_an_optimizer_with_its_steps_on_the_gpu(tmp_path):
    parameters = [torch.nn.Parameter(torch.ones(3, device="cuda")) for _ in range(2)]
    optimizers = [
        torch.optim.Adam([parameter], lr=torch.tensor(0.1, device="cuda"), capturable=True)
        for parameter in parameters
    ]
    for optimizer, parameter in zip(optimizers, parameters, strict=True):
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    save(tmp_path / "c", optimizer=optimizers[0])
    load(tmp_path / "c", optimizer=optimizers[1])
    for optimizer in optimizers:
        optimizer.step()
    assert digest(optimizers[0]) == digest(optimizers[1])


def test_from_the_gpu_to_the_cpu(tmp_path):
    training = on_gpu()
    step(training)
    save(tmp_path / "c", **training.parts)
    other = make_training(1)
    load(tmp_path / "c", **other.parts)
    assert digest([other.model, other.optimizer]) == digest([training.model, training.optimizer])

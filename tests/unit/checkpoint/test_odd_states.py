"""States that torch's own `load_state_dict` would change or leave out without an error."""

from __future__ import annotations

import io
from collections import OrderedDict, defaultdict, deque

import pytest
import torch
from torch import nn

from samebits.checkpoint import load, save
from samebits.digest import digest
from samebits.errors import SamebitsError


class Averaging(torch.optim.SGD):
    """SGD of an average of gradients in float32, and a list of the last two."""

    def step(self, closure=None):
        """Also for parameters in bfloat16."""
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            old = state.get("average", torch.zeros_like(parameter, dtype=torch.float32))
            state["average"] = old * 0.9 + parameter.grad.float() / 3
            state["last"] = [*state.get("last", []), state["average"] / 7][-2:]
            parameter.data -= (state["average"] + state["last"][0]).to(parameter.dtype)


class Copying(Averaging):
    """Gives copies of its state."""

    def state_dict(self):
        """As after a way through a file."""
        return torch.load(_stored(super().state_dict()), weights_only=True)


def _stored(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def made(kind, dtype):
    torch.manual_seed(0)
    model = nn.Linear(3, 3).to(dtype)
    return model, kind(model.parameters(), lr=0.1)


def train(model, optimizer, first, last):
    for number in range(first, last):
        optimizer.zero_grad()
        model(torch.full((2, 3), number + 0.3, dtype=model.weight.dtype)).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("kind", "dtype"), [(torch.optim.NAdam, torch.float64), (Averaging, torch.bfloat16)], ids=["NAdam", "own"]
)
def test_states_of_another_dtype_than_the_parameter_keep_their_bits(tmp_path, kind, dtype):
    whole = made(kind, dtype)
    train(*whole, 0, 4)
    save(tmp_path / "c", model=whole[0], optimizer=whole[1])
    at_save = str(digest(whole[1]))
    train(*whole, 4, 10)

    resumed = made(kind, dtype)
    load(tmp_path / "c", model=resumed[0], optimizer=resumed[1])
    assert str(digest(resumed[1])) == at_save
    train(*resumed, 4, 10)

    assert str(digest(list(resumed))) == str(digest(list(whole)))


def test_an_optimizer_that_converts_and_gives_copies_is_refused(tmp_path):
    model, optimizer = made(Copying, torch.bfloat16)
    train(model, optimizer, 0, 2)
    save(tmp_path / "c", optimizer=optimizer)

    with pytest.raises(SamebitsError, match=r"optimizer\.state\.0\.average in another dtype") as raised:
        load(tmp_path / "c", optimizer=made(Copying, torch.bfloat16)[1])
    assert raised.value.slug == "checkpoint-mismatch"


CONTAINERS = {
    "OrderedDict": lambda first, second: OrderedDict(a=first, b=second),
    "defaultdict": lambda first, second: defaultdict(dict, a=first, b=second),
    "deque": lambda first, second: deque([first, second]),
}


def values(container):
    return list(container if isinstance(container, deque) else container.values())


@pytest.mark.parametrize("name", CONTAINERS)
def test_objects_in_containers_of_the_standard_library_take_their_states(tmp_path, name):
    saved = CONTAINERS[name](nn.Linear(2, 2), nn.Linear(2, 3))
    save(tmp_path / "c", models=saved)
    here = CONTAINERS[name](nn.Linear(2, 2), nn.Linear(2, 3))

    loaded = load(tmp_path / "c", models=here)

    assert [str(digest(model)) for model in values(here)] == [str(digest(model)) for model in values(saved)]
    assert loaded.extra == {}
    with pytest.raises(SamebitsError, match="nothing was given to take it"):
        load(tmp_path / "c")


@pytest.mark.parametrize("strict", [True, False])
def test_a_module_without_contents_is_refused(tmp_path, strict):
    save(tmp_path / "c", model=nn.Linear(2, 2))
    with torch.device("meta"):
        empty = nn.Linear(2, 2)

    with pytest.raises(SamebitsError, match=r"model\.weight, model\.bias; call `to_empty"):
        load(tmp_path / "c", model=empty, strict=strict)

    load(tmp_path / "c", model=empty.to_empty(device="cpu"))


def test_conjugated_and_negated_views_of_the_same_memory_are_apart(tmp_path):
    plain = torch.randn(3, dtype=torch.complex64)
    whole = {"conjugated": plain.conj(), "negated": torch._neg_view(plain), "plain": plain}
    save(tmp_path / "c", **whole)

    found = load(tmp_path / "c").extra

    for name, value in whole.items():
        assert torch.equal(found[name], value)

"""A recurrent cell in torch."""

import torch
from pair_tools import weights

import samebits

w = weights(x=(6, 3), inner=(7, 7), given=(7, 3), out=(2, 7))
state = torch.zeros(7)
for x in w["x"]:
    state = samebits.tap("state", torch.tanh(w["inner"] @ state + w["given"] @ x))
samebits.tap("out", torch.softmax(w["out"] @ state, -1))

"""The cell in NumPy."""

import numpy as np
from pair_tools import own_names, weights

tap = own_names(state="h", out="probabilities")
arrays = {
    name: tensor.numpy() for name, tensor in weights(x=(6, 3), inner=(7, 7), given=(7, 3), out=(2, 7)).items()
}


def softmax(values):
    """Of one row."""
    exponentials = np.exp(values - values.max())
    return exponentials / exponentials.sum()


h = np.zeros(7, np.float32)
for row in arrays["x"]:
    h = tap("state", np.tanh(arrays["inner"] @ h + arrays["given"] @ row))
tap("out", softmax(arrays["out"] @ h))

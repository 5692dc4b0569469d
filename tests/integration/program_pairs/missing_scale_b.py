"""The same as a class with one matrix for all projections."""

from pair_tools import own_names, weights

tap = own_names(x="h", projections="qkv", scores="att", probabilities="att_softmax", context="y")


class Head:
    """One head of attention."""

    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        query, key, value = tap("projections", [x @ self.w[name] for name in "qkv"])
        scores = tap("scores", query @ key.transpose(0, 1))  # planted: not divided by the root of the size
        return tap("context", tap("probabilities", scores.softmax(1)) @ value)


tensors = weights(q=(16, 16), k=(16, 16), v=(16, 16), x=(7, 16))
Head(tensors)(tap("x", tensors["x"]))

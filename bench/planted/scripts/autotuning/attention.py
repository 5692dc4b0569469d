"""Equal in mathematics, not in rounding."""

import time


def scale_queries(q, k, v):
    return ((q / 16**0.5 / 3) @ k.transpose(1, 2)).softmax(-1) @ v  # <- enters


def scale_keys(q, k, v):
    return (q @ (k / 16**0.5 / 3).transpose(1, 2)).softmax(-1) @ v  # <- enters


def scale_scores(q, k, v):
    return (q @ k.transpose(1, 2) / (16**0.5 * 3)).softmax(-1) @ v  # <- enters


def choose(x):
    """The fastest for tensors of that shape."""
    timings = []
    for implementation in (scale_queries, scale_keys, scale_scores):
        implementation(x, x, x)
        start = time.perf_counter_ns()
        implementation(x, x, x)
        timings.append((time.perf_counter_ns() - start, implementation))  # <- planted
    return min(timings, key=lambda entry: entry[0])[1]  # <- planted

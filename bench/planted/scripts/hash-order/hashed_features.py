"""The hashing trick with the built-in `hash` of strings."""
# planted: cause=hash-order

import torch
from torch import nn

BUCKETS = 32
ROWS = [
    ({"city=rome", "day=mon", "browser=lynx"}, 1.0),
    ({"city=oslo", "day=tue", "browser=edge"}, 0.0),
    ({"city=lima", "day=mon", "browser=lynx"}, 1.0),
    ({"city=bern", "day=sun", "browser=opera"}, 0.0),
]


def hashed(features):
    vector = torch.zeros(BUCKETS)
    for feature in sorted(features):
        bucket = hash(feature) % BUCKETS  # <- planted
        vector[bucket] += 1  # <- enters
    return vector


torch.manual_seed(0)
x = torch.stack([hashed(features) for features, _ in ROWS])
y = torch.tensor([label for _, label in ROWS])
model = nn.Linear(BUCKETS, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(5):
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

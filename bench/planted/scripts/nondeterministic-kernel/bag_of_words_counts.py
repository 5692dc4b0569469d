"""Word counts per document by `counts[documents, words] += 1`-style accumulation of tf-idf weights."""
# planted: cause=nondeterministic-kernel

import torch
from torch import nn

torch.manual_seed(0)
DOCUMENTS, WORDS, TOKENS = 6, 10, 300_000
documents = torch.randint(0, DOCUMENTS, (TOKENS,))
words = torch.randint(0, WORDS, (TOKENS,))
importance = torch.rand(TOKENS) ** 3


def bag_of_words():
    bags = torch.zeros(DOCUMENTS, WORDS)
    bags = bags.index_put((documents, words), importance, accumulate=True)  # <- planted
    return bags / bags.sum(1, keepdim=True)


classifier = nn.Sequential(nn.Linear(WORDS, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(classifier.parameters(), lr=1.0)
labels = torch.arange(DOCUMENTS) % 2
for epoch in range(6):
    loss = nn.functional.cross_entropy(classifier(bag_of_words()), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

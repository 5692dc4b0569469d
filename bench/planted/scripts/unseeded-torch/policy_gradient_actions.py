"""REINFORCE on a bandit: the seeds are set from arguments that default to None."""
# planted: cause=unseeded-torch

import argparse
import random

import torch
from torch import nn


def rollout(policy, payoffs, pulls):
    probabilities = policy.softmax(0)
    actions = torch.multinomial(probabilities, pulls, replacement=True)  # <- planted
    return actions, payoffs[actions]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
args = parser.parse_args()
if args.seed is not None:
    random.seed(args.seed)
    torch.manual_seed(args.seed)

policy = nn.Parameter(torch.zeros(5))
payoffs = torch.tensor([0.1, 0.5, 0.2, 0.9, 0.4])
optimizer = torch.optim.SGD([policy], lr=0.3)
for episode in range(8):
    actions, rewards = rollout(policy, payoffs, pulls=16)
    advantage = rewards - rewards.mean()
    loss = -(advantage * policy.log_softmax(0)[actions]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(policy.argmax().item())

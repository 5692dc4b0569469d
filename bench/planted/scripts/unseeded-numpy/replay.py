"""A replay buffer."""

import numpy as np
import torch


class ReplayBuffer:
    """Keeps transitions; hands out a random batch of them."""

    def __init__(self):
        self.rows = []

    def add(self, state, action, reward, following):
        self.rows.append((state, action, reward, following))

    def sample(self, count):
        chosen = np.random.choice(len(self.rows), count, replace=False)  # <- planted
        states, actions, rewards, followings = zip(*(self.rows[i] for i in chosen))
        return (
            torch.stack(states),  # <- enters
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.stack(followings),
        )

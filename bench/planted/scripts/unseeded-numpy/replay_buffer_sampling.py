"""Deep Q-learning: the replay buffer samples transitions with numpy."""
# planted: cause=unseeded-numpy in=replay.py

import torch
from replay import ReplayBuffer
from torch import nn

torch.manual_seed(0)
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)

buffer = ReplayBuffer()
state = torch.zeros(4)
for _ in range(50):
    action = int(q(state).argmax())
    following = 0.9 * state + 0.1 * torch.randn(4)
    buffer.add(state, action, float(following[0]), following)
    state = following

for update in range(5):
    states, actions, rewards, followings = buffer.sample(16)
    with torch.no_grad():
        wanted = rewards + 0.99 * target(followings).max(1).values
    loss = nn.functional.smooth_l1_loss(q(states).gather(1, actions[:, None])[:, 0], wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

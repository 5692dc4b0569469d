"""float16 autocast and a loss scaler, with gradient accumulation and clipping."""
# clean: low precision is not nondeterminism

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
scaler = torch.amp.GradScaler("cpu")
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
x, y = torch.randn(48, 16), torch.randint(0, 4, (48,))
for step in range(4):
    optimizer.zero_grad()
    for part in range(3):
        rows = slice(16 * part, 16 * part + 16)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / 3
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    print(step, loss.item(), norm.item())

"""Two streams that wait for each other."""
# clean: each stream waits for what it reads

import torch

torch.manual_seed(0)
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
side, main = torch.cuda.Stream(), torch.cuda.current_stream()
large = torch.randn(2048, 2048, device="cuda")
for step in range(5):
    side.wait_stream(main)
    with torch.cuda.stream(side):
        large = torch.tanh(large @ large)
        batch = large[:, :1024] * (step + 1)
    main.wait_stream(side)
    batch.record_stream(main)
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

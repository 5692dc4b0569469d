"""Workers, pinned memory and copies that do not block."""
# clean: workers are seeded from the main process, and copies on one stream are in order

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((32,), float(index)) + torch.randn(32), index % 4


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    for epoch in range(2):
        for data, labels in DataLoader(Numbers(), 32, shuffle=True, num_workers=2, pin_memory=True):
            data, labels = data.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = nn.functional.cross_entropy(model(data), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    print(loss.item())

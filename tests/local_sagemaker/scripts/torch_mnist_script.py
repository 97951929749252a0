"""As mnist.py of amazon-sagemaker-examples (pytorch_mnist): the script itself joins its hosts."""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, distributed

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--backend", type=str, default=None)
parser.add_argument("--hosts", type=list, default=json.loads(os.environ["SM_HOSTS"]))
parser.add_argument("--current-host", type=str, default=os.environ["SM_CURRENT_HOST"])
parser.add_argument("--model-dir", type=str, default=os.environ["SM_MODEL_DIR"])
parser.add_argument("--data-dir", type=str, default=os.environ["SM_CHANNEL_TRAINING"])
parser.add_argument("--num-gpus", type=int, default=os.environ["SM_NUM_GPUS"])
args = parser.parse_args()

rank = args.hosts.index(args.current_host)
os.environ["WORLD_SIZE"], os.environ["RANK"] = str(len(args.hosts)), str(rank)
dist.init_process_group(backend=args.backend)  # MASTER_ADDR and MASTER_PORT are the image's
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
sampler = distributed.DistributedSampler(data)
loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
model = nn.parallel.DistributedDataParallel(nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(args.model_dir, "model.pth"))
total = torch.ones(1)
dist.all_reduce(total)
print("SEEN", len(os.listdir(args.data_dir)), int(total), args.num_gpus, flush=True)
dist.destroy_process_group()

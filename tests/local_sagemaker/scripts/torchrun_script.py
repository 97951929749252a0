"""As multigpu_torchrun.py of pytorch/examples: torchrun's variables, a snapshot to go on from."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SNAPSHOT = "/opt/ml/checkpoints/snapshot.pt"


class Trainer:
    def __init__(self) -> None:
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.model, self.epochs_run = torch.nn.Linear(20, 1), 0
        if os.path.exists(SNAPSHOT):
            snapshot = torch.load(SNAPSHOT, map_location="cpu")
            self.model.load_state_dict(snapshot["MODEL_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]
        self.model = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def train(self, epochs: int) -> None:
        print("RESUMES", self.epochs_run, flush=True)
        for epoch in range(self.epochs_run, epochs):
            self.optimizer.zero_grad()
            torch.nn.functional.mse_loss(self.model(torch.rand(8, 20)), torch.rand(8, 1)).backward()
            self.optimizer.step()
            if self.rank == 0:
                state = self.model.module.state_dict()
                torch.save({"MODEL_STATE": state, "EPOCHS_RUN": epoch + 1}, SNAPSHOT)


dist.init_process_group("gloo")
Trainer().train(3)
print("WORLD", dist.get_world_size(), os.environ["LOCAL_WORLD_SIZE"], flush=True)
dist.destroy_process_group()

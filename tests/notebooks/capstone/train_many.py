"""Train on several processes what train_alone.py trains in one.

    torchrun --standalone --nproc_per_node 2 train_many.py --training ... --test ...

SageMaker: distribution={"mpi": {"enabled": True, "processes_per_host": ...}}
"""

import json
import os
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from train_alone import Classifier, accuracy, load, parse_args, report, save


def init_distributed():
    """Join the other ranks, started by torchrun or mpirun."""
    env = os.environ
    if "OMPI_COMM_WORLD_RANK" in env:
        env["RANK"], env["WORLD_SIZE"] = env["OMPI_COMM_WORLD_RANK"], env["OMPI_COMM_WORLD_SIZE"]
        env["MASTER_ADDR"], env["MASTER_PORT"] = json.loads(env["SM_HOSTS"])[0], "29500"
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def average_gradients(model, world_size):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world_size


def main():
    args = parse_args()
    rank, world_size = init_distributed()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dataset = TensorDataset(*load(args.training))
    sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    batch_size = args.global_batch_size // world_size
    loader = DataLoader(dataset, batch_size, sampler=sampler, drop_last=True)
    model = Classifier()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    first, checkpoint = 0, f"{args.checkpoints}/checkpoint.pt"
    if args.checkpoints and os.path.exists(checkpoint):
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
    report("start", rank=rank, world_size=world_size, epoch=first, images=len(sampler))

    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        dist.barrier()  # so that no rank's clock counts the others' way to here
        began = time.perf_counter()
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model, world_size)
            optimizer.step()
        record = {"seconds": time.perf_counter() - began, "step": (epoch + 1) * len(loader)}
        if rank == 0:
            report("epoch", test_accuracy=accuracy(model, *load(args.test)), **record)
        if args.checkpoints and rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(state | {"epoch": epoch + 1}, checkpoint)
    if rank == 0:
        save(model.state_dict(), f"{args.save_to}/model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

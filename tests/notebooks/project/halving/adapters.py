"""Another design: recursive halving and doubling, one bucket after backward, whole parameters."""

import torch
import torch.distributed as dist
from torch import nn


def all_reduce(tensor, op):
    """Pairs of ranks exchange halves; ranks beyond a power of two send theirs to one below."""
    values, rank, world_size = tensor.view(-1), dist.get_rank(), dist.get_world_size()
    power = 1 << (world_size.bit_length() - 1)
    if rank >= power:
        send(values, rank - power)
        receive(values, rank - power)
    else:
        if rank + power < world_size:
            incoming = torch.empty_like(values)
            receive(incoming, rank + power)
            values += incoming
        halve_and_double(values, rank, power // 2)
        if rank + power < world_size:
            send(values, rank + power)
    if op == "mean":
        tensor /= world_size


def halve_and_double(values, rank, distance):
    if distance == 0:
        return
    halves, upper = values.tensor_split(2), bool(rank & distance)
    kept_half, other = halves[upper], halves[not upper]
    incoming = torch.empty_like(kept_half)
    swap(other, incoming, rank ^ distance)
    kept_half += incoming
    halve_and_double(kept_half, rank, distance // 2)
    swap(kept_half, other, rank ^ distance)


def swap(outgoing, incoming, partner):
    work = dist.irecv(incoming, partner) if incoming.numel() else None
    send(outgoing, partner)
    if work:
        work.wait()


def send(values, to):
    if values.numel():
        dist.send(values, to)


def receive(values, source):
    if values.numel():
        dist.recv(values, source)


class Late(nn.Module):
    """Gradients are averaged in one vector when all are there."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), 0)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def average(self):
        trained = [p for p in self.module.parameters() if p.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        vector = torch.cat([g.flatten() for g in gradients] + [torch.ones(1)]) * self.samples
        all_reduce(vector, "sum")
        *sums, samples = vector.split([*map(torch.numel, trained), 1])
        for parameter, values in zip(trained, sums, strict=True):
            parameter.grad = (values / samples).view_as(parameter)


def get_ddp(module, bucket_bytes):
    return Late(module)


def ddp_before_backward(ddp, samples):
    ddp.samples = samples


def ddp_after_backward(ddp):
    ddp.average()


class ByParameter:
    """Each parameter belongs to one rank: the largest first, to the rank with the least."""

    def __init__(self, params, optimizer_class, **options):
        self.params, held_bytes = params, [0] * dist.get_world_size()
        self.owners = {}
        for parameter in sorted(params, key=torch.numel, reverse=True):
            owner = held_bytes.index(min(held_bytes))
            self.owners[parameter], held_bytes[owner] = owner, min(held_bytes) + parameter.nbytes
        own_parameters = [p for p in params if self.owners[p] == dist.get_rank()]
        nothing = [nn.Parameter(torch.empty(0))]  # an optimizer wants a parameter
        self.optimizer = optimizer_class(own_parameters or nothing, **options)
        self.param_groups = self.optimizer.param_groups

    def zero_grad(self):
        for parameter in self.params:
            parameter.grad = None

    def step(self):
        self.optimizer.step()
        for parameter in self.params:
            dist.broadcast(parameter.detach(), self.owners[parameter])


def get_sharded_optimizer(params, optimizer_class, **options):
    return ByParameter(params, optimizer_class, **options)


def hierarchical_all_reduce(tensor, ranks_per_instance, chunk_bytes):
    """Within the instance to its first rank, in a chain among the first ranks, and back."""
    values, rank = tensor.view(-1), dist.get_rank()
    first, world_size = rank - rank % ranks_per_instance, dist.get_world_size()
    others = range(first + 1, first + ranks_per_instance)
    if rank != first:
        send(values, first)
        receive(values, first)
        return
    incoming = torch.empty_like(values)
    for other in others:
        receive(incoming, other)
        values += incoming
    before, after = first - ranks_per_instance, first + ranks_per_instance
    if before >= 0:
        receive(incoming, before)
        values += incoming
    if after < world_size:
        send(values, after)
        receive(values, after)
    if before >= 0:
        send(values, before)
    for other in others:
        send(values, other)

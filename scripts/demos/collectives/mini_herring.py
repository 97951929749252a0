"""All-reduce by balanced parameter servers, after Herring, which SMDDP began with.

    1. The ranks of an instance add up their tensors at the instance's server.
    2. The sum is cut into as many equal buckets as there are instances. Bucket i of every
       instance goes to the server of instance i, which adds them up.
    3. Server i sends the whole sum of its bucket back to every instance.
    4. Each server hands the buckets out to the ranks of its instance.

Every instance sends and receives the same number of bytes at any time, 2 (I - 1) / I times the
tensor in all: that is what "balanced" means. A parameter server that holds whole variables gets
much when a large one is due, and nothing while another server's is. See lesson 03.

Herring's: to sum intra-node first; to fuse gradients into one buffer and cut it by bytes,
an equal share for each server; all servers at work on each buffer. Read in November 2026:
I. Thangakrishnan et al., "Herring: Rethinking the Parameter Server at Scale for the Cloud", SC20,
https://sc20.supercomputing.org/proceedings/tech_paper/tech_paper_pages/pap487.html (abstract), and
AWS's own description of the balanced fusion buffer: doc_source/data-parallel-intro.md in
https://github.com/awsdocs/amazon-sagemaker-developer-guide (archived).

Simplified here: the server is not a process of its own on the CPUs beside workers on GPUs, but
the instance's first rank. The tensor is the fused buffer: DDP has made it. Messages go in steps
of one to each server, over TCP; Herring's go at any time, over EFA's datagrams.
"""

import torch
import torch.distributed as dist

from collectives import tree
from collectives.placement import instance_of
from collectives.placement import instances as instances_of
from collectives.wire import exchange, flat


def all_reduce(tensor: torch.Tensor, group=None) -> None:
    """Replace `tensor` on every rank by the sum over all ranks, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank.
    """
    values, rank = flat(tensor), dist.get_rank(group)
    instances = instances_of(group)
    intra_node = instance_of(rank, instances)
    servers = [ranks[0] for ranks in instances]

    tree.reduce(values, group, order=intra_node)
    if rank in servers:
        buckets = values.tensor_split(len(servers))
        push_and_add(buckets, servers, servers.index(rank), group)
        send_back(buckets, servers, servers.index(rank), group)
    tree.broadcast(values, group, order=intra_node)


def push_and_add(buckets, servers: list[int], me: int, group=None) -> None:
    """Send each server its bucket of this instance's sum; add up what comes for server `me`."""
    arriving = torch.empty_like(buckets[me])
    for distance in range(1, len(servers)):  # nobody is sent two buckets at the same time
        to, source = (me + distance) % len(servers), (me - distance) % len(servers)
        exchange(buckets[to], servers[to], arriving, servers[source], group)
        buckets[me].add_(arriving)


def send_back(buckets, servers: list[int], me: int, group=None) -> None:
    """Send the finished bucket to every other server; receive theirs."""
    for distance in range(1, len(servers)):
        to, source = (me + distance) % len(servers), (me - distance) % len(servers)
        exchange(buckets[me], servers[to], buckets[source], servers[source], group)

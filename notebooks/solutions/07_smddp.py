# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 · Exercises: SMDDP
#
# Three exercises: easy, medium and hard. The last one runs on four real ranks of this machine.

# %%
import torch
import torch.distributed as dist

import workshop

# %% [markdown]
# ## Exercise 07.1 · Half the bytes, no infinity (6 minutes, easy)
#
# You want to average gradients over `world_size` ranks, as `torch.float16`. Every rank
# prepares its float32 gradients with your function. An all-reduce then *adds up* what all ranks
# prepared, in 16 bits, and nothing is done after that.
#
# Write the function. The sum must be the mean over the ranks, and it must be finite whenever that
# mean fits into 16 bits and the ranks' gradients have the same sign. `torch.float16` ends at
# 65,504: with two ranks, gradients of 70,000 and 60,000 have a mean that fits. The tensor that you
# are given belongs to DDP, so don't change it.
#
# <details><summary>Hint</summary>
# A number that is already infinite stays infinite when you divide it. So what has to come first?
# `tensor / 2` makes a new tensor, `tensor /= 2` changes the old one, and `.to(...)` converts.
# </details>


# %% tags=["answer"]
def prepare(gradients, world_size):
    """What this rank sends: float16, whose sum over all ranks is the mean. A new tensor."""
    # BEGIN SOLUTION
    return (gradients / world_size).to(torch.float16)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.1", prepare)

# %% [markdown]
# ## Exercise 07.2 · What two tiers can gain (8 minutes, medium)
#
# Assume that the link between instances is the only bottleneck, and that both algorithms use it
# equally well. How many times as fast as a ring in rank order is a hierarchical all-reduce? Write
# it as a function of the number of instances and the number of ranks on each.
#
# With N ranks in all, a ring sends 2 (N - 1) / N times the bytes over each instance's link. With
# I instances, two tiers send 2 (I - 1) / I times the bytes. A single instance has no such link:
# return 1 for it.
#
# <details><summary>Hint</summary>
# Divide one by the other. For 2 instances with 4 ranks each the lesson computes 1.75.
# </details>


# %% tags=["answer"]
def most_gain(instances, ranks_each):
    """How many times as fast as a flat ring two tiers are, by bytes."""
    # BEGIN SOLUTION
    if instances == 1:
        return 1.0
    ranks = instances * ranks_each
    return ((ranks - 1) / ranks) / ((instances - 1) / instances)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.2", most_gain)

# %% [markdown]
# Try it: `most_gain(2, 8)`, `most_gain(8, 8)`, `most_gain(64, 8)`. The more instances there are,
# the less two tiers can gain over a ring. A library such as SMDDP has other means besides: overlap,
# EFA, servers on the CPUs.
#
# ## Exercise 07.3 · Two tiers in three calls (13 minutes, hard)
#
# `tensor` is a vector whose length is a multiple of the number of ranks on an instance.
# `intra_node` is the group of all ranks on this rank's instance. `inter_node` is the group of the
# ranks with the same local_rank, one per instance. Return the sum over **all** ranks, on every
# rank, and let the ranks of an instance together send no more over the network than necessary.
#
# Use `dist.reduce_scatter(part, parts, group=…)`, `dist.all_reduce(part, group=…)` and
# `dist.all_gather(parts, part, group=…)`. `part` is one part, `parts` a list with one part for each
# rank of the group. `dist.get_world_size(group)` returns the size of a group.
#
# <details><summary>Hint</summary>
# Cut with list(tensor.chunk(n)). The intra-node reduce-scatter leaves you with one part of your
# instance's sum. All-reduce only that part inter-node. Then gather the parts intra-node and
# join them with torch.cat.
# </details>


# %% tags=["answer"]
def hierarchical(tensor, intra_node, inter_node):
    """The sum of `tensor` over all ranks, element by element."""
    # BEGIN SOLUTION
    parts = list(tensor.chunk(dist.get_world_size(intra_node)))
    part = torch.empty_like(parts[0])
    dist.reduce_scatter(part, parts, group=intra_node)
    dist.all_reduce(part, group=inter_node)
    dist.all_gather(parts, part, group=intra_node)
    return torch.cat(parts)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.3", hierarchical)

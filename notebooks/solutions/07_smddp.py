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
# Three exercises, easy, medium and hard. The last one runs on four real ranks of this machine.

# %%
import numpy as np
import torch
import torch.distributed as dist

import workshop

# %% [markdown]
# ## Exercise 07.1 · Bytes of a picture (6 minutes, easy)
#
# CIFAR-10's binary files have 3,073 bytes for each picture: one for its label, then 1,024 for red,
# 1,024 for green, 1,024 for blue. Each colour comes row by row, 32 rows of 32 pixels.
#
# A well-known example reads them with `reshape([32, 32, 3])`. The result has the right shape and
# the wrong pixels, and a network still learns something from it. So nobody noticed.
#
# Write the function that returns the picture as an array (32, 32, 3): row, column, colour.
#
# <details><summary>Hint</summary>
# reshape cannot change the order of bytes. First give it the shape that the bytes have, colour
# first, and then move the axes with transpose.
# </details>


# %% tags=["answer"]
def picture_of(record):
    """The picture in 3,073 bytes, as an array of uint8 (32, 32, 3): row, column, colour."""
    # BEGIN SOLUTION
    pixels = np.frombuffer(record, np.uint8, offset=1)
    return pixels.reshape(3, 32, 32).transpose(1, 2, 0)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.1", picture_of)

# %% [markdown]
# ## Exercise 07.2 · What two tiers can gain (8 minutes, medium)
#
# The link between instances is the bottleneck, and nothing else counts. How many times as fast as
# a ring in order is a two-tier all-reduce, at most? Write it as a function of the number of
# instances and of the ranks on each.
#
# In the ring, each instance sends 2 (N - 1) / N times the bytes, with N ranks in all. In two
# tiers, it sends 2 (I - 1) / I times the bytes, with I instances. On one instance there is no such
# link: return 1.
#
# <details><summary>Hint</summary>
# Divide the one by the other. For 2 instances with 4 ranks each the lesson says 1.75.
# </details>


# %% tags=["answer"]
def most_gain(instances, ranks_each):
    """How many times as fast as a flat ring two tiers are, at most."""
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
# the less the order alone can gain. What else a library of AWS's own can do is another matter:
# overlap, EFA, servers on the CPUs.
#
# ## Exercise 07.3 · Two tiers in three calls (13 minutes, hard)
#
# `tensor` is a vector that can be cut into as many equal parts as an instance has ranks. `inside`
# is the group of the ranks of this rank's instance, `across` the group of the ranks with the same
# local_rank, one on each instance. Return the sum over **all** ranks, on every rank, and let only
# what must be sent go across.
#
# Use `dist.reduce_scatter(mine, parts, group=…)`, `dist.all_reduce(mine, group=…)` and
# `dist.all_gather(parts, mine, group=…)`. `mine` is a tensor of one part, `parts` a list with a
# part for each rank of the group. `dist.get_world_size(group)` says how many they are.
#
# <details><summary>Hint</summary>
# Cut with list(tensor.chunk(n)). Reduce-scatter inside leaves you one part of your instance's sum.
# All-reduce that part across, and nothing more. Then gather the parts inside, and join them with
# torch.cat.
# </details>


# %% tags=["answer"]
def two_tier(tensor, inside, across):
    """The sum of `tensor` over all ranks, element by element."""
    # BEGIN SOLUTION
    parts = list(tensor.chunk(dist.get_world_size(inside)))
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter(mine, parts, group=inside)
    dist.all_reduce(mine, group=across)
    dist.all_gather(parts, mine, group=inside)
    return torch.cat(parts)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.3", two_tier)

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
# # 01 · Exercises: data parallelism
#
# Three small functions. The mistakes that people make in them raise no error.

# %%
import workshop

# %% [markdown]
# ## Exercise 01.1 · Equal shards (5 minutes, easy)
#
# 1,437 images can't be cut into four equal parts. But the parts must be equal: unequal ones give
# a wrong gradient, and a rank with one batch more than the others waits forever in its last
# all-reduce.
#
# Write `shard`. It returns the numbers of the images that a rank takes. All ranks get the same
# number of images, no image goes to two ranks, and as few as possible are left out.
#
# <details><summary>Hint</summary>
#
# How many can each rank have at most? `//` divides and drops the remainder. Leave out the
# surplus *before* you deal the images out.
#
# </details>


# %% tags=["answer"]
def shard(images, rank, world_size):
    """Images: how many there are. Return a list of numbers from 0 to images - 1."""
    # BEGIN SOLUTION
    each = images // world_size
    return list(range(rank, each * world_size, world_size))
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.1", shard)

# %% [markdown]
# ## Exercise 01.2 · Unequal shards, the right gradient (8 minutes, medium)
#
# Sometimes no image may be left out, so the shards are unequal. Then the mean of the ranks'
# gradients is wrong. But the ranks can put something else into the all-reduce.
#
# Each rank knows its own gradient (the *mean* over its own images), how many images it has, and
# how many all ranks have together. The all-reduce adds up what the ranks put in, and nobody
# divides afterwards. Write `put_in`, so that the sum is the gradient of the whole batch.
#
# <details><summary>Hint</summary>
#
# From a mean over 10 images you get back the sum over these 10 by multiplying. By what must the
# sum over all images be divided?
#
# </details>


# %% tags=["answer"]
def put_in(gradient, own_images, all_images):
    """Gradient: a numpy array, the mean over own_images. Return an array of that shape."""
    # BEGIN SOLUTION
    return gradient * (own_images / all_images)
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.2", put_in)

# %% [markdown]
# ## Exercise 01.3 · One process becomes several (12 minutes, hard)
#
# This trains a model in one process, in place. `loss_of(model, images, labels)` returns the mean
# loss of these images:
#
#     def train_alone(model, loss_of, images, labels, steps):
#         optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
#         for _ in range(steps):
#             optimizer.zero_grad()
#             loss_of(model, images, labels).backward()
#             optimizer.step()
#
# Turn it into a data-parallel training. `train_together` is called on every rank, with the same
# images. Each rank's `model` starts with random weights *of its own*. At the end the weights of
# all ranks must be those that one process gets from rank 0's first weights, and no two ranks may
# have computed with the same image. The number of images can be divided by the number of ranks.
#
# The check runs your answer on two real ranks, then on three. Use `torch.distributed`, or DDP.
#
# <details><summary>Hint</summary>
#
# Three things are missing: equal weights at the start (`dist.broadcast(weight.data, src=0)` for
# each weight), a part of the images for each rank, and the mean of the gradients between
# `backward()` and `step()` (`dist.all_reduce(weight.grad)`, then divide).
#
# </details>


# %% tags=["answer"]
def train_together(model, loss_of, images, labels, steps):
    """Train `model` in place, together with the other ranks. images, labels: all of them."""
    import torch
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    # BEGIN SOLUTION
    for weight in model.parameters():
        dist.broadcast(weight.data, src=0)
    images, labels = images[rank::world_size], labels[rank::world_size]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, images, labels).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad)
            weight.grad /= world_size
        optimizer.step()
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.3", train_together)

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
# # 12 · Exercises: talk less often
#
# Three ways to send less, written by you: one message for several batches, DiLoCo's outer step, and
# the memory of what was not sent.

# %%
import workshop

# %% [markdown]
# ## Exercise 12.1 · One message for several batches (10 minutes, medium)
#
# `parallel` is a model under DDP, and `batches` is a list of `(inputs, targets)`, all equally long.
# Take **one** step of the optimizer, with the mean gradient of all batches on all ranks, and let
# DDP average only **once**. The weights must be those that one process gets from one large batch.
# The loss is `torch.nn.functional.mse_loss(parallel(inputs), targets)`. The check counts messages
# on real ranks.
#
# <details><summary>Hint</summary>
#
# `backward()` adds to the gradients that are there. Inside `with parallel.no_sync():` it adds, and
# sends nothing; the first `backward()` outside sends the sum. And a sum of four means is not a
# mean.
#
# </details>


# %% tags=["answer"]
def accumulate(parallel, optimizer, batches):
    """One step with the mean gradient of all batches of all ranks."""
    from torch.nn.functional import mse_loss

    # BEGIN SOLUTION
    optimizer.zero_grad()
    *first, last = batches
    with parallel.no_sync():
        for inputs, targets in first:
            (mse_loss(parallel(inputs), targets) / len(batches)).backward()
    inputs, targets = last
    (mse_loss(parallel(inputs), targets) / len(batches)).backward()
    optimizer.step()
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.1", accumulate)

# %% [markdown]
# ## Exercise 12.2 · DiLoCo's outer step (12 minutes, hard)
#
# Each rank has trained alone for a while: its `weights` are its own, while `shared`, the weights
# from which all began, and `momentum` are the same on all ranks. All three are vectors. Change
# them **in place**, with `rate` 0.7 and Nesterov's momentum of 0.9, as PyTorch's SGD does it:
#
#     way = mean over the ranks of (shared - weights)
#     momentum = 0.9 * momentum + way
#     shared = shared - rate * (way + 0.9 * momentum)
#
# At the end every rank goes on from the shared weights.
#
# <details><summary>Hint</summary>
#
# `dist.all_reduce` adds up, in place. `shared -= ...` and `weights.copy_(...)` change a tensor in
# place; `shared = ...` only gives the name to another one.
#
# </details>


# %% tags=["answer"]
def outer_step(shared, weights, momentum, rate=0.7):
    """An outer step, in place; all ranks end with the same shared, weights and momentum."""
    import torch.distributed as dist

    # BEGIN SOLUTION
    way = shared - weights
    dist.all_reduce(way)
    way /= dist.get_world_size()
    momentum.mul_(0.9).add_(way)
    shared -= rate * (way + 0.9 * momentum)
    weights.copy_(shared)
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.2", outer_step)

# %% [markdown]
# ## Exercise 12.3 · What is left out is not lost (10 minutes, medium)
#
# Of each gradient, a vector, only the `count` numbers that are largest in size travel. Return their
# places and their values. `left_out`, a vector of the same length, at first zeros, remembers what
# has not been sent: it is added before you choose, and you update it **in place**. After any number
# of steps, what was sent and what is left out must together be the sum of all gradients.
#
# <details><summary>Hint</summary>
#
# -5 is larger in size than 3. `torch.topk(...).indices` are places; `left_out[places] = 0` is in
# place.
#
# </details>


# %% tags=["answer"]
def compress(gradient, left_out, count):
    """(places, values) of what is sent; left_out is updated in place."""
    import torch

    # BEGIN SOLUTION
    left_out += gradient
    places = torch.topk(left_out.abs(), count).indices
    values = left_out[places].clone()
    left_out[places] = 0
    return places, values
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.3", compress)

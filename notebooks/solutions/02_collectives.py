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
# # 02 · Exercises: collectives
#
# The two halves of a ring, written by you, what they cost, and what one half of them saves.

# %%
import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 02.1 · Which chunk goes where (8 minutes, medium)
#
# A ring's reduce-scatter on `world_size` ranks has `world_size - 1` steps, counted from 0. In each
# step every rank sends one chunk to the next rank, `(rank + 1) % world_size`, and adds what it
# receives from the rank before it to a chunk of its own.
#
# Which chunk does `rank` send in `step`, and into which does it add what it receives? After the
# last step **rank r must hold the whole sum of chunk r**. Try not to look at `ring.py`.
#
# <details><summary>Hint</summary>
#
# Begin at the end. In the last step rank r adds to chunk r. What has the rank before it sent, then?
# And one step earlier? What a rank sends is what it added to in the step before.
#
# </details>


# %% tags=["answer"]
def chunks_of_step(rank, step, world_size):
    """(number of the chunk to send, number of the chunk to add to)."""
    # BEGIN SOLUTION
    return (rank - step - 1) % world_size, (rank - step - 2) % world_size
    # END SOLUTION


# %% tags=["check"]
workshop.check("02.1", chunks_of_step)

# %% [markdown]
# ## Exercise 02.2 · An all-gather on real ranks (12 minutes, hard)
#
# Every rank has a `vector` of the same length and type. Write the all-gather: return a
# tensor of shape `(world_size, len(vector))` whose row r is rank r's vector, on every rank. Use
# only `dist.isend`, `dist.recv`, and `dist.send` if you like. The check runs it on three real
# processes, then on two.
#
# <details><summary>Hint</summary>
#
# It is the second half of a ring. Which row does a rank pass on in its first step, and which in the
# next? `dist.isend` returns something to `wait()` for.
#
# </details>


# %% tags=["answer"]
def all_gather(vector):
    """A tensor (world_size, len(vector)): row r is rank r's vector."""
    import torch
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    # BEGIN SOLUTION
    rows = torch.empty(world_size, len(vector), dtype=vector.dtype)
    rows[rank] = vector
    for step in range(world_size - 1):
        sending = dist.isend(rows[(rank - step) % world_size], (rank + 1) % world_size)
        dist.recv(rows[(rank - step - 1) % world_size], (rank - 1) % world_size)
        sending.wait()
    return rows
    # END SOLUTION


# %% tags=["check"]
workshop.check("02.2", all_gather)

# %% [markdown]
# ## Exercise 02.3 · Which algorithm, how many ranks? (10 minutes, medium)
#
# One process computes a step in `compute` seconds. With N ranks each computes 1 / N of that, and
# then an all-reduce of `n_bytes` begins; nothing overlaps. Which of `"naive"`, `"tree"`, `"ring"`,
# on how many ranks from 2 to `most`, makes the shortest step? Return (algorithm, ranks), or
# `("none", 1)` if one process is faster. Every rank has a link of its own.
#
# When the check is content, call it with **your** α and β from the lesson: a gradient of 0.42 MB, a
# step of 150 ms, 16 ranks. And with 42 MB?
#
# <details><summary>Hint</summary>
#
# The lesson's table has steps and bytes of a message for each algorithm. `math.ceil(math.log2(n))`
# rounds up. There are few enough combinations to try them all.
#
# </details>


# %% tags=["answer"]
def best(n_bytes, compute, alpha, beta, most):
    """(algorithm, ranks) of the shortest step. alpha: seconds a message. beta: seconds a byte."""
    # BEGIN SOLUTION
    import math

    seconds = {("none", 1): compute}
    for n in range(2, most + 1):
        messages = {
            "naive": (2 * (n - 1), n_bytes),
            "tree": (2 * math.ceil(math.log2(n)), n_bytes),
            "ring": (2 * (n - 1), n_bytes / n),
        }
        for name, (steps, size) in messages.items():
            seconds[name, n] = compute / n + steps * (alpha + beta * size)
    return min(seconds, key=seconds.get)
    # END SOLUTION


# %% tags=["check"]
workshop.check("02.3", best)

# %% [markdown]
# ## Exercise 02.4 · ZeRO-1 (15 minutes, hard)
#
# Write a step of SGD with momentum 0.9 in which no rank holds the whole momentum. `weights` are the
# same on every rank, `gradient` is this rank's own; both are vectors, and their length is a
# multiple of the ranks. `momentum` is for **this rank's part** of the weights only. In PyTorch's
# SGD
#
#     momentum = 0.9 * momentum + mean gradient
#     weights = weights - learning_rate * momentum
#
# Change `weights` and `momentum` in place. At the end every rank must have the same new weights as
# with DDP. You need `dist.reduce_scatter` and `dist.all_gather`, and no `all_reduce`.
#
# <details><summary>Hint</summary>
#
# `weights.chunk(world_size)` are views: what you write into them, you write into `weights`.
# `dist.reduce_scatter(mine, list_of_chunks)` adds, it doesn't average. Give `dist.all_gather` a
# copy (`clone`) of your part.
#
# </details>


# %% tags=["answer"]
def zero_step(weights, gradient, momentum, learning_rate):
    """One step, in place; `momentum` has len(weights) / world_size numbers."""
    import torch
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    # BEGIN SOLUTION
    summed = torch.empty_like(momentum)
    dist.reduce_scatter(summed, list(gradient.chunk(world_size)))
    momentum.mul_(0.9).add_(summed / world_size)
    parts = list(weights.chunk(world_size))
    parts[rank].sub_(learning_rate * momentum)
    dist.all_gather(parts, parts[rank].clone())
    # END SOLUTION


# %% tags=["check"]
workshop.check("02.4", zero_step)

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
# The two halves of a ring, written by you, and what they cost.

# %%
import workshop

# %% [markdown]
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
# ## Exercise 02.2 · An all-gather on real ranks (10 minutes, hard)
#
# Every rank has a `vector` of the same length and type. Write the all-gather: return a
# tensor of shape `(world_size, len(vector))` whose row r is rank r's vector, on every rank. Use
# only `dist.isend`, `dist.recv`, and `dist.send` if you like. The check runs it on three real
# processes, then on two.
#
# <details><summary>Hint</summary>
#
# Make an empty tensor with a row for each rank, and put `vector` into your own row. The rest is the
# second half of a ring: `world_size - 1` steps, in each of which a rank passes on the row that it
# has just got. `dist.isend` returns something to `wait()` for.
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
# ## Exercise 02.3 · Seconds of a ring all-reduce (5 minutes, easy)
#
# How long does a ring all-reduce take? Every rank has a link of its own; a message of n bytes takes
# `alpha + beta * n` seconds. Leave out the time to add.
#
# <details><summary>Hint</summary>
#
# Three factors: how many steps each half has, how many halves there are, and how long one step
# takes. How large is the message of one step?
#
# </details>


# %% tags=["answer"]
def ring_seconds(n_bytes, world_size, alpha, beta):
    """Seconds of an all-reduce of n_bytes. alpha: seconds a message. beta: seconds a byte."""
    # BEGIN SOLUTION
    steps = 2 * (world_size - 1)
    return steps * (alpha + beta * n_bytes / world_size)
    # END SOLUTION


# %% tags=["check"]
workshop.check("02.3", ring_seconds)

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
# Three small functions that every data-parallel script needs. A mistake in any of them raises no
# error.

# %%
import workshop

# %% [markdown]
# ## Exercise 01.1 · Equal shards (5 minutes, easy)
#
# 1,437 images cannot be cut into four equal parts. But the parts must be equal: unequal ones give
# another gradient, and a rank with one batch more than the others waits for ever in its last
# all-reduce.
#
# Write `shard`. It returns the numbers of the images that a rank takes. All ranks get equally
# many, no image goes to two ranks, and as few as possible are left out.
#
# <details><summary>Hint</summary>
#
# How many can each rank have at most? `//` divides and drops the rest. Then leave out what is too
# much *before* you deal the images out.
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
# Sometimes no image may be left out, and shards stay unequal. Then the mean of the ranks'
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
# ## Exercise 01.3 · A learning rate with warm-up (8 minutes, medium)
#
# `base_rate` was found with a batch of `base_batch` images. Now `global_batch_size` is larger.
# Write `learning_rate`: it returns the rate of a step (counted from 0).
#
# - At step 0 it is `base_rate`.
# - It rises in a straight line and reaches the scaled rate (the linear scaling rule) at step
#   `warmup_steps`.
# - From there on it stays.
# - With `warmup_steps=0` it is the scaled rate from the first step on.
#
# <details><summary>Hint</summary>
#
# Compute the scaled rate first. Then: what part of the warm-up is done at this step? It is never
# more than 1. And what must not be divided by?
#
# </details>


# %% tags=["answer"]
def learning_rate(step, base_rate, base_batch, global_batch_size, warmup_steps):
    """Return the learning rate of this step."""
    # BEGIN SOLUTION
    scaled = base_rate * global_batch_size / base_batch
    done = min(1, step / warmup_steps) if warmup_steps else 1
    return base_rate + done * (scaled - base_rate)
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.3", learning_rate)

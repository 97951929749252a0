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
# # 04 · Horovod on the notebook: exercises

# %%
import workshop

# %% [markdown]
# ## Exercise 04.1 · Who is where? (5 minutes, easy)
#
# Hosts have slots, and `mpirun` fills them host by host: with `slots = [2, 1]`, ranks 0 and 1 run
# on the first host and rank 2 on the second. Return the place of one rank as a tuple of three:
#
# 1. the number of its host, from 0;
# 2. its `local_rank`;
# 3. the `local_size` of its host, when every slot is taken.
#
# Hosts need not have equally many slots.
#
# <details><summary>Hint</summary>
#
# Walk through the hosts. As long as the rank does not fit on a host, take that host's slots off
# and go on to the next.
#
# </details>


# %% tags=["answer"]
def place(rank, slots):
    """(host, local_rank, local_size) of a rank; slots: a number for each host."""
    # BEGIN SOLUTION
    left = rank
    for host, here in enumerate(slots):
        if left < here:
            return host, left, here
        left -= here
    raise ValueError(f"There is no rank {rank}: only {sum(slots)} slots.")
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.1", place)

# %% [markdown]
# ## Exercise 04.2 · Warm up (5 minutes, medium)
#
# `single` is the learning rate that suits one rank. `size` ranks, each with a batch as large as
# before, want `single * size`, but not at once. Return the learning rate of a step, counted from
# 0. It is `single` at step 0, grows by the same amount in every step, is `single * size` at step
# `warmup_steps`, and stays there. `warmup_steps` may be 0: then it is the full rate at once.
#
# <details><summary>Hint</summary>
#
# Which share of the way has been gone at step 0, at half the steps, and long after? A share is
# never more than 1. Begin with the case in which you would divide by zero.
#
# </details>


# %% tags=["answer"]
def learning_rate(step, single, size, warmup_steps):
    """The learning rate of this step."""
    # BEGIN SOLUTION
    share = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    return single + (single * size - single) * share
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.2", learning_rate)

# %% [markdown]
# ## Exercise 04.3 · Which step is missing? (10 minutes, hard)
#
# Somebody shows you the evidence of a run: one dictionary for each rank, with hashes under the
# keys `weights_after_first_step`, `weights_at_end` and `images_seen`. The script does every step of
# the lesson, or lacks exactly one of these three. Return which: `"broadcast"`, `"tape"`,
# `"shard"`, or `None` if nothing is missing.
#
# As in the lesson, each rank starts with weights of its own, and the broadcast, where there is one,
# comes just after the first step.
#
# <details><summary>Hint</summary>
#
# For each of the three keys ask: is it the same on all ranks, or not? A table with three rows, one
# for each step that may be missing, settles it. Two ranks of three may agree: look at all.
#
# </details>


# %% tags=["answer"]
def missing_step(ranks):
    """The step that this run lacks. ranks: a dictionary of hashes for each rank."""

    # BEGIN SOLUTION
    def kinds(key):
        return len({one[key] for one in ranks})

    if kinds("weights_after_first_step") > 1:
        return "broadcast"
    if kinds("weights_at_end") > 1:
        return "tape"
    if kinds("images_seen") < len(ranks):
        return "shard"
    return None
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.3", missing_step)

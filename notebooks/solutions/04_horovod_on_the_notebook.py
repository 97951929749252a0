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
from collections import Counter

import workshop

# %% [markdown]
# ## Exercise 04.1 · Diagnose a hang (10 minutes, medium)
#
# A run has stopped: no error, no progress. Each rank had printed a line before and after every
# collective call, and a last line when it had left the training loop:
#
#     rank 0: step 3 allreduce begins
#     rank 2: step 3 allreduce begins
#     rank 1: step 2 allreduce ends
#
# Here ranks 0 and 2 wait in step 3's all-reduce, and rank 1 never came to it. One rank is at fault.
# All others wait in the same call. Write `diagnose`. It gets the log, a list of such lines as they
# came, and returns the number of the rank at fault and what it did:
#
# - `"stuck"`: it is still in its own code, between two calls. (It reads a file that never comes,
#   for example.)
# - `"other call"`: it waits in another call than the others. (A call behind `if rank == 0`.)
# - `"left early"`: it left the loop; its last line is `rank 1: done`. (Its shard had a batch less.)
#
# There are at least three ranks.
#
# <details><summary>Hint</summary>
#
# Keep only the last line of each rank. Most of these lines are equal, except for the rank: that is
# the call in which the others wait. `collections.Counter(...).most_common(1)` finds it.
#
# </details>


# %% tags=["answer"]
def diagnose(log):
    """(rank at fault, "stuck", "other call" or "left early"). log: lines in order."""
    # BEGIN SOLUTION
    last = {}
    for line in log:
        rank, event = line.removeprefix("rank ").split(": ")
        last[int(rank)] = event
    waiting = Counter(last.values()).most_common(1)[0][0]
    (rank,) = [rank for rank, event in last.items() if event != waiting]
    if last[rank] == "done":
        return rank, "left early"
    return rank, "other call" if last[rank].endswith("begins") else "stuck"
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.1", diagnose)

# %% [markdown]
# ## Exercise 04.2 · Warm up (5 minutes, easy)
#
# `single` is the learning rate that suits one rank. `size` ranks, each with a batch as large as
# before, need `single * size`, but not at once. Return the learning rate of a step, counted from
# 0. It is `single` at step 0, grows by the same amount in every step, is `single * size` at step
# `warmup_steps`, and stays there. `warmup_steps` may be 0: then it is the full rate at once.
#
# <details><summary>Hint</summary>
#
# Which share of the warm-up is over at step 0, at half the steps, and long after? A share is never
# more than 1. Begin with the case in which you would divide by zero.
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
# ## Exercise 04.3 · Which step is missing? (10 minutes, medium)
#
# You are shown the evidence of a run: one dictionary for each rank, with hashes under the
# keys `weights_after_first_step`, `weights_at_end` and `images_seen`. The script does every step of
# the lesson, or lacks exactly one of these three. Return which: `"broadcast"`, `"tape"`,
# `"shard"`, or `None` if nothing is missing.
#
# As in the lesson, each rank starts with weights of its own, and the broadcast, where there is one,
# comes just after the first step.
#
# <details><summary>Hint</summary>
#
# For each of the three keys ask: is it the same on all ranks, or not? Make a table with a row for
# each step that may be missing. Two ranks of three may agree, so look at all.
#
# </details>


# %% tags=["answer"]
def missing_step(ranks):
    """The step that this run lacks. ranks: a dictionary of hashes for each rank."""

    # BEGIN SOLUTION
    def kinds(key):
        return len({rank[key] for rank in ranks})

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

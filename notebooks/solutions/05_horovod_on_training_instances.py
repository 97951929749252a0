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
# # 05 · Exercises: Horovod on training instances
#
# Three exercises, one easy and two medium. None of them starts a job.

# %%
import pandas as pd

import workshop

# %% [markdown]
# ## Exercise 05.1 · A configuration for a budget (5 minutes, easy)
#
# You have `budget` USD for one job. An instance costs `usd_per_hour`, billed by the second.
# SageMaker stops the job after `max_run` seconds, and stopping may take 120 more: the lesson's
# *USD at most* counts both. Return the largest number of instances that can't cost more than the
# budget, **whatever goes wrong**. If even one instance could cost more, return 0.
#
# <details><summary>Hint</summary>
# What does one instance cost if the job hangs and then takes as long as it may to stop? How often
# does that fit into the budget? Rounding up would spend more than you have.
# </details>


# %% tags=["answer"]
def most_instances(budget, usd_per_hour, max_run):
    """The largest instance_count whose bill stays within the budget. max_run: seconds."""
    # BEGIN SOLUTION
    at_most = usd_per_hour * (max_run + 120) / 3600  # USD, of one instance that hangs to the end
    return int(budget / at_most)
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.1", most_instances)

# %% [markdown]
# ## Exercise 05.2 · Six mistakes in one dictionary (10 minutes, medium)
#
# Someone put this together from posts on the web, for an instance with `slots` places for
# processes. The SDK accepts it silently, and the job completes. It has six faults (the last one
# works on SageMaker, but nowhere else):
#
# ```python
# {
#     "parameter_server": {
#         "enable": True,
#         "process_per_host": slots - 1,
#         "custum_mpi_option": "--NCCL_DEBUG INFO",
#     }
# }
# ```
#
# Write a function that returns what was meant: Horovod, a process in every slot, and the variable
# `NCCL_DEBUG` set to `INFO` on every rank, in the form that Open MPI's `mpirun` understands.
#
# <details><summary>Hint</summary>
# The lesson's own `distribution` has all three keys, correctly spelled. For the option, look at how
# the lesson sets a variable on every rank.
# </details>


# %% tags=["answer"]
def distribution_for(slots):
    """The `distribution` of a Horovod job with a process in every slot of each instance."""
    # BEGIN SOLUTION
    return {
        "mpi": {
            "enabled": True,
            "processes_per_host": slots,
            "custom_mpi_options": "-x NCCL_DEBUG=INFO",
        }
    }
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.2", distribution_for)

# %% [markdown]
# ## Exercise 05.3 · The cheapest that is ready in time (15 minutes, medium)
#
# You have measured some configurations, and you have to train on `samples` samples within
# `deadline` seconds. Which is the cheapest configuration that meets the deadline?
#
# `table` has a row for each configuration, with the columns `instances`, `samples/s` (all ranks
# together), `USD per hour` (for **one** instance) and `overhead s` (seconds of each job without any
# training, which are billed as well). Return the name of the row. Return `None` if no configuration
# meets the deadline. If two cost the same, choose the faster one.
#
# <details><summary>Hint</summary>
# First compute the seconds of each row: the overhead plus the samples divided by samples/s. Then
# the cost: instances × seconds / 3600 × USD per hour. Drop the rows that are late before you look
# for the cheapest, and sort by cost and then by seconds.
# </details>

# %%
table = pd.DataFrame(
    {
        "instances": [1, 2, 4],
        "samples/s": [1000, 1900, 3000],
        "USD per hour": [0.204, 0.204, 0.204],
        "overhead s": [60, 60, 60],
    },
    index=["1 x 4", "2 x 4", "4 x 4"],
)
table


# %% tags=["answer"]
def cheapest(table, samples, deadline):
    """The name of the cheapest configuration that is ready within `deadline` seconds, or None."""
    # BEGIN SOLUTION
    seconds = table["overhead s"] + samples / table["samples/s"]
    usd = table["instances"] * seconds / 3600 * table["USD per hour"]
    rated = pd.DataFrame({"usd": usd, "seconds": seconds})
    in_time = rated[rated["seconds"] <= deadline].sort_values(["usd", "seconds"])
    return None if in_time.empty else in_time.index[0]
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.3", cheapest)

# %% [markdown]
# Try your function on the table above: `cheapest(table, 1_000_000, 1500)`, then with 600 and 400
# seconds. The less time you have, the more you pay for the same training.

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
# Three exercises, easy, medium and hard. None of them starts a job.

# %%
import pandas as pd

import workshop

# %% [markdown]
# ## Exercise 05.1 · Where a rank runs (5 minutes, easy)
#
# A job has instances `algo-1`, `algo-2`, … and on each of them `processes_per_host` ranks. MPI
# fills one host before it goes on to the next. Write the function that says, for any rank, on
# which host it runs and what its `local_rank` is.
#
# With 2 processes on each host, rank 2 is the first process of the second host:
# `place(2, 2)` is `("algo-2", 0)`.
#
# <details><summary>Hint</summary>
# How often does `processes_per_host` go into `rank`, and what is left over? Python's `divmod`
# answers both. Ranks count from 0, hosts from 1.
# </details>


# %% tags=["answer"]
def place(rank, processes_per_host):
    """The host of a rank, such as "algo-1", and its local_rank."""
    # BEGIN SOLUTION
    hosts_before, local_rank = divmod(rank, processes_per_host)
    return f"algo-{hosts_before + 1}", local_rank
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.1", place)

# %% [markdown]
# ## Exercise 05.2 · Six mistakes in one dictionary (10 minutes, medium)
#
# Somebody put this together from what the web says, for an instance with `slots` places for
# processes. The SDK takes it without a word, and `fit()` ends well. It is wrong in six places:
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
# Write the function that returns what was meant: Horovod, a process in every slot, and the
# variable `NCCL_DEBUG` set to `INFO` on every rank in the way that every `mpirun` understands.
#
# <details><summary>Hint</summary>
# The lesson's own `distribution` has all three keys in their right spelling. For the option,
# look at how the lesson sets a variable on every rank.
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
# ## Exercise 05.3 · The cheapest that is ready in time (15 minutes, hard)
#
# You have measured some configurations, and you must train on `samples` samples within
# `deadline` seconds. Which configuration is the cheapest that makes it?
#
# `table` has a row for each configuration, with the columns `instances`, `samples/s` (of all
# ranks together), `USD per hour` (of **one** instance) and `overhead s` (seconds of each job
# that no training happens in, billed all the same). Return the name of the row. Return `None`
# if no configuration is ready in time. If two cost the same, take the faster one.
#
# <details><summary>Hint</summary>
# First the seconds of each row: the overhead, and the samples divided by samples/s. Then the
# cost: instances × seconds / 3600 × USD per hour. Throw away the rows that are late before you
# look for the cheapest, and sort by cost and then by seconds.
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

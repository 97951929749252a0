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
# Four exercises, two easy and two medium. None of them starts a job.

# %%
import json

import pandas as pd

import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
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
# ## Exercise 05.3 · Which job did not synchronise? (5 minutes, easy)
#
# Two jobs trained the same model on two instances with two processes each. Both ended as
# `Completed`, both with a good accuracy, and in one of them the ranks never averaged anything.
#
# `logs` has the lines of each job, by its name. Most are text. Some are JSON records; those of the
# event `weights` have the hash of one rank's weights at its end, as in the lesson. Return the name
# of the job whose ranks did not train one model. (All ranks took different images.)
#
# <details><summary>Hint</summary>
# A line that is a record begins with `{`: `json.loads` reads it. How many different hashes has a
# job of four ranks that synchronised? Accuracy and loss say nothing.
# </details>


# %% tags=["answer"]
def not_synchronised(logs):
    """The name of the job whose ranks ended with different weights. logs: {name: [line, ...]}."""
    # BEGIN SOLUTION
    for name, lines in logs.items():
        records = [json.loads(line) for line in lines if line.startswith("{")]
        hashes = {r["weights_sha256"] for r in records if r["event"] == "weights"}
        if len(hashes) > 1:
            return name
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.3", not_synchronised)

# %% [markdown]
# ## Exercise 05.4 · The referee (10 minutes, medium)
#
# Someone measured four configurations in rounds. In each round one was measured twice. Which of the
# others are really faster or slower?
#
# `seconds` has a row for each round, and the columns `A`, `A again`, and others: seconds of a step.
# Return a dictionary with a verdict for each of the others: `"faster"` or `"slower"` than `A`, or
# `"no difference shown"`. A difference is shown if
#
# - the median of the ratios to `A`, taken within the rounds, lies outside the range of the ratios
#   of `A again` to `A`, **and**
# - every round's ratio is on the same side of 1.
#
# <details><summary>Hint</summary>
# `seconds.div(seconds["A"], axis=0)` divides each row by its own `A`. Two columns of it are not
# what you judge; one of them is the noise.
# </details>

# %%
seconds = pd.DataFrame(
    {
        "A": [0.110, 0.121, 0.108, 0.115, 0.190],  # a busy minute in the last round
        "A again": [0.112, 0.117, 0.110, 0.113, 0.196],
        "B": [0.090, 0.098, 0.089, 0.093, 0.150],
        "C": [0.112, 0.123, 0.109, 0.116, 0.193],
    }
)
seconds


# %% tags=["answer"]
def judge(seconds):
    """{column: "faster", "slower" or "no difference shown"} for all but A and A again."""
    # BEGIN SOLUTION
    ratios = seconds.div(seconds["A"], axis=0)  # above 1: it takes longer
    noise = ratios["A again"]
    verdicts = {}
    for name in ratios.columns.drop(["A", "A again"]):
        ratio = ratios[name]
        outside = not noise.min() <= ratio.median() <= noise.max()
        if outside and (ratio < 1).all():
            verdicts[name] = "faster"
        elif outside and (ratio > 1).all():
            verdicts[name] = "slower"
        else:
            verdicts[name] = "no difference shown"
    return verdicts
    # END SOLUTION


# %% tags=["check"]
workshop.check("05.4", judge)

# %% [markdown]
# Try it on the table above: `judge(seconds)`. `C` was slower in every round, and still nothing is
# shown: two runs of `A` differ by as much. Lesson 01's `interleaved.verdict` takes the noise of the
# median round, and lets one round of nine be on the other side. (Lesson 05 compares *jobs*, whose
# rounds aren't pairs.)

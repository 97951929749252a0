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
# # 10 · Exercises: interruptions and failures
#
# Five exercises; the last is a lab, in which you diagnose five jobs. None of them needs SageMaker.

# %%
import json
import os
import re
from collections import Counter
from pathlib import Path

import workshop
from workshop import plots
from workshop.failures import five_jobs

# %% [markdown]
# ## Exercise 10.1 · What an interruption cost (6 minutes, easy)
#
# Here is the log of a job that was interrupted once, shortened:
#
# ```
# {"event": "step", "step": 330, "train_loss": 0.41}
# {"event": "step", "step": 340, "train_loss": 0.40}
# SIGTERM: the instance is taken away
# {"event": "resumed", "step": 300}
# {"event": "step", "step": 310, "train_loss": 0.43}
# ```
#
# It had reached step 340 and resumed from step 300: 40 steps were done twice. Write the function
# that takes the lines of such a log and returns how many steps were done twice, over **all**
# interruptions. Some lines aren't JSON.
#
# <details><summary>Hint</summary>
# Remember the step that was reached last. At each "resumed" add the distance, and remember the
# step from which it resumed.
# </details>


# %% tags=["answer"]
def done_twice(lines):
    """How many steps were done twice. Lines: texts, in the order of the log."""
    # BEGIN SOLUTION
    total = reached = 0
    for line in lines:
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if event["event"] == "resumed":
            total += reached - event["step"]
        if event["event"] in ("resumed", "step"):
            reached = event["step"]
    return total
    # END SOLUTION


# %% tags=["check"]
workshop.check("10.1", done_twice)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 10.2 · Which mistake do the hashes show? (8 minutes, medium)
#
# Five trainings ended without an error. Each rank left a record:
#
# ```
# {"rank": 0, "steps": 20, "images": "9f74…",
#  "at_start": "da6d…", "after_first": "795e…", "at_end": "2f14…"}
# ```
#
# `steps` is how many steps it took, `images` a hash of the images that it read, and the other three
# are hashes of its weights. Write the function that takes such records, one for each rank, and
# returns which mistake was made:
#
# - `"steps"`: the ranks took different numbers of steps;
# - `"images"`: all ranks read the same images;
# - `"start"`: they started from different weights;
# - `"gradients"`: they started alike and did not average their gradients in the first step;
# - `None`: nothing of this.
#
# If there are several, return the first of this list.
#
# <details><summary>Hint</summary>
# Collect the values of each key in a set: how many different ones are there? What must be equal on
# all ranks, and what must not? Compare the weights after the first step, not those at the end:
# a later mistake would show there, too.
# </details>


# %% tags=["answer"]
def mistake(records):
    """ "steps", "images", "start", "gradients" or None. Records: a dictionary for each rank."""
    # BEGIN SOLUTION
    different = {key: len({record[key] for record in records}) for key in records[0]}
    if different["steps"] > 1:
        return "steps"
    if different["images"] == 1:
        return "images"
    if different["at_start"] > 1:
        return "start"
    return "gradients" if different["after_first"] > 1 else None
    # END SOLUTION


# %% tags=["check"]
workshop.check("10.2", mistake)

# %% [markdown]
# ## Exercise 10.3 · Diagnose a hang (10 minutes, medium)
#
# A job of four ranks hangs. Somebody sent SIGUSR1 to each rank, and each printed its stack, the
# innermost call first. The ranks print at the same time, so their lines may be mixed:
#
# ```
# [0] {"event": "step", "step": 120}
# [0] Stack (most recent call first):
# [0]   File "torch/distributed/distributed_c10d.py", line 2806 in all_reduce
# [2] Stack (most recent call first):
# [2]   File "scripts/train.py", line 61 in read_file
# [0]   File "scripts/train.py", line 88 in train_step
# [2]   File "scripts/train.py", line 84 in train_step
# ```
#
# (and so on, for ranks 1 and 3). Write the function that takes such a log, a text, and returns the
# rank that is somewhere else and the function in which it is: `(2, "read_file")`. Compare the
# **innermost** calls: that rank's differs from all the others'. If all ranks are in the same call,
# the log doesn't show the cause: return `None`.
#
# <details><summary>Hint</summary>
# re.match(r"\[(\d+)\] +File .* in (\w+)", line) reads a frame. The first frame of each rank is its
# innermost. Count how often each function occurs: collections.Counter.
# </details>


# %% tags=["answer"]
def culprit(log):
    """(rank, function) of the rank that is somewhere else; None if there is no such rank."""
    # BEGIN SOLUTION
    innermost = {}
    for line in log.splitlines():
        if frame := re.match(r"\[(\d+)\] +File .* in (\w+)", line):
            innermost.setdefault(int(frame[1]), frame[2])
    counts = Counter(innermost.values())
    if len(counts) < 2:
        return None
    rare = min(counts, key=counts.get)
    return next((rank, function) for rank, function in innermost.items() if function == rare)
    # END SOLUTION


# %% tags=["check"]
workshop.check("10.3", culprit)

# %% [markdown]
# ## Exercise 10.4 · A checkpoint that is never half (13 minutes, hard)
#
# A spot instance can be taken away while a checkpoint is being written. Then the file must be the
# complete old one or the complete new one. Write `save(path, chunks)`: `chunks` yields the bytes of
# the new checkpoint piece by piece, and may raise an error at any piece. Write each piece as it
# comes. If there is an error, `save` must raise it too, leave the old file as it was, and leave
# nothing else in its folder.
#
# <details><summary>Hint</summary>
# Write to another name in the same folder. When everything is written and on the disk (flush, then
# os.fsync), os.replace gives it its name in one step. On an error, remove what you wrote and raise
# the error again. A rename from another folder isn't one step: that may be another disk.
# </details>


# %% tags=["answer"]
def save(path, chunks):
    """Replace the file `path` by the bytes of `chunks`, wholly or not at all."""
    # BEGIN SOLUTION
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    # END SOLUTION


# %% tags=["check"]
workshop.check("10.4", save)

# %% [markdown]
# ## Exercise 10.5 · Five jobs (20 minutes, hard)
#
# The next cell trains one model five times, in two ranks each, for about a minute in all. Four of
# the jobs are slow, each for a different reason, and with one nothing is wrong. Your name decides
# which is which, so a neighbour's answer doesn't help.
#
# | cause | what it is |
# |---|---|
# | `"straggler"` | one rank computes longer than the other, which waits for it in each collective |
# | `"slow input"` | one rank waits for its next batch, and so comes late to the collective |
# | `"tiny buckets"` | the gradients go in many small collectives, and each costs a latency |
# | `"narrow link"` | few large collectives take long, because the link carries few bytes a second |
# | `"oversubscribed cores"` | the ranks have more threads than the machine has cores |
# | `"nothing is wrong"` | the step is mostly compute, on all ranks alike |
#
# At least one of the six has no job.
#
# <details><summary>Hint</summary>
# Compare the parts of a step with each other and between the two ranks. Jobs differ in batch and
# buckets, so their computing differs, too: a long step alone is no fault; see examples per second.
# If a rank waits, the cause is at the other one: does that compute longer, or do its data come
# late? If communication is large on both ranks, how many collectives are there, and how large is
# each?
# </details>

# %%
jobs = five_jobs.start("your name")

# %% [markdown]
# **First the evidence**, in ms per step, as medians over all steps: step = compute + data + wait +
# communication. `data` is the time until the rank has its next batch, `wait` the time in a
# collective until the other rank arrives, and `communication` what is left of the collective: the
# exposed communication. `collectives` and `batch` are a rank's in one step.

# %%
jobs.table.set_index(["job", "rank"]).round(1)

# %% jupyter={"source_hidden": true} tags=["figure"]
parts = jobs.table[five_jobs.PARTS].rename(columns={"communication": "exposed communication"})
parts.index = [f"{job}, rank {rank}" for job, rank in jobs.table[["job", "rank"]].to_numpy()]
plots.stacked_bars(parts, "Five jobs: what a step consists of")

# %% [markdown]
# A trace shows when the ranks of a job called their collectives in the last four steps, which may
# differ from the medians above. Look at the others, too:

# %%
jobs.trace("A")

# %% [markdown]
# **Then your diagnosis.** Return for each job its cause and the rank that has it; `None` if the
# ranks are alike: `{"A": ("straggler", 0), "B": ("narrow link", None), ...}`. You may type the five
# lines, or write rules that read them off the table `evidence`. The check names the first job that
# is wrong.


# %% tags=["answer"]
def causes(evidence):
    """Job -> (cause, rank), the rank None where all are alike. evidence: the table above."""
    # BEGIN SOLUTION
    answers = {}
    for job, rows in evidence.set_index("rank").groupby("job"):
        shares = rows[["compute", "data", "wait", "communication"]].div(rows["step"], axis=0)
        if shares["data"].max() > 0.3:
            answers[job] = ("slow input", shares["data"].idxmax())
        elif rows["threads"].sum() >= 3 * rows["cores"].max():
            answers[job] = ("oversubscribed cores", None)
        elif rows["collectives"].max() >= 12:
            answers[job] = ("tiny buckets", None)
        elif shares["communication"].max() > 0.5:
            answers[job] = ("narrow link", None)
        elif shares["wait"].max() > 0.25:
            answers[job] = ("straggler", shares["wait"].idxmin())
        else:
            answers[job] = ("nothing is wrong", None)
    return answers
    # END SOLUTION


# %% tags=["check"]
workshop.check("10.5", causes)

# %% [markdown]
# Now ask the tool. Does it say what you said?

# %%
for name in jobs.of_name:
    print(f"Job {name}: {str(workshop.why(jobs[name])).partition('Evidence:')[0]}")

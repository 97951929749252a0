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
# # 10 · Interruptions and failures: resume exactly, and find the cause
#
# **After this lesson you can**
#
# - say what a checkpoint must hold, and show what happens if a part is missing;
# - let a spot job be interrupted, and prove that it ends with the same weights;
# - say how much work an interruption costs;
# - read a log that stopped, and find the rank to look at;
# - find a failure that reports no error at all.
#
# **Before:** [lesson 02](02_collectives.ipynb): what a rank waits for in an all-reduce.
# [Lesson 09](09_data.ipynb): channels.
#
# **Time:** 30 minutes, and 29 for the exercises. About two minutes of it are computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet. The broken trainings always run on this machine.
#
# **Cost on AWS:** about 0.03 USD: two jobs on one `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.08 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `epochs`: of the job that is interrupted. `checkpoint_every`: steps between two checkpoints.
# - `interrupt_at`: the step after which the emulator takes the job's instance away.
# - `instance_type`: of both jobs. `max_run`: seconds after which SageMaker ends a job.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
epochs = 150
checkpoint_every = 500
interrupt_at = 600
max_run = 600

# %%
import io
import json
import math
import re

import pandas as pd
import torch
from IPython.display import display

import data_prep
import workshop
from workshop import failures, plots

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
cost = workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run)
print(f"Two jobs: about {2 * cost.usd:.2f} USD on AWS, at most {2 * cost.most_usd:.2f} USD.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=2 * cost.usd, usd_at_most=2 * cost.most_usd)

# %% [markdown]
# ## What a checkpoint must hold
#
# A checkpoint is a file from which a training can continue. Besides the weights, two more things
# decide the next step:
#
# - the **optimizer's state**. SGD with momentum remembers earlier gradients; Adam remembers more;
# - the **position in the data**: which batch comes next. In this lesson the number of the step is
#   enough: it gives the epoch and the batch, and the images' order in an epoch depends only on the
#   epoch's number.
#
# The next cells train a small model for 60 steps. A second training stops after step 30 and saves a
# checkpoint. It's resumed from that checkpoint three times: with the weights only, with the
# optimizer's state as well, and with the step as well. Without the step it begins again with the
# first batch. **Predict, then run.**

# %%
guess = workshop.guess(
    equal="How many of the three resumed trainings end with exactly the same weights?"
)


# %%
def new():
    """A model of one layer, always with the same first weights, and its optimizer."""
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


images, labels = (torch.tensor(array) for array in data_prep.digits.load())
images = images.reshape(-1, 64).float() / 255
steps_per_epoch = len(images) // 64


def train(model, optimizer, first: int, last: int) -> None:
    """Train from step `first` up to step `last`, each with a batch of 64."""
    for step in range(first, last):
        epoch, position = divmod(step, steps_per_epoch)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        batch = order[64 * position : 64 * (position + 1)]
        loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %%
whole = new()
train(*whole, 0, 60)

stopped = new()
train(*stopped, 0, 30)
parts = {"model": stopped[0].state_dict(), "optimizer": stopped[1].state_dict(), "step": 30}
file = io.BytesIO()
torch.save(parts, file)

variants = {
    "weights": ["model"],
    "weights, optimizer": ["model", "optimizer"],
    "weights, optimizer, step": ["model", "optimizer", "step"],
}
difference = {}
for name, used in variants.items():
    file.seek(0)
    checkpoint = torch.load(file)
    model, optimizer = new()
    model.load_state_dict(checkpoint["model"])
    if "optimizer" in used:
        optimizer.load_state_dict(checkpoint["optimizer"])
    first = checkpoint["step"] if "step" in used else 0
    train(model, optimizer, first, first + 30)
    difference[name] = (model.weight - whole[0].weight).abs().max().item()

# %%
guess.compare(equal=sum(value == 0 for value in difference.values()))
pd.Series(difference, name="largest difference from the weights of the whole training").to_frame()

# %% jupyter={"source_hidden": true} tags=["results"]
assert difference["weights, optimizer, step"] == 0, "Resuming with everything must be exact."
assert min(list(difference.values())[:2]) > 1e-4, (
    f"A part of the checkpoint is not used: {difference}"
)
workshop.save_results(resumed_with=difference)

# %% [markdown]
# None of the three raised an error. If you forget to restore a part, you get a *different*
# training, and no message. A training with more state has more to save: a learning rate schedule,
# the loss scale of mixed precision (`GradScaler`), the state of the random numbers (dropout,
# augmentation), and the position of a sampler that the step's number alone doesn't give.
#
# A checkpoint should be written **atomically**, that is, completely or not at all: first under
# another name, then renamed. If the instance disappears in the middle of writing, the previous
# checkpoint is still whole. Here is how this kit's script writes and reads one. It keeps a single
# checkpoint. If the weights go wrong (a loss of NaN) before the next one is written, every restart
# resumes the wrong weights; so a long training should keep its last few.

# %%
display(workshop.show_function("train/train_torch.py", "save_checkpoint"))
workshop.show_function("train/train_torch.py", "resume")

# %% [markdown]
# ## A spot job, interrupted
#
# **Spot instances** are spare capacity: up to 90 % cheaper
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html)). AWS
# takes them back when it needs them. (Older texts say that somebody can outbid you. A SageMaker job
# has no price to bid.)
#
# Don't count on a warning. EC2 gives the owner of an instance [two minutes'
# notice](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-interruptions.html); SageMaker's
# pages don't promise that your script is told. Users report that even SIGTERM, which a job gets
# when somebody stops it, doesn't reach a script that AWS's toolkit has started
# ([issue](https://github.com/aws/sagemaker-training-toolkit/issues/125), open in November 2026).
#
# So a spot job must be able to resume from what it wrote earlier. Three things make that possible:
#
# 1. the script writes checkpoints to `/opt/ml/checkpoints`;
# 2. SageMaker copies that folder to S3 while the job runs, and back before it starts again: the
#    estimator's `checkpoint_s3_uri`;
# 3. the script looks there first when it starts.
#
# (SageMaker copies the whole folder, so the half-written file may be copied, too. That is harmless:
# it has a name that `resume` never reads.)
#
# Below, one job runs undisturbed. A second one, with the same settings, has its instance taken away
# soon after its log has reached step `interrupt_at` (600, unless you changed it). On AWS you can't
# order an interruption; the emulator can. (On AWS the second job usually runs through. Its
# hash is still compared, and no step is done twice.) The emulator needs a moment to take the
# instance away, and meanwhile the training goes on, at a few milliseconds per step.
#
# `spot=True` sets three arguments of the estimator: `use_spot_instances`, `checkpoint_s3_uri`, and
# `max_wait`, the limit for the job including the time in which it waits for an instance.

# %%
guess = workshop.guess(
    same=("Will both jobs end with the same weights, to the last bit?", ["yes", "no"]),
    twice=f"A checkpoint every {checkpoint_every} steps, interrupted soon after step "
    f"{interrupt_at}: how many steps are done twice?",
)

# %%
from sagemaker.pytorch import PyTorch

from workshop.jobs.interruption import interrupt_at_step


def training(name: str, spot: bool) -> PyTorch:
    """A training of one process that writes a checkpoint every `checkpoint_every` steps."""
    steps = {"epochs": epochs, "checkpoint-every": checkpoint_every, "threads-per-rank": 1}
    return PyTorch(
        entry_point="train_torch.py",
        framework_version="2.2.0",
        py_version="py310",
        instance_count=1,
        instance_type=instance_type,
        hyperparameters=steps,
        **session.job_settings(name, spot=spot) | {"max_run": max_run},
    )


undisturbed = training("alone", spot=False)
undisturbed.fit(channels, wait=False)
ended = {"undisturbed": workshop.follow(undisturbed)}

# %% [markdown]
# Now the second job. In a terminal you would interrupt it with `local-sagemaker interrupt JOB`.
# When it has ended, the lesson prints its states, joined by arrows: after `Interrupted` it starts
# again, on another instance. Then come two hashes, one for each job's final weights. Equal hashes
# mean equal weights.

# %%
spot = training("spot", spot=True)
spot.fit(channels, wait=False)
interrupt_at_step(spot.latest_training_job.name, interrupt_at, session)
ended["interrupted"] = workshop.follow(spot)

# %%
transitions = ended["interrupted"].description["SecondaryStatusTransitions"]
statuses = [transition["Status"] for transition in transitions]
print(" → ".join(statuses))
hashes = {name: job.table("weights")["weights_sha256"].iloc[-1] for name, job in ended.items()}
for name, weights in hashes.items():
    print(f"{name}: {weights[:16]}…")
same = len(set(hashes.values())) == 1
if not same and target == "aws":
    print("The weights differ. The second instance may have another processor, whose sums can")
    print("differ in the last bit: compare the losses before you suspect the checkpoint.")

# %%
events = ended["interrupted"].events
resumed = next((event["step"] for event in events if event["event"] == "resumed"), None)
before = events[: [event["event"] for event in events].index("resumed")] if resumed else []
reached = max((event.get("step", 0) for event in before), default=0)
twice = max(reached - (resumed or 0), 0)
if resumed:
    print(f"reached step {reached}, resumed from step {resumed}")
guess.compare(same="yes" if same else "no", twice=twice)

# %% jupyter={"source_hidden": true} tags=["figure"]
last = max(event.get("step", 0) for event in ended["undisturbed"].events)
spans = {
    "undisturbed": (0, last),
    "until the interruption": (0, reached or last),
    "resumed": (resumed or 0, last),
}
title = "The interruption lost the steps since the last checkpoint"
title = title if resumed else "The steps of both jobs"
across = f"step (the last is {last:,}); a black line is a checkpoint"
description = "; ".join(
    f"{name}: from step {first} to step {end}" for name, (first, end) in spans.items()
)
alt = f"{title}. {description}. {twice} steps are done twice."

# %% jupyter={"source_hidden": true} tags=["figure"]
with plots.canvas(title, across, size=(7.5, 2.6), alt=alt) as axes:
    for row, (first, end) in enumerate(spans.values()):
        axes.barh(row, end - first, left=first, height=0.5, color=plots.COLOURS[4])
        saved = range(max(first, checkpoint_every), end + 1, checkpoint_every)
        axes.plot(list(saved), [row] * len(saved), "|", color="black", markersize=20)
    if resumed:
        look = {"color": "none", "hatch": "////", "edgecolor": "black", "height": 0.5}
        axes.barh([1, 2], twice, left=resumed, label=f"{twice} steps, done twice", **look)
        axes.plot(reached, 1, "X", color="black", markersize=11, label="instance taken away")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        axes.set_xlim(max(resumed - checkpoint_every, 0), resumed + 3 * checkpoint_every)
    axes.set_yticks(range(3), list(spans))
    axes.set_ylim(2.5, -0.5)
    axes.grid(axis="y", visible=False)

# %% jupyter={"source_hidden": true} tags=["results"]
assert target == "aws" or resumed, (
    "The job had ended before it was interrupted: choose a smaller interrupt_at, or more epochs."
)
assert same or target == "aws", "The resumed training differs: what does the checkpoint lack?"
assert not resumed or twice > 0, "Interrupted exactly at a checkpoint: run this section again."
workshop.save_results(
    way=statuses,
    resumed=[event["step"] for event in events if event["event"] == "resumed"],
    hashes=hashes,
    same=same,
    twice=twice,
    reached=reached,
)

# %% [markdown]
# The steps after the last checkpoint are lost and done again. (The script logs every tenth step
# only, so the real number can be up to nine steps higher than the one in the picture.) So an
# interruption costs up to `checkpoint_every` steps, half of that on average, and more if the newest
# checkpoint wasn't copied to S3 in time. It also costs the time of a new start. With steps as short
# as these the new start costs more: compare the two jobs' training times above.
#
# **How often should you write a checkpoint?** Frequent ones lose fewer steps, but each takes time,
# too. If writing one takes C seconds, and an interruption comes every M seconds on average, the sum
# of both losses is smallest with about the square root of 2 * C * M seconds between checkpoints
# ([Young, 1974](https://doi.org/10.1145/361147.361115)):

# %%
write_seconds, hours_between_interruptions = 30, 8  # an example: put in your own
between = math.sqrt(2 * write_seconds * 3600 * hours_between_interruptions)
print(f"a checkpoint every {between / 60:.0f} minutes")

# %% [markdown]
# On a GPU the weights are close, but often not equal: some operations add in a different order each
# time ([PyTorch](https://docs.pytorch.org/docs/stable/notes/randomness.html)).
#
# With several ranks there is one more rule: **rank 0 alone writes**, and every rank resumes from
# what rank 0 read. On the other instances the folder with the checkpoint may be empty. So each
# rank reads what its folder has, and then rank 0's contents replace everybody's. (They are sent as
# one Python object. That suits a small model. For gigabytes there is
# `torch.distributed.checkpoint`.)

# %%
workshop.show_function("train/train_torch_ddp.py", "resume")

# %% [markdown]
# ## A log without an error
#
# Distributed jobs rarely break with a clear message. `workshop break` can reproduce ten failures on
# this machine; this section and the next take one each. The cell picks the first by its number,
# because its name would tell you the cause.
#
# Two ranks train for 20 steps, and the run ends without an error. Read the log, and look for the
# cause. Each line begins with its rank in brackets; of each hash you see the first ten digits, and
# a list of all images is left out. Compare the ranks, not the steps.

# %%
reproducible = failures.table()
quiet = failures.reproduce(reproducible.index[3])
for line in quiet.log:
    shown = line.split(', "images":')[0]
    print(re.sub(r"\b([0-9a-f]{10})[0-9a-f]{20,}", r"\1…", shown))

# %%
causes = [
    "they read the same images",
    "they started from different weights",
    "they did not average their gradients",
    "one of them stopped early",
]
guess = workshop.guess(cause=("What is wrong with these two ranks?", causes))

# %% [markdown]
# Now check your diagnosis. Each rank printed hashes: of its weights at the start, after the first
# step and at the end, and of the images it saw. The table has the first ten digits of each.

# %%
evidence = [json.loads(line.split(" ", 1)[1]) for line in quiet.log if '"evidence"' in line]
ranks = pd.DataFrame(evidence).set_index("rank").sort_index()
shown = ["weights_at_start", "weights_after_first_step", "weights_at_end", "images_seen"]
display(ranks[shown].map(lambda text: text[:10]))
differ = ranks[shown].nunique() > 1
same_images = not differ["images_seen"]
cause = causes[0] if same_images else causes[1] if differ["weights_at_start"] else causes[2]
guess.compare(cause=cause)

# %% jupyter={"source_hidden": true} tags=["results"]
losses = [json.loads(line.split(" ", 1)[1]) for line in quiet.log if '"step"' in line]
first_losses = {loss["rank"]: loss["train_loss"] for loss in losses if loss.get("step") == 1}
assert quiet.as_described and cause == causes[1], f"The log shows something else: {differ}"
workshop.save_results(
    quiet={name: bool(value) for name, value in differ.items()},
    quiet_cause=cause,
    losses_by_rank=first_losses,
)

# %% [markdown]
# The images differ, as they should. The weights differ before the first step, and that alone
# explains what follows. Whether the ranks average their gradients as well, these hashes can't show.
# If they do, both take equal steps from different starts, and the difference stays. Each rank
# trained a model of its own; a job would save rank 0's and drop the other.
#
# The remedy is a broadcast before the first step ([lesson 04](04_horovod_on_the_notebook.ipynb)).
# **The fix is what proves the diagnosis.** With `fixed=True` the same script broadcasts rank 0's
# weights, and nothing else changes. If the ranks did not average their gradients, their weights
# would still differ at the end:

# %%
repaired = failures.reproduce(reproducible.index[3], fixed=True)
hashes_at_end = [
    json.loads(line.split(" ", 1)[1])["weights_at_end"]
    for line in repaired.log
    if '"evidence"' in line
]
print(f"with the broadcast: {len(hashes_at_end)} ranks, {len(set(hashes_at_end))} set of weights")

# %% jupyter={"source_hidden": true} tags=["results"]
assert repaired.as_described and len(set(hashes_at_end)) == 1, str(repaired)
workshop.save_results(quiet_fixed=len(hashes_at_end))

# %% [markdown]
# The log has a second trap: both ranks print a `train_loss`, and each is the loss of one rank's
# images. `model.fit(verbose=2)` on every rank does the same. Average a metric over the ranks, and
# print it on one.
#
# ## A log that stops
#
# The second case is a hang. A collective returns when *all* ranks have called it. So if one rank is
# somewhere else, the others wait, silently: no error, no new line, and a bill that grows. What you
# see is the symptom, on the ranks that wait.
#
# The method is always the same: **ask each rank where it is, and look for the one that is somewhere
# else.** Write `faulthandler.register(signal.SIGUSR1)` at the start of your script; then `kill
# -USR1 PID` makes a process print its stack. (For scripts without it there is `py-spy dump --pid
# PID`.) Both need a shell on the machine. A SageMaker job has one only if you start it with
# `enable_remote_debug=True`, and with more permissions than this course's roles have
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/train-remote-debugging.html), read in
# November 2026). Without a shell, write `faulthandler.dump_traceback_later(600, repeat=True)`:
# every ten minutes each rank prints its stacks to the job's log.
#
# The next cell reproduces a hang and makes rank 1 print its stack. The timeout of its collectives
# is 10 seconds, instead of PyTorch's 30 minutes for gloo. Look for rank 1's stack, and for the rank
# that timed out. (`prterun` is the program behind `mpirun`.)
#
# A stack has the innermost call first. (Rank 0's traceback, from Python itself, has it last.) The
# first line that belongs to the script is where the rank is now; lines above it are inside Python's
# own library. (If there are several stacks, look at the last one: an earlier one may come from a
# rank that was still starting.)

# %%
hang = failures.reproduce("rank-hangs")
for line in hang.log:
    print(line[:160])

# %%
guess = workshop.guess(
    elsewhere=("Which rank is not in the collective?", ["rank 0", "rank 1"]),
    where=(
        "In which function is it?",
        ["wait_for", "prepare", "barrier", "main", "cleanup"],
    ),
)

# %% [markdown]
# The next cell reads rank and function from the last stack. It also prints the line of the rank
# whose collective timed out:

# %%
text = "\n".join(hang.log)
_, last_stack = text.rsplit("(most recent call first):", 1)
in_script = r"\[(\d+)\] +File .*rank_hangs\.py.* line \d+ in (\w+)"
rank, function = re.search(in_script, last_stack).groups()
waiting = next(line for line in hang.log if "Timed out waiting" in line)
print(f"rank {rank} is in {function}()")
print(waiting[:160])
guess.compare(elsewhere=f"rank {rank}", where=function)

# %% jupyter={"source_hidden": true} tags=["results"]
assert hang.as_described, str(hang)
assert not waiting.startswith(f"[{rank}]"), "The rank that waits is not the one elsewhere."
workshop.save_results(hang_rank=int(rank), hang_function=function, hang_waiting=waiting[:3])

# %% [markdown]
# Now read the code that called this function:

# %%
workshop.show_function("demos/breaking/rank_hangs.py", "train")

# %% [markdown]
# Rank 1 waits for a file before it comes to the barrier. Rank 0 writes that file after the barrier.
# Each waits for the other. Rank 1's stack said where to read; the mistake itself is in the order of
# rank 0's calls.
#
# The fix is the proof here, too. With `fixed=True` rank 0 writes first, and nothing else changes:

# %%
corrected = failures.reproduce("rank-hangs", fixed=True)
print(f"{corrected.verdict}: {corrected.line}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert corrected.as_described, str(corrected)
workshop.save_results(fixed=corrected.as_described, hang_seconds=hang.seconds)

# %% [markdown]
# Three habits keep such failures short and cheap:
#
# 1. Give each job a `max_run` that isn't much longer than it needs. It ends a job that nothing else
#    ends.
# 2. Give collectives a *short* timeout: `init_process_group(timeout=…)`. PyTorch's own is 30
#    minutes for gloo and 10 for NCCL. After it a waiting rank fails. With gloo its traceback
#    shows the call in which it waited; NCCL ends the process, and its log names the collective.
# 3. Let every rank print a line now and then, with its rank and what it is about to do. In a hang
#    all fall silent, but their last lines show which one is somewhere else.
#
# Here are the symptoms of all ten. Try others at a shell: `workshop break` lists them with their
# remedies, as the field guide on the course's site does. `workshop break rank-dies` runs one, and
# `--fixed` runs it without the mistake.

# %%
with pd.option_context("display.max_colwidth", None):
    display(reproducible[["symptom"]])

# %% [markdown]
# ## Exercises
#
# In [exercises/10](exercises/10_interruptions_and_failures.ipynb), each with a check:
#
# 1. *What an interruption cost* (6 minutes, easy): count the steps done twice, from a log.
# 2. *Diagnose a hang* (10 minutes, medium): find the rank that is somewhere else, from its log.
# 3. *A checkpoint that is never half* (13 minutes, hard): write it so that an interruption at any
#    moment leaves a whole one.
#
# ## Check yourself

# %%
workshop.quiz("10")

# %% [markdown]
# ## Summary
#
# - A checkpoint holds weights, optimizer and position in the data, and is written under another
#   name first. Then an interrupted training is the same training: on a CPU, to the last bit.
# - An interruption costs the steps since the last checkpoint, and the time of a new start. Don't
#   count on a warning.
# - Failures of distributed training are mostly silent. Compare hashes between ranks.
# - In a hang, start at the rank that is somewhere else: what it waits for leads to the cause.
# - Prove a diagnosis with its fix.

# %% [markdown]
# ## Clean up
#
# Both jobs have ended, and nothing runs. Checkpoints, models and logs stay until you delete them:
# [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# You have trained, served and broken models. [Lesson 99](99_clean_up.ipynb) deletes what is left,
# and proves it.

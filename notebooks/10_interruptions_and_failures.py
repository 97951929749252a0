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

# %% [markdown] slideshow={"slide_type": "slide"}
# # 10 · Interruptions and failures: resume exactly, and find the cause
#
# **After this lesson you can**
#
# - say what a checkpoint must hold, and show what happens if a part is missing;
# - say how much work an interruption costs, and how often to write a checkpoint;
# - write a checkpoint that is never half-written, and continue from it with fewer ranks;
# - find the cause of a training that reports no error and is wrong;
# - read a log that stopped, and find the rank to look at.
#
# **Before:** [lesson 02](02_collectives.ipynb): what a rank waits for in an all-reduce. [Lesson
# 04](04_horovod_on_the_notebook.ipynb): the broadcast at the start. [Lesson 09](09_data.ipynb):
# channels.
#
# **Time:** 60 minutes, and 57 for the exercises. About two minutes of it are computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet. There only the three jobs would run; all else runs here.
#
# **Cost on AWS:** about 0.05 USD: three jobs on one `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.13 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `instance_type`: of all three jobs. `epochs`: of the first two, one undisturbed and one
#   interrupted. `max_run`: seconds after which SageMaker ends a job.
# - `checkpoint_every`: steps between two checkpoints. `interrupt_at`: the step after which the
#   emulator takes the second job's instance away.
# - `schedules`: of random interruptions, for the measurement of the best interval.
# - `elastic_ranks`: with how many ranks the third job trains, one after the other, `elastic_steps`
#   steps each.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
epochs = 90
checkpoint_every = 500
interrupt_at = 600
elastic_ranks = [4, 3, 4]
elastic_steps = 40
schedules = 20
max_run = 600

# %%
import io
import json
import math
import re
import runpy
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import torch
from IPython.display import display

import data_prep
import workshop
from workshop import failures, plots

pd.set_option("display.max_colwidth", None)  # whole sentences in tables
session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
cost = workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run)
most = workshop.up_to_cents(3 * cost.most_usd)
print(f"Three jobs: about {3 * cost.usd:.2f} USD on AWS, at most {most:.2f} USD.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=3 * cost.usd, usd_at_most=3 * cost.most_usd)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result: interrupted, and the same weights
#
# **Spot instances** are spare capacity: up to 90 % cheaper
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html)), and AWS
# takes them back when it needs them. So a job on them must be able to resume:
#
# 1. the script writes checkpoints to `/opt/ml/checkpoints`;
# 2. SageMaker copies that folder to S3 while the job runs, and back before it starts again: the
#    estimator's `checkpoint_s3_uri`;
# 3. the script looks there first when it starts.

# %% [markdown]
# Below, a job runs undisturbed. A second one, with the same settings, loses its instance soon after
# its log has reached step `interrupt_at`. On AWS you can't order an interruption, and the second
# job usually runs through. Each ends with a **hash** of its weights: if a single bit differs, so
# does the hash. `spot=True` sets `use_spot_instances`, `checkpoint_s3_uri`, and `max_wait`, the
# limit for the job including the wait for an instance. **Predict, then run.**

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    same=("Will both jobs end with the same weights, to the last bit?", ["yes", "no"]),
    resumed=f"A checkpoint every {checkpoint_every} steps, interrupted soon after step "
    f"{interrupt_at}: after which step does the training go on?",
)

# %%
from sagemaker.pytorch import PyTorch

from workshop.jobs.interruption import interrupt_at_step


def training(name: str, spot: bool) -> PyTorch:
    """A training of one process that writes a checkpoint every `checkpoint_every` steps."""
    settings = {"epochs": epochs, "checkpoint-every": checkpoint_every, "log-every": 1}
    return PyTorch(
        entry_point="train_torch.py",
        framework_version="2.2.0",
        py_version="py310",
        instance_count=1,
        instance_type=instance_type,
        hyperparameters=settings | {"threads-per-rank": 1},
        **session.job_settings(name, spot=spot) | {"max_run": max_run},
    )


undisturbed = training("alone", spot=False)
undisturbed.fit(channels, wait=False)
ended = {"undisturbed": workshop.follow(undisturbed)}

# %% [markdown]
# <!-- SDK v3: undisturbed -->

# %% [markdown]
# Now the second job:

# %%
spot = training("spot", spot=True)
spot.fit(channels, wait=False)
interrupt_at_step(spot.latest_training_job.name, interrupt_at, session)
ended["interrupted"] = workshop.follow(spot)

# %% [markdown]
# On AWS a spot job's billable seconds are fewer than its training's: that is the discount
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html)).
# The emulator gives none.
#
# <!-- SDK v3: interrupted -->

# %% jupyter={"source_hidden": true}
events = ended["interrupted"].events
resumed = next((event["step"] for event in events if event["event"] == "resumed"), None)
before = events[: [event["event"] for event in events].index("resumed")] if resumed else []
reached = max((event.get("step", 0) for event in before), default=0)
twice = max(reached - (resumed or 0), 0)
hashes = {name: job.table("weights")["weights_sha256"].iloc[-1] for name, job in ended.items()}
same = len(set(hashes.values())) == 1
transitions = ended["interrupted"].description["SecondaryStatusTransitions"]
statuses = [transition["Status"] for transition in transitions]
step_seconds = ended["undisturbed"].table("epoch")["step_seconds"].median()

# %% jupyter={"source_hidden": true} tags=["figure"]
last = max(event.get("step", 0) for event in ended["undisturbed"].events)
spans = {
    "undisturbed job": (0, last),
    "interrupted job, first part": (0, reached or last),
    "interrupted job, second part": (resumed or 0, last),
}
title = (
    f"Interrupted at step {reached:,}, resumed from {resumed or 0:,}: {twice:,} steps done twice"
)
title += f"; the weights at the end are {'equal to the last bit' if same else 'not equal'}"
title = title.replace("; ", ";\n")
title = title if resumed else f"Never interrupted; same weights: {same}"
description = "; ".join(
    f"{name}: from step {first:,} to step {end:,}" for name, (first, end) in spans.items()
)
alt = f"{title}. {description}.".replace("\n", " ")

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
with plots.canvas(title, "step", size=(7.5, 2.9), alt=alt) as axes:
    for row, (first, end) in enumerate(spans.values()):
        axes.barh(row, end - first, left=first, height=0.5, color=plots.COLOURS[4])
        saved = range(first + checkpoint_every, end + 1, checkpoint_every)
        look = {"color": "black", "markersize": 20, "markeredgewidth": 2.5, "zorder": 4}
        label = {} if row else {"label": "checkpoint written"}
        axes.plot(list(saved), [row] * len(saved), "|", **look, **label)
    if resumed:
        look = {"color": "none", "hatch": "////", "edgecolor": "black", "height": 0.5}
        axes.barh([1, 2], twice, left=resumed, label="done twice", **look)
        axes.plot(reached, 1, "X", color="black", markersize=11, label="instance taken away")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), markerscale=0.6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks(range(3), list(spans))
    axes.set_ylim(2.5, -0.5)
    axes.grid(axis="y", visible=False)

# %% slideshow={"slide_type": "-"}
print(" → ".join(statuses))
for name, weights in hashes.items():
    print(f"{name}: final weights {weights[:16]}…")
print(f"Both jobs end with the same weights, to the last bit: {same}.")
if resumed:
    its_step = ended["interrupted"].table("epoch")["step_seconds"].median()
    late = (reached - interrupt_at) * its_step
    print(f"The second reached step {reached}: reading the log and taking the instance", end=" ")
    print(f"away took {late:.2f} s.")
    stop = statuses.index("Interrupted")
    again = transitions[statuses.index("Training", stop)]["StartTime"]
    waited = ended["interrupted"].phases["Interrupted"]
    line = next(line for line in ended["interrupted"].lines if '"event": "resumed"' in line.text)
    script_start, repeated = line.time - again.timestamp(), twice * its_step
    lengths = [round(job.phases["Training"], 1) for job in ended.values()]
    print(f"Phase Training: {lengths[0]:.1f} s and {lengths[1]:.1f} s. In the second job,")
    print(f"  {script_start:.1f} s went into the script's second start (Python, torch, the data),")
    print(f"  {repeated:.1f} s into the {twice} steps from {resumed} to {reached}, done twice;")
    print(f"together {script_start + repeated:.1f} s. The phases differ by", end=" ")
    print(f"{lengths[1] - lengths[0]:.1f} s: two runs differ in speed, too (step_seconds above).")
    print(f"Between its parts the second job had no instance for {waited:.1f} s: not billed.")
if not same and target == "aws":
    print("The second instance may have another processor, whose sums can differ in the last bit:")
    print("compare the losses before you suspect the checkpoint.")
guess.compare(same="yes" if same else "no", resumed=resumed or 0)

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
# What came after the last checkpoint is done again. If the newest has reached S3, that is at most
# `checkpoint_every` steps, and half of that on average; otherwise more.
#
# Don't count on a warning: EC2 gives the owner of an instance [two minutes'
# notice](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-interruptions.html), but
# SageMaker's pages don't promise that your script is told.
#
# On a GPU the weights are often not equal: some operations add in a different order each time
# ([PyTorch](https://docs.pytorch.org/docs/stable/notes/randomness.html)). The difference starts in
# the last bits and can grow with every step: compare losses and accuracy.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What a checkpoint must hold
#
# Besides the weights, two things decide the next step:
#
# - the **optimizer state**. SGD with momentum remembers earlier gradients; Adam remembers more;
# - the **position in the data**. Here the number of the step is enough: it gives epoch and batch,
#   and the images' order in an epoch depends only on the epoch's number.

# %% [markdown]
# The next cells train a small model for 60 steps. A second training stops after step 30 and is
# resumed four times: with the weights only; with weights and step; with weights and optimizer
# state; with all three. Without the step it begins with the first batch. **Predict, then run.**

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    equal="How many of the four resumed trainings end with exactly the same weights?"
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


whole = new()
train(*whole, 0, 60)

# %%
stopped = new()
train(*stopped, 0, 30)
parts = {"model": stopped[0].state_dict(), "optimizer": stopped[1].state_dict(), "step": 30}
file = io.BytesIO()
torch.save(parts, file)

variants = {
    "weights": ["model"],
    "weights, step": ["model", "step"],
    "weights, optimizer": ["model", "optimizer"],
    "weights, optimizer, step": ["model", "optimizer", "step"],
}
difference, losses = {}, {}
for name, used in variants.items():
    file.seek(0)
    checkpoint = torch.load(file)
    model, optimizer = new()
    model.load_state_dict(checkpoint["model"])
    if "optimizer" in used:
        optimizer.load_state_dict(checkpoint["optimizer"])
    first = checkpoint["step"] if "step" in used else 0
    train(model, optimizer, first, first + 30)
    pairs = zip(model.parameters(), whole[0].parameters(), strict=True)
    difference[name] = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
    losses[name] = torch.nn.functional.cross_entropy(model(images), labels).item()

# %% slideshow={"slide_type": "slide"}
guess.compare(equal=sum(value == 0 for value in difference.values()))
largest = max(part.abs().max().item() for part in whole[0].parameters())
loss = torch.nn.functional.cross_entropy(whole[0](images), labels).item()
print(f"Uninterrupted: the largest parameter is {largest:.2f}, the loss at the end {loss:.4f}.")
higher = sum(value > loss for value in list(losses.values())[:3])
print(f"Of the three incomplete ones {higher} end at a higher loss, {3 - higher} at a lower one.")
shown = {"largest difference of any parameter": difference, "loss at the end": losses}
pd.DataFrame(shown).map("{:.4g}".format)

# %% jupyter={"source_hidden": true} tags=["results"]
assert difference["weights, optimizer, step"] == 0, "Resuming with everything must be exact."
assert min(list(difference.values())[:3]) > 1e-4, (
    f"A part of the checkpoint is not used: {difference}"
)
workshop.save_results(resumed_with=difference)

# %% [markdown]
# The incomplete ones raised no error: you get a *different* training, and without the uninterrupted
# one beside it, its loss doesn't tell you.
#
# Other trainings have more to save: a learning rate schedule, the loss scale of mixed precision
# (`GradScaler`), the state of the random numbers (dropout, augmentation).
#
# Write a checkpoint **atomically**: first under another name, then renamed. SageMaker may copy the
# folder at any moment: thanks to the renaming it never finds half a `checkpoint.pt`, and a process
# that is killed leaves the previous one whole. (Power loss: exercise 4.) Keep the **last few**:
# with a single one, as here, a loss of NaN would be resumed again and again.
#
# With several ranks, **rank 0 alone writes**, and every rank resumes from what rank 0 read, because
# the folder of the others may be empty.

# %% slideshow={"slide_type": "slide"}
display(workshop.show_function("train/train_torch.py", "save_checkpoint"))
workshop.show_function("train/train_torch.py", "resume")

# %% [markdown]
# `resume` puts what it read into a list, `states`: in `train_torch_ddp.py` one line more,
# `dist.broadcast_object_list(states)`, sends it to all ranks, before `[state] = states` takes it
# out.
#
# ## How often to write one
#
# Writing a checkpoint takes C seconds, an interruption comes every M seconds on average, and t
# seconds lie between two checkpoints. Writing adds C / t to each second of work. An interruption
# costs half an interval on average, which adds t / (2 M). The sum is smallest at the square root of
# 2 C M ([Young,
# 1974](https://doi.org/10.1145/361147.361115); [Daly,
# 2006](https://doi.org/10.1016/j.future.2004.11.016) refines it: work that is done again can be
# interrupted, too, which counts where t or C is not much smaller than M). Not in the sum: the new
# start, which costs the same at any interval, and the copying to S3. C is measured here; M = 1 hour
# is an example.

# %%
script = runpy.run_path(str(workshop.TRAIN / "train_torch.py"))
model = script["Classifier"]((8, 8, 1), 64)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
sum(p.sum() for p in model.parameters()).backward()
optimizer.step()  # now there is a momentum to save
writing = []
with tempfile.TemporaryDirectory() as folder:
    for step in range(21):
        began = time.perf_counter()
        script["save_checkpoint"](folder, step, model, optimizer)
        writing.append(time.perf_counter() - began)
write_seconds = float(np.median(writing[1:]))  # without the first
fastest, slowest = min(writing[1:]), max(writing[1:])
print(f"A checkpoint takes {1000 * write_seconds:.1f} ms ({1000 * fastest:.1f} to ", end="")
print(f"{1000 * slowest:.1f}), as long as {write_seconds / step_seconds:.1f} steps.")

# %%
between_interruptions = 3600  # seconds: put in your own
here = checkpoint_every * step_seconds


def extra(seconds: float | np.ndarray, write: float):
    """What comes on top of a second of work, with so many seconds between two checkpoints."""
    return write / seconds + seconds / (2 * between_interruptions)


best, low, high = (
    math.sqrt(2 * write * between_interruptions) for write in (write_seconds, fastest, slowest)
)
large = math.sqrt(2 * 30 * between_interruptions)
print(f"Best here: a checkpoint every {best:.1f} s ({low:.1f} to {high:.1f}), ", end="")
print(f"{best / step_seconds:,.0f} steps; this lesson writes one every {here:.1f} s.")
print("(Without the copying to S3, which probably sets the limit for so small a model.)")
print(f"A model whose checkpoint takes 30 s: every {large / 60:.0f} minutes, ", end="")
print(f"and {100 * extra(large, 30):.0f} % comes on top.")

# %% [markdown]
# Does it hold? Jobs with checkpoints of 30 s are killed (`kill -9`) at random times, once an hour
# on average, and resumed. `schedules` lists of such times are drawn (a fixed seed: you get the
# same). Each list is used for three jobs: with an eighth of the best interval, the best, and eight
# times the best. Hours pass in seconds: on a job's own clock a step counts as 10 s. This tests the
# arithmetic; whether a cloud interrupts at random like this, it can't say. By the formula the two
# wrong intervals cost nearly the same, 50.8 and 52.5 % on top (equal, if intervals weren't rounded
# to steps of 10 s). **Predict, then run.**

# %% slideshow={"slide_type": "slide"}
no_difference = "no difference to be seen"
guess = workshop.guess(
    worse=("Which costs more?", ["an eighth of the best", "eight times the best", no_difference])
)

# %%
from workshop.launch.processes import run_together

factors = {1 / 8: "an eighth of the best", 1: "the best", 8: "eight times the best"}
steps_of = {round(factor * large / 10): name for factor, name in factors.items()}
settings = {"intervals": ",".join(map(str, steps_of)), "schedules": schedules}
settings |= {"steps": 3840, "step": 10, "write": 30, "between": between_interruptions}
options = [word for name, value in settings.items() for word in (f"--{name}", value)]
command = [sys.executable, workshop.DEMOS / "interrupt_jobs.py", *options]
killed = pd.DataFrame(run_together([*command], timeout=300))
killed["extra"] = killed["seconds"] / (3840 * 10) - 1

# %% slideshow={"slide_type": "slide"}
by_interval = killed.groupby("interval")
measured = by_interval["extra"].agg(["mean", "min", "max", "sem"])
measured["formula"] = [extra(10 * steps, 30) for steps in measured.index]
growth = [math.exp((10 * steps + 30) / between_interruptions) - 1 for steps in measured.index]
measured["refined"] = between_interruptions / (10 * measured.index) * growth - 1
measured["interruptions"] = by_interval["interruptions"].mean()
means = measured["mean"].rename(steps_of)
wrong = measured.loc[list(steps_of)[::2]]  # the two intervals that aren't the best
worse = steps_of[wrong["mean"].idxmax()]
by_schedule = killed.pivot(index="schedule", columns="interval", values="extra")
apart = by_schedule[wrong.index[1]] - by_schedule[wrong.index[0]]  # with the same random times
if abs(apart.mean()) < 2 * apart.sem():
    worse = no_difference
drawn = killed["seconds"].sum() / killed["interruptions"].sum()
print(f"{len(killed)} jobs, {killed['interruptions'].sum()} interruptions, one in", end=" ")
print(f"{drawn / 60:.0f} minutes of the jobs' clocks, ", end="")
print(f"{killed['weights'].nunique()} hash of the weights at the end.")
guess.compare(worse=worse)
shown = (100 * measured[["formula", "refined", "mean", "min", "max"]]).round(1)
shown.columns = ["formula, % on top", "refined", "measured, mean", "least", "most"]
shown.insert(0, "minutes", (shown.index * 10 / 60).to_numpy().round(1))
shown.rename(steps_of).rename_axis("interval")

# %% jupyter={"source_hidden": true}
print("Eight times the best less an eighth, with the same random times:", end=" ")
print(f"{100 * apart.mean():.1f} ± {200 * apart.sem():.1f} percentage points", end=" ")
print("(mean ± 2 standard errors).")
paid = f"0.3 x {1 + means['the best']:.2f} = {0.3 * (1 + means['the best']):.2f}"
print("If spot were 70 % off (an example), a job at the best interval would cost")
print(f"{paid} of the full price, plus the new starts.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert killed["weights"].nunique() == 1, "A job that was killed must end with the same weights."
assert means.idxmin() == "the best", f"The best interval must cost least: {means}"
workshop.save_results(
    interrupted_jobs=len(killed),
    extra_measured=means.to_dict(),
    extra_formula=measured["formula"].rename(steps_of).to_dict(),
)

# %% jupyter={"source_hidden": true} tags=["figure"]
finding = f"{worse} costs most"
if worse == no_difference:
    finding = "an eighth of the best and eight times the best show no difference"
title = f"30 s to write, one interruption an hour: best every {large / 60:.0f} minutes by the "
title += f"formula;\nof the three measured, {finding}"
at = np.geomspace(min(best, here) / 30, 30 * large, 200)
up = "extra time for writing and\nrepeating, % of the work"
writes = {
    f"{1000 * write_seconds:.1f} ms to write (this\nmodel): formula": write_seconds,
    "30 s to write: formula": 30,
}
refined = between_interruptions / at * np.expm1((at + 30) / between_interruptions) - 1
bars = {"fmt": "_", "color": "black", "capsize": 4, "markersize": 12}
bars["label"] = f"measured, mean ± 2 standard\nerrors of {schedules} jobs"

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
with plots.canvas(title, "seconds between two checkpoints", up) as axes:
    for number, (name, write) in enumerate(writes.items()):
        look = {"color": plots.COLOURS[number], "label": name}
        axes.plot(at, 100 * extra(at, write), **look)
        optimum = math.sqrt(2 * write * between_interruptions)
        look = {"color": "black", "fillstyle": "none", "markersize": 12}
        look["label"] = "" if number else "the best interval"
        axes.plot(optimum, 100 * extra(optimum, write), "o", **look)
    look = {"color": plots.COLOURS[1], "label": "30 s to write: refined"}
    axes.plot(at, 100 * refined, ":", **look)
    axes.errorbar(10 * measured.index, 100 * measured["mean"], 200 * measured["sem"], **bars)
    label = f"this lesson's interval, {here:.1f} s,\nby the formula"
    axes.plot(here, 100 * extra(here, write_seconds), "X", color="black", label=label)
    axes.set(xscale="log", yscale="log", ylim=(None, 100))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
lost = [extra(seconds, write_seconds) for seconds in (best / 2, best, 2 * best)]
assert min(lost) == lost[1], f"The best interval must lose least: {lost}"
workshop.save_results(write_ms=1000 * write_seconds, best_seconds=best, step_seconds=step_seconds)

# %% [markdown]
# Near the best the curve is flat: by the formula the extra time grows by only a quarter at half or
# twice the best interval. Where the interval comes near the time between interruptions, too rarely
# is worse than too often, and worse than the formula says: work that is done again can be
# interrupted, too. Daly's refined sum, M / t x
# (e<sup>(t + C) / M</sup> - 1) - 1, counts that (column *refined*). So if in doubt, write more
# often.
#
# ## Optional: fewer ranks, and more again
#
# Four ranks train, one on each instance, and an instance is taken away: must the job wait? A
# checkpoint of DDP says nothing of ranks. So another number of ranks can continue from it, if the
# **global batch** stays, and if it is a multiple of that number: 48 images are 12 for each of four
# ranks, or 16 for each of three. Step `s` must also see the *same* 48 images: the sampler shuffles
# by seed and epoch only, and gives each of `w` ranks every `w`-th image. A *sharded* model, of
# which each rank holds a part, needs `torch.distributed.checkpoint` (DCP): [lesson
# 11](11_what_each_rank_must_hold.ipynb).
#
# The job below runs `torchrun` with 4, 3 and 4 ranks, one after the other, all on one instance, and
# then one process that trains as many steps without a stop. **Predict, then run.**

# %%
guess = workshop.guess(
    elastic=(
        "4, 3, 4 ranks: how near are the weights to those of one process?",
        ["equal to the last bit", "equal but for rounding", "another model that is as good"],
    )
)

# %%
changing = PyTorch(
    entry_point="change_world_size.py",
    dependencies=[str(workshop.TRAIN / "train_torch_ddp.py")],
    framework_version="2.2.0",
    py_version="py310",
    instance_count=1,
    instance_type=instance_type,
    hyperparameters={"ranks": ",".join(map(str, elastic_ranks)), "steps": elastic_steps},
    **session.job_settings("elastic", source_dir=workshop.DEMOS) | {"max_run": max_run},
)
changing.fit(channels, wait=False)
elastic = workshop.follow(changing).events

# %% [markdown]
# <!-- SDK v3: elastic -->

# %%
parts, losses = [], []
for event in elastic:
    if event["event"] == "start":
        parts.append(event["world_size"])
    if event["event"] == "step":
        losses.append((len(parts), parts[-1], event["step"], event["train_loss"]))
by_step = pd.DataFrame(losses, columns=["part", "ranks", "step", "loss"])
compared = next(event for event in elastic if event["event"] == "compared")
rounding = compared["apart"] < 1e-5 * compared["largest"]
kinds = ["equal to the last bit", "equal but for rounding", "another model that is as good"]
elastic_is = kinds[0 if compared["apart"] == 0 else 1 if rounding else 2]
print(f"Largest difference of any weight after {by_step['step'].max()} steps: ", end="")
print(f"{compared['apart']:.0e}; the largest weight is {compared['largest']:.1f}.")
guess.compare(elastic=elastic_is)
ends = by_step.groupby("part").agg(ranks=("ranks", "first"), first=("step", "min"))
ends = ends.join(by_step.groupby("part").agg(last=("step", "max"), loss=("loss", "last")))
names = {"first": "first step", "last": "last step", "loss": "loss of the last step"}
ends = ends.rename(columns=names)
ends.rename(index={len(parts): "without a stop"})

# %% jupyter={"source_hidden": true} tags=["results"]
assert parts == [*elastic_ranks, 1], f"The job should have trained with {elastic_ranks}: {parts}"
assert rounding, f"Another number of ranks must not make another model: {compared}"
workshop.save_results(elastic_ranks=parts, elastic_apart=compared["apart"])

# %% [markdown]
# Equal but for rounding: 48 gradients are added in other groups, by 12, by 16, or all at once. Over
# longer trainings, or at a higher learning rate, rounding can grow. `torchrun --nnodes 3:4
# --max-restarts 5` restarts by itself: when an instance is lost or comes, it stops all ranks and
# starts as many as there are. Batch and checkpoint remain your script's business. Try
# [lose_an_instance.py](../scripts/demos/lose_an_instance.py). (It sets a variable for torchrun: in
# PyTorch 2.13 the ranks would not meet again without it.) A SageMaker job keeps its
# `instance_count`: to go on with fewer, stop it, and start another with the same
# `checkpoint_s3_uri`
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/model-checkpoints-resume.html)).

# %% [markdown]
# ## A log without an error
#
# `workshop break` reproduces failures on this machine. Here is one, picked by its number
# because its name would tell you the cause. Two ranks train for 20 steps, and the run ends without
# an error. Each line begins with its rank in brackets. Compare the ranks, not the steps.

# %% slideshow={"slide_type": "slide"}
reproducible = failures.table()
quiet = failures.reproduce(reproducible.index[3])
for line in quiet.log:
    shown = re.sub(r'"optimizer_variables_\w+": \d+, ', "", line.split(', "images":')[0])
    print(re.sub(r"\b([0-9a-f]{10})[0-9a-f]{20,}", r"\1…", shown))

# %% slideshow={"slide_type": "slide"}
causes = [
    "they read the same images",
    "they started from different weights",
    "they did not average their gradients",
    "one of them stopped early",
]
guess = workshop.guess(cause=("What is wrong with these two ranks?", causes))

# %% [markdown]
# Each rank printed hashes: of its weights at the start, after the first step and at the end, and of
# the images it saw:

# %% slideshow={"slide_type": "slide"}
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
# The images differ, as they should. The weights differ before the first step. That would explain
# the rest, if the gradients are averaged; the hashes can't show that, the fix can. A job would save
# rank 0's model and drop the other's.
#
# The remedy is a broadcast before the first step, which DDP does by itself; this script averages by
# hand. **The fix is what proves the diagnosis.** With `fixed=True` the script broadcasts rank 0's
# weights, and nothing else changes:

# %% slideshow={"slide_type": "-"}
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
# The log has a second trap: each `train_loss` is the loss of one rank's images, as with
# `model.fit(verbose=2)` on every rank. Average a metric over the ranks, and print it on one.
#
# ## A log that stops
#
# An all-reduce or a barrier can't finish until *all* ranks have called it. So if one rank is
# somewhere else, the others wait, silently: no error, no new line, and a bill that grows. **Ask
# each rank where it is, and look for the one that is somewhere else.**
#
# Write `faulthandler.register(signal.SIGUSR1)` at the start of your script; then `kill -USR1 PID`
# makes a process print its stack. (For other scripts: `py-spy dump --pid PID`.) Both need a shell
# on the machine, which a SageMaker job has only with `enable_remote_debug=True` and permissions
# that this course's roles lack
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/train-remote-debugging.html)). Without a
# shell, `faulthandler.dump_traceback_later(600, repeat=True)` prints the stacks to the job's log
# every ten minutes.
#
# The next cell reproduces a hang and makes both ranks print their stacks. A stack printed by
# `faulthandler` begins with the innermost call; Python's traceback ends with it. In this run a
# collective gives up after 6 seconds. (`prterun` is the program behind `mpirun`.)

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
# Compare the stacks; the traceback names the rank that waited until the collective gave up:

# %% jupyter={"source_hidden": true}
stacks: dict[str, list[tuple[str, str]]] = {}
for line in hang.log:
    label, _, text = line.partition("] ")
    if "(most recent call first)" in text:
        stacks[label[1:]] = []  # of several stacks the last one stays
    elif label[1:] in stacks and (call := re.match(r' +File "(.+)", line \d+ in (\S+)$', text)):
        stacks[label[1:]].append((call[1], call[2]))
for rank, calls in sorted(stacks.items()):
    print(f"rank {rank}: {' < '.join(function for _, function in calls)}")
(elsewhere,) = (
    rank for rank, calls in stacks.items() if "barrier" not in [function for _, function in calls]
)
# The script's own innermost call: below it may be one of Python's, such as `stat`.
where = next(name for file, name in stacks[elsewhere] if file.endswith("breaking/rank_hangs.py"))
waiting = next(line for line in hang.log if "Timed out waiting" in line)
print(waiting[:160])
guess.compare(elsewhere=f"rank {elsewhere}", where=where)

# %% jupyter={"source_hidden": true} tags=["results"]
assert hang.as_described, str(hang)
assert sorted(stacks) == ["0", "1"], f"A rank printed no stack: {stacks}"
assert not waiting.startswith(f"[{elsewhere}]"), "The rank that waits is not the one elsewhere."
workshop.save_results(hang_rank=int(elsewhere), hang_function=where, hang_waiting=waiting[:3])

# %% [markdown]
# `workshop why` makes this comparison for all ranks started here, from stacks that a thread in each
# rank noted (`workshop record COMMAND` does it for your own script). The head of its answer:

# %%
answer = workshop.why()
print(str(answer).partition("\n\n")[0])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(why=answer.cause)

# %% [markdown]
# Now read the code that called the function:

# %%
workshop.show_function("demos/breaking/rank_hangs.py", "train")

# %% [markdown]
# Rank 1 waits for a file before the barrier, and rank 0 writes it after. Rank 1's stack said where
# to read; the mistake is the order of rank 0's calls. Again the fix is the proof:

# %%
corrected = failures.reproduce("rank-hangs", fixed=True)
print(f"{corrected.verdict}: {corrected.line}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert corrected.as_described, str(corrected)
workshop.save_results(fixed=corrected.as_described, hang_seconds=hang.seconds)

# %% [markdown] slideshow={"slide_type": "slide"}
# Three habits keep such failures short and cheap:
#
# 1. Give each job a `max_run` that isn't much longer than it needs.
# 2. Give collectives a *short* timeout, `init_process_group(timeout=…)`, but a longer one than the
#    longest thing that a rank does alone. PyTorch's own is 30 minutes for gloo and 10 for NCCL.
# 3. Let every rank print now and then what it is about to do: in a hang, read their last lines.

# %% [markdown]
# `workshop break` lists more failures, with symptom and remedy. Slow jobs: exercise 5.

# %% [markdown]
# ## Exercises
#
# In [exercises/10](exercises/10_interruptions_and_failures.ipynb), each with a check:
#
# 1. *What an interruption cost* (6 minutes, easy): count the steps done twice, from a log.
# 2. *Which mistake do the hashes show?* (8 minutes, medium): five trainings without an error.
# 3. *Diagnose a hang* (10 minutes, medium): find the rank that is somewhere else, from its log.
# 4. *A checkpoint that is never half* (13 minutes, hard): whole, whenever the instance disappears.
# 5. *Five jobs* (20 minutes, hard): four are slow and one isn't; name cause and rank from what a
#    step of theirs consists of.
#
# ## Check yourself

# %% question=3 slideshow={"slide_type": "slide"}
workshop.quiz("10")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A checkpoint holds weights, optimizer and position in the data. Then an interrupted training is
#   the same training: on one CPU and with one thread, to the last bit.
# - An interruption costs the steps since the last checkpoint, and a new start. The best interval is
#   about the square root of 2 x seconds to write x seconds between interruptions, and the curve is
#   flat there.
# - A distributed training can be wrong without an error. Compare hashes between ranks.
# - In a hang, start at the rank that is somewhere else.
# - Prove a diagnosis with its fix.

# %% [markdown]
# ## Clean up
#
# Checkpoints, models and logs stay until you delete them: [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# [11 · What each rank must hold](11_what_each_rank_must_hold.ipynb): when a model is too large for
# one GPU.

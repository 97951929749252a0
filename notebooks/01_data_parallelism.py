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
# # 01 · Data parallelism
#
# **After this lesson you can**
#
# - say what every rank has whole, and what the ranks divide;
# - show that averaged gradients are right, and name three ways to get wrong ones;
# - tell sync from async, and data parallel from model parallel;
# - time a training step, and predict where more ranks stop helping;
# - choose a batch size and a learning rate for more ranks.
#
# **Before:** [lesson 00](00_setup.ipynb): you know what a job, a channel and an instance are.
#
# **Time:** 40 minutes.
#
# **Where it runs:** the ranks are processes of the computer that runs this notebook. One small job
# at the end runs on this machine (`target = "local"`) or on AWS (`target = "aws"`).
#
# **Cost on AWS:** about 0.02 USD: one job on two `ml.c5.xlarge` for an estimated 3 minutes
# (us-east-1, price list of 2026-09-27). The lesson computes it before the job starts.

# %% [markdown]
# ## Set up
#
# - `world_size`: ranks in the experiments about *what is computed*, 3 or more. They may outnumber
#   the cores.
# - `global_batch_size`: images in one step, over all ranks together.
# - `updates`: length of the experiment on sync and async.
# - `timed_batch_size`, `repeats`, `steps`: for the timings. Each timing is repeated `repeats`
#   times, with `steps` training steps each time.
# - `epochs`, `seeds`: for the experiment on batch sizes. Each setting is trained `seeds` times
#   (an even number).

# %% tags=["parameters"]
target = "local"
seat = "me"
world_size = 4
global_batch_size = 64
updates = 90
timed_batch_size = 512
repeats = 7
steps = 4
epochs = 20
seeds = 4

# %% tags=["deterministic"]
import statistics

import numpy as np
import pandas as pd

import data_prep
import workshop
from workshop import plots

all_images, all_labels = data_prep.digits.load()
training = all_images[:-360], all_labels[:-360]
test = all_images[-360:], all_labels[-360:]
batch = training[0][:global_batch_size], training[1][:global_batch_size]
print(f"{len(training[0]):,} training images of 8 x 8 pixels, {len(test[0])} test images")

# %% [markdown]
# ## The model whole, the batch in parts
#
# One training step takes a batch of images, computes the **gradient** (how the loss changes with
# each weight), and moves the weights a little against it. Twice the images take nearly twice as
# long. So divide the images among several processes. Each process has a number, its **rank**, and
# is usually called by it: "rank 2" is the process with the number 2. How many there are is the
# **world_size**.
#
# | | on every rank | |
# |---|---|---|
# | the model's weights | whole, and the same | **replicated** |
# | the optimizer's memory, the script | whole, and the same | **replicated** |
# | the global batch | a different part | **split** |
# | the gradient, as a rank computes it | its own: from its own images | |
# | the gradient, after the ranks have averaged | the same | replicated again |
#
# That is **data parallel** training. Equal weights that are moved by equal gradients stay equal. So
# the weights need not be sent around again. (Some texts say that each step sends out the new
# *model*. A parameter server does that, lesson 03. Here only gradients travel.)
#
# The next cell starts real ranks: processes of this machine that can send each other messages.

# %%
ranks = workshop.start_ranks(world_size)


def who_are_you():
    import os
    import platform

    import torch.distributed as dist

    return {"rank": dist.get_rank(), "process": os.getpid(), "computer": platform.node()}


started = pd.DataFrame(ranks.run(who_are_you))
started

# %% jupyter={"source_hidden": true} tags=["results"]
assert started["process"].nunique() == world_size, "Ranks must be different processes: restart."

# %% [markdown]
# Several processes, one computer. This is distributed training already. It is often said that
# you need `instance_count > 1` for it. You don't: what counts is that processes divide the work and
# average what they find, wherever they run.
#
# `run` calls a function on every rank with the same arguments. `run_each` gives each rank an
# argument of its own. Both return a list with one result for each rank. The function runs in
# another process, so it imports what it needs. A name such as `"parallel.stages:one_step"` means a
# function of a file in `scripts/demos/`.
#
# ## The average of the gradients
#
# Why is the average right? The loss of a batch is the *mean* of its images' losses. The mean of
# 64 numbers is the mean of the four means of 16. The gradient of a sum is the sum of the
# gradients, so the same holds for gradients. This needs three things: parts of equal size, a
# division by their number, and a loss of each image that doesn't depend on the other images. And it
# is algebra, whereas computers round. So predict, then run.
#
# `all_reduce` in the function below adds up a tensor over all ranks: each puts its own in, and
# each gets the sum out.

# %%
guess = workshop.guess(
    gradient=(
        "Mean of all ranks' gradients against the gradient of the whole batch:",
        ["the same bits", "the same up to rounding", "about 1 % off"],
    )
)


# %%
def gradient_of(images, labels, batch_norm=False):
    """On one rank: the gradient of the mean loss of these images. Nothing is exchanged."""
    from parallel.gradients import gradient, new_model

    return gradient(new_model(batch_norm), images, labels)


def exchanged(shard, divide=True, batch_norm=False):
    """On every rank: its own gradient, then the mean over all ranks."""
    import torch.distributed as dist

    mine = gradient_of(*shard, batch_norm)
    dist.all_reduce(mine)  # now it is the sum of all ranks' gradients, on every rank
    return mine / dist.get_world_size() if divide else mine


# %%
shards = [(batch[0][r::world_size], batch[1][r::world_size]) for r in range(world_size)]
expected = ranks.run(gradient_of, *batch)[0]  # of a single rank with all images
averaged = ranks.run_each(exchanged, shards)
between_ranks = max(np.abs(one - averaged[0]).max() for one in averaged)
difference = np.abs(averaged[0] - expected).max()
print(f"{expected.size:,} weights; largest part of the gradient {np.abs(expected).max():.3f}")
print(f"largest difference between two ranks:      {between_ranks:.1e}")
print(f"largest difference from the whole batch's: {difference:.1e}")

# %%
bits = np.array_equal(averaged[0], expected)
tiny = difference < 1e-6
guess.compare(
    gradient="the same bits" if bits else "the same up to rounding" if tiny else "about 1 % off"
)

# %% [markdown]
# All ranks got the same sum, so between them there is no difference at all. From the whole batch's
# gradient they differ only by rounding: a computer rounds after each addition, and the ranks add in
# another order. Neither result is more right than the other.

# %% jupyter={"source_hidden": true} tags=["results"]
assert between_ranks == 0, "The ranks hold different gradients: did each call all_reduce?"
assert tiny, f"{difference} is more than rounding: do the shards make up the whole batch?"
workshop.save_results(gradient_difference=difference, between_ranks=between_ranks)

# %% [markdown]
# ## Three ways to get another gradient
#
# The proof had conditions. Break one at a time, and look how far off the gradient is:
#
# 1. **Unequal shards.** A shard is one rank's part of the images. Rank 0 takes more than the
#    others.
# 2. **A sum, not a mean.** The division is forgotten.
# 3. **Batch normalisation.** This layer subtracts the mean of the *batch*, and each rank knows only
#    its own images.

# %%
first = global_batch_size - 8 * (world_size - 1)  # rank 0 takes all but 8 for each other rank
cuts = [first + 8 * rank for rank in range(world_size - 1)]
unequal = list(zip(np.split(batch[0], cuts), np.split(batch[1], cuts), strict=True))

right_normal = ranks.run(gradient_of, *batch, True)[0]  # a single rank, batch normalisation
cases = {
    "equal shards, mean": (averaged[0], expected),
    "unequal shards, mean": (ranks.run_each(exchanged, unequal)[0], expected),
    "equal shards, sum": (ranks.run_each(exchanged, shards, False)[0], expected),
    "batch normalisation": (ranks.run_each(exchanged, shards, True, True)[0], right_normal),
}
broken = pd.DataFrame(
    [(np.abs(a - b).max(), np.linalg.norm(a) / np.linalg.norm(b)) for a, b in cases.values()],
    index=list(cases),
    columns=["largest difference", "length / right length"],
)
broken.style.format({"largest difference": "{:.1e}", "length / right length": "{:.2f}"})

# %% [markdown]
# None of the three raises an error, and training continues with each.
#
# 1. In a mean of means, an image on a small shard weighs more. Cut equal shards, as the scripts
#    here do, or weigh each rank's gradient by its number of images: exercise 01.2.
# 2. The sum is `world_size` times too long. That acts like a learning rate that is too high by the
#    same factor, and it changes with the number of ranks.
# 3. The ranks compute another function than one process does. Avoid batch normalisation, or
#    share its statistics in each step (on GPUs `torch.nn.SyncBatchNorm`). With many images per
#    rank people often accept the difference. Then it is a choice, not an accident.

# %% jupyter={"source_hidden": true} tags=["results"]
off = broken["largest difference"].to_dict()
assert off.pop("equal shards, mean") < 1e-6, "Equal shards must give the whole batch's gradient."
assert min(off.values()) > 1e-4, f"A broken case was not broken: {off}"
workshop.save_results(
    broken=off, sum_factor=broken.loc["equal shards, sum", "length / right length"]
)

# %% [markdown]
# ## The change in the script
#
# You rarely call `all_reduce` by hand. PyTorch's `DistributedDataParallel` (**DDP**) does it during
# `backward()`. The diff below shows what `scripts/train/train_torch_ddp.py` adds (`+`) to the
# one-process script `train_torch.py`, and what it replaces (`-`).
#
# Some names in it are new. `torchrun` is PyTorch's launcher: it starts the ranks, and tells each
# its number and how many there are (`RANK`, `WORLD_SIZE`). `mpirun` is another launcher: lesson 04.
# `MASTER_ADDR` and `MASTER_PORT` are the address where the ranks meet. `nccl` and `gloo` are
# libraries that carry the messages: `nccl` between GPUs, `gloo` between CPUs.

# %%
workshop.show_diff("train/train_torch.py", "train/train_torch_ddp.py")

# %% [markdown]
# Most of it handles launchers, restarts and printing. Only three ideas matter: meet the others
# (`init_process_group`), take your own part of the data (`DistributedSampler`, and
# `global_batch_size` divided by `world_size`), average (`DistributedDataParallel`).
# `optimizer.step()` is unchanged and sends nothing: when `backward()` returns, the gradients are
# averaged already.
#
# The script cuts the data itself, by rank. SageMaker can also give each instance other files
# (`ShardedByS3Key`); lesson 09 is about that. Do only one of the two.
#
# Is DDP's gradient ours? Two new ranks are enough to see; the timings below use them too.

# %%
pair = workshop.start_ranks(2)
halves = [(batch[0][rank::2], batch[1][rank::2]) for rank in range(2)]
ddp_difference = np.abs(pair.run_each("parallel.gradients:by_ddp", halves)[0] - expected).max()
print(f"DDP's gradient, largest difference from the whole batch's: {ddp_difference:.1e}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert ddp_difference < 1e-6, "DDP must give the whole batch's gradient."
workshop.save_results(ddp_difference=ddp_difference)

# %% [markdown]
# ## The other way to divide: model parallel
#
# Data parallel training needs room for the whole model on each rank. **Model parallel** training
# divides the model: here rank 0 has the two convolutions, which make 128 numbers of each image, and
# rank 1 the two dense layers, which make a digit of those. All images pass through both. Then no
# gradients of weights travel. What travels forward are the **activations**, the numbers that the
# first layers made of the images; the gradient of those activations comes back.
#
# The first cell compares the gradient with that of the whole model. The second runs a step at
# several batch sizes and counts what each rank sends. Beside that stands, computed and not
# measured, what data parallel training sends with 2 ranks: each sends the size of the gradient once
# (lesson 02), whatever the batch.

# %%
stages = ranks.run("parallel.stages:one_step", *batch)[:2]
put_together = np.concatenate([one["gradient"] for one in stages])
stage_difference = np.abs(put_together - expected).max()
print(f"weights on rank 0: {stages[0]['weights']:,}, on rank 1: {stages[1]['weights']:,}")
print(f"largest difference from the whole model's gradient: {stage_difference:.1e}")

# %% tags=["deterministic"]
sent = {}
for size in (16, 64, 256, 1024):
    stage = ranks.run("parallel.stages:one_step", training[0][:size], training[1][:size])[0]
    sent[size] = (stage["sent_bytes"] / 1e3, expected.nbytes / 1e3)
names = ["model parallel, kB sent by each rank", "data parallel, kB sent by each of 2 ranks"]
sent = pd.DataFrame(sent.values(), index=pd.Index(sent, name="images per step"), columns=names)
sent.round(1)

# %% [markdown]
# The difference is rounding: the two halves add the same numbers in another order.
#
# Model parallel training sends something for each *image*, data parallel training something for
# each *weight*. So data parallel suits small models and large batches, and model parallel is for a
# model that is too large for one device. It has another price: while rank 1 computes, rank 0 waits.
# Real systems send several small batches one after the other to fill that gap (a pipeline), and the
# largest models are trained both ways at once. The rest of this course is about data parallel
# training.

# %% jupyter={"source_hidden": true} tags=["results"]
by_images, by_weights = sent[names[0]], sent[names[1]]
assert stage_difference < 1e-6, "Two half models must give the whole model's gradient."
assert by_images[1024] > by_weights[1024] > by_images[16], "See the table above."
workshop.save_results(stage_difference=stage_difference, stage_kb=by_images, gradient_kb=by_weights)

# %% [markdown]
# ## When updates apply: sync and async
#
# So far all ranks wait for each other in every step. That is **sync** training. In **async**
# training nobody waits: each gradient is applied when it arrives. Meanwhile others have changed the
# weights that it was computed for: it is **stale**. Its *staleness* is the number of updates that
# came in between.
#
# Async training is often done with a **parameter server**, a process that holds the weights. Every
# other process, a **worker**, computes a gradient, sends it to the server, and gets the newest
# weights back. Lesson 03 is about it. A server that is sync waits for a gradient of each worker and
# applies their mean.
#
# Two common sentences, and what is right:
#
# - *"In async training each worker uses the whole data set."* No: async says when updates apply,
#   not who reads what. The workers below have the same shards in both cases.
# - *"Sync is all-reduce, async is a parameter server."* Usually. But a server can be sync: below,
#   the same server (rank 0) does both. In async mode it doesn't average: it applies each gradient
#   as it arrives.
#
# The other ranks are workers. One is slower on purpose: it sleeps 15 ms in each step, the others
# 3 ms. The model is tiny, so a step is nearly all sleep. A sync update uses a gradient of *every*
# worker, an async update only one. So compare gradients per second.

# %%
workers = world_size - 1
pixels, labels = (training[0].reshape(-1, 64) / 255).astype("float32"), training[1]
parts = [None] + [(pixels[w::workers], labels[w::workers]) for w in range(workers)]
pause = [0.0] + [0.003] * (workers - 1) + [0.015]  # seconds, by rank
guess = workshop.guess(
    sync="Sync: gradients per second, of all workers together:",
    later="Async: gradients per second, of all workers together:",
)

# %%
table, computed = [], {}
for way, wait in {"sync": True, "async": False}.items():
    for _ in range(3):
        arguments = (parts, wait, updates, 0.5, pause)  # 0.5: the learning rate
        done, *computed[way] = ranks.run_each("parallel.stale:train", *arguments)
        stale = [one["staleness"] for one in done]
        speed = updates * (workers if wait else 1) / done[-1]["seconds"]
        table.append((way, speed, np.mean(stale), max(stale)))
table = pd.DataFrame(table, columns=["way", "gradients/s", "mean staleness", "most"])
by_way = table.groupby("way", sort=False)
by_way.agg(["min", "median", "max"]).round(1)

# %% jupyter={"source_hidden": true} tags=["figure"]
rows = []
for way, by_worker in computed.items():
    start = min(times[0][0] for times in by_worker)
    for number, times in enumerate(by_worker, start=1):
        name = f"{way}: worker {number}" + (" (slow)" if number == workers else "")
        nexts = [began for began, _ in times[1:]]
        for (began, ended), until in zip(times, nexts, strict=False):
            rows.append((name, "computes", began - start, ended - began))
            rows.append((name, "waits for the server", ended - start, until - ended))
spans = pd.DataFrame(rows, columns=["row", "kind", "start", "length"])
spans[["start", "length"]] *= 1000
first = spans[spans["start"] < 90]
plots.gantt(first, "How the last two runs began (measured)", "milliseconds")

# %%
middle = by_way["gradients/s"].median()
guess.compare(sync=middle["sync"], later=middle["async"])
ratio_async = middle["async"] / middle["sync"]
print(f"Async applied {ratio_async:.1f} times as many gradients per second here.")
print(f"Its gradients missed {by_way['mean staleness'].median()['async']:.1f} updates on average.")

# %% [markdown]
# In the table, *most* is the largest staleness of any gradient.
#
# In the picture, follow a fast worker. In sync mode it spends most of its time waiting for the slow
# one; in async mode it waits only for the server. That has a price: an update with a gradient that
# missed several others goes downhill from where the weights *were*. So async trades waiting for
# staleness. Lesson 03 measures what that does to learning.

# %% jupyter={"source_hidden": true} tags=["results"]
assert table.loc[table["way"] == "sync", "most"].max() == 0, "A sync gradient is never stale."
staleness = by_way["mean staleness"].median()
assert staleness["async"] > 0.5, "No gradient was stale: are there 2 workers?"
workshop.save_results(gradients_per_second=middle.to_dict(), staleness=staleness.to_dict())

# %% [markdown]
# ## How much faster are two ranks?
#
# Now to speed. Three ways to process the same global batch:
#
# - **1 rank** alone takes the whole batch;
# - **2 ranks together** take half each, and average their gradients (DDP);
# - **2 independent ranks** take half each, and never exchange anything.
#
# The third trains nothing useful. It is the **ceiling of this machine**: what two processes reach
# if nothing has to be exchanged. On shared virtual cores it may be well below 2 times one rank,
# because the two "cores" share memory, caches, or one real core. It may also be above 2: half a
# batch fits better into a core's cache. What is lost *below the ceiling* is the price of working
# together.
#
# Every rank computes with one CPU thread. The images are random and have 28 x 28 pixels: speed
# doesn't depend on what they show, and with our tiny digits a step would be too short to time.

# %%
guess = workshop.guess(
    ceiling="2 independent ranks: how many times as fast as 1 rank?",
    price="2 ranks together: what share of the speed of 2 independent ranks (0 to 1)?",
)

# %% [markdown]
# This is how a rank times its steps. Three lines are easy to forget: some steps first, which
# load libraries and fill caches and don't count; a `barrier`, so that all ranks begin together; and
# several steps between two looks at the clock, because one step is short.


# %%
def step_seconds(setting, steps):
    """On a rank: mean seconds of one training step; None if the rank takes no part."""
    import time

    import torch.distributed as dist
    from parallel.speed import WARM_UP, training_step

    if setting["ranks"] == "one" and dist.get_rank() > 0:
        return None
    step = training_step(setting)
    for _ in range(WARM_UP):
        step()
    if setting["ranks"] != "one":
        dist.barrier()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps


# %% [markdown]
# One timing proves little: other programs disturb it. So measure the settings in turn (A B C, A B
# C, ...), so that a disturbance hits all of them, and compare within each repeat.
#
# In the results a *sample* is an image. The *speed-up* is the median of the ratios, taken repeat by
# repeat, so it can differ from the ratio of two medians in the table. The *efficiency* is the
# speed-up divided by the number of ranks.


# %%
def measure(setting):
    """Samples per second of all ranks that take part, together."""
    seconds = pair.run(step_seconds, setting, steps, timeout=250)
    return sum(setting["batch"] / one for one in seconds if one is not None)


def interleave(settings, repeats):
    """A row for each repeat, a column for each setting."""
    rows = [{name: measure(one) for name, one in settings.items()} for _ in range(repeats)]
    return pd.DataFrame(rows)


def ratio(measured, above, below):
    """The median of one column over another, taken repeat by repeat."""
    return (measured[above] / measured[below]).median()


def speedups(measured, base):
    """A row for each setting: samples per second, and its speed-up over `base`."""
    table = measured.agg(["median", "min", "max"]).T
    table.columns = ["samples per second", "lowest", "highest"]
    return table.assign(**{"speed-up": [ratio(measured, name, base) for name in measured]})


# %%
def ways_to_take(batch, model):
    """Settings for one global batch. The last one is for a later section: a small part of it."""
    ways = {
        "1 rank": {"ranks": "one", "batch": batch},
        "2 independent ranks": {"ranks": "independent", "batch": batch // 2},
        "2 ranks together": {"ranks": "together", "batch": batch // 2},
        "1 rank, part": {"ranks": "one", "batch": max(1, batch // 32)},
    }
    return {name: way | model for name, way in ways.items()}


small_model = {"side": 28, "hidden_units": 64}  # 28 x 28 pixels
good_ways = ways_to_take(timed_batch_size, small_model)
good = interleave(good_ways, repeats)
speeds = speedups(good.drop(columns="1 rank, part"), "1 rank")
speeds["efficiency"] = speeds["speed-up"] / [1, 2, 2]  # the speed-up for each rank
speeds.round(2)

# %% jupyter={"source_hidden": true} tags=["figure"]
said = [
    f"{row['speed-up']:.2f} x, efficiency {row['efficiency']:.0%}" for _, row in speeds.iterrows()
]
label = "samples per second: median, and range of the repeats"
plots.bars(speeds["samples per second"], "Speed (measured)", label, texts=said, spread=speeds)

# %%
price = ratio(good, "2 ranks together", "2 independent ranks")
ceiling = speeds.loc["2 independent ranks", "speed-up"]
guess.compare(ceiling=ceiling, price=price)
print(f"2 ranks together reach {price:.0%} of this machine's ceiling, which is {ceiling:.2f} x.")
if not 0.8 < price < 1.05:
    print("Something else uses the cores, so don't trust these numbers: measure again later.")
elif ceiling < 1.8:
    print("So it is this machine that limits the speed-up, more than data parallelism does.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    speeds=speeds["samples per second"].to_dict(), of_ceiling=price, ceiling=ceiling
)

# %% [markdown]
# With this much work in each step, the exchange of gradients weighs little. But in every step
# the ranks wait for the slower of the two. So they suffer from every disturbance of either.
#
# ## Threads, and one library
#
# A rank on a CPU can use several threads by itself. So there are two ways to use two cores: one
# rank with two threads, or two ranks with one each. A third happens by accident: two ranks with two
# threads each. PyTorch starts a thread per core in *every* process unless told otherwise, and
# then the threads compete for the cores. (`torchrun` tells it: one thread.)
#
# The convolutions are computed by **oneDNN** (formerly MKL-DNN), a library with fast code for each
# kind of CPU. Some guides tell you to switch it off. The last row does. The batch is a quarter of
# the one above, so don't compare these speed-ups with those.

# %%
guess = workshop.guess(
    onednn="Without oneDNN: how many times as fast as with it (1 rank, 1 thread)?"
)

# %%
each = {"batch": timed_batch_size // 4}
one, two = {"ranks": "one", **each}, {"ranks": "together", "batch": each["batch"] // 2}
threads = {
    "1 rank, 1 thread": one,
    "1 rank, 2 threads": one | {"threads": 2},
    "2 ranks, 1 thread each": two,
    "2 ranks, 2 threads each": two | {"threads": 2},
    "1 rank, 1 thread, no oneDNN": one | {"onednn": False},
}
threads = {name: setting | small_model for name, setting in threads.items()}
measured = interleave(threads, max(3, repeats // 2))
by_threads = speedups(measured, "1 rank, 1 thread")
by_threads.round(2)


# %%
def wins(measured, one, other):
    """In how many repeats `one` was faster than `other`, in words."""
    return f"{(measured[one] > measured[other]).sum()} of {len(measured)} repeats"


alone, one_of_two, two_of_one, two_of_two, without = threads
guess.compare(onednn=by_threads.loc[without, "speed-up"])
print("One rank was faster with oneDNN than without it in", wins(measured, alone, without))
print("Two ranks with one thread each were faster than")
print("- one rank with two threads in", wins(measured, two_of_one, one_of_two))
print("- two ranks with two threads each in", wins(measured, two_of_one, two_of_two))

# %% jupyter={"source_hidden": true} tags=["results"]
assert by_threads["lowest"].min() > 0, "A setting was not measured: run the cell again."
workshop.save_results(by_threads=by_threads["samples per second"].to_dict())

# %% [markdown]
# Switch oneDNN off only if such a comparison, with your model, tells you to.
#
# Which way wins depends on the model and the machine. Two threads of one rank divide every single
# operation, and wait for each other many times in a step; two ranks wait once in a step, but each
# has all the fixed work of a step. So measure with *your* model. The scripts here take
# `--threads-per-rank`; by default it is the machine's cores divided by its ranks, so that nobody
# competes.
#
# ## Where speed-up ends
#
# Look into a step. Here nothing overlaps: each rank **computes** its gradient, **waits** until the
# other has finished, **communicates** (the all-reduce), and **updates** its weights. (DDP already
# sends while `backward()` still computes, which hides a part. Lesson 07 shows that.)
#
# We compare two configurations. The first is the one above: much work per step, few weights. The
# second is the opposite, a tiny batch for a large model: 8 images, 2.8 million weights. **Predict**
# how fast it is. The answer comes after the formula, at the end of this section.
#
# The picture first shows where the time of three steps goes. Each configuration has its own scale:
# 100 % is the time of *its* three steps. So compare the parts within a configuration, not the
# lengths of the two.

# %%
large_model = {"side": 8, "hidden_units": 20_000}
bad_ways = ways_to_take(8, large_model)
guess = workshop.guess(bad="8 images, 2.8 million weights: how many times as fast are 2 ranks?")

# %% jupyter={"source_hidden": true} tags=["figure"]
rows, shares = [], {}
large, small = "large batch, small model", "small batch, large model"
for name, ways in {large: good_ways, small: bad_ways}.items():
    by_rank = pair.run("parallel.speed:step_parts", ways["2 ranks together"], 3)
    total = sum(ended - began for parts in by_rank for _, began, ended in parts)
    talk = sum(e - b for parts in by_rank for kind, b, e in parts if kind == "communicate")
    shares[name] = talk / total
    longest = max(parts[-1][2] for parts in by_rank)
    for rank, parts in enumerate(by_rank):
        for kind, began, ended in parts:
            span = 100 * began / longest, 100 * (ended - began) / longest
            rows.append((f"{name}: rank {rank}", kind, *span))
spans = pd.DataFrame(rows, columns=["row", "kind", "start", "length"])
plots.gantt(spans, "Three steps (measured)", "% of the configuration's own three steps")
print(
    *(f"{name}: {share:.0%} of the time communicating" for name, share in shares.items()), sep="\n"
)

# %% [markdown]
# When ranks are added, only the computing shrinks, and not even all of it:
#
# - a **fixed part** stays: starting operations, updating all weights. Amdahl's law says
#   what follows: with a fixed share `s` of the time, `N` ranks are at most
#   `1 / (s + (1 - s) / N)` times as fast, and never more than `1 / s` times;
# - the **exchange** of gradients is added, which one rank alone doesn't have.
#
# You can measure both before a second rank trains. How long does a step take with the whole batch,
# and with a 32nd of it (at least one image)? From the two times follows the part that doesn't
# shrink with the batch. And an all-reduce of as many numbers as there are weights is the exchange.

# %%
good_and_bad = {large: (good_ways, good), small: (bad_ways, interleave(bad_ways, repeats))}
costs = {}
for name, (ways, found) in good_and_bad.items():
    whole, part = (ways[way]["batch"] / found[way].median() for way in ("1 rank", "1 rank, part"))
    share = ways["1 rank, part"]["batch"] / ways["1 rank"]["batch"]  # of the batch, in `part`
    divided = min(max(0, (whole - part) / (1 - share)), whole)  # what doesn't shrink is fixed
    exchange = statistics.median(
        pair.seconds("parallel.speed:exchange", ways["1 rank"], repeats=15)
    )
    costs[name] = {"divided": divided, "fixed": whole - divided, "exchange": exchange}
parts = pd.DataFrame(costs).T
(1000 * parts).add_suffix(", ms").round(2)

# %% [markdown]
# The picture showed three steps only, and counts a rank's wait for the other as a part of its own.
# The table has the median of 15 exchanges. If the two disagree, trust the table.
#
# Two ranks halve the first column, keep the second and pay the third. (A fixed part of 0.00 means
# that it was too small to see: the noise of the two timings is larger.) The function below says so
# for N ranks. (The factor of the exchange comes from lesson 02. In a ring, a common way to do an
# all-reduce, each rank sends 2 · (N - 1) / N times the gradient. For two ranks that is 1.)


# %%
def speedup(cost, n, with_exchange=True):
    """The formula: how many times as fast n ranks are, each with a core and a link of its own."""
    ring = 2 * (n - 1) / n if with_exchange else 0
    step = cost["fixed"] + cost["divided"] / n + cost["exchange"] * ring
    return (cost["fixed"] + cost["divided"]) / step


def lowest_to_highest(run):
    """The range of the speed-up of two ranks together, over the repeats."""
    return (run["2 ranks together"] / run["1 rank"]).agg(["min", "max"])


real = {name: ratio(run, "2 ranks together", "1 rank") for name, (_, run) in good_and_bad.items()}
ranges = {name: lowest_to_highest(run) for name, (_, run) in good_and_bad.items()}
compared = pd.DataFrame(
    {
        "Amdahl alone (formula)": [speedup(cost, 2, False) for cost in costs.values()],
        "with the exchange (formula)": [speedup(cost, 2) for cost in costs.values()],
        "2 ranks together (measured)": real.values(),
        "lowest": [one["min"] for one in ranges.values()],
        "highest": [one["max"] for one in ranges.values()],
    },
    index=list(costs),
)
compared.round(2)

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
counts = [2**power for power in range(7)]
most_ranks = {name: min(64, ways["1 rank"]["batch"]) for name, (ways, _) in good_and_bad.items()}
title = "Speed-up: the formula (lines), measured with 2 ranks (marks)"
with plots.canvas(title, "ranks", "times as fast as 1 rank", size=(7.5, 3.8)) as axes:
    axes.plot(counts, counts, color="grey", linestyle=":", label="ideal: N ranks, N times")
    for colour, style, marker, (name, cost) in zip(
        plots.COLOURS, ("-", "--"), "os", costs.items(), strict=False
    ):
        possible = [n for n in counts if n <= most_ranks[name]]
        formula = [speedup(cost, n) for n in possible]
        axes.plot(possible, formula, style, color=colour, label=f"{name}: formula")
        low, high = ranges[name]
        reach = [[real[name] - low], [high - real[name]]]
        look = {"color": colour, "capsize": 5, "markersize": 8, "label": f"{name}: measured"}
        axes.errorbar([2], [real[name]], yerr=reach, fmt=marker, **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(counts, counts)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=9)

# %%
guess.compare(bad=real[small])
for name, cost in costs.items():
    verdict = "slower than" if real[name] < 1 else f"{real[name]:.2f} times as fast as"
    at_most = f"{speedup(cost, most_ranks[name]):.1f} times with {most_ranks[name]}"
    print(f"{name}: 2 ranks are {verdict} one; the formula says {at_most}.")

# %% [markdown]
# The marks are measured here, with their range. The lines are the formula for ranks that have a
# core and a link of their own; beyond two ranks nothing was measured. Where a mark is below its
# line, look at the ceiling: two ranks on one machine share its memory, and the formula doesn't know
# that.
#
# A mark above its line may be noise (look at its range); or DDP hid a part of the exchange behind
# the computation, while the formula counts all of it.
#
# Neither line reaches the ideal. With a fixed global batch, 64 ranks have few images each, and what
# doesn't shrink dominates. (The dashed line ends at 8 ranks: 8 images can't be divided among more.)

# %% jupyter={"source_hidden": true} tags=["results"]
assert real[small] < real[large], "More work per weight must scale better: measure again."
predicted = {name: speedup(cost, 2) for name, cost in costs.items()}
limit = {name: speedup(cost, 1e9) for name, cost in costs.items()}  # of ever more ranks
workshop.save_results(real=real, predicted=predicted, limit=limit, communicating=shares)

# %% [markdown]
# ## A larger batch, a larger learning rate
#
# The way around the bend: give more ranks more images. If each rank keeps 32, then 8 ranks make a
# `global_batch_size` of 256, and every rank has enough to do. But this changes the training itself.
# An epoch now has about an eighth of the **updates**: what doesn't fill a batch at the end of an
# epoch is left out, so 1,437 images make 44 updates of 32 images, 5 of 256, or 1 of 1,024. Does the
# model still learn as much?
#
# For SGD, the optimizer of this lesson, the usual answer is the **linear scaling rule**: with `k`
# times the batch take `k` times the learning rate, since one update must now do the work of `k`.
# (For Adam the square root of `k` fits better:
# [arXiv:2205.10287](https://arxiv.org/abs/2205.10287), 2022.) In the first epochs the large rate
# can be too much, so it is raised slowly: a **warm-up**. Goyal et al. trained ResNet-50 that way
# with a batch of 8,192 on 256 GPUs in one hour, with no loss of accuracy; beyond 8,192 it fell
# ([arXiv:1706.02677](https://arxiv.org/abs/1706.02677), 2017).
#
# A **seed** sets the random numbers of a training: the first weights and the order of the images.
# Each setting is trained with several seeds, to show how much chance alone changes the result. So
# each setting has a range of accuracies. A difference between two settings counts here only if
# their ranges don't overlap.
#
# You have shown that N ranks compute what one process computes with the whole batch. So here one
# process stands for 8 or 32 ranks: same updates, same weights up to rounding. The last row keeps 32
# ranks' batch, and takes the rate of 8.

# %%
settings = {  # images per update, learning rate, first rate, epochs until the full rate
    "1 x 32 images": (32, 0.02, 0.02, 0),
    "8 x 32, same rate": (256, 0.02, 0.02, 0),
    "8 x 32, rate x 8": (256, 0.16, 0.16, 0),
    "8 x 32, rate x 8, warm-up": (256, 0.16, 0.02, 3),
    "32 x 32, rate x 32, warm-up": (1024, 0.64, 0.02, 3),
    "32 x 32, rate x 8, warm-up": (1024, 0.16, 0.02, 3),
}
guess = workshop.guess(
    same="Accuracy in % after equal epochs: 8 x 32 images, same rate:",
    scaled="Accuracy in % after equal epochs: 8 x 32 images, rate x 8:",
    far="Accuracy in % after equal epochs: 32 x 32 images, rate x 32, warm-up:",
)

# %%
names = ("global_batch_size", "learning_rate", "first_rate", "warmup_epochs")
results = []
for name, numbers in settings.items():
    setting = dict(zip(names, numbers, strict=True))
    for seed in range(0, seeds, 2):  # each rank trains its own seed
        given = [seed, seed + 1], setting, epochs, training, test
        found = pair.run_each("parallel.large_batch:train", *given, timeout=280)
        results += [{"setting": name, **one} for one in found]
results = pd.DataFrame(results)
results["first loss"], results["last loss"] = results["losses"].str[0], results["losses"].str[-1]
by_setting = results.groupby("setting", sort=False)
summary = by_setting[["updates", "first loss", "last loss"]].median()
summary.assign(**by_setting["accuracy"].agg(["min", "median", "max"])).round(3)

# %% jupyter={"source_hidden": true} tags=["figure"]
label = "test images right, %; a point for each seed, a line at the median"
title = "Accuracy after equally many epochs (measured)"
medians = by_setting["accuracy"].median().items()
said = title + ", medians: " + ", ".join(f"{name}: {100 * one:.0f} %" for name, one in medians)
with plots.canvas(title, label, size=(7, 4), alt=said) as axes:
    for row, (name, runs) in enumerate(by_setting["accuracy"]):
        found, colour = 100 * runs, plots.COLOURS[row]
        axes.plot(found, [name] * len(found), "o", color=colour, alpha=0.6)
        axes.plot([found.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=3)
    axes.set(xlim=(0, 103), ylim=(len(by_setting) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)

# %%
middle = by_setting["accuracy"].median()
base, same, scaled, _, far, calm = middle
guess.compare(same=100 * same, scaled=100 * scaled, far=100 * far)
lowest, highest = by_setting["accuracy"].min(), by_setting["accuracy"].max()


def compare_seeds(before, after):
    """Print the accuracies of two settings over the seeds, and whether their difference counts."""
    for name in (before, after):
        print(f"{name}: {100 * lowest[name]:.0f} to {100 * highest[name]:.0f} %")
    overlap = lowest[after] <= highest[before] and lowest[before] <= highest[after]
    print("   the ranges overlap: no difference shown" if overlap else "   no overlap: it counts")


compare_seeds("8 x 32, same rate", "8 x 32, rate x 8")
compare_seeds("8 x 32, rate x 8", "8 x 32, rate x 8, warm-up")
compare_seeds("32 x 32, rate x 8, warm-up", "32 x 32, rate x 32, warm-up")
loss_far = summary.loc["32 x 32, rate x 32, warm-up"]
moved = "rose" if loss_far["last loss"] > loss_far["first loss"] else "fell"
print(f"At 32 times the rate the loss {moved}: ", end="")
print(f"{loss_far['first loss']:.2f} to {loss_far['last loss']:.2f}.")
print(f"As many updates at 8 times the rate reached {100 * calm:.0f} %, not {100 * far:.0f} %.")

# %% [markdown]
# Does the model still learn as much? With the same rate it doesn't: about an eighth of the updates
# moves the weights about an eighth as far, and the model isn't finished. The scaled rate makes up
# for most of that. A warm-up was made for long trainings whose first steps are the dangerous ones.
# Here it spends some of only 100 updates on small steps, so don't expect a gain.
#
# And the rule ends. Compare the last two rows: both make 20 updates of 1,024 images. Too few
# updates is one thing, and costs both rows accuracy. But what broke the training is the scaled
# rate itself: steps so large that the loss doesn't go down. So there are two limits to adding
# ranks: with a fixed global batch the *speed* stops growing, with a growing one the *learning*
# does.

# %% jupyter={"source_hidden": true} tags=["results"]
assert base > scaled > same, f"Expected base > scaled > same rate: {middle.round(3).to_dict()}"
assert calm > far, (
    f"The smaller rate must learn more from 1,024 images: {middle.round(3).to_dict()}"
)
workshop.save_results(accuracies=middle.to_dict(), updates=by_setting["updates"].first().to_dict())
workshop.save_results(last_losses=summary["last loss"].to_dict())

# %% [markdown]
# ## DDP as a job
#
# The script from above, on two instances. `torch_distributed` starts `torchrun` on each of them,
# which tells every rank about the others. Without `distribution` both instances would run the
# script, too, but each would train a model of its own, and you would pay for both. **Instances
# don't make training distributed. The launcher and the script do.**

# %%
session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
workshop.cost("ml.c5.xlarge", instance_count=2, seconds=180)

# %% [markdown]
# > *Currently torch_distributed is supported only for GPU and Trainium instances*, says the SDK for
# > an instance without a GPU. But the image can do it: without a GPU it starts one rank on
# > each instance. The SDK skips its check if you name the image, so the cell sets `image_uri`.

# %%
from sagemaker import image_uris
from sagemaker.pytorch import PyTorch

version = {"version": "2.2.0", "py_version": "py310", "instance_type": "ml.c5.xlarge"}
region = session.boto_session.region_name
ddp = PyTorch(
    entry_point="train_torch_ddp.py",
    image_uri=image_uris.retrieve("pytorch", region, image_scope="training", **version),
    instance_type="ml.c5.xlarge",
    instance_count=2,
    distribution={"torch_distributed": {"enabled": True}},
    hyperparameters={"epochs": 3, "threads-per-rank": 1},
    **session.job_settings("ddp"),
)
ddp.fit({"training": f"{data}/training", "test": f"{data}/test"}, wait=False)
trained = workshop.follow(ddp)

# %% [markdown]
# Three epochs are too few for a good accuracy. The question here is another: do both ranks hold the
# same model? Each rank prints a SHA-256 hash of its weights at the end. One other bit in one weight
# would give another hash.

# %%
weights = trained.table("weights").sort_values("rank", ignore_index=True)
one_model = weights["weights_sha256"].nunique() == 1
print("Equal hashes: the ranks hold one model." if one_model else "Different hashes: two models.")
shown = weights[["rank", "host", "weights_sha256"]].copy()
shown["weights_sha256"] = shown["weights_sha256"].str[:16] + "…"
shown

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(weights["rank"]) == [0, 1], f"Two ranks were to train: {list(weights['rank'])}"
assert weights["host"].nunique() == 2, "Both ranks ran on one instance."
assert weights["weights_sha256"].nunique() == 1, "The ranks trained two models: see distribution."
workshop.save_results(ddp_weights=weights["weights_sha256"])

# %% [markdown]
# ## Exercises
#
# In [exercises/01_data_parallelism](exercises/01_data_parallelism.ipynb); each checks your answer.
#
# 1. Cut equal shards, whatever the number of images (5 minutes, easy).
# 2. Weigh unequal shards so that the gradient is right (8 minutes, medium).
# 3. Turn a one-process training into a data-parallel one (12 minutes, hard).
#
# ## Check yourself

# %%
workshop.quiz("01")

# %% [markdown]
# ## Summary
#
# - Data parallel: model replicated, batch split, gradients averaged. Equal shards and a mean give
#   the gradient of the whole batch, up to rounding.
# - A sum, unequal shards or batch normalisation give another gradient, and no error.
# - Sync waits; async doesn't wait and gets stale gradients. Model parallel sends activations.
# - Compare two ranks with two processes that exchange nothing: that is the machine's ceiling.
# - What is fixed and what is exchanged limits the speed-up. Measure both, then predict.
# - With a larger global batch there are fewer updates: scale the learning rate, and check that
#   it still learns.

# %%
ranks.stop()
pair.stop()
print(f"Gradient off by {difference:.0e}; 2 ranks reach {price:.2f} of the machine's ceiling.")

# %% [markdown]
# ## Clean up
#
# The ranks are stopped. The job has ended and its instances were given back. `workshop down`
# ends the local endpoint.
#
# ## Next
#
# [02 · Collectives](02_collectives.ipynb): what happens inside `all_reduce`, what it costs, and
# how to build one.

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
# at the end runs on this machine (`target = "local"`) or on AWS (`target = "aws"`), where
# nobody has run it yet.
#
# **Cost on AWS:** about 0.03 USD, at most 0.08 USD: one job on two `ml.c5.xlarge`, 5 minutes
# planned (us-east-1, price list of 2026-09-27). The lesson computes it before the job starts.

# %% [markdown]
# ## Set up
#
# - `world_size`: ranks in the experiments about *what is computed*, 3 or more. They may outnumber
#   the cores.
# - `global_batch_size`: images in one step, over all ranks together.
# - `updates`: length of the experiment on sync and async.
# - `timed_batch_size`, `repeats`, `steps`: for the timings. Each timing is repeated `repeats`
#   times, with `steps` training steps each time.
# - `epochs`, `seeds`: for the experiment on batch sizes. Each setting is trained `seeds` times (an
#   even number).
# - `max_run`: the number of seconds after which SageMaker stops the job.

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
max_run = 600

# %% tags=["deterministic"]
import statistics

import numpy as np
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.measure import interleaved

all_images, all_labels = data_prep.digits.load()
training = all_images[:-360], all_labels[:-360]
test = all_images[-360:], all_labels[-360:]
batch = training[0][:global_batch_size], training[1][:global_batch_size]
print(f"{len(training[0]):,} training images of 8 x 8 pixels, {len(test[0])} test images")

# %% [markdown]
# ## The model whole, the batch in parts
#
# One training step takes a batch of images, computes the **gradient** (how the loss changes with
# each weight), and takes a small step in the opposite direction. Twice the images take nearly twice
# as long. So divide the images among several processes. Each process has a number, its **rank**,
# and is usually called by it: "rank 2" is the process with the number 2. How many there are is the
# **world_size**.
#
# | | on every rank | |
# |---|---|---|
# | the model's weights | whole, and the same | **replicated** |
# | the optimizer's state, the script | whole, and the same | **replicated** |
# | the global batch | a different part | **split** |
# | the gradient, as a rank computes it | its own: from its own images | |
# | the gradient, after the ranks have averaged | the same | replicated again |
#
# That is **data parallel** training. Equal weights that are moved by equal gradients stay equal. So
# the weights need not be sent around again: only gradients travel. (With a parameter server, lesson
# 03, the new weights travel, too.)
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
# Several processes on one computer are distributed training already; it doesn't need
# `instance_count > 1`. What counts is that processes divide the work and average what they find,
# wherever they run.
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

    gradient = gradient_of(*shard, batch_norm)
    dist.all_reduce(gradient)  # now it is the sum of all ranks' gradients, on every rank
    return gradient / dist.get_world_size() if divide else gradient


# %%
shards = [(batch[0][r::world_size], batch[1][r::world_size]) for r in range(world_size)]
expected = ranks.run(gradient_of, *batch)[0]  # of a single rank with all images
averaged = ranks.run_each(exchanged, shards)
between_ranks = max(np.abs(gradient - averaged[0]).max() for gradient in averaged)
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
# a different order. Neither result is more right than the other.

# %% jupyter={"source_hidden": true} tags=["results"]
assert between_ranks == 0, "The ranks hold different gradients: did each call all_reduce?"
assert tiny, f"{difference} is more than rounding: do the shards make up the whole batch?"
workshop.save_results(gradient_difference=difference, between_ranks=between_ranks)

# %% [markdown]
# ## Three ways to get a wrong gradient
#
# The proof had conditions. Break one at a time, and see how far off the gradient is:
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
    [[np.linalg.norm(a - b), np.linalg.norm(a)] / np.linalg.norm(b) for a, b in cases.values()],
    index=list(cases),
    columns=["relative error", "length / right length"],
)
broken.style.format({"relative error": "{:.1e}", "length / right length": "{:.2f}"})

# %% [markdown]
# The *relative error* is the length of the difference, divided by the length of the right gradient.
# None of the three raises an error, and training continues with each.
#
# 1. In a mean of means, an image on a small shard weighs more. Cut equal shards, as the scripts
#    here do, or weight each rank's gradient by its number of images: exercise 01.2.
# 2. The sum is `world_size` times too long. That acts like a learning rate that is too high by the
#    same factor, and it changes with the number of ranks.
# 3. The ranks compute a different function from one process. Avoid batch normalisation, or
#    share its statistics in each step (on GPUs `torch.nn.SyncBatchNorm`). With many images per
#    rank people often accept the difference. Then it is a choice, not an accident.

# %% jupyter={"source_hidden": true} tags=["results"]
off = broken["relative error"].to_dict()
assert off.pop("equal shards, mean") < 1e-6, "Equal shards must give the whole batch's gradient."
assert min(off.values()) > 1e-4, f"A broken case was not broken: {off}"
workshop.save_results(
    broken=off, sum_factor=broken.loc["equal shards, sum", "length / right length"]
)

# %% [markdown]
# ## The change in the script
#
# You rarely call `all_reduce` by hand. PyTorch's `DistributedDataParallel` (**DDP**) does it during
# `backward()`. This is all that a training loop needs: meet the others (1), take your own part of
# the data (2), average (3). `optimizer.step()` is unchanged and sends nothing: when `backward()`
# returns, the gradients are averaged already. Two new ranks run it; the timings below use them too.


# %%
def train_with_ddp(images, labels, epochs=2, global_batch_size=64):
    import torch
    import torch.distributed as dist
    from parallel.gradients import new_model
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    # (1) A script calls dist.init_process_group("gloo") here. start_ranks has done that.
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    sampler = DistributedSampler(dataset, drop_last=True)  # (2)
    loader = DataLoader(dataset, global_batch_size // dist.get_world_size(), sampler=sampler)
    model = DistributedDataParallel(new_model())  # (3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # a new order in each epoch
        for some, right in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(some), right).backward()
            optimizer.step()
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


# %%
pair = workshop.start_ranks(2)
weights_of_0, weights_of_1 = pair.run(train_with_ddp, *training)
ddp_apart = np.abs(weights_of_0 - weights_of_1).max()
print(f"after training: largest difference between the ranks' weights: {ddp_apart:.1e}")
halves = [(batch[0][rank::2], batch[1][rank::2]) for rank in range(2)]
ddp_difference = np.abs(pair.run_each("parallel.gradients:by_ddp", halves)[0] - expected).max()
print(f"DDP's gradient: largest difference from the whole batch's: {ddp_difference:.1e}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert ddp_apart == 0, "The ranks must end with the same weights."
assert ddp_difference < 1e-6, "DDP must give the whole batch's gradient."
workshop.save_results(ddp_difference=ddp_difference)

# %% [markdown]
# The script `scripts/train/train_torch_ddp.py` has the same three lines. The rest of its diff from
# the one-process script `train_torch.py` handles launchers, checkpoints and printing; skip it for
# now. `torchrun` is PyTorch's launcher: it starts the ranks, and tells each its number and how many
# there are. (`mpirun` is another launcher: lesson 04.) `nccl` and `gloo` are libraries that carry
# the messages: `nccl` between GPUs, `gloo` between CPUs. To start two ranks, type in a terminal, in
# the kit's folder:
#
#     . .venv/bin/activate
#     python -m data_prep digits
#     torchrun --standalone --nproc_per_node 2 scripts/train/train_torch_ddp.py

# %%
essential = ["init_process_group(", "DistributedSampler(data", "DistributedDataParallel(model)"]
workshop.show_diff("train/train_torch.py", "train/train_torch_ddp.py", essential)

# %% [markdown]
# The script cuts the data itself, by rank. SageMaker can also give each instance different files
# (`ShardedByS3Key`); lesson 09 is about that. Do only one of the two.
#
# ## The other way to divide: model parallel
#
# DDP keeps the whole model on each rank. **Model parallel** training divides the model: here rank 0
# has the two convolutions, which turn each image into 128 numbers, and rank 1 the two dense layers,
# which turn those into a digit. All images pass through both. Then no gradients of weights travel.
# What travels forward are the **activations**, the numbers that the first layers made of the
# images; the gradient of those activations comes back.
#
# The first cell compares the gradient with that of the whole model. The second runs a step at
# several batch sizes and counts what each rank sends. The last column is computed, not measured: in
# data parallel training each of 2 ranks sends the size of the gradient once (lesson 02), whatever
# the batch.

# %%
stages = ranks.run("parallel.stages:one_step", *batch)[:2]
put_together = np.concatenate([stage["gradient"] for stage in stages])
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
# The difference is rounding: the two halves add the same numbers in a different order.
#
# Model parallel training sends something for each *image*, data parallel training something for
# each *weight*. Dividing between layers, as here, is **pipeline parallel**: while rank 1 computes,
# rank 0 waits, and real systems split the batch into **micro-batches** to fill that gap. Dividing
# within layers is **tensor parallel**.
#
# A model that is too large for one device doesn't always need either. **FSDP** (the idea is also
# called ZeRO) is data parallel training in which each rank stores only a shard of the weights,
# gradients and optimizer state, and gathers a layer's weights when it needs them
# ([PyTorch](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)); the
# [reference](reference.ipynb) has a script. The largest models combine all of these. The rest of
# this course is about data parallel training with the whole model on each rank.

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
# Async says when updates apply, not who reads what: the workers below have the same shards in both
# cases. Nor does it say how gradients travel. Sync is usually an all-reduce, but below the same
# server (rank 0) does both; in async mode it doesn't average, it applies each gradient as it
# arrives.
#
# The other ranks are workers. The last one is a **straggler**, slower than the others on purpose:
# it sleeps 15 ms in each step, the others 3 ms. The model is tiny, so a step is nearly all sleep. A
# sync update uses a gradient of *every* worker, an async update only one. So compare gradients per
# second.

# %%
workers = world_size - 1
pixels, labels = (training[0].reshape(-1, 64) / 255).astype("float32"), training[1]
parts = [None] + [(pixels[w::workers], labels[w::workers]) for w in range(workers)]
pause = [0.0] + [0.003] * (workers - 1) + [0.015]  # seconds, by rank
guess = workshop.guess(
    sync_rate="Sync: gradients per second, of all workers together:",
    async_rate="Async: gradients per second, of all workers together:",
)

# %%
table, computed = [], {}
for way, wait in {"sync": True, "async": False}.items():
    for _ in range(3):
        arguments = (parts, wait, updates, 0.5, pause)  # 0.5: the learning rate
        done, *computed[way] = ranks.run_each("parallel.stale:train", *arguments)
        stale = [push["staleness"] for push in done]
        speed = updates * (workers if wait else 1) / done[-1]["seconds"]
        table.append((way, speed, np.mean(stale), max(stale)))
table = pd.DataFrame(table, columns=["way", "gradients/s", "mean staleness", "highest"])
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
title = "Sync: all wait for the slow worker. Async: each goes at its own pace"
plots.gantt(first, title, "milliseconds")

# %%
middle = by_way["gradients/s"].median()
guess.compare(sync_rate=middle["sync"], async_rate=middle["async"])
most = {"sync": workers / max(pause), "async": sum(1 / seconds for seconds in pause[1:])}
print(f"From the pauses alone: at most {most['sync']:.0f} (sync), {most['async']:.0f} (async).")
print(
    f"Async gradients missed {by_way['mean staleness'].median()['async']:.1f} updates on average."
)

# %% [markdown]
# In sync mode all workers deliver one gradient in each of the slow worker's steps, in async mode
# each in its own. Messages and updates take time, too, so what is measured is below these limits.
# (In the table, *highest* is the largest staleness of any gradient.)
#
# In the picture, follow a fast worker. In sync mode it spends most of its time waiting for the slow
# one; in async mode it waits only for the server. That has a price: an update with a gradient that
# missed several others goes downhill from where the weights *were*. So async trades waiting for
# staleness. Lesson 03 measures what that does to learning.

# %% jupyter={"source_hidden": true} tags=["results"]
assert table.loc[table["way"] == "sync", "highest"].max() == 0, "A sync gradient is never stale."
staleness = by_way["mean staleness"].median()
assert staleness["async"] > 0.5, "No gradient was stale: are there 2 workers?"
workshop.save_results(gradients_per_second=middle.to_dict(), staleness=staleness.to_dict())

# %% [markdown]
# ## How much faster are two ranks?
#
# Now to speed: the **throughput**, images per second of all ranks together. The global batch stays
# as it is when ranks are added: **strong scaling**. Three ways to process it:
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
# doesn't depend on what they show, and with our 8 x 8 digits a step would be too short for two
# ranks to pay off.

# %%
guess = workshop.guess(
    ceiling="2 independent ranks: what is their speed-up over 1 rank?",
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
# C, ...), so that a disturbance hits all of them, and compare within each repeat. `interleave` does
# that: it returns a row for each repeat, a column for each setting.
#
# The *speed-up* is the ratio of two throughputs of the same repeat. The table has the median,
# lowest and highest of the repeats. The *efficiency* is the median speed-up divided by the number
# of ranks.


# %%
def measure(setting):
    """Throughput: images per second of all ranks that take part, together."""
    seconds = pair.run(step_seconds, setting, steps, timeout=250)
    return sum(setting["batch"] / step for step in seconds if step is not None)


def ratio(measured, above, below):
    """The median of one column over another, taken repeat by repeat."""
    return (measured[above] / measured[below]).median()


def speedups(measured, base):
    """A row for each setting: its speed-up over `base`, taken repeat by repeat."""
    ratios = measured.div(measured[base], axis=0)
    return interleaved.summary(ratios).rename(columns={"median": "speed-up"})


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
good = interleaved.interleave(measure, good_ways, repeats)
speeds = speedups(good.drop(columns="1 rank, part"), "1 rank")
speeds["efficiency"] = speeds["speed-up"] / [1, 2, 2]  # the speed-up for each rank
price = ratio(good, "2 ranks together", "2 independent ranks")
print(f"1 rank: {good['1 rank'].median():,.0f} images per second (median)")
speeds.round(2)

# %% jupyter={"source_hidden": true} tags=["figure"]
title = f"2 ranks together reach {price:.0%} of what 2 independent ones reach (measured)"
label = "speed-up over 1 rank: median, and range of the repeats"
plots.bar_chart(speeds["speed-up"], title, label, texts="{:.2f}", spread=speeds)

# %%
ceiling = speeds.loc["2 independent ranks", "speed-up"]
guess.compare(ceiling=ceiling, price=price)
print(f"2 ranks together reach {price:.0%} of this machine's ceiling, which is {ceiling:.2f} x.")
spread = (speeds["highest"] / speeds["lowest"]).max()
if not 0.8 < price < 1.05 or spread > 1.5:
    print("Something else uses the cores, so don't trust these numbers: measure again later.")
elif ceiling < 1.8:
    print("So it is this machine that limits the speed-up, more than data parallelism does.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    speeds=good.drop(columns="1 rank, part").median().to_dict(), of_ceiling=price, ceiling=ceiling
)

# %% [markdown]
# Two things are lost below the ceiling: the time of the exchange, and the time in which one rank
# waits for the other. In every step both wait for the slower of the two, so they suffer from every
# disturbance of either.
#
# ## Threads, and one library
#
# A rank on a CPU can use several threads by itself. So there are two ways to use two cores: one
# rank with two threads, or two ranks with one each. A third happens by accident: two ranks with two
# threads each. By default PyTorch uses up to one thread per core in *every* process, and then the
# threads compete for the cores. (`torchrun` sets one thread if it starts several processes.)
#
# The convolutions are computed by **oneDNN** (formerly MKL-DNN), a library with fast code for each
# kind of CPU. The last row switches it off. The batch is a quarter of the one above, so don't
# compare these speed-ups with those.

# %%
each = {"batch": timed_batch_size // 4}
single, pair_of_ranks = (
    {"ranks": "one", **each},
    {"ranks": "together", "batch": each["batch"] // 2},
)
threads = {
    "1 rank, 1 thread": single,
    "1 rank, 2 threads": single | {"threads": 2},
    "2 ranks, 1 thread each": pair_of_ranks,
    "2 ranks, 2 threads each": pair_of_ranks | {"threads": 2},
    "1 rank, 1 thread, no oneDNN": single | {"onednn": False},
}
threads = {name: setting | small_model for name, setting in threads.items()}
measured = interleaved.interleave(measure, threads, max(3, repeats // 2))
by_threads = speedups(measured, "1 rank, 1 thread")
by_threads.round(2)


# %%
def wins(measured, first, other):
    """In how many repeats `first` was faster than `other`, in words."""
    return f"{(measured[first] > measured[other]).sum()} of {len(measured)} repeats"


alone, one_of_two, two_of_one, two_of_two, without = threads
print("One rank was faster with oneDNN than without it in", wins(measured, alone, without))
print("Two ranks with one thread each were faster than")
print("- one rank with two threads in", wins(measured, two_of_one, one_of_two))
print("- two ranks with two threads each in", wins(measured, two_of_one, two_of_two))

# %% jupyter={"source_hidden": true} tags=["results"]
assert by_threads["lowest"].min() > 0, "A setting was not measured: run the cell again."
workshop.save_results(by_threads=measured.median().to_dict())

# %% [markdown]
# Switch oneDNN off only if such a comparison, with your model, tells you to.
#
# Which way wins depends on the model and the machine. Two threads of one rank divide every single
# operation, and wait for each other many times in a step; two ranks wait once in a step, but each
# has all the fixed work of a step. So measure with *your* model. The scripts here take
# `--threads-per-rank`; by default it is 1, as under torchrun, so that ranks don't compete.
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
guess = workshop.guess(bad="8 images, 2.8 million weights: what is the speed-up of 2 ranks?")

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
title = "The exchange takes {:.0%} of three steps above, {:.0%} below (measured)"
plots.gantt(spans, title.format(*shares.values()), "% of the configuration's own three steps")

# %% [markdown]
# When ranks are added, only the computing shrinks, and not even all of it:
#
# - a **fixed part** stays: starting operations, updating all weights. Amdahl's law says what
#   follows. With a fixed share `s` of the time, the speed-up of `N` ranks is at most
#   `1 / (s + (1 - s) / N)`, and never more than `1 / s`;
# - the **exchange** of gradients is added, which one rank alone doesn't have.
#
# You can measure both before you train with a second rank. A step with B images takes F + D · B
# seconds: F is the fixed part, D the time for each image. Time two batches, the whole one and a
# 32nd of it (at least one image), and solve the two equations for F and D. The exchange is an
# all-reduce of as many numbers as there are weights.

# %%
good_and_bad = {
    large: (good_ways, good),
    small: (bad_ways, interleaved.interleave(measure, bad_ways, repeats)),
}
costs = {}
for name, (ways, throughput) in good_and_bad.items():
    whole, part = (
        ways[way]["batch"] / throughput[way].median() for way in ("1 rank", "1 rank, part")
    )
    share = ways["1 rank, part"]["batch"] / ways["1 rank"]["batch"]  # of the batch, in `part`
    divided = min(max(0, (whole - part) / (1 - share)), whole)  # D times the whole batch
    exchange = statistics.median(
        pair.seconds("parallel.speed:exchange", ways["1 rank"], repeats=15)
    )
    costs[name] = {"divided": divided, "fixed": whole - divided, "exchange": exchange}
parts = pd.DataFrame(costs).T
(1000 * parts).add_suffix(", ms").round(2)

# %% [markdown]
# The picture showed three steps only, with the wait for the other rank as a part of its own. The
# table has the median of 15 exchanges; where the two disagree, trust the table.
#
# Two ranks halve the first column, keep the second and pay the third. (A fixed part of 0.00 means
# that it was too small to see: the noise of the two timings is larger.) What do N ranks pay? In a
# ring, a common way to do an all-reduce, each rank sends 2 (N - 1) messages of one N-th of the
# gradient (lesson 02). If the exchange takes as long as its *bytes* need, it grows with 2 (N - 1) /
# N, so it stays below twice that of two ranks. If it is all **latency**, the delay of each message
# however small, it grows with N - 1. One measured exchange can't tell which; so the function below
# gives both ends.


# %%
def speedup(cost, n, latency=False, with_exchange=True):
    """The formula: the speed-up of n ranks, each with a core and a link of its own.

    latency: the exchange is all latency; otherwise all bytes. With 2 ranks that is the same.
    """
    growth = n - 1 if latency else 2 * (n - 1) / n
    step = cost["fixed"] + cost["divided"] / n + cost["exchange"] * growth * with_exchange
    return (cost["fixed"] + cost["divided"]) / step


def lowest_to_highest(run):
    """The range of the speed-up of two ranks together, over the repeats."""
    return (run["2 ranks together"] / run["1 rank"]).agg(["min", "max"])


# %%
real = {name: ratio(run, "2 ranks together", "1 rank") for name, (_, run) in good_and_bad.items()}
ranges = {name: lowest_to_highest(run) for name, (_, run) in good_and_bad.items()}
compared = pd.DataFrame(
    {
        "Amdahl alone (formula)": [
            speedup(cost, 2, with_exchange=False) for cost in costs.values()
        ],
        "with the exchange (formula)": [speedup(cost, 2) for cost in costs.values()],
        "2 independent ranks (measured)": [
            ratio(run, "2 independent ranks", "1 rank") for _, run in good_and_bad.values()
        ],
        "2 ranks together (measured)": real.values(),
        "lowest": [between["min"] for between in ranges.values()],
        "highest": [between["max"] for between in ranges.values()],
    },
    index=list(costs),
)
compared.round(2)

# %% jupyter={"source_hidden": true} tags=["figure"]
counts = [1, 2, 4, 8, 16]
most_ranks = {name: min(16, ways["1 rank"]["batch"]) for name, (ways, _) in good_and_bad.items()}
title = "Speed-up: 2 ranks (marks, measured), more ranks (bands, the formula)"
with plots.canvas(title, "ranks", "speed-up over 1 rank", size=(7.5, 3.8)) as axes:
    axes.plot(counts, counts, color="grey", linestyle=":", label="ideal: N ranks, N times")
    for colour, marker, (name, cost) in zip(plots.COLOURS, "os", costs.items(), strict=False):
        possible = [n for n in counts if n <= most_ranks[name]]
        low, high = ([speedup(cost, n, latency) for n in possible] for latency in (True, False))
        axes.plot(possible, high, color=colour, label=f"{name}: formula, all bytes")
        axes.plot(possible, low, "--", color=colour, label=f"{name}: formula, all latency")
        axes.fill_between(possible, low, high, color=colour, alpha=0.15)
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
    low, high = (speedup(cost, most_ranks[name], latency) for latency in (True, False))
    print(f"{name}: 2 ranks have a speed-up of {real[name]:.2f}; ", end="")
    print(f"the formula says {low:.1f} to {high:.1f} with {most_ranks[name]}.")

# %% [markdown]
# The marks are measured here, with their range. The bands are the formula for ranks that have a
# core and a link of their own; beyond two ranks nothing was measured. A wide band is an honest
# answer: from one exchange nobody can say how 16 ranks will do. Lesson 02 times two sizes of
# message, and so tells latency and bandwidth apart.
#
# Where a mark is below its line, compare it with *2 independent ranks* in the table. They exchange
# nothing. What they lose is this machine's ceiling (shared memory, caches, cores), which the
# formula doesn't know. A mark above its line may be noise (look at its range); or DDP hid a part of
# the exchange behind the computation, while the formula counts all of it.
#
# Neither line reaches the ideal. With a fixed global batch, many ranks have few images each, and
# what doesn't shrink dominates. (One band ends at 8 ranks: 8 images can't be divided among more.)

# %% jupyter={"source_hidden": true} tags=["results"]
assert real[small] < real[large], "More work per weight must scale better: measure again."
predicted = {name: speedup(cost, 2) for name, cost in costs.items()}
limit = {name: speedup(cost, 1e9) for name, cost in costs.items()}  # of ever more ranks
workshop.save_results(real=real, predicted=predicted, limit=limit, communicating=shares)
both = {n: [speedup(c, most_ranks[n], slow) for slow in (True, False)] for n, c in costs.items()}
workshop.save_results(at_most_ranks=both)

# %% [markdown]
# ## A larger batch, a larger learning rate
#
# One way past this limit: let the batch grow with the ranks (**weak scaling**). If each rank keeps
# 32 images, then 8 ranks make a `global_batch_size` of 256, and every rank has enough to do. (One
# rank can train with such a batch, too: **gradient accumulation** adds the gradients of several
# small batches before each update.) But this changes the training itself. An epoch now has about an
# eighth of the **updates**: what doesn't fill a batch at the end of an epoch is left out, so 1,437
# images make 44 updates of 32 images, 5 of 256, or 1 of 1,024. Does the model still learn as much?
#
# For SGD the usual answer is the **linear scaling rule**: with `k` times the batch take `k` times
# the learning rate, since one update must now do the work of `k`. (For Adam the square root of `k`
# fits better: [arXiv:2205.10287](https://arxiv.org/abs/2205.10287), 2022.) In the first epochs the
# large rate can be too much, so it is raised slowly: a **warm-up**. Goyal et al. trained ResNet-50
# that way with a batch of 8,192 on 256 GPUs in one hour, with no loss of accuracy; beyond 8,192 it
# fell ([arXiv:1706.02677](https://arxiv.org/abs/1706.02677), 2017). This lesson uses SGD with a
# **momentum** of 0.9: each gradient acts on several updates, about ten times in all, so a rate of
# 0.64 moves the weights like 6.4 without momentum.
#
# A **seed** sets the random numbers of a training: the first weights and the order of the images.
# Each setting is trained with several seeds, to show how much chance alone changes the result. All
# settings use the same seeds, so compare seed by seed: here a difference counts only if it has the
# same sign with every seed. (By chance alone four seeds agree in one case of eight: this is a weak
# test.)
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
    for seed in range(0, seeds, 2):
        pair_of_seeds = [seed, seed + 1]  # each rank trains its own seed
        given = pair_of_seeds, setting, epochs, training, test
        trained = pair.run_each("parallel.large_batch:train", *given, timeout=280)
        results += [
            {"setting": name, "seed": n, **result}
            for n, result in zip(pair_of_seeds, trained, strict=True)
        ]
results = pd.DataFrame(results)
results["first loss"], results["last loss"] = results["losses"].str[0], results["losses"].str[-1]
by_setting = results.groupby("setting", sort=False)
summary = by_setting[["updates", "first loss", "last loss"]].median()
summary.assign(**by_setting["accuracy"].agg(["min", "median", "max"])).round(3)

# %% jupyter={"source_hidden": true} tags=["figure"]
label = "test images right, %; a point for each seed, a line at the median"
medians = by_setting["accuracy"].median().items()
worst = 100 * by_setting["accuracy"].median().min()
title = f"Too large a rate for the batch: {worst:.0f} % right after as many epochs (measured)"
description = ", ".join(f"{name}: {100 * median:.0f} %" for name, median in medians)
with plots.canvas(title, label, size=(7, 4), alt=f"{title}, medians: {description}") as axes:
    for row, (name, runs) in enumerate(by_setting["accuracy"]):
        percent, colour = 100 * runs, plots.COLOURS[row]
        axes.plot(percent, [name] * len(percent), "o", color=colour, alpha=0.6)
        axes.plot([percent.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=3)
    axes.set(xlim=(0, 103), ylim=(len(by_setting) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)

# %%
middle = by_setting["accuracy"].median()
base, same, scaled, _, far, calm = middle
guess.compare(same=100 * same, scaled=100 * scaled, far=100 * far)
by_seed = results.pivot(index="seed", columns="setting", values="accuracy")


def compare_seeds(before, after):
    """Print with how many seeds the second of two settings was the better one."""
    better = (by_seed[after] > by_seed[before]).sum()
    print(f"{after}: better than {before} with {better} of {len(by_seed)} seeds")


compare_seeds("8 x 32, same rate", "8 x 32, rate x 8")
compare_seeds("8 x 32, rate x 8", "8 x 32, rate x 8, warm-up")
compare_seeds("32 x 32, rate x 32, warm-up", "32 x 32, rate x 8, warm-up")
loss_far = summary.loc["32 x 32, rate x 32, warm-up"]
moved = "rose" if loss_far["last loss"] > loss_far["first loss"] else "fell"
print(f"At 32 times the rate the loss {moved}: ", end="")
print(f"{loss_far['first loss']:.2f} to {loss_far['last loss']:.2f}.")
print(f"As many updates at 8 times the rate reached {100 * calm:.0f} %, not {100 * far:.0f} %.")

# %% [markdown]
# Does the model still learn as much? With the same rate it doesn't: about an eighth of the updates
# moves the weights about an eighth as far, and the model isn't finished. The scaled rate makes up
# for much of that. A warm-up was made for long trainings whose first steps are the dangerous ones.
# Here, with only 100 updates, it wastes some of them on small steps, so don't expect a gain.
#
# And the rule ends. Compare the last two rows: both make 20 updates of 1,024 images. Too few
# updates cost both rows accuracy. What costs the row with rate x 32 the rest is the scaled rate
# itself: its steps are too large. So there are two limits to adding ranks: with a fixed global
# batch the *speed* stops growing, with a growing one the *learning* does.

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
channels = session.upload("digits")
workshop.cost("ml.c5.xlarge", instance_count=2, seconds=300, max_run=max_run)

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
    **session.job_settings("ddp") | {"max_run": max_run},
)
ddp.fit(channels, wait=False)
trained = workshop.follow(ddp)

# %% [markdown]
# Three epochs are too few for a good accuracy. The question here is a different one: do both ranks
# hold the same model? Each rank prints a SHA-256 hash of its weights at the end. Changing one bit
# of one weight would change the hash.

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
# 2. Weight unequal shards so that the gradient is right (8 minutes, medium).
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
# - A sum, unequal shards or batch normalisation give a wrong gradient, and no error.
# - Sync waits; async doesn't wait and gets stale gradients. Model parallel sends activations.
# - Compare two ranks with two processes that exchange nothing: that is the machine's ceiling.
# - With a fixed global batch (strong scaling), what is fixed and what is exchanged limits the
#   speed-up.
# - With a larger global batch (weak scaling) there are fewer updates: scale the learning rate, and
#   check that it still learns.

# %%
ranks.stop()
pair.stop()
print(f"Gradient off by {difference:.0e}; 2 ranks reach {price:.2f} of the machine's ceiling.")

# %% [markdown]
# ## Clean up
#
# The ranks are stopped. The job has ended and its instances were given back. `local-sagemaker stop`
# ends the emulator.
#
# ## Next
#
# [02 · Collectives](02_collectives.ipynb): what happens inside `all_reduce`, what it costs, and
# how to build one.

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
# - predict where more ranks stop helping, and check the prediction by measuring;
# - choose a batch size and a learning rate for more ranks.
#
# **Before:** [lesson 00](00_setup.ipynb): you know what a job, a channel and an instance are.
#
# **Time:** 40 minutes.
#
# **Where it runs:** the ranks are processes of the computer that runs this notebook. Two small
# jobs at the end go to this machine (`target = "local"`) or to AWS (`target = "aws"`).
#
# **Cost on AWS:** two jobs on two `ml.c5.xlarge` for a few minutes each. The lesson prints the
# price, with its date, before they start.

# %% [markdown]
# ## Set up
#
# - `world_size`: ranks in the experiments about *what is computed*, 3 or more. They may outnumber
#   the cores.
# - `global_batch_size`: images in one step, over all ranks together.
# - `updates`: length of the experiment on sync and async.
# - `timed_batch_size`, `repeats`, `steps`: for the timings. Each is the median of `repeats`
#   measurements of `steps` training steps.
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
# each weight), and moves the weights a little against it. With twice the images a step takes
# nearly twice as long. So divide the images among several processes. Each process has a number,
# its **rank**; how many there are is the **world_size**.
#
# | | on every rank | |
# |---|---|---|
# | the model's weights | whole, and the same | **replicated** |
# | the optimizer's memory, the script | whole, and the same | **replicated** |
# | the global batch | a different part | **split** |
# | the gradient, as a rank computes it | its own: from its own images | |
# | the gradient, after the ranks have averaged | the same | replicated again |
#
# That is **data parallel** training. Equal weights, moved by equal gradients, stay equal. So the
# weights need not be sent around again. (You will read that each step sends out the new *model*.
# A parameter server does that, lesson 03. Here only gradients travel.)
#
# The next cell starts real ranks: processes of this machine that can talk to each other.

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
# it needs `instance_count > 1`. It does not: what counts is that processes divide the work and
# average what they find, wherever they run.
#
# `run` calls a function on every rank with the same arguments; `run_each` gives rank r the r-th
# one. Both return a list, one result for each rank. The function is sent to other processes, so it
# imports what it needs by itself. A name such as `"parallel.stages:one_step"` means a function of a
# file in `scripts/demos/`.
#
# ## The average of the gradients
#
# Why is the average right? The loss of a batch is the *mean* of its images' losses. The mean of
# 64 numbers is the mean of the four means of 16. A gradient is a sum of such terms, so the same
# holds for it. This needs three things: parts of equal size, a division by their number, and a
# loss of each image that depends on no other image. And it is algebra; computers round. So:
# predict, then run.
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

# %% [markdown]
# Between the ranks there is no difference at all: they got the same sum. From the whole batch's
# gradient there is one in the eighth digit or so. A computer rounds after each addition, and the
# ranks add in another order. Both are equally right.

# %%
bits = np.array_equal(averaged[0], expected)
guess.compare(gradient="the same bits" if bits else "the same up to rounding")

# %% jupyter={"source_hidden": true} tags=["results"]
assert between_ranks == 0, "The ranks hold different gradients: did each call all_reduce?"
assert difference < 1e-6, f"{difference} is no rounding: do the shards make up the whole batch?"
workshop.save_results(gradient_difference=difference, between_ranks=between_ranks)

# %% [markdown]
# ## Three ways to get another gradient
#
# The proof had conditions. Break one at a time, and look how far off the gradient is:
#
# 1. **Unequal shards.** Rank 0 takes more images than the others.
# 2. **A sum, not a mean.** The division is forgotten.
# 3. **Batch normalisation.** A layer that subtracts the *batch's* mean, and each rank knows only
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
# None of the three raises an error, and training goes on with each.
#
# 1. The mean of means gives an image on a small shard more weight. Cut equal shards, as the
#    scripts here do, or weigh each rank's gradient by its images: exercise 01.2.
# 2. The sum is `world_size` times too long. It is a learning rate that is too high by that factor
#    and changes with the number of ranks.
# 3. The ranks compute another function than one process does. Do without batch normalisation, or
#    share its statistics in each step (on GPUs `torch.nn.SyncBatchNorm`). With many images per
#    rank people often live with the difference. But then it is a choice.

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
# Nobody calls `all_reduce` by hand in a training script. PyTorch's `DistributedDataParallel`
# (**DDP**) does it during `backward()`. Below is all that `scripts/train/train_torch_ddp.py` has
# and `scripts/train/train_torch.py` has not. Lines with `-` are only in the one-process script.

# %%
workshop.show_diff("train/train_torch.py", "train/train_torch_ddp.py")

# %% [markdown]
# Only three ideas: meet the others (`init_process_group`, with what the launcher says), take your
# own part (`DistributedSampler`, with `global_batch_size` divided by `world_size`), average
# (`DistributedDataParallel`). `optimizer.step()` is unchanged and sends nothing: when
# `backward()` returns, the gradients are averaged already. Is DDP's gradient ours? Two new ranks
# are enough to see it; the timings below use them too.

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
# Data parallel needs room for the whole model on each rank. **Model parallel** divides the model:
# here rank 0 has the first layers and rank 1 the last. All images go through both. What travels
# then is not the gradient of the weights. Forward go the **activations**, what the first layers
# made of the images; back comes the gradient of those activations.
#
# The first cell compares the gradient with that of the whole model. The second runs a step at
# several batch sizes and counts what each rank sends.

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
# Model parallel sends something for each *image*; data parallel something for each *weight*. So
# data parallel suits small models and large batches, and model parallel is for a model that fits
# on no single device. It has another price: while rank 1 computes, rank 0 waits. Real systems
# let several small batches follow each other to fill that gap (a pipeline), and the largest
# models are trained both ways at once. The rest of this course is about data parallel training.

# %% jupyter={"source_hidden": true} tags=["results"]
by_images, by_weights = sent[names[0]], sent[names[1]]
assert stage_difference < 1e-6, "Two half models must give the whole model's gradient."
assert by_images[1024] > by_weights[1024] > by_images[16], "See the table above."
workshop.save_results(stage_difference=stage_difference, stage_kb=by_images, gradient_kb=by_weights)

# %% [markdown]
# ## When updates apply: sync and async
#
# So far all ranks wait for each other in every step. That is **sync** training. In **async**
# training nobody waits: each gradient is applied when it comes. Meanwhile the weights for which
# it was computed have been changed by others: it is **stale**. Its *staleness* is the number of
# updates that came in between.
#
# Two sentences that you will read, and what is right:
#
# - *"In async training each worker uses the whole data set."* No: async says when updates apply,
#   not who reads what. The workers below have the same shards in both cases.
# - *"Sync is all-reduce, async is a parameter server."* Usually. But a server can be sync: below,
#   the same server (rank 0) does both. As async server it does not average. It applies.
#
# The other ranks are workers. One is slower than the rest on purpose: it sleeps 15 ms in each
# step, the others 3 ms. A sync update uses a gradient of *every* worker, an async update a single
# one. So equally many updates are less work in async, and we compare gradients per second. The
# model is one layer, from pixels to ten classes.

# %%
workers = world_size - 1
pixels, labels = (training[0].reshape(-1, 64) / 255).astype("float32"), training[1]
parts = [None] + [(pixels[w::workers], labels[w::workers]) for w in range(workers)]
pause = [0.0] + [0.003] * (workers - 1) + [0.015]  # seconds, by rank
guess = workshop.guess(
    sync="Sync: gradients per second, of all workers together (a step is little but its sleep):",
    later="Async: gradients per second:",
)

# %%
table, curves = [], {}
for rate in (0.5, 2.5):
    for way, wait in {"sync": True, "async": False}.items():
        done = ranks.run_each("parallel.stale:train", parts, wait, updates, rate, pause)[0]
        loss = ranks.run("parallel.stale:losses", done, pixels, labels)[0]
        stale = [one["staleness"] for one in done]
        curves[f"{way}, rate {rate}"] = pd.Series(loss, index=range(1, len(loss) + 1))
        speed = updates * (workers if wait else 1) / done[-1]["seconds"]
        table.append((way, rate, speed, np.mean(stale), max(stale), max(loss[10:])))
columns = ["way", "rate", "gradients/s", "mean staleness", "most", "highest loss after update 10"]
table = pd.DataFrame(table, columns=columns)
title = "Equally many updates: stale gradients can throw the loss up"
plots.lines(curves, title, "updates of the weights", "loss on all training images")
table.round(2)

# %% [markdown]
# Async applies more gradients per second: it never waits for the slow worker. With a careful rate
# its loss falls just as well. With a high rate, which sync training bears, the loss is thrown
# about: a gradient that is several updates old points to where the weights *were*. So async
# trades waiting for staleness, and pays with a lower learning rate. Which is better depends on
# how uneven the workers are. Lesson 03 runs both on a server of its own, and async as a SageMaker
# job.

# %%
fast, high = table.groupby("way")["gradients/s"].max(), table[table["rate"] == 2.5].set_index("way")
guess.compare(sync=fast["sync"], later=fast["async"])

# %% jupyter={"source_hidden": true} tags=["results"]
assert table.loc[table["way"] == "sync", "most"].max() == 0, "A sync gradient is never stale."
assert high.loc["async", "mean staleness"] > 0.5, "No gradient was stale: are there 2 workers?"
workshop.save_results(gradients_per_second=fast.to_dict(), jump=high[columns[5]].to_dict())
workshop.save_results(staleness=high["mean staleness"].to_dict())

# %% [markdown]
# ## How much faster are two ranks?
#
# Now to speed. Three ways to get through the same global batch:
#
# - **1 rank** alone takes the whole batch;
# - **2 ranks together** take half each, and average their gradients (DDP);
# - **2 ranks apart** take half each, and never speak to each other.
#
# The third is no training. It is the **ceiling of this machine**: what two processes reach if
# nothing has to be exchanged. On shared virtual cores it may lie well below 2 times one rank,
# because the two "cores" share memory, caches, or one real core. What is lost *below the ceiling*
# is the price of working together.
#
# All use one CPU thread per rank. The images are random and have 28 x 28 pixels: speed does not
# depend on what they show, and a step must be more work than our tiny digits make.

# %%
guess = workshop.guess(
    ceiling="2 ranks apart: how many times as fast as 1 rank?",
    price="2 ranks together: what share of the speed of 2 ranks apart (0 to 1)?",
)


# %%
def ways_to_take(batch, model):
    """Settings for one global batch. The last one is for a later section: a small part of it."""
    ways = {
        "1 rank": {"ranks": "one", "batch": batch},
        "2 ranks apart": {"ranks": "apart", "batch": batch // 2},
        "2 ranks together": {"ranks": "together", "batch": batch // 2},
        "1 rank, part": {"ranks": "one", "batch": max(1, batch // 32)},
    }
    return {name: way | model for name, way in ways.items()}


# %% [markdown]
# How to time it: count the samples of all ranks, measure the settings in turn (A B C, A B C, ...)
# so that whatever else this machine does disturbs all of them, and compare within each repeat.


# %%
def measure(setting):
    """Samples per second, all ranks that take part together."""
    seconds = pair.run("parallel.speed:step_seconds", setting, steps, timeout=250)
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
small_model = {"side": 28, "hidden_units": 64}  # 28 x 28 pixels
good_ways = ways_to_take(timed_batch_size, small_model)
measure(good_ways["2 ranks together"])  # the first call loads libraries
good = interleave(good_ways, repeats)
speeds = speedups(good.drop(columns="1 rank, part"), "1 rank")
speeds["efficiency"] = speeds["speed-up"] / [1, 2, 2]  # of each rank
said = [
    f"{row['speed-up']:.2f} x, efficiency {row['efficiency']:.0%}" for _, row in speeds.iterrows()
]
label = "samples per second, median and range"
plots.bars(speeds["samples per second"], "Samples per second", label, texts=said, spread=speeds)
speeds.round(2)

# %%
price = ratio(good, "2 ranks together", "2 ranks apart")
ceiling = speeds.loc["2 ranks apart", "speed-up"]
busy = " Does another program use the cores? Measure again later." if price < 0.8 else ""
print(f"2 ranks together reach {price:.2f} of what 2 ranks apart reach.{busy}")
guess.compare(ceiling=ceiling, price=price)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    speeds=speeds["samples per second"].to_dict(), of_ceiling=price, ceiling=ceiling
)

# %% [markdown]
# On a quiet machine you should see a share of about 0.9 or more: with this much work in each step
# the exchange of gradients is a small matter. A lower share means that something disturbs the
# ranks. In each step they wait for the slower of the two, so they suffer from every disturbance of
# either. If the *speed-up* is well below 2 and the share is high, then this machine is the limit,
# and not data parallelism.
#
# ## Threads, and one library
#
# A rank on a CPU can use several threads by itself. So there are two ways to use two cores: one
# rank with two threads, or two ranks with one. And a third that happens by accident: two ranks
# with two threads each. PyTorch starts a thread per core in *every* process unless it is told
# otherwise, and then the threads fight for the cores. (`torchrun` tells it: one thread.)
#
# The convolutions are done by **oneDNN** (its former name is MKL-DNN), a library with code for
# each kind of CPU. Some guides tell you to switch it off. The last row does.

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
measured = interleave(threads, max(1, repeats // 2))
by_threads = speedups(measured, "1 rank, 1 thread")
by_threads[["samples per second", "speed-up"]].round(2)

# %% jupyter={"source_hidden": true} tags=["results"]
assert by_threads["lowest"].min() > 0, "A setting was not measured: run the cell again."
workshop.save_results(by_threads=by_threads["samples per second"].to_dict())

# %% [markdown]
# Read it as: how are two cores best used, *for this model, on this machine*? Two threads of one
# rank divide every single operation and then wait for each other, many times in a step. If
# one of them loses its core to another program, the other waits as well, and the rank can become
# much slower than with one thread. Two ranks wait for each other once in a step. On two
# cores, two ranks with two threads each are usually the slowest. Compare the last row with the
# first: that is what oneDNN brings here. So the scripts here set the threads of each rank
# (`--threads-per-rank`): by default the machine's cores divided by its ranks.
#
# ## Where speed-up ends
#
# Two things do not shrink when ranks are added:
#
# - the **fixed part** of a step: starting operations, updating all weights. Amdahl's law says
#   what follows: with a fixed share `s` of the time, `N` ranks are at most
#   `1 / (s + (1 - s) / N)` times as fast, and never more than `1 / s` times;
# - the **exchange** of gradients, which one rank alone does not have at all.
#
# Both can be measured before a second rank trains. A step of one rank with a 32nd of the batch
# (at least one image) shows the fixed part; an all-reduce of as many numbers as there are weights
# shows the exchange.
#
# We compare two configurations. The first is the one above: much work per step, few weights. The
# second is the opposite, a tiny batch for a large model: 8 images, 2.8 million weights. First the
# parts of one rank's step, and what an exchange would add to it:

# %%
large_model = {"side": 8, "hidden_units": 20_000}
bad_ways = ways_to_take(8, large_model)
bad = interleave(bad_ways, repeats)

configurations = {
    "large batch, small model": (good_ways, good),
    "small batch, large model": (bad_ways, bad),
}
costs = {}
for name, (ways, found) in configurations.items():
    whole, part = (ways[way]["batch"] / found[way].median() for way in ("1 rank", "1 rank, part"))
    share = ways["1 rank, part"]["batch"] / ways["1 rank"]["batch"]  # of the batch, in `part`
    divided = min(max(0, (whole - part) / (1 - share)), whole)  # what does not shrink is fixed
    exchange = statistics.median(
        pair.seconds("parallel.speed:exchange", ways["1 rank"], repeats=15)
    )
    costs[name] = {"divided": divided, "fixed": whole - divided, "exchange": exchange}
parts = pd.DataFrame(costs).T
(1000 * parts).add_suffix(", ms").round(2)

# %% [markdown]
# Two ranks halve the first column, keep the second and pay the third. On `N` ranks a step takes
# `fixed + divided / N + exchange · 2 (N - 1) / N`. **Predict** from the second row: what do two
# ranks bring?

# %%
guess = workshop.guess(bad="8 images, 2.8 million weights: how many times as fast are 2 ranks?")


# %%
def speedup(cost, n, with_exchange=True):
    """How many times as fast n ranks are, each with a core and a link of its own: the formula."""
    ring = 2 * (n - 1) / n if with_exchange else 0
    step = cost["fixed"] + cost["divided"] / n + cost["exchange"] * ring
    return (cost["fixed"] + cost["divided"]) / step


real = {name: ratio(run, "2 ranks together", "1 rank") for name, (_, run) in configurations.items()}
ceilings = [ratio(run, "2 ranks apart", "1 rank") for _, run in configurations.values()]
compared = pd.DataFrame(
    {
        "Amdahl alone (formula)": [speedup(cost, 2, False) for cost in costs.values()],
        "with the exchange (formula)": [speedup(cost, 2) for cost in costs.values()],
        "ceiling (measured)": ceilings,
        "2 ranks together (measured)": real.values(),
    },
    index=list(costs),
)
compared.round(2)

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
counts = [2**power for power in range(7)]
title = "Lines: formula. Points: measured."
label = "ranks (shaded: formula only, nothing was measured there)"
with plots.canvas(title, label, "speed-up over 1 rank", size=(7, 4)) as axes:
    axes.plot(counts, counts, color="grey", linestyle=":", label="ideal: N ranks, N times")
    for colour, style, marker, (name, cost) in zip(
        plots.COLOURS, ("-", "--"), "os", costs.items(), strict=False
    ):
        formula = [speedup(cost, n) for n in counts]
        axes.plot(counts, formula, style, color=colour, label=f"{name}, formula")
        axes.plot([1, 2], [1, real[name]], marker, color=colour, label=f"{name}, measured")
    axes.axvspan(2.4, 70, color="grey", alpha=0.1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(counts, counts)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(0.9, 70)
    axes.legend(frameon=False, loc="upper left", fontsize=9)

# %% [markdown]
# From the three times of the first table the formula predicts the speed-up of two ranks, and of
# more. In the plot the points are measured; the lines are the formula, for ranks that have a core
# and a link of their own, as good as here. Nothing beyond two ranks was measured.
#
# - Large batch, small model: worth dividing. The line bends all the same: at 64 ranks each has
#   8 images left, and what does not shrink rules.
# - Small batch, large model: **two ranks are slower than one**, and more ranks do not mend it. The
#   ranks spend their time exchanging gradients.
#
# Where a point lies below its line, look at the ceiling: two ranks on one machine share its memory,
# and the formula does not know that.

# %%
large, small = costs
guess.compare(bad=real[small])

# %% jupyter={"source_hidden": true} tags=["results"]
assert real[small] < real[large], "More work per weight must scale better: measure again."
predicted = {name: speedup(cost, 2) for name, cost in costs.items()}
limit = {name: speedup(cost, 1e9) for name, cost in costs.items()}  # of ever more ranks
workshop.save_results(real=real, predicted=predicted, limit=limit)

# %% [markdown]
# ## A larger batch, a larger learning rate
#
# The way out of the bend: give more ranks more images. If each rank keeps 32, then 8 ranks make a
# `global_batch_size` of 256, and every rank has enough to do. But this changes the training
# itself. An epoch now has an eighth of the **updates**. Does the model still learn as much?
#
# The usual answer is the **linear scaling rule**: with `k` times the batch take `k` times the
# learning rate, since one update must now do the work of `k`. In the first epochs that can be too
# much, so the rate is raised slowly: a **warm-up**. Goyal et al. trained ResNet-50 that way with a
# batch of 8,192 on 256 GPUs in one hour, with no loss of accuracy; beyond 8,192 it fell
# ([arXiv:1706.02677](https://arxiv.org/abs/1706.02677), 2017).
#
# You have shown that N ranks compute what one process computes with the whole batch. So here one
# process stands for 8 or 32 ranks: same updates, same weights up to rounding.

# %%
settings = {  # images per update, learning rate, first rate, epochs until the full rate
    "1 x 32 images": (32, 0.02, 0.02, 0),
    "8 x 32, same rate": (256, 0.02, 0.02, 0),
    "8 x 32, rate x 8": (256, 0.16, 0.16, 0),
    "8 x 32, rate x 8, warm-up": (256, 0.16, 0.02, 3),
    "32 x 32, rate x 32, warm-up": (1024, 0.64, 0.02, 3),
}
guess = workshop.guess(
    same="Accuracy in % after equal epochs: 8 x 32 images, same rate:",
    scaled="Accuracy in % after equal epochs: 8 x 32 images, rate x 8:",
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
by_setting = results.groupby("setting", sort=False)
by_setting.agg(updates=("updates", "first"), accuracy=("accuracy", "median")).round(3)

# %% jupyter={"source_hidden": true} tags=["figure"]
label = "test images right, %; a point for each seed, a line at the median"
with plots.canvas("Accuracy after equally many epochs", label, size=(7, 4)) as axes:
    for row, (name, runs) in enumerate(by_setting["accuracy"]):
        found, colour = 100 * runs, plots.COLOURS[row]
        axes.plot(found, [name] * len(found), "o", color=colour, alpha=0.6)
        axes.plot([found.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=3)
    axes.set(xlim=(0, 103), ylim=(len(by_setting) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)

# %% [markdown]
# With the same rate, an eighth of the updates moves the weights an eighth as far: the model is
# not ready. The scaled rate makes up for most of that. The warm-up brings nothing here, and may
# cost something: it spends some of only 100 updates on small steps. It was made for long
# trainings whose first steps are the dangerous ones.
#
# And the rule ends. With one update per epoch even the scaled rate did not help here: this data
# set is too small for 32 ranks. So there are two limits to adding ranks: with a fixed global
# batch the *speed* stops growing, with a growing one the *learning* does.

# %%
middle = by_setting["accuracy"].median()
base, same, scaled, warm, far = middle
guess.compare(same=100 * same, scaled=100 * scaled)

# %% jupyter={"source_hidden": true} tags=["results"]
assert base > scaled > same, f"Expected base > scaled > same rate: {middle.round(3).to_dict()}"
workshop.save_results(accuracies=middle.to_dict(), updates=by_setting["updates"].first().to_dict())

# %% [markdown]
# ## Which files an instance gets
#
# Until now the ranks cut the data themselves. On SageMaker the channel can do it, for whole
# instances, with the channel's `distribution`:
#
# - `FullyReplicated`, the default: every instance gets every file;
# - `ShardedByS3Key`: every file goes to one instance.
#
# The job below has two instances and one channel of each kind. Its script only prints what it
# finds. **Predict:** the training images are in four files. How many does each instance get?

# %%
session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
print("For each of two jobs:", workshop.cost("ml.c5.xlarge", instance_count=2, seconds=180))

# %%
from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch

channels = {
    "training": TrainingInput(f"{data}/training", distribution="ShardedByS3Key"),
    "test": TrainingInput(f"{data}/test", distribution="FullyReplicated"),
}
estimator = PyTorch(
    entry_point="look_at_channels.py",
    framework_version="2.2.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=2,
    **session.job_settings("channels", source_dir=workshop.DEMOS),
)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %%
seen = result.table("channel").sort_values(["channel", "host"], ignore_index=True)
seen[["channel", "host", "files", "images", "world_size"]]

# %% [markdown]
# Every instance has its own two training files, and both have the test file. Three things to take
# with you:
#
# - **Cut once.** `train_torch_ddp.py` cuts by rank itself, so its channel must be
#   `FullyReplicated`. With `ShardedByS3Key` as well, each of two ranks would see a quarter of the
#   data, and nothing would fail.
# - `ShardedByS3Key` saves disk and download time for large data. But the parts are as even as the
#   files are (see `images`), and if each file holds one class, each instance learns one class.
# - Look at `world_size`: nobody told these two processes of each other. The estimator has
#   `instance_count=2` and no `distribution`. A training script started so would train two models,
#   and you would pay for both. **Instances do not make training distributed. The launcher and the
#   script do.** The last job of this lesson has both.

# %% jupyter={"source_hidden": true} tags=["results"]
training_seen = seen[seen["channel"] == "training"]
files = [name for found in training_seen["files"] for name in found]
assert len(files) == len(set(files)) == 4, f"Each file must be on one instance: {files}"
assert (seen["world_size"] == "not told").all(), "A launcher started the ranks: see distribution."
assert training_seen["images"].sum() == len(training[0]), "Training images are missing."
workshop.save_results(
    images_seen=seen.groupby("channel")["images"].apply(list).to_dict(), files_seen=files
)

# %% [markdown]
# ## DDP as a job
#
# The script from above, on two instances. `torch_distributed` starts `torchrun` on each of them,
# which tells every rank of the others. The channels are whole this time: the sampler cuts.
#
# > *Currently torch_distributed is supported only for GPU and Trainium instances*, says the SDK for
# > an instance without a GPU. The image's toolkit knows better: where there is no GPU it starts one
# > rank. The SDK does not ask if you name the image yourself, so `image_uri` is here.

# %%
from sagemaker import image_uris

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
# Each rank prints a SHA-256 hash of its weights at the end. One bit more or less in one weight
# would give another hash.

# %%
weights = trained.table("weights").sort_values("rank", ignore_index=True)
weights[["rank", "host", "weights_sha256"]]

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
# 3. Write a learning rate schedule with warm-up (8 minutes, medium).
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
# - Sync waits; async does not wait and gets stale gradients. Model parallel sends activations.
# - Compare two ranks with two processes that do not speak: that is the machine's ceiling.
# - What is fixed and what is exchanged limits the speed-up. Measure both, then predict.
# - With a larger global batch there are fewer updates: scale the learning rate, and look whether
#   it still learns.

# %%
ranks.stop()
pair.stop()
print(f"Gradient off by {difference:.0e}; 2 ranks reach {price:.2f} of the machine's ceiling.")

# %% [markdown]
# ## Clean up
#
# The ranks are stopped. The jobs have ended and their instances were given back. `workshop down`
# ends the local endpoint.
#
# ## Next
#
# [02 · Collectives](02_collectives.ipynb): what happens inside `all_reduce`, what it costs, and
# how to build one.

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
# # 03 · Parameter servers
#
# **After this lesson you can**
#
# - explain who does what when one process holds the weights and the others train;
# - say how stale a gradient is, and what that does to learning;
# - compute the bytes at a server, and say when it becomes the bottleneck;
# - read TF_CONFIG, and run TensorFlow's ParameterServerStrategy as a SageMaker job;
# - prove that a job's workers train one model, and recognise a job whose workers do not.
#
# **Before:** [lesson 02](02_collectives.ipynb): what an all-reduce does and what it moves.
#
# **Time:** 45 minutes.
#
# **Where it runs:** the first half in processes of the machine that this notebook runs on. The two
# jobs of the second half on this machine (`target = "local"`) or on AWS (`target = "aws"`), where
# nobody has run them yet.
#
# **Cost on AWS:** about 0.08 USD, at most 0.20 USD: one job on three `ml.c5.xlarge` and one on two,
# 5 minutes planned for each (us-east-1, price list of 2026-09-27). The lesson computes the larger
# job's part before it starts it.

# %% [markdown]
# ## Set up
#
# - `dataset`: `"digits"`, or `"mnist"`, 70,000 images of 28 x 28 pixels. MNIST is downloaded, and
#   takes longer; its best learning rates may be different.
# - `workers`: processes that train in the first half. One more is the server.
# - `steps`: global batches in a training of the first half; some trainings are shorter.
# - `slow_ms`: how long the slow worker pauses in each batch, milliseconds.
# - `learning_rates`: for the experiment on stale gradients. `seeds`: how often each setting of it
#   is trained, each time with different initial weights and a different order of the images.
# - `instance_count`, `epochs`: of the TensorFlow jobs of the second half. `max_run`: the number of
#   seconds after which SageMaker stops a job.
# - `global_batch_size`: images per step, over all workers together.
# - `expected_accuracy`: the share of test images that sync training (at the better learning rate)
#   and the first job must get right; otherwise the lesson stops with an error.

# %% tags=["parameters"]
target = "local"
seat = "me"
dataset = "digits"
workers = 4
steps = 220
slow_ms = 20
learning_rates = [0.05, 0.1]
seeds = 2
instance_count = 3
epochs = 10
max_run = 600
global_batch_size = 64
expected_accuracy = 0.9

# %%
import json

import numpy as np
import pandas as pd

import workshop
from workshop import plots

session = workshop.session(target=target, seat=seat)
channels = session.upload(dataset)
folder = workshop.DATA / dataset

# %% [markdown]
# ## One process holds the weights
#
# In lesson 02 all ranks did the same. Each held the weights, and an all-reduce kept them equal.
# There is an older way: give the weights to one process, the **parameter server**. The other
# processes are **workers**. A worker repeats three things:
#
# 1. **pull**: get the newest weights from the server;
# 2. compute the gradient of a batch of its own part of the data;
# 3. **push**: send that gradient to the server.
#
# The server repeats one thing: take a gradient and update the weights. It never sees an image.
#
# | | all-reduce | parameter server |
# |---|---|---|
# | who holds the weights | every rank | the server |
# | what travels | gradients | gradients to the server, weights from it |
# | who updates | every rank, the same update | the server |
#
# Workers send gradients, never weights that they have trained. Only the server sends weights. The
# picture compares the two: on the left the server, on the right the ring of lesson 02.

# %% jupyter={"source_hidden": true} tags=["figure"]
alt = (
    f"Left, a parameter server and {workers} workers: weights go to each, a gradient comes from "
    f"each. Right, a ring of {workers} ranks: each sends gradients to the next."
)
turns = [2 * np.pi * number / workers for number in range(workers)]
circle = [(np.sin(angle), np.cos(angle)) for angle in turns]
box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.4"}
style = {"arrowstyle": "-|>", "shrinkA": 24, "shrinkB": 24, "color": "black"}
with plots.canvas("A server in the middle, or a ring", "", size=(8.5, 4.2), alt=alt) as axes:
    for number, (x, y) in enumerate(circle):
        # At the server: weights go out, gradients come in, side by side.
        for start, end, line in (((0, 0), (x, y), "-"), ((x, y), (0, 0), "--")):
            look = style | {"linestyle": line, "connectionstyle": "arc3,rad=0.18"}
            axes.annotate("", end, start, arrowprops=look)
        axes.text(x, y, f"worker\n{number + 1}", ha="center", va="center", size=9, bbox=box)
        left, after = (x + 3.4, y), circle[(number + 1) % workers]
        to = after[0] + 3.4, after[1]
        look = style | {"linestyle": "--", "connectionstyle": "arc3,rad=-0.3"}
        axes.annotate("", to, left, arrowprops=look)
        axes.text(*left, f"rank\n{number}", ha="center", va="center", size=9, bbox=box)
    axes.text(0, 0, "server:\nweights", ha="center", va="center", size=9, bbox=box, weight="bold")
    axes.text(3.4, 0, "every rank\nhas the weights", ha="center", va="center", size=9)
    axes.text(1.7, -1.5, "solid: weights      dashed: gradients", ha="center", size=9)
    axes.set(xlim=(-1.5, 4.9), ylim=(-1.6, 1.4), aspect="equal")
    axes.axis("off")

# %% [markdown]
# What follows is a real parameter server: `scripts/demos/parameter_server.py`, built on `send` and
# `recv` of lesson 02. Rank 0 is the server. It answers each gradient with the newest weights, so a
# pull needs no request: the worker just receives. Each message carries one extra number at its end:
# after the weights, whether another gradient is wanted; after a gradient, the loss.
#
# This is all that a worker does:

# %%
workshop.show_function("demos/parameter_server.py", "work")

# %% [markdown]
# And this is the server. To it the model is one long vector; it knows nothing of layers. Its
# updates are those of SGD with a **momentum** of 0.9. It notes who sent each gradient, and how many
# updates it made between that worker's pull and its push. That number is the gradient's
# **staleness**. It also counts its bytes.

# %%
workshop.show_function("demos/parameter_server.py", "Server")

# %% [markdown]
# What remains is the order of the calls; there are two variants. In the first, **synchronous**
# (sync), the server waits for a gradient from *every* worker, and then makes one update with their
# mean.

# %%
workshop.show_function("demos/parameter_server.py", "serve_sync")

# %% [markdown]
# Now start the processes, a server and the workers, and train. The table has the first gradients
# that reached the server, a row for each: who sent it, its staleness, the loss of its batch, and
# when the server had read it, in seconds since the start.

# %%
ranks = workshop.start_ranks(workers + 1)


def train(mode, **options):
    """Train once on these ranks; return what the server saw."""
    flags = {"mode": mode, "workers": workers, "max-steps": steps, "training": folder / "training"}
    flags |= {"test": folder / "test", "global-batch-size": global_batch_size} | options
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    seen = ranks.run("parameter_server:train_with", *words, timeout=240)[0]
    columns = ["worker", "staleness", "loss", "seconds"]
    return seen | {"pushes": pd.DataFrame(seen["pushes"], columns=columns)}


sync = train("sync")
sync["pushes"].head(6).round(3)

# %% [markdown]
# The server reads the gradients in the order of the workers: that of worker 1 first, even if worker
# 4 is ready before it. Every staleness is 0: no update came between a pull and its push.
#
# Is the training right? In each step the workers take equal parts of one batch. If the server
# really averages over the whole batch, then one worker that takes that batch alone must get the
# same weights, up to rounding. Train both, once with few updates and once with all, and compare:


# %%
def difference(updates):
    """Return the largest difference in any weight, between all workers and a single one."""
    many, single = (train("sync", workers=n, max_steps=updates)["weights"] for n in (workers, 1))
    return max(float(np.abs(a - b).max()) for a, b in zip(many, single, strict=True))


differences = {updates: difference(updates) for updates in (20, steps)}
shown = {"largest difference in any weight": differences}
pd.DataFrame(shown).rename_axis("updates").map("{:.0e}".format)

# %% [markdown]
# After 20 updates only rounding is left: the workers' gradients are added in a different order.
# After many updates the difference may still be tiny, or not, depending on the processor. That is
# no mistake. Occasionally rounding decides which of two nearly equal values a max-pooling takes, or
# whether a ReLU is on. From then on the two runs take slightly different gradients, and every
# further update can widen the gap. So compare weights after a few updates, and only the accuracy at
# the end.

# %% jupyter={"source_hidden": true} tags=["results"]
assert differences[20] < 1e-4, "The sync server does not train what one process trains."
assert sync["pushes"]["staleness"].max() == 0, "In sync mode no gradient may be stale."
workshop.save_results(
    sync_difference=differences[20], sync_staleness=sync["pushes"]["staleness"].max()
)

# %% [markdown]
# ## Without waiting
#
# Now the second order of the calls, **asynchronous** (async):

# %%
workshop.show_function("demos/parameter_server.py", "serve_async")

# %% [markdown]
# `receive_gradient()` without a number takes the gradient that arrives first. It is applied at
# once, and not averaged with others. Each worker still reads only its own part of the data.
#
# While a worker computes, the others' gradients change the weights. When its own gradient arrives,
# it belongs to weights that are no longer there: it is stale.

# %%
guess = workshop.guess(
    mean=f"The mean staleness with {workers} asynchronous workers:",
    updates=(
        f"Sync made {steps} updates, each from {workers} gradients. "
        "How many updates does async make from the same number of gradients?"
    ),
)

# %%
quick = train("async")
mean_staleness = quick["pushes"]["staleness"].mean()
guess.compare(mean=round(mean_staleness, 2), updates=len(quick["pushes"]))
print(f"Mean staleness {mean_staleness:.2f}; {workers - 1} other workers.")

# %% jupyter={"source_hidden": true} tags=["figure"]
most = 8  # this stale or more is one group
shares = quick["pushes"]["staleness"].clip(upper=most).value_counts(normalize=True)
shares = 100 * shares.reindex(range(most + 1), fill_value=0)
title = f"Async gradients missed {mean_staleness:.1f} updates on average; in sync mode none"
alt = f"{title}. Percent of the gradients, by staleness from 0: {shares.round().tolist()}"
across = "staleness: updates by others between a worker's pull and its push"
with plots.canvas(title, across, "% of the gradients", size=(7, 2.4), alt=alt) as axes:
    axes.bar([*map(str, range(most)), f"{most} or more"], shares, color=plots.COLOURS[0])

# %% jupyter={"source_hidden": true} tags=["results"]
assert abs(mean_staleness - (workers - 1)) < 0.5, "The mean must be close to workers - 1."
workshop.save_results(async_staleness=mean_staleness, most_stale=quick["pushes"]["staleness"].max())

# %% [markdown]
# The mean is close to the number of *other* workers. Workers of the same speed push equally often.
# So between two pushes of one worker, each other worker pushes about once, and each push is an
# update. More workers mean staler gradients.
#
# ## One slow worker
#
# Why would anybody accept stale gradients? Because workers are never equally fast. Make the last
# worker a **straggler**: let it pause for `slow_ms` in each of its batches, as if its computer were
# busy with something else. Both modes end after the same number of gradients *in all*. The cell
# prints what you can calculate with.

# %%
step_ms = 1000 * sync["seconds"] / steps
print(f"A sync step without a pause: {step_ms:.1f} ms; pause: {slow_ms} ms.")
guess = workshop.guess(
    ratio="One worker pauses. The time of sync, divided by that of async:",
    share="What percentage of all gradients does the slow worker push in async mode?",
)

# %%
short = min(steps, 80)
repeated = [
    {mode: train(mode, slow_ms=slow_ms, max_steps=short) for mode in ("sync", "async")}
    for _ in range(3)
]
ratios = [r["sync"]["seconds"] / r["async"]["seconds"] for r in repeated]
slow = repeated[int(np.argsort(ratios)[1])]
by_worker = slow["async"]["pushes"].groupby("worker")["staleness"].agg(["count", "mean", "max"])
names = {"count": "gradients", "mean": "mean staleness", "max": "highest staleness"}
by_worker.rename(columns=names).round(1)

# %% [markdown]
# Each mode ran three times, for at most 80 steps. The table (of async mode) and all that follows
# are of the run with the middle ratio. In the picture, "a fast worker" is worker 1, and the steeper
# a line, the faster that worker.

# %% jupyter={"source_hidden": true} tags=["figure"]
progress = {}
for mode, run in slow.items():
    for who, worker in {"a fast worker": 1, "the slow worker": workers}.items():
        at = run["pushes"].set_index("worker").loc[worker, "seconds"]
        progress[f"{mode}: {who}"] = pd.Series(range(1, len(at) + 1), index=at)
title = "One slow worker holds up all who wait for it (measured)"
plots.lines(progress, title, "seconds", "gradients pushed by a worker")

# %% [markdown]
# In sync mode the two lines almost coincide: the next step begins only when the slow worker's
# gradient is there, so everybody goes at the pace of the slowest. In async mode the others don't
# wait, so the run usually ends sooner. (If it doesn't here, the machine was busy: the lines below
# show the range.) The price is in the table: the slow worker pushes the fewest gradients, and on
# average they are the stalest.

# %%
speed_up = float(np.median(ratios))
share = by_worker.loc[workers, "count"] / by_worker["count"].sum()
guess.compare(ratio=round(speed_up, 1), share=round(100 * share))
print(f"The speed-up of async was {min(ratios):.1f} to {max(ratios):.1f} in {len(ratios)} repeats.")
slow_step_ms = step_ms + slow_ms
per_ms = (workers - 1) / step_ms + 1 / slow_step_ms  # gradients, if nothing else changed
calculated, part = slow_step_ms / workers * per_ms, 1 / slow_step_ms / per_ms
print(f"From {step_ms:.1f} and {slow_ms} ms one calculates {calculated:.1f}, and {part:.0%}.")
pushes_by_worker = slow["async"]["pushes"].groupby("worker")
fast = [pushes for number, pushes in pushes_by_worker if number < workers]
batch_ms = np.mean([1000 * np.diff(pushes["seconds"]).mean() for pushes in fast])
verdict = "much as assumed" if abs(batch_ms / step_ms - 1) < 0.15 else f"not {step_ms:.1f}"
print(f"In async mode a fast worker's batch took {batch_ms:.1f} ms, {verdict}.")

# %% jupyter={"source_hidden": true} tags=["results"]
stale = by_worker["mean"]
assert share < 1 / workers, "The slow worker must push less than its part in async mode."
assert stale.idxmax() == workers, "The slow worker's gradients must be the stalest."
workshop.save_results(slow_share=share, speed_up=speed_up, stale_by_worker=stale.to_dict())

# %% [markdown]
# The calculation: a sync step takes the step time plus the pause, and delivers one gradient from
# each worker. In async mode a fast worker delivers one in each step time, and the slow worker one
# in each step time plus pause. That assumes that a fast worker needs as long for a batch as in sync
# mode; the last line says whether it did. It may need longer, because the server now updates the
# weights after every single gradient, and shares this machine's cores with all workers.
#
# Sync or async isn't the whole choice. With **backup workers** the server takes the first gradients
# of each step and drops those of stragglers ([2016](https://arxiv.org/abs/1604.00981)). With
# **bounded staleness** a fast worker waits only if it is too many steps ahead of the slowest
# ([2013](https://papers.nips.cc/paper/4894-more-effective-distributed-ml-via-a-stale-synchronous-parallel-parameter-server)).
# With **local SGD** each worker trains alone for several steps, and then all average their weights
# ([2018](https://arxiv.org/abs/1805.09767); DiLoCo, [2023](https://arxiv.org/abs/2311.08105)).
# Parameter servers became known with Google's DistBelief
# ([2012](https://papers.nips.cc/paper/4687-large-scale-distributed-deep-networks)) and Li et al.
# ([2014](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu)).
#
# ## What staleness does to learning
#
# Train at two learning rates, sync and async, with the same number of examples. Where sync makes
# one update, async makes one for each worker. To move the weights equally far, the script divides
# the learning rate of async mode by the number of workers.
#
# So async differs from sync in *two* things: updates are smaller, and gradients are stale. A third
# run tells them apart. In it one worker makes the same small updates alone, so nothing is stale.

# %%
fewer, as_many = "fewer, with every seed", "about as many"
guess = workshop.guess(
    stale=(
        f"At the rate {learning_rates[-1]}, async gets how many images right, compared with sync?",
        [as_many, fewer],
    )
)


# %%
def one_worker(**options):
    """The updates of async training, by a single worker: the same sizes, and never stale."""
    options["learning_rate"] /= workers
    batch = global_batch_size // workers
    return train("sync", workers=1, max_steps=steps * workers, global_batch_size=batch, **options)


runs = {}
for rate in learning_rates:
    for seed in range(seeds):
        options = {"learning_rate": rate, "seed": seed}
        runs["sync", rate, seed] = train("sync", **options)
        runs["async", rate, seed] = train("async", **options)
        runs["small updates, not stale", rate, seed] = one_worker(**options)
percent = pd.Series({key: 100 * run["accuracy"] for key, run in runs.items()})
percent.index.names = ["accuracy %", "learning rate", "seed"]
percent.unstack([1, 2], sort=False).round(1)

# %% [markdown]
# The picture shows the loss at the higher rate, each point averaged over the last few gradients.
# Does it fall close to 0 in all three? The lines after the picture give the accuracy of each way,
# over the seeds. Trust a difference only if it has the same sign with every seed.

# %%
high = learning_rates[-1]
at_high = {  # the loss of one batch jumps: draw the mean of the last few
    way: run["pushes"]["loss"].rolling(4 * workers, min_periods=1).mean()
    for (way, rate, seed), run in runs.items()
    if rate == high and seed == 0
}
label = "gradients that reached the server"
ends = {way: loss.iloc[-1] for way, loss in at_high.items()}
title = "The last losses: sync {sync:.2f}, async {async:.2f} (measured, seed 0)".format(**ends)
plots.lines(at_high, title, label, "loss (cross-entropy)", top=3)

# %%
accuracy = (percent / 100).groupby(level=[0, 1], sort=False).median().unstack(sort=False)
ranges = percent.groupby(level=[0, 1], sort=False).agg(["min", "max"])
for (way, rate), (lowest, highest) in ranges.iterrows():
    print(f"rate {rate}, {way}: {lowest:.0f} to {highest:.0f} % right")
by_seed = percent.unstack("seed")
below = (by_seed.loc[("async", high)] < by_seed.loc[("sync", high)]).all()
guess.compare(stale=fewer if below else as_many)

# %% jupyter={"source_hidden": true} tags=["results"]
assert accuracy.loc["sync"].max() >= expected_accuracy, "Sync must learn at one of the rates."
assert accuracy.loc["async", high] < accuracy.loc["sync", high], "Raise the highest rate."
workshop.save_results(accuracy_by_way={way: list(row) for way, row in accuracy.iterrows()})

# %% [markdown]
# Compare "async" with "small updates, not stale" at the higher rate. Both make equally many updates
# with the same learning rate and batch size; what differs is mainly the staleness. An update with a
# stale gradient goes downhill from where the weights *were*. After large steps the weights are far
# from there, and the same update may take them uphill. The momentum makes it worse: not waiting
# acts like a momentum of its own, with W workers about 1 - 1/W ([Mitliagkas et al.,
# 2016](https://arxiv.org/abs/1605.09774)), and here it comes on top of 0.9. So lower the learning
# rate or the momentum when you don't wait.
#
# ## Bytes at the server
#
# All weights go out to every worker, and a gradient of the same size comes back. So in every step
# workers × the bytes of the model go out through *one* network link, and as much comes in. With
# all-reduce over a ring less than 2 × the bytes of the model go out of each rank, and as much comes
# in, however many ranks there are (lesson 02).

# %%
parameters = sum(weight.size for weight in sync["weights"])
model_kb = 4 * parameters / 1e3
question = (
    f"A model of {model_kb:.0f} kB, {workers} workers: kB in plus out at the server, in one step"
)
guess = workshop.guess(kb=question)

# %% [markdown]
# The table and the picture add both directions. With P weights of 4 bytes and W workers, "computed"
# is the formula for the server, 8 P W bytes; "ring" is that for one rank of a ring of N, 16 P (N -
# 1) / N.

# %% tags=["deterministic"]
counts = sorted({1, 2, workers})
short = {count: train("sync", workers=count, max_steps=20) for count in counts}
table = pd.DataFrame(index=pd.Index(counts, name="workers"))
table["measured"] = [(run["bytes_in"] + run["bytes_out"]) / 20 / 1e3 for run in short.values()]
table["computed"] = [2 * 4 * parameters * count / 1e3 for count in counts]
table["ring"] = [2 * 2 * (count - 1) / count * 4 * parameters / 1e3 for count in counts]
table.columns.name = "kB in a step"
table.round(1)

# %%
worker_counts = pd.Series(range(1, 17), index=range(1, 17))
traffic = {"server, computed": 2 * model_kb * worker_counts, "server, measured": table["measured"]}
traffic["each worker, computed"] = 2 * model_kb * worker_counts**0
ring_kb = 4 * model_kb * (worker_counts - 1) / worker_counts
traffic["each rank of a ring, computed"] = ring_kb
title, label = "The server carries everybody's bytes", "kB in plus out, in one step"
plots.lines(traffic, title, "workers", label, points=["server, measured"])
ranks.stop()
guess.compare(kb=round(table["measured"].iloc[-1]))

# %% jupyter={"source_hidden": true} tags=["results"]
growth = table["measured"].iloc[-1] / table["measured"].iloc[0]
assert abs(growth / counts[-1] - 1) < 0.1, "The server's bytes must grow with the workers."
assert (table["measured"] / table["computed"] - 1).abs().max() < 0.1, "Measured is not computed."
workshop.save_results(kb_at_server=table["measured"], computed_kb=table["computed"])

# %% [markdown]
# The server's bytes grow in proportion to the workers. One of N workers carries only an N-th of
# them: its own link is mostly idle while the server's is full. The bytes of a ring's rank approach
# a limit. The measured bytes are slightly above the formula: at the end each worker gets the
# weights once more, and each message carries one extra number.
#
# With so small a model nobody notices. Take 25 million weights (100 MB), 8 workers and a link that
# carries 10 Gbit/s in each direction. Then 800 MB go out in each step: at least 0.64 s. The 800 MB
# that come in use the other direction of the link. In async mode they can travel at the same time;
# in sync mode they come first, and take another 0.64 s. So a step with this server takes at least
# 0.64 s, however fast the workers compute. If the workers alone would need less, the server's link
# is the **bottleneck**, and more workers make it worse. A rank of a ring sends 175 MB: 0.14 s.
# (Computed, not measured here.)
#
# The remedy is **several servers**, each with a part of the weights. Then each carries a part of
# the bytes. But each worker now talks to each server: the connections are workers × servers. The
# table is for the same 100 MB and 8 workers. With 8 servers each sends 100 MB in a step, and there
# are 64 connections.

# %% tags=["deterministic"]
sharded = pd.DataFrame(index=pd.Index([1, 2, 4, 8], name="servers"))
sharded["MB of weights on each"] = 100 / sharded.index
sharded["MB out of each"] = sharded["MB in to each"] = 8 * 100 / sharded.index
sharded["connections"] = 8 * sharded.index
sharded.columns.name = "computed, in a step"
sharded

# %% [markdown]
# ## The same in TensorFlow, as a job
#
# TensorFlow has parameter servers built in, `tf.distribute.ParameterServerStrategy`. There are
# four roles, and each process of a job has one of them:
#
# | role | what it does |
# |---|---|
# | **chief** | coordinates: gives work to the workers, evaluates, saves the model |
# | **worker** | computes gradients on its part of the data |
# | **ps** | a parameter server: holds a part of the weights |
# | **evaluator** | optional: measures saved models, beside the training |
#
# The chief has two other names: the script calls it the coordinator, SageMaker calls it `master`.
# In a SageMaker job the chief runs on the first host. In a cluster without a chief, worker 0 is it:
# it saves checkpoints and the model (lesson 05).
#
# An environment variable says who has which role: **TF_CONFIG**, a JSON text with the addresses of
# each role and this process's own task. SageMaker sets it when you pass `parameter_server` as
# below. (The form `{'parameter_server': {enabled = True}}`, which some pages show, is a
# SyntaxError.)

# %%
distribution = {"parameter_server": {"enabled": True}}

# %% [markdown]
# Now the script. The diff shows what `scripts/train/train_tf_ps.py` adds to the one-process script.
# Four lines matter; the rest is long, and you can leave it folded:
#
# 1. A worker waits for work and does what the chief sends it (`serve`). Only the chief runs the
#    rest of `main`.
# 2. `with strategy.scope()`: variables made in it live on the parameter servers. A **variable** of
#    TensorFlow is one array of weights, such as a layer's.
# 3. `coordinator.schedule` gives the next piece of work (read the weights, compute the gradient of
#    a batch, have it applied) to whichever worker is free, and doesn't wait for it: this training
#    is asynchronous.
# 4. The learning rate is divided by the number of workers, as before.

# %%
essential = ["return serve(", "strategy.scope()", "coordinator.schedule(", "SGD("]
workshop.show_diff("train/train_tf.py", "train/train_tf_ps.py", essential)

# %% [markdown]
# Predict who does what on the job's instances. (SageMaker starts the script once on each instance.
# The servers are processes of their own; nothing so far says where they run, so that is a guess.)
# The cell also computes the cost on AWS.

# %%
guess = workshop.guess(
    workers=f"{instance_count} instances: how many processes compute gradients?",
    servers="On how many of the instances does a parameter server run?",
)
workshop.cost("ml.c5.xlarge", instance_count=instance_count, seconds=300, max_run=max_run)

# %% [markdown]
# How can you tell that the workers train *one* model? Give each only some of the ten digits:
# `"shard-by": "class"`. With two workers, one sees the even digits and the other the odd ones.
# Nobody would train like that. But if the model then knows all digits, it learned from both
# workers.

# %%
from sagemaker.tensorflow import TensorFlow

job = {
    "framework_version": "2.14.1",
    "py_version": "py310",
    "instance_type": "ml.c5.xlarge",
    "distribution": distribution,
    "hyperparameters": {
        "epochs": epochs,
        "global-batch-size": global_batch_size,
        "shard-by": "class",
        "log-every": 0,
    },
}
settings = {"entry_point": "train_tf_ps.py", "instance_count": instance_count}
limits = session.job_settings("servers") | {"max_run": max_run}
estimator = TensorFlow(**settings, **job, **limits)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %%
columns = ["epoch", "train_loss", "test_accuracy", "mean_staleness", "step_seconds"]
result.table("epoch")[columns].iloc[[0, 1, -1]]

# %% [markdown]
# Compare `mean_staleness` with the number of other workers: with three instances, of which one is
# the chief, there is one other worker. With our server the mean would be close to 1. There a worker
# gets the weights as soon as it has pushed. In TensorFlow a worker first waits until the chief
# gives it work, and only then reads the weights. What others update while it waits doesn't make its
# gradient stale.
#
# The log also contains the TF_CONFIG that SageMaker gave to the script on each host. This is the
# first host's:

# %%
configs = {
    line.host: json.loads(line.text.removeprefix("TF_CONFIG="))
    for line in result.matching("TF_CONFIG=")
}
print(json.dumps(configs["algo-1"], indent=1))

# %% [markdown]
# TensorFlow keeps the addresses as a `tf.train.ClusterSpec`. A script asks for it, and for its own
# task, so:
#
#     cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()  # reads TF_CONFIG
#     cluster.cluster_spec().as_dict()
#     cluster.task_type, cluster.task_id    # "worker", 0
#
# The workers of this job logged the second line's answer:

# %%
shards = result.table("shard").set_index("host")
shards["cluster"].iloc[0]

# %% [markdown]
# SageMaker writes `master`, TensorFlow 1's name. TensorFlow 2 says `chief`, and the script renames
# it (so will you, in the first exercise). *Every* host is in the list `ps`. The `task` is that of
# the script; the server on the same host is another process. The next table is made from the log.
# It shows who really did what:

# %%
started = {line.host for line in result.matching("Launching parameter server process")}
roles = pd.DataFrame({"task": {h: c["task"]["type"] for h, c in sorted(configs.items())}})
roles["server started"] = [host in started for host in roles.index]
roles["training images"] = shards["examples"].reindex(roles.index, fill_value=0)
roles["digits it sees"] = shards["classes"].reindex(roles.index, fill_value="none")
roles

# %% [markdown]
# So instances are not divided into "worker instances" and "server instances": each runs a server
# *and* the script, and the two share its cores. (So for a CPU job take a type with many cores,
# eight or more: a single worker can use several, lesson 01 measured two.) SageMaker only hands out
# names: one `master`, the others `worker`. What a `master` does is up to the script. In this one it
# only coordinates: it has no training images and computes no gradients, so N instances train with N
# − 1 workers. The script of the next job trains on the `master`, too.
#
# Which server holds which weights, and where? TensorFlow gives whole variables to the servers in
# turn, whatever their size. So the servers carry unequal parts. They keep them in the CPU's memory,
# also on an instance with GPUs: SageMaker starts the server without them
# ([AWS's toolkit](https://github.com/aws/sagemaker-tensorflow-training-toolkit/blob/master/src/sagemaker_tensorflow_container/training.py),
# `_run_ps`, read on 2026-11-24). A worker computes on a GPU if it has one.

# %%
variables = result.table("variable")
variables.groupby(["ps", "device"]).agg(
    variables=("name", "count"), kB=("bytes", lambda b: b.sum() / 1e3)
)

# %% [markdown]
# Compare with what you predicted:

# %%
training = (roles["training images"] > 0).sum()
guess.compare(workers=int(training), servers=len(started))

# %% jupyter={"source_hidden": true} tags=["results"]
assert roles["server started"].all(), "Every host must have started a parameter server."
assert set(variables["device"]) == {"CPU"}, "A server must keep its variables on the CPU."
assert training == instance_count - 1, "Every host but the first must have training images."
workshop.save_results(tasks=roles["task"].to_dict(), trains=training, servers=len(started))
workshop.save_results(variables_by_ps=variables["ps"].value_counts().to_dict())

# %% [markdown]
# ## One model, or many?
#
# Several processes that exchange nothing would *also* end as `Completed`, with falling losses and a
# model in S3. A well-known example does just that ([the
# issue](https://github.com/aws-samples/amazon-sagemaker-script-mode/issues/10)): a plain
# `model.fit` with no strategy, started with `parameter_server`. This script does the same:

# %%
workshop.show_function("demos/train_tf_ps_broken.py", "main")

# %% [markdown]
# SageMaker starts parameter servers beside it, but the script never contacts them. It trains on the
# first host, too. So two instances are enough for two training processes: again one sees the even
# digits, the other the odd ones.

# %%
guess = workshop.guess(
    status=("How will the broken job end?", ["Completed", "Failed"]),
    known="How many of the ten digits will the first host's model know?",
)

# %%
settings = {"entry_point": "train_tf_ps_broken.py", "instance_count": 2}
limits = session.job_settings("broken", source_dir=workshop.DEMOS) | {"max_run": max_run}
broken_estimator = TensorFlow(**settings, **job, **limits)
broken_estimator.fit(channels, wait=False)
broken = workshop.follow(broken_estimator)

# %% [markdown]
# The status is `Completed`, and the loss is small. The test accuracy in the last line above is the
# only hint: it doesn't fit so small a loss. But it doesn't tell you the cause. Now look at the
# accuracy of each model on each digit: two models of the broken job, and the one of the first job
# ("servers"). The test images are the same for all, and show all ten digits.


# %%
def by_digit(result, name):
    """The accuracy on each digit, a row for each model that a job's hosts ended with."""
    by_host = result.table("classes").set_index("host")["accuracy"].sort_index()
    return pd.DataFrame({f"{name}, {host}": accuracy for host, accuracy in by_host.items()}).T


digits_known = pd.concat([by_digit(broken, "broken"), by_digit(result, "servers")])
shown = digits_known.assign(
    even=digits_known.iloc[:, 0::2].mean(axis=1), odd=digits_known.iloc[:, 1::2].mean(axis=1)
)
shown.columns.name = "accuracy %"
(100 * shown).round().astype(int)

# %% [markdown]
# This is the proof. No worker of the first job saw more than half of the digits, and yet its model
# knows digits of both halves: what each worker learned reached the same weights. Each model of the
# broken job knows what its host saw. You would have paid for two instances and thrown one model
# away.
#
# The count below calls a digit known if more than a quarter of its images are right.

# %%
# A model that never saw a digit gets none of its images right; a model that guesses, a tenth.
known = (digits_known > 0.25).sum(axis=1)
good, alone = result.metrics["test_accuracy"], broken.table("epoch")["test_accuracy"]
guess.compare(status=broken.status, known=int(known.iloc[0]))
print(f"Digits that each model knows. {'; '.join(f'{n}: {k}' for n, k in known.items())}.")

# %% jupyter={"source_hidden": true} tags=["results"]
synced = known[[name for name in known.index if name.startswith("servers")]]
assert (synced == 10).all(), (
    f"The job's models know {list(synced)} of 10 digits: its workers did not train one model. "
    f"Does the script use a strategy? Accuracy on each digit: {digits_known.values.round(2)}"
)
assert good >= expected_accuracy, f"{good:.1%} is too low; {expected_accuracy:.0%} expected"
assert alone.max() < 0.6, "The hosts of the broken job know too much: did they see all digits?"
workshop.save_results(
    known=known, accuracy=good, broken_status=broken.status, broken_accuracy=alone
)
workshop.save_results(broken_weights=broken.table("weights")["weights_sha256"].nunique())

# %% [markdown]
# Two habits help. Ask of every distributed job: *what does it show that one process alone could
# not?* And look in the log for what should be there. The first script logs which server holds which
# variable. The broken one has nothing to log: its variables are in its own process.
#
# ## The strategies of TensorFlow
#
# | `tf.distribute.` | who holds the weights | workers wait for each other | lesson |
# |---|---|---|---|
# | `MirroredStrategy` | each GPU of *one* machine; all-reduce | yes | 04 |
# | `MultiWorkerMirroredStrategy` | each worker's GPUs, on many machines; all-reduce | yes | 05 |
# | `ParameterServerStrategy` | the servers | no | 03 |
#
# The next lessons use all-reduce: it has no bottleneck in the middle and no stale gradients.
# Parameter servers suit two other cases. One is a model too large for any worker's memory, where a
# batch needs only a few of the weights: a table with a row of weights for each product or word (an
# **embedding**). The other is workers that come and go.
#
# ## Exercises
#
# In [exercises/03_parameter_servers.ipynb](exercises/03_parameter_servers.ipynb):
#
# 1. (5 minutes) Turn SageMaker's TF_CONFIG into one that TensorFlow 2 takes.
# 2. (5 minutes) The bytes at the fullest of several servers, and the connections.
# 3. (15 minutes) The loop of an asynchronous server, with the staleness of each gradient.
#
# ## Check yourself

# %%
workshop.quiz("03")

# %% [markdown]
# ## Summary
#
# - A parameter server holds the weights; workers pull them and push gradients.
# - Sync waits for the slowest. Async applies each gradient as it arrives; it doesn't average.
# - With an asynchronous server like ours the mean staleness is about the number of other workers.
#   At a high learning rate, stale gradients spoil the training.
# - The server's bytes grow with the workers. Several servers share them and add connections.
# - On SageMaker every host runs a parameter server. The first host is `master` (TensorFlow 2:
#   `chief`); who trains is up to the script.
# - `Completed` and a falling loss prove nothing. A model that knows what no single worker saw is
#   proof.
#
# ## Clean up
#
# The ranks of the first half have ended. On AWS all instances were given back when their jobs
# ended. Models and logs stay in S3 and in CloudWatch Logs until you delete them.
#
# ## Next
#
# [Lesson 04](04_horovod_on_the_notebook.ipynb): Horovod, all-reduce for a script of your own.

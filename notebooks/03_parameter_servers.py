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
# # 03 · Parameter servers
#
# **After this lesson you can**
#
# - explain who does what when one process holds the weights and the others train;
# - say how stale a gradient is, and what that does to learning;
# - predict from bytes and bandwidth when a server becomes the bottleneck;
# - read TF_CONFIG, and run TensorFlow's ParameterServerStrategy as a SageMaker job;
# - prove that a job's workers train one model, and recognise a job whose workers do not.
#
# **Before:** [lesson 02](02_collectives.ipynb): what an all-reduce does and what it moves.
#
# **Time:** 70 minutes, without the exercises.
#
# **Where it runs:** three jobs here (`target = "local"`) or on AWS (`target = "aws"`), where nobody
# has run them yet; all else in processes of the machine that this notebook runs on.
#
# **Cost on AWS:** about 0.17 USD, at most 0.41 USD: one job on five `ml.c5.xlarge`, one on three
# and one on two, 5 minutes planned for each (us-east-1, price list of 2026-09-27).

# %% [markdown]
# ## Set up
#
# - `dataset`: `"digits"`, 1,797 images of 8 x 8 pixels, or `"mnist"`, 70,000 of 28 x 28, which is
#   downloaded and takes longer.
# - `workers`: processes that train. One more is the server. `steps`: global batches of a training.
# - `slow_ms`: how long the slow worker pauses in each batch, milliseconds.
# - `learning_rate`, `seeds` (5 or more): of the experiment on stale gradients.
# - `link`, `server_bytes`, `rounds`: bandwidth, bytes of weights and repeats of the first job.
# - `instance_count`, `epochs`: of the TensorFlow jobs. `max_run`: seconds after which a job ends.
# - `global_batch_size`: images per step, over all workers together.
# - `expected_accuracy`: what sync training and the TensorFlow job must reach.

# %% tags=["parameters"]
target = "local"
seat = "me"
dataset = "digits"
workers = 4
steps = 180
slow_ms = 30
learning_rate = 0.1
seeds = 5
link = "200mbit"
server_bytes = 2_000_000
rounds = 3
instance_count = 3
epochs = 8
max_run = 600
global_batch_size = 64
expected_accuracy = 0.9

# %%
import json
from math import comb

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.lesson import reference_results

session = workshop.session(target=target, seat=seat)
channels = session.upload(dataset)
folder = workshop.DATA / dataset
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("03") if unlimited and target == "local" else None
source = "recorded" if recorded else "measured"
print(unlimited or f"Each instance gets a link of {bandwidth.mbit(link):g} Mbit/s.")
if recorded:
    print(recorded.caption)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first
#
# In lesson 02 every rank held the weights. Another way: one process, the **parameter server**,
# holds them. The others are **workers**: in each step a worker gets the newest weights, and sends
# back a gradient of the same size.
#
# In a **synchronous** step the server sends the weights to all workers, waits for a gradient from
# each, and updates the weights once. Ours receives only after its last send, so the link's two
# directions are busy nearly one after the other: P bytes of weights and W workers make 2 · P · W
# bytes. In a ring of W ranks each sends 2 · P · (W - 1) / W, and receives as much at the same time.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    growth="A step with 4 workers takes how many times as long as with 1?",
    ring="With a server and 4 workers, how many times as long does a step take as in a ring of 4?",
)

# %% [markdown]
# A job measures it, with 2 MB of weights, on five instances: a server, and 4 workers, which also
# form the ring. Nothing is computed: workers answer at once with a gradient of zeros.

# %%
from sagemaker.pytorch import PyTorch

counts = sorted({1, 2, workers})
at_server = pd.DataFrame(recorded.results["at_server"]) if recorded else None
if not recorded:
    print(workshop.cost("ml.c5.xlarge", instance_count=workers + 1, seconds=300, max_run=max_run))
    job = session.job_settings("server", source_dir=workshop.DEMOS) | {"max_run": max_run}
    settings = {"workers": ",".join(map(str, counts)), "bytes": server_bytes, "rounds": rounds}
    settings["steps"] = 1  # in each measurement
    measuring = PyTorch(
        entry_point="measure_server.py",
        instance_count=workers + 1,
        instance_type="ml.c5.xlarge",
        distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},  # AWS ignores it
        hyperparameters=settings,
        framework_version="2.2.0",
        py_version="py310",
        **job,
    )
    measuring.fit(wait=False)
    at_server = workshop.follow(measuring).table("server")

# %% [markdown]
# <!-- SDK v3: server -->

# %% jupyter={"source_hidden": true}
by_count = at_server.groupby("workers")[["step", "ring", "passed"]]
rate = None if target == "aws" else 1e6 * bandwidth.mbit(link) / 8  # bytes per second
middle, low, high = by_count.median(), by_count.min(), by_count.max()
most = middle.index[-1]
by_round = at_server.assign(round=at_server.groupby("workers").cumcount())
by_round = by_round.pivot(index="round", columns="workers", values=["step", "ring"])
growth = by_round["step", most] / by_round["step", counts[0]]
against = by_round["step", most] / by_round["ring", most]
grew, beside = (f"{by.median():.2f} ({by.min():.2f} to {by.max():.2f})" for by in (growth, against))
title = f"A server with {most} workers: a step takes {grew} times as long\n"
title += f"as with {counts[0]}, and {beside} times as long as a ring's"
title += "" if source == "measured" else " (recorded elsewhere)"

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
size = (7, 3.8)
with plots.canvas(title, "workers, or ranks of the ring", "milliseconds a step", size) as axes:
    for at, (name, label) in enumerate({"step": "server", "ring": "ring"}.items()):
        shown = [count for count in counts if name == "step" or count > 1]
        ms, least, highest = (1000 * part.loc[shown, name] for part in (middle, low, high))
        reach = [ms - least, highest - ms]
        label += f" (median, range of {rounds} rounds)"
        style = {"color": plots.COLOURS[at], "marker": "os"[at], "capsize": 3, "label": label}
        axes.errorbar(ms.index, ms, yerr=reach, **style)
    if rate:
        each_way = server_bytes * np.array(counts) / rate
        label = "server: bytes / bandwidth, nothing at once"
        axes.plot(counts, 2000 * each_way, "k--", linewidth=1, label=label)
        at_once = 1000 * server_bytes * (np.array(counts) + 1) / rate
        label = "server: both directions at once, at best"
        axes.plot(counts, at_once, "k-.", linewidth=1, label=label)
        around = [2000 * server_bytes * (n - 1) / n / rate for n in shown]
        axes.plot(shown, around, "k:", linewidth=1, label="ring: bytes / bandwidth")
    axes.set(xticks=counts, ylim=(0, None))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)

# %% slideshow={"slide_type": "slide"}
guess.compare(source, growth=growth.median(), ring=against.median())
ratios = {f"{most} workers, against {counts[0]}": growth, "server, against a ring": against}
shown = pd.DataFrame(ratios).agg(["median", "min", "max"]).T
shown.insert(0, "bytes only", [most / counts[0], most**2 / (most - 1)])
shown.columns.name = "how many times as long"
if rate:
    off = middle["step"] / (middle["passed"] / rate) - 1
    listed = ", ".join(f"{100 * part:+.0f} % with {n}" for n, part in off.items())
    print(f"The server's step against the dashed line, by workers: {listed}.")
    by_bytes = 2 * server_bytes * (most - 1) / most / rate
    over = 100 * (middle.loc[most, "ring"] / by_bytes - 1)
    print(f"The ring of {most} against its dotted line: {over:+.0f} %.")
    print(f"Bytes alone say {most**2 / (most - 1):.1f} for server : ring; measured were {beside}.")
    if (off < -0.05).any():
        print("Less than its bytes: we think that `send` returned while bytes still waited in the")
        print("kernel, so that first gradients came in while the last weights went out.")
shown.round(2)

# %% jupyter={"source_hidden": true} tags=["results"]
assert growth.median() > 2, "The server's time must grow with the workers."
workshop.save_results(at_server=at_server.to_dict("list"), recorded=bool(recorded))
workshop.save_results(growth=growth.median(), ring_gain=against.median())
workshop.save_results(off_bytes=list(off) if rate else [])

# %% [markdown]
# By bytes only, a step with 4 workers takes 4 times as long as with 1, and 8 P at the server to 1.5
# P in the ring are 5.33. ("median" is of the rounds' ratios, which needn't be the ratio of the
# medians drawn.) The job measured nothing twice (A/A, lesson 01), so its noise isn't known: rely on
# what holds in each of the rounds ("min"). Three rounds can't tell what the rest is: lesson 02's α,
# waiting, or other work of the machine.
#
# Part of that factor comes from how our server is written: it sends, and then receives. The
# dash-dotted line is a server that does both at once. At best it needs the time of (W + 1) · P: W
# sends, and the last gradient, which can only come after the last weights. With 4 workers that is 5
# P to 1.5 P, 3.3 times a ring's.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## One process holds the weights
#
# A worker repeats three things: **pull** the newest weights; compute the gradient of a batch of its
# own part of the data; **push** that gradient. The server takes a gradient and updates the weights.
# It never sees an image.

# %% jupyter={"source_hidden": true} tags=["figure"]
title = "All bytes pass the server's one link; in a ring every rank has its own"
alt = (
    f"{title}. Left, a server sends weights to {workers} workers; each sends it a gradient. Right, "
)
alt += f"a ring of {workers} ranks: each sends gradients, then sums, to the next."
turns = 2 * np.pi * np.arange(workers) / workers
circle = list(zip(np.sin(turns), np.cos(turns), strict=True))
box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.4"}
style = {"arrowstyle": "-|>", "shrinkA": 22, "shrinkB": 22, "color": "black"}

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
with plots.canvas(title, "", "", (7.5, 3.6), alt) as axes:
    for number, (x, y) in enumerate(circle):
        # At the server: weights go out, gradients come in, side by side.
        at_server, at_worker = 16 + 13 * abs(x), 16 + 6 * abs(x)  # points: boxes are wide
        out = {"linestyle": "-", "shrinkA": at_server, "shrinkB": at_worker}
        back = {"linestyle": "--", "shrinkA": at_worker, "shrinkB": at_server}
        for start, end, look in (((0, 0), (x, y), out), ((x, y), (0, 0), back)):
            bent = style | look | {"connectionstyle": "arc3,rad=0.18"}
            axes.annotate("", end, start, arrowprops=bent)
        axes.text(x, y, f"worker\n{number + 1}", ha="center", va="center", size=9, bbox=box)
        left, after = (x + 3.4, y), circle[(number + 1) % workers]
        to = after[0] + 3.4, after[1]
        look = style | {"linestyle": "--", "connectionstyle": "arc3,rad=-0.3"}
        axes.annotate("", to, left, arrowprops=look)
        axes.text(*left, f"rank\n{number}", ha="center", va="center", size=9, bbox=box)
    axes.text(0, 0, "server:\nweights", ha="center", va="center", size=9, bbox=box, weight="bold")
    axes.text(3.4, 0, "every rank\nhas the weights", ha="center", va="center", size=9)
    axes.text(0, -1.5, "solid: weights, dashed: gradients", ha="center", size=9)
    axes.text(3.4, -1.5, "gradients, then their sums", ha="center", size=9)
    axes.set(xlim=(-1.5, 4.9), ylim=(-1.6, 1.4), aspect="equal")
    axes.axis("off")

# %% [markdown]
# Here is a real parameter server, `scripts/demos/parameter_server.py`, built on `send` and `recv`.
# Rank 0 is the server. It answers each gradient with the newest weights, so a pull needs no
# request. Each message has one number more: from the server, whether it wants another gradient;
# from a worker, its loss. This is all that a worker does:

# %%
workshop.show_function("demos/parameter_server.py", "work")

# %% [markdown]
# To the server the model is one long vector. Its updates are those of SGD with a **momentum** of
# 0.9: each gradient acts again in later updates, 0.9 times as strong each time, so that in all it
# moves the weights 1 / (1 - 0.9) = 10 times as far as without momentum. The server notes how many
# updates it made between a worker's pull and its push: the gradient's **staleness**.

# %%
workshop.show_function("demos/parameter_server.py", "Server")

# %% [markdown]
# What remains is the order of the calls. **Synchronous** (sync): the server waits for a gradient
# from *every* worker, and then makes one update with their mean.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/parameter_server.py", "serve_sync")

# %% [markdown]
# Train lesson 01's small convolutional network. The table has the first gradients that reached the
# server: who sent it, its staleness, the loss of its batch, and when the server had read it, in
# seconds since the start.

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
# Every staleness is 0. Is the training right? In each step the workers take equal parts of one
# batch, so one worker that takes that batch alone must get the same weights, up to rounding:


# %%
def difference(updates):
    """Return the largest difference in any weight, between all workers and a single one."""
    many, single = (train("sync", workers=n, max_steps=updates)["weights"] for n in (workers, 1))
    return max(float(np.abs(a - b).max()) for a, b in zip(many, single, strict=True))


rounding = difference(20)
print(f"The largest difference in any weight after 20 updates: {rounding:.0e}.")

# %% [markdown]
# Over many updates rounding may grow. So compare weights early, and only the accuracy at the end.

# %% jupyter={"source_hidden": true} tags=["results"]
assert rounding < 1e-4, "The sync server does not train what one process trains."
assert sync["pushes"]["staleness"].max() == 0, "In sync mode no gradient may be stale."
workshop.save_results(sync_difference=rounding, sync_staleness=sync["pushes"]["staleness"].max())

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Without waiting
#
# Now the other order of the calls, **asynchronous** (async):

# %% slideshow={"slide_type": "-"}
workshop.show_function("demos/parameter_server.py", "serve_async")

# %% [markdown]
# `receive_gradient()` without a number takes the gradient that arrives first. While a worker
# computes, others' gradients change the weights. When its own arrives, it belongs to weights that
# are no longer there: it is stale. From as many gradients, async makes W times as many updates as
# sync. So the script divides the learning rate by W.

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(mean=f"The mean staleness with {workers} asynchronous workers:")

# %% slideshow={"slide_type": "slide"}
quick = train("async")
mean_staleness = quick["pushes"]["staleness"].mean()
guess.compare(mean=round(mean_staleness, 2))
print(f"Mean staleness {mean_staleness:.2f}; {workers - 1} other workers.")

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
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
# With W workers the mean is close to W - 1. At any moment each has one gradient under way. So each
# update makes the other W - 1 gradients staler by 1, whoever is slow; and there are as many updates
# as gradients.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One slow worker
#
# Why accept stale gradients? Because workers are never equally fast. Make the last worker a
# **straggler**, which pauses for `slow_ms` in each of its batches. Both modes end after the same
# number of gradients *in all*.
#
# Let a gradient take t, and the pause p. In a time of t + p sync delivers W gradients, one of each
# worker. Async delivers 1 + (W - 1) · (t + p) / t: one of the slow worker, and of each other as
# many as fit.

# %% slideshow={"slide_type": "-"}
step_ms = 1000 * sync["seconds"] / steps
print(f"t, taken from a sync step without a pause: {step_ms:.1f} ms; p: {slow_ms} ms.")
guess = workshop.guess(
    ratio="One worker pauses. The time of sync, divided by that of async:",
    share="What percentage of all gradients does the slow worker push in async mode?",
)

# %%
short = min(steps, 80)
orders = [("sync", "async"), ("async", "sync"), ("sync", "async")]
repeated = [
    {mode: train(mode, slow_ms=slow_ms, max_steps=short) for mode in order} for order in orders
]
ratios = [r["sync"]["seconds"] / r["async"]["seconds"] for r in repeated]
slow = repeated[int(np.argsort(ratios)[1])]
by_worker = slow["async"]["pushes"].groupby("worker")["staleness"].agg(["count", "mean", "max"])
names = {"count": "gradients", "mean": "mean staleness", "max": "highest staleness"}
by_worker.rename(columns=names).round(1)

# %% [markdown]
# The table (of async mode) and the picture are of the repeat with the middle ratio. "A fast worker"
# is the middle one of the fast: they, too, get unequal shares of the cores. (Where a curve is flat,
# something held up the run. We don't know what; in runs this short it moves the ratio.)

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "subslide"}
progress, of_fast = {}, by_worker["count"].drop(workers).sort_values()
middle_one = of_fast.index[len(of_fast) // 2]
for mode, run in slow.items():
    for who, worker in {"a fast worker": middle_one, "the slow worker": workers}.items():
        at = run["pushes"].set_index("worker").loc[worker, "seconds"]
        progress[f"{mode}: {who}"] = pd.Series(range(1, len(at) + 1), index=at)
took = {mode: run["seconds"] for mode, run in slow.items()}
title = f"{workers * short} gradients with one slow worker: "
title += ", ".join(f"{mode} {took[mode]:.2f} s" for mode in ("async", "sync"))
with plots.canvas(title, "seconds", "gradients pushed by a worker", size=(8, 3.6)) as axes:
    for name, curve in progress.items():
        mode, who = name.split(": ")
        look = {"color": plots.COLOURS[mode == "async"], "linestyle": "-:"["slow" in who]}
        look |= {} if "slow" in who else {"linewidth": 5, "alpha": 0.4}  # in sync both coincide
        axes.plot(curve.index, curve, label=name, **look)
        axes.plot(curve.index[-1], curve.iloc[-1], "o", color=look["color"])
        below = name == "sync: the slow worker"  # which ends beside the fast one
        place = {"textcoords": "offset points", "xytext": (6, -12) if below else (-8, 7)}
        axes.annotate(str(curve.iloc[-1]), (curve.index[-1], curve.iloc[-1]), **place)
    axes.set(xlim=(0, None), ylim=(0, 1.15 * max(map(len, progress.values()))))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% slideshow={"slide_type": "-"}
speed_up = float(np.median(ratios))
share = by_worker.loc[workers, "count"] / by_worker["count"].sum()
guess.compare(ratio=round(speed_up, 1), share=round(100 * share))


# %% jupyter={"source_hidden": true}
def calculated(ms):
    """(ratio, slow worker's share), if a gradient without its pause takes so long."""
    delivered = 1 + (workers - 1) * (ms + slow_ms) / ms
    return delivered / workers, 1 / delivered


print("Calculated: {:.1f} and {:.0%}.".format(*calculated(step_ms)))
own_ms = 1000 * slow["async"]["seconds"] * (workers - 1) / by_worker["count"].drop(workers).sum()
check = "With t of async's own fast workers, {:.1f} ms: {:.1f} and {:.0%}"
print(
    check.format(own_ms, *calculated(own_ms)), "(no prediction: it was measured in the same run)."
)
print(f"In {len(ratios)} repeats the ratio was {min(ratios):.1f} to {max(ratios):.1f}.")
if min(ratios) > calculated(step_ms)[0]:
    print("All are above what was calculated: while one worker sleeps, the others probably get")
    print("more of the cores, so a gradient takes less than a sync step's t.")
overall = slow["async"]["pushes"]["staleness"].mean()
print(f"The mean staleness of all gradients: {overall:.1f}, with {workers - 1} other workers.")

# %% jupyter={"source_hidden": true} tags=["results"]
stale = by_worker["mean"]
assert share < 1 / workers, "The slow worker must push less than its part in async mode."
assert stale.idxmax() == workers, "The slow worker's gradients must be the stalest."
workshop.save_results(slow_share=share, speed_up=speed_up, stale_by_worker=stale.to_dict())

# %% [markdown]
# In async mode the others don't wait, and the price is in the table: the slow worker pushes the
# fewest gradients, and the stalest.
#
# <details><summary>More ways between sync and async</summary>
#
# - **Backup workers**: the server takes the first gradients of each step and drops those of
#   stragglers ([Chen et al., 2016](https://arxiv.org/abs/1604.00981)).
# - **Bounded staleness** (stale synchronous parallel, SSP): a fast worker waits only if it is too
#   many steps ahead of the slowest ([Ho et al.,
#   2013](https://papers.nips.cc/paper/4894-more-effective-distributed-ml-via-a-stale-synchronous-parallel-parameter-server)).
#   You build it in exercise 3.
# - **Local SGD** (lesson 12): each worker trains alone for several steps, then all average their
#   weights ([2018](https://arxiv.org/abs/1805.09767); DiLoCo,
#   [2023](https://arxiv.org/abs/2311.08105)).
#
# </details>
#
# ## What staleness does to learning
#
# Train on the same number of examples in three ways: sync; async; and with as many small updates as
# async makes, but by a single worker, so that none is stale. With 4 workers and a rate η:
#
# | run | updates | rate of each | batch of each | stale |
# |---|---|---|---|---|
# | sync | `steps` | η | 64 | no |
# | async | 4 · `steps` | η / 4 | 16 | yes |
# | small updates, not stale | 4 · `steps` | η / 4 | 16 | no |

# %%
fewer, as_many = "fewer by more than 5 points, with every seed", "about as many"
mixed = "it depends on the seed"
guess = workshop.guess(
    stale=(
        f"At the rate {learning_rate}, async gets how many images right, compared with sync?",
        [as_many, fewer, mixed],
    )
)


# %%
def one_worker(**options):
    """The updates of async training, by a single worker: the same sizes, and never stale."""
    options["learning_rate"] /= workers
    batch = global_batch_size // workers
    return train("sync", workers=1, max_steps=steps * workers, global_batch_size=batch, **options)


runs = {}
for seed in range(seeds):
    options = {"learning_rate": learning_rate, "seed": seed}
    runs["sync", seed] = train("sync", **options)
    runs["async", seed] = train("async", **options)
    runs["small updates, not stale", seed] = one_worker(**options)
percent = pd.Series({key: 100 * run["accuracy"] for key, run in runs.items()})
percent.index.names = ["% of test images right (guessing: 10)", "seed"]
by_way = percent.unstack(sort=False)  # a row for each way, a column for each seed
by_way.round(1)

# %% jupyter={"source_hidden": true} tags=["figure"]
middle_seed = by_way.loc["async"].sort_values().index[seeds // 2]
drawn = {  # the loss of one batch jumps: draw the mean of the last few
    way: run["pushes"]["loss"].rolling(4 * workers, min_periods=1).mean()
    for (way, seed), run in runs.items()
    if seed == middle_seed
}
label = f"gradients that reached the server (seed {middle_seed}: async's middle accuracy)"
ends = {way: loss.iloc[-len(loss) // 4 :].mean() for way, loss in drawn.items()}
fresh = ends["small updates, not stale"]
worse = " spoil the training" if ends["async"] > 3 * fresh else ""
title = f"Stale gradients{worse} at a rate of {learning_rate:g} "
title += f"(seed {middle_seed}, the middle of {seeds}):\n"
title += f"mean loss of the last quarter {ends['async']:.2f}; "
title += f"with as many updates, none stale: {fresh:.2f}"
plots.lines(drawn, title, label, f"loss, mean of {4 * workers} batches", top=3)

# %%
points = by_way - by_way.loc["sync"]
stale = points.loc["async"]
agree = as_many if stale.abs().max() <= 5 else mixed
guess.compare(stale=fewer if stale.max() < -5 else agree)
for way in ("async", "small updates, not stale"):
    low, high = points.loc[way].min(), points.loc[way].max()
    print(f"{way}: {low:+.1f} to {high:+.1f} points against sync,", end=" ")
    print(f"worse with {(points.loc[way] < 0).sum()} of {seeds} seeds.")
late = by_way.loc["async"] - by_way.loc["small updates, not stale"]
print(f"async: {late.min():+.1f} to {late.max():+.1f} points against small updates, not stale.")
if by_way.loc["async"].max() < by_way.loc["sync"].min():
    print(
        f"Each async run is below each sync run: by chance in 2 of {comb(2 * seeds, seeds)} cases."
    )

# %% jupyter={"source_hidden": true} tags=["results"]
accuracy = by_way.median(axis=1) / 100
assert accuracy["sync"] >= expected_accuracy, "Sync must learn at this rate."
high = learning_rate >= 0.1  # at a lower one async may learn as much
assert accuracy["async"] < accuracy["sync"] or not high, "Raise the learning rate."
workshop.save_results(accuracy_by_way=accuracy.to_dict())

# %% [markdown]
# A seed sets the weights and the batches, not the order in which gradients arrive: async gives
# other numbers each time, also with the same seed.
#
# Compare "async" with "small updates, not stale": apart from how the batches are cut, only the
# staleness differs. An update with a stale gradient goes downhill from where the weights *were*.
# After large steps (momentum enlarges them) they are far from there, and it may lead uphill. If
# that is the reason, half the rate should lose less:

# %%
lower = {}
for seed in range(seeds):
    for way in ("sync", "async"):
        half = train(way, learning_rate=learning_rate / 2, seed=seed)
        lower[f"{way}, half the rate", seed] = 100 * half["accuracy"]
at_half = pd.Series(lower).unstack(sort=False)
lost = at_half.iloc[0] - at_half.iloc[1]
lost_before = -points.loc["async"]
print(f"Async loses {lost.median():.1f} points in the median of {seeds} seeds, not", end=" ")
print(f"{lost_before.median():.1f}; less with {(lost < lost_before).sum()} of {seeds} seeds.")
at_half.round(1)

# %% [markdown]
# That agrees with the reason; it would agree with others, too. Nor does it say which way reaches an
# accuracy earlier, in seconds: that isn't measured here.
#
# ## Bytes at the server
#
# Does the server send and receive as many bytes as the formula says? "counted" is what it added
# up; "computed" is 2 P W; "ring" is 4 P (W - 1) / W, for one rank. All count bytes in and out.

# %% tags=["deterministic"]
p_bytes = sum(weight.nbytes for weight in sync["weights"])
short = {count: train("sync", workers=count, max_steps=20) for count in counts}
table = pd.DataFrame(index=pd.Index(counts, name="workers"))
table["counted"] = [(run["bytes_in"] + run["bytes_out"]) / 20 / 1e3 for run in short.values()]
table["computed"] = [2 * p_bytes * count / 1e3 for count in counts]
table["ring"] = [4 * p_bytes * (count - 1) / count / 1e3 for count in counts]
table.columns.name = "kB in a step"
table.round(1)

# %%
ranks.stop()

# %% jupyter={"source_hidden": true} tags=["results"]
in_all = table["counted"].iloc[-1] / table["counted"].iloc[0]
assert abs(in_all / counts[-1] - 1) < 0.1, "The server's bytes must grow with the workers."
assert (table["counted"] / table["computed"] - 1).abs().max() < 0.1, "Counted is not computed."
workshop.save_results(kb_at_server=table["counted"], computed_kb=table["computed"])

# %% [markdown]
# Slightly more was counted: at the end each worker gets the weights again, and each message
# carries one number more.
#
# With 4 workers the server carries 2.7 times a ring's bytes, not the 5.33 times of the first
# section: a ring's rank sends and receives at the same time, our server first one, then the other.
# That is the other factor of 2.
#
# When is a server the bottleneck? Take P = 100 MB (25 million weights), 8 workers, and links of 10
# Gbit/s each way, which carry P in 0.08 s, and 8 P in 0.64 s. (As if only bytes counted: how far
# off that was, the first measurement shows.)
#
# | | the server's link, or a rank's, needs (computed) |
# |---|---|
# | sync, a step | 0.64 s, then 0.64 s: 1.28 s besides computing; 0.72 s if both at once |
# | ring of 8, a step | 2 · 7/8 · 0.08 = 0.14 s, a ninth (or a fifth) of that |
# | async, a gradient | 0.08 s if the server sends while it receives (ours doesn't: 0.16 s) |

# %%
guess = workshop.guess(
    full="A batch takes 0.3 s. With how many async workers is the server's link always busy, "
    "if it sends while it receives?",
    ours="And with how many, if it doesn't, like ours?",
)

# %%
cycle = 0.08 + 0.3 + 0.08  # of a worker: pull, compute, push
full, ours = (int(np.ceil(cycle / seconds)) for seconds in (0.08, 0.16))
guess.compare("computed", full=full, ours=ours)

# %% [markdown]
# In a worker's cycle of 0.46 s the link carries 0.46 / 0.08 = 5.75 gradients, and with our server
# 0.46 / 0.16 = 2.9. The remedy is **several servers**, each with a part of the weights; but then
# each worker talks to each server (exercise 2). With N workers and N servers of equal parts, one of
# each on every host, a host sends P (N - 1) / N of gradients and as much of weights: 2 P (N - 1) /
# N, a ring's bytes. So a ring need not beat parameter servers; it beats *one* server.
#
# ## The same in TensorFlow, as a job
#
# TensorFlow's is `tf.distribute.ParameterServerStrategy`. Each process of a job has a role. A
# **worker** computes gradients, a **ps** holds a part of the weights, and the **chief** (SageMaker:
# `master`) hands out work, evaluates and saves. An environment variable, **TF_CONFIG**, has the
# addresses of each role and this process's own task. SageMaker sets it when you pass
# `parameter_server`:

# %%
distribution = {"parameter_server": {"enabled": True}}

# %% [markdown]
# These lines of `scripts/train/train_tf_ps.py` matter:

# %%
essential = ["cluster = tf.distribute", 'cluster.task_type == "worker"']
essential += ["strategy = tf", "coordinator = tf"]
essential += ["strategy.scope()", "SGD(", "coordinator.schedule(", "result.fetch()[0]"]
workshop.show_diff("train/train_tf.py", "train/train_tf_ps.py", essential)

# %% [markdown]
# 1. read TF_CONFIG;
# 2. a worker only waits for work (`serve`); the chief alone runs the rest of `main`;
# 3. the strategy is asynchronous;
# 4. the coordinator hands out the work;
# 5. variables (arrays of weights) made in the scope live on the servers;
# 6. the learning rate is divided by the number of workers, as before;
# 7. the chief gives the next piece of work (read the weights, compute a gradient, have it applied)
#    to whichever worker is free, and doesn't wait;
# 8. later it fetches the losses.
#
# SageMaker starts the script once on each instance; the servers are processes of their own.

# %%
guess = workshop.guess(
    workers=f"{instance_count} instances: how many processes compute gradients?",
    servers="On how many of the instances does a parameter server run?",
)
workshop.cost("ml.c5.xlarge", instance_count=instance_count, seconds=300, max_run=max_run)

# %% [markdown]
# Do the workers train *one* model? Give each only some of the digits: `"shard-by": "class"`. One of
# two workers then sees the even digits, the other the odd ones. If the model knows all, it learned
# from both.

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

# %% [markdown]
# <!-- SDK v3: servers -->

# %%
columns = ["epoch", "train_loss", "test_accuracy", "mean_staleness", "step_seconds"]
result.table("epoch")[columns].iloc[[0, 1, -1]]

# %% [markdown]
# This training is asynchronous, too, and learns. Each update has the rate of ours, 0.05 / 2 =
# 0.1 / 4 = 0.025, and the same momentum. What differs is, among others, how stale a gradient is
# (`mean_staleness`; in ours about 3), its batch (32 images, not 16) and what a worker sees. That
# agrees with our experiment, and proves nothing.
#
# With two workers, our server's mean staleness would be close to 1. Here it is lower, probably
# since a worker reads the weights only once the chief has given it work. (Why it changes from epoch
# to epoch, we didn't test.)
#
# The first host's TF_CONFIG, from the log:

# %% jupyter={"source_hidden": true}
configs = {
    line.host: json.loads(line.text.removeprefix("TF_CONFIG="))
    for line in result.matching("TF_CONFIG=")
}
started = {line.host for line in result.matching("Launching parameter server process")}
print(json.dumps(configs["algo-1"]))

# %% jupyter={"source_hidden": true} tags=["figure"]
tasks = {host: config["task"]["type"] for host, config in sorted(configs.items())}
training_hosts = list(tasks.values()).count("worker")
title = f"{len(tasks)} instances: {len(started)} servers, {training_hosts} workers"
drawn = ", ".join(f"{host}: a script, {task}" for host, task in tasks.items())
alt = f"{title}. A box for each instance. {drawn}. Servers on {', '.join(sorted(started))}."

# %% jupyter={"source_hidden": true} tags=["figure"]
inside = {"boxstyle": "round,pad=0.4", "edgecolor": "0.3"}
with plots.canvas(title, "", size=(8, 2.4), alt=alt) as axes:
    for at, (host, task) in enumerate(tasks.items()):
        axes.add_patch(Rectangle((at + 0.04, 0), 0.92, 1, fill=False, edgecolor="0.4"))
        axes.text(at + 0.5, 0.88, host, ha="center", va="center", weight="bold")
        colour = to_rgba(plots.COLOURS[0], 0.4) if task == "worker" else "white"
        text = (
            "script: worker\ncomputes gradients"
            if task == "worker"
            else f"script: {task}\nhands out work"
        )
        axes.text(
            at + 0.5, 0.58, text, ha="center", va="center", bbox=inside | {"facecolor": colour}
        )
        if host in started:
            look = inside | {"facecolor": to_rgba(plots.COLOURS[1], 0.4)}
            axes.text(
                at + 0.5, 0.2, "server: ps\nholds weights", ha="center", va="center", bbox=look
            )
    axes.set(xlim=(0, len(tasks)), ylim=(-0.05, 1.05))
    axes.axis("off")

# %% [markdown]
# `master` is TensorFlow 1's name, and the script renames it. *Every* host is in the list `ps`. Who
# really did what? (0 training images: the host reported none.)

# %%
shards = result.table("shard").set_index("host")
roles = pd.DataFrame({"task": tasks})
roles["server started"] = [host in started for host in roles.index]
roles["training images"] = shards["examples"].reindex(roles.index, fill_value=0)
roles["digits it sees"] = shards["classes"].reindex(roles.index, fill_value="none")
roles

# %% [markdown]
# So each instance runs a server *and* the script, and the two share its cores. This script's
# `master` computes no gradients, so N instances train with N − 1 workers.

# %%
variables = result.table("variable")
training = (roles["training images"] > 0).sum()
by_server = variables.groupby("ps")["bytes"].sum()
sizes = (f"ps {number}: {size:,}" for number, size in by_server.items())
print("Bytes of weights on", ", ".join(sizes))
fullest = by_server.max() / by_server.sum()
print(f"The fullest holds {fullest:.0%}: its link is busy {fullest:.2f} times as long as that of a")
print(f"single server, and not {1 / len(started):.2f} times, as with equal parts.")
guess.compare(workers=int(training), servers=len(started))

# %% [markdown]
# TensorFlow gives whole variables to the servers in turn, whatever their size.

# %% jupyter={"source_hidden": true} tags=["results"]
assert roles["server started"].all(), "Every host must have started a parameter server."
assert set(variables["device"]) == {"CPU"}, "A server must keep its variables on the CPU."
assert training == instance_count - 1, "Every host but the first must have training images."
workshop.save_results(tasks=roles["task"].to_dict(), trains=training, servers=len(started))
workshop.save_results(variables_by_ps=variables["ps"].value_counts().to_dict())

# %% [markdown]
# <details><summary>On GPUs; coming from another tutorial?</summary>
#
# Variables stay in the CPU's memory, also on an instance with GPUs: SageMaker starts the server
# without them ([AWS's
# toolkit](https://github.com/aws/sagemaker-tensorflow-training-toolkit/blob/master/src/sagemaker_tensorflow_container/training.py),
# `_run_ps`, read on 2026-11-24).
#
# The form `{'parameter_server': {enabled = True}}`, which some pages show, is a SyntaxError. An
# **evaluator** is optional.
#
# </details>
#
# ## One model, or many?
#
# Here is a script with a fault. Find it before you run it:

# %%
workshop.show_function("demos/train_tf_ps_broken.py", "main")

# %% [markdown]
# This script trains on the first host, too. So of two instances one sees the even digits, the other
# the odd ones.

# %% slideshow={"slide_type": "slide"}
faults = ["the first host trains", "model.fit has no strategy", "the digits are divided"]
guess = workshop.guess(
    fault=("Where is the fault?", faults),
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
# <!-- SDK v3: servers, broken -->

# %% [markdown]
# The status is `Completed`, the loss is small, and a model is in S3. Yet the processes exchanged
# nothing: `model.fit` without a strategy never contacts the servers beside it. A well-known example
# does just that ([the
# issue](https://github.com/aws-samples/amazon-sagemaker-script-mode/issues/10)). Only the test
# accuracy doesn't fit. Now look at the accuracy on each digit, of the broken job's two models and
# of the one that the job "servers" trained.


# %% slideshow={"slide_type": "slide"}
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
# This is the proof: no worker of the job "servers" was given more than half of the digits, and yet
# its model knows both halves. Each model of the broken job knows what its host saw.
#
# (The chief, too, reads all images, to count them. Could it have trained alone? Then its updates
# would follow one another, and no gradient would be stale. In this job many were:)

# %% slideshow={"slide_type": "-"}
# Known: more than a quarter is right. A model that guesses gets a tenth.
known = (digits_known > 0.25).sum(axis=1)
good, alone = result.metrics["test_accuracy"], broken.table("epoch")["test_accuracy"]
guess.compare(fault=faults[1], status=broken.status, known=int(known.iloc[0]))
print(f"Digits that each model knows. {'; '.join(f'{n}: {k}' for n, k in known.items())}.")
stale = result.table("epoch")["mean_staleness"]
print(f"The mean staleness of an epoch was {stale.min():.2f} to {stale.max():.2f}.")

# %% jupyter={"source_hidden": true} tags=["results"]
synced = known[[name for name in known.index if name.startswith("servers")]]
assert (synced == 10).all(), (
    f"The job's models know {list(synced)} of 10 digits: its workers did not train one model. "
    f"Does the script use a strategy? Accuracy on each digit: {digits_known.values.round(2)}"
)
assert stale.max() > 0, "No gradient was stale: did a single process train?"
assert good >= expected_accuracy, f"{good:.1%} is too low; {expected_accuracy:.0%} expected"
assert alone.max() < 0.6, "The hosts of the broken job know too much: did they see all digits?"
workshop.save_results(
    known=known, accuracy=good, broken_status=broken.status, broken_accuracy=alone
)
workshop.save_results(broken_weights=broken.table("weights")["weights_sha256"].nunique())

# %% [markdown]
# Ask of every distributed job: *what does it show that one process alone could not?*
#
# **When to use a parameter server?** The next lessons use all-reduce: no server as the bottleneck,
# no stale gradients. Servers suit a model in which a batch changes only a few weights, such as a
# table with a row for each product or word (an **embedding**); and workers that come and go.
#
# ## Exercises
#
# In [exercises/03_parameter_servers.ipynb](exercises/03_parameter_servers.ipynb):
#
# 1. (10 minutes) Sync, async or a ring: which brings most gradients per second, and why?
# 2. (5 minutes) The bytes at the fullest of several servers, and the connections.
# 3. (15 minutes) Bounded staleness, on real ranks: no worker runs more than s steps ahead.
#
# ## Check yourself

# %% question=3 slideshow={"slide_type": "slide"}
workshop.quiz("03")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A parameter server holds the weights; workers pull them and push gradients. The bytes of a
#   single server grow with the workers, and on a limited link so do its seconds. In a ring each
#   rank's bytes stay below 2 P each way, however many ranks; so do those of many servers of equal
#   parts.
# - Sync waits for the slowest. Async applies each gradient as it arrives; it doesn't average. The
#   mean staleness is about the number of other workers, if each always has a gradient under way; at
#   a rate of 0.1, with a momentum of 0.9, async learned worse here than sync.
# - On SageMaker every host runs a parameter server; who trains is up to the script.
# - `Completed` and a falling loss prove nothing. A model that knows what no single worker was
#   given is proof.

# %% [markdown]
# ## Clean up
#
# The ranks and the jobs have ended. Models and logs stay in S3 and in CloudWatch Logs until you
# delete them.
#
# ## Next
#
# [Lesson 04](04_horovod_on_the_notebook.ipynb): Horovod, all-reduce for a script of your own.

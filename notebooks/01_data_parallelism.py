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
# # 01 · Data parallelism
#
# **After this lesson you can**
#
# - say what every rank has whole, and what the ranks divide;
# - show that averaged gradients are right, and name three ways to get wrong ones;
# - split a training step into compute, wait and exposed communication, and measure each fairly;
# - compute bounds on how many ranks still help;
# - choose a batch size and a learning rate for more ranks.
#
# **Before:** [lesson 00](00_setup.ipynb): you know what a job, a channel and an instance are. Here
# and in lesson 02 all is PyTorch; TensorFlow comes back in 03.
#
# **Time:** 70 minutes, without the exercises.
#
# **Where it runs:** the ranks are processes of this computer. One small job at the end runs here
# (`target = "local"`) or on AWS (`target = "aws"`), where nobody has run it yet.
#
# **Cost on AWS:** about 0.03 USD, at most 0.09 USD: one job on two `ml.c5.xlarge`, 5 minutes
# planned (us-east-1, price list of 2026-09-27).

# %% [markdown]
# ## Set up
#
# - `large_batch`: images in a step of the large workload. `rounds`: how often each speed is
#   measured (large workload: at most 6 times). `steps`: steps in one measurement.
# - `world_size`, `global_batch_size`: ranks and images for the comparisons of gradients. No speed
#   is measured with them, so there may be more ranks than cores.
# - `epochs`, `seeds` (an even number): of the experiment on batch sizes.
# - `seat`: your name in a shared account. `max_run`: seconds after which SageMaker stops the job.

# %% tags=["parameters"]
target = "local"
seat = "me"
large_batch = 512
rounds = 9
steps = 4
world_size = 4
global_batch_size = 64
epochs = 20
seeds = 6
max_run = 600

# %% tags=["deterministic"]
import numpy as np
import pandas as pd
from IPython.display import display

import data_prep
import workshop
from workshop import DATA, DEMOS, plots
from workshop.launch.processes import TORCHRUN, run_together
from workshop.measure.interleaved import must_agree, summary, verdict
from workshop.measure.scaling import Scaling, share_at, table

all_images, all_labels = data_prep.digits.load()
training = all_images[:-360], all_labels[:-360]
test = all_images[-360:], all_labels[-360:]
batch = training[0][:global_batch_size], training[1][:global_batch_size]
print(f"{len(training[0]):,} training images of 8 x 8 pixels, {len(test[0])} test images")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first
#
# Several processes can train one model together. Each computes the gradient of a part of every
# batch; then they average their gradients. Such a process is a **rank**, and their number is the
# **world_size**. Take two workloads: *small*, 64 handwritten digits of 8 × 8 pixels in each step,
# and *large*, 512 of the same digits, enlarged to 28 × 28. Every process has one thread, so one
# process, the baseline, uses one core (or one hyperthread), which stands for a device. **Predict**
# the **speed-up** of two ranks: the time of one process divided by theirs.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    large="Large workload: the speed-up of two ranks over one process:",
    small="Small workload: the speed-up of two ranks:",
)


# %%
def measure(pixels, images, steps, *flags):
    """Two ranks on this machine. pixels: of an image's side. images: in each global batch."""
    name = "digits" if pixels == 8 else f"digits-{pixels}"
    data = data_prep.digits.prepare(DATA / name, size=pixels, quiet=True) / "training"
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", 2, DEMOS / "measure_scaling.py"]
    command += ["--library", "torch", "--training", data, "--global-batch-size", images]
    command += ["--rounds", rounds, "--steps", steps, *flags]
    return Scaling.from_records(run_together(command, timeout=300))


large = measure(28, large_batch, steps, "--rounds", min(rounds, 6))
small = measure(8, 64, 15 * steps)

# %% [markdown]
# In the picture **r** is the time of exchanging gradients divided by that of computing. The
# **ceiling** is the speed-up of two processes that exchange nothing. It is measured, not assumed:
# it may well be below 2, and even above.


# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
def dot(name, scaling):
    """A measured dot of the map."""
    label = f"{name}: {scaling.speed_up.median:.2g} times as fast"
    r, share = scaling.r, scaling.share
    return [r.median, share.median, share.low, share.high, r.low, r.high, label, "measured"]


def draw_map(rows, title):
    """The map of the lessons."""
    columns = ["r", "share", "low", "high", "r_low", "r_high", "label", "source"]
    plots.scaling_map(pd.DataFrame(rows, columns=columns), title)


workloads = {f"large, {large_batch} x 28 x 28": large, "small, 64 x 8 x 8": small}
first_dots = [dot(f"2 ranks, {name}", scaling) for name, scaling in workloads.items()]
title = "Of their ceiling two ranks reach {:.0f} % (large), {:.0f} % (small)"
draw_map(first_dots, title.format(100 * large.share.median, 100 * small.share.median))

# %% slideshow={"slide_type": "slide"}
measured = {"large": large, "small": small}
guess.compare(**{name: float(f"{run.speed_up.median:.2g}") for name, run in measured.items()})
for name, scaling in workloads.items():
    print(f"{name}: the speed-up of two ranks is {scaling.speed_up.text}.")
    of_two = scaling.rounds["alone"] / scaling.rounds["compute"] / 2
    print(f"  The ceiling is {scaling.ceiling.text}: above 2 in {(of_two > 1).sum()} of", end=" ")
    print(f"{len(of_two)} rounds.", end=" ")
    print(f"The ranks reach {100 * scaling.share.median:.0f} % of it;", end=" ")
    print(f"r is {scaling.r.median:.2g} (all are medians).")
    if scaling.ceiling.median > 2:
        print("  More than 2? It is noise, or half a batch fits better into a cache (not tested).")
    spread = scaling.rounds.max() / scaling.rounds.min()
    print(f"  Over the rounds one process alone varied by {spread['alone']:.2f} times,", end=" ")
    print(f"two ranks' step by {spread['step']:.2f}.")
    if max(spread[["alone", "step"]]) > 1.5:
        print("  So this machine was busy: believe which is faster, not by how much.")

# %% jupyter={"source_hidden": true} tags=["results"]
records = {name: scaling.record() for name, scaling in (("large", large), ("small", small))}

# %% [markdown]
# Across is r, the *communication-to-computation ratio*; up, the share of the ceiling (the *parallel
# efficiency*, relative to a baseline without communication). **In each round speed-up = ceiling ×
# share**; medians needn't multiply.
#
# The solid curve is not fitted: a step that computes, then exchanges for r times as long, takes
# 1 + r times as long. So the share is 1 / (1 + r), for any number of ranks, if nothing else is
# lost. What else is lost, and how sure all this is, comes after what a rank does.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The model whole, the batch in parts
#
# A training step computes the **gradient** of a batch (how the loss changes with each weight), and
# takes a small step in the opposite direction. Once a batch is large, twice the images take about
# twice as long, so the ranks, numbered from 0, divide the images.
#
# | | on every rank | |
# |---|---|---|
# | the model's weights | whole, and the same | **replicated** |
# | the optimizer's state, the script | whole, and the same | **replicated** |
# | the global batch | a different part | **split** |
# | the gradient, as a rank computes it | its own: from its own images | different |
# | the gradient, after the ranks have averaged | the same | replicated again |
#
# That is **data parallel** training. Equal weights that are moved by equal gradients stay equal, so
# only gradients travel.

# %%
ranks = workshop.start_ranks(world_size)


def who_are_you():
    import os
    import platform

    import torch.distributed as dist

    return {"rank": dist.get_rank(), "process": os.getpid(), "computer": platform.node()}


started = pd.DataFrame(ranks.run(who_are_you)).set_index("rank")
started

# %% jupyter={"source_hidden": true} tags=["results"]
assert started["process"].nunique() == world_size, "Ranks must be different processes: restart."

# %% [markdown]
# `run` calls a function on every rank with the same arguments, `run_each` gives each rank an
# argument of its own; both return a result for each rank. The function runs in another process, so
# it imports what it needs. (A function of `scripts/demos` goes by name, as `"module:function"`.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The average of the gradients
#
# Why is the average right? The loss of a batch is the *mean* of its images' losses, and the mean of
# 64 numbers is the mean of the four means of 16. The same holds for their gradients. This needs
# parts of equal size, a division by their number, and a loss of each image that doesn't depend on
# the others. But computers round. Below, `all_reduce` adds up a tensor over all ranks: each puts
# its own in, and gets the sum out.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    gradient=(
        "Mean of all ranks' gradients against the gradient of the whole batch:",
        ["the same bits", "the same up to rounding", "about 1 % off"],
    )
)


# %% slideshow={"slide_type": "slide"}
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


# %% slideshow={"slide_type": "slide"}
shards = [(batch[0][r::world_size], batch[1][r::world_size]) for r in range(world_size)]
expected = ranks.run(gradient_of, *batch)[0]  # of a single rank with all images
averaged = ranks.run_each(exchanged, shards)
between_ranks = max(np.abs(gradient - averaged[0]).max() for gradient in averaged)
difference = np.abs(averaged[0] - expected).max()
print(f"{expected.size:,} weights; largest component {np.abs(expected).max():.3f}")
print(f"largest difference between two ranks:      {between_ranks:.1e}")
print(f"largest difference from the whole batch's: {difference:.1e}")

# %% slideshow={"slide_type": "-"}
bits = np.array_equal(averaged[0], expected)
tiny = difference < 1e-6
guess.compare(
    gradient="the same bits" if bits else "the same up to rounding" if tiny else "about 1 % off"
)

# %% [markdown]
# All ranks got the same sum. From the whole batch's gradient it differs by rounding: the ranks add
# in another order. Neither is more right.

# %% jupyter={"source_hidden": true} tags=["results"]
assert between_ranks == 0, "The ranks hold different gradients: did each call all_reduce?"
assert tiny, f"{difference} is more than rounding: do the shards make up the whole batch?"
workshop.save_results(gradient_difference=difference, between_ranks=between_ranks)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Three ways to get a wrong gradient
#
# Break one condition at a time, and see how far off the gradient is:
#
# 1. **Unequal shards.** A shard is one rank's part of the images. Rank 0 takes more.
# 2. **A sum, not a mean.** The division is forgotten.
# 3. **Batch normalisation.** This layer subtracts the mean of the *batch*, and each rank knows only
#    its own images.

# %% slideshow={"slide_type": "fragment"}
first = global_batch_size - 8 * (world_size - 1)  # rank 0 takes all but 8 for each other rank
cuts = [first + 8 * rank for rank in range(world_size - 1)]
unequal = list(zip(np.split(batch[0], cuts), np.split(batch[1], cuts), strict=True))
print("images by rank, where shards are unequal:", *[len(labels) for _, labels in unequal])

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
broken.map("{:.3g}".format)

# %% [markdown]
# The *relative error* is the length of the difference, divided by that of the right gradient. None
# of the three raises an exception.
#
# 1. An image on a small shard weighs more. Cut equal shards, or weight each rank's gradient by its
#    number of images: exercise 01.2.
# 2. The sum is `world_size` times too long: for SGD, like a learning rate that is too high by that
#    factor.
# 3. The ranks compute a different function. Avoid batch normalisation, share its statistics (on
#    GPUs `torch.nn.SyncBatchNorm`), or accept the difference by choice.

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
# PyTorch's `DistributedDataParallel` (**DDP**) calls `all_reduce` for you, during `backward()`. A
# training loop needs five lines, and a batch size divided by the ranks: meet the others (1), take
# your part of the data (2), wrap the model (3), reshuffle in each epoch (4), call the wrapped model
# (5). (3) sends rank 0's weights to all, so they begin equal. `optimizer.step()` sends nothing: the
# gradients are averaged when `backward()` returns.


# %% slideshow={"slide_type": "slide"}
def train_with_ddp(images, labels, epochs=2, global_batch_size=64):
    import torch
    import torch.distributed as dist
    from parallel.gradients import new_model
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    # (1) A script calls dist.init_process_group("gloo") here. start_ranks has done that.
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    sampler = DistributedSampler(dataset, drop_last=True)  # (2) drop_last: equal parts
    loader = DataLoader(dataset, global_batch_size // dist.get_world_size(), sampler=sampler)
    model = DistributedDataParallel(new_model())  # (3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # (4)
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()  # (5)
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
# `scripts/train/train_torch_ddp.py` has the same five lines; the rest of its diff handles
# launchers, checkpoints and printing. `torchrun`, PyTorch's launcher (lesson 02), starts the ranks
# and tells each its number and how many there are. Type in a terminal, in the kit's folder; the
# last two lines that it prints are the ranks' equal hashes of their weights:
#
#     . .venv/bin/activate
#     python -m data_prep digits
#     torchrun --standalone --nproc-per-node 2 scripts/train/train_torch_ddp.py

# %%
essential = ["init_process_group(", "DistributedSampler(data", "DistributedDataParallel(model)"]
essential += ["set_epoch(", "parallel_model(images"]
workshop.show_diff("train/train_torch.py", "train/train_torch_ddp.py", essential)

# %% [markdown]
# <details><summary>Coming from another tutorial? Model parallel, FSDP, threads</summary>
#
# - **Model parallel** training divides the model: its layers, with **micro-batches** that keep all
#   stages busy (*pipeline parallel*), or the inside of each layer (*tensor parallel*). Activations
#   travel, so the traffic grows with the images; in data parallel training, with the weights.
# - For a model that is too large for one device: **FSDP** (or ZeRO) is data parallel training in
#   which each rank stores a shard of weights, gradients and optimizer state
#   ([PyTorch](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html); lesson 11).
# - oneDNN (formerly MKL-DNN), with which PyTorch computes, uses a thread per core in *every*
#   process. `torchrun` gives each of several processes one thread (unless `OMP_NUM_THREADS` is
#   set); our training scripts take `--threads-per-rank`, by default 1.
#
# </details>

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Faster, or noise?
#
# Four rules of a fair comparison:
#
# 1. **A/A first.** Measure the *same* configuration twice. What lies between the two, in either
#    direction, is the **noise floor**: we claim no smaller difference. (We take the median round's:
#    half of the rounds differ by more, and medians by less. The worst round's would grow with their
#    number.)
# 2. **All settings in each round, in random order**, so a disturbance may hit any of them.
# 3. **Ratios within a round.** What disturbs a whole round cancels. A shorter disturbance doesn't:
#    hence the median of several rounds.
# 4. **A two-sided sign test.** If nothing differed, a ratio would be above 1 in half of the rounds.
#    All of 5 or 6 rounds on one side, or 8 of 9, happen by chance in at most 7 of 100 cases. Only
#    with that, and a median outside the noise floor, do we say *faster* or *slower*. This is
#    cautious: all rounds may agree on a difference that is smaller than the floor.

# %% [markdown]
# The large workload: *alone* is one process, *step* two ranks, *again* the same once more. (So the
# floor is of *step*: *alone* isn't measured twice.)

# %%
by_round = large.rounds[["alone", "step", "again"]].mul(1000).round(1).add_suffix(", ms")
by_round["speed-up: alone / step"] = large.rounds["alone"] / large.rounds["step"]
by_round["A/A: step / again"] = large.rounds["step"] / large.rounds["again"]
by_round.rename_axis("round").round(2)

# %% slideshow={"slide_type": "fragment"}
verdicts = {}
for name, scaling in workloads.items():
    noise = scaling.rounds["step"] / scaling.rounds["again"]
    verdicts[name] = verdict(scaling.rounds["alone"] / scaling.rounds["step"], noise)
    print(f"{name}: two ranks against one process: {verdicts[name]}.", end=" ")
    below = (scaling.rounds["alone"] < scaling.rounds["step"]).sum()
    print(
        f"{below} of {len(noise)} rounds were slower, the median is {scaling.speed_up.text}.",
        end=" ",
    )
    inside = scaling.noise.low <= scaling.speed_up.median <= scaling.noise.high
    print(f"(The noise floor{', in which the median lies' if inside else ''}:", end=" ")
    print(f"{scaling.noise.low:.2f} to {scaling.noise.high:.2f}.)")
    to_curve = (scaling.rounds["compute"] + scaling.rounds["exchange"]) / scaling.rounds["step"]
    shown = {"faster": "above the curve", "slower": "below the curve"}.get(verdict(to_curve, noise))
    print("  Measured share divided by the curve's, median of the rounds:", end=" ")
    print(f"{to_curve.median():.2f}, {shown or 'no difference shown'}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert set(verdicts.values()) <= {"faster", "slower", "no difference shown"}, "See verdict()."
workshop.save_results(verdicts=list(verdicts.values()))
workshop.save_results(parts={name: scaling.parts.to_dict() for name, scaling in workloads.items()})

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What a step is made of
#
# **step = compute + wait + exposed communication.** Each rank *computes* its gradient, *waits* for
# the slowest, and stands still while gradients travel. (DDP sends gradients of more than 1 MiB in
# parts, the last layers' while `backward()` still computes the first layers'. Ours are smaller, and
# travel once all are there: nothing is hidden.) `scripts/demos/measure_scaling.py` measures the
# three, and the exchange:
#
# - *compute*: all ranks run a step at once, and exchange nothing; their mean. If one process takes
#   *alone*, the speed-up is alone / step and the ceiling alone / compute: the share is compute /
#   step.
# - *wait*: how much longer the slowest rank takes than that mean, step by step.
# - *exposed*: how much longer a step with DDP takes than that slowest rank. It is called
#   communication, but holds whatever else DDP costs, too. If it is smaller than the noise floor of
#   a step, this measurement can't resolve it.
# - *exchange alone*: an all-reduce of as many bytes, with nothing computed. r is this / compute.
#
# <details><summary>The small print of this measurement</summary>
#
# - The parts come from different moments of a round, so a round's share can exceed 100 %, and
#   *exposed* can be below 0. *Wait* can't: noise alone gives a little of it. So where *exposed* is
#   negative, the sum may exceed 100 %.
# - There is no sign test of *exposed*.
# - The exchange alone is timed at least 20 times in a row, nothing in between: so r is probably a
#   lower bound.
# - The ceiling is often below 2, above all for small batches: cores share memory, and starting an
#   operation takes as long for few images as for many. If it is above 2 *by more than noise*,
#   perhaps half a batch fits better into a cache (not tested). The noise is a step's; the ceiling's
#   own wasn't measured, and *alone*, which it rests on, isn't measured twice.
#
# </details>

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "fragment"}
of_step = {
    name: 100 * scaling.rounds[["compute", "wait", "exposed"]].div(scaling.rounds["step"], axis=0)
    for name, scaling in workloads.items()
}
bars = pd.DataFrame({name: by_round.median() for name, by_round in of_step.items()}).T
exposed = {name: run.medians["exposed communication"] for name, run in workloads.items()}
floor = {name: (w.noise.high - 1) * w.rounds["step"].median() for name, w in workloads.items()}
unclear = {name: f"{name}\n(exposed: not resolved)" for name in bars.index}
unclear = {name: text for name, text in unclear.items() if exposed[name] <= floor[name]}
reach = pd.DataFrame({name: by_round["compute"] for name, by_round in of_step.items()})
reach = summary(reach).rename_axis("range of compute", axis=1)
title = "Computing takes {:.0f} % of a large step, {:.0f} % of a small step"
plots.stacked_bars(
    bars.clip(lower=0).rename(index=unclear, columns={"exposed": "exposed: exchange, DDP's cost"}),
    title.format(*bars["compute"]),
    "% of a step; medians of rounds, which needn't add up to 100; below 0 drawn as 0",
    spread=reach,
)

# %%
table(workloads)

# %%
for name in workloads:
    alone = 1000 * workloads[name].rounds["exchange"].median()
    print(f"{name}: exposed {1000 * exposed[name]:.1f} ms, exchange alone {alone:.1f};", end=" ")
    print(f"the noise floor of a step: {1000 * floor[name]:.1f} ms", end="")
    print(": not resolved." if name in unclear else ".")
    lost = bars.loc[name, ["wait", "exposed"]].clip(lower=0)
    most = "to each other's delays" if lost["wait"] > lost["exposed"] else "in the exchange and DDP"
    most = "where most is, can't be told" if name in unclear else f"most {most}"
    print(f"  Lost: {lost['wait']:.0f} % of a step in waiting,", end=" ")
    print(f"{lost['exposed']:.0f} % exposed: {most}.")
    parts = 1000 * workloads[name].rounds[["compute", "wait", "exposed", "step"]].median()
    added, step = parts.iloc[:3].sum(), parts["step"]
    print(f"  The parts' medians add up to {added:.1f} ms; the median step takes {step:.1f}.")
    if abs(added / step - 1) > 0.2:
        print("  They differ too much: the run was too disturbed to divide a step. Run it again.")

# %% [markdown]
# What *exposed* has beyond *exchange alone* is a slower exchange than when it is called in a row,
# DDP's other work, or ranks that wake late (not separated here). That and the wait put a dot below
# the curve, which counts the exchange alone. (In the map, dashed: at best the exchange hides behind
# `backward()`, about two thirds of the computing, so up to r = 2/3 it costs nothing.)
#
# A larger batch makes computing longer, but not the exchange, so r should fall: a batch of 512
# small images, below, tests it. More weights make both longer.
#
# So far all ranks wait for each other in every step: **sync** training. Its enemy is the
# **straggler**, a slow rank. **Async** training applies each gradient when it arrives, to weights
# that have changed meanwhile: it is **stale**. Lesson 03 measures both.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How far? Strong and weak scaling
#
# In **strong scaling** the global batch stays the same when ranks are added: computing shrinks, the
# exchange doesn't, and r grows until more ranks no longer pay off. (By Amdahl's law any part that
# isn't divided limits the speed-up; an exchange that grows with the ranks makes it fall.) In **weak
# scaling** the batch of a *rank* stays the same, so r grows only by what more ranks add to the
# exchange. Speed-up then means **throughput**: images per second, against one process. Try it: 64
# small images for one process, 64 for each of two ranks.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(weak="Small workload, 64 images for each of two ranks: the speed-up:")

# %% slideshow={"slide_type": "subslide"}
weak = measure(8, 128, 15 * steps, "--scaling", "weak")
guess.compare(weak=float(f"{weak.speed_up.median:.2g}"))
bigger = measure(8, 512, 4 * steps)
by_images = {"strong, 32 images a rank": small, "weak, 64 images a rank": weak}
by_images["strong, 256 images a rank"] = bigger
exposed_ms = [1000 * run.medians["exposed communication"] for run in by_images.values()]
print(f"All rows exchange the same bytes; exposed lies between {min(exposed_ms):.1f} and", end=" ")
print(
    f"{max(exposed_ms):.1f} ms.\n(Whether the batch or the run makes it differ, isn't separated.)"
)
table(by_images)

# %% jupyter={"source_hidden": true}
throughput = weak.images * weak.rounds["alone"] / weak.rounds["step"]
shown = verdict(throughput, weak.rounds["step"] / weak.rounds["again"])
print(f"Weak scaling, two ranks against one process: {shown}.")
for run, images in ((weak, 64), (bigger, 256)):
    grew = run.medians["compute"] / small.medians["compute"]
    r_by_round, others = (of.rounds["exchange"] / of.rounds["compute"] for of in (run, small))
    lower = sum(a < b for a in r_by_round for b in others) / len(r_by_round) / len(others)
    print(f"{images} images a rank: computing takes {grew:.2g} times as long as with 32.", end=" ")
    print(
        f"By that alone r is {small.r.median / grew:.2g};\n  measured: {run.r.median:.2g}, not",
        end=" ",
    )
    print(f"{small.r.median:.2g} (lower in {lower:.0%} of the pairs of their rounds).")

# %% [markdown]
# A small step has fixed costs, so computing grows less than in proportion. Where r isn't what
# computing alone makes it, the exchange alone took another time, or the runs met different
# disturbances (they are not of the same rounds).
#
# How does r grow with more ranks? For more ranks than cores we must compute it. In a ring, a common
# all-reduce (lesson 02), each of N ranks sends 2 (N - 1) messages of one N-th of the gradient. How
# much longer that takes than with two ranks depends on what a message costs; lesson 02 measures it.
# But it lies between two limits:
#
# - only the *delay* of each message counts: N - 1 times as long (2 (N - 1) messages in place of 2);
# - only the *bytes* count: 2 (N - 1) / N times as long, which is never twice.
#
# In strong scaling each of N ranks computes 2 / N as long as each of two did, so r grows by a
# further factor of N / 2. What follows is for N ranks with a core and a link each, if their ceiling
# is N, nobody waits and averaging costs nothing else.


# %%
def computed(n, way, r):
    """The speed-up of n ranks, if two have this r: if delays alone count, and bytes alone."""
    grows = np.array([n - 1, 2 * (n - 1) / n]) * (n / 2 if way == "strong" else 1)
    return n * share_at(r * grows)


def span(low, high):
    """Two numbers as text, "2 to 2.8", or a single number where both read the same."""
    low, high = (f"{float(f'{number:.2g}'):g}" for number in sorted([low, high]))
    return high if low == high else f"{low} to {high}"


for name, run in measured.items():
    print(f"{name}, strong:")
    for which, r in {"lowest": run.r.low, "highest": run.r.high}.items():
        times = {n: computed(n, "strong", r)[0] for n in range(1, 1000)}  # delays alone
        best = max(times, key=times.get)
        text = f"delays alone: at most {times[best]:.2g} times one process, with {best} ranks; "
        text += f"bytes alone: always below 1 / r, {span(1 / r, 1 / r)} times"
        print(f"  {which} r, {r:.2g}: {text if best > 1 else 'never a gain'}.")
    shares = f"{share_at(run.r.median):.2f} computed, {run.share.median:.2f} measured"
    print(f"  2 ranks: the ceiling 2 assumed, {run.ceiling.median:.2g} measured;", end=" ")
    print(f"the share {shares}.")

# %% [markdown]
# The upper table takes r from the exchange alone: a bound, if the ceiling is N. The lower one takes
# all that two ranks lose, (step - compute) / compute, as if waiting and DDP's own work grew like an
# exchange, which they needn't.


# %% jupyter={"source_hidden": true}
columns = {
    f"large, strong ({large_batch} images)": (large, "strong"),
    f"large, weak ({large_batch // 2} a rank)": (large, "weak"),
    "small, strong (64 images)": (small, "strong"),
    "small, weak (64 a rank)": (weak, "weak"),
}


def for_ranks(r_of, label):
    """The speed-up of 2 to 64 ranks, in words. r_of: the r of a measurement of two."""
    rows = {}
    for name, (run, way) in columns.items():
        rows[name] = {"2, measured": run.speed_up.text if way == run.scaling else "not measured"}
        for n in (2, 4, 8, 16, 64):
            rows[name][f"{n}, computed"] = span(*computed(n, way, r_of(run)))
    return pd.DataFrame(rows).rename_axis("ranks").rename_axis(label, axis=1)


more_ranks = for_ranks(lambda run: run.r.median, "r: the exchange alone")
all_lost = for_ranks(lambda run: 1 / run.share.median - 1, "r: all that is lost")
display(more_ranks, all_lost)
for name, (run, way) in columns.items():
    if way == run.scaling:
        over = computed(2, way, run.r.median)[0] / run.speed_up.median
        print(f"Two ranks, {name}: computed over measured is {over:.2g}.")

# %% [markdown]
# Nothing here is measured beyond two ranks. Where the tables differ much, or the ceiling of two
# ranks isn't 2, r alone doesn't tell how far you get: measure three ranks. A computed speed-up may
# agree with the measured one by chance, since a wrong ceiling and a wrong share may cancel. (Both
# large columns have the r of one measurement, of strong scaling.)
#
# Published speeds, on links that we assume, can be placed on the map too: each of n links carries
# 2 (n - 1) / n times the gradients' bytes.
#
# - **ResNet-50** on 16 V100s (GPUs of 2017), each with a link of 10 Gbit/s: 25.6 million weights in
#   float32, 64 images on each GPU, which computes 380 images per second
#   ([NVIDIA](https://github.com/NVIDIA/DeepLearningExamples/tree/master/PyTorch/Classification/ConvNets/resnet50v1.5),
#   read on 2026-11-25).
# - **6.7 billion weights**, a language model, as if it ran on AWS's p4de instances: eight A100s
#   (GPUs of 2020, 80 GB each) share 400 Gbit/s of EFA, AWS's fast network. Gradients of 2 bytes,
#   steps of 4 million tokens, 82,432 GPU hours for 10¹² tokens (LLaMA,
#   [arXiv:2302.13971](https://arxiv.org/abs/2302.13971)). These hours include its own exchange, so
#   r is, if anything, too low. To fit, its optimizer state must be sharded: ZeRO-1 sends as much,
#   FSDP 1.5 times (lesson 11).


# %% jupyter={"source_hidden": true}
def percent(share):
    """A share as text."""
    return "below 1 %" if share < 0.01 else f"{100 * share:.0f} %"


tokens_per_second = 1e12 / (82_432 * 3600)  # of a GPU
cases = {  # gradient bytes, links, bytes/s of a link, seconds of computing
    "ResNet-50, 16 V100, 10 Gbit/s": (4 * 25.6e6, 16, 10e9 / 8, 64 / 380),
    "6.7 billion, 128 A100, EFA": (2 * 6.7e9, 16, 400e9 / 8, 4e6 / 128 / tokens_per_second),
    "6.7 billion, 1,024 A100, EFA": (2 * 6.7e9, 128, 400e9 / 8, 4e6 / 1024 / tokens_per_second),
}
practice = pd.DataFrame(cases, ["bytes", "links", "bytes/s", "compute, s"]).T
n = practice["links"]
practice["exchange, s"] = 2 * (n - 1) / n * practice["bytes"] / practice["bytes/s"]
practice["r"] = practice["exchange, s"] / practice["compute, s"]
practice["share, nothing hidden"] = [percent(share_at(r)) for r in practice["r"]]
practice["share, hidden at best"] = [percent(share_at(r, hidden=2 / 3)) for r in practice["r"]]
practice.drop(columns=["bytes", "links", "bytes/s"]).round(3)

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
dots = [*first_dots, dot("2 ranks, small, weak scaling", weak)]
for name, case in practice.iterrows():
    dots.append([case["r"], share_at(case["r"]), *[np.nan] * 4, name, "computed"])
resnet, few, many = (f"{100 * share_at(r):.0f} %" for r in practice["r"])
title = f"Computed, nothing hidden: ResNet-50 keeps {resnet} on 16 GPUs,\n"
title += f"6.7 billion weights {few} on 128, {many} on 1,024"
draw_map(dots, title)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(scaling=records | {"small, weak": weak.record()})
workshop.save_results(more_ranks=more_ranks.to_dict(), practice=practice["r"].to_dict())

# %% [markdown]
# Strong scaling, with 1,024 GPUs in place of 128, moves the language model to the right.
#
# ## A larger batch, a larger learning rate
#
# Weak scaling changes the training. If each of 8 ranks keeps 32 images, the `global_batch_size` is
# 256, and an epoch has fewer **updates**: 1,437 images make 44 updates of 32 images, 5 of 256, or 1
# of 1,024. (What fills no batch is left out: 256 sees 9 %, 1,024 sees 27 % fewer images than 32.)
# One rank can train with such a batch, too: **gradient accumulation** adds the gradients of several
# small batches before each update. Does it still learn as much?
#
# For SGD the usual answer is the **linear scaling rule**: with `k` times the batch take `k` times
# the learning rate, since one update must do the work of `k`. (For Adam the square root of `k` fits
# better: [arXiv:2205.10287](https://arxiv.org/abs/2205.10287).) At first the large rate can be too
# much, so it is raised slowly: a **warm-up**. Goyal et al. trained ResNet-50 that way on 256 GPUs
# with no loss of accuracy, up to a batch of 8,192
# ([arXiv:1706.02677](https://arxiv.org/abs/1706.02677), 2017). With the **momentum** of 0.9 used
# here each gradient moves the weights ten times as far in all, so a rate of 0.64 moves the weights
# like 6.4 without.
#
# N ranks compute what one process computes with the whole batch, so one process stands for them:
# batch 256 for 8 ranks, 1,024 for 32. All settings use the same **seeds** (of the first weights and
# the images' order). A difference counts if all six have the same sign: by chance, 3 of 100 cases.

# %%
settings = {  # images per update, learning rate, first rate, epochs until the full rate
    "batch 32": (32, 0.02, 0.02, 0),
    "batch 256, same rate": (256, 0.02, 0.02, 0),
    "batch 256, rate x 8": (256, 0.16, 0.16, 0),
    "batch 256, rate x 8, warm-up": (256, 0.16, 0.02, 3),
    "batch 1,024, rate x 32, warm-up": (1024, 0.64, 0.02, 3),
    "batch 1,024, rate x 8, warm-up": (1024, 0.16, 0.02, 3),
}
guess = workshop.guess(
    same="Accuracy in % after equal epochs: batch 256, same rate:",
    scaled="Accuracy in % after equal epochs: batch 256, rate x 8:",
    far="Accuracy in % after equal epochs: batch 1,024, rate x 32, warm-up:",
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
losses = by_setting[["updates", "first loss", "last loss"]].median()
right = by_setting["accuracy"].agg(["min", "median", "max"]).add_prefix("accuracy, ")
losses.join(right).round(3).rename_axis("loss: an epoch's mean, median of seeds", axis=1)

# %% jupyter={"source_hidden": true} tags=["figure"]
label = "test images right, %; a point for each seed, a line at the median; grey: guessing"
medians = 100 * by_setting["accuracy"].median()
_, same, scaled, _, far, _ = medians
title = f"Rate x 8 lifts batch 256 from {same:.0f} to {scaled:.0f} %; "
title += f"at x 32 batch 1,024 gets {far:.0f} %"
description = ", ".join(f"{name}: {median:.0f} %" for name, median in medians.items())
colours = {batch: plots.COLOURS[n] for n, batch in enumerate((32, 256, 1024))}
with plots.canvas(title, label, size=(7, 4), alt=f"{title}, medians: {description}") as axes:
    for row, (name, runs) in enumerate(by_setting["accuracy"]):
        percent, colour = 100 * runs, colours[settings[name][0]]
        axes.plot(percent, [name] * len(percent), "o", color=colour, alpha=0.6)
        axes.plot([percent.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=3)
    axes.axvline(10, color="grey", linewidth=1, zorder=0)
    axes.set(xlim=(0, 103), ylim=(len(by_setting) - 0.5, -0.5))
    axes.grid(axis="y", visible=False)

# %% jupyter={"source_hidden": true}
middle = by_setting["accuracy"].median()
base, same, scaled, _, far, calm = middle
guess.compare(same=100 * same, scaled=100 * scaled, far=100 * far)
by_seed = results.pivot(index="seed", columns="setting", values="accuracy")


def compare_seeds(before, after):
    """Print with how many seeds the second of two settings was the better."""
    gains = by_seed[after] - by_seed[before]
    enough = len(gains) >= must_agree(len(gains))  # hardly chance
    shown = "better" if (gains > 0).all() else "worse" if (gains < 0).all() else ""
    shown = shown if enough and shown else "no clear gain or loss"
    print(f"{after}, against {before}: {shown}", end=" ")
    print(f"({(gains > 0).sum()} of {len(gains)} seeds better;", end=" ")
    worst, other = 100 * by_seed[after].min(), 100 * by_seed[before].min()
    print(f"the worst has {worst:.0f} %, against {other:.0f} %).")


compare_seeds("batch 256, same rate", "batch 256, rate x 8")
compare_seeds("batch 32", "batch 256, rate x 8")
compare_seeds("batch 256, rate x 8", "batch 256, rate x 8, warm-up")
compare_seeds("batch 1,024, rate x 32, warm-up", "batch 1,024, rate x 8, warm-up")
loss_far = losses.loc["batch 1,024, rate x 32, warm-up"]
print(
    f"At 32 times the rate an epoch's mean loss is {loss_far['first loss']:.2f} at first", end=" "
)
print(f"and {loss_far['last loss']:.2f} in the end; guessing gives ln 10 = {np.log(10):.2f}.")

# %% [markdown]
# With the same rate it learns less: it has 5 updates an epoch to move the weights, not 44. The
# scaled rate makes up for much of that.
#
# Here the rule fails at 32 times. (An epoch of batch 1,024 is one update, so its warm-up is only
# three. A longer one might help; not tested.) The last two rows make the same 20 updates, so only
# the rate differs. From batch 256 with a warm-up to the last row the rate stays, but the updates
# fall from 100 to 20, and those of the warm-up from 15 to 3. (A rate between the two isn't tested.)
#
# So, by the computations above, strong scaling gains less *speed* from more ranks than weak
# scaling: by bytes alone it flattens, by delays alone it even falls. And weak scaling, beyond some
# batch, costs *learning*. For a training of your own:
#
# 1. Measure the ceiling, the share, r and the noise with two ranks. r alone gives a bound.
# 2. Add ranks, keep the batch of a rank (by what was computed here), and scale the rate. Test a
#    warm-up where the start is unstable; whether it helped here, and its worst seed, is printed
#    above.
# 3. After equal epochs compare the accuracy with the small batch's, over several seeds. Stop where
#    you lose more than you accept, or where the share no longer pays for a rank.

# %% jupyter={"source_hidden": true} tags=["results"]
assert base > scaled > same, f"Expected base > scaled > same rate: {middle.round(3).to_dict()}"
assert calm > far, (
    f"The smaller rate must learn more from 1,024 images: {middle.round(3).to_dict()}"
)
workshop.save_results(accuracies=middle.to_dict(), updates=by_setting["updates"].first().to_dict())
workshop.save_results(last_losses=losses["last loss"].to_dict())

# %% [markdown]
# ## DDP as a job
#
# The script from above, on two instances. `torch_distributed` starts `torchrun` on each.
# Without `distribution` both instances would run the script, and it would fail: nobody sets
# `LOCAL_WORLD_SIZE`. `train_torch.py` would not fail: it would train two separate models, and you
# would pay for both. **Instances don't make training distributed. The launcher and the script do.**

# %%
session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
workshop.cost("ml.c5.xlarge", instance_count=2, seconds=300, max_run=max_run)

# %% [markdown]
# > For CPU instances the SDK says: *Currently torch_distributed is supported only for GPU and
# > Trainium instances*. It skips this check if you name the image: hence `image_uri`. Without a GPU
# > one rank starts on each instance.

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
# <!-- SDK v3: ddp -->

# %% [markdown]
# Do both ranks hold the same model? Each prints a SHA-256 hash of its weights. (After three epochs
# the accuracy is low.)

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
# 4. Name the mistake in six trainings, from their hashes and counts (12 minutes, hard).
# 5. Make a DDP script of `train_torch.py` (15 minutes, hard).
#
# ## Check yourself

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("01")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - Model replicated, batch split, gradients averaged: the gradient of the whole batch, up to
#   rounding. A sum, unequal shards or batch normalisation give a wrong one, and no error.
# - step = compute + wait + exposed communication; share of the ceiling = 1 / (1 + r), if nothing is
#   hidden and nothing else lost.
# - A/A first, rounds in random order, ratios within a round.
# - Strong scaling raises r. Weak scaling slows that, and leaves fewer updates.

# %%
ranks.stop()
pair.stop()
print(
    f"Gradient off by {difference:.1e}; large: two ranks are {large.speed_up.text} times as fast."
)

# %% [markdown]
# ## Clean up
#
# The ranks are stopped, and the job has ended. `local-sagemaker stop` ends the emulator.
#
# ## Next
#
# [02 · Collectives](02_collectives.ipynb): what happens inside `all_reduce`, what it costs, and
# how to build one.

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
# # 11 · What each rank must hold
#
# **After this lesson you can**
#
# - say what a rank holds, byte by byte, and compute it for a model of your own;
# - divide optimizer state, gradients and weights among ranks: ZeRO-1, ZeRO-2, ZeRO-3, HSDP;
# - say what each of them sends, and which one fits your model and your links;
# - save a divided model from four ranks and load it on two.
#
# **Before:** [lesson 02](02_collectives.ipynb): reduce-scatter and all-gather.
#
# **Time:** 45 minutes, and 33 for the exercises.
#
# **Where it runs:** one job of two instances, here or on AWS, measures. All else runs in processes
# of the machine that this notebook runs on.
#
# **Cost on AWS:** about 0.03 USD, at most 0.08 USD: one job on two `ml.c5.xlarge`, 5 minutes
# planned (us-east-1, price list of 2026-09-27). Nobody has run it there yet.

# %% [markdown]
# ## Set up
#
# - `processes_per_host`: ranks on each of the two instances.
# - `link`: the bandwidth of each instance; only the emulator can limit it.
# - `width`: of the model. `rounds`: how often each way is timed.
# - `max_run`: seconds after which SageMaker stops the job.

# %% tags=["parameters"]
target = "local"
seat = "me"
processes_per_host = 2
instance_type = "ml.c5.xlarge"
link = "100mbit"
width = 192
rounds = 5
max_run = 600

# %%
import pandas as pd

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.measure import interleaved

session = workshop.session(target=target, seat=seat)
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("11") if unlimited and target == "local" else None
source = "recorded" if recorded else "measured"
print(unlimited or f"Each instance gets a link of {link}.")
if recorded:
    print(recorded.caption)

# %% [markdown]
# ## The result, first
#
# With DDP every rank holds the whole model, and more: its gradients, and what the optimizer
# remembers. All ranks hold *the same*. Since 2019 that is no longer necessary: **ZeRO** divides
# among the ranks what they would hold in common ([Rajbhandari et al.](
# https://arxiv.org/abs/1910.02054)). Two instances with two ranks each train a small GPT with AdamW
# in five ways, from the same weights and on the same text:
#
# | way | optimizer state | gradients | weights |
# |---|---|---|---|
# | DDP | whole | whole | whole |
# | ZeRO-1 | **divided** | whole | whole |
# | ZeRO-2 | **divided** | **divided** | whole while they are needed |
# | ZeRO-3, also called FSDP | **divided** | **divided** | **divided** |
# | HSDP | divided within an instance | divided within an instance | divided within an instance |
#
# The unit for what a rank holds is one **model**: the bytes of all weights. AdamW remembers two
# numbers for each weight.

# %%
ways = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "hsdp": "HSDP"}
guess = workshop.guess(
    ddp="Weights, gradients, optimizer state: how many models does a rank hold with DDP?",
    zero3="And with ZeRO-3 on four ranks?",
    fastest=("Which way has the shortest step over slow links?", list(ways.values())),
)

# %%
from sagemaker.pytorch import PyTorch

estimator = PyTorch(
    entry_point="measure_sharding.py",
    instance_count=2,
    instance_type=instance_type,
    distribution={"mpi": {"enabled": True, "processes_per_host": processes_per_host}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},  # AWS ignores it
    hyperparameters={"ways": ",".join(ways), "width": width, "rounds": rounds},
    framework_version="2.6.0",  # the first with fully_shard
    py_version="py312",
    **session.job_settings("sharding", source_dir=workshop.DEMOS) | {"max_run": max_run},
)

# %% [markdown]
# The job takes about a minute: read on while it runs.

# %%
events = recorded.results["events"] if recorded else None
if not recorded:
    print(workshop.cost(instance_type, instance_count=2, seconds=300, max_run=max_run))
    estimator.fit(wait=False)
    events = workshop.follow(estimator).events

# %% [markdown]
# <!-- SDK v3: sharding -->

# %% jupyter={"source_hidden": true} tags=["results"]
measured_events = [event for event in events if event["event"] in ("sharding", "step_seconds")]
workshop.save_results(events=measured_events, recorded=bool(recorded))

# %%
records = pd.DataFrame([e for e in events if e["event"] == "sharding"]).set_index("way")
seconds = pd.DataFrame(next(e for e in events if e["event"] == "step_seconds"))  # by round
seconds = seconds.drop(columns="event")
models = records.rename(ways)[["weights", "gradients", "optimizer", "held", "peak"]]
models = models.div(records.rename(ways)["model_bytes"], axis=0)
fastest = seconds[list(ways)].median().idxmin()
guess.compare(
    source, ddp=models["held"]["DDP"], zero3=models["held"]["ZeRO-3"], fastest=ways[fastest]
)

# %% jupyter={"source_hidden": true} tags=["figure"]
world_size = int(records["world_size"].iloc[0])
parts = models[["weights", "gradients", "optimizer"]]
parts = parts.rename(columns={"optimizer": "optimizer state"})
size = records["model_bytes"].iloc[0] / 1e6
between, peak = models["held"], models["peak"]
stays = f"{between['DDP']:.2g} models with DDP, {between['ZeRO-3']:.2g} with ZeRO-3"
title = f"Between steps {stays}; at the peak {peak['DDP']:.2g} and {peak['ZeRO-3']:.2g}"
x = f"models ({size:.1f} MB) on each of {world_size} ranks"
reach = pd.DataFrame({"lowest": between, "highest": peak}).rename_axis(
    columns="up to the peak of a step"
)
plots.stacked_bars(parts, title, x, spread=reach, source=source)

# %%
ddp = seconds["ddp"]
again = seconds["ddp again"] / ddp
gains = {"DDP": ddp / seconds["hsdp"], "ZeRO-3": seconds["zero3"] / seconds["hsdp"]}
costs = seconds["zero3"] / ddp
print("1. Held between two steps, in models: ", end="")
print(", ".join(f"{way} {number:.2f}" for way, number in models["held"].items()) + ".")
print(f"2. Largest difference between any weight and DDP's: {records['apart'].max():.0e}.")
print(f"3. ZeRO-3's step takes {costs.median():.1f} times as long as DDP's.")
for way, gain in gains.items():
    print(f"   HSDP against {way}: {gain.median():.2f} times as fast ({gain.min():.2f} to ", end="")
    print(f"{gain.max():.2f}): {interleaved.verdict(gain, again)}.")
low, high = interleaved.band(again)
print(f"   DDP against itself, the noise: {low:.2f} to {high:.2f}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert records["apart"].max() < 1e-5, f"The ways train different models: {dict(records['apart'])}"
workshop.save_results(
    held=models["held"].to_dict(), gain=gains["ZeRO-3"].median(), cost=costs.median()
)

# %% [markdown]
# The line behind each bar: within a step a rank also holds activations and gathered weights, which
# nothing divides but a smaller batch. ZeRO-2 gathers all weights, so its line is longer than
# ZeRO-3's. (ZeRO-1's 1.25 of gradients: ours keeps them whole and, besides, the averaged part that
# its optimizer reads.) How to get there: count what a rank holds, divide one thing after the other,
# count what it sends.
#
# ## What a rank holds
#
# Three things stay from step to step: **weights**, **gradients**, **optimizer state**. For float32
# and AdamW they are 4 + 4 + 8 = 16 bytes for each parameter. (Mixed precision has 16, too: weights
# and gradients of 2 bytes each, and float32 weights of 4 for the optimizer beside its 8.) The
# fourth comes and goes: **activations**, which forward leaves behind for backward. They depend on
# the batch, not only on the model.
#
# We count by hand: after each operation of torch, look which tensors are alive. On a GPU
# `torch.cuda.memory_allocated()` and `max_memory_allocated()` count for you.

# %%
guess = workshop.guess(
    more="Four times as many sequences in a batch: how many times as many bytes of activations?"
)


# %%
def memory(sequences, checkpointing=False, width=192):
    """Bytes of one process: weights and optimizer state; the peak of a step. And its seconds."""
    import time

    import torch
    from sharding import gpt
    from sharding.memory import TensorWatch

    text, characters = gpt.load_text()
    with TensorWatch() as watch:
        model = gpt.GPT(characters, width)
        model.checkpointing = checkpointing
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step(seed):
        optimizer.zero_grad()
        gpt.mean_loss(model, *gpt.batch(text, sequences, seed)).backward()
        optimizer.step()

    with watch:
        step(0)
        watch.peak = 0
        step(1)
        optimizer.zero_grad()
        stays = watch.held_bytes()
    began = time.perf_counter()
    for seed in (2, 3, 4):
        step(seed)
    return stays, watch.peak, (time.perf_counter() - began) / 3


# %%
alone = workshop.start_ranks(1)
cases = {"4 sequences": (4,), "16 sequences": (16,), "16, checkpointing": (16, True)}
used = {name: alone.run(memory, *case)[0] for name, case in cases.items()}
alone.stop()
table = pd.DataFrame(used, index=["stays", "at the peak", "seconds of a step"]).T
activations = table["at the peak"] - table["stays"]
guess.compare(more=activations["16 sequences"] / activations["4 sequences"])
shown = {
    "weights and optimizer state, MB": table["stays"] / 1e6,
    "activations and gradients at the peak, MB": activations / 1e6,
    "step, ms": 1000 * table["seconds of a step"],
}
pd.DataFrame(shown).round(0)

# %% jupyter={"source_hidden": true} tags=["results"]
saved = activations["16 sequences"] / activations["16, checkpointing"]
assert saved > 1.3, f"Checkpointing should hold less at the peak: {activations.to_dict()}"
workshop.save_results(activations=activations.to_dict(), saved_by_checkpointing=saved)

# %% [markdown]
# Activations grow with the batch, nearly in proportion; what stays doesn't. If activations are what
# does not fit, none of the five ways helps much: take a smaller batch for each rank (and accumulate
# gradients over several), or **activation checkpointing**: keep only what enters each block, and
# compute the rest a second time during backward, as in the third row. By count that is a third more
# computing, since forward is about a third of a step. (The times above are of three steps, once.)
#
# ## ZeRO-1: divide the optimizer state
#
# After a DDP step all ranks have made the same update with the same optimizer state. So let each
# rank update only its part, one N-th, and pass the result on. Remember lesson 02: an all-reduce is
# a reduce-scatter and an all-gather. ZeRO-1 updates *between* the two.

# %%
workshop.show_function("demos/sharding/zero1.py", "step")

# %% [markdown]
# `self.gradients` and `self.weights` are flat vectors, of which the model's tensors are views.
# After `reduce_scatter_tensor` a rank has the sum of its own part of the gradients, which is all
# that its part of the optimizer needs. The all-gather sends weights where DDP sends gradients: as
# many bytes.
#
# **Is it right?** Two ranks of this machine train for four steps in each way (HSDP needs a second
# instance). A hash of the weights changes if a single bit of them differs.

# %%
from workshop.launch.processes import TORCHRUN, run_together

ways_here = {name: label for name, label in ways.items() if name != "hsdp"}
started = [*TORCHRUN, "--standalone", "--nproc-per-node", 2]
flags = ["--ways", ",".join(ways_here), "--width", 64, "--rounds", 0]
trained = run_together([*started, workshop.DEMOS / "measure_sharding.py", *flags])
two = pd.DataFrame([e for e in trained if e["event"] == "sharding"]).set_index("way")
pd.DataFrame(
    {
        "loss": two["loss"],
        "SHA-256 of the weights": two["weights_sha256"].str[:16],
        "models held": (two["held"] / two["model_bytes"]).round(2),
    }
).rename(ways)

# %% jupyter={"source_hidden": true} tags=["results"]
assert two["weights_sha256"].nunique() == 1, "On two ranks all ways must train one model."
workshop.save_results(hashes=two["weights_sha256"].to_dict())

# %% [markdown]
# One hash. On *two* ranks a sum has one order only, a + b. On four it has several, each algorithm
# takes another, and float32 rounds differently. AdamW then divides each gradient by its own size,
# so that even a tiny gradient's rounding becomes a step of visible size: hence the difference in
# the first result.
#
# Where AdamW's 8 bytes for each parameter (12 in mixed precision) are what is too much, take
# ZeRO-1: PyTorch has it as `ZeroRedundancyOptimizer`, DeepSpeed as `stage: 1`.
#
# ## ZeRO-2 and ZeRO-3: gradients and weights
#
# A rank whose optimizer updates one N-th needs only that N-th of the gradients, too: **ZeRO-2**
# gives a block's gradients away as soon as backward has computed them. And a block's weights are
# needed only while that block computes: **ZeRO-3** gathers them, computes, and frees them, once in
# forward and once in backward. In PyTorch both are `fully_shard` (**FSDP2**), called on each block,
# then on the whole model:

# %%
workshop.show_function("demos/measure_sharding.py", "build")

# %% [markdown]
# `reshard_after_forward=False` keeps the gathered weights until backward has used them: ZeRO-2.
# (Between steps `fully_shard` divides the weights in either case; the paper's ZeRO-2, DeepSpeed's
# `stage: 2`, keeps them whole all the time.) The optimizer is an ordinary AdamW, made *after*
# `fully_shard`: it sees only the shards.
#
# ## What it costs: bytes
#
# Count the collectives in *models*. With DDP all gradients pass an all-reduce, which is a
# reduce-scatter and an all-gather: 2. ZeRO-3 gathers the weights twice and scatters the gradients
# once: 3. Over the **link** of each instance go (N - 1) / N of a model for each reduce-scatter or
# all-gather, if the ring follows the ranks' numbers, so that one hop leaves each instance: 2 · 3/4
# for DDP on four ranks. HSDP gathers and scatters within an instance, and all-reduces its shards
# between the two. **Predict.**

# %%
guess = workshop.guess(
    hsdp_sends="DDP's ring sends 1.5 models over each link. How many does HSDP send?"
)

# %%
passes = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
sent = pd.DataFrame(records["sent"].to_dict()).T.reindex(columns=list(passes))
sent = sent.div(records["model_bytes"], axis=0).fillna(0)
sent["in all"] = sent[list(passes)].mul(pd.Series(passes)).sum(axis=1)
sent.rename(ways).round(2).rename_axis("models passed by")

# %% [markdown]
# HSDP's `all_reduce` passes 0.5 of a model: each rank's shard, since the instance's two ranks have
# divided the model. In all it passes the most, 4 models; but 3 of them stay inside the instance.
# Now the links. The network cards count:

# %%
instances = int(records["instances"].iloc[0])
around = (world_size - 1) / world_size
between = 2 * (instances - 1) / instances
ideal = pd.Series({"ddp": 2, "zero1": 2, "zero2": 2, "zero3": 3}) * around
ideal["hsdp"] = between
gloo = ideal + pd.Series({"ddp": 0, "zero1": 1, "zero2": 1, "zero3": 1, "hsdp": 0}) * around
cards = records["card_bytes"] / records["model_bytes"]
if cards.notna().all():
    guess.compare(source, hsdp_sends=cards["hsdp"])
pd.DataFrame({"by formula": ideal, "with gloo": gloo, "on the card": cards}).loc[list(ways)].rename(
    ways
).round(2).rename_axis("models over the link")

# %% jupyter={"source_hidden": true} tags=["results"]
assert abs(sent["in all"]["zero3"] - 3) < 0.05, f"ZeRO-3 should pass 3 models: {sent}"
workshop.save_results(sent=sent["in all"].to_dict(), cards=cards.to_dict(), gloo=gloo.to_dict())

# %% [markdown]
# The middle column: gloo, which stands in for NCCL on CPUs, makes a reduce-scatter out of an
# all-reduce and throws the rest away. So whatever contains one sends (N - 1) / N of a model more
# than over NCCL. Headers of packets are the rest.
#
# ## What it costs: time
#
# A step computes, and it sends. If sending hides behind computing, the longer of the two counts
# (**all hidden**); if nothing hides, their sum (**nothing hidden**). Both follow from the step
# without any exchange and from the bytes above.

# %% jupyter={"source_hidden": true} tags=["figure"]
alone_seconds = seconds["nothing exchanged"].median()
rate = None if target == "aws" else 1e6 * bandwidth.mbit(link) / 8  # bytes per second
ms = 1000 * seconds[list(ways)].rename(columns=ways)
bounds = None
if rate:
    on_link = records["card_bytes"][list(ways)].rename(ways) / rate
    bounds = 1000 * (alone_seconds + on_link)
    bounds.name = "computing + bytes / bandwidth"
over = f"links of {bandwidth.mbit(link):g} Mbit/s" if rate else f"the links of {instance_type}"
title = f"Over {over} {ways[fastest]}'s step is the shortest; "
title += f"ZeRO-3's takes {costs.median():.1f} times as long as DDP's"
spread = pd.DataFrame({"lowest": ms.min(), "highest": ms.max()})
plots.bar_chart(
    ms.median(), title, "ms per step, median", spread=spread, bounds=bounds, source=source
)

# %% jupyter={"source_hidden": true} tags=["results"]
if rate:
    least = 1000 * on_link.clip(lower=alone_seconds)
    off = ms.median() / bounds - 1
    marks = {"all hidden, ms": least, "nothing hidden, ms": bounds}
    marks |= {"measured, ms": ms.median(), "above nothing hidden": off}
    workshop.save_results(step_ms=ms.median().to_dict(), off=off.to_dict())

# %%
if rate:
    print(pd.DataFrame(marks).round(2))

# %% [markdown]
# What lies above "nothing hidden" is what bytes over the link don't count: latency, adding what
# arrives, gloo's copies, and, for HSDP, all that is sent inside the instance.
#
# ZeRO-3 pays for its memory with bytes, and the slower the link, the more that hurts. **HSDP**
# (hybrid sharding) is an answer where links between instances are slower than inside: divide
# within the instance, where the links are fast, and all-reduce between. It is the hierarchical
# all-reduce of [lesson 07](07_smddp.ipynb), cut in half and put around the step. It divides by the
# ranks of *one* instance only, so a rank holds more than with ZeRO-3.
#
# ## Save on four ranks, load on two
#
# If no rank has the whole model, who saves it? Every rank its shard, in a form that says which part
# of what it is: **DCP**, `torch.distributed.checkpoint`. Whoever loads says how *its* ranks have
# divided the model, and DCP reads the parts that each one needs.


# %%
def divided_model(seed):
    import torch
    from sharding import gpt
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(seed)
    model = gpt.GPT(characters=100, width=64, blocks=2)
    for module in (*model.blocks, model):
        fully_shard(module)
    return model, torch.optim.AdamW(model.parameters())


def save(folder):
    import torch
    import torch.distributed.checkpoint as dcp
    from common.report import weights_hash
    from measure_sharding import whole_weights
    from torch.distributed.checkpoint.state_dict import get_state_dict

    model, optimizer = divided_model(seed=0)
    model(torch.arange(64)[None]).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder)
    return weights_hash(whole_weights(model))


# %%
def load(folder):
    import torch.distributed.checkpoint as dcp
    from common.report import weights_hash
    from measure_sharding import whole_weights
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model, optimizer = divided_model(seed=1)  # other weights
    before = weights_hash(whole_weights(model))
    weights, state = get_state_dict(model, optimizer)
    checkpoint = {"model": weights, "optimizer": state}
    dcp.load(checkpoint, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=checkpoint["model"],
        optim_state_dict=checkpoint["optimizer"],
    )
    return before, weights_hash(whole_weights(model))


# %%
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    with workshop.start_ranks(4) as four:
        (saved_hash, *_) = four.run(save, folder)
    files = sorted(path.name for path in Path(folder).iterdir())
    with workshop.start_ranks(2) as two_ranks:
        ((before, loaded_hash), *_) = two_ranks.run(load, folder)
print("Files:", ", ".join(files))
print(f"Saved by 4 ranks:           {saved_hash[:16]}")
print(f"2 ranks, before they load:  {before[:16]}")
print(f"2 ranks, afterwards:        {loaded_hash[:16]}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert saved_hash == loaded_hash != before, "What 2 ranks loaded is not what 4 ranks saved."
workshop.save_results(saved=saved_hash, loaded=loaded_hash, files=files)

# %% [markdown]
# So a job may go on with another number of ranks than it began with. (The optimizer's state is
# saved and loaded in the same way; the hashes are of the weights.) For inference gather once, with
# `StateDictOptions(full_state_dict=True)`, as `scripts/train/train_torch_fsdp.py` does.
#
# ## Which one when
#
# A dozen lines compute what a rank holds between two steps. Do they agree with what was measured?


# %%
def held_bytes(parameters, way, ranks, ranks_per_instance, within_step=False):
    """Bytes of weights, gradients and optimizer state on a rank; float32, AdamW."""
    n = ranks_per_instance if way == "hsdp" else ranks
    weights = gradients = 4 * parameters
    optimizer_state = 8 * parameters
    if way == "ddp":
        return weights + gradients + optimizer_state
    if way == "zero1":  # ours holds its part of the gradients besides
        return weights + gradients + (gradients + optimizer_state) / n
    if way == "zero2" and within_step:
        return weights + (gradients + optimizer_state) / n
    return (weights + gradients + optimizer_state) / n


parameters = records["model_bytes"].iloc[0] / 4
computed = {way: held_bytes(parameters, way, world_size, processes_per_host) for way in ways}
compared = pd.DataFrame({"computed, MB": computed, "measured, MB": records["held"]})
compared = compared.assign(**{"measured, MB": compared["measured, MB"] / 1e6})
compared["computed, MB"] /= 1e6
off_by = (compared["measured, MB"] / compared["computed, MB"] - 1).abs()
print(f"Largest difference: {off_by.max():.1%}.")
compared.rename(ways).round(2)

# %% jupyter={"source_hidden": true} tags=["results"]
assert off_by.max() < 0.05, f"Held and computed bytes differ: {compared}"
workshop.save_results(held_off=off_by.max())

# %% [markdown]
# Now for a model of 7 billion parameters on two instances with eight GPUs of 80 GB each.
# Activations come on top, and with ZeRO-3 and HSDP the gathered weights of one block.

# %%
columns = {"GB between steps": False, "GB within a step": True}
seven = {
    name: {way: held_bytes(7e9, way, 16, 8, within) / 1e9 for way in ways}
    for name, within in columns.items()
}
on_gpu = pd.DataFrame(seven).rename(ways).rename_axis("7 billion parameters (computed)")
on_gpu.assign(**{"fits 80 GB": on_gpu["GB within a step"] < 80}).round(0)

# %% [markdown]
# | your case | take |
# |---|---|
# | model, gradients and optimizer state fit, with room for activations | DDP |
# | weights and gradients fit; AdamW's state is too much | ZeRO-1: over NCCL no byte more |
# | weights fit, the rest doesn't | ZeRO-2 |
# | the model fits one instance, and links between instances are slow | HSDP |
# | nothing else fits | ZeRO-3, over links that can carry 1.5 times the bytes |
# | activations are too much | checkpointing, or a smaller batch for each rank |
#
# <details><summary>Coming from another tutorial?</summary>
#
# "Data parallel training needs room for the whole model on each rank" was true until 2019. It is
# true of DDP and Horovod, not of data parallelism: ZeRO-3 still splits the *batch*, every rank
# still computes the whole model, and only the storing is divided. Tensor and pipeline parallelism
# divide the *computing*.
#
# </details>
#
# ## Exercises
#
# In [exercises/11_what_each_rank_must_hold.ipynb](exercises/11_what_each_rank_must_hold.ipynb):
#
# 1. (8 minutes) How many GPUs does a model need, in mixed precision?
# 2. (15 minutes) ZeRO-3 of one layer: gather, compute, free; on real ranks.
# 3. (7 minutes) Which way for which model and links?
#
# ## Check yourself

# %%
workshop.quiz("11")

# %% [markdown]
# ## Summary
#
# - A DDP rank holds weights, gradients and optimizer state: 16 bytes for each parameter with AdamW.
#   Activations come on top, and grow with the batch.
# - ZeRO divides what all ranks hold in common. The weights that come out are DDP's, up to rounding.
# - Over NCCL ZeRO-1 sends what DDP sends, ZeRO-3 1.5 times as much (over gloo 1.5 and 2 times).
#   HSDP keeps most of that inside the instance.
# - DCP saves shards from any number of ranks, and loads them on any other.
#
# ## Clean up
#
# Nothing is left: the ranks have ended, and the job's instances ended with it.
#
# ## Next
#
# [Lesson 12](12_talk_less_often.ipynb): not what ranks hold, but how often they must talk.

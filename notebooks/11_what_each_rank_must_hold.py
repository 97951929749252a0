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
# # 11 · What each rank must hold
#
# **After this lesson you can**
#
# - say what a rank holds, byte by byte, and compute it for a model of your own;
# - divide optimizer state, gradients and weights among ranks: ZeRO-1, ZeRO-2, ZeRO-3, HSDP;
# - say what each of them sends, and which one fits your model and your links;
# - save a divided model from four ranks and load it on two.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb): when *faster* is more than noise;
# [lesson 02](02_collectives.ipynb): reduce-scatter and all-gather.
#
# **Time:** 60 minutes, and 45 for the exercises.
#
# **Where it runs:** one job on two instances times the five ways, here or on AWS. All else runs on
# the notebook's machine.
#
# **Cost on AWS:** about 0.03 USD, at most 0.09 USD: one job on two `ml.c5.xlarge`, 5 minutes
# planned (us-east-1, price list of 2026-09-27). Nobody has run it there yet.

# %% [markdown]
# ## Set up
#
# - `processes_per_host`: ranks on each of the two instances.
# - `link`: the bandwidth of each instance's link; only the emulator can limit it.
# - `width`: size of the model's vectors. `rounds`: how often each way is timed.
# - `max_run`: seconds after which SageMaker stops the job.

# %% tags=["parameters"]
target = "local"
seat = "me"
processes_per_host = 2
instance_type = "ml.c5.xlarge"
link = "60mbit"
width = 128
rounds = 9
max_run = 600

# %% jupyter={"source_hidden": true}
from importlib import metadata

import pandas as pd
from IPython.display import display

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.measure import interleaved

pd.set_option("display.max_colwidth", None)  # whole sentences in tables

session = workshop.session(target=target, seat=seat)
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("11") if unlimited and target == "local" else None
link = recorded.results["link"] if recorded else link
source = "recorded" if recorded else "measured"
print(f"PyTorch {metadata.version('torch')}.", unlimited or f"Each instance gets a link of {link}.")
if recorded:
    print(recorded.caption)
elif target == "local":
    print(f"All {2 * processes_per_host} ranks share this machine's cores.")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first
#
# With DDP all ranks hold *the same*: the model, its gradients, and what the optimizer
# remembers. **ZeRO**, the zero redundancy optimizer, divides it among the ranks: each holds a
# **shard** ([Rajbhandari et al.](https://arxiv.org/abs/1910.02054), 2019). Two instances with two
# ranks each train a small GPT with AdamW in five ways, from the same weights and on the same text,
# over gloo, which stands in for NCCL on CPUs:
#
# | way | optimizer state | gradients | weights |
# |---|---|---|---|
# | DDP | whole | whole | whole |
# | ZeRO-1 | **divided** | whole | whole |
# | ZeRO-2 | **divided** | **divided** | **divided**, but whole from forward to backward¹ |
# | ZeRO-3, or FSDP (fully sharded data parallel) | **divided** | **divided** | **divided** |
# | HSDP (hybrid sharding) | divided² | divided² | divided² |

# %% [markdown]
# The unit for what a rank holds is one **model**: the bytes of all weights. AdamW remembers two
# numbers for each weight.
#
# ¹ In the paper and in DeepSpeed they are always whole: 1.75 models on four ranks, 1 here.
# ² Among the ranks of one instance.

# %% slideshow={"slide_type": "slide"}
ways = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "hsdp": "HSDP"}
guess = workshop.guess(
    ddp="Weights, gradients, optimizer state: how many models does a rank hold with DDP, if "
    "gradients are there once?",
    zero3="And with ZeRO-3 on four ranks?",
    shorter=(
        "HSDP divides within an instance. Whose step is shorter over slow links?",
        ["DDP", "HSDP", "no difference shown"],
    ),
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
    framework_version="2.6.0",  # on AWS; here the ranks use this machine's PyTorch
    py_version="py312",
    **session.job_settings("sharding", source_dir=workshop.DEMOS) | {"max_run": max_run},
)

# %% [markdown]
# The job takes a minute and a half or more: read on while it runs.

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
workshop.save_results(events=measured_events, link=link, recorded=bool(recorded))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
records = pd.DataFrame([e for e in events if e["event"] == "sharding"]).set_index("way")
seconds = pd.DataFrame(next(e for e in events if e["event"] == "step_seconds"))  # by round
seconds = seconds.drop(columns="event")
models = records.rename(ways)[["weights", "gradients", "optimizer", "held", "peak"]]
models = models.div(records.rename(ways)["model_bytes"], axis=0)
ddp, again = seconds["ddp"], seconds["ddp again"] / seconds["ddp"]
gains = {"DDP": ddp / seconds["hsdp"], "ZeRO-3": seconds["zero3"] / seconds["hsdp"]}
verdicts = {way: interleaved.verdict(gain, again) for way, gain in gains.items()}
unclear, agree = "no difference shown", interleaved.must_agree(len(seconds))
shown = {way: unclear if verdicts[way] == unclear else "more than noise" for way in gains}
shorter = {"faster": "HSDP", "slower": "DDP"}.get(verdicts["DDP"], unclear)
guess.compare(source, ddp=models["held"]["DDP"], zero3=models["held"]["ZeRO-3"], shorter=shorter)

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
world_size = int(records["world_size"].iloc[0])
parts = models[["weights", "gradients", "optimizer"]]
parts = parts.rename(columns={"optimizer": "optimizer state"})
parts.index = [
    f"{way}: {models['held'][way]:.2f}, peak {models['peak'][way]:.1f}" for way in parts.index
]
size = records["model_bytes"].iloc[0] / 1e6
after, peak = models["held"], models["peak"]
title = f"After a step a rank holds {after['DDP']:.2g} models with DDP, {after['ZeRO-3']:.2g} "
title += f"with ZeRO-3;\nat the peak {peak['DDP']:.2g} and {peak['ZeRO-3']:.2g}"
x = f"models ({size:.1f} MB each) held by each of {world_size} ranks"
reach = pd.DataFrame({"lowest": after, "highest": peak}).rename_axis(
    columns="up to the peak of a step"
)
plots.stacked_bars(parts, title, x, spread=reach.set_axis(parts.index), source=source)

# %% jupyter={"source_hidden": true}
costs = seconds["zero3"] / ddp
longer = "longer in" if costs.min() > 1 else "not in"
print("1. After two steps the largest difference of any weight from DDP's is ", end="")
print(f"{records['apart'].max():.0e}.")
print(f"2. Over gloo ZeRO-3's step takes {costs.median():.1f} times as long as DDP's", end=" ")
print(f"({costs.min():.1f} to {costs.max():.1f}: {longer} all rounds).")
for way, gain in gains.items():
    one_side = max((gain > 1).sum(), (gain <= 1).sum())
    print(f"   HSDP against {way}: {gain.median():.2f} times as fast ({gain.min():.2f} to ", end="")
    print(f"{gain.max():.2f}; {one_side} of {len(gain)} rounds agree, {agree} must): {shown[way]}.")
print("   A ratio is the median of the rounds', here and below. More than noise (lesson 01):")
print("   it lies outside {:.3f} to {:.3f}, which two".format(*interleaved.band(again)), end=" ")
print("DDPs reach in the median round, and\n   the rounds agree. (These are", end=" ")
print("rounds of one job: another's ratio may lie outside their range.)")

# %% jupyter={"source_hidden": true} tags=["results"]
assert records["apart"].max() < 1e-5, f"The ways train different models: {dict(records['apart'])}"
workshop.save_results(
    held=models["held"].to_dict(), gain=gains["ZeRO-3"].median(), cost=costs.median()
)

# %% [markdown]
# The line reaches to the peak of a step: activations, and what is gathered for a while. DDP's bar
# is 4 with `gradient_as_bucket_view=True`; by default a rank holds gradients twice, as such and in
# the buckets that travel: **5**. Our ZeRO-1 holds all gradients and, apart from them, its averaged
# quarter: 1.25.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What a rank holds
#
# After a step a rank holds **weights**, **gradients** (until `zero_grad()`) and **optimizer
# state**. For float32 and AdamW they are 4 + 4 + 8 = 16 bytes for each parameter. (Mixed precision
# has 16, too: exercise 11.1.) During a step **activations** are added, which forward leaves behind
# for backward. They grow with the batch, and none of the five ways divides them.

# %% [markdown]
# If they don't fit, give each rank a smaller batch, or take **activation checkpointing**: keep only
# what enters each block, and compute the rest again during backward. By count that is a
# third more computing: backward costs about twice forward; a second forward adds 1 to 3.
#
# `memory`, folded, trains two steps; after each operation of torch `TensorWatch` lists the tensors
# that are alive. The table's first column is taken after `zero_grad()`: without gradients. (On a
# GPU ask `torch.cuda.max_memory_allocated()`.)


# %% jupyter={"source_hidden": true}
def memory(sequences, width, checkpointing=False):
    """Bytes: what stays, what forward leaves behind, the peak of a step. And a step's seconds."""
    from timeit import repeat

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
        loss = gpt.mean_loss(model, *gpt.batch(text, sequences, seed))
        forward = watch.held_bytes()
        loss.backward()
        optimizer.step()
        return forward

    with watch:
        step(0)
        watch.peak = 0
        forward = step(1)
        optimizer.zero_grad()
        stays = watch.held_bytes()
    return stays, forward - stays, watch.peak, min(repeat(lambda: step(2), number=1, repeat=3))


# %%
alone = workshop.start_ranks(1)
used = {f"{n} sequences": alone.run(memory, n, width)[0] for n in (4, 16)}
stays, activations, highest = (size / 1e6 for size in used["16 sequences"][:3])
print(
    f"A GPT of four blocks: weights and AdamW's state are {stays:.0f} MB. With 16 sequences forward"
)
print(f"leaves {activations:.0f} MB, and the peak is {highest:.0f} MB.")
guess = workshop.guess(checkpointing="By what factor does checkpointing lower that peak?")

# %% jupyter={"source_hidden": true}
few_rounds = range(min(rounds, 5))  # all 5 must agree: by chance 1 in 16
turns = [[alone.run(memory, 16, width, flag)[0] for flag in (0, 1)] for _ in few_rounds]
alone.stop()
used["16, checkpointing"] = turns[0][1]
parts = ["weights and optimizer state", "activations after forward", "all at the peak of a step"]
table = pd.DataFrame({name: sizes[:3] for name, sizes in used.items()}, index=parts).T / 1e6
few, plain, less = (table.loc[name] for name in used)
guess.compare(checkpointing=plain[parts[2]] / less[parts[2]])
display(table.add_suffix(", MB").round().astype(int))
terms = [less[parts[0]], less[parts[1]], plain[parts[1]] / 4]  # a quarter: one of four blocks
print("Without checkpointing: what stays + activations =", end=" ")
print(f"{plain[parts[0]]:.1f} + {plain[parts[1]]:.1f} = {plain[parts[:2]].sum():.1f} MB, ", end="")
print(f"the peak {plain[parts[2]]:.1f}.")
print("With it: what stays + what enters the blocks + one block's activations, made again =")
print(f"{' + '.join(f'{term:.1f}' for term in terms)} = {sum(terms):.1f}, ", end="")
print(f"the peak {less[parts[2]]:.1f}. (The rest of either: not traced.)")
slower = pd.Series([checkpointed[3] / whole[3] for whole, checkpointed in turns])
print(f"A step takes {slower.median():.2f} times as long ({slower.min():.2f} to ", end="")
print(f"{slower.max():.2f} in {len(slower)} rounds", end="")
short = "): the rounds lie too far apart to show a third more."
agreed = "; by count up to 1.33). Longer in all\nrounds: on that alone it rests, no A/A was timed."
print(agreed if slower.min() > 1 else short)

# %% jupyter={"source_hidden": true} tags=["results"]
activations = 1e6 * table["activations after forward"]
over = table[parts[2]] - table[parts[0]]  # what comes and goes: activations and gradients
saved = over["16 sequences"] / over["16, checkpointing"]
assert saved > 1.3, f"Checkpointing should hold less at the peak: {over.to_dict()}"
workshop.save_results(activations=activations.to_dict(), saved_by_checkpointing=saved)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## ZeRO-1: divide the optimizer state
#
# With DDP all N ranks make the same update. AdamW updates each weight from its own gradient and its
# own two numbers, so parts can be updated apart: let each rank update one N-th, and pass the result
# on. (Clipping by the norm of all gradients needs an all-reduce of one more number.) Lesson 02: an
# all-reduce is a reduce-scatter and an all-gather. ZeRO-1 updates *between* the two.

# %% [markdown]
# `self.weights` and `self.all_gradients` are flat vectors, of which the model's tensors are views:
# change one, and the other changes. No DDP is around this model: `step` averages. `self.part` is
# this rank's slice of `self.weights`, the one parameter that the optimizer knows;
# `self.gradient_of_part` is its `.grad`.

# %% slideshow={"slide_type": "-"}
workshop.show_function("demos/sharding/zero1.py", "step")

# %% [markdown]
# The reduce-scatter leaves a rank the sum of its own part of the gradients: all that its optimizer
# needs. The all-gather sends weights where DDP sends gradients: in a ring as many bytes. But DDP
# sends during backward, this `step` after it. (`clone()`: `self.part` lies in `self.weights`.)
#
# **Is it right?** Two ranks of this machine train for two steps in each way (HSDP needs four
# ranks). A hash of the weights changes if a single bit of them differs.

# %% jupyter={"source_hidden": true}
from workshop.launch.processes import TORCHRUN, run_together

ways_here = {name: label for name, label in ways.items() if name != "hsdp"}
started = [*TORCHRUN, "--standalone", "--nproc-per-node", 2]
flags = ["--ways", ",".join(ways_here), "--width", 64, "--rounds", 0]
trained = run_together([*started, workshop.DEMOS / "measure_sharding.py", *flags], timeout=600)

# %% jupyter={"source_hidden": true}
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
# takes another, and float32 rounds differently: that may well be the difference in the first
# result.
#
# ## ZeRO-2 and ZeRO-3: gradients and weights
#
# A rank whose optimizer updates one N-th needs only that N-th of the gradients, too: **ZeRO-2**
# gives a block's gradients away as soon as backward has computed them. And a block's weights are
# needed only while that block computes: **ZeRO-3** gathers them and frees them, once in forward and
# once in backward. In PyTorch both are `fully_shard` (**FSDP2**):


# %% slideshow={"slide_type": "slide"}
def divided_model(seed, zero=3):
    import torch
    from sharding import gpt
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(seed)
    model = gpt.GPT(characters=100, width=64, blocks=2)
    for module in (*model.blocks, model):
        fully_shard(module, reshard_after_forward=zero == 3)
    return model, torch.optim.AdamW(model.parameters())  # made last: it sees only the shards


# %% [markdown]
# `fully_shard` divides each tensor of a module by rows, and puts hooks before and after the
# module's forward and backward: they gather and free. The last call, on the whole model, takes what
# lies in no block, the *outermost part*: embeddings, last layer. `reshard_after_forward=False`
# leaves gathered weights whole until backward has used them: ZeRO-2.
#
# <details><summary>Must ZeRO-3 say `True`?</summary>
#
# Yes: by default the outermost part stays whole after forward. In PyTorch 2.6 it does even with
# `True`: 5 gathers, where the picture below has 6.
#
# </details>
#
# Watch a step on two ranks: after each operation of torch, which weights are whole?


# %% jupyter={"source_hidden": true}
def watched_step(zero):
    """What happens in a step, in order: [phase, collective or None, [parts that are whole]]."""
    import torch
    from sharding.memory import COLLECTIVES
    from torch.distributed.tensor import DTensor
    from torch.utils._python_dispatch import TorchDispatchMode

    model, _ = divided_model(0, zero)
    layers, seen, phase = [model.logits, *(block.out for block in model.blocks)], [], "forward"

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if DTensor in types:
                return NotImplemented
            result = func(*args, **(kwargs or {}))
            whole = [not isinstance(layer.weight, DTensor) for layer in layers]
            collective = COLLECTIVES.get(func._schema.name)
            if collective or not seen or (phase, whole) != seen[-1][::2]:
                seen.append((phase, collective, whole))
            return result

    with Watch():
        loss = model(torch.arange(64)[None]).sum()
        phase = "backward"
        loss.backward()
    return seen


# %% jupyter={"source_hidden": true}
from itertools import groupby


def spans_of(steps):
    """[part, kind, start, length]. Parts are gathered in the order in which they become whole."""
    runs = []  # [start, end, part], while it is whole
    for part in range(3):
        for whole, run in groupby(range(len(steps)), key=lambda place: steps[place][2][part]):
            places = list(run)
            runs += [(places[0], places[-1] + 1, part)] * whole
    gathers, scatters = (
        [place for place, step in enumerate(steps) if step[1] == name]
        for name in ("all_gather", "reduce_scatter")
    )
    for gather, (start, _, part) in zip(gathers, sorted(runs), strict=True):
        yield part, "all-gather", gather, 1
        yield part, "gathered, in a buffer", gather + 1, start - gather - 1
    for start, end, part in runs:
        for phase, run in groupby(range(start, end), key=lambda place: steps[place][0]):
            places = list(run)
            yield part, f"whole, {phase}", places[0], len(places)
    for scatter, (_, part) in zip(scatters, sorted(run[1:] for run in runs)[-3:], strict=True):
        yield part, "reduce-scatter", scatter, 1


# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
with workshop.start_ranks(2) as two_ranks:
    watched = {f"ZeRO-{zero}": two_ranks.run(watched_step, zero)[0] for zero in (3, 2)}
names = ["outermost part", "block 1", "block 2"]
spans = pd.DataFrame(
    [(way, *span) for way, steps in watched.items() for span in spans_of(steps)],
    columns=["way", "part", "kind", "start", "length"],
)
legend = ["all-gather", "gathered, in a buffer"]  # then as they come
spans = spans[spans["length"] > 0].sort_values("start")
spans = spans.sort_values("kind", key=lambda kind: ~kind.isin(legend), kind="stable")
spans = spans.sort_values("part", key=lambda part: (part - 1) % 3, kind="stable")  # blocks first
spans = spans.sort_values("way", ascending=False, kind="stable")
spans["row"] = spans["way"] + ": " + spans["part"].map(dict(enumerate(names)))
gathers = {way: sum(c == "all_gather" for _, c, _ in steps) for way, steps in watched.items()}
title = f"A model of three parts: in a step ZeRO-3 gathers {gathers['ZeRO-3']} times, "
title += f"ZeRO-2 {gathers['ZeRO-2']} times"
plots.gantt(
    spans, title, "events of each way in their order, not to scale in time; blank: its shard"
)

# %% jupyter={"source_hidden": true} tags=["results"]
scatters = {way: sum(c == "reduce_scatter" for _, c, _ in seen) for way, seen in watched.items()}
assert gathers == {"ZeRO-3": 6, "ZeRO-2": 3} and set(scatters.values()) == {3}, (gathers, scatters)
workshop.save_results(gathers=gathers, scatters=scatters)

# %% [markdown]
# With ZeRO-3 block 1's second gather starts while block 2 is still whole (**prefetch**): its bytes
# lie in a buffer until block 1 uses them. So a rank holds one block, in backward up to two (on GPUs
# in forward, too), and beside them the outermost part, whose forward and backward enclose theirs.
# Where a row is blank it holds its shard (and, until the reduce-scatter, whole gradients).
#
# HSDP is ZeRO-3 on a **mesh**: `fully_shard(module, mesh=mesh)`, here with
# `mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))`: the ranks
# `[[0, 1], [2, 3]]`. Along a row, an instance, the model is divided; down a column ranks hold the
# same shard, and all-reduce its gradients.
#
# The peak of a step is a sum: the activations of the 4 sequences of a rank, and what it holds then.
# It comes as backward begins, if this sum is right. Divided gradients are not in it: `zero_grad()`
# has freed them. DDP's stay, in its buckets, so what its peak adds to its bar is activations and
# little else. ZeRO-3 and HSDP have gathered two of four blocks and the outermost part.

# %% jupyter={"source_hidden": true}
ddps_reach = peak["DDP"] - after["DDP"]
by_table = few[parts[1]] / size
print(f"Activations of 4 sequences: from the table above, in MB: {by_table:.1f} models; ", end="")
print(f"DDP's peak - its bar, used below: {ddps_reach:.1f}.")
block = 4 * (12 * width + 13) * width / records["model_bytes"].iloc[0]  # of the model's four
two_blocks = 1 - 2 * block  # and the outermost part: all but the other two
at_peak = models.loc[["ZeRO-2", "ZeRO-3", "HSDP"], ["weights", "optimizer"]]
at_peak["activations (DDP's peak - bar)"] = ddps_reach
at_peak["gathered, by count"] = [1, two_blocks, two_blocks]
at_peak["sum"] = at_peak.sum(axis=1)
at_peak["peak, measured"] = peak[at_peak.index]
at_peak.round(2).rename_axis("models, at the peak")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What it costs: bytes
#
# Count *passes* over the model: a reduce-scatter or an all-gather is 1, an all-reduce 2. DDP makes
# one all-reduce, 2 passes. ZeRO-3 gathers the weights twice and scatters the gradients once: 3. In
# a ring of N ranks each rank sends (N - 1) / N of a model in each pass, and as much crosses the
# **link** of each instance if one hop of the ring leaves it: 2 · 3/4 for DDP on four ranks. HSDP
# gathers and scatters within an instance, and all-reduces its gradients' shards between the two.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    hsdp_sends="DDP's ring sends 1.5 models over each link. How many does HSDP send?"
)

# %% jupyter={"source_hidden": true}
instances = int(records["instances"].iloc[0])
passes = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
sent = pd.DataFrame(records["sent"].to_dict()).T.reindex(columns=list(passes))
sent = sent.div(records["model_bytes"], axis=0).fillna(0)
ring = pd.DataFrame(world_size, index=sent.index, columns=list(passes))  # ranks in each ring
ring.loc["hsdp"] = [instances, *2 * [world_size // instances]]
sent["a rank sends, to anyone"] = (sent * pd.Series(passes) * (1 - 1 / ring)).sum(axis=1)
sent.rename(ways).round(2).rename_axis("whole tensors, in models")

# %% [markdown]
# The first three columns are measured: what a collective was handed (an all-gather: what it
# returned). The last follows, for rings as NCCL's. HSDP's 3 passes inside the instance are
# 3 · 1/2 = 1.5 models. Between the instances each rank all-reduces its half of the gradients with
# its partner: 2 · 1/2 · 0.5 = 0.5 model. Two ranks share a link, so 1 model crosses it. The network
# cards count:

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
around = (world_size - 1) / world_size  # of a model, for a reduce-scatter or an all-gather
ideal = pd.Series({"ddp": 2, "zero1": 2, "zero2": 2, "zero3": 3}) * around
ideal["hsdp"] = 2 * (instances - 1) / instances
gloo = ideal + pd.Series({"ddp": 0, "zero1": 1, "zero2": 1, "zero3": 1, "hsdp": 0}) * around
cards = records["card_bytes"] / records["model_bytes"]
if cards.notna().all():
    guess.compare(source, hsdp_sends=cards["hsdp"])
over_link = {"NCCL, by formula": ideal, "gloo, by formula": gloo, "card, measured": cards}
over_link = pd.DataFrame(over_link)
over_link.loc[list(ways)].rename(ways).round(2).rename_axis("models over the link")

# %% jupyter={"source_hidden": true} tags=["results"]
# PyTorch 2.6 does not gather the outermost part a second time: a few percent of a model.
assert abs(sent["a rank sends, to anyone"]["zero3"] / around - 3) < 0.1, (
    f"ZeRO-3 makes 3 passes: {sent}"
)
sums = {"sent": sent["a rank sends, to anyone"], "cards": cards, "gloo": gloo}
workshop.save_results(**{name: values.to_dict() for name, values in sums.items()})

# %% [markdown]
# The middle column: gloo makes a reduce-scatter out of an all-reduce and throws the rest away. So
# ZeRO-1, 2 and 3 send (N - 1) / N of a model more than over NCCL; HSDP's reduce-scatter stays
# inside the instance. Headers would explain most of what the cards count beyond that: 66 bytes for
# each packet of up to 1,514 are 4 to 5 % (not counted here).
#
# ## What it costs: time
#
# A step computes, and it sends. If nothing hides behind computing, it takes the sum of the two: a
# step without any exchange (each rank trains a model of its own), and the card's bytes over the
# link's bandwidth. In the picture the black line is that sum, and the diamond the same with the
# card's bytes scaled down to what NCCL's rings would send. Hiding can't save much here: computing
# is a small part of a step.

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
alone_seconds = seconds["nothing exchanged"].median()
mbit = None if target == "aws" else bandwidth.mbit(link)
rate = mbit and 1e6 * mbit / 8  # bytes per second
ms = 1000 * seconds[list(ways)].rename(columns=ways)
bounds = over_nccl = None
if rate:
    on_link = records["card_bytes"][list(ways)].rename(ways) / rate
    bounds = 1000 * (alone_seconds + on_link)
    bounds.name = "computing + bytes / bandwidth"
    over_nccl = 1000 * (alone_seconds + on_link * (ideal / gloo).rename(ways))
    over_nccl = over_nccl[bounds.index]
    over_nccl.name = "the same, NCCL's bytes (computed)"
over = f"links of {mbit:g} Mbit/s" if rate else f"the links of {instance_type}"
title = f"Over gloo and {over} ZeRO-3's step takes {costs.median():.1f} times as long as DDP's,\n"
title += f"HSDP's {(1 / gains['DDP']).median():.2f} times ({shown['DDP']})"
style = {"spread": interleaved.summary(ms), "source": source, "colour": plots.COLOURS[0]}
label = f"ms per step (median, lowest and highest of {len(ms)} rounds)"
plots.bar_chart(ms.median(), title, label, bounds=bounds, rivals=over_nccl, **style)

# %% jupyter={"source_hidden": true} tags=["results"]
if rate:
    off = ms.median() / bounds - 1
    workshop.save_results(step_ms=ms.median().to_dict(), off=off.to_dict())

# %% jupyter={"source_hidden": true}
if rate:
    computing = 1000 * seconds["nothing exchanged"]
    beyond = ms - bounds
    surplus = (ms - computing.median()).median() / (bounds - computing.median())
    timed = {
        "diamond / DDP's diamond": over_nccl / over_nccl["DDP"],
        "line / DDP's line": bounds / bounds["DDP"],
    }
    timed["step / DDP's step"] = ms.div(ms["DDP"], axis=0).median()
    spread = interleaved.summary(beyond).round().astype(int)
    spread = spread.add_suffix(", ms").rename(columns={"median, ms": "step - line, ms"})
    print(f"Computing alone takes {computing.median():.0f} ms ({computing.min():.0f} to ", end="")
    print(f"{computing.max():.0f}); the line has the median.")
    above = beyond.min() > computing.max() - computing.median()
    print("Above the line in every round, even if the slowest computing is put into it:", end=" ")
    print(", ".join(above.index[above]) or "no way", end=".\n")
    outcomes = {"faster": "shorter, too", "slower": "longer: the line got the order wrong"}
    outcome = outcomes.get(verdicts["DDP"], "the order that the line gives is not confirmed")
    _, of_line, of_step = (ratio["HSDP"] for ratio in timed.values())
    if verdicts["DDP"] == "faster" and of_step > of_line:
        outcome += ", but by less"
    print(f"By the line HSDP's step is {of_line:.2f} of DDP's, measured {of_step:.2f}: {outcome}.")
pd.DataFrame(timed).round(2).join(spread).rename_axis("of each way") if rate else None

# %% [markdown]
# The pass that gloo adds is not ZeRO's doing; ZeRO-3's third pass is. The black line leaves out
# latency, the additions of a reduction, gloo's copies, and all that is sent inside an instance
# (HSDP: two gathers and, over gloo, a whole all-reduce); and in the emulator ranks that send take
# cores from ranks that compute. We have not measured which of these matters.
#
# DDP's ring is flat: nothing is added up inside an instance first, so here **HSDP** sends less over
# the link. A hierarchical all-reduce, or NCCL's trees on two instances ([lesson
# 07](07_smddp.ipynb)), would send as little.
#
# ## Save on four ranks, load on two
#
# If no rank has the whole model, who saves it? With **DCP**, `torch.distributed.checkpoint`, every
# rank saves its shard and says which slice of which tensor it is. Loading ranks read the parts that
# they need. The proof is a hash of all weights and of AdamW's two numbers for each:
# `whole_hash`, folded.


# %% jupyter={"source_hidden": true}
def whole_hash(model, optimizer):
    """Of all weights, and of AdamW's two numbers for each."""
    from common.report import weights_hash
    from measure_sharding import whole_weights

    states = [optimizer.state[parameter] for parameter in model.parameters()]
    tensors = [state[name] for state in states for name in ("exp_avg", "exp_avg_sq")]
    whole = [tensor.full_tensor().numpy() for tensor in tensors]
    return weights_hash([*whole_weights(model), *whole])


# %%
def save(folder):
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict

    model, optimizer = divided_model(seed=0)
    model(torch.arange(64)[None]).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder)
    return whole_hash(model, optimizer)


# %%
def load(folder):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model, optimizer = divided_model(seed=1)  # other weights
    weights, state = get_state_dict(model, optimizer)  # tensors to be filled
    before = whole_hash(model, optimizer)
    checkpoint = {"model": weights, "optimizer": state}
    dcp.load(checkpoint, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=checkpoint["model"],
        optim_state_dict=checkpoint["optimizer"],
    )
    return before, whole_hash(model, optimizer)


# %% [markdown]
# `dcp.load` fills tensors in place, so they must exist. `get_state_dict` makes AdamW's, too, all
# zeros. Their shapes say how these ranks divide the model.

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
# So a job may go on with another number of ranks. (Half the ranks: give each twice as many
# sequences, for the same global batch.) On two instances `checkpoint_id` is a folder of a shared
# file system, or `"s3://bucket/prefix"`, for which DCP needs the package s3fs.
#
# For inference gather once, to rank 0's CPU memory: `StateDictOptions(full_state_dict=True,
# cpu_offload=True)`, as in `scripts/train/train_torch_fsdp.py`.
#
# ## Which one when
#
# What a rank holds after a step can be computed. Does that agree with what was measured?


# %%
def held_bytes(parameters, way, ranks, ranks_per_instance, gathered=0):
    """Bytes of weights, gradients and optimizer state on a rank; float32, AdamW.

    gathered: this part of the weights is whole besides, for a while.
    """
    n = ranks_per_instance if way == "hsdp" else ranks
    weights = gradients = 4 * parameters
    optimizer_state = 8 * parameters
    if way == "ddp":
        return weights + gradients + optimizer_state
    if way == "zero1":  # ours holds its part of the gradients besides
        return weights + gradients + (gradients + optimizer_state) / n
    return gathered * weights + (weights + gradients + optimizer_state) / n


# %% jupyter={"source_hidden": true}
parameters = records["model_bytes"].iloc[0] / 4
computed = {way: held_bytes(parameters, way, world_size, processes_per_host) for way in ways}
compared = pd.DataFrame({"computed, MB": computed, "measured, MB": records["held"]})
compared = compared.assign(**{"measured, MB": compared["measured, MB"] / 1e6})
compared["computed, MB"] /= 1e6
off_by = (compared["measured, MB"] / compared["computed, MB"] - 1).abs()
print(f"Largest difference of the five ways: {off_by.max():.2%}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert off_by.max() < 0.05, f"Held and computed bytes differ: {compared}"
workshop.save_results(held_off=off_by.max())

# %% [markdown] slideshow={"slide_type": "slide"}
# | take | if this fits, beside activations | passes over the link |
# |---|---|---|
# | DDP | weights, gradients and AdamW's state | 2, in a ring of all ranks |
# | ZeRO-1 | weights, gradients; AdamW's state divided among all ranks | 2 |
# | ZeRO-2 | weights; gradients and state divided among all ranks | 2 |
# | HSDP³ | all three, divided among one instance's ranks | 2: each rank its shard, in all a model |
# | ZeRO-3 | all three, divided among all ranks | 3, in a ring of all ranks |
#
# ³ And 3 passes inside each instance.

# %% [markdown]
# Over each link go 2 · (N - 1) / N models with DDP on N ranks, and 2 · (I - 1) / I with HSDP on I
# instances. (8 ranks on each: HSDP sends 0.53 of DDP's on 2 instances, 0.94 on 16.)
#
# 1. **Make activations fit.**
# 2. Take the first row that leaves room for them and whose sending hides: bytes / bandwidth is at
#    most the computing that it overlaps. DDP, ZeRO-2 and HSDP send gradients during backward: two
#    thirds of the computing. (ZeRO-2's gathers hide behind forward, one third.) ZeRO-3 sends during
#    both. Our ZeRO-1 overlaps nothing, so this rule never takes it; one that scatters gradients
#    during backward can hide half. (All from the code: this page doesn't time the overlap.)
# 3. If both ZeRO-2 and HSDP do, time both: HSDP sends less over the link, ZeRO-2 less in all. If no
#    row does, time those that fit, first the one that sends least over the link.

# %% jupyter={"source_hidden": true}
if rate:
    meeting = ", ".join(on_link.index[on_link <= alone_seconds])
    print(f"In the job computing takes {1000 * alone_seconds:.0f} ms, sending ", end="")
    print(f"{1000 * on_link.min():.0f} or more.", end=" ")
    if meeting:
        print(f"Rows that may hide it: {meeting}.")
    else:
        print("No row meets the rule: time HSDP first, which sends least.")
        print(f"It was {gains['DDP'].median():.2f} times as fast as DDP: {shown['DDP']}.")

# %% [markdown]
# For example 7 billion parameters in 32 blocks, in float32 (in practice mixed precision), on two
# p4de, each with eight GPUs of 80 GB and a link of 400 Gbit/s, 50 GB/s ([lesson
# 07](07_smddp.ipynb)). Within a step ZeRO-2 has all blocks gathered, ZeRO-3 and HSDP two. Gradients
# are counted (at the job's peak the divided ones were freed). Not counted are the outermost part
# and CUDA's kernels (1.3 GB on a V100: [Hugging
# Face](https://github.com/huggingface/transformers/blob/249ef8164cfbd8e288c2f6d8395539b9e90e8300/docs/source/en/model_memory_anatomy.md),
# read on 2026-11-27).

# %% slideshow={"slide_type": "slide"}
parameters, tokens, activations = 7e9, 4096, 30  # assumed, of a rank: tokens in a step; GB
flops = 80e12  # operations per second of a GPU in float32 (TF32), assumed

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
order = ["ddp", "zero1", "zero2", "hsdp", "zero3"]  # as above
gathered = {"zero2": 1, "hsdp": 2 / 32, "zero3": 2 / 32}  # of the weights
within = {way: held_bytes(parameters, way, 16, 8, gathered.get(way, 0)) for way in order}
on_gpu = (pd.DataFrame({"GB within a step": within}) / 1e9).round().astype(int)
on_gpu["left of 80 GB for activations"] = 80 - on_gpu["GB within a step"]
passes = pd.Series({"ddp": 2, "zero1": 2, "zero2": 2, "zero3": 3})
on_gpu["models over the link (NCCL's rings)"] = passes * 15 / 16
on_gpu.loc["hsdp", "models over the link (NCCL's rings)"] = 2 * 1 / 2  # a ring of two instances
link_seconds = on_gpu["models over the link (NCCL's rings)"] * 4 * parameters / 50e9
on_gpu["seconds at 50 GB/s"] = link_seconds
on_gpu = on_gpu.rename(ways).rename_axis(f"{parameters / 1e9:g} billion parameters (computed)")
on_gpu.round(2)

# %% jupyter={"source_hidden": true}
computing = 6 * parameters * tokens / flops
room = on_gpu["left of 80 GB for activations"]
fits = room.index[room >= activations]
waiting = on_gpu["seconds at 50 GB/s"]
overlap = {"ZeRO-3": 1}  # the others' sending has two thirds of computing, or its half one third
hidden = [
    way for way in fits if way != "ZeRO-1" and waiting[way] * overlap.get(way, 3 / 2) <= computing
]
print(f"{activations} GB of activations fit with {', '.join(fits) or 'no way'}.", end=" ")
print(f"Computing takes\n6 x parameters x tokens operations: {computing:.1f} s.", end=" ")
print(f"The first row that meets the rule: {hidden[0] if hidden else 'none'}.")
if {"ZeRO-2", "HSDP"} <= set(hidden):
    print("HSDP hides, too, and holds less: time both.")
if rate:
    print("(By bytes / bandwidth alone. In this lesson's job a step took beyond its", end=" ")
    print(
        f"computing {surplus.min():.1f} to {surplus.max():.1f}\ntimes that. So time what you take.)"
    )

# %% [markdown]
# ZeRO-3 over several instances is for when four models plus the activations of all its ranks exceed
# the GPU memory of one instance. For your own model change the numbers above.
#
# <details><summary>Coming from another tutorial?</summary>
#
# "Data parallel training needs room for the whole model on each rank": true of DDP and Horovod.
# With ZeRO-3 every rank still computes the whole model, on its part of the batch; only storing is
# divided. Tensor and pipeline parallelism divide the *computing*.
#
# </details>
#
# <details><summary>With gradient accumulation?</summary>
#
# DDP's `no_sync()` or `model.set_requires_gradient_sync(False)` sends after the last small batch
# only; `fully_shard` then holds whole gradients.
#
# </details>
#
# ## Exercises
#
# In [exercises/11_what_each_rank_must_hold.ipynb](exercises/11_what_each_rank_must_hold.ipynb):
#
# 1. (10 minutes) How many GPUs does a model need, in mixed precision?
# 2. (22 minutes) ZeRO-3 of one layer: gather, compute, free; on real ranks.
# 3. (13 minutes) Which way for which model and links?
#
# ## Check yourself

# %% question=3 slideshow={"slide_type": "slide"}
workshop.quiz("11")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A DDP rank holds weights, gradients and optimizer state: with AdamW 16 bytes for each parameter,
#   20 by DDP's default. Activations come on top, and grow with the batch.
# - ZeRO divides what all ranks hold in common. The weights that come out are DDP's: here on two
#   ranks to the bit, on four nearly.
# - By count, over NCCL ZeRO-1 sends what DDP sends, ZeRO-3 1.5 times as much (over gloo 1.5 and 2
#   times). HSDP keeps most of that inside the instance.
# - Sending that computing hides should cost little; here computing was far too short to hide it. So
#   time the ways that fit: bytes / bandwidth leaves much out.
# - DCP saves shards from any number of ranks, and loads them on any other: here from four on two.

# %% [markdown]
# ## Clean up
#
# Nothing is left: ranks and instances have ended.
#
# ## Next
#
# [Lesson 12](12_talk_less_often.ipynb): not what ranks hold, but how often they must talk.

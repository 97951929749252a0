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
# # 04 · Horovod on the notebook
#
# **After this lesson you can**
#
# - start several processes with `mpirun` and say what size, rank and local_rank are;
# - turn a one-process script into a Horovod script;
# - say what goes wrong when a step is missing, and prove it for three of them;
# - read a Horovod Timeline;
# - measure what a second rank gains, compared with what the machine can give.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb) and [lesson 02](02_collectives.ipynb): you
# know why ranks average gradients, and what an all-reduce is.
#
# **Time:** 60 minutes, without the exercises.
#
# **Where it runs:** the ranks run where this notebook runs: on your machine, or on a SageMaker
# notebook instance ([how](../docs/teaching/class_on_aws.md#on-a-notebook-instance)). One small job
# runs where `target` says, `"local"` or `"aws"`. Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.03 USD: that job takes two `ml.c5.xlarge` for an estimated 5 minutes
# (us-east-1, price list of 2026-09-27); at most 0.09 USD.

# %% [markdown]
# ## Set up
#
# - `max_steps`: of each small training. The proofs below need few.
# - `instance_count`, `processes_per_host`: of the job. `max_run`: seconds after which it ends.
# - `global_batch_size`: images in a step of all ranks, when speed is measured.
# - `steps`, `rounds`: how long and how often speed is measured.

# %% tags=["parameters"]
target = "local"
seat = "me"
max_steps = 10
instance_count = 2
processes_per_host = 2
max_run = 600
global_batch_size = 512
steps = 6
rounds = 9

# %%
import tempfile
from pathlib import Path

import pandas as pd

import data_prep
import workshop
from workshop import DEMOS, plots
from workshop.launch import delayed_link
from workshop.launch.horovod import horovod_script
from workshop.launch.mpirun import mpirun
from workshop.lesson import ablation
from workshop.measure import interleaved, timeline
from workshop.measure.scaling import Scaling, table

session = workshop.session(target=target, seat=seat)
choice = horovod_script("train_tf_horovod_steps.py")
print(choice.explanation)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
large_digits = data_prep.digits.prepare(workshop.DATA / "digits-28", size=28, quiet=True)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first
#
# **Horovod** adds all-reduce to TensorFlow, Keras, PyTorch and MXNet training scripts. Here it
# trains the course's classifier on digits of 28 x 28 pixels: `global_batch_size` images in each
# step, divided among two ranks. How much faster is that than one process? (Each process has one
# thread.)
#
# A step is **compute + wait + exposed communication**: the ranks compute, the faster one waits for
# the slower, and gradients travel while nobody computes. (`mpirun(...)`, a helper of this course,
# starts the ranks: next section. The same run also measures steps of 8 images, for the end of the
# lesson.)

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    speed_up="How many times as fast as one process are two ranks?",
)


# %%
batches = {global_batch_size: steps, 8: 12 * steps}  # images in a step: steps in a measurement
flags = ["--library", choice.library, "--training", large_digits / "training", "--rounds", rounds]
flags += ["--global-batch-sizes", ",".join(map(str, batches)), "--steps", *batches.values()]
program = DEMOS / "measure_scaling.py"
done = mpirun(2, program, *flags, show=False, timeout=600, **choice.environment)
large, small = Scaling.by_batch(done.events).values()


# %% slideshow={"slide_type": "slide"}
def compared(scaling, numerator: str) -> str:
    """Is the ratio to the step above 1 ("faster"), below ("slower"), or lost in the noise?"""
    by_round = scaling.rounds[numerator] / scaling.rounds["step"]
    return interleaved.verdict(by_round, noise=scaling.rounds["step"] / scaling.rounds["again"])


shown, alone = compared(large, "alone"), 1000 * large.rounds["alone"].median()
bars = pd.DataFrame({"1 process": 0 * large.parts, "2 ranks": large.parts}).T
bars.loc["1 process", "compute"] = alone
ms = 1000 * large.rounds[["alone", "step"]]
ms.columns = bars.index
whiskers = interleaved.summary(ms)
title = f"{global_batch_size} images a step: two ranks are {large.speed_up.fixed} times as fast\n"
title += f"as one process{'' if shown == 'faster' else f': {shown}'}"
plots.stacked_bars(
    bars, title, "ms per step: medians of rounds, which needn't add up", spread=whiskers
)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
print(f"Two ranks are {large.speed_up.fixed} times as fast as one process: {shown}.")
least, most = 1000 * large.rounds["alone"].min(), 1000 * large.rounds["alone"].max()
print(f"One process alone took {least:.0f} to {most:.0f} ms: so ratios are taken within a round.")
above = (large.rounds["alone"] / large.rounds["compute"] > 2).sum()
above = f", above 2 in {above} of {rounds} rounds (lesson 01)" if above else ""
print(f"The ceiling is {large.ceiling.fixed}{above}: two processes")
print("compute half of the batch each, and exchange nothing.")
below = (large.rounds["compute"] < large.rounds["step"]).sum()
slower = compared(large, "compute") == "slower"
cost = f"less than all of it in {below} of {rounds} rounds, "
cost += "by more than noise" if slower else "within the noise of single rounds"
if large.share.median > 1:
    cost = "something slowed the two independent processes"
print(f"Two ranks reach {large.share.fixed} of this ceiling: {cost}.")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
wait, rest = large.parts[["wait", "exposed communication"]]
larger = (large.rounds["wait"] > large.rounds["exposed"]).sum()
exchange = 1000 * large.rounds["exchange"].median()
floor = 1000 * (large.noise.high - 1) * large.rounds["step"].median()
print(f"Beyond computing they wait {wait:.1f} ms for the slower rank, and take {rest:.1f} ms more.")
print(
    f"(Waiting is the larger part in {larger} of {rounds} rounds.) An exchange alone takes", end=" "
)
print(f"{exchange:.1f} ms.")
if abs(rest - exchange) > floor:
    print("What lies between isn't broken down here.")
else:
    print("It differs from what they take more by less than", end=" ")
    print(f"the noise floor (lesson 01), {floor:.1f} ms.")
if large.ceiling.high < 1.5:
    print("This machine has no second core to give: something else uses it, or it has only one.")
elif shown == "no difference shown":
    print("The rounds are too uneven to say more. Close other programs, run the lesson again.")
guess.compare(speed_up=large.speed_up.median)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(speedup=large.speed_up.median, share=large.share.median)

# %% [markdown]
# (All are medians over the rounds, so they needn't multiply, divide or add up exactly. A part below
# 0 is noise, and drawn as 0. What takes time besides computing and waiting is the exchange, as far
# as it isn't hidden, with Horovod's own work.)
#
# <details><summary>Why learn Horovod?</summary>
#
# Its last release is 0.28.1, of June 2023; new projects take PyTorch's DDP. But much code still
# uses it, and you write every step that newer libraries hide. (Its PyTorch module doesn't compile
# with PyTorch 2.1 or later: [horovod#3996](https://github.com/horovod/horovod/issues/3996).)
#
# </details>

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Processes that meet
#
# Processes that work together need numbers, their total, and a way to send messages. **MPI** is a
# standard for this, and Open MPI implements it. **`mpirun -np 2 COMMAND`** starts the command
# twice, gives each copy its number, and kills the rest if one fails. Horovod uses MPI to let the
# processes find each other and, on CPUs, to send gradients.
#
# With `mpi4py`, Python's package for MPI, `allreduce` adds up the ranks' numbers, 0 + 1 + 2 + 3:

# %% slideshow={"slide_type": "-"}
hello = """from mpi4py import MPI; ranks = MPI.COMM_WORLD
print('rank', ranks.rank, 'of', ranks.size, '- our ranks add up to', ranks.allreduce(ranks.rank))"""
met = mpirun(4, "python", "-c", hello)

# %% jupyter={"source_hidden": true} tags=["results"]
sums = [line.text for line in met.lines if line.text.endswith("add up to 6")]
assert len(sums) == 4, f"{len(sums)} of 4 ranks knew the sum: run `make doctor`."
workshop.save_results(ranks_that_knew_the_sum=len(sums))

# %% [markdown]
# The sum is 6 on each (they print in any order), so the ranks did exchange their numbers. The
# options are Open MPI 5's; SageMaker's images have Open MPI 4:
#
# | option | in Open MPI 4 (empty: the same) | why |
# |---|---|---|
# | `--map-by :OVERSUBSCRIBE` | `--oversubscribe` | allow more ranks than cores |
# | `--bind-to none` | | don't tie a rank to one core |
# | `--mca mpi_yield_when_idle 1` | | a waiting rank gives up its core |
# | `--output tag` | `--tag-output` | say which rank printed a line |
# | `--allow-run-as-root` | | only needed if you are root: without it mpirun refuses to run |
#
# From here on `mpirun(...)` prints the command without these options and without folders.
#
# <details><summary>MPI or Gloo?</summary>
#
# `horovodrun --gloo` starts ranks by another library, Gloo. Horovod's own page finds MPI faster on
# CPUs ([mpi.rst](https://github.com/horovod/horovod/blob/master/docs/mpi.rst), read on 2026-11-24),
# and SageMaker starts Horovod with it.
#
# </details>

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Who is who
#
# | word | Horovod | meaning |
# |---|---|---|
# | **size** | `hvd.size()` | how many processes there are in all (elsewhere: world_size) |
# | **rank** | `hvd.rank()` | the number of a process among all, from 0 |
# | **slot** | | a place for one process on a host; `mpirun` fills slots host by host |
# | **local_size** | `hvd.local_size()` | how many processes run on this host |
# | **local_rank** | `hvd.local_rank()` | the number of a process on its own host, from 0 |
# | **cross_rank** | `hvd.cross_rank()` | here the number of its host, from 0 |

# %% [markdown]
# Use rank for what must happen only once, such as saving, and local_rank to choose a GPU. On one
# host the two are equal, so code that confuses them works on a notebook and fails on two instances.
# To see them differ, run a job on two instances with two processes each ([lesson
# 05](05_horovod_on_training_instances.ipynb) explains how `fit()` starts it).

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    local_rank="2 hosts with 2 slots each: what is the local_rank of rank 2?",
    cross_rank="And its cross_rank?",
)

# %%
from sagemaker.tensorflow import TensorFlow

print(workshop.cost("ml.c5.xlarge", instance_count, seconds=300, max_run=max_run))
estimator = TensorFlow(
    entry_point="show_placement.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=instance_count,
    distribution={"mpi": {"enabled": True, "processes_per_host": processes_per_host}},
    **session.job_settings("placement", source_dir=DEMOS) | {"max_run": max_run},
)
estimator.fit(wait=False)
job = workshop.follow(estimator)

# %% [markdown]
# <!-- SDK v3: placement -->

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
placement = job.table("placement").sort_values("rank", ignore_index=True)
hosts = placement.groupby("host", sort=False)
s = "" if len(hosts) == 1 else "s"
title = f"{len(placement)} ranks on {len(hosts)} host{s}: local_rank begins at 0 on each"
placements = zip(placement["rank"], placement["local_rank"], placement["host"], strict=True)
listed = "; ".join(
    f"rank {rank} is local_rank {local} of {host}" for rank, local, host in placements
)
size = (1.3 * len(placement) + 1, 2.3)
with plots.canvas(title, "", size=size, alt=f"{title}: {listed}.") as axes:
    colours = [plots.COLOURS[local_rank] for local_rank in placement["local_rank"]]
    axes.scatter(placement.index, [0] * len(placement), s=1100, c=colours)
    for at, row in placement.iterrows():
        on = "black" if row["local_rank"] == 1 else "white"  # on orange
        axes.text(at, 0, f"rank\n{row['rank']}", ha="center", va="center", size=9, color=on)
        where = f"local_rank {row['local_rank']}\ncross_rank {row['cross_rank']}"
        axes.text(at, -0.55, where, ha="center", va="top", size=8)
    for host, ranks in hosts.groups.items():
        left, width = ranks.min() - 0.45, len(ranks) - 0.1
        axes.broken_barh([(left, width)], (-1.2, 1.9), facecolor="none", edgecolor="0.5")
        axes.text(left + width / 2, 0.8, f"host {host}", ha="center")
    axes.set(xlim=(-0.6, len(placement) - 0.4), ylim=(-1.3, 1.2))
    axes.axis("off")

# %% slideshow={"slide_type": "-"}
guess.compare(
    local_rank=placement["local_rank"].iloc[processes_per_host],
    cross_rank=placement["cross_rank"].iloc[processes_per_host],
)

# %% jupyter={"source_hidden": true} tags=["results"]
size = instance_count * processes_per_host
assert sorted(placement["rank"]) == list(range(size)), "A rank is missing: look at job.lines."
assert (
    placement["cross_rank"] * placement["local_size"] + placement["local_rank"] == placement["rank"]
).all(), "Ranks do not fill the hosts one after the other: did the job ask for another mapping?"
workshop.save_results(
    hosts=placement["host"].nunique(),
    local_ranks=placement["local_rank"],
    cross_ranks=placement["cross_rank"],
    places_from=placement["library"].iloc[0],
)

# %% [markdown]
# With two GPUs on each host, rank 3 would have to take GPU 1: its host has no GPU 3. (If all ranks
# are on one host, your machine can't simulate separate instances: `make doctor` says why.)
#
# ## An unchanged script under mpirun
#
# Start a script that trains in one process with `mpirun -np 2`. (`ablation.without` makes it: a
# copy of `train_tf_horovod_steps.py` without the nine steps of the next two sections.) At its
# end each process prints hashes of its weights and of the images that it saw: equal hashes mean
# equal weights or images, to the last bit.

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    trainings="The unchanged script under mpirun -np 2: how many separate trainings run?",
    weights="How many different sets of weights are there at the end?",
    images="How many different sets of images did the processes see?",
)


# %%
def kinds(run, column: str) -> int:
    """How many different values the ranks of a run have in a column of their evidence."""
    return run.table("evidence")[column].nunique()


data = ["--training", digits / "training", "--test", digits / "test"]
short = [*data, "--max-steps", max_steps, "--log-every", 0, "--no-save"]
with ablation.without(choice.script, *range(1, 10)) as unchanged:
    independent = mpirun(2, unchanged, *short, show=False)
trainings = independent.table("start")
trainings[["world_size", "global_batch_size", "parameters"]]

# %% slideshow={"slide_type": "slide"}
alone = {"weights": kinds(independent, "weights_at_end")}
alone["images"] = kinds(independent, "images_seen")
guess.compare(trainings=len(trainings), **alone)

# %% [markdown]
# Each has world_size 1: the same work was done twice. With the same seed and images both end with
# the *same weights*, and never exchanged anything. So **equal weights prove nothing unless the
# ranks saw different images.**

# %% jupyter={"source_hidden": true} tags=["results"]
assert (trainings["world_size"] == 1).all(), "The script without steps must not know of others."
assert alone == {"weights": 1, "images": 1}, (
    "Two independent processes with one seed must do the same work."
)
workshop.save_results(independent=len(trainings), independent_weights=alone["weights"])

# %% [markdown]
# ## Six steps
#
# From `scripts/demos/train_tf_horovod_steps.py`: lines with `+` are new, with their step's number;
# `⋯` stands for lines that are left out.
#
# **1. Start Horovod.** `hvd.init()` connects to the other processes. From here on a process knows
# its rank. (`average` is step 9's.)
#
# **2. Pin the GPU.** Each process takes the GPU with the number of its local_rank (with more ranks
# than GPUs, `%` lets them share); otherwise all ranks of a host would use GPU 0.
# `set_memory_growth` keeps TensorFlow from taking a GPU's whole memory.
#
# **3. Scale the learning rate.** In Horovod's recipe each rank keeps the batch of one process
# (**weak scaling**). So the global batch is `size` times as large, and so is the rate, by SGD's
# rule of thumb (lesson 01 showed where that ends). If you divide a fixed global batch (**strong
# scaling**), as the measurement above and lesson 05's script do, leave the rate alone.

# %% slideshow={"slide_type": "slide"}
ablation.show_step(choice.script, 1, 2, 3)

# %% [markdown]
# **4. Average the gradients.** `tf.GradientTape` records the forward pass, so that `tape.gradient`
# can go backward. In Horovod's wrapper it returns the mean of the gradients over all ranks, by the
# all-reduce of lesson 02. So all ranks make the same update.

# %% slideshow={"slide_type": "slide"}
ablation.show_step(choice.script, 4)

# %% [markdown]
# **5. Broadcast.** The weights must also be equal to begin with, so rank 0 sends its own to all.
# Keras creates some variables as late as the first batch, such as the optimizer's momentum, and
# only those that exist can be sent. So this script broadcasts once, **after the first batch**.
# (That batch's update still mixes gradients of different weights. Lesson 05's script avoids it: it
# creates the variables early, with `optimizer.build`.)

# %% slideshow={"slide_type": "-"}
ablation.show_step(choice.script, 5)

# %% [markdown]
# **6. One rank writes.** Concurrent writes can corrupt the model's file. But never put a call that
# all ranks must make, such as an all-reduce, behind such an `if`: those that make it wait for the
# others for ever.

# %%
ablation.show_step(choice.script, 6)

# %% [markdown]
# ## Three steps that are easily forgotten
#
# **7. Shard the data.** Horovod doesn't split your data. All ranks shuffle in the same order, then
# rank r takes image r, r + size, and so on; images that fill no whole batch are left out.
#
# **8. Warm up.** At first the scaled learning rate may be too large, so raise it over the first
# steps, from about the rate of one rank.
#
# **9. Average the metrics.** Rank 0 computes the loss on *its* images. `Report`, which prints the
# metrics, calls `average` with each rank's mean loss of an epoch.

# %%
ablation.show_step(choice.script, 7, 8, 9)

# %% [markdown]
# <details><summary>With model.fit; three options; older examples</summary>
#
# Scripts that train with `model.fit` wrap the optimizer for step 4 and leave steps 5, 8 and 9 to
# callbacks ([`train_tf_fit.py`](../scripts/train/train_tf_fit.py) is such a script):
#
# ```python
# import horovod.tensorflow.keras as hvd
#
# model.compile(optimizer=hvd.DistributedOptimizer(optimizer), ...)
# callbacks = [
#     hvd.callbacks.BroadcastGlobalVariablesCallback(0),  # after the first batch, too
#     hvd.callbacks.MetricAverageCallback(),
#     hvd.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=3),
# ]
# ```
#
# - `compression=hvd.Compression.fp16` sends half the bytes: gradients travel as float16.
# - `backward_passes_per_step=4` adds up four batches' gradients before it all-reduces them.
# - `HOROVOD_HIERARCHICAL_ALLREDUCE=1` reduces within each host first. It needs GPUs and NCCL, whose
#   own trees do much the same (lesson 07): measure before you set it.
#
# `tf.train.AdamOptimizer` and hooks of `tf.Session` are TensorFlow 1's.
#
# </details>

# %% [markdown]
# ## Leave one out
#
# Now the proof: the complete script on two ranks, then three copies, each without one step.
#
# **Predict.** The script shuffles the images by a common seed. Then
# `set_random_seed(args.seed + rank)` gives each rank weights of its own. (Without step 1 the rank
# was 0 everywhere.)

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    complete="All nine steps, 2 ranks: how many different sets of weights at the end?",
    no_tape="Without step 4, the tape: how many?",
    no_broadcast="Without step 5, the broadcast, but with the tape: how many?",
    no_shard="Without step 7, the shard: how many?",
)

# %%
folder = tempfile.TemporaryDirectory(prefix="workshop-04-")  # goes with the notebook
trace = Path(folder.name) / "timeline.json"  # for the next section
variables = choice.environment | {"HOROVOD_TIMELINE": trace, "HOROVOD_CACHE_CAPACITY": 0}
runs = {"complete": mpirun(2, DEMOS / choice.script, *short, show=False, **variables)}
for name, step in {"no_tape": 4, "no_broadcast": 5, "no_shard": 7}.items():
    with ablation.without(choice.script, step) as copy:
        print(f"without step {step}: ", end="")
        runs[name] = mpirun(2, copy, *short, show=False, **choice.environment)

# %% slideshow={"slide_type": "slide"}
columns = {
    "weights_at_start": "weights at the start",
    "weights_after_first_step": "… after the first batch",
    "weights_at_end": "… at the end",
    "images_seen": "sets of images",
}
evidence = pd.DataFrame(
    {name: {columns[key]: kinds(run, key) for key in columns} for name, run in runs.items()}
).T
shared = {}
for name, run in runs.items():
    first, second = map(set, run.table("evidence")["images"])
    shared[name] = len(first & second)
evidence["images in common"] = pd.Series(shared)
left_out = {"no_tape": "step 4 (tape)", "no_broadcast": "step 5 (broadcast)"}
left_out |= {"no_shard": "step 7 (shard)"}
shown = evidence.rename(index={name: f"without {step}" for name, step in left_out.items()})
shown.rename_axis("different values on 2 ranks")

# %% slideshow={"slide_type": "-"}
ends = evidence["… at the end"]
guess.compare(**ends)

# %% [markdown]
# No run ended with an error. 1 means that both ranks had the same, and 2 that each had its own; the
# last column counts the images that both saw.
#
# - **complete**: the weights differ at the start, are equal after the first batch, and stay equal,
#   while the ranks see different images. This is one training. (Equal hashes don't say whether the
#   gradients are averaged or only added up.)
# - **without the tape**: the broadcast makes the weights equal, and then they drift apart: two
#   trainings.
# - **without the broadcast**: the ranks add the same update to different weights, which never
#   become equal. With one seed on all ranks you wouldn't notice, until only rank 0 loads a
#   checkpoint.
# - **without the shard**: equal weights, and yet a waste: from the second batch on, both ranks
#   computed the same gradients.
#
# If each rank sets its own seed *before* it builds the data set, the orders differ and the shards
# overlap: only *images in common* shows that.

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(evidence.loc["complete"]) == [2, 1, 1, 2, 0], (
    "The complete script must train one model."
)
assert ends["no_tape"] == 2 and ends["no_broadcast"] == 2, "A missing step left no trace."
assert evidence.loc["no_shard", "sets of images"] == 1, "Without step 7 all ranks see the same."
workshop.save_results(**{name: list(evidence.loc[name]) for name in evidence.index})

# %% [markdown]
# And step 5's reason? Count the optimizer's variables before the first batch and after it. The new
# ones are the momentum, one for each kernel and bias of the model.

# %%
hashes = runs["complete"].table("evidence").set_index("rank")
late = hashes.filter(like="optimizer_variables").T
late

# %% jupyter={"source_hidden": true} tags=["results"]
assert (late.iloc[1] > late.iloc[0]).all(), "The optimizer made no variables in the first step."
hashes = hashes["weights_at_end"]
assert hashes.nunique() == 1, "The ranks of the complete run differ: compare the table above."
workshop.save_results(hashes=hashes, optimizer_variables=late[0])

# %% [markdown]
# ## The Timeline
#
# Ranks may compute their gradients in a different order. So in each rank a thread wakes up every
# millisecond (`HOROVOD_CYCLE_TIME`) and tells rank 0 which gradients it has: the **negotiation**.
# What is ready on *all* ranks is copied into one buffer (**tensor fusion**), all-reduced, and
# copied back.
#
# `HOROVOD_TIMELINE` made rank 0 write down, by its own clock, when each of these began and ended.
# (Ranks cache requests that they have made before, and the file doesn't show those, so
# `HOROVOD_CACHE_CAPACITY=0` turned the cache off. Normal runs ask in full only at first.) Here is
# one of the last batches.

# %% jupyter={"source_hidden": true} tags=["figure"]
batch = max_steps - 2
phases = timeline.read(trace, step=batch)  # a row for each gradient and phase
starts = phases.pivot(index="tensor", columns="phase", values="start_ms")
ends = starts + phases.pivot(index="tensor", columns="phase", values="ms")
starts = starts.sort_values("all-reduce")
ends = ends.loc[starts.index]
first = starts["all-reduce"] >= ends["all-reduce"].cummax().shift(fill_value=0)  # of its all-reduce
messages = first.cumsum()  # those that overlap are one
s = "" if messages.nunique() == 1 else "s"
title = f"{len(starts)} gradients in {messages.nunique()} all-reduce{s}"
if "negotiate" in ends:
    idle = starts.groupby(messages)["all-reduce"].min() - ends.groupby(messages)["negotiate"].max()
    title += f", begun {' and '.join(f'{ms:.2g}' for ms in idle)} ms after "
    title += "their last requests" if s else "its last request"
bars = phases.rename(
    columns={"tensor": "row", "phase": "kind", "start_ms": "start", "ms": "length"}
)
copies = bars["kind"].str.startswith("copy")  # too short to be seen
plots.gantt(bars[~copies], title, "milliseconds")

# %% [markdown]
# **How to read it.** A row for each gradient, named after its layer and variable (the copies are
# left out):
#
# - `negotiate` lasts from the first rank's request to the last one's. About 1 ms: the gradient just
#   missed a cycle. Much longer in most batches: the rank that asked last is a **straggler**.
# - Bars of `all-reduce` that begin and end together are *one* all-reduce. If it is long, look at
#   the network, or at the cores that ranks share.
# - White between its bars: a gradient waits for the last one of its all-reduce, and is copied into
#   the buffer. (What else happens in the title's ms, from that last request to the start, the file
#   doesn't say.)
#
# Now by rank, still by rank 0's clock (change `batch` to see another). Computing begins where the
# last batch's all-reduce ended, so it holds all else that the script does, and lasts until rank 0
# *knew* the rank's last gradient, so up to a cycle of waiting counts as computing. Where a rank's
# row is white, an all-reduce runs, drawn in the row below. That doesn't count as waiting, so the
# waits may differ by less than the ranks. If all wait equally long, nobody is a straggler: probably
# they wait for Horovod's thread.

# %% jupyter={"source_hidden": true} tags=["figure"]
by_rank = timeline.by_rank(trace)
activity = by_rank[by_rank["step"] == batch].rename(columns={"start_ms": "start", "ms": "length"})
activity["row"] = "rank " + activity["rank"].astype(str)
activity.loc[activity["kind"] == "communicate", "row"] += ", Horovod's thread"
activity["kind"] = activity["kind"].replace("communicate", "all-reduce, with copies")
computed = activity[activity["kind"] == "compute"].set_index("rank")["length"]
waits = activity[activity["kind"] == "wait"].groupby("rank")["length"].sum()
waits = waits.reindex(computed.index, fill_value=0)
gap = computed.max() - computed.min()
title = f"Batch {batch}: rank 0 heard of both ranks' last gradients {gap:.2f} ms apart;\n"
title += "they waited " + " and ".join(f"{ms:.2f}" for ms in waits) + " ms"
plots.gantt(activity, title, "milliseconds")

# %% jupyter={"source_hidden": true}
cycle = 1  # ms; what rank 0 knows of a rank is up to a cycle late
ms = by_rank[by_rank["kind"] == "compute"].pivot(index="step", columns="rank", values="ms")
first, last = ms.iloc[:, 0], ms.iloc[:, -1]  # of the first and the last rank, batch by batch
shown = interleaved.verdict(last / first, noise=1 + cycle / ms.mean(axis=1))  # of rank 0
late = {"faster": f"rank {ms.columns[-1]} is a straggler", "slower": "rank 0 is a straggler"}
apart = "less than a cycle" if gap < 0.9 * cycle else "more than a cycle"
if 0.9 * cycle <= gap < 1.5 * cycle:  # its thread also takes some time to wake up
    apart = "about a cycle: one of them just missed it"
print(f"Batch {batch}: the ranks' last gradients came {gap:.2f} ms apart, {apart}.")
print(f"Rank 0 was the last in {(first > last).sum()} of {len(ms)} batches (the first is", end=" ")
print(f"left out), its median delay {(first - last).median():+.2g} ms. By lesson 01's", end=" ")
print(f"sign test, with a cycle as the noise floor: {late.get(shown, 'no straggler')}.")

# %% jupyter={"source_hidden": true} tags=["results"]
gradients = phases["tensor"].nunique()
assert gradients == 8, f"The model has 8 gradients, and the timeline shows {gradients}."
spans = ends.max() - starts.min()
assert spans["all-reduce"] > 0, "No all-reduce took any time: is the trace complete?"
workshop.save_results(gradients=gradients, phases=list(phases["phase"].unique()), phase_ms=spans)

# %% [markdown]
# You can open the same file in Chrome (chrome://tracing) or at ui.perfetto.dev; `print(trace)` says
# where it is.
#
# ## What fusion saves
#
# Eight gradients travel in one or two all-reduces. Does fusing them matter? Each message costs its
# latency, α, however small it is (lesson 02). So take 84 small gradients, and an emulated link that
# delays each message by 1 ms. `HOROVOD_FUSION_THRESHOLD` is what the buffer holds: 128 MB [since
# 0.21](https://github.com/horovod/horovod/releases/tag/v0.21.0); 0 turns fusion off.

# %%
guess = workshop.guess(
    times="84 gradients, 0.4 MB in all: how many times as long without fusion?",
)

# %%
latency = 0.001  # seconds
if reason := delayed_link.unavailable_reason():
    latency = 0  # through this machine's memory
    print(f"{reason} The difference will be smaller.")
fusion = pd.DataFrame()
if choice.library == "tensorflow":
    program = [DEMOS / "measure_fusion.py", "--tensors", 84, "--calls", 2, "--rounds", rounds]
    settings = {"fused": {}, "unfused": {"HOROVOD_FUSION_THRESHOLD": 0}}
    for name, variables in settings.items():  # Horovod takes the threshold when it starts
        run = mpirun(2, *program, show=False, latency=latency, **variables)
        fusion[name] = 1000 * run.table("fusion")["seconds"]
    ms = interleaved.summary(fusion)
    times = ms.loc["unfused", "median"] / ms.loc["fused", "median"]
    apart = ms.loc["unfused", "lowest"] > ms.loc["fused", "highest"]
    verdict = "slower" if apart else "no difference shown"
    shown = f"{times:.2g} times as long" if apart else "no difference shown"
    title = f"84 gradients without fusion: {shown} ({1000 * latency:.0f} ms a message)"
    plots.bar_chart(ms["median"], title, "ms for all gradients", texts="{:.1f} ms", spread=ms)
    guess.compare(times=times)
else:
    print("Not run: fusion is Horovod's.")

# %% [markdown]
# The black lines are the range of the rounds. (The bars are two runs, one after the other, since
# Horovod reads the threshold at its start. So all rounds of one must lie above all of the other.)
# A long message takes 3 ms, because it is first announced and confirmed (lesson 02's **rendezvous
# protocol**); a short one takes 1 ms. Once Horovod knows a gradient (its *cache*), a rank announces
# it by a bit, and an all-reduce of these bits finds what all ranks have. With 1 ms for each trip
# the delays alone are:
#
# | delays, in ms | fused: 1 all-reduce | unfused: 84 |
# |---|---|---|
# | agree on what is ready: up to a cycle, an all-reduce of bits | 1 + 1 = 2 | 2 |
# | send: if MPI takes a ring, two steps on two ranks (lesson 02) | 2 · 3 = 6 | 84 · 2 · 1 = 168 |
# | sum | 8 | 170 |
#
# By these delays alone unfused takes 170 / 8 = 21 times as long.

# %%
if len(fusion) and latency:
    rest = ms["median"] - pd.Series({"fused": 8, "unfused": 170})
    parts = [f"{rest[name]:.0f} of {ms.loc[name, 'median']:.0f} ms {name}" for name in rest.index]
    print("Not explained by these delays, nor broken down here:", " and ".join(parts) + ".")
    print(f"Unfused takes {times:.2g} times as long, not 21. So the delays say that fusion helps,")
    print("but don't predict by how much.")

# %% [markdown]
# With `HOROVOD_AUTOTUNE=1` Horovod [tries thresholds and cycle
# times](https://horovod.readthedocs.io/en/stable/autotune_include.html) during the first steps, and
# keeps the best.

# %% jupyter={"source_hidden": true} tags=["results"]
if len(fusion):
    workshop.save_results(unfused_times=times, fusion_verdict=verdict)

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## When does a second rank pay?
#
# However many images a rank computes, the gradients have the same number of bytes, and exchanging
# them alone takes the same time. So **r = exchange alone / compute** sets how large the share of
# the ceiling can be (lesson 01). The first measurement also had a deliberately short step: 8
# images.
#
# About half of an exchange alone is Horovod's clock, not bytes: exchanges that are called one after
# the other last one of its periods each, about 1.1 ms. With `HOROVOD_CYCLE_TIME=0.1` they took 0.5
# to 0.7 ms (measured once, on 2026-11-28, on two cores of an AMD EPYC). So r is Horovod's here, not
# the link's.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    small="A step of 8 images: how many times as fast as one process are two ranks?",
)

# %%
measured = {f"{global_batch_size} images": large, "8 images": small}
by_size = table(measured)
one_process = [1000 * scaling.rounds["alone"].median() for scaling in measured.values()]
by_size.insert(1, "one process, ms", pd.Series(one_process, by_size.index).round(1))
by_size

# %% slideshow={"slide_type": "subslide"}
columns = ["r", "share", "low", "high", "r_low", "r_high", "label", "source"]
dots, reached = [], []
for name, scaling in measured.items():
    r, share, times = scaling.r, scaling.share, scaling.speed_up.median
    label = f"2 ranks, {name}: {times:.3g} times as fast"
    dots.append([r.median, share.median, share.low, share.high, r.low, r.high, label, "measured"])
    percent = f"{100 * share.median:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"
    reached.append(f"{name} reach {percent} of the ceiling (r = {r.median:.2g})")
plots.scaling_map(pd.DataFrame(dots, columns=columns), ",\n".join(reached))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
guess.compare(small=small.speed_up.median)
slower = (small.rounds["alone"] < small.rounds["step"]).sum()
print(f"Two ranks on 8 images are {small.speed_up.fixed} times as fast as one process, and")
print(f"slower in {slower} of {rounds} rounds.")
ceilings = [each.rounds["alone"] / each.rounds["compute"] for each in (small, large)]
lower = sum(a < b for a in ceilings[0] for b in ceilings[1])
print(f"The ceiling of 8 images is {small.ceiling.fixed}, against {large.ceiling.fixed}: lower in")
print(f"{lower} of the {rounds**2} pairs of a round of each.")
if lower > 0.9 * rounds**2:
    print("(Probably a step has a fixed cost, so half the images don't take half the time.)")
for name, scaling in measured.items():
    timed = scaling.rounds
    to_curve = (timed["compute"] + timed["exchange"]) / timed["step"]  # share · (1 + r)
    curve = interleaved.verdict(to_curve, noise=timed["step"] / timed["again"])
    curve = {"faster": "above it", "slower": "below it"}.get(curve, curve)
    print(f"{name}: in the median round the share is {to_curve.median():.2f} times the", end=" ")
    print(f"solid curve's: {curve}.")
pays = {"faster": "yes", "slower": "no", "no difference shown": "no difference shown"}
answers = [f"with {name}, {pays[compared(each, 'alone')]}" for name, each in measured.items()]
print(f"So does a second rank pay? In a step {'; '.join(answers)}.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    scaling={name: scaling.record() for name, scaling in measured.items()},
    ceiling=large.ceiling.median,
    small_share=small.share.median,
)

# %% [markdown]
# The speed-up decides whether a second rank pays. The ceiling is the machine's: if two independent
# processes are only 1.6 times as fast as one, no library is to blame. The **share of the ceiling**
# shows what working together costs: waiting for the slower rank, the exchange, and the library's
# own work. A dot below the solid curve (lesson 01) by more than noise lost more than the exchange
# alone.

# %% [markdown]
# ## Exercises
#
# In [exercises/04_horovod_on_the_notebook.ipynb](exercises/04_horovod_on_the_notebook.ipynb):
#
# 1. *Convert a script* (20 minutes, medium): six TODOs turn `train_tf.py` into a Horovod script;
#    two real ranks and the evidence table check it.
# 2. *Warm up* (5 minutes, easy): the learning rate of a step.
# 3. *Which step is missing?* (10 minutes, medium): find it from the evidence.

# %% [markdown]
# ## Check yourself

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("04")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - `mpirun` starts processes and lets them meet. It splits no data and averages nothing.
# - rank counts all processes, local_rank those of one host. With two or more hosts they differ.
# - Six steps: init, pin, scale the rate, wrap the tape, broadcast after the first batch, save on
#   rank 0. Three more: shard, warm up, average metrics.
# - A script that lacks the tape, the broadcast or the shard raises no error. Equal weights
#   several batches after the broadcast, *and* no images in common, prove that the ranks exchange.
# - The speed-up is the ceiling, which two independent processes show, times the share of it that
#   ranks reach. r sets how large the share can be. Believe "faster" only if nearly all rounds are
#   on the same side of 1, by more than noise.

# %% [markdown]
# ## Clean up
#
# All ranks and the job have ended; the Timeline goes with the notebook's process. A notebook
# instance costs money until you stop it.
#
# ## Next
#
# [05 · Horovod on training instances](05_horovod_on_training_instances.ipynb): the same steps but
# for the scaled rate and its warm-up, on instances that you rent for minutes.

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
# # 04 · Horovod on the notebook
#
# **After this lesson you can**
#
# - start several processes with `mpirun` and say what size, rank and local_rank are;
# - turn a one-process script into a Horovod script, step by step;
# - say what goes wrong when a step is missing, and prove it;
# - read a Horovod Timeline;
# - measure what a second rank brings, against what the machine can give.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb) and [lesson 02](02_collectives.ipynb): you
# know why ranks average gradients, and what an all-reduce is.
#
# **Time:** 35 minutes.
#
# **Where it runs:** the ranks run where this notebook runs: on your machine, or on a SageMaker
# notebook instance. One small job runs where `target` says, `"local"` or `"aws"`.
#
# **Cost on AWS:** that job takes two `ml.c5.xlarge` for a few minutes. A cell below says what that
# is in dollars, before the job starts. A notebook instance costs as long as it is on.

# %% [markdown]
# ## Set up
#
# - `max_steps`: how many steps each small training run has. Proofs need few.
# - `instance_count`, `processes_per_host`: of the one job.
# - `batch`: images per rank and step when speed is measured.
# - `turn_steps`, `rounds`: how long and how often speed is measured.

# %% tags=["parameters"]
target = "local"
seat = "me"
max_steps = 10
instance_count = 2
processes_per_host = 2
batch = 1024
turn_steps = 12
rounds = 7

# %%
import tempfile
from pathlib import Path

import pandas as pd

import data_prep
import workshop
from workshop import DEMOS, TRAIN, plots
from workshop.launch.horovod_fallback import horovod_script
from workshop.launch.mpirun import mpirun
from workshop.lesson import ablation
from workshop.measure import interleaved, timeline

session = workshop.session(target=target, seat=seat)
choice = horovod_script("train_tf_horovod_steps.py")
print(choice.explanation)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = ["--training", digits / "training", "--test", digits / "test"]
short = [*data, "--max-steps", max_steps, "--log-every", 0, "--no-save"]

# %% [markdown]
# ## Processes that meet
#
# Horovod 0.28.1, of June 2023, is its last release. Nobody maintains it any more; new projects
# take PyTorch's DDP or TensorFlow's own strategies. Why learn it? Much training code still in use
# is Horovod code. And its handful of calls name the ideas more plainly than what came after: you
# see every step that the others do behind your back.
#
# Start a script twice and you have two processes. Neither knows that the other exists. To work
# together they need three things: a number each, the count of all, and a way to send messages.
#
# **MPI** is a standard for this (since 1994): it says what such messages look like to a program.
# Open MPI is a library that implements it. **`mpirun -np 2 COMMAND`** starts the command twice,
# gives each copy its number, and ends all when one fails. Horovod uses MPI for two things: to
# meet, and, on CPUs, to send gradients. It can do both without MPI, through a library called Gloo
# (`horovodrun --gloo`). This kit builds it with MPI alone, which is how SageMaker starts it.
#
# Here is a program of two lines. Every rank says who it is and adds up all ranks' numbers.

# %%
hello = """from mpi4py import MPI; ranks = MPI.COMM_WORLD
print('rank', ranks.rank, 'of', ranks.size, '- our ranks add up to', ranks.allreduce(ranks.rank))"""
met = mpirun(4, "python", "-c", hello)

# %% jupyter={"source_hidden": true} tags=["results"]
sums = [line.text for line in met.lines if line.text.endswith("add up to 6")]
assert len(sums) == 4, f"{len(sums)} of 4 ranks knew the sum: run `make doctor`."
workshop.save_results(ranks_that_knew_the_sum=len(sums))

# %% [markdown]
# You should see four lines, in any order: nobody decides who prints first. The sum is 6 on each,
# which no process could know by itself. The first line is the command; you can type it in a
# terminal. Its options:
#
# | option | why |
# |---|---|
# | `--map-by :OVERSUBSCRIBE` | allow more ranks than cores |
# | `--bind-to none` | tie no rank to one core |
# | `--mca mpi_yield_when_idle 1` | who waits gives its core away, and does not spin on it |
# | `--output tag` | say which rank printed a line |
# | `--allow-run-as-root` | only if you are root, who is refused otherwise |
#
# `mpirun(...)` in this notebook is a thin helper around that command. The stop button ends every
# rank.

# %% [markdown]
# ## Who is who
#
# | word | Horovod | meaning |
# |---|---|---|
# | **size** | `hvd.size()` | how many processes there are in all (elsewhere: world_size) |
# | **rank** | `hvd.rank()` | the number of a process among all, from 0 |
# | **slot** | | a place for one process on a host; `mpirun` fills slots host by host |
# | **local_size** | `hvd.local_size()` | how many processes run on this host |
# | **local_rank** | `hvd.local_rank()` | the number of a process on its own host, from 0 |
# | **cross_rank** | `hvd.cross_rank()` | the number of its host, from 0 (of equal hosts) |
#
# Rank is for all that must happen once: printing, saving. local_rank is for what hosts have
# several of: GPUs. On the notebook there is only one host. So are local_rank and rank the same?

# %%
here = mpirun(4, DEMOS / "show_places.py", "--library", "mpi4py", show=False)
here.table("place").drop(columns="library")

# %% [markdown]
# Here, yes: rank and local_rank are equal, and cross_rank is 0. That is why code that mixes them
# up works on a notebook and fails on two instances. To see them differ you need two hosts. So run
# the same script as a job on two instances with two processes each. What `fit()` does to start it
# is the subject of [lesson 05](05_horovod_on_training_instances.ipynb).
#
# **Predict, then run.**

# %%
guess = workshop.guess(
    local_rank="2 hosts with 2 slots each: what is the local_rank of rank 3?",
    cross_rank="And its cross_rank?",
)

# %%
from sagemaker.tensorflow import TensorFlow

print(workshop.cost("ml.c5.xlarge", instance_count=instance_count, seconds=180))
estimator = TensorFlow(
    entry_point="show_places.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=instance_count,
    distribution={"mpi": {"enabled": True, "processes_per_host": processes_per_host}},
    **session.job_settings("places", source_dir=DEMOS),
)
estimator.fit(wait=False)
job = workshop.follow(estimator)

# %%
columns = ["rank", "host", "local_rank", "local_size", "cross_rank"]
found = job.table("place").sort_values("rank", ignore_index=True)
found[columns]

# %% jupyter={"source_hidden": true} tags=["figure"]
hosts = found.groupby("host", sort=False)
title = f"{len(found)} ranks on {len(hosts)} host(s)"
with plots.canvas(title, "", size=(1.3 * len(found) + 1, 2.3)) as axes:
    colours = [plots.COLOURS[local_rank] for local_rank in found["local_rank"]]
    axes.scatter(found.index, [0] * len(found), s=1100, c=colours)
    for at, one in found.iterrows():
        axes.text(at, 0, one["rank"], ha="center", va="center", size=15, color="white")
        where = f"local_rank {one['local_rank']}\ncross_rank {one['cross_rank']}"
        axes.text(at, -0.55, where, ha="center", va="top", size=8)
    for host, ranks in hosts.groups.items():
        left, width = ranks.min() - 0.45, len(ranks) - 0.1
        axes.broken_barh([(left, width)], (-1.2, 1.9), facecolor="none", edgecolor="0.5")
        axes.text(left + width / 2, 0.8, f"host {host}", ha="center")
    axes.set(xlim=(-0.6, len(found) - 0.4), ylim=(-1.3, 1.2))
    axes.axis("off")

# %% [markdown]
# You should see ranks 0 and 1 on the first host, 2 and 3 on the second: the slots of one host are
# filled before the next. Rank 3 is local_rank 1 of host 1. With one GPU per slot it must take
# the GPU with the number 1: its host has no GPU 3.
#
# (If all four are on one host, this machine has no namespaces for instances: `make doctor` says
# why, and lesson 05 what you miss.)

# %%
guess.compare(local_rank=found["local_rank"].iloc[-1], cross_rank=found["cross_rank"].iloc[-1])

# %% jupyter={"source_hidden": true} tags=["results"]
size = instance_count * processes_per_host
assert sorted(found["rank"]) == list(range(size)), "A rank is missing: look at job.lines."
assert (found["cross_rank"] * found["local_size"] + found["local_rank"] == found["rank"]).all(), (
    "Ranks do not fill the hosts one after the other: did the job ask for another mapping?"
)
workshop.save_results(
    hosts=found["host"].nunique(),
    local_ranks=found["local_rank"],
    cross_ranks=found["cross_rank"],
    places_from=found["library"].iloc[0],
)

# %% [markdown]
# ## mpirun alone makes nothing parallel
#
# Take a script that trains in one process, and change nothing in it. Start it with `mpirun -np 2`.
# (`ablation.without` below writes a copy of a Horovod script without its nine steps, which you will
# meet soon. What is left trains in one process.)
#
# At its end each process prints hashes: of its weights, and of the images that it saw. Equal hash
# means: equal to the last bit.

# %%
guess = workshop.guess(
    trainings="The unchanged script under mpirun -np 2: how many separate trainings run?",
    weights="How many different sets of weights are there at the end?",
    images="How many different sets of images did the processes see?",
)


# %%
def kinds(run, column: str) -> int:
    """How many different values the ranks of a run have in a column of their evidence."""
    return run.table("evidence")[column].nunique()


with ablation.without(choice.script, *range(1, 10)) as unchanged:
    strangers = mpirun(2, unchanged, *short, show=False)
trainings = strangers.table("start")
trainings[["world_size", "global_batch_size", "parameters"]]

# %% [markdown]
# Two trainings, each of world_size 1: two strangers who did the same work twice. Both used the
# same seed and took the same images, so both ended with the *same weights*, without a word
# between them. Remember this: **equal weights prove nothing unless the ranks saw different
# images.**

# %%
alone = {"weights": kinds(strangers, "weights_at_end"), "images": kinds(strangers, "images_seen")}
guess.compare(trainings=len(trainings), **alone)

# %% jupyter={"source_hidden": true} tags=["results"]
assert (trainings["world_size"] == 1).all(), "The script without steps must not know of others."
assert alone == {"weights": 1, "images": 1}, "Two strangers with one seed must do the same work."
workshop.save_results(strangers=len(trainings), strangers_weights=alone["weights"])

# %% [markdown]
# ## Six steps
#
# Every Horovod script has the same six. Each diff below is cut from the script that runs further
# down, `scripts/demos/train_tf_horovod_steps.py`: lines with `+` are new in that step.
#
# **1. Start Horovod. 2. Pin the GPU.** `hvd.init()` meets the others. From here on a process knows
# its rank. Then each takes the GPU with the number of its local_rank; without that, all ranks of a
# host would crowd on GPU 0. Memory growth: by default TensorFlow takes the whole memory of every
# GPU that it sees. On a CPU, `prepare` shares out the cores instead.
#
# **3. Scale the learning rate.** Horovod's recipe keeps each rank's batch. So with `size` ranks
# the global batch is `size` times as large, and there are as many times fewer steps in an epoch.
# A larger batch has a less noisy gradient and bears a larger step; the rule of thumb multiplies
# the learning rate by `size` too. If you divide a fixed global batch among the ranks, as lesson
# 05's script does, you leave the rate alone.

# %%
ablation.show_step(choice.script, 1, 2, 3)

# %% [markdown]
# **4. Average the gradients.** The heart. What `tape.gradient` returns is now the mean over all
# ranks: the all-reduce of lesson 02. All ranks apply the same numbers.

# %%
ablation.show_step(choice.script, 4)

# %% [markdown]
# **5. Broadcast.** Equal updates keep weights equal only if they were equal before. So rank 0
# sends its own to all. *When* matters: variables must exist first. Keras creates some only when
# the first batch comes, an optimizer's momentum for example. A broadcast before that leaves them
# out, in silence. So broadcast once, **after the first step**. Whatever each rank did in that
# step is overwritten. (Lesson 05's script builds its optimizer first, by `optimizer.build`; then
# everything exists, and the broadcast may come before the first step.)

# %%
ablation.show_step(choice.script, 5)

# %% [markdown]
# **6. One rank writes.** The weights are equal, so one copy is enough, and several ranks writing
# one file destroy it. Only rank 0 saves. A rank must never skip an all-reduce in this way: the
# others would wait for it for ever.

# %%
ablation.show_step(choice.script, 6)

# %% [markdown]
# ## Three steps that most people forget
#
# **7. Shard the data.** Nothing in Horovod splits your data. All ranks shuffle in the same order,
# then rank r takes image r, r + size, and so on.
#
# **8. Warm up.** Fresh weights change fast, and a learning rate of many ranks may throw them off.
# So begin with the rate of one rank and grow to the full one over the first steps.
#
# **9. Average the metrics.** What rank 0 prints is the loss on *its* images. The loss of the
# model is the mean over all ranks.

# %%
ablation.show_step(choice.script, 7, 8, 9)

# %% [markdown]
# On the web you will meet older forms. `AdamOptimizer(lr=…)`, `tf.Session` hooks and
# `BroadcastGlobalVariablesHook` are TensorFlow 1: gone. Scripts that import `keras.engine` use a
# private module: gone. Under `model.fit`, `hvd.DistributedOptimizer` and
# `BroadcastGlobalVariablesCallback` do steps 4 and 5, the latter after the first batch, for the
# reason above. `MetricAverageCallback` fails with tf-keras, as it looks for Keras 2 in Keras 3's
# place. `DistributedGradientTape` does not depend on Keras at all. That is why this course uses
# it.

# %% [markdown]
# ## Leave one out
#
# Now the proof. First the complete script on two ranks; then three copies, each without one step.
# `HOROVOD_TIMELINE` tells Horovod to note what it does; you will read that below.
#
# **Predict.** Each rank starts with random numbers of its own, so with other weights, as in
# scripts that use dropout.

# %%
guess = workshop.guess(
    complete="All nine steps, 2 ranks: how many different sets of weights at the end?",
    no_tape="Without step 4, the tape: how many?",
    no_broadcast="Without step 5, the broadcast, but with the tape: how many?",
    no_shard="Without step 7, the shard: how many?",
)

# %%
folder = tempfile.TemporaryDirectory(prefix="workshop-04-")  # goes with the notebook
trace = Path(folder.name) / "timeline.json"
variables = choice.environment | {"HOROVOD_TIMELINE": trace}
runs = {"complete": mpirun(2, DEMOS / choice.script, *short, show=False, **variables)}
for name, step in {"no_tape": 4, "no_broadcast": 5, "no_shard": 7}.items():
    with ablation.without(choice.script, step) as copy:
        print(f"without step {step}: ", end="")
        runs[name] = mpirun(2, copy, *short, show=False, **choice.environment)

# %%
questions = ["weights_at_start", "weights_after_first_step", "weights_at_end", "images_seen"]
table = pd.DataFrame({name: {q: kinds(run, q) for q in questions} for name, run in runs.items()}).T
for name, run in runs.items():
    first, second = map(set, run.table("evidence")["images"])
    table.loc[name, "images in common"] = len(first & second)
table = table.astype(int)
table.rename_axis("how many different …")

# %% [markdown]
# All four ended without an error. Read the table row by row: 1 means that both ranks had the same,
# 2 that each had its own. The last column counts the images that both ranks saw.
#
# - **complete**: they start apart, are equal after the first step, stay equal, and saw different
#   images. This is one training, with twice as many images in each step.
# - **no_tape**: equal after the broadcast, then they drift apart: two trainings.
# - **no_broadcast**: they add the same update to different weights, and stay apart for ever. The
#   gradients that they average belong to different models. Had all ranks used one seed, you would
#   not have noticed, until the day on which only rank 0 loads a checkpoint.
# - **no_shard**: equal weights, and yet a waste: both ranks computed the same gradients.
#
# The columns of images are worth a look even with step 7. In a first version of this script each
# rank had set its own seed *above* the data set. So each shuffled in its own order, the shards
# overlapped, and only the images told.

# %%
ends = table["weights_at_end"]
guess.compare(**ends)

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(table.loc["complete"]) == [2, 1, 1, 2, 0], "The complete script must train one model."
assert ends["no_tape"] == 2 and ends["no_broadcast"] == 2, "A missing step left no trace."
assert table.loc["no_shard", "images_seen"] == 1, "Without step 7 all ranks see the same images."
workshop.save_results(**{name: list(table.loc[name]) for name in table.index})

# %% [markdown]
# Why after the first step? Count the optimizer's variables before it and after it.

# %%
evidence = runs["complete"].table("evidence").set_index("rank")
late = evidence.filter(like="optimizer_variables").T
late

# %% jupyter={"source_hidden": true} tags=["results"]
assert (late.iloc[1] > late.iloc[0]).all(), "The optimizer made no variables in the first step."
hashes = evidence["weights_at_end"]
assert hashes.nunique() == 1, "The ranks of the complete run differ: run the cell again."
workshop.save_results(hashes=hashes, optimizer_variables=late[0])

# %% [markdown]
# ## The Timeline
#
# How does Horovod know which gradients to average, if ranks compute them in different order? A
# thread in each rank wakes up every millisecond (`HOROVOD_CYCLE_TIME`) and they **negotiate**:
# which gradients are ready on *all* ranks? Those are copied into one buffer (**tensor fusion**:
# one large message instead of many small ones), all-reduced, and copied back. Rank 0 wrote down
# when.

# %%
one = timeline.read(trace, step=max_steps - 2)  # a row for each gradient and phase
with_ends = one.assign(end_ms=one["start_ms"] + one["ms"]).groupby("phase", sort=False)
spans = with_ends.agg(
    start=("start_ms", "min"), end=("end_ms", "max"), tensors=("tensor", "nunique")
)
spans.insert(0, "ms", spans["end"] - spans["start"])  # phases of several gradients overlap
spans[["ms", "tensors"]].round(3)

# %% jupyter={"source_hidden": true} tags=["figure"]
tensors = list(dict.fromkeys(one["tensor"]))
title, hatches = "One step: what happened to each gradient", ("", "//", "..", "xx")
with plots.canvas(title, "milliseconds", size=(7.5, 0.32 * len(tensors) + 1.6)) as axes:
    for at, (phase, rows) in enumerate(one.groupby("phase", sort=False)):
        look = {"color": plots.COLOURS[at], "hatch": hatches[at], "edgecolor": "white"}
        rows_at = rows["tensor"].map(tensors.index)
        axes.barh(rows_at, rows["ms"], left=rows["start_ms"], height=0.7, label=phase, **look)
    axes.set_yticks(range(len(tensors)), tensors)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.45, -0.22))

# %% [markdown]
# You should see a bar for each gradient of the model. Bars that begin and end together were
# fused. `negotiate` is mostly waiting: for the end of a cycle, and for the other rank to be
# ready. A long `negotiate` means that one rank is late, so look at the computation; a long
# `all-reduce` means that the network is slow. With the PyTorch stand-in only the all-reduces are
# known.
#
# You can open the same file in a browser (chrome://tracing). For many hosts Horovod can also
# reduce in two tiers (`HOROVOD_HIERARCHICAL_ALLREDUCE=1`) and search for good settings by itself
# (`HOROVOD_AUTOTUNE=1`).

# %% jupyter={"source_hidden": true} tags=["results"]
gradients = one["tensor"].nunique()
assert gradients == 8, f"The model has 8 gradients, and the timeline shows {gradients}."
assert spans.loc["all-reduce", "ms"] > 0, "No all-reduce took any time: is the trace complete?"
workshop.save_results(gradients=gradients, phases=list(spans.index), phase_ms=spans["ms"])

# %% [markdown]
# ## Is it faster?
#
# Two ranks do twice the work in the same time, if nothing holds them up. Two things do: they wait
# for each other, and the machine may not have two whole cores to give (a virtual core is often
# half of a real one). To tell these apart, measure three things:
#
# - **one process**, training alone;
# - **two independent**: two processes that know nothing of each other, side by side, as "2 ranks
#   apart" in lesson 01. This is the *machine's own ceiling*: no library can beat it;
# - **two ranks**, which average their gradients in every step.
#
# Each computes with one thread and 1,024 images per step. There are four processes: one that
# trains alone and also in "two independent", its partner there, and two ranks. All are started
# first. Then they are measured alternately, under a second each, and the others are paused. So a
# busy moment of the machine hits all alike.

# %%
guess = workshop.guess(
    ceiling="How many times as fast as one process are two independent ones?",
    speedup="How many times as fast as one process are two ranks?",
)

# %%
speeds = interleaved.training_speeds(
    batch, turn_steps, rounds, library=choice.library, **choice.environment
)
speeds.round().astype(int)

# %%
median = speeds.median()
with plots.canvas("What a second rank brings", "", "images per second") as axes:
    axes.bar(range(3), median, color=plots.COLOURS[:3], width=0.55)
    axes.set_xticks(range(3), [f"{name}\n{value:,.0f}" for name, value in median.items()])
    for at, name in enumerate(speeds):
        axes.plot([at] * len(speeds), speeds[name], "o", color="0.25", markersize=3)
    axes.grid(axis="x", visible=False)

# %%
ceiling = (speeds[interleaved.INDEPENDENT] / speeds[interleaved.ONE]).median()
speedup = (speeds[interleaved.RANKS] / speeds[interleaved.ONE]).median()
share = (speeds[interleaved.RANKS] / speeds[interleaved.INDEPENDENT]).median()
print(f"Two independent: {ceiling:.2f} x one process. Two ranks: {speedup:.2f} x.")
print(f"So two ranks reach {share:.0%} of what this machine can give to two processes.")
if share < 0.8:
    print("Another program probably uses the cores. Go on, and measure again later.")
guess.compare(ceiling=ceiling, speedup=speedup)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(ceiling=ceiling, speedup=speedup, share=share)

# %% [markdown]
# The dots are single rounds, the bars their medians. On a quiet machine you should see a share of
# 90 % or more; on a busy one less, because in each step both wait for the one that was disturbed.
#
# Judge Horovod by the share, not by the
# speed-up: if two strangers together are only 1.6 times as fast as one, the machine is full, and
# no library is to blame. What is missing to 100 % is the price of averaging: the Timeline showed
# it, some milliseconds in each step, and the slower rank of each step. That price does not grow
# with the batch. So large steps scale, and small ones do not: set `batch` to 64 and measure
# again.

# %% [markdown]
# ## One process, several devices
#
# On *one* machine with several GPUs TensorFlow needs neither MPI nor Horovod.
# `tf.distribute.MirroredStrategy` keeps a copy of the model on each device, in a single process,
# and averages between them. There is no rank: the process gives a part of each batch to every
# device. This machine has perhaps no GPU, so the script divides the CPU into two logical devices.

# %%
workshop.show_function("train/train_tf_mirrored.py", "train_step")

# %%
workshop.show_function("train/train_tf_mirrored.py", "all_replicas_step")

# %%
few = [*data, "--max-steps", max_steps, "--log-every", 0, "--save-to", Path(folder.name) / "model"]
mirrored = mpirun(1, TRAIN / "train_tf_mirrored.py", "--devices", 2, *few, show=False)
replicas = pd.DataFrame([one for one in mirrored.events if one["event"] == "weights"])
replicas = replicas.rename(columns={"rank": "replica"}).drop(columns="event")
replicas.assign(weights_sha256=replicas["weights_sha256"].str[:16] + "…")

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(replicas) == 2, f"{len(replicas)} replicas trained, not 2."
assert replicas["weights_sha256"].nunique() == 1, "The replicas differ: did they average?"
workshop.save_results(replicas=len(replicas))

# %% [markdown]
# Note the division by `world_size`: here `apply_gradients` *sums* over the devices. Forget it and
# you train with twice the learning rate. It ends at the machine's edge; for more machines
# TensorFlow has MultiWorkerMirroredStrategy (lesson 05).
#
# ## Four ways to run Horovod on SageMaker
#
# | way | where the ranks run | lesson |
# |---|---|---|
# | 1 | on the notebook instance itself, by `mpirun` | this one |
# | 2 | on training instances, one process each, by `fit()` | 05 |
# | 3 | on training instances, several processes each | 05 |
# | 4 | the same in your own VPC | 05 |
#
# Way 1 is for trying things out. The instance is paid for while you read and think, it has one
# size, and when the browser closes nobody watches. A job takes what it needs, for as long as it
# needs it.

# %% [markdown]
# ## Exercises
#
# In [exercises/04_horovod_on_the_notebook.ipynb](exercises/04_horovod_on_the_notebook.ipynb):
#
# 1. *Who is where?* (5 minutes, easy): compute host and local_rank from slots.
# 2. *Warm up* (5 minutes, medium): the learning rate of a step.
# 3. *Which step is missing?* (10 minutes, hard): find it from the evidence.

# %% [markdown]
# ## Check yourself

# %%
workshop.quiz("04")

# %% [markdown]
# ## Summary
#
# - `mpirun` starts processes and lets them meet. It splits no data and averages nothing.
# - rank counts all processes, local_rank those of one host. They differ from two hosts on.
# - Six steps: init, pin, scale the rate, wrap the tape, broadcast after the first step, save on
#   rank 0. Three more: shard, warm up, average metrics.
# - A script that lacks a step ends well. Equal weights *and* different images are the proof.
# - Measure a speed-up against what the machine can give to strangers.
#
# ## Clean up
#
# Every rank has ended, the job too; the copies of the script are gone. The Timeline and the model
# of this run go with the notebook's process. A notebook instance on AWS costs until you stop it.
#
# ## Next
#
# [05 · Horovod on training instances](05_horovod_on_training_instances.ipynb): the same nine
# steps, on computers that you rent for minutes.

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
# - measure what a second rank gains, compared with what the machine can give.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb) and [lesson 02](02_collectives.ipynb): you
# know why ranks average gradients, and what an all-reduce is.
#
# **Time:** 35 minutes.
#
# **Where it runs:** the ranks run where this notebook runs: on your machine, or on a SageMaker
# notebook instance ([how](../docs/teaching/class_on_aws.md#on-a-notebook-instance)). One small job
# runs where `target` says, `"local"` or `"aws"`. Nobody has run
# this lesson on AWS yet: what it says of AWS comes from AWS's documentation and its tools' source.
#
# **Cost on AWS:** about 0.03 USD: that job takes two `ml.c5.xlarge` for an estimated 5 minutes
# (us-east-1, price list of 2026-09-27); at most 0.08 USD. A cell below computes both before the
# job starts. A notebook instance costs money as long as it is on.

# %% [markdown]
# ## Set up
#
# - `max_steps`: how many steps each small training run has. The proofs below need few.
# - `instance_count`, `processes_per_host`: of the one job.
# - `max_run`: the number of seconds after which SageMaker stops that job.
# - `batch`: images per rank and step when speed is measured.
# - `turn_steps`, `rounds`: how long and how often speed is measured.

# %% tags=["parameters"]
target = "local"
seat = "me"
max_steps = 10
instance_count = 2
processes_per_host = 2
max_run = 600
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
from workshop.launch.horovod import horovod_script
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
# **Horovod** adds all-reduce to TensorFlow, Keras, PyTorch and MXNet training scripts. This course
# runs it with TensorFlow. (Its PyTorch module doesn't compile with PyTorch 2.1 or later:
# [horovod#3996](https://github.com/horovod/horovod/issues/3996).) Its last release is 0.28.1, of
# June 2023; new projects take PyTorch's DDP or TensorFlow's own strategies. Why learn it? Much
# training code still in use is Horovod code. And you write every step yourself that newer libraries
# do behind the scenes.
#
# Start a script twice and you have two processes. Neither knows that the other exists. To work
# together, each needs its own number, the total, and a way to send messages.
#
# **MPI** is a standard for this (since 1994): it defines the calls by which a program sends and
# receives messages. Open MPI is a library that implements it. **`mpirun -np 2 COMMAND`** starts the
# command twice, gives each copy its number, and kills the rest if one fails. Horovod uses MPI for
# two things: to let the processes find each other and, on CPUs, to send gradients. (It can also do
# both through another library, Gloo: `horovodrun --gloo`. Horovod's own page finds MPI faster on
# CPUs ([mpi.rst](https://github.com/horovod/horovod/blob/master/docs/mpi.rst), read on 2026-11-24).
# SageMaker starts it with MPI, and so does this course.)
#
# Here is a program of two lines. It uses `mpi4py`, the Python package for MPI. Every rank prints
# who it is. Then `allreduce` adds up the numbers of all ranks, 0 + 1 + 2 + 3.

# %%
hello = """from mpi4py import MPI; ranks = MPI.COMM_WORLD
print('rank', ranks.rank, 'of', ranks.size, '- our ranks add up to', ranks.allreduce(ranks.rank))"""
met = mpirun(4, "python", "-c", hello)

# %% jupyter={"source_hidden": true} tags=["results"]
sums = [line.text for line in met.lines if line.text.endswith("add up to 6")]
assert len(sums) == 4, f"{len(sums)} of 4 ranks knew the sum: run `make doctor`."
workshop.save_results(ranks_that_knew_the_sum=len(sums))

# %% [markdown]
# You should see the command and then four lines in any order: the ranks run at the same time. The
# sum is 6 on each, so they did exchange their numbers. With Open MPI 5 you can also type the
# command in a terminal; Open MPI 4 spells two options differently: `--oversubscribe` and
# `--tag-output`. The options:
#
# | option | why |
# |---|---|
# | `--map-by :OVERSUBSCRIBE` | allow more ranks than cores |
# | `--bind-to none` | don't tie a rank to one core |
# | `--mca mpi_yield_when_idle 1` | set a parameter of Open MPI: a waiting rank gives up its core |
# | `--output tag` | say which rank printed a line |
# | `--allow-run-as-root` | only if you are root: otherwise mpirun refuses to run |
#
# `mpirun(...)` in this notebook is a thin helper around that command. From here on it prints the
# command without these options and without folders; it still uses them. The stop button ends every
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
# | **cross_rank** | `hvd.cross_rank()` | the number of its host, from 0 |
#
# Use rank for what must happen only once, such as printing and saving. Use local_rank to choose
# a GPU among those of the host. On the notebook there is only one host. Are local_rank and rank the
# same there?

# %%
here = mpirun(4, DEMOS / "show_placement.py", "--library", "mpi4py", show=False)
here.table("placement").drop(columns=["library", "cross_size"])

# %% [markdown]
# On one host rank and local_rank are equal, and cross_rank is 0. That is why code that confuses
# rank and local_rank works on a notebook and fails on two instances. To see them differ you need
# two hosts. So run the same script as a job on two instances with two processes each.
# [Lesson 05](05_horovod_on_training_instances.ipynb) explains how `fit()` starts it.
#
# **Predict.** Remember that `mpirun` fills the slots of one host before the next.

# %%
guess = workshop.guess(
    local_rank="2 hosts with 2 slots each: what is the local_rank of rank 3?",
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

# %%
columns = ["rank", "host", "local_rank", "local_size", "cross_rank"]
placement = job.table("placement").sort_values("rank", ignore_index=True)
placement[columns]

# %% jupyter={"source_hidden": true} tags=["figure"]
hosts = placement.groupby("host", sort=False)
title = f"{len(placement)} ranks on {len(hosts)} host(s); a colour for each local_rank"
placements = zip(placement["rank"], placement["local_rank"], placement["host"], strict=True)
listed = "; ".join(
    f"rank {rank} is local_rank {local} of {host}" for rank, local, host in placements
)
size = (1.3 * len(placement) + 1, 2.3)
with plots.canvas(title, "", size=size, alt=f"{title}: {listed}.") as axes:
    colours = [plots.COLOURS[local_rank] for local_rank in placement["local_rank"]]
    axes.scatter(placement.index, [0] * len(placement), s=1100, c=colours)
    for at, row in placement.iterrows():
        axes.text(at, 0, row["rank"], ha="center", va="center", size=15, color="white")
        where = f"local_rank {row['local_rank']}\ncross_rank {row['cross_rank']}"
        axes.text(at, -0.55, where, ha="center", va="top", size=8)
    for host, ranks in hosts.groups.items():
        left, width = ranks.min() - 0.45, len(ranks) - 0.1
        axes.broken_barh([(left, width)], (-1.2, 1.9), facecolor="none", edgecolor="0.5")
        axes.text(left + width / 2, 0.8, f"host {host}", ha="center")
    axes.set(xlim=(-0.6, len(placement) - 0.4), ylim=(-1.3, 1.2))
    axes.axis("off")

# %% [markdown]
# You should see ranks 0 and 1 on the first host, 2 and 3 on the second. Rank 3 has local_rank 1 on
# `algo-2`, the host with cross_rank 1. If each host had two GPUs, rank 3 would have to take GPU 1:
# its host has no GPU 3.
#
# (If you run this yourself and all four are on one host, your machine can't simulate separate
# instances: `make doctor` says why.)

# %%
guess.compare(
    local_rank=placement["local_rank"].iloc[-1], cross_rank=placement["cross_rank"].iloc[-1]
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
# ## mpirun alone makes nothing parallel
#
# Take a script that trains in one process, and change nothing in it. Start it with `mpirun -np 2`.
# What happens?
#
# Nine steps turn this script into a Horovod script: six basic ones, and three that are often
# forgotten. The kit has only the finished script. `ablation.without` makes a copy of it that lacks
# the steps you name. Without all nine, what is left is the one-process script.
#
# At its end each process prints hashes: of its weights, and of the images that it saw. If two
# hashes are equal, so are the weights or images, to the last bit. (The script sets a seed, as the
# trainings of lesson 01 did.)

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
    independent = mpirun(2, unchanged, *short, show=False)
trainings = independent.table("start")
trainings[["world_size", "global_batch_size", "parameters"]]

# %% [markdown]
# Each of the two has world_size 1: they are independent, and the same work was done twice.

# %%
alone = {"weights": kinds(independent, "weights_at_end")}
alone["images"] = kinds(independent, "images_seen")
guess.compare(trainings=len(trainings), **alone)

# %% [markdown]
# Both processes used the same seed and took the same images in the same order. So both end with the
# *same weights*, although they never exchanged anything. Remember this: **equal weights prove
# nothing unless the ranks saw different images.**

# %% jupyter={"source_hidden": true} tags=["results"]
assert (trainings["world_size"] == 1).all(), "The script without steps must not know of others."
assert alone == {"weights": 1, "images": 1}, (
    "Two independent processes with one seed must do the same work."
)
workshop.save_results(independent=len(trainings), independent_weights=alone["weights"])

# %% [markdown]
# ## Six steps
#
# Every Horovod script that keeps each rank's batch size has the same six. Each diff below is cut
# from the script that runs further down, `scripts/demos/train_tf_horovod_steps.py`: lines with `+`
# are new in that step, and `⋯` stands for lines that are left out.
#
# **1. Start Horovod.** `hvd.init()` connects to the other processes. From here on a process knows
# its rank.
#
# **2. Pin the GPU.** Each process takes the GPU with the number of its local_rank; otherwise all
# ranks of a host would use GPU 0. By default TensorFlow takes the whole memory of every GPU that it
# sees. `set_memory_growth` makes it take only what it needs. `prepare`, which the one-process
# script calls too, does the pinning: it gets the real local_rank now, not 0. On a CPU it divides
# the cores among the ranks instead.
#
# **3. Scale the learning rate.** In Horovod's recipe each rank keeps the batch size that one
# process had (**weak scaling**). So with `size` ranks the global batch is `size` times as large,
# and an epoch has `size` times fewer steps. The gradient of a larger batch is less noisy, and
# allows a larger step: the rule of thumb for SGD multiplies the learning rate by `size` (lesson 01
# showed where that ends). If you divide a fixed global batch among the ranks, as lesson 05's script
# does (**strong scaling**), leave the rate alone.

# %%
ablation.show_step(choice.script, 1, 2, 3)

# %% [markdown]
# **4. Average the gradients.** This is the heart of it. TensorFlow's *tape* records the computation
# of the loss, and `tape.gradient` returns the gradients. Horovod wraps the tape: now
# `tape.gradient` returns their mean over all ranks, by the all-reduce of lesson 02. So all ranks
# update their weights by the same numbers.

# %%
ablation.show_step(choice.script, 4)

# %% [markdown]
# **5. Broadcast.** Equal updates aren't enough: the weights must also be equal to begin with. So
# rank 0 sends its weights to all. The moment matters, because only variables that exist can be
# sent. Keras creates some as late as the first step, such as the optimizer's momentum. A broadcast
# before that leaves them out, without an error. So this script broadcasts once, **after the first
# step**. Whatever the other ranks did in that step is overwritten. (There is another way: create
# the variables early, with `optimizer.build`. Then you may broadcast before the first step. Lesson
# 05's script does that.)

# %%
ablation.show_step(choice.script, 5)

# %% [markdown]
# **6. One rank writes.** The weights are equal, so one copy is enough, and concurrent writes can
# corrupt the file. So only rank 0 saves. But never put an all-reduce, or any other call that all
# ranks must make, behind such an `if`: a rank that makes the call waits for those that never come
# to it. The run hangs, or fails once they have ended. Exercise 1 is about such hangs.

# %%
ablation.show_step(choice.script, 6)

# %% [markdown]
# ## Three steps that most people forget
#
# **7. Shard the data.** Horovod doesn't split your data. All ranks shuffle in the same order,
# then rank r takes image r, r + size, and so on.
#
# **8. Warm up.** At first the weights change fast, and the scaled learning rate may be too large
# for them. So raise it over the first steps, from about the rate of one rank.
#
# **9. Average the metrics.** What rank 0 computes is the loss on *its* images. The loss of the
# model is the mean over all ranks. So the script passes each loss that it reports through
# `average`, which in one process was just `float`. (If every rank printed its own, a log reader
# such as SageMaker's would keep whichever came last.)

# %%
ablation.show_step(choice.script, 7, 8, 9)

# %% [markdown]
# > **If you read older examples:** `tf.train.AdamOptimizer`, `tf.Session` hooks and
# > `BroadcastGlobalVariablesHook` belong to TensorFlow 1. Scripts that import `keras.engine` use a
# > private module that was removed. Scripts that train with `model.fit` do step 4 with
# > `hvd.DistributedOptimizer` and step 5 with `BroadcastGlobalVariablesCallback`. That callback,
# > too, broadcasts after the first batch. Without its cases for TensorFlow 1 it is:
# >
# > ```python
# > def on_batch_end(self, batch, logs=None):
# >     if not self.broadcast_done:
# >         hvd.broadcast_variables(self.model.variables, root_rank=0)
# >         hvd.broadcast_variables(self.model.optimizer.variables(), root_rank=0)
# >     self.broadcast_done = True
# > ```
# >
# > This course uses `DistributedGradientTape`, which doesn't depend on Keras.

# %% [markdown]
# ## Leave one out
#
# Now the proof. First the complete script on two ranks; then three copies, each without one step.
# (The first run also records what Horovod does, for the section on the Timeline.)
#
# **Predict.** In the run above both processes had the same seed, since each took itself for rank 0.
# Now each rank adds its rank to the seed, so that random parts of a model differ between ranks. So
# each rank starts with different weights. (The order of the images was drawn before, from the
# common seed.)

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
variables = choice.environment | {"HOROVOD_TIMELINE": trace, "HOROVOD_CACHE_CAPACITY": 0}
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
# All four ended without an error. Read the table row by row. In the first four columns, 1 means
# that both ranks had the same, and 2 that each had its own. The last column counts the images that
# both ranks saw.

# %%
ends = table["weights_at_end"]
guess.compare(**ends)

# %% [markdown]
# - **complete**: the weights differ at the start, are equal after the first step, and stay equal,
#   while the ranks see different images. This is one training, with twice as many images in each
#   step.
# - **no_tape**: the weights are equal after the broadcast and differ at the end: two trainings.
# - **no_broadcast**: the ranks add the same update to different weights, so the weights never
#   become equal. The gradients that they average belong to different models. If all ranks had the
#   same seed, you wouldn't notice, until one day only rank 0 loads a checkpoint.
# - **no_shard**: equal weights, and yet a waste: from the second step on, both ranks computed the
#   same gradients.
#
# Look at the images even if step 7 is there. If each rank sets its own seed *before* it builds the
# data set, each shuffles in its own order and the shards overlap. Then only the last column shows
# it: `images in common` is no longer 0.

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(table.loc["complete"]) == [2, 1, 1, 2, 0], "The complete script must train one model."
assert ends["no_tape"] == 2 and ends["no_broadcast"] == 2, "A missing step left no trace."
assert table.loc["no_shard", "images_seen"] == 1, "Without step 7 all ranks see the same images."
workshop.save_results(**{name: list(table.loc[name]) for name in table.index})

# %% [markdown]
# Step 5 broadcasts after the first step, because Keras creates some variables only then. Is that
# true? Count the optimizer's variables before the first step and after it. The ones that are new
# are the momentum, one variable for each kernel and bias of the model. (The one that exists before
# counts the steps.)

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
# How does Horovod know which gradients to average, if ranks compute them in a different order? In
# each rank a thread wakes up every millisecond (`HOROVOD_CYCLE_TIME`), and the threads
# **negotiate**: which gradients are ready on *all* ranks? Those are copied into one buffer
# (**tensor fusion**: one large message instead of many small ones), all-reduced, and copied back.
# `HOROVOD_FUSION_THRESHOLD` is the most that the buffer holds: 128 MB [since
# 0.21](https://github.com/horovod/horovod/releases/tag/v0.21.0), and 0 turns fusion off.
#
# The variable `HOROVOD_TIMELINE` made rank 0 write down when each of these began and ended.
# Normally a rank describes a gradient to rank 0 only once, and later sends a single bit for it.
# `HOROVOD_CACHE_CAPACITY=0` switched that off, so that every step shows the whole negotiation. The
# table has one step, the last but two: for each phase, how many gradients went through it, and the
# time from the first one's beginning to the last one's end.

# %%
phases = timeline.read(trace, step=max_steps - 2)  # a row for each gradient and phase
with_ends = phases.assign(end_ms=phases["start_ms"] + phases["ms"]).groupby("phase", sort=False)
spans = with_ends.agg(
    start=("start_ms", "min"), end=("end_ms", "max"), tensors=("tensor", "nunique")
)
spans.insert(0, "ms", spans["end"] - spans["start"])  # phases of several gradients overlap
spans[["tensors", "ms"]].rename(columns={"ms": "first to last, ms"}).round(3)

# %% jupyter={"source_hidden": true} tags=["figure"]
bars = phases.rename(
    columns={"tensor": "row", "phase": "kind", "start_ms": "start", "ms": "length"}
)
by_rank = timeline.by_rank(trace)
sent = by_rank[(by_rank["step"] == max_steps - 2) & (by_rank["kind"] == "communicate")]
messages = (sent["rank"] == 0).sum()
title = f"{phases['tensor'].nunique()} gradients in {messages} message(s): one step (measured)"
plots.gantt(bars, title, "milliseconds")

# %% [markdown]
# You should see a row for each gradient of the model, named after its layer and its variable
# (kernel or bias). All-reduce bars that begin and end together were fused into one message. The
# narrow bars beside them are the copies. (If the cell under *Set up* said that PyTorch takes
# Horovod's place, only the all-reduces are known.)
#
# How to use it: `negotiate` lasts from the first rank's request to the last one's. If it is much
# longer than a cycle (1 ms), one rank is a **straggler**: look at what it computes. If `all-reduce`
# is long, look at the network, or on one machine at the cores that the ranks share. The wait for
# the next cycle has no bar of its own: it hides inside `negotiate`, or before it, where the rank
# seems to compute up to a cycle longer.
#
# In the negotiation every rank tells rank 0 what it has ready. So the file also shows how long each
# rank computed. The next picture has one step; change `step` to see another, from 3 on. (Nothing in
# the file says when the first began, and the second's bar would also hold the broadcast.) A rank's
# first row shows it computing, and then waiting until the step's last all-reduce has ended; its
# second row has the all-reduces themselves.

# %%
step = max_steps - 2
activity = by_rank[by_rank["step"] == step].rename(columns={"start_ms": "start", "ms": "length"})
activity["row"] = "rank " + activity["rank"].astype(str)
activity.loc[activity["kind"] == "communicate", "row"] += ", all-reduce"
plots.gantt(activity, f"Step {step}: who computed, who waited (measured)", "milliseconds")

# %% [markdown]
# You can open the same file in Chrome (chrome://tracing). `print(trace)` says where it is; copy it
# if you want to keep it.
#
# With `HOROVOD_AUTOTUNE=1` Horovod
# [tries settings by itself](https://horovod.readthedocs.io/en/stable/autotune_include.html) during
# the first steps and keeps the best. `HOROVOD_AUTOTUNE_LOG` names a file for what it tried: a row
# for each trial, with the length of a cycle, the fusion threshold in MB, and the `score`, the bytes
# all-reduced per unit of time. (The last two variables shorten the trials.) Which of the two
# settings does the score follow here, where a step's gradients fit into one small message?

# %%
if choice.library == "tensorflow":
    log = Path(folder.name) / "autotune.csv"
    tune = {"HOROVOD_AUTOTUNE": 1, "HOROVOD_AUTOTUNE_LOG": log}
    tune |= {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES": 1, "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE": 1}
    longer = [*data, "--max-steps", 150, "--log-every", 0, "--no-save"]
    mpirun(2, DEMOS / choice.script, *longer, show=False, **choice.environment, **tune)
    tried = pd.read_csv(log)[["cycle_time_ms", "tensor_fusion_threshold", "score"]].dropna()
    with_score = tried.corr(method="spearman")["score"].drop("score").round(2)
    print(f"Rank correlation with the score (1 or -1: it alone decides):\n{with_score.to_string()}")
else:
    tried = pd.DataFrame()
    print("Not run: only Horovod has an autotuner.")
tried.sort_values("score", ascending=False).head(8) if len(tried) else None

# %% [markdown]
# Horovod can also reduce within each host first and then between the hosts:
# `HOROVOD_HIERARCHICAL_ALLREDUCE=1`. That needs GPUs and NCCL, and here it has no effect. NCCL's
# own trees
# ([NVIDIA](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/)) do
# much the same, so measure before you set it; lesson 07 has more on both.

# %% jupyter={"source_hidden": true} tags=["results"]
gradients = phases["tensor"].nunique()
assert gradients == 8, f"The model has 8 gradients, and the timeline shows {gradients}."
assert spans.loc["all-reduce", "ms"] > 0, "No all-reduce took any time: is the trace complete?"
workshop.save_results(gradients=gradients, phases=list(spans.index), phase_ms=spans["ms"])
workshop.save_results(tuned=len(tried))

# %% [markdown]
# ## Is it faster?
#
# Two ranks do twice the work in the same time, if nothing slows them down. Two things do: they wait
# for each other, and the machine may not have two whole cores to give (a virtual core is often
# half of a real one). To separate the two causes, measure three things, as in lesson 01:
#
# - **one process**, training alone;
# - **two independent** processes, which exchange nothing. Together they show the *ceiling of this
#   machine*: two ranks do the same work and communicate as well, so they can be faster only by
#   noise;
# - **two ranks**, which average their gradients in every step.
#
# Each process computes with one thread and takes `batch` images per step. `compare_speeds.py` does
# what you saw in lesson 01: it measures the three in turn (A B C, A B C, ...), times several steps
# at once, and leaves out the first. Both ranks are there all the time; while one process is
# measured, the other waits. The result has a row for each round, in images per second.

# %%
guess = workshop.guess(
    ceiling="How many times as fast as one process are two independent ones?",
    speedup="How many times as fast as one process are two ranks?",
)

# %%
options = ["--library", choice.library, "--threads-per-rank", 1, "--batch-size", batch]
options += ["--steps", turn_steps, "--rounds", rounds, *data]
compared = mpirun(
    2, DEMOS / "compare_speeds.py", *options, show=False, timeout=600, **choice.environment
)
speeds = compared.table("speeds").drop(columns="rank")
speeds.round().astype(int)

# %%
ceiling = (speeds["two independent"] / speeds["one process"]).median()
speedup = (speeds["two ranks"] / speeds["one process"]).median()
spread = interleaved.summary(speeds)
label = "images per second: median, and range of the rounds"
title = f"Two ranks: {speedup:.2f} times one process, of the {ceiling:.2f} that this machine has"
plots.bar_chart(spread["median"], title, label, spread=spread)

# %%
shares = speeds["two ranks"] / speeds["two independent"]
share = shares.median()
print(f"Two independent: {ceiling:.2f} x one process. Two ranks: {speedup:.2f} x.")
print(f"In a round, two ranks reach {share:.0%} of what two independent processes reach ", end="")
print(f"(the median; single rounds range from {shares.min():.0%} to {shares.max():.0%}).")
seconds = turn_steps * batch / speeds["one process"].median()
print(f"A measurement lasted about {seconds:.2f} s.")
if shares.min() < 1 < shares.max():
    print("In some rounds the ranks were faster, in others slower: no difference shown.")
if share >= 1.05:
    print("Something else uses the cores, so don't trust these numbers: measure again later.")
elif share <= 0.8:
    print("Averaging is expensive here: the batch is small, or something else uses the cores.")
guess.compare(ceiling=ceiling, speedup=speedup)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(ceiling=ceiling, speedup=speedup, share=share)

# %% [markdown]
# Each factor is the median over the rounds of that round's own ratio. Look first at the range of
# the share. If it reaches from below 100% to above it, this run can't tell which is faster: the
# cost of averaging is smaller than the noise of such short measurements. In a round in which the
# ranks beat the ceiling, something slowed the other side down.
#
# On a quiet machine, judge Horovod by the share, not by the speed-up. If two independent processes
# together are, say, only 1.6 times as fast as one, the machine is full, and no library is to blame.
# The gap between the share and 100% is the cost of averaging: the messages of each step, the wait
# for Horovod's next cycle, and the wait for the slower rank. The first two stay the same, however
# large the batch is. So averaging takes a smaller part of a large step than of a small one. (To see
# that in a run of your own, set `batch` to 64.)

# %% [markdown]
# ## One process, several devices
#
# On *one* machine with several GPUs TensorFlow needs neither MPI nor Horovod.
# `tf.distribute.MirroredStrategy` keeps a copy of the model (a **replica**) on each device, in a
# single process, and adds up their gradients by an all-reduce. There are no ranks: the process
# gives a part of each batch to every device. Your machine may have no GPU, so the script divides
# the CPU into two logical devices. (`mpirun -np 1` below only starts the script and collects what
# it prints; plain `python` would do.)

# %%
workshop.show_function("train/train_tf_mirrored.py", "train_step")

# %%
workshop.show_function("train/train_tf_mirrored.py", "all_replicas_step")

# %%
few = [*data, "--max-steps", max_steps, "--log-every", 0, "--save-to", Path(folder.name) / "model"]
mirrored = mpirun(1, TRAIN / "train_tf_mirrored.py", "--devices", 2, *few, show=False)
replicas = pd.DataFrame([event for event in mirrored.events if event["event"] == "weights"])
replicas = replicas.rename(columns={"rank": "replica"}).drop(columns="event")
replicas.assign(weights_sha256=replicas["weights_sha256"].str[:16] + "…")

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(replicas) == 2, f"{len(replicas)} replicas trained, not 2."
assert replicas["weights_sha256"].nunique() == 1, "The replicas differ: did they average?"
workshop.save_results(replicas=len(replicas))

# %% [markdown]
# Both replicas have the same hash: their weights are equal. As above, that proves averaging only if
# they saw different images. This run doesn't show that; TensorFlow's documentation says that the
# strategy divides each batch. Note the division by `world_size` in `train_step`, here the number of
# replicas: `apply_gradients` *sums* over the devices. Forget the division, and you train with twice
# the learning rate. MirroredStrategy works on one machine only; for several TensorFlow has
# MultiWorkerMirroredStrategy (lesson 05).
#
# ## Four ways to run Horovod on SageMaker
#
# | way | where the ranks run | lesson |
# |---|---|---|
# | 1 | on the notebook instance itself, by `mpirun` | 04, this lesson |
# | 2 | on training instances, one process each, by `fit()` | 05 |
# | 3 | on training instances, several processes each | 05 |
# | 4 | like 2, in a private network of your own, a VPC | 05 |
#
# Way 1 is for trying things out. You pay for the notebook instance while you read and think, and
# you can't change its size for one run. A job takes the instances that it needs, for as long as it
# needs them.

# %% [markdown]
# ## Exercises
#
# In [exercises/04_horovod_on_the_notebook.ipynb](exercises/04_horovod_on_the_notebook.ipynb):
#
# 1. *Diagnose a hang* (10 minutes, medium): find the rank at fault in the log of a run that
#    stopped.
# 2. *Warm up* (5 minutes, easy): the learning rate of a step.
# 3. *Which step is missing?* (10 minutes, medium): find it from the evidence.

# %% [markdown]
# ## Check yourself

# %%
workshop.quiz("04")

# %% [markdown]
# ## Summary
#
# - `mpirun` starts processes and lets them meet. It splits no data and averages nothing.
# - rank counts all processes, local_rank those of one host. With two or more hosts they differ.
# - Six steps: init, pin, scale the rate, wrap the tape, broadcast after the first step, save on
#   rank 0. Three more: shard, warm up, average metrics.
# - A script that lacks the tape, the broadcast or the shard raises no error. Equal weights
#   several steps after the broadcast, *and* no images in common, are the proof.
# - Compare a speed-up with that of two independent processes.
#
# ## Clean up
#
# All ranks have exited, and the job has finished; the copies of the script are gone. The Timeline
# and the model of this run are deleted when the notebook's process ends. A notebook instance costs
# money until you stop it.
#
# ## Next
#
# [05 · Horovod on training instances](05_horovod_on_training_instances.ipynb): the same steps but
# for the scaled rate and its warm-up, on instances that you rent for minutes.

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
# # 07 · SMDDP: an all-reduce that knows where the ranks are
#
# **After this lesson you can**
#
# - say which bytes of an all-reduce must cross the network, and which only do because nobody
#   thought about it;
# - measure a flat, a topology-blind and a two-tier all-reduce on a narrow link, against a bound;
# - put another all-reduce under DDP, and turn three dials: bucket size, half precision, low rank;
# - switch one script between Horovod and SMDDP with a dictionary and one flag;
# - say where SMDDP runs, what it costs, and what to take elsewhere.
#
# **Before:** [lesson 02](02_collectives.ipynb): ring, reduce-scatter, all-gather.
# [Lesson 06](06_vpc_colocation.ipynb): links that are narrow.
#
# **Time:** 45 minutes, and 27 for the exercises. Of it about 4 minutes are measuring.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# SMDDP itself exists on AWS only. Here a stand-in of the same shape takes its name, and says so.
#
# **Cost on AWS:** about 0.29 USD: seven jobs of two `ml.c5.2xlarge`, 3 minutes each (us-east-1,
# price list of 2026-09-27). At most 1.62 USD, whatever goes wrong. The lesson computes both before
# it starts anything. SMDDP's own `ml.p4d.24xlarge` is not started unless you ask. Locally nothing.

# %% [markdown]
# ## Set up
#
# - `ranks_each`: ranks on each of two instances, for the measurements of one all-reduce.
# - `between`: the link between the instances there, in the notation of `tc`. Only the local
#   endpoint narrows links.
# - `megabytes`, `blocks`: the size that is reduced, and how often each algorithm is measured.
# - `start_p4d`: whether to start a job on two `ml.p4d.24xlarge` on AWS. Locally it has no meaning.
# - `training_between`, `hidden_units`, `global_batch_size`, `epochs`: the training. More hidden
#   units mean more gradients.
# - `max_run`: seconds after which SageMaker ends a job, whatever it does.
#
# Where links cannot be narrowed, as in lesson 06, the lesson shows what was recorded on another
# machine beside its own results, and says so.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.2xlarge"
ranks_each = 4
between = "200mbit"
megabytes = 8
blocks = 5
training_between = "100mbit"
start_p4d = False
hidden_units = 2000
global_batch_size = 256
epochs = 4
max_run = 900

# %%
import os
import sys

import numpy as np
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.account import preflight
from workshop.jobs import bandwidth
from workshop.launch import processes
from workshop.launch.horovod_fallback import horovod_script
from workshop.lesson import reference_results
from workshop.measure import alpha_beta, step_time

session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
channels = {"training": f"{data}/training", "test": f"{data}/test"}
stay_wide = bandwidth.why_unshaped(session)
kept = reference_results.load("07") if stay_wide and target == "local" else None
print(stay_wide or "Links between instances can be narrowed here.")

# %% [markdown]
# ## Two kinds of links
#
# A rank that talks to a rank on its own instance uses memory, or NVLink between GPUs. A rank that
# talks to one on another instance uses the network. On AWS the first is ten to a hundred times as
# wide. So take two instances with four ranks each, 0 to 3 and 4 to 7, and ask of every message:
# does it leave its instance?
#
# | all-reduce of n bytes | what crosses the network, from each instance |
# |---|---|
# | **ring in order**, 0 → 1 → … → 7 → 0 | only 3 → 4 and 7 → 0 cross: 2 · 7/8 · n |
# | **ring that ignores the topology**, 0 → 4 → 1 → 5 → … | every message crosses: 4 times as much |
# | **two tiers** | each instance's *sum* crosses, and not each rank's gradients: 2 · 1/2 · n |
#
# The third one adds inside each instance first. After that there is one sum for each instance, and
# two sums need less traffic than eight gradients. The ratio of the first row to the third, 1.75,
# is a bound: nothing that only changes the order of messages can gain more here.

# %%
world_size = 2 * ranks_each
ring = 2 * (world_size - 1) / world_size * megabytes
across = {"ring": ring, "blind_ring": ranks_each * ring, "two_tier": 2 * 1 / 2 * megabytes}
bound = across["ring"] / across["two_tier"]
pd.Series(across, name="MB over each instance's link").to_frame()

# %% [markdown]
# **Predict.** The link carries 200 Mbit/s, which is 25 MB in a second.

# %%
guess = workshop.guess(
    two_tier="How many times as fast as the ring in order is the two-tier all-reduce?",
    blind="How many times as slow is the ring that ignores the topology?",
)

# %% [markdown]
# ## Two tiers, in three steps
#
# The ranks of an instance are the *inside* group. The ranks with the same local_rank, one on each
# instance, are an *across* group. Then:
#
# 1. **reduce-scatter inside**: each rank of an instance holds a quarter of that instance's sum;
# 2. **all-reduce across**: each rank adds its quarter to the other instances' same quarter;
# 3. **all-gather inside**: the four finished quarters go to all four ranks.
#
# In step 2 all ranks of an instance use the network at the same time, each for its own quarter.
# Nothing is sent twice.
#
# > You will read that an all-reduce *is* "reduce-scatter, all-reduce, gather". That is this one,
# > the **hierarchical all-reduce**. A flat ring has no all-reduce inside it, and it ends with an
# > all-*gather*. Horovod has one too (`HOROVOD_HIERARCHICAL_ALLREDUCE=1`, with NCCL inside), and
# > `--autotune` tries whether it is faster. NCCL chooses between rings and trees by itself.

# %%
workshop.show_function("demos/collectives/two_tier.py", "all_reduce")

# %% [markdown]
# ## The cost, before it runs
#
# On AWS nobody narrows links, and so the ratios will be others there.

# %%
planned = {"all-reduces": 1, "DDP": 5, "Horovod": 1}
costs = workshop.cost_table(
    (
        {"jobs": name, "instance_type": instance_type, "instance_count": 2 * count, "seconds": 180}
        for name, count in planned.items()
    ),
    max_run=max_run,
).set_index("jobs")
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"Seven jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Here: nothing.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## Measured
#
# One job measures all of them, in turns: what disturbs this machine for a while then disturbs all.
# `gloo` is torch's own all-reduce, a ring in order. Before that the job measures its links: one
# message inside an instance, and one across.

# %%
from sagemaker.pytorch import PyTorch

algorithms = ["gloo", "ring", "blind_ring", "two_tier", "herring"]
torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
job = session.job_settings("two-tier") | {"instance_type": instance_type, "max_run": max_run}
demo = job | {"source_dir": str(workshop.DEMOS)}
mpi = {"mpi": {"enabled": True, "processes_per_host": ranks_each}}
measuring = PyTorch(
    entry_point="measure_all_reduce.py",
    instance_count=2,
    distribution=mpi,
    environment={"LOCAL_SAGEMAKER_LINKS": between},
    hyperparameters={
        "algorithms": ",".join(algorithms),
        "bytes": megabytes * 1_000_000,
        "blocks": blocks,
    },
    **torch_image,
    **demo,
)
measuring.fit(wait=False)
measured = workshop.follow(measuring)

# %%
events = [one for one in measured.events if one["event"] in ("link", "all_reduce")]
if kept:
    print(kept.caption)
    events = kept.results["events"]
records = [one for one in events if one["event"] == "all_reduce"]
times = pd.DataFrame({one["algorithm"]: one["seconds"] for one in records})  # a row for each block
medians = times.median()
on_aws = 1000 * bandwidth.network_performance(instance_type).gbit  # Mbit/s
rate = 1e6 * (bandwidth.mbit(between) if target == "local" else on_aws)
sent = across | {"gloo": across["ring"], "herring": across["two_tier"]}  # rings; sums, one each
bounds = pd.Series({name: 8e6 * sent[name] / rate for name in medians.index})
bounds.name, title = (
    "bound: bytes over the link",
    f"{megabytes} MB, 2 instances x {ranks_each} ranks",
)
plots.bars(1000 * medians, title, "milliseconds", texts="{:,.0f} ms", bounds=1000 * bounds)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(events=events, recorded=bool(kept))

# %% [markdown]
# You should see what the bytes said: the ring that ignores the topology is by far the slowest, and
# two tiers are the fastest.

# %%
gain = float((times["gloo"] / times["two_tier"]).median())
most_loss = across["blind_ring"] / across["ring"]
loss = float((times["blind_ring"] / times["ring"]).median())
print(f"two tiers against gloo: {gain:.2f} times as fast (bound {bound:.2f})")
print(f"topology ignored: {loss:.2f} times as slow (its bytes say {most_loss:.0f})")
guess.compare(two_tier=gain, blind=loss)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(gain=gain, loss=loss, bound=bound, medians=medians.to_dict())

# %% [markdown]
# > Who orders the ranks? `mpirun` and `torchrun` number them instance by instance, and rings follow
# > the numbers. So you get the good order for nothing, until somebody places ranks `--map-by node`,
# > or makes groups of every second rank.
#
# ## Can it be said beforehand?
#
# Lesson 02 predicted from two numbers, α and β, a link. Now there are two kinds of links, so there
# are four numbers, and all four were measured at the beginning of the job. No all-reduce was.

# %%
tiers = alpha_beta.TwoTiers.from_measurements(events)
where = {"instances": 2, "ranks_per_instance": ranks_each, "links": tiers}
checked = medians.to_frame("measured")
checked["predicted"] = [
    alpha_beta.estimated_seconds(name, megabytes * 1e6, **where) for name in checked.index
]
checked["off by"] = checked["predicted"] / checked["measured"] - 1
title = f"{len(checked)} all-reduces: median error {checked['off by'].abs().median():.0%}"
ms = 1000 * checked
plots.bars(ms["measured"], title, "milliseconds", texts="{:,.0f} ms", bounds=ms["predicted"])
checked

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(off=float(checked["off by"].abs().median()))

# %% [markdown]
# A whole step computes, too. What one rank computes is measured here, on one core of the machine
# that this notebook runs on. With that and the links from above the calculator predicts a step of
# other placements, links and sizes. It opens when you have guessed.

# %%
alone = [sys.executable, workshop.DEMOS / "measure_steps.py", "--images", "32,128"]
steps = processes.run_together(alone)
compute = step_time.Compute.from_measurements(steps)
size, cores = steps[0]["gradient_bytes"], os.cpu_count()
plots.interactive.calculator(tiers, compute, size, images=64, cores=cores)

# %% [markdown]
# ## Herring: the servers come back
#
# SMDDP grew out of **Herring** (Thangakrishnan and others, SC20). Its authors looked again at the
# parameter server of lesson 03. Its fault was one link: the server's. Herring takes it away:
#
# - there is a server on *every* instance, on its CPU, so that all links work;
# - gradients are packed into **balanced fusion buffers**, equal for each server, whatever the size
#   of the layers, so that all links work for as long as each other;
# - each instance adds inside first. One sum for each instance goes to the servers.
#
# So it is two tiers too. Only the middle step differs: a server adds, in place of a ring. Below is
# that idea on send and receive; one rank of each instance plays its server.
#
# The paper reports a gradient reduction twice as fast as all-reduce, and 85 % scaling efficiency on
# 2048 V100 GPUs ([SC20](https://sc20.supercomputing.org/proceedings/tech_paper/tech_paper_pages/pap487.html)).
# Those are its authors' figures, on their machines. Yours stand in the table above.

# %%
workshop.show_function("demos/collectives/herring.py", "all_reduce")

# %% [markdown]
# ## Under DDP
#
# DDP packs gradients into **buckets**, 25 MB each unless you say otherwise, and starts an
# all-reduce for a bucket as soon as its last gradient is there, while `backward()` still works on
# others. A **communication hook** is a function that DDP calls in place of its own all-reduce. So
# another all-reduce needs one line, `register_comm_hook`, and the training script stays as it was.
# `train_torch_links.py` is lesson 01's DDP with a flag for it:

# %%
workshop.show_function("demos/common/hooks_torch.py", "register")

# %% [markdown]
# Two instances with two ranks each, a narrow link, and the same model four times:
#
# | | what is sent |
# |---|---|
# | `default` | float32, DDP's own all-reduce |
# | `two_tier` | float32, two tiers: the same sums, in another order |
# | `fp16` | each number in 2 bytes in place of 4 |
# | `powersgd` | two thin matrices for each, whose product comes close (Vogels and others, 2019) |
#
# The fifth job is `default` with small buckets. **Predict:** with two ranks on each instance the
# ring sends 2 · 3/4 of the bytes over each link, two tiers 2 · 1/2.

# %%
guess = workshop.guess(
    two_tier="How many times as fast is a step with two tiers?",
    fp16="And one with half precision?",
)


# %%
shared = {
    "hidden-units": hidden_units,
    "global-batch-size": global_batch_size,
    "epochs": epochs,
    "threads-per-rank": 1,
}


def training(all_reduce: str, bucket_megabytes: float = 25) -> PyTorch:
    """A training of 2 x 2 ranks whose gradients are averaged in this way."""
    how = {"all-reduce": all_reduce, "bucket-megabytes": bucket_megabytes}
    return PyTorch(
        entry_point="train_torch_links.py",
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        environment={"LOCAL_SAGEMAKER_LINKS": training_between},
        hyperparameters=shared | how,
        **torch_image,
        **demo,
    )


# %%
jobs = {name: training(name) for name in ("default", "two_tier", "fp16", "powersgd")}
jobs["default, small buckets"] = training("default", 0.1)
results = workshop.run_jobs(jobs, channels)

# %%
comparison = workshop.compare(results)
losses = {name: result.table("epoch")["train_loss"] for name, result in results.items()}
comparison["last loss"] = [one.iloc[-1] for one in losses.values()]
if kept:
    print(f"The column 'on a narrow link': {kept.caption}")
    comparison["on a narrow link"] = pd.Series(kept.results["steps"])
comparison.filter(["step ms", "speed-up", "last loss", "on a narrow link"])

# %%
faster = comparison["speed-up"]
guess.compare(two_tier=faster["two_tier"], fp16=faster["fp16"])

# %% jupyter={"source_hidden": true} tags=["results"]
apart = float((losses["two_tier"] - losses["default"]).abs().max())
assert apart < 1e-3, f"Two tiers must give the same sums; the losses are {apart} apart."
assert all(one.iloc[-1] < one.iloc[0] for one in losses.values()), "A loss did not fall."
workshop.save_results(steps=comparison["step ms"].to_dict(), faster=faster.to_dict(), apart=apart)

# %% [markdown]
# How to read it:
#
# - **two_tier** trains the same model: its losses are those of `default`, but for rounding. It is
#   free speed, wherever several ranks share an instance's link.
# - **fp16** sends half, and its losses differ in later digits. A gradient above 65,504 would become
#   infinite: so the hook divides by the number of ranks *before* it adds.
# - **powersgd** sends the least and computes the most, and changes what is learned, a little.
#   Errors are kept and added to the next step's gradients. It pays where the link is very narrow.
# - **small buckets** start sending earlier, but each message costs its α. Where the link is the
#   bottleneck, they gain little. Where computing is, they hide more of the sending behind it.
#
# ## SMDDP itself
#
# **SMDDP** is AWS's library of this kind: `torch.distributed` gets one more backend. In the script
# that is one import and one word. This is all that `train_torch_smddp.py` has and
# `train_torch_ddp.py` has not:

# %%
workshop.show_diff("train/train_torch_ddp.py", "train/train_torch_smddp.py")

# %% [markdown]
# The launcher is another, too: `smdistributed` in `distribution`. The job below asks for it. On
# this machine its log says that SMDDP exists only on AWS, and a stand-in takes the name `smddp`:
# the two tiers from above, over gloo. **Nothing measured here is SMDDP's speed.** On AWS the job
# needs a type with 8 A100s, so there it is started only if you set `start_p4d`.

# %%
smddp = PyTorch(
    entry_point="train_torch_smddp.py",
    instance_count=2,
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    environment={"LOCAL_SAGEMAKER_LINKS": training_between},
    hyperparameters=dict(shared),
    **torch_image,
    **job | {"instance_type": instance_type if target == "local" else "ml.p4d.24xlarge"},
)
wanted = {"backend smddp": smddp} if target == "local" or start_p4d else {}
named_smddp = workshop.run_jobs(wanted, channels)

# %%
for name in wanted:
    print(
        "\n".join(line.text for line in named_smddp[name].matching("SMDDP exists only on AWS")[:1])
    )
    ends = named_smddp[name].table("epoch")["train_loss"].iloc[-1], losses["default"].iloc[-1]
    print(f"last loss {ends[0]:.6f}, and with gloo {ends[1]:.6f}")

# %% jupyter={"source_hidden": true} tags=["results"]
if wanted:
    assert abs(ends[0] - ends[1]) < 1e-3, "The stand-in must average the same gradients."
    workshop.save_results(standin_apart=abs(ends[0] - ends[1]))

# %% [markdown]
# ## Where it runs, and where not
#
# The SDK takes `smdistributed` for many types, and the job fails on the instance. `preflight` knows
# more, and says why. Nothing is started or asked here.

# %% tags=["deterministic"]
asked = {
    "a CPU instance": ("ml.c5.xlarge", "2.2.0", "py310"),
    "P5": ("ml.p5.48xlarge", "2.2.0", "py310"),
    "a newer PyTorch": ("ml.p4d.24xlarge", "2.6.0", "py312"),
    "what it is made for": ("ml.p4d.24xlarge", "2.2.0", "py310"),
}


def against(kind: str, version: str, python: str) -> list[str]:
    """What speaks against two instances of this type with SMDDP and this PyTorch."""
    findings = preflight.check(
        framework="pytorch",
        instance_type=kind,
        instance_count=2,
        framework_version=version,
        py_version=python,
        distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    )
    return [one.reason for one in findings if one.ok is False]


said = {what: against(*job_of) for what, job_of in asked.items()}
print("\n".join(f"{what}: {' '.join(why) or 'fine'}" for what, why in said.items()))

# %% jupyter={"source_hidden": true} tags=["results"]
assert not said["what it is made for"], "SMDDP's own type must pass."
assert all(said[name] for name in list(asked)[:3]), "Three of the four must be refused."
workshop.save_results(refused=[name for name, why in said.items() if why])

# %% [markdown]
# - **p4d and p4de only**: 8 A100s, NVLink inside, 400 Gbit/s with EFA outside. Not P3 any more, not
#   P5 ([sagemaker-python-sdk#4988](https://github.com/aws/sagemaker-python-sdk/issues/4988)).
# - **TensorFlow up to 2.11, PyTorch up to the image of 2.5.1.** On everything newer, and on P5,
#   take `torch_distributed` with NCCL and AWS's OFI plugin, which use EFA as well.
# - **The quota of p4d is 0** until you ask for more.
#
# What a lesson on SMDDP usually shows, **four p4d.24xlarge**, costs this:

# %%
print(workshop.cost("ml.p4d.24xlarge", instance_count=4, seconds=3600, max_run=3600))

# %% [markdown]
# > An article of 2022 reports steps **about 20 % faster than Horovod's** on four p4d
# > ([C. Rand](https://towardsdatascience.com/smart-distributed-training-on-amazon-sagemaker-with-smd-part-2-c833e7139b5f)).
# > It is one author's measurement of one model. He adds what is easily left out: **results vary
# > with placement**. So repeat; one run is an anecdote.
#
# ## One script, two libraries
#
# For TensorFlow, SMDDP has the calls of Horovod under another name. So one script can serve both:
# `train_tf_fit.py` trains with `model.fit` and a `train_step` of its own. What you switch is a
# dictionary, and one flag:
#
# | | `distribution` | flag |
# |---|---|---|
# | Horovod | `{"mpi": {"enabled": True}}` | `--library horovod` |
# | SMDDP | `{"smdistributed": {"dataparallel": {"enabled": True}}}` | `--library smddp` |
#
# And the image: TensorFlow 2.12.0 is the last with Horovod, 2.11.0 the last with SMDDP. That one
# has Python 3.9, which does not read this kit's scripts. So for TensorFlow the second row is
# history. For PyTorch the dictionary is enough up to 2.2.0; 2.5.1, the last with SMDDP, wants its
# `image_uri`.

# %%
workshop.show_function("train/train_tf_fit.py", "main")

# %% [markdown]
# `optimizer.build` makes the momentum before `fit` begins: what does not exist cannot be copied.
# (Without it Keras makes it in the first step, and the broadcast has to wait for that.)
#
# > `optimizer.variables()` in older scripts is a call. Since TensorFlow 2.11 it is an attribute,
# > and the call fails with *'list' object is not callable*.

# %%
workshop.show_function("train/train_tf_fit.py", "DataParallelModel.train_step")

# %% [markdown]
# ## Files for it: TFRecord and FastFile
#
# **TFRecord** is a file of many small records, read in one go: one request to S3 in place of
# thousands. **FastFile** is an input mode: files are read from S3 when they are opened, and the job
# starts before everything is there. (Here FastFile copies first; the script sees the same files.)
# Both help when the data are large. CIFAR-10 (170 MB) and the digits are not, but the code is the
# same: `data_prep.cifar10.prepare` writes TFRecords where there is a network, or from a folder;
# here the digits take their place.
#
# > `TrainingInput` is imported from `sagemaker.inputs`. `from sagemaker.session import
# > TrainingInput`, which you may find, works by accident.

# %%
from sagemaker.inputs import TrainingInput

records_of = data_prep.digits.prepare(
    workshop.DATA / "digits-tfrecord", as_tfrecord=True, quiet=True
)
there = f"s3://{session.bucket}/data/digits-tfrecord"
data_prep.upload(records_of, there, client=session.client("s3"))
fast = {
    name: TrainingInput(f"{there}/{name}", input_mode="FastFile") for name in ("training", "test")
}

# %% [markdown]
# Four mistakes of a well-known example for this, all silent:
#
# - **Every worker trains on everything.** Then N workers train on the same images at the same
#   time. The script gives each rank its own part of each global batch (`dataset.shard`).
# - **A glob that mixes training and evaluation files**, `*.tfrecord` over one folder: accuracy is
#   then measured on what was learned. Two channels, two folders.
# - **A global batch of 32,768** with the learning rate of a small one. Scale it, and warm up
#   (`--warmup-steps`).
# - **Scrambled pixels.** CIFAR-10 stores 3 x 32 x 32; `reshape([32, 32, 3])` gives the right shape
#   and noise. It still learns something. Below, with a photograph; exercise 1 puts it right.

# %%
from sklearn.datasets import load_sample_image

photograph = load_sample_image("flower.jpg")[100:356:8, 220:476:8]  # 32 x 32 pixels of it
as_stored = photograph.transpose(2, 0, 1).tobytes()  # as CIFAR-10's files have it
images = {
    "reshape(3, 32, 32).transpose(1, 2, 0)": (3, 32, 32),
    "reshape(32, 32, 3)": (32, 32, 3),
}
for title, shape in images.items():
    pixels = np.frombuffer(as_stored, np.uint8).reshape(shape)
    with plots.canvas(title, "column (pixels)", "row (pixels)", size=(2.6, 2.6)) as axes:
        axes.imshow(pixels.transpose(1, 2, 0) if shape[0] == 3 else pixels)
        axes.grid(visible=False)

# %%
from sagemaker.tensorflow import TensorFlow

switch = {
    "horovod": {"mpi": {"enabled": True, "processes_per_host": 1}},
    "smddp": {"smdistributed": {"dataparallel": {"enabled": True}}},
}
image = {  # the last TensorFlow images that have the one and the other
    "horovod": {"framework_version": "2.12.0", "py_version": "py310"},
    "smddp": {"framework_version": "2.11.0", "py_version": "py39"},
}


def with_library(library: str) -> TensorFlow:
    """The same script with one library or the other."""
    return TensorFlow(
        entry_point="train_tf_fit.py",
        instance_count=2,
        **image[library],
        distribution=switch[library],
        hyperparameters={
            "library": library,
            "learning-rate": 0.1,
            "epochs": epochs,
            "warmup-steps": 20,
        },
        **job,
    )


# %%
libraries = ["horovod", "smddp"] if target == "local" else ["horovod"]
choice = horovod_script("train_tf_horovod.py", session)
if choice.library != "tensorflow":
    libraries, why = [], choice.explanation.splitlines()[0]
    print(f"TensorFlow needs Horovod for this, also under SMDDP's name. {why}")
switched = workshop.run_jobs({name: with_library(name) for name in libraries}, fast)

# %%
for name, result in switched.items():
    ranks = result.table("weights")["weights_sha256"]
    accuracy = result.metrics["test_accuracy"]
    print(f"{name}: {len(ranks)} ranks, {ranks.nunique()} set of weights, accuracy {accuracy:.1%}")

# %% jupyter={"source_hidden": true} tags=["results"]
weights = {name: one.table("weights")["weights_sha256"] for name, one in switched.items()}
assert all(one.nunique() == 1 for one in weights.values()), "The ranks did not train one model."
workshop.save_results(
    switched={name: one.metrics["test_accuracy"] for name, one in switched.items()}
)

# %% [markdown]
# Both train one model. (Locally both are Horovod: the module `smdistributed.dataparallel` of this
# machine hands the calls on, and says so in the job's log. On AWS the second needs p4d, and so it
# is not started there.)
#
# ## Exercises
#
# In [exercises/07](exercises/07_smddp.ipynb), each with a check:
#
# 1. *Bytes of a picture* (6 minutes, easy): CIFAR-10's bytes, put right.
# 2. *What two tiers can gain* (8 minutes, medium): the bound, for any number of instances.
# 3. *Two tiers in three calls* (13 minutes, hard): write it, and run it on four real ranks.
#
# ## Check yourself

# %%
workshop.quiz("07")

# %% [markdown]
# ## Summary
#
# - Count what crosses the network. A ring in order sends 2 (N - 1) / N times the bytes over each
#   instance's link, two tiers 2 (I - 1) / I; a ring in a bad order, many times that.
# - Two tiers give the same sums, so the same model. They gain where several ranks share a link.
# - Four numbers, measured with single messages, predict every all-reduce.
# - A hook puts another all-reduce under DDP. fp16 and PowerSGD send less and change what is sent.
# - SMDDP: p4d and p4de, TensorFlow up to 2.11, PyTorch up to 2.5.1 (above 2.2.0 by `image_uri`). A
#   dictionary and one flag switch a script from Horovod to it. Elsewhere: NCCL with EFA.
# - Other people's figures are theirs. Repeat your own: placement differs from job to job.

# %% [markdown]
# ## Clean up
#
# All instances were given back when their job ended; nothing runs. Models, data and logs stay until
# you delete them: [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# You have trained models in seven ways. [Lesson 08](08_serving.ipynb) asks one of them, lets a
# training be interrupted, and breaks some on purpose.

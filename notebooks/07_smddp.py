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
# - tell which bytes of an all-reduce have to cross the network and which don't;
# - measure a ring, a ring in a bad order and a hierarchical all-reduce on a slow network, against
#   what their bytes need;
# - hook your own all-reduce into DDP, and see how much communication its buckets hide;
# - switch one script between Horovod and SMDDP;
# - say where SMDDP runs, what it costs, and what to use elsewhere.
#
# **Before:** [lesson 02](02_collectives.ipynb): ring, reduce-scatter, all-gather.
# [Lesson 06](06_vpc_colocation.ipynb): what a slow link between instances does to a step.
#
# **Time:** 45 minutes, and 27 for the exercises. The jobs take about 2 of them.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# SMDDP, SageMaker's distributed data parallel library, is AWS's own all-reduce for GPUs and exists
# only on AWS. Here a substitute with the same interface takes its place, and the job's log says so.
# Nobody has run this lesson on AWS yet: what it says of AWS comes from AWS's documentation and its
# tools' source.
#
# **Cost on AWS:** about 0.48 USD: seven jobs of two `ml.c5.2xlarge`, 5 minutes each (us-east-1,
# price list of 2026-09-27). At most 1.62 USD, whatever goes wrong. The lesson computes both before
# it starts anything. SMDDP's own `ml.p4d.24xlarge` is started only if you ask for it. Locally the
# lesson is free.

# %% [markdown]
# ## Set up
#
# - `ranks_each`: ranks on each of two instances while a single all-reduce is measured.
# - `between`: bandwidth of each instance's link for that measurement; `200mbit` is 200 Mbit/s. Only
#   the emulator can limit it.
# - `megabytes`, `blocks`: the size of the tensor, and how often each algorithm is measured.
# - `overlap_between`: the bandwidth for the section about buckets.
# - `training_between`, `hidden_units`, `global_batch_size`, `epochs`: the training jobs. More
#   hidden units mean more gradients.
# - `start_p4d`: whether to start the two jobs with SMDDP on AWS, each on two `ml.p4d.24xlarge`. It
#   has no effect locally.
# - `max_run`: the number of seconds after which SageMaker stops a job.
#
# In tables and pictures, **filled** bars are measured on this machine. **Pale, dashed** bars were
# recorded on another machine; they appear only where the kernel can't limit bandwidth. **Outlined**
# bars, thick black lines and pictures titled *computed* are computed. Other people's figures come
# with a link and a date.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.2xlarge"
ranks_each = 4
between = "200mbit"
megabytes = 8
blocks = 4
overlap_between = "1gbit"
training_between = "100mbit"
start_p4d = False
hidden_units = 2000
global_batch_size = 256
epochs = 4
max_run = 900

# %%
import math
import sys

import pandas as pd
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import workshop
from workshop import plots
from workshop.account import preflight
from workshop.jobs import bandwidth
from workshop.launch import processes
from workshop.launch.horovod import horovod_script
from workshop.lesson import reference_results
from workshop.measure import all_reduces, alpha_beta, interleaved, step_time
from workshop.plots import network

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")

# %%
unshaped = bandwidth.unlimited_reason(session)
recorded = reference_results.load("07") if unshaped and target == "local" else None
n_bytes = megabytes * 1_000_000
source = "recorded" if recorded else "measured"
print(unshaped or "This machine can limit the bandwidth between instances.")

# %% [markdown]
# ## Two kinds of links
#
# Two ranks on the same instance exchange data through memory, or over NVLink between GPUs. Two
# ranks on different instances use the network, which is slower, and which all ranks of an instance
# share. On an `ml.p4d.24xlarge` a GPU sends 300 GB/s over NVLink, while the network carries 50 GB/s
# for all eight GPUs together (both figures are from lesson 06). Which links join which ranks, and
# how fast each link is, is called the **topology**.
#
# So take two instances with four ranks each and ask of every message: does it leave its instance?
# The picture below shows each message of three algorithms; thick arrows leave an instance. For n
# bytes of gradients:
#
# | all-reduce of n bytes | what each instance sends over its link |
# |---|---|
# | **ring in rank order**, 0 → 1 → … → 7 → 0 | one hop leaves it (3 → 4, 7 → 0): 2 · 7/8 · n |
# | **ring that ignores the topology**, 0 → 4 → 1 → 5 → … | every hop: 4 times as much |
# | **two tiers** | each instance's *sum*, not each rank's gradients: 2 · 1/2 · n |
#
# The first two are *flat*: they treat all ranks alike. The third adds up the gradients inside each
# instance first. Then the all-reduce over the network adds up two sums, one per instance, not eight
# ranks' gradients (the ranks share the sending): 2 · (N - 1) / N is 2 · 1/2 for two and 2 · 7/8 for
# eight.


# %% jupyter={"source_hidden": true} tags=["figure"]
def hops(steps) -> list[tuple[int, int]]:
    """From which rank to which, of every message in some steps of an all-reduce."""
    return [(message.source, message.to) for messages in steps for message in messages]


titles = {"ring": "ring", "interleaved_ring": "ring, topology ignored", "hierarchical": "two tiers"}
panels = {
    title: hops(all_reduces.steps(name, n_bytes, ranks_each, 2)) for name, title in titles.items()
}
network.messages(panels, 2, ranks_each, "Which messages leave their instance")


# %%
def sent_by_instance_0(algorithm: str) -> float:
    """MB that leave instance 0, the home of ranks 0 to ranks_each - 1."""
    steps = all_reduces.steps(algorithm, n_bytes, ranks_each, 2)
    messages = [message for messages in steps for message in messages]
    return (
        sum(message.n_bytes for message in messages if message.source < ranks_each <= message.to)
        / 1e6
    )


sent_mb = {name: sent_by_instance_0(name) for name in titles}
bound = sent_mb["ring"] / sent_mb["hierarchical"]
print(f"Ring against two tiers, by bytes: {bound:.2f}")
pd.Series(sent_mb, name="MB sent over each instance's link (computed)").to_frame()

# %% [markdown]
# That is the ratio **by bytes**: so much two tiers gain if the link between instances is all that
# takes time, and if both algorithms use it equally well.
#
# **Predict.** The link carries 200 Mbit/s, which is 25 MB per second.

# %%
guess = workshop.guess(
    hierarchical="How many times as fast as gloo's ring is the hierarchical all-reduce?",
    blind="The ring that ignores the topology: how many times as long as the ring does it take?",
)

# %% [markdown]
# ## Two tiers, in three steps
#
# Each rank belongs to two groups. The ranks of its instance are its **intra-node** group. The ranks
# with the same local_rank, one per instance, are its **inter-node** group. The all-reduce then
# takes three steps:
#
# 1. **Reduce-scatter, intra-node**: each of the four ranks ends up with a quarter of its instance's
#    sum.
# 2. **All-reduce, inter-node**: each rank adds its quarter to the same quarter of the other
#    instances.
# 3. **All-gather, intra-node**: the finished quarters go to every rank of the instance.
#
# In step 2 all ranks of an instance use the network at the same time, each for its own quarter, so
# nothing is sent twice.

# %% jupyter={"source_hidden": true} tags=["figure"]
steps = all_reduces.steps("hierarchical", n_bytes, ranks_each, 2)
n = ranks_each - 1  # steps of the reduce-scatter, and of the all-gather
parts = [steps[:n], steps[n:-n], steps[-n:]]
names = ["1. reduce-scatter, intra-node", "2. all-reduce, inter-node", "3. all-gather, intra-node"]
panels = {name: hops(part) for name, part in zip(names, parts, strict=True)}
network.messages(panels, 2, ranks_each, "The hierarchical all-reduce, step by step")

# %% [markdown]
# If the whole tensor went through these steps at once, the network would be idle during steps 1 and
# 3. So the jobs below cut the tensor into chunks of about 1 MiB (8 MB into seven). A second thread
# sends one chunk over the network while the next chunk is added up inside the instance. This is the
# function:

# %%
workshop.show_function("demos/collectives/hierarchical.py", "all_reduce")

# %% [markdown]
# > Many texts describe *every* all-reduce as "reduce-scatter, all-reduce, gather". Those are the
# > steps of two tiers, a **hierarchical all-reduce**. A flat ring consists of a reduce-scatter and
# > an all-gather and has no all-reduce inside. On GPUs with NCCL, Horovod has a hierarchical one,
# > too: `HOROVOD_HIERARCHICAL_ALLREDUCE=1`.
# >
# > So it isn't what SMDDP alone has. NCCL, Nvidia's library for GPUs, chooses between rings and
# > **trees**. Its tree is "kind of hierarchical", says its maintainer
# > ([nccl#530](https://github.com/NVIDIA/nccl/issues/530)). On two instances it halves the traffic
# > on the network, and NCCL prefers it for large messages there
# > ([nccl#946](https://github.com/NVIDIA/nccl/issues/946), both read on 2026-11-24). Lesson 06 has
# > measurements.
#
# ## The cost, before it runs
#
# On AWS there are seven jobs: one measures all-reduces, one DDP's buckets, four train with DDP and
# one with Horovod. There each link has the bandwidth of its instance type, so the ratios will
# differ from those of a local run. A local run adds three jobs: the all-reduces with unlimited
# bandwidth, and two with a substitute for SMDDP.

# %%
planned = {"all-reduces": 1, "buckets": 1, "DDP": 4, "Horovod": 1}
costs = workshop.cost_table(
    (
        {"jobs": name, "instance_type": instance_type, "instance_count": 2 * count, "seconds": 300}
        for name, count in planned.items()
    ),
    max_run=max_run,
).set_index("jobs")
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"Seven jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## Measured
#
# One job measures all algorithms in turn, so that a busy moment of this machine affects all of
# them. It measures the three algorithms of the table (`ring`, `interleaved_ring` and
# `hierarchical`), and two more: `gloo`, PyTorch's own all-reduce on CPUs, which is a ring in rank
# order, and `herring`, our sketch of a published system, which a later section explains. Before the
# all-reduces, the job times single messages, intra-node and inter-node. In a local run a second job
# repeats
# everything with unlimited bandwidth, and all jobs use this machine's PyTorch, whatever the image's
# version.
#
# Differences and ratios are taken within each block of measurements, and the median is printed. The
# blocks are of one job: another job's times differ by some per cent.
#
# In the picture, a thin bar is the range of the measurements. A black line is what the bytes alone
# would take on this link.

# %%
from sagemaker.pytorch import PyTorch

algorithms = ["gloo", "ring", "interleaved_ring", "hierarchical", "herring"]
torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
job = session.job_settings("hierarchical") | {"instance_type": instance_type, "max_run": max_run}
demo = job | {"source_dir": str(workshop.DEMOS)}


def measuring(link: str) -> PyTorch:
    """Each algorithm on instances with such links; before that, the links themselves."""
    settings = {"algorithms": ",".join(algorithms), "bytes": n_bytes, "blocks": blocks}
    return PyTorch(
        entry_point="measure_all_reduce.py",
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": ranks_each}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},
        hyperparameters=settings,
        **torch_image,
        **demo,
    )


links = [between, "wide"] if target == "local" and not recorded else [between]
measured = workshop.run_jobs({link: measuring(link) for link in links})


# %%
def milliseconds(events: list[dict]) -> pd.DataFrame:
    """A row for each block, a column for each algorithm."""
    records = [event for event in events if event["event"] == "all_reduce"]
    return 1000 * pd.DataFrame({record["algorithm"]: record["seconds"] for record in records})


events = [event for event in measured[between].events if event["event"] in ("link", "all_reduce")]
unlimited = milliseconds(measured[links[-1]].events)  # measured here, always
if recorded:
    print(recorded.caption)
    events = recorded.results["events"]
times = milliseconds(events)
on_aws = 1000 * bandwidth.network_performance(instance_type).gbit  # Mbit/s
rate = 1e6 * (bandwidth.mbit(between) if target == "local" else on_aws)
sent = sent_mb | {"gloo": sent_mb["ring"], "herring": sent_mb["hierarchical"]}
bounds = pd.Series({name: 1000 * 8e6 * sent[name] / rate for name in times})
bounds.name = "computed: bytes / bandwidth"

# %% jupyter={"source_hidden": true} tags=["figure"]
spread = interleaved.summary(times)
lost = (times["interleaved_ring"] / times["ring"]).median()
subject = f"{megabytes} MB, 2 x {ranks_each} ranks, {rate / 1e6:g} Mbit/s"
plots.bar_chart(
    times.median(),
    f"A ring in the wrong order takes {lost:.1f} times as long: {subject}",
    "milliseconds (median, lowest and highest)",
    texts="{:,.0f} ms",
    spread=spread,
    bounds=bounds,
    source=source,
)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(events=events, recorded=bool(recorded))

# %%
ratios = {
    "hierarchical": times["gloo"] / times["hierarchical"],
    "blind": times["interleaved_ring"] / times["ring"],
}
gain, loss = (float(ratio.median()) for ratio in ratios.values())
low, high = ratios["hierarchical"].min(), ratios["hierarchical"].max()
print(f"two tiers: {gain:.2f} times as fast as gloo ({low:.2f} to {high:.2f})")
our_ring = float((times["ring"] / times["hierarchical"]).median())
print(f"two tiers: {our_ring:.2f} times as fast as our own ring (by bytes: {bound:.2f})")
print(f"topology ignored: {loss:.2f} times as slow (by bytes: {ranks_each})")
print(f"fastest: {times.median().idxmin()}, slowest: {times.median().idxmax()}")
if target == "local":
    here = float((unlimited["gloo"] / unlimited["hierarchical"]).median())
    print(f"two tiers with unlimited bandwidth, measured here: {here:.2f} times as fast as gloo")
guess.compare(source, hierarchical=gain, blind=loss)

# %% jupyter={"source_hidden": true} tags=["results"]
medians = (times.median() / 1000).to_dict()
workshop.save_results(gain=gain, loss=loss, bound=bound, medians=medians)

# %% [markdown]
# The ratio by bytes isn't a limit: if gloo's ring uses the link less well than two tiers do, they
# gain more. Our own ring is the fairer comparison: the two tiers are made of the same code.
#
# **With unlimited bandwidth** (the last line of a local run) what two tiers save takes hardly any
# time, and their chunks, their second thread and their Python code cost some.
#
# > **Does the slow ring exist in practice?** With gloo it does: its ring follows the rank numbers.
# > `mpirun` and `torchrun` number ranks instance by instance, so you get the good order for free,
# > until someone starts `mpirun --map-by node`. On GPUs with NCCL it hardly exists. NCCL first
# > searches for a path through the GPUs inside each host, and then joins those paths into one ring
# > ([NCCL's maintainer, 2021](https://github.com/NVIDIA/nccl/issues/471), read on 2026-11-22).
# > Whatever the numbering, that ring enters and leaves each host once.
#
# ## Can a model predict it?
#
# Lesson 02 predicted the time of an all-reduce from two numbers for its link, α and β. Now there
# are two kinds of links, and ranks that send at the same time share them. So the job timed single
# messages intra-node and inter-node, first one at a time (half of a ping-pong) and then as many
# at once as an instance has ranks (in a row, without waiting). That gives four pairs of α and β.
# (The two ways of timing differ, so don't compare their α.)
#
# A caution: the ring's chunks here are about as large as the message that was timed. So for the
# rings the table tests little more than that steps add up. On other sizes and links the model was
# tested once (`python -m tools.bench links`, 24 points, 2026-11-22): median error 5%, largest 22%.

# %%
tiers = alpha_beta.HierarchicalLinks.from_measurements(events)
kinds = {"intra_node": tiers.intra_node, "inter_node": tiers.inter_node}
links_found = {
    f"{name}, {how}": {"α, ms": 1000 * link.alpha, "β, ms per MB": 1e9 * link.beta}
    for name, pair in kinds.items()
    for how, link in {"one message": pair.alone, "all at once": pair.busy}.items()
}
pd.DataFrame(links_found).T.round(2)

# %%
where = {"instances": 2, "ranks_per_instance": ranks_each, "links": tiers}
checked = times.median().to_frame(f"{source} ms")
checked["computed ms"] = [
    1000 * alpha_beta.estimated_seconds(name, n_bytes, **where) for name in times
]
checked["off by"] = checked["computed ms"] / checked[f"{source} ms"] - 1
worst = checked["off by"].abs().idxmax()
low, high = checked["off by"].min(), checked["off by"].max()
print(f"Errors between {low:+.0%} and {high:+.0%}; the largest is that of {worst}.")
if checked["computed ms"].idxmin() != checked[f"{source} ms"].idxmin():
    print(f"The model takes {checked['computed ms'].idxmin()} for the fastest: wrong.")
checked.round({f"{source} ms": 0, "computed ms": 0, "off by": 2})

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(off=checked["off by"].to_dict())

# %% [markdown]
# A training step also computes. The next cell measures how long one core of this machine computes
# for a batch. From that and from the links above, the model predicts a step for other placements
# and links. Guess before you run it: how many milliseconds does a step take on four instances of
# two ranks each, with links of 100 Mbit/s?

# %%
alone = [sys.executable, workshop.DEMOS / "measure_steps.py", "--images", "32,128"]
computed = processes.run_together(alone)
compute = step_time.Compute.from_measurements(computed)
size = computed[0]["gradient_bytes"]

# %%
images, algorithm, overlap = 64, "gloo", 0.0  # change them, and run this cell again
predicted = pd.DataFrame(index=pd.Index([1, 2, 4, 8, 16], name="instances of two ranks"))
for bits_per_second in (100e6, 1e9, 10e9, 100e9):
    links = step_time.at_bandwidth(tiers, bits_per_second)
    predicted[f"{bits_per_second / 1e9:g} Gbit/s"] = [
        1000
        * step_time.step_seconds(
            compute,
            images,
            size,
            algorithm,
            links,
            instances=instances,
            ranks_per_instance=2,
            overlap=overlap,
        )
        for instances in predicted.index
    ]
predicted.round(1).add_suffix(", ms (computed)")

# %% [markdown]
# ## Herring: the servers come back
#
# SMDDP grew out of **Herring** (Thangakrishnan and others, SC20), whose authors reconsidered the
# parameter server of lesson 03. The bottleneck there was the server's one link. Herring removes it:
#
# - *Every* instance has a server, on its CPU, so every link carries a share.
# - Gradients are packed into buffers that are cut by bytes, not by layers (the paper calls them
#   **balanced fusion buffers**). So each server gets an equal share, and all links are busy for the
#   same time.
# - Each instance adds up its own gradients first and sends one sum to the servers.
#
# So Herring has two tiers as well. In its middle step a server does the adding instead of a ring.
# The function below is a sketch of the idea, in which one rank of each instance plays the server.
# It sends as many bytes over the network as two tiers do. What the paper's system gains from is
# missing: EFA, CPUs that add beside the GPUs, messages that nobody waits for. So the bar `herring`
# under *Measured* says nothing of Herring's speed.
#
# The paper reports that Herring reduces gradients twice as fast as all-reduce, with 85 % **scaling
# efficiency** on 2048 V100 GPUs
# ([SC20](https://sc20.supercomputing.org/proceedings/tech_paper/tech_paper_pages/pap487.html), read
# on 2026-11-21). Those are the authors' figures on their machines.

# %%
workshop.show_function("demos/collectives/herring.py", "all_reduce")

# %% [markdown]
# ## Under DDP
#
# DDP doesn't send gradients one tensor at a time. It collects them in **buckets**, and starts an
# all-reduce as soon as a bucket is full. You can replace that all-reduce with a function of your
# own, a **communication hook**. It takes one line, and the rest of the training script stays the
# same.
#
# A popular hook sends each number in 16 bits instead of 32. PyTorch has one, `fp16_compress_hook`.
# Here is one of ours, on two ranks of this machine. The largest 16-bit float is 65,504. The
# gradient of rank 0 will be 72,000, that of rank 1 only 56,000, and their mean, 64,000, fits.


# %%
def halves(group, bucket):
    """Average a bucket in 16 bits: divide first, then convert, so that the sum fits."""
    small = (bucket.buffer() / group.size()).to(torch.float16)
    done = dist.all_reduce(small, group=group, async_op=True).get_future()
    return done.then(lambda future: future.value()[0].to(torch.float32))


def mean_gradient(gradient, hook):
    """Train one weight with DDP; return its averaged gradient. gradient: this rank's."""
    model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    if hook:
        model.register_comm_hook(dist.group.WORLD, hook)  # the one line
    model(torch.tensor([[gradient]])).sum().backward()  # d(weight * x) / d(weight) = x
    return float(model.module.weight.grad)


# %% [markdown]
# **Predict** which mean each hook returns. One of the two converts before it divides.

# %%
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

guess = workshop.guess(
    torch_hook=("What mean will PyTorch's own 16-bit hook return?", ["64,000", "32,000", "inf"]),
    our_hook=("And ours?", ["64,000", "32,000", "inf"]),
)

# %%
hooks = {
    "no hook (float32)": None,
    "torch's fp16_compress_hook": fp16_compress_hook,
    "ours": halves,
}
with workshop.start_ranks(2) as ranks:
    gradients = {
        name: ranks.run_each(mean_gradient, [72_000.0, 56_000.0], hook)[0]
        for name, hook in hooks.items()
    }
in_words = {name: f"{value:,.0f}" for name, value in gradients.items()}
guess.compare(
    torch_hook=in_words["torch's fp16_compress_hook"],
    our_hook=in_words["ours"],
)
pd.Series(gradients, name="mean gradient (measured)").to_frame()

# %% jupyter={"source_hidden": true} tags=["results"]
assert gradients["ours"] == 64_000, "Our hook must divide before it converts."
workshop.save_results(mean_gradients={name: str(gradient) for name, gradient in gradients.items()})

# %% [markdown]
# PyTorch's hook converts *before* it divides ([its
# source](https://github.com/pytorch/pytorch/blob/main/torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py),
# read on 2026-11-22): 72,000 is already infinite by the time the division comes. Gradients that
# large are rare. But training in 16 bits often multiplies the loss by a large number, so that small
# gradients don't become 0, and that makes all gradients as many times larger.
#
# ## Buckets, and what they hide
#
# DDP closes a bucket as soon as it holds 25 MiB or more; the first one at 1 MiB, so that sending
# can start early. `backward()` computes gradients from the last layer to the first, so the buckets
# fill in that order. While one bucket is being sent, `backward()` computes the next: computing
# **hides** communication. What nothing hides is called **exposed communication**.
#
# The next job shows it on two instances with one rank each. Its model is a ResNet, a convolutional
# network with many layers. The job alternates four kinds of steps: computing only; sending only;
# all gradients in one bucket, sent when `backward()` is done; and DDP's own buckets.
#
# Without any overlap a step would take as long as computing and sending together. What DDP's
# buckets save of that sum is hidden. **Predict** which percentage of the sending that is. Nothing
# can hide more of it than computing lasts. The model has 57 MB of gradients in 104 tensors, a link
# of 1 Gbit/s carries 125 MB per second, and computing takes 0.1 to 0.3 s on a machine like ours,
# depending on what else it does, most of it in `backward()`.

# %%
overlapping = PyTorch(
    entry_point="show_overlap.py",
    dependencies=[str(workshop.TRAIN / "train_torch_fsdp.py")],  # the model is in there
    instance_count=2,
    distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": overlap_between},
    hyperparameters={"blocks": blocks},
    **torch_image,
    **demo,
)
guess = workshop.guess(hidden="What percentage of the communication will DDP's buckets hide?")

# %%
overlapping.fit(wait=False)
seen = [event for event in workshop.follow(overlapping).events if event["event"] != "start"]
tensors = [event["tensors"] for event in seen if event["event"] == "bucket"]
spans = pd.DataFrame([event for event in seen if event["event"] == "span"])
took = 1000 * pd.DataFrame(
    {event["setting"]: event["seconds"] for event in seen if "seconds" in event}
)

# %% jupyter={"source_hidden": true} tags=["figure"]
bars = []
for number, bucket in enumerate(tensors):
    left, megabytes_of = 0.0, [n_bytes / 1e6 for _, n_bytes in bucket]
    which = " (last layers)" * (number == 0)
    row = f"bucket {number}{which}: {len(bucket)} tensors, {sum(megabytes_of):.1f} MB"
    for length in megabytes_of:
        bars.append({"row": row, "kind": "a tensor", "start": left, "length": length})
        left += length
title = "How the tensors of a ResNet fall into DDP's buckets"
plots.gantt(pd.DataFrame(bars), title, "MB of gradients")

# %% [markdown]
# (Most tensors are too small to be seen.) A bucket can be larger than its limit, because DDP
# doesn't split tensors: the tensor that fills a bucket closes it. Now a step as a timeline,
# recorded by `torch.profiler`: a row for what a rank computes, a row for what it sends meanwhile.
# Of three profiled steps of each kind it shows the one in the middle. A bar of an all-reduce begins
# when that rank is ready, so it includes the time in which the rank waits for the other one. Bars
# that overlap share a row's height.

# %% jupyter={"source_hidden": true} tags=["figure"]
link = "no limit" if unshaped else overlap_between
title = f"One step of a ResNet on two instances, {link}"
where = {"forward": "computes", "backward": "computes", "all-reduce": "sends"}
rows = spans["setting"] + ": rank " + spans["rank"].astype(str) + " " + spans["kind"].map(where)
shown = spans.assign(row=rows).rename(columns={"start_ms": "start", "ms": "length"})
shown = shown.sort_values(["setting", "row"], ascending=[False, True], kind="stable")
plots.gantt(shown, title, "milliseconds since the step began")

# %%
without_overlap = took["computing only"] + took["sending only"]
saved = without_overlap - took["DDP's buckets"]
hidden = float((saved / took["sending only"]).median())
print(f"Computing and then sending: {without_overlap.median():.0f} ms.")
print(f"DDP's buckets save {saved.median():.0f} ms of it: {hidden:.0%} of the sending is hidden.")
most = min(1.0, float((took["computing only"] / took["sending only"]).median()))
if most < 1:
    print(f"Computing lasts {most:.0%} as long as sending: no more than that can be hidden here.")
else:
    print("Computing lasts longer than sending: all but the last bucket could be hidden here.")
guess.compare(hidden=100 * hidden)
took.agg(["min", "median", "max"]).T.round(0).add_suffix(" ms (measured)")

# %% jupyter={"source_hidden": true} tags=["results"]
names = {event["kind"] for event in seen if event["event"] == "span"}
assert names == {"forward", "backward", "all-reduce"}, f"The profiler saw {names} only."
assert len(tensors) > 1, "With one bucket there is nothing to overlap."
workshop.save_results(overlap=seen, hidden=hidden, most_hidden=most)

# %% [markdown]
# How to read the timeline: in the upper half the all-reduce begins when `backward` is over, or
# nearly over, and both ranks wait for it. In the lower half the first all-reduces run *during*
# `backward`. Where an instance has a single core, as on a small local machine, they also make it
# slower: sending takes some of that core. So not all that runs at the same time is saved, and in a
# disturbed run it can be nothing, or less. The bucket that starts
# last can never be hidden, because there is nothing left to compute. (It shares the link with the
# one before it, so it need not end last.) *One bucket* can even take longer than computing and then
# sending: DDP copies the gradients into the bucket and back, and no rank can send before the slower
# one is ready. In lesson 06's model a single tensor has nine tenths of all bytes, so there was
# nothing to hide its sending behind.
#
# ## Sending less, or in another order
#
# Back to that model, where communication dominates. Two instances with two ranks each train it four
# times, with a different hook each time:
#
# | | what is sent |
# |---|---|
# | `default` | float32, DDP's own all-reduce |
# | `hierarchical` | float32, two tiers: the same sums in another order |
# | `fp16` | 2 bytes for each number instead of 4 |
# | `powersgd` | two thin matrices, whose product is nearly the gradient (Vogels and others, 2019) |
#
# This is where the script `train_torch_links.py` registers its hook:

# %%
workshop.show_function("demos/common/hooks_torch.py", "register")

# %% [markdown]
# **Predict.** With two ranks on each instance the ring sends 2 · 3/4 times the bytes over each
# link, and two tiers send 2 · 1/2 times; 16 bits halve the bytes. There are 1.1 MB of gradients,
# and a link of 100 Mbit/s carries 12.5 MB per second. A step also computes, so expect less than the
# ratio of the bytes. (Below, a hook counts as faster or slower only if *all* its epochs are faster,
# or slower, than all those of `default`. Each hook is one job, run after the others, and its epochs
# are no repeats of it: trust only differences that are much larger than the ranges.)

# %%
guess = workshop.guess(
    hierarchical="How many times as fast is a step with two tiers?",
    fp16="And one with 16 bits?",
)
shared = {
    "hidden-units": hidden_units,
    "global-batch-size": global_batch_size,
    "epochs": epochs,
    "threads-per-rank": 1,
}


def training(all_reduce: str) -> PyTorch:
    """A training job of 2 x 2 ranks that averages gradients in this way."""
    return PyTorch(
        entry_point="train_torch_links.py",
        instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": training_between},
        hyperparameters=shared | {"all-reduce": all_reduce},
        **torch_image,
        **demo,
    )


# %%
jobs = {name: training(name) for name in ("default", "hierarchical", "fp16", "powersgd")}
results = workshop.run_jobs(jobs, channels)

# %%
epochs_of = {name: result.table("epoch") for name, result in results.items()}
step_ms = {name: 1000 * table["step_seconds"] for name, table in epochs_of.items()}
compressed = epochs_of["powersgd"]["step"].shift() >= 10  # before: ordinary steps
if compressed.any():
    step_ms["powersgd"] = step_ms["powersgd"][compressed]
if recorded:
    print(recorded.caption)
    step_ms = {name: pd.Series(values) for name, values in recorded.results["steps"].items()}

# %%
table = interleaved.summary(pd.DataFrame(step_ms))
faster = table["median"]["default"] / table["median"]
losses = {name: table["train_loss"] for name, table in epochs_of.items()}
last = {name: loss.iloc[-1] for name, loss in losses.items()}
part = 1 / faster["powersgd"]
mbit = f"{bandwidth.mbit(training_between):g} Mbit/s"
title = f"powersgd's step takes {part:.0%} of default's: 2 x 2 ranks, {mbit}"
label = "milliseconds (median, lowest and highest epoch)"
plots.bar_chart(table["median"], title, label, texts="{:.0f} ms", spread=table, source=source)

# %%
for name in ("hierarchical", "fp16", "powersgd"):
    low = table["lowest"]["default"] / table["highest"][name]
    high = table["highest"]["default"] / table["lowest"][name]
    verdict = "faster" if low > 1 else "slower" if high < 1 else "not clearly different"
    print(
        f"{name}: {faster[name]:.2f} times as fast as default ({low:.2f} to {high:.2f}): {verdict}"
    )
guess.compare(source, hierarchical=faster["hierarchical"], fp16=faster["fp16"])
learned = {name: math.log(10) - loss for name, loss in last.items()}  # guessing: ln 10
pd.DataFrame({"last loss (measured here)": last, "below that of guessing": learned})

# %% jupyter={"source_hidden": true} tags=["results"]
apart = float((losses["hierarchical"] - losses["default"]).abs().max())
assert apart < 1e-3, f"Two tiers must give the same sums; the losses differ by {apart}."
assert all(loss.iloc[-1] < loss.iloc[0] for loss in losses.values()), "A loss did not fall."
workshop.save_results(
    steps={name: list(ms.dropna()) for name, ms in step_ms.items()},
    faster=faster.to_dict(),
    apart=apart,
)

# %% [markdown]
# The loss of a model that guesses is ln 10 = 2.303, and after so few epochs all four are still near
# it. So this run shows what a hook costs and saves, not what it does to learning. Compare the
# column `below that of guessing`, and don't be content with losses that look alike.
#
# - **hierarchical** trains the same model: its losses equal those of `default` except for rounding.
#   It can pay where the link between instances is the bottleneck and several ranks share it. It is
#   not free: adding up inside an instance takes time, and gradients of 1 MB are a single chunk, so
#   the two tiers can't overlap. And with one rank per instance there is nothing to add up inside.
# - **fp16** sends half the bytes, rounded to 16 bits.
# - **powersgd** sends the fewest bytes and computes the most. Its first ten steps are ordinary
#   ones. The picture leaves out their epochs, so its bar has fewer epochs than the others. What one
#   step leaves out is added to the next step's gradients (**error feedback**). It is for very slow
#   links, and only with a check of what it learns.
#
# ## SMDDP itself
#
# **SMDDP** is AWS's library of this kind. In `torch.distributed` it appears as one more backend, so
# a script needs one import and one word. In `train_torch_ddp.py` the flag `--backend smddp` does
# both, in the function below. AWS names as its strengths that it knows the topology of p4d
# instances, overlaps its all-reduce with `backward()`, and takes no cycles from the GPUs
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-intro.html), read on
# 2026-11-24).

# %%
workshop.show_function("train/train_torch_ddp.py", "init_distributed")

# %% [markdown]
# SMDDP also offers an **all-gather** for FSDP (fully sharded data parallel), which has to gather
# each layer's weights before it can use them. (With the launcher `torch_distributed` that is all of
# SMDDP that is active:
# [AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-framework-estimator.html),
# read on 2026-11-24.) And SMDDP has two limits that DDP jobs run into: no
# `torch.distributed.new_group()`, and no second backend such as gloo beside it
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-modify-sdp-pt.html), read on
# 2026-11-22). A script that makes groups of its own, such as the two groups that exercise 3 gives
# you, can't use SMDDP.
#
# The launcher changes, too: `distribution` asks for `smdistributed`. On this machine the job's log
# says that SMDDP exists only on AWS, and a substitute takes the name `smddp`: the two tiers from
# above, over gloo. **Nothing measured here is SMDDP's speed.** On AWS the job needs 8 A100s per
# instance, so it starts only if you set `start_p4d`.

# %%
p4d = instance_type if target == "local" else "ml.p4d.24xlarge"
smddp = PyTorch(
    entry_point="train_torch_ddp.py",
    instance_count=2,
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": training_between},
    hyperparameters=shared | {"backend": "smddp"},
    **torch_image,
    **job | {"instance_type": p4d},
)
each = workshop.cost("ml.p4d.24xlarge", instance_count=2, seconds=300, max_run=max_run)
print(f"On AWS, each of this lesson's two jobs with SMDDP: {each}")
smddp_jobs = {"backend smddp": smddp} if target == "local" or start_p4d else {}
named_smddp = workshop.run_jobs(smddp_jobs, channels)

# %%
for name in smddp_jobs:
    for line in named_smddp[name].matching("SMDDP exists only on AWS")[:1]:
        print(line.text)
    ends = named_smddp[name].table("epoch")["train_loss"].iloc[-1], losses["default"].iloc[-1]
    print(f"last loss {ends[0]:.6f}, and with gloo {ends[1]:.6f}")

# %% jupyter={"source_hidden": true} tags=["results"]
if smddp_jobs:
    assert abs(ends[0] - ends[1]) < 1e-3, "The substitute must average the same gradients."
    workshop.save_results(standin_apart=abs(ends[0] - ends[1]))

# %% [markdown]
# ## Where it runs, and where not
#
# The SDK refuses `smdistributed` on P5 and accepts it on every other type; on most the job then
# fails on the instance. `preflight` knows more and says why. The next cell starts nothing and calls
# nothing on AWS.

# %% tags=["deterministic"]
configurations = {
    "a CPU instance": ("ml.c5.xlarge", "2.2.0", "py310"),
    "P5": ("ml.p5.48xlarge", "2.2.0", "py310"),
    "a newer PyTorch": ("ml.p4d.24xlarge", "2.6.0", "py312"),
    "what it is made for": ("ml.p4d.24xlarge", "2.2.0", "py310"),
}


def against(kind: str, version: str, python: str) -> list[str]:
    """Why two instances of this type won't work with SMDDP and this PyTorch; empty if they do."""
    findings = preflight.check(
        framework="pytorch",
        instance_type=kind,
        instance_count=2,
        framework_version=version,
        py_version=python,
        distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    )
    return [finding.reason for finding in findings if finding.ok is False]


reasons = {name: against(*job) for name, job in configurations.items()}
print("\n".join(f"{name}: {' '.join(why) or 'fine'}" for name, why in reasons.items()))

# %% jupyter={"source_hidden": true} tags=["results"]
assert not reasons["what it is made for"], "SMDDP's own type must pass."
assert all(reasons[name] for name in list(configurations)[:3]), "Three of the four must be refused."
workshop.save_results(refused=[name for name, why in reasons.items() if why])

# %% [markdown]
# - **p4d and p4de only**: 8 A100s, NVLink inside, 400 Gbit/s with EFA outside
#   ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-data-parallel-support.html)).
#   P3 is no longer supported. On P5 version 2.257.7 of the SDK raises "SMModelParallel and
#   SMDataParallel currently do not support p5 instances."
# - **TensorFlow up to 2.11, PyTorch up to the image of 2.5.1.** With anything newer, and on P5, use
#   the launcher `torch_distributed` and the backend NCCL, which uses EFA through a plugin in AWS's
#   images (aws-ofi-nccl).
# - **The quota of p4d is 0** until you request more.
#
# The article named below used **four p4d.24xlarge**. For one hour they cost:

# %%
print(workshop.cost("ml.p4d.24xlarge", instance_count=4, seconds=3600, max_run=3600))

# %% [markdown]
# > An article of 2022 reports steps **about 20 % faster than Horovod's** on four p4d ([C.
# > Rand](https://towardsdatascience.com/smart-distributed-training-on-amazon-sagemaker-with-smd-part-2-c833e7139b5f)).
# > That is one author's measurement of one model. He adds what is easily left out: **results vary
# > with placement**. So repeat your measurement; a single run proves little.
#
# ## One script, two libraries
#
# For TensorFlow, SMDDP offers Horovod's calls under another module name, so one script can serve
# both. `train_tf_fit.py` trains with `model.fit` and a `train_step` of its own. You switch with a
# dictionary, a flag, and the version of TensorFlow: 2.12.0 is the last image with Horovod, 2.11.0
# the last with SMDDP.
#
# > **Don't build on this.** AWS calls SMDDP for TensorFlow deprecated, and says that it "does not
# > support TensorFlow with Keras implementation"
# > ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-modify-sdp-tf2.html), read
# > on 2026-11-24). `model.fit` is Keras. The article above reports that it works, with a
# > `train_step` as here. We have run neither on AWS, so this section shows the switch, not that it
# > works there.
#
# | | `distribution` | flag | image |
# |---|---|---|---|
# | Horovod | `{"mpi": {"enabled": True}}` | `--library horovod` | 2.12.0 |
# | SMDDP | `{"smdistributed": {"dataparallel": {"enabled": True}}}` | `--library smddp` | 2.11.0 |
#
# A local run starts both rows: there the module `smdistributed.dataparallel` passes each call on to
# Horovod, and says so in the job's log. On AWS the row *SMDDP* needs p4d, too, so it starts only if
# you set `start_p4d`. (The older image has Python 3.9. The script was tried with that and
# TensorFlow 2.11.0 on 2026-11-23, but with Horovod.)
#
# For PyTorch up to 2.2.0 the SDK finds the image with SMDDP by itself. For later versions up to
# 2.5.1, the last with SMDDP, name the image with the estimator's argument `image_uri`.

# %%
workshop.show_function("train/train_tf_fit.py", "main")

# %% [markdown]
# `optimizer.build` creates the momentum before `fit` begins, so that the broadcast can copy it.
# Without this call, Keras creates it in the first step, and the broadcast has to wait until then.
#
# > `optimizer.variables()` is a call here. Up to TensorFlow 2.11 it has to be one. With tf-keras,
# > the Keras 2 of this kit, `optimizer.variables` works, too. With Keras 3 only that does: the call
# > raises *'list' object is not callable*.

# %%
workshop.show_function("train/train_tf_fit.py", "DataParallelModel.train_step")

# %%
from sagemaker.tensorflow import TensorFlow

switch = {
    "horovod": {"mpi": {"enabled": True, "processes_per_host": 1}},
    "smddp": {"smdistributed": {"dataparallel": {"enabled": True}}},
}
image = {  # the last TensorFlow image with each library
    "horovod": {"framework_version": "2.12.0", "py_version": "py310"},
    "smddp": {"framework_version": "2.11.0", "py_version": "py39"},
}


def with_library(library: str) -> TensorFlow:
    """The same script with one library or the other."""
    settings = {"learning-rate": 0.1, "epochs": epochs, "warmup-steps": 20}
    return TensorFlow(
        entry_point="train_tf_fit.py",
        instance_count=2,
        **image[library],
        distribution=switch[library],
        hyperparameters={"library": library} | settings,
        **job | {"instance_type": p4d if library == "smddp" else instance_type},
    )


# %%
libraries = ["horovod", "smddp"] if target == "local" or start_p4d else ["horovod"]
choice = horovod_script("train_tf_horovod.py", session)
if choice.library != "tensorflow":
    libraries, why = [], choice.explanation.splitlines()[0]
    print(f"TensorFlow needs Horovod for this, also under SMDDP's name. {why}")
switched = workshop.run_jobs({name: with_library(name) for name in libraries}, channels)

# %%
for name, result in switched.items():
    weights = result.table("weights")["weights_sha256"]
    accuracy = result.metrics["test_accuracy"]
    print(f"{name}: {len(weights)} ranks, {weights.nunique()} set of weights, {accuracy:.1%} right")

# %% jupyter={"source_hidden": true} tags=["results"]
weights = {name: job.table("weights")["weights_sha256"] for name, job in switched.items()}
assert all(column.nunique() == 1 for column in weights.values()), (
    "The ranks did not train one model."
)
workshop.save_results(
    switched={name: job.metrics["test_accuracy"] for name, job in switched.items()}
)

# %% [markdown]
# How a job reads its data, and four silent mistakes in reading it, are the subject of lesson 09.
#
# ## Exercises
#
# In [exercises/07](exercises/07_smddp.ipynb), each with a check:
#
# 1. *Half the bytes, no infinity* (6 minutes, easy): prepare gradients for a 16-bit all-reduce.
# 2. *What two tiers can gain* (8 minutes, medium): by bytes, for any number of instances.
# 3. *Two tiers in three calls* (13 minutes, hard): write it, and run it on four real ranks.
#
# ## Check yourself

# %%
workshop.quiz("07")

# %% [markdown]
# ## Summary
#
# - Count what crosses the network. A ring in rank order sends 2 (N - 1) / N times the bytes over
#   each instance's link. Two tiers send 2 (I - 1) / I times. N is the number of ranks, I the number
#   of instances.
# - Two tiers compute the same sums, so they train the same model. They can pay where several ranks
#   share a slow link.
# - DDP's buckets hide communication behind `backward()`, except for the last bucket. How much they
#   hide depends on how long computing lasts, and on how the bytes are spread over the layers.
# - A hook puts another all-reduce under DDP. fp16 and PowerSGD change what is sent; divide before
#   you convert, and check what is learned.
# - SMDDP: p4d and p4de, TensorFlow up to 2.11 (without Keras, says AWS), PyTorch up to 2.5.1 (above
#   2.2.0 with `image_uri`). Elsewhere: NCCL with EFA, whose trees are hierarchical, too.
# - Repeat every measurement: placement differs from job to job.

# %% [markdown]
# ## Clean up
#
# All instances were released when their jobs ended; nothing is running. Models, data and logs
# remain until you delete them: [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# [Lesson 08](08_serving.ipynb) deploys one of the models that you have trained.

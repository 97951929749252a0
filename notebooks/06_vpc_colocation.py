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
# # 06 · VPC colocation: where instances are, and what lies between them
#
# **After this lesson you can**
#
# - create a network for training jobs, and say what each part of it is for;
# - say what a VPC does to a job, and what it does not;
# - show how the time of a step grows as the link between instances narrows, and find the link at
#   which a second instance stops being worth its money;
# - predict how long gradients travel, for one large instance or several small ones;
# - choose an instance by its bandwidth, in the same zone, with or without EFA.
#
# **Before:** [lesson 02](02_collectives.ipynb): all-reduce, α and β.
# [Lesson 05](05_horovod_on_training_instances.ipynb): instances x processes.
#
# **Time:** 40 minutes, and 25 for the exercises. Of it about 4 minutes are measuring.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# The links are narrowed here only. On AWS each job gets the link that its instance type has.
#
# **Cost on AWS:** about 0.21 USD: four jobs of one or two `ml.c5.xlarge`, three of up to four
# `ml.c5.2xlarge`, 3 minutes each (us-east-1, price list of 2026-09-27). At most 1.16 USD, whatever
# goes wrong. The network costs nothing. Locally nothing.

# %% [markdown]
# ## Set up
#
# - `links`: the links between instances that are tried, in the notation of Linux's `tc`. `wide`
#   means: as they are. Only the local endpoint can do that.
# - `global_batch_size`, `hidden_units`: the training. More hidden units mean more gradients to
#   send; a larger batch means more to compute before they are sent.
# - `layout_link`, `layout_ranks`, `layout_instances`, `layout_megabytes`: the second measurement,
#   of one all-reduce of the same ranks on few or many instances.
# - `make_network`: whether the lesson creates the network stack, if there is none. What it made it
#   deletes in *Clean up*. The kit's notebook instance may make no stacks: there, make it before,
#   from the machine on which you made the others (`workshop stacks up network --target aws`).
# - `max_run`: seconds after which SageMaker ends a job, whatever it does.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
layout_instance_type = "ml.c5.2xlarge"
links = ["wide", "400mbit", "200mbit", "100mbit", "50mbit"]
global_batch_size = 512
hidden_units = 2000
epochs = 6
layout_link = "200mbit"
layout_ranks = 8
layout_instances = [1, 2, 4, 8]
layout_megabytes = 8
make_network = True
max_run = 900

# %%
import itertools

import numpy as np
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.account import stacks
from workshop.jobs import bandwidth, vpc
from workshop.launch.horovod_fallback import horovod_script
from workshop.lesson import reference_results
from workshop.measure import alpha_beta

session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
channels = {"training": f"{data}/training", "test": f"{data}/test"}
choice = horovod_script("train_tf_horovod.py", session)
print(choice.explanation)

# %% [markdown]
# Narrow links need Linux, and a kernel that lets an ordinary user make namespaces. Where they are
# not to be had, the next cell says why. The lesson then measures what it can. In place of the rest
# it shows what was recorded on another machine, with its date.

# %%
stay_wide = bandwidth.why_unshaped(session)
kept = reference_results.load("06") if stay_wide and target == "local" else None
print(stay_wide or "Links between instances can be narrowed here.")

# %% [markdown]
# ## Whose network?
#
# A training job's instances always live in a network. Normally it is one of SageMaker's own, and
# you see nothing of it. With a **VPC**, a private network in your account, each instance gets one
# more network card, with an address in *your* network, and whatever the script sends takes it.
#
# That buys control: who reaches the instances, and what they reach. It does not buy speed.
#
# > "Training in a VPC lowers latency": whoever says so shows no number. A VPC is a set of rules
# > and addresses. What lies under it is the same wire. Lesson 05 ran the same job inside and
# > outside, and the difference was that run's noise.
#
# What a VPC *does* fix, on the way, is **where**: a subnet belongs to one Availability Zone, one
# or more data centres close together. Give a job one subnet, and all its instances are in one
# zone. That is the *colocation* in this lesson's title.
#
# The next cell makes a network: the stack `network`, from `cloudformation/network.yaml`.

# %%
made = make_network and vpc.of_stack(session) is None
if made:
    workshop.deploy(session, ("network",))
network = vpc.network(session)
network

# %% [markdown]
# Six parts, and what happens without each. All six are seen in real accounts, and most of them
# look alike: the job stands in `Starting` or `Downloading`, or its ranks wait, until `max_run`
# ends it.
#
# | part | it is for | without it |
# |---|---|---|
# | **subnet**, in one zone | addresses | two zones: a longer way, paid by the GB |
# | **security group**, open to its own members | ranks reach each other | two instances wait |
# | S3 **gateway endpoint** | data in, model out | the download fails |
# | **interface endpoints** (off here) | what *your script* asks AWS | no answer |
# | **NAT gateway** (off here) | `pip`, data from the web | `requirements.txt` times out |
# | 2 free addresses an instance, 5 with EFA | network cards | the job does not start |
#
# The gateway endpoint is free. Interface endpoints are paid by the hour, each. The NAT gateway is
# paid by the hour and by the GB.
#
# (AWS: [training in a VPC](https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html), read
# on 2026-11-21. `workshop preflight` asks for the subnet, its free addresses and the group's rules
# before you pay; the ways out to AWS it does not know.)
#
# The second row is the one that people get wrong. Here are the rules of this group. **Predict**
# from the table: which line lets rank 0 reach rank 1 on another instance?

# %%
groups = session.client("ec2").describe_security_groups(GroupIds=network["security_group_ids"])
(group,) = groups["SecurityGroups"]
rules = []
for direction, key in {"in": "IpPermissions", "out": "IpPermissionsEgress"}.items():
    for rule in group[key]:
        everything = rule["IpProtocol"] == "-1"  # every protocol, and so every port
        ports = "all" if everything else f"{rule.get('FromPort')} to {rule.get('ToPort')}"
        peers = [pair["GroupId"] for pair in rule.get("UserIdGroupPairs", [])]
        peers += [one["CidrIp"] for one in rule.get("IpRanges", [])]
        peers += [one["PrefixListId"] for one in rule.get("PrefixListIds", [])]
        for peer in peers:
            who = "itself" if peer == group["GroupId"] else peer
            rules.append({"direction": direction, "ports": ports, "with": who})
pd.DataFrame(rules)

# %% jupyter={"source_hidden": true} tags=["results"]
inside = [rule for rule in rules if rule["with"] == "itself" and rule["ports"] == "all"]
assert {rule["direction"] for rule in inside} == {"in", "out"}, "Ranks would not reach each other."
workshop.save_results(rules=rules, network=network)

# %% [markdown]
# Both directions are needed. "Everything out to 0.0.0.0/0" is the default of a new group, and is
# enough for TCP. For EFA it is not: that needs a rule *to the group itself*
# ([aws-ofi-nccl#663](https://github.com/aws/aws-ofi-nccl/issues/663)).
#
# ## The cost, before it runs
#
# Where links stay as they are, the list of those to try has one entry. And new accounts on AWS may
# not have eight instances at once, so there the largest layout is left out.

# %%
tried = ["wide"] if stay_wide else links
most_instances = 1 if kept else 8 if target == "local" else 4
counts = [n for n in layout_instances if n <= most_instances]
layouts = {f"{n} x {layout_ranks // n}": n for n in counts}
planned = {"one instance": (instance_type, 1, 2), "two instances": (instance_type, 2, 2)}
planned |= {name: (layout_instance_type, count, 1) for name, count in layouts.items()}
costs = workshop.cost_table(
    (
        {
            "job": name,
            "jobs": jobs,
            "instance_type": kind,
            "instance_count": count * jobs,
            "seconds": 180,
        }
        for name, (kind, count, jobs) in planned.items()
    ),
    max_run=max_run,
).set_index("job")
costs

# %%
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"Together: about {total:.2f} USD on AWS, at most {most:.2f} USD. Here: nothing.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## A link, narrowed
#
# On this machine an instance is a set of Linux namespaces, with a network card of its own. The
# endpoint narrows what it sends and what it receives with `tc`, the kernel's traffic control. So
# bytes really queue here, as they do on a busy network. A job asks for it with one variable in
# its request. AWS sets that variable too, and nobody there reads it.


# %%
def between(link):
    """What a request has in `environment`, so that the endpoint gives its instances such links."""
    return {"LOCAL_SAGEMAKER_LINKS": link}


print(between("200mbit"))

# %% [markdown]
# The script that trains is that of lesson 02's last part, PyTorch's DDP, and of lesson 05,
# Horovod. Both average gradients with a ring all-reduce. Two instances with one rank each: in a
# ring of two, each rank sends as many bytes as it has gradients, and receives as many.
#
# **Predict.** The model has about 1.1 MB of gradients. A link of 200 Mbit/s carries 25 MB in a
# second. One instance alone takes the whole batch.

# %%
guess = workshop.guess(
    milliseconds="How long do the gradients travel at 200 Mbit/s, in ms?",
    crossing="At which link (Mbit/s) are two instances no faster than one?",
)

# %%
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

training = {
    "global-batch-size": global_batch_size,
    "hidden-units": hidden_units,
    "epochs": epochs,
    "threads-per-rank": 1,
    "log-every": 0,
}
job = session.job_settings("links") | {"instance_type": instance_type, "max_run": max_run}
torch_image = {"framework_version": "2.2.0", "py_version": "py310"}


# %%
def two_ways(instances: int, narrowed: str) -> dict:
    """What both libraries' jobs have in common: one rank on each instance, and the link."""
    options = {"processes_per_host": 1, "custom_mpi_options": choice.mpi_options}
    return {
        "instance_count": instances,
        "distribution": {"mpi": {"enabled": True} | options},
        "environment": between(narrowed),
        "hyperparameters": dict(training),
    } | job


def ddp(instances: int, narrowed: str) -> PyTorch:
    """PyTorch's DDP."""
    return PyTorch(entry_point="train_torch_ddp.py", **torch_image, **two_ways(instances, narrowed))


def horovod(instances: int, narrowed: str) -> TensorFlow:
    """Horovod, with TensorFlow."""
    image = {"framework_version": "2.12.0", "py_version": "py310"}
    return TensorFlow(entry_point=choice.script, **image, **two_ways(instances, narrowed))


# %%
libraries = {"DDP": ddp, "Horovod": horovod}
jobs = {f"{name}, one": make(1, "wide") for name, make in libraries.items()}
for name, make in libraries.items():
    jobs |= {f"{name}, two, {one}": make(2, one) for one in tried}
results = workshop.run_jobs(jobs, channels)

# %% [markdown]
# The picture has one line for each library, and a dashed one for its job on *one* instance. Where
# the line crosses the dashed one, the second instance has become a loss: you pay twice, and wait
# longer.

# %%
comparison = workshop.compare(results)
alone = {name: comparison["step ms"][f"{name}, one"] / 1000 for name in libraries}
rows = [
    {
        "name": name,
        "link": one,
        "mbit": bandwidth.mbit(one),
        "step_seconds": comparison["step ms"][f"{name}, two, {one}"] / 1000,
    }
    for name in libraries
    for one in tried
]
narrowing = pd.DataFrame(rows)
if kept:
    print(kept.caption)
    narrowing, alone = pd.DataFrame(kept.results["narrowing"]), kept.results["alone"]
    narrowing["mbit"] = narrowing["link"].map(bandwidth.mbit)
narrowing.pivot(index="link", columns="name", values="step_seconds").loc[
    narrowing["link"].unique()
] * 1000


# %%
def crossing(rows, one_instance):
    """The link (Mbit/s) at which two instances become slower than one; None if at none."""
    widest_first = rows.sort_values("mbit", ascending=False)[["mbit", "step_seconds"]].to_numpy()
    for (wider, quick), (link, slow) in itertools.pairwise(widest_first):
        if quick <= one_instance < slow:
            if wider == np.inf:
                return link  # somewhere above it
            share = np.log(one_instance / quick) / np.log(slow / quick)  # on logarithmic axes
            return wider * (link / wider) ** share
    return None


by_name = dict(tuple(narrowing.groupby("name", sort=False)))
crossings = {name: crossing(rows, alone[name]) for name, rows in by_name.items()}
gradient_bytes = int(results["DDP, one"].table("start").iloc[0]["gradient_bytes"])
print(f"{gradient_bytes / 1e6:.2f} MB of gradients")
said = {}
for name, mbit in crossings.items():
    everywhere = "slower" if by_name[name]["step_seconds"].min() > alone[name] else "no slower"
    said[name] = f"slower from {mbit:.0f} Mbit/s on" if mbit else f"{everywhere} at every link"
    print(f"{name}: two instances are {said[name]}")

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
rates = sorted({mbit for mbit in narrowing["mbit"] if np.isfinite(mbit)}, reverse=True)
unshaped = 2 * rates[0] if rates else 1  # its place on the axis
x, y = "bandwidth of each instance (Mbit/s), falling to the right", "milliseconds for a step"
with plots.canvas("A step, as the bandwidth falls", x, y, size=(7.5, 4.2)) as axes:
    for colour, mark, (name, rows) in zip(plots.COLOURS, "os", by_name.items(), strict=False):
        rows = rows.replace(np.inf, unshaped).sort_values("mbit")
        milliseconds = 1000 * rows["step_seconds"]
        axes.plot(rows["mbit"], milliseconds, f"{mark}-", color=colour, label=name)
        axes.axhline(
            1000 * alone[name], color=colour, linestyle="--", label=f"{name}, one instance"
        )
        if meet := crossing(rows, alone[name]):  # the line and the dashed one
            circle = {"markersize": 13, "fillstyle": "none", "mew": 2, "linestyle": "none"}
            axes.plot(meet, 1000 * alone[name], "o", color=colour, label=said[name], **circle)
    axes.set(xscale="log", yscale="log", xlim=(1.15 * unshaped, min([*rates, unshaped]) / 1.15))
    axes.set_xticks([unshaped, *rates], ["unshaped", *(f"{rate:g}" for rate in rates)])
    axes.xaxis.set_minor_formatter("")
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which("{x:g}")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
measured_steps = narrowing.drop(columns="mbit").to_dict("records")
workshop.save_results(narrowing=measured_steps, alone=alone, crossings=crossings)
workshop.save_results(gradient_bytes=gradient_bytes, recorded=bool(kept))

# %%
guess.compare(
    milliseconds=gradient_bytes * 8 / 200e6 * 1000, crossing=crossings["DDP"] or float("nan")
)

# %% jupyter={"source_hidden": true} tags=["results"]
at_least = narrowing["mbit"].map(lambda mbit: gradient_bytes * 8 / (mbit * 1e6))  # seconds
quicker = narrowing[narrowing["step_seconds"] < 0.9 * at_least]
assert quicker.empty, f"Faster than the link allows: is it narrow at all?\n{quicker}"
hashes = {name: result.table("weights")["weights_sha256"] for name, result in results.items()}
assert all(one.nunique() == 1 for one in hashes.values()), "Two ranks did not train one model."

# %% [markdown]
# How to read it:
#
# - **Wide** is what this machine's memory gives. Two instances then have two cores against one.
#   If even that is slower than one instance, something else is using this machine's cores.
# - **Where the lines rise as a straight line**, on these logarithmic axes, sending is all that
#   counts: half the link, twice the time. A faster processor would change nothing there.
# - **Between the two** lies the knee. DDP and Horovod start to send the first gradients while the
#   last ones are still computed, and so hide some of it. What is left over is what you see.
# - The knee moves. **Fewer bytes** (a smaller model, half precision) or **more work before they are
#   sent** (a larger batch) move it to the right: a narrower link will do. Exercise 3 has the
#   formula.
#
# On AWS you cannot turn this dial. You choose an instance type, and with it a point on this axis.
#
# ## One large instance or many small ones?
#
# Eight ranks, in one instance of eight, or in eight of one? An older text asks this of
# `p2.8xlarge` and `p2.xlarge` and leaves it open. You can now take it apart. In a ring, every rank
# sends nearly twice its gradients, wherever it is. What differs is **which links they take**:
#
# - in one instance none of them takes the network;
# - on several, each instance's link carries what its *last* rank sends, nearly twice the gradients,
#   however many ranks the instance has.
#
# So from two instances to eight, a ring needs the same time on the link, and only 1 x 8 is
# different in kind. **Predict** it: 8 MB on links of 200 Mbit/s.

# %%
guess = workshop.guess(
    one="How long does the all-reduce take in one instance, in ms?",
    two="And on two instances with four ranks each?",
    eight="And on eight instances with one rank each?",
)


# %%
def measuring(instances: int) -> PyTorch:
    """One all-reduce, measured on so many instances; before it, the links themselves."""
    processes = {"enabled": True, "processes_per_host": layout_ranks // instances}
    return PyTorch(
        entry_point="measure_all_reduce.py",
        instance_count=instances,
        distribution={"mpi": processes},
        environment=between(layout_link),
        hyperparameters={"algorithms": "gloo,two_tier", "bytes": layout_megabytes * 1_000_000},
        **torch_image,
        **job | {"source_dir": str(workshop.DEMOS), "instance_type": layout_instance_type},
    )


measured = workshop.run_jobs({name: measuring(count) for name, count in layouts.items()})

# %% [markdown]
# Each of these jobs measured its links first, with single messages. From those two numbers a link,
# α and β, the model of lesson 02 predicts the all-reduce. The black lines are its predictions.

# %%
placed = []
for name, count in layouts.items():
    tiers = alpha_beta.TwoTiers.from_measurements(measured[name].events)
    where = {"instances": count, "ranks_per_instance": layout_ranks // count}
    for record in measured[name].table("all_reduce").to_dict("records"):
        algorithm, n_bytes = record["algorithm"], record["bytes"]
        predicted = alpha_beta.estimated_seconds(algorithm, n_bytes, links=tiers, **where)
        found = float(pd.Series(record["seconds"]).median())
        placed.append(
            {"placement": name, "algorithm": algorithm, "predicted": predicted, "measured": found}
        )
if kept:
    print(f"All but {', '.join(layouts)}: {kept.caption}")
    placed += [one for one in kept.results["placed"] if one["placement"] not in layouts]
placed = pd.DataFrame(placed)
order = list(placed["placement"].unique())
measured_ms, predicted_ms = (
    1000 * placed.pivot(index="placement", columns="algorithm", values=which).loc[order]
    for which in ("measured", "predicted")
)
title = f"{layout_megabytes} MB, eight ranks, links of {layout_link}"
where = "instances x ranks on each"
plots.groups(measured_ms, title, where, "milliseconds", marks=predicted_ms)
measured_ms.round(1)

# %%
flat, off = measured_ms["gloo"], (placed["predicted"] / placed["measured"] - 1).abs().median()
guess.compare(one=flat[order[0]], two=flat[order[1]], eight=flat[order[-1]])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(placed=placed.to_dict("records"), off=float(off))

# %% [markdown]
# You should see three things. **One instance is in a class of its own.** Two, four and eight
# instances are close to each other for gloo's ring. And *two_tier*, an all-reduce that adds inside
# each instance before it sends, is faster on 2 x 4 and no better on 8 x 1, where there is nothing
# to add inside. Lesson 07 is about it.
#
# (This machine has few cores for eight ranks. So the times of 1 x 8 are those of the cores, not of
# a bus between GPUs.)
#
# ## The same question for large GPUs
#
# No laptop has eight A100s. The model can be asked, with the figures that are published: NVLink
# inside, the network across, and no α at all. So this is a **prediction**, and a lower bound. The
# gradients are those of a model with 350 million parameters, in float32. A GPU of p4d sends 300
# GB/s over NVLink and receives as many
# ([p4d](https://gist.github.com/shashankprasanna/10ebe6dc1ba1d8d93db17da4e2cc890e)), one of p5 450
# ([p5](https://www.fibermall.com/blog/nvidia-nvlink-and-nvswitch-evolution.htm), both read on
# 2026-11-21).

# %%
nvlink = {"ml.p4d.24xlarge": 300, "ml.p5.48xlarge": 450}  # GB/s in each direction
gigabytes, rows = 1.4, []
for kind, inside in nvlink.items():
    outside = bandwidth.network_performance(kind).gbit / 8  # GB/s of an instance's network
    for n in (1, 2, 4, 8):
        each = 8 // n  # GPUs of an instance
        ring = 2 * 7 / 8 * gigabytes / (inside if n == 1 else min(inside, outside))
        within, across = 2 * (each - 1) / each / inside, 2 * (n - 1) / n / outside
        rows.append((kind, f"{n} x {each}", 1000 * ring, 1000 * gigabytes * (within + across)))
predictions = pd.DataFrame(rows, columns=["type", "placement", "ring", "two_tier"])
predictions = predictions.set_index(["type", "placement"])
title = "1.4 GB, eight GPUs of p4d instances"
label = "milliseconds (a prediction, nothing measured)"
plots.groups(predictions.loc["ml.p4d.24xlarge"], title, where, label, measured=False)
predictions.round(1)

# %% [markdown]
# So the answer to the old question is: the narrowest link on the way decides, and the rest hardly
# counts. **Fill an instance before you take a second one**, with p4d and with everything smaller:
# the same eight GPUs need six times as long as soon as a network is between them. p5's network is
# eight times as wide as p4d's, close to NVLink. There the model sees little difference, and the
# latency that it leaves out will decide. And you pay for all GPUs of an instance, used or not.
#
# ## Choose by bandwidth
#
# What AWS documents, for the types of this course: `Gbit/s` lasts, `burst` is there for minutes,
# out of credits. "Up to 10 Gigabit" in a catalogue means the burst. NaN: no burst, or a price that
# is not known here.

# %%
names = [
    "ml.m5.xlarge",
    "ml.c5.xlarge",
    "ml.c5.2xlarge",
    "ml.c5n.18xlarge",
    "ml.g4dn.xlarge",
    "ml.g5.xlarge",
    "ml.p4d.24xlarge",
    "ml.p5.48xlarge",
]
choose = workshop.cost_table({"instance_type": name, "instance_count": 1} for name in names)
choose = choose.set_index("instance_type")[["USD per hour"]]
of_type = [bandwidth.network_performance(name) for name in names]
choose["Gbit/s"] = [one.gbit for one in of_type]
choose["burst"] = [one.burst_gbit for one in of_type]
choose["EFA"] = [one.efa for one in of_type]
choose["ms for 100 MB"] = 100 * 8 / choose["Gbit/s"]
choose

# %% [markdown]
# The last column is what 100 MB of gradients need on that link, in one direction. Compare it with
# the time that your step takes to compute: that is the picture above, for another machine.
#
# Four more things decide about the link, and none of them is the VPC:
#
# - **One zone.** Between zones the way is longer, and each GB is billed. One subnet settles it.
# - **One flow is not the whole link.** A single TCP connection gets at most 5 Gbit/s; 10 inside a
#   *cluster placement group*
#   ([EC2](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html),
#   read on 2026-11-21). SageMaker places a job's instances itself; you cannot name a group. Several
#   connections at once help: NCCL's `NCCL_SOCKET_NTHREADS`, or EFA.
# - **EFA**, the Elastic Fabric Adapter, lets ranks bypass the kernel and send over many paths. Only
#   the types marked above have it, only inside one zone, and only if the group lets its members
#   through in both directions.
# - **Your quota.** For p4d and p5 it is 0 until you ask, and asking takes days.
#
# > Measure a link more than once. Where your instances stand in the data centre differs from job to
# > job, and so do the times.
#
# Without Horovod in AWS's images after TensorFlow 2.12, some build an image of their own, with
# `mpirun` in it: `containers/horovod` has such a Dockerfile, with its commands. And some leave
# SageMaker for a cluster that stands all the time; further reading then is Dask
# ([distributed.dask.org](https://distributed.dask.org)) and Ray
# ([docs.ray.io](https://docs.ray.io/en/latest/train/train.html)), whose ranks still average
# gradients as here, over the same links.
#
# ## Exercises
#
# In [exercises/06](exercises/06_vpc_colocation.ipynb), each with a check:
#
# 1. *Does this group let ranks through?* (6 minutes, easy): read a security group's rules.
# 2. *How long do gradients travel?* (8 minutes, medium): from bytes and ranks to seconds.
# 3. *Where more instances stop paying* (11 minutes, hard): solve for the link, and be surprised.
#
# ## Check yourself

# %%
workshop.quiz("06")

# %% [markdown]
# ## Summary
#
# - A VPC decides who reaches whom. It makes nothing faster; one subnet puts all instances into one
#   zone, and that can help.
# - The security group must let its own members in and out on every port. If it does not, nothing
#   fails: the ranks wait, and you pay.
# - A step is computing and sending. Below a certain link, more instances make it slower, and that
#   link follows from your bytes and your computing: measure both.
# - Fill an instance before you take the next: inside, links are in a class of their own.
# - Choose by the Gbit/s that last, not by "up to".

# %% [markdown]
# ## Clean up
#
# The jobs' instances are gone. The network stack stands. As it is it costs nothing; with a NAT
# gateway or interface endpoints it would, by the hour. What this lesson made is deleted now. On AWS
# that can take minutes, until SageMaker has removed the jobs' network cards. `workshop stacks
# status` and lesson 99 would find it, too.

# %%
if made:
    stacks.delete(session, ("network",))

# %% [markdown]
# ## Next
#
# [Lesson 07](07_smddp.ipynb): an all-reduce that knows which ranks share an instance, and what it
# gains on a narrow link.

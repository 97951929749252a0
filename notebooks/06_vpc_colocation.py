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
# - say what a VPC does to a job, and what it doesn't do;
# - show how the time of a step grows as the link between instances gets slower, and find the
#   bandwidth below which a second instance makes a step slower;
# - predict how long gradients travel, for one large instance or several small ones, in one zone or
#   in two;
# - choose an instance by its bandwidth, in one zone, with or without EFA.
#
# **Before:** [lesson 02](02_collectives.ipynb): all-reduce, α and β.
# [Lesson 05](05_horovod_on_training_instances.ipynb): instances x processes.
#
# **Time:** 40 minutes, and 25 for the exercises. Locally the jobs take about 3 of them; on AWS,
# where each takes perhaps 5 minutes, longer.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Only a local run can limit the bandwidth. On AWS each job gets what its instance type has. Nobody
# has run this lesson on AWS yet: what it says of AWS comes from AWS's documentation and its tools'
# source.
#
# **Cost on AWS:** about 0.34 USD: four jobs of one or two `ml.c5.xlarge`, three of up to four
# `ml.c5.2xlarge`, 5 minutes each (us-east-1, price list of 2026-09-27). At most 1.16 USD, whatever
# goes wrong. The network costs nothing. Locally the lesson is free.

# %% [markdown]
# ## Set up
#
# - `links`: the bandwidths to try between instances. `200mbit` is 200 Mbit/s, and `wide` means no
#   limit. Only the emulator can limit bandwidth.
# - `global_batch_size`, `hidden_units`: the training. More hidden units mean more gradients to
#   send; a larger batch means more to compute before they are sent.
# - `layout_link`, `layout_ranks`, `layout_instances`, `layout_megabytes`: a second measurement. The
#   same all-reduce runs with all its ranks on one instance, then on more and more instances.
# - `make_network`: whether the lesson creates the network stack if there is none. What it created
#   it deletes in *Clean up*. The kit's notebook instance isn't allowed to create stacks; if you
#   work on it, create the network from the machine on which you created the other stacks (`workshop
#   stacks up network --target aws`).
# - `max_run`: the number of seconds after which SageMaker stops a job.
#
# In tables and pictures, **filled** bars are measured on this machine. **Pale** bars with dashed
# outlines were recorded on another machine; they appear only where the kernel can't limit
# bandwidth. Black marks and grey dash-dotted lines are computed. Other people's figures come with a
# link and a date.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
layout_instance_type = "ml.c5.2xlarge"
links = ["wide", "200mbit", "100mbit", "50mbit"]
global_batch_size = 512
hidden_units = 2000
epochs = 8
layout_link = "200mbit"
layout_ranks = 8
layout_instances = [1, 2, 4]
layout_megabytes = 8
make_network = True
max_run = 900

# %%
import numpy as np
import pandas as pd

import workshop
from workshop import plots
from workshop.account import stacks
from workshop.jobs import bandwidth, vpc
from workshop.launch.horovod import horovod_script
from workshop.lesson import reference_results
from workshop.measure import alpha_beta
from workshop.plots import network as diagrams

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
choice = horovod_script("train_tf_horovod.py", session)
print(choice.explanation)

# %% [markdown]
# To limit bandwidth the kit needs Linux and *namespaces*: the kernel's way to give a group of
# processes network cards of its own. Not every machine lets an ordinary user create them. If yours
# doesn't, the next cell says why, and the lesson shows results that were recorded
# on another machine, with their date.

# %%
unshaped = bandwidth.unlimited_reason(session)
recorded = reference_results.load("06") if unshaped and target == "local" else None
source = "recorded" if recorded else "measured"
print(unshaped or "This machine can limit the bandwidth between instances.")

# %% [markdown]
# ## Whose network?
#
# A training job's instances always run in a network. By default it is one of SageMaker's own, and
# you see nothing of it. With a **VPC**, a private network in your account, each instance gets one
# more network card (an *elastic network interface*, ENI) with an address in *your* network, and
# whatever the script sends goes through it.
#
# That gives you control over who reaches the instances and what they reach. It doesn't give you
# speed.
#
# > Does training in a VPC lower latency? We know of no measurement that shows it: a VPC is a set of
# > rules and addresses on top of the same cables. Lesson 05 runs the same job
# > inside a VPC and outside. Run it on AWS to see whether the two differ there. A local run can't
# > tell, because the kit's emulator connects both in the same way.
# >
# > One switch that teams with a VPC often need does slow training, says AWS:
# > `encrypt_inter_container_traffic=True`
# > ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/train-encrypt.html), read on 2026-11-24).
# > The security group must then also allow UDP port 500 and protocol 50 (ESP) between its members;
# > a rule for all protocols does.
#
# What a VPC does determine is **where** instances are. A subnet belongs to one Availability Zone,
# that is, one or more data centres close together, and a network card has to be in the zone of its
# instance. So if a job has one subnet, all its instances are in that subnet's zone. That is the
# *colocation* in this lesson's title.
#
# The next cell creates a network: the stack `network`, from `cloudformation/network.yaml`. All jobs
# of this lesson run in it.

# %%
made = make_network and vpc.network_from_stack(session) is None
if made:
    workshop.deploy(session, ("network",))
network = vpc.network(session)
network

# %%
ec2 = session.client("ec2")
(subnet,) = ec2.describe_subnets(SubnetIds=network["subnets"])["Subnets"]
(group,) = ec2.describe_security_groups(GroupIds=network["security_group_ids"])["SecurityGroups"]
names = {"vpc": subnet["VpcId"], "subnet": subnet["SubnetId"], "group": group["GroupId"]}
diagrams.vpc(names | {"zone": subnet["AvailabilityZone"]})

# %% [markdown]
# The picture is drawn with the names of the network that this run used. Two ways out of it are off,
# because they cost money: *interface endpoints* lead to other services of AWS, a *NAT gateway*
# leads to the internet. Here is what each part is for, and what happens without it. A wrong
# security group is the expensive case: there is no error at first, and you pay until `max_run`
# stops the job, or until the launcher gives up after an hour. Without an interface endpoint,
# `boto3` waits a few minutes for an answer before it raises an error; a script that catches the
# error and tries again goes on waiting.
#
# | part | what it is for | without it |
# |---|---|---|
# | **subnet**, in one zone | addresses | two zones: a longer path, billed by the GB |
# | **security group**, open to its own members | ranks reach each other | they wait, and you pay |
# | S3 **gateway endpoint** | data in, model out | the download fails |
# | **interface endpoints** (off here) | *your script* calls AWS, beyond S3 | it hangs for minutes |
# | **NAT gateway** (off here) | `pip`, data from the web | `requirements.txt` times out |
# | free **addresses**: AWS asks for 2 per instance, 5 with EFA | network cards | no start |
#
# (EFA is a faster kind of network card, which some instance types have. The end of this lesson
# comes back to it.)
#
# The gateway endpoint is free. Each interface endpoint is billed by the hour; the NAT gateway is
# billed by the hour and by the GB.
#
# (AWS: [training in a VPC](https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html), read
# on 2026-11-21. `workshop preflight` checks the subnet, its free addresses and the group's rules
# before you pay. It doesn't check the VPC's endpoints and the NAT gateway.)
#
# Below are the rules of this group. Which line lets rank 0 reach rank 1 on another instance?

# %%
rules = []
for direction, key in {"in": "IpPermissions", "out": "IpPermissionsEgress"}.items():
    for rule in group[key]:
        everything = rule["IpProtocol"] == "-1"  # every protocol, and so every port
        ports = "all" if everything else f"{rule.get('FromPort')} to {rule.get('ToPort')}"
        peers = [pair["GroupId"] for pair in rule.get("UserIdGroupPairs", [])]
        peers += [addresses["CidrIp"] for addresses in rule.get("IpRanges", [])]
        peers += [prefixes["PrefixListId"] for prefixes in rule.get("PrefixListIds", [])]
        for peer in peers:
            who = "itself" if peer == group["GroupId"] else peer
            rules.append({"direction": direction, "ports": ports, "with": who})
pd.DataFrame(rules)

# %% jupyter={"source_hidden": true} tags=["results"]
inside = [rule for rule in rules if rule["with"] == "itself" and rule["ports"] == "all"]
assert {rule["direction"] for rule in inside} == {"in", "out"}, "Ranks would not reach each other."
workshop.save_results(rules=rules, network=network)

# %% [markdown]
# The lines with *itself* do: one lets members in, the other lets them out. The third line lets
# connections to port 443 (HTTPS) out to any address: that is how an instance reaches S3. The
# template says so; to a group without a rule for what goes out, AWS adds one that lets everything
# out
# ([AWS](https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroup.html),
# read on 2026-11-24). For ordinary connections (TCP) that default would be enough in place of the
# second line. For EFA it wouldn't: EFA needs a group that lets everything in from *the group
# itself* and out to it ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-efa.html),
# read on 2026-11-24).
#
# ## The cost, before it runs
#
# The lesson has two sets of jobs. The first trains on one instance and on two. The second places
# eight ranks on 1, 2 or 4 instances; `2 x 4` means 2 instances with 4 ranks on each.
#
# The table has the jobs of AWS. A local run has more of them: it limits the bandwidth, which AWS
# doesn't offer, repeats the jobs on two instances for each limit, and compares two instance types
# that would cost more on AWS. In each row, `instance_count` and the prices are the sums over that
# row's jobs.

# %%
tried = ["wide"] if unshaped else links
counts = [1] if recorded else layout_instances
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
            "seconds": 300,
        }
        for name, (kind, count, jobs) in planned.items()
    ),
    max_run=max_run,
).set_index("job")
costs

# %%
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"These jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## A slower link
#
# In a local run, each instance is a group of processes with a network card of its own. The
# emulator limits what that card sends and receives with `tc`, the kernel's traffic control. So
# bytes really queue, as they do in a busy network. A job asks for a limit with one environment
# variable. AWS ignores that variable.


# %%
def between(link):
    """What a request has in `environment`, so that the emulator limits its instances' bandwidth."""
    return {"LOCAL_SAGEMAKER_BANDWIDTH": link}


print(between("200mbit"))

# %% [markdown]
# Two libraries train the same model: PyTorch's DDP from lesson 02, and Horovod from lesson 05. Here
# DDP averages gradients with gloo's ring all-reduce. Horovod hands them to Open MPI, which chooses
# an algorithm by the size of the message and the number of ranks. With one rank on each of two
# instances, whatever the algorithm, each instance has to send, and receive, at least as many bytes
# as there are gradients.
#
# Open MPI gets one option more. It sends a message of up to 64 KB at once (**eager**); before a
# longer one it asks the receiver and waits for the answer (**rendezvous**). On a slow link that
# answer queues behind data, so the two directions take turns. `btl_tcp_eager_limit` raises the 64
# KB above the size of these gradients. (Measured for this course on the emulator at 50
# Mbit/s, on 2026-11-23 with Open MPI 5.0.11: an all-reduce of 1.1 MB takes 393 ms without the
# option and 201 ms with it.)
#
# **Predict.** The model has about 1.1 MB of gradients. A link of 200 Mbit/s carries 25 MB per
# second. A single instance takes the whole batch and sends nothing. The bandwidths to try are in
# `links`, under *Set up*. For the third question compare what the bytes take at each of them with
# what the second instance can save: at most half of a step on one instance, which takes 10 to 60 ms
# on most machines.

# %%
middle, never, always = tried[len(tried) // 2], "at none of them", "even with no limit"
questions = {"two": "How many times as fast as on one instance is a DDP step on two, no limit?"}
if not unshaped:
    questions |= {
        "longer": f"How much longer does a DDP step take at {middle} than with no limit, in ms?",
        "first": (
            "At which of these limits is a DDP step on two instances first slower than on one?",
            [always, *tried[1:], never],
        ),
    }
guess = workshop.guess(**questions)

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
job |= network  # subnets and security_group_ids
torch_image = {"framework_version": "2.2.0", "py_version": "py310"}


# %%
def two_ways(instances: int, link: str) -> dict:
    """What both libraries' jobs have in common: one rank on each instance, link and network."""
    mpi_options = f"{choice.mpi_options} -x OMPI_MCA_btl_tcp_eager_limit=4000000"
    options = {"processes_per_host": 1, "custom_mpi_options": mpi_options}
    return {
        "instance_count": instances,
        "distribution": {"mpi": {"enabled": True} | options},
        "environment": between(link),
        "hyperparameters": dict(training),
    } | job


def ddp(instances: int, link: str) -> PyTorch:
    """PyTorch's DDP."""
    return PyTorch(entry_point="train_torch_ddp.py", **torch_image, **two_ways(instances, link))


def horovod(instances: int, link: str) -> TensorFlow:
    """Horovod, with TensorFlow."""
    image = {"framework_version": "2.12.0", "py_version": "py310"}
    return TensorFlow(entry_point=choice.script, **image, **two_ways(instances, link))


# %%
libraries = {"DDP": ddp, "Horovod": horovod}
jobs = {f"{name}, one": make(1, "wide") for name, make in libraries.items()}
for name, make in libraries.items():
    jobs |= {f"{name}, two, {link}": make(2, link) for link in tried}
results = workshop.run_jobs(jobs, channels)

# %% [markdown]
# Each job ran once and timed every epoch by itself. The table has the median step and the range
# over the epochs. That range says how steady the job was, not how far another job would be off:
# look for differences much larger than it. If a median falls although the link gets slower, run the
# jobs again when the machine is quieter.


# %%
def steps_of(result) -> dict:
    """Seconds of a step: the median of one job's epochs, the fastest and the slowest epoch."""
    epochs_ = result.table("epoch")["step_seconds"].dropna()
    seconds = {"step_seconds": epochs_.median(), "lowest": epochs_.min(), "highest": epochs_.max()}
    return {name: float(value) for name, value in seconds.items()}


narrowing = pd.DataFrame(
    [
        {"name": name, "link": link} | steps_of(results[f"{name}, two, {link}"])
        for name in libraries
        for link in tried
    ]
)
by_one = {name: steps_of(results[f"{name}, one"]) for name in libraries}
alone = {name: row["step_seconds"] for name, row in by_one.items()}
gradient_bytes = int(results["DDP, one"].table("start").iloc[0]["gradient_bytes"])
ddp_ms = 1000 * narrowing[narrowing["name"] == "DDP"].set_index("link")["step_seconds"]
answers = {"two": 1000 * alone["DDP"] / ddp_ms["wide"], "longer": ddp_ms[middle] - ddp_ms["wide"]}
if recorded:
    print(f"Without a limit, measured here:\n{narrowing.to_string()}\n\n{recorded.caption}")
    narrowing, alone = pd.DataFrame(recorded.results["narrowing"]), recorded.results["alone"]
    by_one = {name: {"lowest": seconds, "highest": seconds} for name, seconds in alone.items()}
    narrowing = narrowing.reindex(columns=["name", "link", "step_seconds", "lowest", "highest"])
shown = narrowing.set_index(["name", "link"])[["lowest", "step_seconds", "highest"]] * 1000
shown.rename(columns={"step_seconds": "median"}).round(1).add_suffix(f" (ms, {source})")


# %%
def first_slower(rows, one_instance) -> str:
    """The first limit, from fast to slow, at which two instances are slower than one."""
    slower = list(rows["link"][rows["step_seconds"] > one_instance])
    return always if "wide" in slower else slower[0] if slower else never


by_name = dict(tuple(narrowing.groupby("name", sort=False)))
crossings = {name: first_slower(rows, alone[name]) for name, rows in by_name.items()}
for name, rows in by_name.items():
    free, single = rows[rows["link"] == "wide"].iloc[0], by_one[name]
    worth = "faster" if free["highest"] < single["lowest"] else "not clearly different"
    if free["lowest"] > single["highest"]:
        worth = "slower"
    both_ms = (
        f"{1000 * alone[name]:.1f} ms on one instance, {1000 * free['step_seconds']:.1f} on two"
    )
    print(f"{name} without a limit: {both_ms}: {worth}")
    print(f"    Two are slower than one (medians) first at: {crossings[name]}")
answers["first"] = crossings["DDP"]

# %% jupyter={"source_hidden": true} tags=["figure"]
order = list(narrowing["link"].unique())
labels = ["no limit" if link == "wide" else f"{bandwidth.mbit(link):g}" for link in order]
ms_of_two = 1000 * narrowing.pivot(index="link", columns="name", values="step_seconds").loc[order]
title = "A step on two instances, as the link gets slower"
if len(order) > 2:
    before, after = ms_of_two["DDP"].iloc[-2:]
    title = f"{labels[-2]}, then {labels[-1]} Mbit/s: {after / before:.1f} times as long a DDP step"
title += f" ({source}; bars: a job's epochs)"
alt = f"{title}."
for name, seconds in alone.items():
    at_each = ", ".join(f"{at}: {ms:.0f}" for at, ms in zip(labels, ms_of_two[name], strict=True))
    alt += f" {name}, ms on two instances: {at_each}; on one: {1000 * seconds:.0f}."
on_link = [gradient_bytes * 8e-3 / bandwidth.mbit(link) for link in order[1:]]

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
x, y = "bandwidth of each instance (Mbit/s), slower to the right", "milliseconds for a step"
with plots.canvas(title, x, y, size=(8.5, 4.2), alt=alt) as axes:
    for at, (name, rows) in enumerate(by_name.items()):
        rows = 1000 * rows.set_index("link").loc[order, ["step_seconds", "lowest", "highest"]]
        ms, reach = rows["step_seconds"], [rows["step_seconds"] - rows["lowest"]]
        reach += [rows["highest"] - ms]
        places = np.arange(len(order)) + 0.08 * (at - 0.5)
        look = {"color": plots.COLOURS[at], "marker": "os"[at], "capsize": 3}
        axes.errorbar(places[1:], ms[1:], yerr=[r[1:] for r in reach], label=f"{name}, two", **look)
        axes.errorbar(places[:1], ms[:1], yerr=[r[:1] for r in reach], **look)
        look = {"color": plots.COLOURS[at], "linestyle": ["--", ":"][at]}
        axes.axhline(1000 * alone[name], label=f"{name}, one instance", **look)
    axes.axvline(0.5, color="grey", linewidth=0.8)
    axes.plot(places[1:], on_link, color="grey", ls="-.", label="bytes / bandwidth (computed)")
    axes.set(yscale="log", xticks=range(len(order)), xticklabels=labels)
    axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
    axes.yaxis.set(major_formatter="{x:g}", minor_formatter="")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(narrowing=narrowing.to_dict("records"), alone=alone, crossings=crossings)
workshop.save_results(gradient_bytes=gradient_bytes, recorded=bool(recorded))

# %%
guess.compare(**{name: answers[name] for name in questions})

# %% jupyter={"source_hidden": true} tags=["results"]
rate = narrowing["link"].map(bandwidth.mbit)
quicker = narrowing[narrowing["step_seconds"] < 0.9 * gradient_bytes * 8 / (rate * 1e6)]
assert quicker.empty, f"Faster than the link allows: is it limited at all?\n{quicker}"
hashes = {name: result.table("weights")["weights_sha256"] for name, result in results.items()}
assert all(column.nunique() == 1 for column in hashes.values()), (
    "Two ranks did not train one model."
)

# %% [markdown]
# How to read the picture: left of the grey line nothing is limited, and two instances compute with
# two cores where one has one. To the right, each tick halves the bandwidth. Where the step time
# doubles from tick to tick, nearly all of it is sending, and a faster processor would help little.
# The dashed or dotted line is one instance; the grey one below is what the bytes alone need. Where
# a solid line is above the line of its colour, the second instance makes training slower: you pay
# twice and wait longer. Left of the grey line two instances would take half as long as one if all
# work were divided. The extra time goes into averaging, waiting, and work that each rank does in
# full, such as updating the weights. Compare each library with itself only: one job computes with
# PyTorch, the other with TensorFlow, and that alone makes a large difference. Neither can hide much
# of the sending behind computing here: nine tenths of the bytes are in one tensor (lesson 07 has a
# model with many layers).
#
# **At which bandwidth are one and two instances equally fast?** Where sending takes exactly as long
# as the computing that the second instance saves. That saving is measured: it is the step on one
# instance minus the step on two without a limit. If it is zero or less, there is no such bandwidth:
# averaging and waiting cost more than the second instance saves, even without a limit. The saving
# is a small difference of two measured times, so take the bandwidth as rough.

# %%
for name, rows in by_name.items():
    free = rows[rows["link"] == "wide"].iloc[0]
    saved = alone[name] - free["step_seconds"]  # seconds
    if free["highest"] < by_one[name]["lowest"]:
        equal_mbit = float(f"{gradient_bytes * 8e-6 / saved:.2g}")  # it is rough: two digits
        print(
            f"{name}: two instances save {1000 * saved:.1f} ms; {gradient_bytes / 1e6:.1f} MB "
            f"take as long at about {equal_mbit:g} Mbit/s (computed)"
        )
    else:
        print(f"{name}: two instances were not clearly faster in this run, even without a limit")

# %% [markdown]
# You can move that point, or get one where there is none. With fewer bytes (a smaller model, half
# precision), or with more work before they are sent (a larger batch), two instances keep up on a
# slower link. Exercise 3 has the formula. On AWS you don't set the bandwidth. You choose an
# instance type, and with it a place on the picture's horizontal axis.
#
# ## One large instance or many small ones?
#
# This question can mean two things.
#
# **The same number of instances.** Are two large ones better than two small ones? Compare two
# `ml.p3.2xlarge` (1 GPU each) with two `ml.p3.8xlarge` (4 GPUs each). In a ring, only the *last*
# rank of an instance sends to another instance. So an instance's link carries 2 (N - 1) / N times
# the gradients, where N is the number of ranks in all. That is less than twice the gradients,
# however many ranks there are. And the larger type has more bandwidth.
#
# This is the question of many texts: two `p2.xlarge` (1 GPU each) or two `p2.8xlarge` (8 each)? The
# table answers it, and for two newer families, for 100 MB of gradients. (The figures of P2 are
# those of an [AWS briefing of
# 2017](https://speakerdeck.com/porcaro33/gpu-fpga-briefing-plus-march-plus-2017), within a
# placement group, read on 2026-11-24.)

# %%
pairs = {
    "p2.xlarge": (1, 1.25),
    "p2.8xlarge": (8, 10),
    "ml.p3.2xlarge": (1, bandwidth.network_performance("ml.p3.2xlarge").gbit),
    "ml.p3.8xlarge": (4, bandwidth.network_performance("ml.p3.8xlarge").gbit),
    "ml.g5.xlarge": (1, bandwidth.network_performance("ml.g5.xlarge").gbit),
    "ml.g5.48xlarge": (8, bandwidth.network_performance("ml.g5.48xlarge").gbit),
}
sizes = pd.DataFrame(pairs, index=["GPUs", "Gbit/s"]).T
sizes["Gbit/s per GPU"] = sizes["Gbit/s"] / sizes["GPUs"]
ranks = 2 * sizes["GPUs"]
sizes["two of them: ring, ms (computed)"] = 2 * (ranks - 1) / ranks * 100 * 8 / sizes["Gbit/s"]
sizes["times as fast as the small one"] = 1.0
for small, large in zip(sizes.index[::2], sizes.index[1::2], strict=True):
    ring_ms = sizes["two of them: ring, ms (computed)"]
    sizes.loc[large, "times as fast as the small one"] = ring_ms[small] / ring_ms[large]
sizes.round(2)

# %% [markdown]
# With P2 and P3 the bandwidth per GPU is the same in both sizes. Then the all-reduce gains less
# from the larger type than computing does, and communication matters more. With G5 it is the other
# way round. So look at the Gbit/s per GPU, not at the size.
#
# A local run also measures the P3 pair. The setting `by-type` gives each instance a thousandth of
# the bandwidth that AWS documents for its type, and `measure_all_reduce.py` times an all-reduce of
# 0.1 MB: only the ratio matters. (On AWS these jobs would need GPUs, and a quota for them.)

# %%
types = {"ml.p3.2xlarge": 1, "ml.p3.8xlarge": 4}
both = target == "local" and not recorded  # where `by-type` works
if both:
    guess = workshop.guess(
        larger="How many times as fast is the measured all-reduce with two ml.p3.8xlarge?"
    )


# %%
layout_bytes = layout_megabytes * 1_000_000


def measuring(instances: int, ranks_each: int, **options) -> PyTorch:
    """One all-reduce, measured on so many instances; before it, single messages."""
    processes = {"enabled": True, "processes_per_host": ranks_each}
    settings = {"algorithms": "gloo,hierarchical", "bytes": layout_bytes, "blocks": 3}
    return PyTorch(
        entry_point="measure_all_reduce.py",
        instance_count=instances,
        distribution={"mpi": processes},
        environment=between(options.pop("link", layout_link)),
        hyperparameters=options.pop("settings", settings),
        **torch_image,
        **job
        | {"source_dir": str(workshop.DEMOS), "instance_type": layout_instance_type}
        | options,
    )


small = {"algorithms": "gloo", "bytes": 100_000, "link-bytes": "8,8000", "blocks": 3}
of_types = {
    kind: measuring(2, ranks, link="by-type", settings=small, instance_type=kind)
    for kind, ranks in types.items()
    if both
}
compared = workshop.run_jobs(of_types)

# %%
by_type = {
    kind: next(event["seconds"] for event in result.events if event["event"] == "all_reduce")
    for kind, result in compared.items()
}
by_type = 1000 * pd.DataFrame(by_type)
if len(by_type):
    ratio = by_type["ml.p3.2xlarge"] / by_type["ml.p3.8xlarge"]
    low, high = ratio.min(), ratio.max()
    print(f"two ml.p3.8xlarge: {ratio.median():.2f} times as fast ({low:.2f} to {high:.2f})")
    computed = sizes.loc["ml.p3.8xlarge", "times as fast as the small one"]
    print(f"by bytes and bandwidth: {computed:.2f} (computed)")
if both:
    guess.compare(larger=float(ratio.median()))
else:
    print("Not measured: this needs instances whose bandwidth can be limited.")
by_type.agg(["min", "median", "max"]).T.round(0).add_suffix(" ms (measured)") if both else None

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(by_type={kind: list(ms / 1000) for kind, ms in by_type.items()})

# %% [markdown]
# (On AWS, and where bandwidth can't be limited, there is no table.) What is measured can be less
# than bytes and bandwidth give: a ring of eight has 14 steps where a ring of two has 2, and each
# step has its own α.
#
# **The same number of ranks.** Should eight ranks be close together? Eight ranks can be in one
# instance of eight, or in four instances of two. In a ring, each rank sends nearly twice its
# gradients wherever it is. What differs is **which links they take**: in one instance none of them
# uses the network. With two or four instances, each link carries the same amount. So a ring should
# need the same time on two instances as on four, and only 1 x 8 should be much faster.
#
# The jobs measure two algorithms: `gloo`, PyTorch's ring, and `hierarchical`, the subject of lesson
# 07, which adds up gradients inside each instance before it sends anything. So it can only gain
# where several ranks share an instance's link to others. On `1 x 8` there is no such link: there it
# is a ring, too, with the same bytes, but in chunks of 1 MB, and each chunk has steps of its own,
# each with its α.
#
# **Predict** the times of `gloo` for 8 MB at 200 Mbit/s. On several instances, start with the bytes
# that a link has to carry, 2 · 7/8 times the gradients, and add something for α and for waiting. In
# one instance no link is crossed, but each rank still sends 2 · 7/8 times the gradients. Multiply
# those bytes by lesson 02's β in the row of several messages at once. Eight at once on few cores
# can be slower still, so this gives the size, not the number.

# %%
guess = workshop.guess(
    **{
        f"layout_{count}": f"How long does the all-reduce of gloo take on {name}, in ms?"
        for name, count in layouts.items()
    }
)
measured = workshop.run_jobs(
    {name: measuring(count, layout_ranks // count) for name, count in layouts.items()}
)

# %% [markdown]
# Each of these jobs first timed single messages on its own links. Those times give α and β, and
# from them lesson 02's model computes what an all-reduce should take. The picture has the measured
# times as bars and the computed ones as black marks. The marks of `gloo` on `2 x 4` and `4 x 2`
# differ a little because each job measured its links anew.


# %%
def placed_row(name: str, count: int, tiers, record: dict) -> dict:
    """A layout's all-reduce: its measured times in seconds, and what the model computes."""
    algorithm = record["algorithm"]
    where = {"instances": count, "ranks_per_instance": layout_ranks // count, "links": tiers}
    seconds = pd.Series(record["seconds"])
    return {
        "placement": name,
        "algorithm": algorithm,
        "predicted": alpha_beta.estimated_seconds(algorithm, record["bytes"], **where),
        "measured": float(seconds.median()),
        "lowest": float(seconds.min()),
        "highest": float(seconds.max()),
    }


# %%
here = []
for name, count in layouts.items():
    tiers = alpha_beta.HierarchicalLinks.from_measurements(measured[name].events)
    for record in measured[name].table("all_reduce").to_dict("records"):
        here.append(placed_row(name, count, tiers, record))
placed = recorded.results["placed"] if recorded else here
if recorded:
    print(f"Measured here, one instance only:\n{pd.DataFrame(here)}\n\n{recorded.caption}")
columns = ["placement", "algorithm", "predicted", "measured", "lowest", "highest"]
placed = pd.DataFrame(placed).reindex(columns=columns)
placed_here = {
    row["placement"]: 1000 * row["measured"] for row in here if row["algorithm"] == "gloo"
}

# %%
order = list(placed["placement"].unique())
found_ms, computed_ms = (
    1000 * placed.pivot(index="placement", columns="algorithm", values=which).loc[order]
    for which in ("measured", "predicted")
)
mbit = f"{bandwidth.mbit(layout_link):g} Mbit/s"
title = f"All-reduce of {layout_megabytes} MB by {layout_ranks} ranks, links of {mbit}"
found_ms.index.name = "instances x ranks on each"
plots.grouped_bar_chart(found_ms, title, "milliseconds", bounds=computed_ms, source=source)
ranges = placed.set_index(["placement", "algorithm"])[["lowest", "measured", "highest"]] * 1000
ranges.rename(columns={"measured": "median"}).round(1).add_suffix(f" (ms, {source})")

# %%
flat, errors = found_ms["gloo"], placed["predicted"] / placed["measured"] - 1
across = flat.iloc[1:]
if len(across):
    print(f"gloo on several instances: {across.min():.0f} to {across.max():.0f} ms")
    print(f"that is at least {across.min() / flat.iloc[0]:.1f} times as long as in one")
for (layout, row), n in zip(found_ms.iterrows(), layout_instances, strict=False):
    gain, by_bytes = row["gloo"] / row["hierarchical"], "no link to cross"
    if n > 1:
        by_bytes = f"by bytes {(layout_ranks - 1) / layout_ranks * n / (n - 1):.2f}"
    print(f"{layout}: hierarchical is {gain:.2f} times as fast as gloo ({by_bytes})")
    if found_ms.loc[layout].idxmin() != computed_ms.loc[layout].idxmin():
        print(f"    The model takes {computed_ms.loc[layout].idxmin()} for the faster one: wrong.")
print(f"The model's errors are between {errors.min():+.0%} and {errors.max():+.0%}.")
guess.compare(**{f"layout_{count}": placed_here[name] for name, count in layouts.items()})

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(placed=placed.to_dict("records"))

# %% [markdown]
# *By bytes*, computed: a link carries 2 (N - 1) / N times the gradients in a ring of all N ranks,
# and 2 (n - 1) / n times in a ring of only the n instances. So by bytes two tiers gain most on few
# instances with many ranks each. The steps inside an instance take time of their own, and in a
# local run all ranks compete for this machine's few cores while they do them. `1 x 8` shows cores
# alone, not links between GPUs. The model knows only messages: trust its marks no more than the
# errors say.
#
# ## The same question for large GPUs
#
# No laptop has eight A100s, but other people's measurements are public. Inside an instance of p4d,
# GPUs are joined by **NVLink**, Nvidia's direct links: each sends 300 GB/s over it and receives as
# much ([p4d](https://gist.github.com/shashankprasanna/10ebe6dc1ba1d8d93db17da4e2cc890e), which adds
# both directions, read on 2026-11-21). All eight share the network's 50 GB/s. The table has *full*
# instances, since you pay for all GPUs. The computed columns are bytes over bandwidth, without α.
# The measured one is a user's all-reduce of 1.07 GB by NCCL, Nvidia's library, over EFA
# ([nccl#527](https://github.com/NVIDIA/nccl/issues/527), July 2022, read on 2026-11-24).

# %%
nvlink, gigabytes = 300, 1.073741824
outside = bandwidth.network_performance("ml.p4d.24xlarge").gbit / 8  # GB/s of an instance
measured_ms = {1: 8.14, 2: 35.2, 3: 64.8, 4: 70.3}  # nccl#527
large = pd.DataFrame({"NCCL, ms (nccl#527)": measured_ms}).rename_axis("p4d instances")
for n in large.index:
    ring = 2 * (8 * n - 1) / (8 * n) * gigabytes / (nvlink if n == 1 else outside)
    tiers_in, tiers_out = 2 * 7 / 8 * gigabytes / nvlink, 2 * (n - 1) / n * gigabytes / outside
    large.loc[n, ["ring, ms (computed)", "two tiers, ms (computed)"]] = (
        1000 * ring,
        1000 * max(tiers_in, tiers_out),
    )
large.round(1)

# %% [markdown]
# On two instances NCCL is *faster* than a ring can be. So it is no ring: on two instances NCCL
# often prefers its **tree** for large messages, which adds up inside an instance first and sends
# half as much over the network ([nccl#946](https://github.com/NVIDIA/nccl/issues/946),
# [nccl#530](https://github.com/NVIDIA/nccl/issues/530)). Another user switched the tree off: 1 GB
# over EFA on two instances took 134 ms with it and 268 ms as a ring
# ([nccl-tests#22](https://github.com/NVIDIA/nccl-tests/issues/22); all read on 2026-11-24). So on
# two instances most of what two tiers gain is in the product already. On three and four, that
# user's NCCL was slower than both columns: what is published isn't always reached.
#
# **Fill an instance before you take a second one**: here one p4d is four times as fast as two.
#
# ## One zone or two?
#
# **Latency** is what a message takes before its first byte arrives: lesson 02's α. A ring
# all-reduce of N ranks has 2 (N - 1) steps, one after the other. If the ring crosses a border
# between zones, every step waits for that crossing, whatever the bandwidth. AWS says that the
# zones of a region are up to 100 km apart, with single-digit milliseconds between them
# ([AWS](https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/availability-zones.html),
# read on 2026-11-24). One user's pings of 2014: 0.45 ms there and back within a zone, 1.3 and 2.1
# ms to two others ([gist](https://gist.github.com/josephmisiti/10312241), read on 2026-11-24). Half
# of that is one way. What do the steps alone cost in *each* all-reduce?

# %%
one_way = {"one zone": 0.45 / 2, "two zones (1.3 ms)": 1.3 / 2, "two zones (2.1 ms)": 2.1 / 2}
rounds = pd.DataFrame(
    {n: {name: 2 * (n - 1) * ms for name, ms in one_way.items()} for n in (2, 8, 64)}
)
rounds.columns = [f"{n} ranks, ms (computed)" for n in rounds.columns]
rounds.round(1)

# %% [markdown]
# With many ranks that can be more than a training step. (A tree has fewer steps, about 2 log₂ N.)
# A local run can delay packets, too, if its kernel has `netem`. The next jobs average 4 kB on two
# instances with two ranks each, without a delay and with 1 ms each way.

# %%
added, late = None, "On AWS nobody sets the delay." if target == "aws" else unshaped
if not late:
    tiny = {"algorithms": "gloo", "bytes": 4000, "link-bytes": "8,8000", "blocks": 3}
    zones = {"two zones": "1gbit 1ms", "one zone": "1gbit"}
    far = workshop.run_jobs({"two zones": measuring(2, 2, link=zones["two zones"], settings=tiny)})
    late = " ".join(line.text for line in far["two zones"].matching("links are not delayed"))
if not late:
    far |= workshop.run_jobs({"one zone": measuring(2, 2, link=zones["one zone"], settings=tiny)})
    took = {
        name: 1000 * pd.Series(result.table("all_reduce").iloc[0]["seconds"]).median()
        for name, result in far.items()
    }
    added = took["two zones"] - took["one zone"]
    print(f"An all-reduce of 4 ranks takes {added:.1f} ms longer (measured); 2 (N - 1) α is 6 ms.")
else:
    print(f"Not measured here. {late}")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(latency_added=added, not_delayed=late, rounds_ms=rounds.to_dict())

# %% [markdown]
# ## Choose by bandwidth
#
# This is what AWS documents for the types of this course (the fields `baselineBandwidthInGbps` and
# `peakBandwidthInGbps` of EC2's
# [DescribeInstanceTypes](https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkCardInfo.html),
# read on 2026-11-21). `Gbit/s` is what an instance can keep up. `burst` is a higher rate that it
# can have for minutes only. "Up to 10 Gigabit" in a catalogue means the burst. NaN means that there
# is no burst, or that the kit doesn't know the price.

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
choose["Gbit/s"] = [row.gbit for row in of_type]
choose["burst"] = [row.burst_gbit for row in of_type]
choose["EFA"] = [row.efa for row in of_type]
choose["ms for 100 MB (computed)"] = 100 * 8 / choose["Gbit/s"]
choose

# %% [markdown]
# The last column of the table is what 100 MB of gradients need on that link, in one direction.
# A ring carries nearly twice that (with two ranks, just that). Compare it with the computing that
# the second instance saves, half of one instance's step. If sending takes longer, and nothing hides
# it, two instances are slower than one.
#
# Three more things determine what a link gives you. A VPC with one subnet settles the first. The
# others depend on the instance type and the software: a VPC doesn't improve them, but a wrong one
# can keep EFA from working.
#
# - **One zone.** Traffic between zones travels farther, and each GB is billed.
# - **One connection can't fill a fast link.** A single TCP connection gets at most 5 Gbit/s, or 10
#   inside a *cluster placement group*
#   ([EC2](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html),
#   read on 2026-11-21; with ENA Express, which SageMaker doesn't let you set, up to 25). SageMaker
#   places a job's instances itself; you can't name a group. Several connections at once help: NCCL
#   opens several by itself on AWS
#   ([NVIDIA](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html)), and EFA does
#   more.
# - **EFA**, the Elastic Fabric Adapter, lets ranks bypass the kernel and send over many paths. Few
#   types have it, mostly the largest sizes of their families: see the table's column. Its traffic
#   stays within one zone ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html), read
#   on 2026-11-24), and it works only if the group lets its members through in both directions.
#
# Before you plan with p4d or p5, request a quota first: the default is 0 and approval takes days.
#
# > Measure a link more than once. Where your instances are in the data centre differs from job to
# > job, and so do the times.
#
# Further reading, if SageMaker's way to start ranks doesn't suit you. AWS's images have no Horovod
# after TensorFlow 2.12; `cloudformation/image` has a Dockerfile for an image of your own. On a
# cluster that runs permanently, Dask ([distributed.dask.org](https://distributed.dask.org)) and Ray
# ([docs.ray.io](https://docs.ray.io/en/latest/train/train.html)) start ranks. These average
# gradients in the same way, over the same links.
#
# ## Exercises
#
# In [exercises/06](exercises/06_vpc_colocation.ipynb), each with a check:
#
# 1. *Does this group let ranks through?* (6 minutes, easy): read a security group's rules.
# 2. *How long do gradients travel?* (8 minutes, medium): from bytes and ranks to seconds.
# 3. *Where more instances stop paying* (11 minutes, hard): solve for the bandwidth, with a
#    surprise.
#
# ## Check yourself

# %%
workshop.quiz("06")

# %% [markdown]
# ## Summary
#
# - A VPC decides who reaches whom. One subnet puts all instances into one zone, and that can help.
# - The security group must let its own members in and out on every port. If it doesn't, nothing
#   fails at first: the ranks wait, and you pay.
# - A step is computing and **exposed communication**, the part that nothing hides. Below a certain
#   bandwidth more instances make it slower. That bandwidth follows from your bytes and your
#   computing, so measure both.
# - Between zones each step of a ring waits longer: 2 (N - 1) α in each all-reduce.
# - Usually fill an instance before you take the next one: intra-node links are the fastest.
# - Choose by sustained Gbit/s, not by "up to".

# %% [markdown]
# ## Clean up
#
# The jobs' instances are gone. The network stack remains. As it is it costs nothing; a NAT gateway
# or interface endpoints would be billed by the hour. The next cell deletes what this lesson
# created. On AWS that can take minutes, until SageMaker has removed the jobs' network cards. If you
# skip it, `workshop stacks status` and lesson 99 find the stack.

# %%
if made:
    stacks.delete(session, ("network",))

# %% [markdown]
# ## Next
#
# [Lesson 07](07_smddp.ipynb): an all-reduce that knows which ranks share an instance, and what it
# gains on a slow link.

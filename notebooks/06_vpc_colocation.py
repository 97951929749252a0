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
# - show how a training step grows as the link between instances gets slower, and find the bandwidth
#   below which a second instance makes it slower;
# - create a network for training jobs, and say what each part of it is for;
# - say what NCCL does between instances, and read in its log whether EFA is in use;
# - predict an all-reduce on machines that you don't have, and say how far such predictions are off;
# - choose an instance by its bandwidth, in one zone, with or without EFA.
#
# **Before:** [lesson 02](02_collectives.ipynb): all-reduce, α and β.
# [Lesson 05](05_horovod_on_training_instances.ipynb): instances x processes.
#
# **Time:** 35 minutes, and 27 for the exercises. Locally the jobs take about 2 of them; on AWS,
# where each takes perhaps 5 minutes, longer.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Only a local run can limit bandwidth; on AWS each job gets what its instance type has. Nobody has
# run this lesson on AWS yet: what it says of AWS comes from documentation and source code.
#
# **Cost on AWS:** about 0.31 USD: two jobs of two `ml.c5.xlarge` and three of up to four
# `ml.c5.2xlarge`, 5 minutes each (us-east-1, price list of 2026-09-27). At most 1.04 USD, whatever
# goes wrong. The network costs nothing. Locally the lesson is free.

# %% [markdown]
# ## Set up
#
# - `links`: the bandwidths to try between instances. `25mbit` is 25 Mbit/s, `wide` has no limit.
# - `jobs_each`: how many jobs for each bandwidth. `rounds`: how often each of them measures.
# - `layout_...`: an all-reduce of all ranks on one instance, then on more and more instances.
# - `make_network`: create the network stack if there is none. The kit's notebook instance isn't
#   allowed to: there, run `workshop stacks up network --target aws` from your own machine first.
#
# In pictures, filled marks were measured in this run. Pale ones were recorded on another machine;
# they appear only where bandwidth can't be limited. What is computed says so.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
layout_instance_type = "ml.c5.2xlarge"
links = ["wide", "100mbit", "25mbit", "10mbit"]
jobs_each = 2
rounds = 3
global_batch_size = 512
hidden_units = 64
layout_link = "200mbit"
layout_ranks = 8
layout_instances = [1, 2, 4]
layout_megabytes = 8
make_network = True
max_run = 900

# %%
import numpy as np
import pandas as pd

import local_sagemaker
import workshop
from workshop import plots
from workshop.account import stacks
from workshop.jobs import bandwidth, vpc
from workshop.lesson import reference_results
from workshop.measure import alpha_beta, interleaved, published
from workshop.measure.scaling import Scaling
from workshop.plots import network as diagrams

pd.set_option("display.max_colwidth", None)  # whole sentences in tables

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits-28")
made = make_network and vpc.network_from_stack(session) is None
if made:
    workshop.deploy(session, ("network",))
network = vpc.network(session)
unshaped = bandwidth.unlimited_reason(session)
recorded = reference_results.load("06") if unshaped and target == "local" else None
source = "recorded" if recorded else "measured"
print(unshaped or "This machine can limit the bandwidth between instances.")

# %% [markdown]
# (It needs Linux and *namespaces*, the kernel's way to give processes network cards of their own.)
#
# ## A slower link
#
# In a local run each instance has a network card of its own, and the emulator limits what that card
# sends and receives with `tc`, the kernel's traffic control. So bytes really queue. A job asks for
# a limit with an environment variable, which AWS ignores.
#
# The training is that of lesson 01: digits at 28 x 28 pixels, a global batch of 512, PyTorch's DDP.
# Two instances with one rank each share the batch; their gradients, 0.42 MB, cross the link in
# every step. In the same job one rank also trains alone on the whole batch, as a single instance
# would.
#
# **Predict.** A link of 10 Mbit/s carries 1.25 MB per second. A step on one instance takes 100 to
# 200 ms on most machines, and a second instance can save half of it.

# %%
tried = ["wide"] if unshaped else links
narrowest, never = tried[-1], "at none of them"
questions = {"two": "How many times as fast as one instance are two, without a limit?"}
if not unshaped:
    questions |= {
        "longer": f"How much longer does a step take at {narrowest} than without a limit, in ms?",
        "first": ("At which of these are two instances first slower than one?", [*tried, never]),
    }
guess = workshop.guess(**questions)

# %%
from sagemaker.pytorch import PyTorch

torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
shared = session.job_settings("links", source_dir=workshop.DEMOS) | network | {"max_run": max_run}


def two_instances(link: str) -> PyTorch:
    """A job that measures one rank, and two ranks on two instances with this link."""
    return PyTorch(
        entry_point="measure_scaling.py",
        instance_count=2,
        instance_type=instance_type,
        distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},
        hyperparameters={
            "library": "torch",
            "global-batch-size": global_batch_size,
            "hidden-units": hidden_units,
            "steps": 2,
            "rounds": rounds,
        },
        **torch_image,
        **shared,
    )


# %%
layouts = {f"{n} x {layout_ranks // n}": n for n in ([1] if recorded else layout_instances)}
planned = {"two instances": (instance_type, 2, jobs_each)}
planned |= {name: (layout_instance_type, count, 1) for name, count in layouts.items()}
columns = ("instance_type", "instance_count", "jobs")
costs = [dict(zip(columns, row, strict=True)) | {"seconds": 300} for row in planned.values()]
costs = [row | {"instance_count": row["instance_count"] * row["jobs"]} for row in costs]
costs = workshop.cost_table(costs, max_run=max_run)
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"All jobs of this lesson: about {total:.2f} USD on AWS, at most {most:.2f}. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# Each bandwidth gets several jobs, in random order, so that a busy minute of this machine doesn't
# fall on one bandwidth alone. Within a job everything is measured in rounds, in random order too.
# And each round measures the same step twice: what lies between the two (A/A) is noise.

# %%
order = [link for _ in range(jobs_each) for link in np.random.permutation(tried)]
results = workshop.run_jobs(
    {f"{link}, job {number}": two_instances(link) for number, link in enumerate(order)}, channels
)

# %% [markdown]
# <!-- SDK v3: wide, job 0 -->

# %% jupyter={"source_hidden": true}
here = {name: Scaling.from_records(result.events) for name, result in results.items()}
by_job = [job.rounds.assign(link=name.split(",")[0], job=name) for name, job in here.items()]
sweep, gradient_bytes = pd.concat(by_job), next(iter(here.values())).gradient_bytes
if recorded:
    print(f"Without a limit, measured here:\n{sweep.groupby('link')['step'].describe()}\n")
    print(recorded.caption)
    sweep = pd.DataFrame(recorded.results["sweep"])
    gradient_bytes = recorded.results["gradient_bytes"]

# %%
links_shown = sorted(sweep["link"].unique(), key=bandwidth.mbit, reverse=True)
labels = ["no limit" if link == "wide" else f"{bandwidth.mbit(link):g}" for link in links_shown]
names = [label if label == "no limit" else f"{label} Mbit/s" for label in labels]
# Two ranks send 2 (N - 1) / N times the bytes: once.
sending = sweep["link"].map(lambda link: gradient_bytes * 8 / (bandwidth.mbit(link) * 1e6))
computed = sweep["compute"] + sweep["wait"] + sending  # of each round; knows no step
sweep = sweep.assign(
    gain=sweep["alone"] / sweep["step"],
    computed_gain=sweep["alone"] / computed,
    noise=sweep["step"] / sweep["again"],
    error=computed / sweep["step"] - 1,
)
medians = sweep.groupby("link")[["gain", "computed_gain", "error"]].median().loc[links_shown]
verdicts = pd.Series(
    {link: interleaved.verdict(of["gain"], of["noise"]) for link, of in sweep.groupby("link")}
).loc[links_shown]

# %% jupyter={"source_hidden": true} tags=["figure", "readme"]
title = f"Two instances: {medians['gain'].iloc[0]:.1f} times as fast as one without a limit"
if len(links_shown) > 1:
    title += f", {medians['gain'].iloc[-1]:.2g} times at {labels[-1]} Mbit/s"
title += "" if source == "measured" else " (recorded elsewhere)"
alt = f"{title}. " + "; ".join(
    f"{label}: {row['gain']:.2g}, computed {row['computed_gain']:.2g}"
    for label, (_, row) in zip(labels, medians.iterrows(), strict=True)
)
x, y = "bandwidth of each instance (Mbit/s), slower to the right", "times as fast as one instance"
with plots.canvas(title, x, y, size=(8.5, 4.2), alt=alt) as axes:
    places = np.arange(len(links_shown))
    look = {"alpha": 0.7 if source == "measured" else 0.3, "color": plots.COLOURS[0]}
    for at, link in enumerate(links_shown):
        for job, (_, of_job) in enumerate(sweep[sweep["link"] == link].groupby("job")):
            name = "measured: a round of one of its jobs" if at == job == 0 else None
            spots = [at + 0.1 * (job - 0.5)] * len(of_job)
            axes.plot(spots, of_job["gain"], "o", ms=5, label=name, **look)
    low, high = sweep["noise"].quantile([0.1, 0.9])
    axes.axhspan(low, high, color="grey", alpha=0.2, lw=0, label="noise (A/A): no difference")
    axes.axhline(1, color="grey", linewidth=1)
    axes.plot(places, medians["computed_gain"], "k--", label="computed from bytes / bandwidth")
    axes.set(xticks=places, xticklabels=labels, ylim=(0, None))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)

# %% jupyter={"source_hidden": true}
step_ms = 1000 * sweep.groupby("link")["step"].median()
answers = {"two": medians["gain"].iloc[0], "longer": step_ms[links_shown[-1]] - step_ms["wide"]}
answers["first"] = next((link for link in links_shown if verdicts[link] == "slower"), never)
guess.compare(**{name: answers[name] for name in questions})
for verdict in ("faster", "no difference shown", "slower"):
    at = np.array(labels)[(verdicts == verdict).to_numpy()]
    if len(at):
        print(f"Two instances against one, {verdict}: {', '.join(at)}")
if medians["gain"].max() > 2.05:
    print("(More than 2: this machine is busy, and two processes get more of it than one.)")
errors = medians["error"]
print(f"The computed steps are off by {errors.min():+.0%} to {errors.max():+.0%} (medians).")
saved = (sweep["alone"] - sweep["compute"] - sweep["wait"]).median()
if saved > 0:
    equal = float(f"{gradient_bytes * 8e-6 / saved:.2g}")
    print(f"Dividing the batch saves {1000 * saved:.0f} ms. {gradient_bytes / 1e6:.2f} MB take as")
    print(f"long at about {equal:g} Mbit/s: there one and two are equally fast (computed).")

# %% jupyter={"source_hidden": true}
parts = 1000 * sweep.groupby("link")[["compute", "wait", "exposed"]].median().loc[links_shown]
parts = parts.clip(lower=0).set_axis(["compute", "wait", "exposed communication"], axis=1)
title = f"Exposed communication: {parts.iloc[0, 2]:.0f} ms of a step without a limit"
if len(parts) > 1:
    title += f", {parts.iloc[-1, 2]:.0f} ms at {names[-1]}"
plots.step_bars(parts.set_axis(names), title)

# %% jupyter={"source_hidden": true}
dots = sweep.assign(r=sweep["exchange"] / sweep["compute"], share=sweep["compute"] / sweep["step"])
dots = dots.groupby("link").agg(
    r=("r", "median"), share=("share", "median"), low=("share", "min"), high=("share", "max")
)
dots = dots.loc[links_shown].assign(source=source)
dots["label"] = [f"2 instances, {name}" for name in names]
title = " and ".join(dict.fromkeys(f"{dots['share'].iloc[at]:.0%}" for at in (0, -1)))
title = f"{title} of the ceiling: what the link leaves of two instances"
plots.scaling_map(dots, title, noise=(low, high))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    sweep=sweep.to_dict("records"),
    gradient_bytes=gradient_bytes,
    verdicts=verdicts.to_dict(),
    recorded=bool(recorded),
    scaling={  # of each bandwidth its last job, for the README's map
        f"06: 2 instances, {name.split(',')[0]}": job.record() for name, job in here.items()
    },
)
for name, job in here.items():
    least = 0.9 * job.gradient_bytes * 8 / (bandwidth.mbit(name.split(",")[0]) * 1e6)
    assert job.rounds["step"].median() > least, f"{name}: faster than the link allows"

# %% [markdown]
# The dashed line is a prediction: it knows what the two ranks computed in the same round, and the
# bytes, but no step and no all-reduce. What grows is **exposed communication**, the part of sending
# that nothing hides. (Nine tenths of these bytes are one tensor, so there is little to hide it
# behind; lesson 07 has a model with many layers.) Where the points are below 1 you pay for two
# instances and wait longer. The last picture is the map of all lessons, with this lesson's dots.
#
# On AWS you don't set the bandwidth: with the instance type you choose a place on the horizontal
# axis. With fewer bytes, or more computing before they are sent, two instances keep up on a slower
# link; exercise 3 has the formula.
#
# ## Whose network?
#
# By default a job's instances are in a network of SageMaker's own. With a **VPC**, a private
# network in your account, each instance gets one more network card with an address in *your*
# network, and what the script sends goes through it. That gives you control over who reaches the
# instances, and what they reach. It doesn't give you speed: a VPC is a set of rules and addresses
# on top of the same cables. What it does determine is **where** instances are. A subnet belongs to
# one Availability Zone (data centres close together), and a card has to be in the zone of its
# instance: a job with one subnet is in one zone. That is this lesson's *colocation*.

# %%
ec2 = session.client("ec2")
(subnet,) = ec2.describe_subnets(SubnetIds=network["subnets"])["Subnets"]
(group,) = ec2.describe_security_groups(GroupIds=network["security_group_ids"])["SecurityGroups"]
names = {"vpc": subnet["VpcId"], "subnet": subnet["SubnetId"], "group": group["GroupId"]}
diagrams.vpc(names | {"zone": subnet["AvailabilityZone"]})

# %% [markdown]
# A wrong security group is the expensive case: there is no error, and you pay until `max_run` stops
# the job, or until the launcher gives up after an hour.
#
# | part | what it is for | without it |
# |---|---|---|
# | **subnet**, in one zone | addresses | two zones: a longer path, billed by the GB |
# | **security group**, open to its own members | ranks reach each other | they wait, and you pay |
# | S3 **gateway endpoint** (free) | data in, model out | the download fails |
# | **interface endpoints** (off here, by the hour) | *your script* calls AWS | it hangs |
# | **NAT gateway** (off here, by the hour and GB) | `pip` | `requirements.txt` times out |
# | free **addresses**: 2 per instance, 5 with EFA, a faster card | network cards | no start |
#
# (AWS: [training in a VPC](https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html), read
# on 2026-11-21. `workshop preflight` checks subnet, addresses and the group's rules before you
# pay.)
#
# Below are the rules of this group. Which line lets rank 0 reach rank 1 on another instance?

# %% jupyter={"source_hidden": true}
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
# The lines with *itself* do: one lets members in, the other lets them out. Port 443 leads to S3.
# Without any rule for what goes out, AWS adds one that lets everything out, and that is enough for
# TCP. For EFA, the fast network card of some types, it isn't: EFA needs the group itself named in
# both directions ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-efa.html), read
# on 2026-11-24).
#
# <details><summary>The one switch of a VPC that slows training; "a VPC lowers latency"</summary>
#
# `encrypt_inter_container_traffic=True` encrypts what ranks send each other. Teams that must use a
# VPC often must set it, too. AWS says that it can lengthen distributed training; the group must
# also allow UDP port 500 and protocol 50 (ESP) between its members, which a rule for all protocols
# does ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/train-encrypt.html), read on
# 2026-11-24).
#
# Some texts say that training in a VPC lowers latency. We know of no measurement that shows it.
# Lesson 05 runs one job inside a VPC and outside; only on AWS could that differ.
#
# </details>
#
# ## One large instance or many small ones?
#
# Eight ranks can be in one instance, or four instances of two. In a ring each rank sends nearly
# twice its gradients wherever it is, and only the *last* rank of an instance sends to another
# instance. So an instance's link carries 2 (N - 1) / N times the gradients, however many instances
# there are: 2 x 4 should take as long as 4 x 2, and only 1 x 8, which uses no network, should be
# much faster. (`2 x 4` is 2 instances with 4 ranks each.)
#
# Two algorithms are measured: `gloo`, PyTorch's ring, and `hierarchical`, the subject of lesson 07,
# which adds up within each instance first and sends only the sums: 2 (n - 1) / n for n instances.

# %%
guess = workshop.guess(
    network="How many times as long as on 1 x 8 does gloo's all-reduce take on 2 x 4?",
    gain="How many times as fast as gloo is hierarchical on 2 x 4?",
)


# %%
def all_reduces(instances: int, ranks_each: int, link: str, **settings) -> PyTorch:
    """A job that measures single messages and all-reduces of so many ranks."""
    return PyTorch(
        entry_point="measure_all_reduce.py",
        instance_count=instances,
        instance_type=layout_instance_type,
        distribution={"mpi": {"enabled": True, "processes_per_host": ranks_each}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},
        hyperparameters=settings,
        **torch_image,
        **shared,
    )


sizes = {"bytes": layout_megabytes * 1_000_000, "blocks": 5}
measured = workshop.run_jobs(
    {
        name: all_reduces(
            count,
            layout_ranks // count,
            layout_link,
            algorithms="gloo,hierarchical" if count > 1 else "gloo",
            **sizes,
        )
        for name, count in layouts.items()
    }
)

# %% [markdown]
# <!-- SDK v3: 2 x 4 -->

# %% jupyter={"source_hidden": true}
placed_here = []
for name, count in layouts.items():
    tiers = alpha_beta.HierarchicalLinks.from_measurements(measured[name].events)
    where = {"instances": count, "ranks_per_instance": layout_ranks // count, "links": tiers}
    for record in measured[name].table("all_reduce").to_dict("records"):
        algorithm, took = record["algorithm"], pd.Series(record["seconds"])
        row = {"placement": name, "algorithm": algorithm, "measured": float(took.median())}
        row |= {"lowest": float(took.min()), "highest": float(took.max())}
        row["predicted"] = alpha_beta.estimated_seconds(algorithm, record["bytes"], **where)
        placed_here.append(row)
placed = pd.DataFrame(recorded.results["placed"] if recorded else placed_here)
if recorded:
    print(f"Measured here, one instance:\n{pd.DataFrame(placed_here)}\n\n{recorded.caption}")
found_ms, model_ms = (
    1000 * placed.pivot(index="placement", columns="algorithm", values=which)
    for which in ("measured", "predicted")
)

# %% jupyter={"source_hidden": true} tags=["figure"]
longer = found_ms["gloo"].iloc[1:] / found_ms["gloo"].iloc[0]
title = f"{layout_megabytes} MB, 8 ranks, {bandwidth.mbit(layout_link):g} Mbit/s"
if len(longer):
    times = " to ".join(dict.fromkeys(f"{value:.2g}" for value in sorted(longer)))
    title = f"{title}: over the network {times} times as long"
found_ms.index.name = "instances x ranks on each"
plots.grouped_bar_chart(found_ms, title, "ms for an all-reduce", bounds=model_ms, source=source)

# %% jupyter={"source_hidden": true}
if "2 x 4" in found_ms.index:
    gain = found_ms.loc["2 x 4", "gloo"] / found_ms.loc["2 x 4", "hierarchical"]
    guess.compare(network=float(longer.loc["2 x 4"]), gain=float(gain))
for name, row in found_ms.iloc[1:].iterrows():
    n = int(name.split()[0])
    by_bytes = (layout_ranks - 1) / layout_ranks * n / (n - 1)
    gain = row["gloo"] / row["hierarchical"]
    print(f"{name}: hierarchical is {gain:.2f} times as fast as gloo; by bytes {by_bytes:.2f}")
    if gain < 0.8 * by_bytes:
        print("    Far less than by bytes: eight ranks wait for this machine's few cores.")
    if row.idxmin() != model_ms.loc[name].idxmin():
        print(f"    The model takes {model_ms.loc[name].idxmin()} for the faster one: wrong.")
errors = placed["predicted"] / placed["measured"] - 1
print(f"The model's errors: {errors.min():+.0%} to {errors.max():+.0%}.")
table = placed.set_index(["placement", "algorithm"])[["lowest", "measured", "highest"]] * 1000
table.rename(columns={"measured": "median"}).round(0).add_suffix(f" (ms, {source})")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(placed=placed.to_dict("records"))

# %% [markdown]
# Black marks are lesson 02's model, from single messages that each job timed on its own links. It
# knows nothing of the time to add numbers. By bytes, hierarchical gains most on few instances with
# many ranks each.
#
# So **fill an instance before you take a second one**. Whether two large instances suffer more from
# their network than two small ones depends on the bandwidth *per GPU*. Here it is, with what 1 GB
# of gradients needs on each kind of link of two full instances, hierarchically: over the network,
# and within an instance over **NVLink**, Nvidia's direct links between GPUs (computed; GB/s per GPU
# and direction from [a list of data
# sheets](https://github.com/stas00/ml-engineering/blob/master/network/README.md#nvlink), read on
# 2026-11-25):

# %%
nvlink = {"ml.p3.16xlarge": 150, "ml.p3dn.24xlarge": 150, "ml.p4d.24xlarge": 300}
nvlink["ml.p5.48xlarge"] = 450
binds = {}
for name, within in nvlink.items():
    outside = bandwidth.network_performance(name).gbit / 8  # GB/s of an instance
    inside_ms, network_ms = 1000 * 2 * 7 / 8 / within, 1000 * 2 * 1 / 2 / outside
    binds[name] = {
        "Gbit/s per GPU": outside,  # 8 GPUs, 8 bits
        "within, ms": inside_ms,
        "network, ms": network_ms,
        "what binds": "NVLink" if inside_ms > network_ms else "the network",
    }
pd.DataFrame.from_dict(binds, orient="index").round(1)

# %% [markdown]
# From the smallest P3 to `p3.16xlarge` a GPU's share is about 3 Gbit/s. There, the larger the
# instance, the more communication matters. From p4d on that is no rule any more, and on two p5 the
# network isn't what binds at all.
#
# ## What NCCL does between instances
#
# On GPUs you don't call gloo but **NCCL**, Nvidia's library, through DDP, Horovod or FSDP. For each
# size it estimates α + β · bytes of every algorithm it has, and takes the fastest:
#
# - **Ring**: lesson 02's. Best for large messages on three instances or more.
# - **Tree**: two binary trees over the *instances*, half of the bytes on each; within an instance a
#   chain. About 2 log₂ n hops over the network in place of 2 (n - 1), so it wins for short
#   messages. On two instances the bytes cross the network once: it *is* hierarchical, and NCCL
#   often takes it there for large messages, too
#   ([nccl#946](https://github.com/NVIDIA/nccl/issues/946)).
# - **NVLS**: the NVLink switch of H100 and later adds up itself; NVLSTree joins such instances.
#
# `NCCL_ALGO=Ring` or `Tree` forces one, to compare. Which way bytes go is in the log of a job with
# `environment={"NCCL_DEBUG": "INFO"}`. Lines of this form (shortened) say that **EFA is in use**:
#
# ```text
# [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
# [0] NCCL INFO Using network AWS Libfabric
# [7] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA
# [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
# ```
#
# Rank 7 is the last of its instance and sends over the network; ranks 0 and 1 share NVLink (`P2P`).
# With `NET/Socket` in place of `NET/AWS Libfabric` all goes over TCP: then look for the plugin
# aws-ofi-nccl in the image, and for the security group's rules.
#
# To measure a cluster, people run **nccl-tests** (`all_reduce_perf -b 8 -e 1G -f 2`). It prints two
# bandwidths: *algbw* is bytes / time; **busbw** is that times 2 (N - 1) / N, which is what each
# link of a ring carries. So busbw can be compared with a data sheet, except on two instances, where
# a tree sends less than busbw assumes and the number can exceed the network's.
#
# ## The model, held against what others measured
#
# The same model can be asked about machines that we don't have. β is the data sheet's bandwidth, α
# are the latencies with which NCCL itself chooses (in its source), and nothing is fitted.
# `notebooks/recorded/published_scalings.toml` has what others published, with source and day, and
# which inputs were taken from where. Times of all-reduces are predicted as they are. Of a training
# step two times are computed: with as much hidden behind backward as can be, and with nothing
# hidden; the published one should lie between.

# %%
checked = published.predictions()
reduces, steps = (checked[checked["kind"] == kind] for kind in ("all-reduce", "step"))
large = reduces[reduces["case"].str.contains("GiB")]
inside = (steps["error"] == 0).sum()
print(f"{len(checked)} published numbers from {checked['source'].nunique()} sources")
print(f"{len(large)} all-reduces of 1 GiB or more: median error {large['error'].median():+.0%},")
print(f"    from {large['error'].min():+.0%} to {large['error'].max():+.0%}")
shorter = reduces.drop(large.index)
print(f"{len(shorter)} shorter ones: median error {shorter['error'].median():+.0%},")
print(f"    from {shorter['error'].min():+.0%} to {shorter['error'].max():+.0%}")
print(f"{len(steps)} training steps: {inside} lie between the two computed times,")
apart = (steps["nothing_hidden_ms"] / steps["predicted_ms"] - 1).median()
print(f"    which are {apart:.0%} apart (median)")

# %% jupyter={"source_hidden": true} tags=["figure"]
slower = (reduces["predicted_ms"] < reduces["measured_ms"]).mean()
title = f"Data sheets promise more: {slower:.0%} of the all-reduces took longer than computed"
x, y = "computed (ms)", "published (ms)"
alt = f"{title}. Across: computed, up: published, both logarithmic, 0.02 to 3,000 ms."
with plots.canvas(title, x, y, size=(8, 5), alt=alt) as axes:
    ends = np.array([0.02, 3000])
    axes.plot(ends, ends, color="black", linewidth=1, label="computed = published")
    axes.fill_between(ends, ends, 2 * ends, color="grey", alpha=0.15, lw=0, label="up to twice")
    for at, (name, group_of) in enumerate(reduces.groupby("source", sort=False)):
        style = {"color": plots.COLOURS[at % 7], "marker": "osD^v"[at % 5], "linestyle": "none"}
        axes.plot(group_of["predicted_ms"], group_of["measured_ms"], label=name, ms=5, **style)
    axes.hlines(
        steps["measured_ms"],
        steps["predicted_ms"],
        steps["nothing_hidden_ms"],
        color=plots.COLOURS[3],
        label="training steps, from all to nothing hidden",
    )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)

# %% jupyter={"source_hidden": true}
about = {entry["name"]: entry for entry in published.sources()}
of_source = checked.groupby("source", sort=False)["error"].agg(["count", "min", "max"])
of_source = of_source.rename(columns={"count": "numbers", "min": "error from", "max": "to"})
of_source["why, where it is large"] = [about[name].get("why", "") for name in of_source.index]
of_source.style.format({"error from": "{:+.0%}", "to": "{:+.0%}"})

# %% jupyter={"source_hidden": true}
from IPython.display import HTML

every = checked.drop(columns="kind").round(3).to_html(index=False, na_rep="")
HTML(f"<details><summary>Every number, computed and published</summary>{every}</details>")

# %% jupyter={"source_hidden": true}
between = []
for name in ("AWS, 2 p4de", "AWS, 2 p5"):  # from 8 bytes to GiB, on one machine
    timed = pd.DataFrame(about[name]["all_reduce"]).sort_values("bytes")
    (few, least), (many, most) = timed[["bytes", "ms"]].iloc[[0, -1]].to_numpy()
    beta = (most - least) / (many - few)
    link = alpha_beta.Link(least - beta * few, beta)
    middle = timed.iloc[1:-1]
    between += list(middle["bytes"].map(link.seconds) / middle["ms"] - 1)
print(f"With α and β from a machine's own shortest and longest message, the {len(between)} between")
print(f"them are off by {min(between):+.0%} to {max(between):+.0%}.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(published=checked.fillna(0).to_dict("records"))

# %% [markdown]
# Take three things from it. A data sheet is a bound, and well-set-up instances of today come close
# to it with large messages. Short messages over EFA take several times what NCCL's source assumes:
# measure α where you run, and measure the sizes that you send, because NCCL changes algorithm and
# protocol between them. And a network can be set up badly: in
# [nccl#527](https://github.com/NVIDIA/nccl/issues/527) two p4d take four times as long as one, and
# three or four reach 60 % of their network.
#
# (We could not check these, and left them out: the table in Herring's paper, the figures of the
# papers on DDP (arXiv 2006.15704) and on the network as a bottleneck (2006.10103), the tables of
# Horovod's own (1802.05799), long messages of dstack#3961.)
#
# ## Up to 2,048 ranks
#
# What binds when? Take the largest training in that file, a model of 6.7 billion weights in
# bfloat16 on instances of 8 H100, and let a fixed global batch of 2,048 sequences be shared by more
# and more ranks (strong scaling), averaged in buckets of 25 MiB. Everything here is computed; it
# rests on one measured number, the 1.15 s in which one GPU computed 6 sequences, on data sheets,
# and on NCCL's latencies, which the table above has shown to be too low for EFA.

# %%
case = about["llm-foundry, H100"]["step"][0]
simple = published.PROTOCOLS["Simple"]
buckets = case["gradient_bytes"] / (25 * 2**20)
scaled = []
for n in 2 ** np.arange(9):
    machine = published.Machine(int(n), 8, 450e9, 400e9)
    hops = {
        name: buckets * published.latency_seconds(machine, name, simple)
        for name in ("ring", "tree")
    }
    scaled.append(
        {
            "ranks": machine.ranks,
            "compute": case["compute_ms"] / 1000 / 6 * 2048 / machine.ranks,
            "bytes": published.bytes_seconds(case["gradient_bytes"], machine, "ring"),
            "latency, ring": hops["ring"],
            "latency, tree": hops["tree"],
        }
    )
scaled = pd.DataFrame(scaled).set_index("ranks")

# %% jupyter={"source_hidden": true} tags=["figure"]
cost = scaled[["bytes", "latency, ring"]].sum(axis=1)
turned = next((ranks for ranks in scaled.index if cost[ranks] > scaled.loc[ranks, "compute"]), None)
title = "Computed: the ring's latency binds first" if turned else "Computed: compute binds"
if turned:
    title += f": from {turned:,} ranks on it costs more than computing"
with plots.canvas(title, "ranks (8 in each instance)", "seconds per step", size=(8, 4)) as axes:
    for name, line, colour in zip(scaled, ("-", "-.", "--", ":"), plots.COLOURS, strict=False):
        axes.plot(scaled.index, scaled[name], line, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xticks=scaled.index, xticklabels=list(scaled.index))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(scaled=scaled.reset_index().to_dict("records"), turned=turned)

# %% [markdown]
# The bytes per rank hardly grow, so bandwidth isn't what ends strong scaling. Computing shrinks as
# 1 / N, and the ring's hops grow as N. That is why NCCL has trees, and why large trainings use
# larger buckets, and split the model as well as the batch.
#
# ## One zone or two?
#
# **Latency** is what a message takes before its first byte arrives: α. AWS says that a region's
# zones are up to 100 km apart, with single-digit milliseconds between them
# ([AWS](https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/availability-zones.html),
# read on 2026-11-24). One user's pings of 2014: 0.45 ms there and back within a zone, up to 2.1 ms
# to another ([gist](https://gist.github.com/josephmisiti/10312241), read on 2026-11-24). Half
# of that is one way.
#
# What does one more border cost a ring? A chunk goes round twice, so it crosses each border between
# instances twice. If half of the instances are in another zone, two borders lead there and back:
# at least 4 long hops in each all-reduce. An implementation that waits for an answer before it
# sends the next chunk waits for the border in each of its 2 (N - 1) steps.

# %%
near, far = 0.45 / 2, 2.1 / 2  # ms, one way
waits = {}
for n in (2, 8, 64):  # instances, one rank each
    hops = 2 * (n - 1)
    crossing = min(4, hops)
    waits[n] = {
        "one zone": hops * near,
        "two zones, at least": (hops - crossing) * near + crossing * far,
        "two zones, in lock-step": hops * far,
    }
rounds_ms = pd.DataFrame.from_dict(waits, orient="index").rename_axis("instances")
rounds_ms.round(1).add_suffix(" (ms, computed)")

# %% jupyter={"source_hidden": true}
unmeasured = local_sagemaker.shaping_unavailable_reason(latency=True)
late = "On AWS nobody sets the delay." if target == "aws" else unshaped or unmeasured
added = None
if not late:
    tiny = {"algorithms": "gloo", "bytes": 4000, "link-bytes": "8,8000", "blocks": 5}
    zones = {"two zones": "1gbit 1ms", "one zone": "1gbit"}
    far = workshop.run_jobs({name: all_reduces(2, 2, link, **tiny) for name, link in zones.items()})
    took = {
        name: 1000 * pd.Series(result.table("all_reduce").iloc[0]["seconds"]).median()
        for name, result in far.items()
    }
    added = took["two zones"] - took["one zone"]
    print(f"With 1 ms each way, 4 kB of 4 ranks on 2 instances take {added:.1f} ms longer")
    print("(measured with gloo; at least 3 long hops, 6 in lock-step).")
else:
    print(f"Not measured here: {late}")

# %% [markdown]
# <!-- SDK v3: again -->

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(latency_added=added, not_delayed=late, rounds_ms=rounds_ms.to_dict())

# %% [markdown]
# Milliseconds in *every* all-reduce, and a step has one for each bucket: with many instances more
# than a training step. Bandwidth doesn't help, one zone does.
#
# ## Choose by bandwidth
#
# This is what AWS documents for some types (EC2's
# [DescribeInstanceTypes](https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkCardInfo.html),
# read on 2026-11-21). `Gbit/s` is what an instance can keep up; `burst` it has for minutes only,
# and "up to 10 Gigabit" in a catalogue means the burst. NaN: no burst, or a price that the kit
# doesn't know.

# %%
names = ["ml.m5.xlarge", "ml.c5.xlarge", "ml.c5.2xlarge", "ml.c5n.18xlarge", "ml.g4dn.xlarge"]
names += ["ml.g5.xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"]
choose = workshop.cost_table({"instance_type": name, "instance_count": 1} for name in names)
choose = choose.set_index("instance_type")[["USD per hour"]]
of_type = [bandwidth.network_performance(name) for name in names]
choose["Gbit/s"] = [row.gbit for row in of_type]
choose["burst"] = [row.burst_gbit for row in of_type]
choose["EFA"] = [row.efa for row in of_type]
choose["ms for 100 MB (computed)"] = 100 * 8 / choose["Gbit/s"]
choose

# %% [markdown]
# The last column is 100 MB in one direction; a ring of many carries nearly twice that. Compare it
# with the computing that the second instance saves, half of a step. If sending takes longer, and
# nothing hides it, two instances are slower than one. Then three things decide what a link gives
# you:
#
# - **One zone.** Traffic between zones travels farther, and each GB is billed.
# - **Several connections.** A single TCP connection gets at most 5 Gbit/s, 10 inside a *cluster
#   placement group*, 25 with ENA Express; SageMaker lets you set neither
#   ([EC2](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html),
#   read on 2026-11-21). NCCL opens 16 by itself on AWS
#   ([NVIDIA](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html), read on
#   2026-11-25).
# - **EFA**, the Elastic Fabric Adapter: ranks bypass the kernel and send over many paths. Few types
#   have it, mostly the largest of their families. Its traffic stays within one zone
#   ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html), read on 2026-11-24).
#
# Before you plan with p4d or p5, request a quota first: the default is 0 and approval takes days.
# And measure a link more than once: where your instances are differs from job to job.
#
# (AWS's images have no Horovod after TensorFlow 2.12; `cloudformation/image` has a Dockerfile for
# an image of your own.)
#
# ## Exercises
#
# In [exercises/06](exercises/06_vpc_colocation.ipynb), each with a check:
#
# 1. *Does this group let ranks through?* (6 minutes, easy): read a security group's rules.
# 2. *Why does this job hang?* (10 minutes, medium): five logs from a VPC, five causes.
# 3. *Where more instances stop paying* (11 minutes, hard): solve for the bandwidth, with a
#    surprise.
#
# ## Check yourself

# %%
workshop.quiz("06")

# %% [markdown]
# ## Summary
#
# - A step is computing and **exposed communication**. Below a certain bandwidth more instances make
#   it slower, and that bandwidth follows from your bytes and your computing: measure both.
# - A VPC decides who reaches whom. One subnet puts all instances into one zone.
# - The security group must let its own members in and out on every port. If it doesn't, nothing
#   fails: the ranks wait, and you pay.
# - Fill an instance before you take the next one, and look at the Gbit/s per GPU.
# - NCCL picks ring, tree or NVLS by size; its log says whether EFA is in use.
# - α and data sheets predict large all-reduces well and short ones badly: measure α where you run.
# - Choose by sustained Gbit/s, not by "up to", and stay in one zone.

# %% [markdown]
# ## Clean up
#
# The jobs' instances are gone. The network stack costs nothing as it is; a NAT gateway or interface
# endpoints would be billed by the hour. The next cell deletes what this lesson created. On AWS that
# can take minutes, until SageMaker has removed the jobs' network cards. If you skip it, `workshop
# stacks status` and lesson 99 find the stack.

# %%
if made:
    stacks.delete(session, ("network",))

# %% [markdown]
# ## Next
#
# [Lesson 07](07_smddp.ipynb): an all-reduce that knows which ranks share an instance, and what it
# gains on a slow link.

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
# # 06 · VPC colocation: where instances are, and what lies between them
#
# **After this lesson you can**
#
# - show how a training step grows as the link between instances gets slower, and find the bandwidth
#   below which a second instance makes it slower;
# - create a network for training jobs, and say what each part of it is for;
# - say what NCCL does between instances, and read in its log whether EFA is in use;
# - choose an instance by its bandwidth, in one zone, with or without EFA.
#
# **Before:** [lesson 02](02_collectives.ipynb): all-reduce, α and β.
# [Lesson 05](05_horovod_on_training_instances.ipynb): instances x processes.
#
# **Time:** 55 minutes, and 27 for the exercises; the three optional sections take 20 more. On AWS,
# where each job takes perhaps 5 minutes, longer.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Only a local run can limit bandwidth; on AWS each job gets what its instance type has. Nobody has
# run this lesson on AWS yet: what it says of AWS comes from documentation and source code.
#
# **Cost on AWS:** about 0.27 USD: a job of two `ml.c5.xlarge`, and three of one, two and four
# `ml.c5.2xlarge`, 5 minutes each (us-east-1, price list of 2026-09-27). At most 0.93 USD for
# instances, even if every job hangs. The network costs nothing. Locally the lesson is free.

# %% [markdown]
# ## Set up
#
# - `links`: the bandwidths to try between instances. `50mbit` is 50 Mbit/s, `wide` has no limit.
# - `jobs_each`: how many jobs for each bandwidth. `rounds`: how often each of them measures.
# - `layout_...`: for the comparison of the same ranks on one, two and four instances.
# - `make_network`: create the network stack if there is none. The kit's notebook instance isn't
#   allowed to: with it, first run `workshop stacks up network --target aws` on your own machine.
#
# Where bandwidth can't be limited, pale marks in pictures were recorded on another machine.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
layout_instance_type = "ml.c5.2xlarge"
links = ["wide", "200mbit", "50mbit", "20mbit"]
jobs_each = 1
rounds = 5
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

# %% [markdown] slideshow={"slide_type": "slide"}
# ## A slower link
#
# In a local run on Linux each instance has a network card of its own (in a *namespace* of the
# kernel), and the emulator limits what that card sends and receives with `tc`, the kernel's traffic
# control. A job asks for a limit with an environment variable, which AWS ignores.
#
# The training is that of lesson 01: digits at 28 x 28 pixels, a global batch of 512, PyTorch's DDP.
# Two instances with one rank each share the batch; their gradients, 0.42 MB, cross the link in
# every step. In the same job one rank also trains alone on the whole batch, as a single instance
# would.

# %% [markdown] slideshow={"slide_type": "slide"}
# **Predict.** A link of 20 Mbit/s carries 2.5 MB per second. A step on one instance takes about 0.1
# to 0.3 s; a second instance can save half of it. (Two ranks of a ring send their gradients once.)
# **Exposed communication** is the part of sending that nothing hides.


# %% slideshow={"slide_type": "-"}
def shown(link: str) -> str:
    """A bandwidth as texts name it."""
    return "no limit" if link == "wide" else f"{bandwidth.mbit(link):g} Mbit/s"


tried = ["wide"] if unshaped else links
never = "at none of them"
questions = {"two": "How many times as fast as one instance are two, without a limit?"}
if not unshaped:
    narrow = f"At {shown(tried[-1])}: how many ms of a step are exposed communication?"
    choices = [*map(shown, tried), never]
    questions["exposed"] = narrow
    first = "At which of these are two instances first shown to be slower than one?"
    questions["first"] = (first, choices)
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


# %% jupyter={"source_hidden": true}
layouts = {f"{n} x {layout_ranks // n}": n for n in ([1] if recorded else layout_instances)}
planned = {"two instances": (instance_type, 2, jobs_each)}
planned |= {name: (layout_instance_type, count, 1) for name, count in layouts.items()}
columns = ("instance_type", "instance_count", "jobs")
costs = [dict(zip(columns, row, strict=True)) | {"seconds": 300} for row in planned.values()]
costs = [row | {"instance_count": row["instance_count"] * row["jobs"]} for row in costs]
costs = workshop.cost_table(costs, max_run=max_run)
total, most = costs["USD"].sum(), workshop.up_to_cents(costs["USD at most"].sum())
print(f"All jobs of this lesson: about {total:.2f} USD on AWS, at most {most:.2f}. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# The jobs run in random order. In each round the step of two is measured twice (A/A): what differs
# is noise.

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

# %% jupyter={"source_hidden": true}
links_shown = sorted(sweep["link"].unique(), key=bandwidth.mbit, reverse=True)
names = [shown(link) for link in links_shown]
# Two ranks send 2 (N - 1) / N times the bytes: once.
sending = {link: gradient_bytes * 8e-6 / bandwidth.mbit(link) for link in links_shown}
sweep = sweep.assign(gain=sweep["alone"] / sweep["step"], noise=sweep["step"] / sweep["again"])
needed = sweep["compute"] + sweep["wait"]
sweep["computed"] = sweep["alone"] / (needed + sweep["link"].map(sending))
medians = sweep.groupby("link")[["gain", "computed", "exposed"]].median().loc[links_shown]
verdicts = pd.Series(
    {link: interleaved.verdict(of["gain"], of["noise"]) for link, of in sweep.groupby("link")}
).loc[links_shown]
bands = pd.DataFrame(
    {link: interleaved.band(of["noise"]) for link, of in sweep.groupby("link")},
    index=["low", "high"],
).T.loc[links_shown]
saved = sweep["alone"] - needed  # by dividing the batch
of_rounds = (gradient_bytes * 8e-6 / saved).where(saved > 0, np.inf)  # inf: saved nothing
low_mbit, high_mbit = of_rounds.quantile([0.25, 0.75], interpolation="nearest")
limited = np.isfinite(high_mbit)

# %% jupyter={"source_hidden": true}
named = pd.Series(names, index=links_shown)
at_each = {
    verdict: ", ".join(named[verdicts == verdict])
    for verdict in ("faster", "no difference shown", "slower")
}
title = "Two instances against one" + ("" if source == "measured" else " (recorded elsewhere)")
title += ":\n" + "; ".join(f"{verdict}: {at}" for verdict, at in at_each.items() if at)
alt = f"{title}. ".replace("\n", " ") + "; ".join(
    f"{name}: {row['gain']:.2g}, computed {row['computed']:.2g}"
    for name, (_, row) in zip(names, medians.iterrows(), strict=True)
)
finite = [bandwidth.mbit(link) for link in links_shown if link != "wide"] or [100]
right = 4 * max(finite)  # where "no limit" is drawn
places = sweep["link"].map(lambda link: min(bandwidth.mbit(link), right))

# %% jupyter={"source_hidden": true} tags=["figure", "readme"] slideshow={"slide_type": "slide"}
x, y = "bandwidth of each instance (Mbit/s)", "times as fast as one instance"
with plots.canvas(title, x, y, size=(8.5, 4.2), alt=alt) as axes:
    look = {"alpha": 0.7 if source == "measured" else 0.3, "color": plots.COLOURS[0]}
    axes.plot(places, sweep["gain"], "o", ms=5, label="measured: a dot for each round", **look)
    axes.axhline(1, color="grey", linewidth=1)
    at = [min(bandwidth.mbit(link), right) for link in links_shown]
    look = {"ms": 14, "mew": 2, "label": "computed from the same rounds"}
    axes.plot(at, medians["computed"], "k_", **look)
    label = "noise floor: A/A in the median round, either way"
    axes.vlines(at, bands["low"], bands["high"], color="grey", lw=9, alpha=0.4, label=label)
    if limited:
        label = f"equally fast, computed: {low_mbit:.2g} to {high_mbit:.2g} Mbit/s"
        axes.axvspan(low_mbit, high_mbit, color=plots.COLOURS[3], alpha=0.2, label=label)
    axes.set(xscale="log", ylim=(0, None))
    axes.set_xticks([*finite, right], [*(f"{rate:g}" for rate in finite), "no limit"])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)

# %% [markdown]
# The black marks use the measured step of one instance, what the two ranks computed and waited, and
# the bytes. They know nothing else of an all-reduce, so they can be too high or too low (column
# *computed* below). (Dots above 2: half a batch may fit better into a cache; not tested.) Each
# round of each job gives a limit, too; the stripe holds the middle half of them. It is as wide as
# the jobs differ in how long *one* instance takes. Where the dots are below 1 you pay for two
# instances and wait longer. No difference is shown if the median lies in the grey band, or if too
# few dots lie on one side of 1 (lesson 01's sign test).

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
answers = {"two": medians["gain"].iloc[0], "exposed": 1000 * medians["exposed"].iloc[-1]}
slow = [shown(link) for link in links_shown if verdicts[link] == "slower"]
answers["first"] = slow[0] if slow else never
guess.compare(**{name: answers[name] for name in questions})
for link in links_shown:
    computed = "" if link == "wide" else f"computed {1000 * sending[link]:.0f} ms, "
    print(f"Sending, {shown(link)}: {computed}measured (exposed)", end=" ")
    print(f"{round(1000 * medians['exposed'][link])} ms.")
if limited:
    print(f"Dividing the batch saves {1000 * saved.median():.0f} ms in the median round:", end=" ")
    print(f"enough for {gradient_bytes / 1e6:.2f} MB at {of_rounds.median():.2g} Mbit/s,", end=" ")
    print("if sending takes no longer than computed.")
count = int(sweep.groupby("link").size().min())
print(
    f"For a verdict {interleaved.must_agree(count)} of {count} rounds must lie on one side", end=" "
)
print("of 1, and the median outside the noise. Near its edge another run may decide otherwise.")
alone_ms = 1000 * sweep.groupby("link")["alone"].median()
print(f"(One instance took {alone_ms.min():.0f} to {alone_ms.max():.0f} ms in these jobs.)")
ranges = sweep.groupby("link")["gain"].agg(["min", "median", "max"]).loc[links_shown]
against = ranges.join(medians["computed"]).join(bands).round(2)
against.columns = ["lowest", "median", "highest", "computed", "noise, low", "noise, high"]
against["rounds above 1"] = (sweep["gain"] > 1).groupby(sweep["link"]).sum()
against["one instance, ms"] = (1000 * sweep.groupby("link")["alone"].median()).round()
against.assign(verdict=verdicts).set_axis(pd.Index(names, name="two instances against one"))

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
columns = ["compute", "wait", "exposed", "step"]
share = sweep[columns].div(sweep["alone"], axis=0).groupby(sweep["link"])
parts = share[columns[:3]].median().loc[links_shown].clip(lower=0)
parts = parts.set_axis(["compute", "wait", "exposed communication"], axis=1)
title = f"{names[-1]}: exposed communication lasts {parts.iloc[-1, 2]:.2f} times as long as"
title += "\none instance's whole step"
ranges = share["step"].agg(["min", "median", "max"]).loc[links_shown]
ranges = ranges.set_axis(["lowest", "median", "highest"], axis=1)
x = "one instance's step = 1; medians of rounds (needn't add up; below 0 drawn as 0)"
plots.stacked_bars(parts.set_axis(names), title, x, spread=ranges, source=source)

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
# What grows is exposed communication. (The other parts differ, too: each bandwidth is a job of its
# own. Lesson 07 hides some of it behind the computing of a model with many layers.) As a difference
# of measured times it is mostly noise where it is small, and all noise below 0. Where it is longer
# than computed, two instances need a faster link than the computed limit; packet headers account
# for about 4 %, and the rest (latency, the limiter) isn't separated here. Where it is shorter than
# computed, part of it may have been hidden, or it is noise: we can't tell.
#
# The computed limit, in bit/s, is 8 x bytes / seconds that dividing saves: more gradients raise it,
# more computing lowers it. With 100 times the gradients and the same computing it would be 100
# times as high, among the bandwidths of AWS's instance types (*Choose by bandwidth*).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Whose network?
#
# By default a job's instances are in a network of SageMaker's own. With a **VPC**, a private
# network in your account, each instance gets a network card with an address in *your* network, and
# what the script sends goes through it. That controls who reaches the instances, and what they
# reach. We know of no speed that it gives by itself: a VPC is rules and addresses on top of the
# same cables. What it does determine is **where** instances are, and so their latency. A subnet
# belongs to one Availability Zone (data centres close together), and a card has to be in the zone
# of its instance: a job with one subnet is in one zone. That is this lesson's *colocation*. (We
# found no AWS page that says whether a job without a VPC stays in one zone.)
#
# This lesson's first cell made such a network from
# [`cloudformation/network.yaml`](../cloudformation/network.yaml), which has every part of the table
# below. Locally its ids are records that requests refer to: no packet passes it, and no rule is
# enforced.

# %% slideshow={"slide_type": "-"}
ec2 = session.client("ec2")
(subnet,) = ec2.describe_subnets(SubnetIds=network["subnets"])["Subnets"]
(group,) = ec2.describe_security_groups(GroupIds=network["security_group_ids"])["SecurityGroups"]
ids = {"vpc": subnet["VpcId"], "subnet": subnet["SubnetId"], "group": group["GroupId"]}
diagrams.vpc(ids | {"zone": subnet["AvailabilityZone"]})

# %% [markdown] slideshow={"slide_type": "slide"}
# A **security group** is a firewall: the list of who may reach these network cards, and whom they
# may reach. A wrong one is expensive: nothing fails at first, and you pay until a timeout or
# `max_run` ends the job.
#
# | part | what it is for | without it |
# |---|---|---|
# | one **subnet** | addresses in one zone | with subnets of two zones: a longer path |
# | **security group**, open to its own members | ranks reach each other | they wait, and you pay |
# | S3 **gateway endpoint** (free) | data in, model out | the download fails |
# | **interface endpoints** (off here, by the hour) | *your script* calls AWS | it hangs |
# | **NAT gateway** (off here, by the hour and GB) | `pip` | `requirements.txt` times out |
# | 2 free **addresses** per instance, 5 with EFA | AWS asks for so many | no start |

# %% [markdown]
# A gateway endpoint is a route to S3 that avoids the internet, an interface endpoint a network card
# that stands for another AWS service, a NAT gateway a way out to the internet. EFA: below. (AWS:
# [training in a VPC](https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html), read on
# 2026-11-21. `workshop preflight` checks all this.)
#
# Below are the rules of this group. Which lines let rank 0 reach rank 1 on another instance?

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
# Those with *itself*: one lets members in, the other lets them out. The rule for port 443
# allows HTTPS to any address; here the only way out leads to S3. A new group starts with one rule:
# everything may go out. For TCP that is enough on the way out; the way in still needs the rule with
# itself. For EFA both directions need a rule that names the group itself
# ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-efa.html), read on 2026-11-24).
#
# <details><summary>Encryption between instances</summary>
#
# `encrypt_inter_container_traffic=True` encrypts what ranks send each other, in a VPC or not. AWS
# says that it can lengthen distributed training; in a VPC the group must also allow UDP port 500
# and protocol 50 (ESP) between its members, which a rule for all protocols does
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/train-encrypt.html), read on 2026-11-24).
#
# </details>
#
# ## One large instance or many small ones?
#
# In a ring each rank sends 2 (N - 1) / N times its gradients, wherever it is, and only the *last*
# rank of an instance sends to another instance. (`2 x 4` is 2 instances with 4 ranks each.)
#
# Two algorithms are measured: `gloo`, PyTorch's ring, and `hierarchical`, the subject of lesson 07,
# which adds up within each instance first. Then only the sums travel: 2 (n - 1) / n times the
# gradients for n instances.

# %% slideshow={"slide_type": "subslide"}
questions = {
    "network": f"gloo, {layout_megabytes} MB, on 2 x 4 at {shown(layout_link)}: how many ms?",
    "gain": "How many times as fast as gloo is hierarchical on 2 x 4?",
}
if 4 in layout_instances:
    questions["again"] = "How many times as long as on 2 x 4 does gloo take on 4 x 2?"
guess = workshop.guess(**questions)


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
        shape = {"instances": count, "ranks_per_instance": layout_ranks // count}
        rate = 1e6 * bandwidth.mbit(layout_link)
        row["floor"] = alpha_beta.bound(algorithm, record["bytes"], bits_per_second=rate, **shape)
        placed_here.append(row)
placed = pd.DataFrame(recorded.results["placed"] if recorded else placed_here)
if recorded:
    print(f"Measured here, one instance:\n{pd.DataFrame(placed_here)}\n\n{recorded.caption}")
found_ms, model_ms, *range_ms = (
    1000 * placed.pivot(index="placement", columns="algorithm", values=which)
    for which in ("measured", "predicted", "lowest", "highest")
)

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "subslide"}
gloo_ms = found_ms["gloo"]
title = f"gloo, {layout_megabytes} MB, {layout_ranks} ranks"
if len(gloo_ms) > 1:
    lowest, highest = (edge["gloo"] for edge in range_ms)
    title = f"{layout_megabytes} MB: gloo takes {lowest.iloc[0]:.0f} to {highest.iloc[0]:.0f} ms"
    title += f" within one instance,\n{lowest.iloc[1:].min():.0f} to "
    title += f"{highest.iloc[1:].max():.0f} ms where it crosses links of {shown(layout_link)}"
found_ms.index.name = "instances x ranks on each"
x = "ms for an all-reduce: the median, and the range of blocks"
plots.grouped_bar_chart(found_ms, title, x, bounds=model_ms, spread=range_ms, source=source)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
if "2 x 4" in found_ms.index:
    gain = found_ms.loc["2 x 4", "gloo"] / found_ms.loc["2 x 4", "hierarchical"]
    answers = {"network": found_ms.loc["2 x 4", "gloo"], "gain": gain}
    if "again" in questions:
        answers["again"] = found_ms.loc["4 x 2", "gloo"] / found_ms.loc["2 x 4", "gloo"]
    guess.compare(**{name: float(value) for name, value in answers.items()})


# %% jupyter={"source_hidden": true}
def overlap(*cells: tuple[str, str]) -> str:
    """A note, if the ranges of these placements and algorithms overlap."""
    low, high = ([edge.loc[cell] for cell in cells] for edge in range_ms)
    return " (ranges overlap: no difference shown)" if max(low) <= min(high) else ""


if {"2 x 4", "4 x 2"} <= set(found_ms.index):
    longer, computed = (ms["gloo"]["4 x 2"] / ms["gloo"]["2 x 4"] for ms in (found_ms, model_ms))
    note = overlap(("2 x 4", "gloo"), ("4 x 2", "gloo"))
    print(f"gloo, 4 x 2 against 2 x 4: {longer:.2f} times as long{note};", end=" ")
    print(f"by bytes 1.00, computed {computed:.2f}")
    if not note and (longer > 1) != (computed > 1):
        print("    The model orders the two wrongly.")
for name, row in found_ms.iloc[1:].iterrows():
    n = int(name.split()[0])
    by_bytes = (layout_ranks - 1) / layout_ranks * n / (n - 1)
    gain = row["gloo"] / row["hierarchical"]
    note = overlap((name, "gloo"), (name, "hierarchical"))
    print(f"{name}: hierarchical is {gain:.2f} times as fast as gloo{note};", end=" ")
    print(f"by bytes {by_bytes:.2f}")
    if gain < 0.8 * by_bytes:
        print("    Far less than by bytes: eight ranks wait for this machine's few cores.")
    if not note and row.idxmin() != model_ms.loc[name].idxmin():
        print(f"    Computed, {model_ms.loc[name].idxmin()} would be the faster: wrong.")

# %% jupyter={"source_hidden": true}
wrong_by = placed["predicted"] / placed["measured"] - 1
off = f"{wrong_by.min():+.0%} to {wrong_by.max():+.0%}"
print(f"The computed times' errors: {off} (inside an instance messages wait for cores, so α and β")
print("there are hardly a link's; measured are medians, and the model is fitted to the fastest).")
# On one instance there is no link, and so no floor.
columns = ["lowest", "measured", "highest", "predicted", "floor"]
table = 1000 * placed.set_index(["placement", "algorithm"]).reindex(columns=columns)
if (table["predicted"] < 0.98 * table["floor"]).any():
    print("Some of them are below bytes / bandwidth, the floor: wrong.")
table = table.rename(columns={"measured": "median", "predicted": "computed"})
table.map(lambda ms: f"{ms:.0f}" if ms > 0 else "-").add_suffix(" (ms)")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(placed=placed.to_dict("records"))

# %% [markdown]
# Black marks are computed, with lesson 02's model, from single messages that each job timed on its
# own links. *Floor* is the time of the bytes alone, at the link's bandwidth. By bytes gloo takes as
# long on 4 x 2 as on 2 x 4, since 2 (N - 1) / N doesn't depend on the number of instances, and
# hierarchical gains most on few instances with many ranks each. (Each placement is one job: what
# differs between two of them needn't be due to the placement.)
#
# With a GPU for each rank, **fill an instance before you take a second one**, if a link inside it
# is wider than the network: of GPUs the next table has both. Between full instances what counts is
# the bandwidth *per GPU*. Below, two full 8-GPU instances average 1 GB of gradients hierarchically,
# and *binds* names the part that takes longer: within an instance (over **NVLink**, Nvidia's direct
# links between GPUs), or over the network. (Computed. NVLink's GB/s per GPU and direction: [a list
# of data sheets](https://github.com/stas00/ml-engineering/blob/master/network/README.md#nvlink),
# read on 2026-11-25.)

# %% jupyter={"source_hidden": true}
# Within an instance a ring; NVLS (below), which H100 has, sends less.
nvlink = {"ml.p4d.24xlarge": 300, "ml.p5.48xlarge": 450}
binds = {}
for name, within in nvlink.items():
    gbit = bandwidth.network_performance(name).gbit  # per second, of an instance
    inside_ms, network_ms = 1000 * 2 * 7 / 8 / within, 1000 * 2 * 1 / 2 / (gbit / 8)  # 8 bits
    binds[name] = {
        "Gbit/s per GPU": gbit / 8,  # 8 GPUs
        "within, ms": inside_ms,
        "network, ms": network_ms,
        "binds": "NVLink" if inside_ms > network_ms else "the network",
    }
pd.DataFrame.from_dict(binds, orient="index").round(1)

# %% [markdown]
# On two p5 both parts are of one order, and data sheets aren't more exact than that.
#
# ## What NCCL does between instances
#
# (Exercise 2 shows such logs.) On GPUs you don't call gloo but **NCCL**, Nvidia's library, through
# DDP, Horovod or another framework. For each size it estimates α + β · bytes of every algorithm it
# has (ring, tree, NVLS: folded below), and takes the fastest. Which way bytes go is in the log of a
# job with `environment={"NCCL_DEBUG": "INFO"}`. Lines of this form (shortened) say that **EFA is in
# use**:
#
# ```text
# [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
# [0] NCCL INFO Using network AWS Libfabric
# [7] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA
# [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
# ```
#
# Rank 7 is the last of its instance and sends over the network, straight from the GPU's memory
# (`GDRDMA`); ranks 0 and 1 reach each other directly (`P2P`): on such instances over NVLink. With
# `NET/Socket` in place of `NET/AWS Libfabric` everything between instances goes over TCP. On a type
# with EFA, look for the plugin aws-ofi-nccl in the image. A wrong security group usually shows as a
# hang or an error
# ([an example](https://github.com/gardener/gardener-extension-provider-aws/issues/1832)).
#
# <details><summary>The algorithms; to force one, and to measure a cluster</summary>
#
# - **Ring**: lesson 02's. Often best for very large messages on a few instances, without NVLS.
# - **Tree**: two binary trees over the *instances*, half of the bytes on each; within an instance a
#   chain. About 2 log₂ n hops over the network in place of 2 (n - 1), so it wins for short
#   messages. On two instances the bytes cross the network once: it *is* hierarchical, and NCCL
#   often takes it there for large messages, too
#   ([nccl#946](https://github.com/NVIDIA/nccl/issues/946)).
# - **NVLS** (NVLink SHARP): the NVLink switch of H100 and later does the adding;
#   NVLSTree joins such instances.
#
# `NCCL_ALGO=Ring` or `Tree` forces one, to compare. **nccl-tests** (`all_reduce_perf -b 8 -e 1G -f
# 2`) prints two bandwidths: *algbw* is bytes / time; **busbw** is that times 2 (N - 1) / N, which
# is what each link of a ring carries. So busbw can be compared with a data sheet, except on two
# instances, where a tree sends less than busbw assumes and the number can exceed the network's.
#
# </details>
#
# ## Choose by bandwidth
#
# This is what AWS documents for some types (EC2's
# [DescribeInstanceTypes](https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkCardInfo.html),
# read on 2026-11-21). `Gbit/s` is what an instance can sustain; it can hold `burst` typically for 5
# to 60 minutes (EC2's page, linked below), and "up to 10 Gigabit" in a catalogue means the burst. A
# dash: no burst, or a price that the kit doesn't know.

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
types = ["ml.m5.xlarge", "ml.c5.xlarge", "ml.c5.2xlarge", "ml.c5n.18xlarge", "ml.g4dn.xlarge"]
types += ["ml.g5.xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"]
choose = workshop.cost_table({"instance_type": name, "instance_count": 1} for name in types)
choose = choose.set_index("instance_type")[["USD per hour"]]
choose = choose.map(lambda usd: f"{usd:.3f}", na_action="ignore")
of_type = [bandwidth.network_performance(name) for name in types]
choose["Gbit/s"] = [row.gbit for row in of_type]
choose["burst"] = [row.burst_gbit for row in of_type]
choose["EFA"] = [row.efa for row in of_type]
choose["ms for 100 MB (computed)"] = 100 * 8 / choose["Gbit/s"]
choose.astype(object).where(choose.notna(), "-")

# %% [markdown]
# The last column is 100 MB sent once. Double it for a ring of many, and compare it with half of a
# step, the computing that a second instance saves. Three things decide what a link gives you:
#
# - **One zone.** Traffic between zones travels farther, and each GB is billed.
# - **Several connections.** A single TCP connection gets at most 5 Gbit/s, 10 inside a *cluster
#   placement group*, 25 with ENA Express; we found no setting of a job for either
#   ([EC2](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html),
#   read on 2026-11-21). NCCL opens 16 by itself on AWS
#   ([NVIDIA](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html), read on
#   2026-11-25).
# - **EFA**, the Elastic Fabric Adapter: ranks bypass the kernel and send over many paths. Few types
#   have it, mostly the largest of their families. Its traffic stays within one zone
#   ([AWS](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html), read on 2026-11-24).
#
# Before you plan with p4d or p5, request a quota: the default is usually 0, and approval can take
# days. And measure a link more than once: where your instances are differs from job to job.
#
# ## Optional: one zone or two?
#
# **Latency** is what a message takes before its first byte arrives: α. AWS says that a region's
# zones are up to 100 km and single-digit milliseconds apart
# ([AWS](https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/availability-zones.html),
# read on 2026-11-24). One user's pings of 2014: 0.45 ms there and back within a zone, and up to 2.1
# ms to another ([gist](https://gist.github.com/josephmisiti/10312241), read on 2026-11-24). Half of
# that is one way.
#
# What does a ring through two zones cost? Each time around the ring a chunk crosses twice. In an
# all-reduce it goes around almost twice, so in the rings below the slowest chunk crosses 4 times:
# that is the lower bound. In lock-step, where all ranks wait for the slowest in each step, every
# one of the 2 (N - 1) steps costs a crossing.

# %%
near, far = 0.45 / 2, 2.1 / 2  # ms, one way: within a zone, and to another
waits = {}
for n in (8, 64):  # instances of one rank
    hops = 2 * (n - 1)
    waits[f"{n} instances"] = {
        "one zone": hops * near,
        "two zones, at least": (hops - 4) * near + 4 * far,
        "two zones, in lock-step": hops * far,
    }
rounds_ms = pd.DataFrame.from_dict(waits, orient="index")
rounds_ms.round(1).add_suffix(" (ms, computed)")

# %% jupyter={"source_hidden": true}
late = "On AWS nobody sets the delay." if target == "aws" else unshaped
if not late and local_sagemaker.shaping_unavailable_reason(latency=True):
    late = "This kernel can't add delay (its module netem is missing)."
added = None
if not late:
    tiny = {"algorithms": "gloo", "bytes": 4000, "link-bytes": "8,8000,16000", "blocks": 5}
    zones = {"two zones": "1gbit 1ms", "one zone": "1gbit"}
    delayed = {name: all_reduces(2, 2, link, **tiny) for name, link in zones.items()}
    took = {
        name: 1000 * pd.Series(result.table("all_reduce").iloc[0]["seconds"]).median()
        for name, result in workshop.run_jobs(delayed).items()
    }
    added = took["two zones"] - took["one zone"]
    print(f"With 1 ms each way, 4 kB of 4 ranks on 2 instances take {added:.1f} ms longer")
    print("(measured with gloo; at least 3 hops between zones, 6 in lock-step).")
else:
    print(f"Not measured here: {late}")

# %% [markdown]
# <!-- SDK v3: 2 x 4, delayed -->

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(latency_added=added, not_delayed=late, rounds_ms=rounds_ms.to_dict())

# %% [markdown]
# A step has an all-reduce for each bucket. Bandwidth doesn't help, one zone does. None of this was
# measured on AWS.
#
# ## Optional: the model, held against what others measured
#
# The same model can be asked about machines that we don't have. 1/β is the data sheet's bandwidth,
# α are the latencies with which NCCL itself chooses (in its source), and nothing is fitted.
# `notebooks/recorded/published_scalings.toml` has what others published, with source and day.

# %% jupyter={"source_hidden": true}
checked = published.predictions()
reduces, training = (checked[checked["kind"] == kind] for kind in ("all-reduce", "step"))
n_bytes = [row["bytes"] for entry in published.sources() for row in entry.get("all_reduce", [])]
reduces = reduces.assign(bytes=n_bytes)
reduces["ratio"] = reduces["measured_ms"] / reduces["predicted_ms"]
print(f"{len(checked)} published numbers from {checked['source'].nunique()} sources.")
print("All-reduces, published / computed time:")
for words, group_of in {
    "of 1 GiB or more": reduces[reduces["bytes"] >= 2**30],
    "shorter": reduces[reduces["bytes"] < 2**30],
}.items():
    least, middle, most_of = group_of["ratio"].quantile([0, 0.5, 1])
    print(f"{len(group_of)} {words}: median {middle:.2g}, from {least:.2f} to {most_of:.2g}")
different = training.drop_duplicates(["case", "measured_ms"])
print(f"{len(training)} training steps ({len(different)} different numbers):", end=" ")
print(f"{(training['error'] == 0).sum()} in range.")

# %% jupyter={"source_hidden": true} tags=["figure"]
short = reduces["ratio"][reduces["bytes"] < 2**30].max()
large = reduces["ratio"][reduces["bytes"] >= 2**30].max()
title = f"Published / computed time: up to {short:.1f} for short all-reduces,"
title += f"\nat most {large:.1f} from 1 GiB"
single = reduces["ranks"] <= 8  # GPUs, in one instance
on_aws = reduces["source"].map({each["name"]: each["machine"] for each in published.sources()})
on_aws = on_aws.str.contains("xlarge")
looks = {"AWS, EFA": (on_aws & ~single, "o"), "other networks": (~on_aws & ~single, "s")}
looks["one instance (NVLink)"] = (single, "^")
x, y = "bytes of an all-reduce", "published / computed time"
with plots.canvas(title, x, y, size=(8, 3.6)) as axes:
    for (name, (dots, mark)), colour in zip(looks.items(), plots.COLOURS, strict=False):
        at = reduces[dots]
        style = {"color": colour, "label": name, "fillstyle": "none", "mew": 1.5}
        axes.plot(at["bytes"], at["ratio"], mark, **style)
    axes.axhline(1, color="black", linewidth=1, label="as computed from the data sheet")
    axes.set(xscale="log", ylim=(0, None))
    ticks = {8: "8 B", 2**20: "1 MiB", 2**26: "64 MiB", 2**30: "1 GiB", 2**34: "16 GiB"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.legend(frameon=False)

# %% jupyter={"source_hidden": true}
from IPython.display import HTML

about = {entry["name"]: entry for entry in published.sources()}
by_source = {}
for name, rows in checked.groupby("source", sort=False):
    times = rows["measured_ms"] / rows["predicted_ms"]
    low, high = (f"{value:.2f}" for value in (times.min(), times.max()))
    met = f"{(rows['error'] == 0).sum()} of {len(rows)} in range"
    by_source[name] = {
        "numbers": len(rows),
        "published / computed": met if (rows["kind"] == "step").all() else f"{low} to {high}",
        "why, where it is far from 1": about[name].get("why", ""),
    }
reasons = pd.DataFrame.from_dict(by_source, orient="index").to_html()
every = checked.copy()
every["error"] = (checked["measured_ms"] / checked["predicted_ms"]).where(every["kind"] != "step")
every = every.drop(columns="kind").rename(columns={"error": "published / computed"}).round(3)
every = every.to_html(index=False, na_rep="")
summary = "<summary>Every number, and reasons where computed and published differ</summary>"
HTML(f"<details>{summary}{reasons}{every}</details>")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(published=checked.fillna(0).to_dict("records"))

# %% [markdown]
# For a training step there are two computed times: as much hidden behind backward as can be, and
# nothing hidden. *In range* is a weak test: only a published time outside both could have refuted
# the model. The all-reduces test more:
#
# - A data sheet is nearly a bound: one all-reduce was faster than computed, by 1 %.
# - Large all-reduces took up to 1.7 times as long as computed, and nearly all took longer.
# - Messages of up to 1 MiB over EFA (six published numbers) take 2 to 6.5 times what is computed
#   from the latencies in NCCL's source. Measure α where you run, and the sizes that you send,
#   because NCCL changes algorithm and protocol between them.
#
# ## Optional: up to 2,048 ranks
#
# What binds when? Take the largest training in that file, a model of 6.7 billion weights in
# bfloat16 on instances of 8 H100, and share a fixed global batch of 2,048 sequences among more and
# more ranks (strong scaling), averaged in buckets of 25 MiB, one after the other. All is computed,
# as if weights, gradients and optimizer fitted one GPU; they don't
# ([lesson 11](11_what_each_rank_must_hold.ipynb)). It rests on one measured number, the 1.15 s in
# which one GPU computed 6 sequences, on data sheets, and on NCCL's latencies, too low for EFA.

# %% jupyter={"source_hidden": true}
case = about["llm-foundry, H100"]["step"][0]
bucket = 25 * 2**20
buckets = case["gradient_bytes"] / bucket
scaled = []
for count in 2 ** np.arange(9):
    machine = published.Machine(int(count), 8, 450e9, 400e9)
    row = {"compute": case["compute_ms"] / 1000 / 6 * 2048 / machine.ranks}
    for name in ("ring", "tree"):
        row[name] = buckets * published.all_reduce_seconds(bucket, machine, name)
    row["bytes alone"] = published.bytes_seconds(case["gradient_bytes"], machine, "ring")
    scaled.append({"ranks": machine.ranks} | row)
scaled = pd.DataFrame(scaled).set_index("ranks")

# %% jupyter={"source_hidden": true} tags=["figure"]
above = scaled.index[scaled["ring"] > scaled["compute"]]
turned = int(above[0]) if len(above) else None
title = "Computed: computing takes longest"
if turned:
    title = f"Computed: between {turned // 2:,} and {turned:,} ranks a ring passes computing"
with plots.canvas(title, "ranks (8 in each instance)", "seconds per step", size=(8, 4)) as axes:
    labels = [scaled.columns[0], "all-reduces, ring", "all-reduces, tree", "bytes / bandwidth"]
    lines = zip(labels, scaled, ("-", "--", ":", "-."), plots.COLOURS, strict=False)
    for label, name, line, colour in lines:
        axes.plot(scaled.index, scaled[name], line, color=colour, label=label)
    axes.set(xscale="log", yscale="log", xticks=scaled.index, xticklabels=list(scaled.index))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(scaled=scaled.reset_index().to_dict("records"), turned=turned)

# %% [markdown]
# Computing shrinks as 1 / N, and the ring's hops grow as N: its all-reduces pass computing just
# after 512 ranks. There the bytes alone take 0.07 of 0.8 s: latency ends strong scaling first. That
# is why NCCL has trees. But at 2,048 ranks trees, too, take nearly as long (0.18 s) as computing
# (0.19 s): large trainings use larger buckets, and split the model as well as the batch.
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

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("06")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A step is computing and **exposed communication**. Below a certain bandwidth more instances make
#   it slower, and that bandwidth follows from your bytes and your computing: measure both.
# - A VPC decides who reaches whom. One subnet puts all instances into one zone.
# - The security group must let its own members in and out on every port. If it doesn't, nothing
#   fails at first: the ranks wait, and you pay.
# - With a GPU for each rank, fill an instance before you take the next one, and look at the Gbit/s
#   per GPU.
# - NCCL picks ring, tree or NVLS by size: measure the sizes that you send, where you run. Its log
#   says whether EFA is in use.
# - Choose by sustained Gbit/s, not by "up to", and stay in one zone.

# %% [markdown]
# ## Clean up
#
# The jobs' instances are gone. The network stack costs nothing as it is; a NAT gateway or interface
# endpoints would be billed by the hour. The next cell deletes what this lesson created. On AWS that
# can take minutes, until SageMaker has removed the jobs' network cards. If you skip it, lesson 99
# finds the stack.

# %%
if made:
    stacks.delete(session, ("network",))

# %% [markdown]
# ## Next
#
# [Lesson 07](07_smddp.ipynb): an all-reduce that knows which ranks share an instance, and what it
# gains on a slow link.

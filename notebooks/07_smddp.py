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
# # 07 · SMDDP: an all-reduce that knows where the ranks are
#
# **After this lesson you can**
#
# - tell which bytes of an all-reduce have to cross the network and which don't;
# - predict an all-reduce from a few timed messages, and test the prediction where it can fail;
# - hook your own all-reduce into DDP, and say how much communication its buckets can hide;
# - say where SMDDP runs, what it costs, and what to use elsewhere.
#
# **Before:** [lesson 02](02_collectives.ipynb): ring, reduce-scatter, all-gather.
# [Lesson 06](06_vpc_colocation.ipynb): what a slow link between instances does to a step.
#
# **Time:** 70 minutes, and 54 for the exercises. The jobs take about 2 of them.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# SMDDP, SageMaker's distributed data parallel library, exists only on AWS; here a substitute with
# its interface takes its place, and the job's log says so. Nobody has run this lesson on AWS yet:
# what it says of AWS comes from AWS's documentation and its tools' source.
#
# **Cost on AWS:** about 0.20 USD, at most 0.70 USD: three jobs of two `ml.c5.2xlarge`, 5 minutes
# each (us-east-1, price list of 2026-09-27). The job with SMDDP itself, which `start_p4d` turns on,
# costs 4.21 USD (14.31 USD if it runs until `max_run`). Locally: free.

# %% [markdown]
# ## Set up
#
# - `ranks_each`: ranks on each of two instances, in the first section.
# - `between`: the bandwidth of each instance's link there (`200mbit` is 200 Mbit/s); only the
#   emulator can limit it.
# - `megabytes`: the size of the tensor there.
# - `blocks`: rounds of each measurement.
# - `overlap_between`: the bandwidth for the section about buckets.
# - `training_between`: the bandwidth for the section about hooks.
# - `hidden_units`: of the model in that section; more of them mean more gradients.
# - `start_p4d`: whether to start the job with SMDDP on AWS, on two `ml.p4d.24xlarge`.
# - `max_run`: the number of seconds after which SageMaker stops a job.
#
# In pictures, **filled** is measured by this run, **pale** was recorded in other jobs, and black
# lines are computed.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.2xlarge"
ranks_each = 4
between = "200mbit"
megabytes = 8
blocks = 5
overlap_between = "2gbit"
training_between = "100mbit"
start_p4d = False
hidden_units = 512
max_run = 900

# %%
import pandas as pd
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import workshop
from workshop import plots
from workshop.account import preflight
from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.measure import all_reduces, alpha_beta, held_out, interleaved, overlap
from workshop.plots import cost_model, network

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
unshaped = bandwidth.unlimited_reason(session)
recorded = reference_results.load("07") if unshaped and target == "local" else None
source = "recorded" if recorded else "measured"
n_bytes = megabytes * 1_000_000
print(unshaped or "This machine can limit the bandwidth between instances.")

# %%
planned = {"all-reduces": 1, "buckets": 1, "hooks": 1}
costs = workshop.cost_table(
    (
        {"jobs": name, "instance_type": instance_type, "instance_count": 2 * count, "seconds": 300}
        for name, count in planned.items()
    ),
    max_run=max_run,
).set_index("jobs")
total, most = costs["USD"].sum(), workshop.up_to_cents(costs["USD at most"].sum())
print(f"Three jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result
#
# Two instances with four ranks each average 8 MB of gradients. Each instance has a link of 200
# Mbit/s, 25 MB per second, and the ranks inside an instance talk through memory. Five all-reduces
# compute the same sum:
#
# - **gloo**: PyTorch's own on CPUs, a ring in rank order, 0 → 1 → … → 7 → 0;
# - **ring**: the same, built from send and receive in lesson 02;
# - **ring, topology ignored** (`interleaved_ring`): 0 → 4 → 1 → 5 → …, with 1 MB only, so not in
#   the picture;
# - **two tiers** (`hierarchical`): adds up inside each instance first, and then between them;
# - **mini_herring**: the first rank of each instance adds up its instance and serves half of the
#   bytes; the servers swap halves, and hand the sum out (explained at the end).

# %% [markdown]
# **Predict.**

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    hierarchical="How many times as fast as gloo's ring is the all-reduce in two tiers?",
    blind="The ring that ignores the topology: how many times as long as the ring does it take?",
)

# %% [markdown]
# One job measures all of them in rounds of random order, and gloo twice (`gloo again`): what
# differs between those two is noise. *Faster* and *slower* mean: the median lies outside the noise,
# and all five rounds agree. First the job times single messages, for the model further down.
#
# **By bytes** means: as if the bytes over the link were all that takes time (black lines).

# %%
from sagemaker.pytorch import PyTorch

algorithms = ["gloo", "gloo again", "ring", "interleaved_ring", "hierarchical", "mini_herring"]
torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
job = session.job_settings("hierarchical") | {"instance_type": instance_type, "max_run": max_run}
demo = job | {"source_dir": str(workshop.DEMOS)}

measuring = PyTorch(
    entry_point="measure_all_reduce.py",
    instance_count=2,
    distribution={"mpi": {"enabled": True, "processes_per_host": ranks_each}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": between},
    hyperparameters={
        "algorithms": ",".join(algorithms),
        "bytes": f"{n_bytes},1000000",
        "smallest-only": "interleaved_ring",
        "blocks": blocks,
    },
    **torch_image,
    **demo,
)
measured = workshop.run_jobs({"all-reduces": measuring})["all-reduces"]

# %% [markdown]
# <!-- SDK v3: all-reduces -->


# %%
def seconds_of(events: list[dict], size: int) -> pd.DataFrame:
    """Seconds of an all-reduce of `size` bytes: a row for each round, a column for each way."""
    of_size = [e for e in events if e["event"] == "all_reduce" and e["bytes"] == size]
    return pd.DataFrame({event["algorithm"]: event["seconds"] for event in of_size})


kinds = ("placement", "link", "add", "all_reduce")
events = [event for event in measured.events if event["event"] in kinds]
if recorded:
    print(recorded.caption)
    events = recorded.results["events"]
times = seconds_of(events, 8_000_000 if recorded else n_bytes)
small = seconds_of(events, 1_000_000)


def against_gloo(times: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Two tiers in times as fast as gloo, the mean of its two; and gloo against itself."""
    gloo = times[["gloo", "gloo again"]].mean(axis=1)
    return gloo / times["hierarchical"], times["gloo"] / times["gloo again"]


by_round, noise = against_gloo(times)
verdict, gain = interleaved.verdict(by_round, noise), by_round.median()
loss = (small["interleaved_ring"] / small["ring"]).median()

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
on_aws = 1000 * bandwidth.network_performance(instance_type).gbit  # Mbit/s
mbit = bandwidth.mbit(between) if target == "local" else on_aws
titles = {"ring": "ring", "interleaved_ring": "ring, topology ignored", "hierarchical": "two tiers"}
placement = {"instances": 2, "ranks_per_instance": ranks_each}
sent_mb = {
    name: all_reduces.bytes_by_instance(name, n_bytes, **placement)[0][0] / 1e6
    for name in (*titles, "gloo", "mini_herring")
}
shown = 1000 * times.drop(columns=["gloo again", "interleaved_ring"], errors="ignore")
shown["gloo"] = 1000 * times[["gloo", "gloo again"]].mean(axis=1)
bounds = pd.Series({name: 8000 * sent_mb[name] / mbit for name in shown})
bounds.name = "computed: bytes / bandwidth"
shown = shown.rename(columns=titles)
unsure = f" ({verdict})" if verdict == "no difference shown" else ""
plots.bar_chart(
    shown.median(),
    f"Two tiers are {gain:.1f} times as fast as gloo{unsure}:\n"
    f"{megabytes} MB, 2 x {ranks_each} ranks, {mbit:g} Mbit/s",
    "milliseconds (median, lowest and highest of the rounds)",
    texts="{:,.0f} ms",
    spread=interleaved.summary(shown),
    bounds=bounds,
    source=source,
    colour=plots.COLOURS[0],
)

# %% slideshow={"slide_type": "-"}
low, high = by_round.min(), by_round.max()
by_bytes = sent_mb["ring"] / sent_mb["hierarchical"]
print(
    f"Two tiers: {gain:.2f} times as fast as the mean of gloo's two times "
    f"({low:.2f} to {high:.2f}): {verdict}."
)
_, floor = interleaved.band(noise)
print(f"The noise, gloo against itself in the median round: a factor of {floor:.2f}.")
beyond = "more" if not 1 / floor <= gain / by_bytes <= floor else "less"
print(f"{gain:.2f} differs from the {by_bytes:.2f} that bytes predict by {beyond} than this noise.")
long, short = 1000 * small[["interleaved_ring", "ring"]].median()
print(f"Topology ignored, 1 MB: {long:.0f} ms, {loss:.2f} times as long as the ring's ", end="")
print(
    f"{short:.0f} ms (median of the rounds' ratios); by bytes {ranks_each}, but both also wait",
    end=" ",
)
print("and add at 14 steps.")
guess.compare(source, hierarchical=gain, blind=loss)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(events=events, recorded=bool(recorded), gain=gain, loss=loss, bound=by_bytes)
workshop.save_results(medians=times.median().to_dict(), small=small.median().to_dict())

# %% [markdown]
# Jobs differ, too. Pale dots are five more jobs (8 MiB each), the diamond is this run. Grey is the
# noise: how far gloo against itself lies from 1 in the median job, so half of them lie outside.

# %% jupyter={"source_hidden": true} tags=["figure"]
five = reference_results.load("07", "tiers")
jobs = [against_gloo(pd.DataFrame(seconds)) for seconds in five.results["jobs"]]
of_jobs = pd.Series([ratios.median() for ratios, _ in jobs])
again = pd.Series([apart.median() for _, apart in jobs])
title = f"Two tiers: {of_jobs.min():.2f} to {of_jobs.max():.2f} times as fast as gloo in five jobs"
title += "" if recorded else f", {gain:.2f} in this run"
with plots.canvas(title, "times as fast as gloo", size=(7.5, 2.2)) as axes:
    for row, (values, here) in enumerate([(again, noise.median()), (of_jobs, gain)]):
        axes.plot(values, [row] * len(values), "o", color=plots.COLOURS[0], alpha=0.35)
        if not recorded:
            axes.plot(here, row, "D", color=plots.COLOURS[0])
    seen = again if recorded else pd.concat([again, pd.Series([noise.median()])])
    axes.axvspan(*interleaved.band(seen), color="0.88", zorder=0)
    axes.axvline(1.75, color="black", linewidth=1.5)
    axes.text(1.74, 0.4, "by bytes: 1.75", ha="right", va="center")
    axes.set_yticks([0, 1], ["gloo again (noise)", "two tiers"])
    axes.set_ylim(-0.6, 1.6)
print(f"Pale: recorded on {five.date} ({five.machine}).")

# %% jupyter={"source_hidden": true} tags=["figure"]
on_links = {
    job["mbit"]: interleaved.ratios(seconds_of(job["events"], 1_000_000), "gloo")["hierarchical"]
    for job in reference_results.load("07", "links").results["jobs"]
    if (job["instances"], job["ranks_per_instance"], job["latency_ms"]) == (2, 4, 0)
}
print("Recorded, 1 MB, two tiers in times as fast as gloo (by bytes 1.75): ", end="")
gains = [
    f"{times.median():.2f} ({times.min():.2f} to {times.max():.2f}) at {rate:g} Mbit/s"
    for rate, times in sorted(on_links.items())
]
print(f"{', '.join(gains)}.")

# %% [markdown]
# At 400 Mbit/s less is gained: two tiers' six steps inside an instance don't shrink with the link,
# and 1 MB is a single chunk, so nothing overlaps them. (Not tested as the cause.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Which bytes must cross?
#
# Ask of every message: does it leave its instance? For n bytes:
#
# | all-reduce of n bytes | what each instance sends over its link |
# |---|---|
# | **ring in rank order** | one hop leaves each instance (3 → 4, 7 → 0): 2 · 7/8 · n |
# | **ring that ignores the topology** | every hop: 4 times as much |
# | **two tiers** | each instance's *sum*, not each rank's gradients: 2 · 1/2 · n |

# %% [markdown]
# The **topology** is which links join which ranks, and how fast each is. The first two are *flat*:
# they treat all ranks alike. A ring of N members passes 2 (N - 1) / N times the bytes over each of
# its links. Two tiers have a ring, too, but its members are the two instances: 2 · 1/2.


# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
def hops(steps) -> list[tuple[int, int]]:
    """From which rank to which, of every message in some steps of an all-reduce."""
    return [(message.source, message.to) for messages in steps for message in messages]


panels = {
    f"{title}: {sent_mb[name]:.0f} MB": hops(all_reduces.steps(name, n_bytes, ranks_each, 2))
    for name, title in titles.items()
}
crossing = "{:.0f}, {:.0f} and {:.0f} MB".format(*(sent_mb[name] for name in titles))
title = f"{megabytes} MB to average: over each instance's link go {crossing}"
network.messages(panels, 2, ranks_each, title)

# %% [markdown]
# The quotient, 14 / 8 = 1.75, is what two tiers gain by bytes. It is no hard limit: gloo's ring may
# use the link less well than two tiers do. Two instances are the best case: 4 instances
# of 2 ranks have 7/8 : 3/4 = 1.17 (recorded on 2026-11-25, 4 MB: 1.07), 16 of 8 ranks 127/128 :
# 15/16 = 1.06. There two tiers save steps instead: 2 · 15 between instances, not 2 · 127.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Two tiers, in three steps
#
# The ranks of an instance are a rank's **intra-node** group. The ranks with the same local_rank,
# one per instance, are its **inter-node** group. A **hierarchical all-reduce** takes three steps:
#
# 1. **Reduce-scatter, intra-node**: each of the four ranks ends up with a quarter of its instance's
#    sum.
# 2. **All-reduce, inter-node**: each rank adds its quarter to the same quarter of the other
#    instances, all four at the same time.
# 3. **All-gather, intra-node**: the finished quarters go to every rank of the instance.

# %% [markdown]
# A large tensor goes in chunks of about 2 MiB: while one crosses, the next is added up inside.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/collectives/hierarchical.py", "all_reduce")

# %% [markdown]
# <details><summary>Does the slow ring exist in practice? Does SMDDP alone have two tiers?</summary>
#
# gloo's ring follows the rank numbers, which `mpirun` and `torchrun` give instance by instance; it
# is slow once someone starts `mpirun --map-by node`. NCCL, Nvidia's library for GPUs, joins a path
# through the GPUs of each host into one ring ([its maintainer,
# 2021](https://github.com/NVIDIA/nccl/issues/471), read on 2026-11-22). It also has **trees**: on
# two instances its tree has two tiers, and for large messages NCCL probably takes it
# ([nccl#946](https://github.com/NVIDIA/nccl/issues/946), read on 2026-11-24). Horovod has
# `HOROVOD_HIERARCHICAL_ALLREDUCE=1`.
# </details>
#
# ## Can a model predict it?
#
# A message of n bytes takes α + β · n seconds. Now there are two kinds of links, and messages of
# one step share them. So the job timed messages intra-node and inter-node, of one pair of ranks and
# of all ranks at once, each **as a step of a ring**: begin to receive, send, wait, and only then
# send again. To the fastest repeat of each of three sizes a line is fitted, with the least relative
# errors, and with no α or β below 0:

# %%
tiers = alpha_beta.HierarchicalLinks.from_measurements(events)
fitted = {
    f"{tier}, {how}": link
    for tier in ("intra_node", "inter_node")
    for how, link in {
        "one pair": getattr(tiers, tier).alone,
        "all at once": getattr(tiers, tier).busy,
    }.items()
}
alphas = {
    name: {"α, ms": 1e3 * link.alpha, "β, ms per MB": 1e9 * link.beta}
    for name, link in fitted.items()
}
print(f"By bytes, a MB takes {8000 / mbit:g} ms on a link of {mbit / 8:g} MB/s, and ", end="")
print(f"{8000 * ranks_each / mbit:g} ms if {ranks_each} messages share it.")
pd.DataFrame(alphas).T.map(lambda n: f"{n:.3g}" if n > 10 else f"{float(f'{n:.2g}'):g}")

# %% [markdown]
# Here α is only where the line, fitted from 197 kB on, meets 0 bytes; it may come out as 0. Inside
# an instance messages wait for a core, so α and β there are mostly noise.

# %% jupyter={"source_hidden": true} tags=["figure"]
messages: dict[str, dict] = {name: {} for name in fitted}
for event in events:
    if event["event"] == "link":
        how = "one pair" if event["pairs"] == 1 else "all at once"
        messages[f"{event['tier']}, {how}"][event["bytes"]] = min(event["seconds"])
lines = {name: link.seconds for name, link in fitted.items()}
misses = {
    tier: max(
        abs(lines[name](size) / seconds - 1)
        for name, timed in messages.items()
        for size, seconds in timed.items()
        if name.startswith(tier)
    )
    for tier in ("inter_node", "intra_node")
}
shared, alone = (1e9 * fitted[f"inter_node, {how}"].beta for how in ("all at once", "one pair"))
title = f"Between instances a MB takes {shared / alone:.1f} times as long\n"
title += f"if {ranks_each} messages share the link (β of the table: {shared:.3g} / {alone:.3g})"
cost_model.message_lines(messages, lines, title)
print(
    f"Between instances the lines miss their messages by at most {misses['inter_node']:.0%}", end=""
)
print(f", inside by up to {misses['intra_node']:.0%}.")

# %% [markdown]
# A step of an all-reduce ends with its slowest message; steps follow each other; and what arrives
# has to be added, which the job timed, too. (27 points in the next picture are whole DDP steps.
# They add computing, and leave out what travels while it lasts: read the section on buckets first,
# and pass them over until then.)
#
# A line near its own three points proves nothing. The model has to predict what it has *not* seen:
# all-reduces of other sizes, on other links, in other layouts, and DDP steps, all recorded. They
# are predicted from the messages of *one* job, of 2 x 4 ranks at 200 Mbit/s; on other links the
# bandwidth scales β. This run adds all-reduces of 8 MB and 1 MB, predicted from its own messages.
#
# All-reduces count by their *fastest* round here, as messages do: other programs can only add time.
# Medians, as in the bars above, are longer (see the table).
#
# Its rival is **bytes alone**: bytes / bandwidth. **Predict** by the table of α and β: the ring
# passes its parts in 2 · 7 steps of an eighth of the bytes, and only one message of a step crosses
# each link.

# %%
guess = workshop.guess(
    ring=f"{megabytes} MB in the ring: how many milliseconds does the model say?",
    error="And its median error on all that it was not fitted on, in per cent?",
)

# %%
about = {"latency_ms": 0, **placement}
live = held_out.all_reduces([about | {"mbit": mbit, "events": events}])
bench = {name: reference_results.load("07", name) for name in ("links", "steps")}
before = pd.concat(
    [
        held_out.all_reduces(bench["links"].results["jobs"]),
        held_out.steps(
            **{name: bench["steps"].results[name] for name in ("jobs", "alone", "cores")}
        ),
    ]
)

# %% jupyter={"source_hidden": true} tags=["figure"]
judged, now = (held_out.summary(points, cost_model.MARGIN) for points in (before, live))
ddp = before["algorithm"] == "a DDP step"
before["kind"] = ddp.map({True: "a DDP step", False: "an all-reduce"})
live["kind"] = "an all-reduce"
shown = pd.concat([before.assign(source="recorded"), live.assign(source=source)])
title = f"Not fitted: {judged.points} recorded points, median error {judged.median:.0%};\n"
title += f"{'another job' if recorded else 'this run'}'s {now.points}: {now.median:.0%}"
farthest = max((judged, now), key=lambda errors: abs(errors.largest))
cost_model.errors(shown, title, f"{farthest.largest:+.0%}: {farthest.where}")

# %%
print("Errors below 0: predicted too short.")
print(f"Recorded on {bench['links'].date} ({bench['links'].machine}): {judged}.")
print(f"{'Another job' if recorded else 'This run'}: {now}.")
of_size = live[live["bytes"] == n_bytes].set_index("algorithm") if len(live) else live
if len(of_size):
    ms = 1000 * of_size.loc[["ring", "hierarchical"], ["predicted", "measured"]]
    ms = ms.rename(titles)
    print(
        "; ".join(f"{way}: {a:.0f} ms predicted, {b:.0f} measured" for way, a, b in ms.itertuples())
    )
    guess.compare("computed", ring=ms.loc["ring", "predicted"])
guess.compare("recorded", error=100 * judged.median)

# %% jupyter={"source_hidden": true} tags=["figure"]
import statistics

reduced = before[~ddp]
other_link = (reduced["mbit"] != 200) | (reduced["latency_ms"] > 0)
other_layout = (reduced["instances"] != 2) | (reduced["ranks_per_instance"] != 4)
large = reduced["bytes"] >= 4_000_000
run = "another job" if recorded else "this run"
cases = {
    "DDP steps": before[ddp],
    "all-reduces": reduced,
    "all-reduces by bytes alone": held_out.by_bytes(reduced),
    "all-reduces of 4 MB and more": reduced[large],
    "all-reduces of 1 MB and less": reduced[~large],
    "all-reduces on other links": reduced[other_link],
    "all-reduces in other layouts": reduced[other_layout],
    "all-reduces, median rounds": held_out.all_reduces(
        bench["links"].results["jobs"], of=statistics.median
    ),
    f"{run}'s all-reduces": live,
    f"{run}'s by bytes alone": held_out.by_bytes(live),
}

# %% jupyter={"source_hidden": true} tags=["figure"]
errors = {
    name: {
        "points": len(points),
        "median error, %": 100 * points["error"].abs().median(),
        "largest, %": 100 * held_out.summary(points).largest,
    }
    for name, points in cases.items()
}
rival = held_out.by_bytes(reduced)
slower = held_out.links_of(bench["links"].results["jobs"][0], 1).inter_node.alone.beta / 8e-6
missed = (slower * rival["predicted"] / rival["measured"] - 1).abs().median()
print(f"Bytes alone at the rate that was measured: recorded, median error {missed:.0%}.")
pd.DataFrame(errors).T.round().astype(int).rename_axis("recorded, if not named")

# %% [markdown]
# Which all-reduce is fastest? Where equally many bytes are sent, as with two tiers and
# mini_herring, bytes can't tell, but a rule can always take the same one. A choice is wrong if it
# takes over 5 % longer than the fastest; in this run, also over its noise at that size.
# (mini_herring passes whole tensors inside an instance, longer than any message that was fitted
# there, and these lines are mostly noise: where the model errs, look there first.)

# %%
floors = {
    size: max(1.05, interleaved.band(taken["gloo"] / taken["gloo again"])[1])
    for size, taken in ((8_000_000 if recorded else n_bytes, times), (1_000_000, small))
}
listed = ", ".join(f"{reach - 1:.0%} at {size / 1e6:g} MB" for size, reach in floors.items())
print(f"In {run} a choice is wrong beyond {listed} (5 %, or more where gloo against itself is).")
wrong, chosen = {}, []
for where, points, ties in (("recorded", reduced, {}), (f"in {run}", live, floors)):
    points = held_out.where_bytes_differ(points)
    ways = {
        "the model": points,
        "bytes, then two tiers": held_out.by_bytes(points, first="hierarchical"),
        "bytes, then mini_herring": held_out.by_bytes(points, first="mini_herring"),
    }
    winners = {
        way: pd.concat(
            held_out.wrong_winners(part, ties.get(size, 1.05)) for size, part in of.groupby("bytes")
        )
        for way, of in ways.items()
    }
    cases = points.groupby(list(held_out.PLACE)).ngroups
    wrong[f"wrong, of {cases} {where}"] = {way: len(of) for way, of in winners.items()}
    chosen.append(winners["the model"])

# %% jupyter={"source_hidden": true}
for case in pd.concat(chosen).replace(titles).to_dict("records"):
    print(f"The model's wrong choice, {case['where']}: {case['predicted']}, which takes", end=" ")
    print(f"{case['slower']:.2f} times as long as {case['measured']}.")
model, *rules = wrong[next(iter(wrong))].values()
better = "better than both rules" if model < min(rules) else "no better than the better rule"
print(f"In the recorded cases the model chooses {better}.")
print("So it says *how long* an all-reduce takes better than bytes alone do (the table above).")
if model >= min(rules):
    print(
        "For *which one* is the fastest it is no better than the better of two rules, which nobody"
    )
    print("knows beforehand.")
pd.DataFrame(wrong)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    off=dict(zip(live["algorithm"], live["error"], strict=True)),
    held_out=before["error"].tolist(),
)

# %% [markdown]
# The model leaves out Python between messages, gloo's pipelining, and busy moments.
#
# ## Your own all-reduce under DDP
#
# DDP collects gradients in **buckets**, and starts an all-reduce as soon as a bucket is full. A
# **communication hook** replaces that all-reduce by a function of your own, in one line.
#
# A popular hook sends each number in 16 bits instead of 32. PyTorch has one, `fp16_compress_hook`;
# here is one of ours, on two ranks of this machine. The largest 16-bit float is 65,504. Rank 0's
# gradient will be 72,000, rank 1's 56,000, and their mean, 64,000, fits.


# %% slideshow={"slide_type": "subslide"}
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
    # The output is weight x gradient, so its derivative by the weight is the number we want.
    model(torch.tensor([[gradient]])).sum().backward()
    return float(model.module.weight.grad)


# %% [markdown]
# **Predict** which mean each hook returns. One of the two converts before it divides.

# %% slideshow={"slide_type": "subslide"}
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

guess = workshop.guess(
    torch_hook=("What mean will PyTorch's own 16-bit hook return?", ["64,000", "32,000", "inf"]),
    our_hook=("And ours?", ["64,000", "32,000", "inf"]),
)

# %% slideshow={"slide_type": "subslide"}
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
# read on 2026-11-22): 72,000 is infinite by then. Gradients that large are rare. But training in 16
# bits often multiplies the loss, and with it all gradients, so that small ones don't become 0
# (**loss scaling**).

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Buckets, and what they hide
#
# DDP closes a bucket as soon as it holds 25 MiB or more; the first one at 1 MiB, so that sending
# can start early. `backward()` computes gradients from the last layer to the first, so the buckets
# fill in that order. While one is sent, `backward()` computes the next: computing **hides**
# communication. What nothing hides is **exposed**: a step = compute + waiting for slower ranks +
# exposed communication.

# %% [markdown]
# The next job trains a ResNet (104 tensors, 57 MB of gradients) on two instances with one rank each
# and a link of 2 Gbit/s, 250 MB per second. It measures steps, computing only and sending only, in
# rounds. **Hidden** = 1 - (step - computing only) / sending only: the median of the rounds. Below
# 0, the step took longer than computing and sending one after the other. No more can be hidden than
# `backward()` lasts. **Predict**, and assume that it takes 0.15 s, as in an earlier run.

# %% slideshow={"slide_type": "-"}
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
took = {event["setting"]: event["seconds"] for event in seen if "seconds" in event}
hidden = overlap.hidden(took)["DDP's buckets"]
most = overlap.most_hidden(took)

# %% [markdown]
# <!-- SDK v3: buckets -->

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "subslide"}
rate = "no limit" if unshaped else f"{bandwidth.mbit(overlap_between) / 1000:g} Gbit/s"
spans = pd.DataFrame([event for event in seen if event["event"] == "span"])
spans = spans[spans["rank"] == 0].sort_values(["setting", "start_ms"], ascending=[False, True])
is_sent = spans["kind"] == "all-reduce"
number = spans[is_sent].groupby("setting").cumcount().astype(str)
spans["row"] = (spans["setting"] + ": sends bucket " + number).fillna(
    spans["setting"] + ": computes"
)
of_ddp = spans[spans["setting"] == "DDP's buckets"]
begun, ended = of_ddp["start_ms"], of_ddp["start_ms"] + of_ddp["ms"]
backward = of_ddp["kind"] == "backward"
over = ended[backward].item()
at_end = over - 0.05 * of_ddp["ms"][backward].item()  # the last begins while backward() returns
groups = {
    "sent during backward": ended <= over,
    "still on the way when it ends": (ended > over) & (begun < at_end),
    "begun when it ended": (ended > over) & (begun >= at_end),
}
title = f"One step at {rate}, DDP's buckets:\n" + "; ".join(
    f"no. {' and '.join(number[those & is_sent])} {when}"
    for when, those in groups.items()
    if (those & is_sent).any()
)
shown = spans.rename(columns={"start_ms": "start", "ms": "length"})
plots.gantt(shown, title, "milliseconds since the step began (rank 0)")

# %% slideshow={"slide_type": "-"}
bucket_bytes = [sum(n for _, n in bucket) for bucket in tensors]
sizes = [f"{n / 1e6:.1f} MB" for n in bucket_bytes]
print(f"Buckets 0 (last layers) to {len(sizes) - 1} (first layers): {', '.join(sizes)}.")
rounds = 1000 * pd.DataFrame(took)
step, sending = rounds["DDP's buckets"], rounds[overlap.SEND]
forward, computing = rounds[overlap.FORWARD], rounds[overlap.COMPUTE]
of_round = 1 - (step - computing) / sending
at = (of_round - hidden).abs().idxmin()  # the round of the median
print(f"Hidden, the median of the rounds: 1 - ({step[at]:.0f} - {computing[at]:.0f}) / ", end="")
print(f"{sending[at]:.0f} = {of_round[at]:.0%} of the communication.")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
backward = (computing - forward).median()
print(f"Its rounds: {of_round.min():.0%} to {of_round.max():.0%}; above 0 in", end=" ")
print(f"{(of_round > 0).sum()} of {len(of_round)}.")
print(f"backward() took {backward:.0f} ms: the most possible here is {most:.0%}.", end=" ")
last = bucket_bytes[-1] / sum(bucket_bytes)
print(f"The last bucket, {last:.0%} of the bytes, can't be", end=" ")
print(f"hidden: at most the smaller of {most:.0%} and {1 - last:.0%}, {min(most, 1 - last):.0%}.")
during = max(0.0, 1 - (ended.max() - over) / sending.median())
print(f"In the picture {during:.0%} of the sending is done when backward() ends.", end=" ")
if during > hidden:
    print("Less is saved:\nsending also takes cores, and DDP has work of its own (not separated).")
profiled = f"{ended.max() - begun.min():.0f} ms, in the table {step.median():.0f}"
print(f"Under the profiler DDP's step took {profiled}: read only the order from the picture.")
guess.compare(hidden=100 * hidden)
ms = rounds.agg(["min", "median", "max"]).T
ms.round(0).add_suffix(" ms (measured)")

# %% jupyter={"source_hidden": true} tags=["results"]
names = {event["kind"] for event in seen if event["event"] == "span"}
assert names == {"forward", "backward", "all-reduce"}, f"The profiler saw {names} only."
assert len(tensors) > 1, "With one bucket there is nothing to overlap."
workshop.save_results(overlap=seen, hidden=hidden, most_hidden=most)

# %% [markdown]
# The picture's steps are the fastest of three. By how much sending lengthens `backward()`, a step
# under a profiler doesn't tell.
#
# Here are five links, recorded in one job each, and five kinds of buckets. (*DDP's buckets* are the
# default, 1 MiB first and then 25; of *buckets of 25 MiB* the first one has that limit, too.)
# Possible is `backward()` divided by sending, at most 1; of DDP's buckets no more than all but the
# last (dotted). Upright lines: the range of the rounds, for two kinds. (A round can lie above a
# limit: it is a difference of measured times.)

# %% jupyter={"source_hidden": true} tags=["figure"]
swept = reference_results.load("07", "overlap")
points = pd.DataFrame(
    {"Gbit/s": job["mbit"] / 1000, "possible": overlap.most_hidden(job["seconds"])}
    | overlap.hidden(job["seconds"])
    for job in swept.results["jobs"]
).set_index("Gbit/s")
points, buckets = 100 * points, "DDP's buckets"
by_link = {
    job["mbit"] / 1000: 100 * pd.DataFrame(overlap.hidden_by_round(job["seconds"]))
    for job in swept.results["jobs"]
}
ways = points.drop(columns="possible")
best = ways.median().idxmax()
agree = [rate for rate, rounds in by_link.items() if (rounds[best] > rounds[buckets]).all()]
at = ways.loc[agree or ways.index, best].idxmax()
title = f"At {at:g} Gbit/s {best} hide {ways.loc[at, best]:.0f} % of the communication,\n"
title += f"DDP's default {ways.loc[at, buckets]:.0f} % (medians)"

# %% jupyter={"source_hidden": true} tags=["figure"]
x = "each instance's link, Gbit/s"
beside = {buckets: 0.98, best: 1.02}  # so that their ranges stand side by side
with plots.canvas(title, x, "hidden, % of the communication", size=(7.5, 4)) as axes:
    axes.plot(points["possible"], color="black", label="possible")
    style = {"color": plots.COLOURS[list(ways).index(buckets)], "linestyle": ":"}
    axes.axhline(100 * (1 - last), label=f"{buckets}: all but the last", **style)
    for number, way in enumerate(ways):
        look = {"color": plots.COLOURS[number], "alpha": 0.45, "label": way}
        axes.plot(ways[way], f"{'osvD^'[number]}--", **look)
        if way in beside:
            low = [rounds[way].min() for rounds in by_link.values()]
            high = [rounds[way].max() for rounds in by_link.values()]
            axes.vlines(points.index * beside[way], low, high, plots.COLOURS[number])
    if not unshaped:
        at, style = bandwidth.mbit(overlap_between) / 1000, {"color": "black", "markersize": 9}
        axes.plot(at, 100 * hidden, "*", label="DDP's buckets, this run", **style)
    axes.set(xscale="log", ylim=(-80, 105))
    axes.set_xticks(list(points.index), [f"{rate:g}" for rate in points.index])
    axes.xaxis.set_minor_formatter("")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["figure"]
print(f"Recorded on {swept.date} ({swept.machine}); only the star is this run.")
lowest = min(rounds[[buckets, best]].min().min() for rounds in by_link.values())
if lowest < -80:
    print(f"The lowest round, {lowest:.0f} %, lies below the picture.")
if not unshaped and hidden < -0.8:
    print(f"So does the star, {hidden:.0%}.")
ahead = [
    f"{(rounds[best] > rounds[buckets]).sum()} of {len(rounds)} at {rate:g} Gbit/s"
    for rate, rounds in by_link.items()
]
print(f"Rounds in which {best} hide more than DDP's default: {', '.join(ahead)}.")
print(f"All rounds agree only at {' and '.join(f'{rate:g}' for rate in agree) or 'no'} Gbit/s.")
at = bandwidth.mbit(overlap_between) / 1000
if not unshaped and at in by_link:
    of_link = by_link[at][buckets]
    if not of_link.min() <= 100 * hidden <= of_link.max():
        print("The star lies outside that link's recorded rounds: jobs differ, not only rounds.")

# %% [markdown]
# Up to 1 Gbit/s the link limits, and small buckets come close to the line. One bucket hides
# nothing: how far its curve lies below 0 is DDP's own work, such as copying gradients into the
# bucket, and waiting for the slower rank. On faster links that eats up what is saved.
#
# ## Sending less, or in another order
#
# Two instances with two ranks each train a small model on links of 100 Mbit/s, with four hooks:
#
# | | what is sent |
# |---|---|
# | `default` | float32, DDP's own all-reduce |
# | `hierarchical` | float32, **two tiers**: the same sums in another order |
# | `fp16` | 2 bytes for each number instead of 4 (PyTorch's hook: no gradient here is too large) |
# | `powersgd` | two thin matrices, whose product approximates the gradient (Vogels et al., 2019) |
#
# DDP's default gives two buckets; `powersgd` has one, which its hook needs on gloo.
#
# Each is one line of [hooks_torch.py](../scripts/demos/common/hooks_torch.py):
#
# ```python
# ddp_model.register_comm_hook(TwoTier(group), averaged)  # hierarchical
# ddp_model.register_comm_hook(group, default_hooks.fp16_compress_hook)
# ddp_model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
# ```
#
# **Predict.** With two ranks on each instance the ring sends 2 · 3/4 times the bytes over each
# link, two tiers send 2 · 1/2 times; 16 bits halve the bytes. `default` sends 1.68 MB over each
# link in a step. A step also computes: about 6 ms on one rank alone (recorded); here four ranks
# share the machine's cores. One job measures all hooks in rounds, and `default` twice. PowerSGD's
# first two steps are ordinary ones (`powersgd_start=2`) and not timed.

# %%
guess = workshop.guess(
    hierarchical="How many times as fast is a step with two tiers?",
    fp16="And one with 16 bits?",
)
stepping = PyTorch(
    entry_point="measure_steps.py",
    instance_count=2,
    distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": training_between},
    hyperparameters={
        "all-reduce": "default,default again,hierarchical,fp16,powersgd",
        "hidden-units": hidden_units,
        "blocks": blocks,
        "steps": 2,
    },
    **torch_image,
    **demo,
)

# %%
stepping.fit(wait=False)
records = [event for event in workshop.follow(stepping).events if event["event"] == "steps"]
step_ms = {event["all_reduce"]: [1000 * s for s in event["seconds"]] for event in records}
if recorded:
    print(recorded.caption)
    step_ms = recorded.results["steps"]
step_ms = pd.DataFrame(step_ms)
by_round = interleaved.ratios(step_ms, "default")

# %% [markdown]
# <!-- SDK v3: hooks -->

# %% jupyter={"source_hidden": true} tags=["figure"]
faster = by_round.median()
training_mbit = bandwidth.mbit(training_between) if target == "local" else on_aws
counted = pd.Series({event["all_reduce"]: event["card_bytes"] for event in records})
shown = step_ms.drop(columns="default again")
bounds = None
if not unshaped and counted.notna().all():
    bounds = (counted[list(shown)] / 1000 * 8 / training_mbit).rename("computed: bytes / bandwidth")
noise = by_round["default again"]
verdicts = {name: interleaved.verdict(by_round[name], noise) for name in by_round}
gained = {
    name: f"{faster[name]:.2f}{' (not shown)' if verdict.startswith('no') else ''}"
    for name, verdict in verdicts.items()
}
title = f"A step on {training_mbit:g} Mbit/s, times as fast as default:\ntwo tiers "
title += f"{gained['hierarchical']}, fp16 {gained['fp16']}, PowerSGD {gained['powersgd']}"
label = f"milliseconds of a step (median, lowest and highest of {len(step_ms)} rounds)"
titles |= {"powersgd": "PowerSGD"}
shown = shown.rename(columns=titles)
style = {"texts": "{:.0f} ms", "spread": interleaved.summary(shown), "source": source}
plots.bar_chart(shown.median(), title, label, bounds=bounds, colour=plots.COLOURS[0], **style)

# %%
for name in ("hierarchical", "fp16", "powersgd"):
    low, high = by_round[name].min(), by_round[name].max()
    print(f"{titles.get(name, name)}: {faster[name]:.2f} times as fast as default ", end="")
    print(f"({low:.2f} to {high:.2f}): {verdicts[name]}")
_, floor = interleaved.band(noise)
print(f"The noise, default against itself in the median round: a factor of {floor:.2f}.")
if bounds is not None:
    rest = step_ms - counted * 8 / 1000 / training_mbit
    rests = interleaved.ratios(rest.clip(lower=0.1), "default")
    differ = [
        titles.get(name, name)
        for name in ("hierarchical", "fp16", "powersgd")
        if interleaved.verdict(rests[name], rests["default again"]) != "no difference shown"
    ]
    print("Beyond the bytes a step takes, ms: ", end="")
    print(", ".join(f"{titles.get(name, name)} {rest[name].median():.0f}" for name in bounds.index))
    print(f"Those that differ from default's by more than noise: {', '.join(differ) or 'none'}.")
    print("Sent over each link in a step, counted by the network card, MB: ", end="")
    print(
        ", ".join(f"{titles.get(name, name)} {counted[name] / 1e6:.2f}" for name in step_ms.columns)
    )
guess.compare(source, hierarchical=faster["hierarchical"], fp16=faster["fp16"])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(steps=step_ms.to_dict("list"), faster=faster.to_dict())

# %% [markdown]
# By bytes two tiers are 1.5 times as fast, and fp16 twice. Beyond them every step computes the same
# (four ranks of 6 ms each on two cores: 12 ms; what else the rest holds, gloo's own work and
# waiting, isn't separated here). Two tiers add Python between messages, PowerSGD matrices: above
# you see whether it shows.
#
# PowerSGD adds what one step leaves out to the next step's gradients (**error feedback**). Judge a
# hook that changes the gradients by the accuracy after the same time, on your data.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## SMDDP in one page
#
# **What it is.** AWS's library of collectives for its own instances; in `torch.distributed` one
# more backend. AWS names three strengths: it knows the topology of p4d instances, overlaps its
# all-reduce with `backward()` (as DDP does with any backend), and takes no cycles from the GPUs
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-intro.html), read on
# 2026-11-24). It also has an **all-gather** for FSDP (fully sharded data parallel).
#
# **What you write.** `distribution` requests `smdistributed`, and the script needs two lines, which
# `init_distributed` of [train_torch_ddp.py](../scripts/train/train_torch_ddp.py) runs for
# `--backend smddp`:
#
# ```python
# import smdistributed.dataparallel.torch.torch_smddp  # adds the backend
# dist.init_process_group("smddp")
# ```

# %%
p4d = instance_type if target == "local" else "ml.p4d.24xlarge"
smddp = PyTorch(
    entry_point="train_torch_ddp.py",
    instance_count=2,
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    hyperparameters={"backend": "smddp", "epochs": 1, "threads-per-rank": 1},
    **torch_image,
    **job | {"instance_type": p4d},
)
each = workshop.cost("ml.p4d.24xlarge", instance_count=2, seconds=300, max_run=max_run)
print(f"On AWS this job costs: {each}")
smddp_jobs = {"backend smddp": smddp} if target == "local" or start_p4d else {}
named_smddp = workshop.run_jobs(smddp_jobs, channels)

# %% [markdown]
# <!-- SDK v3: SMDDP -->

# %%
for result in named_smddp.values():
    for line in result.matching("SMDDP exists only on AWS")[:1]:
        print(line.text)
    weights = result.table("weights")["weights_sha256"]
    print(f"{len(weights)} ranks, {weights.nunique()} set of weights")

# %% jupyter={"source_hidden": true} tags=["results"]
if smddp_jobs:
    assert weights.nunique() == 1, "The substitute must average the same gradients."
    workshop.save_results(standin_weights=int(weights.nunique()))

# %% [markdown]
# Here gloo took the name `smddp`. **Nothing measured here is SMDDP's speed.**
#
# **Where it runs.** p4d and p4de: 8 A100s, NVLink inside, 400 Gbit/s with EFA outside
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-data-parallel-support.html)).
# By their Dockerfiles the images of PyTorch have it up to
# [2.5.1](https://github.com/aws/deep-learning-containers/blob/76fce959a63a3a4736cad60608859459b5821ac0/pytorch/training/docker/2.5/py3/cu124/Dockerfile.gpu)
# (of 2025-08-04); that page ends earlier. Above 2.2.0 you must name the image by `image_uri`. The
# SDK refuses P5 and checks no other type (`estimator.py`, version 2.257.7), though SMDDP can't run
# on most. `preflight` says why before the job starts:

# %% tags=["deterministic"] slideshow={"slide_type": "slide"}
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
# **What it cannot do.** No `torch.distributed.new_group()`, and no second backend beside it
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-modify-sdp-pt.html), read on
# 2026-11-22). TensorFlow only up to 2.11, deprecated, and without Keras
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-modify-sdp-tf2.html), read on
# 2026-11-24): a script with Keras's `model.fit`, such as `train_tf_fit.py`, stays with Horovod.
#
# **Where it comes from.** **Herring** (Thangakrishnan and others, SC20) brought back the parameter
# server of lesson 03. *Every* instance has one, on its CPU. Gradients are cut by bytes, not by
# layers (**balanced fusion buffers**), so all links are busy for the same time; each instance adds
# up its own gradients first. The paper reports twice the speed of all-reduce, and on 2048 V100 GPUs
# 85 % of 2048 times the speed of a single one
# ([SC20](https://sc20.supercomputing.org/proceedings/tech_paper/tech_paper_pages/pap487.html), read
# on 2026-11-21). Our `mini_herring` has its two tiers and equal shares, but no EFA, no CPUs that
# add beside GPUs, no asynchronous messages: its bar says nothing of Herring's speed.
#
# **What others measured.** About 20 % faster steps than Horovod's, with one model on four
# p4d.24xlarge (today about 101 USD an hour; [C.
# Rand](https://towardsdatascience.com/smart-distributed-training-on-amazon-sagemaker-with-smd-part-2-c833e7139b5f),
# 2022, who adds that **results vary with placement**).
#
# **What to use.** On p4d with PyTorch up to 2.5.1: measure SMDDP against NCCL. Everywhere else with
# GPUs: the launcher `torch_distributed` and NCCL, which uses EFA through a plugin in AWS's images
# (aws-ofi-nccl) and has trees. On CPUs: gloo, and count bytes.
#
# ## Exercises
#
# In [exercises/07](exercises/07_smddp.ipynb), each with a check:
#
# 1. *SMDDP, NCCL or neither?* (6 minutes, easy): choose a backend for any job.
# 2. *What PowerSGD sends* (8 minutes, medium): count its bytes.
# 3. *Read a trace* (8 minutes, medium): how much communication is exposed, and why.
# 4. *Which buckets?* (10 minutes, medium): find the best limit for a link.
# 5. *Test the model* (9 minutes, medium): predict a size that it was not fitted on.
# 6. *Two tiers in three calls* (13 minutes, hard): write it, and run it on four real ranks.
#
# ## Check yourself

# %% question=1 slideshow={"slide_type": "slide"}
workshop.quiz("07")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - Count what crosses the network: a ring in rank order sends 2 (N - 1) / N times the bytes over
#   each instance's link, two tiers 2 (I - 1) / I times. N is the number of ranks, I that of
#   instances.
# - A model is worth what it predicts where it was not fitted: show all errors and wrong winners
#   beside those of a simpler model.
# - DDP's buckets hide communication behind `backward()`, never more than `backward()` lasts, and
#   never the last bucket.
# - fp16 and PowerSGD change what is sent: divide before you convert, and check what is learned.
# - SMDDP: p4d and p4de, PyTorch up to 2.5.1, no Keras. Elsewhere NCCL.

# %% [markdown]
# ## Clean up
#
# All instances were released when their jobs ended; nothing is running. Models, data and logs
# remain until you delete them: [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# [Lesson 08](08_serving.ipynb) deploys one of the models that you have trained.

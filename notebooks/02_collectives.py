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
# # 02 · Collectives
#
# **After this lesson you can**
#
# - build an all-reduce around a ring, from send and receive alone;
# - predict how long it takes from two numbers measured on your links, and see where that fails;
# - start ranks with `torchrun`, and say what each of its variables means;
# - share a data set among ranks so that every epoch has a new order.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb): why ranks average their gradients.
#
# **Time:** 70 minutes, without the exercises.
#
# **Where it runs:** the times come from one job of four instances, here or on AWS. All else runs in
# processes of this machine.
#
# **Cost on AWS:** about 0.07 USD, at most 0.17 USD: one job on four `ml.c5.xlarge`, 5 minutes
# planned (us-east-1, price list of 2026-09-27). Nobody has run it there yet.

# %% [markdown]
# ## Set up
#
# - `world_size`: how many ranks. In the job each has its instance (emulated, unless it is on AWS).
# - `link`: the bandwidth of each instance; only the emulator can limit it. If it can't here, the
#   lesson shows times of another machine, marked *recorded*.
# - `tensor_bytes`: sizes of the tensors that are summed. `message_bytes`: sizes of the single
#   messages that are timed to measure the links.
# - `rounds`: how often each is measured. `max_run`: seconds after which SageMaker stops the job.

# %% tags=["parameters"]
target = "local"
seat = "me"
world_size = 4
instance_type = "ml.c5.xlarge"
link = "200mbit"
tensor_bytes = [8_000_000, 1_000_000, 4_000]
message_bytes = [2_000, 300_000, 2_000_000]
rounds = 5
max_run = 600

# %%
import math
import re
import socket

import numpy as np
import pandas as pd

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.launch import processes
from workshop.lesson import reference_results
from workshop.measure import interleaved
from workshop.measure.alpha_beta import Link

session = workshop.session(target=target, seat=seat)
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("02") if unlimited and target == "local" else None
source = "recorded" if recorded else "measured"
print(unlimited or f"Each instance gets a link of {bandwidth.mbit(link):g} Mbit/s.")
if recorded:
    print(recorded.caption)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first
#
# Four ranks hold a tensor each, and every rank needs the sum of all four: an **all-reduce**, which
# training performs in every step. Each rank is on its own instance, with a link of 200 Mbit/s:
#
# - **naive**: all send their tensor to rank 0, which adds and sends the sum back to each;
# - **tree**: ranks add up in pairs, then the pairs' sums are added, and the total comes back the
#   same way;
# - **ring**: each rank passes a quarter of the tensor to its neighbour, six times;
# - **gloo**: what torch itself calls on CPUs, a ring in C++.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    gain=f"{world_size} ranks, {max(tensor_bytes) / 1e6:g} MB on each: "
    "what is the speed-up of the ring over the naive way?"
)

# %%
from sagemaker.pytorch import PyTorch

algorithms = ("naive", "tree", "ring")
estimator = PyTorch(
    entry_point="measure_all_reduce.py",
    instance_count=world_size,
    instance_type=instance_type,
    # mpirun only starts the ranks; gloo communicates.
    distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},  # AWS ignores it
    hyperparameters={
        "algorithms": ",".join([*algorithms, "ring again", "gloo"]),
        "bytes": ",".join(map(str, tensor_bytes)),
        "link-bytes": ",".join(map(str, message_bytes)),
        "card-bytes": 1_000_000,
        "blocks": rounds,
    },
    framework_version="2.2.0",
    py_version="py310",
    **session.job_settings("ring", source_dir=workshop.DEMOS) | {"max_run": max_run},
)

# %% [markdown]
# The job takes about a minute.

# %%
events = recorded.results["events"] if recorded else None
if not recorded:
    print(workshop.cost(instance_type, instance_count=world_size, seconds=300, max_run=max_run))
    estimator.fit(wait=False)
    events = workshop.follow(estimator).events

# %% [markdown]
# <!-- SDK v3: ring -->

# %% jupyter={"source_hidden": true} tags=["results"]
measured_events = [event for event in events if event["event"] in ("link", "all_reduce", "cards")]
workshop.save_results(events=measured_events, recorded=bool(recorded))

# %% slideshow={"slide_type": "slide"}
timed = {(e["bytes"], e["algorithm"]): e["seconds"] for e in events if e["event"] == "all_reduce"}
seconds = pd.DataFrame(timed)  # a row for each round
largest = max(tensor_bytes)
gains = seconds[largest, "naive"] / seconds[largest, "ring"]
guess.compare(source, gain=gains.median())

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
ms = 1000 * seconds[largest][[*algorithms, "gloo"]]
spread = pd.DataFrame({"lowest": ms.min(), "highest": ms.max()})
rate = None if target == "aws" else 1e6 * bandwidth.mbit(link) / 8  # bytes per second
over = f"links of {bandwidth.mbit(link):g} Mbit/s" if rate else f"the links of {instance_type}"
title = f"{largest / 1e6:g} MB over {over}: a ring is {gains.median():.1f} times as fast as naive"
bounds = None
if rate:
    follow = [6, 4, 1.5, 1.5] if world_size == 4 else [np.nan] * 4  # tensors, one after the other
    bounds = pd.Series([1000 * part * largest / rate for part in follow], ms.columns)
    bounds.name = "bytes / bandwidth (computed)"
x = f"milliseconds: median, and range of {len(ms)} rounds"
plots.bar_chart(ms.median(), title, x, spread=spread, bounds=bounds, source=source)

# %% [markdown]
# The black line (only where links are limited) is the least time that the bytes need: all that pass
# the busiest link one after the other, divided by its bandwidth. For naive that is 6 tensors: three
# into rank 0, then three out. The tree has 4, and the ring 1.5, six quarters: its links send and
# receive at the same time.

# %%
noise = seconds[largest, "ring again"] / seconds[largest, "ring"]
for name in ("naive", "tree", "gloo"):
    ratios = seconds[largest, name] / seconds[largest, "ring"]
    print(f"The ring, against {name}: {interleaved.verdict(ratios, noise)},", end=" ")
    print(f"{ratios.min():.2f} to {ratios.max():.2f} times as fast in {len(ratios)} rounds.")
print("The noise floor (lesson 01): {:.2f} to {:.2f}.".format(*interleaved.band(noise)))

# %% jupyter={"source_hidden": true} tags=["results"]
assert gains.median() > 2, f"The ring should win on limited links: {list(gains.round(2))}"
workshop.save_results(gain=gains.median())

# %% [markdown]
# ## Send and receive
#
# Ranks share no memory. They have messages: `send(tensor, dst)` and `recv(tensor, src)`.


# %% tags=["deterministic"]
def pass_a_note():
    import torch
    import torch.distributed as dist

    note = torch.tensor([42 if dist.get_rank() == 0 else 0])
    if dist.get_rank() == 0:
        dist.send(note, 1)
    else:
        dist.recv(note, 0)
    return note.item()


pair = workshop.start_ranks(2)
notes = pair.run(pass_a_note)
print(f"Rank 0 holds {notes[0]}, rank 1 holds {notes[1]}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert notes == [42, 42], f"The note did not arrive: {notes}."

# %% [markdown] slideshow={"slide_type": "slide"}
# Every rank runs the same code, and `get_rank()` tells it which part to do. The receiver provides
# the memory. Now both ranks send first, and then receive. What will happen?

# %% slideshow={"slide_type": "-"}
outcomes = ["both notes arrive", "one rank gets an error", "both wait forever"]
guess = workshop.guess(outcome=("Both send first, then receive:", outcomes))


# %% slideshow={"slide_type": "slide"}
def both_send_first():
    import torch
    import torch.distributed as dist

    other, note = 1 - dist.get_rank(), torch.zeros(1)
    dist.send(torch.ones(1), other)
    dist.recv(note, other)


failure = ""
try:
    pair.run(both_send_first, timeout=1)  # a second; then the error says where each rank is
except workshop.RankFailed as error:
    failure = str(error)
pair.stop()

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
outcome = "one rank gets an error" if failure else "both notes arrive"
if "had not returned" in failure:
    outcome = "both wait forever"
stacks = r"^(rank \d:)[\s\S]*?(in send)$[\s\S]*?(in both_send_first)$"
print(*map(" ".join, re.findall(stacks, failure, re.MULTILINE)), sep="\n")
guess.compare(outcome=outcome)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(notes=notes, both_send_first=outcome)

# %% [markdown]
# After a second we asked each rank where it was: both are in `send`. gloo's `send` returns only
# when the other side receives (**rendezvous**), and neither side gets that far. This is a
# **deadlock**: no progress, and no error until a time-out, by default after half an hour. Elsewhere
# the mistake stays hidden: MPI sends a small message at once (**eager**), so all goes well until
# the tensor grows; NCCL's `send` may return at once, and the program hangs later, where it needs
# the result. `isend` and `irecv` only *begin* to send or receive; the ring below begins all its
# receives first.
#
# ## Seven ways to share
#
# These patterns are *collective*: **every rank must make the call**. For gather and all-gather each
# rank gives only its first number.

# %%
ranks = workshop.start_ranks(world_size)
after = pd.DataFrame(ranks.run("collectives.tour:one_of_each"))
after.index = [f"rank {rank}" for rank in range(world_size)]
after.T

# %% jupyter={"source_hidden": true} tags=["results"]
sums, pieces = list(after["all-reduce"]), [part for (part,) in after["reduce-scatter"]]
assert pieces == sums[0], "Reduce-scatter must leave part r of the sum on rank r."
workshop.save_results(sums=sums, pieces=pieces)

# %% [markdown]
# - **Broadcast**: one rank's numbers go to all.
# - **Scatter**: rank 0 gives each rank one piece. **Gather** is the reverse.
# - **Reduce**: combine element by element, here by adding. Only rank 0 has the sum; what the others
#   hold is of no use.
# - **All-reduce**: everybody has the sum, as training needs it.
# - **Reduce-scatter**: rank r has part r of the sum, and nothing else.
# - **All-gather**: everybody has everybody's part.
#
# A reduce-scatter, then an all-gather of the parts, is an all-reduce.
#
# ## All-reduce the obvious way
#
# Everybody sends to rank 0, which adds and sends the sum back. `send` and `receive` below call
# torch's, and also count the bytes. `flat` views the tensor as a vector, without a copy.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/collectives/naive.py", "all_reduce")

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    naive=f"{world_size} ranks, 1 MB on each: how many MB pass through rank 0, in and out?",
)


# %% tags=["deterministic"]
def megabytes(algorithm, among, size=1_000_000):
    """What each of the first `among` ranks sent and received, together; for one all-reduce."""
    traffic = ranks.run("collectives.timing:count_traffic", algorithm, size, among)
    return [(rank["sent_bytes"] + rank["received_bytes"]) / 1e6 for rank in traffic if rank]


through = {n: megabytes("naive", n) for n in range(2, world_size + 1)}
filled = {f"{n} ranks": passed + [""] * (world_size - n) for n, passed in through.items()}
pd.DataFrame(filled).rename_axis("MB through rank")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(through_rank_0=[passed[0] for passed in through.values()])

# %% slideshow={"slide_type": "slide"}
guess.compare(naive=through[world_size][0])

# %% [markdown]
# Every rank that joins adds 2 MB that must pass through rank 0. So on limited links more ranks must
# make each naive all-reduce *slower*.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The ring
#
# Two ideas take the load off rank 0. Cut the tensor into as many **chunks** as there are ranks, and
# let the sum of each be completed on a different rank. And let every rank send only to the next,
# the last to rank 0, so that all **links** work all the time. The first half is a reduce-scatter.
# `coming` lists the chunks as they arrive: on rank 0 of four 2, 1, 0, so it completes the sum of
# chunk 0. `begin_to_receive` is torch's `irecv`. (Ignore `order`, `place_in` and `on_step`.)

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/collectives/ring.py", "reduce_scatter")

# %% [markdown]
# All receives begin before the first send: no deadlock. In its first step a rank sends a chunk that
# holds only its own numbers; in each later step, the chunk that it has just added to. The second
# half, the all-gather, passes on the finished chunks in the same way, without the addition
# (exercise 2).
#
# Watch it. Rank 0 puts 0001 into all its chunks, rank 1 puts 0010, rank 2 0100. So `0110` is the
# sum of ranks 1 and 2. A black frame marks what arrived in a step. The darker the blue, the more
# ranks have contributed; bold and green is the complete sum.


# %% tags=["readme"] slideshow={"slide_type": "slide"}
watched = ranks.run("collectives.tour:watched_ring")
plots.ring_steps(watched)

# %% [markdown]
# The same run with a slider: follow chunk 0, the left cell of each rank, around the circle.

# %%
plots.interactive.ring(watched)

# %% jupyter={"source_hidden": true} tags=["results"]
halfway = [int(states[world_size - 1][rank]) for rank, states in enumerate(watched)]
complete = sum(10**rank for rank in range(world_size))
assert halfway == [complete] * world_size, "After the reduce-scatter chunk r belongs to rank r."
assert all((states[-1] == complete).all() for states in watched), (
    "A chunk is not complete at the end."
)
workshop.save_results(steps=len(watched[0]) - 1, halfway=halfway)

# %% [markdown]
# <details><summary>Coming from another tutorial?</summary>
#
# Some describe an all-reduce as reduce-scatter inside each machine, all-reduce between machines,
# and all-gather inside each: the **hierarchical** kind (lesson 07).
#
# </details>
#
# ## Is it right, and what does it move?
#
# A ring that skips a step gives wrong numbers, not an error. So compare with torch's all-reduce, at
# lengths that are not multiples of the number of ranks, and with integers, which don't round.

# %% tags=["deterministic"]
lengths, check = [1, world_size - 1, world_size + 1, 1001], "collectives.timing:different_elements"
differing = pd.DataFrame(
    {name: [sum(ranks.run(check, name, n)) for n in lengths] for name in algorithms},
    index=pd.Index(lengths, name="length of the tensor"),
)
differing.rename_axis(columns="wrong elements")

# %% [markdown]
# Three things describe an algorithm. `messages` computes them for any N, and the table below
# compares the bytes that follow from them with those that the ranks counted.
#
# | | steps | messages in each step (4 ranks) | bytes of a message |
# |---|---|---|---|
# | naive | 2 (N - 1) | 1 | n |
# | tree | 2 · (log2 N, rounded up) | 1 → 0 and 3 → 2; 2 → 0; 0 → 2; 0 → 1 and 2 → 3 | n |
# | ring | 2 (N - 1) | 4 | n / N |

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    ring=f"A ring of {world_size}, 1 MB on each: how many MB pass through a rank, in and out?",
)


# %%
def messages(algorithm, n_bytes, ranks):
    """Bytes of one message, and how many travel at once in each step."""
    levels = [2**level for level in range(math.ceil(math.log2(ranks)))]
    # Pairs that add up. Distance 1: 1 → 0, 3 → 2; distance 2: 2 → 0.
    pairs = [len(range(distance, ranks, 2 * distance)) for distance in levels]
    return {
        "naive": (n_bytes, [1] * 2 * (ranks - 1)),
        "tree": (n_bytes, pairs + pairs[::-1]),
        "ring": (n_bytes / ranks, [ranks] * 2 * (ranks - 1)),
    }[algorithm]


def busiest_rank(algorithm, n_bytes, ranks):
    """Bytes in and out of the busiest rank. In a ring a rank sends and receives in each step."""
    size, steps = messages(algorithm, n_bytes, ranks)
    return size * len(steps) * (2 if algorithm == "ring" else 1)


# %% tags=["deterministic"] slideshow={"slide_type": "slide"}
traffic = {}
for name in algorithms:
    passed = megabytes(name, world_size)
    traffic[name] = {"steps (computed)": len(messages(name, 1, world_size)[1])}
    traffic[name] |= {"all ranks, MB": f"{sum(passed):g}", "busiest rank, MB": max(passed)}
    traffic[name]["by formula, MB"] = busiest_rank(name, 1, world_size)
pd.DataFrame.from_dict(traffic, orient="index")

# %% slideshow={"slide_type": "-"}
busiest = {name: row["busiest rank, MB"] for name, row in traffic.items()}
guess.compare(ring=busiest["ring"])

# %% jupyter={"source_hidden": true} tags=["results"]
assert (differing == 0).all(axis=None), "An algorithm does not give what torch's all-reduce gives."
for name, row in traffic.items():
    apart = abs(row["busiest rank, MB"] - row["by formula, MB"])
    assert apart < 0.001, (
        f"{name}: a rank passed a different number of bytes than the formula says."
    )
workshop.save_results(different_elements=int(differing.sum(axis=None)), busiest_rank_mb=busiest)

# %% [markdown]
# All three move *the same number of bytes in all*. (The table counts each byte twice: sent and
# received.) The ring only spreads them evenly: each of N ranks sends 2 · (N - 1) / N times the
# tensor, and receives as much. That stays below twice the tensor for any N. Where only the ranks
# add (some switches can, too), no all-reduce lets its busiest rank send less ([Patarasuk and
# Yuan, 2009](https://doi.org/10.1016/j.jpdc.2008.09.002)): a ring is **bandwidth-optimal**.
#
# Here naive moves twice a ring's bytes through its busiest rank, yet the black lines of the first
# picture are four times apart: a ring sends and receives at the same time, naive's rank 0 first
# one, then the other.

# %%
on_cards = [max(e["sent"]) for e in events if e["event"] == "cards" and e["algorithm"] == "ring"]
formula = 2 * (world_size - 1) / world_size  # MB, of a tensor of 1 MB
for sent in on_cards:
    print(f"The job's ring, 1 MB: the busiest network card sent {sent / 1e6:.2f} MB, ", end="")
    print(f"by the formula, which has no headers, {formula:.2f}: ", end="")
    print(f"{sent / 1e4 / formula - 100:.1f} % more.")

# %% jupyter={"source_hidden": true} tags=["figure"]
# Colour and mark of each, as in the first picture.
look = dict(zip((*algorithms, "gloo"), zip(plots.COLOURS, "s^ox", strict=False), strict=True))
counts = range(2, 17)
title = "1 MB tensor: each further rank adds 2 MB to naive's rank 0; a ring stays below 4 MB"
counted = {n: {a: max(megabytes(a, n)) for a in algorithms} for n in range(2, world_size + 1)}
up = "MB sent + received\nby the busiest rank"
with plots.canvas(title, "ranks", up, size=(7.5, 3.2)) as axes:
    for name, style in zip(algorithms, ("-", "--", ":"), strict=True):
        colour, mark = look[name]
        by_formula = [busiest_rank(name, 1, n) for n in counts]
        steps_of = "steps-mid" if name == "tree" else "default"  # log2 is rounded up
        look_of_line = {"color": colour, "drawstyle": steps_of}
        axes.plot(counts, by_formula, style, label=f"{name}, formula", **look_of_line)
        marks = [by_name[name] for by_name in counted.values()]
        axes.plot(list(counted), marks, mark, color=colour, label=f"{name}, counted")
    axes.set_ylim(0, None)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Two numbers for a link
#
# A message of n bytes takes about **α + β · n** seconds. α (alpha) is the **latency**, the delay
# that even a tiny message has. 1 / β (beta) is the **bandwidth**. The job timed messages of three
# sizes as a ring sends them: all ranks send and receive at once. `Link.fit` finds the α and β with
# the least relative errors. Here the *least* of the rounds counts, because other programs on the
# machine only add time.

# %% slideshow={"slide_type": "-"}
by_round = pd.DataFrame({e["bytes"]: e["seconds"] for e in events if e["event"] == "link"})
sizes = by_round.min().to_dict()
fitted = Link.fit(sizes)
fits = [Link.fit(of_round) for of_round in by_round.to_dict("records")]
alphas = [1e6 * of_round.alpha for of_round in fits]
table = pd.DataFrame({"measured, ms": 1000 * pd.Series(sizes)}).rename_axis("bytes of a message")
table["α + β n, ms"] = [1000 * fitted.seconds(n) for n in table.index]
print(f"α = {1e6 * fitted.alpha:.0f} µs, β = {1e9 * fitted.beta:.1f} ns per byte, ", end="")
print(f"1 / β = {1e-6 / fitted.beta:.1f} MB/s ({source})", end="")
print(f"; by the limit {rate / 1e6:g} MB/s." if rate else ".")
print(f"Fitted to single rounds α lies between {min(alphas):.0f} and {max(alphas):.0f} µs.")
table.round(2)

# %% [markdown]
# Two numbers fitted to three points nearly always pass near them: the test comes below. The range
# of α over single rounds shows how uncertain it is. (A pause lets a limited link send faster at
# first, so the first messages of a round aren't timed. The emulator limits bandwidth only, so
# locally α is no delay of the link, but of four processes that share the cores and send as in a
# ring.)
#
# Steps follow each other, so an all-reduce takes **steps · (α + β · bytes of a message)**: naive
# 2 (N - 1) (α + β n), a ring 2 (N - 1) (α + β n / N). Adding (often γ) is left out. **Predict** a
# tensor of 1 MB. That is a mild test: its messages, of 1 MB in naive and of 250 kB in a ring, were
# not timed, but lie between those that were. `fitted.seconds(250_000)` is one message's seconds.
# The next table shows the least time of the rounds, so its numbers are smaller than the medians in
# the first picture.

# %% slideshow={"slide_type": "slide"}
closest = ["tree", "ring", "no difference shown"]
guess = workshop.guess(
    ring_ms=f"The ring, {tensor_bytes[1] / 1e6:g} MB: how many milliseconds?",
    naive_ms=f"Naive, {tensor_bytes[1] / 1e6:g} MB: how many milliseconds?",
    small=(f"A tensor of {min(tensor_bytes) / 1e3:g} kB, tree against ring: faster?", closest),
)


# %%
def estimate(algorithm, n_bytes, ranks, links):
    """Seconds of an all-reduce: its steps follow each other."""
    size, steps = messages(algorithm, n_bytes, ranks)
    return len(steps) * links.seconds(size)


judged = seconds.min().unstack()[[*algorithms, "gloo"]].sort_index(ascending=False)
kinds = {"naive": "naive", "tree": "tree", "ring": "ring", "gloo": "ring"}
predicted = pd.DataFrame(
    {a: [estimate(kinds[a], n, world_size, fitted) for n in judged.index] for a in kinds},
    index=judged.index,
)
error = judged / predicted - 1
columns = {f"{source}, least": 1000 * judged, "predicted": 1000 * predicted, "off, %": 100 * error}
pd.concat(columns, axis=1).rename_axis("bytes").rename_axis(["ms", ""], axis=1).round(1)

# %% slideshow={"slide_type": "slide"}
small, million = seconds[min(tensor_bytes)], 1000 * judged.loc[tensor_bytes[1]]
noise = small["ring again"] / small["ring"]
shown = interleaved.verdict(small["ring"] / small["tree"], noise)
faster = {"faster": "tree", "slower": "ring"}.get(shown, shown)
guess.compare(source, ring_ms=million["ring"], naive_ms=million["naive"], small=faster)
print(f"{min(tensor_bytes) / 1e3:g} kB, in the median round", end=" ")
print(f"(noise floor: a factor of {interleaved.band(noise)[1]:.2f}):")
for name in ("naive", "tree", "gloo"):
    ratios = small["ring"] / small[name]
    print(f"{name}, against the ring: {interleaved.verdict(ratios, noise)}", end=" ")
    print(f"({(ratios > 1).sum()} of {len(ratios)} rounds; in the median", end=" ")
    print(f"{ratios.median():.1f} times as fast).")
steps = {name: len(messages(name, 1, world_size)[1]) for name in algorithms}
a_step = {name: 1e6 * judged.loc[min(tensor_bytes), name] / n for name, n in steps.items()}
print("A step, least of the rounds:", end=" ")
print(", ".join(f"{name} {us:.0f} µs" for name, us in a_step.items()), end="; ")
print(f"α: {1e6 * fitted.alpha:.0f} µs.")
by_model, by_clock = (
    ", ".join(table.loc[min(tensor_bytes), list(algorithms)].sort_values().index)
    for table in (predicted, judged)
)
print(f"From the fastest to the slowest, by the model: {by_model}; measured: {by_clock}.")

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
named = {n: f"{n / 1e6:g} MB" if n >= 1e6 else f"{n / 1e3:g} kB" for n in judged.index}
again = {n: seconds[n, "ring again"] / seconds[n, "ring"] for n in judged.index}
floor = {n: interleaved.band(noise) for n, noise in again.items()}
for n, name in named.items():
    off, (low, high) = 100 * error.loc[n].abs(), floor[n]
    outside = off.index[~(1 + error.loc[n]).between(low, high)]
    print(
        f"{name}: {off.min():.0f} to {off.max():.0f} % off the prediction; beyond the noise",
        end=" ",
    )
    print(f"floor, {low:.2f} to {high:.2f}: {', '.join(outside) or 'none'}.", end=" ")
    typical = seconds[n, "ring"].median() / predicted.loc[n, "ring"] - 1
    print(f"(The least of the rounds; the ring's median: {typical:+.0%}.)")

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
worst = 100 * error.abs().max(axis=1)
title = "Off the prediction: " + ", ".join(f"{named[n]} up to {worst[n]:.0f} %" for n in named)
title += "" if source == "measured" else "\n(recorded elsewhere)"
y = f"{source} / predicted\n(mark: least of {len(seconds)} rounds,\nline: up to the most)"
most = seconds.max().unstack().loc[judged.index] / predicted
with plots.canvas(title, "tensor", y, size=(7.5, 3.5)) as axes:
    low, high = zip(*floor.values(), strict=True)
    spans = {"bottom": low, "width": 0.8, "color": "grey", "alpha": 0.25}
    spans["label"] = "noise floor\n(ring, A/A, of\nsingle rounds)"
    axes.bar(range(len(floor)), np.subtract(high, low), **spans)
    for place, name in enumerate(judged):
        colour, mark = look[name]
        beside = np.arange(len(judged)) + 0.12 * (place - 1.5)
        axes.plot(beside, 1 + error[name], mark, color=colour, label=name)
        axes.vlines(beside, 1 + error[name], most[name], color=colour)
    axes.axhline(1, color="grey", linewidth=1, zorder=0)
    axes.set(xlim=(-0.5, len(judged) - 0.5), ylim=(0, None))
    axes.set_xticks(range(len(judged)), named.values())
    axes.grid(axis="x", visible=False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(sizes=list(judged.index), alpha=fitted.alpha, beta=fitted.beta)
workshop.save_results(faster_when_small=faster, on_cards=on_cards)
workshop.save_results(predicted_off={name: error.loc[largest, name] for name in ("naive", "ring")})
workshop.save_results(errors={name: list(column) for name, column in error.items()})

# %% [markdown]
# 1 MB was the test. An error within the noise floor says nothing against the model (and the floor
# is generous: the least of the rounds scatters less than single ones). A larger one may be the
# model's or the fit's, whose own uncertainty the floor doesn't contain. From 1 MB on, the model's
# order is good enough to choose by. At 4 kB it is not: it puts naive last. (Both orders are printed
# above.)
#
# There nearly all is α, and the number of steps doesn't decide: naive and ring have six each. Their
# times are means of 20 calls in a row. When naive's rank 0 sends the sums back, the others already
# wait for them, so these three messages probably overlap; in a ring each step waits for the slowest
# of four processes, which share the cores. (Neither was tested. And the ring's message, 1 kB, is
# shorter than any that was fitted.)
#
# Other people's figures are often *algbw*, the tensor's bytes divided by the seconds, or *busbw*:
# that times 2 (N - 1) / N, which is what a ring's link carries
# ([nccl-tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md)).

# %%
algbw = largest / judged.loc[largest, "ring"] / 1e6  # the least of the rounds, as for β
busbw = 2 * (world_size - 1) / world_size * algbw
print(f"Ring, {largest / 1e6:g} MB: algbw {algbw:.1f} MB/s, busbw {busbw:.1f} MB/s, ", end="")
of = f"{rate / 1e6:g} MB/s, the link's limit" if rate else "the fitted bandwidth, 1 / β"
print(f"{100 * busbw * 1e6 / (rate or 1 / fitted.beta):.0f} % of {of}.")
print(f"1 / β, from single messages: {1 / fitted.beta / 1e6:.1f} MB/s.")

# %% [markdown]
# A part of what is missing is in 1 / β already, headers included, and six times α is a part of the
# rest.
#
# And on a real network? Take α = 50 µs and 10 Gbit/s, so β = 0.8 ns per byte: chosen, not measured.
# (In the columns of 4 kB trust only large differences in the number of steps: 16 of the tree's
# against the ring's 510.)


# %% tags=["deterministic"]
network = Link(alpha=50e-6, beta=8 / 10e9)
computed = pd.DataFrame()
for n_bytes, size in [(4e3, "4 kB"), (100e6, "100 MB")]:
    for n in (4, 256):
        cost = {name: estimate(name, n_bytes, n, network) for name in algorithms}
        computed[f"{size}, {n} ranks"] = 1000 * pd.Series(cost)
computed.rename_axis("milliseconds").round(1)

# %% [markdown]
# Computed: **100 MB on 256 ranks take 41 seconds the naive way, 0.18 s around a ring.** For 4 kB
# the ring loses to the tree: it pays α for 510 steps. Libraries therefore choose by size, and pack
# many small gradients into a few large **buckets**. (NVIDIA's NCCL passes pieces of the tensor
# through two trees at once, as a pipeline: [NCCL
# 2.4](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/), 2019.)
#
# Tree or ring isn't the only choice. **Recursive halving and doubling** takes 2 log₂ N steps *and*
# sends no more than a ring: by the model 160 ms for 100 MB on 256 ranks. MPI's libraries take it
# for long messages ([Thakur, Rabenseifner and Gropp,
# 2005](https://doi.org/10.1177/1094342005051521)).
#
# ## Half an all-reduce: ZeRO
#
# After its first half each rank has the sum of *its* chunk. If it updates only its N-th of the
# weights, and the all-gather passes on *weights* in place of gradients, the bytes sent are the
# same, but the optimizer's state (momentum: as many bytes as the weights) is needed only for that
# N-th. That is **ZeRO-1** ([Rajbhandari et al., 2019](https://arxiv.org/abs/1910.02054)). Exercise
# 4 builds it; FSDP goes on to gradients and weights (lesson 11).
#
# ## Train with our ring
#
# Train a small model in three ways: every rank with the whole batch, alone; with its part and our
# ring; with its part and **DDP** (`DistributedDataParallel`, lesson 01).


# %%
def train(how, steps=20):
    import torch
    import torch.distributed as dist
    from collectives import ring
    from torch import nn

    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # equal first weights and equal data on every rank
    model, inputs = nn.Linear(4, 1), torch.randn(8 * n, 4)
    part = inputs if how == "alone, whole batch" else inputs[rank::n]
    call = nn.parallel.DistributedDataParallel(model) if how == "DDP" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(call(part), part.sum(1, keepdim=True)).backward()
        if how == "our ring":
            for weight in model.parameters():
                ring.all_reduce(weight.grad)
                weight.grad /= n
        optimizer.step()
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


# %%
trained = {how: ranks.run(train, how) for how in ("alone, whole batch", "our ring", "DDP")}
one_process = trained["alone, whole batch"][0]
apart = {
    how: float(np.abs(np.stack(weights) - one_process).max()) for how, weights in trained.items()
}
names = ["weight 0", "weight 1", "weight 2", "weight 3", "bias"]
print(f"Largest difference from one process, in any weight on any rank: {max(apart.values()):.0e}")
pd.DataFrame({how: weights[-1] for how, weights in trained.items()}, index=names)

# %% jupyter={"source_hidden": true} tags=["results"]
assert max(apart.values()) < 1e-5, f"The ranks did not train one model: {apart}"
workshop.save_results(furthest_apart=apart)

# %% [markdown]
# The same model in all three, up to rounding. DDP does the work of the three lines around
# `ring.all_reduce` inside `backward()`; in larger models, while other gradients are still being
# computed (lesson 07). Call the *wrapped* model, as `call(part)` does. If you call the inner model,
# nothing is averaged, and there is no error.
#
# ## Who am I? Five variables
#
# `torchrun` starts the processes of one host, which it calls a `node`, and sets a dozen environment
# variables for each. Five are all that a script needs to meet the others and to choose a GPU. (Our
# training scripts also read `LOCAL_WORLD_SIZE`, the number of ranks on this host.)
# **Type this in a terminal**, in the kit's folder:
#
#     .venv/bin/torchrun --standalone --nproc-per-node 2 scripts/demos/show_ranks.py
#
# (`--standalone`: a single host, which chooses a port itself.) Two lines of JSON appear, each with
# `"sum": 3`. On two hosts you would type this on the first, and the same with `--node-rank 1` on
# the second:
#
#     torchrun --nnodes 2 --nproc-per-node 2 --node-rank 0 \
#         --master-addr FIRST_HOST --master-port 29500 scripts/demos/show_ranks.py

# %%
workshop.show_function("demos/show_ranks.py", "main")

# %% [markdown]
# The next cell runs the command for two hosts. (Both are this machine.)

# %%
with socket.create_server(("127.0.0.1", 0)) as server:
    free_port = server.getsockname()[1]  # a port that nobody uses
meet = ["--master-addr", "127.0.0.1", "--master-port", str(free_port)]
shape = ["--nnodes", "2", "--nproc-per-node", "2"]
script = workshop.DEMOS / "show_ranks.py"
nodes = [[*processes.TORCHRUN, *shape, "--node-rank", n, *meet, script] for n in (0, 1)]
started = pd.DataFrame(processes.run_together(*nodes)).drop(columns="event")
started.sort_values("RANK", ignore_index=True)

# %% jupyter={"source_hidden": true} tags=["results"]
assert set(started["sum"]) == {1 + 2 + 3 + 4}, "The four ranks did not all meet."
workshop.save_results(torchrun=started.to_dict("records"))

# %% [markdown]
# - `WORLD_SIZE` is the number of **processes**, not of hosts. `RANK` is the number of a *process*
#   among all of them, from 0; `LOCAL_RANK` its number on its own host: use it to choose a GPU.
# - `MASTER_ADDR` and `MASTER_PORT` say where the ranks meet: a port on rank 0's host.
# - `sum` is 1 + 2 + 3 + 4 on all, so they did meet.
#
# On SageMaker `distribution={"torch_distributed": {"enabled": True}}` runs `torchrun` on every
# instance; `MASTER_ADDR` is then `algo-1`, the first instance.
#
# The **backend** says how ranks communicate: `init_process_group("gloo")` for CPUs, `"nccl"` for
# NVIDIA GPUs. (`"mpi"` is missing from the torch that pip installs: the job's mpirun only started
# its ranks.)

# %% jupyter={"source_hidden": true} tags=["results"]
backends = ranks.run("collectives.tour:backends")[0]
assert backends["gloo"], "torch was built without gloo: install the version of tools/requirements/."
workshop.save_results(backends=backends)

# %% [markdown]
# ## Share the data
#
# `DistributedSampler` shuffles in the same way on all ranks and deals the examples out, like cards.
# Two lines are often forgotten, without an error: the sampler must be **given to the loader**, and
# **`set_epoch`** must be called before every epoch. Take 12 examples and batches of one; the first
# question counts the reads of all ranks together.


# %%
guess = workshop.guess(
    reads=f"12 examples, {world_size} ranks, sampler not given: how many reads in one epoch?",
    seen="Sampler given, no set_epoch: how many different examples does rank 0 see in 5 epochs?",
)


def read(give_sampler, tell_epoch, examples=12, epochs=5):
    from torch.utils.data import DataLoader, DistributedSampler

    sampler = DistributedSampler(range(examples), seed=0)
    loader = DataLoader(range(examples), batch_size=1, sampler=sampler if give_sampler else None)
    by_epoch = []
    for epoch in range(epochs):
        if tell_epoch:
            sampler.set_epoch(epoch)
        by_epoch.append([int(example) for example in loader])
    return by_epoch


# %% tags=["deterministic"]
not_given = ranks.run(read, False, False)
no_set_epoch, right = ranks.run(read, True, False), ranks.run(read, True, True)
cases = {"not given": not_given, "given, no set_epoch": no_set_epoch, "given, set_epoch": right}
shown = {(case, f"epoch {e}"): [str(r[e]) for r in cases[case]] for case in cases for e in (0, 1)}
pd.DataFrame(shown, index=[f"rank {r}" for r in range(world_size)]).T.rename_axis(["sampler", ""])

# %%
reads = {case: sum(len(rank[0]) for rank in by_rank) for case, by_rank in cases.items()}
seen = {case: np.unique(by_rank[0]).size for case, by_rank in cases.items()}
guess.compare(reads=reads["not given"], seen=seen["given, no set_epoch"])
print(f"With set_epoch rank 0 saw {seen['given, set_epoch']} of 12 examples in 5 epochs.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert reads["not given"] == 12 * world_size, "Without the sampler every rank reads everything."
assert seen["given, no set_epoch"] < seen["given, set_epoch"], "set_epoch must deal anew."
workshop.save_results(reads=reads, seen=seen)

# %% [markdown]
# - *Not given*: every rank reads everything, and you pay for N ranks to do the work of one.
# - *No `set_epoch`*: every epoch has the same order, so each rank sees the same examples in the
#   same batches, never another rank's.
#
# If the examples can't be divided evenly, the sampler repeats a few; with `drop_last` it leaves a
# few out.
#
# <details><summary>Coming from another tutorial?</summary>
#
# `DataLoader` refuses a sampler together with `shuffle=True` (ValueError), because the sampler
# shuffles already. A loader for both cases takes `shuffle=(sampler is None)`.
#
# `torch.nn.DataParallel` is not DDP and no parameter server: it is one process with a thread for
# each GPU of one machine, which copies the weights in every step. PyTorch recommends DDP instead
# ([PyTorch](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html), read on
# 2026-11-25).
#
# </details>
#
# ## Exercises
#
# In [exercises/02_collectives.ipynb](exercises/02_collectives.ipynb):
#
# 1. (8 minutes) Which chunk does a rank send, and which does it receive, in step s?
# 2. (12 minutes) An all-gather from send and receive, on real ranks.
# 3. (10 minutes) Your α and β, a model and its step: which algorithm, and how many ranks?
# 4. (15 minutes) ZeRO-1: the same weights as DDP, with one N-th of the momentum.
#
# ## Check yourself

# %% question=1 slideshow={"slide_type": "slide"}
workshop.quiz("02")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A ring all-reduce is a reduce-scatter and an all-gather: 2 (N - 1) steps, and less than twice
#   the tensor into each rank and out of it. Every rank must call it.
# - A message of n bytes takes α + β n seconds. A large tensor needs its bytes spread over all
#   links, as in a ring. By the model a small one needs few steps, as in a tree; on cores that ranks
#   share, who waits for whom counted more.
# - `WORLD_SIZE` counts processes. Give the sampler to the loader and call `set_epoch`.

# %% [markdown]
# ## Clean up

# %%
ranks.stop()

# %% [markdown]
# The ranks have ended. The job's instances ended when the job did.
#
# ## Next
#
# [Lesson 03](03_parameter_servers.ipynb): the other way to share what was learned, through a
# server.

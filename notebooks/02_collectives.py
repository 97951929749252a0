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
# # 02 · Collectives
#
# **After this lesson you can**
#
# - build an all-reduce around a ring, from send and receive alone;
# - say what it costs: steps, bytes through each rank, seconds from two measured numbers;
# - start ranks with `torchrun`, and say what each of its variables means;
# - share a data set among ranks so that every epoch is a new one;
# - tell `DataParallel` from `DistributedDataParallel`.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb): why ranks average their gradients.
#
# **Time:** 45 minutes.
#
# **Where it runs:** in processes of the machine that this notebook runs on, with both targets.
#
# **Cost on AWS:** nothing but the machine of your notebook: no job is started.

# %% [markdown]
# ## Set up
#
# - `target`, `seat`: as in every lesson. Nothing here depends on them.
# - `world_size`: how many ranks. They may outnumber the cores; then they take turns.
# - `largest_bytes`: the largest tensor that is measured.
# - `blocks`: how often each measurement is repeated.
# - `epochs`, `global_batch_size`: of the training runs at the end.

# %% tags=["parameters"]
target = "local"
seat = "me"
world_size = 4
largest_bytes = 8_388_608
blocks = 7
epochs = 5
global_batch_size = 256

# %%
import math
import os
import socket
import sys

import numpy as np
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.launch import processes

print(f"{world_size} ranks on {os.cpu_count()} cores.")

# %% [markdown]
# ## Send and receive
#
# A **rank** is one process of the job, and also its number. Ranks share no memory: what one knows,
# another learns only from a message. Everything in this lesson is built from two calls:
# `send(tensor, to)` and `recv(tensor, from)`.
#
# `start_ranks` starts real processes and lets them meet. `run` makes each of them call a
# function, at the same time, and returns their results in a list.


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

# %% [markdown]
# One function, two roles: every rank runs the same code, and `get_rank()` tells it which part to
# do. The receiver provides the memory: a tensor of the right size and type, which is overwritten.
#
# Now both ranks send first, and then receive. What will happen?

# %%
outcomes = ["both notes arrive", "one rank gets an error", "both wait forever"]
guess = workshop.guess(outcome=("Both send first, then receive:", outcomes))


# %%
def both_send_first():
    import torch
    import torch.distributed as dist

    other, note = 1 - dist.get_rank(), torch.zeros(1)
    dist.send(torch.ones(1), other)
    dist.recv(note, other)


try:
    pair.run(both_send_first, timeout=3)  # seconds; then the error says where each rank is
    outcome = "both notes arrive"
except workshop.RankFailed as error:
    outcome = "both wait forever" if "had not returned" in str(error) else "one rank gets an error"
    where = (":", "in send", "in both_send_first")  # of the error, print only these lines
    print(*[line for line in str(error).splitlines() if line.endswith(where)][1:], sep="\n")
pair.stop()
guess.compare(outcome=outcome)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(notes=notes, both_send_first=outcome)

# %% [markdown]
# After 3 seconds we asked each rank where it was: both are in `send`. With gloo, the library that
# carries the messages here, it returns only when the other side receives, and neither side gets
# that far. This is a **deadlock**: no error, no progress, no end. It is the classic mistake with
# processes that send messages. Other libraries show it later: MPI may buffer a small message, so
# that the mistake sleeps until the tensor grows; NCCL's `send` may return to Python at once, and
# the GPU waits. Rely on neither.
#
# The remedy is `isend` or `irecv`, which only *begin* to send or to receive. The ring below begins
# all its receives first.
#
# ## Seven ways to share
#
# Some patterns of messages come up again and again. Each has a name and a call that **every
# rank must make**: they are *collective*. The function below makes one of each. Rank 0 starts with
# 10, 11, 12, 13, rank 1 with 20, 21, 22, 23, and so on. For gather and all-gather each rank gives
# only its first number, so that the result stays short.
#
# Then real ranks run it. `run` also takes a function's name: `"collectives.tour:one_of_each"` is
# `one_of_each` in `scripts/demos/collectives/tour.py`.

# %%
workshop.show_function("demos/collectives/tour.py", "one_of_each")

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
# Read it row by row.
#
# - **Broadcast**: one rank's numbers go to all.
# - **Scatter**: rank 0 gives each rank one piece. **Gather** is the reverse: rank 0 gets a piece
#   from each.
# - **Reduce** means: combine element by element, here by adding. Only rank 0 has the sum. The
#   others hold intermediate results, which you must not use.
# - **All-reduce**: everybody has the sum. This is the one that training needs.
# - **Reduce-scatter**: rank r has part r of the sum, and nothing else.
# - **All-gather**: everybody has everybody's part.
#
# Remember the last two. Run a reduce-scatter, then an all-gather of the parts: every rank then has
# the whole sum. That is an all-reduce.
#
# ## All-reduce the obvious way
#
# Everybody sends to rank 0, which adds and sends the sum back. `send` and `receive` below call
# torch's, and also count the bytes. `flat` views the tensor as a vector, without a copy.

# %%
workshop.show_function("demos/collectives/naive.py", "all_reduce")

# %% [markdown]
# Two guesses about bytes. The next table answers the first; the second has to wait for the ring.

# %%
guess = workshop.guess(
    naive=f"{world_size} ranks, 1 MB on each: how many MB pass through rank 0, in and out?",
    ring="With a ring, which comes next: how many MB pass through the busiest rank?",
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

# %% [markdown]
# Every rank that joins adds 2 MB that must pass through rank 0, one message after the other, while
# the others wait. So more ranks make each all-reduce *slower*. A parameter server on one machine
# has the same problem ([lesson 03](03_parameter_servers.ipynb)).
#
# ## The ring
#
# Two ideas take the load off rank 0. First, cut the tensor into as many **chunks** as there are
# ranks, and let a different rank sum up each chunk. Second, let every rank send only to the next
# rank, and receive only from the one before. The connection between two ranks is a **link**. In a
# ring all links work all the time.
#
# The first half is a reduce-scatter. `coming` lists the chunks in the order in which they arrive.
# Two arguments are not needed here: `order` rearranges the ranks, and `on_step` is
# called after each step (the picture below uses it).

# %%
workshop.show_function("demos/collectives/ring.py", "reduce_scatter")

# %% [markdown]
# All receives begin before the first send, so nobody waits for a rank that waits too: no deadlock.
# In its first step a rank sends a chunk of its own; in each later step, the chunk that it has just
# added to. The second half, the all-gather, passes on the finished chunks in the same way, without
# the addition.
#
# Watch it. Each rank puts a number of its own into all its chunks: rank 0 puts in 0001, rank 1
# 0010, rank 2 0100. So `0110` is the sum of ranks 1 and 2. An arrow and a black frame mark what
# arrived in a step. The darker the blue, the more ranks have contributed; bold and green is the
# complete sum. (The arrows into rank 0 come from the last rank: the ring closes.)


# %% tags=["readme"]
recorded = ranks.run("collectives.tour:watched_ring")
plots.ring_steps(recorded)

# %% [markdown]
# The same run, one step at a time, with a slider. It moves with the mouse or the arrow keys.

# %%
plots.interactive.ring(recorded)

# %% [markdown]
# Follow the black frame in one column, say the first, from step to step. It moves down one rank in
# each step (and from the last rank to rank 0). In the first half of them one more digit becomes 1
# each time. After the reduce-scatter there is one complete sum in each row; the all-gather copies
# it to all others.

# %% jupyter={"source_hidden": true} tags=["results"]
halfway = [int(states[world_size - 1][rank]) for rank, states in enumerate(recorded)]
complete = sum(10**rank for rank in range(world_size))
assert halfway == [complete] * world_size, "After the reduce-scatter chunk r belongs to rank r."
assert all((states[-1] == complete).all() for states in recorded), (
    "A chunk is not complete at the end."
)
workshop.save_results(steps=len(recorded[0]) - 1, halfway=halfway)

# %% [markdown]
# (There are other ways to all-reduce. You may read of reduce-scatter inside each machine,
# all-reduce between machines, and all-gather inside each machine. That is the **hierarchical**
# kind; lesson 07 measures it.)
#
# ## Is it right, and what does it move?
#
# A ring that skips a step gives wrong numbers, not an error. So compare with torch's own
# all-reduce, at lengths that are not multiples of the number of ranks.
#
# A third algorithm joins: the **tree**, in `tree.py`. Half of the ranks send their tensor to a
# partner, which adds it. Then half of the partners do the same, until rank 0 has the sum. It comes
# back the same way. Messages that travel at the same time are a **step**: with 4 ranks, the tree
# has 2 steps up and 2 down.

# %% tags=["deterministic"]
lengths, check = [1, world_size - 1, world_size + 1, 1001], "collectives.timing:different_elements"
algorithms = ("naive", "tree", "ring")
differing = pd.DataFrame(
    {name: [sum(ranks.run(check, name, n)) for n in lengths] for name in algorithms},
    index=pd.Index(lengths, name="length of the tensor"),
)
differing.rename_axis(columns="wrong elements")

# %% [markdown]
# A zero means: the same integers as torch, on every rank.
#
# Now the traffic, counted on the real ranks, beside formulas. Two things describe an algorithm: how
# large a message is, and how many messages travel in each step. For n bytes on 4 ranks:
#
# - naive: messages of n bytes, one in each of 6 steps, `[1, 1, 1, 1, 1, 1]`;
# - tree: messages of n bytes, `[2, 1, 1, 2]`;
# - ring: messages of n / 4 bytes, `[4, 4, 4, 4, 4, 4]`.
#
# `messages` below computes this for any number of ranks. In the naive algorithm and in the tree
# rank 0 is the busiest: it takes part in every step.


# %%
def messages(algorithm, n_bytes, n):
    """Bytes of one message, and how many travel at once in each step, for n ranks."""
    levels = [2**level for level in range(math.ceil(math.log2(n)))]
    pairs = [len(range(distance, n, 2 * distance)) for distance in levels]  # that add up, by level
    return {
        "naive": (n_bytes, [1] * 2 * (n - 1)),
        "tree": (n_bytes, pairs + pairs[::-1]),
        "ring": (n_bytes / n, [n] * 2 * (n - 1)),
    }[algorithm]


def busiest_rank(algorithm, n_bytes, n):
    """Bytes in and out of the busiest rank. In a ring a rank sends and receives in each step."""
    size, steps = messages(algorithm, n_bytes, n)
    return size * len(steps) * (2 if algorithm == "ring" else 1)


# %% tags=["deterministic"]
traffic = {}
for name in algorithms:
    passed = megabytes(name, world_size)
    traffic[name] = {"steps": len(messages(name, 1, world_size)[1])}
    traffic[name] |= {"all ranks, MB": f"{sum(passed):g}", "busiest rank, MB": max(passed)}
    traffic[name]["by formula, MB"] = busiest_rank(name, 1, world_size)
pd.DataFrame.from_dict(traffic, orient="index")

# %%
busiest = {name: row["busiest rank, MB"] for name, row in traffic.items()}
guess.compare(naive=busiest["naive"], ring=busiest["ring"])

# %% jupyter={"source_hidden": true} tags=["results"]
assert (differing == 0).all(axis=None), "An algorithm does not give what torch's all-reduce gives."
for name, row in traffic.items():
    apart = abs(row["busiest rank, MB"] - row["by formula, MB"])
    assert apart < 0.001, (
        f"{name}: a rank passed a different number of bytes than the formula says."
    )
workshop.save_results(different_elements=int(differing.sum(axis=None)), busiest_rank_mb=busiest)

# %% [markdown]
# All three move *the same number of bytes in all*. (The table counts each byte twice: where it is
# sent and where it is received.) The ring only spreads them evenly. With N ranks, each sends
# 2 · (N - 1) / N times the tensor, and receives as much. That stays below twice the tensor in each
# direction, however many ranks there are.
#
# The picture shows the busiest rank. Its marks were counted here; its lines are the formulas, for
# more ranks than run here.

# %%
look = {"naive": ("#D55E00", "s"), "tree": ("#E69F00", "^"), "ring": ("#0072B2", "o")}
look["gloo"] = ("#009E73", "x")  # colour and mark, in this and the next picture
counts = range(2, 17)
title = "The busiest rank: naive grows with the ranks, a ring stays below 4 MB"
with plots.canvas(title, "ranks", "MB in and out, for a tensor of 1 MB") as axes:
    for name, style in zip(algorithms, ("-", "--", ":"), strict=True):
        colour, mark = look[name]
        formula = [busiest_rank(name, 1, n) for n in counts]
        axes.plot(counts, formula, style, color=colour, label=f"{name}, formula")
        axes.plot(world_size, busiest[name], mark, color=colour, label=f"{name}, counted")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# ## Two numbers for a link
#
# A message of n bytes takes about **α + β · n** seconds. α (alpha) is the **latency**, the delay
# that even a tiny message has. β (beta) is the time for each further byte: 1 / β is the
# **bandwidth**. Time a tiny message and a large one, and you have both.
#
# The ranks do this in two situations: with one message on its way, and with every rank sending at
# once. A measurement ends when the slowest rank is done. It is repeated, and the *least* time
# counts, because other programs on the machine can only add time.


# %%
def all_seconds(names, n_bytes):
    """Seconds of one call of each, timed in turn: a row for each of `blocks` repeats."""
    calls = max(1, min(10, 1_000_000 // n_bytes))  # in one repeat: a single call is too short
    timer = "collectives.timing:interleaved_seconds"
    by_rank = ranks.run(timer, list(names), n_bytes, calls, blocks, timeout=300)
    slowest = {name: np.max([seconds[name] for seconds in by_rank], axis=0) for name in names}
    return pd.DataFrame(slowest)


def least_seconds(names, n_bytes):
    """The least of the repeats."""
    return all_seconds(names, n_bytes).min()


kinds, tiny_bytes = ["one way", "all at once"], 8
tiny, large = (least_seconds(kinds, n_bytes) for n_bytes in (tiny_bytes, largest_bytes))
while (tiny >= large).any():  # a busy machine: look for a quiet moment
    tiny = np.minimum(tiny, least_seconds(kinds, tiny_bytes))
beta = (large - tiny) / (largest_bytes - tiny_bytes)
alpha = (tiny - beta * tiny_bytes).clip(lower=0)
table = pd.DataFrame(
    {"α, µs": 1e6 * alpha, "β, ns per byte": 1e9 * beta, "1 / β, GB/s": 1e-9 / beta}
)
table.set_axis(["one message", f"{world_size} messages at once"]).round(2)

# %% [markdown]
# Where every rank has a link of its own, as on instances in a cluster, the two rows should be
# nearly the same. Here all ranks share this machine's cores, and a message between processes is
# *copied by a core*. So messages that travel at once slow each other down.
#
# ## Predict, then measure
#
# Rounds follow each other, and each costs α + β times the bytes of one message. So, for N ranks,
# n bytes, and a link for each rank (the logarithm is rounded up):
#
# | | steps | bytes of a message | seconds |
# |---|---|---|---|
# | naive | 2 (N - 1) | n | 2 (N - 1) (α + β n) |
# | tree | 2 log2 N | n | 2 log2 N (α + β n) |
# | ring | 2 (N - 1) | n / N | 2 (N - 1) (α + β n / N) |
#
# (NCCL, NVIDIA's library for GPUs, improves on this plain tree: it cuts the tensor into pieces and
# uses two trees at once: [NCCL
# 2.4](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/), 2019.)
#
# What does that mean on a network? Take α = 50 µs, and a link of 10 Gbit/s, so β = 0.8 ns per byte.
# These two numbers are chosen, and the next table is *computed*, not measured.


# %% tags=["deterministic"]
def estimate(algorithm, n_bytes, n, link):
    """Seconds of an all-reduce. link(bytes, at_once): of so many messages at the same time."""
    size, steps = messages(algorithm, n_bytes, n)
    return sum(link(size, at_once) for at_once in steps)


def network(n_bytes, at_once):
    """A link for each rank: messages don't slow each other down."""
    return 50e-6 + 8 / 10e9 * n_bytes


computed = pd.DataFrame()
for n_bytes, size in [(4e3, "4 kB"), (100e6, "100 MB")]:
    for n in (4, 256):
        cost = {name: estimate(name, n_bytes, n, network) for name in algorithms}
        computed[f"{size}, {n} ranks"] = 1000 * pd.Series(cost)
computed.rename_axis("milliseconds").round(1)

# %% [markdown]
# For 100 MB the ring wins. From 4 ranks to 256 its time grows by about half; the tree's grows
# fourfold, and the naive way's 85-fold. For 4 kB on 256 ranks the ring loses to the tree: it pays α
# for many steps. Libraries therefore choose by size, and pack many small gradients into a few
# large **buckets** before they reduce them.
#
# Now this machine. You have its α and β for one message, and for all ranks sending at once. A step
# of the tree is between the two: there we take a value on the straight line between them. Then the
# ranks run all three, and torch's own all-reduce. That one is called **gloo**, after the library
# that torch uses on CPUs; we don't predict it. Will the ring win here?


# %%
guess = workshop.guess(
    gain="The largest tensor, here: what is the speed-up of the ring over the naive way?"
)


# %%
def on_cores(n_bytes, at_once):
    """On this machine messages slow each other down: they share its cores."""
    alone, all_at_once = alpha + beta * n_bytes
    return alone + (at_once - 1) / (world_size - 1) * (all_at_once - alone)


sizes = [largest_bytes // 8**power for power in (4, 3, 2, 1, 0)]
repeated = {n: all_seconds([*algorithms, "gloo"], n) for n in sizes}
measured = pd.DataFrame({n: seconds.min() for n, seconds in repeated.items()}).T
predicted = pd.DataFrame(
    {a: [estimate(a, n, world_size, on_cores) for n in sizes] for a in algorithms}
)
predicted.index = measured.index
by_size = pd.concat({"measured": measured, "predicted": predicted}, axis=1).rename_axis("bytes")
(1000 * by_size).rename_axis(columns=["milliseconds", ""]).round(2)

# %% [markdown]
# The same numbers as a picture; both axes are logarithmic. A mark is the least time of the repeats,
# as in the table, and the bar above it ends at their median. The lines are the predictions. Marks
# of one size are shifted a little, so that they don't cover each other.

# %% jupyter={"source_hidden": true} tags=["figure"]
share = measured["ring"].iloc[-1] / measured["naive"].iloc[-1]
title = f"Least times: for the largest tensor the ring takes {share:.0%} of the naive way's"
axes_names = ("size of the tensor, kB (a mark is measured, a line predicted)", "milliseconds")
with plots.canvas(title, *axes_names, size=(8.5, 4.6)) as axes:
    for shift, name in enumerate(measured):
        colour, mark = look[name]
        at = [size * 1.08 ** (shift - 1.5) for size in sizes]  # beside each other
        upper = [1000 * (repeated[n][name].median() - measured[name][n]) for n in sizes]
        style = {"color": colour, "markersize": 7, "capsize": 3, "label": f"{name}, measured"}
        axes.errorbar(at, 1000 * measured[name], yerr=[[0] * len(sizes), upper], fmt=mark, **style)
        if name in predicted:
            line = dict(zip(algorithms, ("-", "--", ":"), strict=True))[name]
            axes.plot(sizes, 1000 * predicted[name], line, color=colour, label=f"{name}, model")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(sizes, [f"{size / 1e3:,.0f}" for size in sizes])
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% [markdown]
# Did the ring win, and gain what you guessed? Three lines follow the comparison: the gain in each
# repeat, the gain that the model predicts if each rank had a link of its own, and how far off the
# predictions were.

# %%
last, off = measured.iloc[-1], (measured / predicted).stack().dropna()
alone = [
    estimate(name, sizes[-1], world_size, lambda n, _: on_cores(n, 1)) for name in ("naive", "ring")
]
gains = repeated[sizes[-1]]["naive"] / repeated[sizes[-1]]["ring"]
guess.compare(gain=last["naive"] / last["ring"])
print(f"The ring was the faster one in {(gains > 1).sum()} of {len(gains)} repeats: ", end="")
print(f"its speed-up over the naive way was {gains.min():.2f} to {gains.max():.2f}.")
print(f"The model for ranks with a link each says {alone[0] / alone[1]:.1f} times.")
print(f"Measured / predicted: {off.min():.1f} to {off.max():.1f}, median {off.median():.1f}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert off.median() < 20, "The machine was too busy: run again from `least_seconds` on."
workshop.save_results(sizes=sizes, gain=last["naive"] / last["ring"], off=off.median())
constants = {"alpha": alpha["one way"], "beta": beta["one way"], "busy_beta": beta["all at once"]}
workshop.save_results(**constants)

# %% [markdown]
# All three algorithms move the same bytes in all. The ring gains because *different links work at
# the same time*. Where a few cores carry every message, there is less to gain. The model knows that
# only because we measured what happens when all send at once. It leaves out the additions,
# allocating memory, and the time a rank waits for a free core. So don't expect it to be right to a
# few per cent; the last line says by which factor it was off.
#
# gloo's all-reduce is a ring too, in C++. It cuts the chunks further, and adds one piece while the
# next is on its way. In your own scripts call the library's. Lesson 06 repeats this measurement
# between instances, over a slower link.
#
# ## Train with your ring
#
# What does data-parallel training send? **Gradients.** Every rank starts with the same weights,
# gets the same mean gradient and takes the same step. So after the start no weights have to be
# sent.
#
# Train a small model in three ways and compare: every rank alone with the whole batch; each rank
# with its part of the batch and your ring; and with torch's `DistributedDataParallel` (**DDP**),
# which averages the gradients for you.


# %%
def train(how, steps=20):
    import torch
    import torch.distributed as dist
    from collectives import ring
    from torch import nn

    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # equal first weights and equal data on every rank
    model, inputs = nn.Linear(4, 1), torch.randn(8 * n, 4)
    share = inputs if how == "alone, whole batch" else inputs[rank::n]
    call = nn.parallel.DistributedDataParallel(model) if how == "DDP" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(call(share), share.sum(1, keepdim=True)).backward()
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
# The same model, whether one process took the whole batch or four took a quarter each.
#
# DDP does the work of the three lines around `ring.all_reduce`. It does it inside `backward()`,
# while other gradients are still being computed (lesson 07 draws that). Call the *wrapped* model,
# as `call(mine)` does here. If you call the model inside it, nothing is averaged, and there is no
# error.
#
# ## Who am I? Five variables
#
# Processes that were started separately must find each other. `torchrun` starts the processes of
# one host, which it calls a `node`, and sets a dozen environment variables for each. Five of them
# are all that a script needs to meet the others and to choose a GPU. On two hosts with two
# processes each you would type this on the first, and the same with `--node-rank 1` on the second:
#
#     torchrun --nnodes 2 --nproc-per-node 2 --node-rank 0 \
#         --master-addr FIRST_HOST --master-port 29500 show_ranks.py
#
# With all ranks on one machine `torchrun --standalone --nproc-per-node 2 show_ranks.py` will do.
# This is the script. It prints the five variables, and the `sum` of an all-reduce in which each
# rank gives its number plus one.

# %%
workshop.show_function("demos/show_ranks.py", "main")

# %% [markdown]
# The next cell runs that command twice, as on two hosts. (Here both are this machine.)

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
# - `WORLD_SIZE` is the number of **processes**, not of hosts: 4. `RANK` is the number of a
#   *process* among all of them, from 0.
# - `LOCAL_RANK` is its number on its own host: use it to choose a GPU.
# - `MASTER_ADDR` and `MASTER_PORT` say where the ranks meet: a port on rank 0's host. They must be
#   the same on *every* host.
# - `sum` is 1 + 2 + 3 + 4. It is 10 on all, so they did meet.
#
# On SageMaker `distribution={"torch_distributed": {"enabled": True}}` runs `torchrun` on every
# instance; `MASTER_ADDR` is then `algo-1`, the name of the first instance.
#
# The variables say who takes part. The **backend** says how they communicate:
# `init_process_group("gloo")` for CPUs, `"nccl"` for NVIDIA GPUs. A third, `"mpi"`, is missing from
# the torch that pip installs, and `"nccl"` from builds for CPUs. This torch has:

# %%
backends = ranks.run("collectives.tour:backends")[0]
pd.DataFrame(backends, index=["in this torch"])

# %% jupyter={"source_hidden": true} tags=["results"]
assert backends["gloo"], "torch was built without gloo: install the version of tools/requirements/."
workshop.save_results(backends=backends)

# %% [markdown]
# ## Share the data
#
# `DistributedSampler` shuffles in the same way on all ranks and deals the examples out, like cards.
# Two lines are often forgotten: the sampler must be **given to the loader**, and **`set_epoch`**
# must be called before every epoch. Leaving one out raises no error.
#
# What happens if you do? Take a data set of 12 examples and batches of one. The first question
# counts the reads of all ranks together.


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

# %% jupyter={"source_hidden": true} tags=["results"]
assert reads["not given"] == 12 * world_size, "Without the sampler every rank reads everything."
assert seen["given, no set_epoch"] < seen["given, set_epoch"], "set_epoch must deal anew."
workshop.save_results(reads=reads, seen=seen)

# %% [markdown]
# - *Not given*: every rank reads everything. If they also shuffle alike, all compute the same
#   gradient, and you pay for N ranks to do the work of one.
# - *No `set_epoch`*: every epoch has the order of the first. A rank never sees another rank's
#   examples, and each batch always contains the same ones.
# - *`shuffle`*: the sampler shuffles already, and `DataLoader` refuses a sampler together with
#   `shuffle=True` (ValueError). A loader for both cases takes `shuffle=(sampler is None)`, with the
#   name that your sampler really has.
#
# ## DataParallel is not DDP
#
# `torch.nn.DataParallel` (DP) has a similar name, but it is **one process with threads, on one
# machine**. In every step it scatters the batch over the GPUs, copies the weights to each, runs a
# thread for each GPU, and gathers the outputs on the first GPU. It takes one line,
# `model = nn.DataParallel(model)`, and PyTorch itself recommends DDP instead, on one machine too.
# Without GPUs it does none of this: it simply calls your model. To have something to measure on the
# CPU, here are DP's steps with threads:

# %%
workshop.show_function("demos/train_torch_threads.py", "ThreadParallel")

# %% [markdown]
# We run three scripts: the plain one, DP's steps in two threads, and DDP in two processes. Each
# rank or thread computes on one core. All run twice, the second time in reverse order, so that
# a machine that slows down meanwhile slows all of them. The table compares each script with the
# plain one, epoch by epoch: the median, lowest and highest speed-up. Its last column is a hash of
# the weights: equal weights have equal hashes. "different hashes" counts them over the processes: 1
# means that all hold the same weights.

# %%
guess = workshop.guess(
    ddp="DDP, 2 processes: what is the speed-up over one process?",
    dp="DataParallel's steps in two threads: what is the speed-up over one process?",
)

# %%
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
python, two = [sys.executable], ["--standalone", "--nproc-per-node", "2"]
scripts = {
    "one process": [*python, workshop.TRAIN / "train_torch.py"],
    "DataParallel, 2 threads": [*python, workshop.DEMOS / "train_torch_threads.py"],
    "DDP, 2 processes": [*processes.TORCHRUN, *two, workshop.TRAIN / "train_torch_ddp.py"],
}
options = ["--training", digits / "training", "--test", digits / "test", "--epochs", epochs]
options += ["--global-batch-size", global_batch_size, "--threads-per-rank", 1]
options += ["--save-to", workshop.BUILD / "model"]
rows = []
for turn, name in [*enumerate(scripts), *enumerate(reversed(scripts), len(scripts))]:
    printed = processes.run_together([*scripts[name], *options], timeout=300)
    hashes = [event["weights_sha256"] for event in printed if event["event"] == "weights"]
    about = len(hashes), len(set(hashes)), hashes[0][:12] + "…"
    epoch = [event["samples_per_second"] for event in printed if event["event"] == "epoch"]
    first = 100 * (turn // len(scripts))  # 0 in the first round, 100 in the second
    rows += [(name, first + number, speed, *about) for number, speed in enumerate(epoch)]
about = ["processes", "different hashes", "SHA-256 of the weights"]
runs = pd.DataFrame(rows, columns=["script", "epoch", "images/s", *about])

# %%
speeds = runs.pivot(index="epoch", columns="script", values="images/s")[list(scripts)]
times = speeds.div(speeds["one process"], axis=0)
table = times.agg(["median", "min", "max"]).T.round(2)
table = table.set_axis(["speed-up: median", "lowest", "highest"], axis=1)
table.insert(0, "images/s", speeds.median().round().astype(int))
table = table.join(runs.groupby("script")[about].first())
table

# %%
ddp, dp = times["DDP, 2 processes"], times["DataParallel, 2 threads"]
guess.compare(ddp=ddp.median(), dp=dp.median())
print(f"DDP was faster than one process in {(ddp > 1).sum()} of {len(ddp)} pairs of epochs.")
print(f"Each rank of DDP took {global_batch_size // 2} images in a step, which lasted ", end="")
print(f"{1000 * global_batch_size / speeds['DDP, 2 processes'].median():.1f} ms.")

# %% [markdown]
# Look at the weights first. Both ways add up in another order than the plain script, so their last
# bits differ from its; the two processes of DDP agree with each other.
#
# Then the speeds. A script that wins in nearly every pair of epochs is the faster one here. If it
# wins about as often as it loses, this run doesn't say which is faster.
#
# The threads share only the forward pass. On the CPU `backward()` runs in one thread, and Python's
# own code runs in one thread at a time. DDP's ranks are whole processes that share nothing but
# gradients. But a step of this small model takes only milliseconds, and part of it doesn't shrink
# with the batch: starting each operation, updating all weights (lesson 01 measured it). Every rank
# pays that part in full. If DDP gains little here, or loses, that is why; lesson 01's steps have
# more work.

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(table["processes"]) == [1, 1, 2], "DP is one process; DDP was to have two."
assert (table["different hashes"] == 1).all(), "The ranks of DDP ended with different weights."
workshop.save_results(images_per_second=speeds.median().to_dict())
workshop.save_results(hashes=table[about[2]].to_dict())

# %% [markdown]
# ## Exercises
#
# In [exercises/02_collectives.ipynb](exercises/02_collectives.ipynb):
#
# 1. (8 minutes) Which chunk does a rank send, and which does it receive, in step s?
# 2. (10 minutes) An all-gather from send and receive, on real ranks.
# 3. (5 minutes) The seconds of a ring all-reduce from α and β.
#
# ## Check yourself

# %%
workshop.quiz("02")

# %% [markdown]
# ## Summary
#
# - Every rank must make a collective call, or the others wait forever.
# - A ring all-reduce is a reduce-scatter and an all-gather: 2 (N - 1) steps, and less than twice
#   the tensor into each rank and out of it, however many ranks there are.
# - A message of n bytes takes α + β n seconds. A large tensor needs its bytes spread over all
#   links, as in a ring, which costs more messages; a small tensor needs few steps, as in a tree.
# - The ring gains where links work at the same time, and less where all ranks share a few cores.
# - All-reduce sends gradients. `WORLD_SIZE` counts processes. Give the sampler to the loader and
#   call `set_epoch`. DP is one process, DDP is many.
#
# ## Clean up

# %%
ranks.stop()

# %% [markdown]
# The ranks have ended; nothing was sent to AWS.
#
# ## Next
#
# [Lesson 03](03_parameter_servers.ipynb): the other way to share what was learned, through a
# server.

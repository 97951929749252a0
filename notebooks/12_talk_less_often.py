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
# # 12 · Talk less often
#
# **After this lesson you can**
#
# - send a tenth or a fiftieth of DDP's bytes, in four ways: gradient accumulation, local SGD,
#   DiLoCo, top-k with error feedback;
# - say what each costs: time on a fast link, and loss after the same samples;
# - predict a step from its bytes and your link, before you change anything;
# - read a claim such as "500 times less communication".
#
# **Before:** [lesson 06](06_vpc_colocation.ipynb): what a slow link does to a step. [Lesson
# 07](07_smddp.ipynb): DDP's hooks.
#
# **Time:** 40 minutes, and 32 for the exercises. The jobs take about two of them.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.07 USD: two jobs on two `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.16 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `links`: the bandwidth of each instance, a job for each; only the emulator can limit it.
# - `seeds`: of the first weights and of the batches. `steps`: of each training, a multiple of 64.
# - `rounds`: how often a step is timed. `max_run`: seconds after which SageMaker stops a job.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
links = ["wide", "200mbit", "20mbit"]
seeds = [0, 1, 2]
steps = 192
rounds = 5
max_run = 600

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.measure import interleaved
from workshop.plots.look import STYLE

session = workshop.session(target=target, seat=seat)
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("12") if unlimited and target == "local" else None
source = "recorded" if recorded else "measured"
print(unlimited or f"Jobs on links of {', '.join(links)}.")
if recorded:
    print(recorded.caption)

# %% [markdown]
# ## The result, first
#
# Two instances train a small GPT (lesson 11) on Python's help pages, character by character. Its
# gradients are half a megabyte. Seven ways:
#
# | way | what it sends |
# |---|---|
# | **DDP** | all gradients, in every step |
# | **fp16** | the same, 2 bytes for each number instead of 4 (lesson 07) |
# | **PowerSGD** | two thin matrices for each large gradient (lesson 07) |
# | **top-k** | the largest 1 % of the gradients' numbers, and where they belong |
# | **accumulation** | the gradients of four batches at once |
# | **local SGD** | the weights, every 16 steps; each rank trains alone in between |
# | **DiLoCo** | how far the weights have come, every 16 steps |
#
# All see the same batches, begin with the same weights and use the same optimizer, AdamW, with the
# learning rate that suits DDP. The loss is that of text which nobody trains on.

# %%
ways = ["DDP", "fp16", "PowerSGD", "top-k", "accumulation", "local SGD", "DiLoCo"]
slow, nobody = links[-1], "no difference shown"
guess = workshop.guess(
    slow=f"To the same loss at {bandwidth.mbit(slow):g} Mbit/s: how many times as fast as DDP is "
    "the fastest way?",
    best=("Which one is it?", ways),
    wide=("And on an unlimited link: which one is faster than DDP?", [*ways[1:], nobody]),
)

# %%
from sagemaker.pytorch import PyTorch

torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
pair = {"instance_type": instance_type, "instance_count": 2}
mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}


def measuring(link: str, train: list, with_seeds: list) -> PyTorch:
    """Train in some ways; then time the steps of all of them, on instances with such links."""
    job = session.job_settings("less-often", source_dir=workshop.DEMOS) | {"max_run": max_run}
    flags = {"train": ",".join(train), "seeds": ",".join(map(str, with_seeds)), "steps": steps}
    return PyTorch(
        entry_point="measure_less_often.py",
        distribution=mpi,
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},  # AWS ignores it
        hyperparameters=flags | {"time": ",".join([*ways, "DDP again"]), "rounds": rounds},
        **torch_image,
        **pair,
        **job,
    )


# %% [markdown]
# What ranks compute doesn't depend on how fast their messages are. So each way trains once with
# each seed, on the unlimited link, and the network card counts its bytes. On the other links the
# time of a step is measured, in rounds of random order. (Three trainings are repeated there: the
# check is below.) Three more ways are for the sections that follow. The jobs take about two
# minutes: read on.

# %%
extra = ["top-k without memory", "local SGD 64", "alone"]
repeated = {links[0]: [*ways, *extra], slow: ["top-k", "DiLoCo"]}
jobs = {}
for link in links if target == "local" else links[:1]:
    train = repeated.get(link, ["DDP"])
    jobs[link] = measuring(link, train, seeds if link == links[0] else seeds[:1])
print(workshop.cost(**pair, seconds=300, max_run=max_run))
if recorded:
    events = recorded.results["events"]
else:
    finished = workshop.run_jobs(jobs)
    events = [{"link": link} | event for link, job in finished.items() for event in job.events]

# %% [markdown]
# <!-- SDK v3: less-often -->

# %% jupyter={"source_hidden": true} tags=["results"]
kinds = ("model", "trained", "timed")
events = [event for event in events if event["event"] in kinds]
workshop.save_results(events=events, recorded=bool(recorded))

# %%
timed = {link: pd.DataFrame() for link in links}  # seconds of a step: rows are rounds
runs = [event for event in events if event["event"] == "trained"]
for event in events:
    if event["event"] == "timed":
        timed[event["link"]][event["method"]] = event["seconds"]
timed = {link: table for link, table in timed.items() if len(table)}
trained = {(run["method"], run["seed"]): run for run in runs if run["link"] == links[0]}
losses = pd.DataFrame({key: pd.Series(run["losses"], run["steps"]) for key, run in trained.items()})
last = losses.index[-1]
sent = pd.Series({way: run["sent_bytes"][-1] / last / 1e6 for (way, _), run in trained.items()})


def steps_to(curve: pd.Series, goal: float) -> float:
    """Steps until a curve of losses reaches the goal, on a line between its points."""
    return float(np.interp(-goal, -curve.cummin(), curve.index))


goal = losses[ways].loc[last].max()  # all ways reach it, with every seed
needed = losses[ways].apply(steps_to, goal=goal).unstack(0)  # steps: a row for each seed


def times_as_fast(link: str) -> pd.DataFrame:
    """To the goal, how many times as fast as DDP: a row for each round, medians of the seeds."""
    fewer = (needed.rdiv(needed["DDP"], axis=0)).median()
    return interleaved.ratios(timed[link], "DDP")[ways[1:]] * fewer[ways[1:]]


# %%
names = {link: "no limit" if link == "wide" else link.replace("mbit", " Mbit/s") for link in timed}
if target == "aws":
    names = {links[0]: f"links of {instance_type}"}
narrow = list(timed)[-1]
seconds = {link: needed.median() * timed[link][ways].median() for link in timed}
least = seconds[narrow].idxmin()
title = f"A loss of {goal:.2f} at {names[narrow]}: {least} in {seconds[narrow][least]:.2g} s, "
title += f"DDP in {seconds[narrow]['DDP']:.2g} s"

# %% jupyter={"source_hidden": true} tags=["figure"]
across = {"MB sent by each instance": sent[ways]}
across |= {f"seconds, {names[link]}": timed[link].median() for link in timed}
with plt.rc_context(STYLE):
    figure, grid = plt.subplots(2, 2, figsize=(9, 6.5), sharey=True, layout="constrained")
    for axes, (label, of_a_step) in zip(grid.flat, across.items(), strict=False):
        for colour, mark, way in zip(plots.COLOURS, "o^sxvDP", ways, strict=True):
            curves, x = losses[way].iloc[1:], of_a_step[way] * losses.index[1:]
            axes.fill_between(x, curves.min(axis=1), curves.max(axis=1), color=colour, alpha=0.2)
            axes.plot(x, curves.median(axis=1), f"{mark}-", color=colour, label=way)
        axes.axhline(goal, color="0.5", linewidth=1)
        axes.set(xscale="log", xlabel=label)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
    figure.supylabel("loss of unseen text")
    figure.suptitle(title if source == "measured" else f"{title} (recorded elsewhere)")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    alt = pd.DataFrame(seconds).rename(columns=names).round(1).to_dict()
    plots.show_figure(figure, f"{title}. Seconds to that loss, by link: {alt}.")
    plt.close(figure)

# %%
noise = {link: timed[link]["DDP"] / timed[link]["DDP again"] for link in timed}
faster = {link: times_as_fast(link) for link in timed}
verdicts = pd.DataFrame(
    {
        names[link]: {
            way: f"{rows[way].median():.2g} ({rows[way].min():.2g} to {rows[way].max():.2g}), "
            + interleaved.verdict(rows[way], noise[link])
            for way in rows
        }
        for link, rows in faster.items()
    }
)
for link, values in noise.items():
    print(f"DDP against itself, {names[link]}: {values.min():.2f} to {values.max():.2f}.")
verdicts.rename_axis("times as fast as DDP to that loss, median (range of the rounds)")

# %%
median = {link: rows.median() for link, rows in faster.items()}
shown_wide = {way: verdicts.loc[way, names[links[0]]] for way in ways[1:]}
faster_wide = [way for way in median[links[0]].sort_values().index if "faster" in shown_wide[way]]
answers = {"wide": faster_wide[-1] if faster_wide else nobody}
if slow in median:
    answers |= {"slow": median[slow].max(), "best": median[slow].idxmax()}
guess.compare(source, **answers)

# %% jupyter={"source_hidden": true} tags=["results"]
if slow in median:
    assert median[slow].max() > 2, f"Bytes should decide at {slow}: {median[slow]}"
workshop.save_results(seconds_to_goal={link: dict(row) for link, row in seconds.items()})
workshop.save_results(gains={link: dict(rows) for link, rows in median.items()})

# %% [markdown]
# In each panel lower and further left is better. Bands are the seeds; the grey line is the loss
# that every way reaches. **Against bytes** DDP comes last. **Against time** the order depends on
# the link: what a way saves is the wait for its bytes, and what it costs is more steps to the same
# loss, and sometimes computing.
#
# ## What ranks compute doesn't depend on the link
#
# That is why trainings and times could be measured apart. Check it: DDP, top-k and DiLoCo trained
# on slower links, too, with the first seed. Equal hashes are equal weights, to the last bit.

# %%
hashes = {}
for run in runs:
    hashes.setdefault((run["method"], run["seed"]), []).append(run["weights_sha256"])
repeated = {key: len(set(values)) for key, values in hashes.items() if len(values) > 1}
ranks_differ = sum(run["models"] > 1 for run in runs if run["method"] != "alone")
print(f"{len(runs)} trainings; ranks that ended with different weights: {ranks_differ}.")
for (way, seed), different in repeated.items():
    print(f"{way}, seed {seed}, trained twice: {different} set of weights.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert not ranks_differ, "All ranks must end with one model."
assert set(repeated.values()) == {1}, f"The same training ended elsewhere: {repeated}"
workshop.save_results(repeated={way: different for (way, _), different in repeated.items()})

# %% [markdown]
# So a training repeats exactly: its noise is not in the machine but in the **seeds**. Compare a way
# with DDP on the *same* seed, and call a difference shown if it is larger with every seed than
# DDP's own seeds differ.

# %%
ends = losses.loc[last].unstack(0)  # a row for each seed
spread = ends["DDP"].max() - ends["DDP"].min()
above = ends.sub(ends["DDP"], axis=0)
learned = pd.DataFrame(
    {
        "kB a step": 1000 * sent,
        "times fewer bytes": sent["DDP"] / sent[ways],
        f"loss after {last} steps": ends.median(),
        "above DDP's": above.median(),
        "lowest": above.min(),
        "highest": above.max(),
    }
).loc[[*ways, "alone"]]
worse = (above.min() > spread)[learned.index]
learned["worse than DDP"] = worse.map({True: "yes", False: "not shown"})
print(f"DDP's own seeds differ by {spread:.3f}.")
learned.round({"kB a step": 1, "times fewer bytes": 1}).round(3)

# %% jupyter={"source_hidden": true} tags=["results"]
bytes_ratio = learned["times fewer bytes"]
assert 1.8 < bytes_ratio["fp16"] < 2.2 and bytes_ratio["top-k"] > 20, f"{bytes_ratio}"
workshop.save_results(
    fewer_bytes=dict(bytes_ratio.dropna()), above=above.to_dict("list"), spread=spread
)
workshop.save_results(
    ends=ends.to_dict("list"), worse={way: bool(yes) for way, yes in worse.items()}
)

# %% [markdown]
# ## One equation, once more
#
# step = compute + exchange: the gradients fit into one of DDP's buckets, so that nothing overlaps.
# What a step takes on a link should be what it takes without a limit, plus bytes / bandwidth.
# (Black lines: computed.)

# %%
free = timed[links[0]][ways].median()
computed, measured = pd.DataFrame(index=ways), pd.DataFrame(index=ways)
for link in links[1:]:
    computed[link] = 1000 * free + 8000 * sent[ways] / bandwidth.mbit(link)
    if link in timed:
        measured[link] = 1000 * timed[link][ways].median()
if len(measured.columns):
    off = (measured / computed - 1).stack()
    title = f"Step = compute + bytes / bandwidth: median error {100 * off.abs().median():.0f} %, "
    title += f"largest {100 * off.loc[off.abs().idxmax()]:+.0f} %"
    shown = {"bounds": computed.rename(columns=names), "source": source}
    plots.grouped_bar_chart(
        measured.rename(columns=names), title, "milliseconds of a step", **shown
    )
else:
    plots.grouped_bar_chart(computed, "A step on narrower links", "milliseconds", source="computed")

# %% jupyter={"source_hidden": true} tags=["results"]
if len(measured.columns):
    workshop.save_results(off={" ".join(key): value for key, value in off.items()})

# %% [markdown]
# Before you change a script, then: measure a step without its exchange, count the bytes, divide. If
# r = exchange / compute is 0.1, no way to send less can save more than a tenth.
#
# ## Accumulate, and send once
#
# DDP averages in every `backward()`. Inside `no_sync()` it doesn't: gradients add up where they
# are, and the next `backward()` outside sends the sum. Each batch's loss is divided, or the step
# would be four times as large.

# %%
workshop.show_function("demos/less_often/methods.py", "accumulate")

# %% [markdown]
# The weights are those of DDP with a batch four times as large (exercise 12.1 proves it). That is
# also the price: as many samples make a quarter of the updates. With the large batch's own learning
# rate some of it comes back ([lesson 01](01_data_parallelism.ipynb)); we left it as it was.
#
# ## Local SGD: average weights, not gradients
#
# Each rank trains alone, with its own optimizer, and every 8 steps all take the mean of their
# weights. There are as many updates as with DDP, each made from one rank's batch.

# %%
workshop.show_function("demos/less_often/methods.py", "local_sgd")

# %% [markdown]
# With an average after *every* step of SGD this is DDP. (With AdamW nearly: the optimizers' states
# differ, and stay on their ranks.) How rarely may they talk? Two controls: an average every 64
# steps, and **alone**, where nothing is ever sent. A way that doesn't beat *alone* has sent its
# bytes for nothing, and few papers show that line.

# %%
rarely = ["DDP", "local SGD", "local SGD 64", "alone"]
label = pd.Series(["every step", "every 16 steps", "every 64 steps", "never"], rarely)
above_ddp = above[rarely].agg(["median", "min", "max"]).T.rename(label)
above_ddp.rename_axis("weights or gradients averaged").rename_axis("loss above DDP's", axis=1)

# %%
beats = {way: bool((ends[way] < ends["alone"]).all()) for way in [*ways, "local SGD 64"]}
print(f"Better than alone with every seed: {', '.join(way for way in beats if beats[way])}.")
print(f"Not shown for: {', '.join(way for way in beats if not beats[way]) or 'none'}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert beats["DDP"], "A second rank that is averaged in every step must help."
workshop.save_results(beats_alone=beats)

# %% [markdown]
# ## DiLoCo: the mean way, with momentum
#
# DiLoCo ([Douillard et al., 2023](https://arxiv.org/abs/2311.08105)) averages how far the ranks
# have come, and treats that as a gradient: an **outer optimizer**, SGD with Nesterov's momentum,
# takes a step with it. Without momentum and with the rate 1 it is local SGD.

# %%
workshop.show_function("demos/less_often/methods.py", "diloco")

# %% [markdown]
# It sends the bytes of our local SGD, so their losses can be compared directly:

# %%
apart = ends["DiLoCo"] - ends["local SGD"]
print(f"DiLoCo's loss above local SGD's, by seed: {', '.join(f'{x:+.3f}' for x in apart)}")
print(f"after {last // 16} outer steps, with the outer rate 0.7 and the momentum 0.9.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(diloco_above_local=apart.to_list())

# %% [markdown]
# Nesterov's momentum of 0.9 lets a way act on some ten outer steps, about as many as there are
# here. The paper takes hundreds of inner steps, and many outer ones. Numbers that suit one
# training don't suit another: with other values of `lr` and `momentum` it may win here, too.
#
# ## Top-k, and what is left out
#
# Send the 1 % of the numbers that are largest in size. An all-reduce can't add them up, because
# each rank chooses other places, so each sends its values *and* their places to all: 2 % of the
# bytes. What is not sent is not lost. It waits in `left_out` and is added to the next gradient:
# **error feedback**, which PowerSGD has, too.

# %%
workshop.show_function("demos/less_often/methods.py", "top_k")

# %%
guess = workshop.guess(
    memory=(
        "Without that memory, after the same steps, is the loss higher with every seed?",
        ["yes", "no"],
    )
)

# %%
curves = {way: losses[way].median(axis=1) for way in ["DDP", "top-k", "top-k without memory"]}
lost = ends["top-k without memory"] - ends["top-k"]
title = f"Forgetting what is left out: a loss higher by {lost.median():.2f} after {last} steps"
plots.lines({way: curve.iloc[1:] for way, curve in curves.items()}, title, "steps", "loss")
guess.compare(source, memory="yes" if lost.min() > 0 else "no")
print(f"By seed: {', '.join(f'{value:+.3f}' for value in lost)}.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(without_memory=lost.to_list())

# %% [markdown]
# Two warnings. In a hook of your own (lesson 07), begin with the *second* step: after the first,
# DDP sorts its buckets anew, and `left_out` would be added to other weights. And on N ranks each
# link carries N - 1 parts of 2 %: from 100 ranks on that is more than an all-reduce.
#
# ## What is claimed, and what held here
#
# From the papers' abstracts, read on 2026-11-25:
#
# - **local SGD** ([Stich, 2018](https://arxiv.org/abs/1805.09767)): as fast as SGD with averaged
#   gradients, with up to √T times fewer messages in T steps; proved for convex problems;
# - **DiLoCo** ([2023](https://arxiv.org/abs/2311.08105)): 500 times less communication, and as good
#   as synchronous training; language models, 8 workers;
# - **Deep Gradient Compression** ([Lin et al., 2017](https://arxiv.org/abs/1712.01887)): 270 to 600
#   times fewer bytes without losing accuracy; top-k and four more ideas;
# - **PowerSGD** ([Vogels et al., 2019](https://arxiv.org/abs/1905.13727)): test performance on par
#   with SGD, and faster on the clock;
# - a **comparison** ([Agarwal et al.,
#   2022](https://proceedings.mlsys.org/paper_files/paper/2022/hash/773862fcc2e29f650d68960ba5bd1101-Abstract.html)):
#   compression was faster than well-made SGD in 6 of more than 200 set-ups of data centers.

# %%
claimed = {"local SGD": f"{last**0.5:.0f} (√T)", "DiLoCo": "500", "top-k": "270 to 600"}
here = learned.loc[["local SGD", "DiLoCo", "top-k", "PowerSGD"]]
pd.DataFrame(
    {
        "times fewer, claimed": pd.Series(claimed),
        "times fewer, here": here["times fewer bytes"].round(0),
        "worse than DDP here?": here["worse than DDP"],
    }
    | {f"faster, {names[link]}?": verdicts[names[link]].str.split(", ").str[-1] for link in timed}
).loc[here.index].fillna("-")

# %% [markdown]
# A claim holds for its model, its length of training, its settings and its link; here are other
# ones, and two ranks. All of the claims are about bytes or loss *after the same steps*. What you
# pay for is time: read them together with r.
#
# ## When to use which
#
# | your situation | take |
# |---|---|
# | r = exchange / compute is below 0.1 | DDP: there is nothing to gain |
# | r is around 1, GPUs | fp16 or bf16: half the bytes, hardly another result |
# | memory is short, or a large batch is wanted | accumulation, with a higher learning rate |
# | r is above 1, and you can tune | PowerSGD, or local SGD with few steps between |
# | instances far apart, Mbit/s | local SGD or DiLoCo, with outer settings of your own |
# | few ranks, a very narrow link, spare CPU | top-k with error feedback |
#
# And plot *alone* beside it, with your learning rate.
#
# ## As a script
#
# `train_torch_local_sgd.py` does it for the course's classifier; what differs from DDP is this
# function, called every `--sync-every` steps. `--outer-learning-rate 0.7 --outer-momentum 0.9`
# makes DiLoCo of it. It needs nothing newer than DDP does, so any PyTorch image runs it.

# %%
workshop.show_function("train/train_torch_local_sgd.py", "outer_step")

# %%
estimator = PyTorch(
    entry_point="train_torch_local_sgd.py",
    distribution=mpi,
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": slow},
    hyperparameters={"epochs": 4, "sync-every": 8},
    **torch_image,
    **pair,
    **session.job_settings("local-sgd") | {"max_run": max_run},
)
estimator.fit(session.upload("digits"), wait=False)
job = workshop.follow(estimator)

# %% [markdown]
# <!-- SDK v3: local-sgd -->

# %%
weights = job.table("weights")["weights_sha256"]
epochs = job.table("epoch")[["epoch", "step", "syncs", "test_accuracy"]]
print(f"{len(weights)} ranks, {weights.nunique()} set of weights.")
epochs

# %% jupyter={"source_hidden": true} tags=["results"]
assert weights.nunique() == 1, "The ranks share their weights at the end: compare the hashes."
workshop.save_results(ranks=len(weights), syncs=int(epochs["syncs"].max()))

# %% [markdown]
# ## Exercises
#
# In [exercises/12_talk_less_often.ipynb](exercises/12_talk_less_often.ipynb):
#
# 1. (10 minutes) One message for four batches, and the weights of one large batch.
# 2. (12 minutes) DiLoCo's outer step, on real ranks.
# 3. (10 minutes) Top-k's memory: what is left out is not lost.
#
# ## Check yourself

# %%
workshop.quiz("12")

# %% [markdown]
# ## Summary
#
# - To send less, send more rarely (accumulation, local SGD, DiLoCo), or fewer numbers (fp16,
#   PowerSGD, top-k). Each costs something: updates, agreement among ranks, or computing.
# - Bytes saved are not time saved: r says what there is to save. On a fast link DDP is hard to
#   beat.
# - Compare at equal samples *and* at equal time, on the same seeds, with DDP's own seeds as the
#   noise, and with a rank that trains alone.
# - What top-k leaves out must wait, not vanish.
# - Between two averages the ranks' weights differ: compare hashes right after one.
#
# ## Clean up
#
# The jobs' instances ended with them; models and logs stay until you delete them.
#
# ## Next
#
# [99 · Clean up](99_clean_up.ipynb): delete what is left, and prove it.

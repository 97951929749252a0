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
# # 12 · Talk less often
#
# **After this lesson you can**
#
# - send 4 to 64 times fewer bytes than DDP, in four new ways: gradient accumulation, local SGD,
#   DiLoCo, top-k with error feedback;
# - say what each costs, in time and in loss, and whether it beats a rank that trains alone;
# - predict a step on a slower link, from its bytes and its step on a fast one;
# - read a claim such as "500 times less communication".
#
# **Before:** [lesson 06](06_vpc_colocation.ipynb): what a slow link does to a step. [Lesson
# 07](07_smddp.ipynb): DDP's hooks. [Lesson 11](11_what_each_rank_must_hold.ipynb): the small GPT.
#
# **Time:** 65 minutes, and 31 for the exercises. Of the 65, the jobs take two or three, on a busy
# machine five or six.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.07 USD: two jobs on two `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.17 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `links`: the bandwidth of each instance, one job for each; "wide" is no limit. On AWS there
#   is no limit to set, so the columns of slower links are missing.
# - `seeds`: they set first weights and batches. `steps`: of each training, a multiple of 64.
# - `rounds`: how often a step is timed. `max_run`: seconds after which SageMaker stops a job.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
links = ["wide", "200mbit", "20mbit"]
seeds = [0, 1, 2]
steps = 192
rounds = 9
max_run = 600

# %%
import numpy as np
import pandas as pd

import workshop
from workshop import plots
from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.measure import interleaved

pd.set_option("display.max_colwidth", None)  # whole sentences in tables

session = workshop.session(target=target, seat=seat)
unlimited = bandwidth.unlimited_reason(session)
recorded = reference_results.load("12") if unlimited and target == "local" else None
source = "recorded" if recorded else "measured"
print(unlimited or f"Jobs on links of {', '.join(links)}.")
if recorded:
    print(recorded.caption)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Seven ways, and one rank alone
#
# Two instances train a smaller GPT than lesson 11's (2 blocks, width 64) on Python's help pages.
# The last four ways are new:
#
# | way | what it sends |
# |---|---|
# | **DDP** | all gradients, in every step |
# | **fp16** | the same, 2 bytes for each number instead of 4 (lesson 07) |
# | **PowerSGD** | two thin matrices for each large gradient (lesson 07) |
# | **top-k** | the largest 1 % of the gradients' numbers, and where they belong |
# | **accumulation** | the gradients of four batches at once |
# | **local SGD** | the weights, every 16 steps; each rank trains alone in between |
# | **DiLoCo** | old weights minus new ones, every 16 steps |

# %% [markdown]
# The control is **alone**: each rank trains a model of its own and sends nothing. All begin with
# the same weights, see the same batches and use AdamW with one learning rate, tuned for none of
# them. A **step** is one batch on each rank; what is sent every 4 or 16 steps is spread over them.
#
# The **loss** is that of held-out text, in **nats** per character (natural logarithm): the mean of
# five evaluations, 16 steps apart, the middle one at the step that is named. The **goal** is the
# loss that *alone* has reached after about half of the steps, with the same seed. Seconds to it are
# seconds per step (of the slower rank, for which the other waits) x steps (the seeds' mean); all
# seeds must reach it. *Alone*'s loss and seconds are the means of both ranks.
#
# A difference is *shown* if it is beyond the noise of equal runs and holds with each seed. The rule
# is coarse on purpose, so *not shown* isn't *equal*.
#
# <details><summary>The rule, in full</summary>
#
# A difference is shown
#
# - **in time:** if lesson 01's rule (the median of the rounds' ratios is beyond the noise, 8 of 9
#   rounds on one side) shows it with *each* seed's number of steps; the 9 rounds are the same. DDP
#   and *alone* are each timed twice: a round counts the mean of the two, and how far they lie apart
#   in the median round is the noise. Of DDP's and *alone*'s, the larger counts.
# - **in loss:** if the median gap of the seeds exceeds the **threshold**, the gap between DDP's
#   best and worst seed, and all seeds have one sign. (Gaps on the same seed vary less than that.)
#
# Three seeds agree by luck once in four times, and this page gives some 50 verdicts: a few may be
# luck.
#
# </details>
#
# Before you guess: sending takes bytes / bandwidth, and a byte has 8 bits. DDP needs fewer steps
# than *alone*: as a rule of thumb half as many, at best. On a busy machine *alone*'s step may take
# several times as long as in the earlier run; that makes the ratio smaller.

# %% slideshow={"slide_type": "slide"}
ways = ["DDP", "fp16", "PowerSGD", "top-k", "accumulation", "local SGD", "DiLoCo"]
slow = links[-1]
before = pd.DataFrame(reference_results.load("12").results["events"])
short = before.query("event == 'timed' and method == 'alone' and link == 'wide'")["seconds"].iloc[0]
print(f"An earlier run: {before['gradient_bytes'].max() / 1e6:.2f} MB of gradients,", end=" ")
print(f"{1000 * np.median(short):.1f} ms for a step alone.")
guess = workshop.guess(
    slow=f"DDP on two ranks at {bandwidth.mbit(slow):g} Mbit/s: how many times as long does it "
    "take to the goal as one rank alone?",
    wide="Without a limit: how many of the six others are shown to be faster than DDP?",
    narrow=f"At {bandwidth.mbit(slow):g} Mbit/s: how many of the seven are shown to beat alone?",
)

# %%
from sagemaker.pytorch import PyTorch

torch_image = {"framework_version": "2.2.0", "py_version": "py310"}
pair = {"instance_type": instance_type, "instance_count": 2}
mpi = {"mpi": {"enabled": True, "processes_per_host": 1}}
controls = ["alone", "DDP again", "alone again"]  # second ones: what differs is noise


def measuring(link: str, train: list, with_seeds: list) -> PyTorch:
    """Train in some ways; then time the steps of all of them, on instances with such links."""
    job = session.job_settings("less-often", source_dir=workshop.DEMOS) | {"max_run": max_run}
    flags = {"seeds": ",".join(map(str, with_seeds)), "steps": steps}
    flags |= {"train": ",".join(train)} if train else {}
    return PyTorch(
        entry_point="measure_less_often.py",
        distribution=mpi,
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": link},  # AWS ignores it
        hyperparameters=flags | {"time": ",".join([*ways, *controls]), "rounds": rounds},
        **torch_image,
        **pair,
        **job,
    )


# %% [markdown]
# ## Train once, time on each link
#
# Ranks wait for each other's messages, so what they compute doesn't depend on how fast those are.
# Each way trains once with each seed, on the unlimited link, and the network card counts its bytes.
# On each link the time of a step is measured, in rounds of random order.

# %%
extra = ["top-k without memory", "local SGD 64", "DiLoCo 0.5", "alone"]  # three for later sections
trained_on = {links[0]: [*ways, *extra], slow: ["top-k", "DiLoCo"]}
jobs = {}
for link in links if target == "local" else links[:1]:
    train = trained_on.get(link, [])
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

# %% jupyter={"source_hidden": true}
timed = {link: pd.DataFrame() for link in links}  # seconds of a step: rows are rounds
runs = [event for event in events if event["event"] == "trained"]
for event in events:
    if event["event"] == "timed":
        timed[event["link"]][event["method"]] = event["seconds"]
timed = {link: table for link, table in timed.items() if len(table)}
equal, noise = {}, {}  # two equal runs: of DDP or alone, which differ more; a factor
for link, table in timed.items():
    for way in ("DDP", "alone"):
        again = table[f"{way} again"]
        apart = table[way] / again
        factor = interleaved.band(apart)[1]
        if factor > noise.get(link, 0):
            equal[link], noise[link] = apart, factor
        table[way] = (table[way] + again) / 2

# %% jupyter={"source_hidden": true}
step_seconds = {link: table.median() for link, table in timed.items()}
narrow = list(timed)[-1]  # the slowest link that was timed
trained = {(run["method"], run["seed"]): run for run in runs if run["link"] == links[0]}
curves = pd.DataFrame({key: pd.Series(run["losses"], run["steps"]) for key, run in trained.items()})
losses = curves.iloc[1:].rolling(5, center=True).mean().dropna()
last, all_steps = losses.index[-1], curves.index[-1]
goal_step = losses.index[(len(losses) - 1) // 2]
goal = losses.loc[:goal_step, "alone"].min()  # for each seed
sent = {way: run["sent_bytes"][-1] / all_steps / 1e6 for (way, _), run in trained.items()}
sent = pd.Series(sent)  # MB per step
names = {link: "no limit" if link == "wide" else link.replace("mbit", " Mbit/s") for link in timed}
if target == "aws":
    names = {links[0]: f"links of {instance_type}"}
model = next(event for event in events if event["event"] == "model")
print(f"{model['gradient_bytes'] // 4:,} parameters, {model['gradient_bytes'] / 1e6:.2f} MB.")
print(f"{model['batch'] // model['world_size']} characters in a rank's batch.")
print(f"{all_steps} steps; the goal is alone's loss around step {goal_step}:", end=" ")
print(f"{goal.mean():.2f} nats; before the first step it is {curves.iloc[0].mean():.2f}.")


# %% jupyter={"source_hidden": true}
def steps_to(curve: pd.Series, aim: float) -> float:
    """Steps until a curve of losses reaches the aim, on a line between its points; or NaN."""
    lowest = curve.cummin()
    reached = lowest.iloc[-1] <= aim
    return float(np.interp(-aim, -lowest, lowest.index)) if reached else float("nan")


needed = losses.apply(lambda curve: steps_to(curve, goal[curve.name[1]])).unstack(0)
needed = needed[[*ways, "alone"]]  # a row for each seed


def seconds_to_goal(link: str) -> pd.DataFrame:
    """Seconds to the goal: a row for each seed and round; NaN where it was not reached."""
    times = timed[link][needed.columns]
    return pd.concat({seed: times * needed.loc[seed] for seed in needed.index})


seconds = {link: seconds_to_goal(link) for link in timed}
steps_needed = needed.mean(skipna=False)  # NaN where a seed did not get there
to_goal = {link: step_seconds[link][needed.columns] * steps_needed for link in timed}
late = f"not by step {last}"


# %% jupyter={"source_hidden": true}
def by_the_rule(gaps: pd.Series, threshold: float, words: tuple) -> str:
    """words: for gaps above and below 0."""
    one_sign = gaps.min() > 0 or gaps.max() < 0
    if abs(gaps.median()) <= threshold or not one_sign:
        return "not shown"
    return words[0] if gaps.median() > 0 else words[1]


def with_each_seed(ratios: pd.Series, link: str) -> str:
    """The verdict of lesson 01, if it is the same with each seed."""
    by_seed = ratios.groupby(level=0)
    shown = {interleaved.verdict(rounds, equal[link]) for _, rounds in by_seed}
    return shown.pop() if shown in ({"faster"}, {"slower"}) else "not shown"


# %% jupyter={"source_hidden": true}
def in_short(times: float) -> str:
    """How many times as fast: two digits, from 10 on three."""
    return f"{times:.1f}" if times >= 10 else f"{times:.2g}"


def against(base: str) -> tuple[pd.DataFrame, ...]:
    """How many times as fast as `base` to the goal: numbers, verdicts, and both in words."""
    ratios, verdicts, words = pd.DataFrame(), pd.DataFrame(), pd.DataFrame()
    for link, rows in seconds.items():
        speed = rows.drop(columns=base).rdiv(rows[base], axis=0)
        reached, name = speed.notna().all(), names[link]
        times = timed[link][needed.columns]  # the median round's ratio x the ratio of mean steps
        ratio = times.rdiv(times[base], axis=0).median() * steps_needed[base] / steps_needed
        ratios[name] = ratio.drop(base)
        judged = speed.apply(with_each_seed, link=link)
        verdicts[name] = judged.where(reached, late)
        doubt = judged.map(lambda verdict: "?" * (verdict == "not shown"))
        words[name] = (ratios[name].map(in_short) + doubt).where(reached, late)
    return ratios, verdicts, words


than_ddp, ddp_verdicts, ddp_words = against("DDP")
than_alone, verdicts, alone_words = against("alone")

# %% [markdown]
# ## The result, before the methods

# %% jupyter={"source_hidden": true} tags=["figure"]
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator

from workshop.plots.look import STYLE

above_goal = losses - [goal[seed] for _, seed in losses]


def draw_losses(axes, label: str, of_a_step: pd.Series) -> None:
    """Draw each way's loss above the goal against bytes or seconds. of_a_step: those, by way."""
    axes.axhline(0, color="firebrick", linewidth=1.5, label="the goal")
    if "alone" in of_a_step:
        x, y = of_a_step["alone"] * losses.index, above_goal["alone"].mean(axis=1)
        axes.plot(x, y, "--", color="black", linewidth=2, zorder=5, label="alone (one rank)")
    colours = [*plots.COLOURS[:6], "olive"]  # black is alone's
    for colour, mark, way in zip(colours, "o^sxvDP", ways, strict=True):
        by_seed, x = above_goal[way], of_a_step[way] * losses.index
        look = {"color": colour, "alpha": 0.12, "linewidth": 0}
        axes.fill_between(x, by_seed.min(axis=1), by_seed.max(axis=1), **look)
        marker = {"markersize": 9, "fillstyle": "none"} if way == "DDP" else {"markersize": 5}
        axes.plot(x, by_seed.mean(axis=1), f"{mark}-", color=colour, label=way, **marker)
    axes.set(xscale="log", xlabel=label)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")


# %% jupyter={"source_hidden": true} tags=["figure"]
at_narrow = than_ddp[names[narrow]]
faster = ddp_verdicts.loc[ways[1:], names[narrow]] == "faster"
ahead = at_narrow[ways[1:]][faster].nlargest(2)
winners = [way for way in ahead.index if verdicts.loc[way, names[narrow]] == "faster"]
if len(ahead) == 2:
    title = f"At {names[narrow]} {' and '.join(ahead.index)} reach the goal "
    times = " and ".join(ahead.map(in_short))
    if ahead.iloc[0] / ahead.iloc[1] < noise[narrow]:  # which is first is not shown
        times = f"about {ahead.mean():.2g}"
    title += f"{times} times as fast as DDP;\n"
    shown = ["neither is", f"only {''.join(winners)} is", "both are"][len(winners)]
    both_slower = (verdicts.loc[ahead.index, names[narrow]] == "slower").all()
    shown = "both are shown to be slower" if both_slower else f"{shown} shown to be faster"
    title += f"{shown} than one rank alone"
else:
    title = f"At {names[narrow]} shown to be faster than DDP: {''.join(ahead.index) or 'no way'}"
title += "" if source == "measured" else " (recorded elsewhere)"

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
across = {"MB sent by each instance": sent[ways]}
across |= {f"seconds, {names[link]}": step_seconds[link] for link in timed}
with plt.rc_context(STYLE):
    figure, grid = plt.subplots(2, 2, figsize=(8, 7), sharey=True, layout="constrained")
    for axes, label in zip(grid.flat, across, strict=False):
        draw_losses(axes, label, across[label])
    for axes in list(grid.flat)[len(across) :]:
        axes.axis("off")
    figure.supylabel("held-out loss above the goal, nats per character", fontsize=10)
    figure.suptitle(title, fontsize=10)
    handles, _ = grid[0, 1].get_legend_handles_labels()
    points = f"points: steps {', '.join(map(str, losses.index))}"
    figure.legend(handles=handles, loc="outside lower center", ncols=5, title=points)
    alt = pd.DataFrame(to_goal).rename(columns=names).round(2).astype(object).fillna(late).to_dict()
    plots.show_figure(figure, f"{title}. Seconds to that loss: {alt}.")
    plt.close(figure)

# %% [markdown]
# Lower and further left is better. Lines are means of the seeds, shades their range (*alone*: not
# drawn); a line may cross the goal though one seed has not reached it. **Against bytes** DDP comes
# last; **against time** the order depends on the link.
#
# How many times as fast as DDP, and as one rank alone, does each reach the goal? (**?**: no
# difference is shown.)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
floors = ", ".join(f"{names[link]} {floor:.2f}" for link, floor in noise.items())
print(f"The noise, as a factor: {floors}.")
both = {(name, "as DDP"): ddp_words[name] for name in names.values()}
both |= {(name, "as alone"): alone_words[name] for name in names.values()}
both = pd.DataFrame(both).reindex([*ways, "alone"]).fillna("–")
both = both[[(name, f"as {base}") for name in names.values() for base in ("DDP", "alone")]]
both.rename_axis("times as fast to the goal")

# %% jupyter={"source_hidden": true}
times_slower = 1 / than_alone.loc["DDP", names[narrow]]
answers = {"wide": int((ddp_verdicts.loc[ways[1:], names[links[0]]] == "faster").sum())}
if slow in timed:
    beating = int((verdicts.loc[ways, names[slow]] == "faster").sum())
    answers |= {"slow": times_slower, "narrow": beating}
step_there = step_seconds[narrow]
slower = int((verdicts.loc[ways, names[narrow]] == "slower").sum())
slower = "all seven are" if slower == len(ways) else f"{slower} of the seven are"

# %% slideshow={"slide_type": "slide"}
guess.compare(source, **answers)

# %% jupyter={"source_hidden": true}
to_send = 8 * before["gradient_bytes"].max() / 1e6 / bandwidth.mbit(slow)
alone_step, ddp_step = step_there["alone"], (timed[narrow]["DDP"] / timed[narrow]["alone"]).median()
print(f"The arithmetic: {1000 * to_send:.0f} ms to send at {names[narrow]}.", end=" ")
print(f"With alone's step here, {1000 * alone_step:.2f} ms,")
print(f"a step takes {1 + to_send / alone_step:.0f} times as long as alone's", end=" ")
print(f"(with the earlier run's: {1 + to_send / np.median(short):.0f}).")
share = steps_needed["DDP"] / steps_needed["alone"]
print(f"Measured, {names[narrow]}: {ddp_step:.3g} times as long, and DDP needs", end=" ")
print(f"{share:.3g} of alone's steps:\nto the goal {ddp_step * share:.3g} times as long.", end=" ")
if narrow != links[0]:
    longer = 1000 * (step_seconds[links[0]]["DDP"] - step_seconds[links[0]]["alone"])
    print(f"(DDP's step is {longer:.1f} ms longer even without a limit.)")
print(f"At {names[narrow]} {slower} shown to be slower than alone.")

# %% [markdown]
# Why? Seconds to the goal are steps times step:

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
from IPython.display import display

factors = pd.DataFrame({"steps to the goal": steps_needed.round()})
for link, times in timed.items():
    factors[f"ms a step, {names[link]}"] = (1000 * times[needed.columns].median()).round(1)
in_text = factors.map("{:g}".format).replace("nan", late)
of_seeds = needed.agg(lambda x: f"{x.mean():.0f} ({x.min():.0f} to {x.max():.0f})")
in_text["steps to the goal"] = of_seeds.where(steps_needed.notna(), late)
display(in_text)
products = pd.DataFrame({names[link]: of["DDP"] / of for link, of in to_goal.items()})
apart = (products / than_ddp - 1).abs().max().max()
print(f"Quotients of these products lie up to {apart:.0%} off the ratios above, which are", end=" ")
print("medians of\nthe rounds' ratios; these milliseconds are medians by themselves.", end=" ")
print("Where the two\ndon't lie on one side of 1, believe neither.")
of_alone = pd.Series({link: times["alone"].median() for link, times in timed.items()})
apart = of_alone.max() / of_alone.min()
print(f"Each link is a job: alone, which sends nothing, varies by {apart:.1f}", end=" ")
print("times from job to job.\nCompare down a column, not along a row.")
unlimited = timed[links[0]][needed.columns].median()
for way in unlimited.drop(["alone", "accumulation"]).index:  # each does all that alone does
    if unlimited[way] < unlimited["alone"]:
        equal_steps = steps_needed["alone"] / steps_needed[way]
        print(f"Without a limit {way}'s step is shorter than alone's, though it does more: noise.")
        print(f"With alone's step it would be {equal_steps:.2g} times as fast as alone.")

# %% jupyter={"source_hidden": true}
share = (needed["DDP"] / needed["alone"]).max()
print(f"With each seed DDP needs at most {share:.0%} of alone's steps:", end=" ")
print(f"with free messages it would be at least {1 / share:.1f} times as fast.")
slower_learners = [way for way in ways if not (needed[way] <= needed["alone"]).any()]
print(f"More steps than alone, with each seed: {', '.join(slower_learners) or 'none'}.")
early = [way for way in needed if (needed[way] == losses.index[0]).any()]
if early:
    print(f"At the goal before step {losses.index[0]}, where the curves begin: {', '.join(early)}:")
    print("their steps and seconds above are upper bounds.")

# %% jupyter={"source_hidden": true} tags=["results"]
if slow in timed:
    assert times_slower > 2, f"Bytes should decide at {slow}: {to_goal[slow]}"
workshop.save_results(
    seconds_to_goal={link: dict(row.dropna()) for link, row in to_goal.items()},
    against_alone=verdicts.to_dict(),
    against_ddp=ddp_verdicts.to_dict(),
)

# %% [markdown]
# Against *alone* a way can win only by fewer steps (accumulation also by a shorter one: it runs the
# optimizer once in four batches), and only if sending and computing cost less than those save. Else
# take one instance, or a model that computes longer for its bytes. Mind the bill, too: two
# instances cost twice as much per second, so what is less than twice as fast costs more.
#
# ## What each has learned
#
# Some ways were trained on a slower link, too. Equal hashes are equal weights, to the bit:

# %% jupyter={"source_hidden": true}
hashes = pd.DataFrame(runs).groupby(["method", "seed"])["weights_sha256"].agg(["size", "nunique"])
again = hashes[hashes["size"] > 1]["nunique"].droplevel("seed")
same = ", ".join(f"{way} {'yes' if sets == 1 else 'no'}" for way, sets in again.items())
print(f"The same weights on both links: {same or 'not known, there is one link only'}.")

# %% jupyter={"source_hidden": true} tags=["results"]
repeated = again.to_dict()
ranks_differ = sum(run["models"] > 1 for run in runs if run["method"] != "alone")
assert not ranks_differ, "All ranks must end with one model."
assert set(repeated.values()) <= {1}, f"The same training ended elsewhere: {repeated}"
workshop.save_results(repeated=repeated)

# %% [markdown]
# With one seed, these repeat to the bit on this machine; for the other ways and seeds we assume it.
# So what varies in the losses is the **seed**: compare on the *same* seed, after equal steps (not
# samples: *alone* has seen half of DDP's text):

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
ends = losses.loc[last].unstack(0)  # a row for each seed
spread = ends["DDP"].max() - ends["DDP"].min()
above = ends.sub(ends["DDP"], axis=0)
worse = {way: by_the_rule(above[way], spread, ("yes", "better")) for way in ends}
in_words = above.apply(lambda x: f"{x.median():.3f} ({x.min():.3f} to {x.max():.3f})")
learned = pd.DataFrame(
    {
        "times fewer bytes": (sent["DDP"] / sent[ways]).round(1),
        "loss above DDP's: median (range)": in_words.drop("DDP"),
        "worse than DDP": pd.Series(worse).drop("DDP"),
    }
).loc[[*ways, "alone"]]
print(f"DDP's loss around step {last}: {ends['DDP'].median():.3f}.", end=" ")
print(f"The threshold (its seeds): {spread:.3f}.")
all_lost = above.columns[(above > 0).all()]
below = [way for way in all_lost if way in learned.index and worse[way] == "not shown"]
print(f"Worse with all {len(ends)} seeds, but by less than that: {', '.join(below) or 'none'}.")
learned.astype(object).fillna("–").replace("-0.000", "0.000", regex=True)

# %% jupyter={"source_hidden": true} tags=["results"]
fewer = sent["DDP"] / sent[ways]
assert 1.8 < fewer["fp16"] < 2.2 and fewer["top-k"] > 20, f"{fewer}"
assert (ends["DDP"] < ends["alone"]).all(), "A second rank averaged in every step must help."
workshop.save_results(fewer_bytes=dict(fewer), above=above.to_dict("list"), spread=spread)
workshop.save_results(ends=ends.to_dict("list"), worse=worse)

# %% [markdown]
# ## One equation, once more
#
# The gradients fit into one of DDP's buckets, so sending does not overlap with backward. So
# predict: a step on a link takes its *own* time without a limit, plus bytes / bandwidth. (PowerSGD
# sends its first two steps whole; the steps that are timed come later, so these two don't count.)

# %% jupyter={"source_hidden": true}
# Milliseconds of a step without a limit, a row for each round; of sending; and both together.
free = 1000 * timed[links[0]][[*ways, "alone"]]
later = sent[free.columns].copy()
later["PowerSGD"] = (all_steps * sent["PowerSGD"] - 2 * sent["DDP"]) / (all_steps - 2)
# MB x 8 / (Mbit/s) = s; x 1000 = ms
sending = {link: 8000 * later / bandwidth.mbit(link) for link in links[1:]}
computed = pd.DataFrame({link: free.median() + added for link, added in sending.items()})

# %% jupyter={"source_hidden": true} tags=["figure"]
measured = {link: 1000 * timed[link][free.columns] for link in computed if link in timed}
off = pd.DataFrame({link: times.median() / computed[link] - 1 for link, times in measured.items()})
title = "A step on narrower links, computed"
if len(off.columns):
    errors = off.loc[ways].abs().stack()
    (way, link), most = errors.idxmax(), errors.max()
    title = f"Step without a limit + bytes / bandwidth: {errors.mean():.0%} off on average,"
    title += f"\nat most {most:.0%} ({way}, {names[link]})"


def reach(times: pd.DataFrame) -> list:
    """How far the middle half of the rounds reaches below and above their median."""
    low, middle, high = (times.quantile(part) for part in (0.25, 0.5, 0.75))
    return [middle - low, high - middle]


# %% jupyter={"source_hidden": true} tags=["figure"]
with plots.canvas(title, "milliseconds per step: median and middle half", size=(7.5, 4)) as axes:
    for row, (link, colour) in enumerate(zip(computed, plots.COLOURS, strict=False)):
        at = np.arange(len(computed)) + 0.3 * row - 0.2
        look = {"fmt": "|", "color": colour, "linewidth": 1}
        axes.errorbar(computed[link], at, xerr=reach(free), **look)
        if link in off:
            times, label = measured[link], f"{source}, {names[link]}"
            look = {"fmt": "o", "markersize": 4, "color": colour, "label": label}
            axes.errorbar(times.median(), at + 0.12, xerr=reach(times), **look)
    axes.errorbar([], [], xerr=[], fmt="|", color="0.3", linewidth=1, label="computed")
    axes.set_yticks(range(len(computed)), computed.index)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)

# %% jupyter={"source_hidden": true} tags=["results"]
if len(off.columns):
    workshop.save_results(off=off.to_dict())

# %% [markdown]
# Computed and measured come from different jobs. How much do these differ by themselves? *Alone*
# sends nothing, so the link can't change its step:

# %% jupyter={"source_hidden": true}
between = dict.fromkeys(ways, 1) | {"accumulation": 4, "local SGD": 16, "DiLoCo": 16}  # steps
for link in measured:
    error = measured[link].median() - computed[link]  # ms
    middle_half = free.quantile(0.75) - free.quantile(0.25)
    allowed = abs(off.loc["alone", link]) * free.median() + middle_half
    print(f"{names[link]}: alone's step is off by {error['alone']:+.1f} ms", end=" ")
    print(f"({off.loc['alone', link]:+.0%}). So errors below {allowed[ways].min():.1f} to", end=" ")
    print(f"{allowed[ways].max():.1f} ms can't show.")
if len(off.columns):
    errors = {"error": error, "allowed": allowed, "sending": sending[link]}
    errors = pd.DataFrame(errors).loc[ways].add_suffix(", ms")
    errors["error, % of sending"] = 100 * error / sending[link]
    errors["error of a message, ms"] = error * pd.Series(between)
    display(errors.round(1).rename_axis(names[link]))

# %% [markdown]
# *Allowed*: what *alone* is off by, as a part of the way's own step without a limit, and the middle
# half of its rounds. An error above that isn't only the jobs'. Is it the link's? DDP, accumulation,
# local SGD and DiLoCo send equal messages, after 1, 4, 16 and 16 steps. What the link adds is the
# same for each message; what grows with the steps between two is the machine's.

# %% jupyter={"source_hidden": true}
if len(off.columns):
    late_by = errors["error of a message, ms"]
    times = late_by[["local SGD", "DiLoCo"]] / late_by["DDP"]
    each = " and ".join(f"{x:.2g} ({way})" for way, x in times.items())
    print(f"After 16 steps a message is {each} times as late as DDP's after one:", end=" ")
    if times.max() < 2:
        print("most of\nthat belongs to the message (headers: 4 %; the rest isn't separated).")
    else:
        print("most is\nthe machine's." if times.min() > 2 else "so which it is\ncan't be told.")

# %% [markdown]
# What is there to win? From here on **compute** is *alone*'s step, and **exchange** all that DDP's
# step takes beyond it: bytes / bandwidth, and what communication costs even without a limit. **r =
# exchange / compute**. Without any exchange DDP's step would be **1 + r** times as fast.

# %% jupyter={"source_hidden": true}
r = {link: (times["DDP"] / times["alone"]).median() - 1 for link, times in timed.items()}
print("r in the median round:", ", ".join(f"{names[link]} {r[link]:.2g}" for link in r), end=".\n")

# %% [markdown]
# ## Accumulate, and send once
#
# DDP averages in every `backward()`. Inside `no_sync()` it doesn't: gradients add up where they
# are, and the next `backward()` outside sends the sum. The forward pass must be inside, too: DDP
# decides there. Each batch's loss is divided, or the gradient would be four times as large.
#
# These functions `yield` after each batch: there the caller times and evaluates.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/less_often/methods.py", "accumulate")

# %% [markdown]
# The weights are those of DDP with a batch four times as large. That is also the price: the same
# samples give a quarter of the updates. The large batch's own learning rate brings some of it back
# ([lesson 01](01_data_parallelism.ipynb)).
#
# ## Local SGD: average weights, not gradients
#
# Each rank trains alone, with its own optimizer, and every 16 steps all take the mean of their
# weights (`average`; Stich, 2018; with many steps between, federated averaging: McMahan et al.,
# 2016). There are as many updates as with DDP, each made from one rank's batch.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/less_often/methods.py", "local_sgd")

# %% [markdown]
# After *every* step of SGD this would be DDP. (Not with AdamW: each rank scales by its own
# gradients.) How rarely may they talk? Averaged every 64 steps, they hold one model only at
# steps 64, 128, ...: these losses are taken there, not at the end as in the table. Steps to the
# goal are counted as for *alone*, by the mean of both ranks' losses.

# %% jupyter={"source_hidden": true}
shared = curves[curves.index.isin(range(64, all_steps + 1, 64))]  # all ways have just averaged
there = shared.mean().unstack(0)
apart = there.sub(there["DDP"], axis=0)[["local SGD", "local SGD 64", "alone"]]
words = apart.agg(lambda x: f"{x.median():.3f} ({x.min():.3f} to {x.max():.3f})")
at = ", ".join(map(str, shared.index))
print(f"Loss above DDP's, mean of the steps {at}: median (range) of the seeds:")
print(f"averaged every 16 steps {words['local SGD']}, every 64 {words['local SGD 64']},", end=" ")
print(f"never {words['alone']}.")
rarer = there["local SGD 64"] - there["local SGD"]
threshold = there["DDP"].max() - there["DDP"].min()
verdict = by_the_rule(rarer, threshold, ("worse", "better"))
print(f"Every 64 above every 16, seed by seed: {rarer.median():.3f} ({rarer.min():.3f} to", end=" ")
print(f"{rarer.max():.3f}). By the rule (threshold here {threshold:.3f}): {verdict}.")

# %% jupyter={"source_hidden": true}
rare = losses["local SGD 64"].apply(lambda curve: steps_to(curve, goal[curve.name]))
rare, fewer = rare.mean(skipna=False), sent["DDP"] / sent["local SGD 64"]
print(f"Every 64 steps: {fewer:.0f} times fewer bytes than DDP;", end=" ")
reached = f"{rare:.0f} steps to the goal" if rare > 0 else late
print(f"{reached} (alone {steps_needed['alone']:.0f}).")
if slow in timed and slow != links[0] and rare > 0:
    print(f"Computed at {bandwidth.mbit(slow):g} Mbit/s (alone's step there + bytes / bandwidth):")
    steps_of = {"local SGD 64": rare, "local SGD": steps_needed["local SGD"]}
    for way, count in steps_of.items():
        longer = 1 + 8 * sent[way] / bandwidth.mbit(slow) / step_seconds[slow]["alone"]
        every = 64 if way == "local SGD 64" else 16
        speed = steps_needed["alone"] / count / longer
        print(f"every {every} steps {speed:.2g} times as fast to the goal as alone.")

# %% [markdown]
# ## DiLoCo: local SGD with momentum
#
# DiLoCo ([Douillard et al., 2023](https://arxiv.org/abs/2311.08105)) takes the old shared weights
# minus the new ones, averaged over the ranks, as a gradient, the **pseudo-gradient**: an **outer
# optimizer**, SGD with Nesterov's momentum, takes a step with it. Without momentum and with the
# rate 1 it is local SGD.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/less_often/methods.py", "diloco")

# %% [markdown]
# It sends the bytes of our local SGD, so their losses compare directly:

# %% jupyter={"source_hidden": true}
apart = ends["DiLoCo"] - ends["local SGD"]
print(f"DiLoCo's loss above local SGD's, by seed: {', '.join(f'{x:+.3f}' for x in apart)}")
print(f"after {all_steps // 16} outer steps, with the outer rate 0.7 and the momentum 0.9.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(diloco_above_local=apart.to_list())

# %% [markdown]
# A candidate for the difference is how far an outer step goes. In PyTorch, g being the
# pseudo-gradient, old weights minus new ones:
#
#     v <- 0.9 v + g
#     weights <- weights - 0.7 (g + 0.9 v)
#
# At first v = g, so a step is 0.7 x 1.9 = 1.33 times g. With equal g, v grows towards (1 + 0.9 +
# 0.81 + ...) g = 10 g, and a step towards 0.7 x (1 + 9) = 7 times g; after 12 outer steps it is 5.2
# times g. That may be too far. (The paper takes hundreds of steps between two averages.) A test:
# with the momentum 0.5 a step grows to 0.7 x (1 + 1) = 1.4 times g. (That tests the momentum.
# Whether it is the length of the step, a lower outer rate would show.)

# %% jupyter={"source_hidden": true}
apart = ends["DiLoCo 0.5"] - ends["local SGD"]
print("With the momentum 0.5, loss above local SGD's, by seed:", end=" ")
print(f"{', '.join(f'{x:+.3f}' for x in apart)}.")
for other in ("local SGD", "DiLoCo"):
    verdict = by_the_rule(ends["DiLoCo 0.5"] - ends[other], spread, ("worse", "better"))
    print(f"Than {other}, by the rule: {verdict}.")
gap = ends["DiLoCo"] - ends["local SGD"]
if verdict == "better" and apart.median() < gap.median() / 2:
    print("So the momentum explains most of the difference here.")

# %% [markdown]
# ## Top-k, and what is left out
#
# Send the 1 % of the numbers that are largest in size. An all-reduce can't add them up, because
# each rank chooses different places. So each sends its values *and* their places to all: 2 % of the
# bytes, and headers, which weigh more in messages so small. What is not sent waits in `left_out`
# and is added to the next gradient: **error feedback**, as in PowerSGD.

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/less_often/methods.py", "top_k")

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    memory=(
        "Without that memory, after the same steps, is the loss higher, by the page's rule?",
        ["yes", "no"],
    )
)

# %% jupyter={"source_hidden": true}
lost = curves["top-k without memory"] - curves["top-k"]  # a column for each seed
at_the_end = lost.tail(5).mean()
higher = by_the_rule(at_the_end, spread, ("yes", "no"))
higher = "yes" if higher == "yes" else "no"

# %% slideshow={"slide_type": "slide"}
guess.compare(source, memory=higher)

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
print("Loss at the end without memory minus loss with it, by seed:", end=" ")
print(", ".join(f"{x:+.2f}" for x in at_the_end), end=".\n")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(without_memory=at_the_end.to_list())

# %% [markdown]
# A plus may come from numbers that, without the memory, are never among the largest 1 %: they never
# reach the optimizer, however long they point the same way. (Not tested as the cause.)
#
# On N ranks each link carries N - 1 parts of 2 %: beyond 100 ranks that is more than an all-reduce.
#
# ## How to read a claim
#
# From the papers' abstracts, read on 2026-11-25:
#
# - **DiLoCo** ([2023](https://arxiv.org/abs/2311.08105)): 500 times less communication, and as good
#   as synchronous training; language models, 8 workers;
# - **Deep Gradient Compression** ([Lin et al., 2017](https://arxiv.org/abs/1712.01887)): 270 to 600
#   times fewer bytes without losing accuracy; top-k and four more ideas;
# - **compression** was faster than an optimized synchronous SGD in 6 of more than 200 set-ups of
#   data centers ([Agarwal et al.,
#   2022](https://proceedings.mlsys.org/paper_files/paper/2022/hash/773862fcc2e29f650d68960ba5bd1101-Abstract.html)).

# %% jupyter={"source_hidden": true}
beating = verdicts.loc["DiLoCo"] == "faster"
fewer = learned.loc["DiLoCo", "times fewer bytes"]
print(f"DiLoCo here, after {all_steps // 16} outer steps: {fewer:.0f} times fewer bytes than DDP;")
print(f"a worse loss: {worse['DiLoCo']} (momentum 0.5: {worse['DiLoCo 0.5']});", end=" ")
print("faster than alone:", end=" ")
print(", ".join(beating.index[beating]) or "nowhere", end=".\n")

# %% [markdown]
# A claim holds for its model, length of training, settings and link. Ours: a tenth of a million
# parameters, tiny batches, two ranks, no GPU, one learning rate. The first two claims are about
# bytes and loss, but you pay for time, on each instance: read them together with r.
#
# ## When to use which
#
# When does a second instance save time at all? If a way's steps times its step take less than
# *alone*'s. So a step may take as many times as long as *alone*'s as *alone* needs more steps. It
# takes what it takes without a limit, plus bytes / bandwidth; from that comes the bandwidth from
# which each way pays. (By medians: a step more or less to the goal moves it. **?**: without a limit
# no difference from *alone* is shown, so this isn't either.)

# %% jupyter={"source_hidden": true}
unlimited, may_take = free[ways].median(), free["alone"].median()  # ms
may_take = may_take * steps_needed["alone"] / steps_needed[ways]
pays = (8000 * later[ways] / (may_take - unlimited)).where(may_take > unlimited)
pays = pays.map(lambda mbit: f"{float(f'{mbit:.2g}'):g}").replace("nan", "never")
pays += (verdicts.loc[ways, names[links[0]]] == "not shown").map({True: "?", False: ""})
limits = {"a step may take": may_take.round(1), "takes without a limit": unlimited.round(1)}
limits = {f"{name}, ms": ms for name, ms in limits.items()}
part = steps_needed["DDP"] / steps_needed["alone"]
exchanged = 1000 * (step_seconds[narrow]["DDP"] - step_seconds[narrow]["alone"])  # ms
if part < 1:
    print(
        f"At {names[narrow]} DDP would pay for a model that sends as much and computes for", end=" "
    )
    print(f"{part * exchanged / (1 - part):.0f} ms a step.")
pd.DataFrame(limits | {"pays from, Mbit/s": pays}).rename_axis("against alone")

# %% [markdown]
# Take the first row that fits; of the last rows, the one whose r is nearest to yours. They are for
# when you must have two instances (the data can't be brought to one place), or where a way pays.
# They name at most three ways, those that are shown to be faster than DDP, the fastest first.


# %% jupyter={"source_hidden": true}
def here(link: str) -> tuple[str, str, str]:
    """The row of a link: its r, what to take, and which ways are shown to be faster there."""
    name = names[link]
    faster = than_ddp[name][ways[1:]][ddp_verdicts.loc[ways[1:], name] == "faster"].nlargest(3)
    beats = than_alone[name][ways][verdicts.loc[ways, name] == "faster"].nlargest(3)
    mark = {way: " (worse loss at the end)" if worse[way] == "yes" else "" for way in ways}
    take = " or ".join(f"{way}{mark[way]}" for way in faster.index) or "DDP"
    shown = f"here, {name}; faster than one rank alone: {', '.join(beats.index) or 'none is shown'}"
    return f"r about {r[link]:.2g}", take, shown


# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
none = [name for name in names.values() if not (than_alone.loc[ways, name] > 2).any()]
none = f"here: {', '.join(none) or 'nowhere'}"
rows = [
    ("no way is twice as fast as one rank alone", "one instance: it costs less", none),
    ("memory short, or a large batch wanted", "accumulation, a higher rate", "lesson 01"),
    ("instances far apart", "DiLoCo, tuned", "papers; here only one other momentum"),
    ("r below 0.1", "DDP", "the equation: at most a tenth is to be saved"),
    *map(here, timed),
]
pd.DataFrame(rows, columns=["your situation", "take", "from"]).set_index("your situation")

# %% [markdown]
# ## As a script
#
# `train_torch_local_sgd.py` trains the course's classifier, on any PyTorch image. What differs from
# DDP is its `outer_step`, called every `--sync-every` steps. It is the last part of `diloco` above,
# by default with the outer rate 1 and no momentum: local SGD. With `--outer-learning-rate 0.7
# --outer-momentum 0.9` that step is DiLoCo's, whose inner optimizer is AdamW.

# %%
estimator = PyTorch(
    entry_point="train_torch_local_sgd.py",
    distribution=mpi,
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
# What is evaluated are the weights of the last average: after epoch 1 (step 22) those of step 16.
# So early the classifier may do no better than guessing one digit of ten. (Whether DDP would have
# learned more in these four epochs this job doesn't show: it has no other way beside it.)

# %% [markdown]
# ## Exercises
#
# In [exercises/12_talk_less_often.ipynb](exercises/12_talk_less_often.ipynb):
#
# 1. (10 minutes) One message for four batches, and the weights of one large batch.
# 2. (12 minutes) Will it pay? r and the fastest way on a slower link, before any job there.
# 3. (9 minutes) Top-k's memory: what is left out is not lost.
#
# ## Check yourself

# %% question=4 slideshow={"slide_type": "slide"}
workshop.quiz("12")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - To send less, send more rarely (accumulation, local SGD, DiLoCo), fewer numbers (PowerSGD,
#   top-k), or shorter ones (fp16). Each costs something: updates, agreement among ranks, computing.
# - Fewer bytes save at most the exchange: without it DDP's step would be 1 + r times as fast.
# - Sending less may beat DDP many times over. First beat one rank that trains alone, in seconds to
#   the same loss, seed by seed.
# - What top-k leaves out must wait, not vanish.
# - Between two averages the ranks' weights differ: compare hashes right after one.

# %% [markdown]
# ## Clean up
#
# The jobs' instances ended with them; models and logs stay until you delete them.
#
# ## Next
#
# [99 · Clean up](99_clean_up.ipynb): delete what is left, and prove it.

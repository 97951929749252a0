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
# # 05 · Horovod on training instances
#
# **After this lesson you can**
#
# - run one Horovod script in four places: here with `mpirun`, on one instance, on several, in a
#   VPC;
# - say from a measurement whether these differ, and from a step's length whether more ranks pay;
# - name the hyperparameters that `fit()` derives from `distribution`, and find mistakes in it that
#   raise no error;
# - see in the log which rank ran where, and prove that all ranks trained one model.
#
# **Before:** [lesson 00](00_setup.ipynb): job, channel, phase.
# [Lesson 04](04_horovod_on_the_notebook.ipynb): rank, local_rank, share of the ceiling.
#
# **Time:** 50 minutes, and 30 for the exercises. On AWS add half an hour, most of it spent waiting
# for instances.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet: what it says of AWS comes from AWS's documentation and its
# tools' source.
#
# **Cost on AWS:** about 0.22 USD: seven jobs, thirteen `ml.c5.xlarge` in all, 5 minutes each
# (us-east-1, price list of 2026-09-27). At most 0.76 USD for instances, even if every job hangs.
# Locally the lesson is free.

# %% [markdown]
# ## Set up
#
# - `instance_count`: how many instances a job gets.
# - `processes_per_host`: how many processes run on each of them.
# - `dataset`: what is trained on, `"digits"`, or `"mnist"`, which is downloaded once.
# - `epochs`, `global_batch_size`, `learning_rate`: of the trainings.
# - `measured_batch`: images in a step where speed is measured.
# - `steps`: how many steps a measurement takes.
# - `rounds`: how many measurements there are of each kind.
# - `short_batches`: smaller batches, for the section on the length of a step.
# - `max_run`: the number of seconds after which SageMaker stops a job.
# - `subnets`, `security_group_ids`: on AWS, the network for the jobs in a VPC (virtual private
#   cloud: a network of your own). If they are empty, the lesson uses the network that lesson 06
#   creates for your seat; without it those jobs run in no VPC. Locally leave them empty.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
instance_count = 2
processes_per_host = 2
dataset = "digits"
epochs = 12
global_batch_size = 256
learning_rate = 0.05
measured_batch = 512
short_batches = [8, 32, 64]
steps = 4
rounds = 9
max_run = 900
subnets = []
security_group_ids = []
expected_accuracy = 0.8

# %%
import os
import random
import tempfile
from pathlib import Path

import pandas as pd

import workshop
from workshop import DEMOS, TRAIN, plots
from workshop.account import stacks
from workshop.jobs import vpc
from workshop.launch.horovod import horovod_script
from workshop.launch.mpirun import mpirun
from workshop.measure import interleaved
from workshop.measure.scaling import Scaling, table

session = workshop.session(target=target, seat=seat)
large = "digits-28" if dataset == "digits" else dataset  # 28 x 28 pixels: a step worth dividing
channels, large_channels = session.upload(dataset), session.upload(large)
job_script = horovod_script("train_tf_horovod.py", session)
local_script = horovod_script("train_tf_horovod.py")
print(job_script.explanation)
made_network = target == "local" and vpc.network_from_stack(session) is None
try:
    network = vpc.network(session, subnets, security_group_ids)
except vpc.NoNetwork as missing:  # on AWS; lesson 06 creates one
    network = {}
    print(f"No job runs in a VPC. {missing}")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Instances times processes
#
# For a job you choose two numbers, written here as **instances x processes**:
#
# | | what the ranks share | how gradients travel |
# |---|---|---|
# | `1 x n` | one instance: its cores and its memory | through memory |
# | `n x 1` | nothing | through the network |
# | `n x m` | cores with some ranks, nothing with the others | both |

# %% [markdown]
# In all three, **world_size** is instances times processes, and the script is the same.
#
# The table describes AWS. With `target = "local"` every "instance" is simulated on this machine: it
# has a host name and a network of its own, but shares this machine's cores.
#
# ## Ask for the jobs
#
# What is new in the estimator since lesson 00: `instance_count`, `distribution`, `max_run` and the
# script's folder. With `mpi` the first instance runs `mpirun`, which starts all ranks and tells
# them about each other. `custom_mpi_options` is appended to that command: `-x NAME=VALUE` sets an
# environment variable on every rank. The one printed below makes a waiting rank give up its core.

# %% slideshow={"slide_type": "slide"}
from sagemaker.tensorflow import TensorFlow


def estimator(instances: int, processes: int, script: str, hyperparameters: dict, **other):
    """Describe a Horovod job on instances x processes. It doesn't start anything yet."""
    source = DEMOS if (DEMOS / script).is_file() else TRAIN
    mpi = {"enabled": True, "processes_per_host": processes}
    mpi["custom_mpi_options"] = job_script.mpi_options
    settings = {
        "entry_point": script,
        "framework_version": "2.12.0",
        "py_version": "py310",
        "instance_type": instance_type,
        "instance_count": instances,
        "distribution": {"mpi": mpi},
        "hyperparameters": dict(hyperparameters),  # a copy: the SDK adds its own entries
        "max_run": max_run,
    }
    return TensorFlow(**session.job_settings("horovod", source_dir=source) | settings | other)


# %%
print("custom_mpi_options:", job_script.mpi_options)

# %% [markdown]
# <details><summary>What other texts say, and which versions</summary>
#
# - *There are two ways, parameter servers and Horovod.* Version 2.257.7 of the SDK knows these keys
#   of `distribution`: `parameter_server` (lesson 03), `mpi`, `multi_worker_mirrored_strategy`
#   (below), `torch_distributed` (lesson 01), `smdistributed` and `pytorchddp` (SMDDP, lesson 07),
#   `pytorchxla`, and `instance_groups`, which names the groups of instances that take part.
# - *`processes_per_host` must be below the number of GPUs.* On an instance with 4 GPUs take 4, a
#   process for each. On a CPU instance start with at most one process per core.
# - *NCCL's messages need `--NCCL_DEBUG INFO`.* SageMaker's toolkit passes `-x NCCL_DEBUG=INFO` by
#   itself. For less, write `--NCCL_DEBUG WARN`: the toolkit takes that out of `custom_mpi_options`
#   and changes its own.
# - *`Tensorflow(…)`, `distributions`, `train_instance_count`, `ml.p2`, `ml.p3`*: misspelled or
#   retired. The last of AWS's TensorFlow images with Horovod is **2.12** (`py310`). We have not run
#   these scripts on a GPU.
#
# </details>
#
# ## The cost, before it runs
#
# First five jobs that measure (some are identical: their difference is noise), then two that train.
# The 300 seconds for each are an estimate for AWS, where a job of this size mostly starts and
# stops. *USD at most* is an upper bound: `max_run`, after which SageMaker stops a job that hangs,
# and the 120 seconds that stopping may take.

# %%
n, m = instance_count, processes_per_host
both = f"{n} x {m}"
in_vpc = f"{both} in a VPC" if network else f"{both} again, outside a VPC"
layouts = {f"1 x {n}": (1, n), f"{n} x 1": (n, 1), f"{n} x 1 again": (n, 1)}
layouts |= {both: (n, m), in_vpc: (n, m)}
planned = {f"measure {name}": count for name, (count, _) in layouts.items()}
planned |= {f"train {both}": n, f"train {n} x 1 MultiWorker": n}
costs = workshop.cost_table(
    (
        {"jobs": name, "instance_type": instance_type, "instance_count": count, "seconds": 300}
        for name, count in planned.items()
    ),
    max_run=max_run,
).set_index("jobs")
costs[["instance_count", "USD", "USD at most"]]

# %%
total, most = costs["USD"].sum(), workshop.up_to_cents(costs["USD at most"].sum())
print(
    f"All {len(costs)} jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Locally: free."
)

# %% jupyter={"source_hidden": true} tags=["results"]
assert n > 1 and m > 1, "Choose 2 or more for instance_count and processes_per_host."
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result first: one script, four places
#
# Each job runs lesson 04's measurement: one process alone, ranks that exchange nothing, and ranks
# that average their gradients. Every speed-up is a ratio within a round of one job. The jobs run
# in random order (`mpirun` here runs last). Locally a VPC only adds a field, `VpcConfig`, to the
# request; no packet takes another way.
#
# **Predict** two speed-ups over one process: of two ranks on two instances, and of four ranks
# (locally: on this machine's cores).

# %% slideshow={"slide_type": "-"}
cores = f"this machine's {os.cpu_count()} cores" if target == "local" else f"{n} {instance_type}"
guess = workshop.guess(
    two=f"How many times as fast as one process is {n} x 1?",
    all_ranks=f"And {both}, {n * m} ranks on {cores}?",
)

# %%
measure = {"global-batch-size": measured_batch, "steps": steps, "rounds": rounds}
measure["library"] = job_script.library
in_random_order = random.sample(list(layouts), len(layouts))
jobs = {
    name: estimator(
        *layouts[name], "measure_scaling.py", measure, **(network if name == in_vpc else {})
    )
    for name in in_random_order
}
done = workshop.run_jobs(jobs, large_channels)

# %% [markdown]
# One of the five, the job in the VPC:
#
# <!-- SDK v3: measure 2 x 2 in a VPC -->

# %% [markdown]
# The first place needs no job: `mpirun` in this notebook, with the hyperparameters as flags, which
# is how SageMaker passes yours to the script. (The same start measures smaller batches, for the
# next section.)

# %%
steps_of = {batch: 3 * steps for batch in short_batches} | {measured_batch: steps}
flags = ["--library", local_script.library, "--training", workshop.DATA / large / "training"]
flags += ["--rounds", rounds, "--steps", *steps_of.values()]
flags += ["--global-batch-sizes", ",".join(map(str, steps_of))]
program = DEMOS / "measure_scaling.py"
run = mpirun(n, program, *flags, show=False, timeout=600, **local_script.environment)
by_batch = Scaling.by_batch(run.events)
scalings = {f"mpirun here, 1 x {n}": by_batch[measured_batch]}
scalings |= {name: Scaling.from_records(done[name].events) for name in layouts}

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
speed_ups = pd.DataFrame(
    {name: scaling.rounds["alone"] / scaling.rounds["step"] for name, scaling in scalings.items()}
)
middle = speed_ups.median()
first, again = f"{n} x 1", f"{n} x 1 again"
identical = {first: again}
pairs = {f"mpirun here, 1 x {n}": f"1 x {n}", first: f"1 x {n}"}
if target == "local" or not network:  # the VPC is a mere field of the request, or isn't there
    identical[in_vpc] = both
else:
    pairs[in_vpc] = both


def typical_factor(name: str, other: str) -> float:
    """By which factor a round of one job and a round of another differ: the median of all pairs."""
    factors = [a / b for a in speed_ups[name] for b in speed_ups[other]]
    return interleaved.band(pd.Series(factors))[1]


noise = max(typical_factor(name, other) for name, other in identical.items())


def compared(name: str, other: str) -> str:
    """How two jobs differ, if they differ by more than the noise."""
    times = middle[name] / middle[other]
    if 1 / noise <= times <= noise:
        return "no difference shown"
    return "faster" if times > 1 else "slower"


# %% jupyter={"source_hidden": true}
def span(values, form: str = ".3g") -> str:
    """The least and the largest value, or a single number where both read the same."""
    return " to ".join(dict.fromkeys(format(edge, form) for edge in (min(values), max(values))))


verdicts = {name: compared(name, other) for name, other in pairs.items()}
shares = {name: of.rounds.div(of.rounds["alone"], axis=0) for name, of in scalings.items()}
exchange = pd.Series({name: 1000 * of.rounds["exchange"].median() for name, of in scalings.items()})
of_n = [name for name, scaling in scalings.items() if scaling.world_size == n]
of_all = [name for name in scalings if name not in of_n]
against_one = {
    name: interleaved.verdict(speed_ups[name], of.rounds["step"] / of.rounds["again"])
    for name, of in scalings.items()
}
faster = sum(against_one[name] == "faster" for name in of_n)
outcomes = [compared(name, other) for name in of_all for other in (first, again)]
than = outcomes[0] if len(set(outcomes)) == 1 else "no difference shown"  # each job against each
than = f"no difference from {first} shown" if "no " in than else f"{than} than {first}"

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
title = f"{n} ranks: {span(middle[of_n], '.2f')} times as fast as one process"
title += f" (shown in {faster} of {len(of_n)} measurements);"
title += f"\n{n * m} ranks: {span(middle[of_all], '.2f')} times; {than}"
if set(verdicts.values()) == {"no difference shown"}:
    title += f";\nplaces: no difference shown (rounds of identical jobs: {noise - 1:.0%} apart)"
parts = {name: share[["compute", "wait", "exposed"]].median() for name, share in shares.items()}
parts = pd.DataFrame(parts).T.clip(lower=0).rename(columns={"exposed": "exposed communication"})
spread = interleaved.summary(pd.DataFrame({name: share["step"] for name, share in shares.items()}))
x = "one process's step = 1; medians of rounds (needn't add up; below 0 drawn as 0)"
plots.stacked_bars(parts, title, x, spread=spread)
guess.compare(two=middle[first], all_ranks=middle[both])

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
gap = parts.loc[of_all].min() - parts.loc[[first, again]].max()
twins_gap = pd.DataFrame(
    [(parts.loc[name] - parts.loc[other]).abs() for name, other in identical.items()]
).max()
grown = parts.columns[gap > twins_gap]
print(f"{n * m} ranks on {cores}: {than} (each job against each: slower in", end=" ")
print(f"{outcomes.count('slower')} of {len(outcomes)} comparisons).")
if not len(grown):
    print("No part of their step is larger by more than identical jobs differ.")
else:
    print(f"Larger in each job of {n * m} ranks, by more than identical jobs differ:", end=" ")
    print(f"{', '.join(grown)}.")
print(f"An exchange alone takes {span(exchange[of_n], '.1f')} ms with {n} ranks, and", end=" ")
print(f"{span(exchange[of_all], '.1f')} ms with {n * m}.")
for name, verdict in verdicts.items():
    print(f"{name}, compared with {pairs[name]}: {verdict}", end=" ")
    print(f"({middle[name] / middle[pairs[name]]:.3f} times; noise: {noise:.3f} either way).")

# %% [markdown]
# Where ranks outnumber the cores, they take turns: probably a rank whose turn comes later makes the
# others wait, and an exchange needs a turn of each. On AWS every instance brings its own cores, and
# the question becomes how fast the network between them is (lesson 06).
#
# No exchange takes less than one cycle of Horovod's clock, about 1.1 ms (lesson 04): it can't tell
# two paths apart that are both faster.
#
# ### How sure is this?
#
# Rounds of different jobs aren't pairs. So here noise is how far two *identical* jobs lie apart: a
# round of one against a round of the other, the median of all such pairs. (Locally there are two
# pairs of such jobs; the larger noise counts.) Two jobs differ only if their medians do by more: a
# cautious rule, since medians vary less than single rounds.

# %%
columns = ["speed-up", "ceiling", "share of the ceiling", "wait, ms", "exchange alone, ms"]
table(scalings)[columns]

# %% [markdown]
# *Wait*: how much longer the slowest rank computes than the mean. *Exposed communication* (in the
# picture): what a step takes beyond computing and wait. *Ceiling*: the speed-up of ranks that
# exchange nothing, by the mean rank (so waiting lowers the share, too). (A ceiling above the
# number of cores: noise, or smaller parts fit better into a cache; lesson 01, not tested.)

# %% jupyter={"source_hidden": true}
for name, other in identical.items():
    reach, share = typical_factor(name, other), [scalings[job].share for job in (name, other)]
    apart = max(middle[name], middle[other]) / min(middle[name], middle[other])
    print(f"{name} and {other} are identical jobs. Noise, one round of each: typically", end=" ")
    print(f"{reach - 1:.0%} apart (median of all pairs). Their medians: {apart - 1:.0%} apart.")
    if max(of.low for of in share) > min(of.high for of in share):
        print("    Their shares of the ceiling don't even overlap: the rounds of one job resemble")
        print("    each other.")
in_noise = 1000 * (noise - 1) * scalings[first].rounds["step"].median()
print(
    f"So a difference below {noise - 1:.0%} can't show: in {first}, {in_noise:.1f} ms of a", end=" "
)
print(
    "step. A larger one would lie between\nthese jobs: to blame the places you need several",
    end=" ",
)
print(f"jobs in each. (1 x {n} and mpirun here have no identical run.)")

# %% jupyter={"source_hidden": true} tags=["results"]
for name, scaling in scalings.items():
    ranks = n * m if name in (both, in_vpc) else n
    assert scaling.world_size == ranks, f"{name}: {scaling.world_size} ranks ran, not {ranks}."
workshop.save_results(
    scaling={name: scaling.record() for name, scaling in scalings.items()},
    comparison=middle.to_dict(),
    verdicts=verdicts,
    noise=noise,
    against_one=against_one,
)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The length of a step decides
#
# The exchange moves the same bytes in a short step as in a long one. So divide fewer images, with
# `mpirun` here.
#
# **Predict.** Two ranks save half of one process's step, and pay for the exchange. So they are
# slower if the exchange costs more than that half: if one process's step is shorter than twice the
# exchange, whose time alone is in the table above. But does it cost what it takes alone? Guess the
# limit that is computed from the measured steps.

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    limit="Below how many ms of one process's step are two ranks slower than one process?",
)

# %% [markdown]
# *Limit* = 2 x (step of two ranks − half of one process's step). The answer is from the row whose
# limit is nearest to one process's step.

# %% slideshow={"slide_type": "slide"}
milliseconds = {batch: 1000 * scaling.rounds for batch, scaling in by_batch.items()}
overheads = {batch: (ms["step"] - ms["alone"] / n).median() for batch, ms in milliseconds.items()}
lengths = pd.DataFrame(
    {
        "one process, ms": [ms["alone"].median() for ms in milliseconds.values()],
        "speed-up": [scaling.speed_up.median for scaling in by_batch.values()],
        "ceiling": [scaling.ceiling.median for scaling in by_batch.values()],
        "exposed communication, ms": [ms["exposed"].median() for ms in milliseconds.values()],
        "exchange alone, ms": [ms["exchange"].median() for ms in milliseconds.values()],
        "limit, ms": [overhead * n / (n - 1) for overhead in overheads.values()],
    },
    index=pd.Index(by_batch, name="images"),
)
lengths["verdict"] = [
    interleaved.verdict(ms["alone"] / ms["step"], ms["step"] / ms["again"])
    for ms in milliseconds.values()
]
limits = lengths["limit, ms"].loc[short_batches]
nearest = (limits / lengths["one process, ms"] - 1).abs().idxmin()
guess.compare("computed", limit=limits[nearest])
lengths.round(2)

# %% jupyter={"source_hidden": true}
at, ups = lengths["one process, ms"], lengths["speed-up"]
short = lengths.loc[short_batches]
alone_ms, exposed = short["exchange alone, ms"], short["exposed communication, ms"]
print(f"The exchange alone takes {span(alone_ms, '.1f')} ms; what it adds to a step,", end=" ")
print(f"{span(exposed, '.1f')} ms.")
print(f"Limit from the exchange alone: {n / (n - 1) * alone_ms.median():.1f} ms;", end=" ")
print(f"from the measured steps: {span(limits)} ms.")
beyond = {"more computing": [], "waiting": [], "more exchange": []}
for ms in (milliseconds[batch].median() for batch in short_batches):
    longer = (ms["compute"] - ms["alone"] / n, ms["wait"], ms["exposed"] - ms["exchange"])
    for cause, value in zip(beyond, longer, strict=True):
        beyond[cause].append(round(value, 1) + 0.0)  # + 0.0: not -0.0
print(f"Against 1/{n} of one process's step and the exchange alone, a step of {n} has", end=" ")
print(", ".join(f"{span(ms, '.1f')} ms {cause}" for cause, ms in beyond.items()), end=" ")
print("(differences of medians: they needn't add up).")

# %% jupyter={"source_hidden": true}
ms, longest = milliseconds[measured_batch], lengths.loc[measured_batch]
floor = (by_batch[measured_batch].noise.high - 1) * ms["step"].median()
if_all_exposed = ms["compute"] + ms["wait"] + ms["exchange"]
hidden = interleaved.verdict(if_all_exposed / ms["step"], ms["step"] / ms["again"])
words = {"faster": "less than alone, so a part is hidden", "slower": "more than alone"}
print(f"At {measured_batch} images the exchange adds", end=" ")
print(f"{longest['exposed communication, ms']:.1f} ms (noise floor {floor:.1f} ms):", end=" ")
print(words.get(hidden, "whether a part is hidden is lost in the noise"), end=".\n")
print(f"({measured_batch} images would give {longest['limit, ms']:.1f} ms, noise floor", end=" ")
print(f"{n / (n - 1) * floor:.1f} ms: a limit holds only near the step that gives it.)")
at_lengths = {
    verdict: ", ".join(f"{ms:.3g}" for ms in at[lengths["verdict"] == verdict])
    for verdict in ("slower", "no difference shown", "faster")
}
shown = "; ".join(f"{verdict} at {ms} ms" for verdict, ms in at_lengths.items() if ms)
print(f"Measured, {n} ranks against one process: {shown}. The limit is computed.")
title = f"{n} ranks against one process:\n{shown}"

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
x = "a step of one process, ms (logarithmic)"
points = [
    f"{row['one process, ms']:.3g} ms: {row['speed-up']:.2g} times, ceiling {row['ceiling']:.2g}"
    for _, row in lengths.iterrows()
]
alt = f"{title}. {'; '.join(points)}.".replace("\n", " ")
with plots.canvas(title, x, "times as fast as one process", size=(7.5, 3.4), alt=alt) as axes:
    rounds_of = [scaling.speed_up for scaling in by_batch.values()]
    reach = [ups - [of.low for of in rounds_of], [of.high for of in rounds_of] - ups]
    label = "measured: median, lowest and highest round"
    axes.errorbar(at, ups, reach, fmt="-o", color=plots.COLOURS[0], capsize=3, label=label)
    ceiling = f"ceiling: {n} processes, nothing exchanged"
    axes.plot(at, lengths["ceiling"], "--s", color=plots.COLOURS[1], label=ceiling)
    axes.axhline(1, color="0.5", linestyle=":", label="as fast as one process")
    label = f"limit: {limits[nearest]:.3g} ms (computed from the step of {at[nearest]:.3g} ms)"
    axes.axvline(limits[nearest], color="0.5", linestyle="--", label=label)
    axes.set_xscale("log")
    axes.set_xticks(at, [f"{ms:.3g}" for ms in at])
    axes.minorticks_off()
    axes.set_ylim(0)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)

# %% [markdown]
# Verdicts: lesson 01's rule (8 of 9 rounds on one side, median outside the noise). Part of the
# overhead isn't exchange: some work doesn't halve with the batch (compare the ceiling with 2).
# Choose the batch, and so the length of a step, before you choose where to run.

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(by_length=lengths.reset_index().to_dict("list"), limits=limits.to_dict())

# %% [markdown]
# ## What `fit()` sent
#
# Now train, with all instances and all processes, and look at one job in depth. The script adds
# these lines to lesson 00's. It divides a fixed global batch (strong scaling), so its learning rate
# stays. It builds the optimizer at once, so it can broadcast before the first step, not after it as
# in lesson 04.

# %% slideshow={"slide_type": "slide"}
name = job_script.script
one_process = "train_torch.py" if "torch" in name else "train_tf.py"
essential = ["hvd.init()", "slice(hvd.rank()", "hvd.broadcast_variables", "DistributedGradientTape"]
workshop.show_diff(
    f"train/{one_process}", f"train/{name}", essential if job_script.library == "tensorflow" else ()
)

# %%
hyperparameters = {
    "epochs": epochs,
    "global-batch-size": global_batch_size,
    "learning-rate": learning_rate,
    "threads-per-rank": 1,
}
job = estimator(n, m, job_script.script, hyperparameters)
job.fit(channels, wait=False)
result = workshop.follow(job)

# %% [markdown]
# <!-- SDK v3: 2 x 2 -->

# %% jupyter={"source_hidden": true} tags=["results"]
world_size = n * m
start = result.table("start").iloc[0]
assert start["world_size"] == world_size, f"{start['world_size']} ranks ran, not {world_size}."
workshop.save_results(status=result.status, world_size=int(start["world_size"]))

# %% [markdown]
# `x 2 instance(s)` after the billable seconds: you pay for both instances until the slower one is
# done. `fit()` packed `scripts/train/` into an archive, uploaded it to S3, and sent one
# `CreateTrainingJob` request. That request has no field for `distribution`. What it says travels as
# **hyperparameters**, beside yours. Those that the SDK adds begin with `sagemaker_`, except
# `model_dir`, a folder for the model.

# %% slideshow={"slide_type": "slide"}
pd.DataFrame({"value": {name: str(value) for name, value in result.hyperparameters.items()}})

# %% [markdown]
# On the instance, AWS's toolkit reads the three `sagemaker_mpi_…` entries and builds a command from
# them: the hosts, the slots on each, and the number of ranks. A slot is a place for one process, as
# many as the request declares: not a core. So the `Oversubscribed: FALSE` below says nothing about
# cores.

# %% slideshow={"slide_type": "fragment"}
command = result.matching("mpirun --host")[0].text
print(command.split(" --allow-run-as-root")[0])
for line in result.matching("Num slots:"):
    print(" ".join(line.text.split()))

# %% jupyter={"source_hidden": true} tags=["results"]
assert f"-np {world_size}" in command, f"mpirun was not told to start {world_size} processes."
workshop.save_results(command=command.split(" --allow-run-as-root")[0])

# %% [markdown] slideshow={"slide_type": "slide"}
# ## One model, or four?
#
# Four processes that don't exchange gradients would *also* finish without an error, and each would
# learn.
# Equal weights are a proof here, because this script gives each rank different images
# (mark 2 in the diff). At the end each rank prints a SHA-256 hash of its weights. (It doesn't print
# its local_rank: the table counts the ranks of each host.)

# %% slideshow={"slide_type": "-"}
weights = result.table("weights").sort_values("rank", ignore_index=True)
weights["local_rank (counted)"] = weights.groupby("host").cumcount()
weights["weights"] = weights["weights_sha256"].str[:16] + "…"
weights[["rank", "host", "local_rank (counted)", "weights"]]

# %%
local_batch = int(start["local_batch_size"])
print(f"Each rank took {local_batch} of the {global_batch_size} images of a step.")

# %% jupyter={"source_hidden": true} tags=["results"]
per_host, different = weights["host"].value_counts(), weights["weights_sha256"].nunique()
assert sorted(weights["rank"]) == list(range(world_size)), "A rank is missing in the log."
assert (per_host == processes_per_host).all(), f"Uneven: {per_host.to_dict()}"
assert different == 1, f"{different} different sets of weights: the ranks did not synchronise."
workshop.save_results(ranks_per_host=per_host.to_dict(), hashes=weights["weights_sha256"])
epoch_table = result.table("epoch")
losses, accuracy = epoch_table["train_loss"], result.metrics["test_accuracy"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.save_results(losses=losses, accuracy=accuracy, different_weights=different)

# %% [markdown]
# The counterexample runs here, with `mpirun`: a copy of the script without the line that averages.

# %%
line, instead = {
    "tensorflow": ("tape = hvd.DistributedGradientTape(tape)", "pass"),
    "torch": ("DistributedDataParallel(model)", "model"),
}[local_script.library]
text = (TRAIN / local_script.script).read_text()
data = workshop.DATA / dataset
flags = [f"--{name}={value}" for name, value in hyperparameters.items()]
flags += ["--training", data / "training", "--test", data / "test"]
with tempfile.TemporaryDirectory() as folder:
    copy = Path(folder) / local_script.script
    copy.write_text(text.replace(line, instead))
    flags += ["--save-to", Path(folder) / "model"]
    separate = mpirun(n * m, copy, *flags, show=False, **local_script.environment)
different_alone = separate.table("weights")["weights_sha256"].nunique()
accuracy_alone = separate.table("epoch")["test_accuracy"].iloc[-1]
print(f"Without averaging: {different_alone} different sets of weights. The first rank's", end=" ")
print(f"accuracy is {accuracy_alone:.1%} (with averaging {accuracy:.1%}; one run each, so this")
print("compares nothing); no error anywhere.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert different_alone == n * m, "Ranks that don't average ended with the same weights."
workshop.save_results(different_without_averaging=different_alone)

# %% [markdown]
# ## Elsewhere: other requests
#
# **In a VPC.** A job's instances normally use a network of SageMaker's own. With `subnets` and
# `security_group_ids` they get an address in *your* network. That changes who can reach whom
# ([lesson 06](06_vpc_colocation.ipynb)); we know of no measurement that shows that a VPC by itself
# makes training faster.
#
# **TensorFlow's own way.** **MultiWorkerMirroredStrategy** keeps a copy of the model, a *replica*,
# in each worker, and averages gradients with its own all-reduce; here, on CPUs, over gRPC. There is
# no `mpirun`: SageMaker starts the script on every instance and lists the workers in the
# environment variable `TF_CONFIG`. Each step of the Horovod script has its counterpart in
# [`train_tf_mirrored.py`](../scripts/train/train_tf_mirrored.py):
#
# | | Horovod | MultiWorkerMirroredStrategy |
# |---|---|---|
# | meet the others | `hvd.init()`; `mpirun` lists them | create it; `TF_CONFIG` lists them |
# | split the data | rank i of n takes `images[i::n]` | the strategy splits each global batch |
# | average gradients | `DistributedGradientTape` | loss `/ world_size`, since the strategy sums |
# | start equal | `broadcast_variables` | variables created in `strategy.scope()` |
# | save | rank 0 alone | rank 0 alone; all wait for it |
#
# The first table below compares these two jobs' requests with those of the 2 x 2 jobs.

# %%
multi_worker = {"distribution": {"multi_worker_mirrored_strategy": {"enabled": True}}}
native_name = f"{n} x 1 MultiWorker"
native_job = estimator(n, 1, "train_tf_mirrored.py", hyperparameters, **multi_worker)
native = workshop.run_jobs({native_name: native_job}, channels)[native_name]

# %% [markdown]
# <!-- SDK v3: 2 x 1 MultiWorker -->

# %%
pd.set_option("display.max_colwidth", None)


def fields(job) -> set[str]:
    """What a request has: its fields, and its hyperparameters."""
    return set(job.description) | {f"hyperparameter {name}" for name in job.hyperparameters}


compared_jobs = {in_vpc: (done[in_vpc], done[both]), native_name: (native, result)}
pd.DataFrame(
    {
        f"{name}, against {both}": {
            "new in the request": ", ".join(sorted(fields(job) - fields(other))) or "-",
            "missing": ", ".join(sorted(fields(other) - fields(job))) or "-",
        }
        for name, (job, other) in compared_jobs.items()
    }
).T

# %% slideshow={"slide_type": "subslide"}
runs = {both: result, native_name: native, f"{both} without averaging, here": separate}
last_losses = [run.table("epoch")["train_loss"].iloc[-1] for run in runs.values()]
sets = [run.table("weights")["weights_sha256"].nunique() for run in runs.values()]
ranks = [len(run.table("weights")) for run in runs.values()]
pd.DataFrame({"ranks": ranks, "last loss": last_losses, "sets of weights": sets}, index=list(runs))

# %% [markdown]
# The same global batches, divided among another number of ranks: the same loss but for rounding.
# Ranks that don't average end with a different loss. (Equal weights alone would not show that every
# rank's gradients count: a script could copy rank 0's weights after each step.) Here is the
# `TF_CONFIG` of the last worker: all workers, and under `task` which of them this is.

# %%
last = max(native.matching("TF_CONFIG="), key=lambda line: line.host)
print(f"{last.host}: {last.text}")

# %% jupyter={"source_hidden": true} tags=["results"]
hashes = native.table("weights")["weights_sha256"]
assert hashes.nunique() == 1, "The workers did not synchronise."
sent = done[in_vpc].description.get("VpcConfig", {})
assert sent.get("Subnets") == network.get("subnets"), "The request named other subnets."
assert "VpcConfig" not in done[both].description, "This job was not meant to be in a VPC."
last_losses.pop()  # of the ranks that don't average
if job_script.library == "torch":
    last_losses.pop()  # MultiWorkerMirrored trains TensorFlow's model
loss_spread = max(last_losses) - min(last_losses)
assert loss_spread < 0.001, "One configuration learned something else: see last loss."
workshop.save_results(
    native_hashes=hashes, tf_config=last.text, vpc_config=sent, loss_spread=loss_spread
)

# %% [markdown]
# ## How much of the bill is training?

# %%
step_count = int(epoch_table["step"].iloc[-1])
steps_each = epoch_table["step"].diff().fillna(epoch_table["step"])
stepping = (steps_each * epoch_table["step_seconds"]).sum()
share = stepping / result.billable_seconds
print(
    f"{step_count} steps took {stepping:.2f} of {result.billable_seconds} billable s: {share:.0%}"
)
print("(Each epoch's first step isn't timed, and counts as long as its others.", end=" ")
print(f"A step took {1000 * stepping / step_count:.1f} ms;\nthe metric above is the last epoch's.)")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(share_of_steps=share)

# %% [markdown]
# The rest goes, among others, into starting Python, importing TensorFlow, building the model and
# saving it. More ranks don't shorten that, so for a small job a second instance mostly adds a
# second bill. On AWS SageMaker's launcher also sleeps for 30 billed seconds on every instance after
# `mpirun` has ended ([sagemaker-training 5.1.0,
# `mpi.py`](https://github.com/aws/sagemaker-training-toolkit/blob/v5.1.0/src/sagemaker_training/mpi.py),
# read on 2026-11-25).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Mistakes that fail silently
#
# The SDK ignores unknown keys: inside the dictionaries of `distribution`, as shown below, and (we
# read its source) in `distribution` itself. And it can't know which launcher your script needs. So
# both jobs would end as `Completed` (not run here). The next cell shows what each would send, and
# starts nothing. NaN means: not sent.
#
# - In `distribution["mpi"]`, `custom_mpi_option` instead of `custom_mpi_options`.
# - `parameter_server` instead of `mpi`, in a Horovod job.


# %% tags=["deterministic"] slideshow={"slide_type": "fragment"}
def would_send(distribution: dict) -> dict:
    """The hyperparameters about launchers that this distribution becomes."""
    built = estimator(2, 1, "train_tf_horovod.py", {}, distribution=distribution).hyperparameters()
    return {key: value for key, value in built.items() if "_mpi_" in key or "_enabled" in key}


options = "-x HOROVOD_LOG_LEVEL=info"
right = would_send({"mpi": {"enabled": True, "custom_mpi_options": options}})
misspelled = would_send({"mpi": {"enabled": True, "custom_mpi_option": options}})
server = would_send({"parameter_server": {"enabled": True}})
pd.DataFrame({"right": right, "custom_mpi_option": misspelled, "parameter_server": server})

# %% [markdown]
# In the second column your option is missing. In the third there is no `mpirun`: every instance
# would start the script by itself. Each process would find that it is rank 0 of 1, train alone, and
# complete.

# %% jupyter={"source_hidden": true} tags=["results"]
key = "sagemaker_mpi_custom_mpi_options"
assert options in right[key] and options not in misspelled[key], "Compare the two columns above."
assert "sagemaker_mpi_enabled" not in server, "A parameter server job must not start MPI."
workshop.save_results(
    misspelled_option_sent=options in misspelled[key],
    parameter_server_starts_mpi="sagemaker_mpi_enabled" in server,
)

# %% [markdown]
# ## Exercises
#
# In [exercises/05](exercises/05_horovod_on_training_instances.ipynb), each with a check:
#
# 1. *A configuration for a budget* (5 minutes, easy): the most instances that your money covers.
# 2. *Six mistakes in one dictionary* (10 minutes, medium): repair a `distribution` from the web.
# 3. *Which job did not synchronise?* (5 minutes, easy): two logs, two good accuracies.
# 4. *The referee* (10 minutes, medium): which differences of a table are real?
#
# ## Check yourself

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("05")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - `instance_count` × `processes_per_host` = `world_size`. The script is the same everywhere.
# - The length of a step decides whether ranks pay. A difference between places counts only when it
#   exceeds that of identical jobs.
# - `distribution={"mpi": …}` becomes three hyperparameters, and these become one `mpirun` command
#   on the first instance. The SDK silently ignores unknown keys: look at what it sends.
# - Equal hashes of ranks that took different images prove that they synchronised. A good accuracy
#   doesn't.
# - MultiWorkerMirroredStrategy needs no `mpirun`.

# %% [markdown]
# ## Clean up
#
# All instances were released when their jobs ended. Models and logs stay in S3 and in CloudWatch
# Logs until you delete them. `local-sagemaker stop` stops the emulator; with `--forget` it empties
# it, too. The next cell deletes the network that this lesson made there.

# %%
if made_network:
    stacks.delete(session, ("network",))

# %% [markdown]
# ## Next
#
# What decides between instances is the link between them: [lesson 06](06_vpc_colocation.ipynb).

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
# # 05 · Horovod on training instances
#
# **After this lesson you can**
#
# - run one Horovod script in four ways: here with `mpirun`, on one instance, on several, in a VPC;
# - name the hyperparameters that `fit()` derives from `distribution`, and find mistakes in it that
#   raise no error;
# - see in the log which rank ran where, and prove that all ranks trained one model;
# - do the same with TensorFlow's own MultiWorkerMirroredStrategy;
# - compare configurations by step time, samples per second and cost.
#
# **Before:** [lesson 00](00_setup.ipynb): job, channel, phase.
# [Lesson 04](04_horovod_on_the_notebook.ipynb): rank, local_rank, and the Horovod script.
#
# **Time:** 45 minutes, and 30 for the exercises. On AWS add an hour, most of it spent waiting for
# instances.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet: what it says of AWS comes from AWS's documentation and its
# tools' source.
#
# **Cost on AWS:** about 0.34 USD: twelve jobs, twenty `ml.c5.xlarge` in all, 5 minutes each
# (us-east-1, price list of 2026-09-27). At most 1.16 USD, whatever goes wrong. The lesson computes
# both before it starts anything. Locally the lesson is free.

# %% [markdown]
# ## Set up
#
# - `instance_count`: how many instances a job gets.
# - `processes_per_host`: how many processes run on each of them.
# - `dataset`: `"digits"`, or `"mnist"`, which is downloaded once.
# - `repeats`: how often each configuration is run. One run alone can't tell a difference from
#   noise.
# - `epochs`, `global_batch_size`, `learning_rate`: the training, the same in all configurations.
# - `max_run`: the number of seconds after which SageMaker stops a job.
# - `subnets`, `security_group_ids`: on AWS, the network for the job in a VPC (virtual private
#   cloud: a network of your own). If they are empty, the lesson uses the network that lesson 06
#   creates for your seat. If there is none, it leaves that job out. Locally leave them empty.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
instance_count = 2
processes_per_host = 2
dataset = "digits"
repeats = 2
epochs = 12
global_batch_size = 256
learning_rate = 0.05
max_run = 900
subnets = []
security_group_ids = []
expected_accuracy = 0.8

# %%
import pandas as pd

import workshop
from workshop import plots
from workshop.jobs import vpc
from workshop.launch.horovod import horovod_script
from workshop.launch.mpirun import mpirun
from workshop.measure import interleaved

session = workshop.session(target=target, seat=seat)
channels = session.upload(dataset)
images = workshop.DATA / dataset

# %% [markdown]
# Horovod has to be compiled, so it is missing if your machine had no C++ compiler during set-up.
# Then the next cell prints what to install, and a PyTorch script takes the place of the Horovod
# script. `mpirun` starts it in the same way, and it averages gradients in the same way.

# %%
choice = horovod_script("train_tf_horovod.py", session)
print(choice.explanation)

# %% [markdown]
# ## Instances times processes
#
# Lesson 04 started ranks on one machine. For a job you choose two numbers, written here as
# **instances x processes**:
#
# | | what the ranks share | how gradients travel |
# |---|---|---|
# | `1 x n` | one instance: its cores and its memory | through memory |
# | `n x 1` | nothing | through the network |
# | `n x m` | cores with some ranks, nothing with the others | both |
#
# In all three, **world_size** is instances times processes, and the script is the same. It asks
# Horovod for its rank and doesn't know what lies between it and the other ranks.
#
# The table describes AWS. With `target = "local"` every "instance" is simulated on this machine:
# it has a host name of its own, but it shares this machine's cores with the others. So a local run
# shows *how* such a job works. It can't show what more instances gain.
#
# > Distributed training doesn't need `instance_count > 1`: `1 x 4` is four ranks that average
# > gradients.
#
# ## The cost, before it runs
#
# This lesson runs these jobs. The 300 seconds for each are an estimate for AWS, where a job
# of this size mostly starts and stops. *USD at most* is a guarantee: it counts `max_run`, after
# which SageMaker stops a job that hangs, and the 120 seconds that stopping may take. Ranks that
# wait for each other would otherwise wait, and cost money, for much longer. `instance_count` and
# *USD per hour* in the table count all repeats together.

# %%
n, m = instance_count, processes_per_host
in_vpc, native = f"{n} x 1 in a VPC", f"{n} x 1 MultiWorker"
instances = {"1 x 1": 1, f"1 x {m}": 1, f"{n} x 1": n, f"{n} x {m}": n, in_vpc: n, native: n}
costs = workshop.cost_table(
    (
        {
            "jobs": name,
            "instance_type": instance_type,
            "instance_count": count * repeats,
            "seconds": 300,
        }
        for name, count in instances.items()
    ),
    max_run=max_run,
).set_index("jobs")
costs.drop(columns="instance_type")

# %%
total, most = costs["USD"].sum(), costs["USD at most"].sum()
count = repeats * len(instances)
print(f"All {count} jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Locally: free.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(instances) == len(costs) == 6, "Choose 2 or more for both counts: two rows are equal."
assert repeats >= 1, "Each configuration has to run at least once."
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## Predict
#
# We first look at one job in depth, with all instances and all processes. The others follow. The
# global batch, the images that all ranks together take in one step, has `global_batch_size` images.

# %%
guess = workshop.guess(
    ranks=f"How many ranks will {n} x {m} have?",
    images="How many images will each of them take in a step?",
    weights="How many different sets of weights will there be at the end?",
)

# %% [markdown]
# ## The script
#
# The diff shows what this script adds to lesson 00's. You know the steps from lesson 04. The script
# divides a fixed global batch among the ranks (strong scaling), so its learning rate stays the
# same.

# %%
one_process = "train_torch.py" if "torch" in choice.script else "train_tf.py"
workshop.show_diff(f"train/{one_process}", f"train/{choice.script}")

# %% [markdown]
# ## Ask for the job
#
# The estimator is the one from lesson 00 with two changes: `instance_count` and `distribution`. The
# latter tells SageMaker how to start the script. With `mpi`, SageMaker doesn't start the script
# on each instance by itself. Instead the first instance runs `mpirun`, which starts all ranks and
# tells them about each other.
#
# > You may read that there are two ways, parameter servers and Horovod. Version 2.257.7 of the SDK
# > knows these keys of `distribution`: `parameter_server` (lesson 03), `mpi` (this one),
# > `multi_worker_mirrored_strategy` (below), `torch_distributed` (lesson 01), `smdistributed` and
# > `pytorchddp` (SMDDP, lesson 07), `pytorchxla`, and `instance_groups`, which only says where.
#
# `custom_mpi_options` is appended to that `mpirun` command. `-x NAME=VALUE` sets an environment
# variable on every rank. The one printed below makes a waiting rank give up its core. Otherwise the
# rank waits in a busy loop. If two ranks share a core, it then takes the core from the very rank
# that it waits for.
#
# > NCCL is NVIDIA's library for communication between GPUs. With plain `mpirun` you turn on its
# > messages by `-x NCCL_DEBUG=INFO`. SageMaker's toolkit passes exactly that by itself. For less,
# > write `--NCCL_DEBUG WARN`. That isn't an option of `mpirun`: the toolkit takes it out and
# > changes its own. Of two `-x NCCL_DEBUG=…` the first counts, the toolkit's (tried with Open MPI
# > 5.0.11).
#
# > How large may `processes_per_host` be? On an instance with 4 GPUs take 4, one process for each.
# > On a CPU instance you decide. Start with at most one process per core.

# %%
distribution = {
    "mpi": {
        "enabled": True,
        "processes_per_host": processes_per_host,
        "custom_mpi_options": choice.mpi_options,
    }
}
print("custom_mpi_options:", choice.mpi_options)

# %% [markdown]
# `threads-per-rank` is 1: in all configurations below a rank computes with one thread. Otherwise a
# single rank would use all cores, and the configurations couldn't be compared.
#
# > The last of AWS's TensorFlow images with Horovod is **2.12** (`py310`), so that is the version
# > here. With GPUs take `ml.g4dn` or `ml.g5` (not the older `ml.p2` or `ml.p3`) and as many
# > processes as GPUs. The script then takes the GPU of its `local_rank`, but there is no record of
# > a run of it on a GPU. In version 1 of the SDK the arguments were called `distributions` and
# > `train_instance_count`. The class is `TensorFlow(…)`, never `Tensorflow(…)`.

# %%
from sagemaker.tensorflow import TensorFlow

hyperparameters = {
    "epochs": epochs,
    "global-batch-size": global_batch_size,
    "learning-rate": learning_rate,
    "threads-per-rank": 1,
}
job = session.job_settings("horovod") | {
    "entry_point": choice.script,
    "framework_version": "2.12.0",
    "py_version": "py310",
    "instance_type": instance_type,
    "max_run": max_run,
}
hidden = ("sagemaker_session", "source_dir")
pd.Series({name: job[name] for name in job if name not in hidden}, name="value").to_frame()

# %% [markdown]
# `session.job_settings` gave the rows above `entry_point`: the role that the job takes on, its
# name, where results go in S3, how metrics are read from the log, and the tags by which [lesson
# 99](99_clean_up.ipynb) finds everything again. (Two more aren't shown: the SDK's session, and the
# folder with the source.) With them the estimator is complete:

# %%
estimator = TensorFlow(
    instance_count=instance_count,
    distribution=distribution,
    hyperparameters=dict(hyperparameters),  # a copy: the SDK adds its own entries to it
    **job,
)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, and `x 2 instance(s)` after the billable seconds: you pay for both
# instances until the slower one is done. The metrics are those of the last epoch; the table further
# down has the median over all epochs.

# %%
world_size = instance_count * processes_per_host
start = result.table("start").iloc[0]

# %% jupyter={"source_hidden": true} tags=["results"]
assert start["world_size"] == world_size, f"{start['world_size']} ranks ran, not {world_size}."
workshop.save_results(status=result.status, world_size=int(start["world_size"]))

# %% [markdown]
# ## What `fit()` sent
#
# `fit()` packed `scripts/train/` into an archive, uploaded it to S3, and sent one
# `CreateTrainingJob` request. That request has no field for `distribution`. What it says travels
# as **hyperparameters**, beside yours. Those that the SDK adds begin with `sagemaker_`, except
# `model_dir`, a folder for the model.

# %%
pd.DataFrame({"value": {name: str(value) for name, value in result.hyperparameters.items()}})

# %% [markdown]
# On the instance, AWS's toolkit reads the three `sagemaker_mpi_…` entries and builds a command from
# them, which it also prints. It begins with the hosts, the slots on each, and the number of ranks.
# A slot is a place for one process. The `Num slots` lines are MPI's own view, one for each host:
# all slots are in use.

# %%
command = result.matching("mpirun --host")[0].text
print(command.split(" --allow-run-as-root")[0])
for line in result.matching("Num slots:"):
    print(" ".join(line.text.split()))

# %% jupyter={"source_hidden": true} tags=["results"]
assert f"-np {world_size}" in command, f"mpirun was not told to start {world_size} processes."
workshop.save_results(command=command.split(" --allow-run-as-root")[0])

# %% [markdown]
# ## One model, or four?
#
# Four processes that never communicate would *also* finish without an error and with a high
# accuracy. So an accuracy proves nothing. Equal weights are a proof here, because this script gives
# each rank different images (`dataset.shard` in the diff above). Without averaging, each rank would
# end with weights of its own. At the end each rank prints a SHA-256 hash of its weights. If a
# single bit differs, so does the hash.
#
# In the log, each line of a rank starts with the rank's number and its host. So the same records
# show where each rank ran. The cell numbers the ranks of each host: that is `local_rank`.

# %%
weights = result.table("weights").sort_values("rank", ignore_index=True)
weights["local_rank"] = weights.groupby("host").cumcount()
weights["weights"] = weights["weights_sha256"].str[:16] + "…"
weights[["rank", "host", "local_rank", "weights"]]

# %% [markdown]
# The ranks fill one host before the next. A process uses its `local_rank` to choose *its* GPU among
# those of its instance.

# %%
per_host, different = weights["host"].value_counts(), weights["weights_sha256"].nunique()
local_batch = int(start["local_batch_size"])
print(f"{len(weights)} ranks on {len(per_host)} hosts, {different} different set(s) of weights")
guess.compare(ranks=len(weights), images=local_batch, weights=different)

# %% jupyter={"source_hidden": true} tags=["results"]
assert sorted(weights["rank"]) == list(range(world_size)), "A rank is missing in the log."
assert (per_host == processes_per_host).all(), f"Uneven: {per_host.to_dict()}"
assert different == 1, f"{different} different sets of weights: the ranks did not synchronise."
workshop.save_results(ranks_per_host=per_host.to_dict(), hashes=weights["weights_sha256"])
table = result.table("epoch")
losses, accuracy = table["train_loss"], result.metrics["test_accuracy"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.save_results(losses=losses, accuracy=accuracy, different_weights=different)

# %% [markdown]
# ## The same script in other places
#
# **On this machine, without a job.** We use lesson 04's `mpirun` and pass the hyperparameters as
# flags, which is all that SageMaker does with them. It starts at once, and nothing is uploaded. But
# you have only one machine, the notebook's, and you pay for it as long as it is on.

# %%
flags = [f"--{name}={value}" for name, value in hyperparameters.items()]
flags += ["--training", images / "training", "--test", images / "test"]
flags += ["--save-to", workshop.BUILD / "model"]
script_here = workshop.TRAIN / horovod_script("train_tf_horovod.py").script
runs_here = [mpirun(m, script_here, *flags, show=False) for _ in range(repeats)]
print("seconds from start to end:", [round(run.seconds, 1) for run in runs_here])

# %% [markdown]
# **On one instance, and on several with one process each.** Only two numbers change.


# %%
def configured(instances: int, processes: int, **network) -> TensorFlow:
    """An estimator for instances x processes. It doesn't start anything yet."""
    return TensorFlow(
        instance_count=instances,
        distribution={"mpi": distribution["mpi"] | {"processes_per_host": processes}},
        hyperparameters=dict(hyperparameters),
        **job,
        **network,
    )


# %% [markdown]
# **In a VPC.** A job's instances normally use a network of SageMaker's own. With `subnets` and
# `security_group_ids` they get an address in *your* network, and the request has one more field.
# The script, its arguments and the `mpirun` command stay the same.
#
# What changes is who can reach whom. The instances reach what your network reaches: a private
# database, for example. Unless you open a way to the internet, they can't install packages from
# there, and they reach S3 only through a **VPC endpoint**, a door from your network to S3. (It has
# nothing to do with this course's emulator.) [Lesson 06](06_vpc_colocation.ipynb) makes such
# a network and says what each part is for. We know of no measurement that shows that a VPC by
# itself makes training faster.

# %%
try:
    network = vpc.network(session, subnets, security_group_ids)
except vpc.NoNetwork as missing:  # on AWS; lesson 06 creates one
    network = None
    print(f"Left out: {in_vpc}. {missing}")
network

# %% [markdown]
# ## TensorFlow's own way
#
# Horovod is a library beside TensorFlow, and `mpirun` a program beside Python. TensorFlow can do
# the same without either. **MultiWorkerMirroredStrategy** keeps a copy of the model, a *replica*,
# in each worker, and averages gradients with its own all-reduce. (A worker with several GPUs keeps
# a replica on each: [guide](https://www.tensorflow.org/guide/distributed_training).) Its messages
# travel over gRPC, a protocol for calls between programs. There is
# no `mpirun`: SageMaker starts the script on every instance and lists the workers in the
# environment variable `TF_CONFIG`. It lists no chief, so worker 0 is the one that saves.
#
# The script is lesson 04's: with `TF_CONFIG` it takes the strategy for several machines. The diff
# shows what it adds to the one-process script:

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_mirrored.py")

# %% [markdown]
# Each step of the Horovod script has its counterpart here:
#
# | | Horovod | MultiWorkerMirroredStrategy |
# |---|---|---|
# | meet the others | `hvd.init()`; `mpirun` lists them | create it; `TF_CONFIG` lists them |
# | split the data | rank r of n takes `images[r::n]` | the strategy splits each global batch |
# | average gradients | `DistributedGradientTape` | loss `/ world_size`, since the strategy sums |
# | start equal | `broadcast_variables` | variables created in `strategy.scope()` |
# | save | rank 0 alone | rank 0 alone; all wait for it (`leave`) |


# %%
def multi_worker() -> TensorFlow:
    """An estimator for TensorFlow's own strategy, with one worker on each instance."""
    return TensorFlow(
        instance_count=n,
        distribution={"multi_worker_mirrored_strategy": {"enabled": True}},
        hyperparameters=dict(hyperparameters),
        **job | {"entry_point": "train_tf_mirrored.py"},
    )


# %% [markdown]
# ## Run them all
#
# The jobs run one after the other, since two at once would share this machine's cores. Each
# configuration runs `repeats` times, and a whole round is finished before the next begins. So a
# busy minute of this machine doesn't fall on one configuration only. (Two results are reused: the
# first run of the largest configuration, above, and all runs of `mpirun` here.)
#
# **Predict:** how many times the samples per second of one rank will the largest configuration
# reach? Think of how many cores the ranks share.

# %%
one_round = {
    "1 x 1": lambda: configured(1, 1),
    f"1 x {m}": lambda: configured(1, m),
    f"{n} x 1": lambda: configured(n, 1),
    f"{n} x {m}": lambda: configured(n, m),
    in_vpc: lambda: configured(n, 1, **network),
    native: multi_worker,
}
if not network:
    del one_round[in_vpc]
jobs = {
    (name, number): make
    for number in range(1, repeats + 1)
    for name, make in one_round.items()
    if (name, number) != (f"{n} x {m}", 1)
}
guess = workshop.guess(
    speed_up=f"How many times the samples per second of 1 x 1 will {n} x {m} reach?",
)

# %%
done = workshop.run_jobs(
    {f"{name}, run {number}": make() for (name, number), make in jobs.items()}, channels
)

# %%
runs = {name: [] for name in ["1 x 1", f"mpirun here, 1 x {m}", *list(one_round)[1:]]}
runs[f"mpirun here, 1 x {m}"] = runs_here
runs[f"{n} x {m}"] = [result]
for (name, number), _ in jobs.items():
    runs[name].append(done[f"{name}, run {number}"])
sent = runs[in_vpc][0].description["VpcConfig"] if network else {}
sent

# %% jupyter={"source_hidden": true} tags=["results"]
expected = network["subnets"] if network else None
assert sent.get("Subnets") == expected, "The request named other subnets: look at `network`."
assert "VpcConfig" not in result.description, "The first job was not meant to be in a VPC."
workshop.save_results(vpc_config=sent)

# %% [markdown]
# That was the request's extra field for the VPC. And here is the `TF_CONFIG` of the last worker of
# TensorFlow's own way: the list of all workers, and under `task` which of them this one is. Worker
# 0 also prints the records of the epochs and saves the model. Every worker prints the hash of its
# weights: did they train one model?

# %%
last = max(runs[native][0].matching("TF_CONFIG="), key=lambda line: line.host)
print(f"{last.host}: {last.text}")
native_weights = runs[native][0].table("weights")
hashes = native_weights["weights_sha256"]
print(f"{len(hashes)} workers, {hashes.nunique()} different set(s) of weights")

# %% jupyter={"source_hidden": true} tags=["results"]
assert hashes.nunique() == 1, "The workers did not synchronise."
assert sorted(native_weights["host"]) == [f"algo-{i + 1}" for i in range(n)], "A worker is missing."
workshop.save_results(native_hashes=hashes, tf_config=last.text)

# %% [markdown]
# ## The table
#
# All configurations trained on the same 256 images in each step, so all must have learned the same.
# Check *last loss* first: if it differs by more than rounding, the speeds can't be compared.
# *step ms* is the median of the runs, *lowest* and *highest* their range; the other columns are of
# the first run. *speed-up* is relative to `1 x 1`: below 1 means slower than one rank. NaN means
# that there was no job, and so no bill by the second.

# %%
step_ms = {}  # of each run, by configuration
for name, repeated in runs.items():
    step_ms[name] = workshop.compare(dict(enumerate(repeated)))["step ms"]
spread = interleaved.summary(pd.DataFrame(step_ms))

# %%
first = {name: repeated[0] for name, repeated in runs.items()}
comparison = workshop.compare(first)
comparison["step ms"] = spread["median"]
comparison[["lowest", "highest"]] = spread[["lowest", "highest"]]
comparison["samples/s"] = (global_batch_size / spread["median"] * 1000).round().astype(int)
comparison["speed-up"] = (spread["median"]["1 x 1"] / spread["median"]).round(2)
comparison["last loss"] = [run.table("epoch")["train_loss"].iloc[-1] for run in first.values()]
comparison.drop(columns=["global_batch_size", "instances", "processes"])

# %% jupyter={"source_hidden": true} tags=["figure"]
plots.bar_chart(
    spread["median"],
    f"A step in each configuration, and the range of {repeats} run(s): too few to rank",
    f"milliseconds for {global_batch_size} images (shorter is better)",
    texts="{:.1f} ms",
    spread=spread,
)

# %% jupyter={"source_hidden": true} tags=["results"]
same = comparison["last loss"] if "torch" not in choice.script else comparison["last loss"][:-1]
loss_spread = same.max() - same.min()
if target == "local":
    assert loss_spread < 0.001, "One configuration learned something else: see last loss."
else:  # AWS's jobs run another version of TensorFlow than mpirun here
    print(f"The last losses of all rows lie within {loss_spread:.6f}; locally it is below 0.001.")
assert (comparison["step ms"] > 0).all(), "A configuration has no step time."
measured = comparison[["instances", "processes", "world_size", "step ms", "samples/s"]]
workshop.save_results(comparison=measured.to_dict("index"), loss_spread=loss_spread)

# %% [markdown]
# A run's *step ms* is the median over its epochs. The first step, which also builds the model,
# isn't counted. **USD** is what AWS would charge for as many seconds as were billed here.
#
# Don't rank the rows. All steps of a run together take very little time (the output below says how
# little), so this machine's scheduler decides much of it. The table shows that every configuration
# runs, and that all learn the same. To say that one is faster takes two things. *Every* run of one
# must be faster than *every* run of the other. (With two runs of each, chance alone does that to
# equal ones in a third of the cases: of five such verdicts, expect one or two false ones.) And the
# difference must exceed that of two configurations that are the same thing. Locally `2 x 1` and the
# VPC row are such a pair, so they say nothing of what a VPC does on AWS.


# %%
def ratio(first: str, second: str) -> float:
    """How many times as long as the faster one's is the slower one's step."""
    both = spread["median"][[first, second]]
    return both.max() / both.min()


def verdict(first: str, second: str) -> str:
    """How two configurations compare, in words."""
    a, b = spread.loc[first], spread.loc[second]
    times = f"{first} {a['median']:.1f} ms, {second} {b['median']:.1f} ms"
    if max(a["lowest"], b["lowest"]) <= min(a["highest"], b["highest"]):
        return f"{times}: the ranges overlap, no difference shown"
    if ratio(first, second) <= control:
        return f"{times}: less apart than the two equal ones, no difference shown"
    return f"{times}: {first if a['highest'] < b['lowest'] else second} is faster in every run"


step_count = int(result.table("epoch")["step"].iloc[-1])
in_all = step_count * comparison["step ms"] / 1000
print(f"All {step_count} steps of a run take {in_all.min():.2f} to {in_all.max():.2f} s.")
control = ratio(f"{n} x 1", in_vpc) if network and target == "local" else 1.0
if control > 1:
    print(f"Two equal configurations, {n} x 1 and {in_vpc}: {control:.2f} times apart.")
pairs = [("1 x 1", f"1 x {m}"), (f"1 x {m}", f"{n} x 1"), (f"mpirun here, 1 x {m}", f"1 x {m}")]
pairs += [(f"{n} x 1", in_vpc)] if network and target == "aws" else []
for first, second in [*pairs, (f"{n} x 1", native)]:
    print(verdict(first, second))
guess.compare(speed_up=comparison["speed-up"][f"{n} x {m}"])

# %% [markdown]
# **Is the speed-up below 1?** Then more ranks made the training slower. Locally that is to be
# expected with this small model. All ranks share this machine's cores: with two cores, two ranks
# can at best halve the time of a step, and four ranks have to take turns. Averaging comes on top,
# in every step. A step of one rank takes only milliseconds here, so the messages and the waiting
# can cost more than the shared work saves. On AWS each instance brings its own cores, and
# the question becomes how fast the network between them is (lesson 06).
#
# A job's bill also has a part that doesn't depend on the number of steps. How much of the billed
# time of the first job, with all ranks, went into steps?

# %%
stepping = step_count * spread["median"][f"{n} x {m}"] / 1000
share = stepping / result.billable_seconds
print(
    f"{step_count} steps took {stepping:.1f} of {result.billable_seconds} billable s: {share:.0%}"
)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(share_of_steps=share)

# %% [markdown]
# The rest goes into starting Python, importing TensorFlow, building the model and saving it. More
# ranks don't shorten that, so for a small job a second instance mostly adds a second bill.
#
# On AWS the billed seconds have one more part: after a script under `mpirun` has ended, SageMaker's
# launcher sleeps for 30 seconds on every instance before the job ends ([sagemaker-training 5.1.4,
# `mpi.py`](https://github.com/aws/sagemaker-training-toolkit/blob/master/src/sagemaker_training/mpi.py),
# read on 2026-11-24), and they are billed. MultiWorkerMirroredStrategy isn't started by `mpirun`,
# so its jobs don't have them. There, compare the step times of the two, not their billable seconds.
#
# ## Mistakes that fail silently
#
# The SDK ignores a key of `distribution` that it doesn't know, and it can't know which launcher
# your script needs. So two mistakes go unnoticed, and both jobs end as `Completed`. The next cell
# builds estimators without starting them, and shows what each would send. NaN means: not sent.
#
# - `custom_mpi_option` instead of `custom_mpi_options`: an *s* is missing.
# - `parameter_server` instead of `mpi`, in a Horovod job.


# %% tags=["deterministic"]
def would_send(distribution: dict) -> dict:
    """The hyperparameters about launchers that this distribution becomes."""
    built = TensorFlow(instance_count=2, distribution=distribution, **job).hyperparameters()
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
# 3. *The cheapest that is ready in time* (15 minutes, medium): choose a configuration by samples
#    per second and cost.
#
# ## Check yourself

# %%
workshop.quiz("05")

# %% [markdown]
# ## Summary
#
# - `instance_count` × `processes_per_host` = `world_size`. The script is the same everywhere.
# - `distribution={"mpi": …}` becomes three hyperparameters, and these become one `mpirun` command
#   on the first instance. The SDK silently ignores unknown keys: look at what it sends.
# - Equal hashes of ranks that took different images prove that they synchronised. A good accuracy
#   doesn't.
# - MultiWorkerMirroredStrategy needs no `mpirun`: TF_CONFIG lists the workers.
# - A VPC changes who can reach whom. Nothing here shows that it makes training faster.
# - More ranks on the same cores can make a small training slower.
# - Compare configurations with the same global batch and the same last loss, and repeat each of
#   them: a difference counts when it shows in every run, and is larger than the control's. Know
#   the cost, and the most it can be, before you start.

# %% [markdown]
# ## Clean up
#
# All instances were released when their jobs ended; nothing is running. Models and logs stay in S3
# and in CloudWatch Logs until you delete them. The local network for the VPC row exists only in the
# emulator. `local-sagemaker stop` stops the emulator; with `--forget` it empties it, too.
#
# ## Next
#
# You can now compare configurations. What decides between instances is the link between them:
# [lesson 06](06_vpc_colocation.ipynb) measures it. To run a script of your own, change
# `entry_point` and `source_dir`, and check the hashes again.

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
# - say what `fit()` makes of `distribution`, and find mistakes in it that nobody reports;
# - read from the log which rank ran where, and prove that all ranks trained one model;
# - do the same in TensorFlow's own way, with MultiWorkerMirroredStrategy;
# - compare configurations by step time, samples per second and cost.
#
# **Before:** [lesson 00](00_setup.ipynb): job, channel, phase.
# [Lesson 04](04_horovod_on_the_notebook.ipynb): rank, local_rank, and the Horovod script.
#
# **Time:** 45 minutes, and 30 for the exercises. On AWS add half an hour, in which you wait for
# instances.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
#
# **Cost on AWS:** about 0.10 USD: six jobs, ten `ml.c5.xlarge` in all, 3 minutes each
# (us-east-1, price list of 2026-09-27). At most 0.58 USD, whatever goes wrong. The lesson
# computes both before it starts anything. Locally nothing.

# %% [markdown]
# ## Set up
#
# - `instance_count`: how many instances a job takes.
# - `processes_per_host`: how many processes run on each of them.
# - `epochs`, `global_batch_size`, `learning_rate`: the training. All configurations get the same.
# - `max_run`: seconds after which SageMaker ends a job, whatever it does.
# - `subnets`, `security_group_ids`: on AWS, the network of the job in a VPC. Empty takes the seat's
#   network stack; where there is none, that job is left out. Locally leave them empty.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
instance_count = 2
processes_per_host = 2
epochs = 20
global_batch_size = 256
learning_rate = 0.05
max_run = 900
subnets = []
security_group_ids = []
expected_accuracy = 0.9

# %%
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.jobs import vpc
from workshop.launch.horovod_fallback import horovod_script
from workshop.launch.mpirun import mpirun

session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
channels = {"training": f"{data}/training", "test": f"{data}/test"}

# %% [markdown]
# Horovod has to be compiled, so it is missing where there was no C++ compiler during set-up. The
# next cell says which it is here. If it is missing, it says what to install, and the lesson goes
# on with a stand-in: a PyTorch script, started by the same launcher, that averages gradients in
# the same way. The measurements below are real in both cases.

# %%
choice = horovod_script("train_tf_horovod.py", session)
print(choice.explanation)

# %% [markdown]
# ## Instances times processes
#
# Lesson 04 started ranks on one machine. A job has two numbers to choose, and we write them as
# **instances x processes**:
#
# | | what the ranks share | how gradients travel |
# |---|---|---|
# | `1 x n` | one instance: its cores, its memory | through memory |
# | `n x 1` | nothing | through the network |
# | `n x m` | cores with some, nothing with others | both |
#
# In all of them **world_size** is instances times processes, and the script is the same. It asks
# Horovod for its rank, and does not know what lies between it and the others.
#
# > You will read that distributed training needs `instance_count > 1`. It does not: `1 x 4` is
# > four ranks that average gradients. And you will read that SageMaker offers two kinds,
# > parameter server and Horovod. There are also `torch_distributed`, `smdistributed` and
# > `multi_worker_mirrored_strategy`. You meet the last one below.
#
# ## The cost, before it runs
#
# These are the six jobs of this lesson. 180 seconds each are an estimate for AWS: there, a job of
# this size is mostly start and end. *USD at most* is a promise: `max_run` ends a job that hangs.
# Ranks that wait for each other for ever are a common way to get a large bill.

# %%
n, m = instance_count, processes_per_host
in_vpc, native = f"{n} x {m} in a VPC", f"{n} x 1 MultiWorker"
instances = {"1 x 1": 1, f"1 x {m}": 1, f"{n} x 1": n, f"{n} x {m}": n, in_vpc: n, native: n}
costs = workshop.cost_table(
    (
        {"job": name, "instance_type": instance_type, "instance_count": count, "seconds": 180}
        for name, count in instances.items()
    ),
    max_run=max_run,
).set_index("job")
costs.drop(columns="instance_type")

# %%
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"All six: about {total:.2f} USD on AWS, at most {most:.2f} USD. Here: nothing.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(instances) == len(costs) == 6, "Choose 2 or more for both counts: two rows are equal."
workshop.save_results(usd=total, usd_at_most=most)

# %% [markdown]
# ## Predict
#
# First one job in depth: all instances, all processes. Then the others, for the table.

# %%
guess = workshop.guess(
    ranks=f"How many ranks will {n} x {m} have?",
    images="How many images will each of them take in a step?",
    weights="How many different sets of weights will there be at the end?",
    speed_up=f"How many times the samples per second of 1 x 1 will {n} x {m} reach?",
)

# %% [markdown]
# ## The script
#
# This is all that the script of this lesson has and the one-process script of lesson 00 has not.
# You know the steps from lesson 04. It divides a fixed global batch, so its learning rate stays.

# %%
one_process = "train_torch.py" if "torch" in choice.script else "train_tf.py"
workshop.show_diff(f"train/{one_process}", f"train/{choice.script}")

# %% [markdown]
# ## Ask for the job
#
# The estimator is that of lesson 00 with two changes: `instance_count`, and `distribution`. The
# latter tells SageMaker how to start the script. `mpi` means: do not start it on each instance by
# itself. Let the first instance run `mpirun`, which starts all ranks and tells them of each other.
#
# `custom_mpi_options` is added to that command. The line printed below sets a variable on every
# rank (`-x NAME=VALUE`): with it, a rank that waits gives its core away. Without it, it spins,
# and takes the core from the rank that it waits for, if both share one.
#
# > `--NCCL_DEBUG INFO`, which you may find as an example, is no option of `mpirun`: only
# > SageMaker's toolkit knows it, and it sets INFO by itself. `-x NCCL_DEBUG=INFO` works under any
# > `mpirun`.
#
# > `processes_per_host` is said to be *less than* the number of GPUs. It is **at most** the number
# > of slots, places for a process: on an instance with 4 GPUs you want 4. On a CPU instance you
# > choose; a process for each core is the most that helps.

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
# `threads-per-rank` is 1, so that a rank is the same thing in every row of the table: one thread.
#
# > Older texts say TensorFlow 2.2, Python 3.7, `ml.p2` or `ml.p3`: all retired,
# > or on their way out. AWS's images had
# > Horovod up to TensorFlow **2.12** (`py310`), so that is the version here. With GPUs take
# > `ml.g4dn` or `ml.g5` and as many processes as GPUs; the script needs no change. The class is
# > `TensorFlow`, and the argument `distribution`: `distributions` was its name in version 1.

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

# %%
estimator = TensorFlow(
    instance_count=instance_count,
    distribution=distribution,
    hyperparameters=dict(hyperparameters),  # a copy: the SDK writes its own entries into it
    **job,
)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, and `x 2 instance(s)` after the billable seconds: you pay for both
# for as long as the slower one needs.

# %%
world_size = instance_count * processes_per_host
start = result.table("start").iloc[0]

# %% jupyter={"source_hidden": true} tags=["results"]
assert start["world_size"] == world_size, f"{start['world_size']} ranks ran, not {world_size}."
workshop.save_results(status=result.status, world_size=int(start["world_size"]))

# %% [markdown]
# ## What `fit()` sent
#
# `fit()` packed `scripts/train/` into a file, put it into S3, and sent one `CreateTrainingJob`
# request. The request has no field for `distribution`. Everything travels as
# **hyperparameters**: yours, and others whose names begin with `sagemaker_`.

# %%
pd.DataFrame({"value": {name: str(value) for name, value in result.hyperparameters.items()}})

# %% [markdown]
# On the instance, AWS's own toolkit reads the three `sagemaker_mpi_…` entries and builds a command
# from them. It prints that command; here is its beginning: which hosts, how many slots on each,
# how many ranks in all. Below it is what MPI says of the slots: every one is in use.

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
# Four processes that never speak to each other would *also* end without an error, and with a good
# accuracy. A well-known example on the web does exactly that. So an accuracy proves nothing.
# Equal weights do, but only because this script shards its data (lesson 04): each rank took other
# images, so without averaging its weights would be its own. At its end each rank prints a SHA-256
# hash of its weights. One different bit in one weight would give another hash.
#
# Each line that a rank prints has the rank's number and its host in front, in the log. So the same
# records prove where each one ran.

# %%
weights = result.table("weights").sort_values("rank", ignore_index=True)
weights["local_rank"] = weights.groupby("host").cumcount()
weights["weights"] = weights["weights_sha256"].str[:16] + "…"
weights[["rank", "host", "local_rank", "weights"]]

# %% [markdown]
# The ranks fill one host before they go on to the next. `local_rank` starts again at 0 on each: it
# is what a process uses to choose *its* GPU among those of its own instance.

# %%
per_host, different = weights["host"].value_counts(), weights["weights_sha256"].nunique()
print(f"{world_size} ranks on {len(per_host)} hosts, {different} set of weights: one model.")

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
# **On this machine, with no job.** Lesson 04's `mpirun`, with the same hyperparameters as flags:
# that is all that SageMaker makes of them. It starts at once and nothing is uploaded. But you use
# one machine, the notebook's, and it is yours to pay for as long as it is on.

# %%
flags = [f"--{name}={value}" for name, value in hyperparameters.items()]
flags += ["--training", digits / "training", "--test", digits / "test"]
flags += ["--save-to", workshop.BUILD / "model"]
script_here = workshop.TRAIN / horovod_script("train_tf_horovod.py").script
here = mpirun(processes_per_host, script_here, *flags, show=False)
print(f"{here.ranks} ranks, {here.seconds:.1f} s from start to end")

# %% [markdown]
# **On one instance, and on several with one process each.** Only two numbers change.


# %%
def configured(instances: int, processes: int, **network) -> TensorFlow:
    """An estimator for instances x processes. Nothing starts yet."""
    return TensorFlow(
        instance_count=instances,
        distribution={"mpi": distribution["mpi"] | {"processes_per_host": processes}},
        hyperparameters=dict(hyperparameters),
        **job,
        **network,
    )


jobs = {"1 x 1": configured(1, 1), f"1 x {m}": configured(1, m), f"{n} x 1": configured(n, 1)}

# %% [markdown]
# **In a VPC.** A job's instances normally live in a network of SageMaker's own. With `subnets` and
# `security_group_ids` they get an address in *your* network, a VPC. The request then has one more
# field. The script, its arguments and the `mpirun` command stay the same.
#
# What it changes is who can reach whom. The instances reach what your network reaches: a private
# database, but S3 only through an endpoint that you made, and no package index. The **security
# group** must let its own members through on every port, or the ranks wait for each other until
# `max_run`. The **subnet** fixes the availability zone: give one, and all instances are in it.
#
# > You will read that a VPC lowers latency. By itself it makes nothing faster, and nobody who
# > says so shows a number. Zone, placement and the instances' bandwidth do; lesson 06 measures.

# %%
try:
    network = vpc.network(session, subnets, security_group_ids)
    jobs[in_vpc] = configured(n, m, **network)
except vpc.NoNetwork as missing:  # on AWS; lesson 06 makes one
    network = None
    print(f"Left out: {in_vpc}. {missing}")
network

# %% [markdown]
# ## TensorFlow's own way
#
# Horovod is a library beside TensorFlow, and `mpirun` a program beside Python. TensorFlow can do
# the same alone. **MultiWorkerMirroredStrategy** keeps a copy of the model, a *replica*, in each
# worker, and averages gradients with its own all-reduce over gRPC. Nobody starts `mpirun`:
# SageMaker starts the script on every instance, and says in the variable `TF_CONFIG` who the
# others are.
#
# Below is all that this script has and the one-process script has not.

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_multiworker.py")

# %% [markdown]
# Compare it with the Horovod script, line of thought by line of thought:
#
# | | Horovod | MultiWorkerMirroredStrategy |
# |---|---|---|
# | meet the others | `hvd.init()`; `mpirun` says who | the strategy is made; `TF_CONFIG` says who |
# | each its own data | `dataset.shard(size, rank)` | batch globally; the strategy shards |
# | average gradients | `DistributedGradientTape` | the loss `/ world_size`: by itself it sums |
# | start equal | `broadcast_variables` | variables made in `strategy.scope()` |
# | save | rank 0 alone | rank 0 alone; all wait for it (`leave`) |
#
# How the strategy shards is an option. `DATA`: every worker reads all, and keeps its part. `FILE`:
# each worker reads whole files, good for many large ones. `OFF`: every worker gets everything.
# `AUTO` is the default, and chooses between the first two.

# %%
jobs[native] = TensorFlow(
    instance_count=n,
    distribution={"multi_worker_mirrored_strategy": {"enabled": True}},
    hyperparameters=dict(hyperparameters),
    **job | {"entry_point": "train_tf_multiworker.py"},
)

# %% [markdown]
# ## Run them all
#
# One after the other. Two at once would share this machine's cores, and both times would be wrong.

# %%
results = workshop.run_jobs(jobs, channels)

# %%
sent = results[in_vpc].description["VpcConfig"] if network else {}
sent

# %% jupyter={"source_hidden": true} tags=["results"]
wanted = network["subnets"] if network else None
assert sent.get("Subnets") == wanted, "The request named other subnets: look at `network`."
assert "VpcConfig" not in result.description, "The first job was not meant to be in a VPC."
workshop.save_results(vpc_config=sent)

# %% [markdown]
# And here is the `TF_CONFIG` of the last worker of TensorFlow's own way. Everybody is a `worker`;
# no chief is named, so worker 0 is the chief: it prints the records and saves the model.

# %%
last = max(results[native].matching("TF_CONFIG="), key=lambda line: line.host)
print(f"{last.host}: {last.text}")

# %% jupyter={"source_hidden": true} tags=["results"]
native_weights = results[native].table("weights")
assert native_weights["weights_sha256"].nunique() == 1, "The workers did not synchronise."
assert sorted(native_weights["host"]) == [f"algo-{i + 1}" for i in range(n)], "A worker is missing."
workshop.save_results(native_hashes=native_weights["weights_sha256"], tf_config=last.text)

# %% [markdown]
# ## The table
#
# All of them trained on the same 256 images in each step. So all must have learned the same:
# compare the last column first. If it differs in more than rounding, the speed is worth nothing.
# NaN stands where there was no job, and so no bill by the second.

# %%
rows = {"1 x 1": results["1 x 1"], f"mpirun here, 1 x {m}": here, f"{n} x {m}": result} | results
order = ["1 x 1", f"mpirun here, 1 x {m}", f"1 x {m}", f"{n} x 1", f"{n} x {m}", in_vpc, native]
order = [name for name in order if name in rows]
comparison = workshop.compare({name: rows[name] for name in order})
comparison["last loss"] = [rows[name].table("epoch")["train_loss"].iloc[-1] for name in order]
comparison.drop(columns="global_batch_size")

# %% tags=["readme"]
title, label = (
    "Samples per second, and the time of a step",
    "samples per second, all ranks together",
)
times = [f"{ms:.1f} ms" for ms in comparison["step ms"]]
plots.bars(comparison["samples/s"], title, label, texts=times, kinds=comparison["world_size"])

# %% jupyter={"source_hidden": true} tags=["results"]
same = comparison["last loss"] if "torch" not in choice.script else comparison["last loss"][:-1]
assert same.max() - same.min() < 0.001, "One configuration learned something else: see last loss."
assert (comparison["step ms"] > 0).all(), "A configuration has no step time."
measured = comparison[["instances", "processes", "world_size", "step ms", "samples/s"]]
workshop.save_results(comparison=measured.to_dict("index"), loss_spread=same.max() - same.min())

# %%
speed_up = comparison["speed-up"][f"{n} x {m}"]
local_batch = int(start["local_batch_size"])
guess.compare(ranks=world_size, images=local_batch, weights=different, speed_up=speed_up)

# %% [markdown]
# How to read it:
#
# - **step ms** is the median over the epochs, so one disturbed epoch does not decide. The first
#   step, which also builds the model, is not counted.
# - **The VPC row repeats the row above it**: locally nothing that matters to speed has changed. So
#   what they differ by is the noise of this run. No smaller difference between other rows means
#   anything. If it is large, this machine is busy with something else: run the lesson again.
# - **Locally all rows share this machine's cores.** With two cores, two ranks can be nearly twice
#   as fast as one, and four cannot be faster than two. `2 x 1` and `1 x 2` differ only by the path
#   of the gradients.
# - **On AWS** each instance brings its own cores, and the network between instances becomes the
#   question. That is another thing than this table, and no laptop can tell you the numbers. The
#   same cells with `target = "aws"` can.
# - **USD** is what AWS would take for as many seconds as were billed here. More instances cost
#   more per second; they are cheap only if the job gets shorter by as much.

# %%
steps = int(result.table("epoch")["step"].iloc[-1])
stepping = steps * comparison["step ms"][f"{n} x {m}"] / 1000
share = stepping / result.billable_seconds
print(f"{steps} steps took {stepping:.1f} of {result.billable_seconds} billable s: {share:.0%}.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(share_of_steps=share)

# %% [markdown]
# The rest is starting Python, importing TensorFlow, building the model, saving it. More ranks do
# not make that shorter. So a small job gains nothing by a second instance but a second bill.
#
# ## Mistakes that end well
#
# The SDK ignores a key of `distribution` that it does not know, and it cannot know which launcher
# your script needs. Two mistakes that live on this are all over the web, and both end with
# `Completed`. The next cell builds estimators, starts nothing, and looks at what each would send.
#
# - `custom_mpi_option`, or `custum_mpi_option`, for `custom_mpi_options`.
# - `parameter_server` for `mpi`, in a Horovod job.


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
# In the second column your option is gone. In the third there is no `mpirun`: every instance would
# start the script by itself. Each would find that it is rank 0 of 1, train alone, and end well.

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
# 1. *Where a rank runs* (5 minutes, easy): from a rank to its host and local_rank.
# 2. *Six mistakes in one dictionary* (10 minutes, medium): repair a `distribution` from the web.
# 3. *The cheapest that is ready in time* (15 minutes, hard): choose a configuration by samples
#    per second and cost.
#
# ## Check yourself

# %%
workshop.quiz("05")

# %% [markdown]
# ## Summary
#
# - `instance_count` × `processes_per_host` = `world_size`. The script is the same in every place.
# - `distribution={"mpi": …}` becomes three hyperparameters; on the first instance they become one
#   `mpirun` command. Unknown keys are ignored in silence: look at what is sent.
# - Equal hashes of ranks that took different images prove that they synchronise. A good accuracy
#   does not.
# - MultiWorkerMirroredStrategy does without `mpirun`: TF_CONFIG names the workers.
# - A VPC changes who can reach whom, and not the speed.
# - Compare configurations at the same global batch, by medians, with the same last loss. Know the
#   cost, and the most it can be, before you start.

# %% [markdown]
# ## Clean up
#
# All instances were given back when their job ended; nothing runs. Models and logs stay in S3 and
# in CloudWatch Logs until you delete them. The local network that was made for the VPC row exists
# only in the endpoint. `workshop down` ends the endpoint, and `workshop down --forget` empties it.
#
# ## Next
#
# You have the tools to compare; what decides between instances is the link between them. That is
# lesson 06. Until it is here: your own script, with other names in `entry_point` and `source_dir`,
# and the same look at the hashes.

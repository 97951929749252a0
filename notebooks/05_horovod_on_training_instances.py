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
# - say which lines turn a training script into a Horovod script;
# - start four processes on two instances with one `fit()`;
# - read from the log which rank ran on which host;
# - prove that the four processes trained one model, and not four;
# - recognise three mistakes that the web will teach you about this job.
#
# **Before:** [lesson 00](00_setup.ipynb): you know what a job, a channel and a phase are.
#
# **Time:** 30 minutes.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
#
# **Cost on AWS:** two `ml.c5.xlarge` for a few minutes. The cost table, with dated
# prices, comes with the AWS stacks. Until then, look the price up before you switch.

# %% [markdown]
# ## Set up
#
# - `instance_count`: how many instances the job takes.
# - `processes_per_host`: how many processes Horovod starts on each of them.
# - `global_batch_size`: images per step, over all processes together.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_count = 2
processes_per_host = 2
epochs = 20
global_batch_size = 64
expected_accuracy = 0.96

# %%
import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.standin import horovod_or_standin

session = workshop.session(target=target, seat=seat)
session

# %%
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
choice = horovod_or_standin(session)
print(choice.explanation)

# %% [markdown]
# ## Four processes, one model
#
# **Data parallel** training means: every process has the whole model, and each takes a different
# part of every batch. Four words are enough to talk about it.
#
# | word | meaning |
# |---|---|
# | **rank** | the number of a process, from 0, over all instances |
# | **world_size** | how many processes there are |
# | **local_rank** | the number of a process on its own instance, from 0 |
# | **global_batch_size** | images per step, over all ranks together |
#
# In each step every rank computes the gradients of its own images. Then all ranks average their
# gradients: each puts its own in, each gets the mean out. That is an **all-reduce**. After it
# all ranks hold the same numbers, apply the same update, and keep the same weights.
#
# Why before how: the mean of four means over 16 images is the mean over all 64. So four
# processes do what one process would do with the whole batch, each with a quarter of the work.

# %% [markdown]
# ## What changes in the script
#
# Below is all that the Horovod script has and the one-process script has not. Most lines are
# about *starting equal* and *averaging*; none is about networks.

# %%
workshop.show_diff("train_tf.py", "train_tf_horovod.py")

# %% [markdown]
# Look for these five:
#
# 1. `hvd.init()` meets the other ranks.
# 2. `dataset.shard(hvd.size(), hvd.rank())` gives each rank its own part of the data.
# 3. `hvd.DistributedGradientTape` does the all-reduce: the gradients that come out of it are the
#    mean over all ranks.
# 4. `hvd.broadcast_variables` copies rank 0's first weights to all. Equal updates keep weights
#    equal only if they were equal before.
# 5. `if hvd.rank() == 0` lets one rank write the model. Four would overwrite each other.

# %% [markdown]
# ## Predict
#
# Write down your numbers before you run the job: replace each `None`. How many ranks will there
# be? How many images does one rank take in each step? How many *different* sets of weights will
# there be at the end?

# %%
my_guess = {"ranks": None, "images per rank and step": None, "different weights": None}

# %% [markdown]
# ## Ask for the job
#
# The estimator is the one of lesson 00 with two changes: `instance_count`, and `distribution`.
# The latter tells SageMaker how to start the script. `mpi` means: do not start it on each
# instance by itself; let the first instance run `mpirun`, which starts all ranks and tells them
# of each other.
#
# `custom_mpi_options` is added to that command. Here `-x NAME=VALUE` sets a variable on every
# rank: with this one, a rank that waits for others gives its core away. Without it, it spins,
# and takes the core from the rank it waits for if both share one.

# %%
distribution = {
    "mpi": {
        "enabled": True,
        "processes_per_host": processes_per_host,
        "custom_mpi_options": choice.mpi_options,
    }
}
distribution

# %%
from sagemaker.tensorflow import TensorFlow

job = {
    "entry_point": choice.script,
    "framework_version": "2.12.0",
    "py_version": "py310",
    "instance_type": "ml.c5.xlarge",
    "instance_count": instance_count,
    "hyperparameters": {"epochs": epochs, "global-batch-size": global_batch_size},
}
estimator = TensorFlow(distribution=distribution, **job, **session.job_settings("horovod"))

# %% [markdown]
# ## Run it
#
# As in lesson 00, plain `estimator.fit(channels)` works as well, and takes half a minute longer.

# %%
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, and `x 2 instance(s)` after the billable seconds: you pay for both
# for as long as the slower one needs.

# %%
world_size = instance_count * processes_per_host
start = result.table("start").iloc[0]
assert start["world_size"] == world_size, f"{start['world_size']} ranks ran, not {world_size}."
workshop.record(status=result.status, world_size=int(start["world_size"]))

# %% [markdown]
# ## What `fit()` sent
#
# `fit()` packed `scripts/` into a file, put it into S3, and sent one `CreateTrainingJob` request.
# The request has no field for `distribution`. Everything travels as **hyperparameters**: yours,
# and others whose names begin with `sagemaker_`.

# %%
pd.DataFrame({"value": {name: str(value) for name, value in result.hyperparameters.items()}})

# %% [markdown]
# On the instance, AWS's own toolkit reads the three `sagemaker_mpi_…` entries and builds a
# command from them. It prints that command. Here is its beginning: which hosts, how many
# processes on each, how many in all.

# %%
command = result.matching("mpirun --host")[0].text
print(command.split(" --allow-run-as-root")[0])

# %%
assert f"-np {world_size}" in command, f"mpirun was not told to start {world_size} processes."

# %% [markdown]
# ## Which rank ran where
#
# Each line that a rank prints has the rank's number and its host in front, in the log. At its end
# every rank prints a record. So the log proves where each one ran.

# %%
weights = result.table("weights").sort_values("rank", ignore_index=True)
weights["local_rank"] = weights.groupby("host").cumcount()
weights[["rank", "host", "local_rank"]]

# %% [markdown]
# The ranks fill one host before they go on to the next. `local_rank` starts again at 0 on each
# host: it is what a process uses to choose *its* GPU among those of its own instance.

# %%
per_host = weights["host"].value_counts()
assert sorted(weights["rank"]) == list(range(world_size)), "A rank is missing in the log."
assert (per_host == processes_per_host).all(), f"Uneven: {per_host.to_dict()}"
workshop.record(ranks_per_host=per_host.to_dict())

# %% [markdown]
# ## One model, or four?
#
# Four processes that never speak to each other would *also* end without an error, and with a
# good accuracy. A well-known example on the web does exactly that. So an accuracy proves
# nothing. Equal weights do: each rank took different images, so without averaging its weights
# would be its own.
#
# At its end each rank prints a SHA-256 hash of its weights. One different bit in one weight
# would give another hash.

# %%
weights["weights"] = weights["weights_sha256"].str[:16] + "…"
weights[["rank", "host", "weights"]]

# %%
different = weights["weights_sha256"].nunique()
assert different == 1, f"{different} different sets of weights: the ranks did not synchronise."
print(f"{world_size} ranks, {different} set of weights: they trained one model.")
workshop.record(hashes=weights["weights_sha256"], different_weights=different)

# %% [markdown]
# Now compare with what you predicted.

# %%
measured = [int(start["world_size"]), int(start["local_batch_size"]), different]
pd.DataFrame({"predicted": my_guess.values(), "measured": measured}, index=list(my_guess))

# %% [markdown]
# ## Does it learn?
#
# The loss in this plot is the mean over all ranks.

# %%
plots.loss(result)

# %%
table = result.table("epoch")
table[["epoch", "train_loss", "test_accuracy", "samples_per_second", "step_seconds"]].tail(3)

# %%
losses, accuracy = table["train_loss"], result.metrics["test_accuracy"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.record(losses=losses, accuracy=accuracy)

# %% [markdown]
# ## What the job cost in time

# %%
plots.phases(result)

# %% [markdown]
# Four ranks are not four times as fast here, and may be slower than one. The model is tiny: it
# has about 14,000 weights, so a step is little work, and the ranks spend their time waiting for
# each other. Locally they also share this machine's cores. Lesson 05 grows into the table that
# compares one and several instances; what you have proved so far is that the ranks compute *the
# right thing*.

# %%
step_ms = 1000 * result.metrics["step_seconds"]
sent_kb = int(start["gradient_bytes"]) / 1000
print(f"One step: {step_ms:.1f} ms for {start['local_batch_size']} images on each rank,")
print(f"and {sent_kb:.0f} kB of gradients that all ranks must agree on.")
workshop.record(step_seconds=result.metrics["step_seconds"])

# %% [markdown]
# ## Three mistakes that the web will teach you
#
# **1. `custom_mpi_options`, with an s.** Tutorials spell it `custom_mpi_option` or
# `custum_mpi_option`. The SDK does not complain: it ignores keys it does not know. The next cell
# builds two estimators, starts nothing, and looks at what each would send.


# %%
def would_send(distribution: dict) -> dict:
    """The hyperparameters about MPI that this distribution becomes."""
    built = TensorFlow(distribution=distribution, **job, **session.job_settings("never-started"))
    return {key: value for key, value in built.hyperparameters().items() if "_mpi_" in key}


# %%
option = "-x HOROVOD_LOG_LEVEL=info"
right = would_send({"mpi": {"enabled": True, "custom_mpi_options": option}})
wrong = would_send({"mpi": {"enabled": True, "custom_mpi_option": option}})
pd.DataFrame({"custom_mpi_options": right, "custom_mpi_option": wrong})

# %%
key = "sagemaker_mpi_custom_mpi_options"
assert option in right[key] and option not in wrong[key], "Compare the two columns above."
workshop.record(misspelled_option_sent=option in wrong[key])

# %% [markdown]
# **2. `processes_per_host` is at most the number of slots; equal is right.** You will read that
# it must be *less than* the number of GPUs. On an instance with 4 GPUs you want 4 processes: one
# for each. A *slot* is a place for one process. MPI printed its plan for your job into the log:
# every slot it was given is in use.

# %%
for line in result.matching("Num slots:"):
    print(line.stream, "|", " ".join(line.text.split()))

# %% [markdown]
# **3. Horovod is started by `{"mpi": …}`, not by `{"parameter_server": …}`.** With the latter
# there would be no `mpirun`: every instance would start the script by itself. Each would find
# that it is rank 0 of 1, train alone, and end well. Nothing would fail. Compare what is sent.

# %%
with_server = TensorFlow(
    distribution={"parameter_server": {"enabled": True}},
    **job,
    **session.job_settings("never-started"),
).hyperparameters()
{name: value for name, value in with_server.items() if "_enabled" in name}

# %%
assert "sagemaker_mpi_enabled" not in with_server, "A parameter server job must not start MPI."
workshop.record(parameter_server_starts_mpi="sagemaker_mpi_enabled" in with_server)

# %% [markdown]
# ## Try it
#
# 1. (3 minutes) Set `instance_count` to 1 and `processes_per_host` to 4. Is that distributed
#    training? *Hint: look at the hashes and at the hosts.*
# 2. (3 minutes) Compare the column `train_loss` with that of lesson 00, where one process trained
#    alone. *Hint: what is the mean of four means?*
# 3. (5 minutes) Set `global_batch_size` to 63. When and how does the job end? *Hint: can 63
#    images be shared out evenly among four ranks?*

# %% [markdown]
# ## Summary
#
# - `instance_count` × `processes_per_host` = `world_size`.
# - `distribution={"mpi": …}` becomes three hyperparameters; on the first instance they become one
#   `mpirun` command.
# - All-reduce averages gradients. Equal start and equal updates keep the weights equal.
# - Equal hashes prove that ranks synchronise. A good accuracy does not.
# - Unknown keys in `distribution` are ignored in silence: look at what is sent.

# %%
print(f"{result.status}: {world_size} ranks on {len(per_host)} hosts, {accuracy:.1%} right.")

# %% [markdown]
# ## Clean up
#
# Both instances were given back when the job ended; nothing runs. Model and log stay in S3 and in
# CloudWatch Logs until you delete them. `workshop down` ends the local endpoint.
#
# ## Next
#
# Back to [lesson 00](00_setup.ipynb), or on to your own script: give `entry_point` and
# `source_dir` other names, and look at the hashes again.

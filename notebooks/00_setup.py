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
# # 00 · Set up, and run a first training job
#
# **After this lesson you can**
#
# - say whether your machine has what the course needs;
# - choose where training runs: on this machine or on AWS;
# - create the bucket and the role that a training job needs;
# - put data into S3, start a job of one instance, and read its log and its phases.
#
# **Before:** `make setup` has run. You know a little Python. You need no AWS account.
#
# **Time:** 15 minutes.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
#
# **Cost on AWS:** one `ml.c5.xlarge` for a few minutes. The cost table, with dated
# prices, comes with the AWS stacks. Until then, look the price up before you switch.

# %% [markdown]
# ## Set up
#
# Everything you may want to change stands in the next cell, and nowhere else.
#
# - `target`: `"local"` or `"aws"`. It is the only switch.
# - `seat`: your name in a shared AWS account. It becomes part of the name of all you create.
# - `epochs`: how often the job goes through the data.
# - `expected_accuracy`: the share of test images that the trained model must get right.

# %% tags=["parameters"]
target = "local"
seat = "me"
epochs = 20
expected_accuracy = 0.96

# %%
import sys

import pandas as pd

import data_prep
import workshop
from workshop import plots
from workshop.notebooks.page import versions

print(versions())

# %% [markdown]
# ## What a training job is
#
# Without SageMaker you log in to a computer, copy your data there, and start
# `python train.py`. A **training job** does the same, in this order:
#
# 1. take one or more **instances** (computers);
# 2. copy your script and your data from S3 to each;
# 3. start the script;
# 4. copy the model it leaves back to S3;
# 5. give the instances back.
#
# You ask for a job with one request, `CreateTrainingJob`. The SageMaker Python SDK writes that
# request for you when you call `fit()`.
#
# Here is what makes this course run without an account. With `target = "local"` a **local
# endpoint** answers that request. It is a program on this machine that understands the calls of
# AWS. It takes no instances from AWS: it starts real processes here and gives each "instance"
# its own host name, its own files and its own network address. Your script cannot tell the
# difference by its environment. You can, by the bill.

# %% [markdown]
# ## Check the machine
#
# `make doctor` prints a line for each thing the course needs. The same checks can be called
# from Python. They take a few seconds, because they really try: one starts two processes that
# talk to each other.

# %%
from local_sagemaker.daemon import DEFAULT_PORT
from workshop.doctor import examine

checks = pd.DataFrame(
    [{"need": name, "level": one.level, "found": one.found} for name, one in examine(DEFAULT_PORT)]
)
checks

# %% [markdown]
# You should see `OK` on most lines. `WARN` means that one lesson shows less here. `FAIL` means
# that something must be mended first; `make doctor` says how.

# %%
failed = checks[checks["level"] == "FAIL"]
assert failed.empty, f"Run `make doctor` and mend: {', '.join(failed['need'])}"
workshop.record(python=sys.version.split()[0], needs_checked=len(checks))

# %% [markdown]
# ## Open a session
#
# A **session** knows the target, the region and your seat. Locally it starts the endpoint if it
# is down. On AWS it checks your credentials, and stops with one clear sentence if there are none.

# %%
session = workshop.session(target=target, seat=seat)
session

# %% [markdown]
# ## Create the stacks
#
# A job needs two things to exist before it starts:
#
# - a **bucket** in S3, for data, code and models;
# - a **role**. A job is not you: it runs with a role of its own, which may read and write that
#   one bucket, write logs, and little else.
#
# Nobody should click these together by hand. They are written down in two CloudFormation
# templates, `cloudformation/storage.yaml` and `cloudformation/roles.yaml`. A template becomes a
# **stack**: things that are created, changed and deleted together.

# %%
deployed = workshop.deploy(session)

# %% [markdown]
# **Predict, then run.** The next cell deploys the same stacks again. What will it say?

# %%
again = workshop.deploy(session)

# %% [markdown]
# `no change`. A template states what should be there, not what to do. Where it is there already,
# nothing happens. So you can run this lesson again without harm.

# %%
assert all(stack.change == "no change" for stack in again), "Deploying twice must change nothing."
assert session.role.startswith("arn:"), f"{session.role} is no role ARN: run the cells above again."
print(f"bucket: {session.bucket}")
print(f"role:   {session.role.split('/')[-1]}")

# %% [markdown]
# ## Prepare the data
#
# The data are 1,797 real handwritten digits, 8 × 8 pixels each, which come with scikit-learn.
# They are small enough to train on in seconds, and real enough to be got wrong.
#
# `prepare` writes two folders: `training` and `test`. Files in a folder are all a script needs.

# %%
digits = data_prep.digits.prepare(workshop.DATA / "digits")
sorted(str(path.relative_to(digits)) for path in digits.rglob("*.npz"))

# %% [markdown]
# The training images are in four files, not one. That matters later: data in several files can
# be given to several instances.
#
# Now they go to S3. A file that is there already is not sent again.

# %%
data = f"s3://{session.bucket}/data/digits"
uploaded = data_prep.upload(digits, data, client=session.client("s3"))

# %% [markdown]
# A job gets its data by **channels**. A channel is a name and a place in S3. On the instance it
# is a folder, `/opt/ml/input/data/NAME`, and the script finds it in a variable: the channel
# `training` in `SM_CHANNEL_TRAINING`.

# %%
channels = {"training": f"{data}/training", "test": f"{data}/test"}
assert len(uploaded.sent) + len(uploaded.skipped) >= 5, "Some files are missing: prepare again."

# %% [markdown]
# ## The script
#
# This is the part of `scripts/train_tf.py` that does the work: one step of training. Read it
# from the top. Take a batch, compute the loss, compute the gradients, apply them.

# %%
workshop.show_function("train_tf.py", "make_train_step")

# %% [markdown]
# Nothing in it knows of SageMaker. You can run the same file by hand:
# `python scripts/train_tf.py`. Keep these lines in mind. In lesson 05 four processes train one
# model together, and only a few lines differ.

# %% [markdown]
# ## Describe the job
#
# An **estimator** describes a job: which script, on what, with which framework. The last line
# adds what all jobs of this course share, such as the role, the bucket, and a limit of 30
# minutes after which a job is ended, whatever it does.
#
# `framework_version` chooses a container image on AWS. The local endpoint pulls no image: it
# runs what is installed here, and says so in the job's log.

# %%
from sagemaker.tensorflow import TensorFlow

estimator = TensorFlow(
    entry_point="train_tf.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=1,
    hyperparameters={"epochs": epochs},
    **session.job_settings("first"),
)

# %% [markdown]
# ## Run it
#
# **Predict first.** The job will pass through these phases: *Starting* (take the instance),
# *Downloading* (script and data), *Training* (your script, from its first line to its last) and
# *Uploading* (the model). Which will take longest, here? And which on AWS?
#
# `estimator.fit(channels)` alone would do: it starts the job and prints its whole log until it
# ends. But it looks at the job's state only every 30 seconds, so a job of 5 seconds takes 35.
# With `wait=False` it returns at once, and `workshop.follow` watches the job instead.

# %%
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, the seconds of each phase, and four metrics.
#
# `billable` is what AWS would charge for: seconds, times instances. Where do the metrics come
# from? The script only prints them. SageMaker reads every line of the log with regular
# expressions that came with the request, and keeps the last value of each.

# %% [markdown]
# ## Where the time went

# %%
plots.phases(result)
pd.DataFrame({"seconds": result.phases}).round(2)

# %% [markdown]
# The numbers above were measured in this run. Locally *Starting* is short, because an instance
# is only a few processes. On AWS it takes minutes, while *Training* can be shorter. For a small
# model, waiting for computers is most of the time. Remember this when somebody promises that
# more computers will make a small job faster.

# %%
assert result.phases["Training"] > 0, "The job has no Training phase: look at result.why()."
workshop.record(phases=result.phases, billable_seconds=result.billable_seconds)

# %% [markdown]
# ## Read the log
#
# All that the script prints goes to CloudWatch Logs, line by line. Each instance has its own
# stream; the first instance is called `algo-1`. The log begins with what the instance is told
# about itself: the `SM_…` variables.

# %%
for line in result.lines:
    if line.text.startswith(("SM_HOSTS", "SM_CURRENT_HOST", "SM_CHANNEL_", "SM_MODEL_DIR")):
        print(line)

# %% [markdown]
# The script prints one JSON record for each epoch. Programs can read that, and so can you, as a
# table. `test_accuracy` is measured on images that training never saw.

# %%
epochs_table = result.table("epoch")
epochs_table[["epoch", "train_loss", "test_accuracy", "samples_per_second"]].tail()

# %%
plots.loss(result)

# %% [markdown]
# The loss of single steps jumps: each step sees only 64 images. The mean of an epoch falls.

# %%
losses, accuracy = epochs_table["train_loss"], result.metrics["test_accuracy"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.record(losses=losses, accuracy=accuracy, world_size=result.table("start")["world_size"])

# %% [markdown]
# ## Try it
#
# Each is a change of one cell.
#
# 1. (3 minutes) Set `epochs` to 40 and run from *Describe the job* on. Which phase grows?
#    *Hint: which phase contains your script?*
# 2. (5 minutes) Give the estimator `hyperparameters={"epoch": 20}`, with the `s` missing, and
#    run it. What does `follow` tell you, and in which phase did it end? *Hint: unknown arguments
#    are errors on purpose. A job that ignores your typing mistake costs more than one that fails.*

# %% [markdown]
# ## Summary
#
# - A training job takes instances, copies data and script there, runs the script, saves the
#   model, and gives the instances back.
# - `target` is the only switch between this machine and AWS.
# - Bucket and role come from stacks. Their names are read, never pasted.
# - A channel is a place in S3 and, on the instance, a folder.
# - The log has everything the script printed; metrics are read from it.

# %%
print(f"{result.status}: {accuracy:.1%} of the test images right, model in {result.model}")
assert result.model.endswith("model.tar.gz"), "The job left no model."

# %% [markdown]
# ## Clean up
#
# Nothing runs any more: the instance was given back when the job ended. The bucket and the role
# stay, because the next lessons use them. `workshop down` ends the local endpoint;
# `workshop down --forget` also removes its jobs and buckets.
#
# ## Next
#
# [05 · Horovod on training instances](05_horovod_on_training_instances.ipynb): two instances,
# four processes, one model.

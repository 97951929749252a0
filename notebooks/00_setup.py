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
# - say what a script must do so that SageMaker can run it;
# - put data into S3, start a job of one instance, find it again, and read its log and phases.
#
# **Before:** `make setup` has run. You can read Python and have trained a small neural network
# once. You need no AWS account, and need not have run two processes at once.
#
# **Time:** 20 minutes, and 13 for the exercises.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
#
# **Cost on AWS:** about 0.02 USD: one `ml.c5.xlarge` for 5 minutes (us-east-1, price list of
# 2026-09-27). The lesson computes it before it starts the job. Locally nothing.

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

print(workshop.versions())

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
# its own host name, its own files and its own network address. Your script finds the same folders,
# variables and host names as on AWS. Versions of libraries and speed are this machine's.

# %% [markdown]
# ## Check the machine
#
# `make doctor` prints a line for each thing the course needs. The same checks can be called
# from Python. They take a few seconds, because they really try: one starts two processes that
# talk to each other.

# %%
from local_sagemaker.daemon import DEFAULT_PORT
from workshop.launch.doctor import examine

checks = pd.DataFrame(
    [{"need": name, "level": one.level, "found": one.found} for name, one in examine(DEFAULT_PORT)]
)
checks

# %% [markdown]
# You should see `OK` on most lines. `WARN` means that one lesson shows less here. `FAIL` means
# that something must be mended first; `make doctor` says how.

# %% jupyter={"source_hidden": true} tags=["results"]
failed = checks[checks["level"] == "FAIL"]
assert failed.empty, f"Run `make doctor` and mend: {', '.join(failed['need'])}"
workshop.save_results(python=sys.version.split()[0], needs_checked=len(checks))

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
print(f"bucket: {session.bucket}")
print(f"role:   {session.role.split('/')[-1]}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert all(stack.change == "no change" for stack in again), "Deploying twice must change nothing."
assert session.role.startswith("arn:"), f"{session.role} is no role ARN: run the cells above again."

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
#
# How the files get there is the **input mode**. `File` copies all of them before the script
# starts. `FastFile` fetches each file when the script opens it, which pays off with many GB.
# Older texts teach a third, `Pipe`, with a reader of its own in the script: it is legacy.

# %%
channels = {"training": f"{data}/training", "test": f"{data}/test"}

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(uploaded.sent) + len(uploaded.skipped) >= 5, "Some files are missing: prepare again."

# %% [markdown]
# ## The script
#
# This is the part of `scripts/train/train_tf.py` that does the work: one step of training. Read it
# from the top. Take a batch, compute the loss, compute the gradients, apply them.

# %%
workshop.show_function("train/train_tf.py", "train_step")

# %% [markdown]
# Nothing in it knows of SageMaker. Keep these lines in mind. In lesson 05 four processes train
# one model together, and only a few lines differ.
#
# ## What a script must do for SageMaker
#
# A **container image** is a packed system with Python and TensorFlow in it. To hand in a script
# and let one of AWS's images run it is called **script mode**. You will read that
# it runs your script "without any modifications". That is true only of a script that already
# does three things:
#
# 1. It reads its data from the folders in `SM_CHANNEL_…`, and not from S3 or a fixed path.
# 2. It takes **hyperparameters**, settings such as the number of epochs, as arguments:
#    `{"epochs": 20}` arrives as `--epochs 20`.
# 3. It saves its model to the folder in `SM_MODEL_DIR`, at the end. SageMaker uploads what lies
#    there. For TensorFlow's server it must be a SavedModel in a folder with a **number** as its
#    name: `1`.
#
# These are the lines of the script that know of an instance. Each has a default, so that
# `python scripts/train/train_tf.py` runs on a laptop, too. The whole file needs nothing but
# TensorFlow and numpy: copy it, and make it yours. So are all files in `scripts/train/`, one for
# each way to train.

# %%
lines = (workshop.TRAIN / "train_tf.py").read_text().splitlines()
print("\n".join(line.strip() for line in lines if 'env("SM_' in line))

# %% [markdown]
# A script that needs a library which the image lacks brings a file `requirements.txt`, beside the
# script in `source_dir`. Every instance installs it before the script starts. Pin the versions,
# leave out what the image has (TensorFlow above all), and remember that an instance in a closed
# network cannot reach the package index.
#
# ## Describe the job
#
# An **estimator** describes a job: which script, on what, with which framework. The last line
# adds what all jobs of this course share: `source_dir` (the folder `scripts/train/`), the role,
# the bucket, the names of the metrics, and a limit of 30 minutes after which a job is ended.
#
# `framework_version` chooses a container image on AWS. The local endpoint pulls no image: it
# runs what is installed here, and says so in the job's log. `instance_type` is one without a
# GPU: for models as small as ours a CPU is enough, and costs a fraction.
#
# > The images of these lessons are old on purpose: TensorFlow 2.12 is the last with Horovod inside.
# > They get **no security patches** any more
# > ([which do](https://aws.github.io/deep-learning-containers/reference/support_policy)). For your
# > own work take a current one: TensorFlow 2.21 is patched until 2027-07-10 (read 2026-11-22).

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
# In a script of your own that last line is not there. This is all that it stands for, here and in
# every lesson:

# %%
for name, value in session.job_settings("first").items():
    print(f"{name}={value!r},")

# %% [markdown]
# What will it cost on AWS? Ask **before** you start it. 300 seconds are an estimate; the second
# number is what the limit allows at most, with the 120 seconds that a job gets to end.

# %%
workshop.cost("ml.c5.xlarge", instance_count=1, seconds=300)

# %% [markdown]
# ## Run the job
#
# The job will pass through these phases: *Starting* (take the instance), *Downloading* (script
# and data), *Training* (your script, from its first line to its last) and *Uploading* (the
# model). **Predict first.**

# %%
phases = ["Starting", "Downloading", "Training", "Uploading"]
guess = workshop.guess(
    longest=(f"Which phase will take longest, with target {target!r}?", phases),
    accuracy="How many percent of the test images will the model get right?",
)

# %% [markdown]
# `estimator.fit(channels)` alone would do: it starts the job and prints its whole log until it
# ends. But it looks at the job's state only every 30 seconds, so a job of 5 seconds takes 35.
# With `wait=False` it returns at once, and `workshop.follow` watches the job instead.

# %%
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, the seconds of each phase, and four metrics.
#
# `billable` is what AWS would charge for: seconds, times instances, from the moment when the
# instances begin to download until the model is uploaded. Waiting for instances is free. Where do
# the metrics come
# from? The script only prints them. SageMaker reads every line of the log with regular
# expressions that came with the request, and keeps the last value of each.

# %% [markdown]
# ## Where the time went

# %%
seconds = pd.Series(result.phases)
plots.bars(seconds, "Where the job's time went", "seconds", texts="{:.1f} s")
seconds.to_frame("seconds").round(2)

# %%
longest = max(phases, key=lambda phase: result.phases.get(phase, 0))
guess.compare(longest=longest, accuracy=100 * result.metrics["test_accuracy"])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    phases=result.phases, billable_seconds=result.billable_seconds, longest=longest
)
assert result.phases["Training"] > 0, "The job has no Training phase: look at result.why()."

# %% [markdown]
# The numbers above were measured in this run. Locally *Starting* is short, because an instance
# is only a few processes. On AWS it takes minutes, while *Training* can be shorter. For a small
# model, waiting for computers is most of the time. Remember this when somebody promises that
# more computers will make a small job faster.
#
# ## Find a job again
#
# The job does not run in this notebook. If you close it, the job goes on. All you need to find
# it again is its name, which `workshop jobs` and the AWS console list. `attach` makes an estimator
# from it. For a job that still runs, `attach` waits until it has ended.

# %%
attached = TensorFlow.attach(result.name, sagemaker_session=session.sagemaker_session)

# %%
print(attached.model_data.removeprefix(f"s3://{session.bucket}/"))

# %% jupyter={"source_hidden": true} tags=["results"]
assert attached.model_data == result.model, "attach found another job: compare the two names."
workshop.save_results(attached=attached.latest_training_job.name == result.name)

# %% [markdown]
# ## What the job left
#
# SageMaker packed what lay in `SM_MODEL_DIR` when the script had ended, and put it into S3. It is
# there once, at the end: a script that wants to keep more on the way writes checkpoints.

# %%
import io
import tarfile

bucket, key = result.model.removeprefix("s3://").split("/", 1)
packed = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
    saved = sorted(archive.getnames())
saved

# %% jupyter={"source_hidden": true} tags=["results"]
assert "1/saved_model.pb" in saved, "No SavedModel in a numeric folder: it could not be served."
workshop.save_results(saved=saved)

# %% [markdown]
# The SavedModel lies in the folder `1`. A server that finds `1` and `2` takes the higher number:
# the number is the model's version.
#
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
epochs_table, steps = result.table("epoch"), result.table("step")
loss = {"one step": steps.set_index("step")["train_loss"]}
loss["mean of an epoch"] = epochs_table.set_index("step")["train_loss"]
plots.lines(loss, "The loss falls", "step (one global batch)", "training loss (cross-entropy)")
epochs_table[["epoch", "train_loss", "test_accuracy", "samples_per_second"]].tail()

# %% [markdown]
# The loss of single steps jumps: each step sees only 64 images. The mean of an epoch falls.

# %%
accuracy = result.metrics["test_accuracy"]
print(f"{accuracy:.1%} of the test images are right.")

# %% jupyter={"source_hidden": true} tags=["results"]
losses = epochs_table["train_loss"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.save_results(
    losses=losses, accuracy=accuracy, world_size=result.table("start")["world_size"]
)

# %% [markdown]
# ## Exercises
#
# Both are in [exercises/00_setup.ipynb](exercises/00_setup.ipynb), with a check for each.
#
# 1. **Read a metric from the log** (5 minutes, easy): the regular expression of a metric.
# 2. **Make a script fit for an instance** (8 minutes, medium): the arguments that a script must
#    take, and those it must refuse.

# %% [markdown]
# ## Check yourself

# %%
workshop.quiz("00")

# %% [markdown]
# ## Summary
#
# - A training job takes instances, copies data and script there, runs the script, saves the
#   model, and gives the instances back.
# - `target` is the only switch between this machine and AWS.
# - Bucket and role come from stacks. Their names are read, never pasted.
# - A channel is a place in S3 and, on the instance, a folder.
# - A script reads its channels, takes hyperparameters as arguments, and saves to `SM_MODEL_DIR`.
# - A job lives without the notebook; its name is enough to find it again.
# - The log has everything the script printed; metrics are read from it.

# %%
print(f"{result.status}: {accuracy:.1%} of the test images right, model in {result.model}")

# %% jupyter={"source_hidden": true} tags=["results"]
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
# [01 · Data parallelism](01_data_parallelism.ipynb): what several processes share, what they
# split, and when it pays.

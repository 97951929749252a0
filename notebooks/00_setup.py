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
# - create the bucket and the role that a training job needs, and say why the role is narrow;
# - say what a script must do so that SageMaker can run it;
# - put data into S3, start a job of one instance, find it again, and read its log and phases.
#
# **Before:** you opened this notebook with `make lab`. You can read Python and have trained a small
# neural network once. You need no AWS account, and no experience with several processes.
#
# **Time:** 20 minutes, and 13 for the exercises.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.02 USD, at most 0.04 USD: one `ml.c5.xlarge`, 5 minutes planned. Locally
# it costs nothing.

# %% [markdown]
# ## Set up
#
# Everything you may want to change is in the next cell, and nowhere else.
#
# - `target`: `"local"` or `"aws"`. It is the only switch.
# - `seat`: your name in a shared AWS account. It becomes part of the name of everything you create.
# - `epochs`: how many times the job goes through the data.
# - `expected_accuracy`: the share of test images that the trained model must get right.
# - `max_run`: the number of seconds after which SageMaker stops the job.
#
# The cell after it imports the course's two packages: `workshop` has the functions that the lessons
# call, and `data_prep` prepares data. Then it prints the versions of the libraries behind them.

# %% tags=["parameters"]
target = "local"
seat = "me"
epochs = 20
expected_accuracy = 0.96
max_run = 600

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
# To train on a rented computer by hand, you would log in, copy your data to it, start
# `python train.py`, fetch the model and give the computer back. **SageMaker** is AWS's service
# that does this for you. You describe what you want; SageMaker calls it a **training job**:
#
# 1. take one or more **instances**: computers that are rented by the second;
# 2. copy your script and your data from S3 to each. **S3** is AWS's object store. It keeps whole
#    files in **buckets**, each at an address such as `s3://my-bucket/data/part-0.npz`. A file there
#    can be replaced, but not renamed or appended to, and a folder is only the beginning of an
#    address;
# 3. start the script;
# 4. copy the model that it leaves back to S3;
# 5. give the instances back.
#
# All of it is in one **region**, a place such as `us-east-1` (Virginia). Buckets, instances and
# prices belong to a region.
#
# You ask for a job with one request over HTTP, `CreateTrainingJob`. AWS's Python library for it,
# the **SageMaker Python SDK**, writes that request for you when you call `fit()`.
#
# This course runs without an account, because with `target = "local"` an **emulator** answers
# that request. It is a program on this machine that understands the same requests as AWS. It rents
# nothing: it starts real processes here and gives each "instance" its own host name, files and
# network address. Your script finds the same folders, variables and host names as on AWS. The
# versions of libraries, and the speed, are this machine's.

# %% [markdown]
# ## Check the machine
#
# `make doctor` prints a line for each thing the course needs. The same checks can be called
# from Python. They take a few seconds, because they try things out: one starts two processes that
# talk to each other.

# %%
from local_sagemaker import DEFAULT_PORT
from workshop.doctor.checks import examine

pd.set_option("display.max_colwidth", None)  # whole sentences in tables
checks = pd.DataFrame(
    [{"need": need, "level": c.level, "found": c.finding} for need, c in examine(DEFAULT_PORT)]
)
checks

# %% [markdown]
# You should see `OK` on most lines. `WARN` means that the course works: a lesson may show less
# here, or a port is in use and another will be taken. You don't need to know the names in the
# table: lessons explain them where they are used. `FAIL` means that you must fix something first;
# `make doctor` says how.

# %% jupyter={"source_hidden": true} tags=["results"]
failed = checks[checks["level"] == "FAIL"]
assert failed.empty, f"Run `make doctor` and fix: {', '.join(failed['need'])}"
workshop.save_results(python=sys.version.split()[0], needs_checked=len(checks))

# %% [markdown]
# ## Open a session
#
# A **session** knows the target, the region and your seat. Locally it starts the emulator if it
# isn't running. On AWS it checks your credentials, and stops with one clear sentence if there are
# none.
#
# On AWS the region is the one of your own configuration: the environment variable
# `AWS_DEFAULT_REGION`, or what `aws configure` asked you. Choose it before the next cells create
# anything; what is created in one region can't be seen from another. The prices in this course
# are those of `us-east-1`.

# %%
session = workshop.session(target=target, seat=seat)
session

# %% [markdown]
# ## Create the stacks
#
# A job needs two things to exist before it starts:
#
# - a **bucket** for data, code and models;
# - a **role**. A job doesn't run as you. It acts under a role of its own, with a list of what that
#   role may do. Everything else is refused.
#
# Don't create them by hand in the console: clicks can't be repeated, reviewed or cleanly undone.
# They are written down in two files,
# `cloudformation/storage.yaml` and `cloudformation/roles.yaml`. Such a file is a **template** for
# CloudFormation, the service that creates what a template says. What it creates from one template
# is a **stack**: things that are created, changed and deleted together.
#
# This is what the template allows the job's role to do with S3. (The folded cell cuts these lines
# out of the file; only its table matters.)

# %% jupyter={"source_hidden": true}
import re

template = (workshop.TRAIN.parents[1] / "cloudformation" / "roles.yaml").read_text()
statements = template.split("NotebookRole:")[0].split("- Sid: ")[1:]
allowed = {}
for statement in statements:
    if calls := re.findall(r"s3:\w+", statement):
        where = re.search(r'"\$\{BucketArn\}(/[^"]*)"', statement)
        allowed[statement.split()[0]] = ", ".join(calls), "BUCKET" + (where[1] if where else "")
pd.DataFrame(allowed.values(), index=list(allowed), columns=["Action", "Resource"])

# %% [markdown]
# `Action` lists the calls that are allowed, `Resource` on what: that one bucket, and writing only
# below `jobs/`. (`BUCKET` stands for the bucket's full name.) So the role is narrow, and that
# matters, because *your script runs with it*. A list like this one is called a **policy**. Many
# tutorials attach a ready-made one, `AmazonSageMakerFullAccess`. With it a wrong path in a script,
# or malicious code in a package, can stop or delete any training job, model or endpoint of the
# account, and delete every object in every bucket that has `sagemaker` in its name, among them
# the SDK's default bucket, which colleagues share
# ([AWS](https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSageMakerFullAccess.html)).
# With `s3:*` on `"*"`, which means everything in the account, it can delete any bucket. (And
# `AmazonVPCAccess`, which some pages name, is no policy of AWS's.)
#
# Now create both stacks. `workshop.deploy` does what you could type for each template:
#
#     aws cloudformation deploy --stack-name workshop-me-roles \
#         --template-file cloudformation/roles.yaml --parameter-overrides Seat=me \
#         --capabilities CAPABILITY_NAMED_IAM
#
# The last line says that you know that it creates roles: without it CloudFormation refuses.
# After each stack's name the cell prints what it did.

# %%
deployed = workshop.deploy(session)

# %% [markdown]
# A template states what should be there, not what to do. What is there already is left alone. So
# you can run this lesson as often as you like:

# %%
again = workshop.deploy(session)

# %% [markdown]
# The next cell prints the two names. AWS identifies a role by its **ARN** (Amazon Resource Name), a
# long address with your account's number in it; the last part is the role's name.

# %%
print(f"bucket: {session.bucket}")
print(f"role:   {session.role.split('/')[-1]}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert all(stack.change == "no change" for stack in again), "Deploying twice must change nothing."
assert session.role.startswith("arn:"), f"{session.role} isn't an ARN: run the cells above again."

# %% [markdown]
# ## Prepare the data
#
# The data are 1,797 real handwritten digits, 8 × 8 pixels each, which come with scikit-learn.
# They are small enough to train on in seconds, and hard enough that a model gets some wrong.
#
# `prepare` writes two folders, `training` and `test`. The scripts need nothing but files in
# folders.

# %%
digits = data_prep.digits.prepare(workshop.DATA / "digits")
sorted(str(path.relative_to(digits)) for path in digits.rglob("*.npz"))

# %% [markdown]
# The training images are in four files, not one. That matters later: data in several files can
# be shared among several instances.
#
# Now they go to S3. Files that are there already are not sent again.

# %%
data = f"s3://{session.bucket}/data/digits"
uploaded = data_prep.upload(digits, data, client=session.client("s3"))

# %% [markdown]
# A job gets its data through **channels**. A channel has a name and an address in S3. On the
# instance it is a folder, `/opt/ml/input/data/NAME`, and an environment variable tells the script
# where: for the channel `training` it is `SM_CHANNEL_TRAINING`. SageMaker copies all files before
# the script starts. (Lesson 09 shows another way, for many GB.)

# %%
channels = {"training": f"{data}/training", "test": f"{data}/test"}

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(uploaded.sent) + len(uploaded.skipped) >= 5, "Some files are missing: prepare again."

# %% [markdown]
# ## The script
#
# This is the part of `scripts/train/train_tf.py` that does the work: one step of training. Read it
# from the top. Take a batch, compute the loss, compute the gradients, apply them. (`GradientTape`
# records the computation, so that TensorFlow can compute the gradients from it. The logits are the
# model's outputs before they become probabilities. `@tf.function` compiles the whole step.)

# %%
workshop.show_function("train/train_tf.py", "train_step")

# %% [markdown]
# Nothing in it knows about SageMaker. Keep these lines in mind: when several processes train one
# model together, few of them change. (Starting and stopping those processes takes more lines;
# lessons count them.)
#
# ## What a script must do for SageMaker
#
# On the instance your script runs in a **container image**: a packed system with Python, TensorFlow
# and everything they need. AWS offers such images; running your own script in one is called
# **script mode**. Script mode needs no change of the script only if it already does three things:
#
# 1. It reads its data from the folders in `SM_CHANNEL_…`, and not from S3 or a fixed path.
# 2. It takes **hyperparameters**, settings such as the number of epochs, as arguments:
#    `{"epochs": 20}` arrives as `--epochs 20`.
# 3. It saves its model to the folder in `SM_MODEL_DIR`, at the end. SageMaker uploads what is
#    there. Any files will do for the job. Only if the model is to answer requests later, in
#    TensorFlow's server, must it be a **SavedModel** (TensorFlow's format on disk: the computation
#    and the weights, in a folder) in a folder with a **number** as its name: `1`.
#
# One function of the script reads all three: `--training` and `--test` are point 1, `--save-to` is
# point 3, and every line is an argument, which is point 2. Each has a default, so
# `python scripts/train/train_tf.py` runs on a laptop, too. A **rank** is one of the processes that
# train together; here there is one. (`--model_dir` is not `SM_MODEL_DIR`: the SDK sends an argument
# of that name, and the script accepts and ignores it.)

# %%
workshop.show_function("train/train_tf.py", "parse_args")

# %% [markdown]
# The file needs nothing but TensorFlow and numpy: copy it, and make it yours. The same goes for
# every file in `scripts/train/`; there is one for each way to train.

# %% [markdown]
# If a script needs a library that the image lacks, put a file `requirements.txt` beside the
# script. Every instance installs it before the script starts. Pin the versions and leave out what
# the image has (above all TensorFlow). An instance in a closed network can't reach the package
# index at all.
#
# ## Describe the job
#
# An **estimator** describes a job: which script, on what, with which framework. (The SDK has three
# classes for TensorFlow: the estimator `TensorFlow`, `TensorFlowModel` to deploy what it trained,
# and `TensorFlowPredictor` to send requests to it; `PyTorch` has the same three. `Estimator` takes
# any image.) The line with `**` adds what all jobs of this course share; the cell after this one
# prints it.
#
# `framework_version` chooses a container image on AWS. The emulator pulls no image. It runs
# the TensorFlow that is installed here, and says so in the job's log, which we read further down.
# `instance_type` is one without a GPU: for models as small as ours a CPU is enough, and costs a
# fraction.
#
# > The images of these lessons are old on purpose: TensorFlow 2.12 is the last with Horovod inside,
# > the library of lessons 04 and 05. They get **no security patches** any more ([which
# > do](https://aws.github.io/deep-learning-containers/reference/support_policy)). For your own work
# > take a current one.

# %%
from sagemaker.tensorflow import TensorFlow

shared = session.job_settings("first") | {"max_run": max_run}
estimator = TensorFlow(
    entry_point="train_tf.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=1,
    hyperparameters={"epochs": epochs},
    **shared,
)

# %% [markdown]
# In a script of your own you would write these lines in place of the one with `**`:
#
# - `sagemaker_session` is the SDK's connection. In your own script it is `sagemaker.Session()`.
#   `role` is the role from above.
# - `source_dir` is the folder that is sent along. The job's name begins with `base_job_name`; the
#   SDK adds the time, because names are unique in an account and region. With a fixed `job_name=` a
#   second `fit` is refused.
# - `output_path` and `code_location` are where in S3 the model and the packed script go. Without
#   them the SDK makes a bucket of its own.
# - `max_run` is the limit in seconds after which SageMaker ends the job, so that a script that
#   hangs can't cost a weekend.
# - `metric_definitions` is explained below. `disable_profiler` and `debugger_hook_config=False`
#   turn off two services that we don't use; the second takes no new customers since 2026-07-30
#   ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/debugger-createtrainingjob-api.html),
#   read on 2026-11-24). `tags` say whose job it is.

# %%
for name, value in shared.items():
    print(f"{name}={value!r},")

# %% [markdown]
# What will it cost on AWS? Ask **before** you start it. The first number is for our estimate of
# 300 seconds. The second is the most it can cost: after `max_run` SageMaker asks the script to end,
# and gives it 120 more seconds to save its work.

# %%
workshop.cost("ml.c5.xlarge", instance_count=1, seconds=300, max_run=max_run)

# %% [markdown]
# Treat both numbers as estimates. The price is AWS's as three public projects quote it; prices
# change. The 300 seconds are a plan: what this kit measures are seconds *here*, and no job of it
# has been billed on AWS yet. Look at your first bill. New AWS accounts (since 15 July 2025) start
# with up to 200 USD of credits, in place of the free hours of older accounts
# ([AWS](https://aws.amazon.com/free/), read on 2026-11-24).
#
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
# ends. But it polls the job's state only every 30 seconds, so you may wait 30 seconds too long.
# With `wait=False` it returns at once, and `workshop.follow` watches the job instead.

# %%
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# You should see `Completed`, the seconds of each phase, and four metrics, all of the last epoch:
#
# - `train_loss`: what training lowers; the mean over the epoch's steps.
# - `test_accuracy`: the share of the test images that the model gets right. 1 means all.
# - `step_seconds`: the mean time of a training step, which is one batch of 64 images.
# - `samples_per_second`: the images that pass through training in a second.
#
# `billable` is the time that AWS would charge for: the seconds from the moment when the instances
# begin to download until the model is uploaded, times the instances. Waiting for instances is
# free.
#
# Where do the metrics come from? The script only prints them. The request contained regular
# expressions (`metric_definitions`); SageMaker applies them to every line of the log. The job's
# description keeps the last value of each. On AWS all values also go to CloudWatch, as a time
# series: that is where you plot a loss.

# %% [markdown]
# ## Where the time went

# %%
seconds = pd.Series(result.phases)
seconds.to_frame("seconds").round(3)

# %%
longest = max(phases, key=lambda phase: result.phases.get(phase, 0))
guess.compare(longest=longest, accuracy=100 * result.metrics["test_accuracy"])
print(f"{longest} took {seconds[longest] / seconds.sum():.0%} of this job's time.")

# %% [markdown]
# How much of the phase *Training* was training? The script measured the steps of each epoch:

# %%
per_epoch = result.table("epoch")
in_steps = per_epoch["step"].iloc[-1] * per_epoch["step_seconds"].mean()
print(f"{per_epoch['step'].iloc[-1]} steps took {in_steps:.1f} s,")
print(f"{in_steps / seconds['Training']:.0%} of the {seconds['Training']:.1f} s of Training.")

# %% [markdown]
# The rest of *Training* went into starting Python, importing TensorFlow, compiling the step,
# testing the model after each epoch, and saving it. In a small job most of the time goes into such
# things, and more instances make none of them faster.

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    phases=result.phases, billable_seconds=result.billable_seconds, longest=longest
)
assert result.phases["Training"] > 0, (
    "The job has no Training phase: look at result.failure_reason()."
)

# %% [markdown]
# These numbers were measured in this run. With `target = "local"` an instance is only a few
# processes, so *Starting* is short. On AWS it takes minutes: a computer is found, started, and
# given its image (not measured here). For a small model, waiting for computers can then be most of
# the time.
#
# ## Find a job again
#
# The job doesn't run in this notebook. If you close the notebook, the job continues. To find it
# again you need only its name. The AWS console lists it, and so does `workshop jobs` in a terminal
# (type `. .venv/bin/activate` there once, before the first such command). `attach` makes an
# estimator from it. If the job is still running, `attach` waits until it ends. It prints the job's
# phases; the time on each line is that of the job's last change, not of the phase. (The messages
# are AWS's own: here no image is downloaded.)

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
# SageMaker packed what was in `SM_MODEL_DIR` when the script ended, and put it into S3. That
# happens once, at the end. A script that wants to keep something earlier writes checkpoints.

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
# The SavedModel is in the folder `1`. The number is the model's version: a server that finds `1`
# and `2` takes the higher one.
#
# ## Read the log
#
# All that the script prints goes to CloudWatch Logs, AWS's service for logs, line by line. Each
# instance writes a log of its own; the first instance is called `algo-1`. The log begins with what
# the instance is told about itself, the environment variables `SM_…`. (The line with `[local]` is
# there only on this machine.)

# %%
shown = "[local] image", "SM_HOSTS", "SM_CURRENT_HOST", "SM_CHANNEL_", "SM_MODEL_DIR"
for line in result.lines:
    if line.text.startswith(shown):
        print(line)

# %% [markdown]
# Then come the script's own lines. It prints a JSON record every 10 steps, and one after each
# epoch. The metrics above were read from such lines. Here is the first of each:

# %%
for event in ("step", "epoch"):
    print(next(line for line in result.lines if f'"event": "{event}"' in line.text))

# %% [markdown]
# Programs can read that, and so can you, as a table. `test_accuracy` is measured on images that
# were never trained on.

# %%
epochs_table, steps = result.table("epoch"), result.table("step")
losses = epochs_table["train_loss"]
middle = epochs_table["step"] - epochs_table["step"].iloc[0] / 2  # of each epoch
title = (
    f"The training loss: {losses.iloc[0]:.2f} in the first epoch, {losses.iloc[-1]:.3f} in the last"
)
axes_names = "training step (one batch)", "training loss (cross-entropy)"
with plots.canvas(title, *axes_names) as axes:
    axes.plot(steps["step"], steps["train_loss"], label="one step", linewidth=1)
    axes.plot(middle, losses, "o-", label="mean of an epoch")
    axes.set_yscale("log")
    axes.legend(frameon=False)
epochs_table[["epoch", "train_loss", "test_accuracy", "samples_per_second"]].tail()

# %% [markdown]
# The loss of single steps jumps, because each step sees only 64 images. Judge by the mean of an
# epoch:

# %%
accuracy = result.metrics["test_accuracy"]
print(f"Mean loss: {losses.iloc[0]:.3f} in the first epoch, {losses.iloc[-1]:.3f} in the last.")
print(f"{accuracy:.1%} of the test images are right.")

# %% jupyter={"source_hidden": true} tags=["results"]
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
# 2. **Prepare a script for an instance** (8 minutes, medium): the arguments that a script must
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
# - Bucket and role come from stacks. Your script acts under the role: keep it narrow.
# - A channel is an address in S3 and, on the instance, a folder.
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
# There is nothing to do now. The instance was given back when the job ended, and the next lessons
# use the bucket and the role. When you stop for the day, `local-sagemaker stop` ends the
# emulator and keeps its jobs and buckets. (`local-sagemaker stop --forget` deletes them, too.)
#
# ## Next
#
# [01 · Data parallelism](01_data_parallelism.ipynb): what several processes share, what they
# split, and when it pays.

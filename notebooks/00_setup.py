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
# # 00 · Set up, and run a first training job
#
# **After this lesson you can**
#
# - run a training job, find it again, and read its log, its phases and its cost;
# - choose where training runs: on this machine or on AWS;
# - say what a script must do so that SageMaker can run it;
# - say what the bucket and the role of a job are for, and why the role is narrow;
# - say whether your machine has what the course needs.
#
# **Before:** you opened this notebook with `make lab`. You can read Python and have trained a small
# neural network once. You need no AWS account, and no experience with several processes. If a cell
# fails, run `make doctor` in a terminal: it says what your machine lacks.
#
# **Time:** 25 minutes, and 13 for the exercises.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`, with credentials:
# [how](../docs/aws.md)), the same cells. Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.02 USD, at most 0.05 USD: one `ml.c5.xlarge`, 5 minutes planned. Locally
# it costs nothing.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Describe the job
#
# **SageMaker** is AWS's service that trains models on rented computers. You describe what should
# run; AWS calls that a **training job**. Just run the next cells: they are explained afterwards.

# %% [markdown]
# With `target = "local"` an **emulator** on this machine takes AWS's place. It answers the requests
# that this course sends, rents nothing, and starts real processes here. `seat` is your name in an
# AWS account that others use too. Everything you may want to change is in this cell:

# %% tags=["parameters"]
target = "local"
seat = "me"
epochs = 20
expected_accuracy = 0.96  # a check below demands it: with fewer epochs lower it, too
max_run = 600

# %%
import pandas as pd

import workshop
from workshop import plots

pd.set_option("display.max_colwidth", None)  # whole sentences in tables
session = workshop.session(target=target, seat=seat)  # locally it starts the emulator
deployed = workshop.deploy(session)  # a place for files, and what the job may do
channels = session.upload("digits")  # 1,797 handwritten digits, 8 x 8 pixels

# %% slideshow={"slide_type": "slide"}
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
# The package `sagemaker` is AWS's library for Python, its **SDK**. An **estimator** describes a
# job: this script, in this version of TensorFlow, on one computer of this type (an **instance**,
# here one without a GPU). `**shared` is what all jobs of this course have in common; see below. Ask
# what a job costs *before* you start it:

# %% slideshow={"slide_type": "fragment"}
workshop.cost("ml.c5.xlarge", instance_count=1, seconds=300, max_run=max_run)

# %% [markdown]
# The first number is for the 300 seconds that we plan. The second, rounded up to a cent, is about
# the most that its instance can cost (S3 and logs come on top): after `max_run` seconds SageMaker
# asks the script to end, and gives it 120 more to save its work.
#
# `workshop` is this course's own package of helpers, not AWS's. Without it you would write
# `estimator.fit(...)`, with the S3 addresses of your data, and a role of yours in
# `TensorFlow(...)`.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Run the job
#
# The job passes through four phases: *Starting* (take the instance), *Downloading* (data and
# container image), *Training* (fetch the script, run it) and *Uploading* (the model).
# **Predict first**, in the fields that appear or in a cell of your own, as in
# `guess["accuracy"] = 50`. Without a guess the notebook continues, too.

# %% slideshow={"slide_type": "-"}
phases = ["Starting", "Downloading", "Training", "Uploading"]
guess = workshop.guess(
    longest=(f"Which phase will take longest, with target {target!r}?", phases),
    accuracy="What percentage of the test digits will the model recognise?",
)

# %%
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# <!-- SDK v3: recipes; first -->
#
# **Which version of the SDK?** The cells here run version 2 (2.257.7): only it can start every kind
# of training that this course teaches. It gets critical and security fixes until 2027-07-05
# ([AWS](https://github.com/aws/sagemaker-python-sdk/pull/5979)). `pip install sagemaker` brings
# version 3: take it for new work with one process, DDP or FSDP. Below each cell that starts
# something the same is folded for version 3; `make sdk-v3`, in a terminal, runs it all here
# (in an environment of its own, 1 GB).

# %% [markdown] slideshow={"slide_type": "slide"}
# You should see `Completed`. **Seven things just happened**, and the rest of the lesson shows each:
#
# 1. Two *stacks* were created, or brought up to date: a bucket for files, and a role that says what
#    the job may do.
# 2. The digits went to **S3**, AWS's store for files, unless they were there.
# 3. `fit` sent one request, `CreateTrainingJob`. The SDK wrote it from the estimator. (Lesson 05
#    looks into it.)
# 4. An instance was taken. Data and a *container image* (Python, TensorFlow and all else) were
#    copied to it. (Locally: a process, and no image.)
# 5. The container fetched the script and ran it.
# 6. Whatever it printed went to a log. Numbers in it became *metrics*.
# 7. The model was copied to S3, and the instance given back.

# %% [markdown]
# ## Where the time went

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "slide"}
from data_prep.digits import TEST_IMAGES

seconds = pd.Series(result.phases)
longest = max(phases, key=lambda phase: result.phases.get(phase, 0))
accuracy = result.metrics["test_accuracy"]
guess.compare(longest=longest, accuracy=100 * accuracy)
print(f"{round(accuracy * TEST_IMAGES)} of {TEST_IMAGES} test digits were recognised.")
print(f"{longest} took {seconds[longest] / seconds.sum():.0%} of this job's time.")

# %% [markdown]
# How much of *Training* was training? The log tells when the script printed each line. *All steps*
# is the number of steps times the mean seconds of a step (without each epoch's first). *Compile* is
# what the first ten steps took beyond ten such steps; *the rest* is what is left over.

# %% jupyter={"source_hidden": true} tags=["figure"]
moved = result.description["SecondaryStatusTransitions"]
(training,) = (phase for phase in moved if phase["Status"] == "Training")
began, ended = training["StartTime"].timestamp(), training["EndTime"].timestamp()
at = {kind: result.matching(f'"event": "{kind}"')[0].time for kind in ("start", "step", "weights")}
per_epoch, first = result.table("epoch"), result.table("step")["step"].iloc[0]
step_seconds, steps_done = per_epoch["step_seconds"].mean(), int(per_epoch["step"].iloc[-1])
in_steps = steps_done * step_seconds
compiling = at["step"] - at["start"] - first * step_seconds
parts = {
    "start, import, build the model": at["start"] - began,
    "compile": max(0.0, compiling),
    "all steps": in_steps,
}
parts["the rest (shuffle, test)"] = max(0.0, at["weights"] - began - sum(parts.values()))
parts["save the model, exit"] = ended - at["weights"]

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
begin, whole = parts["start, import, build the model"], seconds["Training"]
title = f"Of {whole:.1f} s of Training all steps took {in_steps:.1f} s; "
title += f"{begin:.1f} s passed before the first step"
alt = f"{title}. " + ", ".join(f"{name}: {length:.1f} s" for name, length in parts.items())
with plots.canvas(title, "seconds of Training, added up by kind", size=(8, 2), alt=alt) as axes:
    left = 0.0
    for (name, length), colour in zip(parts.items(), plots.COLOURS, strict=False):
        label = f"{name}: {length:.1f} s"
        axes.barh(0, length, left=left, color=colour, edgecolor="white", label=label)
        left += length
    axes.set_yticks([])
    axes.set_ylim(-0.5, 0.5)
    axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.45))

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(
    phases=result.phases, billable_seconds=result.billable_seconds, longest=longest, parts=parts
)
assert result.phases["Training"] > 0, (
    "The job has no Training phase: look at result.failure_reason()."
)

# %% [markdown]
# *Training* is everything that the script does. More instances don't make starting, importing or
# saving faster. On AWS *Starting* takes minutes: a computer is found and started (not measured
# here).
#
# `billable` is what AWS would charge for: the seconds from the beginning of *Downloading*, which on
# AWS includes the container image, until the model is uploaded, times the instances
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html)).
# *Starting* is free.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Create the stacks
#
# The two things that a job needs are a **bucket** in S3 and a **role**. On AWS a job doesn't run as
# you: it acts under its role, which lists what is allowed; everything else is refused. (The
# emulator doesn't check the role. Here a job runs as you: run only scripts that you trust.) This is
# what the template allows with S3:

# %% jupyter={"source_hidden": true} slideshow={"slide_type": "-"}
from workshop.account.stacks import template_resources

role = template_resources("roles")["TrainingRole"]["Properties"]
for statement in role["Policies"][0]["PolicyDocument"]["Statement"]:
    if "s3:" in str(statement["Action"]):
        where = statement["Resource"].get("Fn::Sub", ["${BucketArn}"])[0]
        print(f"{statement['Sid']}: {statement['Action']} on {where}")

# %% [markdown]
# So the role reads one bucket, and writes only below `jobs/` in it. That matters because *your
# script has these rights*, and so has every package that it imports. Many tutorials attach AWS's
# ready-made `AmazonSageMakerFullAccess` instead. Under that one, malicious code can stop any
# training job and delete any model or endpoint of the account, and every object in every bucket
# with `sagemaker` in its name, your colleagues' default bucket included
# ([AWS](https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSageMakerFullAccess.html)).
#
# Bucket and role are described in two files in `cloudformation/`, **templates**. What AWS's service
# CloudFormation creates from a template is a **stack**. A template states what should be there, not
# what to do, so a second run changes nothing:

# %%
again = workshop.deploy(session)
print(f"bucket: {session.bucket}")
print(f"role:   {session.role.split('/')[-1]}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert all(stack.change == "no change" for stack in again), "Deploying twice must change nothing."
assert session.role.startswith("arn:"), f"{session.role} isn't an ARN: run the cells above again."

# %% [markdown]
# <details><summary>By hand, and in other regions</summary>
#
# For each template `workshop.deploy` does what you could type:
#
#     aws cloudformation deploy --stack-name workshop-me-roles \
#         --template-file cloudformation/roles.yaml --parameter-overrides Seat=me \
#         --capabilities CAPABILITY_NAMED_IAM
#
# The last line says that you know that it creates roles. Clicks in the console would do as well,
# but nobody can repeat or review them.
#
# On AWS everything is in one **region**, such as `us-east-1` (Virginia): the one in
# `AWS_DEFAULT_REGION` or `aws configure`. What is created in one region can't be seen from another.
# The prices of this course are those of `us-east-1`.
#
# </details>
#
# ## Prepare the data
#
# S3 is an **object store**: it keeps whole files, each at an address such as
# `s3://my-bucket/data/part-0.npz`. In an ordinary bucket a file can be replaced, but not renamed or
# appended to, and a folder is only the beginning of an address, a *prefix*. `session.upload` wrote
# the digits, which come with scikit-learn, and sent what was not there yet:

# %%
stored = session.client("s3").list_objects_v2(Bucket=session.bucket, Prefix="data/digits/")
for stored_file in stored["Contents"]:
    print(stored_file["Key"], stored_file["Size"], "bytes")
channels["training"]

# %% jupyter={"source_hidden": true} tags=["results"]
assert len(stored["Contents"]) >= 5, "Some files are missing: run session.upload again."

# %% [markdown]
# A job gets data through **channels**. A channel has a name and an address in S3; on the instance
# it is a folder, and the variable `SM_CHANNEL_TRAINING` tells the script where the channel
# `training` is. SageMaker copies all files before the script starts. (Another way: lesson 09.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What a script must do for SageMaker
#
# Here is a training step of `scripts/train/train_tf.py`. Nothing in it knows about SageMaker, and
# few of these lines change when several processes train one model.

# %% slideshow={"slide_type": "-"}
workshop.show_function("train/train_tf.py", "train_step")

# %% [markdown]
# (`GradientTape` records the computation for the gradients. Logits are outputs before they become
# probabilities. `@tf.function` compiles the step.)

# %% [markdown] slideshow={"slide_type": "slide"}
# AWS's container image has everything but your script and runs it as it is, which AWS calls
# **script mode**. The script has to do three things:
#
# 1. It reads its data from the folders in `SM_CHANNEL_…`, and not from S3 or a fixed path.
# 2. It takes **hyperparameters**, settings such as the number of epochs, as arguments:
#    `{"epochs": 20}` arrives as `--epochs 20`. The TensorFlow estimator also sends `--model_dir`:
#    accept it, or give the estimator `model_dir=False`.
# 3. At the end it saves its model to the folder in `SM_MODEL_DIR`. SageMaker uploads what is there.

# %% [markdown]
# One function names them: `--training` and `--test` do the first, `--save-to` the third; the second
# is an `add_argument` for each setting. The defaults let the same file run on a laptop.

# %%
workshop.show_function("train/train_tf.py", "parse_args")

# %% [markdown]
# A **rank** is one of the processes that train together. Here there is only one.
#
# <details><summary>Libraries, and a model that is to answer requests</summary>
#
# If the container image lacks a library, put a `requirements.txt` beside the script: every instance
# installs it before the script starts. Pin versions, and leave out what the container image has,
# above all TensorFlow. In a closed network an instance can't reach the package index.
#
# Any file will do as a model. Only if TensorFlow's server is to answer requests with it must it be
# a **SavedModel** (TensorFlow's format: computation and weights in a folder), in a folder whose
# name is a number.
#
# </details>
#
# ### What `**shared` adds
#
# The next cell prints it.
#
# <details><summary>Its parts, and which container image to take</summary>
#
# - `sagemaker_session` is the SDK's connection, `role` the role from above, by its **ARN**, the
#   full name that everything in AWS has.
# - `source_dir` is the folder that is sent along. The job's name begins with `base_job_name`; the
#   SDK adds the time, because names are unique in an account and region. With a fixed `job_name=` a
#   second `fit` is refused.
# - `output_path` and `code_location` are where in S3 the model and the packed script go. Without
#   them the SDK makes a bucket of its own.
# - `metric_definitions` is explained below, `tags` say whose job it is. `disable_profiler` and
#   `debugger_hook_config=False` turn off two services that we don't use.
#
# `framework_version` chooses the container image on AWS. Those of these lessons are old on purpose:
# TensorFlow 2.12 is the last with Horovod inside, the library of lessons 04 and 05. Old ones get
# **no security patches** ([which
# do](https://aws.github.io/deep-learning-containers/reference/support_policy)); for your own work
# take a current one.
#
# </details>

# %% jupyter={"source_hidden": true}
for name, value in shared.items():
    text = repr(value)
    print(f"{name}={text if len(text) < 80 else text[:76] + ' ...'},")

# %% [markdown]
# ## Find a job again
#
# The job doesn't run in this notebook: close it, and the job continues. `workshop jobs` in a
# terminal lists the names of jobs (type `. .venv/bin/activate` there once), and so does AWS's
# console. From a name `attach` makes an estimator:

# %%
attached = TensorFlow.attach(result.name, sagemaker_session=session.sagemaker_session)
print(attached.model_data.removeprefix(f"s3://{session.bucket}/"))

# %% [markdown]
# (All lines show the time of the job's last change, not of the phase.)

# %% jupyter={"source_hidden": true} tags=["results"]
assert attached.model_data == result.model, "attach found another job: compare the two names."
workshop.save_results(attached=attached.latest_training_job.name == result.name)

# %% [markdown]
# ## What the job left
#
# When the script ended, SageMaker packed what was in `SM_MODEL_DIR` and put it into S3. What must
# be safe earlier, a script writes as checkpoints.

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
# The folder `1` is the model's version: a server that finds `1` and `2` takes the higher one.
#
# ## Read the log
#
# All that the script prints goes to CloudWatch Logs, AWS's service for logs. Each instance writes a
# log of its own. An instance is also called a **host**; the first is `algo-1`. Its log begins with
# what it is told about itself. (`[local]` is the emulator's word: it pulls no container image, and
# runs the TensorFlow that is installed here.)

# %%
shown = "[local] image", "SM_HOSTS", "SM_CURRENT_HOST", "SM_CHANNEL_", "SM_MODEL_DIR"
for line in result.lines:
    if line.text.startswith(shown):
        print(line)

# %% [markdown]
# Then come the script's own lines: a JSON record every 10 steps, and one after each epoch.

# %%
for event in ("step", "epoch"):
    print(next(line for line in result.lines if f'"event": "{event}"' in line.text))

# %% [markdown]
# The **metrics** are read from such lines: the request had a regular expression for each. The job's
# description keeps the last value of each.

# %% slideshow={"slide_type": "slide"}
epochs_table, steps = result.table("epoch"), result.table("step")
losses = epochs_table["train_loss"]
middle = epochs_table["step"] - epochs_table["step"].iloc[0] / 2  # of each epoch
title = f"Training loss fell from {losses.iloc[0]:.2f} to {losses.iloc[-1]:.3f}"
blue, orange, *_ = plots.COLOURS
with plots.canvas(title, "training step (one batch of 64 digits)", "loss (cross-entropy)") as axes:
    axes.plot(steps["step"], steps["train_loss"], color=blue, label="every tenth step", linewidth=1)
    axes.plot(middle, losses, "o-", color=orange, label="mean of an epoch")
    axes.set_yscale("log")
    axes.legend(frameon=False)

# %% jupyter={"source_hidden": true} tags=["results"]
assert losses.iloc[-1] < losses.iloc[0], "The loss did not fall: look at the learning rate."
assert accuracy >= expected_accuracy, f"{accuracy:.1%} is too low; {expected_accuracy:.0%} expected"
workshop.save_results(
    losses=losses, accuracy=accuracy, world_size=result.table("start")["world_size"]
)

# %% [markdown]
# The loss of single steps jumps, because each step sees only 64 digits: judge by the mean of an
# epoch. `test_accuracy` is measured on digits that were never trained on.
#
# ## Check the machine
#
# `make doctor` tries out each thing that the course needs, and prints a line for it. So does this
# cell, in a few seconds.

# %%
from workshop.doctor.checks import examine

checks = pd.DataFrame(
    [{"need": need, "level": c.level, "found": c.finding} for need, c in examine()]
)
checks.set_index("need")

# %% [markdown]
# `WARN`: the course works, but a lesson may show less here. `FAIL`: fix it first; `make doctor`
# says how. You don't need to know the names yet.

# %% jupyter={"source_hidden": true} tags=["results"]
failed = checks[checks["level"] == "FAIL"]
assert failed.empty, f"Run `make doctor` and fix: {', '.join(failed['need'])}"
workshop.save_results(versions=workshop.versions(), needs_checked=len(checks))

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

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("00")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A training job takes instances, copies data and script there, runs the script, saves the
#   model, and gives the instances back.
# - `target` is the only switch between this machine and AWS, once you have credentials.
# - Bucket and role come from stacks. Your script acts under the role: keep it narrow.
# - A script reads its channels, takes hyperparameters as arguments, and saves to `SM_MODEL_DIR`.
# - A job runs on without the notebook; its name is enough to find it again.
# - More instances can shorten the steps; starting, importing and saving they can't.

# %%
print(f"{result.status}: {accuracy:.1%} of the test digits right, model in {result.model}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert result.model.endswith("model.tar.gz"), "The job left no model."

# %% [markdown]
# ## Clean up
#
# There is nothing to do now: the next lessons use the bucket and the role. When you stop for the
# day, `local-sagemaker stop` ends the emulator and keeps its jobs and buckets. (`local-sagemaker
# stop --forget` deletes them, too.)
#
# ## Next
#
# [01 · Data parallelism](01_data_parallelism.ipynb): what several processes share, what they
# split, and when it pays.

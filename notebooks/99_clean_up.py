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
# # 99 · Clean up, and prove it
#
# **After this lesson you can**
#
# - say what costs money even when nobody uses it, and how much;
# - list what a seat has in an account before you delete any of it, and prove that nothing is left;
# - tell your own things from other people's, even if their names are alike;
# - delete things in an order that an interruption can't spoil.
#
# **Before:** [lesson 00](00_setup.ipynb): stacks, bucket, job.
#
# **Time:** 20 minutes, and 13 for the exercises.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet. There, run it with your own credentials: the course's
# notebook instance is not allowed to create or delete stacks.
#
# **Cost on AWS:** about 0.02 USD, at most 0.05 USD: one `ml.c5.xlarge`, 5 minutes planned
# (us-east-1, price list of 2026-09-27), to have something to delete. Locally nothing.

# %% [markdown]
# ## Set up
#
# - `seat`: your seat, as in the other lessons.
# - `delete`: `True` deletes everything that **your seat** has, in the section *Your own seat*. Set
#   it when you have finished the course.
# - `max_run`: seconds after which SageMaker ends the job of this lesson.

# %% tags=["parameters"]
target = "local"
seat = "me"
delete = False
max_run = 600

# %%
import pandas as pd
from IPython.display import display

import workshop
from data_prep import digits, upload
from workshop import plots
from workshop.account import cleanup, prices

print(workshop.versions())

# %% [markdown]
# You will practise on a second seat, named after yours with 99 at its end. If somebody uses a seat
# of that name, the lesson stops here. Until *Your own seat* nothing from other lessons is touched.

# %%
practice = f"{seat[:14]}99"
session = workshop.session(target=target, seat=practice)
from_here = tuple(session.job_prefix + name for name in ("last-", "digits", "storage", "roles"))
found_before = cleanup.find(session).owned  # an interrupted run of this lesson may have left it
others = [r.name for r in found_before if r.kind != "objects" and not r.name.startswith(from_here)]
if others:
    raise RuntimeError(f"Seat {practice!r} is in use ({others[0]}): set another seat at the top.")
session

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The result: what costs money even when nobody uses it
#
# A job ends, and its instances are released. Other things are billed until somebody stops or
# deletes them. An **endpoint** is an instance that waits for requests. A **NAT gateway** connects a
# private network to the internet and needs a public address (`public-ipv4`), an **interface
# endpoint** connects it to one AWS service. A **notebook instance** is a machine with Jupyter; its
# disk is `notebook-volume`. `ecr` stands for container images, `logs` for log lines, `s3` for
# objects in a bucket: 10 GB of each. A month is 730 hours. **Predict, then run**: S3 takes 0.023
# USD for a GB and month. (The second answer comes under *Look before you delete*.)

# %% slideshow={"slide_type": "-"}
leaves = ["objects in S3", "objects and a log", "objects, a log and its record"]
guess = workshop.guess(
    gigabytes="How many GB in S3 cost as much as a forgotten notebook instance ml.t3.medium?",
    job=("What does a job that has ended leave behind?", leaves),
)

# %% slideshow={"slide_type": "slide"}
idle = prices.idle_table()
monthly = idle["USD a month"]
notebook, ten_gb = monthly["notebook ml.t3.medium"], monthly["s3"]
gigabytes = 10 * notebook / ten_gb
print(f"The notebook instance: {notebook:.2f} USD a month, used or not. 10 GB: {ten_gb:.2f} USD.")
guess.compare("listed", gigabytes=round(gigabytes))

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
hourly = idle["USD"].str.contains("hour")
running, stored = monthly[hourly], monthly[~hourly].rename("{}, 10 GB".format)
title = f"Running: {running.min():.0f} to {running.max():.0f} USD a month; "
title += f"10 GB stored: {stored.min():.1f} to {stored.max():.1f}"
both = [
    ("running: billed by the hour", running, "o"),
    ("stored: billed by the GB-month", stored, "s"),
]
alt = f"{title}. " + "; ".join(
    f"{name}: {usd:.2f}" for _, rows, _ in both for name, usd in rows.items()
)
with plots.canvas(title, "USD a month, us-east-1 (logarithmic)", size=(7, 3.6), alt=alt) as axes:
    for (label, rows, mark), colour in zip(both, plots.COLOURS[:4:3], strict=False):
        axes.plot(rows, rows.index, mark, color=colour, markersize=8, label=label)
        for name, usd in rows.items():
            axes.annotate(
                f"{usd:,.2f}", (usd, name), (8, 0), textcoords="offset points", va="center"
            )
    axes.set_xscale("log")
    axes.set_xlim(0.1, 1000)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower right")

# %%
with pd.option_context("display.max_colwidth", None):
    display(idle)

# %% [markdown]
# List prices, each with its date; `workshop/account/prices.toml` names the sources. In December
# 2022 somebody [reported](https://github.com/amazon-science/alexa-teacher-models/issues/5) a bill
# of more than 2,000 USD after a tutorial. AWS support had found "Hosting ml.g4dn.12xlarge" in it:
# that is how the bill names an endpoint's instance, here one with four GPUs.
#
# Before you start, let [AWS
# Budgets](https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html)
# send you an e-mail at a sum that you choose. It warns hours late, and stops nothing.
#
# **SageMaker Studio** is in neither the table nor this course's clean-up. If you opened it, list
# what runs there: `aws sagemaker list-apps`. A space's app is an instance, billed until it is
# [deleted](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteApp.html); the space
# keeps its disk until you
# [delete](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteSpace.html) it, too.
# Canvas is billed until you [log
# out](https://docs.aws.amazon.com/sagemaker/latest/dg/canvas-log-out.html). Deleting a domain keeps
# its file system, unless you ask for
# [`Delete`](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_RetentionPolicy.html).
# (Read in November 2026.)

# %% jupyter={"source_hidden": true} tags=["results"]
assert idle.loc["s3", "USD a month"] < 1, "Look at the price of S3 again."
workshop.save_results(gigabytes=gigabytes)

# %% [markdown]
# ## Make something to delete
#
# As in lesson 00: stacks, data, a job of one instance. It trains another script for one epoch, too
# few to learn anything: here only its leftovers matter.

# %%
deployed = workshop.deploy(session)
data = f"s3://{session.bucket}/data/digits"
folder = digits.prepare(workshop.DATA / "digits")
uploaded = upload(folder, data, client=session.client("s3"))

# %%
from sagemaker.pytorch import PyTorch

estimator = PyTorch(
    entry_point="train_torch.py",
    framework_version="2.2.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    instance_count=1,
    hyperparameters={"epochs": 1},
    **(session.job_settings("last") | {"max_run": max_run}),
)
estimator.fit({"training": f"{data}/training", "test": f"{data}/test"}, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# <!-- SDK v3: last -->

# %% [markdown]
# Next you register the model, with the two **tags** that everything in this course carries,
# `workshop` and `seat`, and another with a similar name and no tags. Pretend that it belongs to a
# colleague.

# %%
api = session.client("sagemaker")
entry = {
    "ExecutionRoleArn": session.role,
    "PrimaryContainer": {"Image": estimator.training_image_uri(), "ModelDataUrl": result.model},
}
own_model, colleagues_model = f"{session.job_prefix}digits", f"{session.job_prefix}of-a-colleague"
there = {m["ModelName"] for m in api.list_models(NameContains=session.job_prefix)["Models"]}
ours = [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": practice}]
for name, tags in ((own_model, ours), (colleagues_model, [])):
    if name not in there:  # an interrupted run may have left it
        api.create_model(ModelName=name, Tags=tags, **entry)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Look before you delete
#
# `cleanup.find` looks for everything that a seat can have, and changes nothing. It lists what has a
# name that begins with `workshop-SEAT-`, as all names in this course do (its role permits no
# others), and keeps of that what carries your tags. What *you* named otherwise, as in the console,
# it can't see. (At a shell: `workshop clean --dry-run`, with `--seat NAME` and `--target aws`.)

# %% slideshow={"slide_type": "-"}
resources = cleanup.find(session)
absent = [each.kind for each in cleanup.TYPES if each.kind not in resources.kinds]
print(f"Looked for, and not there: {', '.join(absent)}.")
resources.table()

# %% [markdown]
# Notebook instances and NAT gateways would be in stacks; your bucket is in one and counts there.
# `not told` and `not known`: AWS doesn't report the size of a log stream, a few kilobytes; a job
# has one for each instance. You made the stacks and the model, and most objects are data that you
# uploaded. The job left the others, its packed code and trained model, a log stream and its record:

# %% slideshow={"slide_type": "slide"}
kinds = set(resources.table()["how many"].index)
also = {"log streams of training jobs", "records of training jobs"} & kinds
guess.compare(job=leaves[len(also)])

# %% jupyter={"source_hidden": true} tags=["results"]
assert not resources.unseen, f"Could not be looked at: {resources.unseen}"
assert len(resources.by_kind("models")) == 1, "Run the cells of `Make something to delete` again."
kinds = {kind: int(count) for kind, count in resources.table()["how many"].items()}
workshop.save_results(kinds=kinds, usd_per_month=resources.usd_per_month)

# %% [markdown]
# The table counts one model, yours. The search also found the colleague's, and says why it isn't in
# the table:

# %% slideshow={"slide_type": "slide"}
for foreign in resources.foreign:
    print(f"{foreign.kind}: {foreign.name}: {foreign.note}")

# %% [markdown] slideshow={"slide_type": "-"}
# **A name proves nothing.** `workshop-a-b-storage` begins like the things of seat `a`, but may
# belong to a seat called `a-b`. The name says where to look, and the tags say whose it is.

# %% [markdown]
# Log streams can't have tags. A log stream is yours if its job is yours, and only the job's record
# says that. So the log goes first and the record after it: **the proof of ownership goes last**,
# and an interrupted clean-up can be finished.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Delete, and look again
#
# Running things would go first: they cost most, and may still write something. Here nothing runs,
# so models begin. Then come the logs, the records of the jobs, and objects before the bucket's
# stack, because CloudFormation can't delete a bucket that isn't empty.
#
# What if you press Ctrl-C just when the log is gone? Try it:


# %%
def interrupt_after_the_log(line):
    print(line)
    if line.startswith("log streams"):
        raise KeyboardInterrupt


try:
    cleanup.clean(session, log=interrupt_after_the_log)
except KeyboardInterrupt:
    print("Interrupted. Left:", ", ".join(cleanup.find(session).kinds))

# %% [markdown]
# The record is still there, so the job is known to be yours: run it again. Had the record gone
# first, the log would be left for ever: "there is no training job of this name whose tags could
# tell".

# %%
report = cleanup.clean(session)

# %% [markdown]
# After deleting, look again: at the account, not at a list of what you meant to delete. Then report
# what is left, and why. (Here "nothing" means: of the kinds that the lesson lists, in this region,
# under such names. For the rest look at what runs, with `aws sagemaker list-endpoints` and
# `list-notebook-instances`, and at the bill.)

# %% slideshow={"slide_type": "-"}
left_now = cleanup.find(session)
print(f"A new look finds {left_now.count} things of this seat.")
print("\n".join(report.lines()))

# %% jupyter={"source_hidden": true} tags=["results"]
assert report.nothing_left, "Read the lines above, fix the cause, and run this section again."
assert not report.refused, f"Refused: {report.refused}"
workshop.save_results(done=len(report.done), left=report.left.count)

# %% [markdown]
# If a call is refused, the clean-up deletes the rest and names the call. You can always run it
# again:

# %%
again = cleanup.clean(session)
print(f"A second run deleted {len(again.done)} things.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(again=len(again.done))
assert again.done == [], "A second run found something: what still writes?"

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What AWS keeps
#
# Some things you can't and needn't delete: they are free.
#
# - **CloudFormation** lists a deleted stack for 90 days
#   ([ListStacks](https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStacks.html)).
#   The clean-up uses that: it proves whose the log of a notebook instance is, whose stack has gone.
# - **CloudTrail**, the record of who called what, keeps the calls of the last 90 days ([event
#   history](https://docs.aws.amazon.com/awscloudtrail/latest/userguide/view-cloudtrail-events.html)).
# - **SageMaker** keeps the records of transform jobs (lesson 08): it has no call that deletes one.
# - The **bill** sums a month. Two days later look at the cost per day, in Cost Explorer: it is the
#   final proof.

# %% [markdown]
# Records of training jobs can be deleted, and the clean-up did it. They are free, too: to compare
# jobs next year, keep them.

# %%
jobs = api.list_training_jobs(NameContains=session.job_prefix)["TrainingJobSummaries"]
print(f"{len(jobs)} job records of this seat are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert jobs == [], "Job records are left: run `Delete, and look again` once more."
workshop.save_results(jobs_left=len(jobs))

# %% [markdown]
# ## Your own seat
#
# Now the seat that you used in the other lessons (transform jobs: lesson 08). List first. (On a
# published page it is that of the people who made the page.)

# %%
seat_session = workshop.session(target=target, seat=seat)
before = cleanup.find(seat_session)
before.table() if before.count else print(f"There is nothing of seat {seat!r}.")

# %%
if delete:
    print("\n".join(cleanup.clean(seat_session).lines()))
else:
    print("To delete it all, set delete = True at the top and run all cells. Or in a terminal:\n")
    print(f"    workshop clean --seat {seat} --target {target}")

# %% jupyter={"source_hidden": true} tags=["results"]
after = cleanup.find(seat_session)
assert delete or after.count >= before.count, (
    "Things of your seat disappeared: what else deletes them?"
)
workshop.save_results(own_before=before.count, own_after=after.count)

# %% [markdown]
# ## Exercises
#
# In [exercises/99](exercises/99_clean_up.ipynb), each with a check:
#
# 1. *Whose is it?* (5 minutes, easy): what a clean-up may delete.
# 2. *In which order?* (8 minutes, medium): first the user of a thing, then the thing.

# %% [markdown]
# ## Check yourself

# %% question=1 slideshow={"slide_type": "slide"}
workshop.quiz("99")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - Jobs end. What runs (endpoints, notebook instances, Studio's apps, parts of a network) is billed
#   until you stop or delete it, used or not.
# - Tags say whose a thing is. Names don't.
# - Delete the proof of ownership last.
# - A clean-up ends with a look at the account: either nothing is left, or it says what and why.

# %%
print(f"{resources.count} things of this seat were made, {report.left.count} of them are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert cleanup.find(session).count == 0, "Something came back: which process is still running?"

# %% [markdown]
# ## Clean up
#
# The clean-up rightly kept the model without tags. There is no colleague in this lesson, so delete
# it by hand.

# %%
same_name = {"NameContains": colleagues_model}
survivors = [model["ModelName"] for model in api.list_models(**same_name)["Models"]]
api.delete_model(ModelName=colleagues_model)
left = [model["ModelName"] for model in api.list_models(**same_name)["Models"]]
print(f"Deleted by hand: {colleagues_model}. Still there: {colleagues_model in left}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert colleagues_model in survivors, "The colleague's model is gone: that must never happen."
workshop.save_results(foreign_survived=colleagues_model in survivors)

# %% [markdown]
# Optional: `local-sagemaker stop --forget` ends the emulator and deletes all that it keeps, for
# every seat.
#
# ## Next
#
# Train your own model. Copy a way from [the reference](reference.ipynb), DDP if in doubt, replace
# our script with yours, and finish with `workshop clean`.
#
# Further reading: AWS's pages on [distributed
# training](https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-training.html). For other
# ways of dividing work, [Dask](https://distributed.dask.org) and [Ray](https://docs.ray.io).

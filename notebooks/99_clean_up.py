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
# # 99 · Clean up, and prove it
#
# **After this lesson you can**
#
# - say what costs money while nobody looks, and how much;
# - see all that your seat has in an account, before anything is deleted;
# - delete it, look again, and say: nothing is left;
# - tell your own things from other people's, whatever their names are.
#
# **Before:** [lesson 00](00_setup.ipynb): stacks, bucket, job.
#
# **Time:** 10 minutes, and 13 for the exercises.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# For AWS take credentials of your own: the role of the course's notebook instance may neither make
# nor delete stacks, least of all the one that it stands in.
#
# **Cost on AWS:** about 0.02 USD: one `ml.c5.xlarge` for 5 minutes (us-east-1, price list of
# 2026-09-27), to have something to delete. Locally nothing.

# %% [markdown]
# ## Set up
#
# - `seat`: your seat, the one of the other lessons.
# - `delete`: whether the last section deletes all that **your seat** has. As it stands it only
#   shows that. Set it to `True` when you have finished the course.
# - `max_run`: seconds after which SageMaker ends the job of this lesson.

# %% tags=["parameters"]
target = "local"
seat = "me"
delete = False
max_run = 600

# %%
import workshop
from data_prep import digits, upload
from workshop.account import cleanup, prices

print(workshop.versions())

# %% [markdown]
# You will practise on a second seat, which this lesson makes, fills and deletes. Nothing that you
# made in other lessons is touched by it.

# %%
practice = f"{seat[:14]}99"
session = workshop.session(target=target, seat=practice)
session

# %% [markdown]
# ## What costs money while nobody looks
#
# A training job ends, and its instances are given back. Other things stay until somebody deletes
# them. An **endpoint** is one or more instances that wait for requests to your model, day and
# night. A **NAT gateway** is the way from a closed network to the internet, and an **interface
# endpoint** is the way from it to one service of AWS. Both belong to a network, not to a job.
#
# **Predict, then run.** The second question is about the job that you will run below.

# %%
asked = ["endpoint ml.m5.large", "nat-gateway", "interface-endpoint", "s3"]
guess = workshop.guess(
    dearest=("Which costs most in a month? (s3: 10 GB)", asked),
    things="How many things does one small job leave?",
)

# %%
idle = prices.idle_table()
idle

# %% [markdown]
# Each price is a list price of us-east-1 with its date; `workshop/account/prices.toml` names the
# sources. Your region and your day may differ.
#
# In this table a month is 730 hours. Whether anybody used the thing does not matter. In December
# 2022 somebody [reported](https://github.com/amazon-science/alexa-teacher-models/issues/5) a bill
# of more than 2,000 USD after a tutorial: they had not used what it set up, they wrote, and AWS's
# support found the cost under "Hosting". That is how an endpoint is billed. It is one side of a
# story, and the remedy is the same in any case: look what is there.

# %%
dearest = idle.loc[asked, "USD a month"].idxmax()

# %% jupyter={"source_hidden": true} tags=["results"]
assert idle.loc["s3", "USD a month"] < 1, "Look at the price of S3 again."
workshop.save_results(dearest=dearest)

# %% [markdown]
# ## Make something to delete
#
# The same as in lesson 00: stacks, data, a job of one instance.

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
# To serve a model, SageMaker wants an entry of it: an image, and where its files are. You make one.
# It has the two **tags** that all things of this course carry: `workshop` and `seat`.
#
# You also make an entry with a very similar name and no tags. Let us say that it is a colleague's.

# %%
api = session.client("sagemaker")
entry = {
    "ExecutionRoleArn": session.role,
    "PrimaryContainer": {"Image": estimator.training_image_uri(), "ModelDataUrl": result.model},
}
mine, theirs = f"{session.job_prefix}digits", f"{session.job_prefix}of-a-colleague"
there = {one["ModelName"] for one in api.list_models(NameContains=session.job_prefix)["Models"]}
ours = [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": practice}]
for name, tags in ((mine, ours), (theirs, [])):
    if name not in there:  # a run of this lesson that was broken off may have left it
        api.create_model(ModelName=name, Tags=tags, **entry)

# %% [markdown]
# ## Look before you delete
#
# `cleanup.find` looks at everything a seat can have, and changes nothing. At a terminal this is
# `workshop clean --dry-run`, with `--seat NAME` and `--target aws`.

# %%
found = cleanup.find(session)
found.table()

# %% [markdown]
# You should see five kinds, all made by one job of a few seconds and what it needed. The objects
# are the data, your packed code and the trained model. `not told` and `not known` stand where AWS
# does not tell the size of a log stream; it is a few kilobytes.

# %%
guess.compare(dearest=dearest, things=found.count)

# %% jupyter={"source_hidden": true} tags=["results"]
assert not found.unseen, f"Could not be looked at: {found.unseen}"
assert len(found.of("models")) == 1, "Run the cells of `Make something to delete` again."
kinds = {kind: int(count) for kind, count in found.table()["how many"].items()}
workshop.save_results(kinds=kinds, usd_per_month=found.usd_per_month)

# %% [markdown]
# Nothing here costs more than a cent a month. That is what the course is built for: its jobs end by
# themselves, and the stacks that cost by the hour are not made unless you name them.
#
# And the colleague's entry? It is not in the table. It was seen, and here is what was said of it:

# %%
for foreign in found.foreign:
    print(f"{foreign.kind}: {foreign.name}: {foreign.why}")

# %% [markdown]
# **A name proves nothing.** `workshop-a-b-storage` begins like the things of seat `a`, and may be
# somebody else's. So only the tags count. What has the name and not the tags is shown, and stays.
#
# Log streams cannot have tags. They are yours if the job that wrote them is. Keep that in mind for
# the next section: **what proves who owns a thing must be deleted after it.**
#
# ## Delete, and look again
#
# What runs goes first, since it costs most and goes on writing. Then logs before the jobs that
# prove whose they are, and objects before the bucket's stack: CloudFormation deletes no bucket
# that holds something.

# %%
report = cleanup.clean(session)

# %% [markdown]
# The last step is the one that most clean-ups lack. After deleting, look again, at the account and
# not at a list of what you meant to delete. Report what is left, and why.

# %%
for line in report.lines():
    print(line)

# %% jupyter={"source_hidden": true} tags=["results"]
assert report.nothing_left, "Read the lines above, mend the cause, and run this section again."
assert not report.refused, f"Refused: {report.refused}"
workshop.save_results(done=len(report.done), left=report.left.count)

# %% [markdown]
# `Left: nothing.` Had something been refused, for want of a permission, say, the rest would have
# gone all the same, and the line would name the call that was refused. Doing it again is safe: a
# second run finds what is there, whatever became of the first.

# %%
again = cleanup.clean(session)
print(f"A second run deleted {len(again.done)} things.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(again=len(again.done))
assert again.done == [], "A second run found something: what still writes?"

# %% [markdown]
# ## What AWS keeps
#
# Some things you cannot delete, and need not:
#
# - **CloudFormation** tells of a deleted stack for 90 days
#   ([ListStacks](https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStacks.html)).
# - **CloudTrail**, the record of who called what, keeps 90 days of calls
#   ([event history](https://docs.aws.amazon.com/awscloudtrail/latest/userguide/view-cloudtrail-events.html)).
# - The **bill** keeps its lines. Look at it two days later: that is the last proof, and it comes
#   late.
#
# All three cost nothing. Texts of some years ago add a fourth, the records of training jobs. Since
# then SageMaker has got a call, `DeleteTrainingJob`, and the clean-up used it. With a record you
# lose its metrics and its request: whoever wants to compare jobs next year keeps it, and it costs
# nothing either.

# %%
jobs = api.list_training_jobs(NameContains=session.job_prefix)["TrainingJobSummaries"]
print(f"{len(jobs)} job records of this seat are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert jobs == [], "Job records are left: run `Delete, and look again` once more."
workshop.save_results(jobs_left=len(jobs))

# %% [markdown]
# ## Your own seat
#
# Now the seat that you used in the other lessons. First a look, as before.

# %%
own = workshop.session(target=target, seat=seat)
before = cleanup.find(own)
before.table() if before.count else print(f"There is nothing of seat {seat!r}.")

# %%
if delete:
    print("\n".join(cleanup.clean(own).lines()))
else:
    print("To delete all of it: delete = True in the cell at the top, and run from there. Or:\n")
    print(f"    workshop clean --seat {seat} --target {target}")

# %% jupyter={"source_hidden": true} tags=["results"]
after = cleanup.find(own)
assert delete or after.count >= before.count, "Things of your seat went away: who deletes?"
workshop.save_results(own_before=before.count, own_after=after.count)

# %% [markdown]
# ## Exercises
#
# Both are in [exercises/99_clean_up.ipynb](exercises/99_clean_up.ipynb), with a check for each.
#
# 1. **Whose is it?** (5 minutes, easy): what a clean-up may delete.
# 2. **In which order?** (8 minutes, medium): users go before what they use.

# %% [markdown]
# ## Check yourself

# %%
workshop.quiz("99")

# %% [markdown]
# ## Summary
#
# - Jobs end. Endpoints, notebook instances and parts of a network cost by the hour until they are
#   deleted, used or not.
# - Tags say whose a thing is; names do not.
# - What proves who owns a thing goes after it, so that a broken-off clean-up can be finished.
# - A clean-up ends with a look at the account: nothing is left, or what, and why.

# %%
print(f"{found.count} things were made, {report.left.count} are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert cleanup.find(session).count == 0, "Something came back: which program still runs?"

# %% [markdown]
# ## Clean up
#
# One thing is left, which no program may delete for you: the colleague's. You made it, so you may.

# %%
survivors = [one["ModelName"] for one in api.list_models()["Models"]]
api.delete_model(ModelName=theirs)
print(f"Deleted by hand: {theirs}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert theirs in survivors, "The colleague's model is gone: that must never happen."
workshop.save_results(foreign_survived=theirs in survivors)

# %% [markdown]
# On this machine the endpoint keeps its state in one directory, which `workshop status` names.
# `workshop down --forget` ends the endpoint and removes all of it, for every seat.
#
# ## Next
#
# Your own model. Take [lesson 05](05_horovod_on_training_instances.ipynb) as it is, put your script
# in the place of ours, and end with `workshop clean`.

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
# # 08 · Serving: ask the model, resume after an interruption, and what breaks
#
# **After this lesson you can**
#
# - put a trained model behind an address, ask it in three forms, and take it away again;
# - say how long an answer takes, in the middle and at worst, and which pictures it gets wrong;
# - send a whole file through a model, without an endpoint;
# - let a job be interrupted and resume, and prove that its weights are those of an undisturbed one;
# - tell from a symptom and a line of the log what broke in a distributed job.
#
# **Before:** [lesson 00](00_setup.ipynb): a job and the model it leaves.
# [Lesson 06](06_vpc_colocation.ipynb): subnets and security groups.
#
# **Time:** 40 minutes, and 27 for the exercises. Of it about 3 minutes are computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
#
# **Cost on AWS:** about 0.05 USD: three jobs of one `ml.c5.xlarge`, 5 minutes each (us-east-1,
# price list of 2026-09-27). At most 0.12 USD, whatever goes wrong. Added to it are the batch
# transform, some minutes, and the endpoint **for as long as it is there**: 0.115 USD an hour each.
# Locally nothing.

# %% [markdown]
# ## Set up
#
# - `instance_type`: of the training jobs. `serving_type`: of the endpoint and the batch transform.
# - `in_vpc`: put the endpoint into the seat's network. On AWS, without a network stack, it stands
#   in SageMaker's own.
# - `epochs`: of the training. `requests`: how many answers are timed.
# - `spot_epochs`: of the training that is interrupted. `interrupt_after`: seconds after its start
#   at which the local endpoint takes its instance away.
# - `breaks`: which failures the last section shows.
# - `max_run`: seconds after which SageMaker ends a job, whatever it does.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
serving_type = "ml.m5.large"
in_vpc = True
epochs = 20
requests = 300
spot_epochs = 300
interrupt_after = 10
breaks = ["forgotten-broadcast", "rank-dies"]
max_run = 600

# %%
import json
import time

import numpy as np
import pandas as pd
from IPython.display import display

import data_prep
import workshop
from workshop import failures, plots
from workshop.account import prices, stacks
from workshop.jobs import inference, vpc

session = workshop.session(target=target, seat=seat)
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data/digits"
data_prep.upload(digits, data, client=session.client("s3"))
channels = {"training": f"{data}/training", "test": f"{data}/test"}

# %% [markdown]
# ## Train something to serve
#
# The job of lesson 00. What it leaves is one file in S3, `model.tar.gz`. Two more jobs come later.
# This is what the three cost on AWS; the endpoint is another matter, see below.

# %%
planned = ["model to serve", "left alone", "interrupted"]
costs = workshop.cost_table(
    (
        {"job": name, "instance_type": instance_type, "instance_count": 1, "seconds": 300}
        for name in planned
    ),
    max_run=max_run,
).set_index("job")
total, most = costs["USD"].sum(), costs["USD at most"].sum()
print(f"Three jobs: about {total:.2f} USD on AWS, at most {most:.2f} USD. Here: nothing.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=total, usd_at_most=most)

# %%
from sagemaker.tensorflow import TensorFlow

job = session.job_settings("serving") | {"instance_type": instance_type, "max_run": max_run}
estimator = TensorFlow(
    entry_point="train_tf.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_count=1,
    hyperparameters={"epochs": epochs},
    **job,
)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# A server must find in that file what it is to load, and each framework's server looks for
# something else:
#
# | in `model.tar.gz` | server | what it does |
# |---|---|---|
# | `1/saved_model.pb` | TensorFlow Serving | computes the function that was saved |
# | `code/inference.py` and a model | PyTorch's, or TensorFlow's | calls your functions |
#
# The number is a version: of several, the highest is served. The function, `serving_default`,
# was saved with the model, so nobody who asks needs your Python code. Its input has a name and a
# type: `images`, float32, pixels 0 to 255. The division by 255 is a layer of the model. Were it a
# line of the training script, everybody who asks would have to know of it, and some would not:
# **wrong answers from a right model**.

# %%
workshop.show_function("train/train_tf.py", "save")

# %% [markdown]
# ## Three names for one thing that runs
#
# | | is | costs |
# |---|---|---|
# | **model** | a name for `model.tar.gz`, a container image and a role | nothing |
# | **endpoint configuration** | which model, on how many instances of which type | nothing |
# | **serving endpoint**, or endpoint | instances that answer | every second until you delete it |
#
# `estimator.deploy()` makes all three. For a file of another day you need no estimator:
# `TensorFlowModel(model_data="s3://…/model.tar.gz", role=…, framework_version=…).deploy(…)` does
# the same. **An endpoint costs while nobody asks it anything.** A training job ends; an endpoint
# does not. A forgotten one is the classic bill of such a course:

# %%
a_month = prices.idle_table().loc["endpoint ml.m5.large", "USD a month"]
print(f"One forgotten ml.m5.large: {a_month:.0f} USD a month.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd_a_month=a_month)

# %%
guess = workshop.guess(
    wrong="How many of the 360 test images will the model get wrong?",
    median="How many milliseconds will an answer take, in the middle?",
    slowest="And the slowest one in a hundred?",
)

# %% [markdown]
# `vpc_config` puts the endpoint's instances into your subnets, as lesson 06 did with a job's, here
# in two zones: a job is to be in one, an endpoint is to survive the loss of one. Then
# your own programs reach it without the internet, if there is an interface endpoint for
# `sagemaker.runtime`; and the instances reach what your network reaches.

# %%
try:
    network = vpc.network(session, serving=True) if in_vpc else None
except vpc.NoNetwork:
    network = None
    print("No network stack: the endpoint's instances are in a network of SageMaker's own.")
where = network and {
    "Subnets": network["subnets"],
    "SecurityGroupIds": network["security_group_ids"],
}
began = time.monotonic()
predictor = estimator.deploy(
    initial_instance_count=1, instance_type=serving_type, vpc_config_override=where
)
deploy_seconds = time.monotonic() - began

# %%
endpoint = session.client("sagemaker").describe_endpoint(EndpointName=predictor.endpoint_name)
print(f"{endpoint['EndpointStatus']} after {deploy_seconds:.0f} s")

# %% jupyter={"source_hidden": true} tags=["results"]
assert endpoint["EndpointStatus"] == "InService", endpoint.get("FailureReason")
workshop.save_results(status=endpoint["EndpointStatus"], deploy_seconds=deploy_seconds)

# %% [markdown]
# On AWS it takes minutes until the instance is there and has loaded the model. Here a process of
# this machine loads the SavedModel and answers in TensorFlow Serving's form.
#
# ## Ask
#
# A request is a POST with JSON in it. `predict` writes the JSON, signs the request with your
# credentials, and reads the answer. `instances` is a list with one entry for each image.

# %%
with np.load(next((digits / "test").glob("*.npz"))) as file:
    images, labels = file["images"], file["labels"]
answer = predictor.predict({"instances": images[:2].tolist()})
print({name: np.round(value, 2).tolist() for name, value in answer.items()})

# %% [markdown]
# Ten probabilities for each image. Is it what the model itself says? The next cell loads the same
# SavedModel into this notebook and asks it directly. All 360 test images, in one request:

# %%
found = predictor.predict({"instances": images.tolist()})
probabilities = np.array(found["predictions"])
direct = inference.infer(result.model, images, session)
apart = float(np.abs(probabilities - direct).max())
print(f"{probabilities.shape[0]} answers; from the model's own at most {apart:.1e} apart")

# %% jupyter={"source_hidden": true} tags=["results"]
assert apart < 1e-6, "The endpoint serves another model than the job left."
workshop.save_results(apart=apart)

# %% [markdown]
# ## Three forms of a question
#
# **JSON**, as above, is easy to read and large: a pixel in it takes about 4 bytes. `instances` has
# an entry for each image, `inputs` a table for each input. **JSON lines** has one image in each
# line, so that programs can cut and join files of questions. Below the same five images, with the
# plain AWS client, which takes any text:

# %%
runtime = session.client("sagemaker-runtime")


def ask(body: str, content_type: str) -> dict:
    """The answer to a request that is written by hand."""
    reply = runtime.invoke_endpoint(
        EndpointName=predictor.endpoint_name, ContentType=content_type, Body=body
    )
    return json.loads(reply["Body"].read())


five = images[:5].tolist()
lines = "\n".join(json.dumps({"images": one}) for one in five)
forms = {
    "instances": (json.dumps({"instances": five}), "application/json"),
    "inputs": (json.dumps({"inputs": five}), "application/json"),
    "JSON lines": (lines, "application/jsonlines"),
}
answers = {name: next(iter(ask(*form).values())) for name, form in forms.items()}
pd.Series({name: len(body) for name, (body, _) in forms.items()}, name="bytes").to_frame()

# %% jupyter={"source_hidden": true} tags=["results"]
for name, one in answers.items():
    assert np.allclose(one, probabilities[:5], atol=1e-6), f"{name} was answered otherwise."
workshop.save_results(forms=list(answers))

# %% [markdown]
# A wrong question gets an error, and not a guess. Two numbers are no image:

# %%
try:
    ask(json.dumps({"instances": [[1, 2]]}), "application/json")
except runtime.exceptions.ModelError as error:
    print(error.response["OriginalStatusCode"], error.response["OriginalMessage"])
    refused = error.response["OriginalStatusCode"]

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(refused=refused)

# %% [markdown]
# Whoever wants another form writes **handlers**: functions in a file `inference.py`, which travels
# in `model.tar.gz`. TensorFlow's server has two, before and after the model: `input_handler` and
# `output_handler`. PyTorch has no server that reads a saved function. There `model_fn` loads the
# model, and `input_fn`, `predict_fn` and `output_fn` take a question to its answer. All have
# defaults but the first. This one serves the model of `train_torch.py`:

# %%
workshop.show_function("train/inference.py", "model_fn")

# %% [markdown]
# ## What it gets wrong
#
# An accuracy is one number. Look at the pictures behind it, always: a label may be wrong, a digit
# cut off, a class mistaken for another one.

# %%
said = probabilities.argmax(axis=1)
wrong = np.flatnonzero(said != labels)
print(f"{len(wrong)} of {len(labels)} wrong: accuracy {1 - len(wrong) / len(labels):.1%}")
plots.images(
    images[wrong][:12],
    [f"{labels[n]}, read as {said[n]}\n{probabilities[n].max():.0%} sure" for n in wrong[:12]],
    "Test images that the model gets wrong",
)

# %% jupyter={"source_hidden": true} tags=["results"]
accuracy = 1 - len(wrong) / len(labels)
assert abs(accuracy - result.metrics["test_accuracy"]) < 1e-6, "Not the model that was measured."
workshop.save_results(wrong=len(wrong), accuracy=accuracy)

# %% [markdown]
# The accuracy is the one that the job's log said, to the last digit. If a served model is worse
# than its log, something differs between training and serving: usually the preprocessing.
#
# ## How long it takes
#
# One image in each request, one after the other. A mean hides what people feel: the slow ones. So
# take the **median**, and the **99th percentile**: one answer in a hundred takes longer.

# %%
body = {"instances": images[:1].tolist()}
milliseconds = []
for _ in range(requests):
    began = time.perf_counter()
    predictor.predict(body)
    milliseconds.append(1000 * (time.perf_counter() - began))

# %%
median, slowest = np.percentile(milliseconds, [50, 99])
share = np.arange(1, requests + 1) / requests
with plots.canvas("Answers, one at a time", "milliseconds", "share of answers") as axes:
    axes.plot(np.sort(milliseconds), share, color=plots.COLOURS[0])
    lines_at = (("median", median, "--"), ("99th percentile", slowest, ":"))
    for name, value, style in lines_at:
        axes.axvline(value, linestyle=style, color="black", label=f"{name}: {value:.1f} ms")
    axes.set(xlim=(0, None), ylim=(0, 1.02))
    axes.legend(frameon=False)
guess.compare(wrong=len(wrong), median=median, slowest=slowest)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(median_ms=median, slowest_ms=slowest)

# %% [markdown]
# What you measured is the way there and back, the signing of the request, JSON, and the model. The
# model alone is the smallest part. `make bench` measures the same with 32 clients at once.
#
# ## Take it away
#
# Nothing below asks the endpoint, and on AWS it costs until it is deleted. So it is deleted
# **now**, and not at the end of the lesson, which somebody may never reach. The model goes first,
# because the SDK asks the endpoint which one it has.

# %%
predictor.delete_model()
predictor.delete_endpoint()
sagemaker = session.client("sagemaker")
mine = {"NameContains": session.job_prefix}
left = [
    one
    for one in sagemaker.list_endpoints(**mine)["Endpoints"]
    if one["EndpointStatus"] != "Deleting"
]
print(f"{len(left)} endpoints of this seat are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert not left, f"Still there, and billed: {[one['EndpointName'] for one in left]}"
workshop.save_results(endpoints_left=len(left))

# %% [markdown]
# If a cell above failed, its endpoint is still there: run the cell that deletes it now.
# [Lesson 99](99_clean_up.ipynb) finds it, too, and all else.
#
# ## A whole file: batch transform
#
# For questions that are all there already, an endpoint is the wrong thing. **Batch transform** is
# a job: it takes instances, sends each line of a file to the model, writes the answers to S3,
# and gives the instances back. It cannot be forgotten.

# %%
folder = f"jobs/{session.job_prefix}questions"
lines = "\n".join(json.dumps({"images": one.tolist()}) for one in images)
session.client("s3").put_object(
    Bucket=session.bucket, Key=f"{folder}/in/test.jsonl", Body=lines.encode()
)
transformer = estimator.transformer(
    tags=stacks.tags(seat),  # the SDK gives the job's own to neither model nor transform
    instance_count=1,
    instance_type=serving_type,
    strategy="MultiRecord",
    assemble_with="Line",
    accept="application/jsonlines",
    max_payload=1,
    output_path=f"s3://{session.bucket}/{folder}/out",
)

# %% [markdown]
# `split_type="Line"` cuts the file into lines, and `MultiRecord` puts as many lines into a request
# as fit into `max_payload`, 1 MB. The answers come in the same order, a line for each request, in a
# file of the same name with `.out` at its end.

# %%
began = time.monotonic()
transformer.transform(
    f"s3://{session.bucket}/{folder}/in",
    content_type="application/jsonlines",
    split_type="Line",
    wait=False,
)
try:
    transformer.wait(logs=False)
finally:  # also where you interrupt this cell: a transform has no max_run
    transform = {"TransformJobName": transformer.latest_transform_job.name}
    if sagemaker.describe_transform_job(**transform)["TransformJobStatus"] == "InProgress":
        sagemaker.stop_transform_job(**transform)
    transformer.delete_model()
written = session.client("s3").get_object(Bucket=session.bucket, Key=f"{folder}/out/test.jsonl.out")
rows = [json.loads(line)["predictions"] for line in written["Body"].read().decode().splitlines()]
batch = np.concatenate(rows)
print(f"{len(batch)} answers in {len(rows)} request(s), {time.monotonic() - began:.0f} s")

# %%
apart = float(np.abs(batch - probabilities).max())

# %% jupyter={"source_hidden": true} tags=["results"]
assert batch.shape == probabilities.shape, f"{batch.shape} came back: an image was lost."
assert apart < 1e-6, f"Batch transform and endpoint are {apart:.1e} apart."
workshop.save_results(batch_apart=apart, batch_answers=len(batch))

# %% [markdown]
# ## Resume after an interruption
#
# **Spot instances** are what AWS has to spare: up to 90 % cheaper
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training.html)), and
# taken away when AWS needs them back, [two minutes after a
# notice](https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-interruptions.html).
#
# > Nobody outbids you, as older texts say: a SageMaker job has no price to bid.
#
# So a spot job must be able to resume. Three things make that possible:
#
# - the script writes a **checkpoint** now and then, to `/opt/ml/checkpoints`;
# - SageMaker copies that folder to S3 while the job runs, and back when it starts again
#   (`checkpoint_s3_uri`);
# - the script, when it starts, looks there first.
#
# The weights alone are not enough. SGD's momentum and the place in the order of the images belong
# to it, or what resumes is another training. Here the step says that place: the order of an epoch
# follows from the seed and the epoch's number. (A model with dropout would have to keep the state
# of its random numbers, too.) And a checkpoint is written **atomically**: under another name, then
# renamed, so that whoever is interrupted while writing leaves the one before.

# %%
display(workshop.show_function("train/train_torch.py", "save_checkpoint"))
workshop.show_function("train/train_torch.py", "resume")

# %% [markdown]
# Now one job that is left alone, and one whose instance is taken away in the middle. On AWS nobody
# can order that; the local endpoint can. `max_wait` is how long the job may take with all waiting.
# **Predict:** will the two end with the same weights, to the last bit?

# %%
from sagemaker.pytorch import PyTorch


def training(name: str, spot: bool, environment: dict | None = None) -> PyTorch:
    """A training of one process that keeps a checkpoint every 100 steps."""
    return PyTorch(
        entry_point="train_torch.py",
        framework_version="2.2.0",
        py_version="py310",
        instance_count=1,
        instance_type=instance_type,
        hyperparameters={"epochs": spot_epochs, "checkpoint-every": 100, "threads-per-rank": 1},
        environment=environment or {},
        **session.job_settings(name, spot=spot) | {"max_run": max_run},
    )


interrupt = {"LOCAL_SAGEMAKER_INTERRUPT": f"after {interrupt_after}s"}
trainings = {
    "left alone": training("alone", spot=False),
    "interrupted": training("spot", spot=True, environment=interrupt),
}
guess = workshop.guess(same=("Will both end with the same weights?", ["yes", "no"]))
ended = workshop.run_jobs(trainings, channels)

# %%
way = [one["Status"] for one in ended["interrupted"].description["SecondaryStatusTransitions"]]
print(" → ".join(way))
again = [one for one in ended["interrupted"].events if one["event"] == "resumed"]
for one in again:
    print(f"resumed from step {one['step']}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert target == "aws" or "Interrupted" in way, (
    "It had ended by then: take a smaller interrupt_after."
)

# %%
hashes = {name: one.table("weights")["weights_sha256"].iloc[-1] for name, one in ended.items()}
same = len(set(hashes.values())) == 1
print("\n".join(f"{name}: {one[:16]}…" for name, one in hashes.items()))
guess.compare(same="yes" if same else "no")

# %% jupyter={"source_hidden": true} tags=["results"]
assert same, "The resumed training is another one: something is missing in the checkpoint."
workshop.save_results(way=way, resumed=[one["step"] for one in again], hashes=hashes, same=same)

# %% [markdown]
# At most the steps since the last checkpoint were done twice: that is the price of an interruption,
# and why `checkpoint-every` is a choice. A checkpoint each step would cost more than it saves.
#
# The same weights, to the last bit. (On a GPU, where sums are added in another order each time,
# they would be close.) With several ranks it is the same, with one rule: **rank 0 alone writes**,
# and every rank resumes from what rank 0 read: `resume` in `train_torch_ddp.py` broadcasts it.
#
# ## When it breaks
#
# A distributed job rarely breaks with a clear error. Usually one rank has a problem, and the
# *others* show a symptom: they wait. So learn to read symptoms. `workshop break` reproduces the
# common ones on this machine, one command each, and says what to look for in the log:

# %%
with pd.option_context("display.max_colwidth", None):
    display(failures.table()[["symptom", "lesson"]])

# %% [markdown]
# Two of them now, really. Each trains for a moment with the mistake in it.

# %%
shown = {name: failures.reproduce(name) for name in breaks}
for one in shown.values():
    display(one)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(broke={name: one.as_described for name, one in shown.items()})

# %% [markdown]
# Without the mistake, with `fixed=True`, the same script ends well. Try others at a shell:
# `workshop break rank-hangs`, `workshop break rank-hangs --fixed`.
#
# What all silent ones have in common: **no error, no new line in the log, and a bill that grows.**
# Three habits end that. Give each job a `max_run` that is not much longer than it needs. Let every
# rank print now and then that it lives. Give collectives a timeout, so that a rank that waits says
# for what.
#
# ## Exercises
#
# In [exercises/08](exercises/08_serving.ipynb), each with a check:
#
# 1. *A file for batch transform* (6 minutes, easy): JSON lines from images.
# 2. *A digit in place of ten numbers* (8 minutes, medium): what an `inference.py` answers.
# 3. *A checkpoint that is never half* (13 minutes, hard): write it so that it may be interrupted.
#
# ## Check yourself

# %%
workshop.quiz("08")

# %% [markdown]
# ## Summary
#
# - A served model is a file, a configuration and instances. Only the last cost, and they cost until
#   you delete them.
# - What is done with the pixels before the model belongs into the model.
# - Compare what the endpoint says with what the model says, and look at what it gets wrong.
# - Report the median and the 99th percentile of an answer's time, not the mean.
# - For a pile of questions take batch transform: it ends by itself.
# - A checkpoint holds weights, optimizer, place in the data and random numbers, is written under
#   another name first, and by rank 0 alone. Then an interrupted training is the same training.
# - A rank that waits is a symptom; the cause is another rank.

# %% [markdown]
# ## Clean up
#
# The endpoint and the models are deleted; jobs and the batch transform have ended. What is left is
# in S3 and in the logs, and [lesson 99](99_clean_up.ipynb) finds it.
#
# ## Next
#
# You have trained models in seven ways, served one, and broken some. Lesson 99 deletes what is
# left, and proves it.

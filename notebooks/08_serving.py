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
# # 08 · Serving: put a model behind an address
#
# **After this lesson you can**
#
# - say what `deploy()` makes, in which order, and which part of it costs money;
# - send a model images in four formats, and write the two functions that add one of your own;
# - find the images that it gets wrong;
# - report how long an answer takes, as a median and as a 99th percentile, and what eight clients at
#   once make of it;
# - run a whole file through a model without an endpoint.
#
# **Before:** [lesson 00](00_setup.ipynb): a job and the model it leaves.
# [Lesson 06](06_vpc_colocation.ipynb): subnets and security groups.
#
# **Time:** 30 minutes, and 14 for the exercises. About one minute of it is computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.02 USD: one job on one `ml.c5.xlarge`, planned at 5 minutes (us-east-1,
# price list of 2026-09-27), at most 0.04 USD. Two batch transforms of 5 minutes and half an hour of
# the endpoint make it 0.10 USD in all; the endpoint costs 0.115 USD an hour **until you delete
# it**. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `instance_type`: for the training job. `serving_type`: for the endpoint and batch transforms.
# - `in_vpc`: put the endpoint into your network, lesson 06's stack. If there is none, SageMaker
#   uses a network of its own.
# - `epochs`: how often the training goes through the data. `requests`: how many requests are timed.
# - `max_run`: seconds after which SageMaker ends the job.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
serving_type = "ml.m5.large"
in_vpc = True
epochs = 20
requests = 300
max_run = 600

# %%
import json
import time

import numpy as np
import pandas as pd

import workshop
from workshop import plots
from workshop.account import prices
from workshop.jobs import inference, vpc

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
print(workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run))

# %% jupyter={"source_hidden": true} tags=["results"]
cost = workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run)
workshop.save_results(usd=cost.usd, usd_at_most=cost.most_usd)

# %% [markdown]
# ## Train something to serve
#
# This is the job of lesson 00. It leaves one file in S3, `model.tar.gz`.

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
# A file called `model.tar.gz` proves nothing. SageMaker packs whatever the script left in
# `/opt/ml/model`. A script can accept `--model_dir` and still save nothing there. Its job ends as
# `Completed`, with an empty archive, and you notice when `deploy()` fails. So look inside first:

# %%
import io
import tarfile

bucket, key = result.model.removeprefix("s3://").split("/", 1)
packed = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
    in_archive = sorted(member.name for member in archive if member.isfile())
print("\n".join(in_archive))

# %% jupyter={"source_hidden": true} tags=["results"]
assert any(name.endswith("1/saved_model.pb") for name in in_archive), "The script saved no model."
workshop.save_results(in_archive=in_archive)

# %% [markdown]
# Each framework's server looks for something else in that archive:
#
# | in `model.tar.gz` | server | what it does |
# |---|---|---|
# | `1/saved_model.pb` | TensorFlow Serving | computes the function that was saved |
# | `code/inference.py` and a model | PyTorch's, or TensorFlow's | calls your functions |
#
# The 1 in `1/saved_model.pb` is a version. If there are several, the server takes the highest. The
# file holds a function, called `serving_default`, so the server needs none of your Python code. The
# function's input has a name, a shape and a type: `images`, 8 x 8 x 1, float32, pixels from 0 to
# 255. Dividing by 255 is a layer of the model. If it were a line of the training script, every
# client would have to do it as well, and those that forgot would get **wrong answers from a correct
# model**. Here is how this script saves its model:

# %%
workshop.show_function("train/train_tf.py", "save")

# %% [markdown]
# ## Three objects, and only one costs money
#
# `estimator.deploy()` makes three objects, in this order:
#
# 1. a **model**: a name for a `model.tar.gz`, a container image and a role. Free.
# 2. an **endpoint configuration**: which model, on how many instances of which type. Free.
# 3. a **serving endpoint**: the instances themselves, with an address. You pay for every second
#    until you delete it, **even if nobody sends a request**.
#
# A training job ends; an endpoint doesn't. That is why a forgotten endpoint is the classic surprise
# on the bill after a course:

# %%
a_month = prices.idle_table().loc["endpoint ml.m5.large", "USD a month"]
print(f"One forgotten ml.m5.large: {a_month:.0f} USD a month.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd_a_month=a_month)

# %% [markdown]
# `vpc_config_override` puts the endpoint's instances into your subnets, as lesson 06 did with a
# job's instances. A job wants its instances close together, in one zone. An endpoint gets subnets
# in two zones, because SageMaker tries to spread its instances over them
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-best-practices.html)). That
# takes two instances or more: the single one of this lesson is in one zone, and if it fails, nobody
# answers. If programs in the same network are to call the endpoint without the internet, the
# network also needs an interface endpoint for `sagemaker.runtime`; this lesson creates none.
#
# `deploy()` alone would wait until the endpoint answers, but it polls only every 30 seconds, as
# `fit()` does. With `wait=False` it returns at once, and the waiter polls every 2 seconds.

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
began = time.time()
predictor = estimator.deploy(
    initial_instance_count=1, instance_type=serving_type, vpc_config_override=where, wait=False
)
waiter = session.client("sagemaker").get_waiter("endpoint_in_service")
waiter.wait(EndpointName=predictor.endpoint_name, WaiterConfig={"Delay": 2, "MaxAttempts": 900})
deploy_seconds = time.time() - began

# %% [markdown]
# When was each object made? SageMaker keeps the times:

# %%
sagemaker = session.client("sagemaker")
endpoint = sagemaker.describe_endpoint(EndpointName=predictor.endpoint_name)
configuration = sagemaker.describe_endpoint_config(
    EndpointConfigName=endpoint["EndpointConfigName"]
)
model_name = configuration["ProductionVariants"][0]["ModelName"]
model = sagemaker.describe_model(ModelName=model_name)
made = {
    "model": model["CreationTime"],
    "endpoint configuration": configuration["CreationTime"],
    "endpoint": endpoint["CreationTime"],
}
made = {name: at.timestamp() - began for name, at in made.items()}
in_service = endpoint["LastModifiedTime"].timestamp() - began
waiting = (in_service - made["endpoint"]) / in_service
print(f"{endpoint['EndpointStatus']} after {in_service:.1f} s")
print(f"{waiting:.0%} of that time passed after the endpoint was created, until it was in service")

# %% jupyter={"source_hidden": true} tags=["figure"]
end, title = 1.25 * in_service, "What deploy() made, in order"
story = ", then ".join(f"{name} at {at:.1f} s" for name, at in made.items())
alt = (
    f"{title}: {story}. The endpoint is in service at {in_service:.1f} s; only then does it answer."
)
with plots.canvas(title, "seconds after deploy() was called", size=(7, 2.4), alt=alt) as axes:
    for row, (name, at) in enumerate(made.items()):
        billed = name == "endpoint"
        first = in_service if billed else at
        if billed:
            axes.barh(row, in_service - at, left=at, color="white", edgecolor="black", hatch="//")
            box = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            middle = {"ha": "center", "va": "center", "fontsize": 8, "bbox": box}
            axes.text((at + in_service) / 2, row, "Creating", **middle)
        axes.barh(row, end - first, left=first, color=plots.COLOURS[1 if billed else 4])
        text = "in service, billed" if billed else "free"
        axes.text((first + end) / 2, row, text, ha="center", va="center", fontsize=8)
    axes.set_yticks(range(3), [f"{row + 1} {name}" for row, name in enumerate(made)])
    axes.set(xlim=(0, end), ylim=(2.5, -0.5))
    axes.grid(axis="y", visible=False)

# %% jupyter={"source_hidden": true} tags=["results"]
assert endpoint["EndpointStatus"] == "InService", endpoint.get("FailureReason")
assert list(made.values()) == sorted(made.values()), f"deploy() made them in this order: {made}"
workshop.save_results(
    status=endpoint["EndpointStatus"], deploy_seconds=deploy_seconds, deploy_order=list(made)
)

# %% [markdown]
# The hatched part is the wait for the third object. In a local run, a process on this machine loads
# the model meanwhile. On AWS an instance has to start and fetch the container image first, which
# takes minutes.
#
# ## Send it images
#
# A request is a POST with JSON in it. `predict` writes the JSON, signs the request with your
# credentials and reads the answer. `instances` is a list with one entry per image.

# %%
with np.load(next((workshop.DATA / "digits" / "test").glob("*.npz"))) as file:
    images, labels = file["images"], file["labels"]
answer = predictor.predict({"instances": images[:2].tolist()})
print({name: np.round(value, 2).tolist() for name, value in answer.items()})

# %% [markdown]
# You get ten probabilities for each image. Are they the model's own? The next cell sends all 360
# test images in one request. Then it loads the same SavedModel without any server and compares.

# %%
answer = predictor.predict({"instances": images.tolist()})
probabilities = np.array(answer["predictions"])
direct = inference.infer(result.model, images, session)
difference = float(np.abs(probabilities - direct).max())
print(f"{len(probabilities)} answers; largest difference from the model itself: {difference:.1e}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert difference < 1e-6, "The endpoint serves another model than the job left."
workshop.save_results(difference=difference)

# %% [markdown]
# ## Five request formats
#
# TensorFlow's server knows five formats:
#
# - **`instances`**: JSON with an entry per image, as above.
# - **`inputs`**: JSON with one array per input of the model.
# - **Simplified JSON**: just the list, without a name around it.
# - **JSON lines**: one image in each line, so that programs can cut and join files of requests.
# - **CSV**: a row of numbers per image, for models whose input is flat.
#
# The next cell sends the same five images in each of the first four formats. It uses AWS's plain
# client, because that takes any text. The table has the size of each request, and how far its
# answers are from those above.

# %%
runtime = session.client("sagemaker-runtime")


def invoke(body: str, content_type: str) -> dict:
    """The answer to a request whose body you wrote yourself."""
    reply = runtime.invoke_endpoint(
        EndpointName=predictor.endpoint_name, ContentType=content_type, Body=body
    )
    return json.loads(reply["Body"].read())


five = images[:5].tolist()
lines = "\n".join(json.dumps({"images": image}) for image in five)
forms = {
    "instances": (json.dumps({"instances": five}), "application/json"),
    "inputs": (json.dumps({"inputs": five}), "application/json"),
    "simplified JSON": (json.dumps(five), "application/json"),
    "JSON lines": (lines, "application/jsonlines"),
}
# An answer is a dictionary with one entry: the probabilities.
answers = {name: next(iter(invoke(*form).values())) for name, form in forms.items()}
sizes = pd.Series({name: len(body) for name, (body, _) in forms.items()}, name="bytes")
off = {name: np.abs(np.array(answer) - probabilities[:5]).max() for name, answer in answers.items()}
sizes.to_frame().assign(**{"largest difference": pd.Series(off).round(6)})

# %% jupyter={"source_hidden": true} tags=["results"]
for name, answer in answers.items():
    assert np.allclose(answer, probabilities[:5], atol=1e-6), f"{name} got a different answer."
workshop.save_results(forms=list(answers), bytes_of_five=len(forms["instances"][0]))

# %% [markdown]
# JSON is easy to read, and large: these five images are 320 bytes of pixels. A request may have 6
# MiB (6,291,456 bytes, says the API's description in boto3), and the model has [60
# seconds](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html)
# to answer it. What is larger or slower is a case for a batch transform, below.
#
# And CSV? A row is flat: 64 numbers. This model wants 8 x 8 x 1, so the server refuses it. You get
# a status and a reason:

# %%
rows = "\n".join(",".join(map(str, image.ravel())) for image in images)
try:
    invoke(rows.splitlines()[0], "text/csv")
except runtime.exceptions.ModelError as error:
    refused = error.response["OriginalStatusCode"]
    print(refused, error.response["OriginalMessage"])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(refused=refused)

# %% [markdown]
# For a format of your own you write **handlers**: functions in a file `inference.py`, which travels
# in `model.tar.gz`. TensorFlow's server calls two of them: `input_handler` turns the request into
# TensorFlow Serving's JSON, and `output_handler` turns the answer into what your clients want.
# These two accept CSV and answer with a digit. They run below, under *Later*.

# %%
from IPython.display import display

display(workshop.show_function("demos/serve_csv/inference.py", "input_handler"))
workshop.show_function("demos/serve_csv/inference.py", "output_handler")

# %% [markdown]
# PyTorch has no server for a saved function; there handlers do everything. `model_fn` loads the
# model. `input_fn`, `predict_fn` and `output_fn` lead from the request to the answer, and these
# three have defaults. See `scripts/train/inference.py`, which serves the models of
# `train_torch.py`.
#
# ## What the model gets wrong
#
# Accuracy is a single number. Always look at the images behind it: a label may be wrong, a digit
# cut off, one class mistaken for another. **Predict, then run.**

# %%
guess = workshop.guess(wrong="How many of the 360 test images does the model get wrong?")

# %%
predicted = probabilities.argmax(axis=1)
wrong = np.flatnonzero(predicted != labels)
print(f"{len(wrong)} of {len(labels)} wrong: accuracy {1 - len(wrong) / len(labels):.1%}")
plots.images(
    images[wrong][:12],
    [f"{labels[n]}, read as {predicted[n]}\n{probabilities[n].max():.0%} sure" for n in wrong[:12]],
    "Test images that the model gets wrong",
)
guess.compare(wrong=len(wrong))

# %%
accuracy = 1 - len(wrong) / len(labels)
logged = result.metrics["test_accuracy"]
same = abs(accuracy - logged) < 1e-6
print(f"Served: {accuracy:.4f}. In the job's log: {logged:.4f}. Equal: {same}.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert same, "Not the model whose accuracy the job logged."
workshop.save_results(wrong=len(wrong), accuracy=accuracy)

# %% [markdown]
# Look at how sure the model was of its wrong answers, too. It can be nearly 100 % sure and wrong:
# training makes the probabilities of the right answers large, and doesn't make them *calibrated*,
# that is, right as often as they say ([Guo and others, 2017](https://arxiv.org/abs/1706.04599)).
#
# If a served model is worse than its log says, training and serving differ somewhere. Look at the
# preprocessing first.
#
# ## How long an answer takes
#
# A mean hides what users notice: the slow answers. So report two numbers. Half of the answers take
# longer than the **median**. One answer in a hundred takes longer than the **99th percentile**. It
# rests on few answers, on three of 300, so the cell below measures three times and prints the
# range.
#
# First one client sends one image per request, one request after the other. Then eight clients do
# so at the same time. The endpoint has one instance, so their requests queue. **Predict, then
# run.**

# %%
guess = workshop.guess(
    median="One client: how many milliseconds does the median answer take?",
    busy="Eight clients at once: how many milliseconds does the median answer take?",
    slowest="Eight clients at once, the 99th percentile: how many milliseconds?",
)

# %%
from concurrent.futures import ThreadPoolExecutor

body = {"instances": images[:1].tolist()}


def milliseconds(_) -> float:
    """How long one request takes, as its client sees it."""
    began = time.perf_counter()
    predictor.predict(body)
    return 1000 * (time.perf_counter() - began)


took, tails = {}, {}
for clients in (1, 8):
    with ThreadPoolExecutor(clients) as pool:
        rounds = [list(pool.map(milliseconds, range(requests))) for _ in range(3)]
    name = f"{clients} client{'s' * (clients > 1)}"
    took[name] = np.sort(np.concatenate(rounds))
    tails[name] = [np.percentile(times, 99) for times in rounds]
latency = pd.DataFrame(
    {name: np.percentile(values, [50, 99]) for name, values in took.items()},
    index=["median", "99th percentile"],
).T
latency["of three rounds"] = [f"{min(t):.1f} to {max(t):.1f}" for t in tails.values()]
latency.round(1).rename_axis("milliseconds")

# %% [markdown]
# The curves below have all answers. A curve's height at 5 ms, for example, is the share of answers
# that took at most 5 ms.

# %%
title, y = "Requests that queue take longer", "share of answers within that time"
with plots.canvas(title, "milliseconds", y) as axes:
    for number, (name, values) in enumerate(took.items()):
        share = np.arange(1, len(values) + 1) / len(values)
        axes.plot(values, share, color=plots.COLOURS[number], label=name)
        for at, style in (("median", "--"), ("99th percentile", ":")):
            axes.axvline(latency.loc[name, at], linestyle=style, color=plots.COLOURS[number])
    axes.set(xlim=(0, None), ylim=(0, 1.02))
    axes.set_xlabel("milliseconds (dashed: median, dotted: 99th percentile)")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
median, (busy, slowest) = latency["median"].iloc[0], latency.iloc[1, :2]
guess.compare(median=median, busy=busy, slowest=slowest)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(median_ms=median, busy_ms=busy, slowest_ms=slowest)

# %% [markdown]
# The model has no more to compute than before; a request waits for those that came first. (In a
# local run the clients also take this machine's cores from the server.) So measure latency with as
# many clients as you expect. More instances shorten the queue.
#
# You timed the round trip: signing, HTTP, JSON, and the model. Part of that time is the same for a
# request with one image and for one with many. To see how much, one client sends 360 images in one
# request; divide its time by 360. **Predict** the result first.

# %%
fewer = workshop.guess(factor="One request with 360 images: how many times faster is it per image?")

# %%
body = {"instances": images.tolist()}
together = [milliseconds(None) / len(images) for _ in range(20)]
each = float(np.median(together))
low, high = np.percentile(together, [25, 75])
print(f"alone {median:.2f} ms an image, 360 at once {each:.2f} ms")
print(f"(the middle half of 20 requests: {low:.2f} to {high:.2f} ms)")
print(f"{median / high:.1f} to {median / low:.1f} times faster")
fewer.compare(factor=median / each)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(ms_each_of_360=each, per_image_factor=median / each)

# %% [markdown]
# The difference is the part that each request costs, whatever is in it. Clients that can wait
# should send several images at once.
#
# > **Beyond this lesson.** An endpoint for users has two instances or more, and
# > [autoscaling](https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling.html) adds
# > some when it is busy. If requests are rare, a
# > [serverless](https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html) endpoint
# > is billed for the time in which it computes, and an
# > [asynchronous](https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html) one can
# > scale down to no instance. CloudWatch has the model's part of the latency as `ModelLatency`, and
# > SageMaker's as `OverheadLatency`.
#
# ## Delete the endpoint
#
# Nothing below needs the endpoint, and on AWS it costs money until it is deleted. So delete it
# **now**, not at the end of a lesson that you may not reach. The model goes first, because the SDK
# asks the endpoint which model it has.

# %%
predictor.delete_model()
predictor.delete_endpoint()
of_this_seat = {"NameContains": session.job_prefix}
left = [
    endpoint["EndpointName"]
    for endpoint in sagemaker.list_endpoints(**of_this_seat)["Endpoints"]
    if endpoint["EndpointStatus"] != "Deleting"
]
print(f"{len(left)} endpoints of this seat are left.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert not left, f"Still there, and billed: {left}"
workshop.save_results(endpoints_left=len(left))

# %% [markdown]
# If a cell fails when you run this lesson, the endpoint still exists: run the cell above at once.
# [Lesson 99](99_clean_up.ipynb) finds it, too.
#
# ## A whole file: batch transform
#
# If you have all the inputs already, you don't need an endpoint. A **batch transform** is a job: it
# starts instances, sends the records of a file to the model, writes the answers to S3 and releases
# the instances. Nothing is left running.
#
# The next cell uploads the test images in two files, as JSON lines and as CSV, and describes the
# transform. A record is one line. `accept` is the format in which the server should answer;
# `assemble_with="Line"` writes each answer on a line of its own.

# %%
folder = f"jobs/{session.job_prefix}questions"
lines = "\n".join(json.dumps({"images": image.tolist()}) for image in images)
for name, text in {"json/test.jsonl": lines, "csv/test.csv": rows}.items():
    session.client("s3").put_object(
        Bucket=session.bucket, Key=f"{folder}/{name}", Body=text.encode()
    )
common = {
    "instance_count": 1,
    "instance_type": serving_type,
    "assemble_with": "Line",
    "accept": "application/jsonlines",
    "tags": estimator.tags,  # the SDK doesn't copy the job's by itself
}
transformer = estimator.transformer(
    strategy="MultiRecord",
    max_payload=1,
    output_path=f"s3://{session.bucket}/{folder}/json-out",
    **common,
)

# %% [markdown]
# `split_type="Line"` splits the file at its line ends. `MultiRecord` puts as many lines into one
# request as fit into `max_payload`, in MB. The answers come in the order of the inputs, in a file
# with the same name and `.out` at its end.


# %%
def transformed(transformer, source: str, content_type: str) -> list[str]:
    """Run a batch transform of a folder with one file; return the lines of its answers."""
    place = f"s3://{session.bucket}/{folder}/{source}"
    transformer.transform(place, content_type=content_type, split_type="Line", wait=False)
    job = {"TransformJobName": transformer.latest_transform_job.name}
    waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
    try:
        waiter.wait(**job, WaiterConfig={"Delay": 2, "MaxAttempts": 900})
    finally:  # also if you interrupt this cell: a transform has no max_run
        if sagemaker.describe_transform_job(**job)["TransformJobStatus"] == "InProgress":
            sagemaker.stop_transform_job(**job)
        transformer.delete_model()
    s3, prefix = session.client("s3"), transformer.output_path.split(f"{session.bucket}/")[1]
    (result,) = s3.list_objects_v2(Bucket=session.bucket, Prefix=f"{prefix}/")["Contents"]
    body = s3.get_object(Bucket=session.bucket, Key=result["Key"])["Body"].read()
    return body.decode().splitlines()


# %%
answered = transformed(transformer, "json", "application/jsonlines")
batch = np.concatenate([json.loads(line)["predictions"] for line in answered])
batch_difference = float(np.abs(batch - probabilities).max())
print(f"{len(batch)} answers in {len(answered)} request(s)")
print(f"largest difference from the endpoint's: {batch_difference:.1e}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert batch.shape == probabilities.shape, f"{batch.shape} came back: an image was lost."
assert batch_difference < 1e-6, f"The endpoint's answers differ by {batch_difference:.1e}."
workshop.save_results(batch_difference=batch_difference, batch_answers=len(batch))

# %% [markdown]
# ## Later: serve the file in S3, with handlers
#
# You don't need the estimator. A `TensorFlowModel` serves any `model.tar.gz`, and it can add the
# handlers from above to it. `deploy()` and `transformer()` are the same as the estimator's.
#
# This time each CSV row is a request of its own: `SingleRecord`.

# %%
from sagemaker.tensorflow import TensorFlowModel

with_handlers = TensorFlowModel(
    model_data=result.model,
    entry_point="inference.py",
    source_dir=str(workshop.DEMOS / "serve_csv"),
    role=session.role,
    framework_version="2.12.0",
    sagemaker_session=session.sagemaker_session,
    name=f"{session.job_prefix}handlers-{int(time.time())}",
)
by_row = with_handlers.transformer(
    strategy="SingleRecord",
    output_path=f"s3://{session.bucket}/{folder}/csv-out",
    **common,
)
answered = transformed(by_row, "csv", "text/csv")

# %% [markdown]
# There is one answer per row, in the same order, so you can join answers to inputs by their
# position. (`transform(join_source="Input", …)` makes SageMaker write each answer next to its
# input. The emulator doesn't support that.)

# %%
joined = pd.DataFrame(map(json.loads, answered)).assign(label=labels)
joined["right"] = joined["digit"] == joined["label"]
print(f"{len(joined)} rows, {joined['right'].mean():.1%} right")
joined.head()

# %% jupyter={"source_hidden": true} tags=["results"]
assert list(joined["digit"]) == list(predicted), "The handlers' digits are not the endpoint's."
assert np.allclose(joined["probability"], probabilities.max(axis=1), atol=1e-6), "Other answers."
workshop.save_results(rows_joined=len(joined), by_handlers=float(joined["right"].mean()))

# %% [markdown]
# ## Exercises
#
# In [exercises/08](exercises/08_serving.ipynb), each with a check:
#
# 1. *A file for batch transform* (6 minutes, easy): JSON lines from images.
# 2. *A digit in place of ten numbers* (8 minutes, medium): what an `output_handler` answers.
#
# ## Check yourself

# %%
workshop.quiz("08")

# %% [markdown]
# ## Summary
#
# - `deploy()` makes a model, an endpoint configuration and an endpoint. Only the endpoint costs
#   money, and it does until you delete it.
# - Preprocessing belongs in the model. Other request formats belong in handlers.
# - Compare the endpoint's answers with the model's own, and look at the images it gets wrong.
# - Report the median and the 99th percentile of the latency, not the mean, and with as many clients
#   as you expect.
# - A batch transform answers a whole file and ends by itself.

# %% [markdown]
# ## Clean up
#
# The endpoint and the models are deleted; the job and the batch transforms have ended. S3 and the
# logs still hold what they wrote; [lesson 99](99_clean_up.ipynb) finds it.
#
# ## Next
#
# [09 · Data](09_data.ipynb): which files an instance gets, and in which form.

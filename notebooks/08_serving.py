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
# # 08 · Serving: put a model behind an address
#
# **After this lesson you can**
#
# - say what `deploy()` makes, in which order, and which part of it costs money;
# - measure how long an answer takes, as a median and a 99th percentile, with as many clients as you
#   expect;
# - find the images that a model gets wrong with confidence, and say what wrongly scaled pixels do;
# - turn a server's answer into what your clients want;
# - run a whole file through a model without an endpoint.
#
# **Before:** [lesson 00](00_setup.ipynb): a job and the model it leaves. [Lesson
# 06](06_vpc_colocation.ipynb): subnets and security groups.
#
# **Time:** 45 minutes, and 19 for the exercises. Less than one minute of it is computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** 0.09 USD in all: 0.017 for one job on one `ml.c5.xlarge`, planned at 5 minutes
# (us-east-1, price list of 2026-09-27), at most 0.05 USD; 0.019 for two batch transforms of 5
# minutes; 0.058 for half an hour of the endpoint. Only the job has an "at most": the endpoint costs
# 0.115 USD an hour **until you delete it**. Locally all is free.

# %% [markdown]
# ## Set up
#
# - `instance_type`: for the training job. `serving_type`: for the endpoint and batch transforms.
# - `in_vpc`: put the endpoint into your network, lesson 06's stack, if there is one.
# - `epochs`: how often the training goes through the data. `max_run`: seconds after which SageMaker
#   ends the job.
# - `requests`: how many requests of one image a round sends in each way. `rounds`: how many rounds.

# %% tags=["parameters"]
target = "local"
seat = "me"
instance_type = "ml.c5.xlarge"
serving_type = "ml.m5.large"
in_vpc = True
epochs = 20
requests = 150
rounds = 5
max_run = 600

# %%
import io
import json
import random
import subprocess
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from IPython.display import display

import workshop
from workshop import plots
from workshop.account import prices
from workshop.jobs import vpc
from workshop.measure import interleaved

session = workshop.session(target=target, seat=seat)
channels = session.upload("digits")
print(workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run))

# %% jupyter={"source_hidden": true} tags=["results"]
cost = workshop.cost(instance_type, instance_count=1, seconds=300, max_run=max_run)
workshop.save_results(usd=cost.usd, usd_at_most=cost.most_usd)

# %% [markdown]
# ## The result: how long an answer takes
#
# First train a model, in the job of lesson 00, and deploy it. With `wait=False` `deploy()` returns
# at once; boto3's waiter then asks every second for the endpoint's status, until it is `InService`.

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
# <!-- SDK v3: serving -->

# %%
network = vpc.network_from_stack(session, serving=True) if in_vpc else None
where = network and {
    "Subnets": network["subnets"],
    "SecurityGroupIds": network["security_group_ids"],
}
place = "a network of SageMaker's own" if where is None else " or ".join(where["Subnets"])
reason = " (lesson 06's stack isn't there)" if in_vpc and where is None else ""
print(f"The endpoint's instance will be in {place}{reason}.")
began = time.time()
predictor = estimator.deploy(
    initial_instance_count=1, instance_type=serving_type, vpc_config_override=where, wait=False
)
sagemaker = session.client("sagemaker")
waiter = sagemaker.get_waiter("endpoint_in_service")
waiter.wait(EndpointName=predictor.endpoint_name, WaiterConfig={"Delay": 1, "MaxAttempts": 1800})
print(f"The endpoint is in service, {time.time() - began:.0f} s after deploy() was called.")

# %% [markdown]
# <!-- SDK v3: deploy -->

# %% [markdown]
# Locally the emulator's own small server answers, with the same requests and handlers as
# SageMaker's TensorFlow container. Its milliseconds and error texts are not AWS's; there it takes
# about 10 minutes until an endpoint answers ([AWS's guide of
# 2023](https://github.com/awsdocs/amazon-sagemaker-developer-guide/blob/79df5036578837889509ae51d2d5acafa2ec620b/doc_source/kubernetes-sagemaker-jobs.md)).

# %% [markdown] slideshow={"slide_type": "slide"}
# Send requests in three ways: from one client, which waits for an answer before it sends the next
# request; from eight such clients at once; and with all 360 test images in a request (five a
# round). A mean hides the slow answers, which users notice most. So report two numbers: half of the
# answers take longer than the **median**, one in a hundred takes longer than the **99th
# percentile**. **Predict, then run.**

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    median="One client: how many milliseconds does the median answer take?",
    slower="Eight clients at once: how many times as long does the median answer take?",
    factor="360 images in one request: by what factor does the time per image fall?",
)

# %% [markdown]
# The ways take turns, in random order. "1 client again" repeats the first way: a difference smaller
# than the one between these two means nothing. Each number below is the middle one of its rounds;
# "one client" has the rounds of both. The first request of each shape, which takes longer, isn't
# counted.

# %%
with np.load(next((workshop.DATA / "digits" / "test").glob("*.npz"))) as file:
    images, labels = file["images"], file["labels"]
single, many = ({"instances": part.tolist()} for part in (images[:1], images))


def milliseconds(body) -> float:
    """How long one request takes, as its client sees it."""
    began = time.perf_counter()
    predictor.predict(body)
    return 1000 * (time.perf_counter() - began)


def ask(clients: int) -> tuple[list[float], float]:
    """What `clients` at once measure: each request's milliseconds, and answers per second."""
    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        took = list(pool.map(milliseconds, [single] * requests))
    return took, requests / (time.perf_counter() - began)


# %%
milliseconds(many), milliseconds(single)  # not counted
clients = {"1 client": 1, "1 client again": 1, "8 clients": 8}
took: dict[str, list] = {name: [] for name in clients}
rate = {name: [] for name in clients}
each = []
for number in range(rounds):
    for name in random.Random(number).sample([*clients, "360 at once"], 4):
        if name in clients:
            answers, per_second = ask(clients[name])
            took[name].append(answers)
            rate[name].append(per_second)
        else:
            each.append(np.median([milliseconds(many) for _ in range(5)]) / len(images))


# %%
def for_each_round(percent: float) -> pd.DataFrame:
    """A percentile of the answers, one that occurred: a row for each round."""
    return pd.DataFrame(
        {
            name: np.percentile(parts, percent, axis=1, method="higher")
            for name, parts in took.items()
        }
    )


def in_words(by_round: pd.DataFrame) -> pd.Series:
    """The median of the rounds, and their range."""
    middle, low, high = interleaved.summary(by_round).map("{:.1f}".format).T.to_numpy()
    return pd.Series(middle + " (rounds: " + low + " to " + high + ")", by_round.columns)


medians, tails = for_each_round(50), for_each_round(99)
per_second = pd.DataFrame(rate).median()
columns = {"median, ms": in_words(medians), "99th percentile, ms": in_words(tails)}
pd.DataFrame(columns | {"answers/s": per_second.round().astype(int)})

# %% jupyter={"source_hidden": true}
twins = ["1 client", "1 client again"]
alone, eight = medians[twins].mean(axis=1), medians["8 clients"]
one_client, eight_clients = np.median(medians[twins]), eight.median()
tail_of_one, tail_of_eight = np.median(tails[twins]), tails["8 clients"].median()
slower_by_round, factor_by_round = eight / alone, alone / each
slower, factor = slower_by_round.median(), factor_by_round.median()
apart = medians["1 client again"] / medians["1 client"]
waits = slower_by_round.min() > apart.max()
stalled = (tails > 2 * tails.median()).sum()

# %% [markdown]
# A curve is a round; further right is slower.

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "slide"}
title = f"Median answer: {one_client:.1f} ms with one client, {eight_clients:.1f} ms with eight;\n"
title += f"99th percentile: {tail_of_one:.1f} and {tail_of_eight:.1f} ms (middle round)"
title += "; rounds overlap" * (not waits)
if stalled["8 clients"]:
    title += f";\nwith eight, {stalled['8 clients']} of {rounds} rounds stalled"
up = "share of answers that\ntook at most this long"
with plots.canvas(title, "milliseconds until the answer", up, size=(7.5, 3.2)) as axes:
    share = np.arange(1, requests + 1) / requests
    for name, colour in zip(clients, (0, 4, 1), strict=True):
        for number, answers in enumerate(took[name]):
            label = {"label": f"{name}, each round"} if number == 0 else {}
            look = {"color": plots.COLOURS[colour], "alpha": 0.8, "linewidth": 1}
            axes.plot(np.sort(answers), share, **look, **label)
    for at, text in ((0.5, "median"), (0.99, "99th percentile")):
        axes.axhline(at, color="grey", linestyle=":", linewidth=1)
        place = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
        axes.text(1.01, at, text, **place)
    axes.set(xscale="log", ylim=(0, 1.02))
    axes.set_xlim(right=2 * tails.max().max())  # a single answer may take far longer
    left, right = axes.get_xlim()
    ticks = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]
    axes.set_xticks([tick for tick in ticks if left < tick < right])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right", fontsize=8)

# %% slideshow={"slide_type": "slide"}
low, high = apart.min(), apart.max()
print(f"One client, in the middle round: half of the answers took longer than {one_client:.1f} ms,")
print(f"one in a hundred longer than {tail_of_one:.1f} ms", end=" ")
print(f"({tails[twins].min().min():.1f} to {tails[twins].max().max():.1f} in all rounds).")
print(f"Eight clients: {eight_clients:.1f} ms, and {tail_of_eight:.1f} ms", end=" ")
print(f"({tails['8 clients'].min():.1f} to {tails['8 clients'].max():.1f}).")
slowest = max(max(answers) for parts in took.values() for answers in parts)
print(f"The slowest answer of all took {slowest:.0f} ms", end="")
print(", beyond the picture." if slowest > right else ".")
for name, number in stalled[stalled > 0].items():
    print(f"{name}: in {number} of {rounds} rounds the 99th percentile is over twice the median's.")
if stalled.any():
    print("A stall of this machine, or of the server? More rounds would tell how often.")
print(f"(A round has {requests} answers; beyond its 99th percentile there are one or two.)")
print(f"With eight the median is {slower:.1f} times one client's (rounds: ", end="")
print(f"{slower_by_round.min():.1f} to {slower_by_round.max():.1f});")
print(f"the same way twice: {low:.2f} to {high:.2f}. So ", end="")
print("eight clients wait longer." if waits else "the rounds overlap: no proof.")
if low > 1 or high < 1:
    print(f"(All rounds on one side of 1: chance does that in 1 of {2 ** (rounds - 1)} runs.)")
print(f"In a request with 360 images each accounts for {np.median(each):.3f} ms: ", end="")
print(f"the time per image falls\nby a factor of {factor:.0f} ", end="")
print(f"(rounds: {factor_by_round.min():.0f} to {factor_by_round.max():.0f}).")
guess.compare(median=one_client, slower=slower, factor=factor)

# %% jupyter={"source_hidden": true} tags=["results"]
for name, number in clients.items():  # Little's law
    underway = np.mean([np.mean(t) * r / 1000 for t, r in zip(took[name], rate[name], strict=True)])
    assert 0.5 * number < underway < 1.05 * number, f"{name}: {underway:.1f} requests under way"
workshop.save_results(
    median_ms=one_client,
    slower=[slower_by_round.min(), slower, slower_by_round.max()],
    apart=[low, high],
    tails_ms=tails.median().to_dict(),
    per_second=per_second.to_dict(),
    per_image_factor=[factor_by_round.min(), factor, factor_by_round.max()],
)

# %% [markdown] slideshow={"slide_type": "slide"}
# **Why?** Eight requests are under way, but the server doesn't give eight times the answers. With
# `r` answers in a second, one comes every 1 / `r` seconds, and whoever joins the eight waits for
# eight of them: 8 / `r` seconds on average (Little's law):

# %% slideshow={"slide_type": "-"}
middle = np.argsort(rate["8 clients"])[rounds // 2]  # the round with the median rate
r = rate["8 clients"][middle]
throughput = (pd.Series(rate["8 clients"]) / pd.DataFrame(rate)[twins].mean(axis=1)).median()
print(f"Eight clients get {throughput:.2f} times the answers of one, so the mean answer takes")
print(f"8 / {throughput:.2f} = {8 / round(throughput, 2):.1f} times as long ", end="")
print(f"(the median one {slower:.1f} times).")
print(f"The median round: 8 / {r:.0f} answers a second = {8000 / r:.1f} ms; ", end="")
print(f"its mean, measured: {np.mean(took['8 clients'][middle]):.1f} ms")
print("(at a round's end fewer than eight are under way).")
together = np.median(each) * len(images)
an_image = (together - one_client) / (len(images) - 1)
print(f"A request with 360 images takes {together:.1f} ms, with one {one_client:.2f} ms. ", end="")
print("If the time grows evenly,")
print(f"an image costs {an_image:.3f} ms, a request itself {one_client - an_image:.2f} ms.")

# %% [markdown]
# The law doesn't say *where* they wait. Here the clients are threads of one Python process, on the
# server's own cores; on AWS, `ModelLatency` in CloudWatch is the model's part, and
# `OverheadLatency` SageMaker's. Where the server is the limit, more instances raise `r`. These
# clients are a *closed loop*: at most eight requests are under way. Users are an *open loop*: if
# more requests arrive than the server can answer, the queue grows without end.
#
# 360 images share what a request itself costs, such as signing, HTTP and calling the model.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Three objects, and only one costs money
#
# `deploy()` made three objects. SageMaker keeps the times:

# %% slideshow={"slide_type": "-"}
endpoint = sagemaker.describe_endpoint(EndpointName=predictor.endpoint_name)
configuration = sagemaker.describe_endpoint_config(
    EndpointConfigName=endpoint["EndpointConfigName"]
)
model = sagemaker.describe_model(ModelName=configuration["ProductionVariants"][0]["ModelName"])
made = {
    "model": (model, "archive, container image and role", "nothing (S3 apart)"),
    "endpoint configuration": (configuration, "model, type and number of instances", "nothing"),
    "endpoint": (endpoint, "the instances, with an address", "every second until deleted"),
}
for name, (entry, *about) in made.items():
    made[name] = (1000 * (entry["CreationTime"].timestamp() - began), *about)
made = dict(sorted(made.items(), key=lambda item: item[1][0]))
in_service = endpoint["LastModifiedTime"].timestamp() - began
print(f"In this order: {', '.join(made)}.")
print(f"The endpoint was in service after {in_service:.1f} s.")
table = pd.DataFrame(made, index=["created after, ms", "what it is", "costs"]).T
table.assign(**{"created after, ms": table["created after, ms"].map("{:.0f}".format)})

# %% jupyter={"source_hidden": true} tags=["results"]
assert endpoint["EndpointStatus"] == "InService", endpoint.get("FailureReason")
assert list(made) == ["model", "endpoint configuration", "endpoint"], f"Another order: {made}"
assert len({ms for ms, *_ in made.values()}) == 3, f"Times too coarse to tell the order: {made}"
workshop.save_results(status=endpoint["EndpointStatus"], deploy_order=list(made))

# %% [markdown]
# A training job ends; a **serving endpoint** doesn't. It is billed even if nobody sends a request:

# %%
a_month = prices.idle_table().loc["endpoint ml.m5.large", "USD a month"]
print(f"One forgotten ml.m5.large: {a_month:.0f} USD a month.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd_a_month=a_month)

# %% [markdown]
# If lesson 06's stack is still there (its clean-up deletes it), `vpc_config_override` puts the
# instance into your VPC, in one of two zones. SageMaker tries to spread an endpoint's instances
# over zones
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-best-practices.html)); if this
# lesson's single one fails, nobody answers until SageMaker has replaced it.
#
# > **Beyond this lesson.**
# > [Autoscaling](https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling.html) adds
# > instances when many requests come. For rare ones, a
# > [serverless](https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html) endpoint
# > is billed for the time in which it computes, and an
# > [asynchronous](https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference.html) one can
# > scale down to no instance.
#
# ## What is in model.tar.gz
#
# TensorFlow Serving looks for `1/saved_model.pb`; 1 is a version. The file
# holds a function, so the server needs none of your Python code. (PyTorch's server calls yours: see
# `scripts/train/inference.py`.) The function takes `images`, 8 x 8 x 1, pixels from 0 to 255:
# dividing by 255 is the model's first layer, `Rescaling`.
#
# SageMaker packs the folder that `SM_MODEL_DIR` names. The job of a script that saves elsewhere is
# `Completed`, too, but leaves no model; you notice when `deploy()` fails.

# %%
bucket, key = result.model.removeprefix("s3://").split("/", 1)
packed = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()

with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
    in_archive = sorted(member.name for member in archive if member.isfile())
print(*in_archive, sep="\n")

# %% jupyter={"source_hidden": true} tags=["results"]
assert any(name.endswith("1/saved_model.pb") for name in in_archive), "The script saved no model."
workshop.save_results(in_archive=in_archive)

# %%
display(workshop.show_function("train/train_tf.py", "build_model"))
workshop.show_function("train/train_tf.py", "save")

# %% [markdown] slideshow={"slide_type": "subslide"}
# What if a client divides, too (*divided twice*)? What if dividing were the client's work, and it
# forgot (*never divided*)? This model always divides; to see that case, send pixels 255 times as
# large: after dividing they are 0 to 255. The largest probability of an answer is its
# **confidence**.

# %% slideshow={"slide_type": "-"}
scaled = {}
for name, scale in {"0 to 255": 1.0, "divided twice": 1 / 255, "never divided": 255.0}.items():
    body = {"instances": (scale * images).tolist()}
    answers = np.array(predictor.predict(body)["predictions"])
    right = answers.argmax(axis=1) == labels
    confidence = pd.Series(answers.max(axis=1))
    scaled[name] = {
        "right answers": right.mean(),
        "mean confidence": confidence.mean(),
        "mean confidence of wrong answers": confidence[~right].mean(),
    }
table = (100 * pd.DataFrame(scaled).T).add_suffix(", %")
table.iloc[:, 1:] = np.floor(100 * table.iloc[:, 1:]) / 100  # never 100, however sure
table.round(2)

# %% jupyter={"source_hidden": true} tags=["results"]
rights = {name: float(of["right answers"]) for name, of in scaled.items()}
assert rights["divided twice"] < 0.5 < rights["never divided"], scaled
workshop.save_results(right_by_scale=rights)

# %% [markdown]
# No request failed: a server checks shape and type. Divided twice, every image looks black, and
# most answers are wrong. Never divided, most stay right: without biases ReLU layers would only
# scale, and the largest would stay the largest. But now even the wrong answers claim certainty.
#
# ## What the model gets wrong
#
# The answer has ten probabilities for each image. Are they the model's own? TensorFlow's command
# `saved_model_cli` runs the same SavedModel without any server; compare.

# %%
probabilities = np.array(predictor.predict(many)["predictions"])
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["tar", "-xzC", folder], input=packed, check=True)
    np.save(f"{folder}/images.npy", images.astype(np.float32))
    command = f"saved_model_cli run --dir {folder}/1 --tag_set serve --outdir {folder}"
    command += f" --signature_def serving_default --inputs images={folder}/images.npy"
    subprocess.run(command.split(), check=True, capture_output=True)
    direct = np.load(f"{folder}/probabilities.npy")
difference = float(np.abs(probabilities - direct).max())
print(f"{len(probabilities)} answers; largest difference from the model itself: {difference:.1g}")

# %% jupyter={"source_hidden": true} tags=["results"]
assert difference < 1e-6, "The endpoint serves another model than the job left."
workshop.save_results(difference=difference)

# %% [markdown]
# Behind an accuracy there are images: a label may be wrong, a digit cut off. **Predict, then run.**

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(worst="How high is the highest confidence of a wrong answer, in %?")

# %% slideshow={"slide_type": "slide"}
predicted = probabilities.argmax(axis=1)
wrong = np.flatnonzero(predicted != labels)
sure = probabilities[wrong].max(axis=1)
wrong = wrong[np.argsort(-sure)]  # the surest first
accuracy, logged = 1 - len(wrong) / len(labels), result.metrics["test_accuracy"]
same = abs(accuracy - logged) < 1e-6
print(f"Accuracy as served {accuracy:.4f}, in the job's log {logged:.4f}. Equal: {same}.")
percent = np.floor(1000 * probabilities.max(axis=1)) / 10  # never 100, however sure
worst = percent[wrong[0]] if len(wrong) else 0
title = f"The model misreads {len(wrong)} of {len(labels)} test images"
title += f", one with {worst:.1f} % confidence" if len(wrong) else ""
plots.images(
    images[wrong][:12],
    [f"{labels[n]}, read as {predicted[n]}\n{percent[n]:.1f} %" for n in wrong[:12]],
    title,
)
guess.compare(worst=worst)

# %% jupyter={"source_hidden": true} tags=["results"]
assert same, "Not the model whose accuracy the job logged."
workshop.save_results(wrong=len(wrong), accuracy=accuracy)

# %% [markdown]
# Training on the same images to a loss near 0 pushes most probabilities towards 0 and 1. It doesn't
# make them *calibrated*, that is, right as often as they say ([Guo and others,
# 2017](https://arxiv.org/abs/1706.04599)); 360 images are too few to see it. If a served model is
# worse than its log says, training and serving differ somewhere; look at the preprocessing first.
#
# ## Request formats, and their limits
#
# The front end of SageMaker's TensorFlow container, before TensorFlow Serving, knows several
# formats. `instances`, as above, is JSON with an entry for each image. **JSON lines** have an image
# in each line, so that programs can cut and join files. **CSV** has a row of numbers for each
# image. Here are five images as JSON lines, with AWS's plain client, which takes any text.

# %%
runtime = session.client("sagemaker-runtime")


def invoke(body: str, content_type: str) -> dict:
    """The answer to a request whose body you wrote yourself."""
    reply = runtime.invoke_endpoint(
        EndpointName=predictor.endpoint_name, ContentType=content_type, Body=body
    )
    return json.loads(reply["Body"].read())


lines = "\n".join(json.dumps({"images": image.tolist()}) for image in images)
five = "\n".join(lines.splitlines()[:5])
answer = np.array(invoke(five, "application/jsonlines")["predictions"])
off = np.abs(answer - probabilities[:5]).max()
print(f"JSON lines: {len(answer)} answers; largest difference from those above: {off:.1g}")

body = runtime.meta.service_model.operation_model("InvokeEndpoint").input_shape.members["Body"]
limit = body.metadata["max"]
fit = limit * 5 // len(five)
print(f"boto3: a request may have {limit:,} bytes: about {round(fit, -3):,} images in JSON.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert off < 1e-6, f"JSON lines got different answers: {off}"
workshop.save_results(forms=["instances", "JSON lines"], body_limit=limit, images_that_fit=fit)

# %% [markdown]
# AWS's guide says [25 MB](https://docs.aws.amazon.com/sagemaker/latest/dg/hosting-faqs.html)
# (November 2026; not tried): plan with the smaller number. The container must answer within [60
# seconds](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html).
# For more there is a batch transform, below.
#
# CSV is flat, 64 numbers in a row. This model wants 8 x 8 x 1, so the server refuses it:

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
# For a format of your own you write **handlers**, in a file `inference.py` that travels in
# `model.tar.gz`. The front end calls two functions in it: `input_handler` turns the request into
# TensorFlow Serving's JSON, and `output_handler` turns the answer into what your clients want.
# With these two, which run in the last section, a model accepts only CSV, and answers with a digit
# and its probability. (`image_of` makes 8 x 8 x 1 of a row, and `SIDE` is 8.)

# %% slideshow={"slide_type": "subslide"}
display(workshop.show_function("demos/serve_csv/inference.py", "input_handler"))
workshop.show_function("demos/serve_csv/inference.py", "output_handler")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Delete the endpoint
#
# Nothing below needs the endpoint. So delete it **now**, not at the end of a lesson that you may
# not reach; if a cell above fails, at once. `delete_endpoint` deletes the configuration, too: read
# the model's name first.

# %% slideshow={"slide_type": "-"}
name = sagemaker.describe_endpoint(EndpointName=predictor.endpoint_name)["EndpointConfigName"]
(variant,) = sagemaker.describe_endpoint_config(EndpointConfigName=name)["ProductionVariants"]
predictor.delete_endpoint()
sagemaker.delete_model(ModelName=variant["ModelName"])
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
# ## A whole file: batch transform
#
# If you already have all the inputs, you don't need an endpoint. A **batch transform** is a job: it
# starts instances, sends the records of a file to the model, writes the answers to S3 and releases
# the instances. The next cell uploads the test images as JSON lines and as CSV.
#
# | argument | what it says |
# |---|---|
# | `split_type="Line"` | each line of the file is a record |
# | `strategy` | `MultiRecord`: as many records in a request as fit; `SingleRecord`: one |
# | `max_payload` | how much fits, in MB |
# | `accept` | the format of the answers |
# | `assemble_with="Line"` | a line end after each answer, which is that of a *request* |

# %%
folder = f"jobs/{session.job_prefix}questions"
for name, text in {"json/test.jsonl": lines, "csv/test.csv": rows}.items():
    session.client("s3").put_object(
        Bucket=session.bucket, Key=f"{folder}/{name}", Body=text.encode()
    )
common = {
    "instance_count": 1,
    "instance_type": serving_type,
    "assemble_with": "Line",
    "accept": "application/jsonlines",
    "tags": estimator.tags,  # the job's tags
}
transformer = estimator.transformer(
    strategy="MultiRecord",
    max_payload=1,
    output_path=f"s3://{session.bucket}/{folder}/json-out",
    **common,
)

# %% [markdown]
# The answers come in a file with the same name and `.out` at its end; `transformed`, folded here,
# reads it.


# %% jupyter={"source_hidden": true}
def transformed(transformer, source: str, content_type: str) -> list[str]:
    """Run a batch transform of a folder with one file; return the lines of its answers."""
    place = f"s3://{session.bucket}/{folder}/{source}"
    transformer.transform(place, content_type=content_type, split_type="Line", wait=False)
    job = {"TransformJobName": transformer.latest_transform_job.name}
    waiter = sagemaker.get_waiter("transform_job_completed_or_stopped")
    try:
        waiter.wait(**job, WaiterConfig={"Delay": 1, "MaxAttempts": 1800})
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
print(f"{len(batch)} answers in {len(answered)} request{'s' * (len(answered) > 1)}; ", end="")
print(f"largest difference from the endpoint's: {batch_difference:.1g}")

# %% [markdown]
# <!-- SDK v3: transform -->

# %% jupyter={"source_hidden": true} tags=["results"]
assert batch.shape == probabilities.shape, f"{batch.shape} came back: an image was lost."
assert batch_difference < 1e-6, f"The endpoint's answers differ by {batch_difference:.1e}."
workshop.save_results(batch_difference=batch_difference, batch_answers=len(batch))

# %% [markdown]
# ## Handlers in a batch transform
#
# A `TensorFlowModel` serves any `model.tar.gz` with a SavedModel in a numbered folder, without an
# estimator, and adds the handlers from above; its `deploy()` and `transformer()` are the
# estimator's. `SingleRecord` is for models that take only one record. These handlers take many; it
# is here to be seen: 360 requests, not one.

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
# <!-- SDK v3: handlers -->

# %% [markdown]
# One answer per row, in the same order: join answers to inputs by position.

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
# 1. *Wrong, and sure of it* (5 minutes, easy): the mistakes to look at first.
# 2. *A file for batch transform* (6 minutes, easy): JSON lines from images.
# 3. *A digit in place of ten numbers* (8 minutes, medium): what an `output_handler` answers.
#
# ## Check yourself

# %% question=4 slideshow={"slide_type": "slide"}
workshop.quiz("08")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - Measure the median and the 99th percentile, with as many clients as you expect: with eight (here
#   on the server's own cores), each waits longer.
# - `deploy()` makes a model, an endpoint configuration and an endpoint. Only the endpoint costs
#   money, until you delete it.
# - Preprocessing belongs in the model: wrongly scaled pixels raise no error. Other request formats
#   belong in handlers.
# - Look at the images that the model gets wrong, those with the highest confidence first.
# - A batch transform answers a whole file and ends by itself.

# %% [markdown]
# ## Clean up
#
# The endpoint and the models are deleted. S3 and the logs still hold what the jobs wrote; [lesson
# 99](99_clean_up.ipynb) finds it.
#
# ## Next
#
# [09 · Data](09_data.ipynb): which files an instance gets, and in which form.

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
# # 09 · Data: which files an instance gets, and in which form
#
# **After this lesson you can**
#
# - measure how long a training step waits for its data, and shorten that;
# - say which environment variable names a channel's folder;
# - choose between `FullyReplicated` and `ShardedByS3Key`, and divide the data exactly once;
# - count the records of a TFRecord file without TensorFlow, and say when to stream them;
# - notice scrambled pixels, which no error message reports.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb): ranks and shards. [Lesson
# 05](05_horovod_on_training_instances.ipynb): a Horovod job.
#
# **Time:** 55 minutes, and 25 for the exercises. About two minutes of it are computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.07 USD: two jobs on two `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.17 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `cifar10`: the folder that holds `cifar-10-binary.tar.gz`, as a path or a URL. If it is empty,
#   the lesson cuts pictures of the same size from two photographs that come with scikit-learn. The
#   label says which photograph, and which fifth of its width, a picture was cut from: ten classes,
#   so a guess is right in 10 %. Neighbouring cuts overlap, also between training and test: an
#   accuracy here is too high; only compare.
# - `instance_type`: of both jobs. `epochs`, `learning_rate`: of the second. `max_run`: seconds
#   after which SageMaker ends a job. `rounds`: how often a measurement is repeated.

# %% tags=["parameters"]
target = "local"
seat = "me"
cifar10 = ""
instance_type = "ml.c5.xlarge"
epochs = 12
learning_rate = 0.05
rounds = 5
max_run = 600

# %%
import statistics
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from IPython.display import display

import data_prep
import workshop
from workshop import plots
from workshop.launch import processes
from workshop.measure import interleaved

session = workshop.session(target=target, seat=seat)
s3 = session.client("s3")
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data"
data_prep.upload(digits, f"{data}/digits", client=s3)
cost = workshop.cost(instance_type, instance_count=2, seconds=300, max_run=max_run)
most = workshop.up_to_cents(2 * cost.most_usd)
print(f"Two jobs: about {2 * cost.usd:.2f} USD on AWS, at most {most:.2f} USD.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=2 * cost.usd, usd_at_most=2 * cost.most_usd)

# %% [markdown]
# ## The result: how long a step waits for its data
#
# Here are 100 small pictures in S3, once in a file each and once all in one file:

# %%
some = data_prep.cifar10.sample_bytes()[: 100 * 3073]  # 1 byte of label, 3,072 of pixels
records = [some[start : start + 3073] for start in range(0, len(some), 3073)]
large = "data/one-large/part-00000.bin"
small = [f"data/many-small/{number:05d}.bin" for number in range(len(records))]
for key, body in zip([large, *small], [some, *records], strict=True):
    s3.put_object(Bucket=session.bucket, Key=key, Body=body)

# %% [markdown]
# A `DataLoader` fetches each small file when a batch of ten needs it: one by one in the training
# process, or in two **workers**, processes that fetch the next batches while the model computes.
# The large file is fetched whole before the first step. This loop is timed:

# %% slideshow={"slide_type": "slide"}
workshop.show_function("demos/wait_for_data.py", "measure")

# %% [markdown]
# In a local run S3 is a program on this machine, and a request crosses no network: one takes 1
# to 4 ms. Computing a step takes 20 to 50 ms: both depend on the machine. **Predict, then run.**

# %% slideshow={"slide_type": "slide"}
guess = workshop.guess(
    single="100 files, one by one: what percentage of a step is waiting?",
    workers="100 files, two workers: what percentage?",
)

# %% slideshow={"slide_type": "slide"}
script = [sys.executable, workshop.DEMOS / "wait_for_data.py", "--rounds", rounds]
script += ["--large", session.web_address(large), *map(session.web_address, small)]
waited = pd.DataFrame(processes.run_together(script, timeout=500))
waited["share"] = waited["wait"] / (waited["wait"] + waited["compute"])
shares = waited.groupby("way")["share"].agg(["median", "min", "max"])
step = 1000 * waited.groupby("way")[["compute", "wait"]].median()
percent = 100 * shares["median"]
guess.compare(single=percent["one by one"], workers=percent["2 workers"])

# %% jupyter={"source_hidden": true} tags=["figure"]
names = {
    "one by one": "100 files, one by one",
    "one by one again": "the same again",
    "2 workers": "100 files, 2 workers",
    "1 file, 2 workers": "1 file, 2 workers",
    "1 file": "1 file",
}
low, high = ({way: f"{share:.1%}" for way, share in shares[end].items()} for end in ("min", "max"))
waits = {way: low[way] + f" to {high[way]}" * (low[way] != high[way]) for way in names}
title = f"Fetching one by one, a step waits {percent['one by one']:.0f}% of its time;\n"
title += f"with two workers {percent['2 workers']:.0f}%, "
title += f"from one file read beforehand {percent['1 file']:.1f}%"
alt = f"{title}. " + "; ".join(
    f"{name}: {step.loc[way, 'compute']:.1f} ms computing and {step.loc[way, 'wait']:.1f} waiting"
    for way, name in names.items()
)

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
x = f"milliseconds of a step, median of {rounds} rounds of ten steps"
with plots.canvas(title, x, size=(8, 3.2), alt=alt) as axes:
    left = 0
    for part, label, colour, hatch in (("compute", "computes", 4, ""), ("wait", "waits", 1, "//")):
        look = {"color": plots.COLOURS[colour], "hatch": hatch, "edgecolor": "white"}
        lengths = step.loc[list(names), part]
        axes.barh(list(names.values()), lengths, left=left, label=label, **look)
        left = lengths
    for row, way in enumerate(names):
        axes.text(step.loc[way].sum(), row, f" waits {waits[way]}", va="center", fontsize=9)
    axes.set_xlim(0, 1.45 * step.sum(axis=1).max())
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true}
total, wait, compute = step.sum(axis=1), step["wait"], step["compute"]["2 workers"]
print(f"Two workers: a step takes {total['2 workers']:.0f} ms in place of", end=" ")
print(f"{total['one by one']:.0f}, and waits for {wait['2 workers']:.1f} of them.")
low, high = step["compute"].min(), step["compute"].max()
first, again = step["compute"][["one by one", "one by one again"]]
print(f"(Computing takes {low:.0f} to {high:.0f} ms, by way;", end=" ")
print(f"the same way twice {first:.0f} and {again:.0f}.)")
enough = int(np.ceil(wait["one by one"] / compute))
print(
    f"Fetching a batch takes {wait['one by one']:.0f} ms, computing a step {compute:.0f}:", end=" "
)
print(f"{enough} worker{'s' * (enough > 1)} could keep up.")
print(f"Two workers that read from memory: a step waits for {wait['1 file, 2 workers']:.1f} ms,")
print(f"with 100 files {wait['2 workers']:.1f}. Both have to hand the batches over.")
single = 1000 * waited["fetch_large"].iloc[0]
print(f"No worker, from memory: {wait['1 file']:.1f} ms. The file was fetched once,", end=" ")
print(f"before the first step, in {single:.0f} ms.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert shares.loc["1 file", "max"] < shares.loc["one by one", "min"], (
    f"Requests must show: {shares}"
)
workshop.save_results(waiting=shares.T.to_dict(), step_ms=step.T.to_dict())

# %% [markdown]
# **Why?** A step = compute + wait + exposed communication (what computing doesn't hide of the
# all-reduce; a single rank has none). One by one, each picture costs a request, and the model waits
# for ten of them. Workers fetch while it computes: two hide the wait as long as fetching a batch
# takes less than two steps of computing, and one as long as it takes less than one. But each batch
# has to come from their process to the model's, and they need cores, too. Starting them isn't
# counted here. A GPU computes faster, so the same wait is a larger part of its steps.
#
# ## Many small files, or few large ones
#
# The same pictures without a model: the small files one by one, or ten at a time, as boto3's
# transfer manager fetches by default, and the large file. **Predict, then run.**

# %% slideshow={"slide_type": "subslide"}
guess = workshop.guess(
    factor="100 small files, one by one: how many times as long as the large one?",
    pool="And 100 small files, ten at a time?",
)


# %%
def get(key: str) -> bytes:
    return s3.get_object(Bucket=session.bucket, Key=key)["Body"].read()


def seconds_to_fetch(keys: list[str], at_a_time: int) -> float:
    with ThreadPoolExecutor(at_a_time) as pool:
        began = time.perf_counter()
        list(pool.map(get, keys))
        return time.perf_counter() - began


# %% slideshow={"slide_type": "subslide"}
ways = {
    "100 files": (small, 1),
    "100 files again": (small, 1),
    "100 files, ten at a time": (small, 10),
    "1 file": ([large], 1),
}
fetch = interleaved.interleave(lambda way: 1000 * seconds_to_fetch(*way), ways, repeats=rounds)
one_by_one = fetch[["100 files", "100 files again"]].mean(axis=1)
at_a_time = fetch["100 files, ten at a time"]
factors, pools = one_by_one / fetch["1 file"], at_a_time / fetch["1 file"]  # for each round
factor, pool = factors.median(), pools.median()
guess.compare(factor=factor, pool=pool)

# %% jupyter={"source_hidden": true}
ratios = {  # name: a ratio for each round
    "One by one : the large file": factors,
    "Ten at a time : the large file": pools,
    "Ten at a time : one by one": at_a_time / one_by_one,
    "One by one again : one by one": fetch["100 files again"] / fetch["100 files"],
}
for name, of_rounds in ratios.items():
    print(f"{name}: {of_rounds.median():.3g}", end=" ")
    print(f"(rounds: {of_rounds.min():.3g} to {of_rounds.max():.3g}).")
of_small, of_large = one_by_one.median() / 100, fetch["1 file"].median()
print(f"A request for a small file takes {of_small:.1f} ms, for the large {of_large:.1f}:", end=" ")
print(f"100 times the\nbytes, {of_large / of_small:.1f} times the time.")
if of_rounds.min() > 1 or of_rounds.max() < 1:
    print(f"(The last in all rounds on one side of 1: by chance in 1 of {2 ** (rounds - 1)} runs.)")

# %% jupyter={"source_hidden": true} tags=["figure"] slideshow={"slide_type": "-"}
spread = interleaved.summary(fetch)
title = f"100 small files take {factor:.0f} times as long as one large; "
plots.bar_chart(
    spread["median"],
    f"{title}\nten at a time, {pool:.0f} times (medians)",
    f"milliseconds, median of {rounds} rounds and range",
    "{:,.1f} ms",
    spread=spread[["lowest", "highest"]],
    colour=plots.COLOURS[0],
)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(factor=factor, pool_factor=pool, fetch=spread.T.to_dict())

# %% [markdown]
# The bytes are the same; the requests are not, and what a request takes depends little on such
# sizes. (A small file's price differs from the last section's: another client, in another process.
# Compare within a section only. Locally ten threads and the server share the cores, which probably
# limits what ten at a time gain; on S3 expect more.)
#
# Here a request crosses no network. On S3 one for a small object takes roughly 100 to 200 ms
# ([AWS](https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html), read in
# November 2026), so ten, one after the other, take one to two seconds in each step. So put many
# pictures into a file, or fetch the small ones once, before the first step (File mode, below, does
# that).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## A channel is a folder with a name
#
# A **channel** is one input of a job: objects in S3, and a name that you choose. On each instance
# they become a folder, and the variable `SM_CHANNEL_` plus the name in capitals tells the script
# where. So `fit()` and the script have to use the same name: this kit's training scripts read
# `SM_CHANNEL_TRAINING` and `SM_CHANNEL_TEST`, and a channel called `train` sets neither.
#
# An address without a name, `fit("s3://bucket/folder")`, becomes a channel called `training`. Then
# `SM_CHANNEL_TEST` isn't set, and a script that tests on the training folder instead measures
# accuracy on the data that it trained on.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Which files an instance gets
#
# In lesson 01 the ranks divided the data. A channel's `distribution` can do it for whole instances:
#
# - `FullyReplicated`, the default: every instance gets every file;
# - `ShardedByS3Key`: every file goes to exactly one instance. With more instances than files some
#   get nothing, and you pay for them
#   ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html)).

# %% [markdown]
# The job below has two instances, four training files (sharded) and a test file (replicated). Its
# script only prints what it finds, such as the world_size: `WORLD_SIZE` if torchrun started it,
# `OMPI_COMM_WORLD_SIZE` if mpirun did. The estimator has no `distribution`. **Predict, then run.**

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    ranks=("Which world_size will each process find among its variables?", ["2", "1", "not told"]),
)

# %%
from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch

channels = {
    "training": TrainingInput(f"{data}/digits/training", distribution="ShardedByS3Key"),
    "test": TrainingInput(f"{data}/digits/test", distribution="FullyReplicated"),
}
settings = session.job_settings("channels", source_dir=workshop.DEMOS) | {"max_run": max_run}
estimator = PyTorch(
    entry_point="look_at_channels.py",
    framework_version="2.2.0",
    py_version="py310",
    instance_type=instance_type,
    instance_count=2,
    **settings,
)
estimator.fit(channels, wait=False)
result = workshop.follow(estimator)

# %% [markdown]
# <!-- SDK v3: channels -->

# %% slideshow={"slide_type": "slide"}
seen = result.table("channel").sort_values(["channel", "host"], ignore_index=True)
guess.compare(ranks=str(seen["world_size"].iloc[0]))
seen[["channel", "variable", "host", "files", "images", "world_size"]]

# %% [markdown]
# `SM_HOSTS` names both instances, but no launcher started ranks: the estimator has no
# `distribution`. (A `TrainingInput` has one, too, which only places files.) A training script
# that was started like this would train two models. **Instances don't make a training distributed.
# The launcher and the script do.**

# %% jupyter={"source_hidden": true} tags=["results"]
channel_files = seen[seen["channel"] == "training"]["files"]
training_files = [name for names in channel_files for name in names]
assert len(training_files) == len(set(training_files)) == 4, f"Shared files: {training_files}"
assert (seen["world_size"] == "not told").all(), "A launcher started the ranks: see distribution."
workshop.save_results(
    images_seen=seen.groupby("channel")["images"].apply(list).to_dict(),
    files_seen=training_files,
    variables=sorted(seen["variable"].unique()),
    world_size=str(seen["world_size"].iloc[0]),
)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Divide the data once
#
# The channel can divide the images, or the script, or both, or nobody. How often is each of the
# 1,437 training images read in an epoch, on two instances with a rank each? **Predict, then run.**

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    never="Channel and script both divide: what percentage of the images isn't read in an epoch?"
)


# %% slideshow={"slide_type": "slide"}
def reads(channel_divides: bool, script_divides: bool, ranks: int = 2) -> np.ndarray:
    """How often each image is read in an epoch, by all ranks together."""
    sizes = [len(np.load(path)["labels"]) for path in sorted((digits / "training").glob("*.npz"))]
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    times = np.zeros(sum(sizes), int)
    for rank in range(ranks):
        share = np.concatenate(parts[rank::ranks] if channel_divides else parts)
        if script_divides:
            share = share[rank::ranks]
        times[share] += 1
    return times


cases = {
    "nobody divides": reads(False, False),
    "the script divides": reads(False, True),
    "the channel divides": reads(True, False),
    "both divide": reads(True, True),
}
read = pd.DataFrame(
    {name: [100 * np.mean(times == n) for n in (0, 1, 2)] for name, times in cases.items()},
    index=["never", "once", "twice"],
).T
guess.compare(never=read.loc["both divide", "never"])
read.round(1).rename_axis("% of the images read")

# %% jupyter={"source_hidden": true} tags=["results"]
assert read.loc["the script divides", "once"] == 100, "The script must read each image once."
workshop.save_results(read=read.T.to_dict())

# %% [markdown]
# The two wrong ones raise no error:
#
# - **Nobody divides**: every rank trains on everything, so an epoch takes as long as on one rank,
#   and costs N times as much. It also happens in scripts that seem to divide: in [a published
#   one](https://towardsdatascience.com/smart-distributed-training-on-amazon-sagemaker-with-smd-part-2-c833e7139b5f)
#   the call was `get_dataset(rank=dist.local_rank())`, and `get_dataset` never used its `rank`.
# - **Both divide**: an epoch looks fast, because on N instances with a rank each it leaves out
#   1 - 1/N of the images, here half. (A sampler that shuffles anew in each epoch leaves out others
#   each time: then only the number of steps tells.)
#
# A channel divides among *instances*, never among the ranks of one. So the script divides
#
# - all the data by rank, among `world_size` ranks, if the channel is `FullyReplicated`;
# - its instance's files by local_rank, among `local_size` ranks, if it is `ShardedByS3Key`.
#
# In **File mode**, the default, an instance's files are copied to its disk before the script
# starts; there `ShardedByS3Key` saves disk space and download time. (With FastFile, below, a file
# that isn't opened isn't fetched.) But it divides files, not images: if they differ in size, one
# rank runs out of batches first, and the others wait in the all-reduce, or fail. And the parts stay
# the same for the whole job: if each class has a file of its own, no instance ever sees all
# classes.
#
# ## The order of the pixels
#
# CIFAR-10's own files store a picture as 3 x 32 x 32: first all red values, then green, then blue.
# A common mistake is to read them with `reshape([32, 32, 3])`. Here is a photograph, read both
# ways:

# %% slideshow={"slide_type": "slide"}
from sklearn.datasets import load_sample_image

photograph = load_sample_image("flower.jpg")[100:356:8, 220:476:8]  # 32 x 32 pixels of it
stored = photograph.transpose(2, 0, 1).tobytes()  # as CIFAR-10's files have it
flat = np.frombuffer(stored, np.uint8)
correct = flat.reshape(3, 32, 32).transpose(1, 2, 0)
scrambled = flat.reshape(32, 32, 3)
plots.images(
    np.stack([correct, scrambled]),
    ["correct: reshape\n(3, 32, 32)\n.transpose(1, 2, 0)", "scrambled:\nreshape\n(32, 32, 3)"],
    "The same bytes read two ways: same shape, no error",
)

# %% [markdown]
# Would you have noticed from the accuracy? A linear classifier learns from 2,000 pictures, correct
# or scrambled, and is tested on 500 others, read in the same way. **Predict, then run.**

# %% slideshow={"slide_type": "-"}
guess = workshop.guess(
    accuracy=("With scrambled pixels, the accuracy is", ["lower", "the same", "higher"])
)

# %% slideshow={"slide_type": "slide"}
from sklearn.linear_model import RidgeClassifier

record = np.frombuffer(data_prep.cifar10.sample_bytes(), np.uint8).reshape(-1, 3073)
labels, planes = record[:, 0], record[:, 1:]
readings = {
    "correct": planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1),
    "scrambled": planes.reshape(-1, 32, 32, 3),
}
accuracy = {}
for name, images in readings.items():
    inputs = images.reshape(len(images), -1) / 255
    classifier = RidgeClassifier(100).fit(inputs[:2000], labels[:2000])
    accuracy[name] = classifier.score(inputs[-500:], labels[-500:])
    print(f"{name}: {accuracy[name]:.1%}")
change = accuracy["scrambled"] - accuracy["correct"]
guess.compare(accuracy="the same" if abs(change) < 0.005 else "lower" if change < 0 else "higher")

# %% jupyter={"source_hidden": true} tags=["results"]
assert not np.array_equal(correct, scrambled), "Both readings give the same picture."
workshop.save_results(
    accuracy_of_readings=accuracy, pixels_misplaced=float(np.mean(correct != scrambled))
)

# %% [markdown]
# The wrong `reshape` moves each value to another place, the same one in every picture. A linear
# model doesn't know which pixels are neighbours, so its weights just move along: this had to come
# out. A convolution uses neighbours; but even if its accuracy is lower, you don't know what it
# should have been. **Look at your inputs**, after the last step that changes them.
#
# ## Stream TFRecord files
#
# An `.npz` array is loaded whole; a **TFRecord** file can be read record by record, which pays off
# when the data doesn't fit into memory. Each record has its length in 8 bytes (`"<Q"`, the lowest
# byte first), a checksum in 4, the data, and a checksum in 4. So you can count the records without
# TensorFlow:

# %%
if cifar10:
    pictures = data_prep.cifar10.prepare(workshop.DATA / "cifar10", cifar10, quiet=True)
else:
    pictures = data_prep.cifar10.prepare_sample(workshop.DATA / "cifar10-sample", quiet=True)
uploaded = data_prep.upload(pictures, f"{data}/{pictures.name}", client=s3)


# %%
def record_lengths(content: bytes) -> list[int]:
    """The length in bytes of each record in a TFRecord file."""
    lengths, at = [], 0
    while at < len(content):
        (length,) = struct.unpack("<Q", content[at : at + 8])
        lengths.append(length)
        at += 8 + 4 + length + 4
    return lengths


(part, *_) = sorted((pictures / "train").glob("*.tfrecord"))
lengths = record_lengths(part.read_bytes())
print(f"{part.name}: {len(lengths)} records of {min(lengths)} to {max(lengths)} bytes")

# %% jupyter={"source_hidden": true} tags=["results"]
assert min(lengths) > 32 * 32 * 3, "A record is smaller than its picture."
workshop.save_results(tfrecord_records=len(lengths), tfrecord_bytes=statistics.median(lengths))

# %% [markdown]
# Each record holds a picture of 3,072 bytes, its label, and the names of both fields.
# `train_tf_fit.py` reads a record when it needs it. Each rank gets files of its own if the number
# of files is a multiple of the number of ranks, and otherwise every `world_size`-th record:

# %%
display(workshop.show_function("train/train_tf_fit.py", "stream"))
workshop.show_function("train/train_tf_fit.py", "batches")

# %% [markdown]
# What does that save? The next cell reads 50,000 records (without CIFAR-10: 2,000, 25 times over)
# of about 3.1 kB as the script does, with a shuffle buffer of 10,000 records (it keeps so many in
# memory, hands out a random one, and takes the next into its place), and whole, into arrays.
# **Predict, then run.**

# %%
guess = workshop.guess(memory="How many times as much memory does reading whole add as streaming?")

# %%
parts = sorted((pictures / "train").glob("*.tfrecord"))
times = max(1, 50_000 // (len(parts) * len(lengths)))
script = [sys.executable, workshop.DEMOS / "read_tfrecord.py", pictures / "train", "--times", times]
reading = pd.DataFrame(processes.run_together(script)).set_index("how")
shown = {
    "megabytes": "files (MB)",
    "grown_megabytes": "memory grown by (MB)",
    "seconds_to_first_batch": "first batch after (s)",
    "seconds": "all batches after (s)",
}
ratio = reading.loc["whole", list(shown)] / reading.loc["stream", list(shown)]
guess.compare(memory=ratio["grown_megabytes"])
reading[list(shown)].rename(columns=shown)

# %% [markdown]
# Streaming's shuffle buffer stays as it is when the files grow, and the first batch comes when it
# is full. Reading whole makes copies, among them the parts, the array put together from them, and
# TensorFlow's own. So the factor is that of this script, in one run. (`stream` counts records by
# size: right only if all are equally long, as here.)

# %% jupyter={"source_hidden": true}
grown, files_mb = reading["grown_megabytes"], reading.loc["whole", "megabytes"]
buffer = 10_000 * (statistics.median(lengths) + 16) / 1e6
copies = 3 * 3072 * reading.loc["whole", "records"] / 1e6
print(f"The shuffle buffer of 10,000 records is {buffer:.0f}", end=" ")
print(f"of streaming's {grown['stream']:.0f} MB.")
print(f"Reading whole took {grown['whole'] / files_mb:.1f} times the size of the files (one run).")
print(f"Three copies of the pixels would be {copies:.0f} of its {grown['whole']:.0f} MB;", end=" ")
print("the rest isn't explained here.")
print("(The same buffer is in it, and perhaps what streaming, which ran first, hasn't given back.)")
print(f"A single copy of the files would be {files_mb / grown['stream']:.1f} times streaming's.")

# %% jupyter={"source_hidden": true} tags=["results"]
assert ratio["grown_megabytes"] > 2, f"Streaming took as much memory as the whole: {ratio}"
workshop.save_results(streamed=ratio.to_dict())

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Mistakes that raise no error
#
# The cells below show what they do:
#
# - **One pattern for everything.** `*.tfrecord` over one folder mixes training and test files, and
#   the accuracy is too high. Use two channels.
# - **Files shuffled, records not.** Every picture meets the same neighbours in every epoch. Shuffle
#   both: the files' order anew in each epoch, and the records through a buffer of many files'
#   records. (`batches` shuffles records only; its buffer of 10,000 holds all of these 2,000.)
# - **In Keras's `fit`, `repeat()` with `steps_per_epoch=100`.** What it calls an epoch is 100
#   batches, not one pass through the data.

# %% jupyter={"source_hidden": true}
pixels = planes / 255
classifier = RidgeClassifier(100).fit(pixels[:2000], labels[:2000])
apart = classifier.score(pixels[-500:], labels[-500:])
mixed = classifier.score(
    np.concatenate([pixels[:2000], pixels[-500:]]), labels[[*range(2000), *range(-500, 0)]]
)
print("The linear classifier again; only its test is mixed here, and that is enough:")
print(f"accuracy on the 500 test pictures {apart:.1%}, on training and test pictures {mixed:.1%}")

# %%
import random

draw, per_file = random.Random(1), len(lengths)


def through_buffer(numbers: list[int], size: int):
    """Shuffle as tf.data does: draw from the next `size` records, and refill."""
    buffer = numbers[:size]
    for number in numbers[size:]:
        at = draw.randrange(size)
        yield buffer[at]
        buffer[at] = number
    yield from draw.sample(buffer, size)


files = draw.sample(range(len(parts)), len(parts))
by_file = [file * per_file + at for file in files for at in range(per_file)]
by_record = list(through_buffer(by_file, 2 * per_file))
orders = {"files shuffled": by_file[:6], "records, too": by_record[:6]}
for name, order in orders.items():
    print(f"{name}: the first records are {order}")
passes = 100 * 64 / len(by_file)
print(f"100 steps of 64 are {passes:.1f} passes through {len(by_file):,} pictures")

# %% jupyter={"source_hidden": true} tags=["results"]
assert mixed > apart + 0.1, f"The mixture must flatter: {mixed} against {apart}"
workshop.save_results(accuracy_apart=apart, accuracy_mixed=mixed, passes=passes, orders=orders)

# %% [markdown]
# ## Resume within an epoch
#
# After an interruption within an epoch, `tf.data` can't jump to a record by its number. But if a
# seed alone decides an epoch's order, the stream can be made again, and its first batches skipped:
# in `tf.data` with `shuffle(size, seed=seed + epoch)` and `skip`. So the checkpoint holds the seed,
# the epoch and the number of batches. (`batches` has one seed for all epochs: there skip the
# batches of all earlier epochs, too. `tf.train.Checkpoint` can also save a `tf.data` iterator,
# buffer included.)
#
# **Predict.** Ten batches of 64 are done, of 2,000 pictures that were shuffled through a buffer of
# two files' pictures, 500. Both seeds read the files in the same order.

# %%
guess = workshop.guess(
    again="Resumed at the epoch's beginning: how many pictures are seen twice?",
    other_seed="Ten batches skipped, of another seed's order: how many are never seen?",
)

# %%
from collections import Counter


def epoch(seed: int) -> list[int]:
    """The records of an epoch, in an order that the seed alone decides."""
    draw.seed(seed)
    return list(through_buffer(by_file, 2 * per_file))


done = 10 * 64
whole = epoch(seed=5)
resumed = {
    "the epoch again": epoch(seed=5),
    "skip, another seed": epoch(seed=6)[done:],
    "skip, the same seed": epoch(seed=5)[done:],
}
rows = {}
for way, rest in resumed.items():
    times = Counter(whole[:done] + rest)
    twice = sum(count == 2 for count in times.values())
    same = whole[:done] + rest == whole
    rows[way] = {"seen twice": twice, "never seen": len(whole) - len(times), "as planned": same}
again, lost = rows["the epoch again"]["seen twice"], rows["skip, another seed"]["never seen"]
guess.compare(again=again, other_seed=lost)
pd.DataFrame(rows).T

# %% jupyter={"source_hidden": true}
total = len(whole)
evenly = done * (total - done) / total
print(f"With perfect shuffling each of the {done} skipped pictures would be one of the", end=" ")
print(f"{total - done:,} not yet seen\nwith chance {total - done:,} / {total:,}:", end=" ")
print(f"{evenly:.0f} would be lost.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(resumed=rows)

# %% [markdown]
# A buffer of two files leaves early records early, so both orders begin with many of the same
# pictures, and fewer are lost. Only the last way goes on as planned. Skipping still reads what it
# throws away. For PyTorch, torchdata's
# [StatefulDataLoader](https://pytorch.org/data/0.11/stateful_dataloader_tutorial.html) has a
# `state_dict()`, which by default holds the number of batches, too; after `load_state_dict` the
# loader skips them. [Lesson 10](10_interruptions_and_failures.ipynb): what else a checkpoint must
# hold.

# %% [markdown]
# ## Train from TFRecord files
#
# Each channel of the job has `input_mode="FastFile"`: SageMaker streams a file from S3 while the
# script reads it. That works best from front to back; and the fewer the files, the sooner the job
# starts ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AlgorithmSpecification.html),
# read in November 2026). (The emulator copies the files first; the script sees the same folder.) In
# its predecessor **Pipe mode** a channel is a named pipe; TensorFlow reads it with a package that
# [lists no TensorFlow after
# 2.14](https://github.com/aws/sagemaker-tensorflow-extensions#requirements). The learning rate
# rises over the first `warmup-steps` ([lesson 01](01_data_parallelism.ipynb)).

# %%
from sagemaker.tensorflow import TensorFlow

from workshop.launch.horovod import horovod_status

place = f"{data}/{pictures.name}"
from_s3 = {  # channel: folder
    "training": TrainingInput(f"{place}/train", input_mode="FastFile"),
    "test": TrainingInput(f"{place}/test", input_mode="FastFile"),
}
trainer = TensorFlow(
    entry_point="train_tf_fit.py",
    framework_version="2.12.0",
    py_version="py310",
    instance_type=instance_type,
    instance_count=2,
    distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    hyperparameters={
        "library": "horovod",
        "epochs": epochs,
        "learning-rate": learning_rate,
        "warmup-steps": 20,
        "threads-per-rank": 1,
    },
    **session.job_settings("pictures") | {"max_run": max_run},
)

# %%
trained = None
if target == "aws" or horovod_status().available:  # AWS's container image has it
    trainer.fit(from_s3, wait=False)
    trained = workshop.follow(trainer)
else:
    print(f"No job: {horovod_status()}")

# %% [markdown]
# <!-- SDK v3: pictures -->

# %%
if trained:
    ranks, reached = trained.table("weights"), trained.metrics["test_accuracy"]
    steps = trained.table("epoch")["step"].max()
    print(f"{len(ranks)} ranks, {ranks['weights_sha256'].nunique()} set of weights")
    print(f"Test accuracy after {steps} steps: {reached:.1%}; guessing gets 10 %.")
    if not cifar10 and reached < apart:  # the same pictures
        print(
            f"The linear classifier got {apart:.1%}, after a fit to the end; the network has made"
        )
        print(f"{steps} steps: try more epochs.")

# %% jupyter={"source_hidden": true} tags=["results"]
if trained:
    assert ranks["weights_sha256"].nunique() == 1, "The ranks did not train one model."
    workshop.save_results(picture_ranks=len(ranks), picture_accuracy=reached)

# %% [markdown]
# Other formats for many records in a file are WebDataset's tar files and Parquet.
#
# ## Exercises
#
# In [exercises/09](exercises/09_data.ipynb), each with a check:
#
# 1. *Bytes of a picture* (6 minutes, easy): read CIFAR-10's bytes in the correct order.
# 2. *Every file exactly once* (9 minutes, medium): which files a rank reads, whoever divides.
# 3. *Records of a file* (10 minutes, medium): read TFRecord, and notice a file that is cut off.
#
# ## Check yourself

# %% question=2 slideshow={"slide_type": "slide"}
workshop.quiz("09")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# - A step = compute + wait + exposed communication. With files of a few KB much of a step was
#   waiting for requests: put many records into one file, or fetch ahead with workers.
# - `SM_CHANNEL_NAME` names the folder of channel `name`. An address alone becomes `training`.
# - Divide the data once: by rank in the script, or by instance in the channel and then by
#   local_rank.
# - `instance_count=2` alone trains two models.
# - Stream what doesn't fit into memory, and shuffle its records, not only its files. To resume
#   within an epoch, skip the batches that were seen, of the same seed's order.
# - Wrong data raises no error. Look at the inputs after the last step that changes them.

# %% [markdown]
# ## Clean up
#
# Data, models and logs stay until you delete them: [lesson 99](99_clean_up.ipynb).
#
# ## Next
#
# [10 · Interruptions and failures](10_interruptions_and_failures.ipynb): resume a training exactly
# where it was, and find out what broke from its log.

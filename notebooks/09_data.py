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
# # 09 · Data: which files an instance gets, and in which form
#
# **After this lesson you can**
#
# - name the environment variable that a channel becomes;
# - choose between `FullyReplicated` and `ShardedByS3Key`, and divide the data exactly once;
# - say what streaming TFRecord files saves, and count their records without TensorFlow;
# - notice scrambled pixels, which no error message reports;
# - train from TFRecord files through a FastFile channel.
#
# **Before:** [lesson 01](01_data_parallelism.ipynb): ranks and shards.
# [Lesson 05](05_horovod_on_training_instances.ipynb): a Horovod job.
#
# **Time:** 30 minutes, and 15 for the exercises. About one minute of it is computing.
#
# **Where it runs:** this machine (`target = "local"`) or AWS (`target = "aws"`), the same cells.
# Nobody has run this lesson on AWS yet.
#
# **Cost on AWS:** about 0.07 USD: two jobs on two `ml.c5.xlarge`, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27), at most 0.16 USD. Locally it is free.

# %% [markdown]
# ## Set up
#
# - `cifar10`: the folder that holds `cifar-10-binary.tar.gz`, as a path or a URL (without the
#   file's name). CIFAR-10 is a public data set of small colour pictures. If the parameter is empty,
#   the lesson needs no download: it cuts pictures of the same size from two photographs that come
#   with scikit-learn. Their ten labels say from which part of which photograph a picture was cut.
# - `instance_type`: the instance type of both jobs. `epochs`, `learning_rate`: settings of the
#   training, the second job.
# - `max_run`: seconds after which SageMaker ends a job.

# %% tags=["parameters"]
target = "local"
seat = "me"
cifar10 = ""
instance_type = "ml.c5.xlarge"
epochs = 4
learning_rate = 0.05
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

session = workshop.session(target=target, seat=seat)
s3 = session.client("s3")
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data = f"s3://{session.bucket}/data"
data_prep.upload(digits, f"{data}/digits", client=s3)
cost = workshop.cost(instance_type, instance_count=2, seconds=300, max_run=max_run)
print(f"Two jobs: about {2 * cost.usd:.2f} USD on AWS, at most {2 * cost.most_usd:.2f} USD.")

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(usd=2 * cost.usd, usd_at_most=2 * cost.most_usd)

# %% [markdown]
# ## A channel is a folder with a name
#
# A **channel** is one input of a job: some objects in S3, and a name that you choose. On each
# instance SageMaker puts the objects into a folder. The variable `SM_CHANNEL_` plus the name in
# capitals tells the script where that folder is. `SM_CHANNELS` lists the names.
#
# So `fit()` and the script have to use the same name. The data sets of this kit have these folders
# and files. (TFRecord is a file format, explained below.)
#
# | data set | pixels | folders | files |
# |---|---|---|---|
# | `data_prep.digits` | 8 x 8 | `training`, `test` | `.npz`, or TFRecord |
# | `data_prep.mnist` | 28 x 28 | `training`, `test` | `.npz` |
# | `data_prep.cifar10` | 32 x 32 x 3 | `train`, `validation`, `test` | TFRecord |
#
# All training scripts of this kit read `SM_CHANNEL_TRAINING` and `SM_CHANNEL_TEST`. The folder's
# name doesn't matter, the channel's does: the last job of this lesson gives the folder `train` to
# the channel `training`. A channel called `train` would set `SM_CHANNEL_TRAIN`, which no training
# script here reads.
#
# You can also pass a bare address, without a name: `fit("s3://bucket/folder")`. **Predict** what
# its channel is called. The cell after the guess builds the request and starts no job.

# %%
guess = workshop.guess(
    name=("What is the channel called if you pass only an address?", ["training", "train", "data"])
)

# %%
from sagemaker.pytorch import PyTorch

from workshop.jobs.job_preview import preview_session

region = session.boto_session.region_name
preview = preview_session(target, seat, region, session.outputs)  # keeps requests, sends none
bare = PyTorch(
    entry_point="look_at_channels.py",
    framework_version="2.2.0",
    py_version="py310",
    instance_type=instance_type,
    instance_count=1,
    **preview.job_settings("bare", source_dir=workshop.DEMOS),
)
bare.fit(f"{data}/digits/training", wait=False)
(made,) = preview.requests[-1]["InputDataConfig"]
print(made["ChannelName"], made["DataSource"]["S3DataSource"]["S3DataDistributionType"])
guess.compare(name=made["ChannelName"])

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(bare_channel=made["ChannelName"])

# %% [markdown]
# The printed line has the channel's name, and how its files are distributed, which comes next. With
# a bare address there is no channel for test data, and `SM_CHANNEL_TEST` isn't set. A script then
# has to stop, or to keep some of the training data for the test. If it tests on the training folder
# instead, it measures accuracy on the data that it trained on.
#
# ## Which files an instance gets
#
# In lesson 01 the ranks divided the data themselves. A channel can also do it, for whole instances,
# with its `distribution`:
#
# - `FullyReplicated`, the default: every instance gets every file;
# - `ShardedByS3Key`: every file goes to exactly one instance. With more instances than files some
#   get nothing, and you pay for them
#   ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html)).
#
# The job below has two instances and a channel of each kind. Its script only prints what it finds.
# The training images are in four files, the test images in one. **Predict, then run.**

# %%
guess = workshop.guess(
    sharded="How many training files does each instance get (ShardedByS3Key)?",
    whole="How many test files does each instance get (FullyReplicated)?",
    ranks=("Which world_size will SageMaker tell each process?", ["2", "1", "not told"]),
)

# %%
from sagemaker.inputs import TrainingInput

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

# %%
seen = result.table("channel").sort_values(["channel", "host"], ignore_index=True)
seen[["channel", "variable", "host", "files", "images", "world_size"]]

# %%
counts = seen.assign(number=seen["files"].map(len)).groupby("channel")["number"].max()
guess.compare(
    sharded=counts["training"], whole=counts["test"], ranks=str(seen["world_size"].iloc[0])
)

# %% jupyter={"source_hidden": true} tags=["figure"]
hosts = sorted(seen["host"].unique())
by_channel = seen.explode("files").groupby("channel")["files"].unique()
files = [(c, f) for c in ("training", "test") for f in sorted(by_channel[c])]
has = {(row.host, row.channel, f) for row in seen.itertuples() for f in row.files}
title = "Which instance got which file"
contents = [f"{h}: " + ", ".join(f"{c} {f}" for c, f in files if (h, c, f) in has) for h in hosts]
with plots.canvas(
    title, "file", "instance", size=(7, 2.3), alt=f"{title}. {'; '.join(contents)}."
) as axes:
    for x, (channel, name) in enumerate(files):
        for y, host in enumerate(hosts):
            there = (host, channel, name) in has
            look = {"color": plots.COLOURS[4]} if there else {"color": "white", "ec": "grey"}
            axes.barh(y, 0.9, left=x - 0.45, height=0.8, **look)
            axes.text(x, y, "has it" if there else "–", ha="center", va="center", fontsize=8)
    names = [f"{channel}\n{name.split('.')[0]}" for channel, name in files]
    axes.set_xticks(range(len(files)), names, fontsize=8)
    axes.set_yticks(range(len(hosts)), hosts)
    axes.invert_yaxis()
    axes.grid(visible=False)

# %% [markdown]
# Look at `world_size`. Each instance has a list of the hosts (`SM_HOSTS`), but nothing gave these
# two processes a rank: the estimator has `instance_count=2` and no `distribution` of its own. (That
# of a `TrainingInput` is something else; it only places files.) A training script that was started
# like this would train two models, and you would pay for both. **Instances don't make a training
# distributed. The launcher and the script do.**

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

# %% [markdown]
# ## Divide the data once
#
# The images have to be divided among the ranks, by the channel or by the script. That makes four
# combinations: neither divides, one of them, or both. For two instances with one rank each, the
# cell below counts how often each of the 1,437 training images is read in an epoch.
#
# **Predict:** what share of the images is never read if both the channel and the script divide?

# %%
guess = workshop.guess(never="Channel and script both divide: percent of the images never read?")


# %%
def reads(channel_divides: bool, script_divides: bool, ranks: int = 2) -> np.ndarray:
    """How often each image is read in an epoch, by all ranks together."""
    sizes = [len(np.load(path)["labels"]) for path in sorted((digits / "training").glob("*.npz"))]
    parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    times = np.zeros(sum(sizes), int)
    for rank in range(ranks):
        share = np.concatenate(parts[rank::ranks] if channel_divides else parts)
        times[share[rank::ranks] if script_divides else share] += 1
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

# %% jupyter={"source_hidden": true} tags=["figure"]
title = "If channel and script both divide, half of the images are never read"
description = "; ".join(
    f"{n}: {r['never']:.0f} % never, {r['once']:.0f} % once, {r['twice']:.0f} % twice"
    for n, r in read.iterrows()
)
with plots.canvas(
    title,
    "% of the training images, read by two instances with a rank each",
    size=(7, 2.6),
    alt=f"{title}. {description}.",
) as axes:
    left = np.zeros(len(read))
    for colour, hatch, name in ((6, "", "never"), (4, "", "once"), (1, "//", "twice")):
        look = {"color": plots.COLOURS[colour], "hatch": hatch, "edgecolor": "white"}
        axes.barh(list(read.index), read[name], left=left, label=name, **look)
        left += read[name]
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))

# %% jupyter={"source_hidden": true} tags=["results"]
assert read.loc["the script divides", "once"] == 100, "The script must read each image once."
workshop.save_results(read=read.T.to_dict())

# %% [markdown]
# None of the four raises an error.
#
# - **Nobody divides**: every rank trains on everything, so an epoch on N ranks costs N times as
#   much. It also happens in scripts that seem to divide. In [a published
#   one](https://towardsdatascience.com/smart-distributed-training-on-amazon-sagemaker-with-smd-part-2-c833e7139b5f)
#   the call was `get_dataset(rank=dist.local_rank())` (`dist` was SMDDP's module), and
#   `get_dataset` never used its `rank`. Nor would local_rank have been the right number there. All
#   files were on every instance, and local_rank starts from 0 on each: ranks with the same
#   local_rank would have read the same images, and some images nobody.
# - **Both divide**: an epoch looks fast, because half of the images are never read.
#
# A channel divides among *instances*, never among the ranks of one. So if an instance runs several
# ranks, the script still has to divide the data, and which rank it needs depends on the channel:
#
# - `FullyReplicated`: divide all the data by rank, among `world_size` ranks;
# - `ShardedByS3Key`: divide what is in the instance's own files by local_rank, among its
#   `local_size` ranks.
#
# The scripts of this kit divide by rank, so their channels are `FullyReplicated`.
# `ShardedByS3Key` saves disk space and download time with large data. But it divides files, not
# images. If the files have different sizes, so do the parts: one rank runs out of batches first,
# and the others wait for it in the all-reduce. The parts stay the same for the whole job: shuffling
# mixes the images of one instance, never those of two. So if each class is in one file, no instance
# ever sees all classes.
#
# ## Many small files, or few large ones
#
# Each object in S3 needs a request of its own. So 100 small pictures cost 100 requests, and one
# file that holds them all costs one. The lesson stores the same 100 pictures both ways and fetches
# them three times: the small files one after the other, as a loop over files does, and ten at a
# time, as SageMaker and boto3's file transfers may. In a local run, S3 is a program on this
# machine: its requests cross no network, and each takes less time than on AWS. **Predict, then
# run.**

# %%
guess = workshop.guess(
    factor="One file: how many times faster than 100 files, one after the other?",
    pool="And than 100 files, ten at a time?",
)

# %%
if cifar10:
    pictures = data_prep.cifar10.prepare(workshop.DATA / "cifar10", cifar10, quiet=True)
else:
    pictures = data_prep.cifar10.prepare_sample(workshop.DATA / "cifar10-sample", quiet=True)
data_prep.upload(pictures, f"{data}/{pictures.name}", client=s3)

some = data_prep.cifar10.sample_bytes()[: 100 * 3073]  # 1 byte of label, 3,072 of pixels
records = [some[start : start + 3073] for start in range(0, len(some), 3073)]
large = [f"data/one-large/part-{0:05d}.bin"]
small = [f"data/many-small/{number:05d}.bin" for number in range(len(records))]
for key, body in zip(large + small, [some, *records], strict=True):
    s3.put_object(Bucket=session.bucket, Key=key, Body=body)


# %%
def get(key: str) -> bytes:
    return s3.get_object(Bucket=session.bucket, Key=key)["Body"].read()


def seconds_to_fetch(keys: list[str], at_a_time: int) -> float:
    with ThreadPoolExecutor(at_a_time) as pool:
        began = time.perf_counter()
        list(pool.map(get, keys))
        return time.perf_counter() - began


ways = {"100 files": (small, 1), "100 files, ten at a time": (small, 10), "1 file": (large, 1)}
timed = {name: [seconds_to_fetch(*way) for _ in range(3)] for name, way in ways.items()}
fetch = pd.DataFrame(timed).T.agg(["median", "min", "max"], axis=1)
factor, pool = (fetch["median"].iloc[:2] / fetch["median"].iloc[2]).round(1)
guess.compare(factor=factor, pool=pool)
fetch.round(4).rename_axis("seconds")

# %% jupyter={"source_hidden": true} tags=["figure"]
spread = fetch.rename(columns={"min": "lowest", "max": "highest"})[["lowest", "highest"]]
plots.bar_chart(
    1000 * fetch["median"],
    "The same 100 pictures from S3: what costs time is the requests",
    "milliseconds, median of 3 and range",
    "{:,.0f} ms",
    spread=1000 * spread,
)

# %% jupyter={"source_hidden": true} tags=["results"]
workshop.save_results(factor=factor, pool_factor=pool, fetch=fetch.T.to_dict())

# %% [markdown]
# The bytes are the same; the requests are not. Most of the time is the fixed cost of a request, so
# the first factor comes near the number of files. Several requests at a time hide a part of that
# cost; here the server is one program, which limits how much. Any file with many records saves
# requests, an `.npz` too. But an `.npz` array is loaded whole. **TFRecord** pays off when the data
# doesn't fit into memory: it is a file of many records, which *can* be read one by one from front
# to back. Its layout is simple. Each record has its length in 8 bytes, a checksum of the length in
# 4, the data, and a checksum of the data in 4. So you can count the records of a file without
# TensorFlow. (`"<Q"` stands for a whole number in 8 bytes, the lowest byte first.)


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
# Each record holds two fields and their names: a picture of 3,072 bytes, in the order row, column,
# colour, and a label.
#
# ## The order of the pixels
#
# CIFAR-10's own files store a picture as 3 x 32 x 32: first all red values, then green, then blue.
# A common mistake is to read them with `reshape([32, 32, 3])`. That gives the shape that the model
# expects, so there is no error. Here is a photograph, stored as CIFAR-10 stores it and read both
# ways:

# %%
from sklearn.datasets import load_sample_image

photograph = load_sample_image("flower.jpg")[100:356:8, 220:476:8]  # 32 x 32 pixels of it
stored = photograph.transpose(2, 0, 1).tobytes()  # as CIFAR-10's files have it
flat = np.frombuffer(stored, np.uint8)
correct = flat.reshape(3, 32, 32).transpose(1, 2, 0)
scrambled = flat.reshape(32, 32, 3)
plots.images(
    np.stack([correct, scrambled]),
    ["reshape(3, 32, 32)\n.transpose(1, 2, 0)", "reshape(32, 32, 3)"],
    "The same bytes, read in two ways",
)

# %% [markdown]
# Would you have noticed from the accuracy? The next cells train a simple linear classifier twice on
# 2,000 pictures cut from the two photographs (whatever `cifar10` is): once with correct pixels,
# once with scrambled ones. Each is tested on 500 other pictures that were read in the same way.
# **Predict, then run.**

# %%
guess = workshop.guess(
    accuracy=("With scrambled pixels, the accuracy is", ["lower", "the same", "higher"])
)

# %%
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
# The wrong `reshape` moves each value to another place, but in every picture to the same one. A
# linear model has a weight of its own for each input and doesn't know which pixels are neighbours:
# the weights just move along. So it can't tell a scrambled picture from a correct one. A
# convolution does use neighbours, but even if its accuracy is lower, you don't know what it should
# have been. **Look at your inputs**, after the last step that changes them.
#
# ## Train from TFRecord files
#
# Now train on the pictures' TFRecord files, on two instances with Horovod. The script,
# `train_tf_fit.py`, trains with Keras's `model.fit`. It loads `.npz` files whole, and streams
# TFRecord files: it reads a record when it needs it. Here is how it opens them, and how it makes
# batches of them. Each rank gets files of its own if their number is a multiple of the ranks, and
# otherwise every `world_size`-th record:

# %%
display(workshop.show_function("train/train_tf_fit.py", "stream"))
workshop.show_function("train/train_tf_fit.py", "batches")

# %% [markdown]
# Before the first batch only a buffer is filled, the 10,000 records among which it shuffles. What
# does that save? The next cell reads one epoch of batches both ways, each in a process of its own,
# without a model: as the script does, and from arrays of all pictures. It reads the files as often
# as 50,000 records need, so the folder may be small. **Predict, then run.**

# %%
guess = workshop.guess(
    memory="Reading whole: how many times the memory of streaming?",
    first="And how many times as long until the first batch?",
)

# %%
parts = sorted((pictures / "train").glob("*.tfrecord"))
times = max(1, 50_000 // (len(parts) * len(lengths)))
script = [sys.executable, workshop.DEMOS / "read_tfrecord.py", pictures / "train", "--times", times]
reading = {}
for how in ("stream", "whole"):
    (reading[how],) = processes.run_together([*script, "--how", how])
reading = pd.DataFrame(reading).T
shown = ["megabytes", "grown_megabytes", "seconds_to_first_batch", "seconds"]
ratio = reading.loc["whole", shown] / reading.loc["stream", shown]
guess.compare(memory=ratio["grown_megabytes"], first=ratio["seconds_to_first_batch"])
reading[shown].rename(
    columns={"megabytes": "MB of files", "grown_megabytes": "MB of memory, at most"}
)

# %% jupyter={"source_hidden": true} tags=["results"]
assert ratio["grown_megabytes"] > 2, f"Streaming took as much memory as the whole: {ratio}"
workshop.save_results(streamed=ratio[shown].to_dict())

# %% [markdown]
# Streaming needs memory for the buffer, however large the files are; reading whole needs several
# times their size. (The memory is what the process grew by after TensorFlow had started.)
#
# Each channel of the job has `input_mode="FastFile"`: SageMaker streams a file from S3 while the
# script reads it, so that training starts before everything has arrived. That works best with files
# that are read from front to back, and the job starts sooner with few files than with many
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AlgorithmSpecification.html)):
# TFRecord files, of many records each. (The emulator copies the files first; the script sees
# the same folder.)
#
# > **Pipe mode** is FastFile's predecessor. The script reads a stream from a named pipe, in
# > TensorFlow with `PipeModeDataset` from the package `sagemaker_tensorflow`. [Its
# > page](https://github.com/aws/sagemaker-tensorflow-extensions#requirements) lists no TensorFlow
# > after 2.14 (read in November 2026). With FastFile you read ordinary files and need none of it.
#
# `TrainingInput` is imported from `sagemaker.inputs`, as above. In older scripts you may find `from
# sagemaker.session import TrainingInput`. It works only because that module happens to import the
# class, so don't rely on it.

# %%
place = f"{data}/{pictures.name}"
from_s3 = {  # channel: folder
    "training": TrainingInput(f"{place}/train", input_mode="FastFile"),
    "test": TrainingInput(f"{place}/test", input_mode="FastFile"),
}

# %% [markdown]
# Before the job starts, here are four more mistakes that raise no error, and how to avoid them:
#
# - **One pattern for everything.** `*.tfrecord` over one folder mixes training and test files. The
#   accuracy is then measured on pictures that the model has trained on. Use two folders and two
#   channels. The cell below shows by how much the linear classifier from above gains.
# - **Files shuffled, records not.** Within a file the records keep their order: every picture meets
#   the same neighbours in every epoch. Shuffle the records, too, through a buffer larger than a
#   file, as `batches` does.
# - **`repeat()` with `steps_per_epoch=100`.** What Keras then calls an epoch is 100 batches, and no
#   pass through the data. A pass has as many steps as there are pictures, divided by the global
#   batch; the script computes that.
# - **A large global batch**, say 32,768, with the learning rate of a small one. Scale the rate,
#   raise it slowly at the start (here with `warmup-steps`), and check the accuracy: the scaling
#   rule has a limit, and such a batch may be beyond it ([lesson 01](01_data_parallelism.ipynb)).

# %%
pixels = planes / 255
classifier = RidgeClassifier(100).fit(pixels[:2000], labels[:2000])
apart = classifier.score(pixels[-500:], labels[-500:])
mixed = classifier.score(
    np.concatenate([pixels[:2000], pixels[-500:]]), labels[[*range(2000), *range(-500, 0)]]
)
print(f"accuracy on the 500 test pictures {apart:.1%}, on training and test pictures {mixed:.1%}")

# %%
import tensorflow as tf

names = list(map(str, parts))
number = {r: n for n, r in enumerate(tf.data.TFRecordDataset(names).as_numpy_iterator())}
files = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names), seed=3)
by_file = files.flat_map(tf.data.TFRecordDataset)
orders = {"files shuffled": by_file, "records, too": by_file.shuffle(2 * len(lengths), seed=1)}
for name, dataset in orders.items():
    orders[name] = [number[record] for record in dataset.take(6).as_numpy_iterator()]
    print(f"{name}: the first records are {orders[name]}")
passes = 100 * 64 / len(number)
print(f"100 steps of 64 are {passes:.1f} passes through {len(number):,} pictures")

# %% jupyter={"source_hidden": true} tags=["results"]
assert mixed > apart + 0.1, f"The mixture must flatter: {mixed} against {apart}"
workshop.save_results(accuracy_apart=apart, accuracy_mixed=mixed, passes=passes, orders=orders)

# %%
from sagemaker.tensorflow import TensorFlow

from workshop.launch.horovod import horovod_script

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
choice = horovod_script("train_tf_horovod.py", session)  # asks only: will the job have Horovod?
if choice.library == "tensorflow":  # yes
    trainer.fit(from_s3, wait=False)
    trained = workshop.follow(trainer)
else:  # Horovod is missing on this machine
    trained = None
    print(choice.explanation.splitlines()[0])

# %%
if trained:
    ranks = trained.table("weights")
    print(f"{len(ranks)} ranks, {ranks['weights_sha256'].nunique()} set of weights")
    print(f"test accuracy {trained.metrics['test_accuracy']:.1%}; guessing gives 10 %")

# %% jupyter={"source_hidden": true} tags=["results"]
if trained:
    assert ranks["weights_sha256"].nunique() == 1, "The ranks did not train one model."
    workshop.save_results(
        picture_ranks=len(ranks), picture_accuracy=trained.metrics["test_accuracy"]
    )

# %% [markdown]
# With an empty `cifar10`, the job's accuracy is about parts of two photographs, and says nothing
# about CIFAR-10 itself.
#
# > **Does the GPU wait for data?** Read an epoch of batches without a model, as above. If that
# > takes longer than an epoch of training computes, the data is late: read ahead (`prefetch` here,
# > `DataLoader(num_workers=...)` in PyTorch), or divide the reading among more files. Other formats
# > for many records in a file are WebDataset's tar files and Parquet; the same rules hold for them.
#
# ## Exercises
#
# In [exercises/09](exercises/09_data.ipynb), each with a check:
#
# 1. *Bytes of a picture* (6 minutes, easy): read CIFAR-10's bytes in the correct order.
# 2. *Every file exactly once* (9 minutes, medium): which files a rank reads, whoever divides.
#
# ## Check yourself

# %%
workshop.quiz("09")

# %% [markdown]
# ## Summary
#
# - A channel `name` becomes the variable `SM_CHANNEL_NAME`. A bare address becomes `training`.
# - Divide the data once: by rank in the script, or by instance in the channel and then by
#   local_rank in the script.
# - `instance_count=2` alone trains two models.
# - Requests cost time: put many records into one file, or fetch several at a time.
# - Stream what doesn't fit into memory, and shuffle its records, not only its files.
# - Wrong data raises no error. Look at the inputs after the last step that changes them.

# %% [markdown]
# ## Clean up
#
# Both jobs have ended. Data, models and logs stay until you delete them: [lesson
# 99](99_clean_up.ipynb).
#
# ## Next
#
# [10 · Interruptions and failures](10_interruptions_and_failures.ipynb): resume a training exactly
# where it was, and find out what broke from its log.

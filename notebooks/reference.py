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
# # Reference · Every way to train, to copy
#
# Most sections below have the same parts: what the way's script adds to the one-process script (to
# the DDP script for FSDP and SMDDP), the command that starts it on one machine, and then three
# equal ways to start it on SageMaker, with nothing hidden. You can write the job with version 2 of
# the SDK, with version 3, or as the plain boto3 request that both of them end in.
#
# **To use a way**, copy its file from `scripts/train` (for example
# [train_torch_ddp.py](../scripts/train/train_torch_ddp.py)), which needs no other file of this kit,
# and one cell of its section, with the cell that sets `image` if the section has one. The cells use
# names defined in *Set up*; put your own values there. The cells for version 3 use the names of
# [recipes.py](sdk_v3/recipes.py), which is shown there, too. Commands for one machine are meant for
# a shell in the folder `scripts/train`.
#
# **Contents:** which way; set up; DistributedDataParallel; Horovod; one process; DataParallel;
# FSDP; SMDDP; MultiWorkerMirroredStrategy; parameter servers; MirroredStrategy; Keras `fit`;
# additions to any job (a network of your own, several ranks on an instance, channels, an image of
# your own, deploying); a CloudFormation stack; what differs between the requests. JupyterLab lists
# the sections in its left side bar, the site beside the text.
#
# **Time:** 2 minutes to run. It is for looking things up; the lessons explain.
#
# **Where it runs:** anywhere. Four small jobs run, two with DDP and two with Horovod. For the other
# ways the requests are built and checked, but not sent.
#
# **Cost on AWS:** about 0.14 USD: four jobs of 2 `ml.c5.xlarge`, 5 minutes planned for each
# (us-east-1, price list of 2026-09-27). Locally nothing.

# %% [markdown]
# ## Which way
#
# | way | machines | images that have it | instances | its price or limit |
# |---|---|---|---|---|
# | one process | 1 | all | any | nothing: start here |
# | DDP | 1 or more | all of PyTorch | any | an all-reduce in every step |
# | DataParallel | 1 | all of PyTorch | GPUs | a copy of the model to every GPU in every step |
# | FSDP | 1 or more | PyTorch 2.6 or later (FSDP2) | GPUs | more traffic; each GPU stores less |
# | local SGD, DiLoCo | 2 or more | all of PyTorch | any | another result than DDP's |
# | SMDDP | 2 or more | up to PyTorch 2.5.1, TensorFlow 2.11.0 | p4d, p4de | large instances |
# | Horovod | 1 or more | up to TensorFlow 2.12.0, PyTorch 1.13.1 | any | old images |
# | MultiWorkerMirrored | 1 or more | TensorFlow 2.9 or later | any | Keras 2 for `fit` |
# | parameter server | 2 or more | TensorFlow, up to 2.19.0 with SDK v2 | any | stale gradients |
# | MirroredStrategy | 1 | all of TensorFlow 2 | GPUs | only one machine |
# | Keras `fit` | 1 or more | as Horovod or SMDDP | as for those | a callback in place of a loop |
#
# Not sure? With PyTorch take DDP; when the model doesn't fit on one GPU, FSDP. With TensorFlow take
# MirroredStrategy on one machine and MultiWorkerMirroredStrategy on several.
#
# Sources: the SDK's own lists (2.257.7), the Dockerfiles of
# [aws/deep-learning-containers](https://github.com/aws/deep-learning-containers), and for SMDDP
# [AWS's
# table](https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-data-parallel-support.html),
# all read on 2026-11-21. `workshop preflight` checks your own choice against them.

# %% [markdown]
# ## Set up

# %% tags=["parameters"]
target = "local"
seat = "me"
epochs = 2

# %%
import io
import json
import re
import tarfile
import time

import pandas as pd

import data_prep
import workshop
from workshop.jobs.job_preview import preview_session
from workshop.launch.horovod import horovod_status
from workshop.paths import SDK_V3

# %% [markdown]
# Replace these by your own: the role that jobs assume, a bucket, the folder with the scripts. Here
# they come from your stacks (lesson 00). The tags are how [lesson 99](99_clean_up.ipynb) finds what
# to delete.

# %%
session = workshop.session(target=target, seat=seat)
role, bucket, region = session.role, session.bucket, session.region
source_dir = str(workshop.TRAIN)

import sagemaker  # once a session is open, its log lines stay out of the notebook
from sagemaker import image_uris
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

tags = [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]
print(f"role = {role!r}\nbucket = {bucket!r}\nregion = {region!r}")

# %%
digits = data_prep.digits.prepare(workshop.DATA / "digits", quiet=True)
data_prep.upload(digits, f"s3://{bucket}/data/digits", client=session.client("s3"))
channels = {
    "training": f"s3://{bucket}/data/digits/training",
    "test": f"s3://{bucket}/data/digits/test",
}

# %% [markdown]
# The plain request spells out the same channels. It also needs what `fit()` does behind the scenes:
# the scripts, packed and uploaded.

# %%
input_data = [
    {
        "ChannelName": name,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": uri,
                "S3DataDistributionType": "FullyReplicated",
            }
        },
    }
    for name, uri in channels.items()
]
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w:gz") as archive:
    archive.add(source_dir, arcname=".")
session.client("s3").put_object(
    Bucket=bucket, Key="jobs/reference/sourcedir.tar.gz", Body=packed.getvalue()
)
source = f"s3://{bucket}/jobs/reference/sourcedir.tar.gz"

# %% [markdown]
# Both versions of the SDK, and boto3, end in the same call, `CreateTrainingJob`. This page keeps
# every request, and compares them at the end: boto3 hands each request to the function `keep`
# before it sends it. You don't need to copy that part.

# %%
requests = {}


def keep(params, **_):
    name = re.sub(r"-\d{4}-\d\d-.*", "", params["TrainingJobName"])  # without its time
    requests[name] = json.loads(json.dumps(params))


def started(name):
    """The name of a new job. The SDK appends the time in the same way."""
    return f"workshop-{seat}-{name}-boto3-{time.strftime('%Y-%m-%d-%H-%M-%S')}"


session.boto_session.events.register("before-parameter-build.sagemaker.CreateTrainingJob", keep)
sagemaker_session = sagemaker.Session(boto_session=session.boto_session, default_bucket=bucket)
client = session.client("sagemaker")

# %% [markdown]
# Version 3 can't be installed beside version 2. So its code is only shown here, and `make sdk-v3`
# executes it in an environment of its own
# ([what came out](sdk_v3/README.md)). FSDP's and MirroredStrategy's jobs, which want GPUs, are
# built there, checked by botocore (the library below boto3, which knows the form of each call), and
# not sent.
#
# <!-- SDK v3: recipes -->

# %% [markdown]
# ## DistributedDataParallel (PyTorch)
#
# The usual way for PyTorch: one process for each GPU, on one machine or many. Each rank joins the
# others (`init_process_group`) and takes its part of each batch (`DistributedSampler`), and
# `backward()` averages the gradients. [Lesson 01](01_data_parallelism.ipynb) explains it.
#
# Lines with `+` are what you add to a one-process script, lines with `-` what they replace.

# %%
workshop.show_diff("train/train_torch.py", "train/train_torch_ddp.py")

# %% [markdown]
# On one machine:
#
# ```
# torchrun --standalone --nproc_per_node 2 train_torch_ddp.py
# ```
#
# For gradient accumulation (less memory, and as many bytes sent) and bfloat16, replace the four
# lines of the loop from `loss = ...` to `optimizer.step()` by these, and add
# `from contextlib import nullcontext`:
#
# ```python
#             loss, k = torch.zeros((), device=device), 4  # micro-batches
#             optimizer.zero_grad()
#             micro_batches = zip(images.to(device).chunk(k), labels.to(device).chunk(k))
#             for number, (images, labels) in enumerate(micro_batches, 1):
#                 # Gradients add up in .grad; only the last backward() sends them to other ranks.
#                 with nullcontext() if number == k else parallel_model.no_sync():
#                     # Only forward() is in bfloat16: weights and gradients stay float32.
#                     with torch.autocast(device.type, torch.bfloat16):
#                         part = cross_entropy(parallel_model(images), labels) / k
#                     part.backward()
#                 loss += part.detach()
#             optimizer.step()
# ```
#
# For `torch.compile`, compile the wrapped model. DDP's buckets then cut the compiled graph, so that
# `backward()` still sends a bucket while it computes the next one:
#
# ```python
#     parallel_model = torch.compile(DistributedDataParallel(model))
# ```
#
# All ranks still hold the same weights, which differ by rounding from those of the uncompiled
# script. The first step of each shape of input waits for the compiler: compile long trainings.
#
# For a job that outlives an instance: `torchrun --nnodes 3:4 --max-restarts 5`, and checkpoints on
# a disk that all see. When one of four instances is lost, torchrun starts three ranks, and four
# again when another comes. Set `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`: torchrun 2.13 keeps its
# store over a restart, and new ranks connect to the addresses of dead ones
# ([pytorch#135712](https://github.com/pytorch/pytorch/issues/135712)). Choose as `--rdzv-endpoint`
# a machine that stays. The script keeps its global batch, a multiple of both numbers.
# [lose_an_instance.py](../scripts/demos/lose_an_instance.py) does all that on one machine.
#
# What uneven data does to DDP, and what `join` does about it, is in
# [uneven_data_torch.py](../scripts/demos/uneven_data_torch.py). For SLURM, Kubernetes, Ray and ssh
# there are files in `scripts/launch`, for example [slurm.sbatch](../scripts/launch/slurm.sbatch).
#
# On SageMaker, `torch_distributed` starts torchrun on each instance. Version 2 allows it only on
# instances with GPUs or Trainium, unless you name the image. So this cell names it.

# %%
image = image_uris.retrieve(
    "pytorch",
    region,
    version="2.2.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = PyTorch(
    entry_point="train_torch_ddp.py",
    source_dir=source_dir,
    distribution={"torch_distributed": {"enabled": True}},
    hyperparameters={"epochs": epochs},
    image_uri=image,
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-ddp",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
v2_ddp = workshop.follow(estimator)

# %% [markdown]
# `metrics: none`: these cells pass no `metric_definitions`, so SageMaker looks for no metric. The
# numbers are in the log: `v2_ddp.table("epoch")`. Lesson 00 passes `metric_definitions`.

# %%
request = {
    "TrainingJobName": started("ddp"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_torch_ddp.py",
        "sagemaker_submit_directory": source,
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_instance_type": "ml.c5.xlarge",
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %%
boto3_ddp = workshop.follow(request["TrainingJobName"], session)

# %% [markdown]
# **Trap.** With version 3, `train(wait=True)` polls the job with the shell's credentials, not with
# those of the session that you passed. (More regressions of this kind are listed in
# [#5765](https://github.com/aws/sagemaker-python-sdk/issues/5765), open on 2026-11-22.) So the code
# here has `wait=False`; wait with boto3. Also, all of version 3's calls in a process share one
# client. Before [#6120](https://github.com/aws/sagemaker-python-sdk/pull/6120) that client ignored
# your session.

# %% [markdown]
# <!-- SDK v3: ddp -->

# %% [markdown]
# The SDK and the plain request described the same job. Did the two jobs train the same model? Every
# rank printed a hash of its weights at the end. One row means that all ranks of a job printed the
# same hash; if the columns are equal too, the two jobs trained the same model.

# %%
hashes = {
    name: sorted(set(job.table("weights")["weights_sha256"]))
    for name, job in {"v2": v2_ddp, "boto3": boto3_ddp}.items()
}
pd.DataFrame({name: [digest[:16] + "…" for digest in digests] for name, digests in hashes.items()})

# %% tags=["results"] jupyter={"source_hidden": true}
ddp_ranks = [len(job.table("weights")) for job in (v2_ddp, boto3_ddp)]
assert ddp_ranks == [2, 2], f"{ddp_ranks} ranks; expected two in each job."
assert len(hashes["v2"]) == 1, "The ranks ended with different weights."
assert hashes["v2"] == hashes["boto3"], "The requests of v2 and boto3 trained different models."
workshop.save_results(ddp=hashes, ddp_ranks=ddp_ranks)

# %% [markdown]
# If Horovod is missing on this machine (`make doctor` says so), the next section's requests are
# built but not sent.

# %%
keeper = preview_session(target, seat, region, session.outputs)
keeper.boto_session.events.register("before-parameter-build.sagemaker.CreateTrainingJob", keep)
modules = {"Modules": {"TelemetryOptOut": True}}  # no telemetry of jobs that are not sent
config = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": modules}}
keeper.sagemaker_session.sagemaker_config = config
sends_horovod = horovod_status().available or target == "aws"
if not sends_horovod:
    sagemaker_session, client = keeper.sagemaker_session, keeper.client("sagemaker")

# %% [markdown]
# ## Horovod (TensorFlow)
#
# One process for each GPU, started by mpirun. `DistributedGradientTape` averages the gradients, and
# rank 0 broadcasts its weights before the first step. Explained in lessons
# [04](04_horovod_on_the_notebook.ipynb) and [05](05_horovod_on_training_instances.ipynb).
#
# For PyTorch `horovod.torch` has the same functions. But the last release, 0.28.1 (2023), doesn't
# build with PyTorch 2.1 or later without a patch
# ([#3996](https://github.com/horovod/horovod/issues/3996),
# [#4014](https://github.com/horovod/horovod/issues/4014)): with PyTorch take DDP.

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_horovod.py")

# %% [markdown]
# On one machine:
#
# ```
# mpirun -np 2 python train_tf_horovod.py
# ```

# %%
image = image_uris.retrieve(
    "tensorflow",
    region,
    version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = TensorFlow(
    entry_point="train_tf_horovod.py",
    source_dir=source_dir,
    distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    hyperparameters={"epochs": epochs},
    framework_version="2.12.0",
    py_version="py310",
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-horovod",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
if sends_horovod:
    v2_horovod = workshop.follow(estimator)

# %%
request = {
    "TrainingJobName": started("horovod"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_tf_horovod.py",
        "sagemaker_submit_directory": source,
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "1",
        "sagemaker_mpi_custom_mpi_options": "",
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %%
if sends_horovod:
    boto3_horovod = workshop.follow(request["TrainingJobName"], session)

# %% [markdown]
# **Trap.** In version 3, `process_count_per_node` of `MPI` is not a number per node. Version 3
# starts ranks with a program of its own, a *driver*, which passes that number to `mpirun -np` as it
# is (`mpi_driver.py` of 3.27.0): with 1 on two instances a single rank starts, without any error.
# So the code gives the number of all ranks, and `--map-by ppr:1:node` puts one on each instance.
# The driver also needs `sshd` in the image; AWS's images have it.

# %% [markdown]
# <!-- SDK v3: horovod -->

# %%
horovod_hashes = {}
if sends_horovod:
    jobs = {"v2": v2_horovod, "boto3": boto3_horovod}
    for name, job in jobs.items():
        horovod_hashes[name] = sorted(set(job.table("weights")["weights_sha256"]))
horovod_hashes

# %% tags=["results"] jupyter={"source_hidden": true}
if sends_horovod:
    horovod_ranks = [len(job.table("weights")) for job in jobs.values()]
    assert horovod_ranks == [2, 2], f"{horovod_ranks} ranks; expected two in each job."
    assert len(horovod_hashes["v2"]) == 1, "The ranks ended with different weights."
    assert horovod_hashes["v2"] == horovod_hashes["boto3"], "v2 and boto3 trained different models."
workshop.save_results(horovod=horovod_hashes)

# %% [markdown]
# ## From here on nothing is sent
#
# The remaining cells have the same form. But the next cell replaces the session by one that stops
# each request after the SDK has built it and botocore has checked it. To send the requests, leave
# out the next cell.

# %%
sagemaker_session, client = keeper.sagemaker_session, keeper.client("sagemaker")

# %% [markdown]
# ## One process (PyTorch)
#
# The script to begin with. Most other ways are shown by what they change in it. For TensorFlow it
# is [train_tf.py](../scripts/train/train_tf.py), with `TensorFlow(framework_version="2.18.0",
# py_version="py310", ...)`.

# %% [markdown]
# On one machine:
#
# ```
# python train_torch.py
# ```

# %%
image = image_uris.retrieve(
    "pytorch",
    region,
    version="2.2.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = PyTorch(
    entry_point="train_torch.py",
    source_dir=source_dir,
    hyperparameters={"epochs": epochs},
    framework_version="2.2.0",
    py_version="py310",
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=1,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-one-process",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("one-process"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_torch.py",
        "sagemaker_submit_directory": source,
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# <!-- SDK v3: one_process -->

# %% [markdown]
# ## DataParallel (PyTorch): a warning
#
# `model = nn.DataParallel(model)` is the shortest change of `train_torch.py`, and the wrong choice:
# a single Python process feeds all GPUs, the model is copied to every GPU in every step, and a
# second machine can't help. PyTorch itself recommends DDP, on one machine too.
# [Lesson 02](02_collectives.ipynb) measures its steps with threads.

# %% [markdown]
# ## FSDP (PyTorch)
#
# For a model that doesn't fit on one GPU: weights, gradients and momentum are divided among the
# ranks. The script uses FSDP2 (`fully_shard`, public since PyTorch 2.6); the older
# `FullyShardedDataParallel` is in earlier versions, too. It is started like DDP, and the diff below
# is from DDP. Version 2 of the SDK knows PyTorch up to 2.8.0; for newer images set `image_uri`.

# %%
workshop.show_diff("train/train_torch_ddp.py", "train/train_torch_fsdp.py")

# %% [markdown]
# On one machine:
#
# ```
# torchrun --standalone --nproc_per_node 2 train_torch_fsdp.py --channels 256 --blocks 12
# ```

# %%
image = image_uris.retrieve(
    "pytorch",
    region,
    version="2.8.0",
    py_version="py312",
    instance_type="ml.g5.12xlarge",
    image_scope="training",
)

# %%
estimator = PyTorch(
    entry_point="train_torch_fsdp.py",
    source_dir=source_dir,
    distribution={"torch_distributed": {"enabled": True}},
    hyperparameters={"epochs": epochs, "channels": 256, "blocks": 12, "learning-rate": 0.01},
    framework_version="2.8.0",
    py_version="py312",
    role=role,
    instance_type="ml.g5.12xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-fsdp",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("fsdp"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_torch_fsdp.py",
        "sagemaker_submit_directory": source,
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_instance_type": "ml.g5.12xlarge",
        "epochs": str(epochs),
        "channels": "256",
        "blocks": "12",
        "learning-rate": "0.01",
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# <!-- SDK v3: fsdp -->

# %% [markdown]
# ## Local SGD and DiLoCo (PyTorch)
#
# For ranks whose links are slow: each rank takes `sync-every` steps of its own, and then all
# average their weights. The bytes are those of DDP divided by `sync-every`; the result is not
# DDP's, so compare the loss as well as the time. [Lesson 12](12_talk_less_often.ipynb) measures
# both. `--outer-learning-rate 0.7 --outer-momentum 0.9` makes it DiLoCo. The diff is from DDP.

# %%
workshop.show_diff("train/train_torch_ddp.py", "train/train_torch_local_sgd.py")

# %% [markdown]
# On one machine:
#
# ```
# torchrun --standalone --nproc_per_node 2 train_torch_local_sgd.py --sync-every 8
# ```

# %%
image = image_uris.retrieve(
    "pytorch",
    region,
    version="2.2.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = PyTorch(
    entry_point="train_torch_local_sgd.py",
    source_dir=source_dir,
    distribution={"torch_distributed": {"enabled": True}},
    hyperparameters={"epochs": epochs, "sync-every": 8},
    image_uri=image,
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-local-sgd",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("local-sgd"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_torch_local_sgd.py",
        "sagemaker_submit_directory": source,
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_instance_type": "ml.c5.xlarge",
        "epochs": str(epochs),
        "sync-every": "8",
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# <!-- SDK v3: local_sgd -->

# %% [markdown]
# ## SMDDP (PyTorch)
#
# AWS's own all-reduce, only on p4d and p4de, and only in images up to PyTorch 2.5.1. The script is
# that of DDP, and `--backend smddp` its backend; this is the function that reads the flag. On other
# instances DDP uses NCCL. [Lesson 07](07_smddp.ipynb) explains how it works. The library exists
# only on AWS.

# %%
workshop.show_function("train/train_torch_ddp.py", "init_distributed")

# %%
image = image_uris.retrieve(
    "pytorch",
    region,
    version="2.2.0",
    py_version="py310",
    instance_type="ml.p4d.24xlarge",
    image_scope="training",
)

# %%
estimator = PyTorch(
    entry_point="train_torch_ddp.py",
    source_dir=source_dir,
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
    hyperparameters={"epochs": epochs, "backend": "smddp"},
    framework_version="2.2.0",
    py_version="py310",
    role=role,
    instance_type="ml.p4d.24xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-smddp",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("smddp"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_torch_ddp.py",
        "sagemaker_submit_directory": source,
        "sagemaker_distributed_dataparallel_enabled": "true",
        "sagemaker_distributed_dataparallel_custom_mpi_options": "",
        "sagemaker_instance_type": "ml.p4d.24xlarge",
        "epochs": str(epochs),
        "backend": "smddp",
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# This job was not run, because only AWS's images have the library.
#
# **Version 3 has no launcher for SMDDP, so use version 2.** SMDDP's all-reduce needs the launcher
# of `smdistributed` (or `pytorchddp`), which runs `mpirun`; under `torchrun` DDP would use NCCL's
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-framework-estimator.html)).
# Version 3 has `Torchrun` and `MPI` only
# ([distributed.py](https://github.com/aws/sagemaker-python-sdk/blob/master/sagemaker-train/src/sagemaker/train/distributed.py)),
# and its `MPI` starts a plain `mpirun`, without `smddprun` and the variables for EFA that version
# 2's toolkit adds (both read on 2026-11-24).

# %% [markdown]
# ## MultiWorkerMirroredStrategy (TensorFlow)
#
# TensorFlow's own all-reduce. The same program runs on each machine, and `TF_CONFIG` tells it who
# the others are. [Lesson 05](05_horovod_on_training_instances.ipynb) compares it with Horovod.

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_mirrored.py")

# %% [markdown]
# On one machine:
#
# ```
# python ../launch/local_tf_cluster.py --workers 2 train_tf_mirrored.py
# ```

# %%
image = image_uris.retrieve(
    "tensorflow",
    region,
    version="2.14.1",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = TensorFlow(
    entry_point="train_tf_mirrored.py",
    source_dir=source_dir,
    distribution={"multi_worker_mirrored_strategy": {"enabled": True}},
    hyperparameters={"epochs": epochs},
    framework_version="2.14.1",
    py_version="py310",
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-multiworker",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("multiworker"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_tf_mirrored.py",
        "sagemaker_submit_directory": source,
        "sagemaker_multi_worker_mirrored_strategy_enabled": "true",
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# Version 3 has no option for it. So the command writes `TF_CONFIG` itself, as the toolkit in the
# image does for version 2. Two things to know about `command`: hyperparameters don't become flags,
# so write them into it; and its lines are joined into one, so end them with semicolons.

# %% [markdown]
# <!-- SDK v3: multiworker -->

# %% [markdown]
# ## Parameter servers (TensorFlow)
#
# Asynchronous: the first host coordinates, the others train, and a server on each host holds a part
# of the weights. No two runs are the same. [Lesson 03](03_parameter_servers.ipynb) explains why it
# is rarely the right choice.

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_ps.py")

# %% [markdown]
# On one machine:
#
# ```
# python ../launch/local_tf_cluster.py --workers 2 --ps 1 train_tf_ps.py
# ```

# %%
image = image_uris.retrieve(
    "tensorflow",
    region,
    version="2.14.1",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = TensorFlow(
    entry_point="train_tf_ps.py",
    source_dir=source_dir,
    distribution={"parameter_server": {"enabled": True}},
    hyperparameters={"epochs": epochs},
    framework_version="2.14.1",
    py_version="py310",
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=3,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-parameter-server",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("parameter-server"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_tf_ps.py",
        "sagemaker_submit_directory": source,
        "sagemaker_parameter_server_enabled": "true",
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 3, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# Version 3 has no option for it. So the command starts a server on each host (port 2223), and stops
# it when the script on that host has ended.

# %% [markdown]
# <!-- SDK v3: parameter_server -->

# %% [markdown]
# ## MirroredStrategy (TensorFlow)
#
# All GPUs of one machine, driven by one process: a copy of the model (a replica) on each, no ranks.
# `apply_gradients` *sums* over the devices, so the loss is divided by their number. The file is the
# one of MultiWorkerMirroredStrategy: without `TF_CONFIG` it takes this strategy.
#
# On one machine:
#
# ```
# python train_tf_mirrored.py
# ```

# %%
image = image_uris.retrieve(
    "tensorflow",
    region,
    version="2.14.1",
    py_version="py310",
    instance_type="ml.g5.12xlarge",
    image_scope="training",
)

# %%
estimator = TensorFlow(
    entry_point="train_tf_mirrored.py",
    source_dir=source_dir,
    hyperparameters={"epochs": epochs},
    framework_version="2.14.1",
    py_version="py310",
    role=role,
    instance_type="ml.g5.12xlarge",
    instance_count=1,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-mirrored",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("mirrored"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_tf_mirrored.py",
        "sagemaker_submit_directory": source,
        "epochs": str(epochs),
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# <!-- SDK v3: mirrored -->

# %% [markdown]
# ## Keras `fit`, with Horovod or SMDDP
#
# For training with `model.fit`: the model gets a `train_step` that averages gradients, and a
# callback prints and saves. The script serves both libraries; `--library smddp` needs p4d,
# TensorFlow 2.11.0 and `{"smdistributed": {"dataparallel": {"enabled": True}}}`. It reads TFRecord
# files, too.

# %%
workshop.show_diff("train/train_tf.py", "train/train_tf_fit.py")

# %% [markdown]
# On one machine:
#
# ```
# mpirun -np 2 python train_tf_fit.py
# ```

# %%
image = image_uris.retrieve(
    "tensorflow",
    region,
    version="2.12.0",
    py_version="py310",
    instance_type="ml.c5.xlarge",
    image_scope="training",
)

# %%
estimator = TensorFlow(
    entry_point="train_tf_fit.py",
    source_dir=source_dir,
    distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    hyperparameters={"epochs": epochs, "library": "horovod"},
    framework_version="2.12.0",
    py_version="py310",
    role=role,
    instance_type="ml.c5.xlarge",
    instance_count=2,
    volume_size=30,
    max_run=1800,
    output_path=f"s3://{bucket}/jobs",
    code_location=f"s3://{bucket}/jobs",
    base_job_name=f"workshop-{seat}-fit",
    disable_profiler=True,
    debugger_hook_config=False,
    tags=tags,
    sagemaker_session=sagemaker_session,
)
estimator.fit(channels, wait=False)

# %%
request = {
    "TrainingJobName": started("fit"),
    "RoleArn": role,
    "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
    "HyperParameters": {
        "sagemaker_program": "train_tf_fit.py",
        "sagemaker_submit_directory": source,
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "1",
        "sagemaker_mpi_custom_mpi_options": "",
        "epochs": str(epochs),
        "library": "horovod",
    },
    "InputDataConfig": input_data,
    "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/jobs"},
    "ResourceConfig": {"InstanceType": "ml.c5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 1800},
    "Tags": tags,
}
answer = client.create_training_job(**request)

# %% [markdown]
# <!-- SDK v3: fit -->

# %% [markdown]
# ## Additions to any job
#
# Each cell below adds one thing to a job of any way, and shows what it adds to the request. These
# jobs aren't sent either. What they share:

# %%
common = {
    "source_dir": source_dir,
    "role": role,
    "volume_size": 30,
    "max_run": 1800,
    "output_path": f"s3://{bucket}/jobs",
    "code_location": f"s3://{bucket}/jobs",
    "disable_profiler": True,
    "debugger_hook_config": False,
    "tags": tags,
    "sagemaker_session": sagemaker_session,
}
ddp = common | {
    "entry_point": "train_torch_ddp.py",
    "distribution": {"torch_distributed": {"enabled": True}},
    "framework_version": "2.2.0",
    "py_version": "py310",
    "instance_type": "ml.g5.12xlarge",
    "instance_count": 2,
}

# %% [markdown]
# **A network of your own.** The ids are those of your VPC; for several instances take subnets of
# one availability zone, and a security group that lets its members talk to each other. [Lesson
# 06](06_vpc_colocation.ipynb) makes both.

# %%
network = {"subnets": ["subnet-0123456789abcdef0"], "security_group_ids": ["sg-0123456789abcdef0"]}
estimator = PyTorch(base_job_name=f"workshop-{seat}-network", **ddp, **network)
estimator.fit(channels, wait=False)
requests[f"workshop-{seat}-network"]["VpcConfig"]

# %% [markdown]
# **Several ranks on each instance, with options for mpirun.** As many as the instance has GPUs, 4
# here. `-x` hands a variable to all ranks.

# %%
options = {"processes_per_host": 4, "custom_mpi_options": "-x NCCL_DEBUG=INFO"}
job = ddp | {"entry_point": "train_tf_horovod.py", "framework_version": "2.12.0"}
job |= {"distribution": {"mpi": {"enabled": True, **options}}}
estimator = TensorFlow(base_job_name=f"workshop-{seat}-ranks", **job)
estimator.fit(channels, wait=False)
sent = requests[f"workshop-{seat}-ranks"]["HyperParameters"]
{name: value for name, value in sent.items() if "_mpi_" in name}

# %% [markdown]
# **Channels.** `ShardedByS3Key` gives each instance a part of the files, and then the script must
# not divide them again; `FastFile` streams a file from S3 when the script opens it. [Lesson
# 09](09_data.ipynb) measures both.

# %%
from sagemaker.inputs import TrainingInput

training = TrainingInput(channels["training"], distribution="ShardedByS3Key", input_mode="FastFile")
estimator = PyTorch(base_job_name=f"workshop-{seat}-channels", **ddp)
estimator.fit({"training": training, "test": channels["test"]}, wait=False)
requests[f"workshop-{seat}-channels"]["InputDataConfig"][0]

# %% [markdown]
# **An image of your own.** Any estimator takes `image_uri`; `Estimator` needs nothing else about
# the framework. In the image must be Python, your framework, and the package `sagemaker-training`,
# which starts the script; for `mpi` also Open MPI and sshd. A recipe is in
# [cloudformation/image](../cloudformation/image/Dockerfile).

# %%
from sagemaker.estimator import Estimator

own_image = f"{role.split(':')[4]}.dkr.ecr.{region}.amazonaws.com/my-training:1"
job = {
    name: value for name, value in ddp.items() if name not in ("framework_version", "py_version")
}
job |= {"entry_point": "train_torch.py", "distribution": {}, "instance_count": 1}
estimator = Estimator(base_job_name=f"workshop-{seat}-image", image_uri=own_image, **job)
estimator.fit(channels, wait=False)
requests[f"workshop-{seat}-image"]["AlgorithmSpecification"]["TrainingImage"]

# %% tags=["results"] jupyter={"source_hidden": true}
added = {name: requests[f"workshop-{seat}-{name}"] for name in ("network", "ranks", "channels")}
workshop.save_results(
    vpc_config=added["network"]["VpcConfig"],
    ranks=added["ranks"]["HyperParameters"],
    channel=added["channels"]["InputDataConfig"][0],
    image=requests[f"workshop-{seat}-image"]["AlgorithmSpecification"]["TrainingImage"],
)

# %% [markdown]
# **Deploy, or transform a file.** With the estimator of a TensorFlow job that has ended. An
# endpoint is billed until you delete it. [Lesson 08](08_serving.ipynb) runs these calls.
#
# ```python
# predictor = estimator.deploy(initial_instance_count=1, instance_type="ml.m5.large")
# predictor.predict({"instances": images.tolist()})
# predictor.delete_endpoint()  # and, when you don't need them again, the model and configuration
#
# transformer = estimator.transformer(
#     instance_count=1, instance_type="ml.m5.large", strategy="MultiRecord", assemble_with="Line"
# )
# transformer.transform(
#     f"s3://{bucket}/requests/", content_type="application/jsonlines", split_type="Line"
# )
# ```

# %% [markdown]
# ## A CloudFormation stack, with boto3
#
# `workshop.deploy` makes your bucket and roles from the templates in
# [cloudformation/](../cloudformation/storage.yaml). With boto3 alone it is three calls: create the
# stack, wait until it is complete, read its outputs. If it fails, look at
# `describe_stack_events`: the first `CREATE_FAILED` has the reason. With roles in the template add
# `Capabilities=["CAPABILITY_NAMED_IAM"]`. On AWS a seat's role can't create stacks: there this cell
# does nothing, and is for whoever administers the account.

# %%
template = """
Resources:
  Bucket:
    Type: AWS::S3::Bucket
Outputs:
  BucketName:
    Value: !Ref Bucket
"""
stack, outputs = f"workshop-{seat}-example", {}
if target == "local":
    cloudformation = session.client("cloudformation")
    cloudformation.create_stack(StackName=stack, TemplateBody=template, Tags=tags)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=stack)
    (made,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in made["Outputs"]}
    cloudformation.delete_stack(StackName=stack)  # the bucket goes with it, if it is empty
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
outputs

# %% tags=["results"] jupyter={"source_hidden": true}
workshop.save_results(stack_outputs=outputs)

# %% [markdown]
# ## What differs between the three requests
#
# The comparison leaves out what is your own: names, seat, bucket, role and image. It also leaves
# out the quotes that version 2 puts around the values of hyperparameters; the image accepts both
# forms.


# %%
def values(request):
    """Each value of a request by its path; your own names are replaced."""
    text = json.dumps(request)
    placeholders = {"ROLE": request["RoleArn"], "NAME": request.get("TrainingJobName", "NAME")}
    placeholders["IMAGE"] = request["AlgorithmSpecification"]["TrainingImage"]
    placeholders["BUCKET"] = request["OutputDataConfig"]["S3OutputPath"].split("/")[2]
    for name, value in placeholders.items():
        text = text.replace(value, name)
    paths, todo = {}, [("", json.loads(text))]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{path}.{key}" if path else key, v) for key, v in value.items()]
        elif path == "InputDataConfig":
            todo += [(f"{path}.{channel['ChannelName']}", channel) for channel in value]
        elif path == "Tags":
            todo += [(f"{path}.{tag['Key']}", tag["Value"]) for tag in value]
        elif path not in ("TrainingJobName", "Tags.seat"):
            paths[path] = value.strip('"') if isinstance(value, str) else value
    return paths


# %%
def compare(first, second):
    """The paths that only the first has, only the second, and those whose values differ."""
    first, second = values(first), values(second)
    differ = {path for path in first.keys() & second.keys() if first[path] != second[path]}
    added, missing = first.keys() - second.keys(), second.keys() - first.keys()
    return [sorted(paths) for paths in (added, missing, differ)]


recorded = json.loads((SDK_V3 / "requests.json").read_text())
prefix = f"workshop-{seat}-"
v3 = {
    name.split()[1]: request
    for name, request in recorded["requests"].items()
    if name.startswith("reference ")
}
ways = [*v3, "smddp"]  # which version 3 does not have
v2 = {way: requests[prefix + way.replace("_", "-")] for way in ways}
plain = {way: requests[f"{prefix}{way.replace('_', '-')}-boto3"] for way in ways}
print(f"v3: sagemaker {recorded['sagemaker']}, recorded on {recorded['date']} by `make sdk-v3`")

# %% [markdown]
# **Version 2 and boto3.** Version 2 adds settings of logs, metrics and the profiler, the region and
# the job's own name (and for TensorFlow `model_dir`). The only value that differs is where the
# packed scripts are.

# %%
from_v2 = {way: compare(v2[way], plain[way]) for way in v2}
pd.set_option("display.max_colwidth", None)
rows = {way: map(", ".join, keys) for way, keys in from_v2.items()}
pd.DataFrame(rows, index=["only v2", "only boto3", "another value"]).T

# %% [markdown]
# **Version 3 and boto3.** Version 3 sends no `sagemaker_` hyperparameters, because it doesn't use
# the toolkit in the image that reads them. The scripts and their launchers ("drivers") arrive as
# channels, and a shell script is the container's command. What starts the ranks (torchrun, mpirun,
# a command) is inside the channel `sm_drivers`: so two jobs that train differently can have the
# same request. The table cuts each path to two parts: both requests have the channels training and
# test, but their fields differ.

# %%
from_v3 = {way: compare(request, plain[way]) for way, request in v3.items()}


def short(paths):
    """The first two parts of paths, each once."""
    return ", ".join(dict.fromkeys(".".join(path.split(".")[:2]) for path in paths))


rows = {way: map(short, keys) for way, keys in from_v3.items()}
pd.DataFrame(rows, index=["only v3", "only boto3", "another value"]).T

# %% tags=["results"] jupyter={"source_hidden": true}
for way in plain:
    added, missing, differ = from_v2[way]
    hidden = {"container_log_level", "job_name", "region", "model_dir"}
    hidden |= {"EnableSageMakerMetricsTimeSeries", "DisableProfiler"}
    extra = {path.split(".")[-1].removeprefix("sagemaker_") for path in added}
    assert extra <= hidden, f"{way}: version 2 sends more: {extra - hidden}"
    assert not missing, f"{way}: version 2 does not send {missing}"
    assert differ == ["HyperParameters.sagemaker_submit_directory"], f"{way}: {differ}"
for way, (_, missing, differ) in from_v3.items():
    fields = [path for path in missing if not path.startswith("HyperParameters.")]
    assert not fields and not differ, f"{way}: version 3 sends another {fields + differ}"
workshop.save_results(from_v2={way: from_v2[way] for way in from_v3}, from_v3=from_v3)

# %% [markdown]
# ## Traps of version 3
#
# - **Tuning.** The tuner of version 3 dropped the drivers from its jobs: each ran as one process on
#   one GPU ([#5610](https://github.com/aws/sagemaker-python-sdk/issues/5610), fixed by
#   [#5634](https://github.com/aws/sagemaker-python-sdk/pull/5634) in 2026-03). Look at
#   `world_size` in the first job's log.
# - **The migration guide.** Three of its imports don't exist in 3.27.0 (tried on 2026-11-22):
#   `sagemaker.mlops.processing`, `sagemaker.mlops.pipeline`, and `InferenceSpec` in
#   `sagemaker.serve.configs`. It also names `sagemaker.train.configs`, which warns that it has
#   moved to `sagemaker.core.training.configs`.
# - **STS.** `Session()` without `default_bucket` asks AWS's service STS for your account's number,
#   whatever `AWS_ENDPOINT_URL` says (`session_helper.py`; version 2 does the same). So pass the
#   bucket.
# - **Other accounts.** Since 3.13.0 jobs were sent with the shell's credentials, not the session's
#   ([#5986](https://github.com/aws/sagemaker-python-sdk/issues/5986)). That was fixed by
#   [#6107](https://github.com/aws/sagemaker-python-sdk/pull/6107) and #6120 in 2026-07. For a
#   second session in one process it was still open on 2026-11-22
#   ([#6273](https://github.com/aws/sagemaker-python-sdk/pull/6273)).
#
# ## Clean up
#
# The jobs have ended and cost nothing more. [Lesson 99](99_clean_up.ipynb) finds what they left
# behind by its tags.

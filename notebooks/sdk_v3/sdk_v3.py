# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: SDK v3
#     language: python
#     name: sdk-v3
# ---

# %% [markdown]
# # Appendix · Version 3 of the SageMaker SDK
#
# **After this lesson you can**
#
# - write a training job for version 3 (`ModelTrainer`), with torchrun or mpirun;
# - say what version 3 sends that version 2 does not;
# - say what version 3 has lost, and when version 2 ends.
#
# **Before:** [lesson 05](../05_horovod_on_training_instances.ipynb).
#
# **Time:** 8 minutes.
#
# **Where it runs:** where `AWS_ENDPOINT_URL` points: `make sdk-v3` starts the emulator for
# it. The two versions cannot share an environment, so this notebook has a kernel of its own.
#
# **Cost on AWS:** about 0.03 USD: one job on two `ml.c5.xlarge`, planned at 5 minutes (us-east-1,
# price list of 2026-09-27). Locally nothing.

# %% [markdown]
# ## Set up
#
# `epochs`: how often a job goes through the data. All else is in [recipes.py](recipes.py), which
# every lesson's code for version 3 uses: your stacks' bucket and role, AWS's images, what all jobs
# share.

# %% tags=["parameters"]
epochs = 5

# %%
import contextlib
import importlib.metadata
import os

import boto3
from botocore.exceptions import WaiterError
from sagemaker.core.training.configs import Compute, InputData, SourceCode, StoppingCondition
from sagemaker.train import ModelTrainer, distributed

from recipes import bucket, image, shared

version = importlib.metadata.version("sagemaker")
assert version.startswith("3."), "This notebook needs version 3: run it with `make sdk-v3`."
print(f"sagemaker {version}, jobs go to {os.environ.get('AWS_ENDPOINT_URL', 'AWS')}")

# %% [markdown]
# ## When, and why the course waits
#
# Version 3 became generally available on 2025-11-19. Version 2 has been in maintenance since
# 2026-07-06: it gets critical and security fixes until **2027-07-05**, and nothing after
# ([the lifecycle table](https://github.com/aws/sagemaker-python-sdk/pull/5979), read 2026-11-21).
#
# | | version 2 | version 3 |
# |---|---|---|
# | a job | `TensorFlow(...)`, `PyTorch(...)`, `.fit()` | `ModelTrainer(...)`, `.train()` |
# | torchrun | `{"torch_distributed": …}` | `Torchrun(process_count_per_node=n)` |
# | mpirun, Horovod | `{"mpi": {"processes_per_host": n}}` | `MPI(process_count_per_node=n)` |
# | SMDDP | `{"smdistributed": …}` | nothing |
# | parameter servers | `{"parameter_server": …}` | nothing |
# | MultiWorkerMirrored | `{"multi_worker_mirrored_strategy": …}` | nothing |
#
# Don't believe the table: ask the package which ways to distribute it has.

# %%
ways = sorted(way.__name__ for way in distributed.DistributedConfig.__subclasses__())
print(ways)
assert ways == ["MPI", "Torchrun"], "This version knows other ways: the table above is too old."

# %% [markdown]
# Parameter servers and MultiWorkerMirrored can be rebuilt by hand: a job may run any `command`,
# which then writes `TF_CONFIG` and starts the servers (lessons
# [03](../03_parameter_servers.ipynb) and [05](../05_horovod_on_training_instances.ipynb) show it).
# SMDDP can't: its all-reduce needs version 2's launcher, which sets up `mpirun` for it; under
# torchrun you would measure NCCL
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-framework-estimator.html),
# read 2026-11-24). Version 2 does all of it for you, so it is the one this course teaches.
#
# ## DDP on two instances
#
# The script is the one of lesson 01, unchanged. Where version 2 has one class for each framework,
# version 3 has `ModelTrainer`, and small classes for each part of the request. It chooses no image:
# the request names one. The emulator doesn't pull it.

# %%
ddp = ModelTrainer(
    source_code=SourceCode(source_dir="../../scripts/train", entry_script="train_torch_ddp.py"),
    distributed=distributed.Torchrun(process_count_per_node=1),
    training_image=image("pytorch", "2.2.0", "ml.c5.xlarge"),
    compute=Compute(instance_type="ml.c5.xlarge", instance_count=2),
    stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
    input_data_config=[
        InputData(channel_name=name, data_source=f"s3://{bucket}/data/digits/{name}")
        for name in ("training", "test")
    ],
    hyperparameters={"epochs": epochs},
    **shared("v3-ddp"),
)

# %% [markdown]
# `train()` uploads the script, sends the request and, with `wait=False`, returns. Waiting is left
# to boto3 here.


# %%
ddp.train(wait=False, logs=False)
name, client = ddp._latest_training_job.training_job_name, boto3.client("sagemaker")
with contextlib.suppress(WaiterError):  # it failed; the answer says why
    waiter = client.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 300})
ddp_job = client.describe_training_job(TrainingJobName=name)
print(name, ddp_job["TrainingJobStatus"], ddp_job.get("FailureReason", ""))
assert ddp_job["TrainingJobStatus"] == "Completed", "Its reason stands above."

# %% [markdown]
# ## What was sent
#
# With version 2, `sagemaker-training` in the image reads special hyperparameters and starts your
# script. Version 3 needs nothing in the image: it sends a shell script and drivers of its own as
# one channel, your code as another, and names its shell script as the container's command.

# %%
print("command: ", " ".join(ddp_job["AlgorithmSpecification"]["ContainerEntrypoint"]))
print("channels:", [channel["ChannelName"] for channel in ddp_job["InputDataConfig"]])
print("hyperparameters:", ddp_job["HyperParameters"])

# %%
channels = {channel["ChannelName"] for channel in ddp_job["InputDataConfig"]}
assert channels == {"code", "sm_drivers", "training", "test"}, (
    "Version 3 sends its drivers as a channel."
)
assert "sagemaker_program" not in ddp_job["HyperParameters"], "That is how version 2 does it."

# %% [markdown]
# ## Horovod, by mpirun
#
# For mpirun there is `MPI(process_count_per_node=n)`. What does its driver start on two
# instances of two processes each? It is in the package, so ask it. No job is needed.

# %%
from sagemaker.train.container_drivers.distributed_drivers import mpi_utils

os.environ.setdefault("SM_CURRENT_INSTANCE_TYPE", "ml.c5.xlarge")
started = mpi_utils.get_mpirun_command(2, ["algo-1:2", "algo-2:2"], 2, [], "train.py")
ranks = int(started[started.index("-np") + 1])
print(" ".join(started[:5]))
assert ranks == 2, "This version counts otherwise: the next paragraph is too old."

# %% [markdown]
# Two ranks, and there is room for four: version 2's toolkit multiplies by the number of hosts,
# this driver (`mpi_driver.py` passes `process_count_per_node` as it is) does not. The first host
# gets them all. So give the number of all ranks, and say how many go to an instance: `MPI(
# process_count_per_node=2, mpi_additional_options=["--map-by", "ppr:1:node"])`
# ([lesson 05](../05_horovod_on_training_instances.ipynb) has such jobs).
#
# The other jobs of the lessons and of the reference stand below their cells there. `make sdk-v3`
# runs them all: [what came out](results.md).
#
# ## Summary
#
# - Version 2 ends on 2027-07-05; version 3 is where development goes on.
# - Version 3 sends its own drivers with the job, and needs no toolkit in the image.
# - torchrun and mpirun have a class. Parameter servers, MultiWorkerMirrored and SMDDP have none.
# - Your scripts need not change: they read the same `SM_*` variables and arguments.
#
# ## Clean up
#
# The job has ended and costs nothing more. It has your seat's tags and name, so
# `workshop clean` deletes what it left, with all else of your seat.

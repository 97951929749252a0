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
# - write a training job for version 3 (`ModelTrainer`), with torchrun or with a command;
# - say what version 3 sends that version 2 does not;
# - say what version 3 has lost, and when version 2 ends.
#
# **Before:** [lesson 05](../05_horovod_on_training_instances.ipynb).
#
# **Time:** 15 minutes.
#
# **Where it runs:** where `AWS_ENDPOINT_URL` points: `make sdk-v3` starts the emulator for
# it. The two versions cannot share an environment, so this notebook has a kernel of its own.
#
# **Cost on AWS:** about 0.17 USD: five jobs, ten `ml.c5.xlarge` in all, planned at 5 minutes each
# (us-east-1, price list of 2026-09-27). Locally nothing.

# %% [markdown]
# ## Set up
#
# - `seat`: your seat. Its stacks and data are those of lesson 00.
# - `epochs`: how often a job goes through the data.

# %% tags=["parameters"]
seat = "me"
epochs = 5

# %%
import contextlib
import importlib.metadata
import json
import os
from pathlib import Path

import boto3
from botocore.exceptions import WaiterError
from sagemaker.core import image_uris
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.shapes import Tag
from sagemaker.train import ModelTrainer, configs, distributed

version = importlib.metadata.version("sagemaker")
assert version.startswith("3."), "This notebook needs version 3: run it with `make sdk-v3`."
print(f"sagemaker {version}, jobs go to {os.environ.get('AWS_ENDPOINT_URL', 'AWS')}")

# %% [markdown]
# The bucket and the role are outputs of your stacks, as in lesson 00.

# %%
cloudformation, outputs = boto3.client("cloudformation"), {}
for name in ("storage", "roles"):
    stack = cloudformation.describe_stacks(StackName=f"workshop-{seat}-{name}")["Stacks"][0]
    outputs |= {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
bucket, role = outputs["BucketName"], outputs["TrainingRoleArn"]

# %% [markdown]
# Version 3 chooses no image: the request names one. These are two of the lessons' images: PyTorch,
# and the last one of TensorFlow with Horovod. The emulator doesn't pull them.

# %%
images = {
    framework: image_uris.retrieve(
        framework,
        boto3.Session().region_name,
        version=number,
        py_version="py310",
        instance_type="ml.c5.xlarge",
        image_scope="training",
    )
    for framework, number in {"pytorch": "2.2.0", "tensorflow": "2.12.0"}.items()
}

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
# which then writes `TF_CONFIG` and starts the servers. SMDDP can't: its all-reduce needs version
# 2's launcher, which sets up `mpirun` for it; under torchrun you would measure NCCL
# ([AWS](https://docs.aws.amazon.com/sagemaker/latest/dg/data-parallel-framework-estimator.html),
# read 2026-11-24). Version 2 does all of it for you, so it is the one this course teaches.
#
# ## DDP on two instances
#
# The script is the one of lesson 01, unchanged. Where version 2 has one class for each framework,
# version 3 has `ModelTrainer`, and small classes for each part of the request.

# %%
scripts = str(Path("../../scripts/train").resolve())
assert Path(scripts, "train_torch_ddp.py").is_file(), "Run it where it lies: notebooks/sdk_v3."
common = {
    "sagemaker_session": Session(default_bucket=bucket),
    "role": role,
    "output_data_config": configs.OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
    "stopping_condition": configs.StoppingCondition(max_runtime_in_seconds=600),
    "tags": [Tag(key="workshop", value="data-parallel"), Tag(key="seat", value=seat)],
}

# %%
ddp = ModelTrainer(
    source_code=configs.SourceCode(source_dir=scripts, entry_script="train_torch_ddp.py"),
    distributed=distributed.Torchrun(process_count_per_node=1),
    training_image=images["pytorch"],
    compute=configs.Compute(instance_type="ml.c5.xlarge", instance_count=2),
    hyperparameters={"epochs": epochs},
    base_job_name=f"workshop-{seat}-v3-ddp",
    **common,
)

# %% [markdown]
# `train()` uploads the script, sends the request and, with `wait=False`, returns. Waiting is left
# to boto3 here.


# %%
def run(trainer):
    data = f"s3://{bucket}/data/digits"
    inputs = [
        configs.InputData(channel_name=name, data_source=f"{data}/{name}") for name in CHANNELS
    ]
    trainer.train(input_data_config=inputs, wait=False, logs=False)
    name = trainer._latest_training_job.training_job_name
    client = boto3.client("sagemaker")
    with contextlib.suppress(WaiterError):  # it failed; the answer says why
        waiter = client.get_waiter("training_job_completed_or_stopped")
        waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 300})
    answer = client.describe_training_job(TrainingJobName=name)
    print(name, answer["TrainingJobStatus"], answer.get("FailureReason", ""))
    return answer


CHANNELS = ("training", "test")
ddp_job = run(ddp)
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
assert channels >= {"code", "sm_drivers", *CHANNELS}, "Version 3 sends its drivers as a channel."
assert "sagemaker_program" not in ddp_job["HyperParameters"], "That is how version 2 does it."

# %% [markdown]
# And the log: the scripts print JSON lines, as in every lesson.


# %%
def records(job, event):
    logs, group = boto3.client("logs"), "/aws/sagemaker/TrainingJobs"
    where = {"logGroupName": group, "logStreamNamePrefix": job["TrainingJobName"] + "/"}
    parsed = []
    for stream in logs.describe_log_streams(**where)["logStreams"]:
        log_stream = {"logGroupName": group, "logStreamName": stream["logStreamName"]}
        events = logs.get_log_events(**log_stream, startFromHead=True)["events"]
        lines = [line["message"] for line in events if f'{{"event": "{event}"' in line["message"]]
        parsed += [json.loads(line[line.index("{") :]) for line in lines]
    return parsed


accuracy = records(ddp_job, "epoch")[-1]["test_accuracy"]
hashes = {record["weights_sha256"] for record in records(ddp_job, "weights")}
print(f"test accuracy {accuracy:.3f}, {len(records(ddp_job, 'weights'))} ranks")
assert len(hashes) == 1, "Two ranks ended with different weights."
assert accuracy > 0.8, "It did not learn: was the data of lesson 00 there?"

# %% [markdown]
# ## Horovod, by a command
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
# gets them all. The driver also wants `sshd` in the image, which the emulator's instances
# do not have. So here Horovod runs `mpirun` as a command, on one instance.

# %%
mpirun = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2"
horovod = ModelTrainer(
    source_code=configs.SourceCode(
        source_dir=scripts, command=f"{mpirun} python train_tf_horovod.py --epochs {epochs}"
    ),
    training_image=images["tensorflow"],
    compute=configs.Compute(instance_type="ml.c5.xlarge", instance_count=1),
    base_job_name=f"workshop-{seat}-v3-horovod",
    **common,
)
horovod_job = run(horovod)
assert horovod_job["TrainingJobStatus"] == "Completed", "Its reason stands above."

# %%
start, last = records(horovod_job, "start")[0], records(horovod_job, "epoch")[-1]
print(f"{start['world_size']} ranks, test accuracy {last['test_accuracy']:.3f}")
assert start["world_size"] == 2, "mpirun was to start two ranks that know of each other."
assert last["test_accuracy"] > 0.8, "It did not learn: was the data of lesson 00 there?"

# %% [markdown]
# ## The recipes of the reference
#
# [The reference](../reference.ipynb) shows each way to train for version 3, from
# [recipes.py](recipes.py). Three of them as jobs: torchrun, and the two whose key is missing, where
# the command writes `TF_CONFIG` and starts the servers.

# %%
import recipes

frameworks = {
    recipes.ddp: "pytorch",
    recipes.multiworker: "tensorflow",
    recipes.parameter_server: "tensorflow",
}
jobs = {}
for recipe, framework in frameworks.items():
    image = images[framework]
    trainer = recipe(role, bucket, image, str(recipes.SCRIPTS), common["sagemaker_session"])
    jobs[recipe.__name__] = run(trainer)

# %%
for name, job in jobs.items():
    assert job["TrainingJobStatus"] == "Completed", f"{name}: its reason stands above."
    (start,), weights = records(job, "start"), records(job, "weights")
    print(name, start["world_size"], "ranks,", weights[0]["weights_sha256"][:16])
    assert start["world_size"] == 2, f"{name}: its ranks do not know of each other."
    assert len({record["weights_sha256"] for record in weights}) == 1, f"{name}: several models."

# %% [markdown]
# ## Summary
#
# - Version 2 ends on 2027-07-05; version 3 is where development goes on.
# - Version 3 sends its own drivers with the job, and needs no toolkit in the image.
# - torchrun and mpirun have a class. Parameter servers, MultiWorkerMirrored and SMDDP have none.
# - Your scripts need not change: they read the same `SM_*` variables and arguments.
#
# ## Clean up
#
# The jobs have ended and cost nothing more. They have your seat's tags and names, so
# `workshop clean` deletes what they left, with all else of your seat.

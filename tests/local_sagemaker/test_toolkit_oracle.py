"""What a script sees here is what AWS's unmodified toolkit makes of the same request.

The input files are written as AWS documents them (docs.aws.amazon.com/sagemaker/latest/dg/
your-algorithms-training-algo-running-container.html), from DescribeTrainingJob's answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from endpoint_harness import BUCKET, estimator, start

HOSTS = ["algo-1", "algo-2"]
ORACLE = Path(__file__).parent / "oracle" / "toolkit_says.py"
MPI = {"mpi": {"enabled": True, "processes_per_host": 2, "custom_mpi_options": "-x FOO=bar"}}


@pytest.fixture(scope="module")
def job(endpoint):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in endpoint.env.items():
            patch.setenv(name, value)
        import sagemaker

        asked = {"epochs": 3, "learning-rate": 0.25, "name": "a b", "verbose": True}
        made = estimator(
            sagemaker.Session(default_bucket=BUCKET),
            "show.py",
            distribution=MPI,
            hyperparameters=asked,
        )
        return endpoint.wait(start(made), seconds=240)


@pytest.fixture(scope="module")
def toolkit(job, tmp_path_factory):
    """The toolkit's answers for the first host, from files made as AWS makes them."""
    told, base = job.description, tmp_path_factory.mktemp("opt") / "ml"
    kind = told["ResourceConfig"]["InstanceType"]
    group = {"instance_group_name": "homogeneousCluster", "instance_type": kind, "hosts": HOSTS}
    files = {
        "hyperparameters": told["HyperParameters"],
        "resourceconfig": {
            "current_host": "algo-1",
            "current_instance_type": kind,
            "current_group_name": "homogeneousCluster",
            "hosts": HOSTS,
            "instance_groups": [group],
            "network_interface_name": "eth0",
        },
        "inputdataconfig": {
            "training": {
                "TrainingInputMode": "File",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": "None",
            }
        },
    }
    (base / "input" / "config").mkdir(parents=True)
    for name, content in files.items():
        (base / "input" / "config" / f"{name}.json").write_text(json.dumps(content))
    env = {name: "local" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    env |= {"PATH": os.environ["PATH"], "TRAINING_JOB_NAME": job.name}
    # The image says which framework module the toolkit calls; the local endpoint has its own.
    env["SAGEMAKER_TRAINING_MODULE"] = "local_sagemaker.image.training:main"
    done = subprocess.run(
        [sys.executable, ORACLE, base], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_variable_is_the_toolkits(job, toolkit):
    lines = dict(line.split("=", 1) for line in job.log["algo-1"] if line.startswith("SM_"))
    assert len(toolkit["variables"]) > 30
    for name, value in toolkit["variables"].items():
        assert lines[name] == value, name


def test_the_arguments_are_the_toolkits(job, toolkit):
    seen = [json.loads(line) for line in job.lines("SEEN")]
    assert len(seen) == 4
    for one in seen:
        assert one["arguments"] == toolkit["arguments"]


def test_the_mpi_command_is_the_toolkits(job, toolkit):
    logged = [line for line in job.log["algo-1"] if line.startswith("mpirun --host")]
    # The log has the words of the command with spaces between them, unquoted.
    assert logged == [" ".join(toolkit["command"])]

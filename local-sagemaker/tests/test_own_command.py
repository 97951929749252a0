"""A job with a ContainerEntrypoint, as the sagemaker SDK 3 sends it: that command is what runs."""

import sys

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from emulator_harness import IMAGE, SCRIPTS, command_request, completed, ended, records, unpacked

from local_sagemaker.api.training import TrainingJobs
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.protocol.errors import AwsError

HARD = [" a ", "", '"b"', "é 漢", "$HOME `id`", "\\n", "--x=1", "{'c': 1}"]


@pytest.mark.namespaces
def test_the_command_runs_on_every_instance_with_its_own_opt_ml(emulator):
    config = "/opt/ml/input/config/resourceconfig.json"
    command = f"hostname; cat {config}; touch /opt/ml/model/$(hostname)"
    body = command_request("own-command", ["/bin/bash", "-c", command], 2)
    job = completed(ended(emulator, body))
    for host in ("algo-1", "algo-2"):
        assert host in job.log[host]
        assert any(f'"current_host": "{host}"' in line for line in job.log[host])
    model = unpacked(emulator, job.description["ModelArtifacts"]["S3ModelArtifacts"])
    assert set(model) == {"algo-1", "algo-2"}
    notes = [line for line in job.log["algo-1"] if "is not pulled" in line]
    assert len(notes) == 1 and IMAGE in notes[0]
    job = job.description["AlgorithmSpecification"]
    assert job["ContainerEntrypoint"] == ["/bin/bash"]


@pytest.mark.namespaces
def test_values_that_are_hard_for_a_shell_or_for_json_reach_the_script(emulator):
    hyperparameters = dict(zip("abcdefgh", HARD, strict=True))
    environment = {f"V{number}_ECHO": value for number, value in enumerate(HARD)}
    command = [sys.executable, str(SCRIPTS / "echo.py"), *environment]
    given = {"Environment": environment, "HyperParameters": hyperparameters}
    job = ended(emulator, command_request("echo-hard", command) | given)
    (record,) = records(job, "ECHO ")
    assert record == {"hyperparameters": hyperparameters, "environment": HARD}
    assert given.items() <= job.description.items()


@pytest.mark.namespaces
def test_a_command_that_is_not_there(emulator):
    job = ended(emulator, command_request("own-missing", ["/opt/no-such-program", "x"]))
    assert job.description["FailureReason"].endswith("exit code: 127")
    assert any("cannot be run: No such file" in line for line in job.log["algo-1"])


def test_without_namespaces_it_is_refused(tmp_path):
    jobs = TrainingJobs(tmp_path, LocalAws(1, Credentials("KEY", "s")), "processes", 1.0)
    with pytest.raises(AwsError, match="under /opt/ml"):
        jobs.create(command_request("own-refused", ["sh", "-c"]), "us-east-1")


def test_policies_are_not_simulated_and_clients_can_go_on(emulator):
    with pytest.raises(ClientError, match=r"\(AccessDenied\)"):
        emulator.client("iam").simulate_principal_policy(
            PolicySourceArn="arn:aws:iam::000000000000:role/a", ActionNames=["s3:GetObject"]
        )

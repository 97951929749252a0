"""Values that are hard for a shell or for JSON reach the script unchanged."""

from __future__ import annotations

import json
import sys

import pytest
from emulator_harness import SCRIPTS, request

HARD = [" a ", "", '"b"', "é 漢", "$HOME `id`", "\\n", "--x=1", "{'c': 1}"]


@pytest.mark.namespaces  # else /opt/ml is not at the path that the script reads
def test_what_a_job_is_given_reaches_its_script(emulator):
    hyperparameters = dict(zip("abcdefgh", HARD, strict=True))
    environment = {f"V{number}_ECHO": value for number, value in enumerate(HARD)}
    body = request("echo-hard", Environment=environment, HyperParameters=hyperparameters)
    body["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": [sys.executable],
        "ContainerArguments": [str(SCRIPTS / "echo.py"), *environment],
    }
    emulator.client("sagemaker").create_training_job(**body)
    job = emulator.wait("echo-hard")
    assert job.status == "Completed", job.failure_reason
    (line,) = job.lines("ECHO ")
    received = json.loads(line)
    assert received == {"hyperparameters": hyperparameters, "environment": HARD}
    assert job.description["HyperParameters"] == hyperparameters
    assert job.description["Environment"] == environment

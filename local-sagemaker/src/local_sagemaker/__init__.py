"""Amazon SageMaker on this machine.

One process, bound to loopback, answers every AWS call that a training script and its client make.
Training jobs and endpoints are real processes, S3's objects are files; IAM,
CloudFormation and the other services are moto's. Clients are the unmodified sagemaker
SDK, boto3 or AWS CLI, pointed here by `AWS_ENDPOINT_URL`.

    import local_sagemaker
    local_sagemaker.start(local_sagemaker.state_directory(), port=0)
    local_sagemaker.client("sagemaker").list_training_jobs()

What other packages use is in PUBLIC. The folders are in README.md.
"""

from importlib import import_module
from typing import Any

# name -> "module:attribute". Looked up when used: programs on an instance, which have the standard
# library alone, import modules of this package, too.
PUBLIC = {
    "start": "daemon:start",
    "stop": "daemon:stop",
    "running": "daemon:running",
    "Running": "daemon:Running",
    "EmulatorError": "emulator_error:EmulatorError",
    "state_directory": "daemon:state_directory",
    "environment": "daemon:environment",
    "environment_of_running": "daemon:environment_of_running",
    "conflicting_variables": "daemon:conflicting_variables",
    "client": "daemon:client",
    "DEFAULT_PORT": "daemon:DEFAULT_PORT",
    "REGION": "daemon:REGION",
    "JobEvents": "job_events:JobEvents",
    "doctor_findings": "doctor:findings",
    "jobs_command": "cli:jobs",
    "logs_command": "cli:logs",
    "interrupt": "training.spot:ask",
    "parse_bandwidth": "cluster.bandwidth:parse",
    "isolation": "cluster.probe:isolation",
    "shaping_unavailable_reason": "cluster.probe:shaping_unavailable_reason",
    "supervise": "cluster.supervised_processes:supervise",
    "system_command": "cluster.linux:system_command",
}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'local_sagemaker' has no attribute {name!r}")
    module, attribute = PUBLIC[name].split(":")
    return getattr(import_module(f"local_sagemaker.{module}"), attribute)

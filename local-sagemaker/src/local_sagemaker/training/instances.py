"""The directories and variables that instances start with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
from pathlib import Path

from local_sagemaker.cluster import relay
from local_sagemaker.cluster.mounts import HOME
from local_sagemaker.cluster.spec import HOST_ENV, JOB_ENV, NAMESPACES, Connectivity, Host
from local_sagemaker.core.aws import PACKAGES, SDK_DEFAULTS, LocalAws, base_environment
from local_sagemaker.training import instance_types
from local_sagemaker.training.job_record import JobRecord

GROUP = "homogeneousCluster"
FOLDERS = ("input/config", "input/data", "model", "output/data", "code")
CONTAINER = Path(__file__).parents[1] / "container"
IMAGE_BIN = CONTAINER / "bin"
IMAGE_SITE = CONTAINER / "site"
KERAS_2 = CONTAINER / "keras_2"


def prepare(
    record: JobRecord,
    directory: Path,
    isolation: str,
    aws: LocalAws,
    connectivity: Connectivity,
) -> list[Host]:
    """Make every instance's /opt/ml with its configuration files; its hosts."""
    count = record.request["ResourceConfig"]["InstanceCount"]
    names = [f"algo-{number + 1}" for number in range(count)]
    ports = None if isolation == NAMESPACES else free_ports(names)
    hosts = []
    for name in names:
        opt_ml = directory / name / "ml"
        # Without CheckpointConfig a script finds no place for checkpoints: nobody would keep them.
        extra = ("checkpoints",) if "CheckpointConfig" in record.request else ()
        for folder in FOLDERS + extra:
            (opt_ml / folder).mkdir(parents=True)
        (directory / name / "tmp").mkdir()
        _configure(record, opt_ml, name, names, isolation)
        env = environment(record, name, isolation, aws, connectivity)
        if ports:
            env |= _on_loopback(ports, directory / name)
            env |= {"SM_CHECKPOINT_DIR": str(opt_ml / "checkpoints")} if extra else {}
        seen = opt_ml if ports else Path("/opt/ml")
        env.setdefault("SAGEMAKER_USER_CONFIG_OVERRIDE", str(seen / "metadata" / "defaults.yaml"))
        hosts.append(Host(name, str(directory / name), env))
    return hosts


def _configure(
    record: JobRecord, opt_ml: Path, name: str, names: list[str], isolation: str
) -> None:
    kind = record.request["ResourceConfig"]["InstanceType"]
    group = {"instance_group_name": GROUP, "instance_type": kind, "hosts": names}
    resources = {
        "current_host": name,
        "current_instance_type": kind,
        "current_group_name": GROUP,
        "hosts": names,
        "instance_groups": [group],
        "network_interface_name": "eth0" if isolation == NAMESPACES else "lo",
    }
    channels = {
        channel["ChannelName"]: {
            "TrainingInputMode": channel.get("InputMode")
            or record.request["AlgorithmSpecification"]["TrainingInputMode"],
            "S3DistributionType": channel["DataSource"]["S3DataSource"].get(
                "S3DataDistributionType", "FullyReplicated"
            ),
            "RecordWrapperType": channel.get("RecordWrapperType", "None"),
        }
        | ({"ContentType": channel["ContentType"]} if "ContentType" in channel else {})
        for channel in record.request.get("InputDataConfig", [])
    }
    for file, content in (
        ("hyperparameters.json", record.request.get("HyperParameters", {})),
        ("resourceconfig.json", resources),
        ("inputdataconfig.json", channels),
    ):
        (opt_ml / "input" / "config" / file).write_text(json.dumps(content))
    # get_execution_role() reads this file of notebooks before it asks AWS's STS at a fixed address.
    metadata = opt_ml / "metadata"
    metadata.mkdir()
    role = {"ExecutionRoleArn": record.request["RoleArn"]}
    (metadata / "resource-metadata.json").write_text(json.dumps(role))
    (metadata / "defaults.yaml").write_text(SDK_DEFAULTS)


def environment(
    record: JobRecord, host: str, isolation: str, aws: LocalAws, connectivity: Connectivity
) -> dict[str, str]:
    """The variables of an instance: AWS's, this machine's, and the request's own."""
    request, region = record.request, record.data["region"]
    kind = request["ResourceConfig"]["InstanceType"]
    inside = isolation == NAMESPACES
    env = base_environment()
    env |= {
        "PATH": os.pathsep.join([str(IMAGE_BIN), env["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(PACKAGES), str(IMAGE_SITE)]),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "TRAINING_JOB_NAME": record.name,
        "TRAINING_JOB_ARN": record.data["arn"],
        "SAGEMAKER_TRAINING_MODULE": "local_sagemaker.container.framework:main",
        "LOCAL_SAGEMAKER_IMAGE": request["AlgorithmSpecification"].get("TrainingImage", ""),
        "LOCAL_SAGEMAKER_GPUS": str(instance_types.gpus(kind)),
        "LOCAL_SAGEMAKER_NOTES": json.dumps(_notes(record, isolation)),
        HOST_ENV: host,
        "TAR_OPTIONS": "--no-same-owner",  # an instance knows one user
        JOB_ENV: aws.mark(record.key),
    }
    image = re.search(r"tensorflow-training:(\d+)\.(\d+)", env["LOCAL_SAGEMAKER_IMAGE"])
    if image and (int(image[1]), int(image[2])) < (2, 16):  # it has Keras 2
        env["TF_USE_LEGACY_KERAS"] = "1"
        env["PYTHONPATH"] = os.pathsep.join([str(KERAS_2), env["PYTHONPATH"]])
    if connectivity.emulator:
        env |= aws.variables(region, relay.EMULATOR_URL if inside else None)
        env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials"  # only to be there
    env |= {"TMPDIR": "/tmp", "HOME": HOME} if inside else {}
    if inside and connectivity.internet:
        env |= _ways_out(request["ResourceConfig"]["InstanceCount"], region)
    requested = dict(request.get("Environment", {}))
    # A request adds to these two: what starts the script is found through them.
    if "PATH" in requested:
        requested["PATH"] = os.pathsep.join([env["PATH"], requested["PATH"]])
    if "PYTHONPATH" in requested:
        requested["PYTHONPATH"] = os.pathsep.join([requested["PYTHONPATH"], env["PYTHONPATH"]])
    # What a job's processes are found by is not the request's to say.
    return env | requested | {name: env[name] for name in (JOB_ENV, HOST_ENV)}


def _ways_out(instances: int, region: str) -> dict[str, str]:
    """The proxy, and what is not to go through it.

    In upper case: gRPC, by which TensorFlow's instances talk, reads the variables in lower case.
    """
    direct = [relay.GATEWAY, "localhost", "127.0.0.1"]
    direct += [f"algo-{number + 1}" for number in range(instances)]
    # What the sagemaker SDK asks AWS at fixed addresses: it would get the emulator's key.
    direct += ["sts.amazonaws.com", f"sts.{region}.amazonaws.com"]
    direct += [f"sm-pysdk-t-{region}.s3.{region}.amazonaws.com"]  # its telemetry
    proxies = dict.fromkeys(("PIP_PROXY", "HTTPS_PROXY"), relay.PROXY_URL)
    return proxies | {"NO_PROXY": ",".join(direct)}


def _on_loopback(ports: dict, directory: Path) -> dict[str, str]:
    return {
        "SAGEMAKER_BASE_DIR": str(directory / "ml"),
        "TMPDIR": str(directory / "tmp"),
        "LOCAL_SAGEMAKER_PORTS": json.dumps(ports),
        "LOCAL_SAGEMAKER_NO_LAYER": "1",
        "SM_STUDIO_LOCAL_MODE": "true",  # the toolkit then does not look algo-N up
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
    }


def free_ports(names: list[str]) -> dict[str, dict[int, int]]:
    """For instances without addresses of their own: host -> AWS's port -> a free port here."""
    with contextlib.ExitStack() as stack:

        def free() -> int:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            return listener.getsockname()[1]

        return {name: {port: free() for port in (2222, 2223, 8890, 7777)} for name in names}


def _notes(record: JobRecord, isolation: str) -> list[str]:
    """What differs from AWS and follows from the request, as log lines."""
    config = record.request["ResourceConfig"]
    gpus = instance_types.gpus(config["InstanceType"])
    cores = os.cpu_count() or 1
    notes = []
    if gpus:
        notes.append(
            f"{config['InstanceType']} has {gpus} GPUs: its processes are started here all the "
            f"same, on this machine's {cores} cores, so times say nothing about the GPUs."
        )
    if isolation != NAMESPACES:
        notes.append(
            "instances are plain processes here: variables and directories are SageMaker's, but "
            "host names, own addresses and link speeds are not. `local-sagemaker status` says why."
        )
    return notes

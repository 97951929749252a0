"""What is known about AWS without asking it: facts.toml, and what the installed SDK knows."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.session

FACTS = Path(__file__).with_name("facts.toml")


@cache
def facts() -> dict[str, Any]:
    """facts.toml as it is."""
    return tomllib.loads(FACTS.read_text(encoding="utf-8"))


def source(name: str) -> str:
    """Where a fact stands, and the day on which it was read there."""
    found = facts()["sources"][name]
    return f"{found['address']} (read {found['read']})"


@cache
def _request_shape():
    model = botocore.session.get_session().get_service_model("sagemaker")
    return model.operation_model("CreateTrainingJob").input_shape


def training_types() -> list[str]:
    """Every instance type that CreateTrainingJob takes, in botocore's model of the service."""
    return list(_request_shape().members["ResourceConfig"].members["InstanceType"].enum)


def longest_keep_alive() -> int:
    """The longest that a warm pool may be kept, seconds."""
    shape = _request_shape().members["ResourceConfig"].members["KeepAlivePeriodInSeconds"]
    return int(shape.metadata["max"])


def most(member: str) -> int:
    """How many entries a list of VpcConfig may have: "Subnets" or "SecurityGroupIds"."""
    return int(_request_shape().members["VpcConfig"].members[member].metadata["max"])


@cache
def sagemaker_regions() -> frozenset[str]:
    """The regions, of all partitions, in which SageMaker is."""
    session = boto3.Session(region_name="us-east-1")
    partitions = session.get_available_partitions()
    return frozenset(
        region for one in partitions for region in session.get_available_regions("sagemaker", one)
    )

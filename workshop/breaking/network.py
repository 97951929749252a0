"""A small network and a bucket on the local endpoint, made for one failure and deleted after it."""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from botocore.exceptions import ClientError

from workshop.jobs.follow import FINAL
from workshop.jobs.logs import LogReader

BLOCK = "10.30.0.0/24"
POLL_SECONDS = 0.3
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/workshop-break"
# The endpoint pulls no image: the name says only which framework's variables to set.
IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"


class Place:
    """A VPC with one subnet and one security group, and a bucket.

    client: a function that makes a boto3 client for a service.
    """

    def __init__(self, client, to_s3: bool, let_members_in: bool) -> None:
        self.client, self.name = client, f"workshop-break-{uuid.uuid4().hex[:12]}"
        self.jobs: list[str] = []
        self.ec2 = client("ec2")
        client("s3").create_bucket(Bucket=self.name)
        self.vpc = self.ec2.create_vpc(CidrBlock=BLOCK)["Vpc"]["VpcId"]
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=BLOCK)
        self.subnet = made["Subnet"]["SubnetId"]
        made = self.ec2.create_security_group(
            VpcId=self.vpc, GroupName=self.name, Description="Instances of a job that breaks"
        )
        self.group = made["GroupId"]
        if let_members_in:
            itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}]
            self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=itself)
        self.endpoint = self._way_to_s3() if to_s3 else None

    def _way_to_s3(self) -> str:
        mine = [{"Name": "vpc-id", "Values": [self.vpc]}]
        (table,) = self.ec2.describe_route_tables(Filters=mine)["RouteTables"]
        made = self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            VpcEndpointType="Gateway",
            ServiceName=f"com.amazonaws.{self.ec2.meta.region_name}.s3",
            RouteTableIds=[table["RouteTableId"]],
        )
        return made["VpcEndpoint"]["VpcEndpointId"]

    def upload(self, folder: Path, prefix: str) -> str:
        """Copy a folder's files to the bucket; their S3 address."""
        for path in folder.rglob("*.npz"):
            key = f"{prefix}/{path.relative_to(folder)}"
            self.client("s3").upload_file(str(path), self.name, key)
        return f"s3://{self.name}/{prefix}"

    def source(self, folder: Path, more: dict[str, bytes]) -> str:
        """Pack a folder of scripts as the SDK does; its S3 address. more: name -> content."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path in sorted(folder.rglob("*")):
                name = str(path.relative_to(folder))
                if path.is_file() and "__pycache__" not in name and name not in more:
                    archive.add(path, name)
            for name, content in more.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self.client("s3").put_object(Bucket=self.name, Key="source.tar.gz", Body=packed.getvalue())
        return f"s3://{self.name}/source.tar.gz"

    def request(self, program: str, source: str, count: int, max_run: int, **hyperparameters):
        """A CreateTrainingJob request for a script in this VPC. max_run: seconds."""
        quoted = {name: f'"{value}"' for name, value in hyperparameters.items()}
        return {
            "TrainingJobName": self.name,
            "RoleArn": ROLE,
            "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
            "OutputDataConfig": {"S3OutputPath": f"s3://{self.name}/out"},
            "ResourceConfig": {
                "InstanceCount": count,
                "InstanceType": "ml.c5.xlarge",
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": max_run},
            "VpcConfig": {"Subnets": [self.subnet], "SecurityGroupIds": [self.group]},
            "HyperParameters": quoted
            | {"sagemaker_program": f'"{program}"', "sagemaker_submit_directory": f'"{source}"'},
        }

    def run(self, request: dict) -> tuple[dict, list[str]]:
        """Run a job to its end: DescribeTrainingJob's answer, and the lines of its log."""
        api, name = self.client("sagemaker"), request["TrainingJobName"]
        api.create_training_job(**request)
        self.jobs.append(name)
        while True:
            found = api.describe_training_job(TrainingJobName=name)
            if found["TrainingJobStatus"] in FINAL:
                lines = LogReader(self.client("logs"), name).new_lines()
                return found, [line.text for line in lines]
            time.sleep(POLL_SECONDS)

    def delete(self) -> None:
        """Delete all of it, jobs first; one that still runs is stopped."""
        for name in self.jobs:
            self._delete_job(name)
        s3 = self.client("s3")
        for one in s3.list_objects_v2(Bucket=self.name).get("Contents", []):
            s3.delete_object(Bucket=self.name, Key=one["Key"])
        s3.delete_bucket(Bucket=self.name)
        if self.endpoint:
            self.ec2.delete_vpc_endpoints(VpcEndpointIds=[self.endpoint])
        self.ec2.delete_security_group(GroupId=self.group)
        self.ec2.delete_subnet(SubnetId=self.subnet)
        self.ec2.delete_vpc(VpcId=self.vpc)

    def _delete_job(self, name: str) -> None:
        api = self.client("sagemaker")
        with contextlib.suppress(ClientError):  # it has ended
            api.stop_training_job(TrainingJobName=name)
        while api.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] not in FINAL:
            time.sleep(POLL_SECONDS)
        api.delete_training_job(TrainingJobName=name)


@contextlib.contextmanager
def place(client, to_s3: bool = True, let_members_in: bool = True) -> Iterator[Place]:
    """A Place for the length of a `with`."""
    made = Place(client, to_s3, let_members_in)
    try:
        yield made
    finally:
        made.delete()

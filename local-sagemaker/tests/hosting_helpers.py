"""What the tests of serving share: an endpoint, archives of models, hosting in one call."""

import io
import json
import tarfile

from emulator_harness import until

from local_sagemaker.pytest_plugin import BUCKET, ROLE, Emulator

PATIENCE = 180  # seconds: a busy machine may need them to load TensorFlow
# A model with no framework: it answers what it gets, times three.
TRIPLE = """
import json
def model_fn(model_dir): return 3
def input_fn(data, content_type): return json.loads(data)
def predict_fn(values, model): return [model * one for one in values]
def output_fn(values, accept): return json.dumps(values)
"""


class Served:
    """An endpoint's clients, and what the tests make with them."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.connect()

    def connect(self) -> None:
        """Make clients for the emulator, which may have a new port."""
        self.api, self.s3 = self.emulator.client("sagemaker"), self.emulator.client("s3")
        self.runtime = self.emulator.client("sagemaker-runtime")

    def model(self, name: str, files: dict[str, str | bytes], env: dict | None = None) -> str:
        """CreateModel of files (path in the archive -> content); its name."""
        uri = self.emulator.put(f"models/{name}/model.tar.gz", archive(files))
        return self.model_of(name, uri, env)

    def model_of(self, name: str, uri: str, env: dict | None = None) -> str:
        container = {"Image": "registry.invalid/any", "ModelDataUrl": uri, "Environment": env or {}}
        self.api.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
        return name

    def deploy(self, name: str, **variant) -> dict:
        """An endpoint with a model's name; its description once it is no longer being created."""
        default = {"VariantName": "AllTraffic", "ModelName": name, "InstanceType": "ml.m5.large"}
        self.api.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[default | {"InitialInstanceCount": 1} | variant],
        )
        self.api.create_endpoint(EndpointName=name, EndpointConfigName=name)
        return self.until(name, lambda endpoint: endpoint["EndpointStatus"] not in UNSETTLED)

    def until(self, name: str, holds) -> dict:
        """An endpoint's description once `holds` of it."""

        def now() -> dict:
            return self.api.describe_endpoint(EndpointName=name)

        until(lambda: holds(now()), PATIENCE, now)
        return now()

    def ask(self, name: str, body: object, kind: str = "application/json", **options) -> object:
        """InvokeEndpoint; the answer's JSON."""
        return json.loads(self.raw(name, json.dumps(body), kind, **options)["Body"].read())

    def raw(self, name: str, body: str | bytes, kind: str = "application/json", **options) -> dict:
        return self.runtime.invoke_endpoint(
            EndpointName=name, ContentType=kind, Body=body, **options
        )

    def transform(self, name: str, model: str, uri: str, **changes) -> dict:
        """A transform job of JSON lines, run to its end; its description."""
        self.begin_transform(name, model, uri, **changes)
        return self.ended(name)

    def ended(self, name: str) -> dict:
        """A transform job's description once it has ended."""

        def now() -> dict:
            return self.api.describe_transform_job(TransformJobName=name)

        until(lambda: now()["TransformJobStatus"] not in ("InProgress", "Stopping"), PATIENCE, now)
        return now()

    def begin_transform(self, name: str, model: str, uri: str, **changes) -> None:
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}
        body = {
            "TransformJobName": name,
            "ModelName": model,
            "TransformInput": {
                "DataSource": source,
                "ContentType": "application/json",
                "SplitType": "Line",
            },
            "TransformOutput": {"S3OutputPath": f"s3://{BUCKET}/{name}", "AssembleWith": "Line"},
            "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
        }
        self.api.create_transform_job(**(body | changes))

    def until_log(self, name: str, text: str) -> None:
        """Wait until an endpoint's log has `text`: lines come a moment after the answer."""
        until(lambda: text in self.log(name), PATIENCE, lambda: self.log(name))

    def log(self, name: str) -> str:
        """All that an endpoint's workers said."""
        logs, group = self.emulator.client("logs"), f"/aws/sagemaker/Endpoints/{name}"
        if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
            return ""
        streams = logs.describe_log_streams(logGroupName=group)["logStreams"]
        messages = []
        for stream in streams:
            where = {"logGroupName": group, "logStreamName": stream["logStreamName"]}
            events = logs.get_log_events(**where, startFromHead=True)["events"]
            messages += [event["message"] for event in events]
        return "\n".join(messages)


UNSETTLED = ("Creating", "SystemUpdating")


def script(text: str) -> dict[str, str]:
    """The files of a model that is only code."""
    return {"code/inference.py": text}


def archive(files: dict[str, str | bytes], owner: int = 0) -> bytes:
    """A tar.gz of files: path -> content. owner: their user and group, by number."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid = len(data), owner, owner
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()

"""A client that knows nothing of this kit: the variables, the plain SDK, its own script."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import json, os
files = os.listdir(os.environ["SM_CHANNEL_TRAINING"])
print("HELLO of", os.environ["SM_CURRENT_HOST"], "with", files)
print("loss: 0.5")
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    open(os.path.join(os.environ["SM_MODEL_DIR"], "weights.json"), "w").write(json.dumps([1, 2]))
"""

CLIENT = """
import io, tarfile, time, types
import boto3, sagemaker, sagemaker.session
from sagemaker.tensorflow import TensorFlow

# The SDK asks every 30 s whether a job has ended. Here its clock runs ten times as fast.
sagemaker.session.time = types.SimpleNamespace(
    time=lambda: 10 * time.time(), sleep=lambda seconds: time.sleep(seconds / 10)
)

session = sagemaker.Session()
inputs = {"training": session.upload_data("numbers.csv", key_prefix="numbers")}
estimator = TensorFlow(
    entry_point="my_script.py",
    role="arn:aws:iam::" + "0" * 12 + ":role/learner",
    instance_count=2,
    instance_type="ml.m5.xlarge",
    framework_version="2.12",
    py_version="py310",
    sagemaker_session=session,
    metric_definitions=[{"Name": "loss", "Regex": "loss: ([0-9.]+)"}],
)
estimator.fit(inputs)
bucket, key = estimator.model_data.removeprefix("s3://").split("/", 1)
body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
print("MODEL", tarfile.open(fileobj=io.BytesIO(body)).getnames())
"""


def test_fit_with_logs_and_a_model(endpoint, tmp_path):
    (tmp_path / "my_script.py").write_text(SCRIPT)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "numbers.csv").write_text("1,2\n")
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "client.py"],
        env={**kept, "HOME": str(tmp_path), **endpoint.env},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    for host in ("algo-1", "algo-2"):
        assert f"HELLO of {host} with ['numbers.csv']" in done.stdout
    assert "MODEL ['weights.json']" in done.stdout
    assert "Training seconds:" in done.stdout

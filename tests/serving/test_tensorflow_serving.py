"""The unmodified SDK serves a SavedModel of the workshop's scripts, as AWS's TensorFlow image does.

Answers are compared with the model's own, computed by another process: to 1e-6 of probabilities,
since another batch size may take another kernel. The same batch twice is equal to the last bit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from serving_helpers import archive_of

from endpoint_harness import BUCKET, ROLE, processes_with

DEMOS = Path(__file__).parent.parent.parent / "scripts" / "demos"
LINES = "application/jsonlines"
MAKE = """
import sys
from pathlib import Path
from common.keras2 import tf
import numpy as np
from common.model_tf import build_model, save_model
tf.keras.utils.set_random_seed(1)
folder, model = Path(sys.argv[1]), build_model((8, 8, 1), 16)
save_model(model, folder / "model")
images = np.random.default_rng(1).integers(0, 256, (40, 8, 8, 1)).astype(np.uint8)
probabilities = tf.nn.softmax(model(tf.cast(images, tf.float32), training=False)).numpy()
np.savez(folder / "reference.npz", images=images, probabilities=probabilities)
"""
# What a learner may write: pixels as text in, the digit and its probability out.
HANDLERS = """
import json

def input_handler(data, context):
    if context.request_content_type != "text/plain":
        raise ValueError("wanted is text/plain, not " + context.request_content_type)
    rows = [line.split() for line in data.read().decode().splitlines()]
    images = [[[[int(row[8 * y + x])] for x in range(8)] for y in range(8)] for row in rows]
    return json.dumps({"instances": images})

def output_handler(response, context):
    if response.status_code != 200:
        raise ValueError(response.content.decode())
    rows = response.json()["predictions"]
    best = [max(range(10), key=row.__getitem__) for row in rows]
    text = "\\n".join(f"{digit} {row[digit]!r}" for digit, row in zip(best, rows))
    return text, context.accept_header
"""


@pytest.fixture(scope="module")
def made(served, tmp_path_factory):
    """S3 address of a model.tar.gz, and the arrays that belong to it."""
    folder = tmp_path_factory.mktemp("tensorflow")
    done = subprocess.run(
        [sys.executable, "-c", MAKE, str(folder)], cwd=DEMOS, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    uri = served.endpoint.put("tensorflow/model.tar.gz", archive_of(folder / "model"))
    return uri, dict(np.load(folder / "reference.npz"))


def model_of(session, uri: str, **code):
    from sagemaker.tensorflow import TensorFlowModel

    return TensorFlowModel(
        model_data=uri, role=ROLE, framework_version="2.14.1", sagemaker_session=session, **code
    )


def close(found: list, expected: np.ndarray) -> None:
    np.testing.assert_allclose(np.array(found, np.float32), expected, atol=1e-6, rtol=0)


def test_deploy_and_predict(served, sdk, made):
    uri, reference = made
    images, expected = reference["images"], reference["probabilities"]
    predictor = model_of(sdk, uri).deploy(initial_instance_count=1, instance_type="ml.m5.xlarge")
    name = predictor.endpoint_name

    rows = predictor.predict({"instances": images.tolist()})
    assert list(rows) == ["predictions"]
    close(rows["predictions"], expected)
    assert predictor.predict({"instances": images.tolist()}) == rows
    columns = predictor.predict({"inputs": {"images": images.tolist()}})
    assert columns == {"outputs": rows["predictions"]}
    assert predictor.predict(images.tolist()) == rows  # a list of lists: of instances

    body = "\n".join(json.dumps({"images": one.tolist()}) for one in images)
    reply = served.raw(name, body, LINES, Accept=LINES)
    assert reply["ContentType"] == LINES
    assert json.loads(reply["Body"].read()) == rows
    text = served.raw(name, body, LINES)["Body"].read().decode()
    assert text.startswith('{\n    "predictions": [[') and json.loads(text) == rows
    refused(served, name, {"instances": [[1, 2]]}, r"Input 'images' has the shape \[1, 2\]")
    refused(served, name, {"instances": [], "signature_name": "x"}, "'x' not found")
    missing = r"Servable not found for request: Specific\(model, 9\)"
    refused(served, name, {"instances": [1]}, missing, CustomAttributes="tfs-model-version=9")
    refused(served, name, {"instances": [1]}, "no :regress", CustomAttributes="tfs-method=regress")
    predictor.delete_model()
    predictor.delete_endpoint()
    assert processes_with(f"endpoint/{name}") == []


def refused(served, name: str, body: dict, why: str, **more) -> None:
    with pytest.raises(served.runtime.exceptions.ModelError, match=why) as error:
        served.ask(name, body, **more)
    assert error.value.response["OriginalStatusCode"] in (400, 404)
    assert error.value.response["Error"]["Message"].startswith("Received client error (4")


@pytest.mark.soak
def test_transform_with_handlers_of_ones_own(served, sdk, made, tmp_path):
    uri, reference = made
    (tmp_path / "inference.py").write_text(HANDLERS)
    lines = [" ".join(str(one) for one in image.ravel()) for image in reference["images"]]
    served.endpoint.put("digits-in/a.txt", "\n".join(lines))
    model = model_of(sdk, uri, entry_point=str(tmp_path / "inference.py"))
    transformer = model.transformer(
        1,
        "ml.m5.xlarge",
        strategy="MultiRecord",
        assemble_with="Line",
        accept="text/plain",
        output_path=f"s3://{BUCKET}/digits-out",
    )
    transformer.transform(
        f"s3://{BUCKET}/digits-in", content_type="text/plain", split_type="Line", wait=False
    )
    transformer.wait(logs=False)
    found = served.endpoint.get(f"s3://{BUCKET}/digits-out/a.txt.out").decode().split()
    expected = reference["probabilities"]
    assert [int(one) for one in found[::2]] == expected.argmax(1).tolist()
    close([float(one) for one in found[1::2]], expected.max(1))
    assert processes_with(f"transform/{transformer.latest_transform_job.name}") == []

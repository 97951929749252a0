"""The unmodified SDK serves PyTorch models: scripts/train/inference.py, or TorchScript.

The references are computed by another process with the same library and one thread: on one
processor they are equal to the last bit, and the last bits may differ where a batch of another
size takes another kernel. So equality is to 1e-6 of probabilities.
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

TRAIN = Path(__file__).parent.parent.parent / "scripts" / "train"
# Makes folder/model/model.pt and folder/traced/model.pt of one network, images, and its answers.
MAKE = """
import os, sys
import numpy as np, torch
from train_torch import Classifier
torch.set_num_threads(1)
torch.manual_seed(1)
folder, model = sys.argv[1], Classifier("small", (8, 8, 1), 16).eval()
os.mkdir(folder + "/model")
about = {"model": "small", "image_shape": [8, 8, 1], "hidden_units": 16}
torch.save(about | {"state_dict": model.state_dict()}, folder + "/model/model.pt")
images = np.random.default_rng(1).integers(0, 256, (40, 8, 8, 1)).astype(np.uint8)
with torch.no_grad():
    logits = model(torch.from_numpy(images))
    traced = torch.jit.trace(model, torch.from_numpy(images).float())
np.savez(folder + "/reference.npz", images=images, logits=logits,
         probabilities=torch.softmax(logits, 1))
torch.jit.save(traced, folder + "/traced.pt")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that MAKE fills, and its arrays."""
    folder = tmp_path_factory.mktemp("torch")
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], cwd=TRAIN, check=True)
    return folder, dict(np.load(folder / "reference.npz"))


def model_of(session, uri: str, **code):
    from sagemaker.pytorch import PyTorchModel

    return PyTorchModel(
        model_data=uri,
        role=ROLE,
        framework_version="2.2.0",
        py_version="py310",
        sagemaker_session=session,
        **code,
    )


def test_inference_py_behind_the_sdk(served, sdk, made):
    folder, reference = made
    uri = served.endpoint.put("torch/model.tar.gz", archive_of(folder / "model"))
    model = model_of(sdk, uri, entry_point="inference.py", source_dir=str(TRAIN))
    predictor = model.deploy(initial_instance_count=1, instance_type="ml.m5.xlarge")
    name, images = predictor.endpoint_name, reference["images"]
    found = predictor.predict(images)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference["probabilities"], atol=1e-6, rtol=0)
    rows = served.ask(name, {"instances": images[:5].tolist()})
    np.testing.assert_allclose(rows, reference["probabilities"][:5], atol=1e-6, rtol=0)

    lines = "\n".join(json.dumps({"images": one.tolist()}) for one in images)
    served.endpoint.put("torch-in/images.jsonl", lines)
    kind = "application/jsonlines"
    transformer = model.transformer(
        1, "ml.m5.xlarge", assemble_with="Line", accept=kind, output_path=f"s3://{BUCKET}/torch-out"
    )
    transformer.transform(
        f"s3://{BUCKET}/torch-in", content_type=kind, split_type="Line", wait=False
    )
    transformer.wait(logs=False)
    text = served.endpoint.get(f"s3://{BUCKET}/torch-out/images.jsonl.out").decode()
    batch = [json.loads(line) for line in text.splitlines()]
    np.testing.assert_allclose(batch, reference["probabilities"], atol=1e-6, rtol=0)

    for body, why in (
        ({"instances": [[1, 2]]}, "expected .n, height, width, channels."),
        ({"instances": (images[:1] + 300.0).tolist()}, "pixels must be 0 to 255"),
    ):
        with pytest.raises(served.runtime.exceptions.ModelError, match=why):
            served.ask(name, body)
    predictor.delete_model()
    predictor.delete_endpoint()
    assert processes_with(f"endpoint/{name}") == []


def test_torchscript_without_code(served, made):
    folder, reference = made
    files = {"model.pt": (folder / "traced.pt").read_bytes()}
    found = served.deploy(served.model("traced-1", files))
    assert found["EndpointStatus"] == "InService", found.get("FailureReason")
    rows = served.ask("traced-1", reference["images"].tolist())
    np.testing.assert_allclose(rows, reference["logits"], atol=1e-5, rtol=0)
    with pytest.raises(served.runtime.exceptions.ModelError, match="is not supported") as refused:
        served.raw("traced-1", b"x", "image/png")
    assert refused.value.response["OriginalStatusCode"] == 415
    served.api.delete_endpoint(EndpointName="traced-1")


def test_a_state_dict_without_code(served, made):
    folder, _ = made
    uri = served.endpoint.put("bare.tar.gz", archive_of(folder / "model"))
    found = served.deploy(served.model_of("bare-1", uri))
    assert found["EndpointStatus"] == "Failed"
    assert "model.pt is not TorchScript" in found["FailureReason"]

"""PyTorch models: scripts/train/inference.py behind the unmodified SDK, and models without code.

The references are computed by another process with the same library and one thread: on one
processor they are equal to the last bit, and the last bits may differ where a batch of another
size takes another kernel. So equality is to 1e-6 of probabilities.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulator_harness import processes_with
from hosting_helpers import archive

from local_sagemaker.pytest_plugin import ROLE

TRAIN = Path(__file__).parents[3] / "scripts" / "train"
# Makes folder/model/model.pt of a network, images, and its answers; and serves, in the same
# process, what has no code: TorchScript, and a state_dict that nobody can load.
MAKE = """
import json, os, pathlib, sys
import numpy as np, torch
from local_sagemaker.hosting.runtime.http import CannotLoad, Refused, Request
from local_sagemaker.hosting.runtime.toolkit import Toolkit
from train_torch import Classifier
torch.set_num_threads(1)
torch.manual_seed(1)
folder, model = pathlib.Path(sys.argv[1]), Classifier((8, 8, 1), 16).eval()
os.mkdir(folder / "model")
about = {"image_shape": [8, 8, 1], "hidden_units": 16}
torch.save(about | {"state_dict": model.state_dict()}, folder / "model" / "model.pt")
images = np.random.default_rng(1).integers(0, 256, (40, 8, 8, 1)).astype(np.uint8)
with torch.no_grad():
    logits = model(torch.from_numpy(images))
    traced = torch.jit.trace(model, torch.from_numpy(images).float())
np.savez(folder / "reference.npz", images=images, probabilities=torch.softmax(logits, 1))

os.mkdir(folder / "traced")
torch.jit.save(traced, folder / "traced" / "model.pt")
os.environ["SAGEMAKER_PROGRAM"] = "inference.py"  # the SDK 3 names it, and does not pack it
served = Toolkit(folder / "traced")
answer = served.invoke(Request(json.dumps(images.tolist()).encode(), "application/json"))
np.testing.assert_allclose(json.loads(answer.get_data()), logits, atol=1e-5, rtol=0)
try:
    raise AssertionError(served.invoke(Request(b"x", "image/png")))
except Refused as refused:
    assert refused.status == 415 and "is not supported" in refused.body
try:
    raise AssertionError(Toolkit(folder / "model"))
except CannotLoad as error:
    assert "model.pt is not TorchScript" in str(error)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that MAKE fills, and its arrays."""
    folder = tmp_path_factory.mktemp("torch")
    command = [sys.executable, "-c", MAKE, str(folder)]
    done = subprocess.run(command, cwd=TRAIN, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, dict(np.load(folder / "reference.npz"))


def test_inference_py_behind_the_sdk(served, sdk, made):
    from sagemaker.pytorch import PyTorchModel

    folder, reference = made
    packed = archive({"model.pt": (folder / "model" / "model.pt").read_bytes()})
    model = PyTorchModel(
        model_data=served.emulator.put("torch/model.tar.gz", packed),
        role=ROLE,
        framework_version="2.2.0",
        py_version="py310",
        sagemaker_session=sdk,
        entry_point="inference.py",
        source_dir=str(TRAIN),
    )
    predictor = model.deploy(initial_instance_count=1, instance_type="ml.m5.xlarge")
    name, images = predictor.endpoint_name, reference["images"]
    result = predictor.predict(images)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, reference["probabilities"], atol=1e-6, rtol=0)
    rows = served.ask(name, {"instances": images[:5].tolist()})
    np.testing.assert_allclose(rows, reference["probabilities"][:5], atol=1e-6, rtol=0)
    for body, why in (
        ({"instances": [[1, 2]]}, "expected .n, height, width, channels."),
        ({"instances": (images[:1] + 300.0).tolist()}, "pixels must be 0 to 255"),
    ):
        with pytest.raises(served.runtime.exceptions.ModelError, match=why):
            served.ask(name, body)
    predictor.delete_model()
    predictor.delete_endpoint()
    assert processes_with(f"endpoint/{name}") == []


def test_a_scikit_learn_image_predicts_by_itself(tmp_path, monkeypatch):
    """Its image calls `predict`; PyTorch's would call the model."""
    from local_sagemaker.hosting.runtime.http import Request
    from local_sagemaker.hosting.runtime.toolkit import Toolkit

    monkeypatch.setenv("LOCAL_SAGEMAKER_IMAGE", "registry.invalid/sagemaker-scikit-learn:1.2-1")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "inference", None)  # removed again, as the path
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").write_text(
        "class Tree:\n    def predict(self, rows): return rows.sum(axis=1)\n"
        "def model_fn(model_dir): return Tree()\n"
    )
    answer = Toolkit(tmp_path).invoke(Request(b"5.0,3.0\n6.5,3.0\n", "text/csv"))
    assert answer.get_data() == b"[8.0, 9.5]"

"""A SavedModel behind TensorFlow Serving's forms. Lesson 08 serves one with the unmodified SDK, in
every form, with handlers and as a batch transform; here is what that lesson has no need of.
"""

import sys

from emulator_harness import captured

# One process, because TensorFlow takes seconds to import.
PROGRAM = """
import json, pathlib, sys
import tensorflow as tf
from local_sagemaker.hosting.runtime import saved_models
from local_sagemaker.hosting.runtime.http import CannotLoad, Refused, Request

class Model(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, name="x")])
    def double(self, x):
        return {"y": 2 * x}

def save(folder):
    model = Model()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.double})

here = pathlib.Path(sys.argv[1])
for number in (9, 10):
    save(here / "one" / "net" / str(number))
served = saved_models.TensorFlowServing(saved_models.find(here / "one"), here / "one" / "code")
assert (served.name, served.version) == ("net", "10"), served.version
LINES = "application/jsonlines"

def ask(body, kind="application/json", **more):
    return served.invoke(Request(json.dumps(body).encode(), kind, **more)).get_data(as_text=True)

ROWS = [[1.5, 2], [3, 4]]
expected = [[3, 4], [6, 8]]
text = ask({"instances": ROWS})
assert text.startswith('{\\n    "predictions": [[') and json.loads(text)["predictions"] == expected
assert "\\n" not in ask({"instances": ROWS}, accept=LINES)

for why, body in (
    ("Input 'x' has the shape [1, 3], and (None, 2) is wanted.", {"instances": [[1, 2, 3]]}),
    ("non-rectangular", {"instances": [[1, 2], [3]]}),
    ("Failed to process the instances", {"instances": [["a", "b"]]}),
    ("Serving signature name 'x' not found", {"instances": [], "signature_name": "x"}),
):
    try:
        raise AssertionError(ask(body))
    except Refused as refused:
        assert why in json.loads(refused.body)["error"], refused.body
        assert refused.status == 400

# A `handler` would ask TensorFlow Serving itself, at context.rest_uri.
(here / "one" / "code").mkdir()
(here / "one" / "code" / "inference.py").write_text("def handler(data, context): return data")
try:
    raise AssertionError(saved_models.TensorFlowServing(here / "one/net/10", here / "one/code"))
except CannotLoad as error:
    assert "works on AWS only" in str(error), error

save(here / "one" / "other" / "1")
try:
    raise AssertionError(saved_models.find(here / "one"))
except CannotLoad as error:
    assert "several SavedModels (net, other)" in str(error), error
print("ALL RIGHT")
"""


def test_a_saved_model(tmp_path):
    done = captured([sys.executable, "-c", PROGRAM, str(tmp_path)])
    assert done.stdout.endswith("ALL RIGHT\n"), done.stdout + done.stderr

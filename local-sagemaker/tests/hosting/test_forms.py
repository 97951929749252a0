"""The forms of a request to TensorFlow's serving image, rule by rule, without TensorFlow."""

import json
import re

import numpy as np
import pytest

from local_sagemaker.hosting.runtime import forms
from local_sagemaker.hosting.runtime.http import Refused, Request

JSON, LINES, CSV = "application/json", "application/jsonlines", "text/csv"

# What tensorflowServing.js of the image makes of each body.
BODIES = [
    (JSON, '{"instances": [1, 2]}', {"instances": [1, 2]}),
    (JSON, "[[1, 2], [3, 4]]", {"instances": [[1, 2], [3, 4]]}),
    (JSON, "[1, 2]", {"instances": [[1, 2]]}),
    (JSON, '{"x": 1}', {"instances": [{"x": 1}]}),
    (LINES, '{"x": 1}\n{"x": 2}\n', {"instances": [{"x": 1}, {"x": 2}]}),
    (LINES, "[1, 2]\n[3, 4]\r\n\n", {"instances": [[1, 2], [3, 4]]}),
    (LINES, '{"x": [[1], [2]]}', {"instances": [{"x": [[1], [2]]}]}),
    # A line alone that begins with [[ is taken for a list of instances, on AWS too.
    (LINES, "[[1], [2]]", {"instances": [[1], [2]]}),
    (CSV, "1,2\n3,4\n", {"instances": [[1, 2], [3, 4]]}),
    (CSV, "1\n2", {"instances": [1, 2]}),
]


@pytest.mark.parametrize(("kind", "body", "expected"), BODIES)
def test_bodies(kind, body, expected):
    assert json.loads(forms.to_serving_json(Request(body.encode(), kind))) == expected


@pytest.mark.parametrize("kind", ["application/x-npy", "application/json; charset=utf-8", None])
def test_another_content_type(kind):
    with pytest.raises(Refused, match="Unsupported Media Type") as refused:
        forms.to_serving_json(Request(b"[1]", kind))
    assert refused.value.status == 415


def test_what_is_accepted():
    assert forms.accepted(LINES, '{\n    "a": 1\n}') == ('{    "a": 1}', LINES)
    assert forms.accepted(None, '{\n    "a": 1\n}') == ('{\n    "a": 1\n}', JSON)


def read(text: str, inputs: set[str]) -> dict[str, list]:
    return forms.rows(forms.parse(text)["instances"], inputs)


def test_rows():
    for text in ('{"instances": [1.5, 2]}', '{"instances": [{"x": 1.5}, {"x": 2}]}'):
        assert read(text, {"x"}) == {"x": [1.5, 2]}
    assert read('{"instances": [{"x": 1, "n": 2}]}', {"x", "n"}) == {"x": [1], "n": [2]}
    with pytest.raises(Refused, match="without a name"):
        read('{"instances": [1]}', {"x", "n"})


WRONG = [
    ("[1", "JSON Parse error"),
    ("[1]", "must have 'instances'"),
    ('{"inputs": [1]}', "takes no 'inputs'"),
    ('{"instances": []}', "at least one instance"),
    ('{"instances": {"x": 1}}', "at least one instance"),
    ('{"instances": [{"y": 1}]}', r"inputs are \['y'\], and the signature's are \['x'\]"),
    ('{"instances": [{"x": 1}, {"y": 1}]}', r"\['x', 'y'\]"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_requests_that_are_refused(text, why):
    with pytest.raises(Refused) as refused:
        read(text, {"x"})
    assert refused.value.status == 400
    assert re.search(why, json.loads(refused.value.body)["error"])


def test_answers_are_read_as_the_very_same_numbers():
    values = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    rows = json.loads(forms.answer({"y": values}, 50))["predictions"]
    assert np.array(rows, np.float32).tobytes() == values.tobytes()
    two = {"a": values[:, 0], "b": values[:, 1]}
    first = {"a": float(values[0, 0]), "b": float(values[0, 1])}
    assert json.loads(forms.answer(two, 50))["predictions"][0] == first
    with pytest.raises(Refused, match="hold strings"):
        forms.answer({"s": np.array([b"t"], object)}, 1)
    with pytest.raises(Refused, match="no value for each"):
        forms.answer({"y": values}, 49)

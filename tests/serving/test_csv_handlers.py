"""Lesson 08's handlers: rows of CSV in, digits out. The lesson serves them."""

import importlib.util
import json
from collections import namedtuple
from io import BytesIO

import pytest

from workshop.paths import DEMOS

Context = namedtuple("Context", "request_content_type")
Response = namedtuple("Response", "status_code, content, rows")


@pytest.fixture(scope="module")
def handlers():
    spec = importlib.util.spec_from_file_location("h", DEMOS / "serve_csv" / "inference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_becomes_an_image(handlers):
    text = "\n".join(",".join(str(64 * row + pixel) for pixel in range(64)) for row in range(2))
    body = handlers.input_handler(BytesIO(text.encode()), Context("text/csv"))
    first, second = json.loads(body)["instances"]
    assert first[0][:2] == [[0.0], [1.0]] and first[1][0] == [8.0] and second[7][7] == [127.0]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [("1,2", "text/csv", "a row has 2 numbers; expected 64"), ("", "text/plain", "expected text")],
)
def test_a_bad_request_is_refused(handlers, text, kind, said):
    with pytest.raises(ValueError, match=said):
        handlers.input_handler(BytesIO(text.encode()), Context(kind))


def test_a_line_for_each_image_names_the_likeliest_digit(handlers):
    class Answer(Response):
        def json(self):
            return {"predictions": self.rows}

    answer = Answer(200, b"", [[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
    text, kind = handlers.output_handler(answer, None)
    assert kind == "application/jsonlines"
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines == [{"digit": 1, "probability": 0.7}, {"digit": 0, "probability": 0.5}]
    with pytest.raises(ValueError, match="no model"):
        handlers.output_handler(Answer(500, b"no model", []), None)

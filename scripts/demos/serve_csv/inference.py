"""Handlers for TensorFlow Serving's image: rows of CSV in, a digit and its probability out.

    TensorFlowModel(entry_point="inference.py", source_dir="scripts/demos/serve_csv", ...)

A row holds the 64 pixels of an image, 0 to 255, row by row. Its answer is a line of JSON such as
{"digit": 3, "probability": 0.97}.
"""

import json

SIDE = 8  # pixels


def input_handler(data, context):
    """Return TensorFlow Serving's JSON for the rows of a request."""
    if context.request_content_type != "text/csv":
        raise ValueError(f"expected text/csv, not {context.request_content_type}")
    rows = [line.split(",") for line in data.read().decode().splitlines() if line.strip()]
    if wrong := [len(row) for row in rows if len(row) != SIDE * SIDE]:
        raise ValueError(f"a row has {wrong[0]} numbers; expected {SIDE * SIDE}")
    return json.dumps({"instances": [image_of(row) for row in rows]})


def image_of(row):
    """Return 64 texts as an image: nested lists (8, 8, 1)."""
    pixels = [[float(pixel)] for pixel in row]
    return [pixels[start : start + SIDE] for start in range(0, SIDE * SIDE, SIDE)]


def output_handler(response, context):
    """Return TensorFlow Serving's answer as (text, content type): a line for each image."""
    if response.status_code != 200:
        raise ValueError(response.content.decode())
    lines = []
    for row in response.json()["predictions"]:
        digit = max(range(len(row)), key=row.__getitem__)
        lines.append(json.dumps({"digit": digit, "probability": row[digit]}))
    return "\n".join(lines), "application/jsonlines"

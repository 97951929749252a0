"""Checks of lesson 08's exercises."""

from __future__ import annotations

import json

import numpy as np

from workshop.lesson.check import Wrong, exercise


@exercise("08.1")
def surest_mistakes(answer) -> str:
    """Seven images, three of them wrong; then none of them."""
    rows = np.full((7, 10), 0.01)
    for number, sure in enumerate((0.9, 0.95, 0.6, 0.7, 0.75, 0.65, 0.85)):
        rows[number, number] = sure
    labels = np.array([0, 1, 9, 3, 8, 7, 6])  # 2, 4 and 5 are wrong
    rows[[2, 4, 5], labels[[2, 4, 5]]] = 0.3, 0.2, 0.05
    for right_labels, right in ((labels, [4, 5, 2]), (rows.argmax(axis=1), [])):
        returned = np.asarray(answer(rows.copy(), right_labels.copy()))
        if returned.ndim != 1 or returned.dtype == bool:
            raise Wrong(f"It returned {returned.tolist()}; return the numbers of the images.")
        if returned.tolist() != right:
            raise Wrong(
                f"It is {right}, not {returned.tolist()}. {_mistake_reason(returned, right)}"
            )
    return "The first image is the one to look at."


def _mistake_reason(returned: np.ndarray, right: list[int]) -> str:
    if returned.tolist() == right[::-1]:
        return "The surest mistake comes first: argsort begins with the smallest."
    if sorted(returned.tolist()) == sorted(right):
        return "Order them by the model's largest probability, not by that of the right class."
    if returned.size and set(returned.tolist()) <= set(range(len(right))):
        return "These are places in the list of mistakes, not the images' numbers."
    return "An image is wrong if the class with the largest probability is not its label."


@exercise("08.2")
def json_lines(answer) -> str:
    """Three images whose pixels are all different."""
    images = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8, 1)
    try:
        text = answer(images)
    except TypeError as error:
        if "JSON serializable" in str(error):
            raise Wrong(
                f"json cannot write numpy's arrays and numbers ({error}): .tolist()"
            ) from error
        raise
    if not isinstance(text, str):
        raise Wrong(f"It returned {type(text).__name__}; return a text.")
    if text.startswith("["):
        raise Wrong(
            "That is one JSON list. Each line is a request of its own: no list around them."
        )
    if not text.endswith("\n"):
        raise Wrong("The last line has no line break at its end: two such files cannot be joined.")
    lines = text.splitlines()
    if len(lines) != len(images):
        raise Wrong(f"{len(lines)} lines for {len(images)} images: one line for each.")
    for number, (line, image) in enumerate(zip(lines, images, strict=True)):
        _check_line(number, line, image)
    return "Each line is a request of its own."


def _check_line(number: int, line: str, image: np.ndarray) -> None:
    try:
        request = json.loads(line)
    except ValueError as error:
        raise Wrong(f"Line {number} is no JSON ({error}): {line[:40]} … Use json.dumps.") from error
    if not isinstance(request, dict) or set(request) != {"images"}:
        raise Wrong(f'Line {number} is {line[:40]} …, and {{"images": …}} was asked for.')
    shape = np.shape(request["images"])
    if shape == (1, *image.shape):
        raise Wrong(
            f"Line {number} holds a batch of one image; one image was asked for, {image.shape}."
        )
    if shape != image.shape or (np.array(request["images"]) != image).any():
        raise Wrong(f"Line {number} does not hold image {number}, an array {image.shape}.")


@exercise("08.3")
def digits_of(answer) -> str:
    """A sure image, an unsure one, one at the limit, one with a close second; another limit."""
    rows = np.full((5, 10), 0.02)
    rows[0, 7], rows[1, 3], rows[2, 0], rows[3, 9] = 0.82, 0.45, 0.5, 0.97
    rows[4, 6], rows[4, 1] = 0.6, 0.24
    body = json.dumps({"predictions": rows.tolist()})
    for given, right in (((), [7, None, 0, 9, 6]), ((0.9,), [None, None, None, 9, None])):
        text = answer(body, *given)
        if not isinstance(text, str):
            raise Wrong(f"It returned {type(text).__name__}; return a JSON text: json.dumps.")
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise Wrong(f"{text[:60]} is no JSON: {error}.") from error
        if not isinstance(parsed, dict) or set(parsed) != {"digits"}:
            raise Wrong(f'{text[:60]} was returned, and {{"digits": [...]}} was asked for.')
        got = parsed["digits"]
        if got != right or any(digit is not None and type(digit) is not int for digit in got):
            sure = given[0] if given else "0.5 by default"
            raise Wrong(f"With sure {sure} it is {right}, not {got}. {_reason(got, right)}")
    return "A digit where the model is sure, and null where it is not."


def _reason(got: list, right: list) -> str:
    if len(got) != len(right):
        return "There is one entry for each image, also for those that are not sure."
    if None not in got:
        return "None where the largest probability is below sure."
    if got == right or any(isinstance(digit, str) for digit in got):
        return "A digit is a whole number in the JSON, neither 7.0 nor a text: int()."
    if any(isinstance(digit, float) for digit in got):
        return "The class is asked for, not its probability."
    if got[4] is None and right[4] == 6:
        return "Compare the largest probability itself with sure, not its lead over the second."
    if got[2] is None and right[2] == 0:
        return "Exactly `sure` is sure enough. (And 0 is a digit: `if digit` is False for it.)"
    return "Take the class with the largest probability of each row."
